/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flows: turns: the client's host, the network, the server's host. A turn in which nothing moved
 * lets the hosts arm from the loop and sleeps. What is counted begins before the first SYN.
 */
#include "app/bench_flows.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINK_WAIT (5 * NSEC_PER_SEC)
#define END_WAIT  (60 * NSEC_PER_SEC) /* for what is under way, also in a bad network */
#define PART      (20 * NSEC_PER_MSEC)
#define NAP       (10 * NSEC_PER_MSEC)
#define WAKE      (50 * NSEC_PER_MSEC) /* flows that wait for time */
#define SPIN      (50 * NSEC_PER_USEC) /* without anything to do before sleeping */
#define OWN_SPIN                                                                                   \
	(200 * NSEC_PER_USEC) /* the same, on a CPU of one's own: longer than a round trip */
#define POLL_US 100           /* of the network, as one with traffic does */
#define BALL    (200 * NSEC_PER_MSEC) /* of the bare ping-pong */

/* ---- set-up ---- */

static void alarm_rang(struct loop_timer *t)
{
	(void)t;
}

static bool threaded(const struct bench_flows *b)
{
	return b->config.threads == 3;
}

/* What a thread needs that others have, too. */
static int end_own(struct bench_flows_end *end, struct err *err)
{
	int r = loop_init(&end->own, err);

	if (r)
		return r;
	end->loop = &end->own;
	log_init(&end->log, LOG_WARN, NULL, NULL);
	if (loop_timer_reserve(end->loop, &end->alarm, alarm_rang))
		return err_set(err, ENOMEM, "no memory");
	return 0;
}

static void end_close(struct bench_flows_end *end)
{
	if (end->side && end->side->room)
		flow_side_fini(end->side);
	if (end->host.port)
		bench_host_fini(&end->host);
	if (end->loop == &end->own) {
		loop_timer_release(end->loop, &end->alarm);
		loop_fini(end->loop);
	}
	end->loop = NULL;
	free(end->side);
	end->side = NULL;
}

static int end_open(struct bench_flows *b, struct bench_flows_end *end, const char *name,
	const char *port, const char *addr, struct err *err)
{
	const struct bench_host_config c = {.name = name,
		.port = port,
		.addr = addr,
		.cwd = b->config.cwd,
		.net = b->config.net,
		.mtu = b->config.mtu,
		.tcp = b->config.tcp};
	int r = 0;

	end->loop = &b->net.loop;
	if (threaded(b))
		r = end_own(end, err);
	if (!r)
		end->side = calloc(1, sizeof(*end->side));
	if (!r && !end->side)
		r = err_set(err, ENOMEM, "no memory");
	if (!r)
		r = bench_host_init(
			&end->host, &c, end->loop, threaded(b) ? &end->log : &b->net.log, err);
	if (r)
		end_close(end);
	return r;
}

/* A port of the network that is here, and the host on its other side. */
static int end_pair(struct bench_flows *b, struct bench_flows_end *end, const char *name,
	const char *addr, const char *impair, struct err *err)
{
	const struct bench_flows_config *c = &b->config;
	const char *words = end == &b->client && c->port ? c->port : "";
	const size_t size = strlen(c->knobs) + strlen(impair) + strlen(words) + 160;
	char *text = malloc(size);
	int r;

	if (!text)
		return err_set(err, ENOMEM, "no memory");
	snprintf(text, size, "vhost-user:%s/%s.sock,mtu=%u%s%s%s", b->dir, name, c->mtu,
		*impair ? ",impair=" : "", impair, words);
	r = net_add(&b->net, text, "/", err);
	if (!r) {
		snprintf(text, size, "virtio-user:%s/%s.sock,mtu=%u%s", b->dir, name, c->mtu,
			c->knobs);
		r = end_open(b, end, name, text, addr, err);
	}
	free(text);
	return r;
}

static int ends_open(struct bench_flows *b, struct err *err)
{
	const struct bench_flows_config *c = &b->config;
	int r;

	if (c->via) {
		const bool tap = !strncmp(c->via, "tap:", 4);
		char *text = malloc(strlen(c->via) + strlen(c->knobs) + 1);

		if (!text)
			return err_set(err, ENOMEM, "no memory");
		strcpy(stpcpy(text, c->via), tap ? "" : c->knobs);
		r = c->serve ? end_open(b, &b->server, "server", text, c->addr, err)
			     : end_open(b, &b->client, "client", text, c->addr, err);
		free(text);
		return r;
	}
	strcpy(b->dir, "/tmp/weft-bench-XXXXXX");
	if (!mkdtemp(b->dir)) {
		b->dir[0] = 0;
		return err_set(err, errno, "cannot make a folder for sockets in /tmp: %s",
			strerror(errno));
	}
	r = end_pair(b, &b->client, "client", "10.99.0.1/24+fd99::1/64", c->impair, err);
	return r ? r : end_pair(b, &b->server, "server", "10.99.0.2/24+fd99::2/64", "", err);
}

int bench_flows_init(struct bench_flows *b, const struct bench_flows_config *c, struct err *err)
{
	struct net_config config;
	int r;

	memset(b, 0, sizeof(*b));
	b->config = *c;
	assert(!threaded(b) || (!c->via && !c->warm));
	r = bench_place(&b->place, err);
	if (r)
		return r;
	net_config_init(&config, "bench");
	config.poll_us = threaded(b) && !bench_place_own(&b->place, b->place.network) ? 0 : POLL_US;
	r = net_init(&b->net, &config, err);
	if (r)
		return r;
	if (loop_timer_reserve(&b->net.loop, &b->alarm, alarm_rang))
		r = err_set(err, ENOMEM, "no memory");
	if (!r)
		r = ends_open(b, err);
	if (r)
		bench_flows_fini(b);
	return r;
}

static void sockets_remove(struct bench_flows *b)
{
	static const char *const names[] = {"client", "server"};
	char path[96];

	for (unsigned i = 0; i < 2 && b->dir[0]; i++) {
		snprintf(path, sizeof(path), "%s/%s.sock", b->dir, names[i]);
		unlink(path);
	}
	if (b->dir[0])
		rmdir(b->dir);
	b->dir[0] = 0;
}

void bench_flows_fini(struct bench_flows *b)
{
	bench_thread_end(&b->server_thread);
	bench_thread_end(&b->network_thread);
	end_close(&b->client);
	end_close(&b->server);
	loop_timer_release(&b->net.loop, &b->alarm);
	net_fini(&b->net);
	sockets_remove(b);
}

/* ---- turns ---- */

/* Both hosts arm, and the loop sleeps until something comes, but not beyond `until`. */
static void turn_idle(struct bench_flows *b, nsec_t until)
{
	struct loop *l = &b->net.loop;
	const nsec_t nap = loop_now(l) + NAP;

	loop_timer_set(l, &b->alarm, until < nap ? until : nap);
	if (b->client.side)
		bench_host_kick(&b->client.host);
	if (b->server.side)
		bench_host_kick(&b->server.host);
	loop_dispatch(l, false);
	loop_dispatch(l, true);
}

/* One host on its own thread: it looks at its rings, then sleeps, or sleeps at once. */
static void end_turn(struct bench_flows_end *end, nsec_t until)
{
	struct loop *l = end->loop;
	nsec_t now = loop_refresh(l);

	if (end->spin && bench_host_poll(&end->host))
		end->moved = now;
	if (now - end->moved >= end->spin) {
		if (until != NSEC_NEVER)
			loop_timer_set(l, &end->alarm, until < now + NAP ? until : now + NAP);
		if (end->spin) {
			bench_host_kick(&end->host);
			loop_dispatch(l, false);
		}
		loop_dispatch(l, true);
	} else if (now - l->looked > LOOP_LOOK_NS) {
		loop_dispatch(l, false);
	}
}

static void client_wake(struct bench_flows *b)
{
	const nsec_t now = loop_now(b->client.loop);

	if (now - b->woken <= WAKE)
		return;
	b->woken = now;
	flow_side_wake(b->client.side);
}

static void turn(struct bench_flows *b, nsec_t until)
{
	bool moved = false;

	if (threaded(b)) {
		end_turn(&b->client, until);
		client_wake(b);
		return;
	}
	if (b->client.side)
		moved = bench_host_poll(&b->client.host);
	loop_dispatch(&b->net.loop, false);
	if (b->server.side)
		moved |= bench_host_poll(&b->server.host);
	if (moved)
		b->moved = loop_now(&b->net.loop);
	else if (loop_now(&b->net.loop) - b->moved > SPIN)
		turn_idle(b, until);
	if (b->client.side)
		client_wake(b);
}

/* ---- three threads ---- */

static void network_turn(void *ctx)
{
	struct bench_flows *b = ctx;

	loop_dispatch(&b->net.loop, true);
}

static void server_turn(void *ctx)
{
	struct bench_flows *b = ctx;

	end_turn(&b->server, NSEC_NEVER);
}

static nsec_t spin(const struct bench_flows *b, int cpu)
{
	return bench_place_own(&b->place, cpu) ? OWN_SPIN : 0;
}

static int threads_start(struct bench_flows *b, struct err *err)
{
	int r;

	b->client.spin = spin(b, b->place.client);
	b->server.spin = spin(b, b->place.server);
	b->network_thread = (struct bench_thread){
		.loop = &b->net.loop, .turn = network_turn, .ctx = b, .cpu = b->place.network};
	b->server_thread = (struct bench_thread){
		.loop = b->server.loop, .turn = server_turn, .ctx = b, .cpu = b->place.server};
	b->client_cpu = bench_thread_cpu();
	r = bench_thread_start(&b->network_thread, err);
	return r ? r : bench_thread_start(&b->server_thread, err);
}

static void threads_end(struct bench_flows *b)
{
	bench_thread_end(&b->server_thread);
	bench_thread_end(&b->network_thread);
	b->client_cpu = bench_thread_cpu() - b->client_cpu;
}

/* ---- the run ---- */

static struct bench_host *missing(struct bench_flows *b)
{
	if (b->client.side && !b->client.host.port->link)
		return &b->client.host;
	return b->server.side && !b->server.host.port->link ? &b->server.host : NULL;
}

/* Before there are threads: a round of each loop, when one of them has something to do. */
static void links_turn(struct bench_flows *b)
{
	struct loop *l[] = {b->client.loop, &b->net.loop, b->server.loop};
	struct pollfd fd[3];

	for (unsigned i = 0; i < 3; i++)
		fd[i] = (struct pollfd){l[i]->epfd, POLLIN, 0};
	poll(fd, 3, 1);
	for (unsigned i = 0; i < 3; i++)
		loop_dispatch(l[i], false);
}

static int links_wait(struct bench_flows *b, struct err *err)
{
	struct loop *l = &b->net.loop;
	const nsec_t until = loop_refresh(l) + LINK_WAIT;
	struct bench_host *h;

	while ((h = missing(b))) {
		if (loop_now(l) > until)
			return err_set(err, ETIMEDOUT, "no link at %s after 5 s: %s", h->spec.name,
				bench_host_missing(h));
		if (threaded(b)) {
			links_turn(b);
			continue;
		}
		loop_timer_set(l, &b->alarm, loop_now(l) + NAP);
		loop_dispatch(l, true);
	}
	sockets_remove(b);
	return 0;
}

static void since(void *now, const void *before, size_t size)
{
	for (size_t i = 0; i < size / sizeof(uint64_t); i++)
		((uint64_t *)now)[i] -= ((const uint64_t *)before)[i];
}

static void end_count(struct bench_flows_end *end, bool begin)
{
	struct driver_count drv = {0};
	struct tcp_counters tcp;
	struct stack_counters stack;

	if (!end->side)
		return;
	if (end->host.nic)
		driver_count_take(&drv, end->host.port);
	tcp = *tcp_host_counters(stack_tcp(end->host.stack));
	stack = *stack_counters(end->host.stack);
	if (!begin) {
		driver_count_since(&drv, &end->drv);
		since(&tcp, &end->tcp, sizeof(tcp));
		since(&stack, &end->stack, sizeof(stack));
	}
	end->drv = drv;
	end->tcp = tcp;
	end->stack = stack;
}

static double cpu_now(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Where bytes arrive, or are told that they did. */
static const struct flow_side *receiver(const struct bench_flows *b)
{
	const enum flow_kind k = b->config.flow.kind;

	if (b->client.side && (k == FLOW_SOURCE || !b->server.side))
		return b->client.side;
	return b->server.side;
}

static void count_begin(struct bench_flows *b)
{
	b->cpu = cpu_now();
	b->begun = loop_refresh(&b->net.loop);
	end_count(&b->client, true);
	end_count(&b->server, true);
}

static void client_warm(struct bench_flows *b)
{
	const struct bench_flows_config *c = &b->config;
	const struct flow_side *side = b->client.side;
	const nsec_t until = b->begun + (c->warm_bytes ? c->time : c->warm);

	while (side->open && loop_now(&b->net.loop) < until &&
		(!c->warm_bytes || receiver(b)->bytes < c->warm_bytes))
		turn(b, until);
	b->warm_bytes = receiver(b)->bytes;
	b->warm_packets = receiver(b)->packets;
	b->warm_sent = side->sent_packets;
	b->warm_exchanges = side->exchanges;
	count_begin(b);
}

static int client_run(struct bench_flows *b, struct err *err)
{
	struct loop *l = b->client.loop;
	struct flow_side *side = b->client.side;
	nsec_t until;
	int r;

	count_begin(b);
	loop_refresh(l);
	r = threaded(b) ? threads_start(b, err) : 0;
	if (!r)
		r = flow_client_init(side, &b->client.host, &b->config.flow, err);
	if (r)
		return r;
	if (b->config.warm || b->config.warm_bytes)
		client_warm(b);
	until = b->begun + b->config.time;
	while (side->open && loop_now(l) < until)
		turn(b, until);
	side->stop = true;
	flow_side_wake(side);
	b->ended = loop_now(l);
	until = loop_now(l) + END_WAIT;
	while (side->open && loop_now(l) < until)
		turn(b, until);
	/* the last acknowledgements, or the peer would repeat its FIN to nobody */
	until = loop_now(l) + PART;
	while (loop_now(l) < until)
		turn(b, until);
	return 0;
}

/* To the last byte that arrived; of what was asked for, no longer. */
static void client_ended(struct bench_flows *b)
{
	const nsec_t last = receiver(b)->last;

	if (last > b->ended || (b->config.flow.bytes && last))
		b->ended = last;
}

static bool exchanging(const struct bench_flows *b)
{
	const enum flow_kind k = b->config.flow.kind;

	return k == FLOW_RR || k == FLOW_CRR || k == FLOW_UDP_RR;
}

/* The client, and the server if it is here, from the first SYN to the end. */
static int both_run(struct bench_flows *b, struct err *err)
{
	cpu_set_t before;
	int r = 0;

	if (threaded(b) && exchanging(b))
		r = bench_pingpong(&b->pingpong, b->place.client, b->place.server, BALL, err);
	if (r)
		return r;
	if (threaded(b))
		bench_pin(b->place.client, &before);
	r = client_run(b, err);
	if (threaded(b)) {
		threads_end(b);
		bench_pin(-1, &before);
	}
	if (!r)
		client_ended(b);
	return r;
}

int bench_flows_run(struct bench_flows *b, void (*ready)(void *ctx), void *ctx, struct err *err)
{
	int r = links_wait(b, err);

	if (!r && b->server.side)
		r = flow_server_init(b->server.side, &b->server.host, &b->config.flow, err);
	if (r)
		return r;
	if (b->client.side) {
		r = both_run(b, err);
	} else {
		b->begun = loop_refresh(&b->net.loop);
		b->cpu = cpu_now();
		ready(ctx);
		while (loop_now(&b->net.loop) - b->begun < b->config.time)
			turn(b, b->begun + b->config.time);
		b->ended = loop_now(&b->net.loop);
	}
	b->cpu = cpu_now() - b->cpu; /* with PART, mostly asleep */
	end_count(&b->client, false);
	end_count(&b->server, false);
	if (!r && b->client.side && b->client.side->open)
		r = err_set(err, ETIMEDOUT, "bench: %u of %u sessions did not end",
			b->client.side->open, b->config.flow.sessions);
	else if (!r && b->client.side && !bench_flows_bytes(b) && b->client.side->failed)
		r = err_set(err, ECONNREFUSED, "bench: nothing arrived: %s",
			b->client.side->problem ? b->client.side->problem : "no answer");
	return r;
}

uint64_t bench_flows_bytes(const struct bench_flows *b)
{
	return receiver(b)->bytes;
}

uint64_t bench_flows_wrong(const struct bench_flows *b)
{
	/* a sink's report says so, too: not twice */
	if (b->client.side && b->server.side && b->config.flow.kind == FLOW_SINK)
		return b->server.side->wrong;
	if (b->client.side && b->server.side && b->config.flow.kind == FLOW_UDP)
		return b->server.side->wrong;
	return (b->client.side ? b->client.side->wrong : 0) +
	       (b->server.side ? b->server.side->wrong : 0);
}
