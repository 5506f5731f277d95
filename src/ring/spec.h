/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spec: the split virtqueue as it lies in memory, little-endian. [VIRTIO 1.2 2.7]
 */
#ifndef RING_SPEC_H
#define RING_SPEC_H

#include <stddef.h>
#include <stdint.h>

#define VRING_DESC_F_NEXT     1 /* [VIRTIO 1.2 2.7.5] */
#define VRING_DESC_F_WRITE    2
#define VRING_DESC_F_INDIRECT 4

#define VRING_AVAIL_F_NO_INTERRUPT 1 /* [VIRTIO 1.2 2.7.7] */
#define VRING_USED_F_NO_NOTIFY     1 /* [VIRTIO 1.2 2.7.10] */

struct vring_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};

struct vring_avail {
	uint16_t flags;
	uint16_t idx;
	uint16_t ring[]; /* size entries, then used_event */
};

struct vring_used_elem {
	uint32_t id;
	uint32_t len;
};

struct vring_used {
	uint16_t flags;
	uint16_t idx;
	struct vring_used_elem ring[]; /* size entries, then avail_event */
};

#define VRING_DESC_ALIGN  16
#define VRING_AVAIL_ALIGN 2
#define VRING_USED_ALIGN  4

static inline size_t vring_desc_len(unsigned size)
{
	return sizeof(struct vring_desc) * size;
}

static inline size_t vring_avail_len(unsigned size)
{
	return sizeof(struct vring_avail) + 2 * (size + 1);
}

static inline size_t vring_used_len(unsigned size)
{
	return sizeof(struct vring_used) + sizeof(struct vring_used_elem) * size + 2;
}

#endif
