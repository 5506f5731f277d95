/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run: `weft run`, the process that is a network: claim the name, open the ports, listen for
 * control, turn the loop until told to end, and leave nothing behind. Threads are for closing only. Whatever is process-wide
 * (signals, limits, the SIGBUS guard, printing) is done here and nowhere else.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/ctl.h"
#include "base/sigbus.h"
#include "port/tap.h"

#define TIMER_SLACK_NS 1000UL

struct run {
	struct net net;
	struct ctl ctl;
	struct loop_fd signals;
	int lock;
	bool ends;
};

static void run_log(void *ctx, enum log_level level, const char *tag, const char *text)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};

	(void)ctx;
	fprintf(stderr, "weft: %s: %s: %s\n", names[level], tag, text);
}

static void run_stop(void *ctx)
{
	struct run *run = ctx;

	run->ends = true;
}

static void run_signal(struct loop_fd *f, uint32_t epoll_events)
{
	struct run *run = (struct run *)(void *)((char *)f - offsetof(struct run, signals));

	(void)epoll_events;
	run->ends = true;
}

/*
 * Every guest memory region, ring and session costs descriptors; the soft limit is often 1024. And
 * timers of 200 us, which the kernel would let slip by another 50.
 */
static void run_raise_limits(void)
{
	struct rlimit lim;

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	if (getrlimit(RLIMIT_NOFILE, &lim))
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

static int run_signals(struct run *run, struct err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP); /* its terminal went: leave nothing behind then, either */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "cannot listen for signals: %s", strerror(errno));
	run->signals.ready = run_signal;
	return loop_add(&run->net.loop, &run->signals, fd, EPOLLIN);
}

static int run_config(struct cmd_call *call, struct net_config *c)
{
	net_config_init(c, call->net_name);
	c->sink = run_log;
	if (call->opt[2])
		c->level = LOG_INFO;
	if (cmd_number(call, 0, 1000000, &c->poll_us, NET_POLL_US))
		return -EINVAL;
	return cmd_number(call, 1, 100000, &c->wait_us, WAIT_US_DEFAULT);
}

/* Where the other side of the port is. */
static void run_say_port(const struct net_port *p)
{
	const struct spec *s = &p->spec;

	if (!spec_is_tap(p->kind))
		printf("%s", s->path);
	else
		printf("interface %s%s%s", s->ifname, s->netns ? " in " : "",
			s->netns ? s->netns : "");
	if (p->kind == SPEC_VIRTIO_USER && !p->port->link)
		printf(", not served yet");
}

static void run_say_ready(const struct net *net)
{
	const struct net_port *p;
	const char *sep = ": ";

	printf("weft: network %s ready, %u port%s", net->name, net->nports,
		net->nports == 1 ? "" : "s");
	TAILQ_FOREACH (p, &net->ports, entry) {
		printf("%s%s (", sep, p->port->name);
		run_say_port(p);
		printf(")");
		sep = ", ";
	}
	printf("\n");
	fflush(stdout);
}

static int run_open(struct run *run, struct cmd_call *call)
{
	char path[RUNDIR_PATH + 16];
	int r;

	r = run_signals(run, &call->err);
	for (unsigned i = 0; !r && i < call->narg; i++)
		r = net_add(&run->net, call->arg[i], call->cwd, &call->err);
	if (r)
		return r;
	snprintf(path, sizeof(path), "%s/control", run->net.rundir);
	r = ctl_open(&run->ctl, &run->net, path, &call->err);
	run->ctl.stop = run_stop;
	run->ctl.ctx = run;
	return r;
}

/* The kernel takes some 15 ms to take an interface down, and takes several down in the same time. */
struct run_taps {
	int fd[PORTS_MAX];
	unsigned n;
};

static void *run_close_one(void *fd)
{
	close(*(int *)fd);
	return NULL;
}

/* Keep the interfaces open beyond their ports. */
static void run_keep_taps(const struct run *run, struct run_taps *taps)
{
	const struct net_port *p;

	taps->n = 0;
	TAILQ_FOREACH (p, &run->net.ports, entry) {
		int fd = spec_is_tap(p->kind) ? dup(tap_fd(p->port)) : -1;

		if (fd >= 0)
			taps->fd[taps->n++] = fd;
	}
}

static void run_close_taps(struct run_taps *taps)
{
	pthread_t thread[PORTS_MAX];
	bool there[PORTS_MAX];

	for (unsigned i = 0; i < taps->n; i++) {
		there[i] = !pthread_create(&thread[i], NULL, run_close_one, &taps->fd[i]);
		if (!there[i])
			close(taps->fd[i]);
	}
	for (unsigned i = 0; i < taps->n; i++) {
		if (there[i])
			pthread_join(thread[i], NULL);
	}
}

/* Who asked for the end is answered last: then everything is gone and the name is free. */
static void run_close(struct run *run)
{
	struct run_taps taps;
	struct net_port *p;
	int fd = run->signals.fd;

	ctl_close(&run->ctl);
	run_keep_taps(run, &taps);
	while ((p = TAILQ_FIRST(&run->net.ports)))
		net_del(&run->net, p->port->name, NULL);
	run_close_taps(&taps);
	rundir_release(run->net.rundir, run->lock);
	ctl_finish(&run->ctl);
	if (fd >= 0) {
		loop_del(&run->net.loop, &run->signals);
		close(fd);
	}
	net_fini(&run->net);
}

static int run_loop(struct run *run, struct err *err)
{
	int r = 0;

	while (!run->ends && !r)
		r = loop_dispatch(&run->net.loop, true);
	if (r)
		err_set(err, -r, "the event loop failed: %s", strerror(-r));
	return r;
}

static int run_claimed(
	struct run *run, struct cmd_call *call, const struct net_config *config, const char *dir)
{
	int r = net_init(&run->net, config, &call->err);

	if (r) {
		rundir_release(dir, run->lock);
		return r;
	}
	run->signals.fd = run->ctl.listener.fd = -1;
	ctl_open(&run->ctl, &run->net, NULL, NULL);
	r = run_open(run, call);
	if (!r) {
		run_say_ready(&run->net);
		r = run_loop(run, &call->err);
	}
	run_close(run);
	return r;
}

int word_run(struct cmd_call *call)
{
	struct run *run = calloc(1, sizeof(*run));
	struct net_config config;
	char dir[RUNDIR_PATH];
	int r = -ENOMEM;

	if (!run) {
		err_set(&call->err, ENOMEM, "no memory");
		return CMD_MISTAKE;
	}
	r = run_config(call, &config);
	if (!r)
		r = rundir_path(dir, call->net_name, false, &call->err);
	if (!r) /* a mistake in a word is told first, also if the network runs */
		r = spec_check(call->arg, call->narg,
			&(struct spec_ctx){.net = call->net_name, .rundir = dir, .cwd = call->cwd},
			&call->err);
	if (!r)
		r = rundir_claim(dir, call->net_name, &run->lock, &call->err);
	if (!r) {
		run_raise_limits();
		sigbus_install();
		r = run_claimed(run, call, &config, dir);
	}
	free(run);
	return r ? CMD_MISTAKE : CMD_DONE;
}
