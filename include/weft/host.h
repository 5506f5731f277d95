/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_host: a host of its own in a plain process: addresses, TCP and UDP sockets over IPv4 and IPv6,
 * on a vhost-user socket, on a tap, or inside a network of this process. No root, no kernel sockets.
 *
 *	struct weft_host *h;
 *	struct weft_addr to;
 *	struct weft_event ev[64];
 *
 *	weft_host_open(&h, "virtio-user:/run/lab/a.sock", "ip=10.0.0.5/24,gateway=10.0.0.1", err);
 *	weft_addr_parse(&to, "10.0.0.9:80");
 *	s = weft_socket(h, WEFT_TCP);
 *	weft_connect(h, s, &to);
 *	for (;;) {
 *		weft_host_dispatch(h, 1);
 *		n = weft_host_events(h, ev, 64);
 *		for each: weft_send(), weft_recv(), weft_accept(), weft_close()
 *	}
 *
 * Sockets are small numbers, never block, and return what POSIX says as a negative errno: -EAGAIN,
 * -EINPROGRESS, -ECONNREFUSED, ... A host and its sockets belong to one thread at a time.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <sys/types.h>
#include <sys/uio.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_host;

/*
 * `port`: "virtio-user:PATH,..." or "tap:IFNAME,..." in the words of weft(1): the host is at this end
 * of it. `options`, any of these, joined by commas, or "":
 *	ip=ADDRESS/LENGTH   of either version, up to 8 times
 *	gateway=ADDRESS     of either version
 *	dhcp                ask for an IPv4 address
 *	noauto              no IPv6 addresses from router advertisements
 *	mac=MAC mtu=BYTES memory=BYTES
 *	conns=N             TCP connections at a time, at most 262144; else 1024
 * Without ip and dhcp the host has a link-local IPv6 address, and what routers advertise.
 */
WEFT_API int weft_host_open(struct weft_host **, const char *port, const char *options, char *err);
/*
 * A host inside a network of this process, as a port NAME of it: "NAME,ip=...". It has the network's
 * descriptor, and is dispatched with it. Close it before the network.
 */
WEFT_API int weft_host_attach(
	struct weft_host **, struct weft_net *, const char *name_and_options, char *err);
/* Resets open connections; its buffers (weft_buf_new) have been freed before. NULL is fine. */
WEFT_API void weft_host_close(struct weft_host *);

/* As those of a network (weft/weft.h). */
WEFT_API int weft_host_fd(const struct weft_host *);
WEFT_API int64_t weft_host_timeout_ns(const struct weft_host *);
WEFT_API int weft_host_dispatch(struct weft_host *, int wait);

/* An address with a port; IPv4 addresses as ::ffff:a.b.c.d. */
struct weft_addr {
	uint8_t ip[16];
	uint16_t port;
};

#define WEFT_ADDR_TEXT 56
/* "10.0.0.1:80", "[fd00::1]:80", ":80" (any address). 0 or -EINVAL. */
WEFT_API int weft_addr_parse(struct weft_addr *, const char *text);
WEFT_API void weft_addr_text(const struct weft_addr *, char text[WEFT_ADDR_TEXT]);
/* The host's usable address of version 4 or 6, other than link-local; -EADDRNOTAVAIL: none yet. */
WEFT_API int weft_host_addr(const struct weft_host *, int version, struct weft_addr *);

#define WEFT_TCP 1
#define WEFT_UDP 2

#define WEFT_IN      1  /* data, the peer's end, or a connection to accept */
#define WEFT_OUT     4  /* room, or connected */
#define WEFT_ERR_BIT 8  /* WEFT_SO_ERROR tells */
#define WEFT_HUP     16 /* nothing more, either way */

#define WEFT_MORE 1 /* more comes at once: hold a short segment */
#define WEFT_PEEK 2

WEFT_API int weft_socket(struct weft_host *, int kind);
WEFT_API int weft_bind(struct weft_host *, int s, const struct weft_addr *);
/* TCP: -EINPROGRESS, then WEFT_OUT or WEFT_ERR_BIT. UDP: at once. */
WEFT_API int weft_connect(struct weft_host *, int s, const struct weft_addr *);
WEFT_API int weft_listen(struct weft_host *, int s, int backlog);
WEFT_API int weft_accept(struct weft_host *, int s, struct weft_addr *peer);
WEFT_API ssize_t weft_send(struct weft_host *, int s, const void *, size_t len, int flags);
WEFT_API ssize_t weft_recv(struct weft_host *, int s, void *, size_t len, int flags);
WEFT_API ssize_t weft_sendv(struct weft_host *, int s, const struct iovec *, int niov, int flags);
WEFT_API ssize_t weft_recvv(struct weft_host *, int s, const struct iovec *, int niov, int flags);
/* Datagrams. `size` not 0: many at once, each of this size, the last may be shorter. */
WEFT_API ssize_t weft_sendto(struct weft_host *, int s, const struct iovec *, int niov,
	const struct weft_addr *to, uint16_t size);
/* *size: as above, with WEFT_SO_GRO; else 0. */
WEFT_API ssize_t weft_recvfrom(struct weft_host *, int s, const struct iovec *, int niov,
	struct weft_addr *from, uint16_t *size);
WEFT_API int weft_shutdown(struct weft_host *, int s); /* sending is over */
WEFT_API int weft_close(struct weft_host *, int s);
WEFT_API int weft_names(struct weft_host *, int s, struct weft_addr *local, struct weft_addr *peer);

enum weft_option {
	WEFT_SO_ERROR, /* get: positive errno, cleared by asking */
	WEFT_SO_SNDBUF,
	WEFT_SO_RCVBUF,
	WEFT_SO_REUSE,
	WEFT_SO_LINGER, /* -1: off; 0: close resets */
	WEFT_SO_NODELAY,
	WEFT_SO_CORK,
	WEFT_SO_KEEPALIVE,
	WEFT_SO_KEEPIDLE, /* s */
	WEFT_SO_KEEPINTVL,
	WEFT_SO_KEEPCNT,
	WEFT_SO_USER_TIMEOUT, /* ms */
	WEFT_SO_QUICKACK,
	WEFT_SO_MAXSEG,
	WEFT_SO_GRO, /* UDP: receive trains */
	WEFT_SO_DF,  /* UDP: never fragment */
	WEFT_SO_TOS,
	WEFT_SO_HOPS,
};
WEFT_API int weft_setopt(struct weft_host *, int s, enum weft_option, int value);
WEFT_API int weft_getopt(struct weft_host *, int s, enum weft_option, int *value);

/* Sockets whose ready bits grew since they were told last; how many. */
struct weft_event {
	int s;
	unsigned ready; /* WEFT_IN ... as of now */
	void *user;
};
WEFT_API int weft_host_events(struct weft_host *, struct weft_event *, int max);
WEFT_API int weft_ready(struct weft_host *, int s); /* as of now, or -EBADF */
WEFT_API int weft_set_user(struct weft_host *, int s, void *user);

/*
 * Sending without a copy: memory that the network can read, 1 to 65536 bytes. It may be sent in parts
 * and several times; what was sent must not change until weft_acked() has reached weft_sent() of then.
 */
WEFT_API void *weft_buf_new(struct weft_host *, uint32_t len); /* NULL: no memory now */
WEFT_API void weft_buf_free(struct weft_host *, void *);       /* may be in flight still */
WEFT_API ssize_t weft_send_buf(struct weft_host *, int s, void *bytes, uint32_t len, int flags);
WEFT_API uint64_t weft_sent(struct weft_host *, int s);  /* bytes taken so far */
WEFT_API uint64_t weft_acked(struct weft_host *, int s); /* and of those acknowledged */

/*
 * Receiving without a copy: where the next bytes lie, in at most *niov pieces; returns the bytes, sets
 * *niov to the pieces; 0 and errors as weft_recv. They are lent until weft_recv_done() passes them, in
 * order, or weft_recv() or weft_close() is called; they fill the receive buffer until then, by the size of
 * the buffers they came in. The network can still write to them: copy, then check, then use.
 */
WEFT_API ssize_t weft_recv_lend(struct weft_host *, int s, struct iovec *, int *niov);
WEFT_API int weft_recv_done(
	struct weft_host *, int s, size_t n); /* -EINVAL: so many are not there */

/* Of a TCP socket, in Linux's words; times in microseconds. */
struct weft_tcp_info {
	uint8_t tcpi_state, tcpi_ca_state, tcpi_snd_wscale, tcpi_rcv_wscale;
	uint8_t tcpi_sack, tcpi_timestamps, tcpi_ecn;
	uint32_t tcpi_rto, tcpi_rtt, tcpi_rttvar, tcpi_min_rtt;
	uint32_t tcpi_snd_mss, tcpi_rcv_mss, tcpi_advmss, tcpi_pmtu;
	uint32_t tcpi_snd_cwnd, tcpi_snd_ssthresh; /* bytes */
	uint32_t tcpi_snd_wnd, tcpi_rcv_wnd, tcpi_unacked, tcpi_notsent_bytes;
	uint64_t tcpi_pacing_rate, tcpi_bytes_sent, tcpi_bytes_acked, tcpi_bytes_received,
		tcpi_bytes_retrans, tcpi_segs_in, tcpi_segs_out, tcpi_total_retrans;
};
WEFT_API int weft_tcp_info(struct weft_host *, int s, struct weft_tcp_info *);
/* Counters of the host and its TCP as JSON; free it with free(). */
WEFT_API char *weft_host_show(struct weft_host *);

#ifdef __cplusplus
}
#endif

#endif
