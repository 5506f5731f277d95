/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_io: see vhost_io.h. Never is a byte read beyond the end of the message under way, so
 * whatever descriptors come with a read belong to that message.
 */
#include "port/vhost_io.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void vhost_io_init(struct vhost_io *io, int fd)
{
	memset(io, 0, sizeof(*io));
	io->fd = fd;
}

void vhost_io_fini(struct vhost_io *io)
{
	vhost_io_next(io);
	io->out_len = io->out_done = 0;
	io->fd = -1;
}

void vhost_io_next(struct vhost_io *io)
{
	for (unsigned i = 0; i < io->nfds; i++) {
		if (io->fds[i] >= 0)
			close(io->fds[i]);
	}
	io->nfds = 0;
	io->fds_bad = false;
	io->have = 0;
	memset(&io->msg, 0, sizeof(io->msg));
}

int vhost_io_take(struct vhost_io *io, unsigned i)
{
	int fd = io->fds[i];

	io->fds[i] = -1;
	return fd;
}

static void fds_of_control(struct vhost_io *io, const struct cmsghdr *c)
{
	unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

	for (unsigned i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (io->nfds < VHOST_USER_FDS_MAX) {
			io->fds[io->nfds++] = fd;
		} else {
			close(fd);
			io->fds_bad = true;
		}
	}
}

static void fds_receive(struct vhost_io *io, struct msghdr *mh)
{
	/* The kernel has closed what did not fit the buffer, or our table of descriptors. */
	if (mh->msg_flags & MSG_CTRUNC)
		io->fds_bad = true;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			fds_of_control(io, c);
	}
}

/* Where the next bytes go: the rest of the header, else the rest of the payload. */
static struct iovec io_want(struct vhost_io *io)
{
	uint32_t have = io->have;

	if (have < VHOST_USER_HDR_LEN)
		return (struct iovec){(uint8_t *)&io->msg.hdr + have, VHOST_USER_HDR_LEN - have};
	have -= VHOST_USER_HDR_LEN;
	return (struct iovec){io->msg.u.bytes + have, io->msg.hdr.size - have};
}

static ssize_t io_read(struct vhost_io *io, struct iovec *iov)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * VHOST_USER_FDS_MAX)];
	} control;
	struct msghdr mh = {
		.msg_iov = iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(io->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n >= 0)
		fds_receive(io, &mh);
	return n;
}

const char *vhost_io_receive(struct vhost_io *io, bool *complete)
{
	*complete = false;
	for (;;) {
		struct iovec iov = io_want(io);
		const char *reason;
		ssize_t n;

		if (!iov.iov_len) {
			*complete = true;
			return NULL;
		}
		n = io_read(io, &iov);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return NULL;
		if (n < 0 && errno != ECONNRESET)
			return "cannot read from the front-end's socket";
		if (n <= 0)
			return io->have ? "the front-end hung up within a message"
					: "the front-end hung up";
		io->have += (uint32_t)n;
		if (io->have == VHOST_USER_HDR_LEN) {
			/* Its size is trusted from here on. */
			reason = vhost_user_check_header(&io->msg.hdr);
			if (reason)
				return reason;
		}
	}
}

const char *vhost_io_reply(struct vhost_io *io, const void *payload, uint32_t size)
{
	struct vhost_user_hdr hdr = {
		.request = io->msg.hdr.request,
		.flags = VHOST_USER_VERSION | VHOST_USER_F_REPLY,
		.size = size,
	};

	memcpy(io->out, &hdr, sizeof(hdr));
	memcpy(io->out + sizeof(hdr), payload, size);
	io->out_len = (uint32_t)sizeof(hdr) + size;
	io->out_done = 0;
	return vhost_io_flush(io);
}

const char *vhost_io_flush(struct vhost_io *io)
{
	while (vhost_io_blocked(io)) {
		ssize_t n = send(io->fd, io->out + io->out_done, io->out_len - io->out_done,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return NULL;
		if (n < 0)
			return "the front-end hung up without reading its reply";
		io->out_done += (uint32_t)n;
	}
	return NULL;
}
