/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp_stat: what the engine tells of itself, and the audit of its invariants for tests. */
#include <string.h>

#include "net/tcp_int.h"

const char *tcp_state_name(enum tcp_state s)
{
	static const char *const name[] = {"CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED",
		"ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK",
		"TIME-WAIT"};

	return (unsigned)s < sizeof(name) / sizeof(name[0]) ? name[s] : "?";
}

static uint32_t usec(nsec_t t)
{
	return (uint32_t)(t / 1000);
}

void tcp_stat(const struct tcp *t, struct tcp_stat *s)
{
	*s = (struct tcp_stat){
		.state = t->state,
		.ca_state = (uint8_t)t->busy->loss.ca,
		.snd_wscale = t->snd_ws,
		.rcv_wscale = t->rcv_ws,
		.sack = t->sack_ok,
		.timestamps = t->ts_ok,
		.ecn = t->ecn_ok,
		.rto_us = usec(t->rto),
		.rtt_us = usec(t->srtt),
		.rttvar_us = usec(t->rttvar),
		.min_rtt_us = usec(t->min_rtt),
		.snd_mss = t->mss,
		.rcv_mss = t->rcv_mss,
		.advmss = tcp_mss_offer(t->host, &t->node.tuple, t->mtu),
		.pmtu = t->mtu != 0 ? t->mtu : t->host->conf.mtu,
		.cwnd = t->cc.cwnd,
		.ssthresh = t->cc.ssthresh,
		.snd_wnd = t->snd_wnd,
		.rcv_wnd = tcp_rcv_window(t),
		.inflight = tcp_inflight(t),
		.unacked = t->snd_nxt - t->snd_una,
		.notsent = t->write_seq -
			   (seq_lt(t->write_seq, t->snd_nxt) ? t->write_seq : t->snd_nxt),
		.rcvbuf = t->rcvbuf,
		.sndbuf = t->sndbuf,
		.pacing_rate = tcp_pacing_rate(t),
		.bytes_sent = t->bytes_sent,
		.bytes_acked = t->bytes_acked,
		.bytes_received = t->bytes_received,
		.bytes_retrans = t->busy->bytes_retrans,
		.segs_in = t->segs_in,
		.segs_out = t->segs_out,
		.retrans = t->busy->retrans,
		.reord_seen = t->busy->loss.reord_seen,
		.dsack_dups = t->busy->dsack_dups,
		.tlp = t->busy->tlp_count,
		.rto_count = t->busy->rto_count,
	};
}

const struct tcp_counters *tcp_host_counters(const struct tcp_host *h)
{
	return &h->c;
}

/* ---- the audit ---- */

static const char *check_tx(const struct tcp *t)
{
	const struct tcp_txseg *s;
	uint32_t seq = 0, sacked = 0, lost = 0, rtx = 0, queued = 0;
	bool first = true, unsent = false;

	TAILQ_FOREACH (s, &t->busy->txq, q) {
		uint32_t len = 0;

		for (unsigned i = 0; i < s->nfrag; i++)
			len += s->frag[i].len;
		if (len != s->len || (s->len == 0) != s->fin)
			return "a segment's fragments are not its length";
		if (!first && s->seq != seq)
			return "the send queue has a gap";
		first = false;
		seq = s->seq + s->len + s->fin;
		queued += s->len;
		unsent |= s == t->busy->unsent;
		if ((s->gran == 0) != unsent)
			return "`unsent` is not the first that was never sent";
		if ((s->sacked & s->lost) || (s->rtx & ~s->lost) ||
			(s->gran != 0 && (s->lost | s->sacked) & ~txseg_all(s)))
			return "scoreboard bits contradict each other";
		sacked += txseg_bytes(s, s->sacked);
		lost += txseg_bytes(s, s->lost);
		rtx += txseg_bytes(s, s->rtx);
	}
	if (queued != t->queued)
		return "queued bytes are miscounted";
	if (sacked != t->busy->loss.sacked || lost != t->busy->loss.lost ||
		rtx != t->busy->loss.rtx)
		return "the sums of the scoreboard are wrong";
	if (t->busy->unsent != NULL && !unsent)
		return "`unsent` is not in the queue";
	return NULL;
}

static const char *check_rx(const struct tcp *t)
{
	const struct tcp_rx *r;
	uint32_t bytes = 0, charged = 0, seq = t->rcv_nxt;
	const struct ranges *iv = t->ooo != NULL ? &t->ooo->iv : NULL;
	unsigned i = 0;

	STAILQ_FOREACH (r, &t->busy->rxq, q) {
		bytes += r->len;
		charged += r->pkt->truesize;
	}
	if (bytes != t->rx_bytes)
		return "received bytes are miscounted";
	if (iv != NULL && (iv->n == 0 || seq_lt(iv->r[0].beg, t->rcv_nxt)))
		return "the out-of-order queue is empty or old";
	if (iv != NULL && tcp_synced(t) && iv->r[0].beg == t->rcv_nxt)
		return "the out-of-order queue is in order";
	if (iv != NULL)
		seq = iv->r[0].beg;
	for (r = iv != NULL ? STAILQ_FIRST(&t->ooo->rx) : NULL; r != NULL; r = STAILQ_NEXT(r, q)) {
		charged += r->pkt->truesize;
		if (i >= iv->n || r->seq != seq)
			return "an out-of-order buffer is in the wrong place";
		seq += r->len;
		if (seq == iv->r[i].end) {
			if (t->ooo->last[i] != r)
				return "the last buffer of an interval is another";
			if (++i < iv->n)
				seq = iv->r[i].beg;
		}
	}
	if (iv != NULL && i != iv->n)
		return "an interval has no buffers";
	return charged == t->rx_true ? NULL : "truesize is miscounted";
}

static const char *check_timers(const struct tcp *t)
{
	if (!tcp_synced(t) || t->state == TCPS_TIME_WAIT)
		return NULL;
	if (seq_lt(t->snd_nxt, t->snd_una))
		return "una is above nxt";
	if (t->snd_una != t->snd_nxt && t->busy->timer[TCP_T_RTX] == NSEC_NEVER && !t->ready)
		return "data is out and no timer runs";
	if (t->busy->unsent != NULL && t->snd_una == t->snd_nxt && !t->ready && !t->throttled &&
		t->busy->timer[TCP_T_RTX] == NSEC_NEVER)
		return "data waits and nothing will send it";
	if (t->keep_at != NSEC_NEVER && (t->heap_pos == 0 || t->heap_key > t->keep_at))
		return "the timer of keepalive is not in the heap";
	for (unsigned i = 0; i < TCP_TIMERS; i++) {
		nsec_t at = t->busy->timer[i];

		if (at != NSEC_NEVER && (t->heap_pos == 0 || t->heap_key > at))
			return "a timer is not in the heap";
	}
	return NULL;
}

static const char *check_idle(const struct tcp_host *h)
{
	static const struct tcp_loss loss;
	static const struct tcp_cubic cubic;
	const struct tcp_busy *b = &h->idle;

	for (unsigned i = 0; i < TCP_TIMERS; i++)
		if (b->timer[i] != NSEC_NEVER)
			return "a timer was set for a connection that rests";
	if (!TAILQ_EMPTY(&b->txq) || !STAILQ_EMPTY(&b->rxq) || b->unsent != NULL ||
		memcmp(&b->loss, &loss, sizeof(loss)) != 0 ||
		memcmp(&b->cubic, &cubic, sizeof(cubic)) != 0 || b->first_rtx != 0 ||
		b->retrans + b->bytes_retrans + b->dsack_dups + b->tlp_count + b->rto_count != 0)
		return "something was written for a connection that rests";
	return NULL;
}

const char *tcp_host_check(const struct tcp_host *h)
{
	const char *idle = check_idle(h);

	if (idle != NULL)
		return idle;
	for (uint32_t i = 0; i < h->conn_used; i++) {
		const struct tcp *t = &h->conns[i];
		const char *bad;

		if (t->host == NULL || t->dead)
			continue;
		if ((bad = check_tx(t)) || (bad = check_rx(t)) || (bad = check_timers(t)))
			return bad;
	}
	for (uint32_t i = 1; i <= h->heap_n; i++)
		if (h->heap[i]->heap_pos != i ||
			(i > 1 && h->heap[i / 2]->heap_key > h->heap[i]->heap_key))
			return "the heap of timers is out of order";
	return NULL;
}
