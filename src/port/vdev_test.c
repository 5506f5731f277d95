/* SPDX-License-Identifier: BSD-2-Clause */
/* vdev: the datapath: frames from one model guest to another, and what lands in which buffer. */
#include "port/vdev_rig.h"

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

/* One sender waits for room, another one's frames find some: the first must be woken all the same. */
static void another_sender_pushes_meanwhile(void **state)
{
	(void)state;
	static const uint64_t features[] = {MODERN, B(VERSION_1) | B(MRG_RXBUF)};

	for (unsigned i = 0; i < 2; i++) {
		struct guest *a = guest_new(features[i], 64, 0), *b = guest_new(features[i], 64, 0);
		struct guest *c = guest_new(features[i], 64, 0);
		const struct port_ops *ops = b->dev.port.ops;

		guest_post_each(b, 1024, 1);
		guest_send(a, 2000);
		guest_send(c, 60);
		assert_int_equal(carry(a, b), 0);
		assert_false(ops->arm_room(portq_of(b), 2000));
		ring_sim_kick(&b->rx);
		assert_int_equal(carry(c, b), 1);
		assert_int_equal(carry(c, b), 0);
		guest_post_each(b, 1024, 2);
		assert_true(ring_sim_kick(&b->rx));
		vdev_kicked(&b->dev, VDEV_RX); /* told: that is enough */
		guest_post_each(b, 1024, 2);
		assert_false(ring_sim_kick(&b->rx));
		assert_int_equal(carry(a, b), 1);
		guest_free(a);
		guest_free(b);
		guest_free(c);
	}
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
		if (i == 0)                         /* they came meanwhile */
			assert_true(ops->arm(q));
		assert_int_equal(ops->pull(q, &burst, 64), 1);
		guest_send(a, 60);
		assert_false(ring_sim_kick(&a->tx)); /* at work: no kick */
		ops->settle(q, &burst, 1);
		assert_int_equal(ops->pull(q, &burst, 64), 1);
		ops->settle(q, &burst, 1);
		assert_false(ops->arm(q));
		guest_send(a, 60);
		assert_true(ring_sim_kick(&a->tx));
		guest_post_each(a, 2048, 2);
		assert_false(ring_sim_kick(&a->rx)); /* nobody waits for room */
		assert_int_equal(ops->pull(q, &burst, 64), 1);
		assert_int_equal(ops->push(q, burst.f, 1), 1);
		ops->flush(q);
		assert_int_equal(ops->push(q, burst.f, 1), 1);
		ops->flush(q);
		assert_false(ops->arm_room(q, 60));
		guest_post_each(a, 2048, 1);
		assert_true(ring_sim_kick(&a->rx));
		vdev_kicked(&a->dev, VDEV_RX);
		assert_int_equal(ops->push(q, burst.f, 1), 1); /* at work again */
		ops->flush(q);
		ops->settle(q, &burst, 1);
		guest_post_each(a, 2048, 1);
		assert_false(ring_sim_kick(&a->rx));
		guest_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_frame),
		cmocka_unit_test(loopback_random),
		cmocka_unit_test(buffers),
		cmocka_unit_test(one_small_buffer_costs_the_frame),
		cmocka_unit_test(room_comes_late),
		cmocka_unit_test(another_sender_pushes_meanwhile),
		cmocka_unit_test(arm_room_never_spins),
		cmocka_unit_test(frame_that_never_fits),
		cmocka_unit_test(tiny_buffers_behind_a_used_one),
		cmocka_unit_test(offload_fields_pass),
		cmocka_unit_test(lent_heads_and_tails),
		cmocka_unit_test(lengths_out_of_range),
		cmocka_unit_test(budgets),
		cmocka_unit_test(armed_and_kicked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
