/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_fe: the front-end side of a vhost-user session: a non-blocking state machine, so that both
 * ends may run on one thread. It connects (and reconnects with back-off) or listens; asks features,
 * offers memory and rings, enables them, watches the call descriptors. It owns the socket and the kick and
 * call descriptors; the rings and the memory are the driver's (port/vdrv.h).
 *
 *	down -> features -> protocol features -> (queue number) -> owner, memory, rings, enable -> up -> down
 *
 * A back-end that hangs up, lacks a needed feature or answers nonsense ends the session with a constant
 * reason; there is always a next one.
 */
#ifndef PORT_VHOST_FE_H
#define PORT_VHOST_FE_H

#include "base/loop.h"
#include "base/log.h"
#include "port/vhost_msg.h"

struct vhost_fe;

struct vhost_fe_ring {
	uint16_t size, base;             /* base: the avail index to go on at */
	const void *desc, *avail, *used; /* our addresses */
};

struct vhost_fe_config {
	const char *path;
	bool server;
	uint64_t want; /* device feature bits we can use; the result is offered & want */
	uint64_t need; /* of them: without one of these there is no session */
	uint16_t mtu;  /* NET_SET_MTU if both sides know it; 0: do not say */
	int mem_fd;    /* shared memory, from offset 0 */
	void *mem;
	size_t mem_len;
};

struct vhost_fe_events {
	/* features are agreed on: set up the rings ([0] receive, [1] transmit) for them; 0 or -errno to refuse */
	int (*rings)(void *ctx, uint64_t features, struct vhost_fe_ring ring[2]);
	void (*up)(void *ctx); /* the device works */
	void (*down)(void *ctx,
		const char *reason); /* it does not any more: nothing is posted, rings are ours */
	void (*call)(void *ctx, unsigned queue); /* it notified us */
};

int vhost_fe_open(struct vhost_fe **, const char *name, const struct vhost_fe_config *,
	const struct vhost_fe_events *, void *ctx, struct loop *, struct log *, struct err *);
void vhost_fe_close(struct vhost_fe *); /* NULL is fine; no event comes from it any more */
void vhost_fe_kick(struct vhost_fe *, unsigned queue); /* one system call */
bool vhost_fe_up(const struct vhost_fe *);
const char *vhost_fe_last_end(const struct vhost_fe *);
/* The device's configuration space if it told: MAC and MTU; false if not. */
bool vhost_fe_mac(const struct vhost_fe *, uint8_t mac[6]);
uint16_t vhost_fe_mtu(const struct vhost_fe *); /* 0: not told */

#endif
