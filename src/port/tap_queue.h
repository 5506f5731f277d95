/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_queue: which of a tap's queues a frame is written to. The frames of a flow take one queue, so that they
 * stay in order; and the kernel answers a flow through the queue that it came by.
 * [Linux Documentation/networking/tuntap.rst, multiqueue]
 */
#ifndef PORT_TAP_QUEUE_H
#define PORT_TAP_QUEUE_H

#include "frame/frame.h"

/* Below `queues`, which is at least 1. By addresses, protocol and ports; what is not IP takes the first. */
unsigned tap_queue_of(const struct frame *, unsigned queues);

#endif
