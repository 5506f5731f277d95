/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sigbus: files are truncated under mappings. The handler that was there before us is this file's
 * own, which jumps out of the fault, so that a foreign fault can be seen and survived.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigbus.h"

#define PAGES 4

static sigjmp_buf foreign;
static volatile sig_atomic_t n_foreign;

static void on_foreign(int sig)
{
	(void)sig;
	n_foreign++;
	siglongjmp(foreign, 1);
}

/* The test runner puts its own handler in place for each test: put this one in front of ours,
 * which is told of it at the first time, and ours in front of the runner's later. */
static void guard_on(void)
{
	static struct sigaction guard;
	struct sigaction sa = {.sa_handler = on_foreign};

	n_foreign = 0;
	if (guard.sa_sigaction) {
		sigaction(SIGBUS, &guard, NULL);
		return;
	}
	sigaction(SIGBUS, &sa, NULL);
	assert_int_equal(sigbus_install(), 0);
	assert_int_equal(sigbus_install(), 0);
	sigaction(SIGBUS, NULL, &guard);
}

struct mapping {
	int fd;
	size_t page, len;
	volatile uint8_t *p;
};

static struct mapping mapping_open(void)
{
	struct mapping m = {.page = (size_t)sysconf(_SC_PAGESIZE)};

	m.len = PAGES * m.page;
	m.fd = memfd_create("sigbus_test", 0);
	assert_true(m.fd >= 0);
	assert_int_equal(ftruncate(m.fd, (off_t)m.len), 0);
	m.p = mmap(NULL, m.len, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	assert_true(m.p != MAP_FAILED);
	for (size_t i = 0; i < m.len; i++)
		m.p[i] = 0x55;
	return m;
}

static void mapping_close(struct mapping *m)
{
	munmap((void *)(uintptr_t)m->p, m->len);
	close(m->fd);
}

/* Touch it; true: the foreign handler was called. */
static bool touch(volatile uint8_t *p, uint8_t *got)
{
	if (sigsetjmp(foreign, 1))
		return true;
	*got = *p;
	return false;
}

/* Without another handler the process dies of SIGBUS, as it would without us. */
static void default_dies(void **state)
{
	(void)state;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct mapping m = mapping_open();

		signal(SIGBUS, SIG_DFL);
		if (sigbus_install() < 0 || ftruncate(m.fd, 0) < 0)
			_exit(1);
		m.p[0] = 1;
		_exit(2);
	}

	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void watched_reads_zeros(void **state)
{
	struct mapping m = mapping_open();
	int h = sigbus_watch((void *)(uintptr_t)m.p, m.len);
	uint8_t got = 1;

	(void)state;
	guard_on();
	assert_true(h >= 0);
	assert_false(sigbus_faulted(h));
	assert_int_equal(ftruncate(m.fd, (off_t)m.page), 0);
	errno = 42;
	assert_false(touch(&m.p[2 * m.page + 7], &got));
	assert_int_equal(errno, 42);
	assert_int_equal(got, 0);
	assert_true(sigbus_faulted(h));
	assert_int_equal(m.p[0], 0x55); /* what is left of the file is still there */
	m.p[m.len - 1] = 9;             /* behind: patched together with the first */
	assert_int_equal(m.p[m.len - 1], 9);
	m.p[m.page] = 8; /* before: a fault of its own */
	assert_int_equal(m.p[m.page], 8);
	assert_int_equal(n_foreign, 0);
	sigbus_unwatch(h);
	mapping_close(&m);
}

static void foreign_is_passed_on(void **state)
{
	struct mapping ours = mapping_open(), other = mapping_open();
	int h = sigbus_watch((void *)(uintptr_t)ours.p, ours.len);
	uint8_t got;

	(void)state;
	guard_on();
	assert_int_equal(ftruncate(other.fd, 0), 0);
	assert_true(touch(other.p, &got));
	assert_int_equal(n_foreign, 1);
	assert_false(sigbus_faulted(h));

	/* one that was sent carries no address, whatever lies in its place */
	if (!sigsetjmp(foreign, 1))
		raise(SIGBUS);
	assert_int_equal(n_foreign, 2);
	assert_false(sigbus_faulted(h));

	/* a range that is not watched any more is foreign */
	sigbus_unwatch(h);
	assert_int_equal(ftruncate(ours.fd, 0), 0);
	assert_true(touch(ours.p, &got));
	assert_int_equal(n_foreign, 3);
	mapping_close(&ours);
	mapping_close(&other);
}

static void slots(void **state)
{
	static uint8_t somewhere[SIGBUS_RANGES];
	int h[SIGBUS_RANGES];

	(void)state;
	for (int i = 0; i < SIGBUS_RANGES; i++) {
		h[i] = sigbus_watch(&somewhere[i], 1);
		assert_true(h[i] >= 0);
	}
	assert_int_equal(sigbus_watch(somewhere, 1), -ENOSPC);
	sigbus_unwatch(h[5]);
	assert_int_equal(sigbus_watch(somewhere, 1), h[5]);
	assert_false(sigbus_faulted(h[5])); /* nothing is left of who had the slot before */
	for (int i = 0; i < SIGBUS_RANGES; i++)
		sigbus_unwatch(h[i]);
	sigbus_unwatch(-1);
	assert_false(sigbus_faulted(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_dies), /* first: nothing is installed here yet */
		cmocka_unit_test(watched_reads_zeros),
		cmocka_unit_test(foreign_is_passed_on),
		cmocka_unit_test(slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
