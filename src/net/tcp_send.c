/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_send: how the user's bytes become segments that wait: copied once into chunks, appended to the
 * last segment until it has the size goal (S4). When is a segment finished?
 *
 *	it has reached the goal (push_at=goal) or one mss (push_at=mss, the rule before 2008) and
 *	  - more than half of the largest window seen is unpushed: all of it is pushed
 *	  - or it could leave now, being the first that waits: exactly this one is pushed
 *	at the end of the call, unless more is announced: the last one, with PSH
 *
 * Both ways in, copying and zero-copy, ask append_done(). A copy is bounded by a page, as in 2008.
 */
#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "net/tcp_int.h"

#define APPEND_RESERVE 16u

/* Half of the largest window ever offered, unless that is tiny. */
static uint32_t bound_to_half_window(const struct tcp *t, uint32_t n)
{
	uint32_t cut = t->max_snd_wnd > 536 ? t->max_snd_wnd / 2 : t->max_snd_wnd;

	return cut > 0 && n > cut ? u32_max(cut, 68 - TCP_HDR) : n;
}

uint32_t tcp_size_goal(const struct tcp *t)
{
	const struct tcp_conf *c = &t->host->conf;
	uint32_t hdrs = tcp_ip_hdr(&t->node.tuple) + TCP_HDR + (t->ts_ok ? TCP_TS_OPT : 0), segs;

	if (c->no_tso || c->gso_max <= hdrs)
		return t->mss;
	segs = bound_to_half_window(t, c->gso_max - hdrs) / t->mss;
	segs = u32_min(segs, TCP_GRANULES);
	return u32_max(segs, 1) * t->mss;
}

void tcp_txq_free(struct tcp *t)
{
	struct tcp_txseg *s;

	if (tcp_resting(t))
		return;
	while ((s = TAILQ_FIRST(&t->busy->txq)) != NULL) {
		TAILQ_REMOVE(&t->busy->txq, s, q);
		txseg_free(t->host, s);
	}
	t->busy->unsent = NULL;
	t->queued = 0;
	t->busy->loss.sacked = t->busy->loss.lost = t->busy->loss.rtx = 0;
}

/* The last ones are for cutting what is queued already: else a smaller MSS would stop it for ever. */
static bool append_room(struct tcp_host *h)
{
	return h->conf.txsegs - h->txseg_live > u32_min(h->conf.txsegs / 8, APPEND_RESERVE);
}

static struct tcp_txseg *append_new(struct tcp *t)
{
	struct tcp_host *h = t->host;
	struct tcp_txseg *s;

	if (!append_room(h) && (!tcp_press(h, TCP_POOL_SEGS, t) || !append_room(h))) {
		h->c.snd_nobuf++;
		return NULL;
	}
	s = txseg_new(h);
	if (s == NULL)
		return NULL;
	s->seq = t->write_seq;
	TAILQ_INSERT_TAIL(&t->busy->txq, s, q);
	if (t->busy->unsent == NULL)
		t->busy->unsent = s;
	return s;
}

/* The segment that takes the next bytes: NULL: a new one is needed and not to be had. */
static struct tcp_txseg *append_tail(struct tcp *t, uint32_t goal)
{
	struct tcp_txseg *s = TAILQ_LAST(&t->busy->txq, tcp_txq);
	const struct page_frag *pf = &t->host->send;
	const struct pkt_frag *f;

	if (s == NULL || t->busy->unsent == NULL || s->gran != 0 || s->closed || s->len >= goal)
		return append_new(t);
	f = s->nfrag > 0 ? &s->frag[s->nfrag - 1] : NULL;
	if (s->nfrag == PKT_FRAGS &&
		(f->chunk != pf->chunk ||
			f->data + f->len != chunk_data(pf->pool, pf->chunk) + pf->offset))
		return append_new(t);
	return s;
}

static void append_frag(struct tcp *t, struct tcp_txseg *s, struct pkt_frag f)
{
	struct pkt_frag *last = s->nfrag > 0 ? &s->frag[s->nfrag - 1] : NULL;

	if (last != NULL && last->chunk == f.chunk && last->data + last->len == f.data) {
		last->len += f.len;
		chunk_put(t->host->conf.pool->chunks, f.chunk);
	} else {
		s->frag[s->nfrag++] = f;
	}
	s->len += f.len;
	s->psh = false;
	t->write_seq += f.len;
	t->queued += f.len;
	t->sent_total += f.len;
}

/* Everything before the last segment could leave now. */
static bool tail_is_next(const struct tcp *t, const struct tcp_txseg *s)
{
	uint32_t ahead = s->seq - t->snd_una;

	return ahead + s->len <= u32_min(t->cc.cwnd, t->snd_wnd);
}

/* After bytes were appended: is this segment, or its whole part, finished? */
static void append_done(struct tcp *t, struct tcp_txseg *s, uint32_t goal)
{
	struct tcp_host *h = t->host;
	uint32_t threshold = h->conf.push_at_mss ? t->mss : goal;

	if (s->len < threshold)
		return;
	if (t->write_seq - t->pushed_seq > t->max_snd_wnd / 2) {
		s->psh = s->closed = true;
		t->pushed_seq = t->write_seq;
		h->c.pushed_window++;
	} else if (tail_is_next(t, s)) {
		s->closed = true;
		h->c.pushed_full++;
	}
}

/* Copy at most a page; how much, 0: no memory. */
static uint32_t append_copy(struct tcp *t, const uint8_t *from, size_t n, uint32_t goal)
{
	struct page_frag *pf = &t->host->send;
	struct tcp_txseg *s = append_tail(t, goal);
	struct pkt_frag f;
	uint32_t left = pf->chunk != NULL ? pf->size - pf->offset : 0, cap;

	if (s == NULL)
		return 0;
	f.len = u32_min(goal - s->len, CHUNK_PAGE);
	if (f.len > n)
		f.len = (uint32_t)n;
	if (left > 0 && f.len > left)
		f.len = left;
	f.data = page_frag_get(pf, f.len, false, &f.chunk, &cap);
	if (f.data == NULL) {
		if (s->len == 0) { /* the queue never holds an empty segment */
			TAILQ_REMOVE(&t->busy->txq, s, q);
			if (t->busy->unsent == s)
				t->busy->unsent = NULL;
			txseg_free(t->host, s);
		}
		t->host->c.snd_nobuf++;
		return 0;
	}
	copy_long(f.data, from, f.len);
	append_frag(t, s, f);
	append_done(t, s, goal);
	return f.len;
}

static int send_state(struct tcp *t)
{
	if (t->error != 0) {
		int err = t->error;

		t->error = 0;
		return -err;
	}
	if (t->fin_queued)
		return -EPIPE;
	switch ((enum tcp_state)t->state) {
	case TCPS_ESTABLISHED:
	case TCPS_CLOSE_WAIT:
		return 0;
	case TCPS_SYN_SENT:
	case TCPS_SYN_RCVD:
		return -EAGAIN;
	case TCPS_CLOSED:
	case TCPS_LISTEN:
	case TCPS_FIN_WAIT_1:
	case TCPS_FIN_WAIT_2:
	case TCPS_CLOSING:
	case TCPS_LAST_ACK:
	case TCPS_TIME_WAIT:
		break;
	}
	return t->node.tuple.lport != 0 ? -EPIPE : -ENOTCONN;
}

/* The buffer follows the congestion window: two of them, so that an ACK finds bytes waiting. */
static void grow_sndbuf(struct tcp *t)
{
	uint64_t want = 2ull * t->cc.cwnd + tcp_size_goal(t);

	if (t->snd_fixed || want <= t->sndbuf)
		return;
	t->sndbuf = (uint32_t)(want < t->host->conf.sndbuf_max ? want : t->host->conf.sndbuf_max);
}

/* The end of a call: what is there shall go, unless more was announced. */
static void end_of_call(struct tcp *t, int flags)
{
	struct tcp_txseg *s = TAILQ_LAST(&t->busy->txq, tcp_txq);

	t->more = flags & TCP_MORE;
	if (s != NULL && s->gran == 0 && !t->more) {
		s->psh = true;
		t->pushed_seq = t->write_seq;
		t->host->c.pushed_end++;
	}
	tcp_push_check(t);
}

ssize_t tcp_send(struct tcp *t, const struct iovec *iov, unsigned niov, int flags, nsec_t now)
{
	size_t total = 0;
	uint32_t goal;
	int err;

	t->host->now = now;
	err = send_state(t);
	if (err != 0)
		return err;
	tcp_wake_up(t);
	if (t->snd_una == t->snd_nxt && TAILQ_EMPTY(&t->busy->txq))
		tcp_cc_idle(t);
	grow_sndbuf(t);
	goal = tcp_size_goal(t);
	for (unsigned i = 0; i < niov; i++) {
		for (size_t at = 0; at < iov[i].iov_len;) {
			size_t n = iov[i].iov_len - at;
			uint32_t room = t->queued < t->sndbuf ? t->sndbuf - t->queued : 0;
			uint32_t done = 0;

			if (n > room)
				n = room;
			if (n > 0)
				done = append_copy(
					t, (const uint8_t *)iov[i].iov_base + at, n, goal);
			if (done == 0)
				goto full;
			at += done;
			total += done;
		}
	}
	end_of_call(t, flags);
	return (ssize_t)total;
full:
	t->ev_last &= (uint8_t)~TCP_EV_WRITABLE; /* room is news from now on */
	if (total == 0)
		return -EAGAIN;
	end_of_call(t, 0);
	return (ssize_t)total;
}

/* The second way in: the user's own chunks. One push rule: append_done(). */
ssize_t tcp_send_frags(struct tcp *t, const struct pkt_frag *f, unsigned n, int flags, nsec_t now)
{
	uint64_t total = 0;
	uint32_t goal, segs = 0;
	int err;

	t->host->now = now;
	err = send_state(t);
	if (err != 0)
		return err;
	tcp_wake_up(t);
	if (t->snd_una == t->snd_nxt && TAILQ_EMPTY(&t->busy->txq))
		tcp_cc_idle(t);
	goal = tcp_size_goal(t);
	for (unsigned i = 0; i < n; i++) {
		total += f[i].len;
		segs += f[i].len / goal + 2;
	}
	if (total == 0 || t->queued + total > t->sndbuf ||
		t->host->txseg_live + segs + 1 > t->host->conf.txsegs) {
		t->ev_last &= (uint8_t)~TCP_EV_WRITABLE;
		return -EAGAIN;
	}
	for (unsigned i = 0; i < n; i++) {
		for (uint32_t at = 0; at < f[i].len;) {
			struct tcp_txseg *s = append_tail(t, goal);
			struct pkt_frag part = {f[i].chunk, f[i].data + at, f[i].len - at};

			part.len = u32_min(part.len, goal - s->len);
			at += part.len;
			if (at < f[i].len)
				chunk_ref(part.chunk); /* the rest keeps the caller's */
			append_frag(t, s, part);
			append_done(t, s, goal);
		}
	}
	end_of_call(t, flags);
	return (ssize_t)total;
}

uint64_t tcp_sent_total(const struct tcp *t)
{
	return t->sent_total;
}

/* A packet below may still show bytes that were acknowledged: then nothing of the last is free. */
uint64_t tcp_sent_acked(const struct tcp *t)
{
	uint64_t acked = t->sent_total - t->queued;

	return t->account.outstanding_bytes < acked ? acked - t->account.outstanding_bytes : 0;
}
