/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vq_drv: the driver side of a virtqueue; ring/split_drv.c is the split one.
 *
 *	add ... add, publish (one index store, then: kick?)     get ... get, arm (true: more came)
 *
 * The device may be anybody: ids and indices that it writes are checked against what is
 * outstanding, and a lie breaks the queue with a constant reason: nothing is got from it any more.
 * What the driver must remember (tokens, capacities, chains) lies outside of the shared memory; what
 * it wrote there is never read back. Nothing here aborts, allocates (but init), logs or makes a
 * system call. One thread owns a queue. [VIRTIO 1.2 2.7]
 */
#ifndef RING_VQ_DRV_H
#define RING_VQ_DRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "ring/spec.h"

/* When a chain of two and more pieces takes an indirect table, where the device knows them. One
 * piece is always direct. */
enum vq_indirect {
	VQ_INDIRECT_AUTO,   /* when a quarter of the ring or less is free, or too little for it */
	VQ_INDIRECT_ALWAYS, /* what Linux does */
	VQ_INDIRECT_NEVER,
};

#define VQ_TABLE 20 /* pieces of an indirect chain: 2 + PKT_FRAGS, rounded */

struct vq_drv_slot {
	void *token;    /* NULL: not out */
	uint32_t cap;   /* writable bytes of the chain */
	uint16_t ndesc; /* ring descriptors it takes */
	uint16_t last;  /* the last one of them */
};

struct vq_drv {
	/* shared */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vring_desc *table; /* VQ_TABLE entries for each ring entry; NULL: none */

	/* private */
	struct vq_drv_slot *slot; /* by head */
	uint16_t *next;           /* the free list, oldest first, and the chains that are out */
	uint16_t size, mask;
	uint16_t nfree, free_head, free_tail;
	uint16_t nout;        /* chains that are out */
	uint16_t avail_next;  /* next avail entry to fill */
	uint16_t avail_shown; /* published */
	uint16_t kicked;      /* avail index at the last evaluation of the kick rule */
	uint16_t used_next;   /* next used entry to get */
	uint16_t used_seen;   /* the device's index as last read and checked */
	uint16_t detach_at;
	bool kick_valid; /* false after reset: the first evaluation kicks */
	bool armed;      /* the device may notify */

	/* the owner's, as negotiated: set, then vq_drv_reset */
	bool event_idx, want_indirect;
	enum vq_indirect indirect;

	const char *broken; /* constant reason, NULL while whole */
	/* counters; n_desc: those that name bytes; n_indirect: tables */
	uint64_t n_added, n_desc, n_indirect, n_kick, n_suppressed, n_used;
};

/* Bytes of shared memory for a ring of `size`, a multiple of 64: descriptors, avail, used, tables. */
size_t vq_drv_len(unsigned size, bool tables);
/*
 * `mem`: that many bytes, aligned to 64, zeroed here; they stay the caller's. The addresses that the
 * device is told are ours (the front-end registers its memory at guest address = user address =
 * ours). size: a power of two, 2 .. RING_MAX; else -EINVAL saying so. Private memory is allocated:
 * -ENOMEM. [VIRTIO 1.2 2.7.1, 2.7.10.1]
 */
int vq_drv_init(struct vq_drv *, void *mem, unsigned size, bool tables, struct err *);
void vq_drv_fini(struct vq_drv *); /* tokens that are out are forgotten */
/* Empty ring, all indices `base`, whole, everything forgotten but what the owner set: after a reset. */
void vq_drv_reset(struct vq_drv *, uint16_t base);

/*
 * Post a chain of nr readable, then nw writable pieces under `token` (not NULL). Not visible before
 * publish. 0, or -ENOSPC: too few free descriptors now; -EMSGSIZE: more pieces than the ring or a
 * table can ever hold, or none.
 */
int vq_drv_add(struct vq_drv *, const struct iovec *, unsigned nr, unsigned nw, void *token);

/* The id that the next chain will have, if nfree > 0: memory of the owner's may go by it. */
static inline uint16_t vq_drv_next_id(const struct vq_drv *vq)
{
	return vq->free_head;
}

/* The same as add for one piece, where speed counts: the caller saw nfree > 0. */
static inline void vq_drv_add1(
	struct vq_drv *vq, void *data, uint32_t len, bool writable, void *token)
{
	uint16_t id = vq->free_head;

	vq->free_head = vq->next[id];
	vq->nfree--;
	vq->nout++;
	vq->slot[id] = (struct vq_drv_slot){token, writable ? len : 0, 1, id};
	vq->desc[id] = (struct vring_desc){
		.addr = (uintptr_t)data,
		.len = len,
		.flags = writable ? VRING_DESC_F_WRITE : 0,
	};
	vq->avail->ring[vq->avail_next++ & vq->mask] = id;
	vq->n_desc++;
}

/* Make visible what was added; true: kick the device. [VIRTIO 1.2 2.7.13] */
bool vq_drv_publish(struct vq_drv *);

/* Used entries that can be got; reads the device's index. */
unsigned vq_drv_pending(struct vq_drv *);
/* What get does when there is more to it: the index must be read, or the entry is a lie. */
void *vq_drv_get_slow(struct vq_drv *, uint32_t *written, uint32_t *cap);
/*
 * The next used chain's token; *written is what the device says it wrote, *cap what the chain can
 * hold (writing more is the caller's to judge). NULL: none, or the queue is broken.
 */
static inline void *vq_drv_get(struct vq_drv *vq, uint32_t *written, uint32_t *cap)
{
	if (__builtin_expect(vq->used_next == vq->used_seen, 0))
		return vq_drv_get_slow(vq, written, cap);

	const struct vring_used_elem *e = &vq->used->ring[vq->used_next & vq->mask];
	uint32_t id = __atomic_load_n(&e->id, __ATOMIC_RELAXED);

	if (__builtin_expect(id > vq->mask, 0))
		return vq_drv_get_slow(vq, written, cap);

	struct vq_drv_slot *s = &vq->slot[id];
	void *token = s->token;

	if (__builtin_expect(!token, 0))
		return vq_drv_get_slow(vq, written, cap);
	*written = __atomic_load_n(&e->len, __ATOMIC_RELAXED);
	*cap = s->cap;
	s->token = NULL;
	vq->next[vq->free_tail] = (uint16_t)id;
	if (!vq->nfree)
		vq->free_head = (uint16_t)id;
	vq->free_tail = s->last;
	vq->nfree = (uint16_t)(vq->nfree + s->ndesc);
	vq->nout--;
	vq->used_next++;
	return token;
}

/* Notify me after `more` further used entries (1: the next; at most as many as are out); true: they
 * are there already, nothing will come, go on. [VIRTIO 1.2 2.7.7] */
bool vq_drv_arm(struct vq_drv *, unsigned more);
void vq_drv_disarm(struct vq_drv *); /* a notification may come all the same */

/* Any token still out, one by one, for clean-up after the queue has stopped; NULL: none left. */
void *vq_drv_detach(struct vq_drv *);

#endif
