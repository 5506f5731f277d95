/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv against a device that lies: the traps of the receive path by name, each packet that is wrong
 * followed by one that is right and must come through; references are balanced after each.
 */
#include "port/vdrv_rig.h"

#define FULL UINT32_MAX

static struct loop loop;
static nsec_t now;
static struct burst burst;
static struct rig rig;

static int group_setup(void **state)
{
	int rc = loop_init(&loop, NULL);

	(void)state;
	loop.virtual_now = &now;
	loop_refresh(&loop);
	return rc;
}

static int group_teardown(void **state)
{
	(void)state;
	loop_fini(&loop);
	return 0;
}

static void start(const struct vdrv_config *c, uint64_t without, uint32_t mtu)
{
	rig_driver(&rig, c, &loop);
	rig.features = vnet_features_close(rig.features & ~without);
	rig_up_by_hand(&rig, mtu);
}

static struct vdrv_config defaults(void)
{
	struct vdrv_config c;

	vdrv_config_init(&c);
	return c;
}

/* What the device says of one packet; 0 and -1: the truth. */
struct give {
	uint32_t len, serial; /* of the frame */
	int num;              /* num_buffers */
	int lie_at;           /* this buffer of it ... */
	uint32_t lie_len;     /* ... was written so far */
	unsigned hold;        /* buffers at its end that are not used yet */
	uint32_t fill;        /* of each buffer no more than that; 0: all */
};

static uint8_t stamp(uint32_t serial, uint32_t i)
{
	return (uint8_t)(serial * 31 + i * 7 + (i >> 8));
}

/* The device fills buffers with a frame and says of it what it is told; buffers used. */
static unsigned give(const struct give *g)
{
	static struct chain c[VDRV_RING_MAX];
	static struct iovec iov[VDRV_RING_MAX * 2];
	static uint8_t data[FRAME_MAX * 2];
	struct vq_dev *q = &rig.q[VDRV_RX];
	uint32_t hdr = rig.v.hdr_len, need = hdr + g->len, at = 0;
	unsigned n = 0, niov = 0, num;
	uint32_t part[VDRV_RING_MAX];

	memset(data, 0, hdr);
	for (uint32_t i = 0; i < g->len; i++)
		data[hdr + i] = stamp(g->serial, i);
	while (at < need) {
		assert_int_equal(vq_dev_pop(q, &c[n], 1, &iov[niov], VDRV_RING_MAX), 1);
		part[n] = g->fill && g->fill < c[n].wlen ? g->fill : c[n].wlen;
		part[n] = need - at < part[n] ? need - at : part[n];
		at += part[n];
		niov += c[n++].nw;
	}
	num = g->num >= 0 ? (unsigned)g->num : n;
	if (hdr == VNET_HDR_MAX) {
		data[10] = (uint8_t)num;
		data[11] = (uint8_t)(num >> 8);
	}
	at = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t done = 0;

		for (unsigned k = 0; k < c[i].nw && done < part[i]; k++) {
			uint32_t len = (uint32_t)c[i].iov[k].iov_len;

			len = len < part[i] - done ? len : part[i] - done;
			memcpy(c[i].iov[k].iov_base, data + at, len);
			at += len;
			done += len;
		}
	}
	for (unsigned i = 0; i < n - g->hold; i++) {
		uint32_t said = part[i];

		if (g->lie_at == (int)i)
			said = g->lie_len == FULL ? c[i].wlen + 1 : g->lie_len;
		vq_dev_put(q, c[i].id, said);
	}
	vq_dev_unpop(q, 0);
	vq_dev_publish(q);
	return n;
}

static void give_good(uint32_t len, uint32_t serial)
{
	give(&(struct give){.len = len, .serial = serial, .num = -1, .lie_at = -1});
}

static void bytes_check(const uint8_t *p, uint32_t len, uint32_t serial, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != stamp(serial, from + i))
			fail_msg("byte %u of packet %u is wrong", from + i, serial);
}

static void packet_check(const struct pkt *p, uint32_t len, uint32_t serial)
{
	uint32_t at = p->head_len;

	assert_int_equal(p->len, len);
	bytes_check(p->head, p->head_len, serial, 0);
	for (; p; p = p->chain) {
		for (unsigned i = 0; i < p->nfrag; i++) {
			bytes_check(p->frag[i].data, p->frag[i].len, serial, at);
			at += p->frag[i].len;
		}
	}
	assert_int_equal(at, len);
}

/* Exactly this one comes, as a packet; it is the caller's. */
static struct pkt *take_packet(uint32_t len, uint32_t serial)
{
	struct pkt *p[4];

	assert_int_equal(vdrv_receive(&rig.v.port, p, 4), 1);
	packet_check(*p, len, serial);
	rig_refs_check(&rig);
	return *p;
}

static void take(uint32_t len, uint32_t serial)
{
	pkt_free(take_packet(len, serial));
}

/* The same, lent. */
static void take_frame(uint32_t len, uint32_t serial)
{
	static uint8_t flat[FRAME_MAX];
	struct portq *q = &rig.v.port.q;

	assert_int_equal(vdrv_pull(q, &burst, BURST_FRAMES), 1);
	assert_int_equal(frame_len(burst.f), len);
	frame_copy(burst.f, 0, len, &(struct iovec){flat, len}, 1, 0);
	bytes_check(flat, len, serial, 0);
	rig_refs_check(&rig);
	vdrv_settle(q, &burst, 1);
}

/* A wrong packet, then a good one, of which only that arrives; by either way. */
static void wrong_then_good(const struct give *wrong, const uint64_t *counter)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t before = *counter, dropped = rig.v.port.q.drop_in[DROP_BAD_HDR];

		give(wrong);
		give_good(3000 + i, 77);
		if (i)
			take_frame(3000 + i, 77);
		else
			take(3000 + i, 77);
		assert_int_equal(*counter, before + 1);
		assert_int_equal(rig.v.port.q.drop_in[DROP_BAD_HDR], dropped + 1);
		assert_null(rig.v.broken);
		rig_refs_check(&rig);
	}
}

/* ---- receive buffers ---- */

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

/* ---- packets ---- */

static void trap_T2_length_beyond_capacity(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	c.rxbuf = VDRV_RXBUF_MTU_HDR;
	start(&c, 0, 1500);
	for (int at = 0; at < 4; at++) {
		struct give g = {
			.len = 5500, .serial = 1, .num = -1, .lie_at = at, .lie_len = FULL};

		wrong_then_good(&g, &rig.v.n.rx_err_len);
		g.lie_len = FULL - 1;
		wrong_then_good(&g, &rig.v.n.rx_err_len);
	}
	assert_int_equal(rig.v.n.rx_err_len, 16);
	rig_down(&rig);

	/* the same without MRG_RXBUF: small and big, judged by what is posted now (CVE-2025-40292) */
	for (unsigned big = 0; big < 2; big++) {
		start(&c, B(MRG_RXBUF) | (big ? 0 : B(GUEST_CSUM)), 1500);
		assert_int_equal(rig.v.rx.mode, big ? VDRV_BIG : VDRV_SMALL);
		give(&(struct give){.len = 500, .lie_len = FULL, .num = 1});
		give_good(600, 2);
		take(600, 2);
		assert_int_equal(rig.v.n.rx_err_len, 1);
		rig_down(&rig);
	}
}

static void trap_T3_num_buffers(void **state)
{
	struct vdrv_config c = defaults();
	struct give g = {.len = 5000, .serial = 1, .lie_at = -1};
	struct pkt *p;

	(void)state;
	/* 0: only the first is known to belong to it; here it has no other */
	start(&c, 0, 1500);
	g.len = 500;
	wrong_then_good(&g, &rig.v.n.rx_err_num_buffers);
	rig_down(&rig);

	/* 1 for a packet of four: a short packet, and three whose header is data: nothing bad happens */
	start(&c, 0, 1500);
	g = (struct give){.len = 5000, .serial = 1, .num = 1, .lie_at = -1};
	give(&g);
	for (unsigned n = vdrv_receive(&rig.v.port, &p, 1); n; n = vdrv_receive(&rig.v.port, &p, 1))
		pkt_free(p);
	rig_refs_check(&rig);
	rig_down(&rig);

	/* more than there are */
	start(&c, 0, 1500);
	g = (struct give){.len = 5000, .serial = 1, .num = 5, .lie_at = -1};
	give(&g);
	assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
	assert_int_equal(rig.v.n.rx_err_missing, 1);
	give_good(100, 3);
	take(100, 3);
	give(&g);
	assert_int_equal(vdrv_pull(&rig.v.port.q, &burst, 64), 0);
	vdrv_settle(&rig.v.port.q, &burst, 0);
	assert_int_equal(rig.v.n.rx_err_missing, 2);
	give_good(100, 3);
	take_frame(100, 3);
	rig_down(&rig);

	/* more than the ring has: whatever is there is drained */
	static const int many[] = {257, 1000, 65535};

	for (unsigned i = 0; i < 3; i++) {
		start(&c, 0, 1500);
		g = (struct give){.len = 5000, .serial = 1, .num = many[i], .lie_at = -1};
		give(&g);
		assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
		assert_int_equal(rig.v.n.rx_err_num_buffers, 1);
		give_good(100, 3);
		take(100, 3);
		rig_down(&rig);
	}

	/* as many as the ring has is allowed, and one packet of that many comes whole */
	c.ring_size = 32;
	c.rxbuf = VDRV_RXBUF_PAGE;
	start(&c, 0, 1500);
	give(&(struct give){
		.len = 32 * 100 - 12, .serial = 9, .num = -1, .lie_at = -1, .fill = 100});
	take(32 * 100 - 12, 9);
	assert_int_equal(rig.v.n.rx_buffers, 32);
	assert_int_equal(rig.v.n.rx_not_full, 31); /* accepted, counted */
	rig_down(&rig);
}

/* T9, the driver's end: half a packet was published: it is dropped, and the rest is not a packet. */
static void trap_T9_half_a_packet(void **state)
{
	struct vdrv_config c = defaults();
	struct pkt *p;

	(void)state;
	start(&c, 0, 1500);
	give(&(struct give){.len = 5000, .num = -1, .lie_at = -1, .hold = 2});
	assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
	assert_int_equal(rig.v.n.rx_err_missing, 1);
	assert_null(rig.v.broken);
	assert_true(rig.v.live);
	give_good(2000, 4);
	take(2000, 4);
	rig_down(&rig);
}

/* T10: without MRG_RXBUF num_buffers is 1; 0 of old devices is tolerated and counted. */
static void trap_T10_num_buffers_without_mrg(void **state)
{
	struct vdrv_config c = defaults();
	struct pkt *p;

	(void)state;
	for (unsigned big = 0; big < 2; big++) {
		start(&c, B(MRG_RXBUF) | (big ? 0 : B(GUEST_CSUM)), 1500);
		give(&(struct give){.len = 900, .serial = 5, .num = 0, .lie_at = -1});
		take(900, 5);
		assert_int_equal(rig.v.n.rx_zero_num_buffers, 1);
		give(&(struct give){.len = 900, .serial = 5, .num = 2, .lie_at = -1});
		assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
		assert_int_equal(rig.v.n.rx_err_num_buffers, 1);
		give_good(900, 6);
		take_frame(900, 6);
		assert_int_equal(rig.v.n.rx_zero_num_buffers, 1);
		rig_down(&rig);
	}
}

static void trap_T4_first_buffer_too_short(void **state)
{
	static const uint32_t said[] = {0, 1, 9, 11, 12, 13, 25};
	struct vdrv_config c = defaults();

	(void)state;
	start(&c, 0, 1500);
	for (unsigned i = 0; i < sizeof(said) / sizeof(*said); i++) {
		struct give g = {.len = 60, .num = -1, .lie_at = 0, .lie_len = said[i]};

		wrong_then_good(&g, &rig.v.n.rx_err_short);
		if (said[i] < 12)
			continue;
		g.len = 5000; /* it has a header, which says how many belong to it */
		wrong_then_good(&g, &rig.v.n.rx_err_short);
	}
	give(&(struct give){.len = 14, .serial = 3, .num = -1, .lie_at = -1});
	take(14, 3); /* an Ethernet header and nothing more is long enough */
	rig_down(&rig);
}

/* T5: wherever a packet of joined buffers fails, each reference is dropped once. */
static void trap_T5_error_after_coalescing(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	for (unsigned coalesce = 0; coalesce < 2; coalesce++) {
		c.coalesce = coalesce;
		c.rxbuf = VDRV_RXBUF_MTU_HDR;
		start(&c, 0, 1500);
		for (int at = 1; at < 43; at += 3) {
			struct give g = {.len = 65000, .num = -1, .lie_at = at};

			g.lie_len = at & 1 ? FULL : 0;
			wrong_then_good(&g, at & 1 ? &rig.v.n.rx_err_len : &rig.v.n.rx_err_short);
		}
		assert_true(!coalesce || rig.v.n.rx_coalesced > 0);
		rig_down(&rig);
	}

	/* no record for a chained packet, none for the first one, no memory for a head */
	c.coalesce = false;
	start(&c, 0, 1500);

	struct pkt *held[8192], *p;
	unsigned n = 0;

	while ((p = pkt_new(&rig.v.pkts, 0, 0)))
		held[n++] = p;
	pkt_free(held[--n]);
	give_good(65000, 1);
	give_good(20000, 2);
	take(20000, 2);
	assert_int_equal(rig.v.n.rx_err_memory, 1);
	held[n++] = pkt_new(&rig.v.pkts, 0, 0);
	give_good(20000, 3);
	assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
	assert_int_equal(rig.v.n.rx_err_memory, 2);
	while (n)
		pkt_free(held[--n]);
	give_good(65000, 4);
	take(65000, 4);
	rig_down(&rig);
}

/* 65535 and an Ethernet header with tags are the most; a longer one is dropped to its end. */
static void too_big(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	start(&c, 0, 1500);
	give_good(FRAME_MAX, 1);
	take(FRAME_MAX, 1);
	for (uint32_t more = 1; more < 20000; more += 4999)
		wrong_then_good(&(struct give){.len = FRAME_MAX + more, .num = -1, .lie_at = -1},
			&rig.v.n.rx_err_too_big);
	rig_down(&rig);

	start(&c, B(MRG_RXBUF), 1500);
	give(&(struct give){.len = 100, .num = 1, .lie_at = 0, .lie_len = 12 + FRAME_MAX + 1});
	give_good(FRAME_MAX - 30, 2);
	take(FRAME_MAX - 30, 2);
	assert_int_equal(rig.v.n.rx_err_too_big, 1);
	rig_down(&rig);
}

/* T13: the header is read once: a device that changes it afterwards changes nothing. */
static void trap_T13_header_is_read_once(void **state)
{
	struct vdrv_config c = defaults();
	struct pkt *p;
	uint8_t *data;

	(void)state;
	start(&c, 0, 1500);
	data = rig.v.rx.buf[0].data;
	give_good(1000, 1);
	p = take_packet(1000, 1);
	memset(data, 0xff, 12 + ETH_HLEN); /* header and Ethernet header are ours */
	packet_check(p, 1000, 1);
	assert_int_equal(p->off.flags, 0);
	assert_int_equal(p->off.gso, 0);
	pkt_free(p);
	rig_down(&rig);
}

/* T16: the header's length follows the features of each session. */
static void trap_T16_header_length(void **state)
{
	static const struct {
		uint64_t without;
		unsigned len;
	} k[] = {
		{0, 12},
		{B(VERSION_1), 12},
		{B(MRG_RXBUF), 12},
		{B(MRG_RXBUF) | B(VERSION_1), 10},
		{B(VERSION_1) | B(MRG_RXBUF) | B(ANY_LAYOUT), 10},
		{0, 12},
	};
	struct vdrv_config c = defaults();
	struct err err;

	(void)state;
	rig_driver(&rig, &c, &loop);
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		uint64_t f = vnet_features_close(vnet_features_all() & ~k[i].without);

		assert_int_equal(vdrv_rings(&rig.v, f, 1500, &err), 0);
		assert_int_equal(rig.v.hdr_len, k[i].len);
		vdrv_down(&rig.v);
	}
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k);
		i++) { /* and bytes lie where they should */
		rig.features = vnet_features_close(vnet_features_all() & ~k[i].without);
		rig_up_by_hand(&rig, 1500);
		give(&(struct give){.len = 200, .serial = i, .num = -1, .lie_at = -1});
		take(200, i);
		gmem_fini(&rig.mem);
		vdrv_down(&rig.v);
	}
	vdrv_fini(&rig.v);
}

/* A lie about the ring itself ends the session, from the loop; everything comes back. */
static void lies_about_the_ring(void **state)
{
	struct vdrv_config c = defaults();

	(void)state;
	for (unsigned lie = 0; lie < 10; lie++) {
		unsigned queue = lie & 1;
		struct vring_used *u;
		struct pkt *p;

		start(&c, 0, 1500);
		p = pkt_new(&rig.v.pkts, 16, 60);
		memset(p->head, 0, 60);
		vdrv_send(&rig.v.port, &p, 1);
		vdrv_flush(&rig.v.port);
		if (queue == VDRV_RX)
			give_good(100, 1);
		u = rig.v.vq[queue].used;
		switch (lie / 2) {
		case 0: /* out of range */
			u->ring[u->idx++ % 256].id = 256;
			break;
		case 1: /* not outstanding: of the receive ring all are, so twice */
			u->ring[u->idx++ % 256] = (struct vring_used_elem){0, 100};
			u->ring[u->idx++ % 256] = (struct vring_used_elem){0, 100};
			break;
		case 2: /* jumps */
			u->idx = (uint16_t)(u->idx + 1000);
			break;
		case 3: /* goes back */
			u->idx--;
			u->idx--;
			break;
		default: /* a wide id whose low bits are good */
			u->ring[u->idx++ % 256].id = 0x10000;
		}
		while (vdrv_receive(&rig.v.port, &p, 1))
			pkt_free(p);
		vdrv_arm(&rig.v.port.q);
		vdrv_arm_room(&rig.v.port.q, 0);
		assert_non_null(rig.v.broken);
		assert_int_equal(rig.broke, 0);
		assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
		assert_int_equal(vdrv_send(&rig.v.port, NULL, 1), 0);
		assert_int_equal(vdrv_pull(&rig.v.port.q, &burst, 1), 0);
		loop_dispatch(&loop, false);
		assert_int_equal(rig.broke, 1);
		assert_ptr_equal(rig.why, rig.v.broken);
		assert_false(rig.v.port.link);
		assert_int_equal(rig.v.n.rx_err_id, 1);
		rig_down(&rig);
	}
}

/* Offload fields are a device's word: they are checked against the frame before anybody believes. */
static void offload_fields_are_checked(void **state)
{
	struct vdrv_config c = defaults();
	struct pkt *p;
	uint8_t *data;

	(void)state;
	start(&c, 0, 1500);
	for (unsigned i = 0; i < 2; i++) {
		data = rig.v.rx.buf[i].data;
		give_good(500, 1);
		data[0] = OFF_NEEDS_CSUM;
		data[6] = 0xff; /* begins behind the end */
		data[7] = 0xff;
		if (i == 0) {
			assert_int_equal(vdrv_receive(&rig.v.port, &p, 1), 0);
			assert_int_equal(rig.v.port.q.drop_in[DROP_BAD_HDR], 1);
		} else {
			assert_int_equal(port_pull(&rig.v.port.q, &burst, 64), 1);
			assert_int_equal(burst.f->drop, DROP_BAD_HDR);
			port_settle(&rig.v.port.q, &burst, 1);
		}
	}
	data = rig.v.rx.buf[2].data;
	give_good(500, 1);
	data[0] = OFF_DATA_VALID;
	p = take_packet(500, 1);
	assert_int_equal(p->off.flags, OFF_DATA_VALID);
	pkt_free(p);
	rig_down(&rig);

	start(&c, B(GUEST_CSUM), 1500); /* a device may say nothing then */
	data = rig.v.rx.buf[0].data;
	give_good(500, 1);
	data[0] = OFF_DATA_VALID | OFF_NEEDS_CSUM;
	data[1] = OFF_GSO_TCPV4;
	p = take_packet(500, 1);
	assert_int_equal(p->off.flags | p->off.gso, 0);
	pkt_free(p);
	rig_down(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_T1_T6_capacity_is_what_is_posted),
		cmocka_unit_test(trap_T2_length_beyond_capacity),
		cmocka_unit_test(trap_T3_num_buffers),
		cmocka_unit_test(trap_T4_first_buffer_too_short),
		cmocka_unit_test(trap_T5_error_after_coalescing),
		cmocka_unit_test(trap_T7_chunks_of_one_page),
		cmocka_unit_test(trap_T8_average_without_bias),
		cmocka_unit_test(trap_T9_half_a_packet),
		cmocka_unit_test(trap_T10_num_buffers_without_mrg),
		cmocka_unit_test(trap_T13_header_is_read_once),
		cmocka_unit_test(trap_T16_header_length),
		cmocka_unit_test(trap_T23_retry_when_memory_is_out),
		cmocka_unit_test(buffer_lengths),
		cmocka_unit_test(too_big),
		cmocka_unit_test(lies_about_the_ring),
		cmocka_unit_test(offload_fields_are_checked),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
