/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy: 128 bytes a turn in registers as wide as this processor has them. Where the linker can choose
 * at load time, there is a second version for 32-byte registers: shifted pages are then copied at the
 * speed of aligned ones. Not with clang, whose version 14 exports the choice under another name.
 */
#include "base/copy.h"

#include <string.h>

#if defined(__x86_64__) && __STDC_HOSTED__ && defined(__gnu_linux__) &&                            \
	!defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define WIDE_TOO __attribute__((target_clones("avx2", "default")))
#else
#define WIDE_TOO
#endif

typedef uint8_t wide __attribute__((vector_size(32)));

/* No restrict here: with it the compiler may see through the loop and call memcpy(). */
WIDE_TOO void copy_long(uint8_t *to, const uint8_t *from, size_t n)
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
	memcpy(to, from, n);
}
