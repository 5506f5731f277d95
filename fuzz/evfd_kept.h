/* SPDX-License-Identifier: BSD-2-Clause */
/* evfd_kept: one context of the kernel for all inputs: to give it back takes longer than an input does. */
#ifndef FUZZ_EVFD_KEPT_H
#define FUZZ_EVFD_KEPT_H

#include "base/loop.h"

static inline struct evfd *evfd_kept(void)
{
	static struct evfd kept = {.idle = -1};

	evfd_prepare(&kept);
	return &kept;
}

/* After loop_init(), and before loop_fini(). */
static inline void evfd_lend(struct loop *l)
{
	l->evfd = *evfd_kept();
}

static inline void evfd_take_back(struct loop *l)
{
	*evfd_kept() = l->evfd;
	evfd_init(&l->evfd);
}

#endif
