/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rand.h"
#include "net/ranges.h"

#define SPAN 300u

/* Against a bitmap, across the wrap of the sequence space. */
static void test_random(void **state)
{
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 7;
	struct rand r;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned round = 0; round < 300; round++) {
		uint32_t base = 0u - SPAN / 2;
		struct ranges s = {0};
		bool bit[SPAN] = {0};

		for (unsigned step = 0; step < 60; step++) {
			uint32_t a = rand_below(&r, SPAN - 1), n = 1 + rand_below(&r, 12);
			unsigned at, k = 0;

			if (a + n > SPAN)
				n = SPAN - a;
			if (rand_below(&r, 20) == 0) {
				ranges_trim(&s, base + a);
				memset(bit, 0, a);
			} else if (rand_below(&r, 30) == 0) {
				ranges_cut(&s, base + a);
				memset(bit + a, 0, SPAN - a);
			} else {
				assert_true(ranges_add(&s, base + a, base + a + n, &at));
				assert_true(s.r[at].beg - base <= a && s.r[at].end - base >= a + n);
				memset(bit + a, 1, n);
			}
			for (unsigned i = 0; i < SPAN; i++) {
				if (!bit[i])
					continue;
				assert_true(k < s.n && s.r[k].beg == base + i);
				while (i < SPAN && bit[i])
					i++;
				assert_true(s.r[k].end == base + i);
				k++;
			}
			assert_int_equal(k, s.n);
		}
	}
}

static void test_full(void **state)
{
	struct ranges s = {0};
	unsigned at;

	(void)state;
	for (unsigned i = 0; i < RANGES_MAX; i++)
		assert_true(ranges_add(&s, 4 * i, 4 * i + 1, &at));
	assert_false(ranges_add(&s, 4 * RANGES_MAX, 4 * RANGES_MAX + 1, &at));
	assert_int_equal(s.n, RANGES_MAX);
	assert_true(ranges_add(&s, 1, 4, &at)); /* joins two */
	assert_int_equal(s.n, RANGES_MAX - 1);
	assert_int_equal(ranges_find(&s, 5), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random), cmocka_unit_test(test_full)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
