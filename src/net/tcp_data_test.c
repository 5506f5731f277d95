/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving and sending data: order, windows, Nagle, cork, size goal, probes, delayed ACKs. */
#include "net/tcp_rig.h"

#include <errno.h>

static void expect_data(struct rig *r, struct tcp *t, uint32_t from, uint32_t n)
{
	static uint8_t buf[70000];

	assert_int_equal(rig_recv(r, t, buf, sizeof(buf), 0), n);
	assert_memory_equal(buf, r->data + from, n);
}

static void test_in_order(void **state)
{
	struct rig r;
	struct tcp *t;
	char buf[8];

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	assert_int_equal(rig_recv(&r, t, buf, 8, 0), -EAGAIN);
	rig_in(&r, "P. 1:1001(1000) ack 1");
	rig_out(&r, ". 1:1(0) ack 1001");
	assert_int_equal(rig_recv(&r, t, buf, 8, TCP_PEEK), 8);
	expect_data(&r, t, 1, 1000);
	rig_in(&r, "P. 1001:1101(100) ack 1");
	rig_in(&r, "P. 501:1151(650) ack 1"); /* mostly old */
	rig_out(&r, ". 1:1(0) ack 1151");
	assert_string_equal(r.last_opt, "501-1101"); /* the duplicate is told [RFC 2883] */
	expect_data(&r, t, 1001, 150);
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/* Every second piece, then one that fills all gaps; first bytes win. */
static void test_out_of_order(void **state)
{
	struct rig r;
	struct tcp *t;
	char line[80];

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	for (unsigned i = 10; i > 0; i--) {
		snprintf(line, sizeof(line), ". %u:%u(%u) ack 1", i * 100, i * 100 + 50, 50);
		rig_in(&r, line);
		if (i > 7)
			rig_out(&r, ". 1:1(0) ack 1");
		else
			rig_quiet(&r);
	}
	rig_wait(&r, NSEC_PER_MSEC / 20); /* of a round trip of a millisecond */
	rig_out(&r, ". 1:1(0) ack 1");
	assert_string_equal(r.last_opt, "100-150 200-250 300-350 400-450");
	rig_in(&r, ". 450:500(50) ack 1");
	rig_quiet(&r);
	rig_wait(&r, NSEC_PER_MSEC / 20);
	rig_out(&r, ". 1:1(0) ack 1");
	assert_string_equal(r.last_opt, "400-550 100-150 200-250 300-350");
	rig_in(&r, ". 1:1200(1199) ack 1");
	assert_null(t->ooo);
	assert_true(rig_take(&r));
	assert_string_equal(r.text, ". 1:1(0) ack 1200");
	expect_data(&r, t, 1, 1199);
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/*
 * Behind a gap three ACKs go at once and then every 44th; a duplicate is told at once; closing the gap
 * is, and what comes behind the next gap begins anew.
 */
static void test_acks_behind_a_gap(void **state)
{
	struct rig r;
	struct tcp *t;
	char line[80];
	unsigned acks = 0;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	for (unsigned i = 1; i <= 100; i++) {
		snprintf(line, sizeof(line), ". %u:%u(100) ack 1", i * 100 + 1, i * 100 + 101);
		rig_in(&r, line);
		while (rig_take(&r))
			acks++;
	}
	assert_int_equal(acks, 3 + 2);
	assert_int_equal(r.x.h->c.acks_compressed, 95);
	rig_in(&r, ". 201:301(100) ack 1");
	rig_out(&r, ". 1:1(0) ack 1");
	assert_string_equal(r.last_opt, "201-301 101-10101");
	rig_in(&r, ". 1:101(100) ack 1");
	rig_out(&r, ". 1:1(0) ack 10101");
	rig_wait(&r, NSEC_PER_SEC);
	rig_quiet(&r);
	rig_in(&r, ". 10201:10301(100) ack 1");
	rig_out(&r, ". 1:1(0) ack 10101");
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/* What is lent is charged by the size of its buffers and is nobody else's until it is given back. */
static void test_lent(void **state)
{
	struct rig r;
	struct tcp *t;
	struct iovec iov[4];
	unsigned n = 4;
	uint32_t charged;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	assert_int_equal(tcp_recv_lend(t, iov, &n, r.now), -EAGAIN);
	rig_in(&r, ". 1:1001(1000) ack 1");
	rig_in(&r, ". 1001:2001(1000) ack 1");
	assert_true(rig_take(&r));
	charged = t->rx_true;
	assert_true(charged >= 2000);
	n = 4;
	assert_int_equal(tcp_recv_lend(t, iov, &n, r.now), 2000);
	assert_int_equal(n, 2);
	assert_memory_equal(iov[0].iov_base, r.data + 1, 1000);
	assert_memory_equal(iov[1].iov_base, r.data + 1001, 1000);
	assert_true(chunk_pool_owns(&r.x.chunks, iov[1].iov_base));
	assert_int_equal(t->rx_true, charged);
	assert_int_equal(tcp_recv_done(t, 2001, r.now), -EINVAL);
	assert_int_equal(tcp_recv_done(t, 1500, r.now), 0);
	assert_true(t->rx_true < charged && t->rx_true > 0); /* all of the buffer that is in use */
	rig_check(r.x.h);
	n = 4;
	assert_int_equal(tcp_recv_lend(t, iov, &n, r.now), 500);
	assert_memory_equal(iov[0].iov_base, r.data + 1501, 500);
	assert_int_equal(tcp_recv_done(t, 500, r.now), 0);
	assert_int_equal(t->rx_true, 0);
	rig_in(&r, "F. 2001:2001(0) ack 1");
	assert_true(rig_take(&r));
	n = 4;
	assert_int_equal(tcp_recv_lend(t, iov, &n, r.now), 0);
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/* What only an active connection needs is given back when nothing is under way, but not what a loss taught. */
static void test_rests(void **state)
{
	struct rig r;
	struct tcp *t;
	uint8_t buf[100];

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	assert_true(tcp_resting(t));
	rig_in(&r, "P. 1:101(100) ack 1");
	rig_out(&r, ". 1:1(0) ack 101");
	rig_quiet(&r);
	assert_false(tcp_resting(t)); /* there is something to read */
	assert_int_equal(rig_recv(&r, t, buf, 100, 0), 100);
	assert_true(tcp_resting(t));
	rig_send(&r, t, 50, 0);
	rig_out(&r, "P. 1:51(50) ack 101");
	rig_quiet(&r);
	assert_false(tcp_resting(t));
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 101:101(0) ack 51");
	assert_true(tcp_resting(t));
	assert_int_equal(r.x.h->busy_used, 1);
	rig_send(&r, t, 50, 0);
	rig_out(&r, "P. 51:101(50) ack 101");
	while (t->busy->retrans == 0) { /* the probe */
		rig_wait(&r, NSEC_PER_SEC);
		rig_take(&r);
	}
	rig_in(&r, ". 101:101(0) ack 101");
	rig_quiet(&r);
	assert_false(tcp_resting(t));
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/* Random pieces of a stream, any order, any overlap, with a FIN: the stream comes out. */
static void test_random_pieces(void **state)
{
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 42;
	struct rand rnd;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	for (unsigned round = 0; round < 150; round++) {
		struct rig r;
		struct tcp *t;
		uint32_t total = 1 + rand_below(&rnd, 20000), got = 0;
		static uint8_t buf[70000];

		rig_init(&r, NULL);
		r.irs = 0u - 7000; /* across the wrap */
		t = rig_connect(&r, NULL);
		for (unsigned i = 0; t->rcv_nxt != r.irs + total + 2; i++) {
			uint32_t a = rand_below(&rnd, total + 1);
			uint32_t n = rand_below(&rnd, i < 200 ? 400 : total + 1);
			char line[80];
			ssize_t k;

			if (rand_below(&rnd, 8) == 0)
				a = u32_min(t->rcv_nxt - r.irs - 1, total);
			if (a + n > total)
				n = total - a;
			snprintf(line, sizeof(line), "%s. %u:%u(%u) ack 1",
				a + n == total ? "F" : "", a + 1, a + n + 1, n);
			rig_in(&r, line);
			while (rig_take(&r))
				;
			if (rand_below(&rnd, 3) == 0) {
				k = rig_recv(&r, t, buf + got, rand_below(&rnd, 3000) + 1, 0);
				got += k > 0 ? (uint32_t)k : 0;
			}
		}
		while (got < total) {
			ssize_t k = rig_recv(&r, t, buf + got, 5000, 0);

			assert_true(k > 0);
			got += (uint32_t)k;
		}
		assert_memory_equal(buf, r.data + 1, total);
		assert_int_equal(rig_recv(&r, t, buf, 10, 0), 0);
		tcp_abort(t, r.now);
		assert_true(rig_take(&r));
		rig_fini(&r);
	}
}

/* 128 intervals of one byte and more: bounded, and the stream still ends whole. */
static void test_too_many_gaps(void **state)
{
	struct rig r;
	struct tcp *t;
	char line[80];

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	for (unsigned i = 1; i < 300; i++) {
		snprintf(line, sizeof(line), ". %u:%u(1) ack 1", i * 2, i * 2 + 1);
		rig_in(&r, line);
		while (rig_take(&r))
			;
	}
	assert_int_equal(t->ooo->iv.n, RANGES_MAX);
	assert_true(r.x.h->c.ooo_pruned > 0);
	rig_in(&r, ". 1:601(600) ack 1");
	rig_out(&r, ". 1:1(0) ack 601");
	expect_data(&r, t, 1, 600);
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/* The window closes, a probe into it is answered, reading opens it. */
static void test_window(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_conf c = rig_conf();
	static uint8_t buf[8192];

	(void)state;
	c.rcvbuf = c.rcvbuf_max = 4096;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 1024>");
	rig_in(&r, ". 1:2049(2048) ack 1");
	rig_out(&r, ". 1:1(0) ack 2049");
	assert_int_equal(r.out.wnd, 2048);
	rig_in(&r, ". 2049:4097(2048) ack 1");
	rig_out(&r, ". 1:1(0) ack 4097");
	assert_int_equal(r.out.wnd, 0);
	rig_in(&r, ". 4097:4098(1) ack 1");
	rig_out(&r, ". 1:1(0) ack 4097");
	assert_int_equal(rig_recv(&r, t, buf, 100, 0), 100); /* too little to tell */
	rig_quiet(&r);
	assert_int_equal(rig_recv(&r, t, buf, 3000, 0), 3000);
	rig_out(&r, ". 1:1(0) ack 4097");
	assert_true(r.out.wnd >= 3000);
	tcp_abort(t, r.now);
	assert_true(rig_take(&r));
	rig_fini(&r);
}

/* How far the offer has grown after 40 segments of 1448 bytes that are charged `charge` each. */
static uint32_t offer_2013(uint32_t charge)
{
	struct rig r;
	struct tcp_conf c = rig_conf();
	struct tcp *t;
	static uint8_t buf[8192];
	char line[80];
	uint32_t wnd = 0;

	c.fixed_rcvbuf = false;
	c.win_2013 = true;
	c.rcvbuf = c.rcvbuf_max = 262144;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 1460,ws 0>");
	r.charge = charge;
	for (unsigned i = 0; i < 40; i++) {
		snprintf(line, sizeof(line), ". %u:%u(%u) ack 1", 1 + i * 1448, 1 + (i + 1) * 1448,
			1448);
		rig_in(&r, line);
		assert_int_equal(rig_recv(&r, t, buf, sizeof(buf), 0), 1448);
		while (rig_take(&r))
			wnd = (uint32_t)r.out.wnd << t->rcv_ws;
	}
	rig_end(&r, t);
	return wnd;
}

/* Two buffers, or a page, for a segment: half of the window that one buffer that fits is given. */
static void test_offer_2013(void **state)
{
	(void)state;
	assert_in_range(offer_2013(1536), 130000, 131072);
	assert_in_range(offer_2013(2 * 1518), 64000, 65536);
	assert_in_range(offer_2013(4096), 64000, 65536);
}

static void test_delayed_ack(void **state)
{
	struct rig r;
	struct tcp *t;
	nsec_t was;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	t->quickacks = 0;
	rig_in(&r, ". 1:1461(1460) ack 1");
	rig_quiet(&r);
	rig_in(&r, ". 1461:2921(1460) ack 1"); /* every second full one at once */
	rig_out(&r, ". 1:1(0) ack 2921");
	rig_in(&r, ". 2921:2931(10) ack 1");
	rig_quiet(&r);
	was = r.now;
	rig_wait(&r, NSEC_PER_SEC);
	rig_out(&r, ". 1:1(0) ack 2931");
	assert_true(r.now - was <= 40 * NSEC_PER_MSEC);
	rig_in(&r, ". 2931:2941(10) ack 1");
	rig_send(&r, t, 5, 0);
	rig_out(&r, "P. 1:6(5) ack 2941"); /* goes along */
	rig_wait(&r, 100 * NSEC_PER_MSEC);
	rig_end(&r, t);
}

static void test_nagle(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	rig_send(&r, t, 10, 0);
	rig_out(&r, "P. 1:11(10) ack 1");
	rig_send(&r, t, 10, 0);
	rig_quiet(&r);
	rig_send(&r, t, 10, 0);
	rig_quiet(&r);
	rig_in(&r, ". 1:1(0) ack 11");
	rig_out(&r, "P. 11:31(20) ack 1");
	tcp_set(t, TCPO_NODELAY, 1, r.now);
	rig_send(&r, t, 10, 0);
	rig_out(&r, "P. 31:41(10) ack 1");
	rig_in(&r, ". 1:1(0) ack 41");
	tcp_set(t, TCPO_CORK, 1, r.now);
	rig_send(&r, t, 1500, 0);
	rig_out(&r, ". 41:1501(1460) ack 1");
	rig_quiet(&r);
	tcp_set(t, TCPO_CORK, 0, r.now);
	rig_out(&r, "P. 1501:1541(40) ack 1");
	rig_in(&r, ". 1:1(0) ack 1541");
	rig_send(&r, t, 10, TCP_MORE);
	rig_quiet(&r);
	rig_send(&r, t, 10, 0);
	rig_out(&r, "P. 1541:1561(20) ack 1");
	rig_end(&r, t);
}

/* The first burst is one unit of the initial window, not ten packets. */
static void test_first_burst(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_conf c = rig_conf();

	(void)state;
	rig_init(&r, &c);
	t = rig_connect(&r, NULL);
	assert_int_equal(rig_send(&r, t, 60000, 0), 60000);
	rig_out(&r, ". 1:14601(14600) ack 1");
	assert_int_equal(r.out.gso_size, 1460);
	assert_true(r.out.nfrag <= 3);
	rig_quiet(&r);
	r.now += NSEC_PER_MSEC / 10;
	rig_in(&r, ". 1:1(0) ack 14601"); /* acknowledged bytes count in full */
	rig_out(&r, ". 14601:43801(29200) ack 1");
	rig_in(&r, ". 1:1(0) ack 43801");
	rig_out(&r, "P. 43801:60001(16200) ack 1");
	rig_end(&r, t);
}

/* A peer with a small window gets units of half of it. */
static void test_half_window(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 20000 <mss 1000,sackOK>");
	rig_send(&r, t, 60000, 0);
	rig_out(&r, ". 1:10001(10000) ack 1");
	rig_quiet(&r);
	r.now += NSEC_PER_MSEC / 10;
	rig_in(&r, ". 1:1(0) ack 10001 win 20000");
	rig_out(&r, "P. 10001:20001(10000) ack 1");
	rig_out(&r, ". 20001:30001(10000) ack 1");
	rig_end(&r, t);
}

/* Window zero: asked for ever while answered; then all goes on. [RFC 6429] */
static void test_persist(void **state)
{
	struct rig r;
	struct tcp *t;
	nsec_t was;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 0 <mss 1000>");
	rig_send(&r, t, 3000, 0);
	rig_quiet(&r);
	was = r.now;
	for (unsigned i = 0; i < 60; i++) {
		rig_wait(&r, 200 * NSEC_PER_SEC);
		rig_out(&r, ". 0:0(0) ack 1");
		rig_in(&r, ". 1:1(0) ack 1 win 0");
		rig_quiet(&r);
	}
	assert_true(r.now - was > 3600 * NSEC_PER_SEC);
	assert_int_equal(t->state, TCPS_ESTABLISHED);
	rig_in(&r, ". 1:1(0) ack 1 win 5000");
	rig_out(&r, ". 1:2001(2000) ack 1");
	rig_out(&r, "P. 2001:3001(1000) ack 1");
	rig_end(&r, t);
}

/* The peer takes its window back: what was sent is kept and sent again, nothing breaks. */
static void test_shrink(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 10000 <mss 1000,sackOK>");
	rig_send(&r, t, 10000, 0);
	rig_out(&r, ". 1:5001(5000) ack 1");
	rig_out(&r, "P. 5001:10001(5000) ack 1");
	rig_in(&r, ". 1:1(0) ack 2001 win 1000");
	rig_quiet(&r);
	rig_in(&r, ". 1:1(0) ack 10001 win 10000");
	rig_quiet(&r);
	assert_int_equal(t->queued, 0);
	rig_end(&r, t);
}

static void test_keepalive_user_timeout(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	tcp_set(t, TCPO_KEEPIDLE, 10, r.now);
	tcp_set(t, TCPO_KEEPINTVL, 5, r.now);
	tcp_set(t, TCPO_KEEPCNT, 2, r.now);
	tcp_set(t, TCPO_KEEPALIVE, 1, r.now);
	rig_wait(&r, 11 * NSEC_PER_SEC);
	rig_out(&r, ". 0:0(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 1");
	rig_quiet(&r);
	for (unsigned i = 0; i < 2; i++) {
		for (r.text[0] = 0; !rig_take(&r);)
			rig_wait(&r, 20 * NSEC_PER_SEC);
		assert_string_equal(r.text, ". 0:0(0) ack 1");
	}
	while (!rig_take(&r))
		rig_wait(&r, 20 * NSEC_PER_SEC);
	assert_string_equal(r.text, "R. 1:1(0) ack 1");
	assert_int_equal(tcp_error(t), ETIMEDOUT);
	tcp_close(t, r.now);

	t = rig_connect(&r, NULL);
	tcp_set(t, TCPO_USER_TIMEOUT, 3000, r.now);
	rig_send(&r, t, 10, 0);
	rig_out(&r, "P. 1:11(10) ack 1");
	for (unsigned i = 0; t->state == TCPS_ESTABLISHED && i < 50; i++) {
		rig_wait(&r, NSEC_PER_SEC);
		while (rig_take(&r))
			;
	}
	assert_int_equal(tcp_error(t), ETIMEDOUT);
	tcp_close(t, r.now);
	rig_fini(&r);
}

static void test_paws(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,ts 1000>");
	rig_in(&r, ". 1:11(10) ack 1 <ts 1005>");
	rig_out(&r, ". 1:1(0) ack 11");
	rig_in(&r, ". 11:21(10) ack 1 <ts 900>"); /* from before */
	rig_out(&r, ". 1:1(0) ack 11");
	assert_int_equal(r.x.h->c.paws_drop, 1);
	rig_in(&r, ". 11:21(10) ack 1"); /* without one: taken */
	rig_out(&r, ". 1:1(0) ack 21");
	r.now += 25 * 24 * 3600 * NSEC_PER_SEC;
	tcp_host_timer(r.x.h, r.now);
	rig_in(&r, ". 21:31(10) ack 1 <ts 900>"); /* a timestamp so old says nothing */
	rig_out(&r, ". 1:1(0) ack 31");
	rig_end(&r, t);
}

/* Too big: believed with a number under way, in the range; what was sent goes again, smaller. */
static void test_pmtu(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_tuple tu;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	rig_send(&r, t, 4380, 0);
	rig_out(&r, "P. 1:4381(4380) ack 1");
	tcp_tuple_of(t, &tu);
	tcp_host_icmp(r.x.h, &tu, r.iss + 5000, TCP_ICMP_TOO_BIG, 0, 1000, r.now);
	tcp_host_icmp(r.x.h, &tu, r.iss + 1, TCP_ICMP_TOO_BIG, 0, 300, r.now);
	tcp_host_icmp(r.x.h, &tu, r.iss + 1, TCP_ICMP_TOO_BIG, 0, 1500, r.now);
	rig_quiet(&r);
	tcp_host_icmp(r.x.h, &tu, r.iss + 1, TCP_ICMP_TOO_BIG, 0, 1000, r.now);
	assert_true(rig_take(&r));
	assert_int_equal(r.out.gso_size, 960);
	assert_int_equal(r.out.seq, r.iss + 1);
	tcp_host_icmp(r.x.h, &tu, r.iss + 1, TCP_ICMP_HARD, ECONNREFUSED, 0, r.now);
	assert_int_equal(t->state, TCPS_ESTABLISHED);
	rig_end(&r, t);
}

static void test_ecn(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_listener *l;
	struct ip_addr any = {{0}};

	(void)state;
	rig_init(&r, NULL);
	tcp_listen(r.x.h, &any, 80, 8, NULL, &l);
	rig_in(&r, "SEW 0:0(0) win 65535 <mss 1000>");
	rig_out(&r, "SE. 0:0(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 1");
	t = tcp_accept(l);
	rig_send(&r, t, 2000, 0);
	rig_out(&r, "P. 1:2001(2000) ack 1");
	assert_int_equal(r.out.ecn, 2);
	rig_in(&r, "E. 1:1(0) ack 2001");
	rig_send(&r, t, 1000, 0);
	rig_out(&r, "WP. 2001:3001(1000) ack 1");
	rig_in(&r, ". 1:101(100) ack 3001 ce");
	rig_out(&r, "E. 3001:3001(0) ack 101");
	rig_in(&r, "W. 101:201(100) ack 3001");
	rig_out(&r, ". 3001:3001(0) ack 201");
	tcp_abort(t, r.now);
	while (rig_take(&r))
		;
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

/* Pages written one by one: pushed at a page before 2008, at the size goal since. (S4) */
static void test_size_goal(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_conf c = rig_conf();

	(void)state;
	for (unsigned old = 0; old < 2; old++) {
		unsigned big = 0, units = 0;

		c.push_at_mss = old;
		c.frag_chunk = 4096;
		rig_init(&r, &c);
		t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 1460,ws 8>");
		t->cc.cwnd = 4 << 20;
		t->max_snd_wnd = 8 << 20;
		t->snd_wnd = 8 << 20;
		t->snd_ws = 14;
		rig_send(&r, t, 65536, 0);
		rig_send(&r, t, 65536, 0);
		while (rig_take(&r)) {
			units++;
			big += r.out.len > 60000;
		}
		if (old)
			assert_true(big == 0 && units >= 30);
		else
			assert_true(big == 2 && units == 3);
		tcp_abort(t, r.now);
		while (rig_take(&r))
			;
		rig_fini(&r);
	}
}

/* The user's patience ends also with a window that stays shut and is answered for. [RFC 5482, 6429 3] */
static void test_patience_with_a_shut_window(void **state)
{
	struct rig r;
	struct tcp *t;
	nsec_t shut;

	(void)state;
	for (unsigned patient = 0; patient < 2; patient++) {
		rig_init(&r, NULL);
		t = rig_connect(&r, NULL);
		t->nodelay = 1;
		if (!patient)
			tcp_set(t, TCPO_USER_TIMEOUT, 10000, r.now);
		rig_in(&r, ". 1:1(0) ack 1 win 0");
		shut = r.now;
		rig_send(&r, t, 1000, 0);
		while (t->state == TCPS_ESTABLISHED && r.now - shut < 1000 * NSEC_PER_SEC) {
			rig_wait(&r, NSEC_PER_SEC / 4);
			while (rig_take(&r))
				if (t->state == TCPS_ESTABLISHED)
					rig_in(&r, ". 1:1(0) ack 1 win 0");
		}
		if (patient)
			assert_int_equal(t->state, TCPS_ESTABLISHED);
		else
			assert_in_range(r.now - shut, 10 * NSEC_PER_SEC, 60 * NSEC_PER_SEC);
		rig_end(&r, t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patience_with_a_shut_window),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_acks_behind_a_gap),
		cmocka_unit_test(test_lent),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_random_pieces),
		cmocka_unit_test(test_too_many_gaps),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_offer_2013),
		cmocka_unit_test(test_delayed_ack),
		cmocka_unit_test(test_nagle),
		cmocka_unit_test(test_first_burst),
		cmocka_unit_test(test_half_window),
		cmocka_unit_test(test_persist),
		cmocka_unit_test(test_shrink),
		cmocka_unit_test(test_keepalive_user_timeout),
		cmocka_unit_test(test_paws),
		cmocka_unit_test(test_pmtu),
		cmocka_unit_test(test_ecn),
		cmocka_unit_test(test_size_goal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
