/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy: 128 bytes a turn in registers as wide as this processor has them: with 32-byte ones shifted pages
 * are copied at the speed of aligned ones. The processor is asked at each call, which is a load and a
 * jump; a choice by the linker would be exported from the library.
 */
#include "base/copy.h"

#include <stdbool.h>
#include <string.h>

typedef uint8_t wide __attribute__((vector_size(32)));

/* No restrict here: with it the compiler may see through the loop and call memcpy(). */
static inline __attribute__((always_inline)) void copy_run(
	uint8_t *to, const uint8_t *from, size_t n)
{
	wide a, b, c, d;

	for (; n >= 128; n -= 128, to += 128, from += 128) {
		memcpy(&a, from, 32);
		memcpy(&b, from + 32, 32);
		memcpy(&c, from + 64, 32);
		memcpy(&d, from + 96, 32);
		memcpy(to, &a, 32);
		memcpy(to + 32, &b, 32);
		memcpy(to + 64, &c, 32);
		memcpy(to + 96, &d, 32);
	}
	for (; n >= 32; n -= 32, to += 32, from += 32) {
		memcpy(&a, from, 32);
		memcpy(to, &a, 32);
	}
	if (n)
		memcpy(to, from, n);
}

#if defined(__x86_64__) && __STDC_HOSTED__
__attribute__((target("avx2"))) static void copy_avx2(uint8_t *to, const uint8_t *from, size_t n)
{
	copy_run(to, from, n);
}

static bool have_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define copy_avx2 copy_run

static bool have_avx2(void)
{
	return false;
}
#endif

void copy_long(uint8_t *to, const uint8_t *from, size_t n)
{
	if (have_avx2())
		copy_avx2(to, from, n);
	else
		copy_run(to, from, n);
}
