/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net: one network: loop, log, fabric, and the ports it owns. It opens and frees ports by their
 * spec, and tells one listener of link changes and of ports that go. It prints nothing, handles no
 * signal and starts no thread; whoever owns it dispatches its loop.
 */
#ifndef APP_NET_H
#define APP_NET_H

#include <sys/queue.h>

#include "app/rundir.h"
#include "app/spec.h"
#include "base/log.h"
#include "base/loop.h"
#include "fabric/fabric.h"

/* Busy polling after the last frame [us], unless told otherwise. */
#define NET_POLL_US 0

struct net_port {
	struct port *port;
	enum spec_kind kind;
	struct spec spec;        /* as given, with defaults filled in */
	struct impair *impair;   /* NULL: none */
	struct copying *copying; /* of a vhost-user port with copy=on; NULL: none */
	/* plugged in by net_plug: what to call instead of freeing it; else NULL */
	void (*gone)(void *ctx);
	void *gone_ctx;
	TAILQ_ENTRY(net_port) entry;
};

struct net {
	char name[NAME_LEN];
	char rundir[RUNDIR_PATH];
	bool own_rundir;            /* nobody has claimed the folder: we made it, and remove it */
	char origin[RUNDIR_ORIGIN]; /* MAC addresses are made from it */
	struct loop loop;
	struct log log;
	struct fabric *fabric;
	TAILQ_HEAD(, net_port) ports;
	unsigned nports;
	/* A port's link changed, or it is about to go (`gone`). NULL: nobody listens. */
	void (*on_port)(void *ctx, struct net_port *, bool gone);
	void *on_port_ctx;
};

struct net_config {
	const char *name;
	uint32_t poll_us, wait_us, age_sec;
	enum log_level level;
	void (*sink)(void *ctx, enum log_level, const char *tag, const char *text);
	void *sink_ctx;
};

/* A network's name is checked as a port's is; the text says that it is -n's. 0 or -EINVAL. */
int net_name_check(const char *name, struct err *);

void net_config_init(struct net_config *, const char *name); /* the defaults */

/* `net` is big and does not move. 0 or -errno; after 0, net_fini when done. */
int net_init(struct net *, const struct net_config *, struct err *);
void net_fini(struct net *); /* ends all ports, removes their sockets */

/* Open a port by its words; relative paths start at `cwd`. Errors: as spec_parse, and of the port.
 */
int net_add(struct net *, const char *text, const char *cwd, struct err *);
/*
 * Plug in a port of SPEC_DEVICE that the caller opened, on net->loop. `gone` is called when it has been
 * plugged out, by net_del or net_fini; the spec stays the caller's until then.
 */
int net_plug(struct net *, struct port *, const struct spec *, void (*gone)(void *ctx), void *ctx,
	struct err *);
int net_del(struct net *, const char *name, struct err *);
struct net_port *net_find(
	struct net *, const char *name, struct err *); /* NULL: unknown, said so */
struct net_port *net_of_port(struct net *, const struct port *);

/* Why the port has no link, for people: "no front-end is connected", or "" if it has one. */
const char *net_port_missing(const struct net_port *);

#endif
