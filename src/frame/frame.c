/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame: pulling bytes from the borrowed tail into the private head, and the one memcpy that moves
 * a frame from its lender's memory into a receiver's. Knows no header and no ring.
 */
#include "frame/frame.h"

#include <assert.h>
#include <string.h>

#include "base/copy.h"

const char *drop_name(enum drop d)
{
	static const char *const name[DROP_MAX] = {
#define X(id, text) [DROP_##id] = text,
		DROP_REASONS(X)
#undef X
	};

	return (unsigned)d < DROP_MAX ? name[d] : "unknown";
}

bool frame_pull(struct frame *f, uint32_t n)
{
	const uint32_t len = frame_len(f);

	if (n > len)
		n = len;
	if (n > FRAME_PULL_MAX)
		return n <= f->head_len;
	while (f->head_len < n) {
		struct iovec *piece = f->tail;
		size_t k = n - f->head_len;

		if (k > piece->iov_len)
			k = piece->iov_len;
		memcpy(f->head + f->head_len, piece->iov_base, k);
		piece->iov_base = (uint8_t *)piece->iov_base + k;
		piece->iov_len -= k;
		f->head_len += (uint16_t)k;
		f->tail_len -= (uint32_t)k;
		if (!piece->iov_len) {
			f->tail++;
			f->ntail--;
		}
	}
	return true;
}

static inline void copy_bytes(uint8_t *to, const uint8_t *from, size_t n)
{
	if (n < COPY_LONG_MIN)
		memcpy(to, from, n);
	else
		copy_long(to, from, n);
}

/* A place in a list of pieces: `left` bytes at `p`, then *next and on. */
struct place {
	uint8_t *p;
	size_t left;
	const struct iovec *next, *end;
};

static inline void place_step(struct place *at)
{
	assert(at->next != at->end);
	at->p = at->next->iov_base;
	at->left = at->next->iov_len;
	at->next++;
}

static inline void place_skip(struct place *at, size_t n)
{
	while (n >= at->left) {
		n -= at->left;
		place_step(at);
	}
	at->p += n;
	at->left -= n;
}

/* Not beyond the end of this piece. */
static inline void place_advance(struct place *at, size_t n)
{
	at->p += n;
	at->left -= n;
	if (!at->left)
		place_step(at);
}

void frame_copy(const struct frame *f, uint32_t from, uint32_t n, const struct iovec *to,
	unsigned nto, size_t skip)
{
	/* a frame without a tail may have NULL there, to which nothing may be added, not even 0 */
	const struct iovec *end = f->ntail ? f->tail + f->ntail : f->tail;
	struct place src = {f->head, f->head_len, f->tail, end};
	struct place dst = {to->iov_base, to->iov_len, to + 1, to + nto};

	if ((uint64_t)from + n <= f->head_len && skip + n <= to->iov_len) {
		/* small frames: all of it private, one piece to go to */
		memcpy((uint8_t *)to->iov_base + skip, f->head + from, n);
		return;
	}
	if (!n)
		return;
	place_skip(&src, from);
	place_skip(&dst, skip);
	for (;;) {
		size_t k = src.left < dst.left ? src.left : dst.left;

		if (k > n)
			k = n;
		copy_bytes(dst.p, src.p, k);
		n -= (uint32_t)k;
		if (!n)
			return;
		place_advance(&src, k);
		place_advance(&dst, k);
	}
}
