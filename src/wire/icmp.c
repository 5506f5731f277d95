/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icmp: headers and the options of neighbour discovery, to and from their bytes. Checksums need the
 * pseudo header in IPv6 and are the stack's. [RFC 792, RFC 4443 2.1, RFC 4861 4.6]
 */
#include "wire/icmp.h"

bool icmp_parse(const uint8_t *p, size_t len, struct icmp *h)
{
	if (len < ICMP_HLEN)
		return false;
	*h = (struct icmp){p[0], p[1], get_be16(p + 2), get_be32(p + 4)};
	return true;
}

void icmp_build(const struct icmp *h, uint8_t p[ICMP_HLEN])
{
	p[0] = h->type;
	p[1] = h->code;
	put_be16(p + 2, h->csum);
	put_be32(p + 4, h->rest);
}

static void parse_prefix(const uint8_t *p, struct ndp_options *o)
{
	if (o->nprefix == NDP_PREFIXES || p[2] > 128)
		return;
	o->prefix[o->nprefix++] = (struct ndp_prefix){.prefix = ip_addr6(p + 16),
		.plen = p[2],
		.flags = p[3],
		.valid = get_be32(p + 4),
		.preferred = get_be32(p + 8)};
}

bool ndp_parse_options(const uint8_t *p, size_t len, uint8_t mac_option, struct ndp_options *o)
{
	*o = (struct ndp_options){0};
	while (len) {
		const size_t n = len < 2 ? 0 : p[1] * 8u;

		if (!n || n > len)
			return false;
		if (p[0] == mac_option)
			o->mac = p + 2;
		else if (p[0] == NDP_MTU)
			o->mtu = get_be32(p + 4);
		else if (p[0] == NDP_PREFIX && n >= 32)
			parse_prefix(p, o);
		p += n;
		len -= n;
	}
	return true;
}

void ndp_build_mac(uint8_t *p, uint8_t option, const uint8_t mac[6])
{
	p[0] = option;
	p[1] = 1;
	memcpy(p + 2, mac, 6);
}
