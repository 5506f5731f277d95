/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_hand_rig: a driver whose device is played by hand: it fills buffers with stamped frames and says
 * of them what it is told. For tests; one per program.
 */
#ifndef PORT_VDRV_HAND_RIG_H
#define PORT_VDRV_HAND_RIG_H

#include "port/vdrv_rig.h"

#define FULL UINT32_MAX

static struct loop loop;
static nsec_t now;
static struct burst burst;
static struct rig rig;

static inline int group_setup(void **state)
{
	int rc = loop_init(&loop, NULL);

	(void)state;
	loop.virtual_now = &now;
	loop_refresh(&loop);
	return rc;
}

static inline int group_teardown(void **state)
{
	(void)state;
	loop_fini(&loop);
	return 0;
}

static inline void start(const struct vdrv_config *c, uint64_t without, uint32_t mtu)
{
	rig_driver(&rig, c, &loop);
	rig.features = vnet_features_close(rig.features & ~without);
	rig_up_by_hand(&rig, mtu);
}

static inline struct vdrv_config defaults(void)
{
	struct vdrv_config c;

	vdrv_config_init(&c);
	return c;
}

/* What the device says of one packet; 0 and -1: the truth. */
struct give {
	uint32_t len, serial; /* of the frame */
	int num;              /* num_buffers */
	int lie_at;           /* this buffer of it ... */
	uint32_t lie_len;     /* ... was written so far */
	unsigned hold;        /* buffers at its end that are not used yet */
	uint32_t fill;        /* of each buffer no more than that; 0: all */
	bool partial; /* the checksum from behind the Ethernet header on is to be finished */
};

static inline uint8_t stamp(uint32_t serial, uint32_t i)
{
	return (uint8_t)(serial * 31 + i * 7 + (i >> 8));
}

/* The device fills buffers with a frame and says of it what it is told; buffers used. */
static inline unsigned give(const struct give *g)
{
	static struct chain c[VDRV_RING_MAX];
	static struct iovec iov[VDRV_RING_MAX * 2];
	static uint8_t data[FRAME_MAX * 2];
	struct vq_dev *q = &rig.q[VDRV_RX];
	uint32_t hdr = rig.v.hdr_len, need = hdr + g->len, at = 0;
	unsigned n = 0, niov = 0, num;
	uint32_t part[VDRV_RING_MAX];

	memset(data, 0, hdr);
	data[0] = g->partial ? OFF_NEEDS_CSUM : 0;
	data[6] = g->partial ? ETH_HLEN : 0;
	for (uint32_t i = 0; i < g->len; i++)
		data[hdr + i] = stamp(g->serial, i);
	while (at < need) {
		assert_int_equal(vq_dev_pop(q, &c[n], 1, &iov[niov], VDRV_RING_MAX), 1);
		part[n] = g->fill && g->fill < c[n].wlen ? g->fill : c[n].wlen;
		part[n] = need - at < part[n] ? need - at : part[n];
		at += part[n];
		niov += c[n++].nw;
	}
	num = g->num >= 0 ? (unsigned)g->num : n;
	if (hdr == VNET_HDR_MAX) {
		data[10] = (uint8_t)num;
		data[11] = (uint8_t)(num >> 8);
	}
	at = 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t done = 0;

		for (unsigned k = 0; k < c[i].nw && done < part[i]; k++) {
			uint32_t len = (uint32_t)c[i].iov[k].iov_len;

			len = len < part[i] - done ? len : part[i] - done;
			memcpy(c[i].iov[k].iov_base, data + at, len);
			at += len;
			done += len;
		}
	}
	for (unsigned i = 0; i < n - g->hold; i++) {
		uint32_t said = part[i];

		if (g->lie_at == (int)i)
			said = g->lie_len == FULL ? c[i].wlen + 1 : g->lie_len;
		vq_dev_put(q, c[i].id, said);
	}
	vq_dev_unpop(q, 0);
	vq_dev_publish(q);
	return n;
}

static inline void give_good(uint32_t len, uint32_t serial)
{
	give(&(struct give){.len = len, .serial = serial, .num = -1, .lie_at = -1});
}

static inline void bytes_check(const uint8_t *p, uint32_t len, uint32_t serial, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != stamp(serial, from + i))
			fail_msg("byte %u of packet %u is wrong", from + i, serial);
}

static inline void packet_check(const struct pkt *p, uint32_t len, uint32_t serial)
{
	uint32_t at = p->head_len;

	assert_int_equal(p->len, len);
	bytes_check(p->head, p->head_len, serial, 0);
	for (; p; p = p->chain) {
		for (unsigned i = 0; i < p->nfrag; i++) {
			bytes_check(p->frag[i].data, p->frag[i].len, serial, at);
			at += p->frag[i].len;
		}
	}
	assert_int_equal(at, len);
}

/* Exactly this one comes, as a packet; it is the caller's. */
static inline struct pkt *take_packet(uint32_t len, uint32_t serial)
{
	struct pkt *p[4];

	assert_int_equal(vdrv_receive(&rig.v.port, p, 4), 1);
	packet_check(*p, len, serial);
	rig_refs_check(&rig);
	return *p;
}

static inline void take(uint32_t len, uint32_t serial)
{
	pkt_free(take_packet(len, serial));
}

/* The same, lent. */
static inline void take_frame(uint32_t len, uint32_t serial)
{
	static uint8_t flat[FRAME_MAX];
	struct portq *q = &rig.v.port.q;

	assert_int_equal(vdrv_pull(q, &burst, BURST_FRAMES), 1);
	assert_int_equal(frame_len(burst.f), len);
	frame_copy(burst.f, 0, len, &(struct iovec){flat, len}, 1, 0);
	bytes_check(flat, len, serial, 0);
	rig_refs_check(&rig);
	vdrv_settle(q, &burst, 1);
}

#endif
