/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap: a kernel network interface as a port: a tap, or a macvtap upon an interface that is there. A
 * non-blocking descriptor with virtio-net headers for each of its queues; the kernel is the driver: what it
 * sends arrives by readv into an arena, what it gets leaves by writev, the frames of a flow through one
 * queue. Needs CAP_NET_ADMIN over the network namespace:
 * root, or (tap only) `unshare -Urn`, or netns= of a namespace the user owns; none for a descriptor
 * that was passed in. [Linux Documentation/networking/tuntap.rst]
 */
#ifndef PORT_TAP_H
#define PORT_TAP_H

#include "frame/chunk.h"
#include "port/port.h"

#define TAP_ORDER   3  /* of chunks that copies lie in, likewise */
#define TAP_HDR_LEN 12 /* of the virtio-net header before each frame, unless told otherwise */
#define TAP_QUEUES  16 /* at most; all are served by one thread */

/* How macvtaps of one interface reach each other; passthru: the only one, and it gets every frame. */
enum macvtap_mode { MACVTAP_BRIDGE, MACVTAP_VEPA, MACVTAP_PRIVATE, MACVTAP_PASSTHRU };

struct tap_copy_config {
	uint32_t order;         /* packets lie in chunks of up to 4096 << order bytes */
	enum chunk_pages pages; /* where those come from */
	uint32_t refuse;        /* fault injection: orders above 0, so often of 1000 */
	bool linear_hint0;      /* the rule before 2023: linear if nobody says where headers end */
};

struct tap_config {
	const char *ifname; /* 1 .. 15 bytes; created if it is not there. macvtap: NULL */
	const char *lower;  /* a macvtap on this interface, new and gone at close; NULL: a tap */
	const char *netns;  /* NULL: ours; a name of ip-netns(8), a process id, or a path */
	const char *const *addr; /* tap: ADDR/LEN texts to add, NULL-terminated; NULL: none */
	uint32_t mtu;            /* 0: leave at 1500, or that of `lower` */
	uint64_t
		off; /* virtio feature bits not to use: guest_*: towards the kernel, host_*: from it */
	enum macvtap_mode mode;
	uint8_t mac
		[6]; /* macvtap: the one address that frames come for; zero: the kernel's choice */
	int fd;      /* > 0: a tap opened before, closed when it has become the port's; 0: none */
	uint32_t vnet_hdr; /* 10, 12 or 20; 0: TAP_HDR_LEN */
	uint32_t queues;   /* of the interface; 0: 1 */
	bool copy; /* keep what is read in own packets, as tun keeps what it is given (S3) */
	struct tap_copy_config copying;
};

/* copy: what became of the frames read. */
struct tap_copied {
	uint64_t packets, bytes;
	uint64_t linear;                  /* packets that needed no chunk */
	uint64_t fragments[CHUNK_ORDERS]; /* chunks of the others, by order */
	uint64_t fallbacks;               /* an order was not to be had */
	uint64_t failures;                /* no memory: the frame was dropped */
	uint64_t locked; /* times that the lock before the lists of chunks was taken */
};

struct tap_wire {
	uint64_t netns;   /* a namespace's inode */
	unsigned ifindex; /* in there; 0: not known, like no other */
};

struct tap_queued {
	uint64_t in, out; /* frames from the kernel, and to it */
};

/*
 * Opens, sets offloads, MTU, addresses, brings it up; blocks for some milliseconds. From then on the
 * port's link follows the interface's IFF_UP and its mtu the interface's MTU, whoever changes them.
 */
int tap_open(struct port **, const char *name, const struct tap_config *, struct loop *,
	struct log *, struct err *);
void tap_free(struct port *); /* closes; NULL is fine */
/* Why the link is down, a constant sentence; "" if it is up. */
const char *tap_missing(const struct port *);
const char *tap_ifname(const struct port *);
int tap_fd(const struct port *); /* the port's own, of its first queue: to duplicate, not to use */
/* Virtio feature bits that hold: guest_*: towards the kernel; csum, host_*: from it. */
uint64_t tap_features(const struct port *);
/* The interface's own address at the opening. port->mac stays zero: it is not offered to anybody. */
const uint8_t *tap_mac(const struct port *);
uint32_t tap_vnet_hdr(const struct port *);
unsigned tap_queues(const struct port *);
/* Frames that were read and written there; `queue` below tap_queues(). */
struct tap_queued tap_queued(const struct port *, unsigned queue);
/*
 * The wire it is on: an interface of the kernel, its own or the one below a macvtap. Two ports of one wire
 * in one network are a loop.
 */
struct tap_wire tap_wire(const struct port *);
/* False: the port does not copy. */
bool tap_copied(const struct port *, struct tap_copied *);

#endif
