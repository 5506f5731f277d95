/* SPDX-License-Identifier: BSD-2-Clause */
/* words: close misspellings are found, far words are not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "app/words.h"

static const char *const known[] = {"vhost-user", "tap", "server", "mtu"};

static void test_closest(void **state)
{
	(void)state;
	assert_string_equal(words_closest("vhostuser", known, 4), "vhost-user");
	assert_string_equal(words_closest("vhsot-usre", known, 4), "vhost-user");
	assert_string_equal(words_closest("servr", known, 4), "server");
	assert_string_equal(words_closest("mut", known, 4), "mtu");
	assert_null(words_closest("bridge", known, 4));
	assert_null(words_closest("", known, 4));
	assert_null(
		words_closest("a word that is very much longer than any that is known", known, 4));
}

static void test_hint(void **state)
{
	char text[200], small[16];

	(void)state;
	assert_string_equal(
		words_hint(text, sizeof(text), "tapp", known, 4), "; did you mean 'tap'?");
	assert_string_equal(words_hint(text, sizeof(text), "bridge", known, 4),
		"; known: vhost-user, tap, server, mtu");
	assert_int_equal(strlen(words_hint(small, sizeof(small), "bridge", known, 4)), 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closest),
		cmocka_unit_test(test_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
