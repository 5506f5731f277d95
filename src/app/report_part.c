/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_part: tables. The roles are written out: a table that is shown as cards would lose its own.
 */
#include "app/report_part.h"

#include <stdbool.h>
#include <string.h>

#include "app/report_get.h"
#include "app/report_out.h"

static void table_begin(FILE *f, const char *caption)
{
	html(f,
		"<div class=\"wide\"><table class=\"cards\" "
		"role=\"table\">\n<caption>%t</caption>\n"
		"<thead role=\"rowgroup\"><tr role=\"row\">",
		caption);
}

static void head(FILE *f, const char *text)
{
	html(f, "<th scope=\"col\" role=\"columnheader\">%t</th>", text);
}

static void head_n(FILE *f, const char *text)
{
	html(f, "<th scope=\"col\" role=\"columnheader\" class=\"n\">%t</th>", text);
}

static void body_begin(FILE *f)
{
	fputs("</tr></thead>\n<tbody role=\"rowgroup\">\n", f);
}

static void row_begin(FILE *f, const char *label, const char *text)
{
	html(f, "<tr role=\"row\"><th scope=\"row\" role=\"rowheader\" data-label=\"%t\">%t</th>",
		label, text);
}

static void row_begin_n(FILE *f, const char *label, double x)
{
	html(f,
		"<tr role=\"row\"><th scope=\"row\" role=\"rowheader\" class=\"n\" "
		"data-label=\"%t\">%v</th>",
		label, x);
}

static void cell(FILE *f, const char *label, const char *text)
{
	html(f, "<td role=\"cell\" data-label=\"%t\">%t</td>", label, text);
}

static void cell_n(FILE *f, const char *label, const json_t *o, const char *key)
{
	double x;

	html(f, "<td role=\"cell\" class=\"n\" data-label=\"%t\">", label);
	if (get_num(o, key, &x))
		html(f, "%v</td>", x);
	else
		fputs("<span class=\"none\">–</span></td>", f);
}

static void table_end(FILE *f)
{
	fputs("</tbody></table></div>\n", f);
}

/* knobs: {"rxbuf": ["mtu", "mtu+hdr"]}, or plain values */

static void knob_value(FILE *f, const json_t *v)
{
	if (json_is_string(v))
		html(f, "<code>%t</code>", json_string_value(v));
	else if (json_is_number(v))
		html(f, "<code>%v</code>", json_number_value(v));
	else if (json_is_boolean(v))
		html(f, "<code>%t</code>", json_is_true(v) ? "on" : "off");
}

void part_knobs(FILE *f, const json_t *knobs)
{
	const char *key;
	const json_t *one;
	json_t *v;
	size_t i;

	if (!json_object_size(knobs))
		return;
	fputs("<dl class=\"facts\" aria-label=\"Knobs\">\n", f);
	json_object_foreach((json_t *)(uintptr_t)knobs, key, v)
	{
		html(f, "<dt>%t</dt><dd>", key);
		if (!json_is_array(v))
			knob_value(f, v);
		json_array_foreach(v, i, one)
		{
			fputs(i ? " " : "", f);
			knob_value(f, one);
		}
		fputs("</dd>\n", f);
	}
	fputs("</dl>\n", f);
}

/* results */

struct verdict {
	const char *word, *mark, *class;
};

static const struct verdict *verdict_of(const char *word)
{
	static const struct verdict verdicts[] = {
		{"reproduced", "✓", "good"},
		{"direction only", "↗", "fair"},
		{"not reproduced", "✕", "bad"},
		{"null control holds", "✓", "good"},
		{"null control fails", "✕", "bad"},
		{"counters hold", "✓", "good"},
		{"counters miss", "✕", "bad"},
		{NULL, "·", "none"},
	};
	const struct verdict *v;

	for (v = verdicts; v->word && strcmp(v->word, word) != 0; v++)
		;
	return v;
}

static void cell_ratio(FILE *f, const json_t *ratio)
{
	double median, low, high;

	fputs("<td role=\"cell\" class=\"n\" data-label=\"ratio\">", f);
	if (get_num(ratio, "median", &median) && get_num(ratio, "low", &low) &&
		get_num(ratio, "high", &high))
		html(f,
			"<div><span class=\"ratio\">%r</span> <span "
			"class=\"interval\">%r–%r</span></div>"
			"</td>",
			median, low, high);
	else
		fputs("<span class=\"none\">–</span></td>", f);
}

static void cell_published(FILE *f, const json_t *p)
{
	double ratio;

	fputs("<td role=\"cell\" class=\"n\" data-label=\"published\">", f);
	if (get_num(p, "ratio", &ratio))
		html(f, "%r", ratio);
	else if (*get_text(p, "text"))
		html(f, "%t", get_text(p, "text"));
	else
		fputs("<span class=\"none\">–</span>", f);
	fputs("</td>", f);
}

static void cell_verdict(FILE *f, const json_t *row)
{
	const char *word = get_text(row, "verdict"), *why = get_text(row, "why");
	const struct verdict *v = verdict_of(word);

	html(f,
		"<td role=\"cell\" data-label=\"verdict\"><div><span class=\"%t\"><span "
		"aria-hidden=\"true\">%t</span> %t</span>",
		v->class, v->mark, word);
	if (*why)
		html(f, "<span class=\"why\">%t</span>", why);
	fputs("</div></td>", f);
}

static bool table_bases(const json_t *table)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		if (*get_text(row, "base"))
			return true;
	}
	return false;
}

static void part_row(FILE *f, const json_t *table, const json_t *row, bool bases)
{
	const char *x_name = get_text(table, "x_name");
	double x;

	if (*x_name && get_num(row, "x", &x)) {
		row_begin_n(f, x_name, x);
		cell(f, "arm", get_text(row, "arm"));
	} else {
		row_begin(f, *x_name ? x_name : "arm", *x_name ? "–" : get_text(row, "arm"));
		if (*x_name)
			cell(f, "arm", get_text(row, "arm"));
	}
	if (bases)
		cell(f, "base", get_text(row, "base"));
	cell_n(f, "base value", json_object_get(row, "value"), "base");
	cell_n(f, "arm value", json_object_get(row, "value"), "arm");
	cell_ratio(f, json_object_get(row, "ratio"));
	cell_published(f, json_object_get(row, "published"));
	cell_verdict(f, row);
	fputs("</tr>\n", f);
}

void part_table(FILE *f, const json_t *table)
{
	const char *x_name = get_text(table, "x_name"), *unit = get_text(table, "unit");
	bool bases = table_bases(table);
	const json_t *row;
	char text[256];
	size_t i;

	html(f, "<h3><span class=\"id\">%t</span>%t</h3>\n", get_text(table, "id"),
		get_text(table, "title"));
	snprintf(text, sizeof(text), "%s%sthe ratio with the interval of its pairs", unit,
		*unit ? " of base and arm, medians; " : "");
	table_begin(f, text);
	if (*x_name)
		head_n(f, x_name);
	head(f, "arm");
	if (bases)
		head(f, "base");
	head_n(f, "base value");
	head_n(f, "arm value");
	head_n(f, "ratio");
	head_n(f, "published");
	head(f, "verdict");
	body_begin(f);
	json_array_foreach(json_object_get(table, "rows"), i, row) part_row(f, table, row, bases);
	table_end(f);
}

/* counters */

static unsigned counters_of(const json_t *table, unsigned *missed)
{
	const json_t *row, *c;
	unsigned n = 0;
	size_t i, k;

	*missed = 0;
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		json_array_foreach(json_object_get(row, "counters"), k, c)
		{
			n++;
			*missed += !get_true(c, "ok");
		}
	}
	return n;
}

static void part_counter(FILE *f, const char *x_name, const json_t *row, const json_t *c)
{
	double x, predicted, tolerance;

	row_begin(f, "counter", get_text(c, "name"));
	if (*x_name) {
		html(f, "<td role=\"cell\" class=\"n\" data-label=\"%t\">", x_name);
		if (get_num(row, "x", &x))
			html(f, "%v", x);
		fputs("</td>", f);
	}
	cell(f, "arm", *get_text(c, "arm") ? get_text(c, "arm") : get_text(row, "arm"));
	fputs("<td role=\"cell\" class=\"n\" data-label=\"predicted\">", f);
	if (!get_num(c, "predicted", &predicted))
		fputs("<span class=\"none\">–</span>", f);
	else if (get_num(c, "tolerance", &tolerance) && tolerance > 0)
		html(f, "<div>%v <span class=\"interval\">± %v</span></div>", predicted, tolerance);
	else
		html(f, "%v", predicted);
	fputs("</td>", f);
	cell_n(f, "measured", c, "measured");
	if (get_true(c, "ok"))
		fputs("<td role=\"cell\" data-label=\"verdict\"><span class=\"good\"><span "
		      "aria-hidden=\"true\">✓</span> as predicted</span></td></tr>\n",
			f);
	else
		fputs("<td role=\"cell\" data-label=\"verdict\"><span class=\"bad\"><span "
		      "aria-hidden=\"true\">✕</span> missed</span></td></tr>\n",
			f);
}

void part_counters(FILE *f, const json_t *table)
{
	const char *x_name = get_text(table, "x_name");
	const json_t *row, *c;
	unsigned missed, n = counters_of(table, &missed);
	size_t i, k;

	if (!n)
		return;
	html(f, "<details%t><summary>", n <= 8 || missed ? " open" : "");
	if (missed)
		html(f, "<span class=\"state bad\">%d of %d counters missed</span></summary>\n",
			(int)missed, (int)n);
	else
		html(f, "%d counter%t as predicted</summary>\n", (int)n, n == 1 ? "" : "s, all");
	table_begin(f, "What the counters had to be, and were");
	head(f, "counter");
	if (*x_name)
		head_n(f, x_name);
	head(f, "arm");
	head_n(f, "predicted");
	head_n(f, "measured");
	head(f, "verdict");
	body_begin(f);
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		json_array_foreach(json_object_get(row, "counters"), k, c)
			part_counter(f, x_name, row, c);
	}
	table_end(f);
	fputs("</details>\n", f);
}

/* runs */

static void run_list(FILE *f, const char *label, const json_t *o)
{
	const char *key, *sep = "";
	json_t *v;

	html(f, "<td role=\"cell\" class=\"list\" data-label=\"%t\"><div>", label);
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		html(f, "%t%t ", sep, key);
		if (json_is_string(v))
			html(f, "<code>%t</code>", json_string_value(v));
		else if (json_is_number(v))
			html(f, "<code>%v</code>", json_number_value(v));
		else
			html(f, "<code>%t</code>",
				json_is_true(v)    ? "on"
				: json_is_false(v) ? "off"
						   : "…");
		sep = ", ";
	}
	fputs("</div></td>", f);
}

void part_runs(FILE *f, const json_t *runs)
{
	const json_t *run;
	size_t i;

	if (!json_array_size(runs))
		return;
	html(f, "<details class=\"runs\"><summary>All %d runs, none left out</summary>\n",
		(int)json_array_size(runs));
	table_begin(f, "Each run with its knobs and counters");
	head(f, "table");
	head(f, "arm");
	head_n(f, "x");
	head_n(f, "pair");
	head(f, "test");
	head_n(f, "seconds");
	head(f, "result");
	head(f, "knobs");
	head(f, "counters");
	body_begin(f);
	json_array_foreach(runs, i, run)
	{
		row_begin(f, "table", get_text(run, "table"));
		cell(f, "arm", get_text(run, "arm"));
		cell_n(f, "x", run, "x");
		cell_n(f, "pair", run, "pair");
		cell(f, "test", get_text(run, "test"));
		cell_n(f, "seconds", run, "seconds");
		run_list(f, "result", json_object_get(run, "result"));
		run_list(f, "knobs", json_object_get(run, "knobs"));
		run_list(f, "counters", json_object_get(run, "counters"));
		fputs("</tr>\n", f);
	}
	table_end(f);
	fputs("</details>\n", f);
}

/* cost model */

void part_terms(FILE *f, const json_t *terms)
{
	const json_t *t;
	size_t i;

	table_begin(f, "The terms, fitted");
	head(f, "term");
	head_n(f, "nanoseconds");
	body_begin(f);
	json_array_foreach(terms, i, t)
	{
		row_begin(f, "term", get_text(t, "name"));
		cell_n(f, "nanoseconds", t, "ns");
		fputs("</tr>\n", f);
	}
	table_end(f);
}

void part_points(FILE *f, const json_t *points)
{
	const json_t *p;
	size_t i;

	if (!json_array_size(points))
		return;
	html(f, "<details><summary>%d predictions</summary>\n", (int)json_array_size(points));
	table_begin(f, "Nanoseconds per packet");
	head(f, "experiment");
	head(f, "arm");
	head_n(f, "x");
	head_n(f, "measured");
	head_n(f, "predicted");
	head_n(f, "predicted : measured");
	body_begin(f);
	json_array_foreach(points, i, p)
	{
		double m = json_number_value(json_object_get(p, "measured_ns"));
		double predicted = json_number_value(json_object_get(p, "predicted_ns"));

		row_begin(f, "experiment", get_text(p, "experiment"));
		cell(f, "arm", get_text(p, "arm"));
		cell_n(f, "x", p, "x");
		cell_n(f, "measured", p, "measured_ns");
		cell_n(f, "predicted", p, "predicted_ns");
		fputs("<td role=\"cell\" class=\"n\" data-label=\"predicted : measured\">", f);
		if (m > 0)
			html(f, "<span class=\"%t\">%r</span>", get_true(p, "ok") ? "good" : "bad",
				predicted / m);
		fputs("</td></tr>\n", f);
	}
	table_end(f);
	fputs("</details>\n", f);
}
