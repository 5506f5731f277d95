/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair: a bad network in front of any port: delay, jitter, loss, reordering, duplicates, spoiled
 * bits, a bottleneck with a queue, an MTU hole. Each direction has its own rules; what happens to
 * which frame follows from the seed alone, so a run can be repeated, or replayed from its log.
 *
 * It puts its operations around those of the port it is given, which stays the port that everybody
 * knows: same name, same link, same counters. Frames that must wait are copied into a bounded arena.
 * It asks the port's loop for the time, so it works in virtual time, too.
 *
 *	network --push--> [ decide ] --> queue by time --> the port's own push
 *	network <--pull-- queue by time <-- [ decide ] <-- the port's own pull
 */
#ifndef PORT_IMPAIR_H
#define PORT_IMPAIR_H

#include "port/port.h"

#define IMPAIR_AT 16 /* ordinals of loss=at: */

enum impair_unit {
	IMPAIR_WIRE,  /* a super-packet is cut first, and each segment has its own fate */
	IMPAIR_SUPER, /* it is delayed or lost as a whole */
};

/* One direction. Probabilities are in millionths. */
struct impair_rules {
	nsec_t delay, jitter; /* jitter: evenly, up to so much less or more; the order stays */
	uint32_t loss;
	uint32_t burst_enter, burst_leave; /* not 0: lost while in a bad spell (Gilbert) */
	uint32_t loss_every;               /* not 0: the n-th, 2n-th, ... */
	uint32_t n_at;
	uint64_t loss_at[IMPAIR_AT]; /* these, counted from 1 */
	uint32_t reorder;            /* held until the next one has passed, or REORDER_MAX */
	uint32_t dup;
	uint32_t corrupt;     /* one bit behind the Ethernet header flips, checksums stay */
	uint64_t rate;        /* bit/s; 0: no bottleneck */
	uint32_t limit;       /* frames that may wait; more are dropped */
	uint32_t limit_bytes; /* of the bottleneck's queue; 0: no limit */
	uint32_t mtu_hole;    /* IP datagrams (segments) above it vanish; 0: none */
	enum impair_unit unit;
};

struct impair_conf {
	struct impair_rules in, out; /* from the port into the network; to the port */
	uint64_t seed;
	char log[108], replay[108]; /* file names; empty: none */
};

struct impair_counters {
	uint64_t frames, lost, held, dup, corrupt, hole, limit; /* frames: all that came */
};

struct impair;

/*
 * Words joined by '+': delay=10ms+loss=1%+out.rate=100M. Without in. or out. a word counts for both
 * directions. 0 or -EINVAL, saying which word and what would be right.
 */
int impair_parse(struct impair_conf *, const char *text, struct err *);

/*
 * Wrap an open port, before it is attached to anything. The wrapping comes off, and the log is
 * written, when the port is closed by its ops or at impair_free, which must come before the port's
 * memory goes. 0 or -errno.
 */
int impair_wrap(struct impair **, struct port *, const struct impair_conf *, struct err *);
void impair_free(struct impair *); /* NULL is fine */

const struct impair_counters *impair_in(const struct impair *);
const struct impair_counters *impair_out(const struct impair *);

#endif
