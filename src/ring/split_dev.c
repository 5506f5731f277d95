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
#include <stddef.h>
#include <string.h>

#include "base/limits.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

void vq_dev_init(struct vq_dev *vq, const struct gmem *mem)
{
	*vq = (struct vq_dev){.mem = mem};
}

int vq_dev_check_size(unsigned size, struct err *err)
{
	if (!size || size > RING_MAX || (size & (size - 1)))
		return err_set(err, EINVAL, "ring size %u: must be a power of two from 1 to %d",
			size, RING_MAX);
	return 0;
}

int vq_dev_set_size(struct vq_dev *vq, unsigned size, struct err *err)
{
	int rc = vq_dev_check_size(size, err);

	if (!rc)
		vq->size = (uint16_t)size;
	return rc;
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
	vq->hint = vq->table_hint = 0;
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
 * (indirect tables have none). It stays in two registers: [0, 32) of `rest` are its length, then 16
 * bits of flags, then 16 of the next one's index. */
struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

struct desc {
	uint64_t addr, rest;
};

static inline struct desc desc_load(const void *from)
{
	const volatile struct word *w = from;

	return (struct desc){w[0].v, w[1].v};
}

static inline uint32_t desc_len(struct desc d)
{
	return (uint32_t)d.rest;
}

static inline uint64_t desc_next(struct desc d)
{
	return d.rest >> 48;
}

#define DESC_KIND (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT | VRING_DESC_F_WRITE)

static inline unsigned desc_kind(struct desc d)
{
	return d.rest >> 32 & DESC_KIND;
}

/* One region, held in registers over a chain or a batch. Its end may be 2^64, which is 0. */
struct window {
	uint64_t end, size;
	uintptr_t delta; /* from a guest address to ours */
};

static inline struct window window_open(const struct vq_dev *vq)
{
	const struct gmem_region *r = &vq->mem->region[vq->hint];

	if (unlikely(vq->hint >= vq->mem->n))
		return (struct window){0};
	return (struct window){r->gpa + r->size, r->size, (uintptr_t)r->host - r->gpa};
}

/* Wholly inside, and not empty. */
static inline bool window_holds(const struct window *w, uint64_t gpa, uint32_t len)
{
	uint64_t room = w->end - gpa;

	return room <= w->size && (uint64_t)len - 1 < room;
}

/* Where descriptors are read from: the ring's own table, or an indirect one. */
struct table {
	const uint8_t *at; /* NULL: it lies across regions and is gathered entry by entry */
	uint64_t n;
};

/* Entry `i` of a table that lies across regions, perhaps this very entry; it is mapped. */
static __attribute__((noinline)) struct desc table_gather(
	const struct vq_dev *vq, uint64_t gpa, unsigned i)
{
	struct iovec part[sizeof(struct vring_desc)];
	uint8_t raw[sizeof(struct vring_desc)] = {0}, *to = raw;
	unsigned n = gmem_pieces(vq->mem, gpa + i * sizeof(raw), sizeof(raw), part, sizeof(raw));

	for (unsigned k = 0; k < n; k++) {
		const volatile uint8_t *from = part[k].iov_base;

		for (size_t j = 0; j < part[k].iov_len; j++)
			*to++ = from[j];
	}
	return desc_load(raw);
}

/* The table that `ref` names; n = 0: refused. [VIRTIO 1.2 2.7.5.3] */
static __attribute__((noinline)) struct table table_open(
	struct vq_dev *vq, struct desc ref, bool nested)
{
	struct table none = {0};
	uint32_t len = desc_len(ref);
	const char *why = NULL;

	if (!vq->indirect)
		why = "indirect descriptor, but the feature was not negotiated";
	else if (nested)
		why = "indirect descriptor inside an indirect table";
	else if (desc_kind(ref) & VRING_DESC_F_NEXT)
		why = "indirect descriptor with a next one";
	else if (!len || len % sizeof(struct vring_desc))
		why = "indirect table's length is not a multiple of 16";
	else if (len / sizeof(struct vring_desc) > CHAIN_MAX)
		why = "indirect table is too long";

	const uint8_t *at = why ? NULL : gmem_gpa(vq->mem, ref.addr, len, &vq->table_hint);

	if (!why && !at && !gmem_pieces(vq->mem, ref.addr, len, NULL, 0))
		why = "indirect table outside of guest memory";
	if (unlikely(why)) {
		refuse(vq, why);
		return none;
	}
	vq->n_indirect++;
	return (struct table){at, len / sizeof(struct vring_desc)};
}

/* A buffer outside of the window: in another region, or across some. How many pieces it takes, of
 * which the first `room` are stored; 0: refused. */
static __attribute__((noinline)) unsigned buffer_find(
	struct vq_dev *vq, uint64_t gpa, uint32_t len, struct iovec *iov, unsigned room)
{
	uint8_t *host = gmem_find(vq->mem, gpa, len, &vq->hint);

	if (host && room) {
		*iov = (struct iovec){host, len};
		return 1;
	}

	unsigned n = gmem_pieces(vq->mem, gpa, len, iov, room);

	if (!n)
		refuse(vq, "descriptor outside of guest memory");
	return n;
}

/* The sums, once all is read: they were added up in 64 bits. */
static inline bool chain_close(struct vq_dev *vq, struct chain *c, uint64_t rlen, uint64_t len)
{
	if (unlikely(!len))
		return refuse(vq, "descriptor chain without a byte");
	if (unlikely(len > UINT32_MAX))
		return refuse(vq, "descriptor chain of more than 2^32 - 1 bytes");
	c->rlen = (uint32_t)rlen;
	c->wlen = (uint32_t)(len - rlen);
	return true;
}

/* What most of a chain is: descriptors of one kind that lie inside the window and name a next one.
 * As many of `max` as are so, from *d on, which then is the first that is not taken. */
static __attribute__((noinline)) unsigned linked_run(struct table t, struct window win,
	struct desc *d, unsigned kind, struct iovec *iov, unsigned max, uint64_t *len)
{
	const struct iovec *first = iov, *end = iov + max;
	struct desc at = *d;
	uint64_t sum = 0;

	for (; iov < end && desc_kind(at) == kind; iov++) {
		if (unlikely(!window_holds(&win, at.addr, desc_len(at)) || desc_next(at) >= t.n))
			break;
		*iov = (struct iovec){(void *)(at.addr + win.delta), desc_len(at)};
		sum += desc_len(at);
		at = desc_load(t.at + desc_next(at) * sizeof(struct vring_desc));
	}
	*len += sum;
	*d = at;
	return (unsigned)(iov - first);
}

/* Any chain; plain ones have their own way. False: refused, or not enough of `iov`. */
static __attribute__((noinline)) bool chain_read(
	struct vq_dev *vq, struct chain *c, uint16_t head, struct iovec *iov, unsigned niov)
{
	struct window win = window_open(vq);
	unsigned room = niov < CHAIN_MAX ? niov : CHAIN_MAX;
	struct iovec *p = iov, *end = iov + room, *writable = NULL;
	struct table t = {(const uint8_t *)vq->desc, vq->size};
	unsigned ndesc = 1, left = vq->size < CHAIN_MAX ? vq->size : CHAIN_MAX;
	uint64_t len = 0, rlen = 0, table_gpa = 0;
	bool nested = false; /* inside of an indirect table, which may be the ring's own */
	struct desc d = desc_load(&vq->desc[head]);

	for (;; ndesc++) {
		if (likely(t.at)) {
			unsigned most = (unsigned)(end - p) < left ? (unsigned)(end - p) : left - 1;
			unsigned n = linked_run(t, win, &d,
				VRING_DESC_F_NEXT | (writable ? VRING_DESC_F_WRITE : 0), p, most,
				&len);

			p += n;
			left -= n;
			ndesc += n;
		}

		uint32_t dlen = desc_len(d);

		if (desc_kind(d) & VRING_DESC_F_INDIRECT) {
			t = table_open(vq, d, nested);
			if (!t.n)
				return false;
			nested = true;
			table_gpa = d.addr;
			left = (unsigned)t.n;
			d = likely(t.at) ? desc_load(t.at) : table_gather(vq, table_gpa, 0);
			continue;
		}
		if (desc_kind(d) & VRING_DESC_F_WRITE) {
			if (!writable) {
				writable = p;
				rlen = len;
			}
		} else if (unlikely(writable)) {
			return refuse(vq, "readable descriptor after a writable one");
		}
		if (likely(p < end && window_holds(&win, d.addr, dlen))) {
			*p++ = (struct iovec){(void *)(d.addr + win.delta), dlen};
		} else if (dlen) {
			unsigned n = buffer_find(vq, d.addr, dlen, p, (unsigned)(end - p));

			if (!n)
				return false;
			if (n > (size_t)(end -
					 p)) /* no fault, if there was not more room to offer */
				return room == CHAIN_MAX &&
				       refuse(vq, "descriptor chain has too many pieces");
			p += n;
			win = window_open(vq);
		}
		len += dlen;
		if (!(desc_kind(d) & VRING_DESC_F_NEXT))
			break;
		if (unlikely(desc_next(d) >= t.n))
			return refuse(
				vq, nested ? "next descriptor lies outside of the indirect table"
					   : "next descriptor lies outside of the ring");
		if (unlikely(!--left))
			return refuse(vq, "descriptor chain loops or is too long");
		d = likely(t.at) ? desc_load(t.at + desc_next(d) * sizeof(struct vring_desc))
				 : table_gather(vq, table_gpa, (unsigned)desc_next(d));
	}

	if (!writable) {
		writable = p;
		rlen = len;
	}
	c->id = head;
	c->ndesc = (uint16_t)ndesc;
	c->nr = (uint16_t)(writable - iov);
	c->nw = (uint16_t)(p - writable);
	c->iov = iov;
	return chain_close(vq, c, rlen, len);
}

/* A chain of one descriptor, in as few stores as it takes. */
static inline void chain_plain(
	struct chain *c, uint64_t head, uint64_t len, struct iovec *iov, const bool writable)
{
	uint64_t counts = head | UINT64_C(1) << 16 | UINT64_C(1) << (writable ? 48 : 32);
	uint64_t lens = writable ? len << 32 : len;

	_Static_assert(offsetof(struct chain, ndesc) == 2 && offsetof(struct chain, nr) == 4 &&
			       offsetof(struct chain, nw) == 6 &&
			       offsetof(struct chain, rlen) == 8 &&
			       offsetof(struct chain, wlen) == 12,
		"four counts in one word, two lengths in another");
	memcpy((char *)c, &counts, sizeof(counts));
	memcpy((char *)c + offsetof(struct chain, rlen), &lens, sizeof(lens));
	c->iov = iov;
}

#define AHEAD 8 /* chains: their descriptors are on the way while these are read */

/*
 * Plain chains: one direct descriptor inside the region of the last one, and `writable` like the
 * last one: a queue's chains mostly are. As many of the next `n` as are so; iov has room for them.
 * Inlined with `writable` constant: this is the one loop where instructions count.
 */
static inline __attribute__((always_inline)) unsigned plain_run(
	struct vq_dev *vq, struct chain *c, unsigned n, struct iovec *iov, const bool writable)
{
	const struct window win = window_open(vq);
	const struct vring_desc *desc = vq->desc;
	const uint16_t *ring = vq->avail->ring;
	const unsigned mask = vq->size - 1u;
	const struct chain *first = c, *end = c + n;

	for (unsigned at = vq->last_avail; c < end; at++, c++, iov++) {
		unsigned head = __atomic_load_n(&ring[at & mask], __ATOMIC_RELAXED);

		/* a line holds four descriptors, and drivers mostly use them in order */
		if (!(at % 4))
			__builtin_prefetch(&desc[ring[(at + AHEAD) & mask] & mask]);
		if (unlikely(head > mask))
			break;

		struct desc d = desc_load(&desc[head]);

		if (unlikely(desc_kind(d) != (writable ? VRING_DESC_F_WRITE : 0) ||
			     !window_holds(&win, d.addr, desc_len(d))))
			break;
		*iov = (struct iovec){(void *)(d.addr + win.delta), desc_len(d)};
		chain_plain(c, head, desc_len(d), iov, writable);
	}
	return (unsigned)(c - first);
}

static __attribute__((noinline)) unsigned plain_read(
	struct vq_dev *vq, struct chain *c, unsigned n, struct iovec *iov)
{
	return vq->writable ? plain_run(vq, c, n, iov, true) : plain_run(vq, c, n, iov, false);
}

static void popped(struct vq_dev *vq, unsigned n, unsigned ndesc)
{
	vq->last_avail = (uint16_t)(vq->last_avail + n);
	vq->n_popped += n;
	vq->n_desc += ndesc;
}

#define NO_SUCH_HEAD "avail entry names no descriptor of the ring"

/* One chain that is not plain. */
static bool other_read(struct vq_dev *vq, struct chain *c, struct iovec *iov, unsigned niov)
{
	const uint16_t *next = &vq->avail->ring[vq->last_avail & (vq->size - 1u)];
	uint16_t head = __atomic_load_n(next, __ATOMIC_RELAXED);

	if (unlikely(head >= vq->size))
		return refuse(vq, NO_SUCH_HEAD);
	if (!chain_read(vq, c, head, iov, niov))
		return false;
	popped(vq, 1, c->ndesc);
	vq->writable = c->nw != 0;
	return true;
}

unsigned vq_dev_pop(
	struct vq_dev *vq, struct chain *chain, unsigned max, struct iovec *iov, unsigned niov)
{
	if (unlikely(!vq_dev_ready(vq)))
		return 0;

	unsigned done = 0, n = (uint16_t)(vq->avail_idx - vq->last_avail);
	uint64_t enough = vq->n_desc + 2 * (uint64_t)niov; /* met only by empty descriptors */

	if (n < max || n > vq->size) /* the latter after unpop, if the driver lied */
		n = avail_load(vq);
	if (n > max)
		n = max;
	vq->plain = true;
	for (bool plain = true; done < n; done++) {
		if (plain) {
			unsigned most = n - done < niov ? n - done : niov;
			unsigned run = plain_read(vq, chain + done, most, iov);

			popped(vq, run, run);
			done += run;
			iov += run;
			niov -= run;
			if (done == n)
				break;
		}

		struct chain *c = &chain[done];

		vq->plain = false;
		if (!other_read(vq, c, iov, niov))
			break;
		iov += c->nr + c->nw;
		niov -= c->nr + c->nw;
		plain = c->ndesc == 1; /* long ones come in runs, too */
		if (unlikely(vq->n_desc >= enough)) {
			done++;
			break;
		}
	}
	return done;
}

unsigned vq_dev_discard(struct vq_dev *vq, unsigned max)
{
	unsigned n = vq_dev_available(vq), mask = vq->size - 1u, i;

	if (n > max)
		n = max;
	for (i = 0; i < n; i++) {
		const uint16_t *next = &vq->avail->ring[vq->last_avail & mask];
		uint16_t head = __atomic_load_n(next, __ATOMIC_RELAXED);

		if (unlikely(head > mask)) {
			refuse(vq, NO_SUCH_HEAD);
			break;
		}
		vq_dev_put(vq, head, 0);
		popped(vq, 1, 0);
	}
	return i;
}

void vq_dev_unpop(struct vq_dev *vq, unsigned n)
{
	vq->last_avail = (uint16_t)(vq->last_avail - n);
	vq->n_popped -= n;
}

void vq_dev_put_read(struct vq_dev *vq, const struct chain *c, unsigned n)
{
	struct vq_put to = vq_put_open(vq);

	for (unsigned i = 0; i < n; i++)
		vq_put_one(&to, c[i].id, 0);
	vq_put_close(vq, &to);
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
