/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_in_data: the seventh and eighth step: the bytes and the FIN; what window is offered, when an
 * ACK goes out, how the receive buffer grows. [RFC 9293 3.10.7.4, 3.8.6; RFC 5681 4.2; RFC 2018 4]
 *
 * Bytes that were taken stay what they are: a segment fills only the gaps between those that are
 * there. A piece fills one gap, so it comes behind the last buffer of the interval before the gap:
 * finding the place is a search by halving, whatever the order strangers choose.
 */
#include <string.h>

#include "net/tcp_int.h"

#define COMPRESS_FIRST 3
#define COMPRESS_MAX   44
#define COMPRESS_WAIT  NSEC_PER_MSEC

/* ---- the window ---- */

static uint32_t free_window(const struct tcp *t)
{
	uint32_t spare = t->rx_true < t->rcvbuf ? t->rcvbuf - t->rx_true : 0;

	if (t->host->conf.fixed_rcvbuf)
		return t->rx_bytes < t->rcvbuf ? t->rcvbuf - t->rx_bytes : 0;
	if (t->host->conf.win_2013)
		return t->rcv_ssthresh != 0 ? u32_min(spare / 2, t->rcv_ssthresh) : spare / 2;
	spare = (uint32_t)((uint64_t)spare * t->ratio >> 8);
	return t->rcv_ssthresh != 0 ? u32_min(spare, t->rcv_ssthresh) : spare;
}

uint32_t tcp_rcv_window(const struct tcp *t)
{
	uint32_t was = seq_lt(t->rcv_nxt, t->rcv_adv) ? t->rcv_adv - t->rcv_nxt : 0;
	uint32_t win = u32_min(free_window(t), 65535u << t->rcv_ws);
	uint32_t step = u32_min(t->rcvbuf / 2, t->rcv_mss != 0 ? t->rcv_mss : TCP_MSS_DEFAULT4);

	if (win < was)
		return was;                  /* what was promised stays [RFC 9293 3.8.6] */
	return win - was < step ? was : win; /* no silly windows [3.8.6.2.2] */
}

/* Each round trip, room for twice what the user took in the last one. */
void tcp_rcv_tune(struct tcp *t)
{
	struct tcp_host *h = t->host;
	nsec_t rtt =
		t->rcv_rtt != 0 && (t->srtt == 0 || t->rcv_rtt < t->srtt) ? t->rcv_rtt : t->srtt;
	uint32_t copied = t->copied_seq - t->rcvq_seq;

	if (t->rcv_fixed || rtt == 0 || h->now - t->rcvq_at < rtt)
		return;
	if (copied > t->rcvq_space) {
		uint64_t want =
			((uint64_t)copied * 2 + 16 * t->rcv_mss) * 256 / u32_max(t->ratio, 16);

		if (want > h->conf.rcvbuf_max)
			want = h->conf.rcvbuf_max;
		t->rcvbuf = u32_max(t->rcvbuf, (uint32_t)want);
		t->rcvq_space = copied;
	}
	t->rcvq_seq = t->copied_seq;
	t->rcvq_at = h->now;
}

/* A window's worth takes a round trip, if the peer fills it: an upper bound. */
static void rcv_rtt_note(struct tcp *t)
{
	nsec_t now = t->host->now, rtt = now - t->rtt_at;

	if (seq_lt(t->rcv_nxt, t->rtt_seq))
		return;
	if (rtt > 0)
		t->rcv_rtt = t->rcv_rtt == 0 || rtt < t->rcv_rtt
				     ? rtt
				     : t->rcv_rtt + (rtt - t->rcv_rtt) / 8;
	t->rtt_seq = t->rcv_nxt + u32_max(t->rcv_adv - t->rcv_nxt, 1);
	t->rtt_at = now;
}

/* ---- keeping ---- */

static uint32_t frame_true(const struct frame *f)
{
	if (f->charge != 0)
		return f->charge;
	return f->backing != NULL ? f->backing->truesize : frame_len(f);
}

/* Few bytes of a big buffer are copied: a byte must not pin 64 KiB. */
static struct pkt *keep_bytes(
	struct tcp_host *h, const struct frame *f, uint32_t off, uint32_t n, uint32_t *at)
{
	struct keep_rule rule = {.order = 3};
	struct pkt *p;

	*at = off;
	if (n >= frame_true(f) / 4 && (f->backing != NULL || n > 2048))
		return frame_keep(f, h->conf.pool, &rule);
	p = pkt_new(h->conf.pool, 0, n);
	if (p == NULL)
		return NULL;
	frame_copy(f, off, n, &(struct iovec){p->head, n}, 1, 0);
	*at = 0;
	h->c.rcv_compact++;
	return p;
}

static struct tcp_rx *rx_make(struct tcp *t, const struct tcp_in *in, uint32_t seq, uint32_t n)
{
	struct tcp_host *h = t->host;
	struct tcp_rx *r = STAILQ_FIRST(&h->rx_free);

	if (r == NULL) {
		h->c.rcv_nobuf++;
		return NULL;
	}
	r->pkt = keep_bytes(h, in->s->frame, in->off + (seq - in->seq), n, &r->off);
	if (r->pkt == NULL) {
		h->c.rcv_nobuf++;
		return NULL;
	}
	STAILQ_REMOVE_HEAD(&h->rx_free, q);
	h->rx_live++;
	r->seq = seq;
	r->len = n;
	t->rx_true += r->pkt->truesize;
	t->ratio =
		(t->ratio * 7 + u32_min(255, (uint32_t)((uint64_t)n * 256 / r->pkt->truesize))) / 8;
	return r;
}

static void deliver(struct tcp *t, struct tcp_rx *r)
{
	STAILQ_INSERT_TAIL(&t->busy->rxq, r, q);
	t->rx_bytes += r->len;
	t->bytes_received += r->len;
	t->rcv_nxt = r->seq + r->len;
}

/* ---- behind a gap ---- */

static bool ooo_have(struct tcp *t)
{
	struct tcp_host *h = t->host;

	if (t->ooo != NULL)
		return true;
	t->ooo = tcp_ooo_new(h);
	if (t->ooo == NULL) {
		h->c.rcv_nobuf++;
		return false;
	}
	t->ooo->iv.n = 0;
	t->ooo->acks = 0;
	for (unsigned i = 0; i < 4; i++)
		t->ooo->recent[i] = t->rcv_nxt; /* in no interval */
	STAILQ_INIT(&t->ooo->rx);
	return true;
}

static void ooo_done(struct tcp *t)
{
	if (t->ooo == NULL || t->ooo->iv.n > 0)
		return;
	STAILQ_INSERT_HEAD(&t->host->ooo_free, t->ooo, q);
	t->ooo = NULL;
}

/* Give up the interval that is furthest away: it will be sent again. */
static void ooo_prune(struct tcp *t)
{
	struct tcp_ooo *o = t->ooo;
	struct tcp_rx *prev, *r, *next;

	if (o == NULL || o->iv.n == 0)
		return;
	prev = o->iv.n > 1 ? o->last[o->iv.n - 2] : NULL;
	r = prev != NULL ? STAILQ_NEXT(prev, q) : STAILQ_FIRST(&o->rx);
	for (; r != NULL; r = next) {
		next = STAILQ_NEXT(r, q);
		t->rx_true -= r->pkt->truesize;
		tcp_rx_free(t->host, r);
	}
	if (prev != NULL) { /* what is before stays */
		STAILQ_NEXT(prev, q) = NULL;
		o->rx.stqh_last = &STAILQ_NEXT(prev, q);
	} else {
		STAILQ_INIT(&o->rx);
	}
	o->iv.n--;
	t->host->c.ooo_pruned++;
	ooo_done(t);
}

/* The interval that changed last is told first, then those before it. [RFC 2018 4] */
static void sack_note(struct tcp *t, const struct range *r)
{
	uint32_t *recent = t->ooo->recent;

	if (!seq_le(r->beg, recent[0]) || !seq_lt(recent[0], r->end))
		memmove(recent + 1, recent, sizeof(t->ooo->recent) - sizeof(recent[0]));
	recent[0] = r->beg;
}

/* `r` lies in a gap. `last` follows what ranges_add did: a new interval, a longer one, or two joined. */
static bool ooo_insert(struct tcp *t, struct tcp_rx *r)
{
	struct tcp_ooo *o = t->ooo;
	unsigned before = o->iv.n, i = ranges_find(&o->iv, r->seq), at;
	struct tcp_rx *prev = i > 0 ? o->last[i - 1] : NULL;

	if (!ranges_add(&o->iv, r->seq, r->seq + r->len, &at))
		return false;
	if (prev != NULL)
		STAILQ_INSERT_AFTER(&o->rx, prev, r, q);
	else
		STAILQ_INSERT_HEAD(&o->rx, r, q);
	if (o->iv.n > before) {
		memmove(o->last + at + 1, o->last + at, (before - at) * sizeof(o->last[0]));
		o->last[at] = r;
	} else if (o->iv.n < before) {
		memmove(o->last + at, o->last + at + 1, (before - at - 1) * sizeof(o->last[0]));
	} else if (o->iv.r[at].end == r->seq + r->len) {
		o->last[at] = r;
	}
	sack_note(t, &o->iv.r[at]);
	t->host->c.ooo_queued++;
	return true;
}

/* The gap at the front is closed: its interval is in order now. */
static void ooo_drain(struct tcp *t)
{
	struct tcp_ooo *o = t->ooo;

	while (o != NULL && o->iv.n > 0 && o->iv.r[0].beg == t->rcv_nxt) {
		struct tcp_rx *last = o->last[0], *r;

		do {
			r = STAILQ_FIRST(&o->rx);
			STAILQ_REMOVE_HEAD(&o->rx, q);
			deliver(t, r);
		} while (r != last);
		ranges_trim(&o->iv, t->rcv_nxt);
		memmove(o->last, o->last + 1, o->iv.n * sizeof(o->last[0]));
		t->ack_now = true; /* a gap was closed [RFC 5681 4.2] */
	}
	ooo_done(t);
}

static bool rx_room(struct tcp *t, const struct tcp_in *in, bool in_order)
{
	uint32_t limit = t->host->conf.fixed_rcvbuf ? 4 * t->rcvbuf + (1 << 17) : t->rcvbuf;

	while (in_order && t->rx_true > limit && t->ooo != NULL)
		ooo_prune(t);
	if (t->rx_true <= limit && in->len <= limit)
		return true;
	t->host->c.rcv_nobuf++;
	return false;
}

/* One piece that is in nobody's hands yet. */
static bool take_piece(struct tcp *t, const struct tcp_in *in, uint32_t seq, uint32_t n)
{
	/* what comes with a SYN is not acknowledged before the connection stands [3.10.7.3] */
	bool in_order = seq == t->rcv_nxt && t->state != TCPS_SYN_RCVD;
	struct tcp_rx *r;

	if (!rx_room(t, in, in_order) || (!in_order && !ooo_have(t)))
		return false;
	r = rx_make(t, in, seq, n);
	if (r == NULL && in_order &&
		t->ooo != NULL) { /* what is in order goes before what is not */
		ooo_prune(t);
		r = rx_make(t, in, seq, n);
	}
	if (r != NULL && in_order) {
		deliver(t, r);
		ooo_drain(t);
		return true;
	}
	if (r != NULL && ooo_insert(t, r))
		return true;
	if (r != NULL) {
		t->rx_true -= r->pkt->truesize;
		tcp_rx_free(t->host, r);
		t->host->c.ooo_pruned++;
	}
	ooo_done(t);
	return false;
}

static void note_dsack(struct tcp *t, uint32_t beg, uint32_t end)
{
	if (!t->sack_ok)
		return;
	t->dsack[0] = beg;
	t->dsack[1] = end;
	t->host->c.dup_data++;
}

/* Walk the segment gap by gap. */
static void take_gaps(struct tcp *t, const struct tcp_in *in)
{
	uint32_t cur = in->seq, end = in->seq + in->len;

	while (seq_lt(cur, end)) {
		uint32_t stop = end;

		if (seq_lt(cur, t->rcv_nxt)) { /* an interval was drained below us */
			cur = t->rcv_nxt;
			continue;
		}
		if (t->ooo != NULL) {
			const struct ranges *iv = &t->ooo->iv;
			unsigned i = ranges_find(iv, cur);

			if (i < iv->n && seq_le(iv->r[i].beg, cur)) {
				note_dsack(t, cur, seq_lt(end, iv->r[i].end) ? end : iv->r[i].end);
				cur = iv->r[i].end;
				continue;
			}
			if (i < iv->n && seq_lt(iv->r[i].beg, end))
				stop = iv->r[i].beg;
		}
		if (!take_piece(t, in, cur, stop - cur))
			return;
		cur = stop;
	}
}

/* ---- when to acknowledge ---- */

static void rcv_mss_note(struct tcp *t, const struct tcp_in *in)
{
	uint32_t seg = in->s->gso_size != 0 ? in->s->gso_size : in->s->len;

	if (seg > t->rcv_mss) /* a wire segment's, not the super-segment's */
		t->rcv_mss = seg;
}

/* How long an ACK about a gap may be saved: a twentieth of a round trip, at most a millisecond. */
static nsec_t compress_wait(const struct tcp *t)
{
	bool own = t->rcv_rtt != 0 && (t->srtt == 0 || t->rcv_rtt < t->srtt);
	nsec_t part = (own ? t->rcv_rtt : t->srtt) / 20;

	return part < COMPRESS_WAIT ? part : COMPRESS_WAIT;
}

/*
 * Behind a gap the first ACKs go at once, so that the sender finds the loss; of those after them one
 * stands for up to 44: each tells all the intervals again.
 */
static void ack_gap(struct tcp *t, uint32_t was)
{
	struct tcp_host *h = t->host;
	nsec_t wait = compress_wait(t);
	bool plain = h->conf.plain_delack || !t->sack_ok || t->dsack[0] != t->dsack[1];

	if (t->ooo != NULL && t->rcv_nxt != was)
		t->ooo->acks = 0;
	if (plain || t->ooo == NULL || t->ack_now || t->rcv_nxt != was || wait == 0 ||
		t->ooo->acks++ < COMPRESS_FIRST || t->ooo->acks % COMPRESS_MAX == 0) {
		t->ack_now = true;
		return;
	}
	h->c.acks_compressed++;
	if (t->busy->timer[TCP_T_DELACK] > h->now + wait)
		tcp_timer_set(t, TCP_T_DELACK, h->now + wait);
}

static void ack_policy(struct tcp *t, const struct tcp_in *in, uint32_t was)
{
	struct tcp_host *h = t->host;

	if (t->state == TCPS_SYN_RCVD)
		return;
	if (t->rcv_nxt == was || t->ooo != NULL) { /* out of order: at once [RFC 5681 4.2] */
		ack_gap(t, was);
		return;
	}
	if (in->s->gso_size != 0 || t->rcv_nxt - t->last_ack_sent >= 2 * t->rcv_mss) {
		t->ack_now = true;
		return;
	}
	if (t->quick || (t->quickacks > 0 && !h->conf.plain_delack)) {
		t->quickacks -= t->quickacks > 0;
		t->ack_now = true;
		return;
	}
	if (h->conf.plain_delack && t->busy->timer[TCP_T_DELACK] != NSEC_NEVER) {
		t->ack_now = true;
		return;
	}
	if (t->busy->timer[TCP_T_DELACK] == NSEC_NEVER && !t->ack_now) {
		nsec_t wait = t->srtt / 4;

		if (wait < 4 * NSEC_PER_MSEC)
			wait = 4 * NSEC_PER_MSEC;
		if (h->conf.plain_delack)
			wait = h->conf.delack;
		tcp_timer_set(
			t, TCP_T_DELACK, h->now + (wait < h->conf.delack ? wait : h->conf.delack));
	}
}

/*
 * Linux of 2013: what is offered grows to half of the buffer with segments of which at least half of
 * what is charged is payload; with others to half of the largest window there may be, to a quarter if
 * they are half as good, and so on.
 */
static uint32_t offer_limit_2013(const struct tcp *t, const struct tcp_in *in)
{
	uint32_t charged = frame_true(in->s->frame) / 2, most = t->host->conf.rcvbuf_max / 2;

	while (charged > in->len && most != 0) {
		charged /= 2;
		most /= 2;
	}
	return u32_min(most, t->rcvbuf / 2);
}

static void grow_offer(struct tcp *t, const struct tcp_in *in)
{
	const uint32_t more = u32_max(2 * t->rcv_mss, 2 * in->len);

	if (t->host->conf.win_2013) {
		const uint32_t limit = offer_limit_2013(t, in);

		if (t->rcv_ssthresh != 0 && t->rcv_ssthresh < limit)
			t->rcv_ssthresh = u32_min(t->rcv_ssthresh + more, limit);
	} else if (t->rcv_ssthresh != 0 && t->rcv_ssthresh < t->rcvbuf && t->ratio >= 32) {
		t->rcv_ssthresh += more;
	}
}

/* False: the states that take no more. */
static bool data_wanted(struct tcp *t, struct tcp_in *in)
{
	if (t->state != TCPS_ESTABLISHED && t->state != TCPS_FIN_WAIT_1 &&
		t->state != TCPS_FIN_WAIT_2 && t->state != TCPS_SYN_RCVD)
		return false;
	if (t->orphan && t->state != TCPS_SYN_RCVD) { /* nobody will read it [RFC 9293 3.6.1] */
		tcp_send_rst(t);
		tcp_die(t, 0);
		return false;
	}
	if (t->rcv_fin) { /* nothing comes behind the end */
		uint32_t room = seq_lt(in->seq, t->rcv_fin_seq) ? t->rcv_fin_seq - in->seq : 0;

		in->len = u32_min(in->len, room);
	}
	return in->len > 0;
}

/* The connection stands: what came with the peer's SYN is in order now. */
static void take_waiting(struct tcp *t, struct tcp_in *in)
{
	uint32_t was = t->rcv_nxt;
	bool ack_now = t->ack_now;

	if (t->state == TCPS_SYN_RCVD || t->ooo->iv.r[0].beg != was)
		return;
	ooo_drain(t);
	t->ack_now = ack_now;
	ack_policy(t, in, was);
	tcp_notify(t);
}

void tcp_in_data(struct tcp *t, struct tcp_in *in)
{
	uint32_t was = t->rcv_nxt;

	if (t->ooo != NULL)
		take_waiting(t, in);
	if (in->len == 0 || !data_wanted(t, in))
		return;
	rcv_mss_note(t, in);
	take_gaps(t, in);
	if (t->rcv_nxt != was) {
		rcv_rtt_note(t);
		grow_offer(t, in);
		tcp_notify(t);
	}
	ack_policy(t, in, was);
}

/* ---- the end ---- */

static void fin_taken(struct tcp *t)
{
	t->fin_seen = true;
	t->rcv_nxt++;
	t->rcv_adv = seq_max(t->rcv_adv, t->rcv_nxt);
	t->ack_now = true;
	if (t->state == TCPS_ESTABLISHED || t->state == TCPS_SYN_RCVD) {
		tcp_set_state(t, TCPS_CLOSE_WAIT);
	} else if (t->state == TCPS_FIN_WAIT_1) {
		/* our FIN crossed it: send it along with the ACK if it is all that is out */
		t->fin_again = t->snd_una == t->write_seq && t->snd_nxt == t->write_seq + 1;
		tcp_set_state(t, TCPS_CLOSING);
	} else if (t->state == TCPS_FIN_WAIT_2) {
		tcp_enter_timewait(t);
	}
	tcp_notify(t);
	tcp_make_ready(t);
}

void tcp_in_fin(struct tcp *t, struct tcp_in *in)
{
	if (t->state == TCPS_CLOSED || t->state == TCPS_TIME_WAIT || t->state == TCPS_SYN_RCVD)
		return;
	if ((in->flags & TCP_FIN) && !t->rcv_fin && !t->fin_seen) {
		uint32_t at = in->seq + in->len;

		if (t->ooo != NULL && seq_lt(at, t->ooo->iv.r[t->ooo->iv.n - 1].end))
			return; /* an end before bytes we have: a lie */
		t->rcv_fin = true;
		t->rcv_fin_seq = at;
		t->ack_now = true;
	}
	if (t->rcv_fin && !t->fin_seen && t->rcv_nxt == t->rcv_fin_seq)
		fin_taken(t);
}
