/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack: a host: everything between Ethernet frames and sockets, IPv4 and IPv6 together. It is a
 * function of (state, frames, now): no clock, no I/O; net/stack_port.h makes a port of it.
 *
 *	stack_in(frames)  -> neighbours, reassembly, ICMP, UDP sockets, the TCP engine
 *	stack_out()       <- one packet after the other, complete with its Ethernet header
 *	stack_timer()     when stack_deadline() has come
 *
 * After every stack_in, stack_timer or call of a socket take stack_out() until it gives NULL.
 * [RFC 1122, RFC 8504]
 */
#ifndef NET_STACK_H
#define NET_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "frame/pkt.h"
#include "wire/ip.h"

struct tcp_host;
struct tcp_conf;

struct stack_conf {
	uint8_t mac[6];
	uint32_t mtu;      /* of the link [bytes of an IP datagram]; 0: 1500 */
	uint16_t headroom; /* free bytes before the Ethernet header: room for the driver's (S2) */
	uint8_t secret[32];
	uint64_t seed;
	struct pkt_pool *pool; /* packets sent and kept; NULL: one of its own, of `memory` bytes */
	size_t memory;         /* 0: 32 MiB */
	bool no_ip6;           /* no link-local address, no router asked */
	bool no_auto;          /* no addresses from router advertisements */
	bool dhcp;             /* ask for an IPv4 address */
	bool no_dad;           /* IPv6 addresses are used at once: tests */
	bool no_gro;
	const struct tcp_conf *tcp; /* its pool, secret, seed, mtu are filled in; NULL: defaults */
};

#define STACK_COUNTERS(X)                                                                          \
	X(in_frames)                                                                               \
	X(in_other)   /* not for this host's Ethernet address, or a VLAN's */                      \
	X(in_bad)     /* malformed */                                                              \
	X(in_csum)    /* a checksum is wrong */                                                    \
	X(in_martian) /* a source address nobody can have, or ours */                              \
	X(in_not_ours)                                                                             \
	X(in_no_proto)                                                                             \
	X(in_no_memory)                                                                            \
	X(in_merged) /* frames that went into another one (GRO) */                                 \
	X(out_frames)                                                                              \
	X(out_no_route)                                                                            \
	X(out_no_memory)                                                                           \
	X(out_unreachable) /* the neighbour does not answer */                                     \
	X(out_full)        /* the queue to the link */                                             \
	X(out_fragments)                                                                           \
	X(echo_replies)                                                                            \
	X(icmp_errors)  /* sent */                                                                 \
	X(icmp_limited) /* not sent: too many */                                                   \
	X(icmp_in)                                                                                 \
	X(icmp_ignored) /* not about anything of ours, or not credible */                          \
	X(dad_conflicts)                                                                           \
	X(ra_in)                                                                                   \
	X(ra_full) /* a router, prefix or address there is no room for */                          \
	X(nd_bad)                                                                                  \
	X(dhcp_in)                                                                                 \
	X(udp_in)                                                                                  \
	X(udp_no_port)                                                                             \
	X(udp_full)                                                                                \
	X(udp_out)                                                                                 \
	X(udp_waits) /* a send found its buffer full */

struct stack_counters {
#define X(name) uint64_t name;
	STACK_COUNTERS(X)
#undef X
};

struct stack;

int stack_new(struct stack **, const struct stack_conf *, nsec_t now, struct err *);
void stack_free(struct stack *); /* NULL is fine; its packets have come back */

/* ---- frames ---- */

/* Frames lent for the call; checked (offload_check), unchanged afterwards. */
void stack_in(struct stack *, const struct frame *, unsigned n, nsec_t now);
/* The next packet for the link, the caller's; NULL: none now. */
struct pkt *stack_out(struct stack *, nsec_t now);
nsec_t stack_deadline(const struct stack *); /* may be early, never late */
void stack_timer(struct stack *, nsec_t now);
/* The link came up: ask for routers and addresses again. */
void stack_link_up(struct stack *, nsec_t now);
void stack_set_mtu(struct stack *, uint32_t mtu);

/* ---- addresses ---- */

/* An address of either version with its prefix length: 96 + n in IPv4. -ENOSPC, -EINVAL. */
int stack_add_addr(struct stack *, const struct ip_addr *, unsigned plen, nsec_t now, struct err *);
int stack_add_gateway(struct stack *, const struct ip_addr *, struct err *);
/* The first usable address of a version that is not link-local; false: none (yet). */
bool stack_addr(const struct stack *, unsigned version, struct ip_addr *);
bool stack_link_local(const struct stack *, struct ip_addr *);
/* Source address and path MTU for a destination; -EHOSTUNREACH, -EADDRNOTAVAIL. */
int stack_route(
	struct stack *, const struct ip_addr *dst, struct ip_addr *src, uint32_t *mtu, nsec_t now);
/* A DHCP lease's or router's name servers; how many of max. */
unsigned stack_dns(const struct stack *, struct ip_addr *, unsigned max);

/* ---- ping ---- */

/* One echo request with `len` bytes of payload; the reply, if any, comes by stack_echo_reply. */
int stack_ping(struct stack *, const struct ip_addr *dst, uint16_t id, uint16_t seq, uint32_t len,
	nsec_t now);
void stack_on_pong(struct stack *,
	void (*pong)(
		void *ctx, const struct ip_addr *from, uint16_t id, uint16_t seq, uint32_t len),
	void *ctx);

struct tcp_host *stack_tcp(struct stack *);
struct pkt_pool *stack_pkts(struct stack *);
const uint8_t *stack_mac(const struct stack *);
const struct stack_counters *stack_counters(const struct stack *);

#endif
