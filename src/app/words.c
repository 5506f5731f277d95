/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * words: edit distance with neighbouring letters swapped counting once, the usual slip.
 */
#include "app/words.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 32

static unsigned min2(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
	unsigned row[3][WORD_MAX + 1] = {0};
	unsigned la = (unsigned)strlen(a), lb = (unsigned)strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return WORD_MAX;
	for (unsigned j = 0; j <= lb; j++)
		row[0][j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned *now = row[i % 3];
		const unsigned *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			now[j] = min2(last[j], now[j - 1]) + 1;
			now[j] = min2(now[j], last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min2(now[j], before[j - 2] + 1);
		}
	}
	return row[la % 3][lb];
}

const char *words_closest(const char *word, const char *const *known, unsigned n)
{
	unsigned best = 1 + (unsigned)strlen(word) / 4; /* more slips than that are another word */
	const char *found = NULL;

	for (unsigned i = 0; i < n; i++) {
		unsigned d = distance(word, known[i]);

		if (d <= best && (!found || d < best)) {
			best = d;
			found = known[i];
		}
	}
	return found;
}

char *words_hint(char *text, size_t size, const char *word, const char *const *known, unsigned n)
{
	const char *closest = words_closest(word, known, n);
	size_t at;

	if (closest) {
		snprintf(text, size, "; did you mean '%s'?", closest);
		return text;
	}
	snprintf(text, size, "; known: ");
	for (unsigned i = 0; i < n; i++) {
		at = strlen(text);
		snprintf(text + at, size - at, "%s%s", i ? ", " : "", known[i]);
	}
	return text;
}
