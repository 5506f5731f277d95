/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdev: set-up of the virtio-net device: features, configuration space, rings and their states. The
 * datapath is in vdev_tx.c and vdev_rx.c. It must not know a socket or a vhost-user message.
 *
 * State of a queue is (started, enabled, whole); vdev_update() derives everything else from it in
 * one place: what is live, the link, what the driver accepts, the MTU. Every change of state ends
 * there.
 *
 * Ring addresses are kept as they were told and translated when the ring starts and whenever memory
 * changes, so messages may come in any order. [VIRTIO 1.2 5.1]
 */
#include "port/vdev.h"

#include <errno.h>
#include <string.h>

#include "port/vdev_int.h"

static const char *const queue_name[VDEV_QUEUES] = {"receive", "transmit"};

/* state */

static bool ring_works(const struct vdev *v, unsigned queue)
{
	return v->ring[queue].started && v->ring[queue].enabled && !v->broken;
}

static void vdev_update(struct vdev *v)
{
	bool had_tx = v->tx_live;

	v->rx_live = ring_works(v, VDEV_RX);
	v->tx_live = v->rx_live && ring_works(v, VDEV_TX);
	v->port.accepts = vnet_accepts(v->features);
	v->port.mtu = v->features & VNET_BIT(MTU) ? v->mtu_offered : 0;
	if (v->mtu_told)
		v->port.mtu = v->mtu_told;
	port_set_link(&v->port, v->rx_live);
	if (v->tx_live && !had_tx)
		port_ready(&v->port.q); /* frames may wait since before the ring started */
}

/*
 * A transmit queue that is started but disabled is consumed and dropped: when it comes to be so, and
 * when the driver kicks. Not on other occasions: User-Mode Linux disables a ring and then uses its
 * memory for other things, without a word.
 */
static void tx_disabled_look(struct vdev *v)
{
	if (v->ring[VDEV_TX].started && !v->ring[VDEV_TX].enabled && !v->broken)
		vdev_tx_discard(v);
}

static void vdev_broke(struct loop_task *t)
{
	struct vdev *v = (struct vdev *)(void *)((char *)t - offsetof(struct vdev, broke_task));

	if (!v->broken)
		return; /* healed meanwhile */
	log_say(v->port.log, LOG_WARN, v->port.name, "the driver's %s queue is broken: %s",
		queue_name[v->broken_queue], v->broken);
	vdev_update(v);
	if (v->broke)
		v->broke(v->ctx, v->broken_queue, v->broken);
}

void vdev_break(struct vdev *v, unsigned queue, const char *reason)
{
	vq_dev_break(&v->vq[queue], reason);
	v->rx_live = v->tx_live = false;
	if (v->broken)
		return;
	v->broken = reason;
	v->broken_queue = queue;
	loop_defer(v->port.loop, &v->broke_task);
}

/* life */

static void vdev_close(struct port *p)
{
	struct vdev *v = vdev_of(&p->q);

	p->events = NULL;
	vdev_reset(v);
	loop_undefer(p->loop, &v->broke_task);
}

static struct port_ring_counts ring_counts(const struct vq_dev *vq)
{
	return (struct port_ring_counts){
		vq->n_popped, vq->n_desc, vq->n_indirect, vq->n_notify, vq->n_suppressed};
}

static void vdev_rings(const struct portq *q, struct port_rings *r)
{
	const struct vdev *v = vdev_of_port(q->port);

	*r = (struct port_rings){
		.in = ring_counts(&v->vq[VDEV_TX]),
		.out = ring_counts(&v->vq[VDEV_RX]),
		.hdr_len = v->hdr_len,
		.merged = v->mrg,
	};
	if (v->nlent) {
		r->pieces = v->lent[0].nr;
		r->bytes = v->lent[0].rlen;
	}
}

static const struct port_ops vdev_ops = {
	.kind = "vhost-user",
	.pull = vdev_pull,
	.settle = vdev_settle,
	.push = vdev_push,
	.flush = vdev_flush,
	.arm = vdev_arm,
	.arm_room = vdev_arm_room,
	.close = vdev_close,
	.rings = vdev_rings,
};

void vdev_init(struct vdev *v, const char *name, const struct vdev_config *c, struct loop *loop,
	struct log *log)
{
	memset(v, 0, sizeof(*v));
	port_init(&v->port, &vdev_ops, name, loop, log);
	memcpy(v->port.mac, c->mac, sizeof(v->port.mac));
	gmem_init(&v->mem);
	v->offered = vnet_features_close(vnet_features_all() & ~c->off);
	v->mtu_offered = c->mtu;
	v->broke_task.run = vdev_broke;
	vdev_reset(v);
}

void vdev_fini(struct vdev *v)
{
	vdev_close(&v->port);
	gmem_fini(&v->mem);
}

void vdev_reset(struct vdev *v)
{
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		vdev_ring_stop(v, i);
		v->ring[i] = (struct vdev_ring){0};
	}
	v->features = 0;
	v->hdr_len = vnet_hdr_len(0);
	v->mrg = false;
	v->mtu_told = 0;
	v->rarp_pending = false;
	v->tx_want = BURST_FRAMES;
	v->rx_cap = 1;
	v->rx_short = 0;
	vdev_update(v);
}

/* features and configuration */

int vdev_set_features(struct vdev *v, uint64_t features, struct err *err)
{
	uint64_t strange = features & ~v->offered;
	char text[ERR_TEXT];

	if (strange)
		return err_set(err, EINVAL,
			"the driver acknowledged features that were not offered: %s",
			vnet_features_text(strange, text, sizeof(text)));
	/* QEMU with guest_tso4=off,guest_tso6=off still offers guest_ecn, and Linux takes it: what lacks
	 * its base is not used, which no driver can tell from a device that never makes use of it. */
	features = vnet_features_close(features);
	vdev_flush(&v->port.q);
	v->features = features;
	v->hdr_len = vnet_hdr_len(features);
	v->mrg = features & VNET_BIT(MRG_RXBUF);
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		v->vq[i].event_idx = features & VNET_BIT(EVENT_IDX);
		v->vq[i].indirect = features & VNET_BIT(INDIRECT_DESC);
	}
	vdev_update(v);
	return 0;
}

int vdev_set_mtu(struct vdev *v, uint64_t mtu, struct err *err)
{
	if (mtu < ETH_MTU_MIN || mtu > ETH_MTU_MAX)
		return err_set(err, EINVAL, "MTU %llu is not in %u .. %u", (unsigned long long)mtu,
			ETH_MTU_MIN, ETH_MTU_MAX);
	v->mtu_told = (uint32_t)mtu;
	vdev_update(v);
	return 0;
}

int vdev_config_read(const struct vdev *v, unsigned offset, unsigned len, uint8_t *out)
{
	uint8_t config[VDEV_CONFIG_LEN] = {
		[6] = 1, /* VIRTIO_NET_S_LINK_UP */
		[8] = 1, /* pairs */
		[10] = (uint8_t)v->mtu_offered,
		[11] = (uint8_t)(v->mtu_offered >> 8),
	};

	memcpy(config, v->port.mac, sizeof(v->port.mac));
	if (offset > sizeof(config) || len > sizeof(config) - offset)
		return -EINVAL;
	memcpy(out, config + offset, len);
	return 0;
}

/* rings */

int vdev_set_ring_size(struct vdev *v, unsigned queue, unsigned size, struct err *err)
{
	struct vdev_ring *r = &v->ring[queue];
	int rc;

	if (r->started)
		return err_set(err, EBUSY, "the size of the %s ring may not change while it runs",
			queue_name[queue]);
	rc = vq_dev_set_size(&v->vq[queue], size, err);
	if (!rc)
		r->size = (uint16_t)size;
	return rc;
}

/* Translate the ring addresses as they were told into the queue. NULL, or why not. */
static const char *ring_map(struct vdev *v, unsigned queue)
{
	const struct vdev_ring *r = &v->ring[queue];
	void *desc, *avail, *used;

	if (!r->size)
		return "the ring has no size";
	if (!r->have_addr)
		return "the ring has no addresses";
	desc = gmem_uva(&v->mem, r->desc_uva, vring_desc_len(r->size), VRING_DESC_ALIGN);
	avail = gmem_uva(&v->mem, r->avail_uva, vring_avail_len(r->size), VRING_AVAIL_ALIGN);
	used = gmem_uva(&v->mem, r->used_uva, vring_used_len(r->size), VRING_USED_ALIGN);
	if (!desc || !avail || !used)
		return "the ring is not in mapped memory";
	vq_dev_set_rings(&v->vq[queue], desc, avail, used);
	return NULL;
}

int vdev_set_ring_addr(struct vdev *v, unsigned queue, uint64_t desc, uint64_t avail, uint64_t used,
	struct err *err)
{
	struct vdev_ring *r = &v->ring[queue], old = *r;
	const char *why;

	if (desc % VRING_DESC_ALIGN || avail % VRING_AVAIL_ALIGN || used % VRING_USED_ALIGN)
		return err_set(err, EINVAL,
			"%s ring addresses %#llx, %#llx, %#llx are not multiples of 16, 2 and 4",
			queue_name[queue], (unsigned long long)desc, (unsigned long long)avail,
			(unsigned long long)used);
	r->desc_uva = desc;
	r->avail_uva = avail;
	r->used_uva = used;
	r->have_addr = true;
	if (!r->started || v->vq[queue].broken)
		return 0;
	/* while it runs: a front-end that only wants to log says the same again */
	vdev_flush(&v->port.q);
	why = ring_map(v, queue);
	if (why) {
		*r = old;
		return err_set(err, EINVAL, "new %s ring addresses: %s", queue_name[queue], why);
	}
	return 0;
}

void vdev_set_ring_base(struct vdev *v, unsigned queue, uint16_t base)
{
	v->ring[queue].base = base;
}

void vdev_ring_start(struct vdev *v, unsigned queue)
{
	struct vdev_ring *r = &v->ring[queue];
	struct vq_dev *vq = &v->vq[queue];
	const char *why;

	if (r->started)
		return;
	r->started = true;
	vq_dev_init(vq, &v->mem);
	if (r->size)
		vq_dev_set_size(vq, r->size, NULL);
	vq->last_avail = vq->avail_idx = r->base;
	why = ring_map(v, queue);
	if (why) {
		vdev_break(v, queue, why);
		return;
	}
	vq_dev_start(vq, r->base, v->features & VNET_BIT(EVENT_IDX),
		v->features & VNET_BIT(INDIRECT_DESC));
	if (queue == VDEV_RX)
		vq_dev_disarm(vq); /* nobody waits for room yet */
	vdev_update(v);
	if (queue == VDEV_TX)
		tx_disabled_look(v);
}

/* A broken queue was stopped: is the other one whole? */
static void vdev_heal(struct vdev *v)
{
	v->broken = NULL;
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		if (!v->vq[i].broken)
			continue;
		v->broken = v->vq[i].broken;
		v->broken_queue = i;
	}
}

uint16_t vdev_ring_stop(struct vdev *v, unsigned queue)
{
	struct vdev_ring *r = &v->ring[queue];

	if (r->started) {
		vdev_flush(&v->port.q);
		if (v->vq[queue].size)
			r->base = vq_dev_stop(&v->vq[queue]);
		r->started = false;
	}
	vq_dev_init(&v->vq[queue], &v->mem);
	vdev_heal(v);
	vdev_update(v);
	return r->base;
}

void vdev_ring_enable(struct vdev *v, unsigned queue, bool on)
{
	if (v->ring[queue].enabled == on)
		return;
	if (!on)
		vdev_flush(&v->port.q);
	v->ring[queue].enabled = on;
	vdev_update(v);
	if (queue == VDEV_TX)
		tx_disabled_look(v);
}

void vdev_kicked(struct vdev *v, unsigned queue)
{
	struct portq *q = &v->port.q;

	if (queue == VDEV_RX) {
		q->out.kicks++;
		vq_dev_disarm(&v->vq[VDEV_RX]); /* who waits on asks again */
		if (v->rx_live)
			port_room(q);
		return;
	}
	q->in.kicks++;
	if (v->tx_live)
		port_ready(q);
	else
		tx_disabled_look(v);
}

/* memory */

void vdev_mem_begin(struct vdev *v)
{
	vdev_flush(&v->port.q);
}

void vdev_mem_end(struct vdev *v)
{
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		if (!v->ring[i].started || v->vq[i].broken || !ring_map(v, i))
			continue;
		vq_dev_set_rings(&v->vq[i], NULL, NULL, NULL);
		vdev_break(v, i, "the memory of the ring was taken away");
	}
}

void vdev_send_rarp(struct vdev *v, const uint8_t mac[6])
{
	memcpy(v->rarp_mac, mac, sizeof(v->rarp_mac));
	v->rarp_pending = true;
	if (v->tx_live)
		port_ready(&v->port.q);
}
