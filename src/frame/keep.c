/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keep: the door from a loan to an owned packet: frame_keep(). By reference where the bytes lie in
 * the pool's own chunks already, else by the one copy that tun and macvtap make of what their user
 * writes.
 *
 * The copy: a linear part that reaches over the headers, the rest in chunks. Headers are what the
 * offload fields name; these are hints of somebody else and therefore bounded [T27]. Chunks are asked
 * for at the highest order that the rest fills, lower ones once an order is not to be had, never
 * more than PKT_FRAGS, exactly [T26]:
 *
 *	[ headroom | linear ]  [ 32 KiB ]  [ 32 KiB ]  [ 4 KiB ]        at most 17
 */
#include "frame/pkt.h"

#include <assert.h>
#include <string.h>

#define ETH_HEADER 14

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- by reference ---- */

static bool all_ours(const struct frame *f, const struct chunk_pool *chunks)
{
	for (unsigned i = 0; i < f->ntail; i++)
		if (f->tail[i].iov_len &&
			!chunk_of(chunks, f->tail[i].iov_base, f->tail[i].iov_len))
			return false;
	return true;
}

/*
 * What sharing the tail costs: what the packet behind it was charged, without its head if that is
 * not shared; a part of it if the frame is a part (a segment).
 */
static uint32_t charge_shared(const struct frame *f, const struct pkt *kept)
{
	const struct pkt *from = f->backing;
	const uint32_t len = min_u32(frame_len(f), from->len);
	uint32_t whole = from->truesize;
	bool head = false;

	if (f->charge)
		return f->charge;
	for (unsigned i = 0; i < kept->nfrag; i++)
		head |= kept->frag[i].chunk == from->head_chunk;
	if (!head)
		whole -= from->head_cap;
	return (uint32_t)(((uint64_t)whole * len + from->len - 1) / from->len);
}

static struct pkt *keep_ref(
	const struct frame *f, struct pkt_pool *pool, const struct keep_rule *rule)
{
	struct pkt *p = pkt_new(pool, rule->headroom, f->head_len);

	if (!p)
		return NULL;
	if (f->head_len)
		memcpy(p->head, f->head, f->head_len);
	for (unsigned i = 0; i < f->ntail; i++) {
		uint8_t *data = f->tail[i].iov_base;
		const uint32_t len = (uint32_t)f->tail[i].iov_len;
		struct chunk *c = len ? chunk_of(pool->chunks, data, len) : NULL;

		if (!c)
			continue;
		chunk_ref(c);
		if (!pkt_add(p, c, data, len, 0, false)) {
			pkt_free(p);
			return NULL;
		}
	}
	if (f->tail_len)
		p->truesize += charge_shared(f, p);
	pool->kept_ref++;
	return p;
}

/* ---- by copy ---- */

/* How far the headers reach, as far as the frame's sender says. 0: it does not say. */
static uint32_t header_hint(const struct frame *f)
{
	uint32_t n = f->off.hdr_len;

	if (f->off.flags & OFF_NEEDS_CSUM) {
		const uint32_t csum_end = (uint32_t)f->off.csum_start + f->off.csum_off + 2;

		if (csum_end > n)
			n = csum_end;
	}
	return n;
}

/* Bytes of the frame that go behind the headroom. */
static uint32_t linear_len(const struct frame *f, const struct keep_rule *rule)
{
	const uint32_t len = frame_len(f), hint = header_hint(f);
	const uint32_t good = CHUNK_PAGE - rule->headroom;
	const uint32_t chunks = PKT_FRAGS * (CHUNK_PAGE << rule->order);
	uint32_t n;

	if (rule->headroom + (uint64_t)len < CHUNK_PAGE)
		return len;
	if (hint)
		n = min_u32(hint < ETH_HEADER ? ETH_HEADER : hint, good);
	else
		n = rule->linear_hint0 ? CHUNK_MAX - rule->headroom : good;
	n = min_u32(n, len);
	return len - n > chunks ? len - chunks : n;
}

/*
 * Chunks for `rest` bytes, in order, as fragments of the packet. A chunk is not larger than the rest
 * fills, but for the last one there may be: then one chunk must do.
 */
static bool add_chunks(struct pkt *p, uint32_t rest, unsigned order)
{
	while (rest) {
		struct chunk *c;
		uint32_t n;

		if (p->nfrag == PKT_FRAGS)
			return false;
		while (order && rest <= (CHUNK_PAGE << order) - CHUNK_PAGE &&
			p->nfrag + 1 < PKT_FRAGS)
			order--;
		c = chunk_get(p->pool->chunks, order);
		if (!c)
			return false;
		order = c->order; /* what was refused once is not asked for again */
		n = min_u32(rest, chunk_size(c));
		pkt_add(p, c, chunk_data(p->pool->chunks, c), n, chunk_size(c), false);
		rest -= n;
	}
	return true;
}

static void copy_in(const struct frame *f, const struct pkt *p)
{
	struct iovec to[1 + PKT_FRAGS];
	unsigned n = 0;

	if (p->head_len)
		to[n++] = (struct iovec){p->head, p->head_len};
	for (unsigned i = 0; i < p->nfrag; i++)
		to[n++] = (struct iovec){p->frag[i].data, p->frag[i].len};
	if (n)
		frame_copy(f, 0, p->len, to, n, 0);
}

static struct pkt *keep_copy(
	const struct frame *f, struct pkt_pool *pool, const struct keep_rule *rule)
{
	const uint32_t linear = linear_len(f, rule);
	struct pkt *p = pkt_new(pool, rule->headroom, linear);

	if (!p)
		return NULL;
	if (!add_chunks(p, frame_len(f) - linear, rule->order)) {
		pool->failed++;
		pkt_free(p);
		return NULL;
	}
	copy_in(f, p);
	pool->kept_copy++;
	return p;
}

struct pkt *frame_keep(const struct frame *f, struct pkt_pool *pool, const struct keep_rule *rule)
{
	struct pkt *p;

	assert(rule->order < CHUNK_ORDERS && rule->headroom < CHUNK_PAGE / 2);
	if (f->backing && f->backing->pool->chunks == pool->chunks && all_ours(f, pool->chunks))
		p = keep_ref(f, pool, rule);
	else
		p = keep_copy(f, pool, rule);
	if (p)
		p->off = f->off;
	return p;
}
