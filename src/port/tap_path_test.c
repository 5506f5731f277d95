/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_path: what a tap's path is made of, linked with the allocator and readv() wrapped: it allocates
 * nothing once it is open, and what the kernel has verified is said to be verified. The kernel says
 * so only of what came to it from a real device, so here the word is put into its mouth.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "port/tap.h"
#include "port/testns.h"
#include "port/vnet.h"
#include "wire/eth.h"

static unsigned allocations;
static uint8_t flags; /* that the kernel adds to the header of a frame without any */

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
ssize_t __real_readv(int, const struct iovec *, int);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
ssize_t __wrap_readv(int, const struct iovec *, int);

void *__wrap_malloc(size_t n)
{
	allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int n)
{
	ssize_t got = __real_readv(fd, iov, n);

	if (got > 0 && !*(uint8_t *)iov->iov_base)
		*(uint8_t *)iov->iov_base = flags;
	return got;
}

struct world {
	struct loop loop;
	struct port *port;
	struct burst b;
	unsigned ready;
};

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct world *)ctx)->ready++;
}

static void on_other(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events events = {on_ready, on_ready, on_other};

static int setup(void **state)
{
	static struct world w;
	static const char *const addr[] = {"10.9.0.1/24", NULL};
	struct tap_config c = {.ifname = "tap8", .addr = addr};
	struct err err;

	memset(&w, 0, sizeof(w));
	flags = 0;
	assert_int_equal(loop_init(&w.loop, NULL), 0);
	if (tap_open(&w.port, "t", &c, &w.loop, NULL, &err))
		fail_msg("%s", err.text);
	w.port->events = &events;
	w.port->events_ctx = &w;
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	tap_free(w->port);
	loop_fini(&w->loop);
	return 0;
}

/* "Who has 10.9.0.1?", from 10.9.0.2 at 02:00:00:00:00:02 */
static void ask(struct world *w)
{
	static const uint8_t request[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2, 8,
		6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 9, 0, 2, 0, 0, 0, 0, 0, 0, 10, 9,
		0, 1};
	struct frame_head head;
	struct frame f = {.head = head.data, .head_len = sizeof(request)};

	memcpy(head.data, request, sizeof(request));
	assert_int_equal(w->port->ops->push(&w->port->q, &f, 1), 1);
	w->port->ops->flush(&w->port->q);
}

static bool is_answer(const struct frame *f)
{
	return get_be16(f->head + 12) == 0x0806 && f->head[21] == 2;
}

/* The kernel's answer; it stays lent. `back`: all that comes goes back once, and comes again. */
static const struct frame *answer(struct world *w, bool back)
{
	const struct port_ops *ops = w->port->ops;
	struct portq *q = &w->port->q;

	ask(w);
	for (;;) {
		struct pollfd p = {.fd = w->loop.epfd, .events = POLLIN};

		port_pull(q, &w->b, BURST_FRAMES);
		if (back && w->b.n) {
			port_settle(q, &w->b, 0);
			port_pull(q, &w->b, BURST_FRAMES);
		}
		for (unsigned i = 0; i < w->b.n; i++)
			if (is_answer(&w->b.f[i]))
				return &w->b.f[i];
		port_settle(q, &w->b, w->b.n);
		if (ops->arm(q))
			continue;
		assert_int_equal(poll(&p, 1, 3000), 1);
		loop_dispatch(&w->loop, false);
	}
}

static void verified_by_the_kernel_stays_verified(void **state)
{
	static const struct {
		uint8_t says, means;
	} k[] = {{0, 0}, {OFF_DATA_VALID, OFF_DATA_VALID}, {0xfc, 0}, {0xfe, OFF_DATA_VALID}};
	struct world *w = *state;

	for (unsigned i = 0; i < 2 * sizeof(k) / sizeof(*k); i++) {
		const struct frame *f;
		uint8_t hdr[VNET_HDR_MAX];

		flags = k[i / 2].says;
		f = answer(w, i & 1);
		assert_int_equal(f->drop, DROP_NONE);
		assert_int_equal(f->off.flags, k[i / 2].means);
		/* and the guest is told */
		vnet_hdr_build(hdr, &f->off, vnet_accepts(VNET_BIT(GUEST_CSUM)), 1);
		assert_int_equal(hdr[0], k[i / 2].means);
		port_settle(&w->port->q, &w->b, w->b.n);
	}
}

static void nothing_is_allocated(void **state)
{
	struct world *w = *state;
	unsigned before = allocations;

	assert_true(before > 0);
	for (unsigned i = 0; i < 200; i++) {
		answer(w, i & 1);
		port_settle(&w->port->q, &w->b, w->b.n);
	}
	assert_int_equal(allocations, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			verified_by_the_kernel_stays_verified, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_allocated, setup, teardown),
	};

	if (!testns_enter())
		return TESTNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
