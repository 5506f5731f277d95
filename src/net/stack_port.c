/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_port: port_ops over a stack. Packets that were pulled and not settled stay in `lent` and are
 * lent again. [port/port.h: rules of the call]
 */
#include "net/stack_port.h"

#include <errno.h>
#include <stdlib.h>

struct stack_port {
	struct port port;
	struct stack *stack;
	struct pkt_list lent; /* taken from the stack, not settled */
	unsigned nlent;
	bool armed;
	struct loop_task tell;
	struct loop_timer timer;
	void (*work)(void *);
	void *work_ctx;
};

static struct stack_port *of(struct port *p)
{
	return (struct stack_port *)((char *)p - offsetof(struct stack_port, port));
}

static void retime(struct stack_port *s)
{
	const nsec_t at = stack_deadline(s->stack);

	if (at == NSEC_NEVER)
		loop_timer_cancel(s->port.loop, &s->timer);
	else if (!s->timer.set || s->timer.at != at)
		loop_timer_set(s->port.loop, &s->timer, at);
}

/* Have at least `n` packets at hand, if the stack has them. */
static void fill(struct stack_port *s, unsigned n)
{
	while (s->nlent < n) {
		struct pkt *p = stack_out(s->stack, loop_now(s->port.loop));

		if (!p)
			return;
		STAILQ_INSERT_TAIL(&s->lent, p, entry);
		s->nlent++;
	}
}

void stack_port_kick(struct port *p)
{
	loop_defer(p->loop, &of(p)->tell);
}

static void tell_run(struct loop_task *t)
{
	struct stack_port *s = (struct stack_port *)((char *)t - offsetof(struct stack_port, tell));

	if (s->work)
		s->work(s->work_ctx);
	fill(s, 1);
	retime(s);
	if (s->nlent && s->armed) {
		s->armed = false;
		s->port.q.in.kicks++;
		port_ready(&s->port.q);
	}
}

static void expired(struct loop_timer *t)
{
	struct stack_port *s =
		(struct stack_port *)((char *)t - offsetof(struct stack_port, timer));

	stack_timer(s->stack, loop_now(s->port.loop));
	retime(s);
	stack_port_kick(&s->port);
}

/* ---- what the host sends ---- */

static bool lend(struct burst *b, struct pkt *p, unsigned n)
{
	if (b->bytes >= BURST_BYTES ||
		!pkt_lend(p, &b->f[n], &b->head[n], &b->iov[b->niov], BURST_IOV - b->niov))
		return false;
	b->niov += b->f[n].ntail;
	b->bytes += p->len;
	return true;
}

static unsigned sp_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct stack_port *s = of(q->port);
	struct pkt *p;
	unsigned n = 0;

	s->armed = false;
	if (max > BURST_FRAMES)
		max = BURST_FRAMES;
	fill(s, max);
	STAILQ_FOREACH (p, &s->lent, entry) {
		if (n == max || !lend(b, p, n))
			break;
		n++;
	}
	b->n = n;
	return n;
}

static void sp_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct stack_port *s = of(q->port);

	(void)b;
	q->in.bufs += n;
	for (; n; n--) {
		struct pkt *p = STAILQ_FIRST(&s->lent);

		STAILQ_REMOVE_HEAD(&s->lent, entry);
		s->nlent--;
		pkt_free(p);
	}
	retime(s);
}

static bool sp_arm(struct portq *q)
{
	struct stack_port *s = of(q->port);

	fill(s, 1);
	s->armed = !s->nlent;
	retime(s);
	return !s->armed;
}

/* ---- what it receives ---- */

static unsigned sp_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct stack_port *s = of(q->port);

	stack_in(s->stack, f, n, loop_now(q->port->loop));
	q->out.bufs += n;
	return n;
}

static void sp_flush(struct portq *q)
{
	stack_port_kick(q->port);
}

static bool sp_arm_room(struct portq *q, uint32_t need)
{
	(void)q;
	(void)need;
	return true; /* what it has no room for it drops, as hosts do */
}

static void sp_close(struct port *p)
{
	struct stack_port *s = of(p);

	port_set_link(p, false);
	s->armed = false;
	loop_undefer(p->loop, &s->tell);
	loop_timer_cancel(p->loop, &s->timer);
}

static const struct port_ops ops = {
	.kind = "host",
	.pull = sp_pull,
	.settle = sp_settle,
	.push = sp_push,
	.flush = sp_flush,
	.arm = sp_arm,
	.arm_room = sp_arm_room,
	.close = sp_close,
};

int stack_port_new(struct port **out, const char *name, struct stack *stack, struct loop *loop,
	struct log *log, struct err *err)
{
	struct stack_port *s;
	int r = port_name_check(name, err);

	*out = NULL;
	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s || loop_timer_reserve(loop, &s->timer, expired)) {
		free(s);
		return err_set(err, ENOMEM, "no memory for the host \"%s\"", name);
	}
	port_init(&s->port, &ops, name, loop, log);
	s->stack = stack;
	s->tell.run = tell_run;
	STAILQ_INIT(&s->lent);
	memcpy(s->port.mac, stack_mac(stack), 6);
	s->port.accepts = ACCEPT_ALL;
	s->port.link = true;
	*out = &s->port;
	stack_port_kick(&s->port);
	return 0;
}

void stack_port_free(struct port *p)
{
	struct stack_port *s;

	if (!p)
		return;
	s = of(p);
	loop_undefer(p->loop, &s->tell);
	loop_timer_release(p->loop, &s->timer);
	while (s->nlent) {
		struct pkt *k = STAILQ_FIRST(&s->lent);

		STAILQ_REMOVE_HEAD(&s->lent, entry);
		s->nlent--;
		pkt_free(k);
	}
	free(s);
}

void stack_port_on_work(struct port *p, void (*work)(void *ctx), void *ctx)
{
	of(p)->work = work;
	of(p)->work_ctx = ctx;
}
