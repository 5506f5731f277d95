/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits: every cap of the house, with its unit and its reason. A table that reaches its cap
 * refuses or evicts fairly, and counts.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#define PORTS_MAX 128 /* ports of a network: bounds the pause table and the address table */
#define NAME_LEN  32 /* bytes of a port's or network's name with its NUL: fits sockets and tables */

/* A burst is what one port lends at once: enough to amortise a notification, short enough that
 * another port does not wait long (64 frames of 64 B take some 5 us, 512 KiB some 30 us). */
#define BURST_FRAMES 64
#define BURST_BYTES  (512 * 1024)
#define BURST_IOV    2048 /* tail pieces of a burst; a chain has at most CHAIN_MAX */

#define CHAIN_MAX    1024             /* descriptors a chain may have: Linux allows as many */
#define RING_MAX     32768            /* entries of a ring [VIRTIO 1.2 2.7.1] */
#define FRAME_MAX    (65535 + 14 + 8) /* bytes of a frame: an IP datagram, Ethernet, two VLAN tags */
#define ETH_MTU_MIN  68               /* [VIRTIO 1.2 5.1.4.1] */
#define ETH_MTU_MAX  65535
#define GMEM_REGIONS 64 /* memory regions of a guest: slots for memory hot-plug */

#define FDB_SHARE   512 /* addresses a port may own */
#define FDB_AGE_SEC 300 /* an address unseen so long is forgotten (802.1D default) */

/* A full receiver makes its sender wait: so long at a time ... */
#define WAIT_US_DEFAULT 1000
/* ... and at most a tenth of any 100 ms, so that others behind the same sender lose at most that. */
#define WAIT_WINDOW_MS 100
#define WAIT_SHARE     10 /* percent */

#endif
