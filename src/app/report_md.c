/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_md: tables for a document that lives with the code. Each stands under the machine that it
 * was measured on; what the counters say is one table for each experiment. A quick run has no ratio
 * to show: its tables are named, and their counters told.
 */
#include <errno.h>
#include <string.h>

#include "app/report_get.h"
#include "app/report_out.h"
#include "app/report_page.h"

static void md_value(FILE *f, const json_t *row, const char *key)
{
	double x;

	if (get_num(json_object_get(row, "value"), key, &x))
		markdown(f, "| %v ", x);
	else
		fputs("| – ", f);
}

static void md_ratio(FILE *f, const json_t *row)
{
	const json_t *r = json_object_get(row, "ratio"), *p = json_object_get(row, "published");
	double median, low, high, ratio;

	if (get_num(r, "median", &median) && get_num(r, "low", &low) && get_num(r, "high", &high))
		markdown(f, "| **%r** (%r–%r) ", median, low, high);
	else
		fputs("| – ", f);
	if (*get_text(p, "text"))
		markdown(f, "| %t ", get_text(p, "text"));
	else if (get_num(p, "ratio", &ratio))
		markdown(f, "| %r ", ratio);
	else
		fputs("| – ", f);
}

static void md_table(FILE *f, const json_t *table)
{
	const char *x_name = get_text(table, "x_name"), *unit = get_text(table, "unit");
	const json_t *row;
	double x;
	size_t i;

	markdown(f, "\n%t: %t\n\n|", get_text(table, "id"), get_text(table, "title"));
	if (*x_name)
		markdown(f, " %t |", x_name);
	markdown(f,
		" arm | base | base, %t | arm, %t | ratio (interval) | published | verdict |\n|",
		unit, unit);
	fputs(*x_name ? "---:|---|---|---:|---:|---:|---:|---|\n"
		      : "---|---|---:|---:|---:|---:|---|\n",
		f);
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		const char *why = get_text(row, "why");

		if (*x_name && get_num(row, "x", &x))
			markdown(f, "| %v ", x);
		else if (*x_name)
			fputs("| – ", f);
		markdown(f, "| %t | %t ", get_text(row, "arm"), get_text(row, "base"));
		md_value(f, row, "base");
		md_value(f, row, "arm");
		md_ratio(f, row);
		markdown(f, "| %t%t%t |\n", get_text(row, "verdict"), *why ? ": " : "", why);
	}
}

/* A bound is said to be one. */
static const char *rule_of(const json_t *c)
{
	const char *rule = get_text(c, "rule");

	if (!strcmp(rule, "at most"))
		return "≤ ";
	return !strcmp(rule, "at least") ? "≥ " : "";
}

/* null and nothing are the same: the table is no sweep. */
static bool same_x(const json_t *a, const json_t *b)
{
	double x = 0, y = 0;

	return get_num(a, "x", &x) == get_num(b, "x", &y) && x <= y && x >= y;
}

/* The same was told with an earlier row: an arm that is compared twice is counted once. */
static bool told(const json_t *table, const json_t *row, const json_t *c)
{
	const json_t *earlier, *other;
	size_t i, k;

	json_array_foreach(json_object_get(table, "rows"), i, earlier)
	{
		const bool same = same_x(earlier, row);

		json_array_foreach(json_object_get(earlier, "counters"), k, other)
		{
			if (other == c)
				return false;
			if (same && json_equal(other, c))
				return true;
		}
	}
	return false;
}

static void md_counter(FILE *f, const json_t *table, const json_t *row, const json_t *c)
{
	double x, predicted, tolerance;
	bool tells = get_num(c, "predicted", &predicted);

	markdown(f, "| %t", get_text(table, "id"));
	if (get_num(row, "x", &x))
		markdown(f, ", %v", x);
	markdown(f, " | %t | %t ", get_text(c, "name"),
		*get_text(c, "arm") ? get_text(c, "arm") : get_text(row, "arm"));
	if (!tells)
		fputs("| – ", f);
	else if (get_num(c, "tolerance", &tolerance) && tolerance > 0)
		markdown(f, "| %t%v ± %v ", rule_of(c), predicted, tolerance);
	else
		markdown(f, "| %t%v ", rule_of(c), predicted);
	markdown(f, "| %v | %t |\n", json_number_value(json_object_get(c, "measured")),
		get_true(c, "ok") ? "as predicted" : "**missed**");
}

static void md_counters(FILE *f, const json_t *experiment)
{
	const json_t *table, *row, *c;
	bool begun = false;
	size_t i, k, m;

	json_array_foreach(json_object_get(experiment, "tables"), i, table)
	{
		json_array_foreach(json_object_get(table, "rows"), k, row)
		{
			json_array_foreach(json_object_get(row, "counters"), m, c)
			{
				if (told(table, row, c))
					continue;
				if (!begun)
					fputs("\n| table | counter | arm | predicted | measured | "
					      "|\n|---|---|---|---:|---:|---|\n",
						f);
				begun = true;
				md_counter(f, table, row, c);
			}
		}
	}
}

int report_markdown(FILE *f, const json_t *root, const char *only, struct err *err)
{
	const json_t *e, *table, *machine = json_object_get(root, "machine");
	const bool quick = get_true(root, "quick");
	bool found = false;
	size_t i, k;

	markdown(f, "Measured %t, weft %t, `%t`: %t, %d cores, %t, %t.\n", get_text(root, "date"),
		get_text(root, "weft"), quick ? "weft bench tables --quick" : "weft bench tables",
		get_text(machine, "cpu"), (int)json_number_value(json_object_get(machine, "cores")),
		get_text(machine, "kernel"), get_text(machine, "placement"));
	json_array_foreach(json_object_get(root, "experiments"), i, e)
	{
		if (only && strcmp(only, get_text(e, "id")) != 0)
			continue;
		found = true;
		if (quick)
			fputs("A quick run: counters only.\n\n", f);
		json_array_foreach(json_object_get(e, "tables"), k, table)
		{
			if (quick)
				markdown(f, "- %t: %t\n", get_text(table, "id"),
					get_text(table, "title"));
			else
				md_table(f, table);
		}
		md_counters(f, e);
	}
	if (only && !found)
		return err_set(err, ENOENT, "there is no experiment '%.40s' in it", only);
	return 0;
}
