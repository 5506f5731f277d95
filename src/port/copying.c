/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copying: a burst is copied whole when it is pulled; its packets are freed when it is settled. What
 * goes back to the port is copied anew when it is pulled again.
 */
#include "port/copying.h"

#include <errno.h>
#include <stdlib.h>

#include "port/tap_copy.h"

#define PIECES (PKT_FRAGS + 1)

struct copying {
	struct port_ops ops;
	const struct port_ops *inner;
	struct port *port; /* NULL: unwrapped */
	struct tap_copy copy;
	struct pkt *pkt[BURST_FRAMES];
	unsigned n;
	struct iovec iov[BURST_FRAMES * PIECES];
};

static struct copying *copying_of(struct portq *q)
{
	const struct port_ops *ops = q->port->ops;

	return (struct copying *)(uintptr_t)((const char *)ops - offsetof(struct copying, ops));
}

static unsigned copying_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct copying *m = copying_of(q);

	m->n = m->inner->pull(q, b, max);
	for (unsigned i = 0; i < m->n; i++) {
		m->pkt[i] = NULL;
		if (b->f[i].drop)
			continue;
		m->pkt[i] =
			tap_copy_one(&m->copy, &b->f[i], &b->head[i], &m->iov[i * PIECES], PIECES);
		if (!m->pkt[i])
			b->f[i].drop = DROP_NO_MEMORY;
	}
	return m->n;
}

static void copying_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct copying *m = copying_of(q);

	while (m->n)
		pkt_free(m->pkt[--m->n]);
	m->inner->settle(q, b, n);
}

static unsigned copying_push(struct portq *q, const struct frame *f, unsigned n)
{
	return copying_of(q)->inner->push(q, f, n);
}

static void copying_flush(struct portq *q)
{
	copying_of(q)->inner->flush(q);
}

static bool copying_arm(struct portq *q)
{
	return copying_of(q)->inner->arm(q);
}

static bool copying_arm_room(struct portq *q, uint32_t need)
{
	return copying_of(q)->inner->arm_room(q, need);
}

static void unwrap(struct copying *m)
{
	m->port->ops = m->inner;
	m->port = NULL;
}

static void copying_close(struct port *p)
{
	unwrap(copying_of(&p->q));
	p->ops->close(p);
}

int copying_wrap(
	struct copying **out, struct port *p, const struct tap_copy_config *conf, struct err *err)
{
	struct copying *m = calloc(1, sizeof(*m));
	int r;

	*out = NULL;
	if (!m)
		return err_set(err, ENOMEM, "copy: no memory");
	r = tap_copy_init(&m->copy, conf, err);
	if (r) {
		free(m);
		return r;
	}
	m->inner = p->ops;
	m->ops = (struct port_ops){
		.kind = p->ops->kind,
		.pull = copying_pull,
		.settle = copying_settle,
		.push = copying_push,
		.flush = copying_flush,
		.arm = copying_arm,
		.arm_room = copying_arm_room,
		.close = copying_close,
	};
	m->port = p;
	p->ops = &m->ops;
	*out = m;
	return 0;
}

void copying_free(struct copying *m)
{
	if (!m)
		return;
	while (m->n)
		pkt_free(m->pkt[--m->n]);
	if (m->port)
		unwrap(m);
	tap_copy_fini(&m->copy);
	free(m);
}

void copying_count(const struct copying *m, struct tap_copied *n)
{
	tap_copy_count(&m->copy, n);
}
