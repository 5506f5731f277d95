/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * driver_fuzz: the virtio-net driver, whose device is the input: it owns all of the shared memory,
 * fills buffers or does not, and says of them what it likes.
 *
 *	u8 feature set, u8 log2 of the ring's size (mod 8, 2 .. 256), u8 knobs
 *	script: one byte per step, its low 4 bits say what, the high 4 bits how much
 *
 * Whatever it says: nothing aborts, every frame and packet can be read to its end, and when the
 * device has gone every reference is accounted for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "port/vdrv_int.h"

#define B(name) VNET_BIT(name)
#define HELD    8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct run {
	const uint8_t *in; /* what is left of the input */
	size_t left;
	struct loop loop;
	nsec_t now;
	struct vdrv v;
	uint64_t features;
	uint16_t seen[VDRV_QUEUES]; /* the device's place in the avail rings */
	struct pkt *held[HELD];
	struct burst burst;
	uint64_t sum; /* of all bytes that came: they can be read */
};

static const uint64_t without[] = {
	0,
	B(MRG_RXBUF),
	B(MRG_RXBUF) | B(GUEST_CSUM),
	B(EVENT_IDX),
	B(INDIRECT_DESC),
	B(VERSION_1) | B(MRG_RXBUF) | B(ANY_LAYOUT),
	B(VERSION_1) | B(MRG_RXBUF) | B(ANY_LAYOUT) | B(GUEST_CSUM),
	~UINT64_C(0),
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static unsigned take(struct run *r, unsigned bytes)
{
	unsigned v = 0;

	for (unsigned i = 0; i < bytes && r->left; i++, r->left--)
		v |= (unsigned)*r->in++ << (8 * i);
	return v;
}

static void no_kick(void *ctx, unsigned queue)
{
	(void)ctx;
	(void)queue;
}

/* the session's part */

static void all_down(struct run *r)
{
	struct vdrv *v = &r->v;
	uint64_t refs = pkt_pool_refs(&v->pkts) + (v->rx.frag.chunk != NULL) +
			(v->rx.spare_put - v->rx.spare_get);

	refs += (uint64_t)v->vq[VDRV_RX].nout * (v->rx.mode == VDRV_BIG ? v->rx.pages : 1);
	check(chunk_pool_refs(&v->chunks) == refs);
	vdrv_down(v);
	for (unsigned i = 0; i < HELD; i++) {
		pkt_free(r->held[i]);
		r->held[i] = NULL;
	}
	check(!v->pkts.live);
	check(chunk_pool_refs(&v->chunks) == (v->pkts.heads.chunk != NULL));
	check(!chunk_pool_check(&v->chunks));
}

static void all_up(struct run *r)
{
	r->seen[0] = r->seen[1] = 0;
	if (!vdrv_rings(&r->v, r->features, 1500, NULL))
		vdrv_up(&r->v);
}

static void broke(void *ctx, const char *reason)
{
	check(reason);
	all_down(ctx);
}

static bool start(struct run *r, unsigned set, unsigned size, unsigned knobs)
{
	struct vdrv_config c;

	vdrv_config_init(&c);
	c.ring_size = 2u << size % 8;
	c.memory = 1 << 20;
	c.rxbuf = knobs & 3;
	c.coalesce = knobs & 4;
	c.inline_header = knobs & 8;
	c.copybreak = knobs & 16 ? 0 : 128;
	c.indirect = (knobs >> 5 & 3) % 3;
	if (vdrv_init(&r->v, "fuzz", &c, &r->loop, NULL, NULL))
		return false;
	r->v.kick = no_kick;
	r->v.broke = broke;
	r->v.ctx = r;
	r->features = vnet_features_close(vdrv_want(&r->v) & ~without[set % 8]);
	r->features = vdrv_choose(&r->v, r->features, 1500);
	all_up(r);
	return true;
}

/* the device's steps */

static void device_used(struct run *r, unsigned queue, uint32_t id, uint32_t len)
{
	struct vq_drv *vq = &r->v.vq[queue];
	uint16_t idx = __atomic_load_n(&vq->used->idx, __ATOMIC_RELAXED);

	vq->used->ring[idx & vq->mask] = (struct vring_used_elem){id, len};
	__atomic_store_n(&vq->used->idx, (uint16_t)(idx + 1), __ATOMIC_RELEASE);
}

/* The next buffer in order: its first bytes from the input, its length likewise. */
static void device_fill(struct run *r, unsigned queue, unsigned n)
{
	struct vq_drv *vq = &r->v.vq[queue];
	uint16_t id = vq->avail->ring[r->seen[queue] & vq->mask] & vq->mask;
	uint64_t at = vq->desc[id].addr - (uintptr_t)r->v.chunks.base;
	uint32_t len = take(r, 2);

	if (__atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE) == r->seen[queue])
		return;
	r->seen[queue]++;
	for (unsigned i = 0; i < n; i++, at++) {
		uint8_t byte = (uint8_t)take(r, 1);

		if (queue == VDRV_RX && at < r->v.chunks.len)
			r->v.chunks.base[at] = byte;
	}
	device_used(r, queue, id, len & 0x8000 ? vq->desc[id].len : len);
}

static void device_write(struct run *r, unsigned n)
{
	uint64_t at = (uint64_t)take(r, 3) % r->v.chunks.len;

	for (unsigned i = 0; i < n && at + i < r->v.chunks.len; i++)
		r->v.chunks.base[at + i] = (uint8_t)take(r, 1);
}

/* the driver's steps */

static void bytes_read(struct run *r, const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		r->sum += ((const uint8_t *)p)[i];
}

static void driver_pull(struct run *r, unsigned n)
{
	struct portq *q = &r->v.port.q;
	unsigned got = port_pull(q, &r->burst, 1 + n);

	check(got <= 1 + n);
	for (unsigned i = 0; i < got; i++) {
		const struct frame *f = &r->burst.f[i];
		uint32_t tail = 0;

		bytes_read(r, f->head, f->head_len);
		for (unsigned k = 0; k < f->ntail; k++) {
			bytes_read(r, f->tail[k].iov_base, f->tail[k].iov_len);
			tail += (uint32_t)f->tail[k].iov_len;
		}
		check(tail == f->tail_len && frame_len(f) >= ETH_HLEN && frame_len(f) <= FRAME_MAX);
	}
	port_settle(q, &r->burst, got - got * (n & 1) / 2);
}

static void driver_receive(struct run *r, unsigned slot)
{
	struct pkt **p = &r->held[slot % HELD];

	pkt_free(*p);
	*p = NULL;
	if (!vdrv_receive(&r->v.port, p, 1))
		return;
	bytes_read(r, (*p)->head, (*p)->head_len);
	for (const struct pkt *c = *p; c; c = c->chain)
		for (unsigned i = 0; i < c->nfrag; i++)
			bytes_read(r, c->frag[i].data, c->frag[i].len);
	check((*p)->len >= ETH_HLEN && (*p)->len <= FRAME_MAX);
}

static void driver_push(struct run *r, unsigned n)
{
	static uint8_t bytes[FRAME_ROOM + 70000];
	struct iovec tail = {bytes + FRAME_ROOM + 60, n * 4300};
	struct frame f = {.head = bytes + FRAME_ROOM, .head_len = 60, .tail = &tail, .ntail = 1};
	struct portq *q = &r->v.port.q;

	f.tail_len = n * 4300;
	if (f.tail_len)
		f.off = (struct offload){.flags = 1, .gso = 1, .gso_size = 1448, .hdr_len = 54};
	q->port->ops->push(q, &f, 1);
}

/* What was received is sent again: no copy, in the device's own memory. */
static void driver_send(struct run *r, unsigned slot)
{
	struct pkt **p = &r->held[slot % HELD];

	if (*p && vdrv_send(&r->v.port, p, 1))
		*p = NULL;
}

static void step(struct run *r)
{
	unsigned what = take(r, 1), n = what >> 4;
	struct portq *q = &r->v.port.q;

	switch (what & 15) {
	case 0:
	case 1:
		device_fill(r, VDRV_RX, n);
		break;
	case 2:
		device_fill(r, VDRV_TX, 0);
		break;
	case 3:
		device_used(r, n & 1, take(r, 1 + (n & 2)), take(r, 4));
		break;
	case 4:
		r->v.vq[n & 1].used->idx = (uint16_t)(r->v.vq[n & 1].used->idx + take(r, 1));
		break;
	case 5:
		device_write(r, n + 1);
		break;
	case 6:
		driver_pull(r, n);
		break;
	case 7:
		driver_receive(r, n);
		break;
	case 8:
		driver_push(r, n);
		break;
	case 9:
		driver_send(r, n);
		break;
	case 10:
		vdrv_flush(&r->v.port);
		break;
	case 11:
		q->port->ops->arm(q);
		break;
	case 12:
		q->port->ops->arm_room(q, 0);
		break;
	case 13:
		vdrv_call(&r->v, n & 1);
		break;
	case 14:
		r->now += (nsec_t)n * NSEC_PER_MSEC;
		loop_dispatch(&r->loop, false);
		break;
	default:
		if (n < 8) {
			r->v.chunks.refuse_permille = n * 100;
			r->v.chunks.refuse_all = n & 1;
			break;
		}
		r->v.chunks.refuse_permille = 0;
		all_down(r);
		all_up(r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct run run;
	struct run *r = &run;

	memset(r, 0, sizeof(*r));
	r->in = data;
	r->left = len;
	if (loop_init(&r->loop, NULL))
		abort();
	r->loop.virtual_now = &r->now;

	unsigned set = take(r, 1), size = take(r, 1), knobs = take(r, 1);

	if (start(r, set, size, knobs)) {
		while (r->left)
			step(r);
		all_down(r);
		vdrv_fini(&r->v);
	}
	loop_fini(&r->loop);
	return 0;
}
