/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fdb: the learning table. It owns addresses and who holds them; it must not know ports beyond
 *their index, frames or a clock. [IEEE 802.1D 7.8, 7.9]
 *
 *	slots   open addressing with linear probing, twice as many as there can be entries, so that
 *	        the table is never full and probes stay short; removal shifts the entries behind
 *	        back, there are no tombstones
 *	owners  each port has FDB_SHARE nodes: one list from the address unseen for longest to the
 *	        newest, and one list of the free nodes. A slot names its owner (port and node), a
 *	        node its slot
 *
 * A frame whose address was seen in this very second writes nothing. Refreshing, moving and
 * displacing the oldest take the same few steps however full the table is.
 */
#include "fabric/fdb.h"

#include <stdlib.h>

#define SLOTS_LOG2 17
#define SLOTS      (1u << SLOTS_LOG2)
#define KEY_USED   (UINT64_C(1) << 15) /* between VLAN and nothing: a used slot's key is not 0 */
#define VLAN_MASK  0x0fff
#define NODE_NONE  UINT16_MAX

_Static_assert(SLOTS >= 2 * PORTS_MAX * FDB_SHARE, "the table may not be more than half full");
_Static_assert(FDB_SHARE < NODE_NONE, "nodes are numbered in 16 bits");

struct slot {
	uint64_t key; /* MAC, KEY_USED, VLAN */
	uint32_t seen;
	uint16_t port, node;
};

struct node {
	uint32_t slot;
	uint16_t prev, next; /* towards the oldest, towards the newest */
};

struct owner {
	uint16_t oldest, newest;
	uint16_t free;  /* list by next */
	uint16_t fresh; /* nodes from here on were never used */
	uint16_t count;
	struct node node[FDB_SHARE];
};

struct fdb {
	struct slot *slot;   /* [SLOTS] */
	struct owner *owner; /* [PORTS_MAX] */
	uint64_t seed, mul;
	uint32_t age_sec;
	uint64_t moves, evicted;
};

struct fdb *fdb_new(uint64_t seed, uint32_t age_sec)
{
	struct fdb *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->slot = calloc(SLOTS, sizeof(*t->slot));
	t->owner = calloc(PORTS_MAX, sizeof(*t->owner));
	if (!t->slot || !t->owner) {
		fdb_free(t);
		return NULL;
	}
	for (unsigned p = 0; p < PORTS_MAX; p++)
		t->owner[p].oldest = t->owner[p].newest = t->owner[p].free = NODE_NONE;
	t->seed = seed;
	t->mul = (seed * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	t->age_sec = age_sec;
	return t;
}

void fdb_free(struct fdb *t)
{
	if (!t)
		return;
	free(t->slot);
	free(t->owner);
	free(t);
}

static inline uint64_t key_of(uint64_t mac, uint16_t vlan)
{
	return mac << 16 | KEY_USED | (vlan & VLAN_MASK);
}

static inline uint32_t slot_of(const struct fdb *t, uint64_t key)
{
	uint64_t h = key ^ t->seed;

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h = (h ^ h >> 32) * t->mul;
	return (uint32_t)(h >> (64 - SLOTS_LOG2));
}

static inline uint32_t sec_of(nsec_t now)
{
	return (uint32_t)((uint64_t)now / NSEC_PER_SEC);
}

/* The slot of a key, or the empty one where it belongs. */
static inline uint32_t probe(const struct fdb *t, uint64_t key)
{
	uint32_t i = slot_of(t, key);

	while (t->slot[i].key && t->slot[i].key != key)
		i = (i + 1) % SLOTS;
	return i;
}

static inline bool too_old(const struct fdb *t, const struct slot *s, uint32_t sec)
{
	return sec - s->seen > t->age_sec;
}

void fdb_prefetch(const struct fdb *t, uint64_t mac, uint16_t vlan)
{
	__builtin_prefetch(&t->slot[slot_of(t, key_of(mac, vlan))]);
}

int fdb_find(const struct fdb *t, uint64_t mac, uint16_t vlan, nsec_t now)
{
	const struct slot *s = &t->slot[probe(t, key_of(mac, vlan))];

	if (!s->key || too_old(t, s, sec_of(now)))
		return -1;
	return s->port;
}

/* a port's list, oldest to newest */

static void list_add(struct owner *o, uint16_t n)
{
	o->node[n].prev = o->newest;
	o->node[n].next = NODE_NONE;
	if (o->newest == NODE_NONE)
		o->oldest = n;
	else
		o->node[o->newest].next = n;
	o->newest = n;
}

static void list_remove(struct owner *o, uint16_t n)
{
	uint16_t prev = o->node[n].prev, next = o->node[n].next;

	if (prev == NODE_NONE)
		o->oldest = next;
	else
		o->node[prev].next = next;
	if (next == NODE_NONE)
		o->newest = prev;
	else
		o->node[next].prev = prev;
}

static uint16_t node_get(struct owner *o)
{
	uint16_t n = o->free;

	if (n == NODE_NONE)
		n = o->fresh++;
	else
		o->free = o->node[n].next;
	o->count++;
	return n;
}

static void node_put(struct owner *o, uint16_t n)
{
	list_remove(o, n);
	o->node[n].next = o->free;
	o->free = n;
	o->count--;
}

/* slots */

/* Empty slot `i` and close the gap: what was pushed behind it moves up. */
static void slot_empty(struct fdb *t, uint32_t i)
{
	for (uint32_t j = (i + 1) % SLOTS; t->slot[j].key; j = (j + 1) % SLOTS) {
		uint32_t home = slot_of(t, t->slot[j].key);

		if ((j - home) % SLOTS < (j - i) % SLOTS)
			continue; /* would come before its home */
		t->slot[i] = t->slot[j];
		t->owner[t->slot[i].port].node[t->slot[i].node].slot = i;
		i = j;
	}
	t->slot[i].key = 0;
}

static void forget_oldest(struct fdb *t, struct owner *o)
{
	uint16_t n = o->oldest;

	slot_empty(t, o->node[n].slot);
	node_put(o, n);
}

/* Make a node free at `o`: whatever has aged, at its share the oldest. */
static void make_way(struct fdb *t, struct owner *o, uint32_t sec)
{
	for (unsigned i = 0; i < 2 && o->oldest != NODE_NONE; i++) {
		if (!too_old(t, &t->slot[o->node[o->oldest].slot], sec))
			break;
		forget_oldest(t, o);
	}
	if (o->count == FDB_SHARE) {
		forget_oldest(t, o);
		t->evicted++;
	}
}

static void learn_new(struct fdb *t, uint64_t key, unsigned port, uint32_t sec)
{
	struct owner *o = &t->owner[port];
	uint32_t i;
	uint16_t n;

	make_way(t, o, sec);
	i = probe(t, key); /* only now: making way moves slots */
	n = node_get(o);
	o->node[n].slot = i;
	list_add(o, n);
	t->slot[i] = (struct slot){.key = key, .seen = sec, .port = (uint16_t)port, .node = n};
}

bool fdb_learn(struct fdb *t, uint64_t mac, uint16_t vlan, unsigned port, nsec_t now)
{
	uint64_t key = key_of(mac, vlan);
	uint32_t sec = sec_of(now), i = probe(t, key);
	struct slot *s = &t->slot[i];
	bool moved;

	if (s->key && s->port == port) {
		if (s->seen == sec)
			return false;
		s->seen = sec;
		list_remove(&t->owner[port], s->node);
		list_add(&t->owner[port], s->node);
		return false;
	}
	moved = s->key && !too_old(t, s, sec);
	if (s->key) {
		node_put(&t->owner[s->port], s->node);
		slot_empty(t, i);
	}
	learn_new(t, key, port, sec);
	t->moves += moved;
	return moved;
}

void fdb_forget_port(struct fdb *t, unsigned port)
{
	struct owner *o = &t->owner[port];

	while (o->oldest != NODE_NONE)
		forget_oldest(t, o);
}

unsigned fdb_count(const struct fdb *t, unsigned port)
{
	return t->owner[port].count;
}

uint64_t fdb_evicted(const struct fdb *t)
{
	return t->evicted;
}

bool fdb_next(const struct fdb *t, nsec_t now, uint32_t *cursor, struct fdb_entry *e)
{
	uint32_t sec = sec_of(now);

	for (; *cursor < PORTS_MAX * FDB_SHARE; ++*cursor) {
		unsigned port = *cursor / FDB_SHARE, n = *cursor % FDB_SHARE;
		const struct owner *o = &t->owner[port];
		const struct slot *s;

		if (n >= o->fresh) { /* the rest of this port was never used */
			*cursor = (port + 1) * FDB_SHARE - 1;
			continue;
		}
		s = &t->slot[o->node[n].slot];
		if (!s->key || s->port != port || s->node != n || too_old(t, s, sec))
			continue;
		for (unsigned b = 0; b < 6; b++)
			e->mac[b] = (uint8_t)(s->key >> (56 - 8 * b));
		e->vlan = s->key & VLAN_MASK;
		e->port = port;
		e->age_sec = sec - s->seen;
		++*cursor;
		return true;
	}
	return false;
}

uint64_t fdb_moves(const struct fdb *t)
{
	return t->moves;
}
