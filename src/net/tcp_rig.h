/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_rig: the engine's tests in virtual time. Two worlds:
 *
 *	trace: one host, the test plays the peer, a line per segment, numbers relative:
 *		rig_in(r, "S 0:0(0) win 65535 <mss 1460,sackOK>");  rig_out(r, "S. 0:0(0) ack 1");
 *	pair: two hosts and a link with delay, rate, loss, reordering, duplicates; "super" units lost as a
 *	whole or "wire" segments one by one
 */
#ifndef NET_TCP_RIG_H
#define NET_TCP_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/tcp_int.h"
#include "wire/bytes.h"

#define RIG_HDR 66

struct rig_host {
	struct chunk_pool chunks;
	struct pkt_pool pool;
	struct tcp_host *h;
};

static inline void rig_check(const struct tcp_host *h)
{
	const char *bad = tcp_host_check(h);

	if (bad != NULL)
		fail_msg("%s", bad);
}

static inline void rig_host_init(struct rig_host *r, struct tcp_conf *c, size_t bytes)
{
	struct err err = {0};

	assert_int_equal(chunk_pool_init(&r->chunks, bytes, &err), 0);
	assert_int_equal(pkt_pool_init(&r->pool, &r->chunks, 16384, &err), 0);
	c->pool = &r->pool;
	if (c->conns == 0)
		c->conns = 16; /* the audit walks all of them */
	r->h = tcp_host_new(c, &err);
	assert_non_null(r->h);
	r->h->warm_max = 0; /* they rest as soon as they may */
}

static inline void rig_host_fini(struct rig_host *r)
{
	rig_check(r->h);
	tcp_host_free(r->h);
	assert_int_equal(r->pool.live, 0);
	pkt_pool_fini(&r->pool);
	assert_int_equal(chunk_pool_live(&r->chunks), 0);
	chunk_pool_fini(&r->chunks);
}

/* ---- trace ---- */

struct rig {
	struct rig_host x;
	nsec_t now;
	struct tcp_tuple tu;
	uint32_t iss, irs; /* ours (of the engine), the test's */
	bool have_iss;
	uint32_t tsval, tsecr;
	uint8_t data[70000];
	struct frame_head head;
	struct tcp_out out;
	char text[256], last_opt[128];
	uint32_t charge; /* of each segment that comes; 0: its length */
	bool verbose;
};

static inline struct tcp_conf rig_conf(void)
{
	struct tcp_conf c = {.seed = 1,
		.rcvbuf = 65536,
		.rcvbuf_max = 65536,
		.sndbuf = 1 << 20,
		.fixed_rcvbuf = true,
		.wscale = 0,
		.cubic = false};

	for (unsigned i = 0; i < 32; i++)
		c.secret[i] = (uint8_t)(i * 7);
	return c;
}

static inline void rig_init(struct rig *r, const struct tcp_conf *conf)
{
	struct tcp_conf c = conf != NULL ? *conf : rig_conf();

	memset(r, 0, sizeof(*r));
	rig_host_init(&r->x, &c, 32 << 20);
	r->now = NSEC_PER_SEC;
	r->irs = 1000000;
	r->tu.laddr = ip_addr4("\x0a\x00\x00\x01");
	r->tu.raddr = ip_addr4("\x0a\x00\x00\x02");
	r->tu.lport = 80;
	r->tu.rport = 5000;
	for (unsigned i = 0; i < sizeof(r->data); i++)
		r->data[i] = (uint8_t)(i * 31 + i / 256);
	r->verbose = getenv("TRACE") != NULL;
}

static inline void rig_fini(struct rig *r)
{
	rig_host_fini(&r->x);
}

static inline uint8_t rig_flags(const char **p)
{
	static const struct {
		char c;
		uint8_t f;
	} map[] = {{'S', TCP_SYN}, {'F', TCP_FIN}, {'R', TCP_RST}, {'P', TCP_PSH}, {'.', TCP_ACK},
		{'E', TCP_ECE}, {'W', TCP_CWR}, {'U', TCP_URG}};
	uint8_t flags = 0;

	for (; **p != ' ' && **p != 0; (*p)++)
		for (unsigned i = 0; i < sizeof(map) / sizeof(map[0]); i++)
			if (map[i].c == **p)
				flags |= map[i].f;
	return flags;
}

/* mss N, sackOK, ws N, ts V E, sack A-B A-B ... : ours relative to irs/iss where it makes sense */
static inline unsigned rig_options(struct rig *r, const char *p, uint8_t *opt)
{
	unsigned n = 0, a, b;

	if (p == NULL)
		return 0;
	for (p++; *p != '>' && *p != 0;) {
		if (sscanf(p, "mss %u", &a) == 1) {
			opt[n++] = 2;
			opt[n++] = 4;
			put_be16(opt + n, (uint16_t)a);
			n += 2;
		} else if (strncmp(p, "sackOK", 6) == 0) {
			n += 4;
			memcpy(opt + n - 4, "\x01\x01\x04\x02", 4);
		} else if (sscanf(p, "ws %u", &a) == 1) {
			opt[n++] = 1;
			opt[n++] = 3;
			opt[n++] = 3;
			opt[n++] = (uint8_t)a;
		} else if (sscanf(p, "ts %u", &a) == 1) {
			n += tcp_opt_ts(opt + n, a, r->tsecr);
		} else if (strncmp(p, "sack ", 5) == 0) {
			uint32_t blk[4][2];
			unsigned k = 0;
			int used;

			for (p += 5; sscanf(p, "%u-%u%n", &a, &b, &used) == 2;
				p += used + (p[used] == ' ')) {
				blk[k][0] = r->iss + a;
				blk[k++][1] = r->iss + b;
			}
			n = tcp_opt_sack(opt, n, (const uint32_t(*)[2])blk, k);
			continue;
		}
		while (*p != ',' && *p != '>' && *p != 0)
			p++;
		p += *p == ',';
	}
	return n;
}

/* A segment from the test: "FLAGS seq:end(len) [ack N] [win N] [<options>]" */
static inline void rig_in(struct rig *r, const char *line)
{
	const char *p = line, *q;
	uint8_t opt[40];
	struct tcp_seg s = {.tuple = r->tu, .opt = opt, .off = RIG_HDR};
	unsigned seq, end, len, ack = 0, win = 65535, gso = 0;
	struct frame f = {.head = r->head.data, .head_len = RIG_HDR, .charge = r->charge};
	struct iovec iov;

	if (r->verbose)
		printf("%9.3f ms < %s\n", (double)r->now / 1e6, line);
	s.flags = rig_flags(&p);
	assert_int_equal(sscanf(p, " %u:%u(%u)", &seq, &end, &len), 3);
	assert_int_equal(end - seq, len);
	if ((q = strstr(p, "ack ")) != NULL)
		sscanf(q, "ack %u", &ack);
	if ((q = strstr(p, "win ")) != NULL)
		sscanf(q, "win %u", &win);
	if ((q = strstr(p, "gso ")) != NULL)
		sscanf(q, "gso %u", &gso);
	if (strstr(p, "ce") != NULL)
		s.ecn = 3;
	s.opt_len = (uint8_t)rig_options(r, strchr(p, '<'), opt);
	s.seq = r->irs + seq;
	s.ack = s.flags & TCP_ACK ? r->iss + ack : 0;
	s.wnd = (uint16_t)win;
	s.gso_size = (uint16_t)gso;
	s.len = len;
	if (len > 0) {
		iov = (struct iovec){r->data + seq % 60000, len};
		f.tail = &iov;
		f.ntail = 1;
		f.tail_len = len;
	}
	s.frame = &f;
	tcp_host_in(r->x.h, &s, r->now);
	rig_check(r->x.h);
}

static inline const char *rig_format(struct rig *r)
{
	static const char names[] = "FSRP.UEW";
	struct tcp_out *o = &r->out;
	struct tcp_opts opts;
	char flags[9], *w = flags;
	uint32_t seq;

	for (const char *c = "SEWFRP."; *c != 0; c++)
		if (o->flags >> (strchr(names, *c) - names) & 1)
			*w++ = *c;
	*w = 0;
	if ((o->flags & TCP_SYN) || !r->have_iss) {
		if (!(o->flags & TCP_RST)) {
			r->iss = o->seq;
			r->have_iss = true;
		}
	}
	seq = o->seq - r->iss;
	snprintf(r->text, sizeof(r->text), "%s %u:%u(%u)", flags, seq, seq + o->len, o->len);
	if (o->flags & TCP_ACK)
		snprintf(r->text + strlen(r->text), 40, " ack %u", o->ack - r->irs);
	assert_true(tcp_opt_parse(o->opt, o->opt_len, &opts));
	r->tsecr = opts.ts_ok ? opts.tsval : r->tsecr;
	r->last_opt[0] = 0;
	for (unsigned i = 0; i < opts.nsack; i++)
		snprintf(r->last_opt + strlen(r->last_opt), 30, "%s%u-%u", i ? " " : "",
			opts.sack[i][0] - r->irs, opts.sack[i][1] - r->irs);
	return r->text;
}

static inline bool rig_take(struct rig *r)
{
	bool any = tcp_host_out(r->x.h, &r->out, r->now);

	rig_check(r->x.h);
	if (!any)
		return false;
	for (unsigned i = 0; i < r->out.nfrag; i++)
		chunk_put(&r->x.chunks, r->out.frag[i].chunk);
	rig_format(r);
	if (r->verbose)
		printf("%9.3f ms > %s win %u %s%s\n", (double)r->now / 1e6, r->text, r->out.wnd,
			r->last_opt[0] ? "sack " : "", r->last_opt);
	return true;
}

/* The end of a test: of its connection, of what that says to it, and of the host. */
static inline void rig_end(struct rig *r, struct tcp *t)
{
	tcp_abort(t, r->now);
	while (rig_take(r))
		;
	rig_fini(r);
}

/* The engine sends exactly this now. */
static inline void rig_out(struct rig *r, const char *line)
{
	if (!rig_take(r))
		fail_msg("nothing sent, expected %s", line);
	assert_string_equal(r->text, line);
}

static inline void rig_quiet(struct rig *r)
{
	if (rig_take(r))
		fail_msg("sent %s, expected nothing", r->text);
}

/* Let time pass; what is due is done at its time. */
static inline void rig_wait(struct rig *r, nsec_t d)
{
	nsec_t end = r->now + d;

	while (tcp_host_deadline(r->x.h) <= end) {
		nsec_t at = tcp_host_deadline(r->x.h);

		r->now = at > r->now ? at : r->now;
		tcp_host_timer(r->x.h, r->now);
		rig_check(r->x.h);
		if (!TAILQ_EMPTY(&r->x.h->readyq) || r->x.h->reply_n > 0 ||
			!TAILQ_EMPTY(&r->x.h->synoutq))
			return; /* before anything else happens, look at it */
	}
	r->now = end;
}

static inline struct tcp *rig_connect(struct rig *r, const char *synack)
{
	struct tcp *t = tcp_new(r->x.h);

	r->tu.lport = 40000;
	r->tu.rport = 80;
	assert_int_equal(tcp_connect(t, &r->tu, 0, r->now), 0);
	rig_out(r, "S 0:0(0)");
	r->now += NSEC_PER_MSEC;
	rig_in(r, synack != NULL ? synack : "S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK>");
	rig_out(r, ". 1:1(0) ack 1");
	rig_quiet(r);
	return t;
}

static inline struct tcp *rig_accept(struct rig *r, struct tcp_listener **l, const char *syn)
{
	struct ip_addr any = {{0}};
	struct tcp *t;

	assert_int_equal(tcp_listen(r->x.h, &any, 80, 8, NULL, l), 0);
	rig_in(r, syn != NULL ? syn : "S 0:0(0) win 65535 <mss 1460,sackOK>");
	rig_out(r, "S. 0:0(0) ack 1");
	r->now += NSEC_PER_MSEC;
	rig_in(r, ". 1:1(0) ack 1");
	rig_quiet(r);
	t = tcp_accept(*l);
	assert_non_null(t);
	return t;
}

static inline ssize_t rig_send(struct rig *r, struct tcp *t, size_t n, int flags)
{
	return tcp_send(t, &(struct iovec){r->data, n}, 1, flags, r->now);
}

static inline ssize_t rig_recv(struct rig *r, struct tcp *t, void *buf, size_t n, int flags)
{
	return tcp_recv(t, &(struct iovec){buf, n}, 1, flags, r->now);
}

#endif
