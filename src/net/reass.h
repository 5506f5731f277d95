/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reass: datagrams from their fragments. Fragments are kept as packets and joined by reference; every
 * bound is a cap of its own: bytes in all, bytes of one source, datagrams, fragments of one, time.
 * Any overlap ends the whole datagram, in both versions of IP; an exact duplicate is ignored.
 * [RFC 791 3.2, RFC 815, RFC 8200 4.5, RFC 5722, RFC 8900]
 */
#ifndef NET_REASS_H
#define NET_REASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rand.h"
#include "frame/pkt.h"
#include "wire/ip.h"

#define REASS_BYTES     (1024 * 1024) /* truesize of all fragments */
#define REASS_SOURCE    (256 * 1024)  /* of one source: two whole datagrams of 64 KiB at truesize */
#define REASS_DATAGRAMS 64
#define REASS_FRAGMENTS 64 /* of one datagram: 64 KiB at an MTU of 1280 are 53 */
#define REASS_NS        (15 * NSEC_PER_SEC)

struct reass_key {
	struct ip_addr src, dst;
	uint32_t id;
	uint8_t proto; /* 0 in IPv6, where fragments may disagree */
	uint8_t zero[3];
};

struct reass_frag {
	struct reass_key key;
	uint32_t offset, len; /* of the fragment's payload in the datagram; len > 0 */
	uint32_t at;          /* where the payload begins in the packet */
	bool more;
	uint8_t ecn;
	uint8_t next; /* IPv6: the header behind the fragment header */
	uint32_t
		head_len; /* Ethernet and IP header of the whole datagram: [0, head_len) of the packet */
};

struct reass_counters {
	uint64_t fragments, datagrams, overlaps, duplicates, timeouts, evicted, refused, bad, ecn;
};

/* Of all fragments together. */
struct reass_whole {
	uint8_t ecn;
	uint8_t next; /* as the first one says */
};

struct reass;

int reass_new(
	struct reass **, const uint8_t key[16], uint64_t seed, struct pkt_pool *, struct err *);
void reass_free(struct reass *);

/*
 * Give a fragment in; the packet is reass's from now on. Returns the datagram as one packet if it is
 * complete: the first fragment's Ethernet and IP header as they were, payload behind; the lengths in the header are the caller's to correct.
 */
struct pkt *reass_in(
	struct reass *, struct pkt *, const struct reass_frag *, struct reass_whole *, nsec_t now);

nsec_t reass_deadline(const struct reass *);
/*
 * The next datagram whose time is over, as its first fragment, for an ICMP error: the caller's. NULL:
 * none is left (those without a first fragment say nothing).
 */
struct pkt *reass_timer(struct reass *, nsec_t now);

uint32_t reass_bytes(const struct reass *);
const struct reass_counters *reass_counters(const struct reass *);

#endif
