/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_rig: what the tests of the back-end session share: one port on one end of a socketpair, the
 * scripted front-end on the other, a loop in virtual time between them, and traffic.
 */
#ifndef PORT_VHOST_RIG_H
#define PORT_VHOST_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds_rig.h"
#include "port/vhost_be.h"
#include "port/vhost_sim.h"

#define ACK        VHOST_USER_F_NEED_REPLY
#define F_PROTOCOL (UINT64_C(1) << VHOST_USER_F_PROTOCOL_FEATURES)
#define FEATURES   (VNET_BIT(VERSION_1) | VNET_BIT(MRG_RXBUF) | VNET_BIT(STATUS) | F_PROTOCOL)

struct rig {
	struct loop loop;
	nsec_t now;
	struct port *port;
	struct vhost_sim fe;
	unsigned n_ready, n_link;
	struct burst burst;
};

static inline void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct rig *)ctx)->n_ready++;
}

static inline void on_room(void *ctx, struct portq *q)
{
	(void)ctx;
	(void)q;
}

static inline void on_link(void *ctx, struct port *p)
{
	(void)p;
	((struct rig *)ctx)->n_link++;
}

static const struct port_events events = {on_ready, on_room, on_link};
static const struct vdev_config device = {.mac = {2, 0, 0, 0, 0, 7}, .mtu = 9000};

static inline unsigned maps_of_guest(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "vhost-sim-memory") != NULL;
	fclose(f);
	return n;
}

static inline void connect_to(struct rig *r)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(vhost_be_open_fd(&r->port, "vm", &device, sv[0], &r->loop, NULL, NULL), 0);
	r->port->events = &events;
	r->port->events_ctx = r;
	r->fe.fd = sv[1];
}

static inline int setup(void **state)
{
	static struct rig rig;
	struct rig *r = &rig;

	memset(r, 0, sizeof(*r));
	assert_int_equal(loop_init(&r->loop, NULL), 0);
	evfd_prepare(&r->loop.evfd); /* has a descriptor, which stays */
	r->now = NSEC_PER_SEC;
	r->loop.virtual_now = &r->now;
	loop_refresh(&r->loop);
	assert_int_equal(vhost_sim_init(&r->fe, -1), 0);
	connect_to(r);
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;

	vhost_be_free(r->port);
	vhost_sim_fini(&r->fe);
	loop_fini(&r->loop);
	return 0;
}

static inline void spin(struct rig *r)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(loop_dispatch(&r->loop, false), 0);
}

static inline void steps(struct rig *r, enum vhost_sim_step first, enum vhost_sim_step last)
{
	assert_int_equal(vhost_sim_steps(&r->fe, first, last, FEATURES), 0);
	spin(r);
	spin(r);
}

static inline void send_fds(struct rig *r, uint32_t request, uint32_t flags, const void *payload,
	uint32_t size, const int *fds, unsigned nfds)
{
	assert_int_equal(vhost_sim_send(&r->fe, request, flags, payload, size, fds, nfds), 0);
	spin(r);
}

static inline void send_u64(struct rig *r, uint32_t request, uint32_t flags, uint64_t v)
{
	send_fds(r, request, flags, &v, sizeof(v), NULL, 0);
}

static inline struct vhost_user_msg reply(struct rig *r, uint32_t request)
{
	struct vhost_user_msg m;

	assert_int_equal(vhost_sim_recv(&r->fe, &m), 1);
	assert_int_equal(m.hdr.request, request);
	assert_int_equal(m.hdr.flags, VHOST_USER_VERSION | VHOST_USER_F_REPLY);
	return m;
}

static inline void silent(struct rig *r)
{
	struct vhost_user_msg m;

	assert_int_equal(vhost_sim_recv(&r->fe, &m), 0);
	assert_true(vhost_be_connected(r->port));
}

static inline uint64_t get_u64(struct rig *r, uint32_t request)
{
	struct vhost_user_msg m;

	send_fds(r, request, 0, NULL, 0, NULL, 0);
	m = reply(r, request);
	assert_int_equal(m.hdr.size, 8);
	return m.u.u64;
}

/* A request that wants to be acknowledged, and what was answered. */
static inline uint64_t ask_fds(struct rig *r, uint32_t request, const void *payload, uint32_t size,
	const int *fds, unsigned nfds)
{
	struct vhost_user_msg m;

	send_fds(r, request, ACK, payload, size, fds, nfds);
	m = reply(r, request);
	assert_int_equal(m.hdr.size, 8);
	return m.u.u64;
}

static inline uint64_t ask_u64(struct rig *r, uint32_t request, uint64_t v)
{
	return ask_fds(r, request, &v, sizeof(v), NULL, 0);
}

static inline uint64_t ask_state(struct rig *r, uint32_t request, uint32_t index, uint32_t num)
{
	uint32_t s[2] = {index, num};

	return ask_fds(r, request, s, sizeof(s), NULL, 0);
}

static inline uint32_t get_base(struct rig *r, uint32_t q)
{
	uint32_t s[2] = {q, 0};
	struct vhost_user_msg m;

	send_fds(r, VHOST_USER_GET_VRING_BASE, 0, s, sizeof(s), NULL, 0);
	m = reply(r, VHOST_USER_GET_VRING_BASE);
	assert_int_equal(m.hdr.size, 8);
	assert_int_equal(m.u.state.index, q);
	return m.u.state.num;
}

static inline const struct vdev_ring *ring_of(struct rig *r, unsigned q)
{
	return &vhost_be_vdev(r->port)->ring[q];
}

static inline bool signalled(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n);
}

/* traffic */

static inline void tx_add(struct rig *r, uint64_t gpa, uint8_t *host, uint8_t tag)
{
	struct ring_sim_buf b = {gpa, VNET_HDR_MAX + 60};

	memset(host, 0, VNET_HDR_MAX);
	memset(host + VNET_HDR_MAX, tag, 60);
	host[VNET_HDR_MAX] = 2;
	assert_true(ring_sim_add(&r->fe.ring[VDEV_TX], &b, 1, 0, false) >= 0);
	ring_sim_publish(&r->fe.ring[VDEV_TX]);
}

static inline void tx_expect(struct rig *r, uint8_t tag)
{
	struct burst *b = &r->burst;
	uint32_t id, len;

	assert_int_equal(port_pull(&r->port->q, b, BURST_FRAMES), 1);
	assert_int_equal(frame_len(&b->f[0]), 60);
	assert_int_equal(b->f[0].head[30], tag);
	r->port->ops->settle(&r->port->q, b, 1);
	r->port->ops->flush(&r->port->q);
	assert_true(ring_sim_get(&r->fe.ring[VDEV_TX], &id, &len));
}

static inline void transmit(struct rig *r, uint8_t tag)
{
	uint64_t one = 1;

	tx_add(r, VHOST_SIM_GPA + VHOST_SIM_BUFS, r->fe.mem + VHOST_SIM_BUFS, tag);
	assert_int_equal(write(r->fe.kick[VDEV_TX], &one, sizeof(one)), sizeof(one));
	r->n_ready = 0;
	spin(r);
	assert_true(r->n_ready > 0);
	tx_expect(r, tag);
}

static inline void receive(struct rig *r, uint8_t tag)
{
	struct ring_sim *ring = &r->fe.ring[VDEV_RX];
	struct ring_sim_buf buf = {VHOST_SIM_GPA + VHOST_SIM_BUFS + 4096, 2048};
	struct frame_head head;
	struct frame f = {.head = head.data, .head_len = 60};
	uint32_t id, len;

	assert_true(ring_sim_add(ring, &buf, 0, 1, false) >= 0);
	ring_sim_publish(ring);
	memset(head.data, tag, 60);
	assert_int_equal(r->port->ops->push(&r->port->q, &f, 1), 1);
	r->port->ops->flush(&r->port->q);
	assert_true(ring_sim_get(ring, &id, &len));
	assert_int_equal(len, VNET_HDR_MAX + 60);
	assert_int_equal(r->fe.mem[VHOST_SIM_BUFS + 4096 + VNET_HDR_MAX + 59], tag);
}

static inline void traffic(struct rig *r, uint8_t tag)
{
	assert_true(r->port->link);
	transmit(r, tag);
	receive(r, tag);
	assert_true(signalled(r->fe.call[VDEV_TX]));
	assert_true(signalled(r->fe.call[VDEV_RX]));
	assert_null(vhost_be_vdev(r->port)->broken);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
