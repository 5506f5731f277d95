/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_stamp: what `weft bench --verify` writes into its frames and looks for at the other end, in
 * whatever process that is. The payload begins with a stamp: what it is, of which run, which packet,
 * how long, and a check of these; every further byte is a function of the run and of its place. A
 * packet that was cut on the way is checked segment by segment: the TCP sequence number says where each
 * belongs. Knows packets, no port.
 */
#ifndef APP_BENCH_STAMP_H
#define APP_BENCH_STAMP_H

#include "frame/pkt.h"

#define STAMP_LEN     20
#define STAMP_PAYLOAD 65536
#define STAMP_WINDOW  65536 /* packets: what is as late as that is late, and may be a duplicate */

/* to[0 .. STAMP_LEN) */
void stamp_put(uint8_t *to, uint32_t run, uint32_t serial, uint32_t payload_len);
/* Payload bytes [from, from + len), from >= STAMP_LEN. */
void stamp_pattern(uint8_t *to, uint32_t run, uint32_t from, uint32_t len);

/* What came, packet by packet; packets of no stamp, such as a guest's own, are foreign. */
struct stamp_check {
	uint64_t good;       /* stamped, and each byte as it was sent */
	uint64_t segments;   /* further ones of packets that were cut: likewise */
	uint64_t corrupt;    /* something is not as it was sent */
	uint64_t duplicated; /* good, and had come before */
	uint64_t reordered;  /* good, after one that was sent later */
	uint64_t foreign;
	uint64_t bytes_due,
		bytes; /* of the packets whose stamp came: payload that was sent, and that came */

	bool begun;
	uint32_t run, first,
		next; /* packets between these have been sent; next: behind the last seen */
	uint64_t seen[STAMP_WINDOW / 64];
	uint8_t pattern[STAMP_PAYLOAD];
};

void stamp_check_init(struct stamp_check *);
/* True: a good packet, or a part of one. */
bool stamp_check(struct stamp_check *, const struct pkt *);
/* Sent before the last one that came, and not come. */
uint64_t stamp_missing(const struct stamp_check *);
/* Payload of packets that came in part: cut off, or in segments that were lost. */
uint64_t stamp_missing_bytes(const struct stamp_check *);

#endif
