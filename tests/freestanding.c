/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * freestanding: the device without the rest of weft: two of them, the four hooks of port/vdev.h,
 * and a model driver for each. One frame goes from the first to the second, then the first driver
 * breaks the rules and the deferred call says so.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "port/vdev.h"
#include "ring/ring_sim.h"

#define MEM  (64 * 1024)
#define RING 4
#define BUF  (32 * 1024) /* offset of the buffers behind both rings */

/* the hooks: an error is a number, there is no log, what is deferred is done by main() */

int err_set(struct err *err, int code, const char *fmt, ...)
{
	(void)err;
	(void)fmt;
	return -code;
}

void log_say(struct log *log, enum log_level level, const char *tag, const char *fmt, ...)
{
	(void)log;
	(void)level;
	(void)tag;
	(void)fmt;
}

void loop_defer(struct loop *l, struct loop_task *t)
{
	if (!t->queued)
		TAILQ_INSERT_TAIL(&l->tasks, t, entry);
	t->queued = true;
}

void loop_undefer(struct loop *l, struct loop_task *t)
{
	if (t->queued)
		TAILQ_REMOVE(&l->tasks, t, entry);
	t->queued = false;
}

struct side {
	struct vdev dev;
	struct ring_sim sim[VDEV_QUEUES];
	const char *broken;
	uint8_t mem[MEM] __attribute__((aligned(64)));
};

static void side_broke(void *ctx, unsigned queue, const char *reason)
{
	(void)queue;
	((struct side *)ctx)->broken = reason;
}

static int side_init(struct side *s, struct loop *loop)
{
	const struct vdev_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500};
	int r = 0;

	vdev_init(&s->dev, "side", &config, loop, NULL);
	s->dev.broke = side_broke;
	s->dev.ctx = s;
	r |= gmem_add(&s->dev.mem, 0x1000, 0x1000, MEM, s->mem, NULL);
	r |= vdev_set_features(&s->dev, VNET_BIT(VERSION_1) | VNET_BIT(MRG_RXBUF), NULL);
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		struct ring_sim *sim = &s->sim[q];
		struct ring_sim_config rc = {.size = RING};

		rc.mem = s->mem + q * (BUF / 2);
		rc.gpa = 0x1000 + q * (BUF / 2);
		r |= ring_sim_init(sim, &rc);
		r |= vdev_set_ring_size(&s->dev, q, RING, NULL);
		r |= vdev_set_ring_addr(
			&s->dev, q, sim->desc_gpa, sim->avail_gpa, sim->used_gpa, NULL);
		vdev_ring_enable(&s->dev, q, true);
		vdev_ring_start(&s->dev, q);
	}
	return r;
}

static bool frame_passes(struct side *a, struct side *b)
{
	static const char text[] = "a frame without a C library";
	static struct burst burst;
	static struct fit fit;
	uint8_t *from = a->mem + BUF, *to = b->mem + BUF;
	uint32_t len = 12 + 14 + sizeof(text), id, got, resume = 0;

	memset(from, 0, 26);
	memcpy(from + 26, text, sizeof(text));
	ring_sim_add1(&a->sim[VDEV_TX], 0x1000 + BUF, len, false);
	ring_sim_publish(&a->sim[VDEV_TX]);
	ring_sim_add1(&b->sim[VDEV_RX], 0x1000 + BUF, 2048, true);
	ring_sim_publish(&b->sim[VDEV_RX]);

	if (port_pull(&a->dev.port.q, &burst, 64) != 1 ||
		port_push(&b->dev.port.q, burst.f, 1, &resume, &fit) != 1)
		return false;
	b->dev.port.ops->flush(&b->dev.port.q);
	port_settle(&a->dev.port.q, &burst, 1);
	return ring_sim_get(&b->sim[VDEV_RX], &id, &got) && got == len &&
	       !memcmp(to + 26, text, sizeof(text)) && ring_sim_get(&a->sim[VDEV_TX], &id, &got);
}

int main(void)
{
	static struct side a, b;
	static struct burst burst;
	struct loop loop = {.epfd = -1};
	struct loop_task *t;

	TAILQ_INIT(&loop.tasks);
	if (side_init(&a, &loop) || side_init(&b, &loop) || !frame_passes(&a, &b))
		return printf("no frame passed\n"), 1;
	ring_sim_add1(&a.sim[VDEV_TX], 0xdead0000, 64, false);
	ring_sim_publish(&a.sim[VDEV_TX]);
	port_pull(&a.dev.port.q, &burst, 64);
	t = TAILQ_FIRST(&loop.tasks);
	if (!t)
		return printf("nothing was deferred\n"), 1;
	loop_undefer(&loop, t);
	t->run(t);
	printf("passed a frame, then: %s\n", a.broken ? a.broken : "nothing");
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		ring_sim_fini(&a.sim[q]);
		ring_sim_fini(&b.sim[q]);
	}
	return !a.broken;
}
