/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impair_delay: frames that wait, as chains of blocks of one mapping. Blocks and slots freed last are
 * taken first. Nothing is allocated while frames pass.
 */
#include "port/impair_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NO_BLOCK UINT32_MAX

int delay_init(struct delay *d, uint32_t slots)
{
	memset(d, 0, sizeof(*d));
	TAILQ_INIT(&d->idle);
	TAILQ_INIT(&d->due);
	d->nblocks = d->nfree = DELAY_BYTES / DELAY_BLOCK;
	d->next = malloc(d->nblocks * sizeof(*d->next));
	d->slots = calloc(slots, sizeof(*d->slots));
	d->mem = mmap(NULL, DELAY_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!d->next || !d->slots || d->mem == MAP_FAILED) {
		delay_fini(d);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < d->nblocks; i++)
		d->next[i] = i + 1 < d->nblocks ? i + 1 : NO_BLOCK;
	for (uint32_t i = 0; i < slots; i++)
		TAILQ_INSERT_TAIL(&d->idle, &d->slots[i], entry);
	return 0;
}

void delay_fini(struct delay *d)
{
	if (d->mem && d->mem != MAP_FAILED)
		munmap(d->mem, DELAY_BYTES);
	free(d->next);
	free(d->slots);
	memset(d, 0, sizeof(*d));
}

static uint8_t *block_at(struct delay *d, uint32_t block)
{
	return d->mem + (size_t)block * DELAY_BLOCK;
}

struct delayed *delay_copy(struct delay *d, const struct frame *f)
{
	struct delayed *s = TAILQ_FIRST(&d->idle);
	uint32_t len = frame_len(f), blocks = (len + DELAY_BLOCK - 1) / DELAY_BLOCK;

	if (!s || blocks > d->nfree || !len)
		return NULL;
	TAILQ_REMOVE(&d->idle, s, entry);
	s->len = len;
	s->block = d->free;
	s->off = f->off;
	s->drop = f->drop;
	d->nfree -= blocks;
	for (uint32_t at = 0, last = 0; at < len; at += DELAY_BLOCK) {
		uint32_t n = len - at < DELAY_BLOCK ? len - at : DELAY_BLOCK;
		struct iovec to = {block_at(d, d->free), n};

		frame_copy(f, at, n, &to, 1, 0);
		last = d->free;
		d->free = d->next[last];
		if (at + n == len)
			d->next[last] = NO_BLOCK;
	}
	return s;
}

static void delay_forget(struct delay *d, struct delayed *s)
{
	for (uint32_t b = s->block, next; b != NO_BLOCK; b = next) {
		next = d->next[b];
		d->next[b] = d->free;
		d->free = b;
		d->nfree++;
	}
	TAILQ_INSERT_HEAD(&d->idle, s, entry);
}

void delay_put(struct delay *d, struct delayed *s, nsec_t due)
{
	struct delayed *before = TAILQ_LAST(&d->due, delayed_list);

	s->due = due;
	d->n++;
	while (before && before->due > due)
		before = TAILQ_PREV(before, delayed_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&d->due, before, s, entry);
	else
		TAILQ_INSERT_HEAD(&d->due, s, entry);
}

void delay_take(struct delay *d, struct delayed *s)
{
	TAILQ_REMOVE(&d->due, s, entry);
	d->n--;
	delay_forget(d, s);
}

uint8_t *delay_byte(struct delay *d, const struct delayed *s, uint32_t at)
{
	uint32_t b = s->block;

	for (; at >= DELAY_BLOCK; at -= DELAY_BLOCK)
		b = d->next[b];
	return block_at(d, b) + at;
}

struct delayed *delay_due(const struct delay *d, nsec_t now)
{
	struct delayed *s = TAILQ_FIRST(&d->due);

	return s && s->due <= now ? s : NULL;
}

nsec_t delay_deadline(const struct delay *d)
{
	const struct delayed *s = TAILQ_FIRST(&d->due);

	return s ? s->due : NSEC_NEVER;
}

bool delay_lend(struct delay *d, const struct delayed *s, struct burst *b)
{
	struct frame *f = &b->f[b->n];
	uint32_t head = s->len < FRAME_HEAD ? s->len : FRAME_HEAD, left = s->len - head;
	uint32_t pieces = 1 + s->len / DELAY_BLOCK;

	if (b->n == BURST_FRAMES || b->niov + pieces > BURST_IOV)
		return false;
	*f = (struct frame){
		.head = b->head[b->n].data,
		.head_len = (uint16_t)head,
		.tail = &b->iov[b->niov],
		.tail_len = left,
		.off = s->off,
		.drop = s->drop,
	};
	memcpy(f->head, block_at(d, s->block), head);
	for (uint32_t block = s->block, skip = head; left; block = d->next[block], skip = 0) {
		uint32_t n = left < DELAY_BLOCK - skip ? left : DELAY_BLOCK - skip;

		b->iov[b->niov++] = (struct iovec){block_at(d, block) + skip, n};
		f->ntail++;
		left -= n;
	}
	b->n++;
	b->bytes += s->len;
	return true;
}
