/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join: two directions, each: pull a burst, push it to the other side, settle what was taken. A side
 * without room stops its direction until it has some; a side without frames is armed. A run moves a
 * bounded number of bursts, so that others on the loop have their turn.
 */
#include "net/join.h"

#include <errno.h>
#include <stdlib.h>

#define BURSTS 16 /* of one direction in one run */
#define BYTES                                                                                      \
	(128u << 10) /* the same: then whoever reads them has his turn, while they are in the cache */

struct side {
	struct port *port;
	struct side *other;
	bool ready;   /* frames may be there */
	bool waiting; /* for room at the other side */
	unsigned max; /* frames of the next burst: about BYTES */
	uint32_t resume;
};

struct join {
	struct side side[2];
	struct loop *loop;
	struct loop_task task;
	struct burst burst;
	struct fit fit;
	void (*link)(void *, struct port *);
	void *link_ctx;
};

static struct side *side_of(struct join *j, const struct port *p)
{
	return &j->side[p == j->side[1].port];
}

static void on_ready(void *ctx, struct portq *q)
{
	struct join *j = ctx;

	side_of(j, q->port)->ready = true;
	loop_defer(j->loop, &j->task);
}

/* q has room: it is the other side that waits. */
static void on_room(void *ctx, struct portq *q)
{
	struct join *j = ctx;
	struct side *s = side_of(j, q->port)->other;

	s->waiting = false;
	s->ready = true;
	loop_defer(j->loop, &j->task);
}

static void on_link(void *ctx, struct port *p)
{
	struct join *j = ctx;

	j->side[0].ready = j->side[1].ready = true;
	j->side[0].waiting = j->side[1].waiting = false;
	loop_defer(j->loop, &j->task);
	if (j->link)
		j->link(j->link_ctx, p);
}

static const struct port_events events = {on_ready, on_room, on_link};

/* Bursts of super-packets are short ones. */
static void learn(struct side *s, unsigned n, uint32_t bytes)
{
	s->max = bytes > BYTES ? (unsigned)((uint64_t)n * BYTES / bytes) : 2 * s->max;
	if (!s->max)
		s->max = 1;
	if (s->max > BURST_FRAMES)
		s->max = BURST_FRAMES;
}

/* One burst; false: nothing more can be done now. */
static bool move(struct join *j, struct side *s)
{
	struct portq *from = &s->port->q, *to = &s->other->port->q;
	const unsigned n = port_pull(from, &j->burst, s->max);
	unsigned took;

	if (!n) {
		s->ready = s->port->ops->arm(from);
		return s->ready;
	}
	learn(s, n, j->burst.bytes);
	took = port_push(to, j->burst.f, n, &s->resume, &j->fit);
	port_settle(from, &j->burst, took);
	to->port->ops->flush(to);
	if (took == n)
		return true;
	s->waiting = !to->port->ops->arm_room(to, FRAME_MAX);
	return !s->waiting;
}

static void run(struct loop_task *t)
{
	struct join *j = (struct join *)((char *)t - offsetof(struct join, task));

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &j->side[i];
		uint32_t bytes = 0;

		for (unsigned n = 0; n < BURSTS && bytes < BYTES && s->ready && !s->waiting; n++) {
			if (!move(j, s))
				break;
			bytes += j->burst.bytes;
		}
		if (s->ready && !s->waiting)
			loop_defer(j->loop, &j->task);
	}
}

int join_new(struct join **out, struct port *a, struct port *b, struct loop *loop, struct err *err)
{
	struct join *j = malloc(sizeof(*j));

	*out = j;
	if (!j)
		return err_set(
			err, ENOMEM, "no memory to join \"%s\" and \"%s\"", a->name, b->name);
	j->loop = loop;
	j->task = (struct loop_task){.run = run};
	j->link = NULL;
	j->side[0] = (struct side){.port = a, .other = &j->side[1], .ready = true};
	j->side[1] = (struct side){.port = b, .other = &j->side[0], .ready = true};
	for (unsigned i = 0; i < 2; i++) {
		j->side[i].max = BURST_FRAMES;
		j->side[i].port->events_ctx = j;
		j->side[i].port->events = &events;
	}
	loop_defer(loop, &j->task);
	return 0;
}

void join_free(struct join *j)
{
	if (!j)
		return;
	loop_undefer(j->loop, &j->task);
	j->side[0].port->events = j->side[1].port->events = NULL;
	free(j);
}

void join_on_link(struct join *j, void (*link)(void *ctx, struct port *), void *ctx)
{
	j->link = link;
	j->link_ctx = ctx;
}
