/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port: identity, counters, the checked pull and the fitted push. It owns what every kind of port
 * has in common and must not know a ring, a socket or the switch.
 *
 * port_push() takes a run of frames apart into three kinds of pieces, in order:
 *
 *	plain    go to ops->push as they are, as many neighbours as there are in one call
 *	csum     neighbours are copied head by head into the scratch batch, finished, pushed
 *	segment  one super-packet is cut batch by batch; what the receiver did not take is cut again
 *	         from the segment at which it stopped
 *
 * A piece that is not taken whole ends the push. Every frame is taken, dropped or left exactly
 * once.
 */
#include "port/port.h"

#include <string.h>

#include "wire/eth.h"

void port_init(struct port *p, const struct port_ops *ops, const char *name, struct loop *loop,
	struct log *log)
{
	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->loop = loop;
	p->log = log;
	for (unsigned i = 0; i < sizeof(p->name) - 1 && name[i]; i++)
		p->name[i] = name[i];
	p->q.port = p;
	TAILQ_INIT(&p->q.fab.waiters);
	p->q.fab.wait_timer.at = NSEC_NEVER;
}

void port_set_link(struct port *p, bool up)
{
	if (p->link == up)
		return;
	p->link = up;
	if (p->events)
		p->events->link(p->events_ctx, p);
}

/* drops */

void port_drop_in(struct portq *q, const struct frame *f, enum drop why)
{
	q->drop_in[why]++;
	q->last_drop_in = why;
	if (__builtin_expect(!!q->port->pcap, 0))
		q->port->capture(q->port->pcap, PCAP_IN, f, why);
}

void port_drop_out(struct portq *q, const struct frame *f, enum drop why)
{
	q->drop_out[why]++;
	q->last_drop_out = why;
	q->lost_out++;
	q->lost_out_bytes += frame_len(f);
	if (__builtin_expect(!!q->port->pcap, 0))
		q->port->capture(q->port->pcap, PCAP_OUT, f, why);
}

/* in */

unsigned port_pull(struct portq *q, struct burst *b, unsigned max)
{
	unsigned n;

	b->n = 0;
	b->niov = 0;
	b->bytes = 0;
	n = q->port->ops->pull(q, b, max);
	b->n = n;
	for (struct frame *f = b->f, *end = f + n; f < end; f++) {
		uint32_t len = frame_len(f);

		if (__builtin_expect(f->drop, DROP_NONE))
			continue;
		if (__builtin_expect(len - ETH_HLEN > FRAME_MAX - ETH_HLEN, 0)) /* both ends */
			f->drop = len < ETH_HLEN ? DROP_SHORT : DROP_TOO_LONG;
		else
			f->drop = offload_check(f);
	}
	return n;
}

static void settle_dropped(struct portq *q, const struct burst *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (b->f[i].drop)
			port_drop_in(q, &b->f[i], b->f[i].drop);
	}
}

/* Super-packets among them that are not dropped. */
static unsigned count_gso(const struct frame *f, const struct frame *end)
{
	unsigned n = 0;

	for (; f < end; f++)
		n += f->off.gso && !f->drop;
	return n;
}

void port_settle(struct portq *q, struct burst *b, unsigned n)
{
	const struct frame *end = b->f + n;
	unsigned dropped = 0, gso = 0;
	uint64_t bytes = 0;

	for (const struct frame *f = b->f; f < end; f++) {
		bytes += frame_len(f);
		gso |= f->off.gso;
		dropped |= f->drop;
	}
	q->in.frames += n;
	q->in.bytes += bytes;
	if (gso)
		q->in.gso += count_gso(b->f, end);
	if (__builtin_expect(!!q->port->pcap, 0)) {
		for (unsigned i = 0; i < n; i++) {
			if (!b->f[i].drop) /* the others are captured with their reason below */
				q->port->capture(q->port->pcap, PCAP_IN, &b->f[i], DROP_NONE);
		}
	}
	if (__builtin_expect(dropped, 0))
		settle_dropped(q, b, n);
	q->port->ops->settle(q, b, n);
}

/* out */

/* Frames that are delivered as they are, and what they count. */
struct run {
	unsigned n, gso;
	uint64_t bytes;
};

static inline void run_add(struct run *r, const struct frame *f)
{
	r->bytes += frame_len(f);
	r->gso += f->off.gso != OFF_GSO_NONE;
}

static struct run run_of(const struct frame *f, unsigned n)
{
	struct run r = {.n = n};

	for (unsigned i = 0; i < n; i++)
		run_add(&r, &f[i]);
	return r;
}

/* Push frames that fit, and count what was delivered; a port that drops one inside says so. */
static unsigned push_counted(struct portq *q, const struct frame *f, struct run run)
{
	uint64_t lost = q->lost_out, lost_bytes = q->lost_out_bytes;
	unsigned took = q->port->ops->push(q, f, run.n);

	if (took < run.n)
		run = run_of(f, took);
	q->out.frames += took - (q->lost_out - lost);
	q->out.bytes += run.bytes - (q->lost_out_bytes - lost_bytes);
	q->out.gso += run.gso;
	return took;
}

/* With a capture frames go one by one, so that each is written once, as delivered or as dropped. */
static unsigned push_captured(struct portq *q, const struct frame *f, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t lost = q->lost_out;

		if (!push_counted(q, &f[i], run_of(&f[i], 1)))
			return i;
		if (q->lost_out == lost)
			q->port->capture(q->port->pcap, PCAP_OUT, &f[i], DROP_NONE);
	}
	return n;
}

static unsigned push_out(struct portq *q, const struct frame *f, struct run run)
{
	if (__builtin_expect(!!q->port->pcap, 0))
		return push_captured(q, f, run.n);
	return push_counted(q, f, run);
}

/* The IP datagram a frame that is no super-packet carries: all behind Ethernet header and tags. */
static uint32_t plain_ip_size(const struct frame *f)
{
	uint32_t hlen = ETH_HLEN;

	for (unsigned tags = 0; tags < 2 && hlen + VLAN_HLEN <= f->head_len; tags++) {
		uint16_t type = get_be16(f->head + hlen - 2);

		if (type != ETH_TYPE_VLAN && type != ETH_TYPE_QINQ)
			break;
		hlen += VLAN_HLEN;
	}
	return frame_len(f) - hlen;
}

static bool exceeds_mtu(const struct frame *f, uint32_t mtu)
{
	if (!mtu || frame_len(f) <= mtu + ETH_HLEN)
		return false;
	return (f->off.gso ? offload_ip_size(f) : plain_ip_size(f)) > mtu;
}

/* The frames from the front that the receiver takes as they are. */
static struct run plain_run(const struct port *p, const struct frame *f, unsigned n)
{
	uint32_t limit = p->mtu ? p->mtu + ETH_HLEN : UINT32_MAX;
	const struct frame *end = f + n, *first = f;
	struct run r = {0};

	for (; f < end && !f->drop; f++) {
		if (__builtin_expect((f->off.flags | f->off.gso) || frame_len(f) > limit, 0) &&
			(fit_need(f, p->accepts) != FIT_NONE || exceeds_mtu(f, p->mtu)))
			break;
		run_add(&r, f);
	}
	r.n = (unsigned)(f - first);
	return r;
}

/* Neighbours that need their checksum finished, from the front: how many were taken or dropped. */
static unsigned push_csum(
	struct portq *q, const struct frame *f, unsigned n, struct fit *fit, bool *full)
{
	enum drop why = DROP_NONE;
	unsigned i, took;

	fit_reset(fit);
	if (f->ntail > FIT_IOV)
		why = DROP_NO_OFFLOAD;
	for (i = 0; !why && i < n && fit->n < FIT_BATCH; i++) {
		if (f[i].drop || fit_need(&f[i], q->port->accepts) != FIT_CSUM ||
			exceeds_mtu(&f[i], q->port->mtu) || fit->niov + f[i].ntail > FIT_IOV)
			break;
		why = fit_csum(fit, &f[i]);
		if (why)
			break; /* i is its place */
	}
	took = fit->n ? push_out(q, fit->f, run_of(fit->f, fit->n)) : 0;
	q->fit_csum += took;
	*full = took < fit->n;
	if (why && !*full) { /* all before it are gone: now it is its turn */
		port_drop_out(q, &f[i], why);
		took++;
	}
	return took;
}

/* One super-packet from segment *resume on: true if it is gone, false if the receiver is full. */
static bool push_segments(struct portq *q, const struct frame *f, uint32_t *resume, struct fit *fit)
{
	unsigned total = fit_segments(f), took;
	enum drop why;

	while (*resume < total) {
		fit_reset(fit);
		why = fit_segment(fit, f, *resume, q->port->accepts);
		if (why || !fit->n) {
			port_drop_out(q, f, why ? why : DROP_NO_OFFLOAD);
			break;
		}
		took = push_out(q, fit->f, run_of(fit->f, fit->n));
		q->fit_segments += took;
		*resume += took;
		if (took < fit->n)
			return false;
	}
	*resume = 0;
	return true;
}

/* The first frame is not plain, or is in the middle of its delivery. */
static unsigned push_fitted(struct portq *q, const struct frame *f, unsigned n, uint32_t *resume,
	struct fit *fit, bool *full)
{
	if (f->drop) {
		*resume = 0;
		return 1;
	}
	if (exceeds_mtu(f, q->port->mtu)) {
		port_drop_out(q, f, DROP_TOO_BIG);
		*resume = 0;
		return 1;
	}
	if (*resume || fit_need(f, q->port->accepts) == FIT_SEGMENT) {
		*full = !push_segments(q, f, resume, fit);
		return !*full;
	}
	return push_csum(q, f, n, fit, full);
}

static void drop_all(struct portq *q, const struct frame *f, unsigned n, enum drop why)
{
	for (unsigned i = 0; i < n; i++) {
		if (!f[i].drop)
			port_drop_out(q, &f[i], why);
	}
}

unsigned port_push(
	struct portq *q, const struct frame *f, unsigned n, uint32_t *resume, struct fit *scratch)
{
	bool full = false;
	unsigned i = 0;

	if (__builtin_expect(!q->port->link, 0)) {
		drop_all(q, f, n, DROP_LINK_DOWN);
		*resume = 0;
		return n;
	}
	if (n && !f->off.gso)
		*resume = 0; /* a sender that changed its frame meanwhile harms only itself */
	while (i < n && !full) {
		struct run run = {0};

		if (!*resume)
			run = plain_run(q->port, f + i, n - i);
		if (run.n) {
			unsigned took = push_out(q, f + i, run);

			i += took;
			full = took < run.n;
		} else {
			i += push_fitted(q, f + i, n - i, resume, scratch, &full);
		}
	}
	return i;
}
