/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_dev: the descriptor of a tap: of /dev/net/tun, one that was passed in, or of a macvtap's character
 * device; and its offloads. It works in the network namespace of the calling thread.
 */
#ifndef PORT_TAP_DEV_H
#define PORT_TAP_DEV_H

#include "base/err.h"
#include "port/tap.h"
#include "port/tap_ns.h"

#define TAP_WHO 32 /* bytes of "macvtap:IFNAME" */

/* How texts name it, as a user did. */
const char *tap_who(const struct tap_config *, char who[TAP_WHO]);
/* -EPERM with what is needed; and why an ordinary user cannot have a namespace here, or "". */
int tap_no_right(struct err *, const struct tap_config *);
const char *tap_userns_forbidden(void);

/*
 * Fills fd, queues, ifname, ifindex, made and features of `out`; nothing of it stays open or made after an
 * error. A passed descriptor is duplicated; the caller keeps its own.
 */
int tap_dev_open(const struct tap_config *, struct tap_if *out, struct err *);

void tap_dev_close(struct tap_if *); /* the descriptors */

/* Is `fd` of the interface `ifname` of this namespace, and not of another one's of the same name? */
bool tap_dev_is(int fd, const char *ifname);

#endif
