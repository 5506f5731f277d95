/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sec_stack_test: attacks on a host by frames, one test for each kind; the numbers are those of
 * docs/security.md. Host 0 is attacked, 10.0.0.2 or 2001:db8::2 is who it seems to come from.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "net/stack_int.h"
#include "net/stack_rig.h"
#include "net/tcp.h"
#include "wire/arp.h"
#include "wire/eth.h"
#include "wire/icmp.h"
#include "wire/udp.h"

static const struct stack_counters *counters(struct rig *r)
{
	return stack_counters(r->s[0]);
}

/* ---- frames ---- */

/* An IPv4 packet to host 0: `len` bytes of `body`, 0 and up. */
static void give4(struct rig *r, const char *src, uint8_t proto, uint16_t frag, uint16_t id,
	const void *body, uint32_t len)
{
	const struct ip_addr s = rig_ip(src);
	struct ip4 ip = {.ttl = 64,
		.proto = proto,
		.len = (uint16_t)(20 + len),
		.frag = frag,
		.id = id,
		.dst = {10, 0, 0, 1}};
	uint8_t p[2000] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};

	memcpy(ip.src, ip_addr_v4(&s), 4);
	ip4_build(&ip, p + 14);
	memcpy(p + 34, body, len);
	rig_inject(r, 0, p, 34 + len);
}

/* Likewise IPv6, from 2001:db8::2 unless another is named; ICMPv6 gets its checksum. */
static void give6(struct rig *r, const char *src, const char *dst, uint8_t hops, uint8_t next,
	const void *body, uint32_t len)
{
	const struct ip_addr s = rig_ip(src), d = rig_ip(dst);
	struct ip6 ip = {.next = next, .hops = hops, .len = (uint16_t)len};
	uint8_t p[2000] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd};
	struct csum c = {0};

	if (d.b[0] == 0xff) {
		p[0] = p[1] = 0x33;
		memcpy(p + 2, d.b + 12, 4);
	}
	memcpy(ip.src, s.b, 16);
	memcpy(ip.dst, d.b, 16);
	ip6_build(&ip, p + 14);
	memcpy(p + 54, body, len);
	if (next == IP_PROTO_ICMP6) {
		put_be16(p + 56, 0);
		csum_pseudo6(&c, s.b, d.b, next, len);
		csum_piece(&c, p + 54, len);
		put_be16(p + 56, csum_end(&c));
	}
	rig_inject(r, 0, p, 54 + len);
}

static const struct reass_counters *pieces(struct rig *r)
{
	return reass_counters(r->s[0]->reass);
}

/* ---- 5.6 ---- */

/* Teardrop and its kin: an overlap ends the datagram; nothing of it is delivered. [RFC 5722] */
static void sec_5_6_overlaps(void **state)
{
	static const struct {
		uint16_t at1, at2; /* in units of 8 bytes; 80 bytes each */
	} bad[] = {{0, 9}, {0, 1}, {10, 9}, {10, 1}};
	struct rig *r = *state;
	uint8_t body[80] = {0};

	for (uint16_t i = 0; i < 4; i++) {
		give4(r, "10.0.0.2", 17, IP4_MF | bad[i].at1, i, body, 80);
		give4(r, "10.0.0.2", 17, IP4_MF | bad[i].at2, i, body, 80);
		assert_int_equal(pieces(r)->overlaps, i + 1);
		assert_int_equal(reass_bytes(r->s[0]->reass), 0);
	}
	assert_int_equal(counters(r)->udp_in, 0);
}

/* Ping of death: beyond 65535. Headers hidden in pieces. [RFC 1858] */
static void sec_5_6_shapes(void **state)
{
	struct rig *r = *state;
	uint8_t body[80] = {0};
	uint64_t was;

	give4(r, "10.0.0.2", 1, 8189, 1, body, 80);
	assert_int_equal(pieces(r)->bad, 1);
	give4(r, "10.0.0.2", 17, IP4_MF | 1, 2, body, 79); /* only the last may be odd */
	assert_int_equal(pieces(r)->bad, 2);
	was = counters(r)->in_bad;
	give4(r, "10.0.0.2", 6, IP4_MF, 3, body, 16); /* TCP's flags in the second piece */
	give4(r, "10.0.0.2", 6, 1, 3, body, 80);
	assert_int_equal(counters(r)->in_bad, was + 2);
	assert_int_equal(reass_bytes(r->s[0]->reass), 0);
	/* IPv6: the first piece must show the upper header [RFC 7112] */
	was = counters(r)->in_bad;
	give6(r, "2001:db8::2", "2001:db8::1", 64, IP6_NEXT_FRAG,
		(uint8_t[]){60, 0, 0, 1, 0, 0, 0, 1, 17, 0, 0, 0, 0, 0, 0, 0}, 16);
	assert_int_equal(counters(r)->in_bad, was + 1);
	assert_int_equal(reass_bytes(r->s[0]->reass), 0);
}

/* A flood of first pieces: bounded, one source is no more than its share, honest ones get through. */
static void sec_5_6_flood(void **state)
{
	struct rig *r = *state;
	uint8_t body[1480] = {0};
	unsigned whole = 0;

	for (unsigned i = 0; i < 2000; i++) {
		char src[20];
		const uint64_t was = pieces(r)->datagrams;

		for (unsigned k = 0; k < 10; k++) {
			snprintf(src, sizeof(src), "10.0.%u.%u", 1 + i % 200, 1 + k);
			give4(r, src, 17, IP4_MF, (uint16_t)(i * 10 + k), body, 1480);
			if (k == 5)
				give4(r, "10.0.0.2", 17, IP4_MF, (uint16_t)i, body, 1480);
		}
		give4(r, "10.0.0.2", 17, 185, (uint16_t)i, body, 80);
		whole += pieces(r)->datagrams > was;
		assert_true(reass_bytes(r->s[0]->reass) <= REASS_BYTES);
	}
	assert_true(whole >= 1000);
	rig_run(r, REASS_NS + NSEC_PER_SEC);
	assert_int_equal(reass_bytes(r->s[0]->reass), 0);
	for (unsigned i = 0; i < 64; i++)
		for (uint16_t k = 0; k < 6; k++)
			give4(r, "10.0.0.3", 17, (uint16_t)(IP4_MF | (k * 185)), (uint16_t)i, body,
				1480);
	assert_true(reass_bytes(r->s[0]->reass) <= REASS_SOURCE);
	assert_true(pieces(r)->refused > 0);
	for (unsigned i = 0; i < 20; i++) { /* and many at their shares share what there is */
		char src[20];

		snprintf(src, sizeof(src), "10.0.0.%u", 20 + i);
		for (uint16_t k = 0; k < 44; k++) {
			give4(r, src, 17, (uint16_t)(IP4_MF | (k * 185)), 1, body, 1480);
			assert_true(reass_bytes(r->s[0]->reass) <= REASS_BYTES);
		}
	}
	assert_true(pieces(r)->evicted > 0);
}

/* Neighbour discovery does not come in pieces, not even in one. [RFC 6980] */
static void sec_5_6_no_pieces_of_nd(void **state)
{
	uint8_t na[8 + 24 + 8] = {58, 0, 0, 0, 0, 0, 0, 9, ICMP6_NA};
	const struct ip_addr who = rig_ip("2001:db8::2"), us = rig_ip("2001:db8::1");
	struct rig *r = *state;
	struct csum c = {0};

	stack_ping(r->s[0], &who, 1, 1, 8, r->now); /* it asks, so an answer would count */
	na[12] = 0x60;
	memcpy(na + 16, who.b, 16);
	ndp_build_mac(na + 32, NDP_DST_MAC, (const uint8_t *)"\2\0\0\0\0\x66");
	csum_pseudo6(&c, who.b, us.b, IP_PROTO_ICMP6, 32);
	csum_piece(&c, na + 8, 32);
	put_be16(na + 10, csum_end(&c));
	give6(r, "2001:db8::2", "2001:db8::1", 255, IP6_NEXT_FRAG, na, sizeof(na));
	assert_null(neigh_resolve(r->s[0]->neigh, &who, NULL, r->now));
}

/* ---- 5.8 ---- */

struct pong {
	unsigned n;
};

static void on_pong(void *ctx, const struct ip_addr *from, uint16_t id, uint16_t seq, uint32_t len)
{
	(void)from;
	(void)id;
	(void)seq;
	(void)len;
	((struct pong *)ctx)->n++;
}

/* A sweep through a /64 costs a bounded table, and an honest neighbour is found within a second. */
static void sec_5_8_sweep(void **state)
{
	struct rig *r = *state;
	const struct ip_addr dst = rig_addr(1, 6);
	struct ip_addr x = dst;
	struct pong got = {0};

	stack_on_pong(r->s[0], on_pong, &got);
	for (unsigned i = 0; i < 200000; i++) {
		put_be32(x.b + 8, i);
		put_be32(x.b + 12, 0x10000 + i);
		stack_ping(r->s[0], &x, 1, 1, 8, r->now);
		if (i % 500 == 0)
			rig_settle(r);
		if (i % 10000 == 0) {
			stack_ping(r->s[0], &dst, 1, 1, 8, r->now);
			rig_run(r, NSEC_PER_SEC);
		}
		assert_true(neigh_count(r->s[0]->neigh) <= NEIGH_INCOMPLETE + 4);
	}
	assert_int_equal(got.n, 20);
}

/* However many ask us: the table ends at its cap. */
static void sec_5_8_askers(void **state)
{
	struct rig *r = *state;

	for (unsigned i = 0; i < 5000; i++) {
		uint8_t ns[32] = {ICMP6_NS};
		struct ip_addr us = rig_addr(0, 6);
		char src[40];

		memcpy(ns + 8, us.b, 16);
		ndp_build_mac(ns + 24, NDP_SRC_MAC, (const uint8_t *)"\2\0\0\0\1\1");
		snprintf(src, sizeof(src), "2001:db8::%x:%x", 1 + i / 1000, 1 + i % 1000);
		give6(r, src, "2001:db8::1", 255, IP_PROTO_ICMP6, ns, sizeof(ns));
		if (i % 500 == 0)
			rig_settle(r);
	}
	assert_int_equal(neigh_count(r->s[0]->neigh), NEIGH_MAX);
	rig_settle(r);
}

/* Unasked words make no entry and change none; from beyond the link nothing counts. */
static void sec_5_8_spoofs(void **state)
{
	struct rig *r = *state;
	const struct ip_addr peer = rig_addr(1, 6), none = rig_ip("2001:db8::77");
	const uint8_t *mac;
	uint8_t na[32] = {ICMP6_NA, [4] = 0x20};
	unsigned before;
	uint64_t bad;

	stack_ping(r->s[0], &peer, 1, 1, 8, r->now);
	rig_run(r, NSEC_PER_SEC);
	before = neigh_count(r->s[0]->neigh);
	ndp_build_mac(na + 24, NDP_DST_MAC, (const uint8_t *)"\2\0\0\0\0\x66");
	memcpy(na + 8, none.b, 16);
	give6(r, "2001:db8::77", "ff02::1", 255, IP_PROTO_ICMP6, na, sizeof(na));
	assert_int_equal(neigh_count(r->s[0]->neigh), before);
	memcpy(na + 8, peer.b, 16);
	give6(r, "2001:db8::2", "ff02::1", 255, IP_PROTO_ICMP6, na, sizeof(na));
	mac = neigh_resolve(r->s[0]->neigh, &peer, NULL, r->now);
	assert_non_null(mac);
	assert_memory_equal(mac, "\2\0\0\0\0\2", 6);
	/* hops, code, a solicited one to many [RFC 4861 7.1.2] */
	bad = counters(r)->nd_bad;
	give6(r, "2001:db8::2", "ff02::1", 254, IP_PROTO_ICMP6, na, sizeof(na));
	na[1] = 1;
	give6(r, "2001:db8::2", "ff02::1", 255, IP_PROTO_ICMP6, na, sizeof(na));
	na[1] = 0;
	na[4] = 0x60;
	give6(r, "2001:db8::2", "ff02::1", 255, IP_PROTO_ICMP6, na, sizeof(na));
	assert_int_equal(counters(r)->nd_bad, bad + 3);
}

/* Routers and prefixes without end: sixteen addresses, four routers, what has no room is counted. */
static void sec_5_8_advertisements(void **state)
{
	struct rig *r = *state;
	unsigned routers = 0;

	for (unsigned i = 0; i < 100; i++) {
		uint8_t ra[16 + 32] = {ICMP6_RA, [6] = 1, [16] = NDP_PREFIX, 4, 64, 0xc0};
		struct ip_addr prefix = rig_ip("2001:db8:0:1::");
		char src[20];

		prefix.b[7] = (uint8_t)i;
		put_be32(ra + 20, 10000);
		put_be32(ra + 24, 10000);
		memcpy(ra + 32, prefix.b, 16);
		snprintf(src, sizeof(src), "fe80::%x", 1 + i);
		give6(r, src, "ff02::1", 255, IP_PROTO_ICMP6, ra, sizeof(ra));
		rig_settle(r);
	}
	for (unsigned i = 0; i < IFACE_ROUTERS; i++)
		routers += r->s[0]->face.router[i].until != 0;
	assert_int_equal(routers, IFACE_ROUTERS);
	assert_int_equal(r->s[0]->face.naddr, IFACE_ADDRS);
	assert_int_equal(counters(r)->ra_in, 100);
	assert_true(counters(r)->ra_full > 2 * (100 - 20));
}

/* What the link does not take waits up to a cap. */
static void sec_5_9_link_stands(void **state)
{
	struct rig *r = *state;
	const struct ip_addr peer = rig_addr(1, 4);

	stack_ping(r->s[0], &peer, 1, 1, 8, r->now);
	rig_run(r, NSEC_PER_SEC);
	for (unsigned i = 0; i < STACK_OUT_MAX + 100; i++) {
		uint8_t echo[8] = {ICMP4_ECHO, 0, 0xf7, 0xff};

		give4(r, "10.0.0.2", 1, 0, 0, echo, 8);
	}
	assert_int_equal(counters(r)->out_full, 100);
	rig_settle(r);
}

/* ---- 5.9 ---- */

/* No errors about errors, about what went to many, or came from nobody. [RFC 1122 3.2.2] */
static void sec_5_9_no_answer(void **state)
{
	struct rig *r = *state;
	uint8_t error[8 + 28] = {ICMP4_UNREACH, 3, [8] = 0x45}, none[8] = {0}, group[8] = {0};
	const struct ip_addr peer = rig_addr(1, 4);
	struct csum c = {0};

	stack_ping(r->s[0], &peer, 1, 1, 8, r->now);
	rig_run(r, NSEC_PER_SEC);
	csum_piece(&c, error, sizeof(error));
	put_be16(error + 2, csum_end(&c));
	give4(r, "10.0.0.2", 1, 0, 0, error, sizeof(error));
	assert_int_equal(counters(r)->icmp_ignored, 1);
	give4(r, "10.0.0.2", 99, IP4_MF | 10, 7, group, 8); /* not the first piece */
	give4(r, "0.0.0.0", 99, 0, 0, none, 8);
	give4(r, "224.0.0.1", 99, 0, 0, none, 8);
	give4(r, "127.0.0.1", 99, 0, 0, none, 8);
	give6(r, "2001:db8::2", "ff02::1", 64, 99, none, 8);
	/* an option that must be known, in an error and in a redirect [RFC 4443 2.4 e] */
	give6(r, "2001:db8::2", "2001:db8::1", 64, 60,
		(uint8_t[24]){58, 0, 0x80, 4, [8] = ICMP6_UNREACH}, 24);
	give6(r, "2001:db8::2", "2001:db8::1", 64, 60,
		(uint8_t[24]){58, 0, 0x80, 4, [8] = ICMP6_REDIRECT}, 24);
	/* not the first piece, and of a length that only the last may have */
	give6(r, "2001:db8::2", "2001:db8::1", 64, IP6_NEXT_FRAG,
		(uint8_t[17]){17, 0, 0, 9, 0, 0, 0, 1}, 17);
	assert_int_equal(counters(r)->icmp_errors, 0);
	give4(r, "10.0.0.2", 99, 0, 0, none, 8);
	assert_int_equal(counters(r)->icmp_errors, 1);
	give6(r, "2001:db8::2", "2001:db8::1", 64, 60,
		(uint8_t[24]){58, 0, 0x80, 4, [8] = ICMP6_ECHO}, 24);
	assert_int_equal(counters(r)->icmp_errors, 2);
}

/* So many for each who asks, after random times: what one gets says nothing of others. [CVE-2020-25705] */
static void sec_5_9_budgets(void **state)
{
	struct rig *r = *state;
	uint8_t none[8] = {0};
	uint64_t was;

	for (unsigned i = 0; i < 100; i++)
		give4(r, "10.0.0.2", 99, 0, 0, none, 8);
	assert_int_equal(counters(r)->icmp_errors, ICMP_BURST);
	for (unsigned i = 0; i < 100; i++)
		give4(r, "10.0.0.3", 99, 0, 0, none, 8);
	assert_int_equal(counters(r)->icmp_errors, 2 * ICMP_BURST);
	was = counters(r)->echo_replies;
	for (unsigned i = 0; i < 5000; i++) {
		uint8_t echo[8] = {ICMP4_ECHO, 0, 0xf7, 0xff};

		give4(r, "10.0.0.2", 1, 0, 0, echo, 8);
		if (i % 500 == 0)
			rig_settle(r);
	}
	assert_int_equal(counters(r)->echo_replies - was, ICMP_ECHO_BURST);
	rig_settle(r);
}

static void too_big(struct rig *r, uint16_t mtu, uint16_t port)
{
	uint8_t m[8 + 28] = {ICMP4_UNREACH, ICMP4_FRAG_NEEDED};
	struct ip4 ip = {
		.ttl = 9, .proto = 17, .len = 1400, .src = {10, 0, 0, 1}, .dst = {10, 0, 0, 2}};
	struct csum c = {0};

	put_be16(m + 6, mtu);
	ip4_build(&ip, m + 8);
	put_be16(m + 28, 5555);
	put_be16(m + 30, port);
	csum_piece(&c, m, sizeof(m));
	put_be16(m + 2, csum_end(&c));
	give4(r, "10.0.0.9", 1, 0, 0, m, sizeof(m));
}

/* A smaller path is believed of what we may have sent only, and never below 552; no redirects. */
static void sec_5_9_forged(void **state)
{
	struct rig *r = *state;
	const struct ip_addr peer = rig_addr(1, 4), far = rig_ip("192.0.2.1");
	const struct udp_addr local = {.ip = rig_addr(0, 4), .port = 5555},
			      to = {.ip = peer, .port = 53};
	uint8_t redirect[36] = {5, 1, 0, 0, 10, 0, 0, 66};
	struct ip_addr src;
	struct csum c = {0};
	uint32_t mtu;
	struct udp_sock *u = udp_new(r->s[0], NULL);

	too_big(r, 1000, 53); /* nobody has that port */
	assert_int_equal(udp_bind(u, &local), 0);
	assert_int_equal(udp_connect(u, &to, r->now), 0);
	too_big(r, 1000, 54); /* or another peer */
	too_big(r, 551, 53);
	too_big(r, 0, 53);
	assert_int_equal(stack_route(r->s[0], &peer, &src, &mtu, r->now), 0);
	assert_int_equal(mtu, 1500);
	assert_int_equal(counters(r)->icmp_ignored, 4);
	too_big(r, 1000, 53);
	assert_int_equal(stack_route(r->s[0], &peer, &src, &mtu, r->now), 0);
	assert_int_equal(mtu, 1000);
	csum_piece(&c, redirect, sizeof(redirect));
	put_be16(redirect + 2, csum_end(&c));
	give4(r, "10.0.0.2", 1, 0, 0, redirect, sizeof(redirect));
	assert_int_not_equal(stack_route(r->s[0], &far, &src, &mtu, r->now), 0);
	udp_close(u);
}

/* ---- 5.11 ---- */

/* From nobody, from ourselves, from everybody; without the checksum that IPv6 asks for. */
static void sec_5_11_martians(void **state)
{
	static const char *const bad[] = {"127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.255",
		"10.0.0.1", "0.0.0.0", "240.1.2.3"};
	struct rig *r = *state;
	const struct ip_addr from = rig_addr(1, 6), to = rig_addr(0, 6);
	struct csum c = {0};
	uint8_t syn[20] = {0, 80, 0, 80, [12] = 0x50, [13] = 2}, udp[12] = {0, 9, 0, 9, 0, 12};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		give4(r, bad[i], 6, 0, 0, syn, 20);
		assert_int_equal(counters(r)->in_martian, i + 1);
	}
	give6(r, "::1", "2001:db8::1", 64, 6, syn, 20);
	give6(r, "ff02::1", "2001:db8::1", 64, 6, syn, 20);
	give6(r, "2001:db8::1", "2001:db8::1", 64, 6, syn, 20);
	give6(r, "10.0.0.2", "2001:db8::1", 64, 6, syn, 20); /* a mapped one */
	assert_int_equal(counters(r)->in_martian, 7 + 4);
	assert_int_equal(tcp_host_counters(stack_tcp(r->s[0]))->in_segs, 0);
	csum_pseudo6(&c, from.b, to.b, 17, sizeof(udp));
	csum_piece(&c, udp, sizeof(udp));
	put_be16(udp + 8, csum_end(&c)); /* in the payload: the sum is right, the field is 0 */
	give6(r, "2001:db8::2", "2001:db8::1", 64, 17, udp, sizeof(udp));
	assert_int_equal(counters(r)->in_csum, 1);
	assert_int_equal(counters(r)->udp_in, 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sec_5_6_overlaps),
		TEST(sec_5_6_shapes),
		TEST(sec_5_6_flood),
		TEST(sec_5_6_no_pieces_of_nd),
		TEST(sec_5_8_sweep),
		TEST(sec_5_8_askers),
		TEST(sec_5_8_spoofs),
		TEST(sec_5_8_advertisements),
		TEST(sec_5_9_link_stands),
		TEST(sec_5_9_no_answer),
		TEST(sec_5_9_budgets),
		TEST(sec_5_9_forged),
		TEST(sec_5_11_martians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
