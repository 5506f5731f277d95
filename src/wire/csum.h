/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * csum: the Internet checksum [RFC 1071]. Sums are kept in 64 bits, in network byte order of the
 * 16-bit words as seen in memory, and folded at the end. A piece that follows an odd number of bytes
 * counts with its bytes swapped: csum_piece() keeps track of that.
 */
#ifndef WIRE_CSUM_H
#define WIRE_CSUM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct csum {
	uint64_t sum; /* of 16-bit words, memory order */
	unsigned odd; /* 1: an odd number of bytes was added so far */
};

/* Add `len` bytes; any alignment. Vectorised where the compiler can; never reads beyond the end. */
void csum_piece(struct csum *, const void *p, size_t len);
/* Add a 16-bit or 32-bit value in host order, as if its network bytes were added at an even place. */
void csum_u16(struct csum *, uint16_t host);
void csum_u32(struct csum *, uint32_t host);
/* The sum of both pseudo headers: addresses, protocol, length. [RFC 9293 3.1], [RFC 8200 8.1] */
void csum_pseudo4(
	struct csum *, const uint8_t src[4], const uint8_t dst[4], uint8_t proto, uint32_t len);
void csum_pseudo6(
	struct csum *, const uint8_t src[16], const uint8_t dst[16], uint8_t proto, uint32_t len);
/* Folded to 16 bits, host order, not complemented. */
uint16_t csum_fold(const struct csum *);
/* The complement of the fold, host order: what goes into a header by put_be16. */
static inline uint16_t csum_end(const struct csum *c)
{
	return (uint16_t)~csum_fold(c);
}

#endif
