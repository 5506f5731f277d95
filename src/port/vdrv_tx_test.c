/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv: transmit: where the header goes and what it holds, how many descriptors that takes, when the
 * queue stops and starts again, who is told of completion; and what pull and settle lend twice.
 */
#include "port/vdrv_rig.h"

#include <errno.h>

static struct loop loop;
static struct burst burst;
static struct rig rig;
static unsigned take_max = VDRV_RING_MAX;

static int group_setup(void **state)
{
	(void)state;
	return loop_init(&loop, NULL);
}

static int group_teardown(void **state)
{
	(void)state;
	loop_fini(&loop);
	return 0;
}

static struct vdrv_config defaults(void)
{
	struct vdrv_config c;

	vdrv_config_init(&c);
	return c;
}

static void start(const struct vdrv_config *c, uint64_t without)
{
	rig_driver(&rig, c, &loop);
	rig.features = vnet_features_close(rig.features & ~without);
	rig_up_by_hand(&rig, 1500);
}

/* A packet with a head of `room` + `head`, and `frags` fragments of `len` bytes. */
static struct pkt *packet(uint32_t room, uint32_t head, unsigned frags, uint32_t len)
{
	struct pkt *p = pkt_new(&rig.v.pkts, room, head);

	if (head)
		memset(p->head - room, 0x5a, room + head); /* what was in the memory before */
	for (unsigned i = 0; i < frags; i++) {
		struct chunk *c = chunk_get(&rig.v.chunks, 0);

		memset(chunk_data(&rig.v.chunks, c), 0x60 + (int)i, len);
		assert_true(pkt_add(p, c, chunk_data(&rig.v.chunks, c), len, CHUNK_PAGE, false));
	}
	return p;
}

static void send_one(struct pkt *p)
{
	assert_int_equal(vdrv_send(&rig.v.port, &p, 1), 1);
	vdrv_flush(&rig.v.port);
}

/* The device takes all chains, uses them, and hands out the last one's bytes. */
static unsigned device_take(uint8_t *out, uint32_t *len, unsigned *pieces)
{
	static struct chain c[VDRV_RING_MAX];
	static struct iovec iov[VDRV_RING_MAX * 2];
	unsigned n = vq_dev_pop(&rig.q[VDRV_TX], c, take_max, iov, VDRV_RING_MAX * 2);

	assert_null(rig.q[VDRV_TX].broken);
	for (unsigned i = 0; i < n; i++) {
		uint32_t at = 0;

		assert_int_equal(c[i].nw, 0);
		for (unsigned k = 0; k < c[i].nr && out; k++) {
			memcpy(out + at, c[i].iov[k].iov_base, c[i].iov[k].iov_len);
			at += c[i].iov[k].iov_len;
		}
		if (pieces)
			*pieces = c[i].nr;
		if (len)
			*len = at;
	}
	vq_dev_put_read(&rig.q[VDRV_TX], c, n);
	if (vq_dev_publish(&rig.q[VDRV_TX]))
		rig.called[VDRV_TX] = true;
	return n;
}

/* S2: pieces, and where they went, for each place of the header and each use of tables. */
static void header_places(void **state)
{
	static const struct {
		bool on;
		uint64_t without;
		uint32_t room, head;
		unsigned frags;
		enum vq_indirect indirect;
		unsigned pieces, desc, tables, in;
	} k[] = {
		{true, 0, 12, 64, 0, VQ_INDIRECT_ALWAYS, 1, 1, 0, 1},
		{true, 0, 16, 64, 0, VQ_INDIRECT_ALWAYS, 1, 1, 0, 1},
		{true, 0, 10, 64, 0, VQ_INDIRECT_ALWAYS, 2, 2, 1, 0}, /* no room for 12 */
		{true, 0, 13, 64, 0, VQ_INDIRECT_ALWAYS, 2, 2, 1, 0}, /* odd */
		{true, 0, 2, 64, 0, VQ_INDIRECT_AUTO, 2, 2, 0, 0},    /* UDP of 2013 */
		{false, 0, 16, 64, 0, VQ_INDIRECT_ALWAYS, 2, 2, 1, 0},
		{false, 0, 16, 64, 0, VQ_INDIRECT_NEVER, 2, 2, 0, 0},
		{false, B(INDIRECT_DESC), 16, 64, 0, VQ_INDIRECT_ALWAYS, 2, 2, 0, 0},
		{true, 0, 16, 64, 1, VQ_INDIRECT_ALWAYS, 2, 2, 1, 1},
		{true, 0, 16, 64, 17, VQ_INDIRECT_ALWAYS, 18, 18, 1, 1},
		{false, 0, 16, 64, 17, VQ_INDIRECT_ALWAYS, 19, 19, 1, 0},
		{true, 0, 0, 0, 2, VQ_INDIRECT_ALWAYS, 3, 3, 1, 0}, /* empty head: no piece */
		{true, B(VERSION_1), 16, 64, 0, VQ_INDIRECT_NEVER, 1, 1, 0, 1}, /* any_layout */
		{true, B(VERSION_1) | B(ANY_LAYOUT), 16, 64, 0, VQ_INDIRECT_NEVER, 2, 2, 0, 0},
		{true, B(VERSION_1) | B(MRG_RXBUF), 10, 64, 0, VQ_INDIRECT_NEVER, 1, 1, 0, 1},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		struct vdrv_config c = defaults();
		uint8_t got[4096 * 18] = {0}, zero[12] = {0};
		const struct vdrv_counters *n;
		unsigned pieces = 0;
		uint32_t len = 0, hdr;
		struct pkt *p;

		c.inline_header = k[i].on;
		c.indirect = k[i].indirect;
		start(&c, k[i].without);
		hdr = rig.v.hdr_len;
		p = packet(k[i].room, k[i].head, k[i].frags, 80);
		send_one(p);
		assert_int_equal(device_take(got, &len, &pieces), 1);
		assert_int_equal(pieces, k[i].pieces);
		assert_int_equal(len, hdr + k[i].head + 80 * k[i].frags);
		assert_memory_equal(got, zero, hdr); /* nothing of the memory leaks */
		for (uint32_t b = 0; b < k[i].head; b++)
			assert_int_equal(got[hdr + b], 0x5a);
		for (uint32_t b = 0; b < 80 * k[i].frags; b++)
			assert_int_equal(got[hdr + k[i].head + b], 0x60 + b / 80);
		n = vdrv_counters(&rig.v.port);
		assert_int_equal(n->tx_packets, 1);
		assert_int_equal(n->tx_bytes, k[i].head + 80 * k[i].frags);
		assert_int_equal(n->tx_desc, k[i].desc);
		assert_int_equal(n->tx_indirect, k[i].tables);
		assert_int_equal(n->tx_inline, k[i].in);
		rig_down(&rig);
	}
}

/* What the header says: exactly what was asked for, offsets from the frame's start [DPDK: off by 12]. */
static void header_contents(void **state)
{
	struct vdrv_config c = defaults();
	uint8_t got[4096], want[12] = {1, 1, 54, 0, 0x90, 5, 34, 0, 16, 0, 0, 0};
	struct pkt *p;

	(void)state;
	start(&c, 0);
	p = packet(16, 1000, 0, 0);
	p->off = (struct offload){.flags = OFF_NEEDS_CSUM | OFF_DATA_VALID,
		.gso = OFF_GSO_TCPV4,
		.gso_size = 0x590,
		.csum_start = 34,
		.csum_off = 16,
		.hdr_len = 54};
	send_one(p);
	device_take(got, NULL, NULL);
	assert_memory_equal(got, want, 12);
	p = packet(16, 1000, 0, 0);
	p->off.flags = OFF_DATA_VALID; /* not a driver's to say */
	send_one(p);
	device_take(got, NULL, NULL);
	memset(want, 0, 12);
	assert_memory_equal(got, want, 12);
	rig_down(&rig);
}

/* What a device must not get is dropped and counted, and counts as sent. */
static void refused_packets(void **state)
{
	static const struct {
		uint64_t without;
		uint32_t len;
		struct offload off;
		bool good;
	} k[] = {
		{0, 13, {0}, false},
		{0, 14, {0}, true},
		{0, 1514, {0}, true},
		{0, 1522, {0}, true}, /* two tags */
		{0, 1523, {0}, false},
		{0, 1523, {.flags = 1, .gso = OFF_GSO_TCPV4, .gso_size = 1448}, true},
		{B(HOST_TSO4), 1523, {.flags = 1, .gso = OFF_GSO_TCPV4, .gso_size = 1448}, false},
		{B(CSUM), 100, {.flags = 1}, false},
		{0, 100, {.flags = 1}, true},
		{0, 100, {.flags = 1, .gso = OFF_GSO_UDP, .gso_size = 1448}, false},
		{B(HOST_ECN), 2000, {.flags = 1, .gso = 0x81, .gso_size = 1448}, false},
		{B(HOST_USO), 2000, {.flags = 1, .gso = OFF_GSO_UDP_L4, .gso_size = 1448}, false},
		{0, FRAME_MAX, {.flags = 1, .gso = OFF_GSO_TCPV6, .gso_size = 1448}, true},
	};
	struct vdrv_config c = defaults();

	(void)state;
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		struct pkt *p;
		unsigned frags = k[i].len < 4000 ? 0 : k[i].len / 4096;
		uint32_t head = k[i].len - frags * 4096;

		start(&c, k[i].without);
		p = packet(16, head, frags, 4096);
		p->off = k[i].off;
		send_one(p);
		assert_int_equal(rig.v.n.tx_dropped, !k[i].good);
		assert_int_equal(device_take(NULL, NULL, NULL), k[i].good);
		rig_down(&rig);
	}
}

/* T22: stopped when too few descriptors are free; told when there is room again, once, for sure. */
static void trap_T22_stop_and_restart(void **state)
{
	(void)state;
	for (unsigned event_idx = 0; event_idx < 2; event_idx++) {
		struct vdrv_config c = defaults();
		struct pkt *p[64];
		unsigned sent = 0, took, used;

		c.ring_size = 64;
		c.indirect = VQ_INDIRECT_NEVER;
		start(&c, event_idx ? 0 : B(EVENT_IDX));
		send_one(packet(16, 64, 0, 0));
		device_take(NULL, NULL, NULL); /* the first time both sides are told always */
		vdrv_call(&rig.v, VDRV_TX);
		rig.kicked[VDRV_TX] = rig.called[VDRV_TX] = false;
		for (unsigned i = 0; i < 64; i++)
			p[i] = packet(16, 64, i == 45 ? 17 : 0, 80);
		assert_false(vq_dev_arm(&rig.q[VDRV_TX], 1));
		took = vdrv_send(&rig.v.port, p, 64);
		sent += took;
		assert_int_equal(took, 64 - 19 + 1); /* fewer than 2 + 17 are free then */
		assert_true(rig.kicked[VDRV_TX]);    /* without a flush */
		assert_int_equal(rig.v.n.tx_stopped, 1);
		assert_int_equal(vdrv_send(&rig.v.port, p + sent, 1), 0);
		assert_int_equal(rig.v.n.tx_stopped, 1);
		assert_false(vdrv_arm_room(&rig.v.port.q, 64));
		assert_int_equal(rig.room, 0);

		/* one descriptor is not enough */
		take_max = 1;
		assert_int_equal(device_take(NULL, NULL, NULL), 1);
		take_max = VDRV_RING_MAX;
		if (event_idx)
			assert_false(rig.called[VDRV_TX]);
		rig.called[VDRV_TX] = false;
		if (!event_idx)
			vdrv_call(&rig.v, VDRV_TX);
		assert_int_equal(rig.room, 0);

		used = device_take(NULL, NULL, NULL);
		assert_int_equal(used, took - 1);
		assert_true(rig.called[VDRV_TX]);
		vdrv_call(&rig.v, VDRV_TX);
		assert_int_equal(rig.room, 1);
		took = vdrv_send(&rig.v.port, p + sent, 64 - sent);
		sent += took;
		assert_int_equal(sent, 64);
		vdrv_flush(&rig.v.port);

		/* used between the stop and the wish: no call comes, so arm_room says it */
		for (unsigned i = 0; i < 64; i++)
			p[i] = packet(16, 64, 0, 0);
		took = vdrv_send(&rig.v.port, p, 64);
		assert_true(took < 64);
		device_take(NULL, NULL, NULL);
		assert_true(vdrv_arm_room(&rig.v.port.q, 64));
		while (took < 64)
			pkt_free(p[took++]);
		rig_down(&rig);
	}
}

/* Rings so small that a packet is copied into fewer pieces, or a big one does not fit at all. */
static void packets_of_many_pieces(void **state)
{
	static const struct {
		unsigned ring, frags;
		bool on;
		unsigned pieces;
	} k[] = {
		{256, 43, true, 44}, /* chained: direct */
		{256, 63, true, 64},
		{256, 64, true, 2}, /* more than is good for anybody: copied */
		{32, 43, true, 2},
		{2, 17, true, 2},
		{2, 14, true, 1},
		{2, 14, false, 2},
	};
	struct vdrv_config c = defaults();

	(void)state;
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		static uint8_t got[4096 * 20];
		uint32_t each = k[i].frags > 17 ? 1000 : k[i].frags > 14 ? 3850 : 4096, len = 0;
		unsigned pieces = 0;
		struct pkt *p;

		c.ring_size = k[i].ring;
		c.inline_header = k[i].on;
		c.indirect = VQ_INDIRECT_NEVER;
		start(&c, 0);
		p = packet(16, 60, k[i].frags, each);
		p->off = (struct offload){.flags = 1, .gso = OFF_GSO_TCPV4, .gso_size = 1448};
		send_one(p);
		assert_int_equal(device_take(got, &len, &pieces), 1);
		assert_int_equal(pieces <= 2 && k[i].pieces <= 2 ? 1 : pieces,
			k[i].pieces <= 2 ? 1 : k[i].pieces);
		assert_int_equal(len, 12 + 60 + each * k[i].frags);
		for (uint32_t b = 72; b < len; b++)
			assert_int_equal(got[b], 0x60 + (b - 72) / each);
		rig_refs_check(&rig);
		rig_down(&rig);
	}
}

struct owner {
	struct pkt_account account; /* first */
	unsigned done;
};

static void owner_done(struct pkt_account *a)
{
	((struct owner *)(void *)a)->done++;
}

/* Completion is by used entries: nobody is interrupted while nobody waits. */
static void completions(void **state)
{
	(void)state;
	for (unsigned event_idx = 0; event_idx < 2; event_idx++) {
		struct vdrv_config c = defaults();
		struct owner o = {.account.done = owner_done};
		struct pkt *p;

		start(&c, event_idx ? 0 : B(EVENT_IDX));
		p = packet(16, 64, 0, 0);
		send_one(p);
		device_take(NULL, NULL, NULL);
		rig.called[VDRV_TX] = false; /* the first is always told */

		p = packet(16, 64, 0, 0);
		pkt_set_account(p, &o.account);
		send_one(p);
		assert_int_equal(o.account.outstanding, 1);
		device_take(NULL, NULL, NULL);
		assert_false(rig.called[VDRV_TX]); /* nobody waits */
		assert_int_equal(o.account.outstanding, 1);

		/* it begins to wait when all was used already: told from the loop */
		o.account.waiting = true;
		vdrv_arm_done(&rig.v.port);
		assert_int_equal(o.done, 0);
		loop_dispatch(&loop, false);
		assert_int_equal(o.done, 1);
		assert_int_equal(o.account.outstanding, 0);
		assert_int_equal(o.account.outstanding_bytes, 0);

		/* it waits from the start: completions are armed by the flush */
		for (unsigned i = 0; i < 8; i++) {
			p = packet(16, 64, 0, 0);
			pkt_set_account(p, &o.account);
			assert_int_equal(vdrv_send(&rig.v.port, &p, 1), 1);
		}
		vdrv_flush(&rig.v.port);
		device_take(NULL, NULL, NULL);
		assert_true(rig.called[VDRV_TX]);
		vdrv_call(&rig.v, VDRV_TX);
		assert_int_equal(o.done, 9);
		assert_int_equal(o.account.outstanding, 0);

		/* whoever is dropped or never sent is completed, too */
		p = packet(16, 13, 0, 0);
		pkt_set_account(p, &o.account);
		send_one(p);
		assert_int_equal(o.account.outstanding, 0);
		p = packet(16, 64, 0, 0);
		pkt_set_account(p, &o.account);
		send_one(p);
		rig_down(&rig);
		assert_int_equal(o.account.outstanding, 0);
	}
}

/* An owner that sends again as soon as it is told. */
struct eager {
	struct pkt_account account;
	unsigned done, left, depth, deepest;
};

static void eager_done(struct pkt_account *account)
{
	struct eager *e = (struct eager *)account;
	struct pkt *p;

	e->done++;
	e->depth++;
	if (e->depth > e->deepest)
		e->deepest = e->depth;
	if (e->left) {
		e->left--;
		p = packet(16, 64, 0, 0);
		pkt_set_account(p, account);
		assert_int_equal(vdrv_send(&rig.v.port, &p, 1), 1);
		vdrv_flush(&rig.v.port);
		device_take(NULL, NULL, NULL); /* used before the first call is done */
	}
	e->depth--;
}

/* Sending from within `done` takes back what was used: neither nested nor forgotten. */
static void done_that_sends(void **state)
{
	struct vdrv_config c = defaults();
	struct eager e = {.account = {.done = eager_done, .waiting = true}, .left = 5000};
	struct pkt *p;

	(void)state;
	start(&c, 0);
	for (unsigned i = 0; i < 32; i++) {
		p = packet(16, 64, 0, 0);
		pkt_set_account(p, &e.account);
		send_one(p);
	}
	device_take(NULL, NULL, NULL);
	vdrv_call(&rig.v, VDRV_TX);
	loop_dispatch(&loop, false);
	for (unsigned i = 0; i < 100 && e.account.outstanding; i++) {
		vdrv_call(&rig.v, VDRV_TX);
		loop_dispatch(&loop, false);
	}
	assert_int_equal(e.left, 0);
	assert_int_equal(e.done, 5032);
	assert_int_equal(e.deepest, 1);
	assert_int_equal(e.account.outstanding, 0);
	assert_int_equal(rig.v.tx.accounts, 0);
	assert_int_equal(rig.v.vq[VDRV_TX].nout, 0);
	rig_down(&rig);
}

static void device_uses_all(struct pkt_account *account)
{
	(void)account;
	device_take(NULL, NULL, NULL);
}

/*
 * T22: all that is out is used after the driver looked and before its wish is there: no call will come,
 * so it looks again. The moment is that of a completion.
 */
static void trap_T22_used_while_arming(void **state)
{
	struct vdrv_config c = defaults();
	struct pkt_account account = {.done = device_uses_all, .waiting = true};
	struct pkt *p[64];
	unsigned took;

	(void)state;
	c.ring_size = 64;
	c.indirect = VQ_INDIRECT_NEVER;
	start(&c, 0);
	for (unsigned i = 0; i < 64; i++)
		p[i] = packet(16, 64, i == 45 ? 17 : 0, 80); /* one chain back is not enough */
	pkt_set_account(*p, &account);
	took = vdrv_send(&rig.v.port, p, 64);
	assert_int_equal(took, 46);
	take_max = 1;
	assert_int_equal(device_take(NULL, NULL, NULL), 1);
	take_max = VDRV_RING_MAX;
	assert_true(vdrv_arm_room(&rig.v.port.q, 64));
	assert_false(rig.v.tx.want_room);
	assert_int_equal(vdrv_send(&rig.v.port, p + took, 64 - took), 64 - took);
	rig_down(&rig);
}

/* A copy stands in for a packet of too many pieces: its owner is told once, when the copy was used. */
static void copied_and_completed_once(void **state)
{
	struct vdrv_config c = defaults();
	struct owner o = {.account = {.done = owner_done, .waiting = true}};
	struct pkt *p;

	(void)state;
	c.ring_size = 16;
	c.indirect = VQ_INDIRECT_NEVER;
	start(&c, 0);
	p = packet(16, 64, 17, 80);
	pkt_set_account(p, &o.account);
	send_one(p);
	assert_int_equal(rig.v.n.tx_copied, 1);
	assert_int_equal(o.done, 0);
	assert_int_equal(o.account.outstanding, 1);
	device_take(NULL, NULL, NULL);
	vdrv_call(&rig.v, VDRV_TX);
	assert_int_equal(o.done, 1);
	assert_int_equal(o.account.outstanding, 0);
	assert_int_equal(o.account.outstanding_bytes, 0);
	rig_down(&rig);
}

/* A lie that is met while arming ends the session as well: nothing else may ever look again. */
static void lie_met_while_arming(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		unsigned queue = i & 1;
		bool closed = i & 2; /* by its owner, before the loop turns */
		struct vdrv_config c = defaults();
		struct owner o = {.account.done = owner_done};
		struct pkt *p;

		start(&c, 0);
		p = packet(16, 64, 0, 0);
		pkt_set_account(p, &o.account);
		send_one(p);
		__atomic_store_n(&rig.v.vq[queue].used->idx, 0x8000, __ATOMIC_RELEASE);
		if (queue == VDRV_TX)
			vdrv_arm_done(&rig.v.port);
		else
			assert_false(vdrv_arm(&rig.v.port.q));
		if (!closed) {
			loop_dispatch(&loop, false);
			assert_int_equal(rig.broke, 1);
			assert_string_equal(
				rig.why, "used index runs ahead of what is outstanding");
		}
		assert_int_equal(rig.v.broke_task.queued, closed);
		rig_down(&rig);
		assert_false(rig.v.broke_task.queued);
		assert_int_equal(o.account.outstanding, 0);
	}
}

/* Kicks: one for a batch, none while the device is at work. */
static void kicks(void **state)
{
	struct vdrv_config c = defaults();
	uint64_t before;

	(void)state;
	start(&c, 0);
	assert_int_equal(rig.v.n.kicks, 0); /* coming up is the session's to say */
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(
			vdrv_send(&rig.v.port, &(struct pkt *){packet(16, 64, 0, 0)}, 1), 1);
	assert_int_equal(rig.v.n.kicks, 0);
	vdrv_flush(&rig.v.port);
	assert_int_equal(rig.v.n.kicks, 1);
	vdrv_flush(&rig.v.port);
	assert_int_equal(rig.v.n.kicks, 1);
	vq_dev_disarm(&rig.q[VDRV_TX]);
	send_one(packet(16, 64, 0, 0));
	assert_int_equal(rig.v.n.kicks, 1);
	device_take(NULL, NULL, NULL);
	assert_false(vq_dev_arm(&rig.q[VDRV_TX], 1));
	before = rig.v.n.kicks;
	send_one(packet(16, 64, 0, 0));
	assert_int_equal(rig.v.n.kicks, before + 1);
	rig_down(&rig);
}

/* Frames that go back are lent again, in order, before new ones; also without memory for them. */
static void settle_keeps_the_rest(void **state)
{
	struct vdrv_config c = defaults();
	uint8_t data[8][600];
	struct frame f[8];
	struct portq *q;

	(void)state;
	rig_driver(&rig, &c, &loop);
	rig_up(&rig, 1500);
	q = &rig.v.port.q;
	for (unsigned i = 0; i < 8; i++) {
		memset(data[i], (int)i, sizeof(data[i]));
		f[i] = (struct frame){.head = data[i] + 64, .head_len = i & 1 ? 64 : 500};
	}
	assert_int_equal(rig.d.port.ops->push(&rig.d.port.q, f, 8), 8);
	rig.d.port.ops->flush(&rig.d.port.q);
	assert_int_equal(vdrv_pull(q, &burst, 6), 6);
	vdrv_settle(q, &burst, 2);
	assert_true(vdrv_arm(q)); /* there are some */
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(vdrv_pull(q, &burst, 64), 6);
		for (unsigned i = 0; i < 6; i++) {
			assert_int_equal(frame_len(&burst.f[i]), i & 1 ? 64 : 500);
			assert_int_equal(burst.f[i].head[20], 2 + i);
		}
		vdrv_settle(q, &burst, 0);
	}

	/* the packet side gets them, too */
	struct pkt *p[8];

	assert_int_equal(vdrv_receive(&rig.v.port, p, 1), 1);
	assert_int_equal(p[0]->len, 500);
	pkt_free(p[0]);
	assert_int_equal(vdrv_pull(q, &burst, 64), 5);
	rig_refs_check(&rig);
	vdrv_settle(q, &burst, 5);
	assert_false(vdrv_arm(q));
	rig_down(&rig);
}

/* A frame backed by a packet of the driver's own pool is not copied. */
static void own_packets_are_not_copied(void **state)
{
	struct vdrv_config c = defaults();
	struct frame_head head;
	struct iovec iov[20];
	struct frame f;
	struct pkt *p;
	uint8_t got[8192];
	uint32_t len;

	(void)state;
	start(&c, 0);
	p = packet(16, 64, 2, 700);
	assert_true(pkt_lend(p, &f, &head, iov, 20));
	f.off = (struct offload){0};
	assert_int_equal(vdrv_push(&rig.v.port.q, &f, 1), 1);
	vdrv_publish(&rig.v.port.q);
	assert_int_equal(rig.v.pkts.kept_ref, 1);
	assert_int_equal(rig.v.pkts.kept_copy, 0);
	pkt_free(p);
	assert_int_equal(device_take(got, &len, NULL), 1);
	assert_int_equal(len, 12 + 64 + 1400);
	assert_int_equal(got[len - 1], 0x61);
	rig_down(&rig);
}

/* No memory to keep a frame: it waits while something is out, else it is lost and counted. */
static void no_memory_to_keep(void **state)
{
	struct vdrv_config c = defaults();
	uint8_t data[FRAME_ROOM + 5000] = {0};
	struct iovec tail = {data, 5000};
	struct frame f = {.head = data + FRAME_ROOM, .head_len = 100, .tail = &tail, .ntail = 1};

	(void)state;
	f.tail_len = 5000;
	f.off = (struct offload){.flags = 1, .gso = OFF_GSO_TCPV4, .gso_size = 1448, .hdr_len = 54};
	start(&c, 0);
	assert_int_equal(vdrv_push(&rig.v.port.q, &f, 1), 1);
	rig.v.chunks.refuse_permille = 1000;
	rig.v.chunks.refuse_all = true;
	assert_int_equal(vdrv_push(&rig.v.port.q, &f, 1), 0);
	assert_false(vdrv_arm_room(&rig.v.port.q, 5100)); /* there are descriptors, but no memory */
	device_take(NULL, NULL, NULL);
	rig.v.chunks.refuse_all = false;
	vdrv_call(&rig.v, VDRV_TX);
	assert_int_equal(rig.room, 1);
	rig.v.chunks.refuse_all = true;
	assert_int_equal(vdrv_push(&rig.v.port.q, &f, 1), 1);
	assert_int_equal(rig.v.port.q.drop_out[DROP_NO_ROOM], 1);
	assert_int_equal(rig.v.n.tx_dropped, 1);
	rig_down(&rig);
}

static void config_refused(void **state)
{
	struct vdrv_config c;
	struct vdrv *v = calloc(1, sizeof(*v));
	struct err err;
	uint64_t want;

	(void)state;
#define BAD(field, value, what)                                                                    \
	do {                                                                                       \
		c = defaults();                                                                    \
		c.field = value;                                                                   \
		assert_int_equal(vdrv_init(v, "x", &c, &loop, NULL, &err), -EINVAL);               \
		assert_non_null(strstr(err.text, what));                                           \
	} while (0)
	BAD(ring_size, 0, "power of two from 2 to 1024");
	BAD(ring_size, 1, "ring size 1:");
	BAD(ring_size, 100, "ring size 100:");
	BAD(ring_size, 2048, "ring size 2048:");
	BAD(mtu, 67, "MTU 67");
	BAD(memory, 1000, "1048576");
	BAD(headroom, 2048, "headroom 2048");
	BAD(copybreak, 2049, "copybreak 2049");
	BAD(order, 5, "order 5");
	BAD(rx_order, 7, "order 7");
#undef BAD

	/* known only with the device's MTU: two buffers of a page are too little */
	c = defaults();
	c.ring_size = 2;
	assert_int_equal(vdrv_init(v, "x", &c, &loop, NULL, &err), 0);
	want = vdrv_choose(v, vdrv_want(v), 9000);
	assert_false(want & B(GUEST_TSO4)); /* and no super-packets */
	assert_int_equal(vdrv_rings(v, want, 9000, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cannot hold a frame of MTU 9000"));
	assert_int_equal(vdrv_rings(v, want, 8000, &err), 0);
	/* below what virtio allows, the arithmetic of those above would wrap */
	assert_int_equal(vdrv_rings(v, want, ETH_MTU_MIN - 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "MTU 67"));
	assert_int_equal(vdrv_rings(v, want, ETH_MTU_MIN, &err), 0);
	assert_int_equal(v->port.mtu, ETH_MTU_MIN);
	vdrv_down(v);
	vdrv_fini(v);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_places),
		cmocka_unit_test(header_contents),
		cmocka_unit_test(refused_packets),
		cmocka_unit_test(trap_T22_stop_and_restart),
		cmocka_unit_test(packets_of_many_pieces),
		cmocka_unit_test(completions),
		cmocka_unit_test(done_that_sends),
		cmocka_unit_test(trap_T22_used_while_arming),
		cmocka_unit_test(copied_and_completed_once),
		cmocka_unit_test(lie_met_while_arming),
		cmocka_unit_test(kicks),
		cmocka_unit_test(settle_keeps_the_rest),
		cmocka_unit_test(own_packets_are_not_copied),
		cmocka_unit_test(no_memory_to_keep),
		cmocka_unit_test(config_refused),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
