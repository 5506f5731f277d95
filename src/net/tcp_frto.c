/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_frto: was the retransmission timer right? The first segment goes again, then not the others but
 * new data; what the next ACK speaks of tells. [RFC 5682 2, 3]
 *
 *	it acknowledges what was sent once only and thought lost: the path was slow, nothing is lost
 *	it speaks of the new data, or says nothing new: the old is lost, and goes again
 *
 * With timestamps the first ACK tells alone (tcp_loss.c); this is for peers without.
 */
#include "net/tcp_int.h"

void tcp_frto_start(struct tcp *t)
{
	t->busy->loss.frto = t->host->conf.no_frto ? FRTO_OFF : FRTO_FIRST;
}

bool tcp_frto_ack(struct tcp *t, const struct tcp_in *in)
{
	struct tcp_loss *l = &t->busy->loss;
	bool advanced = t->snd_una != in->una_before;

	if (l->frto == FRTO_OFF || l->ca != TCP_CA_LOSS)
		return false;
	/* One ACK for both is what a real loss of the first gets, too. [RFC 5682 2.1 (2)(b)] */
	if (in->first_try && !in->second_try && l->undo_ok) {
		t->host->c.frto_spurious++;
		tcp_loss_undo(t);
		return true;
	}
	if (l->frto == FRTO_NEW && (advanced || in->sacked_new > 0 || in->is_dup)) {
		l->frto = FRTO_OFF;
		t->cc.cwnd = u32_min(t->cc.cwnd, 3 * t->mss);
	} else if (l->frto == FRTO_FIRST && advanced) {
		l->frto = seq_lt(t->snd_una, l->high_seq) ? FRTO_NEW : FRTO_OFF;
	}
	return false;
}
