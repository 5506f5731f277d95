/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp: datagram sockets of a stack. Sends may be super-packets (GSO): many datagrams of one size in
 * one call; receives may be merged ones (GRO). Room for the driver's header is left before each
 * packet. [RFC 768, RFC 8085]
 */
#ifndef NET_UDP_H
#define NET_UDP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "wire/ip.h"

#define UDP_SOCKS  4096 /* of a stack */
#define UDP_RCVBUF (208 * 1024)
#define UDP_SNDBUF (208 * 1024)

struct stack;
struct udp_sock;

struct udp_addr {
	struct ip_addr ip;
	uint16_t port;
};

struct udp_info { /* of a datagram received */
	struct udp_addr from, to;
	uint16_t gso_size; /* not 0: several datagrams of this size, the last may be shorter */
	bool truncated;
	uint8_t tos;
};

#define UDP_PEEK 1

/* NULL: too many, or no memory. */
struct udp_sock *udp_new(struct stack *, void *user);
void udp_close(struct udp_sock *);
/* Address any: all of both versions. Port 0: one is chosen [RFC 6056]. -EADDRINUSE, -EADDRNOTAVAIL. */
int udp_bind(struct udp_sock *, const struct udp_addr *);
/* From now on only `peer`'s datagrams and errors come. -EHOSTUNREACH, -EADDRNOTAVAIL. */
int udp_connect(struct udp_sock *, const struct udp_addr *peer, nsec_t now);
/*
 * One datagram, or with gso_size as many as that makes (at most 128, 65535 bytes with headers).
 * `to` NULL: the peer. Returns the bytes taken; -EAGAIN: the send buffer is full; -EMSGSIZE,
 * -EDESTADDRREQ, -EHOSTUNREACH, -EADDRNOTAVAIL, or a pending error.
 */
ssize_t udp_send(struct udp_sock *, const struct udp_addr *to, const struct iovec *, unsigned niov,
	uint16_t gso_size, nsec_t now);
/*
 * One datagram, or a train if GRO is on. Returns its length, cut to what the pieces hold
 * (info->truncated); -EAGAIN or a pending error.
 */
ssize_t udp_recv(
	struct udp_sock *, const struct iovec *, unsigned niov, struct udp_info *, int flags);

enum udp_option {
	UDPO_GRO,    /* 0, 1 */
	UDPO_RCVBUF, /* bytes of truesize */
	UDPO_SNDBUF,
	UDPO_DF,  /* 1: never fragment, -EMSGSIZE instead */
	UDPO_TOS, /* of what is sent */
	UDPO_HOPS,
	UDPO_REUSE, /* before bind: others with this option may have the port, too */
};
int udp_set(struct udp_sock *, enum udp_option, uint32_t value);

#define UDP_READABLE 1
#define UDP_WRITABLE 2
#define UDP_ERROR    4
unsigned udp_ready(const struct udp_sock *);
int udp_error_take(struct udp_sock *); /* positive errno or 0 */
void *udp_user(const struct udp_sock *);
void udp_names(const struct udp_sock *, struct udp_addr *local, struct udp_addr *peer);
/* Told when the ready bits of a socket may have grown. */
void udp_on_ready(struct stack *, void (*ready)(void *ctx, struct udp_sock *), void *ctx);

#endif
