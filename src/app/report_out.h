/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_out: how a page is written. Every text that came from outside goes through here; nothing
 * that it contains can become markup.
 */
#ifndef APP_REPORT_OUT_H
#define APP_REPORT_OUT_H

#include <stdint.h>
#include <stdio.h>

/*
 * A template of our own, with these verbs:
 *
 *	%t  const char *  text, escaped for HTML (elements and quoted attributes); NULL: nothing
 *	%v  double        a value, to four digits, thousands apart
 *	%r  double        a ratio, to two decimals
 *	%d  int           %%  a percent sign
 *
 * Text that a terminal, a reader or a browser could misread (control characters, changes of the
 * writing direction) is shown as U+FFFD.
 */
void html(FILE *, const char *form, ...);

/* The same verbs, escaped for a cell of a Markdown table: '|', '`', '<' and their like. */
void markdown(FILE *, const char *form, ...);

/*
 * A string for gnuplot, in single quotes, in which gnuplot expands nothing: quotes, backslashes and
 * control characters are replaced. At most `max` characters, an ellipsis included.
 */
void plot_text(FILE *, const char *text, unsigned max);

/* A value as %v writes it. */
#define REPORT_NUMBER 40
const char *report_number(double, char text[REPORT_NUMBER]);

#endif
