/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/hold.h"

#include <stddef.h>

#define SKIP_MAX 63

static bool told(struct hold *h)
{
	h->last = loop_now(h->loop);
	return true;
}

static void expired(struct loop_timer *t)
{
	struct hold *h = (void *)((char *)t - offsetof(struct hold, timer));

	h->skip = h->count->frames != h->gathered ? 0
		  : h->skip < SKIP_MAX            ? 2 * h->skip + 1
						  : SKIP_MAX;
	h->skip_left = h->skip;
	told(h);
	h->send(h);
}

int hold_init(struct hold *h, struct loop *loop, const struct port_counters *count,
	void (*send)(struct hold *))
{
	*h = (struct hold){.send = send, .loop = loop, .count = count};
	return loop_timer_reserve(loop, &h->timer, expired);
}

void hold_fini(struct hold *h)
{
	if (h->loop)
		loop_timer_release(h->loop, &h->timer);
}

/* What was published since the last wish. */
static bool is_bulk(struct hold *h)
{
	uint64_t bytes = h->count->bytes - h->bytes, frames = h->count->frames - h->frames;

	h->bytes = h->count->bytes;
	h->frames = h->count->frames;
	return bytes >= HOLD_BULK && bytes >= frames * HOLD_MEAN;
}

bool hold_wish(struct hold *h)
{
	bool bulk = is_bulk(h);

	if (h->timer.set && bulk)
		return false;
	if (!h->gap || !bulk || loop_now(h->loop) >= h->last + h->gap) {
		loop_timer_cancel(h->loop, &h->timer);
		return told(h);
	}
	if (h->skip_left) {
		h->skip_left--;
		return told(h);
	}
	h->n_held++;
	h->gathered = h->count->frames;
	loop_timer_set(h->loop, &h->timer, h->last + h->gap);
	return false;
}

void hold_flush(struct hold *h)
{
	if (!h->timer.set)
		return;
	loop_timer_cancel(h->loop, &h->timer);
	told(h);
	h->send(h);
}

void hold_cancel(struct hold *h)
{
	loop_timer_cancel(h->loop, &h->timer);
}
