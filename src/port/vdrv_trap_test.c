/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv against a device that lies: the traps of the receive path by name, each packet that is wrong
 * followed by one that is right and must come through; references are balanced after each.
 */
#include "port/vdrv_hand_rig.h"

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

/* A small MTU makes many buffers of a long packet: its offload fields are checked all the same. */
static void checked_in_many_pieces(void **state)
{
	static const uint32_t mtu[] = {1500, 576, ETH_MTU_MIN};
	struct vdrv_config c = defaults();

	(void)state;
	c.coalesce = false;
	c.ring_size = VDRV_RING_MAX;
	c.rxbuf = VDRV_RXBUF_MTU_HDR;
	for (unsigned i = 0; i < sizeof(mtu) / sizeof(*mtu); i++) {
		struct give g = {
			.len = 65000, .serial = i, .num = -1, .lie_at = -1, .partial = true};
		struct pkt *p;

		start(&c, 0, mtu[i]);
		give(&g);
		p = take_packet(65000, i);
		assert_int_equal(p->off.flags, OFF_NEEDS_CSUM);
		assert_int_equal(p->off.csum_start, ETH_HLEN);
		pkt_free(p);
		rig_down(&rig);
	}
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
		cmocka_unit_test(trap_T2_length_beyond_capacity),
		cmocka_unit_test(trap_T3_num_buffers),
		cmocka_unit_test(trap_T4_first_buffer_too_short),
		cmocka_unit_test(trap_T5_error_after_coalescing),
		cmocka_unit_test(trap_T9_half_a_packet),
		cmocka_unit_test(trap_T10_num_buffers_without_mrg),
		cmocka_unit_test(trap_T13_header_is_read_once),
		cmocka_unit_test(trap_T16_header_length),
		cmocka_unit_test(checked_in_many_pieces),
		cmocka_unit_test(too_big),
		cmocka_unit_test(lies_about_the_ring),
		cmocka_unit_test(offload_fields_are_checked),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
