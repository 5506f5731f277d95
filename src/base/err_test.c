/* SPDX-License-Identifier: BSD-2-Clause */
/* err: code and text, cut at the end of the buffer, one line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

static void test_text(void **state)
{
	struct err err = {""};

	(void)state;
	assert_int_equal(err_set(&err, EINVAL, "mtu %d is not good", 7), -EINVAL);
	assert_string_equal(err.text, "mtu 7 is not good");
	assert_int_equal(err_set(NULL, ENOENT, "nobody hears"), -ENOENT);
}

static void test_long_and_dirty(void **state)
{
	char big[2 * ERR_TEXT];
	struct err err;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	err_set(&err, E2BIG, "%s", big);
	assert_int_equal(strlen(err.text), ERR_TEXT - 1);
	err_set(&err, EINVAL, "a\nb\033c");
	assert_string_equal(err.text, "a?b?c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_long_and_dirty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
