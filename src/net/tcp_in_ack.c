/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_in_ack: the fifth step: what the acknowledgment says. [RFC 9293 3.10.7.4; RFC 5961 5]
 *
 *	outside [una - max window, nxt]: challenged, dropped
 *	in SYN-RECEIVED: establishes, or is answered by a reset
 *	SACK blocks mark the scoreboard, the number itself frees the send queue; then windows, loss
 *	recovery, congestion control (tcp_loss.c), then the states that wait for their FIN's ACK
 */
#include "net/tcp_int.h"

static bool syn_rcvd_ack(struct tcp *t, struct tcp_in *in)
{
	if (!seq_lt(t->snd_una, in->ack) || !seq_le(in->ack, t->snd_nxt)) {
		tcp_rst_for(t->host, in);
		return false;
	}
	if (t->retries == 0 && t->last_snd > 0)
		tcp_rtt_sample(t, t->host->now - t->last_snd);
	t->snd_una = seq_max(t->snd_una, t->iss + 1);
	t->snd_wnd = t->max_snd_wnd = in->wnd;
	t->snd_wl1 = in->seq;
	t->snd_wl2 = in->ack;
	tcp_established(t);
	if (t->fin_queued) /* the user has finished already */
		tcp_set_state(t, TCPS_FIN_WAIT_1);
	tcp_timer_rtx(t);
	tcp_push_check(t);
	return true;
}

/* [RFC 5961 5.2] */
static bool ack_in_range(struct tcp *t, const struct tcp_in *in)
{
	if (!seq_lt(t->snd_nxt, in->ack) && !seq_lt(in->ack, t->snd_una - t->max_snd_wnd))
		return true;
	tcp_challenge(t);
	return false;
}

/* Old segments do not change the window. [RFC 9293 3.10.7.4] */
static void ack_window(struct tcp *t, struct tcp_in *in)
{
	bool newer = seq_lt(t->snd_wl1, in->seq) ||
		     (t->snd_wl1 == in->seq && seq_le(t->snd_wl2, in->ack));

	if (!newer || seq_lt(in->ack, t->snd_una))
		return;
	if (in->wnd != t->snd_wnd) {
		in->wnd_update = true;
		if (in->wnd > t->snd_wnd)
			tcp_push_check(t);
	}
	t->snd_wnd = in->wnd;
	t->max_snd_wnd = u32_max(t->max_snd_wnd, in->wnd);
	t->snd_wl1 = in->seq;
	t->snd_wl2 = in->ack;
}

static bool fin_acked(const struct tcp *t)
{
	return t->fin_queued && t->snd_una == t->write_seq + 1;
}

/* False: the connection is no longer of this world. */
static bool ack_states(struct tcp *t)
{
	struct tcp_host *h = t->host;

	if (!fin_acked(t))
		return true;
	if (t->state == TCPS_FIN_WAIT_1) {
		tcp_set_state(t, TCPS_FIN_WAIT_2);
		if (t->orphan)
			tcp_timer_keep(t, h->now + h->conf.finwait2);
	} else if (t->state == TCPS_CLOSING) {
		tcp_enter_timewait(t);
		return false;
	} else if (t->state == TCPS_LAST_ACK) {
		tcp_die(t, 0);
		return false;
	}
	return true;
}

static void ack_new(struct tcp *t, struct tcp_in *in)
{
	in->acked = in->ack - t->snd_una;
	in->una_before = t->snd_una;
	t->retries = 0;
	t->backoff = 0;
	t->bytes_acked += in->acked;
	tcp_loss_acked(t, in);
	if (t->queued <= t->sndbuf - t->sndbuf / 3)
		tcp_notify(t);
}

bool tcp_in_ack(struct tcp *t, struct tcp_in *in)
{
	uint32_t una = t->snd_una;

	if (!(in->flags & TCP_ACK))
		return false;
	if (t->state == TCPS_SYN_RCVD && !syn_rcvd_ack(t, in))
		return false;
	if (!ack_in_range(t, in))
		return false;
	if (t->rtx_mode == TCP_RTX_PERSIST)
		t->retries = 0; /* it answers: go on asking [RFC 6429] */
	in->una_before = t->snd_una;
	in->is_dup = in->ack == una && in->len == 0 && in->wnd == t->snd_wnd &&
		     t->snd_una != t->snd_nxt && !(in->flags & TCP_FIN);
	ack_window(t, in);
	if (t->sack_ok && in->o.nsack > 0)
		tcp_loss_sack(t, in);
	if (seq_lt(t->snd_una, in->ack))
		ack_new(t, in);
	if (seq_le(una, in->ack))
		tcp_loss_after_ack(t, in);
	if (!ack_states(t))
		return false;
	tcp_push_check(t);
	return true;
}
