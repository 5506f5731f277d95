/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pmtu: what routers said of the MTU on the way to a destination. A small table: on a collision the
 * newer destination takes the place. Believing a message is the caller's decision.
 * [RFC 1191, RFC 8201]
 */
#ifndef NET_PMTU_H
#define NET_PMTU_H

#include <stdint.h>

#include "base/clock.h"
#include "wire/ip.h"

#define PMTU_SLOTS 256
#define PMTU_MIN4  552 /* smaller ones are not believed: the floor of Linux, too */
#define PMTU_MIN6  1280
#define PMTU_AGE   (600 * NSEC_PER_SEC) /* then the full size is tried again [RFC 1191 6.3] */

struct pmtu_cache {
	uint8_t key[16];
	uint64_t evicted; /* by another destination */
	struct pmtu_slot {
		struct ip_addr dst;
		uint32_t mtu; /* 0: free */
		nsec_t until;
	} slot[PMTU_SLOTS];
};

/* `mtu` is that of the link. */
uint32_t pmtu_find(const struct pmtu_cache *, const struct ip_addr *dst, uint32_t mtu, nsec_t now);
/* Lower it; false: not credible: below the minimum, or not below what is known. */
bool pmtu_learn(struct pmtu_cache *, const struct ip_addr *dst, uint32_t mtu, uint32_t link_mtu,
	nsec_t now);

#endif
