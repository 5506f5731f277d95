/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr: one address type for both IP versions: 16 bytes, IPv4 as ::ffff:a.b.c.d, so that whatever
 * compares or hashes addresses has one case.
 */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ip_addr {
	uint8_t b[16];
};

static inline struct ip_addr ip_addr4(const void *four)
{
	struct ip_addr a = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};

	memcpy(a.b + 12, four, 4);
	return a;
}

static inline struct ip_addr ip_addr6(const void *sixteen)
{
	struct ip_addr a;

	memcpy(a.b, sixteen, 16);
	return a;
}

static inline bool ip_addr_is4(const struct ip_addr *a)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(a->b, mapped, 12) == 0;
}

static inline bool ip_addr_equal(const struct ip_addr *a, const struct ip_addr *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

/* The unspecified address of either version: all zero, or ::ffff:0.0.0.0. */
static inline bool ip_addr_any(const struct ip_addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->b, zero, 16) == 0 || (ip_addr_is4(a) && memcmp(a->b + 12, zero, 4) == 0);
}

/* IPv4 224/4 and the limited broadcast, IPv6 ff00::/8. */
static inline bool ip_addr_multicast(const struct ip_addr *a)
{
	return ip_addr_is4(a) ? a->b[12] >= 224 : a->b[0] == 0xff;
}

#endif
