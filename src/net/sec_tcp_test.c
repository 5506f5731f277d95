/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sec_tcp_test: attacks on the engine, one test for each kind; the numbers are those of the list in
 * docs/security.md. All in virtual time, with fixed secrets: what is random is so in the same way.
 */
#include "net/tcp_rig.h"

#include <errno.h>

static struct tcp_tuple tuple_of(uint32_t peer, uint16_t lport, uint16_t rport)
{
	return (struct tcp_tuple){.laddr = ip_addr4_u32(0x0a000001),
		.raddr = ip_addr4_u32(peer),
		.lport = lport,
		.rport = rport};
}

/* Chi-squared of n draws over 256 bins: 255 on average, 22 more or less; beyond 400 it is not by chance. */
static void spread_evenly(const unsigned bin[256], unsigned n)
{
	double sum = 0, want = n / 256.0;

	for (unsigned i = 0; i < 256; i++)
		sum += (bin[i] - want) * (bin[i] - want) / want;
	if (sum > 400)
		fail_msg("chi-squared %.0f", sum);
}

/* ---- 5.1 ---- */

/* Numbers of neighbouring tuples, their differences and second differences say nothing. */
static void sec_5_1_numbers(void **state)
{
	unsigned isn[256] = {0}, first[256] = {0}, second[256] = {0}, ts[256] = {0};
	uint32_t was[2] = {0};
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	for (unsigned i = 0; i < 100000; i++) {
		struct tcp_tuple tu =
			tuple_of(0x0a000002 + i / 50000, (uint16_t)(i % 50000 + 1), 80);
		uint32_t n = tcp_isn(r.x.h, &tu);

		isn[n >> 24]++;
		first[(n - was[0]) >> 24]++;
		second[(n - 2 * was[0] + was[1]) >> 24]++;
		ts[tcp_ts_offset(r.x.h, &tu) >> 24]++;
		was[1] = was[0];
		was[0] = n;
	}
	spread_evenly(isn, 100000);
	spread_evenly(first, 100000);
	spread_evenly(second, 100000);
	spread_evenly(ts, 100000);
	rig_fini(&r);
}

/* The same tuple again: above what the last connection may have used, by the clock of 64 ns. */
static void sec_5_1_grows(void **state)
{
	struct tcp_tuple tu = tuple_of(0x0a000002, 40000, 80);
	struct rig r;
	uint32_t a;

	(void)state;
	rig_init(&r, NULL);
	r.x.h->now = NSEC_PER_SEC;
	a = tcp_isn(r.x.h, &tu);
	r.x.h->now += NSEC_PER_SEC;
	assert_int_equal(tcp_isn(r.x.h, &tu) - a, NSEC_PER_SEC / 64);
	r.x.h->now += 100 * NSEC_PER_SEC;
	assert_true(seq_lt(a, tcp_isn(r.x.h, &tu)));
	rig_fini(&r);
}

/* ---- 5.2 ---- */

static void sec_5_2_ports(void **state)
{
	unsigned at[256] = {0}, step[256] = {0}, last = 0;
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	for (unsigned i = 0; i < 50000; i++) {
		struct tcp_tuple tu = tuple_of(0x0a000002, 0, 80);
		unsigned p = tcp_pick_port(r.x.h, &tu);

		assert_in_range(p, 32768, 60999);
		at[(p - 32768) * 256 / 28232]++;
		step[(p + 28232 - last) % 28232 * 256 / 28232]++;
		last = p;
	}
	spread_evenly(at, 50000);
	spread_evenly(step, 50000);
	rig_fini(&r);
}

/* What is in use, or waits, is not taken again; when all are, it is said after bounded work. */
static void sec_5_2_used_up(void **state)
{
	struct tcp_node *all = calloc(28232, sizeof(*all));
	struct tcp_tuple tu = tuple_of(0x0a000002, 0, 80);
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	for (unsigned i = 0; i < 28232; i++) {
		struct tcp_tuple x = tuple_of(0x0a000002, (uint16_t)(32768 + i), 80);

		if (i % 2 != 0)
			tcp_node_add(r.x.h, &all[i], TCP_NODE_TW, &x);
	}
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(tcp_pick_port(r.x.h, &tu) % 2, 0);
	for (unsigned i = 0; i < 28232; i += 2) {
		struct tcp_tuple x = tuple_of(0x0a000002, (uint16_t)(32768 + i), 80);

		tcp_node_add(r.x.h, &all[i], TCP_NODE_TW, &x);
	}
	t = tcp_new(r.x.h);
	assert_int_equal(tcp_connect(t, &tu, 0, r.now), -EADDRNOTAVAIL);
	tu.raddr = ip_addr4_u32(0x0a000003); /* towards another one all are free */
	assert_int_equal(tcp_connect(t, &tu, 0, r.now), 0);
	for (unsigned i = 0; i < 28232; i++)
		tcp_node_del(r.x.h, &all[i]);
	tcp_abort(t, r.now);
	while (rig_take(&r))
		;
	free(all);
	rig_fini(&r);
}

/* ---- 5.3 ---- */

/* A peer that takes 48 bytes at a time, and acknowledges every second segment of 4 MiB selectively. */
static void sec_5_3_slices(void **state)
{
	struct tcp_conf c = rig_conf();
	uint32_t live, chunks;
	struct rig r;
	struct tcp *t;

	(void)state;
	c.sndbuf = c.sndbuf_max = 4 << 20;
	c.gso_max = 65535;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 48,sackOK,ws 10>");
	assert_int_equal(t->peer_mss, 88);
	assert_true(t->mss >= 48); /* with all options a segment still has 8 bytes and more */
	rig_in(&r, ". 1:1(0) ack 1 win 65535");
	t->cc.cwnd = 64 << 20;
	while (rig_send(&r, t, 65536, 0) > 0)
		;
	while (rig_take(&r))
		assert_true(r.out.gso_size == 0 || r.out.len <= 64u * r.out.gso_size);
	assert_true(t->snd_nxt - t->snd_una > 3 << 20);
	live = r.x.h->txseg_live;
	chunks = chunk_pool_live(&r.x.chunks);
	for (uint32_t at = 1 + t->mss; at + 8 * t->mss < t->snd_nxt - t->iss; at += 8 * t->mss) {
		uint8_t opt[40];
		uint32_t b[4][2];
		struct tcp_seg s = {.tuple = r.tu,
			.opt = opt,
			.seq = r.irs + 1,
			.ack = t->iss + 1,
			.wnd = 65535,
			.flags = TCP_ACK};

		for (unsigned i = 0; i < 4; i++) {
			b[i][0] = t->iss + at + 2 * i * t->mss;
			b[i][1] = b[i][0] + t->mss;
		}
		s.opt_len = (uint8_t)tcp_opt_sack(opt, 0, (const uint32_t(*)[2])b, 4);
		tcp_host_in(r.x.h, &s, r.now);
	}
	rig_check(r.x.h);
	assert_true(t->busy->loss.sacked > 1 << 20);
	assert_int_equal(r.x.h->txseg_live, live); /* nothing was split */
	assert_int_equal(chunk_pool_live(&r.x.chunks), chunks);
	rig_end(&r, t);
}

/* ---- 5.4 ---- */

/* One more connection to the listener of port 80, from this port; its peer's view of our numbers. */
static uint32_t accept_from(struct rig *r, uint16_t port)
{
	r->tu.rport = port;
	r->have_iss = false;
	rig_in(r, "S 0:0(0) win 65535 <mss 1460,sackOK>");
	rig_out(r, "S. 0:0(0) ack 1");
	rig_in(r, ". 1:1(0) ack 1");
	return r->iss;
}

static unsigned taken(struct rig *r, uint16_t port)
{
	unsigned n = 0;

	while (rig_take(r))
		n += r->out.tuple.rport == port;
	return n;
}

/* What an attacker gets on his own connection says nothing of a victim's. [CVE-2016-5696] */
static void sec_5_4_no_shared_budget(void **state)
{
	unsigned got[2] = {0};

	(void)state;
	for (unsigned spoofed = 0; spoofed < 2; spoofed++) {
		struct tcp_listener *l;
		struct ip_addr any = {{0}};
		uint32_t iss[2];
		struct rig r;

		rig_init(&r, NULL);
		assert_int_equal(tcp_listen(r.x.h, &any, 80, 8, NULL, &l), 0);
		iss[0] = accept_from(&r, 5000);
		iss[1] = accept_from(&r, 6000);
		for (unsigned i = 0; i < 200; i++) {
			r.tu.rport = 5000;
			r.iss = iss[0];
			for (unsigned k = 0; k < 20 && spoofed; k++)
				rig_in(&r, "R 2:2(0)");
			taken(&r, 0);
			r.tu.rport = 6000;
			r.iss = iss[1];
			rig_in(&r, "R 2:2(0)");
			got[spoofed] += taken(&r, 6000);
			r.now += 10 * NSEC_PER_MSEC;
		}
		assert_true(r.x.h->c.challenge_limited > 0);
		tcp_unlisten(l, r.now);
		while (rig_take(&r))
			;
		rig_fini(&r);
	}
	assert_in_range(got[0], 10, 20);
	assert_int_equal(got[0], got[1]);
}

/* Resets from closed ports: so many for each source, whatever the others do. */
static void sec_5_4_resets(void **state)
{
	unsigned got[2] = {0};
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	r.have_iss = true;
	for (unsigned who = 0; who < 2; who++)
		for (unsigned i = 0; i < 1000; i++) {
			r.tu.raddr = ip_addr4_u32(0x0a000002 + who);
			r.tu.lport = (uint16_t)(1000 + i);
			rig_in(&r, ". 0:0(0) ack 5");
			got[who] += taken(&r, r.tu.rport);
		}
	assert_int_equal(got[0], TCP_RST_BURST);
	assert_int_equal(got[1], TCP_RST_BURST);
	assert_int_equal(r.x.h->c.rst_limited, 2 * (1000 - TCP_RST_BURST));
	r.now += NSEC_PER_SEC; /* and then some more */
	rig_in(&r, ". 0:0(0) ack 5");
	assert_int_equal(taken(&r, r.tu.rport), 1);
	rig_fini(&r);
}

/* ---- 5.5 ---- */

static void syn_from(struct rig *r, uint32_t peer, uint16_t port, uint8_t flags, uint32_t ack)
{
	static const uint8_t opt[4] = {2, 4, 5, 0xb4};
	struct tcp_seg s = {.tuple = tuple_of(peer, 80, port),
		.opt = opt,
		.opt_len = flags & TCP_SYN ? 4 : 0,
		.seq = r->irs + !(flags & TCP_SYN),
		.ack = ack,
		.wnd = 65535,
		.flags = flags};

	tcp_host_in(r->x.h, &s, r->now);
}

/* Half a million SYNs a second from everywhere: who means it gets in, memory stands still. */
static void sec_5_5_flood(void **state)
{
	struct tcp_conf c = rig_conf();
	struct ip_addr any = {{0}};
	struct tcp_listener *l;
	unsigned tried = 0, in = 0;
	struct rig r;

	(void)state;
	c.syns = 256;
	rig_init(&r, &c);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 200, NULL, &l), 0);
	for (unsigned i = 0; i < 100000; i++) {
		const uint16_t port = (uint16_t)(1000 + i / 500);
		struct tcp *t;

		syn_from(&r, 0xc0000000 + i, 7, TCP_SYN, 0);
		r.now += 2 * NSEC_PER_USEC;
		if (i % 500 == 250) {
			syn_from(&r, 0x0a000002, port, TCP_SYN, 0);
			tried++;
		}
		if (i % 50)
			continue;
		while (tcp_host_out(r.x.h, &r.out, r.now))
			if (r.out.tuple.rport == port && (r.out.flags & TCP_SYN))
				syn_from(&r, 0x0a000002, port, TCP_ACK, r.out.seq + 1);
		while ((t = tcp_accept(l)) != NULL) {
			in++;
			tcp_abort(t, r.now);
		}
		assert_int_equal(r.x.pool.live, 0);
		assert_true(r.x.h->live <= 2);
	}
	assert_true(tried == 200 && in >= 198);
	assert_int_equal(l->nsyn, 256);
	assert_true(r.x.h->c.cookies_sent > 90000);
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

/* One SYN with a forged source is answered five times again at most. */
static void sec_5_5_amplification(void **state)
{
	struct ip_addr any = {{0}};
	struct tcp_listener *l;
	unsigned n = 0;
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 8, NULL, &l), 0);
	rig_in(&r, "S 0:0(0) win 65535 <mss 1460>");
	for (unsigned i = 0; i < 1000; i++) {
		n += taken(&r, 5000);
		rig_wait(&r, NSEC_PER_SEC);
	}
	assert_in_range(n, 2, 6);
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

/* A cookie is worth something for two minutes, to who got it, of whom it names, of this host. */
static void sec_5_5_cookies(void **state)
{
	struct tcp_conf c = rig_conf();
	struct ip_addr any = {{0}};
	struct tcp_listener *l;
	struct rig r;
	uint32_t iss;

	(void)state;
	c.always_cookies = true;
	rig_init(&r, &c);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 8, NULL, &l), 0);
	syn_from(&r, 0x0a000002, 5000, TCP_ACK, 12345); /* none is out: nothing to guess at */
	assert_int_equal(r.x.h->c.cookies_bad, 0);
	syn_from(&r, 0x0a000002, 5000, TCP_SYN, 0);
	while (taken(&r, 0) || tcp_host_out(r.x.h, &r.out, r.now))
		;
	iss = r.out.seq;
	syn_from(&r, 0x0a000002, 5001, TCP_ACK, iss + 1);
	syn_from(&r, 0x0a000003, 5000, TCP_ACK, iss + 1);
	syn_from(&r, 0x0a000002, 5000, TCP_ACK, iss + 2);
	syn_from(&r, 0x0a000002, 5000, TCP_ACK, (iss ^ 1u << 26) + 1);
	assert_null(tcp_accept(l));
	assert_int_equal(r.x.h->c.cookies_bad, 4);
	r.now += 200 * NSEC_PER_SEC; /* too late */
	syn_from(&r, 0x0a000002, 5000, TCP_ACK, iss + 1);
	assert_null(tcp_accept(l));
	r.now -= 180 * NSEC_PER_SEC;
	syn_from(&r, 0x0a000002, 5000, TCP_ACK, iss + 1);
	assert_true(tcp_listener_ready(l));
	tcp_unlisten(l, r.now);
	while (rig_take(&r))
		;
	rig_fini(&r);
}

/* ---- 5.7 ---- */

static void byte_at(struct rig *r, uint32_t at, uint32_t len)
{
	struct iovec iov = {r->data, len};
	struct frame f = {.head = r->head.data,
		.head_len = RIG_HDR,
		.tail = &iov,
		.ntail = 1,
		.tail_len = len};
	struct tcp_seg s = {.tuple = r->tu,
		.seq = r->irs + at,
		.ack = r->iss + 1,
		.wnd = 65535,
		.flags = TCP_ACK,
		.frame = &f,
		.off = RIG_HDR,
		.len = len};

	tcp_host_in(r->x.h, &s, r->now);
}

/* Every second byte of a window of 4 MiB: bounded intervals and memory, and the stream goes on. */
static void sec_5_7_every_second_byte(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig r;
	struct tcp *t;

	(void)state;
	c.rcvbuf = c.rcvbuf_max = 4 << 20;
	c.wscale = 7;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,ws 7>");
	for (uint32_t at = 3; at < 200000; at += 2) {
		byte_at(&r, at, 1);
		assert_true(t->ooo == NULL || t->ooo->iv.n <= RANGES_MAX);
		assert_true(t->rx_true <= 2 * t->rcvbuf);
		if (at % 1000 == 1)
			taken(&r, 0);
	}
	rig_check(r.x.h);
	assert_true(r.x.h->rx_live <= RANGES_MAX);
	assert_true(r.x.pool.live <= RANGES_MAX);
	assert_true(r.x.h->c.ooo_pruned > 90000);
	byte_at(&r, 1, 2);
	assert_int_equal(t->rcv_nxt - r.irs, 4); /* what is missing closes the first gap */
	rig_end(&r, t);
}

/* A byte out of each of many buffers of 64 KiB holds none of them. */
static void sec_5_7_big_buffers(void **state)
{
	struct tcp_conf c = rig_conf();
	struct pkt *p;
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, &c);
	t = rig_connect(&r, NULL);
	for (uint32_t at = 3; at < 203; at += 2) {
		struct chunk *k = chunk_get(&r.x.chunks, 3);
		struct iovec iov[4];
		struct tcp_seg s = {.tuple = r.tu,
			.seq = r.irs + at,
			.ack = r.iss + 1,
			.wnd = 65535,
			.flags = TCP_ACK,
			.off = RIG_HDR,
			.len = 1};
		struct frame f;

		assert_non_null(k);
		p = pkt_new(&r.x.pool, 0, RIG_HDR);
		assert_true(pkt_add(p, k, chunk_data(&r.x.chunks, k), 1, 32768, false));
		assert_true(pkt_lend(p, &f, &r.head, iov, 4));
		s.frame = &f;
		tcp_host_in(r.x.h, &s, r.now);
		pkt_free(p);
		taken(&r, 0);
	}
	assert_int_equal(t->ooo->iv.n, 100);
	assert_true(t->rx_true < 100 * 4096);
	assert_true(r.x.h->c.rcv_compact >= 100);
	rig_end(&r, t);
}

/* ---- 5.11 ---- */

/* Who shuts its window for ever and holds our memory so goes when others need it. [RFC 6429] */
static void sec_5_11_shut_windows(void **state)
{
	struct tcp_conf c = rig_conf();
	struct ip_addr any = {{0}};
	struct tcp *bad[8], *good;
	struct tcp_listener *l;
	uint32_t iss[8];
	struct rig r;
	nsec_t shut;

	(void)state;
	c.txsegs = 64;
	c.conns = 9;
	rig_init(&r, &c);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 16, NULL, &l), 0);
	for (uint16_t i = 0; i < 8; i++) {
		iss[i] = accept_from(&r, (uint16_t)(5000 + i));
		bad[i] = tcp_accept(l);
		rig_in(&r, ". 1:1(0) ack 1 win 0");
		tcp_set(bad[i], TCPO_NODELAY, 1, r.now);
		for (unsigned k = 0; k < 8; k++)
			rig_send(&r, bad[i], 65000, 0);
	}
	accept_from(&r, 6000);
	good = tcp_accept(l);
	assert_int_equal(r.x.h->txseg_live, 56);
	shut = r.now;
	for (unsigned i = 0; i < 400; i++) { /* they answer each question: we ask for ever */
		if (r.now - shut < 10 * NSEC_PER_SEC)
			assert_int_equal(rig_send(&r, good, 100, 0), -EAGAIN); /* not for long */
		else if (r.now - shut > 12 * NSEC_PER_SEC && r.x.h->c.pressed == 0)
			assert_int_equal(rig_send(&r, good, 100, 0), 100); /* whenever it comes */
		rig_wait(&r, NSEC_PER_SEC / 4);
		while (rig_take(&r)) {
			uint16_t who = r.out.tuple.rport;

			if (who < 5000 || who > 5007)
				continue;
			r.tu.rport = who;
			r.iss = iss[who - 5000];
			rig_in(&r, ". 1:1(0) ack 1 win 0");
		}
	}
	assert_int_equal(r.x.h->c.timeouts, 0);
	assert_int_equal(r.x.h->c.pressed, 1);
	assert_int_equal(good->state, TCPS_ESTABLISHED);
	assert_null(
		tcp_new(r.x.h)); /* no connection comes free by ending one that its user holds */
	assert_int_equal(r.x.h->c.pressed, 1);
	for (unsigned i = 0; i < 8; i++)
		tcp_abort(bad[i], r.now);
	tcp_abort(good, r.now);
	tcp_unlisten(l, r.now);
	while (rig_take(&r))
		;
	rig_fini(&r);
}

/* Who leaves our FIN unanswered keeps nobody else out. */
static void sec_5_11_orphans(void **state)
{
	struct tcp_conf c = rig_conf();
	struct ip_addr any = {{0}};
	struct tcp_listener *l;
	struct rig r;
	struct tcp *t;

	(void)state;
	c.conns = 8;
	rig_init(&r, &c);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 16, NULL, &l), 0);
	for (uint16_t i = 0; i < 8; i++) {
		accept_from(&r, (uint16_t)(5000 + i));
		tcp_close(tcp_accept(l), r.now);
		taken(&r, 0);
	}
	assert_null(tcp_new(r.x.h)); /* they have their second */
	for (const nsec_t end = r.now + 2 * NSEC_PER_SEC; r.now < end; taken(&r, 0))
		rig_wait(&r, end - r.now);
	t = tcp_new(r.x.h);
	assert_non_null(t);
	assert_int_equal(r.x.h->c.pressed, 1);
	tcp_close(t, r.now);
	taken(&r, 0);
	accept_from(&r, 6000);
	assert_non_null(t = tcp_accept(l));
	tcp_abort(t, r.now);
	tcp_unlisten(l, r.now);
	rig_wait(&r, 1); /* all the others give up by themselves */
	while (rig_take(&r))
		;
	rig_fini(&r);
}

/* Many ACKs for one segment open the window no more than one; of what was not sent, not at all. */
static void sec_5_11_acks_that_lie(void **state)
{
	struct rig r;
	struct tcp *t;
	uint32_t cwnd;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	rig_send(&r, t, 60000, 0);
	taken(&r, 0);
	cwnd = t->cc.cwnd;
	for (unsigned i = 1; i <= 146; i++) {
		char line[80];

		snprintf(line, sizeof(line), ". 1:1(0) ack %u", 1 + 10 * i);
		rig_in(&r, line);
		taken(&r, 0); /* the window is used again */
	}
	assert_true(t->cc.cwnd <= cwnd + 1460);
	cwnd = t->cc.cwnd;
	rig_in(&r, ". 1:1(0) ack 500000");
	assert_int_equal(t->cc.cwnd, cwnd);
	assert_int_equal(t->snd_una - r.iss, 1461);
	rig_end(&r, t);
}

/* A slow reader holds at most what a send buffer may grow to. */
static void sec_5_11_slow_reader(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig r;
	struct tcp *t;

	(void)state;
	c.sndbuf = 0;
	c.sndbuf_max = 0; /* the defaults */
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 1 <mss 1460,sackOK>");
	t->cc.cwnd = 64 << 20; /* it has read quickly until now */
	while (rig_send(&r, t, 65000, 0) > 0)
		;
	assert_true(t->sndbuf <= 4 << 20 && t->queued <= 4 << 20);
	rig_end(&r, t);
}

/* Bytes that are here stay what they are, delivered or waiting, whoever sends others in their place. */
static void sec_5_11_first_bytes_win(void **state)
{
	uint8_t buf[40];
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	for (unsigned i = 0; i < 100; i++)
		r.data[i] = 1;
	rig_in(&r, ". 11:21(10) ack 1");
	for (unsigned i = 0; i < 100; i++)
		r.data[i] = 2;
	rig_in(&r, ". 1:31(30) ack 1");
	for (unsigned i = 0; i < 100; i++)
		r.data[i] = 3;
	rig_in(&r, ". 5:35(30) ack 1");
	assert_int_equal(rig_recv(&r, t, buf, sizeof(buf), 0), 34);
	for (unsigned i = 0; i < 34; i++)
		assert_int_equal(buf[i], i < 10 ? 2 : i < 20 ? 1 : i < 30 ? 2 : 3);
	rig_end(&r, t);
}

/* Wherever an urgent pointer points: the bytes are delivered in line, all of them. */
static void sec_5_11_urgent(void **state)
{
	static const uint16_t at[] = {0, 1, 9, 10, 11, 0x7fff, 0xffff};
	uint8_t buf[40];
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	for (unsigned i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct iovec iov = {r.data, 10};
		struct frame f = {.head = r.head.data,
			.head_len = RIG_HDR,
			.tail = &iov,
			.ntail = 1,
			.tail_len = 10};
		struct tcp_seg s = {.tuple = r.tu,
			.seq = r.irs + 1 + 10 * i,
			.ack = r.iss + 1,
			.wnd = 65535,
			.urg = at[i],
			.flags = TCP_ACK | TCP_URG,
			.frame = &f,
			.off = RIG_HDR,
			.len = 10};

		tcp_host_in(r.x.h, &s, r.now);
		assert_int_equal(rig_recv(&r, t, buf, sizeof(buf), 0), 10);
		assert_memory_equal(buf, r.data, 10);
	}
	rig_end(&r, t);
}

/* The flow label, which everybody sees, does not tell in which bucket a connection lies. */
static void sec_5_11_hash_stays_ours(void **state)
{
	unsigned same = 0;
	struct tcp_node n = {0};
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		struct tcp_tuple tu = tuple_of(0x0a000002, 80, (uint16_t)(i + 1));

		tcp_node_add(r.x.h, &n, TCP_NODE_SYN, &tu);
		assert_true(n.flow <= 0xfffff);
		same += (n.flow & 0xff) == (n.hash & 0xff) || (n.flow >> 12) == (n.hash >> 24);
		tcp_node_del(r.x.h, &n);
	}
	assert_true(same < 30);
	rig_fini(&r);
}

/* TIME-WAIT is capped; the oldest goes, and is counted. */
static void sec_5_11_time_waits(void **state)
{
	struct tcp_conf c = rig_conf();
	struct ip_addr any = {{0}};
	struct tcp_listener *l;
	struct rig r;

	(void)state;
	c.timewaits = 4;
	rig_init(&r, &c);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 16, NULL, &l), 0);
	for (uint16_t i = 0; i < 10; i++) {
		accept_from(&r, (uint16_t)(5000 + i));
		tcp_close(tcp_accept(l), r.now);
		taken(&r, 0);
		rig_in(&r, "F. 1:1(0) ack 2");
		taken(&r, 0);
	}
	assert_int_equal(r.x.h->c.tw_made, 10);
	assert_int_equal(r.x.h->c.tw_evicted, 6);
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

/* ---- 5.12 ---- */

/* Another secret, nothing in common: what one host says helps nobody with its successor. */
static void sec_5_12_secrets(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig a, b;
	unsigned steps[256] = {0}, same = 0;
	struct tcp_node n[2] = {{0}};

	(void)state;
	rig_init(&a, &c);
	c.secret[3] ^= 1;
	c.secret[19] ^= 1;
	rig_init(&b, &c);
	for (unsigned i = 0; i < 10000; i++) {
		struct tcp_tuple tu = tuple_of(0x0a000002, 80, (uint16_t)(i + 1));

		steps[(tcp_isn(a.x.h, &tu) - tcp_isn(b.x.h, &tu)) >> 24]++;
		tcp_node_add(a.x.h, &n[0], TCP_NODE_SYN, &tu);
		tcp_node_add(b.x.h, &n[1], TCP_NODE_SYN, &tu);
		same += n[0].hash == n[1].hash || n[0].flow == n[1].flow ||
			tcp_ts_offset(a.x.h, &tu) == tcp_ts_offset(b.x.h, &tu);
		tcp_node_del(a.x.h, &n[0]);
		tcp_node_del(b.x.h, &n[1]);
	}
	spread_evenly(steps, 10000);
	assert_true(same < 3);
	rig_fini(&a);
	rig_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sec_5_1_numbers),
		cmocka_unit_test(sec_5_1_grows),
		cmocka_unit_test(sec_5_2_ports),
		cmocka_unit_test(sec_5_2_used_up),
		cmocka_unit_test(sec_5_3_slices),
		cmocka_unit_test(sec_5_4_no_shared_budget),
		cmocka_unit_test(sec_5_4_resets),
		cmocka_unit_test(sec_5_5_flood),
		cmocka_unit_test(sec_5_5_amplification),
		cmocka_unit_test(sec_5_5_cookies),
		cmocka_unit_test(sec_5_7_every_second_byte),
		cmocka_unit_test(sec_5_7_big_buffers),
		cmocka_unit_test(sec_5_11_shut_windows),
		cmocka_unit_test(sec_5_11_orphans),
		cmocka_unit_test(sec_5_11_acks_that_lie),
		cmocka_unit_test(sec_5_11_slow_reader),
		cmocka_unit_test(sec_5_11_first_bytes_win),
		cmocka_unit_test(sec_5_11_urgent),
		cmocka_unit_test(sec_5_11_hash_stays_ours),
		cmocka_unit_test(sec_5_11_time_waits),
		cmocka_unit_test(sec_5_12_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
