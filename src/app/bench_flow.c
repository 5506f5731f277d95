/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow: the turns of TCP sessions. A step does a bounded amount and says whether it waits for
 * its socket, has more to do, or is over.
 */
#include "app/bench_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rand.h"

#define STEP    4 /* messages of a stream in one turn: what was written is still in the cache */
#define BACKLOG 1024

static struct sock_table *socks(const struct flow *f)
{
	return f->side->host->socks;
}

/* ---- life ---- */

void flow_activate(struct flow *f)
{
	if (f->queued)
		return;
	f->queued = true;
	TAILQ_INSERT_TAIL(&f->side->active, f, active);
}

struct flow *flow_new(struct flow_side *side, int s, enum flow_next (*step)(struct flow *, nsec_t))
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->side = side;
	f->step = step;
	f->s = s;
	TAILQ_INSERT_TAIL(&side->all, f, all);
	if (s >= 0)
		sock_set_user(side->host->socks, s, f);
	flow_activate(f);
	return f;
}

static void flow_end(struct flow *f, nsec_t now)
{
	if (f->s >= 0)
		sock_close(socks(f), f->s, now);
	if (f->queued)
		TAILQ_REMOVE(&f->side->active, f, active);
	TAILQ_REMOVE(&f->side->all, f, all);
	if (f->client)
		f->side->open--;
	free(f);
}

enum flow_next flow_fail(struct flow *f, int err)
{
	f->side->failed++;
	f->side->problem = strerror(err < 0 ? -err : err);
	return FLOW_OVER;
}

static bool side_work(void *ctx, nsec_t now)
{
	struct flow_side *side = ctx;
	struct flow_list turn = TAILQ_HEAD_INITIALIZER(turn);
	struct flow *f;
	unsigned ready;
	void *user;

	while (sock_next_ready(side->host->socks, &ready, &user) >= 0)
		if (user)
			flow_activate(user);
	TAILQ_CONCAT(&turn, &side->active, active);
	while ((f = TAILQ_FIRST(&turn))) {
		enum flow_next next;

		TAILQ_REMOVE(&turn, f, active);
		f->queued = false;
		next = f->step(f, now);
		if (next == FLOW_MORE)
			flow_activate(f);
		else if (next == FLOW_OVER)
			flow_end(f, now);
	}
	return !TAILQ_EMPTY(&side->active);
}

void flow_side_wake(struct flow_side *side)
{
	struct flow *f;

	TAILQ_FOREACH (f, &side->all, all)
		flow_activate(f);
	bench_host_kick(side->host);
}

static int side_init(struct flow_side *side, struct bench_host *h, struct err *err)
{
	struct rand r;

	memset(side, 0, sizeof(*side));
	side->host = h;
	TAILQ_INIT(&side->all);
	TAILQ_INIT(&side->active);
	side->pattern = malloc(BENCH_PATTERN + BENCH_MESSAGE + 8);
	side->room = malloc(BENCH_MESSAGE);
	if (!side->pattern || !side->room) {
		flow_side_fini(side);
		return err_set(err, ENOMEM, "no memory");
	}
	rand_init(&r, 1);
	for (unsigned i = 0; i < BENCH_PATTERN; i += 8) {
		const uint64_t x = rand_u64(&r);

		memcpy(side->pattern + i, &x, 8);
	}
	for (unsigned i = BENCH_PATTERN; i < BENCH_PATTERN + BENCH_MESSAGE; i++)
		side->pattern[i] = side->pattern[i - BENCH_PATTERN];
	memset(side->room, 0, BENCH_MESSAGE);
	h->work = side_work;
	h->ctx = side;
	return 0;
}

void flow_side_fini(struct flow_side *side)
{
	struct flow *f;

	flow_zero_fini(side);
	while ((f = TAILQ_FIRST(&side->all)))
		flow_end(f, loop_now(side->host->loop));
	free(side->pattern);
	free(side->room);
	side->pattern = side->room = NULL;
	side->host->work = NULL;
}

/* ---- bytes ---- */

/* What is left of the head, then up to `want` bytes of the pattern. Those of the pattern, or -errno. */
static ssize_t put(struct flow *f, uint64_t want, nsec_t now)
{
	const uint32_t max = f->side->c.message;
	const unsigned head = f->client ? FLOW_HEAD - f->head_at : 0;
	const struct iovec v[2] = {{f->head + f->head_at, head},
		{f->side->pattern + f->sent % BENCH_PATTERN, want < max ? want : max}};
	const bool zero = f->side->loan && !head;
	ssize_t n =
		zero ? flow_zero_send(f, want < max ? want : max, now)
		     : sock_send(socks(f), f->s, head ? v : v + 1, head ? 2 : 1, 0, NULL, 0, now);

	if (n < 0)
		return n;
	if (n < (ssize_t)head) {
		f->head_at += (unsigned)n;
		return -EAGAIN;
	}
	f->head_at += head;
	n -= head;
	f->sent += (uint64_t)n;
	f->side->sent += (uint64_t)n;
	return n;
}

/* Up to `want` bytes, compared. 0: the other side has ended. */
static ssize_t take(struct flow *f, uint64_t want, nsec_t now)
{
	struct flow_side *side = f->side;
	const uint32_t max = side->c.message;
	const struct iovec v = {side->room, want < max ? want : max};
	const ssize_t n = sock_recv(socks(f), f->s, &v, 1, 0, NULL, now);

	if (n <= 0)
		return n;
	if (memcmp(side->room, side->pattern + f->got % BENCH_PATTERN, (size_t)n) != 0)
		side->wrong++;
	if (!f->got && !f->client)
		f->asked = now; /* of a server's: the beginning */
	f->got += (uint64_t)n;
	side->bytes += (uint64_t)n;
	if (!side->first)
		side->first = now;
	side->last = now;
	return n;
}

static enum flow_next wait_or_fail(struct flow *f, ssize_t n)
{
	return n == -EAGAIN ? FLOW_WAIT : flow_fail(f, (int)n);
}

/* 0: the head is complete; else what to return. */
static int take_head(struct flow *f, unsigned len, nsec_t now)
{
	while (f->head_at < len) {
		const struct iovec v = {f->head + f->head_at, len - f->head_at};
		const ssize_t n = sock_recv(socks(f), f->s, &v, 1, 0, NULL, now);

		if (n <= 0)
			return n ? (int)n : -EPIPE;
		f->head_at += (unsigned)n;
	}
	return 0;
}

/* ---- the server ---- */

static enum flow_next serve_sink(struct flow *f, nsec_t now)
{
	uint8_t report[FLOW_HEAD] = {0};
	ssize_t n;

	for (unsigned i = 0; i < STEP; i++) {
		n = take(f, UINT64_MAX, now);
		if (!n)
			break;
		if (n < 0)
			return wait_or_fail(f, n);
	}
	if (n)
		return FLOW_MORE;
	put_be32(report, BENCH_MAGIC);
	put_be32(report + 4, (uint32_t)f->side->wrong);
	flow_put64(report + 8, f->got);
	flow_put64(report + 16, (uint64_t)(f->got ? now - f->asked : 0));
	sock_send(socks(f), f->s, &(struct iovec){report, FLOW_HEAD}, 1, 0, NULL, 0, now);
	return FLOW_OVER;
}

static enum flow_next serve_source(struct flow *f, nsec_t now)
{
	uint8_t byte;
	ssize_t n = sock_recv(socks(f), f->s, &(struct iovec){&byte, 1}, 1, 0, NULL, now);

	if (n == 0)
		return FLOW_OVER;
	if (n != -EAGAIN)
		return flow_fail(f, n > 0 ? -EPROTO : (int)n);
	for (unsigned i = 0; i < STEP && !f->ending; i++) {
		n = put(f, f->limit ? f->limit - f->sent : UINT64_MAX, now);
		if (n < 0)
			return wait_or_fail(f, n);
		f->ending = f->limit && f->sent == f->limit;
	}
	if (!f->ending)
		return FLOW_MORE;
	sock_shutdown(socks(f), f->s, SHUT_WR, now);
	return FLOW_WAIT;
}

/* Requests in, responses out, as long as it goes. */
static enum flow_next serve_rr(struct flow *f, nsec_t now)
{
	ssize_t n;

	for (unsigned i = 0; i < 64; i++) {
		while (f->asking) {
			n = take(f, f->asking, now);
			if (n <= 0)
				return n ? wait_or_fail(f, n) : FLOW_OVER;
			f->asking -= (uint64_t)n;
		}
		while (f->answering) {
			n = put(f, f->answering, now);
			if (n < 0)
				return wait_or_fail(f, n);
			f->answering -= (uint64_t)n;
		}
		f->side->exchanges++;
		if (f->kind == FLOW_CRR)
			return FLOW_OVER;
		f->asking = f->request;
		f->answering = f->response;
	}
	return FLOW_MORE;
}

static enum flow_next serve_head(struct flow *f, nsec_t now)
{
	const int r = take_head(f, FLOW_HEAD, now);

	if (r)
		return wait_or_fail(f, r);
	f->kind = (enum flow_kind)get_be32(f->head + 4);
	f->request = get_be32(f->head + 8);
	f->response = get_be32(f->head + 12);
	f->limit = flow_get64(f->head + 16);
	f->asking = f->request;
	f->answering = f->response;
	if (get_be32(f->head) != BENCH_MAGIC || f->kind < FLOW_SINK || f->kind > FLOW_CRR ||
		(f->kind >= FLOW_RR && (!f->request || !f->response)))
		return flow_fail(f, EPROTO);
	f->step = f->kind == FLOW_SINK     ? serve_sink
		  : f->kind == FLOW_SOURCE ? serve_source
					   : serve_rr;
	return f->step(f, now);
}

static enum flow_next serve_discard(struct flow *f, nsec_t now)
{
	const struct iovec v = {f->side->room, BENCH_MESSAGE};
	const ssize_t n = sock_recv(socks(f), f->s, &v, 1, 0, NULL, now);

	if (n <= 0)
		return n ? wait_or_fail(f, n) : FLOW_OVER;
	f->side->bytes += (uint64_t)n;
	return FLOW_MORE;
}

/* What cannot be sent back now stays unread. */
static enum flow_next serve_echo(struct flow *f, nsec_t now)
{
	const struct iovec v = {f->side->room, BENCH_PATTERN};
	ssize_t n = sock_recv(socks(f), f->s, &v, 1, SOCK_PEEK, NULL, now);

	if (n <= 0)
		return n ? wait_or_fail(f, n) : FLOW_OVER;
	n = sock_send(
		socks(f), f->s, &(struct iovec){f->side->room, (size_t)n}, 1, 0, NULL, 0, now);
	if (n < 0)
		return wait_or_fail(f, n);
	sock_recv(socks(f), f->s, &(struct iovec){f->side->room, (size_t)n}, 1, 0, NULL, now);
	f->side->bytes += (uint64_t)n;
	return FLOW_MORE;
}

/* A listener: its id is the port. */
static enum flow_next serve_accept(struct flow *f, nsec_t now)
{
	int s;

	while ((s = sock_accept(socks(f), f->s, NULL, now)) >= 0) {
		struct flow *n = flow_new(f->side, s,
			f->id == BENCH_ECHO      ? serve_echo
			: f->id == BENCH_DISCARD ? serve_discard
						 : serve_head);

		if (!n)
			sock_close(socks(f), s, now);
	}
	return FLOW_WAIT;
}

static int listen_on(struct flow_side *side, uint16_t port, struct err *err)
{
	struct sock_table *t = side->host->socks;
	const int s = sock_open(t, SOCK_KIND_TCP);
	struct flow *f;
	int r = s < 0 ? s : sock_bind(t, s, &(struct udp_addr){.port = port});

	if (!r && side->c.rcvbuf)
		r = sock_set(t, s, SOCKO_RCVBUF, side->c.rcvbuf, 0);
	if (!r && side->c.sndbuf)
		r = sock_set(t, s, SOCKO_SNDBUF, side->c.sndbuf, 0);
	if (!r)
		r = sock_listen(t, s, BACKLOG);
	f = r ? NULL : flow_new(side, s, serve_accept);
	if (!f)
		return err_set(err, r ? -r : ENOMEM, "bench: cannot listen on port %u", port);
	f->id = port;
	return 0;
}

int flow_server_init(
	struct flow_side *side, struct bench_host *h, const struct flow_config *c, struct err *err)
{
	static const uint16_t ports[] = {BENCH_PORT, BENCH_ECHO, BENCH_DISCARD};
	enum flow_next (*const udp[])(struct flow *, nsec_t) = {
		flow_udp_serve, flow_udp_echo, flow_udp_discard};
	int r = side_init(side, h, err);

	if (r)
		return r;
	side->c.message = BENCH_MESSAGE / 8;
	side->c.sndbuf = c->sndbuf;
	side->c.rcvbuf = c->rcvbuf;
	for (unsigned i = 0; i < 3 && !r; i++) {
		r = listen_on(side, ports[i], err);
		if (!r)
			r = flow_open_udp(side, ports[i], udp[i], err);
	}
	if (r)
		flow_side_fini(side);
	return r;
}

/* ---- the client ---- */

static enum flow_next client_report(struct flow *f, nsec_t now)
{
	const int r = take_head(f, FLOW_HEAD, now);

	if (r)
		return wait_or_fail(f, r);
	f->side->wrong += get_be32(f->head + 4);
	f->side->bytes += flow_get64(f->head + 8);
	f->side->last = now;
	if (get_be32(f->head) != BENCH_MAGIC || flow_get64(f->head + 8) != f->sent)
		return flow_fail(f, EPROTO);
	return FLOW_OVER;
}

static enum flow_next client_sink(struct flow *f, nsec_t now)
{
	for (unsigned i = 0; i < STEP && !f->side->stop && f->sent < f->limit; i++) {
		const ssize_t n = put(f, f->limit - f->sent, now);

		if (n < 0)
			return wait_or_fail(f, n);
	}
	if (!f->side->stop && f->sent < f->limit)
		return FLOW_MORE;
	sock_shutdown(socks(f), f->s, SHUT_WR, now);
	f->head_at = 0;
	f->step = client_report;
	return FLOW_MORE;
}

static enum flow_next client_source(struct flow *f, nsec_t now)
{
	ssize_t n = f->head_at < FLOW_HEAD ? put(f, 0, now) : 0;

	if (n < 0)
		return wait_or_fail(f, n);
	if (f->side->stop && !f->ending) {
		sock_shutdown(socks(f), f->s, SHUT_WR, now);
		f->ending = true;
	}
	for (unsigned i = 0; i < STEP; i++) {
		n = take(f, UINT64_MAX, now);
		if (n < 0)
			return wait_or_fail(f, n);
		if (!n)
			return f->side->c.bytes && f->got != f->side->c.bytes ? flow_fail(f, EPROTO)
									      : FLOW_OVER;
	}
	return FLOW_MORE;
}

static enum flow_next client_open(struct flow *f, nsec_t now);

/* 0: the exchange is complete; else -errno. */
static int client_exchange(struct flow *f, nsec_t now)
{
	ssize_t n;

	while (f->asking) {
		n = put(f, f->asking, now);
		if (n < 0)
			return (int)n;
		f->asking -= (uint64_t)n;
	}
	while (f->answering) {
		n = take(f, f->answering, now);
		if (n <= 0)
			return n ? (int)n : -EPIPE;
		f->answering -= (uint64_t)n;
	}
	return 0;
}

static bool client_done(const struct flow *f)
{
	return f->side->stop || (f->side->c.bytes && f->side->exchanges >= f->side->c.bytes);
}

static enum flow_next client_rr(struct flow *f, nsec_t now)
{
	const int r = client_exchange(f, now);

	if (r)
		return wait_or_fail(f, r);
	now = clock_now();
	bench_hist_add(&f->side->hist, now - f->asked);
	f->side->exchanges++;
	if (client_done(f))
		return FLOW_OVER;
	f->asked = now;
	f->asking = f->request;
	f->answering = f->response;
	return FLOW_MORE;
}

/* The server closes first: its end is part of the exchange. */
static enum flow_next client_crr(struct flow *f, nsec_t now)
{
	int r = client_exchange(f, now);

	if (!r)
		r = (int)take(f, 1, now);
	if (r == -EAGAIN)
		return FLOW_WAIT;
	if (r)
		flow_fail(f, r < 0 ? r : -EPROTO);
	sock_close(socks(f), f->s, now);
	f->s = -1;
	if (!r) {
		bench_hist_add(&f->side->hist, clock_now() - f->asked);
		f->side->exchanges++;
	}
	f->step = client_open;
	return client_done(f) ? FLOW_OVER : FLOW_MORE;
}

static enum flow_next client_connected(struct flow *f, nsec_t now)
{
	const int ready = sock_ready(socks(f), f->s);
	int err = 0;

	if (ready & SOCK_ERR) {
		sock_get(socks(f), f->s, SOCKO_ERROR, &err);
		flow_fail(f, err);
		if (f->kind != FLOW_CRR || f->side->stop)
			return FLOW_OVER;
		sock_close(socks(f), f->s, now);
		f->s = -1;
		f->step = client_open;
		return FLOW_MORE;
	}
	if (!(ready & SOCK_OUT))
		return FLOW_WAIT;
	if (!f->connected)
		f->side->connected++;
	f->connected = true;
	f->step = f->kind == FLOW_SINK     ? client_sink
		  : f->kind == FLOW_SOURCE ? client_source
		  : f->kind == FLOW_RR     ? client_rr
					   : client_crr;
	if (f->kind != FLOW_CRR)
		f->asked = clock_now();
	return f->step(f, now);
}

static void client_head(struct flow *f)
{
	put_be32(f->head, BENCH_MAGIC);
	put_be32(f->head + 4, f->kind);
	put_be32(f->head + 8, f->request);
	put_be32(f->head + 12, f->response);
	flow_put64(f->head + 16, f->kind == FLOW_SOURCE ? f->side->c.bytes : 0);
	f->head_at = 0;
	f->sent = f->got = 0;
	f->asking = f->request;
	f->answering = f->response;
}

static enum flow_next client_open(struct flow *f, nsec_t now)
{
	struct flow_side *side = f->side;
	int r;

	f->s = sock_open(socks(f), SOCK_KIND_TCP);
	if (f->s < 0)
		return flow_fail(f, f->s);
	sock_set_user(socks(f), f->s, f);
	if (side->c.sndbuf)
		sock_set(socks(f), f->s, SOCKO_SNDBUF, side->c.sndbuf, now);
	if (side->c.rcvbuf)
		sock_set(socks(f), f->s, SOCKO_RCVBUF, side->c.rcvbuf, now);
	if (f->kind >= FLOW_RR)
		sock_set(socks(f), f->s, SOCKO_NODELAY, 1, now);
	client_head(f);
	f->asked = clock_now();
	f->step = client_connected;
	r = sock_connect(socks(f), f->s, &side->c.server, now);
	if (r == -EINPROGRESS)
		return FLOW_WAIT;
	flow_fail(f, r);
	if (f->kind != FLOW_CRR || side->stop)
		return FLOW_OVER;
	sock_close(socks(f), f->s, now); /* no port was free: again */
	f->s = -1;
	f->step = client_open;
	return FLOW_MORE;
}

int flow_client_init(
	struct flow_side *side, struct bench_host *h, const struct flow_config *c, struct err *err)
{
	int r = side_init(side, h, err);

	if (r)
		return r;
	side->c = *c;
	if (c->zero && flow_zero_init(side))
		r = err_set(err, ENOMEM, "no memory for what is sent without a copy");
	for (unsigned i = 0; i < c->sessions && !r; i++) {
		struct flow *f;

		if (c->kind >= FLOW_UDP) {
			r = flow_open_udp(
				side, 0, c->kind == FLOW_UDP ? flow_udp_send : flow_udp_ask, err);
			f = r ? NULL : TAILQ_LAST(&side->all, flow_list);
		} else {
			f = flow_new(side, -1, client_open);
		}
		if (!f) {
			r = r ? r : err_set(err, ENOMEM, "no memory");
			break;
		}
		f->client = true;
		f->kind = c->kind;
		f->request = c->request;
		f->response = c->response;
		f->limit = c->bytes ? c->bytes : UINT64_MAX;
		side->open++;
	}
	if (r)
		flow_side_fini(side);
	else
		bench_host_kick(h);
	return r;
}
