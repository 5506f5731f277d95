/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev: chains of 4 GiB out of a few MiB, and chains that are mostly nothing: what a driver can say
 * that no honest one says, and what it may cost the others.
 */
#include "port/vdev_rig.h"

#define BLANK (8u << 20) /* where the memory is zero, */
#define PART  (8u << 20) /* so long: buffers that the same memory gives again and again */

static struct guest *guest_blank(unsigned size)
{
	struct guest *g = guest_new(MODERN, size, 0);

	memset(g->mem + BLANK, 0, PART);
	return g;
}

/*
 * A chain of exactly `len` bytes through an indirect table of its own; the buffers overlap. The
 * table lies at the end of the memory, where no frame comes.
 */
static void add_long(struct guest *g, struct ring_sim *s, uint32_t len, bool writable)
{
	unsigned n = len / PART + !!(len % PART);
	uint64_t gpa = GPA + SIZE - (1024 + (writable ? 1024 : 0)) * sizeof(struct vring_desc);
	struct vring_desc *t = (void *)guest_ptr(g, gpa);
	uint16_t head = s->free[s->free_get++ & s->mask];

	for (unsigned i = 0; i < n; i++) {
		t[i] = (struct vring_desc){
			.addr = GPA + BLANK,
			.len = i < n - 1 ? PART : len - i * PART,
			.flags = (uint16_t)((i < n - 1 ? VRING_DESC_F_NEXT : 0) |
					    (writable ? VRING_DESC_F_WRITE : 0)),
			.next = (uint16_t)(i + 1),
		};
	}
	s->desc[head] = (struct vring_desc){gpa, n * sizeof(*t), VRING_DESC_F_INDIRECT, 0};
	s->ndesc[head] = 1;
	ring_sim_add_raw(s, head);
	ring_sim_publish(s);
}

/* Bursts whose bytes add up to 2^32 - 1, and beyond. */
static void bytes_of_a_burst(void **state)
{
	(void)state;
	for (uint32_t first = 10; first < 16; first++) {
		struct guest *a = guest_blank(16);
		struct portq *q = portq_of(a);

		guest_send(a, first);
		add_long(a, &a->tx, UINT32_MAX, false);
		guest_send(a, 60);
		assert_int_equal(port_pull(q, &burst, 64), 2); /* that was more than enough */
		assert_int_equal(burst.f[1].drop, DROP_TOO_LONG);
		port_settle(q, &burst, 2);
		assert_int_equal(port_pull(q, &burst, 64), 1);
		assert_int_equal(frame_len(&burst.f[0]), 60);
		port_settle(q, &burst, 1);
		assert_null(a->dev.broken);
		guest_free(a);
	}
}

/* Receive buffers of 4 GiB: as good as any other. */
static void longest_receive_buffer(void **state)
{
	(void)state;
	struct guest *a = guest_blank(16), *b = guest_blank(16);

	for (unsigned i = 0; i < 4; i++) {
		add_long(b, &b->rx, UINT32_MAX - i, true);
		guest_send(a, 60);
		guest_send(a, 60);
		assert_int_equal(carry(a, b), 1);
		add_long(b, &b->rx, UINT32_MAX, true);
		assert_int_equal(carry(a, b), 1);
		assert_int_equal(ring_sim_drain(&b->rx, 16), 2);
		ring_sim_drain(&a->tx, 16);
	}
	guest_free(a);
	guest_free(b);
}

/* 64 times the same chain of 1024 descriptors that hold one byte together, on either ring. */
static void add_empty(struct ring_sim *s, bool writable)
{
	uint16_t write = writable ? VRING_DESC_F_WRITE : 0;

	for (uint16_t i = 0; i < CHAIN_MAX - 1; i++)
		s->desc[i] = (struct vring_desc){GPA, 0, VRING_DESC_F_NEXT | write, i + 1};
	s->desc[CHAIN_MAX - 1] = (struct vring_desc){GPA + BLANK, 100, write, 0};
	for (unsigned i = 0; i < 64; i++)
		ring_sim_add_raw(s, 0);
	ring_sim_publish(s);
}

/* What others wait for is the time that reading takes: a burst reads only so many descriptors. */
static void descriptors_of_a_burst(void **state)
{
	(void)state;
	struct guest *a = guest_blank(2048), *b = guest_blank(2048);
	struct vq_dev *tx = &a->dev.vq[VDEV_TX], *rx = &b->dev.vq[VDEV_RX];
	unsigned n = 0;

	add_empty(&a->tx, false);
	add_empty(&b->rx, true);
	while (n < 64) {
		uint64_t before = tx->n_desc, rx_before = rx->n_desc;
		unsigned did;

		if (n % 2)
			a->dev.tx_want = 1; /* as after a long frame */
		did = carry(a, b);
		assert_true(did > 0);
		assert_true(tx->n_desc - before <= 2 * (BURST_IOV + CHAIN_MAX));
		/* a frame and its buffer are the least that gets on */
		assert_true(rx->n_desc - rx_before <= (did + 2) * 2 * (BURST_IOV + CHAIN_MAX));
		n += did;
	}
	assert_int_equal(n, 64);
	assert_null(a->dev.broken);
	assert_null(b->dev.broken);
	guest_free(a);
	guest_free(b);
}

/* A disabled transmit queue is consumed unread: nothing in it is anybody's. */
static void discarded_unread(void **state)
{
	(void)state;
	struct guest *a = guest_blank(2048);
	struct vq_dev *tx = &a->dev.vq[VDEV_TX];

	vdev_ring_enable(&a->dev, VDEV_TX, false);
	add_empty(&a->tx, false);
	vdev_kicked(&a->dev, VDEV_TX);
	assert_int_equal(ring_sim_pending(&a->tx), 64);
	assert_int_equal(portq_of(a)->drop_in[DROP_DISABLED], 64);
	assert_int_equal(tx->n_desc, 0);
	assert_true(tx->armed);
	ring_sim_add_raw(&a->tx, 2048);
	ring_sim_publish(&a->tx);
	vdev_kicked(&a->dev, VDEV_TX);
	assert_non_null(a->dev.broken);
	guest_free(a);
}

/* Receive buffers that may only be read: from the first on, after good ones, and before them. */
static void readable_receive_buffers(void **state)
{
	static const char *const order[] = {"r", "rr", "wr", "wwrr", "rw", "rrww", "wrw"};

	(void)state;
	for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
		struct guest *a = guest_blank(16), *b = guest_blank(16);
		struct ring_sim_buf buf = {GPA + BLANK, 2048};

		for (const char *p = order[k]; *p; p++) {
			ring_sim_add(&b->rx, &buf, *p == 'r', *p == 'w', false);
			guest_send(a, 60);
		}
		ring_sim_publish(&b->rx);
		carry(a, b);
		assert_string_equal(b->dev.broken, "a receive chain has readable parts");
		assert_null(a->dev.broken);
		guest_free(a);
		guest_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_a_burst),
		cmocka_unit_test(longest_receive_buffer),
		cmocka_unit_test(descriptors_of_a_burst),
		cmocka_unit_test(discarded_unread),
		cmocka_unit_test(readable_receive_buffers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
