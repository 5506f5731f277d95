/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split_drv: against the real device side over one memory, by random schedules with every byte
 * stamped; every lie a device can tell by its name; when an indirect table is used; and two threads
 * that must never lose a wake-up.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "ring/gmem.h"
#include "ring/vq.h"
#include "ring/vq_drv.h"

#define SLOT   512 /* bytes of data for each descriptor */
#define PIECES VQ_TABLE

struct rig {
	struct gmem mem;
	struct vq_drv drv;
	struct vq_dev dev;
	uint8_t *ring, *data;
};

struct rig_config {
	unsigned size;
	bool event_idx, tables;
	enum vq_indirect indirect;
	uint16_t base;
};

static void region_add(struct gmem *m, uint8_t *p, size_t len)
{
	assert_int_equal(gmem_add(m, (uintptr_t)p, (uintptr_t)p, len, p, NULL), 0);
}

static void rig_init(struct rig *r, const struct rig_config *c)
{
	size_t len = vq_drv_len(c->size, c->tables);
	struct err err = {0};

	*r = (struct rig){0};
	r->ring = aligned_alloc(64, len);
	memset(r->ring, 0xa5, len);
	r->data = calloc(c->size, SLOT);
	gmem_init(&r->mem);
	region_add(&r->mem, r->ring, len);
	region_add(&r->mem, r->data, (size_t)c->size * SLOT);
	assert_int_equal(vq_drv_init(&r->drv, r->ring, c->size, c->tables, &err), 0);
	r->drv.event_idx = c->event_idx;
	r->drv.want_indirect = c->tables;
	r->drv.indirect = c->indirect;
	vq_drv_reset(&r->drv, c->base);
	vq_dev_init(&r->dev, &r->mem);
	assert_int_equal(vq_dev_set_size(&r->dev, c->size, NULL), 0);
	vq_dev_set_rings(&r->dev, r->drv.desc, r->drv.avail, r->drv.used);
	vq_dev_start(&r->dev, c->base, c->event_idx, c->tables);
}

static void rig_fini(struct rig *r)
{
	vq_drv_fini(&r->drv);
	gmem_fini(&r->mem);
	free(r->ring);
	free(r->data);
}

static void sizes(void **state)
{
	static const unsigned bad[] = {0, 1, 3, 5, 6, 255, 257, 1000, 32769, 65536, 1u << 31};
	struct vq_drv vq;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err err = {0};

		assert_int_equal(vq_drv_init(&vq, NULL, bad[i], true, &err), -EINVAL);
		assert_non_null(strstr(err.text, "must be a power of two from 2 to 32768"));
		vq_drv_fini(&vq);
	}
	for (unsigned size = 2; size <= 32768; size *= 2) {
		struct rig r;

		rig_init(&r, &(struct rig_config){.size = size, .tables = true});
		assert_int_equal(r.drv.nfree, size);
		assert_int_equal((uintptr_t)r.drv.desc % VRING_DESC_ALIGN, 0);
		assert_int_equal((uintptr_t)r.drv.avail % VRING_AVAIL_ALIGN, 0);
		assert_int_equal((uintptr_t)r.drv.used % VRING_USED_ALIGN, 0);
		assert_int_equal(r.drv.used->flags, 0);
		for (unsigned i = 0; i < size; i++)
			vq_drv_add1(&r.drv, r.data, 8, true, &r);
		assert_int_equal(r.drv.nfree, 0);
		assert_int_equal(vq_drv_add(&r.drv, &(struct iovec){r.data, 8}, 1, 0, &r), -ENOSPC);
		rig_fini(&r);
	}
}

/* ---- random schedules ---- */

struct token {
	uint64_t serial;
	uint16_t head;
	unsigned nr, nw;
	uint32_t rlen, wlen, written;
	struct iovec v[PIECES];
	bool out, put;
};

struct model {
	struct rig rig;
	struct rand rand;
	struct token *token; /* by head */
	struct chain *popped;
	struct iovec *iov;
	unsigned size, npopped;
	uint64_t added, put, got;
	uint64_t shown; /* published by the driver */
	bool want_kick; /* the device sleeps: chains that become visible must kick */
	uint64_t kick_at;
	unsigned want_call; /* the driver sleeps until so many are used */
	uint64_t call_at, used;
};

static uint8_t stamp(uint64_t serial, uint32_t i, unsigned what)
{
	return (uint8_t)(serial * 31 + i * 7 + what * 101 + (i >> 8));
}

/* Write, or check, the stamp of the first `len` bytes of these pieces. */
static void stamp_pieces(
	const struct iovec *v, uint64_t serial, uint32_t len, unsigned what, bool write)
{
	for (uint32_t at = 0; at < len; v++) {
		uint8_t *p = v->iov_base;

		for (size_t k = 0; k < v->iov_len && at < len; k++, at++) {
			if (write)
				p[k] = stamp(serial, at, what);
			assert_int_equal(p[k], stamp(serial, at, what));
		}
	}
}

static void model_add(struct model *m)
{
	struct vq_drv *vq = &m->rig.drv;
	unsigned n = 1 + rand_below(&m->rand, rand_below(&m->rand, 2) ? PIECES : 2);
	uint16_t head = vq_drv_next_id(vq);
	struct token *t = &m->token[head];
	struct token new = {.serial = m->added, .head = head, .out = true};
	uint8_t *at = m->rig.data + (size_t)head * SLOT;
	unsigned nfree = vq->nfree;
	int rc;

	if (!nfree)
		return;
	assert_false(t->out);
	new.nr = rand_below(&m->rand, n + 1);
	new.nw = n - new.nr;
	for (unsigned i = 0; i < n; i++) {
		new.v[i] = (struct iovec){at, 1 + rand_below(&m->rand, SLOT / PIECES)};
		at += new.v[i].iov_len;
		*(i < new.nr ? &new.rlen : &new.wlen) += (uint32_t) new.v[i].iov_len;
	}
	stamp_pieces(new.v, new.serial, new.rlen, 0, true);
	if (n == 1 && rand_below(&m->rand, 2)) {
		vq_drv_add1(vq, new.v->iov_base, (uint32_t) new.v->iov_len, new.nw, t);
		rc = 0;
	} else {
		rc = vq_drv_add(vq, new.v, new.nr, new.nw, t);
	}
	if (rc == -EMSGSIZE)
		assert_true(n > m->size);
	else if (rc)
		assert_true(n > nfree);
	if (rc) {
		assert_int_equal(vq->nfree, nfree);
		return;
	}
	*t = new;
	m->added++;
}

static void model_publish(struct model *m)
{
	bool any = m->shown != m->added, kick = vq_drv_publish(&m->rig.drv);

	m->shown = m->added;
	if (!any)
		assert_false(kick);
	if (m->want_kick && m->shown >= m->kick_at) {
		assert_true(kick);
		m->want_kick = false;
	}
}

static void model_pop(struct model *m)
{
	unsigned room = m->size - m->npopped, max = rand_below(&m->rand, room + 1);
	struct iovec *iov = m->iov; /* only looked at here */
	unsigned n = vq_dev_pop(&m->rig.dev, &m->popped[m->npopped], max, iov, m->size * PIECES);

	assert_null(m->rig.dev.broken);
	assert_int_equal(
		n, max < m->shown - m->put - m->npopped ? max : m->shown - m->put - m->npopped);
	for (unsigned i = 0; i < n; i++) {
		struct chain *c = &m->popped[m->npopped + i];
		struct token *t = &m->token[c->id];

		assert_true(t->out && !t->put);
		assert_int_equal(c->rlen, t->rlen);
		assert_int_equal(c->wlen, t->wlen);
		stamp_pieces(c->iov, t->serial, c->rlen, 0, false);
		c->iov = NULL;
	}
	m->npopped += n;
}

/* The device uses popped chains in any order, and writes some of their bytes. */
static void model_put(struct model *m)
{
	unsigned n = rand_below(&m->rand, m->npopped + 1);

	while (n--) {
		unsigned i = rand_below(&m->rand, 3) ? 0 : rand_below(&m->rand, m->npopped);
		struct token *t = &m->token[m->popped[i].id];

		t->written = rand_below(&m->rand, t->wlen + 1);
		stamp_pieces(t->v + t->nr, t->serial, t->written, 1, true);
		t->put = true;
		vq_dev_put(&m->rig.dev, m->popped[i].id, t->written);
		memmove(&m->popped[i], &m->popped[i + 1],
			(--m->npopped - i) * sizeof(struct chain));
		m->put++;
	}
	if (rand_below(&m->rand, 2)) {
		bool any = m->used != m->put, call = vq_dev_publish(&m->rig.dev);

		m->used = m->put;
		if (m->want_call && any && m->used >= m->call_at) {
			assert_true(call);
			m->want_call = 0;
		}
	}
}

static void model_get(struct model *m)
{
	unsigned n = rand_below(&m->rand, m->size + 1);
	uint32_t written, cap;
	struct token *t;

	if (rand_below(&m->rand, 2))
		assert_int_equal(vq_drv_pending(&m->rig.drv), m->used - m->got);
	while (n-- && (t = vq_drv_get(&m->rig.drv, &written, &cap))) {
		assert_true(t->out && t->put);
		assert_int_equal(written, t->written);
		assert_int_equal(cap, t->wlen);
		stamp_pieces(t->v + t->nr, t->serial, written, 1, false);
		t->out = t->put = false;
		m->got++;
		m->want_call = 0; /* the wish counted from before */
	}
	if (n != UINT32_MAX)
		assert_int_equal(m->got, m->used);
	assert_null(m->rig.drv.broken);
}

static void model_sleep(struct model *m)
{
	if (rand_below(&m->rand, 2)) { /* the device */
		unsigned more = 1 + rand_below(&m->rand, m->size);

		m->kick_at = m->put + m->npopped + more;
		m->want_kick = !vq_dev_arm(&m->rig.dev, more);
		assert_int_equal(m->want_kick, m->shown < m->kick_at);
	} else if (m->added > m->got && m->added == m->shown) {
		unsigned more = 1 + rand_below(&m->rand, (unsigned)(m->added - m->got));

		m->call_at = m->got + more;
		m->want_call = !vq_drv_arm(&m->rig.drv, more);
		assert_int_equal(m->want_call, m->used < m->call_at);
	}
}

static void model_step(struct model *m)
{
	switch (rand_below(&m->rand, 8)) {
	case 0:
	case 1:
		for (unsigned n = rand_below(&m->rand, m->size + 1); n--;)
			model_add(m);
		break;
	case 2:
		model_publish(m);
		break;
	case 3:
		model_pop(m);
		break;
	case 4:
	case 5:
		model_put(m);
		break;
	case 6:
		model_get(m);
		break;
	default:
		model_sleep(m);
	}
}

static void model_run(const struct rig_config *c, uint64_t seed, unsigned chains)
{
	struct model m = {.size = c->size};

	rig_init(&m.rig, c);
	rand_init(&m.rand, seed);
	m.token = calloc(c->size, sizeof(*m.token));
	m.popped = calloc(c->size, sizeof(*m.popped));
	m.iov = calloc((size_t)c->size * PIECES, sizeof(*m.iov));
	while (m.got < chains)
		model_step(&m);

	/* whatever is out can be had back, once */
	unsigned out = m.rig.drv.nout;

	assert_int_equal(out, m.added - m.got);
	for (struct token *t; (t = vq_drv_detach(&m.rig.drv)); out--) {
		assert_true(t->out);
		t->out = false;
	}
	assert_int_equal(out, 0);
	vq_drv_reset(&m.rig.drv, 7);
	assert_int_equal(m.rig.drv.nfree, c->size);
	free(m.token);
	free(m.popped);
	free(m.iov);
	rig_fini(&m.rig);
}

static uint64_t seed_take(void)
{
	const char *s = getenv("SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : 20250203;

	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void random_schedules(void **state)
{
	uint64_t seed = seed_take();

	(void)state;
	for (unsigned size = 2; size <= 1024; size *= 2) {
		for (unsigned how = 0; how < 8; how++) {
			struct rig_config c = {
				.size = size,
				.event_idx = how & 1,
				.tables = how >> 1,
				.indirect = (how >> 1) % 3,
				.base = (uint16_t)(65536 - size * 3 / 2),
			};

			model_run(&c, seed + size * 8 + how, 600 + 4 * size);
		}
	}
}

/* Around 2^16 and back to where it began. */
static void every_wrap(void **state)
{
	uint64_t seed = seed_take();

	(void)state;
	model_run(&(struct rig_config){.size = 8, .event_idx = true, .tables = true}, seed, 70000);
	model_run(&(struct rig_config){.size = 2, .base = 65535}, seed, 70000);
}

/* ---- indirect tables ---- */

static void tables_used(void **state)
{
	struct rig r;
	struct iovec v[PIECES + 1];
	static const struct {
		bool tables;
		enum vq_indirect indirect;
		unsigned n, nfree; /* pieces; free before */
		int rc;
		unsigned took, table;
	} k[] = {
		{true, VQ_INDIRECT_ALWAYS, 1, 32, 0, 1, 0}, /* one piece is always direct */
		{true, VQ_INDIRECT_ALWAYS, 2, 32, 0, 1, 1},
		{true, VQ_INDIRECT_ALWAYS, 20, 1, 0, 1, 1},
		{true, VQ_INDIRECT_ALWAYS, 21, 32, 0, 21, 0}, /* no table is as long */
		{true, VQ_INDIRECT_ALWAYS, 21, 20, -ENOSPC, 0, 0},
		{true, VQ_INDIRECT_ALWAYS, 2, 0, -ENOSPC, 0, 0},
		{true, VQ_INDIRECT_AUTO, 2, 32, 0, 2, 0},
		{true, VQ_INDIRECT_AUTO, 20, 21, 0, 20, 0},
		{true, VQ_INDIRECT_AUTO, 20, 19, 0, 1, 1}, /* too few */
		{true, VQ_INDIRECT_AUTO, 2, 9, 0, 2, 0},
		{true, VQ_INDIRECT_AUTO, 2, 8, 0, 1, 1}, /* scarce: a quarter of the ring */
		{true, VQ_INDIRECT_AUTO, 1, 1, 0, 1, 0},
		{true, VQ_INDIRECT_NEVER, 2, 8, 0, 2, 0},
		{true, VQ_INDIRECT_NEVER, 20, 19, -ENOSPC, 0, 0},
		{false, VQ_INDIRECT_ALWAYS, 2, 32, 0, 2, 0}, /* not negotiated */
		{false, VQ_INDIRECT_AUTO, 20, 19, -ENOSPC, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(k) / sizeof(*k); i++) {
		rig_init(&r, &(struct rig_config){
				     .size = 32, .tables = k[i].tables, .indirect = k[i].indirect});
		for (unsigned p = 0; p <= PIECES; p++)
			v[p] = (struct iovec){r.data + 16 * p, 16};
		while (r.drv.nfree > k[i].nfree)
			vq_drv_add1(&r.drv, r.data, 1, false, &r);
		assert_int_equal(vq_drv_add(&r.drv, v, k[i].n, 0, &r), k[i].rc);
		assert_int_equal(r.drv.nfree, k[i].nfree - k[i].took);
		assert_int_equal(r.drv.n_indirect, k[i].table);
		if (!k[i].rc)
			assert_int_equal(r.drv.n_desc, 32 - k[i].nfree + k[i].n);
		rig_fini(&r);
	}

	/* no longer than the ring [2.7.5.3.1] */
	rig_init(&r,
		&(struct rig_config){.size = 4, .tables = true, .indirect = VQ_INDIRECT_ALWAYS});
	assert_int_equal(vq_drv_add(&r.drv, v, 2, 2, &r), 0);
	assert_int_equal(vq_drv_add(&r.drv, v, 3, 2, &r), -EMSGSIZE);
	assert_int_equal(vq_drv_add(&r.drv, v, 0, 0, &r), -EMSGSIZE);
	assert_int_equal(r.drv.n_indirect, 1);
	rig_fini(&r);
}

/* What lies in memory, to the letter: direct chains and tables. [VIRTIO 1.2 2.7.5] */
static void layout(void **state)
{
	struct rig r;
	struct iovec v[3];

	(void)state;
	rig_init(
		&r, &(struct rig_config){.size = 8, .tables = true, .indirect = VQ_INDIRECT_NEVER});
	for (unsigned p = 0; p < 3; p++)
		v[p] = (struct iovec){r.data + 16 * p, 10 + p};
	assert_int_equal(vq_drv_add(&r.drv, v, 1, 2, &r), 0);
	assert_int_equal(r.drv.avail->idx, 0); /* not before publish */
	r.drv.indirect = VQ_INDIRECT_ALWAYS;
	assert_int_equal(vq_drv_add(&r.drv, v, 1, 2, &r), 0);
	assert_true(vq_drv_publish(&r.drv)); /* the first time always */
	assert_int_equal(r.drv.avail->idx, 2);
	assert_int_equal(r.drv.avail->ring[0], 0);
	assert_int_equal(r.drv.avail->ring[1], 3);
	assert_int_equal(r.drv.desc[0].addr, (uintptr_t)r.data);
	assert_int_equal(r.drv.desc[0].len, 10);
	assert_int_equal(r.drv.desc[0].flags, VRING_DESC_F_NEXT);
	assert_int_equal(r.drv.desc[0].next, 1);
	assert_int_equal(r.drv.desc[1].flags, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE);
	assert_int_equal(r.drv.desc[1].next, 2);
	assert_int_equal(r.drv.desc[2].flags, VRING_DESC_F_WRITE);
	assert_int_equal(r.drv.desc[3].flags, VRING_DESC_F_INDIRECT);
	assert_int_equal(r.drv.desc[3].len, 48);

	struct vring_desc *t = &r.drv.table[3 * VQ_TABLE];

	assert_int_equal(r.drv.desc[3].addr, (uintptr_t)t);
	assert_int_equal(t[1].flags, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE);
	assert_int_equal(t[1].next, 2);
	assert_int_equal(t[2].flags, VRING_DESC_F_WRITE);
	rig_fini(&r);
}

/* ---- notification ---- */

static void kicks_and_calls(void **state)
{
	(void)state;
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		struct rig r;
		uint16_t *wish;

		rig_init(
			&r, &(struct rig_config){.size = 8, .event_idx = event_idx, .base = 65534});
		wish = event_idx ? &r.drv.avail->ring[8] : &r.drv.avail->flags;
		assert_int_equal(r.drv.avail->flags, 0);
		vq_drv_add1(&r.drv, r.data, 1, false, &r);
		assert_true(vq_drv_publish(&r.drv));
		assert_false(vq_drv_publish(&r.drv)); /* nothing new */
		vq_dev_disarm(&r.dev);
		vq_drv_add1(&r.drv, r.data, 1, false, &r);
		assert_false(vq_drv_publish(&r.drv));
		assert_int_equal(r.drv.n_kick, 1);
		assert_int_equal(r.drv.n_suppressed, 1);

		vq_drv_disarm(&r.drv);
		assert_int_equal(*wish, event_idx ? 65533 : VRING_AVAIL_F_NO_INTERRUPT);
		assert_false(vq_drv_arm(&r.drv, 5)); /* two are out: no later than those */
		assert_int_equal(*wish, event_idx ? 65535 : 0);
		r.drv.used->idx = 65535;
		assert_false(vq_drv_arm(&r.drv, 2));
		assert_true(vq_drv_arm(&r.drv, 1));
		assert_int_equal(*wish, event_idx ? 65533 : VRING_AVAIL_F_NO_INTERRUPT);
		if (event_idx)
			assert_int_equal(r.drv.avail->flags, 0); /* [2.7.7.1] */

		/* whatever the device said before a reset */
		vq_drv_reset(&r.drv, 9);
		vq_dev_start(&r.dev, 9, event_idx, false);
		vq_dev_disarm(&r.dev);
		vq_drv_add1(&r.drv, r.data, 1, false, &r);
		assert_true(vq_drv_publish(&r.drv));
		rig_fini(&r);
	}
}

/* ---- lies ---- */

static struct rig lie;
static uint32_t lie_written, lie_cap;

/* Three chains out, of 10 writable bytes each; a fourth added and not shown. */
static void lie_init(void)
{
	rig_init(&lie, &(struct rig_config){.size = 8, .base = 65535});
	for (unsigned i = 0; i < 3; i++)
		vq_drv_add1(&lie.drv, lie.data, 10, true, &lie.drv.slot[i]);
	vq_drv_publish(&lie.drv);
	vq_drv_add1(&lie.drv, lie.data, 10, true, &lie.drv.slot[3]);
}

static void lie_use(uint32_t id, uint32_t len)
{
	struct vring_used *u = lie.drv.used;

	u->ring[u->idx++ & 7] = (struct vring_used_elem){id, len};
}

static void *lie_get(void)
{
	return vq_drv_get(&lie.drv, &lie_written, &lie_cap);
}

/* Broken for `why`, and it stays so; what is out can still be had back. */
static void lie_end(const char *why, unsigned out)
{
	assert_null(lie_get());
	assert_string_equal(lie.drv.broken, why);
	lie_use(1, 1);
	assert_null(lie_get());
	assert_false(vq_drv_arm(&lie.drv, 1));
	assert_int_equal(vq_drv_pending(&lie.drv), 0);
	while (vq_drv_detach(&lie.drv))
		out--;
	assert_int_equal(out, 0);
	vq_drv_reset(&lie.drv, 0);
	assert_null(lie.drv.broken);
	assert_int_equal(lie.drv.nfree, 8);
	rig_fini(&lie);
}

static void id_not_outstanding(void **state)
{
	(void)state;
	lie_init();
	lie_use(0, 1);
	lie_use(5, 1);
	assert_ptr_equal(lie_get(), &lie.drv.slot[0]); /* what came before it is good */
	lie_end("used entry names a chain that is not outstanding", 3);
}

static void id_twice(void **state)
{
	(void)state;
	lie_init();
	lie_use(1, 1);
	lie_use(1, 1);
	assert_ptr_equal(lie_get(), &lie.drv.slot[1]);
	lie_end("used entry names a chain that is not outstanding", 3);
}

/* The last descriptor of a chain instead of its head: Windows guests hung on such a device [T11]. */
static void trap_T11_id_of_last_descriptor(void **state)
{
	struct iovec v[2];

	(void)state;
	rig_init(&lie, &(struct rig_config){.size = 8});
	v[0] = (struct iovec){lie.data, 10};
	v[1] = (struct iovec){lie.data + 10, 10};
	assert_int_equal(vq_drv_add(&lie.drv, v, 0, 2, &lie), 0);
	vq_drv_publish(&lie.drv);
	lie_use(1, 20);
	lie_end("used entry names a chain that is not outstanding", 1);
}

static void id_out_of_range(void **state)
{
	static const uint32_t id[] = {8, 9, 255, 65535, 65536, 0x10001, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(id) / sizeof(*id); i++) {
		lie_init();
		lie_use(id[i], 1);
		lie_end("used entry names no descriptor of the ring", 4);
	}
}

static void used_index_jumps(void **state)
{
	static const uint16_t jump[] = {4, 5, 8, 9, 0x7fff, 0x8000, 0xffff};

	(void)state;
	for (unsigned i = 0; i < sizeof(jump) / sizeof(*jump); i++) {
		lie_init();
		lie.drv.used->idx = (uint16_t)(lie.drv.used->idx + jump[i]);
		lie_end("used index runs ahead of what is outstanding", 4);
		lie_init();
		lie.drv.used->idx = (uint16_t)(lie.drv.used->idx + jump[i]);
		assert_false(vq_drv_arm(&lie.drv, 1));
		lie_end("used index runs ahead of what is outstanding", 4);
	}
}

static void used_index_goes_back(void **state)
{
	(void)state;
	lie_init();
	lie_use(0, 1);
	lie_use(1, 1);
	assert_int_equal(vq_drv_pending(&lie.drv), 2);
	lie.drv.used->idx--;
	assert_int_equal(vq_drv_pending(&lie.drv), 0);
	lie_end("used index went back", 4);
}

static void more_than_capacity_is_told(void **state)
{
	(void)state;
	lie_init();
	lie_use(2, 11);
	lie_use(0, UINT32_MAX);
	lie_use(1, 0);
	assert_ptr_equal(lie_get(), &lie.drv.slot[2]);
	assert_int_equal(lie_written, 11);
	assert_int_equal(lie_cap, 10);
	assert_ptr_equal(lie_get(), &lie.drv.slot[0]);
	assert_int_equal(lie_written, UINT32_MAX);
	assert_ptr_equal(lie_get(), &lie.drv.slot[1]);
	assert_int_equal(lie_written, 0);
	assert_null(lie_get());
	assert_null(lie.drv.broken);
	rig_fini(&lie);
}

/* All of the shared memory may be spoiled at any time: what we remember is elsewhere. */
static void spoiled_memory(void **state)
{
	struct iovec v[3];

	(void)state;
	rig_init(&lie, &(struct rig_config){.size = 8, .tables = true});
	for (unsigned p = 0; p < 3; p++)
		v[p] = (struct iovec){lie.data + 16 * p, 10};
	for (unsigned round = 0; round < 100; round++) {
		assert_int_equal(vq_drv_add(&lie.drv, v, 1, 2, &lie), 0);
		assert_int_equal(vq_drv_add(&lie.drv, v, 3, 0, lie.data), 0);
		vq_drv_publish(&lie.drv);

		uint16_t a = lie.drv.avail->ring[(2 * round) % 8];
		uint16_t b = lie.drv.avail->ring[(2 * round + 1) % 8];
		uint16_t idx = lie.drv.used->idx;

		memset(lie.ring, (int)round, vq_drv_len(8, true));
		lie.drv.used->idx = idx;
		lie_use(b, 0);
		lie_use(a, 20);
		assert_ptr_equal(lie_get(), lie.data);
		assert_int_equal(lie_cap, 0);
		assert_ptr_equal(lie_get(), &lie);
		assert_int_equal(lie_cap, 20);
		assert_int_equal(lie.drv.nfree, 8);
	}
	rig_fini(&lie);
}

/* ---- two threads ---- */

#define THREAD_CHAINS 100000

struct both {
	struct rig rig;
	sem_t kick, call;
};

static void *device_thread(void *arg)
{
	struct both *b = arg;
	struct chain c[64];
	struct iovec iov[64];
	uint32_t at = 0;

	while (at < THREAD_CHAINS && !b->rig.dev.broken) {
		unsigned n = vq_dev_pop(&b->rig.dev, c, 64, iov, 64);

		for (unsigned i = 0; i < n; i++, at++) {
			memcpy(iov[i].iov_base, &at, sizeof(at));
			vq_dev_put(&b->rig.dev, c[i].id, 4);
		}
		if (vq_dev_publish(&b->rig.dev))
			sem_post(&b->call);
		if (!n && !vq_dev_arm(&b->rig.dev, 1))
			sem_wait(&b->kick);
	}
	return NULL;
}

/* Receive buffers go around; a wake-up that was lost would stop it for ever. */
static void threads_run(bool event_idx, unsigned size)
{
	struct both b;
	uint32_t got = 0, posted = 0, written, cap;
	pthread_t device;
	uint8_t *p;

	rig_init(&b.rig, &(struct rig_config){.size = size, .event_idx = event_idx});
	sem_init(&b.kick, 0, 0);
	sem_init(&b.call, 0, 0);
	assert_int_equal(pthread_create(&device, NULL, device_thread, &b), 0);
	while (got < THREAD_CHAINS && !b.rig.drv.broken) {
		unsigned n = 0;

		while (b.rig.drv.nfree && posted < THREAD_CHAINS) {
			p = b.rig.data + (size_t)vq_drv_next_id(&b.rig.drv) * SLOT;
			vq_drv_add1(&b.rig.drv, p, 4, true, p);
			posted++;
		}
		if (vq_drv_publish(&b.rig.drv))
			sem_post(&b.kick);
		while ((p = vq_drv_get(&b.rig.drv, &written, &cap))) {
			assert_int_equal(written, 4);
			assert_memory_equal(p, &got, 4);
			got++;
			n++;
		}
		if (!n && got < THREAD_CHAINS && !vq_drv_arm(&b.rig.drv, 1 + size / 2))
			sem_wait(&b.call);
	}
	assert_null(b.rig.drv.broken);
	pthread_join(device, NULL);
	assert_null(b.rig.dev.broken);
	sem_destroy(&b.kick);
	sem_destroy(&b.call);
	rig_fini(&b.rig);
}

static void threads(void **state)
{
	(void)state;
	threads_run(false, 64);
	threads_run(true, 64);
	threads_run(true, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(random_schedules),
		cmocka_unit_test(every_wrap),
		cmocka_unit_test(tables_used),
		cmocka_unit_test(layout),
		cmocka_unit_test(kicks_and_calls),
		cmocka_unit_test(id_not_outstanding),
		cmocka_unit_test(id_twice),
		cmocka_unit_test(trap_T11_id_of_last_descriptor),
		cmocka_unit_test(id_out_of_range),
		cmocka_unit_test(used_index_jumps),
		cmocka_unit_test(used_index_goes_back),
		cmocka_unit_test(more_than_capacity_is_told),
		cmocka_unit_test(spoiled_memory),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
