/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_press: a pool is empty, somebody has to go: who deserves it least. A peer that shuts its window for
 * ever, or stops answering, holds our memory at no cost of its own; so does one that leaves our FIN
 * unanswered. Those whose user has gone are given up first, then those that have not got on for longest.
 * Nobody is given up who gets on, or is merely idle. It looks at a few of all, by lot: bounded
 * work, and a flood cannot choose its victims. [RFC 6429]
 */
#include <errno.h>

#include "net/tcp_int.h"

#define LOOK         64
#define ORPHAN_GRACE (1 * NSEC_PER_SEC)
#define STALL_GRACE  (10 * NSEC_PER_SEC)

/* How long nothing of ours was acknowledged, or taken, though we ask. */
static nsec_t stalled(const struct tcp *t)
{
	nsec_t now = t->host->now, quiet = t->orphan ? now - t->last_rcv : 0, since = 0;

	if (!tcp_resting(t) && (t->persist_n > 0 || t->backoff > 0))
		since = now - t->busy->first_rtx;
	return since > quiet ? since : quiet;
}

/* Would its end give back what is missing? Its user keeps a connection until he closes it, not what it sends. */
static bool holds(const struct tcp *t, enum tcp_pool pool)
{
	if (pool == TCP_POOL_CONNS)
		return t->orphan;
	return !tcp_resting(t) && !TAILQ_EMPTY(&t->busy->txq);
}

static bool may_go(const struct tcp *t, enum tcp_pool pool)
{
	return t->host != NULL && !t->dead && tcp_synced(t) && t->state != TCPS_TIME_WAIT &&
	       !t->from_listener && holds(t, pool) &&
	       stalled(t) >= (t->orphan ? ORPHAN_GRACE : STALL_GRACE);
}

static bool less_deserving(const struct tcp *a, const struct tcp *b)
{
	if (b == NULL || a->orphan != b->orphan)
		return b == NULL || a->orphan;
	return stalled(a) > stalled(b);
}

bool tcp_press(struct tcp_host *h, enum tcp_pool pool, const struct tcp * not )
{
	const uint32_t n = h->conn_used, from = n > 0 ? rand_below(&h->rand, n) : 0;
	struct tcp *victim = NULL;

	for (uint32_t i = 0; i < n && i < LOOK; i++) {
		struct tcp *t = &h->conns[(from + i) % n];

		if (t != not &&may_go(t, pool) && less_deserving(t, victim))
			victim = t;
	}
	if (victim == NULL)
		return false;
	h->c.pressed++;
	tcp_send_rst(victim);
	tcp_die(victim, ECONNABORTED);
	if (victim->orphan)
		tcp_free(victim);
	return true;
}
