/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_stamp: what is sent is found good; whatever happens to it on the way is found and named. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_gen.h"
#include "app/bench_stamp.h"
#include "base/rand.h"
#include "wire/bytes.h"

#define RUN 0x12345678

struct way {
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct bench_gen gen;
	struct stamp_check check;
};

static void way_open(struct way *w, uint32_t size, uint32_t mtu)
{
	struct bench_gen_config c = {
		.size = size, .mtu = mtu, .headroom = 16, .order = 1, .stamped = true, .run = RUN};

	assert_int_equal(chunk_pool_init(&w->chunks, 4 << 20, NULL), 0);
	assert_int_equal(pkt_pool_init(&w->pkts, &w->chunks, 64, NULL), 0);
	assert_int_equal(bench_gen_init(&w->gen, &w->pkts, &c, NULL), 0);
	stamp_check_init(&w->check);
}

static void way_close(struct way *w)
{
	bench_gen_fini(&w->gen);
	pkt_pool_fini(&w->pkts);
	assert_int_equal(chunk_pool_live(&w->chunks), 0);
	chunk_pool_fini(&w->chunks);
}

static uint32_t flat(const struct pkt *p, uint8_t *to)
{
	uint32_t at = p->head_len;

	memcpy(to, p->head, at);
	for (; p; p = p->chain)
		for (unsigned i = 0; i < p->nfrag; i++) {
			memcpy(to + at, p->frag[i].data, p->frag[i].len);
			at += p->frag[i].len;
		}
	return at;
}

/* Bytes as a packet in pieces of `piece`. */
static struct pkt *pieces(struct way *w, const uint8_t *data, uint32_t len, uint32_t piece)
{
	struct pkt *p = pkt_new(&w->pkts, 16, len < piece ? len : piece);

	memcpy(p->head, data, p->head_len);
	for (uint32_t at = p->head_len, n; at < len; at += n) {
		struct chunk *c = chunk_get(&w->chunks, 0);

		n = len - at < piece ? len - at : piece;
		memcpy(chunk_data(&w->chunks, c), data + at, n);
		assert_true(pkt_add(p, c, chunk_data(&w->chunks, c), n, CHUNK_PAGE, false));
	}
	return p;
}

static bool comes(struct way *w, const uint8_t *data, uint32_t len, uint32_t piece)
{
	struct pkt *p = pieces(w, data, len, piece);
	bool good = stamp_check(&w->check, p);

	pkt_free(p);
	return good;
}

static void every_size_is_good(void **state)
{
	static const uint32_t sizes[] = {
		64, 65, 100, 255, 256, 257, 1514, 1515, 9000, 40000, 65535};
	static uint8_t data[70000];
	struct way *w = *state;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		way_open(w, sizes[i], 1500);
		for (unsigned k = 0; k < 20; k++) {
			struct pkt *p = bench_gen_make(&w->gen);

			assert_int_equal(p->len, sizes[i]);
			assert_true(stamp_check(&w->check, p));
			flat(p, data);
			pkt_free(p);
		}
		assert_int_equal(w->check.good, 20);
		assert_int_equal(stamp_missing(&w->check), 0);
		for (uint32_t piece = 4096; piece > 1; piece /= 3) /* however it lies there */
			if (sizes[i] / piece < 500)
				assert_true(comes(w, data, sizes[i], piece));
		assert_int_equal(w->check.corrupt + w->check.foreign, 0);
		way_close(w);
	}
}

/* One bit, at any place behind the headers, and a byte too little or too much. */
static void every_byte_counts(void **state)
{
	static const uint32_t sizes[] = {64, 300, 1514, 65535};
	static uint8_t data[70000];
	struct way *w = *state;
	uint64_t bad = 0;

	for (unsigned i = 0; i < 4; i++) {
		struct pkt *p;
		uint32_t len;

		way_open(w, sizes[i], 1500);
		p = bench_gen_make(&w->gen);
		assert_true(stamp_check(&w->check, p));
		len = flat(p, data);
		pkt_free(p);
		for (uint32_t at = w->gen.headers; at<len; at += len> 2000 ? 97 : 1) {
			data[at] ^= (uint8_t)(1 << at % 8);
			assert_false(comes(w, data, len, 4096));
			bad++;
			data[at] ^= (uint8_t)(1 << at % 8);
		}
		assert_int_equal(w->check.corrupt + w->check.foreign, bad);
		assert_int_equal(w->check.good, 1);
		put_be16(data + 16, (uint16_t)(len - 14 - 1)); /* says that it is shorter */
		if (sizes[i] <= 1514)
			assert_false(comes(w, data, len, 4096));
		put_be16(data + 16, (uint16_t)(len - 14));
		assert_false(comes(w, data, len - 1, 4096));
		assert_true(comes(w, data, len, 4096));
		bad = 0;
		way_close(w);
	}
}

static void loss_duplicates_and_order_are_counted(void **state)
{
	static uint8_t data[600][100];
	struct way *w = *state;
	const struct stamp_check *s = &w->check;

	way_open(w, 100, 1500);
	w->gen.serial = UINT32_MAX - 300; /* numbers go round */
	for (unsigned i = 0; i < 600; i++) {
		struct pkt *p = bench_gen_make(&w->gen);

		flat(p, data[i]);
		pkt_free(p);
	}
	for (unsigned i = 10; i < 500; i++)
		if (i % 7)
			assert_true(comes(w, data[i], 100, 100));
	assert_int_equal(stamp_missing(s), 70);
	assert_int_equal(s->reordered + s->duplicated, 0);
	assert_true(comes(w, data[14], 100, 100)); /* late */
	assert_int_equal(s->reordered, 1);
	assert_int_equal(stamp_missing(s), 69);
	assert_true(comes(w, data[14], 100, 100)); /* and twice */
	assert_true(comes(w, data[499], 100, 100));
	assert_int_equal(s->duplicated, 2);
	assert_int_equal(stamp_missing(s), 69);
	assert_true(comes(w, data[5], 100, 100)); /* sent before the first that came */
	assert_int_equal(s->reordered, 2);
	assert_int_equal(stamp_missing(s), 69 + 4);
	assert_int_equal(s->good, 420 + 4);
	way_close(w);
}

/* A gap as long as the window, and longer: what was seen before it is no duplicate after it. */
static void long_gaps(void **state)
{
	static const uint32_t gaps[] = {1, 63, 64, 65, 65535, 65536, 65537, 200000};
	uint8_t data[100];
	struct way *w = *state;

	for (unsigned i = 0; i < sizeof(gaps) / sizeof(*gaps); i++) {
		way_open(w, 100, 1500);
		for (unsigned k = 0; k < 10; k++) {
			struct pkt *p = bench_gen_make(&w->gen);

			flat(p, data);
			pkt_free(p);
			assert_true(comes(w, data, 100, 100));
			w->gen.serial += gaps[i];
		}
		assert_int_equal(w->check.duplicated + w->check.reordered, 0);
		assert_int_equal(stamp_missing(&w->check), 9 * gaps[i]);
		way_close(w);
	}
}

/* Cut on the way: every segment is checked, at its place. */
static void segments_are_checked(void **state)
{
	static uint8_t data[70000];
	uint8_t cut[1514];
	struct way *w = *state;
	struct pkt *p;
	uint32_t len, hdr, n;

	way_open(w, 65535, 1500);
	p = bench_gen_make(&w->gen);
	len = flat(p, data);
	hdr = w->gen.headers;
	pkt_free(p);
	for (unsigned wrong = 0; wrong < 2; wrong++) {
		for (uint32_t at = 0; at < len - hdr; at += n) {
			n = len - hdr - at < 1448 ? len - hdr - at : 1448;
			memcpy(cut, data, hdr);
			memcpy(cut + hdr, data + hdr + at, n);
			put_be16(cut + 16, (uint16_t)(hdr - 14 + n));
			put_be32(cut + 14 + 20 + 4,
				1 + at + wrong * 1448); /* of the one behind it */
			if (!wrong || at + 1448 < len - hdr)
				assert_int_equal(comes(w, cut, hdr + n, 400), !wrong);
			if (!wrong) /* what was cut off, or is still to come */
				assert_int_equal(
					stamp_missing_bytes(&w->check), len - hdr - at - n);
		}
	}
	assert_int_equal(w->check.good, 1);
	assert_int_equal(w->check.segments, 45);
	assert_int_equal(w->check.corrupt, 44);
	assert_int_equal(w->check.foreign, 1); /* beyond the end of any packet */
	way_close(w);
}

/* Whatever comes, nothing is read beyond it, and it is not good. */
static void anything_else_is_foreign(void **state)
{
	uint8_t data[200];
	struct way *w = *state;
	struct rand rnd;

	rand_init(&rnd, 1);
	way_open(w, 100, 1500);
	for (unsigned i = 0; i < 20000; i++) {
		struct pkt *p = bench_gen_make(&w->gen);
		uint32_t len = 14 + rand_below(&rnd, 150);

		memset(data, 0, sizeof(data));
		flat(p, data);
		pkt_free(p);
		for (unsigned k = rand_below(&rnd, 4); k < 4; k++)
			data[12 + rand_below(&rnd, 50)] = (uint8_t)rand_below(&rnd, 256);
		if (rand_below(&rnd, 2))
			data[23] = 6;
		comes(w, data, len, 1 + rand_below(&rnd, 100));
	}
	assert_true(w->check.foreign > 1000);
	assert_true(w->check.corrupt > 100);
	way_close(w);
}

static int setup(void **state)
{
	*state = malloc(sizeof(struct way));
	return !*state;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_is_good),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(loss_duplicates_and_order_are_counted),
		cmocka_unit_test(long_gaps),
		cmocka_unit_test(segments_are_checked),
		cmocka_unit_test(anything_else_is_foreign),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
