/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * caps_test: tables that strangers fill: each ends at its cap, counts what it refuses, and goes on. Those
 * of the engine by segments, those of a host by frames; the others are filled in the tests that
 * ARCHITECTURE.md names.
 */
#include "net/tcp_rig.h"

#include "net/pmtu.h"

static void one_byte(struct rig *r, uint32_t at)
{
	struct iovec iov = {r->data, 1};
	struct frame f = {
		.head = r->head.data, .head_len = RIG_HDR, .tail = &iov, .ntail = 1, .tail_len = 1};
	struct tcp_seg s = {.tuple = r->tu,
		.seq = r->irs + at,
		.ack = r->iss + 1,
		.wnd = 65535,
		.flags = TCP_ACK,
		.frame = &f,
		.off = RIG_HDR,
		.len = 1};

	tcp_host_in(r->x.h, &s, r->now);
}

static void drain(struct rig *r)
{
	while (tcp_host_out(r->x.h, &r->out, r->now))
		for (unsigned i = 0; i < r->out.nfrag; i++)
			chunk_put(&r->x.chunks, r->out.frag[i].chunk);
}

/* Bytes that nobody reads take all receive buffers; when they are read it goes on. */
static void receive_buffers(void **state)
{
	struct tcp_conf c = rig_conf();
	uint8_t buf[100];
	struct rig r;
	struct tcp *t;

	(void)state;
	c.rxbufs = 16;
	rig_init(&r, &c);
	t = rig_connect(&r, NULL);
	for (unsigned i = 0; i < 100; i++) {
		one_byte(&r, 1 + i);
		drain(&r);
	}
	assert_int_equal(r.x.h->rx_live, 16);
	assert_int_equal(r.x.h->c.rcv_nobuf, 84);
	assert_int_equal(rig_recv(&r, t, buf, sizeof(buf), 0), 16);
	one_byte(&r, 17);
	assert_int_equal(rig_recv(&r, t, buf, sizeof(buf), 0), 1);
	tcp_abort(t, r.now);
	drain(&r);
	rig_fini(&r);
}

/* Gaps in 300 connections: 256 may have some; the others take what is in order. */
static void blocks_of_gaps(void **state)
{
	struct tcp_conf c = rig_conf();
	struct ip_addr any = {{0}};
	struct tcp_listener *l;
	struct tcp *t[300];
	struct rig r;

	(void)state;
	c.conns = 300;
	rig_init(&r, &c);
	assert_int_equal(tcp_listen(r.x.h, &any, 80, 8, NULL, &l), 0);
	for (uint16_t i = 0; i < 300; i++) {
		r.tu.rport = (uint16_t)(5000 + i);
		r.have_iss = false;
		rig_in(&r, "S 0:0(0) win 65535 <mss 1460,sackOK>");
		rig_out(&r, "S. 0:0(0) ack 1");
		rig_in(&r, ". 1:1(0) ack 1");
		assert_non_null(t[i] = tcp_accept(l));
		one_byte(&r, 3);
		drain(&r);
	}
	assert_int_equal(r.x.h->c.rcv_nobuf, 300 - 256);
	one_byte(&r, 1);
	assert_int_equal(t[299]->rcv_nxt - r.irs, 2);
	for (unsigned i = 0; i < 300; i++) {
		tcp_abort(t[i], r.now);
		drain(&r);
	}
	tcp_unlisten(l, r.now);
	rig_fini(&r);
}

/*
 * No segment is left to cut with when the path gets smaller: those kept for that do it, and when
 * they are gone, too, what the window takes goes whole.
 */
static void segments_too_big(void **state)
{
	(void)state;
	for (unsigned reserve = 0; reserve < 2; reserve++) {
		struct tcp_conf c = rig_conf();
		uint32_t acked = 0;
		struct rig r;
		struct tcp *t;

		c.txsegs = 16;
		c.push_at_mss = true;
		c.no_tso = true;
		rig_init(&r, &c);
		t = rig_connect(&r, NULL);
		while (rig_send(&r, t, 1460, 0) > 0)
			;
		assert_int_equal(r.x.h->txseg_live, 14);
		assert_int_equal(r.x.h->c.snd_nobuf, 1);
		if (!reserve)
			r.x.h->txseg_used = 16; /* somebody else has them */
		tcp_path_mtu(t, 600);
		for (unsigned i = 0; i < 1000 && acked < t->write_seq - t->iss; i++) {
			char line[80];

			while (rig_take(&r))
				acked = r.out.seq + r.out.len - r.iss;
			snprintf(line, sizeof(line), ". 1:1(0) ack %u", acked);
			rig_in(&r, line);
			rig_wait(&r, NSEC_PER_SEC);
		}
		assert_int_equal(t->snd_una, t->write_seq);
		tcp_abort(t, r.now);
		drain(&r);
		rig_fini(&r);
	}
}

/* More to be answered than there is room for before somebody sends. */
static void replies(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	for (unsigned i = 0; i < 100; i++) {
		r.tu.raddr = ip_addr4_u32(0x0a000100 + i);
		rig_in(&r, ". 0:0(0) ack 5");
	}
	assert_int_equal(r.x.h->reply_n, TCP_REPLIES);
	assert_int_equal(r.x.h->c.reply_dropped, 100 - TCP_REPLIES);
	drain(&r);
	rig_fini(&r);
}

/* Small paths to more destinations than there are slots: each is found, or forgotten and counted. */
static void small_paths(void **state)
{
	struct pmtu_cache *c = calloc(1, sizeof(*c));
	unsigned known = 0;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		struct ip_addr dst = ip_addr4_u32(0x0a000000 + i);

		assert_true(pmtu_learn(c, &dst, 1000, 1500, 1));
	}
	for (unsigned i = 0; i < 2000; i++) {
		struct ip_addr dst = ip_addr4_u32(0x0a000000 + i);

		known += pmtu_find(c, &dst, 1500, 1) == 1000;
	}
	assert_in_range(known, 200, PMTU_SLOTS);
	assert_int_equal(c->evicted, 2000 - known);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_buffers),
		cmocka_unit_test(blocks_of_gaps),
		cmocka_unit_test(segments_too_big),
		cmocka_unit_test(replies),
		cmocka_unit_test(small_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
