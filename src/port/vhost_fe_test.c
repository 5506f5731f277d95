/* SPDX-License-Identifier: BSD-2-Clause */
/* The front-end's session with our own back-end, both on one loop: it comes up, works, comes again. */
#include <errno.h>

#include "port/vhost_be.h"
#include "port/vhost_fe_rig.h"

static struct port *port; /* the other end; its state is part of what is looked at */
static unsigned n_ready;
static struct burst burst;

static void on_ready(void *ctx, struct portq *q)
{
	(void)ctx;
	(void)q;
	n_ready++;
}

static void on_room(void *ctx, struct portq *q)
{
	(void)ctx;
	(void)q;
}

static void on_link(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events port_events = {on_ready, on_room, on_link};

static void be_open(struct rig *r, bool server, uint64_t off)
{
	struct vhost_be_config c = {
		.path = r->path,
		.server = server,
		.mode = 0600,
		.group = (gid_t)-1,
		.dev = {.mac = {2, 0, 0, 0, 0, 7}, .mtu = 9000, .off = off},
	};

	assert_int_equal(vhost_be_open(&port, "vm", &c, &r->loop, NULL, NULL), 0);
	port->events = &port_events;
}

static void be_free(void)
{
	vhost_be_free(port);
	port = NULL;
}

static int setup(void **state)
{
	n_ready = 0;
	return fe_setup(state);
}

static int teardown(void **state)
{
	struct rig *r = *state;

	be_free();
	vhost_fe_close(r->fe);
	r->fe = NULL;
	return fe_teardown(state);
}

static void settle(struct rig *r)
{
	for (int i = 0; i < 30; i++)
		spin(r);
}

/* traffic */

static void transmit(struct rig *r, uint8_t tag)
{
	struct ring_sim_buf b = {(uintptr_t)r->mem + BUFS_AT, VNET_HDR_MAX + 60};
	unsigned calls = r->n_call[1];
	uint32_t id, len;

	memset(r->mem + BUFS_AT, 0, VNET_HDR_MAX);
	memset(r->mem + BUFS_AT + VNET_HDR_MAX, tag, 60);
	r->mem[BUFS_AT + VNET_HDR_MAX] = 2;
	assert_true(ring_sim_add(&r->ring[1], &b, 1, 0, false) >= 0);
	ring_sim_publish(&r->ring[1]);
	n_ready = 0;
	vhost_fe_kick(r->fe, 1);
	spin(r);
	assert_true(n_ready > 0);
	assert_int_equal(port_pull(&port->q, &burst, BURST_FRAMES), 1);
	assert_int_equal(frame_len(&burst.f[0]), 60);
	assert_int_equal(burst.f[0].head[30], tag);
	port->ops->settle(&port->q, &burst, 1);
	port->ops->flush(&port->q);
	spin(r);
	assert_true(r->n_call[1] > calls);
	assert_true(ring_sim_get(&r->ring[1], &id, &len));
}

static void post(struct rig *r)
{
	struct ring_sim_buf b = {(uintptr_t)r->mem + BUFS_AT + 4096, 2048};

	assert_true(ring_sim_add(&r->ring[0], &b, 0, 1, false) >= 0);
	ring_sim_publish(&r->ring[0]);
}

static void receive(struct rig *r, uint8_t tag)
{
	struct frame_head head;
	struct frame f = {.head = head.data, .head_len = 60};
	unsigned calls = r->n_call[0];
	uint32_t id, len;

	post(r);
	memset(head.data, tag, 60);
	assert_int_equal(port->ops->push(&port->q, &f, 1), 1);
	port->ops->flush(&port->q);
	spin(r);
	assert_true(r->n_call[0] > calls);
	assert_true(ring_sim_get(&r->ring[0], &id, &len));
	assert_int_equal(len, VNET_HDR_MAX + 60);
	assert_int_equal(r->mem[BUFS_AT + 4096 + VNET_HDR_MAX + 59], tag);
}

static void traffic(struct rig *r, unsigned n)
{
	assert_true(vhost_fe_up(r->fe));
	assert_true(port->link);
	for (unsigned i = 0; i < n; i++) {
		transmit(r, (uint8_t)i);
		receive(r, (uint8_t)~i);
	}
	assert_null(vhost_be_vdev(port)->broken);
}

static void start(struct rig *r)
{
	struct vhost_fe_config c = fe_config(r);

	be_open(r, true, 0);
	fe_open(r, &c);
	settle(r);
}

static void connects_and_works(void **state)
{
	struct rig *r = *state;
	uint8_t mac[6] = {0};

	start(r);
	assert_int_equal(r->n_rings, 1);
	assert_int_equal(r->n_up, 1);
	assert_int_equal(r->features, WANT);
	assert_int_equal(vhost_be_vdev(port)->features, WANT);
	assert_true(vhost_fe_mac(r->fe, mac));
	assert_memory_equal(mac, "\2\0\0\0\0\7", 6);
	assert_int_equal(vhost_fe_mtu(r->fe), 9000);
	assert_int_equal(maps_of_guest(), 2);
	traffic(r, 200); /* the rings wrap */
	assert_int_equal(r->n_down, 0);
	assert_int_equal(loop_deadline(&r->loop), NSEC_NEVER); /* nothing ticks while it works */
}

static void listens_and_works(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);

	c.server = true;
	fe_open(r, &c);
	for (unsigned i = 0; i < 3; i++) {
		be_open(r, false, 0);
		settle(r);
		traffic(r, 5);
		be_free();
		settle(r);
		assert_int_equal(r->n_down, i + 1);
		assert_string_equal(r->reason, "the back-end hung up");
	}
}

static void mtu_is_told(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);

	c.mtu = 1400;
	be_open(r, true, 0);
	fe_open(r, &c);
	settle(r);
	traffic(r, 1);
	assert_int_equal(port->mtu, 1400);
}

static void bad_mtu_is_refused(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);

	c.mtu = 20;
	be_open(r, true, 0);
	fe_open(r, &c);
	settle(r);
	assert_int_equal(r->n_rings, 0);
	assert_string_equal(vhost_fe_last_end(r->fe), "the back-end refused NET_SET_MTU");
}

static void features_are_the_common_ones(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);
	uint8_t mac[6];

	/* without csum no device can take tso, whatever else we want */
	c.want |= VNET_BIT(CSUM) | VNET_BIT(HOST_TSO4) | UINT64_C(1) << 40;
	be_open(r, true, VNET_BIT(CSUM) | VNET_BIT(MRG_RXBUF) | VNET_BIT(MTU));
	fe_open(r, &c);
	settle(r);
	traffic(r, 1);
	assert_int_equal(r->features, VNET_BIT(VERSION_1) | VNET_BIT(MAC));
	assert_int_equal(vhost_fe_mtu(r->fe), 0);
	assert_true(vhost_fe_mac(r->fe, mac));
}

static void missing_feature_is_named(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);

	c.need |= VNET_BIT(MRG_RXBUF) | VNET_BIT(INDIRECT_DESC);
	be_open(r, true, VNET_BIT(MRG_RXBUF));
	fe_open(r, &c);
	settle(r);
	assert_int_equal(r->n_rings + r->n_down, 0);
	assert_string_equal(vhost_fe_last_end(r->fe),
		"the back-end lacks a needed feature: mrg_rxbuf indirect_desc");
	assert_false(vhost_be_connected(port));
}

static void driver_may_refuse(void **state)
{
	struct rig *r = *state;

	r->refuse = true;
	start(r);
	assert_int_equal(r->n_rings, 1);
	assert_int_equal(r->n_up + r->n_down, 0);
	assert_string_equal(vhost_fe_last_end(r->fe), "no memory for the rings of the test");
	r->refuse = false;
	r->n_rings = 0;
	pass(r, NSEC_PER_SEC);
	settle(r);
	traffic(r, 1);
}

static void waits_for_the_socket(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);
	nsec_t gap = 100 * NSEC_PER_MSEC;

	fe_open(r, &c);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(loop_deadline(&r->loop), r->now + gap);
		pass(r, 6 * NSEC_PER_SEC);
		gap = gap * 2 < 5 * NSEC_PER_SEC ? gap * 2 : 5 * NSEC_PER_SEC;
	}
	be_open(r, true, 0);
	pass(r, 6 * NSEC_PER_SEC);
	settle(r);
	traffic(r, 1);
}

/* What the driver had in its rings is set up again, wherever that begins. */
static void comes_again(void **state)
{
	struct rig *r = *state;

	start(r);
	for (unsigned i = 1; i <= 5; i++) {
		traffic(r, 3);
		be_free();
		settle(r);
		assert_int_equal(r->n_down, i);
		assert_false(vhost_fe_up(r->fe));
		vhost_fe_kick(r->fe, 0); /* into the void */
		fds_become(r->fds);
		r->base = (uint16_t)(65533 + i);
		be_open(r, true, 0);
		assert_int_equal(loop_deadline(&r->loop), r->now + 100 * NSEC_PER_MSEC);
		pass(r, NSEC_PER_SEC);
		settle(r);
		assert_int_equal(r->n_up, i + 1);
		assert_int_equal(vhost_be_vdev(port)->ring[0].base, r->base);
	}
	traffic(r, 100);
}

/* A buffer posted before the device works is found, however early the kick. */
static void posted_early(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);
	struct frame_head head = {.data = {2}};
	struct frame f = {.head = head.data, .head_len = 60};

	be_open(r, true, 0);
	fe_open(r, &c);
	for (unsigned i = 0; i < 200 && !r->n_rings; i++)
		assert_int_equal(loop_dispatch(&r->loop, false), 0);
	assert_int_equal(r->n_up, 0);
	post(r);
	vhost_fe_kick(r->fe, 0); /* too early: not said */
	settle(r);
	assert_int_equal(r->n_up, 1);
	assert_int_equal(port->ops->push(&port->q, &f, 1), 1);
	port->ops->flush(&port->q);
	spin(r);
	assert_int_equal(r->n_call[0], 1);
}

static void broken_ring_heals(void **state)
{
	struct rig *r = *state;

	start(r);
	traffic(r, 3);
	r->ring[1].avail->idx = (uint16_t)(r->ring[1].avail->idx + RING_SIZE + 1);
	vhost_fe_kick(r->fe, 1);
	spin(r);
	port_pull(&port->q, &burst, BURST_FRAMES);
	settle(r);
	assert_int_equal(r->n_down, 1);
	assert_string_equal(r->reason, "the back-end says that a ring is broken");
	pass(r, NSEC_PER_SEC);
	settle(r);
	traffic(r, 3);
}

static void driver_leaves_a_liar(void **state)
{
	struct rig *r = *state;

	start(r);
	vhost_fe_end(r->fe, "used index jumped");
	assert_string_equal(r->reason, "used index jumped");
	assert_int_equal(r->n_down, 1);
	vhost_fe_end(r->fe, "nothing happens twice");
	assert_int_equal(r->n_down, 1);
	pass(r, NSEC_PER_SEC);
	settle(r);
	traffic(r, 3);
}

/* A call that comes before the device is known to work is not lost. */
static void early_call(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);
	struct frame_head head = {.data = {2}};
	struct frame f = {.head = head.data, .head_len = 60};

	be_open(r, true, 0);
	fe_open(r, &c);
	for (unsigned i = 0; i < 400 && !port->link; i++) {
		if (r->n_rings && !ring_sim_pending(&r->ring[0]) && r->ring[0].avail_next == 0)
			post(r);
		assert_int_equal(loop_dispatch(&r->loop, false), 0);
	}
	assert_int_equal(r->n_up, 0);
	assert_int_equal(port->ops->push(&port->q, &f, 1), 1);
	port->ops->flush(&port->q);
	assert_int_equal(r->n_call[0], 0);
	settle(r);
	assert_int_equal(r->n_up, 1);
	assert_int_equal(r->n_call[0], 1);
}

static void close_stops_the_device(void **state)
{
	struct rig *r = *state;

	start(r);
	traffic(r, 1);
	vhost_fe_close(r->fe);
	r->fe = NULL;
	settle(r);
	assert_int_equal(r->n_down, 0);
	assert_false(vhost_be_connected(port));
	assert_int_equal(maps_of_guest(), 1);
}

static void open_says_what_is_wrong(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r), bad;
	struct vhost_fe *fe = NULL;
	struct err err;
	char longer[200];
	int pipes[2];

	bad = c;
	bad.mem_len = MEM_LEN + 1;
	assert_int_equal(
		vhost_fe_open(&fe, "x", &bad, &fe_events, r, &r->loop, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "1048576 bytes, 1048577 are to be shared"));
	bad = c;
	bad.mem_fd = -1;
	assert_int_equal(
		vhost_fe_open(&fe, "x", &bad, &fe_events, r, &r->loop, NULL, &err), -EBADF);
	assert_int_equal(pipe(pipes), 0);
	bad.mem_fd = pipes[0];
	assert_int_equal(
		vhost_fe_open(&fe, "x", &bad, &fe_events, r, &r->loop, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not shared memory"));
	close(pipes[0]);
	close(pipes[1]);
	bad = c;
	bad.mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, r->memfd, 0);
	assert_int_equal(
		vhost_fe_open(&fe, "x", &bad, &fe_events, r, &r->loop, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "MAP_SHARED"));
	munmap(bad.mem, MEM_LEN);
	bad = c;
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	bad.path = longer;
	assert_int_equal(
		vhost_fe_open(&fe, "x", &bad, &fe_events, r, &r->loop, NULL, &err), -ENAMETOOLONG);
	be_open(r, true, 0);
	bad = c;
	bad.server = true;
	assert_int_equal(
		vhost_fe_open(&fe, "x", &bad, &fe_events, r, &r->loop, NULL, &err), -EADDRINUSE);
	assert_null(fe);
	vhost_fe_close(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(connects_and_works),
		T(listens_and_works),
		T(mtu_is_told),
		T(bad_mtu_is_refused),
		T(features_are_the_common_ones),
		T(missing_feature_is_named),
		T(driver_may_refuse),
		T(waits_for_the_socket),
		T(comes_again),
		T(posted_early),
		T(broken_ring_heals),
		T(driver_leaves_a_liar),
		T(early_call),
		T(close_stops_the_device),
		T(open_says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
