/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric: where frames go, what waits and for how long, and that nothing is lost, doubled or turned
 * around on the way. Ports are fakes, time is virtual. This program is linked with malloc wrapped, to
 * count allocations in the path.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "fabric/fabric.h"
#include "fabric/fdb.h"
#include "port/fake.h"
#include "port/pair.h"
#include "wire/eth.h"

#define PORTS     4
#define BROADCAST UINT64_C(0xffffffffffff)
#define WAIT      (WAIT_US_DEFAULT * NSEC_PER_USEC)

enum { A, B, C, D };

struct net {
	struct loop loop;
	nsec_t now, step;
	struct fabric *f;
	struct fake p[PORTS];
};

static uint8_t buf[FRAME_MAX];

/* malloc, counted */

static unsigned allocations;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

/* the net */

static uint64_t mac_of(unsigned port)
{
	return UINT64_C(0x525400000100) + port;
}

static struct net *net_new(const struct fabric_config *cfg)
{
	static const char *const name[PORTS] = {"a", "b", "c", "d"};
	struct net *n = calloc(1, sizeof(*n));

	assert_int_equal(loop_init(&n->loop, NULL), 0);
	n->now = NSEC_PER_SEC;
	n->step = cfg->poll_us ? NSEC_PER_USEC : 0;
	n->loop.virtual_now = &n->now;
	n->loop.now = n->now;
	assert_int_equal(fabric_new(&n->f, cfg, &n->loop, NULL, NULL), 0);
	for (unsigned i = 0; i < PORTS; i++) {
		fake_init(&n->p[i], name[i], &n->loop);
		assert_int_equal(fabric_attach(n->f, &n->p[i].port, NULL), 0);
	}
	return n;
}

static int setup(void **state)
{
	const struct fabric_config cfg = {
		.wait_us = WAIT_US_DEFAULT, .age_sec = FDB_AGE_SEC, .seed = 7};

	*state = net_new(&cfg);
	return 0;
}

static int setup_poll(void **state)
{
	const struct fabric_config cfg = {
		.poll_us = 50, .wait_us = WAIT_US_DEFAULT, .age_sec = FDB_AGE_SEC, .seed = 7};

	*state = net_new(&cfg);
	return 0;
}

static int teardown(void **state)
{
	struct net *n = *state;

	for (unsigned i = 0; i < PORTS; i++) {
		if (n->p[i].port.events)
			fabric_detach(n->f, &n->p[i].port);
		fake_fini(&n->p[i]);
	}
	fabric_free(n->f);
	assert_int_equal(n->loop.nheap, 0);
	assert_true(TAILQ_EMPTY(&n->loop.tasks));
	loop_fini(&n->loop);
	free(n);
	return 0;
}

/* Rounds, until nothing is deferred. Time stands still, unless there is polling. */
static void run(struct net *n)
{
	for (unsigned i = 0; !TAILQ_EMPTY(&n->loop.tasks); i++) {
		assert_true(i < 100000);
		loop_dispatch(&n->loop, false);
		n->now += n->step;
	}
}

static void pass(struct net *n, nsec_t ns)
{
	nsec_t end = n->now + ns;

	for (run(n); loop_deadline(&n->loop) <= end; run(n)) {
		n->now = loop_deadline(&n->loop);
		loop_dispatch(&n->loop, false);
	}
	n->now = end;
	loop_dispatch(&n->loop, false);
	run(n);
}

static bool idle(const struct net *n)
{
	return TAILQ_EMPTY(&n->loop.tasks) && loop_deadline(&n->loop) == NSEC_NEVER;
}

static void lend(
	struct net *n, unsigned from, uint64_t dst, uint16_t tag, uint32_t len, uint32_t count)
{
	fake_lend(&n->p[from], buf, fake_eth(buf, dst, mac_of(from), tag, len, count), NULL);
}

static void lend_tcp(struct net *n, unsigned from, uint64_t dst, uint32_t payload,
	uint16_t gso_size, uint32_t seq)
{
	struct offload off;
	uint32_t len = fake_tcp4(buf, dst, mac_of(from), payload, gso_size, seq, &off);

	fake_lend(&n->p[from], buf, len, &off);
}

/* Lend one frame and see it through. */
static void send(struct net *n, unsigned from, uint64_t dst, uint16_t tag, uint32_t count)
{
	lend(n, from, dst, tag, 100, count);
	fake_kick(&n->p[from]);
	run(n);
}

static void forget_got(struct net *n)
{
	for (unsigned i = 0; i < PORTS; i++)
		fake_clear(&n->p[i].got);
}

/* Everybody's address is known. */
static void introduce(struct net *n)
{
	for (unsigned i = 0; i < PORTS; i++)
		send(n, i, BROADCAST, 0, i);
	forget_got(n);
}

static uint32_t count_of(const struct fake_frame *f)
{
	return get_be32(f->data + ETH_HLEN);
}

/* How many frames each port got since the last call, as a number to read: 0110 is one at B and C. */
static unsigned got(struct net *n)
{
	unsigned digits = 0;

	for (unsigned i = 0; i < PORTS; i++)
		digits = 10 * digits + n->p[i].got.n;
	forget_got(n);
	return digits;
}

/* where frames go */

static void learns(void **state)
{
	struct net *n = *state;

	run(n);
	send(n, A, mac_of(B), 0, 0); /* unknown: to all others */
	assert_int_equal(got(n), 111);
	send(n, B, mac_of(A), 0, 0);
	assert_int_equal(got(n), 1000);
	send(n, A, mac_of(B), 0, 0);
	assert_int_equal(got(n), 100);
	send(n, C, BROADCAST, 0, 0);
	assert_int_equal(got(n), 1101);
	send(n, C, UINT64_C(0x3333000000fb), 0, 0);
	assert_int_equal(got(n), 1101);
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(n->p[i].port.q.lost_out, 0);
	assert_true(idle(n));
}

static void vlans_are_learned_apart(void **state)
{
	struct net *n = *state;

	introduce(n);
	send(n, A, mac_of(B), 7, 0);
	assert_int_equal(got(n), 111);
	send(n, B, mac_of(A), 0xe007, 0); /* the priority does not matter */
	assert_int_equal(got(n), 1000);
	send(n, A, mac_of(B), 0x2007, 0);
	assert_int_equal(got(n), 100);
	send(n, A, mac_of(B), 8, 0);
	assert_int_equal(got(n), 111);
	send(n, A, mac_of(B), 0xa000, 0); /* a priority tag is no VLAN */
	assert_int_equal(got(n), 100);
}

static void also_within_a_burst(void **state)
{
	struct net *n = *state;

	introduce(n);
	lend(n, B, mac_of(A), 0, 100, 0);
	lend(n, B, mac_of(A), 7, 100, 0); /* unknown there */
	lend(n, B, mac_of(A), 0, 100, 0);
	fake_kick(&n->p[B]);
	run(n);
	assert_int_equal(got(n), 3011);
	send(n, A, mac_of(B), 7, 0);
	assert_int_equal(got(n), 100);
	/* the tag's VLAN is beyond the end: none, whatever lies there */
	fake_lend(&n->p[A], buf, fake_eth(buf, BROADCAST, mac_of(9), 0xffff, 14, 0), NULL);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(fdb_find(fabric_fdb(n->f), mac_of(9), 0, n->now), A);
}

static void stations_move(void **state)
{
	struct net *n = *state;

	introduce(n);
	fake_lend(&n->p[C], buf, fake_eth(buf, BROADCAST, mac_of(B), 0, 100, 0), NULL);
	fake_kick(&n->p[C]);
	run(n);
	forget_got(n);
	send(n, A, mac_of(B), 0, 0);
	assert_int_equal(got(n), 10);
	assert_int_equal(fdb_moves(fabric_fdb(n->f)), 1);
}

static void addresses_age(void **state)
{
	struct net *n = *state;

	introduce(n);
	pass(n, FDB_AGE_SEC * NSEC_PER_SEC);
	send(n, A, mac_of(B), 0, 0);
	assert_int_equal(got(n), 100);
	pass(n, NSEC_PER_SEC);
	send(n, A, mac_of(B), 0, 0);
	assert_int_equal(got(n), 111);
}

static void a_port_without_link_is_forgotten(void **state)
{
	struct net *n = *state;

	introduce(n);
	fake_link(&n->p[B], false);
	send(n, A, mac_of(B), 0, 0);
	assert_int_equal(got(n), 11);
	send(n, A, BROADCAST, 0, 0);
	assert_int_equal(got(n), 11);
	fake_link(&n->p[C], false);
	fake_link(&n->p[D], false);
	send(n, A, BROADCAST, 0, 0);
	assert_int_equal(got(n), 0);
	assert_int_equal(n->p[A].port.q.drop_in[DROP_NO_DEST], 1);
	lend(n, B, mac_of(A), 0, 100, 0);
	fake_kick(&n->p[B]); /* without link nothing is pulled */
	run(n);
	assert_int_equal(got(n), 0);
	fake_link(&n->p[B], true); /* with it what waits is */
	run(n);
	assert_int_equal(got(n), 1000);
	assert_true(idle(n));
}

static void refused_addresses(void **state)
{
	struct net *n = *state;
	struct portq *q = &n->p[A].port.q;

	introduce(n);
	fake_lend(&n->p[A], buf, fake_eth(buf, mac_of(B), 0, 0, 100, 0), NULL);
	fake_lend(&n->p[A], buf, fake_eth(buf, mac_of(B), BROADCAST, 0, 100, 0), NULL);
	fake_lend(&n->p[A], buf, fake_eth(buf, mac_of(B), 0x010000000001, 0, 100, 0), NULL);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(q->drop_in[DROP_BAD_SRC], 3);
	for (unsigned i = 0; i < 16; i++)
		send(n, A, UINT64_C(0x0180c2000000) + i, 0, 0);
	assert_int_equal(q->drop_in[DROP_RESERVED], 16);
	send(n, A, mac_of(A), 0, 0);
	assert_int_equal(q->drop_in[DROP_LOOP], 1);
	assert_int_equal(got(n), 0);
	send(n, A, UINT64_C(0x0180c2000010), 0, 0);
	assert_int_equal(got(n), 111);
	assert_int_equal(fdb_count(fabric_fdb(n->f), 0), 1);
}

static void one_port_cannot_evict_anothers_addresses(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].keep = n->p[C].keep = n->p[D].keep = false;
	for (unsigned i = 0; i < 3 * FDB_SHARE; i++)
		fake_lend(&n->p[A], buf, fake_eth(buf, BROADCAST, 0x020000000000 + i, 0, 60, 0),
			NULL);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(fdb_count(fabric_fdb(n->f), 0), FDB_SHARE);
	for (unsigned i = B; i < PORTS; i++)
		assert_int_equal(fdb_find(fabric_fdb(n->f), mac_of(i), 0, n->now), i);
}

static void big_and_tagged_frames_pass_unchanged(void **state)
{
	static const uint16_t tag[] = {0, 1, 0xffff};
	static const uint32_t len[] = {18, 60, 1518, 9018, FRAME_MAX};
	struct net *n = *state;

	introduce(n);
	for (unsigned t = 0; t < 3; t++) {
		for (unsigned l = 0; l < 5; l++) {
			lend(n, B, mac_of(A), tag[t], len[l], l);
			lend(n, A, mac_of(B), tag[t], len[l], l);
			fake_kick(&n->p[B]);
			fake_kick(&n->p[A]);
			run(n);
			assert_int_equal(n->p[B].got.f[n->p[B].got.n - 1].len, len[l]);
			assert_memory_equal(n->p[B].got.f[n->p[B].got.n - 1].data, buf, len[l]);
		}
	}
}

static void a_burst_is_one_push_one_flush_one_settle(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned i = 0; i < BURST_FRAMES; i++)
		lend(n, A, mac_of(B), 0, 60, i);
	for (unsigned i = 0; i < BURST_FRAMES; i++)
		lend(n, A, mac_of(i / 16 % 2 ? C : B), 0, 60, i);
	n->p[A].settles = n->p[B].pushes = n->p[B].flushes = n->p[C].pushes = n->p[C].flushes = 0;
	n->p[D].pushes = 0;
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(n->p[A].settles, 2);
	assert_int_equal(n->p[B].pushes, 1 + 2);
	assert_int_equal(n->p[C].pushes, 2);
	assert_int_equal(n->p[B].flushes, 2);
	assert_int_equal(n->p[C].flushes, 1);
	assert_int_equal(n->p[D].pushes, 0);
	assert_int_equal(n->p[B].unflushed, 0);
	for (unsigned i = 0; i < BURST_FRAMES; i++)
		assert_int_equal(count_of(&n->p[B].got.f[i]), i);
}

static void each_receiver_gets_what_it_can_take(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[C].port.accepts = ACCEPT_CSUM;
	n->p[D].port.accepts = 0;
	lend_tcp(n, A, BROADCAST, 30000, 1000, 0); /* fitted for each on its own */
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(n->p[B].got.n, 1);
	assert_int_equal(n->p[C].got.n, 30);
	assert_int_equal(n->p[D].got.n, 30);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(n->p[C].got.f[i].off.flags, OFF_NEEDS_CSUM);
		assert_int_equal(n->p[D].got.f[i].off.flags, 0);
		assert_true(fake_tcp4_good(&n->p[D].got.f[i]));
	}
	forget_got(n);
	n->p[B].port.accepts = 0; /* at run time */
	lend_tcp(n, A, mac_of(B), 30000, 1000, 0);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(n->p[B].got.n, 30);
}

/* coming and going */

static void names_and_addresses_are_unique(void **state)
{
	struct net *n = *state;
	struct fake x;
	struct err err;

	fake_init(&x, "b", &n->loop);
	assert_int_equal(fabric_attach(n->f, &x.port, &err), -EEXIST);
	assert_non_null(strstr(err.text, "\"b\""));
	fake_init(&x, "x", &n->loop);
	memcpy(x.port.mac, "\x52\x54\0\0\0\x01", 6);
	memcpy(n->p[C].port.mac, "\x52\x54\0\0\0\x01", 6);
	assert_int_equal(fabric_attach(n->f, &x.port, &err), -EEXIST);
	assert_non_null(strstr(err.text, "\"x\""));
	assert_non_null(strstr(err.text, "\"c\""));
	assert_non_null(strstr(err.text, "52:54:00:00:00:01"));
	x.port.name[0] = ' ';
	assert_int_equal(fabric_attach(n->f, &x.port, &err), -EINVAL);
	assert_ptr_equal(fabric_find(n->f, "c"), &n->p[C].port);
	assert_null(fabric_find(n->f, "x"));
	assert_ptr_equal(fabric_first(n->f), &n->p[A].port);
	assert_ptr_equal(fabric_port(n->f, 1), &n->p[B].port);
	assert_null(fabric_port(n->f, 77));
	assert_null(fabric_port(n->f, PORTS_MAX));
}

static void a_full_network_refuses(void **state)
{
	static struct fake more[PORTS_MAX];
	struct net *n = *state;
	char name[8];
	struct err err;
	unsigned i;

	for (i = 0; i < PORTS_MAX - PORTS + 1; i++) {
		int r;

		snprintf(name, sizeof(name), "p%u", i);
		fake_init(&more[i], name, &n->loop);
		r = fabric_attach(n->f, &more[i].port, &err);
		assert_int_equal(r, i < PORTS_MAX - PORTS ? 0 : -ENOSPC);
	}
	assert_non_null(strstr(err.text, "128"));
	introduce(n);
	for (i = 0; i < PORTS_MAX - PORTS; i++) {
		assert_int_equal(more[i].got.n, PORTS);
		fabric_detach(n->f, &more[i].port);
		fake_fini(&more[i]);
	}
}

static void count_link(void *ctx, struct port *p)
{
	(void)p;
	++*(unsigned *)ctx;
}

static void link_changes_are_told(void **state)
{
	struct net *n = *state;
	unsigned told = 0;

	fabric_on_link(n->f, count_link, &told);
	fake_link(&n->p[A], false);
	fake_link(&n->p[A], false);
	fake_link(&n->p[A], true);
	assert_int_equal(told, 2);
}

/* waiting */

static void waits_for_room(void **state)
{
	struct net *n = *state;
	struct fabric_stats s;

	introduce(n);
	for (unsigned i = 0; i < 10; i++)
		lend(n, A, mac_of(i == 5 ? C : B), 0, 100, i);
	n->p[B].room = 3;
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(got(n), 300);
	assert_int_equal(n->p[A].next, 1 + 3); /* the introduction was the first */
	assert_true(n->p[B].room_armed);
	assert_int_equal(n->p[B].room_need, 200); /* frames 3 and 4: the rest of the run */
	assert_false(idle(n));                    /* a timer */
	fake_kick(&n->p[A]);                      /* does not help */
	run(n);
	assert_int_equal(got(n), 0);
	pass(n, WAIT / 2);
	fake_give_room(&n->p[B], 100);
	run(n);
	assert_int_equal(n->p[A].last_max, BURST_FRAMES);
	assert_int_equal(got(n), 610);
	assert_true(idle(n));
	fabric_get_stats(n->f, &s);
	assert_int_equal(s.waits, 1);
	assert_int_equal(s.wait_timeouts, 0);
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(n->p[i].port.q.lost_out, 0);
}

static void the_pull_after_a_pause_is_bounded(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned i = 0; i < 40; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	n->p[B].room = 30;
	fake_kick(&n->p[A]);
	run(n);
	n->p[A].pulls = 0;
	for (unsigned i = 0; i < 40; i++)
		lend(n, A, mac_of(B), 0, 100, 40 + i);
	fake_give_room(&n->p[B], 9);
	loop_dispatch(&n->loop, false);
	assert_int_equal(n->p[A].pulls, 1);
	assert_int_equal(n->p[A].last_max, 10);
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[B].got.n, 80);
	for (unsigned i = 0; i < 80; i++)
		assert_int_equal(count_of(&n->p[B].got.f[i]), i);
}

static void room_meanwhile_is_used_at_once(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned i = 0; i < 10; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	n->p[B].room = 0;
	n->p[B].lie = true; /* and never any */
	fake_kick(&n->p[A]);
	run(n); /* ends: it is not believed for ever */
	assert_false(n->p[B].room_armed);
	assert_true(n->p[A].pulls < 12);
	pass(n, WAIT - 1);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	n->p[B].room = 10;
	pass(n, 1);
	assert_int_equal(n->p[B].got.n, 10);
}

static void a_head_that_waited_enough_is_given_up(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned i = 0; i < 5; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	n->p[B].room = 1;
	fake_kick(&n->p[A]);
	pass(n, WAIT - 1);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	pass(n, 1); /* frame 1 goes, 2 to 4 wait on: nobody else is behind them */
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 1);
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[B].got.n, 4);
	assert_int_equal(count_of(&n->p[B].got.f[1]), 2);
	assert_true(idle(n));
}

static void others_wait_once_only(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned i = 0; i < 5; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	lend(n, A, mac_of(C), 0, 100, 5);
	n->p[B].room = 0;
	fake_kick(&n->p[A]);
	pass(n, WAIT - 1);
	assert_int_equal(got(n), 0);
	pass(n, 1);
	assert_int_equal(got(n), 10);
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 5);
	assert_true(idle(n));
}

static void wait_us_0_drops_at_once(void **state)
{
	const struct fabric_config cfg = {.age_sec = FDB_AGE_SEC};
	struct net *n = net_new(&cfg);

	introduce(n);
	lend(n, A, mac_of(B), 0, 100, 0);
	lend(n, A, mac_of(B), 0, 100, 1);
	lend(n, A, mac_of(C), 0, 100, 2);
	n->p[B].room = 1;
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(got(n), 110);
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 1);
	*state = n;
}

static void floods_never_wait(void **state)
{
	struct net *n = *state;

	introduce(n);
	lend(n, A, BROADCAST, 0, 100, 0);
	lend_tcp(n, A, BROADCAST, 30000, 1000, 1);
	lend(n, A, BROADCAST, 0, 100, 2);
	n->p[B].room = 0;
	n->p[C].room = 11;
	n->p[C].port.accepts = 0;
	fake_kick(&n->p[A]);
	run(n);
	assert_true(idle(n));
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 3);
	assert_int_equal(n->p[C].got.n, 11);
	assert_int_equal(n->p[C].port.q.drop_out[DROP_NO_ROOM], 2);
	assert_int_equal(n->p[D].got.n, 3);
	n->p[C].room = FAKE_ANY; /* and nothing is resumed later */
	lend_tcp(n, A, mac_of(C), 3000, 1000, 1);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(n->p[C].got.n, 11 + 3);
}

/* A super-packet between other frames, to a receiver that takes k segments at a time. */
static void resumes_in_the_middle(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = 0;
	for (uint32_t k = 1; k <= 68; k++) {
		unsigned given = 0;

		forget_got(n);
		lend(n, A, mac_of(C), 0, 100, k);
		lend(n, A, mac_of(B), 0, 100, 0);
		lend_tcp(n, A, mac_of(B), 64 * 1000, 1000, 0);
		lend(n, A, mac_of(B), 0, 100, 1);
		lend(n, A, mac_of(C), 0, 100, k + 1);
		n->p[B].room = k;
		fake_kick(&n->p[A]);
		for (run(n); n->p[C].got.n < 2; run(n)) {
			fake_give_room(&n->p[B], k);
			assert_true(++given < 70);
		}
		assert_int_equal(n->p[B].got.n, 66);
		assert_int_equal(count_of(&n->p[B].got.f[0]), 0);
		assert_int_equal(count_of(&n->p[B].got.f[65]), 1);
		for (uint32_t i = 0; i < 64; i++) {
			assert_int_equal(get_be32(n->p[B].got.f[1 + i].data + 38), i * 1000);
			assert_true(fake_tcp4_good(&n->p[B].got.f[1 + i]));
		}
	}
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	assert_true(idle(n));
}

/* The sender took its frame back and put another one there. */
static void another_frame_is_not_resumed(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = 0;
	lend_tcp(n, A, mac_of(B), 10000, 1000, 0);
	n->p[B].room = 4;
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(got(n), 400);
	n->p[A].next++;
	lend_tcp(n, A, mac_of(B), 10000, 1000, 1 << 20);
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[B].got.n, 10);
}

/* Every segment taken is progress: the head is waited for as long as some are. */
static void segments_are_progress(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = 0;
	n->p[B].room = 0;
	lend_tcp(n, A, mac_of(B), 60 * 1000, 1000, 0);
	fake_kick(&n->p[A]);
	run(n);
	for (unsigned i = 0; i < 6; i++) {
		pass(n, WAIT * 2 / 3);
		fake_give_room(&n->p[B], 10);
		run(n);
	}
	assert_int_equal(n->p[B].got.n, 60);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	assert_true(idle(n));
}

static void a_moved_target_gets_the_whole_frame(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = n->p[C].port.accepts = 0;
	lend_tcp(n, A, mac_of(B), 10000, 1000, 0);
	n->p[B].room = 4;
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(got(n), 400);
	fake_lend(&n->p[C], buf, fake_eth(buf, mac_of(D), mac_of(B), 0, 100, 0), NULL);
	fake_kick(&n->p[C]); /* B is behind C now */
	run(n);
	forget_got(n);
	fake_give_room(&n->p[B], 4);
	run(n);
	assert_int_equal(n->p[C].got.n, 10);
	assert_int_equal(n->p[B].got.n, 0);
	assert_true(idle(n));
}

static void longest_waiter_first(void **state)
{
	struct net *n = *state;
	unsigned from[3] = {0};

	introduce(n);
	n->p[D].room = 0;
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned s = A; s <= C; s++)
			lend(n, s, mac_of(D), 0, 100, i);
	}
	for (unsigned s = A; s <= C; s++)
		fake_kick(&n->p[s]);
	run(n);
	for (unsigned i = 0; i < 300; i++) {
		fake_give_room(&n->p[D], 1);
		run(n);
	}
	assert_int_equal(n->p[D].got.n, 300);
	for (unsigned i = 0; i < 300; i++)
		from[n->p[D].got.f[i].data[11]]++;
	for (unsigned s = A; s <= C; s++)
		assert_int_equal(from[s], 100);
}

static void the_smallest_need_wakes(void **state)
{
	struct net *n = *state;
	static const uint32_t len[] = {1000, 60, 500};

	introduce(n);
	n->p[D].room = 0;
	for (unsigned s = A; s <= C; s++) {
		lend(n, s, mac_of(D), 0, len[s], 0);
		fake_kick(&n->p[s]);
		run(n);
		assert_int_equal(n->p[D].room_need, s == A ? 1000 : 60);
	}
	fake_give_room(&n->p[D], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[D].got.n, 3);
	n->p[D].room = 0;
	lend(n, C, mac_of(D), 0, 500, 0);
	fake_kick(&n->p[C]);
	run(n);
	assert_int_equal(n->p[D].room_need, 500);
}

static void ready_queues_take_turns(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned s = A; s <= C; s++) {
		lend(n, s, mac_of(D), 0, 60, 0);
		n->p[s].next = 1;
		n->p[s].endless = true;
		fake_kick(&n->p[s]);
	}
	n->p[D].keep = false;
	for (unsigned i = 0; i < 30; i++)
		loop_dispatch(&n->loop, false);
	for (unsigned s = B; s <= C; s++) {
		int64_t more = (int64_t)(n->p[s].port.q.in.frames - n->p[A].port.q.in.frames);

		assert_true(more <= BURST_FRAMES && more >= -BURST_FRAMES);
	}
	assert_true(n->p[A].port.q.in.frames >= 30 * BURST_FRAMES * 5);
}

/* budgets, in virtual time: a frame takes a microsecond */

#define FRAME_NS NSEC_PER_USEC

struct rates {
	uint64_t a_to_c, d_to_c;
};

/* B gives room for one frame every `trickle` ns, C takes everything, for 100 ms. */
static struct rates window(struct net *n, nsec_t trickle)
{
	uint64_t a0 = n->p[C].port.q.out.frames, d0 = n->p[D].port.q.in.frames;
	nsec_t end = n->now + 100 * NSEC_PER_MSEC, next = n->now + trickle;
	struct rates r;

	while (n->now < end) {
		uint64_t before = n->p[A].port.q.in.frames + n->p[D].port.q.in.frames, frames;

		loop_dispatch(&n->loop, false);
		frames = n->p[A].port.q.in.frames + n->p[D].port.q.in.frames - before;
		n->now += frames * FRAME_NS;
		if (!frames)
			n->now += FRAME_NS;
		for (; trickle && next <= n->now; next += trickle)
			fake_give_room(&n->p[B], 1);
	}
	r.d_to_c = n->p[D].port.q.in.frames - d0;
	r.a_to_c = n->p[C].port.q.out.frames - a0 - r.d_to_c;
	return r;
}

static void a_trickling_guest_starves_nobody(void **state)
{
	static const nsec_t trickles[] = {5000, 20000, 50000, 300000, 900000, 1100000, 90000000};
	struct net *n = *state;
	struct rates base;

	introduce(n);
	fake_clear(&n->p[A].lend);
	fake_clear(&n->p[D].lend);
	n->p[A].next = n->p[D].next = 0;
	for (unsigned i = 0; i < BURST_FRAMES; i++)
		lend(n, A, mac_of(i % 2 ? B : C), 0, 60, i);
	lend(n, D, mac_of(C), 0, 60, 0);
	for (unsigned i = A; i <= D; i++)
		n->p[i].keep = false;
	n->p[A].endless = n->p[D].endless = true;
	fake_kick(&n->p[A]);
	fake_kick(&n->p[D]);
	base = window(n, 0);
	for (unsigned t = 0; t < sizeof(trickles) / sizeof(*trickles); t++) {
		struct fabric_stats s0, s1;

		n->p[B].room = 0;
		fabric_get_stats(n->f, &s0);
		for (unsigned w = 0; w < 4; w++) {
			struct rates r = window(n, trickles[t]);

			assert_true(r.a_to_c * 100 >= base.a_to_c * 90);
			assert_true(r.d_to_c * 100 >= base.d_to_c * 90);
		}
		fabric_get_stats(n->f, &s1);
		assert_true(s1.waits > s0.waits);
	}
	n->p[A].endless = n->p[D].endless = false;
	fake_clear(&n->p[A].lend);
	fake_clear(&n->p[D].lend);
	n->p[A].next = n->p[D].next = 0;
}

/* Two guests that drain what they receive only when what they sent is gone. */
static void two_guests_mutually_full_go_on(void **state)
{
	struct net *n = *state;
	nsec_t start = n->now;

	introduce(n);
	n->p[A].room = n->p[B].room = 0;
	for (unsigned i = 0; i < 200; i++) {
		lend(n, A, mac_of(B), 0, 100, i);
		lend(n, B, mac_of(A), 0, 100, i);
	}
	fake_kick(&n->p[A]);
	fake_kick(&n->p[B]);
	for (run(n); n->p[A].next < n->p[A].lend.n || n->p[B].next < n->p[B].lend.n;)
		pass(n, 100 * NSEC_PER_USEC);
	assert_true(n->now - start < 20 * NSEC_PER_MSEC);
	assert_true(idle(n));
}

/* gone in the middle */

static void the_awaited_port_goes(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = 0;
	n->p[B].room = 4;
	lend_tcp(n, A, mac_of(B), 10000, 1000, 0);
	lend_tcp(n, C, mac_of(B), 10000, 1000, 0);
	fake_kick(&n->p[A]);
	fake_kick(&n->p[C]);
	run(n);
	assert_false(idle(n));
	fabric_detach(n->f, &n->p[B].port);
	run(n);
	assert_true(idle(n)); /* both were flooded instead, whole */
	assert_int_equal(n->p[D].got.n, 2);
	/* another one takes its place in the table, with a fresh budget */
	assert_int_equal(fabric_attach(n->f, &n->p[B].port, NULL), 0);
	assert_int_equal(n->p[B].port.index, 1);
	introduce(n);
	n->p[B].room = FAKE_ANY;
	lend_tcp(n, A, mac_of(B), 10000, 1000, 0);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(n->p[B].got.n, 10);
}

static void and_its_memory(void **state)
{
	struct net *n = *state;
	struct fake *k = malloc(sizeof(*k));

	fake_init(k, "k", &n->loop);
	assert_int_equal(fabric_attach(n->f, &k->port, NULL), 0);
	fake_lend(k, buf, fake_eth(buf, BROADCAST, mac_of(9), 0, 60, 0), NULL);
	run(n);
	k->room = 0;
	lend(n, A, mac_of(9), 0, 100, 0);
	lend(n, B, mac_of(9), 0, 100, 0);
	fake_kick(&n->p[A]);
	run(n);
	fake_kick(&n->p[B]);
	run(n);
	fake_give_room(k, 1); /* A is awake, but has not had its turn */
	fabric_detach(n->f, &k->port);
	fake_fini(k);
	free(k);
	run(n);
	assert_true(idle(n));
	assert_int_equal(n->p[A].next, n->p[A].lend.n);
	assert_int_equal(n->p[B].next, n->p[B].lend.n);
}

static void the_awaited_link_flaps(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = 0;
	n->p[B].room = 4;
	lend_tcp(n, A, mac_of(B), 10000, 1000, 0);
	fake_kick(&n->p[A]);
	run(n);
	forget_got(n);
	fake_link(&n->p[B], false); /* and up again before A has its turn */
	n->p[B].room = FAKE_ANY;
	fake_link(&n->p[B], true);
	run(n);
	assert_int_equal(
		n->p[B].got.n, 10); /* whole: a new driver knows nothing of the first four */
	assert_true(idle(n));
}

static void the_waiting_port_goes(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].room = 0;
	lend(n, A, mac_of(B), 0, 100, 0);
	lend(n, C, mac_of(B), 0, 100, 0);
	fake_kick(&n->p[A]);
	fake_kick(&n->p[C]);
	run(n);
	fake_link(&n->p[A], false);
	fabric_detach(n->f, &n->p[C].port);
	assert_true(TAILQ_EMPTY(&n->p[B].port.q.fab.waiters));
	assert_true(idle(n));
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(got(n), 0);
}

/* costs */

static void idle_costs_nothing(void **state)
{
	struct net *n = *state;
	struct fabric_stats s0, s1;

	introduce(n);
	for (unsigned i = 0; i < PORTS; i++)
		assert_true(n->p[i].armed);
	fabric_get_stats(n->f, &s0);
	assert_true(idle(n));
	pass(n, 3600 * NSEC_PER_SEC);
	fabric_get_stats(n->f, &s1);
	assert_int_equal(s0.turns, s1.turns);
	assert_true(idle(n));
}

static void polls_so_long_then_arms(void **state)
{
	struct net *n = *state;
	unsigned rounds = 0;

	run(n);
	n->p[A].arms = n->p[A].pulls = 0;
	lend(n, A, BROADCAST, 0, 100, 0);
	fake_kick(&n->p[A]);
	for (; !TAILQ_EMPTY(&n->loop.tasks); rounds++) {
		loop_dispatch(&n->loop, false);
		n->now += NSEC_PER_USEC;
		if (rounds == 30) { /* found without being told */
			lend(n, A, BROADCAST, 0, 100, 1);
		}
	}
	assert_int_equal(n->p[B].got.n, 2);
	assert_true(rounds >= 80 && rounds < 85);
	assert_true(n->p[A].pulls >= 80);
	assert_int_equal(n->p[A].arms, 1);
	assert_true(n->p[A].armed);
	assert_true(idle(n));
}

static void polls_for_room_then_arms(void **state)
{
	struct net *n = *state;
	unsigned rounds;

	introduce(n);
	for (unsigned i = 0; i < 20; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	n->p[B].room = 10;
	fake_kick(&n->p[A]);
	for (rounds = 0; rounds < 30; rounds++, n->now += NSEC_PER_USEC) {
		loop_dispatch(&n->loop, false);
		assert_false(n->p[B].room_armed);
	}
	assert_int_equal(n->p[B].got.n, 10);
	n->p[B].room = 2; /* found without being told */
	loop_dispatch(&n->loop, false);
	assert_int_equal(n->p[B].got.n, 12);
	for (rounds = 0; !n->p[B].room_armed; rounds++, n->now += NSEC_PER_USEC)
		loop_dispatch(&n->loop, false);
	assert_true(rounds >= 49 && rounds <= 52);
	run(n);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[B].got.n, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(count_of(&n->p[B].got.f[i]), i);
	assert_true(idle(n));
}

static void frames_that_come_while_arming(void **state)
{
	struct net *n = *state;

	introduce(n);
	for (unsigned i = 0; i < 3 * 16 * BURST_FRAMES; i++)
		lend(n, A, mac_of(B), 0, 60, i);
	n->p[B].keep = false;
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(n->p[B].port.q.out.frames, 3 * 16 * BURST_FRAMES + 3);
	assert_true(idle(n));
}

static void nothing_is_allocated_in_the_path(void **state)
{
	struct net *n = *state;
	unsigned before;

	introduce(n);
	n->p[C].port.accepts = 0;
	for (unsigned i = 0; i < PORTS; i++)
		n->p[i].keep = false;
	for (unsigned i = 0; i < 100; i++) {
		lend(n, A, mac_of(B), 0, 100, i);
		lend(n, A, BROADCAST, 0, 100, i);
		lend_tcp(n, B, mac_of(C), 60000, 1448, i);
		lend_tcp(n, B, mac_of(C), 1000, 0, i);
		fake_lend(&n->p[D], buf, fake_eth(buf, mac_of(C), 0x020000000000 + i, 0, 60, 0),
			NULL);
	}
	n->p[C].room = 30;
	before = allocations;
	assert_true(before > 0);
	for (unsigned i = 0; i < PORTS; i++)
		fake_kick(&n->p[i]);
	for (unsigned i = 0; i < 200; i++) {
		pass(n, 100 * NSEC_PER_USEC);
		fake_give_room(&n->p[C], 30);
	}
	assert_int_equal(allocations, before);
	assert_true(n->p[C].port.q.fit_segments > 1000);
}

/* pairs, through the loop's own events: x - a | b - y */
static void pairs_through_the_network(void **state)
{
	struct net *n = *state;
	struct port *x, *y;
	struct pair *l, *r;
	unsigned came = 0, sent = 0;
	static struct burst burst;
	static struct fit fit;

	assert_int_equal(pair_new(&l, "x", "left", 16, &n->loop, NULL, NULL), 0);
	assert_int_equal(pair_new(&r, "right", "y", 8, &n->loop, NULL, NULL), 0);
	assert_int_equal(fabric_attach(n->f, pair_port(l, 1), NULL), 0);
	assert_int_equal(fabric_attach(n->f, pair_port(r, 0), NULL), 0);
	introduce(n);
	x = pair_port(l, 0);
	y = pair_port(r, 1);
	while (came < 1000) {
		struct frame f = {.head = buf, .head_len = 60};
		uint32_t resume = 0;

		fake_eth(buf, sent ? mac_of(9) : BROADCAST, mac_of(8), 0, 60, sent);
		sent += port_push(&x->q, &f, 1, &resume, &fit);
		x->ops->flush(&x->q);
		if (sent % 3 == 0) {
			unsigned got_n = port_pull(&y->q, &burst, 5);

			for (unsigned i = 0; i < got_n; i++) {
				if (get_be16(burst.f[i].head + 10) == 0x0108)
					assert_int_equal(get_be32(burst.f[i].head + 14), came++);
			}
			port_settle(&y->q, &burst, got_n);
		}
		loop_dispatch(&n->loop, false);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct port *p = pair_port(i ? r : l, !i);

		fabric_detach(n->f, p);
		p->ops->close(p);
	}
	pair_free(l);
	pair_free(r);
}

/*
 * Anything at random: frames of all kinds, room, time, links, comings and goings. Every frame for one
 * station that is known arrives once and in order, or is counted where it was lost.
 */
static void send_random(struct net *n, struct rand *r, uint32_t count[PORTS][PORTS])
{
	unsigned from = rand_below(r, PORTS), to = (from + 1 + rand_below(r, PORTS - 1)) % PORTS;

	for (unsigned i = rand_below(r, 40); i; i--) {
		if (!rand_below(r, 8))
			to = (from + 1 + rand_below(r, PORTS - 1)) % PORTS;
		if (!rand_below(r, 4)) {
			lend_tcp(n, from, mac_of(to), 1000 * (1 + rand_below(r, 60)), 1000,
				count[from][to]++ << 16);
		} else {
			lend(n, from, mac_of(to), 0, 60 + rand_below(r, 3000), count[from][to]++);
		}
	}
	fake_kick(&n->p[from]);
}

static void check_order(const struct net *n, unsigned to, uint32_t last[PORTS][PORTS])
{
	const struct fake_list *l = &n->p[to].got;

	for (unsigned i = 0; i < l->n; i++) {
		const uint8_t *d = l->f[i].data;
		unsigned from = d[11];
		uint32_t at;

		if (d[0] == 0xff)
			continue;
		assert_int_equal(d[5], to);
		if (get_be16(d + 12) == ETH_TYPE_IP4) /* count and segment; +1: none yet is 0 */
			at = get_be32(d + 38) + 1;
		else
			at = (get_be32(d + 14) << 16) + 1;
		assert_true(at > last[from][to]);
		last[from][to] = at;
	}
}

static void anything_at_random(void **state)
{
	static const unsigned accepts[] = {0, ACCEPT_CSUM, ACCEPT_ALL};
	struct net *n = *state;
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	uint32_t count[PORTS][PORTS] = {0}, last[PORTS][PORTS] = {0};
	struct rand r;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	introduce(n);
	for (unsigned i = 0; i < PORTS; i++)
		n->p[i].port.accepts = accepts[i % 3];
	for (unsigned step = 0; step < 4000; step++) {
		unsigned p = rand_below(&r, PORTS);

		send_random(n, &r, count);
		if (n->p[p].room == FAKE_ANY && rand_below(&r, 2))
			n->p[p].room = rand_below(&r, 50);
		fake_give_room(&n->p[p], rand_below(&r, 8) ? rand_below(&r, 200) : FAKE_ANY);
		if (rand_below(&r, 2))
			loop_dispatch(&n->loop, false);
		else
			pass(n, rand_below(&r, 300000));
		for (unsigned i = 0; i < PORTS; i++)
			check_order(n, i, last);
		forget_got(n);
	}
	for (unsigned i = 0; i < PORTS; i++)
		fake_give_room(&n->p[i], FAKE_ANY);
	pass(n, NSEC_PER_SEC);
	for (unsigned to = 0; to < PORTS; to++) {
		const struct portq *q = &n->p[to].port.q;
		uint64_t sent = 0, whole = q->out.frames - q->fit_segments - (PORTS - 1);

		for (unsigned from = 0; from < PORTS; from++)
			sent += count[from][to];
		assert_int_equal(n->p[to].next, n->p[to].lend.n);
		assert_true(whole + q->lost_out <= sent);
		assert_true(q->out.frames + q->lost_out >= sent);
		if (accepts[to % 3] == ACCEPT_ALL)
			assert_int_equal(whole + q->lost_out, sent);
		assert_int_equal(q->lost_out, q->drop_out[DROP_NO_ROOM]);
	}
	assert_true(idle(n));
}

/* The same with links and ports that come and go: for the sanitizers, and that it always ends. */
static void anything_with_ports_that_go(void **state)
{
	struct net *n = *state;
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	uint32_t count[PORTS][PORTS] = {0};
	struct rand r;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned step = 0; step < 6000; step++) {
		unsigned i = rand_below(&r, PORTS);
		struct fake *k = &n->p[i];

		k->keep = false;
		if (!rand_below(&r, 10)) {
			if (k->port.events)
				fabric_detach(n->f, &k->port);
			else
				assert_int_equal(fabric_attach(n->f, &k->port, NULL), 0);
		}
		if (!rand_below(&r, 10))
			fake_link(k, !k->port.link);
		if (!rand_below(&r, 10))
			k->port.accepts = rand_below(&r, ACCEPT_ALL + 1);
		if (!rand_below(&r, 10))
			send(n, i, BROADCAST, 0, 0);
		send_random(n, &r, count);
		k->room = rand_below(&r, 60);
		if (rand_below(&r, 2) && k->room_armed && k->port.events)
			fake_give_room(k, 1);
		if (rand_below(&r, 2))
			loop_dispatch(&n->loop, false);
		else
			pass(n, rand_below(&r, 300000));
	}
	for (unsigned i = 0; i < PORTS; i++) {
		if (!n->p[i].port.events)
			assert_int_equal(fabric_attach(n->f, &n->p[i].port, NULL), 0);
		fake_link(&n->p[i], true);
		fake_give_room(&n->p[i], FAKE_ANY);
		fake_kick(&n->p[i]);
	}
	pass(n, NSEC_PER_SEC);
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(n->p[i].next, n->p[i].lend.n);
	assert_true(idle(n));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define P(fn) cmocka_unit_test_setup_teardown(fn, setup_poll, teardown)
	const struct CMUnitTest tests[] = {
		T(learns),
		T(vlans_are_learned_apart),
		T(also_within_a_burst),
		T(stations_move),
		T(addresses_age),
		T(a_port_without_link_is_forgotten),
		T(refused_addresses),
		T(one_port_cannot_evict_anothers_addresses),
		T(big_and_tagged_frames_pass_unchanged),
		T(a_burst_is_one_push_one_flush_one_settle),
		T(each_receiver_gets_what_it_can_take),
		T(names_and_addresses_are_unique),
		T(a_full_network_refuses),
		T(link_changes_are_told),
		T(waits_for_room),
		T(the_pull_after_a_pause_is_bounded),
		T(room_meanwhile_is_used_at_once),
		T(a_head_that_waited_enough_is_given_up),
		T(others_wait_once_only),
		cmocka_unit_test_teardown(wait_us_0_drops_at_once, teardown),
		T(floods_never_wait),
		T(resumes_in_the_middle),
		T(another_frame_is_not_resumed),
		T(segments_are_progress),
		T(a_moved_target_gets_the_whole_frame),
		T(longest_waiter_first),
		T(the_smallest_need_wakes),
		T(ready_queues_take_turns),
		T(a_trickling_guest_starves_nobody),
		P(a_trickling_guest_starves_nobody),
		T(two_guests_mutually_full_go_on),
		P(two_guests_mutually_full_go_on),
		T(the_awaited_port_goes),
		T(and_its_memory),
		T(the_awaited_link_flaps),
		T(the_waiting_port_goes),
		T(idle_costs_nothing),
		P(polls_so_long_then_arms),
		P(polls_for_room_then_arms),
		T(frames_that_come_while_arming),
		T(nothing_is_allocated_in_the_path),
		T(pairs_through_the_network),
		T(anything_at_random),
		P(anything_at_random),
		T(anything_with_ports_that_go),
		P(anything_with_ports_that_go),
	};
#undef T
#undef P

	return cmocka_run_group_tests(tests, NULL, NULL);
}
