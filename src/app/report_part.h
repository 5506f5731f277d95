/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_part: the tables and lists of the page. Tables have a caption, scopes, and on narrow screens a
 * label in front of every cell.
 */
#ifndef APP_REPORT_PART_H
#define APP_REPORT_PART_H

#include <jansson.h>
#include <stdio.h>

void part_knobs(FILE *, const json_t *knobs);
void part_table(FILE *, const json_t *table);
void part_counters(FILE *, const json_t *table);
void part_runs(FILE *, const json_t *runs); /* behind a fold */
void part_terms(FILE *, const json_t *terms);
void part_points(FILE *, const json_t *points);

#endif
