/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock_test: sockets of two hosts on a wire in virtual time: UDP with trains and fragments, TCP in both
 * versions and directions, as super-packets and as wire segments; what fails says so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "net/sock.h"
#include "net/stack_rig.h"
#include "net/tcp.h"
#include "wire/csum.h"
#include "wire/ip4.h"
#include "wire/ip6.h"

#define TOTAL (8 << 20)

struct bed {
	struct rig r;
	struct sock_table *t[2];
	uint8_t *bytes, *got;
};

static int setup(void **state)
{
	struct bed *b = malloc(sizeof(*b));
	const struct stack_conf c0 = rig_conf(0), c1 = rig_conf(1);
	struct rand rnd;
	struct err err;

	rig_init_conf(&b->r, &c0, &c1);
	rig_addresses(&b->r);
	assert_int_equal(sock_table_new(&b->t[0], b->r.s[0], &err), 0);
	assert_int_equal(sock_table_new(&b->t[1], b->r.s[1], &err), 0);
	b->bytes = malloc(TOTAL);
	b->got = malloc(TOTAL);
	rand_init(&rnd, 5);
	for (unsigned i = 0; i < TOTAL; i += 8) {
		const uint64_t x = rand_u64(&rnd);

		memcpy(b->bytes + i, &x, 8);
	}
	rig_run(&b->r, 3 * NSEC_PER_SEC);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	sock_table_free(b->t[0], b->r.now);
	sock_table_free(b->t[1], b->r.now);
	rig_fini(&b->r);
	free(b->bytes);
	free(b->got);
	free(b);
	return 0;
}

static struct udp_addr at(unsigned host, unsigned version, uint16_t port)
{
	return (struct udp_addr){rig_addr(host, version), port};
}

/* ---- UDP ---- */

static int udp_bound(struct bed *b, unsigned host, uint16_t port)
{
	const int s = sock_open(b->t[host], SOCK_KIND_UDP);

	assert_true(s >= 0);
	assert_int_equal(sock_bind(b->t[host], s, &(struct udp_addr){.port = port}), 0);
	return s;
}

static ssize_t put(
	struct bed *b, int s, const struct udp_addr *to, uint32_t from, uint32_t len, uint16_t gso)
{
	const struct iovec v[2] = {
		{b->bytes + from, len / 3}, {b->bytes + from + len / 3, len - len / 3}};

	return sock_send(b->t[0], s, v, 2, 0, to, gso, b->r.now);
}

static ssize_t take(struct bed *b, int s, struct udp_info *info)
{
	const struct iovec v = {b->got, TOTAL};

	return sock_recv(b->t[1], s, &v, 1, 0, info, b->r.now);
}

static void udp_sizes(void **state)
{
	static const uint32_t sizes[] = {0, 1, 1200, 1452, 1472, 1473, 9000, 65487};
	struct bed *b = *state;
	const int c = udp_bound(b, 0, 0), s = udp_bound(b, 1, 53);
	struct udp_info info;

	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned wire = 0; wire < 2; wire++)
			for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
				const struct udp_addr to = at(1, version, 53);

				b->r.wire = wire;
				assert_int_equal(put(b, c, &to, i * 100, sizes[i], 0), sizes[i]);
				rig_run(&b->r, NSEC_PER_MSEC);
				assert_int_equal(sock_ready(b->t[1], s), SOCK_IN | SOCK_OUT);
				assert_int_equal(take(b, s, &info), sizes[i]);
				assert_memory_equal(b->got, b->bytes + i * 100, sizes[i]);
				assert_int_equal(info.to.port, 53);
				assert_true(ip_addr_equal(&info.from.ip,
					&(struct ip_addr[]){rig_addr(0, version)}[0]));
				assert_int_equal(take(b, s, &info), -EAGAIN);
			}
	assert_int_equal(put(b, c, &(struct udp_addr[]){at(1, 4, 53)}[0], 0, 65508, 0), -EMSGSIZE);
	assert_int_equal(put(b, c, &(struct udp_addr[]){at(1, 4, 53)}[0], 0, 65507, 0), 65507);
	assert_int_equal(sock_set(b->t[0], c, SOCKO_DF, 1, 0), 0);
	assert_int_equal(put(b, c, &(struct udp_addr[]){at(1, 4, 53)}[0], 0, 1473, 0), -EMSGSIZE);
	assert_int_equal(put(b, c, &(struct udp_addr[]){at(1, 4, 53)}[0], 0, 1472, 0), 1472);
}

/* A train is one packet on a wire that takes it, many on one that does not; GRO makes one again. */
static void udp_trains(void **state)
{
	struct bed *b = *state;
	const int c = udp_bound(b, 0, 0), s = udp_bound(b, 1, 53);
	struct udp_info info;

	sock_set(b->t[1], s, SOCKO_RCVBUF, 1 << 20, 0);
	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned mode = 0; mode < 4; mode++) {
			const struct udp_addr to = at(1, version, 53);
			unsigned n = 0, at_byte = 0;

			b->r.wire = mode & 1;
			sock_set(b->t[1], s, SOCKO_UDP_GRO, mode & 2, 0);
			assert_int_equal(put(b, c, &to, 0, 30500, 1000), 30500);
			rig_run(&b->r, NSEC_PER_MSEC);
			for (ssize_t len; (len = take(b, s, &info)) >= 0; n++) {
				assert_memory_equal(b->got, b->bytes + at_byte, len);
				at_byte += (unsigned)len;
				assert_int_equal(info.gso_size, mode & 2 ? 1000 : 0);
			}
			assert_int_equal(at_byte, 30500);
			assert_int_equal(n, mode & 2 ? 1 : 31);
		}
	assert_int_equal(b->r.supers[0], 8);
	assert_int_equal(
		put(b, c, &(struct udp_addr[]){at(1, 4, 53)}[0], 0, 3000, 1473), -EMSGSIZE);
	assert_int_equal(
		put(b, c, &(struct udp_addr[]){at(1, 4, 53)}[0], 0, 60000, 400), -EMSGSIZE);
}

static void udp_errors(void **state)
{
	struct bed *b = *state;
	const int c = udp_bound(b, 0, 0), d = udp_bound(b, 0, 0);
	const struct udp_addr to = at(1, 4, 99);
	struct ip_addr absent = rig_ip("10.0.0.77");
	int err;

	assert_int_equal(put(b, c, NULL, 0, 1, 0), -EDESTADDRREQ);
	assert_int_equal(sock_connect(b->t[0], c, &to, b->r.now), 0);
	assert_int_equal(put(b, c, NULL, 0, 1, 0), 1);
	rig_run(&b->r, NSEC_PER_SEC);
	assert_true(sock_ready(b->t[0], c) & SOCK_ERR);
	assert_int_equal(put(b, c, NULL, 0, 1, 0), -ECONNREFUSED);
	assert_int_equal(sock_connect(b->t[0], d, &(struct udp_addr){absent, 9}, b->r.now), 0);
	assert_int_equal(put(b, d, NULL, 0, 1, 0), 1);
	rig_run(&b->r, 4 * NSEC_PER_SEC);
	assert_int_equal(sock_get(b->t[0], d, SOCKO_ERROR, &err), 0);
	assert_int_equal(err, EHOSTUNREACH);
	assert_int_equal(sock_bind(b->t[0], sock_open(b->t[0], SOCK_KIND_UDP),
				 &(struct udp_addr){.ip = absent, .port = 1}),
		-EADDRNOTAVAIL);
}

/* A socket that is not read keeps a bounded amount. */
static void udp_full(void **state)
{
	struct bed *b = *state;
	const int c = udp_bound(b, 0, 0), s = udp_bound(b, 1, 53);
	const struct udp_addr to = at(1, 4, 53);
	struct udp_info info;
	unsigned n = 0;

	for (unsigned i = 0; i < 2000; i++) {
		assert_int_equal(put(b, c, &to, 0, 1000, 0), 1000);
		rig_run(&b->r, NSEC_PER_USEC);
	}
	while (take(b, s, &info) == 1000)
		n++;
	assert_true(n > 50 && n < 300);
	assert_int_equal(stack_counters(b->r.s[1])->udp_full, 2000 - n);
	/* what is sent and not taken by the link is bounded, too */
	for (n = 0; put(b, c, &to, 0, 1000, 0) == 1000; n++)
		;
	assert_true(n > 50 && n < 300);
	assert_int_equal(put(b, c, &to, 0, 1000, 0), -EAGAIN);
	rig_run(&b->r, NSEC_PER_MSEC);
	assert_true(sock_ready(b->t[0], c) & SOCK_OUT);
}

/* ---- TCP ---- */

static void work(struct bed *b, nsec_t span)
{
	rig_run(&b->r, span);
	sock_work(b->t[0], b->r.now);
	sock_work(b->t[1], b->r.now);
}

/* A connection from host 0 to host 1. */
static void connect_pair(struct bed *b, unsigned version, uint16_t port, int *c, int *s)
{
	const struct udp_addr to = at(1, version, port);
	struct udp_addr peer, local;
	int l = sock_open(b->t[1], SOCK_KIND_TCP);
	unsigned ready;

	for (unsigned i = 0; i < 2; i++) /* what others have become */
		while (sock_next_ready(b->t[i], &ready, NULL) >= 0)
			;
	assert_int_equal(sock_bind(b->t[1], l, &(struct udp_addr){.port = port}), 0);
	assert_int_equal(sock_listen(b->t[1], l, 8), 0);
	*c = sock_open(b->t[0], SOCK_KIND_TCP);
	assert_int_equal(sock_connect(b->t[0], *c, &to, b->r.now), -EINPROGRESS);
	assert_int_equal(sock_accept(b->t[1], l, NULL, b->r.now), -EAGAIN);
	work(b, 10 * NSEC_PER_MSEC);
	assert_int_equal(sock_next_ready(b->t[1], &ready, NULL), l);
	assert_int_equal(ready, SOCK_IN);
	assert_int_equal(sock_next_ready(b->t[0], &ready, NULL), *c);
	assert_true(ready & SOCK_OUT);
	*s = sock_accept(b->t[1], l, &peer, b->r.now);
	assert_true(*s >= 0);
	sock_names(b->t[0], *c, &local, &peer);
	assert_true(ip_addr_equal(&peer.ip, &to.ip) && peer.port == port);
	sock_close(b->t[1], l, b->r.now);
}

static void tcp_bulk(void **state)
{
	struct bed *b = *state;

	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned mode = 0; mode < 4; mode++) {
			const unsigned from = mode & 1, to = !from;
			uint32_t sent = 0, got = 0;
			struct tcp_stat stat;
			int s[2];

			b->r.wire = mode & 2;
			memset(b->got, 0, TOTAL);
			connect_pair(
				b, version, (uint16_t)(8000 + version * 10 + mode), &s[0], &s[1]);
			for (unsigned rounds = 0; got < TOTAL && rounds < 100000; rounds++) {
				const struct iovec out = {b->bytes + sent,
					TOTAL - sent < 100000 ? TOTAL - sent : 100000};
				const struct iovec in = {b->got + got, TOTAL - got};
				ssize_t n = sock_send(
					b->t[from], s[from], &out, 1, 0, NULL, 0, b->r.now);

				sent += n > 0 ? (uint32_t)n : 0;
				work(b, 50 * NSEC_PER_USEC);
				n = sock_recv(b->t[to], s[to], &in, 1, 0, NULL, b->r.now);
				got += n > 0 ? (uint32_t)n : 0;
			}
			assert_int_equal(got, TOTAL);
			assert_memory_equal(b->got, b->bytes, TOTAL);
			tcp_stat(sock_tcp(b->t[from], s[from]), &stat);
			assert_int_equal(stat.bytes_retrans, 0);
			sock_shutdown(b->t[from], s[from], SHUT_WR, b->r.now);
			work(b, NSEC_PER_MSEC);
			assert_true(sock_ready(b->t[to], s[to]) & SOCK_IN);
			assert_int_equal(sock_recv(b->t[to], s[to], &(struct iovec){b->got, 1}, 1,
						 0, NULL, b->r.now),
				0);
			sock_close(b->t[to], s[to], b->r.now);
			work(b, NSEC_PER_MSEC);
			assert_true(sock_ready(b->t[from], s[from]) & SOCK_HUP);
			sock_close(b->t[from], s[from], b->r.now);
			work(b, NSEC_PER_MSEC);
		}
	assert_true(stack_counters(b->r.s[1])->in_merged > 1000);
	work(b, 100 * NSEC_PER_SEC);
	assert_null(tcp_host_check(stack_tcp(b->r.s[0])));
	assert_null(tcp_host_check(stack_tcp(b->r.s[1])));
}

static void tcp_refused(void **state)
{
	struct bed *b = *state;
	const int c = sock_open(b->t[0], SOCK_KIND_TCP), d = sock_open(b->t[0], SOCK_KIND_TCP);
	struct udp_addr to = at(1, 6, 1234);
	int err;

	assert_int_equal(sock_connect(b->t[0], c, &to, b->r.now), -EINPROGRESS);
	assert_int_equal(sock_connect(b->t[0], c, &to, b->r.now), -EALREADY);
	work(b, NSEC_PER_SEC);
	assert_true(sock_ready(b->t[0], c) & SOCK_ERR);
	sock_get(b->t[0], c, SOCKO_ERROR, &err);
	assert_int_equal(err, ECONNREFUSED);
	to.ip = rig_ip("203.0.113.9");
	assert_int_equal(sock_connect(b->t[0], d, &to, b->r.now), -EHOSTUNREACH);
	assert_int_equal(sock_close(b->t[0], c, b->r.now), 0);
	assert_int_equal(sock_close(b->t[0], c, b->r.now), -EBADF);
	assert_int_equal(sock_open(b->t[0], SOCK_KIND_TCP), c); /* the lowest free number */
}

/* To ourselves: over no wire. */
static void tcp_self(void **state)
{
	struct bed *b = *state;
	const struct udp_addr to = at(0, 4, 7777);
	const unsigned before = b->r.frames[0];
	const int l = sock_open(b->t[0], SOCK_KIND_TCP), c = sock_open(b->t[0], SOCK_KIND_TCP);
	const struct iovec out = {b->bytes, 50000}, in = {b->got, 50000};
	int s;

	assert_int_equal(sock_bind(b->t[0], l, &to), 0);
	assert_int_equal(sock_listen(b->t[0], l, 1), 0);
	assert_int_equal(sock_connect(b->t[0], c, &to, b->r.now), -EINPROGRESS);
	work(b, NSEC_PER_MSEC);
	s = sock_accept(b->t[0], l, NULL, b->r.now);
	assert_true(s >= 0);
	assert_int_equal(sock_send(b->t[0], c, &out, 1, 0, NULL, 0, b->r.now), 50000);
	work(b, 100 * NSEC_PER_MSEC);
	assert_int_equal(sock_recv(b->t[0], s, &in, 1, 0, NULL, b->r.now), 50000);
	assert_memory_equal(b->got, b->bytes, 50000);
	assert_int_equal(b->r.frames[0], before);
}

/* ---- path MTU ---- */

/* A router's word about the frame `f` of host 0: too big for `mtu`. */
static void too_big(struct bed *b, const struct frame *f, uint32_t mtu, uint32_t seq_shift)
{
	const bool ip4 = get_be16(f->head + 12) == 0x800;
	const unsigned hlen = ip4 ? 20 : 40, quote = hlen + 8, len = hlen + 8 + quote;
	uint8_t p[200] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, *ip = p + 14, *icmp = ip + hlen;
	struct csum c = {0};

	put_be16(p + 12, ip4 ? 0x800 : 0x86dd);
	memcpy(icmp + 8, f->head + 14, quote);
	put_be32(icmp + 8 + hlen + 4, get_be32(icmp + 8 + hlen + 4) + seq_shift);
	put_be32(icmp + 4, mtu);
	if (ip4) {
		struct ip4 h = {.ttl = 64,
			.proto = 1,
			.len = (uint16_t)len,
			.src = {10, 0, 0, 2},
			.dst = {10, 0, 0, 1}};

		ip4_build(&h, ip);
		icmp[0] = 3;
		icmp[1] = 4;
	} else {
		const struct ip_addr from = rig_addr(1, 6), to = rig_addr(0, 6);
		struct ip6 h = {.hops = 64, .next = 58, .len = (uint16_t)(len - hlen)};

		memcpy(h.src, from.b, 16);
		memcpy(h.dst, to.b, 16);
		ip6_build(&h, ip);
		icmp[0] = 2;
		csum_pseudo6(&c, h.src, h.dst, 58, len - hlen);
	}
	csum_piece(&c, icmp, len - hlen);
	put_be16(icmp + 2, csum_end(&c));
	rig_inject(&b->r, 0, p, 14 + len);
}

struct narrow {
	struct bed *b;
	uint32_t mtu;
	uint32_t shift; /* a forged message: quotes a number that is not under way */
	unsigned told, largest;
};

static bool narrow_hook(struct rig *r, unsigned from, struct frame *f)
{
	struct narrow *n = r->ctx;
	uint32_t size = offload_ip_size(f);

	if (from || get_be16(f->head + 12) == 0x806)
		return true;
	if (!f->off.gso)
		size = frame_len(f) - 14;
	if (size > n->largest)
		n->largest = size;
	if (size <= n->mtu)
		return true;
	n->told++;
	too_big(n->b, f, n->mtu, n->shift);
	return n->shift != 0;
}

/* A narrow path: UDP goes in fragments from then on, TCP in smaller segments. */
static void path_mtu(void **state)
{
	struct bed *b = *state;
	struct narrow n = {.b = b};
	const int c = udp_bound(b, 0, 0), s = udp_bound(b, 1, 53);
	struct udp_info info;

	b->r.ctx = &n;
	for (unsigned version = 4; version <= 6; version += 2) {
		const struct udp_addr to = at(1, version, 53);
		const uint32_t len = version == 4 ? 1472 : 1452;
		int t[2];
		size_t sent = 0, got = 0;

		b->r.hook = NULL;
		connect_pair(b, version, (uint16_t)(100 + version), &t[0], &t[1]);
		b->r.hook = narrow_hook;
		n = (struct narrow){.b = b, .mtu = 1280};
		put(b, c, &to, 0, len, 0);
		rig_run(&b->r, NSEC_PER_MSEC);
		assert_int_equal(n.told, 1);
		assert_int_equal(take(b, s, &info), -EAGAIN);
		put(b, c, &to, 0, len, 0);
		rig_run(&b->r, NSEC_PER_MSEC);
		assert_int_equal(n.told, 1);
		assert_int_equal(take(b, s, &info), len);
		while (got < 300000) {
			const struct iovec out = {b->bytes + sent, 300000 - sent},
					   in = {b->got + got, 300000 - got};
			ssize_t k = sock_send(b->t[0], t[0], &out, 1, 0, NULL, 0, b->r.now);

			sent += k > 0 ? (size_t)k : 0;
			work(b, NSEC_PER_MSEC);
			k = sock_recv(b->t[1], t[1], &in, 1, 0, NULL, b->r.now);
			got += k > 0 ? (size_t)k : 0;
		}
		assert_memory_equal(b->got, b->bytes, 300000);
		assert_true(n.told < 40);
	}
	b->r.hook = NULL;
	b->r.ctx = NULL;
}

/* Nobody who does not see our packets can make them smaller. */
static void path_mtu_forged(void **state)
{
	struct bed *b = *state;
	struct narrow n = {.b = b, .mtu = 1280, .shift = 0x40000000};
	const struct iovec out = {b->bytes, 100000}, in = {b->got, 100000};
	struct tcp_stat stat;
	int t[2];

	connect_pair(b, 4, 99, &t[0], &t[1]);
	b->r.ctx = &n;
	b->r.hook = narrow_hook;
	assert_int_equal(sock_send(b->t[0], t[0], &out, 1, 0, NULL, 0, b->r.now), 100000);
	work(b, NSEC_PER_SEC);
	assert_int_equal(sock_recv(b->t[1], t[1], &in, 1, 0, NULL, b->r.now), 100000);
	assert_true(n.told > 0);
	tcp_stat(sock_tcp(b->t[0], t[0]), &stat);
	assert_int_equal(stat.snd_mss, 1448);
	assert_int_equal(stat.bytes_retrans, 0);
	b->r.hook = NULL;
	b->r.ctx = NULL;
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(udp_sizes),
		TEST(udp_trains),
		TEST(udp_errors),
		TEST(udp_full),
		TEST(tcp_bulk),
		TEST(tcp_refused),
		TEST(tcp_self),
		TEST(path_mtu),
		TEST(path_mtu_forged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
