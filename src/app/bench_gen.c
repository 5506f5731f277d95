/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_gen: the one template of a run, and its clones. It knows packets, no port.
 */
#include "app/bench_gen.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/csum.h"
#include "wire/eth.h"

#define IP_LEN  20u
#define UDP_LEN 8u
#define TCP_LEN 32u /* with timestamps */

/* Sender and receiver, of the locally administered addresses and of 10.0.0.0/24. */
static const uint8_t src_mac[6] = {2, 0, 0, 0, 0, 1}, dst_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t src_ip[4] = {10, 0, 0, 1}, dst_ip[4] = {10, 0, 0, 2};

static void put_ip4(uint8_t *ip, uint32_t len, uint8_t proto)
{
	struct csum sum = {0};

	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)len);
	ip[6] = 0x40; /* not to be fragmented */
	ip[8] = 64;
	ip[9] = proto;
	memcpy(ip + 12, src_ip, 4);
	memcpy(ip + 16, dst_ip, 4);
	csum_piece(&sum, ip, IP_LEN);
	put_be16(ip + 10, csum_end(&sum));
}

static void put_udp(uint8_t *udp, uint32_t len)
{
	put_be16(udp, 9);
	put_be16(udp + 2, 9); /* discard */
	put_be16(udp + 4, (uint16_t)len);
	/* no checksum: allowed over IPv4, so that nobody spends time on it */
}

/* With the sum of the pseudo header in place of the checksum, as NEEDS_CSUM wants it. */
static void put_tcp(uint8_t *tcp, uint32_t len)
{
	struct csum sum = {0};

	put_be16(tcp, 9);
	put_be16(tcp + 2, 9);
	put_be32(tcp + 4, 1);
	put_be32(tcp + 8, 1);
	tcp[12] = TCP_LEN / 4 << 4;
	tcp[13] = 0x10; /* ACK */
	put_be16(tcp + 14, 65535);
	put_be32(tcp + 20, 0x0101080a); /* two bytes of padding, timestamps */
	csum_pseudo4(&sum, src_ip, dst_ip, 6, len);
	put_be16(tcp + 16, csum_fold(&sum));
}

static void gen_headers(struct bench_gen *g, bool super)
{
	uint32_t ip = g->size - ETH_HLEN;

	memcpy(g->head, dst_mac, 6);
	memcpy(g->head + 6, src_mac, 6);
	put_be16(g->head + 12, ETH_TYPE_IP4);
	put_ip4(g->head + ETH_HLEN, ip, super ? 6 : 17);
	if (!super) {
		put_udp(g->head + ETH_HLEN + IP_LEN, ip - IP_LEN);
		g->payload = ETH_HLEN + IP_LEN + UDP_LEN;
		g->head_len = g->size <= BENCH_LINEAR ? g->size : g->payload;
		memcpy(g->head + g->payload, g->pattern, g->head_len - g->payload);
		return;
	}
	put_tcp(g->head + ETH_HLEN + IP_LEN, ip - IP_LEN);
	g->payload = g->head_len = ETH_HLEN + IP_LEN + TCP_LEN;
	g->off = (struct offload){
		.flags = OFF_NEEDS_CSUM,
		.gso = OFF_GSO_TCPV4,
		.gso_size = BENCH_SEGMENT,
		.csum_start = ETH_HLEN + IP_LEN,
		.csum_off = 16,
		.hdr_len = (uint16_t)g->head_len,
	};
}

static int gen_payload(struct bench_gen *g, unsigned order, struct err *err)
{
	for (uint32_t left = g->size - g->head_len; left;) {
		struct chunk *c = g->npiece < PKT_FRAGS ? chunk_get(g->chunks, order) : NULL;
		struct pkt_frag *piece = &g->piece[g->npiece];

		if (!c)
			return err_set(err, ENOMEM,
				"no memory for %u bytes of payload in chunks of order %u; give "
				"more "
				"memory or a higher order",
				g->size - g->head_len, order);
		piece->chunk = c;
		piece->data = chunk_data(g->chunks, c);
		piece->len = left < chunk_size(c) ? left : chunk_size(c);
		for (uint32_t i = 0; i < piece->len; i += CHUNK_PAGE)
			memcpy(piece->data + i, g->pattern,
				piece->len - i < CHUNK_PAGE ? piece->len - i : CHUNK_PAGE);
		left -= piece->len;
		g->npiece++;
	}
	return 0;
}

int bench_gen_init(struct bench_gen *g, struct pkt_pool *pkts, uint32_t size, uint32_t mtu,
	uint32_t headroom, unsigned order, struct err *err)
{
	int r;

	*g = (struct bench_gen){
		.pkts = pkts, .chunks = pkts->chunks, .size = size, .headroom = headroom};
	for (unsigned i = 0; i < sizeof(g->pattern); i++)
		g->pattern[i] = (uint8_t)i;
	gen_headers(g, size > mtu + ETH_HLEN);
	r = gen_payload(g, order, err);
	if (r)
		bench_gen_fini(g);
	return r;
}

void bench_gen_fini(struct bench_gen *g)
{
	while (g->npiece)
		chunk_put(g->chunks, g->piece[--g->npiece].chunk);
}

struct pkt *bench_gen_make(struct bench_gen *g)
{
	struct pkt *p = pkt_new(g->pkts, g->headroom, g->head_len);

	if (!p)
		return NULL;
	memcpy(p->head, g->head, g->head_len);
	p->off = g->off;
	for (unsigned i = 0; i < g->npiece; i++) {
		const struct pkt_frag *f = &g->piece[i];

		chunk_ref(f->chunk);
		if (!pkt_add(p, f->chunk, f->data, f->len, chunk_size(f->chunk), false)) {
			pkt_free(p);
			return NULL;
		}
	}
	return p;
}

/* `len` bytes at `data` that begin at byte `at` of the frame. */
static bool piece_check(const struct bench_gen *g, const uint8_t *data, uint32_t len, uint32_t at)
{
	uint32_t i = at < g->payload ? g->payload - at : 0;

	while (i < len) {
		const uint32_t from = (at + i - g->payload) % 256;
		const uint32_t most = CHUNK_PAGE - from;
		const uint32_t n = len - i < most ? len - i : most;

		if (memcmp(data + i, g->pattern + from, n) != 0)
			return false;
		i += n;
	}
	return true;
}

bool bench_gen_check(const struct bench_gen *g, const struct pkt *p)
{
	uint32_t at = p->head_len;

	if (p->len != g->size || !piece_check(g, p->head, p->head_len, 0))
		return false;
	for (const struct pkt *q = p; q; q = q->chain)
		for (unsigned i = 0; i < q->nfrag; at += q->frag[i++].len)
			if (!piece_check(g, q->frag[i].data, q->frag[i].len, at))
				return false;
	return at == g->size;
}

struct pkt *bench_gen_announce(struct pkt_pool *pkts, uint32_t headroom)
{
	struct pkt *p = pkt_new(pkts, headroom, 60);

	if (!p)
		return NULL;
	memset(p->head, 0, 60);
	memset(p->head, 0xff, 6);
	memcpy(p->head + 6, dst_mac, 6);
	put_be16(p->head + 12, 0x88b5); /* for experiments [IEEE 802] */
	return p;
}
