/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric: the network of ports: ready list, runs, flood, waiting records. It knows no concrete port.
 *
 * A turn: take the first ready queue, pull a burst, learn each source, cut the burst into runs of
 * neighbours with the same single destination, push each run (or flood), flush the receivers touched,
 * settle. A queue that lent nothing is polled for poll_us more, then armed.
 *
 * A full receiver makes its single sender wait (see base/limits.h for the budget); what was not taken
 * goes back on the sender's ring. Floods never wait.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include "base/loop.h"
#include "port/port.h"

struct fabric;

struct fabric_config {
	uint32_t poll_us; /* busy polling after the last frame, 0: none */
	uint32_t wait_us; /* pause of a sender for a full receiver at a time, 0: never wait */
	uint32_t age_sec;
	uint64_t seed;
};

int fabric_new(
	struct fabric **, const struct fabric_config *, struct loop *, struct log *, struct err *);
void fabric_free(struct fabric *); /* all ports must be detached */

/* The port's memory stays its owner's. Errors: EEXIST name or MAC taken, ENOSPC PORTS_MAX. */
int fabric_attach(struct fabric *, struct port *, struct err *);
void fabric_detach(struct fabric *, struct port *);
struct port *fabric_find(struct fabric *, const char *name); /* NULL: none */
struct port *fabric_first(struct fabric *);                  /* walk with TAILQ_NEXT(port, entry) */
struct port *fabric_port(struct fabric *, unsigned index);   /* NULL: none */
const struct fdb *fabric_fdb(const struct fabric *);

/* Told of link changes after the fabric has acted on them. One listener. */
void fabric_on_link(struct fabric *, void (*fn)(void *ctx, struct port *), void *ctx);

struct fabric_stats {
	uint64_t turns, bursts, frames, floods, waits, wait_timeouts, polls_empty;
};
void fabric_get_stats(const struct fabric *, struct fabric_stats *);

#endif
