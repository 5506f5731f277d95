/* SPDX-License-Identifier: BSD-2-Clause */
/* tap_queue: see tap_queue.h. It reads the private head only. */
#include "port/tap_queue.h"

#include "wire/bytes.h"
#include "wire/hdrs.h"

#define GOLDEN 0x9e3779b1u /* 2^32 by the golden ratio: spreads what differs in a few bits */

static uint32_t mix(uint32_t hash, const uint8_t *p, unsigned len)
{
	for (unsigned i = 0; i < len; i += 4)
		hash = (hash ^ get_be32(p + i)) * GOLDEN;
	return hash;
}

unsigned tap_queue_of(const struct frame *f, unsigned queues)
{
	struct hdrs h;
	uint32_t hash;

	if (queues == 1 || hdrs_parse(f->head, f->head_len, frame_len(f), &h) != HDRS_OK || !h.ip)
		return 0;
	hash = h.ip == 4 ? mix(h.proto, f->head + h.l3 + 12, 8)
			 : mix(h.proto, f->head + h.l3 + 8, 32);
	if (h.payload)
		hash = mix(hash, f->head + h.l4, 4);
	hash ^= hash >> 15;
	return (unsigned)((uint64_t)(hash * GOLDEN) * queues >> 32);
}
