/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "port/vhost_msg.h"

static const struct {
	uint32_t request, size;
	unsigned min_fds, max_fds;
	bool reply;
} good[] = {
	{VHOST_USER_GET_FEATURES, 0, 0, 0, true},
	{VHOST_USER_SET_FEATURES, 8, 0, 0, false},
	{VHOST_USER_SET_OWNER, 0, 0, 0, false},
	{VHOST_USER_RESET_OWNER, 0, 0, 0, false},
	{VHOST_USER_SET_VRING_NUM, 8, 0, 0, false},
	{VHOST_USER_SET_VRING_ADDR, 40, 0, 0, false},
	{VHOST_USER_SET_VRING_BASE, 8, 0, 0, false},
	{VHOST_USER_GET_VRING_BASE, 8, 0, 0, true},
	{VHOST_USER_SET_VRING_KICK, 8, 1, 1, false},
	{VHOST_USER_SET_VRING_CALL, 8, 1, 1, false},
	{VHOST_USER_SET_VRING_ERR, 8, 1, 1, false},
	{VHOST_USER_GET_PROTOCOL_FEATURES, 0, 0, 0, true},
	{VHOST_USER_SET_PROTOCOL_FEATURES, 8, 0, 0, false},
	{VHOST_USER_GET_QUEUE_NUM, 0, 0, 0, true},
	{VHOST_USER_SET_VRING_ENABLE, 8, 0, 0, false},
	{VHOST_USER_SEND_RARP, 8, 0, 0, false},
	{VHOST_USER_NET_SET_MTU, 8, 0, 0, false},
	{VHOST_USER_SET_BACKEND_REQ_FD, 0, 1, 1, false},
	{VHOST_USER_RESET_DEVICE, 0, 0, 0, false},
	{VHOST_USER_GET_MAX_MEM_SLOTS, 0, 0, 0, true},
	{VHOST_USER_ADD_MEM_REG, 40, 1, 1, false},
	{VHOST_USER_REM_MEM_REG, 40, 0, 1, false},
	{VHOST_USER_SET_STATUS, 8, 0, 0, false},
	{VHOST_USER_GET_STATUS, 0, 0, 0, true},
};

static struct vhost_user_msg message(uint32_t request, uint32_t size)
{
	struct vhost_user_msg m;

	memset(&m, 0, sizeof(m));
	m.hdr = (struct vhost_user_hdr){request, VHOST_USER_VERSION, size};
	return m;
}

static void fixed_sizes_and_descriptors(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct vhost_user_msg m = message(good[i].request, good[i].size);

		assert_non_null(vhost_user_name(good[i].request));
		assert_int_equal(vhost_user_has_reply(good[i].request), good[i].reply);
		for (unsigned fds = 0; fds <= VHOST_USER_FDS_MAX; fds++) {
			const char *reason = vhost_user_check(&m, fds);

			if (fds >= good[i].min_fds && fds <= good[i].max_fds)
				assert_null(reason);
			else
				assert_non_null(reason);
		}
		for (uint32_t size = 0; size <= sizeof(m.u) + 1; size++) {
			m.hdr.size = size;
			if (size != good[i].size)
				assert_non_null(vhost_user_check(&m, good[i].min_fds));
		}
	}
}

static void ring_descriptor_may_be_absent(void **state)
{
	(void)state;
	for (uint32_t r = VHOST_USER_SET_VRING_KICK; r <= VHOST_USER_SET_VRING_ERR; r++) {
		struct vhost_user_msg m = message(r, 8);

		m.u.u64 = VHOST_USER_VRING_NOFD | 1;
		assert_null(vhost_user_check(&m, 0));
		assert_non_null(vhost_user_check(&m, 1));
	}
}

static void memory_table(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= VHOST_USER_MEM_REGIONS + 1; n++) {
		struct vhost_user_msg m = message(VHOST_USER_SET_MEM_TABLE, 8 + 32 * n);

		m.u.mem.n = n;
		if (n < 1 || n > VHOST_USER_MEM_REGIONS) {
			assert_non_null(vhost_user_check(&m, n));
			continue;
		}
		assert_null(vhost_user_check(&m, n));
		assert_non_null(vhost_user_check(&m, n - 1));
		assert_non_null(vhost_user_check(&m, n + 1));
		m.hdr.size += 8; /* more than its regions need: User-Mode Linux does so */
		assert_null(vhost_user_check(&m, n));
		m.hdr.size -= 8;
		m.hdr.size -= 1;
		assert_non_null(vhost_user_check(&m, n));
		m.hdr.size = 4;
		assert_non_null(vhost_user_check(&m, n));
		m.u.mem.n = 0x8000000; /* times 32 is 0 in 32 bits */
		m.hdr.size = 8;
		assert_non_null(vhost_user_check(&m, 0));
	}
}

static void configuration(void **state)
{
	struct vhost_user_msg m = message(VHOST_USER_GET_CONFIG, 12 + 6);

	(void)state;
	m.u.config.size = 6;
	assert_null(vhost_user_check(&m, 0));
	assert_true(vhost_user_has_reply(VHOST_USER_GET_CONFIG));
	assert_non_null(vhost_user_check(&m, 1));
	m.u.config.size = 7;
	assert_non_null(vhost_user_check(&m, 0));
	m.u.config.size = 0xfffffff4; /* plus 12 is 0 in 32 bits */
	m.hdr.size = 12;
	assert_non_null(vhost_user_check(&m, 0));
	m = message(VHOST_USER_SET_CONFIG, 12 + VHOST_USER_CONFIG_MAX);
	m.u.config.size = VHOST_USER_CONFIG_MAX;
	assert_null(vhost_user_check(&m, 0));
	m = message(VHOST_USER_SET_CONFIG, 12 + VHOST_USER_CONFIG_MAX + 1);
	m.u.config.size = VHOST_USER_CONFIG_MAX + 1;
	assert_non_null(vhost_user_check(&m, 0));
}

static void header(void **state)
{
	struct vhost_user_msg m = message(VHOST_USER_SET_OWNER, 0);

	(void)state;
	m.hdr.flags = VHOST_USER_VERSION | VHOST_USER_F_NEED_REPLY;
	assert_null(vhost_user_check(&m, 0));
	m.hdr.flags = VHOST_USER_VERSION | VHOST_USER_F_REPLY;
	assert_non_null(vhost_user_check(&m, 0));
	for (uint32_t version = 0; version < 4; version++) {
		m.hdr.flags = version;
		if (version != VHOST_USER_VERSION)
			assert_non_null(vhost_user_check(&m, 0));
	}
}

static void unknown_requests(void **state)
{
	static const uint32_t unknown[] = {0, 6, 7, 22, 23, 26, 33, 35, 41, 1000, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		struct vhost_user_msg m = message(unknown[i], 16);

		assert_null(vhost_user_name(unknown[i]));
		assert_false(vhost_user_has_reply(unknown[i]));
		assert_null(vhost_user_check(&m, 1));
		m.hdr.size = sizeof(m.u) + 1;
		assert_non_null(vhost_user_check(&m, 0));
	}
}

static void replies(void **state)
{
	struct vhost_user_hdr h = {VHOST_USER_GET_FEATURES, 5, 8};

	(void)state;
	assert_null(vhost_user_check_reply(&h, VHOST_USER_GET_FEATURES, 8));
	assert_non_null(vhost_user_check_reply(&h, VHOST_USER_GET_STATUS, 8));
	assert_non_null(vhost_user_check_reply(&h, VHOST_USER_GET_FEATURES, 4));
	h.flags |= VHOST_USER_F_NEED_REPLY; /* ours, left in */
	assert_null(vhost_user_check_reply(&h, VHOST_USER_GET_FEATURES, 8));
	for (uint32_t flags = 0; flags < 8; flags++) {
		h.flags = flags;
		assert_int_equal(
			!vhost_user_check_reply(&h, VHOST_USER_GET_FEATURES, 8), flags == 5);
	}
	h = (struct vhost_user_hdr){VHOST_USER_GET_FEATURES, 5, 0};
	assert_non_null(vhost_user_check_reply(&h, VHOST_USER_GET_FEATURES, 8));
	h.request = VHOST_USER_GET_CONFIG; /* refused */
	assert_null(vhost_user_check_reply(&h, VHOST_USER_GET_CONFIG, 24));
	h.size = 23;
	assert_non_null(vhost_user_check_reply(&h, VHOST_USER_GET_CONFIG, 24));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_sizes_and_descriptors),
		cmocka_unit_test(replies),
		cmocka_unit_test(ring_descriptor_may_be_absent),
		cmocka_unit_test(memory_table),
		cmocka_unit_test(configuration),
		cmocka_unit_test(header),
		cmocka_unit_test(unknown_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
