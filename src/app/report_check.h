/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_check: is this the result of `weft bench tables --json`? What passes has every field that
 * the report reads, of the right kind and within bounds, so nothing behind it has to ask again.
 */
#ifndef APP_REPORT_CHECK_H
#define APP_REPORT_CHECK_H

#include <jansson.h>

#include "base/err.h"

#define REPORT_EXPERIMENTS 32
#define REPORT_TABLES      64
#define REPORT_ROWS        4096
#define REPORT_RUNS        100000

/* 0, or -EINVAL: which place of the file has what, and what would be right. */
int report_check(const json_t *root, struct err *);

#endif
