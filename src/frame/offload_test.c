/* SPDX-License-Identifier: BSD-2-Clause */
/* Every rule of the offload check by name, and random lies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "frame/frame_make.h"
#include "frame/offload.h"

static struct rand rnd;
static struct made m;

static const struct recipe tcp4 = {.ip = 4, .proto = 6, .flags = 0x10, .payload = 5000};
static const struct recipe tcp6 = {.ip = 6, .proto = 6, .flags = 0x10, .payload = 5000};
static const struct recipe udp4 = {.ip = 4, .proto = 17, .payload = 5000};
static const struct recipe udp6 = {.ip = 6, .proto = 17, .payload = 5000};

/* Lend `r` with `off`, check, and give back the verdict; m.f stays to be looked at. */
static enum drop checked_at(const struct recipe *r, struct offload off, uint32_t head_len)
{
	enum drop d;

	make(&m, r, &rnd);
	make_lend(&m, head_len, 700, &rnd);
	m.f.off = off;
	d = offload_check(&m.f);
	assert_int_equal(frame_len(&m.f), m.len);
	assert_memory_equal(m.f.head, m.flat, m.f.head_len);
	make_end(&m);
	return d;
}

static enum drop checked(const struct recipe *r, struct offload off)
{
	return checked_at(r, off, FRAME_HEAD);
}

static struct offload off_for(const struct recipe *r, uint16_t gso_size)
{
	static struct made probe;
	static struct rand any;

	make(&probe, r, &any);
	return make_off(&probe, gso_size);
}

static void nothing_asked(void **state)
{
	(void)state;
	/* csum fields may hold rubbish without NEEDS_CSUM */
	assert_int_equal(
		checked(&tcp4, (struct offload){.csum_start = 60000, .csum_off = 9, .gso_size = 7}),
		DROP_NONE);
	assert_memory_equal(&m.f.off, &(struct offload){0}, sizeof(struct offload));
	assert_int_equal(
		checked(&tcp4, (struct offload){.flags = OFF_DATA_VALID, .csum_start = 60000}),
		DROP_NONE);
	assert_memory_equal(
		&m.f.off, &(struct offload){.flags = OFF_DATA_VALID}, sizeof(struct offload));
	/* unknown flags are ignored */
	assert_int_equal(
		checked(&tcp4, (struct offload){.flags = 0x84, .csum_start = 60000}), DROP_NONE);
	assert_int_equal(m.f.off.flags, 0);
}

static void good_super_packets(void **state)
{
	const struct recipe all[] = {tcp4, tcp6, udp4, udp6,
		{.tags = 1,
			.ip = 4,
			.options = 8,
			.proto = 6,
			.tcp_opts = 12,
			.flags = 0x10,
			.payload = 9000},
		{.tags = 2,
			.ip = 6,
			.options = 24,
			.proto = 6,
			.tcp_opts = 40,
			.flags = 0x18,
			.payload = 9000},
		{.ip = 4,
			.options = 40,
			.proto = 6,
			.tcp_opts = 40,
			.flags = 0x10,
			.payload = 60000},
		{.ip = 6, .options = 400, .proto = 6, .flags = 0x10, .payload = 60000},
		{.tags = 2, .ip = 6, .options = 8, .proto = 17, .payload = 9000}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (uint32_t head = 14; head < FRAME_PULL_MAX; head += 13) {
			struct offload off = off_for(&all[i], 1000);
			const struct offload want = off;

			off.hdr_len = (uint16_t)rand_u64(&rnd); /* a hint, never trusted */
			assert_int_equal(checked_at(&all[i], off, head), DROP_NONE);
			assert_memory_equal(&m.f.off, &want, sizeof(want));
			assert_true(m.f.head_len >= m.data);
			assert_int_equal(offload_ip_size(&m.f), m.data - m.l3 + 1000);
		}
	}
}

static void not_longer_than_a_segment(void **state)
{
	struct recipe r = tcp4;

	(void)state;
	for (r.payload = 0; r.payload <= 1000; r.payload += 500) {
		assert_int_equal(checked(&r, off_for(&r, 1000)), DROP_NONE);
		assert_int_equal(m.f.off.gso, OFF_GSO_NONE);
		assert_int_equal(m.f.off.gso_size, 0);
		assert_int_equal(m.f.off.flags, OFF_NEEDS_CSUM);
		assert_int_equal(m.f.off.hdr_len, m.data);
		assert_int_equal(offload_ip_size(&m.f), m.len - 14);
	}
	r.payload = 1001;
	assert_int_equal(checked(&r, off_for(&r, 1000)), DROP_NONE);
	assert_int_equal(m.f.off.gso, OFF_GSO_TCPV4);
}

static void gso_fields_refused(void **state)
{
	struct offload off;

	(void)state;
	for (unsigned gso = 0; gso < 256; gso++) {
		const bool fits4 =
			gso == 0 || gso == OFF_GSO_TCPV4 || gso == (OFF_GSO_TCPV4 | OFF_GSO_ECN);
		const bool fits6 =
			gso == 0 || gso == OFF_GSO_TCPV6 || gso == (OFF_GSO_TCPV6 | OFF_GSO_ECN);
		const bool fitsu = gso == 0 || gso == OFF_GSO_UDP_L4; /* no ECN bit with UDP */

		off = off_for(&tcp4, 1000);
		off.gso = (uint8_t)gso;
		assert_int_equal(checked(&tcp4, off), fits4 ? DROP_NONE : DROP_BAD_HDR);
		off = off_for(&tcp6, 1000);
		off.gso = (uint8_t)gso;
		assert_int_equal(checked(&tcp6, off), fits6 ? DROP_NONE : DROP_BAD_HDR);
		off = off_for(&udp4, 1000);
		off.gso = (uint8_t)gso;
		assert_int_equal(checked(&udp4, off), fitsu ? DROP_NONE : DROP_BAD_HDR);
		off = off_for(&udp6, 1000);
		off.gso = (uint8_t)gso;
		assert_int_equal(checked(&udp6, off), fitsu ? DROP_NONE : DROP_BAD_HDR);
	}
	off = off_for(&tcp4, 1000);
	off.gso_size = 0;
	assert_int_equal(checked(&tcp4, off), DROP_BAD_HDR);
	off.gso_size = 0xffff;
	assert_int_equal(checked(&tcp4, off), DROP_BAD_HDR);
	off = off_for(&tcp4, 1000);
	off.flags = 0;
	assert_int_equal(checked(&tcp4, off), DROP_BAD_HDR);
	off.flags = OFF_DATA_VALID;
	assert_int_equal(checked(&tcp4, off), DROP_BAD_HDR);
}

static void gso_offsets_must_be_true(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct recipe *r = i ? &udp6 : &tcp4;

		for (uint16_t v = 0; v < 200; v++) {
			struct offload off = off_for(r, 1000);
			const bool same_start = v == off.csum_start, same_off = v == off.csum_off;

			off.csum_start = v;
			assert_int_equal(checked(r, off), same_start ? DROP_NONE : DROP_BAD_HDR);
			off = off_for(r, 1000);
			off.csum_off = v;
			assert_int_equal(checked(r, off), same_off ? DROP_NONE : DROP_BAD_HDR);
		}
	}
}

static void ecn_bit_is_what_the_header_says(void **state)
{
	struct recipe r = tcp4;
	struct offload off = off_for(&r, 1000);

	(void)state;
	off.gso |= OFF_GSO_ECN;
	assert_int_equal(checked(&r, off), DROP_NONE);
	assert_int_equal(m.f.off.gso, OFF_GSO_TCPV4);
	r.flags |= 0x80;
	off.gso = OFF_GSO_TCPV4;
	assert_int_equal(checked(&r, off), DROP_NONE);
	assert_int_equal(m.f.off.gso, OFF_GSO_TCPV4 | OFF_GSO_ECN);
}

static void segment_counts(void **state)
{
	struct recipe r = udp4;

	(void)state;
	r.payload = 128 * 100;
	assert_int_equal(checked(&r, off_for(&r, 100)), DROP_NONE);
	r.payload++;
	assert_int_equal(checked(&r, off_for(&r, 100)), DROP_BAD_HDR);
	r = tcp4;
	r.payload = GSO_TCP_SEGMENTS * 8;
	assert_int_equal(checked(&r, off_for(&r, 8)), DROP_NONE);
	r.payload++;
	assert_int_equal(checked(&r, off_for(&r, 8)), DROP_BAD_HDR);
	/* a segment that is no IP datagram */
	r.payload = 65515;
	assert_int_equal(checked(&r, off_for(&r, 65495)), DROP_NONE);
	assert_int_equal(checked(&r, off_for(&r, 65496)), DROP_BAD_HDR);
}

static void gso_on_what_cannot_be_cut(void **state)
{
	struct offload off = off_for(&tcp4, 1000);

	(void)state;
	/* a fragment; a broken data offset; not IP at all */
	make(&m, &tcp4, &rnd);
	m.flat[m.l3 + 6] = 0x20;
	make_lend(&m, 128, 700, &rnd);
	m.f.off = off;
	assert_int_equal(offload_check(&m.f), DROP_BAD_HDR);
	m.head.data[m.l3 + 6] = 0;
	m.head.data[m.l4 + 12] = 0x40;
	m.f.off = off;
	assert_int_equal(offload_check(&m.f), DROP_BAD_HDR);
	m.head.data[m.l4 + 12] = 0x50;
	m.f.off = off;
	assert_int_equal(offload_check(&m.f), DROP_NONE);
	m.head.data[12] = 0x88;
	m.head.data[13] = 0xb5;
	m.f.off = off;
	assert_int_equal(offload_check(&m.f), DROP_BAD_HDR);
	make_end(&m);
}

static void headers_beyond_the_pull(void **state)
{
	struct recipe r = tcp6;

	(void)state;
	r.options = 440; /* 14 + 40 + 440 + 20 = 514 */
	assert_int_equal(checked(&r, off_for(&r, 1000)), DROP_HDR_TOO_LONG);
	r.options = 432;
	assert_int_equal(checked(&r, off_for(&r, 1000)), DROP_NONE);
	assert_int_equal(
		checked(&tcp4, (struct offload){.flags = 1, .csum_start = 500, .csum_off = 11}),
		DROP_HDR_TOO_LONG);
	assert_int_equal(
		checked(&tcp4, (struct offload){.flags = 1, .csum_start = 500, .csum_off = 10}),
		DROP_NONE);
}

/* A lone checksum: any protocol, any place that is inside. */
static void lone_checksum(void **state)
{
	const struct recipe odd[] = {{.ip = 4, .proto = 132, .payload = 300},
		{.ip = 0, .payload = 300}, {.ip = 4, .proto = 47, .payload = 300},
		{.ip = 6, .options = 8, .proto = 50, .payload = 300}};
	const struct recipe small = {.ip = 4, .proto = 17, .payload = 10};
	const uint16_t len = 14 + 20 + 8 + 10;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		assert_int_equal(
			checked(&odd[i],
				(struct offload){.flags = 1, .csum_start = 80, .csum_off = 8}),
			DROP_NONE);
		assert_int_equal(m.f.off.hdr_len, 0);
		assert_int_equal(m.f.off.csum_start, 80);
		assert_int_equal(m.f.off.csum_off, 8);
	}
	assert_int_equal(checked(&tcp4, off_for(&tcp4, 0)), DROP_NONE);
	assert_int_equal(m.f.off.hdr_len, 54);
	assert_int_equal(
		checked(&small, (struct offload){.flags = 1, .csum_start = 13}), DROP_BAD_HDR);
	assert_int_equal(
		checked(&small, (struct offload){.flags = 1, .csum_start = 14}), DROP_NONE);
	for (uint16_t start = 14; start < len; start++) {
		const uint16_t last = (uint16_t)(len - 2 - start);
		struct offload off = {.flags = 1, .csum_start = start, .csum_off = last};

		if (start <= len - 2)
			assert_int_equal(checked(&small, off), DROP_NONE);
		off.csum_off++;
		assert_int_equal(checked(&small, off), DROP_BAD_HDR);
	}
	/* sums that wrap in 16 bits */
	assert_int_equal(
		checked(&small,
			(struct offload){.flags = 1, .csum_start = 0xffff, .csum_off = 0xffff}),
		DROP_BAD_HDR);
	assert_int_equal(
		checked(&small, (struct offload){.flags = 1, .csum_start = 40, .csum_off = 0xfff0}),
		DROP_BAD_HDR);
	assert_int_equal(
		checked(&small, (struct offload){.flags = 1, .csum_start = 0xfff0, .csum_off = 40}),
		DROP_BAD_HDR);
}

static void random_lies(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 30000; round++) {
		struct recipe r = {.tags = rand_below(&rnd, 4),
			.ip = rand_below(&rnd, 2) * 2 + 4,
			.options = rand_below(&rnd, 5) * 8,
			.proto = rand_below(&rnd, 2) ? 6 : 17,
			.flags = (uint8_t)rand_u64(&rnd),
			.payload = rand_below(&rnd, 700)};
		enum drop d;

		make(&m, &r, &rnd);
		if (rand_below(&rnd, 2))
			m.len = rand_below(&rnd, m.len) + 1;
		for (unsigned n = rand_below(&rnd, 6); n; n--)
			m.flat[rand_below(&rnd, m.len)] = (uint8_t)rand_u64(&rnd);
		make_lend(&m, rand_below(&rnd, 160), 300, &rnd);
		m.f.off = make_off(&m, (uint16_t)rand_below(&rnd, 200));
		if (rand_below(&rnd, 2))
			m.f.off.csum_start = (uint16_t)rand_below(&rnd, 700);
		if (rand_below(&rnd, 4) == 0)
			m.f.off.csum_off = (uint16_t)rand_u64(&rnd);
		if (rand_below(&rnd, 4) == 0)
			m.f.off.gso = (uint8_t)rand_u64(&rnd);
		d = offload_check(&m.f);
		assert_true(d == DROP_NONE || d == DROP_BAD_HDR || d == DROP_HDR_TOO_LONG);
		assert_memory_equal(m.f.head, m.flat, m.f.head_len);
		if (d == DROP_NONE && m.f.off.gso)
			assert_true(m.f.off.hdr_len <= m.f.head_len && m.f.off.hdr_len < m.len);
		if (d == DROP_NONE)
			assert_true(offload_ip_size(&m.f) <= m.len);
		make_end(&m);
	}
}

int main(void)
{
	const char *given = getenv("SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_asked),
		cmocka_unit_test(good_super_packets),
		cmocka_unit_test(not_longer_than_a_segment),
		cmocka_unit_test(gso_fields_refused),
		cmocka_unit_test(gso_offsets_must_be_true),
		cmocka_unit_test(ecn_bit_is_what_the_header_says),
		cmocka_unit_test(segment_counts),
		cmocka_unit_test(gso_on_what_cannot_be_cut),
		cmocka_unit_test(headers_beyond_the_pull),
		cmocka_unit_test(lone_checksum),
		cmocka_unit_test(random_lies),
	};

	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
