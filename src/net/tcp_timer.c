/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_timer: one heap of connections by their earliest deadline, and what happens when a deadline
 * comes. A deadline that moves away only writes its field: the heap's entry is early then, is met,
 * and moves; so the fast path costs one store. [RFC 6298, 8985 7, 1122 4.2.3.6, 5482]
 */
#include <errno.h>

#include "net/tcp_int.h"

#define BLACK_HOLE_RTOS 3 /* of full segments in a row */

#define LATE  NSEC_PER_MSEC
#define GRACE (2 * NSEC_PER_MSEC)

static nsec_t earliest(const struct tcp *t)
{
	nsec_t at = t->keep_at;

	for (unsigned i = 0; i < TCP_TIMERS; i++)
		if (t->busy->timer[i] < at)
			at = t->busy->timer[i];
	return at;
}

static void heap_put(struct tcp_host *h, uint32_t i, struct tcp *t)
{
	h->heap[i] = t;
	t->heap_pos = i;
}

static void heap_up(struct tcp_host *h, uint32_t i)
{
	struct tcp *t = h->heap[i];

	for (; i > 1 && h->heap[i / 2]->heap_key > t->heap_key; i /= 2)
		heap_put(h, i, h->heap[i / 2]);
	heap_put(h, i, t);
}

static void heap_down(struct tcp_host *h, uint32_t i)
{
	struct tcp *t = h->heap[i];

	for (;;) {
		uint32_t c = 2 * i;

		if (c > h->heap_n)
			break;
		if (c < h->heap_n && h->heap[c + 1]->heap_key < h->heap[c]->heap_key)
			c++;
		if (h->heap[c]->heap_key >= t->heap_key)
			break;
		heap_put(h, i, h->heap[c]);
		i = c;
	}
	heap_put(h, i, t);
}

static void heap_remove(struct tcp_host *h, struct tcp *t)
{
	uint32_t i = t->heap_pos;
	struct tcp *last = h->heap[h->heap_n];

	t->heap_pos = 0;
	h->heap_n--;
	if (last == t)
		return;
	heap_put(h, i, last);
	heap_up(h, i);
	heap_down(h, last->heap_pos);
}

static void heap_note(struct tcp *t, nsec_t at)
{
	struct tcp_host *h = t->host;

	if (at == NSEC_NEVER || (t->heap_pos != 0 && at >= t->heap_key))
		return;
	t->heap_key = at;
	if (t->heap_pos == 0)
		heap_put(h, ++h->heap_n, t);
	heap_up(h, t->heap_pos);
}

void tcp_timer_set(struct tcp *t, enum tcp_timer which, nsec_t at)
{
	t->busy->timer[which] = at;
	heap_note(t, at);
}

void tcp_timer_keep(struct tcp *t, nsec_t at)
{
	t->keep_at = at;
	heap_note(t, at);
}

void tcp_timer_off(struct tcp *t)
{
	for (unsigned i = 0; i < TCP_TIMERS && !tcp_resting(t); i++)
		t->busy->timer[i] = NSEC_NEVER;
	t->keep_at = NSEC_NEVER;
	if (t->heap_pos != 0)
		heap_remove(t->host, t);
}

static nsec_t backed_off(const struct tcp *t)
{
	nsec_t rto = t->rto;

	for (unsigned i = 0; i < t->backoff && rto < TCP_RTO_MAX; i++)
		rto *= 2;
	return rto < TCP_RTO_MAX ? rto : TCP_RTO_MAX;
}

/* Not beyond the time that the user gave. [RFC 5482] */
static nsec_t within_user_timeout(const struct tcp *t, nsec_t wait)
{
	nsec_t left = t->busy->first_rtx + t->user_timeout_ms * NSEC_PER_MSEC - t->host->now;

	if (t->user_timeout_ms == 0 || t->retries == 0 || !tcp_synced(t))
		return wait;
	return left < wait ? left : wait;
}

/* Two round trips, and the peer's longest delay if only one segment is out. [RFC 8985 7.2] */
static nsec_t tlp_timeout(const struct tcp *t)
{
	nsec_t pto = t->srtt > 0 ? 2 * t->srtt : TCP_RTO_INIT;

	if (tcp_inflight(t) <= t->mss)
		pto += t->srtt > 0 ? 200 * NSEC_PER_MSEC : 0;
	if (pto < 2 * NSEC_PER_MSEC)
		pto = 2 * NSEC_PER_MSEC;
	return pto < t->rto ? pto : t->rto;
}

static bool tlp_wanted(const struct tcp *t)
{
	return t->sack_ok && t->busy->loss.ca == TCP_CA_OPEN && t->busy->loss.sacked == 0 &&
	       !t->busy->loss.tlp_open && t->backoff == 0 && t->srtt > 0 && tcp_synced(t);
}

/* After data was sent or acknowledged: RTO, loss probe, zero-window probe, or nothing. */
void tcp_timer_rtx(struct tcp *t)
{
	nsec_t now = t->host->now;

	if (t->state == TCPS_SYN_SENT || t->state == TCPS_SYN_RCVD || t->snd_una != t->snd_nxt) {
		nsec_t wait = backed_off(t);

		t->rtx_mode = TCP_RTX_RTO;
		if (tlp_wanted(t) &&
			tlp_timeout(t) <= wait) { /* the probe goes first [RFC 8985 7.2] */
			t->rtx_mode = TCP_RTX_TLP;
			wait = tlp_timeout(t);
		}
		wait = within_user_timeout(t, wait);
		tcp_timer_set(t, TCP_T_RTX, now + wait);
	} else if (t->busy->unsent != NULL && tcp_synced(t)) {
		if (t->rtx_mode != TCP_RTX_PERSIST || t->busy->timer[TCP_T_RTX] == NSEC_NEVER) {
			t->rtx_mode = TCP_RTX_PERSIST;
			tcp_timer_set(t, TCP_T_RTX, now + backed_off(t));
		}
	} else {
		t->rtx_mode = TCP_RTX_RTO;
		tcp_timer_set(t, TCP_T_RTX, NSEC_NEVER);
	}
}

static unsigned retries_max(const struct tcp *t)
{
	const struct tcp_conf *c = &t->host->conf;

	if (t->state == TCPS_SYN_SENT || t->state == TCPS_SYN_RCVD)
		return c->syn_retries != 0 ? c->syn_retries : t->state == TCPS_SYN_SENT ? 6 : 5;
	return t->orphan && c->retries > 8 ? 8 : c->retries;
}

static bool gave_up(struct tcp *t)
{
	nsec_t now = t->host->now;

	if (t->user_timeout_ms != 0) {
		if (now - t->busy->first_rtx < t->user_timeout_ms * NSEC_PER_MSEC)
			return false;
	} else if (t->retries < retries_max(t)) {
		return false;
	}
	t->host->c.timeouts++;
	if (tcp_synced(t))
		tcp_send_rst(t);
	tcp_die(t, ETIMEDOUT);
	return true;
}

/* Full segments vanish and no router says why: the path may take smaller ones only. [RFC 4821 7.7] */
static void black_hole(struct tcp *t)
{
	static const uint32_t steps[] = {1280, 1024, 552};
	const struct tcp_txseg *s = TAILQ_FIRST(&t->busy->txq);
	const bool v4 = ip_addr_is4(&t->node.tuple.raddr);
	const uint32_t mtu = t->mtu != 0 ? t->mtu : t->host->conf.mtu;

	if (t->retries < BLACK_HOLE_RTOS || s == NULL || s->gran == 0 || s->len < t->mss)
		return;
	for (unsigned i = 0; i < (v4 ? 3 : 1); i++) {
		if (steps[i] >= mtu)
			continue;
		t->host->c.black_holes++;
		tcp_path_mtu(t, steps[i]);
		return;
	}
}

static void on_rto(struct tcp *t)
{
	if (t->retries == 0 && tcp_synced(t)) { /* since when it is unacknowledged */
		const struct tcp_txseg *s = TAILQ_FIRST(&t->busy->txq);

		t->busy->first_rtx = s != NULL && s->gran != 0 ? s->xmit : t->host->now;
	}
	if (gave_up(t))
		return;
	t->retries++;
	if (t->backoff < 16)
		t->backoff++;
	if (t->state == TCPS_SYN_SENT || t->state == TCPS_SYN_RCVD) {
		t->need_syn = true;
		t->busy->retrans++;
	} else {
		black_hole(t);
		tcp_loss_rto(t);
	}
	tcp_timer_rtx(t);
	tcp_make_ready(t);
}

/*
 * A window of zero is asked about for ever while the peer answers: retries count unanswered probes
 * only and are cleared by any ACK. [RFC 9293 3.8.6.1, 6429]
 */
static void on_persist(struct tcp *t)
{
	if (t->persist_n == 0)
		t->busy->first_rtx = t->host->now;
	if (gave_up(t))
		return;
	t->retries++;
	t->persist_n = 1;
	if (t->backoff < 16)
		t->backoff++;
	t->probe_now = true;
	t->host->c.persist++;
	tcp_timer_set(t, TCP_T_RTX, t->host->now + backed_off(t));
	tcp_make_ready(t);
}

static void on_rtx(struct tcp *t)
{
	switch ((enum tcp_rtx_mode)t->rtx_mode) {
	case TCP_RTX_TLP:
		t->busy->loss.tlp_now = true;
		t->busy->loss.tlp_open = true;
		t->busy->tlp_count++;
		t->host->c.tlp++;
		tcp_timer_rtx(t);
		tcp_make_ready(t);
		break;
	case TCP_RTX_PERSIST:
		on_persist(t);
		break;
	case TCP_RTX_RTO:
		on_rto(t);
		break;
	}
}

/* Keepalive, or the end of waiting for a FIN that nobody would read. */
static void on_keep(struct tcp *t)
{
	nsec_t now = t->host->now, idle = now - t->last_rcv;

	if (t->state == TCPS_FIN_WAIT_2) {
		if (t->orphan)
			tcp_die(t, 0);
		return;
	}
	if (!t->keepalive)
		return;
	if (idle < t->keepidle * NSEC_PER_SEC) {
		t->keep_probes = 0;
		tcp_timer_keep(t, t->last_rcv + t->keepidle * NSEC_PER_SEC);
		return;
	}
	if (t->snd_una != t->snd_nxt) { /* the retransmission timer watches */
		tcp_timer_keep(t, now + t->keepintvl * NSEC_PER_SEC);
		return;
	}
	if (t->keep_probes >= t->keepcnt) {
		t->host->c.timeouts++;
		tcp_send_rst(t);
		tcp_die(t, ETIMEDOUT);
		return;
	}
	t->keep_probes++;
	t->keep_now = true;
	t->host->c.keepalive++;
	tcp_timer_keep(t, now + t->keepintvl * NSEC_PER_SEC);
	tcp_make_ready(t);
}

static void run_one(struct tcp *t, enum tcp_timer which)
{
	switch (which) {
	case TCP_T_RTX:
		on_rtx(t);
		break;
	case TCP_T_REO:
		tcp_rack_detect(t);
		tcp_make_ready(t);
		break;
	case TCP_T_DELACK:
		t->ack_now = true;
		t->host->c.acks_delayed++;
		tcp_make_ready(t);
		break;
	case TCP_T_PACE:
	case TCP_T_USER:
		tcp_push_check(t);
		break;
	case TCP_TIMERS:
		break;
	}
}

/*
 * Much too late: we were not run, and the ACK that would have stopped the timer may be waiting to be
 * read. It has its chance first, once.
 */
static bool not_run(struct tcp *t, enum tcp_timer which)
{
	nsec_t now = t->host->now;

	if (which != TCP_T_RTX && which != TCP_T_REO)
		return false;
	if (t->late || now - t->busy->timer[which] <= LATE) {
		t->late = false;
		return false;
	}
	t->late = true;
	t->busy->timer[which] = now + GRACE;
	return true;
}

static void run_conn(struct tcp *t)
{
	struct tcp_host *h = t->host;

	heap_remove(h, t);
	for (unsigned i = 0; i < TCP_TIMERS; i++) {
		if (t->busy->timer[i] > h->now)
			continue;
		if (not_run(t, (enum tcp_timer)i))
			continue;
		t->busy->timer[i] = NSEC_NEVER;
		run_one(t, (enum tcp_timer)i);
	}
	if (t->keep_at <= h->now) {
		t->keep_at = NSEC_NEVER;
		tcp_wake_up(t);
		on_keep(t);
	}
	if (earliest(t) != NSEC_NEVER) {
		if (t->heap_pos != 0)
			heap_remove(h, t);
		t->heap_key = earliest(t);
		heap_put(h, ++h->heap_n, t);
		heap_up(h, t->heap_pos);
	}
}

void tcp_host_timer(struct tcp_host *h, nsec_t now)
{
	h->now = now;
	while (h->heap_n > 0 && h->heap[1]->heap_key <= now)
		run_conn(h->heap[1]);
	tcp_syn_timer(h);
	tcp_tw_timer(h);
}

nsec_t tcp_host_deadline(const struct tcp_host *h)
{
	nsec_t at = h->heap_n > 0 ? h->heap[1]->heap_key : NSEC_NEVER;
	const struct tcp_tw *w = TAILQ_FIRST(&h->twq);

	for (unsigned i = 0; i < TCP_SYN_LEVELS; i++) {
		const struct tcp_syn *s = TAILQ_FIRST(&h->synq[i]);

		if (s != NULL && s->deadline < at)
			at = s->deadline;
	}
	if (w != NULL && w->expires < at)
		at = w->expires;
	return at;
}
