/* SPDX-License-Identifier: BSD-2-Clause */
/* A tap with several queues, against the kernel: flows, their order, and what is known of its wire. */
#include "port/tap_rig.h"

#define QUEUES 4
#define FLOWS  32
#define ROUNDS 20

static int setup(void **state)
{
	return setup_config(state, (struct tap_config){.queues = QUEUES});
}

/* A datagram of flow `i`: from a port of ours of its own. Returns the queue it took. */
static unsigned flow_push(struct fixture *fx, uint16_t i)
{
	static uint8_t bytes[FRAME_MAX];
	uint64_t before[QUEUES];
	struct made m;
	uint32_t len = udp_make(fx, bytes, 8, (uint8_t)i);

	put_be16(bytes + L4, (uint16_t)(PORT_US + i));
	put_be16(bytes + L4 + 6, 0); /* no checksum */
	for (unsigned q = 0; q < QUEUES; q++)
		before[q] = tap_queued(fx->port, q).out;
	frame_make(&m, bytes, len, 1);
	push_one(fx, &m.f);
	for (unsigned q = 0; q < QUEUES; q++)
		if (tap_queued(fx->port, q).out == before[q] + 1)
			return q;
	fail_msg("flow %u took no queue", i);
	return 0;
}

static void flow_answer(struct fixture *fx, uint16_t i, uint32_t number)
{
	struct sockaddr_in to = in_addr(IP_US, (uint16_t)(PORT_US + i));
	uint8_t data[8];

	put_be32(data, number);
	put_be32(data + 4, i);
	assert_int_equal(
		sendto(fx->udp, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)), 8);
}

/* One socket for all of them: it is connected to one, until now. */
static void unconnect(struct fixture *fx)
{
	struct sockaddr any = {.sa_family = AF_UNSPEC};

	assert_int_equal(connect(fx->udp, &any, sizeof(any)), 0);
}

/* The kernel answers a flow through the queue that we wrote it to. */
static void answers_come_by_the_queue_of_the_flow(void **state)
{
	struct fixture *fx = *state;
	bool used[QUEUES] = {false};

	assert_int_equal(tap_queues(fx->port), QUEUES);
	meet(fx);
	unconnect(fx);
	for (uint16_t i = 0; i < FLOWS; i++) {
		unsigned q = flow_push(fx, i);
		uint64_t before = tap_queued(fx->port, q).in;
		struct frame *f;

		flow_answer(fx, i, 0);
		f = next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
		assert_int_equal(get_be16(f->head + L4 + 2), PORT_US + i);
		settle_all(fx);
		assert_true(tap_queued(fx->port, q).in > before);
		used[q] = true;
	}
	for (unsigned q = 0; q < QUEUES; q++)
		assert_true(used[q]);
}

/* All flows at once, bursts cut short: nothing is lost, each flow in order, no queue is forgotten. */
static void flows_stay_in_order(void **state)
{
	struct fixture *fx = *state;
	uint32_t next[FLOWS] = {0};
	uint64_t before[QUEUES];
	unsigned left = FLOWS * ROUNDS, pulls = 0, idle = 0;

	meet(fx);
	unconnect(fx);
	for (uint16_t i = 0; i < FLOWS; i++)
		flow_push(fx, i);
	for (uint32_t n = 0; n < ROUNDS; n++)
		for (uint16_t i = 0; i < FLOWS; i++)
			flow_answer(fx, i, n);
	for (unsigned q = 0; q < QUEUES; q++)
		before[q] = tap_queued(fx->port, q).in;
	while (left) {
		/* each has more than that, and each has had its turn */
		for (unsigned q = 0; pulls == QUEUES && q < QUEUES; q++)
			assert_true(tap_queued(fx->port, q).in > before[q]);
		pull(fx, 7);
		if (!fx->b.n && (!fx->port->ops->arm(&fx->port->q) && !round_wait(fx)))
			fail_msg("%u datagrams were lost", left);
		pulls += fx->b.n > 0;
		for (unsigned k = 0; k < fx->b.n; k++) {
			const uint8_t *p = fx->b.f[k].head;
			uint16_t i = (uint16_t)(get_be16(p + L4 + 2) - PORT_US);

			if (get_be16(p + 12) != ETH_TYPE_IP4 || p[ETH_HLEN + 9] != IPPROTO_UDP ||
				i >= FLOWS)
				continue;
			assert_int_equal(get_be32(p + L4 + 8), next[i]++);
			left--;
		}
		settle_all(fx);
	}
	while (fx->port->ops->arm(&fx->port->q)) {
		pull(fx, BURST_FRAMES);
		settle_all(fx);
		assert_true(idle++ < 10);
	}
	for (unsigned q = 0; q < QUEUES; q++)
		assert_true(tap_queued(fx->port, q).in > 0);
}

/* By another name for the namespace, too. */
static void the_wire_is_known(void **state)
{
	struct fixture *fx = *state;
	const struct tap_config cfg = {
		.ifname = "tap9", .queues = QUEUES, .netns = "/proc/self/ns/net"};
	struct tap_wire wire = tap_wire(fx->port), again;
	struct port *second;

	assert_int_equal(wire.ifindex, if_nametoindex("tap9"));
	assert_int_not_equal(wire.netns, 0);
	assert_int_equal(tap_open(&second, "u", &cfg, &fx->loop, &fx->log, &fx->err), 0);
	assert_int_equal(tap_queues(second), QUEUES);
	again = tap_wire(second);
	assert_int_equal(again.ifindex, wire.ifindex);
	assert_int_equal(again.netns, wire.netns);
	tap_free(second);
	assert_true(fx->port->link);
}

static void refuse(struct fixture *fx, const struct tap_config *cfg, int code, const char *word)
{
	struct port *port;

	assert_int_equal(tap_open(&port, "u", cfg, &fx->loop, &fx->log, &fx->err), -code);
	if (!strstr(fx->err.text, word))
		fail_msg("\"%s\" lacks \"%s\"", fx->err.text, word);
}

static void mistakes_are_named(void **state)
{
	struct fixture *fx = *state;
	struct port *one;

	refuse(fx, &(struct tap_config){.ifname = "tap8", .queues = TAP_QUEUES + 1}, ERANGE,
		"queues=17");
	refuse(fx, &(struct tap_config){.ifname = "tap8", .queues = 2, .fd = 1000}, EINVAL,
		"one queue");
	/* an interface that is of the other sort already */
	refuse(fx, &(struct tap_config){.ifname = "tap9"}, EINVAL, "give queues=");
	assert_int_equal(tap_open(&one, "o", &(struct tap_config){.ifname = "tap7"}, &fx->loop,
				 &fx->log, &fx->err),
		0);
	refuse(fx, &(struct tap_config){.ifname = "tap7", .queues = 2}, EINVAL, "multi_queue");
	assert_int_equal(tap_queues(one), 1);
	tap_free(one);
}

#define WITH_TAP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TAP(answers_come_by_the_queue_of_the_flow),
		WITH_TAP(flows_stay_in_order),
		WITH_TAP(the_wire_is_known),
		WITH_TAP(mistakes_are_named),
	};

	if (!testns_enter())
		return TESTNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
