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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)

struct job {
	STAILQ_ENTRY(job) entry;
	int fd;
};

/* The owner and the thread share it; the last one frees it. */
struct discard_shared {
	pthread_mutex_t lock;
	STAILQ_HEAD(, job) jobs;
	unsigned pending; /* with the one that is being closed */
	bool running;     /* there is a thread */
	bool orphan;      /* there is no owner any more */
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

static void *jobs_run(void *arg)
{
	struct discard_shared *s = arg;
	struct job *job;
	bool orphan;

	pthread_mutex_lock(&s->lock);
	while ((job = STAILQ_FIRST(&s->jobs))) {
		STAILQ_REMOVE_HEAD(&s->jobs, entry);
		pthread_mutex_unlock(&s->lock);
		close(job->fd);
		free(job);
		pthread_mutex_lock(&s->lock);
		s->pending--;
	}
	s->running = false;
	orphan = s->orphan;
	pthread_mutex_unlock(&s->lock);
	if (orphan)
		free(s);
	return NULL;
}

/* Locked. Where no thread can be made now, one is tried again whenever somebody asks what is pending. */
static void thread_wanted(struct discard_shared *s)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;

	if (s->running || STAILQ_EMPTY(&s->jobs) || pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->running = pthread_create(&thread, &attr, jobs_run, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

static struct discard_shared *shared_of(struct discard *d)
{
	if (d->shared)
		return d->shared;
	d->shared = calloc(1, sizeof(*d->shared));
	if (d->shared) {
		pthread_mutex_init(&d->shared->lock, NULL);
		STAILQ_INIT(&d->shared->jobs);
	}
	return d->shared;
}

/* Without memory for it it stays open: better than to stand still. */
static void close_elsewhere(struct discard *d, int fd)
{
	struct discard_shared *s = shared_of(d);
	struct job *job = malloc(sizeof(*job));

	if (!s || !job) {
		free(job);
		return;
	}
	job->fd = fd;
	pthread_mutex_lock(&s->lock);
	STAILQ_INSERT_TAIL(&s->jobs, job, entry);
	s->pending++;
	thread_wanted(s);
	pthread_mutex_unlock(&s->lock);
}

/* A stream that nothing more can come into and in which nothing lies: no descriptor, either. */
static bool socket_is_empty(int fd)
{
	int type = 0, unread = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_STREAM)
		return false; /* messages may be empty, and carry descriptors */
	return !shutdown(fd, SHUT_RD) && !ioctl(fd, FIONREAD, &unread) && !unread;
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
		if (socket_is_empty(fd)) {
			close(fd);
			break;
		}
		close_elsewhere(d, fd);
		break;
	case FD_OTHER:
		close_elsewhere(d, fd);
		break;
	}
}

unsigned discard_pending(const struct discard *d)
{
	struct discard_shared *s = d->shared;
	unsigned n;

	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	thread_wanted(s);
	n = s->pending;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void discard_fini(struct discard *d)
{
	struct discard_shared *s = d->shared;
	struct job *job;
	bool running;

	d->shared = NULL;
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->orphan = true;
	thread_wanted(s);
	running = s->running;
	pthread_mutex_unlock(&s->lock);
	if (running)
		return; /* it frees the rest */
	while ((job = STAILQ_FIRST(&s->jobs))) {
		STAILQ_REMOVE_HEAD(&s->jobs, entry);
		free(job);
	}
	free(s);
}
