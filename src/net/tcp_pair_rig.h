/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_pair_rig: two engines and a link between them in virtual time, for tests. The link has a delay, a
 * rate with a queue, and loses, reorders, doubles by seed: whole super-segments ("super") or the wire
 * segments in them one by one. Packets are real ones: they hold the sender's chunks and complete its
 * account when they have left.
 */
#ifndef NET_TCP_PAIR_RIG_H
#define NET_TCP_PAIR_RIG_H

#include "net/tcp_rig.h"

#define PAIR_PERIOD 65521u /* a prime: no power of two of bytes is the same place */

struct pair_pkt {
	TAILQ_ENTRY(pair_pkt) q;
	nsec_t at, leaves;
	struct pkt *pkt, *held; /* what flies; what the account waits for until it has left */
	struct tcp_out o;
	uint64_t drop; /* wire segments that are lost, by bit; all: the unit is */
	bool ce;
};
TAILQ_HEAD(pair_list, pair_pkt);

struct pair_link {
	nsec_t delay, jitter;        /* one way; jitter reorders */
	uint64_t rate;               /* bytes/s, 0: none */
	uint32_t limit;              /* bytes of queue; 0: none */
	unsigned loss, dup, reorder; /* of 10000 */
	nsec_t reorder_by;
	bool super;
	bool far; /* its queue is somewhere on the way: what was sent has left at once */
	bool (*drop)(void *, const struct tcp_out *, uint32_t seq); /* chosen victims */
	void *drop_arg;
	nsec_t free_at; /* the queue is empty then */
};

struct pair_app {
	struct tcp *t;
	struct tcp_listener *l;
	uint64_t to_send, sent, got, expect;
	uint32_t write_size;
	bool closed, eof, failed;
};

struct pair {
	struct rig_host host[2];
	struct pair_link link[2]; /* [i]: from host i */
	struct pair_app app[2];
	struct pair_list flying, free;
	struct pair_pkt *all;
	struct rand rnd;
	uint8_t pattern[PAIR_PERIOD];
	nsec_t now;
	uint64_t dropped, delivered, units, events;
	bool trace, check, left;
};

static inline void pair_init(struct pair *p, struct tcp_conf conf[2], uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	for (unsigned i = 0; i < 2; i++) {
		conf[i].seed = seed + i;
		conf[i].secret[0] = (uint8_t)(seed + 3 * i);
		rig_host_init(&p->host[i], &conf[i], 64 << 20);
	}
	TAILQ_INIT(&p->flying);
	TAILQ_INIT(&p->free);
	p->all = calloc(8192, sizeof(*p->all));
	for (unsigned i = 0; i < 8192; i++)
		TAILQ_INSERT_TAIL(&p->free, &p->all[i], q);
	rand_init(&p->rnd, seed);
	for (unsigned i = 0; i < PAIR_PERIOD; i++)
		p->pattern[i] = (uint8_t)rand_u64(&p->rnd);
	p->now = NSEC_PER_SEC;
	p->trace = getenv("TRACE") != NULL;
}

static inline void pair_drop_all(struct pair *p)
{
	struct pair_pkt *k;

	while ((k = TAILQ_FIRST(&p->flying)) != NULL) {
		TAILQ_REMOVE(&p->flying, k, q);
		pkt_free(k->pkt);
		pkt_free(k->held);
		TAILQ_INSERT_TAIL(&p->free, k, q);
	}
}

static inline void pair_fini(struct pair *p)
{
	pair_drop_all(p);
	for (unsigned i = 0; i < 2; i++) {
		if (p->app[i].t != NULL)
			tcp_abort(p->app[i].t, p->now);
		if (p->app[i].l != NULL)
			tcp_unlisten(p->app[i].l, p->now);
		rig_host_fini(&p->host[i]);
	}
	free(p->all);
}

static inline void pair_fly(struct pair *p, struct pair_pkt *k, nsec_t at)
{
	struct pair_pkt *after = TAILQ_LAST(&p->flying, pair_list);

	k->at = at;
	while (after != NULL && after->at > at)
		after = TAILQ_PREV(after, pair_list, q);
	if (after != NULL)
		TAILQ_INSERT_AFTER(&p->flying, after, k, q);
	else
		TAILQ_INSERT_HEAD(&p->flying, k, q);
}

static inline unsigned pair_segs(const struct tcp_out *o)
{
	return o->gso_size != 0 ? (o->len + o->gso_size - 1) / o->gso_size : 1;
}

static inline void pair_losses(struct pair *p, struct pair_link *l, struct pair_pkt *k)
{
	unsigned n = pair_segs(&k->o);

	k->drop = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t seq = k->o.seq + i * k->o.gso_size;
		bool lost = rand_below(&p->rnd, 10000) < l->loss ||
			    (l->drop != NULL && l->drop(l->drop_arg, &k->o, seq));

		if (lost && l->super)
			k->drop = ~0ull;
		else if (lost)
			k->drop |= 1ull << i;
		if (l->super)
			break;
	}
	p->dropped +=
		(uint64_t)__builtin_popcountll(n >= 64 ? k->drop : k->drop & ((1ull << n) - 1));
}

/* Serialisation, queue, propagation. False: the queue was full. */
static inline bool pair_depart(struct pair *p, struct pair_link *l, uint32_t bytes, nsec_t *at)
{
	if (l->free_at < p->now)
		l->free_at = p->now;
	if (l->rate != 0) {
		uint64_t waiting = (uint64_t)(l->free_at - p->now) * l->rate / NSEC_PER_SEC;

		if (l->limit != 0 && waiting + bytes > l->limit)
			return false;
		l->free_at += (nsec_t)(bytes * (uint64_t)NSEC_PER_SEC / l->rate);
	}
	*at = l->free_at + l->delay;
	if (l->jitter > 0)
		*at += rand_below(&p->rnd, (uint32_t)l->jitter);
	if (l->reorder > 0 && rand_below(&p->rnd, 10000) < l->reorder)
		*at += l->reorder_by;
	return true;
}

static inline void pair_out(struct pair *p, unsigned from, struct tcp_out *o)
{
	struct pair_pkt *k = TAILQ_FIRST(&p->free);
	struct pair_link *l = &p->link[from];
	nsec_t at = p->now;

	assert_non_null(k);
	TAILQ_REMOVE(&p->free, k, q);
	k->o = *o;
	k->pkt = pkt_new(&p->host[from].pool, 64, RIG_HDR);
	assert_non_null(k->pkt);
	k->held = pkt_new(&p->host[from].pool, 64, RIG_HDR);
	assert_non_null(k->held);
	for (unsigned i = 0; i < o->nfrag; i++) {
		const struct pkt_frag *g = &o->frag[i];

		chunk_ref(g->chunk);
		assert_true(pkt_add(k->pkt, g->chunk, g->data, g->len, g->len, true));
		assert_true(pkt_add(k->held, g->chunk, g->data, g->len, g->len, true));
	}
	if (o->account != NULL)
		pkt_set_account(k->held, o->account);
	p->units++;
	pair_losses(p, l, k);
	if (!pair_depart(p, l, o->len + RIG_HDR, &at)) {
		p->dropped += pair_segs(o);
		pkt_free(k->pkt);
		pkt_free(k->held);
		TAILQ_INSERT_HEAD(&p->free, k, q);
		return;
	}
	k->leaves = l->far ? p->now : l->free_at;
	k->ce = false;
	pair_fly(p, k, at);
	if (p->trace)
		printf("%12.3f us %u> %s%s%s%s %u+%u ack %u win %u gso %u%s\n",
			(double)p->now / 1e3, from, o->flags & TCP_SYN ? "S" : "",
			o->flags & TCP_FIN ? "F" : "", o->flags & TCP_RST ? "R" : "",
			o->flags & TCP_PSH ? "P" : "", o->seq, o->len, o->ack, o->wnd, o->gso_size,
			k->drop ? " LOST" : "");
}

static inline void pair_deliver_one(struct pair *p, unsigned to, struct pair_pkt *k,
	const struct frame *f, uint32_t at, uint32_t len)
{
	const struct tcp_out *o = &k->o;
	struct tcp_seg s = {.seq = o->seq + at,
		.ack = o->ack,
		.wnd = o->wnd,
		.flags = o->flags,
		.ecn = o->ecn,
		.opt = o->opt,
		.opt_len = o->opt_len,
		.frame = f,
		.off = RIG_HDR + at,
		.len = len};

	s.tuple.laddr = o->tuple.raddr;
	s.tuple.raddr = o->tuple.laddr;
	s.tuple.lport = o->tuple.rport;
	s.tuple.rport = o->tuple.lport;
	if (at + len < o->len)
		s.flags &= (uint8_t) ~(TCP_PSH | TCP_FIN);
	if (at > 0)
		s.flags &= (uint8_t)~TCP_CWR;
	if (len > o->gso_size)
		s.gso_size = o->gso_size;
	tcp_host_in(p->host[to].h, &s, p->now);
	p->delivered++;
}

static inline void pair_deliver(struct pair *p, struct pair_pkt *k)
{
	unsigned to = k->pkt->pool == &p->host[0].pool, n = pair_segs(&k->o);
	struct frame f;
	struct frame_head head;
	struct iovec iov[4 * PKT_FRAGS];

	assert_true(pkt_lend(k->pkt, &f, &head, iov, 4 * PKT_FRAGS));
	if (k->drop == 0) {
		pair_deliver_one(p, to, k, &f, 0, k->o.len);
	} else if (k->drop != ~0ull) {
		for (unsigned i = 0; i < n; i++) {
			uint32_t at = i * k->o.gso_size;

			if (!(k->drop >> i & 1))
				pair_deliver_one(p, to, k, &f, at,
					n == 1 ? k->o.len : u32_min(k->o.gso_size, k->o.len - at));
		}
	}
	if (rand_below(&p->rnd, 10000) < p->link[!to].dup && k->drop == 0)
		pair_deliver_one(p, to, k, &f, 0, k->o.len);
	pkt_free(k->pkt);
	pkt_free(k->held);
	TAILQ_INSERT_HEAD(&p->free, k, q);
}

/* Packets that have left are complete; when the next does. */
static inline nsec_t pair_leave(struct pair *p)
{
	nsec_t next = NSEC_NEVER;
	struct pair_pkt *k;

	TAILQ_FOREACH (k, &p->flying, q) {
		if (k->held == NULL)
			continue;
		if (k->leaves > p->now) {
			next = k->leaves < next ? k->leaves : next;
			continue;
		}
		pkt_free(k->held);
		k->held = NULL;
		p->left = true;
	}
	return next;
}

/* `n` bytes of the stream of `who` from `at`; compares or fills. */
static inline bool pair_bytes(
	struct pair *p, unsigned who, uint64_t at, uint8_t *b, size_t n, bool fill)
{
	for (size_t done = 0; done < n;) {
		size_t off = (size_t)((at + done + who * 7) % PAIR_PERIOD),
		       some = PAIR_PERIOD - off;

		if (some > n - done)
			some = n - done;
		if (fill)
			memcpy(b + done, p->pattern + off, some);
		else if (memcmp(b + done, p->pattern + off, some) != 0)
			return false;
		done += some;
	}
	return true;
}

static inline void pair_write(struct pair *p, unsigned i)
{
	struct pair_app *a = &p->app[i];
	static uint8_t buf[65536];

	while (a->t != NULL && a->sent < a->to_send) {
		uint32_t n = a->write_size != 0 ? a->write_size : sizeof(buf);
		ssize_t k;

		if (n > a->to_send - a->sent)
			n = (uint32_t)(a->to_send - a->sent);
		pair_bytes(p, i, a->sent, buf, n, true);
		k = tcp_send(a->t, &(struct iovec){buf, n}, 1, 0, p->now);
		if (k <= 0)
			return;
		a->sent += (uint64_t)k;
	}
	if (a->t != NULL && a->sent == a->to_send && !a->closed &&
		tcp_shutdown_wr(a->t, p->now) == 0)
		a->closed = true;
}

static inline void pair_read(struct pair *p, unsigned i)
{
	struct pair_app *a = &p->app[i];
	static uint8_t buf[65536];
	ssize_t k;

	while (a->t != NULL && !a->eof &&
		(k = tcp_recv(a->t, &(struct iovec){buf, sizeof(buf)}, 1, 0, p->now)) >= 0) {
		if (k == 0) {
			a->eof = true;
			a->failed |= tcp_error(a->t) != 0;
			return;
		}
		if (!pair_bytes(p, !i, a->got, buf, (size_t)k, false))
			fail_msg("host %u: wrong bytes after %llu", i, (unsigned long long)a->got);
		a->got += (uint64_t)k;
	}
}

static inline void pair_pump(struct pair *p)
{
	for (bool again = true; again;) {
		again = false;
		for (unsigned i = 0; i < 2; i++) {
			struct tcp_out o;
			struct tcp_event e;

			while (tcp_host_event(p->host[i].h, &e)) {
				again = true;
				if (e.listener != NULL && p->app[i].t == NULL)
					p->app[i].t = tcp_accept(e.listener);
				if (e.tcp != NULL && e.ready & TCP_EV_ERROR)
					p->app[i].failed = true;
			}
			pair_read(p, i);
			pair_write(p, i);
			while (tcp_host_out(p->host[i].h, &o, p->now)) {
				again = true;
				pair_out(p, i, &o);
			}
			if (p->check)
				rig_check(p->host[i].h);
		}
	}
}

/* Until both have all, or `limit` of virtual time has passed. */
static inline bool pair_done(const struct pair *p)
{
	return p->app[0].eof && p->app[1].eof && p->app[0].closed && p->app[1].closed;
}

static inline bool pair_run(struct pair *p, nsec_t limit)
{
	nsec_t end = p->now + limit;

	pair_pump(p);
	while (p->now < end && !pair_done(p) && !p->app[0].failed && !p->app[1].failed) {
		struct pair_pkt *k = TAILQ_FIRST(&p->flying);
		nsec_t at = k != NULL ? k->at : NSEC_NEVER, leave = pair_leave(p);

		if (p->left) { /* whoever waited for that sends first */
			p->left = false;
			pair_pump(p);
			continue;
		}
		at = leave < at ? leave : at;

		for (unsigned i = 0; i < 2; i++) {
			nsec_t d = tcp_host_deadline(p->host[i].h);

			at = d < at ? d : at;
		}
		if (at == NSEC_NEVER)
			return false;
		p->now = at > p->now ? at : p->now;
		p->events++;
		while ((k = TAILQ_FIRST(&p->flying)) != NULL && k->at <= p->now) {
			TAILQ_REMOVE(&p->flying, k, q);
			pair_deliver(p, k);
		}
		pair_leave(p);
		for (unsigned i = 0; i < 2; i++)
			if (tcp_host_deadline(p->host[i].h) <= p->now)
				tcp_host_timer(p->host[i].h, p->now);
		pair_pump(p);
	}
	return pair_done(p);
}

static inline void pair_connect(struct pair *p)
{
	struct ip_addr any = {{0}};
	struct tcp_tuple tu = {.rport = 80};

	tu.laddr = ip_addr4("\x0a\x00\x00\x01");
	tu.raddr = ip_addr4("\x0a\x00\x00\x02");
	assert_int_equal(tcp_listen(p->host[1].h, &any, 80, 8, NULL, &p->app[1].l), 0);
	p->app[0].t = tcp_new(p->host[0].h);
	assert_int_equal(tcp_connect(p->app[0].t, &tu, 0, p->now), 0);
}

#endif
