/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair: two ports back to back. Each end owns the queue of frames that it will lend: copies that its
 * peer took by push, in slots of the longest frame. The slots are one anonymous mapping, touched
 * page by page as frames come, so nothing is allocated while frames pass.
 *
 *	push(a) --> [ queue of b ] --> pull(b)
 *
 * Events come from a deferred call of the loop, never out of push or settle.
 */
#include "port/pair.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAIR_DEPTH_MAX 4096

struct slot {
	struct offload off;
	uint32_t len;
	uint8_t data[FRAME_MAX];
} __attribute__((aligned(64)));

struct end {
	struct port port;
	struct end *peer;
	struct slot *slot; /* [depth]: what this end lends */
	uint32_t first, used, depth;
	bool armed;      /* tell when a frame comes */
	bool room_armed; /* tell when the peer's queue has `room_want` free slots */
	uint32_t room_want;
	bool tell_ready, tell_room; /* for the deferred call */
	struct loop_task tell;
};

struct pair {
	struct end end[2];
};

static struct end *end_of(struct port *p)
{
	return (struct end *)((char *)p - offsetof(struct end, port));
}

static struct slot *slot_at(struct end *e, uint32_t i)
{
	return &e->slot[(e->first + i) % e->depth];
}

static void tell_run(struct loop_task *t)
{
	struct end *e = (struct end *)((char *)t - offsetof(struct end, tell));
	bool ready = e->tell_ready, room = e->tell_room;

	e->tell_ready = e->tell_room = false;
	if (ready) {
		e->port.q.in.kicks++;
		port_ready(&e->port.q);
	}
	if (room)
		port_room(&e->port.q);
}

/* in: lend what the peer has pushed */

static unsigned pair_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct end *e = end_of(q->port);
	unsigned n = 0;

	if (!e->port.link)
		return 0;
	e->armed = false;
	if (max > BURST_FRAMES)
		max = BURST_FRAMES;
	while (n < max && n < e->used && b->bytes < BURST_BYTES) {
		struct slot *s = slot_at(e, n);
		struct frame *f = &b->f[n];

		*f = (struct frame){
			.head = b->head[n].data, .tail = &b->iov[b->niov], .off = s->off};
		f->head_len = (uint16_t)(s->len < FRAME_HEAD ? s->len : FRAME_HEAD);
		f->tail_len = s->len - f->head_len;
		memcpy(f->head, s->data, f->head_len);
		if (f->tail_len) {
			f->ntail = 1;
			b->iov[b->niov++] = (struct iovec){
				.iov_base = s->data + f->head_len, .iov_len = f->tail_len};
		}
		b->bytes += s->len;
		n++;
	}
	b->n = n;
	return n;
}

static bool room_for(const struct end *e)
{
	return e->peer->depth - e->peer->used >= e->room_want;
}

static void pair_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct end *e = end_of(q->port);

	(void)b;
	e->first = (e->first + n) % e->depth;
	e->used -= n;
	q->in.bufs += n;
	if (e->peer->room_armed && room_for(e->peer)) {
		e->peer->room_armed = false;
		e->peer->tell_room = true;
		loop_defer(e->port.loop, &e->peer->tell);
	}
}

static bool pair_arm(struct portq *q)
{
	struct end *e = end_of(q->port);

	if (e->used)
		return true;
	e->armed = true;
	return false;
}

/* out: copy into the peer's queue */

static unsigned pair_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct end *e = end_of(q->port), *peer = e->peer;
	unsigned i;

	for (i = 0; i < n && peer->used < peer->depth; i++) {
		struct slot *s = slot_at(peer, peer->used);
		struct iovec to = {.iov_base = s->data, .iov_len = sizeof(s->data)};

		s->len = frame_len(&f[i]);
		s->off = f[i].off;
		assert(s->len <= FRAME_MAX);
		frame_copy(&f[i], 0, s->len, &to, 1, 0);
		peer->used++;
	}
	q->out.bufs += i;
	return i;
}

static void pair_flush(struct portq *q)
{
	struct end *peer = end_of(q->port)->peer;

	if (!peer->armed || !peer->used)
		return;
	peer->armed = false;
	peer->tell_ready = true;
	q->out.notify++;
	loop_defer(peer->port.loop, &peer->tell);
}

static bool pair_arm_room(struct portq *q, uint32_t need)
{
	struct end *e = end_of(q->port);
	uint32_t quarter = e->peer->depth / 4 ? e->peer->depth / 4 : 1;
	uint32_t want = 1 + need / FRAME_MAX;

	e->room_want = want < quarter ? want : quarter;
	e->room_armed = !room_for(e);
	return !e->room_armed;
}

static void pair_close(struct port *p)
{
	struct end *e = end_of(p);

	port_set_link(p, false);
	e->armed = e->room_armed = e->tell_ready = e->tell_room = false;
	loop_undefer(p->loop, &e->tell);
}

static const struct port_ops pair_ops = {
	.kind = "pair",
	.pull = pair_pull,
	.settle = pair_settle,
	.push = pair_push,
	.flush = pair_flush,
	.arm = pair_arm,
	.arm_room = pair_arm_room,
	.close = pair_close,
};

static int end_init(struct end *e, struct end *peer, const char *name, unsigned depth,
	struct loop *loop, struct log *log)
{
	void *map = mmap(NULL, depth * sizeof(struct slot), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	port_init(&e->port, &pair_ops, name, loop, log);
	e->port.accepts = ACCEPT_ALL;
	e->port.link = true;
	e->peer = peer;
	e->slot = map;
	e->depth = depth;
	e->tell.run = tell_run;
	return 0;
}

int pair_new(struct pair **out, const char *name_a, const char *name_b, unsigned depth,
	struct loop *loop, struct log *log, struct err *err)
{
	struct pair *p;
	int r;

	*out = NULL;
	if (!depth || depth > PAIR_DEPTH_MAX)
		return err_set(err, EINVAL, "a pair's depth is %u frames: 1 to %d will do", depth,
			PAIR_DEPTH_MAX);
	if ((r = port_name_check(name_a, err)) || (r = port_name_check(name_b, err)))
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(
			err, ENOMEM, "no memory for the pair \"%s\", \"%s\"", name_a, name_b);
	if ((r = end_init(&p->end[0], &p->end[1], name_a, depth, loop, log)) ||
		(r = end_init(&p->end[1], &p->end[0], name_b, depth, loop, log))) {
		pair_free(p);
		return err_set(err, -r, "no memory for the pair \"%s\", \"%s\"", name_a, name_b);
	}
	*out = p;
	return 0;
}

struct port *pair_port(struct pair *p, unsigned end)
{
	return &p->end[end].port;
}

void pair_free(struct pair *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = &p->end[i];

		if (!e->slot)
			continue;
		loop_undefer(e->port.loop, &e->tell);
		munmap(e->slot, e->depth * sizeof(struct slot));
	}
	free(p);
}
