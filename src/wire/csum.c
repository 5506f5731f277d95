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

/* As wide as every 64-bit machine has them; wider ones are cut up by the compiler, badly. */
typedef uint64_t lanes __attribute__((vector_size(16)));

#define BLOCK 64 /* bytes a turn: four vectors, in two chains of additions */

static uint64_t halves(uint64_t v)
{
	return (v >> 32) + (uint32_t)v;
}

/*
 * Sum of whole blocks; len is a multiple of BLOCK. `all` adds whole 64-bit words and may overflow,
 * `high` adds their upper halves and cannot; what is left when the upper halves are taken out again
 * is the sum of the lower halves, exactly, for that cannot overflow either.
 */
static uint64_t sum_blocks(const uint8_t *p, size_t len)
{
	lanes all = {0}, all2 = {0}, high = {0}, high2 = {0};

	for (const uint8_t *end = p + len; p != end; p += BLOCK) {
		lanes v[4];

		memcpy(v, p, sizeof(v));
		all += v[0];
		high += v[0] >> 32;
		all2 += v[1];
		high2 += v[1] >> 32;
		all += v[2];
		high += v[2] >> 32;
		all2 += v[3];
		high2 += v[3] >> 32;
	}
	high += high2;
	all += all2 - (high << 32); /* now the lower halves */
	all = (all >> 32) + (all & UINT32_MAX) + (high >> 32) + (high & UINT32_MAX);
	return all[0] + all[1];
}

static uint64_t sum_words(const uint8_t *p, size_t len)
{
	uint64_t sum = 0, v8;
	uint32_t v4;
	uint16_t v2;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&v8, p, 8);
		sum += v8;
		sum += sum < v8; /* the carry comes back at the bottom */
	}
	sum = halves(sum);
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
