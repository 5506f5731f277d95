/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_icmp: what the network says about a segment of ours: believed only if it quotes a number that
 * is under way. [RFC 5927, 5461, 1191, 8201, 9293 3.9.2.2]
 */
#include "net/tcp_int.h"

#define MTU_MIN4 552
#define MTU_MIN6 1280

static bool under_way(const struct tcp *t, uint32_t seq)
{
	return seq_le(t->snd_una, seq) && seq_lt(seq, t->snd_nxt);
}

/* Segments above the new size go again, smaller; that is no congestion. [RFC 1191 6.5] */
static void resend_large(struct tcp *t)
{
	struct tcp_loss *l = &t->busy->loss;
	struct tcp_txseg *s;

	TAILQ_FOREACH (s, &t->busy->txq, q) {
		if (s->gran == 0)
			break;
		if (s->gran > t->mss)
			tcp_mark_lost(t, s, txseg_all(s));
	}
	if (l->lost == 0 || l->ca != TCP_CA_OPEN)
		return;
	l->ca = TCP_CA_RECOVERY;
	l->high_seq = t->snd_nxt;
	l->prr_delivered = l->prr_out = 0;
	l->recover_fs = t->snd_nxt - t->snd_una;
	if (t->cc.ssthresh > t->cc.cwnd)
		t->cc.ssthresh = t->cc.cwnd;
}

void tcp_path_mtu(struct tcp *t, uint32_t mtu)
{
	uint32_t old = t->mss;

	t->mtu = (uint16_t)u32_min(mtu, 65535);
	tcp_set_mss(t);
	if (t->mss >= old || !tcp_synced(t))
		return;
	t->host->c.pmtu_changes++;
	resend_large(t);
	tcp_push_check(t);
}

static void too_big(struct tcp *t, uint32_t mtu)
{
	uint32_t least = ip_addr_is4(&t->node.tuple.raddr) ? MTU_MIN4 : MTU_MIN6;
	uint32_t now = t->mtu != 0 ? t->mtu : t->host->conf.mtu;

	if (mtu < least || mtu >= now) {
		t->host->c.pmtu_ignored++;
		return;
	}
	tcp_path_mtu(t, mtu);
}

void tcp_host_icmp(struct tcp_host *h, const struct tcp_tuple *tu, uint32_t seq, enum tcp_icmp what,
	int err, uint32_t mtu, nsec_t now)
{
	struct tcp_node *n = tcp_find(h, tu);
	struct tcp *t = (struct tcp *)(void *)n;

	h->now = now;
	if (n == NULL || n->kind != TCP_NODE_CONN || !under_way(t, seq)) {
		h->c.icmp_ignored++;
		return;
	}
	tcp_wake_up(t);
	if (what == TCP_ICMP_TOO_BIG)
		too_big(t, mtu);
	else if (what == TCP_ICMP_HARD && t->state == TCPS_SYN_SENT)
		tcp_die(t, err);
	else
		h->c.icmp_ignored++;
}
