/* SPDX-License-Identifier: BSD-2-Clause */
/* split_dev_test: a guest in plain memory, for the tests of the device side. */
#ifndef RING_SPLIT_DEV_TEST_H
#define RING_SPLIT_DEV_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "ring/ring_sim.h"
#include "ring/vq.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * A guest: a ring at RING_GPA; buffers at DATA_GPA in two regions that are neighbours in the guest and
 * not here, so that some buffers cross.
 */
#define RING_GPA 0x10000000u
#define DATA_GPA 0x40000000u
#define BIG_GPA  0x10000000000u /* a terabyte that nobody touches: for sums */
#define BIG_LEN  0x10000000000u
#define TABLE    8
#define SLOT     256 /* bytes of data for each head */

struct guest {
	struct gmem mem;
	struct ring_sim sim;
	struct vq_dev vq;
	void *ring;
	uint8_t *data[2]; /* the two halves */
	size_t half;
};

static inline void guest_init(struct guest *g, const struct ring_sim_config *config)
{
	struct ring_sim_config c = *config;
	size_t len = ring_sim_len(c.size, c.table);

	/* an odd size: the border between the halves is in the middle of a slot */
	g->half = (size_t)c.size * SLOT / 2 + 77;
	g->ring = aligned_alloc(64, len);
	for (int i = 0; i < 2; i++)
		g->data[i] = calloc(1, g->half);
	gmem_init(&g->mem);
	assert_int_equal(gmem_add(&g->mem, DATA_GPA, DATA_GPA, g->half, g->data[0], NULL), 0);
	assert_int_equal(gmem_add(&g->mem, RING_GPA, RING_GPA, len, g->ring, NULL), 0);
	assert_int_equal(gmem_add(&g->mem, DATA_GPA + g->half, DATA_GPA + g->half, g->half,
				 g->data[1], NULL),
		0);
	assert_int_equal(gmem_add(&g->mem, BIG_GPA, BIG_GPA, BIG_LEN, g->ring, NULL), 0);
	c.mem = g->ring;
	c.gpa = RING_GPA;
	assert_int_equal(ring_sim_init(&g->sim, &c), 0);
	vq_dev_init(&g->vq, &g->mem);
	ring_sim_attach(&g->sim, &g->vq, c.table > 0);
	assert_true(vq_dev_ready(&g->vq));
}

static inline void guest_fini(struct guest *g)
{
	ring_sim_fini(&g->sim);
	gmem_fini(&g->mem);
	free(g->ring);
	free(g->data[0]);
	free(g->data[1]);
}

static inline uint8_t *guest_byte(struct guest *g, uint64_t gpa)
{
	uint64_t at = gpa - DATA_GPA;

	return at < g->half ? &g->data[0][at] : &g->data[1][at - g->half];
}

#endif
