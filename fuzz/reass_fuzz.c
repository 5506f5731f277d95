/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reass_fuzz: fragments of anybody. Records of 6 bytes: { who, number, offset (2), length, how }; a byte of
 * payload follows from number and place, so that however a datagram was cut, whole it is the same.
 *
 * Memory never exceeds its caps, a datagram that comes out is what was sent, and nothing is left.
 */
#include <stdlib.h>
#include <string.h>

#include "net/reass.h"
#include "wire/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define HEAD 34

struct bed {
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct reass *r;
	nsec_t now;
	struct frame_head head;
	struct iovec iov[2048];
	uint8_t flat[70000];
};

static void must(bool good)
{
	if (!good)
		abort();
}

static uint8_t byte_of(uint8_t number, uint32_t at)
{
	return (uint8_t)(number * 31 + at * 7 + (at >> 8) * 13);
}

static void whole(struct bed *b, struct pkt *p, uint8_t number)
{
	const uint32_t n = p->len;
	struct iovec to = {b->flat, sizeof(b->flat)};
	struct frame f;

	must(n > HEAD && n - HEAD <= 65535 && pkt_lend(p, &f, &b->head, b->iov, 2048));
	frame_copy(&f, 0, n, &to, 1, 0);
	for (uint32_t i = 0; i < n; i++)
		must(b->flat[i] == (i < HEAD ? 0x11 : byte_of(number, i - HEAD)));
	pkt_free(p);
}

static void fragment(struct bed *b, const uint8_t *rec)
{
	const uint8_t number = rec[1], how = rec[5];
	struct reass_frag f = {.key = {.src = ip_addr4_u32(1u + rec[0] % 8),
				       .dst = ip_addr4_u32(99),
				       .id = number,
				       .proto = how & 64 ? 17 : 0},
		.offset = get_be16(rec + 2) % 8200 * 8u,
		.len = how & 32 ? rec[4] : rec[4] * 8u,
		.at = HEAD,
		.more = how & 1,
		.ecn = how >> 1 & 3,
		.head_len = how & 16 && rec[4] < 4 ? HEAD + 100 : HEAD};
	struct pkt *p = pkt_new(&b->pkts, 0, HEAD + f.len);
	struct reass_whole w;

	if (p == NULL)
		return;
	memset(p->head, f.offset ? 0xee : 0x11, HEAD);
	for (uint32_t i = 0; i < f.len; i++)
		p->head[HEAD + i] = byte_of(number, f.offset + i);
	if (how & 16 && rec[4] >= 250)
		f.len += 8; /* more than is there */
	p = reass_in(b->r, p, &f, &w, b->now);
	if (p != NULL)
		whole(b, p, number);
	must(reass_bytes(b->r) <= REASS_BYTES);
}

static void time_passes(struct bed *b, uint8_t s)
{
	struct pkt *p;

	b->now += s * NSEC_PER_SEC / 16;
	while ((p = reass_timer(b->r, b->now)) != NULL)
		pkt_free(p);
	must(reass_deadline(b->r) > b->now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t key[16] = {1, 2, 3};
	struct bed *b = calloc(1, sizeof(*b));

	must(b && !chunk_pool_init(&b->chunks, 8 << 20, NULL) &&
		!pkt_pool_init(&b->pkts, &b->chunks, 2048, NULL) &&
		!reass_new(&b->r, key, 1, &b->pkts, NULL));
	for (; len >= 6; data += 6, len -= 6) {
		fragment(b, data);
		if (data[5] & 128)
			time_passes(b, data[0]);
	}
	reass_free(b->r);
	must(b->pkts.live == 0);
	pkt_pool_fini(&b->pkts);
	must(chunk_pool_live(&b->chunks) == 0);
	chunk_pool_fini(&b->chunks);
	free(b);
	return 0;
}
