/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_ns: makes a tap interface ready, in our network namespace or in another one: enter the
 * namespace, open the descriptor, choose the offloads, set MTU and addresses, bring it up. All of
 * it is set-up: blocking, and done once. It knows no port and no frame.
 */
#ifndef PORT_TAP_NS_H
#define PORT_TAP_NS_H

#include <net/if.h>

#include "base/err.h"
#include "port/tap.h"
#include "port/tap_link.h"

struct tap_if {
	int fd[TAP_QUEUES]; /* the tap, a queue each: non-blocking, close-on-exec; -1: none */
	unsigned queues;
	int watch; /* news of the link (port/tap_link.h) */
	char ifname[IFNAMSIZ];
	unsigned ifindex;
	bool macvtap; /* its descriptor does not tell that the interface is gone */
	struct tap_wire wire;
	bool made;            /* to be deleted at close: a macvtap stays when its descriptor goes */
	uint8_t mac[6];       /* the interface's own */
	struct tap_link link; /* as it is now */
	uint64_t
		features; /* virtio feature bits that hold between the kernel (the driver) and us */
};

/*
 * Blocks for a few milliseconds. With cfg->netns a child process does the work and hands the
 * descriptors back, so that neither the caller's namespaces nor its threads are touched.
 * 0 or -errno with the remedy in `err`; the caller owns both descriptors, and cfg->fd still.
 */
int tap_if_open(const struct tap_config *cfg, struct tap_if *out, struct err *err);
void tap_if_close(struct tap_if *); /* what was made goes, too */
void tap_if_init(struct tap_if *);  /* nothing is open */

#endif
