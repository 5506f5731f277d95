/* SPDX-License-Identifier: BSD-2-Clause */
/* tables_text: one table for people, from its JSON. */
#include <math.h>
#include <string.h>

#include "app/tables.h"

static double num(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* Three or four digits that say something. */
static const char *digits(char *to, size_t size, double x)
{
	if (!isfinite(x))
		snprintf(to, size, "-");
	else
		snprintf(to, size, "%.*f", fabs(x) >= 100 ? 0 : fabs(x) >= 10 ? 1 : 2, x);
	return to;
}

static void print_counters(FILE *f, const json_t *row, const char *indent)
{
	json_t *list = json_object_get(row, "counters"), *n;
	char a[32], b[32];
	size_t i;

	json_array_foreach(list, i, n)
	{
		const char *rule = str(n, "rule");

		fprintf(f, "%s%s: %s of %s, predicted %s%s%s\n", indent, str(n, "name"),
			digits(a, sizeof(a), num(n, "measured")), str(n, "arm"),
			strcmp(rule, "equal") != 0 ? rule : "",
			strcmp(rule, "equal") != 0 ? " " : "",
			digits(b, sizeof(b), num(n, "predicted")));
		if (!json_is_true(json_object_get(n, "ok")))
			fprintf(f, "%s    MISSES its prediction\n", indent);
	}
}

/* A row, but for its counters. */
static void print_row(FILE *f, const json_t *row, int arm, int base)
{
	const json_t *ratio = json_object_get(row, "ratio"),
		     *said = json_object_get(row, "published"),
		     *value = json_object_get(row, "value");
	char a[32], b[32], x[32], ratios[80] = "-";

	if (json_is_object(ratio))
		snprintf(ratios, sizeof(ratios), "%.3f (%.3f .. %.3f)", num(ratio, "median"),
			num(ratio, "low"), num(ratio, "high"));
	fprintf(f, "  %6s  %-*s  %-*s  %9s  %9s  %-24s  %9s  %s\n",
		digits(x, sizeof(x), num(row, "x")), arm, str(row, "arm"), base, str(row, "base"),
		digits(a, sizeof(a), num(value, "base")), digits(b, sizeof(b), num(value, "arm")),
		ratios, json_is_object(said) ? str(said, "text") : "-", str(row, "verdict"));
	if (*str(row, "why"))
		fprintf(f, "          %s\n", str(row, "why"));
}

void tables_text(FILE *f, const json_t *table)
{
	const json_t *rows = json_object_get(table, "rows");
	int arm = 3, base = 7;
	const char *x = str(table, "x_name");
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		if ((int)strlen(str(row, "arm")) > arm)
			arm = (int)strlen(str(row, "arm"));
		if ((int)strlen(str(row, "base")) > base)
			base = (int)strlen(str(row, "base"));
	}
	fprintf(f, "\n%s  %s, %s\n    %s\n", str(table, "id"), str(table, "title"),
		str(table, "unit"), str(table, "words"));
	fprintf(f, "  %6.6s  %-*s  %-*s  %9s  %9s  %-24s  %9s  %s\n", *x ? x : "", arm, "arm", base,
		"against", "before", "after", "ratio", "published", "verdict");
	json_array_foreach(rows, i, row)
	{
		print_row(f, row, arm, base);
		print_counters(f, row, "          ");
	}
}
