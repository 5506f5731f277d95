/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock: nanoseconds of CLOCK_MONOTONIC. Only the loop and benchmarks ask the clock; everybody else
 * is told the time (loop_now()), so that tests run in virtual time.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

typedef int64_t nsec_t;

#define NSEC_PER_USEC ((nsec_t)1000)
#define NSEC_PER_MSEC ((nsec_t)1000000)
#define NSEC_PER_SEC  ((nsec_t)1000000000)
#define NSEC_NEVER    INT64_MAX

nsec_t clock_now(void);

#endif
