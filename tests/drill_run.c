/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_run: the clock and the queue between the script and the host.
 *
 *	script line --time--> clock moves, timers of the host run --> the event --> host
 *	host --segments--> queue with their times --> the next `>` line takes the first
 */
#include "drill_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/rand.h"
#include "drill_host.h"
#include "drill_knobs.h"
#include "drill_match.h"

#define START     (1000 * NSEC_PER_SEC) /* of virtual time: no host's clock begins at 0 */
#define PEERS     16
#define ANY_WAIT  (7200 * NSEC_PER_SEC) /* so long `*` waits */
#define LATE_WAIT (120 * NSEC_PER_SEC)  /* so long we look whether it comes after all */
#define STORM     100000                /* timer runs without the clock moving on */

struct unit {
	TAILQ_ENTRY(unit) entry;
	struct host_out out;
	nsec_t at;
	struct peer peer; /* how its numbers are to be read: as known when it was sent */
	uint32_t taken;   /* bytes that earlier lines have had of it */
};
TAILQ_HEAD(units, unit);

/* What a segment that went out has beside what a script writes: the last one, and the one before. */
struct seen {
	struct tcp_tuple tuple;
	uint32_t isn, flow, ts;
	int ip_id, df;
};

struct run {
	const struct script *script;
	const struct run_options *opt;
	struct host host;
	struct units units;
	struct peer peer[PEERS];
	nsec_t now, base; /* base: what "+" counts from */
	const struct event *ev;
	const struct event *blocked; /* a call that has not returned yet */
	nsec_t blocked_until;
	int last_fd;
	struct seen out[2], syn[2]; /* syn: of those with SYN only; [0] is the last */
	bool trouble;               /* a failure was told */
	char *text;
};

static double sec(nsec_t t)
{
	return (double)(t - START) / 1e9;
}

static int fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct run *r, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (r->trouble)
		return -1;
	r->trouble = true;
	n = snprintf(r->text, RUN_TEXT, "%s:%u: ", r->script->path, r->ev ? r->ev->line : 1);
	va_start(ap, fmt);
	if (n < RUN_TEXT)
		vsnprintf(r->text + n, (size_t)(RUN_TEXT - n), fmt, ap);
	va_end(ap);
	return -1;
}

static void trace(struct run *r, const char *mark, const char *text)
{
	if (r->opt->trace)
		fprintf(r->opt->trace, "%10.6f %s %s\n", sec(r->now), mark, text);
}

/* peers */

static struct peer *peer_of_tuple(struct run *r, const struct tcp_tuple *t)
{
	for (unsigned i = 0; i < PEERS; i++) {
		struct peer *p = &r->peer[i];

		if (p->rport == t->rport || (!p->our_isn_known && t->rport == HOST_PORT + i))
			return p;
	}
	return NULL;
}

/* What the host's first SYN tells: which ports, and where its numbers begin. */
static void learn(struct run *r, const struct host_out *o)
{
	struct peer *p = peer_of_tuple(r, &o->tuple);

	if (!p || !(o->seg.flags & SYN) || p->our_isn_known)
		return;
	p->lport = o->tuple.lport;
	p->rport = o->tuple.rport;
	p->our_isn = o->seg.seq;
	p->our_isn_known = true;
}

static void peers_init(struct run *r)
{
	struct rand rand;

	rand_init(&rand, r->opt->seed);
	for (unsigned i = 0; i < PEERS; i++)
		r->peer[i] = (struct peer){
			.lport = HOST_PORT,
			.rport = (uint16_t)(HOST_PEER_PORT + i),
			.their_isn = (uint32_t)rand_u64(&rand),
		};
}

static void see(struct run *r, const struct host_out *o)
{
	struct seen s = {.tuple = o->tuple,
		.isn = o->seg.seq,
		.flow = o->flow,
		.ip_id = o->ip_id,
		.df = o->df};

	for (unsigned i = 0; i < o->seg.opts.n; i++)
		if (o->seg.opts.o[i].kind == OPT_TS)
			s.ts = o->seg.opts.o[i].v[0];
	r->out[1] = r->out[0];
	r->out[0] = s;
	if (!(o->seg.flags & SYN))
		return;
	r->syn[1] = r->syn[0];
	r->syn[0] = s;
}

/*
 * out.NAME: of what was sent last. isn_step: from the SYN before to the last one; isn_gap: the same
 * without its sign; ts_gap, port_gap: of their timestamps and our ports; flow_gap: 0 if the last two segments have one label.
 */
static bool seen_value(const struct run *r, const char *name, int64_t *v)
{
	const int32_t step = (int32_t)(r->syn[0].isn - r->syn[1].isn);
	const struct {
		const char *name;
		int64_t v;
	} values[] = {{"isn_step", step}, {"isn_gap", step < 0 ? -(int64_t)step : step},
		{"ts_gap", labs((long)(int32_t)(r->syn[0].ts - r->syn[1].ts))},
		{"port", r->syn[0].tuple.lport},
		{"port_gap", abs(r->syn[0].tuple.lport - r->syn[1].tuple.lport)},
		{"flow", r->out[0].flow}, {"flow_gap", labs((long)r->out[0].flow - r->out[1].flow)},
		{"ip_id", r->out[0].ip_id}, {"df", r->out[0].df}};

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (strcmp(name, values[i].name) != 0)
			continue;
		*v = values[i].v;
		return true;
	}
	return false;
}

static void tuple_of(const struct run *r, const struct peer *p, struct tcp_tuple *t)
{
	*t = (struct tcp_tuple){r->host.laddr, r->host.raddr, p->lport, p->rport};
}

/* the host's side of time */

static void out_trace(struct run *r, const struct host_out *o)
{
	struct peer *p = peer_of_tuple(r, &o->tuple);
	struct seg s;
	char text[SEG_TEXT];

	if (!r->opt->trace || !p)
		return;
	seg_to_script(p, &o->seg, &s);
	seg_text(&s, text);
	trace(r, "  >", text);
}

static void payload_check(struct run *r, const struct host_out *o)
{
	struct peer *p = peer_of_tuple(r, &o->tuple);

	if (!p || !p->our_isn_known || !o->seg.len || (o->seg.flags & SYN))
		return;
	/* a probe may carry a byte that was acknowledged: it is not delivered again */
	if (o->seg.seq - p->our_isn != 0 && !host_payload_right(o, o->seg.seq - p->our_isn - 1))
		fail(r, "the payload of a segment that went out is not what was written");
}

/* Take what the host has to say now. */
static void pump(struct run *r)
{
	struct tcp_event ev;
	struct unit *u;
	const char *bad;

	for (;;) {
		u = calloc(1, sizeof(*u));
		if (!host_out(&r->host, &u->out, r->now))
			break;
		u->at = r->now;
		see(r, &u->out);
		learn(r, &u->out);
		if (peer_of_tuple(r, &u->out.tuple))
			u->peer = *peer_of_tuple(r, &u->out.tuple);
		payload_check(r, &u->out);
		out_trace(r, &u->out);
		TAILQ_INSERT_TAIL(&r->units, u, entry);
	}
	free(u);
	while (tcp_host_event(r->host.tcp, &ev))
		;
	bad = r->host.broken ? r->host.broken : tcp_host_check(r->host.tcp);
	if (bad)
		fail(r, "the engine is not in order: %s", bad);
}

/* Timers up to `to`; with `until_out` stop at the first segment. Now is `to` afterwards, or that. */
static void advance(struct run *r, nsec_t to, bool until_out)
{
	unsigned runs = 0;

	while (!r->trouble && !(until_out && !TAILQ_EMPTY(&r->units))) {
		nsec_t at = host_deadline(&r->host);

		if (at > to)
			break;
		runs = at > r->now ? 0 : runs + 1;
		if (runs > STORM) {
			fail(r, "a timer is due for ever at %.6f", sec(r->now));
			return;
		}
		r->now = at > r->now ? at : r->now;
		host_timer(&r->host, r->now);
		pump(r);
	}
	if (!(until_out && !TAILQ_EMPTY(&r->units)) && to > r->now)
		r->now = to;
}

/* `>` lines */

static void unit_done(struct run *r, struct unit *u)
{
	TAILQ_REMOVE(&r->units, u, entry);
	free(u->out.data);
	free(u);
}

/* What of a super-segment the line is about: all of it, or as much as one segment on a wire has. */
static void unit_part(const struct unit *u, uint32_t want, struct seg *s)
{
	uint32_t left = u->out.seg.len - u->taken;

	*s = u->out.seg;
	s->seq += u->taken;
	s->len = left;
	if (!u->out.gso_size || want > u->out.gso_size || left <= u->out.gso_size)
		return;
	s->len = u->out.gso_size;
	s->flags &= (uint8_t) ~(PSH | FIN);
}

static nsec_t tolerance_of(const struct run *r, nsec_t wait)
{
	nsec_t t = r->script->tolerance ? r->script->tolerance : r->opt->tolerance;

	return wait / 10 > t ? wait / 10 : t;
}

static int nothing_came(struct run *r, nsec_t from, const char *want)
{
	struct unit *u;
	nsec_t looked = r->now;
	struct peer *p;
	struct seg s;
	char text[SEG_TEXT];

	advance(r, r->now + LATE_WAIT, true);
	u = TAILQ_FIRST(&r->units);
	p = u ? peer_of_tuple(r, &u->out.tuple) : NULL;
	if (!p)
		return fail(r, "expected `> %s` at %.3f; nothing was sent until %.3f", want,
			sec(from), sec(looked));
	seg_to_script(&u->peer, &u->out.seg, &s);
	seg_text(&s, text);
	return fail(r, "expected `> %s` at %.3f; got nothing until `> %s` at %.3f", want, sec(from),
		text, sec(u->at));
}

static int out_match(struct run *r, struct unit *u, const struct seg *want, const char *want_text)
{
	struct peer *p = peer_of_tuple(r, &u->out.tuple);
	struct seg wire, have;
	const char *what;
	char text[SEG_TEXT];

	if (!p)
		return fail(r, "expected `> %s`; got a segment to port %u, where nobody is",
			want_text, u->out.tuple.rport);
	unit_part(u, want->len, &wire);
	if (want->any_seq && (wire.flags & SYN))
		p->our_isn = u->peer.our_isn = wire.seq; /* a new conversation of the same ports */
	u->peer.ts_base = p->ts_base;
	u->peer.ts_known = p->ts_known;
	seg_to_script(&u->peer, &wire, &have);
	if (want->peer != (unsigned)(p - r->peer))
		what = "peer";
	else
		what = seg_differs(p, want, &have);
	if (what) {
		have.has_win = want->has_win;
		have.ecn = want->ecn == ECN_ANY ? ECN_ANY : have.ecn;
		seg_text(&have, text);
		return fail(r, "expected `> %s`; got `> %s` at %.3f (%s)", want_text, text,
			sec(u->at), what);
	}
	u->taken += have.len;
	if (u->taken >= u->out.seg.len)
		unit_done(r, u);
	return 0;
}

static int ev_out(struct run *r, nsec_t from, nsec_t to)
{
	const struct when *w = &r->ev->when;
	nsec_t slack = tolerance_of(r, from - r->base);
	char want[SEG_TEXT];
	struct unit *u;
	nsec_t at;

	seg_text(&r->ev->seg, want);
	if (w->kind == WHEN_ANY)
		to = r->now + ANY_WAIT;
	if (TAILQ_EMPTY(&r->units))
		advance(r, to + slack > r->now ? to + slack : r->now, true);
	u = TAILQ_FIRST(&r->units);
	if (!u)
		return nothing_came(r, from, want);
	at = u->at;
	if (out_match(r, u, &r->ev->seg, want))
		return -1;
	if (w->kind != WHEN_ANY && (at < from - slack || at > to + slack))
		return fail(r, "expected `> %s` at %.3f; it was sent at %.3f", want, sec(from),
			sec(at));
	if (w->kind == WHEN_ANY)
		r->base = at;
	else
		r->base = w->to > w->from ? at : from;
	return 0;
}

/* the other lines */

static int ev_in(struct run *r)
{
	const struct seg *s = &r->ev->seg;
	struct peer *p = &r->peer[s->peer < PEERS ? s->peer : 0];
	struct tcp_tuple t;
	struct seg wire;

	trace(r, "<  ", r->ev->text + strspn(r->ev->text, "< "));
	tuple_of(r, p, &t);
	seg_to_wire(p, s, &wire);
	/* the SYN takes number 0, the stream begins behind it */
	host_in(&r->host, &t, &wire, s->flags & SYN ? s->seq : s->seq - 1, r->now);
	return 0;
}

static int ev_icmp(struct run *r)
{
	struct tcp_tuple t;

	trace(r, "<  ", r->ev->text + strspn(r->ev->text, "< "));
	tuple_of(r, &r->peer[0], &t);
	host_icmp(&r->host, &t, &r->ev->icmp, r->ev->icmp.seq + r->peer[0].our_isn, r->now);
	return 0;
}

static int call_check(struct run *r, const struct event *ev)
{
	const struct call *c = &ev->call;
	char detail[120], got[48];
	int64_t v, want = c->error && c->result == -1 ? -errno_of(c->error) : c->result;
	bool known = host_call(&r->host, c, &v, detail, r->now);

	trace(r, "   ", ev->text);
	if (!known)
		return fail(r, "`%s`: no such call here", ev->text);
	if (c->nargs && strcmp(c->name, "socket") != 0)
		r->last_fd = atoi(c->arg[0]);
	if (v < 0)
		snprintf(got, sizeof(got), "-1 %s", errno_word((int)-v));
	else
		snprintf(got, sizeof(got), "%lld", (long long)v);
	if (!c->any_result && v != want)
		return fail(r, "`%s` at %.3f returned %s", ev->text, sec(r->now), got);
	if (detail[0])
		return fail(r, "`%s` at %.3f: %s", ev->text, sec(r->now), detail);
	if (!strncmp(c->name, "accept", 6) && v >= 0)
		r->last_fd = (int)v;
	return 0;
}

static int ev_call(struct run *r, nsec_t to)
{
	const struct call *c = &r->ev->call;
	char detail[120];
	int64_t v;

	if (!r->ev->when.blocking)
		return call_check(r, r->ev);
	if (!strcmp(c->name, "connect") && host_call(&r->host, c, &v, detail, r->now) &&
		v != -EINPROGRESS)
		return fail(r, "`%s` returned %s at once", r->ev->text, errno_word((int)-v));
	r->blocked = r->ev;
	r->blocked_until = to;
	return 0;
}

static int blocked_return(struct run *r)
{
	const struct event *ev = r->blocked;
	int64_t v = 0;

	r->blocked = NULL;
	if (strcmp(ev->call.name, "connect") != 0)
		return call_check(r, ev);
	if (!host_value(&r->host, atoi(ev->call.arg[0]), "state", &v) || v < TCPS_ESTABLISHED)
		return fail(r, "line %u: `%s` has not returned", ev->line, ev->text);
	return 0;
}

static int ev_check(struct run *r)
{
	const struct check *c = &r->ev->check;
	int64_t v, w = c->value;
	bool right;

	if (!strncmp(c->name, "out.", 4) ? !seen_value(r, c->name + 4, &v)
					 : !host_value(&r->host, r->last_fd, c->name, &v))
		return fail(r, "`%s`: no such value here", c->name);
	if (!strcmp(c->op, "=="))
		right = v == w;
	else if (!strcmp(c->op, "!="))
		right = v != w;
	else if (c->op[0] == '<')
		right = v < w || (c->op[1] && v == w);
	else
		right = v > w || (c->op[1] && v == w);
	if (right)
		return 0;
	return fail(r, "expected %s %s %lld at %.3f; it is %lld", c->name, c->op, (long long)w,
		sec(r->now), (long long)v);
}

static int event_run(struct run *r)
{
	const struct when *w = &r->ev->when;
	nsec_t zero = w->kind == WHEN_REL ? r->base : START;
	nsec_t from = zero + w->from, to = zero + w->to;
	int e = 0;

	if (r->ev->kind == EV_OUT)
		return ev_out(r, from, to);
	if (w->kind == WHEN_ANY)
		from = to = r->now;
	advance(r, from, false);
	if (r->trouble)
		return -1;
	r->base = from;
	switch (r->ev->kind) {
	case EV_IN:
		e = ev_in(r);
		break;
	case EV_ICMP_IN:
		e = ev_icmp(r);
		break;
	case EV_CALL:
		e = ev_call(r, to);
		break;
	case EV_CHECK:
		e = ev_check(r);
		break;
	case EV_OUT:
	case EV_NONE:
		break;
	}
	pump(r);
	return r->trouble ? -1 : e;
}

/* After the last line: what was sent before it and no line took. */
static int leftovers(struct run *r)
{
	struct unit *u = TAILQ_FIRST(&r->units);
	struct peer *p = u ? peer_of_tuple(r, &u->out.tuple) : NULL;
	struct seg s;
	char text[SEG_TEXT];

	if (!r->opt->strict || !p || u->at >= r->base)
		return 0;
	seg_to_script(&u->peer, &u->out.seg, &s);
	seg_text(&s, text);
	return fail(r, "no line asks for `> %s` at %.3f", text, sec(u->at));
}

static int events_run(struct run *r)
{
	for (unsigned i = 0; i < r->script->n; i++) {
		r->ev = &r->script->ev[i];
		if (r->blocked && r->ev->when.kind != WHEN_ANY) {
			nsec_t at =
				(r->ev->when.kind == WHEN_REL ? r->base : START) + r->ev->when.from;

			if (at > r->blocked_until) {
				advance(r, r->blocked_until, false);
				if (blocked_return(r))
					return -1;
			}
		}
		if (event_run(r))
			return -1;
	}
	if (r->blocked) {
		advance(r, r->blocked_until, false);
		if (blocked_return(r))
			return -1;
	}
	return leftovers(r);
}

static enum host_via via_of(const struct script *s, const struct run_options *opt)
{
	return s->frames && opt->via == VIA_ENGINE ? VIA_STACK : opt->via;
}

int script_run(const struct script *s, const struct run_options *opt, char text[RUN_TEXT])
{
	struct run *r = calloc(1, sizeof(*r));
	struct err err = {.text = ""};
	struct tcp_conf conf;
	struct unit *u;
	int e = -1;

	r->script = s;
	r->opt = opt;
	r->text = text;
	r->now = r->base = START;
	TAILQ_INIT(&r->units);
	peers_init(r);
	if (!conf_of_script(s, &conf, &err) &&
		!host_init(&r->host, &conf, s->ip6, via_of(s, opt), opt->seed, START, &err)) {
		e = events_run(r);
		while ((u = TAILQ_FIRST(&r->units)))
			unit_done(r, u);
		host_fini(&r->host);
	} else {
		fail(r, "%s", err.text);
	}
	free(r);
	return e;
}
