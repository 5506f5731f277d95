/* SPDX-License-Identifier: BSD-2-Clause */
/* Which queue a frame takes: one for each flow, all of them for many flows, the first for what is no IP. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "port/tap_queue.h"
#include "wire/bytes.h"
#include "wire/eth.h"

#define FLOWS 1024

struct made {
	struct frame f;
	struct frame_head head;
};

static void bare(struct made *m, uint16_t type, uint32_t len)
{
	memset(m, 0, sizeof(*m));
	m->f.head = m->head.data;
	m->f.head_len = (uint16_t)len;
	put_be16(m->f.head + 12, type);
}

static void udp4(struct made *m, uint32_t from, uint32_t to, uint16_t sport, uint16_t dport)
{
	uint8_t *p = m->head.data + ETH_HLEN;

	bare(m, ETH_TYPE_IP4, ETH_HLEN + 28);
	p[0] = 0x45;
	put_be16(p + 2, 28);
	p[8] = 64;
	p[9] = 17;
	put_be32(p + 12, from);
	put_be32(p + 16, to);
	put_be16(p + 20, sport);
	put_be16(p + 22, dport);
	put_be16(p + 24, 8);
}

static void udp6(struct made *m, uint8_t from, uint16_t sport)
{
	uint8_t *p = m->head.data + ETH_HLEN;

	bare(m, ETH_TYPE_IP6, ETH_HLEN + 48);
	p[0] = 0x60;
	put_be16(p + 4, 8);
	p[6] = 17;
	p[7] = 64;
	p[8 + 15] = from;
	p[24 + 15] = 9;
	put_be16(p + 40, sport);
	put_be16(p + 42, 5000);
	put_be16(p + 44, 8);
}

static void flows_are_spread(void **state)
{
	(void)state;
	for (unsigned queues = 2; queues <= 16; queues++) {
		unsigned got[3][16] = {{0}};
		struct made m;

		for (unsigned i = 0; i < FLOWS; i++) {
			udp4(&m, 0x0a000001, 0x0a000002, (uint16_t)(40000 + i), 80);
			got[0][tap_queue_of(&m.f, queues)]++;
			udp4(&m, 0x0a000000 + i, 0x0a000002, 1000, 80);
			got[1][tap_queue_of(&m.f, queues)]++;
			udp6(&m, (uint8_t)i, (uint16_t)(i >> 8));
			got[2][tap_queue_of(&m.f, queues)]++;
		}
		for (unsigned k = 0; k < 3; k++)
			for (unsigned q = 0; q < queues; q++)
				assert_in_range(got[k][q], FLOWS / queues / 2, 2 * FLOWS / queues);
	}
}

/* Whatever else differs: payload, length, how much of it is private. */
static void a_flow_takes_one(void **state)
{
	struct made m;
	unsigned q;

	(void)state;
	udp4(&m, 0x0a000001, 0x0a000002, 4711, 80);
	q = tap_queue_of(&m.f, 16);
	for (uint8_t i = 0; i < 80; i++) {
		m.head.data[ETH_HLEN + 28 + i] = i;
		m.head.data[ETH_HLEN + 4] = i; /* IP identification */
		m.f.head_len = (uint16_t)(ETH_HLEN + 28 + i);
		assert_int_equal(tap_queue_of(&m.f, 16), q);
	}
}

/* Only the first of a datagram's fragments has ports. */
static void fragments_stay_together(void **state)
{
	struct made m;
	unsigned q;

	(void)state;
	udp4(&m, 0x0a000001, 0x0a000002, 4711, 80);
	put_be16(m.head.data + ETH_HLEN + 6, 0x2000);
	q = tap_queue_of(&m.f, 16);
	for (uint16_t at = 1; at < 100; at++) {
		put_be16(m.head.data + ETH_HLEN + 6, at);
		put_be16(m.head.data + ETH_HLEN + 20, at); /* is payload here */
		assert_int_equal(tap_queue_of(&m.f, 16), q);
	}
}

static void the_rest_takes_the_first(void **state)
{
	struct made m;

	(void)state;
	bare(&m, 0x0806, 42);
	assert_int_equal(tap_queue_of(&m.f, 16), 0);
	bare(&m, ETH_TYPE_IP4, 60); /* no IP header */
	assert_int_equal(tap_queue_of(&m.f, 16), 0);
	for (uint16_t i = 0; i < 64; i++) { /* nothing is read beyond the head */
		udp4(&m, 0x0a000001, 0x0a000002, i, 80);
		m.f.head_len = 14 + 10;
		assert_int_equal(tap_queue_of(&m.f, 16), 0);
		m.f.head_len = ETH_HLEN + 28;
		assert_int_equal(tap_queue_of(&m.f, 1), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_are_spread),
		cmocka_unit_test(a_flow_takes_one),
		cmocka_unit_test(fragments_stay_together),
		cmocka_unit_test(the_rest_takes_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
