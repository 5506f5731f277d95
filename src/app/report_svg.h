/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_svg: gnuplot as a child process: a script goes in, a picture comes out that can stand
 * in a page: it has a title and a description, takes its colours and its letters from the page, and
 * no name in it is another picture's.
 */
#ifndef APP_REPORT_SVG_H
#define APP_REPORT_SVG_H

#include <stdio.h>

#include "base/err.h"

/* -ENOENT with the package's name: there is no gnuplot. */
int svg_gnuplot_check(struct err *);

/*
 * Run a script (report_plot.c makes them). 0 and *svg, to be freed; -EIO with what gnuplot said;
 * -ENOENT as above. The child has no terminal, reads no start file, and ends after some seconds.
 */
int svg_draw(const char *script, size_t len, char **svg, struct err *);

/*
 * Put the picture into a page as number `id`. Colours #010101 .. #090909 of the script become the
 * page's variables --p1 .. --p9.
 */
void svg_embed(FILE *, const char *svg, unsigned id, const char *title, const char *desc);

#endif
