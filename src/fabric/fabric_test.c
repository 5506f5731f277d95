/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric: where frames go, who may come, and what it costs. This program is linked with malloc
 * wrapped, to count allocations in the path.
 */
#include "fabric/fabric_rig.h"
#include "port/pair.h"

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
	/* headers that are equal up to the tag, and ones that differ in the sender only */
	lend(n, A, mac_of(B), 7, 100, 0);
	lend(n, A, mac_of(B), 8, 100, 0);
	lend(n, A, mac_of(B), 7, 100, 0);
	fake_lend(&n->p[A], buf, fake_eth(buf, mac_of(B), mac_of(8), 7, 100, 0), NULL);
	fake_kick(&n->p[A]);
	run(n);
	assert_int_equal(got(n), 411);
	assert_int_equal(fdb_find(fabric_fdb(n->f), mac_of(8), 7, n->now), A);
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

int main(void)
{
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
		T(idle_costs_nothing),
		P(polls_so_long_then_arms),
		T(frames_that_come_while_arming),
		T(nothing_is_allocated_in_the_path),
		T(pairs_through_the_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
