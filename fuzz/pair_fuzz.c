/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair_fuzz: two engines and a bad link between them in virtual time; the input says who they are, how
 * much each sends, and which segments are lost.
 *
 *	16 bytes of settings | a bit for each wire segment: lost or not
 *
 * Whatever it says: each stream arrives as it was sent and ends, the engines' audits hold after each
 * step, and nothing is left. No more than two in a row of one direction are lost, with data or without,
 * of SYNs one, of the same 512 bytes three, so that nobody gives up.
 */
#include "net/tcp_pair_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SETTINGS 16

struct script {
	const uint8_t *bits;
	size_t nbits, at;
};

struct way {
	struct script *script; /* both ways read the same bits */
	unsigned in_a_row[2];  /* without data, with data */
	uint8_t times[256];    /* by 512 bytes of sequence space */
};

static bool lost(void *arg, const struct tcp_out *o, uint32_t seq)
{
	struct way *w = arg;
	struct script *s = w->script;
	bool drop;

	if (s->at == s->nbits)
		return false;
	drop = s->bits[s->at / 8] >> s->at % 8 & 1 &&
	       w->in_a_row[o->len > 0] < (o->flags & TCP_SYN ? 1 : 2);
	s->at++;
	if (drop && o->len > 0) {
		uint8_t *times = &w->times[seq / 512 % 256];

		drop = *times < 3;
		*times += drop;
	}
	w->in_a_row[o->len > 0] = drop ? w->in_a_row[o->len > 0] + 1 : 0;
	return drop;
}

static struct tcp_conf conf_of(const uint8_t *b)
{
	struct tcp_conf c = {.txsegs = 256,
		.rxbufs = 512,
		.syns = 4,
		.timewaits = 4,
		.conns = 4,
		.cubic = b[0] & 1,
		.no_sack = b[0] & 2,
		.no_ts = b[0] & 4,
		.no_ws = b[0] & 8,
		.no_tso = b[0] & 16,
		.ecn = b[0] & 32,
		.win_2013 = b[0] & 64,
		.push_at_mss = b[0] & 128,
		.mtu = 576 + 37u * b[1],
		.rcvbuf = 4096 + 1024u * b[2],
		.sndbuf = 8192 + 1024u * b[3]};

	return c;
}

static void link_of(struct pair_link *l, const uint8_t *b, struct way *w)
{
	l->delay = 1000 + (nsec_t)b[0] * b[0] * 1000;
	l->dup = b[1] & 3 ? 0 : b[1] * 10u;
	l->reorder = b[2] & 3 ? 0 : b[2] * 20u;
	l->reorder_by = b[2] * 40000;
	l->super = b[1] & 4;
	l->far = b[1] & 8;
	if (b[2] & 4) {
		l->rate = 100000 + b[1] * 40000u;
		l->limit = 140000;
	}
	l->drop = lost;
	l->drop_arg = w;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct pair p;
	struct tcp_conf c[2];
	struct script s;
	struct way way[2] = {{.script = &s}, {.script = &s}};

	if (len < SETTINGS)
		return 0;
	c[0] = conf_of(data);
	c[1] = conf_of(data + 4);
	pair_init(&p, c, data[15]);
	p.check = true;
	s = (struct script){.bits = data + SETTINGS, .nbits = (len - SETTINGS) * 8};
	for (unsigned i = 0; i < 2; i++) {
		link_of(&p.link[i], data + 8 + 3 * i, &way[i]);
		p.app[i].to_send = data[14 - i] * (data[14 - i] & 1 ? 600u : 3u);
		p.app[i].write_size = 1 + data[14 - i] * 100u;
	}
	pair_connect(&p);
	/* a lost segment costs two minutes at most */
	if (!pair_run(&p, (nsec_t)(4000 + 130 * s.nbits) * NSEC_PER_SEC))
		fail_msg("no end: %llu of %llu, %llu of %llu at %.1f s",
			(unsigned long long)p.app[1].got, (unsigned long long)p.app[0].to_send,
			(unsigned long long)p.app[0].got, (unsigned long long)p.app[1].to_send,
			(double)p.now / 1e9);
	pair_fini(&p);
	return 0;
}
