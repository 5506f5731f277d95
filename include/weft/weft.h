/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft: a virtual network in user space, as a library.
 *
 *	struct weft_net *net;
 *	char err[WEFT_ERR];
 *
 *	if (weft_net_new(&net, "lab", err) || weft_net_add(net, "vhost-user:/tmp/a.sock,mtu=9000", err))
 *		fail(err);
 *	while (!weft_net_dispatch(net, 1))
 *		;
 *
 * The host drives: it either calls weft_net_dispatch() with waiting, or polls weft_net_fd() for reading,
 * at most for weft_net_timeout_ns(), and dispatches without waiting. The library prints nothing, installs
 * no signal handler and never ends the process. It runs in the caller's thread, but for one thing: a
 * descriptor of a kind that vhost-user does not know, sent by a peer, is closed by a thread, one for each
 * port that has such. It has all signals blocked, and may outlive the network: such a close() waits as
 * long as the peer likes. A network belongs to one thread at a time; several networks are independent.
 *
 * Functions that can fail return 0 or a negative errno and fill `err` (WEFT_ERR bytes, or NULL) with one
 * line that names what is wrong and what would be right.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))
#define WEFT_ERR 320

struct weft_net;

/* "0.1.0" */
WEFT_API const char *weft_version(void);

/* A network without ports. `name`: 1 to 31 of [A-Za-z0-9._-]; addresses of ports are made from it. */
WEFT_API int weft_net_new(struct weft_net **, const char *name, char *err);
/* Ends all ports and removes their sockets; NULL is fine. */
WEFT_API void weft_net_free(struct weft_net *);

/* The words of weft(1): "vhost-user:/path,mtu=9000", "tap:tap0,ip=10.0.0.1/24". */
WEFT_API int weft_net_add(struct weft_net *, const char *port, char *err);
WEFT_API int weft_net_del(struct weft_net *, const char *port_name, char *err);

/* Readable when there is work. The network's; do not close it. */
WEFT_API int weft_net_fd(const struct weft_net *);
/* How long may be slept: nanoseconds, 0: not at all, -1: until weft_net_fd() is readable. */
WEFT_API int64_t weft_net_timeout_ns(const struct weft_net *);
/* Do what is to be done; `wait` not 0: sleep until there is something. 0 or a negative errno. */
WEFT_API int weft_net_dispatch(struct weft_net *, int wait);

/*
 * What the network is and does, as JSON, like `weft show --json`; `what` one of its topics ("ports",
 * "stats", "drops", "fdb"), NULL for all. Free it with free(); NULL: unknown topic or no memory.
 */
WEFT_API char *weft_net_show(struct weft_net *, const char *what);

/* Lines for the host's log: level 0 error, 1 warning, 2 information. NULL: none, the default. */
WEFT_API void weft_net_log(struct weft_net *, int level,
	void (*sink)(void *ctx, int level, const char *tag, const char *text), void *ctx);

/*
 * A guest that truncates its memory file makes the next access to it raise SIGBUS, which ends a process
 * without a handler. This installs one that breaks only the guest's own device and passes on every
 * other SIGBUS. Process-wide, so only on demand.
 */
WEFT_API int weft_sigbus_install(void);

#ifdef __cplusplus
}
#endif

#include <weft/dev.h>  /* a device for a virtual machine monitor */
#include <weft/nic.h>  /* a network card for a plain process */
#include <weft/host.h> /* a host with sockets in a plain process */

#endif
