/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icmp: echo, errors to others by the rules of when not, errors from others to whom they are about.
 * Redirects and source quench are ignored. Nothing is believed that does not quote a packet that this
 * host may have sent: UDP asks for a socket of the quoted ports, TCP for a sequence number in flight.
 * [RFC 1122 3.2.2, RFC 4443 2.4, RFC 5927, RFC 6633]
 */
#include "wire/icmp.h"

#include <errno.h>

#include "net/siphash.h"
#include "net/stack_int.h"
#include "wire/csum.h"

#define QUOTE4 (576 - IP4_HLEN - ICMP_HLEN)
#define QUOTE6 (IP6_MTU_MIN - IP6_HLEN - ICMP_HLEN)

/* ---- how many ---- */

bool icmp_may_error(struct icmp_limits *l, const struct ip_addr *dst, struct rand *r, nsec_t now)
{
	const unsigned i = siphash(l->key, dst, sizeof(*dst)) % ICMP_BUCKETS;

	return bucket_take(&l->error[i], ICMP_BURST, ICMP_REFILL, r, now);
}

bool icmp_may_echo(struct icmp_limits *l, const struct ip_addr *dst, struct rand *r, nsec_t now)
{
	const unsigned i = siphash(l->key, dst, sizeof(*dst)) % ICMP_BUCKETS;

	return bucket_take(&l->echo[i], ICMP_ECHO_BURST, ICMP_ECHO_NS, r, now);
}

/* ---- sending ---- */

/* The message is complete but for its checksum. */
static int send(struct stack *st, struct pkt *p, const struct ip_addr *src,
	const struct ip_addr *dst, uint8_t tos, const struct iovec *body, unsigned nbody,
	nsec_t now)
{
	const bool ip4 = ip_addr_is4(dst);
	const struct ip_meta m = {.src = *src,
		.dst = *dst,
		.proto = ip4 ? IP_PROTO_ICMP : IP_PROTO_ICMP6,
		.tos = tos,
		.fragment = true};
	struct csum c = {0};

	if (!ip4)
		csum_pseudo6(&c, src->b, dst->b, m.proto, p->len);
	put_be16(p->head + 2, 0);
	csum_piece(&c, p->head, ICMP_HLEN);
	for (unsigned i = 0; i < nbody; i++)
		csum_piece(&c, body[i].iov_base, body[i].iov_len);
	put_be16(p->head + 2, csum_end(&c));
	return stack_send(st, p, &m, now);
}

static bool is_error(uint8_t version, uint8_t type)
{
	if (version == 6)
		return type < 128;
	return type != ICMP4_ECHO && type != ICMP4_ECHO_REPLY && type != 9 && type != 10 &&
	       type != 13 && type != 14;
}

/* Nobody is told of an error in an error, of what went to many, or comes from nobody. */
static bool may_tell(const struct rx *rx)
{
	const bool is_icmp = rx->proto == (rx->h.ip == 4 ? IP_PROTO_ICMP : IP_PROTO_ICMP6);
	/* extension headers may be what is wrong: then only the first pass knows what they hide */
	const uint16_t l4 = rx->l4 ? rx->l4 : rx->h.l4;

	if (rx->group || rx->self || ip_addr_any(&rx->src) || ip_addr_martian(&rx->src))
		return false;
	if (rx->fragment && rx->frag.offset)
		return false;
	if (is_icmp && l4 &&
		(l4 >= rx->f->head_len || is_error(rx->h.ip, rx->f->head[l4]) ||
			(rx->h.ip == 6 && rx->f->head[l4] == ICMP6_REDIRECT)))
		return false;
	return true;
}

void icmp_error(struct stack *st, const struct rx *rx, uint8_t type, uint8_t code, uint32_t rest,
	nsec_t now)
{
	const struct icmp h = {.type = type, .code = code, .rest = rest};
	const uint32_t most = rx->h.ip == 4 ? QUOTE4 : QUOTE6;
	uint32_t len = frame_len(rx->f) - rx->h.l3;
	struct ip_addr src = rx->dst;
	struct iovec body;
	struct pkt *p;

	if (!may_tell(rx))
		return;
	if (!iface_find(&st->face, &src) && !iface_source(&st->face, &rx->src, &src, now))
		return;
	if (!icmp_may_error(&st->limits, &rx->src, &st->rand, now)) {
		st->stat.icmp_limited++;
		return;
	}
	if (len > most)
		len = most;
	p = stack_pkt(st, &rx->src, ICMP_HLEN + len);
	if (!p)
		return;
	icmp_build(&h, p->head);
	body = (struct iovec){p->head + ICMP_HLEN, len};
	frame_copy(rx->f, rx->h.l3, len, &body, 1, 0);
	st->stat.icmp_errors++;
	send(st, p, &src, &rx->src, 0, &body, 1, now);
}

/* ---- echo ---- */

static void echo_in(struct stack *st, const struct rx *rx, nsec_t now)
{
	const uint32_t len = rx->l4_len - ICMP_HLEN;
	struct icmp h = {.type = rx->h.ip == 4 ? ICMP4_ECHO_REPLY : ICMP6_ECHO_REPLY,
		.rest = get_be32(rx->f->head + rx->l4 + 4)};
	struct iovec to[PKT_FRAGS + 1];
	struct pkt *p;
	unsigned nto;

	if (rx->group || ip_addr_any(&rx->src))
		return;
	if (!icmp_may_echo(&st->limits, &rx->src, &st->rand, now)) {
		st->stat.icmp_limited++;
		return;
	}
	p = stack_pkt_long(st, &rx->src, ICMP_HLEN, len, to, &nto);
	if (!p)
		return;
	icmp_build(&h, p->head);
	if (len)
		frame_copy(rx->f, rx->l4 + ICMP_HLEN, len, to, nto, 0);
	st->stat.echo_replies++;
	send(st, p, &rx->dst, &rx->src, rx->tos, to, nto, now);
}

static void pong_in(struct stack *st, const struct rx *rx)
{
	const uint32_t rest = get_be32(rx->f->head + rx->l4 + 4);

	if (st->pong)
		st->pong(st->pong_ctx, &rx->src, (uint16_t)(rest >> 16), (uint16_t)rest,
			rx->l4_len - ICMP_HLEN);
}

int stack_ping(struct stack *st, const struct ip_addr *dst, uint16_t id, uint16_t seq, uint32_t len,
	nsec_t now)
{
	const struct icmp h = {.type = ip_addr_is4(dst) ? ICMP4_ECHO : ICMP6_ECHO,
		.rest = (uint32_t)id << 16 | seq};
	struct iovec to[PKT_FRAGS + 1];
	struct ip_addr src;
	struct pkt *p;
	unsigned nto;
	uint32_t mtu;
	int r = stack_route(st, dst, &src, &mtu, now);

	if (r)
		return r;
	if (len > 65535 - 20 - ICMP_HLEN)
		return -EMSGSIZE;
	p = stack_pkt_long(st, dst, ICMP_HLEN, len, to, &nto);
	if (!p)
		return -ENOBUFS;
	icmp_build(&h, p->head);
	for (unsigned i = 0; i < nto; i++)
		memset(to[i].iov_base, 0x5a, to[i].iov_len);
	return send(st, p, &src, dst, 0, to, nto, now);
}

void stack_on_pong(struct stack *st,
	void (*pong)(
		void *ctx, const struct ip_addr *from, uint16_t id, uint16_t seq, uint32_t len),
	void *ctx)
{
	st->pong = pong;
	st->pong_ctx = ctx;
}

/* ---- errors from others ---- */

/* What an error says, in the words of sockets. */
struct verdict {
	enum icmp_kind kind;
	int err;
	uint32_t mtu;
};

/* No such protocol or port, or somebody on the way forbids it: trying again is of no use. */
static bool hard4(uint8_t code)
{
	return code == ICMP4_PROTO || code == ICMP4_PORT || code == 9 || code == 10 || code == 13;
}

static bool verdict4(const struct icmp *h, struct verdict *v)
{
	static const int unreach[] = {ENETUNREACH, EHOSTUNREACH, ENOPROTOOPT, ECONNREFUSED};

	if (h->type == ICMP4_TIME || h->type == ICMP4_PARAM) {
		*v = (struct verdict){ICMP_SOFT, h->type == ICMP4_TIME ? EHOSTUNREACH : EPROTO, 0};
		return true;
	}
	if (h->type != ICMP4_UNREACH)
		return false;
	if (h->code == ICMP4_FRAG_NEEDED)
		*v = (struct verdict){ICMP_BIG, EMSGSIZE, h->rest & 0xffff};
	else
		*v = (struct verdict){hard4(h->code) ? ICMP_HARD : ICMP_SOFT,
			h->code < 4 ? unreach[h->code] : EHOSTUNREACH, 0};
	return true;
}

static bool verdict6(const struct icmp *h, struct verdict *v)
{
	switch (h->type) {
	case ICMP6_TOO_BIG:
		*v = (struct verdict){ICMP_BIG, EMSGSIZE, h->rest};
		return true;
	case ICMP6_UNREACH:
		*v = (struct verdict){h->code == ICMP6_PORT || h->code == 1 ? ICMP_HARD : ICMP_SOFT,
			h->code == ICMP6_PORT ? ECONNREFUSED
			: h->code == 1        ? EACCES
					      : EHOSTUNREACH,
			0};
		return true;
	case ICMP6_TIME:
		*v = (struct verdict){ICMP_SOFT, EHOSTUNREACH, 0};
		return true;
	case ICMP6_PARAM:
		*v = (struct verdict){h->code == ICMP6_NEXT ? ICMP_HARD : ICMP_SOFT, EPROTO, 0};
		return true;
	default:
		return false;
	}
}

/* The quoted packet: addresses, protocol, eight bytes of its upper header. */
static bool parse_quote(const struct rx *rx, struct ip_addr *src, struct ip_addr *dst,
	uint8_t *proto, const uint8_t **l4)
{
	const uint8_t *q = rx->f->head + rx->l4 + ICMP_HLEN;
	const uint32_t len = rx->f->head_len - rx->l4 - ICMP_HLEN;
	uint32_t hlen;

	if (rx->h.ip == 4) {
		hlen = len ? (q[0] & 15u) * 4 : 0;
		if (len < IP4_HLEN || q[0] >> 4 != 4 || hlen < IP4_HLEN ||
			(get_be16(q + 6) & IP4_OFFSET))
			return false;
		*src = ip_addr4(q + 12);
		*dst = ip_addr4(q + 16);
		*proto = q[9];
	} else {
		struct ip6_walk w;

		if (len < IP6_HLEN || q[0] >> 4 != 6 || ip6_walk(q, len, &w) != IP6_WALK_OK)
			return false;
		if (w.next == IP6_NEXT_FRAG &&
			(w.at + 8u > len || (get_be16(q + w.at + 2) & 0xfff8) ||
				ip6_walk_on(q, len, &w) != IP6_WALK_OK))
			return false;
		*src = ip_addr6(q + 8);
		*dst = ip_addr6(q + 24);
		*proto = w.next;
		hlen = w.at;
	}
	*l4 = q + hlen;
	return len >= hlen + 8;
}

static bool about_ours(struct stack *st, const struct rx *rx, const struct verdict *v, nsec_t now)
{
	struct ip_addr src, dst;
	const uint8_t *l4;
	uint8_t proto;

	if (!parse_quote(rx, &src, &dst, &proto, &l4) || !iface_find(&st->face, &src))
		return false;
	if (v->kind == ICMP_BIG && v->mtu < (rx->h.ip == 4 ? PMTU_MIN4 : PMTU_MIN6))
		return false;
	if (proto == IP_PROTO_TCP) {
		stack_tcp_error(st, &src, &dst, l4, v->kind, v->err, v->mtu, now);
		return true;
	}
	if (proto != IP_PROTO_UDP || !udp_error(st, &src, &dst, l4, v->kind, v->err))
		return false;
	return v->kind != ICMP_BIG || pmtu_learn(&st->pmtu, &dst, v->mtu,
					      rx->h.ip == 4 ? st->face.mtu : st->face.mtu6, now);
}

static void error_in(struct stack *st, const struct rx *rx, const struct icmp *h, nsec_t now)
{
	struct verdict v;

	if (rx->group || !(rx->h.ip == 4 ? verdict4(h, &v) : verdict6(h, &v)) ||
		!about_ours(st, rx, &v, now))
		st->stat.icmp_ignored++;
}

void icmp_in(struct stack *st, struct rx *rx, nsec_t now)
{
	struct icmp h;

	st->stat.icmp_in++;
	if (rx->l4 >= rx->f->head_len ||
		!icmp_parse(rx->f->head + rx->l4, rx->f->head_len - rx->l4, &h)) {
		st->stat.in_bad++;
		return;
	}
	if (h.type == (rx->h.ip == 4 ? ICMP4_ECHO : ICMP6_ECHO))
		echo_in(st, rx, now);
	else if (h.type == (rx->h.ip == 4 ? ICMP4_ECHO_REPLY : ICMP6_ECHO_REPLY))
		pong_in(st, rx);
	else if (rx->h.ip == 6 && h.type >= ICMP6_RS && h.type <= ICMP6_NA)
		ndp_in(st, rx, now);
	else if (is_error(rx->h.ip, h.type))
		error_in(st, rx, &h, now);
}
