/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_int: the inside of a host, for the files of the stack that share it: stack*.c, arp, ndp, icmp,
 * udp, dhcpc. Nobody else includes it.
 */
#ifndef NET_STACK_INT_H
#define NET_STACK_INT_H

#include "base/rand.h"
#include "frame/gro.h"
#include "frame/offload.h"
#include "net/dhcpc.h"
#include "net/icmp.h"
#include "net/iface.h"
#include "net/neigh.h"
#include "net/pmtu.h"
#include "net/reass.h"
#include "net/stack.h"
#include "net/udp_int.h"
#include "wire/csum.h"
#include "wire/hdrs.h"
#include "wire/ip4.h"
#include "wire/ip6.h"

#define STACK_OUT_MAX 1024 /* packets that wait for the link to take them */
#define STACK_IDS     1024 /* counters of IPv4 identifications, hashed by destination */
#define STACK_DNS     3
#define RX_REASS_IOV  2048 /* pieces of a reassembled datagram */

/* A received frame on its way up. */
struct rx {
	struct frame *f; /* private: head and array of pieces are the stack's */
	struct hdrs h;
	struct ip_addr src, dst;
	uint8_t proto, tos, hops;
	bool group;    /* to more than one host, by either layer */
	bool self;     /* from ourselves */
	bool rebuilt;  /* of fragments, or of one */
	bool good;     /* accepted so far */
	bool fragment; /* as reass_frag says */
	uint16_t l4;   /* offset of the upper header */
	uint32_t l4_len;
	struct reass_frag frag;
};

/* What an IP header to be built says. */
struct ip_meta {
	struct ip_addr src, dst;
	uint8_t proto, tos, hops; /* hops 0: the default, 64 */
	bool df;
	bool fragment; /* cut it, if it exceeds the MTU */
	uint32_t flow;
};

struct stack {
	struct stack_conf conf;
	struct iface face;
	struct rand rand;
	struct pkt_pool *pkts;
	struct keep_rule keep;
	struct neigh_table *neigh;
	struct reass *reass;
	struct pmtu_cache pmtu;
	struct icmp_limits limits;
	struct udp_table udp;
	struct dhcpc dhcp;
	struct tcp_host *tcp;
	uint32_t ip_id[STACK_IDS];

	struct pkt_list out, self; /* to the link; to ourselves */
	unsigned nout, nself;

	/* router solicitation and address timers */
	unsigned rs_left;
	nsec_t rs_at;
	nsec_t addr_at; /* earliest of all addresses */
	struct ip_addr dns[STACK_DNS];
	unsigned ndns;

	void (*pong)(void *, const struct ip_addr *, uint16_t, uint16_t, uint32_t);
	void *pong_ctx;

	/* one burst on its way up */
	nsec_t now; /* of the call in progress: for callbacks */
	struct burst *rx;
	struct rx meta[BURST_FRAMES];
	struct gro *gro;
	const struct hdrs *hdrs[BURST_FRAMES];
	uint8_t kind[BURST_FRAMES];
	/* one packet of our own on its way up */
	struct frame_head own_head;
	struct iovec own_iov[RX_REASS_IOV];

	/* memory of its own */
	struct chunk_pool chunks;
	struct pkt_pool own_pkts;
	bool owns_pool;

	struct stack_counters stat;
};

/* stack_in.c */
/* Take a packet of ours (self) or rebuilt of fragments, whole Ethernet frame, as if received; it is freed. */
void stack_in_pkt(struct stack *, struct pkt *, bool self, nsec_t now);
/* The folded sum of [from, from + len) of a frame. */
uint16_t frame_sum(const struct frame *, uint32_t from, uint32_t len, const struct csum *start);

/* stack_out.c */
/* A packet with room for all headers before `len` bytes at p->head; NULL: counted. */
struct pkt *stack_pkt(struct stack *, const struct ip_addr *dst, uint32_t len);
/* The same with room for a driver's header, whether it asked for it or not: of TCP. */
struct pkt *stack_pkt_roomy(struct stack *, const struct ip_addr *dst, uint32_t len);
/*
 * As stack_pkt, with `hlen` bytes at p->head and `len` bytes behind them, wherever they are: in
 * to[0 .. *nto), at most PKT_FRAGS pieces.
 */
struct pkt *stack_pkt_long(struct stack *, const struct ip_addr *dst, uint32_t hlen, uint32_t len,
	struct iovec *to, unsigned *nto);
/* The headroom that stack_pkt leaves before the upper header. */
uint32_t stack_room(const struct stack *, bool ip4);
/*
 * Put the IP header before the packet, whose head begins with the upper header, and send it; offload
 * fields count from there. 0 or -EHOSTUNREACH, -EMSGSIZE; the packet is gone in any case.
 */
int stack_send(struct stack *, struct pkt *, const struct ip_meta *, nsec_t now);
/* Put an Ethernet header before it and queue it for the link. */
void stack_send_eth(struct stack *, struct pkt *, const uint8_t mac[6], uint16_t type);
/* ops of the neighbour table */
void stack_release(void *stack, struct pkt *, const struct ip_addr *, const uint8_t *mac);
uint16_t stack_ip_id(struct stack *, const struct ip_addr *dst);
/* The pseudo header's sum for a packet of ours; complete: ready for NEEDS_CSUM. */
uint16_t ip_pseudo(
	const struct ip_addr *src, const struct ip_addr *dst, uint8_t proto, uint32_t len);

/* arp.c */
void arp_in(struct stack *, struct rx *, nsec_t now);
void arp_ask(struct stack *, const struct ip_addr *, const uint8_t *mac);
void arp_announce(struct stack *, const struct ip_addr *);

/* ndp.c */
void ndp_in(struct stack *, struct rx *, nsec_t now);
void ndp_ask(struct stack *, const struct ip_addr *, const uint8_t *mac);
void ndp_timer(struct stack *, nsec_t now);
nsec_t ndp_deadline(const struct stack *);
void ndp_start(struct stack *, nsec_t now); /* ask for routers */

/* stack_addr.c */
/* A new address: IPv6 ones are asked for first. */
struct iface_addr *stack_addr_new(
	struct stack *, const struct ip_addr *, unsigned plen, enum addr_origin, nsec_t now);
void stack_addr_conflict(struct stack *, struct iface_addr *, nsec_t now);
void stack_addr_timer(struct stack *, nsec_t now);
void stack_addr_retime(struct stack *);

/* icmp.c */
void icmp_in(struct stack *, struct rx *, nsec_t now);
/* An error about a received frame, by the rules of when not. `type`, `code`, `rest` of its version. */
void icmp_error(
	struct stack *, const struct rx *, uint8_t type, uint8_t code, uint32_t rest, nsec_t now);

/* udp.c */
void udp_in(struct stack *, struct rx *, nsec_t now);
bool udp_wants_gro(struct stack *, const struct rx *);

/* dhcpc.c */
void dhcpc_in(struct stack *, const struct rx *, nsec_t now);

/* stack_tcp.c */
int stack_tcp_new(struct stack *, struct err *);
void stack_tcp_free(struct stack *);
void stack_tcp_in(struct stack *, struct rx *, nsec_t now);
/* Make packets of what the engine has, until some are in the queue or it has nothing. */
void stack_tcp_out(struct stack *, nsec_t now);
/* An ICMP error, or no way: about a segment of ours, its first 8 bytes at `tcp`. */
enum icmp_kind { ICMP_SOFT, ICMP_HARD, ICMP_BIG };
void stack_tcp_error(struct stack *, const struct ip_addr *src, const struct ip_addr *dst,
	const uint8_t *tcp, enum icmp_kind, int err, uint32_t mtu, nsec_t now);
void stack_tcp_timer(struct stack *, nsec_t now);
nsec_t stack_tcp_deadline(const struct stack *);

/* udp.c: likewise; true: it is about a socket of ours */
bool udp_error(struct stack *, const struct ip_addr *src, const struct ip_addr *dst,
	const uint8_t *udp, enum icmp_kind, int err);

#endif
