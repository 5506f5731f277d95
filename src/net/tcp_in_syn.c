/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp_in_syn: what an answer to our SYN does. [RFC 9293 3.10.7.3] */
#include <errno.h>

#include "net/tcp_int.h"

static bool ack_acceptable(const struct tcp *t, const struct tcp_in *in)
{
	return seq_lt(t->iss, in->ack) && seq_le(in->ack, t->snd_nxt);
}

/* First: an ACK of what was never sent is answered by a reset. */
static bool check_ack(struct tcp *t, struct tcp_in *in)
{
	if (!(in->flags & TCP_ACK) || ack_acceptable(t, in))
		return true;
	tcp_rst_for(t->host, in);
	return false;
}

/* Second: a reset counts if it acknowledges our SYN. [RFC 5961 3.2] */
static bool check_rst(struct tcp *t, struct tcp_in *in)
{
	if (!(in->flags & TCP_RST))
		return true;
	if (in->flags & TCP_ACK) {
		t->host->c.rst_in++;
		tcp_die(t, ECONNREFUSED);
	}
	return false;
}

static void take_options(struct tcp *t, const struct tcp_in *in)
{
	const struct tcp_conf *c = &t->host->conf;
	const struct tcp_opts *o = &in->o;

	if (o->mss_ok)
		t->peer_mss = (uint16_t)u32_max(o->mss, TCP_MSS_MIN);
	t->ws_ok = o->ws_ok && !c->no_ws;
	t->snd_ws = t->ws_ok ? o->ws : 0;
	if (!t->ws_ok)
		t->rcv_ws = 0;
	t->sack_ok = o->sack_ok && !c->no_sack;
	t->ts_ok = o->ts_ok && !c->no_ts;
	if (t->ts_ok) {
		t->ts_recent = o->tsval;
		t->ts_recent_at = t->host->now;
	}
	tcp_set_mss(t);
	if (c->fixed_rcvbuf) /* whole segments fit */
		t->rcvbuf = (t->rcvbuf + t->mss - 1) / t->mss * t->mss;
}

static void take_ecn(struct tcp *t, const struct tcp_in *in)
{
	uint8_t bits = in->flags & (TCP_ECE | TCP_CWR);

	if (in->flags & TCP_ACK)
		t->ecn_ok = t->ecn_tried && bits == TCP_ECE;
	else
		t->ecn_ok = bits == (TCP_ECE | TCP_CWR);
}

static void first_rtt(struct tcp *t, const struct tcp_in *in)
{
	nsec_t rtt = t->host->now - t->last_snd;

	if (t->retries == 0)
		tcp_rtt_sample(t, rtt > 0 ? rtt : 1);
	else if (t->ts_ok && in->o.tsecr != 0)
		tcp_rtt_sample(t,
			(nsec_t)(tcp_ts_now(t->host, t->ts_off) - in->o.tsecr + 1) * NSEC_PER_MSEC);
	else
		t->rto = 3 * NSEC_PER_SEC; /* [RFC 6298 5.7] */
}

/* Fourth: the peer's SYN. With our ACK in it we are established, without it both opened at once. */
void tcp_in_syn_sent(struct tcp *t, struct tcp_in *in)
{
	if (!check_ack(t, in) || !check_rst(t, in) || !(in->flags & TCP_SYN))
		return;
	t->irs = in->seq;
	t->rcv_nxt = t->rcv_adv = t->last_ack_sent = in->seq + 1;
	take_options(t, in);
	take_ecn(t, in);
	t->snd_wnd = t->max_snd_wnd = in->wnd;
	t->snd_wl1 = in->seq;
	t->snd_wl2 = in->ack;
	t->rcv_adv = t->rcv_nxt + u32_min(tcp_rcv_window(t), 65535);
	if (!(in->flags & TCP_ACK)) {
		t->need_syn = true;
		t->retries = t->backoff = 0;
		tcp_set_state(t, TCPS_SYN_RCVD);
		tcp_make_ready(t);
		in->seq++;
		tcp_in_data(t, in); /* is queued now, given when established */
		return;
	}
	first_rtt(t, in);
	t->snd_una = in->ack;
	tcp_established(t);
	tcp_timer_rtx(t);
	t->ack_now = true;
	in->seq++;
	in->flags &= (uint8_t)~TCP_SYN;
	tcp_in_data(t, in);
	tcp_in_fin(t, in);
	tcp_push_check(t);
	tcp_make_ready(t);
}
