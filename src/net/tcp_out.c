/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_out: the next segment of a connection, if there is one to send now. In this order: SYN, FIN
 * again, probes, retransmissions, the loss probe, new data, a bare ACK.
 *
 * New data: how much may leave (congestion window, peer's window, a burst of about 1 ms by the pacing
 * rate), and whether it should wait: Nagle, cork, auto-cork, the small-queue limit, deferring for a
 * bigger unit. All but the last wire segment of a unit are full. [RFC 9293 3.7.4, 3.8.6.2.1]
 */
#include <string.h>

#include "net/siphash.h"
#include "net/tcp_int.h"

/* ---- pieces of segments ---- */

/* Fragments of [from, from + len) of a segment, each with a reference; how many. */
unsigned tcp_gather(const struct tcp_txseg *s, uint32_t from, uint32_t len, struct pkt_frag *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nfrag && len > 0; i++) {
		struct pkt_frag f = s->frag[i];

		if (from >= f.len) {
			from -= f.len;
			continue;
		}
		f.data += from;
		f.len = u32_min(f.len - from, len);
		from = 0;
		len -= f.len;
		chunk_ref(f.chunk);
		out[n++] = f;
	}
	return n;
}

/*
 * Cut a segment that was never sent at `n` bytes; the rest is a new one behind it. If there is none: all of
 * it may go as one unit, if the peer's window takes it.
 */
static bool txseg_split(struct tcp *t, struct tcp_txseg *s, uint32_t n)
{
	struct tcp_txseg *rest = txseg_new(t->host);
	unsigned keep = 0;
	uint32_t at = 0;

	if (rest == NULL && tcp_press(t->host, TCP_POOL_SEGS, t))
		rest = txseg_new(t->host);
	if (rest == NULL)
		return seq_le(s->seq + s->len, t->snd_una + t->snd_wnd);
	rest->seq = s->seq + n;
	rest->len = s->len - n;
	rest->psh = s->psh;
	rest->closed = s->closed;
	rest->nfrag = tcp_gather(s, n, rest->len, rest->frag);
	for (; keep < s->nfrag && at < n; keep++) {
		if (at + s->frag[keep].len > n)
			s->frag[keep].len = n - at;
		at += s->frag[keep].len;
	}
	for (unsigned i = keep; i < s->nfrag; i++)
		chunk_put(t->host->conf.pool->chunks, s->frag[i].chunk);
	s->nfrag = keep;
	s->len = n;
	s->psh = false;
	TAILQ_INSERT_AFTER(&t->busy->txq, s, rest, q);
	return true;
}

/* Let a segment take bytes of the one behind it, which was never sent either: up to `want`. */
static void txseg_grow(struct tcp *t, struct tcp_txseg *s, uint32_t want)
{
	struct tcp_txseg *next;

	if (t->host->conf.push_at_mss) /* as it was then */
		return;
	while (s->len < want && (next = TAILQ_NEXT(s, q)) != NULL && !next->fin &&
		next->nfrag > 0) {
		struct pkt_frag *last = &s->frag[s->nfrag - 1], *f = &next->frag[0];
		uint32_t n = u32_min(f->len, want - s->len);
		bool joins = last->chunk == f->chunk && last->data + last->len == f->data;

		if (!joins && s->nfrag == PKT_FRAGS)
			return;
		if (joins) {
			last->len += n;
		} else {
			chunk_ref(f->chunk);
			s->frag[s->nfrag++] = (struct pkt_frag){f->chunk, f->data, n};
		}
		s->len += n;
		next->seq += n;
		next->len -= n;
		f->data += n;
		f->len -= n;
		if (f->len == 0) {
			chunk_put(t->host->conf.pool->chunks, f->chunk);
			memmove(f, f + 1, --next->nfrag * sizeof(*f));
		}
		if (next->len == 0) {
			s->psh |= next->psh;
			s->closed |= next->closed;
			TAILQ_REMOVE(&t->busy->txq, next, q);
			txseg_free(t->host, next);
		}
	}
}

/* ---- building ---- */

static uint16_t offer_window(struct tcp *t, bool syn)
{
	uint32_t was = seq_lt(t->rcv_nxt, t->rcv_adv) ? t->rcv_adv - t->rcv_nxt : 0;
	uint32_t win = tcp_rcv_window(t), field;
	uint8_t ws = syn ? 0 : t->rcv_ws; /* never scaled in a SYN [RFC 7323 2.2] */

	field = win >> ws;
	if (field << ws < was)
		field++; /* never take back a part of a scaled unit */
	field = u32_min(field, 65535);
	t->rcv_adv = seq_max(t->rcv_adv, t->rcv_nxt + (field << ws));
	return (uint16_t)field;
}

/* The interval that holds `at`, unless it is among b[from .. n). */
static unsigned sack_add(
	const struct ranges *iv, uint32_t at, uint32_t b[4][2], unsigned from, unsigned n)
{
	unsigned i = ranges_find(iv, at);

	if (n == 4 || i == iv->n || seq_lt(at, iv->r[i].beg))
		return n;
	for (unsigned k = from; k < n; k++)
		if (b[k][0] == iv->r[i].beg)
			return n;
	b[n][0] = iv->r[i].beg;
	b[n][1] = iv->r[i].end;
	return n + 1;
}

/* SACK blocks: a duplicate first, then the newest intervals, then the others. [RFC 2018 4, 2883 4] */
static unsigned sack_blocks(struct tcp *t, uint32_t b[4][2])
{
	unsigned n = 0, from;
	const struct tcp_ooo *o = t->ooo;

	if (t->dsack[0] != t->dsack[1]) {
		memcpy(b[n++], t->dsack, sizeof(b[0]));
		t->dsack[0] = t->dsack[1] = 0;
		t->host->c.dsack_out++;
	}
	from = n;
	if (o == NULL)
		return n;
	for (unsigned i = 0; i < 4; i++)
		n = sack_add(&o->iv, o->recent[i], b, from, n);
	for (unsigned i = 0; i < o->iv.n && n < 4; i++)
		n = sack_add(&o->iv, o->iv.r[i].beg, b, from, n);
	return n;
}

static bool sack_wanted(const struct tcp *t)
{
	return t->sack_ok && (t->ooo != NULL || t->dsack[0] != t->dsack[1]);
}

static void build(struct tcp *t, struct tcp_out *o, uint32_t seq, uint8_t flags)
{
	memset(o, 0, offsetof(struct tcp_out, frag));
	o->account = NULL;
	o->tuple = t->node.tuple;
	o->seq = seq;
	o->flags = flags;
	o->flow = t->node.flow;
	o->wnd = offer_window(t, flags & TCP_SYN);
	if (flags & TCP_ACK) {
		o->ack = t->rcv_nxt;
		if (t->ece && !(flags & TCP_SYN))
			o->flags |= TCP_ECE;
	}
	if (t->ts_ok && !(flags & TCP_SYN))
		o->opt_len =
			(uint8_t)tcp_opt_ts(o->opt, tcp_ts_now(t->host, t->ts_off), t->ts_recent);
	t->segs_out++;
}

static void acked_by(struct tcp *t, const struct tcp_out *o)
{
	if (t->last_ack_sent != o->ack)
		t->host->c.acks_sent++;
	t->last_ack_sent = o->ack;
	t->ack_now = false;
	if (t->busy->timer[TCP_T_DELACK] != NSEC_NEVER)
		t->busy->timer[TCP_T_DELACK] = NSEC_NEVER;
}

static void out_syn(struct tcp *t, struct tcp_out *o)
{
	const struct tcp_conf *c = &t->host->conf;
	bool first = t->state == TCPS_SYN_SENT, ws = first ? !c->no_ws : t->ws_ok;
	bool ts = first ? !c->no_ts : t->ts_ok, sack = first ? !c->no_sack : t->sack_ok;
	uint32_t mss = tcp_mss_offer(t->host, &t->node.tuple, t->mtu);

	build(t, o, t->iss, first ? TCP_SYN : TCP_SYN | TCP_ACK);
	if (t->user_mss != 0)
		mss = u32_min(mss, t->user_mss);
	o->opt_len = (uint8_t)tcp_opt_syn(o->opt, (uint16_t)mss, ws ? t->rcv_ws : -1, sack, ts,
		tcp_ts_now(t->host, t->ts_off), first ? 0 : t->ts_recent);
	if (first && c->ecn &&
		t->retries <= c->ecn_retries) { /* then without: it may be the reason */
		o->flags |= TCP_ECE | TCP_CWR;
		t->ecn_tried = true;
	} else if (!first && t->ecn_ok) {
		o->flags |= TCP_ECE;
	}
	t->need_syn = false;
	t->last_snd = t->host->now;
	if (!first)
		acked_by(t, o);
	tcp_timer_rtx(t);
}

static void out_ack(struct tcp *t, struct tcp_out *o, uint32_t seq)
{
	build(t, o, seq, TCP_ACK);
	if (sack_wanted(t)) {
		uint32_t b[4][2];
		unsigned n = sack_blocks(t, b);

		o->opt_len = (uint8_t)tcp_opt_sack(o->opt, o->opt_len, b, n);
	}
	acked_by(t, o);
}

static void count_unit(struct tcp_host *h, uint32_t len)
{
	unsigned b = len == 0 ? 0 : 32 - (unsigned)__builtin_clz(len);

	h->c.units[b < TCP_UNITS ? b : TCP_UNITS - 1]++;
	h->c.unit_bytes += len;
	h->c.unit_count++;
}

/* Bytes [from, from + n) of a segment, from its granule size. */
static void out_data(struct tcp *t, struct tcp_out *o, struct tcp_txseg *s, uint32_t from,
	uint32_t n, bool again)
{
	uint8_t flags = TCP_ACK;

	if (s->fin)
		flags |= TCP_FIN;
	if (s->psh && from + n == s->len)
		flags |= TCP_PSH;
	build(t, o, s->seq + from, flags);
	o->len = n;
	o->gso_size = n > t->mss ? (uint16_t)t->mss : 0;
	o->nfrag = tcp_gather(s, from, n, o->frag);
	o->account = n > 0 ? &t->account : NULL;
	if (t->ecn_ok && n > 0 && !again) {
		o->ecn = 2; /* ECT(0), never on a retransmission [RFC 3168 6.1.5] */
		if (t->cwr)
			o->flags |= TCP_CWR;
		t->cwr = false;
	}
	if (!sack_wanted(t))
		acked_by(t, o);
	t->last_snd = t->host->now;
	t->bytes_sent += n;
	tcp_pace_sent(t, n);
	t->segs_out += n > t->mss ? (n - 1) / t->mss : 0;
	count_unit(t->host, n);
	if (again) {
		t->busy->bytes_retrans += n;
		t->busy->retrans += 1 + (n > t->mss ? (n - 1) / t->mss : 0);
		t->host->c.retrans++;
	}
}

/* ---- retransmission ---- */

static uint64_t run_mask(unsigned first, unsigned n)
{
	return (n >= 64 ? ~0ull : (1ull << n) - 1) << first;
}

/* The granules from `first` on as one unit: at most `n` of them, within the small-queue rules. */
static void out_again(
	struct tcp *t, struct tcp_out *o, struct tcp_txseg *s, unsigned first, unsigned n)
{
	uint32_t from = first * s->gran, len = u32_min(n * s->gran, s->len - u32_min(from, s->len));

	if (s->fin) {
		from = len = 0;
	} else if (seq_lt(s->seq + from, t->snd_una)) { /* the peer took a part of a granule */
		uint32_t had = t->snd_una - (s->seq + from);

		had = u32_min(had, len - 1);
		from += had;
		len -= had;
	}
	out_data(t, o, s, from, len, true);
	tcp_loss_sent(t, s, run_mask(first, n), true);
}

static bool out_lost(struct tcp *t, struct tcp_out *o)
{
	uint32_t quota;
	struct tcp_txseg *s;

	if (t->busy->loss.lost <= t->busy->loss.rtx)
		return false;
	quota = tcp_loss_quota(t);
	TAILQ_FOREACH (s, &t->busy->txq, q) {
		uint64_t want = s->lost & ~s->rtx;
		unsigned first, n;

		if (s->gran == 0)
			return false;
		if (want == 0)
			continue;
		first = (unsigned)__builtin_ctzll(want);
		want = ~(want >> first);
		n = want != 0 ? (unsigned)__builtin_ctzll(want) : 64;
		n = u32_min(n, TCP_GRANULES - first);
		if (n * s->gran > quota)
			n = quota / s->gran;
		if (n == 0 && tcp_inflight(t) == 0)
			n = 1;
		if (n == 0)
			return false;
		if (t->host->conf.no_tso)
			n = 1;
		out_again(t, o, s, first, n);
		return true;
	}
	return false;
}

/* ---- new data ---- */

/* The largest unit that should leave at once: about 1 ms of the rate, more on short paths. */
static uint32_t burst_limit(const struct tcp *t)
{
	uint32_t goal = tcp_size_goal(t), gso = t->host->conf.gso_max;
	uint64_t burst, r;

	if (t->host->conf.no_autosize || t->srtt <= 0 || goal <= t->mss)
		return goal;
	burst = tcp_pacing_rate(t) >> 10;
	r = (uint64_t)(t->min_rtt / 1000) >> 9;
	if (r < 32)
		burst += gso >> r;
	if (burst < 2 * t->mss)
		burst = 2 * t->mss;
	return burst < goal ? (uint32_t)(burst / t->mss) * t->mss : goal;
}

static bool small_queue_full(struct tcp *t, uint32_t unit)
{
	uint64_t limit = tcp_pacing_rate(t) >> 10, out = t->account.outstanding_bytes;

	if (limit < 2ull * unit)
		limit = 2ull * unit;
	if (limit > 1 << 20)
		limit = 1 << 20;
	if (out <= limit || t->snd_nxt - t->snd_una <= unit || t->host->conf.no_tsq)
		return false;
	if (!t->throttled)
		t->host->c.tsq_throttled++;
	t->throttled = t->account.waiting = true;
	return true;
}

/* A short last piece waits for its elders. [RFC 9293 3.7.4], as Minshall put it. */
static bool nagle_holds(struct tcp *t, const struct tcp_txseg *s, uint32_t part)
{
	if (part == 0 || (TAILQ_NEXT(s, q) != NULL && TAILQ_NEXT(s, q)->fin))
		return false;
	if (t->cork || t->more)
		return true;
	if (t->nodelay || t->snd_una == t->snd_nxt)
		return false;
	if (!seq_lt(t->snd_una, t->snd_sml))
		return false;
	t->host->c.nagle_held++;
	return true;
}

/* Bytes of ours are still below: they will call when they are gone, until then this may grow. */
static bool autocork_holds(struct tcp *t, const struct tcp_txseg *s, uint32_t goal)
{
	if (t->host->conf.no_autocork || s->closed || s->len >= goal || t->fin_queued ||
		t->snd_una == t->snd_nxt || t->account.outstanding_bytes <= s->len)
		return false;
	if (!t->throttled)
		t->host->c.autocorked++;
	t->throttled = t->account.waiting = true;
	return true;
}

/* Wait for the next ACK, soon expected, if then a bigger unit can leave. */
static bool defer(struct tcp *t, const struct tcp_txseg *s, uint32_t limit, uint32_t burst)
{
	nsec_t now = t->host->now, soon = t->srtt / 2;
	const struct tcp_txseg *head = TAILQ_FIRST(&t->busy->txq);

	if (t->busy->loss.ca != TCP_CA_OPEN || t->snd_una == t->snd_nxt || t->srtt <= 0 ||
		limit >= burst)
		return false;
	if (now - t->last_snd > NSEC_PER_MSEC || (limit >= s->len && !TAILQ_NEXT(s, q)))
		return false;
	if (limit >= u32_min(t->snd_wnd, t->cc.cwnd) / 3 || t->fin_queued)
		return false;
	if (soon > NSEC_PER_MSEC)
		soon = NSEC_PER_MSEC;
	if (head->xmit + t->srtt - now > soon)
		return false;
	t->host->c.tso_deferred++;
	return true;
}

/* What the windows allow of the next unit, in whole segments; 0: nothing. */
static uint32_t window_limit(struct tcp *t, const struct tcp_txseg *s)
{
	uint32_t edge = t->snd_una + t->snd_wnd, wnd, quota = tcp_loss_quota(t);

	wnd = seq_lt(t->snd_nxt, edge) ? edge - t->snd_nxt : 0;
	if (quota < t->mss && quota < s->len) {
		t->cc.limited = true;
		if (tcp_inflight(t) > 0)
			return 0;
		quota = t->mss;
	}
	if (wnd < t->mss && wnd < s->len) /* [RFC 9293 3.8.6.2.1] */
		return wnd > 0 && wnd >= t->max_snd_wnd / 2 ? wnd : 0;
	if (quota < wnd && quota < s->len)
		t->cc.limited = true;
	wnd = u32_min(wnd, quota);
	return wnd >= t->mss ? wnd / t->mss * t->mss : wnd;
}

static bool fin_fits(const struct tcp *t)
{
	return seq_lt(t->snd_nxt, t->snd_una + t->snd_wnd);
}

static void sent_first(struct tcp *t, struct tcp_txseg *s)
{
	s->gran = s->fin ? 1 : t->mss;
	s->ngran = s->fin ? 1 : (uint8_t)((s->len + t->mss - 1) / t->mss);
	t->snd_nxt = s->seq + s->len + s->fin;
	t->busy->unsent = TAILQ_NEXT(s, q);
	if (s->len % t->mss != 0)
		t->snd_sml = t->snd_nxt;
	tcp_loss_sent(t, s, txseg_all(s), false);
}

static void out_unit(struct tcp *t, struct tcp_out *o, struct tcp_txseg *s)
{
	struct tcp_txseg *fin;

	out_data(t, o, s, 0, s->len, false);
	sent_first(t, s);
	fin = t->busy->unsent;
	if (fin != NULL && fin->fin && fin_fits(t)) { /* goes along */
		o->flags |= TCP_FIN;
		sent_first(t, fin);
	}
	tcp_timer_rtx(t);
}

/* How much of `s` goes now; 0: it waits. */
static uint32_t unit_size(struct tcp *t, struct tcp_txseg *s)
{
	uint32_t burst = burst_limit(t), limit = u32_min(window_limit(t, s), burst), n, part;

	if (limit == 0 || small_queue_full(t, u32_min(s->len, burst)))
		return 0;
	txseg_grow(t, s, limit);
	n = u32_min(s->len, limit);
	if (defer(t, s, limit, burst))
		return 0;
	if (n < s->len)
		return n;
	part = n % t->mss;
	if (TAILQ_NEXT(s, q) != NULL && !TAILQ_NEXT(s, q)->fin)
		return n;
	if (nagle_holds(t, s, part))
		return n - part;
	if (part != 0 && autocork_holds(t, s, tcp_size_goal(t)))
		return n - part;
	return n;
}

static bool out_new(struct tcp *t, struct tcp_out *o)
{
	struct tcp_txseg *s = t->busy->unsent;
	uint32_t n;

	if (s == NULL || !tcp_synced(t))
		return false;
	if (s->fin) {
		if (!fin_fits(t))
			return false;
		out_data(t, o, s, 0, 0, false);
		sent_first(t, s);
		tcp_timer_rtx(t);
		return true;
	}
	n = unit_size(t, s);
	if (n == 0 || (n < s->len && !txseg_split(t, s, n)))
		return false;
	out_unit(t, o, s);
	return true;
}

/* ---- probes ---- */

/* One segment of new data if the window takes it, else the last one again. [RFC 8985 7.3] */
static bool out_tlp(struct tcp *t, struct tcp_out *o)
{
	struct tcp_txseg *s = t->busy->unsent, *last;
	uint32_t wnd = t->snd_una + t->snd_wnd - t->snd_nxt;

	t->busy->loss.tlp_now = false;
	if (t->snd_una == t->snd_nxt)
		return false;
	if (s != NULL && !s->fin && (int32_t)wnd >= (int32_t)u32_min(s->len, t->mss)) {
		if (s->len > t->mss && !txseg_split(t, s, t->mss))
			return false;
		out_unit(t, o, s);
		t->busy->loss.tlp_rtx = false;
		t->busy->loss.tlp_end = t->snd_nxt;
		return true;
	}
	last = s != NULL ? TAILQ_PREV(s, tcp_txq, q) : TAILQ_LAST(&t->busy->txq, tcp_txq);
	if (last == NULL)
		return false;
	if (last->fin && TAILQ_PREV(last, tcp_txq, q) != NULL)
		last = TAILQ_PREV(last, tcp_txq, q);
	t->busy->loss.tlp_rtx = true;
	t->busy->loss.tlp_end = t->snd_nxt;
	out_again(t, o, last, last->ngran - 1u, 1);
	if (TAILQ_NEXT(last, q) != NULL && TAILQ_NEXT(last, q)->fin && t->busy->unsent == NULL)
		o->flags |= TCP_FIN;
	tcp_timer_rtx(t);
	return true;
}

/* A window of zero, or too small for sender's patience. [RFC 9293 3.8.6.1] */
static bool out_probe(struct tcp *t, struct tcp_out *o)
{
	struct tcp_txseg *s = t->busy->unsent;
	uint32_t edge = t->snd_una + t->snd_wnd;

	t->probe_now = false;
	if (s != NULL && !s->fin && seq_lt(t->snd_nxt, edge)) {
		uint32_t n = u32_min(u32_min(edge - t->snd_nxt, s->len), t->mss);

		if (n < s->len && !txseg_split(t, s, n))
			return false;
		out_unit(t, o, s);
		return true;
	}
	out_ack(t, o, t->snd_una - 1);
	return true;
}

static bool out_fin_again(struct tcp *t, struct tcp_out *o)
{
	struct tcp_txseg *s = TAILQ_LAST(&t->busy->txq, tcp_txq);

	t->fin_again = false;
	if (s == NULL || !s->fin || s->gran == 0)
		return false;
	out_data(t, o, s, 0, 0, false);
	return true;
}

/* ---- the order ---- */

/* The FIN needs a place in the queue; when the pool is empty it tries again. */
static void fin_place(struct tcp *t)
{
	struct tcp_txseg *last = TAILQ_LAST(&t->busy->txq, tcp_txq), *s;

	if (!t->fin_queued || (last != NULL && last->fin) || t->snd_nxt == t->write_seq + 1)
		return;
	s = txseg_new(t->host);
	if (s == NULL) {
		tcp_timer_set(t, TCP_T_USER, t->host->now + 10 * NSEC_PER_MSEC);
		return;
	}
	s->seq = t->write_seq;
	s->fin = true;
	TAILQ_INSERT_TAIL(&t->busy->txq, s, q);
	if (t->busy->unsent == NULL)
		t->busy->unsent = s;
}

/* New data before what the timer thinks lost; if there is none to send, as ever. [RFC 5682 2] */
static bool out_frto(struct tcp *t, struct tcp_out *o)
{
	if (out_new(t, o))
		return true;
	if (t->snd_nxt == t->busy->loss.high_seq)
		t->busy->loss.frto = FRTO_OFF;
	return false;
}

static bool out_queue(struct tcp *t, struct tcp_out *o)
{
	bool held;

	fin_place(t);
	if (t->fin_again && out_fin_again(t, o))
		return true;
	if (t->probe_now && out_probe(t, o))
		return true;
	held = tcp_pace_holds(t);
	if (!held && t->busy->loss.frto == FRTO_NEW && out_frto(t, o))
		return true;
	if (!held && t->busy->loss.frto != FRTO_NEW && out_lost(t, o))
		return true;
	if (t->busy->loss.tlp_now && out_tlp(t, o))
		return true;
	if (!held && out_new(t, o))
		return true;
	t->busy->pace_held = held;
	if (t->busy->unsent != NULL && t->snd_una == t->snd_nxt &&
		t->busy->timer[TCP_T_RTX] == NSEC_NEVER && !t->throttled)
		tcp_timer_rtx(t); /* data that may not go is never without a timer */
	return false;
}

bool tcp_out_next(struct tcp *t, struct tcp_out *o)
{
	if (t->state == TCPS_CLOSED)
		return false;
	if (t->need_syn) {
		out_syn(t, o);
		return true;
	}
	if (tcp_synced(t) && t->state != TCPS_TIME_WAIT && out_queue(t, o))
		return true;
	if (t->keep_now) {
		t->keep_now = false;
		out_ack(t, o, t->snd_una - 1);
		return true;
	}
	if (!t->ack_now || t->state == TCPS_SYN_SENT)
		return false;
	out_ack(t, o, t->snd_nxt);
	return true;
}

void tcp_push_check(struct tcp *t)
{
	bool fin = t->fin_queued && t->snd_nxt != t->write_seq + 1;

	if (t->busy->unsent != NULL || fin || t->busy->loss.lost > t->busy->loss.rtx)
		tcp_make_ready(t);
}
