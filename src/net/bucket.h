/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bucket: how many answers strangers get. Tokens come back after a random time, so that nobody can
 * learn from his own share what others do; who shares a bucket is decided by a keyed hash.
 */
#ifndef NET_BUCKET_H
#define NET_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rand.h"

struct bucket {
	uint32_t tokens; /* used up; 0: full */
	nsec_t next;     /* when one comes back */
};

/* One of `burst`; each comes back after one to three times `refill`. False: none is left. */
bool bucket_take(struct bucket *, uint32_t burst, nsec_t refill, struct rand *, nsec_t now);

#endif
