/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_hist: a histogram of times, 1.6 % wide, and its percentiles. */
#ifndef APP_BENCH_HIST_H
#define APP_BENCH_HIST_H

#include "base/clock.h"

#define HIST_BITS 6 /* buckets of a doubling: 2^6 */
#define HIST_SIZE ((48 - HIST_BITS) << HIST_BITS)

struct bench_hist {
	uint64_t n, sum, min, max;
	uint64_t count[HIST_SIZE];
};

void bench_hist_add(struct bench_hist *, nsec_t);
/* The middle of the bucket below which `part` of all are (0 .. 1); 0: there are none. */
double bench_hist_at(const struct bench_hist *, double part);

#endif
