/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables: the engine. All arms of a table run in turn, forwards in even rounds and backwards in odd
 * ones, so that what drifts drifts over all of them; ratios are of runs of the same round.
 */
#include "app/tables.h"
#include "app/tables_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUICK     (32u << 20) /* bytes */
#define FULL_TIME (10 * NSEC_PER_SEC)
#define FULL_WARM (300 * NSEC_PER_MSEC)

/* One table at one value of what is swept. */
struct stage {
	struct tables_config *c;
	const struct tables_table *t;
	double x; /* NAN: no sweep */
	unsigned narm, rounds;
	struct tables_result r[TABLES_ARMS][TABLES_PAIRS];
};

static unsigned arms_of(const struct tables_table *t)
{
	unsigned n = 0;

	while (n < TABLES_ARMS && t->arm[n].name)
		n++;
	return n;
}

static unsigned xs_of(const struct tables_table *t)
{
	unsigned n = 0;

	while (t->x_name && n < TABLES_XS && t->x[n] != 0)
		n++;
	return n ? n : 1;
}

static unsigned arm_find(const struct stage *s, const char *name)
{
	unsigned i = 0;

	while (i < s->narm && strcmp(s->t->arm[i].name, name) != 0)
		i++;
	return i; /* narm: it is not in this form */
}

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *text(const char *s)
{
	return json_string(s ? s : "");
}

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

/* ---- progress ---- */

static void progress(struct tables_progress *p, const char *id, const char *arm, double x)
{
	const nsec_t spent = clock_now() - p->begun;
	const double left =
		p->done ? (double)spent / p->done * (p->all - p->done) / (double)NSEC_PER_SEC : 0;
	char at[32] = "";

	if (!p->to)
		return;
	if (isfinite(x))
		snprintf(at, sizeof(at), " %.0f", x);
	if (p->line)
		fprintf(p->to, "\r\33[K%u of %u runs, about %.0f s left: %s%s %s", p->done + 1,
			p->all, left, id, at, arm);
	else if (p->done % 50 == 0)
		fprintf(p->to, "%u of %u runs, about %.0f s left: %s%s %s\n", p->done + 1, p->all,
			left, id, at, arm);
	fflush(p->to);
}

static void progress_end(const struct tables_progress *p)
{
	if (p->to && p->line)
		fprintf(p->to, "\r\33[K");
}

/* ---- runs ---- */

static json_t *run_json(const struct stage *s, unsigned arm, unsigned round)
{
	const struct tables_result *r = &s->r[arm][round];
	json_t *o = json_object(), *result = json_object(), *counters = json_object();

	set(o, "table", text(s->t->id));
	set(o, "arm", text(s->t->arm[arm].name));
	set(o, "x", number(s->x));
	set(o, "pair", json_integer(round + 1));
	set(o, "seconds", number(r->seconds));
	for (unsigned i = 0; i < TABLES_METRICS_N; i++)
		if (isfinite(r->v[i]))
			set(i <= TABLES_CPU ? result : counters, tables_metric_name(i),
				number(r->v[i]));
	set(o, "result", result);
	set(o, "counters", counters);
	return o;
}

static int run_one(struct stage *s, unsigned arm, unsigned round, json_t *runs, struct err *err)
{
	struct tables_config *c = s->c;
	const unsigned weight = s->t->weight ? s->t->weight : 10;
	struct tables_run run = {
		.words = {s->t->words, s->t->arm[arm].words, NULL}, .cwd = c->cwd, .net = c->net};
	char x[64];
	int rc;

	if (c->quick) {
		run.count = c->count ? c->count : QUICK;
	} else {
		run.time = (c->time ? c->time : FULL_TIME) * weight / 10;
		run.warm = run.time / 5 < FULL_WARM ? run.time / 5 : FULL_WARM;
	}
	if (s->t->x_name) {
		snprintf(x, sizeof(x), "%s=%.0f", s->t->x_key, s->x);
		run.words[2] = x;
	}
	progress(&c->progress, s->t->id, s->t->arm[arm].name, s->x);
	rc = tables_run(&run, &s->r[arm][round], err);
	c->progress.done++;
	if (rc)
		return err_set(
			err, -rc, "tables: %s, %s: %s", s->t->id, s->t->arm[arm].name, err->text);
	json_array_append_new(runs, run_json(s, arm, round));
	return 0;
}

static int run_all(struct stage *s, json_t *runs, struct err *err)
{
	int rc = 0;

	for (unsigned round = 0; round < s->rounds; round++)
		for (unsigned i = 0; i < s->narm && !rc; i++)
			rc = run_one(s, round % 2 ? s->narm - 1 - i : i, round, runs, err);
	return rc;
}

/* ---- what they say ---- */

static double stage_median(const struct stage *s, unsigned arm, enum tables_metric m)
{
	double v[TABLES_PAIRS];

	for (unsigned i = 0; i < s->rounds; i++)
		v[i] = s->r[arm][i].v[m];
	return tables_median(v, s->rounds);
}

static bool counter_holds(const struct tables_counter *n, double predicted, double measured)
{
	const double room = fabs(predicted) * n->tolerance + 1e-9;

	if (!isfinite(measured))
		return false;
	if (n->rule == TABLES_AT_MOST)
		return measured <= predicted + room;
	if (n->rule == TABLES_AT_LEAST)
		return measured >= predicted - room;
	return fabs(measured - predicted) <= room;
}

/* NULL: nothing is predicted for this arm at this x. */
static json_t *counter_json(const struct stage *s, const struct tables_counter *n, bool *ok)
{
	static const char *const rules[] = {"equal", "at most", "at least"};
	const unsigned arm = arm_find(s, n->arm);
	double predicted = n->predicted, measured, v[TABLES_PAIRS];
	json_t *o;

	if (arm == s->narm)
		return NULL;
	if (n->predict) {
		for (unsigned i = 0; i < s->rounds; i++)
			v[i] = n->predict(&s->r[arm][i], s->x);
		predicted = tables_median(v, s->rounds);
		if (!isfinite(predicted))
			return NULL;
	}
	measured = stage_median(s, arm, n->metric);
	*ok = counter_holds(n, predicted, measured);
	o = json_object();
	set(o, "name", text(tables_metric_text(n->metric)));
	set(o, "arm", text(n->arm));
	set(o, "rule", text(rules[n->rule]));
	set(o, "predicted", number(predicted));
	set(o, "tolerance", number(n->tolerance));
	set(o, "measured", number(measured));
	set(o, "ok", json_boolean(*ok));
	return o;
}

/* Those of both arms of the row. */
static json_t *counters_json(
	const struct stage *s, const struct tables_row *row, bool *counted, bool *held)
{
	json_t *list = json_array(), *o;
	const struct tables_counter *n = s->t->counter;
	bool ok;

	*counted = false;
	*held = true;
	for (; n < s->t->counter + TABLES_COUNTERS && n->arm; n++) {
		if (strcmp(n->arm, row->arm) != 0 && (!row->base || strcmp(n->arm, row->base) != 0))
			continue;
		o = counter_json(s, n, &ok);
		if (!o)
			continue;
		*counted = true;
		*held = *held && ok;
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *published_json(const struct tables_row *row)
{
	char digits[32];
	json_t *o;

	if (row->published == 0 && !row->faster)
		return json_null();
	o = json_object();
	snprintf(digits, sizeof(digits), "%.3f", row->published);
	set(o, "ratio", row->published != 0 ? number(row->published) : json_null());
	set(o, "text", text(row->faster ? "faster" : *row->text ? row->text : digits));
	return o;
}

/* What was published at this x. */
static struct tables_row row_at(const struct stage *s, const struct tables_row *row)
{
	struct tables_row r = *row;

	for (unsigned i = 0; isfinite(s->x) && i < TABLES_XS; i++)
		if (s->t->x[i] == s->x && r.at_x[i] != 0)
			r.published = r.at_x[i];
	return r;
}

static json_t *ratio_json(const struct tables_ratio *r)
{
	json_t *o = json_object();

	set(o, "median", number(r->median));
	set(o, "low", number(r->low));
	set(o, "high", number(r->high));
	return o;
}

/* Of work per second, whatever the table is judged by. */
static enum tables_metric wall_of(enum tables_metric m)
{
	return m >= TABLES_MBIT_CPU && m <= TABLES_PPS_CPU
		       ? (enum tables_metric)(m - TABLES_MBIT_CPU + TABLES_MBIT)
		       : m;
}

static struct tables_ratio stage_ratio(
	const struct stage *s, unsigned arm, unsigned base, enum tables_metric m)
{
	double a[TABLES_PAIRS], b[TABLES_PAIRS];

	for (unsigned i = 0; i < s->rounds; i++) {
		a[i] = s->r[arm][i].v[m];
		b[i] = s->r[base][i].v[m];
	}
	return tables_ratio(a, b, s->rounds);
}

/* NULL: an arm is not in this form. */
static json_t *row_json(const struct stage *s, const struct tables_row *row, bool *ok)
{
	const unsigned arm = arm_find(s, row->arm), base = arm_find(s, row->base);
	struct tables_ratio ratio, wall;
	bool counted, held;
	char why[400];
	json_t *o, *value;

	if (arm == s->narm || base == s->narm)
		return NULL;
	ratio = stage_ratio(s, arm, base, s->t->value);
	wall = stage_ratio(s, arm, base, wall_of(s->t->value));
	o = json_object();
	value = json_object();
	set(o, "arm", text(row->arm));
	set(o, "base", text(row->base));
	set(o, "x", number(s->x));
	set(value, "base", number(stage_median(s, base, s->t->value)));
	set(value, "arm", number(stage_median(s, arm, s->t->value)));
	set(o, "value", value);
	set(o, "ratio", s->c->quick ? json_null() : ratio_json(&ratio));
	set(o, "wall_ratio", s->c->quick ? json_null() : ratio_json(&wall));
	set(o, "published", published_json(row));
	set(o, "null_control", json_boolean(row->null));
	set(o, "counters", counters_json(s, row, &counted, &held));
	set(o, "verdict",
		text(tables_verdict(row, &ratio, counted, held, s->c->quick, why, sizeof(why))));
	if (row->why && !s->c->quick) {
		const size_t at = strlen(why);

		snprintf(why + at, sizeof(why) - at, "%s%s", at ? "; " : "", row->why);
	}
	set(o, "why", text(why));
	*ok = *ok && held;
	return o;
}

/* ---- a table ---- */

static void units_json(const struct stage *s, json_t *list)
{
	for (unsigned arm = 0; arm < s->narm; arm++) {
		json_t *o, *bins = json_array();
		uint64_t sum = 0;

		for (unsigned i = 0; i < TCP_UNITS; i++) {
			uint64_t n = 0;

			for (unsigned round = 0; round < s->rounds; round++)
				n += s->r[arm][round].units[i];
			sum += n;
			if (n)
				json_array_append_new(bins,
					json_pack("[I,I,I]", (json_int_t)(i ? 1u << (i - 1) : 0),
						(json_int_t)((1u << i) - 1), (json_int_t)n));
		}
		if (!sum || isfinite(s->x)) {
			json_decref(bins);
			continue;
		}
		o = json_object();
		set(o, "name", text("unit size"));
		set(o, "table", text(s->t->id));
		set(o, "arm", text(s->t->arm[arm].name));
		set(o, "bins", bins);
		json_array_append_new(list, o);
	}
}

static json_t *table_json(const struct tables_table *t)
{
	json_t *o = json_object(), *arms = json_object();

	set(o, "id", text(t->id));
	set(o, "title", text(t->title));
	set(o, "x_name", t->x_name ? text(t->x_name) : json_null());
	set(o, "unit", text(tables_metric_text(t->value)));
	set(o, "words", text(t->words));
	for (unsigned i = 0; i < arms_of(t); i++)
		set(arms, t->arm[i].name, text(t->arm[i].words));
	set(o, "arms", arms);
	set(o, "rows", json_array());
	return o;
}

/* Arms that belong to the full form only come last. */
static unsigned arms_now(const struct tables_config *c, const struct tables_table *t)
{
	unsigned n = 0;

	while (n < arms_of(t) && !(c->quick && t->arm[n].apart))
		n++;
	return n;
}

static void cost_collect(const struct stage *s, const char *id)
{
	for (unsigned arm = 0; s->c->cost && s->t->cost && arm < s->narm; arm++) {
		struct tables_result r = s->r[arm][0];

		for (unsigned m = 0; m < TABLES_METRICS_N; m++)
			r.v[m] = stage_median(s, arm, (enum tables_metric)m);
		cost_add(s->c->cost, id, s->t->arm[arm].name, s->x, &r,
			s->t->cost == TABLES_COST_FIT);
	}
}

static int table_measure(struct tables_config *c, const struct tables_table *t, json_t *table,
	json_t *experiment, bool *ok, struct err *err)
{
	struct stage *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return err_set(err, ENOMEM, "no memory");
	*s = (struct stage){
		.c = c, .t = t, .narm = arms_now(c, t), .rounds = c->quick ? 1 : c->pairs};
	for (unsigned i = 0; i < xs_of(t) && !rc; i++) {
		s->x = t->x_name ? t->x[i] : NAN;
		rc = run_all(s, json_object_get(experiment, "runs"), err);
		for (unsigned k = 0; !rc && k < TABLES_ROWS && t->row[k].arm; k++) {
			const struct tables_row at = row_at(s, &t->row[k]);
			json_t *row = row_json(s, &at, ok);

			if (row)
				json_array_append_new(json_object_get(table, "rows"), row);
		}
		if (!rc)
			cost_collect(s, json_string_value(json_object_get(experiment, "id")));
		if (!rc)
			units_json(s, json_object_get(experiment, "histograms"));
	}
	free(s);
	return rc;
}

/* ---- experiments ---- */

/* The words that arms differ in, and those that all have. */
static void knob_add(json_t *knobs, const char *words)
{
	const char *at = words;

	while (at && *at) {
		const size_t n = strcspn(at, ","), k = strcspn(at, "=");
		char key[64], value[200];
		json_t *list;
		size_t i;

		snprintf(key, sizeof(key), "%.*s", (int)k, at);
		snprintf(value, sizeof(value), "%.*s", (int)(n > k ? n - k - 1 : 0), at + k + 1);
		list = json_object_get(knobs, key);
		if (!list) {
			set(knobs, key, json_array());
			list = json_object_get(knobs, key);
		}
		for (i = 0; i < json_array_size(list); i++)
			if (!strcmp(json_string_value(json_array_get(list, i)), value))
				break;
		if (i == json_array_size(list))
			json_array_append_new(list, text(value));
		at += n;
		at += *at == ',';
	}
}

static json_t *experiment_json(const struct tables_experiment *e)
{
	json_t *o = json_object(), *knobs = json_object();

	set(o, "id", text(e->id));
	set(o, "title", text(e->title));
	set(o, "published", text(e->published));
	set(o, "note", text(e->note));
	for (const struct tables_table *t = e->table; t->id; t++) {
		knob_add(knobs, t->words);
		for (unsigned i = 0; i < arms_of(t); i++)
			knob_add(knobs, t->arm[i].words);
	}
	set(o, "knobs", knobs);
	set(o, "tables", json_array());
	set(o, "histograms", json_array());
	set(o, "runs", json_array());
	return o;
}

static bool in_form(const struct tables_config *c, const struct tables_table *t)
{
	return !(c->quick && t->full);
}

static bool wanted(const struct tables_config *c, const struct tables_experiment *e)
{
	const struct tables_table *t = e->table;
	bool any = false;

	while (t->id && !in_form(c, t))
		t++;
	if (!t->id)
		return false;

	for (unsigned i = 0; c->only && c->only[i]; i++) {
		any = true;
		if (!strcmp(c->only[i], e->id))
			return true;
	}
	return !any;
}

static unsigned runs_of(const struct tables_config *c)
{
	unsigned n = 0;

	for (unsigned i = 0; tables_all[i]; i++) {
		if (!wanted(c, tables_all[i]))
			continue;
		for (const struct tables_table *t = tables_all[i]->table; t->id; t++)
			if (in_form(c, t))
				n += arms_now(c, t) * xs_of(t) * (c->quick ? 1 : c->pairs);
	}
	return n;
}

static int experiment_measure(struct tables_config *c, const struct tables_experiment *e, json_t *o,
	bool *ok, struct err *err)
{
	int rc = 0;

	if (c->out)
		fprintf(c->out, "\n%s  %s\n    published: %s\n%s%s%s", e->id, e->title,
			e->published, e->note ? "    " : "", e->note ? e->note : "",
			e->note ? "\n" : "");
	for (const struct tables_table *t = e->table; t->id && !rc; t++) {
		json_t *table;

		if (!in_form(c, t))
			continue;
		table = table_json(t);
		json_array_append_new(json_object_get(o, "tables"), table);
		rc = table_measure(c, t, table, o, ok, err);
		progress_end(&c->progress);
		if (!rc && c->out) {
			tables_text(c->out, table);
			fflush(c->out);
		}
	}
	return rc;
}

int tables_measure(struct tables_config *c, json_t **out, bool *ok, struct err *err)
{
	json_t *o = json_object(), *list = json_array();
	int rc = 0;

	*ok = true;
	c->progress.begun = clock_now();
	c->progress.done = 0;
	c->progress.all = runs_of(c);
	set(o, "experiments", list);
	for (unsigned i = 0; tables_all[i] && !rc; i++) {
		json_t *e;

		if (!wanted(c, tables_all[i]))
			continue;
		e = experiment_json(tables_all[i]);
		json_array_append_new(list, e);
		rc = experiment_measure(c, tables_all[i], e, ok, err);
	}
	if (!rc && c->cost && cost_fit(c->cost)) {
		json_t *cost = cost_json(c->cost);

		set(o, "cost_model", cost);
		if (c->out)
			cost_text(c->out, cost);
	}
	if (rc) {
		json_decref(o);
		o = NULL;
	}
	*out = o;
	return rc;
}
