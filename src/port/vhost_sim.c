/* SPDX-License-Identifier: BSD-2-Clause */
/* vhost_sim: see vhost_sim.h. */
#include "port/vhost_sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_AT(q) ((q)*0x8000u)

int vhost_sim_ring(struct vhost_sim *s, unsigned q, uint16_t base)
{
	struct ring_sim_config c = {
		.mem = s->mem + RING_AT(q),
		.gpa = VHOST_SIM_GPA + RING_AT(q),
		.size = VHOST_SIM_RING,
		.base = base,
	};

	ring_sim_fini(&s->ring[q]);
	return ring_sim_init(&s->ring[q], &c);
}

int vhost_sim_init(struct vhost_sim *s, int fd)
{
	int r = 0;

	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->mem = MAP_FAILED;
	s->memfd = memfd_create("vhost-sim-memory", MFD_CLOEXEC);
	if (s->memfd >= 0 && !ftruncate(s->memfd, VHOST_SIM_OFF + VHOST_SIM_LEN))
		s->mem = mmap(NULL, VHOST_SIM_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, s->memfd,
			VHOST_SIM_OFF);
	for (unsigned q = 0; q < 2; q++) {
		s->kick[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		s->call[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		s->err[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (s->kick[q] < 0 || s->call[q] < 0 || s->err[q] < 0)
			r = -errno;
		if (s->mem != MAP_FAILED && !r)
			r = vhost_sim_ring(s, q, 0);
	}
	if (s->mem == MAP_FAILED)
		r = -ENOMEM;
	if (r)
		vhost_sim_fini(s);
	return r;
}

void vhost_sim_hang_up(struct vhost_sim *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void vhost_sim_fini(struct vhost_sim *s)
{
	vhost_sim_hang_up(s);
	for (unsigned q = 0; q < 2; q++) {
		ring_sim_fini(&s->ring[q]);
		close(s->kick[q]);
		close(s->call[q]);
		close(s->err[q]);
	}
	if (s->mem != MAP_FAILED)
		munmap(s->mem, VHOST_SIM_LEN);
	if (s->memfd >= 0)
		close(s->memfd);
}

int vhost_sim_send_part(
	struct vhost_sim *s, const struct vhost_sim_msg *m, uint32_t from, uint32_t to)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * VHOST_USER_FDS_MAX)];
	} control = {.buf = {0}};
	uint8_t bytes[sizeof(m->bytes)];
	struct iovec iov = {bytes, to - from};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (from == to)
		return 0;
	memcpy(bytes, m->bytes + from, to - from);
	if (m->nfds && !from) {
		struct cmsghdr *c;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * m->nfds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * m->nfds);
		memcpy(CMSG_DATA(c), m->fds, sizeof(int) * m->nfds);
	}
	return sendmsg(s->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static struct vhost_sim_msg message(uint32_t request, uint32_t flags, const void *payload,
	uint32_t size, const int *fds, unsigned nfds)
{
	struct vhost_user_hdr hdr = {request, flags | VHOST_USER_VERSION, size};
	struct vhost_sim_msg m;

	memset(&m, 0, sizeof(m));
	memcpy(m.bytes, &hdr, sizeof(hdr));
	if (size)
		memcpy(m.bytes + sizeof(hdr), payload, size);
	m.len = (uint32_t)sizeof(hdr) + size;
	if (nfds)
		memcpy(m.fds, fds, sizeof(int) * nfds);
	m.nfds = nfds;
	return m;
}

int vhost_sim_send(struct vhost_sim *s, uint32_t request, uint32_t flags, const void *payload,
	uint32_t size, const int *fds, unsigned nfds)
{
	struct vhost_sim_msg m = message(request, flags, payload, size, fds, nfds);

	return vhost_sim_send_part(s, &m, 0, m.len);
}

int vhost_sim_recv(struct vhost_sim *s, struct vhost_user_msg *m)
{
	ssize_t n;

	memset(m, 0, sizeof(*m));
	n = recv(s->fd, &m->hdr, sizeof(m->hdr), MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? 0 : errno == ECONNRESET ? -ENODATA : -errno;
	if (n == 0)
		return -ENODATA;
	if (n != sizeof(m->hdr) || m->hdr.size > sizeof(m->u))
		return -EPROTO;
	if (m->hdr.size && recv(s->fd, &m->u, m->hdr.size, MSG_DONTWAIT) != (ssize_t)m->hdr.size)
		return -EPROTO;
	return 1;
}

static struct vhost_sim_msg u64_message(uint32_t request, uint64_t v, const int *fd)
{
	return message(request, 0, &v, sizeof(v), fd, fd ? 1 : 0);
}

static struct vhost_sim_msg state_message(uint32_t request, uint32_t index, uint32_t num)
{
	uint32_t state[2] = {index, num};

	return message(request, 0, state, sizeof(state), NULL, 0);
}

static struct vhost_sim_msg memory_message(const struct vhost_sim *s)
{
	struct {
		uint32_t n, padding;
		struct vhost_user_region r;
	} table = {1, 0, {VHOST_SIM_GPA, VHOST_SIM_LEN, VHOST_SIM_UVA, VHOST_SIM_OFF}};

	return message(VHOST_USER_SET_MEM_TABLE, 0, &table, sizeof(table), &s->memfd, 1);
}

static struct vhost_sim_msg addr_message(const struct vhost_sim *s, unsigned q)
{
	const struct ring_sim *r = &s->ring[q];
	uint64_t d = VHOST_SIM_UVA - VHOST_SIM_GPA;
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {q, 0, r->desc_gpa + d, r->used_gpa + d, r->avail_gpa + d, 0};

	return message(VHOST_USER_SET_VRING_ADDR, 0, &addr, sizeof(addr), NULL, 0);
}

static struct vhost_sim_msg ring_step(const struct vhost_sim *s, enum vhost_sim_step step)
{
	unsigned q = step >= VHOST_SIM_CALL1;
	unsigned kind = (unsigned)step - (q ? VHOST_SIM_CALL1 : VHOST_SIM_CALL0);

	switch (kind + VHOST_SIM_CALL0) {
	case VHOST_SIM_CALL0:
		return u64_message(VHOST_USER_SET_VRING_CALL, q, &s->call[q]);
	case VHOST_SIM_ERR0:
		return u64_message(VHOST_USER_SET_VRING_ERR, q, &s->err[q]);
	case VHOST_SIM_NUM0:
		return state_message(VHOST_USER_SET_VRING_NUM, q, VHOST_SIM_RING);
	case VHOST_SIM_BASE0:
		return state_message(VHOST_USER_SET_VRING_BASE, q, s->ring[q].used_next);
	case VHOST_SIM_ADDR0:
		return addr_message(s, q);
	default:
		return u64_message(VHOST_USER_SET_VRING_KICK, q, &s->kick[q]);
	}
}

struct vhost_sim_msg vhost_sim_step(
	const struct vhost_sim *s, enum vhost_sim_step step, uint64_t features)
{
	if (step >= VHOST_SIM_CALL0 && step <= VHOST_SIM_KICK1)
		return ring_step(s, step);
	if (step == VHOST_SIM_OWNER)
		return message(VHOST_USER_SET_OWNER, 0, NULL, 0, NULL, 0);
	if (step == VHOST_SIM_PROTOCOL)
		return u64_message(VHOST_USER_SET_PROTOCOL_FEATURES,
			1u << VHOST_USER_PROTOCOL_F_REPLY_ACK | 1u << VHOST_USER_PROTOCOL_F_CONFIG |
				1u << VHOST_USER_PROTOCOL_F_BACKEND_REQ,
			NULL);
	if (step == VHOST_SIM_FEATURES)
		return u64_message(VHOST_USER_SET_FEATURES, features, NULL);
	if (step == VHOST_SIM_MEMORY)
		return memory_message(s);
	return state_message(VHOST_USER_SET_VRING_ENABLE, step == VHOST_SIM_ENABLE1, 1);
}

int vhost_sim_steps(
	struct vhost_sim *s, enum vhost_sim_step first, enum vhost_sim_step last, uint64_t features)
{
	for (unsigned i = first; i <= (unsigned)last; i++) {
		struct vhost_sim_msg m = vhost_sim_step(s, (enum vhost_sim_step)i, features);
		int r = vhost_sim_send_part(s, &m, 0, m.len);

		if (r)
			return r;
	}
	return 0;
}
