/* SPDX-License-Identifier: BSD-2-Clause */
/* rundir: where it lies, what is refused, that a claim excludes and ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/rundir.h"

static char top[64];

static int setup(void **state)
{
	(void)state;
	strcpy(top, "/tmp/rundir-test-XXXXXX");
	return mkdtemp(top) ? setenv("XDG_RUNTIME_DIR", top, 1) : -1;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/weft/lab", top);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/weft", top);
	rmdir(path);
	unlink(path);
	return rmdir(top);
}

static void test_path(void **state)
{
	char path[RUNDIR_PATH], want[128];
	struct stat st;

	(void)state;
	snprintf(want, sizeof(want), "%s/weft/lab", top);
	assert_int_equal(rundir_path(path, "lab", false, NULL), 0);
	assert_string_equal(path, want);
	assert_int_not_equal(stat(path, &st), 0);
	assert_int_equal(rundir_path(path, "lab", true, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(rundir_path(path, "lab", false, NULL), 0);
	assert_true(!strncmp(path, "/run/weft/lab", 13) || !strncmp(path, "/tmp/weft-", 10));
}

static void test_refused(void **state)
{
	char path[RUNDIR_PATH], base[128];
	struct err err;

	(void)state;
	snprintf(base, sizeof(base), "%s/weft", top);
	assert_int_equal(symlink("/tmp", base), 0);
	assert_int_equal(rundir_path(path, "lab", true, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, base));
	unlink(base);
	assert_int_equal(mkdir(base, 0700), 0);
	assert_int_equal(chmod(base, 0777), 0);
	assert_int_equal(rundir_path(path, "lab", true, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 700"));
	if (geteuid() != 0) {
		print_message("the owner's check needs root: skipped\n");
		return;
	}
	assert_int_equal(chmod(base, 0700), 0);
	assert_int_equal(chown(base, 12345, (gid_t)-1), 0);
	assert_int_equal(rundir_path(path, "lab", true, &err), -EPERM);
	assert_non_null(strstr(err.text, "12345"));
}

static void test_claim(void **state)
{
	char path[RUNDIR_PATH], other[RUNDIR_PATH];
	struct err err;
	struct stat st;
	int a, b;

	(void)state;
	assert_int_equal(rundir_claim(path, "lab", &a, &err), 0);
	assert_int_equal(rundir_claim(path, "lab", &b, &err), -EBUSY);
	assert_non_null(strstr(err.text, "weft stop -n lab"));
	close(a); /* the process died */
	assert_int_equal(rundir_claim(path, "lab", &b, &err), 0);
	assert_int_equal(rundir_claim(other, "other", &a, &err), 0);
	rundir_release(path, b);
	assert_int_not_equal(stat(path, &st), 0);
	assert_int_equal(stat(other, &st), 0);
	rundir_release(other, a);
	assert_int_equal(rmdir(top), 0); /* nothing is left in it */
	assert_int_equal(mkdir(top, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_claim, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
