/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool against a model that knows one owner for every page, its limits, its fault injection, its
 * audit; and the buffers cut from its chunks.
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
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "frame/chunk.h"

#define KIB   1024u
#define PAGES 256 /* of the model's pool: 1 MiB */

static uint64_t seed;
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
	rand_init(&p->rand, seed);
}

/* Everything has come back and is whole. */
static void pool_close(struct chunk_pool *p)
{
	assert_int_equal(chunk_pool_live(p), 0);
	assert_int_equal(chunk_pool_refs(p), 0);
	assert_null(chunk_pool_check(p));
	for (unsigned o = 0; o < CHUNK_ORDERS - 1; o++)
		assert_int_equal(p->free[o], UINT32_MAX);
	chunk_pool_fini(p);
}

static uint32_t page_of(const struct chunk_pool *p, const struct chunk *c)
{
	return (uint32_t)(c - p->meta);
}

static void the_size_is_rounded_and_bounded(void **state)
{
	struct chunk_pool p;
	struct err err;

	(void)state;
	pool_open(&p, 1);
	assert_int_equal(p.len, 64 * KIB);
	pool_close(&p);
	pool_open(&p, 64 * KIB + 1);
	assert_int_equal(p.len, 128 * KIB);
	pool_close(&p);
	assert_int_equal(chunk_pool_init(&p, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "0 bytes"));
	assert_int_equal(chunk_pool_init(&p, ((size_t)4 << 30) + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "4294967296"));
	pool_open(&p, (size_t)4 << 30);
	assert_int_equal(p.len, (size_t)4 << 30);
	pool_close(&p);
}

static void the_memory_is_shared_sealed_and_aligned(void **state)
{
	struct chunk_pool p;
	uint8_t *other;
	struct chunk *c;

	(void)state;
	pool_open(&p, 128 * KIB);
	assert_int_equal((uintptr_t)p.base % CHUNK_MAX, 0);
	assert_int_equal(fcntl(p.fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ftruncate(p.fd, 64 * KIB), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(p.fd, 256 * KIB), -1);
	other = mmap(NULL, p.len, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0);
	assert_ptr_not_equal(other, MAP_FAILED);
	c = chunk_get(&p, 0);
	memset(chunk_data(&p, c), 0xa5, CHUNK_PAGE);
	assert_int_equal(other[chunk_data(&p, c) - p.base], 0xa5);
	/* whoever shares the memory can spoil all of it, and the pool does not notice */
	memset(other, 0xff, p.len);
	assert_null(chunk_pool_check(&p));
	chunk_put(&p, c);
	munmap(other, p.len);
	pool_close(&p);
}

static void an_order_is_aligned_to_its_size(void **state)
{
	struct chunk_pool p;
	struct chunk *c[CHUNK_ORDERS];

	(void)state;
	pool_open(&p, 256 * KIB);
	for (unsigned o = 0; o < CHUNK_ORDERS; o++) {
		c[o] = chunk_get(&p, o);
		assert_int_equal(c[o]->order, o);
		assert_int_equal(c[o]->refs, 1);
		assert_int_equal(chunk_size(c[o]), (4 * KIB) << o);
		assert_int_equal((uintptr_t)chunk_data(&p, c[o]) % chunk_size(c[o]), 0);
		assert_int_equal(p.got[o], 1);
		assert_null(chunk_pool_check(&p));
	}
	assert_int_equal(chunk_pool_live(&p), CHUNK_ORDERS);
	for (unsigned o = 0; o < CHUNK_ORDERS; o++)
		chunk_put(&p, c[o]);
	pool_close(&p);
}

static void freed_last_is_taken_first(void **state)
{
	struct chunk *c[16], *again;
	struct chunk_pool p;

	(void)state;
	pool_open(&p, 64 * KIB);
	for (unsigned i = 0; i < 16; i++)
		c[i] = chunk_get(&p, 0);
	chunk_put(&p, c[2]);
	chunk_put(&p, c[9]);
	chunk_put(&p, c[5]);
	again = chunk_get(&p, 0);
	assert_ptr_equal(again, c[5]);
	again = chunk_get(&p, 0);
	assert_ptr_equal(again, c[9]);
	again = chunk_get(&p, 0);
	assert_ptr_equal(again, c[2]);
	for (unsigned i = 0; i < 16; i++)
		chunk_put(&p, c[i]);
	pool_close(&p);
}

/* All pages out, freed in any order: the pool hands out its largest chunks again. */
static void a_fragmented_pool_recovers(void **state)
{
	struct chunk *c[PAGES];
	struct chunk_pool p;

	(void)state;
	pool_open(&p, PAGES * CHUNK_PAGE);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < PAGES; i++)
			assert_non_null(c[i] = chunk_get(&p, 0));
		assert_null(chunk_get(&p, 4));
		for (unsigned i = PAGES; i; i--) {
			const unsigned k = draw(i);

			chunk_put(&p, c[k]);
			c[k] = c[i - 1];
			assert_null(chunk_pool_check(&p));
		}
		for (unsigned i = 0; i < PAGES / 16; i++) {
			c[i] = chunk_get(&p, 4);
			assert_int_equal(c[i]->order, 4);
		}
		for (unsigned i = 0; i < PAGES / 16; i++)
			chunk_put(&p, c[i]);
	}
	assert_int_equal(p.failed, 20);
	pool_close(&p);
}

static void lower_orders_stand_in(void **state)
{
	struct chunk *c[17];
	struct chunk_pool p;

	(void)state;
	pool_open(&p, 64 * KIB);
	c[0] = chunk_get(&p, 0);
	/* 4 KiB are gone: there are 32, 16, 8 and 4 left */
	for (unsigned i = 1; i < 5; i++) {
		c[i] = chunk_get(&p, 4);
		assert_int_equal(c[i]->order, 4 - i);
	}
	assert_int_equal(p.fallbacks, 1 + 2 + 3 + 4);
	assert_null(chunk_get(&p, 4));
	assert_int_equal(p.fallbacks, 14);
	assert_int_equal(p.failed, 1);
	for (unsigned i = 0; i < 5; i++)
		chunk_put(&p, c[i]);
	pool_close(&p);
}

static unsigned count_order0(unsigned permille, bool all, unsigned order, unsigned *none)
{
	struct chunk_pool p;
	unsigned n = 0;

	*none = 0;
	pool_open(&p, 64 * KIB);
	p.refuse_permille = permille;
	p.refuse_all = all;
	for (unsigned i = 0; i < 4000; i++) {
		struct chunk *c = chunk_get(&p, order);

		if (!c) {
			++*none;
			continue;
		}
		n += !c->order;
		chunk_put(&p, c);
	}
	assert_int_equal(p.failed, *none);
	assert_int_equal(p.got[0], n);
	pool_close(&p);
	return n;
}

static void orders_are_refused_by_the_permille(void **state)
{
	unsigned none;

	(void)state;
	assert_int_equal(count_order0(0, true, 1, &none), 0);
	assert_int_equal(none, 0);
	assert_in_range(count_order0(500, false, 1, &none), 1800, 2200);
	assert_int_equal(none, 0);
	assert_in_range(count_order0(500, true, 1, &none), 850, 1150);
	assert_in_range(none, 850, 1150);
	assert_int_equal(count_order0(1000, false, 3, &none), 4000);
	assert_int_equal(none, 0);
	assert_int_equal(count_order0(1000, false, 0, &none), 4000);
	assert_int_equal(count_order0(1000, true, 3, &none), 0);
	assert_int_equal(none, 4000);
}

/* ---- the model: who owns each page --------------------------------------------------------- */

struct model {
	struct chunk_pool p;
	struct chunk *out[PAGES];
	uint32_t refs[PAGES];
	unsigned n;
	unsigned owner[PAGES]; /* 0: free; else a serial number */
	unsigned serial;
};

static void model_get(struct model *m)
{
	struct chunk *c = chunk_get(&m->p, draw(CHUNK_ORDERS));
	uint32_t page;

	if (!c) {
		/* only a refusal or a pool without a single page may fail */
		for (page = 0; page < PAGES && !m->p.refuse_all; page++)
			assert_int_not_equal(m->owner[page], 0);
		return;
	}
	page = page_of(&m->p, c);
	m->serial++;
	for (unsigned i = 0; i < 1u << c->order; i++) {
		assert_true(page + i < PAGES);
		assert_int_equal(m->owner[page + i], 0);
		m->owner[page + i] = m->serial;
	}
	memset(chunk_data(&m->p, c), (int)m->serial, chunk_size(c));
	m->out[m->n] = c;
	m->refs[m->n++] = 1;
}

static void model_put(struct model *m, unsigned k)
{
	struct chunk *c = m->out[k];
	const uint32_t page = page_of(&m->p, c), n = 1u << c->order;

	assert_int_equal(c->refs, m->refs[k]);
	for (unsigned i = 0; i < n * CHUNK_PAGE; i += 509)
		assert_int_equal(chunk_data(&m->p, c)[i], (uint8_t)m->owner[page]);
	chunk_put(&m->p, c);
	if (--m->refs[k])
		return;
	for (unsigned i = 0; i < n; i++)
		m->owner[page + i] = 0;
	m->n--;
	m->out[k] = m->out[m->n];
	m->refs[k] = m->refs[m->n];
}

/* Any address of any chunk leads to it, as far as the bytes asked for lie in it. */
static void model_find(const struct model *m)
{
	const uint32_t at = draw(PAGES * CHUNK_PAGE), len = 1 + draw(2 * CHUNK_PAGE);
	const uint32_t last = (at + len - 1) / CHUNK_PAGE;
	const struct chunk *c = chunk_of(&m->p, m->p.base + at, len);
	const unsigned owner = m->owner[at / CHUNK_PAGE];

	if (!owner || last >= PAGES || m->owner[last] != owner) {
		assert_null(c);
		return;
	}
	assert_non_null(c);
	assert_int_equal(m->owner[page_of(&m->p, c)], owner);
}

static void random_use_fits_the_model(void **state)
{
	static const unsigned permille[] = {0, 100, 500, 1000};
	static struct model m;

	(void)state;
	for (unsigned round = 0; round < 12; round++) {
		uint64_t refs = 0;

		memset(&m, 0, sizeof(m));
		pool_open(&m.p, PAGES * CHUNK_PAGE);
		m.p.refuse_permille = permille[round % 4];
		m.p.refuse_all = round >= 8;
		for (unsigned i = 0; i < 4000; i++) {
			const unsigned fill = i / 500 % 2 ? 3 : 6; /* fill up, drain, ... */

			if (draw(10) < fill) {
				model_get(&m);
			} else if (m.n && draw(4)) {
				model_put(&m, draw(m.n));
			} else if (m.n) {
				const unsigned k = draw(m.n);

				chunk_ref(m.out[k]);
				m.refs[k]++;
			}
			model_find(&m);
			if (i % 50 == 0)
				assert_null(chunk_pool_check(&m.p));
		}
		for (unsigned k = 0; k < m.n; k++)
			refs += m.refs[k];
		assert_int_equal(chunk_pool_refs(&m.p), refs);
		assert_int_equal(chunk_pool_live(&m.p), m.n);
		while (m.n)
			model_put(&m, m.n - 1);
		pool_close(&m.p);
	}
}

static void foreign_addresses_have_no_chunk(void **state)
{
	struct chunk_pool p;
	struct chunk *c;
	uint8_t *data;

	(void)state;
	pool_open(&p, 64 * KIB);
	c = chunk_get(&p, 4);
	data = chunk_data(&p, c);
	assert_ptr_equal(chunk_of(&p, data, 64 * KIB), c);
	assert_ptr_equal(chunk_of(&p, data + 64 * KIB - 1, 1), c);
	assert_null(chunk_of(&p, data + 64 * KIB - 1, 2));
	assert_null(chunk_of(&p, data + 64 * KIB, 1));
	assert_null(chunk_of(&p, (uint8_t *)((uintptr_t)data - 1), 1));
	assert_null(chunk_of(&p, data, 0));
	assert_null(chunk_of(&p, data, SIZE_MAX));
	assert_null(chunk_of(&p, NULL, 1));
	assert_null(chunk_of(&p, &p, sizeof(p)));
	assert_true(chunk_pool_owns(&p, data + 64 * KIB - 1));
	assert_false(chunk_pool_owns(&p, data + 64 * KIB));
	assert_false(chunk_pool_owns(&p, &p));
	chunk_put(&p, c);
	assert_null(chunk_of(&p, data, 1));
	pool_close(&p);
}

static void rings_lie_behind_the_chunks(void **state)
{
	struct chunk_pool p;
	struct chunk *c[16];
	uint8_t *ring, *other;

	(void)state;
	pool_open(&p, 4 * 64 * KIB);
	assert_null(chunk_pool_reserve(&p, 4 * 64 * KIB + 1));
	assert_null(chunk_pool_reserve(&p, 0));
	ring = chunk_pool_reserve(&p, 64 * KIB + 1);
	assert_ptr_equal(ring, p.base + 2 * 64 * KIB);
	other = chunk_pool_reserve(&p, 1);
	assert_ptr_equal(other, p.base + 64 * KIB);
	memset(other, 0xff, 3 * 64 * KIB);
	assert_null(chunk_pool_check(&p));
	for (unsigned i = 0; i < 16; i++) {
		c[i] = chunk_get(&p, 0);
		assert_in_range((uintptr_t)chunk_data(&p, c[i]), (uintptr_t)p.base,
			(uintptr_t)other - CHUNK_PAGE);
	}
	assert_null(chunk_get(&p, 0));
	assert_null(chunk_pool_reserve(&p, 1));
	assert_null(chunk_of(&p, ring, 1));
	for (unsigned i = 0; i < 16; i++)
		chunk_put(&p, c[i]);
	pool_close(&p);
}

/* The audit must see what it is for. */
static void the_audit_sees_damage(void **state)
{
	struct chunk *c, *d;
	struct chunk_pool p;
	uint32_t page;

	(void)state;
	pool_open(&p, 128 * KIB);
	c = chunk_get(&p, 1);
	d = chunk_get(&p, 0);
	page = page_of(&p, c);
	assert_null(chunk_pool_check(&p));

	c->refs = 0;
	assert_non_null(strstr(chunk_pool_check(&p), "without a reference"));
	c->refs = 1;
	c->order = 3; /* over its neighbour */
	assert_non_null(strstr(chunk_pool_check(&p), "overlap"));
	c->order = 5;
	assert_non_null(strstr(chunk_pool_check(&p), "order"));
	c->order = 0; /* its second page is nobody's */
	assert_non_null(strstr(chunk_pool_check(&p), "no chunk"));
	c->order = 1;
	p.live++;
	assert_non_null(strstr(chunk_pool_check(&p), "count"));
	p.live--;
	p.free[0] = page; /* a chunk that is out, on a free list */
	assert_non_null(strstr(chunk_pool_check(&p), "not free"));
	p.free[0] = UINT32_MAX;
	assert_non_null(strstr(chunk_pool_check(&p), "on no list"));
	p.free[0] = page_of(&p, d) ^ 1;
	p.meta[p.free[0]].next = p.free[0];
	assert_non_null(strstr(chunk_pool_check(&p), "more than"));
	p.meta[p.free[0]].next = UINT32_MAX;
	p.meta[p.free[0]].prev = 1;
	assert_non_null(strstr(chunk_pool_check(&p), "contradict"));
	p.meta[p.free[0]].prev = UINT32_MAX;
	d->state = p.meta[p.free[0]].state;
	assert_non_null(strstr(chunk_pool_check(&p), "not joined"));
	d->state = c->state;
	assert_null(chunk_pool_check(&p));
	chunk_put(&p, c);
	chunk_put(&p, d);
	pool_close(&p);
}

/* ---- buffers cut from chunks --------------------------------------------------------------- */

struct cut {
	struct chunk *chunk;
	uint8_t *data;
	uint32_t cap;
};

static bool cut(struct page_frag *f, uint32_t n, bool hole, struct cut *c)
{
	c->data = page_frag_get(f, n, hole, &c->chunk, &c->cap);
	if (!c->data)
		return false;
	/* within its chunk, by what it says itself */
	assert_in_range((uintptr_t)c->data, (uintptr_t)chunk_data(f->pool, c->chunk),
		(uintptr_t)chunk_data(f->pool, c->chunk) + chunk_size(c->chunk) - c->cap);
	return true;
}

/*
 * T1: the last buffer of a chunk is longer than was asked for, and its capacity says so. 32 KiB in
 * buffers of 1536: 21, and 512 bytes remain.
 */
static void trap_T1_the_hole_is_recorded(void **state)
{
	struct page_frag f;
	struct chunk_pool p;
	struct cut c[22];

	(void)state;
	pool_open(&p, 128 * KIB);
	page_frag_init(&f, &p, 3);
	for (unsigned i = 0; i < 22; i++)
		assert_true(cut(&f, 1536, true, &c[i]));
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(c[i].cap, 1536);
	assert_int_equal(c[20].cap, 1536 + 512);
	assert_int_equal(f.holes, 1);
	assert_int_equal(f.chunks, 2);
	/* nothing is lost and nothing is given twice: together the buffers are the chunk */
	assert_ptr_equal(c[20].data + c[20].cap, chunk_data(&p, c[20].chunk) + 32 * KIB);
	assert_ptr_not_equal(c[21].chunk, c[20].chunk);
	for (unsigned i = 0; i < 22; i++)
		chunk_put(&p, c[i].chunk);
	page_frag_fini(&f);

	page_frag_init(&f, &p, 3);
	for (unsigned i = 0; i < 22; i++) {
		assert_true(cut(&f, 1536, false, &c[i]));
		assert_int_equal(c[i].cap, 1536);
	}
	assert_int_equal(f.holes, 0);
	for (unsigned i = 0; i < 22; i++)
		chunk_put(&p, c[i].chunk);
	page_frag_fini(&f);
	pool_close(&p);
}

/* T6: where a buffer's capacity ends, the next one begins; else nothing could ever be coalesced. */
static void trap_T6_capacity_is_the_stride(void **state)
{
	struct chunk_pool p;

	(void)state;
	pool_open(&p, 1024 * KIB);
	for (unsigned round = 0; round < 300; round++) {
		const uint32_t n = 1 + draw(CHUNK_PAGE);
		const bool hole = draw(2);
		struct cut c[64], *last = NULL;
		struct page_frag f;

		page_frag_init(&f, &p, draw(4));
		for (unsigned i = 0; i < 64; last = &c[i++]) {
			assert_true(cut(&f, n, hole, &c[i]));
			assert_true(c[i].cap == n || (hole && c[i].cap > n && c[i].cap < 2 * n));
			if (last && c[i].chunk == last->chunk)
				assert_ptr_equal(c[i].data, last->data + last->cap);
			else
				assert_ptr_equal(c[i].data, chunk_data(&p, c[i].chunk));
			if (last && hole && c[i].chunk != last->chunk)
				assert_ptr_equal(last->data + last->cap,
					chunk_data(&p, last->chunk) + chunk_size(last->chunk));
		}
		for (unsigned i = 0; i < 64; i++)
			chunk_put(&p, c[i].chunk);
		page_frag_fini(&f);
	}
	pool_close(&p);
}

/* T7: when only single pages are to be had, no buffer is longer than the page it is cut from. */
static void trap_T7_a_chunk_may_be_one_page(void **state)
{
	struct chunk_pool p;
	struct cut c[200];

	(void)state;
	for (unsigned permille = 900; permille <= 1000; permille += 100) {
		struct page_frag f;

		pool_open(&p, 1024 * KIB);
		p.refuse_permille = permille;
		page_frag_init(&f, &p, 3);
		for (unsigned i = 0; i < 200; i++) {
			assert_true(cut(&f, draw(3) ? 1536 : 1 + draw(CHUNK_PAGE), true, &c[i]));
			memset(c[i].data, (int)i, c[i].cap);
		}
		for (unsigned i = 0; i < 200; i++)
			for (uint32_t k = 0; k < c[i].cap; k++)
				assert_int_equal(c[i].data[k], (uint8_t)i);
		assert_true(p.got[0]);
		assert_int_equal(permille == 1000 ? p.got[0] : f.chunks, f.chunks);
		for (unsigned i = 0; i < 200; i++)
			chunk_put(&p, c[i].chunk);
		page_frag_fini(&f);
		pool_close(&p);
	}
}

static void a_chunk_that_came_back_is_used_again(void **state)
{
	struct page_frag f;
	struct chunk_pool p;
	struct cut c, first;

	(void)state;
	pool_open(&p, 64 * KIB);
	page_frag_init(&f, &p, 3);
	assert_true(cut(&f, 1000, false, &first));
	assert_true(cut(&f, 1000, false, &c));
	chunk_put(&p, c.chunk);
	assert_true(cut(&f, 1000, false, &c)); /* `first` is still out */
	assert_ptr_equal(c.data, first.data + 2000);
	assert_int_equal(f.reused, 0);
	chunk_put(&p, c.chunk);
	chunk_put(&p, first.chunk);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(cut(&f, 1000, false, &c));
		assert_ptr_equal(c.data, first.data);
		chunk_put(&p, c.chunk);
	}
	assert_int_equal(f.reused, 1000);
	assert_int_equal(f.chunks, 1);
	assert_int_equal(p.got[3], 1);
	page_frag_fini(&f);
	pool_close(&p);
}

static void no_memory_leaves_the_allocator_usable(void **state)
{
	struct page_frag f;
	struct chunk_pool p;
	struct chunk *all;
	struct cut c;

	(void)state;
	pool_open(&p, 64 * KIB);
	all = chunk_get(&p, 4);
	page_frag_init(&f, &p, 3);
	assert_false(cut(&f, 100, true, &c));
	assert_false(cut(&f, 100, true, &c));
	chunk_put(&p, all);
	assert_true(cut(&f, 100, true, &c));
	chunk_put(&p, c.chunk);
	page_frag_fini(&f);
	page_frag_fini(&f);
	pool_close(&p);
}

/* What is stored is neither lost nor given twice, and is on the lists again in the end. */
static void stores_keep_what_they_are_given(void **state)
{
	(void)state;
	for (enum chunk_pages pages = CHUNK_PAGES_2015; pages <= CHUNK_PAGES_2021; pages++) {
		struct chunk_pool p;
		struct chunk *out[PAGES];
		unsigned n = 0;
		struct err err;

		pool_open(&p, PAGES * CHUNK_PAGE);
		assert_int_equal(chunk_pool_pages(&p, pages, &err), 0);
		for (unsigned i = 0; i < 20000; i++) {
			if (n < PAGES && draw(2)) {
				struct chunk *c = chunk_get(&p, draw(CHUNK_ORDERS));

				if (!c)
					continue;
				for (unsigned k = 0; k < n; k++)
					assert_true(out[k] + (1u << out[k]->order) <= c ||
						    c + (1u << c->order) <= out[k]);
				out[n++] = c;
			} else if (n) {
				const unsigned k = draw(n);

				chunk_put(&p, out[k]);
				out[k] = out[--n];
			}
			if (i % 512 == 0)
				assert_null(chunk_pool_check(&p));
		}
		while (n)
			chunk_put(&p, out[--n]);
		assert_null(chunk_pool_check(&p));
		assert_int_equal(chunk_pool_pages(&p, CHUNK_PAGES_PLAIN, &err), 0);
		pool_close(&p);
	}
}

/* 2015: a page needs no lock but now and then, 8 KiB do each time; 2021: neither does. */
static void a_store_spares_the_lock(void **state)
{
	static const uint64_t most[][2] = {{0, 0}, {1, 200}, {1, 1}};

	(void)state;
	for (enum chunk_pages pages = CHUNK_PAGES_2015; pages <= CHUNK_PAGES_2021; pages++)
		for (unsigned order = 0; order < 2; order++) {
			struct chunk_pool p;
			struct err err;

			pool_open(&p, PAGES * CHUNK_PAGE);
			assert_int_equal(chunk_pool_pages(&p, pages, &err), 0);
			for (unsigned i = 0; i < 100; i++)
				chunk_put(&p, chunk_get(&p, order));
			assert_int_equal(p.store->locked, most[pages][order]);
			assert_int_equal(chunk_pool_pages(&p, CHUNK_PAGES_PLAIN, &err), 0);
			pool_close(&p);
		}
}

int main(void)
{
	const char *given = getenv("SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_size_is_rounded_and_bounded),
		cmocka_unit_test(the_memory_is_shared_sealed_and_aligned),
		cmocka_unit_test(an_order_is_aligned_to_its_size),
		cmocka_unit_test(freed_last_is_taken_first),
		cmocka_unit_test(a_fragmented_pool_recovers),
		cmocka_unit_test(lower_orders_stand_in),
		cmocka_unit_test(orders_are_refused_by_the_permille),
		cmocka_unit_test(random_use_fits_the_model),
		cmocka_unit_test(foreign_addresses_have_no_chunk),
		cmocka_unit_test(rings_lie_behind_the_chunks),
		cmocka_unit_test(the_audit_sees_damage),
		cmocka_unit_test(trap_T1_the_hole_is_recorded),
		cmocka_unit_test(trap_T6_capacity_is_the_stride),
		cmocka_unit_test(trap_T7_a_chunk_may_be_one_page),
		cmocka_unit_test(a_chunk_that_came_back_is_used_again),
		cmocka_unit_test(no_memory_leaves_the_allocator_usable),
		cmocka_unit_test(stores_keep_what_they_are_given),
		cmocka_unit_test(a_store_spares_the_lock),
	};

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
