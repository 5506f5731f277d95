/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp: the TCP engine of one host. Functions of (state, segment, now): no clock, no sockets, no
 * Ethernet, no I/O; the secret and the seed are given. [RFC 9293, 5961, 7323, 2018, 8985, 9438]
 *
 *	frames -> stack -> tcp_host_in()          tcp_connect/listen/accept/send/recv/... <- sockets
 *	stack <- tcp_host_out() (until false)     tcp_host_event() -> sockets
 *	                 tcp_host_timer() when tcp_host_deadline() has come
 *
 * After every input burst, user call or timer run: take tcp_host_out() until it returns false, and
 * tcp_host_event() until NULL. Memory is taken once, at tcp_host_new; connections, segments and
 * receive buffers come from capped pools. Addresses are as in net/addr.h; all integers host order.
 */
#ifndef NET_TCP_H
#define NET_TCP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/err.h"
#include "frame/pkt.h"
#include "net/addr.h"

struct tcp_host;     /* tables, pools, counters */
struct tcp;          /* a connection; the user's from tcp_new/tcp_accept to tcp_close/tcp_abort */
struct tcp_listener; /* the user's from tcp_listen to tcp_unlisten */

#define TCP_TIMEWAITS 4096 /* kept at a time, if nothing else is said; the oldest ends early */

struct tcp_conf {
	struct pkt_pool *pool; /* received frames are kept in it, send bytes go to its chunks */
	uint8_t secret[32];    /* ISN, cookies, hash: from rand_secret(), or fixed in tests */
	uint64_t seed;         /* ports, jitter */
	uint32_t conns, txsegs, rxbufs, syns, timewaits; /* caps of the pools; 0: defaults */
	uint32_t mtu; /* of the port, bytes of an IP datagram; routes may lower it: tcp_host_mtu */
	uint32_t gso_max; /* largest IP datagram as one super-segment, <= 65535; 0: 65535 */
	bool ecn;         /* ask for ECN on connect; on accept it is always granted if asked for */
	bool no_sack, no_ts, no_ws;      /* do not offer */
	uint32_t rcvbuf, sndbuf;         /* defaults of a connection, bytes; 0: 1 MiB, 2 MiB */
	uint32_t rcvbuf_max, sndbuf_max; /* automatic growth ends here; 0: 16 MiB, 4 MiB */
	uint8_t wscale; /* offered shift; 0xff: by rcvbuf_max. A fixed rcvbuf window stays below */
	bool fixed_rcvbuf; /* no auto-tuning, and the window is the free buffer in payload bytes */
	bool cubic;        /* else NewReno */
	bool push_at_mss;  /* the rule before 2008 (S4) */
	uint32_t frag_chunk; /* 4096 or 32768: where send bytes are copied to; 0: 32768 */
	bool no_autocork, no_autosize, no_tso;
	bool no_pacing, no_hystart, no_frto;
	bool no_tsq;   /* no limit of what lies below, in the driver (before 2012) */
	bool win_2013; /* receive window model: half of the free buffer is payload */
	bool always_cookies, no_cookies; /* default: cookies when the SYN queue is full */
	nsec_t delack;                   /* 0: 40 ms */
	/* every second segment, else after delack: no quick phase, no RTT; every one out of order */
	bool plain_delack;
	bool drop_synfin;     /* SYN with FIN is dropped in every state, else it is a SYN */
	uint32_t ecn_retries; /* so many SYNs are repeated with the request for ECN */
	nsec_t rto_min;       /* 0: 200 ms */
	nsec_t timewait;      /* 0: 60 s */
	nsec_t finwait2;      /* 0: 60 s, of connections the user closed */
	uint32_t syn_retries; /* 0: 5 (listener), 6 (connect) */
	uint32_t retries;     /* of data; 0: 15 */
};

/* Flags as on the wire. */
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20
#define TCP_ECE 0x40
#define TCP_CWR 0x80

struct tcp_tuple {
	struct ip_addr laddr, raddr; /* local: ours, whichever direction the segment goes */
	uint16_t lport, rport;
};

/* A segment that came in. Checksum, lengths and addresses were checked by the caller. */
struct tcp_seg {
	struct tcp_tuple tuple;
	uint32_t seq, ack;
	uint16_t wnd, urg; /* as on the wire */
	uint8_t flags;
	uint8_t ecn;               /* two bits of the IP header */
	uint8_t opt_len;           /* bytes after the fixed header, <= 40 */
	const uint8_t *opt;        /* valid during the call */
	const struct frame *frame; /* may be NULL if len is 0; kept by frame_keep if wanted */
	uint32_t off, len;         /* payload in the frame */
	uint16_t gso_size; /* of a super-segment (from the port or by GRO); 0: one segment */
};

/* A segment to send: the caller puts headers before it. */
struct tcp_out {
	struct tcp_tuple tuple;
	uint32_t seq, ack;
	uint16_t wnd;       /* as on the wire */
	uint8_t flags, ecn; /* ecn: two bits for the IP header */
	uint8_t opt_len;    /* multiple of 4 */
	uint8_t opt[40];
	uint32_t flow; /* IPv6 flow label, 20 bits, stable per connection */
	uint32_t len;  /* payload bytes */
	uint16_t
		gso_size; /* payload of one wire segment; 0: one segment. len is not above 64 of them */
	unsigned nfrag;
	struct pkt_frag
		frag[PKT_FRAGS];     /* each holds a reference, the caller's: pkt_add takes it */
	struct pkt_account *account; /* pkt_set_account() the packet with it, if not NULL */
};

struct tcp_host *tcp_host_new(const struct tcp_conf *, struct err *); /* NULL: says why */
void tcp_host_free(
	struct tcp_host *); /* frees all; packets that have an account are gone already */

/* Frees nothing of `seg`. O(1) but for SACK (4 blocks) and out-of-order queues (log). */
void tcp_host_in(struct tcp_host *, const struct tcp_seg *, nsec_t now);
/* The next segment; false: nothing to send now. What the caller cannot send counts as lost. */
bool tcp_host_out(struct tcp_host *, struct tcp_out *, nsec_t now);
void tcp_host_mtu(struct tcp_host *, uint32_t mtu); /* the port's has changed */
nsec_t tcp_host_deadline(const struct tcp_host *);  /* NSEC_NEVER: none. May be early, never late */
void tcp_host_timer(struct tcp_host *, nsec_t now);

/*
 * ICMP about a segment we sent: its tuple (local: ours) and sequence number, which must be in flight,
 * else it is ignored [RFC 5927]. HARD aborts in SYN-SENT only [RFC 5461]; `err` is a positive errno.
 */
enum tcp_icmp { TCP_ICMP_SOFT, TCP_ICMP_HARD, TCP_ICMP_TOO_BIG };
void tcp_host_icmp(struct tcp_host *, const struct tcp_tuple *, uint32_t seq, enum tcp_icmp,
	int err, uint32_t mtu, nsec_t now);

/* ---- user calls: 0 or a value, or -errno ---- */

struct tcp *tcp_new(struct tcp_host *); /* NULL: no connection to be had */
/*
 * laddr is chosen by the caller (routing); lport 0: chosen here [RFC 6056]. mtu 0: the host's.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EISCONN. The result comes as an event: WRITABLE, or ERROR.
 */
int tcp_connect(struct tcp *, const struct tcp_tuple *, uint32_t mtu, nsec_t now);
/* addr any: on every address of both versions. -EADDRINUSE, -ENOMEM. */
int tcp_listen(struct tcp_host *, const struct ip_addr *addr, uint16_t port, unsigned backlog,
	void *user, struct tcp_listener **);
void tcp_unlisten(struct tcp_listener *, nsec_t now); /* resets what was not accepted */
struct tcp *tcp_accept(struct tcp_listener *);        /* NULL: none waiting */
bool tcp_listener_ready(const struct tcp_listener *);
void *tcp_listener_user(const struct tcp_listener *);

#define TCP_MORE 1 /* more comes: do not send the last, partial segment yet */
#define TCP_PEEK 2
/* Bytes taken (copied once). -EAGAIN, -EPIPE, -ENOTCONN, or the connection's error. */
ssize_t tcp_send(struct tcp *, const struct iovec *, unsigned niov, int flags, nsec_t now);
/*
 * Zero-copy: all bytes of the fragments (references move here if it succeeds) or none: -EAGAIN. They
 * stay unchanged until tcp_sent_acked() has passed them.
 */
ssize_t tcp_send_frags(struct tcp *, const struct pkt_frag *, unsigned n, int flags, nsec_t now);
uint64_t tcp_sent_total(const struct tcp *); /* bytes taken since the beginning */
uint64_t tcp_sent_acked(const struct tcp *); /* of those, acknowledged and in nobody's hands */
/* Bytes copied; 0: the peer has finished. -EAGAIN, -ENOTCONN, or the error. */
ssize_t tcp_recv(struct tcp *, const struct iovec *, unsigned niov, int flags, nsec_t now);
/*
 * Without a copy: where the next bytes lie, as many as fit in iov[0 .. *niov); how many, and *niov is how
 * many pieces, or as tcp_recv. They are lent, charged to the receive buffer and not the window's, until
 * tcp_recv_done() passes them, tcp_recv() reads them, or the handle is gone. The memory may be shared with
 * a device: what matters is copied before it is believed.
 */
ssize_t tcp_recv_lend(struct tcp *, struct iovec *, unsigned *niov, nsec_t now);
/* The first `n` bytes are given back: the window opens. -EINVAL: there are not so many. */
int tcp_recv_done(struct tcp *, size_t n, nsec_t now);
int tcp_shutdown_wr(struct tcp *, nsec_t now); /* -ENOTCONN */
/* The handle is gone. Unread data: RST [RFC 2525 2.17]. linger 0 s: tcp_abort. */
void tcp_close(struct tcp *, nsec_t now);
void tcp_abort(struct tcp *, nsec_t now); /* RST; the handle is gone */
int tcp_error(struct tcp *);              /* positive errno or 0, cleared by the call (SO_ERROR) */
void *tcp_user(const struct tcp *);
void tcp_set_user(struct tcp *, void *);
void tcp_tuple_of(const struct tcp *, struct tcp_tuple *);

enum tcp_option {
	TCPO_NODELAY, /* 0, 1 */
	TCPO_CORK,    /* 0, 1 */
	TCPO_SNDBUF,  /* bytes; ends automatic growth */
	TCPO_RCVBUF,  /* bytes; ends automatic growth; before connect/listen it bounds the shift */
	TCPO_KEEPALIVE, /* 0, 1 */
	TCPO_KEEPIDLE,  /* s */
	TCPO_KEEPINTVL, /* s */
	TCPO_KEEPCNT,
	TCPO_USER_TIMEOUT, /* ms, 0: by retries */
	TCPO_QUICKACK,     /* 0, 1: until changed */
	TCPO_MAXSEG,       /* before connect */
};
int tcp_set(struct tcp *, enum tcp_option, uint32_t value, nsec_t now); /* -EINVAL */

#define TCP_EV_READABLE  1 /* data, or the peer has finished */
#define TCP_EV_WRITABLE  2 /* connected, and a third of the send buffer is free */
#define TCP_EV_ERROR     4 /* tcp_error() tells */
#define TCP_EV_RDHUP     8
#define TCP_EV_HUP       16 /* nothing more in either direction */
#define TCP_EV_CONNECTED 32
unsigned tcp_ready(const struct tcp *); /* the level of now: TCP_EV_* */

/* What changed: a connection of the user's with new level bits, or a listener that became ready. */
struct tcp_event {
	struct tcp *tcp;
	struct tcp_listener *listener;
	unsigned ready; /* of `tcp` */
};
bool tcp_host_event(struct tcp_host *, struct tcp_event *);

#include "net/tcp_info.h"

#endif
