/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_req: what each vhost-user request does to the vdev: a table, one line per request.
 * [QEMU docs/interop/vhost-user]
 *
 * A ring starts when all its parts have arrived, in whatever order: features, memory, size,
 * addresses, and a kick descriptor (or the word that none will come). The specification starts it
 * at the first kick; front-ends differ in when they send that, and a ring without buffers is
 * harmless. It stops with GET_VRING_BASE, a reset, or a new size, which only a driver sends that
 * starts anew and did not say so (User-Mode Linux never sends GET_VRING_BASE). Each of these takes
 * the kick descriptor away, so that the ring waits for the next one.
 *
 * A refusal is answered where the front-end asked for an acknowledgement. Where it did not, it
 * would go on in the belief that all is well, so the session ends; but for requests without
 * consequence.
 */
#include "port/vhost_be_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIT(n) (UINT64_C(1) << (n))

#define PROTOCOL_OFFERED                                                                           \
	(BIT(VHOST_USER_PROTOCOL_F_MQ) | BIT(VHOST_USER_PROTOCOL_F_RARP) |                         \
		BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK) | BIT(VHOST_USER_PROTOCOL_F_NET_MTU) |        \
		BIT(VHOST_USER_PROTOCOL_F_BACKEND_REQ) | BIT(VHOST_USER_PROTOCOL_F_CONFIG) |       \
		BIT(VHOST_USER_PROTOCOL_F_RESET_DEVICE) |                                          \
		BIT(VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS) |                                   \
		BIT(VHOST_USER_PROTOCOL_F_STATUS))

#define STATUS_DRIVER_OK   0x04 /* [VIRTIO 1.2 2.1] */
#define STATUS_FEATURES_OK 0x08
#define STATUS_NEEDS_RESET 0x40

#define BACKEND_CONFIG_CHANGE 2 /* VHOST_USER_BACKEND_CONFIG_CHANGE_MSG */

#define POLL_EVERY NSEC_PER_MSEC

static const char bad_queue[] = "no such queue";

typedef const char *handler(struct vhost_be *, struct vhost_user_msg *);

/* descriptors that carry notifications */

static void signal_send(struct vhost_be *be, int fd, bool is_socket)
{
	uint64_t one = 1;
	ssize_t n;

	if (fd < 0)
		return;
	if (!is_socket) {
		evfd_signal(&be->dev.port.loop->evfd, fd);
		return;
	}
	/* A full one means that a notification is pending already; a closed one, that nobody cares. */
	do {
		n = send(fd, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
}

/* Put a descriptor, or -1, in the place of another. */
static void signal_replace(struct vhost_be *be, int *place, bool *is_socket, int fd)
{
	if (*place >= 0)
		discard_fd(&be->conn.odd, *place);
	*place = fd;
	*is_socket = fd >= 0 && fd_kind(fd) == FD_SOCKET;
}

/* rings */

static void kick_ready(struct loop_fd *kick, uint32_t events)
{
	struct vhost_ring *r = (void *)((char *)kick - offsetof(struct vhost_ring, kick));

	(void)events; /* edge-triggered: the count need not be read */
	vdev_kicked(&r->be->dev, (unsigned)(r - r->be->ring));
}

static void kick_drop(struct vhost_be *be, unsigned q)
{
	struct vhost_ring *r = &be->ring[q];
	int fd = r->kick.fd;

	r->polled = false;
	if (fd < 0)
		return;
	loop_del(be->dev.port.loop, &r->kick);
	close(fd);
}

static bool ring_mapped(const struct vhost_be *be, unsigned q)
{
	const struct vdev_ring *r = &be->dev.ring[q];
	const struct gmem *m = &be->dev.mem;

	return gmem_uva(m, r->desc_uva, vring_desc_len(r->size), VRING_DESC_ALIGN) &&
	       gmem_uva(m, r->avail_uva, vring_avail_len(r->size), VRING_AVAIL_ALIGN) &&
	       gmem_uva(m, r->used_uva, vring_used_len(r->size), VRING_USED_ALIGN);
}

static void poll_set(struct vhost_be *be)
{
	struct loop *l = be->dev.port.loop;

	if (!be->poll.set)
		loop_timer_set(l, &be->poll, loop_now(l) + POLL_EVERY);
}

/* Start the ring if its last part has just arrived. */
static void ring_try(struct vhost_be *be, unsigned q)
{
	const struct vdev_ring *dr = &be->dev.ring[q];
	const struct vhost_ring *r = &be->ring[q];

	if (dr->started || !be->have_features || (r->kick.fd < 0 && !r->polled))
		return;
	if (!dr->size || !dr->have_addr || !ring_mapped(be, q))
		return;
	vdev_ring_start(&be->dev, q); /* and looks at what came before */
	if (r->polled)
		poll_set(be);
}

static void rings_try(struct vhost_be *be)
{
	for (unsigned q = 0; q < VDEV_QUEUES; q++)
		ring_try(be, q);
}

void vhost_req_poll(struct loop_timer *t)
{
	struct vhost_be *be = (void *)((char *)t - offsetof(struct vhost_be, poll));

	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		if (!be->ring[q].polled || !be->dev.ring[q].started)
			continue;
		poll_set(be);
		if (be->dev.ring[q].enabled)
			vdev_kicked(&be->dev, q);
	}
}

void vhost_req_notify(struct vhost_be *be, unsigned q)
{
	signal_send(be, be->ring[q].call_fd, be->ring[q].call_is_socket);
}

/* [VIRTIO 1.2 2.1.2]: a device that needs a reset says so by a change of its configuration. */
void vhost_req_broke(struct vhost_be *be, unsigned q)
{
	struct vhost_user_hdr change = {BACKEND_CONFIG_CHANGE, VHOST_USER_VERSION, 0};

	signal_send(be, be->ring[q].err_fd, be->ring[q].err_is_socket);
	if (be->backend_fd < 0 || !(be->protocol & BIT(VHOST_USER_PROTOCOL_F_CONFIG)) ||
		!(be->status & STATUS_DRIVER_OK))
		return;
	if (send(be->backend_fd, &change, sizeof(change), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_say(be->dev.port.log, LOG_WARN, be->dev.port.name,
			"cannot tell the front-end that the device needs a reset");
}

/* The ring's next index. What the driver is to hear of the ring, it hears before. */
static uint16_t ring_pause(struct vhost_be *be, unsigned q)
{
	uint16_t next = vdev_ring_stop(&be->dev, q);

	hold_flush(&be->ring[q].hold);
	return next;
}

static void ring_stop(struct vhost_be *be, unsigned q)
{
	ring_pause(be, q);
	kick_drop(be, q);
}

static void device_reset(struct vhost_be *be)
{
	for (unsigned q = 0; q < VDEV_QUEUES; q++)
		kick_drop(be, q);
	vdev_reset(&be->dev);
	/* It may have wished for one more: none goes after a reset. [VIRTIO 1.2 2.4.1] */
	for (unsigned q = 0; q < VDEV_QUEUES; q++)
		hold_cancel(&be->ring[q].hold);
	be->have_features = false;
	be->status = 0;
}

/* memory */

/* Ring addresses follow the table; where they lead nowhere any more, the vdev breaks the ring. */
static void memory_replace(struct vhost_be *be, const struct gmem *fresh)
{
	struct gmem old = be->dev.mem;

	vdev_mem_begin(&be->dev);
	be->dev.mem = *fresh;
	vdev_mem_end(&be->dev);
	gmem_fini(&old);
}

static const char *set_mem_table(struct vhost_be *be, struct vhost_user_msg *m)
{
	struct gmem fresh;

	gmem_init(&fresh);
	for (uint32_t i = 0; i < m->u.mem.n; i++) {
		const struct vhost_user_region *r = &m->u.mem.region[i];

		if (gmem_map(&fresh, r->gpa, r->uva, r->size, be->conn.io.fds[i], r->mmap_offset,
			    &be->err)) {
			gmem_fini(&fresh);
			return "cannot use the memory table";
		}
	}
	memory_replace(be, &fresh);
	rings_try(be);
	return NULL;
}

static const char *get_max_mem_slots(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)be;
	m->u.u64 = GMEM_REGIONS;
	m->hdr.size = sizeof(m->u.u64);
	return NULL;
}

static const char *add_mem_reg(struct vhost_be *be, struct vhost_user_msg *m)
{
	const struct vhost_user_region *r = &m->u.mem_reg.region;
	int e;

	vdev_mem_begin(&be->dev);
	e = gmem_map(&be->dev.mem, r->gpa, r->uva, r->size, be->conn.io.fds[0], r->mmap_offset,
		&be->err);
	vdev_mem_end(&be->dev);
	if (e)
		return "cannot use the memory region";
	rings_try(be);
	return NULL;
}

static bool ring_in_region(const struct vdev_ring *r, const struct vhost_user_region *region)
{
	return r->desc_uva - region->uva < region->size ||
	       r->avail_uva - region->uva < region->size ||
	       r->used_uva - region->uva < region->size;
}

static const char *rem_mem_reg(struct vhost_be *be, struct vhost_user_msg *m)
{
	const struct vhost_user_region *r = &m->u.mem_reg.region;
	int e;

	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		if (be->dev.ring[q].started && ring_in_region(&be->dev.ring[q], r))
			return "a running ring lies in the memory region";
	}
	vdev_mem_begin(&be->dev);
	e = gmem_remove(&be->dev.mem, r->gpa, r->uva, r->size);
	vdev_mem_end(&be->dev);
	return e ? "no such memory region" : NULL;
}

/* features and state of the device */

static const char *get_features(struct vhost_be *be, struct vhost_user_msg *m)
{
	m->u.u64 = be->dev.offered | BIT(VHOST_USER_F_PROTOCOL_FEATURES);
	m->hdr.size = sizeof(m->u.u64);
	be->choosing = true;
	return NULL;
}

static const char *set_features(struct vhost_be *be, struct vhost_user_msg *m)
{
	uint64_t f = m->u.u64 & ~BIT(VHOST_USER_F_PROTOCOL_FEATURES);

	be->choosing = false;
	be->have_features = !vdev_set_features(&be->dev, f, &be->err);
	if (!be->have_features)
		return "cannot use these features";
	/* Without the word on SET_VRING_ENABLE, a front-end does not know of it. */
	if (!(m->u.u64 & BIT(VHOST_USER_F_PROTOCOL_FEATURES))) {
		for (unsigned q = 0; q < VDEV_QUEUES; q++)
			vdev_ring_enable(&be->dev, q, true);
	}
	rings_try(be);
	return NULL;
}

static const char *get_protocol_features(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)be;
	m->u.u64 = PROTOCOL_OFFERED;
	m->hdr.size = sizeof(m->u.u64);
	return NULL;
}

static const char *set_protocol_features(struct vhost_be *be, struct vhost_user_msg *m)
{
	if (m->u.u64 & ~PROTOCOL_OFFERED)
		return "protocol features that were not offered";
	be->protocol = m->u.u64;
	return NULL;
}

/* The session is the owner; RESET_OWNER is deprecated, and front-ends differ in what they mean. */
static const char *owner(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)be;
	(void)m;
	return NULL;
}

static const char *get_queue_num(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)be;
	m->u.u64 = VDEV_QUEUES / 2; /* pairs, as all front-ends for networks read it */
	m->hdr.size = sizeof(m->u.u64);
	return NULL;
}

static const char *reset_device(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)m;
	device_reset(be);
	return NULL;
}

static const char *set_status(struct vhost_be *be, struct vhost_user_msg *m)
{
	if (m->u.u64 > UINT8_MAX)
		return "no such device status";
	if (!m->u.u64)
		device_reset(be);
	be->status = (uint8_t)m->u.u64;
	if (!be->have_features)
		be->status &= (uint8_t)~STATUS_FEATURES_OK;
	return NULL;
}

static const char *get_status(struct vhost_be *be, struct vhost_user_msg *m)
{
	m->u.u64 = be->status | (be->dev.broken ? STATUS_NEEDS_RESET : 0);
	m->hdr.size = sizeof(m->u.u64);
	return NULL;
}

/* A front-end may ask for fields of features that we do not offer: they read as zero. */
static const char *get_config(struct vhost_be *be, struct vhost_user_msg *m)
{
	uint32_t offset = m->u.config.offset, size = m->u.config.size;
	uint32_t have = offset < VDEV_CONFIG_LEN ? VDEV_CONFIG_LEN - offset : 0;

	memset(m->u.config.data, 0, sizeof(m->u.config.data));
	if (have > size)
		have = size;
	if (!size || offset > VHOST_USER_CONFIG_MAX || size > VHOST_USER_CONFIG_MAX - offset ||
		(have && vdev_config_read(&be->dev, offset, have, m->u.config.data)))
		m->hdr.size = 0; /* the protocol's way to say no */
	return NULL;
}

static const char *set_config(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)be;
	(void)m;
	return "the configuration is read-only";
}

static const char *send_rarp(struct vhost_be *be, struct vhost_user_msg *m)
{
	vdev_send_rarp(&be->dev, m->u.bytes);
	return NULL;
}

static const char *net_set_mtu(struct vhost_be *be, struct vhost_user_msg *m)
{
	return vdev_set_mtu(&be->dev, m->u.u64, &be->err) ? "cannot use this MTU" : NULL;
}

static const char *set_backend_req_fd(struct vhost_be *be, struct vhost_user_msg *m)
{
	(void)m;
	if (fd_kind(be->conn.io.fds[0]) != FD_SOCKET)
		return "the back-end's channel is not a Unix socket";
	if (be->backend_fd >= 0)
		discard_fd(&be->conn.odd, be->backend_fd);
	be->backend_fd = vhost_io_take(&be->conn.io, 0);
	return NULL;
}

/* rings */

static const char *set_vring_num(struct vhost_be *be, struct vhost_user_msg *m)
{
	unsigned q = m->u.state.index;

	if (q >= VDEV_QUEUES)
		return bad_queue;
	if (vq_dev_check_size(m->u.state.num, &be->err))
		return "no good ring size"; /* and what runs, runs on */
	if (be->dev.ring[q].started)
		ring_stop(be, q);
	vdev_set_ring_size(&be->dev, q, m->u.state.num, NULL);
	ring_try(be, q);
	return NULL;
}

static bool ring_addr_same(const struct vdev_ring *r, const struct vhost_user_msg *m)
{
	return r->have_addr && r->desc_uva == m->u.addr.desc && r->avail_uva == m->u.addr.avail &&
	       r->used_uva == m->u.addr.used;
}

static const char *set_vring_addr(struct vhost_be *be, struct vhost_user_msg *m)
{
	unsigned q = m->u.addr.index;
	int r;

	if (q >= VDEV_QUEUES)
		return bad_queue;
	/* While running it may come for its log flag alone, which means nothing to us. */
	if (be->dev.ring[q].started && ring_addr_same(&be->dev.ring[q], m))
		return NULL;
	ring_pause(be, q); /* goes on where it was */
	r = vdev_set_ring_addr(
		&be->dev, q, m->u.addr.desc, m->u.addr.avail, m->u.addr.used, &be->err);
	ring_try(be, q); /* refused: with the old ones */
	return r ? "no good ring addresses" : NULL;
}

static const char *set_vring_base(struct vhost_be *be, struct vhost_user_msg *m)
{
	unsigned q = m->u.state.index;

	if (q >= VDEV_QUEUES)
		return bad_queue;
	if (m->u.state.num > UINT16_MAX)
		return "ring index beyond 65535";
	ring_pause(be, q);
	vdev_set_ring_base(&be->dev, q, (uint16_t)m->u.state.num);
	ring_try(be, q);
	return NULL;
}

static const char *get_vring_base(struct vhost_be *be, struct vhost_user_msg *m)
{
	unsigned q = m->u.state.index;

	if (q >= VDEV_QUEUES)
		return bad_queue;
	m->u.state.num = ring_pause(be, q);
	kick_drop(be, q);
	return NULL;
}

static const char *set_vring_kick(struct vhost_be *be, struct vhost_user_msg *m)
{
	unsigned q = m->u.u64 & VHOST_USER_VRING_MASK;
	struct vhost_ring *r;
	int fd;

	if (q >= VDEV_QUEUES)
		return bad_queue;
	r = &be->ring[q];
	if (be->conn.io.nfds && fd_kind(be->conn.io.fds[0]) != FD_EVENTFD)
		return "the kick descriptor is not an eventfd";
	kick_drop(be, q);
	if (!be->conn.io.nfds) {
		r->polled = true;
		poll_set(be);
		ring_try(be, q);
		return NULL;
	}
	fd = vhost_io_take(&be->conn.io, 0);
	if (loop_add(be->dev.port.loop, &r->kick, fd, EPOLLIN | EPOLLET)) {
		close(fd);
		return "cannot watch the kick descriptor";
	}
	if (be->dev.ring[q].started)
		vdev_kicked(&be->dev, q); /* it may have come on the old one */
	else
		ring_try(be, q);
	return NULL;
}

/* The ring and descriptor of SET_VRING_CALL or _ERR: -1 for none. */
static const char *signal_get(
	struct vhost_be *be, const struct vhost_user_msg *m, unsigned *q, int *fd)
{
	enum fd_kind kind;

	*q = m->u.u64 & VHOST_USER_VRING_MASK;
	*fd = -1;
	if (*q >= VDEV_QUEUES)
		return bad_queue;
	if (!be->conn.io.nfds)
		return NULL;
	kind = fd_kind(be->conn.io.fds[0]);
	if (kind != FD_EVENTFD && kind != FD_SOCKET)
		return "the descriptor is neither an eventfd nor a Unix socket";
	/* for where evfd_signal() has to write */
	if (kind == FD_EVENTFD && fcntl(be->conn.io.fds[0], F_SETFL, O_NONBLOCK))
		return "cannot make the descriptor non-blocking";
	*fd = vhost_io_take(&be->conn.io, 0);
	return NULL;
}

static const char *set_vring_call(struct vhost_be *be, struct vhost_user_msg *m)
{
	struct vhost_ring *r;
	unsigned q;
	int fd;
	const char *reason = signal_get(be, m, &q, &fd);

	if (reason)
		return reason;
	r = &be->ring[q];
	signal_replace(be, &r->call_fd, &r->call_is_socket, fd);
	/* A notification may have gone to the old one, or nowhere. One too many does no harm. */
	if (be->dev.ring[q].started)
		vhost_req_notify(be, q);
	return NULL;
}

static const char *set_vring_err(struct vhost_be *be, struct vhost_user_msg *m)
{
	struct vhost_ring *r;
	unsigned q;
	int fd;
	const char *reason = signal_get(be, m, &q, &fd);

	if (reason)
		return reason;
	r = &be->ring[q];
	signal_replace(be, &r->err_fd, &r->err_is_socket, fd);
	return NULL;
}

static const char *set_vring_enable(struct vhost_be *be, struct vhost_user_msg *m)
{
	unsigned q = m->u.state.index;

	if (q >= VDEV_QUEUES)
		return bad_queue;
	if (m->u.state.num > 1)
		return "a ring is enabled by 1, disabled by 0";
	vdev_ring_enable(&be->dev, q, m->u.state.num);
	return NULL;
}

/* the table */

static const struct request {
	handler *run;
	bool mild; /* refused without an acknowledgement to say so: goes on */
} requests[VHOST_USER_REQUEST_MAX] = {
	[VHOST_USER_GET_FEATURES] = {get_features, false},
	[VHOST_USER_SET_FEATURES] = {set_features, false},
	[VHOST_USER_SET_OWNER] = {owner, true},
	[VHOST_USER_RESET_OWNER] = {owner, true},
	[VHOST_USER_SET_MEM_TABLE] = {set_mem_table, false},
	[VHOST_USER_SET_VRING_NUM] = {set_vring_num, false},
	[VHOST_USER_SET_VRING_ADDR] = {set_vring_addr, false},
	[VHOST_USER_SET_VRING_BASE] = {set_vring_base, false},
	[VHOST_USER_GET_VRING_BASE] = {get_vring_base, false},
	[VHOST_USER_SET_VRING_KICK] = {set_vring_kick, false},
	[VHOST_USER_SET_VRING_CALL] = {set_vring_call, false},
	[VHOST_USER_SET_VRING_ERR] = {set_vring_err, false},
	[VHOST_USER_GET_PROTOCOL_FEATURES] = {get_protocol_features, false},
	[VHOST_USER_SET_PROTOCOL_FEATURES] = {set_protocol_features, false},
	[VHOST_USER_GET_QUEUE_NUM] = {get_queue_num, false},
	[VHOST_USER_SET_VRING_ENABLE] = {set_vring_enable, false},
	[VHOST_USER_SEND_RARP] = {send_rarp, true},
	[VHOST_USER_NET_SET_MTU] = {net_set_mtu, true},
	[VHOST_USER_SET_BACKEND_REQ_FD] = {set_backend_req_fd, false},
	[VHOST_USER_GET_CONFIG] = {get_config, false},
	[VHOST_USER_SET_CONFIG] = {set_config, true},
	[VHOST_USER_RESET_DEVICE] = {reset_device, false},
	[VHOST_USER_GET_MAX_MEM_SLOTS] = {get_max_mem_slots, false},
	[VHOST_USER_ADD_MEM_REG] = {add_mem_reg, false},
	[VHOST_USER_REM_MEM_REG] = {rem_mem_reg, false},
	[VHOST_USER_SET_STATUS] = {set_status, false},
	[VHOST_USER_GET_STATUS] = {get_status, false},
};

static const struct request unknown = {NULL, true};

static const struct request *request_find(uint32_t number)
{
	if (number >= VHOST_USER_REQUEST_MAX || !requests[number].run)
		return &unknown;
	return &requests[number];
}

static const char *request_run(struct vhost_be *be, const struct request *r)
{
	const char *reason = vhost_user_check(&be->conn.io.msg, be->conn.io.nfds);

	be->err.text[0] = '\0';
	if (be->conn.io.fds_bad)
		return "more descriptors than a message takes, or than we may have";
	if (reason)
		return reason;
	return r->run ? r->run(be, &be->conn.io.msg) : "unknown request";
}

static void refusal_log(const struct vhost_be *be, const char *reason)
{
	const char *name = vhost_user_name(be->conn.io.msg.hdr.request);

	log_say(be->dev.port.log, LOG_WARN, be->dev.port.name, "refused %s (%u): %s%s%s",
		name ? name : "request", be->conn.io.msg.hdr.request, reason,
		be->err.text[0] ? ": " : "", be->err.text);
}

/* With the status field negotiated, FEATURES_OK that does not stay tells the front-end. */
static bool refusal_is_mild(const struct vhost_be *be, const struct request *r)
{
	return r->mild ||
	       (r->run == set_features && be->protocol & BIT(VHOST_USER_PROTOCOL_F_STATUS));
}

const char *vhost_req_handle(struct vhost_be *be)
{
	uint32_t number = be->conn.io.msg.hdr.request, flags = be->conn.io.msg.hdr.flags;
	const struct request *r = request_find(number);
	const char *reason = request_run(be, r);
	uint64_t failed = reason != NULL;

	if (reason)
		refusal_log(be, reason);
	if (vhost_user_has_reply(number))
		return reason ? reason
			      : vhost_io_reply(
					&be->conn.io, &be->conn.io.msg.u, be->conn.io.msg.hdr.size);
	if (flags & VHOST_USER_F_NEED_REPLY && be->protocol & BIT(VHOST_USER_PROTOCOL_F_REPLY_ACK))
		return vhost_io_reply(&be->conn.io, &failed, sizeof(failed));
	return refusal_is_mild(be, r) ? NULL : reason;
}

/* beginning and end */

void vhost_req_init(struct vhost_be *be)
{
	be->backend_fd = -1;
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		be->ring[q] = (struct vhost_ring){
			.be = be,
			.kick = {.fd = -1, .ready = kick_ready},
			.call_fd = -1,
			.err_fd = -1,
		};
	}
}

void vhost_req_forget(struct vhost_be *be)
{
	struct gmem none;

	device_reset(be);
	gmem_init(&none);
	memory_replace(be, &none);
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		signal_replace(be, &be->ring[q].call_fd, &be->ring[q].call_is_socket, -1);
		signal_replace(be, &be->ring[q].err_fd, &be->ring[q].err_is_socket, -1);
	}
	if (be->backend_fd >= 0)
		discard_fd(&be->conn.odd, be->backend_fd);
	be->backend_fd = -1;
	be->protocol = 0;
	be->choosing = false;
	loop_timer_cancel(be->dev.port.loop, &be->poll);
}
