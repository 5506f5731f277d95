/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_host: hosts on one network, all on one thread: two on drivers of their own and one inside the
 * network. Each sleeps until it has work, so that a lost wake-up would end the test by time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft/host.h"

#define BULK (8 << 20)

struct world {
	char top[32];
	struct weft_net *net;
	struct weft_host *h[3]; /* 2: inside */
	uint8_t *bytes, *got;
};

static void earlier(int64_t *ns, int64_t other)
{
	if (other >= 0 && (*ns < 0 || other < *ns))
		*ns = other;
}

static void turn(struct world *w)
{
	struct pollfd p[3] = {{.fd = weft_net_fd(w->net), .events = POLLIN}};
	int64_t ns = weft_net_timeout_ns(w->net);

	for (unsigned i = 0; i < 2; i++) {
		p[1 + i] = (struct pollfd){.fd = weft_host_fd(w->h[i]), .events = POLLIN};
		earlier(&ns, weft_host_timeout_ns(w->h[i]));
	}
	assert_true(poll(p, 3, ns < 0 ? 10000 : (int)(ns / 1000000) + (ns > 0)) > 0 || ns >= 0);
	assert_int_equal(weft_net_dispatch(w->net, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(weft_host_dispatch(w->h[i], 0), 0);
}

static struct weft_addr at(const char *text)
{
	struct weft_addr a;

	assert_int_equal(weft_addr_parse(&a, text), 0);
	return a;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char text[160], err[WEFT_ERR] = "";

	strcpy(w->top, "/tmp/weft-test-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	assert_int_equal(weft_net_new(&w->net, "lab", NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		char ip[80];

		snprintf(text, sizeof(text), "vhost-user:%s/%u.sock", w->top, i);
		assert_int_equal(weft_net_add(w->net, text, NULL), 0);
		snprintf(text, sizeof(text), "virtio-user:%s/%u.sock", w->top, i);
		snprintf(ip, sizeof(ip), "ip=10.0.0.%u/24,ip=fd00::%u/64", i + 1, i + 1);
		if (weft_host_open(&w->h[i], text, ip, err))
			fail_msg("%s", err);
	}
	if (weft_host_attach(&w->h[2], w->net, "inside,ip=10.0.0.3/24,ip=fd00::3/64", err))
		fail_msg("%s", err);
	w->bytes = malloc(BULK);
	w->got = malloc(BULK);
	for (unsigned i = 0; i < BULK; i++)
		w->bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16));
	for (unsigned i = 0; i < 3; i++) { /* nobody else has it: that takes a second */
		struct weft_addr a;

		while (weft_host_addr(w->h[i], 6, &a))
			turn(w);
	}
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 3; i++)
		weft_host_close(w->h[i]);
	weft_net_free(w->net);
	assert_return_code(rmdir(w->top), errno);
	free(w->bytes);
	free(w->got);
	free(w);
	return 0;
}

static void connect_pair(
	struct world *w, unsigned from, unsigned to, const char *where, int *c, int *s)
{
	const struct weft_addr a = at(where), any = {.port = a.port};
	const int l = weft_socket(w->h[to], WEFT_TCP);

	assert_int_equal(weft_bind(w->h[to], l, &any), 0);
	assert_int_equal(weft_listen(w->h[to], l, 4), 0);
	*c = weft_socket(w->h[from], WEFT_TCP);
	assert_int_equal(weft_connect(w->h[from], *c, &a), -EINPROGRESS);
	while ((*s = weft_accept(w->h[to], l, NULL)) == -EAGAIN)
		turn(w);
	assert_true(*s >= 0);
	weft_close(w->h[to], l);
}

static void bulk(struct world *w, unsigned from, unsigned to, int c, int s)
{
	size_t sent = 0, got = 0;

	memset(w->got, 0, BULK);
	while (got < BULK) {
		ssize_t n = weft_send(w->h[from], c, w->bytes + sent, BULK - sent, 0);

		assert_true(n >= 0 || n == -EAGAIN || n == -ENOTCONN);
		sent += n > 0 ? (size_t)n : 0;
		n = weft_recv(w->h[to], s, w->got + got, BULK - got, 0);
		assert_true(n > 0 || n == -EAGAIN);
		got += n > 0 ? (size_t)n : 0;
		turn(w);
	}
	assert_memory_equal(w->got, w->bytes, BULK);
}

/* Everybody to everybody. */
static void tcp(void **state)
{
	static const char *const v4[] = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"};
	static const char *const v6[] = {"[fd00::1]:80", "[fd00::2]:80", "[fd00::3]:80"};
	struct world *w = *state;

	for (unsigned from = 0; from < 3; from++)
		for (unsigned to = 0; to < 3; to++) {
			struct weft_tcp_info info;
			int c, s;

			connect_pair(w, from, to, (from + to) % 2 ? v4[to] : v6[to], &c, &s);
			bulk(w, from, to, c, s);
			bulk(w, to, from, s, c);
			assert_int_equal(weft_tcp_info(w->h[from], c, &info), 0);
			assert_true(info.tcpi_bytes_acked >= BULK);
			assert_int_equal(weft_shutdown(w->h[from], c), 0);
			while (weft_recv(w->h[to], s, w->got, 1, 0) == -EAGAIN)
				turn(w);
			weft_close(w->h[to], s);
			while (!(weft_ready(w->h[from], c) & WEFT_HUP))
				turn(w);
			weft_close(w->h[from], c);
		}
}

static void without_copy(void **state)
{
	struct world *w = *state;
	const uint32_t len = 65536;
	uint8_t *buf = weft_buf_new(w->h[0], len);
	size_t got = 0;
	int c, s;

	assert_non_null(buf);
	memcpy(buf, w->bytes, len);
	connect_pair(w, 0, 1, "[fd00::2]:9", &c, &s);
	while (!(weft_ready(w->h[0], c) & WEFT_OUT))
		turn(w);
	assert_int_equal(weft_send_buf(w->h[0], c, buf, len, 0), len);
	assert_int_equal(weft_send_buf(w->h[0], c, buf + 100, 1000, 0), 1000);
	assert_int_equal(weft_send_buf(w->h[0], c, w->bytes, 10, 0), -EFAULT);
	while (got < len + 1000) {
		const ssize_t n = weft_recv(w->h[1], s, w->got + got, BULK - got, 0);

		got += n > 0 ? (size_t)n : 0;
		turn(w);
	}
	assert_memory_equal(w->got, w->bytes, len);
	assert_memory_equal(w->got + len, w->bytes + 100, 1000);
	while (weft_acked(w->h[0], c) < weft_sent(w->h[0], c))
		turn(w);
	assert_int_equal(weft_sent(w->h[0], c), len + 1000);
	weft_buf_free(w->h[0], buf);
}

/*
 * Lent and given back: the bytes are where the device put them, what is lent fills the buffer and shuts
 * the window, what is given back opens it. Everybody to a host on a driver.
 */
static void lent(void **state)
{
	struct world *w = *state;
	struct iovec iov[8];
	struct weft_tcp_info info;
	size_t sent = 0, got = 0;
	int c, s, n, few = 1;
	ssize_t k, held = 0;

	connect_pair(w, 1, 0, "10.0.0.1:80", &c, &s);
	assert_int_equal(weft_setopt(w->h[0], s, WEFT_SO_RCVBUF, 1 << 18), 0);
	n = 8;
	assert_int_equal(weft_recv_lend(w->h[0], s, iov, &n), -EAGAIN);
	assert_int_equal(n, 0);
	for (unsigned idle = 0; idle < 200;) { /* nobody reads: it fills */
		k = weft_send(w->h[1], c, w->bytes + sent, BULK - sent, 0);
		sent += k > 0 ? (size_t)k : 0;
		turn(w);
		n = 8;
		k = weft_recv_lend(w->h[0], s, iov, &n);
		idle = k > 0 && k == held ? idle + 1 : 0;
		held = k;
	}
	assert_int_equal(weft_tcp_info(w->h[1], c, &info), 0);
	assert_true(info.tcpi_snd_wnd < 65536);
	assert_int_equal(weft_recv_done(w->h[0], s, 1 << 30), -EINVAL);
	assert_true(weft_recv_lend(w->h[0], s, iov, &few) > 0 && few == 1);
	while (got < BULK) {
		n = 1 + (int)(got % 8);
		k = weft_recv_lend(w->h[0], s, iov, &n);
		assert_true(k > 0 || k == -EAGAIN);
		for (int i = 0, at = 0; k > 0 && i < n; at += (int)iov[i++].iov_len)
			assert_memory_equal(iov[i].iov_base, w->bytes + got + at, iov[i].iov_len);
		if (k > 1 && got % 3 == 0)
			k /= 2; /* a part of it */
		assert_int_equal(weft_recv_done(w->h[0], s, k > 0 ? (size_t)k : 0), 0);
		got += k > 0 ? (size_t)k : 0;
		k = weft_send(w->h[1], c, w->bytes + sent, BULK - sent, 0);
		sent += k > 0 ? (size_t)k : 0;
		if (got < BULK)
			turn(w);
	}
	assert_int_equal(weft_shutdown(w->h[1], c), 0);
	do {
		turn(w);
		n = 8;
	} while ((k = weft_recv_lend(w->h[0], s, iov, &n)) == -EAGAIN);
	assert_int_equal(k, 0);
	weft_close(w->h[0], s);
	weft_close(w->h[1], c);
}

static void udp(void **state)
{
	struct world *w = *state;
	const int c = weft_socket(w->h[0], WEFT_UDP), s = weft_socket(w->h[2], WEFT_UDP);
	const struct weft_addr to = at("10.0.0.3:53"), any = at(":53");
	struct iovec v = {w->bytes, 40000}, got = {w->got, BULK};
	struct weft_addr from;
	char text[WEFT_ADDR_TEXT];
	uint16_t size;
	ssize_t n;

	assert_int_equal(weft_bind(w->h[2], s, &any), 0);
	assert_int_equal(weft_setopt(w->h[2], s, WEFT_SO_GRO, 1), 0);
	/* a datagram in fragments, and a train */
	for (unsigned train = 0; train < 2; train++) {
		assert_int_equal(weft_sendto(w->h[0], c, &v, 1, &to, train ? 1000 : 0), 40000);
		while ((n = weft_recvfrom(w->h[2], s, &got, 1, &from, &size)) == -EAGAIN)
			turn(w);
		assert_int_equal(n, 40000);
		assert_int_equal(size, train ? 1000 : 0);
		assert_memory_equal(w->got, w->bytes, 40000);
	}
	weft_addr_text(&from, text);
	assert_memory_equal(text, "10.0.0.1:", 9);
}

static void events(void **state)
{
	struct world *w = *state;
	struct weft_event ev[4];
	char *json;
	int c, s, n;

	connect_pair(w, 2, 0, "10.0.0.1:7", &c, &s);
	weft_set_user(w->h[0], s, w);
	while (weft_host_events(w->h[0], ev, 4) > 0)
		;
	while (weft_send(w->h[2], c, "hello", 5, 0) != 5)
		turn(w);
	while (!(n = weft_host_events(w->h[0], ev, 4)))
		turn(w);
	assert_int_equal(n, 1);
	assert_int_equal(ev[0].s, s);
	assert_true(ev[0].ready & WEFT_IN);
	assert_ptr_equal(ev[0].user, w);
	json = weft_host_show(w->h[0]);
	assert_non_null(strstr(json, "\"in_segs\""));
	free(json);
}

static void refused(void **state)
{
	static const char *const bad[] = {"ip=10.0.0.1/33", "ip=x", "mtu=20", "dhcp=1", "nothing",
		"mac=01:00:00:00:00:00", "gateway=10.0.0.0.1"};
	struct world *w = *state;
	struct weft_host *h;
	struct weft_addr a;
	char err[WEFT_ERR], text[100];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), "x,%s", bad[i]);
		assert_int_equal(weft_host_attach(&h, w->net, text, err), -EINVAL);
		assert_true(strlen(err) > 10);
	}
	assert_int_equal(weft_host_open(&h, "vhost-user:/tmp/x", "", err), -EINVAL);
	assert_int_equal(weft_host_attach(&h, w->net, "inside", err), -EEXIST);
	assert_int_equal(weft_addr_parse(&a, "fd00::1:80"), -EINVAL);
	assert_int_equal(weft_addr_parse(&a, "10.0.0.1:65536"), -EINVAL);
	assert_int_equal(weft_addr_parse(&a, "10.0.0.1"), -EINVAL);
	assert_int_equal(weft_socket(w->h[0], 9), -EPROTONOSUPPORT);
	assert_int_equal(weft_close(w->h[0], 9), -EBADF);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(udp),
		TEST(tcp),
		TEST(without_copy),
		TEST(lent),
		TEST(events),
		TEST(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
