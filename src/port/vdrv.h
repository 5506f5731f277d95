/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv: the virtio-net driver, over a vhost-user front-end (port/vhost_fe.h). It is a port: what
 * the device delivers is pulled, what is pushed is transmitted. And it is a NIC for code that owns
 * packets: vdrv_send and vdrv_receive, which copy nothing. The classic mechanisms are here by name,
 * each with a knob and counters: receive buffer sizes (S0), fragment coalescing (S1), inline header
 * (S2), allocation order (S3). [VIRTIO 1.2 5.1.6]
 *
 * The link is up while the device works. A device that lies about a ring (ids, indices) ends the
 * session; lies about a packet (lengths, num_buffers) cost that packet and are counted.
 */
#ifndef PORT_VDRV_H
#define PORT_VDRV_H

#include "frame/pkt.h"
#include "port/port.h"
#include "port/vnet.h"
#include "ring/vq_drv.h"

#define VDRV_RING_MAX 1024

/* Length of a mergeable receive buffer. */
enum vdrv_rxbuf {
	VDRV_RXBUF_PAGE, /* one page each */
	VDRV_RXBUF_MTU,  /* 1518: Ethernet, VLAN, 1500; no header, unaligned: the fault of 2013 */
	VDRV_RXBUF_MTU_HDR, /* the fix: MTU agreed on, with the header, rounded to a cache line */
	VDRV_RXBUF_AUTO,    /* moving average of packet lengths */
};

struct vdrv_config {
	const char *path;          /* of the device's socket; used by vdrv_open only */
	bool server;               /* listen there */
	uint64_t off;              /* features not to use; what depends on them goes, too */
	uint8_t mac[6];            /* zero: the device's, or made from the name */
	uint16_t mtu;              /* 0: the device's, or 1500 */
	unsigned ring_size;        /* both rings; a power of two, 2 .. VDRV_RING_MAX; default 256 */
	size_t memory;             /* of the pool [bytes]; default 16 MiB */
	enum vdrv_rxbuf rxbuf;     /* default auto */
	bool coalesce;             /* default on */
	uint16_t copybreak;        /* so short a packet is copied out; <= 2048, default 128 */
	bool inline_header;        /* default on */
	uint16_t headroom;         /* of heads made here [bytes], < CHUNK_PAGE / 2; default 16 */
	enum vq_indirect indirect; /* default auto */
	unsigned order;            /* of kept packets' chunks; default 3 */
	unsigned rx_order;         /* of the receive allocator's; default 3 */
	uint16_t charge; /* for analysis: what a receive buffer is charged; 0: its capacity */
	unsigned refuse; /* so many of 1000 chunks above order 0 are not to be had; default 0 */
};

void vdrv_config_init(struct vdrv_config *); /* the defaults */

struct vdrv_counters {
	/* receive; buffers, frags, chained, truesize: of the packets accepted */
	uint64_t rx_packets, rx_bytes, rx_buffers, rx_used, rx_frags, rx_chained, rx_coalesced,
		rx_copied;
	uint64_t rx_truesize, rx_refills, rx_refill_failed, rx_retries;
	uint64_t rx_err_len;         /* the device says it wrote more than there is room for */
	uint64_t rx_err_short;       /* less than header and Ethernet header, or nothing */
	uint64_t rx_err_missing;     /* num_buffers says more than were used together */
	uint64_t rx_err_num_buffers; /* 0, more than the ring has, or not 1 without MRG_RXBUF */
	uint64_t rx_err_too_big;     /* more than FRAME_MAX */
	uint64_t rx_err_id;          /* ids and indices: each ended a session */
	uint64_t rx_err_memory;      /* no packet to be had */
	uint64_t rx_not_full; /* a buffer in the middle that was not filled: accepted, counted */
	uint64_t rx_zero_num_buffers; /* 0 for 1 without MRG_RXBUF: accepted, counted [T10] */
	/* transmit */
	uint64_t tx_packets, tx_bytes, tx_desc, tx_indirect, tx_inline, tx_stopped, tx_dropped;
	uint64_t tx_copied; /* made linear: more pieces than a chain of this ring can have */
	/* both */
	uint64_t kicks, calls;
};

/*
 * A driver on a session at config->path. -EINVAL names the value and what would be right; else the
 * errors of vhost_fe_open. The port's link is down until the device works.
 */
int vdrv_open(struct port **, const char *name, const struct vdrv_config *, struct loop *,
	struct log *, struct err *);
/*
 * NULL is fine. Packets that are still out stay whole and are freed as ever; the memory goes with the
 * last one. Chunks without a packet have been put back before.
 */
void vdrv_free(struct port *);

/*
 * The packet side, an alternative to pull and settle: ready and room events of port->events, arm and
 * arm_room of port->ops serve it, too. Packets come from, and go back to, the driver's own pool.
 * A frame that is longer than the MTU allows, or asks for what the device cannot do, is dropped by
 * vdrv_send and counted.
 */
struct pkt_pool *vdrv_pkts(struct port *);
struct chunk_pool *vdrv_chunks(struct port *);
/* Up to `max` received packets, their offload fields checked; they are the caller's (pkt_free). */
unsigned vdrv_receive(struct port *, struct pkt **, unsigned max);
/*
 * Transmit from the front: how many. Taken packets are the driver's until used; then their account
 * completes. The header goes into the headroom of the head, which no other packet may share. The
 * caller flushes.
 */
unsigned vdrv_send(struct port *, struct pkt **, unsigned n);
void vdrv_flush(struct port *); /* publish, kick at most once */
/* An account began to wait after its packets were flushed: arm completions. */
void vdrv_arm_done(struct port *);
const struct vdrv_counters *vdrv_counters(struct port *);
const char *vdrv_last_end(const struct port *); /* why the last session ended; "" */
uint64_t vdrv_features(const struct port *);    /* agreed on; 0 while down */

#endif
