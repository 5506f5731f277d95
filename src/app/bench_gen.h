/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_gen: frames of one length, made quickly: each packet is a clone that has its own head and
 * shares the payload of all others. Up to the MTU it is UDP; above, a TCP super-packet to be cut into
 * segments of 1448 bytes, as Linux sends with timestamps at MTU 1500.
 */
#ifndef APP_BENCH_GEN_H
#define APP_BENCH_GEN_H

#include "frame/pkt.h"

#define BENCH_SIZE_MIN 64
#define BENCH_SIZE_MAX 65535
#define BENCH_LINEAR   256  /* a frame up to this length has no shared payload */
#define BENCH_SEGMENT  1448 /* bytes of payload in a segment */

struct bench_gen {
	struct pkt_pool *pkts;
	struct chunk_pool *chunks;
	uint32_t size, headroom, head_len;
	uint8_t head[BENCH_LINEAR];
	struct offload off;
	struct pkt_frag piece[PKT_FRAGS]; /* a reference of ours on each */
	unsigned npiece;
	bool stamped;     /* each packet is, behind its headers (bench_stamp.h) */
	uint32_t headers; /* bytes */
	uint32_t run, serial;
};

struct bench_gen_config {
	uint32_t size, mtu; /* above mtu + 14 they are super-packets */
	uint32_t headroom;
	unsigned order; /* of chunks for payload */
	bool stamped;
	uint32_t run; /* for the stamps */
};

/* -ENOMEM, said so. After 0 bench_gen_fini before the pool goes. */
int bench_gen_init(
	struct bench_gen *, struct pkt_pool *, const struct bench_gen_config *, struct err *);
void bench_gen_fini(struct bench_gen *);
struct pkt *bench_gen_make(struct bench_gen *); /* NULL: no memory now */

/* "Here I am", from the receiver to all, so that the network learns where it is. */
struct pkt *bench_gen_announce(struct pkt_pool *, uint32_t headroom);

#endif
