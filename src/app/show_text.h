/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_text: tables for people from show's JSON. Knows the names in the JSON, not the network.
 */
#ifndef APP_SHOW_TEXT_H
#define APP_SHOW_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void show_text_ports(FILE *, json_t *, bool verbose);
void show_text_fdb(FILE *, json_t *, bool verbose);
void show_text_drops(FILE *, json_t *, bool verbose);
void show_text_stats(FILE *, json_t *, bool verbose);
void show_text_object(FILE *, json_t *, bool verbose);

/* 1536 -> "1.5K"; returns `text`. */
char *show_text_count(unsigned long long, char text[16]);

#endif
