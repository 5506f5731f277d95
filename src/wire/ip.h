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

struct ipa {
	uint8_t b[16];
};

static inline struct ipa ipa_of4(const uint8_t v4[4])
{
	struct ipa a = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, v4[0], v4[1], v4[2], v4[3]}};

	return a;
}

static inline struct ipa ipa_of4_u32(uint32_t host)
{
	uint8_t b[4];

	put_be32(b, host);
	return ipa_of4(b);
}

static inline struct ipa ipa_of6(const uint8_t v6[16])
{
	struct ipa a;

	memcpy(a.b, v6, 16);
	return a;
}

static inline bool ipa_is4(const struct ipa *a)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	return !memcmp(a->b, mapped, 12);
}

static inline unsigned ipa_version(const struct ipa *a)
{
	return ipa_is4(a) ? 4 : 6;
}

/* The four bytes of an IPv4 address. */
static inline const uint8_t *ipa_v4(const struct ipa *a)
{
	return a->b + 12;
}

static inline uint32_t ipa_u32(const struct ipa *a)
{
	return get_be32(a->b + 12);
}

static inline bool ipa_eq(const struct ipa *a, const struct ipa *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The unspecified address of either version: 0.0.0.0 or :: */
static inline bool ipa_is_any(const struct ipa *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->b, zero, 16) || (ipa_is4(a) && !ipa_u32(a));
}

/* Is not a number of one host: multicast, or the limited broadcast. */
static inline bool ipa_is_multicast(const struct ipa *a)
{
	return ipa_is4(a) ? a->b[12] >= 224 && (a->b[12] < 240 || ipa_u32(a) == UINT32_MAX)
			  : a->b[0] == 0xff;
}

static inline bool ipa_is_link_local6(const struct ipa *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/*
 * May a packet from the wire come from here? Not from multicast, broadcast, class E, 0/8, loopback,
 * or a mapped address in IPv6. The unspecified address is a martian, too: DHCP and DAD ask first.
 * [RFC 1122 3.2.1.3], [RFC 4291 2.5.3, 2.7]
 */
bool ipa_is_martian_source(const struct ipa *);

/* Do the first `plen` bits agree? An IPv4 prefix of length n counts as 96 + n. */
bool ipa_in(const struct ipa *, const struct ipa *prefix, unsigned plen);

/* The Ethernet address of a multicast IP address. [RFC 1112 6.4], [RFC 2464 7] */
void ipa_multicast_mac(const struct ipa *, uint8_t mac[6]);

#define IPA_TEXT 46
/* Dotted decimal or RFC 4291 text, as inet_pton takes it; false if it is neither. */
bool ipa_parse_text(const char *, struct ipa *);
/* "ADDRESS/LENGTH"; without a length it is one address. *plen counts from the top: 96 + n in IPv4. */
bool ipa_parse_prefix(const char *, struct ipa *, unsigned *plen);
void ipa_build_text(const struct ipa *, char text[IPA_TEXT]);

#endif
