/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_macvtap: a new macvtap on an interface that is there, and its character device.
 */
#ifndef PORT_TAP_MACVTAP_H
#define PORT_TAP_MACVTAP_H

#include "port/tap_dev.h"

/* Fills fd, ifname, ifindex, made, also when it fails: what is open or made then is the caller's to undo. */
int macvtap_open(const struct tap_config *, struct tap_if *out, struct err *);

#endif
