/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_driver: the driver's knobs and counters as JSON, for `weft show`, weft_nic_show() and
 * `weft bench`: one set of names.
 */
#ifndef APP_SHOW_DRIVER_H
#define APP_SHOW_DRIVER_H

#include <jansson.h>

#include "app/spec.h"
#include "port/vdrv.h"

/* All that a driver has counted, at one time. Only uint64_t. */
struct driver_count {
	struct vdrv_counters drv;
	uint64_t chunks[CHUNK_ORDERS], fallbacks, failures;
	uint64_t kept_ref, kept_copy;
};

void driver_count_take(struct driver_count *, struct port *);
/* What was counted since `before`. */
void driver_count_since(struct driver_count *, const struct driver_count *before);

json_t *show_knobs(const struct spec *); /* {"rxbuf": "auto", ...}, values as a user writes them */
json_t *show_driver(const struct driver_count *); /* and each mechanism's per packet */

#endif
