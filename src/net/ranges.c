/* SPDX-License-Identifier: BSD-2-Clause */
/* ranges: see ranges.h */
#include "net/ranges.h"

#include <string.h>

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* The first interval whose end is not before `seq` (touching counts). */
static unsigned find_touch(const struct ranges *s, uint32_t seq)
{
	unsigned lo = 0, hi = s->n;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (before(s->r[mid].end, seq))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

unsigned ranges_find(const struct ranges *s, uint32_t seq)
{
	unsigned i = find_touch(s, seq);

	return i < s->n && s->r[i].end == seq ? i + 1 : i;
}

static void remove_at(struct ranges *s, unsigned i, unsigned k)
{
	memmove(s->r + i, s->r + i + k, (s->n - i - k) * sizeof(s->r[0]));
	s->n -= k;
}

bool ranges_add(struct ranges *s, uint32_t beg, uint32_t end, unsigned *at)
{
	unsigned i = find_touch(s, beg), j = i;

	*at = i;
	while (j < s->n && !before(end, s->r[j].beg))
		j++;
	if (i == j) {
		if (s->n == RANGES_MAX)
			return false;
		memmove(s->r + i + 1, s->r + i, (s->n - i) * sizeof(s->r[0]));
		s->r[i] = (struct range){beg, end};
		s->n++;
		return true;
	}
	if (before(beg, s->r[i].beg))
		s->r[i].beg = beg;
	if (before(s->r[j - 1].end, end))
		s->r[i].end = end;
	else
		s->r[i].end = s->r[j - 1].end;
	remove_at(s, i + 1, j - i - 1);
	return true;
}

void ranges_trim(struct ranges *s, uint32_t seq)
{
	unsigned i = ranges_find(s, seq);

	remove_at(s, 0, i);
	if (s->n > 0 && before(s->r[0].beg, seq))
		s->r[0].beg = seq;
}

void ranges_cut(struct ranges *s, uint32_t seq)
{
	unsigned i = ranges_find(s, seq);

	if (i < s->n && before(s->r[i].beg, seq)) {
		s->r[i].end = seq;
		i++;
	}
	s->n = i;
}
