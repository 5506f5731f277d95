/* SPDX-License-Identifier: BSD-2-Clause */
/* tables_cost: the sum that a packet costs: points from runs, the fit, what it predicts. */
#ifndef APP_TABLES_COST_H
#define APP_TABLES_COST_H

#include "app/tables.h"

#define COST_TERMS  9
#define COST_POINTS 256

struct cost_point {
	const char *experiment, *arm;
	double size, ns;
	double f[COST_TERMS]; /* how many of each term */
	bool fit;             /* else it is predicted */
};

struct cost {
	unsigned n;
	struct cost_point point[COST_POINTS];
	double term[COST_TERMS]; /* ns */
};

/* The names are kept by reference. */
void cost_add(struct cost *, const char *experiment, const char *arm, double size,
	const struct tables_result *, bool fit);
bool cost_fit(struct cost *); /* false: too few points */
double cost_of(const struct cost *, const struct cost_point *);
json_t *cost_json(const struct cost *);
void cost_text(FILE *, const json_t *);

#endif
