/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_run: one script against one host, in virtual time.
 *
 * Scripts count sequence numbers from each side's initial one; wire numbers begin anywhere. `struct
 * peer` holds the distance for each conversation: theirs is chosen by the seed, ours is learned from
 * the first SYN that the host sends. Timestamps are mapped alike.
 *
 * An event of the script happens at its time, or at once if the segment before it came late. A
 * segment that must go out may come `tolerance` before or after its time, or a tenth of the wait.
 */
#ifndef TESTS_DRILL_RUN_H
#define TESTS_DRILL_RUN_H

#include <stdio.h>

#include "drill_host.h"

struct run_options {
	uint64_t seed;
	enum host_via via;
	nsec_t tolerance;
	bool strict; /* what is sent before the last line must be asked for by some line */
	FILE *trace; /* every event as it happens; NULL: none */
};

#define RUN_TEXT 1000 /* a path, and two segments with all their options */

/* 0: as it should be; -1 with "FILE:LINE: expected ..., got ...". */
int script_run(const struct script *, const struct run_options *, char text[RUN_TEXT]);

#endif
