/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_int: what the files of the driver share, and its door for a session or a test:
 *
 *	vdrv.c       set-up, states          vdrv_buf.c  receive buffers: length, refill
 *	vdrv_open.c  over a vhost_fe         vdrv_rx.c   used buffers become packets and frames
 *	                                     vdrv_tx.c   packets become chains
 *
 * The driver needs of its device two rings, and somebody who carries kicks and calls:
 *
 *	vdrv_init -> (vdrv_rings -> [vdrv_up] -> vdrv_call ... -> vdrv_down) ... -> vdrv_fini
 */
#ifndef PORT_VDRV_INT_H
#define PORT_VDRV_INT_H

#include "port/vdrv.h"
#include "wire/eth.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum { VDRV_RX, VDRV_TX, VDRV_QUEUES };

#define VDRV_AHEAD      8                    /* used buffers whose first lines are on their way */
#define VDRV_TAGS       8                    /* bytes of two VLAN tags: allowed beyond the MTU */
#define VDRV_HDR_SLOT   16                   /* bytes of a header that stands alone */
#define VDRV_PIECES     64                   /* of a transmit chain, at most */
#define VDRV_TX_SLOT    320                  /* bytes for a short frame and its header, by id */
#define VDRV_RETRY      (10 * NSEC_PER_MSEC) /* when memory was out and nothing is posted [T23] */
#define VDRV_AVG_BITS   16                   /* fraction of the average packet length [T8] */
#define VDRV_AVG_WEIGHT 6                    /* a packet weighs 1/64 */

enum vdrv_rx_mode {
	VDRV_MERGE, /* MRG_RXBUF: a packet in num_buffers buffers */
	VDRV_SMALL, /* one buffer for a frame of MTU size */
	VDRV_BIG,   /* a chain of pages for a super-packet, or a frame longer than a page */
};

/* A posted buffer, by id. A big one's chunks are in page[]. */
struct vdrv_buf {
	uint8_t *data;
	struct chunk *chunk;
};

/* A used buffer: its reference is now ours. */
struct vdrv_used {
	uint8_t *data;
	struct chunk *chunk; /* BIG: NULL, the chunks are at page[id * pages] */
	uint32_t cap, written;
	uint16_t id;
};

/* A buffer that was copied out of and may be posted again. */
struct vdrv_spare {
	uint8_t *data;
	struct chunk *chunk;
	uint32_t cap;
};

struct vdrv_rx {
	enum vdrv_rx_mode mode;
	bool header_apart; /* a descriptor of its own for the header [VIRTIO 1.2 5.1.6.6] */
	bool hole;         /* a chunk's last buffer gets what is left of it */
	uint32_t need;     /* header and the longest packet that may come */
	unsigned pages, page_order;
	uint64_t avg; /* of frame lengths, fixed point; 0: none yet */
	struct page_frag frag;
	struct vdrv_buf *buf;
	struct chunk **page;
	struct vdrv_spare *spare; /* [ring size], the oldest first: addresses keep ascending */
	unsigned spare_get, spare_put;
	uint64_t posted_bytes;
	uint64_t budget; /* for posted_bytes: the rest is for packets */
	struct loop_timer retry;

	/* the port's: frames on loan; NULL: all of it is in the burst */
	unsigned nlent, nlent_pkts;
	struct pkt *lent[BURST_FRAMES];
	struct pkt_list back; /* went back: come first next time */
};

struct vdrv_tx {
	uint8_t *hdr;       /* shared: headers that stand alone, by id */
	uint8_t *slot;      /* shared: short frames behind their headers, by id */
	uint32_t short_len; /* a frame up to this goes there; 0: none */
	bool stopped;
	bool want_room;       /* the port waits for room */
	bool want_done;       /* an account waits */
	unsigned stopped_at;  /* chains out then */
	unsigned accounts;    /* packets out that have one */
	struct pkt_list used; /* of them: came back, to be completed */
	bool completing;
	struct loop_task done;
};

struct vdrv {
	struct port port; /* first: a vdrv is a port */
	struct vdrv_config config;
	struct chunk_pool chunks;
	struct pkt_pool pkts;
	struct vq_drv vq[VDRV_QUEUES];
	struct keep_rule keep;

	/* agreed on; kept until the next vdrv_rings */
	uint64_t features;
	unsigned hdr_len;
	bool mrg;
	bool inline_ok;
	uint32_t mtu;
	bool ringed; /* buffers may be posted */
	bool live;   /* up and whole */
	bool shared; /* the pool's memory, with a device that it must part with */
	const char *broken;

	struct vdrv_rx rx;
	struct vdrv_tx tx;
	struct vdrv_counters n;
	struct loop_task broke_task, mend_task;

	/* the session's: carry a kick; the device broke a ring (from the loop, once) */
	void (*kick)(void *ctx, unsigned queue);
	void (*broke)(void *ctx, const char *reason);
	void (*close)(void *ctx); /* no event from now on; NULL: nothing to do */
	void *ctx;
	void *session;       /* a vhost_fe, with vdrv_open */
	bool own_mac;        /* configured, not the device's */
	uint8_t name_mac[6]; /* ours if neither */
};

static inline struct vdrv *vdrv_of(struct portq *q)
{
	return (struct vdrv *)(void *)((char *)q - offsetof(struct vdrv, port.q));
}

static inline struct vdrv *vdrv_port(struct port *p)
{
	return (struct vdrv *)(void *)p;
}

/* vdrv.c: the life of a driver without its session */
int vdrv_init(struct vdrv *, const char *name, const struct vdrv_config *, struct loop *,
	struct log *, struct err *);
void vdrv_fini(struct vdrv *); /* both of: */
void vdrv_close(struct port *);
void vdrv_release(struct vdrv *); /* all but the packets and their memory; no loop after it */
void vdrv_pools_fini(struct vdrv *);
/* What to ask a device for. */
uint64_t vdrv_want(const struct vdrv *);
/* Of the features on offer those to agree on, once the device's MTU is known; 0: it does not say. */
uint64_t vdrv_choose(const struct vdrv *, uint64_t features, uint32_t mtu);
/* Set the rings up for these features and post receive buffers. mtu: the device's, 0 if not told.
 * -EINVAL: no packet of that MTU fits into the ring, or virtio has no such MTU; else the memory could
 * not be parted from the last device. */
int vdrv_rings(struct vdrv *, uint64_t features, uint32_t mtu, struct err *);
void vdrv_up(struct vdrv *);   /* the caller kicks both queues */
void vdrv_down(struct vdrv *); /* the device has stopped: everything comes back, and the
				  memory parts with it */
void vdrv_call(struct vdrv *, unsigned queue);
void vdrv_break(struct vdrv *, const char *reason);
void vdrv_kick(struct vdrv *, unsigned queue);

/* vdrv_buf.c */
/*
 * The average after one more packet, in fixed point. The arithmetic shift rounds down: from above it
 * comes to the exact value, from below to less than 1/1024 short of it, and whoever reads rounds up
 * [T8].
 */
static inline uint64_t vdrv_avg(uint64_t avg, uint32_t len)
{
	int64_t x = (int64_t)len << VDRV_AVG_BITS, old = (int64_t)avg;

	return avg ? (uint64_t)(old + ((x - old) >> VDRV_AVG_WEIGHT)) : (uint64_t)x;
}
uint32_t vdrv_buf_len(const struct vdrv *); /* of the next mergeable or small buffer */
int vdrv_buf_setup(struct vdrv *, struct err *);
void vdrv_refill(struct vdrv *);       /* fill the ring, publish, kick */
void vdrv_refill_check(struct vdrv *); /* if it is worth while, or needed */
void vdrv_buf_retry(struct loop_timer *);
void vdrv_buf_drop(struct vdrv *, const struct vdrv_used *); /* put its references down */
/* The same, where it was copied: the buffer may be posted again. */
static inline void vdrv_buf_again(struct vdrv *v, const struct vdrv_used *u)
{
	struct vdrv_rx *rx = &v->rx;

	if (likely(u->chunk && rx->spare_put - rx->spare_get < v->vq[VDRV_RX].size))
		rx->spare[rx->spare_put++ & v->vq[VDRV_RX].mask] =
			(struct vdrv_spare){u->data, u->chunk, u->cap};
	else
		vdrv_buf_drop(v, u);
}
void vdrv_buf_detach(struct vdrv *); /* the same for all that is posted */

/* vdrv_rx.c: see struct port_ops */
unsigned vdrv_pull(struct portq *, struct burst *, unsigned max);
void vdrv_settle(struct portq *, const struct burst *, unsigned n);
bool vdrv_arm(struct portq *);
void vdrv_rx_drop(struct vdrv *); /* packets that went back */

/* vdrv_tx.c: see struct port_ops */
unsigned vdrv_push(struct portq *, const struct frame *, unsigned n);
void vdrv_publish(struct portq *);
bool vdrv_arm_room(struct portq *, uint32_t need);
void vdrv_tx_reclaim(struct vdrv *);
void vdrv_tx_called(struct vdrv *);
void vdrv_tx_done(struct loop_task *);
void vdrv_tx_detach(struct vdrv *);

#endif
