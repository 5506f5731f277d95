/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gro: neighbours of one flow in a burst become one super-packet: the first one's headers, the payload
 * of all by reference. Nothing is held beyond the burst, so it costs no latency.
 */
#ifndef FRAME_GRO_H
#define FRAME_GRO_H

#include <stdbool.h>
#include <stdint.h>

#include "frame/frame.h"
#include "wire/hdrs.h"

#define GRO_HELD 16 /* flows that are open at once; the oldest is closed */

enum gro_kind {
	GRO_NO,   /* goes on as it is */
	GRO_FLOW, /* likewise, but what came before it in its flow must not grow beyond it */
	GRO_TCP,  /* checksum verified or to be trusted */
	GRO_UDP,  /* likewise, and its receiver takes trains */
};

struct gro;

struct gro *gro_new(void); /* NULL: no memory */
void gro_free(struct gro *);
void gro_seed(struct gro *, uint64_t secret); /* of the flows' hash */

/*
 * Merge among f[0 .. n), n <= BURST_FRAMES, that kind[] and the rules allow. A frame that went into
 * another one gets kind[i] = GRO_MERGED; the one it went into is a super-packet with partial checksum,
 * lengths and IPv4 header checksum right; its pieces are gro's until the next call, its head is
 * written to. Returns how many frames are gone. Heads hold all headers; *h[i] says where.
 */
#define GRO_MERGED 0xff
unsigned gro_burst(
	struct gro *, struct frame *f, const struct hdrs *const *h, uint8_t *kind, unsigned n);

#endif
