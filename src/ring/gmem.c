/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gmem: the table of regions and the translation of addresses; see the header. It must not know
 * where memory comes from: ring/gmem_map.c does.
 */
#include "ring/gmem.h"

#include <errno.h>
#include <inttypes.h>

void gmem_init(struct gmem *m)
{
	m->n = 0;
}

static void region_release(struct gmem_region *r)
{
	if (r->release)
		r->release(r);
}

void gmem_fini(struct gmem *m)
{
	while (m->n)
		region_release(&m->region[--m->n]);
}

/* [a, a + size) and [b, b + bsize) have a byte in common; neither wraps, neither is empty */
static bool range_overlaps(uint64_t a, uint64_t size, uint64_t b, uint64_t bsize)
{
	return a <= b + (bsize - 1) && b <= a + (size - 1);
}

int gmem_check(const struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size, struct err *err)
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

int gmem_add(struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size, void *host, struct err *err)
{
	int rc = gmem_check(m, gpa, uva, size, err);

	if (rc)
		return rc;
	m->region[m->n++] =
		(struct gmem_region){.gpa = gpa, .uva = uva, .size = size, .host = host};
	return 0;
}

int gmem_remove(struct gmem *m, uint64_t gpa, uint64_t uva, uint64_t size)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct gmem_region *r = &m->region[i];

		if (r->gpa == gpa && r->uva == uva && r->size == size) {
			region_release(r);
			*r = m->region[--m->n];
			return 0;
		}
	}
	return -ENOENT;
}

bool gmem_faulted(const struct gmem *m)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->region[i].lost && __atomic_load_n(m->region[i].lost, __ATOMIC_ACQUIRE))
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
