/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_cc: the congestion window: slow start, NewReno; CUBIC is in tcp_cubic.c. Sizes in bytes; what
 * is acknowledged counts in full, so that one ACK for 45 segments opens as much as 45 ACKs.
 * [RFC 5681, 6928, 3465, 7661]
 */
#include "net/tcp_int.h"

#define CWND_MAX    (64u << 20)
#define CSS_DIVISOR 4 /* [RFC 9406 4.2] */

/* [RFC 6928 2] */
static uint32_t initial_window(const struct tcp *t)
{
	return u32_min(10 * t->mss, u32_max(2 * t->mss, 14600));
}

void tcp_cc_init(struct tcp *t)
{
	t->cc.cwnd = t->retries > 1 ? t->mss : initial_window(t); /* [RFC 6298 5.7] */
	t->cc.ssthresh = UINT32_MAX;
}

static void reno_acked(struct tcp *t, uint32_t bytes)
{
	t->cc.acked_ca += bytes;
	if (t->cc.acked_ca >= t->cc.cwnd) {
		t->cc.acked_ca -= t->cc.cwnd;
		t->cc.cwnd += t->mss;
	}
}

/* Only a window that was used may grow. [RFC 7661 4] */
static bool window_used(struct tcp *t, uint32_t bytes)
{
	uint32_t flight = t->snd_nxt - t->snd_una + bytes;

	if (t->cc.limited) {
		t->cc.limited = false;
		return true;
	}
	return t->cc.cwnd < t->cc.ssthresh && t->cc.cwnd < 2 * flight && t->busy->unsent == NULL &&
	       flight > t->cc.cwnd / 2;
}

void tcp_cc_acked(struct tcp *t, uint32_t bytes)
{
	if (!window_used(t, bytes))
		return;
	if (t->cc.cwnd < t->cc.ssthresh) {
		uint32_t room = t->cc.ssthresh - t->cc.cwnd, some = u32_min(bytes, room);

		/* in the first slow start only [RFC 9406 4.3] */
		if (t->busy->hystart.css && t->cc.ssthresh == UINT32_MAX) {
			t->cc.cwnd += bytes / CSS_DIVISOR;
			return;
		}

		t->cc.cwnd += some;
		bytes -= some;
	}
	if (bytes > 0 && t->cc.cwnd >= t->cc.ssthresh) {
		if (t->host->conf.cubic)
			tcp_cubic_acked(t, bytes);
		else
			reno_acked(t, bytes);
	}
	t->cc.cwnd = u32_min(t->cc.cwnd, CWND_MAX);
}

uint32_t tcp_cc_ssthresh(struct tcp *t)
{
	uint32_t half;

	t->cc.acked_ca = 0;
	if (t->host->conf.cubic)
		return tcp_cubic_ssthresh(t);
	half = u32_max(u32_min(t->cc.cwnd, t->snd_nxt - t->snd_una + t->mss), t->mss) / 2;
	return u32_max(half, 2 * t->mss);
}

void tcp_cc_rto(struct tcp *t)
{
	t->cc.cwnd = t->mss;
	t->cc.acked_ca = 0;
}

/* After an idle time of an RTO or more the path is unknown again. [RFC 5681 4.1] */
void tcp_cc_idle(struct tcp *t)
{
	if (t->last_snd == 0 || t->host->now - t->last_snd <= t->rto || t->cc.cwnd == 0)
		return;
	t->cc.ssthresh = t->cc.ssthresh == UINT32_MAX ? t->cc.ssthresh
						      : u32_max(t->cc.ssthresh, t->cc.cwnd / 4 * 3);
	t->cc.cwnd = u32_min(t->cc.cwnd, initial_window(t));
	t->busy->cubic.epoch = 0;
}

void tcp_cc_undo(struct tcp *t)
{
	t->cc.cwnd = u32_max(t->cc.cwnd, t->busy->loss.prior_cwnd);
	t->cc.ssthresh = u32_max(t->cc.ssthresh, t->busy->loss.prior_ssthresh);
	t->busy->cubic.epoch = 0;
}
