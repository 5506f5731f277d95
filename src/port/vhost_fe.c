/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_fe: the beginning and the end of a front-end's session, and notifications. What is asked is
 * in vhost_ask.c, where back-ends come from in vhost_conn.c, how messages travel in vhost_io.c.
 *
 * The descriptors for kicks and calls are made anew for each session: whoever served the last one
 * cannot call us any more. So should be the memory, which is the driver's (chunk_pool_renew): a
 * back-end that was left keeps what it has mapped.
 */
#include "port/vhost_fe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/vhost_fe_int.h"
#include "port/vnet.h"

#define PATIENCE (5 * NSEC_PER_SEC)

static struct vhost_fe *fe_of_conn(struct vhost_conn *c)
{
	return (void *)((char *)c - offsetof(struct vhost_fe, conn));
}

/* notifications */

static void call_ready(struct loop_fd *call, uint32_t events)
{
	struct vhost_fe_queue *q = (void *)((char *)call - offsetof(struct vhost_fe_queue, call));
	struct vhost_fe *fe = q->fe;

	(void)events; /* edge-triggered: the count need not be read */
	if (fe->up)
		fe->events->call(fe->ctx, (unsigned)(q - fe->queue));
	else
		q->early = true;
}

static void err_ready(struct loop_fd *err, uint32_t events)
{
	struct vhost_fe_queue *q = (void *)((char *)err - offsetof(struct vhost_fe_queue, err));

	(void)events;
	vhost_conn_end(&q->fe->conn, "the back-end says that a ring is broken");
}

static int signal_make(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static bool signal_watch(struct vhost_fe *fe, struct loop_fd *watch)
{
	int fd = signal_make();

	if (fd >= 0 && loop_add(fe->conn.loop, watch, fd, EPOLLIN | EPOLLET) == 0)
		return true;
	if (fd >= 0)
		close(fd);
	return false;
}

static void signal_drop(struct vhost_fe *fe, struct loop_fd *watch)
{
	int fd = watch->fd;

	if (fd < 0)
		return;
	loop_del(fe->conn.loop, watch);
	close(fd);
}

static void signals_drop(struct vhost_fe *fe)
{
	for (unsigned i = 0; i < VHOST_FE_RINGS; i++) {
		struct vhost_fe_queue *q = &fe->queue[i];

		if (q->kick >= 0)
			close(q->kick);
		q->kick = -1;
		q->early = false;
		signal_drop(fe, &q->call);
		signal_drop(fe, &q->err);
	}
}

const char *vhost_fe_signals(struct vhost_fe *fe)
{
	for (unsigned i = 0; i < VHOST_FE_RINGS; i++) {
		struct vhost_fe_queue *q = &fe->queue[i];

		q->kick = signal_make();
		if (q->kick < 0 || !signal_watch(fe, &q->call) || !signal_watch(fe, &q->err))
			return "cannot make the descriptors of the rings";
	}
	return NULL;
}

static void kick(const struct vhost_fe_queue *q)
{
	evfd_signal(&q->fe->conn.loop->evfd, q->kick);
}

void vhost_fe_kick(struct vhost_fe *fe, unsigned queue)
{
	if (fe->up)
		kick(&fe->queue[queue]);
}

/* the session */

/* Buffers may have been posted, and calls made, before: neither side need look by itself. */
static void fe_works(struct vhost_fe *fe)
{
	fe->up = true;
	fe->conn.good = true;
	loop_timer_cancel(fe->conn.loop, &fe->patience);
	log_say(fe->conn.log, LOG_INFO, fe->name, "the device works");
	fe->events->up(fe->ctx);
	for (unsigned i = 0; i < VHOST_FE_RINGS; i++) {
		kick(&fe->queue[i]);
		if (fe->queue[i].early)
			fe->events->call(fe->ctx, i);
		fe->queue[i].early = false;
	}
}

/* While it works nothing may come. */
static const char *fe_listen(struct vhost_fe *fe)
{
	bool complete;

	return vhost_io_receive(&fe->conn.io, &complete);
}

static const char *fe_ask(struct vhost_fe *fe)
{
	unsigned step = fe->step;
	bool done;
	const char *reason = vhost_ask(fe, &done);

	if (reason) {
		if (reason == fe->reason)
			return reason;
		snprintf(fe->reason, sizeof(fe->reason), "%s (at %s)", reason, vhost_ask_name(fe));
		return fe->reason;
	}
	if (done)
		fe_works(fe);
	else if (step != fe->step || !fe->patience.set)
		loop_timer_set(fe->conn.loop, &fe->patience, loop_now(fe->conn.loop) + PATIENCE);
	return NULL;
}

static const char *fe_work(struct vhost_conn *c)
{
	struct vhost_fe *fe = fe_of_conn(c);

	return fe->up ? fe_listen(fe) : fe_ask(fe);
}

static void patience_expired(struct loop_timer *t)
{
	struct vhost_fe *fe = (void *)((char *)t - offsetof(struct vhost_fe, patience));

	snprintf(fe->reason, sizeof(fe->reason), "the back-end does not answer %s",
		vhost_ask_name(fe));
	vhost_conn_end(&fe->conn, fe->reason);
}

static void fe_ended(struct vhost_conn *c, const char *reason)
{
	struct vhost_fe *fe = fe_of_conn(c);
	bool tell = fe->ring_set && !c->closed;

	loop_timer_cancel(c->loop, &fe->patience);
	signals_drop(fe);
	fe->step = 0;
	fe->asked = fe->ring_set = fe->up = fe->space_told = false;
	fe->features = fe->protocol = 0;
	if (tell)
		fe->events->down(fe->ctx, reason);
}

static const struct vhost_conn_ops conn_ops = {fe_work, fe_ended};

/* the memory */

/* What is written to the mapping must be read in the file: a private mapping shares nothing. */
static bool memory_is_shared(const struct vhost_fe_config *c)
{
	volatile uint8_t *p = c->mem;
	uint8_t old = *p, seen = old;
	ssize_t n;

	*p = (uint8_t)~old;
	n = pread(c->mem_fd, &seen, 1, 0);
	*p = old;
	return n == 1 && seen != old;
}

static int memory_check(const struct vhost_fe_config *c, struct err *err)
{
	struct stat st;
	int flags = fcntl(c->mem_fd, F_GETFL);

	if (flags < 0 || fstat(c->mem_fd, &st))
		return err_set(err, errno, "memory for the device: descriptor %d: %s", c->mem_fd,
			strerror(errno));
	if (!S_ISREG(st.st_mode) || (flags & O_ACCMODE) != O_RDWR)
		return err_set(err, EINVAL,
			"memory for the device: descriptor %d is not shared memory that can be "
			"written; make it with memfd_create",
			c->mem_fd);
	if (!c->mem_len || st.st_size < 0 || (uint64_t)st.st_size < c->mem_len)
		return err_set(err, EINVAL,
			"memory for the device: its file has %lld bytes, %zu are to be shared",
			(long long)st.st_size, c->mem_len);
	if (!memory_is_shared(c))
		return err_set(err, EINVAL,
			"memory for the device: it is not a shared mapping of its file's start; "
			"map it with MAP_SHARED");
	return 0;
}

/* both ends */

static struct vhost_fe *fe_new(const char *name, const struct vhost_fe_config *config,
	const struct vhost_fe_events *events, void *ctx, struct loop *loop, struct log *log)
{
	struct vhost_fe *fe = calloc(1, sizeof(*fe));

	if (!fe)
		return NULL;
	snprintf(fe->name, sizeof(fe->name), "%s", name);
	fe->config = *config;
	fe->config.path = NULL;
	fe->events = events;
	fe->ctx = ctx;
	for (unsigned i = 0; i < VHOST_FE_RINGS; i++) {
		fe->queue[i] = (struct vhost_fe_queue){
			.fe = fe,
			.kick = -1,
			.call = {.fd = -1, .ready = call_ready},
			.err = {.fd = -1, .ready = err_ready},
		};
	}
	if (vhost_conn_init(&fe->conn, &conn_ops, true, fe->name, loop, log) == 0) {
		if (loop_timer_reserve(loop, &fe->patience, patience_expired) == 0)
			return fe;
		vhost_conn_fini(&fe->conn);
	}
	free(fe);
	return NULL;
}

int vhost_fe_open(struct vhost_fe **out, const char *name, const struct vhost_fe_config *config,
	const struct vhost_fe_events *events, void *ctx, struct loop *loop, struct log *log,
	struct err *err)
{
	struct vhost_conn_config conn = {
		.path = config->path,
		.server = config->server,
		.mode = 0600,
		.group = (gid_t)-1,
	};
	struct vhost_fe *fe;
	int r = memory_check(config, err);

	if (r)
		return r;
	fe = fe_new(name, config, events, ctx, loop, log);
	if (!fe)
		return err_set(err, ENOMEM, "out of memory for port %s", name);
	r = vhost_conn_open(&fe->conn, &conn, err);
	if (r) {
		vhost_fe_close(fe);
		return r;
	}
	*out = fe;
	return 0;
}

void vhost_fe_close(struct vhost_fe *fe)
{
	struct loop *loop;

	if (!fe)
		return;
	loop = fe->conn.loop;
	if (fe->up)
		vhost_ask_stop(fe);
	vhost_conn_fini(&fe->conn);
	loop_timer_release(loop, &fe->patience);
	free(fe);
}

void vhost_fe_end(struct vhost_fe *fe, const char *reason)
{
	vhost_conn_end(&fe->conn, reason);
}

bool vhost_fe_up(const struct vhost_fe *fe)
{
	return fe->up;
}

const char *vhost_fe_last_end(const struct vhost_fe *fe)
{
	return fe->conn.last_end;
}

bool vhost_fe_mac(const struct vhost_fe *fe, uint8_t mac[6])
{
	if (!fe->space_told || !(fe->features & VNET_BIT(MAC)))
		return false;
	memcpy(mac, fe->space, 6);
	return true;
}

uint16_t vhost_fe_mtu(const struct vhost_fe *fe)
{
	if (!fe->space_told || !(fe->features & VNET_BIT(MTU)))
		return 0;
	return (uint16_t)(fe->space[10] | fe->space[11] << 8);
}
