/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eth: Ethernet addresses and types. [IEEE 802.3, 802.1Q]
 */
#ifndef WIRE_ETH_H
#define WIRE_ETH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/bytes.h"

#define ETH_ALEN  6
#define ETH_HLEN  14
#define VLAN_HLEN 4

#define ETH_TYPE_IP4  0x0800
#define ETH_TYPE_ARP  0x0806
#define ETH_TYPE_RARP 0x8035
#define ETH_TYPE_VLAN 0x8100
#define ETH_TYPE_IP6  0x86dd
#define ETH_TYPE_QINQ 0x88a8

static inline bool eth_is_multicast(const uint8_t *mac)
{
	return mac[0] & 1; /* broadcast, too */
}

/* The address as a number, for comparison and hashing. Reads exactly six bytes. */
static inline uint64_t eth_u48(const uint8_t *mac)
{
	return (uint64_t)get_be16(mac) << 32 | get_be32(mac + 2);
}

/* One that a single station may have: of no group, and not zero. */
static inline bool eth_is_host(const uint8_t *mac)
{
	return !eth_is_multicast(mac) && eth_u48(mac);
}

/* Whether a VLAN tag follows the addresses of this header. */
static inline bool eth_tagged(const uint8_t *header)
{
	uint16_t type = get_be16(header + 2 * ETH_ALEN);

	return type == ETH_TYPE_VLAN || type == ETH_TYPE_QINQ;
}

/* A header as it lies there, to be compared: addresses and type, some bytes twice. */
struct eth_raw {
	uint64_t front, back;
};

static inline struct eth_raw eth_raw_of(const uint8_t header[ETH_HLEN])
{
	struct eth_raw r;

	memcpy(&r.front, header, sizeof(r.front));
	memcpy(&r.back, header + ETH_HLEN - sizeof(r.back), sizeof(r.back));
	return r;
}

static inline bool eth_raw_same(struct eth_raw a, struct eth_raw b)
{
	return !((a.front ^ b.front) | (a.back ^ b.back));
}

#define ETH_TEXT 18 /* "52:54:00:12:34:56" */
/* Text to address; false unless exactly six two-digit hexadecimal groups joined by ':' or '-'. */
bool eth_parse_text(const char *text, uint8_t mac[ETH_ALEN]);
void eth_build_text(const uint8_t mac[ETH_ALEN], char text[ETH_TEXT]);

#endif
