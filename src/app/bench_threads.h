/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_threads: who runs on which CPU, a thread with a loop of its own, and what passing an eventfd back
 * and forth between two CPUs costs when there is nothing else to do.
 */
#ifndef APP_BENCH_THREADS_H
#define APP_BENCH_THREADS_H

#include <pthread.h>
#include <sched.h>

#include "app/bench_hist.h"
#include "base/err.h"
#include "base/loop.h"

/* CPUs that this process may use. With two the network shares the server's, with one all share it. */
struct bench_place {
	int client, network, server;
};
int bench_place(struct bench_place *, struct err *); /* 0 or -errno */
/* Whether nobody else of the three has this CPU: only then spinning takes nothing from anybody. */
bool bench_place_own(const struct bench_place *, int cpu);

/* The calling thread runs on `cpu`; -1: where it ran before the first time. */
void bench_pin(int cpu, cpu_set_t *before);
double bench_thread_cpu(void); /* seconds that the calling thread has used */

/*
 * A thread that runs `turn` until it is told to end. From start to end the loop, and all that hangs on
 * it, are that thread's; what it leaves behind can be read after the end.
 */
struct bench_thread {
	struct loop *loop;
	void (*turn)(void *ctx); /* must return when the loop's descriptor wakes it */
	void *ctx;
	int cpu;
	double cpu_seconds; /* what it used */
	pthread_t id;
	struct loop_fd tell;
	bool told, runs;
};
int bench_thread_start(struct bench_thread *, struct err *); /* 0 or -errno */
void bench_thread_end(struct bench_thread *);                /* no effect if it does not run */

/* There and back between this thread on `here` and another one on `there`, asleep in read(2), for `time`. */
int bench_pingpong(struct bench_hist *, int here, int there, nsec_t time, struct err *);

#endif
