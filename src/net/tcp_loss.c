/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_loss: the sender's bookkeeping of what is where: the scoreboard, the round-trip time, recovery
 * and its end. [RFC 6298, 6675, 2018, 2883, 5681, 6937, 4015]
 *
 * A segment of up to 64 granules has a bit per granule for "selectively acknowledged", "lost" and
 * "of the lost, under way again"; so a SACK of a part splits nothing and allocates nothing. The sums
 * of the bits in bytes are kept as they change:
 *
 *	in flight = (nxt - una) - sacked - lost + under way again
 */
#include "net/tcp_int.h"

uint64_t txseg_all(const struct tcp_txseg *s)
{
	return s->ngran >= 64 ? ~0ull : (1ull << s->ngran) - 1;
}

/* Sequence numbers under these bits. */
uint32_t txseg_bytes(const struct tcp_txseg *s, uint64_t mask)
{
	uint32_t n = (uint32_t)__builtin_popcountll(mask) * s->gran;

	if (!s->fin && s->ngran > 0 && (mask >> (s->ngran - 1) & 1))
		n -= s->ngran * s->gran - s->len;
	return n;
}

uint32_t tcp_inflight(const struct tcp *t)
{
	const struct tcp_loss *l = &t->busy->loss;
	uint32_t out = t->snd_nxt - t->snd_una + l->rtx, gone = l->sacked + l->lost;

	if (!t->sack_ok) /* each duplicate says that one has arrived */
		gone += l->dupacks * t->mss;
	return out > gone ? out - gone : 0;
}

uint32_t tcp_loss_quota(const struct tcp *t)
{
	uint32_t in = tcp_inflight(t);

	return t->cc.cwnd > in ? t->cc.cwnd - in : 0;
}

/* [RFC 6298 2] */
void tcp_rtt_sample(struct tcp *t, nsec_t rtt)
{
	nsec_t now = t->host->now, diff;

	if (rtt <= 0)
		rtt = 1;
	if (t->min_rtt == 0 || rtt <= t->min_rtt || now - t->min_rtt_at > 300 * NSEC_PER_SEC) {
		t->min_rtt = rtt;
		t->min_rtt_at = now;
	}
	if (t->srtt == 0) {
		t->srtt = rtt;
		t->rttvar = rtt / 2;
	} else {
		diff = t->srtt > rtt ? t->srtt - rtt : rtt - t->srtt;
		t->rttvar += (diff - t->rttvar) / 4;
		t->srtt += (rtt - t->srtt) / 8;
		if (t->srtt <= 0)
			t->srtt = 1;
	}
	t->rto = t->srtt +
		 (4 * t->rttvar > t->host->conf.rto_min ? 4 * t->rttvar : t->host->conf.rto_min);
	if (t->rto > TCP_RTO_MAX)
		t->rto = TCP_RTO_MAX;
}

void tcp_loss_sent(struct tcp *t, struct tcp_txseg *s, uint64_t mask, bool again)
{
	uint32_t bytes = txseg_bytes(s, mask);

	if (!again) {
		s->xmit = t->host->now;
	} else {
		uint64_t lost = mask & s->lost & ~s->rtx;

		s->rxmit = t->host->now;
		s->again |= mask;
		s->rtx |= lost;
		t->busy->loss.rtx += txseg_bytes(s, lost);
		t->busy->loss.undo_rtx += (uint32_t)__builtin_popcountll(mask);
		if (t->busy->loss.undo_ok && t->busy->loss.undo_ts == 0)
			t->busy->loss.undo_ts = tcp_ts_now(t->host, t->ts_off);
	}
	if (t->busy->loss.ca == TCP_CA_RECOVERY)
		t->busy->loss.prr_out += bytes;
	if (t->busy->timer[TCP_T_RTX] == NSEC_NEVER)
		tcp_timer_rtx(t);
}

void tcp_mark_lost(struct tcp *t, struct tcp_txseg *s, uint64_t mask)
{
	uint64_t fresh = mask & ~s->lost & ~s->sacked & txseg_all(s);
	uint64_t again = mask & s->rtx;

	t->busy->loss.lost += txseg_bytes(s, fresh);
	t->busy->loss.rtx -= txseg_bytes(s, again);
	s->lost |= fresh;
	s->rtx &= ~again;
}

/* ---- selective acknowledgments ---- */

/* Where the first of these granules begins. */
static uint32_t first_of(const struct tcp_txseg *s, uint64_t mask)
{
	return s->seq + (uint32_t)__builtin_ctzll(mask) * s->gran;
}

static void sack_bits(struct tcp *t, struct tcp_in *in, struct tcp_txseg *s, uint64_t mask)
{
	struct tcp_loss *l = &t->busy->loss;
	uint64_t fresh = mask & ~s->sacked, was_lost = fresh & s->lost;

	if (fresh == 0)
		return;
	/* below what was acknowledged before, and not by us */
	in->first_try |= (was_lost & ~s->again) != 0;
	if (s->again == 0 && seq_lt(first_of(s, fresh), l->high_sacked) && was_lost == 0)
		l->reord_seen = true;
	l->lost -= txseg_bytes(s, was_lost);
	l->rtx -= txseg_bytes(s, s->rtx & fresh);
	tcp_rack_update(t, s, 63 - (unsigned)__builtin_clzll(fresh));
	s->lost &= ~fresh;
	s->rtx &= ~fresh;
	s->sacked |= fresh;
	l->sacked += txseg_bytes(s, fresh);
	in->sacked_new += txseg_bytes(s, fresh);
}

/* Granules that lie wholly in [beg, end). */
static uint64_t covered(const struct tcp_txseg *s, uint32_t beg, uint32_t end)
{
	uint32_t last = s->seq + s->len + s->fin, lo = 0, hi = s->ngran;

	if (seq_lt(s->seq, beg))
		lo = (beg - s->seq + s->gran - 1) / s->gran;
	if (seq_lt(end, last))
		hi = seq_lt(s->seq, end) ? (end - s->seq) / s->gran : 0;
	if (lo >= hi)
		return 0;
	return (hi - lo >= 64 ? ~0ull : (1ull << (hi - lo)) - 1) << lo;
}

static void sack_block(struct tcp *t, struct tcp_in *in, uint32_t beg, uint32_t end)
{
	struct tcp_txseg *s;

	TAILQ_FOREACH (s, &t->busy->txq, q) {
		if (s->gran == 0 || !seq_lt(s->seq, end))
			break;
		if (seq_le(s->seq + s->len + s->fin, beg) || s->sacked == txseg_all(s))
			continue;
		sack_bits(t, in, s, covered(s, beg, end));
	}
	t->busy->loss.high_sacked = seq_max(t->busy->loss.high_sacked, end);
}

/* The first block may tell of a duplicate: below the ACK, or inside the second. [RFC 2883 4] */
static bool is_dsack(const struct tcp_in *in)
{
	const uint32_t *a = in->o.sack[0], *b = in->o.sack[1];

	if (seq_lt(a[0], in->ack))
		return true;
	return in->o.nsack > 1 && seq_le(b[0], a[0]) && seq_le(a[1], b[1]);
}

static void dsack_in(struct tcp *t, struct tcp_in *in)
{
	struct tcp_loss *l = &t->busy->loss;
	uint32_t segs;

	in->dsack = true;
	t->busy->dsack_dups++;
	t->host->c.dsack_in++;
	l->dsack_seen = true;
	segs = (in->o.sack[0][1] - in->o.sack[0][0] + t->mss - 1) / t->mss;
	l->undo_rtx -= u32_min(l->undo_rtx, segs);
	if (l->tlp_open && l->tlp_rtx && in->o.sack[0][1] == l->tlp_end)
		l->tlp_open = false; /* the probe was not needed: nothing was lost */
}

void tcp_loss_sack(struct tcp *t, struct tcp_in *in)
{
	unsigned i = 0;

	if (seq_lt(in->ack, t->snd_una))
		return;
	if (t->busy->loss.sacked == 0)
		t->busy->loss.high_sacked = t->snd_una;
	if (is_dsack(in)) {
		dsack_in(t, in);
		i = 1;
	}
	for (; i < in->o.nsack; i++) {
		uint32_t beg = in->o.sack[i][0], end = in->o.sack[i][1];

		if (!seq_lt(beg, end) || seq_lt(beg, t->snd_una) || seq_lt(t->snd_nxt, end)) {
			t->host->c.sack_ignored++;
			continue;
		}
		sack_block(t, in, beg, end);
	}
}

/* ---- cumulative acknowledgment ---- */

static void forget_bits(struct tcp *t, struct tcp_txseg *s, uint64_t mask)
{
	t->busy->loss.sacked -= txseg_bytes(s, s->sacked & mask);
	t->busy->loss.lost -= txseg_bytes(s, s->lost & mask);
	t->busy->loss.rtx -= txseg_bytes(s, s->rtx & mask);
	s->sacked &= ~mask;
	s->lost &= ~mask;
	s->rtx &= ~mask;
}

/* Drop `k` granules from the front. */
static void txseg_trim(struct tcp *t, struct tcp_txseg *s, unsigned k)
{
	uint32_t n = k * s->gran;
	unsigned drop = 0;

	forget_bits(t, s, (1ull << k) - 1);
	s->seq += n;
	s->len -= n;
	s->ngran -= (uint8_t)k;
	s->sacked >>= k;
	s->lost >>= k;
	s->rtx >>= k;
	s->again >>= k;
	t->queued -= n;
	while (n > 0) {
		struct pkt_frag *f = &s->frag[drop];

		if (f->len > n) {
			f->data += n;
			f->len -= n;
			break;
		}
		n -= f->len;
		chunk_put(t->host->conf.pool->chunks, f->chunk);
		drop++;
	}
	s->nfrag -= drop;
	for (unsigned i = 0; drop > 0 && i < s->nfrag; i++)
		s->frag[i] = s->frag[i + drop];
}

/* Granules that this ACK takes: of those sent again nobody knows which one arrived. [RFC 6298 3] */
static nsec_t ack_rtt(struct tcp *t, struct tcp_in *in, const struct tcp_txseg *s, uint64_t mask)
{
	in->first_try |= (mask & s->lost & ~s->again) != 0;
	in->second_try |= (mask & s->again) != 0;
	return mask & s->again ? -1 : t->host->now - s->xmit;
}

void tcp_loss_acked(struct tcp *t, struct tcp_in *in)
{
	struct tcp_txseg *s;
	nsec_t rtt = 0, sample;
	uint32_t newly = in->acked, sacked = t->busy->loss.sacked;

	while ((s = TAILQ_FIRST(&t->busy->txq)) != NULL && s->gran != 0) {
		uint32_t end = s->seq + s->len + s->fin;

		if (seq_le(end, in->ack)) {
			uint64_t late = txseg_all(s) & ~s->sacked;

			if (late != 0) {
				sample = ack_rtt(t, in, s, late);
				rtt = rtt < 0 ? rtt : sample;
				tcp_rack_update(t, s, s->ngran - 1u);
				if (s->again == 0 && t->busy->loss.sacked > 0 && s->lost == 0 &&
					seq_lt(first_of(s, late), t->busy->loss.high_sacked))
					t->busy->loss.reord_seen = true;
			}
			forget_bits(t, s, ~0ull);
			t->queued -= s->len;
			TAILQ_REMOVE(&t->busy->txq, s, q);
			txseg_free(t->host, s);
			continue;
		}
		if (seq_lt(s->seq, in->ack)) {
			unsigned k = (in->ack - s->seq) / s->gran;

			if (k > 0) {
				sample = ack_rtt(t, in, s, ((1ull << k) - 1) & ~s->sacked);
				rtt = rtt < 0 ? rtt : sample;
				tcp_rack_update(t, s, k - 1);
				txseg_trim(t, s, k);
			}
		}
		break;
	}
	t->snd_una = in->ack;
	sacked -= t->busy->loss.sacked; /* those were counted when the SACK came */
	in->acked = newly > sacked ? newly - sacked : 0;
	tcp_hystart_ack(t, rtt);
	if (rtt > 0)
		tcp_rtt_sample(t, rtt);
	else if (t->ts_ok && in->o.ts_ok && in->o.tsecr != 0)
		tcp_rtt_sample(t, (nsec_t)(uint32_t)(tcp_ts_now(t->host, t->ts_off) - in->o.tsecr) *
					  NSEC_PER_MSEC);
}

/* ---- recovery ---- */

static void undo_arm(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;

	l->undo_ok = true;
	l->undo_ts = 0;
	l->undo_rtx = 0;
	l->undo_una = t->snd_una;
	t->busy->loss.prior_cwnd = t->cc.cwnd;
	t->busy->loss.prior_ssthresh = t->cc.ssthresh;
}

static void recovery_enter(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;

	undo_arm(t);
	l->ca = TCP_CA_RECOVERY;
	l->high_seq = t->snd_nxt;
	l->prr_delivered = l->prr_out = 0;
	l->recover_fs = u32_max(t->snd_nxt - t->snd_una, 1);
	l->tlp_open = false;
	t->cc.ssthresh = tcp_cc_ssthresh(t);
	t->host->c.fast_recoveries++;
	if (t->ecn_ok)
		t->cwr = true;
}

/* Proportional rate reduction, slow-start bound. [RFC 6937 3] */
static void prr(struct tcp *t, uint32_t delivered, bool advanced)
{
	struct tcp_loss *l = &t->busy->loss;
	uint32_t pipe = tcp_inflight(t);
	int64_t snd;

	l->prr_delivered += delivered;
	if (pipe > t->cc.ssthresh) {
		snd = ((int64_t)l->prr_delivered * t->cc.ssthresh + l->recover_fs - 1) /
			      l->recover_fs -
		      l->prr_out;
	} else {
		int64_t limit = (int64_t)l->prr_delivered - l->prr_out;

		if (limit < delivered)
			limit = delivered;
		if (advanced)
			limit += t->mss;
		snd = t->cc.ssthresh - pipe < limit ? (int64_t)(t->cc.ssthresh - pipe) : limit;
	}
	if (snd < t->mss && l->prr_out == 0)
		snd = t->mss; /* the fast retransmission */
	t->cc.cwnd = pipe + (snd > 0 ? (uint32_t)snd : 0);
}

static void recovery_exit(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;

	if (l->ca == TCP_CA_RECOVERY)
		t->cc.cwnd = t->cc.ssthresh;
	l->ca = TCP_CA_OPEN;
	l->dupacks = 0;
	l->undo_ok = false;
	if (l->reo_persist > 0 && --l->reo_persist == 0)
		l->reo_mult = 1;
}

/* It was not lost after all: take everything back. [RFC 4015, 3708] */
static bool try_undo(struct tcp *t, const struct tcp_in *in)
{
	struct tcp_loss *l = &t->busy->loss;
	bool eifel = t->ts_ok && in->o.ts_ok && l->undo_ts != 0 && in->o.tsecr != 0 &&
		     (int32_t)(in->o.tsecr - l->undo_ts) < 0 && seq_lt(l->undo_una, t->snd_una);
	bool dsack = in->dsack && l->undo_ts != 0 && l->undo_rtx == 0;

	if (!l->undo_ok || l->ca == TCP_CA_OPEN || (!eifel && !dsack))
		return false;
	tcp_loss_undo(t);
	return true;
}

void tcp_loss_undo(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;
	struct tcp_txseg *s;

	TAILQ_FOREACH (s, &t->busy->txq, q) {
		if (s->gran == 0)
			break;
		s->lost = s->rtx = 0;
	}
	l->lost = l->rtx = 0;
	l->ca = TCP_CA_OPEN;
	l->frto = FRTO_OFF;
	l->undo_ok = false;
	l->reord_seen = true;
	t->backoff = 0;
	tcp_cc_undo(t);
	t->host->c.spurious++;
}

/* Without SACK: the third duplicate, and every partial ACK, mean the first segment. [RFC 6582] */
static void reno_dupacks(struct tcp *t, const struct tcp_in *in, bool advanced)
{
	struct tcp_loss *l = &t->busy->loss;
	struct tcp_txseg *s = TAILQ_FIRST(&t->busy->txq);

	if (advanced) {
		uint32_t segs = (t->snd_una - in->una_before) / t->mss;

		l->dupacks = l->ca == TCP_CA_RECOVERY && l->dupacks > segs ? l->dupacks - segs : 0;
	}
	if (in->is_dup && !advanced)
		l->dupacks++;
	if (s == NULL || s->gran == 0)
		return;
	if ((l->ca == TCP_CA_OPEN && l->dupacks >= 3) ||
		(l->ca == TCP_CA_RECOVERY && advanced && seq_lt(t->snd_una, l->high_seq)))
		tcp_mark_lost(t, s, 1);
}

/*
 * Was the probe needed? A DSACK says no (tcp_loss_sack()). An ACK of its end alone does not tell yet: both
 * the original and the probe get one. One beyond it does: the loss was repaired. [RFC 8985 7.4.2]
 */
static void tlp_ack(struct tcp *t, const struct tcp_in *in)
{
	struct tcp_loss *l = &t->busy->loss;

	if (!l->tlp_open || seq_lt(t->snd_una, l->tlp_end))
		return;
	if (l->tlp_rtx && t->sack_ok && !in->dsack && t->snd_una == l->tlp_end)
		return;
	l->tlp_open = false;
	if (l->tlp_rtx && !in->dsack && t->sack_ok && l->ca == TCP_CA_OPEN) {
		t->cc.ssthresh = tcp_cc_ssthresh(t); /* a loss that nobody else saw */
		t->cc.cwnd = u32_min(t->cc.cwnd, t->cc.ssthresh);
	}
}

static void ecn_echo(struct tcp *t, const struct tcp_in *in)
{
	struct tcp_loss *l = &t->busy->loss;

	if (l->ecn_round && !seq_lt(t->snd_una, l->high_seq))
		l->ecn_round = false;
	if (!t->ecn_ok || !(in->flags & TCP_ECE) || l->ca != TCP_CA_OPEN || l->ecn_round)
		return;
	l->high_seq = t->snd_nxt; /* once per window [RFC 3168 6.1.2] */
	l->ecn_round = true;
	t->cc.ssthresh = tcp_cc_ssthresh(t);
	t->cc.cwnd = u32_min(t->cc.cwnd, t->cc.ssthresh);
	t->cwr = true;
}

void tcp_loss_after_ack(struct tcp *t, struct tcp_in *in)
{
	struct tcp_loss *l = &t->busy->loss;
	bool advanced = t->snd_una != in->una_before;
	uint32_t delivered = (advanced ? in->acked : 0) + in->sacked_new;

	if (advanced || in->sacked_new > 0 || in->dsack)
		tlp_ack(t, in);
	if (!try_undo(t, in) && !tcp_frto_ack(t, in) && l->ca != TCP_CA_OPEN &&
		!seq_lt(t->snd_una, l->high_seq))
		recovery_exit(t);
	if (!t->sack_ok)
		reno_dupacks(t, in, advanced);
	else if (delivered > 0)
		tcp_rack_detect(t);
	if (l->ca == TCP_CA_OPEN && l->lost > 0)
		recovery_enter(t);
	ecn_echo(t, in);
	if (l->ca == TCP_CA_RECOVERY) {
		if (!t->sack_ok && in->is_dup)
			delivered += t->mss;
		prr(t, delivered, advanced);
	} else if (delivered > 0) {
		tcp_cc_acked(t, delivered);
	}
	if (advanced || in->sacked_new > 0 || (in->wnd_update && t->snd_una == t->snd_nxt)) {
		if (t->rtx_mode == TCP_RTX_PERSIST && t->snd_wnd > 0)
			t->busy->timer[TCP_T_RTX] = NSEC_NEVER;
		tcp_timer_rtx(t);
	}
	if (advanced || t->snd_wnd > 0)
		t->persist_n = 0; /* else it is still shut, since the first probe */
}

/* The timer: everything not known to have arrived is lost. [RFC 5681 3.1, 8985 6.3] */
void tcp_loss_rto(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;
	struct tcp_txseg *s = TAILQ_FIRST(&t->busy->txq);
	bool reneged = s != NULL && (s->sacked & 1);

	if (l->ca != TCP_CA_LOSS) {
		undo_arm(t);
		t->cc.ssthresh = tcp_cc_ssthresh(t);
	}
	t->host->c.rto++;
	t->host->c.reneged += reneged;
	t->busy->rto_count++;
	TAILQ_FOREACH (s, &t->busy->txq, q) {
		if (s->gran == 0)
			break;
		if (reneged) { /* the receiver threw away what it had [RFC 2018 8] */
			l->sacked -= txseg_bytes(s, s->sacked);
			s->sacked = 0;
		}
		tcp_mark_lost(t, s, txseg_all(s));
	}
	l->frto = FRTO_OFF;
	if (!reneged && (l->ca != TCP_CA_LOSS || t->retries > 1))
		tcp_frto_start(t);
	l->ca = TCP_CA_LOSS;
	l->high_seq = t->snd_nxt;
	l->dupacks = 0;
	l->tlp_open = l->tlp_now = false;
	tcp_cc_rto(t);
}
