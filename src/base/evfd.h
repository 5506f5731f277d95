/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evfd: to signal an eventfd that is shared with a peer, without ever waiting for that peer.
 *
 * Whether write() waits for room is a flag of the open file, which the peer shares: it clears the flag,
 * fills the counter, and whoever writes stands still for as long as it likes. No look beforehand helps,
 * as both may be done after it. The kernel's own signal never waits; of its ways there the oldest is
 * asynchronous I/O: the end of any request adds one to an eventfd. So each signal is a request that ends
 * at once: a read that is too short for what it reads. eventfd(2), io_submit(2)
 *
 * What it costs beside a write() build/bench/bench_evfd tells.
 */
#ifndef BASE_EVFD_H
#define BASE_EVFD_H

#include <stdbool.h>
#include <stdint.h>

struct evfd {
	unsigned long aio; /* the kernel's context; 0: there is none, write() has to do */
	int idle;          /* what is read from; -1: none */
	unsigned ended;    /* requests whose ends lie with the kernel */
};

void evfd_init(struct evfd *);
/* Blocks some 20 ms if it was prepared: the kernel waits for its processors. */
void evfd_fini(struct evfd *);
/*
 * In set-up, before there is any peer: one of them could use the kernel's contexts up. No effect when it has
 * been done. 0, or what io_setup() says: -EAGAIN: fs.aio-max-nr is used up; -ENOSYS, -EPERM: there is none
 * in this kernel or sandbox. Without one signals are written, and a hostile peer may stop us.
 */
int evfd_prepare(struct evfd *);
/* `fd` must be an eventfd. A full one means that a signal is pending already. */
void evfd_signal(struct evfd *, int fd);

#endif
