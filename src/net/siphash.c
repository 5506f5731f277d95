/* SPDX-License-Identifier: BSD-2-Clause */
/* siphash: see siphash.h */
#include "net/siphash.h"

#include <string.h>

static uint64_t load_le64(const uint8_t *p)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static uint64_t rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

uint64_t siphash(const uint8_t key[16], const void *in, size_t len)
{
	uint64_t k0 = load_le64(key), k1 = load_le64(key + 8);
	uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
		k1 ^ 0x7465646279746573};
	const uint8_t *p = in;
	uint8_t last[8] = {0};
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8)
		sip_word(v, load_le64(p));
	memcpy(last, p, left);
	last[7] = (uint8_t)len;
	sip_word(v, load_le64(last));
	v[2] ^= 0xff;
	for (unsigned i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
