/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_read: one line of a script into one event. Private to drill_script.c and drill_read.c.
 */
#ifndef TESTS_DRILL_READ_H
#define TESTS_DRILL_READ_H

#include "drill_script.h"

#define READER_DEPTH 8

struct reader {
	struct script *script;
	char *p;             /* what is left of the line */
	const char *defined; /* the name for which #ifdef is true */
	unsigned line;
	unsigned depth; /* of #ifdef */
	bool off[READER_DEPTH + 1];
	struct err *err;
};

/* "FILE:LINE: why: the rest of the line". Returns -EINVAL. */
int reader_bad(struct reader *, const char *why);
/* EV_NONE: nothing to do there. */
int read_event(struct reader *, struct event *);

#endif
