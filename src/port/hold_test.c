/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "port/hold.h"

#define GAP (100 * NSEC_PER_USEC)

struct rig {
	struct loop loop;
	nsec_t now;
	struct port_counters count;
	struct hold hold;
	unsigned sent;
};

static void send(struct hold *h)
{
	((struct rig *)(void *)((char *)h - offsetof(struct rig, hold)))->sent++;
}

static void at(struct rig *r, nsec_t now)
{
	r->now = now;
	loop_dispatch(&r->loop, false);
}

static bool publish(struct rig *r, unsigned frames, uint64_t bytes)
{
	r->count.frames += frames;
	r->count.bytes += bytes;
	return hold_wish(&r->hold);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_int_equal(loop_init(&r->loop, NULL), 0);
	r->loop.virtual_now = &r->now;
	assert_int_equal(hold_init(&r->hold, &r->loop, &r->count, send), 0);
	r->hold.gap = GAP;
	at(r, NSEC_PER_SEC);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	hold_fini(&r->hold);
	loop_fini(&r->loop);
	free(r);
	return 0;
}

static void what_comes_in_the_gap_shares_one(void **state)
{
	struct rig *r = *state;

	assert_true(publish(r, 1, 65536)); /* the first is told at once */
	at(r, NSEC_PER_SEC + 30 * NSEC_PER_USEC);
	assert_false(publish(r, 1, 65536));
	at(r, NSEC_PER_SEC + 60 * NSEC_PER_USEC);
	assert_false(publish(r, 1, 65536));
	at(r, NSEC_PER_SEC + GAP - 1);
	assert_int_equal(r->sent, 0);
	at(r, NSEC_PER_SEC + GAP);
	assert_int_equal(r->sent, 1);
	assert_int_equal(r->hold.n_held, 1);
	at(r, NSEC_PER_SEC + GAP + 1);
	assert_false(publish(r, 1, 65536)); /* the distance is from the one that was held */
	assert_int_equal(loop_deadline(&r->loop), NSEC_PER_SEC + 2 * GAP);
}

static void after_a_quiet_gap_nothing_waits(void **state)
{
	struct rig *r = *state;

	for (unsigned i = 0; i < 10; i++) {
		at(r, NSEC_PER_SEC + i * GAP);
		assert_true(publish(r, 4, 262144));
	}
	assert_int_equal(loop_deadline(&r->loop), NSEC_NEVER);
}

static void small_frames_never_wait(void **state)
{
	struct rig *r = *state;

	for (unsigned i = 0; i < 10; i++)
		assert_true(publish(r, 5, HOLD_BULK - 1));
	assert_true(
		publish(r, 200, 200 * 64)); /* polled by the driver, which asks again at the last */
	assert_false(publish(r, 6, 6 * 1514));
	assert_true(publish(r, 1, 64)); /* and what was held goes along */
	assert_int_equal(loop_deadline(&r->loop), NSEC_NEVER);
	at(r, r->now + GAP / 2);
	assert_false(publish(r, 8, HOLD_BULK)); /* the distance is from there */
	assert_int_equal(loop_deadline(&r->loop), NSEC_PER_SEC + GAP);
}

static void off_never_waits(void **state)
{
	struct rig *r = *state;

	r->hold.gap = 0;
	for (unsigned i = 0; i < 10; i++)
		assert_true(publish(r, 1, 65536));
}

/* One frame, its answer, the next frame: to wait is only to be late. */
static void a_hold_that_gathers_nothing_is_not_repeated(void **state)
{
	struct rig *r = *state;
	unsigned told = 0;

	assert_true(publish(r, 1, 65536));
	for (unsigned i = 0; i < 1000; i++) {
		if (publish(r, 1, 65536)) {
			told++;
			at(r, r->now + 20 * NSEC_PER_USEC);
		} else {
			at(r, loop_deadline(&r->loop));
		}
	}
	assert_int_equal(r->sent + told, 1000);
	assert_in_range(r->sent, 5, 25); /* 6 while it learns, then 1 in 64 */
	/* The stream comes back: held again as soon as one hold has gathered something. */
	while (publish(r, 1, 65536))
		at(r, r->now + 20 * NSEC_PER_USEC);
	publish(r, 1, 65536);
	at(r, loop_deadline(&r->loop));
	assert_false(publish(r, 1, 65536));
}

static void flush_sends_what_is_held_and_only_that(void **state)
{
	struct rig *r = *state;

	hold_flush(&r->hold);
	assert_int_equal(r->sent, 0);
	publish(r, 1, 65536);
	publish(r, 1, 65536);
	hold_flush(&r->hold);
	assert_int_equal(r->sent, 1);
	publish(r, 1, 65536);
	hold_cancel(&r->hold);
	at(r, r->now + 2 * GAP);
	assert_int_equal(r->sent, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_comes_in_the_gap_shares_one),
		T(after_a_quiet_gap_nothing_waits),
		T(small_frames_never_wait),
		T(off_never_waits),
		T(a_hold_that_gathers_nothing_is_not_repeated),
		T(flush_sends_what_is_held_and_only_that),
	};

	return cmocka_run_group_tests_name("hold", tests, NULL, NULL);
}
