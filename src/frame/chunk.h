/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chunk: memory that a driver shares with its device: one pool per peer, of chunks of order 0
 * (4 KiB) to 4 (64 KiB) in a memfd of sealed size. What the pool knows of a chunk (order,
 * references, free lists) lies outside the shared memory: a device can spoil bytes, never the pool.
 * Freed last is taken first, so memory stays in the cache.
 *
 * A chunk is taken at the order asked for or, if there is none, at the next lower one, and so on:
 * what Linux does for tun and macvtap (S3). `refuse_permille` makes that happen on purpose, for
 * tests and experiments.
 *
 * Whom the memory was shared with keeps what is mapped there. So chunk_pool_renew() goes on in a new
 * memfd, at the same addresses: what is written from then on the old peer does not see, and what it
 * could see the next one does not. Chunks that are out at that time keep their bytes in private memory
 * until they come back.
 *
 * References: every posted buffer holds one, every fragment of a packet holds one, a packet's head
 * holds one, a page_frag that is cutting buffers from a chunk holds one. chunk_pool_refs() tells
 * the sum; chunk_pool_live() must be 0 at chunk_pool_fini.
 */
#ifndef FRAME_CHUNK_H
#define FRAME_CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rand.h"

#define CHUNK_PAGE   4096u
#define CHUNK_ORDERS 5 /* 0 .. 4: 4, 8, 16, 32, 64 KiB */
#define CHUNK_MAX    (CHUNK_PAGE << (CHUNK_ORDERS - 1))

enum chunk_state {
	CHUNK_INNER, /* of a page: not a chunk's first */
	CHUNK_FREE,
	CHUNK_OUT,
	CHUNK_PRIVATE,  /* out, and the memory is not in the memfd: no device sees it */
	CHUNK_RETURNED, /* was private; free once its memory is shared again */
	CHUNK_RESERVED,
	CHUNK_STORED, /* in a store: neither out nor on a free list */
};

struct chunk {
	uint32_t refs;
	uint8_t order;
	uint8_t state;       /* enum chunk_state; the pool's */
	uint32_t next, prev; /* free list, page numbers; the pool's */
};

/*
 * Where chunks come from, for experiments (S3): the lists above alone; or behind a lock, with a store
 * of single pages that needs none, as in Linux of 2015; or with stores of orders 0 to 3, as since 2021.
 */
enum chunk_pages { CHUNK_PAGES_PLAIN, CHUNK_PAGES_2015, CHUNK_PAGES_2021 };

#define CHUNK_STORE 32 /* chunks of an order in a store; half of them are moved at a time */

struct chunk_store {
	unsigned orders;  /* 0 .. orders - 1 are stored */
	atomic_flag lock; /* of the lists: nobody else wants it, but it costs what it costs */
	struct {
		unsigned n;
		uint32_t page[CHUNK_STORE];
	} of[CHUNK_ORDERS];
	uint64_t locked; /* times */
};

struct chunk_pool {
	uint8_t *base; /* shared mapping, aligned to 64 KiB */
	size_t len;
	int fd;                      /* memfd; the device maps it */
	struct chunk *meta;          /* one per page; a chunk's is its first page's */
	uint32_t free[CHUNK_ORDERS]; /* heads of the free lists */
	uint32_t live;               /* chunks out */
	uint32_t private;            /* of them: that no device sees */
	uint32_t returned;           /* head of the list of those that wait for chunk_pool_mend */
	uint32_t reserved;           /* pages at the end that are no chunks: chunk_pool_reserve */
	/* fault injection: refuse an order (> 0, or all with refuse_all) this often, of 1000 */
	unsigned refuse_permille;
	bool refuse_all;
	struct rand rand;
	struct chunk_store *store; /* NULL: CHUNK_PAGES_PLAIN */
	/* counters */
	uint64_t got[CHUNK_ORDERS]; /* chunks handed out, by order */
	uint64_t fallbacks;         /* an order was not to be had and a lower one was tried */
	uint64_t failed;            /* nothing to be had at all */
};

/* `bytes` rounded up to 64 KiB, up to 4 GiB. -errno with the reason; nothing is left behind then. */
int chunk_pool_init(struct chunk_pool *, size_t bytes, struct err *);
void chunk_pool_fini(struct chunk_pool *);
static inline uint32_t chunk_pool_live(const struct chunk_pool *p)
{
	return p->live;
}

/* Set-up only, before the first chunk is taken. 0 or -ENOMEM. */
int chunk_pool_pages(struct chunk_pool *, enum chunk_pages, struct err *);

/*
 * Set-up only, before the first chunk is taken: `bytes` from the end of the pool, in one piece,
 * aligned to 64 KiB, that become no chunks: rings lie there. They go with the pool. NULL: the pool
 * has not that much.
 */
uint8_t *chunk_pool_reserve(struct chunk_pool *, size_t bytes);

/*
 * The memory's bytes part with all that it was shared with: a new memfd, under the same number and at
 * the same addresses, all zero but for the chunks that are out. Those keep their bytes, but become
 * private: a device can neither read nor write them. 0, or -errno with the reason: then nothing is lost
 * here, and the memory may not be shared before it succeeds. System calls: between sessions only.
 */
int chunk_pool_renew(struct chunk_pool *, struct err *);
/* Private chunks that have come back become free: a system call for each. */
void chunk_pool_mend(struct chunk_pool *);
/* There are such. */
static inline bool chunk_pool_torn(const struct chunk_pool *p)
{
	return p->returned != UINT32_MAX;
}

static inline bool chunk_is_private(const struct chunk *c)
{
	return c->state == CHUNK_PRIVATE;
}

/*
 * A chunk with one reference: of `order` or the highest below it that can be had; NULL: none. Never
 * blocks, never asks the kernel.
 */
struct chunk *chunk_get(struct chunk_pool *, unsigned order);
static inline void chunk_ref(struct chunk *c)
{
	c->refs++;
}
void chunk_put(struct chunk_pool *, struct chunk *); /* the last reference frees it */

/* The chunk that is out and has all of [ptr, ptr + len), len > 0, or NULL. Any address may be asked. */
struct chunk *chunk_of(const struct chunk_pool *, const void *ptr, size_t len);

static inline uint8_t *chunk_data(const struct chunk_pool *p, const struct chunk *c)
{
	return p->base + (size_t)(c - p->meta) * CHUNK_PAGE;
}

static inline uint32_t chunk_size(const struct chunk *c)
{
	return CHUNK_PAGE << c->order;
}

static inline bool chunk_pool_owns(const struct chunk_pool *p, const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)p->base < p->len;
}

/* For tests and audits, at any time: walks everything. */
uint64_t chunk_pool_refs(const struct chunk_pool *); /* the sum over all chunks */
/*
 * NULL, or what is wrong: chunks overlap or leave a page out, a list or a count is wrong, a chunk
 * that is out has no reference, two free halves were not joined. So when all is free, it is 64 KiB
 * chunks again.
 */
const char *chunk_pool_check(const struct chunk_pool *);

/*
 * Buffers cut one after the other from chunks of `order`: the receive ring and the
 * application's send bytes. A chunk that only we still hold is used from its start again.
 */
struct page_frag {
	struct chunk_pool *pool;
	unsigned order; /* asked for; 3 as in Linux */
	struct chunk *chunk;
	uint32_t offset, size;
	uint64_t chunks, reused, holes; /* taken; started over; remainders given to a last buffer */
};

void page_frag_init(struct page_frag *, struct chunk_pool *, unsigned order);
void page_frag_fini(struct page_frag *); /* drops the reference to the current chunk */
/*
 * `n` bytes (1 .. CHUNK_PAGE; a caller that wants alignment passes n rounded) of one chunk, which gets
 * a reference for the caller. With `hole`, if what is left behind the buffer is shorter than n, the
 * buffer gets it, too, and *cap says so: the capacity to post and to charge [T1]. A chunk may be a
 * single page [T7]. NULL: no memory.
 */
uint8_t *page_frag_get(
	struct page_frag *, uint32_t n, bool hole, struct chunk **chunk, uint32_t *cap);

#endif
