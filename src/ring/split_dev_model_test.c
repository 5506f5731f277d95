/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * split_dev against a plain model: random schedules of everything that is legal, with contents
 * stamped; long runs around the wrap; and two threads that must never lose a wake-up.
 */
#include "ring/split_dev_test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

/* The generator of these tests: splitmix64 needs one word of state. */
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	uint64_t z = (seed += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % n);
}

static void seed_take(void)
{
	const char *s = getenv("SEED");

	seed = s ? strtoull(s, NULL, 0) : 20240131;
	printf("SEED=%llu\n", (unsigned long long)seed);
}

struct model_chain {
	uint64_t serial;
	unsigned nr, nw;
	uint32_t rlen, wlen, written;
	struct ring_sim_buf buf[TABLE];
	struct iovec *iov; /* what pop gave, while popped */
	unsigned niov;
};

/*
 * All indices are counts since the start, never reduced: chain i of the avail order is at
 * order[i % size]. Chains before `oldest` were all put; of [oldest, popped) some were.
 */
struct model {
	struct guest g;
	struct model_chain *by_head; /* what the driver has out at this head */
	uint16_t *order, *puts;      /* heads, in the order added; in the order put */
	bool *is_put;                /* by place in order */
	struct iovec *iov;           /* TABLE * 2 pieces for each head */
	uint64_t size, base;
	uint64_t added, shown, popped, oldest, put, published, collected;
	uint64_t kick_at; /* the driver kicks when shown reaches it; 0: never */
	uint64_t kicked, signalled;
	uint64_t n_kicks, n_calls, n_unpop;
	bool first;
};

static uint8_t stamp(uint64_t serial, uint32_t i, unsigned what)
{
	return (uint8_t)(serial * 31 + i * 7 + what * 101 + (i >> 8));
}

/* Write or check the stamp of `len` bytes that begin at byte `from` of a chain's part. */
static void stamp_buf(struct model *m, const struct ring_sim_buf *b, uint64_t serial, uint32_t from,
	unsigned what)
{
	for (uint32_t i = 0; i < b->len; i++)
		*guest_byte(&m->g, b->gpa + i) = stamp(serial, from + i, what);
}

static struct model_chain *model_order(struct model *m, uint64_t i)
{
	return &m->by_head[m->order[i % m->size]];
}

static void model_init(struct model *m, const struct ring_sim_config *c)
{
	*m = (struct model){.size = c->size, .base = c->base, .first = true};
	guest_init(&m->g, c);
	m->by_head = calloc(c->size, sizeof(*m->by_head));
	m->order = calloc(c->size, sizeof(*m->order));
	m->puts = calloc(c->size, sizeof(*m->puts));
	m->is_put = calloc(c->size, sizeof(*m->is_put));
	m->iov = calloc((size_t)c->size * TABLE * 2, sizeof(*m->iov));
	m->kick_at = 1; /* a queue starts armed */
}

static void model_fini(struct model *m)
{
	guest_fini(&m->g);
	free(m->by_head);
	free(m->order);
	free(m->puts);
	free(m->is_put);
	free(m->iov);
}

/* Driver: one more chain of a random shape, its readable part stamped. */
static void do_add(struct model *m)
{
	struct ring_sim *s = &m->g.sim;
	unsigned nfree = ring_sim_free(s);

	if (!nfree || m->added - m->oldest == m->size)
		return;

	bool indirect = s->table_len && below(3) == 0;
	unsigned most = indirect ? TABLE : nfree < TABLE ? nfree : TABLE;
	unsigned n = 1 + below(below(2) ? most : 1);
	struct model_chain c = {.serial = m->added, .nr = below(n + 1)};
	uint16_t slot = s->free[s->free_get & s->mask];
	uint64_t at = DATA_GPA + (uint64_t)slot * SLOT;

	c.nw = n - c.nr;
	for (unsigned i = 0; i < n; i++) {
		uint32_t *sum = i < c.nr ? &c.rlen : &c.wlen;

		c.buf[i] = (struct ring_sim_buf){at, below(4) ? below(SLOT / TABLE) : 0};
		if (i + 1 == n && !c.rlen && !c.wlen && !c.buf[i].len)
			c.buf[i].len = 1;
		at += c.buf[i].len;
		if (i < c.nr)
			stamp_buf(m, &c.buf[i], c.serial, *sum, 0);
		*sum += c.buf[i].len;
	}

	int head = ring_sim_add(s, c.buf, c.nr, c.nw, indirect);

	assert_int_equal(head, slot);
	m->by_head[head] = c;
	m->is_put[m->added % m->size] = false;
	m->order[m->added++ % m->size] = (uint16_t)head;
}

static void do_show(struct model *m)
{
	ring_sim_publish(&m->g.sim);
	m->shown = m->added;

	bool want = m->g.sim.event_idx ? m->kick_at > m->kicked && m->kick_at <= m->shown
				       : m->kick_at != 0;

	m->kicked = m->shown;
	assert_int_equal(ring_sim_kick(&m->g.sim), want);
	m->n_kicks += want;
}

static void check_popped(const struct model_chain *want, const struct chain *c)
{
	uint32_t at = 0;

	assert_int_equal(c->rlen, want->rlen);
	assert_int_equal(c->wlen, want->wlen);
	for (unsigned i = 0; i < c->nr; i++)
		for (size_t j = 0; j < c->iov[i].iov_len; j++, at++)
			assert_int_equal(
				((uint8_t *)c->iov[i].iov_base)[j], stamp(want->serial, at, 0));
	assert_int_equal(at, want->rlen);
	for (unsigned i = 0; i < c->nw; i++)
		at += (uint32_t)c->iov[c->nr + i].iov_len;
	assert_int_equal(at, want->rlen + want->wlen);
}

static void do_pop(struct model *m)
{
	struct chain chain[16];
	struct iovec iov[64];
	unsigned max = 1 + below(16), niov = below(8) ? 64 : below(20);
	unsigned n = vq_dev_pop(&m->g.vq, chain, max, iov, niov);
	uint64_t there = m->shown - m->popped;
	unsigned used = 0;

	assert_null(m->g.vq.broken);
	assert_true(n <= there && n <= max);
	for (unsigned i = 0; i < n; i++, m->popped++) {
		struct model_chain *c = model_order(m, m->popped);

		assert_int_equal(chain[i].id, m->order[m->popped % m->size]);
		assert_ptr_equal(chain[i].iov, iov + used);
		check_popped(c, &chain[i]);
		c->niov = chain[i].nr + chain[i].nw;
		used += c->niov;
		assert_true(used <= niov);
		/* keep its writable pieces: they stay good until put */
		c->iov = m->iov + (size_t)chain[i].id * TABLE * 2;
		c->niov = chain[i].nw;
		memcpy(c->iov, chain[i].iov + chain[i].nr, chain[i].nw * sizeof(*iov));
	}
	/* fewer than there are: only for want of room, which TABLE pieces and a border need */
	if (n < there && n < max)
		assert_true(niov - used < TABLE + 1);
}

/* Chains not yet put at the end of what was popped: they may go back. */
static unsigned unpoppable(struct model *m)
{
	unsigned n = 0;

	while (n < m->popped - m->oldest && !m->is_put[(m->popped - n - 1) % m->size])
		n++;
	return n;
}

static void do_unpop(struct model *m)
{
	unsigned most = unpoppable(m);

	if (!most)
		return;

	unsigned n = 1 + below(most);

	vq_dev_unpop(&m->g.vq, n);
	m->popped -= n;
	m->n_unpop += n;
}

/* The device writes and puts one of those popped; mostly the oldest. */
static void do_put(struct model *m)
{
	if (m->oldest == m->popped)
		return;

	uint64_t i = m->oldest + (below(4) ? 0 : below((uint32_t)(m->popped - m->oldest)));

	if (m->is_put[i % m->size])
		return;

	struct model_chain *c = model_order(m, i);
	uint32_t at = 0;

	c->written = below(c->wlen + 1);
	for (unsigned p = 0; p < c->niov; p++)
		for (size_t j = 0; j < c->iov[p].iov_len && at < c->written; j++, at++)
			((uint8_t *)c->iov[p].iov_base)[j] = stamp(c->serial, at, 1);
	assert_int_equal(at, c->written);
	m->is_put[i % m->size] = true;
	if (!c->written && below(2)) {
		struct chain one = {.id = m->order[i % m->size]};

		vq_dev_put_read(&m->g.vq, &one, 1);
	} else {
		vq_dev_put(&m->g.vq, m->order[i % m->size], c->written);
	}
	m->puts[m->put++ % m->size] = m->order[i % m->size];
	while (m->oldest < m->popped && m->is_put[m->oldest % m->size])
		m->oldest++;
}

/* The rule, counted out: is the entry whose index the driver named among the new ones? */
static bool call_wanted(struct model *m)
{
	const struct vring_avail *a = m->g.sim.avail;

	if (m->first)
		return true;
	if (!m->g.sim.event_idx)
		return !(a->flags & VRING_AVAIL_F_NO_INTERRUPT);
	for (uint64_t i = m->signalled; i < m->put; i++)
		if ((uint16_t)(m->base + i) == a->ring[m->size])
			return true;
	return false;
}

static void do_publish(struct model *m)
{
	bool want = m->put > m->published && call_wanted(m);

	assert_int_equal(m->g.sim.used->idx, (uint16_t)(m->base + m->published));
	assert_int_equal(vq_dev_publish(&m->g.vq), want);
	assert_int_equal(m->g.sim.used->idx, (uint16_t)(m->base + m->put));
	if (m->put > m->published) {
		m->first = false;
		m->signalled = m->put;
	}
	m->published = m->put;
	m->n_calls += want;
}

static void do_collect(struct model *m)
{
	uint32_t id, len;

	assert_int_equal(ring_sim_pending(&m->g.sim), m->published - m->collected);
	if (!ring_sim_get(&m->g.sim, &id, &len))
		return;

	assert_int_equal(id, m->puts[m->collected++ % m->size]);

	const struct model_chain *c = &m->by_head[id];
	uint32_t at = 0;

	assert_int_equal(len, c->written);
	for (unsigned i = c->nr; i < c->nr + c->nw; i++)
		for (uint32_t j = 0; j < c->buf[i].len && at < len; j++, at++)
			assert_int_equal(
				*guest_byte(&m->g, c->buf[i].gpa + j), stamp(c->serial, at, 1));
	assert_int_equal(m->g.sim.n_bad, 0);
}

static void do_arm(struct model *m)
{
	unsigned more = below(4) ? 1 : below((uint32_t)m->size + 3);
	unsigned wait = more > m->size ? (unsigned)m->size : more ? more : 1;
	bool there = vq_dev_arm(&m->g.vq, more);

	assert_int_equal(there, m->shown - m->popped >= wait);
	assert_int_equal(vq_dev_available(&m->g.vq), m->shown - m->popped);
	m->kick_at = there ? 0 : m->popped + wait;
	if (!there && !m->g.sim.event_idx)
		m->kick_at = 1;
}

static void do_wish(struct model *m)
{
	if (below(2)) {
		ring_sim_disarm(&m->g.sim);
		return;
	}

	unsigned more = 1 + below((uint32_t)m->size);

	assert_int_equal(ring_sim_arm(&m->g.sim, more), m->published - m->collected >= more);
}

static void step(struct model *m)
{
	switch (below(12)) {
	case 0:
	case 1:
		do_add(m);
		break;
	case 2:
		do_show(m);
		break;
	case 3:
	case 4:
		do_pop(m);
		break;
	case 5:
		do_unpop(m);
		break;
	case 6:
	case 7:
		do_put(m);
		break;
	case 8:
		do_publish(m);
		break;
	case 9:
	case 10:
		do_collect(m);
		break;
	default:
		switch (below(3)) {
		case 0:
			do_arm(m);
			break;
		case 1:
			vq_dev_disarm(&m->g.vq);
			m->kick_at = 0;
			break;
		default:
			do_wish(m);
		}
	}
	assert_int_equal(m->g.vq.last_avail, (uint16_t)(m->base + m->popped));
}

/* Some hundred steps in which one thing is done less often: rings get full, and empty. */
static void schedule(const struct ring_sim_config *c, unsigned steps)
{
	struct model m;

	model_init(&m, c);
	for (unsigned i = 0; i < steps; i++) {
		unsigned burst = below(16) ? 1 : below(2 * c->size + 2);

		if (burst == 1) {
			step(&m);
			continue;
		}

		void (*const one)(struct model *) = (void (*const[])(struct model *)){
			do_add, do_pop, do_put, do_collect}[below(4)];

		while (burst--)
			one(&m);
	}
	assert_true(m.collected > 0 && m.n_calls > 0 && m.n_kicks > 0);
	assert_true(c->size == 1 || m.n_unpop > 0);
	assert_int_equal(m.g.vq.n_popped, m.popped);
	assert_int_equal(vq_dev_stop((do_publish(&m), &m.g.vq)), (uint16_t)(m.base + m.popped));
	model_fini(&m);
}

static void random_schedules(void **state)
{
	static const unsigned sizes[] = {1, 2, 4, 16, 256, 1024};
	static const uint16_t bases[] = {0, 1, 65530, 65535, 32767, 40000};

	(void)state;
	seed_take();
	for (unsigned i = 0; i < 4 * COUNT(sizes) * COUNT(bases); i++) {
		struct ring_sim_config c = {
			.size = sizes[i % COUNT(sizes)],
			.base = bases[i / COUNT(sizes) % COUNT(bases)],
			.event_idx = below(2),
			.table = below(2) ? TABLE : 0,
		};

		schedule(&c, 4000);
	}
}

/* The largest ring, and the smallest, around the index twice. */
static void long_runs(void **state)
{
	static const unsigned sizes[] = {1, 8, RING_MAX};

	(void)state;
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		struct guest g;
		struct chain c[64];
		struct iovec iov[64];
		uint64_t got = 0, collected = 0;

		guest_init(&g, &(struct ring_sim_config){
				       .size = sizes[i], .base = 65500, .event_idx = true});
		while (got < 140000) {
			while (ring_sim_free(&g.sim))
				ring_sim_add1(
					&g.sim, DATA_GPA + ring_sim_free(&g.sim) % 16, 1, false);
			ring_sim_publish(&g.sim);
			for (unsigned n; (n = vq_dev_pop(&g.vq, c, 64, iov, 64)); got += n)
				vq_dev_put_read(&g.vq, c, n);
			vq_dev_publish(&g.vq);
			collected += ring_sim_drain(&g.sim, UINT32_MAX);
			assert_int_equal(collected, got);
		}
		assert_null(g.vq.broken);
		assert_int_equal(g.sim.n_bad, 0);
		guest_fini(&g);
	}
}

/* Two threads that sleep whenever they may: a lost wake-up would hang them for ever. */
#define ROUNDS 20000

static struct {
	struct guest g;
	sem_t kick, call;
	pthread_t device;
} two;

static void *device_run(void *arg)
{
	uint64_t done = 0;
	struct chain c[16];
	struct iovec iov[16];

	while (done < ROUNDS) {
		unsigned n = vq_dev_pop(&two.g.vq, c, 16, iov, 16);

		for (unsigned i = 0; i < n; i++) {
			*(uint32_t *)iov[i].iov_base = (uint32_t)(done + i);
			vq_dev_put(&two.g.vq, c[i].id, 4);
		}
		done += n;
		if (vq_dev_publish(&two.g.vq))
			sem_post(&two.call);
		if (!n && !vq_dev_arm(&two.g.vq, 1))
			sem_wait(&two.kick);
	}
	return arg;
}

static void driver_run(void)
{
	uint32_t id, len, added = 0, got = 0;

	while (got < ROUNDS) {
		while (ring_sim_free(&two.g.sim) && added < ROUNDS) {
			ring_sim_add1(&two.g.sim, DATA_GPA + added % 16 * 4, 4, true);
			added++;
		}
		ring_sim_publish(&two.g.sim);
		if (ring_sim_kick(&two.g.sim))
			sem_post(&two.kick);
		if (ring_sim_arm(&two.g.sim, 1)) {
			while (ring_sim_get(&two.g.sim, &id, &len)) {
				assert_int_equal(
					*guest_byte(&two.g, DATA_GPA + got % 16 * 4), (uint8_t)got);
				got++;
			}
		} else {
			sem_wait(&two.call);
		}
	}
}

static void no_wakeup_is_lost(void **state)
{
	(void)state;
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		guest_init(&two.g, &(struct ring_sim_config){
					   .size = 4, .base = 65000, .event_idx = event_idx});
		sem_init(&two.kick, 0, 0);
		sem_init(&two.call, 0, 0);
		assert_int_equal(pthread_create(&two.device, NULL, device_run, NULL), 0);
		driver_run();
		pthread_join(two.device, NULL);
		assert_null(two.g.vq.broken);
		assert_int_equal(two.g.sim.n_bad, 0);
		sem_destroy(&two.kick);
		sem_destroy(&two.call);
		guest_fini(&two.g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_schedules),
		cmocka_unit_test(long_runs),
		cmocka_unit_test(no_wakeup_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
