/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_threads: a thread is told to end by an eventfd in its loop, so nothing is shared with it while it
 * runs.
 */
#include "app/bench_threads.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- CPUs ---- */

int bench_place(struct bench_place *p, struct err *err)
{
	int cpu[3], n = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return err_set(err, errno, "bench: which CPUs may be used: %s", strerror(errno));
	for (int i = 0; i < CPU_SETSIZE && n < 3; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	*p = (struct bench_place){
		.client = cpu[0], .network = cpu[n > 1 ? 1 : 0], .server = cpu[n - 1]};
	return 0;
}

bool bench_place_own(const struct bench_place *p, int cpu)
{
	return (p->client == cpu) + (p->network == cpu) + (p->server == cpu) == 1;
}

void bench_pin(int cpu, cpu_set_t *before)
{
	cpu_set_t set;

	if (cpu < 0) {
		sched_setaffinity(0, sizeof(*before), before);
		return;
	}
	if (before)
		sched_getaffinity(0, sizeof(*before), before);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

double bench_thread_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* ---- threads ---- */

static void on_tell(struct loop_fd *f, uint32_t events)
{
	struct bench_thread *t =
		(struct bench_thread *)((char *)f - offsetof(struct bench_thread, tell));

	(void)events;
	t->told = true;
}

static void *thread_main(void *arg)
{
	struct bench_thread *t = arg;

	bench_pin(t->cpu, NULL);
	while (!t->told)
		t->turn(t->ctx);
	t->cpu_seconds = bench_thread_cpu();
	return NULL;
}

int bench_thread_start(struct bench_thread *t, struct err *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), r;

	if (fd < 0)
		return err_set(err, errno, "bench: no eventfd: %s", strerror(errno));
	t->tell.ready = on_tell;
	t->told = false;
	r = loop_add(t->loop, &t->tell, fd, EPOLLIN);
	if (!r)
		r = -pthread_create(&t->id, NULL, thread_main, t);
	if (r) {
		loop_del(t->loop, &t->tell);
		close(fd);
		return err_set(err, -r, "bench: no thread: %s", strerror(-r));
	}
	t->runs = true;
	return 0;
}

void bench_thread_end(struct bench_thread *t)
{
	const uint64_t one = 1;
	int fd = t->tell.fd;

	if (!t->runs)
		return;
	t->runs = false;
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(t->id, NULL);
	loop_del(t->loop, &t->tell);
	close(fd);
}

/* ---- the bare round trip ---- */

#define ENOUGH 2000 /* round trips; on a busy machine it takes longer */

struct ball {
	int to, back, cpu;
};

static bool pass(int from, int to)
{
	uint64_t n;

	return read(from, &n, sizeof(n)) == sizeof(n) && write(to, &n, sizeof(n)) == sizeof(n);
}

/* 2 instead of 1: enough. */
static void *pong_main(void *arg)
{
	const struct ball *b = arg;
	uint64_t n;

	bench_pin(b->cpu, NULL);
	while (read(b->to, &n, sizeof(n)) == sizeof(n) && n == 1 &&
		write(b->back, &n, sizeof(n)) == sizeof(n))
		;
	return NULL;
}

static void ping(const struct ball *b, struct bench_hist *h, nsec_t time)
{
	nsec_t now = clock_now(), then;
	const nsec_t end = now + time;
	uint64_t n = 1;

	if (write(b->to, &n, sizeof(n)) != sizeof(n))
		return;
	while ((now < end || (h->n < ENOUGH && now < end + 9 * time)) && pass(b->back, b->to)) {
		then = now;
		now = clock_now();
		bench_hist_add(h, now - then);
	}
	n = 2;
	if (read(b->back, &n, sizeof(n)) != sizeof(n))
		return;
	n = 2;
	while (write(b->to, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

int bench_pingpong(struct bench_hist *h, int here, int there, nsec_t time, struct err *err)
{
	struct ball b = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC), there};
	cpu_set_t before;
	pthread_t id;
	int r = b.to < 0 || b.back < 0 ? errno : pthread_create(&id, NULL, pong_main, &b);

	if (!r) {
		bench_pin(here, &before);
		ping(&b, h, time);
		pthread_join(id, NULL);
		bench_pin(-1, &before);
	}
	close(b.to);
	close(b.back);
	return r ? err_set(err, r, "bench: no ping-pong: %s", strerror(r)) : 0;
}
