/* SPDX-License-Identifier: BSD-2-Clause */
/* report_page: the checked result file as a page (report_page.c) or as Markdown (report_md.c). */
#ifndef APP_REPORT_PAGE_H
#define APP_REPORT_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* One self-contained page: nothing is fetched from anywhere. 0, or what gnuplot's absence or failure
 * says. */
int report_page(FILE *, const json_t *root, struct err *);
/* The tables alone, for a document; `only`: an experiment's id, or NULL. -ENOENT: no such one. */
int report_markdown(FILE *, const json_t *root, const char *only, struct err *);

#endif
