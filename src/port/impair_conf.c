/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair_conf: the words of a bad network, from one table.
 */
#include "port/impair.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT 4096
#define LIMIT_MAX     65536

struct unit {
	const char *name;
	double factor;
};

/* "12.5ms": a number and one of the units, into `to`; false: it is neither. */
static bool number(const char *text, const struct unit *units, double max, double *to)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || !isdigit((unsigned char)*text) || !(v >= 0))
		return false;
	for (; units->name; units++) {
		if (strcmp(units->name, end) != 0)
			continue;
		*to = v * units->factor;
		return *to <= max;
	}
	return false;
}

static const struct unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit percents[] = {{"%", 1e4}, {NULL, 0}};
static const struct unit counts[] = {{"", 1}, {NULL, 0}};
static const struct unit rates[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
static const struct unit sizes[] = {{"K", 1024}, {"M", 1048576}, {NULL, 0}};

static bool set_time(nsec_t *to, const char *v)
{
	double d;

	if (!number(v, times, 3600e9, &d))
		return false;
	*to = (nsec_t)d;
	return true;
}

static bool set_chance(uint32_t *to, const char *v)
{
	double d;

	if (!number(v, percents, 1e6, &d))
		return false;
	*to = (uint32_t)(d + 0.5);
	return true;
}

static bool set_delay(struct impair_rules *r, const char *v)
{
	return set_time(&r->delay, v);
}

static bool set_jitter(struct impair_rules *r, const char *v)
{
	return set_time(&r->jitter, v);
}

/* 1% | every:10 | burst:1%:25% | at:3:7:9 */
static bool set_loss(struct impair_rules *r, const char *v)
{
	char first[16];
	double d;

	if (!strncmp(v, "every:", 6)) {
		if (!number(v + 6, counts, 1e9, &d) || d < 1)
			return false;
		r->loss_every = (uint32_t)d;
		return true;
	}
	if (!strncmp(v, "burst:", 6)) {
		size_t n = strcspn(v + 6, ":");

		if (n >= sizeof(first) || !v[6 + n])
			return false;
		memcpy(first, v + 6, n);
		first[n] = 0;
		return set_chance(&r->burst_enter, first) &&
		       set_chance(&r->burst_leave, v + 7 + n) && r->burst_leave;
	}
	if (strncmp(v, "at:", 3) != 0)
		return set_chance(&r->loss, v);
	for (v += 2; *v == ':' && r->n_at < IMPAIR_AT;) {
		char *end;

		r->loss_at[r->n_at++] = strtoull(v + 1, &end, 10);
		if (end == v + 1)
			return false;
		v = end;
	}
	return !*v;
}

static bool set_reorder(struct impair_rules *r, const char *v)
{
	return set_chance(&r->reorder, v);
}

static bool set_dup(struct impair_rules *r, const char *v)
{
	return set_chance(&r->dup, v);
}

static bool set_corrupt(struct impair_rules *r, const char *v)
{
	return set_chance(&r->corrupt, v);
}

static bool set_rate(struct impair_rules *r, const char *v)
{
	double d;

	if (!number(v, rates, 1e12, &d) || d < 1000)
		return false;
	r->rate = (uint64_t)d;
	return true;
}

static bool set_limit(struct impair_rules *r, const char *v)
{
	double d;

	if (number(v, sizes, 64e6, &d) && d >= 1) {
		r->limit_bytes = (uint32_t)d;
		return true;
	}
	if (!number(v, counts, LIMIT_MAX, &d) || d < 1)
		return false;
	r->limit = (uint32_t)d;
	return true;
}

static bool set_hole(struct impair_rules *r, const char *v)
{
	double d;

	if (!number(v, counts, ETH_MTU_MAX, &d) || d < ETH_MTU_MIN)
		return false;
	r->mtu_hole = (uint32_t)d;
	return true;
}

static bool set_unit(struct impair_rules *r, const char *v)
{
	r->unit = strcmp(v, "super") ? IMPAIR_WIRE : IMPAIR_SUPER;
	return !strcmp(v, "super") || !strcmp(v, "wire");
}

static const struct row {
	const char *name;
	bool (*set)(struct impair_rules *, const char *value);
	const char *right;
} rows[] = {
	{"delay", set_delay, "a time such as 20ms, up to 3600s"},
	{"jitter", set_jitter, "a time such as 2ms"},
	{"loss", set_loss, "1%, every:10, burst:1%:25% (enter, leave) or at:3:7"},
	{"reorder", set_reorder, "a share such as 0.5%"},
	{"dup", set_dup, "a share such as 0.5%"},
	{"corrupt", set_corrupt, "a share such as 0.5%"},
	{"rate", set_rate, "bits per second such as 100M, at least 1000"},
	{"limit", set_limit, "frames, 1 to 65536, or bytes such as 256K of what waits for rate="},
	{"mtu_hole", set_hole, "bytes of an IP datagram, 68 to 65535"},
	{"unit", set_unit, "wire or super"},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static int set_path(char to[108], const char *name, const char *value, struct err *err)
{
	if (!*value || strlen(value) >= 108)
		return err_set(err, EINVAL, "impair: %s=%.60s: a file name, at most 107 bytes",
			name, value);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int set_word(struct impair_conf *c, const char *word, const char *value, struct err *err)
{
	bool in = strncmp(word, "out.", 4) != 0, out = strncmp(word, "in.", 3) != 0;
	const char *name = word + (!in ? 4 : !out ? 3 : 0);
	char *end;

	if (!strcmp(word, "log"))
		return set_path(c->log, word, value, err);
	if (!strcmp(word, "replay"))
		return set_path(c->replay, word, value, err);
	if (!strcmp(word, "seed")) {
		c->seed = strtoull(value, &end, 0);
		return *value && !*end
			       ? 0
			       : err_set(err, EINVAL, "impair: seed=%.40s is no number", value);
	}
	for (unsigned i = 0; i < N_ROWS; i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		if ((!in || rows[i].set(&c->in, value)) && (!out || rows[i].set(&c->out, value)))
			return 0;
		return err_set(err, EINVAL, "impair: %s=%.60s is not right: %s", word, value,
			rows[i].right);
	}
	return err_set(err, EINVAL,
		"impair: unknown word '%.40s'; there are delay, jitter, loss, reorder, dup, "
		"corrupt, "
		"rate, limit, mtu_hole, unit, with in. or out. before it, and seed, log, replay",
		word);
}

int impair_parse(struct impair_conf *c, const char *text, struct err *err)
{
	char copy[400], *save = NULL;
	size_t n = strlen(text);
	int r = 0;

	memset(c, 0, sizeof(*c));
	c->in.limit = c->out.limit = LIMIT_DEFAULT;
	c->seed = 1;
	if (!n || n >= sizeof(copy))
		return err_set(err, EINVAL, "impair: %s; such as delay=10ms+loss=1%%",
			n ? "the words are too many" : "no words");
	memcpy(copy, text, n + 1);
	for (char *w = strtok_r(copy, "+", &save); w && !r; w = strtok_r(NULL, "+", &save)) {
		char *value = strchr(w, '=');

		if (!value)
			return err_set(err, EINVAL, "impair: '%.40s' must be word=value", w);
		*value++ = 0;
		r = set_word(c, w, value, err);
	}
	return r;
}
