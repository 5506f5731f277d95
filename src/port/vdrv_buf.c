/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_buf: receive buffers: how long they are, where they come from, when the ring is filled up.
 * It must not know what is in them.
 *
 *	MERGE  one piece of a chunk each, cut one after the other: what is posted is the stride, so
 *	       that neighbours touch and can be joined again (S1) [T6]; the last one of a chunk gets the
 *	       rest, and its recorded capacity says so [T1]. Not so with the fault of 2013: there every
 *	       buffer is of 1518 bytes, as it was in the kernel then, which gave no rest away before the
 *	       fault was mended; a full frame of MTU 1500 takes two buffers each time.
 *	SMALL  the same, for a whole frame
 *	BIG    a chain of whole chunks for a whole super-packet
 *
 * The ring is filled in batches: when more than half of min(64, ring) is free, or when what is
 * posted could not hold the longest packet, for then the device may be waiting for us. If memory is
 * out in that case, nothing would ever wake us: a timer tries again [T23].
 */
#include "port/vdrv_int.h"

#include <errno.h>
#include <stdlib.h>

#define LINE         64
#define REFILL_BATCH 64
#define VLAN_FRAME   (ETH_HLEN + VLAN_HLEN)
#define FAULT_2013   (VLAN_FRAME + 1500) /* whatever the MTU is, and no header */
#define IP_MAX       65535u
#define BIG_PIECES   18 /* the header's own, and 17 pages */

/* length */

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t line_up(uint32_t n)
{
	return (n + LINE - 1) & -LINE;
}

static bool guest_gso(uint64_t features)
{
	return features & (VNET_BIT(GUEST_TSO4) | VNET_BIT(GUEST_TSO6) | VNET_BIT(GUEST_USO4) |
				  VNET_BIT(GUEST_USO6));
}

/* The longest IP datagram that may come. */
static uint32_t datagram_max(const struct vdrv *v)
{
	return guest_gso(v->features) ? IP_MAX : v->mtu;
}

/* A full ring must be able to hold one packet of the longest kind. */
static uint32_t auto_len(const struct vdrv *v)
{
	uint32_t hdr = v->hdr_len, ring = v->vq[VDRV_RX].size;
	uint32_t share = (hdr + VLAN_FRAME + datagram_max(v) + ring - 1) / ring;
	uint32_t least = max_u32(max_u32(share, hdr) - hdr, VLAN_FRAME + v->mtu);
	uint32_t most = CHUNK_PAGE - hdr;
	uint32_t avg = (uint32_t)((v->rx.avg + (1u << VDRV_AVG_BITS) - 1) >> VDRV_AVG_BITS);

	return line_up(hdr + min_u32(max_u32(avg, least), most));
}

uint32_t vdrv_buf_len(const struct vdrv *v)
{
	uint32_t len = VLAN_FRAME + v->mtu;

	if (v->rx.mode == VDRV_SMALL)
		return line_up(v->hdr_len + len);
	switch (v->config.rxbuf) {
	case VDRV_RXBUF_PAGE:
		return CHUNK_PAGE;
	case VDRV_RXBUF_MTU:
		return FAULT_2013;
	case VDRV_RXBUF_MTU_HDR:
		return min_u32(line_up(len + v->hdr_len), CHUNK_PAGE);
	case VDRV_RXBUF_AUTO:
	default:
		return auto_len(v);
	}
}

/* set-up */

/* The smallest chunks of which few enough pieces hold it; their order, or -1. */
static int big_order(const struct vdrv *v)
{
	const struct vq_drv *vq = &v->vq[VDRV_RX];
	unsigned most = vq->size;

	if (v->config.indirect == VQ_INDIRECT_ALWAYS && vq->want_indirect)
		most = min_u32(most, VQ_TABLE);
	for (unsigned o = 0; o < CHUNK_ORDERS; o++) {
		if ((v->rx.need - 1) / (CHUNK_PAGE << o) + 1 + v->rx.header_apart <= most)
			return (int)o;
	}
	return -1;
}

static int big_setup(struct vdrv *v, struct err *err)
{
	int order = big_order(v);

	if (order < 0)
		return err_set(err, EINVAL,
			"a ring of %u cannot hold a packet of %u bytes: use a larger ring, or a "
			"device with mrg_rxbuf",
			v->vq[VDRV_RX].size, v->rx.need);
	v->rx.page_order = (unsigned)order;
	v->rx.pages = (v->rx.need - 1) / (CHUNK_PAGE << order) + 1;
	v->rx.page = calloc((size_t)v->vq[VDRV_RX].size * v->rx.pages, sizeof(*v->rx.page));
	if (!v->rx.page)
		return err_set(err, ENOMEM, "no memory for receive buffers");
	return 0;
}

int vdrv_buf_setup(struct vdrv *v, struct err *err)
{
	struct vdrv_rx *rx = &v->rx;

	free(rx->page);
	rx->page = NULL;
	rx->pages = 0;
	rx->avg = 0;
	rx->budget = (v->chunks.len - (uint64_t)v->chunks.reserved * CHUNK_PAGE) / 2;
	rx->need = v->hdr_len + VLAN_FRAME + datagram_max(v);
	rx->header_apart = !v->mrg && !(v->features & (VNET_BIT(VERSION_1) | VNET_BIT(ANY_LAYOUT)));
	rx->mode = v->mrg ? VDRV_MERGE : VDRV_SMALL;
	rx->hole = !v->mrg || v->config.rxbuf != VDRV_RXBUF_MTU;
	if (!v->mrg && (guest_gso(v->features) || line_up(rx->need) > CHUNK_PAGE)) {
		rx->mode = VDRV_BIG;
		return big_setup(v, err);
	}
	if ((uint64_t)vdrv_buf_len(v) * v->vq[VDRV_RX].size < v->hdr_len + ETH_HLEN + v->mtu)
		return err_set(err, EINVAL,
			"a ring of %u buffers of %u bytes cannot hold a frame of MTU %u: use a "
			"larger ring or a smaller MTU",
			v->vq[VDRV_RX].size, vdrv_buf_len(v), v->mtu);
	return 0;
}

/* refill */

/* One that was copied out of, if it is of a good length still; else a new one. */
static inline bool buf_get(struct vdrv *v, uint32_t len, struct vdrv_spare *b)
{
	struct vdrv_rx *rx = &v->rx;

	while (rx->spare_get != rx->spare_put) {
		*b = rx->spare[rx->spare_get++ & v->vq[VDRV_RX].mask];
		if (likely(b->cap >= len && b->cap < 2 * len))
			return true;
		chunk_put(&v->chunks, b->chunk);
	}
	b->data = page_frag_get(&rx->frag, len, rx->hole, &b->chunk, &b->cap);
	return b->data;
}

static inline bool post_one(struct vdrv *v, uint32_t len)
{
	struct vq_drv *vq = &v->vq[VDRV_RX];
	struct vdrv_buf *b = &v->rx.buf[vq_drv_next_id(vq)];
	struct vdrv_spare s;

	if (unlikely(!buf_get(v, len, &s)))
		return false;
	if (likely(!v->rx.header_apart)) {
		vq_drv_add1(vq, s.data, s.cap, true, b);
	} else {
		struct iovec iov[2] = {
			{s.data, v->hdr_len}, {s.data + v->hdr_len, s.cap - v->hdr_len}};

		if (vq_drv_add(vq, iov, 0, 2, b)) {
			chunk_put(&v->chunks, s.chunk);
			return true; /* no room in the ring is no lack of memory */
		}
	}
	*b = (struct vdrv_buf){s.data, s.chunk};
	v->rx.posted_bytes += s.cap;
	return true;
}

static void pages_put(struct vdrv *v, struct chunk **page, unsigned n)
{
	while (n--)
		chunk_put(&v->chunks, page[n]);
}

/* Chunks of the order, no lower. */
static bool pages_get(struct vdrv *v, struct chunk **page)
{
	for (unsigned i = 0; i < v->rx.pages; i++) {
		page[i] = chunk_get(&v->chunks, v->rx.page_order);
		if (page[i] && page[i]->order < v->rx.page_order) {
			chunk_put(&v->chunks, page[i]);
			page[i] = NULL;
		}
		if (!page[i]) {
			pages_put(v, page, i);
			return false;
		}
	}
	return true;
}

/* 0, -ENOSPC: the ring is full or the budget is used up; -ENOMEM. */
static int post_big(struct vdrv *v)
{
	struct vq_drv *vq = &v->vq[VDRV_RX];
	struct vdrv_buf *b = &v->rx.buf[vq_drv_next_id(vq)];
	struct chunk **page = &v->rx.page[(b - v->rx.buf) * v->rx.pages];
	uint32_t size = CHUNK_PAGE << v->rx.page_order;
	struct iovec iov[BIG_PIECES];
	unsigned n = 0;
	int rc;

	if (v->rx.posted_bytes + (uint64_t)size * v->rx.pages > v->rx.budget)
		return -ENOSPC;
	if (!pages_get(v, page))
		return -ENOMEM;
	iov[n++] = (struct iovec){chunk_data(&v->chunks, page[0]), size};
	if (v->rx.header_apart) {
		iov[n++] = (struct iovec){(char *)iov->iov_base + v->hdr_len, size - v->hdr_len};
		iov->iov_len = v->hdr_len;
	}
	for (unsigned i = 1; i < v->rx.pages; i++)
		iov[n++] = (struct iovec){chunk_data(&v->chunks, page[i]), size};
	rc = vq_drv_add(vq, iov, 0, n, b);
	if (rc) {
		pages_put(v, page, v->rx.pages);
		return -ENOSPC;
	}
	b->data = iov->iov_base;
	b->chunk = NULL;
	v->rx.posted_bytes += (uint64_t)size * v->rx.pages;
	return 0;
}

/* False: memory is out. */
static bool fill_big(struct vdrv *v)
{
	int rc = 0;

	while (!rc && v->vq[VDRV_RX].nfree)
		rc = post_big(v);
	return rc != -ENOMEM;
}

static bool fill(struct vdrv *v)
{
	const struct vq_drv *vq = &v->vq[VDRV_RX];
	unsigned ndesc = 1 + v->rx.header_apart;
	uint32_t len = vdrv_buf_len(v);

	while (vq->nfree >= ndesc && v->rx.posted_bytes + len <= v->rx.budget)
		if (unlikely(!post_one(v, len)))
			return false;
	return true;
}

void vdrv_refill(struct vdrv *v)
{
	struct vq_drv *vq = &v->vq[VDRV_RX];
	bool all = v->rx.mode == VDRV_BIG ? fill_big(v) : fill(v);

	v->n.rx_refills += vq->avail_next != vq->avail_shown;
	if (vq_drv_publish(vq))
		vdrv_kick(v, VDRV_RX);
	if (likely(all))
		return;
	v->n.rx_refill_failed++;
	if (v->rx.posted_bytes < v->rx.need && !v->rx.retry.set)
		loop_timer_set(v->port.loop, &v->rx.retry, loop_now(v->port.loop) + VDRV_RETRY);
}

void vdrv_refill_check(struct vdrv *v)
{
	const struct vq_drv *vq = &v->vq[VDRV_RX];

	if (unlikely(chunk_pool_torn(&v->chunks)))
		loop_defer(v->port.loop, &v->mend_task);
	if (vq->nfree > min_u32(REFILL_BATCH, vq->size) / 2 || v->rx.posted_bytes < v->rx.need)
		vdrv_refill(v);
}

void vdrv_buf_retry(struct loop_timer *t)
{
	struct vdrv *v = (struct vdrv *)(void *)((char *)t - offsetof(struct vdrv, rx.retry));

	v->n.rx_retries++;
	if (v->ringed && !v->broken)
		vdrv_refill_check(v);
}

/* back */

void vdrv_buf_drop(struct vdrv *v, const struct vdrv_used *u)
{
	if (u->chunk)
		chunk_put(&v->chunks, u->chunk);
	else
		pages_put(v, &v->rx.page[u->id * v->rx.pages], v->rx.pages);
}

void vdrv_buf_detach(struct vdrv *v)
{
	struct vdrv_buf *b;

	loop_timer_cancel(v->port.loop, &v->rx.retry);
	while ((b = vq_drv_detach(&v->vq[VDRV_RX]))) {
		struct vdrv_used u = {.chunk = b->chunk, .id = (uint16_t)(b - v->rx.buf)};

		vdrv_buf_drop(v, &u);
	}
	while (v->rx.spare_get != v->rx.spare_put)
		chunk_put(&v->chunks, v->rx.spare[v->rx.spare_get++ & v->vq[VDRV_RX].mask].chunk);
	page_frag_fini(&v->rx.frag);
	v->rx.posted_bytes = 0;
}
