/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: two drivers and the network between them, counted, never timed: each mechanism moves its
 * counter by the factor that it promises.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_run.h"

#define PACKETS 2000

/* `PACKETS` frames of `size` bytes; what was counted is in *b. All arrive. */
static void run(struct bench *b, uint32_t size, uint32_t mtu, const char *knobs)
{
	const struct bench_config c = {
		.size = size,
		.mtu = mtu,
		.packets = PACKETS,
		.time = 100 * NSEC_PER_SEC,
		.knobs = knobs,
		.cwd = "/",
		.net = "lab",
	};
	struct err err = {""};

	if (bench_init(b, &c, &err) || bench_run(b, &err))
		fail_msg("%s", err.text);
	assert_int_equal(b->tx.packets, PACKETS);
	assert_int_equal(b->rx.packets, PACKETS);
	assert_int_equal(b->rx.bytes, (uint64_t)PACKETS * size);
	assert_int_equal(b->drops, 0);
	assert_int_equal(b->tx.count.drv.tx_packets, PACKETS);
	assert_int_equal(b->rx.count.drv.rx_packets, PACKETS);
}

static void finish(struct bench *b)
{
	bench_gen_fini(&b->gen);
	/* all references come back: what is live is posted */
	assert_null(chunk_pool_check(vdrv_chunks(b->tx.port)));
	assert_null(chunk_pool_check(vdrv_chunks(b->rx.port)));
	bench_fini(b);
}

static uint64_t rx_buffers(struct bench *b, uint32_t mtu, const char *knobs)
{
	uint64_t n;

	run(b, mtu + 14, mtu, knobs);
	n = b->rx.count.drv.rx_buffers;
	assert_int_equal(b->rx.count.drv.rx_used, n);
	finish(b);
	return n;
}

/* S0: a buffer that forgets the header takes two of them for a full packet, and the step is between
 * MTU 1492 and 1493: the buffer is 14 + 4 + MTU, rounded to nothing. */
static void test_s0_buffers(void **state)
{
	struct bench *b = *state;

	assert_int_equal(rx_buffers(b, 1500, ",rxbuf=mtu"), 2 * PACKETS);
	assert_int_equal(rx_buffers(b, 1500, ",rxbuf=mtu+hdr"), PACKETS);
	assert_int_equal(rx_buffers(b, 1500, ",rxbuf=page"), PACKETS);
	assert_int_equal(rx_buffers(b, 1500, ",rxbuf=auto"), PACKETS);
}

/* Sent at MTU 1500 to a receiver that cuts its buffers for that: the frame decides. */
static void test_s0_step(void **state)
{
	struct bench *b = *state;

	/* 12 + 14 + 1492 = 1518 = 14 + 4 + 1500 */
	run(b, 1492 + 14, 1500, ",rxbuf=mtu");
	assert_int_equal(b->rx.count.drv.rx_buffers, PACKETS);
	finish(b);
	run(b, 1493 + 14, 1500, ",rxbuf=mtu");
	assert_int_equal(b->rx.count.drv.rx_buffers, 2 * PACKETS);
	finish(b);
	run(b, 1493 + 14, 1500, ",rxbuf=mtu+hdr");
	assert_int_equal(b->rx.count.drv.rx_buffers, PACKETS);
	finish(b);
}

/* S1: fragments of a full super-packet: one for each buffer, or one for each chunk. */
static void test_s1_fragments(void **state)
{
	struct bench *b = *state;
	uint64_t n;

	run(b, 65535, 1500, ",rxbuf=mtu+hdr,coalesce=off");
	n = b->rx.count.drv.rx_frags;
	assert_in_range(n, 42 * PACKETS, 44 * PACKETS);
	assert_int_equal(n, b->rx.count.drv.rx_buffers);
	assert_int_equal(b->rx.count.drv.rx_chained, 2 * PACKETS);
	finish(b);
	run(b, 65535, 1500, ",rxbuf=mtu+hdr,coalesce=on");
	n = b->rx.count.drv.rx_frags;
	assert_in_range(n, PACKETS, 4 * PACKETS);
	assert_int_equal(b->rx.count.drv.rx_chained, 0);
	assert_int_equal(b->rx.count.drv.rx_buffers, n + b->rx.count.drv.rx_coalesced);
	finish(b);
}

/* S2: two descriptors and a table for each packet, or one and none. */
static void test_s2_header(void **state)
{
	struct bench *b = *state;

	run(b, 64, 1500, ",inline=off,indirect=always");
	assert_int_equal(b->tx.count.drv.tx_desc, 2 * PACKETS);
	assert_int_equal(b->tx.count.drv.tx_indirect, PACKETS);
	finish(b);
	run(b, 64, 1500, ",inline=off,indirect=never");
	assert_int_equal(b->tx.count.drv.tx_desc, 2 * PACKETS);
	assert_int_equal(b->tx.count.drv.tx_indirect, 0);
	finish(b);
	run(b, 64, 1500, ",inline=on,indirect=always");
	assert_int_equal(b->tx.count.drv.tx_desc, PACKETS);
	assert_int_equal(b->tx.count.drv.tx_indirect, 0);
	assert_int_equal(b->tx.count.drv.tx_inline, PACKETS);
	finish(b);
	run(b, 64, 1500, ",inline=on,headroom=0,indirect=always"); /* no room for it */
	assert_int_equal(b->tx.count.drv.tx_inline, 0);
	assert_int_equal(b->tx.count.drv.tx_indirect, PACKETS);
	finish(b);
}

/* S3: how many pieces 64 KiB of payload are in. */
static void test_s3_orders(void **state)
{
	static const struct {
		const char *knobs;
		unsigned pieces;
	} cases[] = {{",order=0", 16}, {",order=1", 8}, {",order=3", 2}, {",order=4", 1}};
	struct bench *b = *state;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run(b, 65535, 1500, cases[i].knobs);
		assert_int_equal(b->gen.npiece, cases[i].pieces);
		assert_int_equal(b->tx.count.drv.tx_desc, (1 + cases[i].pieces) * PACKETS);
		finish(b);
	}
}

/* Higher orders are refused, always or half of the time: lower ones stand in, and all arrives. */
static void test_s3_refused(void **state)
{
	struct bench *b = *state;

	run(b, 65535, 1500, ",order=3,refuse=1000");
	assert_int_equal(b->gen.npiece, 16);
	assert_int_equal(b->tx.count.drv.tx_desc, 17 * PACKETS);
	assert_true(vdrv_chunks(b->tx.port)->fallbacks > 0);
	assert_int_equal(vdrv_chunks(b->rx.port)->got[3], 0);
	finish(b);
	run(b, 65535, 1500, ",order=3,refuse=500");
	assert_in_range(b->gen.npiece, 2, 16);
	assert_true(vdrv_chunks(b->rx.port)->fallbacks > 0);
	finish(b);
}

/* Peers without a feature, and rings of any size. */
static void test_without(void **state)
{
	struct bench *b = *state;

	run(b, 1514, 1500, ",off=mrg_rxbuf");
	assert_int_equal(b->rx.count.drv.rx_buffers, PACKETS);
	finish(b);
	run(b, 65535, 1500, ",off=mrg_rxbuf");
	finish(b);
	run(b, 65535, 1500, ",off=indirect_desc");
	assert_int_equal(b->tx.count.drv.tx_indirect, 0);
	finish(b);
	run(b, 1514, 1500, ",off=event_idx");
	finish(b);
	run(b, 64, 1500, ",ring=2");
	finish(b);
	run(b, 1514, 1500, ",ring=1024");
	finish(b);
	run(b, 9014, 9000, "");
	finish(b);
}

/* Clones share payload, never the head: what one is fitted to, the next does not see. */
static void test_clones(void **state)
{
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct bench_gen_config c = {.size = 65535, .mtu = 1500, .headroom = 16, .order = 3};
	struct bench_gen gen;
	struct pkt *a, *b;

	(void)state;
	assert_int_equal(chunk_pool_init(&chunks, 1 << 20, NULL), 0);
	assert_int_equal(pkt_pool_init(&pkts, &chunks, 8, NULL), 0);
	assert_int_equal(bench_gen_init(&gen, &pkts, &c, NULL), 0);
	a = bench_gen_make(&gen);
	b = bench_gen_make(&gen);
	assert_int_equal(a->len, 65535);
	assert_int_equal(a->off.gso, OFF_GSO_TCPV4);
	assert_int_equal(a->off.gso_size, 1448);
	assert_int_equal(a->headroom, 16);
	assert_memory_equal(a->head, b->head, a->head_len);
	assert_ptr_not_equal(a->head, b->head);
	assert_ptr_equal(a->frag[0].data, b->frag[0].data);
	pkt_free(a);
	assert_memory_equal(b->head, gen.head, gen.head_len);
	pkt_free(b);
	bench_gen_fini(&gen);
	c.mtu = 65535;
	c.order = 0;
	assert_int_equal(bench_gen_init(&gen, &pkts, &c, NULL), 0);
	a = bench_gen_make(&gen);
	assert_int_equal(a->off.gso, 0); /* within the MTU */
	pkt_free(a);
	bench_gen_fini(&gen);
	pkt_pool_fini(&pkts);
	assert_int_equal(chunk_pool_live(&chunks), 0);
	chunk_pool_fini(&chunks);
}

static void test_mistakes(void **state)
{
	struct bench *b = *state;
	struct bench_config c = {.size = 65535, .mtu = 1500, .packets = 1, .time = NSEC_PER_SEC};
	struct err err;

	c.cwd = "/";
	c.net = "lab";
	c.knobs = ",rxbuf=huge";
	assert_int_equal(bench_init(b, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "huge"));
	c.knobs = ",off=host_tso4";
	assert_int_equal(bench_init(b, &c, &err), 0);
	assert_int_equal(bench_run(b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "host_tso4"));
	bench_fini(b);
	c.knobs = "";
	c.via = "tap:tap0";
	assert_int_equal(bench_init(b, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "virtio-user"));
}

static int setup(void **state)
{
	setenv("XDG_RUNTIME_DIR", "/tmp", 1);
	*state = malloc(sizeof(struct bench));
	return !*state;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_s0_buffers),
		cmocka_unit_test(test_s0_step),
		cmocka_unit_test(test_s1_fragments),
		cmocka_unit_test(test_s2_header),
		cmocka_unit_test(test_s3_orders),
		cmocka_unit_test(test_s3_refused),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_clones),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
