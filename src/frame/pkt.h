/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pkt: an owned packet, where a frame is a loan. A linear head with headroom, at most PKT_FRAGS
 * fragments that each hold a reference on their chunk, further packets chained behind it if that is
 * not enough (the first one owns the sums). All of its memory comes from one chunk pool, so the
 * device of that pool's peer can read it in place.
 *
 *	pkt --- head (headroom | Ethernet, IP, ... | [payload])
 *	     \- frag[0..16]      chunk + offset + length
 *	     \- chain -> pkt -> pkt     (their heads are empty)
 *
 * truesize charges the capacity of every buffer that contributed, not the bytes used: what a
 * socket's receive buffer counts (S0), and why fragments that grow (S1) still charge theirs.
 *
 * Keeping: frame_keep() makes a packet of a frame. If the frame is backed by a packet of the very
 * pool, its chunks get a reference and only the head is copied (a header belongs to one
 * transmission); else its bytes are copied once, into chunks of the highest order to be had.
 * Lending: pkt_lend().
 */
#ifndef FRAME_PKT_H
#define FRAME_PKT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "frame/chunk.h"
#include "frame/frame.h"

#define PKT_FRAGS      17 /* as in Linux: a 64 KiB packet in 4 KiB pages */
#define PKT_HEAD_ALIGN 64 /* heads begin and end with a cache line, headroom included */

struct pkt_frag {
	struct chunk *chunk;
	uint8_t *data;
	uint32_t len;
};

/* Whoever asks how much of its own is still below: small-queue limit, auto-cork. In its owner. */
struct pkt_account {
	uint64_t outstanding_bytes; /* truesize of packets not yet completed */
	uint32_t outstanding;       /* packets */
	bool waiting; /* tell `done` when something completes; drivers arm completions while set */
	void (*done)(
		struct pkt_account *); /* the packet is gone already; may make and free others */
};

struct pkt_pool;

struct pkt {
	STAILQ_ENTRY(pkt) entry; /* the holder's */
	struct pkt_pool *pool;
	struct pkt *chain;        /* further fragments */
	struct chunk *head_chunk; /* NULL: no head */
	uint8_t *head;            /* first byte of the frame; NULL: the head is empty */
	uint32_t headroom;        /* free bytes before it */
	uint32_t head_len;
	uint32_t head_cap; /* of the head's buffer, charged */
	uint32_t len;      /* of the whole packet, chain included; in chained ones 0 */
	uint32_t truesize; /* likewise */
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
	unsigned n, live,
		used; /* used: so many were ever out, the memory of the others is untouched */
	struct page_frag heads; /* where heads of up to a page are cut from */
	/* the owner has gone and packets are left: called when the last one is freed; NULL: not so */
	void (*last)(struct pkt_pool *);
	uint64_t failed; /* packets not made or not finished: no descriptor, no memory */
	uint64_t kept_ref, kept_copy; /* frame_keep: by reference; by copy */
};

int pkt_pool_init(struct pkt_pool *, struct chunk_pool *, unsigned n, struct err *);
void pkt_pool_fini(struct pkt_pool *); /* every packet has come back */

/*
 * An empty packet with a head of `room` + `len` bytes, `room` of them free before it; len 0: no head.
 * room + len above CHUNK_PAGE takes a chunk of its own, above CHUNK_MAX it fails. NULL: no descriptor
 * or no memory; counted. O(1), no system call.
 */
struct pkt *pkt_new(struct pkt_pool *, uint32_t room, uint32_t len);
/* Drops every reference, completes the account; the chain goes, too. NULL is fine. */
void pkt_free(struct pkt *);
/* Charges it, with what is added later, until pkt_free. A packet has one account at most. */
void pkt_set_account(struct pkt *, struct pkt_account *);
/* A copy stands in for the packet: the account waits for it instead, and is not told. */
void pkt_move_account(struct pkt *from, struct pkt *to);

/*
 * Add `len` > 0 bytes at `data` of `chunk`, whose reference moves to the packet, charging `cap`. With
 * `coalesce`, bytes that begin exactly where the last fragment ends, in the same chunk, make that
 * fragment longer and the reference is dropped (S1). Beyond PKT_FRAGS a packet is chained. False (and
 * the reference is dropped): no descriptor for a chained packet; the packet is as it was.
 */
bool pkt_add(struct pkt *, struct chunk *chunk, uint8_t *data, uint32_t len, uint32_t cap,
	bool coalesce);

unsigned pkt_frags(const struct pkt *);   /* fragments of the whole packet */
unsigned pkt_chained(const struct pkt *); /* packets behind the first */

/* For tests and audits: references that packets and the head allocator hold. */
uint64_t pkt_pool_refs(const struct pkt_pool *);

/* Knobs of the copy in frame_keep (S3). */
struct keep_rule {
	unsigned order;    /* highest order of a chunk, 0 .. 4 */
	bool linear_hint0; /* the old rule: header hint 0 makes everything linear (T27) */
	uint32_t headroom; /* free bytes before the head, < CHUNK_PAGE / 2 */
};

/*
 * Own a frame. By reference: head_len bytes are copied, the tail is shared (the pieces of a longer
 * one are chained), charged as the backing packet charged them, or all the packets that gro joined. By copy: the linear part reaches
 * over the headers the offload fields name (all of a frame shorter than a page), the rest goes into
 * at most PKT_FRAGS chunks, each charged whole. The offload fields go along.
 * NULL: no memory, or more than PKT_FRAGS chunks needed; counted in the pool.
 */
struct pkt *frame_keep(const struct frame *, struct pkt_pool *, const struct keep_rule *);

/*
 * Lend a packet: `f` gets a private copy of its first bytes in `head` (its head if that is at least
 * FRAME_HEAD and at most FRAME_PULL_MAX long, else FRAME_HEAD bytes) and the rest as tail in
 * iov[0 .. f->ntail); f->backing is the packet, which must outlive the loan. False: niov is too
 * small; PKT_FRAGS * (1 + pkt_chained) + 1 always do.
 */
bool pkt_lend(
	struct pkt *, struct frame *f, struct frame_head *head, struct iovec *iov, unsigned niov);

#endif
