/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owned packets: heads, fragments, coalescing, chains, sums, accounts, lending; after every test
 * all references have come back and the pool is whole.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/rand.h"
#include "frame/frame_make.h"
#include "frame/pkt.h"

#define KIB  1024u
#define PKTS 16
#define BUF  1536u /* a receive buffer */

static uint64_t seed;
static struct rand rnd;

static uint32_t draw(uint32_t n)
{
	return rand_below(&rnd, n);
}

struct rig {
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct page_frag rx;
};

static struct rig *rig_open(void **state)
{
	struct rig *r = *state;
	struct err err;

	memset(r, 0, sizeof(*r));
	if (chunk_pool_init(&r->chunks, 1024 * KIB, &err) ||
		pkt_pool_init(&r->pkts, &r->chunks, PKTS, &err))
		fail_msg("%s", err.text);
	rand_init(&r->chunks.rand, seed);
	page_frag_init(&r->rx, &r->chunks, 3);
	return r;
}

/* Sum of references = posted buffers + fragments + heads + 1 for each allocator's chunk. */
static void rig_balance(const struct rig *r, unsigned posted)
{
	assert_int_equal(chunk_pool_refs(&r->chunks),
		pkt_pool_refs(&r->pkts) + posted + (r->rx.chunk != NULL));
	assert_null(chunk_pool_check(&r->chunks));
}

static void rig_close(struct rig *r)
{
	rig_balance(r, 0);
	assert_int_equal(r->pkts.live, 0);
	page_frag_fini(&r->rx);
	pkt_pool_fini(&r->pkts);
	assert_int_equal(chunk_pool_live(&r->chunks), 0);
	assert_null(chunk_pool_check(&r->chunks));
	chunk_pool_fini(&r->chunks);
}

/* The `n` bytes of a receive buffer, filled, as a fragment of `p`. */
static bool add(struct rig *r, struct pkt *p, uint32_t n, bool coalesce)
{
	struct chunk *c;
	uint32_t cap;
	uint8_t *data = page_frag_get(&r->rx, BUF, true, &c, &cap);

	assert_non_null(data);
	if (!n)
		n = cap;
	for (uint32_t i = 0; i < n; i++)
		data[i] = (uint8_t)(p->len + i);
	return pkt_add(p, c, data, n, cap, coalesce);
}

/* Leaves the rest of the current chunk, so that the next buffer is a new chunk's first. */
static void next_chunk(struct rig *r)
{
	page_frag_fini(&r->rx);
}

/* ---- heads ---------------------------------------------------------------------------------- */

static void a_head_has_the_room_asked_for(void **state)
{
	static const uint32_t room[] = {0, 12, 20, 64, 130};
	static const uint32_t len[] = {1, 14, 60, 128, 512, 3900, 4096, 10000, 65000};
	struct rig *r = rig_open(state);

	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 9; k++) {
			struct pkt *p = pkt_new(&r->pkts, room[i], len[k]);
			const uint32_t need = room[i] + len[k];

			assert_non_null(p);
			assert_int_equal(p->headroom, room[i]);
			assert_int_equal(p->head_len, len[k]);
			assert_int_equal(p->len, len[k]);
			assert_int_equal(p->truesize, p->head_cap);
			assert_int_equal((uintptr_t)(p->head - room[i]) % PKT_HEAD_ALIGN, 0);
			/* the device can read all of it */
			assert_ptr_equal(chunk_of(&r->chunks, p->head - room[i], p->head_cap),
				p->head_chunk);
			assert_true(p->head_cap >= need);
			if (need <= CHUNK_PAGE)
				assert_int_equal(p->head_cap, (need + 63) & ~63u);
			else
				assert_int_equal(p->head_cap, chunk_size(p->head_chunk));
			assert_null(p->account);
			assert_int_equal(p->off.flags | p->off.gso, 0);
			memset(p->head - room[i], 1, need);
			rig_balance(r, 0);
			pkt_free(p);
		}
	rig_close(r);
}

static void what_cannot_be_made_is_counted(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p[PKTS];
	struct err err;

	assert_null(pkt_new(&r->pkts, 0, CHUNK_MAX + 1));
	assert_null(pkt_new(&r->pkts, CHUNK_MAX, 1));
	assert_null(pkt_new(&r->pkts, UINT32_MAX, UINT32_MAX));
	r->chunks.refuse_permille = 1000;
	assert_null(pkt_new(&r->pkts, 0, CHUNK_PAGE + 1)); /* one page does not do */
	r->chunks.refuse_all = true;
	assert_null(pkt_new(&r->pkts, 0, 60));
	r->chunks.refuse_permille = 0;
	assert_int_equal(r->pkts.failed, 5);
	rig_balance(r, 0);
	for (unsigned i = 0; i < PKTS; i++)
		assert_non_null(p[i] = pkt_new(&r->pkts, 12, 60));
	assert_null(pkt_new(&r->pkts, 12, 60));
	assert_int_equal(r->pkts.failed, 6);
	for (unsigned i = 0; i < PKTS; i++)
		pkt_free(p[i]);
	pkt_free(NULL);
	rig_close(r);
	assert_int_equal(pkt_pool_init(&r->pkts, &r->chunks, 0, &err), -EINVAL);
}

/* In steady state no head takes a chunk, and what comes is fresh: nothing of the last owner's. */
static void heads_cost_no_chunk(void **state)
{
	struct rig *r = rig_open(state);

	for (unsigned i = 0; i < 10000; i++) {
		struct pkt *p = pkt_new(&r->pkts, 12, 60);

		assert_int_equal(p->off.gso_size + pkt_frags(p) + pkt_chained(p), 0);
		p->off.gso_size = 1448;
		assert_true(add(r, p, 100, false));
		pkt_free(p);
	}
	assert_int_equal(r->pkts.heads.chunks, 1);
	assert_int_equal(r->rx.chunks, 1);
	assert_int_equal(r->chunks.got[3], 2);
	rig_close(r);
}

/* ---- fragments ------------------------------------------------------------------------------ */

static void fragments_are_summed_by_capacity(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p = pkt_new(&r->pkts, 0, 0);

	assert_null(p->head);
	assert_int_equal(p->truesize, 0);
	assert_true(add(r, p, 1000, true));
	assert_true(add(r, p, 8, true)); /* does not touch the one before */
	assert_int_equal(pkt_frags(p), 2);
	assert_int_equal(p->len, 1008);
	assert_int_equal(p->truesize, 2 * BUF);
	rig_balance(r, 0);
	pkt_free(p);
	rig_close(r);
}

/* 43 buffers of 1536 hold a full super-packet: 3 or 4 fragments, where it were 43. */
static void touching_buffers_become_one_fragment(void **state)
{
	for (unsigned coalesce = 0; coalesce < 2; coalesce++) {
		struct rig *r = rig_open(state);
		struct pkt *p = pkt_new(&r->pkts, 0, 0);

		for (unsigned i = 0; i < 43; i++)
			assert_true(add(r, p, 0, coalesce));
		assert_int_equal(pkt_frags(p), coalesce ? 3 : 43);
		assert_int_equal(pkt_chained(p), coalesce ? 0 : 2);
		assert_int_equal(p->len, 2 * 32768 + BUF);
		assert_int_equal(p->truesize, 2 * 32768 + BUF);
		for (const struct pkt *q = p->chain; q; q = q->chain)
			assert_int_equal(q->len + q->truesize + q->head_len, 0);
		rig_balance(r, 0);
		pkt_free(p);
		rig_close(r);
	}
}

/* Bytes that touch, but in another chunk: two owners, two fragments. */
static void trap_T5_only_the_same_chunk_coalesces(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p = pkt_new(&r->pkts, 0, 0);
	struct chunk *a = chunk_get(&r->chunks, 0), *b = chunk_get(&r->chunks, 0);
	uint8_t *data = chunk_data(&r->chunks, a);

	assert_ptr_equal(data + CHUNK_PAGE, chunk_data(&r->chunks, b));
	assert_true(pkt_add(p, a, data, CHUNK_PAGE, CHUNK_PAGE, true));
	assert_true(pkt_add(p, b, data + CHUNK_PAGE, 100, CHUNK_PAGE, true));
	assert_int_equal(pkt_frags(p), 2);
	rig_balance(r, 0);
	/* the same chunk, but a gap; or the other way round; or not asked for */
	chunk_ref(b);
	assert_true(pkt_add(p, b, data + CHUNK_PAGE + 101, 100, 0, true));
	chunk_ref(b);
	assert_true(pkt_add(p, b, data + CHUNK_PAGE + 1, 100, 0, true));
	chunk_ref(b);
	assert_true(pkt_add(p, b, data + CHUNK_PAGE + 101, 100, 0, false));
	assert_int_equal(pkt_frags(p), 5);
	chunk_ref(b);
	assert_true(pkt_add(p, b, data + CHUNK_PAGE + 201, 100, 0, true));
	assert_int_equal(pkt_frags(p), 5);
	rig_balance(r, 0);
	assert_int_equal(chunk_pool_live(&r->chunks), 2);
	pkt_free(p);
	assert_int_equal(chunk_pool_live(&r->chunks), 0);
	rig_close(r);
}

/*
 * T5: an error after coalescing. Buffers that became one fragment share its one reference: freeing
 * the packet drops it once, and what is still posted of the chunk lives on.
 */
static void trap_T5_a_reference_is_dropped_once(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p = pkt_new(&r->pkts, 12, 14);
	struct chunk *posted, *c;
	uint32_t cap;
	uint8_t *mine;

	for (unsigned i = 0; i < 5; i++)
		assert_true(add(r, p, 0, true));
	mine = page_frag_get(&r->rx, BUF, true, &posted, &cap);
	memset(mine, 0x77, cap);
	assert_ptr_equal(p->frag[0].chunk, posted);
	assert_int_equal(p->nfrag, 1);
	assert_int_equal(posted->refs, 3); /* the fragment, the posted buffer, the allocator */
	rig_balance(r, 1);
	pkt_free(p); /* the sixth buffer was bad */
	assert_int_equal(posted->refs, 2);
	page_frag_fini(&r->rx);
	assert_int_equal(posted->refs, 1);
	rig_balance(r, 1);
	/* nobody else gets the chunk while it is posted */
	while ((c = chunk_get(&r->chunks, 0)))
		memset(chunk_data(&r->chunks, c), 0, CHUNK_PAGE);
	for (uint32_t i = 0; i < cap; i++)
		assert_int_equal(mine[i], 0x77);
	for (uint32_t at = 0; at < r->chunks.len; at += CHUNK_PAGE) {
		c = chunk_of(&r->chunks, r->chunks.base + at, 1);
		if (c && c != posted && c != r->pkts.heads.chunk)
			chunk_put(&r->chunks, c);
	}
	chunk_put(&r->chunks, posted);
	rig_close(r);
}

/* A packet that cannot grow: the reference handed over is dropped, the packet is as it was. */
static void trap_T5_no_record_for_the_chain(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p[PKTS];

	for (unsigned i = 0; i < PKTS; i++)
		assert_non_null(p[i] = pkt_new(&r->pkts, 0, 0));
	for (unsigned i = 0; i < PKT_FRAGS; i++)
		assert_true(add(r, p[0], 100, false));
	for (unsigned i = 0; i < 40; i++) {
		assert_false(add(r, p[0], 100, false));
		rig_balance(r, 0);
	}
	assert_int_equal(r->pkts.failed, 40);
	assert_int_equal(p[0]->len, PKT_FRAGS * 100);
	assert_int_equal(p[0]->truesize, 17 * BUF);
	assert_int_equal(pkt_frags(p[0]), PKT_FRAGS);
	assert_int_equal(pkt_chained(p[0]), 0);
	pkt_free(p[1]);
	assert_true(add(r, p[0], 100, false));
	assert_int_equal(pkt_chained(p[0]), 1);
	for (unsigned i = 0; i < PKTS; i++)
		if (i != 1)
			pkt_free(p[i]);
	rig_close(r);
}

/* Growing goes on where the chain ends: the last fragment of the last packet. */
static void a_chain_grows_at_its_end(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p = pkt_new(&r->pkts, 12, 14);

	for (unsigned i = 0; i < 3 * PKT_FRAGS; i++) {
		assert_true(add(r, p, 100, true));
		assert_int_equal(pkt_frags(p), i + 1);
		assert_int_equal(pkt_chained(p), i / PKT_FRAGS);
	}
	next_chunk(r);
	assert_true(add(r, p, BUF, true));
	assert_true(add(r, p, BUF, true));
	assert_int_equal(pkt_frags(p), 3 * PKT_FRAGS + 1);
	assert_int_equal(p->chain->chain->chain->frag[0].len, 2 * BUF);
	assert_int_equal(p->len, 14 + 51 * 100 + 2 * BUF);
	assert_int_equal(r->pkts.live, 4);
	rig_balance(r, 0);
	pkt_free(p);
	assert_int_equal(r->pkts.live, 0);
	rig_close(r);
}

/* ---- accounts ------------------------------------------------------------------------------- */

struct owner {
	struct pkt_account account;
	struct rig *r;
	unsigned told;
	struct pkt *also; /* freed from within `done` */
};

static void owner_done(struct pkt_account *a)
{
	struct owner *o = (struct owner *)a;
	struct pkt *also = o->also;

	o->told++;
	o->also = NULL;
	pkt_free(also);
}

static void accounts_are_charged_and_completed(void **state)
{
	struct rig *r = rig_open(state);
	struct owner o = {.account = {.done = owner_done}, .r = r};
	struct pkt *a = pkt_new(&r->pkts, 12, 60), *b = pkt_new(&r->pkts, 12, 60);

	assert_true(add(r, a, 100, true));
	pkt_set_account(a, &o.account);
	assert_int_equal(o.account.outstanding, 1);
	assert_int_equal(o.account.outstanding_bytes, 128 + BUF);
	/* what is added later is charged, too: a chained packet's as well */
	for (unsigned i = 0; i < PKT_FRAGS; i++)
		assert_true(add(r, a, 100, false));
	assert_int_equal(pkt_chained(a), 1);
	assert_int_equal(o.account.outstanding_bytes, 128 + 18 * BUF);
	pkt_set_account(b, &o.account);
	assert_int_equal(o.account.outstanding, 2);
	pkt_free(a);
	assert_int_equal(o.told, 0); /* nobody waited */
	assert_int_equal(o.account.outstanding, 1);
	assert_int_equal(o.account.outstanding_bytes, 128);
	o.account.waiting = true;
	pkt_free(b);
	assert_int_equal(o.told, 1);
	assert_int_equal(o.account.outstanding, 0);
	assert_int_equal(o.account.outstanding_bytes, 0);
	rig_close(r);
}

static void done_may_free_another(void **state)
{
	struct rig *r = rig_open(state);
	struct owner o = {.account = {.done = owner_done, .waiting = true}, .r = r};
	struct pkt *a = pkt_new(&r->pkts, 12, 60);

	o.also = pkt_new(&r->pkts, 12, 60);
	pkt_set_account(a, &o.account);
	pkt_set_account(o.also, &o.account);
	pkt_free(a);
	assert_int_equal(o.told, 2);
	assert_int_equal(o.account.outstanding, 0);
	assert_int_equal(o.account.outstanding_bytes, 0);
	/* a record that is used again owes nothing to its last owner */
	a = pkt_new(&r->pkts, 12, 60);
	pkt_free(a);
	assert_int_equal(o.told, 2);
	rig_close(r);
}

/* ---- lending -------------------------------------------------------------------------------- */

static uint32_t flatten_pkt(const struct pkt *p, uint8_t *out)
{
	uint32_t n = p->head_len;

	if (n)
		memcpy(out, p->head, n);
	for (; p; p = p->chain)
		for (unsigned i = 0; i < p->nfrag; i++) {
			memcpy(out + n, p->frag[i].data, p->frag[i].len);
			n += p->frag[i].len;
		}
	return n;
}

static void lending_shows_every_byte(void **state)
{
	static const uint32_t heads[] = {0, 14, 60, 127, 128, 129, 512, 513, 3000, 30000};
	static uint8_t want[4 * CHUNK_MAX], got[4 * CHUNK_MAX];
	struct rig *r = rig_open(state);

	for (unsigned round = 0; round < 500; round++) {
		struct pkt *p = pkt_new(&r->pkts, draw(64), heads[round % 10]);
		const unsigned n = draw(45) + !p->head_len;
		struct iovec iov[PKT_FRAGS * 4 + 1];
		struct frame_head head;
		struct frame f;
		uint32_t len, priv;

		for (uint32_t i = 0; i < p->head_len; i++)
			p->head[i] = (uint8_t)draw(256);
		for (unsigned i = 0; i < n; i++)
			assert_true(add(r, p, draw(8) ? draw(BUF + 1) : 1, draw(2)));
		p->off = (struct offload){.gso_size = (uint16_t)(1 + round), .hdr_len = 54};
		len = flatten_pkt(p, want);
		assert_int_equal(len, p->len);
		assert_true(pkt_lend(p, &f, &head, iov, PKT_FRAGS * (1 + pkt_chained(p)) + 1));
		assert_ptr_equal(f.backing, p);
		assert_ptr_equal(f.head, head.data);
		assert_int_equal(f.drop, DROP_NONE);
		assert_int_equal(f.off.gso_size, 1 + round);
		assert_int_equal(frame_len(&f), len);
		priv = p->head_len < 128 || p->head_len > 512 ? 128 : p->head_len;
		assert_int_equal(f.head_len, priv < len ? priv : len);
		assert_int_equal(frame_flatten(&f, got), len);
		assert_memory_equal(got, want, len);
		/* the head is a copy, the tail is not */
		memset(f.head, 0, f.head_len);
		assert_int_equal(flatten_pkt(p, got), len);
		assert_memory_equal(got, want, len);
		for (unsigned i = 0; i < f.ntail; i++)
			assert_true(chunk_pool_owns(&r->chunks, f.tail[i].iov_base));
		if (f.ntail)
			assert_false(pkt_lend(p, &f, &head, iov, f.ntail - 1u));
		rig_balance(r, 0);
		pkt_free(p);
	}
	rig_close(r);
}

/* All private: no piece is needed, and that is no failure. */
static void a_short_packet_needs_no_piece(void **state)
{
	struct rig *r = rig_open(state);
	struct pkt *p = pkt_new(&r->pkts, 12, 60);
	struct frame_head head;
	struct frame f;

	memset(p->head, 9, 60);
	assert_true(pkt_lend(p, &f, &head, NULL, 0));
	assert_int_equal(f.head_len, 60);
	assert_int_equal(f.ntail + f.tail_len, 0);
	pkt_free(p);
	rig_close(r);
}

int main(void)
{
	const char *given = getenv("SEED");
	static struct rig rig;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(a_head_has_the_room_asked_for, &rig),
		cmocka_unit_test_prestate(what_cannot_be_made_is_counted, &rig),
		cmocka_unit_test_prestate(heads_cost_no_chunk, &rig),
		cmocka_unit_test_prestate(fragments_are_summed_by_capacity, &rig),
		cmocka_unit_test_prestate(touching_buffers_become_one_fragment, &rig),
		cmocka_unit_test_prestate(trap_T5_only_the_same_chunk_coalesces, &rig),
		cmocka_unit_test_prestate(trap_T5_a_reference_is_dropped_once, &rig),
		cmocka_unit_test_prestate(trap_T5_no_record_for_the_chain, &rig),
		cmocka_unit_test_prestate(a_chain_grows_at_its_end, &rig),
		cmocka_unit_test_prestate(accounts_are_charged_and_completed, &rig),
		cmocka_unit_test_prestate(done_may_free_another, &rig),
		cmocka_unit_test_prestate(lending_shows_every_byte, &rig),
		cmocka_unit_test_prestate(a_short_packet_needs_no_piece, &rig),
	};

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
