/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vq: the device side of a virtqueue, whatever its layout. ring/split_dev.c is the split one; a
 * packed one will share everything here that is not its layout, by an ops table.
 *
 * Life of a chain:
 *
 *	pop ---> the caller works on its pieces ---> put (staged) ---> publish (the driver sees it)
 *	   \---> unpop: as if never popped
 *
 * Chains go back with unpop only from the end (last popped, first back). Nothing that was popped
 * may be touched after put + publish, unpop, or after the rings or the memory changed.
 *
 * Everything the driver wrote is read once into a local, then checked, then used [T13]. A violation
 * marks the queue broken with a constant reason: pop returns what came before it, then 0, and the
 * owner says so to whoever must know. What was popped may still be put and published. Nothing here
 * aborts, allocates, logs or makes a system call. [VIRTIO 1.2 2.7]
 */
#ifndef RING_VQ_H
#define RING_VQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "ring/gmem.h"
#include "ring/spec.h"

struct chain {
	uint16_t id;         /* head index: what the used entry names */
	uint16_t ndesc;      /* descriptors read, the indirect table's included */
	uint16_t nr, nw;     /* pieces the device may read; then pieces it may write */
	uint32_t rlen, wlen; /* their bytes; 2^32 - 1 at most, more breaks the queue */
	struct iovec *iov;   /* nr + nw pieces in the caller's array */
};

struct vq_dev {
	/* where the rings are; NULL while not set up */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	const struct gmem *mem;
	uint16_t size; /* power of two, 1 .. RING_MAX */
	bool event_idx, indirect;

	uint16_t last_avail;  /* next entry of the avail ring to pop */
	uint16_t avail_idx;   /* the driver's index as last read and checked */
	uint16_t used_idx;    /* published */
	uint16_t used_staged; /* put so far; used_idx .. used_staged is not yet visible */
	uint16_t signalled;   /* used index at the last evaluation of the notification rule */
	bool signalled_valid; /* false after start: the first evaluation notifies */
	bool armed;           /* the driver may kick; false after disarm */
	bool writable;        /* what the last chain ended with: a guess at the next one */
	bool plain;           /* the last pop's chains: one piece each, all as `writable` says */
	unsigned hint;        /* gmem region of the last buffer */
	unsigned table_hint;  /* and of the last indirect table */
	const char *broken;   /* constant reason, NULL while whole */

	uint64_t n_popped, n_notify, n_suppressed, n_desc, n_indirect; /* counters */
};

/* Features and memory of a queue that is not started; everything else is reset. */
void vq_dev_init(struct vq_dev *, const struct gmem *);
/*
 * Set the size (a power of two, 1 .. RING_MAX) and the ring addresses, each checked for length and
 * alignment by whoever translated them (vring_*_len, VRING_*_ALIGN). -EINVAL for a bad size.
 */
int vq_dev_set_size(struct vq_dev *, unsigned size, struct err *);
int vq_dev_check_size(unsigned size, struct err *); /* the same, only asked */
void vq_dev_set_rings(struct vq_dev *, void *desc, void *avail, void *used);
/* Start at avail index `base`; the used index is read from memory. [vhost-user: SET_VRING_BASE] */
void vq_dev_start(struct vq_dev *, uint16_t base, bool event_idx, bool indirect);
/* Where to go on later; staged entries must have been published. [vhost-user: GET_VRING_BASE] */
uint16_t vq_dev_stop(struct vq_dev *);

/*
 * Up to `max` chains into `chain[]`, their pieces into iov[0 .. niov). Returns how many; 0 if the
 * ring is empty, the queue broken or the first chain alone needs more than `niov` pieces while
 * fewer than CHAIN_MAX were offered (call again with room). A chain of more than CHAIN_MAX pieces,
 * without any descriptor of length > 0, or readable after writable breaks the queue. After 2 * niov
 * descriptors (so, most of them empty) no further chain is begun: reading them costs time, too.
 * Context: the queue's owner thread.
 */
unsigned vq_dev_pop(
	struct vq_dev *, struct chain *chain, unsigned max, struct iovec *iov, unsigned niov);
/* Use up to `max` chains without reading a descriptor of theirs: staged as put. Returns how many. */
unsigned vq_dev_discard(struct vq_dev *, unsigned max);
/* The last `n` popped (and not put) go back to the ring. */
void vq_dev_unpop(struct vq_dev *, unsigned n);
/* Stage a used entry: `written` bytes from the start of the writable part. */
static inline void vq_dev_put(struct vq_dev *vq, uint16_t id, uint32_t written)
{
	vq->used->ring[vq->used_staged++ & (vq->size - 1u)] =
		(struct vring_used_elem){.id = id, .len = written};
}

/*
 * The same for many, where speed counts: open, put, close; what is not closed was never put. Between
 * open and close nothing else is put on this queue.
 */
struct vq_put {
	struct vring_used_elem *ring;
	unsigned mask, at;
};

static inline struct vq_put vq_put_open(const struct vq_dev *vq)
{
	return (struct vq_put){vq->used->ring, vq->size - 1u, vq->used_staged};
}

static inline void vq_put_one(struct vq_put *to, uint16_t id, uint32_t written)
{
	to->ring[to->at++ & to->mask] = (struct vring_used_elem){.id = id, .len = written};
}

static inline void vq_put_close(struct vq_dev *vq, const struct vq_put *to)
{
	vq->used_staged = (uint16_t)to->at;
}

/* The same for `n` chains of which nothing was written: what a transmit queue settles. */
void vq_dev_put_read(struct vq_dev *, const struct chain *, unsigned n);
/* Publish all staged entries with one index store. True: notify the driver now, by its wish
 * [VIRTIO 1.2 2.7.7]; always the first time after start. */
bool vq_dev_publish(struct vq_dev *);
/*
 * Ask the driver for a kick once `more` further chains are available beyond what was popped (1 =
 * the next one; clamped to the ring's size), then look again. True: they are there already, no kick
 * will come, go on. [VIRTIO 1.2 2.7.10]
 */
bool vq_dev_arm(struct vq_dev *, unsigned more);
/* No kicks wanted while we are at work anyway. Cheap; a kick may come all the same. */
void vq_dev_disarm(struct vq_dev *);
/* Chains available and not yet popped; reads the driver's index. */
unsigned vq_dev_available(struct vq_dev *);
/* Mark broken; `reason` is a constant string; the first reason stays. */
void vq_dev_break(struct vq_dev *, const char *reason);

static inline bool vq_dev_ready(const struct vq_dev *vq)
{
	return vq->desc && vq->avail && vq->used && !vq->broken;
}

#endif
