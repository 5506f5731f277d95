/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split_drv: arming against a device on another thread, again and again at the very same moment: one
 * buffer is out, the driver wishes to be told of it and looks again while the device uses it and looks
 * whether to tell. Whatever the order, one of them must have seen the other: else both would sleep.
 * That is what the fences [call] are for: without ours a processor looks before its wish is seen.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ring/gmem.h"
#include "ring/vq.h"
#include "ring/vq_drv.h"

#define ROUNDS  60000
#define SIZE    4
#define STAGGER 256  /* it takes the device about half as long to see that a round begins */
#define SPINS   2000 /* before the processor is given to somebody else: there may be only one */

struct race {
	struct vq_drv drv;
	struct vq_dev dev;
	struct gmem mem;
	uint8_t *base;
	size_t len;
	uint32_t turn, done; /* rounds begun, and ended by the device */
	bool told;           /* by the device in this round */
};

static void wait_for(const uint32_t *n, uint32_t value)
{
	for (unsigned i = 0; __atomic_load_n(n, __ATOMIC_ACQUIRE) != value; i++)
		if (i > SPINS)
			sched_yield();
}

/* A few instructions more or less, so that they meet in every way. */
static void stagger(uint32_t n)
{
	for (volatile uint32_t i = 0; i < n; i++)
		;
}

/* On the n-th of the processors that we may use, if there are as many: on one they never meet. */
static void stay_on(unsigned n)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || n--)
			continue;
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
		return;
	}
}

static void *device(void *arg)
{
	struct race *r = arg;
	struct chain c;
	struct iovec iov[4];

	stay_on(1);

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		while (vq_dev_pop(&r->dev, &c, 1, iov, 4) != 1)
			sched_yield();
		wait_for(&r->turn, round);
		stagger(round % 3);
		vq_dev_put(&r->dev, c.id, 4);
		r->told = vq_dev_publish(&r->dev);
		__atomic_store_n(&r->done, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void race_init(struct race *r, bool event_idx)
{
	memset(r, 0, sizeof(*r));
	r->len = vq_drv_len(SIZE, false) + 4096;
	r->base = aligned_alloc(4096, (r->len + 4095) / 4096 * 4096);
	assert_non_null(r->base);
	assert_int_equal(vq_drv_init(&r->drv, r->base, SIZE, false, NULL), 0);
	r->drv.event_idx = event_idx;
	vq_drv_reset(&r->drv, 0);
	gmem_init(&r->mem);
	assert_int_equal(
		gmem_add(&r->mem, (uintptr_t)r->base, (uintptr_t)r->base, r->len, r->base, NULL),
		0);
	vq_dev_init(&r->dev, &r->mem);
	vq_dev_set_size(&r->dev, SIZE, NULL);
	vq_dev_set_rings(&r->dev, r->drv.desc, r->drv.avail, r->drv.used);
	vq_dev_start(&r->dev, 0, event_idx, false);
}

static void race_fini(struct race *r)
{
	vq_drv_fini(&r->drv);
	gmem_fini(&r->mem);
	free(r->base);
}

static void run(bool event_idx)
{
	struct race r;
	pthread_t thread;
	uint32_t written, cap;
	uint8_t *data;
	unsigned lost = 0;
	cpu_set_t before;

	race_init(&r, event_idx);
	data = r.base + r.len - 4096;
	sched_getaffinity(0, sizeof(before), &before);
	assert_int_equal(pthread_create(&thread, NULL, device, &r), 0);
	stay_on(0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		bool more;

		vq_drv_disarm(&r.drv);
		vq_drv_add1(&r.drv, data, 4, true, data);
		vq_drv_publish(&r.drv);
		__atomic_store_n(&r.turn, round, __ATOMIC_RELEASE);
		stagger(round * 7 % STAGGER);
		more = vq_drv_arm(&r.drv, 1);
		wait_for(&r.done, round);
		lost += !more && !r.told;
		assert_ptr_equal(vq_drv_get(&r.drv, &written, &cap), data);
	}
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(before), &before);
	assert_int_equal(lost, 0);
	race_fini(&r);
}

static void no_call_is_lost_with_event_indices(void **state)
{
	(void)state;
	run(true);
}

static void no_call_is_lost_with_the_flag(void **state)
{
	(void)state;
	run(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_call_is_lost_with_event_indices),
		cmocka_unit_test(no_call_is_lost_with_the_flag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
