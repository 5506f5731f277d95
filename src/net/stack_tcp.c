/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_tcp: between the stack and the engine of TCP: frames to segments, segments to packets. A
 * packet is a fresh head with the headers and the engine's fragments by reference; its checksum is
 * left to whoever is below, always. [RFC 9293 3.1]
 */
#include "net/stack_int.h"

#include <errno.h>

#include "net/tcp.h"
#include "wire/tcp.h"

#define SHORT_MAX 128 /* payload bytes that are copied into the head */
#define SELF_MAX  64  /* packets to ourselves before they are looked at */

int stack_tcp_new(struct stack *st, struct err *err)
{
	struct tcp_conf c = {0};

	if (st->conf.tcp)
		c = *st->conf.tcp;
	st->conf.tcp = NULL; /* the caller's: not ours to keep */
	c.pool = st->pkts;
	memcpy(c.secret, st->conf.secret, sizeof(c.secret));
	c.seed = rand_u64(&st->rand);
	c.mtu = st->conf.mtu;
	st->tcp = tcp_host_new(&c, err);
	return st->tcp ? 0 : -ENOMEM;
}

void stack_tcp_free(struct stack *st)
{
	tcp_host_free(st->tcp);
}

/* ---- in ---- */

void stack_tcp_in(struct stack *st, struct rx *rx, nsec_t now)
{
	const struct frame *f = rx->f;
	const uint8_t *p = f->head + rx->h.l4;
	struct tcp_hdr h;
	struct tcp_seg seg;

	if (rx->group || ip_addr_any(&rx->src) || !rx->h.l4 || rx->h.payload > f->head_len) {
		st->stat.in_martian++;
		return;
	}
	h = tcp_hdr_parse(p);
	if (!h.sport || !h.dport) {
		st->stat.in_bad++;
		return;
	}
	seg = (struct tcp_seg){
		.tuple = {.laddr = rx->dst, .raddr = rx->src, .lport = h.dport, .rport = h.sport},
		.seq = h.seq,
		.ack = h.ack,
		.wnd = h.wnd,
		.urg = h.urg,
		.flags = h.flags,
		.ecn = rx->tos & 3,
		.opt_len = (uint8_t)(h.hlen - TCP_HLEN),
		.opt = p + TCP_HLEN,
		.frame = f,
		.off = rx->h.payload,
		.len = frame_len(f) - rx->h.payload,
		.gso_size = f->off.gso ? f->off.gso_size : 0};
	tcp_host_in(st->tcp, &seg, now);
}

/* ---- out ---- */

static void drop_frags(struct stack *st, const struct tcp_out *o, unsigned from)
{
	for (unsigned i = from; i < o->nfrag; i++)
		chunk_put(st->pkts->chunks, o->frag[i].chunk);
}

static void put_header(struct pkt *p, const struct tcp_out *o)
{
	const struct tcp_hdr h = {.sport = o->tuple.lport,
		.dport = o->tuple.rport,
		.seq = o->seq,
		.ack = o->ack,
		.hlen = (uint8_t)(TCP_HLEN + o->opt_len),
		.flags = o->flags,
		.wnd = o->wnd,
		.csum = ip_pseudo(&o->tuple.laddr, &o->tuple.raddr, IP_PROTO_TCP,
			TCP_HLEN + (uint32_t)o->opt_len + o->len)};

	tcp_hdr_build(&h, p->head);
	memcpy(p->head + TCP_HLEN, o->opt, o->opt_len);
}

static void put_offload(struct pkt *p, const struct tcp_out *o)
{
	p->off = (struct offload){.flags = OFF_NEEDS_CSUM,
		.csum_off = TCP_CSUM,
		.hdr_len = (uint16_t)(TCP_HLEN + o->opt_len)};
	if (!o->gso_size || o->gso_size >= o->len)
		return;
	p->off.gso_size = o->gso_size;
	p->off.gso = ip_addr_is4(&o->tuple.raddr) ? OFF_GSO_TCPV4 : OFF_GSO_TCPV6;
	if (o->flags & TCP_CWR)
		p->off.gso |= OFF_GSO_ECN;
}

/* A few bytes go into the head: one piece instead of two for the ring, and less than a piece costs. */
static struct pkt *make_short(struct stack *st, const struct tcp_out *o)
{
	const uint32_t hlen = TCP_HLEN + (uint32_t)o->opt_len;
	struct pkt *p = stack_pkt_roomy(st, &o->tuple.raddr, hlen + o->len);
	uint8_t *to = p ? p->head + hlen : NULL;

	for (unsigned i = 0; p && i < o->nfrag; i++) {
		memcpy(to, o->frag[i].data, o->frag[i].len);
		to += o->frag[i].len;
	}
	drop_frags(st, o, 0);
	return p;
}

static struct pkt *make_long(struct stack *st, const struct tcp_out *o)
{
	struct pkt *p = stack_pkt_roomy(st, &o->tuple.raddr, TCP_HLEN + (uint32_t)o->opt_len);

	for (unsigned i = 0; i < o->nfrag; i++) {
		const struct pkt_frag *g = &o->frag[i];

		if (!p || !pkt_add(p, g->chunk, g->data, g->len, g->len, true)) {
			drop_frags(st, o, p ? i + 1 : i);
			pkt_free(p);
			return NULL;
		}
	}
	return p;
}

static struct pkt *make_packet(struct stack *st, const struct tcp_out *o)
{
	struct pkt *p = o->len <= SHORT_MAX ? make_short(st, o) : make_long(st, o);

	if (!p)
		return NULL;
	put_header(p, o);
	put_offload(p, o);
	if (o->account)
		pkt_set_account(p, o->account);
	return p;
}

static void send_segment(struct stack *st, const struct tcp_out *o, nsec_t now)
{
	const struct ip_meta m = {.src = o->tuple.laddr,
		.dst = o->tuple.raddr,
		.proto = IP_PROTO_TCP,
		.tos = o->ecn,
		.flow = o->flow,
		.df = true};
	struct pkt *p = make_packet(st, o);
	int r;

	if (!p)
		return;
	r = stack_send(st, p, &m, now);
	if (r == -EMSGSIZE) /* the link's MTU has become smaller */
		tcp_host_icmp(st->tcp, &o->tuple, o->seq, TCP_ICMP_TOO_BIG, EMSGSIZE,
			ip_addr_is4(&m.dst) ? st->face.mtu : st->face.mtu6, now);
	else if (r)
		tcp_host_icmp(st->tcp, &o->tuple, o->seq, TCP_ICMP_SOFT, -r, 0, now);
}

void stack_tcp_out(struct stack *st, nsec_t now)
{
	struct tcp_out o;

	while (STAILQ_EMPTY(&st->out) && st->nself < SELF_MAX && tcp_host_out(st->tcp, &o, now))
		send_segment(st, &o, now);
}

/* ---- errors and time ---- */

void stack_tcp_error(struct stack *st, const struct ip_addr *src, const struct ip_addr *dst,
	const uint8_t *tcp, enum icmp_kind kind, int err, uint32_t mtu, nsec_t now)
{
	static const enum tcp_icmp kinds[] = {[ICMP_SOFT] = TCP_ICMP_SOFT,
		[ICMP_HARD] = TCP_ICMP_HARD,
		[ICMP_BIG] = TCP_ICMP_TOO_BIG};
	const struct tcp_tuple tuple = {
		.laddr = *src, .raddr = *dst, .lport = get_be16(tcp), .rport = get_be16(tcp + 2)};

	if (kind == ICMP_HARD)
		err = ECONNREFUSED; /* whoever refuses it: a connect was refused */
	tcp_host_icmp(st->tcp, &tuple, get_be32(tcp + 4), kinds[kind], err, mtu, now);
}

void stack_tcp_timer(struct stack *st, nsec_t now)
{
	if (tcp_host_deadline(st->tcp) <= now)
		tcp_host_timer(st->tcp, now);
}

nsec_t stack_tcp_deadline(const struct stack *st)
{
	return tcp_host_deadline(st->tcp);
}
