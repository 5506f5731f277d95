/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_host: an engine, its memory, and segments to and from it. The segments are handed over as
 * the stack does: headers parsed, payload in a frame.
 */
#include "drill_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "drill_wire.h"

#define POOL_BYTES (32u << 20)
#define POOL_PKTS  4096

struct knob {
	const char *name;
	size_t at, size;
	nsec_t unit;
};

#define KNOB(f)                                                                                    \
	{                                                                                          \
#f, offsetof(struct tcp_conf, f), sizeof(((struct tcp_conf *)0)->f), 1             \
	}
#define KNOB_MS(f)                                                                                 \
	{                                                                                          \
#f "_ms", offsetof(struct tcp_conf, f), sizeof(nsec_t), NSEC_PER_MSEC              \
	}

static const struct knob knobs[] = {
	KNOB(mtu),
	KNOB(gso_max),
	KNOB(ecn),
	KNOB(no_sack),
	KNOB(no_ts),
	KNOB(no_ws),
	KNOB(rcvbuf),
	KNOB(sndbuf),
	KNOB(rcvbuf_max),
	KNOB(sndbuf_max),
	KNOB(wscale),
	KNOB(fixed_rcvbuf),
	KNOB(cubic),
	KNOB(push_at_mss),
	KNOB(frag_chunk),
	KNOB(no_autocork),
	KNOB(no_autosize),
	KNOB(no_tso),
	KNOB(no_pacing),
	KNOB(no_hystart),
	KNOB(no_frto),
	KNOB(no_tsq),
	KNOB(plain_delack),
	KNOB(drop_synfin),
	KNOB(ecn_retries),
	KNOB(always_cookies),
	KNOB(no_cookies),
	KNOB(syn_retries),
	KNOB(retries),
	KNOB(conns),
	KNOB(syns),
	KNOB(timewaits),
	KNOB_MS(delack),
	KNOB_MS(rto_min),
	KNOB_MS(timewait),
	KNOB_MS(finwait2),
};

bool host_knob(struct tcp_conf *conf, const char *text)
{
	size_t n = strcspn(text, "=");
	long long v = text[n] ? strtoll(text + n + 1, NULL, 0) : 1;

	for (unsigned i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		const struct knob *k = &knobs[i];
		uint8_t *at = (uint8_t *)conf + k->at;

		if (strlen(k->name) != n || strncmp(k->name, text, n) != 0)
			continue;
		if (k->size == 1)
			*at = (uint8_t)v;
		else if (k->size == sizeof(uint32_t))
			memcpy(at, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
		else
			memcpy(at, &(nsec_t){v * k->unit}, sizeof(nsec_t));
		return true;
	}
	return false;
}

static void addresses(struct host *h, bool ip6)
{
	static const uint8_t ours[16] = {0xfd, 0, 0, 7, [15] = 1},
			     theirs[16] = {0xfd, 0, 0, 7, [15] = 2};

	h->laddr = ip6 ? ip_addr6(ours) : ip_addr4("\xc0\x00\x02\x01");
	h->raddr = ip6 ? ip_addr6(theirs) : ip_addr4("\xc0\x00\x02\x02");
}

static int memory_init(struct host *h, struct err *err)
{
	int r = chunk_pool_init(&h->chunks, POOL_BYTES, err);

	if (r)
		return r;
	r = pkt_pool_init(&h->pool, &h->chunks, POOL_PKTS, err);
	if (r) {
		chunk_pool_fini(&h->chunks);
		return r;
	}
	h->pkts = h->conf.pool = &h->pool;
	h->tcp = tcp_host_new(&h->conf, err);
	if (h->tcp)
		return 0;
	pkt_pool_fini(&h->pool);
	chunk_pool_fini(&h->chunks);
	return -ENOMEM;
}

int host_init(struct host *h, const struct tcp_conf *conf, bool ip6, enum host_via via,
	uint64_t seed, nsec_t now, struct err *err)
{
	struct rand rand;
	int r;

	memset(h, 0, sizeof(*h));
	addresses(h, ip6);
	h->conf = *conf;
	h->now = now;
	rand_init(&rand, seed);
	for (unsigned i = 0; i < sizeof(h->conf.secret); i++)
		h->conf.secret[i] = (uint8_t)rand_u64(&rand);
	h->conf.seed = rand_u64(&rand);
	h->buf = malloc(HOST_BUF);
	r = via == VIA_ENGINE ? memory_init(h, err)
			      : wire_new(&h->wire, h, ip6, via == VIA_RINGS, err);
	if (r)
		free(h->buf);
	return r;
}

void host_fini(struct host *h)
{
	if (h->wire) {
		wire_free(h->wire);
	} else {
		tcp_host_free(h->tcp);
		pkt_pool_fini(&h->pool);
		chunk_pool_fini(&h->chunks);
	}
	free(h->buf);
}

nsec_t host_deadline(const struct host *h)
{
	return h->wire ? wire_deadline(h->wire) : tcp_host_deadline(h->tcp);
}

void host_timer(struct host *h, nsec_t now)
{
	if (h->wire)
		wire_timer(h->wire, now);
	else
		tcp_host_timer(h->tcp, now);
}

/* options to and from bytes */

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned opt_build(const struct opt *o, uint8_t *p)
{
	p[0] = (uint8_t)o->kind;
	switch (o->kind) {
	case OPT_EOL:
	case OPT_NOP:
		return 1;
	case OPT_MSS:
		p[1] = 4;
		p[2] = (uint8_t)(o->v[0] >> 8);
		p[3] = (uint8_t)o->v[0];
		return 4;
	case OPT_WSCALE:
		p[1] = 3;
		p[2] = (uint8_t)o->v[0];
		return 3;
	case OPT_SACK_OK:
		p[1] = 2;
		return 2;
	case OPT_TS:
	case OPT_SACK:
		p[1] = (uint8_t)(2 + 4 * o->n);
		for (unsigned i = 0; i < o->n; i++)
			put32(p + 2 + 4 * i, o->v[i]);
		return p[1];
	default:
		memcpy(p, o->raw, o->n);
		return o->n;
	}
}

/* As written, filled up with EOL; what is beyond 40 bytes is cut off. */
static unsigned opts_build(const struct opts *opts, uint8_t out[40])
{
	uint8_t all[OPTS_MAX * 40] = {0};
	unsigned n = 0;

	for (unsigned i = 0; i < opts->n; i++)
		n += opt_build(&opts->o[i], all + n);
	n = (n + 3) & ~3u;
	n = n > 40 ? 40 : n;
	memcpy(out, all, n);
	return n;
}

static void opt_parse(struct opt *o, const uint8_t *p, unsigned len)
{
	o->kind = p[0];
	o->n = 0;
	if (p[0] == OPT_MSS && len == 4)
		o->v[o->n++] = (uint32_t)p[2] << 8 | p[3];
	else if (p[0] == OPT_WSCALE && len == 3)
		o->v[o->n++] = p[2];
	else if ((p[0] == OPT_TS && len == 10) || (p[0] == OPT_SACK && len >= 10 && len % 8 == 2))
		for (unsigned at = 2; at + 4 <= len; at += 4)
			o->v[o->n++] = get32(p + at);
	else if (p[0] != OPT_SACK_OK || len != 2) {
		o->kind = OPT_RAW;
		o->n = len;
		memcpy(o->raw, p, len);
	}
}

static void opts_parse(struct opts *opts, const uint8_t *p, unsigned n)
{
	opts->n = 0;
	for (unsigned at = 0, len; at < n && opts->n < OPTS_MAX; at += len) {
		struct opt *o = &opts->o[opts->n++];

		len = p[at] <= OPT_NOP ? 1 : at + 1 < n && p[at + 1] >= 2 ? p[at + 1] : n - at;
		if (len > n - at)
			len = n - at;
		if (p[at] <= OPT_NOP)
			o->kind = p[at];
		else
			opt_parse(o, p + at, len);
	}
}

/* segments */

void host_in(struct host *h, const struct tcp_tuple *tuple, const struct seg *s, uint32_t pos,
	nsec_t now)
{
	struct frame_head head;
	struct iovec tail = {h->buf, s->len};
	struct frame f = {
		.head = head.data, .head_len = 54, .tail = &tail, .ntail = 1, .tail_len = s->len};
	uint8_t opt[40];
	struct tcp_seg seg = {
		.tuple = *tuple,
		.seq = s->seq,
		.ack = s->ack,
		.wnd = s->win,
		.urg = s->urg,
		.flags = s->flags,
		.ecn = s->ecn == ECN_ANY ? 0 : s->ecn,
		.opt = opt,
		.opt_len = (uint8_t)opts_build(&s->opts, opt),
		.frame = s->len ? &f : NULL,
		.off = 54,
		.len = s->len,
	};

	memset(head.data, 0, 54);
	for (uint32_t i = 0; i < s->len && i < HOST_BUF; i++)
		h->buf[i] = host_byte(pos + i);
	h->now = now;
	if (h->wire)
		wire_in(h->wire, h, tuple, s, opt, seg.opt_len, now);
	else
		tcp_host_in(h->tcp, &seg, now);
	memset(h->buf, 0xee, s->len); /* the loan is over */
}

/* What the payload of stream position `pos` ought to be. */
static bool data_right(const uint8_t *p, uint32_t n, uint32_t pos)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != host_byte((uint64_t)pos + i))
			return false;
	return true;
}

bool host_payload_right(const struct host_out *o, uint32_t pos)
{
	return data_right(o->data, o->seg.len, pos);
}

bool host_out(struct host *h, struct host_out *out, nsec_t now)
{
	struct tcp_out t;
	uint32_t at = 0;

	memset(out, 0, sizeof(*out));
	h->now = now;
	if (h->wire) {
		uint8_t opt[40];
		unsigned n;

		if (!wire_out(h->wire, h, out, opt, &n, now))
			return false;
		opts_parse(&out->seg.opts, opt, n);
		return true;
	}
	if (!tcp_host_out(h->tcp, &t, now))
		return false;
	out->tuple = t.tuple;
	out->flow = t.flow;
	out->ip_id = out->df = -1;
	out->gso_size = t.gso_size;
	out->seg = (struct seg){
		.flags = t.flags,
		.has_ack = t.flags & ACK,
		.has_win = true,
		.ecn = t.ecn,
		.win = t.wnd,
		.seq = t.seq,
		.len = t.len,
		.ack = t.ack,
	};
	opts_parse(&out->seg.opts, t.opt, t.opt_len);
	out->data = malloc(t.len + 1);
	for (unsigned i = 0; i < t.nfrag; i++) {
		if (at + t.frag[i].len <= t.len)
			memcpy(out->data + at, t.frag[i].data, t.frag[i].len);
		at += t.frag[i].len;
		chunk_put(&h->chunks, t.frag[i].chunk);
	}
	if (at != t.len)
		h->broken = "a segment's fragments are not as long as it says";
	if (t.opt_len % 4)
		h->broken = "options are not a multiple of four bytes";
	return true;
}

void host_icmp(struct host *h, const struct tcp_tuple *tuple, const struct quote *i, uint32_t seq,
	nsec_t now)
{
	bool v4 = ip_addr_is4(&h->laddr),
	     too_big = v4 ? i->type == 3 && i->code == 4 : i->type == 2;
	enum tcp_icmp kind = TCP_ICMP_SOFT;
	int err = EHOSTUNREACH;

	if (h->wire) {
		wire_icmp(h->wire, h, tuple, i, seq, now);
		return;
	}
	if (too_big) {
		tcp_host_icmp(h->tcp, tuple, seq, TCP_ICMP_TOO_BIG, EMSGSIZE, i->mtu, now);
		return;
	}
	if (v4 ? i->type == 4 || i->type == 5 : i->type == 137)
		return; /* source quench, redirect: the stack never tells TCP */
	if (v4 && i->type == 3 &&
		(i->code == 2 || i->code == 3 || (i->code >= 9 && i->code != 11 && i->code != 12)))
		kind = TCP_ICMP_HARD;
	if (!v4 && ((i->type == 1 && (i->code == 1 || i->code == 4)) ||
			   (i->type == 4 && i->code == 1)))
		kind = TCP_ICMP_HARD;
	if (kind == TCP_ICMP_HARD)
		err = ECONNREFUSED;
	tcp_host_icmp(h->tcp, tuple, seq, kind, err, 0, now);
}
