/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reass_test: datagrams cut at random places, their pieces in any order, some twice, come out whole;
 * contradictions end them; floods cost a bounded amount. [RFC 5722]
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/reass.h"

#define HEAD 34 /* Ethernet and IPv4 */

struct bed {
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct reass *r;
	struct rand rnd;
	uint8_t bytes[70000];
	struct frame_head head;
	struct iovec iov[2048];
	nsec_t now;
};

static int setup(void **state)
{
	const uint8_t key[16] = {1, 2, 3};
	const char *env = getenv("SEED");
	const uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	struct bed *b = calloc(1, sizeof(*b));
	struct err err;

	printf("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&b->rnd, seed);
	assert_int_equal(chunk_pool_init(&b->chunks, 8 << 20, &err), 0);
	assert_int_equal(pkt_pool_init(&b->pkts, &b->chunks, 2048, &err), 0);
	assert_int_equal(reass_new(&b->r, key, seed, &b->pkts, &err), 0);
	for (unsigned i = 0; i < sizeof(b->bytes); i++)
		b->bytes[i] = (uint8_t)rand_u64(&b->rnd);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	reass_free(b->r);
	assert_int_equal(b->pkts.live, 0);
	pkt_pool_fini(&b->pkts);
	assert_int_equal(chunk_pool_live(&b->chunks), 0);
	chunk_pool_fini(&b->chunks);
	free(b);
	return 0;
}

static struct reass_key key_of(uint32_t source, uint32_t id)
{
	return (struct reass_key){.src = ip_addr4_u32(source), .dst = ip_addr4_u32(2), .id = id};
}

/* [offset, offset + len) of a datagram whose bytes are b->bytes, partly in the head, partly behind. */
static struct pkt *give(struct bed *b, const struct reass_key *key, uint32_t offset, uint32_t len,
	bool more, struct reass_whole *w)
{
	const uint32_t linear = len > 20 ? rand_below(&b->rnd, len) % 1500 : len;
	struct pkt *p = pkt_new(&b->pkts, 0, HEAD + linear);
	struct reass_frag f = {.key = *key,
		.offset = offset,
		.len = len,
		.at = HEAD,
		.more = more,
		.ecn = 1,
		.head_len = HEAD,
		.next = (uint8_t)(offset ? 9 : 17)};

	assert_non_null(p);
	memset(p->head, offset ? 0xee : 0x11, HEAD);
	memcpy(p->head + HEAD, b->bytes + offset, linear);
	for (uint32_t at = linear; at < len;) {
		struct chunk *c = chunk_get(&b->chunks, 0);
		const uint32_t n = len - at < 3000 ? len - at : 3000;

		memcpy(chunk_data(&b->chunks, c), b->bytes + offset + at, n);
		pkt_add(p, c, chunk_data(&b->chunks, c), n, 4096, false);
		at += n;
	}
	return reass_in(b->r, p, &f, w, b->now);
}

static void check_whole(struct bed *b, struct pkt *p, uint32_t total)
{
	uint8_t *flat = malloc(HEAD + total);
	struct iovec to = {flat, HEAD + total};
	struct frame f;

	assert_non_null(p);
	assert_int_equal(p->len, HEAD + total);
	assert_true(pkt_lend(p, &f, &b->head, b->iov, 2048));
	frame_copy(&f, 0, HEAD + total, &to, 1, 0);
	for (unsigned i = 0; i < HEAD; i++)
		assert_int_equal(flat[i], 0x11); /* the first one's header */
	assert_memory_equal(flat + HEAD, b->bytes, total);
	free(flat);
	pkt_free(p);
}

/* Any cut, any order, some of them twice. */
static void whole(void **state)
{
	struct bed *b = *state;

	for (unsigned round = 0; round < 300; round++) {
		const struct reass_key key = key_of(1, round);
		uint32_t at[REASS_FRAGMENTS + 1], order[REASS_FRAGMENTS];
		unsigned n = 1 + rand_below(&b->rnd, 20), got = 0;
		struct reass_whole w;
		struct pkt *p = NULL;

		at[0] = 0;
		for (unsigned i = 1; i <= n; i++)
			at[i] = at[i - 1] + 8 * (1 + rand_below(&b->rnd, 300));
		at[n] -= rand_below(&b->rnd, 8);
		for (unsigned i = 0; i < n; i++)
			order[i] = i;
		for (unsigned i = n - 1; i > 0; i--) {
			const unsigned k = rand_below(&b->rnd, i + 1);
			const uint32_t x = order[i];

			order[i] = order[k];
			order[k] = x;
		}
		for (unsigned i = 0; i < n; i++) {
			const uint32_t k = order[i];

			if (i && !rand_below(&b->rnd, 4)) { /* once more */
				const uint32_t d = order[rand_below(&b->rnd, i)];

				assert_null(give(b, &key, at[d], at[d + 1] - at[d], d + 1 < n, &w));
			}
			assert_null(p);
			p = give(b, &key, at[k], at[k + 1] - at[k], k + 1 < n, &w);
			got++;
		}
		assert_int_equal(got, n);
		assert_int_equal(w.ecn, 1);
		assert_int_equal(w.next, 17);
		check_whole(b, p, at[n]);
		assert_int_equal(reass_bytes(b->r), 0);
	}
}

/* Each contradiction ends the datagram; what comes later begins anew. */
static void contradictions(void **state)
{
	static const struct {
		uint32_t off1, len1, more1, off2, len2, more2;
	} bad[] = {
		{0, 800, 1, 792, 800, 1},  /* overlaps behind */
		{800, 800, 1, 8, 800, 1},  /* overlaps before */
		{0, 1600, 1, 800, 8, 1},   /* lies within */
		{800, 8, 1, 0, 1600, 1},   /* covers */
		{800, 800, 0, 1600, 8, 1}, /* beyond the end */
		{800, 800, 0, 1600, 8, 0}, /* another end, farther */
		{800, 800, 0, 792, 8, 0},  /* another end, nearer */
		{1600, 800, 1, 800, 8, 0}, /* an end before what is here */
		{0, 800, 1, 0, 808, 1},    /* as long, but not quite */
	};
	struct bed *b = *state;
	struct reass_whole w;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct reass_key key = key_of(1, i);

		assert_null(give(b, &key, bad[i].off1, bad[i].len1, bad[i].more1, &w));
		assert_null(give(b, &key, bad[i].off2, bad[i].len2, bad[i].more2, &w));
		assert_int_equal(reass_counters(b->r)->overlaps, i + 1);
		assert_int_equal(reass_bytes(b->r), 0);
	}
	assert_null(give(b, &(struct reass_key[]){key_of(1, 99)}[0], 65528, 8, false, &w));
	assert_int_equal(reass_counters(b->r)->bad, 1); /* more than an IP datagram can hold */
	assert_null(give(b, &(struct reass_key[]){key_of(1, 99)}[0], 0, 9, true, &w));
	assert_int_equal(reass_counters(b->r)->bad, 2); /* only the last may be odd */
}

/* Pieces of different datagrams never mix. */
static void keys(void **state)
{
	struct bed *b = *state;
	struct reass_whole w;
	const struct reass_key k[2] = {key_of(1, 7), key_of(3, 7)};

	for (unsigned i = 0; i < 2; i++)
		assert_null(give(b, &k[i], 0, 800, true, &w));
	for (unsigned i = 0; i < 2; i++)
		check_whole(b, give(b, &k[i], 800, 100, false, &w), 900);
}

static void time_over(void **state)
{
	struct bed *b = *state;
	const struct reass_key first = key_of(1, 1), later = key_of(1, 2);
	struct reass_whole w;
	struct pkt *p;

	give(b, &first, 0, 800, true, &w);
	b->now = NSEC_PER_SEC;
	give(b, &later, 800, 800, true, &w);
	assert_int_equal(reass_deadline(b->r), REASS_NS);
	assert_null(reass_timer(b->r, REASS_NS - 1));
	p = reass_timer(b->r, REASS_NS);
	assert_non_null(p); /* for an error message */
	pkt_free(p);
	assert_null(
		reass_timer(b->r, REASS_NS + NSEC_PER_SEC)); /* without a first piece: nothing */
	assert_int_equal(reass_counters(b->r)->timeouts, 2);
	assert_int_equal(reass_bytes(b->r), 0);
	assert_int_equal(reass_deadline(b->r), NSEC_NEVER);
}

/* First fragments without end: memory stays bounded, honest datagrams mostly get through. */
static void flood(void **state)
{
	struct bed *b = *state;
	unsigned good = 0;

	for (unsigned i = 0; i < 1000; i++) {
		const struct reass_key honest = key_of(500, i);
		struct reass_whole w;
		struct pkt *p;

		for (unsigned k = 0; k < 20; k++) {
			const struct reass_key bad =
				key_of(1000 + rand_below(&b->rnd, 100000), i * 100 + k);

			give(b, &bad, 8 * rand_below(&b->rnd, 100), 1480, true, &w);
			assert_true(reass_bytes(b->r) <= REASS_BYTES);
			if (k == 10)
				give(b, &honest, 0, 1480, true, &w);
		}
		p = give(b, &honest, 1480, 100, false, &w);
		good += p != NULL;
		if (p)
			check_whole(b, p, 1580);
	}
	assert_true(good > 500);
	/* one source alone gets its share only */
	for (unsigned i = 0; i < 64; i++) {
		const struct reass_key one = key_of(1, 5000 + i);
		struct reass_whole w;

		for (unsigned k = 0; k < 5; k++)
			give(b, &one, 8 + k * 4000, 4000, true, &w);
	}
	assert_true(reass_counters(b->r)->refused > 0);
}

static void ecn(void **state)
{
	/* two fragments' codes -> the datagram's, -1: dropped [RFC 3168 5.3] */
	static const int8_t want[4][4] = {{0, 0, 0, -1}, {0, 1, 2, 3}, {0, 2, 2, 3}, {-1, 3, 3, 3}};
	struct bed *b = *state;

	for (unsigned x = 0; x < 4; x++)
		for (unsigned y = 0; y < 4; y++) {
			const uint8_t code[2] = {(uint8_t)x, (uint8_t)y};
			struct reass_whole w;
			struct pkt *whole_pkt = NULL;

			for (unsigned i = 0; i < 2; i++) {
				struct pkt *p = pkt_new(&b->pkts, 0, HEAD + 8);
				const struct reass_frag f = {.key = key_of(1, x * 4 + y),
					.offset = i * 8,
					.len = 8,
					.at = HEAD,
					.more = !i,
					.ecn = code[i],
					.head_len = HEAD};

				whole_pkt = reass_in(b->r, p, &f, &w, b->now);
			}
			if (want[x][y] < 0)
				assert_null(whole_pkt);
			else
				assert_int_equal(w.ecn, want[x][y]);
			pkt_free(whole_pkt);
		}
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whole),
		TEST(contradictions),
		TEST(keys),
		TEST(time_over),
		TEST(flood),
		TEST(ecn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
