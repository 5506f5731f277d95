/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dhcp: messages of DHCP for IPv4. [RFC 2131, RFC 2132]
 */
#ifndef WIRE_DHCP_H
#define WIRE_DHCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DHCP_SERVER  67
#define DHCP_CLIENT  68
#define DHCP_MAX     576 /* what this writes; a server may send more */
#define DHCP_DNS_MAX 3

enum dhcp_type {
	DHCP_DISCOVER = 1,
	DHCP_OFFER,
	DHCP_REQUEST,
	DHCP_DECLINE,
	DHCP_ACK,
	DHCP_NAK,
	DHCP_RELEASE,
};

/* Zero means: not there. Addresses in host order. */
struct dhcp {
	bool reply; /* op: from the server */
	uint8_t type;
	uint32_t xid;
	bool broadcast;
	uint32_t ciaddr, yiaddr;
	uint8_t mac[6];
	uint32_t requested, server, mask, router; /* options 50, 54, 1, 3 */
	uint32_t dns[DHCP_DNS_MAX];
	uint32_t lease, t1, t2; /* seconds */
	uint16_t mtu;
};

/* False: not a DHCP message, or its options run over its end. */
bool dhcp_parse(const uint8_t *p, size_t len, struct dhcp *);
/* Returns the length. A client's message asks for mask, router, name servers, MTU. */
size_t dhcp_build(const struct dhcp *, uint8_t p[DHCP_MAX]);

#endif
