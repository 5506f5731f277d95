/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl: the control socket of a running network: one JSON line asks, one JSON line answers, then the
 * connection ends.
 *
 *	{"argv": ["show", "ports", "--json"], "cwd": "/home/me"}
 *	{"status": 0, "out": "...", "err": ""}
 *
 * The socket is the user's alone (0600); all the same nothing a client does can hold the network up
 *or make it grow: CTL_CLIENTS at once, CTL_REQUEST bytes of request, non-blocking, and who does not
 * finish his request or read his answer within CTL_PATIENCE is dropped.
 */
#ifndef APP_CTL_H
#define APP_CTL_H

#include <stdio.h>

#include "app/net.h"
#include "base/err.h"
#include "port/trace.h"

#define CTL_CLIENTS  32
#define CTL_REQUEST  (64 * 1024) /* bytes: 128 ports with long paths fit */
#define CTL_PATIENCE (10 * NSEC_PER_SEC)

struct ctl_client;

struct ctl {
	struct net *net;
	struct loop_fd listener;
	char path[SPEC_PATH];
	TAILQ_HEAD(, ctl_client) clients;
	unsigned nclients;
	/* A client asks the network to end. */
	void (*stop)(void *ctx);
	void *ctx;
};

/* Listen at `path`; what lies there is removed: the caller has the claim on the folder. */
int ctl_open(struct ctl *, struct net *, const char *path, struct err *);
void ctl_close(struct ctl *);  /* remove the socket, take no more clients */
void ctl_finish(struct ctl *); /* answer who asked for the end, drop all clients */
/* Serve one connected descriptor (owned from now on), as if it had been accepted. */
int ctl_serve(struct ctl *, int fd);

/* For handlers that return CMD_LATER. */
void ctl_later_link(struct ctl_client *, const char *port, nsec_t timeout); /* NSEC_NEVER: none */
void ctl_later_stop(struct ctl_client *);
/* Answer when the trace has all its frames, its time is over, or a port goes; `done` and `ctx` are filled in. */
int ctl_later_trace(
	struct ctl_client *, struct trace_config *, bool as_json, nsec_t timeout, struct err *);

/* The asking side: run words in the network `net`. Status to exit with; `err` has the answer's. */
int ctl_ask(const char *net, int argc, const char *const *argv, const char *cwd, FILE *out,
	struct err *);

#endif
