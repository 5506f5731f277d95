/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_open: the driver over a vhost-user front-end session: the session's events become the
 * driver's states, its kicks the session's.
 */
#include "port/vdrv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/vdrv_int.h"
#include "port/vhost_fe.h"

static uint64_t on_choose(void *ctx, uint64_t features)
{
	struct vdrv *v = ctx;

	return vdrv_choose(v, features, vhost_fe_mtu(v->session));
}

/*
 * The device's address, if it has one and none was configured; else our own: not that of the device
 * before. [VIRTIO 1.2 5.1.5]
 */
static int take_mac(struct vdrv *v, struct err *err)
{
	uint8_t mac[6];

	if (v->own_mac)
		return 0;
	if (!vhost_fe_mac(v->session, mac))
		memcpy(mac, v->name_mac, sizeof(mac));
	if (!eth_is_host(mac))
		return err_set(err, EINVAL,
			"the device's address %02x:%02x:%02x:%02x:%02x:%02x is no host's: it must "
			"be neither zero nor of a group; mac= gives another",
			mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	memcpy(v->port.mac, mac, sizeof(mac));
	return 0;
}

static int on_rings(void *ctx, uint64_t features, struct vhost_fe_ring ring[2], struct err *err)
{
	struct vdrv *v = ctx;
	int rc = take_mac(v, err);

	if (!rc)
		rc = vdrv_rings(v, features, vhost_fe_mtu(v->session), err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < VDRV_QUEUES; i++) {
		const struct vq_drv *vq = &v->vq[i];

		ring[i] = (struct vhost_fe_ring){
			.size = vq->size,
			.base = 0,
			.desc = vq->desc,
			.avail = vq->avail,
			.used = vq->used,
		};
	}
	return 0;
}

static void on_up(void *ctx)
{
	vdrv_up(ctx);
}

static void on_down(void *ctx, const char *reason)
{
	(void)reason;
	vdrv_down(ctx);
}

static void on_call(void *ctx, unsigned queue)
{
	vdrv_call(ctx, queue);
}

static const struct vhost_fe_events events = {
	.choose = on_choose,
	.rings = on_rings,
	.up = on_up,
	.down = on_down,
	.call = on_call,
};

static void session_kick(void *ctx, unsigned queue)
{
	vhost_fe_kick(((struct vdrv *)ctx)->session, queue);
}

static void session_broke(void *ctx, const char *reason)
{
	vhost_fe_end(((struct vdrv *)ctx)->session, reason);
}

static void session_close(void *ctx)
{
	struct vdrv *v = ctx;

	vhost_fe_close(v->session);
	v->session = NULL;
}

static int session_open(struct vdrv *v, const struct vdrv_config *c, struct err *err)
{
	struct vhost_fe_config fe = {
		.path = c->path,
		.server = c->server,
		.want = vdrv_want(v),
		.mtu = c->mtu,
		.mem_fd = v->chunks.fd,
		.mem = v->chunks.base,
		.mem_len = v->chunks.len,
	};
	struct vhost_fe *session;
	int rc = vhost_fe_open(
		&session, v->port.name, &fe, &events, v, v->port.loop, v->port.log, err);

	v->session = rc ? NULL : session;
	return rc;
}

int vdrv_open(struct port **out, const char *name, const struct vdrv_config *c, struct loop *loop,
	struct log *log, struct err *err)
{
	static const uint8_t none[6];
	struct vdrv *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return err_set(err, ENOMEM, "no memory for port \"%s\"", name);
	rc = vdrv_init(v, name, c, loop, log, err);
	if (rc) {
		free(v);
		return rc;
	}
	v->kick = session_kick;
	v->broke = session_broke;
	v->close = session_close;
	v->ctx = v;
	v->own_mac = memcmp(c->mac, none, sizeof(none)) != 0;
	if (v->own_mac)
		memcpy(v->port.mac, c->mac, sizeof(v->port.mac));
	else
		port_mac_of_name("", name, v->port.mac);
	memcpy(v->name_mac, v->port.mac, sizeof(v->name_mac));
	rc = session_open(v, c, err);
	if (rc) {
		vdrv_fini(v);
		free(v);
		return rc;
	}
	*out = &v->port;
	return 0;
}

static void last_packet(struct pkt_pool *pkts)
{
	struct vdrv *v = (struct vdrv *)(void *)((char *)pkts - offsetof(struct vdrv, pkts));

	vdrv_pools_fini(v);
	free(v);
}

void vdrv_free(struct port *p)
{
	struct vdrv *v = p ? vdrv_port(p) : NULL;

	if (!v)
		return;
	vdrv_close(p);
	if (v->pkts.live)
		vdrv_down(v); /* what is held from now on the peer can neither see nor change */
	vdrv_release(v);
	if (v->pkts.live)
		v->pkts.last = last_packet;
	else
		last_packet(&v->pkts);
}

const char *vdrv_last_end(const struct port *p)
{
	const struct vdrv *v = (const struct vdrv *)(const void *)p;

	return v->session ? vhost_fe_last_end(v->session) : "";
}
