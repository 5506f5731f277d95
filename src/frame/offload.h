/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload: what a frame asks of its receiver, checked once at ingress (offload_check), and what is
 * done in software for a receiver that cannot: finish the checksum, or segment. Fitting writes only
 * into heads that this transmission owns (struct fit), never into the loan, so a flooded frame may be
 * fitted differently for every port. [VIRTIO 1.2 5.1.6.2, 5.1.6.4]
 */
#ifndef FRAME_OFFLOAD_H
#define FRAME_OFFLOAD_H

#include "frame/frame.h"
#include "wire/hdrs.h"

/* What a receiver takes unfitted: the guest-side features of the virtio-net driver behind it. */
#define ACCEPT_CSUM 1u /* partial checksums: VIRTIO_NET_F_GUEST_CSUM */
#define ACCEPT_TSO4 2u
#define ACCEPT_TSO6 4u
#define ACCEPT_ECN  8u /* TCP super-packets with CWR set */
#define ACCEPT_USO4 16u
#define ACCEPT_USO6 32u
#define ACCEPT_ALL  63u

/*
 * Segments a super-packet may make. UDP: what Linux makes and takes. TCP: 64 KiB at the smallest MTU
 * (68) are 2340; capped, because gso_size 1 would make 65000 frames out of one descriptor.
 */
#define GSO_UDP_SEGMENTS 128
#define GSO_TCP_SEGMENTS 4096

/*
 * Check the offload fields of a lent frame against its real headers; may pull. Sets f->off to what
 * the headers really say: hdr_len exact (for a lone checksum only if it is TCP's or UDP's own, else
 * 0), gso cleared where the payload is not longer than gso_size, the ECN bit as CWR in the header,
 * csum fields 0 without NEEDS_CSUM; DATA_VALID stays (a virtio driver may not set it, so the device
 * port clears it when it decodes a header; the kernel behind a tap may). GSO without NEEDS_CSUM is
 * refused (BAD_HDR): no feature set allows it.
 * Returns DROP_NONE, DROP_BAD_HDR or DROP_HDR_TOO_LONG. A frame without flags and gso costs nothing.
 */
enum drop offload_check_slow(struct frame *);
static inline enum drop offload_check(struct frame *f)
{
	if (__builtin_expect(!(f->off.flags | f->off.gso), 1)) {
		f->off = (struct offload){0};
		return DROP_NONE;
	}
	return offload_check_slow(f);
}

enum fit_need {
	FIT_NONE,    /* goes out as it is */
	FIT_CSUM,    /* finish the checksum */
	FIT_SEGMENT, /* cut into frames of gso_size */
};

/* What a checked frame needs before a receiver that takes `accepts` can have it. */
static inline enum fit_need fit_need(const struct frame *f, unsigned accepts)
{
	extern const uint8_t fit_gso_accept[256]; /* gso byte -> ACCEPT_ bits needed, 0xff: never */

	if (__builtin_expect(!(f->off.flags | f->off.gso), 1))
		return FIT_NONE;
	if (f->off.gso && (fit_gso_accept[f->off.gso] & ~accepts))
		return FIT_SEGMENT;
	if ((f->off.flags & OFF_NEEDS_CSUM) && !(accepts & ACCEPT_CSUM))
		return FIT_CSUM;
	return FIT_NONE;
}

/*
 * The largest IP datagram the frame puts on a wire: for a super-packet one segment's. Judged against
 * an MTU. Reads the head only (VLAN tags are not counted).
 */
uint32_t offload_ip_size(const struct frame *);

/*
 * Frames fitted for one receiver, a batch at a time. Big: it lives in the network, not on a stack.
 */
#define FIT_BATCH 32
#define FIT_IOV   1280 /* >= FIT_BATCH + CHAIN_MAX: a tail piece is cut at most once per segment */

struct fit {
	unsigned n; /* ready in f[] */
	struct frame f[FIT_BATCH];
	struct frame_head head[FIT_BATCH];
	struct iovec iov[FIT_IOV];
	unsigned niov;
};

/*
 * Segments a frame makes; each is a frame of its own. UDP_L4 and TCP, IPv4 and IPv6.
 */
unsigned fit_segments(const struct frame *);
/*
 * Fill fit->f[], from empty, with segments `first` .. of a checked super-packet, at most FIT_BATCH
 * (fewer where FIT_IOV runs out), resumable at any segment: calling with first = 0, then with what was
 * taken so far, gives the same frames as one go. With `accepts` having ACCEPT_CSUM the segments carry
 * NEEDS_CSUM and the folded pseudo-header sum; else their checksum is finished. Returns DROP_NONE and
 * fit->n >= 1, or the reason why it cannot be segmented: SYN, RST or URG set, an IP fragment, ...
 */
enum drop fit_segment(struct fit *, const struct frame *, unsigned first, unsigned accepts);
/*
 * Append one checked frame with its checksum finished to the batch: a head of its own, the frame's own
 * tail. DROP_NONE, or why not; fit->n < FIT_BATCH on entry.
 */
enum drop fit_csum(struct fit *, const struct frame *);
static inline void fit_reset(struct fit *fit)
{
	fit->n = 0;
	fit->niov = 0;
}

#endif
