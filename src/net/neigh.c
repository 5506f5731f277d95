/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neigh: the neighbour table. It knows no packet format and no interface. [RFC 4861 7.3.2]
 *
 *	             answer                        30 s                use
 *	INCOMPLETE ----------> REACHABLE ---------------> STALE ---------------> DELAY
 *	  | 3 asks                 ^  ^                     |                      | 5 s
 *	  v                        |  +----- confirm -------+----------------------+
 *	gone, packets back         +--------- answer ------------ PROBE <---------+
 *	  ^                                                         | 3 asks, unicast
 *	  +---- INCOMPLETE, asked anew by multicast <---------------+
 *
 * REACHABLE turns STALE when it is looked at. The states with a timer are in one list, walked when the
 * earliest is due: it is short, for unanswered entries are capped.
 */
#include "net/neigh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/siphash.h"

#define BUCKETS 1024 /* power of two */

enum state {
	FREE,
	INCOMPLETE,
	REACHABLE,
	STALE,
	DELAY,
	PROBE,
};

struct neigh {
	TAILQ_ENTRY(neigh) order; /* by use: free list, incomplete or complete */
	TAILQ_ENTRY(neigh) timed;
	LIST_ENTRY(neigh) chain;
	struct ip_addr ip;
	uint8_t mac[6];
	uint8_t state;
	uint8_t asks;
	bool is_timed;
	nsec_t confirmed, at; /* at: of the timer */
	struct pkt_list queue;
	unsigned nqueue;
	uint32_t queue_bytes;
};

TAILQ_HEAD(neigh_list, neigh);

struct neigh_table {
	uint8_t key[16];
	const struct neigh_ops *ops;
	void *ctx;
	struct neigh all[NEIGH_MAX];
	LIST_HEAD(, neigh) bucket[BUCKETS];
	struct neigh_list unused, incomplete, complete; /* the latter two: oldest use first */
	struct neigh_list timed;
	unsigned nincomplete, count;
	nsec_t deadline;
	struct neigh_counters stat;
};

int neigh_new(struct neigh_table **out, const uint8_t key[16], const struct neigh_ops *ops,
	void *ctx, struct err *err)
{
	struct neigh_table *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return err_set(err, ENOMEM, "no memory for the neighbour table");
	memcpy(t->key, key, sizeof(t->key));
	t->ops = ops;
	t->ctx = ctx;
	t->deadline = NSEC_NEVER;
	TAILQ_INIT(&t->unused);
	TAILQ_INIT(&t->incomplete);
	TAILQ_INIT(&t->complete);
	TAILQ_INIT(&t->timed);
	for (unsigned i = 0; i < NEIGH_MAX; i++) {
		STAILQ_INIT(&t->all[i].queue);
		TAILQ_INSERT_TAIL(&t->unused, &t->all[i], order);
	}
	return 0;
}

static struct pkt *dequeue(struct neigh *n)
{
	struct pkt *p = STAILQ_FIRST(&n->queue);

	if (p) {
		STAILQ_REMOVE_HEAD(&n->queue, entry);
		n->nqueue--;
		n->queue_bytes -= p->len;
	}
	return p;
}

void neigh_free(struct neigh_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < NEIGH_MAX; i++)
		for (struct pkt *p; (p = dequeue(&t->all[i]));)
			pkt_free(p);
	free(t);
}

/* ---- lists ---- */

static unsigned bucket_of(const struct neigh_table *t, const struct ip_addr *ip)
{
	return siphash(t->key, ip, sizeof(*ip)) & (BUCKETS - 1);
}

static struct neigh *find(const struct neigh_table *t, const struct ip_addr *ip)
{
	struct neigh *n;

	LIST_FOREACH (n, &t->bucket[bucket_of(t, ip)], chain)
		if (ip_addr_equal(&n->ip, ip))
			return n;
	return NULL;
}

static void set_timer(struct neigh_table *t, struct neigh *n, nsec_t at)
{
	if (!n->is_timed)
		TAILQ_INSERT_TAIL(&t->timed, n, timed);
	n->is_timed = true;
	n->at = at;
	if (at < t->deadline)
		t->deadline = at;
}

static void stop_timer(struct neigh_table *t, struct neigh *n)
{
	if (n->is_timed)
		TAILQ_REMOVE(&t->timed, n, timed);
	n->is_timed = false;
}

static struct neigh_list *list_of(struct neigh_table *t, enum state s)
{
	return s == FREE ? &t->unused : s == INCOMPLETE ? &t->incomplete : &t->complete;
}

static void set_state(struct neigh_table *t, struct neigh *n, enum state s)
{
	TAILQ_REMOVE(list_of(t, n->state), n, order);
	t->nincomplete -= n->state == INCOMPLETE;
	t->count -= n->state != FREE;
	n->state = (uint8_t)s;
	t->nincomplete += s == INCOMPLETE;
	t->count += s != FREE;
	TAILQ_INSERT_TAIL(list_of(t, s), n, order);
	if (s == FREE || s == REACHABLE || s == STALE)
		stop_timer(t, n);
}

/* Give up: the packets go back, the entry is free. */
static void drop(struct neigh_table *t, struct neigh *n)
{
	const struct ip_addr ip = n->ip;
	struct pkt_list queue = STAILQ_HEAD_INITIALIZER(queue);
	struct pkt *p;

	STAILQ_CONCAT(&queue, &n->queue);
	n->nqueue = 0;
	n->queue_bytes = 0;
	LIST_REMOVE(n, chain);
	set_state(t, n, FREE);
	while ((p = STAILQ_FIRST(&queue))) {
		STAILQ_REMOVE_HEAD(&queue, entry);
		t->ops->release(t->ctx, p, &ip, NULL);
	}
}

/* The one to go when there is no room: never answered, else unused for longest. */
static void evict(struct neigh_table *t)
{
	struct neigh *n = TAILQ_FIRST(&t->incomplete);

	t->stat.evicted++;
	drop(t, n ? n : TAILQ_FIRST(&t->complete));
}

static struct neigh *make(struct neigh_table *t, const struct ip_addr *ip, enum state s)
{
	struct neigh *n;

	if (s == INCOMPLETE && t->nincomplete >= NEIGH_INCOMPLETE)
		evict(t);
	else if (TAILQ_EMPTY(&t->unused))
		evict(t);
	n = TAILQ_FIRST(&t->unused);
	n->ip = *ip;
	n->asks = 0;
	LIST_INSERT_HEAD(&t->bucket[bucket_of(t, ip)], n, chain);
	set_state(t, n, s);
	return n;
}

/* ---- asking ---- */

static void ask(struct neigh_table *t, struct neigh *n, nsec_t now)
{
	uint8_t mac[6];
	const struct ip_addr ip = n->ip;
	const bool unicast = n->state == PROBE;

	memcpy(mac, n->mac, 6);
	n->asks++;
	t->stat.asked++;
	set_timer(t, n, now + NEIGH_ASK_NS);
	t->ops->ask(t->ctx, &ip, unicast ? mac : NULL);
}

static void start(struct neigh_table *t, struct neigh *n, enum state s, nsec_t now)
{
	set_state(t, n, s);
	n->asks = 0;
	ask(t, n, now);
}

static void enqueue(struct neigh_table *t, struct neigh *n, struct pkt *p)
{
	const struct ip_addr ip = n->ip;

	/* the newest are wanted most [RFC 1122 2.3.2.2] */
	while (n->nqueue &&
		(n->nqueue == NEIGH_QUEUE || n->queue_bytes + p->len > NEIGH_QUEUE_BYTES)) {
		t->stat.queue_full++;
		pkt_free(dequeue(n));
	}
	if (p->len > NEIGH_QUEUE_BYTES + 64) { /* one whole super-packet may wait */
		t->ops->release(t->ctx, p, &ip, NULL);
		return;
	}
	STAILQ_INSERT_TAIL(&n->queue, p, entry);
	n->nqueue++;
	n->queue_bytes += p->len;
}

/* An entry with an address is about to be used. */
static void touch(struct neigh_table *t, struct neigh *n, nsec_t now)
{
	if (n->state == REACHABLE && now - n->confirmed > NEIGH_REACHABLE)
		n->state = STALE; /* same list */
	if (n->state == STALE) {
		set_state(t, n, DELAY);
		set_timer(t, n, now + NEIGH_DELAY);
	}
}

const uint8_t *neigh_resolve(
	struct neigh_table *t, const struct ip_addr *ip, struct pkt *p, nsec_t now)
{
	struct neigh *n = find(t, ip);

	if (n && n->state != INCOMPLETE) {
		touch(t, n, now);
		return n->mac;
	}
	if (!n)
		n = make(t, ip, INCOMPLETE);
	if (p)
		enqueue(t, n, p);
	if (!n->asks)
		ask(t, n, now);
	return NULL;
}

/* ---- what the link says ---- */

static void release_all(struct neigh_table *t, struct neigh *n)
{
	const struct ip_addr ip = n->ip;
	uint8_t mac[6];
	struct pkt *p;

	memcpy(mac, n->mac, 6);
	while ((p = dequeue(n)))
		t->ops->release(t->ctx, p, &ip, mac);
}

static void answered(struct neigh_table *t, struct neigh *n, enum state s, nsec_t now)
{
	t->stat.answered++;
	n->confirmed = now;
	n->asks = 0;
	set_state(t, n, s);
	release_all(t, n);
}

void neigh_learn(struct neigh_table *t, const struct ip_addr *ip, const uint8_t mac[6],
	enum neigh_news news, nsec_t now)
{
	struct neigh *n = find(t, ip);

	if (!n) {
		if (news != NEIGH_ASKED_US)
			return;
		if (TAILQ_EMPTY(&t->unused) && TAILQ_EMPTY(&t->incomplete) &&
			TAILQ_FIRST(&t->complete)->state != STALE &&
			TAILQ_FIRST(&t->complete)->state != REACHABLE) {
			t->stat.refused++;
			return;
		}
		n = make(t, ip, STALE);
		memcpy(n->mac, mac, 6);
		return;
	}
	if (n->state == INCOMPLETE) {
		memcpy(n->mac, mac, 6);
		answered(t, n, news == NEIGH_ANSWER ? REACHABLE : STALE, now);
		return;
	}
	if (!memcmp(n->mac, mac, 6)) {
		if (news == NEIGH_ANSWER && (n->state == PROBE || n->state == DELAY))
			answered(t, n, REACHABLE, now);
		return;
	}
	/* Somebody else says he is it: true only if the one we know does not answer any more. */
	t->stat.conflicts++;
	if (n->state != PROBE)
		start(t, n, PROBE, now);
}

void neigh_confirm(struct neigh_table *t, const struct ip_addr *ip, nsec_t now)
{
	struct neigh *n = find(t, ip);

	if (!n || n->state == INCOMPLETE || n->state == PROBE)
		return;
	n->confirmed = now;
	set_state(t, n, REACHABLE);
}

/* ---- time ---- */

static void expire(struct neigh_table *t, struct neigh *n, nsec_t now)
{
	if (n->state == DELAY) {
		start(t, n, PROBE, now);
	} else if (n->asks < NEIGH_ASKS) {
		ask(t, n, now);
	} else if (n->state == PROBE) {
		start(t, n, INCOMPLETE, now);
	} else {
		t->stat.failed++;
		drop(t, n);
	}
}

nsec_t neigh_deadline(const struct neigh_table *t)
{
	return t->deadline;
}

void neigh_timer(struct neigh_table *t, nsec_t now)
{
	struct neigh *n, *next;
	unsigned left = 0;

	if (now < t->deadline)
		return;
	t->deadline = NSEC_NEVER;
	TAILQ_FOREACH (n, &t->timed, timed)
		left++;
	/* what an expiry appends is not due yet; what it takes away is only itself */
	for (n = TAILQ_FIRST(&t->timed); n && left; n = next, left--) {
		if (!n->is_timed) { /* a callback took it away: look again */
			t->deadline = now;
			return;
		}
		next = TAILQ_NEXT(n, timed);
		if (n->at <= now)
			expire(t, n, now);
		else if (n->at < t->deadline)
			t->deadline = n->at;
	}
}

unsigned neigh_count(const struct neigh_table *t)
{
	return t->count;
}

const struct neigh_counters *neigh_counters(const struct neigh_table *t)
{
	return &t->stat;
}
