/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_port: a host as a port of a network: what the network pushes is its input, what it sends is
 * pulled. It has the loop's time and one timer of the loop. With net/join.h it drives another port,
 * a driver or a tap, instead of being switched.
 */
#ifndef NET_STACK_PORT_H
#define NET_STACK_PORT_H

#include "net/stack.h"
#include "port/port.h"

/* `stack` stays the caller's, and must live longer. */
int stack_port_new(struct port **, const char *name, struct stack *, struct loop *, struct log *,
	struct err *);
void stack_port_free(struct port *); /* NULL is fine */
/*
 * A socket was used: there may be something to send. Cheap; the event comes from the loop. Also for
 * the stack's timers.
 */
void stack_port_kick(struct port *);
/* Called after every input and timer, within the loop: sockets may be ready. */
void stack_port_on_work(struct port *, void (*work)(void *ctx), void *ctx);

#endif
