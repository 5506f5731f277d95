/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests' rigs use of cmocka, for fuzz targets that use the rigs: a broken assertion is a crash. */
#ifndef FUZZ_SHIM_CMOCKA_H
#define FUZZ_SHIM_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define fail_msg(...)                                                                              \
	do {                                                                                       \
		fflush(stdout);                                                                    \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fputc('\n', stderr);                                                               \
		abort();                                                                           \
	} while (0)
#define assert_true(x)                                                                             \
	do {                                                                                       \
		if (!(x))                                                                          \
			fail_msg("%s:%d: %s", __FILE__, __LINE__, #x);                             \
	} while (0)
#define assert_non_null(x)        assert_true((x) != NULL)
#define assert_int_equal(a, b)    assert_true((a) == (b))
#define assert_string_equal(a, b) assert_true(strcmp(a, b) == 0)

#endif
