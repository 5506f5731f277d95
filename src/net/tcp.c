/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp: the life of a connection: states, how it is established, how it ends, TIME-WAIT, resets.
 * [RFC 9293 3.3.2, 3.5, 3.10.7.1]
 */
#include <errno.h>
#include <string.h>

#include "net/siphash.h"
#include "net/tcp_int.h"

void tcp_set_state(struct tcp *t, enum tcp_state s)
{
	t->state = (uint8_t)s;
	tcp_notify(t);
}

uint32_t tcp_mss_offer(const struct tcp_host *h, const struct tcp_tuple *tu, uint32_t mtu)
{
	uint32_t hdrs = tcp_ip_hdr(tu) + TCP_HDR;

	if (mtu == 0)
		mtu = h->conf.mtu;
	if (mtu > 65535)
		mtu = 65535;
	return mtu > hdrs + 8 ? mtu - hdrs : 8; /* a payload is never below 8 bytes */
}

void tcp_set_mss(struct tcp *t)
{
	uint32_t mss = u32_min(t->peer_mss, tcp_mss_offer(t->host, &t->node.tuple, t->mtu));

	if (t->user_mss != 0)
		mss = u32_min(mss, t->user_mss);
	mss = u32_max(mss, 20);
	if (t->ts_ok)
		mss -= TCP_TS_OPT;
	t->mss = mss;
}

/* The three-way handshake is done: RTT, congestion window and everybody who waits. */
void tcp_established(struct tcp *t)
{
	struct tcp_host *h = t->host;

	tcp_set_mss(t);
	tcp_cc_init(t);
	t->retries = t->backoff = 0;
	t->need_syn = false;
	t->rcv_ssthresh = u32_min(t->rcvbuf, 65535);
	t->rcvq_at = h->now;
	t->rcvq_seq = t->rcv_nxt;
	t->rcvq_space = u32_min(t->rcvbuf, 10 * t->mss);
	t->rtt_seq = t->rcv_nxt + 1;
	t->rtt_at = h->now;
	t->last_rcv = h->now;
	t->pushed_seq = t->snd_una;
	t->snd_sml = t->snd_una;
	if (t->rcv_mss == 0)
		t->rcv_mss = u32_min(t->mss, TCP_MSS_DEFAULT4);
	if (t->keepalive)
		tcp_timer_keep(t, h->now + t->keepidle * NSEC_PER_SEC);
	tcp_set_state(t, TCPS_ESTABLISHED);
}

/*
 * To CLOSED. The block stays until the output loop meets it if nobody owns it, so that whoever is in
 * the middle of a step may go on looking at it.
 */
void tcp_die(struct tcp *t, int err)
{
	struct tcp_host *h = t->host;

	if (t->state == TCPS_CLOSED && !t->node.hashed)
		return;
	if (err != 0) {
		t->error = err;
		if (t->state == TCPS_SYN_SENT || t->state == TCPS_SYN_RCVD)
			h->c.attempt_fails++;
		else
			h->c.est_resets++;
	}
	tcp_timer_off(t);
	tcp_node_del(h, &t->node);
	tcp_txq_free(t);
	t->need_syn = t->ack_now = t->probe_now = t->keep_now = false;
	if (t->from_listener) {
		tcp_accept_leave(t);
		t->orphan = true;
	}
	tcp_set_state(t, TCPS_CLOSED);
	tcp_make_ready(t);
}

void tcp_enter_timewait(struct tcp *t)
{
	struct tcp_host *h = t->host;
	struct tcp_tw *w = TAILQ_FIRST(&h->tw_free);

	if (w == NULL) { /* the oldest has waited longest */
		tcp_tw_free(h, TAILQ_FIRST(&h->twq));
		h->c.tw_evicted++;
		w = TAILQ_FIRST(&h->tw_free);
	}
	TAILQ_REMOVE(&h->tw_free, w, q);
	memset(w, 0, sizeof(*w));
	w->snd_nxt = t->snd_nxt;
	w->rcv_nxt = t->rcv_nxt;
	w->rcv_wnd = u32_max(tcp_rcv_window(t), t->rcv_adv - t->rcv_nxt);
	w->wnd = (uint16_t)u32_min(w->rcv_wnd >> t->rcv_ws, 65535);
	w->ts_ok = t->ts_ok;
	w->ts_recent = t->ts_recent;
	w->ts_off = t->ts_off;
	w->expires = h->now + h->conf.timewait;
	tcp_timer_off(t);
	tcp_node_del(h, &t->node);
	tcp_txq_free(t);
	tcp_node_add(h, &w->node, TCP_NODE_TW, &t->node.tuple);
	TAILQ_INSERT_TAIL(&h->twq, w, q);
	h->c.tw_made++;
	tcp_set_state(t, TCPS_TIME_WAIT);
	tcp_make_ready(t);
}

/* Ten at once, then two a second, per connection: no counter that strangers share. [RFC 5961 7] */
bool tcp_challenge_ok(struct tcp *t)
{
	struct tcp_host *h = t->host;
	nsec_t each = NSEC_PER_SEC / 2;

	if (h->now - t->challenge_at >= each && t->challenge_n > 0) {
		nsec_t back = (h->now - t->challenge_at) / each;

		t->challenge_n = back >= t->challenge_n ? 0 : (uint8_t)(t->challenge_n - back);
		t->challenge_at = h->now;
	}
	if (t->challenge_n >= 10) {
		h->c.challenge_limited++;
		return false;
	}
	if (t->challenge_n++ == 0)
		t->challenge_at = h->now;
	return true;
}

void tcp_challenge(struct tcp *t)
{
	if (!tcp_challenge_ok(t))
		return;
	t->host->c.challenge_acks++;
	t->ack_now = true;
	tcp_make_ready(t);
}

void tcp_send_rst(struct tcp *t)
{
	struct tcp_reply r = {
		.tuple = t->node.tuple,
		.seq = t->snd_nxt,
		.ack = t->rcv_nxt,
		.flags = TCP_RST | TCP_ACK,
		.ts_ok = t->ts_ok,
		.tsval = tcp_ts_now(t->host, t->ts_off),
		.tsecr = t->ts_recent,
	};

	tcp_reply(t->host, &r);
}

/*
 * Of each of so many shares of the sources: who floods leaves those of other shares theirs. Who has an address
 * in somebody's share can see when that is used up; which address that is he has to find by trying.
 */
static bool rst_may(struct tcp_host *h, const struct ip_addr *to)
{
	unsigned i = siphash(h->conf.secret + 16, to, sizeof(*to)) % TCP_RST_BUCKETS;

	if (bucket_take(&h->rst[i], TCP_RST_BURST, TCP_RST_REFILL, &h->rand, h->now))
		return true;
	h->c.rst_limited++;
	return false;
}

/* To a segment that belongs to nothing. [RFC 9293 3.5.2, 3.10.7.1] */
void tcp_rst_for(struct tcp_host *h, const struct tcp_in *in)
{
	struct tcp_reply r = {.tuple = in->s->tuple, .flags = TCP_RST};

	if ((in->flags & TCP_RST) || !rst_may(h, &r.tuple.raddr))
		return;
	if (in->flags & TCP_ACK) {
		r.seq = in->ack;
	} else {
		r.flags |= TCP_ACK;
		r.ack = in->seq + in->len + !!(in->flags & TCP_SYN) + !!(in->flags & TCP_FIN);
	}
	tcp_reply(h, &r);
}
