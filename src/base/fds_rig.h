/* SPDX-License-Identifier: BSD-2-Clause */
/* fds_rig: for tests, how many descriptors this process has open: whoever leaks one is seen. */
#ifndef BASE_FDS_RIG_H
#define BASE_FDS_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <poll.h>

static inline unsigned fds_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* What is of no known kind is closed by a thread (base/discard.h): soon, not at once. */
static inline void fds_become(unsigned want)
{
	for (unsigned tries = 0; fds_open() != want && tries < 10000; tries++)
		poll(NULL, 0, 1);
	assert_int_equal(fds_open(), want);
}

#endif
