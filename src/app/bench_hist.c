/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_hist: buckets are as wide as the number of leading bits kept allows: exact to 2^6, then
 * doubling in width with each doubling of the value.
 */
#include "app/bench_hist.h"

static unsigned bucket(uint64_t x)
{
	unsigned shift;

	if (x >> HIST_BITS == 0)
		return (unsigned)x;
	shift = 63 - (unsigned)__builtin_clzll(x) - HIST_BITS;
	if (shift + 1 >= HIST_SIZE >> HIST_BITS)
		return HIST_SIZE - 1;
	return ((shift + 1) << HIST_BITS) + (unsigned)(x >> shift) - (1u << HIST_BITS);
}

void bench_hist_add(struct bench_hist *h, nsec_t time)
{
	const uint64_t x = (uint64_t)time;

	h->count[bucket(x)]++;
	h->min = !h->n || x < h->min ? x : h->min;
	h->max = x > h->max ? x : h->max;
	h->sum += x;
	h->n++;
}

double bench_hist_at(const struct bench_hist *h, double part)
{
	const double want = part * (double)h->n;
	uint64_t sum = 0;

	for (unsigned i = 0; h->n && i < HIST_SIZE; i++) {
		const unsigned shift = i >> HIST_BITS ? (i >> HIST_BITS) - 1 : 0;
		const uint64_t low =
			i >> HIST_BITS
				? (uint64_t)((i & ((1u << HIST_BITS) - 1)) | (1u << HIST_BITS))
					  << shift
				: i;

		sum += h->count[i];
		if (sum && (double)sum >= want)
			return (double)low + (double)(UINT64_C(1) << shift) / 2;
	}
	return 0;
}
