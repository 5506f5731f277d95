/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_out: from an upper header to a frame on the link: IP header, next hop, neighbour, Ethernet
 * header, each put before the last in the headroom of the same head. Fragments only where a protocol
 * asks for it (UDP, ICMP), never for TCP. [RFC 791, RFC 8200 4.5, RFC 6864, RFC 6437]
 */
#include "net/stack_int.h"

#include <errno.h>

#include "net/siphash.h"
#include "wire/csum.h"
#include "wire/eth.h"

#define HOPS       64
#define ROOMY      80 /* Ethernet, IPv6 and any driver's header, and they are aligned */
#define SEND_ORDER 3  /* of chunks for what does not fit a page */

/*
 * For the link: Ethernet and what the driver asked for, so that the IP header is aligned. If it asked
 * for nothing, two bytes are left before Ethernet: no room for its header, which shows what that is
 * worth (S2).
 */
uint32_t stack_room(const struct stack *st, bool ip4)
{
	const uint32_t link = ((ETH_HLEN + (uint32_t)st->conf.headroom) & ~15u) + 16;

	return link + (ip4 ? IP4_HLEN : IP6_HLEN);
}

static struct pkt *pkt_with_room(struct stack *st, uint32_t room, uint32_t len)
{
	struct pkt *p = pkt_new(st->pkts, room, len);

	if (!p)
		st->stat.out_no_memory++;
	return p;
}

struct pkt *stack_pkt(struct stack *st, const struct ip_addr *dst, uint32_t len)
{
	return pkt_with_room(st, stack_room(st, ip_addr_is4(dst)), len);
}

struct pkt *stack_pkt_roomy(struct stack *st, const struct ip_addr *dst, uint32_t len)
{
	const uint32_t room = stack_room(st, ip_addr_is4(dst));

	return pkt_with_room(st, room < ROOMY ? ROOMY : room, len);
}

struct pkt *stack_pkt_long(struct stack *st, const struct ip_addr *dst, uint32_t hlen, uint32_t len,
	struct iovec *to, unsigned *nto)
{
	const uint32_t room = stack_room(st, ip_addr_is4(dst));
	const bool linear = room + hlen + len <= CHUNK_PAGE;
	struct pkt *p = stack_pkt(st, dst, hlen + (linear ? len : 0));

	*nto = 0;
	if (!p)
		return NULL;
	if (linear)
		to[(*nto)++] = (struct iovec){p->head + hlen, len};
	while (!linear && len) {
		unsigned order = 0;
		struct chunk *c;
		uint32_t n;

		while (order < SEND_ORDER && CHUNK_PAGE << order < len)
			order++;
		c = *nto < PKT_FRAGS ? chunk_get(st->pkts->chunks, order) : NULL;
		if (!c) {
			st->stat.out_no_memory++;
			pkt_free(p);
			return NULL;
		}
		n = chunk_size(c) < len ? chunk_size(c) : len;
		to[(*nto)++] = (struct iovec){chunk_data(st->pkts->chunks, c), n};
		pkt_add(p, c, chunk_data(st->pkts->chunks, c), n, chunk_size(c), false);
		len -= n;
	}
	return p;
}

static uint8_t *prepend(struct pkt *p, uint32_t n)
{
	p->head -= n;
	p->headroom -= n;
	p->head_len += n;
	p->len += n;
	if (p->off.flags & OFF_NEEDS_CSUM)
		p->off.csum_start = (uint16_t)(p->off.csum_start + n);
	if (p->off.hdr_len)
		p->off.hdr_len = (uint16_t)(p->off.hdr_len + n);
	return p->head;
}

uint16_t ip_pseudo(
	const struct ip_addr *src, const struct ip_addr *dst, uint8_t proto, uint32_t len)
{
	struct csum c = {0};

	if (ip_addr_is4(dst))
		csum_pseudo4(&c, ip_addr_v4(src), ip_addr_v4(dst), proto, len);
	else
		csum_pseudo6(&c, src->b, dst->b, proto, len);
	return csum_fold(&c);
}

/* Of datagrams that may be cut: counts up by random steps for each destination. [RFC 6864, 7739] */
uint16_t stack_ip_id(struct stack *st, const struct ip_addr *dst)
{
	uint32_t *id = &st->ip_id[siphash(st->conf.secret, dst, sizeof(*dst)) % STACK_IDS];

	*id += 1 + rand_below(&st->rand, 8);
	return (uint16_t)*id;
}

/* ---- Ethernet ---- */

static void queue_out(struct stack *st, struct pkt *p)
{
	if (st->nout >= STACK_OUT_MAX) {
		st->stat.out_full++;
		pkt_free(p);
		return;
	}
	STAILQ_INSERT_TAIL(&st->out, p, entry);
	st->nout++;
}

void stack_send_eth(struct stack *st, struct pkt *p, const uint8_t mac[6], uint16_t type)
{
	uint8_t *eth = prepend(p, ETH_HLEN);

	memcpy(eth, mac, 6);
	memcpy(eth + 6, st->face.mac, 6);
	put_be16(eth + 12, type);
	queue_out(st, p);
}

/* Nobody answers at the next hop: whoever sent it is told, as by a router. */
static void tell_unreachable(struct stack *st, struct pkt *p)
{
	const uint8_t *ip = p->head;
	struct ip_addr src, dst;
	uint8_t proto;
	uint32_t l4;

	if (p->head_len < IP4_HLEN + 8)
		return;
	if (ip[0] >> 4 == 4) {
		src = ip_addr4(ip + 12);
		dst = ip_addr4(ip + 16);
		proto = ip[9];
		l4 = IP4_HLEN;
	} else {
		src = ip_addr6(ip + 8);
		dst = ip_addr6(ip + 24);
		proto = ip[6];
		l4 = IP6_HLEN;
	}
	if (p->head_len < l4 + 8)
		return;
	if (proto == IP_PROTO_UDP)
		udp_error(st, &src, &dst, ip + l4, ICMP_HARD, EHOSTUNREACH);
	else if (proto == IP_PROTO_TCP)
		stack_tcp_error(st, &src, &dst, ip + l4, ICMP_SOFT, EHOSTUNREACH, 0, st->now);
}

void stack_release(void *ctx, struct pkt *p, const struct ip_addr *hop, const uint8_t *mac)
{
	struct stack *st = ctx;

	if (mac) {
		stack_send_eth(st, p, mac, ip_addr_is4(hop) ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
		return;
	}
	st->stat.out_unreachable++;
	tell_unreachable(st, p);
	pkt_free(p);
}

/* ---- the next hop ---- */

static void to_self(struct stack *st, struct pkt *p, uint16_t type)
{
	uint8_t *eth = prepend(p, ETH_HLEN);

	memcpy(eth, st->face.mac, 6);
	memcpy(eth + 6, st->face.mac, 6);
	put_be16(eth + 12, type);
	if (st->nself >= STACK_OUT_MAX) {
		st->stat.out_full++;
		pkt_free(p);
		return;
	}
	STAILQ_INSERT_TAIL(&st->self, p, entry);
	st->nself++;
}

/* The packet is a whole IP datagram. */
static int route(struct stack *st, struct pkt *p, const struct ip_addr *dst, nsec_t now)
{
	const uint16_t type = ip_addr_is4(dst) ? ETH_TYPE_IP4 : ETH_TYPE_IP6;
	const uint8_t *known;
	struct ip_addr hop;
	uint8_t mac[6];

	if (ip_addr_multicast(dst) || iface_is_broadcast(&st->face, dst)) {
		memset(mac, 0xff, 6);
		if (!iface_is_broadcast(&st->face, dst))
			ip_addr_multicast_mac(dst, mac);
		stack_send_eth(st, p, mac, type);
		return 0;
	}
	if (iface_find(&st->face, dst)) {
		to_self(st, p, type);
		return 0;
	}
	if (!iface_next_hop(&st->face, dst, &hop, now)) {
		st->stat.out_no_route++;
		pkt_free(p);
		return -EHOSTUNREACH;
	}
	known = neigh_resolve(st->neigh, &hop, p, now);
	if (known)
		stack_send_eth(st, p, known, type);
	return 0;
}

/* ---- IP ---- */

static void put_ip4(
	struct stack *st, struct pkt *p, const struct ip_meta *m, uint16_t frag, uint16_t id)
{
	struct ip4 ip = {.tos = m->tos,
		.ttl = m->hops ? m->hops : HOPS,
		.proto = m->proto,
		.id = id,
		.frag = (uint16_t)(frag | (m->df ? IP4_DF : 0)),
		.len = (uint16_t)(p->len + IP4_HLEN)};

	(void)st;
	memcpy(ip.src, ip_addr_v4(&m->src), 4);
	memcpy(ip.dst, ip_addr_v4(&m->dst), 4);
	ip4_build(&ip, prepend(p, IP4_HLEN));
}

static void put_ip6(struct pkt *p, const struct ip_meta *m, uint8_t next)
{
	struct ip6 ip = {.tclass = m->tos,
		.next = next,
		.hops = m->hops ? m->hops : HOPS,
		.flow = m->flow,
		.len = (uint16_t)p->len};

	memcpy(ip.src, m->src.b, 16);
	memcpy(ip.dst, m->dst.b, 16);
	ip6_build(&ip, prepend(p, IP6_HLEN));
}

/* ---- fragments ---- */

struct cut {
	const struct ip_meta *m;
	struct frame whole; /* from the upper header on */
	uint32_t id, step;
};

static int send_cut(struct stack *st, const struct cut *c, uint32_t from, nsec_t now)
{
	const bool ip4 = ip_addr_is4(&c->m->dst);
	const uint32_t left = frame_len(&c->whole) - from, len = left < c->step ? left : c->step;
	const uint32_t fh = ip4 ? 0 : IP6_FRAG_HLEN;
	const bool more = left > len;
	struct pkt *p = pkt_new(st->pkts, stack_room(st, ip4), fh + len);
	struct iovec to;

	if (!p) {
		st->stat.out_no_memory++;
		return -ENOBUFS;
	}
	to = (struct iovec){p->head + fh, len};
	frame_copy(&c->whole, from, len, &to, 1, 0);
	if (ip4) {
		put_ip4(st, p, c->m, (uint16_t)(from / 8 | (more ? IP4_MF : 0)), (uint16_t)c->id);
	} else {
		const struct ip6_frag f = {c->m->proto, more, from, c->id};

		ip6_frag_build(&f, p->head);
		put_ip6(p, c->m, IP6_NEXT_FRAG);
	}
	st->stat.out_fragments++;
	return route(st, p, &c->m->dst, now);
}

/* The checksum is finished here: nobody below sees the datagram whole. */
static void finish_csum(struct frame *f, struct pkt *p)
{
	const struct csum none = {0};
	const uint32_t at = p->off.csum_start + (uint32_t)p->off.csum_off;
	uint16_t sum;

	if (!(p->off.flags & OFF_NEEDS_CSUM))
		return;
	sum = (uint16_t)~frame_sum(f, p->off.csum_start, frame_len(f) - p->off.csum_start, &none);
	put_be16(f->head + at, sum ? sum : 0xffff);
}

static int send_fragments(
	struct stack *st, struct pkt *p, const struct ip_meta *meta, uint32_t mtu, nsec_t now)
{
	const bool ip4 = ip_addr_is4(&meta->dst);
	struct ip_meta m = *meta;
	struct cut c = {.m = &m, .step = (mtu - (ip4 ? IP4_HLEN : IP6_HLEN + IP6_FRAG_HLEN)) & ~7u};
	int r = -ENOBUFS;

	m.df = false;
	c.id = ip4 ? stack_ip_id(st, &m.dst) : (uint32_t)rand_u64(&st->rand);
	if (pkt_lend(p, &c.whole, &st->own_head, st->own_iov, RX_REASS_IOV)) {
		finish_csum(&c.whole, p);
		for (uint32_t from = 0; from < frame_len(&c.whole); from += c.step)
			if ((r = send_cut(st, &c, from, now)))
				break;
	}
	pkt_free(p);
	return r;
}

static uint32_t wire_len(const struct pkt *p, uint32_t ip_hlen)
{
	if (!p->off.gso)
		return p->len + ip_hlen;
	return ip_hlen + p->off.hdr_len + p->off.gso_size;
}

int stack_send(struct stack *st, struct pkt *p, const struct ip_meta *m, nsec_t now)
{
	const bool ip4 = ip_addr_is4(&m->dst);
	const uint32_t hlen = ip4 ? IP4_HLEN : IP6_HLEN;
	const uint32_t link = ip4 ? st->face.mtu : st->face.mtu6;
	/* the engine of TCP knows its paths itself */
	const uint32_t mtu =
		m->proto == IP_PROTO_TCP ? link : pmtu_find(&st->pmtu, &m->dst, link, now);

	st->now = now;
	if (wire_len(p, hlen) > mtu) {
		if (m->fragment && !p->off.gso && p->len <= 65535 - hlen)
			return send_fragments(st, p, m, mtu, now);
		if (wire_len(p, hlen) > link || !m->fragment) {
			pkt_free(p);
			return -EMSGSIZE;
		}
	}
	if (ip4)
		put_ip4(st, p, m, 0, m->df && !p->off.gso ? 0 : stack_ip_id(st, &m->dst));
	else
		put_ip6(p, m, m->proto);
	return route(st, p, &m->dst, now);
}

/* ---- to the port ---- */

/* What we sent to ourselves; what that causes comes in the next round of the loop below. */
static void run_self(struct stack *st, nsec_t now)
{
	for (unsigned n = st->nself; n; n--) {
		struct pkt *p = STAILQ_FIRST(&st->self);

		STAILQ_REMOVE_HEAD(&st->self, entry);
		st->nself--;
		stack_in_pkt(st, p, true, now);
	}
}

struct pkt *stack_out(struct stack *st, nsec_t now)
{
	struct pkt *p;

	st->now = now;
	for (unsigned turns = 0; STAILQ_EMPTY(&st->out) && turns < 64; turns++) {
		run_self(st, now);
		if (st->tcp)
			stack_tcp_out(st, now);
		if (!st->nself)
			break;
	}
	p = STAILQ_FIRST(&st->out);
	if (!p)
		return NULL;
	STAILQ_REMOVE_HEAD(&st->out, entry);
	st->nout--;
	st->stat.out_frames++;
	return p;
}
