/* SPDX-License-Identifier: BSD-2-Clause */
/* evfd: see evfd.h. The C library knows no io_submit: the calls are made by number. */
#include "base/evfd.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENDS_MAX 64 /* collected together: one system call in so many signals */

void evfd_init(struct evfd *e)
{
	*e = (struct evfd){.idle = -1};
}

int evfd_prepare(struct evfd *e)
{
	aio_context_t aio = 0;

	if (e->aio)
		return 0;
	if (e->idle < 0)
		e->idle = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->idle < 0 || syscall(SYS_io_setup, ENDS_MAX, &aio))
		return -errno;
	e->aio = aio;
	return 0;
}

void evfd_fini(struct evfd *e)
{
	if (e->aio)
		syscall(SYS_io_destroy, e->aio);
	if (e->idle >= 0)
		close(e->idle);
	*e = (struct evfd){.idle = -1};
}

static void ends_collect(struct evfd *e)
{
	struct io_event ends[ENDS_MAX];

	while (syscall(SYS_io_getevents, e->aio, 0L, (long)ENDS_MAX, ends, NULL) == ENDS_MAX)
		;
	e->ended = 0;
}

static bool signal_submit(struct evfd *e, int fd)
{
	struct iocb read_nothing = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)e->idle,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)fd,
	};
	struct iocb *list = &read_nothing;

	return syscall(SYS_io_submit, e->aio, 1L, &list) == 1;
}

/*
 * A process that was forked does not have its parent's context: there, too, write() has to do. So it has if
 * the kernel is out of memory for a request; then it is written only where there is room just now.
 */
void evfd_signal(struct evfd *e, int fd)
{
	const uint64_t one = 1;
	ssize_t n;

	if (e->aio) {
		if (e->ended == ENDS_MAX)
			ends_collect(e);
		if (signal_submit(e, fd)) {
			e->ended++;
			return;
		}
		if (poll(&(struct pollfd){fd, POLLOUT, 0}, 1, 0) <= 0)
			return; /* full: a signal is pending already */
	}
	do {
		n = write(fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}
