/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_addr: how the host's addresses come and go. An IPv6 address is tentative until nobody
 * objected for a second [RFC 4862 5.4]; an IPv4 address is announced [RFC 5227 2.3]. All their times
 * are in one place: the earliest is st->addr_at.
 */
#include "net/stack_int.h"

#include <errno.h>

#include "wire/icmp.h"

#define DAD_NS      NSEC_PER_SEC /* RetransTimer */
#define ANNOUNCES   2
#define ANNOUNCE_NS (2 * NSEC_PER_SEC)

static nsec_t earliest(nsec_t a, nsec_t b)
{
	return a < b ? a : b;
}

void stack_addr_retime(struct stack *st)
{
	st->addr_at = NSEC_NEVER;
	for (unsigned i = 0; i < st->face.naddr; i++)
		st->addr_at = earliest(st->addr_at,
			earliest(st->face.addr[i].dad_at, st->face.addr[i].valid_until));
}

struct iface_addr *stack_addr_new(struct stack *st, const struct ip_addr *ip, unsigned plen,
	enum addr_origin origin, nsec_t now)
{
	struct iface_addr *a = iface_find_any(&st->face, ip);

	if (a)
		return a;
	a = iface_add(&st->face, ip, plen, origin);
	if (!a)
		return NULL;
	if (ip_addr_is4(ip)) {
		a->dad_left = ANNOUNCES;
		a->dad_at = now;
	} else if (!st->conf.no_dad) {
		a->state = ADDR_TENTATIVE;
		a->dad_left = 1;
		a->dad_at = now;
	}
	stack_addr_retime(st);
	return a;
}

static void step4(struct stack *st, struct iface_addr *a, nsec_t now)
{
	arp_announce(st, &a->ip);
	a->dad_at = --a->dad_left ? now + ANNOUNCE_NS : NSEC_NEVER;
}

static void step6(struct stack *st, struct iface_addr *a, nsec_t now)
{
	if (a->dad_left) {
		a->dad_left--;
		a->dad_at = now + DAD_NS;
		ndp_ask(st, &a->ip, NULL);
		return;
	}
	a->dad_at = NSEC_NEVER;
	a->state = ADDR_GOOD;
	if (a->origin == ADDR_LINK_LOCAL)
		ndp_start(st, now);
}

void stack_addr_timer(struct stack *st, nsec_t now)
{
	if (now < st->addr_at)
		return;
	for (unsigned i = 0; i < st->face.naddr;) {
		struct iface_addr *a = &st->face.addr[i];

		if (a->valid_until <= now) {
			iface_del(&st->face, a);
			continue;
		}
		if (a->dad_at <= now) {
			if (ip_addr_is4(&a->ip))
				step4(st, a, now);
			else
				step6(st, a, now);
		}
		i++;
	}
	stack_addr_retime(st);
}

/* Somebody else has the address that we ask for: it is not ours. */
void stack_addr_conflict(struct stack *st, struct iface_addr *a, nsec_t now)
{
	(void)now;
	st->stat.dad_conflicts++;
	if (a->state != ADDR_TENTATIVE)
		return;
	a->state = ADDR_TAKEN;
	a->dad_at = NSEC_NEVER;
	stack_addr_retime(st);
}

/* ---- what the owner of the stack says and asks ---- */

int stack_add_addr(
	struct stack *st, const struct ip_addr *ip, unsigned plen, nsec_t now, struct err *err)
{
	char text[IP_ADDR_TEXT];

	ip_addr_build_text(ip, text);
	if (ip_addr_martian(ip) || plen > 128 || (ip_addr_is4(ip) && plen < 96 + 1))
		return err_set(err, EINVAL, "address %s/%u: an address of one host is right", text,
			ip_addr_is4(ip) ? plen - 96 : plen);
	if (!stack_addr_new(st, ip, plen, ADDR_STATIC, now))
		return err_set(
			err, ENOSPC, "address %s: %d addresses are the most", text, IFACE_ADDRS);
	return 0;
}

int stack_add_gateway(struct stack *st, const struct ip_addr *ip, struct err *err)
{
	char text[IP_ADDR_TEXT];

	ip_addr_build_text(ip, text);
	if (ip_addr_martian(ip))
		return err_set(err, EINVAL, "gateway %s: the address of a router is right", text);
	if (!iface_set_router(&st->face, ip, true, NSEC_NEVER))
		return err_set(
			err, ENOSPC, "gateway %s: %d routers are the most", text, IFACE_ROUTERS);
	return 0;
}

bool stack_addr(const struct stack *st, unsigned version, struct ip_addr *ip)
{
	for (unsigned i = 0; i < st->face.naddr; i++) {
		const struct iface_addr *a = &st->face.addr[i];

		if (a->state != ADDR_GOOD || ip_addr_version(&a->ip) != version ||
			ip_addr_link_local6(&a->ip))
			continue;
		*ip = a->ip;
		return true;
	}
	return false;
}

bool stack_link_local(const struct stack *st, struct ip_addr *ip)
{
	for (unsigned i = 0; i < st->face.naddr; i++) {
		const struct iface_addr *a = &st->face.addr[i];

		if (a->state != ADDR_GOOD || !ip_addr_link_local6(&a->ip))
			continue;
		*ip = a->ip;
		return true;
	}
	return false;
}

int stack_route(
	struct stack *st, const struct ip_addr *dst, struct ip_addr *src, uint32_t *mtu, nsec_t now)
{
	const uint32_t link = ip_addr_is4(dst) ? st->face.mtu : st->face.mtu6;
	struct ip_addr hop;

	if (iface_find(&st->face, dst)) {
		*src = *dst;
	} else {
		if (!ip_addr_multicast(dst) && !iface_is_broadcast(&st->face, dst) &&
			!iface_next_hop(&st->face, dst, &hop, now))
			return -EHOSTUNREACH;
		if (!iface_source(&st->face, dst, src, now))
			return -EADDRNOTAVAIL;
	}
	*mtu = pmtu_find(&st->pmtu, dst, link, now);
	return 0;
}

unsigned stack_dns(const struct stack *st, struct ip_addr *dns, unsigned max)
{
	const unsigned n = st->ndns < max ? st->ndns : max;

	memcpy(dns, st->dns, n * sizeof(*dns));
	return n;
}
