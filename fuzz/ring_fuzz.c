/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_fuzz: a split ring whose memory is the input, then a script of what device and driver do.
 *
 *	u8 log2 of the ring's size (mod 9) | u8 flags: 1 event index, 2 indirect | u16 base
 *	u16 bytes of image, the image of guest memory from address 0 on: desc, avail, used, the rest
 *	script: one byte per step, its low 4 bits say what, the high 4 bits how much
 *
 * Guest memory is two regions, neighbours in the guest and not here, each a heap block of its exact
 * size. Whatever a driver writes, what is popped must lie inside, agree with its own sums, and be
 * exact under unpop; nothing may abort. All numbers are little-endian.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ring/ring_sim.h"
#include "ring/vq.h"

#define A_LEN 16384
#define B_LEN 1000
#define OUT   256 /* chains popped and not yet put */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct run {
	const uint8_t *in; /* what is left of the input */
	size_t left;
	struct gmem mem;
	uint8_t *a, *b;
	struct ring_sim sim;
	struct vq_dev vq;
	struct chain out[OUT]; /* popped, in order; [put, popped) may go back */
	unsigned put, popped;
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static unsigned take(struct run *r, unsigned bytes)
{
	unsigned v = 0;

	for (unsigned i = 0; i < bytes && r->left; i++, r->left--)
		v |= (unsigned)*r->in++ << (8 * i);
	return v;
}

static bool inside(const uint8_t *block, size_t size, const struct iovec *v)
{
	const uint8_t *p = v->iov_base;

	return p >= block && p < block + size && v->iov_len <= (size_t)(block + size - p);
}

/* Both sums are those of the pieces; each piece can be touched. */
static void chain_check(struct run *r, const struct chain *c)
{
	uint64_t sum[2] = {0, 0};

	check(c->nr + c->nw > 0 && c->nr + c->nw <= CHAIN_MAX);
	check(c->id < r->sim.size && c->ndesc > 0);
	for (unsigned i = 0; i < (unsigned)c->nr + c->nw; i++) {
		volatile uint8_t *p = c->iov[i].iov_base;
		size_t n = c->iov[i].iov_len;

		check(n > 0);
		check(inside(r->a, A_LEN, &c->iov[i]) || inside(r->b, B_LEN, &c->iov[i]));
		sum[i >= c->nr] += n;
		(void)p[0];
		(void)p[n - 1];
	}
	check(sum[0] == c->rlen && sum[1] == c->wlen);
}

/* Popped twice is the same twice: the driver stands still in between. */
static void step_pop(struct run *r, unsigned max)
{
	static struct iovec iov[4 * CHAIN_MAX], again_iov[4 * CHAIN_MAX];
	static struct chain again[OUT];
	unsigned niov = max & 1 ? 4 * CHAIN_MAX : max * 3;

	if (max > OUT - r->popped)
		max = OUT - r->popped;

	struct chain *c = &r->out[r->popped];
	uint16_t at = r->vq.last_avail;
	unsigned n = vq_dev_pop(&r->vq, c, max, iov, niov), used = 0;

	check(n <= max && n <= r->sim.size);
	check(r->vq.last_avail == (uint16_t)(at + n));
	for (unsigned i = 0; i < n; i++) {
		check(c[i].iov == iov + used);
		chain_check(r, &c[i]);
		used += c[i].nr + c[i].nw;
		check(used <= niov);
	}
	if (!r->vq.broken) {
		vq_dev_unpop(&r->vq, n);
		check(vq_dev_pop(&r->vq, again, n, again_iov, niov) == n);
		for (unsigned i = 0; i < n; i++)
			check(again[i].id == c[i].id && again[i].ndesc == c[i].ndesc &&
				again[i].rlen == c[i].rlen && again[i].wlen == c[i].wlen);
		check(memcmp(iov, again_iov, used * sizeof(*iov)) == 0);
	}
	r->popped += n;
}

static void step_put(struct run *r, unsigned n)
{
	uint16_t at = r->vq.used_staged;

	if (n > r->popped - r->put)
		n = r->popped - r->put;
	if (n & 1) {
		vq_dev_put_read(&r->vq, &r->out[r->put], n);
	} else {
		for (unsigned i = 0; i < n; i++)
			vq_dev_put(&r->vq, r->out[r->put + i].id, r->out[r->put + i].wlen);
	}
	check(r->vq.used_staged == (uint16_t)(at + n));
	r->put += n;
}

static void step_publish(struct run *r)
{
	bool staged = r->vq.used_idx != r->vq.used_staged;

	vq_dev_publish(&r->vq);
	check(r->vq.used_idx == r->vq.used_staged);
	check(!staged || r->sim.used->idx == r->vq.used_idx);
	if (r->put == r->popped)
		r->put = r->popped = 0;
}

static void step_unpop(struct run *r, unsigned n)
{
	if (n > r->popped - r->put)
		n = r->popped - r->put;
	vq_dev_unpop(&r->vq, n);
	r->popped -= n;
}

static void step_restart(struct run *r, unsigned flags)
{
	step_unpop(r, OUT);
	step_publish(r);

	uint16_t base = vq_dev_stop(&r->vq);

	vq_dev_start(&r->vq, base, flags & 1, flags & 2);
	check(vq_dev_ready(&r->vq));
}

/* The second region goes, or comes back. */
static void step_memory(struct run *r)
{
	step_unpop(r, OUT);
	if (gmem_remove(&r->mem, A_LEN, A_LEN, B_LEN))
		check(gmem_add(&r->mem, A_LEN, A_LEN, B_LEN, r->b, NULL) == 0);
}

static void step_write(struct run *r, unsigned n)
{
	unsigned at = take(r, 2) % A_LEN;

	for (unsigned i = 0; i < n && at + i < A_LEN; i++)
		r->a[at + i] = (uint8_t)take(r, 1);
}

static void step(struct run *r)
{
	unsigned what = take(r, 1), n = what >> 4;

	switch (what & 15) {
	case 0:
	case 1:
	case 2:
		step_pop(r, n == 15 ? 64 : n);
		break;
	case 3:
		step_unpop(r, n);
		break;
	case 4:
	case 5:
		step_put(r, n == 15 ? OUT : n);
		break;
	case 6:
		step_publish(r);
		break;
	case 7:
		vq_dev_arm(&r->vq, n * n);
		break;
	case 8:
		vq_dev_disarm(&r->vq);
		break;
	case 9:
		check(vq_dev_available(&r->vq) <= r->sim.size);
		break;
	case 10:
	case 11:
		r->sim.avail->idx = (uint16_t)(r->sim.avail->idx + n);
		break;
	case 12:
		step_restart(r, n);
		break;
	case 13:
		step_memory(r);
		break;
	default:
		step_write(r, n + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct run run;
	struct run *r = &run;

	*r = (struct run){.in = data, .left = len};
	r->a = calloc(1, A_LEN);
	r->b = calloc(1, B_LEN);
	if (!r->a || !r->b)
		abort();
	gmem_init(&r->mem);
	check(gmem_add(&r->mem, 0, 0, A_LEN, r->a, NULL) == 0);
	check(gmem_add(&r->mem, A_LEN, A_LEN, B_LEN, r->b, NULL) == 0);

	unsigned size = 1u << take(r, 1) % 9, flags = take(r, 1);
	struct ring_sim_config c = {.mem = r->a, .size = size, .base = (uint16_t)take(r, 2)};

	c.event_idx = flags & 1;
	check(ring_sim_len(size, 0) <= A_LEN);
	check(ring_sim_init(&r->sim, &c) == 0);
	for (unsigned i = 0, n = take(r, 2); i < n && i < A_LEN && r->left; i++)
		r->a[i] = (uint8_t)take(r, 1);
	vq_dev_init(&r->vq, &r->mem);
	ring_sim_attach(&r->sim, &r->vq, flags & 2);
	while (r->left)
		step(r);
	step_unpop(r, OUT);
	step_publish(r);
	vq_dev_stop(&r->vq);

	ring_sim_fini(&r->sim);
	gmem_fini(&r->mem);
	free(r->a);
	free(r->b);
	return 0;
}
