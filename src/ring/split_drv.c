/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split_drv: the driver side of a split virtqueue. [VIRTIO 1.2 2.7]
 *
 * Indices run around the ring modulo 2^16:
 *
 *	avail ring   ... the device may see it ... | avail_shown ... added ... | avail_next
 *	used ring    ... got ... | used_next ... to be got ... | used_seen
 *
 * The device owns the used ring and may write anything there at any time, and in fact into all of
 * the shared memory. So each of its fields is loaded once into a local that is checked, and nothing
 * else is ever read: tokens, chains and the free list are private. Descriptors are used in the
 * order they came back, so they lie in ring order as long as the device is orderly: four to a cache
 * line, for both sides.
 *
 * Barriers come in pairs with the device's, named as in split_dev.c:
 *	[avail]  release of avail->idx here
 *	[used]   acquire of used->idx here
 *	[kick]   full, between avail->idx and the device's wish (avail_event or its flag) here
 *	[call]   full, between our wish (used_event or the flag) and the re-check of used->idx here
 */
#include "ring/vq_drv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* life */

static size_t line_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

static size_t table_len(unsigned size)
{
	return vring_desc_len(VQ_TABLE) * size;
}

size_t vq_drv_len(unsigned size, bool tables)
{
	return line_up(vring_desc_len(size)) + line_up(vring_avail_len(size)) +
	       line_up(vring_used_len(size)) + (tables ? line_up(table_len(size)) : 0);
}

/* Which used index the device shall notify at; without event indices: whether at all. */
static void call_wish(struct vq_drv *vq, bool armed, uint16_t event)
{
	vq->armed = armed;
	if (vq->event_idx) /* behind the avail ring's last entry */
		__atomic_store_n(&vq->avail->ring[vq->size], event, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&vq->avail->flags, armed ? 0 : VRING_AVAIL_F_NO_INTERRUPT,
			__ATOMIC_RELAXED);
}

void vq_drv_reset(struct vq_drv *vq, uint16_t base)
{
	memset(vq->desc, 0, vq_drv_len(vq->size, vq->table));
	for (unsigned i = 0; i < vq->size; i++) {
		vq->slot[i] = (struct vq_drv_slot){0};
		vq->next[i] = (uint16_t)(i + 1);
	}
	vq->nfree = vq->size;
	vq->free_head = 0;
	vq->free_tail = vq->mask;
	vq->nout = vq->detach_at = 0;
	vq->avail_next = vq->avail_shown = vq->kicked = vq->used_next = vq->used_seen = base;
	vq->avail->idx = vq->used->idx = base;
	vq->kick_valid = false;
	vq->broken = NULL;
	call_wish(vq, true, base);
}

int vq_drv_init(struct vq_drv *vq, void *mem, unsigned size, bool tables, struct err *err)
{
	uint8_t *p = mem;

	*vq = (struct vq_drv){0};
	if (size < 2 || size > RING_MAX || (size & (size - 1)))
		return err_set(err, EINVAL, "ring size %u: must be a power of two from 2 to %d",
			size, RING_MAX);
	vq->slot = calloc(size, sizeof(*vq->slot) + sizeof(*vq->next));
	if (!vq->slot)
		return err_set(err, ENOMEM, "no memory for a ring of %u entries", size);
	vq->next = (uint16_t *)(void *)(vq->slot + size);
	vq->desc = (void *)p;
	p += line_up(vring_desc_len(size));
	vq->avail = (void *)p;
	p += line_up(vring_avail_len(size));
	vq->used = (void *)p;
	p += line_up(vring_used_len(size));
	vq->table = tables ? (void *)p : NULL;
	vq->size = (uint16_t)size;
	vq->mask = (uint16_t)(size - 1);
	vq_drv_reset(vq, 0);
	return 0;
}

void vq_drv_fini(struct vq_drv *vq)
{
	free(vq->slot);
	*vq = (struct vq_drv){0};
}

/* out */

static struct vring_desc piece_desc(const struct iovec *v, bool writable)
{
	return (struct vring_desc){
		.addr = (uintptr_t)v->iov_base,
		.len = (uint32_t)v->iov_len,
		.flags = writable ? VRING_DESC_F_WRITE : 0,
	};
}

/* A table may not be longer than the ring [VIRTIO 1.2 2.7.5.3.1]. */
static bool table_fits(const struct vq_drv *vq, unsigned n)
{
	return vq->table && vq->want_indirect && n <= VQ_TABLE && n <= vq->size;
}

static bool table_wanted(const struct vq_drv *vq, unsigned n)
{
	if (n < 2 || vq->indirect == VQ_INDIRECT_NEVER || !table_fits(vq, n))
		return false;
	return vq->indirect == VQ_INDIRECT_ALWAYS || vq->nfree < n || vq->nfree <= vq->size / 4;
}

/* The next free descriptor, taken. */
static uint16_t desc_take(struct vq_drv *vq)
{
	uint16_t id = vq->free_head;

	vq->free_head = vq->next[id];
	vq->nfree--;
	return id;
}

static uint16_t add_table(struct vq_drv *vq, const struct iovec *v, unsigned nr, unsigned n)
{
	uint16_t head = desc_take(vq);
	struct vring_desc *t = vq->table + (size_t)head * VQ_TABLE;

	for (unsigned i = 0; i < n; i++) {
		struct vring_desc d = piece_desc(&v[i], i >= nr);

		if (i + 1 < n) {
			d.flags |= VRING_DESC_F_NEXT;
			d.next = (uint16_t)(i + 1);
		}
		t[i] = d;
	}
	vq->desc[head] = (struct vring_desc){
		.addr = (uintptr_t)t,
		.len = (uint32_t)vring_desc_len(n),
		.flags = VRING_DESC_F_INDIRECT,
	};
	vq->slot[head].ndesc = 1;
	vq->slot[head].last = head;
	vq->n_indirect++;
	return head;
}

static uint16_t add_direct(struct vq_drv *vq, const struct iovec *v, unsigned nr, unsigned n)
{
	uint16_t head = vq->free_head, at = head;

	for (unsigned i = 0; i < n; i++) {
		struct vring_desc d = piece_desc(&v[i], i >= nr);

		at = desc_take(vq);
		if (i + 1 < n) {
			d.flags |= VRING_DESC_F_NEXT;
			d.next = vq->next[at];
		}
		vq->desc[at] = d;
	}
	vq->slot[head].ndesc = (uint16_t)n;
	vq->slot[head].last = at;
	return head;
}

int vq_drv_add(struct vq_drv *vq, const struct iovec *v, unsigned nr, unsigned nw, void *token)
{
	unsigned n = nr + nw;
	uint64_t cap = 0;
	uint16_t head;

	assert(token);
	for (unsigned i = nr; i < n; i++)
		cap += v[i].iov_len;
	assert(cap <= UINT32_MAX);
	if (unlikely(!n))
		return -EMSGSIZE;
	if (table_wanted(vq, n)) {
		if (unlikely(!vq->nfree))
			return -ENOSPC;
		head = add_table(vq, v, nr, n);
	} else {
		if (unlikely(n > vq->size))
			return -EMSGSIZE;
		if (unlikely(n > vq->nfree))
			return -ENOSPC;
		head = add_direct(vq, v, nr, n);
	}
	vq->slot[head].token = token;
	vq->slot[head].cap = (uint32_t)cap;
	vq->avail->ring[vq->avail_next++ & vq->mask] = head;
	vq->nout++;
	vq->n_desc += n;
	return 0;
}

/* Does the device want to hear of avail_shown? [VIRTIO 1.2 2.7.10] */
static bool kick_wanted(struct vq_drv *vq)
{
	uint16_t new = vq->avail_shown, old = vq->kicked;
	bool first = !vq->kick_valid;

	vq->kicked = new;
	vq->kick_valid = true;
	if (first)
		return true;
	if (!vq->event_idx)
		return !(__atomic_load_n(&vq->used->flags, __ATOMIC_RELAXED) &
			 VRING_USED_F_NO_NOTIFY);

	/* behind the used ring's last entry, where the next one would be */
	uint16_t *wish = (uint16_t *)&vq->used->ring[vq->size];
	uint16_t event = __atomic_load_n(wish, __ATOMIC_RELAXED);

	return (uint16_t)(new - event - 1) < (uint16_t)(new - old);
}

bool vq_drv_publish(struct vq_drv *vq)
{
	if (vq->avail_next == vq->avail_shown)
		return false;
	vq->n_added += (uint16_t)(vq->avail_next - vq->avail_shown);
	vq->avail_shown = vq->avail_next;
	__atomic_store_n(&vq->avail->idx, vq->avail_shown, __ATOMIC_RELEASE); /* [avail] */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);                              /* [kick] */
	if (kick_wanted(vq)) {
		vq->n_kick++;
		return true;
	}
	vq->n_suppressed++;
	return false;
}

/* back */

/* For those who say why: 0 of whatever was asked for. */
static __attribute__((cold, noinline)) unsigned refuse(struct vq_drv *vq, const char *reason)
{
	if (!vq->broken)
		vq->broken = reason;
	vq->used_seen = vq->used_next; /* what is left of it is not believed either */
	return 0;
}

/* [used] Read the device's index; how many entries are there. A queue that is whole only. */
static unsigned used_load(struct vq_drv *vq)
{
	uint16_t idx = __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE);
	uint16_t n = (uint16_t)(idx - vq->used_next);
	/* added and not published is not the device's to use */
	uint16_t out = (uint16_t)(vq->nout - (uint16_t)(vq->avail_next - vq->avail_shown));

	if (unlikely(n > out))
		return refuse(vq, "used index runs ahead of what is outstanding");
	if (unlikely(n < (uint16_t)(vq->used_seen - vq->used_next)))
		return refuse(vq, "used index went back");
	vq->n_used += (uint16_t)(idx - vq->used_seen);
	vq->used_seen = idx;
	return n;
}

unsigned vq_drv_pending(struct vq_drv *vq)
{
	return vq->broken ? 0 : used_load(vq);
}

void *vq_drv_get_slow(struct vq_drv *vq, uint32_t *written, uint32_t *cap)
{
	if (vq->used_next != vq->used_seen) { /* the entry itself is what was wrong */
		uint16_t at = vq->used_next & vq->mask;
		uint32_t id = __atomic_load_n(&vq->used->ring[at].id, __ATOMIC_RELAXED);

		refuse(vq, id > vq->mask ? "used entry names no descriptor of the ring"
					 : "used entry names a chain that is not outstanding");
		return NULL;
	}
	if (!vq_drv_pending(vq))
		return NULL;
	return vq_drv_get(vq, written, cap);
}

bool vq_drv_arm(struct vq_drv *vq, unsigned more)
{
	if (vq->broken)
		return false;
	if (more > vq->nout)
		more = vq->nout;
	if (!more)
		more = 1;
	call_wish(vq, true, (uint16_t)(vq->used_next + more - 1));
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* [call] */
	if (used_load(vq) < more)
		return false;
	vq_drv_disarm(vq);
	return true;
}

void vq_drv_disarm(struct vq_drv *vq)
{
	/* an event index that is not met again for 2^16 - 1 entries */
	if (vq->armed)
		call_wish(vq, false, (uint16_t)(vq->used_next - 1));
}

void *vq_drv_detach(struct vq_drv *vq)
{
	for (; vq->detach_at < vq->size; vq->detach_at++) {
		void *token = vq->slot[vq->detach_at].token;

		vq->slot[vq->detach_at].token = NULL;
		if (token) {
			vq->nout--;
			return token;
		}
	}
	return NULL;
}
