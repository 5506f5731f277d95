/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/eth.h"

static void text_there_and_back(void **state)
{
	const uint8_t want[6] = {0x52, 0x54, 0x00, 0xab, 0xcd, 0xef};
	uint8_t mac[6];
	char text[ETH_TEXT];

	(void)state;
	assert_true(eth_parse_text("52:54:00:aB:Cd:eF", mac));
	assert_memory_equal(mac, want, 6);
	assert_true(eth_parse_text("52-54-00-ab-cd-ef", mac));
	assert_memory_equal(mac, want, 6);
	eth_build_text(mac, text);
	assert_string_equal(text, "52:54:00:ab:cd:ef");
}

static void text_refused(void **state)
{
	static const char *const bad[] = {"", "5", "52", "52:", "52:54:00:ab:cd",
		"52:54:00:ab:cd:", "52:54:00:ab:cd:e", "52:54:00:ab:cd:ef:", "52:54:00:ab:cd:ef0",
		"52:54-00:ab:cd:ef", "52.54.00.ab.cd.ef", "525400abcdef", "52:54:00:ab:cd:eg",
		" 52:54:00:ab:cd:ef", "5:54:00:ab:cd:ef", "52:54:00:ab:cd:ef ",
		"5 :54:00:ab:cd:ef"};
	uint8_t mac[6] = {1, 2, 3, 4, 5, 6}, before[6] = {1, 2, 3, 4, 5, 6};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (eth_parse_text(bad[i], mac))
			fail_msg("accepted: \"%s\"", bad[i]);
		assert_memory_equal(mac, before, 6);
	}
}

static void numbers_and_bits(void **state)
{
	const uint8_t mac[6] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06};
	const uint8_t one[6] = {0x02, 0x02, 0x03, 0x04, 0x05, 0x06};

	(void)state;
	assert_int_equal(eth_u48(mac), 0x010203040506);
	assert_true(eth_is_multicast(mac));
	assert_false(eth_is_multicast(one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_there_and_back),
		cmocka_unit_test(text_refused),
		cmocka_unit_test(numbers_and_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
