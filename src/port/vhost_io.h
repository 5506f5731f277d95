/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_io: whole vhost-user messages over a socket that never blocks: bytes and descriptors in,
 *one reply out. Knows sizes and versions, no request by name. A peer may trickle bytes, send more
 * descriptors than fit, hang up anywhere, or not read its replies; each costs bounded memory here.
 *
 *	receive --(complete)--> the caller reads msg, takes descriptors --> reply? --> next
 *
 * While a reply is not yet sent (vhost_io_blocked) nothing more is read: the caller waits for room.
 */
#ifndef PORT_VHOST_IO_H
#define PORT_VHOST_IO_H

#include "port/vhost_msg.h"

struct vhost_io {
	int fd; /* the caller's, to close, too; -1: none */
	/* the message under way */
	struct vhost_user_msg msg;
	uint32_t have; /* bytes of it, header included */
	int fds[VHOST_USER_FDS_MAX];
	unsigned nfds;
	bool fds_bad; /* some were too many, or lost */
	/* the reply under way */
	uint8_t out[VHOST_USER_HDR_LEN + sizeof(((struct vhost_user_msg *)0)->u)];
	uint32_t out_len, out_done;
};

void vhost_io_init(struct vhost_io *, int fd);
/* Closes descriptors received and not taken; not the socket. */
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
/* Send what is left of the reply. */
const char *vhost_io_flush(struct vhost_io *);
/* Done with the message: descriptors nobody took are closed. */
void vhost_io_next(struct vhost_io *);

static inline bool vhost_io_blocked(const struct vhost_io *io)
{
	return io->out_done < io->out_len;
}

#endif
