/* SPDX-License-Identifier: BSD-2-Clause */
/* evfd: signals that arrive, one each; a full counter of a blocking eventfd, at which write() would wait. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/evfd.h"

#define FULL     (UINT64_MAX - 1) /* a write of 1 does not fit any more [eventfd(2)] */
#define HANGS_IN 20               /* seconds: instead of for ever */

static int setup(void **state)
{
	static struct evfd e;

	evfd_init(&e);
	*state = &e;
	alarm(HANGS_IN);
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	evfd_fini(*state);
	return 0;
}

static uint64_t taken(int fd)
{
	uint64_t n = 0;

	assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
	return n;
}

/* More than the kernel holds ends of, at any rate. */
static void each_arrives(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	evfd_prepare(*state);
	for (unsigned i = 0; i < 3000; i++)
		evfd_signal(*state, fd);
	assert_int_equal(taken(fd), 3000);
	close(fd);
}

static void full_and_blocking(void **state)
{
	const uint64_t full = FULL;
	int fd = eventfd(0, 0);

	if (evfd_prepare(*state)) {
		printf("no asynchronous I/O here (fs.aio-max-nr?)\n");
		skip();
	}
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	evfd_signal(*state, fd);
	evfd_signal(*state, fd);
	assert_true(taken(fd) >= FULL);
	evfd_signal(*state, fd);
	assert_int_equal(taken(fd), 1);
	close(fd);
}

static void without_a_context(void **state)
{
	struct evfd none = {.idle = -1};
	const uint64_t full = FULL;
	int fd = eventfd(0, EFD_NONBLOCK);

	(void)state;
	evfd_signal(&none, fd);
	assert_int_equal(taken(fd), 1);
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	evfd_signal(&none, fd);
	assert_int_equal(taken(fd), FULL);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_arrives),
		T(full_and_blocking),
		T(without_a_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
