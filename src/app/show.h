/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show: what a network is and does, as JSON with stable names (one function per topic), and as
 * tables for people made from that very JSON. Reads only.
 */
#ifndef APP_SHOW_H
#define APP_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "app/net.h"

/* A word of `weft show`; NULL-terminated by name. */
struct show_topic {
	const char *name, *help;
	json_t *(*make)(struct net *);
	void (*print)(FILE *, json_t *, bool verbose);
};
extern const struct show_topic show_topics[];

const struct show_topic *show_topic_find(const char *name); /* NULL: unknown */
json_t *show_all(struct net *); /* every topic under its name, and the network's own */

char *show_mac(const uint8_t mac[6], char text[18]);

#endif
