/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pkt: the life of an owned packet, its sums and its completion account, and lending it. Packets are
 * records from a list made once; heads are cut from chunks of the pool, so that the device can read
 * them; nothing here allocates from the system. Knows no header.
 *
 * Who owns which reference: page_frag_get() and chunk_get() hand one to the packet for its head; the
 * caller of pkt_add() hands one over for the fragment. pkt_free() puts each down once; a buffer that
 * was joined to the fragment before it has put its own down at once [T5].
 */
#include "frame/pkt.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADS_ORDER 3

int pkt_pool_init(struct pkt_pool *pool, struct chunk_pool *chunks, unsigned n, struct err *err)
{
	if (!n)
		return err_set(err, EINVAL, "packets: 0; at least 1 is right");
	*pool = (struct pkt_pool){.chunks = chunks, .n = n};
	pool->all = calloc(n, sizeof(*pool->all));
	if (!pool->all)
		return err_set(err, ENOMEM, "packets: no memory for %u", n);
	STAILQ_INIT(&pool->free);
	page_frag_init(&pool->heads, chunks, HEADS_ORDER);
	return 0;
}

void pkt_pool_fini(struct pkt_pool *pool)
{
	assert(!pool->live);
	page_frag_fini(&pool->heads);
	free(pool->all);
	*pool = (struct pkt_pool){0};
}

uint64_t pkt_pool_refs(const struct pkt_pool *pool)
{
	uint64_t sum = pool->heads.chunk != NULL;

	/* a packet that is not out has nothing */
	for (unsigned i = 0; i < pool->used; i++)
		sum += pool->all[i].nfrag + (pool->all[i].head_chunk != NULL);
	return sum;
}

/* ---- making ---- */

/* A record without anything; its fragments beyond nfrag are rubbish. */
static struct pkt *record_take(struct pkt_pool *pool)
{
	struct pkt *p = STAILQ_FIRST(&pool->free);

	if (p) {
		STAILQ_REMOVE_HEAD(&pool->free, entry);
	} else if (pool->used < pool->n) {
		p = &pool->all[pool->used++];
		p->pool = pool;
	} else {
		pool->failed++;
		return NULL;
	}
	pool->live++;
	p->len = p->truesize = 0;
	p->head = NULL;
	p->headroom = p->head_len = p->head_cap = 0;
	p->off = (struct offload){0};
	return p;
}

static void record_drop(struct pkt *p)
{
	struct pkt_pool *pool = p->pool;

	for (unsigned i = 0; i < p->nfrag; i++)
		chunk_put(pool->chunks, p->frag[i].chunk);
	if (p->head_chunk)
		chunk_put(pool->chunks, p->head_chunk);
	p->nfrag = 0;
	p->head_chunk = NULL;
	p->chain = NULL;
	p->account = NULL;
	pool->live--;
	STAILQ_INSERT_HEAD(&pool->free, p, entry);
}

/* A chunk for one head that is longer than a page. */
static uint8_t *head_chunk(struct chunk_pool *chunks, uint32_t n, struct chunk **chunk)
{
	unsigned order = 0;

	if (n > CHUNK_MAX)
		return NULL;
	while (n > CHUNK_PAGE << order)
		order++;
	*chunk = chunk_get(chunks, order);
	if (!*chunk)
		return NULL;
	if (chunk_size(*chunk) < n) {
		chunk_put(chunks, *chunk);
		return NULL;
	}
	return chunk_data(chunks, *chunk);
}

static bool head_make(struct pkt *p, uint32_t room, uint32_t len)
{
	const uint64_t n = ((uint64_t)room + len + PKT_HEAD_ALIGN - 1) & -PKT_HEAD_ALIGN;
	struct chunk_pool *chunks = p->pool->chunks;
	struct chunk *chunk = NULL;
	uint32_t cap;
	uint8_t *buf;

	if (n <= CHUNK_PAGE) {
		buf = page_frag_get(&p->pool->heads, (uint32_t)n, false, &chunk, &cap);
	} else {
		buf = n <= CHUNK_MAX ? head_chunk(chunks, (uint32_t)n, &chunk) : NULL;
		cap = buf ? chunk_size(chunk) : 0;
	}
	if (!buf)
		return false;
	p->head_chunk = chunk;
	p->head = buf + room;
	p->headroom = room;
	p->head_len = p->len = len;
	p->head_cap = p->truesize = cap;
	return true;
}

struct pkt *pkt_new(struct pkt_pool *pool, uint32_t room, uint32_t len)
{
	struct pkt *p = record_take(pool);

	if (p && len && !head_make(p, room, len)) {
		pool->failed++;
		record_drop(p);
		return NULL;
	}
	return p;
}

void pkt_free(struct pkt *p)
{
	struct pkt_account *account;
	struct pkt_pool *pool;
	uint32_t truesize;

	if (!p)
		return;
	pool = p->pool;
	account = p->account;
	truesize = p->truesize;
	while (p) {
		struct pkt *next = p->chain;

		record_drop(p);
		p = next;
	}
	if (account) {
		account->outstanding_bytes -= truesize;
		account->outstanding--;
		if (account->waiting && account->done)
			account->done(account);
	}
	if (__builtin_expect(pool->last && !pool->live, 0))
		pool->last(pool);
}

void pkt_set_account(struct pkt *p, struct pkt_account *account)
{
	assert(!p->account);
	p->account = account;
	account->outstanding_bytes += p->truesize;
	account->outstanding++;
}

void pkt_move_account(struct pkt *from, struct pkt *to)
{
	struct pkt_account *account = from->account;

	if (!account)
		return;
	pkt_set_account(to, account);
	account->outstanding_bytes -= from->truesize;
	account->outstanding--;
	from->account = NULL;
}

/* ---- fragments ---- */

static struct pkt *chain_last(struct pkt *p)
{
	while (p->chain)
		p = p->chain;
	return p;
}

static bool follows(const struct pkt *last, const struct chunk *chunk, const uint8_t *data)
{
	const struct pkt_frag *f;

	if (!last->nfrag)
		return false;
	f = &last->frag[last->nfrag - 1];
	return f->chunk == chunk && f->data + f->len == data;
}

static bool frag_append(struct pkt *last, struct chunk *chunk, uint8_t *data, uint32_t len)
{
	if (last->nfrag == PKT_FRAGS) {
		last->chain = record_take(last->pool);
		if (!last->chain)
			return false;
		last = last->chain;
	}
	last->frag[last->nfrag++] = (struct pkt_frag){chunk, data, len};
	return true;
}

bool pkt_add(struct pkt *p, struct chunk *chunk, uint8_t *data, uint32_t len, uint32_t cap,
	bool coalesce)
{
	struct pkt *last = chain_last(p);
	bool ok = true;

	assert(len);
	if (coalesce && follows(last, chunk, data)) {
		last->frag[last->nfrag - 1].len += len;
		chunk_put(p->pool->chunks, chunk); /* the fragment's own keeps it */
	} else if (!frag_append(last, chunk, data, len)) {
		chunk_put(p->pool->chunks, chunk);
		ok = false;
	}
	if (ok) {
		p->len += len;
		p->truesize += cap;
		if (p->account)
			p->account->outstanding_bytes += cap;
	}
	return ok;
}

unsigned pkt_frags(const struct pkt *p)
{
	unsigned n = 0;

	for (; p; p = p->chain)
		n += p->nfrag;
	return n;
}

unsigned pkt_chained(const struct pkt *p)
{
	unsigned n = 0;

	while ((p = p->chain))
		n++;
	return n;
}

/* ---- lending ---- */

/* The first bytes become private: the head if it is of a lender's size, else what lenders copy. */
static uint32_t private_len(const struct pkt *p)
{
	const uint32_t n =
		p->head_len < FRAME_HEAD || p->head_len > FRAME_PULL_MAX ? FRAME_HEAD : p->head_len;

	return n < p->len ? n : p->len;
}

/* What is lent so far: private bytes are taken first, then pieces. */
struct lending {
	struct frame *f;
	struct iovec *iov;
	unsigned niov;
	uint32_t want; /* private bytes still to come */
};

static bool lend_piece(struct lending *l, uint8_t *data, uint32_t len)
{
	const uint32_t n = len < l->want ? len : l->want;

	if (n) {
		memcpy(l->f->head + l->f->head_len, data, n);
		l->f->head_len = (uint16_t)(l->f->head_len + n);
		l->want -= n;
	}
	if (n == len)
		return true;
	if (l->f->ntail == l->niov)
		return false;
	l->iov[l->f->ntail++] = (struct iovec){data + n, len - n};
	l->f->tail_len += len - n;
	return true;
}

bool pkt_lend(
	struct pkt *p, struct frame *f, struct frame_head *head, struct iovec *iov, unsigned niov)
{
	struct lending l = {f, iov, niov < UINT16_MAX ? niov : UINT16_MAX, private_len(p)};

	*f = (struct frame){.head = head->data, .tail = iov, .off = p->off, .backing = p};
	if (!lend_piece(&l, p->head, p->head_len))
		return false;
	for (const struct pkt *q = p; q; q = q->chain)
		for (unsigned i = 0; i < q->nfrag; i++)
			if (!lend_piece(&l, q->frag[i].data, q->frag[i].len))
				return false;
	return true;
}
