/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * option_fuzz: the options of a segment: whatever is read, written and read again is the same; and what
 * is written of any values can be read.
 */
#include <stdlib.h>
#include <string.h>

#include "net/tcp_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static void again_syn(const struct tcp_opts *o)
{
	uint8_t b[40];
	unsigned n = tcp_opt_syn(
		b, o->mss, o->ws_ok ? o->ws : -1, o->sack_ok, o->ts_ok, o->tsval, o->tsecr);
	struct tcp_opts p;

	must(n <= 40 && n % 4 == 0 && tcp_opt_parse(b, n, &p));
	must(p.mss_ok && p.mss == o->mss && p.ws_ok == o->ws_ok && p.ws == o->ws);
	must(p.sack_ok == o->sack_ok && p.ts_ok == o->ts_ok && p.nsack == 0);
	must(p.tsval == o->tsval && p.tsecr == o->tsecr);
}

static void again_ack(const struct tcp_opts *o)
{
	uint8_t b[40];
	unsigned n = o->ts_ok ? tcp_opt_ts(b, o->tsval, o->tsecr) : 0;
	const unsigned room = (40 - n - 4) / 8, blocks = o->nsack < room ? o->nsack : room;
	struct tcp_opts p;

	n = tcp_opt_sack(b, n, o->sack, o->nsack);
	must(n <= 40 && n % 4 == 0 && tcp_opt_parse(b, n, &p));
	must(p.nsack == blocks && !memcmp(p.sack, o->sack, blocks * sizeof(o->sack[0])));
	must(p.ts_ok == o->ts_ok && p.tsval == o->tsval && p.tsecr == o->tsecr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct tcp_opts o;

	if (len > 40)
		len = 40;
	if (!tcp_opt_parse(data, (unsigned)len, &o))
		return 0;
	must(o.nsack <= 4 && (!o.ws_ok || o.ws <= 14));
	again_syn(&o);
	again_ack(&o);
	return 0;
}
