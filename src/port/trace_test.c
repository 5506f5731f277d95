/* SPDX-License-Identifier: BSD-2-Clause */
/* trace: what it says of frames between two guests, and that nothing else is different while it is on. */
#include "port/trace.h"

#include <errno.h>

#include "port/fake.h"
#include "port/impair.h"
#include "port/vdev_rig.h"

#define TICK 10 /* each look at the clock takes so long */

struct world {
	TAILQ_HEAD(, port) ports;
	struct trace_config conf;
	struct trace *trace;
	unsigned looked, done;
	struct fit fit;
};

static nsec_t tick(void)
{
	static nsec_t now;

	return now += TICK;
}

static void look_up(void *ctx, const struct frame *f, struct trace_frame *r)
{
	struct world *w = ctx;

	assert_int_equal(f->drop, DROP_NONE);
	w->looked++;
	r->where = TRACE_UNKNOWN;
}

static void on_done(void *ctx)
{
	((struct world *)ctx)->done++;
}

static struct world *world_new(struct port *from, struct port *to, unsigned count)
{
	struct world *w = calloc(1, sizeof(*w));

	TAILQ_INIT(&w->ports);
	TAILQ_INSERT_TAIL(&w->ports, from, entry);
	TAILQ_INSERT_TAIL(&w->ports, to, entry);
	w->conf = (struct trace_config){.port = from,
		.count = count,
		.first = from,
		.clock = tick,
		.look_up = look_up,
		.look_up_ctx = w,
		.done = on_done,
		.ctx = w};
	assert_int_equal(trace_new(&w->trace, &w->conf, NULL), 0);
	return w;
}

static void world_free(struct world *w)
{
	trace_free(w->trace);
	free(w);
}

/* A turn as the network takes it; returns how many frames were lent. */
static unsigned turn(struct world *w, struct port *from, struct port *to)
{
	unsigned n = port_pull(&from->q, &burst, BURST_FRAMES), took;
	uint32_t resume = 0;

	if (!n)
		return 0;
	took = port_push(&to->q, burst.f, n, &resume, &w->fit);
	to->ops->flush(&to->q);
	port_settle(&from->q, &burst, took);
	return n;
}

static const struct trace_frame *nth(const struct world *w, unsigned i)
{
	assert_true(i < trace_count(w->trace));
	return trace_frame(w->trace, i);
}

static void test_chain_and_buffers(void **state)
{
	struct guest *a = guest_new(MODERN, 64, 0), *b = guest_new(MODERN, 64, 0);
	const struct port_ops *was = a->dev.port.ops, *was_b = b->dev.port.ops;
	struct world *w = world_new(&a->dev.port, &b->dev.port, 2);
	const uint32_t cut[] = {12, 200};
	static struct packet p;

	(void)state;
	guest_post_each(b, 512, 8);
	assert_true(guest_send_cut(a, a->sent++, 1000, cut, 2, NULL) >= 0); /* a table of 3 */
	assert_true(guest_send_cut(a, a->sent++, 100, NULL, 0, NULL) >= 0); /* direct */
	assert_true(guest_send_cut(a, a->sent++, 60, NULL, 0, NULL) >= 0);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_int_equal(w->done, 0);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1); /* no more than was asked for */
	assert_int_equal(trace_count(w->trace), 2);
	loop_dispatch(&loop, false);
	assert_int_equal(w->done, 1);
	assert_int_equal(w->looked, 2);

	assert_int_equal(nth(w, 0)->len, 1000);
	assert_true(nth(w, 0)->rings);
	assert_int_equal(nth(w, 0)->indirect, 1);
	assert_int_equal(nth(w, 0)->chain_pieces, 3);
	assert_int_equal(nth(w, 0)->chain_bytes, 1012);
	assert_int_equal(nth(w, 0)->hdr_len, 12);
	assert_int_equal(nth(w, 0)->head_len, FRAME_HEAD);
	assert_int_equal(nth(w, 0)->n_to, 1);
	assert_string_equal(nth(w, 0)->to[0].name, "guest");
	assert_int_equal(nth(w, 0)->to[0].frames, 1);
	assert_int_equal(nth(w, 0)->to[0].bytes, 1000);
	assert_int_equal(nth(w, 0)->to[0].bufs, 2);
	assert_true(nth(w, 0)->to[0].merged);
	assert_int_equal(nth(w, 0)->to[0].notify, 1); /* the first publication always does */
	assert_int_equal(nth(w, 0)->to[0].wanted, 1);
	assert_int_equal(nth(w, 0)->notify, 1);
	for (unsigned i = 0; i < TRACE_STEPS; i++)
		assert_int_equal(nth(w, 0)->ns[i], i == TRACE_DECIDE ? 3 * TICK : TICK);

	assert_int_equal(nth(w, 1)->len, 100);
	assert_int_equal(nth(w, 1)->indirect, 0);
	assert_int_equal(nth(w, 1)->desc, 1);
	assert_int_equal(nth(w, 1)->chain_pieces, 1);
	assert_int_equal(nth(w, 1)->to[0].bufs, 1);
	assert_int_equal(nth(w, 1)->to[0].wanted + nth(w, 1)->to[0].unwanted, 1);

	for (unsigned i = 0; i < 3; i++) {
		assert_true(guest_receive(b, &p));
		packet_check(&p, i);
	}
	world_free(w);
	assert_ptr_equal(a->dev.port.ops, was);
	assert_ptr_equal(b->dev.port.ops, was_b);
	guest_free(a);
	guest_free(b);
}

/* A frame that was under way when the trace began: what is missing is said. */
static void test_under_way(void **state)
{
	struct guest *a = guest_new(MODERN, 64, 0), *b = guest_new(MODERN, 64, 0);
	struct world *w = world_new(&a->dev.port, &b->dev.port, 2);

	(void)state;
	guest_post_each(b, 512, 2);
	guest_send(a, 300);
	guest_send(a, 300);
	a->dev.port.q.fab.resume = 3;
	turn(w, &a->dev.port, &b->dev.port);
	turn(w, &a->dev.port, &b->dev.port);
	assert_int_equal(nth(w, 0)->before, 3);
	assert_int_equal(nth(w, 1)->before, 0);
	world_free(w);
	guest_free(a);
	guest_free(b);
}

/* The receiver can nothing: a super-packet is cut, a checksum finished, and it is said for that frame alone. */
static void test_fitting(void **state)
{
	static uint8_t data[FRAME_MAX];
	struct guest *b = guest_new(MODERN, 64, 0);
	struct offload off;
	struct fake a;
	struct world *w;
	uint32_t len;

	(void)state;
	fake_init(&a, "a", &loop);
	w = world_new(&a.port, &b->dev.port, 2);
	guest_post_each(b, 2048, 32);
	len = fake_tcp4(data, 2, 4, 4000, 1000, 1, &off);
	fake_lend(&a, data, len, &off);
	len = fake_tcp4(data, 2, 4, 500, 0, 1, &off);
	fake_lend(&a, data, len, &off);
	assert_int_equal(turn(w, &a.port, &b->dev.port), 1);
	assert_int_equal(turn(w, &a.port, &b->dev.port), 1);
	assert_false(nth(w, 0)->rings);
	assert_int_equal(nth(w, 0)->off.gso, OFF_GSO_TCPV4);
	assert_int_equal(nth(w, 0)->off.gso_size, 1000);
	assert_int_equal(nth(w, 0)->to[0].fit_segments, 4);
	assert_int_equal(nth(w, 0)->to[0].frames, 4);
	assert_int_equal(nth(w, 0)->to[0].bufs, 4);
	assert_int_equal(nth(w, 1)->off.flags, OFF_NEEDS_CSUM);
	assert_int_equal(nth(w, 1)->to[0].fit_segments, 0);
	assert_int_equal(nth(w, 1)->to[0].fit_csum, 1);
	assert_int_equal(nth(w, 1)->to[0].frames, 1);
	world_free(w);
	fake_fini(&a);
	guest_free(b);
}

/* No room: it goes back, and is one frame still when it comes again. */
static void test_back(void **state)
{
	struct guest *a = guest_new(MODERN, 64, 0), *b = guest_new(MODERN, 64, 0);
	struct world *w = world_new(&a->dev.port, &b->dev.port, 1);

	(void)state;
	guest_send(a, 300);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_int_equal(trace_count(w->trace), 0);
	guest_post_each(b, 512, 1);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_int_equal(nth(w, 0)->back, 2);
	assert_int_equal(nth(w, 0)->desc, 2); /* a table of one, counted once */
	assert_int_equal(nth(w, 0)->to[0].frames, 1);
	assert_int_equal(nth(w, 0)->ns[TRACE_PULL], 3 * TICK);
	world_free(w);
	guest_free(a);
	guest_free(b);
}

static void test_drops(void **state)
{
	struct guest *a = guest_new(MODERN, 64, 0);
	struct guest *b = guest_new(MODERN & ~B(MRG_RXBUF), 64, 0);
	struct world *w = world_new(&a->dev.port, &b->dev.port, 3);

	(void)state;
	guest_post_each(b, 100, 1);
	guest_send(a, 300);
	guest_send(a, 5);
	guest_send(a, 400);
	turn(w, &a->dev.port, &b->dev.port);
	turn(w, &a->dev.port, &b->dev.port);
	turn(w, &a->dev.port, &b->dev.port);
	assert_int_equal(nth(w, 0)->drop, DROP_NONE);
	assert_int_equal(nth(w, 0)->to[0].drops, 1);
	assert_int_equal(nth(w, 0)->to[0].drop, DROP_BUFFER_SMALL);
	assert_int_equal(nth(w, 0)->to[0].frames, 0);
	assert_int_equal(nth(w, 1)->drop, DROP_SHORT);
	assert_int_equal(nth(w, 1)->n_to, 0);
	assert_int_equal(nth(w, 2)->to[0].drops, 1);
	assert_int_equal(w->looked, 2);
	world_free(w);
	guest_free(a);
	guest_free(b);
}

/* A wrapping finds itself through the port's ops: they must be its own while it is at work. */
static void test_around_impair(void **state)
{
	struct guest *a = guest_new(MODERN, 64, 0), *b = guest_new(MODERN, 64, 0);
	struct impair *before_a, *before_b;
	struct impair_conf c;
	struct world *w;

	(void)state;
	assert_int_equal(impair_parse(&c, "loss=at:2", NULL), 0);
	assert_int_equal(impair_wrap(&before_b, &b->dev.port, &c, NULL), 0);
	assert_int_equal(impair_parse(&c, "delay=0ms", NULL), 0);
	assert_int_equal(impair_wrap(&before_a, &a->dev.port, &c, NULL), 0);
	w = world_new(&a->dev.port, &b->dev.port, 2);
	guest_post_each(b, 512, 4);
	guest_send(a, 300);
	guest_send(a, 300);
	loop_refresh(&loop);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_int_equal(turn(w, &a->dev.port, &b->dev.port), 1);
	assert_false(a->dev.port.ops->arm(&a->dev.port.q));
	assert_true(b->dev.port.ops->arm_room(&b->dev.port.q, 1));
	assert_false(nth(w, 0)->rings); /* what it lends comes from its own memory */
	assert_int_equal(nth(w, 0)->to[0].bufs, 1);
	assert_int_equal(nth(w, 1)->to[0].drops, 1);
	assert_int_equal(nth(w, 1)->to[0].drop, DROP_IMPAIRED);
	assert_int_equal(nth(w, 1)->to[0].frames, 0);
	world_free(w);
	impair_free(before_a);
	impair_free(before_b);
	guest_free(a);
	guest_free(b);
}

static void test_one_at_a_time(void **state)
{
	struct trace *second;
	struct err err = {0};
	struct fake a, b;
	struct world *w;

	(void)state;
	fake_init(&a, "a", &loop);
	fake_init(&b, "b", &loop);
	w = world_new(&a.port, &b.port, 1);
	w->conf.port = &b.port;
	assert_int_equal(trace_new(&second, &w->conf, &err), -EBUSY);
	assert_non_null(strstr(err.text, "port 'a' is traced already"));
	assert_null(second);
	world_free(w);
	w = world_new(&b.port, &a.port, 1);
	world_free(w);
	fake_fini(&a);
	fake_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chain_and_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fitting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_under_way, setup, teardown),
		cmocka_unit_test_setup_teardown(test_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_around_impair, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_at_a_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
