/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_rings: a virtio-net driver below the host and the device over its rings, in one process and
 * in virtual time: what goes in is written into the driver's receive buffers by the device, what
 * comes out was posted as descriptors.
 */
#ifndef TESTS_DRILL_RINGS_H
#define TESTS_DRILL_RINGS_H

#include "base/clock.h"
#include "base/err.h"
#include "frame/frame.h"
#include "frame/pkt.h"

struct rings;
struct stack;

int rings_new(struct rings **, uint32_t mtu, nsec_t now, struct err *);
struct pkt_pool *rings_pkts(struct rings *); /* what the host is to be made on */
int rings_attach(struct rings *, struct stack *, struct err *);
void rings_detach(struct rings *); /* before the host goes */
void rings_free(struct rings *);   /* after it went */

/* A frame from the network's side. */
void rings_in(struct rings *, const struct frame *, nsec_t now);
/* Let the host and both ends of the rings do what there is to do. */
void rings_run(struct rings *, nsec_t now);
/* The next frame for the network, copied to `buf`; its length, 0: none. */
uint32_t rings_out(struct rings *, uint8_t *buf, struct offload *, nsec_t now);

#endif
