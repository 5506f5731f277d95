/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rundir: where a network's sockets lie: $XDG_RUNTIME_DIR/weft/NET, for root without it
 * /run/weft/NET, else /tmp/weft-UID/NET. Whatever is ours there is 0700, and checked: owner, kind,
 * mode; /tmp is everybody's. Inside a user namespace the user is who he is outside, so that `weft
 * show` finds a network that runs in one.
 */
#ifndef APP_RUNDIR_H
#define APP_RUNDIR_H

#include <stdbool.h>

#include "base/err.h"

#define RUNDIR_PATH 256 /* bytes with the NUL */

/* The folder of a network, made if `make`. 0 or -errno; without `make` only the name is built. */
int rundir_path(char path[RUNDIR_PATH], const char *net, bool make, struct err *);

/* Every network that has a folder, whether it runs or not, in no order. */
void rundir_each(void (*each)(void *ctx, const char *net), void *ctx);

/*
 * What MAC addresses are made from, beside a port's name: this machine, the user, the network. Two
 * users or hosts that are one day bridged together have different ones.
 */
#define RUNDIR_ORIGIN 128 /* bytes with the NUL */
char *rundir_origin(char text[RUNDIR_ORIGIN], const char *net);

/*
 * Make the folder and claim it for this process until `*lock` is closed. -EBUSY: another process
 * has the network.
 */
int rundir_claim(char path[RUNDIR_PATH], const char *net, int *lock, struct err *);
/* Remove the folder, and weft/ above it, where they are empty. */
void rundir_remove(const char *path);
/* The same, and close the claim. */
void rundir_release(const char *path, int lock);

#endif
