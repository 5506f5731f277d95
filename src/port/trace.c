/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace: the operations around those of every port while one is traced. `struct side` stands in front
 * of one port; the port's own operations are put back during each call of them, because a wrapping
 * (impair, copying) finds itself through port->ops. It must not know a ring, a socket or the switch.
 *
 *	pull(1) -> [look-up noted, counters noted] -> push, flush of others -> settle -> [differences added]
 */
#include "port/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/eth.h"

/* What a receiver had counted when the frame was pulled. */
struct seen {
	struct port_counters out;
	uint64_t fit_csum, fit_segments, lost;
	struct port_rings rings;
};

struct side {
	struct port_ops ops;          /* what the port shows now */
	const struct port_ops *inner; /* its own; NULL: not in use */
	struct port *port;
	struct trace *trace;
	struct seen seen;
};

struct trace {
	struct trace_config c;
	struct loop_task over;
	struct side *source; /* of c.port */
	unsigned n, n_sides;
	bool lent, again;      /* a frame is on loan; the next one is the last one again */
	nsec_t lent_at, spent; /* spent: on push and flush since then */
	struct port_counters in;
	struct port_rings rings;
	struct trace_frame *frame; /* [count] */
	struct side side[];
};

const char *trace_step_name(enum trace_step step)
{
	static const char *const name[TRACE_STEPS] = {"pull", "decide", "push", "flush", "settle"};

	return name[step];
}

static struct side *side_of(const struct portq *q)
{
	const struct port_ops *ops = q->port->ops;

	return (struct side *)(uintptr_t)((const char *)ops - offsetof(struct side, ops));
}

static struct side *side_open(struct portq *q)
{
	struct side *s = side_of(q);

	s->port->ops = s->inner;
	return s;
}

static void side_shut(struct side *s)
{
	s->port->ops = &s->ops;
}

/* ---- differences ---- */

static void rings_of(const struct side *s, struct port_rings *r)
{
	memset(r, 0, sizeof(*r));
	if (s->inner->rings)
		s->inner->rings(&s->port->q, r);
}

static void see(struct side *s)
{
	const struct portq *q = &s->port->q;

	s->seen.out = q->out;
	s->seen.fit_csum = q->fit_csum;
	s->seen.fit_segments = q->fit_segments;
	s->seen.lost = q->lost_out;
	rings_of(s, &s->seen.rings);
}

static struct trace_to *to_find(struct trace_frame *r, const char *name)
{
	unsigned i = 0;

	while (i < r->n_to && i < TRACE_TO && strcmp(r->to[i].name, name) != 0)
		i++;
	if (i == r->n_to || i == TRACE_TO)
		r->n_to++;
	if (i == TRACE_TO)
		return NULL;
	memcpy(r->to[i].name, name, NAME_LEN);
	return &r->to[i];
}

/* What this receiver has had since see(). */
static void to_add(struct trace_frame *r, const struct side *s)
{
	const struct portq *q = &s->port->q;
	const struct seen *w = &s->seen;
	struct port_rings now;
	struct trace_to *to;

	if (q->out.frames == w->out.frames && q->lost_out == w->lost && q->out.bufs == w->out.bufs)
		return;
	to = to_find(r, s->port->name);
	if (!to)
		return;
	rings_of(s, &now);
	to->frames += q->out.frames - w->out.frames;
	to->bytes += q->out.bytes - w->out.bytes;
	to->bufs += q->out.bufs - w->out.bufs;
	to->notify += q->out.notify - w->out.notify;
	to->fit_csum += q->fit_csum - w->fit_csum;
	to->fit_segments += q->fit_segments - w->fit_segments;
	to->drops += q->lost_out - w->lost;
	if (q->lost_out != w->lost)
		to->drop = q->last_drop_out;
	to->rings = s->inner->rings;
	to->merged = now.merged;
	to->wanted += now.out.notify - w->rings.out.notify;
	to->unwanted += now.out.suppressed - w->rings.out.suppressed;
}

/* ---- the traced port ---- */

static void note_frame(struct trace *t, struct trace_frame *r, const struct frame *f)
{
	const struct port_rings was = t->rings;

	r->len = frame_len(f);
	memset(r->head, 0, sizeof(r->head));
	memcpy(r->head, f->head, f->head_len < sizeof(r->head) ? f->head_len : sizeof(r->head));
	r->head_len = f->head_len;
	r->pieces = f->ntail;
	r->off = f->off;
	r->rings = t->source->inner->rings;
	rings_of(t->source, &t->rings);
	r->desc = (unsigned)(t->rings.in.desc - was.in.desc);
	r->indirect = (unsigned)(t->rings.in.indirect - was.in.indirect);
	r->chain_pieces = t->rings.pieces;
	r->chain_bytes = t->rings.bytes;
	r->hdr_len = t->rings.hdr_len;
	if (f->head_len >= ETH_HLEN && !f->drop)
		t->c.look_up(t->c.look_up_ctx, f, r);
}

static unsigned trace_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct side *s = side_open(q);
	struct trace *t = s->trace;
	bool on = s == t->source && t->n < t->c.count && max;
	struct trace_frame *r = &t->frame[t->n];
	nsec_t start = on ? t->c.clock() : 0;
	unsigned n;

	if (on)
		rings_of(s, &t->rings);
	n = s->inner->pull(q, b, on ? 1 : max);
	side_shut(s);
	if (!on || !n)
		return n;
	if (!t->again) {
		memset(r, 0, sizeof(*r));
		r->before = t->n ? 0 : q->fab.resume;
	}
	r->ns[TRACE_PULL] += t->c.clock() - start;
	note_frame(t, r, &b->f[0]);
	for (unsigned i = 0; i < t->n_sides; i++)
		see(&t->side[i]);
	t->in = q->in;
	t->lent = true;
	t->spent = 0;
	t->lent_at = t->c.clock();
	return n;
}

static void note_settled(struct trace *t, const struct portq *q, bool taken, nsec_t start)
{
	struct trace_frame *r = &t->frame[t->n];
	struct port_rings now;

	r->ns[TRACE_SETTLE] += t->c.clock() - start;
	r->ns[TRACE_DECIDE] += start - t->lent_at - t->spent;
	for (unsigned i = 0; i < t->n_sides; i++) {
		if (&t->side[i] != t->source)
			to_add(r, &t->side[i]);
	}
	rings_of(t->source, &now);
	r->wanted += now.in.notify - t->rings.in.notify;
	r->unwanted += now.in.suppressed - t->rings.in.suppressed;
	r->notify += q->in.notify - t->in.notify;
	r->back += !taken;
	t->lent = false;
	t->again = !taken;
	t->n += taken;
	if (t->n == t->c.count)
		loop_defer(t->c.port->loop, &t->over);
}

static void trace_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct side *s = side_open(q);
	struct trace *t = s->trace;
	bool on = s == t->source && t->lent;
	nsec_t start = on ? t->c.clock() : 0;

	if (on && n)
		t->frame[t->n].drop = b->f[0].drop;
	s->inner->settle(q, b, n);
	side_shut(s);
	if (on)
		note_settled(t, q, n > 0, start);
}

/* ---- any port ---- */

static void spend(struct trace *t, enum trace_step step, nsec_t start)
{
	nsec_t ns = t->c.clock() - start;

	t->frame[t->n].ns[step] += ns;
	t->spent += ns;
}

static unsigned trace_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct side *s = side_open(q);
	struct trace *t = s->trace;
	nsec_t start = t->lent ? t->c.clock() : 0;
	unsigned took = s->inner->push(q, f, n);

	side_shut(s);
	if (t->lent)
		spend(t, TRACE_PUSH, start);
	return took;
}

static void trace_flush(struct portq *q)
{
	struct side *s = side_open(q);
	struct trace *t = s->trace;
	nsec_t start = t->lent ? t->c.clock() : 0;

	s->inner->flush(q);
	side_shut(s);
	if (t->lent)
		spend(t, TRACE_FLUSH, start);
}

static bool trace_arm(struct portq *q)
{
	struct side *s = side_open(q);
	bool more = s->inner->arm(q);

	side_shut(s);
	return more;
}

static bool trace_arm_room(struct portq *q, uint32_t need)
{
	struct side *s = side_open(q);
	bool more = s->inner->arm_room(q, need);

	side_shut(s);
	return more;
}

/* ---- on and off ---- */

static void side_off(struct side *s)
{
	if (s->inner)
		s->port->ops = s->inner;
	s->inner = NULL;
}

/* trace_free() comes first; should it not, the port is at least left as it was. */
static void trace_close(struct port *p)
{
	struct side *s = side_of(&p->q);

	side_off(s);
	p->ops->close(p);
}

static void side_on(struct trace *t, struct side *s, struct port *p)
{
	s->port = p;
	s->trace = t;
	s->inner = p->ops;
	s->ops = (struct port_ops){
		.kind = p->ops->kind,
		.pull = trace_pull,
		.settle = trace_settle,
		.push = trace_push,
		.flush = trace_flush,
		.arm = trace_arm,
		.arm_room = trace_arm_room,
		.close = trace_close,
		.rings = p->ops->rings,
	};
	p->ops = &s->ops;
	if (p == t->c.port)
		t->source = s;
}

static void trace_over(struct loop_task *task)
{
	struct trace *t = (struct trace *)(void *)((char *)task - offsetof(struct trace, over));

	t->c.done(t->c.ctx);
}

int trace_new(struct trace **out, const struct trace_config *c, struct err *err)
{
	unsigned n = 0;
	struct trace *t;

	*out = NULL;
	for (struct port *p = c->first; p; p = TAILQ_NEXT(p, entry), n++) {
		if (p->ops->pull == trace_pull)
			return err_set(err, EBUSY,
				"port '%s' is traced already, and a network has one trace at a "
				"time; wait until it has ended",
				side_of(&p->q)->trace->c.port->name);
	}
	t = calloc(1, sizeof(*t) + n * sizeof(t->side[0]));
	if (t)
		t->frame = calloc(c->count + 1, sizeof(t->frame[0])); /* one more: nobody's */
	if (!t || !t->frame) {
		free(t);
		return err_set(err, ENOMEM, "trace: no memory");
	}
	t->c = *c;
	t->over.run = trace_over;
	for (struct port *p = c->first; p; p = TAILQ_NEXT(p, entry))
		side_on(t, &t->side[t->n_sides++], p);
	*out = t;
	return 0;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	loop_undefer(t->c.port->loop, &t->over);
	for (unsigned i = 0; i < t->n_sides; i++)
		side_off(&t->side[i]);
	free(t->frame);
	free(t);
}

unsigned trace_count(const struct trace *t)
{
	return t->n;
}

const struct trace_frame *trace_frame(const struct trace *t, unsigned i)
{
	return &t->frame[i];
}
