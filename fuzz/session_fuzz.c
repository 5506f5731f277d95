/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_fuzz: a front-end's session whose back-end is the real one, behind somebody who changes what
 * it answers. Requests pass; of the answers the input says, one byte per step, what becomes of them:
 * its low 3 bits say what, the high 4 bits how much. Time is virtual.
 *
 * Whatever comes: each end of a session has a reason and each grant of rings is taken back once, the
 * driver's memory is written by nobody here, and no descriptor is left open.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "evfd_kept.h"
#include "port/vhost_be.h"
#include "port/vhost_fe_int.h"
#include "port/vnet.h"
#include "ring/ring_sim.h"

#define MEM_LEN   (1 << 16)
#define RING_SIZE 16
#define FDS       8
#define ANSWERS   4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct world {
	const uint8_t *in;
	size_t left;
	struct loop loop;
	nsec_t now;
	struct vhost_fe *fe;
	struct port *be; /* NULL: no session */
	int fe_end, be_end;
	int last[FDS]; /* descriptors that passed last, to write to */
	unsigned at;   /* in last[] */
	uint8_t answer[ANSWERS];
	size_t have;
	int memfd;
	uint8_t *mem;
	struct ring_sim ring[2];
	unsigned granted, ups, downs;
};

static void must(bool good)
{
	if (!good)
		abort();
}

static unsigned take(struct world *w)
{
	if (!w->left)
		return 0;
	w->left--;
	return *w->in++;
}

/* the driver */

static int on_rings(void *ctx, uint64_t features, struct vhost_fe_ring ring[2], struct err *err)
{
	struct world *w = ctx;

	(void)err;
	must(features & VNET_BIT(VERSION_1));
	must(w->granted == w->downs);
	w->granted++;
	for (unsigned i = 0; i < 2; i++) {
		const struct ring_sim *s = &w->ring[i];

		ring[i] = (struct vhost_fe_ring){RING_SIZE, 0, s->desc, s->avail, s->used};
	}
	return 0;
}

static void on_up(void *ctx)
{
	struct world *w = ctx;

	must(vhost_fe_up(w->fe));
	w->ups++;
}

static void on_down(void *ctx, const char *reason)
{
	struct world *w = ctx;

	must(reason && *reason && !vhost_fe_up(w->fe));
	w->downs++;
	must(w->granted == w->downs && w->ups <= w->downs);
}

static void on_call(void *ctx, unsigned queue)
{
	struct world *w = ctx;

	must(queue < 2 && vhost_fe_up(w->fe));
}

static const struct vhost_fe_events events = {
	.rings = on_rings, .up = on_up, .down = on_down, .call = on_call};

/* both ends, and what is between them */

static void session_begin(struct world *w)
{
	static const struct vdev_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500};
	int fe[2], be[2];

	if (w->be || vhost_conn_is_on(&w->fe->conn))
		return;
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fe));
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, be));
	must(!vhost_be_open_fd(&w->be, "be", &config, be[0], &w->loop, NULL, NULL));
	w->fe_end = fe[1];
	w->be_end = be[1];
	w->have = 0;
	vhost_conn_begin(&w->fe->conn, fe[0]);
}

static void session_end(struct world *w)
{
	if (!w->be)
		return;
	vhost_be_free(w->be);
	w->be = NULL;
	close(w->fe_end);
	close(w->be_end);
	for (int i = 0; i < 4 && vhost_conn_is_on(&w->fe->conn); i++)
		loop_dispatch(&w->loop, false);
	must(!vhost_conn_is_on(&w->fe->conn));
}

/* One request with its descriptors; false: there is none. */
static bool request_pass(struct world *w)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * VHOST_USER_FDS_MAX)];
	} control;
	uint8_t bytes[4096];
	struct iovec iov = {bytes, VHOST_USER_HDR_LEN};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};
	uint32_t size;
	ssize_t n = recvmsg(w->fe_end, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < VHOST_USER_HDR_LEN)
		return false;
	memcpy(&size, bytes + 8, sizeof(size));
	must(size <= sizeof(bytes) - VHOST_USER_HDR_LEN);
	if (size)
		must(recv(w->fe_end, bytes + n, size, MSG_DONTWAIT) == (ssize_t)size);
	iov.iov_len = VHOST_USER_HDR_LEN + size;
	sendmsg(w->be_end, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
			int *slot = &w->last[w->at++ % FDS];

			if (*slot >= 0)
				close(*slot);
			memcpy(slot, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	}
	return true;
}

/* Until nobody says anything more; answers gather. */
static void pump(struct world *w)
{
	ssize_t n = 1;

	for (int i = 0; i < 8; i++) {
		must(!loop_dispatch(&w->loop, false));
		if (!w->be)
			continue;
		while (request_pass(w))
			;
		n = recv(w->be_end, w->answer + w->have, ANSWERS - w->have, MSG_DONTWAIT);
		if (n > 0)
			w->have += (size_t)n;
	}
}

static void answer_pass(struct world *w, size_t n)
{
	if (n > w->have)
		n = w->have;
	if (!w->be || !n)
		return;
	send(w->fe_end, w->answer, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	w->have -= n;
	memmove(w->answer, w->answer + n, w->have);
}

static void answer_change(struct world *w, unsigned n)
{
	size_t at = take(w);

	for (unsigned i = 0; i < n; i++, at++) {
		uint8_t byte = (uint8_t)take(w);

		if (at < w->have)
			w->answer[at] = byte;
	}
	answer_pass(w, w->have);
}

static void answer_make(struct world *w, unsigned n)
{
	uint8_t bytes[16];

	for (unsigned i = 0; i < n; i++)
		bytes[i] = (uint8_t)take(w);
	if (w->be)
		send(w->fe_end, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void step(struct world *w)
{
	unsigned what = take(w), n = what >> 4;
	uint64_t one = 1;

	switch (what & 7) {
	case 0: /* the truth */
		for (unsigned i = 0; i <= n; i++) {
			answer_pass(w, w->have);
			pump(w);
		}
		break;
	case 1:
		answer_change(w, n + 1);
		break;
	case 2:
		answer_pass(w, n + 1);
		break;
	case 3:
		answer_make(w, n + 1);
		break;
	case 4: /* a call, a kick, an error; or no eventfd at all */
		if (w->last[n % FDS] >= 0 && lseek(w->last[n % FDS], 0, SEEK_CUR) == 0 &&
			ftruncate(w->last[n % FDS], MEM_LEN) < 0)
			must(write(w->last[n % FDS], &one, sizeof(one)) <= (ssize_t)sizeof(one));
		break;
	case 5:
		w->now += (nsec_t)n * n * 50 * NSEC_PER_MSEC;
		break;
	case 6:
		session_end(w);
		session_begin(w);
		break;
	default:
		if (n == 15)
			vhost_fe_end(w->fe, "the driver wishes so");
		else
			vhost_fe_kick(w->fe, n & 1);
	}
	pump(w);
}

/* set-up */

static void driver_init(struct world *w, const char *path)
{
	struct vhost_fe_config c = {
		.path = path, .server = true, .need = VNET_BIT(VERSION_1), .mem_len = MEM_LEN};

	w->memfd = memfd_create("driver", MFD_CLOEXEC);
	must(w->memfd >= 0 && !ftruncate(w->memfd, MEM_LEN));
	w->mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, w->memfd, 0);
	must(w->mem != MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		struct ring_sim_config r = {
			.mem = w->mem + i * 8192, .gpa = i * 8192, .size = RING_SIZE};

		must(!ring_sim_init(&w->ring[i], &r));
	}
	c.want = vnet_features_all();
	c.mtu = w->left & 1 ? 1500 : 0;
	c.mem_fd = w->memfd;
	c.mem = w->mem;
	must(!vhost_fe_open(&w->fe, "fe", &c, &events, w, &w->loop, NULL, NULL));
}

static void driver_fini(struct world *w)
{
	vhost_fe_close(w->fe);
	for (unsigned i = 0; i < FDS; i++)
		if (w->last[i] >= 0)
			close(w->last[i]);
	for (unsigned i = 0; i < 2; i++) {
		/* nobody sent or posted anything */
		must(!w->ring[i].used->idx && !w->ring[i].avail->idx);
		ring_sim_fini(&w->ring[i]);
	}
	munmap(w->mem, MEM_LEN);
	close(w->memfd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct world world;
	struct world *w = &world;
	char dir[] = "/tmp/weft-fuzz-XXXXXX", path[64];
	int before, after;

	evfd_kept();
	before = dup(0);
	close(before);
	memset(w, 0, sizeof(*w));
	memset(w->last, 0xff, sizeof(w->last));
	w->in = data;
	w->left = len;
	must(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/s", dir);
	must(!loop_init(&w->loop, NULL));
	evfd_lend(&w->loop);
	w->now = NSEC_PER_SEC;
	w->loop.virtual_now = &w->now;
	driver_init(w, path);
	session_begin(w);
	pump(w);
	while (w->left)
		step(w);
	session_end(w);
	must(w->granted == w->downs);
	driver_fini(w);
	evfd_take_back(&w->loop);
	loop_fini(&w->loop);
	must(!rmdir(dir));
	after = dup(0);
	close(after);
	must(after == before);
	return 0;
}
