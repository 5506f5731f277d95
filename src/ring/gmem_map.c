/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gmem_map: memory that a peer shares by a descriptor. Mapping takes a peer's word for nothing: the
 * file must be the kernel's own (a file system that a process serves could leave a page fault of
 * ours unanswered for ever), it must hold the whole region, and unless a seal forbids shrinking it,
 * the SIGBUS guard watches the mapping. [vhost-user: Memory region description]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/sigbus.h"
#include "ring/gmem.h"

/* What a mapping of the file must be a multiple of: its huge pages, if it has them. */
static size_t file_unit(int fd, bool *huge)
{
	struct statfs fs;

	*huge = fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
	return *huge ? (size_t)fs.f_bsize : (size_t)sysconf(_SC_PAGESIZE);
}

static int file_check(int fd, uint64_t offset, uint64_t size, struct err *err)
{
	struct stat st;

	/* First, as no file system is asked: only memfd, tmpfs and hugetlbfs have seals. */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return err_set(err, errno == EBADF ? EBADF : EINVAL,
			"memory file: must be a memfd, or lie on a tmpfs or hugetlbfs");
	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "memory file: %s", strerror(errno));
	if (offset + size < size || offset + size > (uint64_t)st.st_size)
		return err_set(err, E2BIG,
			"memory file ends at %jd, before the region's end (%#" PRIx64 " + %#" PRIx64
			")",
			(intmax_t)st.st_size, offset, size);
	return 0;
}

/* Nothing can be taken from under us: the file may not shrink, and its pages do not come from a
 * pool that may be empty. */
static bool file_is_solid(int fd, bool huge)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return !huge && seals >= 0 && (seals & F_SEAL_SHRINK);
}

static void region_unmap(struct gmem_region *r)
{
	if (r->lost)
		sigbus_unwatch(r->guard);
	munmap(r->map, r->map_len);
}

int gmem_map(struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size, int fd, uint64_t offset,
	struct err *err)
{
	struct gmem_region r = {.gpa = gpa, .uva = uva, .size = size};
	int rc = gmem_check(m, gpa, uva, size, err);

	if (!rc)
		rc = file_check(fd, offset, size, err);
	if (rc)
		return rc;

	bool huge;
	size_t unit = file_unit(fd, &huge);
	size_t before = offset & (unit - 1);

	r.map_len = (size_t)((before + size + unit - 1) & ~(uint64_t)(unit - 1));
	r.map = mmap(NULL, r.map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		(off_t)(offset - before));
	if (r.map == MAP_FAILED)
		return err_set(err, errno, "memory file: cannot map %zu bytes at %#" PRIx64 ": %s",
			r.map_len, offset - before, strerror(errno));
	madvise(r.map, r.map_len, MADV_DONTDUMP); /* a guest's secrets stay out of our core files */
	r.host = (uint8_t *)r.map + before;
	r.release = region_unmap;

	if (!file_is_solid(fd, huge)) {
		r.guard = sigbus_watch(r.map, r.map_len);
		if (r.guard < 0) {
			munmap(r.map, r.map_len);
			return err_set(err, ENOSPC,
				"memory region at %#" PRIx64
				": more than %d guarded regions (seal the file against "
				"shrinking)",
				gpa, SIGBUS_RANGES);
		}
		r.lost = sigbus_flag(r.guard);
	}
	m->region[m->n++] = r;
	return 0;
}
