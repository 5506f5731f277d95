/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icmp: how many messages may be sent to whom. Buckets are hashed by destination with a key, and
 * refilled after a random time, so that nobody can learn from them what others do.
 * [RFC 4443 2.4(f), RFC 1812 4.3.2.8; the class of CVE-2020-25705]
 */
#ifndef NET_ICMP_H
#define NET_ICMP_H

#include <stdbool.h>
#include <stdint.h>

#include "net/bucket.h"
#include "wire/ip.h"

#define ICMP_BUCKETS    256
#define ICMP_BURST      6                     /* errors at once to one destination ... */
#define ICMP_REFILL     (50 * NSEC_PER_MSEC)  /* ... then one each 50 to 150 ms */
#define ICMP_ECHO_BURST 2048                  /* echo replies likewise, for ping -f */
#define ICMP_ECHO_NS    (100 * NSEC_PER_USEC) /* 5 000 to 10 000 a second */

struct icmp_limits {
	uint8_t key[16];
	struct bucket error[ICMP_BUCKETS], echo[ICMP_BUCKETS];
};

/* May one go? Then it is counted. */
bool icmp_may_error(struct icmp_limits *, const struct ip_addr *dst, struct rand *, nsec_t now);
bool icmp_may_echo(struct icmp_limits *, const struct ip_addr *dst, struct rand *, nsec_t now);

#endif
