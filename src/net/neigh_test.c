/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neigh_test: the table alone: one line per thing that happens, then what it did.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "net/neigh.h"

#define SEC NSEC_PER_SEC

struct bed {
	struct neigh_table *t;
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	nsec_t now;
	unsigned asked, unicast, sent, back;
	uint8_t to[6]; /* of the last one sent */
};

static const uint8_t a[6] = {2, 0, 0, 0, 0, 0xa}, b[6] = {2, 0, 0, 0, 0, 0xb};

static void on_ask(void *ctx, const struct ip_addr *ip, const uint8_t *mac)
{
	struct bed *d = ctx;

	(void)ip;
	d->asked++;
	d->unicast += mac != NULL;
}

static void on_release(void *ctx, struct pkt *p, const struct ip_addr *ip, const uint8_t *mac)
{
	struct bed *d = ctx;

	(void)ip;
	if (mac)
		memcpy(d->to, mac, 6);
	*(mac ? &d->sent : &d->back) += 1;
	pkt_free(p);
}

static int setup(void **state)
{
	static const struct neigh_ops ops = {on_ask, on_release};
	const uint8_t key[16] = {7};
	struct bed *d = calloc(1, sizeof(*d));

	assert_int_equal(chunk_pool_init(&d->chunks, 1 << 20, NULL), 0);
	assert_int_equal(pkt_pool_init(&d->pkts, &d->chunks, 1024, NULL), 0);
	assert_int_equal(neigh_new(&d->t, key, &ops, d, NULL), 0);
	d->now = SEC;
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct bed *d = *state;

	neigh_free(d->t);
	assert_int_equal(d->pkts.live, 0);
	pkt_pool_fini(&d->pkts);
	chunk_pool_fini(&d->chunks);
	free(d);
	return 0;
}

static struct ip_addr ip(uint32_t n)
{
	return ip_addr4_u32(0x0a000000 + n);
}

/* True: the address is known, and it is `mac`. */
static bool use(struct bed *d, uint32_t n, const uint8_t *mac)
{
	const struct ip_addr to = ip(n);
	struct pkt *p = pkt_new(&d->pkts, 64, 100);
	const uint8_t *known = neigh_resolve(d->t, &to, p, d->now);

	if (known)
		pkt_free(p);
	return known && (!mac || !memcmp(known, mac, 6));
}

static void hear(struct bed *d, uint32_t n, const uint8_t *mac, enum neigh_news news)
{
	const struct ip_addr from = ip(n);

	neigh_learn(d->t, &from, mac, news, d->now);
}

static void pass(struct bed *d, nsec_t span)
{
	const nsec_t end = d->now + span;

	while (neigh_deadline(d->t) <= end) {
		if (neigh_deadline(d->t) > d->now)
			d->now = neigh_deadline(d->t);
		neigh_timer(d->t, d->now);
	}
	d->now = end;
}

static void answered(void **state)
{
	struct bed *d = *state;

	assert_false(use(d, 1, NULL));
	assert_false(use(d, 1, NULL));
	assert_int_equal(d->asked, 1);
	pass(d, SEC / 2);
	hear(d, 1, a, NEIGH_ANSWER);
	assert_int_equal(d->sent, 2);
	assert_memory_equal(d->to, a, 6);
	assert_true(use(d, 1, a));
	pass(d, 2 * SEC);
	assert_int_equal(neigh_deadline(d->t), NSEC_NEVER);
	assert_int_equal(d->asked, 1);
}

static void not_answered(void **state)
{
	struct bed *d = *state;

	use(d, 1, NULL);
	pass(d, 10 * SEC);
	assert_int_equal(d->asked, NEIGH_ASKS);
	assert_int_equal(d->back, 1);
	assert_int_equal(neigh_count(d->t), 0);
}

/* Used again after long: used at once, asked after five seconds, by unicast. */
static void stale(void **state)
{
	struct bed *d = *state;

	use(d, 1, NULL);
	hear(d, 1, a, NEIGH_ANSWER);
	pass(d, NEIGH_REACHABLE + SEC);
	assert_int_equal(d->asked, 1);
	assert_true(use(d, 1, a));
	pass(d, NEIGH_DELAY + SEC / 2);
	assert_int_equal(d->unicast, 1);
	hear(d, 1, a, NEIGH_ANSWER);
	pass(d, 10 * SEC);
	assert_int_equal(d->asked, 2);
	/* gone: asked by unicast, then by all, then it is over */
	pass(d, NEIGH_REACHABLE);
	use(d, 1, a);
	pass(d, 20 * SEC);
	assert_int_equal(d->asked, 2 + 2 * NEIGH_ASKS);
	assert_int_equal(d->unicast, 1 + NEIGH_ASKS);
	assert_int_equal(neigh_count(d->t), 0);
}

static void confirmed(void **state)
{
	struct bed *d = *state;
	const struct ip_addr x = ip(1);

	use(d, 1, NULL);
	hear(d, 1, a, NEIGH_ANSWER);
	for (unsigned i = 0; i < 100; i++) {
		pass(d, 10 * SEC);
		use(d, 1, a);
		neigh_confirm(d->t, &x, d->now);
	}
	assert_int_equal(d->asked, 1);
}

/* A liar gets nothing while the true one answers, and everything when it does not. */
static void taken_over(void **state)
{
	struct bed *d = *state;

	hear(d, 1, b, NEIGH_UNASKED);
	hear(d, 1, b, NEIGH_ANSWER);
	assert_int_equal(neigh_count(d->t), 0);
	use(d, 1, NULL);
	hear(d, 1, a, NEIGH_ANSWER);
	hear(d, 1, b, NEIGH_ANSWER);
	hear(d, 1, b, NEIGH_UNASKED);
	hear(d, 1, b, NEIGH_ASKED_US);
	assert_true(use(d, 1, a));
	assert_int_equal(d->unicast, 1);
	hear(d, 1, a, NEIGH_ANSWER);
	pass(d, 2 * SEC);
	assert_true(use(d, 1, a));
	/* moved: the old one is silent, the new one answers the question to all */
	hear(d, 1, b, NEIGH_UNASKED);
	pass(d, (NEIGH_ASKS + 1) * SEC);
	hear(d, 1, b, NEIGH_ANSWER);
	assert_true(use(d, 1, b));
}

/* However many are asked for: the caps hold, who is known stays known. */
static void caps(void **state)
{
	struct bed *d = *state;

	use(d, 1, NULL);
	hear(d, 1, a, NEIGH_ANSWER);
	for (unsigned i = 0; i < 5000; i++) {
		use(d, 100 + i, NULL);
		assert_true(neigh_count(d->t) <= NEIGH_INCOMPLETE + 1);
		assert_true(d->pkts.live <= NEIGH_INCOMPLETE);
	}
	assert_true(use(d, 1, a));
	/* requests to us make entries, up to the cap; those used longest ago go */
	for (unsigned i = 0; i < 5000; i++)
		hear(d, 10000 + i, b, NEIGH_ASKED_US);
	assert_int_equal(neigh_count(d->t), NEIGH_MAX);
	assert_true(use(d, 14999, b));
}

static void queue(void **state)
{
	struct bed *d = *state;

	for (unsigned i = 0; i < 100; i++)
		use(d, 1, NULL);
	assert_int_equal(d->pkts.live, NEIGH_QUEUE);
	assert_int_equal(neigh_counters(d->t)->queue_full, 100 - NEIGH_QUEUE);
	hear(d, 1, a, NEIGH_ANSWER);
	assert_int_equal(d->sent, NEIGH_QUEUE);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answered),
		TEST(not_answered),
		TEST(stale),
		TEST(confirmed),
		TEST(taken_over),
		TEST(caps),
		TEST(queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
