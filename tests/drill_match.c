/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_match: options are compared as sets, without padding.
 */
#include "drill_match.h"

#include <string.h>

static void ts_shift(struct opts *opts, unsigned which, uint32_t by)
{
	for (unsigned i = 0; i < opts->n; i++)
		if (opts->o[i].kind == OPT_TS && (which == 0 || opts->o[i].v[1]))
			opts->o[i].v[which] += by;
}

/* SACK blocks that the host gets name its bytes, those that it sends name the peer's. */
static void sack_shift(struct opts *opts, uint32_t by)
{
	for (unsigned i = 0; i < opts->n; i++)
		for (unsigned k = 0; opts->o[i].kind == OPT_SACK && k < opts->o[i].n; k++)
			opts->o[i].v[k] += by;
}

void seg_to_wire(const struct peer *p, const struct seg *script, struct seg *wire)
{
	*wire = *script;
	wire->seq += p->their_isn;
	wire->ack += script->has_ack ? p->our_isn : 0;
	sack_shift(&wire->opts, p->our_isn);
	ts_shift(&wire->opts, 1, p->ts_base);
}

void seg_to_script(const struct peer *p, const struct seg *wire, struct seg *script)
{
	*script = *wire;
	script->seq -= p->our_isn;
	script->ack -= wire->has_ack ? p->their_isn : 0;
	sack_shift(&script->opts, 0u - p->their_isn);
	if (p->ts_known)
		ts_shift(&script->opts, 0, 0u - p->ts_base);
}

static const struct opt *opt_find(const struct opts *opts, unsigned kind)
{
	for (unsigned i = 0; i < opts->n; i++)
		if (opts->o[i].kind == kind)
			return &opts->o[i];
	return NULL;
}

static bool opt_same(struct peer *p, const struct opt *want, const struct opt *have)
{
	if (!have || want->n != have->n)
		return false;
	if (want->kind == OPT_RAW)
		return !memcmp(want->raw, have->raw, want->n);
	if (want->kind == OPT_TS && !p->ts_known) {
		p->ts_base = have->v[0] - want->v[0];
		p->ts_known = true;
		return have->v[1] == want->v[1];
	}
	return !memcmp(want->v, have->v, want->n * sizeof(want->v[0]));
}

static bool opts_same(struct peer *p, const struct opts *want, const struct opts *have)
{
	unsigned n = 0;

	if (want->any)
		return true;
	for (unsigned i = 0; i < want->n; i++)
		if (want->o[i].kind > OPT_NOP &&
			!opt_same(p, &want->o[i], opt_find(have, want->o[i].kind)))
			return false;
	for (unsigned i = 0; i < have->n; i++)
		if (have->o[i].kind > OPT_NOP && !opt_find(want, have->o[i].kind))
			n++;
	return !n;
}

const char *seg_differs(struct peer *p, const struct seg *want, const struct seg *have)
{
	if (want->flags != have->flags)
		return "flags";
	if (!want->any_seq && want->seq != have->seq)
		return "sequence number";
	if (want->len != have->len)
		return "length";
	if (want->has_ack != have->has_ack || (want->has_ack && want->ack != have->ack))
		return "acknowledgement";
	if (want->has_win && want->win != have->win)
		return "window";
	if (want->ecn != ECN_ANY && want->ecn != have->ecn)
		return "ECN bits of the IP header";
	if (!opts_same(p, &want->opts, &have->opts))
		return "options";
	return NULL;
}
