/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_idle: what idle connections cost. Two processes: a network with a host inside that serves, and a
 * host on a driver that connects, N connections over P ports of the server. Each of them carries one byte
 * there and one back; then all are silent, and each process tells what memory it has, from
 * /proc/self/status: anonymous and shared (the driver's buffers), before the first and after the last.
 *
 *	bench_idle [N [P]]          100000 over 8
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weft/host.h"

#define PORT   1000
#define FLYING 256 /* connects under way */
#define EVENTS 64

struct memory {
	long anon, shmem; /* KiB */
};

static struct memory memory_now(void)
{
	struct memory m = {0, 0};
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "RssAnon: %ld", &m.anon);
		sscanf(line, "RssShmem: %ld", &m.shmem);
	}
	if (f)
		fclose(f);
	return m;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "bench_idle: %s: %s\n", what, why);
	exit(1);
}

static void report(const char *who, unsigned n, struct memory was)
{
	const struct memory is = memory_now();
	const long all = is.anon + is.shmem;

	printf("%s: %u connections: %.1f MiB in all (%.1f anonymous, %.1f shared), %.1f MiB more "
	       "than without: "
	       "%.0f B each\n",
		who, n, (double)all / 1024, (double)is.anon / 1024, (double)is.shmem / 1024,
		(double)(all - was.anon - was.shmem) / 1024,
		(double)(all - was.anon - was.shmem) * 1024 / n);
	fflush(stdout);
}

/* The driver's process goes when this one has said what it has, and the other way round. */
static void meet(const int in, const int out)
{
	char c = 0;

	if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
		fail("the other process", "is gone");
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the server, inside its network ---- */

struct server {
	struct weft_net *net;
	struct weft_host *h;
	unsigned accepted, answered;
};

static void serve(struct server *v, const struct weft_event *e)
{
	char c;
	int s;

	if (e->user) { /* a listener */
		while ((s = weft_accept(v->h, e->s, NULL)) >= 0)
			v->accepted++;
		return;
	}
	if (weft_recv(v->h, e->s, &c, 1, 0) == 1 && weft_send(v->h, e->s, &c, 1, 0) == 1)
		v->answered++;
}

static void server(const char *path, unsigned n, unsigned ports, int in, int out)
{
	struct server v = {.accepted = 0};
	struct weft_event ev[EVENTS];
	char text[200], err[WEFT_ERR] = "";
	struct memory was;
	int64_t end = 0;

	if (weft_net_new(&v.net, "idle", err))
		fail("network", err);
	snprintf(text, sizeof(text), "vhost-user:%s/s", path);
	if (weft_net_add(v.net, text, err))
		fail(text, err);
	snprintf(text, sizeof(text), "server,ip=10.0.0.1/16,conns=%u", n + 8);
	if (weft_host_attach(&v.h, v.net, text, err))
		fail(text, err);
	for (unsigned i = 0; i < ports; i++) {
		const struct weft_addr a = {.port = (uint16_t)(PORT + i)};
		const int l = weft_socket(v.h, WEFT_TCP);

		if (weft_bind(v.h, l, &a) || weft_listen(v.h, l, 1024))
			fail("listen", "failed");
		weft_set_user(v.h, l, &v);
	}
	was = memory_now();
	if (write(out, "", 1) != 1)
		fail("client", "is gone");
	while (!end || now_ms() < end) {
		weft_net_dispatch(v.net, !end);
		for (int k; (k = weft_host_events(v.h, ev, EVENTS)) > 0;)
			for (int i = 0; i < k; i++)
				serve(&v, &ev[i]);
		if (!end && v.answered == n)
			end = now_ms() + 500;
	}
	report("server, with the network", v.accepted, was);
	meet(in, out);
}

/* ---- the client, on a driver ---- */

struct client {
	struct weft_host *h;
	unsigned made, up, answers, n, ports;
};

static void go_on(struct client *c)
{
	struct weft_addr a;

	weft_addr_parse(&a, "10.0.0.1:1");
	while (c->made < c->n && c->made - c->answers < FLYING) {
		const int s = weft_socket(c->h, WEFT_TCP);

		a.port = (uint16_t)(PORT + c->made % c->ports);
		if (s < 0 || weft_connect(c->h, s, &a) != -EINPROGRESS)
			fail("connect", "failed");
		c->made++;
	}
}

static void client_event(struct client *c, const struct weft_event *e)
{
	char b = 'x';

	if (e->ready & WEFT_ERR_BIT)
		fail("a connection", "failed");
	if (e->ready & WEFT_IN) {
		if (weft_recv(c->h, e->s, &b, 1, 0) == 1)
			c->answers++;
	} else if (e->ready & WEFT_OUT) {
		c->up++;
		if (weft_send(c->h, e->s, &b, 1, 0) != 1)
			fail("send", "failed");
	}
}

static void client(const char *path, unsigned n, unsigned ports, int in, int out)
{
	struct client c = {.n = n, .ports = ports};
	struct weft_event ev[EVENTS];
	char text[200], words[100], err[WEFT_ERR] = "", b;
	struct memory was;
	int64_t end = 0;

	if (read(in, &b, 1) != 1)
		fail("server", "is gone");
	snprintf(text, sizeof(text), "virtio-user:%s/s", path);
	snprintf(words, sizeof(words), "ip=10.0.0.2/16,conns=%u", n + 8);
	if (weft_host_open(&c.h, text, words, err))
		fail(text, err);
	was = memory_now();
	while (!end || now_ms() < end) {
		go_on(&c);
		weft_host_dispatch(c.h, !end);
		for (int k; (k = weft_host_events(c.h, ev, EVENTS)) > 0;)
			for (int i = 0; i < k; i++)
				client_event(&c, &ev[i]);
		if (!end && c.answers == n)
			end = now_ms() + 500;
	}
	report("client, on a driver", c.up, was);
	meet(in, out);
}

int main(int argc, char **argv)
{
	const unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	const unsigned ports = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
	char path[] = "/tmp/weft-idle-XXXXXX", sock[64];
	int there[2], back[2], status = 0;
	pid_t pid;

	if (!n || n > 200000 || !ports || ports > 64) {
		fprintf(stderr, "usage: bench_idle [CONNECTIONS [PORTS]]: 1 to 200000, 1 to 64\n");
		return 2;
	}
	if (!mkdtemp(path) || pipe(there) || pipe(back))
		fail("set-up", strerror(errno));
	pid = fork();
	if (!pid) {
		close(there[1]);
		close(back[0]);
		client(path, n, ports, there[0], back[1]);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	server(path, n, ports, back[0], there[1]);
	waitpid(pid, &status, 0);
	snprintf(sock, sizeof(sock), "%s/s", path);
	unlink(sock);
	rmdir(path);
	return status != 0;
}
