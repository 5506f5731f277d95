/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path: driver -> device -> network -> device -> driver in one process, linked with the C library's
 * allocator, its locks and both ways to copy wrapped: once it runs nothing is allocated or freed, no
 * lock is taken, and a byte of payload is copied once, from one guest's memory to the other's.
 */
#include "port/vdrv_rig.h"

#include <pthread.h>

#include "base/copy.h"
#include "fabric/fabric.h"
#include "port/fake.h"

#define MAC_A   0x020000000001
#define MAC_B   0x020000000002
#define PAYLOAD 60000 /* of a super-packet, in two chunks */
#define HEADERS 54

/* the C library, counted */

static struct {
	uint64_t calls; /* of the allocator */
	uint64_t locks;
	uint64_t bytes; /* copied */
	bool inside;    /* of a copy that is counted already */
} n;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void __real_free(void *);
void *__real_aligned_alloc(size_t, size_t);
void *__real_memcpy(void *, const void *, size_t);
void __real_copy_long(uint8_t *, const uint8_t *, size_t);
int __real_pthread_mutex_lock(pthread_mutex_t *);
int __real_pthread_spin_lock(pthread_spinlock_t *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void __wrap_free(void *);
void *__wrap_aligned_alloc(size_t, size_t);
void *__wrap_memcpy(void *, const void *, size_t);
void __wrap_copy_long(uint8_t *, const uint8_t *, size_t);
int __wrap_pthread_mutex_lock(pthread_mutex_t *);
int __wrap_pthread_spin_lock(pthread_spinlock_t *);

void *__wrap_malloc(size_t size)
{
	n.calls++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	n.calls++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	n.calls++;
	return __real_realloc(p, size);
}

void __wrap_free(void *p)
{
	n.calls++;
	__real_free(p);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	n.calls++;
	return __real_aligned_alloc(align, size);
}

/* Loads into registers, of a checksum, are memcpy, too, where a compiler does not optimise. */
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	if (!n.inside && size > 64)
		n.bytes += size;
	return __real_memcpy(to, from, size);
}

void __wrap_copy_long(uint8_t *to, const uint8_t *from, size_t size)
{
	n.bytes += size;
	n.inside = true;
	__real_copy_long(to, from, size);
	n.inside = false;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	n.locks++;
	return __real_pthread_mutex_lock(m);
}

int __wrap_pthread_spin_lock(pthread_spinlock_t *s)
{
	n.locks++;
	return __real_pthread_spin_lock(s);
}

/* the path */

static struct path {
	struct loop loop;
	nsec_t now;
	struct fabric *fabric;
	struct rig a, b;
	struct chunk *payload[2];
} path;
static struct burst burst;

static void rig_join(struct rig *r, const char *name)
{
	rig_up(r, 1500);
	strcpy(r->d.port.name, name);
	memset(r->d.port.mac, 0, 6);
	assert_int_equal(fabric_attach(path.fabric, &r->d.port, NULL), 0);
}

static void path_init(const struct vdrv_config *a, uint64_t without_at_b)
{
	struct fabric_config fc = {.wait_us = 1000, .age_sec = 300, .seed = 1};
	struct vdrv_config b;

	vdrv_config_init(&b);
	memset(&path, 0, sizeof(path));
	assert_int_equal(loop_init(&path.loop, NULL), 0);
	path.now = NSEC_PER_SEC;
	path.loop.virtual_now = &path.now;
	path.loop.now = path.now;
	assert_int_equal(fabric_new(&path.fabric, &fc, &path.loop, NULL, NULL), 0);
	rig_driver(&path.a, a, &path.loop);
	rig_driver(&path.b, &b, &path.loop);
	path.b.features = vnet_features_close(path.b.features & ~without_at_b);
	rig_join(&path.a, "a");
	rig_join(&path.b, "b");
	for (unsigned i = 0; i < 2; i++) {
		path.payload[i] = chunk_get(&path.a.v.chunks, 3);
		assert_non_null(path.payload[i]);
		memset(chunk_data(&path.a.v.chunks, path.payload[i]), 0x5a, PAYLOAD / 2);
	}
}

static void path_fini(void)
{
	for (unsigned i = 0; i < 2; i++)
		chunk_put(&path.a.v.chunks, path.payload[i]);
	fabric_detach(path.fabric, &path.a.d.port);
	fabric_detach(path.fabric, &path.b.d.port);
	rig_down(&path.a);
	rig_down(&path.b);
	fabric_free(path.fabric);
	loop_fini(&path.loop);
}

static void run(void)
{
	for (unsigned i = 0; i < 4; i++) {
		rig_run(&path.a);
		rig_run(&path.b);
	}
}

/* A super-packet whose payload is shared, not copied. */
static struct pkt *super_make(void)
{
	static uint8_t made[FRAME_MAX];
	static struct offload off;
	struct chunk_pool *chunks = &path.a.v.chunks;
	struct pkt *p = pkt_new(&path.a.v.pkts, 16, HEADERS);

	assert_non_null(p);
	if (!off.gso)
		fake_tcp4(made, MAC_B, MAC_A, PAYLOAD, 1448, 1, &off);
	memcpy(p->head, made, HEADERS);
	p->off = off;
	for (unsigned i = 0; i < 2; i++) {
		chunk_ref(path.payload[i]);
		assert_true(pkt_add(p, path.payload[i], chunk_data(chunks, path.payload[i]),
			PAYLOAD / 2, PAYLOAD / 2, false));
	}
	return p;
}

static struct pkt *plain_make(uint64_t dst, uint32_t len)
{
	struct pkt *p = pkt_new(&path.a.v.pkts, 16, len);

	assert_non_null(p);
	fake_eth(p->head, dst, MAC_A, 0, len, 1);
	p->len = p->head_len = len;
	return p;
}

static void send(struct pkt *p)
{
	assert_int_equal(vdrv_send(&path.a.v.port, &p, 1), 1);
	vdrv_flush(&path.a.v.port);
	run();
}

/* Both ways to receive, in turn. Returns the bytes. */
static uint64_t collect(bool lent)
{
	struct port *port = &path.b.v.port;
	struct pkt *p;
	uint64_t sum = 0;

	for (;;) {
		if (lent) {
			unsigned got = port_pull(&port->q, &burst, BURST_FRAMES);

			for (unsigned i = 0; i < got; i++)
				sum += frame_len(&burst.f[i]);
			port_settle(&port->q, &burst, got);
			if (!got && !port->ops->arm(&port->q))
				return sum;
		} else if (vdrv_receive(port, &p, 1)) {
			sum += p->len;
			pkt_free(p);
		} else if (!port->ops->arm(&port->q)) {
			return sum;
		}
		run();
	}
}

/* All kinds of frames; the receiver is full, now and then, and the sender waits, or gives up. */
static void mixture(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		send(super_make());
		send(plain_make(MAC_B, 64));
		send(plain_make(MAC_B, 1514));
		send(plain_make(0xffffffffffff, 100));
		send(plain_make(0x020000000009, 200));
		for (unsigned k = 0; i % 8 == 7 && k < 20; k++) {
			send(super_make());
			path.now += 100 * NSEC_PER_USEC;
			run();
		}
		collect(i & 1);
		path.now += NSEC_PER_MSEC;
		run();
	}
}

#define B_GUEST (B(GUEST_CSUM) | B(GUEST_TSO4) | B(GUEST_TSO6))

static const uint64_t lacks[] = {0, B(EVENT_IDX), B(MRG_RXBUF), B_GUEST, B_GUEST | B(MRG_RXBUF)};

#define N_LACKS (sizeof(lacks) / sizeof(*lacks))

static void nothing_is_allocated_or_locked(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * N_LACKS; i++) {
		const struct port_counters *out = &path.b.d.port.q.out;
		struct vdrv_config a;
		uint64_t calls, locks, frames;

		vdrv_config_init(&a);
		if (i & 1) {
			a.inline_header = false;
			a.indirect = VQ_INDIRECT_ALWAYS;
		}
		path_init(&a, lacks[i / 2]);
		mixture(2);
		calls = n.calls;
		locks = n.locks;
		frames = out->frames;
		assert_true(calls > 0);
		mixture(50);
		assert_int_equal(n.calls, calls);
		assert_int_equal(n.locks, locks);
		assert_true(out->frames > frames + 250);
		path_fini();
	}
}

/* What is copied besides: heads, headers, their own bookkeeping; for each frame or segment. */
#define BESIDES 600

static void a_byte_is_copied_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_LACKS; i++) {
		const bool cut = lacks[i] & B(GUEST_TSO4);
		const uint64_t segments = cut ? PAYLOAD / 1448 + 1 : 1;
		uint64_t came = 0, bytes = 0;
		struct vdrv_config a;

		vdrv_config_init(&a);
		path_init(&a, lacks[i]);
		mixture(1);
		for (unsigned k = 0; k < 20; k++) {
			struct pkt *p = super_make();
			uint64_t before = n.bytes;

			send(p);
			bytes += n.bytes - before;
			came += collect(true);
		}
		assert_int_equal(came, 20 * (PAYLOAD + segments * HEADERS));
		assert_in_range(bytes, 20 * PAYLOAD, 20 * (PAYLOAD + segments * BESIDES));
		path_fini();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_allocated_or_locked),
		cmocka_unit_test(a_byte_is_copied_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
