/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split_dev: chains that are legal and look odd, every lie a driver can tell by its name, and the
 * notification rules. Random schedules are in split_dev_model_test.c.
 */
#include "ring/split_dev_test.h"

#include <errno.h>
#include <string.h>

/* Back across the wrap, to the very same chains. */
static void unpop_is_exact(void **state)
{
	struct guest g;
	struct chain c[4], again[4];
	struct iovec iov[16], iov2[16];
	struct ring_sim_buf b[2] = {{DATA_GPA, 10}, {DATA_GPA + 100, 20}};

	(void)state;
	guest_init(&g, &(struct ring_sim_config){.size = 8, .base = 65534});
	for (int i = 0; i < 4; i++)
		ring_sim_add(&g.sim, b, (unsigned)i % 2, 2 - (unsigned)i % 2, false);
	ring_sim_publish(&g.sim);
	assert_int_equal(vq_dev_pop(&g.vq, c, 4, iov, 16), 4);
	assert_int_equal(g.vq.last_avail, 2);
	assert_int_equal(vq_dev_available(&g.vq), 0);
	vq_dev_unpop(&g.vq, 3);
	assert_int_equal(g.vq.last_avail, 65535);
	assert_int_equal(vq_dev_available(&g.vq), 3);
	assert_int_equal(vq_dev_pop(&g.vq, again, 4, iov2, 16), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(again[i].id, c[i + 1].id);
		assert_int_equal(again[i].nr, c[i + 1].nr);
		assert_int_equal(again[i].wlen, c[i + 1].wlen);
	}
	guest_fini(&g);
}

/* ---- what is legal, and looks odd ---- */

#define N VRING_DESC_F_NEXT
#define W VRING_DESC_F_WRITE
#define I VRING_DESC_F_INDIRECT

static struct guest lie;
static struct vring_desc *desc, *table;

static void lie_init(void)
{
	guest_init(&lie, &(struct ring_sim_config){.size = 8, .table = 2 * CHAIN_MAX});
	desc = lie.sim.desc;
	table = lie.sim.table;
}

/* Offer descriptor `head`, pop it. */
static unsigned lie_pop(uint16_t head, struct chain *c, struct iovec *iov, unsigned niov)
{
	ring_sim_add_raw(&lie.sim, head);
	ring_sim_publish(&lie.sim);
	return vq_dev_pop(&lie.vq, c, 1, iov, niov);
}

static void odd_chains(void **state)
{
	struct chain c;
	struct iovec iov[CHAIN_MAX];
	uint64_t border = DATA_GPA;

	(void)state;
	lie_init();
	border += lie.half;

	/* a buffer across two regions, which are not neighbours here */
	desc[0] = (struct vring_desc){border - 3, 10, W, 0};
	assert_int_equal(lie_pop(0, &c, iov, 2), 1);
	assert_int_equal(c.nw, 2);
	assert_int_equal(c.wlen, 10);
	assert_int_equal(c.ndesc, 1);
	assert_ptr_equal(iov[0].iov_base, lie.data[0] + lie.half - 3);
	assert_int_equal(iov[0].iov_len, 3);
	assert_ptr_equal(iov[1].iov_base, lie.data[1]);
	assert_int_equal(iov[1].iov_len, 7);

	/* the same without room for both pieces: not now, not broken; then with room */
	assert_int_equal(lie_pop(0, &c, iov, 1), 0);
	assert_null(lie.vq.broken);
	assert_int_equal(vq_dev_pop(&lie.vq, &c, 1, iov, 0), 0);
	assert_int_equal(vq_dev_pop(&lie.vq, &c, 1, iov, 2), 1);

	/* direct ones, then an indirect one, which says WRITE: ignored [2.7.5.3.2] */
	desc[0] = (struct vring_desc){DATA_GPA, 5, N, 3};
	desc[3] = (struct vring_desc){DATA_GPA + 9, 0, N, 2}; /* empty: no piece */
	desc[2] = (struct vring_desc){lie.sim.table_gpa, 32, I | W, 0xffff};
	table[0] = (struct vring_desc){DATA_GPA + 10, 6, N, 1};
	table[1] = (struct vring_desc){DATA_GPA + 20, 7, W, 0};
	assert_int_equal(lie_pop(0, &c, iov, 3), 1);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.nw, 1);
	assert_int_equal(c.rlen, 11);
	assert_int_equal(c.wlen, 7);
	assert_int_equal(c.ndesc, 5);

	/* a table walked backwards, longer than its chain, at an odd address */
	uint8_t *odd = (uint8_t *)table + 3;

	memcpy(odd + 32, &(struct vring_desc){DATA_GPA, 1, N, 0}, 16);
	memcpy(odd, &(struct vring_desc){DATA_GPA, 2, N, 2}, 16);
	memcpy(odd + 32, &(struct vring_desc){DATA_GPA, 4, N, 1}, 16);
	memcpy(odd + 16, &(struct vring_desc){DATA_GPA, 8, 0, 7}, 16);
	desc[0] = (struct vring_desc){lie.sim.table_gpa + 3, 64, I, 0};
	assert_int_equal(lie_pop(0, &c, iov, 3), 1);
	assert_int_equal(c.rlen, 14);
	assert_int_equal(iov[1].iov_len, 4);

	/* a table across two regions, the border inside of an entry */
	struct vring_desc split[2] = {{DATA_GPA, 3, N, 1}, {DATA_GPA + 4, 6, W, 0}};

	for (unsigned i = 0; i < sizeof(split); i++)
		*guest_byte(&lie, border - 20 + i) = ((uint8_t *)split)[i];
	desc[0] = (struct vring_desc){border - 20, sizeof(split), I, 0};
	assert_int_equal(lie_pop(0, &c, iov, 3), 1);
	assert_int_equal(c.rlen, 3);
	assert_int_equal(c.wlen, 6);

	/* as many pieces as may be, and not a byte less room */
	for (unsigned i = 0; i < CHAIN_MAX; i++)
		table[i] = (struct vring_desc){DATA_GPA, 1, N | W, (uint16_t)(i + 1)};
	table[CHAIN_MAX - 1].flags = W;
	desc[0] = (struct vring_desc){lie.sim.table_gpa, 16 * CHAIN_MAX, I, 0};
	assert_int_equal(lie_pop(0, &c, iov, CHAIN_MAX - 1), 0);
	assert_null(lie.vq.broken);
	assert_int_equal(vq_dev_pop(&lie.vq, &c, 1, iov, CHAIN_MAX), 1);
	assert_int_equal(c.nw, CHAIN_MAX);
	assert_int_equal(c.wlen, CHAIN_MAX);

	/* the largest sum */
	desc[0] = (struct vring_desc){BIG_GPA, UINT32_MAX - 1, N, 1};
	desc[1] = (struct vring_desc){DATA_GPA, 1, W, 0};
	assert_int_equal(lie_pop(0, &c, iov, 8), 1);
	assert_int_equal(c.rlen, UINT32_MAX - 1);
	assert_null(lie.vq.broken);
	guest_fini(&lie);
}

/* ---- lies, each with its name ---- */

static void ahead(void)
{
	lie.sim.avail->idx = 9;
}

static void head_out(void)
{
	ring_sim_add_raw(&lie.sim, 8);
}

static void next_out(void)
{
	desc[0] = (struct vring_desc){DATA_GPA, 1, N, 8};
}

static void loop_direct(void)
{
	desc[0] = (struct vring_desc){DATA_GPA, 1, N, 1};
	desc[1] = (struct vring_desc){DATA_GPA, 1, N, 0};
}

static void loop_empty(void)
{
	desc[0] = (struct vring_desc){DATA_GPA, 0, N, 0};
}

static void order(void)
{
	desc[0] = (struct vring_desc){DATA_GPA, 1, N | W, 1};
	desc[1] = (struct vring_desc){DATA_GPA, 1, 0, 0};
}

static void order_empty(void)
{
	order();
	desc[0].len = 0;
}

static void unmapped(void)
{
	desc[0] = (struct vring_desc){DATA_GPA - 1, 1, 0, 0};
}

static void end_unmapped(void)
{
	/* the good chain before it makes this region the remembered one */
	desc[7].addr = DATA_GPA + 2 * lie.half - 64;
	desc[0] = (struct vring_desc){DATA_GPA + 2 * lie.half - 4, 5, W, 0};
}

static void address_wraps(void)
{
	desc[0] = (struct vring_desc){UINT64_MAX, UINT32_MAX, 0, 0};
}

static void no_bytes(void)
{
	desc[0] = (struct vring_desc){DATA_GPA, 0, N, 1};
	desc[1] = (struct vring_desc){DATA_GPA, 0, W, 0};
}

static void sum(void)
{
	desc[0] = (struct vring_desc){BIG_GPA, UINT32_MAX, N, 1};
	desc[1] = (struct vring_desc){BIG_GPA, 1, W, 0};
}

static void sum_16bit(void) /* is not a lie: checked to be taken */
{
	desc[0] = (struct vring_desc){BIG_GPA, 65535, N, 1};
	desc[1] = (struct vring_desc){BIG_GPA, 1, 0, 0};
}

static void table_of(uint64_t gpa, uint32_t len, uint16_t flags)
{
	desc[0] = (struct vring_desc){gpa, len, flags, 1};
	desc[1] = (struct vring_desc){DATA_GPA, 1, 0, 0};
	table[0] = (struct vring_desc){DATA_GPA, 1, N, 1};
	table[1] = (struct vring_desc){DATA_GPA, 1, 0, 0};
}

static void table_refused(void)
{
	table_of(lie.sim.table_gpa, 32, I);
	lie.vq.indirect = false;
}

static void table_next(void)
{
	table_of(lie.sim.table_gpa, 32, I | N);
}

static void table_empty(void)
{
	table_of(lie.sim.table_gpa, 0, I);
}

static void table_odd(void)
{
	table_of(lie.sim.table_gpa, 33, I);
}

static void table_long(void)
{
	table_of(lie.sim.table_gpa, 16 * (CHAIN_MAX + 1), I);
}

static void table_unmapped(void)
{
	table_of(DATA_GPA - 16, 32, I);
}

static void table_end_unmapped(void)
{
	table_of(DATA_GPA + 2 * lie.half - 16, 32, I);
	for (unsigned i = 0; i < 16; i++)
		*guest_byte(&lie, desc[0].addr + i) = ((uint8_t *)table)[i];
}

static void table_nested(void)
{
	table_of(lie.sim.table_gpa, 32, I);
	table[1] = (struct vring_desc){lie.sim.table_gpa, 32, I, 0};
}

/* The table is the ring's own, so that "inside" cannot be told by its address. */
static void table_is_ring(void)
{
	desc[0] = (struct vring_desc){lie.sim.desc_gpa, 32, I, 0};
}

static void table_next_out(void)
{
	table_of(lie.sim.table_gpa, 32, I);
	table[1].flags = N;
	table[1].next = 2;
}

static void table_loops(void)
{
	table_of(lie.sim.table_gpa, 32, I);
	table[1].flags = N;
	table[1].next = 0;
}

static void too_many_pieces(void)
{
	for (unsigned i = 0; i < CHAIN_MAX; i++)
		table[i] = (struct vring_desc){DATA_GPA, 1, N, (uint16_t)(i + 1)};
	table[CHAIN_MAX - 1].flags = 0;
	desc[1] = (struct vring_desc){lie.sim.table_gpa, 16 * CHAIN_MAX, I, 0};
	desc[0] = (struct vring_desc){DATA_GPA, 1, N, 1};
}

static void too_many_by_border(void)
{
	too_many_pieces();
	desc[0] = desc[1];
	table[CHAIN_MAX - 1].addr = DATA_GPA + lie.half - 1;
	table[CHAIN_MAX - 1].len = 2;
}

static const struct {
	void (*lay_out)(void);
	const char *reason; /* begins so; NULL: is taken */
} lies[] = {
	{ahead, "avail index runs ahead"},
	{head_out, "avail entry names no descriptor"},
	{next_out, "next descriptor lies outside of the ring"},
	{loop_direct, "descriptor chain loops"},
	{loop_empty, "descriptor chain loops"},
	{order, "readable descriptor after a writable one"},
	{order_empty, "readable descriptor after a writable one"},
	{unmapped, "descriptor outside of guest memory"},
	{end_unmapped, "descriptor outside of guest memory"},
	{address_wraps, "descriptor outside of guest memory"},
	{no_bytes, "descriptor chain without a byte"},
	{sum, "descriptor chain of more than 2^32 - 1 bytes"},
	{sum_16bit, NULL},
	{table_refused, "indirect descriptor, but the feature"},
	{table_next, "indirect descriptor with a next one"},
	{table_empty, "indirect table's length"},
	{table_odd, "indirect table's length"},
	{table_long, "indirect table is too long"},
	{table_unmapped, "indirect table outside of guest memory"},
	{table_end_unmapped, "indirect table outside of guest memory"},
	{table_nested, "indirect descriptor inside"},
	{table_is_ring, "indirect descriptor inside"},
	{table_next_out, "next descriptor lies outside of the indirect table"},
	{table_loops, "descriptor chain loops"},
	{too_many_pieces, "descriptor chain has too many pieces"},
	{too_many_by_border, "descriptor chain has too many pieces"},
};

/* A good chain, the lie, a good chain: the first is popped, then nothing, for the named reason. */
static void lies_break(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(lies); i++) {
		struct chain c[3];
		struct iovec iov[2 * CHAIN_MAX];
		const char *why = lies[i].reason;

		lie_init();
		desc[7] = (struct vring_desc){DATA_GPA, 64, 0, 0};
		if (lies[i].lay_out == ahead || lies[i].lay_out == head_out) {
			lies[i].lay_out();
			if (lies[i].lay_out == head_out)
				ring_sim_publish(&lie.sim);
			assert_int_equal(vq_dev_pop(&lie.vq, c, 3, iov, COUNT(iov)), 0);
		} else {
			lies[i].lay_out();
			ring_sim_add_raw(&lie.sim, 7);
			ring_sim_add_raw(&lie.sim, 0);
			ring_sim_add_raw(&lie.sim, 7);
			ring_sim_publish(&lie.sim);
			assert_int_equal(vq_dev_pop(&lie.vq, c, 3, iov, COUNT(iov)), why ? 1 : 3);
			assert_int_equal(c[0].id, 7);
		}
		if (!why) {
			assert_null(lie.vq.broken);
			guest_fini(&lie);
			continue;
		}
		assert_non_null(lie.vq.broken);
		if (strncmp(lie.vq.broken, why, strlen(why)) != 0)
			fail_msg("lie %u: \"%s\", not \"%s\"", i, lie.vq.broken, why);

		/* sticky; what was popped may still be returned */
		vq_dev_break(&lie.vq, "another reason");
		assert_int_equal(strncmp(lie.vq.broken, why, strlen(why)), 0);
		assert_int_equal(vq_dev_pop(&lie.vq, c, 3, iov, COUNT(iov)), 0);
		assert_int_equal(vq_dev_available(&lie.vq), 0);
		assert_false(vq_dev_arm(&lie.vq, 1));
		vq_dev_put(&lie.vq, 7, 0);
		assert_true(vq_dev_publish(&lie.vq));
		assert_int_equal(lie.sim.used->idx, 1);

		/* a restart heals */
		lie.sim.avail->idx = 1;
		vq_dev_start(&lie.vq, 1, false, true);
		assert_true(vq_dev_ready(&lie.vq));
		assert_int_equal(vq_dev_pop(&lie.vq, c, 3, iov, COUNT(iov)), 0);
		assert_null(lie.vq.broken);
		guest_fini(&lie);
	}
}

static void index_goes_back(void **state)
{
	struct chain c[2];
	struct iovec iov[2];

	(void)state;
	lie_init();
	for (int i = 0; i < 3; i++)
		ring_sim_add1(&lie.sim, DATA_GPA, 1, false);
	ring_sim_publish(&lie.sim);
	assert_int_equal(vq_dev_pop(&lie.vq, c, 1, iov, 2), 1);
	lie.sim.avail->idx = 2;
	assert_int_equal(vq_dev_available(&lie.vq), 0);
	assert_string_equal(lie.vq.broken, "avail index went back");
	guest_fini(&lie);
}

static void sizes(void **state)
{
	struct vq_dev vq;
	struct err err;
	static const unsigned bad[] = {0, 3, 255, 32769, 65536, 65535, UINT32_MAX};

	(void)state;
	vq_dev_init(&vq, NULL);
	for (unsigned i = 0; i < COUNT(bad); i++)
		assert_int_equal(vq_dev_set_size(&vq, bad[i], &err), -EINVAL);
	assert_non_null(strstr(err.text, "4294967295"));
	assert_int_equal(vq_dev_set_size(&vq, 1, &err), 0);
	assert_int_equal(vq_dev_set_size(&vq, RING_MAX, &err), 0);
	assert_false(vq_dev_ready(&vq));
	assert_int_equal(vq_dev_pop(&vq, NULL, 1, NULL, 0), 0);
	assert_int_equal(vq_dev_available(&vq), 0);
}

/* ---- notification ---- */

/* Every distance of the driver's event from the old index, across the wrap, for several batches. */
static void call_rule(void **state)
{
	(void)state;
	for (unsigned batch = 1; batch <= 5; batch += 2)
		for (int d = -4; d < 10; d++) {
			struct guest g;
			uint16_t old = 65534;

			guest_init(&g, &(struct ring_sim_config){
					       .size = 8, .base = 65533, .event_idx = true});
			g.sim.avail->flags = VRING_AVAIL_F_NO_INTERRUPT; /* not asked */
			g.sim.avail->ring[8] = 1000;
			vq_dev_put(&g.vq, 0, 0);
			assert_true(vq_dev_publish(&g.vq));  /* the first after a start */
			assert_false(vq_dev_publish(&g.vq)); /* nothing new */
			g.sim.avail->ring[8] = (uint16_t)(old + d);
			for (unsigned i = 0; i < batch; i++)
				vq_dev_put(&g.vq, 0, 0);
			assert_int_equal(vq_dev_publish(&g.vq), d >= 0 && d < (int)batch);
			assert_int_equal(g.vq.n_notify + g.vq.n_suppressed, 2);
			guest_fini(&g);
		}
}

static void flag_rule(void **state)
{
	struct guest g;

	(void)state;
	guest_init(&g, &(struct ring_sim_config){.size = 8});
	vq_dev_put(&g.vq, 0, 0);
	ring_sim_disarm(&g.sim);
	assert_true(vq_dev_publish(&g.vq)); /* the first after a start */
	vq_dev_put(&g.vq, 0, 0);
	assert_false(vq_dev_publish(&g.vq));
	ring_sim_arm(&g.sim, 1);
	g.sim.avail->ring[8] = 77; /* not asked */
	vq_dev_put(&g.vq, 0, 0);
	assert_true(vq_dev_publish(&g.vq));

	/* and the other way */
	vq_dev_disarm(&g.vq);
	assert_int_equal(g.sim.used->flags, VRING_USED_F_NO_NOTIFY);
	assert_false(vq_dev_arm(&g.vq, 1));
	assert_int_equal(g.sim.used->flags, 0);
	ring_sim_add1(&g.sim, DATA_GPA, 1, false);
	ring_sim_publish(&g.sim);
	assert_true(vq_dev_arm(&g.vq, 1));
	assert_int_equal(g.sim.used->flags, VRING_USED_F_NO_NOTIFY);

	/* a wish that another device left behind is not believed */
	vq_dev_start(&g.vq, g.vq.last_avail, false, false);
	assert_int_equal(g.sim.used->flags, 0);
	guest_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(unpop_is_exact),
		cmocka_unit_test(odd_chains),
		cmocka_unit_test(lies_break),
		cmocka_unit_test(index_goes_back),
		cmocka_unit_test(call_rule),
		cmocka_unit_test(flag_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
