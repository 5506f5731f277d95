/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_host: the TCP under test with a program on top: descriptors, calls by name, and segments in
 * and out in wire numbers. Time is what the caller says; nothing here waits. It knows no script.
 */
#ifndef TESTS_DRILL_HOST_H
#define TESTS_DRILL_HOST_H

#include "drill_script.h"
#include "net/tcp.h"

#define HOST_FDS 32

enum fd_kind { FD_NONE, FD_NEW, FD_LISTEN, FD_CONN };

struct host_fd {
	enum fd_kind kind;
	int flags; /* O_* */
	uint16_t port;
	struct tcp *tcp;
	struct tcp_listener *listener;
	int linger;             /* s; -1: off */
	uint64_t written, read; /* bytes: what the pattern is made of */
};

/* A segment that the host sent, with its own numbers. */
struct host_out {
	struct tcp_tuple tuple;
	struct seg seg;
	uint16_t gso_size; /* 0, or what a super-segment is to be cut by */
	uint8_t *data;     /* [seg.len] */
	uint32_t flow;     /* IPv6 flow label */
	int ip_id, df;     /* of IPv4; -1: no frame was made */
};

struct host {
	struct wire *wire; /* a whole host; NULL: the engine alone, with the memory below */
	struct chunk_pool chunks;
	struct pkt_pool pool;
	struct pkt_pool *pkts; /* the one in use */
	struct tcp_host *tcp;
	struct tcp_conf conf;
	struct host_fd fd[HOST_FDS];
	struct ip_addr laddr, raddr;
	uint16_t connects; /* so many so far: each goes to a port of its own */
	nsec_t now;
	const char *broken; /* an invariant of the engine that does not hold */
	uint8_t *buf;       /* of calls; HOST_BUF bytes */
};

#define HOST_BUF       (1u << 20)
#define HOST_PORT      8080  /* of whoever listens */
#define HOST_PEER_PORT 40000 /* of peers that connect */

enum host_via {
	VIA_ENGINE, /* segments are handed to the engine */
	VIA_STACK,  /* frames to a host */
	VIA_RINGS,  /* frames to a device, whose driver's host it is */
};

/* `conf` as far as the script says; the rest is filled in. Time begins at `now`. */
int host_init(struct host *, const struct tcp_conf *, bool ip6, enum host_via, uint64_t seed,
	nsec_t now, struct err *);
void host_fini(struct host *);
/* "name=value" into a configuration; false: no such knob. */
bool host_knob(struct tcp_conf *, const char *text);

/* `s` in wire numbers; the payload is the pattern at `pos` of the peer's stream. */
void host_in(
	struct host *, const struct tcp_tuple *, const struct seg *s, uint32_t pos, nsec_t now);
void host_icmp(
	struct host *, const struct tcp_tuple *, const struct quote *, uint32_t seq, nsec_t now);
/* The next segment to go out, or false. `out->data` is the caller's to free. */
bool host_out(struct host *, struct host_out *out, nsec_t now);

nsec_t host_deadline(const struct host *); /* NSEC_NEVER: none; may be early */
void host_timer(struct host *, nsec_t now);
/* Is the payload what a program wrote at `pos` of its stream? */
bool host_payload_right(const struct host_out *, uint32_t pos);

/*
 * A call of the program: its value or -errno in *result; `detail` says what else is not as expected
 * (an option's value, bytes that were received), empty if all is. False: no such call.
 */
bool host_call(struct host *, const struct call *, int64_t *result, char detail[120], nsec_t now);
/* A value of tcp_stat of the descriptor's connection, or of the host's counters. False: none. */
bool host_value(struct host *, int fd, const char *name, int64_t *value);

/* The byte at `pos` of either stream. */
static inline uint8_t host_byte(uint64_t pos)
{
	return (uint8_t)(pos * 7 + (pos >> 8) + 1);
}

#endif
