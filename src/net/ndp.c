/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndp: neighbour discovery as a host does it: solicitations and advertisements, duplicate address
 * detection, routers and addresses from router advertisements. All messages must come from the link
 * itself (hop limit 255) and in one piece. Redirects are ignored.
 * [RFC 4861, RFC 4862, RFC 6980]
 */
#include "net/stack_int.h"

#include "wire/csum.h"
#include "wire/eth.h"
#include "wire/icmp.h"

#define NS_LEN    24 /* header and target */
#define RA_LEN    16
#define MAC_LEN   8 /* of the option */
#define SOLICITED 0x40000000u
#define OVERRIDE  0x20000000u

#define RS_COUNT 3
#define RS_NS    (4 * NSEC_PER_SEC)

#define TWO_HOURS (7200 * NSEC_PER_SEC)

/* ---- out ---- */

static void send(
	struct stack *st, struct pkt *p, const struct ip_addr *src, const struct ip_addr *dst)
{
	const struct ip_meta m = {.src = *src, .dst = *dst, .proto = IP_PROTO_ICMP6, .hops = 255};
	struct csum c = {0};

	put_be16(p->head + 2, 0);
	csum_pseudo6(&c, src->b, dst->b, IP_PROTO_ICMP6, p->len);
	csum_piece(&c, p->head, p->len);
	put_be16(p->head + 2, csum_end(&c));
	stack_send(st, p, &m, st->now);
}

void ndp_ask(struct stack *st, const struct ip_addr *target, const uint8_t *mac)
{
	const struct iface_addr *own = iface_find_any(&st->face, target);
	const struct icmp h = {.type = ICMP6_NS};
	struct ip_addr src = {{0}}, dst = *target;
	struct pkt *p;

	if (!mac)
		ip_solicited_node(target, &dst);
	if (!own && !iface_source(&st->face, target, &src, st->now))
		return;
	p = stack_pkt(st, target, own ? NS_LEN : NS_LEN + MAC_LEN);
	if (!p)
		return;
	icmp_build(&h, p->head);
	memcpy(p->head + 8, target->b, 16);
	if (!own)
		ndp_build_mac(p->head + NS_LEN, NDP_SRC_MAC, st->face.mac);
	if (mac) { /* it is asked itself: its address must not be looked up */
		const struct ip_meta m = {
			.src = src, .dst = dst, .proto = IP_PROTO_ICMP6, .hops = 255};
		struct csum c = {0};
		struct ip6 ip = {.next = IP_PROTO_ICMP6, .hops = 255, .len = (uint16_t)p->len};

		csum_pseudo6(&c, src.b, dst.b, IP_PROTO_ICMP6, p->len);
		csum_piece(&c, p->head, p->len);
		put_be16(p->head + 2, csum_end(&c));
		memcpy(ip.src, m.src.b, 16);
		memcpy(ip.dst, m.dst.b, 16);
		p->head -= IP6_HLEN;
		p->headroom -= IP6_HLEN;
		p->head_len += IP6_HLEN;
		p->len += IP6_HLEN;
		ip6_build(&ip, p->head);
		stack_send_eth(st, p, mac, ETH_TYPE_IP6);
		return;
	}
	send(st, p, &src, &dst);
}

static void advertise(struct stack *st, const struct ip_addr *target, const struct ip_addr *to)
{
	static const struct ip_addr all_nodes = {{0xff, 2, [15] = 1}};
	const bool any = ip_addr_any(to);
	const struct icmp h = {.type = ICMP6_NA, .rest = (any ? 0 : SOLICITED) | OVERRIDE};
	struct pkt *p = stack_pkt(st, target, NS_LEN + MAC_LEN);

	if (!p)
		return;
	icmp_build(&h, p->head);
	memcpy(p->head + 8, target->b, 16);
	ndp_build_mac(p->head + NS_LEN, NDP_DST_MAC, st->face.mac);
	send(st, p, target, any ? &all_nodes : to);
}

static void solicit_routers(struct stack *st)
{
	static const struct ip_addr all_routers = {{0xff, 2, [15] = 2}};
	const struct icmp h = {.type = ICMP6_RS};
	struct ip_addr src;
	struct pkt *p;

	if (!stack_link_local(st, &src))
		return;
	p = stack_pkt(st, &all_routers, 8 + MAC_LEN);
	if (!p)
		return;
	icmp_build(&h, p->head);
	ndp_build_mac(p->head + 8, NDP_SRC_MAC, st->face.mac);
	send(st, p, &src, &all_routers);
}

void ndp_start(struct stack *st, nsec_t now)
{
	if (st->conf.no_auto)
		return;
	st->rs_left = RS_COUNT;
	st->rs_at = now;
}

/* ---- in ---- */

static bool is_solicited_node(const struct ip_addr *a)
{
	static const uint8_t base[13] = {0xff, 2, [11] = 1, [12] = 0xff};

	return !memcmp(a->b, base, sizeof(base));
}

static bool ns_in(struct stack *st, const struct rx *rx, const uint8_t *p, uint32_t len, nsec_t now)
{
	const bool dad = ip_addr_any(&rx->src);
	struct iface_addr *ours;
	struct ndp_options o;
	struct ip_addr target;

	if (len < NS_LEN || !ndp_parse_options(p + NS_LEN, len - NS_LEN, NDP_SRC_MAC, &o))
		return false;
	target = ip_addr6(p + 8);
	if (ip_addr_multicast(&target) || (dad && (o.mac || !is_solicited_node(&rx->dst))))
		return false;
	ours = iface_find_any(&st->face, &target);
	if (!ours)
		return true;
	if (ours->state == ADDR_TENTATIVE) {
		/* ours comes back only from a broken link; anybody else's means both lose */
		if (dad && memcmp(rx->f->head + 6, st->face.mac, 6))
			stack_addr_conflict(st, ours, now);
		return true;
	}
	if (ours->state != ADDR_GOOD)
		return true;
	if (!dad && o.mac && !eth_is_multicast(o.mac) && iface_on_link(&st->face, &rx->src))
		neigh_learn(st->neigh, &rx->src, o.mac, NEIGH_ASKED_US, now);
	advertise(st, &target, &rx->src);
	return true;
}

static bool na_in(struct stack *st, const struct rx *rx, const uint8_t *p, uint32_t len, nsec_t now)
{
	struct iface_addr *ours;
	struct ndp_options o;
	struct ip_addr target;
	bool solicited;

	if (len < NS_LEN || !ndp_parse_options(p + NS_LEN, len - NS_LEN, NDP_DST_MAC, &o))
		return false;
	target = ip_addr6(p + 8);
	solicited = get_be32(p + 4) & SOLICITED;
	if (ip_addr_multicast(&target) || (solicited && ip_addr_multicast(&rx->dst)))
		return false;
	ours = iface_find_any(&st->face, &target);
	if (ours)
		stack_addr_conflict(st, ours, now);
	else if (o.mac && !eth_is_multicast(o.mac))
		neigh_learn(
			st->neigh, &target, o.mac, solicited ? NEIGH_ANSWER : NEIGH_UNASKED, now);
	else if (solicited) /* no option: as known [RFC 4861 7.2.5] */
		neigh_learn(st->neigh, &target, rx->f->head + 6, NEIGH_ANSWER, now);
	return true;
}

static nsec_t until(uint32_t seconds, nsec_t now)
{
	return seconds == UINT32_MAX ? NSEC_NEVER : now + seconds * NSEC_PER_SEC;
}

/* An address made from an advertised prefix, and its times; short ones are not believed. */
static void autoconf(struct stack *st, const struct ndp_prefix *x, nsec_t now)
{
	struct iface_addr *a;
	struct ip_addr ip;
	nsec_t left;

	if (x->plen != 64 || x->preferred > x->valid || st->conf.no_auto)
		return;
	iface_eui64(&x->prefix, st->face.mac, &ip);
	a = iface_find_any(&st->face, &ip);
	if (!a) {
		if (!x->valid)
			return;
		a = stack_addr_new(st, &ip, 128, ADDR_AUTO, now);
		if (!a) {
			st->stat.ra_full++;
			return;
		}
		a->valid_until = until(x->valid, now);
	} else if (a->origin != ADDR_AUTO) {
		return;
	}
	left = a->valid_until - now; /* [RFC 4862 5.5.3 e] */
	if (until(x->valid, now) > now + TWO_HOURS || until(x->valid, now) > a->valid_until)
		a->valid_until = until(x->valid, now);
	else if (left > TWO_HOURS)
		a->valid_until = now + TWO_HOURS;
	a->preferred_until = until(x->preferred, now);
	stack_addr_retime(st);
}

static bool ra_in(struct stack *st, const struct rx *rx, const uint8_t *p, uint32_t len, nsec_t now)
{
	struct ndp_options o;
	uint16_t lifetime;

	if (len < RA_LEN || !ip_addr_link_local6(&rx->src) ||
		!ndp_parse_options(p + RA_LEN, len - RA_LEN, NDP_SRC_MAC, &o))
		return false;
	st->stat.ra_in++;
	if (st->conf.no_auto)
		return true;
	lifetime = get_be16(p + 6);
	if (lifetime)
		st->rs_left = 0; /* a router is there */
	st->stat.ra_full +=
		!iface_set_router(&st->face, &rx->src, false, lifetime ? until(lifetime, now) : 0);
	if (o.mac && !eth_is_multicast(o.mac))
		neigh_learn(st->neigh, &rx->src, o.mac, NEIGH_UNASKED, now);
	if (o.mtu >= IP6_MTU_MIN && o.mtu <= st->face.mtu)
		st->face.mtu6 = o.mtu;
	for (unsigned i = 0; i < o.nprefix; i++) {
		const struct ndp_prefix *x = &o.prefix[i];

		if (ip_addr_link_local6(&x->prefix) || ip_addr_multicast(&x->prefix))
			continue;
		if (x->flags & NDP_ON_LINK)
			st->stat.ra_full += !iface_set_prefix(&st->face, &x->prefix, x->plen,
				x->valid ? until(x->valid, now) : 0);
		if (x->flags & NDP_AUTO)
			autoconf(st, x, now);
	}
	return true;
}

void ndp_in(struct stack *st, struct rx *rx, nsec_t now)
{
	const uint8_t *p = rx->f->head + rx->l4;
	const uint32_t len = rx->l4_len;
	bool good = false;

	if (rx->hops == 255 && !rx->rebuilt && !p[1] && rx->l4 + len <= rx->f->head_len) {
		if (p[0] == ICMP6_NS)
			good = ns_in(st, rx, p, len, now);
		else if (p[0] == ICMP6_NA)
			good = na_in(st, rx, p, len, now);
		else if (p[0] == ICMP6_RA)
			good = ra_in(st, rx, p, len, now);
		else
			good = true;
	}
	st->stat.nd_bad += !good;
}

/* ---- time ---- */

nsec_t ndp_deadline(const struct stack *st)
{
	return st->rs_left ? st->rs_at : NSEC_NEVER;
}

void ndp_timer(struct stack *st, nsec_t now)
{
	if (!st->rs_left || now < st->rs_at)
		return;
	st->rs_left--;
	st->rs_at = now + RS_NS;
	solicit_routers(st);
}
