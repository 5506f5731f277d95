/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop: epoll, a binary heap of timers, a queue of deferred calls. See loop.h for what a round is.
 *
 * Taking an object out while its event is pending: descriptors by clearing their place in
 * `pending`, timers by leaving the heap, deferred calls by leaving the queue; a round runs the
 * queue up to a marker that it has put at its end.
 */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

int loop_init(struct loop *l, struct err *err)
{
	memset(l, 0, sizeof(*l));
	TAILQ_INIT(&l->tasks);
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return err_set(err, errno, "cannot make an event queue: %s", strerror(errno));
	evfd_init(&l->evfd);
	l->now = clock_now();
	loop_listen(l);
	return 0;
}

void loop_fini(struct loop *l)
{
	if (l->epfd >= 0)
		close(l->epfd);
	l->epfd = -1;
	evfd_fini(&l->evfd);
	free(l->heap);
	l->heap = NULL;
	l->nheap = l->heap_cap = 0;
}

nsec_t loop_refresh(struct loop *l)
{
	l->now = l->virtual_now ? *l->virtual_now : clock_now();
	return l->now;
}

/* descriptors */

static int loop_ctl(struct loop *l, struct loop_fd *f, int op, uint32_t epoll_events)
{
	struct epoll_event ev = {.events = epoll_events, .data.ptr = f};

	return epoll_ctl(l->epfd, op, f->fd, &ev) ? -errno : 0;
}

int loop_add(struct loop *l, struct loop_fd *f, int fd, uint32_t epoll_events)
{
	int r;

	f->fd = fd;
	r = loop_ctl(l, f, EPOLL_CTL_ADD, epoll_events);
	if (r)
		f->fd = -1;
	return r;
}

int loop_mod(struct loop *l, struct loop_fd *f, uint32_t epoll_events)
{
	return loop_ctl(l, f, EPOLL_CTL_MOD, epoll_events);
}

void loop_del(struct loop *l, struct loop_fd *f)
{
	if (f->fd < 0)
		return;
	loop_ctl(l, f, EPOLL_CTL_DEL, 0); /* may be closed already: then it is gone there, too */
	f->fd = -1;
	for (unsigned i = 0; i < l->npending; i++) {
		if (l->pending[i] == f)
			l->pending[i] = NULL;
	}
}

/* timers: heap[0] is the earliest; heap_cap counts the reserved timers */

static void heap_place(struct loop *l, unsigned pos, struct loop_timer *t)
{
	l->heap[pos] = t;
	t->heap_pos = pos;
}

static void heap_up(struct loop *l, unsigned pos, struct loop_timer *t)
{
	while (pos > 0 && l->heap[(pos - 1) / 2]->at > t->at) {
		heap_place(l, pos, l->heap[(pos - 1) / 2]);
		pos = (pos - 1) / 2;
	}
	heap_place(l, pos, t);
}

static void heap_down(struct loop *l, unsigned pos, struct loop_timer *t)
{
	for (unsigned child = 2 * pos + 1; child < l->nheap; child = 2 * pos + 1) {
		if (child + 1 < l->nheap && l->heap[child + 1]->at < l->heap[child]->at)
			child++;
		if (l->heap[child]->at >= t->at)
			break;
		heap_place(l, pos, l->heap[child]);
		pos = child;
	}
	heap_place(l, pos, t);
}

static void heap_fix(struct loop *l, unsigned pos, struct loop_timer *t)
{
	if (pos > 0 && l->heap[(pos - 1) / 2]->at > t->at)
		heap_up(l, pos, t);
	else
		heap_down(l, pos, t);
}

int loop_timer_reserve(struct loop *l, struct loop_timer *t, void (*expired)(struct loop_timer *))
{
	struct loop_timer **heap;

	heap = realloc(l->heap, (l->heap_cap + 1) * sizeof(void *));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	l->heap_cap++;
	*t = (struct loop_timer){.expired = expired, .at = NSEC_NEVER};
	return 0;
}

void loop_timer_release(struct loop *l, struct loop_timer *t)
{
	if (!t->expired)
		return; /* never reserved, or released before */
	loop_timer_cancel(l, t);
	t->expired = NULL;
	l->heap_cap--;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, nsec_t at)
{
	assert(t->expired);
	t->at = at;
	if (t->set) {
		heap_fix(l, t->heap_pos, t);
		return;
	}
	assert(l->nheap < l->heap_cap);
	t->set = true;
	heap_up(l, l->nheap++, t);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
	struct loop_timer *last;

	if (!t->set)
		return;
	t->set = false;
	t->at = NSEC_NEVER;
	last = l->heap[--l->nheap];
	if (last != t)
		heap_fix(l, t->heap_pos, last);
}

nsec_t loop_deadline(const struct loop *l)
{
	return l->nheap ? l->heap[0]->at : NSEC_NEVER;
}

static void loop_run_timers(struct loop *l)
{
	/* Bounded, so that a timer which sets itself to a past time cannot hold the round. */
	for (unsigned n = l->nheap; n > 0 && loop_deadline(l) <= l->now; n--) {
		struct loop_timer *t = l->heap[0];

		loop_timer_cancel(l, t);
		t->expired(t);
	}
}

/* deferred calls */

void loop_defer(struct loop *l, struct loop_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	TAILQ_INSERT_TAIL(&l->tasks, t, entry);
}

void loop_undefer(struct loop *l, struct loop_task *t)
{
	if (!t->queued)
		return;
	t->queued = false;
	TAILQ_REMOVE(&l->tasks, t, entry);
}

static void loop_run_tasks(struct loop *l)
{
	struct loop_task marker = {.run = NULL}, *t;

	if (TAILQ_EMPTY(&l->tasks))
		return;
	loop_defer(l, &marker);
	while ((t = TAILQ_FIRST(&l->tasks)) != &marker) {
		loop_undefer(l, t);
		t->run(t);
	}
	loop_undefer(l, &marker);
}

/* the round */

/* How long this round may sleep: 0, or a time, or NSEC_NEVER. */
static nsec_t loop_patience(struct loop *l, bool wait)
{
	nsec_t at = loop_deadline(l), now;

	if (!wait || !TAILQ_EMPTY(&l->tasks) || l->virtual_now)
		return 0;
	if (at == NSEC_NEVER)
		return NSEC_NEVER;
	now = clock_now();
	return at > now ? at - now : 0;
}

static int loop_wait_coarse(struct loop *l, struct epoll_event *ev, nsec_t patience)
{
	nsec_t ms = -1;

	/* Rounded up: to wake too early would mean to wake twice. */
	if (patience != NSEC_NEVER)
		ms = patience / NSEC_PER_MSEC + (patience % NSEC_PER_MSEC != 0);
	if (ms > INT32_MAX)
		ms = INT32_MAX;
	return epoll_wait(l->epfd, ev, LOOP_EVENTS, (int)ms);
}

static int loop_wait(struct loop *l, struct epoll_event *ev, nsec_t patience)
{
	struct timespec ts = {patience / NSEC_PER_SEC, patience % NSEC_PER_SEC};
	int n;

	if (!l->coarse && patience != 0 && patience != NSEC_NEVER) {
		n = epoll_pwait2(l->epfd, ev, LOOP_EVENTS, &ts, NULL);
		/* Sandboxes that do not know the call answer EPERM. */
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		l->coarse = true;
	}
	return loop_wait_coarse(l, ev, patience);
}

static void loop_deliver(struct loop *l, const struct epoll_event *ev, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		l->pending[i] = ev[i].data.ptr;
	l->npending = n;
	for (unsigned i = 0; i < n; i++) {
		struct loop_fd *f = l->pending[i];

		l->pending[i] = NULL;
		if (f)
			f->ready(f, ev[i].events);
	}
	l->npending = 0;
}

/* Deferred work goes on, and descriptors were looked at a moment ago. */
static bool loop_may_skip(struct loop *l)
{
	return !TAILQ_EMPTY(&l->tasks) && !l->virtual_now &&
	       loop_refresh(l) - l->looked < l->look_after;
}

/* Whoever says something is listened to more closely. */
static void look_rarer(struct loop *l, bool found)
{
	if (found)
		loop_listen(l);
	else if (l->look_after < LOOP_LOOK_MAX_NS)
		l->look_after *= 2;
}

/* Wait and deliver what came; 0 or -errno. */
static int loop_look(struct loop *l, bool wait)
{
	struct epoll_event ev[LOOP_EVENTS];
	nsec_t patience = loop_patience(l, wait);
	int n = loop_wait(l, ev, patience);

	if (n < 0 && errno != EINTR)
		return -errno;
	if (patience)
		l->wakeups++;
	l->looked = loop_refresh(l);
	look_rarer(l, n > 0);
	if (n > 0)
		loop_deliver(l, ev, (unsigned)n);
	return 0;
}

int loop_dispatch(struct loop *l, bool wait)
{
	if (!loop_may_skip(l)) {
		int r = loop_look(l, wait);

		if (r)
			return r;
	}
	l->rounds++;
	loop_run_timers(l);
	loop_run_tasks(l);
	return 0;
}
