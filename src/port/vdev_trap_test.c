/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev: the traps that are the device's, by name, each against the driver side of the rings in plain
 * memory: T9 to T16, T24 and T25; and T33, the back-end's.
 */
#include "port/vhost_rig.h"

#include <stdlib.h>

#include "port/vdrv_int.h"
#include "ring/vq_drv.h"

#define B(name)  VNET_BIT(name)
#define MODERN   (B(VERSION_1) | B(MRG_RXBUF))
#define RING     64
#define DATA_LEN (1 << 20)

struct pair {
	struct loop loop;
	struct vdev d;
	struct vq_drv vq[VDEV_QUEUES];
	uint8_t *ring[VDEV_QUEUES], *data;
	struct burst burst;
};

static struct pair pair;

static void ring_up(struct pair *p, unsigned queue)
{
	struct vq_drv *vq = &p->vq[queue];
	size_t len = vq_drv_len(RING, false);

	p->ring[queue] = aligned_alloc(64, len);
	assert_int_equal(vq_drv_init(vq, p->ring[queue], RING, false, NULL), 0);
	assert_int_equal(gmem_add(&p->d.mem, (uintptr_t)p->ring[queue], (uintptr_t)p->ring[queue],
				 len, p->ring[queue], NULL),
		0);
	assert_int_equal(vdev_set_ring_size(&p->d, queue, RING, NULL), 0);
	assert_int_equal(vdev_set_ring_addr(&p->d, queue, (uintptr_t)vq->desc, (uintptr_t)vq->avail,
				 (uintptr_t)vq->used, NULL),
		0);
	vdev_ring_enable(&p->d, queue, true);
	vdev_ring_start(&p->d, queue);
}

static void up(uint64_t features)
{
	struct vdev_config c = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500};

	memset(&pair, 0, sizeof(pair));
	assert_int_equal(loop_init(&pair.loop, NULL), 0);
	vdev_init(&pair.d, "dev", &c, &pair.loop, NULL);
	pair.data = calloc(1, DATA_LEN);
	assert_int_equal(gmem_add(&pair.d.mem, (uintptr_t)pair.data, (uintptr_t)pair.data, DATA_LEN,
				 pair.data, NULL),
		0);
	assert_int_equal(vdev_set_features(&pair.d, features, NULL), 0);
	ring_up(&pair, VDEV_RX);
	ring_up(&pair, VDEV_TX);
	assert_true(pair.d.port.link);
}

static void down(void)
{
	vdev_fini(&pair.d);
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		vq_drv_fini(&pair.vq[i]);
		free(pair.ring[i]);
	}
	free(pair.data);
	loop_fini(&pair.loop);
}

/* A receive chain of these lengths, at `at` of the data. */
static void post_rx(uint32_t at, const uint32_t *len, unsigned n)
{
	struct iovec v[16];

	for (unsigned i = 0; i < n; i++) {
		v[i] = (struct iovec){pair.data + at, len[i]};
		at += len[i];
	}
	assert_int_equal(vq_drv_add(&pair.vq[VDEV_RX], v, 0, n, &pair), 0);
	vq_drv_publish(&pair.vq[VDEV_RX]);
}

static void post_tx(uint32_t at, const uint32_t *len, unsigned n)
{
	struct iovec v[16];

	for (unsigned i = 0; i < n; i++) {
		v[i] = (struct iovec){pair.data + at, len[i]};
		at += len[i];
	}
	assert_int_equal(vq_drv_add(&pair.vq[VDEV_TX], v, n, 0, &pair), 0);
	vq_drv_publish(&pair.vq[VDEV_TX]);
}

/* Push a frame of `len` bytes; not flushed. */
static void push(uint32_t len)
{
	static uint8_t bytes[FRAME_MAX];
	struct frame_head head;
	struct iovec tail = {bytes, len - 100};
	struct frame f = {.head = head.data, .head_len = 100, .tail = &tail, .ntail = 1};

	f.tail_len = len - 100;
	for (uint32_t i = 0; i < 100; i++)
		head.data[i] = (uint8_t)(i * 7);
	for (uint32_t i = 100; i < len; i++)
		bytes[i - 100] = (uint8_t)(i * 7);
	assert_int_equal(pair.d.port.ops->push(&pair.d.port.q, &f, 1), 1);
}

static void flush(void)
{
	pair.d.port.ops->flush(&pair.d.port.q);
}

static unsigned pull(void)
{
	return port_pull(&pair.d.port.q, &pair.burst, BURST_FRAMES);
}

/* All buffers of a packet become visible at once, with the right count in the header before. */
static void trap_T9_a_packet_is_published_whole(void **state)
{
	struct vring_used *used;
	uint32_t len = 1536;

	(void)state;
	up(MODERN);
	used = pair.vq[VDEV_RX].used;
	for (unsigned i = 0; i < 8; i++)
		post_rx(i * len, &len, 1);
	push(5000);
	assert_int_equal(used->idx, 0); /* nothing yet */
	push(3000);
	assert_int_equal(used->idx, 0);
	assert_int_equal(pair.data[10], 4);
	assert_int_equal(pair.data[4 * len + 10], 2);
	flush();
	assert_int_equal(used->idx, 6);
	for (unsigned i = 0; i < 3; i++) /* all but the last are full */
		assert_int_equal(used->ring[i].len, len);
	assert_int_equal(used->ring[3].len, 5012 - 3 * len);
	down();
}

static void trap_T10_num_buffers_is_1_without_mrg(void **state)
{
	static const uint64_t features[] = {B(VERSION_1), MODERN};
	uint32_t len = 2048;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		up(features[i]);
		memset(pair.data, 0xee, 4096);
		post_rx(0, &len, 1);
		push(200);
		flush();
		assert_int_equal(pair.data[10], 1);
		assert_int_equal(pair.data[11], 0);
		down();
	}
}

/* A used entry names the head of its chain, and all that was written to the chain. */
static void trap_T11_used_is_head_and_total(void **state)
{
	const uint32_t len[3] = {12, 100, 2000}, one = 40;

	(void)state;
	up(MODERN);
	post_rx(0, &one, 1); /* descriptor 0: the next chain's head is 1 */
	vq_drv_publish(&pair.vq[VDEV_RX]);
	post_rx(4096, len, 3);
	push(1000);
	flush();
	assert_int_equal(pair.vq[VDEV_RX].used->idx, 2);
	assert_int_equal(pair.vq[VDEV_RX].used->ring[0].id, 0);
	assert_int_equal(pair.vq[VDEV_RX].used->ring[0].len, 40);
	assert_int_equal(pair.vq[VDEV_RX].used->ring[1].id, 1);
	assert_int_equal(pair.vq[VDEV_RX].used->ring[1].len, 1012 - 40);

	post_tx(8192, len, 3);
	assert_int_equal(pull(), 1);
	port_settle(&pair.d.port.q, &pair.burst, 1);
	assert_int_equal(pair.vq[VDEV_TX].used->ring[0].id, 0);
	assert_int_equal(pair.vq[VDEV_TX].used->ring[0].len, 0);
	down();
}

/* The header lies across descriptors wherever the driver likes, in both directions. */
static void trap_T12_header_across_descriptors(void **state)
{
	static const uint32_t cut[][4] = {{1, 11, 88, 2000}, {5, 4, 3, 2088}, {11, 1, 1, 2087},
		{12, 1, 99, 1988}, {3, 2, 30, 2065}, {5, 1000, 500, 595}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
		up(MODERN);
		memset(pair.data, 0xee, 8192);
		post_rx(0, cut[i], 4);
		push(1000);
		flush();
		assert_int_equal(pair.data[10], 1);
		for (unsigned b = 0; b < 10; b++)
			assert_int_equal(pair.data[b], 0);
		for (unsigned b = 0; b < 1000; b++)
			assert_int_equal(pair.data[12 + b], (uint8_t)(b * 7));

		memset(pair.data + 8192, 0, 12);
		for (unsigned b = 0; b < 2088; b++)
			pair.data[8192 + 12 + b] = (uint8_t)(b * 11);
		post_tx(8192, cut[i], 4);
		assert_int_equal(pull(), 1);
		assert_int_equal(frame_len(pair.burst.f),
			cut[i][0] + cut[i][1] + cut[i][2] + cut[i][3] - 12);
		for (unsigned b = 0; b < FRAME_HEAD; b++)
			assert_int_equal(pair.burst.f->head[b], (uint8_t)(b * 11));
		assert_int_equal(
			*(uint8_t *)pair.burst.f->tail->iov_base, (uint8_t)(FRAME_HEAD * 11));
		port_settle(&pair.d.port.q, &pair.burst, 1);
		down();
	}
}

/* What the driver changes after it was read has no effect: descriptors, header, head of the frame. */
static void trap_T13_read_once(void **state)
{
	const uint32_t len[2] = {12, 1000};
	struct frame *f = pair.burst.f;

	(void)state;
	up(MODERN | B(CSUM));
	pair.data[0] = OFF_NEEDS_CSUM; /* sum from 34, store at 34 + 16 */
	pair.data[6] = 34;
	pair.data[8] = 16;
	memcpy(pair.data + 12 + 12, "\x08\x00\x45", 3);
	pair.data[12 + 14 + 9] = 6;
	put_be16(pair.data + 12 + 16, 986);
	pair.data[12 + 34 + 12] = 0x50;
	post_tx(0, len, 2);
	assert_int_equal(pull(), 1);
	assert_int_equal(f->drop, DROP_NONE);
	memset(pair.vq[VDEV_TX].desc, 0xff, RING * sizeof(struct vring_desc));
	memset(pair.vq[VDEV_TX].avail->ring, 0xff, RING * 2);
	memset(pair.data, 0xff, 12 + FRAME_HEAD);
	assert_int_equal(frame_len(f), 1000);
	assert_int_equal(f->off.csum_start, 34);
	assert_int_equal(f->off.csum_off, 16);
	assert_int_equal(f->head[12], 8);
	assert_int_equal(f->head[14], 0x45);
	assert_ptr_equal(f->tail->iov_base, pair.data + 12 + FRAME_HEAD);
	port_settle(&pair.d.port.q, &pair.burst, 1);
	assert_int_equal(pair.vq[VDEV_TX].used->ring[0].id, 0);
	assert_null(pair.d.broken);
	down();
}

static void trap_T14_loop_without_bytes(void **state)
{
	struct vring_desc *d;

	(void)state;
	for (unsigned queue = 0; queue < VDEV_QUEUES; queue++) {
		uint16_t flags = VRING_DESC_F_NEXT | (queue == VDEV_RX ? VRING_DESC_F_WRITE : 0);

		up(MODERN);
		d = pair.vq[queue].desc;
		d[0] = (struct vring_desc){(uintptr_t)pair.data, 0, flags, 1};
		d[1] = (struct vring_desc){(uintptr_t)pair.data, 0, flags, 0};
		pair.vq[queue].avail->ring[0] = 0;
		__atomic_store_n(&pair.vq[queue].avail->idx, 1, __ATOMIC_RELEASE);
		if (queue == VDEV_TX) {
			assert_int_equal(pull(), 0);
		} else {
			struct frame_head head = {0};
			struct frame f = {.head = head.data, .head_len = 60};

			assert_int_equal(pair.d.port.ops->push(&pair.d.port.q, &f, 1), 0);
		}
		assert_string_equal(pair.d.broken, "descriptor chain loops or is too long");
		down();
	}
}

/* Lengths are summed in more than 16 bits: a long chain is not a short frame. */
static void trap_T15_sums_are_wide(void **state)
{
	static const uint32_t len[][3] = {{12, 32768, 32868}, {65535, 1, 112}, {12, 65536, 100}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		up(MODERN);
		post_tx(0, len[i], 3);
		assert_int_equal(pull(), 1);
		assert_int_equal(frame_len(pair.burst.f), len[i][0] + len[i][1] + len[i][2] - 12);
		assert_int_equal(pair.burst.f->drop, DROP_TOO_LONG);
		port_settle(&pair.d.port.q, &pair.burst, 1);
		assert_int_equal(pair.d.port.q.drop_in[DROP_TOO_LONG], 1);
		down();
	}

	/* buffers of 64 KiB and more hold a packet, too */
	const uint32_t big = 70000;

	up(MODERN);
	post_rx(0, &big, 1);
	push(65000);
	flush();
	assert_int_equal(pair.vq[VDEV_RX].used->ring[0].len, 65012);
	assert_int_equal(pair.data[10], 1);
	down();
}

static void trap_T16_header_length_by_features(void **state)
{
	static const struct {
		uint64_t features;
		unsigned len;
	} k[] = {{0, 10}, {B(MRG_RXBUF), 12}, {B(VERSION_1), 12}, {MODERN, 12}};
	const uint32_t len = 2048, tx = 10 + 60;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		up(k[i].features);
		post_rx(0, &len, 1);
		push(200);
		flush();
		assert_int_equal(pair.vq[VDEV_RX].used->ring[0].len, k[i].len + 200);
		assert_int_equal(pair.data[k[i].len + 1], 7);
		pair.data[4096 + k[i].len] = 0x42;
		post_tx(4096, &tx, 1);
		assert_int_equal(pull(), 1);
		assert_int_equal(frame_len(pair.burst.f), 70 - k[i].len);
		assert_int_equal(pair.burst.f->head[0], 0x42);
		port_settle(&pair.d.port.q, &pair.burst, 1);
		down();
	}
}

/* MRG_RXBUF means that a packet takes as many buffers as it needs, not one per pass of the device. */
static void trap_T24_mrg_uses_many_buffers(void **state)
{
	const uint32_t len = 1536;

	(void)state;
	up(MODERN);
	for (unsigned i = 0; i < RING; i++)
		post_rx(i * len, &len, 1);
	push(65000);
	flush();
	assert_int_equal(pair.data[10], 43);
	assert_int_equal(pair.vq[VDEV_RX].used->idx, 43);
	assert_int_equal(pair.d.port.q.out.bufs, 43);
	assert_int_equal(pair.d.port.q.lost_out, 0);
	down();
}

/*
 * Without MRG_RXBUF a driver with guest segmentation must post 64 KiB for each packet, whatever
 * comes: the device offers MRG_RXBUF; and the driver without it does post that much, and no less.
 */
static void trap_T25_without_mrg_each_packet_takes_17_pages(void **state)
{
	struct vdrv_config c;
	struct vdrv *v = calloc(1, sizeof(*v));
	struct err err;
	uint64_t without = B(MRG_RXBUF) | B(INDIRECT_DESC);

	(void)state;
	up(0);
	assert_true(pair.d.offered & B(MRG_RXBUF));
	vdrv_config_init(&c);
	assert_int_equal(vdrv_init(v, "drv", &c, &pair.loop, NULL, &err), 0);
	assert_int_equal(vdrv_rings(v, vdrv_want(v) & ~without, 1500, &err), 0);
	assert_int_equal(v->vq[VDRV_RX].n_desc, 17 * v->vq[VDRV_RX].nout);
	assert_int_equal(v->vq[VDRV_RX].nout, 256 / 17);
	assert_true(v->rx.posted_bytes / v->vq[VDRV_RX].nout >= 65562);
	/* MTU-sized packets only: one buffer each */
	assert_int_equal(
		vdrv_rings(v, vnet_features_close(vdrv_want(v) & ~without & ~B(GUEST_CSUM)), 1500,
			&err),
		0);
	assert_int_equal(v->vq[VDRV_RX].nout, 256);
	assert_true(v->rx.posted_bytes / v->vq[VDRV_RX].nout >= 1526);
	/* and with it: a buffer each, of which a packet takes what it needs */
	assert_int_equal(vdrv_rings(v, vdrv_want(v), 1500, &err), 0);
	assert_int_equal(v->vq[VDRV_RX].nout, 256);
	vdrv_down(v);
	vdrv_fini(v);
	free(v);
	down();
}

/* A queue's number is not cut to what fits: 128, 256 and the like are no queue, and not queue 0. */
static void trap_T33_queue_numbers_are_not_cut(void **state)
{
	static const uint32_t number[] = {2, 3, 128, 255, 256, 257, 0x8000, 0x10000, 0x10001};
	struct rig *r = *state;

	steps(r, VHOST_SIM_OWNER, VHOST_SIM_ENABLE1);
	traffic(r, 1);
	for (unsigned i = 0; i < sizeof(number) / sizeof(*number); i++) {
		uint32_t q = number[i];
		struct {
			uint32_t index, flags;
			uint64_t addr[4];
		} addr = {.index = q};

		assert_int_not_equal(ask_state(r, VHOST_USER_SET_VRING_NUM, q, 8), 0);
		assert_int_not_equal(ask_state(r, VHOST_USER_SET_VRING_BASE, q, 7), 0);
		assert_int_not_equal(ask_state(r, VHOST_USER_SET_VRING_ENABLE, q, 0), 0);
		assert_int_not_equal(
			ask_fds(r, VHOST_USER_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0), 0);
		if (q < 256) {
			assert_int_not_equal(ask_u64(r, VHOST_USER_SET_VRING_KICK, q | 0x100), 0);
			assert_int_not_equal(ask_u64(r, VHOST_USER_SET_VRING_CALL, q | 0x100), 0);
		}
		traffic(r, (uint8_t)(2 + i)); /* neither ring has noticed */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_T9_a_packet_is_published_whole),
		cmocka_unit_test(trap_T10_num_buffers_is_1_without_mrg),
		cmocka_unit_test(trap_T11_used_is_head_and_total),
		cmocka_unit_test(trap_T12_header_across_descriptors),
		cmocka_unit_test(trap_T13_read_once),
		cmocka_unit_test(trap_T14_loop_without_bytes),
		cmocka_unit_test(trap_T15_sums_are_wide),
		cmocka_unit_test(trap_T16_header_length_by_features),
		cmocka_unit_test(trap_T24_mrg_uses_many_buffers),
		cmocka_unit_test(trap_T25_without_mrg_each_packet_takes_17_pages),
		T(trap_T33_queue_numbers_are_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
