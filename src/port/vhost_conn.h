/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_conn: where the peers of a vhost-user session come from, and the beginning and the end of a
 * session, for both ends: it listens (one peer at a time), or connects and reconnects with back-off,
 * or has one given connection. It owns the sockets and what travels on them (port/vhost_io.h). It
 * knows no request: what is said is its owner's matter.
 *
 *	server:  listening --accept--> session --end--> listening, or the one that waits
 *	client:  waiting --timer, connect--> session --end--> waiting (100 ms, doubled up to 5 s)
 *	given:   session --end--> nothing
 */
#ifndef PORT_VHOST_CONN_H
#define PORT_VHOST_CONN_H

#include "base/log.h"
#include "base/loop.h"
#include "port/usock.h"
#include "port/vhost_io.h"

struct vhost_conn;

struct vhost_conn_ops {
	/*
	 * Go on with the session in conn->io: there is something to read, or there is room again. A
	 * front-end is asked as soon as the session begins. NULL, or why the session must end.
	 */
	const char *(*work)(struct vhost_conn *);
	/* It has ended; the socket is closed already. */
	void (*ended)(struct vhost_conn *, const char *reason);
};

struct vhost_conn_config {
	const char *path;
	bool server;
	mode_t mode; /* of a listening socket */
	gid_t group; /* of a listening socket; (gid_t)-1: leave */
};

struct vhost_conn {
	const struct vhost_conn_ops *ops;
	const char *name; /* the port's, for the log */
	struct loop *loop;
	struct log *log;
	bool front; /* we are the front-end */

	char path[USOCK_PATH_MAX + 1]; /* "": one given connection, not more */
	bool server, closed;
	struct loop_fd listener; /* its fd is ours to close */
	struct usock_file file;
	struct loop_timer again; /* client: connect; server: accept again after a shortage */
	nsec_t backoff;          /* of the next attempt */
	int again_errno;         /* why the last attempt failed: logged when it changes */
	mode_t mode;
	gid_t group;

	struct loop_fd next;  /* server: a peer that waits for the end of the session; -1: none */
	struct loop_fd watch; /* the session; its fd is -1 while there is none */
	uint32_t interest;    /* what it is watched for */
	struct vhost_io io;
	struct discard odd;   /* descriptors of no known kind on their way out */
	bool good;            /* the owner's word: this session was worth a quick reconnect */
	const char *last_end; /* why the last session ended, "" before; not one in silence */
};

/* `name` is kept, not copied. 0 or -ENOMEM. */
int vhost_conn_init(struct vhost_conn *, const struct vhost_conn_ops *, bool front,
	const char *name, struct loop *, struct log *);
void vhost_conn_fini(struct vhost_conn *); /* closes, too */
/*
 * Before there is a peer: what signals its eventfds. vhost_conn_open() does it. -EAGAIN: the system's
 * asynchronous I/O is used up.
 */
int vhost_conn_prepare(struct vhost_conn *, struct err *);
/*
 * Listen, or begin to connect: a client whose server is not there yet waits for it. Errors:
 * EADDRINUSE a live process listens there; ENAMETOOLONG; EACCES; ENOENT no such folder; ...
 */
int vhost_conn_open(struct vhost_conn *, const struct vhost_conn_config *, struct err *);
/* Begin a session on a connected socket, which becomes the connection's, also on failure. */
int vhost_conn_begin(struct vhost_conn *, int fd);
/* End the session, if there is one: after back-off or at once there is a next one. */
void vhost_conn_end(struct vhost_conn *, const char *reason);
/* End it, and let there be no other. */
void vhost_conn_close(struct vhost_conn *);

static inline bool vhost_conn_is_on(const struct vhost_conn *c)
{
	return c->watch.fd >= 0;
}

/* Another peer has come meanwhile: it is served after this one. */
static inline bool vhost_conn_is_awaited(const struct vhost_conn *c)
{
	return c->next.fd >= 0;
}

#endif
