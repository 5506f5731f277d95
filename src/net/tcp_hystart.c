/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_hystart: leave slow start before the queue in the way overflows. Each round (a window's worth of
 * data) the least round-trip time is compared with that of the round before: when it has grown, growth
 * is slowed to a quarter for five rounds, and if it stays so, slow start is over; if it was a mistake,
 * slow start goes on. [RFC 9406 4.2, 4.3]
 *
 * Only the first slow start, whose end nobody knows. Below half a millisecond a queue is not what one
 * would see: there the times say how busy the machine is.
 */
#include "net/tcp_int.h"

#define MIN_RTT      (NSEC_PER_MSEC / 2)
#define THRESH_MIN   (4 * NSEC_PER_MSEC)
#define THRESH_MAX   (16 * NSEC_PER_MSEC)
#define RTT_DIVISOR  8
#define N_RTT_SAMPLE 8
#define CSS_ROUNDS   5

static void round_begin(struct tcp *t, struct tcp_hystart *y)
{
	y->last_min = y->started ? y->min : NSEC_NEVER;
	y->min = NSEC_NEVER;
	y->samples = 0;
	y->end = t->snd_nxt;
	y->started = true;
	if (!y->css || ++y->css_rounds < CSS_ROUNDS)
		return;
	y->css = false;
	t->cc.ssthresh = t->cc.cwnd;
	t->host->c.hystart_exits++;
}

static nsec_t threshold(nsec_t rtt)
{
	nsec_t more = rtt / RTT_DIVISOR;

	if (more < THRESH_MIN)
		return THRESH_MIN;
	return more < THRESH_MAX ? more : THRESH_MAX;
}

static void round_judge(struct tcp *t, struct tcp_hystart *y)
{
	if (y->samples < N_RTT_SAMPLE || y->last_min == NSEC_NEVER)
		return;
	if (!y->css && y->min >= y->last_min + threshold(y->last_min)) {
		y->css = true;
		y->css_base = y->min;
		y->css_rounds = 0;
		t->host->c.hystart_css++;
	} else if (y->css && y->min < y->css_base) {
		y->css = false;
	}
}

void tcp_hystart_ack(struct tcp *t, nsec_t rtt)
{
	struct tcp_hystart *y = &t->busy->hystart;

	if (t->host->conf.no_hystart || t->cc.ssthresh != UINT32_MAX || t->min_rtt < MIN_RTT ||
		t->busy->loss.ca != TCP_CA_OPEN)
		return;
	if (!y->started || seq_lt(y->end, t->snd_una))
		round_begin(t, y);
	if (rtt <= 0)
		return;
	y->min = rtt < y->min ? rtt : y->min;
	y->samples += y->samples < N_RTT_SAMPLE;
	round_judge(t, y);
}
