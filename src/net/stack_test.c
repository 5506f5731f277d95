/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_test: two hosts on a wire: they find each other, ping each other in both versions and all
 * sizes, configure themselves, and refuse what nobody may send.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "net/stack_int.h"
#include "net/stack_rig.h"
#include "net/tcp.h"
#include "wire/arp.h"
#include "wire/dhcp.h"
#include "wire/eth.h"
#include "wire/icmp.h"
#include "wire/udp.h"

struct pongs {
	unsigned n;
	uint32_t len;
	uint16_t seq;
};

static void on_pong(void *ctx, const struct ip_addr *from, uint16_t id, uint16_t seq, uint32_t len)
{
	struct pongs *p = ctx;

	(void)from;
	assert_int_equal(id, 77);
	p->n++;
	p->seq = seq;
	p->len = len;
}

static void ping_sizes(void **state)
{
	static const uint32_t sizes[] = {0, 1, 56, 1000, 1452, 1472, 1473, 3000, 10000, 65000};
	struct rig *r = *state;
	struct pongs got = {0};

	stack_on_pong(r->s[0], on_pong, &got);
	for (unsigned wire = 0; wire < 2; wire++)
		for (unsigned version = 4; version <= 6; version += 2)
			for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
				const struct ip_addr dst = rig_addr(1, version);

				r->wire = wire;
				got = (struct pongs){0};
				assert_int_equal(stack_ping(r->s[0], &dst, 77, (uint16_t)i,
							 sizes[i], r->now),
					0);
				rig_run(r, NSEC_PER_SEC);
				assert_int_equal(got.n, 1);
				assert_int_equal(got.len, sizes[i]);
				assert_int_equal(got.seq, i);
			}
	assert_int_equal(stack_counters(r->s[1])->in_csum, 0);
	assert_int_equal(stack_counters(r->s[1])->in_bad, 0);
	assert_true(stack_counters(r->s[0])->out_fragments > 100);
}

static void ping_self(void **state)
{
	struct rig *r = *state;
	struct pongs got = {0};
	struct ip_addr self = rig_addr(0, 4);
	const unsigned before = r->frames[0];

	stack_on_pong(r->s[0], on_pong, &got);
	assert_int_equal(stack_ping(r->s[0], &self, 77, 1, 5000, r->now), 0);
	self = rig_addr(0, 6);
	assert_int_equal(stack_ping(r->s[0], &self, 77, 1, 5000, r->now), 0);
	rig_run(r, NSEC_PER_MSEC);
	assert_int_equal(got.n, 2);
	assert_int_equal(r->frames[0], before);
}

static void no_way(void **state)
{
	struct rig *r = *state;
	struct ip_addr far = rig_ip("192.0.2.1"), gateway = rig_addr(1, 4);
	const uint64_t before = stack_counters(r->s[1])->in_not_ours;
	struct err err;

	assert_int_equal(stack_ping(r->s[0], &far, 1, 1, 8, r->now), -EHOSTUNREACH);
	assert_int_equal(stack_add_gateway(r->s[0], &gateway, &err), 0);
	assert_int_equal(stack_ping(r->s[0], &far, 1, 1, 8, r->now), 0);
	rig_run(r, NSEC_PER_SEC);
	/* the other one is no router */
	assert_int_equal(stack_counters(r->s[1])->in_not_ours, before + 1);
}

/* ---- neighbours ---- */

static void nobody_answers(void **state)
{
	struct rig *r = *state;
	const struct ip_addr dst = rig_ip("10.0.0.99");

	for (unsigned i = 0; i < NEIGH_QUEUE + 7; i++)
		stack_ping(r->s[0], &dst, 1, 1, 8, r->now);
	rig_run(r, 4 * NSEC_PER_SEC);
	assert_int_equal(stack_counters(r->s[0])->out_unreachable, NEIGH_QUEUE);
	assert_int_equal(neigh_counters(r->s[0]->neigh)->asked, NEIGH_ASKS);
	assert_int_equal(neigh_counters(r->s[0]->neigh)->queue_full, 7);
}

/* A scan of the link costs a bounded table, and does not keep anybody from being found. */
static void scan(void **state)
{
	struct rig *r = *state;
	struct pongs got = {0};
	const struct ip_addr dst = rig_addr(1, 6);
	struct ip_addr x = dst;

	stack_on_pong(r->s[0], on_pong, &got);
	for (unsigned i = 0; i < 100000; i++) {
		put_be32(x.b + 12, 0x10000 + i);
		stack_ping(r->s[0], &x, 1, 1, 8, r->now);
		if (i % 100 == 0)
			rig_settle(r);
	}
	assert_true(neigh_count(r->s[0]->neigh) <= NEIGH_INCOMPLETE + 2);
	stack_ping(r->s[0], &dst, 77, 1, 8, r->now);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(got.n, 1);
}

static void send_arp(
	struct rig *r, unsigned to, uint16_t op, const char *spa, const char *tpa, uint8_t who)
{
	uint8_t p[60] = {2, 0, 0, 0, 0, (uint8_t)(1 + to), 2, 0, 0, 0, 0, who, 8, 6};
	struct arp a = {.op = op, .sha = {2, 0, 0, 0, 0, who}};
	const struct ip_addr s = rig_ip(spa), t = rig_ip(tpa);

	memcpy(a.spa, ip_addr_v4(&s), 4);
	memcpy(a.tpa, ip_addr_v4(&t), 4);
	arp_build(&a, p + 14);
	rig_inject(r, to, p, sizeof(p));
}

/* Unasked replies make no entry; a liar does not take over an address whose owner answers. */
static void arp_spoof(void **state)
{
	struct rig *r = *state;
	struct pongs got = {0};
	const struct ip_addr dst = rig_addr(1, 4);
	unsigned before;

	stack_on_pong(r->s[0], on_pong, &got);
	stack_ping(r->s[0], &dst, 77, 1, 8, r->now);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(got.n, 1);
	before = neigh_count(r->s[0]->neigh);
	send_arp(r, 0, ARP_REPLY, "10.0.0.50", "10.0.0.1", 66);
	assert_int_equal(neigh_count(r->s[0]->neigh), before);
	send_arp(r, 0, ARP_REPLY, "10.0.0.2", "10.0.0.1", 66);
	send_arp(r, 0, ARP_REQUEST, "10.0.0.2", "10.0.0.2", 66);
	assert_true(neigh_counters(r->s[0]->neigh)->conflicts > 0);
	stack_ping(r->s[0], &dst, 77, 2, 8, r->now);
	rig_run(r, 5 * NSEC_PER_SEC);
	assert_int_equal(got.n, 2);
	stack_ping(r->s[0], &dst, 77, 3, 8, r->now);
	rig_run(r, 5 * NSEC_PER_SEC);
	assert_int_equal(got.n, 3);
}

/* ---- IPv6 addresses ---- */

static void link_local(void **state)
{
	struct rig *r = *state;
	struct pongs got = {0};
	struct ip_addr a, b;

	assert_true(stack_link_local(r->s[0], &a) && stack_link_local(r->s[1], &b));
	stack_on_pong(r->s[0], on_pong, &got);
	stack_ping(r->s[0], &b, 77, 1, 100, r->now);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(got.n, 1);
}

static void duplicate(void **state)
{
	struct rig *r = *state;
	const struct ip_addr taken = rig_addr(1, 6);
	struct err err;

	assert_int_equal(stack_add_addr(r->s[0], &taken, 64, r->now, &err), 0);
	rig_run(r, 3 * NSEC_PER_SEC);
	assert_null(iface_find(&r->s[0]->face, &taken));
	assert_int_equal(stack_counters(r->s[0])->dad_conflicts, 1);
	assert_non_null(iface_find(&r->s[1]->face, &taken));
}

/* A router's word, as from host 1. */
static void advertise(struct rig *r, uint8_t hops, uint32_t valid, uint16_t lifetime)
{
	uint8_t p[14 + 40 + 16 + 8 + 8 + 32] = {
		0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd};
	struct ip6 ip = {.next = 58, .hops = hops, .len = sizeof(p) - 54};
	struct ip_addr src, dst = rig_ip("ff02::1"), prefix = rig_ip("2001:db8:7::");
	struct csum c = {0};
	uint8_t *m = p + 54;

	assert_true(stack_link_local(r->s[1], &src));
	memcpy(ip.src, src.b, 16);
	memcpy(ip.dst, dst.b, 16);
	ip6_build(&ip, p + 14);
	m[0] = ICMP6_RA;
	put_be16(m + 6, lifetime);
	ndp_build_mac(m + 16, NDP_SRC_MAC, (const uint8_t *)"\2\0\0\0\0\2");
	memcpy(m + 24, (uint8_t[]){NDP_MTU, 1, 0, 0, 0, 0, 5, 0x78}, 8);
	memcpy(m + 32, (uint8_t[]){NDP_PREFIX, 4, 64, 0xc0}, 4);
	put_be32(m + 36, valid);
	put_be32(m + 40, valid);
	memcpy(m + 48, prefix.b, 16);
	csum_pseudo6(&c, ip.src, ip.dst, 58, sizeof(p) - 54);
	csum_piece(&c, m, sizeof(p) - 54);
	put_be16(m + 2, csum_end(&c));
	rig_inject(r, 0, p, sizeof(p));
}

static void router(void **state)
{
	struct rig *r = *state;
	const struct ip_addr expect = rig_ip("2001:db8:7::ff:fe00:1"),
			     far = rig_ip("2001:db8:9::1");
	struct ip_addr src;
	uint32_t mtu;

	advertise(r, 64, 1000, 600); /* not from the link */
	assert_int_equal(stack_counters(r->s[0])->nd_bad, 1);
	assert_int_equal(stack_route(r->s[0], &far, &src, &mtu, r->now), -EHOSTUNREACH);
	advertise(r, 255, 10000, 600);
	rig_run(r, 2 * NSEC_PER_SEC);
	(void)expect;
	assert_int_equal(stack_route(r->s[0], &far, &src, &mtu, r->now), 0);
	assert_int_equal(mtu, 1400);
	/* the lifetime cannot be cut to nothing, and ends by itself */
	advertise(r, 255, 1, 600);
	rig_run(r, 100 * NSEC_PER_SEC);
	src = rig_ip("2001:db8:7::2");
	assert_true(iface_on_link(&r->s[0]->face, &far) == false);
	rig_run(r, 601 * NSEC_PER_SEC);
	assert_int_equal(stack_route(r->s[0], &far, &src, &mtu, r->now), -EHOSTUNREACH);
}

/* ---- what is refused ---- */

static uint32_t make_udp4(uint8_t *p, unsigned to, const char *src, const char *dst, bool l2_group)
{
	const struct ip_addr s = rig_ip(src), d = rig_ip(dst);
	struct ip4 ip = {.ttl = 9, .proto = 17, .len = 36};

	memset(p, 0, 60);
	memcpy(p, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(1 + to), 2, 0, 0, 0, 0, 9, 8, 0}, 14);
	if (l2_group)
		memset(p, 0xff, 6);
	memcpy(ip.src, ip_addr_v4(&s), 4);
	memcpy(ip.dst, ip_addr_v4(&d), 4);
	ip4_build(&ip, p + 14);
	put_be16(p + 34, 1000);
	put_be16(p + 36, 2000);
	put_be16(p + 38, 16);
	return 60;
}

static void martians(void **state)
{
	static const char *const bad[] = {"127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.255",
		"10.0.0.1", "0.0.0.0", "240.1.2.3"};
	struct rig *r = *state;
	const struct stack_counters *c = stack_counters(r->s[0]);
	uint8_t p[64];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		make_udp4(p, 0, bad[i], "10.0.0.1", false);
		rig_inject(r, 0, p, 60);
		assert_int_equal(c->in_martian, i + 1);
	}
	make_udp4(p, 0, "10.0.0.3", "10.0.0.1", true); /* to all by Ethernet, to one by IP */
	rig_inject(r, 0, p, 60);
	assert_int_equal(c->in_martian, 8);
	assert_int_equal(c->udp_in, 0);
	make_udp4(p, 0, "10.0.0.3", "10.0.0.1", false);
	p[24] ^= 1;
	rig_inject(r, 0, p, 60);
	assert_int_equal(c->in_bad, 1);
	make_udp4(p, 0, "10.0.0.3", "10.0.0.1", false);
	p[0] = 4;
	rig_inject(r, 0, p, 60);
	assert_int_equal(c->in_other, 1);
}

static void send_syn(struct rig *r, const char *src, const char *dst, bool l2_group)
{
	const struct ip_addr s = rig_ip(src), d = rig_ip(dst);
	struct ip4 ip = {.ttl = 9, .proto = 6, .len = 40};
	struct csum c = {0};
	uint8_t p[60];

	make_udp4(p, 0, src, dst, l2_group);
	memcpy(ip.src, ip_addr_v4(&s), 4);
	memcpy(ip.dst, ip_addr_v4(&d), 4);
	ip4_build(&ip, p + 14);
	memset(p + 34, 0, 20);
	put_be16(p + 34, 80);
	put_be16(p + 36, 80);
	p[46] = 0x50;
	p[47] = 2;
	csum_pseudo4(&c, ip.src, ip.dst, 6, 20);
	csum_piece(&c, p + 34, 20);
	put_be16(p + 50, csum_end(&c));
	rig_inject(r, 0, p, 60);
}

/* A SYN from nobody, from ourselves (LAND) or to everybody gets no answer; an honest one a RST. */
static void syns(void **state)
{
	struct rig *r = *state;
	const struct tcp_counters *c = tcp_host_counters(stack_tcp(r->s[0]));

	send_syn(r, "10.0.0.1", "10.0.0.1", false);
	send_syn(r, "10.0.0.2", "10.0.0.255", true);
	send_syn(r, "10.0.0.2", "255.255.255.255", true);
	send_syn(r, "10.0.0.2", "224.0.0.1", true);
	send_syn(r, "224.0.0.1", "10.0.0.1", false);
	send_syn(r, "127.0.0.1", "10.0.0.1", false);
	send_syn(r, "10.0.0.255", "10.0.0.1", false);
	assert_int_equal(c->in_segs, 0);
	send_syn(r, "10.0.0.2", "10.0.0.1", false);
	rig_run(r, NSEC_PER_MSEC);
	assert_int_equal(c->in_segs, 1);
	assert_int_equal(c->rst_sent, 1);
}

/* Errors about closed ports: a few at once, then few; never about what went to many. */
static void unreachable(void **state)
{
	struct rig *r = *state;
	const struct stack_counters *c = stack_counters(r->s[0]);
	const struct ip_addr peer = rig_addr(1, 4);
	uint8_t p[64];

	stack_ping(r->s[0], &peer, 1, 1, 1, r->now); /* its address is known then */
	rig_run(r, NSEC_PER_SEC);
	for (unsigned i = 0; i < 100; i++) {
		make_udp4(p, 0, "10.0.0.2", "10.0.0.1", false);
		rig_inject(r, 0, p, 60);
	}
	assert_int_equal(c->icmp_errors, ICMP_BURST);
	assert_int_equal(c->icmp_limited, 100 - ICMP_BURST);
	rig_run(r, 10 * NSEC_PER_SEC);
	make_udp4(p, 0, "10.0.0.2", "10.0.0.255", true);
	rig_inject(r, 0, p, 60);
	assert_int_equal(c->icmp_errors, ICMP_BURST);
	make_udp4(p, 0, "10.0.0.2", "10.0.0.1", false);
	rig_inject(r, 0, p, 60);
	assert_int_equal(c->icmp_errors, ICMP_BURST + 1);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(stack_counters(r->s[1])->icmp_ignored, ICMP_BURST + 1); /* nobody there */
}

static void rubbish(void **state)
{
	struct rig *r = *state;
	const char *env = getenv("SEED");
	const uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	struct rand rnd;

	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	for (unsigned i = 0; i < 20000; i++) {
		const uint32_t len = 14 + rand_below(&rnd, 300);
		uint8_t *p = malloc(len);

		for (uint32_t k = 0; k < len; k++)
			p[k] = rand_below(&rnd, 3) ? (uint8_t)rand_below(&rnd, 4)
						   : (uint8_t)rand_u64(&rnd);
		memcpy(p, rand_below(&rnd, 2) ? "\2\0\0\0\0\1" : "\x33\x33\0\0\0\1", 6);
		if (rand_below(&rnd, 4)) {
			static const uint16_t types[] = {0x800, 0x86dd, 0x806};
			struct ip4 ip = {.ttl = 255,
				.proto = (uint8_t[]){1, 6, 17, 2}[rand_below(&rnd, 4)],
				.len = (uint16_t)(len - 14),
				.src = {10, 0, 0, 2},
				.dst = {10, 0, 0, 1}};
			struct ip6 ip6 = {.hops = 255,
				.len = (uint16_t)(len > 54 ? len - 54 : 0),
				.next = (uint8_t[]){58, 44, 0, 43, 60, 17}[rand_below(&rnd, 6)],
				.src = {0xfe, 0x80, [15] = 9},
				.dst = {0xff, 2, [15] = 1}};
			const unsigned t = rand_below(&rnd, 3);

			put_be16(p + 12, types[t]);
			if (t == 0 && len >= 34) {
				ip.frag = rand_below(&rnd, 2) ? (uint16_t)rand_below(&rnd, 0x2010)
							      : 0;
				ip4_build(&ip, p + 14);
			} else if (t == 1 && len >= 54) {
				ip6_build(&ip6, p + 14);
			}
		}
		rig_inject(r, 0, p, len);
		free(p);
		if (i % 64 == 0)
			rig_run(r, 10 * NSEC_PER_MSEC);
	}
	rig_run(r, 60 * NSEC_PER_SEC);
	assert_true(reass_bytes(r->s[0]->reass) == 0);
}

/* ---- DHCP ---- */

struct server {
	unsigned discovers, requests, unicast;
	bool mute;
};

/* A small server on the wire behind host 0. */
static bool dhcp_server(struct rig *r, unsigned from, struct frame *f)
{
	struct server *s = r->ctx;
	uint8_t flat[2000], p[14 + 28 + DHCP_MAX] = {0};
	struct iovec to = {flat, sizeof(flat)};
	struct dhcp q, a = {.reply = true,
			       .lease = 3600,
			       .mask = 0xffffff00,
			       .router = 0x0a0000fe,
			       .dns = {0x0a0000fd},
			       .server = 0x0a0000fe,
			       .yiaddr = 0x0a000007};
	struct ip4 ip = {
		.ttl = 64, .proto = 17, .src = {10, 0, 0, 254}, .dst = {255, 255, 255, 255}};
	struct udp u = {67, 68, 0, 0};

	if (from || frame_len(f) < 42 + 240 || f->head[23] != 17 || get_be16(f->head + 36) != 67)
		return true;
	frame_copy(f, 0, frame_len(f), &to, 1, 0);
	assert_true(dhcp_parse(flat + 42, frame_len(f) - 42, &q));
	s->discovers += q.type == DHCP_DISCOVER;
	s->requests += q.type == DHCP_REQUEST;
	s->unicast += flat[0] != 0xff;
	if (s->mute)
		return false;
	a.xid = q.xid;
	memcpy(a.mac, q.mac, 6);
	a.type = q.type == DHCP_DISCOVER ? DHCP_OFFER : DHCP_ACK;
	u.len = (uint16_t)(8 + dhcp_build(&a, p + 42));
	ip.len = (uint16_t)(20 + u.len);
	memset(p, 0xff, 6);
	memcpy(p + 6, "\2\0\0\0\0\xfe\x08\0", 8);
	udp_build(&u, p + 34);
	ip4_build(&ip, p + 14);
	rig_inject(r, 0, p, 14u + ip.len);
	return false;
}

static void dhcp(void **state)
{
	struct rig *r = *state;
	struct server s = {0};
	struct stack_conf a = rig_conf(0), b = rig_conf(1);
	struct ip_addr ip, dns;

	rig_fini(r);
	a.dhcp = true;
	rig_init_conf(r, &a, &b);
	r->ctx = &s;
	r->hook = dhcp_server;
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(s.discovers, 1);
	assert_int_equal(s.requests, 1);
	assert_true(stack_addr(r->s[0], 4, &ip));
	assert_int_equal(ip_addr_u32(&ip), 0x0a000007);
	assert_int_equal(stack_dns(r->s[0], &dns, 1), 1);
	/* renewed at half time, from the server whose address is asked for first */
	send_arp(r, 0, ARP_REQUEST, "10.0.0.254", "10.0.0.7", 0xfe);
	rig_run(r, 1810 * NSEC_PER_SEC);
	assert_int_equal(s.requests, 2);
	assert_true(s.unicast >= 1);
	/* nobody answers: the address goes when the lease ends */
	s.mute = true;
	rig_run(r, 3700 * NSEC_PER_SEC);
	assert_false(stack_addr(r->s[0], 4, &ip));
	assert_true(s.discovers > 1);
	s.mute = false;
	rig_run(r, 100 * NSEC_PER_SEC);
	assert_true(stack_addr(r->s[0], 4, &ip));
	r->hook = NULL;
	r->ctx = NULL;
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ping_sizes),
		TEST(ping_self),
		TEST(no_way),
		TEST(nobody_answers),
		TEST(scan),
		TEST(arp_spoof),
		TEST(link_local),
		TEST(duplicate),
		TEST(router),
		TEST(martians),
		TEST(syns),
		TEST(unreachable),
		TEST(rubbish),
		TEST(dhcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
