/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_host: one end of a benchmark of flows: a host with addresses and sockets, on a driver of its
 * own (virtio-user: no copy between them) or on a tap. It knows no benchmark: whoever uses it gives the
 * sockets their turn in `work`.
 */
#ifndef APP_BENCH_HOST_H
#define APP_BENCH_HOST_H

#include "app/spec.h"
#include "base/loop.h"
#include "net/join.h"
#include "net/sock.h"
#include "net/stack_nic.h"
#include "net/tcp.h"

struct bench_host_config {
	const char *name; /* of the port */
	const char *port; /* its words */
	const char *addr; /* ADDR/LEN+... */
	const char *cwd, *net;
	uint32_t mtu;
	struct tcp_conf tcp; /* the knobs */
};

struct bench_host {
	struct spec spec;
	struct port *port; /* the driver or the tap; NULL: not open */
	struct stack *stack;
	struct stack_nic *nic;   /* on a driver */
	struct port *stack_port; /* on a tap */
	struct join *join;       /* the same */
	struct sock_table *socks;
	struct loop *loop;
	/* Sockets may be ready, or there was more to do: true if there still is. */
	bool (*work)(void *ctx, nsec_t now);
	void *ctx;
	bool more;
};

/* `loop` and `log` stay the caller's. 0 or -errno; after 0 bench_host_fini. Does not move. */
int bench_host_init(struct bench_host *, const struct bench_host_config *, struct loop *,
	struct log *, struct err *);
void bench_host_fini(struct bench_host *);

bool bench_host_poll(struct bench_host *); /* one turn without the loop; true: something moved */
void bench_host_kick(struct bench_host *); /* a turn from the loop, which arms before it sleeps */
/* Why there is no link, for people; "" if there is. */
const char *bench_host_missing(const struct bench_host *);

#endif
