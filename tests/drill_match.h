/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_match: script numbers and wire numbers, and whether a segment is the one that was expected.
 */
#ifndef TESTS_DRILL_MATCH_H
#define TESTS_DRILL_MATCH_H

#include "drill_script.h"

struct peer {
	uint16_t lport, rport;
	uint32_t their_isn, our_isn; /* wire number of script number 0 */
	bool our_isn_known;
	uint32_t ts_base; /* wire value of the host's timestamp 0 of the script */
	bool ts_known;
};

/* A segment of the script that comes in, in wire numbers. */
void seg_to_wire(const struct peer *, const struct seg *script, struct seg *wire);
/* A segment that went out, in script numbers. */
void seg_to_script(const struct peer *, const struct seg *wire, struct seg *script);
/* NULL: it is; else the name of the first thing that differs. Learns the timestamp base. */
const char *seg_differs(struct peer *, const struct seg *expected, const struct seg *got);

#endif
