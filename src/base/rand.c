/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rand: xoshiro256** by Blackman and Vigna, its state filled by splitmix64.
 */
#include "base/rand.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/clock.h"

static uint64_t rotate_left(uint64_t x, unsigned k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rand_init(struct rand *r, uint64_t seed)
{
	for (unsigned i = 0; i < 4; i++)
		r->s[i] = splitmix(&seed);
}

uint64_t rand_u64(struct rand *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint32_t rand_below(struct rand *r, uint32_t n)
{
	uint64_t m;

	assert(n > 0);
	/* Multiply and shift; the few products that would be drawn once too often are drawn again.
	 */
	do {
		m = (rand_u64(r) >> 32) * n;
	} while ((uint32_t)m < -n % n);
	return (uint32_t)(m >> 32);
}

void rand_secret(void *buf, size_t len)
{
	uint8_t *p = buf;
	uint64_t x = (uint64_t)clock_now() ^ (uintptr_t)buf;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) { /* forbidden by a sandbox: at least no constant */
			*p = (uint8_t)splitmix(&x);
			n = 1;
		}
		p += n;
		len -= (size_t)n;
	}
}
