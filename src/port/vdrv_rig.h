/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_rig: a driver and the real device over the driver's memory, in one process and without a
 * session: kicks and calls are noted and delivered by rig_run(). And a device that is played by hand
 * over the same rings, to lie. For tests.
 */
#ifndef PORT_VDRV_RIG_H
#define PORT_VDRV_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "port/vdev.h"
#include "port/vdrv_int.h"
#include "ring/gmem.h"
#include "ring/vq.h"

#define B(name) VNET_BIT(name)

struct rig {
	struct vdrv v;
	struct vdev d;
	struct loop *loop;
	bool kicked[2], called[2];
	unsigned ready, room, broke;
	uint64_t features;
	const char *why;

	/* the device by hand */
	struct gmem mem;
	struct vq_dev q[2];
};

static inline void rig_kick(void *ctx, unsigned queue)
{
	((struct rig *)ctx)->kicked[queue] = true;
}

static inline bool rig_notify(void *ctx, unsigned queue)
{
	((struct rig *)ctx)->called[queue] = true;
	return true;
}

static inline void rig_broke(void *ctx, const char *reason)
{
	((struct rig *)ctx)->broke++;
	((struct rig *)ctx)->why = reason;
}

static inline void rig_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct rig *)ctx)->ready++;
}

static inline void rig_room(void *ctx, struct portq *q)
{
	(void)q;
	((struct rig *)ctx)->room++;
}

static inline void rig_link(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events rig_events = {rig_ready, rig_room, rig_link};

static inline void rig_driver(struct rig *r, const struct vdrv_config *c, struct loop *loop)
{
	struct err err = {0};

	memset(r, 0, sizeof(*r));
	r->loop = loop;
	if (vdrv_init(&r->v, "drv", c, loop, NULL, &err))
		fail_msg("%s", err.text);
	r->v.kick = rig_kick;
	r->v.broke = rig_broke;
	r->v.ctx = r;
	r->v.port.events = &rig_events;
	r->v.port.events_ctx = r;
	r->features = vdrv_want(&r->v);
}

static inline void rig_device_ring(struct rig *r, unsigned queue)
{
	const struct vq_drv *vq = &r->v.vq[queue];

	assert_int_equal(vdev_set_ring_size(&r->d, queue, vq->size, NULL), 0);
	assert_int_equal(vdev_set_ring_addr(&r->d, queue, (uintptr_t)vq->desc, (uintptr_t)vq->avail,
				 (uintptr_t)vq->used, NULL),
		0);
	vdev_set_ring_base(&r->d, queue, 0);
	vdev_ring_enable(&r->d, queue, true);
	vdev_ring_start(&r->d, queue);
}

/* Both ends up with the features that both know; mtu: the device's. */
static inline void rig_up(struct rig *r, uint32_t mtu)
{
	struct vdev_config dc = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = mtu};
	uint8_t *base = r->v.chunks.base;
	struct err err = {0};

	vdev_init(&r->d, "dev", &dc, r->loop, NULL);
	r->d.notify = rig_notify;
	r->d.ctx = r;
	r->features = vdrv_choose(&r->v, r->features & r->d.offered, mtu);
	if (vdrv_rings(&r->v, r->features, mtu, &err))
		fail_msg("%s", err.text);
	assert_int_equal(
		gmem_add(&r->d.mem, (uintptr_t)base, (uintptr_t)base, r->v.chunks.len, base, NULL),
		0);
	assert_int_equal(vdev_set_features(&r->d, r->features, &err), 0);
	rig_device_ring(r, VDRV_RX);
	rig_device_ring(r, VDRV_TX);
	vdrv_up(&r->v);
	assert_true(r->d.port.link);
	assert_true(r->v.port.link);
}

/* Only the driver's end: the device is played by hand over r->q. */
static inline void rig_up_by_hand(struct rig *r, uint32_t mtu)
{
	uint8_t *base = r->v.chunks.base;
	struct err err = {0};

	r->features = vdrv_choose(&r->v, r->features, mtu);
	if (vdrv_rings(&r->v, r->features, mtu, &err))
		fail_msg("%s", err.text);
	gmem_init(&r->mem);
	assert_int_equal(
		gmem_add(&r->mem, (uintptr_t)base, (uintptr_t)base, r->v.chunks.len, base, NULL),
		0);
	for (unsigned i = 0; i < 2; i++) {
		vq_dev_init(&r->q[i], &r->mem);
		vq_dev_set_size(&r->q[i], r->v.vq[i].size, NULL);
		vq_dev_set_rings(&r->q[i], r->v.vq[i].desc, r->v.vq[i].avail, r->v.vq[i].used);
		vq_dev_start(
			&r->q[i], 0, r->features & B(EVENT_IDX), r->features & B(INDIRECT_DESC));
	}
	vdrv_up(&r->v);
	assert_true(r->v.port.link);
}

/* Deliver what was noted, and what the loop has. */
static inline void rig_run(struct rig *r)
{
	for (unsigned i = 0; i < 2; i++) {
		if (r->kicked[i]) {
			r->kicked[i] = false;
			vdev_kicked(&r->d, i);
		}
		if (r->called[i]) {
			r->called[i] = false;
			vdrv_call(&r->v, i);
		}
	}
	loop_dispatch(r->loop, false);
}

/* References are those that can be accounted for; then everything is given back. */
static inline void rig_refs_check(struct rig *r)
{
	struct vdrv *v = &r->v;
	uint64_t refs = pkt_pool_refs(&v->pkts) + (v->rx.frag.chunk != NULL) +
			(v->rx.spare_put - v->rx.spare_get);
	uint64_t per = v->rx.mode == VDRV_BIG ? v->rx.pages : 1;

	refs += v->vq[VDRV_RX].nout * per;
	assert_int_equal(chunk_pool_refs(&v->chunks), refs);
	assert_null(chunk_pool_check(&v->chunks));
}

static inline void rig_down(struct rig *r)
{
	rig_refs_check(r);
	if (r->d.port.ops)
		vdev_fini(&r->d);
	else
		gmem_fini(&r->mem);
	vdrv_down(&r->v);
	assert_int_equal(r->v.pkts.live, 0);
	page_frag_fini(&r->v.pkts.heads);
	assert_int_equal(chunk_pool_live(&r->v.chunks), 0);
	vdrv_fini(&r->v);
}

#endif
