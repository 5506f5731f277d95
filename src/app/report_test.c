/* SPDX-License-Identifier: BSD-2-Clause */
/* report: what is escaped, how numbers look, and which files are refused with which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/report_check.h"
#include "app/report_out.h"
#include "app/report_page.h"
#include "app/report_svg.h"

static void expect_text(char *got, const char *want)
{
	assert_string_equal(got, want);
	free(got);
}

#define PRINTED(call)                                                                              \
	({                                                                                         \
		char *text_ = NULL;                                                                \
		size_t len_;                                                                       \
		FILE *f = open_memstream(&text_, &len_);                                           \
		call;                                                                              \
		fclose(f);                                                                         \
		text_;                                                                             \
	})

static void test_escape(void **state)
{
	(void)state;
	expect_text(PRINTED(html(f, "<td title=\"%t\">%t</td>", "\" onload='x'", "<b>&amp;")),
		"<td title=\"&quot; onload=&#39;x&#39;\">&lt;b&gt;&amp;amp;</td>");
	expect_text(PRINTED(html(f, "%t", "a\x01\n\x7f\xc2\x85z")),
		"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
	expect_text(PRINTED(html(f, "%t", "\xe2\x80\xaeknil")), "\xef\xbf\xbdknil");
	expect_text(PRINTED(html(f, "%t%%", "Größe ✓")), "Größe ✓%");
	expect_text(PRINTED(markdown(f, "| %t |", "a|b`c`<i>[x](y)*")),
		"| a&#124;b&#96;c&#96;&lt;i&gt;&#91;x&#93;(y)&#42; |");
}

static void test_numbers(void **state)
{
	static const struct {
		double x;
		const char *text;
	} cases[] = {{0, "0"}, {1, "1"}, {0.02, "0.02"}, {1.0608, "1.061"}, {12.5, "12.5"},
		{868.13, "868.1"}, {9120, "9120"},
		{1396800.4, "1\xe2\x80\xaf"
			    "396\xe2\x80\xaf"
			    "800"},
		{-23456, "-23\xe2\x80\xaf"
			 "456"},
		{100, "100"}, {1e300, "1.000e+300"}, {-1e-9, "-1.000e-09"}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_text(PRINTED(html(f, "%v", cases[i].x)), cases[i].text);
}

/* What gnuplot gets is one string in single quotes, whatever stood in the file. */
static void test_plot_text(void **state)
{
	static const char *const hostile[] = {"'; system('touch x'); print '", "`touch x`", "\\'",
		"a\n!touch x", "@m \"q\" %g", "\x1b[31m"};

	(void)state;
	for (unsigned i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		char *s = PRINTED(plot_text(f, hostile[i], 60));
		size_t len = strlen(s);

		assert_true(s[0] == '\'' && s[len - 1] == '\'');
		assert_int_equal(strcspn(s + 1, "'`\\\"\n%\x1b"), len - 2);
		free(s);
	}
	expect_text(PRINTED(plot_text(f, "öäüöäü", 4)), "'öäü…'");
	expect_text(PRINTED(plot_text(f, "öäüö", 4)), "'öäüö'");
}

static json_t *sample(void)
{
	json_t *o = json_loads(
		"{\"format\": \"weft-tables\", \"version\": 1, \"weft\": \"0.1.0\", \"date\": "
		"\"d\","
		"\"quick\": false, \"peer\": \"weft\", \"ok\": true, \"machine\": {\"cpu\": \"c\","
		"\"cores\": 2, \"kernel\": \"k\", \"placement\": \"p\", \"memory\": 1e9},"
		"\"experiments\": [{\"id\": \"S0\", \"title\": \"t\", \"published\": \"p\","
		"\"knobs\": {\"a\": [\"b\"]}, \"tables\": [{\"id\": \"S0.x\", \"title\": \"t\","
		"\"x_name\": null, \"unit\": \"u\", \"rows\": [{\"arm\": \"<a>\", \"base\": \"b\","
		"\"x\": null, \"value\": {\"base\": 1, \"arm\": 2}, \"ratio\": {\"median\": 2,"
		"\"low\": 1.9, \"high\": 2.1}, \"published\": {\"ratio\": 1.5, \"text\": \"50 %\"},"
		"\"counters\": [{\"name\": \"n|m\", \"arm\": \"a\", \"predicted\": 2,"
		"\"tolerance\": 0.5, \"measured\": 2.25, \"ok\": true}], \"verdict\": "
		"\"reproduced\","
		"\"why\": \"\"}]}], \"histograms\": [{\"name\": \"h\", \"arm\": \"a\", \"bins\":"
		"[[1, 2, 3]]}], \"runs\": []}], \"cost_model\": {\"terms\": [], \"points\": [],"
		"\"note\": \"\"}}",
		0, NULL);

	assert_non_null(o);
	return o;
}

/* Set what a path of keys and numbers names to `value` (NULL: take it away). */
static void spoil(json_t *o, const char *path, const char *value)
{
	char text[128], *save = NULL, *key, *next;

	snprintf(text, sizeof(text), "%s", path);
	for (key = strtok_r(text, ".", &save); (next = strtok_r(NULL, ".", &save)); key = next)
		o = json_is_array(o) ? json_array_get(o, (size_t)atoi(key))
				     : json_object_get(o, key);
	assert_non_null(o);
	if (!value)
		json_object_del(o, key);
	else if (json_is_array(o))
		json_array_set_new(o, (size_t)atoi(key), json_loads(value, JSON_DECODE_ANY, NULL));
	else
		json_object_set_new(o, key, json_loads(value, JSON_DECODE_ANY, NULL));
}

static void test_refused(void **state)
{
	static const struct {
		const char *path, *value, *says;
	} cases[] = {
		{"format", "\"other\"", "not a result of `weft bench tables --json`"},
		{"version", "2", "newer"},
		{"version", "\"1\"", "unknown"},
		{"machine", "[]", "machine is a list; right is: an object"},
		{"machine.cores", "\"two\"", "machine.cores is a text; right is: a number"},
		{"ok", NULL, "ok is missing; right is: true or false"},
		{"experiments.0", "7", "experiments[0] is a number; right is: an object"},
		{"experiments.0.tables.0.rows.0.ratio.median", "\"x\"",
			"experiments[0].tables[0].rows[0].ratio.median is a text; right is: a "
			"number"},
		{"experiments.0.tables.0.rows.0.counters.0.ok", "1",
			"counters[0].ok is a number; right is: true or false"},
		{"experiments.0.histograms.0.bins.0", "[1, 2]", "bins[0] is wrong"},
		{"experiments.0.histograms.0.bins.0", "[1, 2, -1]", "bins[0] is wrong"},
		{"cost_model.points", "{}", "cost_model.points is an object; right is: a list"},
	};
	struct err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *o = sample();

		assert_int_equal(report_check(o, &err), 0);
		spoil(o, cases[i].path, cases[i].value);
		assert_int_equal(report_check(o, &err), -EINVAL);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
		json_decref(o);
	}
}

static void test_null_and_more(void **state)
{
	static const char *const may_be_null[] = {"cost_model", "peer",
		"experiments.0.tables.0.rows.0.ratio", "experiments.0.tables.0.rows.0.published",
		"experiments.0.tables.0.rows.0.value", "experiments.0.tables.0.rows.0.counters"};
	struct err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(may_be_null) / sizeof(*may_be_null); i++) {
		json_t *o = sample();

		spoil(o, may_be_null[i], i % 2 ? NULL : "null");
		spoil(o, "experiments.0.later", "[1, {}]");
		assert_int_equal(report_check(o, &err), 0);
		free(PRINTED(assert_int_equal(report_markdown(f, o, NULL, &err), 0)));
		json_decref(o);
	}
}

static void test_markdown(void **state)
{
	json_t *o = sample();
	struct err err;
	char *s;

	(void)state;
	s = PRINTED(assert_int_equal(report_markdown(f, o, "S0", &err), 0));
	assert_non_null(
		strstr(s, "| &lt;a&gt; | b | 1 | 2 | **2.00** (1.90–2.10) | 50 % | reproduced |"));
	assert_non_null(strstr(s, "| S0.x | n&#124;m | a | 2 ± 0.5 | 2.25 | as predicted |"));
	free(s);
	s = PRINTED(assert_int_equal(report_markdown(f, o, "S9", &err), -ENOENT));
	assert_non_null(strstr(err.text, "'S9'"));
	free(s);
	json_decref(o);
}

/* A quick run: no table of ratios that it has not; each counter once; bounds are told from values. */
static unsigned times_in(const char *text, const char *line)
{
	unsigned n = 0;

	while ((text = strstr(text, line))) {
		text += strlen(line);
		n++;
	}
	return n;
}

static void test_markdown_quick(void **state)
{
	json_t *o = sample(), *rows, *counters, *more;
	const char *line = "| S0.x | n&#124;m | a | 2 ± 0.5 | 2.25 | as predicted |";
	struct err err;
	char *s;

	(void)state;
	json_object_set_new(o, "quick", json_true());
	spoil(o, "experiments.0.tables.0.rows.0.ratio", "null");
	rows = json_object_get(
		json_array_get(json_object_get(json_array_get(json_object_get(o, "experiments"), 0),
				       "tables"),
			0),
		"rows");
	counters = json_object_get(json_array_get(rows, 0), "counters");
	more = json_deep_copy(json_array_get(counters, 0));
	json_object_set_new(more, "rule", json_string("at most"));
	json_array_append_new(counters, more);
	json_array_append_new(rows, json_deep_copy(json_array_get(rows, 0)));
	assert_int_equal(report_check(o, &err), 0);
	s = PRINTED(assert_int_equal(report_markdown(f, o, "S0", &err), 0));
	assert_non_null(strstr(s, "- S0.x: t\n"));
	assert_null(strstr(s, "verdict"));
	assert_int_equal(times_in(s, line), 1);
	assert_non_null(strstr(s, "| S0.x | n&#124;m | a | ≤ 2 ± 0.5 | 2.25 | as predicted |"));
	free(s);
	spoil(o, "experiments.0.tables.0.rows.1.x", "7"); /* of another size: to be told, too */
	s = PRINTED(assert_int_equal(report_markdown(f, o, "S0", &err), 0));
	assert_non_null(strstr(s, "| S0.x, 7 | n&#124;m | a | 2 ± 0.5 | 2.25 | as predicted |"));
	free(s);
	json_decref(o);
}

/* A picture's names become its own, its colours the page's; its groups of nothing go. */
static void test_svg(void **state)
{
	static const char svg[] =
		"<?xml?><svg viewBox=\"0 0 720 300\"><title>Gnuplot</title>"
		"<g id=\"gnuplot_canvas\"><path id='gpPt5'/><use xlink:href='#gpPt5'/>"
		"<g fill=\"none\" a=\"b\">\n</g><path stroke='black' color='rgb(  3,   3,   3)'/>"
		"<g fill=\"rgb(1,1,1)\" font-family=\"sans\"></g><filter id='x'><a/></filter>"
		"<rect fill='#070707'/><rect fill='#123456'/></g></svg>\n";

	(void)state;
	expect_text(PRINTED(svg_embed(f, svg, 4, "A<B", "d")),
		"<svg viewBox=\"0 0 720 300\" role=\"img\" aria-labelledby=\"p4-t p4-d\" "
		"xmlns:xlink=\"http://www.w3.org/1999/xlink\"><title id=\"p4-t\">A&lt;B</title>"
		"<desc id=\"p4-d\">d</desc>\n"
		"<g><path id='p4-gpPt5'/><use xlink:href='#p4-gpPt5'/>"
		"<path stroke='currentColor' color='var(--p3)'/><g fill=\"var(--p1)\"></g>"
		"<rect fill='var(--p7)'/><rect fill='#123456'/></g></svg>\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_plot_text),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_null_and_more),
		cmocka_unit_test(test_markdown),
		cmocka_unit_test(test_markdown_quick),
		cmocka_unit_test(test_svg),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
