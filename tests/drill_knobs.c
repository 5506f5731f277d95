/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_knobs: what scripts take for granted (a receive buffer of 65536 bytes offered whole, a send
 * buffer of 32768, delayed acknowledgements of at most 40 ms, no pacing), what their --knob lines say, and for
 * scripts of foreign suites what their names say: there the set-up was done by shell commands.
 */
#include "drill_knobs.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "drill_host.h"

static const struct by_name {
	const char *glob, *knob;
} by_name[] = {
	{"snd-syn-with-ecn-*", "ecn=1"},
	{"snd-syn-with-ecn-ipv?.pkt", "ecn_retries=1"},
	{"*-ecn10.pkt", "ecn=1"},
	{"*-dropping-enabled-ipv?.pkt", "drop_synfin=1"},
	{"*-secure-drop-ipv?.pkt", "drop_synfin=1"},
	{"snd-syn-without-sack-and-ws-and-ts-*", "no_sack=1"},
	{"snd-syn-without-sack-and-ws-and-ts-*", "no_ws=1"},
	{"snd-syn-without-sack-and-ws-and-ts-*", "no_ts=1"},
	{"snd-syn-without-ws-and-ts-*", "no_ws=1"},
	{"snd-syn-without-ws-and-ts-*", "no_ts=1"},
	{"snd-syn-without-sack-ipv?.pkt", "no_sack=1"},
	{"snd-syn-with-max-ws-*", "wscale=14"},
	{"snd-syn-with-min-ws-*", "wscale=0"},
};

/*
 * The suites' home rounds a connecting socket's buffer up to whole segments of the peer's MSS, and
 * takes what fits there, although it offered 65535: the right edges in their scripts say so.
 */
static uint32_t rcvbuf_of(const struct script *s)
{
	bool connects = false;
	uint32_t mss = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct event *ev = &s->ev[i];

		connects |= ev->kind == EV_CALL && !strcmp(ev->call.name, "connect");
		if (ev->kind != EV_IN || mss || !(ev->seg.flags & SYN))
			continue;
		for (unsigned k = 0; k < ev->seg.opts.n; k++)
			if (ev->seg.opts.o[k].kind == OPT_MSS)
				mss = ev->seg.opts.o[k].v[0];
	}
	return connects && mss ? (65536 + mss - 1) / mss * mss : 65536;
}

int conf_of_script(const struct script *s, struct tcp_conf *c, struct err *err)
{
	const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;

	*c = (struct tcp_conf){
		.conns = 64,
		.txsegs = 4096,
		.rxbufs = 4096,
		.syns = 64,
		.timewaits = 64,
		.mtu = s->mtu ? s->mtu : 1500,
		.rcvbuf = rcvbuf_of(s),
		.sndbuf = 32768,
		.wscale = 6,
		.fixed_rcvbuf = true,
		.delack = 40 * NSEC_PER_MSEC,
		.plain_delack = true,
		.no_pacing = true,
	};
	for (unsigned i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++)
		if (!fnmatch(by_name[i].glob, name, 0))
			host_knob(c, by_name[i].knob);
	for (unsigned i = 0; i < s->nknobs; i++)
		if (!host_knob(c, s->knob[i]))
			return err_set(err, EINVAL, "%s: no such knob: %s", s->path, s->knob[i]);
	return 0;
}
