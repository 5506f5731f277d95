/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_copy_test: what is kept, in chunks of which order, and that a port which copies loses and changes
 * nothing: against the kernel, as tap_test.
 */
#include "port/tap_copy.h"
#include "port/tap_rig.h"

/* ---- chunks by order ------------------------------------------------------------------------ */

static uint8_t bytes[FRAME_MAX];
static struct burst burst;

/* A burst of one frame of `len` bytes, as the port makes it. */
static void lend(uint32_t len, uint16_t hdr_len)
{
	const uint32_t head = len < FRAME_HEAD ? len : FRAME_HEAD;

	memcpy(burst.head[0].data, bytes, head);
	burst.iov[0] = (struct iovec){bytes + head, len - head};
	burst.f[0] = (struct frame){.head = burst.head[0].data,
		.head_len = (uint16_t)head,
		.tail = burst.iov,
		.tail_len = len - head,
		.ntail = len > head,
		.off = {.hdr_len = hdr_len}};
	burst.n = 1;
	burst.niov = burst.f[0].ntail;
}

static void check_frame(const struct pkt *p, uint32_t len)
{
	static uint8_t got[FRAME_MAX];
	struct iovec to = {got, sizeof(got)};

	assert_ptr_equal(burst.f[0].backing, p);
	assert_int_equal(frame_len(&burst.f[0]), len);
	assert_int_equal(burst.niov, burst.f[0].ntail);
	assert_true(burst.f[0].head_len >= (len < FRAME_HEAD ? len : FRAME_HEAD));
	frame_copy(&burst.f[0], 0, len, &to, 1, 0);
	assert_memory_equal(got, bytes, len);
}

static void chunks_are_as_predicted(void **state)
{
	/* paged length: what is beyond 54 bytes of headers; none of a frame below a page */
	static const struct {
		uint32_t order, paged;
		uint64_t n[CHUNK_ORDERS];
	} rows[] = {
		{0, 65536, {16}},
		{1, 65536, {0, 8}},
		{3, 65536, {0, 0, 0, 2}},
		{0, 16384, {4}},
		{1, 16384, {0, 2}},
		{3, 16384, {0, 0, 1}},
		{0, 12288, {3}},
		{1, 12288, {1, 1}},
		{3, 12289, {0, 0, 1}},
		{0, 4097, {2}},
		{1, 4097, {0, 1}},
		{3, 40960, {0, 1, 0, 1}},
	};
	struct err err;

	(void)state;
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 / 7);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint32_t len =
			54 + rows[i].paged > FRAME_MAX ? FRAME_MAX : 54 + rows[i].paged;
		struct tap_copied n;
		struct tap_copy c;
		struct pkt *p;

		assert_int_equal(
			tap_copy_init(&c, &(struct tap_copy_config){.order = rows[i].order}, &err),
			0);
		lend(len, 54);
		p = tap_copy_frame(&c, &burst, 0);
		assert_non_null(p);
		check_frame(p, len);
		tap_copy_count(&c, &n);
		for (unsigned k = 0; k < CHUNK_ORDERS; k++)
			if (n.fragments[k] != rows[i].n[k])
				fail_msg("order %u, %u bytes: %u chunks of order %u", rows[i].order,
					rows[i].paged, (unsigned)n.fragments[k], k);
		assert_int_equal(n.packets, 1);
		assert_int_equal(n.linear, 0);
		assert_int_equal(n.fallbacks, 0);
		pkt_free(p);
		tap_copy_fini(&c);
	}
}

static void below_a_page_needs_none(void **state)
{
	static const uint32_t lens[] = {14, 60, 127, 128, 129, 1514, 4000};
	struct tap_copied n;
	struct tap_copy c;
	struct err err;

	(void)state;
	assert_int_equal(tap_copy_init(&c, &(struct tap_copy_config){.order = 3}, &err), 0);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct pkt *p;

		lend(lens[i], 0);
		p = tap_copy_frame(&c, &burst, 0);
		assert_non_null(p);
		check_frame(p, lens[i]);
		pkt_free(p);
	}
	tap_copy_count(&c, &n);
	assert_int_equal(n.linear, n.packets);
	assert_int_equal(n.packets, sizeof(lens) / sizeof(lens[0]));
	tap_copy_fini(&c);
}

static void refused_orders_are_counted_and_change_nothing(void **state)
{
	struct tap_copied n;
	struct tap_copy c;
	struct pkt *p;
	struct err err;

	(void)state;
	assert_int_equal(tap_copy_init(&c, &(struct tap_copy_config){.order = 3}, &err), 0);
	lend(60, 0); /* the heads have their chunk */
	pkt_free(tap_copy_frame(&c, &burst, 0));
	c.chunks.refuse_permille = 1000;
	lend(54 + 40960, 54);
	p = tap_copy_frame(&c, &burst, 0);
	assert_non_null(p);
	check_frame(p, 54 + 40960);
	tap_copy_count(&c, &n);
	assert_int_equal(n.fragments[0], 10);
	assert_true(n.fallbacks > 0);
	pkt_free(p);
	c.chunks.refuse_all = true;
	lend(54 + 40960, 54);
	assert_null(tap_copy_frame(&c, &burst, 0));
	assert_null(burst.f[0].backing);
	assert_int_equal(frame_len(&burst.f[0]), 54 + 40960);
	tap_copy_count(&c, &n);
	assert_int_equal(n.failures, 1);
	assert_int_equal(n.packets, 2);
	tap_copy_fini(&c);
}

/* ---- the port ------------------------------------------------------------------------------- */

static int setup_copy(void **state)
{
	return setup_config(
		state, (struct tap_config){.copy = true, .copying.order = 1, .vnet_hdr = 20});
}

/* Some come again and again before they are settled: the same bytes, and no chunk is left. */
static void any_order_of_settling_loses_nothing(void **state)
{
	struct fixture *fx = *state;
	struct portq *q = &fx->port->q;
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	const bool big = fx->port->accepts & ACCEPT_USO4;
	uint32_t sent = 0, got = 0;
	int segment = 1400;
	struct tap_copied n;
	struct rand r;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	meet(fx);
	if (big)
		assert_int_equal(
			setsockopt(fx->udp, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
	while (got < 1500) {
		for (unsigned i = rand_below(&r, 12); i && sent < 1500; i--, sent++)
			if (!numbered_send(fx, sent,
				    8 + rand_below(&r, big && !rand_below(&r, 3) ? 59000 : 1300)))
				break;
		loop_dispatch(&fx->loop, false);
		pull(fx, 1 + rand_below(&r, BURST_FRAMES));
		unsigned done = rand_below(&r, fx->b.n + 1);
		for (unsigned i = 0, at = got; i < fx->b.n; i++) {
			struct frame *f = &fx->b.f[i];
			assert_non_null(f->backing);
			if (get_be16(f->head + 12) != ETH_TYPE_IP4 || f->head[23] != IPPROTO_UDP)
				continue;
			if (!rand_below(&r, 4))
				assert_true(frame_pull(f, 130 + rand_below(&r, 300)));
			numbered_check(fx, f, at++);
			got += i < done;
		}
		q->port->ops->settle(q, &fx->b, done);
	}
	assert_int_equal(sent, got);
	assert_true(tap_copied(fx->port, &n));
	assert_true(n.packets >= got);
	assert_int_equal(n.packets, q->in.bufs);
	assert_int_equal(n.failures, 0);
	assert_int_equal(n.fragments[2] + n.fragments[3] + n.fragments[4], 0);
	if (big)
		assert_true(n.fragments[1] > 0);
}

/* The port goes while it holds some: the pool's own check is at its end. */
static void what_is_held_at_close_is_freed(void **state)
{
	struct fixture *fx = *state;

	meet(fx);
	for (unsigned i = 0; i < 5; i++)
		assert_true(numbered_send(fx, i, 1300));
	next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	fx->port->ops->settle(&fx->port->q, &fx->b, 1);
	pull(fx, 2);
	fx->port->ops->settle(&fx->port->q, &fx->b, 1);
}

static int setup_short(void **state)
{
	return setup_config(state, (struct tap_config){.vnet_hdr = 10});
}

static int setup_long(void **state)
{
	return setup_config(state, (struct tap_config){.vnet_hdr = 20});
}

/* Both directions, with a checksum left to do. */
static void header_of_another_size(void **state)
{
	struct fixture *fx = *state;
	struct tap_copied n;
	struct frame *f;

	assert_false(tap_copied(fx->port, &n));
	meet(fx);
	assert_true(numbered_send(fx, 7, 1200));
	f = next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	assert_int_equal(f->off.csum_start, L4);
	numbered_check(fx, f, 7);
	settle_all(fx);
	udp_push(fx, 1400, 0, 3, 4);
	udp_expect(fx, 1400, 4);
	if (fx->port->accepts & ACCEPT_USO4) {
		int on = 1;

		assert_int_equal(setsockopt(fx->udp, SOL_UDP, UDP_GRO, &on, sizeof(on)), 0);
		udp_push(fx, 40000, 1400, 15, 5);
		udp_expect(fx, 40000, 5);
	}
	assert_int_equal(fx->port->q.drop_out[DROP_IO], 0);
}

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(chunks_are_as_predicted),
		cmocka_unit_test(below_a_page_needs_none),
		cmocka_unit_test(refused_orders_are_counted_and_change_nothing),
	};
	const struct CMUnitTest ports[] = {
		cmocka_unit_test_setup_teardown(
			any_order_of_settling_loses_nothing, setup_copy, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_held_at_close_is_freed, setup_copy, teardown),
		cmocka_unit_test_setup_teardown(header_of_another_size, setup_short, teardown),
		cmocka_unit_test_setup_teardown(header_of_another_size, setup_long, teardown),
	};
	int failed = cmocka_run_group_tests(pure, NULL, NULL);

	if (failed)
		return failed;
	return testns_enter() ? cmocka_run_group_tests(ports, NULL, NULL) : TESTNS_SKIP;
}
