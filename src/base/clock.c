/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock: the one place that asks the system for the time.
 */
#include "base/clock.h"

#include <time.h>

nsec_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}
