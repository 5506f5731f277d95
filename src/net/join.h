/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join: a wire between two ports, without a switch: bursts go from each to the other. How a host
 * drives a tap or a driver of its own.
 */
#ifndef NET_JOIN_H
#define NET_JOIN_H

#include "port/port.h"

struct join;

/* Attaches to both ports' events; they stay the caller's and must live longer. 0 or -ENOMEM. */
int join_new(struct join **, struct port *a, struct port *b, struct loop *, struct err *);
void join_free(struct join *); /* detaches; NULL is fine */
/* Called when the link of one of the two changed. */
void join_on_link(struct join *, void (*link)(void *ctx, struct port *), void *ctx);

#endif
