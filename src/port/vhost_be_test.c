/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions as real front-ends lead them: order of messages, traffic, restart, memory, reset. */
#include "port/vhost_rig.h"

static void questions(void **state)
{
	struct rig *r = *state;
	uint64_t f = get_u64(r, VHOST_USER_GET_FEATURES);
	uint8_t ask[12 + 12] = {0, 0, 0, 0, 12};
	struct vhost_user_msg m;

	assert_int_equal(f, vhost_be_vdev(r->port)->offered | F_PROTOCOL);
	assert_true(f & VNET_BIT(VERSION_1));
	assert_int_equal(get_u64(r, VHOST_USER_GET_PROTOCOL_FEATURES), 0x1a23d);
	assert_int_equal(get_u64(r, VHOST_USER_GET_QUEUE_NUM), 1);
	assert_int_equal(get_u64(r, VHOST_USER_GET_MAX_MEM_SLOTS), GMEM_REGIONS);
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 0);

	send_fds(r, VHOST_USER_GET_CONFIG, 0, ask, sizeof(ask), NULL, 0);
	m = reply(r, VHOST_USER_GET_CONFIG);
	assert_int_equal(m.hdr.size, 12 + 12);
	assert_memory_equal(m.u.config.data, device.mac, 6);
	assert_int_equal(m.u.config.data[10] | m.u.config.data[11] << 8, 9000);
}

static void config_beyond_its_end(void **state)
{
	struct rig *r = *state;
	uint8_t ask[12 + 256] = {0};
	struct vhost_user_msg m;

	ask[0] = 8; /* offset */
	ask[4] = 16;
	send_fds(r, VHOST_USER_GET_CONFIG, 0, ask, 12 + 16, NULL, 0);
	m = reply(r, VHOST_USER_GET_CONFIG);
	assert_int_equal(m.hdr.size, 12 + 16);
	assert_int_equal(m.u.config.data[0], 1); /* pairs */
	for (unsigned i = 4; i < 16; i++)
		assert_int_equal(m.u.config.data[i], 0);

	ask[4] = 250; /* 8 + 250 > 256 */
	send_fds(r, VHOST_USER_GET_CONFIG, 0, ask, 12 + 250, NULL, 0);
	assert_int_equal(reply(r, VHOST_USER_GET_CONFIG).hdr.size, 0);
	ask[4] = 0;
	send_fds(r, VHOST_USER_GET_CONFIG, 0, ask, 12, NULL, 0);
	assert_int_equal(reply(r, VHOST_USER_GET_CONFIG).hdr.size, 0);
	memset(ask, 0xff, 4);
	ask[4] = 1;
	send_fds(r, VHOST_USER_GET_CONFIG, 0, ask, 12 + 1, NULL, 0);
	assert_int_equal(reply(r, VHOST_USER_GET_CONFIG).hdr.size, 0);
}

static void acknowledgement_is_negotiated(void **state)
{
	struct rig *r = *state;

	send_fds(r, VHOST_USER_SET_OWNER, ACK, NULL, 0, NULL, 0);
	silent(r);
	/* User-Mode Linux asks already with the message that negotiates it. */
	assert_int_equal(ask_u64(r, VHOST_USER_SET_PROTOCOL_FEATURES, 8), 0);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_OWNER, NULL, 0, NULL, 0), 0);
	assert_int_equal(ask_fds(r, VHOST_USER_RESET_OWNER, NULL, 0, NULL, 0), 0);
	/* a request with a reply of its own is answered once */
	send_fds(r, VHOST_USER_GET_QUEUE_NUM, ACK, NULL, 0, NULL, 0);
	reply(r, VHOST_USER_GET_QUEUE_NUM);
	silent(r);
}

static void handshake_and_traffic(void **state)
{
	struct rig *r = *state;

	steps(r, 0, VHOST_SIM_KICK1);
	assert_true(ring_of(r, 0)->started && ring_of(r, 1)->started);
	assert_false(r->port->link); /* until enabled */
	steps(r, VHOST_SIM_ENABLE0, VHOST_SIM_ENABLE1);
	assert_int_equal(r->n_link, 1);
	for (uint8_t i = 0; i < 200; i++) /* the rings wrap */
		traffic(r, i);
	assert_int_equal(ask_state(r, VHOST_USER_SET_VRING_ENABLE, 0, 0), 0);
	assert_false(r->port->link);
	assert_int_equal(ask_state(r, VHOST_USER_SET_VRING_ENABLE, 0, 1), 0);
	traffic(r, 7);
}

static void without_protocol_features_rings_are_enabled(void **state)
{
	struct rig *r = *state;

	assert_int_equal(vhost_sim_steps(&r->fe, VHOST_SIM_FEATURES, VHOST_SIM_KICK1,
				 FEATURES & ~F_PROTOCOL),
		0);
	spin(r);
	spin(r);
	traffic(r, 1);
}

/* As QEMU does: ENABLE, CALL and ERR before features and memory. */
static void enabled_before_anything(void **state)
{
	struct rig *r = *state;

	steps(r, VHOST_SIM_ENABLE0, VHOST_SIM_ENABLE1);
	steps(r, VHOST_SIM_CALL1, VHOST_SIM_ERR1);
	steps(r, 0, VHOST_SIM_KICK1);
	traffic(r, 1);
}

/* As User-Mode Linux does: features twice, the second time without the word on SET_VRING_ENABLE. */
static void features_twice(void **state)
{
	struct rig *r = *state;

	steps(r, VHOST_SIM_OWNER, VHOST_SIM_FEATURES);
	send_u64(r, VHOST_USER_SET_FEATURES, 0, FEATURES & ~F_PROTOCOL);
	steps(r, VHOST_SIM_MEMORY, VHOST_SIM_KICK1);
	traffic(r, 1);
	send_u64(r, VHOST_USER_SET_FEATURES, 0, FEATURES); /* while it runs */
	traffic(r, 2);
}

/* A ring starts when its last part arrives, whichever that is. */
static void parts_in_any_order(void **state)
{
	struct rig *r = *state;
	static const enum vhost_sim_step part[4][2] = {
		{VHOST_SIM_FEATURES, VHOST_SIM_FEATURES},
		{VHOST_SIM_MEMORY, VHOST_SIM_MEMORY},
		{VHOST_SIM_NUM1, VHOST_SIM_ADDR1},
		{VHOST_SIM_KICK1, VHOST_SIM_KICK1},
	};

	for (unsigned code = 0; code < 256; code++) {
		unsigned o[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};

		if ((1u << o[0] | 1u << o[1] | 1u << o[2] | 1u << o[3]) != 15)
			continue;
		for (unsigned i = 0; i < 4; i++) {
			assert_false(ring_of(r, VDEV_TX)->started);
			steps(r, part[o[i]][0], part[o[i]][1]);
		}
		assert_true(ring_of(r, VDEV_TX)->started);
		assert_null(vhost_be_vdev(r->port)->broken);
		vhost_be_free(r->port);
		vhost_sim_hang_up(&r->fe);
		connect_to(r);
	}
	steps(r, VHOST_SIM_KICK1, VHOST_SIM_KICK1);
	steps(r, VHOST_SIM_ADDR1, VHOST_SIM_ADDR1);
	steps(r, VHOST_SIM_FEATURES, VHOST_SIM_MEMORY);
	assert_false(ring_of(r, VDEV_TX)->started);
	steps(r, VHOST_SIM_NUM1, VHOST_SIM_NUM1);
	assert_true(ring_of(r, VDEV_TX)->started);
}

static void call_descriptor_may_be_a_socket(void **state)
{
	struct rig *r = *state;
	uint64_t one = 0;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	steps(r, 0, VHOST_SIM_ENABLE1);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_VRING_CALL, "\1\0\0\0\0\0\0", 8, &sv[1], 1), 0);
	close(sv[1]);
	assert_int_equal(recv(sv[0], &one, sizeof(one), MSG_DONTWAIT), 8); /* for what was lost */
	transmit(r, 1);
	one = 0;
	assert_int_equal(recv(sv[0], &one, sizeof(one), MSG_DONTWAIT), 8);
	assert_int_equal(one, 1);
	/* nobody reads: the socket fills up, we go on */
	for (unsigned i = 0; i < 3000; i++)
		transmit(r, 2);
	close(sv[0]); /* no SIGPIPE */
	transmit(r, 3);
	assert_true(vhost_be_connected(r->port));
}

static void call_descriptor_is_replaced(void **state)
{
	struct rig *r = *state;
	int fresh = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t arg = VDEV_RX;

	steps(r, 0, VHOST_SIM_ENABLE1);
	traffic(r, 1);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_VRING_CALL, &arg, 8, &fresh, 1), 0);
	assert_true(signalled(fresh));
	receive(r, 2);
	assert_true(signalled(fresh));
	assert_false(signalled(r->fe.call[VDEV_RX]));
	arg |= VHOST_USER_VRING_NOFD; /* none at all */
	assert_int_equal(ask_u64(r, VHOST_USER_SET_VRING_CALL, arg), 0);
	receive(r, 3);
	assert_false(signalled(fresh));
	close(fresh);
}

static void restart_goes_on_at_the_base(void **state)
{
	struct rig *r = *state;

	steps(r, 0, VHOST_SIM_ENABLE1);
	for (uint8_t i = 0; i < 5; i++)
		traffic(r, i);
	for (unsigned again = 0; again < 3; again++) {
		assert_int_equal(get_base(r, 0), 5 + again);
		assert_int_equal(get_base(r, 1), 5 + again);
		assert_false(r->port->link);
		/* stopped: a kick does nothing, asking again says the same */
		tx_add(r, VHOST_SIM_GPA + VHOST_SIM_BUFS, r->fe.mem + VHOST_SIM_BUFS, 9);
		assert_int_equal(eventfd_write(r->fe.kick[1], 1), 0);
		r->n_ready = 0;
		spin(r);
		assert_int_equal(r->n_ready, 0);
		assert_int_equal(get_base(r, 1), 5 + again);
		steps(r, VHOST_SIM_NUM0, VHOST_SIM_KICK0);
		steps(r, VHOST_SIM_NUM1, VHOST_SIM_ADDR1);
		assert_false(ring_of(r, 1)->started); /* the kick descriptor is gone, too */
		steps(r, VHOST_SIM_KICK1, VHOST_SIM_KICK1);
		assert_true(r->n_ready > 0); /* what came meanwhile is found */
		tx_expect(r, 9);
		receive(r, 9);
	}
}

/* As User-Mode Linux reloads its driver: new rings, no GET_VRING_BASE. */
static void driver_starts_anew_without_a_word(void **state)
{
	struct rig *r = *state;

	steps(r, 0, VHOST_SIM_ENABLE1);
	for (uint8_t i = 0; i < 5; i++)
		traffic(r, i);
	for (unsigned q = 0; q < 2; q++) {
		assert_int_equal(ask_state(r, VHOST_USER_SET_VRING_ENABLE, q, 0), 0);
	}
	/* the guest uses the memory of the disabled rings for other things */
	memset(r->fe.mem, 0x5a, VHOST_SIM_BUFS);
	steps(r, VHOST_SIM_FEATURES, VHOST_SIM_CALL0);
	for (unsigned i = 0; i < VHOST_SIM_BUFS; i++)
		assert_int_equal(r->fe.mem[i], 0x5a);
	assert_int_equal(vhost_sim_ring(&r->fe, 0, 0), 0);
	steps(r, VHOST_SIM_ERR0, VHOST_SIM_NUM0);
	assert_null(vhost_be_vdev(r->port)->broken);
	assert_int_equal(vhost_sim_ring(&r->fe, 1, 0), 0);
	assert_false(ring_of(r, 0)->started);
	steps(r, VHOST_SIM_BASE0, VHOST_SIM_ADDR0);
	assert_false(ring_of(r, 0)->started); /* the old kick descriptor is no go */
	steps(r, VHOST_SIM_KICK0, VHOST_SIM_ENABLE1);
	traffic(r, 9);
}

static void changes_while_running(void **state)
{
	struct rig *r = *state;

	steps(r, 0, VHOST_SIM_ENABLE1);
	traffic(r, 1);
	steps(r, VHOST_SIM_ADDR0, VHOST_SIM_ADDR0);
	steps(r, VHOST_SIM_ADDR1, VHOST_SIM_KICK1);
	steps(r, VHOST_SIM_FEATURES, VHOST_SIM_MEMORY);
	traffic(r, 2);
	assert_int_equal(ask_state(r, VHOST_USER_SET_VRING_BASE, 0, r->fe.ring[0].used_next), 0);
	traffic(r, 3);
	/* one back: the last frame comes again */
	assert_int_equal(
		ask_state(r, VHOST_USER_SET_VRING_BASE, 1, r->fe.ring[1].used_next - 1u), 0);
	assert_int_equal(port_pull(&r->port->q, &r->burst, BURST_FRAMES), 1);
	r->port->ops->settle(&r->port->q, &r->burst, 0);
}

/* A refusal leaves what runs as it was. */
static void refused_changes_leave_the_ring(void **state)
{
	struct rig *r = *state;
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {.desc = VHOST_SIM_UVA + 8, .used = VHOST_SIM_UVA, .avail = VHOST_SIM_UVA};
	static const unsigned sizes[] = {0, 3, 65536};

	steps(r, 0, VHOST_SIM_ENABLE1);
	traffic(r, 1);
	for (unsigned q = 0; q < 2; q++) {
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(ask_state(r, VHOST_USER_SET_VRING_NUM, q, sizes[i]), 1);
		assert_int_equal(ask_state(r, VHOST_USER_SET_VRING_BASE, q, 65536), 1);
		addr.index = q;
		assert_int_equal(
			ask_fds(r, VHOST_USER_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0), 1);
		assert_true(ring_of(r, q)->started);
	}
	traffic(r, 2);
}

static void ring_without_kicks_is_polled(void **state)
{
	struct rig *r = *state;

	steps(r, 0, VHOST_SIM_ADDR1);
	send_u64(r, VHOST_USER_SET_VRING_KICK, 0, VDEV_TX | VHOST_USER_VRING_NOFD);
	steps(r, VHOST_SIM_ENABLE0, VHOST_SIM_ENABLE1);
	tx_add(r, VHOST_SIM_GPA + VHOST_SIM_BUFS, r->fe.mem + VHOST_SIM_BUFS, 5);
	r->n_ready = 0;
	spin(r);
	assert_int_equal(r->n_ready, 0);
	r->now += NSEC_PER_MSEC;
	spin(r);
	assert_true(r->n_ready > 0);
	tx_expect(r, 5);
	get_base(r, VDEV_TX);
	r->now += NSEC_PER_MSEC;
	spin(r);
	assert_int_equal(loop_deadline(&r->loop), NSEC_NEVER); /* no timer for a stopped ring */
	send_u64(r, VHOST_USER_SET_VRING_KICK, 0, VDEV_TX | VHOST_USER_VRING_NOFD);
	assert_true(ring_of(r, VDEV_TX)->started);
	assert_int_equal(loop_deadline(&r->loop), r->now + NSEC_PER_MSEC);
	vhost_sim_hang_up(&r->fe);
	spin(r);
	assert_int_equal(loop_deadline(&r->loop), NSEC_NEVER);
}

/* memory */

static void memory_comes_and_goes(void **state)
{
	struct rig *r = *state;
	int fd = memfd_create("more", MFD_CLOEXEC);
	uint64_t reg[5] = {0, 0x80000000, 0x10000, 0x7f3300000000, 0};
	uint64_t ring_reg[5] = {0, VHOST_SIM_GPA, VHOST_SIM_LEN, VHOST_SIM_UVA, VHOST_SIM_OFF};
	uint8_t *mem;

	assert_int_equal(ftruncate(fd, 0x10000), 0);
	mem = mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(mem != MAP_FAILED);
	steps(r, 0, VHOST_SIM_ENABLE1);
	for (uint8_t i = 0; i < 10; i++) {
		traffic(r, i);
		assert_int_equal(ask_fds(r, VHOST_USER_ADD_MEM_REG, reg, 40, &fd, 1), 0);
		assert_int_equal(ask_fds(r, VHOST_USER_ADD_MEM_REG, reg, 40, &fd, 1), 1);
		tx_add(r, 0x80000100, mem + 0x100, i);
		tx_expect(r, i);
		assert_int_equal(ask_fds(r, VHOST_USER_REM_MEM_REG, ring_reg, 40, NULL, 0), 1);
		reg[2]--;
		assert_int_equal(ask_fds(r, VHOST_USER_REM_MEM_REG, reg, 40, &fd, 1), 1);
		reg[2]++;
		assert_int_equal(ask_fds(r, VHOST_USER_REM_MEM_REG, reg, 40, &fd, 1), 0);
		assert_true(signalled(r->fe.call[VDEV_TX]));
	}
	/* beyond the end of the file, and of the address space */
	reg[2] = 0x10001;
	assert_int_equal(ask_fds(r, VHOST_USER_ADD_MEM_REG, reg, 40, &fd, 1), 1);
	reg[2] = UINT64_MAX;
	assert_int_equal(ask_fds(r, VHOST_USER_ADD_MEM_REG, reg, 40, &fd, 1), 1);
	traffic(r, 77);
	munmap(mem, 0x10000);
	close(fd);
}

static void memory_table_is_replaced(void **state)
{
	struct rig *r = *state;
	struct {
		uint32_t n, padding;
		struct vhost_user_region r[2];
	} t = {2, 0,
		{{0, 4096, 0, 0}, {VHOST_SIM_GPA, VHOST_SIM_LEN, VHOST_SIM_UVA, VHOST_SIM_OFF}}};
	int two[2] = {r->fe.memfd, r->fe.memfd};

	steps(r, 0, VHOST_SIM_ENABLE1);
	traffic(r, 1);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_MEM_TABLE, &t, sizeof(t), two, 2), 0);
	assert_int_equal(vhost_be_vdev(r->port)->mem.n, 2);
	traffic(r, 2);
	/* a bad one changes nothing: overlap, missing descriptor */
	t.r[0].gpa = VHOST_SIM_GPA + 4096;
	assert_int_equal(ask_fds(r, VHOST_USER_SET_MEM_TABLE, &t, sizeof(t), two, 2), 1);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_MEM_TABLE, &t, sizeof(t), two, 1), 1);
	assert_int_equal(vhost_be_vdev(r->port)->mem.n, 2);
	assert_int_equal(maps_of_guest(), 3);
	traffic(r, 3);
}

static void memory_of_a_ring_is_taken(void **state)
{
	struct rig *r = *state;
	struct {
		uint32_t n, padding;
		struct vhost_user_region r;
	} t = {1, 0, {0, 4096, 0, 0}};
	struct vhost_user_hdr change = {0};
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	steps(r, 0, VHOST_SIM_ENABLE1);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0, &sv[1], 1), 0);
	close(sv[1]);
	assert_int_equal(ask_u64(r, VHOST_USER_SET_STATUS, 15), 0);
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 15);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_MEM_TABLE, &t, sizeof(t), &r->fe.memfd, 1), 0);
	spin(r);
	assert_false(r->port->link);
	assert_true(signalled(r->fe.err[VDEV_RX]) || signalled(r->fe.err[VDEV_TX]));
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 15 | 0x40);
	assert_int_equal(recv(sv[0], &change, sizeof(change), MSG_DONTWAIT), sizeof(change));
	assert_int_equal(change.request, 2);
	assert_int_equal(change.flags, VHOST_USER_VERSION);
	/* a reset heals it */
	assert_int_equal(ask_u64(r, VHOST_USER_SET_STATUS, 0), 0);
	assert_int_equal(vhost_sim_ring(&r->fe, 0, 0) | vhost_sim_ring(&r->fe, 1, 0), 0);
	steps(r, VHOST_SIM_FEATURES, VHOST_SIM_ENABLE1);
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 0);
	traffic(r, 1);
	/* the channel goes with the session */
	vhost_sim_hang_up(&r->fe);
	spin(r);
	assert_int_equal(recv(sv[0], &change, sizeof(change), MSG_DONTWAIT), 0);
	close(sv[0]);
}

/* device state */

static void resets(void **state)
{
	struct rig *r = *state;

	for (unsigned i = 0; i < 4; i++) {
		steps(r, i ? VHOST_SIM_FEATURES : 0, VHOST_SIM_ENABLE1);
		traffic(r, 1);
		assert_int_equal(i & 1 ? ask_fds(r, VHOST_USER_RESET_DEVICE, NULL, 0, NULL, 0)
				       : ask_u64(r, VHOST_USER_SET_STATUS, 0),
			0);
		assert_false(r->port->link);
		assert_false(ring_of(r, 0)->started || ring_of(r, 1)->started);
		assert_int_equal(vhost_be_vdev(r->port)->features, 0);
		assert_int_equal(vhost_sim_ring(&r->fe, 0, 0) | vhost_sim_ring(&r->fe, 1, 0), 0);
	}
}

static void features_ok(void **state)
{
	struct rig *r = *state;

	send_u64(r, VHOST_USER_SET_PROTOCOL_FEATURES, 0, 1 << VHOST_USER_PROTOCOL_F_STATUS);
	send_u64(r, VHOST_USER_SET_STATUS, 0, 3);
	send_u64(r, VHOST_USER_SET_STATUS, 0, 3 | 8); /* before any features */
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 3);
	send_u64(r, VHOST_USER_SET_FEATURES, 0, UINT64_C(1) << 17);
	send_u64(r, VHOST_USER_SET_STATUS, 0, 3 | 8);
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 3);
	send_u64(r, VHOST_USER_SET_STATUS, 0, 0);
	send_u64(r, VHOST_USER_SET_FEATURES, 0, FEATURES);
	send_u64(r, VHOST_USER_SET_STATUS, 0, 3 | 8);
	assert_int_equal(get_u64(r, VHOST_USER_GET_STATUS), 3 | 8);
}

static void mtu_and_rarp(void **state)
{
	struct rig *r = *state;
	struct burst *b = &r->burst;
	uint64_t mac = 0x554433221102; /* its first six bytes */

	steps(r, 0, VHOST_SIM_ENABLE1);
	assert_int_equal(ask_u64(r, VHOST_USER_NET_SET_MTU, 1400), 0);
	assert_int_equal(r->port->mtu, 1400);
	r->n_ready = 0;
	assert_int_equal(ask_u64(r, VHOST_USER_SEND_RARP, mac), 0);
	assert_true(r->n_ready > 0);
	assert_int_equal(port_pull(&r->port->q, b, BURST_FRAMES), 1);
	assert_int_equal(b->f[0].head[0], 0xff);
	assert_memory_equal(b->f[0].head + 6, &mac, 6);
	r->port->ops->settle(&r->port->q, b, 1);
	traffic(r, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(questions),
		T(config_beyond_its_end),
		T(acknowledgement_is_negotiated),
		T(handshake_and_traffic),
		T(without_protocol_features_rings_are_enabled),
		T(enabled_before_anything),
		T(features_twice),
		T(parts_in_any_order),
		T(call_descriptor_may_be_a_socket),
		T(call_descriptor_is_replaced),
		T(restart_goes_on_at_the_base),
		T(driver_starts_anew_without_a_word),
		T(changes_while_running),
		T(refused_changes_leave_the_ring),
		T(ring_without_kicks_is_polled),
		T(memory_comes_and_goes),
		T(memory_table_is_replaced),
		T(memory_of_a_ring_is_taken),
		T(resets),
		T(features_ok),
		T(mtu_and_rarp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
