/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_in: from frames to protocols. A burst goes through in three passes:
 *
 *	accept   each frame: private head, headers found, addresses and checksums judged
 *	merge    neighbours of one flow (frame/gro.h)
 *	deliver  to ARP, reassembly, ICMP, UDP, TCP
 *
 * Heads and arrays of pieces are the stack's own, for the frames may be lent to others, too; payload
 * is not copied here. [RFC 1122 3.2, RFC 8200, RFC 4291 2.7]
 */
#include "net/stack_int.h"

#include "wire/csum.h"
#include "wire/eth.h"
#include "wire/icmp.h"
#include "wire/udp.h"

#define TRUSTED (OFF_NEEDS_CSUM | OFF_DATA_VALID)

static bool refuse(uint64_t *counter)
{
	++*counter;
	return false;
}

uint16_t frame_sum(const struct frame *f, uint32_t from, uint32_t len, const struct csum *start)
{
	struct csum c = *start;
	uint32_t n = 0;

	if (from < f->head_len) {
		n = f->head_len - from < len ? f->head_len - from : len;
		csum_piece(&c, f->head + from, n);
		len -= n;
		from = 0;
	} else {
		from -= f->head_len;
	}
	for (unsigned i = 0; i < f->ntail && len; i++) {
		const struct iovec *v = &f->tail[i];

		if (from >= v->iov_len) {
			from -= (uint32_t)v->iov_len;
			continue;
		}
		n = (uint32_t)v->iov_len - from < len ? (uint32_t)v->iov_len - from : len;
		csum_piece(&c, (const uint8_t *)v->iov_base + from, n);
		len -= n;
		from = 0;
	}
	return csum_fold(&c);
}

/* Cut what lies behind the IP datagram: Ethernet padding. */
static void trim(struct frame *f, uint32_t len)
{
	uint32_t left;

	if (len >= frame_len(f))
		return;
	if (len <= f->head_len) {
		f->head_len = (uint16_t)len;
		f->tail_len = 0;
		f->ntail = 0;
		return;
	}
	f->tail_len = left = len - f->head_len;
	for (unsigned i = 0; i < f->ntail; i++) {
		if (f->tail[i].iov_len >= left) {
			f->tail[i].iov_len = left;
			f->ntail = (uint16_t)(i + 1);
			break;
		}
		left -= (uint32_t)f->tail[i].iov_len;
	}
}

/* ---- accept: Ethernet ---- */

static bool find_headers(struct frame *f, struct hdrs *h)
{
	enum hdrs_result r;

	while ((r = hdrs_parse(f->head, f->head_len, frame_len(f), h)) == HDRS_MORE)
		if (h->need > FRAME_PULL_MAX || !frame_pull(f, h->need))
			return false;
	return r == HDRS_OK;
}

static bool accept_eth(struct stack *st, struct rx *rx)
{
	const uint8_t *dst = rx->f->head;

	if (frame_len(rx->f) < ETH_HLEN)
		return refuse(&st->stat.in_bad);
	rx->group = eth_is_multicast(dst);
	if (!rx->group && memcmp(dst, st->face.mac, 6))
		return refuse(&st->stat.in_other);
	if (!find_headers(rx->f, &rx->h))
		return refuse(&st->stat.in_bad);
	if (rx->h.nvlan)
		return refuse(&st->stat.in_other);
	return true;
}

/* ---- accept: IP ---- */

/*
 * Addresses of either version. An unspecified source is DHCP's and duplicate address detection's, and
 * good for nothing else; our own address as the source is somebody's trick (LAND).
 */
static bool accept_addresses(struct stack *st, struct rx *rx)
{
	const bool any = ip_addr_any(&rx->src);

	if (!rx->self && !any &&
		(ip_addr_martian(&rx->src) || iface_is_broadcast(&st->face, &rx->src) ||
			iface_find(&st->face, &rx->src)))
		return refuse(&st->stat.in_martian);
	if (any && rx->proto != IP_PROTO_ICMP6 && rx->proto != IP_PROTO_UDP)
		return refuse(&st->stat.in_martian);
	if (ip_addr_multicast(&rx->dst) || iface_is_broadcast(&st->face, &rx->dst)) {
		rx->group = true;
		if (!iface_is_broadcast(&st->face, &rx->dst) &&
			!iface_in_group(&st->face, &rx->dst))
			return refuse(&st->stat.in_not_ours);
		return true;
	}
	if (iface_find(&st->face, &rx->dst))
		return rx->group ? refuse(&st->stat.in_martian) : true; /* [RFC 1122 3.3.6] */
	/* DHCP answers may come to the address that is not ours yet [RFC 2131 4.1] */
	if (st->dhcp.state != DHCPC_OFF && st->dhcp.state < DHCPC_BOUND &&
		rx->proto == IP_PROTO_UDP && ip_addr_is4(&rx->dst))
		return true;
	return refuse(&st->stat.in_not_ours);
}

static void set_fragment(struct rx *rx, uint32_t offset, uint32_t at, bool more, uint32_t id)
{
	rx->fragment = true;
	rx->frag = (struct reass_frag){.key = {.src = rx->src, .dst = rx->dst, .id = id},
		.offset = offset,
		.at = at,
		.len = frame_len(rx->f) - at,
		.more = more,
		.ecn = rx->tos & 3};
}

static bool accept_ip4(struct stack *st, struct rx *rx)
{
	struct frame *f = rx->f;
	const uint8_t *p = f->head + rx->h.l3;
	struct ip4 ip;

	if (!ip4_parse(p, f->head_len - rx->h.l3, &ip) || ip4_source_routed(p, ip.hlen))
		return refuse(&st->stat.in_bad);
	if (!f->off.gso) {
		if (ip.len > frame_len(f) - rx->h.l3)
			return refuse(&st->stat.in_bad);
		trim(f, rx->h.l3 + (uint32_t)ip.len);
	}
	rx->src = ip_addr4(ip.src);
	rx->dst = ip_addr4(ip.dst);
	rx->proto = ip.proto;
	rx->tos = ip.tos;
	rx->hops = ip.ttl;
	rx->l4 = (uint16_t)(rx->h.l3 + ip.hlen);
	rx->l4_len = frame_len(f) - rx->l4;
	if (ip.frag & (IP4_MF | IP4_OFFSET)) {
		if (f->off.gso)
			return refuse(&st->stat.in_bad);
		set_fragment(rx, (ip.frag & IP4_OFFSET) * 8u, rx->l4, ip.frag & IP4_MF, ip.id);
		rx->frag.key.proto = ip.proto;
		rx->frag.head_len = rx->l4;
	}
	return accept_addresses(st, rx);
}

/* The extension headers, option by option; a bad one may be told of. */
static bool accept_chain(
	struct stack *st, struct rx *rx, struct ip6_walk *w, enum ip6_walk_result r)
{
	if (r == IP6_WALK_DROP)
		return refuse(&st->stat.in_bad);
	if (r == IP6_WALK_PROBLEM) {
		st->stat.in_bad++;
		if (!rx->group || w->multicast_error) {
			const bool group = rx->group;

			rx->group = false;
			icmp_error(st, rx, ICMP6_PARAM, w->code, w->pointer, st->now);
			rx->group = group;
		}
		return false;
	}
	rx->proto = w->next;
	rx->l4 = (uint16_t)(rx->h.l3 + w->at);
	rx->l4_len = frame_len(rx->f) - rx->l4;
	return true;
}

/* Behind a fragment header; the first fragment must hold all headers [RFC 7112]. */
static bool accept_fragment6(struct stack *st, struct rx *rx, struct ip6_walk *w)
{
	struct frame *f = rx->f;
	const uint32_t l3 = rx->h.l3, at = w->at;
	const uint8_t *p;
	struct ip6_frag fh;

	if (f->off.gso || frame_len(f) < l3 + at + IP6_FRAG_HLEN)
		return refuse(&st->stat.in_bad);
	frame_pull(f, FRAME_PULL_MAX);
	p = f->head + l3;
	if (!ip6_frag_parse(p + at, f->head_len - l3 - at, &fh))
		return refuse(&st->stat.in_bad);
	set_fragment(rx, fh.offset, l3 + at + IP6_FRAG_HLEN, fh.more, fh.id);
	rx->frag.head_len = l3 + at;
	rx->frag.next = fh.next;
	if (!fh.offset) {
		const enum ip6_walk_result r = ip6_walk_on(p, f->head_len - l3, w);
		const uint32_t need = w->next == IP_PROTO_TCP ? 20 : 8;

		if (r == IP6_WALK_DROP ||
			(r == IP6_WALK_OK && fh.more && w->next != IP6_NEXT_NONE &&
				l3 + w->at + need > frame_len(f))) {
			icmp_error(st, rx, ICMP6_PARAM, ICMP6_CHAIN, 0, st->now);
			return refuse(&st->stat.in_bad);
		}
		if (!accept_chain(st, rx, w, r))
			return false;
	}
	if (fh.more && rx->frag.len % 8) { /* [RFC 8200 4.5] */
		icmp_error(st, rx, ICMP6_PARAM, 0, 4, st->now);
		return refuse(&st->stat.in_bad);
	}
	return true;
}

static bool accept_ip6(struct stack *st, struct rx *rx)
{
	struct frame *f = rx->f;
	const uint8_t *p = f->head + rx->h.l3;
	enum ip6_walk_result r;
	struct ip6_walk w;
	struct ip6 ip;

	if (!ip6_parse(p, f->head_len - rx->h.l3, &ip))
		return refuse(&st->stat.in_bad);
	if (!f->off.gso) {
		if (ip.len + (uint32_t)IP6_HLEN > frame_len(f) - rx->h.l3)
			return refuse(&st->stat.in_bad);
		trim(f, rx->h.l3 + IP6_HLEN + (uint32_t)ip.len);
	}
	rx->src = ip_addr6(ip.src);
	rx->dst = ip_addr6(ip.dst);
	if (ip_addr_is4(&rx->src) || ip_addr_is4(&rx->dst))
		return refuse(&st->stat.in_martian);
	rx->tos = ip.tclass;
	rx->hops = ip.hops;
	rx->proto = rx->h.proto;
	if (!accept_addresses(st, rx))
		return false;
	r = ip6_walk(p, f->head_len - rx->h.l3, &w);
	if (!accept_chain(st, rx, &w, r))
		return false;
	return w.next != IP6_NEXT_FRAG || accept_fragment6(st, rx, &w);
}

/* ---- accept: the upper checksum ---- */

static bool csum_good(const struct rx *rx)
{
	const struct frame *f = rx->f;
	struct csum c = {0};
	bool pseudo = true;

	if (rx->proto == IP_PROTO_ICMP)
		pseudo = false;
	else if (rx->proto != IP_PROTO_TCP && rx->proto != IP_PROTO_UDP &&
		 rx->proto != IP_PROTO_ICMP6)
		return true;
	if ((f->off.flags & TRUSTED) && rx->proto != IP_PROTO_ICMP && rx->proto != IP_PROTO_ICMP6)
		return true;
	if (rx->proto == IP_PROTO_UDP && rx->h.ip == 4 && rx->l4_len >= UDP_HLEN &&
		!get_be16(f->head + rx->l4 + UDP_CSUM))
		return true; /* none */
	if (pseudo && rx->h.ip == 4)
		csum_pseudo4(&c, ip_addr_v4(&rx->src), ip_addr_v4(&rx->dst), rx->proto, rx->l4_len);
	else if (pseudo)
		csum_pseudo6(&c, rx->src.b, rx->dst.b, rx->proto, rx->l4_len);
	return frame_sum(f, rx->l4, rx->l4_len, &c) == 0xffff;
}

/* The upper header is private, and what it says of lengths fits. */
static bool accept_upper(struct stack *st, struct rx *rx)
{
	struct frame *f = rx->f;
	uint32_t len;

	if (rx->proto == IP_PROTO_ICMP || rx->proto == IP_PROTO_ICMP6)
		frame_pull(f, rx->l4 + rx->l4_len < FRAME_PULL_MAX ? rx->l4 + rx->l4_len
								   : FRAME_PULL_MAX);
	if (rx->proto == IP_PROTO_UDP) {
		if (rx->l4_len < UDP_HLEN || !frame_pull(f, rx->l4 + UDP_HLEN))
			return refuse(&st->stat.in_bad);
		len = get_be16(f->head + rx->l4 + 4);
		if (len < UDP_HLEN || (len > rx->l4_len && !f->off.gso))
			return refuse(&st->stat.in_bad);
		if (len < rx->l4_len && !f->off.gso) {
			trim(f, rx->l4 + len);
			rx->l4_len = len;
		}
		if (rx->h.ip == 6 && !get_be16(f->head + rx->l4 + UDP_CSUM) &&
			!(f->off.flags & OFF_NEEDS_CSUM))
			return refuse(&st->stat.in_csum); /* [RFC 8200 8.1] */
	}
	if (!csum_good(rx))
		return refuse(&st->stat.in_csum);
	return true;
}

static bool accept(struct stack *st, struct rx *rx)
{
	if (!accept_eth(st, rx))
		return false;
	if (rx->h.eth_type == ETH_TYPE_ARP)
		return true;
	if (rx->h.ip != 4 && rx->h.ip != 6)
		return refuse(&st->stat.in_no_proto);
	if (!(rx->h.ip == 4 ? accept_ip4(st, rx) : accept_ip6(st, rx)))
		return false;
	return rx->fragment || accept_upper(st, rx);
}

/* ---- deliver ---- */

static void fix_header(struct pkt *p, const struct rx *rx, const struct reass_whole *w)
{
	uint8_t *ip = p->head + rx->h.l3;

	if (rx->h.ip == 4) {
		ip[1] = (uint8_t)((ip[1] & ~3) | w->ecn);
		put_be16(ip + 2, (uint16_t)(p->len - rx->h.l3));
		put_be16(ip + 6, 0);
		ip4_csum(ip);
	} else {
		uint8_t *at = ip + 6;

		ip[1] = (uint8_t)((ip[1] & ~0x30) | w->ecn << 4);
		put_be16(ip + 4, (uint16_t)(p->len - rx->h.l3 - IP6_HLEN));
		/* the header that named the fragment header names what it named */
		for (uint32_t i = IP6_HLEN; *at != IP6_NEXT_FRAG && rx->h.l3 + i < p->head_len;
			i += (ip[i + 1] + 1u) * 8)
			at = ip + i;
		*at = w->next;
	}
}

/* A piece of a datagram: when the last one has come, the whole goes up. */
static void fragment_in(struct stack *st, struct rx *rx, nsec_t now)
{
	struct reass_frag *g = &rx->frag;
	struct pkt *p;
	struct reass_whole whole;

	if (!g->offset && !g->more) { /* alone, whatever else has this number [RFC 6946] */
		g->key.id = (uint32_t)rand_u64(&st->rand);
		g->key.zero[0] = 1;
	}
	/* a TCP header in pieces hides what it is [RFC 1858] */
	if (rx->h.ip == 4 && rx->proto == IP_PROTO_TCP &&
		(g->offset == 8 || (!g->offset && g->len < 20))) {
		st->stat.in_bad++;
		return;
	}
	if (!frame_pull(rx->f, g->head_len)) {
		st->stat.in_bad++;
		return;
	}
	p = frame_keep(rx->f, st->pkts, &st->keep);
	if (!p) {
		st->stat.in_no_memory++;
		return;
	}
	p = reass_in(st->reass, p, g, &whole, now);
	if (!p)
		return;
	if ((uint64_t)p->len > FRAME_MAX || p->len - rx->h.l3 > 65535) {
		pkt_free(p);
		return;
	}
	fix_header(p, rx, &whole);
	stack_in_pkt(st, p, rx->self, now);
}

static void no_proto(struct stack *st, struct rx *rx, nsec_t now)
{
	st->stat.in_no_proto++;
	if (rx->h.ip == 4)
		icmp_error(st, rx, ICMP4_UNREACH, ICMP4_PROTO, 0, now);
	else if (rx->proto != IP6_NEXT_NONE)
		icmp_error(st, rx, ICMP6_PARAM, ICMP6_NEXT, 6, now);
}

static void deliver(struct stack *st, struct rx *rx, nsec_t now)
{
	if (rx->h.eth_type == ETH_TYPE_ARP)
		arp_in(st, rx, now);
	else if (rx->fragment)
		fragment_in(st, rx, now);
	else if (rx->proto == IP_PROTO_TCP && st->tcp)
		stack_tcp_in(st, rx, now);
	else if (rx->proto == IP_PROTO_UDP)
		udp_in(st, rx, now);
	else if (rx->proto == (rx->h.ip == 4 ? IP_PROTO_ICMP : IP_PROTO_ICMP6))
		icmp_in(st, rx, now);
	else
		no_proto(st, rx, now);
}

/* ---- a burst ---- */

/* The frame as the stack's own: head copied, pieces listed. */
static bool load(struct stack *st, struct rx *rx, unsigned i, const struct frame *from)
{
	struct frame *f = &st->rx->f[i];

	*rx = (struct rx){.f = f};
	if (st->rx->niov + from->ntail > BURST_IOV || from->head_len > FRAME_PULL_MAX)
		return refuse(&st->stat.in_no_memory);
	*f = *from;
	f->head = st->rx->head[i].data;
	memcpy(f->head, from->head, from->head_len);
	f->tail = &st->rx->iov[st->rx->niov];
	if (from->ntail)
		memcpy(f->tail, from->tail, from->ntail * sizeof(*f->tail));
	st->rx->niov += from->ntail;
	if (f->head_len < FRAME_HEAD)
		frame_pull(f, FRAME_HEAD);
	return true;
}

static uint8_t gro_kind(struct stack *st, const struct rx *rx)
{
	if (!rx->good || st->conf.no_gro || !rx->h.ip || rx->fragment)
		return GRO_NO;
	if (rx->proto == IP_PROTO_TCP)
		return GRO_TCP;
	if (rx->proto == IP_PROTO_UDP && udp_wants_gro(st, rx))
		return GRO_UDP;
	return GRO_NO;
}

static void burst_in(struct stack *st, const struct frame *f, unsigned n, nsec_t now)
{
	unsigned merged = 0;

	st->rx->niov = 0;
	st->now = now;
	for (unsigned i = 0; i < n; i++) {
		struct rx *rx = &st->meta[i];

		st->stat.in_frames++;
		rx->good = load(st, rx, i, &f[i]) && accept(st, rx);
		st->kind[i] = gro_kind(st, rx);
		st->hdrs[i] = &rx->h;
		merged |= st->kind[i] != GRO_NO;
	}
	if (merged && n > 1)
		st->stat.in_merged += gro_burst(st->gro, st->rx->f, st->hdrs, st->kind, n);
	for (unsigned i = 0; i < n; i++) {
		struct rx *rx = &st->meta[i];

		if (!rx->good || st->kind[i] == GRO_MERGED)
			continue;
		if (rx->l4)
			rx->l4_len = frame_len(rx->f) - rx->l4;
		deliver(st, rx, now);
	}
}

void stack_in(struct stack *st, const struct frame *f, unsigned n, nsec_t now)
{
	while (n) {
		const unsigned k = n < BURST_FRAMES ? n : BURST_FRAMES;

		burst_in(st, f, k, now);
		f += k;
		n -= k;
	}
}

void stack_in_pkt(struct stack *st, struct pkt *p, bool self, nsec_t now)
{
	struct frame f;
	struct rx rx = {.f = &f, .self = self, .rebuilt = !self};

	st->now = now;
	st->stat.in_frames++;
	if (!pkt_lend(p, &f, &st->own_head, st->own_iov, RX_REASS_IOV))
		st->stat.in_no_memory++;
	else if (accept(st, &rx) && !(rx.fragment && !self))
		deliver(st, &rx, now);
	pkt_free(p);
}
