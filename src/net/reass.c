/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reass: fragments of one datagram are kept sorted by offset in an array of at most 64, so an overlap
 * is a look at two neighbours and complete means that the lengths add up. Who must go when memory is
 * short is drawn by lot: a flood cannot choose its victims. [RFC 815, RFC 5722, RFC 3168 5.3]
 */
#include "net/reass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/siphash.h"

#define DATAGRAM_MAX 65535

struct piece {
	struct pkt *pkt;
	uint32_t offset, len, at;
};

struct datagram {
	TAILQ_ENTRY(datagram) age;
	struct reass_key key;
	uint64_t hash;
	bool used;
	nsec_t until;
	uint32_t total; /* bytes, 0: the last fragment is not here */
	uint32_t have, truesize;
	uint32_t head_len;
	uint8_t next;
	uint8_t ecn_seen; /* one bit for each of the four codes */
	unsigned n;
	struct piece piece[REASS_FRAGMENTS];
};

struct reass {
	uint8_t key[16];
	struct pkt_pool *pool;
	struct rand rand;
	uint32_t bytes;
	TAILQ_HEAD(, datagram) oldest;
	struct datagram d[REASS_DATAGRAMS];
	struct reass_counters stat;
};

int reass_new(struct reass **out, const uint8_t key[16], uint64_t seed, struct pkt_pool *pool,
	struct err *err)
{
	struct reass *r = calloc(1, sizeof(*r));

	*out = r;
	if (!r)
		return err_set(err, ENOMEM, "no memory for the reassembly of fragments");
	memcpy(r->key, key, sizeof(r->key));
	rand_init(&r->rand, seed);
	r->pool = pool;
	TAILQ_INIT(&r->oldest);
	return 0;
}

static void datagram_drop(struct reass *r, struct datagram *d)
{
	for (unsigned i = 0; i < d->n; i++)
		pkt_free(d->piece[i].pkt);
	r->bytes -= d->truesize;
	d->used = false;
	d->n = 0;
	TAILQ_REMOVE(&r->oldest, d, age);
}

void reass_free(struct reass *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < REASS_DATAGRAMS; i++)
		if (r->d[i].used)
			datagram_drop(r, &r->d[i]);
	free(r);
}

/* ---- finding room ---- */

static struct datagram *find(struct reass *r, const struct reass_key *key, uint64_t hash)
{
	for (unsigned i = 0; i < REASS_DATAGRAMS; i++)
		if (r->d[i].used && r->d[i].hash == hash &&
			!memcmp(&r->d[i].key, key, sizeof(*key)))
			return &r->d[i];
	return NULL;
}

static uint32_t source_bytes(const struct reass *r, const struct ip_addr *src)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < REASS_DATAGRAMS; i++)
		if (r->d[i].used && ip_addr_equal(&r->d[i].key.src, src))
			sum += r->d[i].truesize;
	return sum;
}

/* One of those in use, by lot, but not `keep`. False: there is no other. */
static bool evict(struct reass *r, const struct datagram *keep)
{
	const unsigned from = rand_below(&r->rand, REASS_DATAGRAMS);

	for (unsigned i = 0; i < REASS_DATAGRAMS; i++) {
		struct datagram *d = &r->d[(from + i) % REASS_DATAGRAMS];

		if (!d->used || d == keep)
			continue;
		r->stat.evicted++;
		datagram_drop(r, d);
		return true;
	}
	return false;
}

static struct datagram *make(
	struct reass *r, const struct reass_key *key, uint64_t hash, nsec_t now)
{
	struct datagram *d = NULL;

	for (;;) {
		for (unsigned i = 0; i < REASS_DATAGRAMS && !d; i++)
			if (!r->d[i].used)
				d = &r->d[i];
		if (d)
			break;
		evict(r, NULL);
	}
	*d = (struct datagram){.key = *key, .hash = hash, .used = true, .until = now + REASS_NS};
	TAILQ_INSERT_TAIL(&r->oldest, d, age);
	return d;
}

/* ---- one fragment ---- */

enum place { PLACE_NEW, PLACE_DUP, PLACE_BAD };

/* Where it belongs; an overlap, or a contradiction about the end, is bad. */
static enum place place_of(const struct datagram *d, const struct reass_frag *f, unsigned *pos)
{
	const uint32_t end = f->offset + f->len;
	unsigned i = d->n;

	while (i && d->piece[i - 1].offset > f->offset)
		i--;
	*pos = i;
	if (i && d->piece[i - 1].offset == f->offset && d->piece[i - 1].len == f->len)
		return PLACE_DUP;
	if (i && d->piece[i - 1].offset + d->piece[i - 1].len > f->offset)
		return PLACE_BAD;
	if (i < d->n && d->piece[i].offset < end)
		return PLACE_BAD;
	if (d->total && (end > d->total || (!f->more && end != d->total)))
		return PLACE_BAD;
	if (!f->more && d->n && d->piece[d->n - 1].offset + d->piece[d->n - 1].len > end)
		return PLACE_BAD;
	return PLACE_NEW;
}

static void insert(struct reass *r, struct datagram *d, struct pkt *p, const struct reass_frag *f,
	unsigned pos)
{
	memmove(&d->piece[pos + 1], &d->piece[pos], (d->n - pos) * sizeof(d->piece[0]));
	d->piece[pos] = (struct piece){p, f->offset, f->len, f->at};
	d->n++;
	d->have += f->len;
	d->truesize += p->truesize;
	r->bytes += p->truesize;
	d->ecn_seen |= (uint8_t)(1u << (f->ecn & 3));
	if (!f->more)
		d->total = f->offset + f->len;
	if (!f->offset) {
		d->head_len = f->head_len;
		d->next = f->next;
	}
}

/* ---- joining ---- */

/* Add [from, from + len) of `p` to `to` by reference. */
static bool share(struct pkt *to, const struct pkt *p, uint32_t from, uint32_t len)
{
	if (from < p->head_len) {
		const uint32_t n = p->head_len - from < len ? p->head_len - from : len;

		chunk_ref(p->head_chunk);
		if (!pkt_add(to, p->head_chunk, p->head + from, n, 0, false))
			return false;
		from += n;
		len -= n;
	}
	from -= p->head_len;
	for (const struct pkt *q = p; q && len; q = q->chain)
		for (unsigned i = 0; i < q->nfrag && len; i++) {
			const struct pkt_frag *g = &q->frag[i];
			uint32_t n;

			if (from >= g->len) {
				from -= g->len;
				continue;
			}
			n = g->len - from < len ? g->len - from : len;
			chunk_ref(g->chunk);
			if (!pkt_add(to, g->chunk, g->data + from, n, 0, false))
				return false;
			from = 0;
			len -= n;
		}
	return !len;
}

/*
 * The two bits of all fragments as one; false: they contradict each other (some say the path knows
 * ECN, some do not, and there is congestion to be told).
 */
static bool join_ecn(uint8_t seen, uint8_t *ecn)
{
	const bool not_ect = seen & 1, ce = seen & 8;

	if (not_ect && seen != 1 && ce)
		return false;
	*ecn = ce ? 3 : not_ect ? 0 : seen & 4 ? 2 : 1;
	return true;
}

static struct pkt *join(struct reass *r, struct datagram *d, struct reass_whole *w)
{
	const struct pkt *first = d->piece[0].pkt;
	struct pkt *p;
	bool good;

	good = join_ecn(d->ecn_seen, &w->ecn);
	w->next = d->next;
	r->stat.ecn += !good;
	p = good ? pkt_new(r->pool, 64, d->head_len) : NULL;
	if (!p)
		return NULL;
	memcpy(p->head, first->head, d->head_len);
	for (unsigned i = 0; i < d->n && good; i++)
		good = share(p, d->piece[i].pkt, d->piece[i].at, d->piece[i].len);
	if (!good) {
		pkt_free(p);
		return NULL;
	}
	p->truesize += d->truesize;
	r->stat.datagrams++;
	return p;
}

static bool fits(struct reass *r, const struct reass_frag *f, uint32_t truesize, struct datagram *d)
{
	if (d->n == REASS_FRAGMENTS || source_bytes(r, &f->key.src) + truesize > REASS_SOURCE)
		return false;
	while (r->bytes + truesize > REASS_BYTES)
		if (!evict(r, d))
			return false;
	return true;
}

static bool is_bad(const struct reass_frag *f, const struct pkt *p)
{
	return !f->len || f->offset + f->len > DATAGRAM_MAX || (f->more && f->len % 8) ||
	       f->head_len > p->head_len || f->at > p->len || f->len > p->len - f->at;
}

struct pkt *reass_in(struct reass *r, struct pkt *p, const struct reass_frag *f,
	struct reass_whole *w, nsec_t now)
{
	const uint64_t hash = siphash(r->key, &f->key, sizeof(f->key));
	struct datagram *d = find(r, &f->key, hash);
	struct pkt *whole = NULL;
	enum place place;
	unsigned pos;

	r->stat.fragments++;
	if (is_bad(f, p)) {
		r->stat.bad++;
		pkt_free(p);
		return NULL;
	}
	if (!d)
		d = make(r, &f->key, hash, now);
	place = place_of(d, f, &pos);
	if (place == PLACE_DUP) {
		r->stat.duplicates++;
		pkt_free(p);
		return NULL;
	}
	if (place == PLACE_BAD || !fits(r, f, p->truesize, d)) {
		*(place == PLACE_BAD ? &r->stat.overlaps : &r->stat.refused) += 1;
		pkt_free(p);
		datagram_drop(r, d);
		return NULL;
	}
	insert(r, d, p, f, pos);
	if (d->total && d->have == d->total) {
		whole = join(r, d, w);
		datagram_drop(r, d);
	}
	return whole;
}

/* ---- time ---- */

nsec_t reass_deadline(const struct reass *r)
{
	const struct datagram *d = TAILQ_FIRST(&r->oldest);

	return d ? d->until : NSEC_NEVER;
}

struct pkt *reass_timer(struct reass *r, nsec_t now)
{
	struct datagram *d;

	while ((d = TAILQ_FIRST(&r->oldest)) && d->until <= now) {
		struct pkt *first = NULL;

		r->stat.timeouts++;
		if (d->n && !d->piece[0].offset) {
			first = d->piece[0].pkt;
			d->truesize -= first->truesize;
			r->bytes -= first->truesize;
			memmove(&d->piece[0], &d->piece[1], --d->n * sizeof(d->piece[0]));
		}
		datagram_drop(r, d);
		if (first)
			return first;
	}
	return NULL;
}

uint32_t reass_bytes(const struct reass *r)
{
	return r->bytes;
}

const struct reass_counters *reass_counters(const struct reass *r)
{
	return &r->stat;
}
