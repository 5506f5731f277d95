/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp: the UDP header. [RFC 768], [RFC 8200 8.1]
 */
#ifndef WIRE_UDP_H
#define WIRE_UDP_H

#include <stdint.h>

#include "wire/bytes.h"

#define UDP_HLEN 8
#define UDP_CSUM 6 /* offset of the checksum */

struct udp {
	uint16_t sport, dport;
	uint16_t len;  /* with the header */
	uint16_t csum; /* 0: none */
};

static inline struct udp udp_parse(const uint8_t p[UDP_HLEN])
{
	return (struct udp){get_be16(p), get_be16(p + 2), get_be16(p + 4), get_be16(p + 6)};
}

static inline void udp_build(const struct udp *u, uint8_t p[UDP_HLEN])
{
	put_be16(p, u->sport);
	put_be16(p + 2, u->dport);
	put_be16(p + 4, u->len);
	put_be16(p + 6, u->csum);
}

#endif
