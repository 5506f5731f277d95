/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vq_drv: the driver side of a virtqueue; ring/split_drv.c is the split one. The device may be anybody:
 * ids, lengths and indices that it writes are checked against what is outstanding, and a lie breaks the
 * queue with a constant reason. What the driver must remember (tokens, capacities, chains) lies outside the
 * shared ring. [VIRTIO 1.2 2.7]
 *
 *	add ... add, publish (one index store, then: kick?)        get ... get, arm (true: more came)
 */
#ifndef RING_VQ_DRV_H
#define RING_VQ_DRV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "ring/spec.h"

enum vq_indirect { VQ_INDIRECT_AUTO, VQ_INDIRECT_ALWAYS, VQ_INDIRECT_NEVER };

struct vq_drv_slot {
	void *token;    /* NULL: not out */
	uint32_t cap;   /* writable bytes of the chain */
	uint16_t ndesc; /* ring descriptors it takes */
	bool indirect;
};

struct vq_drv {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vring_desc
		*table; /* VQ_TABLE entries for each ring entry; NULL: no indirect tables */
	struct vq_drv_slot *slot; /* private, by head */
	uint16_t *
		next; /* private: the free list and the chains; the ring's own copy is not believed */
	uint16_t size, nfree, free_head;
	uint16_t avail_next, avail_shown, used_next, kicked;
	bool event_idx, kick_valid;
	bool want_indirect;        /* negotiated */
	enum vq_indirect indirect; /* when to use it for chains of two and more pieces */
	const char *broken;
	uint64_t n_added, n_desc, n_indirect, n_kick, n_suppressed, n_used;
};

#define VQ_TABLE 20 /* pieces of an indirect chain: 2 + PKT_FRAGS, rounded */

/* Bytes of shared memory for a ring of `size`, aligned to 64: descriptors, avail, used, tables. */
size_t vq_drv_len(unsigned size, bool tables);
/*
 * `mem`: that many bytes, aligned to 64, zeroed here; addresses given to the device are ours (the
 * front-end registers its memory at guest address = user address = ours). size: a power of two, 2 ..
 * RING_MAX; else -EINVAL saying so. Private memory is allocated: -ENOMEM.
 */
int vq_drv_init(struct vq_drv *, void *mem, unsigned size, bool tables, struct err *);
void vq_drv_fini(struct vq_drv *);
/* Empty ring, all indices 0 (or `base`), everything forgotten: after a reset. */
void vq_drv_reset(struct vq_drv *, uint16_t base);

/*
 * Post a chain of nr readable, then nw writable pieces under `token` (not NULL). 0, or -ENOSPC: too few
 * free descriptors; -EMSGSIZE: more pieces than the ring or a table can ever hold.
 */
int vq_drv_add(struct vq_drv *, const struct iovec *, unsigned nr, unsigned nw, void *token);
/* Make visible; true: kick the device. [VIRTIO 1.2 2.7.13] */
bool vq_drv_publish(struct vq_drv *);
/*
 * The next used chain's token; *written is what the device says it wrote, *cap what the chain can
 * hold (writing more is the caller's to judge). NULL: none, or the queue is broken.
 */
void *vq_drv_get(struct vq_drv *, uint32_t *written, uint32_t *cap);
unsigned vq_drv_pending(const struct vq_drv *); /* used entries not yet got */
/* Notify me after `more` further used entries (1: the next); true: they are there already. */
bool vq_drv_arm(struct vq_drv *, unsigned more);
void vq_drv_disarm(struct vq_drv *);
/* Any token still out, one by one, for clean-up after the queue has stopped; NULL: none left. */
void *vq_drv_detach(struct vq_drv *);

#endif
