/* SPDX-License-Identifier: BSD-2-Clause */
/* report_get: fields of a checked result file. */
#ifndef APP_REPORT_GET_H
#define APP_REPORT_GET_H

#include <jansson.h>
#include <stdbool.h>

/* "" where there is none. */
static inline const char *get_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static inline bool get_num(const json_t *o, const char *key, double *x)
{
	const json_t *v = json_object_get(o, key);

	*x = json_number_value(v);
	return json_is_number(v);
}

static inline bool get_true(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

#endif
