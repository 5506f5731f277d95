/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port: where something plugs into the network. `struct port` is identity, control and statistics;
 * `struct portq` is one queue of it with one owner thread: pull, settle, push, flush, arm. Today a
 * port has one queue.
 *
 * A port knows no switch. It tells whoever attached it (the fabric, or a test) by port_events that
 * frames have come, that there is room, that its link changed; it is then pulled, pushed and armed.
 * A concrete port (vdev, tap, pair) embeds `struct port` and fills `ops`.
 *
 * Rules of the call:
 *   - pull lends; until settle of the same burst nothing else is called on this queue but push, flush;
 *   - settle(q, b, n): the first n frames are finished, the rest goes back and will be pulled again;
 *   - pull makes min(length, FRAME_HEAD) bytes of each frame private;
 *   - push takes from the front and returns how many; it never takes half a frame;
 *   - flush publishes what push staged and notifies the driver at most once;
 *   - a port without link lends nothing and takes nothing.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/loop.h"
#include "frame/frame.h"
#include "frame/offload.h"
#include "port/pcap.h"

struct port;
struct portq;

/* What a port's rings have counted, and the first chain on loan: for a trace, which looks at differences. */
struct port_ring_counts {
	uint64_t popped, desc, indirect; /* chains; their descriptors; those with a table */
	uint64_t notify,
		suppressed; /* publications after which the driver wanted a notification, or none */
};
struct port_rings {
	struct port_ring_counts in, out; /* of the queue that is pulled, and that is pushed to */
	unsigned pieces;                 /* of the first chain on loan; 0: none */
	uint32_t bytes;
	unsigned hdr_len; /* of the virtio-net header before each frame */
	bool merged;      /* MRG_RXBUF: the header says how many buffers a frame has */
};

struct port_ops {
	const char *kind; /* "vhost-user", "tap", "pair" */
	unsigned (*pull)(struct portq *, struct burst *, unsigned max);
	void (*settle)(struct portq *, const struct burst *, unsigned n);
	unsigned (*push)(struct portq *, const struct frame *, unsigned n);
	void (*flush)(struct portq *);
	/* Wake me (events->ready) for frames; true: they came meanwhile, nothing is armed. */
	bool (*arm)(struct portq *);
	/* Wake me (events->room) when `need` bytes, or a quarter of the ring, would be taken; true: now.
	 * Stands until it is told, whatever is pushed meanwhile: another sender's frames may fit. */
	bool (*arm_room)(struct portq *, uint32_t need);
	/* Stop: link down, kernel objects closed, no event from now on. Called once, before memory goes. */
	void (*close)(struct port *);
	/* NULL: it has no rings, or what is pulled did not come from them just now. */
	void (*rings)(const struct portq *, struct port_rings *);
};

/* What a port tells; called from the loop, never from inside a port_ops call. */
struct port_events {
	void (*ready)(void *ctx, struct portq *); /* frames may be there */
	void (*room)(void *ctx, struct portq *);  /* what arm_room waited for */
	void (*link)(void *ctx, struct port *);   /* port->link changed */
};

/*
 * Who counts what: port_settle() counts frames, bytes and gso of `in`, port_push() those of `out`; the
 * concrete port counts bufs, notify and kicks of both.
 */
struct port_counters {
	uint64_t frames, bytes;
	uint64_t gso;    /* super-packets among the frames */
	uint64_t bufs;   /* ring buffers (chains) used: out: buffers per packet */
	uint64_t notify; /* system calls to notify the driver */
	uint64_t kicks;  /* notifications received */
};

struct portq {
	struct port *port;
	struct port_counters in;         /* from this port into the network */
	struct port_counters out;        /* from the network to this port */
	uint64_t fit_csum, fit_segments; /* done in software on the way out */
	uint64_t drop_in[DROP_MAX];      /* frames lent by this port that went nowhere */
	uint64_t drop_out[DROP_MAX];     /* copies for this port that it did not get */
	enum drop last_drop_in, last_drop_out;
	uint64_t lost_out, lost_out_bytes; /* all of drop_out */

	/* the fabric's */
	struct fabric_q {
		TAILQ_ENTRY(portq) ready_entry, wait_entry, flush_entry;
		bool ready, waiting, touched;
		nsec_t busy_until; /* polled without arming until then */
		unsigned pull_max; /* bound of the next pull, 0: a whole burst */

		/* as a sender */
		struct portq *wait_for; /* had no room; kept until the frame is gone */
		uint32_t resume;        /* segments of the first frame already delivered there */
		uint64_t head_print; /* which frame that is: the sender may have changed its mind */
		nsec_t wait_since;   /* start of this pause */
		nsec_t wait_poll;    /* until then room is looked for without arming */
		nsec_t wait_until;   /* when the frame at the head is given up */
		uint64_t wait_ticket; /* who waits longest is served first */
		unsigned retries;     /* "there is room" without any coming */
		bool wait_alone;      /* this pause keeps nobody else */
		bool wait_owes;  /* such pauses are not all made good by what was taken since */
		int16_t only;    /* where the last frame went that was not flooded; -1: none */
		nsec_t other_at; /* when one went somewhere else last */
		struct loop_timer wait_timer;
		struct pause {
			nsec_t at;   /* when the budget was last filled up */
			nsec_t left; /* of the pause budget [ns]; below zero: a late timer's debt */
			nsec_t spare; /* for pauses that keep nobody else */
		} * pause;            /* [PORTS_MAX], by the receiver's index */

		/* as a receiver */
		TAILQ_HEAD(portq_waiters, portq) waiters; /* senders that wait for this one */
		uint32_t room_need;                       /* least bytes that one of them needs */
	} fab;
};

struct port {
	const struct port_ops *ops;
	char name[NAME_LEN];
	unsigned index;   /* 0 .. PORTS_MAX - 1, given by the fabric */
	uint8_t mac[6];   /* offered to the driver; zero if the port has none to offer */
	bool link;        /* the driver is ready */
	unsigned accepts; /* ACCEPT_*: what its driver takes unfitted */
	uint32_t mtu;     /* largest IP datagram for its driver, 0 = no limit known */
	struct portq q;
	const struct port_events *events;
	void *events_ctx;
	struct loop *loop;
	struct log *log;
	struct pcap *pcap; /* capture, NULL: none; and what takes the frames: pcap_frame */
	void (*capture)(struct pcap *, enum pcap_dir, const struct frame *, enum drop);
	TAILQ_ENTRY(port) entry;
};

/* Zero, name, and wire the queue to its port. `ops`, `loop`, `log` stay the caller's. */
void port_init(
	struct port *, const struct port_ops *, const char *name, struct loop *, struct log *);
/* An address made from the network's and the port's name: locally administered, unicast, stable. */
void port_mac_of_name(const char *net, const char *name, uint8_t mac[6]);
/* 1 .. NAME_LEN - 1 of [A-Za-z0-9._-], not starting with '-' or '.'; else -EINVAL with the reason. */
int port_name_check(const char *name, struct err *);

/* Set link, tell the owner if it changed. */
void port_set_link(struct port *, bool up);

static inline void port_ready(struct portq *q)
{
	if (q->port->events)
		q->port->events->ready(q->port->events_ctx, q);
}

static inline void port_room(struct portq *q)
{
	if (q->port->events)
		q->port->events->room(q->port->events_ctx, q);
}

/*
 * A copy that this port should have got and did not. A port whose push takes a frame and then finds
 * that it cannot deliver it (BUFFER_SMALL, IO) calls this once for it.
 */
void port_drop_out(struct portq *, const struct frame *, enum drop);
/*
 * A frame from this port that was never lent. One that is lent and refused is not counted here: its
 * lender, the check or the fabric sets f->drop, and port_settle() counts it once.
 */
void port_drop_in(struct portq *, const struct frame *, enum drop);

/*
 * Pull through the checks: a lent frame whose length or offload fields are wrong has f->drop set.
 * Returns b->n, also kept there. Nothing is counted yet: frames may go back.
 */
unsigned port_pull(struct portq *, struct burst *, unsigned max);

/*
 * Settle, and count and capture the first `n` frames: they have come in, or were dropped for f->drop.
 */
void port_settle(struct portq *, struct burst *, unsigned n);

/*
 * Push a run of checked frames to one receiver, each fitted to it as needed: the one place where
 * fitting is called. Too big for its MTU: dropped and counted there, which counts as taken; so are all
 * if its link is down. Returns how many were taken whole from the front; if fewer than n, *resume is
 * how many segments of the first one not taken were delivered (0: none), to be handed in again with
 * it; at the return of n it is 0. `scratch` is the caller's, one per thread. Frames with f->drop set
 * are passed over (taken). The caller flushes.
 */
unsigned port_push(
	struct portq *, const struct frame *, unsigned n, uint32_t *resume, struct fit *scratch);

#endif
