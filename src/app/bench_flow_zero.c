/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow_zero: a stream without a copy: the pattern lies once in memory that the driver shares
 * with its device, and every send names pieces of it.
 */
#include <errno.h>
#include <string.h>

#include "app/bench_flow.h"

#define LOAN_ORDER 4
#define PIECES     260 /* a megabyte in pages, and two ends */

_Static_assert(BENCH_PATTERN <= CHUNK_PAGE << LOAN_ORDER, "the pattern fits a chunk");

static struct chunk_pool *pool_of(const struct flow_side *side)
{
	return stack_pkts(side->host->stack)->chunks;
}

int flow_zero_init(struct flow_side *side)
{
	struct chunk *c = chunk_get(pool_of(side), LOAN_ORDER);

	if (!c)
		return -ENOMEM;
	if (chunk_size(c) < BENCH_PATTERN) {
		chunk_put(pool_of(side), c);
		return -ENOMEM;
	}
	memcpy(chunk_data(pool_of(side), c), side->pattern, BENCH_PATTERN);
	side->loan = c;
	return 0;
}

void flow_zero_fini(struct flow_side *side)
{
	if (side->loan)
		chunk_put(pool_of(side), side->loan);
	side->loan = NULL;
}

ssize_t flow_zero_send(struct flow *f, uint64_t want, nsec_t now)
{
	struct chunk *c = f->side->loan;
	struct tcp *t = sock_tcp(f->side->host->socks, f->s);
	struct pkt_frag piece[PIECES];
	uint64_t at = f->sent;
	unsigned n = 0;
	ssize_t r;

	while (want && n < PIECES) {
		const uint32_t from = (uint32_t)(at % BENCH_PATTERN), rest = BENCH_PATTERN - from;
		uint32_t len = rest < f->side->c.zero ? rest : f->side->c.zero;

		if (len > want)
			len = (uint32_t)want;
		piece[n++] = (struct pkt_frag){c, chunk_data(pool_of(f->side), c) + from, len};
		chunk_ref(c);
		at += len;
		want -= len;
	}
	r = t ? tcp_send_frags(t, piece, n, 0, now) : -ENOTCONN;
	for (unsigned i = 0; r < 0 && i < n; i++)
		chunk_put(pool_of(f->side), c);
	return r;
}
