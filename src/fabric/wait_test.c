/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric, waiting: who waits for whom and for how long, that the others keep their share, that
 * nothing is lost, doubled or turned around in a pause, and that everybody may go in the middle.
 */
#include "fabric/fabric_rig.h"

/* A and B have had frames for others just now. */
static void mingle(struct net *n)
{
	introduce(n);
	for (unsigned i = A; i <= B; i++) {
		send(n, i, mac_of(C), 0, 0);
		send(n, i, mac_of(D), 0, 0);
	}
	forget_got(n);
}

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

	mingle(n);
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

/* A burst of super-packets that are cut into single bytes does not keep the others from their turn. */
static void a_turn_cuts_so_much(void **state)
{
	struct net *n = *state;

	introduce(n);
	n->p[B].port.accepts = 0;
	n->p[B].keep = false;
	for (unsigned i = 0; i < 20; i++)
		lend_tcp(n, A, mac_of(B), i == 19 ? 1500 : 600, i == 19 ? 100 : 1, 600 * i);
	for (unsigned i = 0; i < 5 * BURST_FRAMES; i++)
		lend(n, D, mac_of(C), 0, 60, i);
	fake_kick(&n->p[A]);
	fake_kick(&n->p[D]);
	loop_dispatch(&n->loop, false);
	assert_int_equal(n->p[D].port.q.in.frames, 1 + 5 * BURST_FRAMES);
	assert_in_range(n->p[A].port.q.in.frames, 10, 20);
	run(n);
	assert_int_equal(n->p[B].port.q.out.frames, 3 + 19 * 600 + 15);
	assert_int_equal(n->p[B].port.q.lost_out, 0);
	assert_int_equal(n->p[A].port.q.in.frames, 21);
	assert_true(idle(n));
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

/* With D flooding, too, or with A alone. */
static void trickling(void **state, bool d_floods)
{
	static const nsec_t trickles[] = {5000, 50000, 300000, 900000, 90000000};
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
	if (d_floods)
		fake_kick(&n->p[D]);
	base = window(n, 0);
	assert_int_equal(base.d_to_c > 0, d_floods);
	for (unsigned t = 0; t < sizeof(trickles) / sizeof(*trickles); t++) {
		struct fabric_stats s0, s1;

		n->p[B].room = 0;
		fabric_get_stats(n->f, &s0);
		for (unsigned w = 0; w < 2; w++) {
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

static void a_trickling_guest_starves_nobody(void **state)
{
	trickling(state, true);
}

static void nor_the_frames_behind_its_own(void **state)
{
	trickling(state, false);
}

/* Two guests that drain what they receive only when what they sent is gone. */
static void two_guests_mutually_full_go_on(void **state)
{
	struct net *n = *state;
	nsec_t start = n->now;

	mingle(n);
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

/* polling */

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

/* anything */

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
	for (unsigned step = 0; step < 1500; step++) {
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
	for (unsigned step = 0; step < 2000; step++) {
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
	const struct CMUnitTest tests[] = {
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
		T(a_turn_cuts_so_much),
		T(a_trickling_guest_starves_nobody),
		P(a_trickling_guest_starves_nobody),
		T(nor_the_frames_behind_its_own),
		P(nor_the_frames_behind_its_own),
		T(two_guests_mutually_full_go_on),
		P(two_guests_mutually_full_go_on),
		T(the_awaited_port_goes),
		T(and_its_memory),
		T(the_awaited_link_flaps),
		T(the_waiting_port_goes),
		P(polls_for_room_then_arms),
		T(anything_at_random),
		P(anything_at_random),
		T(anything_with_ports_that_go),
		P(anything_with_ports_that_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
