/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dhcp: messages to and from their bytes, for a client and for a server. [RFC 2131 2, RFC 2132]
 */
#include "wire/dhcp.h"

#include "wire/bytes.h"

#define OPTIONS 240 /* offset of the first option */
#define COOKIE  0x63825363

#define OPT_PAD       0
#define OPT_MASK      1
#define OPT_ROUTER    3
#define OPT_DNS       6
#define OPT_MTU       26
#define OPT_REQUESTED 50
#define OPT_LEASE     51
#define OPT_TYPE      53
#define OPT_SERVER    54
#define OPT_ASK       55
#define OPT_T1        58
#define OPT_T2        59
#define OPT_END       255

static uint32_t *option_u32(struct dhcp *d, uint8_t code)
{
	switch (code) {
	case OPT_MASK:
		return &d->mask;
	case OPT_ROUTER:
		return &d->router;
	case OPT_REQUESTED:
		return &d->requested;
	case OPT_LEASE:
		return &d->lease;
	case OPT_SERVER:
		return &d->server;
	case OPT_T1:
		return &d->t1;
	case OPT_T2:
		return &d->t2;
	default:
		return NULL;
	}
}

static void parse_option(struct dhcp *d, uint8_t code, const uint8_t *p, unsigned len)
{
	uint32_t *u32 = option_u32(d, code);

	if (u32 && len >= 4)
		*u32 = get_be32(p);
	else if (code == OPT_TYPE && len == 1)
		d->type = p[0];
	else if (code == OPT_MTU && len == 2)
		d->mtu = get_be16(p);
	else if (code == OPT_DNS)
		for (unsigned i = 0; i < DHCP_DNS_MAX && 4 * i + 4 <= len; i++)
			d->dns[i] = get_be32(p + 4 * i);
}

bool dhcp_parse(const uint8_t *p, size_t len, struct dhcp *d)
{
	size_t i = OPTIONS;

	*d = (struct dhcp){0};
	if (len < OPTIONS || p[1] != 1 || p[2] != 6 || get_be32(p + OPTIONS - 4) != COOKIE)
		return false;
	d->reply = p[0] == 2;
	d->xid = get_be32(p + 4);
	d->broadcast = p[10] & 0x80;
	d->ciaddr = get_be32(p + 12);
	d->yiaddr = get_be32(p + 16);
	memcpy(d->mac, p + 28, 6);
	while (i < len && p[i] != OPT_END) {
		if (p[i] == OPT_PAD) {
			i++;
			continue;
		}
		if (i + 2 > len || i + 2 + p[i + 1] > len)
			return false;
		parse_option(d, p[i], p + i + 2, p[i + 1]);
		i += 2u + p[i + 1];
	}
	return d->type != 0;
}

static uint8_t *put_u32(uint8_t *o, uint8_t code, uint32_t v)
{
	if (!v)
		return o;
	o[0] = code;
	o[1] = 4;
	put_be32(o + 2, v);
	return o + 6;
}

static uint8_t *put_options(const struct dhcp *d, uint8_t *o)
{
	static const uint8_t ask[] = {OPT_ASK, 4, OPT_MASK, OPT_ROUTER, OPT_DNS, OPT_MTU};

	memcpy(o, (uint8_t[3]){OPT_TYPE, 1, d->type}, 3);
	o = put_u32(o + 3, OPT_SERVER, d->server);
	o = put_u32(o, OPT_REQUESTED, d->requested);
	o = put_u32(o, OPT_MASK, d->mask);
	o = put_u32(o, OPT_ROUTER, d->router);
	o = put_u32(o, OPT_LEASE, d->lease);
	o = put_u32(o, OPT_T1, d->t1);
	o = put_u32(o, OPT_T2, d->t2);
	if (d->mtu) {
		memcpy(o, (uint8_t[4]){OPT_MTU, 2, (uint8_t)(d->mtu >> 8), (uint8_t)d->mtu}, 4);
		o += 4;
	}
	o = put_u32(o, OPT_DNS, d->dns[0]);
	if (!d->reply) {
		memcpy(o, ask, sizeof(ask));
		o += sizeof(ask);
	}
	*o++ = OPT_END;
	return o;
}

size_t dhcp_build(const struct dhcp *d, uint8_t p[DHCP_MAX])
{
	const uint8_t *end;

	memset(p, 0, DHCP_MAX);
	p[0] = d->reply ? 2 : 1;
	p[1] = 1;
	p[2] = 6;
	put_be32(p + 4, d->xid);
	p[10] = d->broadcast ? 0x80 : 0;
	put_be32(p + 12, d->ciaddr);
	put_be32(p + 16, d->yiaddr);
	memcpy(p + 28, d->mac, 6);
	put_be32(p + OPTIONS - 4, COOKIE);
	end = put_options(d, p + OPTIONS);
	/* relays of old want a BOOTP message's length */
	return end - p < 300 ? 300 : (size_t)(end - p);
}
