/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_fuzz: one TCP engine, a peer that is the input, in virtual time.
 *
 *	u8 knobs | steps of one byte each (low 4 bits say what, high 4 bits how), with their operands
 *
 * Segments are made relative to what the connection expects now, so that the input reaches all states
 * and the edges of all windows; options are the input's bytes. After each step the engine's own audit
 * holds, what was received in order is a prefix of one stream, output ends, and at the end nothing is
 * left of packets, chunks or buffers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/tcp_int.h"

#define STEPS  400
#define HEAD   64
#define STREAM 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct world {
	const uint8_t *in;
	size_t left;
	struct chunk_pool chunks;
	struct pkt_pool pool;
	struct tcp_host *h;
	struct tcp *t;
	struct tcp_listener *l;
	struct tcp_tuple tu;
	nsec_t now;
	uint32_t iss, irs, snd_nxt, rcv_nxt, got; /* iss: the engine's, as last seen */
	uint8_t pattern[2 * STREAM];
	struct pkt *held[8]; /* sent, not completed */
	unsigned nheld;
};

static uint8_t u8(struct world *w)
{
	if (w->left == 0)
		return 0;
	w->left--;
	return *w->in++;
}

static uint16_t u16(struct world *w)
{
	uint8_t a = u8(w);

	return (uint16_t)(a << 8 | u8(w));
}

static void audit(const struct world *w)
{
	const char *bad = tcp_host_check(w->h);

	if (bad != NULL) {
		fprintf(stderr, "tcp: %s\n", bad);
		abort();
	}
}

/* A number at, next to, or somewhere about what is expected. */
static uint32_t about(struct world *w, uint32_t base, uint32_t wnd)
{
	switch (u8(w) & 7) {
	case 0:
	case 1:
	case 2:
		return base;
	case 3:
		return base - 1;
	case 4:
		return base + u8(w);
	case 5:
		return base + wnd - u8(w) % 3 + 1;
	case 6:
		return base - u16(w);
	default:
		return base + ((uint32_t)u16(w) << 16 | u16(w));
	}
}

static void segment(struct world *w, uint8_t how)
{
	static const uint8_t usual[] = {TCP_ACK, TCP_ACK | TCP_PSH, TCP_ACK | TCP_FIN, TCP_SYN,
		TCP_SYN | TCP_ACK, TCP_RST, TCP_RST | TCP_ACK};
	uint8_t opt[40], n = u8(w) % 41, pick = how & 7;
	struct tcp_seg s = {.tuple = w->tu, .opt = opt, .opt_len = n & 60, .off = HEAD};
	struct frame_head head;
	struct iovec iov;
	struct frame f = {.head = head.data, .head_len = HEAD};

	if (how & 8)
		s.opt_len = 0;
	for (unsigned i = 0; i < s.opt_len; i++)
		opt[i] = u8(w);
	if (s.opt_len >= 12 && opt[0] & 1) { /* blocks that might be true */
		uint32_t a = about(w, w->t != NULL ? w->t->snd_una : w->iss, 1000), b[1][2];

		b[0][0] = a;
		b[0][1] = a + u16(w);
		s.opt_len = (uint8_t)tcp_opt_sack(opt, 0, (const uint32_t(*)[2])b, 1);
	}
	s.flags = pick < 7 ? usual[pick] : u8(w);
	s.seq = about(w, w->t != NULL && w->t->node.hashed ? w->t->rcv_nxt : w->irs, 65535);
	s.ack = about(w, w->snd_nxt, 65535);
	s.wnd = u16(w);
	s.ecn = u8(w) & 3;
	s.len = u8(w) & 1 ? 0 : u16(w) % 20000;
	s.gso_size = s.len > 1000 && s.seq & 1 ? 500 : 0;
	iov = (struct iovec){w->pattern + (s.seq - w->irs - 1) % STREAM, s.len};
	f.tail = &iov;
	f.ntail = s.len > 0;
	f.tail_len = s.len;
	s.frame = &f;
	tcp_host_in(w->h, &s, w->now);
}

static void complete(struct world *w, unsigned n)
{
	for (; n > 0 && w->nheld > 0; n--) {
		struct pkt *p = w->held[0];

		memmove(w->held, w->held + 1, --w->nheld * sizeof(w->held[0]));
		pkt_free(p);
	}
}

static void take_out(struct world *w)
{
	struct tcp_out o;
	unsigned units = 0;

	while (tcp_host_out(w->h, &o, w->now)) {
		struct pkt *p = pkt_new(&w->pool, 64, HEAD);

		if (++units > 10000 || o.len > 65535 || o.nfrag > PKT_FRAGS || o.opt_len > 40)
			abort();
		for (unsigned i = 0; i < o.nfrag; i++)
			if (p == NULL)
				chunk_put(&w->chunks, o.frag[i].chunk);
			else
				pkt_add(p, o.frag[i].chunk, o.frag[i].data, o.frag[i].len,
					o.frag[i].len, true);
		if (p != NULL && o.account != NULL)
			pkt_set_account(p, o.account);
		w->snd_nxt = o.seq + o.len + !!(o.flags & (TCP_SYN | TCP_FIN));
		if (o.flags & TCP_SYN)
			w->iss = o.seq;
		if (w->nheld == 8)
			complete(w, 1);
		if (p != NULL)
			w->held[w->nheld++] = p;
		audit(w);
	}
}

static void events(struct world *w)
{
	struct tcp_event e;
	unsigned n = 0;

	while (tcp_host_event(w->h, &e))
		if (++n > 1000)
			abort();
	if (w->t == NULL && w->l != NULL)
		w->t = tcp_accept(w->l);
}

static void read_some(struct world *w, uint32_t n)
{
	static uint8_t buf[STREAM];
	ssize_t k;

	if (w->t == NULL)
		return;
	if (w->t->irs != w->irs) { /* a new connection began elsewhere */
		w->irs = w->t->irs;
		w->got = 0;
	}
	k = tcp_recv(w->t, &(struct iovec){buf, n % STREAM + 1}, 1, 0, w->now);
	w->got += k > 0 ? (uint32_t)k : 0;
}

static void user_call(struct world *w, uint8_t how)
{
	static uint8_t zero[STREAM];

	if (w->t == NULL) {
		if (how & 1) {
			w->t = tcp_new(w->h);
			if (w->t != NULL && tcp_connect(w->t, &w->tu, 0, w->now) != 0) {
				tcp_close(w->t, w->now);
				w->t = NULL;
			}
			w->got = 0;
		}
		return;
	}
	switch (how & 7) {
	case 0:
	case 1:
		tcp_send(w->t, &(struct iovec){zero, u16(w)}, 1, how & 8 ? TCP_MORE : 0, w->now);
		break;
	case 2:
	case 3:
		read_some(w, u16(w));
		break;
	case 4:
		tcp_shutdown_wr(w->t, w->now);
		break;
	case 5:
		tcp_set(w->t, (enum tcp_option)(u8(w) % 11), u16(w), w->now);
		break;
	case 6:
		tcp_close(w->t, w->now);
		w->t = NULL;
		break;
	default:
		if (how & 8) {
			tcp_abort(w->t, w->now);
			w->t = NULL;
		}
		break;
	}
}

static void pass_time(struct world *w, uint8_t how)
{
	nsec_t at = tcp_host_deadline(w->h);

	if (how & 1 && at != NSEC_NEVER && at > w->now)
		w->now = at;
	else
		w->now += (nsec_t)u16(w) * (how & 2 ? 100 * NSEC_PER_USEC : NSEC_PER_MSEC);
	tcp_host_timer(w->h, w->now);
}

static void step(struct world *w)
{
	uint8_t b = u8(w), how = b >> 4;

	switch (b & 15) {
	case 8:
	case 9:
	case 10:
		user_call(w, how);
		break;
	case 11:
		pass_time(w, how);
		break;
	case 12:
		complete(w, how);
		break;
	case 13:
		tcp_host_icmp(
			w->h, &w->tu, about(w, w->snd_nxt - 1, 1000), how % 3, 111, u16(w), w->now);
		break;
	default:
		segment(w, how);
		break;
	}
	audit(w);
	if (how != 15 || (b & 15) == 11)
		take_out(w);
	events(w);
	audit(w);
}

static void world_open(struct world *w)
{
	uint8_t knobs = u8(w);
	struct tcp_conf c = {.pool = &w->pool,
		.conns = 8,
		.txsegs = 64,
		.rxbufs = 64,
		.syns = 8,
		.timewaits = 4,
		.seed = 1,
		.rcvbuf = 1 << 16,
		.sndbuf = 1 << 17,
		.rcvbuf_max = 1 << 18,
		.cubic = knobs & 1,
		.ecn = knobs & 2,
		.fixed_rcvbuf = knobs & 4,
		.always_cookies = (knobs & 24) == 8,
		.no_sack = knobs & 32,
		.no_tso = knobs & 64};
	struct ip_addr any = {{0}};

	if (chunk_pool_init(&w->chunks, 4 << 20, NULL) != 0 ||
		pkt_pool_init(&w->pool, &w->chunks, 128, NULL) != 0)
		abort();
	w->h = tcp_host_new(&c, NULL);
	if (w->h == NULL)
		abort();
	w->now = NSEC_PER_SEC;
	w->irs = 1000;
	w->tu.laddr = ip_addr4("\x0a\x00\x00\x01");
	w->tu.raddr = ip_addr4("\x0a\x00\x00\x02");
	w->tu.lport = 80;
	w->tu.rport = 5000;
	if (knobs & 128)
		tcp_listen(w->h, &any, 80, 2, NULL, &w->l);
}

static void world_close(struct world *w)
{
	complete(w, 8);
	if (w->t != NULL)
		tcp_abort(w->t, w->now);
	if (w->l != NULL)
		tcp_unlisten(w->l, w->now);
	take_out(w);
	complete(w, 8);
	tcp_host_free(w->h);
	if (w->pool.live != 0)
		abort();
	pkt_pool_fini(&w->pool);
	if (chunk_pool_live(&w->chunks) != 0)
		abort();
	chunk_pool_fini(&w->chunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		abort();
	w->in = data;
	w->left = len;
	world_open(w);
	for (unsigned i = 0; i < STEPS && w->left > 0; i++)
		step(w);
	world_close(w);
	free(w);
	return 0;
}
