/* SPDX-License-Identifier: BSD-2-Clause */
/* rand: repeatable, in range, not lopsided. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/rand.h"

static void test_repeats(void **state)
{
	struct rand a, b;

	(void)state;
	rand_init(&a, 42);
	rand_init(&b, 42);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(rand_u64(&a), rand_u64(&b));
	rand_init(&b, 43);
	assert_int_not_equal(rand_u64(&a), rand_u64(&b));
}

static void test_below(void **state)
{
	unsigned seen[6] = {0};
	struct rand r;

	(void)state;
	rand_init(&r, 1);
	for (unsigned i = 0; i < 6000; i++) {
		uint32_t x = rand_below(&r, 6);

		assert_in_range(x, 0, 5);
		seen[x]++;
	}
	for (unsigned i = 0; i < 6; i++)
		assert_in_range(seen[i], 850, 1150);
	assert_int_equal(rand_below(&r, 1), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_in_range(rand_below(&r, UINT32_MAX), 0, UINT32_MAX - 1u);
}

/* Without drawing again, every third number below 3 * 2^30 would come twice as often. */
static void test_unbiased(void **state)
{
	unsigned third[3] = {0};
	struct rand r;

	(void)state;
	rand_init(&r, 7);
	for (unsigned i = 0; i < 6000; i++)
		third[rand_below(&r, 3u << 30) % 3]++;
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(third[i], 1850, 2150);
}

static void test_secret(void **state)
{
	uint8_t a[32] = {0}, b[32] = {0};

	(void)state;
	rand_secret(a, sizeof(a));
	rand_secret(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	rand_secret(a, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_unbiased),
		cmocka_unit_test(test_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
