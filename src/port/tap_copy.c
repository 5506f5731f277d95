/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_copy: keep, lend, count. What is counted is what the experiment on allocation orders predicts:
 * chunks by order, which are a packet's fragments. Chunks that heads are cut from are not among them,
 * they serve many packets.
 */
#include "port/tap_copy.h"

#include <string.h>

int tap_copy_init(struct tap_copy *c, const struct tap_copy_config *conf, struct err *err)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->rule = (struct keep_rule){
		.order = conf->order, .linear_hint0 = conf->linear_hint0, .headroom = FRAME_ROOM};
	rc = chunk_pool_init(&c->chunks, TAP_COPY_POOL, err);
	if (rc)
		return rc;
	c->chunks.refuse_permille = conf->refuse;
	rc = chunk_pool_pages(&c->chunks, conf->pages, err);
	if (!rc)
		rc = pkt_pool_init(&c->pkts, &c->chunks, BURST_FRAMES, err);
	if (rc)
		chunk_pool_fini(&c->chunks);
	return rc;
}

void tap_copy_fini(struct tap_copy *c)
{
	pkt_pool_fini(&c->pkts);
	chunk_pool_fini(&c->chunks);
}

static void count(struct tap_copied *n, const struct pkt *p)
{
	n->packets++;
	n->bytes += p->len;
	n->linear += !p->nfrag;
	for (unsigned i = 0; i < p->nfrag; i++)
		n->fragments[p->frag[i].chunk->order]++;
}

struct pkt *tap_copy_one(struct tap_copy *c, struct frame *f, struct frame_head *head,
	struct iovec *iov, unsigned niov)
{
	struct pkt *p = frame_keep(f, &c->pkts, &c->rule);

	if (!p)
		return NULL;
	if (!pkt_lend(p, f, head, iov, niov)) {
		pkt_free(p);
		return NULL;
	}
	count(&c->count, p);
	return p;
}

struct pkt *tap_copy_frame(struct tap_copy *c, struct burst *b, unsigned i)
{
	struct frame *f = &b->f[i];
	const unsigned first = b->niov - f->ntail;
	struct pkt *p = tap_copy_one(c, f, &b->head[i], &b->iov[first], BURST_IOV - first);

	if (p)
		b->niov = first + f->ntail;
	return p;
}

void tap_copy_count(const struct tap_copy *c, struct tap_copied *n)
{
	*n = c->count;
	n->fallbacks = c->chunks.fallbacks;
	n->failures = c->pkts.failed;
	n->locked = c->chunks.store ? c->chunks.store->locked : 0;
}
