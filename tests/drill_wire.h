/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_wire: a whole host instead of the engine alone: segments go in and come out as Ethernet
 * frames, with real headers and checksums; ICMP messages quote a packet, neighbours are asked for and
 * answer.
 */
#ifndef TESTS_DRILL_WIRE_H
#define TESTS_DRILL_WIRE_H

#include "drill_host.h"

struct wire;

/* A host with both addresses; its engine is h->tcp, its memory h->pkts, until wire_free. */
/* `rings`: on a driver and a device over its rings. */
int wire_new(struct wire **, struct host *, bool ip6, bool rings, struct err *);
void wire_free(struct wire *);

/* `opt` as bytes; the payload is in h->buf. */
void wire_in(struct wire *, struct host *, const struct tcp_tuple *, const struct seg *,
	const uint8_t *opt, unsigned opt_len, nsec_t now);
void wire_icmp(struct wire *, struct host *, const struct tcp_tuple *, const struct quote *,
	uint32_t seq, nsec_t now);
/* The next TCP segment, without its options parsed: they are in opt[]. Other packets are seen to. */
bool wire_out(struct wire *, struct host *, struct host_out *, uint8_t opt[40], unsigned *opt_len,
	nsec_t now);
nsec_t wire_deadline(const struct wire *);
void wire_timer(struct wire *, nsec_t now);

#endif
