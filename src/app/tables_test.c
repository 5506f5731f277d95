/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables: the experiments' counters, by count and never by time: what each arm is predicted to show it
 * shows; numbers and verdicts by hand-made rows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/tables.h"
#include "app/tables_cost.h"

/* One experiment by counters alone; `rows` verdicts at least, and none misses. */
static void counters_hold(const char *id, unsigned rows)
{
	const char *const only[] = {id, NULL};
	struct tables_config c = {.quick = true,
		.count = 8u << 20,
		.pairs = 1,
		.peer = "weft",
		.cwd = "/",
		.net = "lab",
		.only = only};
	json_t *o, *e, *list, *table, *row;
	struct err err = {""};
	unsigned n = 0;
	size_t i, k;
	bool ok;

	if (tables_measure(&c, &o, &ok, &err))
		fail_msg("%s", err.text);
	list = json_object_get(o, "experiments");
	assert_int_equal(json_array_size(list), 1);
	e = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(e, "id")), id);
	json_array_foreach(json_object_get(e, "tables"), i, table)
	{
		json_array_foreach(json_object_get(table, "rows"), k, row)
		{
			const char *verdict = json_string_value(json_object_get(row, "verdict"));

			if (!strcmp(verdict, "counters miss"))
				tables_text(stderr, table);
			n += !strcmp(verdict, "counters hold");
		}
	}
	assert_true(ok);
	assert_in_range(n, rows, 1000);
	json_decref(o);
}

static void test_s0(void **state)
{
	(void)state;
	counters_hold("S0", 15);
}

static void test_s1(void **state)
{
	(void)state;
	counters_hold("S1", 9);
}

static void test_s2(void **state)
{
	(void)state;
	counters_hold("S2", 9);
}

static void test_s3(void **state)
{
	(void)state;
	counters_hold("S3", 20);
}

static void test_s4(void **state)
{
	(void)state;
	counters_hold("S4", 8);
}

/* A wrong prediction is seen: the same run, judged by a counter it cannot show. */
static void test_a_miss_is_seen(void **state)
{
	const struct tables_row row = {.arm = "a", .base = "b", .published = 1.2};
	const struct tables_ratio r = {1.2, 1.1, 1.3};
	char why[100];

	(void)state;
	assert_string_equal(
		tables_verdict(&row, &r, true, false, true, why, sizeof(why)), "counters miss");
	assert_string_equal(
		tables_verdict(&row, &r, true, false, false, why, sizeof(why)), "counters miss");
	assert_string_equal(
		tables_verdict(&row, &r, true, true, true, why, sizeof(why)), "counters hold");
}

static void test_verdicts(void **state)
{
	static const struct {
		double published;
		bool null, faster;
		struct tables_ratio r;
		const char *verdict;
	} rows[] = {
		{1.5, false, false, {1.4, 1.3, 1.5}, "reproduced"},
		{1.5, false, false, {1.3, 1.2, 1.4},
			"reproduced"}, /* more than half of the effect */
		{1.5, false, false, {1.1, 1.05, 1.15}, "direction only"},
		{1.5, false, false, {3.0, 2.9, 3.1}, "direction only"},
		{1.5, false, false, {1.1, 0.95, 1.25}, "not reproduced"},
		{1.5, false, false, {0.9, 0.85, 0.95}, "not reproduced"},
		{0.8, false, false, {0.82, 0.8, 0.85}, "reproduced"},
		{0.8, false, false, {1.1, 1.05, 1.15}, "not reproduced"},
		{1, false, false, {1.02, 0.99, 1.05}, "reproduced"}, /* published: no change */
		{1, false, false, {1.2, 1.1, 1.3}, "not reproduced"},
		{0, true, false, {1.02, 0.99, 1.05}, "null control holds"},
		{0, true, false, {1.04, 1.03, 1.05}, "null control holds"}, /* within 5 % */
		{0, true, false, {1.2, 1.1, 1.3}, "null control fails"},
		{0, false, true, {1.2, 1.1, 1.3}, "reproduced"},
		{0, false, true, {1.2, 0.9, 1.3}, "not reproduced"},
		{0, false, false, {1.2, 0.9, 1.3}, "not judged"},
	};
	char why[200];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct tables_row row = {.published = rows[i].published,
			.null = rows[i].null,
			.faster = rows[i].faster};

		assert_string_equal(
			tables_verdict(&row, &rows[i].r, false, true, false, why, sizeof(why)),
			rows[i].verdict);
	}
}

/* Of 5 pairs the least and the most; of 9 the second ones: 1 - 2 * 10/512 = 0.96. */
static void test_intervals(void **state)
{
	const double a[9] = {9, 1, 5, 3, 7, 2, 8, 4, 6}, one[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct tables_ratio r = tables_ratio(a, one, 9);

	(void)state;
	assert_true(r.median == 5 && r.low == 2 && r.high == 8);
	r = tables_ratio(a, one, 5);
	assert_true(r.median == 5 && r.low == 1 && r.high == 9);
	r = tables_ratio(a, one, 1);
	assert_true(r.median == 9 && r.low == 9 && r.high == 9);
	assert_true(tables_median(a, 4) == 4);
	assert_true(isnan(tables_median(a, 0)));
}

/* Points made from a sum give that sum back, and a point that is not of it is told. */
static void test_cost(void **state)
{
	static const double term[COST_TERMS] = {50, 10, 4, 3, 20, 30, 60, 8, 25};
	struct cost *c = calloc(1, sizeof(*c));
	json_t *o;

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		struct tables_result r;
		const double size = 64 + i * 1000.0;
		struct cost_point *p = &c->point[i];

		for (unsigned m = 0; m < TABLES_METRICS_N; m++)
			r.v[m] = NAN;
		r.v[TABLES_NS] = 1;
		r.v[TABLES_RX_BUFS] = 1 + i * 7 % 11;
		r.v[TABLES_RX_FRAGS] = 1 + i * 5 % 7;
		r.v[TABLES_TX_DESC] = 1 + i * 3 % 5;
		r.v[TABLES_TX_TABLES] = i % 2;
		if (i % 3)
			r.v[TABLES_COPY_CHUNKS] = i * 3 % 8;
		cost_add(c, "X", "arm", size, &r, i != 59);
		p->ns = 0;
		for (unsigned k = 0; k < COST_TERMS; k++)
			p->ns += term[k] * p->f[k];
	}
	assert_true(cost_fit(c));
	for (unsigned k = 0; k < COST_TERMS; k++)
		assert_true(fabs(c->term[k] - term[k]) < 0.05 * term[k]);
	o = cost_json(c);
	assert_string_equal(json_string_value(json_object_get(o, "note")), "");
	json_decref(o);
	c->point[59].ns *= 2;
	o = cost_json(c);
	assert_non_null(strstr(json_string_value(json_object_get(o, "note")), "1 of 1 runs"));
	json_decref(o);
	c->n = 10;
	assert_false(cost_fit(c));
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_s0),
		cmocka_unit_test(test_s1),
		cmocka_unit_test(test_s2),
		cmocka_unit_test(test_s3),
		cmocka_unit_test(test_s4),
		cmocka_unit_test(test_a_miss_is_seen),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
