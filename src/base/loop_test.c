/* SPDX-License-Identifier: BSD-2-Clause */
/* loop: delivery, taking out of what is pending, timer order (random, SEED=), deferred calls. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/rand.h"

struct watched {
	struct loop_fd f;
	struct loop *loop;
	struct watched *victim;
	unsigned called;
};

static void on_ready(struct loop_fd *f, uint32_t epoll_events)
{
	struct watched *w = (struct watched *)f;

	assert_true(epoll_events & EPOLLIN);
	w->called++;
	if (w->victim)
		loop_del(w->loop, &w->victim->f);
}

static void watch(struct loop *l, struct watched *w)
{
	int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);

	*w = (struct watched){.f.ready = on_ready, .loop = l};
	assert_return_code(fd, errno);
	assert_int_equal(loop_add(l, &w->f, fd, EPOLLIN), 0);
}

static void test_fd(void **state)
{
	struct watched w;
	struct loop l;
	int fd;

	(void)state;
	assert_int_equal(loop_init(&l, NULL), 0);
	watch(&l, &w);
	fd = w.f.fd;
	assert_int_equal(loop_dispatch(&l, true), 0);
	assert_int_equal(w.called, 1);
	assert_int_equal(loop_mod(&l, &w.f, 0), 0);
	assert_int_equal(loop_dispatch(&l, false), 0);
	assert_int_equal(w.called, 1);
	loop_del(&l, &w.f);
	loop_del(&l, &w.f);
	assert_int_equal(w.f.fd, -1);
	close(fd);
	fd = open("/dev/null", 0);
	assert_int_equal(loop_add(&l, &w.f, fd, EPOLLIN), -EPERM);
	close(fd);
	loop_fini(&l);
}

/* Two are ready in one round; whichever is called first takes the other out. */
static void test_del_pending(void **state)
{
	struct watched a, b;
	struct loop l;
	int fda, fdb;

	(void)state;
	loop_init(&l, NULL);
	watch(&l, &a);
	watch(&l, &b);
	a.victim = &b;
	b.victim = &a;
	fda = a.f.fd;
	fdb = b.f.fd;
	loop_dispatch(&l, true);
	assert_int_equal(a.called + b.called, 1);
	loop_del(&l, &a.f);
	loop_del(&l, &b.f);
	close(fda);
	close(fdb);
	loop_fini(&l);
}

struct timed {
	struct loop_timer t;
	struct loop *loop;
	nsec_t want;
	nsec_t *last;
	unsigned called;
	struct timed *victim;
	nsec_t again;
};

static void on_expired(struct loop_timer *t)
{
	struct timed *x = (struct timed *)t;

	assert_false(t->set);
	assert_true(x->want <= loop_now(x->loop));
	if (x->last) {
		assert_true(x->want >= *x->last);
		*x->last = x->want;
	}
	x->called++;
	if (x->victim)
		loop_timer_cancel(x->loop, &x->victim->t);
	if (x->again)
		loop_timer_set(x->loop, t, x->again);
}

#define TIMERS 200

static void test_timer_order(void **state)
{
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)clock_now();
	static struct timed x[TIMERS];
	bool set[TIMERS] = {false};
	nsec_t now = 1, last = 0;
	struct rand r;
	struct loop l;

	(void)state;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	loop_init(&l, NULL);
	l.virtual_now = &now;
	for (unsigned i = 0; i < TIMERS; i++) {
		assert_int_equal(loop_timer_reserve(&l, &x[i].t, on_expired), 0);
		x[i].loop = &l;
		x[i].last = &last;
	}
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = rand_below(&r, TIMERS), before = x[i].called;

		if (rand_below(&r, 4)) {
			x[i].want = now + 1 + rand_below(&r, 1000);
			loop_timer_set(&l, &x[i].t, x[i].want);
			set[i] = true;
		} else {
			loop_timer_cancel(&l, &x[i].t);
			set[i] = false;
		}
		now += rand_below(&r, 20);
		last = 0;
		loop_dispatch(&l, true);
		assert_int_equal(x[i].called - before, set[i] && x[i].want <= now);
		for (unsigned k = 0; k < TIMERS; k++)
			assert_false(x[k].t.set && x[k].want <= now);
	}
	for (unsigned i = 0; i < TIMERS; i++)
		loop_timer_release(&l, &x[i].t);
	assert_int_equal(l.nheap, 0);
	assert_int_equal(l.heap_cap, 0);
	loop_fini(&l);
}

static void test_timer_inside(void **state)
{
	nsec_t now = 100;
	struct timed a = {.want = 10}, b = {.want = 20}, c = {.want = 5, .again = 5};
	struct loop l;

	(void)state;
	loop_init(&l, NULL);
	l.virtual_now = &now;
	a.loop = b.loop = c.loop = &l;
	loop_timer_reserve(&l, &a.t, on_expired);
	loop_timer_reserve(&l, &b.t, on_expired);
	a.victim = &b;
	loop_timer_set(&l, &a.t, 10);
	loop_timer_set(&l, &b.t, 20);
	loop_dispatch(&l, true);
	assert_int_equal(a.called, 1);
	assert_int_equal(b.called, 0);
	/* One that sets itself to the past: the round ends all the same. */
	loop_timer_reserve(&l, &c.t, on_expired);
	loop_timer_set(&l, &c.t, 5);
	loop_dispatch(&l, true);
	assert_int_equal(c.called, 1);
	loop_timer_release(&l, &c.t);
	loop_timer_release(&l, &c.t);
	assert_int_equal(loop_deadline(&l), NSEC_NEVER);
	loop_timer_release(&l, &a.t);
	loop_timer_release(&l, &b.t);
	loop_fini(&l);
}

/* On the real clock, both ways to wait: never early. */
static void test_timer_waits(void **state)
{
	struct loop l;

	(void)state;
	loop_init(&l, NULL);
	for (unsigned coarse = 0; coarse < 2; coarse++) {
		struct timed a = {.loop = &l};

		l.coarse = coarse;
		loop_timer_reserve(&l, &a.t, on_expired);
		a.want = loop_refresh(&l) + 300 * NSEC_PER_USEC;
		loop_timer_set(&l, &a.t, a.want);
		loop_dispatch(&l, true); /* one wait, long enough */
		assert_int_equal(a.called, 1);
		assert_true(loop_now(&l) >= a.want);
		loop_timer_release(&l, &a.t);
	}
	loop_fini(&l);
}

struct deferred {
	struct loop_task task;
	struct loop *loop;
	struct deferred *victim;
	bool again;
	unsigned called;
};

static void on_run(struct loop_task *task)
{
	struct deferred *d = (struct deferred *)task;

	d->called++;
	if (d->again)
		loop_defer(d->loop, task);
	if (d->victim)
		loop_undefer(d->loop, &d->victim->task);
}

static void on_task(struct loop_task *t)
{
	(void)t;
}

/* Deferred work keeps the loop from its descriptors for a while, longer if none ever speaks. */
static void test_looks(void **state)
{
	struct loop_task t = {.run = on_task};
	const nsec_t zero = 0;
	struct watched w;
	struct loop l;

	(void)state;
	assert_int_equal(loop_init(&l, NULL), 0);
	watch(&l, &w);
	loop_defer(&l, &t);
	l.looked = clock_now() + NSEC_PER_SEC; /* a moment ago, for a second to come */
	assert_int_equal(loop_dispatch(&l, true), 0);
	assert_int_equal(w.called, 0);
	loop_defer(&l, &t);
	l.looked = clock_now() - l.look_after;
	assert_int_equal(loop_dispatch(&l, true), 0);
	assert_int_equal(w.called, 1);

	assert_int_equal(l.look_after, LOOP_LOOK_NS);
	assert_int_equal(loop_mod(&l, &w.f, 0), 0);
	l.virtual_now = &zero; /* looks each time */
	for (nsec_t after = LOOP_LOOK_NS; after < LOOP_LOOK_MAX_NS;) {
		assert_int_equal(loop_dispatch(&l, true), 0);
		after *= 2;
		assert_int_equal(l.look_after, after);
	}
	assert_int_equal(loop_dispatch(&l, true), 0);
	assert_int_equal(l.look_after, LOOP_LOOK_MAX_NS);
	assert_int_equal(loop_mod(&l, &w.f, EPOLLIN), 0);
	assert_int_equal(loop_dispatch(&l, true), 0);
	assert_int_equal(w.called, 2);
	assert_int_equal(l.look_after, LOOP_LOOK_NS);
	assert_int_equal(loop_mod(&l, &w.f, 0), 0);
	assert_int_equal(loop_dispatch(&l, true), 0);
	loop_listen(&l);
	assert_int_equal(l.look_after, LOOP_LOOK_NS);
	close(w.f.fd);
	loop_del(&l, &w.f);
	loop_fini(&l);
}

static void test_defer(void **state)
{
	struct loop l;
	struct deferred a = {.task.run = on_run, .loop = &l, .again = true};
	struct deferred b = {.task.run = on_run, .loop = &l};

	(void)state;
	loop_init(&l, NULL);
	a.victim = &b;
	loop_defer(&l, &a.task);
	loop_defer(&l, &a.task);
	loop_defer(&l, &b.task);
	loop_dispatch(&l, true);
	assert_int_equal(a.called, 1);
	assert_int_equal(b.called, 0);
	loop_dispatch(&l, true); /* pending: must not sleep */
	assert_int_equal(a.called, 2);
	loop_undefer(&l, &a.task);
	loop_undefer(&l, &a.task);
	loop_dispatch(&l, false);
	assert_int_equal(a.called, 2);
	assert_int_equal(l.wakeups, 0);
	assert_int_equal(l.rounds, 3);
	loop_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fd),
		cmocka_unit_test(test_del_pending),
		cmocka_unit_test(test_timer_order),
		cmocka_unit_test(test_timer_inside),
		cmocka_unit_test(test_timer_waits),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_defer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
