/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_be: the vdev and its connection put together as a port. Where front-ends come from is in
 * vhost_conn.c, what their requests do in vhost_req.c, how messages travel in vhost_io.c.
 */
#include "port/vhost_be_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUND_MSGS 16 /* handled before others get their turn */

static struct vhost_be *be_of_const(const struct port *p)
{
	return (struct vhost_be *)(uintptr_t)p;
}

/* the connection's callbacks */

static struct vhost_be *be_of_conn(struct vhost_conn *c)
{
	return (void *)((char *)c - offsetof(struct vhost_be, conn));
}

/* QEMU leaves, and comes again, when a feature that its guest has is not offered any more. */
static const char *be_left(const struct vhost_be *be, const char *reason)
{
	return be->choosing ? "the front-end hung up after it had read the features: if that "
			      "repeats, its guest has one that is not offered; restart the guest, "
			      "or offer it (see off=)"
			    : reason;
}

/* Read and do messages, until there is no more, no room for a reply, or others must have a turn. */
static const char *be_work(struct vhost_conn *c)
{
	for (unsigned n = 0; n < ROUND_MSGS && !vhost_io_blocked(&c->io); n++) {
		bool complete;
		const char *reason = vhost_io_receive(&c->io, &complete);

		if (reason)
			return be_left(be_of_conn(c), reason);
		if (!complete)
			return NULL;
		reason = vhost_req_handle(be_of_conn(c));
		vhost_io_next(&c->io);
		if (reason)
			return reason;
		c->good = true;
	}
	return NULL;
}

static void be_ended(struct vhost_conn *c, const char *reason)
{
	(void)reason;
	vhost_req_forget(be_of_conn(c));
}

static const struct vhost_conn_ops conn_ops = {be_work, be_ended};

/* the vdev's callbacks */

static bool be_notify(void *ctx, unsigned queue)
{
	struct vhost_be *be = ctx;

	if (!hold_wish(&be->ring[queue].hold))
		return false;
	vhost_req_notify(be, queue);
	return true;
}

static void be_held(struct hold *h)
{
	struct vhost_ring *r = (void *)((char *)h - offsetof(struct vhost_ring, hold));
	unsigned queue = (unsigned)(r - r->be->ring);
	struct portq *q = &r->be->dev.port.q;

	(queue == VDEV_RX ? &q->out : &q->in)->notify++;
	vhost_req_notify(r->be, queue);
}

static int holds_init(struct vhost_be *be)
{
	struct portq *q = &be->dev.port.q;
	int r = 0;

	for (unsigned i = 0; i < VDEV_QUEUES && !r; i++)
		r = hold_init(&be->ring[i].hold, be->dev.port.loop, i == VDEV_RX ? &q->out : &q->in,
			be_held);
	return r;
}

static void be_timers_release(struct vhost_be *be)
{
	loop_timer_release(be->dev.port.loop, &be->poll);
	for (unsigned i = 0; i < VDEV_QUEUES; i++)
		hold_fini(&be->ring[i].hold);
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

	if (be->conn.closed)
		return;
	p->events = NULL;
	vhost_conn_close(&be->conn);
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
	vhost_req_init(be);
	if (vhost_conn_init(&be->conn, &conn_ops, false, be->dev.port.name, loop, log) == 0) {
		if (loop_timer_reserve(loop, &be->poll, vhost_req_poll) == 0 && holds_init(be) == 0)
			return be;
		be_timers_release(be);
		vhost_conn_fini(&be->conn);
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
	struct vhost_conn_config conn = {
		.path = config->path,
		.server = config->server,
		.mode = config->mode,
		.group = config->group,
	};
	struct vhost_be *be = be_new(name, &config->dev, loop, log, err);
	int r;

	if (!be)
		return -ENOMEM;
	for (unsigned q = 0; q < VDEV_QUEUES; q++)
		be->ring[q].hold.gap = config->call_us * NSEC_PER_USEC;
	r = vhost_conn_open(&be->conn, &conn, err);
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
	r = vhost_conn_prepare(&be->conn, err);
	if (r) {
		close(fd);
		vhost_be_free(&be->dev.port);
		return r;
	}
	r = vhost_conn_begin(&be->conn, fd);
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
	vhost_conn_fini(&be->conn);
	be_timers_release(be);
	vdev_fini(&be->dev);
	free(be);
}

uint64_t vhost_be_held(const struct port *p, unsigned queue)
{
	return be_of_const(p)->ring[queue].hold.n_held;
}

const char *vhost_be_path(const struct port *p)
{
	return be_of_const(p)->conn.path;
}

bool vhost_be_server(const struct port *p)
{
	return be_of_const(p)->conn.server;
}

const struct vdev *vhost_be_vdev(const struct port *p)
{
	return &be_of_const(p)->dev;
}

bool vhost_be_awaited(const struct port *p)
{
	return vhost_conn_is_awaited(&be_of_const(p)->conn);
}

bool vhost_be_connected(const struct port *p)
{
	return vhost_conn_is_on(&be_of_const(p)->conn);
}

const char *vhost_be_last_end(const struct port *p)
{
	return be_of_const(p)->conn.last_end;
}
