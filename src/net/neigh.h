/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neigh: which Ethernet address an IP address of the link has: one table for ARP and for neighbour
 * discovery. It keeps packets for a neighbour that is being asked for, and decides whom to ask when;
 * the messages themselves are its caller's. [RFC 826, RFC 4861 7.2 - 7.3, RFC 6583]
 *
 * Against floods: the table is capped, entries that were never answered have a smaller cap of their
 * own and go first, each keeps 64 KiB of packets at most and is asked for once a second; an unasked
 * message never makes an entry and never changes the address of one: it makes us ask the old address
 * first.
 */
#ifndef NET_NEIGH_H
#define NET_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "frame/pkt.h"
#include "wire/ip.h"

#define NEIGH_MAX         1024 /* entries */
#define NEIGH_INCOMPLETE  128  /* of these, not answered yet */
#define NEIGH_QUEUE       48 /* packets that wait for one neighbour: a datagram in fragments ... */
#define NEIGH_QUEUE_BYTES (64 * 1024)
#define NEIGH_ASKS        3 /* without an answer: it is not there */
#define NEIGH_ASK_NS      NSEC_PER_SEC
#define NEIGH_REACHABLE   (30 * NSEC_PER_SEC) /* believed so long after an answer */
#define NEIGH_DELAY       (5 * NSEC_PER_SEC)  /* a stale one is used so long before it is asked */

struct neigh_ops {
	/* Ask for `ip`, by multicast, or `mac` itself if that is not NULL. */
	void (*ask)(void *ctx, const struct ip_addr *ip, const uint8_t *mac);
	/* A packet that waited can go; or cannot: `mac` is NULL. The packet is the receiver's. */
	void (*release)(void *ctx, struct pkt *, const struct ip_addr *ip, const uint8_t *mac);
};

struct neigh_counters {
	uint64_t asked, answered, failed, evicted, refused, queue_full, conflicts;
};

struct neigh_table;

/* 0 or -ENOMEM. */
int neigh_new(struct neigh_table **, const uint8_t key[16], const struct neigh_ops *, void *ctx,
	struct err *);
void neigh_free(struct neigh_table *); /* frees packets that wait */

/*
 * The address of `ip`, valid until the next call; or NULL: then `p`, if it is not NULL, is kept until
 * it is known, or given back by ops->release, possibly within the call.
 */
const uint8_t *neigh_resolve(
	struct neigh_table *, const struct ip_addr *ip, struct pkt *p, nsec_t now);

enum neigh_news {
	NEIGH_ASKED_US, /* a request of the neighbour for an address of ours: may make an entry */
	NEIGH_UNASKED,  /* a gratuitous message */
	NEIGH_ANSWER,   /* a reply to us, in form: believed if we asked */
};
/* A message says that `ip` is at `mac`. */
void neigh_learn(struct neigh_table *, const struct ip_addr *ip, const uint8_t mac[6],
	enum neigh_news, nsec_t now);
/* A higher layer knows that packets get through. */
void neigh_confirm(struct neigh_table *, const struct ip_addr *ip, nsec_t now);

nsec_t neigh_deadline(const struct neigh_table *); /* may be early, never late */
void neigh_timer(struct neigh_table *, nsec_t now);

unsigned neigh_count(const struct neigh_table *);
const struct neigh_counters *neigh_counters(const struct neigh_table *);

#endif
