/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload: what a lent frame asks of its receiver, held against its real headers, once, at ingress.
 * After this nobody doubts f->off again. It must not know who lent the frame or who gets it; what
 * is done for a receiver that cannot take it is in fit.c. [VIRTIO 1.2 5.1.6.2, 5.1.6.4]
 *
 * Two levels of strictness, on purpose. A super-packet will be cut by somebody, a guest's kernel or
 * us, so everything about it must be true: type, protocol, offsets, size. A lone partial checksum
 * only says "sum from here, store there": any protocol may ask for it, behind any tunnel, so all
 * that counts is that both places are inside the frame, and the field inside what can be made
 * private.
 */
#include "frame/offload.h"
#include "wire/bytes.h"
#include "wire/eth.h"

#define PROTO_TCP    6
#define PROTO_UDP    17
#define TCP_CSUM_OFF 16
#define UDP_CSUM_OFF 6
#define TCP_FLAGS    13
#define TCP_CWR      0x80

#define IP_MAX 65535 /* bytes of a datagram: a segment must be one */

#define GSO_TYPE(gso) ((gso) & (uint8_t)~OFF_GSO_ECN)

/* A parse that pulls what it misses. False: malformed, or longer than can be pulled (*too_long). */
static bool headers(struct frame *f, struct hdrs *h, bool *too_long)
{
	enum hdrs_result r;

	*too_long = false;
	while ((r = hdrs_parse(f->head, f->head_len, frame_len(f), h)) == HDRS_MORE) {
		*too_long = !frame_pull(f, h->need);
		if (*too_long)
			return false;
	}
	return r == HDRS_OK;
}

/* Where the checksum starts and is stored: inside the frame, and made private. */
static enum drop check_csum(struct frame *f)
{
	const uint32_t end = (uint32_t)f->off.csum_start + f->off.csum_off + 2;

	if (f->off.csum_start < ETH_HLEN || end > frame_len(f))
		return DROP_BAD_HDR;
	return frame_pull(f, end) ? DROP_NONE : DROP_HDR_TOO_LONG;
}

static bool gso_fields_ok(const struct offload *off)
{
	const uint8_t type = GSO_TYPE(off->gso);

	if (type != OFF_GSO_TCPV4 && type != OFF_GSO_TCPV6 && off->gso != OFF_GSO_UDP_L4)
		return false;
	return (off->flags & OFF_NEEDS_CSUM) && off->gso_size && off->gso_size != 0xffff;
}

static bool gso_headers_ok(const struct offload *off, const struct hdrs *h)
{
	const bool udp = off->gso == OFF_GSO_UDP_L4;

	if (!h->payload || h->l4 != off->csum_start) /* a fragment has no payload offset */
		return false;
	if (h->proto != (udp ? PROTO_UDP : PROTO_TCP))
		return false;
	if (off->csum_off != (udp ? UDP_CSUM_OFF : TCP_CSUM_OFF))
		return false;
	return udp || h->ip == (GSO_TYPE(off->gso) == OFF_GSO_TCPV4 ? 4 : 6);
}

static enum drop check_gso(struct frame *f)
{
	uint32_t payload, segments;
	bool too_long;
	struct hdrs h;

	if (!headers(f, &h, &too_long))
		return too_long ? DROP_HDR_TOO_LONG : DROP_BAD_HDR;
	if (!gso_headers_ok(&f->off, &h))
		return DROP_BAD_HDR;
	payload = frame_len(f) - h.payload;
	segments = (payload + f->off.gso_size - 1) / f->off.gso_size;
	if (segments > (h.proto == PROTO_UDP ? GSO_UDP_SEGMENTS : GSO_TCP_SEGMENTS))
		return DROP_BAD_HDR;
	if (segments > 1 && (uint32_t)h.payload - h.l3 + f->off.gso_size > IP_MAX)
		return DROP_BAD_HDR;
	f->off.hdr_len = h.payload;
	if (segments <= 1) {
		f->off.gso = OFF_GSO_NONE;
		f->off.gso_size = 0;
	} else if (h.proto == PROTO_TCP) {
		/* the bit means: CWR is set; the header says so itself */
		f->off.gso = GSO_TYPE(f->off.gso);
		if (f->head[h.l4 + TCP_FLAGS] & TCP_CWR)
			f->off.gso |= OFF_GSO_ECN;
	}
	return DROP_NONE;
}

enum drop offload_check_slow(struct frame *f)
{
	enum drop why;
	bool too_long;
	struct hdrs h;

	if (f->off.gso && !gso_fields_ok(&f->off))
		return DROP_BAD_HDR;
	if (!(f->off.flags & OFF_NEEDS_CSUM)) {
		f->off = (struct offload){.flags = f->off.flags & OFF_DATA_VALID};
		return DROP_NONE;
	}
	why = check_csum(f);
	if (why != DROP_NONE)
		return why;
	f->off.flags = OFF_NEEDS_CSUM; /* says more than DATA_VALID; all other bits are unknown */
	if (f->off.gso)
		return check_gso(f);
	f->off.gso_size = 0;
	f->off.hdr_len = 0;
	if (headers(f, &h, &too_long) && h.l4 == f->off.csum_start)
		f->off.hdr_len = h.payload;
	return DROP_NONE;
}

/* Bytes before the IP header: Ethernet and up to two tags. */
static uint32_t l2_len(const struct frame *f)
{
	uint32_t at = ETH_HLEN;

	for (unsigned tags = 0; tags < 2 && at + VLAN_HLEN <= f->head_len; tags++) {
		const uint16_t type = get_be16(f->head + at - 2);

		if (type != ETH_TYPE_VLAN && type != ETH_TYPE_QINQ)
			break;
		at += VLAN_HLEN;
	}
	return at;
}

uint32_t offload_ip_size(const struct frame *f)
{
	const uint32_t l2 = l2_len(f);
	const uint32_t len = f->off.gso ? (uint32_t)f->off.hdr_len + f->off.gso_size : frame_len(f);

	return len > l2 ? len - l2 : 0;
}
