/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discard: see discard.h. The kind of an eventfd is told by the name that its descriptor has in /proc,
 * which no file system is asked for; without /proc by having no file type at all. In that question
 * AT_STATX_DONT_SYNC keeps a file system from asking whoever serves it.
 */
#include "base/discard.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM_READS 4096 /* more than lies in a socket buffer */
#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif
#define STACK_BYTES (64 * 1024)

/* The owner and each thread hold it; the last one frees it. */
struct discard_shared {
	atomic_uint holders;
	atomic_uint pending;
};

struct job {
	struct discard_shared *shared;
	int fd;
};

/* ---- kinds ---------------------------------------------------------------------------------- */

static bool is_unix(int fd)
{
	int domain = 0, listens = 1;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX)
		return false;
	len = sizeof(int);
	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) && !listens;
}

static bool is_eventfd(int fd)
{
	char proc[32], name[32] = "";
	struct statx st;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (readlink(proc, name, sizeof(name) - 1) >= 0)
		return !strcmp(name, "anon_inode:[eventfd]");
	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       !(st.stx_mode & S_IFMT);
}

enum fd_kind fd_kind(int fd)
{
	if (fcntl(fd, F_GET_SEALS) >= 0)
		return FD_MEMORY;
	if (is_eventfd(fd))
		return FD_EVENTFD;
	return is_unix(fd) ? FD_SOCKET : FD_OTHER;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void shared_drop(struct discard_shared *s)
{
	if (atomic_fetch_sub(&s->holders, 1) == 1)
		free(s);
}

static void *job_run(void *arg)
{
	struct job *job = arg;

	close(job->fd);
	atomic_fetch_sub(&job->shared->pending, 1);
	shared_drop(job->shared);
	free(job);
	return NULL;
}

static bool thread_start(struct job *job)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, job_run, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc == 0;
}

/* Where there is no thread it stays open, and pending: better than to stand still. */
static void close_elsewhere(struct discard *d, int fd)
{
	struct job *job = malloc(sizeof(*job));

	if (!d->shared)
		d->shared = calloc(1, sizeof(*d->shared));
	if (!d->shared || !job) {
		free(job);
		return;
	}
	if (!d->shared->holders)
		d->shared->holders = 1;
	*job = (struct job){d->shared, fd};
	atomic_fetch_add(&d->shared->pending, 1);
	atomic_fetch_add(&d->shared->holders, 1);
	if (thread_start(job))
		return;
	atomic_fetch_sub(&d->shared->holders, 1);
	free(job);
}

/* ---- sockets -------------------------------------------------------------------------------- */

/* One that came inside of another socket; another socket in there may hold more. */
static void inner_discard(struct discard *d, int fd)
{
	enum fd_kind kind = fd_kind(fd);

	if (kind == FD_EVENTFD || kind == FD_MEMORY)
		close(fd);
	else
		close_elsewhere(d, fd);
}

/* What lies in front; false if there is nothing, or it is the end. */
static bool stream_read(struct discard *d, int sock)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DISCARD_FDS * sizeof(int))];
	} control;
	uint8_t bytes[4096];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		/* the peer may have asked for its own credentials, on this socket, too */
		if (c->cmsg_level != SOL_SOCKET ||
			(c->cmsg_type != SCM_RIGHTS && c->cmsg_type != SCM_PIDFD))
			continue;
		for (size_t i = 0; i < fds; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			inner_discard(d, fd);
		}
	}
	return n > 0;
}

/*
 * Only the end of a stream is known when it is met: datagrams may be empty, with more behind them. And
 * what a stream can hold is bounded, but its options are the peer's: no belief in that bound.
 */
static void socket_discard(struct discard *d, int fd)
{
	int type = 0, left = STREAM_READS;
	socklen_t len = sizeof(type);

	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
	shutdown(fd, SHUT_RD);
	if (type == SOCK_STREAM) {
		while (left && stream_read(d, fd))
			left--;
	}
	if (type == SOCK_STREAM && left)
		close(fd);
	else
		close_elsewhere(d, fd);
}

/* ---- both ----------------------------------------------------------------------------------- */

void discard_fd(struct discard *d, int fd)
{
	switch (fd_kind(fd)) {
	case FD_EVENTFD:
	case FD_MEMORY:
		close(fd);
		break;
	case FD_SOCKET:
		socket_discard(d, fd);
		break;
	case FD_OTHER:
		close_elsewhere(d, fd);
		break;
	}
}

unsigned discard_pending(const struct discard *d)
{
	return d->shared ? atomic_load(&d->shared->pending) : 0;
}

void discard_fini(struct discard *d)
{
	if (d->shared)
		shared_drop(d->shared);
	d->shared = NULL;
}
