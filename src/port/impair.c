/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair: the operations around another port's.
 *
 * The wrapped port's `ops` point into struct impair, so from a queue to the wrapping is one step
 * back; the port's own operations are called with the same queue. A frame that comes is judged
 * (impair_fate.c), copied with a time (impair_delay.c), and goes on when that time has come: inward
 * when the network pulls, outward at flush or by a timer.
 *
 * Two departures from a plain port: push takes everything (what does not fit is the bad network's
 * loss, as behind a real bottleneck), and where the port itself has no room, due frames wait and are
 * tried again soon.
 */
#include "port/impair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame/offload.h"
#include "port/impair_int.h"
#include "wire/eth.h"

#define REORDER_MAX (10 * NSEC_PER_MSEC) /* a held frame goes then, even if none follows */
#define RETRY       (50 * NSEC_PER_USEC) /* while the port has no room */

struct way {
	const struct impair_rules *rules;
	struct fates fates;
	struct delay delay;
	struct delayed *held; /* waits for the next to overtake it */
	nsec_t busy;          /* the bottleneck is, until then */
	nsec_t last_due;
	struct impair_counters count;
	struct loop_timer timer;
};

struct impair {
	struct port_ops ops;          /* what the port shows now */
	const struct port_ops *inner; /* its own */
	struct port *port;
	struct impair_conf conf;
	struct way in, out;
	struct burst burst; /* the inner port's, or what goes to it */
	struct fit cut;
};

static struct impair *impair_of(const struct portq *q)
{
	const struct port_ops *ops = q->port->ops;

	return (struct impair *)(uintptr_t)((const char *)ops - offsetof(struct impair, ops));
}

/* ---- one frame ---- */

/* When it comes out at the other end. The order stays, but for frames that are held. */
static nsec_t way_due(struct way *w, uint32_t len, const struct fate *x, nsec_t now)
{
	const struct impair_rules *r = w->rules;
	nsec_t due = now;

	if (r->rate) {
		w->busy = w->busy > now ? w->busy : now;
		w->busy += (nsec_t)((double)len * 8e9 / (double)r->rate);
		due = w->busy;
	}
	due += r->delay + x->jitter;
	if (due < w->last_due)
		due = w->last_due;
	w->last_due = due;
	return due;
}

static bool way_full(const struct way *w, uint32_t len, nsec_t now)
{
	const struct impair_rules *r = w->rules;

	if (w->delay.n >= r->limit)
		return true;
	if (!r->limit_bytes || !r->rate || w->busy <= now)
		return false;
	return (double)(w->busy - now) * (double)r->rate / 8e9 + len > r->limit_bytes;
}

static void way_drop(struct impair *m, struct way *w, const struct frame *f)
{
	if (w == &m->in)
		port_drop_in(&m->port->q, f, DROP_IMPAIRED);
	else
		port_drop_out(&m->port->q, f, DROP_IMPAIRED);
}

/* One bit behind the Ethernet header; whoever checks will find it. */
static void flip(struct way *w, struct delayed *s, uint32_t where)
{
	uint32_t bits = (s->len - ETH_HLEN) * 8;

	where %= bits;
	*delay_byte(&w->delay, s, ETH_HLEN + where / 8) ^= (uint8_t)(1u << where % 8);
	s->off = (struct offload){0};
}

/* A copy of it waits; `extra`: behind the one it copies. */
static void way_put(
	struct impair *m, struct way *w, const struct frame *f, const struct fate *x, nsec_t now)
{
	uint32_t len = frame_len(f);
	struct delayed *s = way_full(w, len, now) ? NULL : delay_copy(&w->delay, f);
	nsec_t due;

	if (!s) {
		w->count.limit++;
		way_drop(m, w, f);
		return;
	}
	due = way_due(w, len, x, now);
	if (x->what & FATE_CORRUPT && len > ETH_HLEN) {
		flip(w, s, x->where);
		w->count.corrupt++;
	}
	if (x->what & FATE_HELD && !w->held) {
		w->count.held++;
		w->held = s;
		delay_put(&w->delay, s, due + REORDER_MAX);
		return;
	}
	delay_put(&w->delay, s, due);
	if (w->held) { /* overtaken: now it may go */
		struct delayed *h = w->held;

		w->held = NULL;
		TAILQ_REMOVE(&w->delay.due, h, entry);
		w->delay.n--;
		delay_put(&w->delay, h, due);
	}
}

/* A frame that is to be spoiled must have its checksum, or the receiver would make it right. */
static const struct frame *finished(struct impair *m, const struct frame *f)
{
	if (!(f->off.flags & OFF_NEEDS_CSUM))
		return f;
	fit_reset(&m->cut);
	return fit_csum(&m->cut, f) == DROP_NONE ? &m->cut.f[0] : f;
}

static void way_judge(struct impair *m, struct way *w, const struct frame *f, nsec_t now)
{
	struct fate x = fate_next(&w->fates);

	w->count.frames++;
	if (w->rules->mtu_hole && offload_ip_size(f) > w->rules->mtu_hole) {
		w->count.hole++;
		way_drop(m, w, f);
		return;
	}
	if (x.what & FATE_LOST) {
		w->count.lost++;
		way_drop(m, w, f);
		return;
	}
	if (x.what & FATE_DUP) {
		struct fate once = {.jitter = x.jitter};

		w->count.dup++;
		way_put(m, w, f, &once, now);
	}
	way_put(m, w, x.what & FATE_CORRUPT ? finished(m, f) : f, &x, now);
}

/* Cut a super-packet, batch by batch; `victim`: this segment alone is judged, the rest goes on. */
static void way_cut(struct impair *m, struct way *w, const struct frame *f, nsec_t now)
{
	/* segments lie in m->cut, which finishing a checksum needs as well: so they have it */
	unsigned accepts = w->rules->corrupt || w->fates.replay ? 0 : ACCEPT_CSUM;
	unsigned total = fit_segments(f);

	for (unsigned first = 0; first < total; first += m->cut.n) {
		fit_reset(&m->cut);
		if (fit_segment(&m->cut, f, first, accepts) != DROP_NONE) {
			w->count.lost++;
			way_drop(m, w, f);
			return;
		}
		for (unsigned i = 0; i < m->cut.n; i++)
			way_judge(m, w, &m->cut.f[i], now);
	}
}

static void way_take(struct impair *m, struct way *w, struct frame *f, nsec_t now)
{
	static const struct fate nothing;

	if (f->drop || frame_len(f) < ETH_HLEN || frame_len(f) > FRAME_MAX ||
		offload_check(f) != DROP_NONE)
		way_put(m, w, f, &nothing, now); /* refused by whoever checks next */
	else if (f->off.gso && (w->rules->unit == IMPAIR_WIRE || w->rules->corrupt))
		way_cut(m, w, f, now);
	else
		way_judge(m, w, f, now);
}

static void way_timer(struct impair *m, struct way *w)
{
	nsec_t at = delay_deadline(&w->delay);

	if (at != NSEC_NEVER)
		loop_timer_set(m->port->loop, &w->timer, at);
}

static void way_take_off(struct way *w, struct delayed *s)
{
	if (w->held == s)
		w->held = NULL;
	delay_take(&w->delay, s);
}

/* ---- into the network ---- */

static void in_fill(struct impair *m, struct portq *q)
{
	struct burst *b = &m->burst;
	nsec_t now = loop_now(m->port->loop);

	b->n = b->niov = b->bytes = 0;
	b->n = m->inner->pull(q, b, BURST_FRAMES);
	for (unsigned i = 0; i < b->n; i++)
		way_take(m, &m->in, &b->f[i], now);
	if (b->n)
		m->inner->settle(q, b, b->n);
}

static unsigned impair_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct impair *m = impair_of(q);
	nsec_t now = loop_now(m->port->loop);
	struct delayed *s;

	if (!m->port->link)
		return 0;
	in_fill(m, q);
	TAILQ_FOREACH (s, &m->in.delay.due, entry) {
		if (s->due > now || b->n == max || b->bytes >= BURST_BYTES)
			break;
		if (!delay_lend(&m->in.delay, s, b))
			break;
	}
	return b->n;
}

static void impair_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct impair *m = impair_of(q);

	(void)b;
	while (n--)
		way_take_off(&m->in, TAILQ_FIRST(&m->in.delay.due));
}

static bool impair_arm(struct portq *q)
{
	struct impair *m = impair_of(q);

	if (delay_due(&m->in.delay, loop_now(m->port->loop)) || m->inner->arm(q))
		return true;
	way_timer(m, &m->in);
	return false;
}

static void in_expired(struct loop_timer *t)
{
	struct way *w = (struct way *)((char *)t - offsetof(struct way, timer));
	struct impair *m = (struct impair *)((char *)w - offsetof(struct impair, in));

	port_ready(&m->port->q);
}

/* ---- to the port ---- */

static unsigned impair_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct impair *m = impair_of(q);
	nsec_t now = loop_now(m->port->loop);

	for (unsigned i = 0; i < n; i++) {
		struct frame g = f[i];

		way_take(m, &m->out, &g, now);
	}
	return n;
}

/* Its driver may have changed meanwhile, and take less. */
static bool out_fits(const struct impair *m, const struct frame *f)
{
	return m->port->link && fit_need(f, m->port->accepts) == FIT_NONE;
}

/* A batch of what is due; false: no more, or no room there. */
static bool out_batch(struct impair *m, nsec_t now)
{
	struct burst *b = &m->burst;
	struct delayed *s = delay_due(&m->out.delay, now);
	unsigned took;

	if (!s)
		return false;
	b->n = b->niov = b->bytes = 0;
	for (; s && s->due <= now && b->n < BURST_FRAMES; s = TAILQ_NEXT(s, entry)) {
		if (!delay_lend(&m->out.delay, s, b))
			break;
		if (!out_fits(m, &b->f[b->n - 1])) {
			b->n--;
			break;
		}
	}
	took = b->n ? m->inner->push(&m->port->q, b->f, b->n) : 0;
	for (unsigned i = 0; i < took; i++)
		way_take_off(&m->out, TAILQ_FIRST(&m->out.delay.due));
	if (b->n)
		return took == b->n;
	delay_lend(&m->out.delay, TAILQ_FIRST(&m->out.delay.due), b);
	port_drop_out(&m->port->q, &b->f[0], m->port->link ? DROP_NO_OFFLOAD : DROP_LINK_DOWN);
	way_take_off(&m->out, TAILQ_FIRST(&m->out.delay.due));
	return true;
}

static void out_drain(struct impair *m)
{
	nsec_t now = loop_now(m->port->loop);

	while (out_batch(m, now))
		;
	m->inner->flush(&m->port->q);
	if (delay_due(&m->out.delay, now))
		loop_timer_set(m->port->loop, &m->out.timer, now + RETRY);
	else
		way_timer(m, &m->out);
}

static void impair_flush(struct portq *q)
{
	out_drain(impair_of(q));
}

static void out_expired(struct loop_timer *t)
{
	struct way *w = (struct way *)((char *)t - offsetof(struct way, timer));

	out_drain((struct impair *)((char *)w - offsetof(struct impair, out)));
}

static bool impair_arm_room(struct portq *q, uint32_t need)
{
	(void)q;
	(void)need;
	return true;
}

/* ---- on and off ---- */

static void impair_unwrap(struct impair *m)
{
	struct port *p = m->port;

	loop_timer_release(p->loop, &m->in.timer);
	loop_timer_release(p->loop, &m->out.timer);
	if (m->conf.log[0])
		fates_save(&m->in.fates, &m->out.fates, m->conf.log);
	p->ops = m->inner;
	m->port = NULL;
}

static void impair_close(struct port *p)
{
	impair_unwrap(impair_of(&p->q));
	p->ops->close(p);
}

static int way_init(struct way *w, const struct impair_rules *r, uint64_t seed)
{
	w->rules = r;
	w->timer.at = NSEC_NEVER;
	fates_init(&w->fates, r, seed);
	return delay_init(&w->delay, r->limit);
}

static int impair_files(struct impair *m, struct err *err)
{
	int r = 0;

	if (m->conf.replay[0])
		r = fates_load(&m->in.fates, &m->out.fates, m->conf.replay, err);
	if (!r && m->conf.log[0])
		r = fates_want_log(&m->in.fates, &m->out.fates, m->conf.log, err);
	return r;
}

int impair_wrap(struct impair **out, struct port *p, const struct impair_conf *c, struct err *err)
{
	struct impair *m = calloc(1, sizeof(*m));
	int r;

	*out = NULL;
	if (!m)
		return err_set(err, ENOMEM, "impair: no memory");
	m->conf = *c;
	m->inner = p->ops;
	m->ops = (struct port_ops){
		.kind = p->ops->kind,
		.pull = impair_pull,
		.settle = impair_settle,
		.push = impair_push,
		.flush = impair_flush,
		.arm = impair_arm,
		.arm_room = impair_arm_room,
		.close = impair_close,
	};
	r = way_init(&m->in, &m->conf.in, 2 * c->seed);
	if (!r)
		r = way_init(&m->out, &m->conf.out, 2 * c->seed + 1);
	if (!r)
		r = loop_timer_reserve(p->loop, &m->in.timer, in_expired);
	if (!r)
		r = loop_timer_reserve(p->loop, &m->out.timer, out_expired);
	r = r ? err_set(err, -r, "impair: no memory") : impair_files(m, err);
	if (r) {
		loop_timer_release(p->loop, &m->in.timer);
		loop_timer_release(p->loop, &m->out.timer);
		impair_free(m);
		return r;
	}
	m->port = p;
	p->ops = &m->ops;
	*out = m;
	return 0;
}

void impair_free(struct impair *m)
{
	if (!m)
		return;
	if (m->port)
		impair_unwrap(m);
	fates_fini(&m->in.fates);
	fates_fini(&m->out.fates);
	delay_fini(&m->in.delay);
	delay_fini(&m->out.delay);
	free(m);
}

const struct impair_counters *impair_in(const struct impair *m)
{
	return &m->in.count;
}

const struct impair_counters *impair_out(const struct impair *m)
{
	return &m->out.count;
}
