/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair: what goes in at one end comes out at the other, within its depth, with events from the loop.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/fake.h"
#include "port/pair.h"

#define DEPTH 8

static struct loop loop;
static struct burst burst;
static struct fit fit;
static uint8_t buf[FRAME_MAX];

struct seen {
	struct pair *pair;
	struct port *a, *b;
	unsigned ready, room;
};

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct seen *)ctx)->ready++;
}

static void on_room(void *ctx, struct portq *q)
{
	(void)q;
	((struct seen *)ctx)->room++;
}

static void on_link(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events events = {on_ready, on_room, on_link};

static int setup(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));

	if (loop_init(&loop, NULL) || pair_new(&s->pair, "a", "b", DEPTH, &loop, NULL, NULL))
		return -1;
	s->a = pair_port(s->pair, 0);
	s->b = pair_port(s->pair, 1);
	s->a->events = s->b->events = &events;
	s->a->events_ctx = s->b->events_ctx = s;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct seen *s = *state;

	s->a->ops->close(s->a);
	s->b->ops->close(s->b);
	pair_free(s->pair);
	loop_fini(&loop);
	free(s);
	return 0;
}

static bool push_one(struct port *p, uint32_t len, uint32_t count)
{
	struct frame f = {.head = buf, .head_len = FRAME_HEAD};
	struct iovec tail = {buf + FRAME_HEAD, len - FRAME_HEAD};
	uint32_t resume = 0;

	fake_eth(buf, 1, 2, 0, len, count);
	f.tail = &tail;
	f.ntail = 1;
	f.tail_len = len - FRAME_HEAD;
	f.off.flags = OFF_DATA_VALID;
	return port_push(&p->q, &f, 1, &resume, &fit) == 1;
}

static void through(void **state)
{
	struct seen *s = *state;
	static uint8_t out[FRAME_MAX];
	struct iovec to = {out, sizeof(out)};

	for (uint32_t len = FRAME_HEAD; len <= FRAME_MAX; len += len < 2000 ? 331 : 9377) {
		assert_true(push_one(s->a, len, len));
		assert_int_equal(port_pull(&s->b->q, &burst, 8), 1);
		assert_int_equal(frame_len(&burst.f[0]), len);
		assert_int_equal(burst.f[0].off.flags, OFF_DATA_VALID);
		frame_copy(&burst.f[0], 0, len, &to, 1, 0);
		assert_memory_equal(out, buf, len);
		port_settle(&s->b->q, &burst, 1);
	}
	assert_int_equal(port_pull(&s->a->q, &burst, 8), 0);
}

static void full_and_room_again(void **state)
{
	struct seen *s = *state;

	for (unsigned i = 0; i < DEPTH; i++)
		assert_true(push_one(s->a, 200, i));
	assert_false(push_one(s->a, 200, 99));
	assert_true(push_one(s->b, 200, 0)); /* the other way is another queue */
	assert_false(s->a->ops->arm_room(&s->a->q, 1));
	assert_int_equal(port_pull(&s->b->q, &burst, 3), 3);
	port_settle(&s->b->q, &burst, 0);
	loop_dispatch(&loop, false);
	assert_int_equal(s->room, 0);
	assert_int_equal(port_pull(&s->b->q, &burst, 3), 3);
	port_settle(&s->b->q, &burst, 2);
	assert_int_equal(s->room, 0); /* not from inside */
	loop_dispatch(&loop, false);
	assert_int_equal(s->room, 1);
	assert_true(s->a->ops->arm_room(&s->a->q, 1));
	assert_int_equal(port_pull(&s->b->q, &burst, BURST_FRAMES), DEPTH - 2);
	for (unsigned i = 0; i < DEPTH - 2; i++)
		assert_int_equal(burst.f[i].head[17], i + 2); /* the counter */
	port_settle(&s->b->q, &burst, DEPTH - 2);
}

static void woken_when_armed_only(void **state)
{
	struct seen *s = *state;

	push_one(s->a, 200, 0);
	s->a->ops->flush(&s->a->q);
	loop_dispatch(&loop, false);
	assert_int_equal(s->ready, 0);
	assert_true(s->b->ops->arm(&s->b->q));
	port_pull(&s->b->q, &burst, 1);
	port_settle(&s->b->q, &burst, 1);
	assert_false(s->b->ops->arm(&s->b->q));
	push_one(s->a, 200, 1);
	push_one(s->a, 200, 2);
	s->a->ops->flush(&s->a->q);
	s->a->ops->flush(&s->a->q);
	loop_dispatch(&loop, false);
	assert_int_equal(s->ready, 1);
	assert_int_equal(s->a->q.out.notify, 1);
}

static void refuses_a_wrong_depth(void **state)
{
	struct pair *p;
	struct err err;

	(void)state;
	assert_int_equal(pair_new(&p, "a", "b", 0, &loop, NULL, &err), -EINVAL);
	assert_int_equal(pair_new(&p, "a", "b", 4097, &loop, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "4097"));
	assert_int_equal(pair_new(&p, "a", "b c", 1, &loop, NULL, &err), -EINVAL);
	assert_null(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(through, setup, teardown),
		cmocka_unit_test_setup_teardown(full_and_room_again, setup, teardown),
		cmocka_unit_test_setup_teardown(woken_when_armed_only, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_a_wrong_depth, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
