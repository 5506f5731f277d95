/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace: the life of the next frames of one port, in numbers: chain and virtio header, fitting, copies,
 * buffers and notifications of each receiver, drops, and the time in each step.
 *
 * While it is on it puts its operations around those of every port of the network; off, nothing in the
 * datapath knows of it. The traced port lends one frame at a time, so what the counters of the others
 * gain between its pull and its settle is that frame's. A frame that found no room and went back is one
 * frame still: what its attempts cost is added up.
 *
 * Ports that come while it is on are not looked at. One trace at a time in a network: two would take
 * each other's operations for the port's own.
 */
#ifndef PORT_TRACE_H
#define PORT_TRACE_H

#include "port/port.h"

#define TRACE_MAX 1000 /* frames */
#define TRACE_TO  8    /* receivers of a frame that are remembered each; the rest is counted */

enum trace_step {
	TRACE_PULL,   /* read the ring, copy header and head */
	TRACE_DECIDE, /* look-up, fitting: all that is none of the others */
	TRACE_PUSH,   /* copy into the receivers' buffers */
	TRACE_FLUSH,  /* publish there, notify */
	TRACE_SETTLE, /* give the buffer back, notify its sender */
	TRACE_STEPS
};

const char *trace_step_name(enum trace_step);

/* What one receiver had of a frame. */
struct trace_to {
	char name[NAME_LEN];
	uint64_t frames, bytes;          /* after fitting */
	uint64_t bufs;                   /* ring buffers used */
	uint64_t fit_csum, fit_segments; /* done in software, for it does not take them */
	uint64_t drops;
	enum drop drop; /* why, the last one */
	bool rings, merged;
	uint64_t wanted, unwanted; /* publications: its driver wants a notification, or none */
	uint64_t notify;           /* notifications sent */
};

enum trace_where {
	TRACE_PORT,    /* the address was learned there */
	TRACE_GROUP,   /* group address: to all */
	TRACE_UNKNOWN, /* not learned: to all */
};

struct trace_frame {
	uint32_t len;
	uint8_t head[18]; /* addresses, type, and what a tag is */
	uint16_t head_len, pieces;
	struct offload off; /* as the sender has said it */
	enum drop drop;     /* of the frame as a whole */
	enum trace_where where;
	char where_port[NAME_LEN];
	/* its chain */
	bool rings;
	unsigned desc, indirect, chain_pieces, hdr_len;
	uint32_t chain_bytes;
	uint64_t wanted, unwanted, notify; /* as in struct trace_to, for the sender's driver */
	/* its fate */
	uint32_t before; /* of the first frame: segments delivered before the trace began */
	unsigned back;   /* how often it went back for want of room */
	unsigned n_to;   /* receivers, of which TRACE_TO are in to[] */
	struct trace_to to[TRACE_TO];
	nsec_t ns[TRACE_STEPS];
};

struct trace_config {
	struct port *port;
	unsigned count;        /* 1 .. TRACE_MAX */
	struct port *first;    /* of the network's list, `port` among them */
	nsec_t (*clock)(void); /* clock_now() */
	/* Where the network would send it: fills `where` and `where_port`. */
	void (*look_up)(void *look_up_ctx, const struct frame *, struct trace_frame *);
	void *look_up_ctx;
	/* From the loop, once: it has `count` frames. */
	void (*done)(void *ctx);
	void *ctx;
};

struct trace;

/* 0 or -errno. No port of the network may be traced already, and none may go before trace_free(). */
int trace_new(struct trace **, const struct trace_config *, struct err *);
void trace_free(struct trace *); /* NULL is fine; not from inside a port_ops call */
unsigned trace_count(const struct trace *);
const struct trace_frame *trace_frame(const struct trace *, unsigned i);

#endif
