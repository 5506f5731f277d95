/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_sim: a model driver: the driver side of one split virtqueue, in plain memory, for tests,
 * fuzz targets and benchmarks. It keeps what it must remember outside of the shared block, so that a
 * test may spoil any byte of the block and still collect. It is quick enough to be the other half of
 * a benchmark: descriptors are taken and given back in ring order, indices are stored per batch.
 *
 * The block that the caller gives is laid out as
 *
 *	desc[size]   avail   used   table[size][table]      each at a multiple of 64
 *
 * and is to be registered with gmem_add() at the guest address it is told. Buffers are named by
 * guest address and may lie in any other region. [VIRTIO 1.2 2.7]
 */
#ifndef RING_RING_SIM_H
#define RING_RING_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/spec.h"
#include "ring/vq.h"

struct ring_sim_config {
	void *mem;      /* ring_sim_len() bytes, aligned to 64; zeroed by init */
	uint64_t gpa;   /* the guest address of mem */
	unsigned size;  /* power of two, 1 .. RING_MAX */
	unsigned table; /* entries of each indirect table; 0: indirect chains are not used */
	bool event_idx;
	uint16_t base; /* both indices start here (to meet the wrap) */
};

struct ring_sim_buf {
	uint64_t gpa;
	uint32_t len;
};

struct ring_sim {
	/* shared: raw access for whoever wants to spoil it */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vring_desc *table; /* table_len entries for each descriptor */
	uint64_t desc_gpa, avail_gpa, used_gpa, table_gpa;

	uint16_t size, mask;
	unsigned table_len;
	bool event_idx;

	/* the driver's own memory */
	uint16_t avail_next;         /* next avail entry to fill */
	uint16_t avail_shown;        /* published */
	uint16_t kicked;             /* avail index when ring_sim_kick was last asked */
	uint16_t used_next;          /* next used entry to collect */
	uint32_t free_get, free_put; /* into free[]: descriptors in the order they came back */
	uint16_t *free;
	uint16_t *next;  /* of a direct chain */
	uint16_t *ndesc; /* ring descriptors of the chain at this head, 0: not out */
	uint64_t n_bad;  /* used entries that named no chain that was out */
};

/* Bytes of the block for such a ring; a multiple of 64. */
size_t ring_sim_len(unsigned size, unsigned table);
/* 0, -EINVAL for a bad size, -ENOMEM. Zeroes the block. */
int ring_sim_init(struct ring_sim *, const struct ring_sim_config *);
void ring_sim_fini(struct ring_sim *);
/* Set the device side up over the same block and start it at the same index. `vq` is initialised.
 */
void ring_sim_attach(const struct ring_sim *, struct vq_dev *vq, bool indirect);

/*
 * Add a chain of `nr` readable buffers and then `nw` writable ones, directly or (if `indirect`) as
 * one descriptor that names a table. Not visible before ring_sim_publish. Returns the head, or -1
 * if there are too few free descriptors or the table is too short.
 */
int ring_sim_add(
	struct ring_sim *, const struct ring_sim_buf *, unsigned nr, unsigned nw, bool indirect);
/* Add an avail entry that names `head`, whatever that is: for those who laid out descriptors. */
void ring_sim_add_raw(struct ring_sim *, uint16_t head);

static inline unsigned ring_sim_free(const struct ring_sim *s)
{
	return s->free_put - s->free_get;
}

/* The same for the chain of one buffer, where speed counts: the caller saw ring_sim_free() > 0. */
static inline uint16_t ring_sim_add1(struct ring_sim *s, uint64_t gpa, uint32_t len, bool writable)
{
	uint16_t head = s->free[s->free_get++ & s->mask];

	s->desc[head] = (struct vring_desc){
		.addr = gpa, .len = len, .flags = writable ? VRING_DESC_F_WRITE : 0};
	s->ndesc[head] = 1;
	s->avail->ring[s->avail_next++ & s->mask] = head;
	return head;
}

/* Make visible what was added. */
static inline void ring_sim_publish(struct ring_sim *s)
{
	s->avail_shown = s->avail_next;
	__atomic_store_n(&s->avail->idx, s->avail_shown, __ATOMIC_RELEASE);
}

/* Shall the device be kicked for what was published since this was last asked? [VIRTIO 1.2 2.7.10]
 */
bool ring_sim_kick(struct ring_sim *);

/* Used entries that wait to be collected. */
static inline unsigned ring_sim_pending(const struct ring_sim *s)
{
	return (uint16_t)(__atomic_load_n(&s->used->idx, __ATOMIC_ACQUIRE) - s->used_next);
}

/* Collect the next used entry: false if there is none. One that names no chain that is out counts
 * as n_bad, and nothing is freed. */
bool ring_sim_get(struct ring_sim *, uint32_t *id, uint32_t *len);
/* Collect up to `max`, forget them; returns how many: the benchmark's way. */
unsigned ring_sim_drain(struct ring_sim *, unsigned max);

/* Want an interrupt once `more` further entries are used (1: the next one); true: they are there.
 */
bool ring_sim_arm(struct ring_sim *, unsigned more);
/* Want no interrupts. */
void ring_sim_disarm(struct ring_sim *);

#endif
