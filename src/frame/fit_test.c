/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cutting against a reference that merges: random super-packets in random pieces, cut from any
 * segment on, every field checked, merged again, and equal to what went in. Checksums against a sum
 * of single bytes.
 */
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

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define URG 0x20
#define ECE 0x40
#define CWR 0x80

static struct rand rnd;
static struct made m;
static struct fit fit;

static uint32_t draw(uint32_t n)
{
	return rand_below(&rnd, n);
}

static void lend_checked(const struct recipe *r, uint16_t gso_size, uint32_t head, uint32_t most)
{
	make(&m, r, &rnd);
	make_lend(&m, head, most, &rnd);
	m.f.off = make_off(&m, gso_size);
	assert_int_equal(offload_check(&m.f), DROP_NONE);
}

/* Do what NEEDS_CSUM asks for, the slow way. */
static void finish_slowly(uint8_t *p, uint32_t len, const struct offload *off)
{
	const uint32_t at = off->csum_start + off->csum_off;

	put_be16(p + at, (uint16_t)~slow_sum(0, p + off->csum_start, len - off->csum_start));
}

/* A whole frame's TCP or UDP checksum; and UDP's is never 0. */
static void assert_csum_right(const uint8_t *p, uint32_t len)
{
	const uint32_t pseudo = slow_pseudo(p + m.l3, m.r.ip, m.r.proto, len - m.l4);

	assert_int_equal(slow_sum(pseudo, p + m.l4, len - m.l4), 0xffff);
	if (m.r.proto == 17)
		assert_int_not_equal(get_be16(p + m.l4 + 6), 0);
}

static void assert_ip_right(const uint8_t *p, uint32_t len, unsigned k)
{
	const uint8_t *ip = p + m.l3;

	if (m.r.ip == 4) {
		assert_int_equal(get_be16(ip + 2), len - m.l3);
		assert_int_equal(get_be16(ip + 4), (uint16_t)(m.r.id + k));
		assert_int_equal(slow_sum(0, ip, 20 + m.r.options), 0xffff);
	} else {
		assert_int_equal(get_be16(ip + 4), len - m.l3 - 40);
	}
}

static uint8_t expected_flags(unsigned k, unsigned n)
{
	uint8_t flags = m.r.flags;

	if (k > 0)
		flags &= (uint8_t)~CWR;
	if (k + 1 < n)
		flags &= (uint8_t) ~(FIN | PSH);
	return flags;
}

/* Put the fields of the super-packet where a segment's are; then its headers must be the same. */
static void assert_rest_of_headers(const uint8_t *seg)
{
	uint8_t h[FRAME_PULL_MAX];

	memcpy(h, seg, m.data);
	if (m.r.ip == 4) {
		memcpy(h + m.l3 + 2, m.flat + m.l3 + 2, 4);
		memcpy(h + m.l3 + 10, m.flat + m.l3 + 10, 2);
	} else {
		memcpy(h + m.l3 + 4, m.flat + m.l3 + 4, 2);
	}
	if (m.r.proto == 6) {
		memcpy(h + m.l4 + 4, m.flat + m.l4 + 4, 4);
		h[m.l4 + 13] = m.flat[m.l4 + 13];
		memcpy(h + m.l4 + 16, m.flat + m.l4 + 16, 2);
	} else {
		memcpy(h + m.l4 + 4, m.flat + m.l4 + 4, 4);
	}
	assert_memory_equal(h, m.flat, m.data);
}

/* One segment, number k of n: every field; returns its payload length. */
static uint32_t assert_segment(
	const struct frame *s, unsigned k, unsigned n, uint16_t size, bool partial)
{
	static uint8_t p[MAKE_MAX];
	const uint32_t len = frame_flatten(s, p), data = len - m.data;
	const uint32_t want = k + 1 < n ? size : m.r.payload - (n - 1) * size;

	assert_int_equal(len, frame_len(s));
	assert_int_equal(data, want);
	assert_int_equal(s->off.gso, 0);
	assert_int_equal(s->off.gso_size, 0);
	assert_int_equal(s->off.flags, partial ? OFF_NEEDS_CSUM : 0);
	assert_int_equal(s->head_len, m.data);
	assert_ip_right(p, len, k);
	if (m.r.proto == 6) {
		assert_int_equal(get_be32(p + m.l4 + 4), m.r.seq + k * size);
		assert_int_equal(p[m.l4 + 13], expected_flags(k, n));
	} else {
		assert_int_equal(get_be16(p + m.l4 + 4), len - m.l4);
	}
	if (partial) {
		const uint32_t pseudo = slow_pseudo(p + m.l3, m.r.ip, m.r.proto, len - m.l4);

		assert_int_equal(s->off.csum_start, m.l4);
		assert_int_equal(s->off.csum_off, m.r.proto == 6 ? 16 : 6);
		assert_int_equal(s->off.hdr_len, m.data);
		assert_int_equal(get_be16(p + m.l4 + s->off.csum_off) % 0xffff, pseudo % 0xffff);
		finish_slowly(p, len, &s->off);
		if (m.r.proto == 17 && !get_be16(p + m.l4 + 6))
			put_be16(p + m.l4 + 6, 0xffff);
	}
	assert_csum_right(p, len);
	assert_rest_of_headers(p);
	assert_memory_equal(p + m.data, m.flat + m.data + k * size, data);
	return data;
}

static struct recipe any_recipe(void)
{
	const uint8_t flag_sets[] = {ACK, ACK | PSH, ACK | PSH | FIN, ACK | FIN, ACK | CWR,
		ACK | ECE, ACK | ECE | CWR | PSH | FIN};
	struct recipe r = {.tags = draw(3),
		.ip = draw(2) ? 4 : 6,
		.options = draw(2) ? 0 : draw(5) * 8,
		.proto = draw(3) ? 6 : 17,
		.tcp_opts = draw(11) * 4,
		.flags = flag_sets[draw(7)],
		.id = (uint16_t)rand_u64(&rnd),
		.seq = draw(3) ? (uint32_t)rand_u64(&rnd) : 0u - draw(5000)};

	if (r.proto == 17)
		r.tcp_opts = 0;
	return r;
}

/* Cut all of it, in batches, beginning at `first`. */
static void cut_and_check(uint16_t size, unsigned first, unsigned accepts)
{
	const unsigned n = fit_segments(&m.f);
	uint32_t data = first * size;
	unsigned k = first;

	assert_int_equal(n, (m.r.payload + size - 1) / size);
	while (k < n) {
		assert_int_equal(fit_segment(&fit, &m.f, k, accepts), DROP_NONE);
		assert_in_range(fit.n, 1, FIT_BATCH);
		assert_in_range(fit.niov, 1, FIT_IOV);
		assert_true(k + fit.n <= n);
		for (unsigned i = 0; i < fit.n; i++)
			data += assert_segment(&fit.f[i], k + i, n, size, accepts & ACCEPT_CSUM);
		k += fit.n;
	}
	assert_int_equal(data, m.r.payload);
}

static void split_then_merge(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		const uint16_t size = (uint16_t)(1 + draw(draw(2) ? 300 : 9000));
		const uint32_t most = draw(2) ? 5000 : 40 + draw(100);
		struct recipe r = any_recipe();
		unsigned n;

		n = 2 + draw(r.proto == 17 ? 100 : 140);
		while (n * size > 60000)
			n /= 2;
		if (n < 2)
			continue;
		r.payload = (n - 1) * size + 1 + draw(size);
		lend_checked(&r, size, draw(FRAME_PULL_MAX), most);
		cut_and_check(size, 0, draw(2) ? ACCEPT_CSUM : 0);
		cut_and_check(size, draw(n), draw(2) ? ACCEPT_CSUM : 0);
		make_end(&m);
	}
}

static void resume_at_every_segment(void **state)
{
	static const struct recipe all[] = {
		{.ip = 4,
			.proto = 6,
			.tcp_opts = 12,
			.flags = ACK | CWR | ECE | PSH | FIN,
			.id = 0xfff0,
			.seq = 0xfffff000,
			.payload = 70 * 333 + 5},
		{.ip = 6, .options = 8, .proto = 6, .flags = ACK | PSH, .payload = 70 * 333},
		{.ip = 4, .proto = 17, .payload = 70 * 333 + 1},
		{.ip = 6, .proto = 17, .payload = 70 * 333 + 332},
	};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		lend_checked(&all[i], 333, 128, 500);
		for (unsigned first = 0; first < fit_segments(&m.f); first++)
			cut_and_check(333, first, first & 1 ? ACCEPT_CSUM : 0);
		assert_int_not_equal(fit_segment(&fit, &m.f, fit_segments(&m.f), 0), DROP_NONE);
		assert_int_equal(fit.n, 0);
		make_end(&m);
	}
}

/* Pieces so many that the batch's slices run out before its frames. */
static void slices_run_out(void **state)
{
	const struct recipe r = {.ip = 4, .proto = 6, .flags = ACK, .payload = 1900};

	(void)state;
	lend_checked(&r, 700, 54, 1);
	assert_true(m.f.ntail > FIT_IOV);
	assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NONE);
	assert_true(fit.n < 3);
	cut_and_check(700, 0, 0);
	make_end(&m);
}

static void loan_is_not_written(void **state)
{
	static uint8_t before[MAKE_MAX], after[MAKE_MAX];
	const struct recipe r = {.ip = 4, .proto = 6, .flags = ACK | PSH, .payload = 20000};

	(void)state;
	lend_checked(&r, 1000, 128, 900);
	frame_flatten(&m.f, before);
	assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NONE);
	frame_flatten(&m.f, after);
	assert_memory_equal(before, after, m.len);
	/* payload is shared, headers are not */
	for (unsigned i = 0; i < fit.n; i++) {
		assert_ptr_equal(fit.f[i].head, fit.head[i].data);
		assert_ptr_not_equal(fit.f[i].head, m.f.head);
	}
	assert_ptr_equal((uint8_t *)fit.f[0].tail[0].iov_base, m.f.head + m.data);
	make_end(&m);
}

static void not_cut(void **state)
{
	const struct recipe r = {.ip = 4, .proto = 6, .flags = ACK, .payload = 5000};
	const uint8_t bad[] = {SYN, RST, URG};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct recipe b = r;

		b.flags |= bad[i];
		lend_checked(&b, 1000, 128, 900);
		assert_int_equal(fit_segment(&fit, &m.f, 0, ACCEPT_CSUM), DROP_NO_OFFLOAD);
		assert_int_equal(fit.n, 0);
		make_end(&m);
	}
	lend_checked(&r, 1000, 128, 900);
	m.f.head[m.l3 + 6] = 0x20; /* more fragments */
	assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NO_OFFLOAD);
	m.f.head[m.l3 + 6] = 0;
	m.f.head[m.l4 + 12] = 0x40;
	assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NO_OFFLOAD);
	m.f.head[m.l4 + 12] = 0x50;
	m.f.off.gso = OFF_GSO_TCPV6;
	assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NO_OFFLOAD);
	m.f.off.gso = OFF_GSO_NONE;
	assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NO_OFFLOAD);
	assert_int_equal(fit_segments(&m.f), 1);
	make_end(&m);
}

/* The field says: nothing, the pseudo sum, or the finished checksum: always the same result. */
static void csum_finished(void **state)
{
	static uint8_t p[MAKE_MAX];

	(void)state;
	for (unsigned round = 0; round < 600; round++) {
		struct recipe r = any_recipe();
		uint16_t csum_off = r.proto == 6 ? 16 : 6, right;
		uint32_t len;

		r.payload = draw(draw(2) ? 40 : 9000);
		lend_checked(&r, 0, draw(FRAME_PULL_MAX), 1 + draw(2000));
		fit_reset(&fit);
		fit.n = draw(FIT_BATCH);
		assert_int_equal(fit_csum(&fit, &m.f), DROP_NONE);
		len = frame_flatten(&fit.f[fit.n - 1], p);
		assert_int_equal(len, m.len);
		assert_memory_equal(
			&fit.f[fit.n - 1].off, &(struct offload){0}, sizeof(struct offload));
		assert_csum_right(p, len);
		right = get_be16(p + m.l4 + csum_off);
		memcpy(p + m.l4 + csum_off, m.flat + m.l4 + csum_off, 2);
		assert_memory_equal(p, m.flat, len); /* nothing else changed */
		assert_memory_equal(m.f.head, m.flat, m.f.head_len);

		for (unsigned i = 0; i < 3; i++) {
			put_be16(m.f.head + m.l4 + csum_off, (uint16_t[]){0, right, 0x1234}[i]);
			fit_reset(&fit);
			assert_int_equal(fit_csum(&fit, &m.f), DROP_NONE);
			assert_int_equal(get_be16(fit.f[0].head + m.l4 + csum_off), right);
		}
		make_end(&m);
	}
}

/* Not TCP's or UDP's own: the field is believed. */
static void csum_of_anything(void **state)
{
	static uint8_t p[MAKE_MAX];
	const struct recipe r = {.ip = 4, .proto = 47, .payload = 2001};

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		make(&m, &r, &rnd);
		make_lend(&m, 128, 500, &rnd);
		m.f.off = (struct offload){.flags = OFF_NEEDS_CSUM,
			.csum_start = (uint16_t)(14 + draw(200)),
			.csum_off = (uint16_t)(7 + draw(100))};
		assert_int_equal(offload_check(&m.f), DROP_NONE);
		fit_reset(&fit);
		assert_int_equal(fit_csum(&fit, &m.f), DROP_NONE);
		frame_flatten(&fit.f[0], p);
		finish_slowly(m.flat, m.len, &m.f.off);
		assert_memory_equal(p, m.flat, m.len);
		make_end(&m);
	}
}

/* Ethernet padding is not the datagram's, whatever it holds. */
static void csum_with_padding(void **state)
{
	static uint8_t p[MAKE_MAX];
	const struct recipe r = {.ip = 4, .proto = 17, .payload = 3};
	uint32_t len;

	(void)state;
	make(&m, &r, &rnd);
	len = m.len;
	while (m.len < 60)
		m.flat[m.len++] = 0x5a;
	make_lend(&m, 128, 500, &rnd);
	m.f.off = make_off(&m, 0);
	assert_int_equal(offload_check(&m.f), DROP_NONE);
	fit_reset(&fit);
	assert_int_equal(fit_csum(&fit, &m.f), DROP_NONE);
	assert_int_equal(frame_flatten(&fit.f[0], p), 60);
	assert_csum_right(p, len);
	make_end(&m);
}

/* An IP length that contradicts the frame bounds nothing. */
static void csum_with_stale_length(void **state)
{
	static uint8_t p[MAKE_MAX];
	const struct recipe r = {.ip = 4, .proto = 6, .flags = ACK, .payload = 300};
	const uint16_t lie[] = {0, 20, 39, 341, 0xffff};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		make(&m, &r, &rnd);
		put_be16(m.flat + m.l3 + 2, lie[i]);
		make_lend(&m, 128, 100, &rnd);
		m.f.off = make_off(&m, 0);
		assert_int_equal(offload_check(&m.f), DROP_NONE);
		fit_reset(&fit);
		assert_int_equal(fit_csum(&fit, &m.f), DROP_NONE);
		assert_csum_right(p, frame_flatten(&fit.f[0], p));
		make_end(&m);
	}
}

/* A datagram made to sum up to zero. */
static void udp_never_zero(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct recipe r = {.ip = i ? 6 : 4, .proto = 17, .payload = 2000};
		uint32_t sum;

		(void)state;
		make(&m, &r, &rnd);
		put_be16(m.flat + m.data, 0);
		put_be16(m.flat + m.l4 + 6, 0);
		sum = slow_pseudo(m.flat + m.l3, r.ip, 17, m.len - m.l4);
		sum = slow_sum(sum, m.flat + m.l4, m.len - m.l4);
		put_be16(m.flat + m.data, (uint16_t)(0xffff - sum));
		make_lend(&m, 100, 500, &rnd);
		m.f.off = make_off(&m, 0);
		assert_int_equal(offload_check(&m.f), DROP_NONE);
		fit_reset(&fit);
		assert_int_equal(fit_csum(&fit, &m.f), DROP_NONE);
		assert_int_equal(get_be16(fit.f[0].head + m.l4 + 6), 0xffff);
		make_end(&m);

		/* and the first segment of a super-packet */
		make(&m, &r, &rnd);
		put_be16(m.flat + m.data, 0);
		put_be16(m.flat + m.l4 + 4, 1008);
		put_be16(m.flat + m.l4 + 6, 0);
		sum = slow_pseudo(m.flat + m.l3, r.ip, 17, 1008);
		sum = slow_sum(sum, m.flat + m.l4, 1008);
		put_be16(m.flat + m.data, (uint16_t)(0xffff - sum));
		make_lend(&m, 100, 500, &rnd);
		m.f.off = make_off(&m, 1000);
		assert_int_equal(offload_check(&m.f), DROP_NONE);
		assert_int_equal(fit_segment(&fit, &m.f, 0, 0), DROP_NONE);
		assert_int_equal(get_be16(fit.f[0].head + m.l4 + 6), 0xffff);
		make_end(&m);
	}
}

static void what_each_receiver_needs(void **state)
{
	struct row {
		uint8_t flags, gso;
		unsigned needs; /* to take it as it is */
	};
	static const struct row rows[] = {
		{0, 0, 0},
		{OFF_DATA_VALID, 0, 0},
		{OFF_NEEDS_CSUM, 0, ACCEPT_CSUM},
		{OFF_NEEDS_CSUM, OFF_GSO_TCPV4, ACCEPT_CSUM | ACCEPT_TSO4},
		{OFF_NEEDS_CSUM, OFF_GSO_TCPV4 | OFF_GSO_ECN,
			ACCEPT_CSUM | ACCEPT_TSO4 | ACCEPT_ECN},
		{OFF_NEEDS_CSUM, OFF_GSO_TCPV6, ACCEPT_CSUM | ACCEPT_TSO6},
		{OFF_NEEDS_CSUM, OFF_GSO_TCPV6 | OFF_GSO_ECN,
			ACCEPT_CSUM | ACCEPT_TSO6 | ACCEPT_ECN},
		{OFF_NEEDS_CSUM, OFF_GSO_UDP_L4, ACCEPT_CSUM | ACCEPT_USO4 | ACCEPT_USO6},
		{OFF_NEEDS_CSUM, OFF_GSO_UDP, ~0u},
		{OFF_NEEDS_CSUM, 2, ~0u},
		{OFF_NEEDS_CSUM, 0xff, ~0u},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct frame f = {.off = {.flags = rows[i].flags, .gso = rows[i].gso}};

		for (unsigned accepts = 0; accepts <= ACCEPT_ALL; accepts++) {
			enum fit_need want = FIT_NONE;

			if (rows[i].needs & ~accepts)
				want = rows[i].gso ? FIT_SEGMENT : FIT_CSUM;
			assert_int_equal(fit_need(&f, accepts), want);
		}
	}
}

int main(void)
{
	const char *given = getenv("SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split_then_merge),
		cmocka_unit_test(resume_at_every_segment),
		cmocka_unit_test(slices_run_out),
		cmocka_unit_test(loan_is_not_written),
		cmocka_unit_test(not_cut),
		cmocka_unit_test(csum_finished),
		cmocka_unit_test(csum_of_anything),
		cmocka_unit_test(csum_with_padding),
		cmocka_unit_test(csum_with_stale_length),
		cmocka_unit_test(udp_never_zero),
		cmocka_unit_test(what_each_receiver_needs),
	};

	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
