/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gro: first all frames of the burst are looked at in order, and those that continue an open flow are
 * linked behind its first; then each first one that got followers is written anew and gets the pieces
 * of all. So the order within a flow is kept, and a merged packet stands where its first one stood.
 *
 * Never merged: what the next in line could not take apart again into the same packets, but for the
 * checksums and, in IPv4, identifications that count up or stand still.
 */
#include "frame/gro.h"

#include <stdlib.h>

#include "frame/offload.h"
#include "frame/pkt.h"
#include "wire/csum.h"
#include "wire/ip4.h"
#include "wire/ip6.h"
#include "wire/tcp.h"
#include "wire/udp.h"

#define NONE       0xff
#define GRO_IOV    (BURST_IOV + 2 * BURST_FRAMES)
#define IP_MAX     65535
#define UDP_TRAIN  64 /* datagrams */
#define TCP_BREAK  (TCP_SYN | TCP_RST | TCP_URG | TCP_CWR)
#define TCP_LAST   (TCP_FIN | TCP_PSH)
#define PROTO_TCP  6
#define ID_UNKNOWN 0
#define ID_COUNTS  1
#define ID_STANDS  2

struct held {
	uint64_t key;
	uint8_t first, last, count; /* frames, by index; count 0: free */
	bool open;
	uint8_t id_rule;
	uint16_t id;          /* of the last one */
	uint32_t seq;         /* expected next */
	uint32_t size, total; /* payload of the first; of all */
	uint8_t flags;        /* FIN and PSH of the last */
};

struct gro {
	uint64_t secret;
	unsigned nheld, turn;
	struct held held[BURST_FRAMES]; /* in order of their firsts; all of the burst */
	uint8_t open[GRO_HELD];         /* indices into held */
	unsigned nopen;
	uint8_t next[BURST_FRAMES];
	unsigned niov;
	struct iovec iov[GRO_IOV];
};

/* A frame as it is compared. */
struct look {
	const uint8_t *ip, *l4;
	const struct hdrs *h;
	uint32_t payload;
	uint64_t key;
};

struct gro *gro_new(void)
{
	return calloc(1, sizeof(struct gro));
}

void gro_free(struct gro *g)
{
	free(g);
}

void gro_seed(struct gro *g, uint64_t secret)
{
	g->secret = secret;
}

static uint64_t mix(uint64_t h, const uint8_t *p, unsigned n)
{
	for (; n >= 4; n -= 4, p += 4) {
		h = (h ^ get_be32(p)) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	return h;
}

static struct look look_at(const struct gro *g, const struct frame *f, const struct hdrs *h)
{
	struct look k = {f->head + h->l3, f->head + h->l4, h, frame_len(f) - h->payload, 0};

	k.key = mix(g->secret + h->proto, k.l4, 4);
	k.key = h->ip == 4 ? mix(k.key, k.ip + 12, 8) : mix(k.key, k.ip + 8, 32);
	return k;
}

/* The key only sorts out; this decides. */
static bool same_flow(const struct look *a, const struct look *b)
{
	if (a->key != b->key || a->h->ip != b->h->ip || a->h->proto != b->h->proto ||
		memcmp(a->l4, b->l4, 4))
		return false;
	return a->h->ip == 4 ? !memcmp(a->ip + 12, b->ip + 12, 8)
			     : !memcmp(a->ip + 8, b->ip + 8, 32);
}

/* ---- may it be merged at all ---- */

static bool plain_ip(const struct frame *f, const struct look *k)
{
	const struct hdrs *h = k->h;

	if (h->fragment || h->ip6_ext || f->off.gso || h->ip_len != frame_len(f) - h->l3)
		return false;
	return h->ip == 4 ? h->l4 - h->l3 == IP4_HLEN && !(get_be16(k->ip + 6) & 0x8000)
			  : h->l4 - h->l3 == IP6_HLEN;
}

static bool eligible(const struct frame *f, const struct look *k, uint8_t kind)
{
	if (!plain_ip(f, k) || !k->payload)
		return false;
	if (kind == GRO_TCP)
		return !(k->l4[13] & TCP_BREAK) && (k->l4[13] & TCP_ACK);
	return get_be16(k->l4 + 4) == k->payload + UDP_HLEN && get_be16(k->l4 + UDP_CSUM);
}

/* ---- does it continue what is held ---- */

static bool same_ip(const struct look *a, const struct look *b)
{
	if (a->h->l3 != b->h->l3 || a->h->payload != b->h->payload ||
		memcmp(a->ip - 14, b->ip - 14, 14))
		return false;
	if (a->h->ip == 4) /* TOS; DF; TTL */
		return a->ip[1] == b->ip[1] && a->ip[6] == b->ip[6] && a->ip[8] == b->ip[8];
	return !memcmp(a->ip, b->ip, 4) && a->ip[7] == b->ip[7];
}

static bool id_continues(const struct held *p, const struct look *s, uint8_t *rule)
{
	uint16_t id;

	if (s->h->ip != 4)
		return true;
	id = get_be16(s->ip + 4);
	if (id == (uint16_t)(p->id + 1))
		*rule = ID_COUNTS;
	else if (id == p->id && (s->ip[6] & (IP4_DF >> 8)))
		*rule = ID_STANDS;
	else
		return false;
	return p->id_rule == ID_UNKNOWN || p->id_rule == *rule;
}

static bool tcp_continues(const struct held *p, const struct look *a, const struct look *s)
{
	const unsigned hlen = s->h->payload - s->h->l4;

	return get_be32(s->l4 + 4) == p->seq && !memcmp(a->l4 + 8, s->l4 + 8, 5) &&
	       !((a->l4[13] ^ s->l4[13]) & ~TCP_LAST) && !memcmp(a->l4 + 14, s->l4 + 14, 2) &&
	       !memcmp(a->l4 + TCP_HLEN, s->l4 + TCP_HLEN, hlen - TCP_HLEN);
}

static bool continues(
	const struct held *p, const struct look *a, const struct look *s, uint8_t *rule)
{
	if (!same_ip(a, s) || s->payload > p->size ||
		p->total + s->payload + s->h->payload - s->h->l3 > IP_MAX ||
		!id_continues(p, s, rule))
		return false;
	if (s->h->proto == PROTO_TCP)
		return tcp_continues(p, a, s);
	return p->count < UDP_TRAIN;
}

/* ---- the first pass ---- */

static void held_new(struct gro *g, unsigned i, const struct look *k)
{
	const bool tcp = k->h->proto == PROTO_TCP;
	struct held *p = &g->held[g->nheld];

	*p = (struct held){.key = k->key, .first = (uint8_t)i, .last = (uint8_t)i, .count = 1};
	p->size = p->total = k->payload;
	p->id = k->h->ip == 4 ? get_be16(k->ip + 4) : 0;
	p->seq = tcp ? get_be32(k->l4 + 4) + k->payload : 0;
	p->open = !tcp || !(k->l4[13] & TCP_LAST);
	if (g->nopen < GRO_HELD) {
		g->open[g->nopen++] = (uint8_t)g->nheld;
	} else {
		g->open[g->turn] = (uint8_t)g->nheld;
		g->turn = (g->turn + 1) % GRO_HELD;
	}
	g->nheld++;
}

static void held_append(
	struct gro *g, struct held *p, unsigned i, const struct look *s, uint8_t rule)
{
	g->next[p->last] = (uint8_t)i;
	p->last = (uint8_t)i;
	p->count++;
	p->total += s->payload;
	p->seq += s->payload;
	p->id_rule = rule;
	p->id = s->h->ip == 4 ? get_be16(s->ip + 4) : 0;
	if (s->h->proto == PROTO_TCP)
		p->flags = s->l4[13] & TCP_LAST;
	p->open = s->payload == p->size && !p->flags;
}

/* The open one of this flow: its place in open[], or nopen. */
static unsigned find_open(const struct gro *g, const struct frame *f, const struct hdrs *const *h,
	const struct look *k)
{
	unsigned at;

	for (at = 0; at < g->nopen; at++) {
		const struct held *p = &g->held[g->open[at]];
		struct look a;

		if (p->key != k->key)
			continue;
		a = look_at(g, &f[p->first], h[p->first]);
		if (same_flow(&a, k))
			break;
	}
	return at;
}

/* True: it is gone into another. */
static bool take(
	struct gro *g, struct frame *f, const struct hdrs *const *h, uint8_t kind, unsigned i)
{
	const struct look k = look_at(g, &f[i], h[i]);
	const unsigned at = find_open(g, f, h, &k);
	const bool good = kind != GRO_FLOW && eligible(&f[i], &k, kind);

	if (at < g->nopen) {
		struct held *p = &g->held[g->open[at]];
		const struct look a = look_at(g, &f[p->first], h[p->first]);
		uint8_t rule = ID_UNKNOWN;

		if (good && p->open && continues(p, &a, &k, &rule)) {
			held_append(g, p, i, &k, rule);
			return true;
		}
		g->open[at] = g->open[--g->nopen];
		if (g->turn >= g->nopen)
			g->turn = 0;
	}
	if (good)
		held_new(g, i, &k);
	return false;
}

/* ---- the second pass ---- */

static void add_piece(struct gro *g, void *base, size_t len)
{
	if (len)
		g->iov[g->niov++] = (struct iovec){base, len};
}

/*
 * The payload in the private head lies in the packet behind the frame, too, before the tail: then the
 * whole can be kept by reference. Where it does; NULL: it does not.
 */
static uint8_t *before_tail(const struct frame *f, uint32_t payload)
{
	const struct pkt *p = f->backing;
	uint8_t *tail = f->ntail ? f->tail[0].iov_base : NULL;
	uint32_t at;

	if (!p || !tail || f->head_len <= payload)
		return NULL;
	at = p->head_len;
	for (unsigned i = 0; i < p->nfrag && at <= payload; at += p->frag[i++].len) {
		uint8_t *data = p->frag[i].data + (payload - at);

		if (f->head_len - at < p->frag[i].len && data + (f->head_len - payload) == tail)
			return data;
	}
	return NULL;
}

static void add_payload(struct gro *g, const struct frame *f, uint32_t payload)
{
	uint8_t *data = before_tail(f, payload);
	unsigned k = 0;

	if (data) {
		add_piece(g, data, (size_t)f->head_len - payload + f->tail[0].iov_len);
		k = 1;
	} else {
		add_piece(g, f->head + payload, (size_t)f->head_len - payload);
	}
	for (; k < f->ntail; k++)
		add_piece(g, f->tail[k].iov_base, f->tail[k].iov_len);
}

/* What the memory behind its payload was charged. */
static uint32_t charge_of(const struct frame *f)
{
	return f->backing ? f->backing->truesize - f->backing->head_cap : frame_len(f);
}

/* All payload becomes tail: what lies in heads, too. */
static void join_pieces(
	struct gro *g, struct frame *f, const struct hdrs *const *h, const struct held *p)
{
	struct frame *first = &f[p->first];
	const unsigned from = g->niov;
	uint32_t charge = 0;

	for (uint8_t i = p->first; i != NONE; i = g->next[i]) {
		add_payload(g, &f[i], h[i]->payload);
		charge += charge_of(&f[i]);
	}
	first->charge = charge;
	first->head_len = h[p->first]->payload;
	first->tail = &g->iov[from];
	first->ntail = (uint16_t)(g->niov - from);
	first->tail_len = p->total;
}

static void write_ip(uint8_t *ip, const struct hdrs *h, uint32_t len)
{
	if (h->ip == 4) {
		put_be16(ip + 2, (uint16_t)len);
		ip4_csum(ip);
	} else {
		put_be16(ip + 4, (uint16_t)(len - IP6_HLEN));
	}
}

static void complete(struct frame *f, const struct hdrs *h, const struct held *p)
{
	uint8_t *ip = f->head + h->l3, *l4 = f->head + h->l4;
	const bool tcp = h->proto == PROTO_TCP;
	const uint32_t l4_len = frame_len(f) - h->l4;
	struct csum c = {0};

	write_ip(ip, h, frame_len(f) - h->l3);
	if (tcp)
		l4[13] |= p->flags;
	else
		put_be16(l4 + 4, (uint16_t)l4_len);
	if (h->ip == 4)
		csum_pseudo4(&c, ip + 12, ip + 16, h->proto, l4_len);
	else
		csum_pseudo6(&c, ip + 8, ip + 24, h->proto, l4_len);
	f->off = (struct offload){.flags = OFF_NEEDS_CSUM,
		.gso = tcp ? (h->ip == 4 ? OFF_GSO_TCPV4 : OFF_GSO_TCPV6) : OFF_GSO_UDP_L4,
		.gso_size = (uint16_t)p->size,
		.csum_start = h->l4,
		.csum_off = tcp ? TCP_CSUM : UDP_CSUM,
		.hdr_len = h->payload};
	put_be16(l4 + f->off.csum_off, csum_fold(&c));
}

unsigned gro_burst(
	struct gro *g, struct frame *f, const struct hdrs *const *h, uint8_t *kind, unsigned n)
{
	unsigned gone = 0;

	g->nheld = g->nopen = g->turn = g->niov = 0;
	for (unsigned i = 0; i < n; i++) {
		g->next[i] = NONE;
		if (kind[i] == GRO_NO || !h[i]->l4 || !h[i]->payload)
			continue;
		if (take(g, f, h, kind[i], i)) {
			kind[i] = GRO_MERGED;
			gone++;
		}
	}
	for (unsigned i = 0; gone && i < g->nheld; i++) {
		const struct held *p = &g->held[i];

		if (p->count == 1)
			continue;
		join_pieces(g, f, h, p);
		complete(&f[p->first], h[p->first], p);
	}
	return gone;
}
