/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap: the kernel as a driver. One read or write per frame, each with its virtio-net header.
 *
 * Lending: one readv fills
 *
 *	burst head[i]:  [ room .... | 12-byte header | head, 128 bytes ]    arena: [ the rest ]
 *
 * so the only copy before the receiver's is the kernel's own. The arena is a stack of tails,
 * emptied when everything lent is settled. What settle gives back stays where it is and is
 * remembered in `kept`; the next pull lends it again before it reads anything new.
 *
 * Waking: the descriptor is watched edge-triggered, for good, so arming costs no system call.
 *`empty` says that the kernel had nothing at the last read and no edge came since; only then may we
 * sleep.
 *
 * Link and MTU follow the interface, told by a routing socket that hears of this interface only
 * (port/tap_link.h). A deleted interface is gone for good.
 *
 * It must not know switches, guests, or how the interface was made (port/tap_ns.h).
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "port/tap.h"
#include "port/tap_ns.h"
#include "port/vnet.h"

#define TAP_EVENTS (EPOLLIN | EPOLLOUT | EPOLLET)

#define TAIL_MAX   (FRAME_MAX - FRAME_HEAD + 1) /* one more: a frame too long shows */
#define TAIL_ALIGN 64                           /* copies start at a cache line */
/* A burst stops at BURST_BYTES, so its last frame may begin just before that. */
#define ARENA_SIZE (BURST_BYTES + BURST_FRAMES * TAIL_ALIGN + TAIL_MAX)

/* A frame that went back: its tail lies in the arena, its head here. */
struct tap_kept {
	struct offload off;
	uint16_t head_len;
	struct iovec tail;
	uint8_t head[FRAME_PULL_MAX];
};

struct tap {
	struct port port; /* first: a tap is a port */
	char ifname[IFNAMSIZ];
	int fd, watch_fd;
	struct loop_fd io;
	struct loop_fd watch; /* news of the link */
	unsigned ifindex;
	uint64_t features;
	struct loop_task lost; /* found out inside a port call: to be told later */
	bool empty;            /* the kernel had nothing, and no edge since */
	bool armed, room_armed;
	bool full; /* a write was refused for want of room */
	bool gone; /* the interface was deleted */
	bool told_lost;
	uint8_t *arena;
	size_t used;     /* of the arena */
	uint8_t *joined; /* FRAME_MAX: a frame of more pieces than one writev takes */
	struct tap_kept kept[BURST_FRAMES]; /* ring, in order */
	unsigned kept_at, nkept;
	unsigned relent;   /* of the kept ones, how many the burst on loan has */
	struct iovec *out; /* [IOV_MAX]: of the write being made */
};

static struct tap *tap_of(struct portq *q)
{
	return (struct tap *)(void *)q->port;
}

/* ---- lend ----------------------------------------------------------------------------------- */

static uint8_t len_verdict(uint32_t len)
{
	return len < 14 ? DROP_SHORT : len > FRAME_MAX ? DROP_TOO_LONG : DROP_NONE;
}

/* The frame whose head lies in b->head[b->n] and whose tail is given joins the burst. */
static void burst_add(struct burst *b, uint32_t head_len, void *tail, uint32_t tail_len,
	const struct offload *off)
{
	struct frame *f = &b->f[b->n];

	f->head = b->head[b->n].data;
	f->head_len = (uint16_t)head_len;
	f->tail = &b->iov[b->niov];
	f->tail_len = tail_len;
	f->ntail = tail_len ? 1 : 0;
	f->off = *off;
	f->backing = NULL;
	f->drop = len_verdict(head_len + tail_len);
	if (tail_len)
		b->iov[b->niov++] = (struct iovec){tail, tail_len};
	b->bytes += head_len + tail_len;
	b->n++;
}

static void lend_kept(struct tap *t, struct burst *b, unsigned max)
{
	t->relent = t->nkept < max ? t->nkept : max;
	for (unsigned i = 0; i < t->relent; i++) {
		const struct tap_kept *k = &t->kept[(t->kept_at + i) % BURST_FRAMES];
		memcpy(b->head[b->n].data, k->head, k->head_len);
		burst_add(b, k->head_len, k->tail.iov_base, (uint32_t)k->tail.iov_len, &k->off);
	}
}

static void tap_lost(struct tap *t)
{
	t->gone = true;
	t->empty = true;
	loop_defer(t->port.loop, &t->lost);
}

static bool lend_new(struct tap *t, struct burst *b)
{
	uint8_t *hdr = b->head[b->n].room + FRAME_ROOM - TAP_HDR_LEN, *tail = t->arena + t->used;
	struct iovec iov[2] = {{hdr, TAP_HDR_LEN + FRAME_HEAD}, {tail, TAIL_MAX}};
	struct offload off;
	uint32_t len, head_len;
	ssize_t n = readv(t->fd, iov, 2);

	if (n < TAP_HDR_LEN) {
		if (n < 0 && errno == EBADFD)
			tap_lost(t);
		t->empty = n >= 0 || errno != EINTR;
		return false;
	}
	vnet_hdr_parse(hdr, &off);
	/* Not a virtio driver's to set, but the kernel behind a tap has verified it. */
	off.flags |= hdr[0] & OFF_DATA_VALID;
	len = (uint32_t)n - TAP_HDR_LEN;
	head_len = len < FRAME_HEAD ? len : FRAME_HEAD;
	burst_add(b, head_len, tail, len - head_len, &off);
	t->port.q.in.bufs++;
	t->used += (len - head_len + TAIL_ALIGN - 1) / TAIL_ALIGN * TAIL_ALIGN;
	return true;
}

static unsigned tap_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct tap *t = tap_of(q);

	assert(!t->relent);
	b->n = 0;
	b->niov = 0;
	b->bytes = 0;
	if (max > BURST_FRAMES)
		max = BURST_FRAMES;
	if (!t->port.link)
		return 0;
	lend_kept(t, b, max);
	while (b->n < max && b->bytes < BURST_BYTES && !t->empty && t->relent == t->nkept &&
		t->used + TAIL_MAX <= ARENA_SIZE)
		if (!lend_new(t, b))
			break;
	return b->n;
}

static void keep(struct tap *t, const struct frame *f)
{
	struct tap_kept *k = &t->kept[(t->kept_at + t->nkept) % BURST_FRAMES];

	assert(t->nkept < BURST_FRAMES);
	assert(f->ntail <= 1);
	k->off = f->off;
	k->head_len = f->head_len;
	k->tail = f->tail_len ? f->tail[0] : (struct iovec){0};
	memcpy(k->head, f->head, f->head_len);
	t->nkept++;
}

static void tap_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct tap *t = tap_of(q);
	unsigned done = n < t->relent ? n : t->relent;

	/* Those lent again and not finished still lie in `kept`, in front of the new ones. */
	t->kept_at = (t->kept_at + done) % BURST_FRAMES;
	t->nkept -= done;
	for (unsigned i = t->relent > n ? t->relent : n; i < b->n; i++)
		keep(t, &b->f[i]);
	t->relent = 0;
	if (!t->nkept)
		t->used = 0;
}

/* ---- take ----------------------------------------------------------------------------------- */

/* The pieces of one write in t->out; a frame of too many pieces is joined first. */
static unsigned out_build(struct tap *t, const struct frame *f, uint8_t *hdr)
{
	struct iovec joined = {t->joined, f->tail_len};

	t->out[0] = (struct iovec){hdr, TAP_HDR_LEN};
	t->out[1] = (struct iovec){f->head, f->head_len};
	if (f->ntail <= IOV_MAX - 2) {
		memcpy(&t->out[2], f->tail, f->ntail * sizeof(*f->tail));
		return 2u + f->ntail;
	}
	frame_copy(f, f->head_len, f->tail_len, &joined, 1, 0);
	t->out[2] = joined;
	return 3;
}

static int tap_write(struct tap *t, const struct frame *f)
{
	uint8_t hdr[VNET_HDR_MAX];
	unsigned n;

	vnet_hdr_build(hdr, &f->off, t->port.accepts, 0);
	n = out_build(t, f, hdr);
	t->port.q.out.notify++;
	return writev(t->fd, t->out, (int)n) < 0 ? errno : 0;
}

/* The kernel did not take it and never will: the frame counts as taken. */
static void write_failed(struct tap *t, const struct frame *f, int error)
{
	if (error == EBADFD)
		tap_lost(t);
	/* EIO: the interface is down, and the news of it is on its way */
	port_drop_out(&t->port.q, f, error == EIO || error == EBADFD ? DROP_LINK_DOWN : DROP_IO);
}

static unsigned tap_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct tap *t = tap_of(q);
	unsigned i;

	if (!t->port.link)
		return 0;
	for (i = 0; i < n; i++) {
		int error = frame_len(&f[i]) > FRAME_MAX ? EMSGSIZE : tap_write(t, &f[i]);
		if (error == EAGAIN) {
			t->full = true;
			break;
		}
		if (error) {
			write_failed(t, &f[i], error);
			continue;
		}
		q->out.bufs++;
	}
	return i;
}

static void tap_flush(struct portq *q)
{
	(void)q; /* a write is its own notification */
}

/* ---- wake ----------------------------------------------------------------------------------- */

static bool tap_arm(struct portq *q)
{
	struct tap *t = tap_of(q);

	if (t->port.link && (t->nkept || !t->empty))
		return true;
	t->armed = true;
	return false;
}

static bool tap_arm_room(struct portq *q, uint32_t need)
{
	struct tap *t = tap_of(q);

	(void)need; /* the kernel says no size, only that there is room */
	if (!t->full && t->port.link)
		return true;
	t->room_armed = true;
	/* Asks the kernel again, so an edge between the refused write and here is not lost. */
	if (!t->gone)
		loop_mod(t->port.loop, &t->io, TAP_EVENTS);
	return false;
}

static void tap_tell_lost(struct loop_task *task)
{
	struct tap *t = (struct tap *)(void *)((char *)task - offsetof(struct tap, lost));

	if (t->told_lost)
		return;
	t->told_lost = true;
	loop_del(t->port.loop, &t->io);
	log_say(t->port.log, LOG_WARN, t->port.name,
		"interface %s was deleted: the port is dead until it is added anew", t->ifname);
	port_set_link(&t->port, false);
}

static void watch_event(struct loop_fd *watch, uint32_t events)
{
	struct tap *t = (struct tap *)(void *)((char *)watch - offsetof(struct tap, watch));
	struct tap_link link = {t->port.mtu, t->port.link};

	(void)events;
	if (!tap_link_read(t->watch_fd, t->ifindex, &link) || t->gone)
		return;
	t->port.mtu = link.mtu;
	port_set_link(&t->port, link.up);
	if (link.up && t->armed) { /* what came before the link went down */
		t->armed = false;
		port_ready(&t->port.q);
	}
}

static void tap_event(struct loop_fd *io, uint32_t events)
{
	struct tap *t = (struct tap *)(void *)((char *)io - offsetof(struct tap, io));

	if (events & (EPOLLERR | EPOLLHUP)) {
		tap_lost(t);
		return;
	}
	if (events & EPOLLOUT) {
		t->full = false;
		if (t->room_armed) {
			t->room_armed = false;
			port_room(&t->port.q);
		}
	}
	if (events & EPOLLIN) {
		t->port.q.in.kicks++;
		t->empty = false;
		if (t->armed) {
			t->armed = false;
			port_ready(&t->port.q);
		}
	}
}

/* ---- open and close ------------------------------------------------------------------------- */

static void tap_close(struct port *port)
{
	struct tap *t = (struct tap *)(void *)port;

	port_set_link(port, false);
	loop_undefer(port->loop, &t->lost);
	loop_del(port->loop, &t->io);
	loop_del(port->loop, &t->watch);
	if (t->fd >= 0)
		close(t->fd);
	if (t->watch_fd >= 0)
		close(t->watch_fd);
	t->fd = t->watch_fd = -1;
	t->gone = true;
	t->nkept = t->relent = 0;
}

static const struct port_ops tap_ops = {
	.kind = "tap",
	.pull = tap_pull,
	.settle = tap_settle,
	.push = tap_push,
	.flush = tap_flush,
	.arm = tap_arm,
	.arm_room = tap_arm_room,
	.close = tap_close,
};

static struct tap *tap_new(
	const char *name, const struct tap_config *cfg, struct loop *loop, struct log *log)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	port_init(&t->port, &tap_ops, name, loop, log);
	snprintf(t->ifname, sizeof(t->ifname), "%s", cfg->ifname);
	t->fd = t->watch_fd = -1;
	t->io.fd = t->watch.fd = -1;
	t->io.ready = tap_event;
	t->watch.ready = watch_event;
	t->lost.run = tap_tell_lost;
	t->joined = malloc(FRAME_MAX);
	t->out = calloc(IOV_MAX, sizeof(*t->out));
	if (posix_memalign((void **)&t->arena, 4096, ARENA_SIZE))
		t->arena = NULL;
	if (t->joined && t->out && t->arena)
		return t;
	tap_free(&t->port);
	return NULL;
}

int tap_open(struct port **out, const char *name, const struct tap_config *cfg, struct loop *loop,
	struct log *log, struct err *err)
{
	struct tap_if tap;
	struct tap *t;
	int rc = tap_if_open(cfg, &tap, err);

	if (rc)
		return rc;
	t = tap_new(name, cfg, loop, log);
	if (!t) {
		close(tap.fd);
		close(tap.watch);
		return err_set(err, ENOMEM, "tap:%s: out of memory", cfg->ifname);
	}
	t->fd = tap.fd;
	t->watch_fd = tap.watch;
	t->ifindex = tap.ifindex;
	t->features = tap.features;
	t->port.mtu = tap.link.mtu;
	t->port.accepts = vnet_accepts(tap.features);
	rc = loop_add(loop, &t->io, t->fd, TAP_EVENTS);
	if (!rc)
		rc = loop_add(loop, &t->watch, t->watch_fd, EPOLLIN);
	if (rc) {
		tap_free(&t->port);
		return err_set(err, -rc, "tap:%s: cannot watch its descriptors: %s", cfg->ifname,
			strerror(-rc));
	}
	t->port.link = tap.link.up;
	*out = &t->port;
	return 0;
}

void tap_free(struct port *port)
{
	struct tap *t = (struct tap *)(void *)port;

	if (!port)
		return;
	tap_close(port);
	free(t->arena);
	free(t->joined);
	free(t->out);
	free(t);
}

const char *tap_missing(const struct port *port)
{
	if (port->link)
		return "";
	return ((const struct tap *)(const void *)port)->gone
		       ? "the interface was deleted: delete the port and add it anew"
		       : "the interface is down";
}

const char *tap_ifname(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->ifname;
}

uint64_t tap_features(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->features;
}
