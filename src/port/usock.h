/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usock: Unix stream sockets by path: listen so that nobody sees a wrong mode, take over what a
 * dead process left, never touch what is not ours, and connect without waiting. Knows no protocol.
 */
#ifndef PORT_USOCK_H
#define PORT_USOCK_H

#include <sys/types.h>

#include "base/err.h"

#define USOCK_PATH_MAX 107 /* bytes without the NUL: what a socket address holds */

/* The file that listening made, to know it again. */
struct usock_file {
	dev_t dev;
	ino_t ino;
};

/*
 * A non-blocking listening socket at `path` with `mode` and, unless (gid_t)-1, `group`, both in
 * force before the first connection can succeed. A socket file on which nobody listens is taken
 * over. Returns the descriptor, or -errno: EADDRINUSE a live process listens there; EEXIST there is
 * something that is no socket; ENAMETOOLONG; ENOENT no such folder; EACCES; EPERM the group.
 */
int usock_listen(struct usock_file *, const char *path, mode_t mode, gid_t group, struct err *);
/* Remove the file if it is still the one we made. The socket itself is closed by the caller. */
void usock_remove(const struct usock_file *, const char *path);
/*
 * A non-blocking connected socket, or -errno: ENOENT and ECONNREFUSED nobody listens, EAGAIN its
 * queue is full: try again later; ENAMETOOLONG, EACCES, ...
 */
int usock_connect(const char *path, struct err *);

#endif
