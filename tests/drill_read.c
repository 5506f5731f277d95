/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_read: the grammar of one line.
 *
 *	TIME  < [ecn] FLAGS seq:end(len) [ack N] [win N] [urg N] [<options>]
 *	TIME  < icmp TYPE [CODE] [mtu N] [seq:end(len)]
 *	TIME  name(arg, ...) = RESULT [ERRNO] [(words)]
 *	TIME  %{ assert tcpi_name OP value }%
 */
#include "drill_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int reader_bad(struct reader *r, const char *why)
{
	return err_set(r->err, EINVAL, "%s:%u: %s: %.80s", r->script->path, r->line, why, r->p);
}

static void space(struct reader *r)
{
	while (isspace((unsigned char)*r->p))
		r->p++;
}

/* Take `word` if it comes next, as a whole; for words of letters nothing may go on behind it. */
static bool take(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	space(r);
	if (strncmp(r->p, word, n) != 0)
		return false;
	if (isalnum((unsigned char)word[n - 1]) &&
		(isalnum((unsigned char)r->p[n]) || r->p[n] == '_'))
		return false;
	r->p += n;
	return true;
}

static bool number(struct reader *r, uint32_t *v)
{
	char *end;
	unsigned long n;

	space(r);
	if (!isdigit((unsigned char)*r->p))
		return false;
	n = strtoul(r->p, &end, 0);
	r->p = end;
	*v = (uint32_t)n;
	return true;
}

/* "0.10" in seconds, exactly */
static bool seconds(struct reader *r, nsec_t *t)
{
	nsec_t unit = NSEC_PER_SEC;
	bool any = false;

	for (*t = 0; isdigit((unsigned char)*r->p); r->p++, any = true)
		*t = *t * 10 + (*r->p - '0') * NSEC_PER_SEC;
	if (*r->p != '.' || r->p[1] == '.')
		return any;
	for (r->p++; isdigit((unsigned char)*r->p); r->p++, any = true)
		*t += (*r->p - '0') * (unit /= 10);
	return any;
}

static int read_when(struct reader *r, struct when *w)
{
	if (take(r, "*")) {
		w->kind = WHEN_ANY;
		return 0;
	}
	w->kind = *r->p == '+' ? WHEN_REL : WHEN_ABS;
	if (*r->p == '+')
		r->p++;
	if (!seconds(r, &w->from))
		return reader_bad(r, "a time must come here, such as +0.10, 0.10 or *");
	w->to = w->from;
	if (*r->p == '~') {
		r->p++;
		if (*r->p == '+')
			r->p++;
	} else if (!strncmp(r->p, "...", 3)) {
		r->p += 3;
		w->blocking = true;
	} else {
		return 0;
	}
	if (!seconds(r, &w->to) || w->to < w->from)
		return reader_bad(r, "the range must end with a later time");
	return 0;
}

/* options */

static bool read_sack(struct reader *r, struct opt *o)
{
	o->n = 0;
	while (o->n + 1 < 8 && number(r, &o->v[o->n])) {
		if (*r->p != ':')
			return false;
		r->p++;
		if (!number(r, &o->v[o->n + 1]))
			return false;
		o->n += 2;
	}
	return true;
}

static bool read_raw(struct reader *r, struct opt *o)
{
	unsigned byte;

	space(r);
	for (o->n = 0; o->n < sizeof(o->raw) && sscanf(r->p, "%2x", &byte) == 1; o->n++) {
		if (!isxdigit((unsigned char)r->p[0]) || !isxdigit((unsigned char)r->p[1]))
			break;
		o->raw[o->n] = (uint8_t)byte;
		r->p += 2;
	}
	return o->n > 0;
}

static bool read_option(struct reader *r, struct opt *o)
{
	static const struct {
		const char *word;
		enum opt_kind kind;
		bool value;
	} known[] = {
		{"mss", OPT_MSS, true},
		{"wscale", OPT_WSCALE, true},
		{"sackOK", OPT_SACK_OK, false},
		{"nop", OPT_NOP, false},
		{"eol", OPT_EOL, false},
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!take(r, known[i].word))
			continue;
		o->kind = known[i].kind;
		o->n = known[i].value;
		return !known[i].value || number(r, &o->v[0]);
	}
	if (take(r, "sack")) {
		o->kind = OPT_SACK;
		return read_sack(r, o);
	}
	if (take(r, "TS")) {
		o->kind = OPT_TS;
		o->n = 2;
		return take(r, "val") && number(r, &o->v[0]) && take(r, "ecr") &&
		       number(r, &o->v[1]);
	}
	o->kind = OPT_RAW;
	return take(r, "raw") && read_raw(r, o);
}

static int read_options(struct reader *r, struct opts *opts)
{
	if (take(r, "...")) {
		opts->any = true;
		return take(r, ">") ? 0 : reader_bad(r, "'>' must follow");
	}
	while (!take(r, ">")) {
		if (opts->n == OPTS_MAX || !read_option(r, &opts->o[opts->n]))
			return reader_bad(r, "not an option I know");
		opts->n++;
		take(r, ",");
	}
	return 0;
}

/* segments */

static int read_ecn(struct reader *r, uint8_t *ecn)
{
	*ecn = ECN_ANY;
	if (*r->p != '[')
		return 0;
	if (take(r, "[noecn]"))
		*ecn = 0;
	else if (take(r, "[ect1]"))
		*ecn = 1;
	else if (take(r, "[ect0]"))
		*ecn = 2;
	else if (take(r, "[ce]"))
		*ecn = 3;
	else
		return reader_bad(r, "must be [noecn], [ect0], [ect1] or [ce]");
	return 0;
}

static int read_flags(struct reader *r, uint8_t *flags)
{
	static const char letters[] = "FSRP.UEW";

	space(r);
	for (*flags = 0; *r->p && !isspace((unsigned char)*r->p); r->p++) {
		const char *l = strchr(letters, *r->p);

		if (*r->p == '-')
			continue;
		if (!l)
			return reader_bad(r, "flags are S F R P . U E W, or -");
		*flags |= (uint8_t)(1u << (l - letters));
	}
	return 0;
}

/* a:b(n), or ...(n) */
static int read_range(struct reader *r, bool *any, uint32_t *seq, uint32_t *len)
{
	uint32_t end = 0;

	*any = take(r, "...");
	if (!*any && (!number(r, seq) || *r->p++ != ':' || !number(r, &end)))
		return reader_bad(r, "a range must come here, such as 1:1001(1000)");
	if (*r->p++ != '(' || !number(r, len) || *r->p++ != ')')
		return reader_bad(r, "its length must follow, such as 1:1001(1000)");
	if (!*any && end - *seq != *len)
		return reader_bad(r, "the length does not fit the range");
	return 0;
}

static int read_segment(struct reader *r, struct seg *s)
{
	uint32_t v = 0;
	int e;

	e = read_ecn(r, &s->ecn);
	if (!e && take(r, "@"))
		e = number(r, &s->peer) ? 0 : reader_bad(r, "a number must follow '@'");
	if (!e)
		e = read_flags(r, &s->flags);
	if (!e)
		e = read_range(r, &s->any_seq, &s->seq, &s->len);
	if (e)
		return e;
	s->has_ack = take(r, "ack");
	if (s->has_ack && !number(r, &s->ack))
		return reader_bad(r, "a number must follow ack");
	s->has_win = take(r, "win");
	if (s->has_win && !number(r, &v))
		return reader_bad(r, "a number must follow win");
	s->win = (uint16_t)v;
	s->has_urg = take(r, "urg");
	if (s->has_urg && !number(r, &v))
		return reader_bad(r, "a number must follow urg");
	s->urg = (uint16_t)v;
	if (take(r, "<"))
		e = read_options(r, &s->opts);
	space(r);
	return !e && *r->p ? reader_bad(r, "I do not know what this is") : e;
}

/* ICMP: words, and what they are in either version; -1: not there */
static const struct icmp_word {
	const char *type, *code;
	int type4, code4, type6, code6;
} icmp_words[] = {
	{"unreachable", "net_unreachable", 3, 0, 1, 0},
	{"unreachable", "host_unreachable", 3, 1, 1, 3},
	{"unreachable", "protocol_unreachable", 3, 2, -1, 0},
	{"unreachable", "port_unreachable", 3, 3, 1, 4},
	{"unreachable", "frag_needed", 3, 4, 2, 0},
	{"unreachable", "source_route_failed", 3, 5, -1, 0},
	{"unreachable", "net_unknown", 3, 6, -1, 0},
	{"unreachable", "host_unknown", 3, 7, -1, 0},
	{"unreachable", "net_prohibited", 3, 9, -1, 0},
	{"unreachable", "host_prohibited", 3, 10, -1, 0},
	{"unreachable", "packet_filtered", 3, 13, 1, 1},
	{"unreachable", "no_route", 3, 0, 1, 0},
	{"unreachable", "admin_prohibited", 3, 13, 1, 1},
	{"unreachable", "not_neighbour", -1, 0, 1, 2},
	{"unreachable", "address_unreachable", 3, 1, 1, 3},
	{"packet_too_big", NULL, -1, 0, 2, 0},
	{"source_quench", NULL, 4, 0, -1, 0},
	{"redirect", NULL, 5, 1, 137, 0},
	{"time_exceeded", "exceeded_hop_limit", 11, 0, 3, 0},
	{"time_exceeded", "exceeded_frag_time", 11, 1, 3, 1},
	{"parameter_problem", "header_field", 12, 0, 4, 0},
	{"parameter_problem", "unknown_next_header", -1, 0, 4, 1},
	{"parameter_problem", "unknown_option", 12, 1, 4, 2},
};

static int read_icmp(struct reader *r, struct quote *i)
{
	char type[32] = "", code[32] = "";
	int n = 0, v6 = r->script->ip6;
	bool any;

	if (sscanf(r->p, " %31[a-z_]%n", type, &n) != 1)
		return reader_bad(r, "a type must come here, such as unreachable");
	r->p += n;
	n = 0;
	if (sscanf(r->p, " %31[a-z_]%n", code, &n) == 1 && strcmp(code, "mtu") != 0)
		r->p += n;
	for (unsigned w = 0; w < sizeof(icmp_words) / sizeof(icmp_words[0]); w++) {
		const struct icmp_word *k = &icmp_words[w];
		int t = v6 ? k->type6 : k->type4;

		if (strcmp(k->type, type) != 0 || (k->code && strcmp(k->code, code) != 0) || t < 0)
			continue;
		i->type = (uint8_t)t;
		i->code = (uint8_t)(v6 ? k->code6 : k->code4);
		if (take(r, "mtu") && !number(r, &i->mtu))
			return reader_bad(r, "a number must follow mtu");
		space(r);
		if (*r->p++ != '[')
			return reader_bad(r, "what it quotes must follow, such as [1:1001(1000)]");
		return read_range(r, &any, &i->seq, &i->len);
	}
	return reader_bad(r, "no such ICMP message here");
}

/* calls */

static void trim(char *t)
{
	size_t n = strlen(t);

	while (n && isspace((unsigned char)t[n - 1]))
		t[--n] = 0;
}

/* Cut "a, [b, c], {d}" at the outer commas; returns what follows the closing parenthesis. */
static char *cut_args(char *p, struct call *c)
{
	int depth = 1;

	for (char *start = p; *p; p++) {
		if (*p == '"')
			while (p[1] && *++p != '"')
				;
		depth += *p == '(' || *p == '[' || *p == '{';
		depth -= *p == ')' || *p == ']' || *p == '}';
		if (depth > 1 || (depth == 1 && *p != ','))
			continue;
		while (isspace((unsigned char)*start))
			start++;
		if (c->nargs < CALL_ARGS && (start != p || depth))
			c->arg[c->nargs++] = start;
		start = p + 1;
		*p = 0;
		if (c->nargs)
			trim(c->arg[c->nargs - 1]);
		if (!depth)
			return p + 1;
	}
	return NULL;
}

static int read_result(struct reader *r, struct call *c)
{
	char *end;

	if (!take(r, "="))
		return reader_bad(r, "'=' and a result must follow the call");
	space(r);
	if (take(r, "...") || take(r, "?")) {
		c->any_result = true;
		return 0;
	}
	c->result = strtoll(r->p, &end, 0);
	if (end == r->p)
		return reader_bad(r, "the result must be a number");
	r->p = end;
	space(r);
	if (*r->p == 'E') {
		c->error = r->p;
		while (isalnum((unsigned char)*r->p))
			r->p++;
		if (*r->p)
			*r->p++ = 0;
		if (!errno_of(c->error))
			return reader_bad(r, "no such error");
	}
	return 0;
}

static int read_call(struct reader *r, struct call *c)
{
	char *end = r->p;

	while (isalnum((unsigned char)*end) || *end == '_')
		end++;
	c->name = r->p;
	r->p = end + strspn(end, " \t");
	if (end == c->name || *r->p != '(')
		return reader_bad(r, "neither a segment nor a call");
	r->p++;
	*end = 0;
	end = cut_args(r->p, c);
	if (!end)
		return reader_bad(r, "the call has no ')'");
	r->p = end;
	return read_result(r, c);
}

/* assert tcpi_snd_cwnd == 10 }% */
static int read_check(struct reader *r, struct event *ev)
{
	struct check *c = &ev->check;
	char *save = NULL, *value;

	ev->kind = EV_NONE; /* other programs in %{ }% are not for us */
	if (!take(r, "assert"))
		return 0;
	c->name = strtok_r(r->p, " \t", &save);
	c->op = strtok_r(NULL, " \t", &save);
	value = strtok_r(NULL, " \t}", &save);
	if (!c->name || !c->op || !value || !strstr("== != <= >= < >", c->op))
		return reader_bad(r, "must be: assert NAME OP NUMBER");
	c->value = strtoll(value, NULL, 0);
	ev->kind = EV_CHECK;
	return 0;
}

int read_event(struct reader *r, struct event *ev)
{
	int e = read_when(r, &ev->when);

	if (e)
		return e;
	space(r);
	ev->text = strdup(r->p);
	if (ev->text)
		trim(ev->text);
	if (*r->p == '`') {
		ev->kind =
			EV_NONE; /* time does pass; the next event is not told so: harmless at +0 */
		return 0;
	}
	if (take(r, "%{"))
		return read_check(r, ev);
	if (*r->p == '<' || *r->p == '>') {
		ev->kind = *r->p++ == '<' ? EV_IN : EV_OUT;
		if (ev->kind == EV_IN && take(r, "icmp")) {
			ev->kind = EV_ICMP_IN;
			return read_icmp(r, &ev->icmp);
		}
		space(r);
		return read_segment(r, &ev->seg);
	}
	ev->kind = EV_CALL;
	return read_call(r, &ev->call);
}
