/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icmp: ICMP of both versions, and the messages of neighbour discovery. [RFC 792, RFC 4443, RFC 4861]
 */
#ifndef WIRE_ICMP_H
#define WIRE_ICMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ip.h"

#define ICMP_HLEN 8 /* type, code, checksum, four bytes that depend on the type */

#define ICMP4_ECHO_REPLY  0
#define ICMP4_UNREACH     3
#define ICMP4_QUENCH      4 /* ignored [RFC 6633] */
#define ICMP4_REDIRECT    5
#define ICMP4_ECHO        8
#define ICMP4_TIME        11
#define ICMP4_PARAM       12
#define ICMP4_PROTO       2 /* codes of unreach */
#define ICMP4_PORT        3
#define ICMP4_FRAG_NEEDED 4
#define ICMP4_TIME_REASS  1 /* code of time */

#define ICMP6_UNREACH    1
#define ICMP6_TOO_BIG    2
#define ICMP6_TIME       3
#define ICMP6_PARAM      4
#define ICMP6_ECHO       128
#define ICMP6_ECHO_REPLY 129
#define ICMP6_RS         133
#define ICMP6_RA         134
#define ICMP6_NS         135
#define ICMP6_NA         136
#define ICMP6_REDIRECT   137
#define ICMP6_PORT       4 /* code of unreach */
#define ICMP6_TIME_REASS 1
#define ICMP6_NEXT       1 /* codes of param */
#define ICMP6_CHAIN      3 /* the first fragment has not the whole header chain [RFC 7112] */

struct icmp {
	uint8_t type, code;
	uint16_t csum;
	uint32_t rest; /* identifier and number, MTU, pointer, flags */
};

bool icmp_parse(const uint8_t *p, size_t len, struct icmp *);
void icmp_build(const struct icmp *, uint8_t p[ICMP_HLEN]);

/* Options of neighbour discovery that matter to a host. */
#define NDP_SRC_MAC 1
#define NDP_DST_MAC 2
#define NDP_PREFIX  3
#define NDP_MTU     5

#define NDP_PREFIXES 4 /* taken from one advertisement */
#define NDP_ON_LINK  0x80
#define NDP_AUTO     0x40

struct ndp_prefix {
	struct ip_addr prefix;
	uint8_t plen, flags;
	uint32_t valid, preferred; /* seconds, UINT32_MAX: for ever */
};

struct ndp_options {
	const uint8_t *mac; /* source or target link-layer address, NULL: none */
	uint32_t mtu;       /* 0: none */
	unsigned nprefix;
	struct ndp_prefix prefix[NDP_PREFIXES];
};

/* `mac_option`: NDP_SRC_MAC or NDP_DST_MAC. False: a length is 0 or too long: drop the message. */
bool ndp_parse_options(const uint8_t *p, size_t len, uint8_t mac_option, struct ndp_options *);
/* A link-layer address option: 8 bytes. */
void ndp_build_mac(uint8_t *p, uint8_t option, const uint8_t mac[6]);

#endif
