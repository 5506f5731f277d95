/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * message_fuzz: a front-end that says anything, in pieces of any size, with any descriptors, while
 * traffic is asked of the port. The input is a row of pieces:
 *
 *	control  how many descriptors come with it (low 4 bits), of which kind (next 2),
 *	         bit 6: then there is traffic and time passes, bit 7: then the replies are read
 *	length   of the bytes that follow
 *	bytes    to the socket
 *
 * The rings and buffers of the sim are there, so a row that is a good handshake leads to traffic.
 * Whatever is said: no crash, and when the front-end is gone, nothing of it is left.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "evfd_kept.h"
#include "port/vhost_be.h"
#include "port/vhost_sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct world {
	struct loop loop;
	nsec_t now;
	struct log log; /* lines are made, nobody reads them */
	struct vhost_sim fe;
	struct port *port;
	int wild; /* a descriptor of another kind: a socket */
};

static struct burst burst;

static void must(bool good)
{
	if (!good)
		abort();
}

static void event(void *ctx, struct portq *q)
{
	(void)ctx;
	(void)q;
}

static void link_event(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static void line(void *ctx, enum log_level level, const char *tag, const char *text)
{
	(void)ctx;
	(void)level;
	must(tag && text);
}

static const struct port_events events = {event, event, link_event};

static void world_init(struct world *w)
{
	static const struct vdev_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500};
	int sv[2];

	memset(w, 0, sizeof(*w));
	must(!loop_init(&w->loop, NULL));
	evfd_lend(&w->loop);
	log_init(&w->log, LOG_DEBUG, line, NULL);
	w->loop.virtual_now = &w->now;
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	must(!vhost_sim_init(&w->fe, sv[1]));
	must(!vhost_be_open_fd(&w->port, "vm", &config, sv[0], &w->loop, &w->log, NULL));
	w->port->events = &events;
	w->wild = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(w->wild >= 0);
}

static void world_fini(struct world *w)
{
	vhost_sim_hang_up(&w->fe);
	for (int i = 0; i < 8 && vhost_be_connected(w->port); i++)
		loop_dispatch(&w->loop, false);
	must(!vhost_be_connected(w->port) && !w->port->link);
	must(!vhost_be_vdev(w->port)->mem.n);
	vhost_be_free(w->port);
	vhost_sim_fini(&w->fe);
	close(w->wild);
	evfd_take_back(&w->loop);
	loop_fini(&w->loop);
}

static void piece_fds(struct world *w, struct vhost_sim_msg *m, uint8_t control)
{
	m->nfds = control & 15;
	if (m->nfds > VHOST_USER_FDS_MAX)
		m->nfds = VHOST_USER_FDS_MAX;
	for (unsigned i = 0; i < m->nfds; i++) {
		const int kind[4] = {w->fe.memfd, w->fe.kick[i & 1], w->fe.call[i & 1], w->wild};

		m->fds[i] = kind[(control >> 4 & 3)];
	}
}

static void traffic(struct world *w)
{
	struct ring_sim_buf out = {VHOST_SIM_GPA + VHOST_SIM_BUFS, VNET_HDR_MAX + 60};
	struct ring_sim_buf in = {VHOST_SIM_GPA + VHOST_SIM_BUFS + 4096, 2048};
	struct frame_head head = {.data = {0}};
	struct frame f = {.head = head.data, .head_len = 60};
	uint64_t one = 1;

	ring_sim_drain(&w->fe.ring[0], VHOST_SIM_RING);
	ring_sim_drain(&w->fe.ring[1], VHOST_SIM_RING);
	ring_sim_add(&w->fe.ring[0], &in, 0, 1, false);
	ring_sim_add(&w->fe.ring[1], &out, 1, 0, false);
	ring_sim_publish(&w->fe.ring[0]);
	ring_sim_publish(&w->fe.ring[1]);
	must(write(w->fe.kick[1], &one, sizeof(one)) == sizeof(one));
	w->now += NSEC_PER_MSEC;
	loop_dispatch(&w->loop, false);
	if (port_pull(&w->port->q, &burst, BURST_FRAMES))
		w->port->ops->settle(&w->port->q, &burst, burst.n);
	w->port->ops->push(&w->port->q, &f, 1);
	w->port->ops->flush(&w->port->q);
	if (w->port->ops->arm(&w->port->q))
		loop_dispatch(&w->loop, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world w;
	int before = dup(0), after;

	close(before);
	world_init(&w);
	while (len >= 2) {
		uint8_t control = data[0], n = data[1];
		struct vhost_sim_msg m = {.len = n};
		struct vhost_user_msg answer;

		data += 2;
		len -= 2;
		if (n > len)
			m.len = n = (uint8_t)len;
		memcpy(m.bytes, data, n);
		data += n;
		len -= n;
		piece_fds(&w, &m, control);
		vhost_sim_send_part(&w.fe, &m, 0, m.len);
		loop_dispatch(&w.loop, false);
		if (control & 0x40)
			traffic(&w);
		if (control & 0x80) {
			while (vhost_sim_recv(&w.fe, &answer) == 1)
				;
		}
	}
	world_fini(&w);
	/* the lowest free descriptor is the same as before: none leaked */
	after = dup(0);
	close(after);
	must(after == before);
	return 0;
}
