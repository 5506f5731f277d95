/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fit: what is done in software for a receiver that cannot take a frame as it is: finish its
 * checksum, or cut a super-packet into segments. Works on checked frames only (offload.c), never
 * writes into the loan, and knows no port.
 *
 * Cutting: all segments share one template, the super-packet's headers with everything that differs
 * between segments set to zero, and the sums over it. A segment is the template, a handful of
 * fields, and slices of the loan's pieces; its checksums are the template's sums plus those few
 * fields plus the payload. Nothing is carried from one segment to the next but the place in the
 * payload, so cutting can begin at any segment.
 *
 * The payload of a segment whose checksum is finished here is read twice: summed, then copied. A
 * lender that changes it in between spoils its own checksum, nothing else.
 * [RFC 791, RFC 8200 8.1, RFC 9293 3.1, RFC 768, RFC 3168 6.1.2]
 */
#include "frame/offload.h"
#include "wire/bytes.h"
#include "wire/csum.h"

#include <string.h>

#define PROTO_TCP 6
#define PROTO_UDP 17

#define IP4_LEN  2
#define IP4_ID   4
#define IP4_CSUM 10
#define IP4_SRC  12
#define IP4_DST  16
#define IP6_LEN  4
#define IP6_SRC  8
#define IP6_DST  24
#define IP6_HLEN 40

#define TCP_SEQ   4
#define TCP_FLAGS 13
#define TCP_CSUM  16
#define UDP_LEN   4
#define UDP_CSUM  6

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_URG 0x20
#define TCP_CWR 0x80

#define NEVER 0xff
#define TSO4  (ACCEPT_CSUM | ACCEPT_TSO4)
#define TSO6  (ACCEPT_CSUM | ACCEPT_TSO6)
/* one type for both IP versions; drivers and kernels have both or none */
#define USO (ACCEPT_CSUM | ACCEPT_USO4 | ACCEPT_USO6)

const uint8_t fit_gso_accept[256] = {
	[OFF_GSO_NONE] = 0,
	[OFF_GSO_TCPV4] = TSO4,
	[2 ... 3] = NEVER,
	[OFF_GSO_TCPV6] = TSO6,
	[OFF_GSO_UDP_L4] = USO,
	[6 ... OFF_GSO_ECN] = NEVER,
	[OFF_GSO_ECN | OFF_GSO_TCPV4] = ACCEPT_ECN | TSO4,
	[(OFF_GSO_ECN | 2)...(OFF_GSO_ECN | 3)] = NEVER,
	[OFF_GSO_ECN | OFF_GSO_TCPV6] = ACCEPT_ECN | TSO6,
	[(OFF_GSO_ECN | OFF_GSO_UDP_L4)... 255] = NEVER,
};

/* Addresses and protocol; the length is added by who knows it. */
static void sum_pseudo(struct csum *c, const uint8_t *head, const struct hdrs *h, uint32_t len)
{
	const uint8_t *ip = head + h->l3;

	if (h->ip == 4)
		csum_pseudo4(c, ip + IP4_SRC, ip + IP4_DST, h->proto, len);
	else
		csum_pseudo6(c, ip + IP6_SRC, ip + IP6_DST, h->proto, len);
}

/* 0 means "no checksum" in UDP; 0xffff is the same number. */
static uint16_t csum_of(const struct csum *c, bool udp)
{
	const uint16_t v = csum_end(c);

	return v || !udp ? v : 0xffff;
}

/* ---- finish a checksum ---- */

/* Sum `len` bytes of the frame from `from`, which lies in the head. */
static void sum_frame(struct csum *c, const struct frame *f, uint32_t from, uint32_t len)
{
	uint32_t n = f->head_len - from;

	if (n > len)
		n = len;
	csum_piece(c, f->head + from, n);
	len -= n;
	for (const struct iovec *piece = f->tail; len; piece++) {
		n = piece->iov_len < len ? (uint32_t)piece->iov_len : len;
		csum_piece(c, piece->iov_base, n);
		len -= n;
	}
}

/*
 * Is it TCP's or UDP's own checksum over IP? Then *len is what it covers: by the IP header, which
 * leaves out Ethernet padding, unless that contradicts the frame.
 */
static bool known_csum(const struct frame *f, struct hdrs *h, uint32_t *len)
{
	const uint32_t there = frame_len(f) - f->off.csum_start;

	if (hdrs_parse(f->head, f->head_len, frame_len(f), h) != HDRS_OK || !h->payload ||
		h->l4 != f->off.csum_start ||
		f->off.csum_off != (h->proto == PROTO_TCP ? TCP_CSUM : UDP_CSUM))
		return false;
	*len = h->ip_len - (uint32_t)(h->l4 - h->l3);
	if (h->ip_len < (uint32_t)(h->payload - h->l3) || *len > there)
		*len = there;
	return true;
}

enum drop fit_csum(struct fit *fit, const struct frame *f)
{
	const uint32_t field = (uint32_t)f->off.csum_start + f->off.csum_off;
	struct frame *out = &fit->f[fit->n];
	struct csum c = {0};
	struct hdrs h;
	uint32_t len;

	if (f->off.gso || field + 2 > f->head_len || f->head_len > FRAME_PULL_MAX)
		return DROP_NO_OFFLOAD;
	*out = *f;
	out->head = fit->head[fit->n].data;
	out->off = (struct offload){0};
	memcpy(out->head, f->head, f->head_len);
	len = frame_len(f) - f->off.csum_start;
	if (known_csum(f, &h, &len)) {
		/* the partial sum may be absent or finished already: made anew */
		put_be16(out->head + field, 0);
		sum_pseudo(&c, f->head, &h, len);
	}
	sum_frame(&c, out, f->off.csum_start, len);
	put_be16(out->head + field, csum_of(&c, f->off.csum_off == UDP_CSUM));
	fit->n++;
	return DROP_NONE;
}

/* ---- cut a super-packet ---- */

struct cut {
	struct hdrs h;
	uint32_t payload;    /* of the super-packet */
	struct pkt *backing; /* of the super-packet, if any: its segments show the same memory */
	uint32_t size;       /* of a segment's payload, but the last's */
	unsigned n;          /* segments */
	uint32_t seq;        /* of the first segment */
	uint16_t id;         /* of the first segment */
	uint8_t flags;       /* TCP's */
	bool partial;        /* the receiver finishes checksums */
	struct csum ip;      /* over the IPv4 header of the template */
	struct csum pseudo;  /* without the length */
	struct csum l4;      /* pseudo, and the TCP or UDP header of the template */
	uint8_t hdr[FRAME_PULL_MAX];
};

static bool types_agree(const struct cut *c, const struct frame *f)
{
	switch (f->off.gso) {
	case OFF_GSO_TCPV4:
	case OFF_GSO_TCPV4 | OFF_GSO_ECN:
		return c->h.ip == 4 && c->h.proto == PROTO_TCP;
	case OFF_GSO_TCPV6:
	case OFF_GSO_TCPV6 | OFF_GSO_ECN:
		return c->h.ip == 6 && c->h.proto == PROTO_TCP;
	case OFF_GSO_UDP_L4:
		return c->h.proto == PROTO_UDP;
	default:
		return false;
	}
}

/* Take out of the template what differs between segments, keeping what they start from. */
static void blank_tcp(struct cut *c)
{
	uint8_t *tcp = c->hdr + c->h.l4;

	c->seq = get_be32(tcp + TCP_SEQ);
	c->flags = tcp[TCP_FLAGS];
	put_be32(tcp + TCP_SEQ, 0);
	tcp[TCP_FLAGS] = 0;
	put_be16(tcp + TCP_CSUM, 0);
}

static void blank_udp(struct cut *c)
{
	put_be16(c->hdr + c->h.l4 + UDP_LEN, 0);
	put_be16(c->hdr + c->h.l4 + UDP_CSUM, 0);
}

static void blank_ip(struct cut *c)
{
	uint8_t *ip = c->hdr + c->h.l3;

	if (c->h.ip == 6) {
		put_be16(ip + IP6_LEN, 0);
		return;
	}
	c->id = get_be16(ip + IP4_ID);
	put_be16(ip + IP4_LEN, 0);
	put_be16(ip + IP4_ID, 0);
	put_be16(ip + IP4_CSUM, 0);
	csum_piece(&c->ip, ip, (ip[0] & 15) * 4u);
}

static enum drop cut_open(struct cut *c, const struct frame *f, unsigned accepts)
{
	if (!f->off.gso || !f->off.gso_size || f->head_len > FRAME_PULL_MAX ||
		hdrs_parse(f->head, f->head_len, frame_len(f), &c->h) != HDRS_OK || !c->h.payload ||
		!types_agree(c, f))
		return DROP_NO_OFFLOAD;
	c->partial = accepts & ACCEPT_CSUM;
	c->payload = frame_len(f) - c->h.payload;
	c->backing = f->backing;
	c->size = f->off.gso_size;
	c->n = fit_segments(f);
	c->ip = c->pseudo = (struct csum){0};
	memcpy(c->hdr, f->head, c->h.payload);
	sum_pseudo(&c->pseudo, c->hdr, &c->h, 0);
	c->l4 = c->pseudo;
	blank_ip(c);
	if (c->h.proto == PROTO_TCP)
		blank_tcp(c);
	else
		blank_udp(c);
	if (c->h.proto == PROTO_TCP && (c->flags & (TCP_SYN | TCP_RST | TCP_URG)))
		return DROP_NO_OFFLOAD;
	csum_piece(&c->l4, c->hdr + c->h.l4, c->h.payload - c->h.l4);
	return DROP_NONE;
}

/* A place in the payload: the rest of the head, then the pieces of the tail. */
struct place {
	uint8_t *p;
	size_t left;
	const struct iovec *next;
};

static void place_at(struct place *at, const struct frame *f, uint32_t offset)
{
	*at = (struct place){f->head, f->head_len, f->tail};
	while (offset > at->left) {
		offset -= (uint32_t)at->left;
		at->p = at->next->iov_base;
		at->left = at->next->iov_len;
		at->next++;
	}
	at->p += offset;
	at->left -= offset;
}

/* The next `len` bytes as slices of fit->iov; summed where `sum` is given. False: no more room. */
static bool slice(
	struct fit *fit, struct frame *seg, struct place *at, uint32_t len, struct csum *sum)
{
	seg->tail = fit->iov + fit->niov;
	seg->tail_len = len;
	for (seg->ntail = 0; len;) {
		const size_t n = at->left < len ? at->left : len;

		if (!n) {
			at->p = at->next->iov_base;
			at->left = at->next->iov_len;
			at->next++;
			continue;
		}
		if (fit->niov == FIT_IOV)
			return false;
		if (sum)
			csum_piece(sum, at->p, n);
		fit->iov[fit->niov++] = (struct iovec){at->p, n};
		seg->ntail++;
		at->p += n;
		at->left -= n;
		len -= (uint32_t)n;
	}
	return true;
}

/* `len` is the segment's payload. */
static void put_ip(const struct cut *c, uint8_t *ip, unsigned k, uint32_t len)
{
	const uint16_t total = (uint16_t)(c->h.payload - c->h.l3 + len);
	const uint16_t id = (uint16_t)(c->id + k);
	struct csum sum = c->ip;

	if (c->h.ip == 6) {
		put_be16(ip + IP6_LEN, (uint16_t)(total - IP6_HLEN));
		return;
	}
	csum_u16(&sum, total);
	csum_u16(&sum, id);
	put_be16(ip + IP4_LEN, total);
	put_be16(ip + IP4_ID, id);
	put_be16(ip + IP4_CSUM, csum_end(&sum));
}

static uint8_t flags_of(const struct cut *c, unsigned k)
{
	uint8_t flags = c->flags;

	if (k)
		flags &= (uint8_t)~TCP_CWR; /* said once; ECE goes on until CWR is heard */
	if (k != c->n - 1)
		flags &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	return flags;
}

/* The fields of the TCP or UDP header; they are added to `sum`, too. */
static void put_l4(const struct cut *c, uint8_t *l4, unsigned k, uint32_t len, struct csum *sum)
{
	if (c->h.proto == PROTO_TCP) {
		const uint32_t seq = c->seq + k * c->size;
		const uint8_t flags = flags_of(c, k);

		put_be32(l4 + TCP_SEQ, seq);
		l4[TCP_FLAGS] = flags;
		csum_u32(sum, seq);
		csum_u16(sum, flags);
	} else {
		put_be16(l4 + UDP_LEN, (uint16_t)len);
		csum_u16(sum, (uint16_t)len);
	}
	csum_u32(sum, len); /* of the pseudo header */
}

static bool cut_one(const struct cut *c, struct fit *fit, struct place *at, unsigned k)
{
	const bool udp = c->h.proto == PROTO_UDP;
	const uint16_t csum_off = udp ? UDP_CSUM : TCP_CSUM;
	const uint32_t from = k * c->size;
	const uint32_t len = c->payload - from < c->size ? c->payload - from : c->size;
	const uint32_t l4_len = (uint32_t)(c->h.payload - c->h.l4) + len;
	struct frame *seg = &fit->f[fit->n];
	uint8_t *head = fit->head[fit->n].data;
	struct csum sum = c->l4;
	uint16_t field;

	if (!slice(fit, seg, at, len, c->partial ? NULL : &sum))
		return false;
	seg->head = head;
	seg->head_len = c->h.payload;
	seg->backing = c->backing;
	seg->charge = 0;
	seg->drop = DROP_NONE;
	memcpy(head, c->hdr, c->h.payload);
	put_ip(c, head + c->h.l3, k, len);
	put_l4(c, head + c->h.l4, k, l4_len, &sum);
	if (c->partial) {
		sum = c->pseudo;
		csum_u32(&sum, l4_len);
		field = csum_fold(&sum);
		seg->off = (struct offload){.flags = OFF_NEEDS_CSUM,
			.csum_start = c->h.l4,
			.csum_off = csum_off,
			.hdr_len = c->h.payload};
	} else {
		field = csum_of(&sum, udp);
		seg->off = (struct offload){0};
	}
	put_be16(head + c->h.l4 + csum_off, field);
	fit->n++;
	return true;
}

unsigned fit_segments(const struct frame *f)
{
	const uint32_t len = frame_len(f);

	if (!f->off.gso || !f->off.gso_size || len <= f->off.hdr_len)
		return 1;
	return (len - f->off.hdr_len + f->off.gso_size - 1) / f->off.gso_size;
}

enum drop fit_segment(struct fit *fit, const struct frame *f, unsigned first, unsigned accepts)
{
	struct cut c;
	enum drop why = cut_open(&c, f, accepts);
	struct place at;

	fit_reset(fit);
	if (why != DROP_NONE)
		return why;
	if (first >= c.n)
		return DROP_NO_OFFLOAD;
	place_at(&at, f, c.h.payload + first * c.size);
	for (unsigned k = first; k < c.n && fit->n < FIT_BATCH; k++)
		if (!cut_one(&c, fit, &at, k))
			break;
	return fit->n ? DROP_NONE : DROP_NO_OFFLOAD;
}
