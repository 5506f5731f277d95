/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric_rig: what the tests of the fabric share: a network of four fake ports in virtual time.
 */
#ifndef FABRIC_FABRIC_RIG_H
#define FABRIC_FABRIC_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "fabric/fabric.h"
#include "fabric/fdb.h"
#include "port/fake.h"
#include "wire/eth.h"

#define PORTS     4
#define BROADCAST UINT64_C(0xffffffffffff)
#define WAIT      (WAIT_US_DEFAULT * NSEC_PER_USEC)

enum { A, B, C, D };

struct net {
	struct loop loop;
	nsec_t now, step;
	struct fabric *f;
	struct fake p[PORTS];
};

static uint8_t buf[FRAME_MAX]; /* the last frame built */

static inline uint64_t mac_of(unsigned port)
{
	return UINT64_C(0x525400000100) + port;
}

static inline struct net *net_new(const struct fabric_config *cfg)
{
	static const char *const name[PORTS] = {"a", "b", "c", "d"};
	struct net *n = calloc(1, sizeof(*n));

	assert_int_equal(loop_init(&n->loop, NULL), 0);
	n->now = NSEC_PER_SEC;
	n->step = cfg->poll_us ? NSEC_PER_USEC : 0;
	n->loop.virtual_now = &n->now;
	n->loop.now = n->now;
	assert_int_equal(fabric_new(&n->f, cfg, &n->loop, NULL, NULL), 0);
	for (unsigned i = 0; i < PORTS; i++) {
		fake_init(&n->p[i], name[i], &n->loop);
		assert_int_equal(fabric_attach(n->f, &n->p[i].port, NULL), 0);
	}
	return n;
}

static inline int setup(void **state)
{
	const struct fabric_config cfg = {
		.wait_us = WAIT_US_DEFAULT, .age_sec = FDB_AGE_SEC, .seed = 7};

	*state = net_new(&cfg);
	return 0;
}

static inline int setup_poll(void **state)
{
	const struct fabric_config cfg = {
		.poll_us = 50, .wait_us = WAIT_US_DEFAULT, .age_sec = FDB_AGE_SEC, .seed = 7};

	*state = net_new(&cfg);
	return 0;
}

static inline int teardown(void **state)
{
	struct net *n = *state;

	for (unsigned i = 0; i < PORTS; i++) {
		if (n->p[i].port.events)
			fabric_detach(n->f, &n->p[i].port);
		fake_fini(&n->p[i]);
	}
	fabric_free(n->f);
	assert_int_equal(n->loop.nheap, 0);
	assert_true(TAILQ_EMPTY(&n->loop.tasks));
	loop_fini(&n->loop);
	free(n);
	return 0;
}

/* Rounds, until nothing is deferred. Time stands still, unless there is polling. */
static inline void run(struct net *n)
{
	for (unsigned i = 0; !TAILQ_EMPTY(&n->loop.tasks); i++) {
		assert_true(i < 100000);
		loop_dispatch(&n->loop, false);
		n->now += n->step;
	}
}

static inline void pass(struct net *n, nsec_t ns)
{
	nsec_t end = n->now + ns;

	for (run(n); loop_deadline(&n->loop) <= end; run(n)) {
		n->now = loop_deadline(&n->loop);
		loop_dispatch(&n->loop, false);
	}
	n->now = end;
	loop_dispatch(&n->loop, false);
	run(n);
}

static inline bool idle(const struct net *n)
{
	return TAILQ_EMPTY(&n->loop.tasks) && loop_deadline(&n->loop) == NSEC_NEVER;
}

static inline void lend(
	struct net *n, unsigned from, uint64_t dst, uint16_t tag, uint32_t len, uint32_t count)
{
	fake_lend(&n->p[from], buf, fake_eth(buf, dst, mac_of(from), tag, len, count), NULL);
}

static inline void lend_tcp(struct net *n, unsigned from, uint64_t dst, uint32_t payload,
	uint16_t gso_size, uint32_t seq)
{
	struct offload off;
	uint32_t len = fake_tcp4(buf, dst, mac_of(from), payload, gso_size, seq, &off);

	fake_lend(&n->p[from], buf, len, &off);
}

/* Lend one frame and see it through. */
static inline void send(struct net *n, unsigned from, uint64_t dst, uint16_t tag, uint32_t count)
{
	lend(n, from, dst, tag, 100, count);
	fake_kick(&n->p[from]);
	run(n);
}

static inline void forget_got(struct net *n)
{
	for (unsigned i = 0; i < PORTS; i++)
		fake_clear(&n->p[i].got);
}

/* Everybody's address is known. */
static inline void introduce(struct net *n)
{
	for (unsigned i = 0; i < PORTS; i++)
		send(n, i, BROADCAST, 0, i);
	forget_got(n);
}

static inline uint32_t count_of(const struct fake_frame *f)
{
	return get_be32(f->data + ETH_HLEN);
}

/* How many frames each port got since the last call, as a number to read: 0110 is one at B and C. */
static inline unsigned got(struct net *n)
{
	unsigned digits = 0;

	for (unsigned i = 0; i < PORTS; i++)
		digits = 10 * digits + n->p[i].got.n;
	forget_got(n);
	return digits;
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define P(fn) cmocka_unit_test_setup_teardown(fn, setup_poll, teardown)

#endif
