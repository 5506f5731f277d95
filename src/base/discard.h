/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discard: to close a descriptor that a peer sent, without waiting for that peer.
 *
 * close() asks the file first. A file system that a process serves (FUSE) answers when that process likes
 * to, a TCP socket lingers as long as its owner set, and closing a socket closes the files that lie
 * unread in it. So:
 *
 *	eventfd, memory of the kernel's own		close(): nobody is asked
 *	connected Unix stream socket			no more may come, what lies in it is discarded, close()
 *	anything else					close() in a thread of its own, which ends then
 *
 * That thread is the one exception to "no hidden threads": it is made only for a peer that sent what no
 * protocol of ours knows, has all signals blocked, and touches nothing but its descriptors. How many
 * there may be is for the owner to say, who asks discard_pending().
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
	struct discard_shared *shared; /* with its threads; NULL: there was none yet */
};

/* Zeroed memory is a good beginning. Threads that are under way end by themselves. */
void discard_fini(struct discard *);
void discard_fd(struct discard *, int fd);
/* How many descriptors are not closed yet. */
unsigned discard_pending(const struct discard *);

#endif
