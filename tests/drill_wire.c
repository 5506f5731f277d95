/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_wire: the peer's side of an Ethernet: builds what comes to the host, takes apart what it
 * sends, byte by byte and with checksums of its own, and answers for its own address.
 */
#include "drill_wire.h"

#include "drill_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame/offload.h"
#include "net/stack.h"
#include "wire/arp.h"
#include "wire/csum.h"
#include "wire/eth.h"
#include "wire/icmp.h"
#include "wire/ip4.h"
#include "wire/ip6.h"
#include "wire/tcp.h"

#define PROTO_TCP   6
#define PROTO_ICMP4 1
#define PROTO_ICMP6 58

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, their_mac[6] = {2, 0, 0, 0, 0, 2};

struct wire {
	struct stack *stack;
	struct rings *rings; /* below the host; NULL: frames are handed to it */
	bool ip6;
	uint8_t laddr[16], raddr[16];
	struct frame_head head;
	struct burst b;
	uint8_t buf[FRAME_MAX + 1];
};

static void addr_bytes(const struct ip_addr *a, uint8_t out[16])
{
	bool v4 = ip_addr_is4(a);

	memset(out, 0, 16);
	memcpy(out, v4 ? a->b + 12 : a->b, v4 ? 4 : 16);
}

static int wire_open(struct wire *w, struct host *h, bool rings, struct err *err)
{
	struct stack_conf c = {
		.mtu = h->conf.mtu,
		.headroom = 64,
		.seed = h->conf.seed,
		.memory = 32u << 20,
		.no_auto = true,
		.no_dad = true,
		.no_ip6 = !w->ip6,
		.tcp = &h->conf,
	};
	int r = rings ? rings_new(&w->rings, h->conf.mtu, h->now, err) : 0;

	if (r)
		return r;
	memcpy(c.mac, our_mac, 6);
	memcpy(c.secret, h->conf.secret, sizeof(c.secret));
	c.pool = rings ? rings_pkts(w->rings) : NULL;
	r = stack_new(&w->stack, &c, h->now, err);
	if (r)
		return r;
	r = stack_add_addr(w->stack, &h->laddr, w->ip6 ? 64 : 96 + 24, h->now, err);
	return !r && rings ? rings_attach(w->rings, w->stack, err) : r;
}

int wire_new(struct wire **out, struct host *h, bool ip6, bool rings, struct err *err)
{
	struct wire *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->ip6 = ip6;
	addr_bytes(&h->laddr, w->laddr);
	addr_bytes(&h->raddr, w->raddr);
	r = wire_open(w, h, rings, err);
	if (r)
		return r; /* the program ends with it: a script cannot make this fail */
	h->tcp = stack_tcp(w->stack);
	h->pkts = stack_pkts(w->stack);
	*out = w;
	return 0;
}

void wire_free(struct wire *w)
{
	if (w->rings)
		rings_detach(w->rings);
	stack_free(w->stack);
	if (w->rings)
		rings_free(w->rings);
	free(w);
}

nsec_t wire_deadline(const struct wire *w)
{
	return stack_deadline(w->stack);
}

void wire_timer(struct wire *w, nsec_t now)
{
	if (w->rings)
		rings_run(w->rings, now);
	else
		stack_timer(w->stack, now);
}

/* ---- in ---- */

static void frame_in(struct wire *w, uint32_t len, nsec_t now)
{
	uint32_t head = len < FRAME_HEAD ? len : FRAME_HEAD;
	struct iovec tail = {w->buf + head, len - head};
	struct frame f = {
		.head = w->head.data,
		.head_len = (uint16_t)head,
		.tail = &tail,
		.ntail = len > head,
		.tail_len = len - head,
	};

	memcpy(w->head.data, w->buf, head);
	if (w->rings)
		rings_in(w->rings, &f, now);
	else if (offload_check(&f) == DROP_NONE)
		stack_in(w->stack, &f, 1, now);
	memset(w->buf, 0xee, len); /* the loan is over */
}

/* Ethernet and IP before `len` bytes at the returned place; from the peer to us unless `back`. */
static uint8_t *headers(
	struct wire *w, uint8_t *at, uint8_t proto, uint8_t ecn, uint32_t len, bool back)
{
	const uint8_t *src = back ? w->laddr : w->raddr, *dst = back ? w->raddr : w->laddr;

	if (w->ip6) {
		struct ip6 ip = {.tclass = ecn, .next = proto, .hops = 64, .len = (uint16_t)len};

		memcpy(ip.src, src, 16);
		memcpy(ip.dst, dst, 16);
		ip6_build(&ip, at);
		return at + IP6_HLEN;
	}
	struct ip4 ip = {.tos = ecn,
		.ttl = 64,
		.proto = proto,
		.frag = IP4_DF,
		.len = (uint16_t)(IP4_HLEN + len)};

	memcpy(ip.src, src, 4);
	memcpy(ip.dst, dst, 4);
	ip4_build(&ip, at);
	return at + IP4_HLEN;
}

static uint8_t *eth_header(struct wire *w, uint16_t type)
{
	memcpy(w->buf, our_mac, 6);
	memcpy(w->buf + 6, their_mac, 6);
	put_be16(w->buf + 12, type);
	return w->buf + ETH_HLEN;
}

static uint16_t sum_of(
	const struct wire *w, bool back, uint8_t proto, const uint8_t *p, uint32_t len)
{
	const uint8_t *src = back ? w->laddr : w->raddr, *dst = back ? w->raddr : w->laddr;
	struct csum c = {0};

	if (w->ip6)
		csum_pseudo6(&c, src, dst, proto, len);
	else
		csum_pseudo4(&c, src, dst, proto, len);
	csum_piece(&c, p, len);
	return csum_end(&c);
}

void wire_in(struct wire *w, struct host *h, const struct tcp_tuple *t, const struct seg *s,
	const uint8_t *opt, unsigned opt_len, nsec_t now)
{
	uint32_t len = TCP_HLEN + opt_len + s->len;
	struct tcp_hdr hdr = {
		.sport = t->rport,
		.dport = t->lport,
		.seq = s->seq,
		.ack = s->ack,
		.hlen = (uint8_t)(TCP_HLEN + opt_len),
		.flags = s->flags,
		.wnd = s->win,
		.urg = s->urg,
	};
	uint8_t *p = eth_header(w, w->ip6 ? ETH_TYPE_IP6 : ETH_TYPE_IP4);

	p = headers(w, p, PROTO_TCP, s->ecn == ECN_ANY ? 0 : s->ecn, len, false);
	tcp_hdr_build(&hdr, p);
	memcpy(p + TCP_HLEN, opt, opt_len);
	memcpy(p + TCP_HLEN + opt_len, h->buf, s->len);
	put_be16(p + TCP_CSUM, sum_of(w, false, PROTO_TCP, p, len));
	frame_in(w, (uint32_t)(p - w->buf) + len, now);
}

/* A router's or the peer's message about a packet of ours: its IP header and 20 bytes more. */
void wire_icmp(struct wire *w, struct host *h, const struct tcp_tuple *t, const struct quote *q,
	uint32_t seq, nsec_t now)
{
	uint32_t ip_len = w->ip6 ? IP6_HLEN : IP4_HLEN, len = ICMP_HLEN + ip_len + TCP_HLEN;
	struct tcp_hdr hdr = {.sport = t->lport, .dport = t->rport, .seq = seq, .hlen = TCP_HLEN};
	struct icmp m = {.type = q->type, .code = q->code, .rest = q->mtu};
	uint8_t *p = eth_header(w, w->ip6 ? ETH_TYPE_IP6 : ETH_TYPE_IP4), *quoted;
	uint8_t proto = w->ip6 ? PROTO_ICMP6 : PROTO_ICMP4;
	struct csum c = {0};

	(void)h;
	if (w->ip6 && q->type == ICMP6_PARAM)
		m.rest = 6; /* the field it complains about: the next header */
	p = headers(w, p, proto, 0, len, false);
	icmp_build(&m, p);
	quoted = headers(w, p + ICMP_HLEN, PROTO_TCP, 0, TCP_HLEN + q->len, true);
	tcp_hdr_build(&hdr, quoted);
	put_be16(p + 2, 0);
	csum_piece(&c, p, len);
	put_be16(p + 2, w->ip6 ? sum_of(w, false, proto, p, len) : csum_end(&c));
	frame_in(w, (uint32_t)(p - w->buf) + len, now);
}

/* ---- out ---- */

static void answer_arp(struct wire *w, nsec_t now)
{
	uint8_t *p = w->buf + ETH_HLEN, ip[4];

	if (get_be16(p + 6) != 1 || memcmp(p + 24, w->raddr, 4) != 0)
		return;
	memcpy(ip, p + 14, 4);
	eth_header(w, ETH_TYPE_ARP);
	put_be16(p + 6, 2);
	memcpy(p + 18, our_mac, 6);
	memcpy(p + 24, ip, 4);
	memcpy(p + 8, their_mac, 6);
	memcpy(p + 14, w->raddr, 4);
	frame_in(w, ETH_HLEN + 28, now);
}

static void answer_ns(struct wire *w, nsec_t now)
{
	uint8_t *ip = w->buf + ETH_HLEN, *p = ip + IP6_HLEN;

	if (p[0] != ICMP6_NS || memcmp(p + 8, w->raddr, 16) != 0)
		return;
	eth_header(w, ETH_TYPE_IP6);
	headers(w, ip, PROTO_ICMP6, 0, 32, false);
	ip[7] = 255;
	memset(p, 0, 32);
	p[0] = ICMP6_NA;
	p[4] = 0x60; /* solicited, override */
	memcpy(p + 8, w->raddr, 16);
	ndp_build_mac(p + 24, NDP_DST_MAC, their_mac);
	put_be16(p + 2, sum_of(w, false, PROTO_ICMP6, p, 32));
	frame_in(w, ETH_HLEN + IP6_HLEN + 32, now);
}

/* The packet as bytes in w->buf; 0: nothing to send. */
static uint32_t next_packet(struct wire *w, struct host *h, struct offload *off, nsec_t now)
{
	struct frame *f = &w->b.f[0];
	struct iovec to = {w->buf, FRAME_MAX};
	struct pkt *p;
	uint32_t len;

	if (w->rings)
		return rings_out(w->rings, w->buf, off, now);
	p = stack_out(w->stack, now);
	if (!p)
		return 0;
	if (!pkt_lend(p, f, &w->b.head[0], w->b.iov, BURST_IOV) || frame_len(f) > FRAME_MAX ||
		offload_check(f) != DROP_NONE) {
		h->broken = "a packet went out that no port would take";
		pkt_free(p);
		return 0;
	}
	len = frame_len(f);
	frame_copy(f, 0, len, &to, 1, 0);
	*off = f->off;
	pkt_free(p);
	return len;
}

/* The checksum is right, or will be when the receiver's side has finished it. */
static bool tcp_sum_right(
	const struct wire *w, const uint8_t *p, uint32_t len, const struct offload *off)
{
	struct csum c = {0};

	if (!(off->flags & OFF_NEEDS_CSUM))
		return sum_of(w, true, PROTO_TCP, p, len) == 0;
	if (w->ip6)
		csum_pseudo6(&c, w->laddr, w->raddr, PROTO_TCP, len);
	else
		csum_pseudo4(&c, w->laddr, w->raddr, PROTO_TCP, len);
	return get_be16(p + TCP_CSUM) == csum_fold(&c);
}

/* Where TCP begins in w->buf and how long it is; NULL: something else, which was seen to. */
static const uint8_t *find_tcp(struct wire *w, struct host *h, uint32_t len, uint32_t *tcp_len,
	struct host_out *out, nsec_t now)
{
	const uint8_t *ip = w->buf + ETH_HLEN;
	uint16_t type = get_be16(w->buf + 12);
	struct ip4 i4;
	struct ip6 i6;

	if (type == ETH_TYPE_ARP)
		answer_arp(w, now);
	if (type == ETH_TYPE_IP4 && ip4_parse(ip, len - ETH_HLEN, &i4) && i4.proto == PROTO_TCP) {
		struct csum c = {0};

		csum_piece(&c, ip, i4.hlen);
		if (csum_end(&c) || i4.len != len - ETH_HLEN)
			h->broken = "an IP header with a wrong checksum or length";
		out->seg.ecn = i4.tos & 3;
		out->ip_id = get_be16(ip + 4);
		out->df = ip[6] >> 6 & 1;
		*tcp_len = i4.len - i4.hlen;
		return ip + i4.hlen;
	}
	if (type != ETH_TYPE_IP6 || !ip6_parse(ip, len - ETH_HLEN, &i6))
		return NULL;
	if (i6.next == PROTO_ICMP6)
		answer_ns(w, now);
	if (i6.next != PROTO_TCP)
		return NULL;
	if (i6.len != len - ETH_HLEN - IP6_HLEN)
		h->broken = "an IPv6 header with a wrong length";
	out->seg.ecn = i6.tclass & 3;
	out->flow = i6.flow;
	*tcp_len = i6.len;
	return ip + IP6_HLEN;
}

bool wire_out(struct wire *w, struct host *h, struct host_out *out, uint8_t opt[40],
	unsigned *opt_len, nsec_t now)
{
	const uint8_t *p = NULL;
	struct tcp_hdr t;
	struct offload off;
	uint32_t len, n = 0;

	out->ip_id = out->df = -1;
	while (!p) {
		len = next_packet(w, h, &off, now);
		if (!len)
			return false;
		p = find_tcp(w, h, len, &n, out, now);
	}
	t = tcp_hdr_parse(p);
	if (!tcp_sum_right(w, p, n, &off))
		h->broken = "a TCP checksum is wrong";
	*opt_len = t.hlen - TCP_HLEN;
	memcpy(opt, p + TCP_HLEN, *opt_len);
	out->tuple = (struct tcp_tuple){h->laddr, h->raddr, t.sport, t.dport};
	out->gso_size = off.gso ? off.gso_size : 0;
	out->seg = (struct seg){
		.flags = t.flags,
		.has_ack = t.flags & ACK,
		.has_win = true,
		.ecn = out->seg.ecn,
		.win = t.wnd,
		.seq = t.seq,
		.len = n - t.hlen,
		.ack = t.ack,
	};
	out->data = malloc(out->seg.len + 1);
	memcpy(out->data, p + t.hlen, out->seg.len);
	return true;
}
