/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip4: the IPv4 header. [RFC 791]
 */
#ifndef WIRE_IP4_H
#define WIRE_IP4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IP4_HLEN     20
#define IP4_HLEN_MAX 60
#define IP4_DF       0x4000
#define IP4_MF       0x2000
#define IP4_OFFSET   0x1fff /* in units of 8 bytes */

struct ip4 {
	uint8_t tos, ttl, proto;
	uint16_t id, frag; /* frag: IP4_DF, IP4_MF, offset */
	uint16_t len;      /* total, with the header */
	uint8_t hlen;      /* parse only; built headers have no options */
	uint8_t src[4], dst[4];
};

/*
 * False: not `len` bytes of an IPv4 header whose checksum and lengths are right within itself. Whether
 * ip4.len bytes are there is the caller's to check: this sees the head only.
 */
bool ip4_parse(const uint8_t *p, size_t len, struct ip4 *);
void ip4_build(const struct ip4 *, uint8_t p[IP4_HLEN]); /* with its checksum */
/* The checksum anew, after a field was changed; the length is taken from the header. */
void ip4_csum(uint8_t *p);
/* Does the header hold a source route? Such packets are not accepted. [RFC 1122 3.2.1.8] */
bool ip4_source_routed(const uint8_t *p, unsigned hlen);

#endif
