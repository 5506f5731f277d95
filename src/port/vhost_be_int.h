/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_be_int: what the two files of the back-end session share: vhost_be.c (the port and its
 * connection) and vhost_req.c (what each request does). Nobody else includes it.
 */
#ifndef PORT_VHOST_BE_INT_H
#define PORT_VHOST_BE_INT_H

#include "port/hold.h"
#include "port/vhost_be.h"
#include "port/vhost_conn.h"

/* What a front-end has given for one ring, beside what the vdev knows. */
struct vhost_ring {
	struct vhost_be *be;
	struct loop_fd kick; /* its fd is ours to close */
	bool polled;         /* no kick will ever come: look every millisecond */
	int call_fd, err_fd; /* -1: none */
	bool call_is_socket, err_is_socket;
	struct hold hold; /* of its call_fd */
};

struct vhost_be {
	struct vdev dev;     /* first: a back-end is a vdev, and so a port */
	struct port_ops ops; /* the vdev's, but for kind and close */
	void (*dev_close)(struct port *);

	/* the session */
	struct vhost_conn conn;
	struct vhost_ring ring[VDEV_QUEUES];
	int backend_fd; /* SET_BACKEND_REQ_FD: requests of ours, never waited for */
	uint64_t protocol;
	uint8_t status;         /* [VIRTIO 1.2 2.1] */
	bool have_features;     /* the last SET_FEATURES was good: rings may start */
	bool choosing;          /* it has asked for the features and not set any since */
	struct loop_timer poll; /* looks at polled rings */
	struct err err;         /* words for a refusal that is being made */
};

static inline struct vhost_be *vhost_be_of(struct port *p)
{
	return (struct vhost_be *)(void *)p;
}

/* vhost_req.c */
/* Do what the message in be->io asks and answer it. NULL, or why the session must end. */
const char *vhost_req_handle(struct vhost_be *);
/* As before any session. */
void vhost_req_init(struct vhost_be *);
/* Forget the session: rings, descriptors, memory, features. */
void vhost_req_forget(struct vhost_be *);
/* Tell the front-end that a ring broke. */
void vhost_req_broke(struct vhost_be *, unsigned queue);
/* Notify the driver of used buffers. */
void vhost_req_notify(struct vhost_be *, unsigned queue);
/* Look at polled rings, and come again. */
void vhost_req_poll(struct loop_timer *);

#endif
