/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_keep: random frames, lent in random pieces, at every order and refusal rate, compared byte
 * for byte; the rules for the linear part and the chunks; sharing within a pool; the count of
 * allocations (S3).
 */
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
#include "frame/frame_make.h"
#include "frame/offload.h"
#include "frame/pkt.h"

#define KIB  1024u
#define PKTS 32
#define ROOM 20

static uint64_t seed;
static struct rand rnd;

static uint32_t draw(uint32_t n)
{
	return rand_below(&rnd, n);
}

struct rig {
	struct chunk_pool chunks;
	struct pkt_pool pkts;
};

struct world {
	struct rig a, b; /* two peers */
	struct made m;
	struct fit fit;
	uint8_t want[2 * MAKE_MAX], got[2 * MAKE_MAX];
};

static void rig_open(struct rig *r)
{
	struct err err;

	if (chunk_pool_init(&r->chunks, 1024 * KIB, &err) ||
		pkt_pool_init(&r->pkts, &r->chunks, PKTS, &err))
		fail_msg("%s", err.text);
	rand_init(&r->chunks.rand, seed);
}

static void rig_balance(const struct rig *r)
{
	assert_int_equal(chunk_pool_refs(&r->chunks), pkt_pool_refs(&r->pkts));
	assert_null(chunk_pool_check(&r->chunks));
}

static void rig_close(struct rig *r)
{
	rig_balance(r);
	pkt_pool_fini(&r->pkts);
	assert_int_equal(chunk_pool_live(&r->chunks), 0);
	assert_null(chunk_pool_check(&r->chunks));
	chunk_pool_fini(&r->chunks);
}

static struct world *world_open(void **state)
{
	struct world *w = *state;

	memset(w, 0, sizeof(*w));
	rig_open(&w->a);
	rig_open(&w->b);
	return w;
}

static void world_close(struct world *w)
{
	make_end(&w->m);
	rig_close(&w->a);
	rig_close(&w->b);
}

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

static void same_bytes(struct world *w, const struct pkt *p, const uint8_t *want, uint32_t len)
{
	assert_int_equal(p->len, len);
	assert_int_equal(flatten_pkt(p, w->got), len);
	assert_memory_equal(w->got, want, len);
}

/* A frame of `len` bytes without any offload, lent in a few pieces. */
static struct frame *plain(struct world *w, uint32_t len)
{
	const struct recipe r = {.payload = len - 14};

	make_end(&w->m);
	make(&w->m, &r, &rnd);
	make_lend(&w->m, FRAME_HEAD, 9000, &rnd);
	return &w->m.f;
}

/* A TCP super-packet of `len` bytes with headers of 54. */
static struct frame *super(struct world *w, uint32_t len)
{
	const struct recipe r = {.ip = 4, .proto = 6, .flags = 0x10, .payload = len - 54};

	make_end(&w->m);
	make(&w->m, &r, &rnd);
	make_lend(&w->m, FRAME_HEAD, 9000, &rnd);
	w->m.f.off = make_off(&w->m, 1448);
	return &w->m.f;
}

static uint32_t linear_of(struct world *w, const struct frame *f, const struct keep_rule *rule)
{
	struct pkt *p = frame_keep(f, &w->a.pkts, rule);
	uint32_t n;

	assert_non_null(p);
	same_bytes(w, p, w->m.flat, frame_len(f));
	n = p->head_len;
	pkt_free(p);
	return n;
}

/* ---- the copy: any frame -------------------------------------------------------------------- */

static void random_frame(struct world *w)
{
	static const unsigned proto[] = {6, 6, 17, 1};
	const struct recipe r = {.tags = draw(3),
		.ip = (unsigned[]){4, 6, 0}[draw(3)],
		.proto = proto[draw(4)],
		.tcp_opts = 4 * draw(4),
		.flags = 0x10,
		.payload = draw(4) ? draw(65000) : draw(300)};
	const struct recipe flat = {.payload = r.payload};

	make(&w->m, r.ip ? &r : &flat, &rnd);
	make_lend(&w->m, draw(FRAME_PULL_MAX), 1 + draw(draw(2) ? 20000 : 2000), &rnd);
	if (r.ip && r.proto != 1 && draw(2))
		w->m.f.off = make_off(&w->m, (uint16_t)(draw(2) ? 1 + draw(9000) : 0));
	else if (!draw(3)) /* what a liar may say: it must only be survived */
		w->m.f.off = (struct offload){.flags = (uint8_t)draw(4),
			.gso = (uint8_t)draw(6),
			.gso_size = (uint16_t)draw(65536),
			.csum_start = (uint16_t)draw(65536),
			.csum_off = (uint16_t)draw(65536),
			.hdr_len = (uint16_t)draw(65536)};
}

static uint32_t capacity_of(const struct pkt *p)
{
	uint32_t sum = p->head_cap;

	for (unsigned i = 0; i < p->nfrag; i++)
		sum += chunk_size(p->frag[i].chunk);
	return sum;
}

static void check_kept(struct world *w, const struct pkt *p, const struct keep_rule *rule)
{
	const struct frame *f = &w->m.f;

	same_bytes(w, p, w->m.flat, w->m.len);
	assert_memory_equal(&p->off, &f->off, sizeof(p->off));
	assert_int_equal(p->headroom, rule->headroom);
	assert_null(p->chain);
	assert_int_equal(p->truesize, capacity_of(p));
	for (unsigned i = 0; i < p->nfrag; i++) {
		const struct chunk *c = p->frag[i].chunk;

		assert_int_equal(c->refs, 1);
		assert_in_range(c->order, 0, rule->order);
		if (i + 1 < p->nfrag) /* only the last is not full */
			assert_int_equal(p->frag[i].len, chunk_size(c));
	}
	rig_balance(&w->a);
}

static void any_frame_at_any_order_and_refusal(void **state)
{
	static const unsigned permille[] = {0, 100, 500, 900, 1000};
	struct world *w = world_open(state);

	for (unsigned round = 0; round < 1500; round++) {
		const struct keep_rule rule = {.order = round % CHUNK_ORDERS,
			.linear_hint0 = !draw(3),
			.headroom = draw(2) ? 12 : draw(200)};
		struct chunk_pool *chunks = &w->a.chunks;
		const uint64_t failed = w->a.pkts.failed;
		struct pkt *p;

		chunks->refuse_permille = permille[draw(5)];
		chunks->refuse_all = !draw(4);
		random_frame(w);
		p = frame_keep(&w->m.f, &w->a.pkts, &rule);
		if (p)
			check_kept(w, p, &rule);
		else /* a long head has no lower order, and pages can be refused: nothing else fails */
			assert_true(chunks->refuse_permille &&
				    (chunks->refuse_all || rule.linear_hint0));
		assert_int_equal(w->a.pkts.failed, failed + !p);
		pkt_free(p);
		rig_balance(&w->a);
		make_end(&w->m);
	}
	assert_int_equal(w->a.pkts.live, 0);
	world_close(w);
}

/* S3: allocations for a packet of 64 KiB. 16 pages; 8 chunks of 8 KiB; 2 of 32 KiB. */
static void a_super_packet_takes_16_8_or_2_chunks(void **state)
{
	static const unsigned expected[CHUNK_ORDERS] = {16, 8, 4, 2, 1};
	struct world *w = world_open(state);

	pkt_free(pkt_new(&w->a.pkts, ROOM, 60)); /* the heads have their chunk now */
	for (unsigned order = 0; order < CHUNK_ORDERS; order++) {
		const struct keep_rule rule = {.order = order, .headroom = ROOM};
		const struct frame *f = super(w, 65536);
		uint64_t before[CHUNK_ORDERS];
		struct pkt *p;

		memcpy(before, w->a.chunks.got, sizeof(before));
		p = frame_keep(f, &w->a.pkts, &rule);
		assert_int_equal(p->head_len, 54);
		assert_int_equal(p->nfrag, expected[order]);
		for (unsigned o = 0; o < CHUNK_ORDERS; o++)
			assert_int_equal(
				w->a.chunks.got[o] - before[o], o == order ? expected[order] : 0);
		assert_int_equal(p->truesize, 128 + 65536);
		same_bytes(w, p, w->m.flat, 65536);
		pkt_free(p);
	}
	assert_int_equal(w->a.chunks.fallbacks, 0);
	world_close(w);
}

/* 9000 bytes: a chunk of 8 KiB and a page, whatever higher order there is. */
static void no_chunk_is_larger_than_the_rest_fills(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 4, .headroom = ROOM};
	struct pkt *p = frame_keep(super(w, 54 + 8192 + 800), &w->a.pkts, &rule);

	assert_int_equal(p->nfrag, 2);
	assert_int_equal(p->frag[0].chunk->order, 1);
	assert_int_equal(p->frag[1].chunk->order, 0);
	assert_int_equal(p->truesize, 128 + 8192 + 4096);
	pkt_free(p);
	/* 7.1 pages fill order 3: rounded up to pages it is full */
	p = frame_keep(super(w, 54 + 7 * 4096 + 400), &w->a.pkts, &rule);
	assert_int_equal(p->nfrag, 1);
	assert_int_equal(p->frag[0].chunk->order, 3);
	pkt_free(p);
	world_close(w);
}

/*
 * T26: fragmented down to single pages, a packet may take 17 of them, not 16; an 18th is too much.
 */
static void trap_T26_seventeen_chunks(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct pkt *p;

	pkt_free(pkt_new(&w->a.pkts, ROOM, 60)); /* the heads have their chunk now */
	w->a.chunks.refuse_permille = 1000;
	p = frame_keep(super(w, 65557), &w->a.pkts, &rule); /* the longest there is: 15.99 pages */
	assert_int_equal(p->nfrag, 16);
	assert_int_equal(w->a.chunks.fallbacks, 3); /* what was refused is not asked for again */
	pkt_free(p);
	for (uint32_t rest = 16 * 4096; rest <= 17 * 4096; rest += 1024) {
		p = frame_keep(super(w, 54 + rest), &w->a.pkts, &rule);
		assert_non_null(p);
		assert_int_equal(p->nfrag, rest > 16 * 4096 ? 17 : 16);
		same_bytes(w, p, w->m.flat, 54 + rest);
		pkt_free(p);
	}
	assert_int_equal(w->a.pkts.failed, 0);
	assert_null(frame_keep(super(w, 54 + 17 * 4096 + 1), &w->a.pkts, &rule));
	assert_int_equal(w->a.pkts.failed, 1);
	rig_balance(&w->a);
	assert_int_equal(w->a.pkts.live, 0);
	world_close(w);
}

/* A frame that 17 chunks of the highest order cannot hold: what is too much becomes linear. */
static void trap_T26_linear_grows(void **state)
{
	struct world *w = world_open(state);

	for (unsigned order = 0; order < 2; order++) {
		const struct keep_rule rule = {.order = order, .headroom = ROOM};
		const uint32_t most = PKT_FRAGS * (CHUNK_PAGE << order), len = most + 10000;
		struct iovec tail = {NULL, len - 54};
		struct frame f = {.tail = &tail, .ntail = 1, .tail_len = len - 54};
		uint8_t *bytes = malloc(len), *got = malloc(len);
		struct pkt *p;

		for (uint32_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)rand_u64(&rnd);
		f.head = bytes;
		f.head_len = 54;
		f.off.hdr_len = 54;
		tail.iov_base = bytes + 54;
		p = frame_keep(&f, &w->a.pkts, &rule);
		assert_non_null(p);
		assert_int_equal(p->head_len, 10000);
		assert_int_equal(p->head_cap, 16 * KIB);
		assert_int_equal(p->nfrag, PKT_FRAGS);
		assert_int_equal(p->truesize, 16 * KIB + most);
		assert_int_equal(flatten_pkt(p, got), len);
		assert_memory_equal(got, bytes, len);
		pkt_free(p);
		/* 17 chunks hold it all, but only if the last one is not cut into smaller ones */
		for (uint32_t cut = 0; cut < CHUNK_PAGE << order; cut += CHUNK_PAGE) {
			tail.iov_len = f.tail_len = most - cut;
			p = frame_keep(&f, &w->a.pkts, &rule);
			assert_non_null(p);
			assert_int_equal(p->nfrag, PKT_FRAGS);
			pkt_free(p);
		}
		free(bytes);
		free(got);
	}
	world_close(w);
}

/* With order 2 the last rest of 3 pages would be two chunks, the 17th and an 18th. */
static void trap_T26_the_last_chunk_takes_all(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 2, .headroom = ROOM};
	const uint32_t len = 54 + 16 * 16 * KIB + 12 * KIB;
	uint8_t *bytes = calloc(1, len);
	struct iovec tail = {bytes + 54, len - 54};
	struct frame f = {.head = bytes,
		.head_len = 54,
		.tail = &tail,
		.ntail = 1,
		.tail_len = len - 54,
		.off.hdr_len = 54};
	struct pkt *p = frame_keep(&f, &w->a.pkts, &rule);

	assert_non_null(p);
	assert_int_equal(p->nfrag, PKT_FRAGS);
	assert_int_equal(p->frag[16].len, 12 * KIB);
	pkt_free(p);
	free(bytes);
	world_close(w);
}

/*
 * T27: without a hint the linear part ends with the page; the old rule made 64 KiB of it, which a
 * fragmented pool does not have.
 */
static void trap_T27_hint_0_is_not_all_linear(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule fixed = {.order = 3, .headroom = ROOM};
	const struct keep_rule old = {.order = 3, .headroom = ROOM, .linear_hint0 = true};
	struct frame *f = plain(w, 65000);

	assert_int_equal(linear_of(w, f, &fixed), CHUNK_PAGE - ROOM);
	assert_int_equal(linear_of(w, f, &old), 65000);
	w->a.chunks.refuse_permille = 1000;
	assert_int_equal(linear_of(w, f, &fixed), CHUNK_PAGE - ROOM);
	assert_null(frame_keep(f, &w->a.pkts, &old));
	w->a.chunks.refuse_permille = 0;
	/* what no chunk can hold with its headroom goes into one more */
	f = plain(w, 65557);
	assert_int_equal(linear_of(w, f, &old), 65536 - ROOM);
	/* a hint there is: both rules are the same */
	f = super(w, 65000);
	assert_int_equal(linear_of(w, f, &old), 54);
	assert_int_equal(linear_of(w, f, &fixed), 54);
	/* less than a page: all of it, whatever the hint; the page itself is none */
	f = super(w, 4095 - ROOM);
	assert_int_equal(linear_of(w, f, &fixed), 4095 - ROOM);
	f = super(w, 4096 - ROOM);
	assert_int_equal(linear_of(w, f, &fixed), 54);
	f = plain(w, 4096 - ROOM);
	assert_int_equal(linear_of(w, f, &fixed), 4096 - ROOM);
	f = plain(w, 4097 - ROOM);
	assert_int_equal(linear_of(w, f, &fixed), 4096 - ROOM);
	world_close(w);
}

/* T27: hints are somebody's word: bounded by a page, by the frame, and from below by Ethernet. */
static void trap_T27_hints_are_bounded(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct frame *f = plain(w, 60000);

	f->off.hdr_len = 1;
	assert_int_equal(linear_of(w, f, &rule), 14);
	f->off.hdr_len = 200;
	assert_int_equal(linear_of(w, f, &rule), 200);
	f->off.hdr_len = 65535;
	assert_int_equal(linear_of(w, f, &rule), CHUNK_PAGE - ROOM);
	/* the checksum's place is a hint, too, if there is one */
	f->off = (struct offload){.hdr_len = 54, .csum_start = 300, .csum_off = 16};
	assert_int_equal(linear_of(w, f, &rule), 54);
	f->off.flags = OFF_NEEDS_CSUM;
	assert_int_equal(linear_of(w, f, &rule), 318);
	f->off.hdr_len = 400;
	assert_int_equal(linear_of(w, f, &rule), 400);
	f->off.csum_start = f->off.csum_off = 65535; /* their sum has 17 bits */
	assert_int_equal(linear_of(w, f, &rule), CHUNK_PAGE - ROOM);
	f = plain(w, 4100);
	f->off.hdr_len = 65535;
	assert_int_equal(linear_of(w, f, &rule), CHUNK_PAGE - ROOM);
	f = plain(w, 100);
	f->off.hdr_len = 65535;
	assert_int_equal(linear_of(w, f, &rule), 100);
	world_close(w);
}

/* ---- the reference -------------------------------------------------------------------------- */

/* A packet as a receive ring would make it: buffers of 1536, Ethernet header pulled out or not. */
static struct pkt *received(struct rig *r, uint32_t head_len, unsigned buffers, bool coalesce)
{
	struct pkt *p = pkt_new(&r->pkts, 0, head_len);
	struct page_frag rx;

	page_frag_init(&rx, &r->chunks, 3);
	for (uint32_t i = 0; i < head_len; i++)
		p->head[i] = (uint8_t)draw(256);
	for (unsigned b = 0; b < buffers; b++) {
		struct chunk *c;
		uint32_t cap;
		uint8_t *data = page_frag_get(&rx, 1536, true, &c, &cap);

		for (uint32_t i = 0; i < cap; i++)
			data[i] = (uint8_t)draw(256);
		assert_true(
			pkt_add(p, c, data, b + 1 < buffers ? cap : 1 + draw(cap), cap, coalesce));
	}
	page_frag_fini(&rx);
	return p;
}

struct loan {
	struct frame f;
	struct frame_head head;
	struct iovec iov[5 * PKT_FRAGS];
};

static void lend(struct loan *l, struct pkt *p)
{
	assert_true(pkt_lend(p, &l->f, &l->head, l->iov, 5 * PKT_FRAGS));
}

static uint64_t chunks_got(const struct rig *r)
{
	uint64_t n = 0;

	for (unsigned o = 0; o < CHUNK_ORDERS; o++)
		n += r->chunks.got[o];
	return n;
}

static void within_the_pool_nothing_is_copied(void **state)
{
	static const uint32_t heads[] = {0, 14, 128, 300, 2000, 20000};
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct loan l;

	for (unsigned round = 0; round < 200; round++) {
		struct pkt *p =
			received(&w->a, heads[round % 6], 1 + draw(round & 1 ? 44 : 3), draw(2));
		const uint32_t len = flatten_pkt(p, w->want);
		const uint64_t got = chunks_got(&w->a);
		struct pkt *kept;

		p->off = (struct offload){.flags = OFF_NEEDS_CSUM,
			.gso = OFF_GSO_TCPV4,
			.gso_size = (uint16_t)(1 + round),
			.hdr_len = 54};
		lend(&l, p);
		assert_true(frame_pull(&l.f, draw(FRAME_PULL_MAX)));
		kept = frame_keep(&l.f, &w->a.pkts, &rule);
		assert_non_null(kept);
		same_bytes(w, kept, w->want, len);
		assert_memory_equal(&kept->off, &p->off, sizeof(p->off));
		assert_int_equal(kept->headroom, ROOM);
		assert_true(chunks_got(&w->a) - got <= 1); /* for heads */
		rig_balance(&w->a);
		/* the head is its own, the payload is shared and outlives the first owner */
		if (kept->nfrag)
			assert_ptr_equal(kept->frag[0].data, l.f.tail[0].iov_base);
		memset(kept->head - ROOM, 0, ROOM + kept->head_len);
		assert_int_equal(flatten_pkt(p, w->got), len);
		assert_memory_equal(w->got, w->want, len);
		memcpy(kept->head, w->want, kept->head_len);
		pkt_free(p);
		rig_balance(&w->a);
		same_bytes(w, kept, w->want, len);
		pkt_free(kept);
	}
	assert_int_equal(w->a.pkts.kept_ref, 200);
	assert_int_equal(w->a.pkts.kept_copy, 0);
	world_close(w);
}

/* One peer's memory never gets into another's packet, and no address of it either. */
static void another_pool_gets_a_copy(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct pkt *p, *kept;
	struct loan l;

	for (unsigned round = 0; round < 50; round++) {
		uint32_t len;

		p = received(&w->a, 14, 1 + draw(43), true);
		len = flatten_pkt(p, w->want);
		lend(&l, p);
		kept = frame_keep(&l.f, &w->b.pkts, &rule);
		for (unsigned i = 0; i < kept->nfrag; i++)
			assert_true(chunk_pool_owns(&w->b.chunks, kept->frag[i].data));
		assert_true(chunk_pool_owns(&w->b.chunks, kept->head));
		memset(p->frag[0].data, 0, p->frag[0].len);
		pkt_free(p);
		same_bytes(w, kept, w->want, len);
		pkt_free(kept);
	}
	/* one without a tail has nothing to share either */
	p = pkt_new(&w->a.pkts, 0, 60);
	memset(p->head, 0, 60);
	lend(&l, p);
	kept = frame_keep(&l.f, &w->b.pkts, &rule);
	assert_non_null(kept);
	pkt_free(kept);
	pkt_free(p);
	assert_int_equal(w->b.pkts.kept_copy, 51);
	assert_int_equal(w->b.pkts.kept_ref, 0);
	world_close(w);
}

/* A backing alone is no proof: bytes that lie elsewhere are copied. */
static void pieces_outside_the_pool_are_copied(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct pkt *p = received(&w->a, 14, 1, true), *kept;
	struct frame *f = super(w, 9000);

	f->backing = p;
	kept = frame_keep(f, &w->a.pkts, &rule);
	assert_int_equal(w->a.pkts.kept_copy, 1);
	same_bytes(w, kept, w->m.flat, 9000);
	pkt_free(kept);
	pkt_free(p);
	world_close(w);
}

/* What a keeper's socket buffer is charged: the buffers that are held, and the new head. */
static void sharing_is_charged_like_owning(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = 12};
	struct pkt *p, *kept, *copy;
	struct loan l;

	p = received(&w->a, 14, 3, true);
	assert_int_equal(p->truesize, 64 + 3 * 1536);
	lend(&l, p);
	kept = frame_keep(&l.f, &w->a.pkts, &rule);
	assert_int_equal(kept->truesize, 192 + 3 * 1536); /* 12 + 128 bytes of head, rounded */
	lend(&l, kept);
	copy = frame_keep(&l.f, &w->a.pkts, &rule);
	assert_int_equal(copy->truesize, kept->truesize);
	pkt_free(copy);
	pkt_free(kept);
	pkt_free(p);
	/* all of it private: nothing is held */
	p = pkt_new(&w->a.pkts, 0, 60);
	memset(p->head, 0, 60);
	lend(&l, p);
	kept = frame_keep(&l.f, &w->a.pkts, &rule);
	assert_int_equal(kept->truesize, 128);
	pkt_free(kept);
	pkt_free(p);
	/* the head's own chunk is shared: charged, too */
	p = pkt_new(&w->a.pkts, 0, 20000);
	memset(p->head, 0, 20000);
	lend(&l, p);
	kept = frame_keep(&l.f, &w->a.pkts, &rule);
	assert_int_equal(kept->truesize, 192 + 32768);
	pkt_free(p);
	pkt_free(kept);
	world_close(w);
}

/* Segments of a packet share its payload: each its own head, none its own copy. */
static void segments_share_the_payload(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct pkt *p = frame_keep(super(w, 54 + 20 * 1448), &w->a.pkts, &rule);
	struct pkt *seg[20];
	uint64_t charged = 0;
	uint32_t at = 54;
	struct loan l;

	assert_non_null(p);
	lend(&l, p);
	assert_int_equal(offload_check(&l.f), DROP_NONE);
	assert_int_equal(fit_segment(&w->fit, &l.f, 0, 0), DROP_NONE);
	assert_int_equal(w->fit.n, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_non_null(seg[i] = frame_keep(&w->fit.f[i], &w->a.pkts, &rule));
	pkt_free(p);
	/* the payload of the first lies in the private head in part: such pieces are copied */
	assert_int_equal(w->a.pkts.kept_ref, 19);
	for (unsigned i = 0; i < 20; i++, at += 1448) {
		assert_int_equal(flatten_pkt(seg[i], w->got), 54 + 1448);
		assert_memory_equal(w->got + 54, w->m.flat + at, 1448);
		charged += seg[i]->truesize - seg[i]->head_cap;
	}
	assert_in_range(charged, 20 * 1448, 2 * 32768);
	rig_balance(&w->a);
	for (unsigned i = 0; i < 20; i++)
		pkt_free(seg[i]);
	world_close(w);
}

/* Lent, kept, lent, kept, ... through both pools: the same bytes at the end. */
static void round_trips(void **state)
{
	struct world *w = world_open(state);

	for (unsigned round = 0; round < 60; round++) {
		const struct keep_rule rule = {.order = draw(CHUNK_ORDERS), .headroom = draw(100)};
		const struct offload off = {.gso_size = (uint16_t)round, .hdr_len = 14};
		struct pkt *p;

		random_frame(w);
		w->m.f.off = off;
		p = frame_keep(&w->m.f, &w->a.pkts, &rule);
		assert_non_null(p);
		for (unsigned hop = 0; hop < 8; hop++) {
			struct rig *to = draw(2) ? &w->a : &w->b;
			struct pkt *next;
			struct loan l;

			lend(&l, p);
			next = frame_keep(&l.f, &to->pkts, &rule);
			assert_non_null(next);
			pkt_free(p);
			p = next;
			same_bytes(w, p, w->m.flat, w->m.len);
			assert_memory_equal(&p->off, &off, sizeof(off));
		}
		pkt_free(p);
		make_end(&w->m);
	}
	world_close(w);
}

/* No record, no head, no record for the chain: nothing is kept, nothing is lost. */
static void failing_to_share_drops_every_reference(void **state)
{
	struct world *w = world_open(state);
	const struct keep_rule rule = {.order = 3, .headroom = ROOM};
	struct pkt *p = received(&w->a, 14, 40, false), *hold[PKTS];
	unsigned n = 0;
	struct loan l;

	lend(&l, p);
	while ((hold[n] = pkt_new(&w->a.pkts, 0, 0)))
		n++;
	assert_null(frame_keep(&l.f, &w->a.pkts, &rule));
	rig_balance(&w->a);
	pkt_free(hold[--n]);
	assert_null(frame_keep(&l.f, &w->a.pkts, &rule)); /* one record; three are needed */
	rig_balance(&w->a);
	assert_int_equal(w->a.pkts.failed, 3);
	assert_int_equal(w->a.pkts.kept_ref, 0);
	while (n)
		pkt_free(hold[--n]);
	pkt_free(p);
	world_close(w);
}

int main(void)
{
	const char *given = getenv("SEED");
	static struct world world;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(any_frame_at_any_order_and_refusal, &world),
		cmocka_unit_test_prestate(a_super_packet_takes_16_8_or_2_chunks, &world),
		cmocka_unit_test_prestate(no_chunk_is_larger_than_the_rest_fills, &world),
		cmocka_unit_test_prestate(trap_T26_seventeen_chunks, &world),
		cmocka_unit_test_prestate(trap_T26_linear_grows, &world),
		cmocka_unit_test_prestate(trap_T26_the_last_chunk_takes_all, &world),
		cmocka_unit_test_prestate(trap_T27_hint_0_is_not_all_linear, &world),
		cmocka_unit_test_prestate(trap_T27_hints_are_bounded, &world),
		cmocka_unit_test_prestate(within_the_pool_nothing_is_copied, &world),
		cmocka_unit_test_prestate(another_pool_gets_a_copy, &world),
		cmocka_unit_test_prestate(pieces_outside_the_pool_are_copied, &world),
		cmocka_unit_test_prestate(sharing_is_charged_like_owning, &world),
		cmocka_unit_test_prestate(segments_share_the_payload, &world),
		cmocka_unit_test_prestate(round_trips, &world),
		cmocka_unit_test_prestate(failing_to_share_drops_every_reference, &world),
	};

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&rnd, seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
