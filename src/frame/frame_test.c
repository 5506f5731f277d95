/* SPDX-License-Identifier: BSD-2-Clause */
/* Pull and copy on random layouts against a flat copy of the same bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/rand.h"
#include "frame/frame.h"

#define PIECES 40

static uint64_t seed;
static struct rand rnd;

static uint32_t draw(uint32_t n)
{
	return rand_below(&rnd, n);
}

/* A list of pieces, each in memory of just its size, so that an overrun is seen. */
struct pieces {
	struct iovec iov[PIECES];
	void *mem[PIECES];
	unsigned n;
	size_t len;
};

static void pieces_add(struct pieces *p, size_t len)
{
	uint8_t *mem = malloc(len + !len);

	for (size_t i = 0; i < len; i++)
		mem[i] = (uint8_t)draw(256);
	p->mem[p->n] = mem;
	p->iov[p->n++] = (struct iovec){mem, len};
	p->len += len;
}

static void pieces_free(struct pieces *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->mem[i]);
}

static void pieces_random(struct pieces *p, unsigned n)
{
	static const uint32_t most[] = {1, 3, 64, 300, 5000};

	*p = (struct pieces){0};
	while (p->n < n)
		pieces_add(p, draw(most[draw(5)] + 1));
}

static void flatten(const struct pieces *p, uint8_t *out)
{
	for (unsigned i = 0; i < p->n; i++) {
		memcpy(out, p->iov[i].iov_base, p->iov[i].iov_len);
		out += p->iov[i].iov_len;
	}
}

struct lent {
	struct frame f;
	struct frame_head head;
	struct pieces tail;
	struct iovec iov[PIECES]; /* private to the burst: pulling moves it */
	uint8_t *flat;
	uint32_t len;
};

static void lend(struct lent *l, uint16_t head_len, unsigned ntail)
{
	*l = (struct lent){0};
	pieces_random(&l->tail, ntail);
	memcpy(l->iov, l->tail.iov, sizeof(l->iov));
	l->f = (struct frame){.head = l->head.data,
		.head_len = head_len,
		.tail = l->iov,
		.ntail = (uint16_t)ntail,
		.tail_len = (uint32_t)l->tail.len};
	for (unsigned i = 0; i < head_len; i++)
		l->head.data[i] = (uint8_t)draw(256);
	l->len = frame_len(&l->f);
	l->flat = malloc(l->len + 1);
	memcpy(l->flat, l->head.data, head_len);
	flatten(&l->tail, l->flat + head_len);
}

static void lend_end(struct lent *l)
{
	pieces_free(&l->tail);
	free(l->flat);
}

/* What the frame holds now, by walking it. */
static void assert_same(const struct lent *l)
{
	const uint8_t *want = l->flat + l->f.head_len;

	assert_int_equal(frame_len(&l->f), l->len);
	assert_memory_equal(l->f.head, l->flat, l->f.head_len);
	for (unsigned i = 0; i < l->f.ntail; i++) {
		assert_memory_equal(l->f.tail[i].iov_base, want, l->f.tail[i].iov_len);
		want += l->f.tail[i].iov_len;
	}
	assert_ptr_equal(want, l->flat + l->len);
}

static void pull_moves_the_boundary(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 1500; round++) {
		struct lent l;

		lend(&l, (uint16_t)draw(130), draw(12));
		for (unsigned i = 0; i < 5; i++) {
			const uint32_t n = draw(700);
			const uint16_t before = l.f.head_len;
			const bool ok = frame_pull(&l.f, n);

			assert_int_equal(ok, n <= FRAME_PULL_MAX || l.len <= FRAME_PULL_MAX);
			if (ok)
				assert_true(l.f.head_len >= (n < l.len ? n : l.len));
			else
				assert_int_equal(l.f.head_len, before);
			assert_same(&l);
		}
		lend_end(&l);
	}
}

static void pull_at_the_limits(void **state)
{
	struct lent l;

	(void)state;
	do {
		lend(&l, 128, 6);
		if (l.len > FRAME_PULL_MAX)
			break;
		lend_end(&l);
	} while (true);
	assert_false(frame_pull(&l.f, FRAME_PULL_MAX + 1));
	assert_true(frame_pull(&l.f, FRAME_PULL_MAX));
	assert_int_equal(l.f.head_len, FRAME_PULL_MAX);
	assert_false(frame_pull(&l.f, FRAME_PULL_MAX + 1));
	assert_true(frame_pull(&l.f, 0));
	lend_end(&l);
}

static void copy_any_part(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct pieces to;
		struct lent l;
		uint32_t from, n;
		size_t skip;
		uint8_t *want, *got;

		lend(&l, (uint16_t)draw(200), draw(20));
		pieces_random(&to, 1 + draw(20));
		want = malloc(to.len + 1);
		got = malloc(to.len + 1);
		flatten(&to, want);
		from = draw(l.len + 1);
		skip = draw((uint32_t)to.len + 1);
		n = l.len - from;
		if (n > to.len - skip)
			n = (uint32_t)(to.len - skip);
		if (draw(2))
			n = draw(n + 1);
		memcpy(want + skip, l.flat + from, n);
		frame_copy(&l.f, from, n, to.iov, to.n, skip);
		flatten(&to, got);
		assert_memory_equal(got, want, to.len);
		free(want);
		free(got);
		pieces_free(&to);
		lend_end(&l);
	}
}

static void copy_a_super_packet(void **state)
{
	struct pieces to = {0};
	struct lent l = {0};
	uint8_t *got;

	(void)state;
	lend(&l, 128, 0);
	for (unsigned i = 0; i < 17; i++)
		pieces_add(&l.tail, 4096);
	memcpy(l.iov, l.tail.iov, sizeof(l.iov));
	l.f.ntail = 17;
	l.f.tail_len = 17 * 4096;
	for (unsigned i = 0; i < 18; i++)
		pieces_add(&to, 4096);
	frame_copy(&l.f, 0, frame_len(&l.f), to.iov, to.n, 12);
	got = malloc(to.len);
	flatten(&to, got);
	assert_memory_equal(got + 12, l.head.data, 128);
	for (unsigned i = 0; i < 17; i++)
		assert_memory_equal(got + 12 + 128 + i * 4096, l.tail.mem[i], 4096);
	free(got);
	pieces_free(&to);
	lend_end(&l);
}

static void every_drop_has_a_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < DROP_MAX; i++)
		assert_true(strlen(drop_name((enum drop)i)) > 1);
	assert_string_equal(drop_name(DROP_TOO_BIG), "exceeds_mtu");
	assert_string_equal(drop_name((enum drop)DROP_MAX), "unknown");
}

int main(void)
{
	const char *given = getenv("SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pull_moves_the_boundary),
		cmocka_unit_test(pull_at_the_limits),
		cmocka_unit_test(copy_any_part),
		cmocka_unit_test(copy_a_super_packet),
		cmocka_unit_test(every_drop_has_a_name),
	};

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
