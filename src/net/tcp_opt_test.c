/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/tcp_int.h"

static void test_round_trip(void **state)
{
	uint8_t b[40];
	struct tcp_opts o;
	uint32_t blocks[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
	unsigned n;

	(void)state;
	n = tcp_opt_syn(b, 1460, 7, true, true, 11, 22);
	assert_int_equal(n, 24);
	assert_true(tcp_opt_parse(b, n, &o));
	assert_true(o.mss_ok && o.mss == 1460 && o.ws_ok && o.ws == 7 && o.sack_ok);
	assert_true(o.ts_ok && o.tsval == 11 && o.tsecr == 22);
	n = tcp_opt_ts(b, 1, 2);
	n = tcp_opt_sack(b, n, blocks, 4);
	assert_int_equal(n, 40); /* three fit beside timestamps */
	assert_true(tcp_opt_parse(b, n, &o));
	assert_int_equal(o.nsack, 3);
	assert_int_equal(o.sack[2][1], 6);
	assert_int_equal(tcp_opt_sack(b, 0, blocks, 4), 36);
}

/* Every length that lies is refused; unknown kinds are passed over; a shift above 14 is 14. */
static void test_liars(void **state)
{
	struct tcp_opts o;

	(void)state;
	assert_false(tcp_opt_parse((const uint8_t[]){2, 0}, 2, &o));
	assert_false(tcp_opt_parse((const uint8_t[]){2, 1, 0, 0}, 4, &o));
	assert_false(tcp_opt_parse((const uint8_t[]){2, 5, 0, 0}, 4, &o));
	assert_false(tcp_opt_parse((const uint8_t[]){1, 1, 2}, 3, &o));
	assert_true(tcp_opt_parse((const uint8_t[]){99, 3, 1, 3, 3, 15, 0, 2}, 8, &o));
	assert_true(o.ws_ok && o.ws == 14 && !o.mss_ok);
	assert_true(tcp_opt_parse((const uint8_t[]){2, 3, 1, 1}, 4, &o) && !o.mss_ok);
	assert_true(tcp_opt_parse((const uint8_t[]){5, 9, 1, 2, 3, 4, 5, 6, 7}, 9, &o) && !o.nsack);
}

static void test_random(void **state)
{
	struct rand r;
	struct tcp_opts o;
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 3;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned n = rand_below(&r, 41);
		uint8_t *b = malloc(n ? n : 1); /* the sanitizer watches its ends */

		for (unsigned j = 0; j < n; j++)
			b[j] = (uint8_t)rand_below(&r, rand_below(&r, 2) ? 12 : 256);
		tcp_opt_parse(b, n, &o);
		assert_true(o.nsack <= 4 && o.ws <= 14);
		free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_liars), cmocka_unit_test(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
