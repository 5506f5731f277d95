/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_gen: the one template of a run, and its clones. It knows packets, no port.
 */
#include "app/bench_gen.h"

#include <errno.h>
#include <string.h>

#include "app/bench_stamp.h"
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
		g->headers = ETH_HLEN + IP_LEN + UDP_LEN;
		return;
	}
	put_tcp(g->head + ETH_HLEN + IP_LEN, ip - IP_LEN);
	g->headers = ETH_HLEN + IP_LEN + TCP_LEN;
	g->off = (struct offload){
		.flags = OFF_NEEDS_CSUM,
		.gso = OFF_GSO_TCPV4,
		.gso_size = BENCH_SEGMENT,
		.csum_start = ETH_HLEN + IP_LEN,
		.csum_off = 16,
		.hdr_len = (uint16_t)g->headers,
	};
}

/* Bytes of the payload, as they are in every packet. */
static void gen_bytes(const struct bench_gen *g, uint8_t *to, uint32_t from, uint32_t len)
{
	if (g->stamped)
		stamp_pattern(to, g->run, from, len);
	else
		for (uint32_t i = 0; i < len; i++)
			to[i] = (uint8_t)(from + i);
}

/* What lies in the head of each packet: a stamp cannot be shared. */
static void gen_head(struct bench_gen *g)
{
	g->head_len = g->headers + (g->stamped ? STAMP_LEN : 0);
	if (g->size <= BENCH_LINEAR)
		g->head_len = g->size;
	gen_bytes(g, g->head + g->headers, 0, g->head_len - g->headers);
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
		gen_bytes(g, piece->data, g->size - g->headers - left, piece->len);
		left -= piece->len;
		g->npiece++;
	}
	return 0;
}

int bench_gen_init(struct bench_gen *g, struct pkt_pool *pkts, const struct bench_gen_config *c,
	struct err *err)
{
	int r;

	*g = (struct bench_gen){
		.pkts = pkts,
		.chunks = pkts->chunks,
		.size = c->size,
		.headroom = c->headroom,
		.stamped = c->stamped,
		.run = c->run,
	};
	gen_headers(g, c->size > c->mtu + ETH_HLEN);
	gen_head(g);
	r = gen_payload(g, c->order, err);
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
	if (g->stamped)
		stamp_put(p->head + g->headers, g->run, g->serial++, g->size - g->headers);
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
