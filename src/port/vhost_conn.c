/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_conn: see vhost_conn.h. One peer at a time. During a session a server accepts one more, which
 * waits, unheard, until the session ends or it hangs up itself; those after it wait in the kernel's
 * queue. Turning it away would be worse: front-ends that reconnect do so at once and for ever. A
 * session whose peer is dead has its end in the same loop, so nobody waits behind one.
 */
#include "port/vhost_conn.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKOFF_MIN  (100 * NSEC_PER_MSEC)
#define BACKOFF_MAX  (5 * NSEC_PER_SEC)
#define SHORTAGE     (1 * NSEC_PER_SEC) /* until we accept again when out of descriptors */
#define ROUND_ACCEPT 4

static const char *peer_name(const struct vhost_conn *c)
{
	return c->front ? "back-end" : "front-end";
}

static void conn_again(struct vhost_conn *c)
{
	if (c->server || c->closed || !c->path[0])
		return;
	loop_timer_set(c->loop, &c->again, loop_now(c->loop) + c->backoff);
	c->backoff = c->backoff * 2 < BACKOFF_MAX ? c->backoff * 2 : BACKOFF_MAX;
}

/* the session */

void vhost_conn_end(struct vhost_conn *c, const char *reason)
{
	bool heard = c->io.heard;
	int fd = c->watch.fd;

	if (fd < 0)
		return;
	loop_del(c->loop, &c->watch);
	vhost_io_fini(&c->io);
	discard_fd(&c->odd, fd); /* with what was not read */
	log_say(c->log, LOG_INFO, c->name, "session ended: %s", reason);
	if (heard || !c->server) /* who only came to see whether we listen was no session */
		c->last_end = reason;
	if (c->good)
		c->backoff = BACKOFF_MIN;
	conn_again(c);
	if (vhost_conn_is_awaited(c)) /* its turn comes from the loop */
		loop_mod(c->loop, &c->next, EPOLLOUT);
	c->ops->ended(c, reason);
}

static void session_ready(struct loop_fd *watch, uint32_t events)
{
	struct vhost_conn *c = (void *)((char *)watch - offsetof(struct vhost_conn, watch));
	const char *reason = vhost_io_flush(&c->io);
	uint32_t interest;

	if (!reason)
		reason = c->ops->work(c);
	if (!reason && vhost_io_blocked(&c->io) && events & (EPOLLHUP | EPOLLERR))
		reason = vhost_io_gone(&c->io);
	interest = vhost_io_blocked(&c->io) ? EPOLLOUT : EPOLLIN;
	if (!reason && vhost_conn_is_on(c) && interest != c->interest) {
		c->interest = interest;
		if (loop_mod(c->loop, watch, interest))
			reason = "cannot watch the session's socket";
	}
	if (reason)
		vhost_conn_end(c, reason);
}

int vhost_conn_begin(struct vhost_conn *c, int fd)
{
	int r;

	vhost_io_init(&c->io, fd, c->front, &c->odd);
	c->good = false;
	c->interest = c->front ? EPOLLOUT : EPOLLIN; /* a front-end speaks first */
	r = loop_add(c->loop, &c->watch, fd, c->interest);
	if (r) {
		close(fd);
		return r;
	}
	c->again_errno = 0;
	log_say(c->log, LOG_INFO, c->name, "a %s is there", peer_name(c));
	return 0;
}

/* server */

static void server_begin(struct vhost_conn *c, int fd)
{
	if (vhost_conn_begin(c, fd))
		log_say(c->log, LOG_ERROR, c->name, "cannot watch a %s's socket", peer_name(c));
}

static void next_drop(struct vhost_conn *c)
{
	int fd = c->next.fd;

	if (fd < 0)
		return;
	loop_del(c->loop, &c->next);
	discard_fd(&c->odd, fd);
}

/* It hung up, or its turn has come. Then others may wait. */
static void next_ready(struct loop_fd *next, uint32_t events)
{
	struct vhost_conn *c = (void *)((char *)next - offsetof(struct vhost_conn, next));
	int fd = next->fd;

	if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
		next_drop(c);
	} else if (!vhost_conn_is_on(c)) {
		loop_del(c->loop, next);
		server_begin(c, fd);
	} else {
		return;
	}
	loop_mod(c->loop, &c->listener, EPOLLIN);
}

static void server_take(struct vhost_conn *c, int fd)
{
	if (!vhost_conn_is_on(c)) {
		server_begin(c, fd);
		return;
	}
	if (loop_add(c->loop, &c->next, fd, EPOLLRDHUP)) {
		close(fd);
		return;
	}
	loop_mod(c->loop, &c->listener, 0);
	log_say(c->log, LOG_WARN, c->name, "a second %s waits until the first one leaves",
		peer_name(c));
}

/* Out of descriptors or memory, or of patience: a pending connection would wake us for ever. */
static void server_rest(struct vhost_conn *c, const char *why)
{
	log_say(c->log, LOG_ERROR, c->name, "cannot accept a %s: %s", peer_name(c), why);
	loop_mod(c->loop, &c->listener, 0);
	loop_timer_set(c->loop, &c->again, loop_now(c->loop) + SHORTAGE);
}

static void server_ready(struct loop_fd *listener, uint32_t events)
{
	struct vhost_conn *c = (void *)((char *)listener - offsetof(struct vhost_conn, listener));

	(void)events;
	if (discard_pending(&c->odd) > VHOST_IO_ODD_MAX) {
		server_rest(c, "descriptors of earlier ones are not closed yet");
		return;
	}
	for (unsigned n = 0; n < ROUND_ACCEPT && !vhost_conn_is_awaited(c); n++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			server_take(c, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			server_rest(c, strerror(errno));
		return;
	}
}

static int server_open(struct vhost_conn *c, struct err *err)
{
	int fd = usock_listen(&c->file, c->path, c->mode, c->group, err);
	int r;

	if (fd < 0)
		return fd;
	r = loop_add(c->loop, &c->listener, fd, EPOLLIN);
	if (!r)
		return 0;
	usock_remove(&c->file, c->path);
	close(fd);
	return err_set(err, -r, "cannot watch %s: %s", c->path, strerror(-r));
}

static void server_close(struct vhost_conn *c)
{
	int fd = c->listener.fd, waiting;

	if (fd < 0)
		return;
	loop_del(c->loop, &c->listener);
	usock_remove(&c->file, c->path);
	shutdown(fd, SHUT_RD); /* those who wait may have sent descriptors */
	while ((waiting = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		discard_fd(&c->odd, waiting);
	close(fd);
}

/* client */

static bool client_may_wait(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN;
}

static void client_connect(struct vhost_conn *c)
{
	struct err err = {"cannot watch the socket"};
	int r;

	if (discard_pending(&c->odd) > VHOST_IO_ODD_MAX) {
		conn_again(c);
		return;
	}
	r = usock_connect(c->path, &err);
	if (r >= 0)
		r = vhost_conn_begin(c, r);
	if (r >= 0)
		return;
	if (r != c->again_errno)
		log_say(c->log, LOG_INFO, c->name, "%s; trying again", err.text);
	c->again_errno = r;
	conn_again(c);
}

static int client_open(struct vhost_conn *c, struct err *err)
{
	int r = usock_connect(c->path, err);

	if (r < 0 && !client_may_wait(r))
		return r;
	if (r >= 0)
		r = vhost_conn_begin(c, r);
	if (r < 0)
		conn_again(c);
	return 0;
}

static void again_expired(struct loop_timer *t)
{
	struct vhost_conn *c = (void *)((char *)t - offsetof(struct vhost_conn, again));

	if (c->server)
		loop_mod(c->loop, &c->listener, vhost_conn_is_awaited(c) ? 0 : EPOLLIN);
	else
		client_connect(c);
}

/* both */

int vhost_conn_init(struct vhost_conn *c, const struct vhost_conn_ops *ops, bool front,
	const char *name, struct loop *loop, struct log *log)
{
	*c = (struct vhost_conn){
		.ops = ops,
		.name = name,
		.loop = loop,
		.log = log,
		.front = front,
		.watch = {.fd = -1, .ready = session_ready},
		.listener = {.fd = -1, .ready = server_ready},
		.next = {.fd = -1, .ready = next_ready},
		.backoff = BACKOFF_MIN,
		.last_end = "",
	};
	return loop_timer_reserve(loop, &c->again, again_expired);
}

int vhost_conn_prepare(struct vhost_conn *c, struct err *err)
{
	int r = evfd_prepare(&c->loop->evfd);

	if (r == -EAGAIN)
		return err_set(err, EAGAIN,
			"port %s: the system's asynchronous I/O is used up, without which a peer "
			"could "
			"stop us: raise fs.aio-max-nr (sysctl), or end who holds it",
			c->name);
	if (r)
		log_say(c->log, LOG_WARN, c->name,
			"no asynchronous I/O in this system: a %s that means ill can stop us",
			peer_name(c));
	return 0;
}

int vhost_conn_open(struct vhost_conn *c, const struct vhost_conn_config *config, struct err *err)
{
	int r = vhost_conn_prepare(c, err);

	if (r)
		return r;
	if (strlen(config->path) > USOCK_PATH_MAX)
		return err_set(err, ENAMETOOLONG,
			"path of a socket has %zu bytes, at most %d fit: %s", strlen(config->path),
			USOCK_PATH_MAX, config->path);
	strcpy(c->path, config->path);
	c->server = config->server;
	c->mode = config->mode;
	c->group = config->group;
	return c->server ? server_open(c, err) : client_open(c, err);
}

void vhost_conn_close(struct vhost_conn *c)
{
	c->closed = true;
	next_drop(c);
	vhost_conn_end(c, "the port was closed");
	server_close(c);
	loop_timer_cancel(c->loop, &c->again);
}

void vhost_conn_fini(struct vhost_conn *c)
{
	vhost_conn_close(c);
	loop_timer_release(c->loop, &c->again);
	discard_fini(&c->odd);
}
