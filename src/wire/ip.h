/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip: one address type for both versions of IP. An IPv4 address is kept as the IPv4-mapped IPv6
 * address ::ffff:a.b.c.d [RFC 4291 2.5.5.2], so that tables, sockets and demultiplexing are written
 * once. A mapped address never goes onto, nor is it accepted from, an IPv6 wire.
 */
#ifndef WIRE_IP_H
#define WIRE_IP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/bytes.h"

#define IP_PROTO_ICMP  1
#define IP_PROTO_TCP   6
#define IP_PROTO_UDP   17
#define IP_PROTO_ICMP6 58

struct ip_addr {
	uint8_t b[16];
};

static inline struct ip_addr ip_addr4(const void *four)
{
	struct ip_addr a = {{[10] = 0xff, 0xff}};

	memcpy(a.b + 12, four, 4);
	return a;
}

static inline struct ip_addr ip_addr4_u32(uint32_t host)
{
	uint8_t b[4];

	put_be32(b, host);
	return ip_addr4(b);
}

static inline struct ip_addr ip_addr6(const void *sixteen)
{
	struct ip_addr a;

	memcpy(a.b, sixteen, 16);
	return a;
}

static inline bool ip_addr_is4(const struct ip_addr *a)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	return !memcmp(a->b, mapped, 12);
}

static inline unsigned ip_addr_version(const struct ip_addr *a)
{
	return ip_addr_is4(a) ? 4 : 6;
}

/* The four bytes of an IPv4 address. */
static inline const uint8_t *ip_addr_v4(const struct ip_addr *a)
{
	return a->b + 12;
}

static inline uint32_t ip_addr_u32(const struct ip_addr *a)
{
	return get_be32(a->b + 12);
}

static inline bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The unspecified address of either version: 0.0.0.0 or :: */
static inline bool ip_addr_any(const struct ip_addr *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->b, zero, 16) || (ip_addr_is4(a) && !ip_addr_u32(a));
}

/* Not an address of one host: IPv4 224/4 and above, with the limited broadcast; IPv6 ff00::/8. */
static inline bool ip_addr_multicast(const struct ip_addr *a)
{
	return ip_addr_is4(a) ? a->b[12] >= 224 : a->b[0] == 0xff;
}

static inline bool ip_addr_link_local6(const struct ip_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/*
 * May a packet from the wire come from here? Not from multicast, broadcast, class E, 0/8, loopback,
 * or a mapped address in IPv6. The unspecified address is a martian, too: DHCP and DAD ask first.
 * [RFC 1122 3.2.1.3], [RFC 4291 2.5.3, 2.7]
 */
bool ip_addr_martian(const struct ip_addr *);

/* Do the first `plen` bits agree? An IPv4 prefix of length n counts as 96 + n. */
bool ip_addr_in(const struct ip_addr *, const struct ip_addr *prefix, unsigned plen);

/* The Ethernet address of a multicast IP address. [RFC 1112 6.4], [RFC 2464 7] */
void ip_addr_multicast_mac(const struct ip_addr *, uint8_t mac[6]);

#define IP_ADDR_TEXT 46
/* Dotted decimal or RFC 4291 text, as inet_pton takes it; false if it is neither. */
bool ip_addr_parse_text(const char *, struct ip_addr *);
/* "ADDRESS/LENGTH"; without a length it is one address. *plen counts from the top: 96 + n in IPv4. */
bool ip_addr_parse_prefix(const char *, struct ip_addr *, unsigned *plen);
void ip_addr_build_text(const struct ip_addr *, char text[IP_ADDR_TEXT]);

#endif
