/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_sim: see the header. Barriers pair with those of split_dev.c by their tags.
 * [VIRTIO 1.2 2.7.13, 2.7.14]
 */
#include "ring/ring_sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t line_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

size_t ring_sim_len(unsigned size, unsigned table)
{
	return line_up(vring_desc_len(size)) + line_up(vring_avail_len(size)) +
	       line_up(vring_used_len(size)) + line_up(vring_desc_len(size) * table);
}

static void sim_lay_out(struct ring_sim *s, const struct ring_sim_config *c)
{
	uint8_t *mem = c->mem;
	size_t avail = line_up(vring_desc_len(c->size));
	size_t used = avail + line_up(vring_avail_len(c->size));
	size_t table = used + line_up(vring_used_len(c->size));

	memset(mem, 0, ring_sim_len(c->size, c->table));
	s->desc = (void *)mem;
	s->avail = (void *)(mem + avail);
	s->used = (void *)(mem + used);
	s->table = c->table ? (void *)(mem + table) : NULL;
	s->desc_gpa = c->gpa;
	s->avail_gpa = c->gpa + avail;
	s->used_gpa = c->gpa + used;
	s->table_gpa = c->gpa + table;
}

int ring_sim_init(struct ring_sim *s, const struct ring_sim_config *c)
{
	*s = (struct ring_sim){0};
	if (!c->size || c->size > RING_MAX || (c->size & (c->size - 1)))
		return -EINVAL;
	s->free = calloc(3 * (size_t)c->size, sizeof(uint16_t));
	if (!s->free)
		return -ENOMEM;
	s->next = s->free + c->size;
	s->ndesc = s->next + c->size;

	sim_lay_out(s, c);
	s->size = (uint16_t)c->size;
	s->mask = (uint16_t)(c->size - 1);
	s->table_len = c->table;
	s->event_idx = c->event_idx;
	s->avail_next = s->avail_shown = s->kicked = s->used_next = c->base;
	s->avail->idx = s->used->idx = c->base;
	for (unsigned i = 0; i < c->size; i++)
		s->free[i] = (uint16_t)i;
	s->free_put = c->size;
	return 0;
}

void ring_sim_fini(struct ring_sim *s)
{
	free(s->free);
	*s = (struct ring_sim){0};
}

void ring_sim_attach(const struct ring_sim *s, struct vq_dev *vq, bool indirect)
{
	vq_dev_set_size(vq, s->size, NULL);
	vq_dev_set_rings(vq, s->desc, s->avail, s->used);
	vq_dev_start(vq, s->used_next, s->event_idx, indirect);
}

static struct vring_desc sim_desc(const struct ring_sim_buf *b, bool writable)
{
	return (struct vring_desc){
		.addr = b->gpa, .len = b->len, .flags = writable ? VRING_DESC_F_WRITE : 0};
}

static int sim_add_table(struct ring_sim *s, const struct ring_sim_buf *b, unsigned nr, unsigned n)
{
	if (n > s->table_len || !ring_sim_free(s))
		return -1;

	uint16_t head = s->free[s->free_get & s->mask];
	struct vring_desc *t = s->table + (size_t)head * s->table_len;

	for (unsigned i = 0; i < n; i++) {
		t[i] = sim_desc(&b[i], i >= nr);
		if (i + 1 < n) {
			t[i].flags |= VRING_DESC_F_NEXT;
			t[i].next = (uint16_t)(i + 1);
		}
	}
	ring_sim_add1(s, s->table_gpa + (uint64_t)head * vring_desc_len(s->table_len),
		(uint32_t)vring_desc_len(n), false);
	s->desc[head].flags = VRING_DESC_F_INDIRECT;
	return head;
}

int ring_sim_add(
	struct ring_sim *s, const struct ring_sim_buf *b, unsigned nr, unsigned nw, bool indirect)
{
	unsigned n = nr + nw;

	if (indirect)
		return sim_add_table(s, b, nr, n);
	if (!n || n > ring_sim_free(s))
		return -1;

	uint16_t head = s->free[s->free_get & s->mask];

	for (unsigned i = 0; i < n; i++) {
		uint16_t at = s->free[s->free_get++ & s->mask];

		s->desc[at] = sim_desc(&b[i], i >= nr);
		if (i + 1 < n) {
			s->next[at] = s->free[s->free_get & s->mask];
			s->desc[at].flags |= VRING_DESC_F_NEXT;
			s->desc[at].next = s->next[at];
		}
	}
	s->ndesc[head] = (uint16_t)n;
	ring_sim_add_raw(s, head);
	return head;
}

void ring_sim_add_raw(struct ring_sim *s, uint16_t head)
{
	s->avail->ring[s->avail_next++ & s->mask] = head;
}

bool ring_sim_kick(struct ring_sim *s)
{
	uint16_t old = s->kicked;

	s->kicked = s->avail_shown;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* [kick] avail index before the device's wish */
	if (!s->event_idx)
		return !(__atomic_load_n(&s->used->flags, __ATOMIC_RELAXED) &
			 VRING_USED_F_NO_NOTIFY);

	uint16_t *wish = (uint16_t *)&s->used->ring[s->size];
	uint16_t event = __atomic_load_n(wish, __ATOMIC_RELAXED);

	return (uint16_t)(s->kicked - event - 1) < (uint16_t)(s->kicked - old);
}

static bool sim_free_chain(struct ring_sim *s, uint32_t id)
{
	if (id >= s->size || !s->ndesc[id]) {
		s->n_bad++;
		return false;
	}

	unsigned n = s->ndesc[id];
	uint16_t at = (uint16_t)id;

	s->ndesc[id] = 0;
	s->free[s->free_put++ & s->mask] = at;
	while (--n) {
		at = s->next[at];
		s->free[s->free_put++ & s->mask] = at;
	}
	return true;
}

bool ring_sim_get(struct ring_sim *s, uint32_t *id, uint32_t *len)
{
	if (!ring_sim_pending(s)) /* [used] pairs with the release of vq_dev_publish */
		return false;

	const struct vring_used_elem *e = &s->used->ring[s->used_next++ & s->mask];

	*id = e->id;
	*len = e->len;
	sim_free_chain(s, e->id);
	return true;
}

unsigned ring_sim_drain(struct ring_sim *s, unsigned max)
{
	unsigned n = ring_sim_pending(s); /* [used] */

	if (n > max)
		n = max;
	for (unsigned i = 0; i < n; i++)
		sim_free_chain(s, s->used->ring[s->used_next++ & s->mask].id);
	return n;
}

bool ring_sim_arm(struct ring_sim *s, unsigned more)
{
	if (s->event_idx)
		__atomic_store_n(&s->avail->ring[s->size], (uint16_t)(s->used_next + more - 1),
			__ATOMIC_RELAXED);
	else
		__atomic_store_n(&s->avail->flags, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* [call] the wish before the used index is read */
	return ring_sim_pending(s) >= more;
}

void ring_sim_disarm(struct ring_sim *s)
{
	/* With event indices: one that lies behind, not met for 2^16 - 1 further entries. */
	if (s->event_idx)
		__atomic_store_n(
			&s->avail->ring[s->size], (uint16_t)(s->used_next - 1), __ATOMIC_RELAXED);
	else
		__atomic_store_n(&s->avail->flags, VRING_AVAIL_F_NO_INTERRUPT, __ATOMIC_RELAXED);
}
