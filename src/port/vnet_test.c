/* SPDX-License-Identifier: BSD-2-Clause */
/* vnet: the feature table with its dependencies, and the header both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "base/rand.h"
#include "port/vnet.h"

#define B(name) VNET_BIT(name)

static void offers_nothing_that_needs_the_control_queue(void **state)
{
	(void)state;
	uint64_t all = vnet_features_all();

	assert_false(all & (UINT64_C(1) << 17));                     /* CTRL_VQ */
	assert_false(all & (UINT64_C(1) << 21 | UINT64_C(1) << 22)); /* GUEST_ANNOUNCE, MQ */
	assert_false(all & (UINT64_C(1) << 10 | UINT64_C(1) << 14)); /* UFO */
	assert_true(all & B(VERSION_1));
	assert_int_equal(vnet_features_close(all), all);
}

static void prerequisites(void **state)
{
	(void)state;
	static const struct {
		uint64_t off, gone;
	} t[] = {
		{B(GUEST_CSUM), B(GUEST_TSO4) | B(GUEST_TSO6) | B(GUEST_ECN) | B(GUEST_USO4) |
					B(GUEST_USO6)},
		{B(CSUM), B(HOST_TSO4) | B(HOST_TSO6) | B(HOST_ECN) | B(HOST_USO)},
		{B(GUEST_TSO4), 0},
		{B(GUEST_TSO4) | B(GUEST_TSO6), B(GUEST_ECN)},
		{B(HOST_TSO6), 0},
		{B(HOST_TSO4) | B(HOST_TSO6), B(HOST_ECN)},
		{B(MRG_RXBUF), 0},
		{B(MTU), 0},
		{B(VERSION_1), 0},
	};
	uint64_t all = vnet_features_all();

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(
			vnet_features_close(all & ~t[i].off), all & ~t[i].off & ~t[i].gone);
	/* bits it does not know pass */
	assert_int_equal(vnet_features_close(UINT64_C(1) << 30), UINT64_C(1) << 30);
	/* closing twice changes nothing more */
	struct rand r;
	rand_init(&r, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t once = vnet_features_close(rand_u64(&r));

		assert_int_equal(vnet_features_close(once), once);
	}
}

static void words(void **state)
{
	(void)state;
	struct err err;
	uint64_t bits = 7;
	char text[512];

	assert_int_equal(vnet_features_parse("guest_tso4+mrg_rxbuf", &bits, &err), 0);
	assert_int_equal(bits, B(GUEST_TSO4) | B(MRG_RXBUF));
	assert_int_equal(vnet_features_parse("host_uso", &bits, &err), 0);
	assert_int_equal(bits, B(HOST_USO));
	assert_string_equal(
		vnet_features_text(B(VERSION_1) | B(MAC) | UINT64_C(1) << 30, text, sizeof(text)),
		"mac bit30 version_1");
	assert_string_equal(vnet_features_text(0, text, sizeof(text)), "");

	static const char *const wrong[] = {
		"tso", "", "csum+", "+csum", "csum,mtu", "guest_tso", "CSUM"};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		bits = 7;
		assert_int_equal(vnet_features_parse(wrong[i], &bits, &err), -EINVAL);
		assert_int_equal(bits, 7);
		assert_non_null(strstr(err.text, "known: csum guest_csum mtu"));
		assert_non_null(strstr(err.text, "host_uso")); /* all of them fit */
	}
	assert_int_equal(vnet_features_parse("tso", &bits, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'tso'"));

	/* all names there and back */
	vnet_features_text(vnet_features_all(), text, sizeof(text));
	for (char *p = text; *p; p++) {
		if (*p == ' ')
			*p = '+';
	}
	assert_int_equal(vnet_features_parse(text, &bits, &err), 0);
	assert_int_equal(bits, vnet_features_all());
	/* a small buffer is never overrun */
	for (unsigned size = 0; size < 40; size++) {
		memset(text, 'x', sizeof(text));
		vnet_features_text(vnet_features_all(), text, size);
		assert_int_equal(text[size], 'x');
	}
}

static void accepts(void **state)
{
	(void)state;
	assert_int_equal(vnet_accepts(vnet_features_all()), ACCEPT_ALL);
	assert_int_equal(vnet_accepts(0), 0);
	assert_int_equal(vnet_accepts(B(GUEST_CSUM) | B(GUEST_TSO6) | B(HOST_TSO4)),
		ACCEPT_CSUM | ACCEPT_TSO6);
	assert_int_equal(
		vnet_accepts(B(GUEST_TSO4)), 0); /* a driver that breaks N2 gets less, not more */
}

static void header_length(void **state)
{
	(void)state;
	assert_int_equal(vnet_hdr_len(0), 10);
	assert_int_equal(vnet_hdr_len(B(CSUM) | B(MAC)), 10);
	assert_int_equal(vnet_hdr_len(B(MRG_RXBUF)), 12);
	assert_int_equal(vnet_hdr_len(B(VERSION_1)), 12);
	assert_int_equal(vnet_hdr_len(B(VERSION_1) | B(MRG_RXBUF)), 12);
}

static void header_parse(void **state)
{
	(void)state;
	const uint8_t tso[12] = {1, 0x84, 54, 0, 0xb4, 5, 34, 0, 16, 0, 0xff, 0xff};
	/* no flags, no gso: fields are rubbish and unused */
	const uint8_t plain[12] = {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	const uint8_t valid[12] = {2 | 0x80, 0, 0, 0, 9, 9, 5, 6, 7, 8};
	struct offload off, zero = {0};

	vnet_hdr_parse(tso, &off);
	assert_int_equal(off.flags, OFF_NEEDS_CSUM);
	assert_int_equal(off.gso, OFF_GSO_TCPV6 | OFF_GSO_ECN);
	assert_int_equal(off.hdr_len, 54);
	assert_int_equal(off.gso_size, 1460);
	assert_int_equal(off.csum_start, 34);
	assert_int_equal(off.csum_off, 16);
	memset(&off, 0xff, sizeof(off));
	vnet_hdr_parse(plain, &off);
	assert_memory_equal(&off, &zero, sizeof(off));
	memset(&off, 0xff, sizeof(off));
	vnet_hdr_parse(valid, &off);
	assert_memory_equal(&off, &zero, sizeof(off));
}

static void header_build(void **state)
{
	(void)state;
	struct offload tso = {.flags = 1,
		.gso = 1,
		.gso_size = 1460,
		.csum_start = 34,
		.csum_off = 16,
		.hdr_len = 54};
	struct offload none = {0}, valid = {.flags = OFF_DATA_VALID}, back;
	uint8_t hdr[14], zero[12] = {0}, one[12] = {[10] = 1};

	memset(hdr, 0xaa, sizeof(hdr));
	vnet_hdr_build(hdr, &tso, ACCEPT_ALL, 0x1234);
	assert_int_equal(hdr[10], 0x34);
	assert_int_equal(hdr[11], 0x12);
	assert_int_equal(hdr[12], 0xaa);
	vnet_hdr_parse(hdr, &back);
	assert_memory_equal(&back, &tso, sizeof(tso));

	memset(hdr, 0xaa, sizeof(hdr));
	vnet_hdr_build(hdr, &none, ACCEPT_ALL, 1);
	assert_memory_equal(hdr, one, 12);
	vnet_hdr_build(hdr, &valid, ACCEPT_ALL, 0);
	assert_int_equal(hdr[0], OFF_DATA_VALID);
	assert_memory_equal(hdr + 1, zero, 11);
	/* never a flag for a driver without GUEST_CSUM [VIRTIO 1.2 5.1.6.4.1] */
	vnet_hdr_build(hdr, &valid, ACCEPT_ALL & ~ACCEPT_CSUM, 0);
	assert_memory_equal(hdr, zero, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offers_nothing_that_needs_the_control_queue),
		cmocka_unit_test(prerequisites),
		cmocka_unit_test(words),
		cmocka_unit_test(accepts),
		cmocka_unit_test(header_length),
		cmocka_unit_test(header_parse),
		cmocka_unit_test(header_build),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
