/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp: the layout of the TCP header and its flags. Options are the engine's. [RFC 9293 3.1]
 */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include <stdint.h>

#include "wire/bytes.h"

#define TCP_HLEN     20
#define TCP_HLEN_MAX 60
#define TCP_CSUM     16 /* offset of the checksum */

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20
#define TCP_ECE 0x40
#define TCP_CWR 0x80

struct tcp_hdr {
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint8_t hlen, flags; /* hlen: bytes, with options */
	uint16_t wnd, csum, urg;
};

static inline struct tcp_hdr tcp_hdr_parse(const uint8_t p[TCP_HLEN])
{
	return (struct tcp_hdr){get_be16(p), get_be16(p + 2), get_be32(p + 4), get_be32(p + 8),
		(uint8_t)((p[12] >> 4) * 4), p[13], get_be16(p + 14), get_be16(p + 16),
		get_be16(p + 18)};
}

static inline void tcp_hdr_build(const struct tcp_hdr *t, uint8_t p[TCP_HLEN])
{
	put_be16(p, t->sport);
	put_be16(p + 2, t->dport);
	put_be32(p + 4, t->seq);
	put_be32(p + 8, t->ack);
	p[12] = (uint8_t)(t->hlen / 4 << 4);
	p[13] = t->flags;
	put_be16(p + 14, t->wnd);
	put_be16(p + 16, t->csum);
	put_be16(p + 18, t->urg);
}

#endif
