/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_kernel_test: our host on a tap, the kernel's in a namespace of this process's own: it is
 * 10.9.0.1 and fd09::1, we are 2 of both; it does not know that it is being tested. Each case in both
 * versions of IP, with the tap's offloads and without.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rand.h"
#include "net/join.h"
#include "net/sock.h"
#include "net/stack_port.h"
#include "net/tcp.h"
#include "port/tap.h"
#include "port/testns.h"
#include "port/vnet.h"
#include "wire/csum.h"

#define BULK     (4 << 20)
#define PATIENCE (10 * NSEC_PER_SEC)

struct bed {
	struct loop loop;
	struct log log;
	struct err err;
	struct port *tap, *host;
	struct stack *stack;
	struct join *join;
	struct sock_table *socks;
	uint8_t *bytes, *got;
	unsigned pongs;
	uint32_t pong_len;
};

static const char *const addresses[] = {"10.9.0.1/24", "fd09::1/64", NULL};

static void on_log(void *ctx, enum log_level level, const char *tag, const char *text)
{
	(void)ctx;
	(void)level;
	(void)tag;
	(void)text;
}

static void on_work(void *ctx)
{
	struct bed *b = ctx;

	sock_work(b->socks, loop_now(&b->loop));
}

static struct ip_addr text(const char *t)
{
	struct ip_addr a;

	assert_true(ip_addr_parse_text(t, &a));
	return a;
}

static struct ip_addr kernel_ip(unsigned version)
{
	return text(version == 4 ? "10.9.0.1" : "fd09::1");
}

static void make_stack(struct bed *b, uint32_t mtu)
{
	struct stack_conf conf = {.mac = {2, 0, 0, 0, 9, 2}, .no_dad = true, .mtu = mtu};
	const struct ip_addr v4 = text("10.9.0.2"), v6 = text("fd09::2");
	nsec_t now = loop_refresh(&b->loop);

	rand_secret(conf.secret, sizeof(conf.secret));
	assert_int_equal(stack_new(&b->stack, &conf, now, &b->err), 0);
	assert_int_equal(stack_add_addr(b->stack, &v4, 96 + 24, now, &b->err), 0);
	assert_int_equal(stack_add_addr(b->stack, &v6, 64, now, &b->err), 0);
	assert_int_equal(sock_table_new(&b->socks, b->stack, &b->err), 0);
	assert_int_equal(stack_port_new(&b->host, "h", b->stack, &b->loop, &b->log, &b->err), 0);
	stack_port_on_work(b->host, on_work, b);
	assert_int_equal(join_new(&b->join, b->tap, b->host, &b->loop, &b->err), 0);
}

static int setup_with(void **state, uint64_t off, uint32_t mtu)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct tap_config cfg = {.ifname = "tap9", .addr = addresses, .off = off, .mtu = mtu};
	struct rand rnd;

	testns_write("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	testns_write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
	assert_int_equal(loop_init(&b->loop, &b->err), 0);
	log_init(&b->log, LOG_INFO, on_log, b);
	if (tap_open(&b->tap, "t", &cfg, &b->loop, &b->log, &b->err))
		fail_msg("tap_open: %s", b->err.text);
	make_stack(b, mtu);
	b->bytes = malloc(BULK);
	b->got = malloc(BULK);
	rand_init(&rnd, 3);
	for (unsigned i = 0; i < BULK; i += 8) {
		const uint64_t x = rand_u64(&rnd);

		memcpy(b->bytes + i, &x, 8);
	}
	*state = b;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 0, 1500);
}

static int setup_plain(void **state)
{
	return setup_with(state,
		VNET_BIT(CSUM) | VNET_BIT(GUEST_CSUM) | VNET_BIT(GUEST_TSO4) |
			VNET_BIT(GUEST_TSO6) | VNET_BIT(HOST_TSO4) | VNET_BIT(HOST_TSO6) |
			VNET_BIT(HOST_USO) | VNET_BIT(GUEST_USO4) | VNET_BIT(GUEST_USO6),
		1500);
}

static int setup_jumbo(void **state)
{
	return setup_with(state, 0, 9000);
}

static int setup_small(void **state)
{
	return setup_with(state, 0, 1280);
}

static int setup_huge(void **state)
{
	return setup_with(state, 0, 65520);
}

static int teardown(void **state)
{
	struct bed *b = *state;

	join_free(b->join);
	sock_table_free(b->socks, loop_now(&b->loop));
	stack_port_free(b->host);
	stack_free(b->stack);
	tap_free(b->tap);
	loop_fini(&b->loop);
	free(b->bytes);
	free(b->got);
	free(b);
	return 0;
}

/* A round of the loop, sleeping a millisecond at most. */
static void turn(struct bed *b)
{
	struct pollfd p = {.fd = b->loop.epfd, .events = POLLIN};

	stack_port_kick(b->host);
	loop_dispatch(&b->loop, false);
	if (TAILQ_EMPTY(&b->loop.tasks))
		poll(&p, 1, 1);
	loop_dispatch(&b->loop, false);
}

static nsec_t now_of(struct bed *b)
{
	return loop_refresh(&b->loop);
}

/* `condition` may do something: it is asked once a turn, and no more once it is true. */
#define WAIT_FOR(b, condition)                                                                     \
	do {                                                                                       \
		const nsec_t end_ = now_of(b) + PATIENCE;                                          \
		bool good_;                                                                        \
		while (!(good_ = (condition)) && now_of(b) < end_)                                 \
			turn(b);                                                                   \
		if (!good_)                                                                        \
			fail_msg("in vain: %s", #condition);                                       \
	} while (0)

/* ---- the kernel's sockets ---- */

static socklen_t fill(struct sockaddr_storage *ss, const struct ip_addr *ip, uint16_t port)
{
	*ss = (struct sockaddr_storage){0};
	if (ip_addr_is4(ip)) {
		struct sockaddr_in *in = (struct sockaddr_in *)ss;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ip_addr_v4(ip), 4);
		return sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, ip->b, 16);
		return sizeof(*in6);
	}
}

static int kernel_socket(unsigned version, int type, uint16_t port)
{
	const struct ip_addr ip = kernel_ip(version);
	struct sockaddr_storage ss;
	const socklen_t len = fill(&ss, &ip, port);
	const int s =
		socket(version == 4 ? AF_INET : AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(s >= 0);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (port)
		assert_int_equal(bind(s, (struct sockaddr *)&ss, len), 0);
	return s;
}

static struct ip_addr our_ip(unsigned version)
{
	return text(version == 4 ? "10.9.0.2" : "fd09::2");
}

static int kernel_connect(int s, unsigned version, uint16_t port)
{
	const struct ip_addr ip = our_ip(version);
	struct sockaddr_storage ss;
	const socklen_t len = fill(&ss, &ip, port);

	return connect(s, (struct sockaddr *)&ss, len);
}

/* ---- ping ---- */

static void on_pong(void *ctx, const struct ip_addr *from, uint16_t id, uint16_t seq, uint32_t len)
{
	struct bed *b = ctx;

	(void)from;
	(void)id;
	(void)seq;
	b->pongs++;
	b->pong_len = len;
}

static void ping_out(void **state)
{
	static const uint32_t sizes[] = {0, 56, 1400, 3000, 20000, 65000};
	struct bed *b = *state;

	stack_on_pong(b->stack, on_pong, b);
	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			const struct ip_addr to = kernel_ip(version);
			const unsigned before = b->pongs;

			assert_int_equal(
				stack_ping(b->stack, &to, 5, (uint16_t)i, sizes[i], now_of(b)), 0);
			WAIT_FOR(b, b->pongs == before + 1);
			assert_int_equal(b->pong_len, sizes[i]);
		}
}

static void ping_in(void **state)
{
	static const size_t sizes[] = {8, 64, 1400, 3000, 60000};
	struct bed *b = *state;

	for (unsigned version = 4; version <= 6; version += 2) {
		const int s = socket(version == 4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK,
			version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);

		assert_true(s >= 0);
		assert_int_equal(kernel_connect(s, version, 0), 0);
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			const unsigned skip = version == 4 ? 20 : 0;
			ssize_t n = -1;

			memset(b->got, 0, 8);
			b->got[0] = version == 4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
			b->got[7] = (uint8_t)i;
			memcpy(b->got + 8, b->bytes, sizes[i] - 8);
			if (version == 4) {
				struct csum c = {0};
				uint16_t sum;

				csum_piece(&c, b->got, sizes[i]);
				sum = csum_end(&c);
				b->got[2] = (uint8_t)(sum >> 8);
				b->got[3] = (uint8_t)sum;
			}
			assert_int_equal(send(s, b->got, sizes[i], 0), (ssize_t)sizes[i]);
			WAIT_FOR(b, (n = recv(s, b->got, BULK, 0)) > 0 &&
					    b->got[skip] == (version == 4 ? ICMP_ECHOREPLY
									  : ICMP6_ECHO_REPLY));
			assert_int_equal(n, sizes[i] + skip);
			assert_int_equal(b->got[skip + 7], i);
			assert_memory_equal(b->got + skip + 8, b->bytes, sizes[i] - 8);
		}
		close(s);
	}
}

/* ---- UDP ---- */

static void udp_both_ways(void **state)
{
	static const uint32_t sizes[] = {0, 1, 1000, 1473, 5000, 60000};
	struct bed *b = *state;

	for (unsigned version = 4; version <= 6; version += 2) {
		const struct udp_addr to = {kernel_ip(version), 5000};
		const int k = kernel_socket(version, SOCK_DGRAM, 5000);
		const int u = sock_open(b->socks, SOCK_KIND_UDP);
		const struct udp_addr from = {.port = 4000};

		assert_int_equal(sock_bind(b->socks, u, &from), 0);
		assert_int_equal(kernel_connect(k, version, 4000), 0);
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			const struct iovec out = {b->bytes, sizes[i]}, in = {b->got, BULK};
			struct udp_info info;
			ssize_t n = -1;

			assert_int_equal(
				sock_send(b->socks, u, &out, 1, 0, &to, 0, now_of(b)), sizes[i]);
			WAIT_FOR(b, (n = recv(k, b->got, BULK, 0)) >= 0);
			assert_int_equal(n, sizes[i]);
			assert_memory_equal(b->got, b->bytes, sizes[i]);
			assert_int_equal(send(k, b->bytes + 7, sizes[i], 0), sizes[i]);
			WAIT_FOR(b, (n = sock_recv(b->socks, u, &in, 1, 0, &info, now_of(b))) >= 0);
			assert_int_equal(n, sizes[i]);
			assert_memory_equal(b->got, b->bytes + 7, sizes[i]);
			assert_int_equal(info.from.port, 5000);
		}
		close(k);
		sock_close(b->socks, u, now_of(b));
	}
}

/* Trains of datagrams, out and in; what of them stays together is the tap's and the kernel's affair. */
static void udp_trains(void **state)
{
	struct bed *b = *state;

	for (unsigned version = 4; version <= 6; version += 2) {
		const struct udp_addr to = {kernel_ip(version), 5000}, from = {.port = 4000};
		const int k = kernel_socket(version, SOCK_DGRAM, 5000), size = 1000;
		const int u = sock_open(b->socks, SOCK_KIND_UDP);
		const struct iovec out = {b->bytes, 20500};
		uint32_t got = 0;
		unsigned units = 0;

		sock_set(b->socks, u, SOCKO_UDP_GRO, 1, 0);
		assert_int_equal(sock_bind(b->socks, u, &from), 0);
		assert_int_equal(kernel_connect(k, version, 4000), 0);
		assert_int_equal(sock_send(b->socks, u, &out, 1, 0, &to, 1000, now_of(b)), 20500);
		while (got < 20500) {
			ssize_t n = -1;

			WAIT_FOR(b, (n = recv(k, b->got, BULK, 0)) >= 0);
			assert_memory_equal(b->got, b->bytes + got, n);
			assert_true(n == 1000 || n == 500);
			got += (uint32_t)n;
		}
		setsockopt(k, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
		assert_int_equal(send(k, b->bytes, 20500, 0), 20500);
		for (got = 0; got < 20500; units++) {
			const struct iovec in = {b->got, BULK};
			struct udp_info info;
			ssize_t n = -1;

			WAIT_FOR(b, (n = sock_recv(b->socks, u, &in, 1, 0, &info, now_of(b))) >= 0);
			assert_memory_equal(b->got, b->bytes + got, n);
			got += (uint32_t)n;
		}
		assert_true(units < 21);
		close(k);
		sock_close(b->socks, u, now_of(b));
	}
}

/* ---- TCP ---- */

/* BULK bytes from the kernel's socket to ours and the same at once the other way. */
static void exchange(struct bed *b, int k, int s)
{
	uint32_t k_sent = 0, k_got = 0, sent = 0, got = 0;
	uint8_t *k_buf = malloc(BULK);

	memset(b->got, 0, BULK);
	for (nsec_t last = now_of(b); got < BULK || k_got < BULK;) {
		const struct iovec out = {b->bytes + sent, BULK - sent},
				   in = {b->got + got, BULK - got};
		bool moved = false;
		ssize_t n;

		if (k_sent < BULK &&
			(n = send(k, b->bytes + k_sent, BULK - k_sent, MSG_NOSIGNAL)) > 0) {
			k_sent += (uint32_t)n;
			moved = true;
		}
		if (k_got < BULK && (n = recv(k, k_buf + k_got, BULK - k_got, 0)) > 0) {
			k_got += (uint32_t)n;
			moved = true;
		}
		if (sent < BULK &&
			(n = sock_send(b->socks, s, &out, 1, 0, NULL, 0, now_of(b))) > 0) {
			sent += (uint32_t)n;
			moved = true;
		}
		if (got < BULK && (n = sock_recv(b->socks, s, &in, 1, 0, NULL, now_of(b))) > 0) {
			got += (uint32_t)n;
			moved = true;
		}
		turn(b);
		if (moved)
			last = now_of(b);
		else if (now_of(b) - last > PATIENCE)
			fail_msg("stuck: we sent %u got %u, the kernel sent %u got %u", sent, got,
				k_sent, k_got);
	}
	assert_memory_equal(b->got, b->bytes, BULK);
	assert_memory_equal(k_buf, b->bytes, BULK);
	free(k_buf);
}

static void finish(struct bed *b, int k, int s)
{
	const struct tcp_counters *c = tcp_host_counters(stack_tcp(b->stack));
	const struct iovec in = {b->got, 1};
	struct tcp_stat stat;

	tcp_stat(sock_tcp(b->socks, s), &stat);
	/* a clean path: nothing was lost; a probe may have asked after a late acknowledgement */
	if (stat.bytes_retrans && (c->rto || c->fast_recoveries))
		fail_msg("%llu bytes sent again: %llu timeouts, %llu recoveries",
			(unsigned long long)stat.bytes_retrans, (unsigned long long)c->rto,
			(unsigned long long)c->fast_recoveries);
	shutdown(k, SHUT_WR);
	WAIT_FOR(b, sock_recv(b->socks, s, &in, 1, 0, NULL, now_of(b)) == 0);
	assert_int_equal(sock_close(b->socks, s, now_of(b)), 0);
	WAIT_FOR(b, recv(k, b->got, 1, 0) == 0);
	close(k);
	turn(b);
}

static void tcp_out(void **state)
{
	struct bed *b = *state;

	for (unsigned version = 4; version <= 6; version += 2) {
		const struct udp_addr to = {kernel_ip(version), 6000};
		const int l = kernel_socket(version, SOCK_STREAM, 6000);
		const int s = sock_open(b->socks, SOCK_KIND_TCP);
		int k = -1;

		assert_int_equal(listen(l, 1), 0);
		assert_int_equal(sock_connect(b->socks, s, &to, now_of(b)), -EINPROGRESS);
		WAIT_FOR(b, (k = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0);
		WAIT_FOR(b, sock_ready(b->socks, s) & SOCK_OUT);
		exchange(b, k, s);
		finish(b, k, s);
		close(l);
	}
}

static void tcp_into(void **state)
{
	struct bed *b = *state;
	const int l = sock_open(b->socks, SOCK_KIND_TCP);

	assert_int_equal(sock_bind(b->socks, l, &(struct udp_addr){.port = 7000}), 0);
	assert_int_equal(sock_listen(b->socks, l, 4), 0);
	for (unsigned version = 4; version <= 6; version += 2) {
		const int k = kernel_socket(version, SOCK_STREAM, 0);
		int s = -1;

		assert_int_equal(kernel_connect(k, version, 7000), -1);
		assert_int_equal(errno, EINPROGRESS);
		WAIT_FOR(b, (s = sock_accept(b->socks, l, NULL, now_of(b))) >= 0);
		exchange(b, k, s);
		finish(b, k, s);
	}
	/* a closed port says so at once */
	for (unsigned version = 4; version <= 6; version += 2) {
		const int k = kernel_socket(version, SOCK_STREAM, 0);
		int err = 0;
		socklen_t len = sizeof(err);

		kernel_connect(k, version, 7001);
		WAIT_FOR(b, !getsockopt(k, SOL_SOCKET, SO_ERROR, &err, &len) && err);
		assert_int_equal(err, ECONNREFUSED);
		close(k);
	}
}

#define ALL(with)                                                                                  \
	cmocka_unit_test_setup_teardown(ping_out, with, teardown),                                 \
		cmocka_unit_test_setup_teardown(ping_in, with, teardown),                          \
		cmocka_unit_test_setup_teardown(udp_both_ways, with, teardown),                    \
		cmocka_unit_test_setup_teardown(udp_trains, with, teardown),                       \
		cmocka_unit_test_setup_teardown(tcp_out, with, teardown),                          \
		cmocka_unit_test_setup_teardown(tcp_into, with, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALL(setup),
		ALL(setup_plain),
		ALL(setup_jumbo),
		ALL(setup_small),
		ALL(setup_huge),
	};

	if (!testns_enter())
		return TESTNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
