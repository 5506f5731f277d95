/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_page: the page, from top to bottom. It has no script and fetches nothing, and says so to the
 * browser (Content-Security-Policy): should a text ever become markup, it could still do nothing.
 */
#include "app/report_page.h"

#include <stdbool.h>
#include <string.h>

#include "app/report_get.h"
#include "app/report_out.h"
#include "app/report_part.h"
#include "app/report_plot.h"
#include "app/report_svg.h"

static const char style[] =
#include "app/report_css.inc"
	;

/* verdicts */

struct tally {
	unsigned published, reproduced, direction, not_reproduced, controls, controls_fail;
	unsigned counters, missed;
};

static void tally_row(struct tally *t, const json_t *row)
{
	const char *v = get_text(row, "verdict");
	const json_t *c;
	size_t i;

	t->reproduced += !strcmp(v, "reproduced");
	t->direction += !strcmp(v, "direction only");
	t->not_reproduced += !strcmp(v, "not reproduced");
	t->controls += !strncmp(v, "null control", 12);
	t->controls_fail += !strcmp(v, "null control fails");
	json_array_foreach(json_object_get(row, "counters"), i, c)
	{
		t->counters++;
		t->missed += !get_true(c, "ok");
	}
}

static struct tally tally_of(const json_t *experiment)
{
	struct tally t = {0};
	const json_t *table, *row;
	size_t i, k;

	json_array_foreach(json_object_get(experiment, "tables"), i, table)
	{
		json_array_foreach(json_object_get(table, "rows"), k, row) tally_row(&t, row);
	}
	t.published = t.reproduced + t.direction + t.not_reproduced;
	return t;
}

static struct tally tally_all(const json_t *root)
{
	struct tally sum = {0};
	const json_t *e;
	size_t i;

	json_array_foreach(json_object_get(root, "experiments"), i, e)
	{
		struct tally t = tally_of(e);

		sum.published += t.published;
		sum.reproduced += t.reproduced;
		sum.direction += t.direction;
		sum.not_reproduced += t.not_reproduced;
		sum.controls += t.controls;
		sum.controls_fail += t.controls_fail;
		sum.counters += t.counters;
		sum.missed += t.missed;
	}
	return sum;
}

/* head */

static void lead(FILE *f, const json_t *root)
{
	struct tally t = tally_all(root);

	fputs("<p class=\"lead\">", f);
	if (t.published)
		html(f,
			"Of %d comparisons with a published figure, %d came out as published, %d "
			"in "
			"direction only, and %d did not. ",
			(int)t.published, (int)t.reproduced, (int)t.direction,
			(int)t.not_reproduced);
	if (t.controls && t.controls_fail)
		html(f,
			"%d of %d null controls moved, which the mechanism cannot have moved: take "
			"that as the noise. ",
			(int)t.controls_fail, (int)t.controls);
	else if (t.controls)
		html(f, "All %d null controls stayed at 1 within the noise. ", (int)t.controls);
	if (t.counters && t.missed)
		html(f,
			"<span class=\"state bad\">%d of %d counters missed their "
			"prediction.</span>",
			(int)t.missed, (int)t.counters);
	else if (t.counters)
		html(f,
			"<span class=\"state good\">All %d counters are as they were "
			"predicted.</span>",
			(int)t.counters);
	fputs("</p>\n", f);
	if (get_true(root, "quick"))
		fputs("<p>This was a quick run: verdicts come from the counters alone; its ratios "
		      "are a hint.</p>\n",
			f);
	if (!get_true(root, "ok"))
		fputs("<p class=\"state bad\">The run counts as failed: something that must hold "
		      "did not.</p>\n",
			f);
}

static void facts(FILE *f, const json_t *root)
{
	const json_t *m = json_object_get(root, "machine");
	double memory;

	fputs("<dl class=\"facts\" id=\"machine\">\n", f);
	html(f, "<dt>Machine</dt><dd>%t, %d cores", get_text(m, "cpu"),
		(int)json_number_value(json_object_get(m, "cores")));
	if (get_num(m, "memory", &memory))
		html(f, ", %v GiB", (double)(long)(memory / (1 << 30) + 0.5));
	html(f, "</dd>\n<dt>Kernel</dt><dd>%t</dd>\n<dt>Placement</dt><dd>%t</dd>\n",
		get_text(m, "kernel"), get_text(m, "placement"));
	if (*get_text(root, "peer"))
		html(f, "<dt>Peer</dt><dd><code>--peer %t</code></dd>\n", get_text(root, "peer"));
	html(f, "<dt>Measured</dt><dd>%t, weft %t</dd>\n</dl>\n", get_text(root, "date"),
		get_text(root, "weft"));
}

static void contents(FILE *f, const json_t *root)
{
	const json_t *e;
	size_t i;

	fputs("<nav aria-label=\"Contents\"><ol>\n", f);
	json_array_foreach(json_object_get(root, "experiments"), i, e)
	{
		struct tally t = tally_of(e);

		html(f,
			"<li><a href=\"#e%d\"><span class=\"id\">%t</span><span "
			"class=\"name\">%t</span>"
			"<span class=\"tally\">",
			(int)i, get_text(e, "id"), get_text(e, "title"));
		if (t.published)
			html(f, "%d of %d reproduced, ", (int)t.reproduced, (int)t.published);
		html(f, "%d of %d counters hold</span></a></li>\n", (int)(t.counters - t.missed),
			(int)t.counters);
	}
	if (json_is_object(json_object_get(root, "cost_model")))
		fputs("<li><a href=\"#cost\"><span class=\"id\">ns</span><span class=\"name\">"
		      "The cost model</span></a></li>\n",
			f);
	fputs("</ol></nav>\n", f);
}

static void reading(FILE *f)
{
	fputs("<details id=\"reading\"><summary>How to read this</summary>\n"
	      "<p>An <em>arm</em> differs from its <em>base</em> in one knob. Both are run in "
	      "pairs, one "
	      "after the other and in turns; a <em>ratio</em> is the median over the pairs, with "
	      "the "
	      "interval in which it lies. It stands beside the ratio that was published for this "
	      "mechanism, on other machines and long ago: what should agree is the direction, and "
	      "what "
	      "the counters say.</p>\n"
	      "<p>A <em>counter</em> was predicted before the run, from how the mechanism works. "
	      "It must "
	      "move as predicted, whatever the throughput does. A <em>null control</em> is a "
	      "workload "
	      "that the mechanism cannot touch: how far its ratio is from 1 is the noise of this "
	      "machine.</p></details>\n",
		f);
}

static void page_head(FILE *f, const json_t *root)
{
	html(f,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"generator\" content=\"weft %t\">\n"
		"<title>Five mechanisms, measured %t</title>\n<style>\n",
		WEFT_VERSION, get_text(root, "date"));
	fputs(style, f);
	fputs("</style>\n</head>\n<body>\n<div class=\"page\">\n<header>\n"
	      "<p class=\"kicker\">weft bench tables</p>\n<h1>Mechanisms of virtio-net, "
	      "measured</h1>\n",
		f);
	lead(f, root);
	facts(f, root);
	fputs("</header>\n", f);
	contents(f, root);
	reading(f);
}

/* sections */

static int section(struct figures *fig, const json_t *e, unsigned i, struct err *err)
{
	FILE *f = fig->page;
	const json_t *table;
	size_t k;
	int r = 0;

	html(f, "<section id=\"e%d\" aria-labelledby=\"e%d-h\">\n", (int)i, (int)i);
	html(f, "<h2 id=\"e%d-h\"><span class=\"id\">%t</span>%t</h2>\n", (int)i, get_text(e, "id"),
		get_text(e, "title"));
	if (*get_text(e, "published"))
		html(f,
			"<blockquote><p>%t</p><span class=\"from\">what was "
			"published</span></blockquote>\n",
			get_text(e, "published"));
	part_knobs(f, json_object_get(e, "knobs"));
	json_array_foreach(json_object_get(e, "tables"), k, table)
	{
		part_table(f, table);
		r = *get_text(table, "x_name") ? plot_sweep(fig, table, err)
					       : plot_ratios(fig, table, err);
		if (r)
			return r;
		part_counters(f, table);
	}
	r = plot_histograms(fig, json_object_get(e, "histograms"), err);
	part_runs(f, json_object_get(e, "runs"));
	fputs("</section>\n", f);
	return r;
}

static int cost_section(struct figures *fig, const json_t *model, struct err *err)
{
	FILE *f = fig->page;
	int r;

	if (!json_is_object(model))
		return 0;
	fputs("<section id=\"cost\" aria-labelledby=\"cost-h\">\n<h2 id=\"cost-h\">The cost "
	      "model</h2>\n<p>A packet's time as a sum of terms that small benchmarks gave; what "
	      "it predicts for the arms above should be within 15 percent of what was measured "
	      "there.</p>\n",
		f);
	if (*get_text(model, "note"))
		html(f, "<p class=\"note\"><strong>Missing term:</strong> %t</p>\n",
			get_text(model, "note"));
	part_terms(f, json_object_get(model, "terms"));
	r = plot_costs(fig, json_object_get(model, "points"), err);
	part_points(f, json_object_get(model, "points"));
	fputs("</section>\n", f);
	return r;
}

/* A quick run has none. */
static bool has_ratios(const json_t *experiments)
{
	const json_t *e, *table, *row;
	size_t i, k, m;

	json_array_foreach(experiments, i, e)
	{
		json_array_foreach(json_object_get(e, "tables"), k, table)
		{
			json_array_foreach(json_object_get(table, "rows"), m, row)
			{
				if (json_is_object(json_object_get(row, "ratio")))
					return true;
			}
		}
	}
	return false;
}

static int overview(struct figures *fig, const json_t *list, struct err *err)
{
	int r;

	if (!has_ratios(list))
		return 0;
	fputs("<section id=\"overview\" aria-labelledby=\"overview-h\">\n"
	      "<h2 id=\"overview-h\">All ratios at a glance</h2>\n",
		fig->page);
	r = plot_overview(fig, list, err);
	fputs("</section>\n", fig->page);
	return r;
}

int report_page(FILE *f, const json_t *root, struct err *err)
{
	const json_t *list = json_object_get(root, "experiments"), *e;
	struct figures fig = {.page = f};
	size_t i;
	int r = svg_gnuplot_check(err);

	if (r)
		return r;
	page_head(f, root);
	fputs("<main>\n", f);
	r = overview(&fig, list, err);
	json_array_foreach(list, i, e)
	{
		if (r)
			return r;
		r = section(&fig, e, (unsigned)i, err);
	}
	if (!r)
		r = cost_section(&fig, json_object_get(root, "cost_model"), err);
	html(f,
		"</main>\n<footer>Made by <code>weft report</code>, version %t, from a file of "
		"<code>weft bench tables --json</code>.</footer>\n</div>\n</body>\n</html>\n",
		WEFT_VERSION);
	return r;
}
