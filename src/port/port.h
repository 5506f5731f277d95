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

struct port;
struct portq;
struct pcap;

struct port_ops {
	const char *kind; /* "vhost-user", "tap", "pair" */
	unsigned (*pull)(struct portq *, struct burst *, unsigned max);
	void (*settle)(struct portq *, const struct burst *, unsigned n);
	unsigned (*push)(struct portq *, const struct frame *, unsigned n);
	void (*flush)(struct portq *);
	/* Wake me (events->ready) for frames; true: they came meanwhile, nothing is armed. */
	bool (*arm)(struct portq *);
	/* Wake me (events->room) when `need` bytes, or a quarter of the ring, would be taken; true: now. */
	bool (*arm_room)(struct portq *, uint32_t need);
	/* Stop: link down, kernel objects closed, no event from now on. Called once, before memory goes. */
	void (*close)(struct port *);
};

/* What a port tells; called from the loop, never from inside a port_ops call. */
struct port_events {
	void (*ready)(void *ctx, struct portq *); /* frames may be there */
	void (*room)(void *ctx, struct portq *);  /* what arm_room waited for */
	void (*link)(void *ctx, struct port *);   /* port->link changed */
};

struct port_counters {
	uint64_t frames, bytes;
	uint64_t gso;      /* super-packets among the frames */
	uint64_t bufs;     /* ring buffers (chains) used: out: buffers per packet */
	uint64_t notify;   /* system calls to notify the driver */
	uint64_t kicks;    /* notifications received */
};

struct portq {
	struct port *port;
	struct port_counters in;  /* from this port into the network */
	struct port_counters out; /* from the network to this port */
	uint64_t fit_csum, fit_segments; /* done in software on the way out */
	uint64_t drop_in[DROP_MAX];  /* frames lent by this port that went nowhere */
	uint64_t drop_out[DROP_MAX]; /* copies for this port that it did not get */
	enum drop last_drop_in, last_drop_out;

	/* the fabric's */
	struct fabric_q {
		TAILQ_ENTRY(portq) ready_entry, wait_entry, flush_entry;
		bool ready, waiting, touched;
		nsec_t busy_until;      /* polled without arming until then */
		struct portq *wait_for; /* the receiver that had no room */
		uint32_t resume;        /* segments of the first frame already delivered there */
		nsec_t wait_since;
		struct loop_timer wait_timer;
		TAILQ_HEAD(, portq) waiters; /* senders that wait for this one */
		struct pause {
			nsec_t at;  /* when the budget was last filled up */
			nsec_t left;/* of the pause budget [ns] */
		} *pause;           /* [PORTS_MAX], by the receiver's index */
	} fab;
};

struct port {
	const struct port_ops *ops;
	char name[NAME_LEN];
	unsigned index;        /* 0 .. PORTS_MAX - 1, given by the fabric */
	uint8_t mac[6];        /* offered to the driver; zero if the port has none to offer */
	bool link;             /* the driver is ready */
	unsigned accepts;      /* ACCEPT_*: what its driver takes unfitted */
	uint32_t mtu;          /* largest IP datagram for its driver, 0 = no limit known */
	struct portq q;
	const struct port_events *events;
	void *events_ctx;
	struct loop *loop;
	struct log *log;
	struct pcap *pcap;     /* capture, NULL: none */
	TAILQ_ENTRY(port) entry;
};

/* Zero, name, and wire the queue to its port. `ops`, `loop`, `log` stay the caller's. */
void port_init(struct port *, const struct port_ops *, const char *name, struct loop *, struct log *);
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

/* Count a frame that this port lent and that went nowhere; or a copy that it should have got. */
void port_drop_in(struct portq *, const struct frame *, enum drop);
void port_drop_out(struct portq *, const struct frame *, enum drop);

/*
 * Pull through the checks: frames are counted, captured, and their offload fields checked; a refused
 * one has f->drop set and is already counted. Returns b->n, also kept there.
 */
unsigned port_pull(struct portq *, struct burst *, unsigned max);

/*
 * Push a run of checked frames to one receiver, each fitted to it as needed: the one place where
 * fitting is called. Too big for its MTU: dropped and counted there, which counts as taken. Returns
 * how many were taken whole from the front; if fewer than n, *resume is how many segments of the
 * first one not taken were delivered (0: none), to be handed in again with it. `scratch` is the
 * caller's, one per thread. frames with f->drop set are passed over (taken).
 */
unsigned port_push(struct portq *, const struct frame *, unsigned n, uint32_t *resume, struct fit *scratch);

#endif
