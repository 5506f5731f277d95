/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_plot: the figures of the report: from parts of a checked result file to scripts for gnuplot,
 * and into the page as <figure>. Scripts hold numbers and quoted titles only (plot_text).
 *
 * A figure that there is nothing to draw for is left out: 0. An error of gnuplot's ends the report.
 */
#ifndef APP_REPORT_PLOT_H
#define APP_REPORT_PLOT_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

struct figures {
	FILE *page;
	unsigned n; /* drawn so far */
};

/*
 * A script under construction: plot_begin, then commands into f, then plot_end draws it and puts it
 * into the page, or fails; both ways it is gone.
 */
struct plot {
	FILE *f;
	char *text;
	size_t len;
};
#define PLOT_WIDTH  680
#define PLOT_SERIES 6
int plot_begin(struct plot *, unsigned width, unsigned height, struct err *);
int plot_end(struct plot *, struct figures *, const char *title, const char *desc, struct err *);

/* Every ratio of the file beside the published one. */
int plot_overview(struct figures *, const json_t *experiments, struct err *);
/* The ratios of one table, a row each. */
int plot_ratios(struct figures *, const json_t *table, struct err *);
/* A table that is a sweep: values, ratios and counters over x (report_sweep.c). */
int plot_sweep(struct figures *, const json_t *table, struct err *);
/* Distributions: those of one name in one figure. */
int plot_histograms(struct figures *, const json_t *histograms, struct err *);
/* Nanoseconds per packet, measured and as the cost model has them. */
int plot_costs(struct figures *, const json_t *points, struct err *);

#endif
