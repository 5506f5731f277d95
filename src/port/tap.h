/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap: a kernel network interface as a port. One non-blocking descriptor with virtio-net headers; the
 * kernel is the driver: what it sends arrives by readv into an arena, what it gets leaves by writev.
 * Needs CAP_NET_ADMIN over the network namespace: root, or `unshare -Urn`, or netns= of a namespace
 * the user owns. [Linux Documentation/networking/tuntap.rst]
 */
#ifndef PORT_TAP_H
#define PORT_TAP_H

#include "port/port.h"

struct tap_config {
	const char *ifname;      /* 1 .. 15 bytes; created if it is not there */
	const char *netns;       /* NULL: ours; a name of ip-netns(8), a process id, or a path */
	const char *const *addr; /* ADDR/LEN texts to add, NULL-terminated; NULL: none */
	uint32_t mtu;            /* 0: leave at 1500 */
	uint64_t
		off; /* virtio feature bits not to use: guest_*: towards the kernel, host_*: from it */
};

/*
 * Opens, sets offloads, MTU, addresses, brings it up; blocks for some milliseconds. From then on the
 * port's link follows the interface's IFF_UP and its mtu the interface's MTU, whoever changes them.
 */
int tap_open(struct port **, const char *name, const struct tap_config *, struct loop *,
	struct log *, struct err *);
void tap_free(struct port *); /* closes; NULL is fine */
/* Why the link is down, a constant sentence; "" if it is up. */
const char *tap_missing(const struct port *);
const char *tap_ifname(const struct port *);
/* Virtio feature bits that hold: guest_*: towards the kernel; csum, host_*: from it. */
uint64_t tap_features(const struct port *);

#endif
