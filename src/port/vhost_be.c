/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_be: where front-ends come from, and the beginning and the end of a session. What requests
 * do is in vhost_req.c, how messages travel in vhost_io.c.
 *
 *	server:  listening --accept--> session --end--> listening
 *	client:  waiting --timer, connect--> session --end--> waiting (100 ms, doubled up to 5 s)
 *	given:   session --end--> nothing
 *
 * One front-end at a time. A server goes on accepting during a session and closes what comes, at
 * once: a front-end that reconnects then tries again, instead of hanging in a queue that nobody
 * serves. Only if the old one is dead and its end not yet noticed does the new one take its place.
 */
#include "port/vhost_be_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKOFF_MIN  (100 * NSEC_PER_MSEC)
#define BACKOFF_MAX  (5 * NSEC_PER_SEC)
#define SHORTAGE     (1 * NSEC_PER_SEC) /* until we accept again when out of descriptors */
#define ROUND_MSGS   16                 /* handled before others get their turn */
#define ROUND_ACCEPT 4

static struct vhost_be *be_of_const(const struct port *p)
{
	return (struct vhost_be *)(uintptr_t)p;
}

static void be_again(struct vhost_be *be)
{
	if (be->server || be->closed || !be->path[0])
		return;
	loop_timer_set(be->dev.port.loop, &be->again, loop_now(be->dev.port.loop) + be->backoff);
	be->backoff = be->backoff * 2 < BACKOFF_MAX ? be->backoff * 2 : BACKOFF_MAX;
}

/* the session */

static void session_end(struct vhost_be *be, const char *reason)
{
	struct port *p = &be->dev.port;
	int fd = be->watch.fd;

	if (fd < 0)
		return;
	loop_del(p->loop, &be->watch);
	vhost_io_fini(&be->io);
	close(fd);
	vhost_req_forget(be);
	be->last_end = reason;
	log_say(p->log, LOG_INFO, p->name, "session ended: %s", reason);
	if (be->greeted)
		be->backoff = BACKOFF_MIN;
	be_again(be);
}

/* Read and do messages, until there is no more, no room for a reply, or others must have a turn. */
static const char *session_messages(struct vhost_be *be)
{
	for (unsigned n = 0; n < ROUND_MSGS && !vhost_io_blocked(&be->io); n++) {
		bool complete;
		const char *reason = vhost_io_receive(&be->io, &complete);

		if (reason || !complete)
			return reason;
		reason = vhost_req_handle(be);
		vhost_io_next(&be->io);
		if (reason)
			return reason;
		be->greeted = true;
	}
	return NULL;
}

static void session_ready(struct loop_fd *watch, uint32_t events)
{
	struct vhost_be *be = (void *)((char *)watch - offsetof(struct vhost_be, watch));
	bool was_blocked = vhost_io_blocked(&be->io), blocked;
	const char *reason = was_blocked ? vhost_io_flush(&be->io) : NULL;

	if (!reason)
		reason = session_messages(be);
	blocked = vhost_io_blocked(&be->io);
	if (!reason && blocked && events & (EPOLLHUP | EPOLLERR))
		reason = "the front-end hung up without reading its reply";
	if (!reason && blocked != was_blocked &&
		loop_mod(be->dev.port.loop, watch, blocked ? EPOLLOUT : EPOLLIN))
		reason = "cannot watch the front-end's socket";
	if (reason)
		session_end(be, reason);
}

static int session_begin(struct vhost_be *be, int fd)
{
	struct port *p = &be->dev.port;
	int r;

	vhost_io_init(&be->io, fd);
	be->greeted = false;
	r = loop_add(p->loop, &be->watch, fd, EPOLLIN);
	if (r) {
		close(fd);
		return r;
	}
	be->again_errno = 0;
	log_say(p->log, LOG_INFO, p->name, "a front-end is there");
	return 0;
}

/* It hung up, but its end waits behind the event that is being delivered. */
static bool session_is_dead(const struct vhost_be *be)
{
	struct pollfd pfd = {.fd = be->watch.fd, .events = POLLRDHUP};

	return poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR | POLLRDHUP);
}

/* server */

static void server_take(struct vhost_be *be, int fd)
{
	struct port *p = &be->dev.port;

	if (be->watch.fd >= 0 && session_is_dead(be))
		session_end(be, "the front-end hung up, another came");
	if (be->watch.fd >= 0) {
		close(fd);
		log_say(p->log, LOG_WARN, p->name,
			"turned a second front-end away: one is connected");
		return;
	}
	if (session_begin(be, fd))
		log_say(p->log, LOG_ERROR, p->name, "cannot watch a front-end's socket");
}

/* Out of descriptors or memory: a pending connection would wake us for ever. */
static void server_rest(struct vhost_be *be, int error)
{
	struct port *p = &be->dev.port;

	log_say(p->log, LOG_ERROR, p->name, "cannot accept a front-end: %s", strerror(error));
	loop_mod(p->loop, &be->listener, 0);
	loop_timer_set(p->loop, &be->again, loop_now(p->loop) + SHORTAGE);
}

static void server_ready(struct loop_fd *listener, uint32_t events)
{
	struct vhost_be *be = (void *)((char *)listener - offsetof(struct vhost_be, listener));

	(void)events;
	for (unsigned n = 0; n < ROUND_ACCEPT; n++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			server_take(be, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			server_rest(be, errno);
		return;
	}
}

static int server_open(struct vhost_be *be, struct err *err)
{
	int fd = usock_listen(&be->file, be->path, be->mode, be->group, err);
	int r;

	if (fd < 0)
		return fd;
	r = loop_add(be->dev.port.loop, &be->listener, fd, EPOLLIN);
	if (!r)
		return 0;
	usock_remove(&be->file, be->path);
	close(fd);
	return err_set(err, -r, "cannot watch %s: %s", be->path, strerror(-r));
}

static void server_close(struct vhost_be *be)
{
	int fd = be->listener.fd;

	if (fd < 0)
		return;
	loop_del(be->dev.port.loop, &be->listener);
	usock_remove(&be->file, be->path);
	close(fd);
}

/* client */

static bool client_may_wait(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN;
}

static void client_connect(struct vhost_be *be)
{
	struct port *p = &be->dev.port;
	struct err err = {"cannot watch the socket"};
	int r = usock_connect(be->path, &err);

	if (r >= 0)
		r = session_begin(be, r);
	if (r >= 0)
		return;
	if (r != be->again_errno)
		log_say(p->log, LOG_INFO, p->name, "%s; trying again", err.text);
	be->again_errno = r;
	be_again(be);
}

static int client_open(struct vhost_be *be, struct err *err)
{
	int r = usock_connect(be->path, err);

	if (r < 0 && !client_may_wait(r))
		return r;
	if (r >= 0)
		r = session_begin(be, r);
	if (r < 0)
		be_again(be);
	return 0;
}

static void again_expired(struct loop_timer *t)
{
	struct vhost_be *be = (void *)((char *)t - offsetof(struct vhost_be, again));

	if (be->server)
		loop_mod(be->dev.port.loop, &be->listener, EPOLLIN);
	else
		client_connect(be);
}

/* the vdev's callbacks */

static void be_notify(void *ctx, unsigned queue)
{
	vhost_req_notify(ctx, queue);
}

static void be_broke(void *ctx, unsigned queue, const char *reason)
{
	(void)reason; /* the vdev has logged it */
	vhost_req_broke(ctx, queue);
}

/* the port */

static void be_close(struct port *p)
{
	struct vhost_be *be = vhost_be_of(p);

	if (be->closed)
		return;
	be->closed = true;
	p->events = NULL;
	session_end(be, "the port was closed");
	server_close(be);
	loop_timer_cancel(p->loop, &be->again);
	be->dev_close(p);
}

static struct vhost_be *be_new(const char *name, const struct vdev_config *dev, struct loop *loop,
	struct log *log, struct err *err)
{
	struct vhost_be *be = calloc(1, sizeof(*be));

	if (!be)
		goto no_memory;
	vdev_init(&be->dev, name, dev, loop, log);
	be->dev.notify = be_notify;
	be->dev.broke = be_broke;
	be->dev.ctx = be;
	be->ops = *be->dev.port.ops;
	be->ops.kind = "vhost-user";
	be->dev_close = be->ops.close;
	be->ops.close = be_close;
	be->dev.port.ops = &be->ops;
	be->watch = (struct loop_fd){.fd = -1, .ready = session_ready};
	be->listener = (struct loop_fd){.fd = -1, .ready = server_ready};
	be->backoff = BACKOFF_MIN;
	be->last_end = "";
	vhost_req_init(be);
	if (loop_timer_reserve(loop, &be->again, again_expired) == 0) {
		if (loop_timer_reserve(loop, &be->poll, vhost_req_poll) == 0)
			return be;
		loop_timer_release(loop, &be->again);
	}
	vdev_fini(&be->dev);
	free(be);
no_memory:
	err_set(err, ENOMEM, "out of memory for port %s", name);
	return NULL;
}

int vhost_be_open(struct port **port, const char *name, const struct vhost_be_config *config,
	struct loop *loop, struct log *log, struct err *err)
{
	struct vhost_be *be;
	int r;

	if (strlen(config->path) > USOCK_PATH_MAX)
		return err_set(err, ENAMETOOLONG,
			"path of a socket has %zu bytes, at most %d fit: %s", strlen(config->path),
			USOCK_PATH_MAX, config->path);
	be = be_new(name, &config->dev, loop, log, err);
	if (!be)
		return -ENOMEM;
	strcpy(be->path, config->path);
	be->server = config->server;
	be->mode = config->mode;
	be->group = config->group;
	r = be->server ? server_open(be, err) : client_open(be, err);
	if (r) {
		vhost_be_free(&be->dev.port);
		return r;
	}
	*port = &be->dev.port;
	return 0;
}

int vhost_be_open_fd(struct port **port, const char *name, const struct vdev_config *dev, int fd,
	struct loop *loop, struct log *log, struct err *err)
{
	struct vhost_be *be = be_new(name, dev, loop, log, err);
	int r;

	if (!be) {
		close(fd);
		return -ENOMEM;
	}
	r = session_begin(be, fd);
	if (r) {
		vhost_be_free(&be->dev.port);
		return err_set(err, -r, "cannot watch the front-end's socket: %s", strerror(-r));
	}
	*port = &be->dev.port;
	return 0;
}

void vhost_be_free(struct port *p)
{
	struct vhost_be *be = vhost_be_of(p);

	if (!p)
		return;
	be_close(p);
	loop_timer_release(p->loop, &be->again);
	loop_timer_release(p->loop, &be->poll);
	vdev_fini(&be->dev);
	free(be);
}

const char *vhost_be_path(const struct port *p)
{
	return be_of_const(p)->path;
}

bool vhost_be_server(const struct port *p)
{
	return be_of_const(p)->server;
}

const struct vdev *vhost_be_vdev(const struct port *p)
{
	return &be_of_const(p)->dev;
}

bool vhost_be_connected(const struct port *p)
{
	return be_of_const(p)->watch.fd >= 0;
}

const char *vhost_be_last_end(const struct port *p)
{
	return be_of_const(p)->last_end;
}
