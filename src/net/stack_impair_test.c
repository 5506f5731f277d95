/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts and a bad network between them, in virtual time: whatever it does, both streams arrive
 * whole, something always moves, and the connection is as fast as what is left of the path allows.
 * Each row runs twice: the path's units are packets on a wire, or whole super-packets.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/join.h"
#include "net/sock.h"
#include "net/stack.h"
#include "net/stack_port.h"
#include "net/tcp.h"
#include "port/impair.h"

#define AWAY_EACH (20 * NSEC_PER_MSEC)
#define PORT      7
#define PIECE     65536
#define LIMIT     (4 * 3600 * NSEC_PER_SEC)
#define STALL     (2000 * NSEC_PER_SEC) /* without a byte: backed-off timers, and bad luck */

struct end {
	struct world *w;
	struct stack *stack;
	struct port *port;
	struct sock_table *socks;
	int listener, s; /* -1: none */
	uint64_t to_send, sent, got;
	bool shut, ended;
};

struct world {
	struct loop loop;
	nsec_t now, moved; /* moved: when bytes arrived last */
	struct end e[2];
	struct join *join;
	struct impair *impair;
	nsec_t away, next_away; /* not run for so long, now and then; and the next time */
	unsigned times_away;
	uint8_t buf[PIECE];
};

static uint8_t byte_at(uint64_t pos, unsigned end)
{
	return (uint8_t)((pos * 0x9e3779b97f4a7c15ull >> 56) + end);
}

static void end_send(struct end *e)
{
	struct world *w = e->w;

	while (e->sent < e->to_send) {
		uint64_t left = e->to_send - e->sent;
		struct iovec iov = {w->buf, left < PIECE ? left : PIECE};
		ssize_t n;

		for (size_t i = 0; i < iov.iov_len; i++)
			w->buf[i] = byte_at(e->sent + i, e == w->e);
		n = sock_send(e->socks, e->s, &iov, 1, 0, NULL, 0, w->now);
		if (n == -EAGAIN || n == -ENOTCONN)
			return;
		if (n < 0)
			fail_msg("send: %s", strerror((int)-n));
		e->sent += (uint64_t)n;
	}
	if (!e->shut && sock_shutdown(e->socks, e->s, SHUT_WR, w->now) == 0)
		e->shut = true;
}

static void end_receive(struct end *e)
{
	struct world *w = e->w;
	struct iovec iov = {w->buf, PIECE};
	ssize_t n;

	while (!e->ended && (n = sock_recv(e->socks, e->s, &iov, 1, 0, NULL, w->now)) != -EAGAIN) {
		if (n < 0)
			fail_msg("receive: %s at %.3f s", strerror((int)-n), (double)w->now / 1e9);
		e->ended = n == 0;
		for (ssize_t i = 0; i < n; i++)
			if (w->buf[i] != byte_at(e->got + (uint64_t)i, e != w->e))
				fail_msg("byte %llu is wrong", (unsigned long long)e->got + i);
		e->got += (uint64_t)n;
		w->moved = w->now;
	}
}

static void work(void *ctx)
{
	struct end *e = ctx;
	uint64_t before = e->sent + e->got + e->shut;

	sock_work(e->socks, e->w->now);
	if (e->s < 0 && e->listener >= 0) {
		int s = sock_accept(e->socks, e->listener, NULL, e->w->now);

		e->s = s >= 0 ? s : -1;
	}
	if (e->s < 0)
		return;
	end_receive(e);
	end_send(e);
	if (e->sent + e->got + e->shut != before)
		stack_port_kick(e->port);
}

static void end_open(
	struct world *w, unsigned i, const struct tcp_conf *tcp, const char *v4, const char *v6)
{
	struct end *e = &w->e[i];
	struct stack_conf c = {.mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)},
		.seed = 7 + i,
		.headroom = 64,
		.no_auto = true,
		.no_dad = true,
		.tcp = tcp};
	struct ip_addr a;
	struct err err = {""};

	*e = (struct end){.w = w, .listener = -1, .s = -1};
	memset(c.secret, 0x11 * (int)(i + 1), sizeof(c.secret));
	assert_int_equal(stack_new(&e->stack, &c, w->now, &err), 0);
	assert_true(ip_addr_parse_text(v4, &a));
	assert_int_equal(stack_add_addr(e->stack, &a, 96 + 24, w->now, &err), 0);
	assert_true(ip_addr_parse_text(v6, &a));
	assert_int_equal(stack_add_addr(e->stack, &a, 64, w->now, &err), 0);
	assert_int_equal(
		stack_port_new(&e->port, i ? "b" : "a", e->stack, &w->loop, NULL, &err), 0);
	assert_int_equal(sock_table_new(&e->socks, e->stack, &err), 0);
	stack_port_on_work(e->port, work, e);
}

static struct world *world_new(const char *words, const struct tcp_conf *tcp)
{
	struct world *w = calloc(1, sizeof(*w));
	struct impair_conf c;
	struct err err = {""};

	assert_int_equal(loop_init(&w->loop, &err), 0);
	w->now = w->moved = NSEC_PER_SEC;
	w->loop.virtual_now = &w->now;
	loop_refresh(&w->loop);
	end_open(w, 0, tcp, "10.0.0.1", "2001:db8::1");
	end_open(w, 1, tcp, "10.0.0.2", "2001:db8::2");
	if (impair_parse(&c, words, &err) || impair_wrap(&w->impair, w->e[0].port, &c, &err))
		fail_msg("%s", err.text);
	assert_int_equal(join_new(&w->join, w->e[0].port, w->e[1].port, &w->loop, &err), 0);
	return w;
}

static void world_free(struct world *w)
{
	join_free(w->join);
	impair_free(w->impair);
	for (unsigned i = 0; i < 2; i++) {
		sock_table_free(w->e[i].socks, w->now);
		stack_port_free(w->e[i].port);
		stack_free(w->e[i].stack);
	}
	loop_fini(&w->loop);
	free(w);
}

static void world_connect(struct world *w, bool ip6)
{
	struct udp_addr to = {.port = PORT};
	int r;

	assert_true(ip_addr_parse_text(ip6 ? "2001:db8::2" : "10.0.0.2", &to.ip));
	w->e[1].listener = sock_open(w->e[1].socks, SOCK_KIND_TCP);
	assert_int_equal(sock_bind(w->e[1].socks, w->e[1].listener, &to), 0);
	assert_int_equal(sock_listen(w->e[1].socks, w->e[1].listener, 8), 0);
	w->e[0].s = sock_open(w->e[0].socks, SOCK_KIND_TCP);
	r = sock_connect(w->e[0].socks, w->e[0].s, &to, w->now);
	assert_int_equal(r, -EINPROGRESS);
	stack_port_kick(w->e[0].port);
}

/* Until both ends have seen the other's end. Returns the time it took. */
static double world_run(struct world *w, const char *what)
{
	nsec_t begun = w->now;

	while (!w->e[0].ended || !w->e[1].ended) {
		nsec_t next;

		loop_dispatch(&w->loop, false);
		if (!TAILQ_EMPTY(&w->loop.tasks))
			continue;
		next = loop_deadline(&w->loop);
		if (next == NSEC_NEVER || w->now - w->moved > STALL || w->now - begun > LIMIT)
			fail_msg("%s: nothing moves any more: %llu and %llu bytes at %.3f s", what,
				(unsigned long long)w->e[0].got, (unsigned long long)w->e[1].got,
				(double)(w->now - begun) / 1e9);
		if (next > w->now)
			w->now = next;
		if (w->away && w->now >= w->next_away) {
			w->next_away = w->now + AWAY_EACH;
			w->now += w->away;
			w->times_away++;
		}
	}
	return (double)(w->moved - begun) / 1e9;
}

struct row {
	const char *name, *words;
	uint32_t there, back; /* bytes */
	double least[2];      /* Mbit/s by wire, by super-packets: a third of what was seen */
};

static const struct row rows[] = {
	{"clean, 20 ms", "delay=10ms", 4 << 20, 100000, {55, 53}},
	{"loss 0.1 %", "delay=10ms+loss=0.1%", 4 << 20, 100000, {49, 53}},
	{"loss 1 %", "delay=10ms+loss=1%", 2 << 20, 100000, {1.8, 3.9}},
	{"loss 3 %", "delay=10ms+loss=3%", 1 << 20, 100000, {1, 1.5}},
	{"loss 10 %", "delay=10ms+loss=10%", 300000, 50000, {0.3, 0.1}},
	{"loss 30 %", "delay=10ms+loss=30%", 30000, 10000, {0, 0}},
	{"losses in spells", "delay=10ms+loss=burst:0.5%:25%", 1 << 20, 100000, {3, 3}},
	{"every tenth lost", "delay=10ms+in.loss=every:10", 300000, 100000, {0.5, 0.7}},
	{"reordered 5 %", "delay=10ms+reorder=5%", 2 << 20, 100000, {30, 27}},
	{"twice 5 %", "delay=10ms+dup=5%", 2 << 20, 100000, {30, 29}},
	{"spoiled 1 %", "delay=10ms+corrupt=1%", 1 << 20, 100000, {2.5, 2.5}},
	{"jitter", "delay=10ms+jitter=8ms", 2 << 20, 100000, {18, 22}},
	{"20 Mbit/s, 128 KiB", "delay=10ms+rate=20M+limit=128K", 4 << 20, 100000, {12, 12}},
	{"2 Mbit/s, tiny queue", "delay=5ms+rate=2M+limit=20K", 500000, 50000, {1.2, 1.1}},
	{"MTU hole 1400", "delay=5ms+mtu_hole=1400", 1 << 20, 1 << 20, {0.3, 0.3}},
	{"all of it",
		"delay=10ms+jitter=5ms+loss=1%+reorder=2%+dup=1%+corrupt=0.5%+rate=50M+mtu_hole="
		"1400",
		1 << 20, 1 << 20, {0.25, 0.25}},
};

static void row_run(const struct row *r, unsigned super, bool cubic)
{
	struct tcp_conf tcp = {.cubic = cubic, .wscale = 0xff};
	const char *seed = getenv("SEED");
	const struct tcp_counters *k;
	struct world *w;
	char words[256];
	double t, mbit;

	snprintf(words, sizeof(words), "%s+unit=%s+seed=%s", r->words, super ? "super" : "wire",
		seed ? seed : "1");
	w = world_new(words, &tcp);
	w->e[0].to_send = r->there;
	w->e[1].to_send = r->back;
	world_connect(w, super);
	t = world_run(w, r->name);
	assert_int_equal(w->e[1].got, r->there);
	assert_int_equal(w->e[0].got, r->back);
	k = tcp_host_counters(stack_tcp(w->e[0].stack));
	mbit = (double)r->there * 8 / t / 1e6;
	printf("%-22s %-5s %8.3f Mbit/s  again %4llu  timer %2llu  probes %2llu  holes %llu\n",
		r->name, super ? "super" : "wire", mbit, (unsigned long long)k->retrans,
		(unsigned long long)k->rto, (unsigned long long)k->tlp,
		(unsigned long long)k->black_holes);
	if (!seed && mbit < r->least[super])
		fail_msg("%s: %.3f Mbit/s, expected %.3f at least", r->name, mbit, r->least[super]);
	if (strstr(r->name, "clean") || strstr(r->name, "jitter"))
		assert_int_equal(k->retrans, 0);
	world_free(w);
}

static void test_rows(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned super = 0; super < 2; super++)
			row_run(&rows[i], super, true);
}

/* Reno and p: at least 70 % of MSS / RTT * 1.22 / sqrt(p). [Mathis 1997] */
static void test_reno_by_the_formula(void **state)
{
	struct tcp_conf tcp = {.wscale = 0xff};
	struct world *w = world_new("delay=10ms+in.loss=0.5%+unit=wire+seed=3", &tcp);
	double t, mbit, formula = 1448 * 8 / 0.02 * 1.22 / 0.0707 / 1e6;

	(void)state;
	w->e[0].to_send = 8 << 20;
	w->e[1].to_send = 1;
	world_connect(w, false);
	t = world_run(w, "the formula");
	mbit = (8 << 20) * 8.0 / t / 1e6;
	printf("Reno, loss 0.5 %%: %.3f Mbit/s, the formula says %.3f\n", mbit, formula);
	assert_true(mbit > 0.7 * formula);
	assert_int_equal(tcp_host_counters(stack_tcp(w->e[0].stack))->rto, 0);
	world_free(w);
}

/* The process does not run for 50 ms: everything has waited, nothing is lost. */
static void test_descheduled(void **state)
{
	static const char *const paths[] = {
		"delay=500us+rate=200M", "delay=5ms+rate=200M", "delay=50us"};
	struct tcp_conf tcp = {.cubic = true, .wscale = 0xff};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct world *w = world_new(paths[i], &tcp);
		const struct tcp_counters *k;

		w->away = 50 * NSEC_PER_MSEC;
		w->e[0].to_send = 8 << 20;
		w->e[1].to_send = 1 << 20;
		world_connect(w, false);
		world_run(w, paths[i]);
		assert_true(w->times_away > 2);
		for (unsigned e = 0; e < 2; e++) {
			k = tcp_host_counters(stack_tcp(w->e[e].stack));
			printf("away, %s: again %llu, timer %llu, probes %llu\n", paths[i],
				(unsigned long long)k->retrans, (unsigned long long)k->rto,
				(unsigned long long)k->tlp);
			assert_int_equal(k->retrans, 0);
		}
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_descheduled),
		cmocka_unit_test(test_reno_by_the_formula),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
