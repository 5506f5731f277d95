/* SPDX-License-Identifier: BSD-2-Clause */
/* The checksum against an oracle that adds one byte at a time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "wire/csum.h"
#include "wire/bytes.h"

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % n;
}

static uint16_t oracle(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++) {
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static uint16_t of(const uint8_t *p, size_t len)
{
	struct csum c = {0};

	csum_piece(&c, p, len);
	return csum_fold(&c);
}

static void every_length_and_alignment(void **state)
{
	(void)state;
	for (size_t len = 0; len < 300; len++) {
		for (size_t shift = 0; shift < 9; shift++) {
			/* exactly as long as needed, so that a read beyond it is seen */
			uint8_t *p = malloc(shift + len + !len);

			for (size_t i = 0; i < len; i++)
				p[shift + i] = (uint8_t)draw(256);
			assert_int_equal(of(p + shift, len), oracle(p + shift, len));
			free(p);
		}
	}
}

static void carries_are_kept(void **state)
{
	static uint8_t big[1 << 20];

	(void)state;
	memset(big, 0xff, sizeof(big));
	assert_int_equal(of(big, sizeof(big)), 0xffff);
	assert_int_equal(of(big, sizeof(big) - 1), oracle(big, sizeof(big) - 1));
	memset(big, 0, sizeof(big));
	assert_int_equal(of(big, sizeof(big)), 0);
	big[sizeof(big) - 1] = 1;
	assert_int_equal(of(big, sizeof(big)), 1);
}

static void odd_pieces(void **state)
{
	static uint8_t p[70000];

	(void)state;
	for (size_t i = 0; i < sizeof(p); i++)
		p[i] = (uint8_t)draw(256);
	for (unsigned round = 0; round < 2000; round++) {
		const size_t len = draw(sizeof(p));
		struct csum c = {0};

		for (size_t at = 0; at < len;) {
			size_t n = draw(4) ? draw(9) : draw(5000);

			if (n > len - at)
				n = len - at;
			csum_piece(&c, p + at, n);
			at += n;
		}
		assert_int_equal(csum_fold(&c), oracle(p, len));
		assert_int_equal(c.odd, len & 1);
	}
}

static void values_and_pseudo_headers(void **state)
{
	uint8_t p[40];

	(void)state;
	for (unsigned round = 0; round < 1000; round++) {
		const uint32_t len = draw(0x20000);
		const uint8_t proto = (uint8_t)draw(256);
		struct csum c = {0};

		for (size_t i = 0; i < 32; i++)
			p[i] = (uint8_t)draw(256);
		put_be32(p + 32, len);
		put_be32(p + 36, proto);
		csum_pseudo6(&c, p, p + 16, proto, len);
		assert_int_equal(csum_fold(&c), oracle(p, 40));

		c = (struct csum){0};
		csum_pseudo4(&c, p + 24, p + 28, proto, len);
		assert_int_equal(csum_fold(&c), oracle(p + 24, 16));

		c = (struct csum){0};
		csum_u32(&c, len);
		csum_u16(&c, proto);
		assert_int_equal(csum_fold(&c), oracle(p + 32, 8));
		assert_int_equal(csum_end(&c), 0xffff & ~oracle(p + 32, 8));
	}
}

static void known_header(void **state)
{
	const uint8_t ip[20] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0,
		0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
	struct csum c = {0};

	(void)state;
	csum_piece(&c, ip, sizeof(ip));
	assert_int_equal(csum_end(&c), 0xb861);
}

int main(void)
{
	const char *given = getenv("SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_alignment),
		cmocka_unit_test(carries_are_kept),
		cmocka_unit_test(odd_pieces),
		cmocka_unit_test(values_and_pseudo_headers),
		cmocka_unit_test(known_header),
	};

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
