/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause: whatever is asked for and however late pauses end, no window of 100 ms holds more than its
 * share, and a pair that rests gets its budget back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "fabric/pause.h"

#define WINDOW (WAIT_WINDOW_MS * NSEC_PER_MSEC)
#define SHARE  (WINDOW * WAIT_SHARE / 100)
#define WAIT   (WAIT_US_DEFAULT * NSEC_PER_USEC)

static void a_fresh_pair_waits_its_whole_time(void **state)
{
	struct pause p;

	(void)state;
	pause_init(&p, 5);
	assert_int_equal(pause_grant(&p, 5, WAIT, false), WAIT);
	assert_int_equal(pause_grant(&p, 5, 10 * NSEC_PER_USEC, false), 10 * NSEC_PER_USEC);
	assert_int_equal(pause_grant(&p, 5, NSEC_PER_SEC, false), PAUSE_CAPACITY);
}

static void used_up_and_filled_again(void **state)
{
	struct pause p;
	nsec_t now = 0, at;

	(void)state;
	pause_init(&p, now);
	for (at = 0; pause_grant(&p, now, WAIT, false); at++) {
		nsec_t grant = pause_grant(&p, now, WAIT, false);

		pause_charge(&p, grant, false);
		now += grant;
		assert_true(at < 100);
	}
	assert_true(now >= PAUSE_CAPACITY - PAUSE_MIN && now < 2 * PAUSE_CAPACITY);
	assert_int_equal(pause_grant(&p, now + NSEC_PER_MSEC, WAIT, false), 0);
	assert_int_equal(pause_grant(&p, now + 20 * WAIT, WAIT, false), WAIT);
	now += WINDOW;
	assert_int_equal(pause_grant(&p, now, WINDOW, false), PAUSE_CAPACITY);
}

static void a_late_timer_is_a_debt(void **state)
{
	struct pause p;

	(void)state;
	pause_init(&p, 0);
	assert_int_equal(pause_grant(&p, 0, WAIT, false), WAIT);
	pause_charge(&p, 3 * PAUSE_CAPACITY, false); /* the process was stopped meanwhile */
	assert_int_equal(pause_grant(&p, WINDOW, WAIT, false), 0);
	assert_int_equal(pause_grant(&p, 3 * WINDOW, WAIT, false), WAIT);
}

#define SPANS 3000

struct span {
	nsec_t from, to;
};

/* Most pause time in any window: the fullest one starts or ends at the edge of a pause. */
static nsec_t fullest(const struct span *s, unsigned n)
{
	nsec_t most = 0, sum = 0;
	unsigned first = 0;

	for (unsigned i = 0; i < n; i++) { /* windows that end where pause i ends */
		nsec_t start = s[i].to - WINDOW, cut;

		sum += s[i].to - s[i].from;
		while (s[first].to <= start) {
			sum -= s[first].to - s[first].from;
			first++;
		}
		cut = s[first].from < start ? start - s[first].from : 0;
		if (sum - cut > most)
			most = sum - cut;
	}
	return most;
}

static void no_window_holds_more_than_its_share(void **state)
{
	static struct span span[SPANS];
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	struct rand r;

	(void)state;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned round = 0; round < 8; round++) {
		nsec_t now = 0, most;
		struct pause p;
		unsigned n = 0;

		pause_init(&p, now);
		while (n < SPANS) {
			nsec_t grant = pause_grant(&p, now, WAIT, false);

			if (!grant) {
				now += 1 + rand_below(&r, round % 2 ? 1000 : 3000000);
				continue;
			}
			assert_true(grant <= WAIT);
			if (round >= 2 && rand_below(&r, 2)) /* room came early */
				grant = 1 + rand_below(&r, (uint32_t)grant);
			span[n++] = (struct span){now, now + grant};
			now += grant;
			pause_charge(&p, grant, false);
			if (round >= 4 && !rand_below(&r, 10))
				now += rand_below(&r, 200000000);
		}
		most = fullest(span, SPANS);
		assert_true(most <= SHARE);
		assert_true(most > SHARE / 2); /* and the share can be used */
	}
}

/* The two buckets do not mix, both fill up, and the second knows no debt. */
static void spare_time(void **state)
{
	struct pause p;
	nsec_t now = 0;

	(void)state;
	pause_init(&p, now);
	assert_int_equal(pause_grant(&p, now, WAIT, true), WAIT);
	assert_int_equal(pause_grant(&p, now, NSEC_PER_SEC, true), PAUSE_SPARE);
	pause_charge(&p, PAUSE_SPARE / 2, true);
	assert_int_equal(pause_grant(&p, now, NSEC_PER_SEC, true), PAUSE_SPARE / 2);
	assert_int_equal(pause_grant(&p, now, NSEC_PER_SEC, false), PAUSE_CAPACITY);
	pause_charge(&p, NSEC_PER_SEC, true);
	assert_int_equal(pause_grant(&p, now, WAIT, true), 0);
	now += WAIT * PAUSE_REFILL;
	assert_int_equal(pause_grant(&p, now, NSEC_PER_SEC, true), WAIT);
	pause_charge(&p, NSEC_PER_SEC, false);
	assert_int_equal(pause_grant(&p, now, WAIT, false), 0);
	now += PAUSE_SPARE * PAUSE_REFILL;
	assert_int_equal(pause_grant(&p, now, NSEC_PER_SEC, true), PAUSE_SPARE);
}

/* What is taken fills the second bucket alone, and not beyond its brim. */
static void earned(void **state)
{
	struct pause p;

	(void)state;
	pause_init(&p, 0);
	assert_false(pause_earn(&p, 1));
	assert_int_equal(pause_grant(&p, 0, NSEC_PER_SEC, true), PAUSE_SPARE);
	pause_charge(&p, NSEC_PER_SEC, true);
	pause_charge(&p, NSEC_PER_SEC, false);
	assert_true(pause_earn(&p, PAUSE_RATE / 1000));
	assert_int_equal(pause_grant(&p, 0, NSEC_PER_SEC, true), NSEC_PER_MSEC);
	assert_int_equal(pause_grant(&p, 0, NSEC_PER_SEC, false), 0);
	assert_false(pause_earn(&p, PAUSE_RATE));
	assert_int_equal(pause_grant(&p, 0, NSEC_PER_SEC, true), PAUSE_SPARE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_pair_waits_its_whole_time),
		cmocka_unit_test(used_up_and_filled_again),
		cmocka_unit_test(a_late_timer_is_a_debt),
		cmocka_unit_test(spare_time),
		cmocka_unit_test(earned),
		cmocka_unit_test(no_window_holds_more_than_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
