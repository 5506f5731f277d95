/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_plot: one function a kind of figure. Colours are numbers that the page gives a meaning, in
 * light and in dark: 1 axes, 2 grid, 3 measured, 4 published or predicted, 5 the base, 6 a miss,
 * 7 and 8 further series, 9 the line of "no effect".
 */
#include "app/report_plot.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "app/report_get.h"
#include "app/report_out.h"
#include "app/report_svg.h"

#define FOREST_MAX 200 /* rows of one figure */

int plot_begin(struct plot *p, unsigned width, unsigned height, struct err *err)
{
	*p = (struct plot){0};
	p->f = open_memstream(&p->text, &p->len);
	if (!p->f)
		return err_set(err, ENOMEM, "no memory");
	fprintf(p->f,
		"set terminal svg size %u,%u font 'sans,13' noenhanced linewidth 1.2\n"
		"set encoding utf8\n"
		"set border 3 lw 0.8 lc rgb '#010101'\n"
		"set tics nomirror out scale 0.5\n"
		"set grid lw 0.6 lt 1 lc rgb '#020202'\n"
		"set key at screen 0.99,screen 0.985 right top horizontal Left reverse samplen 2 "
		"maxrows 1\n"
		"set tmargin 3\nset tics textcolor rgb '#010101'\n",
		width, height);
	return 0;
}

int plot_end(
	struct plot *p, struct figures *fig, const char *title, const char *desc, struct err *err)
{
	char *svg = NULL;
	int r;

	fclose(p->f);
	r = svg_draw(p->text, p->len, &svg, err);
	free(p->text);
	if (r)
		return r;
	fig->n++;
	html(fig->page, "<figure class=\"plot\" id=\"figure-%d\"><div class=\"wide\">\n",
		(int)fig->n);
	svg_embed(fig->page, svg, fig->n, title, desc);
	html(fig->page, "</div><figcaption>%t. %t</figcaption></figure>\n", title, desc);
	free(svg);
	return 0;
}

/* Marks of an axis of ratios: round numbers, at most nine of them, the 1 among them. */
static void ratio_tics(FILE *f, double low, double high)
{
	static const double steps[] = {.005, .01, .02, .05, .1, .2, .25, .5, 1, 2, 5, 10, 20, 50};
	double step = steps[0], last = 0;
	const char *sep = "";
	long n;

	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		step = steps[i];
		if ((high - low) / step < 9)
			break;
	}
	fputs("set xtics (", f);
	for (n = lround(ceil(low / step)); (double)n * step <= high; n++) {
		double at = (double)n * step;

		if (at <= 0 || (last > 0 && at > 1 && log(at / last) < log(high / low) / 14))
			continue;
		fprintf(f, "%s'%g' %.9g", sep, at, at);
		sep = ", ";
		last = at;
	}
	if (step > 1)
		fprintf(f, "%s'1' 1", sep);
	fputs(")\n", f);
}

/* ratios, one row each */

struct forest {
	unsigned n;
	struct forest_row {
		char label[200];
		double median, low, high, published; /* 0: none */
	} row[FOREST_MAX];
};

static bool drawable(double ratio)
{
	return ratio > 0.01 && ratio < 100;
}

static void forest_add(struct forest *t, const char *id, const json_t *row)
{
	const json_t *ratio = json_object_get(row, "ratio");
	struct forest_row *r = &t->row[t->n];
	double p;

	if (t->n == FOREST_MAX || !get_num(ratio, "median", &r->median) || !drawable(r->median))
		return;
	if (!get_num(ratio, "low", &r->low) || !drawable(r->low))
		r->low = r->median;
	if (!get_num(ratio, "high", &r->high) || !drawable(r->high))
		r->high = r->median;
	r->published =
		get_num(json_object_get(row, "published"), "ratio", &p) && drawable(p) ? p : 0;
	if (id)
		snprintf(r->label, sizeof(r->label), "%s  %s%s%s", id, get_text(row, "arm"),
			*get_text(row, "base") ? " : " : "", get_text(row, "base"));
	else
		snprintf(r->label, sizeof(r->label), "%s%s%s", get_text(row, "arm"),
			*get_text(row, "base") ? " : " : "", get_text(row, "base"));
	t->n++;
}

static void forest_range(const struct forest *t, double *low, double *high)
{
	*low = 0.95;
	*high = 1.05;
	for (unsigned i = 0; i < t->n; i++) {
		const struct forest_row *r = &t->row[i];
		double p = r->published ? r->published : 1;

		*low = fmin(*low, fmin(r->low, p));
		*high = fmax(*high, fmax(r->high, p));
	}
	*low *= 0.98;
	*high *= 1.02;
}

static bool forest_data(FILE *f, const struct forest *t)
{
	bool published = false;

	fputs("$m << EOD\n", f);
	for (unsigned i = 0; i < t->n; i++)
		fprintf(f, "%.6g %u %.6g %.6g\n", t->row[i].median, t->n - 1 - i, t->row[i].low,
			t->row[i].high);
	fputs("EOD\n$p << EOD\n", f);
	for (unsigned i = 0; i < t->n; i++) {
		if (!t->row[i].published)
			continue;
		fprintf(f, "%.6g %u\n", t->row[i].published, t->n - 1 - i);
		published = true;
	}
	fputs("EOD\n", f);
	return published;
}

static int forest_draw(struct figures *fig, const struct forest *t, const char *title,
	const char *desc, struct err *err)
{
	double low, high;
	struct plot p;
	bool published;
	int r;

	if (!t->n)
		return 0;
	r = plot_begin(&p, PLOT_WIDTH, 96 + 30 * t->n, err);
	if (r)
		return r;
	forest_range(t, &low, &high);
	fprintf(p.f, "set logscale x\nset xrange [%.6g:%.6g]\n", low, high);
	ratio_tics(p.f, low, high);
	fprintf(p.f, "set yrange [-0.6:%g]\nset grid noytics\nset border 1\nset ytics scale 0 (",
		t->n - 0.4);
	for (unsigned i = 0; i < t->n; i++) {
		fputs(i ? ", " : "", p.f);
		plot_text(p.f, t->row[i].label, 40);
		fprintf(p.f, " %u", t->n - 1 - i);
	}
	fputs(")\nset xlabel 'ratio to the base'\n"
	      "set arrow 1 from 1,graph 0 to 1,graph 1 nohead lw 1.2 lc rgb '#090909'\n",
		p.f);
	published = forest_data(p.f, t);
	fputs("plot $m using 1:2:3:4 with xerrorbars pt 7 ps 0.8 lw 1.6 lc rgb '#030303' "
	      "title 'measured, with its interval'",
		p.f);
	if (published)
		fputs(", $p using 1:2 with points pt 12 ps 1.3 lw 2 lc rgb '#040404' title "
		      "'published'",
			p.f);
	fputc('\n', p.f);
	return plot_end(&p, fig, title, desc, err);
}

static void forest_table(struct forest *t, const char *id, const json_t *table)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(table, "rows"), i, row) forest_add(t, id, row);
}

int plot_overview(struct figures *fig, const json_t *experiments, struct err *err)
{
	struct forest *t = calloc(1, sizeof(*t));
	const json_t *e, *table;
	size_t i, k;
	int r;

	if (!t)
		return err_set(err, ENOMEM, "no memory");
	json_array_foreach(experiments, i, e)
	{
		json_array_foreach(json_object_get(e, "tables"), k, table)
		{
			if (!*get_text(table, "x_name"))
				forest_table(t, get_text(table, "id"), table);
		}
	}
	r = forest_draw(fig, t, "Every ratio, beside the published one",
		"A dot is the median of the paired runs and its bar the interval; a diamond is "
		"what was published; the line at 1 is no effect.",
		err);
	free(t);
	return r;
}

int plot_ratios(struct figures *fig, const json_t *table, struct err *err)
{
	struct forest *t = calloc(1, sizeof(*t));
	char title[256];
	int r;

	if (!t)
		return err_set(err, ENOMEM, "no memory");
	forest_table(t, NULL, table);
	snprintf(title, sizeof(title), "Ratios, %s", get_text(table, "title"));
	r = forest_draw(fig, t, title, "Arm to base; medians of pairs with their intervals.", err);
	free(t);
	return r;
}

/* distributions */

static double bins_sum(const json_t *bins)
{
	const json_t *b;
	double sum = 0;
	size_t i;

	json_array_foreach(bins, i, b) sum += json_number_value(json_array_get(b, 2));
	return sum;
}

static bool same_bins(const json_t *a, const json_t *b)
{
	const json_t *bin;
	size_t i;

	if (json_array_size(a) != json_array_size(b))
		return false;
	json_array_foreach(a, i, bin)
	{
		const json_t *other = json_array_get(b, i);

		if (json_number_value(json_array_get(bin, 0)) !=
				json_number_value(json_array_get(other, 0)) ||
			json_number_value(json_array_get(bin, 1)) !=
				json_number_value(json_array_get(other, 1)))
			return false;
	}
	return true;
}

/* Those from `first` on that can stand beside it: the same name and the same bins. */
static unsigned histogram_group(
	const json_t *list, size_t first, const json_t *group[PLOT_SERIES], bool *done)
{
	const json_t *h = json_array_get(list, first), *other;
	unsigned n = 0;

	for (size_t i = first; i < json_array_size(list) && n < PLOT_SERIES; i++) {
		other = json_array_get(list, i);
		if (done[i] || strcmp(get_text(h, "name"), get_text(other, "name")) != 0 ||
			!same_bins(json_object_get(h, "bins"), json_object_get(other, "bins")))
			continue;
		done[i] = true;
		group[n++] = other;
	}
	return n;
}

static void histogram_data(FILE *f, const json_t *const *group, unsigned n)
{
	const json_t *bins = json_object_get(group[0], "bins"), *bin;
	size_t i;

	fputs("$d << EOD\n", f);
	json_array_foreach(bins, i, bin)
	{
		fprintf(f, "%.0f-%.0f", json_number_value(json_array_get(bin, 0)),
			json_number_value(json_array_get(bin, 1)));
		for (unsigned k = 0; k < n; k++) {
			const json_t *b = json_object_get(group[k], "bins");
			double sum = bins_sum(b);

			fprintf(f, " %.4g",
				sum > 0 ? 100 *
						  json_number_value(
							  json_array_get(json_array_get(b, i), 2)) /
						  sum
					: 0.0);
		}
		fputc('\n', f);
	}
	fputs("EOD\n", f);
}

static int histogram_draw(
	struct figures *fig, const json_t *const *group, unsigned n, struct err *err)
{
	static const unsigned colour[PLOT_SERIES] = {5, 3, 7, 8, 4, 6};
	size_t bins = json_array_size(json_object_get(group[0], "bins"));
	char title[256];
	struct plot p;
	int r;

	if (!bins)
		return 0;
	r = plot_begin(&p, PLOT_WIDTH, 300, err);
	if (r)
		return r;
	histogram_data(p.f, group, n);
	fprintf(p.f,
		"set style data histogram\nset style histogram clustered gap 1\n"
		"set style fill solid 1 noborder\nset boxwidth 0.92\nset grid noxtics\n"
		"set yrange [*<0:*]\nset ylabel 'share of all (%%)'\nset xtics scale 0%s\nplot ",
		bins > 6 ? " rotate by -35" : "");
	for (unsigned k = 0; k < n; k++) {
		fprintf(p.f, "%s$d using %u:xtic(1) lc rgb '#0%u0%u0%u' title ", k ? ", " : "",
			k + 2, colour[k], colour[k], colour[k]);
		plot_text(p.f, get_text(group[k], "arm"), 40);
	}
	fputc('\n', p.f);
	snprintf(title, sizeof(title), "Distribution: %s", get_text(group[0], "name"));
	return plot_end(&p, fig, title, "How often each size came, in percent of all.", err);
}

int plot_histograms(struct figures *fig, const json_t *list, struct err *err)
{
	bool done[64] = {false};
	const json_t *group[PLOT_SERIES];
	int r = 0;

	for (size_t i = 0; !r && i < json_array_size(list) && i < 64; i++) {
		unsigned n = done[i] ? 0 : histogram_group(list, i, group, done);

		if (n)
			r = histogram_draw(fig, group, n, err);
	}
	return r;
}

/* the cost model */

static void cost_label(FILE *f, const json_t *point)
{
	char text[200], number[REPORT_NUMBER];
	double x;

	if (get_num(point, "x", &x))
		snprintf(text, sizeof(text), "%s  %s, %s", get_text(point, "experiment"),
			get_text(point, "arm"), report_number(x, number));
	else
		snprintf(text, sizeof(text), "%s  %s", get_text(point, "experiment"),
			get_text(point, "arm"));
	plot_text(f, text, 44);
}

/* Points that the model hits, or that it misses: how many. */
static unsigned cost_data(FILE *f, const char *name, const json_t *points, bool ok, unsigned n)
{
	const json_t *p;
	unsigned found = 0;
	size_t i;

	fprintf(f, "$%s << EOD\n", name);
	json_array_foreach(points, i, p)
	{
		if (i >= n || json_is_true(json_object_get(p, "ok")) != ok)
			continue;
		fprintf(f, "%.6g %zu %.6g\n", json_number_value(json_object_get(p, "measured_ns")),
			n - 1 - i, json_number_value(json_object_get(p, "predicted_ns")));
		found++;
	}
	fputs("EOD\n", f);
	return found;
}

static void cost_axes(FILE *f, const json_t *points, unsigned n)
{
	double low = 1e30, high = 0;
	const json_t *p;
	size_t i;

	fprintf(f, "set yrange [-0.6:%g]\nset grid noytics\nset border 1\nset ytics scale 0 (",
		n - 0.4);
	json_array_foreach(points, i, p)
	{
		double m = json_number_value(json_object_get(p, "measured_ns"));

		if (i >= n)
			break;
		low = fmin(low, m);
		high = fmax(high, m);
		fputs(i ? ", " : "", f);
		cost_label(f, p);
		fprintf(f, " %zu", n - 1 - i);
	}
	fputs(")\nset xlabel 'nanoseconds per packet'\n", f);
	if (low > 0 && high / low > 8)
		fputs("set logscale x\n", f);
	else
		fputs("set xrange [*<0:*]\n", f);
}

int plot_costs(struct figures *fig, const json_t *points, struct err *err)
{
	unsigned n = (unsigned)json_array_size(points), hits, misses;
	struct plot p;
	int r;

	if (!n)
		return 0;
	if (n > FOREST_MAX)
		n = FOREST_MAX;
	r = plot_begin(&p, PLOT_WIDTH, 96 + 28 * n, err);
	if (r)
		return r;
	cost_axes(p.f, points, n);
	hits = cost_data(p.f, "hit", points, true, n);
	misses = cost_data(p.f, "miss", points, false, n);
	fputs("plot ", p.f);
	for (unsigned i = 0; i < 2; i++) {
		if (i ? misses : hits)
			fprintf(p.f,
				"$%s using 3:2:(0.85*$3):(1.15*$3) with xerrorbars pt 12 ps 1.1 lw "
				"1.6 lc rgb '#040404' %s, ",
				i ? "miss" : "hit",
				i && hits ? "notitle" : "title 'predicted, and 15 % around it'");
	}
	if (hits)
		fputs("$hit using 1:2 with points pt 7 ps 0.8 lc rgb '#030303' title 'measured'",
			p.f);
	if (misses)
		fprintf(p.f,
			"%s$miss using 1:2 with points pt 7 ps 0.8 lc rgb '#060606' title "
			"'measured, beyond 15 %%'",
			hits ? ", " : "");
	fputc('\n', p.f);
	return plot_end(&p, fig, "Nanoseconds per packet and the cost model",
		"A diamond is what the fitted terms add up to, its bar 15 percent around it; a dot "
		"is what was measured.",
		err);
}
