/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_user: the user's calls on a connection, but for sending (tcp_send.c) and listening
 * (tcp_listen.c). [RFC 9293 3.9.1, 3.10.1 to 3.10.6]
 */
#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "net/tcp_int.h"

struct tcp *tcp_new(struct tcp_host *h)
{
	return tcp_alloc(h);
}

static uint8_t wscale_for(const struct tcp_host *h, const struct tcp *t)
{
	uint32_t most = t->rcv_fixed ? t->rcvbuf : h->conf.rcvbuf_max;
	uint8_t ws = 0;

	if (h->conf.wscale != 0xff && (h->conf.wscale != 0 || h->conf.fixed_rcvbuf))
		return h->conf.wscale > 14 ? 14 : h->conf.wscale;
	while (ws < 14 && most >> ws > 65535)
		ws++;
	return ws;
}

int tcp_connect(struct tcp *t, const struct tcp_tuple *to, uint32_t mtu, nsec_t now)
{
	struct tcp_host *h = t->host;
	struct tcp_tuple tu = *to;
	struct tcp_node *old;

	h->now = now;
	if (t->state != TCPS_CLOSED || t->node.hashed)
		return -EISCONN;
	if (tu.lport == 0)
		tu.lport = tcp_pick_port(h, &tu);
	if (tu.lport == 0)
		return -EADDRNOTAVAIL;
	old = tcp_find(h, &tu);
	if (old != NULL && (old->kind != TCP_NODE_TW || !((struct tcp_tw *)(void *)old)->ts_ok))
		return -EADDRINUSE;
	t->iss = tcp_isn(h, &tu);
	if (old != NULL) { /* our own clock goes on, so the peer can tell [RFC 6191] */
		struct tcp_tw *w = (struct tcp_tw *)(void *)old;

		t->iss = seq_max(t->iss, w->snd_nxt + 65535);
		tcp_tw_free(h, w);
		h->c.tw_reused++;
	}
	t->mtu = (uint16_t)u32_min(mtu, 65535);
	t->ts_off = tcp_ts_offset(h, &tu);
	t->rcv_ws = wscale_for(h, t);
	t->snd_una = t->snd_wl2 = t->pushed_seq = t->iss;
	t->snd_nxt = t->write_seq = t->iss + 1;
	t->peer_mss = ip_addr_is4(&tu.raddr) ? TCP_MSS_DEFAULT4 : TCP_MSS_DEFAULT6;
	t->mss = t->peer_mss;
	t->need_syn = true;
	t->busy->first_rtx = now;
	tcp_node_add(h, &t->node, TCP_NODE_CONN, &tu);
	tcp_set_state(t, TCPS_SYN_SENT);
	tcp_make_ready(t);
	h->c.connects++;
	return 0;
}

/* ---- receiving ---- */

/* Copy `n` bytes from `off` of a packet and what is chained behind it. */
static void pkt_copy(const struct pkt *p, uint32_t off, uint8_t *to, uint32_t n)
{
	for (; p != NULL && n > 0; p = p->chain) {
		uint32_t head = p->head != NULL ? p->head_len : 0;

		for (unsigned i = 0; i <= p->nfrag && n > 0; i++) {
			const uint8_t *data = i == 0 ? p->head : p->frag[i - 1].data;
			uint32_t len = i == 0 ? head : p->frag[i - 1].len;
			uint32_t some;

			if (off >= len) {
				off -= len;
				continue;
			}
			some = u32_min(len - off, n);
			copy_long(to, data + off, some);
			to += some;
			n -= some;
			off = 0;
		}
	}
}

static size_t recv_copy(const struct tcp *t, const struct iovec *iov, unsigned niov)
{
	struct tcp_rx *r = STAILQ_FIRST(&t->busy->rxq);
	uint32_t used = 0; /* of r */
	size_t total = 0;

	for (unsigned i = 0; i < niov; i++) {
		size_t at = 0;

		while (at < iov[i].iov_len && r != NULL) {
			uint32_t n = r->len - used;

			if (n > iov[i].iov_len - at)
				n = (uint32_t)(iov[i].iov_len - at);
			pkt_copy(r->pkt, r->off + used, (uint8_t *)iov[i].iov_base + at, n);
			at += n;
			used += n;
			if (used == r->len) {
				r = STAILQ_NEXT(r, q);
				used = 0;
			}
		}
		total += at;
	}
	return total;
}

/* The first `left` bytes are the user's no more: buffers read to their end go. */
static void recv_drop(struct tcp *t, size_t left)
{
	t->rx_bytes -= (uint32_t)left;
	t->copied_seq += (uint32_t)left;
	while (left > 0) {
		struct tcp_rx *r = STAILQ_FIRST(&t->busy->rxq);

		if (left < r->len) {
			r->off += (uint32_t)left;
			r->seq += (uint32_t)left;
			r->len -= (uint32_t)left;
			break;
		}
		left -= r->len;
		t->rx_true -= r->pkt->truesize;
		STAILQ_REMOVE_HEAD(&t->busy->rxq, q);
		tcp_rx_free(t->host, r);
	}
}

/* Tell the peer when reading opened the window by enough. [RFC 9293 3.8.6.2.2] */
static void recv_window_opened(struct tcp *t)
{
	uint32_t was = t->rcv_adv - t->rcv_nxt, is = tcp_rcv_window(t);

	if (t->state >= TCPS_CLOSE_WAIT && t->state != TCPS_FIN_WAIT_2)
		return;
	if (is > was && is - was >= u32_min(2 * t->rcv_mss, t->rcvbuf / 2) && is >= 2 * was) {
		t->ack_now = true;
		tcp_make_ready(t);
	}
}

/* Nothing is there to read: why? */
static ssize_t recv_none(struct tcp *t)
{
	int err = t->error;

	if (err != 0 && !t->fin_seen) {
		t->error = 0;
		return -err;
	}
	if (t->fin_seen || t->state == TCPS_CLOSED)
		return t->fin_seen || t->node.kind == TCP_NODE_CONN ? 0 : -ENOTCONN;
	return -EAGAIN; /* not yet: it may still be connecting */
}

static void recv_taken(struct tcp *t, size_t n)
{
	recv_drop(t, n);
	tcp_rcv_tune(t);
	recv_window_opened(t);
	tcp_rest(t);
}

ssize_t tcp_recv(struct tcp *t, const struct iovec *iov, unsigned niov, int flags, nsec_t now)
{
	size_t n;

	t->host->now = now;
	if (t->rx_bytes == 0)
		return recv_none(t);
	n = recv_copy(t, iov, niov);
	if (!(flags & TCP_PEEK))
		recv_taken(t, n);
	return (ssize_t)n;
}

/* Pieces of [off, off + n) of a packet, as many as fit; *left is what did not. */
static unsigned pkt_pieces(const struct pkt *p, uint32_t off, uint32_t n, struct iovec *iov,
	unsigned most, uint32_t *left)
{
	unsigned k = 0;

	for (; p != NULL && n > 0; p = p->chain) {
		uint32_t head = p->head != NULL ? p->head_len : 0;

		for (unsigned i = 0; i <= p->nfrag && n > 0 && k < most; i++) {
			uint8_t *data = i == 0 ? p->head : p->frag[i - 1].data;
			uint32_t len = i == 0 ? head : p->frag[i - 1].len;

			if (off >= len) {
				off -= len;
				continue;
			}
			iov[k].iov_base = data + off;
			iov[k].iov_len = u32_min(len - off, n);
			n -= (uint32_t)iov[k++].iov_len;
			off = 0;
		}
	}
	*left = n;
	return k;
}

ssize_t tcp_recv_lend(struct tcp *t, struct iovec *iov, unsigned *niov, nsec_t now)
{
	const struct tcp_rx *r;
	unsigned most = *niov;
	size_t total = 0;

	t->host->now = now;
	*niov = 0;
	if (t->rx_bytes == 0)
		return recv_none(t);
	STAILQ_FOREACH (r, &t->busy->rxq, q) {
		uint32_t left;

		*niov += pkt_pieces(r->pkt, r->off, r->len, iov + *niov, most - *niov, &left);
		total += r->len - left;
		if (left > 0)
			break;
	}
	return (ssize_t)total;
}

int tcp_recv_done(struct tcp *t, size_t n, nsec_t now)
{
	t->host->now = now;
	if (n > t->rx_bytes)
		return -EINVAL;
	recv_taken(t, n);
	return 0;
}

/* ---- ending ---- */

static void queue_fin(struct tcp *t)
{
	static const uint8_t next[] = {
		[TCPS_SYN_RCVD] = TCPS_SYN_RCVD, /* to FIN-WAIT-1 when our SYN is acknowledged */
		[TCPS_ESTABLISHED] = TCPS_FIN_WAIT_1,
		[TCPS_CLOSE_WAIT] = TCPS_LAST_ACK,
	};

	if (t->fin_queued)
		return;
	tcp_wake_up(t);
	t->fin_queued = true;
	tcp_set_state(t, next[t->state]);
	t->more = false;
	t->pushed_seq = t->write_seq;
	tcp_push_check(t);
}

int tcp_shutdown_wr(struct tcp *t, nsec_t now)
{
	t->host->now = now;
	if (t->fin_queued)
		return 0;
	if (t->state != TCPS_ESTABLISHED && t->state != TCPS_CLOSE_WAIT &&
		t->state != TCPS_SYN_RCVD)
		return -ENOTCONN;
	queue_fin(t);
	return 0;
}

/* The handle of a connection that is over; the peer's FIN may still have to be acknowledged. */
static void drop_handle(struct tcp *t)
{
	struct tcp_host *h = t->host;
	const struct tcp_reply ack = {
		.tuple = t->node.tuple,
		.seq = t->snd_nxt,
		.ack = t->rcv_nxt,
		.wnd = (uint16_t)u32_min(tcp_rcv_window(t) >> t->rcv_ws, 65535),
		.flags = TCP_ACK,
		.ts_ok = t->ts_ok,
		.tsval = tcp_ts_now(h, t->ts_off),
		.tsecr = t->ts_recent,
	};

	if (t->state == TCPS_TIME_WAIT && t->ack_now)
		tcp_reply(h, &ack);
	tcp_free(t);
}

void tcp_close(struct tcp *t, nsec_t now)
{
	struct tcp_host *h = t->host;

	h->now = now;
	tcp_wake_up(t);
	t->orphan = true;
	t->user = NULL;
	if (t->state == TCPS_CLOSED || t->state == TCPS_TIME_WAIT) {
		drop_handle(t);
		return;
	}
	if (t->state == TCPS_SYN_SENT) {
		tcp_die(t, 0);
		return;
	}
	if (t->rx_bytes > 0) { /* the peer must know that it was not read [RFC 2525 2.17] */
		tcp_send_rst(t);
		tcp_die(t, 0);
		return;
	}
	if (t->state == TCPS_FIN_WAIT_2)
		tcp_timer_keep(t, now + h->conf.finwait2);
	else
		queue_fin(t);
	tcp_make_ready(t);
}

void tcp_abort(struct tcp *t, nsec_t now)
{
	t->host->now = now;
	tcp_wake_up(t);
	t->orphan = true;
	t->user = NULL;
	if (t->state == TCPS_CLOSED || t->state == TCPS_TIME_WAIT) {
		drop_handle(t);
		return;
	}
	if (t->state != TCPS_SYN_SENT)
		tcp_send_rst(t);
	tcp_die(t, 0);
}

/* ---- asking and setting ---- */

int tcp_error(struct tcp *t)
{
	int err = t->error;

	t->error = 0;
	return err;
}

void *tcp_user(const struct tcp *t)
{
	return t->from_listener ? NULL : t->user;
}

void tcp_set_user(struct tcp *t, void *user)
{
	t->user = user;
}

void tcp_tuple_of(const struct tcp *t, struct tcp_tuple *tu)
{
	*tu = t->node.tuple;
}

unsigned tcp_ready(const struct tcp *t)
{
	unsigned r = 0;

	if (t->rx_bytes > 0 || t->fin_seen || (t->state == TCPS_CLOSED && t->node.tuple.lport))
		r |= TCP_EV_READABLE;
	if (t->fin_seen)
		r |= TCP_EV_RDHUP;
	if (tcp_synced(t) && t->state != TCPS_TIME_WAIT) {
		r |= TCP_EV_CONNECTED;
		if (!t->fin_queued && t->queued <= t->sndbuf - t->sndbuf / 3)
			r |= TCP_EV_WRITABLE;
	}
	if (t->error != 0)
		r |= TCP_EV_ERROR;
	if (t->state == TCPS_TIME_WAIT || (t->state == TCPS_CLOSED && t->node.tuple.lport))
		r |= TCP_EV_HUP;
	return r;
}

static int set_keep(struct tcp *t, enum tcp_option o, uint32_t v)
{
	if (o == TCPO_KEEPALIVE)
		t->keepalive = v != 0;
	else if (v == 0 || v > 32767)
		return -EINVAL;
	else if (o == TCPO_KEEPIDLE)
		t->keepidle = (uint16_t)v;
	else if (o == TCPO_KEEPINTVL)
		t->keepintvl = (uint16_t)v;
	else
		t->keepcnt = (uint16_t)v;
	if (t->state == TCPS_ESTABLISHED || t->state == TCPS_CLOSE_WAIT)
		tcp_timer_keep(
			t, t->keepalive ? t->host->now + t->keepidle * NSEC_PER_SEC : NSEC_NEVER);
	return 0;
}

static int set_buffer(struct tcp *t, enum tcp_option o, uint32_t v)
{
	const struct tcp_conf *c = &t->host->conf;

	if (o == TCPO_SNDBUF) {
		t->sndbuf = u32_min(u32_max(v, 4096), u32_max(c->sndbuf_max, 4096));
		t->snd_fixed = true;
	} else {
		t->rcvbuf = u32_min(u32_max(v, 2048), u32_max(c->rcvbuf_max, 2048));
		t->rcv_fixed = true;
	}
	return 0;
}

int tcp_set(struct tcp *t, enum tcp_option o, uint32_t v, nsec_t now)
{
	t->host->now = now;
	switch (o) {
	case TCPO_NODELAY:
		t->nodelay = v != 0;
		break;
	case TCPO_CORK:
		t->cork = v != 0;
		break;
	case TCPO_QUICKACK:
		t->quick = v != 0;
		break;
	case TCPO_USER_TIMEOUT:
		t->user_timeout_ms = v;
		break;
	case TCPO_MAXSEG:
		if (v < TCP_MSS_MIN || v > 65535 || t->state != TCPS_CLOSED)
			return -EINVAL;
		t->user_mss = (uint16_t)v;
		break;
	case TCPO_SNDBUF:
	case TCPO_RCVBUF:
		return set_buffer(t, o, v);
	case TCPO_KEEPALIVE:
	case TCPO_KEEPIDLE:
	case TCPO_KEEPINTVL:
	case TCPO_KEEPCNT:
		return set_keep(t, o, v);
	default:
		return -EINVAL;
	}
	tcp_push_check(t);
	return 0;
}
