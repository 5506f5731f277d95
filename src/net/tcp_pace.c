/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_pace: how fast a window goes out: the rate is the window twice per round trip in slow start, six
 * fifths of it later, so that pacing never holds the window back; each unit moves the earliest time at
 * which the next may leave. A millisecond that was not used may be made up for; and a round trip of it, if
 * data was waiting for nothing but its timer: then we were not run in time.
 *
 * A round trip that took an outage, because the ACK of what came through was lost and timestamps tell of
 * the first try, is none: beyond eight times the best one it is not believed here, or what follows an
 * outage of a minute would go out a segment every ten seconds. After five minutes of outages the best is
 * one of them, too: so no unit waits for more than a quarter of a second.
 *
 * Not paced: the first ten segments, rates at which 64 KiB take less than 16 us, and paths whose best
 * round trip is below a millisecond: there a timer costs more than it saves, and on a busy machine who sleeps
 * for it finds the peer asleep, takes that for a long path, and sleeps longer.
 */
#include "net/tcp_int.h"

#define PACE_MIN_RTT  NSEC_PER_MSEC
#define PACE_MAX_RATE ((uint64_t)65536 * (NSEC_PER_SEC / (16 * NSEC_PER_USEC)))
#define PACE_CREDIT   NSEC_PER_MSEC
#define PACE_FREE     10                    /* segments */
#define PACE_MOST     (250 * NSEC_PER_MSEC) /* between two units: slower paths are clocked by ACKs */

uint64_t tcp_pacing_rate(const struct tcp *t)
{
	uint64_t most = u32_max(t->cc.cwnd, t->snd_nxt - t->snd_una);
	nsec_t rtt = t->srtt < 8 * t->min_rtt ? t->srtt : 8 * t->min_rtt;

	if (rtt <= 0)
		return 0;
	most = t->cc.cwnd < t->cc.ssthresh / 2 ? most * 2 : most * 6 / 5;
	return most * (uint64_t)NSEC_PER_SEC / (uint64_t)rtt;
}

bool tcp_pace_holds(struct tcp *t)
{
	nsec_t at = t->busy->pace_at;

	if (at <= t->host->now)
		return false;
	t->busy->pace_held = true;
	if (t->busy->timer[TCP_T_PACE] != at) {
		tcp_timer_set(t, TCP_T_PACE, at);
		t->host->c.paced++;
	}
	return true;
}

void tcp_pace_sent(struct tcp *t, uint32_t len)
{
	nsec_t from = t->host->now - PACE_CREDIT;
	uint64_t rate;

	if (t->busy->pace_held && t->srtt > PACE_CREDIT)
		from = t->host->now - t->srtt;

	if (t->host->conf.no_pacing || t->min_rtt < PACE_MIN_RTT ||
		t->bytes_sent <= PACE_FREE * (uint64_t)t->mss)
		return;
	rate = tcp_pacing_rate(t);
	if (rate == 0 || rate >= PACE_MAX_RATE)
		return;
	if (t->busy->pace_at > from)
		from = t->busy->pace_at;
	t->busy->pace_at = from + (nsec_t)(len * (uint64_t)NSEC_PER_SEC / rate);
	if (t->busy->pace_at > t->host->now + PACE_MOST)
		t->busy->pace_at = t->host->now + PACE_MOST;
}
