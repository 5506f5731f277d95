/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev_int: what the three files of the device share: vdev.c (set-up and states), vdev_tx.c (the
 * guest's transmit queue), vdev_rx.c (the guest's receive buffers).
 */
#ifndef PORT_VDEV_INT_H
#define PORT_VDEV_INT_H

#include <stddef.h>
#include <string.h>

#include "port/vdev.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

static inline struct vdev *vdev_of(struct portq *q)
{
	return (struct vdev *)(void *)((char *)q - offsetof(struct vdev, port.q));
}

/* vdev_tx.c: see struct port_ops */
unsigned vdev_pull(struct portq *, struct burst *, unsigned max);
void vdev_settle(struct portq *, const struct burst *, unsigned n);
bool vdev_arm(struct portq *);
/* A transmit queue that is started but disabled: everything on it is consumed and dropped. */
void vdev_tx_discard(struct vdev *);

/* vdev_rx.c: see struct port_ops */
unsigned vdev_push(struct portq *, const struct frame *, unsigned n);
void vdev_flush(struct portq *);
bool vdev_arm_room(struct portq *, uint32_t need);

#endif
