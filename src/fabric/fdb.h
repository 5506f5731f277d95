/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fdb: the learning table, (MAC, VLAN) to port. Every port owns at most FDB_SHARE addresses; at its
 * share it displaces its own oldest, so one port cannot evict another's. Ageing is lazy: an entry not
 * seen for `age` is not found, and its place is reused; nothing wakes up to age. The hash is seeded,
 * so nobody can aim at one bucket. [IEEE 802.1D 7.8, 7.9]
 */
#ifndef FABRIC_FDB_H
#define FABRIC_FDB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/limits.h"

struct fdb;

struct fdb_entry {
	uint8_t mac[6];
	uint16_t vlan;
	unsigned port;
	uint32_t age_sec; /* since it was last seen */
};

struct fdb *fdb_new(uint64_t seed, uint32_t age_sec); /* NULL: no memory */
void fdb_free(struct fdb *);
/* Fetch what fdb_find and fdb_learn will read: for a batch of lookups. */
void fdb_prefetch(const struct fdb *, uint64_t mac, uint16_t vlan);
/* Port of the address, or -1. `mac` as eth_u48. */
int fdb_find(const struct fdb *, uint64_t mac, uint16_t vlan, nsec_t now);
/* Seen as a source on `port`: learn, refresh or move. True if it moved from another port. */
bool fdb_learn(struct fdb *, uint64_t mac, uint16_t vlan, unsigned port, nsec_t now);
void fdb_forget_port(struct fdb *, unsigned port);
/* Addresses the port owns, aged ones not yet displaced included. */
unsigned fdb_count(const struct fdb *, unsigned port);
/* Walk living entries: *cursor starts at 0; false at the end. */
bool fdb_next(const struct fdb *, nsec_t now, uint32_t *cursor, struct fdb_entry *);
uint64_t fdb_moves(const struct fdb *);
uint64_t fdb_evicted(const struct fdb *); /* young ones, by others of their port */

#endif
