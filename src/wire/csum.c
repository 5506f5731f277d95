/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * csum: the Internet checksum. Owns no buffer and keeps no state but the caller's struct csum.
 * [RFC 1071]
 *
 * The one's complement sum does not care in which byte order or in which word size it is added, as
 * long as what overflows comes back at the bottom: 2^16 = 2^32 = 1 modulo 2^16 - 1. So memory is
 * read in native words as wide as the machine has them, each is split into 32-bit halves that are
 * added in 64-bit lanes (no carry can be lost before 2^32 words), and only the fold to 16 bits,
 * read back as the two bytes it is in memory, gives the value in network order.
 */
#include "wire/csum.h"
#include "wire/bytes.h"

/* Four lanes; where the machine has only 16-byte vectors the compiler takes two. */
typedef uint64_t lanes __attribute__((vector_size(32)));

#define BLOCK 64 /* bytes a turn: two vectors, to keep two chains of additions going */

static uint64_t halves(uint64_t v)
{
	return (v >> 32) + (uint32_t)v;
}

/* Sum of whole blocks; len is a multiple of BLOCK. */
static uint64_t sum_blocks(const uint8_t *p, size_t len)
{
	const lanes low = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	lanes a = {0}, b = {0}, c = {0}, d = {0};

	for (const uint8_t *end = p + len; p != end; p += BLOCK) {
		lanes v, w;

		memcpy(&v, p, sizeof(v));
		memcpy(&w, p + sizeof(v), sizeof(w));
		a += v & low;
		b += v >> 32;
		c += w & low;
		d += w >> 32;
	}
	a += b;
	c += d;
	a += c;
	/* each lane is below 2^62 for any length that exists, but four of them together may not be
	 */
	return halves(a[0]) + halves(a[1]) + halves(a[2]) + halves(a[3]);
}

static uint64_t sum_words(const uint8_t *p, size_t len)
{
	uint64_t sum = 0, v8;
	uint32_t v4;
	uint16_t v2;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&v8, p, 8);
		sum += halves(v8);
	}
	if (len & 4) {
		memcpy(&v4, p, 4);
		sum += v4;
		p += 4;
	}
	if (len & 2) {
		memcpy(&v2, p, 2);
		sum += v2;
		p += 2;
	}
	if (len & 1) {
		const uint8_t last[2] = {*p, 0};

		memcpy(&v2, last, 2);
		sum += v2;
	}
	return sum;
}

/* To 16 bits, still as in memory. */
static uint16_t fold(uint64_t sum)
{
	sum = halves(sum);
	sum = halves(sum);
	sum = (sum >> 16) + (uint16_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	return (uint16_t)sum;
}

void csum_piece(struct csum *c, const void *p, size_t len)
{
	const uint8_t *at = p;
	size_t whole = len & ~(size_t)(BLOCK - 1);
	uint64_t sum = 0;

	if (whole)
		sum = sum_blocks(at, whole);
	sum += sum_words(at + whole, len - whole);
	if (c->odd & 1)
		sum = __builtin_bswap16(fold(sum));
	c->sum += halves(sum);
	c->odd = (c->odd ^ (unsigned)len) & 1;
}

void csum_u16(struct csum *c, uint16_t host)
{
	const be16 wire = be16_of(host);
	uint16_t v;

	memcpy(&v, &wire, 2);
	c->sum += v;
}

void csum_u32(struct csum *c, uint32_t host)
{
	const be32 wire = be32_of(host);
	uint32_t v;

	memcpy(&v, &wire, 4);
	c->sum += v;
}

void csum_pseudo4(
	struct csum *c, const uint8_t src[4], const uint8_t dst[4], uint8_t proto, uint32_t len)
{
	c->sum += sum_words(src, 4) + sum_words(dst, 4);
	csum_u16(c, proto);
	csum_u32(c, len);
}

void csum_pseudo6(
	struct csum *c, const uint8_t src[16], const uint8_t dst[16], uint8_t proto, uint32_t len)
{
	c->sum += sum_words(src, 16) + sum_words(dst, 16);
	csum_u16(c, proto);
	csum_u32(c, len);
}

uint16_t csum_fold(const struct csum *c)
{
	const uint16_t v = fold(c->sum);
	uint8_t wire[2];

	memcpy(wire, &v, 2);
	return get_be16(wire);
}
