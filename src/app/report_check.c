/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_check: shapes of the result file, and one walk that holds a value against its shape. Fields
 * that no shape names may be there: a newer weft has more to say.
 */
#include "app/report_check.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum kind { TEXT, NUMBER, BOOL, OBJECT, LIST, BINS, ANY_OBJECT };

#define NULLABLE 1u /* null is an answer, too; so is the field's absence */

struct shape {
	const char *key;
	enum kind kind;
	unsigned flags;
	const struct shape *of; /* OBJECT, LIST: what is in it */
	size_t max;             /* LIST */
};

static const struct shape machine[] = {
	{"cpu", TEXT, 0, NULL, 0},
	{"cores", NUMBER, 0, NULL, 0},
	{"kernel", TEXT, 0, NULL, 0},
	{"placement", TEXT, 0, NULL, 0},
	{"memory", NUMBER, NULLABLE, NULL, 0},
	{NULL},
};
static const struct shape value[] = {
	{"base", NUMBER, NULLABLE, NULL, 0}, {"arm", NUMBER, NULLABLE, NULL, 0}, {NULL}};
static const struct shape ratio[] = {{"median", NUMBER, 0, NULL, 0}, {"low", NUMBER, 0, NULL, 0},
	{"high", NUMBER, 0, NULL, 0}, {NULL}};
static const struct shape published[] = {
	{"ratio", NUMBER, NULLABLE, NULL, 0}, {"text", TEXT, NULLABLE, NULL, 0}, {NULL}};
static const struct shape counter[] = {
	{"name", TEXT, 0, NULL, 0},
	{"arm", TEXT, NULLABLE, NULL, 0},
	{"rule", TEXT, NULLABLE, NULL, 0},
	{"predicted", NUMBER, NULLABLE, NULL, 0},
	{"tolerance", NUMBER, NULLABLE, NULL, 0},
	{"measured", NUMBER, 0, NULL, 0},
	{"ok", BOOL, 0, NULL, 0},
	{NULL},
};
static const struct shape row[] = {
	{"arm", TEXT, 0, NULL, 0},
	{"base", TEXT, NULLABLE, NULL, 0},
	{"x", NUMBER, NULLABLE, NULL, 0},
	{"value", OBJECT, NULLABLE, value, 0},
	{"ratio", OBJECT, NULLABLE, ratio, 0},
	{"published", OBJECT, NULLABLE, published, 0},
	{"counters", LIST, NULLABLE, counter, 256},
	{"verdict", TEXT, 0, NULL, 0},
	{"why", TEXT, NULLABLE, NULL, 0},
	{NULL},
};
static const struct shape table[] = {
	{"id", TEXT, 0, NULL, 0},
	{"title", TEXT, 0, NULL, 0},
	{"x_name", TEXT, NULLABLE, NULL, 0},
	{"unit", TEXT, NULLABLE, NULL, 0},
	{"rows", LIST, 0, row, REPORT_ROWS},
	{NULL},
};
static const struct shape histogram[] = {{"name", TEXT, 0, NULL, 0}, {"arm", TEXT, 0, NULL, 0},
	{"bins", BINS, 0, NULL, 1024}, {NULL}};
static const struct shape run[] = {
	{"table", TEXT, 0, NULL, 0},
	{"arm", TEXT, 0, NULL, 0},
	{"x", NUMBER, NULLABLE, NULL, 0},
	{"pair", NUMBER, NULLABLE, NULL, 0},
	{"test", TEXT, NULLABLE, NULL, 0},
	{"seconds", NUMBER, NULLABLE, NULL, 0},
	{"result", ANY_OBJECT, NULLABLE, NULL, 0},
	{"knobs", ANY_OBJECT, NULLABLE, NULL, 0},
	{"counters", ANY_OBJECT, NULLABLE, NULL, 0},
	{NULL},
};
static const struct shape experiment[] = {
	{"id", TEXT, 0, NULL, 0},
	{"title", TEXT, 0, NULL, 0},
	{"published", TEXT, NULLABLE, NULL, 0},
	{"knobs", ANY_OBJECT, NULLABLE, NULL, 0},
	{"tables", LIST, 0, table, REPORT_TABLES},
	{"histograms", LIST, NULLABLE, histogram, 64},
	{"runs", LIST, NULLABLE, run, REPORT_RUNS},
	{NULL},
};
static const struct shape term[] = {{"name", TEXT, 0, NULL, 0}, {"ns", NUMBER, 0, NULL, 0}, {NULL}};
static const struct shape point[] = {
	{"experiment", TEXT, 0, NULL, 0},
	{"arm", TEXT, 0, NULL, 0},
	{"x", NUMBER, NULLABLE, NULL, 0},
	{"measured_ns", NUMBER, 0, NULL, 0},
	{"predicted_ns", NUMBER, 0, NULL, 0},
	{"ok", BOOL, 0, NULL, 0},
	{NULL},
};
static const struct shape cost_model[] = {
	{"terms", LIST, 0, term, 64},
	{"points", LIST, 0, point, 1024},
	{"note", TEXT, NULLABLE, NULL, 0},
	{NULL},
};
static const struct shape file[] = {
	{"weft", TEXT, 0, NULL, 0},
	{"date", TEXT, 0, NULL, 0},
	{"quick", BOOL, 0, NULL, 0},
	{"peer", TEXT, NULLABLE, NULL, 0},
	{"ok", BOOL, 0, NULL, 0},
	{"machine", OBJECT, 0, machine, 0},
	{"experiments", LIST, 0, experiment, REPORT_EXPERIMENTS},
	{"cost_model", OBJECT, NULLABLE, cost_model, 0},
	{NULL},
};

#define PLACE 160

/* The place of a value: as much of it as there is room for. */
static __attribute__((format(printf, 2, 3))) void put_place(char here[PLACE], const char *form, ...)
{
	va_list ap;

	va_start(ap, form);
	vsnprintf(here, PLACE, form, ap);
	va_end(ap);
}

static const char *kind_name(enum kind kind)
{
	static const char *const names[] = {[TEXT] = "a text",
		[NUMBER] = "a number",
		[BOOL] = "true or false",
		[OBJECT] = "an object",
		[LIST] = "a list",
		[BINS] = "a list of [from, to, count]",
		[ANY_OBJECT] = "an object"};

	return names[kind];
}

static const char *type_name(const json_t *v)
{
	if (!v)
		return "is missing";
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "is an object";
	case JSON_ARRAY:
		return "is a list";
	case JSON_STRING:
		return "is a text";
	case JSON_INTEGER:
	case JSON_REAL:
		return "is a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "is true or false";
	case JSON_NULL:
	default:
		return "is null";
	}
}

static bool is_kind(const json_t *v, enum kind kind)
{
	switch (kind) {
	case TEXT:
		return json_is_string(v);
	case NUMBER:
		return json_is_number(v) && isfinite(json_number_value(v));
	case BOOL:
		return json_is_boolean(v);
	case OBJECT:
	case ANY_OBJECT:
		return json_is_object(v);
	case LIST:
	case BINS:
	default:
		return json_is_array(v);
	}
}

static int check_object(
	const json_t *o, const struct shape *shapes, const char *place, struct err *err);

static int check_bins(const json_t *list, const char *place, struct err *err)
{
	const json_t *bin;
	size_t i;

	json_array_foreach(list, i, bin)
	{
		if (json_array_size(bin) == 3 && json_is_number(json_array_get(bin, 0)) &&
			json_is_number(json_array_get(bin, 1)) &&
			json_is_number(json_array_get(bin, 2)) &&
			json_number_value(json_array_get(bin, 2)) >= 0)
			continue;
		return err_set(
			err, EINVAL, "%s[%zu] is wrong; right is: [from, to, count]", place, i);
	}
	return 0;
}

static int check_list(const json_t *list, const struct shape *s, const char *place, struct err *err)
{
	const json_t *v;
	size_t i;
	int r = 0;

	if (json_array_size(list) > s->max)
		return err_set(err, EINVAL, "%s has %zu entries; right is: at most %zu", place,
			json_array_size(list), s->max);
	if (s->kind == BINS)
		return check_bins(list, place, err);
	json_array_foreach(list, i, v)
	{
		char here[PLACE];

		put_place(here, "%s[%zu]", place, i);
		if (!json_is_object(v))
			return err_set(
				err, EINVAL, "%s %s; right is: an object", here, type_name(v));
		r = check_object(v, s->of, here, err);
		if (r)
			break;
	}
	return r;
}

static int check_object(
	const json_t *o, const struct shape *shapes, const char *place, struct err *err)
{
	for (const struct shape *s = shapes; s->key; s++) {
		const json_t *v = json_object_get(o, s->key);
		char here[PLACE];
		int r = 0;

		put_place(here, "%s%s%s", place, *place ? "." : "", s->key);
		if ((s->flags & NULLABLE) && (!v || json_is_null(v)))
			continue;
		if (!is_kind(v, s->kind))
			return err_set(err, EINVAL, "%s %s; right is: %s", here, type_name(v),
				kind_name(s->kind));
		if (s->kind == OBJECT)
			r = check_object(v, s->of, here, err);
		else if (s->kind == LIST || s->kind == BINS)
			r = check_list(v, s, here, err);
		if (r)
			return r;
	}
	return 0;
}

int report_check(const json_t *root, struct err *err)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *version = json_object_get(root, "version");

	if (!json_is_object(root) || !format || strcmp(format, "weft-tables") != 0)
		return err_set(err, EINVAL,
			"not a result of `weft bench tables --json`: it has no \"format\": "
			"\"weft-tables\"");
	if (!json_is_integer(version) || json_integer_value(version) != 1)
		return err_set(err, EINVAL,
			"version %s of the format; this weft (" WEFT_VERSION ") reads version 1",
			json_is_integer(version) && json_integer_value(version) > 1
				? "is a newer one"
				: "is unknown");
	return check_object(root, file, "", err);
}
