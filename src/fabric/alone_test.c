/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric, waiting alone: a sender whose frames all go to one receiver keeps nobody by waiting, so it is
 * patient with a receiver that stands still for a while; and that ends, and ends at once when somebody
 * else's frames come into play.
 */
#include "fabric/fabric_rig.h"
#include "fabric/pause.h"

#define WINDOW (WAIT_WINDOW_MS * NSEC_PER_MSEC)

/* A has sent to nobody but B for a while, and B is full. */
static void start(struct net *n, unsigned frames)
{
	introduce(n);
	send(n, A, mac_of(B), 0, 0);
	pass(n, WINDOW);
	send(n, A, mac_of(B), 0, 0);
	forget_got(n);
	n->p[B].room = 0;
	for (unsigned i = 0; i < frames; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	fake_kick(&n->p[A]);
	run(n);
}

static void a_short_standstill_costs_nothing(void **state)
{
	struct net *n = *state;

	start(n, 20);
	pass(n, 30 * NSEC_PER_MSEC);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	assert_true(n->p[B].room_armed);
	fake_give_room(&n->p[B], 15);
	run(n);
	assert_int_equal(n->p[B].got.n, 15);
	pass(n, 10 * NSEC_PER_MSEC);
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[B].got.n, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(count_of(&n->p[B].got.f[i]), i);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	assert_true(idle(n));
}

static void a_long_one_ends(void **state)
{
	struct net *n = *state;
	nsec_t begin;

	start(n, 20);
	begin = n->now;
	while (!idle(n))
		pass(n, NSEC_PER_MSEC);
	assert_in_range(n->now - begin, PAUSE_SPARE, PAUSE_SPARE + 10 * NSEC_PER_MSEC);
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 20);
	/* used up: it does not come back with the next frame, but in time */
	lend(n, A, mac_of(B), 0, 100, 0);
	fake_kick(&n->p[A]);
	pass(n, 2 * WAIT);
	assert_true(idle(n));
	pass(n, PAUSE_SPARE * PAUSE_REFILL);
	lend(n, A, mac_of(B), 0, 100, 0);
	fake_kick(&n->p[A]);
	pass(n, PAUSE_SPARE - WAIT);
	assert_false(idle(n));
	pass(n, WINDOW);
	assert_true(idle(n));
}

/* Who has had frames for nobody else yet need not prove it first. */
static void also_from_the_beginning(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].room = 0;
	for (unsigned i = 0; i < 20; i++)
		lend(n, A, mac_of(B), 0, 100, i);
	fake_kick(&n->p[A]);
	pass(n, 30 * NSEC_PER_MSEC);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	fake_give_room(&n->p[B], FAKE_ANY);
	run(n);
	assert_int_equal(n->p[B].got.n, 20);
}

#define STEP (100 * NSEC_PER_USEC)

/* Frames of `len` bytes without end for B, which takes so many of them every `gap`; what is lost in 300 ms. */
static uint64_t lost_at_rate(struct net *n, unsigned frames, unsigned len, nsec_t gap)
{
	struct fake *a = &n->p[A], *b = &n->p[B];
	nsec_t end, next;

	start(n, 0);
	fake_clear(&a->lend);
	a->next = 0;
	for (unsigned i = 0; i < BURST_FRAMES; i++)
		lend(n, A, mac_of(B), 0, len, i);
	a->endless = true;
	b->keep = false;
	fake_kick(a);
	end = n->now + 300 * NSEC_PER_MSEC;
	for (next = n->now; n->now < end; n->now += STEP) {
		if (n->now >= next) {
			fake_give_room(b, frames);
			next += gap;
		}
		loop_dispatch(&n->loop, false);
	}
	a->endless = false;
	fake_clear(&a->lend);
	a->next = 0;
	return b->port.q.lost_out;
}

/* Always full, but going on: nothing is lost, however much of the time is waited. */
static void who_goes_on_is_waited_for(void **state)
{
	struct net *n = *state;

	assert_int_equal(lost_at_rate(n, 64, 1500, 64 * 1500 * (NSEC_PER_SEC / PAUSE_RATE)), 0);
}

/* At a tenth of the rate that is trickling. */
static void who_trickles_is_not(void **state)
{
	struct net *n = *state;

	assert_true(lost_at_rate(n, 2, 480, 10 * 2 * 480 * (NSEC_PER_SEC / PAUSE_RATE)) > 1000);
}

/* Frames for somebody else come behind those that wait. */
static void not_with_others_behind(void **state)
{
	struct net *n = *state;

	start(n, 3);
	pass(n, 10 * NSEC_PER_MSEC);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	lend(n, A, mac_of(C), 0, 100, 0);
	pass(n, 2 * WAIT);
	assert_int_equal(n->p[C].got.n, 1);
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 3);
	/* nor for a while after */
	for (unsigned i = 0; i < 10; i++)
		lend(n, A, mac_of(B), 0, 100, 0);
	fake_kick(&n->p[A]);
	pass(n, 12 * NSEC_PER_MSEC);
	assert_true(idle(n));
	assert_int_equal(n->p[B].port.q.drop_out[DROP_NO_ROOM], 13);
}

/* A flood is for everybody. */
static void not_with_a_flood_behind(void **state)
{
	struct net *n = *state;

	start(n, 3);
	lend(n, A, BROADCAST, 0, 100, 0);
	pass(n, 2 * WAIT);
	assert_int_equal(n->p[C].got.n, 1);
	assert_int_equal(n->p[D].got.n, 1);
}

/* Neither takes anything before what it sent is gone: one of them must be let go soon. */
static void not_for_each_other(void **state)
{
	struct net *n = *state;

	introduce(n);
	send(n, A, mac_of(B), 0, 0);
	send(n, B, mac_of(A), 0, 0);
	pass(n, WINDOW);
	n->p[A].room = n->p[B].room = 0;
	for (unsigned i = 0; i < 100; i++) {
		lend(n, A, mac_of(B), 0, 100, i);
		lend(n, B, mac_of(A), 0, 100, i);
	}
	fake_kick(&n->p[A]);
	fake_kick(&n->p[B]);
	pass(n, 10 * NSEC_PER_MSEC);
	assert_true(n->p[A].next == n->p[A].lend.n || n->p[B].next == n->p[B].lend.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_short_standstill_costs_nothing),
		P(a_short_standstill_costs_nothing),
		T(a_long_one_ends),
		T(also_from_the_beginning),
		T(who_goes_on_is_waited_for),
		T(who_trickles_is_not),
		T(not_with_others_behind),
		T(not_with_a_flood_behind),
		T(not_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
