/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev: the virtio-net device: features, configuration space, one receive and one transmit queue
 * over guest memory, and a notify callback. No socket: a VMM can embed it; port/vhost_be.h connects
 * a vhost-user session to one. It is a port: what the guest transmits is pulled, what is pushed
 *lands in the guest's receive buffers: one copy, straight from the sender's memory.
 *
 * Queue 0 is the guest's receive queue, queue 1 its transmit queue [VIRTIO 1.2 5.1.2].
 *
 * Each queue is stopped or started, and disabled or enabled, independently: one explicit state:
 *
 *	            stopped           started
 *	disabled    nothing           rx: silent; tx: consumed and dropped (DISABLED)
 *	enabled     nothing           works
 *
 * The link is up when the receive queue works (started and enabled) and neither queue is broken: a
 * driver that has nothing to say yet has not kicked its transmit queue, and must be reachable all
 * the same. Frames are lent when the link is up and the transmit queue works, too.
 *
 * The device builds without a C library and without the rest of this one (tests/freestanding): of
 * its host it needs memcpy, memmove, memset, memcmp, and four hooks: err_set (base/err.h; may fill
 * nothing and return -code), log_say (base/log.h; may be silent), loop_defer and loop_undefer
 * (base/loop.h; call t->run soon, from outside any call of the device).
 *
 * A break is noticed inside pull, push and flush: they stop at once, and the rest (log, link, the
 * owner's callback) follows from the loop. Stopping the broken ring, or vdev_reset(), heals it.
 */
#ifndef PORT_VDEV_H
#define PORT_VDEV_H

#include "port/port.h"
#include "port/vnet.h"
#include "ring/gmem.h"
#include "ring/vq.h"

enum { VDEV_RX, VDEV_TX, VDEV_QUEUES };

struct vdev_ring {
	uint16_t size;
	uint64_t desc_uva, avail_uva, used_uva; /* as told; translated again when memory changes */
	bool have_addr, started, enabled;
	uint16_t base; /* avail index to start at */
};

#define VDEV_RX_CACHE CHAIN_MAX /* chains popped ahead; a frame that needs more is never taken */

struct vdev {
	struct port port; /* first: a vdev is a port */
	struct gmem mem;
	struct vq_dev vq[VDEV_QUEUES];
	struct vdev_ring ring[VDEV_QUEUES];
	uint64_t offered, features; /* features: as acknowledged; 0 before */
	unsigned hdr_len;
	bool mrg;             /* MRG_RXBUF acknowledged */
	uint32_t mtu_offered; /* in the configuration space */
	uint32_t mtu_told;    /* by NET_SET_MTU; 0: not told */
	const char *broken;   /* constant reason, NULL while whole */
	unsigned broken_queue;
	struct loop_task broke_task;
	uint8_t rarp_mac[6]; /* SEND_RARP: to be lent with the next pull */
	bool rarp_pending;

	/* Used buffers: interrupt the driver. False: not yet, the callee counts it when it does. */
	bool (*notify)(void *ctx, unsigned queue);
	void (*broke)(
		void *ctx, unsigned queue, const char *reason); /* once per break: VRING_ERR */
	void *ctx;

	/* transmit: chains on loan, in order */
	bool tx_live;
	bool rarp_lent;   /* the first frame of the burst has no chain */
	unsigned tx_want; /* chains that fill a burst, by the size of the last frames */
	unsigned nlent;
	struct chain lent[BURST_FRAMES];

	/* receive: chains popped ahead, [rx_used, rx_have) not yet used; their pieces lie one after
	 * the other in rx_iov, so that the buffers of a packet are one list of pieces */
	bool rx_live;
	uint32_t rx_cap;   /* bytes of the chain seen last, at least 1 */
	unsigned rx_short; /* chains that were too few when push stopped last, plus one; 0: it did
			      not */
	unsigned rx_have, rx_used, rx_niov;
	struct chain rx_chain[VDEV_RX_CACHE];
	struct iovec rx_iov[BURST_IOV];
};

struct vdev_config {
	uint8_t mac[6];
	uint32_t mtu; /* [ETH_MTU_MIN, ETH_MTU_MAX]; offered with VIRTIO_NET_F_MTU */
	uint64_t off; /* features not to offer; what depends on them goes, too */
};

void vdev_init(
	struct vdev *, const char *name, const struct vdev_config *, struct loop *, struct log *);
void vdev_fini(struct vdev *);
/* A port whose kind is known to be a vdev. */
static inline const struct vdev *vdev_of_port(const struct port *p)
{
	return (const struct vdev *)(const void *)p;
}
/* Back to what vdev_init made: queues stopped, features 0, link down; memory stays mapped. */
void vdev_reset(struct vdev *);

/*
 * What the driver acknowledged; -EINVAL names bits never offered. Bits without what they need
 * (guest_ecn without guest_tso*) count as not acknowledged: front-ends switch them off one by one.
 */
int vdev_set_features(struct vdev *, uint64_t features, struct err *);
int vdev_set_mtu(struct vdev *, uint64_t mtu, struct err *); /* NET_SET_MTU */
/* Configuration space [VIRTIO 1.2 5.1.4]: `len` bytes at `offset`; -EINVAL beyond its end. */
int vdev_config_read(const struct vdev *, unsigned offset, unsigned len, uint8_t *out);
#define VDEV_CONFIG_LEN 12 /* mac, status, max_virtqueue_pairs, mtu */

int vdev_set_ring_size(struct vdev *, unsigned queue, unsigned size, struct err *);
int vdev_set_ring_addr(
	struct vdev *, unsigned queue, uint64_t desc, uint64_t avail, uint64_t used, struct err *);
void vdev_set_ring_base(struct vdev *, unsigned queue, uint16_t base);
void vdev_ring_start(struct vdev *, unsigned queue); /* first kick, or kick polling */
uint16_t vdev_ring_stop(
	struct vdev *, unsigned queue); /* no access after; the avail index to go on at */
void vdev_ring_enable(struct vdev *, unsigned queue, bool on);
void vdev_kicked(struct vdev *, unsigned queue); /* the driver notified us */
/*
 * Memory changes while rings run: call before (returns staged work to the rings), change vdev->mem,
 * call after: ring addresses are translated again; a ring whose memory is gone breaks.
 */
void vdev_mem_begin(struct vdev *);
void vdev_mem_end(struct vdev *);
void vdev_send_rarp(struct vdev *, const uint8_t mac[6]);
void vdev_break(struct vdev *, unsigned queue, const char *reason);

#endif
