/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_rx: used receive buffers become packets, and packets on loan become frames.
 *
 * A packet lies in num_buffers buffers, of which the first begins with the virtio header. The
 * header is copied once, and only the copy is read [T13]. Whatever is wrong with a packet, the
 * buffers that belong to it are taken from the ring before the next one is looked at: else its
 * middle would be read as a header [T2, T5].
 *
 * A short packet in one buffer is copied out, so that it does not pin a chunk, and its buffer is
 * posted again: for pull straight into the burst, and it becomes a packet only if it goes back.
 * [VIRTIO 1.2 5.1.6.4]
 */
#include "port/vdrv_int.h"

#include <string.h>

#define RX_HEADROOM 16 /* of heads made here: IP headers behind Ethernet are aligned to 2 only */

/* used buffers */

/* The first lines of a buffer that will be got some turns later: a guess, so it may be wrong, and the
 * second line may lie behind no buffer at all: a number then, and no pointer. */
static inline void used_ahead(const struct vdrv *v, const struct vq_drv *vq)
{
	const struct vring_used_elem *e = &vq->used->ring[(vq->used_next + VDRV_AHEAD) & vq->mask];
	unsigned id = __atomic_load_n(&e->id, __ATOMIC_RELAXED) & vq->mask;
	uintptr_t data = (uintptr_t)v->rx.buf[id].data;

	__builtin_prefetch((const void *)data);
	__builtin_prefetch((const void *)(data + 64));
}

static inline bool used_next(struct vdrv *v, struct vdrv_used *u)
{
	struct vq_drv *vq = &v->vq[VDRV_RX];
	const struct vdrv_buf *b = vq_drv_get(vq, &u->written, &u->cap);

	if (unlikely(!b)) {
		if (unlikely(vq->broken))
			vdrv_break(v, vq->broken);
		return false;
	}
	u->data = b->data;
	u->chunk = b->chunk;
	u->id = (uint16_t)(b - v->rx.buf);
	v->rx.posted_bytes -= u->cap;
	v->n.rx_used++;
	used_ahead(v, vq);
	return true;
}

void vdrv_rx_drop(struct vdrv *v)
{
	struct pkt *p;

	while ((p = STAILQ_FIRST(&v->rx.back))) {
		STAILQ_REMOVE_HEAD(&v->rx.back, entry);
		pkt_free(p);
	}
}

/* A packet that is wrong: `left` more buffers of the ring belong to it. */
static struct pkt *rx_fail(struct vdrv *v, struct pkt *p, unsigned left, uint64_t *counter)
{
	struct portq *q = &v->port.q;
	struct vdrv_used u;

	(*counter)++;
	q->drop_in[DROP_BAD_HDR]++;
	q->last_drop_in = DROP_BAD_HDR;
	pkt_free(p);
	while (left-- && used_next(v, &u))
		vdrv_buf_drop(v, &u);
	return NULL;
}

/* packets */

/* What a buffer costs whoever holds the packet. */
static inline uint32_t charge(const struct vdrv *v, uint32_t cap)
{
	return likely(!v->config.charge) ? cap : v->config.charge;
}

static inline void rx_count(struct vdrv *v, uint32_t len, unsigned bufs)
{
	v->n.rx_packets++;
	v->n.rx_bytes += len;
	v->n.rx_buffers += bufs;
	v->rx.avg = vdrv_avg(v->rx.avg, len);
}

/* Without GUEST_CSUM a device may say nothing. [VIRTIO 1.2 5.1.6.4.1] */
static inline void offload_parse(const struct vdrv *v, const uint8_t *hdr, struct offload *off)
{
	vnet_hdr_parse(hdr, off);
	if (likely(!(hdr[0] | hdr[1])))
		return;
	if (!(v->features & VNET_BIT(GUEST_CSUM)))
		*off = (struct offload){0};
	else if (hdr[0] & OFF_DATA_VALID && !(hdr[0] & OFF_NEEDS_CSUM))
		off->flags |= OFF_DATA_VALID;
}

/* Buffers of the packet by its header; 0 with an error counted. */
static inline unsigned num_buffers(struct vdrv *v, const uint8_t *hdr)
{
	unsigned n = v->hdr_len == VNET_HDR_MAX ? hdr[10] | hdr[11] << 8 : 1;

	if (likely(n == 1))
		return 1;
	if (v->mrg)
		return n;
	if (n == 0) { /* old devices do not set it [T10] */
		v->n.rx_zero_num_buffers++;
		return 1;
	}
	return 0;
}

/* Take one more buffer in; NULL: the packet is gone. `left`: buffers after this one. */
static struct pkt *rx_append(struct vdrv *v, struct pkt *p, unsigned left)
{
	struct vdrv_used u;
	uint64_t *wrong = NULL;

	if (unlikely(!used_next(v, &u)))
		return rx_fail(v, p, 0, &v->n.rx_err_missing);
	if (unlikely(u.written > u.cap))
		wrong = &v->n.rx_err_len;
	else if (unlikely(!u.written))
		wrong = &v->n.rx_err_short;
	else if (unlikely(p->len + u.written > FRAME_MAX))
		wrong = &v->n.rx_err_too_big;
	if (unlikely(wrong)) {
		vdrv_buf_drop(v, &u);
		return rx_fail(v, p, left, wrong);
	}
	v->n.rx_not_full += left && u.written < u.cap;
	if (unlikely(!pkt_add(p, u.chunk, u.data, u.written, charge(v, u.cap), v->config.coalesce)))
		return rx_fail(v, p, left, &v->n.rx_err_memory);
	return p;
}

/* The pages of a big buffer: whole ones as fragments, those behind the end go back. */
static bool rx_add_pages(struct vdrv *v, struct pkt *p, const struct vdrv_used *u, uint32_t skip)
{
	struct chunk **page = &v->rx.page[u->id * v->rx.pages];
	uint32_t left = u->written;
	bool ok = true;

	for (unsigned i = 0; i < v->rx.pages; i++) {
		uint32_t size = chunk_size(page[i]), n = left < size ? left : size;

		left -= n;
		if (ok && n > skip)
			ok = pkt_add(p, page[i], chunk_data(&v->chunks, page[i]) + skip, n - skip,
				size, v->config.coalesce);
		else
			chunk_put(&v->chunks, page[i]);
		skip -= skip < n ? skip : n;
	}
	return ok;
}

/* The first buffer: the Ethernet header is the head, the rest the first fragment. */
static bool rx_first(struct vdrv *v, struct pkt *p, const struct vdrv_used *u)
{
	uint32_t skip = v->hdr_len + ETH_HLEN;

	memcpy(p->head, u->data + v->hdr_len, ETH_HLEN);
	if (v->rx.mode == VDRV_BIG)
		return rx_add_pages(v, p, u, skip);
	if (likely(u->written > skip))
		return pkt_add(p, u->chunk, u->data + skip, u->written - skip, charge(v, u->cap),
			v->config.coalesce);
	vdrv_buf_drop(v, u);
	return true;
}

/* All of a short packet is the head. */
static struct pkt *rx_copy(struct vdrv *v, const struct vdrv_used *u)
{
	uint32_t len = u->written - v->hdr_len;
	struct pkt *p = pkt_new(&v->pkts, RX_HEADROOM, len);

	if (likely(p))
		memcpy(p->head, u->data + v->hdr_len, len);
	vdrv_buf_again(v, u);
	if (unlikely(!p))
		return rx_fail(v, NULL, 0, &v->n.rx_err_memory);
	v->n.rx_copied++;
	return p;
}

/* A packet of `n` buffers that begins with `u`, whose header was copied to `hdr`. */
static struct pkt *rx_packet(
	struct vdrv *v, const struct vdrv_used *u, const uint8_t *hdr, unsigned n)
{
	uint32_t len = u->written - v->hdr_len;
	struct pkt *p;

	if (n == 1 && len <= v->config.copybreak) {
		p = rx_copy(v, u);
		if (unlikely(!p))
			return NULL;
	} else {
		p = pkt_new(&v->pkts, RX_HEADROOM, ETH_HLEN);
		if (unlikely(!p)) {
			vdrv_buf_drop(v, u);
			return rx_fail(v, NULL, n - 1, &v->n.rx_err_memory);
		}
		if (unlikely(!rx_first(v, p, u)))
			return rx_fail(v, p, n - 1, &v->n.rx_err_memory);
		for (unsigned k = 2; k <= n; k++) {
			p = rx_append(v, p, n - k);
			if (unlikely(!p))
				return NULL;
		}
	}
	offload_parse(v, hdr, &p->off);
	v->n.rx_truesize += p->truesize;
	if (p->nfrag) {
		unsigned frags = pkt_frags(p);

		v->n.rx_frags += frags;
		v->n.rx_chained += pkt_chained(p);
		if (v->rx.mode != VDRV_BIG && n > frags)
			v->n.rx_coalesced += n - frags;
	}
	rx_count(v, p->len, n);
	return p;
}

/*
 * What begins with `u`, whose header was copied to `hdr`: a packet, or NULL. A buffer that cannot
 * begin one is dropped with all that its header, if it has one, says belongs to it.
 */
static struct pkt *rx_any(struct vdrv *v, const struct vdrv_used *u, const uint8_t *hdr)
{
	unsigned n = num_buffers(v, hdr), left = 0;
	uint64_t *wrong = NULL;

	if (u->written > u->cap)
		wrong = &v->n.rx_err_len;
	else if (u->written < v->hdr_len + ETH_HLEN)
		wrong = &v->n.rx_err_short;
	else if (!n || n > v->vq[VDRV_RX].size)
		wrong = &v->n.rx_err_num_buffers;
	else if (u->written > v->hdr_len + FRAME_MAX)
		wrong = &v->n.rx_err_too_big;
	if (likely(!wrong)) {
		v->n.rx_not_full += n > 1 && u->written < u->cap;
		return rx_packet(v, u, hdr, n);
	}
	if (n > 1 && u->written >= v->hdr_len)
		left = n - 1;
	vdrv_buf_drop(v, u);
	return rx_fail(v, NULL, left, wrong);
}

/* the port's side */

/* Lend a packet; false: the burst has no room for its pieces. */
static bool lend(struct vdrv *v, struct burst *b, struct pkt *p)
{
	struct frame *f = &b->f[b->n];

	if (!pkt_lend(p, f, &b->head[b->n], &b->iov[b->niov], BURST_IOV - b->niov))
		return false;
	b->niov += f->ntail;
	b->bytes += p->len;
	b->n++;
	v->rx.lent[v->rx.nlent++] = p;
	v->rx.nlent_pkts++;
	return true;
}

/*
 * A short packet in one buffer: header and frame in one copy, to where the head of a frame lies.
 * False: it is not one; the header is at the same place all the same.
 */
static inline bool lend_short(
	struct vdrv *v, struct burst *b, const struct vdrv_used *u, uint32_t most)
{
	struct frame *f = &b->f[b->n];
	uint8_t *data = b->head[b->n].data, *hdr = data - v->hdr_len;
	uint32_t len = u->written - v->hdr_len;

	if (unlikely(len - ETH_HLEN > most - ETH_HLEN || u->written > u->cap)) {
		memcpy(hdr, u->data, VNET_HDR_MAX); /* any buffer has that much */
		return false;
	}
	copy_small(hdr, u->data, u->written);
	if (unlikely(num_buffers(v, hdr) != 1))
		return false;
	*f = (struct frame){.head = data, .head_len = (uint16_t)len};
	offload_parse(v, hdr, &f->off);
	vdrv_buf_again(v, u);
	b->bytes += len;
	b->n++;
	v->rx.lent[v->rx.nlent++] = NULL;
	rx_count(v, len, 1);
	v->n.rx_copied++;
	return true;
}

/* Those that went back come first. False: the burst is full. */
static bool lend_back(struct vdrv *v, struct burst *b, unsigned max)
{
	struct pkt *p;

	while ((p = STAILQ_FIRST(&v->rx.back))) {
		if (b->n == max || b->bytes >= BURST_BYTES || !lend(v, b, p))
			return false;
		STAILQ_REMOVE_HEAD(&v->rx.back, entry);
	}
	return true;
}

static void lend_new(struct vdrv *v, struct burst *b, unsigned max)
{
	uint32_t most = v->config.copybreak < FRAME_PULL_MAX ? v->config.copybreak : FRAME_PULL_MAX;
	struct vdrv_used u;

	if (most < ETH_HLEN)
		most = ETH_HLEN;
	while (b->n < max && b->bytes < BURST_BYTES && used_next(v, &u)) {
		uint8_t hdr[VNET_HDR_MAX];
		struct pkt *p;

		if (likely(lend_short(v, b, &u, most)))
			continue;
		memcpy(hdr, b->head[b->n].room + FRAME_ROOM - v->hdr_len, sizeof(hdr));
		p = rx_any(v, &u, hdr);
		if (p && unlikely(!lend(v, b, p))) {
			STAILQ_INSERT_TAIL(&v->rx.back, p, entry);
			return;
		}
	}
}

unsigned vdrv_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct vdrv *v = vdrv_of(q);

	uint64_t used = v->n.rx_used;

	b->n = b->niov = b->bytes = 0;
	v->rx.nlent = v->rx.nlent_pkts = 0;
	if (unlikely(!v->live))
		return 0;
	if (v->vq[VDRV_RX].armed)
		vq_drv_disarm(&v->vq[VDRV_RX]);
	if (max > BURST_FRAMES)
		max = BURST_FRAMES;
	if (likely(lend_back(v, b, max)))
		lend_new(v, b, max);
	q->in.bufs += v->n.rx_used - used;
	if (likely(v->live))
		vdrv_refill_check(v);
	return b->n;
}

/* One that goes back and has no packet yet gets one. */
static struct pkt *lent_packet(struct vdrv *v, const struct burst *b, unsigned i)
{
	struct keep_rule rule = {.headroom = RX_HEADROOM};

	return v->rx.lent[i] ? v->rx.lent[i] : frame_keep(&b->f[i], &v->pkts, &rule);
}

void vdrv_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct vdrv *v = vdrv_of(q);

	for (unsigned i = 0; i < n && v->rx.nlent_pkts; i++)
		pkt_free(v->rx.lent[i]);
	for (unsigned i = v->rx.nlent; i-- > n;) { /* the last first: to the front, in order */
		struct pkt *p = lent_packet(v, b, i);

		if (unlikely(!p)) {
			v->n.rx_err_memory++;
			port_drop_in(q, &b->f[i], DROP_NO_ROOM);
			continue;
		}
		STAILQ_INSERT_HEAD(&v->rx.back, p, entry);
	}
	v->rx.nlent = 0;
}

bool vdrv_arm(struct portq *q)
{
	struct vdrv *v = vdrv_of(q);
	bool more;

	if (!v->live)
		return false;
	vdrv_refill_check(v);
	if (!STAILQ_EMPTY(&v->rx.back))
		return true;
	more = vq_drv_arm(&v->vq[VDRV_RX], 1);
	if (unlikely(v->vq[VDRV_RX].broken))
		vdrv_break(v, v->vq[VDRV_RX].broken);
	return more;
}

/* the owner's side */

/* Offload fields are the device's word: check them as port_pull does. */
static __attribute__((noinline)) bool received_check(struct vdrv *v, struct pkt *p)
{
	struct iovec iov[VDRV_RING_MAX + 1]; /* each buffer of the ring may be a piece */
	struct frame_head head;
	struct frame f;
	enum drop why;

	if (!pkt_lend(p, &f, &head, iov, sizeof(iov) / sizeof(*iov)))
		return false;
	why = offload_check(&f);
	p->off = f.off;
	if (why)
		port_drop_in(&v->port.q, &f, why);
	return !why;
}

static inline bool received_good(struct vdrv *v, struct pkt *p)
{
	return likely(!(p->off.flags | p->off.gso)) || received_check(v, p);
}

static struct pkt *receive_one(struct vdrv *v)
{
	struct pkt *p = STAILQ_FIRST(&v->rx.back);
	struct vdrv_used u;

	if (p) {
		STAILQ_REMOVE_HEAD(&v->rx.back, entry);
		return p;
	}
	while (!p && used_next(v, &u)) {
		uint8_t hdr[VNET_HDR_MAX];

		memcpy(hdr, u.data, sizeof(hdr));
		p = rx_any(v, &u, hdr);
	}
	return p;
}

unsigned vdrv_receive(struct port *port, struct pkt **out, unsigned max)
{
	struct vdrv *v = vdrv_port(port);
	uint64_t used = v->n.rx_used;
	struct pkt *p;
	unsigned n = 0;

	if (unlikely(!v->live))
		return 0;
	if (v->vq[VDRV_RX].armed)
		vq_drv_disarm(&v->vq[VDRV_RX]);
	while (n < max && (p = receive_one(v))) {
		if (likely(received_good(v, p)))
			out[n++] = p;
		else
			pkt_free(p);
	}
	port->q.in.bufs += v->n.rx_used - used;
	if (likely(v->live))
		vdrv_refill_check(v);
	return n;
}
