/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_tx: packets become chains of the transmit ring, and come back used.
 *
 *	inline    [ header | head ] [ fragment ] ...     the header in the head's own headroom (S2)
 *	else      [ header ] [ head ] [ fragment ] ...   the header in a slot of its own, by id
 *
 * A chain of one piece takes one descriptor; longer ones may go through an indirect table (vq_drv).
 * The queue stops when it has fewer descriptors free than the largest packet takes; whoever stopped
 * kicks, asks to be told, and looks again. [VIRTIO 1.2 5.1.6.2]
 */
#include "port/vdrv_int.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define STOP_BELOW (2 + PKT_FRAGS)

static inline unsigned min_u(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* A small ring is not stopped while half of it is free. */
static unsigned stop_below(const struct vq_drv *vq)
{
	return min_u(STOP_BELOW, vq->size / 2u);
}

/* What is posted for a short frame, which has no packet. */
static inline void *tx_slot_token(struct vdrv *v)
{
	return &v->tx;
}

/* back */

/*
 * Whoever is told that its packet is gone may send again at once, and so come back here: then what was
 * used meanwhile waits for the outer call. So `done` does not nest, however many packets there are.
 */
static void tx_complete(struct vdrv *v)
{
	struct pkt *p;

	if (v->tx.completing)
		return;
	v->tx.completing = true;
	while ((p = STAILQ_FIRST(&v->tx.used))) {
		STAILQ_REMOVE_HEAD(&v->tx.used, entry);
		pkt_free(p);
	}
	v->tx.completing = false;
}

/* Freed now, or once the ring has been gone through. */
static inline void tx_used(struct vdrv *v, struct pkt *p)
{
	if (likely(!p->account)) {
		pkt_free(p);
		return;
	}
	v->tx.accounts--;
	STAILQ_INSERT_TAIL(&v->tx.used, p, entry);
}

void vdrv_tx_reclaim(struct vdrv *v)
{
	uint32_t written, cap;
	struct pkt *p;

	while ((p = vq_drv_get(&v->vq[VDRV_TX], &written, &cap)))
		if (unlikely(p != tx_slot_token(v)))
			tx_used(v, p);
	if (unlikely(v->vq[VDRV_TX].broken))
		vdrv_break(v, v->vq[VDRV_TX].broken);
	if (!v->tx.accounts)
		v->tx.want_done = false;
	if (unlikely(!STAILQ_EMPTY(&v->tx.used)))
		tx_complete(v);
}

void vdrv_tx_detach(struct vdrv *v)
{
	struct pkt *p;

	loop_undefer(v->port.loop, &v->tx.done);
	while (v->vq[VDRV_TX].slot && (p = vq_drv_detach(&v->vq[VDRV_TX])))
		if (p != tx_slot_token(v))
			tx_used(v, p);
	tx_complete(v);
	v->tx.accounts = 0;
	v->tx.stopped = v->tx.want_room = v->tx.want_done = false;
}

/*
 * Room for any packet, or as good as. After a stop something must have come back: it may have been
 * memory, or a packet of many pieces.
 */
static bool tx_room(const struct vdrv *v)
{
	const struct vq_drv *vq = &v->vq[VDRV_TX];

	return vq->nfree >= stop_below(vq) && !(v->tx.stopped && vq->nout >= v->tx.stopped_at);
}

/* The rest of the ring is the device's: it must know of all of it. */
static void tx_stop(struct vdrv *v)
{
	v->n.tx_stopped += !v->tx.stopped;
	v->tx.stopped = true;
	v->tx.stopped_at = v->vq[VDRV_TX].nout;
	vdrv_publish(&v->port.q);
}

/* Before packets are sent: take back what was used. */
static bool tx_start(struct vdrv *v)
{
	if (unlikely(!v->live))
		return false;
	vdrv_tx_reclaim(v);
	if (unlikely(!v->live))
		return false;
	if (unlikely(v->tx.stopped))
		v->tx.stopped = !tx_room(v);
	return !v->tx.stopped;
}

/* Tell me when three quarters of what is out were used; true: they are. */
static bool tx_arm(struct vdrv *v)
{
	struct vq_drv *vq = &v->vq[VDRV_TX];
	bool more = vq_drv_arm(vq, (vq->nout * 3u + 3) / 4);

	if (unlikely(vq->broken))
		vdrv_break(v, vq->broken);
	return more;
}

static void tx_arm_done(struct vdrv *v)
{
	if (v->tx.accounts && tx_arm(v))
		loop_defer(v->port.loop, &v->tx.done);
}

void vdrv_tx_called(struct vdrv *v)
{
	const bool told = v->tx.want_done;

	vdrv_tx_reclaim(v);
	if (!v->live)
		return;
	if (told) /* whose account was completed may have more to send now */
		port_ready(&v->port.q);
	if (!v->tx.want_room && !v->tx.want_done)
		vq_drv_disarm(&v->vq[VDRV_TX]);
	if (v->tx.want_done)
		tx_arm_done(v);
	if (v->tx.want_room && vdrv_arm_room(&v->port.q, 0))
		port_room(&v->port.q);
}

void vdrv_tx_done(struct loop_task *t)
{
	struct vdrv *v = (struct vdrv *)(void *)((char *)t - offsetof(struct vdrv, tx.done));

	if (v->live)
		vdrv_tx_called(v);
}

void vdrv_publish(struct portq *q)
{
	struct vdrv *v = vdrv_of(q);

	if (vq_drv_publish(&v->vq[VDRV_TX]))
		vdrv_kick(v, VDRV_TX);
	if (unlikely(v->tx.want_done) && v->live)
		tx_arm_done(v);
}

void vdrv_flush(struct port *p)
{
	vdrv_publish(&p->q);
}

void vdrv_arm_done(struct port *p)
{
	struct vdrv *v = vdrv_port(p);

	v->tx.want_done = v->tx.accounts > 0;
	if (v->tx.want_done && v->live)
		tx_arm_done(v);
}

bool vdrv_arm_room(struct portq *q, uint32_t need)
{
	struct vdrv *v = vdrv_of(q);

	(void)need;
	if (!v->live)
		return false;
	vdrv_publish(q);
	do {
		vdrv_tx_reclaim(v);
		if (!v->live)
			return false;
		v->tx.want_room = !tx_room(v);
		if (!v->tx.want_room) {
			v->tx.stopped = false;
			return true;
		}
	} while (tx_arm(v));
	return false;
}

/* out */

static inline bool can_inline(const struct vdrv *v, const struct pkt *p)
{
	return v->inline_ok && p->head_len && p->headroom >= v->hdr_len &&
	       !(((uintptr_t)p->head - v->hdr_len) & 1);
}

/* All of it is written: what was in the memory before never gets out. */
static inline void header_build(const struct vdrv *v, const struct offload *from, uint8_t *to)
{
	uint8_t hdr[VNET_HDR_MAX];
	struct offload off = *from;

	off.flags &= OFF_NEEDS_CSUM; /* DATA_VALID is not a driver's to set */
	vnet_hdr_build(hdr, &off, v->port.accepts, 0);
	memcpy(to, hdr, 8);
	memcpy(to + 8, hdr + 8, 2);
	if (likely(v->hdr_len == VNET_HDR_MAX))
		memcpy(to + 10, hdr + 10, 2);
}

/* Pieces behind the head; at most `max`, more are only counted. */
static unsigned frag_pieces(const struct pkt *p, struct iovec *iov, unsigned max)
{
	unsigned n = 0;

	for (; p; p = p->chain) {
		for (unsigned i = 0; i < p->nfrag; i++, n++)
			if (n < max)
				iov[n] = (struct iovec){p->frag[i].data, p->frag[i].len};
	}
	return n;
}

/* 0, -ENOSPC: not now, -EMSGSIZE: never. */
static int tx_add(struct vdrv *v, struct pkt *p)
{
	struct vq_drv *vq = &v->vq[VDRV_TX];
	struct iovec iov[VDRV_PIECES];
	bool in = can_inline(v, p);
	unsigned n = 0;
	int rc;

	if (unlikely(!vq->nfree))
		return -ENOSPC;
	if (likely(in)) {
		uint8_t *at = p->head - v->hdr_len;

		header_build(v, &p->off, at);
		if (likely(!p->nfrag)) {
			vq_drv_add1(vq, at, v->hdr_len + p->head_len, false, p);
			v->n.tx_inline++;
			return 0;
		}
		iov[n++] = (struct iovec){at, v->hdr_len + p->head_len};
	} else {
		uint8_t *at = v->tx.hdr + (size_t)vq_drv_next_id(vq) * VDRV_HDR_SLOT;

		header_build(v, &p->off, at);
		iov[n++] = (struct iovec){at, v->hdr_len};
		if (p->head_len)
			iov[n++] = (struct iovec){p->head, p->head_len};
	}
	n += frag_pieces(p, iov + n, VDRV_PIECES - n);
	if (unlikely(n > VDRV_PIECES))
		return -EMSGSIZE;
	rc = vq_drv_add(vq, iov, n, 0, p);
	v->n.tx_inline += in && !rc;
	return rc;
}

struct pieces {
	struct iovec to[2];
	unsigned n;
};

static void pieces_put(struct pieces *o, const uint8_t *from, size_t len)
{
	while (len) {
		struct iovec *to = &o->to[o->n];
		size_t n = len < to->iov_len ? len : to->iov_len;

		assert(to->iov_base); /* they hold the whole packet */
		memcpy(to->iov_base, from, n);
		to->iov_base = (char *)to->iov_base + n;
		to->iov_len -= n;
		o->n += !to->iov_len;
		from += n;
		len -= n;
	}
}

/* The packet in as few pieces as can be: a head, and a chunk if that is not enough. */
static struct pkt *tx_linear(struct vdrv *v, const struct pkt *from)
{
	uint32_t linear = min_u(from->len, CHUNK_MAX - v->config.headroom);
	uint32_t rest = from->len - linear;
	struct pkt *to = pkt_new(&v->pkts, v->config.headroom, linear);
	struct pieces o = {.n = 0};

	if (!to)
		return NULL;
	o.to[0] = (struct iovec){to->head, linear};
	if (rest) {
		struct chunk *c = chunk_get(&v->chunks, 0);

		if (!c || !pkt_add(to, c, chunk_data(&v->chunks, c), rest, chunk_size(c), false)) {
			pkt_free(to);
			return NULL;
		}
		o.to[1] = (struct iovec){to->frag->data, rest};
	}
	to->off = from->off;
	pieces_put(&o, from->head, from->head_len);
	for (const struct pkt *p = from; p; p = p->chain)
		for (unsigned i = 0; i < p->nfrag; i++)
			pieces_put(&o, p->frag[i].data, p->frag[i].len);
	return to;
}

static int tx_add_copied(struct vdrv *v, struct pkt *p)
{
	struct pkt *copy = tx_linear(v, p);
	int rc = copy ? tx_add(v, copy) : -ENOMEM;

	if (rc) {
		pkt_free(copy);
		return rc;
	}
	pkt_move_account(p, copy);
	pkt_free(p);
	v->n.tx_copied++;
	return 0;
}

/* Some of it lies where the device cannot read: it was made for another one. */
static __attribute__((noinline)) bool tx_private(const struct pkt *p)
{
	if (p->head_chunk && chunk_is_private(p->head_chunk))
		return true;
	for (; p; p = p->chain)
		for (unsigned i = 0; i < p->nfrag; i++)
			if (chunk_is_private(p->frag[i].chunk))
				return true;
	return false;
}

/* Post a packet: 0, and it is the device's; or -ENOSPC, -EMSGSIZE, -ENOMEM, and it is the caller's. */
static inline int tx_one(struct vdrv *v, struct pkt *p)
{
	uint32_t len = p->len;
	bool account = p->account;
	int rc;

	if (unlikely(v->chunks.private) && tx_private(p))
		rc = tx_add_copied(v, p);
	else
		rc = tx_add(v, p);
	if (unlikely(rc == -EMSGSIZE))
		rc = tx_add_copied(v, p);
	if (unlikely(rc))
		return rc;
	v->tx.accounts += account;
	v->n.tx_packets++;
	v->n.tx_bytes += len;
	v->port.q.out.bufs++;
	return 0;
}

/* Own a frame. NULL with `*full`: some will come back; without: the frame is lost. */
static inline struct pkt *tx_keep(struct vdrv *v, const struct frame *f, bool *full)
{
	struct pkt *p = frame_keep(f, &v->pkts, &v->keep);

	if (likely(p))
		return p;
	vdrv_tx_reclaim(v);
	p = frame_keep(f, &v->pkts, &v->keep);
	*full = !p && v->vq[VDRV_TX].nout;
	if (!p && !*full) {
		v->n.tx_dropped++;
		port_drop_out(&v->port.q, f, DROP_NO_ROOM);
	}
	return p;
}

/*
 * A frame that is short, and all private: it and its header go to a slot of this id, in one copy
 * and without a packet, as if the slot were the head of one.
 */
static inline bool tx_short(struct vdrv *v, struct vq_drv *vq, const struct frame *f)
{
	uint8_t *slot = v->tx.slot + (size_t)vq_drv_next_id(vq) * VDRV_TX_SLOT;
	uint32_t hdr_len = v->hdr_len, len = f->head_len;

	if (unlikely(f->tail_len || len > v->tx.short_len))
		return false;
	header_build(v, &f->off, slot);
	copy_small(slot + hdr_len, f->head, len);
	vq_drv_add1(vq, slot, hdr_len + len, false, tx_slot_token(v));
	v->n.tx_bytes += len;
	return true;
}

/* One frame of any kind: false if it must wait. */
static bool tx_frame(struct vdrv *v, const struct frame *f)
{
	bool full = false;
	struct pkt *p = tx_keep(v, f, &full);
	int rc;

	if (unlikely(!p))
		return !full;
	rc = tx_one(v, p);
	if (likely(!rc))
		return true;
	pkt_free(p);
	if (rc == -ENOSPC && v->vq[VDRV_TX].nout)
		return false;
	v->n.tx_dropped++;
	port_drop_out(&v->port.q, f, rc == -EMSGSIZE ? DROP_NO_OFFLOAD : DROP_NO_ROOM);
	return true;
}

unsigned vdrv_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct vdrv *v = vdrv_of(q);
	struct vq_drv *vq = &v->vq[VDRV_TX];
	unsigned low = stop_below(vq), shorts = 0, i;

	if (unlikely(!tx_start(v)))
		n = 0;
	for (i = 0; i < n; i++) {
		if (unlikely(vq->nfree < low))
			break;
		if (likely(tx_short(v, vq, &f[i])))
			shorts++;
		else if (!tx_frame(v, &f[i]))
			break;
	}
	v->n.tx_packets += shorts;
	v->n.tx_inline += shorts;
	q->out.bufs += shorts;
	if (unlikely(i < n) && v->live)
		tx_stop(v);
	return i;
}

/* What the device would not understand, or not take. */
static bool tx_refused(const struct vdrv *v, const struct pkt *p)
{
	struct frame f = {.off = p->off};
	uint32_t most = f.off.gso ? FRAME_MAX : v->mtu + ETH_HLEN + VDRV_TAGS;

	return p->pool->chunks != &v->chunks || p->len < ETH_HLEN || p->len > most ||
	       fit_need(&f, v->port.accepts) != FIT_NONE;
}

unsigned vdrv_send(struct port *port, struct pkt **p, unsigned n)
{
	struct vdrv *v = vdrv_port(port);
	const struct vq_drv *vq = &v->vq[VDRV_TX];
	unsigned low = stop_below(vq), i;
	bool full = !tx_start(v);

	for (i = 0; i < n && !full; i++) {
		bool waiting = p[i]->account && p[i]->account->waiting;
		int rc;

		if (unlikely(vq->nfree < low)) {
			full = true;
			break;
		}
		rc = unlikely(tx_refused(v, p[i])) ? -EINVAL : tx_one(v, p[i]);
		if (likely(!rc)) {
			v->tx.want_done |= waiting;
			continue;
		}
		full = rc != -EINVAL && rc != -EMSGSIZE && vq->nout;
		if (full)
			break;
		v->n.tx_dropped++;
		pkt_free(p[i]);
	}
	if (unlikely(full) && v->live)
		tx_stop(v);
	return i;
}
