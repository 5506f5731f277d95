/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_nic: one task of the loop: receive a few bursts, give the sockets their turn, send what there
 * is, arm. A run is bounded; what is left runs in the next round.
 */
#include "net/stack_nic.h"

#include <errno.h>
#include <stdlib.h>

#include "net/tcp.h"
#include "port/vdrv.h"

#define BURSTS 8 /* of each direction in one run */

struct stack_nic {
	struct stack *stack;
	struct port *drv;
	struct loop *loop;
	struct loop_task task;
	struct loop_timer timer;
	struct pkt *out[BURST_FRAMES]; /* taken from the stack, not from us */
	unsigned nout, first;
	bool blocked;     /* waits for room in the ring */
	uint64_t waiters; /* accounts that began to wait, when it was last looked */
	void (*work)(void *);
	void *work_ctx;
	struct burst b;
};

static void retime(struct stack_nic *s)
{
	const nsec_t at = stack_deadline(s->stack);

	if (at == NSEC_NEVER)
		loop_timer_cancel(s->loop, &s->timer);
	else if (!s->timer.set || s->timer.at != at)
		loop_timer_set(s->loop, &s->timer, at);
}

/* ---- up ---- */

static unsigned receive(struct stack_nic *s, nsec_t now)
{
	struct pkt *in[BURST_FRAMES];
	const unsigned n = vdrv_receive(s->drv, in, BURST_FRAMES);
	unsigned good = 0;

	s->b.niov = 0;
	for (unsigned i = 0; i < n; i++) {
		struct frame *f = &s->b.f[good];

		if (!pkt_lend(in[i], f, &s->b.head[good], &s->b.iov[s->b.niov],
			    BURST_IOV - s->b.niov)) {
			/* pieces ran out: those before it go first */
			stack_in(s->stack, s->b.f, good, now);
			good = s->b.niov = 0;
			f = &s->b.f[0];
			pkt_lend(in[i], f, &s->b.head[0], s->b.iov, BURST_IOV);
		}
		s->b.niov += f->ntail;
		good++;
	}
	if (good)
		stack_in(s->stack, s->b.f, good, now);
	for (unsigned i = 0; i < n; i++)
		pkt_free(in[i]);
	return n;
}

/* ---- down ---- */

static bool refill(struct stack_nic *s, nsec_t now)
{
	if (s->nout)
		return true;
	s->first = 0;
	while (s->nout < BURST_FRAMES && (s->out[s->nout] = stack_out(s->stack, now)))
		s->nout++;
	return s->nout;
}

/* What the host's connections wait for can only be told by completions. */
static void ask_completions(struct stack_nic *s)
{
	const struct tcp_counters *c = tcp_host_counters(stack_tcp(s->stack));
	const uint64_t n = c->autocorked + c->tsq_throttled + stack_counters(s->stack)->udp_waits;

	if (n == s->waiters)
		return;
	s->waiters = n;
	vdrv_arm_done(s->drv);
}

/* One burst; false: nothing more can go now. */
static bool send(struct stack_nic *s, nsec_t now)
{
	unsigned took;

	if (s->blocked || !refill(s, now))
		return false;
	took = vdrv_send(s->drv, s->out + s->first, s->nout);
	s->first += took;
	s->nout -= took;
	if (!s->nout)
		return true;
	s->blocked = !s->drv->ops->arm_room(&s->drv->q, FRAME_MAX);
	return !s->blocked;
}

/* ---- the run ---- */

bool stack_nic_poll(struct stack_nic *s)
{
	const nsec_t now = loop_now(s->loop);
	unsigned got = 0, sent = 0, n;

	for (unsigned i = 0; i < BURSTS && (n = receive(s, now)); i++)
		got += n;
	if (stack_deadline(s->stack) <= now)
		stack_timer(s->stack, now);
	if (s->work)
		s->work(s->work_ctx);
	while (sent < BURSTS && send(s, now))
		sent++;
	if (sent || s->nout)
		vdrv_flush(s->drv);
	ask_completions(s);
	retime(s);
	return got || sent;
}

static void run(struct loop_task *t)
{
	struct stack_nic *s = (struct stack_nic *)((char *)t - offsetof(struct stack_nic, task));

	if (stack_nic_poll(s) || s->drv->ops->arm(&s->drv->q))
		loop_defer(s->loop, &s->task);
}

void stack_nic_kick(struct stack_nic *s)
{
	loop_defer(s->loop, &s->task);
}

static void expired(struct loop_timer *t)
{
	stack_nic_kick((struct stack_nic *)((char *)t - offsetof(struct stack_nic, timer)));
}

/* ---- the driver's events ---- */

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	stack_nic_kick(ctx);
}

static void on_room(void *ctx, struct portq *q)
{
	struct stack_nic *s = ctx;

	(void)q;
	s->blocked = false;
	stack_nic_kick(s);
}

static void on_link(void *ctx, struct port *p)
{
	struct stack_nic *s = ctx;

	s->blocked = false;
	if (p->mtu)
		stack_set_mtu(s->stack, p->mtu);
	if (p->link)
		stack_link_up(s->stack, loop_now(s->loop));
	stack_nic_kick(s);
}

static const struct port_events events = {on_ready, on_room, on_link};

/* ---- life ---- */

int stack_nic_new(struct stack_nic **out, struct stack *stack, struct port *drv, struct loop *loop,
	struct err *err)
{
	struct stack_nic *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s || loop_timer_reserve(loop, &s->timer, expired)) {
		free(s);
		return err_set(err, ENOMEM, "no memory for the host on \"%s\"", drv->name);
	}
	s->stack = stack;
	s->drv = drv;
	s->loop = loop;
	s->task.run = run;
	drv->events_ctx = s;
	drv->events = &events;
	stack_nic_kick(s);
	*out = s;
	return 0;
}

void stack_nic_free(struct stack_nic *s)
{
	if (!s)
		return;
	s->drv->events = NULL;
	s->drv->ops->close(s->drv);
	loop_undefer(s->loop, &s->task);
	loop_timer_release(s->loop, &s->timer);
	for (; s->nout; s->nout--)
		pkt_free(s->out[s->first++]);
	free(s);
}

void stack_nic_on_work(struct stack_nic *s, void (*work)(void *ctx), void *ctx)
{
	s->work = work;
	s->work_ctx = ctx;
}
