/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_rack: loss by time: what was sent before something that has arrived, by more than the time
 * reordering may take, is lost. Finds lost retransmissions, too. [RFC 8985 6]
 */
#include "net/tcp_int.h"

#define REO_PERSIST 16

/* Step 2: the most recently sent that was delivered. */
void tcp_rack_update(struct tcp *t, const struct tcp_txseg *s, unsigned gran)
{
	struct tcp_loss *l = &t->busy->loss;
	bool again = s->rtx >> gran & 1;
	nsec_t xmit = again ? s->rxmit : s->xmit, rtt = t->host->now - xmit;
	uint32_t end = s->seq + u32_min((gran + 1) * s->gran, s->len + s->fin);

	if (again && rtt < t->min_rtt)
		return; /* the first one arrived, not this */
	if (xmit < l->rack_xmit || (xmit == l->rack_xmit && seq_le(end, l->rack_end)))
		return;
	l->rack_xmit = xmit;
	l->rack_end = end;
	l->rack_rtt = rtt;
}

/* Step 4: how late may something be that is not lost? */
static nsec_t reo_wnd(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;
	nsec_t wnd;

	if (l->dsack_wait && !seq_lt(t->snd_una, l->dsack_round))
		l->dsack_wait = false;
	if (l->dsack_seen) { /* we were too hasty: once per round trip more patient */
		l->dsack_seen = false;
		if (!l->dsack_wait) {
			l->dsack_wait = true;
			l->dsack_round = t->snd_nxt;
			l->reo_mult += l->reo_mult < 64;
			l->reo_persist = REO_PERSIST;
		}
	}
	if (!l->reord_seen && (l->ca != TCP_CA_OPEN || l->sacked >= 3 * t->mss))
		return 0;
	wnd = t->min_rtt / 4 * (l->reo_mult > 0 ? l->reo_mult : 1);
	return wnd < t->srtt ? wnd : t->srtt;
}

/*
 * Step 5 for the granules in `mask`, all sent at `xmit`: lost if sent before the latest delivered one
 * and overdue. Returns how long the rest has, 0: nothing waits.
 */
static nsec_t detect_bits(
	struct tcp *t, struct tcp_txseg *s, uint64_t mask, nsec_t xmit, nsec_t wnd)
{
	struct tcp_loss *l = &t->busy->loss;
	nsec_t left = xmit + l->rack_rtt + wnd - t->host->now;

	if (xmit == l->rack_xmit) { /* of one time, those before it in sequence */
		uint32_t k = seq_lt(s->seq, l->rack_end) ? (l->rack_end - s->seq) / s->gran : 0;

		mask &= k >= 64 ? ~0ull : (1ull << k) - 1;
	}
	if (mask == 0 || xmit > l->rack_xmit)
		return 0;
	if (left > 0)
		return left;
	tcp_mark_lost(t, s, mask);
	return 0;
}

void tcp_rack_detect(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;
	struct tcp_txseg *s;
	nsec_t wnd = reo_wnd(t), wait = 0, left;

	if (t->state < TCPS_ESTABLISHED || l->rack_xmit == 0)
		return;
	TAILQ_FOREACH (s, &t->busy->txq, q) {
		uint64_t out;

		if (s->gran == 0 || (s->xmit > l->rack_xmit && s->again == 0))
			break;
		out = txseg_all(s) & ~s->sacked;
		left = detect_bits(t, s, out & ~s->lost, s->xmit, wnd);
		wait = left > wait ? left : wait;
		left = detect_bits(t, s, out & s->rtx, s->rxmit, wnd);
		wait = left > wait ? left : wait;
	}
	tcp_timer_set(t, TCP_T_REO, wait > 0 ? t->host->now + wait : NSEC_NEVER);
}
