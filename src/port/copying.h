/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copying: the copy path of tun and macvtap in front of any port: what is pulled is kept in a packet of
 * its own before it is lent on. For experiments on how such packets are allocated (S3); a tap port has
 * it built in. It puts its operations around those of the port, as impair does, and knows no device.
 */
#ifndef PORT_COPYING_H
#define PORT_COPYING_H

#include "port/port.h"
#include "port/tap.h"

struct copying;

/* Wrap an open port, before it is attached to anything. 0 or -errno. */
int copying_wrap(struct copying **, struct port *, const struct tap_copy_config *, struct err *);
void copying_free(struct copying *); /* before the port's memory goes; NULL is fine */
void copying_count(const struct copying *, struct tap_copied *);

#endif
