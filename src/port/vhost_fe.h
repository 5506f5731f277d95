/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_fe: the front-end side of a vhost-user session: a non-blocking state machine, so that both
 * ends may run on one thread. It connects (and reconnects with back-off) or listens; asks features,
 * offers memory and rings, enables them, watches the call descriptors. It owns the socket and the kick and
 * call descriptors; the rings and the memory are the driver's (port/vdrv.h).
 *
 *	down -> features -> protocol features -> owner -> configuration -> rings, memory, enable -> up -> down
 *
 * A back-end that hangs up, lacks a needed feature or answers nonsense, or nothing for 5 s, ends the
 * session with a reason in one line; there is always a next one.
 */
#ifndef PORT_VHOST_FE_H
#define PORT_VHOST_FE_H

#include <stddef.h>

#include "base/log.h"
#include "base/loop.h"
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
	/*
	 * Of the features that both know those to agree on, now that MAC and MTU are told if they ever
	 * are. NULL: all of them. [VIRTIO 1.2 3.1.1]
	 */
	uint64_t (*choose)(void *ctx, uint64_t features);
	/*
	 * Features are agreed on: set up the rings ([0] receive, [1] transmit) and post receive
	 * buffers; what is transmitted before `up` may be lost. 0, or -errno to refuse, said in *err,
	 * which becomes the reason that the session ends for. Asked once for each session. The descriptor of the memory is read after it.
	 */
	int (*rings)(void *ctx, uint64_t features, struct vhost_fe_ring ring[2], struct err *);
	/* The device works: it is kicked for both rings after this, kicks before are not needed. */
	void (*up)(void *ctx);
	/*
	 * It does not any more, or will not: nothing is posted, rings are ours. Comes after every
	 * `rings` that was granted, whether or not `up` came between.
	 */
	void (*down)(void *ctx, const char *reason);
	void (*call)(void *ctx, unsigned queue); /* it notified us; never before `up` */
};

/*
 * Listen (the socket has mode 0600), or connect now and, where nobody listens yet, again and again.
 * No event comes before the loop turns. Errors: those of vhost_conn_open(); EINVAL the memory is not
 * shared or smaller than told, EBADF. name is copied; mem_fd stays the caller's, and open.
 */
int vhost_fe_open(struct vhost_fe **, const char *name, const struct vhost_fe_config *,
	const struct vhost_fe_events *, void *ctx, struct loop *, struct log *, struct err *);
void vhost_fe_close(
	struct vhost_fe *); /* NULL is fine; no event comes from it any more; not from within one */
/*
 * The device broke the rings' protocol: leave it, and connect again. `reason` is constant. `down`
 * comes from within. Not from within an event but `call`.
 */
void vhost_fe_end(struct vhost_fe *, const char *reason);
void vhost_fe_kick(struct vhost_fe *, unsigned queue); /* one system call; none while not up */
bool vhost_fe_up(const struct vhost_fe *);
const char *vhost_fe_last_end(const struct vhost_fe *);
/* The device's configuration space if it told: MAC and MTU; false if not. */
bool vhost_fe_mac(const struct vhost_fe *, uint8_t mac[6]);
uint16_t vhost_fe_mtu(const struct vhost_fe *); /* 0: not told */

#endif
