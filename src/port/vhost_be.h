/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_be: the back-end side of a vhost-user session on a socket, connected to a vdev. It listens
 * (and takes one front-end at a time), or connects and reconnects with back-off. A front-end that
 * lies, hangs up at any byte or stops reading costs its own session only: descriptors closed, memory
 * unmapped, device reset, and the port waits for the next one.
 */
#ifndef PORT_VHOST_BE_H
#define PORT_VHOST_BE_H

#include <sys/types.h>

#include "port/vdev.h"

#define VHOST_CALL_US     200 /* by measurement: docs/performance.md */
#define VHOST_CALL_US_MAX 10000

struct vhost_be_config {
	const char *path; /* < 108 bytes */
	bool server;      /* listen; false: connect and reconnect */
	mode_t mode;      /* of the listening socket, e.g. 0600 */
	gid_t group;      /* (gid_t)-1: leave */
	uint32_t
		call_us; /* between two notifications of a bulk stream (port/hold.h), 0: never wait */
	struct vdev_config dev;
};

/* Errors: EADDRINUSE: a live process listens there (a stale socket file is taken over); ENAMETOOLONG; EACCES; ENOENT. */
int vhost_be_open(struct port **, const char *name, const struct vhost_be_config *, struct loop *,
	struct log *, struct err *);
/*
 * The same for one connected stream socket, which becomes the port's, also on failure. When that
 * front-end goes, the port stays without link for ever: the caller has vhost_be_connected().
 */
int vhost_be_open_fd(struct port **, const char *name, const struct vdev_config *, int fd,
	struct loop *, struct log *, struct err *);
void vhost_be_free(struct port *); /* closes, removes the socket file it made */
const char *vhost_be_path(const struct port *);
bool vhost_be_server(const struct port *);
/* The vdev behind the port, for show: features, rings. */
const struct vdev *vhost_be_vdev(const struct port *);
bool vhost_be_connected(const struct port *);
bool vhost_be_awaited(const struct port *); /* another front-end waits for the end of this one */
uint64_t vhost_be_held(const struct port *, unsigned queue); /* notifications that waited */
const char *vhost_be_last_end(const struct port *); /* why the last session ended, "" if none did */

#endif
