/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop: epoll, timers and deferred calls of one thread. It owns "now".
 *
 * A round (loop_dispatch) is: wait for descriptors, at most until the next timer and not at all if
 * a deferred call is pending; read the clock; call what is ready; run the timers that are due; run
 * the deferred calls that were pending when the round began to run them (one that defers itself
 * again runs in the next round). Nothing polls: an idle loop sleeps for ever.
 *
 * While deferred calls keep it busy it does not look at its descriptors every round, for each look is a
 * system call: LOOP_LOOK_NS after a look that found something, and twice as long after each that
 * found nothing, up to LOOP_LOOK_MAX_NS. So who talks by descriptors is heard as soon as ever, and who
 * does not costs a hundredth of the time.
 *
 * Every object is embedded in its owner and must be taken out (loop_del, loop_cancel, loop_undefer)
 * before its memory goes. All of these may be called from inside any callback, also for an object
 * whose event is pending in this very round: then that event is not delivered.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/evfd.h"

#define LOOP_EVENTS      64                    /* taken from epoll at once */
#define LOOP_LOOK_NS     (20 * NSEC_PER_USEC)  /* between two looks while there is deferred work */
#define LOOP_LOOK_MAX_NS (160 * NSEC_PER_USEC) /* the same, if nothing is ever found */

struct loop_fd {
	int fd; /* set by loop_add, -1 after loop_del; not closed by the loop */
	void (*ready)(struct loop_fd *, uint32_t epoll_events);
};

struct loop_timer {
	void (*expired)(struct loop_timer *);
	nsec_t at;         /* NSEC_NEVER while not set */
	unsigned heap_pos; /* the loop's */
	bool set;
};

struct loop_task {
	void (*run)(struct loop_task *);
	TAILQ_ENTRY(loop_task) entry;
	bool queued;
};

struct loop {
	int epfd;         /* pollable: the host of a library may wait on it */
	struct evfd evfd; /* to signal peers of this thread's ports */
	nsec_t now;
	nsec_t looked;     /* when descriptors were looked at ... */
	nsec_t look_after; /* ... and how long not to do it again while there is deferred work */
	struct loop_timer **heap;
	unsigned nheap, heap_cap;
	TAILQ_HEAD(loop_tasks, loop_task) tasks;
	struct loop_fd *pending[LOOP_EVENTS]; /* events of this round not yet delivered */
	unsigned npending;
	const nsec_t
		*virtual_now; /* tests: time is read from here and nothing sleeps; NULL: clock */
	bool coarse;          /* the kernel has no epoll_pwait2: waits are whole milliseconds */
	uint64_t rounds;      /* dispatches */
	uint64_t wakeups;     /* returns from a wait that could block: the idle counter */
};

int loop_init(struct loop *, struct err *);
void loop_fini(struct loop *);

/* The time of this round, [ns]; loop_refresh() reads the clock again (busy polling). */
static inline nsec_t loop_now(const struct loop *l)
{
	return l->now;
}
nsec_t loop_refresh(struct loop *);

/* Whoever waits for a descriptor while there is deferred work: the next look is soon. */
static inline void loop_listen(struct loop *l)
{
	l->look_after = LOOP_LOOK_NS;
}

/* Watch `fd` for EPOLLIN | EPOLLOUT | EPOLLET ... 0 or -errno (ENOSPC, EPERM: not pollable). */
int loop_add(struct loop *, struct loop_fd *, int fd, uint32_t epoll_events);
int loop_mod(struct loop *, struct loop_fd *, uint32_t epoll_events);
void loop_del(struct loop *, struct loop_fd *); /* no effect on one that is not watched */

/*
 * Set, or set anew, a timer to `at` [ns of loop_now]. loop_timer_reserve makes room for one more
 * timer beforehand, in set-up, so that setting never allocates in the datapath; call it once for
 * each embedded timer, loop_timer_release when its owner goes (also cancels).
 */
int loop_timer_reserve(struct loop *, struct loop_timer *, void (*expired)(struct loop_timer *));
void loop_timer_release(struct loop *, struct loop_timer *);
void loop_timer_set(struct loop *, struct loop_timer *, nsec_t at);
void loop_timer_cancel(struct loop *, struct loop_timer *);

void loop_defer(struct loop *, struct loop_task *); /* no effect if queued */
void loop_undefer(struct loop *, struct loop_task *);

/*
 * One round. `wait` false: do not sleep. Returns 0, or -errno of epoll (never EINTR: a signal ends
 * the wait and the round goes on).
 */
int loop_dispatch(struct loop *, bool wait);
nsec_t loop_deadline(const struct loop *); /* next timer, NSEC_NEVER if none */

#endif
