/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_host: what all connections of a host share: the pools, the one table of tuples, initial
 * sequence numbers, ports, the ready and event lists, and the door for segments.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/siphash.h"
#include "net/tcp_int.h"

#define PORT_FIRST  32768u /* as Linux; the range of RFC 6056 is a should */
#define PORT_COUNT  28232u
#define PORT_PROBES 2048u /* bounded work when the range is nearly used up */
#define WARM_MAX    256u  /* idle connections that keep what they will need soon again */
#define OOO_MAX     256u  /* connections with gaps at a time */

static void conf_defaults(struct tcp_conf *c)
{
#define DEFAULT(field, value) c->field = c->field ? c->field : (value)
	DEFAULT(conns, 1024);
	DEFAULT(txsegs, 4096);
	DEFAULT(rxbufs, 8192);
	DEFAULT(syns, 1024);
	DEFAULT(timewaits, TCP_TIMEWAITS);
	DEFAULT(mtu, 1500);
	DEFAULT(gso_max, 65535);
	DEFAULT(rcvbuf, 1 << 20);
	DEFAULT(sndbuf, 2 << 20);
	DEFAULT(rcvbuf_max, 16 << 20);
	DEFAULT(sndbuf_max, 4 << 20);
	DEFAULT(frag_chunk, 32768);
	DEFAULT(delack, 40 * NSEC_PER_MSEC);
	DEFAULT(rto_min, 200 * NSEC_PER_MSEC);
	DEFAULT(timewait, 60 * NSEC_PER_SEC);
	DEFAULT(finwait2, 60 * NSEC_PER_SEC);
	DEFAULT(retries, 15);
#undef DEFAULT
	if (c->rcvbuf_max < c->rcvbuf)
		c->rcvbuf_max = c->rcvbuf;
	if (c->sndbuf_max < c->sndbuf)
		c->sndbuf_max = c->sndbuf;
	if (c->gso_max > 65535)
		c->gso_max = 65535;
}

static bool host_alloc(struct tcp_host *h)
{
	const struct tcp_conf *c = &h->conf;
	uint32_t n = c->conns + c->syns + c->timewaits, buckets = 64;

	while (buckets < n)
		buckets *= 2;
	h->bucket_mask = buckets - 1;
	h->bucket = calloc(buckets, sizeof(*h->bucket));
	h->conns = calloc(c->conns, sizeof(*h->conns));
	h->txsegs = calloc(c->txsegs, sizeof(*h->txsegs));
	h->rxs = calloc(c->rxbufs, sizeof(*h->rxs));
	h->syns = calloc(c->syns, sizeof(*h->syns));
	h->tws = calloc(c->timewaits, sizeof(*h->tws));
	h->ooos = calloc(u32_min(c->conns, OOO_MAX), sizeof(*h->ooos));
	h->busys = calloc(c->conns, sizeof(*h->busys));
	h->heap = calloc(c->conns + 1, sizeof(*h->heap));
	return h->bucket && h->conns && h->txsegs && h->rxs && h->syns && h->tws && h->ooos &&
	       h->busys && h->heap;
}

static void busy_init(struct tcp_busy *b)
{
	memset(b, 0, sizeof(*b));
	TAILQ_INIT(&b->txq);
	STAILQ_INIT(&b->rxq);
	for (unsigned i = 0; i < TCP_TIMERS; i++)
		b->timer[i] = NSEC_NEVER;
}

static void host_lists(struct tcp_host *h)
{
	const struct tcp_conf *c = &h->conf;

	STAILQ_INIT(&h->conn_free);
	TAILQ_INIT(&h->txseg_free);
	STAILQ_INIT(&h->rx_free);
	TAILQ_INIT(&h->syn_free);
	for (unsigned i = 0; i < TCP_SYN_LEVELS; i++)
		TAILQ_INIT(&h->synq[i]);
	TAILQ_INIT(&h->synoutq);
	TAILQ_INIT(&h->tw_free);
	TAILQ_INIT(&h->twq);
	STAILQ_INIT(&h->ooo_free);
	LIST_INIT(&h->listeners);
	TAILQ_INIT(&h->readyq);
	STAILQ_INIT(&h->eventq);
	STAILQ_INIT(&h->leventq);
	SLIST_INIT(&h->busy_free);
	busy_init(&h->idle);
	TAILQ_INIT(&h->warmq);
	h->warm_max = WARM_MAX;
	for (uint32_t i = 0; i < c->rxbufs; i++)
		STAILQ_INSERT_TAIL(&h->rx_free, &h->rxs[i], q);
	for (uint32_t i = 0; i < c->syns; i++)
		TAILQ_INSERT_TAIL(&h->syn_free, &h->syns[i], q);
	for (uint32_t i = 0; i < c->timewaits; i++)
		TAILQ_INSERT_TAIL(&h->tw_free, &h->tws[i], q);
}

struct tcp_host *tcp_host_new(const struct tcp_conf *conf, struct err *err)
{
	struct tcp_host *h = calloc(1, sizeof(*h));

	if (h == NULL) {
		err_set(err, ENOMEM, "tcp: no memory for a host");
		return NULL;
	}
	h->conf = *conf;
	conf_defaults(&h->conf);
	if (!host_alloc(h)) {
		err_set(err, ENOMEM, "tcp: no memory for %u connections", h->conf.conns);
		tcp_host_free(h);
		return NULL;
	}
	rand_init(&h->rand, h->conf.seed);
	host_lists(h);
	page_frag_init(&h->send, h->conf.pool->chunks, h->conf.frag_chunk >= 32768 ? 3 : 0);
	return h;
}

void tcp_host_mtu(struct tcp_host *h, uint32_t mtu)
{
	h->conf.mtu = mtu;
}

static void free_all(struct tcp_host *h)
{
	struct tcp_listener *l;

	while ((l = LIST_FIRST(&h->listeners)) != NULL)
		tcp_unlisten(l, h->now);
	for (uint32_t i = 0; i < h->conn_used; i++) {
		if (h->conns[i].host == NULL)
			continue;
		h->conns[i].account.outstanding = 0;
		tcp_free(&h->conns[i]);
	}
	page_frag_fini(&h->send);
}

void tcp_host_free(struct tcp_host *h)
{
	if (h == NULL)
		return;
	if (h->send.pool != NULL)
		free_all(h);
	free(h->bucket);
	free(h->conns);
	free(h->txsegs);
	free(h->rxs);
	free(h->syns);
	free(h->tws);
	free(h->ooos);
	free(h->busys);
	free(h->heap);
	explicit_bzero(h, sizeof(*h));
	free(h);
}

/* ---- the table of tuples ---- */

static uint64_t tuple_hash(const struct tcp_host *h, const struct tcp_tuple *tu)
{
	return siphash(h->conf.secret, tu, sizeof(*tu));
}

static uint32_t flow_of(uint64_t hash)
{
	return (uint32_t)(hash >> 44);
}

_Static_assert(sizeof(struct tcp_tuple) == 36, "a tuple is hashed as bytes: no padding");

struct tcp_node *tcp_find(struct tcp_host *h, const struct tcp_tuple *tu)
{
	uint32_t hash = (uint32_t)tuple_hash(h, tu);
	struct tcp_node *n = h->bucket[hash & h->bucket_mask];

	while (n != NULL && (n->hash != hash || memcmp(&n->tuple, tu, sizeof(*tu)) != 0))
		n = n->next;
	return n;
}

void tcp_node_add(
	struct tcp_host *h, struct tcp_node *n, enum tcp_kind kind, const struct tcp_tuple *tu)
{
	uint64_t hash = tuple_hash(h, tu);
	struct tcp_node **b;

	if (&n->tuple != tu)
		n->tuple = *tu;
	n->kind = (uint8_t)kind;
	n->hash = (uint32_t)hash;
	n->flow = flow_of(hash);
	n->hashed = true;
	b = &h->bucket[n->hash & h->bucket_mask];
	n->next = *b;
	*b = n;
}

void tcp_node_del(struct tcp_host *h, struct tcp_node *n)
{
	struct tcp_node **p;

	if (!n->hashed)
		return;
	for (p = &h->bucket[n->hash & h->bucket_mask]; *p != n; p = &(*p)->next)
		;
	*p = n->next;
	n->hashed = false;
}

/* ---- numbers nobody outside can guess ---- */

/* The clock of 64 ns and a keyed hash of the tuple. [RFC 6528 3] */
uint32_t tcp_isn(struct tcp_host *h, const struct tcp_tuple *tu)
{
	return (uint32_t)(h->now / 64) + (uint32_t)siphash(h->conf.secret + 16, tu, sizeof(*tu));
}

/* [RFC 7323 7.1] */
uint32_t tcp_ts_offset(struct tcp_host *h, const struct tcp_tuple *tu)
{
	return (uint32_t)(siphash(h->conf.secret + 16, tu, sizeof(*tu)) >> 32);
}

/*
 * Per-destination hash for where to start, then upwards with a random step: neither a global counter
 * nor a long search. [RFC 6056 3.3.3]
 */
uint16_t tcp_pick_port(struct tcp_host *h, const struct tcp_tuple *to)
{
	struct tcp_tuple tu = *to;
	uint32_t at, step;

	tu.lport = 0;
	at = (uint32_t)siphash(h->conf.secret, &tu, sizeof(tu)) + (uint32_t)rand_u64(&h->rand);
	step = 1 + rand_below(&h->rand, 7);
	for (unsigned i = 0; i < PORT_PROBES; i++, at += step) {
		tu.lport = (uint16_t)(PORT_FIRST + at % PORT_COUNT);
		if (tcp_find(h, &tu) == NULL && tcp_listener_find(h, &tu) == NULL)
			return tu.lport;
	}
	return 0;
}

/* ---- pools ---- */

struct tcp_txseg *txseg_new(struct tcp_host *h)
{
	struct tcp_txseg *s = TAILQ_FIRST(&h->txseg_free);

	if (s != NULL) {
		TAILQ_REMOVE(&h->txseg_free, s, q);
	} else if (h->txseg_used < h->conf.txsegs) {
		s = &h->txsegs[h->txseg_used++];
	} else {
		h->c.snd_nobuf++;
		return NULL;
	}
	memset(s, 0, offsetof(struct tcp_txseg, frag));
	h->txseg_live++;
	return s;
}

void txseg_free(struct tcp_host *h, struct tcp_txseg *s)
{
	for (unsigned i = 0; i < s->nfrag; i++)
		chunk_put(h->conf.pool->chunks, s->frag[i].chunk);
	h->txseg_live--;
	TAILQ_INSERT_HEAD(&h->txseg_free, s, q);
}

void tcp_rx_free(struct tcp_host *h, struct tcp_rx *r)
{
	pkt_free(r->pkt);
	h->rx_live--;
	STAILQ_INSERT_HEAD(&h->rx_free, r, q);
}

/* A packet below has gone: the small-queue limit and auto-cork look again. */
static void account_done(struct pkt_account *a)
{
	struct tcp *t = (struct tcp *)((char *)a - offsetof(struct tcp, account));

	if (t->dead) {
		if (a->outstanding == 0)
			tcp_free(t);
		return;
	}
	a->waiting = false;
	t->throttled = false;
	tcp_push_check(t);
}

struct tcp_ooo *tcp_ooo_new(struct tcp_host *h)
{
	struct tcp_ooo *o = STAILQ_FIRST(&h->ooo_free);

	if (o != NULL)
		STAILQ_REMOVE_HEAD(&h->ooo_free, q);
	else if (h->ooo_used < u32_min(h->conf.conns, OOO_MAX))
		o = &h->ooos[h->ooo_used++];
	return o;
}

/* There is one for every connection; the last that was given back is in the cache. */
static void busy_take(struct tcp *t)
{
	struct tcp_host *h = t->host;
	struct tcp_busy *b = SLIST_FIRST(&h->busy_free);

	if (b != NULL)
		SLIST_REMOVE_HEAD(&h->busy_free, q);
	else
		b = &h->busys[h->busy_used++];
	busy_init(b);
	b->loss.reo_mult = 1;
	b->owner = t;
	t->busy = b;
}

static void warm_leave(struct tcp_host *h, struct tcp_busy *b)
{
	if (!b->warm)
		return;
	TAILQ_REMOVE(&h->warmq, b, warmq);
	b->warm = false;
	h->warm--;
}

static void busy_drop(struct tcp *t)
{
	warm_leave(t->host, t->busy);
	SLIST_INSERT_HEAD(&t->host->busy_free, t->busy, q);
	t->busy = &t->host->idle;
}

/* The output loop will look at it, and let it rest again if nothing came of it. */
void tcp_wake_up(struct tcp *t)
{
	if (!tcp_resting(t) || t->dead)
		return;
	busy_take(t);
	tcp_make_ready(t);
}

static bool nothing_under_way(const struct tcp *t)
{
	const struct tcp_busy *b = t->busy;

	return TAILQ_EMPTY(&b->txq) && STAILQ_EMPTY(&b->rxq) && t->ooo == NULL &&
	       t->snd_una == t->snd_nxt && !t->ack_now && b->timer[TCP_T_RTX] == NSEC_NEVER &&
	       b->timer[TCP_T_REO] == NSEC_NEVER && b->timer[TCP_T_DELACK] == NSEC_NEVER &&
	       b->timer[TCP_T_PACE] == NSEC_NEVER && b->timer[TCP_T_USER] == NSEC_NEVER;
}

/* What was learned of losses is kept: whoever met one stays awake. */
static bool nothing_learned(const struct tcp *t)
{
	const struct tcp_busy *b = t->busy;

	return t->cc.ssthresh == UINT32_MAX && b->loss.ca == TCP_CA_OPEN && !b->loss.reord_seen &&
	       !b->loss.dsack_seen && b->retrans == 0 && b->dsack_dups == 0 && b->tlp_count == 0 &&
	       b->rto_count == 0;
}

static bool may_rest(const struct tcp *t)
{
	return tcp_synced(t) && t->state != TCPS_TIME_WAIT && !t->ready && nothing_under_way(t) &&
	       nothing_learned(t);
}

/* Whoever had nothing to do longest rests, if that is still so: who has soon again pays nothing. */
void tcp_rest(struct tcp *t)
{
	struct tcp_host *h = t->host;
	struct tcp_busy *b = t->busy;

	if (tcp_resting(t) || b->warm || !may_rest(t))
		return;
	b->warm = true;
	TAILQ_INSERT_TAIL(&h->warmq, b, warmq);
	if (h->warm++ < h->warm_max)
		return;
	b = TAILQ_FIRST(&h->warmq);
	warm_leave(h, b);
	if (may_rest(b->owner))
		busy_drop(b->owner);
}

static struct tcp *conn_take(struct tcp_host *h)
{
	struct tcp *t = STAILQ_FIRST(&h->conn_free);

	if (t != NULL)
		STAILQ_REMOVE_HEAD(&h->conn_free, acceptq);
	else if (h->conn_used < h->conf.conns)
		t = &h->conns[h->conn_used++];
	return t;
}

struct tcp *tcp_alloc(struct tcp_host *h)
{
	struct tcp *t = conn_take(h);

	if (t == NULL && tcp_press(h, TCP_POOL_CONNS, NULL))
		t = conn_take(h);
	if (t == NULL) {
		h->c.no_conn_room++;
		return NULL;
	}
	memset(t, 0, sizeof(*t));
	t->host = h;
	t->busy = &h->idle;
	busy_take(t);
	h->live++;
	t->account.done = account_done;
	t->sndbuf = h->conf.sndbuf;
	t->rcvbuf = h->conf.rcvbuf;
	t->rcv_fixed = h->conf.fixed_rcvbuf;
	t->ratio = 128;
	t->keepidle = 7200;
	t->keepintvl = 75;
	t->keepcnt = 9;
	t->quickacks = TCP_QUICKACKS;
	t->rto = TCP_RTO_INIT;
	t->challenge_n = 0;
	t->keep_at = NSEC_NEVER;
	return t;
}

static void free_queues(struct tcp *t)
{
	struct tcp_host *h = t->host;
	struct tcp_rx *r;

	tcp_txq_free(t);
	while ((r = STAILQ_FIRST(&t->busy->rxq)) != NULL) {
		STAILQ_REMOVE_HEAD(&t->busy->rxq, q);
		tcp_rx_free(h, r);
	}
	if (t->ooo == NULL)
		return;
	while ((r = STAILQ_FIRST(&t->ooo->rx)) != NULL) {
		STAILQ_REMOVE_HEAD(&t->ooo->rx, q);
		tcp_rx_free(h, r);
	}
	STAILQ_INSERT_HEAD(&h->ooo_free, t->ooo, q);
	t->ooo = NULL;
}

void tcp_free(struct tcp *t)
{
	struct tcp_host *h = t->host;

	free_queues(t);
	tcp_timer_off(t);
	tcp_node_del(h, &t->node);
	tcp_accept_leave(t);
	if (t->ready)
		TAILQ_REMOVE(&h->readyq, t, readyq);
	if (t->event_queued)
		STAILQ_REMOVE(&h->eventq, t, tcp, eventq);
	t->ready = t->event_queued = false;
	t->dead = true;
	if (t->account.outstanding > 0) { /* packets below point here */
		t->account.waiting = true;
		return;
	}
	if (!tcp_resting(t))
		busy_drop(t);
	t->host = NULL;
	h->live--;
	STAILQ_INSERT_HEAD(&h->conn_free, t, acceptq);
}

/* ---- lists towards the stack and the sockets ---- */

void tcp_make_ready(struct tcp *t)
{
	if (t->ready || t->dead)
		return;
	t->ready = true;
	TAILQ_INSERT_TAIL(&t->host->readyq, t, readyq);
}

void tcp_notify(struct tcp *t)
{
	if (t->event_queued || t->orphan || t->dead || t->from_listener)
		return;
	t->event_queued = true;
	STAILQ_INSERT_TAIL(&t->host->eventq, t, eventq);
}

void tcp_listener_notify(struct tcp_listener *l)
{
	if (l->event_queued)
		return;
	l->event_queued = true;
	STAILQ_INSERT_TAIL(&l->host->leventq, l, eventq);
}

bool tcp_host_event(struct tcp_host *h, struct tcp_event *e)
{
	struct tcp *t;
	struct tcp_listener *l = STAILQ_FIRST(&h->leventq);

	*e = (struct tcp_event){0};
	if (l != NULL) {
		STAILQ_REMOVE_HEAD(&h->leventq, eventq);
		l->event_queued = false;
		e->listener = l;
		return true;
	}
	while ((t = STAILQ_FIRST(&h->eventq)) != NULL) {
		unsigned ready = tcp_ready(t), old = t->ev_last;

		STAILQ_REMOVE_HEAD(&h->eventq, eventq);
		t->event_queued = false;
		t->ev_last = (uint8_t)ready;
		if ((ready & ~(old & ~TCP_EV_READABLE)) == 0)
			continue; /* nothing new; readable is told for all new data */
		e->tcp = t;
		e->ready = ready;
		return true;
	}
	return false;
}

void tcp_reply(struct tcp_host *h, const struct tcp_reply *r)
{
	if (h->reply_n == TCP_REPLIES) {
		h->c.reply_dropped++;
		return;
	}
	h->reply[(h->reply_head + h->reply_n++) % TCP_REPLIES] = *r;
}

static bool reply_out(struct tcp_host *h, struct tcp_out *o)
{
	const struct tcp_reply *r = &h->reply[h->reply_head];

	if (h->reply_n == 0)
		return false;
	memset(o, 0, offsetof(struct tcp_out, frag));
	o->account = NULL;
	o->tuple = r->tuple;
	o->seq = r->seq;
	o->ack = r->ack;
	o->wnd = r->wnd;
	o->flags = r->flags;
	if (r->flags & TCP_SYN)
		o->opt_len = (uint8_t)tcp_opt_syn(o->opt, r->mss, r->ws_ok ? r->ws : -1, r->sack_ok,
			r->ts_ok, r->tsval, r->tsecr);
	else if (r->ts_ok)
		o->opt_len = (uint8_t)tcp_opt_ts(o->opt, r->tsval, r->tsecr);
	o->flow = flow_of(tuple_hash(h, &r->tuple));
	h->reply_head = (h->reply_head + 1) % TCP_REPLIES;
	h->reply_n--;
	if (r->flags & TCP_RST)
		h->c.rst_sent++;
	return true;
}

bool tcp_host_out(struct tcp_host *h, struct tcp_out *o, nsec_t now)
{
	struct tcp *t;

	h->now = now;
	if (reply_out(h, o) || tcp_syn_out(h, o)) {
		h->c.out_segs++;
		return true;
	}
	while ((t = TAILQ_FIRST(&h->readyq)) != NULL) {
		TAILQ_REMOVE(&h->readyq, t, readyq);
		t->ready = false;
		if (!tcp_out_next(t, o)) {
			if ((t->state == TCPS_CLOSED || t->state == TCPS_TIME_WAIT) && t->orphan)
				tcp_free(t);
			else
				tcp_rest(t);
			continue;
		}
		tcp_make_ready(t); /* behind the others */
		h->c.out_segs++;
		return true;
	}
	return false;
}

/* ---- the door ---- */

static bool in_refuse(struct tcp_host *h, const struct tcp_seg *s)
{
	const struct tcp_tuple *tu = &s->tuple;

	if (ip_addr_multicast(&tu->laddr) || ip_addr_multicast(&tu->raddr) ||
		ip_addr_any(&tu->raddr) || tu->lport == 0 || tu->rport == 0) {
		h->c.in_bad_addr++;
		return true;
	}
	if (tu->lport == tu->rport && ip_addr_equal(&tu->laddr, &tu->raddr)) {
		struct tcp_node *n = tcp_find(h, tu); /* LAND, unless we connect to ourselves */

		if (n == NULL || n->kind != TCP_NODE_CONN) {
			h->c.in_land++;
			return true;
		}
	}
	return false;
}

static void in_unknown(struct tcp_host *h, struct tcp_in *in)
{
	struct tcp_listener *l = tcp_listener_find(h, &in->s->tuple);

	if (l != NULL) {
		tcp_listen_in(l, in);
		return;
	}
	h->c.in_no_conn++;
	tcp_rst_for(h, in);
}

static void in_conn(struct tcp *t, struct tcp_in *in)
{
	tcp_in(t, in);
	tcp_rest(t);
}

void tcp_host_in(struct tcp_host *h, const struct tcp_seg *s, nsec_t now)
{
	struct tcp_in in = {.s = s, .seq = s->seq, .ack = s->ack, .off = s->off, .len = s->len};
	struct tcp_node *n;

	h->now = now;
	h->c.in_segs++;
	if (in_refuse(h, s) || (h->conf.drop_synfin && !(~s->flags & (TCP_SYN | TCP_FIN))))
		return;
	in.flags = s->flags;
	in.wnd = s->wnd;
	if (!tcp_opt_parse(s->opt, s->opt_len, &in.o)) {
		h->c.in_bad_opt++;
		return;
	}
	n = tcp_find(h, &s->tuple);
	if (n == NULL)
		in_unknown(h, &in);
	else if (n->kind == TCP_NODE_CONN)
		in_conn((struct tcp *)(void *)n, &in);
	else if (n->kind == TCP_NODE_SYN)
		tcp_syn_in(h, (struct tcp_syn *)(void *)n, &in);
	else if (tcp_tw_in(h, (struct tcp_tw *)(void *)n, &in))
		in_unknown(h, &in);
}
