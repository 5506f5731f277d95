/* SPDX-License-Identifier: BSD-2-Clause */
/* gmem: regions and their refusals, translation at every edge, files that lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sigbus.h"
#include "ring/gmem.h"

#define K 1024

static uint8_t mem[64 * K];

static uint8_t *gpa_of(const struct gmem *m, uint64_t gpa, uint64_t len)
{
	unsigned hint = 0;

	return gmem_gpa(m, gpa, len, &hint);
}

static void refusals(void **state)
{
	struct gmem m;
	struct err err = {""};

	(void)state;
	gmem_init(&m);
	assert_int_equal(gmem_add(&m, 0, 0, 0, mem, &err), -EINVAL);
	assert_non_null(strstr(err.text, "0"));
	assert_int_equal(gmem_add(&m, UINT64_MAX - 10, 0, 12, mem, &err), -EINVAL);
	assert_int_equal(gmem_add(&m, 0, UINT64_MAX - 10, 12, mem, &err), -EINVAL);
	assert_int_equal(gmem_add(&m, 4 * K, 104 * K, 4 * K, mem, &err), 0);

	/* in guest addresses: from the left, inside, around, from the right, the same */
	const struct {
		uint64_t at, size;
	} over[] = {{3 * K, K + 1}, {5 * K, K}, {0, 64 * K}, {8 * K - 1, 9}, {4 * K, 4 * K}};

	for (unsigned i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
		assert_int_equal(
			gmem_add(&m, over[i].at, 1 << 30, over[i].size, mem, &err), -EEXIST);
		assert_non_null(strstr(err.text, "0x1000")); /* names the one in the way */
		assert_int_equal(
			gmem_add(&m, 1 << 30, over[i].at + 100 * K, over[i].size, mem, &err),
			-EEXIST);
	}
	/* neighbours are welcome; so is the very end of the address space */
	assert_int_equal(gmem_add(&m, 0, 100 * K, 4 * K, mem, &err), 0);
	assert_int_equal(gmem_add(&m, 8 * K, 108 * K, 4 * K, mem, &err), 0);
	assert_int_equal(gmem_add(&m, UINT64_MAX - 15, UINT64_MAX - 15, 16, mem, &err), 0);
	assert_ptr_equal(gpa_of(&m, UINT64_MAX, 1), mem + 15);
	assert_null(gpa_of(&m, UINT64_MAX, 2));

	while (m.n < GMEM_REGIONS)
		assert_int_equal(
			gmem_add(&m, (1ull << 40) + m.n, (1ull << 40) + m.n, 1, mem, &err), 0);
	assert_int_equal(gmem_add(&m, 1ull << 41, 1ull << 41, 1, mem, &err), -ENOSPC);
	gmem_fini(&m);
	assert_int_equal(m.n, 0);
}

static void translate(void **state)
{
	struct gmem m;
	unsigned hint = 0;

	(void)state;
	gmem_init(&m);
	assert_null(gmem_gpa(&m, 0, 0, &hint));
	assert_int_equal(gmem_add(&m, 4 * K, 104 * K, 4 * K, mem, NULL), 0);
	assert_int_equal(gmem_add(&m, 16 * K, 116 * K, 4 * K, mem + 32 * K, NULL), 0);
	assert_ptr_equal(gmem_gpa(&m, 4 * K, 4 * K, &hint), mem);
	assert_ptr_equal(gmem_gpa(&m, 8 * K - 1, 1, &hint), mem + 4 * K - 1);
	assert_int_equal(hint, 0);
	assert_ptr_equal(gmem_gpa(&m, 17 * K, 3 * K, &hint), mem + 33 * K);
	assert_int_equal(hint, 1); /* the next ones begin there */
	assert_ptr_equal(gmem_gpa(&m, 4 * K, 1, &hint), mem);
	assert_int_equal(hint, 0);

	assert_null(gmem_gpa(&m, 4 * K - 1, 1, &hint));
	assert_null(gmem_gpa(&m, 4 * K - 1, 2, &hint));
	assert_null(gmem_gpa(&m, 8 * K, 1, &hint));
	assert_null(gmem_gpa(&m, 8 * K - 1, 2, &hint));
	assert_null(gmem_gpa(&m, 4 * K, UINT64_MAX, &hint));
	assert_null(gmem_gpa(&m, 4 * K + 1, UINT64_MAX, &hint));
	assert_null(gmem_gpa(&m, UINT64_MAX, 8 * K, &hint));

	/* user addresses: the same, with alignment of what comes out */
	assert_ptr_equal(gmem_uva(&m, 104 * K, 4 * K, 4), mem);
	assert_ptr_equal(gmem_uva(&m, 104 * K + 2, 16, 2), mem + 2);
	assert_null(gmem_uva(&m, 104 * K + 2, 16, 4));
	assert_null(gmem_uva(&m, 104 * K, 4 * K + 1, 4));
	assert_null(gmem_uva(&m, 104 * K + 1, UINT64_MAX, 1));
	assert_null(gmem_uva(&m, 4 * K, 1, 1));
	assert_ptr_equal(gmem_uva(&m, 119 * K, K, 16), mem + 35 * K);
	gmem_fini(&m);
}

static void pieces(void **state)
{
	struct gmem m;
	struct iovec iov[4];

	(void)state;
	gmem_init(&m);
	/* three neighbours in the guest, not in order, not neighbours here; and both ends of space
	 */
	assert_int_equal(gmem_add(&m, 8 * K, 108 * K, K, mem + 40 * K, NULL), 0);
	assert_int_equal(gmem_add(&m, 4 * K, 104 * K, 4 * K, mem, NULL), 0);
	assert_int_equal(gmem_add(&m, 9 * K, 109 * K, K, mem + 20 * K, NULL), 0);
	assert_int_equal(gmem_add(&m, 0, 0, 16, mem, NULL), 0);
	assert_int_equal(gmem_add(&m, UINT64_MAX - 15, UINT64_MAX - 15, 16, mem, NULL), 0);

	assert_int_equal(gmem_pieces(&m, 4 * K, 4 * K, iov, 4), 1);
	assert_int_equal(gmem_pieces(&m, 7 * K, 3 * K, iov, 4), 3);
	assert_ptr_equal(iov[0].iov_base, mem + 3 * K);
	assert_int_equal(iov[0].iov_len, K);
	assert_ptr_equal(iov[1].iov_base, mem + 40 * K);
	assert_int_equal(iov[1].iov_len, K);
	assert_ptr_equal(iov[2].iov_base, mem + 20 * K);
	assert_int_equal(iov[2].iov_len, K);

	iov[2].iov_len = 77;
	assert_int_equal(gmem_pieces(&m, 7 * K, 3 * K, iov, 2), 3); /* told, not stored */
	assert_int_equal(iov[2].iov_len, 77);

	assert_int_equal(gmem_pieces(&m, 7 * K, 3 * K + 1, iov, 4), 0);
	assert_int_equal(gmem_pieces(&m, 4 * K - 1, 2, iov, 4), 0);
	assert_int_equal(gmem_pieces(&m, 4 * K, 0, iov, 4), 0);
	assert_int_equal(gmem_pieces(&m, UINT64_MAX - 3, 4, iov, 4), 1);
	assert_int_equal(gmem_pieces(&m, UINT64_MAX - 3, 5, iov, 4), 0); /* does not wrap */

	assert_int_equal(gmem_remove(&m, 8 * K, 108 * K, K - 1), -ENOENT);
	assert_int_equal(gmem_remove(&m, 8 * K, 0, K), -ENOENT);
	assert_int_equal(gmem_remove(&m, 8 * K, 108 * K, K), 0);
	assert_int_equal(m.n, 4);
	assert_int_equal(gmem_pieces(&m, 7 * K, 3 * K, iov, 4), 0);
	assert_ptr_equal(gpa_of(&m, 9 * K, K), mem + 20 * K);
	gmem_fini(&m);
}

static int memfd(size_t len, bool seal)
{
	int fd = memfd_create("gmem_test", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	if (seal)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static void files(void **state)
{
	struct gmem m;
	struct err err = {""};
	int fd = memfd(64 * K, true), pipes[2], keep;
	char path[32];

	(void)state;
	gmem_init(&m);
	assert_int_equal(gmem_map(&m, 0, 0, 64 * K + 1, fd, 0, &err), -E2BIG);
	assert_int_equal(gmem_map(&m, 0, 0, 60 * K, fd, 4 * K + 1, &err), -E2BIG);
	assert_int_equal(gmem_map(&m, 0, 0, 8 * K, fd, UINT64_MAX - 4 * K + 1, &err), -E2BIG);
	assert_non_null(strstr(err.text, "65536"));
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(gmem_map(&m, 0, 0, 4 * K, pipes[0], 0, &err), -EINVAL);
	assert_int_equal(gmem_map(&m, 0, 0, 4 * K, -1, 0, &err), -EBADF);
	close(pipes[0]);
	close(pipes[1]);

	/* at an offset that no page begins at; the descriptor may go at once */
	assert_int_equal(pwrite(fd, "weft", 4, 4 * K + 100), 4);
	assert_int_equal(gmem_map(&m, 1 << 20, 2 << 20, 8 * K, fd, 4 * K + 100, &err), 0);
	assert_null(m.region[0].lost); /* sealed: nothing to guard */
	close(fd);
	assert_memory_equal(gpa_of(&m, 1 << 20, 4), "weft", 4);
	assert_memory_equal(gmem_uva(&m, 2 << 20, 8 * K, 4), "weft", 4);
	assert_false(gmem_faulted(&m));

	/* a file whose file system might never answer */
	fd = open("/proc/self/status", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(gmem_map(&m, 0, 0, 4 * K, fd, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "memfd"));
	close(fd);

	keep = memfd(64 * K, true); /* a file that may not be written */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", keep);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	close(keep);
	assert_int_equal(gmem_map(&m, 0, 0, 4 * K, fd, 0, &err), -EACCES);
	close(fd);
	gmem_fini(&m);
}

static void truncated(void **state)
{
	struct gmem m;
	int fd = memfd(64 * K, false), sealed = memfd(64 * K, true);

	(void)state;
	assert_int_equal(sigbus_install(), 0);
	gmem_init(&m);
	assert_int_equal(gmem_map(&m, 0, 0, 64 * K, sealed, 0, NULL), 0);
	assert_int_equal(gmem_map(&m, 64 * K, 64 * K, 64 * K, fd, 0, NULL), 0);

	volatile uint8_t *p = gpa_of(&m, 64 * K, 64 * K);

	p[0] = p[32 * K] = 7;
	assert_false(gmem_faulted(&m));
	assert_int_equal(ftruncate(sealed, 0), -1);
	assert_int_equal(ftruncate(fd, 4 * K), 0);
	assert_int_equal(p[0], 7);
	assert_false(gmem_faulted(&m));
	assert_int_equal(p[32 * K], 0);
	assert_true(gmem_faulted(&m));
	p[63 * K] = 1;

	/* with the region goes the fault */
	assert_int_equal(gmem_remove(&m, 64 * K, 64 * K, 64 * K), 0);
	assert_false(gmem_faulted(&m));
	gmem_fini(&m);
	close(fd);
	close(sealed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(translate),
		cmocka_unit_test(pieces),
		cmocka_unit_test(files),
		cmocka_unit_test(truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
