/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause: how long one sender may wait for one receiver. A bucket of time: it holds half of what any
 * window may contain (5 of 10 ms in 100 ms) and fills at the other half's rate (5 %), so whatever
 * window is looked at, what was in the bucket and what came in together never exceed the share.
 *
 *	any window W:  paused <= capacity + rate * W = WAIT_SHARE/2 * W + WAIT_SHARE/2 * W
 */
#ifndef FABRIC_PAUSE_H
#define FABRIC_PAUSE_H

#include "base/limits.h"
#include "port/port.h"

#define PAUSE_CAPACITY (WAIT_WINDOW_MS * NSEC_PER_MSEC * WAIT_SHARE / 200)
#define PAUSE_REFILL   (200 / WAIT_SHARE)    /* one nanosecond comes in per so many */
#define PAUSE_MIN      (100 * NSEC_PER_USEC) /* a shorter pause is not worth a timer */

/* A second bucket, for pauses that keep nobody else: as long as a receiver that has lost its core may
 * stand still. It fills as slowly, and by what the receiver takes: one that takes PAUSE_RATE bytes a second or
 * more may be waited for as often as it likes, for then even a full ring of frames is gone soon. */
#define PAUSE_SPARE (WAIT_WINDOW_MS * NSEC_PER_MSEC / 2)
#define PAUSE_RATE  50000000 /* bytes a second */

/* Full buckets. */
void pause_init(struct pause *, nsec_t now);
/*
 * How long a pause that starts now may be: at most `wait` [ns, > 0]; 0: the budget is used up.
 * `alone`: it keeps nobody else.
 */
nsec_t pause_grant(struct pause *, nsec_t now, nsec_t wait, bool alone);
/* A pause ended after `spent` ns: a timer that ran late leaves a debt. */
void pause_charge(struct pause *, nsec_t spent, bool alone);
/* The receiver took so many bytes. False: the second bucket is full. */
bool pause_earn(struct pause *, uint64_t bytes);

#endif
