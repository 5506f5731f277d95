/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto_test: the small protocols: built headers parse back to what they were, and bytes that
 * nobody should send are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "wire/arp.h"
#include "wire/dhcp.h"
#include "wire/icmp.h"
#include "wire/ip.h"
#include "wire/ip4.h"
#include "wire/ip6.h"
#include "wire/tcp.h"
#include "wire/udp.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	if (!ip_addr_parse_text(text, &a))
		fail_msg("%s", text);
	return a;
}

static void addresses(void **state)
{
	char text[IP_ADDR_TEXT];
	struct ip_addr a = addr("10.1.2.3"), b = addr("fe80::1");
	unsigned plen;

	(void)state;
	assert_int_equal(ip_addr_version(&a), 4);
	assert_int_equal(ip_addr_version(&b), 6);
	ip_addr_build_text(&a, text);
	assert_string_equal(text, "10.1.2.3");
	ip_addr_build_text(&b, text);
	assert_string_equal(text, "fe80::1");
	assert_true(ip_addr_parse_prefix("10.1.0.0/16", &b, &plen));
	assert_int_equal(plen, 112);
	assert_true(ip_addr_in(&a, &b, plen));
	assert_false(ip_addr_in(&a, &b, 128));
	assert_true(ip_addr_parse_prefix("2001:db8::/33", &b, &plen));
	a = addr("2001:db8:7fff::1");
	assert_true(ip_addr_in(&a, &b, plen));
	a = addr("2001:db8:8000::1");
	assert_false(ip_addr_in(&a, &b, plen));
	assert_false(ip_addr_parse_prefix("10.0.0.1/33", &a, &plen));
	assert_false(ip_addr_parse_prefix("10.0.0.1/", &a, &plen));
	assert_false(ip_addr_parse_text("::ffff:1.2.3.4", &a));
}

static void martians(void **state)
{
	static const char *const bad[] = {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1",
		"240.0.0.1", "255.255.255.255", "::", "::1", "ff02::1"};
	static const char *const good[] = {"10.0.0.1", "223.255.255.1", "fe80::1", "2001:db8::1"};
	struct ip_addr a;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		a = addr(bad[i]);
		assert_true(ip_addr_martian(&a));
	}
	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++) {
		a = addr(good[i]);
		assert_false(ip_addr_martian(&a));
	}
}

static void multicast_macs(void **state)
{
	struct ip_addr a = addr("224.129.2.3");
	uint8_t mac[6];

	(void)state;
	ip_addr_multicast_mac(&a, mac);
	assert_memory_equal(mac, "\x01\x00\x5e\x01\x02\x03", 6);
	a = addr("ff02::1:ff01:203");
	ip_addr_multicast_mac(&a, mac);
	assert_memory_equal(mac, "\x33\x33\xff\x01\x02\x03", 6);
	a = addr("255.255.255.255");
	ip_addr_multicast_mac(&a, mac);
	assert_memory_equal(mac, "\xff\xff\xff\xff\xff\xff", 6);
}

static void arp(void **state)
{
	const struct arp a = {ARP_REPLY, {1, 2, 3, 4, 5, 6}, {10, 0, 0, 1}, {7}, {10, 0, 0, 2}};
	uint8_t p[ARP_LEN];
	struct arp b;

	(void)state;
	arp_build(&a, p);
	assert_true(arp_parse(p, sizeof(p), &b));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_false(arp_parse(p, sizeof(p) - 1, &b));
	p[4] = 8;
	assert_false(arp_parse(p, sizeof(p), &b));
}

static void ip4(void **state)
{
	const struct ip4 a = {.tos = 3,
		.ttl = 64,
		.proto = 6,
		.id = 9,
		.frag = IP4_DF,
		.len = 40,
		.hlen = 20,
		.src = {10, 0, 0, 1},
		.dst = {10, 0, 0, 2}};
	uint8_t p[IP4_HLEN], routed[28] = {[20] = 1, 131, 7, 4};
	struct ip4 b;

	(void)state;
	ip4_build(&a, p);
	assert_true(ip4_parse(p, sizeof(p), &b));
	assert_int_equal(b.len, 40);
	assert_int_equal(b.frag, IP4_DF);
	assert_memory_equal(a.dst, b.dst, 4);
	p[1] ^= 1;
	assert_false(ip4_parse(p, sizeof(p), &b));
	p[1] ^= 1;
	p[3] = 19; /* less than its header */
	ip4_csum(p);
	assert_false(ip4_parse(p, sizeof(p), &b));
	assert_true(ip4_source_routed(routed, 28));
	routed[21] = 7;
	routed[22] = 0; /* a length that would never end */
	assert_false(ip4_source_routed(routed, 28));
}

static enum ip6_walk_result walk(uint8_t *p, size_t len, struct ip6_walk *w)
{
	struct ip6 h = {.next = IP6_NEXT_HOP, .hops = 1};

	ip6_build(&h, p);
	return ip6_walk(p, len, w);
}

static void ip6(void **state)
{
	uint8_t p[IP6_HLEN + 24] = {0};
	struct ip6_walk w;
	struct ip6 a = {.tclass = 0xab, .flow = 0x12345, .len = 7, .next = 17, .hops = 255}, b;
	struct ip6_frag f = {.next = 6, .more = true, .offset = 1448, .id = 77}, g;

	(void)state;
	ip6_build(&a, p);
	assert_true(ip6_parse(p, sizeof(p), &b));
	assert_int_equal(b.flow, 0x12345);
	assert_int_equal(b.tclass, 0xab);
	ip6_frag_build(&f, p);
	assert_true(ip6_frag_parse(p, 8, &g));
	assert_true(g.more && g.offset == 1448 && g.id == 77);

	memcpy(p + 40, (uint8_t[]){60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0x1e, 4, 0, 0, 0, 0}, 16);
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_OK);
	assert_int_equal(w.next, 6);
	assert_int_equal(w.at, 56);
	p[50] = 0x5e; /* discard */
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_DROP);
	p[50] = 0xde; /* discard and tell */
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_PROBLEM);
	assert_int_equal(w.pointer, 50);
	assert_int_equal(walk(p, 50, &w), IP6_WALK_DROP);
	p[51] = 5; /* beyond its header */
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_DROP);
	p[40] = 43; /* a routing header with a segment left */
	p[51] = 1;
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_PROBLEM);
	p[51] = 0;
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_OK);
	p[40] = 0; /* hop-by-hop again */
	assert_int_equal(walk(p, sizeof(p), &w), IP6_WALK_PROBLEM);
}

static void tcp_udp(void **state)
{
	const struct tcp_hdr t = {1, 2, 3, 4, 32, TCP_SYN | TCP_CWR, 5, 6, 7};
	const struct udp u = {1, 2, 3, 4};
	uint8_t p[TCP_HLEN];
	struct tcp_hdr t2;
	struct udp u2;

	(void)state;
	tcp_hdr_build(&t, p);
	t2 = tcp_hdr_parse(p);
	assert_memory_equal(&t, &t2, sizeof(t));
	udp_build(&u, p);
	u2 = udp_parse(p);
	assert_memory_equal(&u, &u2, sizeof(u));
}

static void ndp(void **state)
{
	uint8_t p[48] = {0};
	struct ndp_options o;

	(void)state;
	ndp_build_mac(p, NDP_SRC_MAC, (const uint8_t *)"\1\2\3\4\5\6");
	memcpy(p + 8, (uint8_t[]){NDP_MTU, 1, 0, 0, 0, 0, 5, 0}, 8);
	memcpy(p + 16, (uint8_t[]){NDP_PREFIX, 4, 64, 0xc0, 0, 0, 1, 0, 0, 0, 2, 0}, 12);
	p[32] = 0x20;
	assert_true(ndp_parse_options(p, sizeof(p), NDP_SRC_MAC, &o));
	assert_memory_equal(o.mac, "\1\2\3\4\5\6", 6);
	assert_int_equal(o.mtu, 1280);
	assert_int_equal(o.nprefix, 1);
	assert_int_equal(o.prefix[0].valid, 256);
	assert_int_equal(o.prefix[0].prefix.b[0], 0x20);
	assert_false(ndp_parse_options(p, 47, NDP_SRC_MAC, &o));
	p[9] = 0;
	assert_false(ndp_parse_options(p, sizeof(p), NDP_SRC_MAC, &o));
}

static void dhcp(void **state)
{
	const struct dhcp a = {.reply = true,
		.type = DHCP_ACK,
		.xid = 0x01020304,
		.broadcast = true,
		.yiaddr = 0x0a000005,
		.mac = {2, 0, 0, 0, 0, 5},
		.server = 0x0a000001,
		.mask = 0xffffff00,
		.router = 0x0a000001,
		.dns = {0x0a000003},
		.lease = 3600,
		.t1 = 1800,
		.t2 = 3000,
		.mtu = 9000};
	uint8_t p[DHCP_MAX];
	struct dhcp b;
	size_t len = dhcp_build(&a, p);

	(void)state;
	assert_true(dhcp_parse(p, len, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_false(dhcp_parse(p, 239, &b));
	p[241] = 255; /* the first option runs over the end */
	assert_false(dhcp_parse(p, 300, &b));
}

/* Rubbish: nothing reads beyond what there is (the sanitizer watches), nothing hangs. */
static void rubbish(void **state)
{
	const char *env = getenv("SEED");
	const uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	struct rand r;

	(void)state;
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned i = 0; i < 50000; i++) {
		const size_t len = 40 + rand_below(&r, 300);
		uint8_t *p = malloc(len);
		struct ndp_options o;
		struct ip6_walk w;
		struct dhcp d;
		struct ip4 h;

		for (size_t k = 0; k < len; k++)
			p[k] = rand_below(&r, 3) ? (uint8_t)rand_below(&r, 4)
						 : (uint8_t)rand_u64(&r);
		ip4_parse(p, len, &h);
		ip4_source_routed(p, 60 < len ? 60 : (unsigned)len);
		if (ip6_walk(p, len, &w) == IP6_WALK_OK && w.next == IP6_NEXT_FRAG)
			ip6_walk_on(p, len, &w);
		ndp_parse_options(p, len, NDP_SRC_MAC, &o);
		if (len >= 240) {
			p[1] = 1;
			p[2] = 6;
			put_be32(p + 236, 0x63825363);
		}
		dhcp_parse(p, len, &d);
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(martians),
		cmocka_unit_test(multicast_macs),
		cmocka_unit_test(arp),
		cmocka_unit_test(ip4),
		cmocka_unit_test(ip6),
		cmocka_unit_test(tcp_udp),
		cmocka_unit_test(ndp),
		cmocka_unit_test(dhcp),
		cmocka_unit_test(rubbish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
