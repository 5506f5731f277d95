/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranges: a bounded set of disjoint, not touching intervals of sequence numbers, sorted. Finding is
 * by halving, inserting moves at most RANGES_MAX small entries: a stranger cannot make it dear.
 */
#ifndef NET_RANGES_H
#define NET_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#define RANGES_MAX 128

struct range {
	uint32_t beg, end; /* [beg, end) */
};

struct ranges {
	unsigned n;
	struct range r[RANGES_MAX];
};

/* The first interval that ends after `seq`; n: none. */
unsigned ranges_find(const struct ranges *, uint32_t seq);
/*
 * Add [beg, end), beg before end, joining what it overlaps or touches. False: the set is full, it is
 * as it was. *at: the index of the interval that has it now.
 */
bool ranges_add(struct ranges *, uint32_t beg, uint32_t end, unsigned *at);
/* Forget everything before `seq`. */
void ranges_trim(struct ranges *, uint32_t seq);
/* Forget everything from `seq` on. */
void ranges_cut(struct ranges *, uint32_t seq);

#endif
