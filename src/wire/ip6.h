/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip6: the IPv6 header and its extension headers. [RFC 8200]
 */
#ifndef WIRE_IP6_H
#define WIRE_IP6_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IP6_HLEN      40
#define IP6_FRAG_HLEN 8
#define IP6_MTU_MIN   1280

#define IP6_NEXT_HOP     0
#define IP6_NEXT_ROUTING 43
#define IP6_NEXT_FRAG    44
#define IP6_NEXT_NONE    59
#define IP6_NEXT_DEST    60

struct ip6 {
	uint8_t tclass, next, hops;
	uint32_t flow; /* 20 bits */
	uint16_t len;  /* of the payload */
	uint8_t src[16], dst[16];
};

bool ip6_parse(const uint8_t *p, size_t len, struct ip6 *);
void ip6_build(const struct ip6 *, uint8_t p[IP6_HLEN]);

struct ip6_frag {
	uint8_t next;
	bool more;
	uint32_t offset; /* bytes */
	uint32_t id;
};

bool ip6_frag_parse(const uint8_t *p, size_t len, struct ip6_frag *);
void ip6_frag_build(const struct ip6_frag *, uint8_t p[IP6_FRAG_HLEN]);

enum ip6_walk_result {
	IP6_WALK_OK,      /* at an upper protocol, or at a fragment header */
	IP6_WALK_DROP,    /* malformed, or an option says: discard */
	IP6_WALK_PROBLEM, /* discard and tell the sender: code, pointer */
};

struct ip6_walk {
	uint8_t next;         /* the header at `at` */
	uint16_t at;          /* offset from the IPv6 header */
	uint16_t next_at;     /* offset of the field that named it */
	uint8_t code;         /* of a parameter problem */
	uint32_t pointer;     /* likewise */
	bool multicast_error; /* it is told even for a multicast destination */
};

/*
 * Along the extension headers in [p, p + len), p at the IPv6 header: options and routing headers are
 * looked at as a destination host must. Stops at a fragment header. [RFC 8200 4.1 - 4.6]
 */
enum ip6_walk_result ip6_walk(const uint8_t *p, size_t len, struct ip6_walk *);
/* Go on behind the fragment header that a walk stopped at. */
enum ip6_walk_result ip6_walk_on(const uint8_t *p, size_t len, struct ip6_walk *);

#endif
