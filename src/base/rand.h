/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rand: one small seeded generator (xoshiro256**), so that a run can be repeated by its seed. Not
 * for secrets; rand_secret() is.
 */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

struct rand {
	uint64_t s[4];
};

void rand_init(struct rand *, uint64_t seed);
uint64_t rand_u64(struct rand *);
/* A number in [0, n), n > 0, without bias. */
uint32_t rand_below(struct rand *, uint32_t n);
/* Fill from the kernel's generator: hash seeds. */
void rand_secret(void *buf, size_t len);

#endif
