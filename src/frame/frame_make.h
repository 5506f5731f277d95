/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_make: frames for tests, spelled by a handful of numbers, and lent in random pieces, each piece
 * in memory of just its size. Also the checksum written one byte at a time. Only for tests.
 */
#ifndef FRAME_FRAME_MAKE_H
#define FRAME_FRAME_MAKE_H

#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "frame/frame.h"
#include "wire/bytes.h"

#define MAKE_MAX    70000
#define MAKE_PIECES 6000

struct recipe {
	unsigned tags;     /* VLAN tags */
	unsigned ip;       /* 4, 6, 0: an unknown EtherType */
	unsigned options;  /* bytes: IPv4 options, or an IPv6 hop-by-hop header */
	unsigned proto;    /* 6, 17, or what one likes */
	unsigned tcp_opts; /* bytes */
	uint8_t flags;     /* TCP */
	uint16_t id;
	uint32_t seq;
	uint32_t payload; /* bytes */
};

struct made {
	struct recipe r;
	uint8_t flat[MAKE_MAX];     /* the frame in one piece */
	uint32_t len, l3, l4, data; /* data: first payload byte */
	struct frame f;
	struct frame_head head;
	struct iovec iov[MAKE_PIECES];
	void *mem[MAKE_PIECES];
	unsigned nmem;
};

/* Sum of a run that begins at an even place; the slow way. */
static inline uint32_t slow_sum(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline uint32_t slow_pseudo(
	const uint8_t *ip, unsigned version, unsigned proto, uint32_t len)
{
	const uint8_t tail[8] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
		(uint8_t)len, 0, 0, 0, (uint8_t)proto};
	const uint32_t sum = version == 4 ? slow_sum(0, ip + 12, 8) : slow_sum(0, ip + 8, 32);

	return slow_sum(sum, tail, 8);
}

static inline uint32_t make_ip4(struct made *m, uint8_t *ip)
{
	const uint32_t hlen = 20 + m->r.options;

	ip[0] = (uint8_t)(0x40 | hlen / 4);
	put_be16(ip + 2, (uint16_t)(m->len - m->l3));
	put_be16(ip + 4, m->r.id);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = (uint8_t)m->r.proto;
	memcpy(ip + 12, "\x0a\x01\x02\x03\x0a\xfe\xfd\xfc", 8);
	memset(ip + 20, 1, m->r.options);
	put_be16(ip + 10, (uint16_t)~slow_sum(0, ip, hlen));
	return hlen;
}

static inline uint32_t make_ip6(struct made *m, uint8_t *ip)
{
	ip[0] = 0x60;
	put_be16(ip + 4, (uint16_t)(m->len - m->l3 - 40));
	ip[6] = (uint8_t)(m->r.options ? 0 : m->r.proto);
	ip[7] = 64;
	for (unsigned i = 8; i < 40; i++)
		ip[i] = (uint8_t)(i * 41);
	if (m->r.options) {
		ip[40] = (uint8_t)m->r.proto;
		ip[41] = (uint8_t)(m->r.options / 8 - 1);
		memset(ip + 42, 0, m->r.options - 2);
	}
	return 40 + m->r.options;
}

static inline uint32_t make_l4(struct made *m, uint8_t *l4)
{
	const uint32_t pseudo = slow_pseudo(m->flat + m->l3, m->r.ip, m->r.proto, m->len - m->l4);

	put_be16(l4, 1234);
	put_be16(l4 + 2, 80);
	if (m->r.proto == 17) {
		put_be16(l4 + 4, (uint16_t)(m->len - m->l4));
		put_be16(l4 + 6, (uint16_t)pseudo);
		return 8;
	}
	put_be32(l4 + 4, m->r.seq);
	put_be32(l4 + 8, 0x01020304);
	l4[12] = (uint8_t)((20 + m->r.tcp_opts) << 2);
	l4[13] = m->r.flags;
	put_be16(l4 + 14, 512);
	put_be16(l4 + 16, (uint16_t)pseudo);
	memset(l4 + 20, 1, m->r.tcp_opts);
	return 20 + m->r.tcp_opts;
}

/* The flat frame, with true lengths and a partial checksum. */
static inline void make(struct made *m, const struct recipe *r, struct rand *rnd)
{
	const uint32_t l4_len = r->proto == 6 ? 20 + r->tcp_opts : r->proto == 17 ? 8 : 0;
	uint8_t *p = m->flat;

	m->r = *r;
	m->l3 = 14 + 4 * r->tags;
	m->l4 = m->l3 + (r->ip == 4 ? 20 : r->ip == 6 ? 40 : 0) + r->options;
	m->data = m->l4 + l4_len;
	m->len = m->data + r->payload;
	memset(p, 0, m->data);
	memcpy(p, "\x52\x54\0\0\0\1\x52\x54\0\0\0\2", 12);
	for (unsigned i = 0; i < r->tags; i++)
		put_be32(p + 12 + 4 * i, 0x81000000 | (i + 7));
	put_be16(p + m->l3 - 2, r->ip == 4 ? 0x800 : r->ip == 6 ? 0x86dd : 0x88b5);
	for (uint32_t i = m->data; i < m->len; i++)
		p[i] = (uint8_t)rand_u64(rnd);
	if (r->ip == 4)
		make_ip4(m, p + m->l3);
	else if (r->ip == 6)
		make_ip6(m, p + m->l3);
	if (l4_len)
		make_l4(m, p + m->l4);
}

/* Lend it: `head_len` private bytes, the rest in pieces of 0 .. most bytes. */
static inline void make_lend(struct made *m, uint32_t head_len, uint32_t most, struct rand *rnd)
{
	uint32_t at = head_len < m->len ? head_len : m->len;

	m->nmem = 0;
	memcpy(m->head.data, m->flat, at);
	m->f = (struct frame){.head = m->head.data, .head_len = (uint16_t)at, .tail = m->iov};
	while (at < m->len) {
		uint32_t n = m->nmem < MAKE_PIECES - 1 ? rand_below(rnd, most + 1) : m->len;

		if (n > m->len - at)
			n = m->len - at;
		m->mem[m->nmem] = malloc(n + !n);
		memcpy(m->mem[m->nmem], m->flat + at, n);
		m->iov[m->nmem] = (struct iovec){m->mem[m->nmem], n};
		m->nmem++;
		at += n;
		m->f.tail_len += n;
	}
	m->f.ntail = (uint16_t)m->nmem;
}

static inline void make_end(struct made *m)
{
	for (unsigned i = 0; i < m->nmem; i++)
		free(m->mem[i]);
	m->nmem = 0;
}

/* What a frame holds, flat; returns its length. */
static inline uint32_t frame_flatten(const struct frame *f, uint8_t *out)
{
	uint32_t n = f->head_len;

	memcpy(out, f->head, n);
	for (unsigned i = 0; i < f->ntail; i++) {
		memcpy(out + n, f->tail[i].iov_base, f->tail[i].iov_len);
		n += (uint32_t)f->tail[i].iov_len;
	}
	return n;
}

/* Offload fields as a sender would set them for the recipe. */
static inline struct offload make_off(const struct made *m, uint16_t gso_size)
{
	struct offload off = {.flags = OFF_NEEDS_CSUM,
		.csum_start = (uint16_t)m->l4,
		.csum_off = m->r.proto == 17 ? 6 : 16,
		.gso_size = gso_size,
		.hdr_len = (uint16_t)m->data};

	if (gso_size)
		off.gso = m->r.proto == 17 ? OFF_GSO_UDP_L4
			  : m->r.ip == 4   ? OFF_GSO_TCPV4
					   : OFF_GSO_TCPV6;
	if (gso_size && m->r.proto == 6 && (m->r.flags & 0x80))
		off.gso |= OFF_GSO_ECN;
	return off;
}

#endif
