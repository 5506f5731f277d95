/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_count: driver -> device -> network -> device -> driver in one process, and nothing but
 * counting: each of the classic mechanisms moves its count by the factor that it is known for.
 * Nothing is timed.
 */
#include "port/vdrv_rig.h"

#include "fabric/fabric.h"
#include "port/fake.h"

#define PACKETS 100
#define MAC_A   0x020000000001
#define MAC_B   0x020000000002

struct path {
	struct loop loop;
	struct fabric *fabric;
	struct rig a, b;
};

static struct path path;
static struct burst burst;

static void rig_join(struct rig *r, const char *name, uint32_t mtu)
{
	struct err err;

	rig_up(r, mtu);
	strcpy(r->d.port.name, name);
	memset(r->d.port.mac, 0, 6);
	if (fabric_attach(path.fabric, &r->d.port, &err))
		fail_msg("%s", err.text);
}

static void path_init(const struct vdrv_config *a, const struct vdrv_config *b,
	uint64_t without_at_b, uint32_t mtu)
{
	struct fabric_config fc = {.wait_us = 1000, .age_sec = 300, .seed = 1};

	memset(&path, 0, sizeof(path));
	assert_int_equal(loop_init(&path.loop, NULL), 0);
	assert_int_equal(fabric_new(&path.fabric, &fc, &path.loop, NULL, NULL), 0);
	rig_driver(&path.a, a, &path.loop);
	rig_driver(&path.b, b, &path.loop);
	path.b.features = vnet_features_close(path.b.features & ~without_at_b);
	rig_join(&path.a, "a", mtu);
	rig_join(&path.b, "b", mtu);
}

static void path_fini(void)
{
	fabric_detach(path.fabric, &path.a.d.port);
	fabric_detach(path.fabric, &path.b.d.port);
	rig_down(&path.a);
	rig_down(&path.b);
	fabric_free(path.fabric);
	loop_fini(&path.loop);
}

static void run(void)
{
	for (unsigned i = 0; i < 4; i++) {
		rig_run(&path.a);
		rig_run(&path.b);
	}
}

/* What came to the other end: n frames of that length. */
static void collect(uint32_t len, unsigned n)
{
	struct portq *q = &path.b.v.port.q;

	while (n) {
		unsigned got = port_pull(q, &burst, BURST_FRAMES);

		if (!got)
			assert_false(q->port->ops->arm(q));
		assert_in_range(got, 1, n);
		for (unsigned i = 0; i < got; i++) {
			assert_int_equal(burst.f[i].drop, DROP_NONE);
			assert_int_equal(frame_len(&burst.f[i]), len);
		}
		port_settle(q, &burst, got);
		n -= got;
		run();
	}
}

/* PACKETS frames from a's driver to b's, by push; one at a time, so that nobody waits for room. */
static void carry(uint8_t *data, uint32_t len, const struct offload *off)
{
	struct portq *q = &path.a.v.port.q;
	struct frame_head head;
	struct iovec tail = {data + FRAME_HEAD, len - (len < FRAME_HEAD ? len : FRAME_HEAD)};
	struct frame f = {.head = head.data, .off = *off, .tail = &tail};

	f.head_len = (uint16_t)(len < FRAME_HEAD ? len : FRAME_HEAD);
	f.tail_len = len - f.head_len;
	f.ntail = f.tail_len != 0;
	for (unsigned i = 0; i < PACKETS; i++) {
		memcpy(f.head, data, f.head_len);
		assert_int_equal(q->port->ops->push(q, &f, 1), 1);
		q->port->ops->flush(q);
		run();
		collect(len, 1);
	}
	assert_int_equal(path.b.v.n.rx_packets, PACKETS);
}

static void carry_plain(uint32_t len)
{
	static uint8_t data[FRAME_MAX];

	fake_eth(data, MAC_B, MAC_A, 0, len, 1);
	carry(data, len, &(struct offload){0});
}

/* A TCP super-packet: an IP datagram of 65535 bytes. */
#define FULL_FRAME (65535 + 14)

static void carry_full(void)
{
	static uint8_t data[FRAME_MAX];
	struct offload off;

	assert_int_equal(fake_tcp4(data, MAC_B, MAC_A, 65535 - 40, 1448, 1, &off), FULL_FRAME);
	carry(data, FULL_FRAME, &off);
}

static struct vdrv_config defaults(void)
{
	struct vdrv_config c;

	vdrv_config_init(&c);
	return c;
}

#define NO_GUEST_OFFLOADS (B(GUEST_CSUM) | B(GUEST_TSO4) | B(GUEST_TSO6))

/* Buffers per full-sized frame of this MTU, in hundredths. */
static unsigned buffers_per_frame(enum vdrv_rxbuf rxbuf, uint32_t mtu, uint64_t *truesize)
{
	struct vdrv_config a = defaults(), b = defaults();
	unsigned n;

	b.rxbuf = rxbuf;
	path_init(&a, &b, NO_GUEST_OFFLOADS, mtu);
	carry_plain(mtu + 14);
	n = (unsigned)path.b.v.n.rx_buffers;
	assert_int_equal(path.b.v.n.rx_used, n);
	*truesize = path.b.v.n.rx_truesize / PACKETS;
	path_fini();
	return n;
}

static void S0_buffer_counts_the_header(void **state)
{
	uint64_t page, fault, small, fix;

	(void)state;
	assert_int_equal(buffers_per_frame(VDRV_RXBUF_PAGE, 1500, &page), PACKETS);
	assert_int_equal(buffers_per_frame(VDRV_RXBUF_MTU, 1500, &fault), 2 * PACKETS);
	assert_int_equal(buffers_per_frame(VDRV_RXBUF_MTU, 1480, &small), PACKETS);
	assert_int_equal(buffers_per_frame(VDRV_RXBUF_MTU_HDR, 1500, &fix), PACKETS);
	assert_int_equal(buffers_per_frame(VDRV_RXBUF_AUTO, 1500, &fix), PACKETS);
	/* the memory that is charged for 1514 bytes: a page, two buffers, one */
	assert_in_range(page, 4096, 4096 + 64);
	assert_in_range(fault, 2 * 1518, 2 * 1518 + 64);
	assert_in_range(fix, 1536, 1536 + 64 + 50);

	/* the step */
	for (uint32_t mtu = 1488; mtu <= 1500; mtu++) {
		unsigned n = buffers_per_frame(VDRV_RXBUF_MTU, mtu, &fault);

		assert_int_equal(n, mtu <= 1492 ? PACKETS : 2 * PACKETS);
		assert_int_equal(buffers_per_frame(VDRV_RXBUF_MTU_HDR, mtu, &fix), PACKETS);
	}
}

static void S1_fragments_are_joined(void **state)
{
	static const enum vdrv_rxbuf mode[] = {VDRV_RXBUF_MTU, VDRV_RXBUF_MTU_HDR};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct vdrv_config a = defaults(), b = defaults();
		const struct vdrv_counters *n = &path.b.v.n;

		b.rxbuf = mode[i];
		b.coalesce = false;
		path_init(&a, &b, 0, 1500);
		carry_full();
		assert_in_range(n->rx_frags, 42 * PACKETS, 44 * PACKETS);
		assert_int_equal(n->rx_frags, n->rx_buffers);
		assert_int_equal(n->rx_chained, 2 * PACKETS);
		assert_int_equal(n->rx_coalesced, 0);
		path_fini();

		b.coalesce = true;
		path_init(&a, &b, 0, 1500);
		carry_full();
		assert_in_range(n->rx_buffers, 42 * PACKETS, 44 * PACKETS);
		assert_in_range(n->rx_frags, 2 * PACKETS, 4 * PACKETS);
		assert_int_equal(n->rx_chained, 0);
		assert_int_equal(n->rx_coalesced, n->rx_buffers - n->rx_frags);
		path_fini();
	}
}

/* The third arm: buffers of a page: seventeen, which a packet just holds without a chain. */
static void S1_pages_without_joining(void **state)
{
	struct vdrv_config a = defaults(), b = defaults();

	(void)state;
	b.rxbuf = VDRV_RXBUF_PAGE;
	b.coalesce = false;
	path_init(&a, &b, 0, 1500);
	carry_full();
	assert_int_equal(path.b.v.n.rx_frags, 17 * PACKETS);
	assert_int_equal(path.b.v.n.rx_chained, 0);
	path_fini();
}

static void S2_header_in_the_headroom(void **state)
{
	static const struct {
		bool on;
		uint16_t headroom;
		enum vq_indirect indirect;
		unsigned desc, tables;
	} k[] = {
		{false, 16, VQ_INDIRECT_ALWAYS, 2, 1},
		{true, 2, VQ_INDIRECT_ALWAYS, 2, 1}, /* no room for it: UDP before 2014 */
		{true, 12, VQ_INDIRECT_ALWAYS, 1, 0},
		{true, 16, VQ_INDIRECT_ALWAYS, 1, 0},
		{false, 16, VQ_INDIRECT_AUTO, 2, 0},
		{true, 16, VQ_INDIRECT_NEVER, 1, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		struct vdrv_config a = defaults(), b = defaults();
		const struct vdrv_counters *n;

		a.inline_header = k[i].on;
		a.headroom = k[i].headroom;
		a.indirect = k[i].indirect;
		path_init(&a, &b, 0, 1500);
		carry_plain(106);
		n = vdrv_counters(&path.a.v.port);
		assert_int_equal(n->tx_packets, PACKETS);
		assert_int_equal(n->tx_desc, k[i].desc * PACKETS);
		assert_int_equal(n->tx_indirect, k[i].tables * PACKETS);
		/* and the device saw just that */
		assert_int_equal(path.a.d.vq[VDEV_TX].n_indirect, n->tx_indirect);
		assert_int_equal(path.a.d.vq[VDEV_TX].n_desc, (k[i].desc + k[i].tables) * PACKETS);
		path_fini();
	}
}

static void S3_allocations_by_order(void **state)
{
	static const struct {
		unsigned order, each;
	} k[] = {{0, 16}, {1, 8}, {3, 2}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct vdrv_config a = defaults(), b = defaults();
		uint64_t before[CHUNK_ORDERS];
		const struct chunk_pool *chunks;

		a.order = k[i].order;
		path_init(&a, &b, 0, 1500);
		chunks = &path.a.v.chunks;
		memcpy(before, chunks->got, sizeof(before));
		carry_full();
		/* heads are cut from chunks of order 3, and started over, now and then */
		assert_in_range(chunks->got[k[i].order] - before[k[i].order], k[i].each * PACKETS,
			k[i].each * PACKETS + (k[i].order == 3 ? 2 : 0));
		assert_int_equal(chunks->fallbacks, 0);
		path_fini();
	}
}

/* What was allocated is given back, and nothing more is taken however long it goes on. */
static void steady_state_allocates_nothing_new(void **state)
{
	struct vdrv_config a = defaults(), b = defaults();

	(void)state;
	path_init(&a, &b, 0, 1500);
	for (unsigned len = 64; len <= 1514; len += 1450) {
		uint32_t live_a, live_b;
		uint64_t got = path.b.v.chunks.got[3];

		carry_plain(len);
		live_a = chunk_pool_live(&path.a.v.chunks);
		live_b = chunk_pool_live(&path.b.v.chunks);
		for (unsigned round = 0; round < 5; round++) {
			path.b.v.n.rx_packets = 0;
			carry_plain(len);
		}
		/* one that is being cut may be a new one */
		assert_in_range(chunk_pool_live(&path.a.v.chunks), live_a - 1, live_a + 1);
		assert_in_range(chunk_pool_live(&path.b.v.chunks), live_b - 1, live_b + 1);
		if (len == 64) { /* buffers that were copied out of go around */
			assert_int_equal(path.b.v.chunks.got[3], got);
			assert_int_equal(path.b.v.rx.frag.chunks, 13); /* 256 of 1536, by 21 */
		}
		path.b.v.n.rx_packets = 0;
	}
	path_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(S0_buffer_counts_the_header),
		cmocka_unit_test(S1_fragments_are_joined),
		cmocka_unit_test(S1_pages_without_joining),
		cmocka_unit_test(S2_header_in_the_headroom),
		cmocka_unit_test(S3_allocations_by_order),
		cmocka_unit_test(steady_state_allocates_nothing_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
