/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fdb: by example, and against a plain model under random traffic.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "fabric/fdb.h"

#define SEC NSEC_PER_SEC
#define A   UINT64_C(0x525400000001)
#define B   UINT64_C(0x525400000002)

static int setup(void **state)
{
	*state = fdb_new(42, FDB_AGE_SEC);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	fdb_free(*state);
	return 0;
}

static void learns_and_finds(void **state)
{
	struct fdb *t = *state;

	assert_int_equal(fdb_find(t, A, 0, 0), -1);
	assert_false(fdb_learn(t, A, 0, 3, 0));
	assert_false(fdb_learn(t, A, 0, 3, SEC));
	fdb_prefetch(t, A, 0);
	assert_int_equal(fdb_find(t, A, 0, SEC), 3);
	assert_int_equal(fdb_find(t, B, 0, SEC), -1);
	assert_int_equal(fdb_count(t, 3), 1);
}

static void vlans_are_apart(void **state)
{
	struct fdb *t = *state;

	fdb_learn(t, A, 0, 1, 0);
	fdb_learn(t, A, 7, 2, 0);
	assert_int_equal(fdb_find(t, A, 0, 0), 1);
	assert_int_equal(fdb_find(t, A, 7, 0), 2);
	assert_int_equal(fdb_find(t, A, 8, 0), -1);
	assert_int_equal(fdb_moves(t), 0);
}

static void a_station_moves(void **state)
{
	struct fdb *t = *state;

	fdb_learn(t, A, 0, 1, 0);
	fdb_learn(t, B, 0, 1, 0);
	assert_true(fdb_learn(t, A, 0, 2, 0));
	assert_int_equal(fdb_find(t, A, 0, 0), 2);
	assert_int_equal(fdb_find(t, B, 0, 0), 1);
	assert_int_equal(fdb_count(t, 1), 1);
	assert_int_equal(fdb_count(t, 2), 1);
	assert_int_equal(fdb_moves(t), 1);
}

static void ages(void **state)
{
	struct fdb *t = *state;
	struct fdb_entry e;
	uint32_t cursor = 0;

	fdb_learn(t, A, 0, 1, 10 * SEC);
	fdb_learn(t, A, 0, 1, 20 * SEC);
	assert_int_equal(fdb_find(t, A, 0, (20 + FDB_AGE_SEC) * SEC), 1);
	assert_true(fdb_next(t, (20 + FDB_AGE_SEC) * SEC, &cursor, &e));
	assert_int_equal(e.age_sec, FDB_AGE_SEC);
	assert_int_equal(fdb_find(t, A, 0, (21 + FDB_AGE_SEC) * SEC), -1);
	cursor = 0;
	assert_false(fdb_next(t, (21 + FDB_AGE_SEC) * SEC, &cursor, &e));
	/* not a move: it was forgotten */
	assert_false(fdb_learn(t, A, 0, 2, 1000 * SEC));
	assert_int_equal(fdb_find(t, A, 0, 1000 * SEC), 2);
	assert_int_equal(fdb_count(t, 1), 0);
}

static void aged_places_are_used_again(void **state)
{
	struct fdb *t = *state;

	for (unsigned i = 0; i < 10; i++)
		fdb_learn(t, A + i, 0, 1, 0);
	for (unsigned i = 0; i < 10; i++)
		fdb_learn(t, A + 100 + i, 0, 1, 1000 * SEC);
	assert_int_equal(fdb_count(t, 1), 10);
}

static void at_its_share_a_port_displaces_its_own_oldest(void **state)
{
	struct fdb *t = *state;
	uint64_t was;

	for (unsigned i = 0; i < FDB_SHARE; i++) {
		fdb_learn(t, A + i, 0, 1, (nsec_t)i * SEC / 100);
		fdb_learn(t, A + i, 5, 2, (nsec_t)i * SEC / 100);
	}
	fdb_learn(t, A, 0, 1, 6 * SEC); /* seen again: now the second is the oldest */
	for (unsigned i = 0; i < 3 * FDB_SHARE; i++)
		fdb_learn(t, B << 8 | i, 0, 1, 6 * SEC);
	assert_int_equal(fdb_count(t, 1), FDB_SHARE);
	assert_int_equal(fdb_count(t, 2), FDB_SHARE);
	for (unsigned i = 0; i < FDB_SHARE; i++) {
		assert_int_equal(fdb_find(t, A + i, 5, 6 * SEC), 2);
		assert_int_equal(fdb_find(t, A + i, 0, 6 * SEC), -1);
	}
	/* one by one, oldest first */
	fdb_forget_port(t, 1);
	for (unsigned i = 0; i < FDB_SHARE; i++)
		fdb_learn(t, A + i, 0, 1, (nsec_t)i * SEC / 100);
	fdb_learn(t, A, 0, 1, 6 * SEC);
	was = fdb_evicted(t);
	fdb_learn(t, B << 8, 0, 1, 6 * SEC);
	assert_int_equal(fdb_evicted(t), was + 1);
	assert_int_equal(fdb_find(t, A + 1, 0, 6 * SEC), -1);
	assert_int_equal(fdb_find(t, A, 0, 6 * SEC), 1);
	assert_int_equal(fdb_find(t, A + 2, 0, 6 * SEC), 1);
}

static void a_move_into_a_full_port_displaces_there(void **state)
{
	struct fdb *t = *state;

	fdb_learn(t, B, 0, 2, 0);
	for (unsigned i = 0; i < FDB_SHARE; i++)
		fdb_learn(t, (A + i) << 4, 0, 1, (nsec_t)i * SEC / 10);
	assert_true(fdb_learn(t, B, 0, 1, 60 * SEC));
	assert_int_equal(fdb_count(t, 1), FDB_SHARE);
	assert_int_equal(fdb_count(t, 2), 0);
	assert_int_equal(fdb_find(t, A << 4, 0, 60 * SEC), -1);
	assert_int_equal(fdb_find(t, B, 0, 60 * SEC), 1);
}

static void never_full(void **state)
{
	struct fdb *t = *state;

	for (unsigned p = 0; p < PORTS_MAX; p++) {
		for (unsigned i = 0; i < FDB_SHARE; i++)
			fdb_learn(t, A + p * FDB_SHARE + i, 0, p, 0);
	}
	for (unsigned p = 0; p < PORTS_MAX; p++) {
		assert_int_equal(fdb_count(t, p), FDB_SHARE);
		for (unsigned i = 0; i < FDB_SHARE; i++)
			assert_int_equal(fdb_find(t, A + p * FDB_SHARE + i, 0, 0), p);
	}
	for (unsigned p = 0; p < PORTS_MAX; p += 2)
		fdb_forget_port(t, p);
	for (unsigned p = 0; p < PORTS_MAX; p++) {
		assert_int_equal(fdb_count(t, p), p % 2 ? FDB_SHARE : 0);
		for (unsigned i = 0; i < FDB_SHARE; i++)
			assert_int_equal(
				fdb_find(t, A + p * FDB_SHARE + i, 0, 0), p % 2 ? (int)p : -1);
	}
}

static void walk_sees_each_once(void **state)
{
	struct fdb *t = *state;
	bool seen[100] = {0};
	struct fdb_entry e;
	uint32_t cursor = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < 100; i++)
		fdb_learn(t, A + i, i % 3, i % 7, 0);
	while (fdb_next(t, 2 * SEC, &cursor, &e)) {
		unsigned i = e.mac[5] - 1u;

		assert_memory_equal(e.mac, "\x52\x54\0\0\0", 5);
		assert_true(i < 100 && !seen[i]);
		seen[i] = true;
		assert_int_equal(e.vlan, i % 3);
		assert_int_equal(e.port, i % 7);
		assert_int_equal(e.age_sec, 2);
		n++;
	}
	assert_int_equal(n, 100);
}

/* the model: an array of what is known, with a stamp for the order of refreshes */

#define KEYS  1500
#define PORTS 3

struct known {
	int port; /* -1: not known */
	uint32_t sec;
	uint64_t stamp;
};

static void model_learn(struct known *k, unsigned key, int port, uint32_t sec, uint64_t *stamp)
{
	unsigned count = 0, oldest = KEYS, gone = 0;

	if (k[key].port == port) {
		if (k[key].sec != sec)
			k[key].stamp = ++*stamp;
		k[key].sec = sec;
		return;
	}
	k[key].port = -1;
	while (gone < 2) { /* aged ones of the port, at most two, oldest first */
		oldest = KEYS;
		for (unsigned i = 0; i < KEYS; i++) {
			if (k[i].port == port && (oldest == KEYS || k[i].stamp < k[oldest].stamp))
				oldest = i;
		}
		if (oldest == KEYS || sec - k[oldest].sec <= FDB_AGE_SEC)
			break;
		k[oldest].port = -1;
		gone++;
	}
	oldest = KEYS;
	for (unsigned i = 0; i < KEYS; i++) {
		if (k[i].port != port)
			continue;
		count++;
		if (oldest == KEYS || k[i].stamp < k[oldest].stamp)
			oldest = i;
	}
	if (count == FDB_SHARE)
		k[oldest].port = -1;
	k[key] = (struct known){port, sec, ++*stamp};
}

static void like_the_model(void **state)
{
	static struct known known[KEYS];
	struct fdb *t = *state;
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1, stamp = 0;
	uint32_t sec = 0;
	struct rand r;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned i = 0; i < KEYS; i++)
		known[i].port = -1;
	for (unsigned step = 0; step < 30000; step++) {
		unsigned key = rand_below(&r, KEYS), port = rand_below(&r, PORTS);
		nsec_t now;

		if (!rand_below(&r, 20))
			sec += rand_below(&r, 3);
		if (!rand_below(&r, 5000))
			sec += 200;
		now = sec * SEC + rand_below(&r, 1000000000);
		if (key % 4)
			port = key % PORTS; /* most stay where they are */
		fdb_learn(t, A * 7 + key / 2, key % 2, port, now);
		model_learn(known, key, (int)port, sec, &stamp);
		if (!rand_below(&r, 7000)) {
			fdb_forget_port(t, port);
			for (unsigned i = 0; i < KEYS; i++)
				known[i].port = known[i].port == (int)port ? -1 : known[i].port;
		}
		if (step % 500)
			continue;
		for (unsigned i = 0; i < KEYS; i++) {
			bool alive = known[i].port >= 0 && sec - known[i].sec <= FDB_AGE_SEC;

			assert_int_equal(
				fdb_find(t, A * 7 + i / 2, i % 2, now), alive ? known[i].port : -1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(learns_and_finds, setup, teardown),
		cmocka_unit_test_setup_teardown(vlans_are_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_station_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(ages, setup, teardown),
		cmocka_unit_test_setup_teardown(aged_places_are_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(
			at_its_share_a_port_displaces_its_own_oldest, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_move_into_a_full_port_displaces_there, setup, teardown),
		cmocka_unit_test_setup_teardown(never_full, setup, teardown),
		cmocka_unit_test_setup_teardown(walk_sees_each_once, setup, teardown),
		cmocka_unit_test_setup_teardown(like_the_model, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
