/* SPDX-License-Identifier: BSD-2-Clause */
/* cmd: the table is complete, its parser tells mistakes, help and manual page have every word. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/help.h"
#include "app/help_topic.h"
#include "port/vnet.h"

static void test_table(void **state)
{
	(void)state;
	for (const struct cmd *c = cmds; c->word; c++) {
		assert_non_null(c->run);
		assert_non_null(c->args);
		assert_non_null(c->more);
		assert_true(strlen(c->help) > 5);
		assert_null(strchr(c->help, '\n'));
		assert_true(c->min <= c->max && c->max <= CMD_ARGS);
		assert_true(c->max == 0 || *c->args);
		for (unsigned i = 0; i < CMD_OPTS && c->opt[i].name; i++)
			assert_true(c->opt[i].name[0] == '-' && strlen(c->opt[i].help) > 5);
		assert_ptr_equal(cmd_find(c->word, NULL), c);
	}
}

static int parse(struct cmd_call *call, const char *line)
{
	static char words[256];
	static const char *argv[16];
	char *save = NULL;
	int argc = 0;

	strcpy(words, line);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	*call = (struct cmd_call){.net_name = "default"};
	call->cmd = cmd_find(argv[0], &call->err);
	if (!call->cmd)
		return -EINVAL;
	return cmd_parse(call, argc, argv);
}

static void test_parse(void **state)
{
	struct cmd_call call;
	uint32_t n;

	(void)state;
	assert_int_equal(parse(&call, "run -n lab --poll-us 5 vhost-user:a -v tap:b"), 0);
	assert_string_equal(call.net_name, "lab");
	assert_int_equal(call.narg, 2);
	assert_string_equal(call.arg[1], "tap:b");
	assert_int_equal(cmd_number(&call, 0, 100, &n, 7), 0);
	assert_int_equal(n, 5);
	assert_int_equal(cmd_number(&call, 1, 100, &n, 7), 0);
	assert_int_equal(n, 7);
	assert_non_null(call.opt[2]);
	assert_int_equal(parse(&call, "run --wait-us=101"), 0);
	assert_int_equal(cmd_number(&call, 1, 100, &n, 7), -EINVAL);
	assert_non_null(strstr(call.err.text, "101"));
	assert_int_equal(parse(&call, "wait -t x a"), 0);
	assert_int_equal(cmd_number(&call, 0, 100, &n, 7), -EINVAL);
	assert_int_equal(parse(&call, "wait -- -a"), 0);
	assert_string_equal(call.arg[0], "-a");
}

static void test_mistakes(void **state)
{
	static const char *const cases[][3] = {
		{"shwo", "'shwo'", "did you mean 'show'"},
		{"frobnicate", "'frobnicate'", "known: run, add"},
		{"wait", "NAME", "weft wait NAME"},
		{"why a", "A B", "weft why A B"},
		{"wait a b", "'b'", "weft wait NAME"},
		{"show --jason", "'--jason'", "--json"},
		{"show --json=1", "--json", "no value"},
		{"wait a -t", "-t", "SECONDS"},
		{"show -n", "-n", "NET"},
		{"show -n a/b", "a/b", "cannot name a network"},
		{"show -n ..", "..", ""},
	};
	struct cmd_call call;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!parse(&call, cases[i][0]))
			fail_msg("'%s' was taken", cases[i][0]);
		if (!strstr(call.err.text, cases[i][1]) || !strstr(call.err.text, cases[i][2]))
			fail_msg("'%s': %s", cases[i][0], call.err.text);
	}
}

static char *printed(void (*print)(FILE *))
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	print(f);
	fclose(f);
	return text;
}

static void test_help(void **state)
{
	char *s = printed(help_short), *all = printed(help_all), *man = printed(help_man);
	unsigned lines = 0;

	(void)state;
	for (const char *c = s; *c; c++)
		lines += *c == '\n';
	assert_true(lines <= 10);
	for (const struct cmd *c = cmds; c->word; c++) {
		char line[64];

		snprintf(line, sizeof(line), "weft %s%s", c->word, *c->args ? " " : "\n");
		assert_non_null(strstr(all, line));
		snprintf(line, sizeof(line), ".SS weft %s%s", c->word, *c->args ? " " : "\n");
		assert_non_null(strstr(man, line));
	}
	assert_non_null(strstr(man, "vhost\\-user:NAME|PATH"));
	assert_non_null(strstr(man, "\\-\\-poll\\-us N"));
	assert_true(!strncmp(man, ".TH WEFT 1", 10));
	assert_null(strstr(all, " \n"));
	assert_null(strstr(man, " \n"));
	assert_null(strstr(all, "autoreceive")); /* a long term and its text keep apart */
	free(s);
	free(all);
	free(man);
}

static bool topic_has(const char *word, const char *name)
{
	for (const struct help_topic *t = help_topics; t->word; t++) {
		for (const struct help_term *term = t->term; term->name; term++) {
			if (!strcmp(t->word, word) && !strcmp(term->name, name))
				return true;
		}
	}
	return false;
}

static void test_topics(void **state)
{
	char text[512], *save = NULL;

	(void)state;
	for (unsigned i = DROP_NONE + 1; i < DROP_MAX; i++) {
		if (!topic_has("drops", drop_name((enum drop)i)))
			fail_msg("the drop reason %s is not explained", drop_name((enum drop)i));
	}
	vnet_features_text(vnet_features_all(), text, sizeof(text));
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (!topic_has("features", w))
			fail_msg("the feature %s is not explained", w);
	}
}

/* What `weft help WORD` prints, or NULL for a mistake. */
static char *help_of(const char *word)
{
	struct cmd_call call = {.net_name = "default"};
	const char *argv[] = {"help", word};
	char *text = NULL;
	size_t len;
	int status;

	call.out = open_memstream(&text, &len);
	status = cmd_exec(&call, 2, argv);
	fclose(call.out);
	if (status == CMD_DONE)
		return text;
	free(text);
	return NULL;
}

static void test_help_of_one(void **state)
{
	static const char *const cases[][3] = {
		{"vhost-user", "mode=OCTAL", "netns="},
		{"tap", "netns=", "mode=OCTAL"},
		{"virtio-user", "coalesce=", "netns="},
		{"features", "guest_tso4", "no_room"},
		{"drops", "no_room", "guest_tso4"},
		{"columns", "TAKES", "no_room"},
		{"wait", "-t SECONDS", "netns="},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = help_of(cases[i][0]);

		assert_non_null(text);
		assert_non_null(strstr(text, cases[i][1]));
		assert_null(strstr(text, cases[i][2]));
		free(text);
	}
	assert_null(help_of("device")); /* no user can name one */
	assert_null(help_of("bogus"));
}

static void test_too_many(void **state)
{
	static const char *argv[CMD_ARGS + 2] = {"run"};
	struct cmd_call call = {.net_name = "default", .cmd = cmd_find("run", NULL)};

	(void)state;
	for (unsigned i = 1; i < CMD_ARGS + 2; i++)
		argv[i] = "vhost-user:a";
	assert_int_equal(cmd_parse(&call, CMD_ARGS + 2, argv), -EINVAL);
	assert_non_null(strstr(call.err.text, "128"));
	call.narg = 0;
	assert_int_equal(cmd_parse(&call, CMD_ARGS + 1, argv), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_help_of_one),
		cmocka_unit_test(test_topics),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
