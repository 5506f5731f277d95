/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * help: what people read, made from the tables of cmd and spec.
 */
#ifndef APP_HELP_H
#define APP_HELP_H

#include <stdio.h>

#include "app/cmd.h"

void help_short(FILE *); /* `weft` without words: ten lines */
void help_word(FILE *, const struct cmd *);
void help_all(FILE *);
void help_man(FILE *); /* weft(1) as roff */

#endif
