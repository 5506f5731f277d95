/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip6: the IPv6 header, its fragment header, and the walk along extension headers that a destination
 * host makes. [RFC 8200], [RFC 5095: type 0 routing headers are not processed]
 */
#include "wire/ip6.h"

#include "wire/bytes.h"

#define EXT_MAX  8 /* extension headers walked: more than anybody sends */
#define OPT_PAD1 0
#define OPT_PADN 1

#define CODE_FIELD  0 /* of a parameter problem: erroneous field */
#define CODE_OPTION 2 /* unrecognized option */

bool ip6_parse(const uint8_t *p, size_t len, struct ip6 *h)
{
	if (len < IP6_HLEN || p[0] >> 4 != 6)
		return false;
	h->tclass = (uint8_t)(p[0] << 4 | p[1] >> 4);
	h->flow = get_be32(p) & 0xfffff;
	h->len = get_be16(p + 4);
	h->next = p[6];
	h->hops = p[7];
	memcpy(h->src, p + 8, 16);
	memcpy(h->dst, p + 24, 16);
	return true;
}

void ip6_build(const struct ip6 *h, uint8_t p[IP6_HLEN])
{
	put_be32(p, 6u << 28 | (uint32_t)h->tclass << 20 | (h->flow & 0xfffff));
	put_be16(p + 4, h->len);
	p[6] = h->next;
	p[7] = h->hops;
	memcpy(p + 8, h->src, 16);
	memcpy(p + 24, h->dst, 16);
}

bool ip6_frag_parse(const uint8_t *p, size_t len, struct ip6_frag *f)
{
	if (len < IP6_FRAG_HLEN)
		return false;
	f->next = p[0];
	f->offset = get_be16(p + 2) & 0xfff8;
	f->more = p[3] & 1;
	f->id = get_be32(p + 4);
	return true;
}

void ip6_frag_build(const struct ip6_frag *f, uint8_t p[IP6_FRAG_HLEN])
{
	p[0] = f->next;
	p[1] = 0;
	put_be16(p + 2, (uint16_t)(f->offset | f->more));
	put_be32(p + 4, f->id);
}

static enum ip6_walk_result problem(struct ip6_walk *w, uint8_t code, uint32_t pointer)
{
	w->code = code;
	w->pointer = pointer;
	return IP6_WALK_PROBLEM;
}

/* The upper two bits of an unknown option's type say what is to be done. [RFC 8200 4.2] */
static enum ip6_walk_result unknown_option(struct ip6_walk *w, uint8_t type, uint32_t at)
{
	switch (type >> 6) {
	case 0:
		return IP6_WALK_OK;
	case 1:
		return IP6_WALK_DROP;
	default:
		w->multicast_error = type >> 6 == 2;
		return problem(w, CODE_OPTION, at);
	}
}

static enum ip6_walk_result check_options(
	const uint8_t *p, size_t from, size_t to, struct ip6_walk *w)
{
	for (size_t i = from; i < to;) {
		enum ip6_walk_result r;

		if (p[i] == OPT_PAD1) {
			i++;
			continue;
		}
		if (i + 2 > to || i + 2 + p[i + 1] > to)
			return IP6_WALK_DROP;
		r = p[i] == OPT_PADN ? IP6_WALK_OK : unknown_option(w, p[i], (uint32_t)i);
		if (r != IP6_WALK_OK)
			return r;
		i += 2u + p[i + 1];
	}
	return IP6_WALK_OK;
}

static enum ip6_walk_result check_header(
	const uint8_t *p, size_t at, size_t end, struct ip6_walk *w)
{
	if (w->next != IP6_NEXT_ROUTING)
		return check_options(p, at + 2, end, w);
	/* no type of routing header is known here: ignored if it has come to its end */
	return p[at + 3] ? problem(w, CODE_FIELD, (uint32_t)at + 2) : IP6_WALK_OK;
}

static bool is_extension(uint8_t next)
{
	return next == IP6_NEXT_HOP || next == IP6_NEXT_ROUTING || next == IP6_NEXT_DEST;
}

static enum ip6_walk_result walk(const uint8_t *p, size_t len, struct ip6_walk *w)
{
	for (unsigned n = 0; is_extension(w->next); n++) {
		const size_t at = w->at;
		enum ip6_walk_result r;
		size_t end;

		/* hop-by-hop options come first or not at all */
		if (w->next == IP6_NEXT_HOP && at != IP6_HLEN)
			return problem(w, 1, w->next_at);
		if (n == EXT_MAX || at + 8 > len)
			return IP6_WALK_DROP;
		end = at + (p[at + 1] + 1u) * 8;
		if (end > len)
			return IP6_WALK_DROP;
		r = check_header(p, at, end, w);
		if (r != IP6_WALK_OK)
			return r;
		w->next = p[at];
		w->next_at = (uint16_t)at;
		w->at = (uint16_t)end;
	}
	return IP6_WALK_OK;
}

enum ip6_walk_result ip6_walk(const uint8_t *p, size_t len, struct ip6_walk *w)
{
	*w = (struct ip6_walk){.next = p[6], .at = IP6_HLEN, .next_at = 6};
	return walk(p, len, w);
}

enum ip6_walk_result ip6_walk_on(const uint8_t *p, size_t len, struct ip6_walk *w)
{
	if (w->at + (size_t)IP6_FRAG_HLEN > len)
		return IP6_WALK_DROP;
	w->next = p[w->at];
	w->next_at = w->at;
	w->at += IP6_FRAG_HLEN;
	return walk(p, len, w);
}
