/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_fe_int: what the two files of the front-end session share: vhost_fe.c (beginning and end,
 * notifications) and vhost_ask.c (what is asked, step by step, until the device works). Nobody else
 * includes it.
 */
#ifndef PORT_VHOST_FE_INT_H
#define PORT_VHOST_FE_INT_H

#include "base/limits.h"
#include "port/vhost_conn.h"
#include "port/vhost_fe.h"

#define VHOST_FE_RINGS      2
#define VHOST_FE_CONFIG_LEN 12 /* mac, status, max_virtqueue_pairs, mtu [VIRTIO 1.2 5.1.4] */
#define VHOST_FE_REASON     200

struct vhost_fe_queue {
	struct vhost_fe *fe;
	int kick;                 /* an eventfd of this session; -1: none */
	struct loop_fd call, err; /* eventfds of this session, ours to close */
	bool early;               /* called before the device works: passed on then */
	struct vhost_fe_ring ring;
};

struct vhost_fe {
	char name[NAME_LEN];
	struct vhost_conn conn;
	struct vhost_fe_config config; /* but for path */
	const struct vhost_fe_events *events;
	void *ctx;

	/* the session */
	unsigned step;
	bool asked;    /* of this step: said, and the answer is due */
	bool ring_set; /* the driver has set up its rings: down has to be told */
	bool up;
	uint64_t offered; /* by the device */
	uint64_t features;
	uint64_t protocol;                  /* agreed on; with bit 30: there is such a thing */
	uint8_t space[VHOST_FE_CONFIG_LEN]; /* the configuration */
	bool space_told;
	struct loop_timer patience; /* with the peer, anew for each step */
	struct vhost_fe_queue queue[VHOST_FE_RINGS];
	char reason[VHOST_FE_REASON]; /* why the session ends, where that has to be composed */
};

/* vhost_ask.c */
/*
 * Go on: say what is to be said, read what is answered. *done: the device works. NULL, or why the
 * session must end.
 */
const char *vhost_ask(struct vhost_fe *, bool *done);
/* What is being asked now, for a reason: a request's name. */
const char *vhost_ask_name(const struct vhost_fe *);
/* Before the end: stop the device, without waiting for answers. */
void vhost_ask_stop(struct vhost_fe *);

/* vhost_fe.c */
/* Make and watch the descriptors of both rings. */
const char *vhost_fe_signals(struct vhost_fe *);

#endif
