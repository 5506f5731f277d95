/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split_dev: the device side of a split virtqueue. [VIRTIO 1.2 2.7]
 *
 * Three indices run around the ring, all of them modulo 2^16:
 *
 *	avail ring   ... popped ... | last_avail ... available ... | avail_idx
 *	used ring    ... the driver has seen it ... | used_idx ... staged ... | used_staged
 *
 * The driver may write anything at any time. So each of its fields is loaded once, by a load that
 * the compiler cannot repeat, and only the local copy is checked and used. Descriptor loops need no
 * marking: a chain that reads more descriptors than there are is one.
 *
 * Barriers come in pairs with the driver's:
 *	[avail]  acquire of avail->idx here; the driver stores entries and descriptors, then releases it
 *	[used]   release of used->idx here; the driver acquires it, then reads used entries and buffers
 *	[kick]   full, between avail_event (or the flag) and the re-check of avail->idx here; the driver
 *	         has one between avail->idx and avail_event
 *	[call]   full, between used->idx and used_event (or the flag) here; the driver has one between
 *	         used_event and its re-check of used->idx
 */
#include "ring/vq.h"

#include <assert.h>
#include <errno.h>

#include "base/limits.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

void vq_dev_init(struct vq_dev *vq, const struct gmem *mem)
{
	*vq = (struct vq_dev){.mem = mem};
}

int vq_dev_set_size(struct vq_dev *vq, unsigned size, struct err *err)
{
	if (!size || size > RING_MAX || (size & (size - 1)))
		return err_set(err, EINVAL, "ring size %u: must be a power of two from 1 to %d",
			size, RING_MAX);
	vq->size = (uint16_t)size;
	return 0;
}

void vq_dev_set_rings(struct vq_dev *vq, void *desc, void *avail, void *used)
{
	vq->desc = desc;
	vq->avail = avail;
	vq->used = used;
}

/* Which avail index the driver shall kick at; without event indices: whether at all. */
static void kick_wish(struct vq_dev *vq, bool armed, uint16_t event)
{
	vq->armed = armed;
	if (vq->event_idx) /* behind the used ring's last entry, where the next one would be */
		__atomic_store_n((uint16_t *)&vq->used->ring[vq->size], event, __ATOMIC_RELAXED);
	else
		__atomic_store_n(
			&vq->used->flags, armed ? 0 : VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED);
}

void vq_dev_start(struct vq_dev *vq, uint16_t base, bool event_idx, bool indirect)
{
	vq->event_idx = event_idx;
	vq->indirect = indirect;
	vq->last_avail = vq->avail_idx = base;
	vq->used_idx = vq->used ? __atomic_load_n(&vq->used->idx, __ATOMIC_RELAXED) : base;
	vq->used_staged = vq->used_idx;
	vq->signalled_valid = false;
	vq->hint = 0;
	vq->broken = vq->size ? NULL : "ring without a size";
	if (vq_dev_ready(vq)) /* whoever served the ring before may have left any wish */
		kick_wish(vq, true, base);
}

uint16_t vq_dev_stop(struct vq_dev *vq)
{
	assert(vq->used_staged == vq->used_idx);
	vq->avail_idx = vq->last_avail;
	return vq->last_avail;
}

void vq_dev_break(struct vq_dev *vq, const char *reason)
{
	if (!vq->broken)
		vq->broken = reason;
}

/* For those who say why a chain is refused: always false. */
static __attribute__((cold, noinline)) bool refuse(struct vq_dev *vq, const char *reason)
{
	vq_dev_break(vq, reason);
	return false;
}

/* [avail] Read the driver's index; how many chains are there. A queue that is whole only. */
static unsigned avail_load(struct vq_dev *vq)
{
	uint16_t idx = __atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE);
	uint16_t n = (uint16_t)(idx - vq->last_avail);

	if (unlikely(n > vq->size))
		return refuse(vq, "avail index runs ahead by more than the ring's size");
	if (unlikely(n < (uint16_t)(vq->avail_idx - vq->last_avail)))
		return refuse(vq, "avail index went back");
	vq->avail_idx = idx;
	return n;
}

unsigned vq_dev_available(struct vq_dev *vq)
{
	return vq_dev_ready(vq) ? avail_load(vq) : 0;
}

/* A descriptor, read once into a local: two loads that cannot be repeated, at any alignment
 * (indirect tables have none). */
struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

static inline struct vring_desc desc_load(const void *from)
{
	const volatile struct word *w = from;
	uint64_t addr = w[0].v, rest = w[1].v;

	return (struct vring_desc){
		.addr = addr,
		.len = (uint32_t)rest,
		.flags = (uint16_t)(rest >> 32),
		.next = (uint16_t)(rest >> 48),
	};
}

/* A chain that is being read. */
struct walk {
	struct iovec *iov;
	unsigned room; /* pieces that may be stored in it */
	unsigned n;    /* pieces so far */
	unsigned nr;   /* of them readable, once the first writable one was met */
	unsigned ndesc;
	uint64_t len;  /* bytes so far */
	uint64_t rlen; /* of them readable, like nr */
	bool writable; /* the writable part has begun */
	bool full;     /* it did not fit into iov: not a fault */
};

static bool walk_full(struct vq_dev *vq, struct walk *w)
{
	if (w->room >= CHAIN_MAX)
		return refuse(vq, "descriptor chain has too many pieces");
	w->full = true;
	return false;
}

/* A buffer that no single region holds. */
static __attribute__((noinline)) bool walk_cross(
	struct vq_dev *vq, struct walk *w, const struct vring_desc *d)
{
	unsigned room = w->room - w->n;
	unsigned n = gmem_pieces(vq->mem, d->addr, d->len, w->iov + w->n, room);

	if (!n)
		return refuse(vq, "descriptor outside of guest memory");
	if (n > room)
		return walk_full(vq, w);
	w->n += n;
	return true;
}

/* One descriptor of a buffer; false: refused or no room. */
static inline __attribute__((always_inline)) bool walk_add(
	struct vq_dev *vq, struct walk *w, const struct vring_desc *d)
{
	bool writable = d->flags & VRING_DESC_F_WRITE;

	w->ndesc++;
	if (writable != w->writable) {
		if (!writable)
			return refuse(vq, "readable descriptor after a writable one");
		w->writable = true;
		w->nr = w->n;
		w->rlen = w->len;
	}
	if (!d->len)
		return true;
	if (unlikely(w->n == w->room))
		return walk_full(vq, w);

	uint8_t *host = gmem_gpa(vq->mem, d->addr, d->len, &vq->hint);

	w->len += d->len;
	if (unlikely(!host))
		return walk_cross(vq, w, d);
	w->iov[w->n++] = (struct iovec){host, d->len};
	return true;
}

/* Entry `i` of a table that lies across regions, perhaps this very entry. */
static __attribute__((noinline)) bool table_gather(
	const struct vq_dev *vq, uint64_t gpa, struct vring_desc *d)
{
	struct iovec part[sizeof(*d)];
	unsigned n = gmem_pieces(vq->mem, gpa, sizeof(*d), part, sizeof(*d));
	uint8_t raw[sizeof(*d)], *to = raw;

	for (unsigned i = 0; i < n; i++) {
		const volatile uint8_t *from = part[i].iov_base;

		for (size_t j = 0; j < part[i].iov_len; j++)
			*to++ = from[j];
	}
	if (n)
		*d = desc_load(raw);
	return n != 0;
}

/* [VIRTIO 1.2 2.7.5.3] */
static bool table_check(struct vq_dev *vq, const struct vring_desc *ref)
{
	if (!vq->indirect)
		return refuse(vq, "indirect descriptor, but the feature was not negotiated");
	if (ref->flags & VRING_DESC_F_NEXT)
		return refuse(vq, "indirect descriptor with a next one");
	if (!ref->len || ref->len % sizeof(struct vring_desc))
		return refuse(vq, "indirect table's length is not a multiple of 16");
	if (ref->len / sizeof(struct vring_desc) > CHAIN_MAX)
		return refuse(vq, "indirect table is too long");
	return true;
}

static bool walk_table(struct vq_dev *vq, struct walk *w, const struct vring_desc *ref)
{
	if (!table_check(vq, ref))
		return false;

	const uint8_t *table = gmem_gpa(vq->mem, ref->addr, ref->len, &vq->hint);
	unsigned n = ref->len / sizeof(struct vring_desc);
	struct vring_desc d = {.next = 0};

	w->ndesc++;
	vq->n_indirect++;
	for (unsigned left = n; left; left--) {
		size_t at = d.next * sizeof(d);

		if (likely(table))
			d = desc_load(table + at);
		else if (!table_gather(vq, ref->addr + at, &d))
			return refuse(vq, "indirect table outside of guest memory");
		if (unlikely(d.flags & VRING_DESC_F_INDIRECT))
			return refuse(vq, "indirect descriptor inside an indirect table");
		if (!walk_add(vq, w, &d))
			return false;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return true;
		if (unlikely(d.next >= n))
			return refuse(vq, "next descriptor lies outside of the indirect table");
	}
	return refuse(vq, "descriptor chain in an indirect table loops");
}

/* A chain from its first descriptor on, which is read already. */
static bool walk_chain(struct vq_dev *vq, struct walk *w, struct vring_desc d)
{
	for (unsigned left = vq->size < CHAIN_MAX ? vq->size : CHAIN_MAX;;) {
		if (d.flags & VRING_DESC_F_INDIRECT)
			return walk_table(vq, w, &d);
		if (!walk_add(vq, w, &d))
			return false;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return true;
		if (unlikely(d.next >= vq->size))
			return refuse(vq, "next descriptor lies outside of the ring");
		if (unlikely(!--left))
			return refuse(vq, "descriptor chain loops or is too long");
		d = desc_load(&vq->desc[d.next]);
	}
}

/* Any chain; pop itself does the plain ones. False: refused, or not enough of `iov`. */
static __attribute__((noinline)) bool chain_read(struct vq_dev *vq, struct chain *c, uint16_t head,
	struct vring_desc d, struct iovec *iov, unsigned niov)
{
	struct walk w = {.iov = iov, .room = niov < CHAIN_MAX ? niov : CHAIN_MAX};

	if (!walk_chain(vq, &w, d))
		return false;
	if (!w.writable) {
		w.nr = w.n;
		w.rlen = w.len;
	}
	if (unlikely(!w.len))
		return refuse(vq, "descriptor chain without a byte");
	if (unlikely(w.len > UINT32_MAX))
		return refuse(vq, "descriptor chain of more than 2^32 - 1 bytes");
	*c = (struct chain){
		.id = head,
		.ndesc = (uint16_t)w.ndesc,
		.nr = (uint16_t)w.nr,
		.nw = (uint16_t)(w.n - w.nr),
		.rlen = (uint32_t)w.rlen,
		.wlen = (uint32_t)(w.len - w.rlen),
		.iov = iov,
	};
	return true;
}

/* One region, held in registers over a batch. */
struct window {
	uint64_t gpa, size;
	uint8_t *host;
};

static inline struct window window_open(const struct vq_dev *vq)
{
	const struct gmem_region *r = &vq->mem->region[vq->hint];

	if (unlikely(vq->hint >= vq->mem->n))
		return (struct window){0};
	return (struct window){r->gpa, r->size, r->host};
}

/* The plain chain: one direct descriptor inside the region of the last one. */
static inline bool plain_chain(struct chain *c, uint16_t head, const struct vring_desc *d,
	const struct window *win, struct iovec *iov)
{
	uint64_t off = d->addr - win->gpa;

	if (unlikely((d->flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT)) || !d->len ||
		     off >= win->size || d->len > win->size - off))
		return false;
	*iov = (struct iovec){win->host + off, d->len};
	if (d->flags & VRING_DESC_F_WRITE)
		*c = (struct chain){.id = head, .ndesc = 1, .nw = 1, .wlen = d->len, .iov = iov};
	else
		*c = (struct chain){.id = head, .ndesc = 1, .nr = 1, .rlen = d->len, .iov = iov};
	return true;
}

#define AHEAD 8 /* chains: their descriptors are on the way while these are read */

unsigned vq_dev_pop(
	struct vq_dev *vq, struct chain *chain, unsigned max, struct iovec *iov, unsigned niov)
{
	if (unlikely(!vq_dev_ready(vq)))
		return 0;

	unsigned n = (uint16_t)(vq->avail_idx - vq->last_avail);

	if (n < max)
		n = avail_load(vq);
	if (n > max)
		n = max;

	const struct vring_desc *desc = vq->desc;
	const uint16_t *ring = vq->avail->ring;
	unsigned size = vq->size, mask = size - 1, at = vq->last_avail;
	struct window win = window_open(vq);
	struct chain *c = chain, *end = chain + n;
	uint64_t ndesc = 0;

	for (; c < end; c++, at++) {
		uint16_t head = __atomic_load_n(&ring[at & mask], __ATOMIC_RELAXED);

		/* a line holds four descriptors, and drivers mostly use them in order */
		if (!(at % 4))
			__builtin_prefetch(&desc[ring[(at + AHEAD) & mask] & mask]);
		if (unlikely(head >= size)) {
			refuse(vq, "avail entry names no descriptor of the ring");
			break;
		}

		struct vring_desc d = desc_load(&desc[head]);

		if (likely(niov && plain_chain(c, head, &d, &win, iov))) {
			ndesc++;
			iov++;
			niov--;
			continue;
		}
		if (!chain_read(vq, c, head, d, iov, niov))
			break;
		win = window_open(vq);
		ndesc += c->ndesc;
		iov += c->nr + c->nw;
		niov -= c->nr + c->nw;
	}
	n = (unsigned)(c - chain);
	vq->last_avail = (uint16_t)(vq->last_avail + n);
	vq->n_popped += n;
	vq->n_desc += ndesc;
	return n;
}

void vq_dev_unpop(struct vq_dev *vq, unsigned n)
{
	vq->last_avail = (uint16_t)(vq->last_avail - n);
	vq->n_popped -= n;
}

void vq_dev_put(struct vq_dev *vq, uint16_t id, uint32_t written)
{
	unsigned mask = vq->size - 1u;

	vq->used->ring[vq->used_staged++ & mask] =
		(struct vring_used_elem){.id = id, .len = written};
}

void vq_dev_put_read(struct vq_dev *vq, const struct chain *c, unsigned n)
{
	struct vring_used_elem *ring = vq->used->ring;
	unsigned mask = vq->size - 1u, at = vq->used_staged;

	for (unsigned i = 0; i < n; i++)
		ring[at++ & mask] = (struct vring_used_elem){.id = c[i].id, .len = 0};
	vq->used_staged = (uint16_t)at;
}

/* Does the driver want to hear of used_idx? [VIRTIO 1.2 2.7.7] */
static bool notify_wanted(struct vq_dev *vq)
{
	uint16_t new = vq->used_idx, old = vq->signalled;
	bool first = !vq->signalled_valid;

	vq->signalled = new;
	vq->signalled_valid = true;
	if (first)
		return true;
	if (!vq->event_idx)
		return !(__atomic_load_n(&vq->avail->flags, __ATOMIC_RELAXED) &
			 VRING_AVAIL_F_NO_INTERRUPT);

	uint16_t event = __atomic_load_n(&vq->avail->ring[vq->size], __ATOMIC_RELAXED);

	return (uint16_t)(new - event - 1) < (uint16_t)(new - old);
}

bool vq_dev_publish(struct vq_dev *vq)
{
	if (vq->used_staged == vq->used_idx)
		return false;
	vq->used_idx = vq->used_staged;
	__atomic_store_n(&vq->used->idx, vq->used_idx, __ATOMIC_RELEASE); /* [used] */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);                          /* [call] */
	if (notify_wanted(vq)) {
		vq->n_notify++;
		return true;
	}
	vq->n_suppressed++;
	return false;
}

bool vq_dev_arm(struct vq_dev *vq, unsigned more)
{
	if (!vq_dev_ready(vq))
		return false;
	if (more > vq->size)
		more = vq->size;
	if (!more)
		more = 1;
	kick_wish(vq, true, (uint16_t)(vq->last_avail + more - 1));
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* [kick] */
	if (avail_load(vq) < more)
		return false;
	vq_dev_disarm(vq);
	return true;
}

void vq_dev_disarm(struct vq_dev *vq)
{
	/* an event index that is not met again for 2^16 - 1 chains */
	if (vq->armed && vq_dev_ready(vq))
		kick_wish(vq, false, (uint16_t)(vq->last_avail - 1));
}
