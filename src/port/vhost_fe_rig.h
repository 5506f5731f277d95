/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_fe_rig: what the tests of the front-end session share: one front-end with memory and a model
 * driver on two rings, a folder for its socket, a loop in virtual time, and a record of its events.
 */
#ifndef PORT_VHOST_FE_RIG_H
#define PORT_VHOST_FE_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fds_rig.h"
#include "port/vhost_fe.h"
#include "port/vnet.h"
#include "ring/ring_sim.h"

#define MEM_LEN   (1 << 20)
#define BUFS_AT   0x80000 /* buffers lie from here on */
#define RING_SIZE 64
#define WANT      (VNET_BIT(VERSION_1) | VNET_BIT(MRG_RXBUF) | VNET_BIT(MAC) | VNET_BIT(MTU))

struct rig {
	struct loop loop;
	nsec_t now;
	char dir[32], path[64];
	unsigned fds; /* open before anything */

	struct vhost_fe *fe;
	int memfd;
	uint8_t *mem;
	struct ring_sim ring[2];
	uint16_t base; /* where the rings begin */

	/* events */
	unsigned n_rings, n_up, n_down, n_call[2];
	uint64_t features;
	char reason[256];
	bool refuse;
};

static inline unsigned maps_of_guest(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "vhost-fe-memory") != NULL;
	fclose(f);
	return n;
}

static inline int on_rings(
	void *ctx, uint64_t features, struct vhost_fe_ring ring[2], struct err *err)
{
	struct rig *r = ctx;

	r->n_rings++;
	r->features = features;
	if (r->refuse)
		return err_set(err, ENOMEM, "no memory for the rings of the test");
	assert_int_equal(r->n_rings, r->n_down + 1);
	for (unsigned q = 0; q < 2; q++) {
		struct ring_sim_config c = {
			.mem = r->mem + q * 0x8000,
			.gpa = (uintptr_t)r->mem + q * 0x8000,
			.size = RING_SIZE,
			.base = r->base,
		};

		ring_sim_fini(&r->ring[q]);
		assert_int_equal(ring_sim_init(&r->ring[q], &c), 0);
		ring[q] = (struct vhost_fe_ring){.size = RING_SIZE,
			.base = r->base,
			.desc = r->ring[q].desc,
			.avail = r->ring[q].avail,
			.used = r->ring[q].used};
	}
	return 0;
}

static inline void on_up(void *ctx)
{
	struct rig *r = ctx;

	assert_true(vhost_fe_up(r->fe));
	r->n_up++;
}

static inline void on_down(void *ctx, const char *reason)
{
	struct rig *r = ctx;

	assert_false(vhost_fe_up(r->fe));
	assert_string_equal(vhost_fe_last_end(r->fe), reason);
	r->n_down++;
	assert_int_equal(r->n_down, r->n_rings);
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

static inline void on_call(void *ctx, unsigned queue)
{
	struct rig *r = ctx;

	assert_true(vhost_fe_up(r->fe));
	r->n_call[queue]++;
}

static const struct vhost_fe_events fe_events = {
	.rings = on_rings, .up = on_up, .down = on_down, .call = on_call};

static inline struct vhost_fe_config fe_config(const struct rig *r)
{
	return (struct vhost_fe_config){
		.path = r->path,
		.want = WANT,
		.need = VNET_BIT(VERSION_1),
		.mem_fd = r->memfd,
		.mem = r->mem,
		.mem_len = MEM_LEN,
	};
}

static inline void fe_open(struct rig *r, const struct vhost_fe_config *c)
{
	struct err err = {""};

	if (vhost_fe_open(&r->fe, "net0", c, &fe_events, r, &r->loop, NULL, &err))
		fail_msg("%s", err.text);
}

static inline void spin(struct rig *r)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(loop_dispatch(&r->loop, false), 0);
}

/* Until its next timer, if that comes within `most`. */
static inline void pass(struct rig *r, nsec_t most)
{
	nsec_t at = loop_deadline(&r->loop);

	r->now = at < r->now + most ? at : r->now + most;
	spin(r);
}

static inline int fe_setup(void **state)
{
	static struct rig rig;
	struct rig *r = &rig;

	memset(r, 0, sizeof(*r));
	strcpy(r->dir, "/tmp/weft-test-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->path, sizeof(r->path), "%s/a.sock", r->dir);
	assert_int_equal(loop_init(&r->loop, NULL), 0);
	evfd_prepare(&r->loop.evfd); /* has a descriptor, which stays */
	r->now = NSEC_PER_SEC;
	r->loop.virtual_now = &r->now;
	loop_refresh(&r->loop);
	r->memfd = memfd_create("vhost-fe-memory", MFD_CLOEXEC);
	assert_true(r->memfd >= 0);
	assert_int_equal(ftruncate(r->memfd, MEM_LEN), 0);
	r->mem = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, r->memfd, 0);
	assert_true(r->mem != MAP_FAILED);
	r->fds = fds_open();
	*state = r;
	return 0;
}

static inline int fe_teardown(void **state)
{
	struct rig *r = *state;

	vhost_fe_close(r->fe);
	fds_become(r->fds);
	assert_int_equal(maps_of_guest(), 1);
	for (unsigned q = 0; q < 2; q++)
		ring_sim_fini(&r->ring[q]);
	munmap(r->mem, MEM_LEN);
	close(r->memfd);
	loop_fini(&r->loop);
	assert_int_equal(rmdir(r->dir), 0); /* nothing was left behind */
	return 0;
}

#endif
