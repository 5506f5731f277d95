/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip4: the IPv4 header to and from its bytes. [RFC 791]
 */
#include "wire/ip4.h"

#include "wire/bytes.h"
#include "wire/csum.h"

#define OPT_END  0
#define OPT_NOP  1
#define OPT_LSRR 131
#define OPT_SSRR 137

static uint16_t header_sum(const uint8_t *p, unsigned hlen)
{
	struct csum c = {0};

	csum_piece(&c, p, hlen);
	return csum_end(&c);
}

bool ip4_parse(const uint8_t *p, size_t len, struct ip4 *h)
{
	if (len < IP4_HLEN || p[0] >> 4 != 4)
		return false;
	h->hlen = (uint8_t)((p[0] & 15) * 4);
	if (h->hlen < IP4_HLEN || h->hlen > len || header_sum(p, h->hlen))
		return false;
	h->tos = p[1];
	h->len = get_be16(p + 2);
	h->id = get_be16(p + 4);
	h->frag = get_be16(p + 6);
	h->ttl = p[8];
	h->proto = p[9];
	memcpy(h->src, p + 12, 4);
	memcpy(h->dst, p + 16, 4);
	return h->len >= h->hlen;
}

void ip4_csum(uint8_t *p)
{
	put_be16(p + 10, 0);
	put_be16(p + 10, header_sum(p, (p[0] & 15u) * 4));
}

void ip4_build(const struct ip4 *h, uint8_t p[IP4_HLEN])
{
	p[0] = 0x45;
	p[1] = h->tos;
	put_be16(p + 2, h->len);
	put_be16(p + 4, h->id);
	put_be16(p + 6, h->frag);
	p[8] = h->ttl;
	p[9] = h->proto;
	memcpy(p + 12, h->src, 4);
	memcpy(p + 16, h->dst, 4);
	ip4_csum(p);
}

bool ip4_source_routed(const uint8_t *p, unsigned hlen)
{
	for (unsigned i = IP4_HLEN; i < hlen && p[i] != OPT_END;) {
		if (p[i] == OPT_NOP) {
			i++;
			continue;
		}
		if (p[i] == OPT_LSRR || p[i] == OPT_SSRR)
			return true;
		if (i + 1 >= hlen || p[i + 1] < 2)
			return false;
		i += p[i + 1];
	}
	return false;
}
