/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv: the driver's set-up and states, and its port. It must not know a session: whoever carries
 * kicks and calls (vdrv_open.c, a test) says when the device works and when it does not.
 *
 *	        vdrv_rings            vdrv_up             vdrv_down
 *	empty ------------> ringed -----------> live ---------------> empty
 *	                       buffers posted    |  ^ a lie about a ring: not live, `broke` follows
 *	                                         +--+ from the loop, and it ends the session
 *
 * All that the device may see lies in one pool: the rings at its end, chunks of packets before them.
 * [VIRTIO 1.2 3.1, 5.1]
 */
#include "port/vdrv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/vdrv_int.h"

#define MTU_DEFAULT  1500
#define MEMORY_MIN   ((size_t)1 << 20)
#define HEADROOM_MAX (CHUNK_PAGE / 2 - 1)
#define CHAIN_RING   4                /* two chunks of 64 KiB, and the header apart */
#define COPY_MAX     (CHUNK_PAGE / 2) /* it and a header lie in the first page of a buffer */

void vdrv_config_init(struct vdrv_config *c)
{
	*c = (struct vdrv_config){
		.ring_size = 256,
		.memory = (size_t)16 << 20,
		.rxbuf = VDRV_RXBUF_AUTO,
		.coalesce = true,
		.copybreak = 128,
		.inline_header = true,
		.headroom = VDRV_HDR_SLOT,
		.indirect = VQ_INDIRECT_AUTO,
		.order = 3,
		.rx_order = 3,
	};
}

/* states */

static void vdrv_broke(struct loop_task *t)
{
	struct vdrv *v = (struct vdrv *)(void *)((char *)t - offsetof(struct vdrv, broke_task));

	if (!v->broken)
		return;
	port_set_link(&v->port, false);
	if (v->broke)
		v->broke(v->ctx, v->broken);
}

void vdrv_break(struct vdrv *v, const char *reason)
{
	if (v->broken)
		return;
	v->broken = reason;
	v->live = false;
	v->n.rx_err_id++;
	loop_defer(v->port.loop, &v->broke_task);
}

void vdrv_kick(struct vdrv *v, unsigned queue)
{
	if (!v->live)
		return; /* whoever brings us up kicks both */
	v->n.kicks++;
	if (queue == VDRV_RX)
		v->port.q.in.notify++;
	else
		v->port.q.out.notify++;
	v->kick(v->ctx, queue);
}

/* What the device takes unfitted: the host side of the features. */
static unsigned host_accepts(uint64_t features)
{
	unsigned accepts = 0;

	features = vnet_features_close(features);
	if (features & VNET_BIT(CSUM))
		accepts |= ACCEPT_CSUM;
	if (features & VNET_BIT(HOST_TSO4))
		accepts |= ACCEPT_TSO4;
	if (features & VNET_BIT(HOST_TSO6))
		accepts |= ACCEPT_TSO6;
	if (features & VNET_BIT(HOST_ECN))
		accepts |= ACCEPT_ECN;
	if (features & VNET_BIT(HOST_USO))
		accepts |= ACCEPT_USO4 | ACCEPT_USO6;
	return accepts;
}

/* With an address of our own we do not agree on the device's. [VIRTIO 1.2 5.1.5] */
uint64_t vdrv_want(const struct vdrv *v)
{
	const uint64_t off = v->config.off | (eth_u48(v->config.mac) ? VNET_BIT(MAC) : 0);

	return vnet_features_close(vnet_features_all() & ~off);
}

/* Bytes of packets that a full receive ring holds, at the least. */
static uint64_t ring_holds(const struct vdrv_config *c, uint32_t mtu)
{
	uint32_t len = CHUNK_PAGE;

	if (c->rxbuf == VDRV_RXBUF_MTU)
		len = ETH_HLEN + VLAN_HLEN + MTU_DEFAULT;
	if (c->rxbuf == VDRV_RXBUF_MTU_HDR && ETH_HLEN + VLAN_HLEN + mtu < len)
		len = ETH_HLEN + VLAN_HLEN + mtu;
	return (uint64_t)len * c->ring_size;
}

/*
 * Super-packets towards us need buffers for 64 KiB in all, or, where each is one chain, a ring that is
 * long enough for it: a ring that cannot have them does without. With mergeable buffers that depends on
 * the device's MTU, which may be read before features are agreed on for just such a reason.
 * [VIRTIO 1.2 3.1.1, 5.1.6.3.1]
 */
uint64_t vdrv_choose(const struct vdrv *v, uint64_t features, uint32_t mtu)
{
	const struct vdrv_config *c = &v->config;
	bool fits = c->ring_size >= CHAIN_RING;

	mtu = c->mtu ? c->mtu : mtu ? mtu : MTU_DEFAULT;
	if (features & VNET_BIT(MRG_RXBUF))
		fits = ring_holds(c, mtu) >= FRAME_MAX + VNET_HDR_MAX;
	if (!fits)
		features &= ~(VNET_BIT(GUEST_TSO4) | VNET_BIT(GUEST_TSO6) | VNET_BIT(GUEST_ECN) |
			      VNET_BIT(GUEST_USO4) | VNET_BIT(GUEST_USO6));
	return vnet_features_close(features);
}

/* The next device shall not see what this one could, nor this one what comes then. */
static int memory_part(struct vdrv *v, struct err *err)
{
	int rc = 0;

	page_frag_fini(&v->pkts.heads);
	if (v->shared)
		rc = chunk_pool_renew(&v->chunks, err);
	v->shared = rc != 0;
	return rc;
}

static void vdrv_mend(struct loop_task *t)
{
	struct vdrv *v = (struct vdrv *)(void *)((char *)t - offsetof(struct vdrv, mend_task));

	chunk_pool_mend(&v->chunks);
}

static void rings_reset(struct vdrv *v)
{
	for (unsigned i = 0; i < VDRV_QUEUES; i++) {
		v->vq[i].event_idx = v->features & VNET_BIT(EVENT_IDX);
		v->vq[i].want_indirect = v->features & VNET_BIT(INDIRECT_DESC);
		v->vq[i].indirect = v->config.indirect;
		vq_drv_reset(&v->vq[i], 0);
	}
	vq_drv_disarm(&v->vq[VDRV_TX]);
}

int vdrv_rings(struct vdrv *v, uint64_t features, uint32_t mtu, struct err *err)
{
	int rc;

	vdrv_down(v);
	rc = memory_part(v, err);
	if (rc)
		return rc;
	v->features = features;
	v->hdr_len = vnet_hdr_len(features);
	v->mrg = features & VNET_BIT(MRG_RXBUF);
	v->inline_ok = v->config.inline_header &&
		       (features & (VNET_BIT(VERSION_1) | VNET_BIT(ANY_LAYOUT)));
	v->tx.short_len = 0; /* a slot is a head with room for the header: not if heads have none */
	if (v->inline_ok && v->config.headroom >= v->hdr_len && !(v->config.headroom & 1))
		v->tx.short_len = VDRV_TX_SLOT - VDRV_HDR_SLOT;
	if (!v->config.mtu && mtu && mtu < ETH_MTU_MIN)
		return err_set(err, EINVAL, "the device's MTU %u: must be %u to %u", mtu,
			ETH_MTU_MIN, ETH_MTU_MAX);
	v->mtu = v->config.mtu ? v->config.mtu : mtu ? mtu : MTU_DEFAULT;
	v->port.mtu = v->mtu;
	v->port.accepts = host_accepts(features);
	rings_reset(v);
	rc = vdrv_buf_setup(v, err);
	if (rc)
		return rc;
	v->ringed = v->shared = true;
	vdrv_refill(v);
	return 0;
}

void vdrv_up(struct vdrv *v)
{
	if (!v->ringed || v->live)
		return;
	v->live = true;
	port_set_link(&v->port, true);
	port_ready(&v->port.q); /* buffers may have been used already */
}

static void vdrv_stop(struct vdrv *v)
{
	v->live = v->ringed = false;
	v->broken = NULL;
	loop_undefer(v->port.loop, &v->broke_task);
	vdrv_rx_drop(v);
	vdrv_buf_detach(v);
	vdrv_tx_detach(v);
	port_set_link(&v->port, false);
}

void vdrv_down(struct vdrv *v)
{
	struct err err;

	vdrv_stop(v);
	if (memory_part(v, &err)) /* and is tried again before it is shared again */
		log_say(v->port.log, LOG_WARN, v->port.name, "%s", err.text);
}

void vdrv_call(struct vdrv *v, unsigned queue)
{
	v->n.calls++;
	if (!v->live)
		return;
	if (queue == VDRV_RX) {
		v->port.q.in.kicks++;
		port_ready(&v->port.q);
	} else {
		v->port.q.out.kicks++;
		vdrv_tx_called(v);
	}
}

/* life */

void vdrv_close(struct port *p)
{
	struct vdrv *v = vdrv_port(p);

	p->events = NULL;
	if (v->close)
		v->close(v->ctx);
	vdrv_stop(v);
	loop_undefer(p->loop, &v->tx.done);
	loop_undefer(p->loop, &v->mend_task);
}

static const struct port_ops vdrv_ops = {
	.kind = "virtio-user",
	.pull = vdrv_pull,
	.settle = vdrv_settle,
	.push = vdrv_push,
	.flush = vdrv_publish,
	.arm = vdrv_arm,
	.arm_room = vdrv_arm_room,
	.close = vdrv_close,
};

static int config_check(const struct vdrv_config *c, struct err *err)
{
	unsigned n = c->ring_size;

	if (n < 2 || n > VDRV_RING_MAX || (n & (n - 1)))
		return err_set(err, EINVAL, "ring size %u: must be a power of two from 2 to %u", n,
			VDRV_RING_MAX);
	if (c->mtu && c->mtu < ETH_MTU_MIN)
		return err_set(
			err, EINVAL, "MTU %u: must be %u to %u", c->mtu, ETH_MTU_MIN, ETH_MTU_MAX);
	if (eth_is_multicast(c->mac))
		return err_set(err, EINVAL,
			"the address %02x:...: must be a station's, not a group's", c->mac[0]);
	if (c->memory < MEMORY_MIN)
		return err_set(err, EINVAL, "memory of %zu bytes: must be %zu or more", c->memory,
			MEMORY_MIN);
	if (c->headroom > HEADROOM_MAX)
		return err_set(
			err, EINVAL, "headroom %u: must be %u or less", c->headroom, HEADROOM_MAX);
	if (c->copybreak > COPY_MAX)
		return err_set(
			err, EINVAL, "copybreak %u: must be %u or less", c->copybreak, COPY_MAX);
	if (c->order >= CHUNK_ORDERS || c->rx_order >= CHUNK_ORDERS)
		return err_set(err, EINVAL, "order %u: must be 0 to %u",
			c->order >= CHUNK_ORDERS ? c->order : c->rx_order, CHUNK_ORDERS - 1);
	return 0;
}

/* Rings, lone headers, short frames. */
static size_t shared_len(unsigned size)
{
	return 2 * vq_drv_len(size, true) + (size_t)size * (VDRV_HDR_SLOT + VDRV_TX_SLOT);
}

/* They lie at the end of the pool. */
static int rings_make(struct vdrv *v, struct err *err)
{
	unsigned size = v->config.ring_size;
	size_t ring = vq_drv_len(size, true), lone = (size_t)size * VDRV_HDR_SLOT;
	uint8_t *mem = chunk_pool_reserve(&v->chunks, shared_len(size));
	int rc = 0;

	if (!mem)
		return err_set(err, ENOMEM, "no memory for rings of %u entries", size);
	for (unsigned i = 0; i < VDRV_QUEUES && !rc; i++)
		rc = vq_drv_init(&v->vq[i], mem + i * ring, size, true, err);
	v->tx.hdr = mem + 2 * ring;
	v->tx.slot = v->tx.hdr + lone;
	v->rx.buf = calloc(size, sizeof(*v->rx.buf));
	v->rx.spare = calloc(size, sizeof(*v->rx.spare));
	if (!rc && (!v->rx.buf || !v->rx.spare))
		rc = err_set(err, ENOMEM, "no memory for %u receive buffers", size);
	return rc;
}

static int memory_make(struct vdrv *v, struct err *err)
{
	const struct vdrv_config *c = &v->config;
	size_t shared = (shared_len(c->ring_size) + CHUNK_MAX - 1) / CHUNK_MAX * CHUNK_MAX;
	int rc = chunk_pool_init(&v->chunks, c->memory + shared, err);

	if (rc)
		return rc;
	v->chunks.refuse_permille = c->refuse;
	rc = rings_make(v, err);
	if (rc)
		return rc;
	rc = pkt_pool_init(
		&v->pkts, &v->chunks, (unsigned)(c->memory / CHUNK_PAGE) + 2 * c->ring_size, err);
	if (rc)
		return rc;
	page_frag_init(&v->rx.frag, &v->chunks, c->rx_order);
	return 0;
}

int vdrv_init(struct vdrv *v, const char *name, const struct vdrv_config *c, struct loop *loop,
	struct log *log, struct err *err)
{
	int rc = config_check(c, err);

	if (rc)
		return rc;
	memset(v, 0, sizeof(*v));
	port_init(&v->port, &vdrv_ops, name, loop, log);
	v->config = *c;
	v->config.path = NULL;
	v->keep = (struct keep_rule){.order = c->order, .headroom = c->headroom};
	v->broke_task.run = vdrv_broke;
	v->mend_task.run = vdrv_mend;
	v->tx.done.run = vdrv_tx_done;
	STAILQ_INIT(&v->tx.used);
	STAILQ_INIT(&v->rx.back);
	v->chunks.fd = -1;
	rc = loop_timer_reserve(loop, &v->rx.retry, vdrv_buf_retry);
	if (rc)
		return err_set(err, -rc, "no memory for a timer");
	rc = memory_make(v, err);
	if (rc)
		vdrv_fini(v);
	return rc;
}

void vdrv_release(struct vdrv *v)
{
	vdrv_close(&v->port);
	loop_timer_release(v->port.loop, &v->rx.retry);
	for (unsigned i = 0; i < VDRV_QUEUES; i++)
		vq_drv_fini(&v->vq[i]);
	free(v->rx.buf);
	free(v->rx.spare);
	free(v->rx.page);
	v->rx.buf = NULL;
	v->rx.spare = NULL;
	v->rx.page = NULL;
}

void vdrv_pools_fini(struct vdrv *v)
{
	if (v->pkts.all)
		pkt_pool_fini(&v->pkts);
	chunk_pool_fini(&v->chunks);
}

void vdrv_fini(struct vdrv *v)
{
	vdrv_release(v);
	vdrv_pools_fini(v);
}

/* for the owner of packets */

struct pkt_pool *vdrv_pkts(struct port *p)
{
	return &vdrv_port(p)->pkts;
}

struct chunk_pool *vdrv_chunks(struct port *p)
{
	return &vdrv_port(p)->chunks;
}

const struct vdrv_counters *vdrv_counters(struct port *p)
{
	struct vdrv *v = vdrv_port(p);

	v->n.tx_desc = v->vq[VDRV_TX].n_desc;
	v->n.tx_indirect = v->vq[VDRV_TX].n_indirect;
	return &v->n;
}

uint64_t vdrv_features(const struct port *p)
{
	const struct vdrv *v = (const struct vdrv *)(const void *)p;

	return v->live ? v->features : 0;
}
