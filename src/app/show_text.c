/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_text: columns as wide as their longest cell; numbers to the right.
 */
#include "app/show_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLS_MAX 12

struct table {
	unsigned ncols, nrows;
	char *(*cell)[COLS_MAX];
};

/* One more row from `ncols` strings. A table that finds no memory stays short; show is not worth
 * dying. */
static void table_row(struct table *t, ...)
{
	char *(*grown)[COLS_MAX] = realloc(t->cell, (t->nrows + 1) * sizeof(*grown));
	va_list ap;

	if (!grown)
		return;
	t->cell = grown;
	va_start(ap, t);
	for (unsigned c = 0; c < t->ncols; c++)
		t->cell[t->nrows][c] = strdup(va_arg(ap, const char *));
	va_end(ap);
	t->nrows++;
}

static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789.KMGTP") == strlen(s);
}

static void table_print(FILE *f, struct table *t)
{
	unsigned width[COLS_MAX] = {0};

	for (unsigned r = 0; r < t->nrows; r++) {
		for (unsigned c = 0; c < t->ncols; c++) {
			unsigned len = t->cell[r][c] ? (unsigned)strlen(t->cell[r][c]) : 0;

			if (len > width[c])
				width[c] = len;
		}
	}
	for (unsigned r = 0; r < t->nrows; r++) {
		for (unsigned c = 0; c < t->ncols; c++) {
			const char *s = t->cell[r][c] ? t->cell[r][c] : "";
			int w = (int)width[c];

			/* a heading stands over its column as the column's first number does */
			if (is_number(s) || (r == 0 && t->nrows > 1 && t->cell[1][c] &&
						    is_number(t->cell[1][c])))
				fprintf(f, "%*s", w, s);
			else if (c + 1 < t->ncols)
				fprintf(f, "%-*s", w, s);
			else
				fprintf(f, "%s", s);
			fputs(c + 1 < t->ncols ? "  " : "\n", f);
		}
	}
}

static void table_free(struct table *t)
{
	for (unsigned r = 0; r < t->nrows; r++) {
		for (unsigned c = 0; c < t->ncols; c++)
			free(t->cell[r][c]);
	}
	free(t->cell);
}

static const char *get_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static unsigned long long get_num(const json_t *o, const char *key)
{
	return (unsigned long long)json_integer_value(json_object_get(o, key));
}

char *show_text_count(unsigned long long n, char text[16])
{
	static const char unit[] = "KMGTPE";
	double x = (double)n;
	int u = -1;

	if (n < 100000) {
		snprintf(text, 16, "%llu", n);
		return text;
	}
	do {
		x /= 1000;
		u++;
	} while (x >= 1000 && u < 5);
	snprintf(text, 16, x < 100 ? "%.1f%c" : "%.0f%c", x, unit[u]);
	return text;
}

static char *text_number(char text[24], unsigned long long n)
{
	snprintf(text, 24, "%llu", n);
	return text;
}

/* "csum tso4 tso6": what the driver takes unfitted */
static char *accepts_text(const json_t *port, char *text, size_t size)
{
	const json_t *list = json_object_get(port, "accepts");
	size_t n = json_array_size(list), at = 0;

	snprintf(text, size, "-");
	for (size_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "+" : "",
			json_string_value(json_array_get(list, i)));
	return text;
}

/* Of a tap that has several: "t0: queues 2: in 10 12, out 9 14". */
static void queues_print(FILE *f, const json_t *port)
{
	const json_t *list = json_object_get(port, "queues"), *o;
	size_t i;
	char n[16];

	if (json_array_size(list) < 2)
		return;
	fprintf(f, "%s: queues %zu: in", get_text(port, "name"), json_array_size(list));
	json_array_foreach(list, i, o)
		fprintf(f, " %s", show_text_count(get_num(o, "frames_in"), n));
	fprintf(f, ", out");
	json_array_foreach(list, i, o)
		fprintf(f, " %s", show_text_count(get_num(o, "frames_out"), n));
	fputs("\n", f);
}

void show_text_ports(FILE *f, json_t *list, bool verbose)
{
	struct table t = {.ncols = 10};
	const json_t *o;
	size_t i;

	table_row(&t, "NAME", "KIND", "LINK", "MAC", "MTU", "TAKES", "FRAMES-IN", "BYTES-IN",
		"FRAMES-OUT", "BYTES-OUT");
	json_array_foreach(list, i, o)
	{
		char n[5][24], takes[64];

		table_row(&t, get_text(o, "name"), get_text(o, "kind"),
			json_is_true(json_object_get(o, "link")) ? "up" : "down",
			*get_text(o, "mac") ? get_text(o, "mac") : "-",
			get_num(o, "mtu") ? text_number(n[0], get_num(o, "mtu")) : "-",
			accepts_text(o, takes, sizeof(takes)),
			show_text_count(get_num(o, "frames_in"), n[1]),
			show_text_count(get_num(o, "bytes_in"), n[2]),
			show_text_count(get_num(o, "frames_out"), n[3]),
			show_text_count(get_num(o, "bytes_out"), n[4]));
	}
	table_print(f, &t);
	table_free(&t);
	json_array_foreach(list, i, o)
	{
		const char *where = get_text(o, "socket");

		if (!*where)
			where = get_text(o, "interface");
		if (verbose)
			fprintf(f, "%s: %s\n", get_text(o, "name"), where);
		if (*get_text(o, "missing"))
			fprintf(f, "%s: %s%s%s\n", get_text(o, "name"), get_text(o, "missing"),
				*get_text(o, "last_end") ? "; last session ended: " : "",
				get_text(o, "last_end"));
		if (json_is_true(json_object_get(o, "awaited")))
			fprintf(f,
				"%s: a second front-end waits for its turn: one port takes one "
				"guest\n",
				get_text(o, "name"));
		if (*get_text(o, "broken"))
			fprintf(f, "%s: broken: %s\n", get_text(o, "name"), get_text(o, "broken"));
		if (verbose && *get_text(o, "features"))
			fprintf(f, "%s: features %s\n", get_text(o, "name"),
				get_text(o, "features"));
		if (verbose)
			queues_print(f, o);
	}
}

void show_text_fdb(FILE *f, json_t *list, bool verbose)
{
	struct table t = {.ncols = 4};
	const json_t *o;
	size_t i;

	(void)verbose;
	table_row(&t, "MAC", "VLAN", "PORT", "AGE");
	json_array_foreach(list, i, o)
	{
		char vlan[24], age[24];

		table_row(&t, get_text(o, "mac"), text_number(vlan, get_num(o, "vlan")),
			get_text(o, "port"), text_number(age, get_num(o, "age_sec")));
	}
	table_print(f, &t);
	table_free(&t);
}

static void drops_rows(struct table *t, const json_t *port, const char *dir)
{
	const char *reason;
	json_t *n;

	json_object_foreach(json_object_get(port, dir), reason, n)
	{
		char text[24];

		table_row(t, get_text(port, "name"), dir, reason,
			text_number(text, (unsigned long long)json_integer_value(n)));
	}
}

void show_text_drops(FILE *f, json_t *list, bool verbose)
{
	struct table t = {.ncols = 4};
	const json_t *o;
	size_t i;

	(void)verbose;
	table_row(&t, "PORT", "DIRECTION", "REASON", "FRAMES");
	json_array_foreach(list, i, o)
	{
		drops_rows(&t, o, "in");
		drops_rows(&t, o, "out");
	}
	if (t.nrows > 1)
		table_print(f, &t);
	else
		fputs("none\n", f);
	table_free(&t);
}

static void stats_row(struct table *t, const json_t *port, const char *dir)
{
	const json_t *c = json_object_get(port, dir);
	bool out = !strcmp(dir, "out");
	char n[9][24];

	snprintf(n[2], 24, "%.0f", json_real_value(json_object_get(c, "bytes_per_frame")));
	snprintf(n[4], 24, "%.2f", json_real_value(json_object_get(c, "buffers_per_packet")));
	table_row(t, get_text(port, "name"), dir, show_text_count(get_num(c, "frames"), n[0]),
		show_text_count(get_num(c, "bytes"), n[1]), n[2],
		show_text_count(get_num(c, "gso"), n[3]), n[4],
		show_text_count(get_num(c, "notifications"), n[5]),
		show_text_count(get_num(c, "kicks"), n[6]),
		out ? show_text_count(get_num(port, "fit_csum"), n[7]) : "",
		out ? show_text_count(get_num(port, "fit_segments"), n[8]) : "");
}

void show_text_stats(FILE *f, json_t *list, bool verbose)
{
	struct table t = {.ncols = 11};
	const json_t *o;
	size_t i;

	(void)verbose;
	table_row(&t, "PORT", "DIR", "FRAMES", "BYTES", "BYTES/FRAME", "GSO", "BUFFERS/FRAME",
		"NOTIFICATIONS", "KICKS", "FIT-CSUM", "FIT-SEGMENTS");
	json_array_foreach(list, i, o)
	{
		stats_row(&t, o, "in");
		stats_row(&t, o, "out");
	}
	table_print(f, &t);
	table_free(&t);
}

void show_text_object(FILE *f, json_t *o, bool verbose)
{
	struct table t = {.ncols = 2};
	const char *key;
	json_t *v;

	(void)verbose;
	json_object_foreach(o, key, v)
	{
		char text[64] = "";

		if (json_is_real(v))
			snprintf(text, sizeof(text), "%.3f", json_real_value(v));
		else if (json_is_integer(v))
			text_number(text, (unsigned long long)json_integer_value(v));
		table_row(&t, key, json_is_string(v) ? json_string_value(v) : text);
	}
	table_print(f, &t);
	table_free(&t);
}
