/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arp: the packet of RFC 826 for IPv4 on Ethernet, to and from its bytes. What it means is the
 * neighbour table's.
 */
#include "wire/arp.h"

#include "wire/bytes.h"
#include "wire/eth.h"

static const uint8_t fixed[6] = {0, 1, ETH_TYPE_IP4 >> 8, ETH_TYPE_IP4 & 255, 6, 4};

bool arp_parse(const uint8_t *p, size_t len, struct arp *a)
{
	if (len < ARP_LEN || memcmp(p, fixed, sizeof(fixed)) != 0)
		return false;
	a->op = get_be16(p + 6);
	memcpy(a->sha, p + 8, 6);
	memcpy(a->spa, p + 14, 4);
	memcpy(a->tha, p + 18, 6);
	memcpy(a->tpa, p + 24, 4);
	return true;
}

void arp_build(const struct arp *a, uint8_t p[ARP_LEN])
{
	memcpy(p, fixed, sizeof(fixed));
	put_be16(p + 6, a->op);
	memcpy(p + 8, a->sha, 6);
	memcpy(p + 14, a->spa, 4);
	memcpy(p + 18, a->tha, 6);
	memcpy(p + 24, a->tpa, 4);
}
