/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * words: what every table of words (commands, kinds, keys) needs to help who misspelt one.
 */
#ifndef APP_WORDS_H
#define APP_WORDS_H

#include <stddef.h>

/* Of `n` words the one that `word` most likely means, or NULL if none is close. */
const char *words_closest(const char *word, const char *const *known, unsigned n);

/*
 * "; did you mean 'x'?" or "; known: a, b, c", cut to `size`. Returns `text`.
 */
char *words_hint(char *text, size_t size, const char *word, const char *const *known, unsigned n);

#endif
