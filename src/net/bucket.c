/* SPDX-License-Identifier: BSD-2-Clause */
/* bucket: see bucket.h */
#include "net/bucket.h"

bool bucket_take(struct bucket *b, uint32_t burst, nsec_t refill, struct rand *r, nsec_t now)
{
	const uint32_t us = (uint32_t)(refill / NSEC_PER_USEC);

	if (b->tokens && now - b->next > (nsec_t)burst * 3 * refill)
		b->tokens = 0; /* quiet for long */
	while (b->tokens && b->next <= now) {
		b->tokens--;
		b->next += refill + rand_below(r, 2 * us) * NSEC_PER_USEC;
	}
	if (b->tokens >= burst)
		return false;
	if (!b->tokens++)
		b->next = now + refill + rand_below(r, 2 * us) * NSEC_PER_USEC;
	return true;
}
