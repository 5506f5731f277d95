/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gmem: see the header. Mapping takes a peer's word for nothing: the file must hold the whole
 * region, and unless a seal forbids shrinking it, the SIGBUS guard watches the mapping.
 */
#include "ring/gmem.h"

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

void gmem_init(struct gmem *m)
{
	m->n = 0;
}

static void region_unmap(struct gmem_region *r)
{
	sigbus_unwatch(r->guard);
	if (r->map)
		munmap(r->map, r->map_len);
}

void gmem_fini(struct gmem *m)
{
	while (m->n)
		region_unmap(&m->region[--m->n]);
}

/* [a, a + size) and [b, b + bsize) have a byte in common; neither wraps, neither is empty */
static bool range_overlaps(uint64_t a, uint64_t size, uint64_t b, uint64_t bsize)
{
	return a <= b + (bsize - 1) && b <= a + (size - 1);
}

static int region_check(
	const struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size, struct err *err)
{
	if (!size || gpa + (size - 1) < gpa || uva + (size - 1) < uva)
		return err_set(err, EINVAL,
			"memory region of %#" PRIx64 " bytes at %#" PRIx64
			": must not be empty nor reach beyond 2^64",
			size, gpa);
	for (unsigned i = 0; i < m->n; i++) {
		const struct gmem_region *r = &m->region[i];

		if (range_overlaps(gpa, size, r->gpa, r->size) ||
			range_overlaps(uva, size, r->uva, r->size))
			return err_set(err, EEXIST,
				"memory region at %#" PRIx64 " overlaps the one at %#" PRIx64, gpa,
				r->gpa);
	}
	if (m->n == GMEM_REGIONS)
		return err_set(err, ENOSPC, "memory region at %#" PRIx64 ": more than %d regions",
			gpa, GMEM_REGIONS);
	return 0;
}

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

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "memory file: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "memory file: not a regular file (use memfd or tmpfs)");
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

int gmem_map(struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size, int fd, uint64_t offset,
	struct err *err)
{
	struct gmem_region r = {.gpa = gpa, .uva = uva, .size = size, .guard = -1};
	int rc = region_check(m, gpa, uva, size, err);

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
	}
	m->region[m->n++] = r;
	return 0;
}

int gmem_add(struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size, void *host, struct err *err)
{
	int rc = region_check(m, gpa, uva, size, err);

	if (rc)
		return rc;
	m->region[m->n++] = (struct gmem_region){
		.gpa = gpa, .uva = uva, .size = size, .host = host, .guard = -1};
	return 0;
}

int gmem_remove(struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct gmem_region *r = &m->region[i];

		if (r->gpa == gpa && r->uva == uva && r->size == size) {
			region_unmap(r);
			*r = m->region[--m->n];
			return 0;
		}
	}
	return -ENOENT;
}

bool gmem_faulted(const struct gmem *m)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->region[i].guard >= 0 && sigbus_faulted(m->region[i].guard))
			return true;
	return false;
}

void *gmem_uva(const struct gmem *m, uint64_t uva, uint64_t len, size_t align)
{
	for (unsigned i = 0; i < m->n; i++) {
		const struct gmem_region *r = &m->region[i];
		uint64_t off = uva - r->uva;

		if (off < r->size && len <= r->size - off) {
			uint8_t *p = r->host + off;

			return (uintptr_t)p & (align - 1) ? NULL : p;
		}
	}
	return NULL;
}

static const struct gmem_region *region_of(const struct gmem *m, uint64_t gpa)
{
	for (unsigned i = 0; i < m->n; i++)
		if (gpa - m->region[i].gpa < m->region[i].size)
			return &m->region[i];
	return NULL;
}

uint8_t *gmem_find(const struct gmem *m, uint64_t gpa, uint64_t len, unsigned *hint)
{
	const struct gmem_region *r = region_of(m, gpa);

	if (!r || len > r->size - (gpa - r->gpa))
		return NULL;
	*hint = (unsigned)(r - m->region);
	return r->host + (gpa - r->gpa);
}

unsigned gmem_pieces(
	const struct gmem *m, uint64_t gpa, uint64_t len, struct iovec *iov, unsigned max)
{
	unsigned n = 0;

	if (len && gpa + (len - 1) < gpa)
		return 0; /* would go on at address 0 */
	while (len) {
		const struct gmem_region *r = region_of(m, gpa);

		if (!r)
			return 0;

		uint64_t off = gpa - r->gpa;
		uint64_t take = len < r->size - off ? len : r->size - off;

		if (n < max)
			iov[n] = (struct iovec){r->host + off, (size_t)take};
		n++;
		gpa += take;
		len -= take;
	}
	return n;
}
