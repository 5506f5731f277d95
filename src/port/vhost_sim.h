/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_sim: a scripted front-end, for tests and fuzz targets: it says exactly what it is told, right
 * or wrong, and has memory, two rings with a model driver on each, and descriptors to hand over. It
 * never blocks.
 */
#ifndef PORT_VHOST_SIM_H
#define PORT_VHOST_SIM_H

#include <sys/types.h>

#include "port/vhost_msg.h"
#include "ring/ring_sim.h"

#define VHOST_SIM_GPA  UINT64_C(0x40000000)
#define VHOST_SIM_UVA  UINT64_C(0x7f1200000000)
#define VHOST_SIM_LEN  (1 << 20)
#define VHOST_SIM_OFF  4096 /* of the memory in its file */
#define VHOST_SIM_RING 64
#define VHOST_SIM_BUFS 0x80000 /* buffers lie from here on in the memory */

struct vhost_sim {
	int fd; /* socket, -1: none */
	int memfd;
	uint8_t *mem;
	struct ring_sim ring[2];
	int kick[2], call[2], err[2]; /* eventfds */
};

/* 0 or -errno. `fd` becomes its own. */
int vhost_sim_init(struct vhost_sim *, int fd);
void vhost_sim_fini(struct vhost_sim *);
/* Lay the ring out anew, empty, both indices at `base`. */
int vhost_sim_ring(struct vhost_sim *, unsigned q, uint16_t base);
void vhost_sim_hang_up(struct vhost_sim *);

/* One message with `nfds` descriptors on its first byte. 0 or -errno (EAGAIN: the socket is full). */
int vhost_sim_send(struct vhost_sim *, uint32_t request, uint32_t flags, const void *payload,
	uint32_t size, const int *fds, unsigned nfds);
/* The reply, if there is a whole one: 1; 0: none; -errno; -ENODATA: hung up. */
int vhost_sim_recv(struct vhost_sim *, struct vhost_user_msg *);

/* What a real front-end says before traffic flows, one step each. */
enum vhost_sim_step {
	VHOST_SIM_OWNER,
	VHOST_SIM_PROTOCOL,
	VHOST_SIM_FEATURES,
	VHOST_SIM_MEMORY,
	VHOST_SIM_CALL0,
	VHOST_SIM_ERR0,
	VHOST_SIM_NUM0,
	VHOST_SIM_BASE0,
	VHOST_SIM_ADDR0,
	VHOST_SIM_KICK0,
	VHOST_SIM_CALL1,
	VHOST_SIM_ERR1,
	VHOST_SIM_NUM1,
	VHOST_SIM_BASE1,
	VHOST_SIM_ADDR1,
	VHOST_SIM_KICK1,
	VHOST_SIM_ENABLE0,
	VHOST_SIM_ENABLE1,
	VHOST_SIM_STEPS
};

struct vhost_sim_msg {
	uint8_t bytes[VHOST_USER_HDR_LEN + sizeof(((struct vhost_user_msg *)0)->u)];
	uint32_t len;
	int fds[VHOST_USER_FDS_MAX];
	unsigned nfds;
};

/* Make the message of a step; `features` is for the one of that name. */
struct vhost_sim_msg vhost_sim_step(
	const struct vhost_sim *, enum vhost_sim_step, uint64_t features);
/* Send bytes [from, to) of it, its descriptors with the first byte. */
int vhost_sim_send_part(
	struct vhost_sim *, const struct vhost_sim_msg *, uint32_t from, uint32_t to);
/* All steps [first, last], none acknowledged. */
int vhost_sim_steps(
	struct vhost_sim *, enum vhost_sim_step first, enum vhost_sim_step last, uint64_t features);

#endif
