/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_rings: kicks and calls are noted, and delivered by rings_run until nothing is left to do.
 */
#include "drill_rings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/stack_nic.h"
#include "port/vdev.h"
#include "port/vdrv_int.h"

#define ROUNDS 1000 /* of a run: more means that somebody wakes himself for ever */

struct rings {
	struct loop loop;
	nsec_t now;
	struct vdrv drv;
	struct vdev dev;
	struct stack_nic *nic;
	bool kicked[2], called[2];
	struct fit fit;
	struct burst b;
	unsigned next; /* of the burst, which is lent until all of it was handed out */
};

static void note_kick(void *ctx, unsigned queue)
{
	((struct rings *)ctx)->kicked[queue] = true;
}

static bool note_call(void *ctx, unsigned queue)
{
	((struct rings *)ctx)->called[queue] = true;
	return true;
}

static void note_broken(void *ctx, const char *reason)
{
	(void)ctx;
	fprintf(stderr, "the device is broken: %s\n", reason);
	abort();
}

static int ring_start(struct rings *r, unsigned queue, struct err *err)
{
	const struct vq_drv *vq = &r->drv.vq[queue];
	int e = vdev_set_ring_size(&r->dev, queue, vq->size, err);

	if (!e)
		e = vdev_set_ring_addr(&r->dev, queue, (uintptr_t)vq->desc, (uintptr_t)vq->avail,
			(uintptr_t)vq->used, err);
	if (e)
		return e;
	vdev_set_ring_base(&r->dev, queue, 0);
	vdev_ring_enable(&r->dev, queue, true);
	vdev_ring_start(&r->dev, queue);
	return 0;
}

static int device_start(struct rings *r, uint32_t mtu, struct err *err)
{
	struct vdev_config dc = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = mtu};
	uint8_t *base = r->drv.chunks.base;
	uint64_t features;
	int e;

	vdev_init(&r->dev, "device", &dc, &r->loop, NULL);
	r->dev.notify = note_call;
	r->dev.ctx = r;
	features = vdrv_choose(&r->drv, vdrv_want(&r->drv) & r->dev.offered, mtu);
	e = vdrv_rings(&r->drv, features, mtu, err);
	if (!e)
		e = gmem_add(&r->dev.mem, (uintptr_t)base, (uintptr_t)base, r->drv.chunks.len, base,
			err);
	if (!e)
		e = vdev_set_features(&r->dev, features, err);
	if (!e)
		e = ring_start(r, VDRV_RX, err);
	if (!e)
		e = ring_start(r, VDRV_TX, err);
	if (!e)
		vdrv_up(&r->drv);
	return e;
}

int rings_new(struct rings **out, uint32_t mtu, nsec_t now, struct err *err)
{
	struct rings *r = calloc(1, sizeof(*r));
	struct vdrv_config c;
	int e;

	if (!r)
		return -ENOMEM;
	e = loop_init(&r->loop, err);
	if (e) {
		free(r);
		return e;
	}
	r->now = now;
	r->loop.virtual_now = &r->now;
	loop_refresh(&r->loop);
	vdrv_config_init(&c);
	c.memory = 32u << 20;
	e = vdrv_init(&r->drv, "driver", &c, &r->loop, NULL, err);
	if (e) {
		loop_fini(&r->loop);
		free(r);
		return e;
	}
	r->drv.kick = note_kick;
	r->drv.broke = note_broken;
	r->drv.ctx = r;
	e = device_start(r, mtu, err);
	*out = r;
	if (e)
		rings_free(r);
	return e;
}

struct pkt_pool *rings_pkts(struct rings *r)
{
	return vdrv_pkts(&r->drv.port);
}

int rings_attach(struct rings *r, struct stack *s, struct err *err)
{
	return stack_nic_new(&r->nic, s, &r->drv.port, &r->loop, err);
}

void rings_detach(struct rings *r)
{
	if (r->b.n)
		port_settle(&r->dev.port.q, &r->b, r->b.n);
	r->b.n = 0;
	vdev_fini(&r->dev);
	stack_nic_free(r->nic);
}

void rings_free(struct rings *r)
{
	vdrv_fini(&r->drv);
	loop_fini(&r->loop);
	free(r);
}

void rings_run(struct rings *r, nsec_t now)
{
	bool more = true;

	r->now = now;
	loop_refresh(&r->loop);
	stack_nic_kick(r->nic);
	for (unsigned i = 0; more && i < ROUNDS; i++) {
		for (unsigned k = 0; k < 2; k++) {
			if (r->kicked[k])
				vdev_kicked(&r->dev, k);
			if (r->called[k])
				vdrv_call(&r->drv, k);
			r->kicked[k] = r->called[k] = false;
		}
		loop_dispatch(&r->loop, false);
		more = r->kicked[0] || r->kicked[1] || r->called[0] || r->called[1] ||
		       !TAILQ_EMPTY(&r->loop.tasks);
	}
}

void rings_in(struct rings *r, const struct frame *f, nsec_t now)
{
	uint32_t resume = 0;

	rings_run(r, now);
	port_push(&r->dev.port.q, f, 1, &resume, &r->fit);
	r->dev.port.ops->flush(&r->dev.port.q);
	rings_run(r, now);
}

uint32_t rings_out(struct rings *r, uint8_t *buf, struct offload *off, nsec_t now)
{
	struct portq *q = &r->dev.port.q;
	const struct frame *f;
	struct iovec to = {buf, FRAME_MAX};

	if (r->next == r->b.n) {
		if (r->b.n)
			port_settle(q, &r->b, r->b.n);
		q->port->ops->flush(q);
		rings_run(r, now);
		r->next = 0;
		if (!port_pull(q, &r->b, BURST_FRAMES))
			return 0;
	}
	f = &r->b.f[r->next++];
	frame_copy(f, 0, frame_len(f), &to, 1, 0);
	*off = f->off;
	return frame_len(f);
}
