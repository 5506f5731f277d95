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

void vhost_io_init(struct vhost_io *io, int fd, bool front, struct discard *odd)
{
	memset(io, 0, sizeof(*io));
	io->fd = fd;
	io->front = front;
	io->odd = odd;
	io->out_fd = -1;
}

void vhost_io_fini(struct vhost_io *io)
{
	vhost_io_next(io);
	io->out_len = io->out_done = 0;
	io->fd = io->out_fd = -1;
}

void vhost_io_next(struct vhost_io *io)
{
	for (unsigned i = 0; i < io->nfds; i++) {
		if (io->fds[i] >= 0)
			discard_fd(io->odd, io->fds[i]);
	}
	io->nfds = 0;
	io->fds_bad = false;
	io->have = 0;
	io->reply_size = 0;
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
			discard_fd(io->odd, fd);
			io->fds_bad = true;
		}
	}
}

static void fds_receive(struct vhost_io *io, struct msghdr *mh)
{
	/* The kernel has closed what did not fit our table of descriptors. */
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
		char buf[CMSG_SPACE(
			sizeof(int) * DISCARD_FDS)]; /* what does not fit the kernel closes */
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

static const char *reason_hung_up(const struct vhost_io *io)
{
	if (io->front)
		return io->have ? "the back-end hung up within a reply" : "the back-end hung up";
	return io->have ? "the front-end hung up within a message" : "the front-end hung up";
}

const char *vhost_io_gone(const struct vhost_io *io)
{
	return io->front ? "the back-end hung up without reading what it was sent"
			 : "the front-end hung up without reading its reply";
}

/* What can be judged as soon as bytes are there. The size of the payload is trusted from then on. */
static const char *io_check(const struct vhost_io *io)
{
	if (io->front && !io->reply_size)
		return "the back-end sent what nobody asked for";
	if (io->have != VHOST_USER_HDR_LEN)
		return NULL;
	return io->front ? vhost_user_check_reply(&io->msg.hdr, io->reply_to, io->reply_size)
			 : vhost_user_check_header(&io->msg.hdr);
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
		if (discard_pending(io->odd) > VHOST_IO_ODD_MAX)
			return "too many descriptors that take long to close";
		n = io_read(io, &iov);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return NULL;
		if (n < 0 && errno != ECONNRESET)
			return "cannot read from the session's socket";
		if (n <= 0)
			return reason_hung_up(io);
		io->have += (uint32_t)n;
		io->heard = true;
		reason = io_check(io);
		if (reason)
			return reason;
	}
}

static const char *io_send(
	struct vhost_io *io, const struct vhost_user_hdr *hdr, const void *payload, int fd)
{
	memcpy(io->out, hdr, sizeof(*hdr));
	memcpy(io->out + sizeof(*hdr), payload, hdr->size);
	io->out_len = (uint32_t)sizeof(*hdr) + hdr->size;
	io->out_done = 0;
	io->out_fd = fd;
	return vhost_io_flush(io);
}

const char *vhost_io_reply(struct vhost_io *io, const void *payload, uint32_t size)
{
	struct vhost_user_hdr hdr = {
		.request = io->msg.hdr.request,
		.flags = VHOST_USER_VERSION | VHOST_USER_F_REPLY,
		.size = size,
	};

	return io_send(io, &hdr, payload, -1);
}

const char *vhost_io_request(
	struct vhost_io *io, const struct vhost_user_msg *m, int fd, uint32_t reply_size)
{
	struct vhost_user_hdr hdr = m->hdr;

	hdr.flags |= VHOST_USER_VERSION;
	io->reply_to = hdr.request;
	io->reply_size = reply_size;
	return io_send(io, &hdr, m->u.bytes, fd);
}

static ssize_t io_write(struct vhost_io *io)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {.buf = {0}};
	struct iovec iov = {io->out + io->out_done, io->out_len - io->out_done};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (io->out_fd >= 0) {
		mh.msg_control = control.buf;
		mh.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &io->out_fd, sizeof(int));
	}
	return sendmsg(io->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

const char *vhost_io_flush(struct vhost_io *io)
{
	while (vhost_io_blocked(io)) {
		ssize_t n = io_write(io);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return NULL;
		if (n < 0)
			return vhost_io_gone(io);
		io->out_done += (uint32_t)n;
		io->out_fd = -1;
	}
	return NULL;
}
