/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hdrs: where the headers of a frame are. Reads the private head only, once, front to back; knows
 * no frame type, no offload and no policy: what a caller may do with a fragment or an unknown
 * protocol is the caller's to say.
 *
 * Each step first asks want(): is this many bytes private, are they still to be pulled, or does the
 * frame not have them at all? So no step can read beyond the head, and no step needs a check of its
 * own.
 * [IEEE 802.1Q, RFC 791, RFC 8200, RFC 4302, RFC 9293, RFC 768]
 */
#include "wire/hdrs.h"
#include "wire/eth.h"

#define VLAN_TAGS 2 /* passed over: a customer's and a provider's */
#define EXT_MAX                                                                                    \
	8 /* IPv6 extension headers walked: each kind once, destination options twice, spare */

#define IP4_HLEN    20
#define IP4_FRAG    0x3fff /* more fragments, or an offset */
#define IP6_HLEN    40
#define IP6_HOP     0
#define IP6_ROUTING 43
#define IP6_FRAG    44
#define IP6_NONE    59
#define IP6_DEST    60

#define PROTO_TCP 6
#define PROTO_UDP 17
#define TCP_HLEN  20
#define UDP_HLEN  8

struct view {
	const uint8_t *head;
	size_t len, frame_len;
};

static enum hdrs_result want(const struct view *v, struct hdrs *h, size_t upto)
{
	if (upto <= v->len)
		return HDRS_OK;
	if (upto > v->frame_len)
		return HDRS_BAD;
	h->need = (uint32_t)upto;
	return HDRS_MORE;
}

static enum hdrs_result parse_l4(const struct view *v, struct hdrs *h)
{
	enum hdrs_result r;
	unsigned hlen;

	if (h->proto == PROTO_UDP) {
		h->payload = (uint16_t)(h->l4 + UDP_HLEN);
		return want(v, h, h->payload);
	}
	if (h->proto != PROTO_TCP)
		return HDRS_OK;
	r = want(v, h, h->l4 + TCP_HLEN);
	if (r != HDRS_OK)
		return r;
	hlen = (v->head[h->l4 + 12] >> 4) * 4u;
	if (hlen < TCP_HLEN)
		return HDRS_BAD;
	h->payload = (uint16_t)(h->l4 + hlen);
	return want(v, h, h->payload);
}

static enum hdrs_result parse_ip4(const struct view *v, struct hdrs *h)
{
	const uint8_t *ip = v->head + h->l3;
	enum hdrs_result r = want(v, h, h->l3 + IP4_HLEN);
	unsigned hlen;

	if (r != HDRS_OK)
		return r;
	hlen = (ip[0] & 15) * 4u;
	if (ip[0] >> 4 != 4 || hlen < IP4_HLEN)
		return HDRS_BAD;
	h->ip = 4;
	h->proto = ip[9];
	h->ip_len = get_be16(ip + 2);
	h->fragment = get_be16(ip + 6) & IP4_FRAG;
	r = want(v, h, h->l3 + hlen);
	if (r != HDRS_OK || h->fragment)
		return r;
	h->l4 = (uint16_t)(h->l3 + hlen);
	return parse_l4(v, h);
}

static bool is_extension(uint8_t next)
{
	return next == IP6_HOP || next == IP6_ROUTING || next == IP6_DEST;
}

/*
 * From the header at `at`, of type h->proto, to the upper protocol. AH and ESP count as an upper
 * protocol: what they protect must not be touched. So does a chain longer than anybody sends.
 */
static enum hdrs_result walk_ip6(const struct view *v, struct hdrs *h, size_t at)
{
	unsigned n = 0;

	while (is_extension(h->proto)) {
		enum hdrs_result r;

		if (n++ == EXT_MAX)
			return HDRS_OK;
		r = want(v, h, at + 8);
		if (r != HDRS_OK)
			return r;
		h->ip6_ext = true;
		h->proto = v->head[at];
		at += (v->head[at + 1] + 1u) * 8;
		r = want(v, h, at);
		if (r != HDRS_OK)
			return r;
	}
	if (h->proto == IP6_FRAG) {
		h->fragment = true;
		h->ip6_ext = true;
		return HDRS_OK;
	}
	if (h->proto == IP6_NONE)
		return HDRS_OK;
	h->l4 = (uint16_t)at;
	return parse_l4(v, h);
}

static enum hdrs_result parse_ip6(const struct view *v, struct hdrs *h)
{
	const uint8_t *ip = v->head + h->l3;
	const enum hdrs_result r = want(v, h, h->l3 + IP6_HLEN);
	uint16_t len;

	if (r != HDRS_OK)
		return r;
	if (ip[0] >> 4 != 6)
		return HDRS_BAD;
	h->ip = 6;
	h->proto = ip[6];
	len = get_be16(ip + 4);
	h->ip_len = len ? len + (uint32_t)IP6_HLEN : 0;
	return walk_ip6(v, h, h->l3 + (size_t)IP6_HLEN);
}

static bool is_tag(uint16_t type)
{
	return type == ETH_TYPE_VLAN || type == ETH_TYPE_QINQ;
}

enum hdrs_result hdrs_parse(const uint8_t *head, size_t len, size_t frame_len, struct hdrs *h)
{
	const struct view v = {head, len, frame_len};
	enum hdrs_result r;

	*h = (struct hdrs){0};
	r = want(&v, h, ETH_HLEN);
	if (r != HDRS_OK)
		return r;
	h->eth_type = get_be16(head + 2 * ETH_ALEN);
	h->l3 = ETH_HLEN;
	while (h->nvlan < VLAN_TAGS && is_tag(h->eth_type)) {
		r = want(&v, h, h->l3 + VLAN_HLEN);
		if (r != HDRS_OK)
			return r;
		if (!h->nvlan)
			h->vlan = get_be16(head + h->l3) & 0xfff;
		h->eth_type = get_be16(head + h->l3 + 2);
		h->l3 += VLAN_HLEN;
		h->nvlan++;
	}
	if (h->eth_type == ETH_TYPE_IP4)
		return parse_ip4(&v, h);
	if (h->eth_type == ETH_TYPE_IP6)
		return parse_ip6(&v, h);
	return HDRS_OK;
}
