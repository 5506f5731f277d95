/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gro_test: what is cut comes together again, byte for byte, whatever else is in between; what differs
 * in anything that a receiver could tell stays apart, in its order.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "frame/frame_make.h"
#include "frame/gro.h"
#include "frame/offload.h"
#include "frame/pkt.h"
#include "wire/eth.h"
#include "wire/hdrs.h"

#define MSS 1000

struct bed {
	struct gro *g;
	struct rand rnd;
	struct made big;
	struct fit fit;
	struct made seg[BURST_FRAMES];
	struct frame f[BURST_FRAMES];
	struct hdrs h[BURST_FRAMES];
	const struct hdrs *hp[BURST_FRAMES];
	uint8_t kind[BURST_FRAMES];
	uint8_t flat[MAKE_MAX], second[MAKE_MAX];
	struct frame_head lent[BURST_FRAMES];
	struct iovec lent_iov[BURST_FRAMES][4];
	unsigned n;
};

static int setup(void **state)
{
	const char *env = getenv("SEED");
	const uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	struct bed *b = calloc(1, sizeof(*b));

	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&b->rnd, seed);
	b->g = gro_new();
	gro_seed(b->g, rand_u64(&b->rnd));
	*state = b;
	return 0;
}

static void clear(struct bed *b)
{
	for (unsigned i = 0; i < b->n; i++)
		make_end(&b->seg[i]);
	b->n = 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	clear(b);
	gro_free(b->g);
	free(b);
	return 0;
}

/* A frame more in the burst, lent in random pieces. */
static struct made *add(struct bed *b, const struct recipe *r)
{
	struct made *m = &b->seg[b->n++];

	make(m, r, &b->rnd);
	make_lend(m, FRAME_HEAD, 600, &b->rnd);
	return m;
}

/* The bytes of `m` were changed: lend them again. */
static void again(struct bed *b, struct made *m)
{
	make_end(m);
	make_lend(m, FRAME_HEAD, 600, &b->rnd);
}

static unsigned run(struct bed *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		b->f[i] = b->seg[i].f;
		assert_int_equal(
			hdrs_parse(b->f[i].head, b->f[i].head_len, frame_len(&b->f[i]), &b->h[i]),
			HDRS_OK);
		b->hp[i] = &b->h[i];
		b->kind[i] = b->seg[i].r.proto == 17 ? GRO_UDP : GRO_TCP;
	}
	return gro_burst(b->g, b->f, b->hp, b->kind, b->n);
}

static struct recipe tcp_recipe(unsigned ip, uint32_t seq, uint32_t payload)
{
	return (struct recipe){.ip = ip,
		.proto = 6,
		.tcp_opts = 12,
		.flags = 0x10,
		.id = 7,
		.seq = seq,
		.payload = payload};
}

/* Cut a super-packet by the segmenter, put the segments through, and have the super-packet back. */
static void round_trip(void **state)
{
	struct bed *b = *state;

	for (unsigned round = 0; round < 400; round++) {
		const unsigned n = 1 + rand_below(&b->rnd, 30),
			       proto = rand_below(&b->rnd, 2) ? 6 : 17;
		struct recipe r = tcp_recipe(rand_below(&b->rnd, 2) ? 4 : 6,
			(uint32_t)rand_u64(&b->rnd), n * MSS - rand_below(&b->rnd, MSS));
		uint8_t last;

		r.proto = proto;
		r.tags = rand_below(&b->rnd, 3);
		if (proto == 6 && rand_below(&b->rnd, 2))
			r.flags |= 8;
		if (proto == 17)
			r.tcp_opts = r.flags = 0;
		make(&b->big, &r, &b->rnd);
		make_lend(&b->big, FRAME_HEAD, 5000, &b->rnd);
		b->big.f.off = make_off(&b->big, r.payload > MSS ? MSS : 0);
		assert_int_equal(offload_check(&b->big.f), DROP_NONE);
		if (!b->big.f.off.gso) {
			make_end(&b->big);
			continue;
		}
		fit_reset(&b->fit);
		assert_int_equal(fit_segment(&b->fit, &b->big.f, 0, 0), DROP_NONE);
		assert_int_equal(b->fit.n, n);
		for (unsigned i = 0; i < n; i++) {
			struct made *m = &b->seg[b->n++];

			m->r = r;
			m->len = frame_flatten(&b->fit.f[i], m->flat);
			make_lend(m, FRAME_HEAD, 600, &b->rnd);
		}
		last = b->seg[n - 1].flat[b->big.l4 + 13];
		assert_int_equal(run(b), n - 1);
		assert_int_equal(b->f[0].off.gso_size, MSS);
		assert_int_equal(offload_check(&b->f[0]), DROP_NONE);
		assert_int_equal(frame_flatten(&b->f[0], b->flat), b->big.len);
		/* the very bytes, and the checksum is the partial one again */
		assert_memory_equal(b->flat, b->big.flat, b->big.len);
		if (proto == 6)
			assert_int_equal(b->flat[b->big.l4 + 13], last);
		clear(b);
		make_end(&b->big);
	}
}

/* Two frames that follow each other but for one thing. */
static void apart(void **state)
{
	static const struct {
		unsigned ip;
		int from_l3, from_l4; /* which byte is different, -1: none */
		uint8_t flip;
	} bad[] = {{4, 1, -1, 4}, {4, 8, -1, 1}, {4, 6, -1, 0x40}, {4, 15, -1, 1}, {4, 19, -1, 1},
		{6, 1, -1, 1}, {6, 7, -1, 1}, {6, 20, -1, 1}, {6, 39, -1, 1}, {4, -1, 1, 1},
		{4, -1, 3, 1}, {4, -1, 7, 1}, {4, -1, 11, 1}, {4, -1, 13, 2}, {4, -1, 13, 4},
		{4, -1, 13, 32}, {4, -1, 13, 64}, {4, -1, 13, 128}, {4, -1, 13, 16}, {4, -1, 14, 1},
		{4, -1, 20, 3}, {4, -1, 31, 1}, {6, -1, 7, 1}, {6, -1, 25, 1}};
	struct bed *b = *state;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct recipe r = tcp_recipe(bad[i].ip, 5, MSS);
		struct made *m;

		add(b, &r);
		r.seq += MSS;
		r.id++;
		m = add(b, &r);
		if (bad[i].from_l3 >= 0)
			m->flat[m->l3 + (unsigned)bad[i].from_l3] ^= bad[i].flip;
		if (bad[i].from_l4 >= 0)
			m->flat[m->l4 + (unsigned)bad[i].from_l4] ^= bad[i].flip;
		again(b, m);
		assert_int_equal(run(b), 0);
		assert_int_equal(b->f[0].off.gso, 0);
		assert_int_equal(b->f[1].off.gso, 0);
		clear(b);
	}
}

/* PSH and a short one end it, and are in it; bare ACKs, SYNs and bigger ones stay out. */
static void ends(void **state)
{
	static const struct {
		uint32_t len[4];
		uint8_t flags[4], kind[4];
	} row[] = {
		{{MSS, MSS, MSS, MSS}, {16, 16, 16, 16}, {GRO_TCP, 0xff, 0xff, 0xff}},
		{{MSS, MSS, MSS, MSS}, {16, 24, 16, 16}, {GRO_TCP, 0xff, GRO_TCP, 0xff}},
		{{MSS, MSS, MSS, MSS}, {16, 17, 16, 16}, {GRO_TCP, 0xff, GRO_TCP, 0xff}},
		{{MSS, 10, MSS, MSS}, {16, 16, 16, 16}, {GRO_TCP, 0xff, GRO_TCP, 0xff}},
		{{10, MSS, MSS, MSS}, {16, 16, 16, 16}, {GRO_TCP, GRO_TCP, 0xff, 0xff}},
		{{MSS, 0, MSS, MSS}, {16, 16, 16, 16}, {GRO_TCP, GRO_TCP, GRO_TCP, 0xff}},
		{{MSS, MSS, MSS, MSS}, {24, 16, 16, 16}, {GRO_TCP, GRO_TCP, 0xff, 0xff}},
		{{MSS, MSS, MSS, MSS}, {16, 18, 16, 16}, {GRO_TCP, GRO_TCP, GRO_TCP, 0xff}},
		{{0, 0, 0, 0}, {16, 16, 16, 16}, {GRO_TCP, GRO_TCP, GRO_TCP, GRO_TCP}},
	};
	struct bed *b = *state;

	for (unsigned i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct recipe r = tcp_recipe(4, 0xffffff00, 0);

		for (unsigned k = 0; k < 4; k++) {
			r.payload = row[i].len[k];
			r.flags = row[i].flags[k];
			add(b, &r);
			r.seq += r.payload;
			r.id++;
		}
		run(b);
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(b->kind[k], row[i].kind[k]);
		clear(b);
	}
}

/* Many flows at once, each comes together; more than are held at once, some do not, none is mixed. */
static void flows(void **state)
{
	struct bed *b = *state;

	for (unsigned nflows = 1; nflows <= 32; nflows++) {
		unsigned left;

		for (unsigned i = 0; i < 64; i++) {
			struct recipe r = tcp_recipe(4, i / nflows * MSS, MSS);
			struct made *m;

			r.id = (uint16_t)(i / nflows);
			m = add(b, &r);
			m->flat[m->l4 + 1] = (uint8_t)(i % nflows);
			again(b, m);
		}
		left = 64 - run(b);
		if (nflows <= GRO_HELD)
			assert_int_equal(left, nflows);
		for (unsigned i = 0; i < 64; i++) {
			if (b->kind[i] == GRO_MERGED)
				continue;
			assert_int_equal(b->f[i].head[b->seg[i].l4 + 1], i % nflows);
			if (nflows <= GRO_HELD)
				assert_int_equal(frame_len(&b->f[i]) - b->h[i].payload,
					MSS * (64 / nflows + (i % nflows < 64 % nflows)));
		}
		clear(b);
	}
}

/* Never more than an IP datagram can hold, and the identification either counts or stands. */
static void bounds(void **state)
{
	struct bed *b = *state;
	struct recipe r = tcp_recipe(4, 0, 1448);

	for (unsigned i = 0; i < 64; i++) {
		add(b, &r);
		r.seq += 1448;
		r.id++;
	}
	assert_int_equal(run(b), 62);
	assert_true(frame_len(&b->f[0]) - 14 <= 65535);
	assert_int_equal(frame_len(&b->f[0]) - b->h[0].payload, 45 * 1448);
	clear(b);
	r = tcp_recipe(4, 0, MSS);
	for (unsigned i = 0; i < 6; i++) {
		r.id = (uint16_t[]){5, 5, 5, 6, 7, 9}[i];
		add(b, &r);
		r.seq += MSS;
	}
	run(b);
	assert_int_equal(b->kind[2], GRO_MERGED);
	assert_int_equal(b->kind[3], GRO_TCP);
	assert_int_equal(b->kind[4], GRO_MERGED);
	assert_int_equal(b->kind[5], GRO_TCP);
}

/* A received packet as a driver makes it, Ethernet in the head, all else where the device wrote it. */
static struct pkt *received(struct bed *b, struct pkt_pool *pool, const struct made *m)
{
	struct pkt *p = pkt_new(pool, 16, ETH_HLEN);
	struct chunk *c = chunk_get(pool->chunks, 0);
	uint8_t *data = chunk_data(pool->chunks, c) + 26;
	struct frame *f = &b->f[b->n];

	memcpy(p->head, m->flat, ETH_HLEN);
	memcpy(data, m->flat + ETH_HLEN, m->len - ETH_HLEN);
	assert_true(pkt_add(p, c, data, m->len - ETH_HLEN, 1536, true));
	assert_true(pkt_lend(p, f, &b->lent[b->n], b->lent_iov[b->n], 4));
	assert_int_equal(hdrs_parse(f->head, f->head_len, frame_len(f), &b->h[b->n]), HDRS_OK);
	b->hp[b->n] = &b->h[b->n];
	b->kind[b->n++] = GRO_TCP;
	return p;
}

/* What came in a driver's buffers is kept where it lies, and charged what the buffers were. */
static void by_reference(void **state)
{
	struct bed *b = *state;
	struct keep_rule rule = {.order = 3};
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct pkt *in[10], *kept;
	struct recipe r = tcp_recipe(4, 1, MSS);
	struct frame f;
	struct frame_head head;
	struct iovec iov[40];
	struct err err;
	uint32_t before;

	if (chunk_pool_init(&chunks, 1 << 20, &err) || pkt_pool_init(&pkts, &chunks, 32, &err))
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < 10; i++) {
		struct made m;

		make(&m, &r, &b->rnd);
		in[i] = received(b, &pkts, &m);
		r.seq += MSS;
		r.id++;
	}
	assert_int_equal(gro_burst(b->g, b->f, b->hp, b->kind, b->n), 9);
	before = frame_flatten(&b->f[0], b->flat);
	kept = frame_keep(&b->f[0], &pkts, &rule);
	assert_non_null(kept);
	assert_int_equal(pkts.kept_ref, 1);
	assert_int_equal(pkts.kept_copy, 0);
	assert_int_equal(kept->truesize, kept->head_cap + 10 * 1536);
	for (unsigned i = 0; i < 10; i++)
		pkt_free(in[i]);
	assert_true(pkt_lend(kept, &f, &head, iov, 40));
	assert_int_equal(frame_flatten(&f, b->second), before);
	assert_memory_equal(b->flat, b->second, before);
	pkt_free(kept);
	b->n = 0;
	pkt_pool_fini(&pkts);
	assert_int_equal(chunk_pool_live(&chunks), 0);
	chunk_pool_fini(&chunks);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(round_trip),
		TEST(apart),
		TEST(ends),
		TEST(flows),
		TEST(bounds),
		TEST(by_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
