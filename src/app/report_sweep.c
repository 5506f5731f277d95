/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_sweep: figures over x. Rows are sorted into series by name first; then every kind of figure
 * is the same: data blocks, one for each series, and what to draw them with.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/report_get.h"
#include "app/report_out.h"
#include "app/report_plot.h"

#define POINTS       4096
#define COUNTER_FIGS 3

struct point {
	double x, y, low, high;
};

struct series {
	const char *name; /* the file's */
	unsigned colour, n;
	struct point *p;
};

struct sweep {
	unsigned n;
	struct series s[PLOT_SERIES];
};

static struct sweep *sweep_new(struct err *err)
{
	struct sweep *w = calloc(1, sizeof(*w));

	for (unsigned i = 0; w && i < PLOT_SERIES; i++) {
		w->s[i].p = calloc(POINTS, sizeof(struct point));
		if (!w->s[i].p) {
			while (i)
				free(w->s[--i].p);
			free(w);
			w = NULL;
		}
	}
	if (!w)
		err_set(err, ENOMEM, "no memory");
	return w;
}

static void sweep_free(struct sweep *w)
{
	for (unsigned i = 0; w && i < PLOT_SERIES; i++)
		free(w->s[i].p);
	free(w);
}

static void sweep_add(struct sweep *w, const char *name, unsigned colour, struct point p)
{
	struct series *s;
	unsigned i;

	for (i = 0; i < w->n && strcmp(w->s[i].name, name) != 0; i++)
		;
	if (i == PLOT_SERIES)
		return;
	s = &w->s[i];
	if (i == w->n) {
		*s = (struct series){name, colour, 0, s->p};
		w->n++;
	}
	for (unsigned k = 0; k < s->n; k++) {
		if (s->p[k].x == p.x) /* the base of several arms is one point */
			return;
	}
	if (s->n < POINTS)
		s->p[s->n++] = p;
}

static int by_x(const void *a, const void *b)
{
	double x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;

	return (x > y) - (x < y);
}

static bool sweep_data(FILE *f, struct sweep *w, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (unsigned i = 0; i < w->n; i++) {
		struct series *s = &w->s[i];

		qsort(s->p, s->n, sizeof(*s->p), by_x);
		fprintf(f, "$s%u << EOD\n", i);
		for (unsigned k = 0; k < s->n; k++) {
			fprintf(f, "%.9g %.9g %.9g %.9g\n", s->p[k].x, s->p[k].y, s->p[k].low,
				s->p[k].high);
			*low = fmin(*low, s->p[k].x);
			*high = fmax(*high, s->p[k].x);
		}
		fputs("EOD\n", f);
	}
	return w->n > 0;
}

/* Every x that is in it, marked, if they are few: those too near to the last one are left out. */
static void x_tics(FILE *f, const struct sweep *w, double low, double high, bool logs)
{
	double all = logs ? log(high / low) : high - low, last = -INFINITY;
	const char *sep = "";

	fputs("set xtics (", f);
	for (unsigned k = 0; k < w->s[0].n; k++) {
		double x = w->s[0].p[k].x, at = logs ? log(x) : x;
		char text[REPORT_NUMBER];

		if (at - last < all / 11)
			continue;
		fprintf(f, "%s'%s' %.9g", sep, report_number(x, text), x);
		sep = ", ";
		last = at;
	}
	fputs(")\n", f);
}

static void x_axis(FILE *f, const struct sweep *w, const char *name, double low, double high)
{
	bool logs = low > 0 && high / low > 8;
	double pad = logs ? pow(high / low, 0.04) : (high - low) * 0.04;

	if (high > low) {
		if (logs)
			fprintf(f, "set logscale x\nset xrange [%.9g:%.9g]\n", low / pad,
				high * pad);
		else
			fprintf(f, "set xrange [%.9g:%.9g]\n", low - pad, high + pad);
		x_tics(f, w, low, high, logs);
	}
	fputs("set xlabel ", f);
	plot_text(f, name, 60);
	fputc('\n', f);
}

/* The same for every figure over x; `style` is gnuplot's, with columns. */
static int sweep_draw(struct figures *fig, struct sweep *w, const json_t *table, const char *y_name,
	const char *more, const char *style, const char *title, const char *desc, struct err *err)
{
	double low, high;
	struct plot p;
	int r = w->n ? plot_begin(&p, 560, 340, err) : 0;

	if (r || !w->n)
		return r;
	sweep_data(p.f, w, &low, &high);
	x_axis(p.f, w, get_text(table, "x_name"), low, high);
	fputs("set ylabel ", p.f);
	plot_text(p.f, y_name, 40);
	fprintf(p.f, "\n%splot ", more);
	for (unsigned i = 0; i < w->n; i++) {
		const struct series *s = &w->s[i];

		fprintf(p.f, "%s$s%u %s lw 1.8 ps %g lc rgb '#0%u0%u0%u' title ", i ? ", " : "", i,
			s->colour == 4 ? "using 1:2 with points pt 12" : style,
			s->colour == 4 ? 1.3 : 0.6, s->colour, s->colour, s->colour);
		plot_text(p.f, s->name, 40);
	}
	fputc('\n', p.f);
	return plot_end(&p, fig, title, desc, err);
}

static unsigned arm_colour(const struct sweep *w)
{
	static const unsigned colour[PLOT_SERIES] = {3, 7, 8, 6, 5, 3};
	unsigned n = 0;

	for (unsigned i = 0; i < w->n; i++)
		n += w->s[i].colour != 5;
	return colour[n];
}

static int sweep_values(struct figures *fig, const json_t *table, struct err *err)
{
	struct sweep *w = sweep_new(err);
	const json_t *row;
	char title[256];
	size_t i;
	int r;

	if (!w)
		return -ENOMEM;
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		const json_t *v = json_object_get(row, "value");
		struct point p = {0};

		if (!get_num(row, "x", &p.x))
			continue;
		if (get_num(v, "base", &p.y))
			sweep_add(w, *get_text(row, "base") ? get_text(row, "base") : "base", 5, p);
		if (get_num(v, "arm", &p.y))
			sweep_add(w, get_text(row, "arm"), arm_colour(w), p);
	}
	snprintf(title, sizeof(title), "Throughput, %s", get_text(table, "title"));
	r = sweep_draw(fig, w, table, get_text(table, "unit"),
		"set yrange [*<0:*]\nset format y '%.10g'\n", "using 1:2 with linespoints pt 7",
		title, "Medians of each arm.", err);
	sweep_free(w);
	return r;
}

static int sweep_ratios(struct figures *fig, const json_t *table, struct err *err)
{
	struct sweep *w = sweep_new(err);
	const json_t *row;
	char title[256];
	size_t i;
	int r;

	if (!w)
		return -ENOMEM;
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		const json_t *ratio = json_object_get(row, "ratio");
		struct point p;

		if (!get_num(row, "x", &p.x))
			continue;
		if (get_num(ratio, "median", &p.y) && get_num(ratio, "low", &p.low) &&
			get_num(ratio, "high", &p.high))
			sweep_add(w, get_text(row, "arm"), arm_colour(w), p);
	}
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		struct point p = {0};

		if (w->n && get_num(row, "x", &p.x) &&
			get_num(json_object_get(row, "published"), "ratio", &p.y))
			sweep_add(w, "published", 4, p);
	}
	snprintf(title, sizeof(title), "Ratios, %s", get_text(table, "title"));
	r = sweep_draw(fig, w, table, "ratio to the base",
		"set arrow 1 from graph 0,first 1 to graph 1,first 1 nohead lw 1.2 lc rgb "
		"'#090909'\nset offsets 0, 0, graph 0.1, graph 0.1\n",
		"using 1:2:3:4 with yerrorlines pt 7", title,
		"Medians of pairs with their intervals, and what was published, where it was.",
		err);
	sweep_free(w);
	return r;
}

static int sweep_counter(
	struct figures *fig, const json_t *table, const char *name, struct err *err)
{
	struct sweep *w = sweep_new(err);
	const json_t *row, *c;
	char title[256];
	size_t i, k;
	int r;

	if (!w)
		return -ENOMEM;
	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		json_array_foreach(json_object_get(row, "counters"), k, c)
		{
			const char *arm = get_text(c, "arm");
			struct point p = {0};

			if (strcmp(get_text(c, "name"), name) != 0 || !get_num(row, "x", &p.x))
				continue;
			get_num(c, "measured", &p.y);
			sweep_add(w, *arm ? arm : get_text(row, "arm"),
				!strcmp(arm, get_text(row, "base")) ? 5 : arm_colour(w), p);
		}
	}
	snprintf(title, sizeof(title), "%s, %s", name, get_text(table, "title"));
	r = sweep_draw(fig, w, table, name, "set yrange [*<0:*]\nset offsets 0, 0, graph 0.1, 0\n",
		"using 1:2 with linespoints pt 7", title, "As the counters have it.", err);
	sweep_free(w);
	return r;
}

/* Names of counters, in the order they come. */
static unsigned counter_names(const json_t *table, const char *names[COUNTER_FIGS])
{
	const json_t *row, *c;
	unsigned n = 0, m;
	size_t i, k;

	json_array_foreach(json_object_get(table, "rows"), i, row)
	{
		json_array_foreach(json_object_get(row, "counters"), k, c)
		{
			for (m = 0; m < n && strcmp(names[m], get_text(c, "name")) != 0; m++)
				;
			if (m == n && n < COUNTER_FIGS)
				names[n++] = get_text(c, "name");
		}
	}
	return n;
}

int plot_sweep(struct figures *fig, const json_t *table, struct err *err)
{
	const char *names[COUNTER_FIGS];
	unsigned n = counter_names(table, names);
	int r;

	fputs("<div class=\"figures\">\n", fig->page);
	r = sweep_ratios(fig, table, err);
	if (!r)
		r = sweep_values(fig, table, err);
	for (unsigned i = 0; !r && i < n; i++)
		r = sweep_counter(fig, table, names[i], err);
	fputs("</div>\n", fig->page);
	return r;
}
