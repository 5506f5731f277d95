/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair: a fake port behind a bad network, in virtual time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/fake.h"
#include "port/impair.h"
#include "wire/bytes.h"

#define MS NSEC_PER_MSEC

struct rig {
	struct loop loop;
	nsec_t now;
	struct fake fake;
	struct impair *impair;
	unsigned ready;
	struct burst burst;
	struct fit fit;
	uint8_t buf[FRAME_MAX];
	struct fake_list got; /* what came into the network */
};

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct rig *)ctx)->ready++;
}

static void on_nothing(void *ctx, struct portq *q)
{
	(void)ctx;
	(void)q;
}

static void on_link(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events events = {on_ready, on_nothing, on_link};

static struct rig *rig_new(const char *words)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct impair_conf c;
	struct err err = {""};

	assert_int_equal(loop_init(&r->loop, NULL), 0);
	r->loop.virtual_now = &r->now;
	loop_refresh(&r->loop);
	fake_init(&r->fake, "f", &r->loop);
	r->fake.port.events = &events;
	r->fake.port.events_ctx = r;
	if (impair_parse(&c, words, &err) || impair_wrap(&r->impair, &r->fake.port, &c, &err))
		fail_msg("%s", err.text);
	return r;
}

static void rig_free(struct rig *r)
{
	r->fake.port.ops->close(&r->fake.port);
	impair_free(r->impair);
	fake_fini(&r->fake);
	for (unsigned i = 0; i < r->got.n; i++)
		free(r->got.f[i].data);
	free(r->got.f);
	loop_fini(&r->loop);
	free(r);
}

/* Frame number `n` of `len` bytes comes from the port. */
static void lend(struct rig *r, uint32_t n, uint32_t len)
{
	fake_eth(r->buf, 0x020000000002, 0x020000000001, 0, len, n);
	fake_lend(&r->fake, r->buf, len, NULL);
}

static void keep(struct rig *r, const struct frame *f)
{
	struct fake_frame *g;
	struct iovec to;

	r->got.f = realloc(r->got.f, (r->got.n + 1) * sizeof(*r->got.f));
	g = &r->got.f[r->got.n++];
	*g = (struct fake_frame){malloc(frame_len(f)), frame_len(f), f->off};
	to = (struct iovec){g->data, g->len};
	frame_copy(f, 0, g->len, &to, 1, 0);
}

/* Pull until nothing more is there, as a network does. */
static void drain(struct rig *r)
{
	struct portq *q = &r->fake.port.q;

	do {
		while (port_pull(q, &r->burst, BURST_FRAMES)) {
			for (unsigned i = 0; i < r->burst.n; i++)
				keep(r, &r->burst.f[i]);
			port_settle(q, &r->burst, r->burst.n);
		}
	} while (q->port->ops->arm(q));
}

static void pass(struct rig *r, nsec_t time)
{
	r->now += time;
	r->ready = 0;
	loop_dispatch(&r->loop, false);
	if (r->ready)
		drain(r);
}

static uint32_t number_of(const struct fake_frame *f)
{
	return get_be32(f->data + 14);
}

static void push(struct rig *r, uint32_t n, uint32_t len)
{
	struct frame_head head;
	struct iovec tail;
	struct frame f = {
		.head = head.data, .tail = &tail, .head_len = (uint16_t)(len < 128 ? len : 128)};
	uint32_t resume = 0;

	fake_eth(r->buf, 0x020000000002, 0x020000000001, 0, len, n);
	memcpy(head.data, r->buf, f.head_len);
	f.tail_len = len - f.head_len;
	tail = (struct iovec){r->buf + f.head_len, f.tail_len};
	f.ntail = f.tail_len != 0;
	assert_int_equal(port_push(&r->fake.port.q, &f, 1, &resume, &r->fit), 1);
	r->fake.port.ops->flush(&r->fake.port.q);
}

static void nothing_set_changes_nothing(void **state)
{
	struct rig *r = rig_new("seed=5");

	(void)state;
	for (uint32_t i = 0; i < 200; i++)
		lend(r, i, 60 + i * 40);
	drain(r);
	assert_int_equal(r->got.n, 200);
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(r->got.f[i].len, 60 + i * 40);
		assert_memory_equal(r->got.f[i].data, r->fake.lend.f[i].data, r->got.f[i].len);
	}
	for (uint32_t i = 0; i < 20; i++)
		push(r, i, 60 + i * 400);
	assert_int_equal(r->fake.got.n, 20);
	assert_int_equal(number_of(&r->fake.got.f[19]), 19);
	assert_int_equal(r->fake.got.f[19].len, 60 + 19 * 400);
	rig_free(r);
}

static void delay_delays(void **state)
{
	struct rig *r = rig_new("in.delay=10ms+out.delay=3ms");

	(void)state;
	lend(r, 1, 60);
	push(r, 2, 60);
	drain(r);
	pass(r, 3 * MS - 1);
	assert_int_equal(r->fake.got.n, 0);
	pass(r, 1);
	assert_int_equal(r->fake.got.n, 1);
	pass(r, 7 * MS - 1);
	assert_int_equal(r->got.n, 0);
	pass(r, 1);
	assert_int_equal(r->got.n, 1);
	rig_free(r);
}

static void jitter_keeps_the_order(void **state)
{
	struct rig *r = rig_new("in.delay=10ms+in.jitter=8ms");
	unsigned moments = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		lend(r, i, 60);
	drain(r);
	for (unsigned i = 0, before = 0; i < 200; i++, before = r->got.n) {
		pass(r, MS / 10);
		moments += r->got.n != before;
	}
	assert_int_equal(r->got.n, 100);
	assert_true(moments > 3);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(number_of(&r->got.f[i]), i);
	rig_free(r);
}

static void held_frames_are_overtaken_once(void **state)
{
	struct rig *r = rig_new("in.reorder=20%");
	unsigned later = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		lend(r, i, 60);
	drain(r);
	pass(r, 20 * MS);
	assert_int_equal(r->got.n, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t n = number_of(&r->got.f[i]);

		assert_in_range(n + 2, i, i + 4);
		later += n < i;
	}
	assert_in_range(later, 100, 300);
	assert_int_equal(later, impair_in(r->impair)->held);
	rig_free(r);
}

static void a_held_frame_goes_alone_at_last(void **state)
{
	struct rig *r = rig_new("in.reorder=100%");

	(void)state;
	lend(r, 1, 60);
	drain(r);
	pass(r, 10 * MS - 1);
	assert_int_equal(r->got.n, 0);
	pass(r, 1);
	assert_int_equal(r->got.n, 1);
	rig_free(r);
}

static void run_thousand(struct rig *r, char out[1001])
{
	memset(out, '.', 1000);
	out[1000] = 0;
	for (uint32_t i = 0; i < 1000; i++)
		lend(r, i, 60);
	drain(r);
	for (unsigned i = 0; i < r->got.n; i++)
		out[number_of(&r->got.f[i])]++;
}

static void loss_follows_from_the_seed(void **state)
{
	char seen[3][1001];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct rig *r = rig_new(i < 2 ? "in.loss=10%+seed=7" : "in.loss=10%+seed=8");

		run_thousand(r, seen[i]);
		assert_in_range(r->got.n, 850, 950);
		assert_int_equal(r->got.n + impair_in(r->impair)->lost, 1000);
		assert_int_equal(r->fake.port.q.drop_in[DROP_IMPAIRED], impair_in(r->impair)->lost);
		rig_free(r);
	}
	assert_string_equal(seen[0], seen[1]);
	assert_string_not_equal(seen[0], seen[2]);
}

static void other_rules_do_not_move_the_losses(void **state)
{
	struct rig *r = rig_new("in.loss=10%+seed=7"), *s = rig_new("in.loss=10%+in.dup=5%+seed=7");
	char a[1001], b[1001];

	(void)state;
	run_thousand(r, a);
	run_thousand(s, b);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(a[i] == '.', b[i] == '.');
	assert_in_range(impair_in(s->impair)->dup, 20, 90);
	rig_free(r);
	rig_free(s);
}

static void losses_by_place(void **state)
{
	struct rig *r = rig_new("in.loss=every:10+out.loss=at:2:3");

	(void)state;
	for (uint32_t i = 1; i <= 30; i++)
		lend(r, i, 60);
	drain(r);
	assert_int_equal(r->got.n, 27);
	for (uint32_t i = 1; i <= 5; i++)
		push(r, i, 60);
	assert_int_equal(r->fake.got.n, 3);
	assert_int_equal(number_of(&r->fake.got.f[1]), 4);
	rig_free(r);
}

static void losses_in_spells(void **state)
{
	struct rig *r = rig_new("in.loss=burst:1%:25%");
	char seen[1001];
	unsigned spells = 0, lost = 0;

	(void)state;
	run_thousand(r, seen);
	for (unsigned i = 1; i < 1000; i++) {
		lost += seen[i] == '.';
		spells += seen[i] == '.' && seen[i - 1] != '.';
	}
	assert_in_range(lost, 5, 120);
	assert_true(spells * 2 < lost);
	rig_free(r);
}

/* A TCP segment with a partial checksum, or a super-packet. */
static void lend_tcp(struct rig *r, uint32_t payload, uint16_t gso_size)
{
	struct offload off;
	uint32_t len =
		fake_tcp4(r->buf, 0x020000000002, 0x020000000001, payload, gso_size, 1, &off);

	fake_lend(&r->fake, r->buf, len, &off);
}

static void one_bit_flips_and_is_found(void **state)
{
	struct rig *r = rig_new("in.corrupt=100%");

	(void)state;
	for (uint32_t i = 0; i < 50; i++)
		lend_tcp(r, 1000, 0);
	drain(r);
	assert_int_equal(r->got.n, 50);
	for (unsigned i = 0; i < 50; i++) {
		unsigned bits = 0;

		assert_int_equal(r->got.f[i].off.flags, 0);
		for (uint32_t k = 0; k < r->got.f[i].len; k++)
			if (k < 50 || k > 51) /* the checksum itself was finished */
				bits += (unsigned)__builtin_popcount(
					r->got.f[i].data[k] ^ r->fake.lend.f[i].data[k]);
		assert_true(bits <= 1);
		assert_false(fake_tcp4_good(&r->got.f[i]));
	}
	rig_free(r);
}

static void a_wire_cuts_super_packets(void **state)
{
	struct rig *r = rig_new("in.loss=at:3+unit=wire"), *s = rig_new("in.loss=at:2+unit=super");

	(void)state;
	lend_tcp(r, 10000, 1000);
	drain(r);
	assert_int_equal(r->got.n, 9);
	assert_int_equal(r->got.f[0].len, 14 + 40 + 1000);
	lend_tcp(s, 10000, 1000);
	lend_tcp(s, 10000, 1000);
	drain(s);
	assert_int_equal(s->got.n, 1);
	assert_int_equal(s->got.f[0].len, 14 + 40 + 10000);
	assert_int_equal(s->got.f[0].off.gso_size, 1000);
	rig_free(r);
	rig_free(s);
}

static void a_bottleneck_has_a_rate_and_a_queue(void **state)
{
	struct rig *r = rig_new("in.rate=8M+in.limit=10K"); /* a byte per microsecond */

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		lend(r, i, 1000);
	drain(r);
	assert_int_equal(impair_in(r->impair)->limit, 10);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(r->got.n, i);
		pass(r, MS);
	}
	assert_int_equal(r->got.n, 10);
	rig_free(r);
}

static void no_more_wait_than_the_limit(void **state)
{
	struct rig *r = rig_new("delay=1s+limit=5");

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		lend(r, i, 60);
	for (uint32_t i = 0; i < 8; i++)
		push(r, i, 60);
	drain(r);
	pass(r, 1000 * MS);
	assert_int_equal(r->got.n, 5);
	assert_int_equal(r->fake.got.n, 5);
	rig_free(r);
}

static void big_ones_vanish_in_the_hole(void **state)
{
	struct rig *r = rig_new("mtu_hole=1400+unit=super");

	(void)state;
	lend_tcp(r, 1360, 0);
	lend_tcp(r, 1361, 0);
	lend_tcp(r, 10000, 1360); /* judged by its segments */
	lend_tcp(r, 10000, 1448);
	drain(r);
	assert_int_equal(r->got.n, 2);
	assert_int_equal(impair_in(r->impair)->hole, 2);
	rig_free(r);
}

static void a_full_port_is_tried_again(void **state)
{
	struct rig *r = rig_new("out.delay=1ms");

	(void)state;
	r->fake.room = 0;
	push(r, 1, 60);
	push(r, 2, 60);
	pass(r, MS);
	assert_int_equal(r->fake.got.n, 0);
	r->fake.room = 1;
	pass(r, MS);
	assert_int_equal(r->fake.got.n, 1);
	r->fake.room = FAKE_ANY;
	pass(r, MS);
	assert_int_equal(r->fake.got.n, 2);
	rig_free(r);
}

static void who_has_gone_gets_nothing(void **state)
{
	struct rig *r = rig_new("out.delay=1ms");

	(void)state;
	push(r, 1, 60);
	fake_link(&r->fake, false);
	pass(r, MS);
	assert_int_equal(r->fake.got.n, 0);
	assert_int_equal(r->fake.port.q.drop_out[DROP_LINK_DOWN], 1);
	rig_free(r);
}

static void a_log_replays(void **state)
{
	char path[] = "/tmp/impair_test.XXXXXX", words[200], a[1001], b[1001];
	int fd = mkstemp(path);
	struct rig *r;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(words, sizeof(words), "in.loss=5%%+in.dup=5%%+in.reorder=5%%+log=%s", path);
	r = rig_new(words);
	run_thousand(r, a);
	rig_free(r);
	snprintf(words, sizeof(words), "replay=%s+seed=99", path);
	r = rig_new(words);
	run_thousand(r, b);
	rig_free(r);
	unlink(path);
	assert_string_equal(a, b);
}

static void wrong_words_are_told(void **state)
{
	static const char *const wrong[] = {"", "delay", "delay=", "delay=5", "delay=-1ms",
		"loss=5", "loss=101%", "loss=every:0", "loss=burst:1%", "loss=burst:1%:0%",
		"loss=at:", "rate=1", "limit=0", "limit=65537", "mtu_hole=20", "unit=both",
		"seed=x", "log=", "in.seed=1", "up.delay=1ms", "latency=1ms"};
	struct impair_conf c;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = {""};

		if (impair_parse(&c, wrong[i], &err) != -EINVAL || !err.text[0])
			fail_msg("%s passes", wrong[i]);
	}
	assert_int_equal(impair_parse(&c, "delay=1.5ms+in.loss=0.25%+out.rate=10M", NULL), 0);
	assert_int_equal(c.in.delay, 1500000);
	assert_int_equal(c.in.loss, 2500);
	assert_int_equal(c.out.loss, 0);
	assert_int_equal(c.out.rate, 10000000);
	assert_int_equal(c.in.rate, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_set_changes_nothing),
		cmocka_unit_test(delay_delays),
		cmocka_unit_test(jitter_keeps_the_order),
		cmocka_unit_test(held_frames_are_overtaken_once),
		cmocka_unit_test(a_held_frame_goes_alone_at_last),
		cmocka_unit_test(loss_follows_from_the_seed),
		cmocka_unit_test(other_rules_do_not_move_the_losses),
		cmocka_unit_test(losses_by_place),
		cmocka_unit_test(losses_in_spells),
		cmocka_unit_test(one_bit_flips_and_is_found),
		cmocka_unit_test(a_wire_cuts_super_packets),
		cmocka_unit_test(a_bottleneck_has_a_rate_and_a_queue),
		cmocka_unit_test(no_more_wait_than_the_limit),
		cmocka_unit_test(big_ones_vanish_in_the_hole),
		cmocka_unit_test(a_full_port_is_tried_again),
		cmocka_unit_test(who_has_gone_gets_nothing),
		cmocka_unit_test(a_log_replays),
		cmocka_unit_test(wrong_words_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
