/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sigbus: the one process-wide exception. A peer may truncate the file behind memory it shares with
 * us; touching a page beyond its end raises SIGBUS. With the guard installed, an access inside a
 * watched range maps zero pages over the hole, marks the range faulted, and goes on; the owner asks
 * sigbus_faulted() at its next safe point and breaks the device. A SIGBUS anywhere else is passed on
 * to the handler that was there before.
 *
 * Installed only by a program that asks for it (weft run does; the library never does by itself).
 */
#ifndef BASE_SIGBUS_H
#define BASE_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

#define SIGBUS_RANGES 1024 /* watched at once: 128 ports with 8 regions each, or fewer with more */

int sigbus_install(void); /* 0 or -errno; a second call does nothing */
/* Watch [start, start + len): a handle >= 0, or -ENOSPC. Async-signal-safe against the handler. */
int sigbus_watch(void *start, size_t len);
void sigbus_unwatch(int handle); /* before munmap */
bool sigbus_faulted(int handle);
const bool *sigbus_flag(int handle); /* what sigbus_faulted reads, while it is watched */

#endif
