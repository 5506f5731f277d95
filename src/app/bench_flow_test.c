/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow: every benchmark of flows with two hosts and the network between them in this process,
 * counted, never timed: all bytes that were asked for arrive, unchanged.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_flows.h"

static struct bench_flows_config config(enum flow_kind kind, uint64_t count)
{
	struct bench_flows_config c = {.cwd = "/",
		.net = "lab",
		.impair = "",
		.knobs = "",
		.mtu = 1500,
		.time = 100 * NSEC_PER_SEC};

	c.flow.kind = kind;
	c.flow.bytes = count;
	c.flow.message = kind == FLOW_UDP ? 1472 : 131072;
	c.flow.request = c.flow.response = 100;
	c.flow.sessions = 3;
	c.flow.train = 8;
	c.flow.server.port = BENCH_PORT;
	assert_true(ip_addr_parse_text("10.99.0.2", &c.flow.server.ip));
	return c;
}

static void run(struct bench_flows *b, const struct bench_flows_config *c)
{
	struct err err = {""};

	if (bench_flows_init(b, c, &err) || bench_flows_run(b, NULL, NULL, &err))
		fail_msg("%s", err.text);
	assert_int_equal(b->client.side->failed, 0);
	assert_int_equal(b->server.side->failed, 0);
	assert_int_equal(bench_flows_wrong(b), 0);
}

static void streams(void **state)
{
	struct bench_flows *b = *state;

	for (enum flow_kind k = FLOW_SINK; k <= FLOW_SOURCE; k++)
		for (unsigned ip = 4; ip <= 6; ip += 2) {
			struct bench_flows_config c = config(k, 5000001);

			if (ip == 6)
				ip_addr_parse_text("fd99::2", &c.flow.server.ip);
			run(b, &c);
			assert_int_equal(bench_flows_bytes(b), 3 * 5000001);
			bench_flows_fini(b);
		}
}

static void exchanges(void **state)
{
	struct bench_flows *b = *state;
	struct bench_flows_config c = config(FLOW_RR, 3000);

	run(b, &c);
	assert_in_range(b->client.side->exchanges, 3000, 3002);
	assert_int_equal(b->client.side->hist.n, b->client.side->exchanges);
	bench_flows_fini(b);
	c = config(FLOW_UDP_RR, 500);
	run(b, &c);
	assert_int_equal(b->client.side->exchanges, 1500);
	assert_int_equal(bench_flows_bytes(b), 1500 * 100);
	bench_flows_fini(b);
	/* more connections than fit TIME-WAIT of one address: reused and evicted */
	c = config(FLOW_CRR, 6000);
	run(b, &c);
	assert_in_range(b->client.side->exchanges, 6000, 6002);
	assert_in_range(b->server.tcp.accepts, 6000, 6003);
	bench_flows_fini(b);
}

static void datagrams(void **state)
{
	struct bench_flows *b = *state;
	struct bench_flows_config c = config(FLOW_UDP, 2000);

	for (c.flow.train = 1; c.flow.train <= 40; c.flow.train += 39) {
		run(b, &c);
		assert_int_equal(b->client.side->sent_packets, 6000);
		assert_int_equal(b->client.side->packets, b->server.side->packets);
		assert_in_range(b->server.side->packets, 1000, 6000);
		bench_flows_fini(b);
	}
}

/* The same with a thread for each host and the network. */
static void three_threads(void **state)
{
	struct bench_flows *b = *state;
	struct bench_flows_config c;

	for (enum flow_kind k = FLOW_SINK; k <= FLOW_SOURCE; k++) {
		c = config(k, 5000001);
		c.threads = 3;
		run(b, &c);
		assert_int_equal(bench_flows_bytes(b), 3 * 5000001);
		assert_int_equal(b->pingpong.n, 0);
		bench_flows_fini(b);
	}
	c = config(FLOW_UDP_RR, 200);
	c.threads = 3;
	run(b, &c);
	assert_int_equal(b->client.side->exchanges, 600);
	assert_true(b->pingpong.n > 0);
	assert_true(b->server_thread.cpu_seconds > 0 && b->network_thread.cpu_seconds > 0);
	bench_flows_fini(b);
	c = config(FLOW_CRR, 300);
	c.threads = 3;
	run(b, &c);
	assert_in_range(b->server.tcp.accepts, 300, 303);
	bench_flows_fini(b);
}

/* Everybody has a CPU that may be used, and one of his own if there are enough. */
static void placement(void **state)
{
	struct bench_place p;
	struct err err = {""};
	cpu_set_t all, one;
	int n;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	n = CPU_COUNT(&all);
	assert_int_equal(bench_place(&p, &err), 0);
	assert_true(CPU_ISSET(p.client, &all) && CPU_ISSET(p.network, &all) &&
		    CPU_ISSET(p.server, &all));
	assert_int_equal(bench_place_own(&p, p.client), n > 1);
	assert_int_equal(bench_place_own(&p, p.network), n > 2);
	assert_int_equal(bench_place_own(&p, p.server), n > 2);
	bench_pin(p.server, &one);
	assert_true(CPU_EQUAL(&one, &all));
	assert_int_equal(bench_place(&p, &err), 0);
	assert_true(p.client == p.server && p.network == p.server);
	bench_pin(-1, &one);
	assert_int_equal(sched_getaffinity(0, sizeof(one), &one), 0);
	assert_true(CPU_EQUAL(&one, &all));
}

static void mistakes(void **state)
{
	struct bench_flows *b = *state;
	struct bench_flows_config c = config(FLOW_SINK, 1000000);
	struct err err = {""};

	c.knobs = ",off=nothing";
	assert_int_equal(bench_flows_init(b, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "nothing"));
	c.knobs = "";
	c.via = "vhost-user:x";
	c.addr = "10.0.0.1/24";
	assert_int_equal(bench_flows_init(b, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "virtio-user"));
	c.addr = "10.0.0";
	assert_int_equal(bench_flows_init(b, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "ADDR/LEN"));
}

static void percentiles(void **state)
{
	struct bench_hist *h = calloc(1, sizeof(*h));

	(void)state;
	assert_true(bench_hist_at(h, 0.5) == 0);
	for (unsigned i = 1; i <= 100000; i++)
		bench_hist_add(h, i);
	bench_hist_add(h, INT64_MAX);
	assert_true(bench_hist_at(h, 0.5) > 49000 && bench_hist_at(h, 0.5) < 51000);
	assert_true(bench_hist_at(h, 0.99) > 98000 && bench_hist_at(h, 0.99) < 100600);
	assert_true(bench_hist_at(h, 0.0005) > 48 && bench_hist_at(h, 0.0005) < 52);
	assert_int_equal(h->min, 1);
	free(h);
}

static int setup(void **state)
{
	setenv("XDG_RUNTIME_DIR", "/tmp", 1);
	*state = malloc(sizeof(struct bench_flows));
	return !*state;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams),
		cmocka_unit_test(exchanges),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(three_threads),
		cmocka_unit_test(placement),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(percentiles),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
