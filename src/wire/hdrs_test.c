/* SPDX-License-Identifier: BSD-2-Clause */
/* Header offsets on frames spelled out in hexadecimal, cut at every length, and on random bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "wire/hdrs.h"

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % n;
}

#define MACS "525400000001 525400000002 "
#define IP4  "45000034 00010000 40060000 0a000001 0a000002 "
#define TCP  "04d20050 00000001 00000002 50100200 00000000 "
#define UDP  "04d20050 000c0000 "
#define ADDR "fe80000000000000 0000000000000001 fe80000000000000 0000000000000002 "

static unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static size_t unhex(const char *text, uint8_t *out)
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == ' ')
			continue;
		out[n++] = (uint8_t)(nibble(text[0]) << 4 | nibble(text[1]));
		text++;
	}
	return n;
}

/* `len` private bytes in memory of just that size. */
static enum hdrs_result parse(const uint8_t *frame, size_t len, size_t frame_len, struct hdrs *h)
{
	uint8_t *p = malloc(len + !len);
	enum hdrs_result r;

	memcpy(p, frame, len);
	r = hdrs_parse(p, len, frame_len, h);
	free(p);
	return r;
}

static enum hdrs_result parse_text(const char *text, struct hdrs *h)
{
	uint8_t frame[4096];
	const size_t n = unhex(text, frame);

	return parse(frame, n, n, h);
}

struct good {
	const char *name, *text;
	struct hdrs want;
};

static const struct good good[] = {
	{"arp", MACS "0806 00010800", {.eth_type = 0x806, .l3 = 14}},
	{"tcp4", MACS "0800" IP4 TCP "0102",
		{.eth_type = 0x800,
			.ip = 4,
			.proto = 6,
			.l3 = 14,
			.l4 = 34,
			.payload = 54,
			.ip_len = 52}},
	{"tcp4 with options",
		MACS "0800 47000034 00010000 40060000 0a000001 0a000002 01010101 01010101"
		     "04d20050 00000001 00000002 70100200 00000000 01010101 01010101 aa",
		{.eth_type = 0x800,
			.ip = 4,
			.proto = 6,
			.l3 = 14,
			.l4 = 42,
			.payload = 70,
			.ip_len = 52}},
	{"udp4 in a vlan",
		MACS "8100 2064 0800 45000020 00010000 40110000 0a000001 0a000002" UDP "01020304",
		{.eth_type = 0x800,
			.vlan = 100,
			.nvlan = 1,
			.ip = 4,
			.proto = 17,
			.l3 = 18,
			.l4 = 38,
			.payload = 46,
			.ip_len = 32}},
	{"two tags, outer VID kept", MACS "88a8 0064 8100 00c8 0806 0001",
		{.eth_type = 0x806, .vlan = 100, .nvlan = 2, .l3 = 22}},
	{"a third tag is payload", MACS "8100 0001 8100 0002 8100 0003 0800",
		{.eth_type = 0x8100, .vlan = 1, .nvlan = 2, .l3 = 22}},
	{"gre4 has an l4, no payload",
		MACS "0800 45000018 00010000 402f0000 0a000001 0a000002 00000000",
		{.eth_type = 0x800, .ip = 4, .proto = 47, .l3 = 14, .l4 = 34, .ip_len = 24}},
	{"first fragment", MACS "0800 45000034 00012000 40060000 0a000001 0a000002" TCP,
		{.eth_type = 0x800, .ip = 4, .proto = 6, .fragment = true, .l3 = 14, .ip_len = 52}},
	{"later fragment", MACS "0800 45000034 00010001 40060000 0a000001 0a000002" TCP,
		{.eth_type = 0x800, .ip = 4, .proto = 6, .fragment = true, .l3 = 14, .ip_len = 52}},
	{"DF is no fragment", MACS "0800 45000034 00014000 40060000 0a000001 0a000002" TCP,
		{.eth_type = 0x800,
			.ip = 4,
			.proto = 6,
			.l3 = 14,
			.l4 = 34,
			.payload = 54,
			.ip_len = 52}},
	{"tcp6", MACS "86dd 60000000 00160640" ADDR TCP "0102",
		{.eth_type = 0x86dd,
			.ip = 6,
			.proto = 6,
			.l3 = 14,
			.l4 = 54,
			.payload = 74,
			.ip_len = 62}},
	{"udp6 behind hop-by-hop, routing and destination options",
		MACS "86dd 60000000 00340040" ADDR "2b00 010400000000"
		     "3c01 010c00000000 0000000000000000"
		     "1100 010400000000" UDP,
		{.eth_type = 0x86dd,
			.ip = 6,
			.proto = 17,
			.ip6_ext = true,
			.l3 = 14,
			.l4 = 86,
			.payload = 94,
			.ip_len = 92}},
	{"ip6 fragment", MACS "86dd 60000000 001c2c40" ADDR "06000001 00000001" TCP,
		{.eth_type = 0x86dd,
			.ip = 6,
			.proto = 44,
			.ip6_ext = true,
			.fragment = true,
			.l3 = 14,
			.ip_len = 68}},
	{"ah protects what follows", MACS "86dd 60000000 002c3340" ADDR "06040000 00000001",
		{.eth_type = 0x86dd, .ip = 6, .proto = 51, .l3 = 14, .l4 = 54, .ip_len = 84}},
	{"esp", MACS "86dd 60000000 00083240" ADDR "00000001 00000001",
		{.eth_type = 0x86dd, .ip = 6, .proto = 50, .l3 = 14, .l4 = 54, .ip_len = 48}},
	{"no next header", MACS "86dd 60000000 00003b40" ADDR,
		{.eth_type = 0x86dd, .ip = 6, .proto = 59, .l3 = 14}},
};

static void check(const char *name, const struct hdrs *got, const struct hdrs *want)
{
#define SAME(f)                                                                                    \
	if (got->f != want->f)                                                                     \
	fail_msg("%s: " #f " is %u, not %u", name, (unsigned)got->f, (unsigned)want->f)
	SAME(eth_type);
	SAME(vlan);
	SAME(nvlan);
	SAME(ip);
	SAME(proto);
	SAME(fragment);
	SAME(ip6_ext);
	SAME(l3);
	SAME(l4);
	SAME(payload);
	SAME(ip_len);
#undef SAME
}

static void good_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct hdrs h;

		if (parse_text(good[i].text, &h) != HDRS_OK)
			fail_msg("%s: not parsed", good[i].name);
		check(good[i].name, &h, &good[i].want);
	}
}

/* With fewer private bytes it asks for more, always more than it has, and ends at the same answer.
 */
static void pulled_bit_by_bit(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint8_t frame[4096];
		const size_t n = unhex(good[i].text, frame);

		for (size_t start = 0; start <= n; start++) {
			struct hdrs h;
			size_t have = start;
			enum hdrs_result r;

			while ((r = parse(frame, have, n, &h)) == HDRS_MORE) {
				assert_true(h.need > have && h.need <= n);
				have = h.need;
			}
			assert_int_equal(r, HDRS_OK);
			check(good[i].name, &h, &good[i].want);
		}
	}
}

/* A frame that ends inside its headers is bad, not waited for. */
static void cut_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint8_t frame[4096];
		const size_t n = unhex(good[i].text, frame);
		const struct hdrs *w = &good[i].want;
		const size_t whole = w->payload ? w->payload : w->l4 ? w->l4 : w->l3;

		for (size_t len = 0; len <= n; len++) {
			struct hdrs h;
			const enum hdrs_result r = parse(frame, len, len, &h);

			assert_int_not_equal(r, HDRS_MORE);
			if (len < whole)
				assert_int_equal(r, HDRS_BAD);
		}
	}
}

static void bad_frames(void **state)
{
	static const char *const bad[] = {
		MACS "0800 44000034 00010000 40110000 0a000001 0a000002" TCP, /* IHL 4 */
		MACS
		"0800 65000034 00010000 40060000 0a000001 0a000002" TCP, /* version 6 as IPv4 */
		MACS "86dd 40000000 00140640" ADDR TCP,                  /* version 4 as IPv6 */
		MACS "0800" IP4 "04d20050 00000001 00000002 40100200 00000000", /* data offset 4 */
		MACS "0800" IP4
		     "04d20050 00000001 00000002 f0100200 00000000",    /* options not there */
		MACS "86dd 60000000 00140040" ADDR "06ff 000000000000", /* extension too long */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hdrs h;

		if (parse_text(bad[i], &h) != HDRS_BAD)
			fail_msg("not refused: %s", bad[i]);
	}
}

static void endless_extensions(void **state)
{
	uint8_t frame[4096] = {0};
	size_t n = unhex(MACS "86dd 60000000 00140040" ADDR, frame);
	struct hdrs h;

	(void)state;
	/* hop-by-hop headers to the end: next 0, length 0 */
	assert_int_equal(parse(frame, n + 8 * 8, sizeof(frame), &h), HDRS_OK);
	assert_int_equal(h.l4, 0);
	/* eight in a row and then TCP are still walked */
	for (unsigned i = 0; i < 8; i++, n += 8)
		frame[n] = i == 7 ? 6 : 60;
	n += unhex(TCP, frame + n);
	assert_int_equal(parse(frame, n, n, &h), HDRS_OK);
	assert_int_equal(h.proto, 6);
	assert_int_equal(h.l4, 54 + 64);
}

static void random_bytes(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 200000; round++) {
		uint8_t frame[600];
		const size_t have = draw(sizeof(frame) + 1),
			     len = have + (draw(2) ? draw(60000) : 0);
		struct hdrs h;
		enum hdrs_result r;

		memset(frame, 0, sizeof(frame));
		unhex(good[draw(sizeof(good) / sizeof(*good))].text, frame);
		for (unsigned n = draw(8); n; n--)
			frame[draw(100)] = (uint8_t)draw(256);
		r = parse(frame, have, len, &h);
		if (r == HDRS_MORE)
			assert_true(h.need > have && h.need <= len);
		if (r == HDRS_OK)
			assert_true(h.l3 <= have && h.l4 <= have && h.payload <= have);
	}
}

int main(void)
{
	const char *given = getenv("SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_frames),
		cmocka_unit_test(pulled_bit_by_bit),
		cmocka_unit_test(cut_frames),
		cmocka_unit_test(bad_frames),
		cmocka_unit_test(endless_extensions),
		cmocka_unit_test(random_bytes),
	};

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
