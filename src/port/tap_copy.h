/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_copy: the copy path of tun and macvtap as an option of the port: each frame read is kept in a
 * packet of a pool of its own before it is lent. It knows no descriptor and no interface.
 */
#ifndef PORT_TAP_COPY_H
#define PORT_TAP_COPY_H

#include "frame/pkt.h"
#include "port/tap.h"

/* A burst, its packets' last pages, their heads, and room for orders to be had. */
#define TAP_COPY_POOL (4u << 20)

struct tap_copy {
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct keep_rule rule;
	struct tap_copied count;
};

/* 0, or -errno with the reason. */
int tap_copy_init(struct tap_copy *, const struct tap_copy_config *, struct err *);
void tap_copy_fini(struct tap_copy *); /* every packet has come back */

/*
 * Keep b->f[i], whose head lies in b->head[i], and lend the packet in its place; its tail is the last
 * in b->iov. Returns the packet, to be freed when the frame is settled; NULL: the frame is as it was
 * and is to be dropped.
 */
struct pkt *tap_copy_frame(struct tap_copy *, struct burst *, unsigned i);
/* Likewise a frame by itself, whose new tail lies in iov[0 .. niov). */
struct pkt *tap_copy_one(
	struct tap_copy *, struct frame *, struct frame_head *, struct iovec *iov, unsigned niov);
void tap_copy_count(const struct tap_copy *, struct tap_copied *);

#endif
