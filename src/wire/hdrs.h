/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hdrs: one pass over the private head of a frame gives the offsets and protocols of its headers:
 * Ethernet, up to two VLAN tags, IPv4 with options or IPv6 with extension headers, TCP or UDP.
 * Reads only [head, head + len), never beyond, and believes nothing.
 */
#ifndef WIRE_HDRS_H
#define WIRE_HDRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hdrs_result {
	HDRS_OK,
	HDRS_MORE, /* need more private bytes: hdrs.need says how many in all */
	HDRS_BAD,  /* malformed or contradicts the frame's length */
};

struct hdrs {
	uint16_t eth_type; /* after VLAN tags; host order */
	uint16_t vlan;     /* VID of the outer tag, 0 if none */
	uint8_t nvlan;     /* tags passed over, 0 .. 2 */
	uint8_t ip;        /* 4, 6 or 0 = neither: what follows is not set */
	uint8_t proto;     /* upper protocol, after extension headers */
	bool fragment;     /* an IP fragment (first or not) */
	bool ip6_ext;      /* IPv6 extension headers were passed over */
	uint16_t l3, l4; /* offsets from the Ethernet header; l4 0: not found (fragment, unknown) */
	uint16_t payload; /* first byte after the TCP or UDP header; 0: neither TCP nor UDP */
	uint32_t ip_len;  /* bytes from l3 by the IP header itself; 0 in an IPv6 jumbogram */
	uint32_t need;    /* for HDRS_MORE */
};

/*
 * `len` private bytes of a frame of `frame_len`. A GSO frame's IP length field may be 0 or stale:
 * it is reported, never used as a bound.
 */
enum hdrs_result hdrs_parse(const uint8_t *head, size_t len, size_t frame_len, struct hdrs *);

#endif
