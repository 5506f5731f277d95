/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev_rx: the guest's receive buffers: frames from the network are copied into chains the driver
 * has made available. This is the one copy of the house, from the sender's memory to the
 *receiver's.
 *
 * Chains are popped ahead for as many frames as the caller has, used in order, and what was not
 *used goes back in flush. A frame is taken whole or not at all:
 *
 *	MRG_RXBUF      as many chains as it needs, each but the last filled to its capacity
 *	without        exactly one chain; too small a chain costs the frame, not the chain
 *
 * Nothing is visible to the driver before flush, which publishes all used entries with one index
 * store: never half a packet [T9]. [VIRTIO 1.2 5.1.6.3, 5.1.6.4]
 */
#include "port/vdev_int.h"

#define RX_AHEAD 4  /* chains whose first lines are on their way */
#define RX_BATCH 64 /* chains popped at once, unless one frame needs more */

/* What is popped and not used goes back to the ring; the cache is empty then. */
static void rx_return(struct vdev *v)
{
	if (v->rx_have > v->rx_used)
		vq_dev_unpop(&v->vq[VDEV_RX], v->rx_have - v->rx_used);
	v->rx_have = v->rx_used = v->rx_niov = 0;
}

/* How many chains `left` frames like the next one, of `need` bytes, may want. */
static unsigned rx_want(const struct vdev *v, uint32_t need, unsigned left)
{
	/* rx_cap is the driver's word: up to 2^32 - 1 */
	unsigned per = !v->mrg || need <= v->rx_cap ? 1 : (need - 1) / v->rx_cap + 1;

	if (likely(per == 1))
		return left < RX_BATCH ? left : RX_BATCH;
	if (per >= RX_BATCH)
		return per < VDEV_RX_CACHE ? per : VDEV_RX_CACHE;
	return per * (left < RX_BATCH / per ? left : RX_BATCH / per);
}

/* No chain that the ring could add would help: the cache was filled from the start, and is full. */
static bool rx_cache_full(const struct vdev *v)
{
	return !v->rx_used && (v->rx_have == VDEV_RX_CACHE || BURST_IOV - v->rx_niov < CHAIN_MAX);
}

static inline void chain_prefetch(const struct chain *c)
{
	const char *first = c->iov->iov_base;

	__builtin_prefetch(first, 1);
	__builtin_prefetch(first + 64, 1);
}

/* Whether nothing but writable bytes was popped; else the queue breaks. */
static bool rx_check(struct vdev *v, const struct chain *c, unsigned n)
{
	const struct vq_dev *vq = &v->vq[VDEV_RX];
	const struct chain *end = c + n;

	if (likely(vq->plain && vq->writable))
		return true;
	while (c < end && likely(!c->nr && c->wlen))
		c++;
	if (likely(c == end))
		return true;
	vdev_break(v, VDEV_RX,
		c->nr ? "a receive chain has readable parts"
		      : "a receive chain has no writable byte");
	return false;
}

/* Pop more chains behind those at hand; false if there are none. */
static bool rx_more(struct vdev *v, uint32_t need, unsigned left)
{
	struct vq_dev *vq = &v->vq[VDEV_RX];
	unsigned want = rx_want(v, need, left), again = 0, got;
	struct chain *c;

	if (v->rx_used == v->rx_have) {
		v->rx_have = v->rx_used = v->rx_niov = 0;
	} else if (v->rx_used &&
		   (VDEV_RX_CACHE - v->rx_have < want || BURST_IOV - v->rx_niov < CHAIN_MAX)) {
		again = v->rx_have - v->rx_used; /* to the front of the cache */
		want += again;
		rx_return(v);
	}
	if (want > VDEV_RX_CACHE - v->rx_have)
		want = VDEV_RX_CACHE - v->rx_have;
	c = &v->rx_chain[v->rx_have];
	got = vq_dev_pop(vq, c, want, &v->rx_iov[v->rx_niov], BURST_IOV - v->rx_niov);
	if (unlikely(vq->broken)) {
		vq_dev_unpop(vq, got);
		vdev_break(v, VDEV_RX, vq->broken);
		return false;
	}
	if (!got)
		return false;
	if (unlikely(!rx_check(v, c, got))) {
		vq_dev_unpop(vq, got);
		return false;
	}
	for (unsigned i = 0; i < got && i < RX_AHEAD; i++)
		chain_prefetch(&c[i]);
	v->rx_have += got;
	v->rx_niov = (unsigned)(c[got - 1].iov + c[got - 1].nw - v->rx_iov);
	v->rx_cap = c[got - 1].wlen;
	return got > again;
}

/* The header in front of a frame, to guest memory or to the room before the head. */
static inline void rx_header(
	const struct vdev *v, uint8_t *to, const struct frame *f, unsigned bufs)
{
	uint8_t hdr[VNET_HDR_MAX];

	if (likely(v->hdr_len == VNET_HDR_MAX)) {
		vnet_hdr_build(to, &f->off, v->port.accepts, (uint16_t)bufs);
	} else {
		vnet_hdr_build(hdr, &f->off, v->port.accepts, 0);
		memcpy(to, hdr, v->hdr_len);
	}
}

/* The usual case: frames that one piece holds, each. Returns how many; stops at the first other. */
static unsigned rx_put_plain(struct vdev *v, const struct frame *f, unsigned n)
{
	const struct chain *c = &v->rx_chain[v->rx_used], *end = &v->rx_chain[v->rx_have];
	const struct frame *first = f, *last = f + n;
	struct vq_put put = vq_put_open(&v->vq[VDEV_RX]);
	const unsigned hdr_len = v->hdr_len;

	for (; f < last && c < end; f++, c++) {
		uint32_t need = hdr_len + frame_len(f);
		uint8_t *to = c->iov->iov_base;

		if (unlikely(c->nw != 1 || c->wlen < need))
			break;
		if (c + RX_AHEAD < end)
			chain_prefetch(c + RX_AHEAD);
		rx_header(v, to, f, 1);
		copy_small(to + hdr_len, f->head, f->head_len);
		if (f->tail_len)
			frame_copy(f, f->head_len, f->tail_len, c->iov, 1, hdr_len + f->head_len);
		vq_put_one(&put, c->id, need);
	}
	vq_put_close(&v->vq[VDEV_RX], &put);
	v->rx_used = (unsigned)(c - v->rx_chain);
	return (unsigned)(f - first);
}

/*
 * Put the chains that hold `need` bytes, popping more as needed, each but the last filled to its
 * capacity. Returns how many; 0: the ring has too little, nothing was put: used entries that were
 * written until that was known count for nothing. After more were popped all are looked at anew: those
 * at hand may have been read again, and be others now.
 */
static unsigned rx_take(struct vdev *v, uint32_t need, unsigned left)
{
	struct vq_dev *vq = &v->vq[VDEV_RX];

	do {
		struct vq_put put = vq_put_open(vq);
		const struct chain *first = &v->rx_chain[v->rx_used], *c = first;
		const struct chain *end = &v->rx_chain[v->rx_have];
		uint32_t rest = need;

		if (unlikely(!v->mrg) && c < end && c->wlen < rest)
			return 0;
		for (; c < end && c->wlen < rest; c++) {
			vq_put_one(&put, c->id, c->wlen);
			rest -= c->wlen;
		}
		if (likely(c < end)) {
			vq_put_one(&put, c->id, rest);
			vq_put_close(vq, &put);
			return (unsigned)(c + 1 - first);
		}
	} while (!rx_cache_full(v) && rx_more(v, need, left));
	return 0;
}

/* Any frame, any chains. False: no room, nothing of it was taken. */
static bool rx_put(struct vdev *v, const struct frame *f, uint32_t need, unsigned left)
{
	unsigned n = rx_take(v, need, left);

	if (likely(n)) {
		const struct chain *c = &v->rx_chain[v->rx_used], *last = c + n - 1;
		struct frame whole = *f; /* the header goes into the room before the head */

		whole.head -= v->hdr_len;
		whole.head_len = (uint16_t)(whole.head_len + v->hdr_len);
		rx_header(v, whole.head, f, n);
		/* the pieces of these chains lie one after the other */
		frame_copy(&whole, 0, need, c->iov, (unsigned)(last->iov + last->nw - c->iov), 0);
		v->rx_used += n;
		return true;
	}
	if (v->broken)
		return false;
	if (rx_cache_full(v) || (!v->mrg && v->rx_used < v->rx_have)) {
		port_drop_out(&v->port.q, f, DROP_BUFFER_SMALL);
		return true;
	}
	return false;
}

unsigned vdev_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct vdev *v = vdev_of(q);
	unsigned i = 0;

	if (unlikely(!v->rx_live))
		return 0;
	/* The wish for a kick stays: what fits for this sender may not be what another waits for. */
	v->rx_short = 0;
	for (;;) {
		i += rx_put_plain(v, f + i, n - i);
		if (i == n)
			break;

		uint32_t need = v->hdr_len + frame_len(&f[i]);

		if (v->rx_used == v->rx_have) {
			if (!rx_more(v, need, n - i))
				break;
		} else {
			if (!rx_put(v, &f[i], need, n - i))
				break;
			i++;
		}
	}
	if (i < n)
		v->rx_short = v->rx_have - v->rx_used + 1;
	return i;
}

void vdev_flush(struct portq *q)
{
	struct vdev *v = vdev_of(q);
	struct vq_dev *vq = &v->vq[VDEV_RX];

	unsigned staged = (uint16_t)(vq->used_staged - vq->used_idx);

	rx_return(v);
	if (!staged)
		return;
	q->out.bufs += staged;
	if (unlikely(gmem_faulted(&v->mem))) {
		vq->used_staged = vq->used_idx; /* zeros instead of frames are not delivered */
		vdev_break(v, VDEV_RX, "guest memory was truncated");
		return;
	}
	if (vq_dev_publish(vq) && v->notify && v->notify(v->ctx, VDEV_RX))
		q->out.notify++;
}

bool vdev_arm_room(struct portq *q, uint32_t need)
{
	struct vdev *v = vdev_of(q);
	struct vq_dev *vq = &v->vq[VDEV_RX];
	uint64_t chains = 1;
	unsigned quarter = vq->size / 4;
	bool more;

	if (!v->rx_live)
		return false;
	vdev_flush(q);
	if (v->mrg)
		chains = ((uint64_t)need + v->hdr_len + v->rx_cap - 1) / v->rx_cap;
	if (chains > quarter)
		chains = quarter;
	/* what was too little when a frame did not fit is too little still */
	if (chains < v->rx_short)
		chains = v->rx_short;
	more = vq_dev_arm(vq, chains ? (unsigned)chains : 1);
	if (unlikely(vq->broken))
		vdev_break(v, VDEV_RX, vq->broken);
	return more;
}
