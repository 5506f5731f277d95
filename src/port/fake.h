/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake: a port that a test holds in its hand: it lends what it is told, takes as much as it is told,
 * and keeps what it took. For tests only.
 */
#ifndef PORT_FAKE_H
#define PORT_FAKE_H

#include "port/port.h"

#define FAKE_ANY UINT32_MAX

struct fake_frame {
	uint8_t *data;
	uint32_t len;
	struct offload off;
};

struct fake_list {
	struct fake_frame *f;
	unsigned n, cap;
};

struct fake {
	struct port port;

	/* in: frames [next, lend.n) are lent; `endless` starts over at the end */
	struct fake_list lend;
	unsigned next;
	bool endless, armed;

	/* out */
	uint32_t room;  /* frames it takes before it is full, FAKE_ANY: any number */
	bool keep;      /* keep copies in `got`; counters count anyway */
	enum drop lose; /* takes frames and drops them for this */
	struct fake_list got;
	bool room_armed, lie; /* lie: says there is room whatever `room` is */
	uint32_t room_need;

	unsigned pulls, pushes, flushes, settles, arms; /* calls */
	unsigned unflushed;                             /* frames pushed since the last flush */
	unsigned last_max;                              /* of the last pull */
};

void fake_init(struct fake *, const char *name, struct loop *);
void fake_fini(struct fake *);

void fake_lend(struct fake *, const void *data, uint32_t len, const struct offload *);
void fake_clear(struct fake_list *);
/* Lend, and tell the owner. */
void fake_kick(struct fake *);
/* `room` more frames; tell the owner if it waits and there is any. */
void fake_give_room(struct fake *, uint32_t room);
void fake_link(struct fake *, bool up);

/*
 * Build a frame of `len` bytes with a counter in its payload. `tag`: TCI of an 802.1Q tag, 0: none.
 * Returns len.
 */
uint32_t fake_eth(
	uint8_t *buf, uint64_t dst, uint64_t src, uint16_t tag, uint32_t len, uint32_t count);
/*
 * A TCP segment with `payload` bytes in IPv4, partial checksum; a super-packet if gso_size is not 0.
 * Returns its length.
 */
uint32_t fake_tcp4(uint8_t *buf, uint64_t dst, uint64_t src, uint32_t payload, uint16_t gso_size,
	uint32_t seq, struct offload *);
/* Is the checksum of a TCP segment (IPv4 without options, no tag) right? */
bool fake_tcp4_good(const struct fake_frame *);

#endif
