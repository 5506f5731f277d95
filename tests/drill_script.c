/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_script: reads a file line by line. A call may go over several lines: lines are joined while
 * a parenthesis is open. Each line is read by a cursor that moves over it; the first thing that does
 * not fit ends the script with the place.
 */
#include "drill_script.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill_read.h"

static int add_event(struct script *s, struct event **ev)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		s->ev = realloc(s->ev, s->cap * sizeof(*s->ev));
		if (!s->ev)
			abort();
	}
	*ev = &s->ev[s->n++];
	memset(*ev, 0, sizeof(**ev));
	return 0;
}

/* --name=value */
static int read_setting(struct reader *r)
{
	struct script *s = r->script;
	char *value = strchr(r->p, '=');

	if (value)
		*value++ = 0;
	else
		value = r->p + strlen(r->p);
	if (!strcmp(r->p, "--ip_version"))
		s->ip6 = !strcmp(value, "ipv6");
	else if (!strcmp(r->p, "--frames"))
		s->frames = true;
	else if (!strcmp(r->p, "--mtu"))
		s->mtu = (unsigned)atoi(value);
	else if (!strcmp(r->p, "--tolerance_usecs"))
		s->tolerance = atoll(value) * NSEC_PER_USEC;
	else if (!strcmp(r->p, "--knob") && s->nknobs < SCRIPT_KNOBS)
		s->knob[s->nknobs++] = value;
	else if (!strcmp(r->p, "--knob"))
		return reader_bad(r, "too many --knob lines");
	return 0; /* others concern the tool that wrote them */
}

/* #ifdef, #else, #endif */
static int read_condition(struct reader *r)
{
	char word[16] = "", name[32] = "";

	sscanf(r->p, "#%15s %31s", word, name);
	if (!strcmp(word, "ifdef") || !strcmp(word, "ifndef")) {
		bool defined = !strcmp(name, r->defined);

		r->script->variants = true;
		if (++r->depth >= READER_DEPTH)
			return reader_bad(r, "#ifdef too deep");
		r->off[r->depth] = r->off[r->depth - 1] || defined == !strcmp(word, "ifndef");
	} else if (!strcmp(word, "else") && r->depth) {
		r->off[r->depth] = r->off[r->depth - 1] || !r->off[r->depth];
	} else if (!strcmp(word, "endif") && r->depth) {
		r->depth--;
	}
	return 0; /* "# words" is a comment */
}

static int read_line(struct reader *r)
{
	struct event *ev;
	int e;

	while (isspace((unsigned char)*r->p))
		r->p++;
	if (!*r->p)
		return 0;
	if (*r->p == '#')
		return read_condition(r);
	if (r->off[r->depth])
		return 0;
	if (r->p[0] == '-' && r->p[1] == '-')
		return read_setting(r);
	if (*r->p == '`')
		return 0; /* a shell command: host set-up, no part of the dialogue */
	add_event(r->script, &ev);
	ev->line = r->line;
	e = read_event(r, ev);
	if (!e && ev->kind == EV_NONE)
		r->script->n--;
	return e;
}

/* Blank out comments, to the end of the line or over several; strings and line ends stay. */
static void strip_comments(char *t)
{
	bool quoted = false;

	for (; *t; t++) {
		char *end;

		if (*t == '"')
			quoted = !quoted;
		if (quoted || *t != '/' || (t[1] != '/' && t[1] != '*'))
			continue;
		if (t[1] == '/')
			end = t + strcspn(t, "\n");
		else
			end = strstr(t + 2, "*/") ? strstr(t + 2, "*/") + 2 : t + strlen(t);
		for (; t < end; t++)
			if (*t != '\n')
				*t = ' ';
		t--;
	}
}

/* How many parentheses stay open at the end of the line; backticks and %{ }% count as well. */
static int line_open(const char *t, size_t len)
{
	int open = 0, tick = 0;

	for (size_t i = 0; i < len; i++) {
		if (t[i] == '"')
			while (++i < len && t[i] != '"')
				;
		if (i >= len)
			break;
		if (t[i] == '(' || t[i] == '{')
			open++;
		if (t[i] == ')' || t[i] == '}')
			open--;
		if (t[i] == '`')
			tick ^= 1;
	}
	return open + tick;
}

static int read_lines(struct reader *r, char *t)
{
	unsigned line = 1;
	int e = 0;

	while (*t && !e) {
		size_t len = strcspn(t, "\n");
		unsigned first = line++;

		while (t[len] && line_open(t, len) > 0) {
			t[len] = ' ';
			line++;
			len += strcspn(t + len, "\n");
		}
		r->p = t;
		r->line = first;
		t += len;
		if (*t)
			*t++ = 0;
		e = read_line(r);
	}
	return e;
}

static char *load(const char *path, struct err *err)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t size;

	if (!f) {
		err_set(err, errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (getdelim(&text, &(size_t){0}, 0, f) < 0) {
		free(text);
		size = 1;
		text = calloc(size, 1);
	}
	fclose(f);
	return text;
}

int script_read(struct script *s, const char *path, const char *defined, struct err *err)
{
	struct reader r = {.script = s, .defined = defined, .err = err};
	int e;

	*s = (struct script){.path = path};
	s->store = load(path, err);
	if (!s->store)
		return -ENOENT;
	strip_comments(s->store);
	e = read_lines(&r, s->store);
	if (e)
		script_free(s);
	return e;
}

void script_free(struct script *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->ev[i].text);
	free(s->ev);
	free(s->store);
	*s = (struct script){0};
}

/* words */

static void opt_text(const struct opt *o, char *t, size_t size)
{
	int n;

	switch (o->kind) {
	case OPT_EOL:
		snprintf(t, size, "eol");
		break;
	case OPT_NOP:
		snprintf(t, size, "nop");
		break;
	case OPT_MSS:
		snprintf(t, size, "mss %u", o->v[0]);
		break;
	case OPT_WSCALE:
		snprintf(t, size, "wscale %u", o->v[0]);
		break;
	case OPT_SACK_OK:
		snprintf(t, size, "sackOK");
		break;
	case OPT_TS:
		snprintf(t, size, "TS val %u ecr %u", o->v[0], o->v[1]);
		break;
	case OPT_SACK:
		n = snprintf(t, size, "sack");
		for (unsigned i = 0; i + 1 < o->n && (size_t)n < size; i += 2)
			n += snprintf(t + n, size - (size_t)n, " %u:%u", o->v[i], o->v[i + 1]);
		break;
	default:
		n = snprintf(t, size, "raw ");
		for (unsigned i = 0; i < o->n && (size_t)n < size; i++)
			n += snprintf(t + n, size - (size_t)n, "%02x", o->raw[i]);
	}
}

static void opts_text(const struct opts *o, char *t, size_t size)
{
	size_t at = 0;

	if (o->any || !o->n) {
		snprintf(t, size, "%s", o->any ? " <...>" : "");
		return;
	}
	for (unsigned i = 0; i < o->n && at + 8 < size; i++) {
		at += (size_t)snprintf(t + at, size - at, "%s", i ? "," : " <");
		opt_text(&o->o[i], t + at, size - at);
		at += strlen(t + at);
	}
	if (at + 2 <= size)
		snprintf(t + at, size - at, ">");
}

void seg_text(const struct seg *s, char text[SEG_TEXT])
{
	static const char letters[] = "FSRP.UEW";
	static const char ecn[][10] = {"[noecn] ", "[ect1] ", "[ect0] ", "[ce] ", ""};
	char flags[9], opts[200], seq[40], ack[20] = "", win[16] = "", urg[16] = "";
	unsigned n = 0;

	/* in the order people write them: S F R P E W U . */
	for (const char *l = "SFRPEWU."; *l; l++)
		if (s->flags >> (strchr(letters, *l) - letters) & 1)
			flags[n++] = *l;
	if (!n)
		flags[n++] = '-';
	flags[n] = 0;
	opts_text(&s->opts, opts, sizeof(opts));
	if (s->any_seq)
		snprintf(seq, sizeof(seq), "...(%u)", s->len);
	else
		snprintf(seq, sizeof(seq), "%u:%u(%u)", s->seq, s->seq + s->len, s->len);
	if (s->has_ack)
		snprintf(ack, sizeof(ack), " ack %u", s->ack);
	if (s->has_win)
		snprintf(win, sizeof(win), " win %u", s->win);
	if (s->has_urg)
		snprintf(urg, sizeof(urg), " urg %u", s->urg);
	snprintf(text, SEG_TEXT, "%s%s %s%s%s%s%s", ecn[s->ecn > ECN_ANY ? ECN_ANY : s->ecn], flags,
		seq, ack, win, urg, opts);
}

struct errno_name {
	const char *name;
	int code;
};

static const struct errno_name errnos[] = {
	{"EAGAIN", EAGAIN},
	{"EWOULDBLOCK", EAGAIN},
	{"EINPROGRESS", EINPROGRESS},
	{"EALREADY", EALREADY},
	{"ECONNREFUSED", ECONNREFUSED},
	{"ECONNRESET", ECONNRESET},
	{"ECONNABORTED", ECONNABORTED},
	{"EHOSTUNREACH", EHOSTUNREACH},
	{"ENETUNREACH", ENETUNREACH},
	{"ETIMEDOUT", ETIMEDOUT},
	{"EPIPE", EPIPE},
	{"ENOTCONN", ENOTCONN},
	{"EISCONN", EISCONN},
	{"EINVAL", EINVAL},
	{"EBADF", EBADF},
	{"EADDRINUSE", EADDRINUSE},
	{"EADDRNOTAVAIL", EADDRNOTAVAIL},
	{"EMSGSIZE", EMSGSIZE},
	{"ENOBUFS", ENOBUFS},
	{"ENOMEM", ENOMEM},
	{"EPROTO", EPROTO},
	{"ENOPROTOOPT", ENOPROTOOPT},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"EDESTADDRREQ", EDESTADDRREQ},
	{"EACCES", EACCES},
	{"EPERM", EPERM},
};
#define N_ERRNOS (sizeof(errnos) / sizeof(errnos[0]))

int errno_of(const char *name)
{
	for (unsigned i = 0; i < N_ERRNOS; i++)
		if (!strcmp(errnos[i].name, name))
			return errnos[i].code;
	return 0;
}

const char *errno_word(int code)
{
	for (unsigned i = 0; i < N_ERRNOS; i++)
		if (errnos[i].code == code)
			return errnos[i].name;
	return strerror(code);
}
