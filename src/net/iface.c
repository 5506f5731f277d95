/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iface: addresses, on-link prefixes and routers of the interface; small arrays, searched from the
 * front. [RFC 6724 reduced to what one interface needs: scope, deprecation, longest prefix]
 */
#include "net/iface.h"

#define MAPPED 96 /* prefix bits before an IPv4 address */

static struct iface_addr *lookup(const struct iface *f, const struct ip_addr *ip)
{
	for (unsigned i = 0; i < f->naddr; i++)
		if (ip_addr_equal(&f->addr[i].ip, ip))
			return (struct iface_addr *)(uintptr_t)&f->addr[i];
	return NULL;
}

struct iface_addr *iface_add(
	struct iface *f, const struct ip_addr *ip, unsigned plen, enum addr_origin origin)
{
	struct iface_addr *a = lookup(f, ip);

	if (a)
		return a;
	if (f->naddr == IFACE_ADDRS)
		return NULL;
	a = &f->addr[f->naddr++];
	*a = (struct iface_addr){.ip = *ip,
		.plen = plen,
		.origin = origin,
		.state = ADDR_GOOD,
		.preferred_until = NSEC_NEVER,
		.valid_until = NSEC_NEVER,
		.dad_at = NSEC_NEVER};
	return a;
}

void iface_del(struct iface *f, struct iface_addr *a)
{
	*a = f->addr[--f->naddr];
}

struct iface_addr *iface_find_any(struct iface *f, const struct ip_addr *ip)
{
	return lookup(f, ip);
}

struct iface_addr *iface_find(struct iface *f, const struct ip_addr *ip)
{
	struct iface_addr *a = lookup(f, ip);

	return a && a->state == ADDR_GOOD ? a : NULL;
}

bool iface_is_broadcast(const struct iface *f, const struct ip_addr *ip)
{
	const uint32_t v = ip_addr_u32(ip);

	if (!ip_addr_is4(ip))
		return false;
	if (v == UINT32_MAX)
		return true;
	for (unsigned i = 0; i < f->naddr; i++) {
		const struct iface_addr *a = &f->addr[i];
		const unsigned host = 128 - a->plen; /* bits of the host part */

		if (!ip_addr_is4(&a->ip) || host < 2 || host > 32 ||
			!ip_addr_in(ip, &a->ip, a->plen))
			continue;
		if (host == 32 || (v | ~0u << host) == UINT32_MAX)
			return true;
	}
	return false;
}

void ip_solicited_node(const struct ip_addr *ip, struct ip_addr *group)
{
	static const uint8_t base[13] = {0xff, 2, [11] = 1, [12] = 0xff};

	memcpy(group->b, base, 13);
	memcpy(group->b + 13, ip->b + 13, 3);
}

bool iface_in_group(const struct iface *f, const struct ip_addr *ip)
{
	static const uint8_t all_nodes6[16] = {0xff, 2, [15] = 1};

	if (ip_addr_is4(ip))
		return ip_addr_u32(ip) == 0xe0000001;
	if (!memcmp(ip->b, all_nodes6, 16))
		return true;
	for (unsigned i = 0; i < f->naddr; i++) {
		struct ip_addr group;

		if (ip_addr_is4(&f->addr[i].ip))
			continue;
		ip_solicited_node(&f->addr[i].ip, &group);
		if (ip_addr_equal(&group, ip))
			return true;
	}
	return false;
}

/* ---- routers and prefixes ---- */

bool iface_set_router(struct iface *f, const struct ip_addr *ip, bool fixed, nsec_t until)
{
	struct iface_router *slot = NULL;

	for (unsigned i = 0; i < IFACE_ROUTERS; i++) {
		struct iface_router *r = &f->router[i];

		if (r->until && ip_addr_equal(&r->ip, ip)) {
			if (!r->fixed || fixed)
				*r = (struct iface_router){*ip, fixed, until};
			return true;
		}
		if (!r->until && !slot)
			slot = r;
	}
	if (slot && until)
		*slot = (struct iface_router){*ip, fixed, until};
	return slot || !until;
}

bool iface_set_prefix(struct iface *f, const struct ip_addr *ip, unsigned plen, nsec_t until)
{
	struct iface_prefix *slot = NULL;

	for (unsigned i = 0; i < IFACE_PREFIXES; i++) {
		struct iface_prefix *p = &f->prefix[i];

		if (p->until && p->plen == plen && ip_addr_in(ip, &p->prefix, plen)) {
			p->until = until;
			return true;
		}
		if (!p->until && !slot)
			slot = p;
	}
	if (slot && until)
		*slot = (struct iface_prefix){*ip, plen, until};
	return slot || !until;
}

bool iface_on_link(const struct iface *f, const struct ip_addr *ip)
{
	if (ip_addr_link_local6(ip))
		return true;
	for (unsigned i = 0; i < f->naddr; i++) {
		const struct iface_addr *a = &f->addr[i];

		if (a->plen < 128 && a->plen >= (ip_addr_is4(&a->ip) ? MAPPED : 0) &&
			ip_addr_in(ip, &a->ip, a->plen))
			return true;
	}
	for (unsigned i = 0; i < IFACE_PREFIXES; i++)
		if (f->prefix[i].until && ip_addr_in(ip, &f->prefix[i].prefix, f->prefix[i].plen))
			return true;
	return false;
}

bool iface_next_hop(
	const struct iface *f, const struct ip_addr *dst, struct ip_addr *hop, nsec_t now)
{
	if (iface_on_link(f, dst)) {
		*hop = *dst;
		return true;
	}
	for (unsigned i = 0; i < IFACE_ROUTERS; i++) {
		const struct iface_router *r = &f->router[i];

		if (r->until > now && ip_addr_is4(&r->ip) == ip_addr_is4(dst)) {
			*hop = r->ip;
			return true;
		}
	}
	return false;
}

/* ---- the source address ---- */

static unsigned common_bits(const struct ip_addr *a, const struct ip_addr *b)
{
	for (unsigned i = 0; i < 16; i++) {
		const uint8_t x = a->b[i] ^ b->b[i];

		if (x)
			return i * 8 + (unsigned)__builtin_clz(x) - 24;
	}
	return 128;
}

/* 0: not at all. */
static unsigned fitness(const struct iface_addr *a, const struct ip_addr *dst, nsec_t now)
{
	const bool local = ip_addr_link_local6(dst) || (dst->b[0] == 0xff && (dst->b[1] & 15) == 2);
	unsigned n = 1;

	if (a->state != ADDR_GOOD || a->valid_until <= now ||
		ip_addr_is4(&a->ip) != ip_addr_is4(dst))
		return 0;
	if (ip_addr_is4(dst))
		return n + (a->plen < 128 && ip_addr_in(dst, &a->ip, a->plen) ? 1000 : 0) +
		       common_bits(&a->ip, dst);
	if (local == ip_addr_link_local6(&a->ip))
		n += 1000; /* same scope */
	if (a->preferred_until > now)
		n += 500;
	return n + common_bits(&a->ip, dst);
}

bool iface_source(const struct iface *f, const struct ip_addr *dst, struct ip_addr *src, nsec_t now)
{
	unsigned best = 0;

	for (unsigned i = 0; i < f->naddr; i++) {
		const unsigned n = fitness(&f->addr[i], dst, now);

		if (n > best) {
			best = n;
			*src = f->addr[i].ip;
		}
	}
	return best;
}

void iface_eui64(const struct ip_addr *prefix, const uint8_t mac[6], struct ip_addr *ip)
{
	memcpy(ip->b, prefix->b, 8);
	memcpy(ip->b + 8, mac, 3);
	ip->b[8] ^= 2;
	ip->b[11] = 0xff;
	ip->b[12] = 0xfe;
	memcpy(ip->b + 13, mac + 3, 3);
}
