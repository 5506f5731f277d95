/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pkt: an owned packet, where a frame is a loan. A linear head with headroom, at most PKT_FRAGS
 * fragments that each hold a reference on their chunk, further packets chained behind it if that is not
 * enough (the first one owns the sums). All of its memory comes from one chunk pool, so the device of
 * that pool's peer can read it in place.
 *
 *	pkt --- head (headroom | Ethernet, IP, ... | [payload])
 *	     \- frag[0..16]      chunk + offset + length
 *	     \- chain -> pkt -> pkt     (their heads are empty)
 *
 * truesize charges the capacity of every buffer that contributed, not the bytes used: what a socket's
 * receive buffer counts (S0), and why fragments that grow (S1) still charge theirs.
 *
 * Keeping: frame_keep() makes a packet of a frame. If the frame is backed by a packet of the very pool, its
 * chunks get a reference and only the head is copied (a header belongs to one transmission); else its bytes
 * are copied once, into chunks of the highest order to be had (MECHANISMS 2.10). Lending: pkt_lend().
 */
#ifndef FRAME_PKT_H
#define FRAME_PKT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "frame/chunk.h"
#include "frame/frame.h"

#define PKT_FRAGS    17  /* as in Linux: a 64 KiB packet in 4 KiB pages */
#define PKT_HEAD_MAX 512 /* bytes of a head made here, headroom included: FRAME_PULL_MAX of them data */

struct pkt_frag {
	struct chunk *chunk;
	uint8_t *data;
	uint32_t len;
};

/* Whoever asks how much of its own is still below: small-queue limit, auto-cork. Embedded in its owner. */
struct pkt_account {
	uint64_t outstanding_bytes; /* truesize of packets not yet completed */
	uint32_t outstanding;       /* packets */
	bool waiting;               /* tell `done` when something completes; drivers arm completions while set */
	void (*done)(struct pkt_account *);
};

struct pkt_pool;

struct pkt {
	STAILQ_ENTRY(pkt) entry; /* the holder's */
	struct pkt_pool *pool;
	struct pkt *chain;       /* further fragments */
	struct chunk *head_chunk;
	uint8_t *head;           /* first byte of the frame; NULL: the head is empty */
	uint32_t headroom;       /* free bytes before it */
	uint32_t head_len;
	uint32_t len;            /* of the whole packet, chain included; in chained ones 0 */
	uint32_t truesize;       /* likewise */
	unsigned nfrag;
	struct pkt_frag frag[PKT_FRAGS];
	struct offload off;
	struct pkt_account *account;
};

STAILQ_HEAD(pkt_list, pkt);

/* Packet descriptors of one chunk pool: `n` of them, allocated once. */
struct pkt_pool {
	struct chunk_pool *chunks;
	struct pkt *all;
	struct pkt_list free;
	unsigned n, live;
	struct page_frag heads; /* where small heads are cut from */
	uint64_t failed;        /* no descriptor or no head */
	uint64_t kept_ref, kept_copy; /* frame_keep: by reference; by copy */
};

int pkt_pool_init(struct pkt_pool *, struct chunk_pool *, unsigned n, struct err *);
void pkt_pool_fini(struct pkt_pool *);

/* An empty packet with a head of `room` + `len` bytes, `room` of them free before it; len 0: no head. */
struct pkt *pkt_new(struct pkt_pool *, uint32_t room, uint32_t len);
/* Drops every reference, completes the account; the chain goes, too. NULL is fine. */
void pkt_free(struct pkt *);
void pkt_set_account(struct pkt *, struct pkt_account *); /* charges it */

/*
 * Add `len` bytes at `data` of `chunk`, whose reference moves to the packet, charging `cap`. With
 * `coalesce`, bytes that begin exactly where the last fragment ends, in the same chunk, make that
 * fragment longer and the reference is dropped (S1). Beyond PKT_FRAGS a packet is chained. False (and
 * the reference is dropped): no descriptor for a chained packet.
 */
bool pkt_add(struct pkt *, struct chunk *chunk, uint8_t *data, uint32_t len, uint32_t cap, bool coalesce);

unsigned pkt_frags(const struct pkt *);   /* fragments of the whole packet */
unsigned pkt_chained(const struct pkt *); /* packets behind the first */

/* Knobs of the copy in frame_keep (S3). */
struct keep_rule {
	unsigned order;      /* highest order of a chunk, 0 .. 4 */
	bool linear_hint0;   /* the old rule: header hint 0 makes everything linear (T27) */
	uint32_t headroom;   /* free bytes before the head */
};

/* NULL: no memory or more than PKT_FRAGS chunks needed; counted in the pool. */
struct pkt *frame_keep(const struct frame *, struct pkt_pool *, const struct keep_rule *);

/*
 * Lend a packet: `f` gets a private copy of its first bytes in `head`, and its fragments as tail in
 * iov[0 .. niov); f->backing is the packet. How many pieces were used; 0: niov is too small.
 */
unsigned pkt_lend(struct pkt *, struct frame *f, struct frame_head *head, struct iovec *iov, unsigned niov);

#endif
