/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev: two model guests, frames carried from one to the other by hand; every byte of every frame is
 * a function of its number, so that a lost, doubled, reordered or torn frame shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rand.h"
#include "base/sigbus.h"
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

static void on_notify(void *ctx, unsigned queue)
{
	((struct guest *)ctx)->notified[queue]++;
}

static void on_broke(void *ctx, unsigned queue, const char *reason)
{
	struct guest *g = ctx;

	(void)queue;
	g->broke++;
	g->why = reason;
}

static const struct vdev_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500};

static uint64_t sim_uva(const struct ring_sim *s, uint64_t gpa)
{
	(void)s;
	return gpa - GPA + UVA;
}

static void guest_ring(
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

static struct guest *guest_new_stopped(uint64_t features, unsigned size, uint16_t base)
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

static struct guest *guest_new(uint64_t features, unsigned size, uint16_t base)
{
	struct guest *g = guest_new_stopped(features, size, base);

	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		vdev_ring_enable(&g->dev, q, true);
		vdev_ring_start(&g->dev, q);
	}
	assert_true(g->dev.port.link);
	return g;
}

static void guest_free(struct guest *g)
{
	vdev_fini(&g->dev);
	ring_sim_fini(&g->rx);
	ring_sim_fini(&g->tx);
	free(g->rx_buf);
	free(g->mem);
	free(g);
}

static struct portq *portq_of(struct guest *g)
{
	return &g->dev.port.q;
}

static uint8_t *guest_ptr(struct guest *g, uint64_t gpa)
{
	return g->mem + (gpa - GPA);
}

/* Memory in turn; what is still in use is never met again: the window holds more than the rings. */
static uint64_t guest_alloc(struct guest *g, uint32_t len)
{
	uint64_t gpa;

	if (g->at + len > g->window + g->window_len)
		g->at = g->window;
	gpa = GPA + g->at;
	g->at += len;
	return gpa;
}

/* The bytes of frame `n` */
static uint8_t stamp(uint32_t n, uint32_t at)
{
	uint32_t x = n * 2654435761u ^ at * 40503u;

	if (at < 4)
		return (uint8_t)(n >> (8 * at));
	return (uint8_t)(x >> 13);
}

/* Scatter header and frame `n` over pieces; `cut` says their lengths, the last takes the rest. */
static int guest_send_cut(struct guest *g, uint32_t n, uint32_t len, const uint32_t *cut,
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

static int guest_send(struct guest *g, uint32_t len)
{
	int head = guest_send_cut(g, g->sent, len, NULL, 0, NULL);

	if (head >= 0)
		g->sent++;
	return head;
}

/* Post one receive chain of pieces of these lengths. */
static int guest_post(struct guest *g, const uint32_t *len, unsigned n)
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

static void guest_post_each(struct guest *g, uint32_t len, unsigned n)
{
	while (n--)
		assert_true(guest_post(g, &len, 1) >= 0);
}

/* Append what the device wrote into a chain; everything behind it must be untouched. */
static uint32_t chain_read(struct guest *g, uint32_t head, uint32_t len, uint8_t *to)
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
static bool guest_receive(struct guest *g, struct packet *p)
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

static void packet_check(const struct packet *p, uint32_t n)
{
	for (uint32_t i = 0; i < p->len; i++) {
		if (p->bytes[i] != stamp(n, i))
			fail_msg("frame %u of %u bytes is wrong at %u", n, p->len, i);
	}
}

/* Carry one burst from a to b; returns how many frames were finished. */
static unsigned carry(struct guest *a, struct guest *b)
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

static int setup(void **state)
{
	(void)state;
	return loop_init(&loop, NULL);
}

static int teardown(void **state)
{
	(void)state;
	loop_fini(&loop);
	return 0;
}

static void one_frame(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 65530);
	struct packet p;
	uint32_t id, len;

	assert_int_equal(guest_send(a, 60), 0);
	assert_int_equal(carry(a, b), 0); /* no buffers yet: it stays */
	assert_int_equal(ring_sim_pending(&a->tx), 0);
	guest_post_each(b, 2048, 4);
	assert_int_equal(carry(a, b), 1);
	assert_int_equal(carry(a, b), 0);
	assert_true(guest_receive(b, &p));
	assert_int_equal(p.len, 60);
	packet_check(&p, 0);
	assert_false(guest_receive(b, &p));
	assert_true(ring_sim_get(&a->tx, &id, &len));
	assert_int_equal(len, 0);
	assert_int_equal(a->notified[VDEV_TX], 1); /* the first is always told */
	assert_int_equal(b->notified[VDEV_RX], 1);
	assert_int_equal(portq_of(a)->in.bufs, 1);
	assert_int_equal(portq_of(b)->out.bufs, 1);
	guest_free(a);
	guest_free(b);
}

/* Random layouts, sizes and schedules; nothing may be lost, doubled, reordered or torn. */

struct plan {
	uint64_t features;
	unsigned size;
	uint16_t base;
};

static uint32_t frame_size(struct rand *r, const struct guest *g)
{
	uint32_t most = g->mrg || rand_below(r, 4) ? 65535 + 14 : 1514;

	switch (rand_below(r, 4)) {
	case 0:
		return 14 + rand_below(r, 120);
	case 1:
		return 14 + rand_below(r, 1501);
	case 2:
		return 14 + rand_below(r, most - 13);
	default:
		return 60;
	}
}

static bool send_some(struct guest *g, struct rand *r)
{
	uint32_t cut[PIECES - 1], len = frame_size(r, g);
	unsigned ncut = rand_below(r, 3) ? rand_below(r, 4) : rand_below(r, 20);
	uint8_t hdr[12] = {0};

	for (unsigned i = 0; i < ncut; i++) {
		static const uint32_t nice[] = {1, 2, 10, 12, 14, 76, 140, 4096};

		cut[i] = rand_below(r, 2) ? nice[rand_below(r, 8)] : 1 + rand_below(r, 6000);
	}
	if (guest_send_cut(g, g->sent, len, cut, ncut, hdr) < 0)
		return false;
	g->sent++;
	return true;
}

static void post_some(struct guest *g, struct rand *r)
{
	uint32_t len[PIECES];
	unsigned n = 1;

	if (!g->mrg && rand_below(r, 8)) { /* big enough for all: header alone, then pages */
		n = 2 + rand_below(r, 2);
		len[0] = g->hdr_len;
		len[1] = n == 2 ? 66000 : 30000;
		len[2] = 36000;
	} else if (rand_below(r, 2)) {
		len[0] = rand_below(r, 2) ? 4096 : 1536;
	} else {
		n = 1 + rand_below(r, 5);
		for (unsigned i = 0; i < n; i++)
			len[i] = 1 + rand_below(r, rand_below(r, 2) ? 30 : 9000);
		len[n - 1] += g->hdr_len; /* N8: no buffer is shorter than the header */
	}
	guest_post(g, len, n);
}

static void loopback(const struct plan *plan, uint64_t seed)
{
	struct guest *a = guest_new(plan->features, plan->size, plan->base);
	struct guest *b = guest_new(plan->features, plan->size, (uint16_t)(plan->base + 7));
	static struct packet p;
	struct rand r;
	uint32_t want = 1500, id, len, lost = 0, stuck = 0;
	uint64_t dropped = 0;

	rand_init(&r, seed);
	while (b->got + lost < want && stuck < 2000) {
		uint32_t before = b->got + lost;

		for (unsigned i = rand_below(&r, 12); i && a->sent < want; i--)
			send_some(a, &r);
		for (unsigned i = rand_below(&r, 40); i; i--)
			post_some(b, &r);
		for (unsigned i = rand_below(&r, 3); i; i--)
			carry(a, b);
		while (ring_sim_get(&a->tx, &id, &len))
			assert_int_equal(len, 0);
		while (guest_receive(b, &p)) {
			uint32_t n;

			memcpy(&n, p.bytes, 4);
			assert_true(n >= b->got + lost && n < a->sent);
			lost += n - (b->got + lost); /* a chain was too small for those */
			packet_check(&p, n);
			b->got++;
		}
		dropped = portq_of(b)->drop_out[DROP_BUFFER_SMALL];
		if (dropped > lost && b->got + dropped == a->sent)
			lost = (uint32_t)dropped; /* the last ones */
		assert_true(lost <= dropped);
		/* a ring that is too small for the frame at the head never has room: not this test */
		stuck = b->got + lost == before ? stuck + 1 : 0;
	}
	if (b->got + lost < want && plan->size >= 64)
		fail_msg("stuck at %u + %u of %u", b->got, lost, want);
	assert_int_equal(lost, dropped);
	assert_null(a->dev.broken);
	assert_null(b->dev.broken);
	assert_int_equal(a->tx.n_bad + b->rx.n_bad, 0);
	guest_free(a);
	guest_free(b);
}

static uint64_t seed_of_env(void)
{
	const char *text = getenv("SEED");
	uint64_t seed;

	if (text)
		return strtoull(text, NULL, 0);
	rand_secret(&seed, sizeof(seed));
	return seed;
}

static void loopback_random(void **state)
{
	(void)state;
	static const struct plan plans[] = {
		{MODERN, 256, 0},
		{MODERN, 64, 65500},
		{MODERN, 8, 3},
		{MODERN, 2, 3},
		{B(VERSION_1) | B(MRG_RXBUF), 256, 65535},
		{B(VERSION_1) | B(MRG_RXBUF) | B(EVENT_IDX), 128, 100},
		{B(VERSION_1), 128, 0},
		{B(VERSION_1) | B(INDIRECT_DESC), 64, 5},
		{B(MRG_RXBUF), 256, 0},
		{B(ANY_LAYOUT), 256, 65000},
		{B(ANY_LAYOUT) | B(INDIRECT_DESC) | B(EVENT_IDX), 64, 0},
	};
	uint64_t seed = seed_of_env();

	for (unsigned i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		print_message("plan %u, SEED=%llu\n", i, (unsigned long long)seed);
		loopback(&plans[i], seed);
	}
}

/* receive: what lands in which buffer */

static void buffers(void **state)
{
	(void)state;
	static const struct {
		uint64_t features;
		uint32_t cap[4], len;
		unsigned nbuf; /* 0: stays with its sender */
		uint32_t used[4];
	} t[] = {
		{MODERN, {64, 64, 64, 64}, 52, 1, {64}}, {MODERN, {64, 64, 64, 64}, 53, 2, {64, 1}},
		{MODERN, {64, 64, 64, 64}, 116, 2, {64, 64}},
		{MODERN, {64, 64, 64, 64}, 244, 4, {64, 64, 64, 64}},
		{MODERN, {64, 64, 64, 64}, 245, 0, {0}},
		{MODERN, {12, 2048, 64, 64}, 60, 2, {12, 60}}, /* the header alone in the first */
		{MODERN, {4, 5, 2048, 64}, 60, 3, {4, 5, 63}}, /* torn over three [T12] */
		{MODERN, {1, 1, 1, 100}, 60, 4, {1, 1, 1, 69}},
		{MODERN, {2048, 64, 64, 64}, 60, 1, {72}},
		{B(MRG_RXBUF), {64, 64, 64, 64}, 53, 2, {64, 1}}, /* legacy */
		{B(VERSION_1), {72, 64, 64, 64}, 60, 1, {72}},
		{B(VERSION_1), {4096, 64, 64, 64}, 60, 1, {72}},
		{0, {70, 64, 64, 64}, 60, 1, {70}}, /* 10 bytes of header */
	};
	static uint8_t raw[8192];

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct guest *a = guest_new(MODERN, 8, 0), *b = guest_new(t[i].features, 8, 0);
		uint32_t id, len, at = 0;

		for (unsigned k = 0; k < 4; k++)
			guest_post_each(b, t[i].cap[k], 1);
		guest_send(a, t[i].len);
		assert_int_equal(carry(a, b), t[i].nbuf != 0);
		assert_int_equal(ring_sim_pending(&b->rx), t[i].nbuf);
		for (unsigned k = 0; k < t[i].nbuf; k++) {
			assert_true(ring_sim_get(&b->rx, &id, &len));
			assert_int_equal(id, k); /* in the order of the ring */
			assert_int_equal(len, t[i].used[k]);
			chain_read(b, id, len, raw + at);
			at += len;
		}
		if (t[i].nbuf) {
			assert_int_equal(at, b->hdr_len + t[i].len);
			for (unsigned k = 0; k < 10; k++)
				assert_int_equal(raw[k], 0);
			if (b->hdr_len == 12)
				assert_int_equal(raw[10] | raw[11] << 8, t[i].nbuf);
			for (unsigned k = 0; k < t[i].len; k++)
				assert_int_equal(raw[b->hdr_len + k], stamp(0, k));
			assert_int_equal(portq_of(b)->out.bufs, t[i].nbuf);
		}
		/* what was not used is as if never touched */
		assert_int_equal(b->dev.vq[VDEV_RX].last_avail, t[i].nbuf);
		guest_free(a);
		guest_free(b);
	}
}

static void one_small_buffer_costs_the_frame(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 8, 0), *b = guest_new(B(VERSION_1), 8, 0);
	static struct packet p;

	guest_post_each(b, 512, 1);
	guest_send(a, 501); /* one byte too many */
	guest_send(a, 500);
	assert_int_equal(carry(a, b), 2);
	assert_int_equal(portq_of(b)->drop_out[DROP_BUFFER_SMALL], 1);
	assert_true(guest_receive(b, &p));
	assert_int_equal(p.len, 500);
	packet_check(&p, 1);
	assert_false(guest_receive(b, &p));
	guest_free(a);
	guest_free(b);
}

static void room_comes_late(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 64, 0), *b = guest_new(MODERN, 64, 0);
	static struct packet p;

	guest_post_each(b, 1024, 5);
	for (unsigned i = 0; i < 4; i++)
		guest_send(a, 2000); /* two buffers each */
	assert_int_equal(carry(a, b), 2);
	assert_int_equal(b->dev.vq[VDEV_RX].last_avail, 4); /* the odd one went back */
	assert_int_equal(a->dev.vq[VDEV_TX].last_avail, 2);
	assert_int_equal(ring_sim_pending(&a->tx), 2);
	/* one chain was too few: one chain must not wake us */
	assert_false(portq_of(b)->port->ops->arm_room(portq_of(b), 2000));
	guest_post_each(b, 1024, 1);
	assert_true(ring_sim_kick(&b->rx));
	assert_true(portq_of(b)->port->ops->arm_room(portq_of(b), 2000));
	assert_int_equal(carry(a, b), 1);
	assert_false(portq_of(b)->port->ops->arm_room(portq_of(b), 2000));
	guest_post_each(b, 1024, 1);
	assert_false(ring_sim_kick(&b->rx)); /* it asked for two */
	guest_post_each(b, 1024, 1);
	assert_true(ring_sim_kick(&b->rx));
	assert_int_equal(carry(a, b), 1);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(guest_receive(b, &p));
		packet_check(&p, i);
	}
	guest_free(a);
	guest_free(b);
}

static void arm_room_never_spins(void **state)
{
	(void)state;
	/* A frame that a quarter of the ring cannot hold: room for a quarter is no room for it. */
	struct guest *a = guest_new(MODERN, 64, 0), *b = guest_new(MODERN, 16, 0);
	struct portq *q = portq_of(b);

	guest_send(a, 9000);
	for (unsigned have = 0; have < 9; have++) {
		assert_int_equal(carry(a, b), 0);
		assert_false(q->port->ops->arm_room(q, 9000));
		guest_post_each(b, 1024, 1);
	}
	assert_int_equal(carry(a, b), 1);
	guest_free(a);
	guest_free(b);
}

static void frame_that_never_fits(void **state)
{
	(void)state;
	/* 12-byte buffers: more chains than we ever look at */
	struct guest *a = guest_new(MODERN, 8, 0), *b = guest_new(MODERN, 2048, 0);

	guest_post_each(b, 12, 2048);
	guest_send(a, 60000);
	guest_send(a, 60);
	assert_int_equal(carry(a, b), 2);
	assert_int_equal(portq_of(b)->drop_out[DROP_BUFFER_SMALL], 1);
	assert_int_equal(ring_sim_pending(&b->rx), 6);
	guest_free(a);
	guest_free(b);
}

static void tiny_buffers_behind_a_used_one(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);

	/* the last capacity seen asks for more chains than are ever popped, and there are none */
	guest_post_each(b, 2048, 1);
	guest_post_each(b, 12, 3);
	guest_send(a, 60);
	guest_send(a, 31320);
	assert_int_equal(carry(a, b), 1);
	assert_int_equal(b->dev.vq[VDEV_RX].last_avail, 1);
	guest_free(a);
	guest_free(b);
}

static void offload_fields_pass(void **state)
{
	(void)state;
	uint64_t all = vnet_features_all();
	struct guest *a = guest_new(all, 8, 0), *b = guest_new(all, 8, 0);
	const uint8_t hdr[12] = {1, 1, 54, 0, 0xb4, 5, 34, 0, 16, 0, 9, 9};
	static struct packet p;

	guest_post_each(b, 40, 4); /* a small first buffer: the general way */
	guest_post_each(b, 4096, 1);
	assert_true(guest_send_cut(a, 0, 60, NULL, 0, hdr) >= 0);
	assert_true(guest_send_cut(a, 1, 180, NULL, 0, hdr) >= 0);
	assert_int_equal(b->dev.port.accepts, ACCEPT_ALL);
	assert_int_equal(carry(a, b), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(guest_receive(b, &p));
		assert_memory_equal(p.hdr, hdr, 10);
		assert_int_equal(p.nbuf, i ? 3 : 2);
		packet_check(&p, i);
	}
	guest_free(a);
	guest_free(b);
}

/* transmit */

static void lent_heads_and_tails(void **state)
{
	(void)state;
	static const struct {
		uint32_t len, cut[4];
		unsigned ncut, ntail;
	} t[] = {
		{60, {0}, 0, 0},
		{128, {0}, 0, 0},
		{129, {0}, 0, 1},
		{1514, {0}, 0, 1},
		{1514, {12}, 1, 1}, /* header in a piece of its own, as Linux and QEMU do */
		{60, {12}, 1, 0},
		{1514, {12, 128}, 2, 1},           /* the head ends where its piece ends */
		{1514, {12, 14, 114, 1000}, 4, 2}, /* torn head */
		{1514, {1, 2, 3, 7}, 4, 1},        /* torn header */
		{1514, {140}, 1, 1},
		{1514, {141}, 1, 2},
		{65549, {12, 66, 30000}, 3, 2},
	};
	struct guest *a = guest_new(MODERN, 64, 0);
	struct portq *q = portq_of(a);

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_true(guest_send_cut(a, i, t[i].len, t[i].cut, t[i].ncut, NULL) >= 0);
	assert_int_equal(q->port->ops->pull(q, &burst, 64), sizeof(t) / sizeof(t[0]));
	for (unsigned i = 0; i < burst.n; i++) {
		const struct frame *f = &burst.f[i];
		uint32_t at = f->head_len, head = t[i].len < FRAME_HEAD ? t[i].len : FRAME_HEAD;

		assert_int_equal(frame_len(f), t[i].len);
		assert_int_equal(f->head_len, head);
		assert_int_equal(f->ntail, t[i].ntail);
		assert_int_equal(f->drop, DROP_NONE);
		for (unsigned k = 0; k < head; k++)
			assert_int_equal(f->head[k], stamp(i, k));
		for (unsigned k = 0; k < f->ntail; k++) {
			const uint8_t *p = f->tail[k].iov_base;

			assert_true(f->tail[k].iov_len > 0);
			for (size_t j = 0; j < f->tail[k].iov_len; j++)
				assert_int_equal(p[j], stamp(i, at++));
		}
		assert_int_equal(at, t[i].len);
	}
	q->port->ops->settle(q, &burst, burst.n);
	guest_free(a);
}

static void lengths_out_of_range(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 64, 0);
	struct portq *q = portq_of(a);
	static const struct {
		uint32_t len;
		enum drop drop;
	} t[] = {{0, DROP_SHORT}, {13, DROP_SHORT}, {14, DROP_NONE}, {FRAME_MAX, DROP_NONE},
		{FRAME_MAX + 1, DROP_TOO_LONG}, {200000, DROP_TOO_LONG}};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		guest_send(a, t[i].len);
	assert_int_equal(
		q->port->ops->pull(q, &burst, 64), 6); /* in order, to be settled in order */
	for (unsigned i = 0; i < burst.n; i++) {
		assert_int_equal(burst.f[i].drop, t[i].drop);
		assert_int_equal(frame_len(&burst.f[i]), t[i].len);
	}
	q->port->ops->settle(q, &burst, burst.n);
	assert_int_equal(ring_sim_pending(&a->tx), 6);
	guest_free(a);
}

static void budgets(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 256, 0);
	struct portq *q = portq_of(a);
	const struct port_ops *ops = q->port->ops;

	for (unsigned i = 0; i < 200; i++)
		guest_send(a, 60);
	assert_int_equal(ops->pull(q, &burst, 1000), BURST_FRAMES);
	ops->settle(q, &burst, burst.n);
	assert_int_equal(ops->pull(q, &burst, 5), 5);
	ops->settle(q, &burst, 2);
	assert_int_equal(ops->pull(q, &burst, 64), 64);
	assert_int_equal(burst.f[0].head[0], 66); /* the first not settled comes again */
	ops->settle(q, &burst, 64);
	assert_int_equal(ops->pull(q, &burst, 64), 64);
	ops->settle(q, &burst, 64);
	assert_int_equal(ops->pull(q, &burst, 64), 6);
	ops->settle(q, &burst, 6);
	assert_int_equal(ops->pull(q, &burst, 64), 0);
	assert_int_equal(ring_sim_drain(&a->tx, 256), 200);

	for (unsigned i = 0; i < 64; i++)
		guest_send(a, 65535);
	for (unsigned left = 64; left; left -= burst.n) {
		/* until the bytes are exceeded, and the rest stays on the ring */
		assert_true(ops->pull(q, &burst, 64) <= 9);
		assert_true(burst.n >= 8 || burst.n == left);
		assert_int_equal(burst.bytes, burst.n * 65535u);
		assert_int_equal(
			a->dev.vq[VDEV_TX].last_avail, (uint16_t)(200 + 64 - left + burst.n));
		ops->settle(q, &burst, burst.n);
	}
	guest_free(a);
}

static void armed_and_kicked(void **state)
{
	(void)state;
	static const uint64_t features[] = {MODERN, B(VERSION_1)};

	for (unsigned i = 0; i < 2; i++) {
		struct guest *a = guest_new(features[i], 16, 65535);
		struct portq *q = portq_of(a);
		const struct port_ops *ops = q->port->ops;

		guest_send(a, 60);
		assert_true(ring_sim_kick(&a->tx)); /* a fresh ring is armed */
		assert_true(ops->arm(q));           /* they came meanwhile */
		assert_int_equal(ops->pull(q, &burst, 64), 1);
		guest_send(a, 60);
		assert_false(ring_sim_kick(&a->tx)); /* at work: no kick */
		ops->settle(q, &burst, 1);
		assert_int_equal(ops->pull(q, &burst, 64), 1);
		ops->settle(q, &burst, 1);
		assert_false(ops->arm(q));
		guest_send(a, 60);
		assert_true(ring_sim_kick(&a->tx));
		guest_free(a);
	}
}

/* drivers that lie */

enum lie {
	TX_WRITABLE,
	TX_SHORT,
	TX_WILD,
	TX_HEAD,
	TX_AHEAD,
	TX_LOOP,
	RX_READABLE,
	RX_WILD,
	RX_AHEAD
};

static void tell(struct guest *g, enum lie lie)
{
	struct ring_sim_buf b[2] = {{GPA + g->window, 100}, {GPA + g->window + 4096, 100}};
	bool tx = lie < RX_READABLE;
	struct ring_sim *s = tx ? &g->tx : &g->rx;

	switch (lie) {
	case TX_WRITABLE:
		ring_sim_add(s, b, 1, 1, false);
		break;
	case TX_SHORT:
		b[0].len = g->hdr_len - 1;
		ring_sim_add(s, b, 1, 0, false);
		break;
	case TX_WILD:
	case RX_WILD:
		b[0].gpa = GPA + SIZE - 99;
		ring_sim_add(s, b, tx, !tx, false);
		break;
	case TX_HEAD:
		ring_sim_add_raw(s, s->size);
		break;
	case TX_LOOP:
		s->desc[3] = (struct vring_desc){GPA, 1, VRING_DESC_F_NEXT, 3};
		ring_sim_add_raw(s, 3);
		break;
	case RX_READABLE:
		ring_sim_add(s, b, 1, 1, false);
		break;
	case TX_AHEAD:
	case RX_AHEAD:
		s->avail_next = (uint16_t)(s->used_next + s->size + 1);
		break;
	}
	ring_sim_publish(s);
}

static void broken_rings(void **state)
{
	(void)state;
	static const struct {
		enum lie lie;
		const char *reason;
	} t[] = {
		{TX_WRITABLE, "a transmit chain has writable parts"},
		{TX_SHORT, "a transmit chain is shorter than the virtio-net header"},
		{TX_WILD, "descriptor outside of guest memory"},
		{TX_HEAD, "avail entry names no descriptor of the ring"},
		{TX_AHEAD, "avail index runs ahead by more than the ring's size"},
		{TX_LOOP, "descriptor chain loops or is too long"},
		{RX_READABLE, "a receive chain has readable parts"},
		{RX_WILD, "descriptor outside of guest memory"},
		{RX_AHEAD, "avail index runs ahead by more than the ring's size"},
	};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);
		bool tx = t[i].lie < RX_READABLE;
		struct guest *liar = tx ? a : b;
		static struct packet p;

		guest_send(a, 60);
		guest_post_each(b, 2048, 1);
		tell(liar, t[i].lie);
		guest_send(a, 60);
		for (unsigned k = 0; k < 3; k++) /* stops, and stays stopped */
			carry(a, b);
		loop_dispatch(&loop, false);
		assert_string_equal(liar->dev.broken, t[i].reason);
		assert_string_equal(liar->why, t[i].reason);
		assert_int_equal(liar->broke, 1);
		assert_false(liar->dev.port.link);
		assert_true((tx ? b : a)->dev.port.link); /* the other one goes on */
		assert_null((tx ? b : a)->dev.broken);
		while (guest_receive(b, &p)) /* what came before is whole */
			packet_check(&p, 0);

		/* a new driver on the same device */
		unsigned queue = tx ? VDEV_TX : VDEV_RX;
		struct ring_sim *s = tx ? &liar->tx : &liar->rx;

		vdev_ring_stop(&liar->dev, queue);
		assert_null(liar->dev.broken);
		ring_sim_fini(s);
		liar->at = liar->window + liar->window_len - (1u << 20);
		guest_ring(liar, queue, s, 16, 5);
		liar->at = liar->window;
		vdev_ring_start(&liar->dev, queue);
		assert_true(liar->dev.port.link);
		if (!tx)
			guest_post_each(b, 2048, 2);
		guest_send(a, 60);
		carry(a, b);
		assert_null(a->dev.broken);
		assert_null(b->dev.broken);
		guest_free(a);
		guest_free(b);
	}
}

static void break_in_arm(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0);

	guest_post_each(a, 2048, 2);
	tell(a, RX_AHEAD);
	assert_false(a->dev.port.ops->arm_room(portq_of(a), 100));
	assert_non_null(a->dev.broken);
	assert_int_equal(a->broke, 0); /* never from inside */
	loop_dispatch(&loop, false);
	assert_int_equal(a->broke, 1);
	guest_free(a);
	a = guest_new(MODERN, 16, 0);
	tell(a, TX_AHEAD);
	assert_false(a->dev.port.ops->arm(portq_of(a)));
	loop_dispatch(&loop, false);
	assert_int_equal(a->broke, 1);
	guest_free(a);
}

static void memory_truncated(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);
	size_t len = 1 << 20;
	int fd = memfd_create("guest", 0);
	struct ring_sim_buf buf = {GPA + (UINT64_C(1) << 32), 2048};

	assert_int_equal(sigbus_install(), 0);
	for (unsigned queue = VDEV_RX; queue <= VDEV_TX; queue++) {
		struct guest *g = queue == VDEV_RX ? b : a;

		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		assert_int_equal(
			gmem_map(&g->dev.mem, buf.gpa, UVA + buf.gpa, len, fd, 0, NULL), 0);
		assert_int_equal(ftruncate(fd, 0), 0);
	}
	ring_sim_add(&b->rx, &buf, 0, 1, false);
	ring_sim_publish(&b->rx);
	guest_send(a, 60);
	carry(a, b);
	assert_string_equal(b->dev.broken, "guest memory was truncated");
	assert_int_equal(ring_sim_pending(&b->rx), 0);
	ring_sim_add(&a->tx, &buf, 1, 0, false);
	ring_sim_publish(&a->tx);
	assert_int_equal(carry(a, b), 0);
	assert_string_equal(a->dev.broken, "guest memory was truncated");
	loop_dispatch(&loop, false);
	assert_int_equal(a->broke + b->broke, 2);
	close(fd);
	guest_free(a);
	guest_free(b);
}

/* states */

struct told {
	unsigned ready, room, link;
};

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct told *)ctx)->ready++;
}

static void on_room(void *ctx, struct portq *q)
{
	(void)q;
	((struct told *)ctx)->room++;
}

static void on_link(void *ctx, struct port *p)
{
	(void)p;
	((struct told *)ctx)->link++;
}

static const struct port_events events = {on_ready, on_room, on_link};

/* What a state lets through: frames from the guest, frames to it. */
static void state_check(struct guest *g, bool link, bool tx, bool rx, bool discard)
{
	struct guest *peer = guest_new(MODERN, 16, 0);
	uint64_t dropped = portq_of(g)->drop_in[DROP_DISABLED];
	uint16_t tx_at = g->tx.used->idx, rx_at = g->rx.used->idx;

	assert_int_equal(g->dev.port.link, link);
	assert_int_equal(g->dev.port.accepts, vnet_accepts(g->dev.features));
	guest_post_each(peer, 2048, 4);
	guest_send(g, 60);
	vdev_kicked(&g->dev, VDEV_TX);
	assert_int_equal(carry(g, peer), tx);
	assert_int_equal((uint16_t)(g->tx.used->idx - tx_at), tx || discard);
	assert_int_equal(portq_of(g)->drop_in[DROP_DISABLED] - dropped, discard);
	if (!tx && !discard) { /* take it back, for the next state */
		g->tx.avail_next--;
		g->tx.free_get--;
		g->sent--;
		g->tx.avail->idx--;
		g->tx.avail_shown--;
	}
	guest_post_each(g, 2048, 1);
	guest_send(peer, 60);
	assert_int_equal(carry(peer, g), rx);
	assert_int_equal((uint16_t)(g->rx.used->idx - rx_at), rx);
	ring_sim_drain(&g->tx, 16);
	ring_sim_drain(&g->rx, 16);
	guest_free(peer);
}

static void states(void **state)
{
	(void)state;
	struct guest *g = guest_new_stopped(MODERN & ~B(INDIRECT_DESC), 64, 0);
	struct vdev *v = &g->dev;
	struct told told = {0};

	v->port.events = &events;
	v->port.events_ctx = &told;
	state_check(g, false, false, false, false); /* stopped, disabled */
	vdev_ring_enable(v, VDEV_RX, true);
	vdev_ring_enable(v, VDEV_TX, true);
	state_check(g, false, false, false, false); /* stopped, enabled */
	vdev_ring_enable(v, VDEV_TX, false);
	vdev_ring_start(v, VDEV_TX);
	state_check(g, false, false, false, true); /* tx started, disabled: consumed and dropped */
	assert_int_equal(told.link, 0);
	vdev_ring_start(v, VDEV_RX);
	assert_int_equal(told.link, 1);
	state_check(g, true, false, true, true); /* rx works */
	assert_int_equal(told.ready, 0);
	vdev_ring_enable(v, VDEV_TX, true);
	assert_int_equal(told.ready, 1);         /* frames may wait */
	state_check(g, true, true, true, false); /* both */
	vdev_ring_start(v, VDEV_TX);             /* again: nothing */
	vdev_ring_enable(v, VDEV_TX, true);
	state_check(g, true, true, true, false);
	vdev_ring_enable(v, VDEV_RX, false);
	assert_int_equal(told.link, 2);
	state_check(g, false, false, false, false); /* rx silent */
	vdev_ring_enable(v, VDEV_RX, true);
	state_check(g, true, true, true, false);

	/* stop tells where to go on, and it does go on there */
	uint16_t base = vdev_ring_stop(v, VDEV_TX);

	assert_int_equal(base, g->tx.used->idx);
	assert_int_equal(vdev_ring_stop(v, VDEV_TX), base); /* twice is the same */
	state_check(g, true, false, true, false);
	vdev_set_ring_base(v, VDEV_TX, base);
	vdev_ring_start(v, VDEV_TX);
	state_check(g, true, true, true, false);
	vdev_ring_stop(v, VDEV_RX);
	state_check(g, false, false, false, false);
	vdev_ring_start(v, VDEV_RX);
	state_check(g, true, true, true, false);

	unsigned kicks = told.room;

	vdev_kicked(v, VDEV_RX);
	assert_int_equal(told.room, kicks + 1);
	assert_int_equal(portq_of(g)->out.kicks, 1);
	vdev_reset(v);
	assert_false(v->port.link);
	assert_int_equal(v->features, 0);
	assert_int_equal(v->port.accepts, 0);
	assert_int_equal(v->hdr_len, 10);
	assert_int_equal(v->ring[VDEV_RX].size, 0);
	vdev_kicked(v, VDEV_RX);
	assert_int_equal(told.room, kicks + 1); /* a stopped queue tells nothing */
	v->port.ops->close(&v->port);
	guest_free(g);
}

static void starts_without_a_ring(void **state)
{
	(void)state;
	static const char *const reason[] = {"the ring has no size", "the ring has no addresses",
		"the ring is not in mapped memory"};

	for (unsigned i = 0; i < 3; i++) {
		struct guest *g = calloc(1, sizeof(*g));

		vdev_init(&g->dev, "guest", &config, &loop, NULL);
		g->dev.broke = on_broke;
		g->dev.ctx = g;
		vdev_ring_enable(&g->dev, VDEV_RX, true);
		if (i > 0)
			assert_int_equal(vdev_set_ring_size(&g->dev, VDEV_RX, 64, NULL), 0);
		if (i > 1)
			assert_int_equal(
				vdev_set_ring_addr(&g->dev, VDEV_RX, UVA, UVA, UVA, NULL), 0);
		vdev_set_ring_base(&g->dev, VDEV_RX, 77);
		vdev_ring_start(&g->dev, VDEV_RX);
		loop_dispatch(&loop, false);
		assert_string_equal(g->why, reason[i]);
		assert_int_equal(g->dev.port.ops->pull(portq_of(g), &burst, 64), 0);
		assert_int_equal(vdev_ring_stop(&g->dev, VDEV_RX), 77);
		assert_null(g->dev.broken);
		vdev_fini(&g->dev);
		free(g);
	}
}

static void ring_values(void **state)
{
	(void)state;
	struct guest *g = guest_new_stopped(MODERN, 64, 0);
	struct vdev *v = &g->dev;
	struct err err;
	static const unsigned bad[] = {0, 3, 63, 65536, 1u << 31};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(vdev_set_ring_size(v, VDEV_TX, bad[i], &err), -EINVAL);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, UVA + 8, UVA, UVA, &err), -EINVAL);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, UVA, UVA + 1, UVA, &err), -EINVAL);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, UVA, UVA, UVA + 2, &err), -EINVAL);
	vdev_ring_enable(v, VDEV_TX, true);
	vdev_ring_start(v, VDEV_TX);
	assert_int_equal(vdev_set_ring_size(v, VDEV_TX, 64, &err), -EBUSY);
	/* the same addresses again while it runs, and new ones that lead nowhere */
	const struct vdev_ring r = v->ring[VDEV_TX];

	assert_int_equal(
		vdev_set_ring_addr(v, VDEV_TX, r.desc_uva, r.avail_uva, r.used_uva, &err), 0);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, 0, r.avail_uva, r.used_uva, &err), -EINVAL);
	assert_int_equal(v->ring[VDEV_TX].desc_uva, r.desc_uva);
	assert_null(v->broken);
	guest_free(g);
}

static void memory_changes(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);
	uint8_t *old = b->mem;
	static struct packet p;

	guest_post_each(b, 2048, 4);
	guest_send(a, 60);
	guest_send(a, 60);
	assert_int_equal(a->dev.port.ops->pull(portq_of(a), &burst, 1), 1);
	assert_int_equal(b->dev.port.ops->push(portq_of(b), burst.f, 1), 1);
	a->dev.port.ops->settle(portq_of(a), &burst, 1);
	/* not flushed: the change must leave nothing behind in the old memory */
	vdev_mem_begin(&b->dev);
	assert_int_equal(b->rx.used->idx, 1);
	b->mem = aligned_alloc(4096, SIZE);
	memcpy(b->mem, old, SIZE);
	memset(old, 0xdd, SIZE);
	gmem_fini(&b->dev.mem);
	gmem_init(&b->dev.mem);
	assert_int_equal(gmem_add(&b->dev.mem, GPA, UVA, SIZE, b->mem, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct ring_sim *s = i ? &b->tx : &b->rx;

		s->desc = (void *)(b->mem + ((uint8_t *)s->desc - old));
		s->avail = (void *)(b->mem + ((uint8_t *)s->avail - old));
		s->used = (void *)(b->mem + ((uint8_t *)s->used - old));
		s->table = (void *)(b->mem + ((uint8_t *)s->table - old));
	}
	free(old);
	vdev_mem_end(&b->dev);
	assert_true(b->dev.port.link);
	assert_int_equal(carry(a, b), 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(guest_receive(b, &p));
		packet_check(&p, i);
	}

	/* now the rings' memory goes */
	vdev_mem_begin(&b->dev);
	gmem_fini(&b->dev.mem);
	gmem_init(&b->dev.mem);
	vdev_mem_end(&b->dev);
	guest_send(a, 60);
	assert_int_equal(carry(a, b), 0);
	loop_dispatch(&loop, false);
	assert_string_equal(b->dev.broken, "the memory of the ring was taken away");
	assert_int_equal(b->broke, 1);
	assert_int_equal(vdev_ring_stop(&b->dev, VDEV_RX), 2);
	guest_free(a);
	guest_free(b);
}

/* features, configuration, announcements */

static void features(void **state)
{
	(void)state;
	struct vdev_config c = {
		.mac = {2, 1, 2, 3, 4, 5}, .mtu = 9000, .off = B(CSUM) | B(MRG_RXBUF)};
	struct vdev *v = calloc(1, sizeof(*v));
	struct err err;

	vdev_init(v, "guest", &c, &loop, NULL);
	assert_int_equal(v->offered,
		vnet_features_all() & ~(B(CSUM) | B(MRG_RXBUF) | B(HOST_TSO4) | B(HOST_TSO6) |
					      B(HOST_ECN) | B(HOST_USO)));
	assert_int_equal(vdev_set_features(v, v->offered, &err), 0);
	assert_int_equal(v->port.accepts, ACCEPT_ALL);
	assert_int_equal(v->port.mtu, 9000);
	assert_int_equal(v->hdr_len, 12);
	assert_int_equal(vdev_set_features(v, B(VERSION_1) | B(CSUM), &err), -EINVAL);
	assert_non_null(strstr(err.text, "not offered: csum"));
	assert_int_equal(vdev_set_features(v, UINT64_C(1) << 17, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bit17"));
	assert_int_equal(vdev_set_features(v, B(GUEST_TSO4), &err), -EINVAL);
	assert_non_null(strstr(err.text, "guest_tso4"));
	assert_int_equal(v->features, v->offered); /* a refusal changes nothing */
	assert_int_equal(
		vdev_set_features(v, B(GUEST_CSUM), &err), 0); /* G4: a subset works, too */
	assert_int_equal(v->hdr_len, 10);
	assert_int_equal(v->port.accepts, ACCEPT_CSUM);
	assert_int_equal(v->port.mtu, 0); /* not acknowledged: none known */

	assert_int_equal(vdev_set_mtu(v, 67, &err), -EINVAL);
	assert_int_equal(vdev_set_mtu(v, 65536, &err), -EINVAL);
	assert_int_equal(vdev_set_mtu(v, UINT64_C(1) << 32 | 1500, &err), -EINVAL);
	assert_int_equal(vdev_set_mtu(v, 1400, &err), 0);
	assert_int_equal(v->port.mtu, 1400);
	vdev_fini(v);
	free(v);
}

static void configuration(void **state)
{
	(void)state;
	struct vdev_config c = {.mac = {2, 1, 2, 3, 4, 5}, .mtu = 9000};
	struct vdev *v = calloc(1, sizeof(*v));
	const uint8_t want[12] = {2, 1, 2, 3, 4, 5, 1, 0, 1, 0, 0x28, 0x23};
	uint8_t got[16];

	vdev_init(v, "guest", &c, &loop, NULL);
	assert_int_equal(vdev_config_read(v, 0, 12, got), 0);
	assert_memory_equal(got, want, 12);
	for (unsigned at = 0; at <= 14; at++) {
		for (unsigned n = 0; n <= 14; n++) {
			memset(got, 0xaa, sizeof(got));
			assert_int_equal(
				vdev_config_read(v, at, n, got), at + n <= 12 ? 0 : -EINVAL);
			if (at + n <= 12)
				assert_memory_equal(got, want + at, n);
			assert_int_equal(got[at + n <= 12 ? n : 0], 0xaa);
		}
	}
	assert_int_equal(vdev_config_read(v, UINT32_MAX, 2, got), -EINVAL);
	vdev_fini(v);
	free(v);
}

static void announcement(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0);
	struct portq *q = portq_of(a);
	const struct port_ops *ops = q->port->ops;
	struct told told = {0};
	const uint8_t mac[6] = {2, 9, 8, 7, 6, 5};

	a->dev.port.events = &events;
	a->dev.port.events_ctx = &told;
	assert_false(ops->arm(q));
	vdev_send_rarp(&a->dev, mac);
	assert_int_equal(told.ready, 1);
	assert_true(ops->arm(q));
	guest_send(a, 60);
	guest_send(a, 60);
	for (unsigned i = 0; i < 2; i++) { /* nothing finished: it comes again */
		assert_int_equal(ops->pull(q, &burst, 2), 2);
		assert_int_equal(burst.f[0].head_len, 60);
		assert_int_equal(burst.f[0].drop, DROP_NONE);
		assert_int_equal(burst.f[0].head[0], 0xff);
		assert_memory_equal(burst.f[0].head + 6, mac, 6);
		assert_int_equal(burst.f[0].head[12] << 8 | burst.f[0].head[13], 0x8035);
		assert_memory_equal(burst.f[0].head + 22, mac, 6);
		assert_int_equal(burst.f[1].head[4], stamp(0, 4));
		ops->settle(q, &burst, 0);
		assert_int_equal(a->dev.vq[VDEV_TX].last_avail, 0);
	}
	assert_int_equal(ops->pull(q, &burst, 64), 3);
	ops->settle(q, &burst, 2); /* the announcement and one chain */
	assert_int_equal(ring_sim_pending(&a->tx), 1);
	assert_int_equal(ops->pull(q, &burst, 64), 1);
	ops->settle(q, &burst, 1);
	assert_int_equal(ring_sim_pending(&a->tx), 2);
	guest_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_frame),
		cmocka_unit_test(loopback_random),
		cmocka_unit_test(buffers),
		cmocka_unit_test(one_small_buffer_costs_the_frame),
		cmocka_unit_test(room_comes_late),
		cmocka_unit_test(arm_room_never_spins),
		cmocka_unit_test(frame_that_never_fits),
		cmocka_unit_test(tiny_buffers_behind_a_used_one),
		cmocka_unit_test(offload_fields_pass),
		cmocka_unit_test(lent_heads_and_tails),
		cmocka_unit_test(lengths_out_of_range),
		cmocka_unit_test(budgets),
		cmocka_unit_test(armed_and_kicked),
		cmocka_unit_test(broken_rings),
		cmocka_unit_test(break_in_arm),
		cmocka_unit_test(memory_truncated),
		cmocka_unit_test(states),
		cmocka_unit_test(starts_without_a_ring),
		cmocka_unit_test(ring_values),
		cmocka_unit_test(memory_changes),
		cmocka_unit_test(features),
		cmocka_unit_test(configuration),
		cmocka_unit_test(announcement),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
