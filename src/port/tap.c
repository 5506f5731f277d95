/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap: the kernel as a driver. One read or write per frame, each with its virtio-net header.
 *
 * Lending: one readv fills
 *
 *	burst head[i]:  [ room .... | header | head, 128 bytes ]    arena: [ the rest ]
 *
 * so the only copy before the receiver's is the kernel's own. The arena is a stack of tails,
 * emptied when everything lent is settled. What settle gives back stays where it is and is
 * remembered in `kept`; the next pull lends it again before it reads anything new. With copy=on a
 * frame is kept in a packet as soon as it is read (port/tap_copy.h) and the arena is free again.
 *
 * Waking: the descriptor is watched edge-triggered, for good, so arming costs no system call.
 *`empty` says that the kernel had nothing at the last read and no edge came since; only then may we
 * sleep.
 *
 * Link and MTU follow the interface, told by a routing socket that hears of this interface only
 * (port/tap_link.h). A deleted interface is gone for good; that of a macvtap only the watch tells:
 * its device then reads nothing and takes everything.
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
#include "port/tap_copy.h"
#include "port/tap_ns.h"
#include "port/tap_queue.h"
#include "port/vnet.h"

#define TAP_EVENTS (EPOLLIN | EPOLLOUT | EPOLLET)

#define TAP_HDR_MAX 20 /* with a hash, which we neither write nor read */

#define TAIL_MAX   (FRAME_MAX - FRAME_HEAD + 1) /* one more: a frame too long shows */
#define TAIL_ALIGN 64                           /* copies start at a cache line */
/* A burst stops at BURST_BYTES, so its last frame may begin just before that. */
#define ARENA_SIZE (BURST_BYTES + BURST_FRAMES * TAIL_ALIGN + TAIL_MAX)

#define TAIL_PIECES (PKT_FRAGS + 1) /* what a packet lends; the arena lends one */

/* A frame that went back: its tail lies in the arena or in its packet, its head here. */
struct tap_kept {
	struct offload off;
	struct pkt *pkt; /* NULL: the arena */
	uint16_t head_len, ntail;
	uint8_t drop;
	uint32_t tail_len;
	struct iovec tail[TAIL_PIECES];
	uint8_t head[FRAME_PULL_MAX];
};

struct tap_q {
	struct tap *tap;
	struct loop_fd io; /* a descriptor of tap.i */
	bool empty;        /* the kernel had nothing, and no edge since */
	bool full;         /* a write was refused for want of room */
	struct tap_queued count;
};

struct tap {
	struct port port;               /* first: a tap is a port */
	struct tap_if i;                /* its kernel side */
	uint32_t hdr_len;               /* of the virtio-net header */
	struct tap_copy *copy;          /* NULL: frames are lent from the arena */
	struct pkt *lent[BURST_FRAMES]; /* packets of the burst on loan */
	struct tap_q queue[TAP_QUEUES]; /* i.queues of them */
	unsigned turn;                  /* which one is read first */
	bool awaited;          /* room of any queue: which one a sender needs, it will see */
	struct loop_fd watch;  /* news of the link */
	struct loop_task lost; /* found out inside a port call: to be told later */
	bool armed;
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

/* The frame whose head lies in b->head[b->n] and whose tail the burst's last pieces are joins it. */
static struct frame *burst_add(struct burst *b, uint32_t head_len, unsigned ntail,
	uint32_t tail_len, const struct offload *off)
{
	struct frame *f = &b->f[b->n];

	f->head = b->head[b->n].data;
	f->head_len = (uint16_t)head_len;
	f->tail = &b->iov[b->niov];
	f->tail_len = tail_len;
	f->ntail = (uint16_t)ntail;
	f->off = *off;
	f->backing = NULL;
	f->charge = 0;
	f->drop = len_verdict(head_len + tail_len);
	b->niov += ntail;
	b->bytes += head_len + tail_len;
	b->n++;
	return f;
}

static void lend_kept(struct tap *t, struct burst *b, unsigned max)
{
	t->relent = t->nkept < max ? t->nkept : max;
	for (unsigned i = 0; i < t->relent; i++) {
		const struct tap_kept *k = &t->kept[(t->kept_at + i) % BURST_FRAMES];
		struct frame *f;

		memcpy(b->head[b->n].data, k->head, k->head_len);
		memcpy(&b->iov[b->niov], k->tail, k->ntail * sizeof(*k->tail));
		t->lent[b->n] = k->pkt;
		f = burst_add(b, k->head_len, k->ntail, k->tail_len, &k->off);
		f->backing = k->pkt;
		f->drop = k->drop;
	}
}

/* As tun does with what it is given: a packet of its own, or the frame is lost. */
static void copy_frame(struct tap *t, struct burst *b, unsigned i)
{
	if (b->f[i].drop)
		return;
	t->lent[i] = tap_copy_frame(t->copy, b, i);
	if (!t->lent[i])
		b->f[i].drop = DROP_NO_MEMORY;
}

static void tap_lost(struct tap *t)
{
	t->gone = true;
	for (unsigned i = 0; i < t->i.queues; i++)
		t->queue[i].empty = true;
	loop_defer(t->port.loop, &t->lost);
}

static bool lend_new(struct tap *t, struct tap_q *tq, struct burst *b)
{
	uint8_t *hdr = b->head[b->n].room + FRAME_ROOM - t->hdr_len, *tail = t->arena + t->used;
	struct iovec iov[2] = {{hdr, t->hdr_len + FRAME_HEAD}, {tail, TAIL_MAX}};
	struct offload off;
	uint32_t len, head_len, tail_len;
	ssize_t n = readv(tq->io.fd, iov, 2);

	if (n < (ssize_t)t->hdr_len) {
		if (n < 0 && errno == EBADFD)
			tap_lost(t);
		tq->empty = n >= 0 || errno != EINTR;
		return false;
	}
	vnet_hdr_parse(hdr, &off);
	/* Not a virtio driver's to set, but the kernel behind a tap has verified it. */
	off.flags |= hdr[0] & OFF_DATA_VALID;
	len = (uint32_t)n - t->hdr_len;
	head_len = len < FRAME_HEAD ? len : FRAME_HEAD;
	tail_len = len - head_len;
	if (tail_len)
		b->iov[b->niov] = (struct iovec){tail, tail_len};
	t->lent[b->n] = NULL;
	burst_add(b, head_len, tail_len != 0, tail_len, &off);
	if (t->copy)
		copy_frame(t, b, b->n - 1);
	t->port.q.in.bufs++;
	tq->count.in++;
	if (!t->lent[b->n - 1])
		t->used += (tail_len + TAIL_ALIGN - 1) / TAIL_ALIGN * TAIL_ALIGN;
	return true;
}

static bool burst_room(const struct tap *t, const struct burst *b, unsigned max)
{
	return b->n < max && b->bytes < BURST_BYTES && t->used + TAIL_MAX <= ARENA_SIZE;
}

/* Each burst begins with another queue, so that none waits behind a busy one for ever. */
static void lend_queues(struct tap *t, struct burst *b, unsigned max)
{
	assert(t->i.queues);
	for (unsigned i = 0; i < t->i.queues; i++) {
		struct tap_q *tq = &t->queue[(t->turn + i) % t->i.queues];

		while (!tq->empty && burst_room(t, b, max))
			if (!lend_new(t, tq, b))
				break;
	}
	t->turn = (t->turn + 1) % t->i.queues;
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
	if (t->relent == t->nkept)
		lend_queues(t, b, max);
	return b->n;
}

static void keep(struct tap *t, const struct frame *f, struct pkt *pkt)
{
	struct tap_kept *k = &t->kept[(t->kept_at + t->nkept) % BURST_FRAMES];

	assert(t->nkept < BURST_FRAMES);
	assert(f->ntail <= TAIL_PIECES);
	k->off = f->off;
	k->pkt = pkt;
	k->head_len = f->head_len;
	k->ntail = f->ntail;
	k->tail_len = f->tail_len;
	k->drop = f->drop;
	memcpy(k->tail, f->tail, f->ntail * sizeof(*f->tail));
	memcpy(k->head, f->head, f->head_len);
	t->nkept++;
}

static void tap_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct tap *t = tap_of(q);
	unsigned done = n < t->relent ? n : t->relent;

	for (unsigned i = 0; t->copy && i < n; i++)
		pkt_free(t->lent[i]);
	/* Those lent again and not finished still lie in `kept`, in front of the new ones. */
	t->kept_at = (t->kept_at + done) % BURST_FRAMES;
	t->nkept -= done;
	for (unsigned i = t->relent > n ? t->relent : n; i < b->n; i++)
		keep(t, &b->f[i], t->lent[i]);
	t->relent = 0;
	if (!t->nkept)
		t->used = 0;
}

/* ---- take ----------------------------------------------------------------------------------- */

/* The pieces of one write in t->out; a frame of too many pieces is joined first. */
static unsigned out_build(struct tap *t, const struct frame *f, uint8_t *hdr)
{
	struct iovec joined = {t->joined, f->tail_len};

	t->out[0] = (struct iovec){hdr, t->hdr_len};
	t->out[1] = (struct iovec){f->head, f->head_len};
	if (f->ntail <= IOV_MAX - 2) {
		if (f->ntail) /* else there may be no list at all */
			memcpy(&t->out[2], f->tail, f->ntail * sizeof(*f->tail));
		return 2u + f->ntail;
	}
	frame_copy(f, f->head_len, f->tail_len, &joined, 1, 0);
	t->out[2] = joined;
	return 3;
}

static int tap_write(struct tap *t, struct tap_q *tq, const struct frame *f)
{
	uint8_t hdr[TAP_HDR_MAX] = {0};
	unsigned n;

	vnet_hdr_build(hdr, &f->off, t->port.accepts, 0);
	n = out_build(t, f, hdr);
	t->port.q.out.notify++;
	if (writev(tq->io.fd, t->out, (int)n) < 0)
		return errno;
	tq->count.out++;
	return 0;
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
		struct tap_q *tq = &t->queue[tap_queue_of(&f[i], t->i.queues)];
		int error = frame_len(&f[i]) > FRAME_MAX ? EMSGSIZE : tap_write(t, tq, &f[i]);

		if (error == EAGAIN) {
			tq->full = true;
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

static bool tap_is_empty(const struct tap *t)
{
	for (unsigned i = 0; i < t->i.queues; i++)
		if (!t->queue[i].empty)
			return false;
	return true;
}

static bool tap_arm(struct portq *q)
{
	struct tap *t = tap_of(q);

	if (t->port.link && (t->nkept || !tap_is_empty(t)))
		return true;
	t->armed = true;
	return false;
}

static bool tap_arm_room(struct portq *q, uint32_t need)
{
	struct tap *t = tap_of(q);

	(void)need; /* the kernel says no size, only that there is room */
	t->awaited = !t->port.link;
	for (unsigned i = 0; i < t->i.queues; i++) {
		if (!t->queue[i].full)
			continue;
		t->awaited = true;
		/* Asks the kernel again, so an edge between the refused write and here is not lost. */
		if (!t->gone)
			loop_mod(t->port.loop, &t->queue[i].io, TAP_EVENTS);
	}
	return !t->awaited;
}

static void tap_tell_lost(struct loop_task *task)
{
	struct tap *t = (struct tap *)(void *)((char *)task - offsetof(struct tap, lost));

	if (t->told_lost)
		return;
	t->told_lost = true;
	for (unsigned i = 0; i < t->i.queues; i++)
		loop_del(t->port.loop, &t->queue[i].io);
	log_say(t->port.log, LOG_WARN, t->port.name,
		"interface %s was deleted: the port is dead until it is added anew", t->i.ifname);
	port_set_link(&t->port, false);
}

static void watch_event(struct loop_fd *watch, uint32_t events)
{
	struct tap *t = (struct tap *)(void *)((char *)watch - offsetof(struct tap, watch));
	struct tap_link link = {t->port.mtu, t->port.link, false};

	(void)events;
	if (!tap_link_read(t->i.watch, t->i.ifindex, &link) || t->gone)
		return;
	/* A tap may go to another network namespace and carries on; a macvtap's queue has ended. */
	if (link.left && t->i.macvtap) {
		tap_lost(t);
		return;
	}
	t->port.mtu = link.mtu;
	port_set_link(&t->port, link.up);
	if (link.up && t->armed) { /* what came before the link went down */
		t->armed = false;
		port_ready(&t->port.q);
	}
}

static void tap_event(struct loop_fd *io, uint32_t events)
{
	struct tap_q *tq = (struct tap_q *)(void *)((char *)io - offsetof(struct tap_q, io));
	struct tap *t = tq->tap;

	if (events & (EPOLLERR | EPOLLHUP)) {
		tap_lost(t);
		return;
	}
	if (events & EPOLLOUT) {
		tq->full = false;
		if (t->awaited) {
			t->awaited = false;
			port_room(&t->port.q);
		}
	}
	if (events & EPOLLIN) {
		t->port.q.in.kicks++;
		tq->empty = false;
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
	for (unsigned i = 0; i < TAP_QUEUES; i++)
		loop_del(port->loop, &t->queue[i].io);
	loop_del(port->loop, &t->watch);
	if (t->gone)
		t->i.made = false; /* whoever has its index now */
	tap_if_close(&t->i);
	t->gone = true;
	for (unsigned i = 0; t->copy && i < t->nkept; i++)
		pkt_free(t->kept[(t->kept_at + i) % BURST_FRAMES].pkt);
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

static const struct port_ops macvtap_ops = {
	.kind = "macvtap",
	.pull = tap_pull,
	.settle = tap_settle,
	.push = tap_push,
	.flush = tap_flush,
	.arm = tap_arm,
	.arm_room = tap_arm_room,
	.close = tap_close,
};

static void tap_release(struct tap *t)
{
	free(t->arena);
	free(t->joined);
	free(t->out);
	free(t->copy);
	free(t);
}

static struct tap *tap_new(
	const char *name, const struct tap_config *cfg, struct loop *loop, struct log *log)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	port_init(&t->port, cfg->lower ? &macvtap_ops : &tap_ops, name, loop, log);
	t->hdr_len = cfg->vnet_hdr ? cfg->vnet_hdr : TAP_HDR_LEN;
	tap_if_init(&t->i);
	for (unsigned i = 0; i < TAP_QUEUES; i++)
		t->queue[i] = (struct tap_q){.tap = t, .io = {.fd = -1, .ready = tap_event}};
	t->watch.fd = -1;
	t->watch.ready = watch_event;
	t->lost.run = tap_tell_lost;
	t->joined = malloc(FRAME_MAX);
	t->out = calloc(IOV_MAX, sizeof(*t->out));
	t->copy = cfg->copy ? calloc(1, sizeof(*t->copy)) : NULL;
	if (posix_memalign((void **)&t->arena, 4096, ARENA_SIZE))
		t->arena = NULL;
	if (t->joined && t->out && t->arena && (t->copy || !cfg->copy))
		return t;
	tap_release(t);
	return NULL;
}

/* One that a port of this loop has already would be read by both, and closed by the first to go. */
static int passed_fd_check(const struct tap_config *cfg, struct loop *loop, struct err *err)
{
	struct loop_fd probe = {.fd = -1};
	int rc = cfg->fd ? loop_add(loop, &probe, cfg->fd, 0) : 0;

	if (rc == -EEXIST)
		return err_set(err, EBUSY,
			"tap:%s: fd=%d is a descriptor of this process's own: pass one that is not "
			"in use",
			cfg->ifname, cfg->fd);
	if (!rc && cfg->fd)
		loop_del(loop, &probe);
	return 0; /* of what else is wrong with it tap_if_open can say more */
}

static int tap_watch(struct tap *t, struct loop *loop, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < t->i.queues; i++)
		rc = loop_add(loop, &t->queue[i].io, t->i.fd[i], TAP_EVENTS);
	if (!rc)
		rc = loop_add(loop, &t->watch, t->i.watch, EPOLLIN);
	if (!rc)
		return 0;
	return err_set(
		err, -rc, "%s: cannot watch its descriptors: %s", t->i.ifname, strerror(-rc));
}

int tap_open(struct port **out, const char *name, const struct tap_config *cfg, struct loop *loop,
	struct log *log, struct err *err)
{
	struct tap *t;
	int rc = passed_fd_check(cfg, loop, err);

	if (rc)
		return rc;
	t = tap_new(name, cfg, loop, log);
	if (!t)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	if (t->copy)
		rc = tap_copy_init(t->copy, &cfg->copying, err);
	if (rc) {
		tap_release(t);
		return rc;
	}
	rc = tap_if_open(cfg, &t->i, err);
	if (rc)
		tap_if_init(&t->i);
	else
		rc = tap_watch(t, loop, err);
	if (rc) {
		tap_free(&t->port);
		return rc;
	}
	t->port.mtu = t->i.link.mtu;
	t->port.accepts = vnet_accepts(t->i.features);
	t->port.link = t->i.link.up;
	if (cfg->fd)
		close(cfg->fd);
	*out = &t->port;
	return 0;
}

void tap_free(struct port *port)
{
	struct tap *t = (struct tap *)(void *)port;

	if (!port)
		return;
	tap_close(port);
	if (t->copy)
		tap_copy_fini(t->copy);
	tap_release(t);
}

const char *tap_missing(const struct port *port)
{
	if (port->link)
		return "";
	return ((const struct tap *)(const void *)port)->gone
		       ? "the interface was deleted: delete the port and add it anew"
		       : "the interface is down";
}

int tap_fd(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->i.fd[0];
}

const char *tap_ifname(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->i.ifname;
}

uint64_t tap_features(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->i.features;
}

const uint8_t *tap_mac(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->i.mac;
}

uint32_t tap_vnet_hdr(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->hdr_len;
}

unsigned tap_queues(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->i.queues;
}

struct tap_queued tap_queued(const struct port *port, unsigned queue)
{
	return ((const struct tap *)(const void *)port)->queue[queue].count;
}

struct tap_wire tap_wire(const struct port *port)
{
	return ((const struct tap *)(const void *)port)->i.wire;
}

bool tap_copied(const struct port *port, struct tap_copied *n)
{
	const struct tap *t = (const struct tap *)(const void *)port;

	if (t->copy)
		tap_copy_count(t->copy, n);
	return t->copy != NULL;
}
