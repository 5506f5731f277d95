/* SPDX-License-Identifier: BSD-2-Clause */
/* log: levels, the share of a second, what was left out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/log.h"

struct heard {
	unsigned lines;
	char tag[32], text[600];
};

static void hear(void *ctx, enum log_level level, const char *tag, const char *text)
{
	struct heard *h = ctx;

	(void)level;
	h->lines++;
	strncpy(h->tag, tag, sizeof(h->tag) - 1);
	strncpy(h->text, text, sizeof(h->text) - 1);
}

static void test_levels(void **state)
{
	struct heard h = {0};
	struct log log;

	(void)state;
	log_init(&log, LOG_WARN, hear, &h);
	log_say(&log, LOG_INFO, "a", "not heard");
	assert_int_equal(h.lines, 0);
	log_say(&log, LOG_WARN, "a", "line %d\n", 1);
	assert_int_equal(h.lines, 1);
	assert_string_equal(h.tag, "a");
	assert_string_equal(h.text, "line 1?");
	log_say(NULL, LOG_ERROR, "a", "nothing happens");
	log_init(&log, LOG_DEBUG, NULL, NULL);
	log_say(&log, LOG_ERROR, "a", "no sink");
}

static void test_share(void **state)
{
	struct heard h = {0};
	struct log log;

	(void)state;
	log_init(&log, LOG_DEBUG, hear, &h);
	for (unsigned i = 0; i < 1000; i++)
		log_say(&log, LOG_ERROR, "a", "line %u", i);
	/* A slow machine may see a second go by, but never the thousand. */
	assert_in_range(h.lines, LOG_BURST, 500);

	log_init(&log, LOG_DEBUG, hear, &h);
	log.second = clock_now();
	log.lines = LOG_BURST;
	log.left_out = 7;
	log.second -= 2 * NSEC_PER_SEC;
	h.lines = 0;
	log_say(&log, LOG_ERROR, "b", "next second");
	assert_int_equal(h.lines, 2);
	assert_string_equal(h.text, "next second");
	assert_int_equal(log.left_out, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
