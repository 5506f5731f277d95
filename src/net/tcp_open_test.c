/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, closing, resetting: RFC 9293 3.5, 3.6, 3.10.7; RFC 5961; TIME-WAIT. */
#include "net/tcp_rig.h"

#include <errno.h>

static void test_connect_close(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	assert_int_equal(t->state, TCPS_ESTABLISHED);
	tcp_close(t, r.now);
	rig_out(&r, "F. 1:1(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 2");
	rig_in(&r, "F. 1:1(0) ack 2");
	rig_out(&r, ". 2:2(0) ack 2");
	rig_quiet(&r);
	assert_int_equal(r.x.h->live, 0);
	assert_int_equal(r.x.h->c.tw_made, 1);
	rig_in(&r, "F. 1:1(0) ack 2"); /* our last ACK was lost */
	rig_out(&r, ". 2:2(0) ack 2");
	rig_in(&r, "R 2:2(0)"); /* RFC 1337 */
	rig_quiet(&r);
	rig_wait(&r, 61 * NSEC_PER_SEC);
	rig_in(&r, "F. 1:1(0) ack 2");
	rig_out(&r, "R 2:2(0)");
	rig_fini(&r);
}

/* The user closes as soon as he sees the end, before its acknowledgement was taken. */
static void test_close_before_ack(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	assert_int_equal(tcp_shutdown_wr(t, r.now), 0);
	rig_out(&r, "F. 1:1(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 2");
	rig_in(&r, "F. 1:1(0) ack 2");
	tcp_close(t, r.now);
	rig_out(&r, ". 2:2(0) ack 2");
	rig_quiet(&r);
	assert_int_equal(r.x.h->live, 0);
	rig_fini(&r);
}

/* A send that found no room makes room an event, also if no other event came between. */
static void test_room_is_told(void **state)
{
	struct tcp_event e;
	struct rig r;
	struct tcp *t;
	unsigned told = 0;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	tcp_set(t, TCPO_SNDBUF, 8192, r.now);
	while (tcp_host_event(r.x.h, &e))
		;
	while (rig_send(&r, t, 1000, 0) > 0)
		;
	while (rig_take(&r))
		;
	rig_in(&r, ". 1:1(0) ack 7001");
	while (tcp_host_event(r.x.h, &e))
		told |= e.ready;
	assert_true(told & TCP_EV_WRITABLE);
	rig_end(&r, t);
}

static void test_accept_half_close(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_listener *l;
	char buf[10];

	(void)state;
	rig_init(&r, NULL);
	t = rig_accept(&r, &l, NULL);
	rig_in(&r, "FP. 1:4(3) ack 1");
	rig_out(&r, ". 1:1(0) ack 5");
	assert_int_equal(t->state, TCPS_CLOSE_WAIT);
	assert_int_equal(rig_recv(&r, t, buf, 10, 0), 3);
	assert_int_equal(rig_recv(&r, t, buf, 10, 0), 0);
	assert_int_equal(rig_send(&r, t, 5, 0), 5);
	rig_out(&r, "P. 1:6(5) ack 5");
	tcp_close(t, r.now);
	rig_out(&r, "F. 6:6(0) ack 5");
	rig_in(&r, ". 5:5(0) ack 7");
	rig_quiet(&r);
	assert_int_equal(r.x.h->live, 0);
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

static void test_simultaneous(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = tcp_new(r.x.h);
	r.tu.lport = 40000;
	assert_int_equal(tcp_connect(t, &r.tu, 0, r.now), 0);
	rig_out(&r, "S 0:0(0)");
	rig_in(&r, "S 0:0(0) win 65535 <mss 1460,sackOK>");
	rig_out(&r, "S. 0:0(0) ack 1");
	rig_in(&r, "S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK>");
	assert_int_equal(t->state, TCPS_ESTABLISHED);
	rig_quiet(&r);
	tcp_close(t, r.now);
	rig_out(&r, "F. 1:1(0) ack 1");
	rig_in(&r, "F. 1:1(0) ack 1"); /* crossed */
	rig_out(&r, "F. 1:1(0) ack 2");
	rig_in(&r, ". 2:2(0) ack 2");
	rig_quiet(&r);
	assert_int_equal(r.x.h->c.tw_made, 1);
	rig_fini(&r);
}

static void test_refused(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = tcp_new(r.x.h);
	r.tu.lport = 40000;
	tcp_connect(t, &r.tu, 0, r.now);
	rig_out(&r, "S 0:0(0)");
	rig_in(&r, "R 0:0(0)"); /* acknowledges nothing: ignored */
	rig_in(&r, ". 0:0(0) ack 2");
	rig_out(&r, "R 2:2(0)");
	rig_in(&r, "R. 0:0(0) ack 1");
	assert_int_equal(tcp_error(t), ECONNREFUSED);
	assert_true(tcp_ready(t) & TCP_EV_HUP);
	tcp_close(t, r.now);
	rig_quiet(&r);
	rig_fini(&r);
}

static void test_syn_retries(void **state)
{
	struct rig r;
	struct tcp *t;
	struct tcp_conf c = rig_conf();

	(void)state;
	c.syn_retries = 3;
	rig_init(&r, &c);
	t = tcp_new(r.x.h);
	r.tu.lport = 40000;
	tcp_connect(t, &r.tu, 0, r.now);
	rig_out(&r, "S 0:0(0)");
	for (unsigned i = 0; i < 3; i++) {
		nsec_t was = r.now;

		rig_wait(&r, 100 * NSEC_PER_SEC);
		assert_int_equal(r.now - was, NSEC_PER_SEC << i);
		rig_out(&r, "S 0:0(0)");
	}
	rig_wait(&r, 100 * NSEC_PER_SEC);
	rig_quiet(&r);
	assert_int_equal(tcp_error(t), ETIMEDOUT);
	tcp_close(t, r.now);
	rig_fini(&r);
}

/* A reset is believed at the next number only. [RFC 5961 3.2] */
static void test_blind_reset(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	rig_in(&r, "R 0:0(0)");
	rig_quiet(&r);
	rig_in(&r, "R 70000:70000(0)");
	rig_quiet(&r);
	rig_in(&r, "R 2:2(0)");
	rig_out(&r, ". 1:1(0) ack 1");
	rig_in(&r, "S 1:1(0)");
	rig_out(&r, ". 1:1(0) ack 1");
	rig_in(&r, ". 1:2(1) ack 2"); /* of what was never sent */
	rig_out(&r, ". 1:1(0) ack 1");
	rig_in(&r, ". 1:2(1) ack 4294867296"); /* long ago */
	rig_out(&r, ". 1:1(0) ack 1");
	for (unsigned i = 0; i < 30; i++)
		rig_in(&r, "R 2:2(0)");
	rig_out(&r, ". 1:1(0) ack 1");
	assert_true(r.x.h->c.challenge_limited > 10);
	rig_in(&r, "R 1:1(0)");
	assert_int_equal(tcp_error(t), ECONNRESET);
	tcp_close(t, r.now);
	rig_fini(&r);
}

static void test_unread_data(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	rig_in(&r, "P. 1:11(10) ack 1");
	rig_out(&r, ". 1:1(0) ack 11");
	tcp_close(t, r.now);
	rig_out(&r, "R. 1:1(0) ack 11");
	rig_quiet(&r);
	assert_int_equal(r.x.h->live, 0);
	rig_fini(&r);
}

/* Data after close: nobody will read it. */
static void test_data_after_close(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	tcp_close(t, r.now);
	rig_out(&r, "F. 1:1(0) ack 1");
	rig_in(&r, "P. 1:11(10) ack 2");
	rig_out(&r, "R. 2:2(0) ack 1");
	rig_quiet(&r);
	assert_int_equal(r.x.h->live, 0);
	rig_fini(&r);
}

static void test_finwait2_orphan(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = rig_connect(&r, NULL);
	tcp_close(t, r.now);
	rig_out(&r, "F. 1:1(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 2");
	rig_quiet(&r);
	rig_wait(&r, 59 * NSEC_PER_SEC);
	assert_int_equal(r.x.h->live, 1);
	rig_wait(&r, 2 * NSEC_PER_SEC);
	rig_quiet(&r);
	assert_int_equal(r.x.h->live, 0);
	rig_fini(&r);
}

static void test_land_and_strangers(void **state)
{
	struct rig r;
	struct tcp_listener *l;
	struct ip_addr any = {{0}};
	struct tcp_conf c = rig_conf();

	(void)state;
	c.drop_synfin = true;
	rig_init(&r, &c);
	tcp_listen(r.x.h, &any, 80, 8, NULL, &l);
	r.tu.raddr = r.tu.laddr;
	r.tu.rport = r.tu.lport;
	rig_in(&r, "S 0:0(0)");
	rig_quiet(&r);
	assert_int_equal(r.x.h->c.in_land, 1);
	r.tu.raddr = ip_addr4("\xe0\x00\x00\x01");
	r.tu.rport = 5;
	rig_in(&r, "S 0:0(0)");
	rig_quiet(&r);
	assert_int_equal(r.x.h->c.in_bad_addr, 1);
	r.tu.raddr = ip_addr4("\x0a\x00\x00\x02");
	rig_in(&r, "SF 0:0(0)");
	rig_in(&r, "F 0:0(0)");
	rig_quiet(&r);
	r.tu.lport = 81; /* nobody listens */
	r.iss = 0;
	r.have_iss = true;
	rig_in(&r, "S 5:8(3)");
	rig_out(&r, "R. 0:0(0) ack 9");
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

static void test_cookies(void **state)
{
	struct rig r;
	struct tcp_listener *l;
	struct tcp *t;
	struct tcp_conf c = rig_conf();

	(void)state;
	c.always_cookies = true;
	rig_init(&r, &c);
	t = rig_accept(&r, &l, "S 0:0(0) win 65535 <mss 1400,sackOK,ws 7>");
	assert_int_equal(t->peer_mss, 1400);
	assert_false(t->ws_ok); /* nothing carried it */
	tcp_abort(t, r.now);
	rig_out(&r, "R. 1:1(0) ack 1");
	rig_in(&r, "S 0:0(0) win 65535 <mss 1460,sackOK,ts 77,ws 7>");
	rig_out(&r, "S. 0:0(0) ack 1");
	r.now += 3 * NSEC_PER_SEC;
	rig_in(&r, ". 1:1(0) ack 2 <ts 78>"); /* a wrong one */
	rig_out(&r, "R 2:2(0)");
	rig_in(&r, ". 1:1(0) ack 1 <ts 78>");
	t = tcp_accept(l);
	assert_non_null(t);
	assert_true(t->ws_ok && t->snd_ws == 7 && t->sack_ok && t->ts_ok);
	assert_int_equal(r.x.h->c.cookies_bad, 1);
	tcp_abort(t, r.now);
	rig_out(&r, "R. 1:1(0) ack 1");
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

/* The accept queue is full: the ACK is dropped, not refused; the SYN-ACK comes again. */
static void test_backlog(void **state)
{
	struct rig r;
	struct tcp_listener *l;
	struct ip_addr any = {{0}};

	(void)state;
	rig_init(&r, NULL);
	tcp_listen(r.x.h, &any, 80, 1, NULL, &l);
	for (uint16_t i = 0; i < 3; i++) {
		r.tu.rport = (uint16_t)(5000 + i);
		rig_in(&r, "S 0:0(0) win 65535 <mss 1460>");
	}
	for (uint16_t i = 0; i < 3; i++) {
		r.tu.rport = (uint16_t)(5000 + i);
		rig_out(&r, "S. 0:0(0) ack 1");
		rig_in(&r, ". 1:1(0) ack 1");
	}
	rig_quiet(&r);
	assert_int_equal(r.x.h->c.accept_full, 1);
	tcp_abort(tcp_accept(l), r.now);
	assert_true(rig_take(&r));
	rig_wait(&r, 2 * NSEC_PER_SEC);
	rig_out(&r, "S. 0:0(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 1");
	assert_int_equal(l->naccept, 2);
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

static void test_timewait_reuse(void **state)
{
	struct rig r;
	struct tcp_listener *l;
	struct tcp *t;
	uint32_t old;

	(void)state;
	rig_init(&r, NULL);
	t = rig_accept(&r, &l, "S 0:0(0) win 65535 <mss 1460,ts 100>");
	tcp_close(t, r.now);
	rig_out(&r, "F. 1:1(0) ack 1");
	rig_in(&r, "F. 1:1(0) ack 2 <ts 101>");
	rig_out(&r, ". 2:2(0) ack 2");
	old = r.iss;
	rig_in(&r, "S 500:500(0) win 65535 <mss 1460,ts 100>");
	rig_out(&r, ". 2:2(0) ack 2"); /* older */
	r.now += NSEC_PER_SEC;
	rig_in(&r, "S 1:1(0) win 65535 <mss 1460,ts 101>");
	rig_out(&r, ". 2:2(0) ack 2"); /* within the tick, and of the old connection */
	rig_in(&r, "S 500:500(0) win 65535 <mss 1460,ts 101>");
	rig_out(&r, "S. 0:0(0) ack 501");
	assert_true(seq_lt(old + 2, r.iss));
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect_close),
		cmocka_unit_test(test_close_before_ack),
		cmocka_unit_test(test_room_is_told),
		cmocka_unit_test(test_accept_half_close),
		cmocka_unit_test(test_simultaneous),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_syn_retries),
		cmocka_unit_test(test_blind_reset),
		cmocka_unit_test(test_unread_data),
		cmocka_unit_test(test_data_after_close),
		cmocka_unit_test(test_finwait2_orphan),
		cmocka_unit_test(test_land_and_strangers),
		cmocka_unit_test(test_cookies),
		cmocka_unit_test(test_backlog),
		cmocka_unit_test(test_timewait_reuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
