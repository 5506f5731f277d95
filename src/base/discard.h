/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discard: to close a descriptor that a peer sent, without waiting for that peer.
 *
 * close() asks the file first. A file system that a process serves (FUSE) answers when that process likes
 * to, a TCP socket lingers as long as its owner set, and closing a socket closes the files that lie
 * unread in it. So:
 *
 *	eventfd, memory of the kernel's own		close(): nobody is asked
 *	Unix stream socket, nothing unread in it	no more may come, close()
 *	anything else					close() in a thread
 *
 * What lies in a socket is never looked at: it may be thousands of descriptors, and each would be one of
 * ours. A `struct discard` has one thread, while there is something to close: it closes one after the
 * other, has all signals blocked, and touches nothing else. It is the one exception to "no hidden
 * threads". How much may be pending is for the owner to say, who asks discard_pending().
 */
#ifndef BASE_DISCARD_H
#define BASE_DISCARD_H

#include <stdbool.h>

#define DISCARD_FDS 253 /* SCM_MAX_FD: what one message of a Unix socket may carry */

enum fd_kind {
	FD_OTHER,
	FD_EVENTFD,
	FD_MEMORY, /* memfd, or a file of tmpfs or hugetlbfs */
	FD_SOCKET, /* AF_UNIX, and not one that listens */
};

/* What is it? Answered without asking any file system or protocol that could wait. */
enum fd_kind fd_kind(int fd);

struct discard {
	struct discard_shared *shared; /* with its thread; NULL: there was nothing yet */
};

/* Zeroed memory is a good beginning. A thread that is under way ends by itself. */
void discard_fini(struct discard *);
void discard_fd(struct discard *, int fd);
/* How many descriptors are not closed yet. */
unsigned discard_pending(const struct discard *);

#endif
