/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_dev: the public face of port/vdev.h: a device over memory, descriptors and calls of the host
 * program, plugged into a network and out of it as one likes. It must not know a socket.
 *
 * A vdev lives on a loop. While the device is plugged into no network that is `idle`, which nobody
 * dispatches: what was deferred there moves along when the device is plugged in.
 */
#include "weft/dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "app/weft_int.h"
#include "port/vdev.h"

struct weft_dev_queue {
	struct weft_dev *dev;
	struct loop_fd kick; /* kick.fd: only while it is watched */
	int kick_fd, call_fd;
};

struct weft_dev {
	struct vdev vdev;
	struct spec spec;
	struct weft_dev_events events;
	void *ctx;
	struct loop idle; /* only its list of tasks */
	struct net *net;  /* NULL: not attached */
	struct weft_dev_queue queue[VDEV_QUEUES];
};

_Static_assert(WEFT_DEV_RX == (int)VDEV_RX && WEFT_DEV_TX == (int)VDEV_TX, "one numbering");
_Static_assert(WEFT_DEV_CONFIG == VDEV_CONFIG_LEN, "one configuration space");

static int queue_check(unsigned queue, struct err *err)
{
	if (queue < VDEV_QUEUES)
		return 0;
	return err_set(err, EINVAL, "queue %u: a device has 0 (receive) and 1 (transmit)", queue);
}

/* the vdev's callbacks */

static bool dev_notify(void *ctx, unsigned queue)
{
	struct weft_dev *d = ctx;

	if (d->queue[queue].call_fd >= 0)
		eventfd_write(d->queue[queue].call_fd, 1);
	else if (d->events.interrupt)
		d->events.interrupt(d->ctx, queue);
	return true;
}

static void dev_broke(void *ctx, unsigned queue, const char *reason)
{
	struct weft_dev *d = ctx;

	if (d->events.broke)
		d->events.broke(d->ctx, queue, reason);
}

static void kick_ready(struct loop_fd *kick, uint32_t events)
{
	struct weft_dev_queue *q = (void *)((char *)kick - offsetof(struct weft_dev_queue, kick));

	(void)events; /* edge-triggered: the count need not be read */
	vdev_kicked(&q->dev->vdev, (unsigned)(q - q->dev->queue));
}

/* life */

int weft_dev_new(struct weft_dev **out, const char *options, const struct weft_dev_events *events,
	void *ctx, char *text)
{
	const struct spec_ctx where = {.net = "", .rundir = "", .cwd = "."};
	struct err err = {""};
	struct vdev_config config = {0};
	struct weft_dev *d = calloc(1, sizeof(*d));
	char *words = malloc(strlen(options) + sizeof("device:"));
	int r = -ENOMEM;

	if (!d || !words) {
		err_set(&err, ENOMEM, "no memory");
		goto fail;
	}
	strcpy(stpcpy(words, "device:"), options);
	r = spec_parse(&d->spec, words, &where, &err);
	if (r)
		goto fail;
	config.mtu = d->spec.mtu;
	config.off = d->spec.off;
	memcpy(config.mac, d->spec.mac, sizeof(config.mac));
	TAILQ_INIT(&d->idle.tasks);
	d->idle.epfd = -1;
	vdev_init(&d->vdev, d->spec.name, &config, &d->idle, NULL);
	d->vdev.notify = dev_notify;
	d->vdev.broke = dev_broke;
	d->vdev.ctx = d;
	if (events)
		d->events = *events;
	d->ctx = ctx;
	for (unsigned q = 0; q < VDEV_QUEUES; q++)
		d->queue[q] = (struct weft_dev_queue){.dev = d,
			.kick = {.fd = -1, .ready = kick_ready},
			.kick_fd = -1,
			.call_fd = -1};
	free(words);
	*out = d;
	return 0;
fail:
	free(words);
	free(d);
	return weft_tell(r, &err, text);
}

void weft_dev_free(struct weft_dev *d)
{
	if (!d)
		return;
	weft_dev_detach(d);
	vdev_fini(&d->vdev);
	spec_fini(&d->spec);
	free(d);
}

/* the network */

static void dev_move(struct weft_dev *d, struct loop *to, struct log *log)
{
	struct port *p = &d->vdev.port;
	bool queued = d->vdev.broke_task.queued;

	loop_undefer(p->loop, &d->vdev.broke_task);
	p->loop = to;
	p->log = log;
	if (queued)
		loop_defer(to, &d->vdev.broke_task);
}

static int kick_watch(struct weft_dev_queue *q, struct err *err)
{
	int r;

	if (!q->dev->net || q->kick_fd < 0)
		return 0;
	r = loop_add(&q->dev->net->loop, &q->kick, q->kick_fd, EPOLLIN | EPOLLET);
	if (r)
		err_set(err, -r, "cannot watch the kick descriptor %d: %s; it must be an eventfd",
			q->kick_fd, strerror(-r));
	return r;
}

static void dev_gone(void *ctx)
{
	struct weft_dev *d = ctx;

	for (unsigned q = 0; q < VDEV_QUEUES; q++)
		loop_del(&d->net->loop, &d->queue[q].kick);
	dev_move(d, &d->idle, NULL);
	d->net = NULL;
}

int weft_dev_attach(struct weft_dev *d, struct weft_net *w, char *text)
{
	struct err err = {""};
	int r = 0;

	if (d->net)
		return weft_tell(err_set(&err, EBUSY, "device %s is attached to network %s already",
					 d->spec.name, d->net->name),
			&err, text);
	d->net = &w->net;
	dev_move(d, &w->net.loop, &w->net.log);
	for (unsigned q = 0; !r && q < VDEV_QUEUES; q++)
		r = kick_watch(&d->queue[q], &err);
	if (!r)
		r = net_plug(&w->net, &d->vdev.port, &d->spec, dev_gone, d, &err);
	if (r)
		dev_gone(d);
	return weft_tell(r, &err, text);
}

void weft_dev_detach(struct weft_dev *d)
{
	if (d->net)
		net_del(d->net, d->spec.name, NULL);
}

/* memory */

int weft_dev_memory_add(struct weft_dev *d, uint64_t gpa, uint64_t size, void *host, char *text)
{
	struct err err = {""};
	int r;

	vdev_mem_begin(&d->vdev);
	r = gmem_add(&d->vdev.mem, gpa, gpa, size, host, &err);
	vdev_mem_end(&d->vdev);
	return weft_tell(r, &err, text);
}

int weft_dev_memory_del(struct weft_dev *d, uint64_t gpa, uint64_t size, char *text)
{
	struct err err = {""};
	int r;

	vdev_mem_begin(&d->vdev);
	r = gmem_remove(&d->vdev.mem, gpa, gpa, size);
	vdev_mem_end(&d->vdev);
	if (r)
		err_set(&err, -r, "there is no memory region of %#llx bytes at %#llx",
			(unsigned long long)size, (unsigned long long)gpa);
	return weft_tell(r, &err, text);
}

/* features and configuration */

uint64_t weft_dev_features(const struct weft_dev *d)
{
	return d->vdev.offered;
}

int weft_dev_features_set(struct weft_dev *d, uint64_t features, char *text)
{
	struct err err = {""};

	return weft_tell(vdev_set_features(&d->vdev, features, &err), &err, text);
}

int weft_dev_config_read(const struct weft_dev *d, unsigned offset, unsigned len, void *to)
{
	return vdev_config_read(&d->vdev, offset, len, to);
}

/* rings */

int weft_dev_ring_size(struct weft_dev *d, unsigned queue, unsigned size, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (!r)
		r = vdev_set_ring_size(&d->vdev, queue, size, &err);
	return weft_tell(r, &err, text);
}

int weft_dev_ring_addr(struct weft_dev *d, unsigned queue, uint64_t desc, uint64_t avail,
	uint64_t used, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (!r)
		r = vdev_set_ring_addr(&d->vdev, queue, desc, avail, used, &err);
	return weft_tell(r, &err, text);
}

int weft_dev_ring_base(struct weft_dev *d, unsigned queue, uint16_t base, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (!r && d->vdev.ring[queue].started)
		r = err_set(&err, EBUSY, "queue %u: its base may not change while it runs", queue);
	if (!r)
		vdev_set_ring_base(&d->vdev, queue, base);
	return weft_tell(r, &err, text);
}

int weft_dev_ring_start(struct weft_dev *d, unsigned queue, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (r)
		return weft_tell(r, &err, text);
	vdev_ring_enable(&d->vdev, queue, true);
	vdev_ring_start(&d->vdev, queue);
	if (d->vdev.vq[queue].broken) {
		r = err_set(
			&err, EINVAL, "queue %u cannot start: %s", queue, d->vdev.vq[queue].broken);
		vdev_ring_stop(&d->vdev, queue);
	}
	return weft_tell(r, &err, text);
}

uint16_t weft_dev_ring_stop(struct weft_dev *d, unsigned queue)
{
	return queue < VDEV_QUEUES ? vdev_ring_stop(&d->vdev, queue) : 0;
}

int weft_dev_ring_enable(struct weft_dev *d, unsigned queue, int on, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (!r)
		vdev_ring_enable(&d->vdev, queue, on != 0);
	return weft_tell(r, &err, text);
}

void weft_dev_reset(struct weft_dev *d)
{
	vdev_reset(&d->vdev);
}

/* notifications */

void weft_dev_kicked(struct weft_dev *d, unsigned queue)
{
	if (queue < VDEV_QUEUES)
		vdev_kicked(&d->vdev, queue);
}

int weft_dev_kick_fd(struct weft_dev *d, unsigned queue, int fd, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (r)
		return weft_tell(r, &err, text);
	if (d->net)
		loop_del(&d->net->loop, &d->queue[queue].kick);
	d->queue[queue].kick_fd = fd;
	r = kick_watch(&d->queue[queue], &err);
	if (r)
		d->queue[queue].kick_fd = -1;
	else
		vdev_kicked(&d->vdev, queue); /* it may have come on the old one */
	return weft_tell(r, &err, text);
}

int weft_dev_call_fd(struct weft_dev *d, unsigned queue, int fd, char *text)
{
	struct err err = {""};
	int r = queue_check(queue, &err);

	if (!r)
		d->queue[queue].call_fd = fd;
	return weft_tell(r, &err, text);
}
