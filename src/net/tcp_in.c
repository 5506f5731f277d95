/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_in: a segment of a connection that exists, taken through the steps of RFC 9293 3.10.7.4 in
 * their order, one function each; a step that returns false has ended it.
 *
 *	PAWS -> sequence number -> RST -> SYN -> ACK (tcp_in_ack.c) -> URG -> data, FIN (tcp_in_data.c)
 *
 * Blind attackers meet RFC 5961 in the RST, SYN and ACK steps.
 */
#include <errno.h>

#include "net/tcp_int.h"

#define PAWS_IDLE                                                                                  \
	(24 * 24 * 3600 * NSEC_PER_SEC) /* a timestamp so old says nothing [RFC 7323 5.5] */

static uint32_t seg_len(const struct tcp_in *in)
{
	return in->len + !!(in->flags & TCP_SYN) + !!(in->flags & TCP_FIN);
}

/* What an out-of-window segment gets: one with data always, a bare one from the budget. */
static void answer(struct tcp *t, const struct tcp_in *in)
{
	if (in->len == 0 && !tcp_challenge_ok(t)) {
		t->host->c.dup_ack_limited++;
		return;
	}
	t->ack_now = true;
	tcp_make_ready(t);
}

/* [RFC 7323 5.3 R1] Not for RST; not after so long a pause that the clock may have wrapped. */
static bool in_paws(struct tcp *t, struct tcp_in *in)
{
	if (!t->ts_ok || !in->o.ts_ok || (in->flags & TCP_RST))
		return true;
	if ((int32_t)(in->o.tsval - t->ts_recent) >= 0 ||
		t->host->now - t->ts_recent_at > PAWS_IDLE)
		return true;
	t->host->c.paws_drop++;
	answer(t, in);
	return false;
}

/* What we could take: never less than what we promised. */
static uint32_t accept_window(const struct tcp *t)
{
	uint32_t promised = seq_lt(t->rcv_nxt, t->rcv_adv) ? t->rcv_adv - t->rcv_nxt : 0;

	return t->rcv_fixed && t->rx_true == 0 ? u32_max(promised, t->rcvbuf) : promised;
}

/* The four cases of 3.10.7.4, first step. */
static bool seq_acceptable(const struct tcp *t, uint32_t seq, uint32_t len)
{
	uint32_t wnd = accept_window(t);

	if (len == 0)
		return wnd == 0 ? seq == t->rcv_nxt : seq - t->rcv_nxt < wnd;
	if (wnd == 0)
		return false;
	return seq - t->rcv_nxt < wnd || seq + len - 1 - t->rcv_nxt < wnd;
}

static void note_old_data(struct tcp *t, const struct tcp_in *in)
{
	if (in->len == 0 || !t->sack_ok || !seq_le(in->seq + in->len, t->rcv_nxt))
		return;
	if (seq_lt(in->seq, t->rcv_nxt - (1u << 30)))
		return;
	t->dsack[0] = in->seq; /* told in the next ACK [RFC 2883 4] */
	t->dsack[1] = in->seq + in->len;
	t->host->c.dup_data++;
}

static bool in_seq(struct tcp *t, struct tcp_in *in)
{
	uint32_t len = seg_len(in);

	if (seq_acceptable(t, in->seq, len))
		return true;
	if (in->flags & TCP_RST)
		return false;
	t->host->c.out_of_window++;
	/* a window of zero takes no data, but the ACK in it counts [3.10.7.4] */
	if (accept_window(t) == 0 && in->seq == t->rcv_nxt && !(in->flags & TCP_SYN)) {
		in->len = 0;
		in->flags &= (uint8_t)~TCP_FIN;
		answer(t, in);
		t->ack_now = true;
		return true;
	}
	if (in->flags & TCP_SYN) {
		tcp_challenge(t);
		return false;
	}
	note_old_data(t, in);
	answer(t, in);
	return false;
}

/* [RFC 7323 4.3] */
static void in_timestamp(struct tcp *t, const struct tcp_in *in)
{
	if (!t->ts_ok || !in->o.ts_ok || (in->flags & TCP_RST))
		return;
	if (!seq_le(in->seq, t->last_ack_sent) || (int32_t)(in->o.tsval - t->ts_recent) < 0)
		return;
	t->ts_recent = in->o.tsval;
	t->ts_recent_at = t->host->now;
}

static int rst_error(const struct tcp *t)
{
	if (t->state == TCPS_SYN_RCVD)
		return ECONNREFUSED;
	if (t->state == TCPS_CLOSE_WAIT && t->fin_queued)
		return EPIPE;
	return ECONNRESET;
}

/* Only the very next number resets; elsewhere in the window it is asked about. [RFC 5961 3.2] */
static bool in_rst(struct tcp *t, struct tcp_in *in)
{
	if (!(in->flags & TCP_RST))
		return true;
	if (in->seq != t->rcv_nxt) {
		tcp_challenge(t);
		return false;
	}
	t->host->c.rst_in++;
	tcp_die(t, rst_error(t));
	return false;
}

/* [RFC 5961 4.2] */
static bool in_syn(struct tcp *t, struct tcp_in *in)
{
	if (!(in->flags & TCP_SYN))
		return true;
	tcp_challenge(t);
	return false;
}

/*
 * Both opened at once: the peer's SYN-ACK repeats the SYN we have had, or its SYN says that ours got
 * lost. [RFC 9293 3.5, figure 8]
 */
static bool in_syn_again(struct tcp *t, struct tcp_in *in)
{
	if (t->state != TCPS_SYN_RCVD || !(in->flags & TCP_SYN) || in->seq != t->irs)
		return true;
	if (!(in->flags & TCP_ACK)) {
		if (in->flags & TCP_RST)
			return false;
		t->need_syn = true;
		tcp_make_ready(t);
		return false;
	}
	in->seq++;
	in->flags &= (uint8_t)~TCP_SYN;
	return true;
}

/* What lies outside the window is cut off: at the left the old, at the right what has no room. */
static void in_trim(struct tcp *t, struct tcp_in *in)
{
	uint32_t wnd = accept_window(t);

	if (seq_lt(in->seq, t->rcv_nxt)) {
		uint32_t old = t->rcv_nxt - in->seq;

		if (old > in->len)
			old = in->len;
		if (old > 0 && t->sack_ok && old < 1u << 30) {
			t->dsack[0] = in->seq;
			t->dsack[1] = in->seq + old;
			t->host->c.dup_data++;
			t->ack_now = true;
		}
		in->seq += old;
		in->off += old;
		in->len -= old;
	}
	if (in->seq - t->rcv_nxt + in->len > wnd) {
		in->len = in->seq - t->rcv_nxt < wnd ? wnd - (in->seq - t->rcv_nxt) : 0;
		in->flags &= (uint8_t) ~(TCP_FIN | TCP_PSH);
		t->ack_now = true;
	}
}

static void in_ecn(struct tcp *t, const struct tcp_in *in)
{
	if (!t->ecn_ok)
		return;
	if (in->flags & TCP_CWR)
		t->ece = false;
	if (in->s->ecn == 3 && in->len > 0) {
		t->ece = true; /* until the sender says CWR [RFC 3168 6.1.3] */
		t->ack_now = true;
		t->host->c.ecn_ce++;
	}
}

void tcp_in(struct tcp *t, struct tcp_in *in)
{
	tcp_wake_up(t);
	t->segs_in += in->s->gso_size != 0 ? (in->len + in->s->gso_size - 1) / in->s->gso_size : 1;
	if (t->state == TCPS_SYN_SENT) {
		tcp_in_syn_sent(t, in);
		return;
	}
	if (!(in->flags & TCP_SYN))
		in->wnd <<= t->snd_ws;
	if (!in_syn_again(t, in) || !in_paws(t, in) || !in_seq(t, in) || !in_rst(t, in) ||
		!in_syn(t, in))
		return;
	in_timestamp(t, in);
	t->last_rcv = t->host->now;
	t->keep_probes = 0;
	in_trim(t, in);
	if (!tcp_in_ack(t, in))
		return;
	in_ecn(t, in);
	/* URG: nothing; the bytes it points at are delivered in line [RFC 6093] */
	tcp_in_data(t, in);
	tcp_in_fin(t, in);
	if (t->ack_now)
		tcp_make_ready(t);
}
