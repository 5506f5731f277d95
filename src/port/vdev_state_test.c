/* SPDX-License-Identifier: BSD-2-Clause */
/* vdev: drivers that lie, states of the queues, memory changes, features, configuration. */
#include "port/vdev_rig.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sigbus.h"

/* drivers that lie */

enum lie {
	TX_WRITABLE,
	TX_SHORT,
	TX_WILD,
	TX_HEAD,
	TX_AHEAD,
	TX_LOOP,
	RX_READABLE,
	RX_WILD,
	RX_AHEAD
};

static void tell(struct guest *g, enum lie lie)
{
	struct ring_sim_buf b[2] = {{GPA + g->window, 100}, {GPA + g->window + 4096, 100}};
	bool tx = lie < RX_READABLE;
	struct ring_sim *s = tx ? &g->tx : &g->rx;

	switch (lie) {
	case TX_WRITABLE:
		ring_sim_add(s, b, 1, 1, false);
		break;
	case TX_SHORT:
		b[0].len = g->hdr_len - 1;
		ring_sim_add(s, b, 1, 0, false);
		break;
	case TX_WILD:
	case RX_WILD:
		b[0].gpa = GPA + SIZE - 99;
		ring_sim_add(s, b, tx, !tx, false);
		break;
	case TX_HEAD:
		ring_sim_add_raw(s, s->size);
		break;
	case TX_LOOP:
		s->desc[3] = (struct vring_desc){GPA, 1, VRING_DESC_F_NEXT, 3};
		ring_sim_add_raw(s, 3);
		break;
	case RX_READABLE:
		ring_sim_add(s, b, 1, 1, false);
		break;
	case TX_AHEAD:
	case RX_AHEAD:
		s->avail_next = (uint16_t)(s->used_next + s->size + 1);
		break;
	}
	ring_sim_publish(s);
}

static void broken_rings(void **state)
{
	(void)state;
	static const struct {
		enum lie lie;
		const char *reason;
	} t[] = {
		{TX_WRITABLE, "a transmit chain has writable parts"},
		{TX_SHORT, "a transmit chain is shorter than the virtio-net header"},
		{TX_WILD, "descriptor outside of guest memory"},
		{TX_HEAD, "avail entry names no descriptor of the ring"},
		{TX_AHEAD, "avail index runs ahead by more than the ring's size"},
		{TX_LOOP, "descriptor chain loops or is too long"},
		{RX_READABLE, "a receive chain has readable parts"},
		{RX_WILD, "descriptor outside of guest memory"},
		{RX_AHEAD, "avail index runs ahead by more than the ring's size"},
	};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);
		bool tx = t[i].lie < RX_READABLE;
		struct guest *liar = tx ? a : b;
		static struct packet p;

		guest_send(a, 60);
		guest_post_each(b, 2048, 1);
		tell(liar, t[i].lie);
		guest_send(a, 60);
		for (unsigned k = 0; k < 3; k++) /* stops, and stays stopped */
			carry(a, b);
		loop_dispatch(&loop, false);
		assert_string_equal(liar->dev.broken, t[i].reason);
		assert_string_equal(liar->why, t[i].reason);
		assert_int_equal(liar->broke, 1);
		assert_false(liar->dev.port.link);
		assert_true((tx ? b : a)->dev.port.link); /* the other one goes on */
		assert_null((tx ? b : a)->dev.broken);
		while (guest_receive(b, &p)) /* what came before is whole */
			packet_check(&p, 0);

		/* a new driver on the same device */
		unsigned queue = tx ? VDEV_TX : VDEV_RX;
		struct ring_sim *s = tx ? &liar->tx : &liar->rx;

		vdev_ring_stop(&liar->dev, queue);
		assert_null(liar->dev.broken);
		ring_sim_fini(s);
		liar->at = liar->window + liar->window_len - (1u << 20);
		guest_ring(liar, queue, s, 16, 5);
		liar->at = liar->window;
		vdev_ring_start(&liar->dev, queue);
		assert_true(liar->dev.port.link);
		if (!tx)
			guest_post_each(b, 2048, 2);
		guest_send(a, 60);
		carry(a, b);
		assert_null(a->dev.broken);
		assert_null(b->dev.broken);
		guest_free(a);
		guest_free(b);
	}
}

static void break_in_arm(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0);

	guest_post_each(a, 2048, 2);
	tell(a, RX_AHEAD);
	assert_false(a->dev.port.ops->arm_room(portq_of(a), 100));
	assert_non_null(a->dev.broken);
	assert_int_equal(a->broke, 0); /* never from inside */
	loop_dispatch(&loop, false);
	assert_int_equal(a->broke, 1);
	guest_free(a);
	a = guest_new(MODERN, 16, 0);
	tell(a, TX_AHEAD);
	assert_false(a->dev.port.ops->arm(portq_of(a)));
	loop_dispatch(&loop, false);
	assert_int_equal(a->broke, 1);
	guest_free(a);
}

static void memory_truncated(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);
	size_t len = 1 << 20;
	int fd = memfd_create("guest", 0);
	struct ring_sim_buf buf = {GPA + (UINT64_C(1) << 32), 2048};

	assert_int_equal(sigbus_install(), 0);
	for (unsigned queue = VDEV_RX; queue <= VDEV_TX; queue++) {
		struct guest *g = queue == VDEV_RX ? b : a;

		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		assert_int_equal(
			gmem_map(&g->dev.mem, buf.gpa, UVA + buf.gpa, len, fd, 0, NULL), 0);
		assert_int_equal(ftruncate(fd, 0), 0);
	}
	ring_sim_add(&b->rx, &buf, 0, 1, false);
	ring_sim_publish(&b->rx);
	guest_send(a, 60);
	carry(a, b);
	assert_string_equal(b->dev.broken, "guest memory was truncated");
	assert_int_equal(ring_sim_pending(&b->rx), 0);
	ring_sim_add(&a->tx, &buf, 1, 0, false);
	ring_sim_publish(&a->tx);
	assert_int_equal(carry(a, b), 0);
	assert_string_equal(a->dev.broken, "guest memory was truncated");
	loop_dispatch(&loop, false);
	assert_int_equal(a->broke + b->broke, 2);
	close(fd);
	guest_free(a);
	guest_free(b);
}

/* states */

struct told {
	unsigned ready, room, link;
};

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct told *)ctx)->ready++;
}

static void on_room(void *ctx, struct portq *q)
{
	(void)q;
	((struct told *)ctx)->room++;
}

static void on_link(void *ctx, struct port *p)
{
	(void)p;
	((struct told *)ctx)->link++;
}

static const struct port_events events = {on_ready, on_room, on_link};

/* What a state lets through: frames from the guest, frames to it. */
static void state_check(struct guest *g, bool link, bool tx, bool rx, bool discard)
{
	struct guest *peer = guest_new(MODERN, 16, 0);
	uint64_t dropped = portq_of(g)->drop_in[DROP_DISABLED];
	uint16_t tx_at = g->tx.used->idx, rx_at = g->rx.used->idx;

	assert_int_equal(g->dev.port.link, link);
	assert_int_equal(g->dev.port.accepts, vnet_accepts(g->dev.features));
	guest_post_each(peer, 2048, 4);
	guest_send(g, 60);
	vdev_kicked(&g->dev, VDEV_TX);
	assert_int_equal(carry(g, peer), tx);
	assert_int_equal((uint16_t)(g->tx.used->idx - tx_at), tx || discard);
	assert_int_equal(portq_of(g)->drop_in[DROP_DISABLED] - dropped, discard);
	if (!tx && !discard) { /* take it back, for the next state */
		g->tx.avail_next--;
		g->tx.free_get--;
		g->sent--;
		g->tx.avail->idx--;
		g->tx.avail_shown--;
	}
	guest_post_each(g, 2048, 1);
	guest_send(peer, 60);
	assert_int_equal(carry(peer, g), rx);
	assert_int_equal((uint16_t)(g->rx.used->idx - rx_at), rx);
	ring_sim_drain(&g->tx, 16);
	ring_sim_drain(&g->rx, 16);
	guest_free(peer);
}

static void states(void **state)
{
	(void)state;
	struct guest *g = guest_new_stopped(MODERN & ~B(INDIRECT_DESC), 64, 0);
	struct vdev *v = &g->dev;
	struct told told = {0};

	v->port.events = &events;
	v->port.events_ctx = &told;
	state_check(g, false, false, false, false); /* stopped, disabled */
	vdev_ring_enable(v, VDEV_RX, true);
	vdev_ring_enable(v, VDEV_TX, true);
	state_check(g, false, false, false, false); /* stopped, enabled */
	vdev_ring_enable(v, VDEV_TX, false);
	vdev_ring_start(v, VDEV_TX);
	state_check(g, false, false, false, true); /* tx started, disabled: consumed and dropped */
	assert_int_equal(told.link, 0);
	vdev_ring_start(v, VDEV_RX);
	assert_int_equal(told.link, 1);
	state_check(g, true, false, true, true); /* rx works */
	assert_int_equal(told.ready, 0);
	vdev_ring_enable(v, VDEV_TX, true);
	assert_int_equal(told.ready, 1);         /* frames may wait */
	state_check(g, true, true, true, false); /* both */
	vdev_ring_start(v, VDEV_TX);             /* again: nothing */
	vdev_ring_enable(v, VDEV_TX, true);
	state_check(g, true, true, true, false);
	vdev_ring_enable(v, VDEV_RX, false);
	assert_int_equal(told.link, 2);
	state_check(g, false, false, false, false); /* rx silent */
	vdev_ring_enable(v, VDEV_RX, true);
	state_check(g, true, true, true, false);

	/* stop tells where to go on, and it does go on there */
	uint16_t base = vdev_ring_stop(v, VDEV_TX);

	assert_int_equal(base, g->tx.used->idx);
	assert_int_equal(vdev_ring_stop(v, VDEV_TX), base); /* twice is the same */
	state_check(g, true, false, true, false);
	vdev_set_ring_base(v, VDEV_TX, base);
	vdev_ring_start(v, VDEV_TX);
	state_check(g, true, true, true, false);
	vdev_ring_stop(v, VDEV_RX);
	state_check(g, false, false, false, false);
	vdev_ring_start(v, VDEV_RX);
	state_check(g, true, true, true, false);

	unsigned kicks = told.room;

	vdev_kicked(v, VDEV_RX);
	assert_int_equal(told.room, kicks + 1);
	assert_int_equal(portq_of(g)->out.kicks, 1);
	vdev_reset(v);
	assert_false(v->port.link);
	assert_int_equal(v->features, 0);
	assert_int_equal(v->port.accepts, 0);
	assert_int_equal(v->hdr_len, 10);
	assert_int_equal(v->ring[VDEV_RX].size, 0);
	vdev_kicked(v, VDEV_RX);
	assert_int_equal(told.room, kicks + 1); /* a stopped queue tells nothing */
	v->port.ops->close(&v->port);
	guest_free(g);
}

static void starts_without_a_ring(void **state)
{
	(void)state;
	static const char *const reason[] = {"the ring has no size", "the ring has no addresses",
		"the ring is not in mapped memory"};

	for (unsigned i = 0; i < 3; i++) {
		struct guest *g = calloc(1, sizeof(*g));

		vdev_init(&g->dev, "guest", &config, &loop, NULL);
		g->dev.broke = on_broke;
		g->dev.ctx = g;
		vdev_ring_enable(&g->dev, VDEV_RX, true);
		if (i > 0)
			assert_int_equal(vdev_set_ring_size(&g->dev, VDEV_RX, 64, NULL), 0);
		if (i > 1)
			assert_int_equal(
				vdev_set_ring_addr(&g->dev, VDEV_RX, UVA, UVA, UVA, NULL), 0);
		vdev_set_ring_base(&g->dev, VDEV_RX, 77);
		vdev_ring_start(&g->dev, VDEV_RX);
		loop_dispatch(&loop, false);
		assert_string_equal(g->why, reason[i]);
		assert_int_equal(g->dev.port.ops->pull(portq_of(g), &burst, 64), 0);
		assert_int_equal(vdev_ring_stop(&g->dev, VDEV_RX), 77);
		assert_null(g->dev.broken);
		vdev_fini(&g->dev);
		free(g);
	}
}

static void ring_values(void **state)
{
	(void)state;
	struct guest *g = guest_new_stopped(MODERN, 64, 0);
	struct vdev *v = &g->dev;
	struct err err;
	static const unsigned bad[] = {0, 3, 63, 65536, 1u << 31};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(vdev_set_ring_size(v, VDEV_TX, bad[i], &err), -EINVAL);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, UVA + 8, UVA, UVA, &err), -EINVAL);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, UVA, UVA + 1, UVA, &err), -EINVAL);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, UVA, UVA, UVA + 2, &err), -EINVAL);
	vdev_ring_enable(v, VDEV_TX, true);
	vdev_ring_start(v, VDEV_TX);
	assert_int_equal(vdev_set_ring_size(v, VDEV_TX, 64, &err), -EBUSY);
	/* the same addresses again while it runs, and new ones that lead nowhere */
	const struct vdev_ring r = v->ring[VDEV_TX];

	assert_int_equal(
		vdev_set_ring_addr(v, VDEV_TX, r.desc_uva, r.avail_uva, r.used_uva, &err), 0);
	assert_int_equal(vdev_set_ring_addr(v, VDEV_TX, 0, r.avail_uva, r.used_uva, &err), -EINVAL);
	assert_int_equal(v->ring[VDEV_TX].desc_uva, r.desc_uva);
	assert_null(v->broken);
	guest_free(g);
}

static void memory_changes(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0), *b = guest_new(MODERN, 16, 0);
	uint8_t *old = b->mem;
	static struct packet p;

	guest_post_each(b, 2048, 4);
	guest_send(a, 60);
	guest_send(a, 60);
	assert_int_equal(a->dev.port.ops->pull(portq_of(a), &burst, 1), 1);
	assert_int_equal(b->dev.port.ops->push(portq_of(b), burst.f, 1), 1);
	a->dev.port.ops->settle(portq_of(a), &burst, 1);
	/* not flushed: the change must leave nothing behind in the old memory */
	vdev_mem_begin(&b->dev);
	assert_int_equal(b->rx.used->idx, 1);
	b->mem = aligned_alloc(4096, SIZE);
	memcpy(b->mem, old, SIZE);
	memset(old, 0xdd, SIZE);
	gmem_fini(&b->dev.mem);
	gmem_init(&b->dev.mem);
	assert_int_equal(gmem_add(&b->dev.mem, GPA, UVA, SIZE, b->mem, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct ring_sim *s = i ? &b->tx : &b->rx;

		s->desc = (void *)(b->mem + ((uint8_t *)s->desc - old));
		s->avail = (void *)(b->mem + ((uint8_t *)s->avail - old));
		s->used = (void *)(b->mem + ((uint8_t *)s->used - old));
		s->table = (void *)(b->mem + ((uint8_t *)s->table - old));
	}
	free(old);
	vdev_mem_end(&b->dev);
	assert_true(b->dev.port.link);
	assert_int_equal(carry(a, b), 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(guest_receive(b, &p));
		packet_check(&p, i);
	}

	/* now the rings' memory goes */
	vdev_mem_begin(&b->dev);
	gmem_fini(&b->dev.mem);
	gmem_init(&b->dev.mem);
	vdev_mem_end(&b->dev);
	guest_send(a, 60);
	assert_int_equal(carry(a, b), 0);
	loop_dispatch(&loop, false);
	assert_string_equal(b->dev.broken, "the memory of the ring was taken away");
	assert_int_equal(b->broke, 1);
	assert_int_equal(vdev_ring_stop(&b->dev, VDEV_RX), 2);
	guest_free(a);
	guest_free(b);
}

/* features, configuration, announcements */

static void features(void **state)
{
	(void)state;
	struct vdev_config c = {
		.mac = {2, 1, 2, 3, 4, 5}, .mtu = 9000, .off = B(CSUM) | B(MRG_RXBUF)};
	struct vdev *v = calloc(1, sizeof(*v));
	struct err err;

	vdev_init(v, "guest", &c, &loop, NULL);
	assert_int_equal(v->offered,
		vnet_features_all() & ~(B(CSUM) | B(MRG_RXBUF) | B(HOST_TSO4) | B(HOST_TSO6) |
					      B(HOST_ECN) | B(HOST_USO)));
	assert_int_equal(vdev_set_features(v, v->offered, &err), 0);
	assert_int_equal(v->port.accepts, ACCEPT_ALL);
	assert_int_equal(v->port.mtu, 9000);
	assert_int_equal(v->hdr_len, 12);
	assert_int_equal(vdev_set_features(v, B(VERSION_1) | B(CSUM), &err), -EINVAL);
	assert_non_null(strstr(err.text, "not offered: csum"));
	assert_int_equal(vdev_set_features(v, UINT64_C(1) << 17, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bit17"));
	assert_int_equal(v->features, v->offered); /* a refusal changes nothing */
	assert_int_equal(vdev_set_features(v, B(GUEST_TSO4), &err), 0);
	assert_int_equal(v->features, 0); /* nothing without what it needs */
	assert_int_equal(vdev_set_features(v, B(GUEST_CSUM) | B(GUEST_ECN), &err), 0);
	assert_int_equal(v->features, B(GUEST_CSUM));
	assert_int_equal(
		vdev_set_features(v, B(GUEST_CSUM), &err), 0); /* G4: a subset works, too */
	assert_int_equal(v->hdr_len, 10);
	assert_int_equal(v->port.accepts, ACCEPT_CSUM);
	assert_int_equal(v->port.mtu, 0); /* not acknowledged: none known */

	assert_int_equal(vdev_set_mtu(v, 67, &err), -EINVAL);
	assert_int_equal(vdev_set_mtu(v, 65536, &err), -EINVAL);
	assert_int_equal(vdev_set_mtu(v, UINT64_C(1) << 32 | 1500, &err), -EINVAL);
	assert_int_equal(vdev_set_mtu(v, 1400, &err), 0);
	assert_int_equal(v->port.mtu, 1400);
	vdev_fini(v);
	free(v);
}

static void configuration(void **state)
{
	(void)state;
	struct vdev_config c = {.mac = {2, 1, 2, 3, 4, 5}, .mtu = 9000};
	struct vdev *v = calloc(1, sizeof(*v));
	const uint8_t want[12] = {2, 1, 2, 3, 4, 5, 1, 0, 1, 0, 0x28, 0x23};
	uint8_t got[16];

	vdev_init(v, "guest", &c, &loop, NULL);
	assert_int_equal(vdev_config_read(v, 0, 12, got), 0);
	assert_memory_equal(got, want, 12);
	for (unsigned at = 0; at <= 14; at++) {
		for (unsigned n = 0; n <= 14; n++) {
			memset(got, 0xaa, sizeof(got));
			assert_int_equal(
				vdev_config_read(v, at, n, got), at + n <= 12 ? 0 : -EINVAL);
			if (at + n <= 12)
				assert_memory_equal(got, want + at, n);
			assert_int_equal(got[at + n <= 12 ? n : 0], 0xaa);
		}
	}
	assert_int_equal(vdev_config_read(v, UINT32_MAX, 2, got), -EINVAL);
	vdev_fini(v);
	free(v);
}

static void announcement(void **state)
{
	(void)state;
	struct guest *a = guest_new(MODERN, 16, 0);
	struct portq *q = portq_of(a);
	const struct port_ops *ops = q->port->ops;
	struct told told = {0};
	const uint8_t mac[6] = {2, 9, 8, 7, 6, 5};

	a->dev.port.events = &events;
	a->dev.port.events_ctx = &told;
	assert_false(ops->arm(q));
	vdev_send_rarp(&a->dev, mac);
	assert_int_equal(told.ready, 1);
	assert_true(ops->arm(q));
	guest_send(a, 60);
	guest_send(a, 60);
	for (unsigned i = 0; i < 2; i++) { /* nothing finished: it comes again */
		assert_int_equal(ops->pull(q, &burst, 2), 2);
		assert_int_equal(burst.f[0].head_len, 60);
		assert_int_equal(burst.f[0].drop, DROP_NONE);
		assert_int_equal(burst.f[0].head[0], 0xff);
		assert_memory_equal(burst.f[0].head + 6, mac, 6);
		assert_int_equal(burst.f[0].head[12] << 8 | burst.f[0].head[13], 0x8035);
		assert_memory_equal(burst.f[0].head + 22, mac, 6);
		assert_int_equal(burst.f[1].head[4], stamp(0, 4));
		ops->settle(q, &burst, 0);
		assert_int_equal(a->dev.vq[VDEV_TX].last_avail, 0);
	}
	assert_int_equal(ops->pull(q, &burst, 64), 3);
	ops->settle(q, &burst, 2); /* the announcement and one chain */
	assert_int_equal(ring_sim_pending(&a->tx), 1);
	assert_int_equal(ops->pull(q, &burst, 64), 1);
	ops->settle(q, &burst, 1);
	assert_int_equal(ring_sim_pending(&a->tx), 2);
	guest_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_rings),
		cmocka_unit_test(break_in_arm),
		cmocka_unit_test(memory_truncated),
		cmocka_unit_test(states),
		cmocka_unit_test(starts_without_a_ring),
		cmocka_unit_test(ring_values),
		cmocka_unit_test(memory_changes),
		cmocka_unit_test(features),
		cmocka_unit_test(configuration),
		cmocka_unit_test(announcement),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
