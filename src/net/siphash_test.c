/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/siphash.h"

/* The vectors published with the hash: key 00..0f, input 00, 01, 02, ... of each length. */
static void test_vectors(void **state)
{
	uint8_t key[16], in[16];

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		key[i] = in[i] = (uint8_t)i;
	assert_true(siphash(key, in, 0) == 0x726fdb47dd0e0e31);
	assert_true(siphash(key, in, 1) == 0x74f839c593dc67fd);
	assert_true(siphash(key, in, 15) == 0xa129ca6149be45e5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
