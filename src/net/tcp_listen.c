/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_listen: passive opening at scale: the SYN queue of small blocks, the accept queue.
 *
 *	SYN -> struct tcp_syn (no buffers), SYN-ACK, again after 1, 2, 4, ... s
 *	    -> when the queue is full: a cookie (tcp_cookie.c), nothing kept
 *	ACK -> the connection, in ESTABLISHED, on the accept queue; if that is full the ACK is dropped:
 *	       the SYN-ACK will be sent again
 *
 * [RFC 9293 3.10.7.2, 3.10.7.4; RFC 4987; RFC 5961]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/tcp_int.h"

struct tcp_listener *tcp_listener_find(struct tcp_host *h, const struct tcp_tuple *tu)
{
	struct tcp_listener *l, *any = NULL;

	LIST_FOREACH (l, &h->listeners, q) {
		if (l->port != tu->lport)
			continue;
		if (ip_addr_equal(&l->addr, &tu->laddr))
			return l;
		if (ip_addr_any(&l->addr))
			any = l;
	}
	return any;
}

int tcp_listen(struct tcp_host *h, const struct ip_addr *addr, uint16_t port, unsigned backlog,
	void *user, struct tcp_listener **out)
{
	struct tcp_listener *l;

	if (port == 0)
		return -EINVAL;
	LIST_FOREACH (l, &h->listeners, q) {
		if (l->port == port && (ip_addr_equal(&l->addr, addr) || ip_addr_any(&l->addr) ||
					       ip_addr_any(addr)))
			return -EADDRINUSE;
	}
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->host = h;
	l->addr = *addr;
	l->port = port;
	l->backlog = backlog < 1 ? 1 : backlog;
	l->user = user;
	STAILQ_INIT(&l->accept);
	TAILQ_INIT(&l->syns);
	LIST_INSERT_HEAD(&h->listeners, l, q);
	*out = l;
	return 0;
}

void tcp_unlisten(struct tcp_listener *l, nsec_t now)
{
	struct tcp_host *h = l->host;
	struct tcp_syn *s;
	struct tcp *t;

	h->now = now;
	while ((s = TAILQ_FIRST(&l->syns)) != NULL)
		tcp_syn_free(h, s);
	while ((t = STAILQ_FIRST(&l->accept)) != NULL) {
		tcp_accept_leave(t);
		tcp_abort(t, now);
	}
	if (l->event_queued)
		STAILQ_REMOVE(&h->leventq, l, tcp_listener, eventq);
	LIST_REMOVE(l, q);
	free(l);
}

struct tcp *tcp_accept(struct tcp_listener *l)
{
	struct tcp *t = STAILQ_FIRST(&l->accept);

	if (t == NULL)
		return NULL;
	tcp_accept_leave(t);
	tcp_notify(t);
	l->host->c.accepts++;
	return t;
}

bool tcp_listener_ready(const struct tcp_listener *l)
{
	return !STAILQ_EMPTY(&l->accept);
}

void *tcp_listener_user(const struct tcp_listener *l)
{
	return l->user;
}

void tcp_accept_leave(struct tcp *t)
{
	struct tcp_listener *l = t->listener;

	if (!t->from_listener)
		return; /* then it is the user's word */
	STAILQ_REMOVE(&l->accept, t, tcp, acceptq);
	l->naccept--;
	t->from_listener = false;
	t->user = NULL;
}

/* ---- the SYN queue ---- */

static struct tcp_synq *level(struct tcp_host *h, const struct tcp_syn *s)
{
	return &h->synq[s->retries < TCP_SYN_LEVELS ? s->retries : TCP_SYN_LEVELS - 1];
}

void tcp_syn_free(struct tcp_host *h, struct tcp_syn *s)
{
	tcp_node_del(h, &s->node);
	TAILQ_REMOVE(level(h, s), s, q);
	TAILQ_REMOVE(&s->listener->syns, s, lq);
	s->listener->nsyn--;
	if (s->out)
		TAILQ_REMOVE(&h->synoutq, s, outq);
	TAILQ_INSERT_HEAD(&h->syn_free, s, q);
}

static void syn_want_out(struct tcp_host *h, struct tcp_syn *s, bool ack)
{
	if (s->out)
		return;
	s->ack = ack;
	s->out = true;
	TAILQ_INSERT_TAIL(&h->synoutq, s, outq);
}

static uint8_t offered_scale(const struct tcp_host *h)
{
	uint32_t most = h->conf.fixed_rcvbuf ? h->conf.rcvbuf : h->conf.rcvbuf_max;
	uint8_t ws = 0;

	if (h->conf.wscale != 0xff && (h->conf.wscale != 0 || h->conf.fixed_rcvbuf))
		return h->conf.wscale > 14 ? 14 : h->conf.wscale;
	while (ws < 14 && most >> ws > 65535)
		ws++;
	return ws;
}

/* What the SYN says, and what we answer. */
static void syn_fill(struct tcp_host *h, struct tcp_syn *s, const struct tcp_in *in)
{
	const struct tcp_conf *c = &h->conf;
	bool v4 = ip_addr_is4(&in->s->tuple.raddr);

	s->irs = in->seq;
	s->mss = v4 ? TCP_MSS_DEFAULT4 : TCP_MSS_DEFAULT6;
	if (in->o.mss_ok)
		s->mss = (uint16_t)u32_max(in->o.mss, TCP_MSS_MIN);
	s->ws_ok = in->o.ws_ok && !c->no_ws;
	s->ws = in->o.ws;
	s->sack_ok = in->o.sack_ok && !c->no_sack;
	s->ts_ok = in->o.ts_ok && !c->no_ts;
	s->ts_recent = in->o.tsval;
	s->ecn = (in->flags & (TCP_ECE | TCP_CWR)) == (TCP_ECE | TCP_CWR);
	s->wnd = in->s->wnd;
	s->rcv_wnd = u32_min(c->rcvbuf, 65535);
}

static uint32_t first_number(struct tcp_host *h, const struct tcp_tuple *tu)
{
	uint32_t iss = tcp_isn(h, tu);

	if (h->next_iss_set && seq_lt(iss, h->next_iss))
		iss = h->next_iss;
	h->next_iss_set = false;
	return iss;
}

static void cookie_reply(struct tcp_host *h, const struct tcp_in *in)
{
	struct tcp_syn s = {0};
	struct tcp_reply r;

	syn_fill(h, &s, in);
	r = (struct tcp_reply){
		.tuple = in->s->tuple,
		.seq = tcp_cookie_make(h, in),
		.ack = in->seq + 1,
		.tsval = tcp_cookie_ts(h, in),
		.tsecr = in->o.tsval,
		.wnd = (uint16_t)s.rcv_wnd,
		.mss = (uint16_t)tcp_mss_offer(h, &in->s->tuple, 0),
		.flags = TCP_SYN | TCP_ACK,
		.ws = offered_scale(h),
		.ts_ok = s.ts_ok,
		.ws_ok = s.ts_ok && s.ws_ok, /* only timestamps carry them back */
		.sack_ok = s.ts_ok && s.sack_ok,
	};
	h->cookie_sent = h->now;
	h->c.cookies_sent++;
	tcp_reply(h, &r);
}

static void syn_take(struct tcp_listener *l, struct tcp_in *in)
{
	struct tcp_host *h = l->host;
	struct tcp_syn *s = TAILQ_FIRST(&h->syn_free);

	if (l->naccept >= l->backlog + 1) {
		h->c.accept_full++;
		return;
	}
	if (s == NULL || l->nsyn >= 2 * l->backlog + 16 || h->conf.always_cookies) {
		if (h->conf.no_cookies)
			h->c.syn_dropped++;
		else
			cookie_reply(h, in);
		return;
	}
	TAILQ_REMOVE(&h->syn_free, s, q);
	memset(s, 0, sizeof(*s));
	syn_fill(h, s, in);
	s->iss = first_number(h, &in->s->tuple);
	s->listener = l;
	s->deadline = h->now + TCP_RTO_INIT;
	tcp_node_add(h, &s->node, TCP_NODE_SYN, &in->s->tuple);
	TAILQ_INSERT_TAIL(&h->synq[0], s, q);
	TAILQ_INSERT_TAIL(&l->syns, s, lq);
	l->nsyn++;
	h->c.syn_queued++;
	syn_want_out(h, s, false);
}

static void finish(struct tcp_host *h, const struct tcp_syn *s, struct tcp_in *in)
{
	struct tcp *t = tcp_syn_accept(h, s);

	if (t != NULL)
		tcp_in(t, in);
}

/* [RFC 9293 3.10.7.2] */
void tcp_listen_in(struct tcp_listener *l, struct tcp_in *in)
{
	struct tcp_host *h = l->host;

	if (in->flags & TCP_RST)
		return;
	if (in->flags & TCP_ACK) {
		struct tcp_syn s = {.listener = l};

		if (!(in->flags & TCP_SYN) && tcp_cookie_check(h, in, &s))
			finish(h, &s, in);
		else
			tcp_rst_for(h, in);
		return;
	}
	if (!(in->flags & TCP_SYN))
		return;
	syn_take(l, in);
}

bool tcp_syn_out(struct tcp_host *h, struct tcp_out *o)
{
	struct tcp_syn *s = TAILQ_FIRST(&h->synoutq);
	uint32_t ts_off;

	if (s == NULL)
		return false;
	TAILQ_REMOVE(&h->synoutq, s, outq);
	s->out = false;
	memset(o, 0, offsetof(struct tcp_out, frag));
	o->account = NULL;
	o->tuple = s->node.tuple;
	o->flow = s->node.flow;
	ts_off = tcp_ts_offset(h, &s->node.tuple);
	o->ack = s->irs + 1;
	o->wnd = (uint16_t)s->rcv_wnd;
	if (s->ack) {
		o->seq = s->iss + 1;
		o->flags = TCP_ACK;
		o->wnd = (uint16_t)(s->rcv_wnd >> (s->ws_ok ? offered_scale(h) : 0));
		if (s->ts_ok)
			o->opt_len =
				(uint8_t)tcp_opt_ts(o->opt, tcp_ts_now(h, ts_off), s->ts_recent);
		return true;
	}
	o->seq = s->iss;
	o->flags = (uint8_t)(TCP_SYN | TCP_ACK | (s->ecn ? TCP_ECE : 0));
	o->opt_len = (uint8_t)tcp_opt_syn(o->opt, (uint16_t)tcp_mss_offer(h, &s->node.tuple, 0),
		s->ws_ok ? offered_scale(h) : -1, s->sack_ok, s->ts_ok, tcp_ts_now(h, ts_off),
		s->ts_recent);
	s->sent = h->now;
	return true;
}

static void syn_timeout(struct tcp_host *h, struct tcp_syn *s)
{
	unsigned most = h->conf.syn_retries != 0 ? h->conf.syn_retries : 5;

	if (s->retries >= most) {
		h->c.timeouts++;
		tcp_syn_free(h, s);
		return;
	}
	TAILQ_REMOVE(level(h, s), s, q);
	s->retries++;
	s->deadline = h->now + (TCP_RTO_INIT << (s->retries < 6 ? s->retries : 6));
	TAILQ_INSERT_TAIL(level(h, s), s, q);
	syn_want_out(h, s, false);
	h->c.retrans++;
}

void tcp_syn_timer(struct tcp_host *h)
{
	struct tcp_syn *s;

	for (unsigned i = TCP_SYN_LEVELS; i-- > 0;)
		while ((s = TAILQ_FIRST(&h->synq[i])) != NULL && s->deadline <= h->now)
			syn_timeout(h, s);
}

/* ---- from the small block to a connection ---- */

struct tcp *tcp_syn_accept(struct tcp_host *h, const struct tcp_syn *s)
{
	struct tcp_listener *l = s->listener;
	struct tcp_tuple tu = s->node.tuple;
	struct tcp_syn copy = *s;
	struct tcp *t;

	if (l->naccept >= l->backlog + 1) {
		h->c.accept_full++;
		return NULL;
	}
	t = tcp_alloc(h);
	if (t == NULL)
		return NULL;
	if (s->node.hashed) {
		struct tcp_node *n = tcp_find(h, &tu);

		tcp_syn_free(h, (struct tcp_syn *)(void *)n);
	}
	t->state = TCPS_SYN_RCVD;
	t->listener = l;
	t->from_listener = true;
	t->iss = t->snd_una = copy.iss;
	t->snd_nxt = t->write_seq = copy.iss + 1;
	t->irs = copy.irs;
	t->rcv_nxt = t->last_ack_sent = copy.irs + 1;
	t->rcv_adv = t->rcv_nxt + copy.rcv_wnd;
	t->peer_mss = copy.mss;
	t->ws_ok = copy.ws_ok;
	t->snd_ws = copy.ws_ok ? copy.ws : 0;
	t->rcv_ws = copy.ws_ok ? offered_scale(h) : 0;
	t->sack_ok = copy.sack_ok;
	t->ts_ok = copy.ts_ok;
	t->ts_recent = copy.ts_recent;
	t->ts_recent_at = h->now;
	t->ts_off = tcp_ts_offset(h, &tu);
	t->ecn_ok = copy.ecn;
	t->snd_wnd = t->max_snd_wnd = copy.wnd;
	t->retries = copy.retries;
	t->last_snd = copy.sent;
	tcp_node_add(h, &t->node, TCP_NODE_CONN, &tu);
	tcp_set_mss(t);
	if (h->conf.fixed_rcvbuf)
		t->rcvbuf = (t->rcvbuf + t->mss - 1) / t->mss * t->mss;
	STAILQ_INSERT_TAIL(&l->accept, t, acceptq);
	l->naccept++;
	tcp_listener_notify(l);
	return t;
}

static void syn_challenge(struct tcp_host *h, struct tcp_syn *s)
{
	if (s->challenge != 0 && h->now - s->challenge < NSEC_PER_SEC / 20) {
		h->c.challenge_limited++;
		return;
	}
	s->challenge = h->now;
	h->c.challenge_acks++;
	syn_want_out(h, s, true);
}

/* Steps one to four for the small block. False: done with it. */
static bool syn_checks(struct tcp_host *h, struct tcp_syn *s, const struct tcp_in *in)
{
	uint32_t at = in->seq - (s->irs + 1);

	if (in->flags & TCP_RST) {
		if (at == 0) {
			h->c.rst_in++;
			tcp_syn_free(h, s);
		} else if (at < s->rcv_wnd) {
			syn_challenge(h, s);
		}
		return false;
	}
	if ((in->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && in->seq == s->irs) {
		syn_want_out(h, s, false); /* it was lost */
		return false;
	}
	if (s->ts_ok && in->o.ts_ok && (int32_t)(in->o.tsval - s->ts_recent) < 0) {
		h->c.paws_drop++;
		syn_challenge(h, s);
		return false;
	}
	if (at >= s->rcv_wnd || (in->flags & TCP_SYN)) {
		syn_challenge(h, s);
		return false;
	}
	return true;
}

void tcp_syn_in(struct tcp_host *h, struct tcp_syn *s, struct tcp_in *in)
{
	if (!syn_checks(h, s, in) || !(in->flags & TCP_ACK))
		return;
	if (in->ack != s->iss + 1) {
		tcp_rst_for(h, in);
		return;
	}
	finish(h, s, in);
}
