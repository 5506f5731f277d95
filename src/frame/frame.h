/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame: a loan. A port lends a burst of frames; every receiver copies what it wants during the
 * call; then the loan is settled, in the same call. So forwarding has no reference counts, no packet
 * allocation and no queues.
 *
 * A frame is a private head and a borrowed tail:
 *
 *	FRAME_ROOM      head                      tail[0]        tail[1] ...
 *	[ free ........ | Ethernet, IP, ... ]     [ payload ]    [ payload ]
 *	                ^ private, <= FRAME_PULL_MAX              ^ the lender's memory: may change
 *	                                                            under us, read once, by the copy
 *
 * Every decision reads the head only; frame_pull() makes more bytes private before anything parses or
 * writes them. That ends double fetches as a class.
 */
#ifndef FRAME_FRAME_H
#define FRAME_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/limits.h"

#define FRAME_ROOM     64  /* free bytes before the head: a virtio header or a tunnel's fit */
#define FRAME_HEAD     128 /* bytes a lender makes private at once */
#define FRAME_PULL_MAX 512 /* all headers: IPv6 extensions, 60-byte IP and TCP headers, a tunnel */

/* virtio-net header semantics, host order: the only offload language. [VIRTIO 1.2 5.1.6] */
#define OFF_NEEDS_CSUM 1 /* VIRTIO_NET_HDR_F_NEEDS_CSUM */
#define OFF_DATA_VALID 2 /* VIRTIO_NET_HDR_F_DATA_VALID */

#define OFF_GSO_NONE   0
#define OFF_GSO_TCPV4  1
#define OFF_GSO_UDP    3 /* UFO: never offered, refused */
#define OFF_GSO_TCPV6  4
#define OFF_GSO_UDP_L4 5
#define OFF_GSO_ECN    0x80 /* with the TCP types */

struct offload {
	uint8_t flags, gso;
	uint16_t gso_size, csum_start, csum_off;
	uint16_t hdr_len; /* a hint, 0 = none; never trusted */
};

/* Why a frame was dropped: one list, one name table, one counter per port and reason. */
#define DROP_REASONS(X)                                                                            \
	X(NONE, "none")                                                                            \
	X(SHORT, "short")               /* less than an Ethernet header */                         \
	X(TOO_LONG, "too_long")         /* more than FRAME_MAX */                                  \
	X(BAD_HDR, "bad_virtio_hdr")    /* virtio header fields contradict the frame */            \
	X(HDR_TOO_LONG, "hdr_too_long") /* headers beyond FRAME_PULL_MAX */                        \
	X(BAD_SRC, "bad_source")        /* source address is multicast or zero */                  \
	X(RESERVED, "reserved_address") /* 01-80-C2-00-00-0X: never forwarded [802.1Q 8.6.3] */    \
	X(LOOP, "same_port")            /* the destination is behind the port it came from */      \
	X(NO_DEST, "no_destination")    /* nobody else is on the network */                        \
	X(LINK_DOWN, "link_down")       /* the receiver's driver is not ready */                   \
	X(TOO_BIG, "exceeds_mtu")       /* frame or segment above the receiver's MTU */            \
	X(NO_ROOM, "no_room")           /* flooded copy, or the pause budget is used up */         \
	X(BUFFER_SMALL, "buffer_too_small") /* one receive buffer cannot hold it, no MRG_RXBUF */  \
	X(NO_OFFLOAD, "cannot_fit")         /* cannot be segmented or checksummed in software */   \
	X(DISABLED, "ring_disabled")        /* the sender's ring is disabled [vhost-user] */       \
	X(IO, "io_error")                   /* the kernel refused a write */                       \
	X(IMPAIRED, "impaired")             /* lost on purpose: impair= */                         \
	X(NO_MEMORY, "no_memory")           /* no packet to keep it in: copy=on */

enum drop {
#define X(name, text) DROP_##name,
	DROP_REASONS(X)
#undef X
		DROP_MAX
};

const char *drop_name(enum drop);

struct pkt; /* frame/pkt.h */

struct frame {
	uint8_t *head;      /* from the Ethernet header; FRAME_ROOM free bytes before it */
	struct iovec *tail; /* borrowed until settle; the array itself is private */
	uint32_t tail_len;
	uint16_t head_len, ntail;
	struct offload off;
	uint8_t drop; /* enum drop: the lender or the check refuses it; nobody forwards it */
	struct pkt *
		backing; /* the owned packet whose bytes the tail shows; NULL: the lender's own memory */
	uint32_t charge; /* with backing: of the tail, if it shows several packets' (gro); else 0 */
};

static inline uint32_t frame_len(const struct frame *f)
{
	return f->head_len + f->tail_len;
}

/* Room for one head, reused burst by burst. The odd number of cache lines spreads heads in the L1. */
struct frame_head {
	uint8_t room[FRAME_ROOM];
	uint8_t data[FRAME_PULL_MAX];
} __attribute__((aligned(64)));

struct burst {
	unsigned n;    /* frames lent */
	unsigned niov; /* pieces used */
	uint32_t bytes;
	struct frame f[BURST_FRAMES];
	struct frame_head head[BURST_FRAMES];
	struct iovec iov[BURST_IOV];
};

/*
 * Make at least `n` bytes (or the whole frame if shorter) private. False if n > FRAME_PULL_MAX and
 * the frame is longer than that: the caller drops it as HDR_TOO_LONG. Only for frames whose head lies
 * in a frame_head.
 */
bool frame_pull(struct frame *, uint32_t n);

/*
 * The one memcpy. Copy `n` bytes from offset `from` of the frame (head, then tail) into the pieces of
 * `to[0 .. nto)`, starting `skip` bytes into them. The caller made sure both sides have that much.
 */
void frame_copy(const struct frame *, uint32_t from, uint32_t n, const struct iovec *to,
	unsigned nto, size_t skip);

/*
 * Copy a small frame: its size is not known when compiled, but is nearly always 32 to 128 bytes, where
 * two overlapping copies of a fixed size do without a call and without a branch on the size. Bytes
 * may be read twice; what counts is the copy.
 */
static inline void copy_small(uint8_t *to, const uint8_t *from, uint32_t n)
{
	if (n - 32 <= 32) {
		memcpy(to, from, 32);
		memcpy(to + n - 32, from + n - 32, 32);
	} else if (n - 64 <= 64) {
		memcpy(to, from, 64);
		memcpy(to + n - 64, from + n - 64, 64);
	} else {
		memcpy(to, from, n);
	}
}

#endif
