/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev_rig: what the tests of the device share: a model guest around a vdev, whose every frame byte is
 * a function of the frame's number, so that a lost, doubled, reordered or torn frame shows; and the
 * hand that carries frames from one guest to another.
 */
#ifndef PORT_VDEV_RIG_H
#define PORT_VDEV_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "port/vdev.h"
#include "ring/ring_sim.h"

#define B(name) VNET_BIT(name)

#define GPA    UINT64_C(0x40000000)
#define UVA    UINT64_C(0x7f0000000000)
#define SIZE   (24u << 20)
#define TABLE  64   /* entries of an indirect table */
#define PIECES 48   /* of a chain, at most */
#define FILL   0xee /* what a receive buffer holds before */

struct buf_list {
	unsigned n;
	struct ring_sim_buf b[PIECES];
};

struct guest {
	struct vdev dev;
	uint8_t *mem;
	uint64_t at; /* next free byte of mem: a bump allocator over a window that comes round */
	uint64_t window, window_len;
	struct ring_sim rx, tx;
	struct buf_list *rx_buf; /* by head */
	unsigned notified[VDEV_QUEUES], broke;
	const char *why;
	bool indirect, mrg;
	unsigned hdr_len;
	uint32_t sent, got; /* frame numbers */
};

static struct loop loop;
static struct burst burst;

static inline bool on_notify(void *ctx, unsigned queue)
{
	((struct guest *)ctx)->notified[queue]++;
	return true;
}

static inline void on_broke(void *ctx, unsigned queue, const char *reason)
{
	struct guest *g = ctx;

	(void)queue;
	g->broke++;
	g->why = reason;
}

static const struct vdev_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500};

static inline uint64_t sim_uva(const struct ring_sim *s, uint64_t gpa)
{
	(void)s;
	return gpa - GPA + UVA;
}

static inline void guest_ring(
	struct guest *g, unsigned queue, struct ring_sim *s, unsigned size, uint16_t base)
{
	struct ring_sim_config c = {
		.mem = g->mem + g->at,
		.gpa = GPA + g->at,
		.size = size,
		.table = TABLE,
		.event_idx = g->dev.features & B(EVENT_IDX),
		.base = base,
	};

	assert_int_equal(ring_sim_init(s, &c), 0);
	g->at += (ring_sim_len(size, TABLE) + 4095) & ~4095ull;
	assert_int_equal(vdev_set_ring_size(&g->dev, queue, size, NULL), 0);
	assert_int_equal(vdev_set_ring_addr(&g->dev, queue, sim_uva(s, s->desc_gpa),
				 sim_uva(s, s->avail_gpa), sim_uva(s, s->used_gpa), NULL),
		0);
	vdev_set_ring_base(&g->dev, queue, base);
}

static inline struct guest *guest_new_stopped(uint64_t features, unsigned size, uint16_t base)
{
	struct guest *g = calloc(1, sizeof(*g));

	g->mem = aligned_alloc(4096, SIZE);
	vdev_init(&g->dev, "guest", &config, &loop, NULL);
	g->dev.notify = on_notify;
	g->dev.broke = on_broke;
	g->dev.ctx = g;
	/* two regions that touch: pieces cross */
	assert_int_equal(gmem_add(&g->dev.mem, GPA, UVA, SIZE / 2, g->mem, NULL), 0);
	assert_int_equal(gmem_add(&g->dev.mem, GPA + SIZE / 2, UVA + SIZE / 2, SIZE / 2,
				 g->mem + SIZE / 2, NULL),
		0);
	assert_int_equal(vdev_set_features(&g->dev, features, NULL), 0);
	g->indirect = features & B(INDIRECT_DESC);
	g->mrg = features & B(MRG_RXBUF);
	g->hdr_len = features & (B(MRG_RXBUF) | B(VERSION_1)) ? 12 : 10;
	guest_ring(g, VDEV_RX, &g->rx, size, base);
	guest_ring(g, VDEV_TX, &g->tx, size, base);
	g->rx_buf = calloc(size, sizeof(*g->rx_buf));
	g->window = g->at;
	g->window_len = SIZE - g->at;
	return g;
}

static inline struct guest *guest_new(uint64_t features, unsigned size, uint16_t base)
{
	struct guest *g = guest_new_stopped(features, size, base);

	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		vdev_ring_enable(&g->dev, q, true);
		vdev_ring_start(&g->dev, q);
	}
	assert_true(g->dev.port.link);
	return g;
}

static inline void guest_free(struct guest *g)
{
	vdev_fini(&g->dev);
	ring_sim_fini(&g->rx);
	ring_sim_fini(&g->tx);
	free(g->rx_buf);
	free(g->mem);
	free(g);
}

static inline struct portq *portq_of(struct guest *g)
{
	return &g->dev.port.q;
}

static inline uint8_t *guest_ptr(struct guest *g, uint64_t gpa)
{
	return g->mem + (gpa - GPA);
}

/* Memory in turn; what is still in use is never met again: the window holds more than the rings. */
static inline uint64_t guest_alloc(struct guest *g, uint32_t len)
{
	uint64_t gpa;

	if (g->at + len > g->window + g->window_len)
		g->at = g->window;
	gpa = GPA + g->at;
	g->at += len;
	return gpa;
}

/* The bytes of frame `n` */
static inline uint8_t stamp(uint32_t n, uint32_t at)
{
	uint32_t x = n * 2654435761u ^ at * 40503u;

	if (at < 4)
		return (uint8_t)(n >> (8 * at));
	return (uint8_t)(x >> 13);
}

/* Scatter header and frame `n` over pieces; `cut` says their lengths, the last takes the rest. */
static inline int guest_send_cut(struct guest *g, uint32_t n, uint32_t len, const uint32_t *cut,
	unsigned ncut, const uint8_t *hdr)
{
	struct ring_sim_buf b[PIECES];
	uint32_t total = g->hdr_len + len, at = 0;
	unsigned i;
	int head;

	if (ring_sim_free(&g->tx) < ncut + 1)
		return -1;
	for (i = 0; at < total; i++) {
		uint32_t part = i < ncut && cut[i] < total - at ? cut[i] : total - at;

		b[i].len = part;
		b[i].gpa = guest_alloc(g, part);
		for (uint32_t j = 0; j < part; j++, at++) {
			uint8_t v = at >= g->hdr_len ? stamp(n, at - g->hdr_len)
				    : hdr            ? hdr[at]
						     : 0;

			guest_ptr(g, b[i].gpa)[j] = v;
		}
	}
	head = ring_sim_add(&g->tx, b, i, 0, g->indirect && (i > 1 || n % 3 == 0));
	if (head >= 0)
		ring_sim_publish(&g->tx);
	return head;
}

static inline int guest_send(struct guest *g, uint32_t len)
{
	int head = guest_send_cut(g, g->sent, len, NULL, 0, NULL);

	if (head >= 0)
		g->sent++;
	return head;
}

/* Post one receive chain of pieces of these lengths. */
static inline int guest_post(struct guest *g, const uint32_t *len, unsigned n)
{
	struct buf_list l = {.n = n};
	int head;

	if (ring_sim_free(&g->rx) < (g->indirect && n > 1 ? 1 : n))
		return -1;
	for (unsigned i = 0; i < n; i++) {
		l.b[i].len = len[i];
		l.b[i].gpa = guest_alloc(g, len[i]);
		memset(guest_ptr(g, l.b[i].gpa), FILL, len[i]);
	}
	head = ring_sim_add(&g->rx, l.b, 0, n, g->indirect && n > 1);
	if (head >= 0) {
		g->rx_buf[head] = l;
		ring_sim_publish(&g->rx);
	}
	return head;
}

static inline void guest_post_each(struct guest *g, uint32_t len, unsigned n)
{
	while (n--)
		assert_true(guest_post(g, &len, 1) >= 0);
}

/* Append what the device wrote into a chain; everything behind it must be untouched. */
static inline uint32_t chain_read(struct guest *g, uint32_t head, uint32_t len, uint8_t *to)
{
	const struct buf_list *l = &g->rx_buf[head];
	uint32_t at = 0;

	for (unsigned i = 0; i < l->n; i++) {
		for (uint32_t j = 0; j < l->b[i].len; j++, at++) {
			uint8_t v = guest_ptr(g, l->b[i].gpa)[j];

			if (at < len)
				to[at] = v;
			else
				assert_int_equal(v, FILL);
		}
	}
	assert_true(len <= at);
	return at;
}

struct packet {
	uint32_t len; /* of the frame */
	unsigned nbuf;
	uint8_t hdr[12];
	uint8_t bytes[VNET_HDR_MAX + FRAME_MAX + 64];
};

/* Collect one packet by the rules of num_buffers [VIRTIO 1.2 5.1.6.4]; false: none there. */
static inline bool guest_receive(struct guest *g, struct packet *p)
{
	static uint8_t raw[sizeof(p->bytes)];
	uint32_t id, len, at, cap;
	unsigned nbuf = 1;

	if (!ring_sim_get(&g->rx, &id, &len))
		return false;
	cap = chain_read(g, id, len, raw);
	at = len;
	assert_true(len >= g->hdr_len);
	if (g->hdr_len == 12)
		nbuf = raw[10] | raw[11] << 8;
	if (!g->mrg)
		assert_int_equal(nbuf, 1);
	assert_true(nbuf >= 1);
	for (unsigned i = 1; i < nbuf; i++) {
		assert_int_equal(len, cap);                   /* all but the last are full */
		assert_true(ring_sim_get(&g->rx, &id, &len)); /* and came with the first */
		cap = chain_read(g, id, len, raw + at);
		assert_true(len > 0);
		at += len;
	}
	memset(p->hdr, 0, sizeof(p->hdr));
	memcpy(p->hdr, raw, g->hdr_len);
	p->nbuf = nbuf;
	p->len = at - g->hdr_len;
	memcpy(p->bytes, raw + g->hdr_len, p->len);
	return true;
}

static inline void packet_check(const struct packet *p, uint32_t n)
{
	for (uint32_t i = 0; i < p->len; i++) {
		if (p->bytes[i] != stamp(n, i))
			fail_msg("frame %u of %u bytes is wrong at %u", n, p->len, i);
	}
}

/* Carry one burst from a to b; returns how many frames were finished. */
static inline unsigned carry(struct guest *a, struct guest *b)
{
	const struct port_ops *from = a->dev.port.ops, *to = b->dev.port.ops;
	unsigned n = from->pull(portq_of(a), &burst, BURST_FRAMES), took;
	uint16_t shown = b->rx.used->idx;

	took = to->push(portq_of(b), burst.f, n);
	assert_int_equal(b->rx.used->idx, shown); /* nothing is visible before flush */
	to->flush(portq_of(b));
	from->settle(portq_of(a), &burst, took);
	return took;
}

#define MODERN (B(VERSION_1) | B(MRG_RXBUF) | B(INDIRECT_DESC) | B(EVENT_IDX))

static inline int setup(void **state)
{
	(void)state;
	return loop_init(&loop, NULL);
}

static inline int teardown(void **state)
{
	(void)state;
	loop_fini(&loop);
	return 0;
}

#endif
