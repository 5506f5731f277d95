/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_int: what the files of the public API share.
 */
#ifndef APP_WEFT_INT_H
#define APP_WEFT_INT_H

#include "app/net.h"
#include "weft/weft.h"

struct weft_net {
	struct net net;
	void (*sink)(void *ctx, int level, const char *tag, const char *text);
	void *ctx;
};

/* Pass `r` on, and the text to a caller who wants it. */
int weft_tell(int r, const struct err *, char *err);
/* How long its owner may sleep: see weft_net_timeout_ns. */
int64_t weft_loop_timeout(const struct loop *);

#endif
