/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_cost: what a packet costs, as a sum: so much for it, for each receive buffer, fragment,
 * descriptor, descriptor table, byte, and for a copy and its chunks and bytes. Fitted from runs of made
 * packets (least squares of relative errors), and held against other runs: sizes and arms of S1 and S3.
 */
#include "app/tables_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR  0.15
#define RIDGE 1e-6 /* keeps what no run tells at 0 */

static const char *const names[COST_TERMS] = {"per packet", "per receive buffer", "per fragment",
	"per descriptor", "per descriptor table", "per KiB", "per packet copied",
	"per chunk of a copy", "per KiB copied"};

static double or0(double x)
{
	return isfinite(x) ? x : 0;
}

void cost_add(struct cost *c, const char *experiment, const char *arm, double size,
	const struct tables_result *r, bool fit)
{
	const bool copied = isfinite(r->v[TABLES_COPY_CHUNKS]);
	struct cost_point *p = &c->point[c->n];

	if (c->n == COST_POINTS || !isfinite(size) || !isfinite(r->v[TABLES_NS]))
		return;
	c->n++;
	*p = (struct cost_point){.experiment = experiment,
		.arm = arm,
		.size = size,
		.ns = r->v[TABLES_NS],
		.fit = fit,
		.f = {1, isfinite(r->v[TABLES_RX_BUFS]) ? r->v[TABLES_RX_BUFS] : 1,
			or0(r->v[TABLES_RX_FRAGS]), or0(r->v[TABLES_TX_DESC]),
			or0(r->v[TABLES_TX_TABLES]), size / 1024, copied,
			or0(r->v[TABLES_COPY_CHUNKS]), copied ? size / 1024 : 0}};
}

/* Gauss, with the largest pivot; a is n rows of n + 1. */
static void solve(double a[COST_TERMS][COST_TERMS + 1], double *x)
{
	const unsigned n = COST_TERMS;

	for (unsigned i = 0; i < n; i++) {
		unsigned top = i;

		for (unsigned k = i + 1; k < n; k++)
			if (fabs(a[k][i]) > fabs(a[top][i]))
				top = k;
		for (unsigned j = 0; j <= n; j++) {
			const double t = a[i][j];

			a[i][j] = a[top][j];
			a[top][j] = t;
		}
		for (unsigned k = i + 1; k < n; k++) {
			const double by = a[k][i] / a[i][i];

			for (unsigned j = i; j <= n; j++)
				a[k][j] -= by * a[i][j];
		}
	}
	for (unsigned i = n; i-- > 0;) {
		x[i] = a[i][n];
		for (unsigned j = i + 1; j < n; j++)
			x[i] -= a[i][j] * x[j];
		x[i] /= a[i][i];
	}
}

/* A term cannot be negative: the most negative one is left out, and all is solved again. */
bool cost_fit(struct cost *c)
{
	bool out[COST_TERMS] = {false};
	unsigned points = 0;

	for (unsigned i = 0; i < c->n; i++)
		points += c->point[i].fit;
	if (points < 2 * COST_TERMS)
		return false;
	for (unsigned turn = 0; turn < COST_TERMS; turn++) {
		double a[COST_TERMS][COST_TERMS + 1] = {{0}};
		unsigned worst = COST_TERMS;

		for (unsigned i = 0; i < c->n; i++) {
			const struct cost_point *p = &c->point[i];

			for (unsigned j = 0; p->fit && j < COST_TERMS; j++) {
				const double fj = out[j] ? 0 : p->f[j] / p->ns;

				for (unsigned k = 0; k < COST_TERMS; k++)
					a[j][k] += fj * (out[k] ? 0 : p->f[k] / p->ns);
				a[j][COST_TERMS] += fj;
			}
		}
		for (unsigned j = 0; j < COST_TERMS; j++)
			a[j][j] += out[j] ? 1 : RIDGE * a[j][j] + 1e-12;
		solve(a, c->term);
		for (unsigned j = 0; j < COST_TERMS; j++)
			if (c->term[j] < 0 && (worst == COST_TERMS || c->term[j] < c->term[worst]))
				worst = j;
		if (worst == COST_TERMS)
			return true;
		out[worst] = true;
	}
	return false;
}

double cost_of(const struct cost *c, const struct cost_point *p)
{
	double ns = 0;

	for (unsigned j = 0; j < COST_TERMS; j++)
		ns += c->term[j] * p->f[j];
	return ns;
}

/* What the sum does not know, in words: where it is wrong, and which way. */
static void note(const struct cost *c, char *text, size_t size)
{
	const struct cost_point *worst = NULL;
	unsigned held = 0, far = 0, high = 0, big = 0;

	for (unsigned i = 0; i < c->n; i++) {
		const struct cost_point *p = &c->point[i];
		const double off = cost_of(c, p) / p->ns - 1;

		if (p->fit)
			continue;
		held++;
		if (fabs(off) <= NEAR)
			continue;
		far++;
		high += off > 0;
		big += p->size > 16384;
		if (!worst || fabs(off) > fabs(cost_of(c, worst) / worst->ns - 1))
			worst = p;
	}
	*text = 0;
	if (!worst)
		return;
	snprintf(text, size,
		"%u of %u runs are more than 15 %% off, %u of them above 16 KiB, the sum is too "
		"high in "
		"%u; the farthest is %s, %s, at %.0f bytes, by %.0f %%. %s",
		far, held, big, high, worst->experiment, worst->arm, worst->size,
		(cost_of(c, worst) / worst->ns - 1) * 100,
		2 * big > far
			? "What is missing is a term for the cache: a byte has one price, and "
			  "big packets lie farther away."
			: "No term of the sum explains it.");
}

json_t *cost_json(const struct cost *c)
{
	json_t *o = json_object(), *terms = json_array(), *points = json_array();
	char text[600];

	for (unsigned j = 0; j < COST_TERMS; j++)
		json_array_append_new(
			terms, json_pack("{s:s, s:f}", "name", names[j], "ns", c->term[j]));
	for (unsigned i = 0; i < c->n; i++) {
		const struct cost_point *p = &c->point[i];
		const double ns = cost_of(c, p);

		json_array_append_new(
			points, json_pack("{s:s, s:s, s:f, s:f, s:f, s:b, s:b}", "experiment",
					p->experiment, "arm", p->arm, "x", p->size, "measured_ns",
					p->ns, "predicted_ns", ns, "fitted", p->fit, "ok",
					fabs(ns / p->ns - 1) <= NEAR));
	}
	note(c, text, sizeof(text));
	json_object_set_new(o, "terms", terms);
	json_object_set_new(o, "points", points);
	json_object_set_new(o, "note", json_string(text));
	return o;
}

void cost_text(FILE *f, const json_t *o)
{
	json_t *t, *p;
	unsigned good = 0, n = 0;
	size_t i;

	fprintf(f, "\nCOST  a packet as a sum, ns of CPU:");
	json_array_foreach(json_object_get(o, "terms"), i, t) fprintf(f, "%s %s %.1f", i ? "," : "",
		json_string_value(json_object_get(t, "name")),
		json_real_value(json_object_get(t, "ns")));
	fputc('\n', f);
	json_array_foreach(json_object_get(o, "points"), i, p)
	{
		if (json_is_true(json_object_get(p, "fitted")))
			continue;
		n++;
		good += json_is_true(json_object_get(p, "ok"));
		fprintf(f, "  %-4s %-14s %6.0f bytes  measured %7.0f  predicted %7.0f  %+4.0f %%\n",
			json_string_value(json_object_get(p, "experiment")),
			json_string_value(json_object_get(p, "arm")),
			json_real_value(json_object_get(p, "x")),
			json_real_value(json_object_get(p, "measured_ns")),
			json_real_value(json_object_get(p, "predicted_ns")),
			(json_real_value(json_object_get(p, "predicted_ns")) /
					json_real_value(json_object_get(p, "measured_ns")) -
				1) *
				100);
	}
	fprintf(f, "  within 15 %%: %u of %u\n", good, n);
	if (*json_string_value(json_object_get(o, "note")))
		fprintf(f, "  %s\n", json_string_value(json_object_get(o, "note")));
}

/* ---- what it is fitted from ---- */

static const struct tables_table fit[] = {
	{
		.id = "COST.fit",
		.title = "made packets, from which the sum is fitted",
		.words = "test=PKTGEN",
		.value = TABLES_PPS_CPU,
		.weight = 3,
		.x_name = "bytes",
		.x_key = "size",
		.x = {64, 200, 600, 1514, 3000, 6000, 12000, 24000, 48000},
		.full = true,
		.cost = TABLES_COST_FIT,
		.arm = {{"pages", "rxbuf=page,coalesce=off", false},
			{"1536", "rxbuf=mtu+hdr,coalesce=off", false},
			{"1536, joined", "rxbuf=mtu+hdr,coalesce=on", false},
			{"apart", "rxbuf=page,inline=off,indirect=always", false},
			{"pieces", "rxbuf=page,order=0", false},
			{"copied in pages", "copy=on+order=0+pages=2015", false},
			{"copied in 32 KiB", "copy=on+order=3+pages=2015", false}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_cost = {
	.id = "COST",
	.title = "What a packet costs, as a sum",
	.published = "nothing",
	.table = fit,
};
