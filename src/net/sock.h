/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock: sockets by number over a stack: TCP and UDP, IPv4 and IPv6, never blocking. Numbers are small
 * and the lowest free one is given, as descriptors are. What changed is told by a list of ready
 * sockets (edge), and asked by sock_ready (level).
 *
 * All functions return 0 or a value, or -errno with the meaning it has for sockets of POSIX. Whoever
 * called one lets the stack send afterwards (stack_port_kick).
 */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/stack.h"
#include "net/udp.h"

#define SOCKS_MAX 262144 /* numbers */

enum sock_kind {
	SOCK_KIND_NONE,
	SOCK_KIND_TCP,
	SOCK_KIND_UDP,
};

#define SOCK_IN  1  /* data, the peer's end, or a connection to accept */
#define SOCK_OUT 4  /* room, connected */
#define SOCK_ERR 8  /* SOCKO_ERROR tells */
#define SOCK_HUP 16 /* nothing more, either way */

#define SOCK_MORE 1
#define SOCK_PEEK 2

struct sock_table;

int sock_table_new(struct sock_table **, struct stack *, struct err *);
void sock_table_free(struct sock_table *, nsec_t now); /* resets what is open */

/* What happened since: call after the stack had input or time; fills the ready list. */
void sock_work(struct sock_table *, nsec_t now);
/* The next socket whose ready bits grew; -EAGAIN: none. *user: of sock_set_user. */
int sock_next_ready(struct sock_table *, unsigned *ready, void **user);

int sock_open(struct sock_table *, enum sock_kind);
int sock_bind(struct sock_table *, int s, const struct udp_addr *);
/* 0 (UDP), -EINPROGRESS (TCP: SOCK_OUT or SOCK_ERR will tell). */
int sock_connect(struct sock_table *, int s, const struct udp_addr *, nsec_t now);
int sock_listen(struct sock_table *, int s, unsigned backlog);
/* The peer's address, too, if not NULL. -EAGAIN: nobody waits. */
int sock_accept(struct sock_table *, int s, struct udp_addr *peer, nsec_t now);
/* `to` NULL: the peer. `gso` (UDP): size of each datagram of a train, 0: one datagram. */
ssize_t sock_send(struct sock_table *, int s, const struct iovec *, unsigned niov, int flags,
	const struct udp_addr *to, uint16_t gso, nsec_t now);
/* `info` may be NULL; of TCP only from, to are set. */
ssize_t sock_recv(struct sock_table *, int s, const struct iovec *, unsigned niov, int flags,
	struct udp_info *info, nsec_t now);
/* TCP, without a copy: tcp_recv_lend, tcp_recv_done. */
ssize_t sock_recv_lend(struct sock_table *, int s, struct iovec *, unsigned *niov, nsec_t now);
int sock_recv_done(struct sock_table *, int s, size_t n, nsec_t now);
/* SHUT_WR, SHUT_RDWR; SHUT_RD has no meaning on the wire and does nothing. */
int sock_shutdown(struct sock_table *, int s, int how, nsec_t now);
int sock_close(struct sock_table *, int s, nsec_t now);

enum sock_option {
	SOCKO_ERROR, /* get: positive errno, cleared */
	SOCKO_SNDBUF,
	SOCKO_RCVBUF,
	SOCKO_REUSE,
	SOCKO_LINGER, /* seconds, -1: off; 0: close resets */
	SOCKO_NODELAY,
	SOCKO_CORK,
	SOCKO_KEEPALIVE,
	SOCKO_KEEPIDLE,
	SOCKO_KEEPINTVL,
	SOCKO_KEEPCNT,
	SOCKO_USER_TIMEOUT,
	SOCKO_QUICKACK,
	SOCKO_MAXSEG,
	SOCKO_UDP_GRO,
	SOCKO_DF,
	SOCKO_TOS,
	SOCKO_HOPS,
};
int sock_set(struct sock_table *, int s, enum sock_option, int value, nsec_t now);
int sock_get(struct sock_table *, int s, enum sock_option, int *value);
int sock_names(struct sock_table *, int s, struct udp_addr *local, struct udp_addr *peer);
int sock_ready(struct sock_table *, int s); /* the level of now */
int sock_set_user(struct sock_table *, int s, void *user);
/* The connection below a TCP socket, for tcp_stat; NULL: it is none. */
struct tcp *sock_tcp(struct sock_table *, int s);

#endif
