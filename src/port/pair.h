/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair: two ports back to back in one process, a bounded queue of copied frames each way. For tests
 * and for joining two networks of one process. What is pushed into one end is pulled from the other.
 */
#ifndef PORT_PAIR_H
#define PORT_PAIR_H

#include "port/port.h"

struct pair;

/* Two ports, each taking `depth` frames (1 .. 4096) before it has no room. 0 or -errno. */
int pair_new(struct pair **, const char *name_a, const char *name_b, unsigned depth, struct loop *,
	struct log *, struct err *);
struct port *pair_port(struct pair *, unsigned end /* 0 or 1 */);
void pair_free(struct pair *); /* both ends must be detached */

#endif
