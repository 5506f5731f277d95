/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arp: address resolution for IPv4 on Ethernet. [RFC 826, RFC 5227]
 */
#ifndef WIRE_ARP_H
#define WIRE_ARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARP_LEN     28
#define ARP_REQUEST 1
#define ARP_REPLY   2

struct arp {
	uint16_t op;
	uint8_t sha[6], spa[4], tha[6], tpa[4]; /* sender and target, hardware and protocol */
};

/* False: short, or not ARP for IPv4 on Ethernet. */
bool arp_parse(const uint8_t *p, size_t len, struct arp *);
void arp_build(const struct arp *, uint8_t p[ARP_LEN]);

#endif
