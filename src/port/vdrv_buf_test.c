/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv: receive buffers: their lengths, where they lie, what is recorded of them, and when the ring is
 * filled up; the traps of that part by name.
 */
#include "port/vdrv_hand_rig.h"

/*
 * T1: the last buffer of a chunk is longer than the others, and a packet may fill it: its recorded
 * capacity says so. T6: what is posted is the stride: but for the last one, each ends where the next
 * begins.
 */
static void trap_T1_T6_capacity_is_what_is_posted(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	for (unsigned order = 0; order < CHUNK_ORDERS; order++) {
		unsigned longer = 0, touch = 0;

		for (c.rxbuf = VDRV_RXBUF_MTU; c.rxbuf <= VDRV_RXBUF_AUTO; c.rxbuf++) {
			uint32_t len;

			c.rx_order = order;
			start(&c, 0, 1500);
			len = vdrv_buf_len(&rig.v);
			for (unsigned id = 0; id < 256; id++) {
				const struct vring_desc *d = &rig.v.vq[VDRV_RX].desc[id];
				struct chunk *ch = rig.v.rx.buf[id].chunk;
				uint64_t end = d->addr + d->len;

				assert_int_equal(d->len, rig.v.vq[VDRV_RX].slot[id].cap);
				assert_in_range(d->len, len, 2 * len - 1);
				assert_true(end <= (uintptr_t)chunk_data(&rig.v.chunks, ch) +
							   chunk_size(ch));
				longer += d->len > len;
				if (id < 255 && rig.v.rx.buf[id + 1].chunk == ch) {
					assert_int_equal(end, d[1].addr);
					touch++;
				}
			}
			for (unsigned i = 0; i < 200; i++) { /* every buffer filled to its end */
				uint32_t cap = rig.v.vq[VDRV_RX].slot[i].cap;

				give_good(cap - rig.v.hdr_len, i);
				take(cap - rig.v.hdr_len, i);
			}
			assert_int_equal(rig.v.n.rx_err_len, 0);
			assert_int_equal(rig.v.n.rx_buffers, 200);
			rig_down(&rig);
		}
		assert_true(longer > 0 && touch > 0);
	}
}

/* T7: no chunk above a page is to be had: buffers lie inside of their page all the same. */
static void trap_T7_chunks_of_one_page(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	for (c.rxbuf = VDRV_RXBUF_PAGE; c.rxbuf <= VDRV_RXBUF_AUTO; c.rxbuf++) {
		rig_driver(&rig, &c, &loop);
		rig.v.chunks.refuse_permille = 1000;
		rig_up_by_hand(&rig, 9000);
		for (unsigned id = 0; id < 256; id++) {
			const struct vring_desc *d = &rig.v.vq[VDRV_RX].desc[id];

			assert_int_equal(d->addr / CHUNK_PAGE, (d->addr + d->len - 1) / CHUNK_PAGE);
			assert_int_equal(rig.v.rx.buf[id].chunk->order, 0);
		}
		give_good(60000, 1);
		take(60000, 1);
		rig_down(&rig);
	}
}

/* T8: packets of one length give an average of that length: not one byte less. */
static void trap_T8_average_without_bias(void **state)
{
	static const uint32_t len[] = {60, 1514, 1515, 2000, 3000, 9000, 9014, 65535};

	(void)state;
	for (unsigned i = 0; i < sizeof(len) / sizeof(*len); i++) {
		for (unsigned from = 0; from < 3; from++) {
			uint64_t avg = from == 0 ? 0 : vdrv_avg(0, from == 1 ? 60 : 65535);
			uint32_t read;

			if (!from)
				assert_int_equal(vdrv_avg(0, len[i]) >> VDRV_AVG_BITS, len[i]);
			for (unsigned n = 0; n < 2000; n++)
				avg = vdrv_avg(avg, len[i]);
			read = (uint32_t)((avg + (1 << VDRV_AVG_BITS) - 1) >> VDRV_AVG_BITS);
			assert_int_equal(read, len[i]);
		}
	}
	/* it weighs 1/64 */
	assert_int_equal(vdrv_avg(vdrv_avg(0, 0x1000), 0x1040) >> VDRV_AVG_BITS, 0x1001);
}

/* The formulas of the four modes. */
static void buffer_lengths(void **state)
{
	static const struct {
		enum vdrv_rxbuf mode;
		uint64_t without;
		unsigned ring;
		uint32_t mtu, avg, len;
	} k[] = {
		{VDRV_RXBUF_PAGE, 0, 256, 1500, 0, 4096},
		{VDRV_RXBUF_MTU, 0, 256, 1500, 0, 1518},
		{VDRV_RXBUF_MTU, 0, 256, 1480, 0, 1518},
		{VDRV_RXBUF_MTU, 0, 256, 9000, 0, 1518},
		{VDRV_RXBUF_MTU_HDR, 0, 256, 1500, 0, 1536},
		{VDRV_RXBUF_MTU_HDR, 0, 256, 1506, 0, 1536},
		{VDRV_RXBUF_MTU_HDR, 0, 256, 1507, 0, 1600},
		{VDRV_RXBUF_MTU_HDR, B(VERSION_1), 256, 1508, 0, 1600},
		{VDRV_RXBUF_MTU_HDR, 0, 256, 9000, 0, 4096},
		{VDRV_RXBUF_AUTO, 0, 256, 1500, 0, 1536},  /* nothing came yet: the least */
		{VDRV_RXBUF_AUTO, 0, 256, 1500, 60, 1536}, /* no less than a frame */
		{VDRV_RXBUF_AUTO, 0, 256, 1500, 1524, 1536},
		{VDRV_RXBUF_AUTO, 0, 256, 1500, 1525, 1600},
		{VDRV_RXBUF_AUTO, 0, 256, 1500, 65535, 4096},
		{VDRV_RXBUF_AUTO, 0, 32, 1500, 60, 2112}, /* 65565 over 32 */
		{VDRV_RXBUF_AUTO, 0, 16, 1500, 60, 4096}, /* super-packets do without */
		{VDRV_RXBUF_AUTO, B(GUEST_CSUM), 16, 1500, 60, 1536},
		{VDRV_RXBUF_AUTO, B(GUEST_CSUM), 8, 9000, 60, 4096}, /* a page is the most */
		{VDRV_RXBUF_PAGE, B(MRG_RXBUF) | B(GUEST_CSUM), 256, 1500, 60, 1536}, /* small */
		{VDRV_RXBUF_MTU, B(MRG_RXBUF) | B(GUEST_CSUM), 256, 1500, 60, 1536},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		struct vdrv_config c = defaults();
		struct err err;

		c.rxbuf = k[i].mode;
		c.ring_size = k[i].ring;
		rig_driver(&rig, &c, &loop);
		rig.features = vnet_features_close(vnet_features_all() & ~k[i].without);
		if (vdrv_rings(&rig.v, rig.features, k[i].mtu, &err))
			fail_msg("%s", err.text);
		if (k[i].avg)
			rig.v.rx.avg = vdrv_avg(0, k[i].avg);
		assert_int_equal(vdrv_buf_len(&rig.v), k[i].len);
		vdrv_down(&rig.v);
		vdrv_fini(&rig.v);
	}
}

/* Refilled when more than half of min(64, ring) is free, or when a packet might need it. */
static void refill_in_batches(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	c.rxbuf = VDRV_RXBUF_PAGE;
	start(&c, 0, 1500);
	assert_int_equal(rig.v.n.rx_refills, 1);
	for (unsigned i = 0; i < 33; i++) {
		assert_int_equal(rig.v.n.rx_refills, 1);
		give_good(100, i);
		take(100, i);
	}
	assert_int_equal(rig.v.n.rx_refills, 2);
	assert_int_equal(rig.v.vq[VDRV_RX].nfree, 0);
	rig_down(&rig);

	/* 32 pages, a super-packet takes 17: sixteen that are free are too many */
	c.ring_size = 32;
	start(&c, 0, 1500);
	for (unsigned i = 0; i < 16; i++) {
		give_good(100, i);
		take(100, i);
	}
	give_good(65549, 1);
	take(65549, 1);
	rig_down(&rig);
}

/* T23: memory is out and nothing is posted: a timer tries again, and not after the device has gone. */
static void trap_T23_retry_when_memory_is_out(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	c.ring_size = 8;
	start(&c, 0, 1500);
	rig.v.chunks.refuse_permille = 1000;
	rig.v.chunks.refuse_all = true;
	for (unsigned i = 0; i < 8; i++) {
		give_good(1000, i);
		struct pkt *p;

		if (vdrv_receive(&rig.v.port, &p, 1))
			pkt_free(p);
	}
	for (unsigned i = 0; i < 100 && rig.v.vq[VDRV_RX].nout; i++) {
		struct pkt *p;

		give_good(1000, i);
		if (vdrv_receive(&rig.v.port, &p, 1))
			pkt_free(p);
	}
	assert_int_equal(rig.v.vq[VDRV_RX].nout, 0);
	assert_true(rig.v.rx.retry.set);
	now += VDRV_RETRY;
	loop_dispatch(&loop, false);
	assert_true(rig.v.rx.retry.set); /* still out: again */
	assert_int_equal(rig.v.n.rx_retries, 1);
	rig.v.chunks.refuse_all = false;
	rig.v.chunks.refuse_permille = 0;
	rig.kicked[VDRV_RX] = false;
	assert_false(vq_dev_arm(&rig.q[VDRV_RX], 1));
	now += VDRV_RETRY;
	loop_dispatch(&loop, false);
	assert_false(rig.v.rx.retry.set);
	assert_int_equal(rig.v.vq[VDRV_RX].nout, 8);
	assert_true(rig.kicked[VDRV_RX]); /* the device waits for buffers */
	give_good(1000, 5);
	take(1000, 5);

	/* down while the timer runs: it is cancelled first */
	rig.v.chunks.refuse_permille = 1000;
	rig.v.chunks.refuse_all = true;
	for (unsigned i = 0; i < 100 && rig.v.vq[VDRV_RX].nout; i++) {
		struct pkt *p;

		give_good(1000, i);
		if (vdrv_receive(&rig.v.port, &p, 1))
			pkt_free(p);
	}
	assert_true(rig.v.rx.retry.set);
	vdrv_down(&rig.v);
	assert_false(rig.v.rx.retry.set);
	rig_down(&rig);
	now += 10 * VDRV_RETRY;
	loop_dispatch(&loop, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_T1_T6_capacity_is_what_is_posted),
		cmocka_unit_test(trap_T7_chunks_of_one_page),
		cmocka_unit_test(trap_T8_average_without_bias),
		cmocka_unit_test(buffer_lengths),
		cmocka_unit_test(refill_in_batches),
		cmocka_unit_test(trap_T23_retry_when_memory_is_out),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
