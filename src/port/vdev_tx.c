/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev_tx: the guest's transmit queue: chains become frames on loan, and go back used or unused.
 *
 * The virtio header and the head of the frame are copied out of guest memory once and in one go,
 * the header into the room before the head; everything after is decided on that copy. The rest of
 * the chain becomes the frame's tail in place: the pieces that pop wrote into the burst, trimmed.
 *
 * Guest memory misses the cache; at 64 bytes that is most of the time spent here. So the first
 * lines of the chains ahead are asked for while one is copied.
 *
 * It must not know where frames go. [VIRTIO 1.2 5.1.6.2]
 */
#include "port/vdev_int.h"

#include "wire/bytes.h"
#include "wire/eth.h"

#define TX_AHEAD 6 /* chains whose first lines are on their way */

static inline unsigned min_u(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static inline void chain_prefetch(const struct chain *c)
{
	const char *first = c->iov[0].iov_base;

	__builtin_prefetch(first);
	if (c->nr > 1)
		__builtin_prefetch(c->iov[1].iov_base);
	else
		__builtin_prefetch(first + 64);
}

/* Copy `n` bytes, which the pieces from *p on hold, and step over them. */
static void pieces_take(struct iovec **p, uint8_t *to, uint32_t n)
{
	while (n) {
		uint32_t part = min_u(n, (unsigned)(*p)->iov_len);

		memcpy(to, (*p)->iov_base, part);
		(*p)->iov_base = (char *)(*p)->iov_base + part;
		(*p)->iov_len -= part;
		if (!(*p)->iov_len)
			(*p)++;
		to += part;
		n -= part;
	}
}

/* The header, then `head` bytes of the frame, to where they belong. Returns the first piece left.
 */
static inline struct iovec *chain_copy_head(
	const struct chain *c, uint8_t *data, unsigned hdr_len, uint32_t head)
{
	struct iovec *p = c->iov;

	if (likely(p->iov_len >= hdr_len + head)) { /* all in the first piece */
		memcpy(data - hdr_len, p->iov_base, hdr_len + head);
		p->iov_base = (char *)p->iov_base + hdr_len + head;
		p->iov_len -= hdr_len + head;
		return p;
	}
	if (p->iov_len == hdr_len && p[1].iov_len >= head) { /* the header has a piece of its own */
		memcpy(data - hdr_len, p->iov_base, hdr_len);
		p++;
		memcpy(data, p->iov_base, head);
		p->iov_base = (char *)p->iov_base + head;
		p->iov_len -= head;
		return p;
	}
	pieces_take(&p, data - hdr_len, hdr_len + head);
	return p;
}

/* Lend one chain as one frame. NULL, or why the driver may not do this. */
static const char *tx_lend_any(
	const struct chain *c, unsigned hdr_len, struct frame *f, struct frame_head *h)
{
	if (unlikely(c->nw))
		return "a transmit chain has writable parts";
	if (unlikely(c->rlen < hdr_len))
		return "a transmit chain is shorter than the virtio-net header";

	uint32_t len = c->rlen - hdr_len, head = len < FRAME_HEAD ? len : FRAME_HEAD;
	struct iovec *p = chain_copy_head(c, h->data, hdr_len, head);

	f->head = h->data;
	f->head_len = (uint16_t)head;
	f->tail_len = len - head;
	f->tail = NULL;
	f->ntail = 0;
	if (len > head) {
		while (!p->iov_len)
			p++;
		f->tail = p;
		f->ntail = (uint16_t)(c->iov + c->nr - p);
	}
	f->backing = NULL;
	f->charge = 0;
	f->drop = DROP_NONE;
	if (unlikely(len - ETH_HLEN > FRAME_MAX - ETH_HLEN)) /* both ends with one comparison */
		f->drop = len < ETH_HLEN ? DROP_SHORT : DROP_TOO_LONG;
	vnet_hdr_parse(h->room + FRAME_ROOM - hdr_len, &f->off);
	return NULL;
}

/* The same; most frames are one piece, and nothing is left of it behind the head. */
static inline const char *tx_lend(
	const struct chain *c, unsigned hdr_len, struct frame *f, struct frame_head *h)
{
	const uint8_t *from = c->iov->iov_base;
	uint8_t *to = h->room + FRAME_ROOM - hdr_len; /* on into the data */
	uint32_t len = c->rlen - hdr_len;

	if (unlikely(c->nr != 1 || c->nw || len - ETH_HLEN > FRAME_HEAD - ETH_HLEN))
		return tx_lend_any(c, hdr_len, f, h);
	copy_small(to, from, len + hdr_len);
	*f = (struct frame){.head = h->data, .head_len = (uint16_t)len};
	if (unlikely(to[0] | to[1]))
		vnet_hdr_parse_slow(to, &f->off);
	return NULL;
}

/* Lend chains [first, first + n) of lent[] until the burst is full; returns how many. */
static unsigned tx_lend_chains(struct vdev *v, struct burst *b, unsigned first, unsigned n)
{
	const struct chain *c = &v->lent[first];
	struct frame *f = &b->f[b->n];
	struct frame_head *h = &b->head[b->n];
	unsigned hdr_len = v->hdr_len, i;
	uint32_t bytes = b->bytes;

	for (i = 0; i < min_u(n, TX_AHEAD); i++)
		chain_prefetch(&c[i]);
	for (i = 0; i < n && bytes < BURST_BYTES; i++, f++, h++) {
		const char *why;

		if (i + TX_AHEAD < n)
			chain_prefetch(&c[i + TX_AHEAD]);
		why = tx_lend(&c[i], hdr_len, f, h);
		if (unlikely(why)) {
			vdev_break(v, VDEV_TX, why);
			break;
		}
		/* what one frame counts is bounded: a chain may have 2^32 - 1 bytes */
		bytes += min_u(c[i].rlen - hdr_len, BURST_BYTES);
	}
	b->bytes = bytes;
	b->n += i;
	if (i)
		b->niov = (unsigned)(c[i - 1].iov + c[i - 1].nr - b->iov);
	return i;
}

/* "I am here now": a reverse ARP request for one's own address, as hypervisors send it after a
 * migration, makes switches learn. [RFC 903] */
static void tx_lend_rarp(struct vdev *v, struct burst *b)
{
	struct frame *f = &b->f[b->n];
	uint8_t *p = b->head[b->n].data;

	memset(p, 0, 60);
	memset(p, 0xff, 6);
	memcpy(p + 6, v->rarp_mac, 6);
	put_be16(p + 12, ETH_TYPE_RARP);
	put_be16(p + 14, 1);            /* Ethernet */
	put_be16(p + 16, ETH_TYPE_IP4); /* IPv4 */
	p[18] = 6;
	p[19] = 4;
	put_be16(p + 20, 3); /* request reverse */
	memcpy(p + 22, v->rarp_mac, 6);
	memcpy(p + 32, v->rarp_mac, 6);
	*f = (struct frame){.head = p, .head_len = 60};
	b->bytes += 60;
	b->n++;
	v->rarp_lent = true;
}

unsigned vdev_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct vdev *v = vdev_of(q);
	struct vq_dev *vq = &v->vq[VDEV_TX];
	const uint64_t enough = vq->n_desc + 2 * BURST_IOV; /* see vq_dev_pop */

	b->n = b->niov = b->bytes = 0;
	v->nlent = 0;
	v->rarp_lent = false;
	if (unlikely(!v->tx_live || !max))
		return 0;
	max = min_u(max, BURST_FRAMES);
	if (vq->armed)
		vq_dev_disarm(vq);
	if (unlikely(v->rarp_pending))
		tx_lend_rarp(v, b);

	while (b->n < max && b->bytes < BURST_BYTES && vq->n_desc < enough) {
		unsigned want = min_u(max - b->n, v->tx_want);
		unsigned got = vq_dev_pop(
			vq, &v->lent[v->nlent], want, &b->iov[b->niov], BURST_IOV - b->niov);
		unsigned lent = tx_lend_chains(v, b, v->nlent, got);

		v->nlent += lent;
		if (lent < got)
			vq_dev_unpop(vq, got - lent);
		if (lent < want)
			break;
	}
	if (b->n)
		v->tx_want = min_u(BURST_FRAMES, (uint32_t)BURST_BYTES * b->n / (b->bytes + 1) + 1);
	if (unlikely(vq->broken))
		vdev_break(v, VDEV_TX, vq->broken);
	if (unlikely(gmem_faulted(&v->mem))) {
		vdev_break(v, VDEV_TX, "guest memory was truncated");
		vdev_settle(q, b, 0);
		b->n = b->niov = b->bytes = 0;
	}
	return b->n;
}

void vdev_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct vdev *v = vdev_of(q);
	struct vq_dev *vq = &v->vq[VDEV_TX];
	unsigned done = n;

	(void)b;
	if (unlikely(v->rarp_lent) && n) {
		v->rarp_pending = false;
		done--;
	}
	if (done)
		vq_dev_put_read(vq, v->lent, done);
	if (v->nlent > done)
		vq_dev_unpop(vq, v->nlent - done);
	v->nlent = 0;
	v->rarp_lent = false;
	q->in.bufs += done;
	if (done && vq_dev_publish(vq) && v->notify && v->notify(v->ctx, VDEV_TX))
		q->in.notify++;
}

bool vdev_arm(struct portq *q)
{
	struct vdev *v = vdev_of(q);
	struct vq_dev *vq = &v->vq[VDEV_TX];
	bool more;

	if (!v->tx_live)
		return false;
	more = v->rarp_pending || vq_dev_arm(vq, 1);
	if (unlikely(vq->broken))
		vdev_break(v, VDEV_TX, vq->broken);
	return more;
}

void vdev_tx_discard(struct vdev *v)
{
	struct vq_dev *vq = &v->vq[VDEV_TX];
	struct portq *q = &v->port.q;
	unsigned left = 2 * vq->size; /* not for ever, whatever the driver does */
	unsigned n;

	do {
		n = vq_dev_discard(vq, left);
		q->drop_in[DROP_DISABLED] += n;
		if (n)
			q->last_drop_in = DROP_DISABLED;
		left -= n;
	} while (left && (n || vq_dev_arm(vq, 1)));
	if (vq->broken)
		vdev_break(v, VDEV_TX, vq->broken);
	if (vq_dev_publish(vq) && v->notify && v->notify(v->ctx, VDEV_TX))
		q->in.notify++;
}
