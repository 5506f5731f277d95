/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iface: the addresses of a host's one interface, which destinations are on its link, and its
 * routers; which source address goes with a destination. Data and lookups only: who sets them, and
 * when, is configuration's, router advertisements' and DHCP's. [RFC 1122 3.3.1, RFC 4861 5.2, RFC 6724]
 */
#ifndef NET_IFACE_H
#define NET_IFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "wire/ip.h"

#define IFACE_ADDRS    16
#define IFACE_ROUTERS  4
#define IFACE_PREFIXES 8 /* on-link without an address of ours */

enum addr_origin {
	ADDR_STATIC,
	ADDR_LINK_LOCAL,
	ADDR_AUTO, /* SLAAC */
	ADDR_DHCP,
};

enum addr_state {
	ADDR_TENTATIVE, /* asking whether somebody has it: only neighbour discovery may know it */
	ADDR_GOOD,
	ADDR_TAKEN, /* somebody has it */
};

struct iface_addr {
	struct ip_addr ip;
	unsigned plen; /* of the link's prefix; 128: none is known. IPv4: 96 + n */
	enum addr_origin origin;
	enum addr_state state;
	nsec_t preferred_until, valid_until; /* NSEC_NEVER: for ever */
	nsec_t dad_at;                       /* the next step of duplicate address detection */
	unsigned dad_left;                   /* announcements still to be made */
};

struct iface_router {
	struct ip_addr ip;
	bool fixed;
	nsec_t until; /* 0: free */
};

struct iface {
	uint8_t mac[6];
	uint32_t mtu; /* of the link; mtu6: of IPv6, if a router said less */
	uint32_t mtu6;
	unsigned naddr;
	struct iface_addr addr[IFACE_ADDRS];
	struct iface_router router[IFACE_ROUTERS]; /* of both versions */
	struct iface_prefix {
		struct ip_addr prefix;
		unsigned plen;
		nsec_t until; /* 0: free */
	} prefix[IFACE_PREFIXES];
};

/* NULL: the table is full. An address that is there already is returned as it is. */
struct iface_addr *iface_add(
	struct iface *, const struct ip_addr *, unsigned plen, enum addr_origin);
void iface_del(struct iface *, struct iface_addr *); /* pointers to others may move */
/* Ours and usable; NULL else. iface_find_any: in any state. */
struct iface_addr *iface_find(struct iface *, const struct ip_addr *);
struct iface_addr *iface_find_any(struct iface *, const struct ip_addr *);
bool iface_is_broadcast(const struct iface *, const struct ip_addr *);
/* A multicast group a host is in without asking: all nodes, and those of its own addresses. */
bool iface_in_group(const struct iface *, const struct ip_addr *);

/* until 0: forget it. False: the table is full. */
bool iface_set_router(struct iface *, const struct ip_addr *, bool fixed, nsec_t until);
bool iface_set_prefix(struct iface *, const struct ip_addr *, unsigned plen, nsec_t until);
bool iface_on_link(const struct iface *, const struct ip_addr *);
/* Whom to give a packet for `dst` to; false: there is no way. */
bool iface_next_hop(
	const struct iface *, const struct ip_addr *dst, struct ip_addr *hop, nsec_t now);
/* The source address for `dst`; false: there is none. */
bool iface_source(const struct iface *, const struct ip_addr *dst, struct ip_addr *src, nsec_t now);

/* fe80:: with the modified EUI-64 of the MAC, or another prefix of 64 bits. [RFC 4291 app. A] */
void iface_eui64(const struct ip_addr *prefix, const uint8_t mac[6], struct ip_addr *);
/* ff02::1:ffXX:XXXX [RFC 4291 2.7.1] */
void ip_solicited_node(const struct ip_addr *, struct ip_addr *);

#endif
