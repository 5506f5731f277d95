/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_io: whole vhost-user messages over a socket that never blocks: bytes and descriptors in,
 * one message out. Knows sizes and versions, no request by name. A peer may trickle bytes, send more
 * descriptors than fit, hang up anywhere, or not read what it is sent; each costs bounded memory
 * here.
 *
 *	back-end:   receive --(complete)--> the caller reads msg, takes descriptors --> reply? --> next
 *	front-end:  request --> receive --(complete)--> the caller reads msg --> next
 *
 * While a message is not yet sent (vhost_io_blocked) nothing more is read: the caller waits for room.
 */
#ifndef PORT_VHOST_IO_H
#define PORT_VHOST_IO_H

#include "base/discard.h"
#include "port/vhost_msg.h"

#define VHOST_IO_ODD_MAX 16 /* descriptors not closed yet, with which a session may go on */

struct vhost_io {
	int fd;                        /* the caller's, to close, too; -1: none */
	bool front;                    /* we are the front-end: requests go out, replies come in */
	uint32_t reply_to, reply_size; /* front-end: the reply that is due; size 0: none is */
	bool heard;                    /* the peer has said something */
	struct discard *odd;
	/* the message under way */
	struct vhost_user_msg msg;
	uint32_t have; /* bytes of it, header included */
	int fds[VHOST_USER_FDS_MAX];
	unsigned nfds;
	bool fds_bad; /* some were too many, or lost */
	/* the message on its way out */
	uint8_t out[VHOST_USER_HDR_LEN + sizeof(((struct vhost_user_msg *)0)->u)];
	uint32_t out_len, out_done;
	int out_fd; /* goes with its first byte; -1: none, or gone */
};

/* `odd` takes descriptors that nobody wants. */
void vhost_io_init(struct vhost_io *, int fd, bool front, struct discard *odd);
/* Discards descriptors received and not taken; not the socket. */
void vhost_io_fini(struct vhost_io *);
/*
 * Read on until a message is whole (*complete) or there is nothing more to read. Returns NULL, or
 * the constant reason why the stream is at its end.
 */
const char *vhost_io_receive(struct vhost_io *, bool *complete);
/* Take over the i-th descriptor of the message. */
int vhost_io_take(struct vhost_io *, unsigned i);
/* Answer the message with `size` bytes; NULL or the reason why the stream is at its end. */
const char *vhost_io_reply(struct vhost_io *, const void *payload, uint32_t size);
/*
 * Ask: m->hdr has request, size and perhaps NEED_REPLY. `fd`, or -1, stays the caller's and must be
 * open until all is sent. Of the answer `reply_size` bytes of payload are expected; 0: none comes.
 * NULL or the reason why the stream is at its end.
 */
const char *vhost_io_request(
	struct vhost_io *, const struct vhost_user_msg *m, int fd, uint32_t reply_size);
/* Send what is left of the message. */
const char *vhost_io_flush(struct vhost_io *);
/* The reason for a peer that hung up without reading what it was sent. */
const char *vhost_io_gone(const struct vhost_io *);
/* Done with the message: descriptors nobody took are discarded. */
void vhost_io_next(struct vhost_io *);

static inline bool vhost_io_blocked(const struct vhost_io *io)
{
	return io->out_done < io->out_len;
}

#endif
