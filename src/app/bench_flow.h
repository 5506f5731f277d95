/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow: both sides of a benchmark of flows over the sockets of a host. A TCP connection to
 * BENCH_PORT begins with a head of 32 bytes in network order:
 *
 *	0 magic  4 kind  8 request  12 response  16 bytes (64 bit, 0: until the other side ends)  24 -
 *
 * What follows is the pattern: BENCH_PATTERN random bytes over and over, each side from its beginning
 * and through the whole connection; whoever receives compares.
 *
 *	SINK    the client sends until it shuts down; the server answers with a report:
 *	        0 magic  4 pieces that were wrong  8 bytes (64 bit)  16 ns (64 bit)  24 -
 *	SOURCE  the server sends until the client shuts down, or `bytes`
 *	RR      again and again `request` bytes, then `response` bytes
 *	CRR     one such exchange, then the server closes
 *
 * A UDP datagram to BENCH_PORT has a head of 16 bytes, then the pattern from byte sequence * length on:
 *
 *	0 magic + 1: data, + 2: ask for a report, + 3: the report  4 flow  8 sequence (64 bit)
 *
 * A report is 0 magic  4 flow  8 datagrams  16 bytes  24 ns  32 wrong, of 64 bit from 8 on. For peers
 * without this, a server has echo (7) and discard (9), too, with both protocols. [RFC 862, 863]
 */
#ifndef APP_BENCH_FLOW_H
#define APP_BENCH_FLOW_H

#include <sys/queue.h>

#include "app/bench_hist.h"
#include "app/bench_host.h"
#include "wire/bytes.h"

#define BENCH_PORT     5199
#define BENCH_ECHO     7
#define BENCH_DISCARD  9
#define BENCH_PATTERN  65521 /* a prime: no size of a buffer divides it */
#define BENCH_MAGIC    0x57620100
#define BENCH_MESSAGE  (1u << 20) /* longest */
#define BENCH_SESSIONS 4096
#define FLOW_HEAD      32
#define FLOW_UDP_HEAD  16
#define FLOW_REPORT    40

enum flow_kind { FLOW_SINK = 1, FLOW_SOURCE, FLOW_RR, FLOW_CRR, FLOW_UDP, FLOW_UDP_RR };

struct flow_config {
	enum flow_kind kind;
	uint32_t message; /* bytes of a write or read, or of a datagram */
	uint32_t request, response;
	uint64_t bytes; /* of a session; 0: until it is told to stop */
	unsigned sessions, train;
	int sndbuf, rcvbuf;     /* 0: by itself */
	uint32_t zero;          /* SINK: send without a copy, in pieces of so many bytes; 0: copy */
	struct udp_addr server; /* of clients */
};

enum flow_next { FLOW_WAIT, FLOW_MORE, FLOW_OVER };

struct flow {
	TAILQ_ENTRY(flow) all, active;
	struct flow_side *side;
	enum flow_next (*step)(struct flow *, nsec_t now);
	int s; /* -1: none */
	bool queued, client, connected, ending;
	enum flow_kind kind;
	uint32_t request, response;
	uint64_t limit;
	uint8_t head[FLOW_REPORT]; /* to send, or coming in */
	unsigned head_at;
	uint64_t sent, got;         /* of the pattern */
	uint64_t asking, answering; /* of this exchange, still to go */
	nsec_t asked;
	uint32_t id;
};
TAILQ_HEAD(flow_list, flow);

/* Of UDP, at the receiver, by flow. */
struct flow_count {
	uint32_t id;
	uint64_t packets, bytes, wrong;
	nsec_t first, last;
};
#define FLOW_COUNTS 64

struct flow_side {
	struct bench_host *host;
	struct flow_config c;
	struct flow_list all, active;
	unsigned open; /* clients' sessions that are not over */
	unsigned connected;
	bool stop;
	uint8_t *pattern, *room;
	struct chunk *loan; /* zero: the pattern where the driver sends from */
	/* what came in, or what the other side reported */
	uint64_t bytes, wrong, packets;
	nsec_t first, last;
	uint64_t sent, sent_packets, exchanges, failed;
	const char *problem; /* the last failure */
	struct bench_hist hist;
	struct flow_count count[FLOW_COUNTS];
};

/* The sockets of a server: BENCH_PORT, echo, discard; of the configuration the buffers. 0 or -errno; after 0 flow_side_fini. Big. */
int flow_server_init(
	struct flow_side *, struct bench_host *, const struct flow_config *, struct err *);
/* Sessions to a server; they connect at once. */
int flow_client_init(
	struct flow_side *, struct bench_host *, const struct flow_config *, struct err *);
void flow_side_fini(struct flow_side *); /* before the host's */
/* All flows have their turn: time has passed, or `stop` was set. */
void flow_side_wake(struct flow_side *);

/* ---- for the parts of it ---- */

/* bench_flow_zero.c: 0 or -ENOMEM; up to `want` bytes: as sock_send. */
int flow_zero_init(struct flow_side *);
void flow_zero_fini(struct flow_side *);
ssize_t flow_zero_send(struct flow *, uint64_t want, nsec_t now);

static inline void flow_put64(uint8_t *p, uint64_t v)
{
	put_be32(p, (uint32_t)(v >> 32));
	put_be32(p + 4, (uint32_t)v);
}

static inline uint64_t flow_get64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

struct flow *flow_new(struct flow_side *, int s, enum flow_next (*)(struct flow *, nsec_t));
void flow_activate(struct flow *);
enum flow_next flow_fail(struct flow *, int err); /* counted; over */
int flow_open_udp(
	struct flow_side *, uint16_t port, enum flow_next (*)(struct flow *, nsec_t), struct err *);
enum flow_next flow_udp_serve(struct flow *, nsec_t);
enum flow_next flow_udp_echo(struct flow *, nsec_t);
enum flow_next flow_udp_discard(struct flow *, nsec_t);
enum flow_next flow_udp_send(struct flow *, nsec_t);
enum flow_next flow_udp_ask(struct flow *, nsec_t);

#endif
