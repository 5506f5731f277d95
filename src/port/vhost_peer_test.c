/* SPDX-License-Identifier: BSD-2-Clause */
/* Front-ends that lie, trickle, do not read, or die: every refusal, death at every byte. */
#include "port/vhost_rig.h"

#include <fcntl.h>
#include <poll.h>

#include "base/linger_rig.h"

#define HANGS_IN  20 /* seconds: instead of for ever */
#define LINGERING 40

/* refusals */

static const uint64_t queue_2 = 2, nofd_2 = 2 | VHOST_USER_VRING_NOFD,
		      not_offered = UINT64_C(1) << 60, mtu_small = 20, bad_status = 256;
static const uint32_t num_0[2] = {0, 0}, num_odd[2] = {0, 48}, num_huge[2] = {0, 65536},
		      state_2[2] = {2, 64}, state_max[2] = {UINT32_MAX, 64},
		      base_big[2] = {0, 65536}, enable_2[2] = {0, 2};
static const uint64_t addr_odd[5] = {0, VHOST_SIM_UVA + 8, VHOST_SIM_UVA, VHOST_SIM_UVA},
		      addr_2[5] = {2, VHOST_SIM_UVA, VHOST_SIM_UVA, VHOST_SIM_UVA};
static const uint32_t set_config[4] = {0, 1, 0, 0};
static const uint64_t no_region[5] = {0, 1, 2, 3, 4};

static const struct refusal {
	uint32_t request, size;
	const void *payload;
	bool mild; /* goes on where no acknowledgement was asked for */
} refusals[] = {
	{VHOST_USER_SET_FEATURES, 8, &not_offered, false},
	{VHOST_USER_SET_FEATURES, 4, &not_offered, false},
	{VHOST_USER_SET_PROTOCOL_FEATURES, 8, &not_offered, false},
	{VHOST_USER_SET_VRING_NUM, 8, num_0, false},
	{VHOST_USER_SET_VRING_NUM, 8, num_odd, false},
	{VHOST_USER_SET_VRING_NUM, 8, num_huge, false},
	{VHOST_USER_SET_VRING_NUM, 8, state_2, false},
	{VHOST_USER_SET_VRING_NUM, 8, state_max, false},
	{VHOST_USER_SET_VRING_BASE, 8, state_2, false},
	{VHOST_USER_SET_VRING_BASE, 8, state_max, false},
	{VHOST_USER_SET_VRING_BASE, 8, base_big, false},
	{VHOST_USER_SET_VRING_ADDR, 40, addr_odd, false},
	{VHOST_USER_SET_VRING_ADDR, 40, addr_2, false},
	{VHOST_USER_SET_VRING_ENABLE, 8, state_2, false},
	{VHOST_USER_SET_VRING_ENABLE, 8, state_max, false},
	{VHOST_USER_SET_VRING_ENABLE, 8, enable_2, false},
	{VHOST_USER_SET_VRING_KICK, 8, &nofd_2, false},
	{VHOST_USER_SET_VRING_CALL, 8, &nofd_2, false},
	{VHOST_USER_SET_VRING_ERR, 8, &nofd_2, false},
	{VHOST_USER_SET_VRING_KICK, 8, num_0, false}, /* descriptor missing */
	{VHOST_USER_SET_MEM_TABLE, 8, num_0, false},
	{VHOST_USER_ADD_MEM_REG, 40, no_region, false},
	{VHOST_USER_REM_MEM_REG, 40, no_region, false},
	{VHOST_USER_SET_BACKEND_REQ_FD, 0, NULL, false},
	{VHOST_USER_SET_STATUS, 8, &bad_status, false},
	{VHOST_USER_NET_SET_MTU, 8, &mtu_small, true},
	{VHOST_USER_SEND_RARP, 4, &mtu_small, true},
	{VHOST_USER_SET_CONFIG, 13, set_config, true},
	{6, 16, no_region, true}, /* SET_LOG_BASE: not offered, unknown */
	{4711, 0, NULL, true},
};

static void refusals_are_answered(void **state)
{
	struct rig *r = *state;

	steps(r, 0, VHOST_SIM_ENABLE1);
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *f = &refusals[i];

		if (ask_fds(r, f->request, f->payload, f->size, NULL, 0) != 1)
			fail_msg("refusal %u of request %u was not refused", i, f->request);
	}
	/* one of them stopped the receive ring: the session is as good as before */
	steps(r, VHOST_SIM_FEATURES, VHOST_SIM_ENABLE1);
	traffic(r, 1);
}

static void refusals_end_the_session(void **state)
{
	struct rig *r = *state;
	unsigned fds = fds_open();

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *f = &refusals[i];

		steps(r, 0, VHOST_SIM_ENABLE1);
		send_fds(r, f->request, 0, f->payload, f->size, NULL, 0);
		if (vhost_be_connected(r->port) != f->mild)
			fail_msg("refusal %u of request %u", i, f->request);
		if (f->mild)
			silent(r);
		else
			assert_true(vhost_be_last_end(r->port)[0]);
		vhost_be_free(r->port);
		vhost_sim_hang_up(&r->fe);
		assert_int_equal(maps_of_guest(), 1);
		connect_to(r);
		fds_become(fds);
	}
}

static void ring_2_with_descriptors(void **state)
{
	struct rig *r = *state;
	unsigned fds;

	steps(r, 0, VHOST_SIM_PROTOCOL);
	fds = fds_open();
	for (uint32_t q = VHOST_USER_SET_VRING_KICK; q <= VHOST_USER_SET_VRING_ERR; q++)
		assert_int_equal(ask_fds(r, q, &queue_2, 8, r->fe.kick, 1), 1);
	fds_become(fds);
}

static void descriptors_too_many(void **state)
{
	struct rig *r = *state;
	int nine[9];
	unsigned fds;

	for (unsigned i = 0; i < 9; i++)
		nine[i] = r->fe.memfd;
	steps(r, 0, VHOST_SIM_PROTOCOL);
	fds = fds_open();
	for (uint32_t q = 1; q < VHOST_USER_REQUEST_MAX; q++) {
		uint8_t zero[40] = {0};
		struct vhost_user_msg m = {.hdr = {.request = q, .flags = VHOST_USER_VERSION}};

		if (!vhost_user_name(q) || vhost_user_has_reply(q))
			continue;
		while (m.hdr.size < 40 && vhost_user_check(&m, 0) && vhost_user_check(&m, 1))
			m.hdr.size++;
		assert_int_equal(ask_fds(r, q, zero, m.hdr.size, nine, 8), 1);
		fds_become(fds);
	}
	silent(r);
}

static void more_descriptors_than_fit(void **state)
{
	struct rig *r = *state;
	struct vhost_sim_msg m;
	struct vhost_user_msg answer;
	unsigned fds;

	steps(r, 0, VHOST_SIM_PROTOCOL);
	fds = fds_open();
	/* eight with the first byte, eight more with the second */
	m = vhost_sim_step(&r->fe, VHOST_SIM_MEMORY, 0);
	m.bytes[4] |= ACK;
	for (m.nfds = 0; m.nfds < 8; m.nfds++)
		m.fds[m.nfds] = r->fe.memfd;
	assert_int_equal(vhost_sim_send_part(&r->fe, &m, 0, 1), 0);
	spin(r);
	memmove(m.bytes, m.bytes + 1, m.len - 1);
	assert_int_equal(vhost_sim_send_part(&r->fe, &m, 0, m.len - 1), 0);
	spin(r);
	answer = reply(r, VHOST_USER_SET_MEM_TABLE);
	assert_int_equal(answer.u.u64, 1);
	fds_become(fds);
	assert_int_equal(maps_of_guest(), 1);
}

static void wild_descriptors_for_signals(void **state)
{
	struct rig *r = *state;
	uint64_t arg = 0;
	int p[2], sv[2];
	unsigned fds;

	steps(r, 0, VHOST_SIM_PROTOCOL);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	fds = fds_open();
	for (uint32_t q = VHOST_USER_SET_VRING_KICK; q <= VHOST_USER_SET_VRING_ERR; q++) {
		assert_int_equal(ask_fds(r, q, &arg, 8, &r->fe.memfd, 1), 1);
		assert_int_equal(ask_fds(r, q, &arg, 8, &p[1], 1), 1);
		assert_int_equal(ask_fds(r, q, &arg, 8, &r->loop.epfd, 1), 1);
	}
	assert_int_equal(ask_fds(r, VHOST_USER_SET_VRING_KICK, &arg, 8, &sv[0], 1), 1);
	assert_int_equal(ask_fds(r, VHOST_USER_SET_BACKEND_REQ_FD, NULL, 0, &p[0], 1), 1);
	fds_become(fds);
	close(p[0]);
	close(p[1]);
	close(sv[0]);
	close(sv[1]);
}

/* The flags and the count of an eventfd are shared with who gave it. */
static void full_signals_that_would_block(void **state)
{
	struct rig *r = *state;
	const uint64_t full = UINT64_MAX - 1;

	steps(r, 0, VHOST_SIM_ENABLE1);
	if (evfd_prepare(&r->loop.evfd)) {
		printf("no asynchronous I/O here (fs.aio-max-nr?)\n");
		skip();
	}
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		signalled(r->fe.call[q]);
		assert_int_equal(write(r->fe.call[q], &full, sizeof(full)), sizeof(full));
		assert_int_equal(fcntl(r->fe.call[q], F_SETFL, 0), 0);
	}
	alarm(HANGS_IN);
	for (uint8_t i = 0; i < 4; i++) {
		transmit(r, i);
		receive(r, i);
	}
	alarm(0);
	assert_true(signalled(r->fe.call[VDEV_TX]));
	assert_true(signalled(r->fe.call[VDEV_RX]));
}

/* Each is refused and its close() waits; so many of them end the session. */
static void descriptors_that_take_long_to_close(void **state)
{
	struct rig *r = *state;
	int reader[LINGERING], n;
	uint64_t arg = 0;

	steps(r, 0, VHOST_SIM_PROTOCOL);
	alarm(HANGS_IN);
	for (n = 0; n < LINGERING && vhost_be_connected(r->port); n++) {
		int fd = lingering(&reader[n]);

		assert_int_equal(
			vhost_sim_send(&r->fe, VHOST_USER_SET_VRING_CALL, ACK, &arg, 8, &fd, 1), 0);
		close(fd);
		spin(r);
	}
	assert_true(n > 8 && n < LINGERING);
	assert_non_null(strstr(vhost_be_last_end(r->port), "long to close"));
	while (n--)
		close(reader[n]);
	alarm(0);
}

static void headers_that_end_the_session(void **state)
{
	struct rig *r = *state;
	static const struct vhost_user_hdr bad[] = {
		{VHOST_USER_GET_FEATURES, 0, 0},
		{VHOST_USER_GET_FEATURES, 2, 0},
		{VHOST_USER_GET_FEATURES, VHOST_USER_VERSION | VHOST_USER_F_REPLY, 0},
		{VHOST_USER_SET_MEM_TABLE, VHOST_USER_VERSION, 281},
		{4711, VHOST_USER_VERSION, UINT32_MAX},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(send(r->fe.fd, &bad[i], sizeof(bad[i]), 0), sizeof(bad[i]));
		spin(r);
		assert_false(vhost_be_connected(r->port));
		assert_true(vhost_be_last_end(r->port)[0]);
		vhost_be_free(r->port);
		vhost_sim_hang_up(&r->fe);
		connect_to(r);
	}
}

static void base_of_no_queue(void **state)
{
	struct rig *r = *state;

	send_fds(r, VHOST_USER_GET_VRING_BASE, 0, state_2, 8, NULL, 0);
	assert_false(vhost_be_connected(r->port));
	assert_string_equal(vhost_be_last_end(r->port), "no such queue");
}

/* One sendmsg with nine: the kernel hands over eight and tells of the loss. */
static void descriptors_lost_on_the_way(void **state)
{
	struct rig *r = *state;
	struct {
		struct vhost_user_hdr hdr;
		uint32_t n, padding;
		struct vhost_user_region region[8];
	} __attribute__((packed))
	table = {.hdr = {VHOST_USER_SET_MEM_TABLE, VHOST_USER_VERSION | ACK, 8 + 8 * 32}, .n = 8};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(9 * sizeof(int))];
	} control = {.buf = {0}};
	struct iovec iov = {&table, sizeof(table)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf};
	struct cmsghdr *c = &control.align;
	unsigned fds;
	int n = 8;

	steps(r, 0, VHOST_SIM_PROTOCOL);
	fds = fds_open();
	for (uint64_t i = 0; i < 8; i++)
		table.region[i] =
			(struct vhost_user_region){i * 4096, 4096, i * 4096, VHOST_SIM_OFF};
	for (; n <= 9; n++) {
		*c = (struct cmsghdr){CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		for (int i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &r->fe.memfd, sizeof(int));
		assert_int_equal(sendmsg(r->fe.fd, &mh, 0), sizeof(table));
		spin(r);
		assert_int_equal(reply(r, VHOST_USER_SET_MEM_TABLE).u.u64, n > 8);
		fds_become(fds);
	}
}

/* a peer that dies, trickles, or does not read */

static void death_at_every_byte(void **state)
{
	struct rig *r = *state;
	uint32_t step = 0, at = 0;
	unsigned fds = fds_open(), n = 0;

	for (;; n++) {
		struct vhost_sim_msg m;

		if (step)
			assert_int_equal(vhost_sim_steps(&r->fe, 0, step - 1, FEATURES), 0);
		m = vhost_sim_step(&r->fe, step, FEATURES);
		assert_int_equal(vhost_sim_send_part(&r->fe, &m, 0, at), 0);
		spin(r);
		spin(r);
		assert_true(vhost_be_connected(r->port));
		vhost_sim_hang_up(&r->fe);
		spin(r);
		assert_false(vhost_be_connected(r->port));
		assert_false(r->port->link);
		assert_int_equal(vhost_be_vdev(r->port)->mem.n, 0);
		assert_int_equal(maps_of_guest(), 1);
		fds_become(fds - 2);
		vhost_be_free(r->port);
		connect_to(r);
		if (at < m.len) {
			at++;
		} else if (step + 1 < VHOST_SIM_STEPS) {
			step++;
			at = 0;
		} else {
			break;
		}
	}
	assert_true(n > 400);
}

static void trickled_bytes(void **state)
{
	struct rig *r = *state;

	for (unsigned i = 0; i < VHOST_SIM_STEPS; i++) {
		struct vhost_sim_msg m = vhost_sim_step(&r->fe, i, FEATURES);

		for (uint32_t at = 0; at < m.len; at++) {
			assert_int_equal(vhost_sim_send_part(&r->fe, &m, at, at + 1), 0);
			assert_int_equal(loop_dispatch(&r->loop, false), 0);
		}
	}
	traffic(r, 1);
}

static void replies_nobody_reads(void **state)
{
	struct rig *r = *state;
	struct vhost_user_msg m;
	unsigned sent = 0, got = 0;
	int e, patience = 0;

	do { /* several at once, so that room ends in the middle of a round */
		for (unsigned i = 0; i < 8; i++) {
			e = vhost_sim_send(&r->fe, VHOST_USER_GET_FEATURES, 0, NULL, 0, NULL, 0);
			sent += !e;
		}
		patience = e ? patience + 1 : 0;
		spin(r);
	} while (patience < 10);
	assert_true(sent > 100);
	assert_true(vhost_be_connected(r->port));
	for (patience = 0; patience < 100; patience++) {
		while ((e = vhost_sim_recv(&r->fe, &m)) == 1) {
			assert_int_equal(m.hdr.request, VHOST_USER_GET_FEATURES);
			got++;
			patience = 0;
		}
		assert_int_equal(e, 0);
		spin(r);
	}
	assert_int_equal(got, sent);
	/* and one that dies instead of reading */
	do {
		e = vhost_sim_send(&r->fe, VHOST_USER_GET_FEATURES, 0, NULL, 0, NULL, 0);
		patience = e ? patience + 1 : 0;
		spin(r);
	} while (patience < 10);
	vhost_sim_hang_up(&r->fe);
	spin(r);
	assert_false(vhost_be_connected(r->port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(refusals_are_answered),
		T(refusals_end_the_session),
		T(ring_2_with_descriptors),
		T(descriptors_too_many),
		T(more_descriptors_than_fit),
		T(descriptors_lost_on_the_way),
		T(wild_descriptors_for_signals),
		T(full_signals_that_would_block),
		T(descriptors_that_take_long_to_close),
		T(headers_that_end_the_session),
		T(base_of_no_queue),
		T(death_at_every_byte),
		T(trickled_bytes),
		T(replies_nobody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
