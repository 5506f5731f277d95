/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_cookie: a SYN-ACK that keeps nothing. The sequence number is 5 bits of a counter of 64 s, 3 bits
 * of the peer's MSS, 24 bits of a keyed hash; the lowest bits of the timestamp carry window scale,
 * SACK and ECN. [RFC 4987 3.6]
 */
#include <string.h>

#include "net/siphash.h"
#include "net/tcp_int.h"

#define COOKIE_PERIOD (64 * NSEC_PER_SEC)
#define COOKIE_AGES   2 /* periods a cookie lives */
#define TS_BITS       6 /* scale 4 (15: none), SACK 1, ECN 1 */

static const uint16_t mss_table[8] = {216, 536, 1220, 1360, 1400, 1440, 1460, 8960};

static uint32_t mac(
	struct tcp_host *h, const struct tcp_tuple *tu, uint32_t irs, uint32_t count, unsigned mss)
{
	struct {
		struct tcp_tuple tu;
		uint32_t irs, count, mss;
		char what[4];
	} in;

	memset(&in, 0, sizeof(in));
	in.tu = *tu;
	in.irs = irs;
	in.count = count;
	in.mss = mss;
	memcpy(in.what, "cook", 4);
	return (uint32_t)siphash(h->conf.secret + 16, &in, sizeof(in)) & 0xffffff;
}

uint32_t tcp_cookie_make(struct tcp_host *h, const struct tcp_in *in)
{
	uint32_t count = (uint32_t)(h->now / COOKIE_PERIOD);
	uint16_t want = in->o.mss_ok ? in->o.mss : TCP_MSS_DEFAULT4;
	unsigned i = 7;

	while (i > 0 && mss_table[i] > want)
		i--;
	return (count & 31) << 27 | i << 24 | mac(h, &in->s->tuple, in->seq, count, i);
}

uint32_t tcp_cookie_ts(struct tcp_host *h, const struct tcp_in *in)
{
	uint32_t now = tcp_ts_now(h, tcp_ts_offset(h, &in->s->tuple)), ts;

	ts = now & ~((1u << TS_BITS) - 1);
	ts |= in->o.ws_ok && !h->conf.no_ws ? in->o.ws : 15;
	ts |= in->o.sack_ok && !h->conf.no_sack ? 16 : 0;
	ts |= (in->flags & (TCP_ECE | TCP_CWR)) == (TCP_ECE | TCP_CWR) ? 32 : 0;
	return (int32_t)(ts - now) > 0 ? ts - (1u << TS_BITS) : ts;
}

/* The first ACK of a handshake that left no trace: rebuild it. */
bool tcp_cookie_check(struct tcp_host *h, const struct tcp_in *in, struct tcp_syn *s)
{
	uint32_t cookie = in->ack - 1, irs = in->seq - 1, now = (uint32_t)(h->now / COOKIE_PERIOD);
	unsigned mss = cookie >> 24 & 7;

	if (h->cookie_sent == 0 || h->now - h->cookie_sent > COOKIE_AGES * COOKIE_PERIOD)
		return false; /* none is out: nothing to guess at */

	for (uint32_t age = 0; age < COOKIE_AGES && age <= now; age++) {
		if (((now - age) & 31) != cookie >> 27 ||
			mac(h, &in->s->tuple, irs, now - age, mss) != (cookie & 0xffffff))
			continue;
		s->node.tuple = in->s->tuple;
		s->irs = irs;
		s->iss = cookie;
		s->mss = mss_table[mss];
		s->wnd = in->s->wnd;
		s->rcv_wnd = u32_min(h->conf.rcvbuf, 65535);
		s->ts_ok = in->o.ts_ok && !h->conf.no_ts;
		if (s->ts_ok) {
			s->ts_recent = in->o.tsval;
			s->ws = in->o.tsecr & 15;
			s->ws_ok = s->ws != 15;
			s->sack_ok = in->o.tsecr & 16;
			s->ecn = in->o.tsecr & 32;
		}
		h->c.cookies_ok++;
		return true;
	}
	h->c.cookies_bad++;
	return false;
}
