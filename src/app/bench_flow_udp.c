/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow_udp: the turns of UDP flows. What was sent and what came are counted apart: nothing is
 * repeated but the question for the report.
 */
#include "app/bench_flow.h"

#include <errno.h>
#include <string.h>

#define STEP       64                    /* datagrams, or trains, in one turn */
#define TRAIN_MAX  128                   /* datagrams of one send */
#define AGAIN      (50 * NSEC_PER_MSEC)  /* until the report is asked for again */
#define LOST       (200 * NSEC_PER_MSEC) /* after which a response does not come */
#define ASKS       40
#define REPORT_LEN 48

enum { UDP_DATA = 1, UDP_ASK, UDP_REPORT };

static struct sock_table *socks(const struct flow *f)
{
	return f->side->host->socks;
}

int flow_open_udp(struct flow_side *side, uint16_t port,
	enum flow_next (*step)(struct flow *, nsec_t), struct err *err)
{
	struct sock_table *t = side->host->socks;
	const int s = sock_open(t, SOCK_KIND_UDP);
	struct flow *f;
	int r = s < 0 ? s : sock_bind(t, s, &(struct udp_addr){.port = port});

	/* in one burst of the driver more may come than the default holds */
	if (!r)
		sock_set(t, s, SOCKO_RCVBUF, side->c.rcvbuf ? side->c.rcvbuf : 2 << 20, 0);
	if (!r && side->c.sndbuf)
		r = sock_set(t, s, SOCKO_SNDBUF, side->c.sndbuf, 0);
	if (!r && port == BENCH_PORT)
		r = sock_set(t, s, SOCKO_UDP_GRO, 1, 0);
	f = r ? NULL : flow_new(side, s, step);
	if (!f)
		return err_set(err, r ? -r : ENOMEM, "bench: no UDP socket on port %u: %s", port,
			strerror(r ? -r : ENOMEM));
	f->id = (uint32_t)(uintptr_t)f ^ (uint32_t)clock_now();
	return 0;
}

/* ---- the server ---- */

static struct flow_count *count_of(struct flow_side *side, uint32_t id)
{
	struct flow_count *c = &side->count[id % FLOW_COUNTS];

	if (c->id != id)
		*c = (struct flow_count){.id = id};
	return c;
}

static void count_data(struct flow *f, const uint8_t *p, uint32_t len, nsec_t now)
{
	struct flow_side *side = f->side;
	struct flow_count *c = count_of(side, get_be32(p + 4));
	const uint64_t from = flow_get64(p + 8) * len;

	if (memcmp(p + FLOW_UDP_HEAD, side->pattern + from % BENCH_PATTERN, len - FLOW_UDP_HEAD) !=
		0) {
		c->wrong++;
		side->wrong++;
	}
	if (!c->packets)
		c->first = now;
	c->last = now;
	c->packets++;
	c->bytes += len;
	side->packets++;
	side->bytes += len;
	if (!side->first)
		side->first = now;
	side->last = now;
}

static void report(struct flow *f, const uint8_t *ask, const struct udp_addr *to, nsec_t now)
{
	const uint32_t id = get_be32(ask + 4);
	const struct flow_count *c = count_of(f->side, id);
	uint8_t out[REPORT_LEN];

	put_be32(out, BENCH_MAGIC + UDP_REPORT);
	put_be32(out + 4, id);
	flow_put64(out + 8, c->packets);
	flow_put64(out + 16, c->bytes);
	flow_put64(out + 24, (uint64_t)(c->last - c->first));
	flow_put64(out + 32, c->wrong);
	memcpy(out + 40, ask + 8, 8);
	sock_send(socks(f), f->s, &(struct iovec){out, sizeof(out)}, 1, 0, to, 0, now);
}

enum flow_next flow_udp_serve(struct flow *f, nsec_t now)
{
	const struct iovec v = {f->side->room, BENCH_MESSAGE};
	struct udp_info info;

	for (unsigned i = 0; i < STEP; i++) {
		const ssize_t n = sock_recv(socks(f), f->s, &v, 1, 0, &info, now);
		uint32_t len, each;

		if (n == -EAGAIN)
			return FLOW_WAIT;
		each = n > 0 && info.gso_size ? info.gso_size : (uint32_t)n;
		for (uint32_t at = 0; n > 0 && at < (uint32_t)n; at += each) {
			const uint8_t *p = f->side->room + at;

			len = (uint32_t)n - at < each ? (uint32_t)n - at : each;
			if (len < FLOW_UDP_HEAD)
				continue;
			if (get_be32(p) == BENCH_MAGIC + UDP_DATA)
				count_data(f, p, len, now);
			else if (get_be32(p) == BENCH_MAGIC + UDP_ASK)
				report(f, p, &info.from, now);
		}
	}
	return FLOW_MORE;
}

enum flow_next flow_udp_echo(struct flow *f, nsec_t now)
{
	const struct iovec v = {f->side->room, BENCH_MESSAGE};
	struct udp_info info;

	for (unsigned i = 0; i < STEP; i++) {
		const ssize_t n = sock_recv(socks(f), f->s, &v, 1, 0, &info, now);

		if (n == -EAGAIN)
			return FLOW_WAIT;
		if (n < 0)
			continue;
		f->side->exchanges++;
		f->side->bytes += (uint64_t)n;
		sock_send(socks(f), f->s, &(struct iovec){f->side->room, (size_t)n}, 1, 0,
			&info.from, 0, now);
	}
	return FLOW_MORE;
}

enum flow_next flow_udp_discard(struct flow *f, nsec_t now)
{
	const struct iovec v = {f->side->room, BENCH_MESSAGE};

	for (unsigned i = 0; i < STEP; i++)
		if (sock_recv(socks(f), f->s, &v, 1, 0, NULL, now) == -EAGAIN)
			return FLOW_WAIT;
	return FLOW_MORE;
}

/* ---- the client ---- */

static void take_report(struct flow *f, const uint8_t *p)
{
	struct flow_side *side = f->side;

	side->packets += flow_get64(p + 8);
	side->bytes += flow_get64(p + 16);
	side->wrong += flow_get64(p + 32);
	f->ending = true;
}

/* Ask for the report until it is there: one that answers this, not a copy of one from before. */
static enum flow_next client_report(struct flow *f, nsec_t now)
{
	uint8_t in[REPORT_LEN], ask[FLOW_UDP_HEAD];
	const struct iovec v = {in, sizeof(in)};

	while (!f->ending && sock_recv(socks(f), f->s, &v, 1, 0, NULL, now) == REPORT_LEN)
		if (get_be32(in) == BENCH_MAGIC + UDP_REPORT && get_be32(in + 4) == f->id &&
			flow_get64(in + 40) == f->sent)
			take_report(f, in);
	if (f->ending)
		return FLOW_OVER;
	if (now - f->asked < AGAIN)
		return FLOW_WAIT;
	if (f->answering++ == ASKS)
		return flow_fail(f, ETIMEDOUT);
	f->asked = now;
	put_be32(ask, BENCH_MAGIC + UDP_ASK);
	put_be32(ask + 4, f->id);
	flow_put64(ask + 8, f->sent);
	sock_send(socks(f), f->s, &(struct iovec){ask, sizeof(ask)}, 1, 0, &f->side->c.server, 0,
		now);
	return FLOW_WAIT;
}

/* One train, or one datagram. */
static ssize_t send_train(struct flow *f, unsigned n, nsec_t now)
{
	const struct flow_config *c = &f->side->c;
	uint8_t head[TRAIN_MAX][FLOW_UDP_HEAD];
	struct iovec v[2 * TRAIN_MAX];

	for (unsigned i = 0; i < n; i++) {
		const uint64_t seq = f->sent + i;

		put_be32(head[i], BENCH_MAGIC + UDP_DATA);
		put_be32(head[i] + 4, f->id);
		flow_put64(head[i] + 8, seq);
		v[2 * i] = (struct iovec){head[i], FLOW_UDP_HEAD};
		v[2 * i + 1] = (struct iovec){f->side->pattern + seq * c->message % BENCH_PATTERN,
			c->message - FLOW_UDP_HEAD};
	}
	return sock_send(
		socks(f), f->s, v, 2 * n, 0, &c->server, n > 1 ? (uint16_t)c->message : 0, now);
}

static enum flow_next client_send(struct flow *f, nsec_t now)
{
	struct flow_side *side = f->side;

	for (unsigned i = 0; i < STEP && !side->stop && f->sent < f->limit; i++) {
		const uint64_t left = f->limit - f->sent;
		const unsigned n = left < side->c.train ? (unsigned)left : side->c.train;
		const ssize_t r = send_train(f, n, now);

		if (r == -EAGAIN)
			return FLOW_WAIT;
		if (r < 0)
			return flow_fail(f, (int)r);
		f->sent += n;
		side->sent_packets += n;
		side->sent += (uint64_t)r;
	}
	if (!side->stop && f->sent < f->limit)
		return FLOW_MORE;
	f->step = client_report;
	f->asked = now; /* what is under way shall arrive first */
	return FLOW_WAIT;
}

/* Ask once before: the server is there, and the way to it is known. */
enum flow_next flow_udp_send(struct flow *f, nsec_t now)
{
	const enum flow_next next = client_report(f, now);

	if (next != FLOW_OVER || !f->ending)
		return next;
	f->ending = false;
	f->connected = true;
	f->answering = 0;
	f->side->connected++;
	f->step = client_send;
	return FLOW_MORE;
}

/* udp_rr, with the echo of the server. */
enum flow_next flow_udp_ask(struct flow *f, nsec_t now)
{
	struct flow_side *side = f->side;
	const struct iovec in = {side->room, BENCH_MESSAGE};
	const struct iovec out = {side->pattern + f->sent * f->request % BENCH_PATTERN, f->request};
	struct udp_addr to = side->c.server;
	ssize_t n;

	to.port = BENCH_ECHO;
	if (f->connected) {
		n = sock_recv(socks(f), f->s, &in, 1, 0, NULL, now);
		if (n == -EAGAIN && now - f->asked < LOST)
			return side->stop ? FLOW_OVER : FLOW_WAIT;
		if (n < 0 && n != -EAGAIN)
			return flow_fail(f, (int)n);
		if (n >= 0) {
			side->wrong += n != (ssize_t)f->request ||
				       memcmp(side->room, out.iov_base, (size_t)n) != 0;
			bench_hist_add(&side->hist, clock_now() - f->asked);
			side->exchanges++;
			side->bytes += (uint64_t)n;
			f->sent++;
		} else {
			side->failed++;
		}
	}
	side->connected += !f->connected;
	f->connected = true;
	if (side->stop || f->sent == f->limit)
		return FLOW_OVER;
	f->asked = clock_now();
	n = sock_send(socks(f), f->s,
		&(struct iovec){side->pattern + f->sent * f->request % BENCH_PATTERN, f->request},
		1, 0, &to, 0, now);
	return n < 0 && n != -EAGAIN ? flow_fail(f, (int)n) : FLOW_WAIT;
}
