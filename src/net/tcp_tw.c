/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_tw: TIME-WAIT in a small block: it acknowledges what comes again, ignores resets, and makes room
 * for a new SYN that is surely newer. [RFC 9293 3.10.7.4, RFC 1337, RFC 6191, RFC 1122 4.2.2.13]
 */
#include <string.h>

#include "net/tcp_int.h"

#define TW_ACK_PAUSE (NSEC_PER_SEC / 50)

void tcp_tw_free(struct tcp_host *h, struct tcp_tw *w)
{
	tcp_node_del(h, &w->node);
	TAILQ_REMOVE(&h->twq, w, q);
	TAILQ_INSERT_HEAD(&h->tw_free, w, q);
}

static void tw_ack(struct tcp_host *h, struct tcp_tw *w)
{
	struct tcp_reply r = {
		.tuple = w->node.tuple,
		.seq = w->snd_nxt,
		.ack = w->rcv_nxt,
		.wnd = w->wnd,
		.flags = TCP_ACK,
		.ts_ok = w->ts_ok,
		.tsval = tcp_ts_now(h, w->ts_off),
		.tsecr = w->ts_recent,
	};

	if (w->limited != 0 && h->now - w->limited < TW_ACK_PAUSE) {
		h->c.dup_ack_limited++;
		return;
	}
	w->limited = h->now;
	tcp_reply(h, &r);
}

/* A SYN that the old connection cannot have sent. */
static bool surely_newer(const struct tcp_tw *w, const struct tcp_in *in)
{
	if (w->ts_ok && in->o.ts_ok) {
		const int32_t newer = (int32_t)(in->o.tsval - w->ts_recent);

		/* within one tick the sequence number decides [RFC 6191 2] */
		return newer > 0 || (newer == 0 && seq_lt(w->rcv_nxt, in->seq));
	}
	return seq_lt(w->rcv_nxt + w->rcv_wnd, in->seq);
}

bool tcp_tw_in(struct tcp_host *h, struct tcp_tw *w, struct tcp_in *in)
{
	if (in->flags & TCP_RST)
		return false;
	if ((in->flags & (TCP_SYN | TCP_ACK | TCP_FIN)) == TCP_SYN && surely_newer(w, in) &&
		tcp_listener_find(h, &w->node.tuple) != NULL) {
		h->next_iss = w->snd_nxt + 65535;
		h->next_iss_set = true;
		tcp_tw_free(h, w);
		h->c.tw_reused++;
		return true;
	}
	if (!(in->flags & (TCP_ACK | TCP_SYN)))
		return false;
	if (!(in->flags & (TCP_SYN | TCP_FIN)) && in->len == 0 && in->seq == w->rcv_nxt &&
		seq_le(in->ack, w->snd_nxt))
		return false; /* nothing new: two who answer that would never end */
	if ((in->flags & TCP_FIN) && in->seq + in->len + 1 == w->rcv_nxt) { /* again: wait again */
		w->expires = h->now + h->conf.timewait;
		TAILQ_REMOVE(&h->twq, w, q);
		TAILQ_INSERT_TAIL(&h->twq, w, q);
	}
	tw_ack(h, w);
	return false;
}

void tcp_tw_timer(struct tcp_host *h)
{
	struct tcp_tw *w;

	while ((w = TAILQ_FIRST(&h->twq)) != NULL && w->expires <= h->now)
		tcp_tw_free(h, w);
}
