/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv: the virtio-net driver, over a vhost-user front-end (port/vhost_fe.h). It is a port: what the
 * device delivers is pulled, what is pushed is transmitted. And it is a NIC for code that owns packets:
 * vdrv_send and vdrv_receive, which copy nothing. The classic mechanisms are here by name, each with a knob
 * and counters: receive buffer sizes (S0), fragment coalescing (S1), inline header (S2), allocation order (S3).
 * MECHANISMS 2.1-2.6, 2.10; [VIRTIO 1.2 5.1.6]
 */
#ifndef PORT_VDRV_H
#define PORT_VDRV_H

#include "frame/pkt.h"
#include "port/port.h"
#include "port/vnet.h"
#include "ring/vq_drv.h"

enum vdrv_rxbuf {
	VDRV_RXBUF_PAGE, /* one page each */
	VDRV_RXBUF_MTU, /* Ethernet + VLAN + MTU, header not counted, unaligned: the fault of 2013 */
	VDRV_RXBUF_MTU_HDR, /* the fix: with the header, rounded to a cache line */
	VDRV_RXBUF_AUTO,    /* moving average of packet lengths */
};

struct vdrv_config {
	const char *path;
	bool server;
	uint64_t off;          /* features not to use */
	uint8_t mac[6];        /* zero: the device's, or made from the name */
	uint16_t mtu;          /* 0: the device's, or 1500 */
	unsigned ring_size;    /* both rings; a power of two, 2 .. 1024; default 256 */
	size_t memory;         /* of the pool [bytes]; default 16 MiB */
	enum vdrv_rxbuf rxbuf; /* default auto */
	bool coalesce;         /* default on */
	uint16_t copybreak;    /* a packet this short is copied out of its buffer; default 128 */
	bool inline_header;    /* default on */
	uint16_t headroom;     /* of heads made here; default 12 + alignment */
	enum vq_indirect indirect;
	unsigned order;    /* of kept packets' chunks; default 3 */
	unsigned rx_order; /* of the receive allocator; default 3 */
};

void vdrv_config_init(struct vdrv_config *); /* the defaults */

struct vdrv_counters {
	/* receive */
	uint64_t rx_packets, rx_bytes, rx_buffers, rx_used, rx_frags, rx_chained, rx_coalesced,
		rx_copied;
	uint64_t rx_truesize, rx_refills, rx_refill_failed;
	uint64_t rx_err_len, rx_err_short, rx_err_missing, rx_err_num_buffers, rx_err_too_big,
		rx_err_id;
	uint64_t rx_not_full; /* a buffer in the middle that was not filled: accepted, counted */
	/* transmit */
	uint64_t tx_packets, tx_bytes, tx_desc, tx_indirect, tx_inline, tx_stopped, tx_dropped;
	/* both */
	uint64_t kicks, calls;
};

int vdrv_open(struct port **, const char *name, const struct vdrv_config *, struct loop *,
	struct log *, struct err *);
void vdrv_free(struct port *);

/* The packet side. Packets come from, and go back to, the driver's own pool. */
struct pkt_pool *vdrv_pkts(struct port *);
struct chunk_pool *vdrv_chunks(struct port *);
/* Up to `max` received packets; they are the caller's (pkt_free). */
unsigned vdrv_receive(struct port *, struct pkt **, unsigned max);
/* Transmit from the front; taken packets are the driver's until used. vdrv_flush kicks. */
unsigned vdrv_send(struct port *, struct pkt **, unsigned n);
void vdrv_flush(struct port *);
const struct vdrv_counters *vdrv_counters(const struct port *);
const char *vdrv_last_end(const struct port *);
uint64_t vdrv_features(const struct port *);

#endif
