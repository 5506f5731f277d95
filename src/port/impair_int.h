/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair_int: the parts of impair. `fate` decides and remembers, `delay` keeps frames until their
 * time. Private to impair*.c.
 */
#ifndef PORT_IMPAIR_INT_H
#define PORT_IMPAIR_INT_H

#include <sys/queue.h>

#include "base/rand.h"
#include "port/impair.h"

/* ---- impair_fate.c ---- */

#define FATE_LOST    1u
#define FATE_DUP     2u
#define FATE_HELD    4u
#define FATE_CORRUPT 8u

struct fate {
	uint64_t ordinal;
	unsigned what;
	uint32_t where; /* CORRUPT: which bit, before it is cut to the frame's length */
	nsec_t jitter;
};

#define FATES_MAX (1u << 20) /* remembered for the log, or replayed */

struct fates {
	const struct impair_rules *rules;
	struct rand rand;
	uint64_t ordinal;
	bool bad_spell;
	struct fate *log; /* [FATES_MAX], NULL: none wanted */
	uint32_t n_log;
	uint64_t unlogged;
	struct fate *replay; /* NULL: by chance */
	uint32_t n_replay, next;
};

void fates_init(struct fates *, const struct impair_rules *, uint64_t seed);
void fates_fini(struct fates *);
/* Of the next frame. Draws the same numbers whatever the rules are. */
struct fate fate_next(struct fates *);
/* Both directions from and to a file of lines such as "in 17 lost" or "out 4 dup held jitter=120". */
int fates_load(struct fates *in, struct fates *out, const char *path, struct err *);
int fates_want_log(struct fates *in, struct fates *out, const char *path, struct err *);
void fates_save(const struct fates *in, const struct fates *out, const char *path);

/* ---- impair_delay.c ---- */

#define DELAY_BLOCK 4096u
#define DELAY_BYTES (64u << 20) /* of the arena; touched only as far as it is used */

struct delayed {
	TAILQ_ENTRY(delayed) entry;
	nsec_t due;
	uint32_t len, block; /* block: the first one */
	struct offload off;
	uint8_t drop;
};
TAILQ_HEAD(delayed_list, delayed);

struct delay {
	uint8_t *mem;
	uint32_t *next; /* [blocks]: of a frame, or of the free list */
	uint32_t free;
	uint32_t nblocks, nfree;
	struct delayed *slots;
	struct delayed_list idle, due; /* due: by time, equal ones in order of arrival */
	uint32_t n;                    /* waiting */
};

int delay_init(struct delay *, uint32_t slots);
void delay_fini(struct delay *);
/* A copy of the frame with nobody's time yet; NULL: no room. delay_put() makes it wait. */
struct delayed *delay_copy(struct delay *, const struct frame *);
void delay_put(struct delay *, struct delayed *, nsec_t due);
void delay_take(struct delay *, struct delayed *); /* out of the queue, and forgotten */
uint8_t *delay_byte(struct delay *, const struct delayed *, uint32_t at);
/* The first one that is due at `now`, or NULL. */
struct delayed *delay_due(const struct delay *, nsec_t now);
nsec_t delay_deadline(const struct delay *);
/* Append it to a burst as a frame; false: it does not fit. */
bool delay_lend(struct delay *, const struct delayed *, struct burst *);

#endif
