/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool parts with a peer: what was shared with it, what is shared with the next one, and what is
 * out over the change.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "frame/chunk.h"

#define KIB 1024u

static struct rand rnd;

static uint32_t draw(uint32_t n)
{
	return rand_below(&rnd, n);
}

static void pool_open(struct chunk_pool *p, size_t bytes)
{
	struct err err;

	if (chunk_pool_init(p, bytes, &err))
		fail_msg("%s", err.text);
}

/* Everything has come back and is whole. */
static void pool_close(struct chunk_pool *p)
{
	assert_int_equal(chunk_pool_live(p), 0);
	assert_int_equal(p->private, 0);
	assert_null(chunk_pool_check(p));
	for (unsigned o = 0; o < CHUNK_ORDERS - 1; o++)
		assert_int_equal(p->free[o], UINT32_MAX);
	chunk_pool_fini(p);
}

static uint8_t *peer_map(const struct chunk_pool *p)
{
	uint8_t *m = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	return m;
}

static bool peer_sees(const uint8_t *peer, const struct chunk_pool *p, const void *what, size_t n)
{
	return memmem(peer, p->len, what, n);
}

/* What was shared, and what will be, with a chunk of every kind out over the change. */
static void a_peer_that_was_left_sees_nothing_more(void **state)
{
	static const char before[] = "bytes of the first peer",
			  after[] = "bytes of the second peer";
	struct chunk *held, *small[3], *c;
	struct chunk_pool p;
	uint8_t *rings, *peer, *next;
	int fd;

	(void)state;
	pool_open(&p, 512 * KIB);
	rings = chunk_pool_reserve(&p, 64 * KIB);
	fd = p.fd;
	peer = peer_map(&p);
	held = chunk_get(&p, 3);
	for (unsigned i = 0; i < 3; i++)
		small[i] = chunk_get(&p, 0);
	memcpy(chunk_data(&p, held) + 5000, before, sizeof(before));
	memcpy(chunk_data(&p, small[1]) + 7, before, sizeof(before));
	chunk_put(&p, small[0]);
	assert_true(peer_sees(peer, &p, before, sizeof(before)));

	assert_int_equal(chunk_pool_renew(&p, NULL), 0);
	assert_int_equal(p.fd, fd);
	assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_null(chunk_pool_check(&p));
	assert_int_equal(p.private, 3);
	assert_true(chunk_is_private(held));
	next = peer_map(&p);
	assert_false(peer_sees(next, &p, before, sizeof(before)));

	/* the old peer does its worst: what was held is as it was */
	memset(peer, 0xee, p.len);
	assert_memory_equal(chunk_data(&p, held) + 5000, before, sizeof(before));
	assert_memory_equal(chunk_data(&p, small[1]) + 7, before, sizeof(before));
	assert_int_equal(*rings, 0);

	/* what is written from now on only the next one sees, but for what is private */
	c = chunk_get(&p, 2);
	assert_false(chunk_is_private(c));
	memcpy(chunk_data(&p, held), after, sizeof(after));
	assert_false(peer_sees(next, &p, after, sizeof(after)));
	memcpy(chunk_data(&p, c), after, sizeof(after));
	memcpy(rings, after, sizeof(after));
	assert_true(peer_sees(next, &p, after, sizeof(after)));
	assert_false(peer_sees(peer, &p, after, sizeof(after)));
	assert_memory_equal(next + (rings - p.base), after, sizeof(after));

	/* a private one comes back when its memory is shared again, not before */
	chunk_put(&p, held);
	assert_true(chunk_pool_torn(&p));
	assert_null(chunk_pool_check(&p));
	chunk_pool_mend(&p);
	assert_false(chunk_pool_torn(&p));
	assert_int_equal(p.private, 2);
	chunk_put(&p, c);
	held = chunk_get(&p, 3);
	memcpy(chunk_data(&p, held), after, sizeof(after));
	assert_memory_equal(next + (chunk_data(&p, held) - p.base), after, sizeof(after));

	/* or by the next change */
	chunk_put(&p, small[1]);
	chunk_put(&p, small[2]);
	assert_int_equal(chunk_pool_renew(&p, NULL), 0);
	assert_false(chunk_pool_torn(&p));
	assert_int_equal(p.private, 1);
	chunk_put(&p, held);
	chunk_pool_mend(&p);
	munmap(peer, p.len);
	munmap(next, p.len);
	pool_close(&p);
}

/* Changes in the middle of random use: bytes stay what they were, and what is new is shared. */
static void random_changes_of_peers(void **state)
{
	struct {
		struct chunk *chunk;
		uint8_t tag;
		unsigned born;
	} held[64] = {0};
	struct chunk_pool p;
	uint8_t *peer;
	unsigned age = 0;

	(void)state;
	pool_open(&p, 1024 * KIB);
	peer = peer_map(&p);
	for (unsigned i = 0; i < 4000; i++) {
		unsigned k = draw(64);

		if (draw(100) == 0) {
			munmap(peer, p.len);
			assert_int_equal(chunk_pool_renew(&p, NULL), 0);
			peer = peer_map(&p);
			age++;
		} else if (draw(50) == 0) {
			chunk_pool_mend(&p);
		} else if (held[k].chunk) {
			const struct chunk *c = held[k].chunk;
			const uint8_t *data = chunk_data(&p, c);
			uint32_t at = draw(chunk_size(c));

			assert_int_equal(data[at], held[k].tag);
			assert_int_equal(chunk_is_private(c), held[k].born != age);
			assert_int_equal(
				peer[data - p.base + at], held[k].born == age ? held[k].tag : 0);
			chunk_put(&p, held[k].chunk);
			held[k].chunk = NULL;
		} else if ((held[k].chunk = chunk_get(&p, draw(CHUNK_ORDERS)))) {
			held[k].tag = (uint8_t)(1 + draw(255));
			held[k].born = age;
			memset(chunk_data(&p, held[k].chunk), held[k].tag,
				chunk_size(held[k].chunk));
		}
		if (chunk_pool_check(&p))
			fail_msg("%s", chunk_pool_check(&p));
	}
	assert_in_range(age, 10, 100);
	for (unsigned k = 0; k < 64; k++)
		if (held[k].chunk)
			chunk_put(&p, held[k].chunk);
	chunk_pool_mend(&p);
	munmap(peer, p.len);
	pool_close(&p);
}

/* What is cut after a change is not cut from what is private. */
static void buffers_are_cut_from_shared_chunks(void **state)
{
	struct page_frag f;
	struct chunk_pool p;
	struct chunk *first, *c;
	uint32_t cap;

	(void)state;
	pool_open(&p, 256 * KIB);
	page_frag_init(&f, &p, 3);
	assert_non_null(page_frag_get(&f, 1000, false, &first, &cap));
	assert_int_equal(chunk_pool_renew(&p, NULL), 0);
	assert_non_null(page_frag_get(&f, 1000, false, &c, &cap));
	assert_true(chunk_is_private(first));
	assert_false(chunk_is_private(c));
	chunk_put(&p, first);
	chunk_put(&p, c);
	page_frag_fini(&f);
	chunk_pool_mend(&p);
	pool_close(&p);
}

/* No descriptor left: nothing is lost, and it may be tried again. */
static void a_change_that_fails(void **state)
{
	struct rlimit old, none;
	struct chunk_pool p;
	struct chunk *c;
	struct err err;

	(void)state;
	pool_open(&p, 128 * KIB);
	c = chunk_get(&p, 1);
	*chunk_data(&p, c) = 7;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){0, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(chunk_pool_renew(&p, &err), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_non_null(strstr(err.text, "memfd_create"));
	assert_null(chunk_pool_check(&p));
	assert_false(chunk_is_private(c));
	assert_int_equal(*chunk_data(&p, c), 7);
	assert_int_equal(chunk_pool_renew(&p, &err), 0);
	assert_int_equal(*chunk_data(&p, c), 7);
	chunk_put(&p, c);
	chunk_pool_mend(&p);
	pool_close(&p);
}

int main(void)
{
	const char *given = getenv("SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_was_left_sees_nothing_more),
		cmocka_unit_test(random_changes_of_peers),
		cmocka_unit_test(buffers_are_cut_from_shared_chunks),
		cmocka_unit_test(a_change_that_fails),
	};

	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
