/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gmem: a guest's memory as the device sees it: up to GMEM_REGIONS regions, each known by guest
 * address (descriptors), user address (ring addresses of vhost-user) and our own mapping.
 *
 * Regions never overlap in either address space. A range that a descriptor names must lie wholly
 * inside mapped memory; it may cross from one region into the next adjacent one, and then comes out
 * in pieces. Nothing here trusts a size: all arithmetic is checked for overflow.
 * [VIRTIO 1.2 2.7.5], [vhost-user: Memory region description]
 */
#ifndef RING_GMEM_H
#define RING_GMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/limits.h"

struct gmem_region {
	uint64_t gpa, size; /* [bytes] */
	uint8_t *host;      /* where gpa is mapped here */
	uint64_t uva;       /* the front-end's own address of gpa */
	/* how it goes back, and whether it was taken from under us; NULL: it is the caller's */
	void (*release)(struct gmem_region *);
	const bool *lost;
	/* gmem_map's */
	void *map;
	size_t map_len;
	int guard; /* sigbus handle, if `lost` */
};

struct gmem {
	struct gmem_region region[GMEM_REGIONS];
	unsigned n;
};

void gmem_init(struct gmem *);
void gmem_fini(struct gmem *); /* unmap all */

/* Whether such a region could be added: the errors of gmem_add. */
int gmem_check(const struct gmem *, uint64_t gpa, uint64_t uva, uint64_t size, struct err *);

/*
 * Map `size` bytes at `offset` of `fd` as guest address `gpa`, user address `uva`. The descriptor
 * stays the caller's (it may be closed at once). Errors: EINVAL size 0, overflow, a file that is no
 * memory; EEXIST overlap;
 * ENOSPC too many regions; ENOMEM, EACCES of mmap; E2BIG: the file ends before offset + size.
 */
int gmem_map(struct gmem *, uint64_t gpa, uint64_t uva, uint64_t size, int fd, uint64_t offset,
	struct err *);
/* The same for memory that the caller has mapped (a VMM that embeds the device; tests). */
int gmem_add(struct gmem *, uint64_t gpa, uint64_t uva, uint64_t size, void *host, struct err *);
/* Take out the region that has exactly these three values, unmap it; -ENOENT. */
int gmem_remove(struct gmem *, uint64_t gpa, uint64_t uva, uint64_t size);
/* The peer has truncated memory under us. Asked once per burst. */
bool gmem_faulted(const struct gmem *);

/* Our address of [uva, uva + len), if wholly inside one region and aligned to `align`; else NULL.
 */
void *gmem_uva(const struct gmem *, uint64_t uva, uint64_t len, size_t align);

/* What gmem_gpa does when the hint misses. */
uint8_t *gmem_find(const struct gmem *, uint64_t gpa, uint64_t len, unsigned *hint);

/*
 * Our address of [gpa, gpa + len) if wholly inside one region, else NULL. `hint` is the region of
 * the last hit, kept by the caller: guests have few regions and descriptors keep to one.
 */
static inline uint8_t *gmem_gpa(const struct gmem *m, uint64_t gpa, uint64_t len, unsigned *hint)
{
	const struct gmem_region *r = &m->region[*hint];

	if (__builtin_expect(
		    *hint < m->n && gpa - r->gpa < r->size && len <= r->size - (gpa - r->gpa), 1))
		return r->host + (gpa - r->gpa);
	return gmem_find(m, gpa, len, hint);
}

/*
 * As gmem_gpa, where the range may cross regions. Returns how many pieces it takes, of which the
 * first `max` are stored; 0 if any byte is not mapped (or len is 0).
 */
unsigned gmem_pieces(
	const struct gmem *, uint64_t gpa, uint64_t len, struct iovec *iov, unsigned max);

#endif
