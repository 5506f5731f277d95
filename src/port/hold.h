/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold: interrupt moderation. The notifications of a bulk stream keep a distance of `gap`, so that one
 * interrupt of the guest carries what came meanwhile. Nothing else begins to wait: not the first after a
 * quiet `gap`, not one of small frames (which takes along what is held), and not those of a peer that sends
 * one thing and waits for the answer: a hold that gathered nothing is not repeated for 1, 3, 7 ... 63
 * notifications. A small frame behind a held one waits with it if the driver does not ask for its own.
 */
#ifndef PORT_HOLD_H
#define PORT_HOLD_H

#include "base/loop.h"
#include "port/port.h"

#define HOLD_BULK 8192 /* bytes since the last wish from which on it is a bulk stream, ... */
#define HOLD_MEAN 1024 /* ... if the frames are not small */

struct hold {
	void (*send)(struct hold *); /* what was held is due */
	nsec_t gap;                  /* [ns]; 0: nothing waits */
	uint64_t n_held;             /* notifications that waited */

	/* its own */
	struct loop *loop;
	struct loop_timer timer; /* set while one is held */
	const struct port_counters *count;
	nsec_t last;              /* when the last one went */
	uint64_t bytes, frames;   /* *count at the last wish */
	uint64_t gathered;        /* frames when it began to wait */
	unsigned skip, skip_left; /* not to be held, as it did not help */
};

/* `count` counts what is published on the queue; gap is 0. 0 or -ENOMEM. */
int hold_init(struct hold *, struct loop *, const struct port_counters *count,
	void (*send)(struct hold *));
void hold_fini(struct hold *);
/* The driver wants to hear of what was just published. True: tell it now. */
bool hold_wish(struct hold *);
/* Send what is held, if anything is, now. */
void hold_flush(struct hold *);
/* Whatever is held is not due any more. */
void hold_cancel(struct hold *);

#endif
