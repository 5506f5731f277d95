/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What decides how much is sent, and when: was the timer right, when does slow start end, how is a
 * window spread over the round trip. [RFC 5682, 9406]
 */
#include "net/tcp_pair_rig.h"

/* ---- F-RTO ---- */

/* Six segments are out, more waits, and the timer runs off. */
static struct tcp *timed_out(struct rig *r, const struct tcp_conf *c)
{
	struct tcp *t;

	rig_init(r, c);
	t = rig_connect(r, "S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>");
	t->cc.cwnd = 6000;
	rig_send(r, t, 20000, 0);
	rig_out(r, ". 1:6001(6000) ack 1");
	rig_quiet(r);
	t->busy->loss.tlp_open = true; /* no probe: the timer itself */
	tcp_timer_rtx(t);
	while (t->busy->rto_count == 0)
		rig_wait(r, NSEC_PER_SEC);
	rig_out(r, ". 1:1001(1000) ack 1");
	rig_quiet(r);
	assert_int_equal(t->busy->loss.ca, TCP_CA_LOSS);
	assert_int_equal(t->cc.cwnd, 1000);
	return t;
}

/* The peer is slow to say that both are there, after a probe: its DSACK follows, and nothing was lost. */
static void test_probe_was_not_needed(void **state)
{
	struct rig r;
	struct tcp *t;
	uint32_t cwnd;

	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) {
		rig_init(&r, NULL);
		t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>");
		t->nodelay = 1;
		rig_send(&r, t, 2000, 0);
		rig_out(&r, "P. 1:2001(2000) ack 1");
		cwnd = t->cc.cwnd;
		while (r.x.h->c.tlp == 0)
			rig_wait(&r, NSEC_PER_MSEC);
		rig_out(&r, "P. 1001:2001(1000) ack 1");
		rig_in(&r, ". 1:1(0) ack 2001");
		assert_int_equal(t->cc.cwnd, cwnd);
		if (!lost)
			rig_in(&r, ". 1:1(0) ack 2001 <sack 1001-2001>");
		rig_send(&r, t, 1000, 0);
		rig_out(&r, "P. 2001:3001(1000) ack 1");
		rig_in(&r, ". 1:1(0) ack 3001");
		if (lost)
			assert_true(t->cc.ssthresh < UINT32_MAX);
		else
			assert_int_equal(t->cc.ssthresh, UINT32_MAX);
		rig_end(&r, t);
	}
}

/* The first ACK moves on: new data goes. The second one is of what was never sent again: undone. */
static void test_timer_was_wrong(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	t = timed_out(&r, NULL);
	rig_in(&r, ". 1:1(0) ack 1001");
	rig_out(&r, ". 6001:8001(2000) ack 1");
	rig_quiet(&r);
	rig_in(&r, ". 1:1(0) ack 2001");
	assert_int_equal(t->busy->loss.ca, TCP_CA_OPEN);
	assert_true(t->cc.cwnd >= 6000);
	assert_int_equal(r.x.h->c.frto_spurious, 1);
	rig_quiet(&r); /* the window is full with what is out */
	rig_in(&r, ". 1:1(0) ack 4001");
	assert_true(rig_take(&r));
	assert_memory_equal(r.text, ". 8001:", 7); /* nothing that is out is sent again */
	assert_int_equal(t->busy->retrans, 1);
	rig_end(&r, t);
}

/* The first was lost and the others waited for it: one ACK for all of them proves no wrong timer. */
static void test_timer_was_right_and_all_is_there(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	t = timed_out(&r, NULL);
	rig_in(&r, ". 1:1(0) ack 6001");
	assert_int_equal(r.x.h->c.frto_spurious, 0);
	assert_true(t->cc.ssthresh < UINT32_MAX);
	assert_true(t->cc.cwnd < 6000);
	rig_end(&r, t);
}

/* One ACK for more than what was sent again says all. */
static void test_timer_was_wrong_at_once(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	t = timed_out(&r, NULL);
	rig_in(&r, ". 1:1(0) ack 1 <sack 1001-2001>"); /* an original: or why would it come now? */
	assert_int_equal(t->busy->loss.ca, TCP_CA_OPEN);
	assert_int_equal(r.x.h->c.frto_spurious, 1);
	assert_int_equal(t->busy->retrans, 1);
	rig_end(&r, t);
}

/* The next ACK speaks of the new data only: what the timer thought was right. */
static void test_timer_was_right(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	t = timed_out(&r, NULL);
	rig_in(&r, ". 1:1(0) ack 1001");
	rig_out(&r, ". 6001:8001(2000) ack 1");
	rig_in(&r, ". 1:1(0) ack 1001 <sack 6001-7001>");
	assert_int_equal(t->busy->loss.ca, TCP_CA_LOSS);
	assert_true(t->cc.cwnd <= 3000);
	assert_true(rig_take(&r));
	assert_memory_equal(r.text, ". 1001:", 7);
	assert_int_equal(r.x.h->c.frto_spurious, 0);
	rig_end(&r, t);
}

/* Nothing new to send, or not wanted: the old goes again at once. */
static void test_timer_nothing_new(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig r;
	struct tcp *t;

	(void)state;
	c.no_frto = true;
	t = timed_out(&r, &c);
	rig_in(&r, ". 1:1(0) ack 1001");
	rig_out(&r, ". 1001:3001(2000) ack 1");
	rig_end(&r, t);

	t = timed_out(&r, NULL);
	rig_in(&r, ". 1:1(0) ack 1001 win 5000"); /* the window is full */
	rig_out(&r, ". 1001:3001(2000) ack 1");
	rig_end(&r, t);
}

/* ---- slow start ---- */

struct outcome {
	nsec_t took;
	uint64_t retrans, exits, paced;
};

/* 20 MB/s and 50 ms, so a megabyte on the way, and a queue of `limit`. */
static struct outcome transfer(struct tcp_conf conf, uint64_t bytes, uint32_t limit)
{
	struct tcp_conf c[2] = {conf, conf};
	const struct tcp_counters *k;
	struct outcome r;
	struct pair p;

	c[0].sndbuf = c[0].sndbuf_max = c[1].rcvbuf = c[1].rcvbuf_max = 16 << 20;
	pair_init(&p, c, 21);
	p.link[0].delay = p.link[1].delay = 25 * NSEC_PER_MSEC;
	p.link[0].rate = 20000000;
	p.link[0].limit = limit;
	p.link[0].far = true;
	p.app[0].to_send = bytes;
	pair_connect(&p);
	assert_true(pair_run(&p, 100 * NSEC_PER_SEC));
	assert_true(p.app[1].got == bytes);
	k = tcp_host_counters(p.host[0].h);
	r = (struct outcome){.took = p.now - NSEC_PER_SEC,
		.retrans = k->retrans,
		.exits = k->hystart_exits,
		.paced = k->paced};
	pair_fini(&p);
	return r;
}

/* A queue of three times the path: slow start ends before it is full, and nothing is lost for it. */
static void test_slow_start_ends_in_time(void **state)
{
	(void)state;
	for (unsigned cubic = 0; cubic < 2; cubic++) {
		struct tcp_conf c = {.cubic = cubic};
		struct outcome with, without;

		with = transfer(c, 40 << 20, 3000000);
		c.no_hystart = true;
		without = transfer(c, 40 << 20, 3000000);
		printf("%s: HyStart++ on: %.0f ms, %llu units again; off: %.0f ms, %llu\n",
			cubic ? "cubic" : "newreno", (double)with.took / 1e6,
			(unsigned long long)with.retrans, (double)without.took / 1e6,
			(unsigned long long)without.retrans);
		assert_int_equal(with.exits, 1);
		assert_true(without.retrans > 10);
		assert_true(with.retrans == 0);
		assert_true(with.took <= without.took + 25 * NSEC_PER_MSEC);
	}
}

/* ---- pacing ---- */

/*
 * A window of a hundred segments after a pause, 100 ms of round trip: 1.2 kB a millisecond, a millisecond
 * in advance, the first ten segments free. Without pacing all of it leaves at once.
 */
static void test_paced(void **state)
{
	(void)state;
	for (unsigned off = 0; off < 2; off++) {
		struct tcp_conf c = rig_conf();
		struct rig r;
		struct tcp *t;
		nsec_t from, last = 0;
		uint32_t out = 0;

		c.no_pacing = off;
		c.sndbuf = 1 << 20;
		rig_init(&r, &c);
		t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 500,sackOK>");
		t->cc.cwnd = t->cc.ssthresh = 50000;
		t->srtt = t->min_rtt = 100 * NSEC_PER_MSEC;
		rig_send(&r, t, 50000, 0);
		from = r.now;
		for (;;) {
			while (rig_take(&r)) {
				out += r.out.len;
				last = r.now;
				/* what the rate allows, in advance, the first, and two units */
				if (!off)
					assert_true(out <= (r.now - from) * 600 / NSEC_PER_MSEC +
								   600 + 5000 + 2000);
			}
			if (out == 50000 || r.now - from > 2 * NSEC_PER_SEC)
				break;
			rig_wait(&r, 5 * NSEC_PER_MSEC);
		}
		assert_int_equal(out, 50000);
		assert_int_equal(t->busy->retrans, 0);
		if (off)
			assert_true(last == from);
		else
			assert_true(last - from > 60 * NSEC_PER_MSEC &&
				    last - from < 90 * NSEC_PER_MSEC);
		rig_end(&r, t);
	}
}

/* Not run for 50 ms while data waits for its time: what could have left goes at once, no more. */
static void test_paced_but_late(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig r;
	struct tcp *t;
	uint32_t out = 0;

	(void)state;
	c.sndbuf = 1 << 20;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 500,sackOK>");
	t->cc.cwnd = t->cc.ssthresh = 50000;
	t->srtt = t->min_rtt = 100 * NSEC_PER_MSEC; /* 600 bytes a millisecond */
	rig_send(&r, t, 50000, 0);
	while (rig_take(&r))
		;
	r.now += 50 * NSEC_PER_MSEC;
	tcp_host_timer(r.x.h, r.now);
	while (rig_take(&r))
		out += r.out.len;
	assert_in_range(out, 28000, 32000);
	rig_end(&r, t);
}

/* A sample of an outage, an ACK that was lost for 70 s, does not make the rest go out one by one. */
static void test_paced_after_an_outage(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig r;
	struct tcp *t;
	uint32_t out = 0;

	(void)state;
	c.sndbuf = 1 << 20;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 500,sackOK>");
	t->cc.cwnd = t->cc.ssthresh = 50000;
	t->min_rtt = 2 * NSEC_PER_MSEC;
	t->srtt = 10 * NSEC_PER_SEC;
	rig_send(&r, t, 50000, 0);
	for (nsec_t end = r.now + 100 * NSEC_PER_MSEC; r.now < end;) {
		while (rig_take(&r))
			out += r.out.len;
		rig_wait(&r, NSEC_PER_MSEC);
	}
	assert_int_equal(out, 50000);
	rig_end(&r, t);
}

/* Nor do hours of them: a quarter of a second between two units, and what is lost goes when the timer says so. */
static void test_paced_after_many(void **state)
{
	struct tcp_conf c = rig_conf();
	struct rig r;
	struct tcp *t;
	uint32_t last;

	(void)state;
	c.sndbuf = 1 << 20;
	rig_init(&r, &c);
	t = rig_connect(&r, "S. 0:0(0) ack 1 win 65535 <mss 500,sackOK>");
	t->bytes_sent = 1 << 20;
	t->cc.cwnd = t->cc.ssthresh = 3000;
	t->srtt = t->min_rtt = 600 * NSEC_PER_SEC;
	t->rto = 60 * NSEC_PER_SEC;
	rig_send(&r, t, 50000, 0);
	for (const nsec_t end = r.now + 2 * NSEC_PER_SEC; r.now < end;) {
		while (rig_take(&r))
			;
		rig_wait(&r, 10 * NSEC_PER_MSEC);
	}
	assert_int_equal(t->snd_nxt - t->snd_una, 3000);
	for (unsigned i = 1; i < 4; i++) {
		last = t->busy->rto_count;
		while (t->busy->rto_count == last) {
			assert_true(tcp_host_deadline(r.x.h) != NSEC_NEVER);
			r.now = tcp_host_deadline(r.x.h);
			tcp_host_timer(r.x.h, r.now);
		}
		assert_true(rig_take(&r));
		assert_int_equal(r.out.seq, t->snd_una);
		while (rig_take(&r))
			;
	}
	rig_end(&r, t);
}

/* Neither a clean path nor one with a short queue gets slower by pacing. */
static void test_pacing_costs_nothing(void **state)
{
	static const uint32_t queue[] = {0, 400000, 100000};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tcp_conf c = {.cubic = true};
		struct outcome with, without;

		with = transfer(c, 64 << 20, queue[i]);
		c.no_pacing = true;
		without = transfer(c, 64 << 20, queue[i]);
		printf("queue of %u bytes: paced %.0f ms, %llu units again; not: %.0f ms, %llu\n",
			queue[i], (double)with.took / 1e6, (unsigned long long)with.retrans,
			(double)without.took / 1e6, (unsigned long long)without.retrans);
		assert_true(with.paced > 100 && without.paced == 0);
		assert_true(with.took <= without.took + without.took / 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_was_not_needed),
		cmocka_unit_test(test_timer_was_right_and_all_is_there),
		cmocka_unit_test(test_timer_was_wrong),
		cmocka_unit_test(test_timer_was_wrong_at_once),
		cmocka_unit_test(test_timer_was_right),
		cmocka_unit_test(test_timer_nothing_new),
		cmocka_unit_test(test_slow_start_ends_in_time),
		cmocka_unit_test(test_paced),
		cmocka_unit_test(test_paced_but_late),
		cmocka_unit_test(test_paced_after_an_outage),
		cmocka_unit_test(test_paced_after_many),
		cmocka_unit_test(test_pacing_costs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
