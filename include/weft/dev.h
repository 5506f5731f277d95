/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_dev: a virtio-net device for authors of virtual machine monitors, without a socket. The host
 * has mapped the guest's memory, speaks the transport (PCI, MMIO, ...) with the guest, and passes on
 * what the driver asks for:
 *
 *	struct weft_dev *dev;
 *
 *	weft_dev_new(&dev, "vm1,mtu=9000", &events, vm, err);
 *	weft_dev_attach(dev, net, err);                       plug it into a network, any time
 *	weft_dev_memory_add(dev, 0, size, ram, err);
 *	weft_dev_config_read(), weft_dev_features(), weft_dev_features_set()
 *	for each queue q: weft_dev_ring_size(), weft_dev_ring_addr(), weft_dev_kick_fd(),
 *			  weft_dev_call_fd(), weft_dev_ring_start()
 *
 * All addresses are guest addresses. A device belongs to the thread of its network and does its work
 * in weft_net_dispatch(); it starts no thread, installs no signal handler, prints nothing and never
 * ends the process, whatever the guest does: a guest that breaks the rules breaks its own queue.
 * [VIRTIO 1.2 5.1]
 */
#ifndef WEFT_DEV_H
#define WEFT_DEV_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_DEV_RX     0  /* the guest's receive queue [VIRTIO 1.2 5.1.2] */
#define WEFT_DEV_TX     1  /* the guest's transmit queue */
#define WEFT_DEV_CONFIG 12 /* bytes of the configuration space [VIRTIO 1.2 5.1.4] */

struct weft_dev;

/*
 * Called from weft_net_dispatch() or from inside the calls below. Either may be NULL. `interrupt` may
 * come while frames are under way: from within it change no memory, ring, device or network.
 */
struct weft_dev_events {
	/* Interrupt the driver: buffers of `queue` are used. Not called for a queue with a call descriptor. */
	void (*interrupt)(void *ctx, unsigned queue);
	/* The driver broke the rules of virtio: DEVICE_NEEDS_RESET [VIRTIO 1.2 2.1.2]. `reason` is a constant. */
	void (*broke)(void *ctx, unsigned queue, const char *reason);
};

/*
 * `options`: NAME[,mac=ADDRESS][,mtu=BYTES][,off=FEATURE+...][,pcap=FILE], as for a vhost-user port in
 * weft(1). The device is not attached; its link is up when it is and the driver is ready. `events` is
 * copied, `ctx` the host's. -EINVAL: options; -ENOMEM; the errors of opening the pcap file.
 */
WEFT_API int weft_dev_new(struct weft_dev **, const char *options, const struct weft_dev_events *,
	void *ctx, char *err);
/* Detaches first; guest memory is not touched any more. NULL is fine. */
WEFT_API void weft_dev_free(struct weft_dev *);

/*
 * Plug in and out; the driver's rings stay as they are. -EBUSY: attached already; -EEXIST: the network
 * has a port of that name or MAC; the errors of epoll_ctl(2). weft_net_del() and weft_net_free() detach, too.
 */
WEFT_API int weft_dev_attach(struct weft_dev *, struct weft_net *, char *err);
WEFT_API void weft_dev_detach(struct weft_dev *);

/*
 * `size` bytes at guest address `gpa` are at `host`, readable and writable until they are taken out; they
 * are the host's, who neither frees nor unmaps them before. At most 64 regions, which do not overlap and
 * end before 2^64: else -EINVAL, -EEXIST or -ENOSPC. A ring whose memory is taken away breaks. Out: just what was
 * added, else -ENOENT. [VIRTIO 1.2 2.6]
 */
WEFT_API int weft_dev_memory_add(
	struct weft_dev *, uint64_t gpa, uint64_t size, void *host, char *err);
WEFT_API int weft_dev_memory_del(struct weft_dev *, uint64_t gpa, uint64_t size, char *err);

/*
 * Feature bits: what is offered; what the driver acknowledged, before a ring starts. -EINVAL: some were
 * not offered. One without another that it depends on is not used. [VIRTIO 1.2 2.2, 5.1.3]
 */
WEFT_API uint64_t weft_dev_features(const struct weft_dev *);
WEFT_API int weft_dev_features_set(struct weft_dev *, uint64_t features, char *err);
/* `len` bytes at `offset` of the configuration space; -EINVAL beyond WEFT_DEV_CONFIG. [VIRTIO 1.2 2.5] */
WEFT_API int weft_dev_config_read(const struct weft_dev *, unsigned offset, unsigned len, void *to);

/*
 * `queue` is WEFT_DEV_RX or _TX, here and below, else -EINVAL. `size` entries: a power of two, 1 to 32768.
 * The three guest addresses are of its parts, aligned to 16, 2 and 4 bytes. `base` is the avail index to
 * begin at, 0 after a reset. -EBUSY: size and base do not change while it runs. [VIRTIO 1.2 2.7]
 */
WEFT_API int weft_dev_ring_size(struct weft_dev *, unsigned queue, unsigned size, char *err);
WEFT_API int weft_dev_ring_addr(
	struct weft_dev *, unsigned queue, uint64_t desc, uint64_t avail, uint64_t used, char *err);
WEFT_API int weft_dev_ring_base(struct weft_dev *, unsigned queue, uint16_t base, char *err);
/*
 * From now on the device reads and writes the ring. -EINVAL: no size or addresses, or these do not lie in
 * guest memory; the ring is stopped then.
 */
WEFT_API int weft_dev_ring_start(struct weft_dev *, unsigned queue, char *err);
/* It does not any more. Returns the avail index to go on at. Also heals a broken queue. */
WEFT_API uint16_t weft_dev_ring_stop(struct weft_dev *, unsigned queue);
/* off: a started receive queue gets nothing, a started transmit queue is emptied; start turns it on. */
WEFT_API int weft_dev_ring_enable(struct weft_dev *, unsigned queue, int on, char *err);
/* Stop both queues, forget features, addresses and sizes; memory and descriptors stay. [VIRTIO 1.2 2.4] */
WEFT_API void weft_dev_reset(struct weft_dev *);

/* The driver notified `queue`, if no kick descriptor tells. */
WEFT_API void weft_dev_kicked(struct weft_dev *, unsigned queue);
/*
 * An eventfd (the host's, who closes it after it was taken back with -1) that is readable when the driver
 * notifies `queue`; it is read here. The errors of epoll_ctl(2); there is none then. [VIRTIO 1.2 2.9]
 */
WEFT_API int weft_dev_kick_fd(struct weft_dev *, unsigned queue, int fd, char *err);
/* An eventfd (the host's; -1: none any more) to write to instead of calling events->interrupt.
 * [VIRTIO 1.2 2.7.7] */
WEFT_API int weft_dev_call_fd(struct weft_dev *, unsigned queue, int fd, char *err);

#ifdef __cplusplus
}
#endif

#endif
