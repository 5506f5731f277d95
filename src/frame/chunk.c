/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chunk: a buddy allocator of five orders over a memfd, and buffers cut from its chunks. Owns the
 * mapping and everything known about it; never reads the shared bytes. Knows no packet and no ring.
 *
 * Each page has a record outside the shared memory. The first page's record of a chunk tells its
 * order and whether it is free or out; the records of the pages within say INNER, so the chunk of any
 * address is found in at most five steps. Free chunks of an order are a doubly linked list, used as a
 * stack. Two free halves are joined at once: a pool that was split to pages is whole again when the
 * last of them comes back. Both directions take at most four steps.
 *
 *	order 2   [ 0        1        2        3 ]        the half beside page p at order o
 *	order 1   [ 0        1 ]    [ 2        3 ]        is page p ^ (1 << o)
 */
#include "frame/chunk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NONE      UINT32_MAX
#define TOP       (CHUNK_ORDERS - 1)
#define TOP_PAGES (1u << TOP)
#define BYTES_MAX (UINT64_C(1) << 32)

static uint32_t pages_of(const struct chunk_pool *p)
{
	return (uint32_t)(p->len / CHUNK_PAGE);
}

/* ---- free lists ---- */

static void list_push(struct chunk_pool *p, uint32_t page, unsigned order)
{
	struct chunk *c = &p->meta[page];

	c->order = (uint8_t)order;
	c->state = CHUNK_FREE;
	c->prev = NONE;
	c->next = p->free[order];
	if (c->next != NONE)
		p->meta[c->next].prev = page;
	p->free[order] = page;
}

static void list_remove(struct chunk_pool *p, uint32_t page)
{
	const struct chunk *c = &p->meta[page];

	if (c->prev != NONE)
		p->meta[c->prev].next = c->next;
	else
		p->free[c->order] = c->next;
	if (c->next != NONE)
		p->meta[c->next].prev = c->prev;
}

/* A free chunk of just this order, cut from a larger one if need be; NONE: there is none. */
static uint32_t take(struct chunk_pool *p, unsigned order)
{
	unsigned o = order;
	uint32_t page;

	while (p->free[o] == NONE)
		if (++o == CHUNK_ORDERS)
			return NONE;
	page = p->free[o];
	list_remove(p, page);
	while (o > order) {
		o--;
		list_push(p, page + (1u << o), o);
	}
	return page;
}

static void give_back(struct chunk_pool *p, uint32_t page, unsigned order)
{
	for (; order < TOP; order++) {
		const uint32_t other = page ^ (1u << order);

		if (p->meta[other].state != CHUNK_FREE || p->meta[other].order != order)
			break;
		list_remove(p, other);
		p->meta[page | other].state = CHUNK_INNER;
		page &= other;
	}
	list_push(p, page, order);
}

/* ---- the pool ---- */

/* Memory of which no one can take away a page again, not even we. */
static int memory_open(size_t len, struct err *err)
{
	const int fd = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return err_set(err, errno, "packet memory: memfd_create: %m");
	if (ftruncate(fd, (off_t)len)) {
		error = err_set(err, errno, "packet memory: %zu bytes: %m", len);
		close(fd);
		return error;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		error = err_set(err, errno, "packet memory: sealing its size: %m");
		close(fd);
		return error;
	}
	return fd;
}

/* Mapped at a multiple of 64 KiB: chunks are aligned to their size in memory, too. */
static uint8_t *memory_map(int fd, size_t len)
{
	uint8_t *p = mmap(NULL, len + CHUNK_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;
	void *at;

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p % CHUNK_MAX;
	at = mmap(p + before, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED) {
		munmap(p, len + CHUNK_MAX);
		return NULL;
	}
	if (before)
		munmap(p, before);
	munmap(p + before + len, CHUNK_MAX - before);
	return at;
}

int chunk_pool_init(struct chunk_pool *p, size_t bytes, struct err *err)
{
	const size_t len = (bytes + CHUNK_MAX - 1) / CHUNK_MAX * CHUNK_MAX;

	if (!bytes || bytes > BYTES_MAX)
		return err_set(err, EINVAL, "packet memory: %zu bytes; 1 to %llu are right", bytes,
			(unsigned long long)BYTES_MAX);
	*p = (struct chunk_pool){.len = len};
	p->fd = memory_open(len, err);
	if (p->fd < 0)
		return p->fd;
	p->base = memory_map(p->fd, len);
	p->meta = calloc(pages_of(p), sizeof(*p->meta));
	if (!p->base || !p->meta) {
		chunk_pool_fini(p);
		return err_set(err, ENOMEM, "packet memory: no room to map %zu bytes", len);
	}
	for (unsigned o = 0; o < CHUNK_ORDERS; o++)
		p->free[o] = NONE;
	p->returned = NONE;
	for (uint32_t page = pages_of(p); page; page -= TOP_PAGES)
		list_push(p, page - TOP_PAGES, TOP);
	rand_init(&p->rand, 1);
	return 0;
}

static void store_fini(struct chunk_pool *);

void chunk_pool_fini(struct chunk_pool *p)
{
	assert(!p->live);
	if (!p->len)
		return;
	store_fini(p);
	if (p->base)
		munmap(p->base, p->len);
	close(p->fd);
	free(p->meta);
	*p = (struct chunk_pool){.fd = -1};
}

uint8_t *chunk_pool_reserve(struct chunk_pool *p, size_t bytes)
{
	const size_t n = (bytes + CHUNK_MAX - 1) / CHUNK_MAX;
	const uint32_t end = pages_of(p) - p->reserved;

	if (!n || p->live || n > end / TOP_PAGES)
		return NULL;
	for (uint32_t page = end - (uint32_t)n * TOP_PAGES; page < end; page += TOP_PAGES) {
		list_remove(p, page);
		p->meta[page].state = CHUNK_RESERVED;
	}
	p->reserved += (uint32_t)n * TOP_PAGES;
	return p->base + (size_t)(pages_of(p) - p->reserved) * CHUNK_PAGE;
}

/* ---- parting with a peer ---- */

static bool is_out(const struct chunk *c)
{
	return c->state == CHUNK_OUT || c->state == CHUNK_PRIVATE;
}

/* Pages [from, to) become the file's. */
static int share_pages(struct chunk_pool *p, int fd, uint32_t from, uint32_t to)
{
	const size_t at = (size_t)from * CHUNK_PAGE, len = (size_t)(to - from) * CHUNK_PAGE;
	void *m = mmap(
		p->base + at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)at);

	return m == MAP_FAILED ? -errno : 0;
}

/* Pages [from, to), whole chunks that are out, become a private copy, in one step. */
static int part_pages(struct chunk_pool *p, uint32_t from, uint32_t to)
{
	const size_t len = (size_t)(to - from) * CHUNK_PAGE;
	uint8_t *at = p->base + (size_t)from * CHUNK_PAGE;
	void *copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return -errno;
	memcpy(copy, at, len);
	if (mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
		const int error = -errno;

		munmap(copy, len);
		return error;
	}
	for (uint32_t page = from; page < to; page += 1u << p->meta[page].order) {
		p->meta[page].state = CHUNK_PRIVATE;
		p->private ++;
	}
	return 0;
}

/* The end of the run of chunks, from `page` on, that are in the same way out, or are not. */
static uint32_t run_end(const struct chunk_pool *p, uint32_t page)
{
	const struct chunk *first = &p->meta[page];

	while (page < pages_of(p)) {
		const struct chunk *c = &p->meta[page];

		if (c->state != first->state && (is_out(c) || is_out(first)))
			break;
		page += 1u << c->order;
	}
	return page;
}

static int renew_pages(struct chunk_pool *p, int fd)
{
	uint32_t end;
	int r = 0;

	for (uint32_t page = 0; page < pages_of(p) && !r; page = end) {
		end = run_end(p, page);
		if (p->meta[page].state == CHUNK_OUT)
			r = part_pages(p, page, end);
		else if (p->meta[page].state != CHUNK_PRIVATE)
			r = share_pages(p, fd, page, end);
	}
	return r;
}

int chunk_pool_renew(struct chunk_pool *p, struct err *err)
{
	int fd = memory_open(p->len, err), r;

	if (fd < 0)
		return fd;
	r = renew_pages(p, fd);
	if (!r && dup3(fd, p->fd, O_CLOEXEC) < 0)
		r = -errno;
	close(fd);
	if (r)
		return err_set(
			err, -r, "packet memory: renewing %zu bytes: %s", p->len, strerror(-r));
	while (p->returned != NONE) {
		const uint32_t page = p->returned;

		p->returned = p->meta[page].next;
		give_back(p, page, p->meta[page].order);
	}
	return 0;
}

void chunk_pool_mend(struct chunk_pool *p)
{
	while (p->returned != NONE) {
		const uint32_t page = p->returned;
		const struct chunk *c = &p->meta[page];

		if (share_pages(p, p->fd, page, page + (1u << c->order)))
			return; /* the next renewal will do it */
		p->returned = c->next;
		give_back(p, page, c->order);
	}
}

/* ---- chunks ---- */

static void store_lock(struct chunk_store *s)
{
	while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
		;
	s->locked++;
}

static void store_unlock(struct chunk_store *s)
{
	atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

static void store_fill(struct chunk_pool *p, unsigned order)
{
	struct chunk_store *s = p->store;
	uint32_t page;

	store_lock(s);
	while (s->of[order].n < CHUNK_STORE / 2 && (page = take(p, order)) != NONE) {
		p->meta[page].state = CHUNK_STORED;
		p->meta[page].order = (uint8_t)order;
		p->meta[page].refs = 0;
		s->of[order].page[s->of[order].n++] = page;
	}
	store_unlock(s);
}

static uint32_t store_take(struct chunk_pool *p, unsigned order)
{
	struct chunk_store *s = p->store;
	uint32_t page;

	if (order >= s->orders) {
		store_lock(s);
		page = take(p, order);
		store_unlock(s);
		return page;
	}
	if (!s->of[order].n)
		store_fill(p, order);
	return s->of[order].n ? s->of[order].page[--s->of[order].n] : NONE;
}

/* Those that have lain longest go back to the lists. */
static void store_drain(struct chunk_pool *p, unsigned order, unsigned n)
{
	struct chunk_store *s = p->store;

	store_lock(s);
	for (unsigned i = 0; i < n; i++)
		give_back(p, s->of[order].page[i], order);
	store_unlock(s);
	s->of[order].n -= n;
	memmove(s->of[order].page, s->of[order].page + n, s->of[order].n * sizeof(uint32_t));
}

static void store_give(struct chunk_pool *p, uint32_t page, unsigned order)
{
	struct chunk_store *s = p->store;

	if (order >= s->orders) {
		store_lock(s);
		give_back(p, page, order);
		store_unlock(s);
		return;
	}
	if (s->of[order].n == CHUNK_STORE)
		store_drain(p, order, CHUNK_STORE / 2);
	p->meta[page].state = CHUNK_STORED;
	s->of[order].page[s->of[order].n++] = page;
}

static void store_fini(struct chunk_pool *p)
{
	for (unsigned o = 0; p->store && o < CHUNK_ORDERS; o++)
		store_drain(p, o, p->store->of[o].n);
	free(p->store);
	p->store = NULL;
}

int chunk_pool_pages(struct chunk_pool *p, enum chunk_pages pages, struct err *err)
{
	assert(!p->live);
	store_fini(p);
	if (pages == CHUNK_PAGES_PLAIN)
		return 0;
	p->store = calloc(1, sizeof(*p->store));
	if (!p->store)
		return err_set(err, ENOMEM, "packet memory: no memory for a store of pages");
	atomic_flag_clear(&p->store->lock);
	p->store->orders = pages == CHUNK_PAGES_2015 ? 1 : 4;
	return 0;
}

static uint32_t take_any(struct chunk_pool *p, unsigned order)
{
	return p->store ? store_take(p, order) : take(p, order);
}

static bool refused(struct chunk_pool *p, unsigned order)
{
	return p->refuse_permille && (order || p->refuse_all) &&
	       rand_below(&p->rand, 1000) < p->refuse_permille;
}

struct chunk *chunk_get(struct chunk_pool *p, unsigned order)
{
	assert(order < CHUNK_ORDERS);
	for (;;) {
		const uint32_t page = refused(p, order) ? NONE : take_any(p, order);

		if (page != NONE) {
			struct chunk *c = &p->meta[page];

			c->state = CHUNK_OUT;
			c->order = (uint8_t)order;
			c->refs = 1;
			p->live++;
			p->got[order]++;
			return c;
		}
		if (!order)
			break;
		order--;
		p->fallbacks++;
	}
	p->failed++;
	return NULL;
}

void chunk_put(struct chunk_pool *p, struct chunk *c)
{
	assert(is_out(c) && c->refs);
	if (--c->refs)
		return;
	p->live--;
	if (c->state == CHUNK_PRIVATE) {
		p->private --;
		c->state = CHUNK_RETURNED;
		c->next = p->returned;
		p->returned = (uint32_t)(c - p->meta);
		return;
	}
	if (p->store)
		store_give(p, (uint32_t)(c - p->meta), c->order);
	else
		give_back(p, (uint32_t)(c - p->meta), c->order);
}

/* The record of the chunk, free or out, that page belongs to. */
static struct chunk *owner(const struct chunk_pool *p, uint32_t page)
{
	struct chunk *c = &p->meta[page];

	for (unsigned o = 1; o < CHUNK_ORDERS && c->state == CHUNK_INNER; o++)
		c = &p->meta[page >> o << o];
	return c;
}

struct chunk *chunk_of(const struct chunk_pool *p, const void *ptr, size_t len)
{
	const uintptr_t at = (uintptr_t)ptr - (uintptr_t)p->base;
	struct chunk *c;
	uintptr_t from;

	if (at >= p->len)
		return NULL;
	c = owner(p, (uint32_t)(at / CHUNK_PAGE));
	from = (uintptr_t)(c - p->meta) * CHUNK_PAGE;
	return is_out(c) && len && len <= chunk_size(c) - (at - from) ? c : NULL;
}

/* ---- audits ---- */

uint64_t chunk_pool_refs(const struct chunk_pool *p)
{
	uint64_t sum = 0;

	for (uint32_t page = 0; page < pages_of(p); page++)
		if (is_out(&p->meta[page]))
			sum += p->meta[page].refs;
	return sum;
}

static const char *check_chunk(const struct chunk_pool *p, uint32_t page)
{
	const struct chunk *c = &p->meta[page];
	const uint32_t n = 1u << c->order, end = pages_of(p) - p->reserved;

	if (c->state != CHUNK_FREE && c->state != CHUNK_RETURNED && c->state != CHUNK_STORED &&
		!is_out(c))
		return "a page belongs to no chunk";
	if (c->order > TOP || page % n || n > end - page)
		return "a chunk's order does not fit its place";
	for (uint32_t i = 1; i < n; i++)
		if (c[i].state != CHUNK_INNER)
			return "two chunks overlap";
	if (c->state == CHUNK_RETURNED || c->state == CHUNK_STORED)
		return c->refs ? "a chunk that came back has a reference" : NULL;
	if (is_out(c))
		return c->refs ? NULL : "a chunk is out without a reference";
	if (c->order < TOP && p->meta[page ^ n].state == CHUNK_FREE &&
		p->meta[page ^ n].order == c->order)
		return "two free halves were not joined";
	return NULL;
}

/* Exactly the `n` chunks that are free at this order are on its list. */
static const char *check_list(const struct chunk_pool *p, unsigned order, uint32_t n)
{
	uint32_t before = NONE;

	for (uint32_t page = p->free[order]; page != NONE; page = p->meta[page].next) {
		const struct chunk *c = &p->meta[page];

		if (!n--)
			return "a free list has more than the free chunks of its order";
		if (page >= pages_of(p) || c->state != CHUNK_FREE || c->order != order)
			return "a free list has a chunk that is not free or of another order";
		if (c->prev != before)
			return "a free list's links contradict each other";
		before = page;
	}
	return n ? "a free chunk is on no list" : NULL;
}

const char *chunk_pool_check(const struct chunk_pool *p)
{
	uint32_t live = 0, nfree[CHUNK_ORDERS] = {0};
	const char *why;

	for (uint32_t page = 0; page < pages_of(p) - p->reserved;) {
		const struct chunk *c = &p->meta[page];

		why = check_chunk(p, page);
		if (why)
			return why;
		if (is_out(c))
			live++;
		else if (c->state == CHUNK_FREE)
			nfree[c->order]++;
		page += 1u << c->order;
	}
	if (live != p->live)
		return "the count of chunks that are out is wrong";
	for (unsigned o = 0; o < CHUNK_ORDERS; o++) {
		why = check_list(p, o, nfree[o]);
		if (why)
			return why;
	}
	return NULL;
}

/* ---- buffers cut from chunks ---- */

void page_frag_init(struct page_frag *f, struct chunk_pool *pool, unsigned order)
{
	assert(order < CHUNK_ORDERS);
	*f = (struct page_frag){.pool = pool, .order = order};
}

void page_frag_fini(struct page_frag *f)
{
	if (f->chunk)
		chunk_put(f->pool, f->chunk);
	f->chunk = NULL;
	f->offset = f->size = 0;
}

/* See to it that there are `n` bytes at the offset. */
static bool frag_room(struct page_frag *f, uint32_t n)
{
	if (f->chunk && chunk_is_private(f->chunk))
		page_frag_fini(f); /* what is cut from it no device would see */
	if (f->chunk && f->chunk->refs == 1 && f->offset) {
		f->offset = 0; /* all buffers have come back */
		f->reused++;
	}
	if (n <= f->size - f->offset)
		return true;
	page_frag_fini(f);
	f->chunk = chunk_get(f->pool, f->order);
	if (!f->chunk)
		return false;
	f->size = chunk_size(f->chunk); /* of what was got, not of what was asked for [T7] */
	f->chunks++;
	return true;
}

uint8_t *page_frag_get(
	struct page_frag *f, uint32_t n, bool hole, struct chunk **chunk, uint32_t *cap)
{
	uint8_t *data;

	assert(n && n <= CHUNK_PAGE);
	if (!frag_room(f, n))
		return NULL;
	data = chunk_data(f->pool, f->chunk) + f->offset;
	*cap = n;
	if (hole && f->size - f->offset - n < n) {
		const uint32_t rest = f->size - f->offset - n;

		*cap += rest;
		f->holes += rest != 0;
	}
	f->offset += *cap;
	chunk_ref(f->chunk);
	*chunk = f->chunk;
	return data;
}
