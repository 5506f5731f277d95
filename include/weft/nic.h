/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_nic: a network card for a plain process: the driver's side of virtio-net on a vhost-user socket
 * of weft or of any other back-end. Packets are sent and received in batches and never copied: their
 * bytes lie in memory that the NIC shares with the back-end.
 *
 *	struct weft_nic *nic;
 *	struct weft_pkt *pkt[32];
 *
 *	weft_nic_open(&nic, "/run/lab/a.sock,rxbuf=auto", err);
 *	for (;;) {
 *		weft_nic_dispatch(nic, 1);
 *		while ((n = weft_nic_receive(nic, pkt, 32)))
 *			for each: weft_pkt_pieces(), weft_pkt_free()
 *	}
 *
 * Or poll weft_nic_fd() for reading, at most for weft_nic_timeout_ns(), and dispatch without waiting.
 * A NIC and its packets belong to one thread at a time.
 */
#ifndef WEFT_NIC_H
#define WEFT_NIC_H

#include <sys/uio.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_nic;
struct weft_pkt;

/* What is left to do for a packet, in the words of virtio. All zero: nothing. [VIRTIO 1.2 5.1.6] */
struct weft_offload {
	uint8_t flags; /* 1: the checksum is to be finished; 2 (received): it has been checked */
	uint8_t gso;   /* 0 none, 1 TCP over IPv4, 4 TCP over IPv6, 5 UDP; with 0x80: ECN */
	uint16_t gso_size;                /* bytes of payload in a segment, > 0 if gso is */
	uint16_t csum_start, csum_offset; /* bytes: from the frame's first one, from there */
	uint16_t hdr_len;                 /* bytes, a hint; 0: none */
};

/*
 * `options`: PATH[,key=value]... as for a virtio-user port in weft(1); a bare NAME is that port's
 * socket of the network "default". What the back-end offers and `off=` does not exclude is used: to
 * get whole checksums and frames within the MTU, say off=guest_csum. The session comes and goes by
 * itself; nothing is received and nothing taken for sending while it is down. Nothing waits here: nobody
 * need listen there yet. -EINVAL names the option and what would be right; -ENOMEM; with server=on the
 * errors of bind(2). *nic is set on success only, and the caller's until weft_nic_close(). [VIRTIO 1.2
 * 5.1.5, vhost-user]
 */
WEFT_API int weft_nic_open(struct weft_nic **, const char *options, char *err);
/*
 * Ends the session; what was sent and not yet used by the back-end may be lost. Packets that the caller
 * still holds stay whole and are freed with weft_pkt_free() as ever, after which their memory goes; but they
 * can be sent no more. NULL is fine.
 */
WEFT_API void weft_nic_close(struct weft_nic *);

/* As those of a network (weft/weft.h). */
WEFT_API int weft_nic_fd(const struct weft_nic *);
WEFT_API int64_t weft_nic_timeout_ns(const struct weft_nic *);
WEFT_API int weft_nic_dispatch(struct weft_nic *, int wait);

WEFT_API int weft_nic_up(const struct weft_nic *); /* not 0: the device works */
/* Why the last session ended, or "". The NIC's, until it is dispatched or closed. */
WEFT_API const char *weft_nic_down_reason(const struct weft_nic *);
/* While up: that of mac=, or the device's, or one made from the name. [VIRTIO 1.2 5.1.5] */
WEFT_API void weft_nic_mac(const struct weft_nic *, uint8_t mac[6]);
/* Bytes behind the Ethernet header, 68 to 65535: that of mtu=, or the device's, or 1500. */
WEFT_API uint32_t weft_nic_mtu(const struct weft_nic *);
/* Knobs and counters as JSON; free it with free(). NULL: no memory. */
WEFT_API char *weft_nic_show(struct weft_nic *);

/*
 * Up to `max` packets, which are the caller's until weft_pkt_free() or weft_nic_send(). 0: none now, and
 * weft_nic_fd() will be readable when one comes. A packet that is held keeps the memory it lies in, beyond
 * the session, too. Its offload fields have been checked against its length. [VIRTIO 1.2 5.1.6.4]
 */
WEFT_API unsigned weft_nic_receive(struct weft_nic *, struct weft_pkt **, unsigned max);
/*
 * Send from the front; returns how many were taken, which are the NIC's. Fewer than `n`: there is no
 * room now, or no device, and weft_nic_fd() will be readable when there is; the rest stays the caller's. A
 * packet of this NIC's only. One shorter than an Ethernet header, longer than the MTU (with gso: 65535) and
 * that header and two VLAN tags, or that asks for what the device cannot do, is
 * taken, dropped and counted. Notifies the back-end at most once. [VIRTIO 1.2 5.1.6.2]
 */
WEFT_API unsigned weft_nic_send(struct weft_nic *, struct weft_pkt **, unsigned n);

/*
 * A packet of one piece of `len` bytes, 1 to 63000; *data is the piece, not cleared. The caller's until
 * weft_pkt_free() or weft_nic_send(). NULL: no memory now, or no such length.
 */
WEFT_API struct weft_pkt *weft_pkt_new(struct weft_nic *, uint32_t len, void **data);
/* A further piece of `len` bytes, 1 to 65536, behind the others; at most 17. NULL: no memory now, or
 * one too many, or no such length; the packet is as it was. */
WEFT_API void *weft_pkt_append(struct weft_pkt *, uint32_t len);
WEFT_API void weft_pkt_free(struct weft_pkt *); /* NULL is fine */

/* Read and written in place; a new packet's is zero. */
WEFT_API struct weft_offload *weft_pkt_offload(struct weft_pkt *);
WEFT_API uint32_t weft_pkt_len(const struct weft_pkt *);
/* How many pieces it is in, of which the first `max` are stored. */
WEFT_API unsigned weft_pkt_pieces(const struct weft_pkt *, struct iovec *, unsigned max);
/* Copy up to `len` bytes from `offset` on; returns how many there were. */
WEFT_API uint32_t weft_pkt_copy(const struct weft_pkt *, uint32_t offset, void *to, uint32_t len);

#ifdef __cplusplus
}
#endif

#endif
