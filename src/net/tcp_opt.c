/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_opt: the options of a segment, from bytes to values and back. Knows no connection.
 * [RFC 9293 3.1, 3.2; RFC 7323 2.2, 3.2; RFC 2018 2, 3]
 */
#include <string.h>

#include "net/tcp_int.h"
#include "wire/bytes.h"

enum { OPT_EOL, OPT_NOP, OPT_MSS, OPT_WS, OPT_SACK_OK, OPT_SACK, OPT_TS = 8 };

static void parse_sack(const uint8_t *p, unsigned n, struct tcp_opts *o)
{
	if (n == 0 || n % 8 != 0)
		return;
	o->nsack = 0;
	for (; n >= 8 && o->nsack < 4; n -= 8, p += 8, o->nsack++) {
		o->sack[o->nsack][0] = get_be32(p);
		o->sack[o->nsack][1] = get_be32(p + 4);
	}
}

/* One option of kind `kind` with `n` bytes of value; a wrong length makes it unknown. */
static void parse_one(uint8_t kind, const uint8_t *p, unsigned n, struct tcp_opts *o)
{
	if (kind == OPT_MSS && n == 2) {
		o->mss_ok = true;
		o->mss = get_be16(p);
	} else if (kind == OPT_WS && n == 1) {
		o->ws_ok = true;
		o->ws = p[0] > 14 ? 14 : p[0];
	} else if (kind == OPT_SACK_OK && n == 0) {
		o->sack_ok = true;
	} else if (kind == OPT_SACK) {
		parse_sack(p, n, o);
	} else if (kind == OPT_TS && n == 8) {
		o->ts_ok = true;
		o->tsval = get_be32(p);
		o->tsecr = get_be32(p + 4);
	}
}

bool tcp_opt_parse(const uint8_t *p, unsigned len, struct tcp_opts *o)
{
	memset(o, 0, sizeof(*o));
	for (unsigned at = 0; at < len;) {
		uint8_t kind = p[at];

		if (kind == OPT_EOL)
			return true;
		if (kind == OPT_NOP) {
			at++;
			continue;
		}
		if (at + 1 >= len || p[at + 1] < 2 || p[at + 1] > len - at)
			return false;
		parse_one(kind, p + at + 2, p[at + 1] - 2u, o);
		at += p[at + 1];
	}
	return true;
}

unsigned tcp_opt_ts(uint8_t *p, uint32_t tsval, uint32_t tsecr)
{
	p[0] = OPT_NOP;
	p[1] = OPT_NOP;
	p[2] = OPT_TS;
	p[3] = 10;
	put_be32(p + 4, tsval);
	put_be32(p + 8, tsecr);
	return TCP_TS_OPT;
}

unsigned tcp_opt_syn(
	uint8_t *p, uint16_t mss, int ws, bool sack, bool ts, uint32_t tsval, uint32_t tsecr)
{
	unsigned n = 4;

	p[0] = OPT_MSS;
	p[1] = 4;
	put_be16(p + 2, mss);
	if (ws >= 0) {
		p[n++] = OPT_NOP;
		p[n++] = OPT_WS;
		p[n++] = 3;
		p[n++] = (uint8_t)ws;
	}
	if (sack) {
		p[n++] = OPT_NOP;
		p[n++] = OPT_NOP;
		p[n++] = OPT_SACK_OK;
		p[n++] = 2;
	}
	if (ts)
		n += tcp_opt_ts(p + n, tsval, tsecr);
	return n;
}

unsigned tcp_opt_sack(uint8_t *opt, unsigned at, const uint32_t (*block)[2], unsigned n)
{
	uint8_t *p = opt + at;

	if (n > (40 - at - 4) / 8)
		n = (40 - at - 4) / 8;
	if (n == 0)
		return at;
	p[0] = OPT_NOP;
	p[1] = OPT_NOP;
	p[2] = OPT_SACK;
	p[3] = (uint8_t)(2 + 8 * n);
	for (unsigned i = 0; i < n; i++) {
		put_be32(p + 4 + 8 * i, block[i][0]);
		put_be32(p + 8 + 8 * i, block[i][1]);
	}
	return at + 4 + 8 * n;
}
