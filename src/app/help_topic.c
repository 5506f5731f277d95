/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * help_topic: the terms. A test sees to it that no drop reason and no feature is forgotten.
 */
#include "app/help_topic.h"

#include <stddef.h>

static const struct help_term columns[] = {
	{"LINK", "up: the driver behind the port works; else a line below says what is missing"},
	{"MAC", "the address offered to the guest, or the driver's; not the learned ones: show "
		"fdb"},
	{"MTU", "largest IP packet that the driver takes; - if it has not said"},
	{"TAKES", "what may reach the driver as it is; the rest is done in software for it"},
	{"FRAMES-IN", "from the port into the network; BYTES-IN: their bytes"},
	{"FRAMES-OUT", "from the network to the port; BYTES-OUT: their bytes"},
	{"GSO", "super-packets among the frames, segmented by nobody on the way"},
	{"BUFFERS/FRAME", "ring buffers that a frame took"},
	{"NOTIFICATIONS", "interrupts to the driver: a system call each"},
	{"KICKS", "notifications from the driver"},
	{"FIT-CSUM", "checksums computed for a driver that does not take them partial"},
	{"FIT-SEGMENTS", "segments cut for a driver that does not take super-packets"},
	{NULL, NULL},
};

static const struct help_term drops[] = {
	{"short", "less than an Ethernet header: the sender's driver is broken"},
	{"too_long", "more than 65549 bytes: the sender's driver is broken"},
	{"bad_virtio_hdr",
		"the virtio header contradicts the frame: the sender's driver is broken"},
	{"hdr_too_long", "the headers up to the payload are longer than can be looked at"},
	{"bad_source", "the source address is multicast or zero"},
	{"reserved_address", "to 01:80:c2:00:00:0x, which no bridge forwards: STP, LLDP"},
	{"same_port", "the destination is behind the port that the frame came from"},
	{"no_destination", "there is no other port"},
	{"link_down", "the receiver's driver is not ready: see weft show"},
	{"exceeds_mtu", "above the receiver's MTU: give both sides the same mtu="},
	{"no_room", "the receiver did not empty its ring in time: it is overloaded or stopped"},
	{"buffer_too_small", "the receiver's buffers are small and it has no mrg_rxbuf"},
	{"cannot_fit", "cannot be segmented or checksummed in software for the receiver"},
	{"ring_disabled", "the sender's driver has its queue disabled"},
	{"io_error", "the kernel refused the frame"},
	{"impaired", "lost on purpose: impair="},
	{"no_memory", "copy=on: there was no memory to keep the frame in"},
	{NULL, NULL},
};

static const struct help_term features[] = {
	{"csum", "the guest may send packets whose checksum is still to be computed"},
	{"guest_csum", "the guest takes such packets"},
	{"mtu", "the device tells the guest its MTU"},
	{"mac", "the device tells the guest its address"},
	{"guest_tso4", "the guest takes super-packets of TCP over IPv4"},
	{"guest_tso6", "the same over IPv6"},
	{"guest_ecn", "the same with ECN"},
	{"host_tso4", "the guest may send super-packets of TCP over IPv4"},
	{"host_tso6", "the same over IPv6"},
	{"host_ecn", "the same with ECN"},
	{"mrg_rxbuf", "a packet may span several receive buffers: long ones need no long buffers"},
	{"status", "the device tells the guest whether the link is up"},
	{"any_layout", "the virtio header may share a buffer with the frame (before version 1)"},
	{"indirect_desc", "a packet takes one entry of the ring, whatever its pieces"},
	{"event_idx", "both sides say from where on they want to be notified: fewer notifications"},
	{"version_1", "virtio 1.0 and later; without it the driver is a legacy one"},
	{"guest_uso4", "the guest takes super-packets of UDP over IPv4"},
	{"guest_uso6", "the same over IPv6"},
	{"host_uso", "the guest may send super-packets of UDP"},
	{NULL, NULL},
};

const struct help_topic help_topics[] = {
	{"columns", "What the columns of weft show and weft show stats mean", columns},
	{"drops", "Why a frame was dropped: the reasons in weft show drops", drops},
	{"features", "Features of virtio-net, for off=; without one, what needs it goes, too",
		features},
	{NULL, NULL, NULL},
};
