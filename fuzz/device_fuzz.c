/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device_fuzz: a network of three guests in virtual time. One is the input: its memory, both of its
 * rings and what it does between turns, and in the middle of them. Two are honest: one takes every
 * offload and mergeable buffers, one nothing at all; the input says when they send, post and collect.
 *
 *	u8 the hostile guest lacks (mod 8) | u8 log2 of its rings (mod 9) | u8 log2 of the honest
 *	guests' receive rings, 4 bits each (mod 7) | u8 flags: 1 poll
 *	u16 bytes of image, the image of its memory from guest address 0 on
 *	script: one byte per step, its low 4 bits say what, the high 4 bits how much
 *
 * The hostile guest's memory is three neighbours: IMAGE bytes with the rings (as in `struct lay`),
 * BLANK bytes that are the same 64 KiB again and again, so that long chains cost nothing, and a last
 * piece that is no whole page. All numbers are little-endian.
 *
 * Whatever it does: an honest guest's memory changes where it posted buffers and nowhere else, what it
 * collects is whole packets, its own secret and the other's are never met in anybody's memory, frames
 * between the two are exact and in order; a turn reads a bounded number of descriptors and cuts a
 * bounded number of segments; and when nobody does anything any more, the network comes to rest.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "port/vdev.h"
#include "ring/ring_sim.h"
#include "wire/bytes.h"
#include "wire/eth.h"

#define IMAGE UINT64_C(65536)
#define BLANK (UINT64_C(8) << 20)
#define PAGE  UINT64_C(65536) /* what BLANK shows */
#define LAST  UINT64_C(1000)

/* an honest guest's memory */
#define SLOT    1600 /* a buffer has no more */
#define RX_MAX  64
#define TX_SIZE 16
#define TX_RING 4096
#define RX_AT   8192
#define TX_AT   (RX_AT + RX_MAX * SLOT)
#define HONEST  (TX_AT + TX_SIZE * SLOT)

#define ROUNDS 200000 /* until the network is at rest */
#define STAMP  21     /* bytes of an honest frame before its filling, less the Ethernet header */

enum { HOSTILE, RICH, POOR, GUESTS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct guest {
	struct vdev dev;
	struct run *run;
	unsigned number;
	uint8_t *mem;
	struct ring_sim ring[VDEV_QUEUES];

	/* honest */
	uint8_t *shadow; /* what mem must be */
	uint64_t secret;
	uint32_t len[RX_MAX]; /* of what is posted, by head */
	uint32_t sent, seen;  /* frame numbers */
};

/* What the hostile guest does when somebody is notified: in the middle of a turn. */
struct ambush {
	const uint8_t *bytes;
	size_t n;
	uint64_t at;
};

struct run {
	const uint8_t *in; /* what is left of the input */
	size_t left;
	struct loop loop;
	nsec_t now, step;
	struct fabric *fabric,
		*kept[2]; /* without and with polling: what an input leaves there is nothing */
	struct guest g[GUESTS];
	uint8_t *blank, *last;
	uint64_t features; /* of the hostile guest */
	bool blank_gone;
	uint16_t desc[VDEV_QUEUES]; /* of the hostile guest: next to fill */
	uint64_t table[VDEV_QUEUES];
	uint32_t sum
		[VDEV_QUEUES]; /* of the lengths of its chains since the last round, modulo 2^32 */
	uint64_t key;          /* in every honest frame */
	struct ambush ambush;
};

#define B(name) VNET_BIT(name)

static const uint64_t without[] = {
	0,
	B(MRG_RXBUF),
	B(EVENT_IDX),
	B(INDIRECT_DESC),
	B(VERSION_1) | B(MRG_RXBUF) | B(ANY_LAYOUT),
	B(GUEST_CSUM),
	B(GUEST_TSO4) | B(GUEST_TSO6) | B(GUEST_USO4) | B(GUEST_USO6),
	~UINT64_C(0),
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

/* No input contains what is made of its own hash. */
static uint64_t secret_of(const uint8_t *data, size_t len, uint64_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) + n;

	for (size_t i = 0; i < len; i++)
		h = (h ^ data[i]) * UINT64_C(0x100000001b3);
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

static bool met(const void *in, size_t len, uint64_t secret)
{
	return memmem(in, len, &secret, sizeof(secret));
}

/* what devices tell */

static void ambush_spring(struct run *r)
{
	struct ambush a = r->ambush;

	r->ambush.n = 0;
	for (size_t i = 0; i < a.n && a.at + i < IMAGE; i++)
		r->g[HOSTILE].mem[a.at + i] = a.bytes[i];
}

static bool notify(void *ctx, unsigned queue)
{
	struct guest *g = ctx;

	check(queue < VDEV_QUEUES);
	ambush_spring(g->run);
	return true;
}

static void broke(void *ctx, unsigned queue, const char *reason)
{
	struct guest *g = ctx;

	check(queue < VDEV_QUEUES && reason && g->number == HOSTILE);
}

/* set-up */

static void rings_start(struct guest *g)
{
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		struct ring_sim *s = &g->ring[i];

		check(!vdev_set_ring_size(&g->dev, i, s->size, NULL));
		check(!vdev_set_ring_addr(
			&g->dev, i, s->desc_gpa, s->avail_gpa, s->used_gpa, NULL));
		vdev_set_ring_base(&g->dev, i, s->used_next);
		vdev_ring_enable(&g->dev, i, true);
		vdev_ring_start(&g->dev, i);
	}
}

static void guest_init(struct run *r, unsigned number)
{
	struct guest *g = &r->g[number];
	struct vdev_config c = {.mac = {2, 0, 0, 0, 0, (uint8_t)(number + 1)}, .mtu = 1500};
	static const char *const name[GUESTS] = {"hostile", "rich", "poor"};

	g->run = r;
	g->number = number;
	g->sent = g->seen = 0;
	vdev_init(&g->dev, name[number], &c, &r->loop, NULL);
	g->dev.notify = notify;
	g->dev.broke = broke;
	g->dev.ctx = g;
	check(!fabric_attach(r->fabric, &g->dev.port, NULL));
}

static void ring_init(struct guest *g, unsigned queue, uint64_t at, unsigned size)
{
	struct ring_sim_config c = {.mem = g->mem + at, .gpa = at, .size = size};

	c.event_idx = g->dev.features & B(EVENT_IDX);
	check(!ring_sim_init(&g->ring[queue], &c));
}

static void honest_init(struct run *r, unsigned number, uint64_t features, unsigned size)
{
	struct guest *g = &r->g[number];

	guest_init(r, number);
	g->mem = aligned_alloc(64, HONEST);
	g->shadow = malloc(HONEST);
	check(g->mem && g->shadow);
	for (unsigned i = 0; i < HONEST; i += sizeof(g->secret))
		memcpy(g->mem + i, &g->secret, sizeof(g->secret));
	check(!gmem_add(&g->dev.mem, 0, 0, HONEST, g->mem, NULL));
	check(!vdev_set_features(&g->dev, features, NULL));
	ring_init(g, VDEV_RX, 0, size);
	ring_init(g, VDEV_TX, TX_RING, TX_SIZE);
	memcpy(g->shadow, g->mem, HONEST);
	rings_start(g);
}

/* BLANK bytes of address space behind which there is nothing. */
static uint8_t *blank_map(void)
{
	int fd = memfd_create("blank", MFD_CLOEXEC);
	uint8_t *p = mmap(
		NULL, BLANK + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(fd >= 0 && !ftruncate(fd, PAGE) && p != MAP_FAILED);
	for (uint64_t at = 0; at < BLANK; at += PAGE)
		check(mmap(p + at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
			MAP_FAILED);
	close(fd);
	return p;
}

static void blank_come(struct run *r)
{
	check(!gmem_add(&r->g[HOSTILE].dev.mem, IMAGE, IMAGE, BLANK, r->blank, NULL));
	r->blank_gone = false;
}

static void hostile_init(struct run *r, unsigned lacks, unsigned size)
{
	struct guest *g = &r->g[HOSTILE];
	size_t tx, n;

	guest_init(r, HOSTILE);
	g->mem = aligned_alloc(64, IMAGE);
	r->last = calloc(1, LAST);
	check(g->mem && r->last);
	memset(g->mem, 0, IMAGE);
	memset(r->blank, 0, PAGE);
	check(!gmem_add(&g->dev.mem, 0, 0, IMAGE, g->mem, NULL));
	blank_come(r);
	check(!gmem_add(&g->dev.mem, IMAGE + BLANK, IMAGE + BLANK, LAST, r->last, NULL));
	r->features = vnet_features_close(vnet_features_all() & ~without[lacks % 8]);
	check(!vdev_set_features(&g->dev, r->features, NULL));
	tx = ring_sim_len(size, 0);
	ring_init(g, VDEV_RX, 0, size);
	ring_init(g, VDEV_TX, tx, size);
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		r->desc[i] = 0;
		r->table[i] = IMAGE - (i + 1) * vring_desc_len(512);
	}
	n = take(r, 2);
	if (n > r->left)
		n = r->left;
	memcpy(g->mem, r->in, n < IMAGE ? n : IMAGE);
	r->in += n;
	r->left -= n;
	rings_start(g);
}

static void guest_fini(struct run *r, unsigned number)
{
	struct guest *g = &r->g[number];

	fabric_detach(r->fabric, &g->dev.port);
	vdev_fini(&g->dev);
	for (unsigned i = 0; i < VDEV_QUEUES; i++)
		ring_sim_fini(&g->ring[i]);
	free(g->mem);
	free(g->shadow);
	g->mem = g->shadow = NULL;
}

/* the hostile guest's steps */

static void hostile_avail(struct run *r, unsigned queue, uint16_t head)
{
	ring_sim_add_raw(&r->g[HOSTILE].ring[queue], head);
	ring_sim_publish(&r->g[HOSTILE].ring[queue]);
}

/* One buffer, or two of which the other is blank. */
static void hostile_chain(struct run *r, unsigned queue, uint64_t at, uint32_t len, uint32_t more)
{
	struct ring_sim *s = &r->g[HOSTILE].ring[queue];
	uint16_t head = r->desc[queue]++ & s->mask, next = 0;
	uint16_t write = queue == VDEV_RX ? VRING_DESC_F_WRITE : 0;

	if (more) {
		next = r->desc[queue]++ & s->mask;
		s->desc[next] = (struct vring_desc){IMAGE, more, write, 0};
	}
	s->desc[head] = (struct vring_desc){
		at, len, (uint16_t)(write | (more ? VRING_DESC_F_NEXT : 0)), next};
	r->sum[queue] += len + more;
	hostile_avail(r, queue, head);
}

/* Lengths with which sums go wrong are a little less than one of these, */
static const uint32_t lengths[7] = {VNET_HDR_MAX + FRAME_MAX + 1, 1u << 16, BURST_BYTES + 1, BLANK,
	1u << 31, UINT32_MAX, 1u << 12};

/* or than what makes them wrap. */
static uint32_t length_of(struct run *r, unsigned queue, unsigned which)
{
	return which < 7 ? lengths[which] - take(r, 2) : 64 - r->sum[queue] - take(r, 1);
}

/* A chain of `len` bytes, up to 2^32 - 1, out of BLANK, again and again. */
static void hostile_long(struct run *r, unsigned queue, uint32_t len)
{
	struct ring_sim *s = &r->g[HOSTILE].ring[queue];
	struct vring_desc *t = (void *)(r->g[HOSTILE].mem + r->table[queue]);
	unsigned n = len / BLANK + !!(len % BLANK);
	uint16_t head = r->desc[queue]++ & s->mask;
	uint16_t write = queue == VDEV_RX ? VRING_DESC_F_WRITE : 0;

	for (unsigned i = 0; i < n; i++) {
		t[i] = (struct vring_desc){
			IMAGE, BLANK, write | VRING_DESC_F_NEXT, (uint16_t)(i + 1)};
		if (i == n - 1)
			t[i] = (struct vring_desc){IMAGE, (uint32_t)(len - i * BLANK), write, 0};
	}
	s->desc[head] = (struct vring_desc){
		r->table[queue], (uint32_t)vring_desc_len(n), VRING_DESC_F_INDIRECT, 0};
	r->sum[queue] += len;
	hostile_avail(r, queue, head);
}

static void hostile_write(struct run *r, unsigned n)
{
	uint64_t at = take(r, 2);

	for (unsigned i = 0; i < n && at + i < IMAGE; i++)
		r->g[HOSTILE].mem[at + i] = (uint8_t)take(r, 1);
}

static void hostile_ambush(struct run *r, unsigned n)
{
	uint64_t at = take(r, 2);

	if (n > r->left)
		n = (unsigned)r->left;
	r->ambush = (struct ambush){r->in, n, at};
	r->in += n;
	r->left -= n;
}

/* What a front-end may do on its guest's behalf. */
static void hostile_control(struct run *r, unsigned n)
{
	struct guest *g = &r->g[HOSTILE];
	unsigned queue = n & 1;

	switch (n >> 1) {
	case 0:
		vdev_set_ring_base(&g->dev, queue, vdev_ring_stop(&g->dev, queue));
		vdev_ring_start(&g->dev, queue);
		break;
	case 1:
		vdev_ring_enable(&g->dev, queue, !g->dev.ring[queue].enabled);
		break;
	case 2:
		vdev_mem_begin(&g->dev);
		if (r->blank_gone)
			blank_come(r);
		else
			r->blank_gone = !gmem_remove(&g->dev.mem, IMAGE, IMAGE, BLANK);
		vdev_mem_end(&g->dev);
		break;
	case 3:
		vdev_send_rarp(&g->dev, g->mem + take(r, 2) % (IMAGE - 6));
		break;
	case 4:
		vdev_reset(&g->dev);
		r->features = vnet_features_close(vnet_features_all() & ~without[take(r, 1) % 8]);
		check(!vdev_set_features(&g->dev, r->features, NULL));
		rings_start(g);
		break;
	default:
		vdev_kicked(&g->dev, queue);
	}
}

/* the honest guests' steps */

/* Descriptors and avail ring: written by the driver only, so before it does they are as they were. */
static void honest_own(struct guest *g, unsigned queue, bool done)
{
	const uint64_t at = g->ring[queue].desc_gpa, n = g->ring[queue].used_gpa - at;

	check(done || !memcmp(g->mem + at, g->shadow + at, n));
	memcpy(g->shadow + at, g->mem + at, n);
}

/* Buffers of one length, in one piece or two: the slot of its first descriptor, cut in the middle. */
static void honest_post(struct guest *g, unsigned n, uint32_t len)
{
	struct ring_sim *s = &g->ring[VDEV_RX];
	unsigned pieces = len & 1 ? 2 : 1;

	len = 64 + len % (SLOT - 64);
	honest_own(g, VDEV_RX, false);
	for (; n && ring_sim_free(s) >= pieces; n--) {
		uint64_t at = RX_AT + SLOT * (uint64_t)s->free[s->free_get & s->mask];
		struct ring_sim_buf b[2] = {{at, len}, {0, 0}};
		int head;

		if (pieces == 2) {
			b[0].len = len / 2;
			b[1] = (struct ring_sim_buf){at + SLOT - (len - len / 2), len - len / 2};
		}
		head = ring_sim_add(s, b, 0, pieces, false);
		check(head >= 0);
		g->len[head] = pieces == 2 ? len | 1u << 31 : len;
	}
	ring_sim_publish(s);
	honest_own(g, VDEV_RX, true);
	vdev_kicked(&g->dev, VDEV_RX);
}

/* Byte `i` of the filling of frame `n` from guest `from`. */
static uint8_t filling(unsigned from, uint32_t n, uint32_t i)
{
	return (uint8_t)((n * 2654435761u ^ i * 40503u ^ from) >> 8);
}

static uint32_t honest_frame(
	const struct guest *g, uint8_t *p, unsigned to, uint32_t n, uint32_t len)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(to + 1)};
	uint32_t at = ETH_HLEN + STAMP;

	memset(p, 0xff, 6);
	if (to < 8)
		memcpy(p, mac, 6);
	memcpy(p + 6, g->dev.port.mac, 6);
	put_be16(p + 12, 0x88b5); /* for experiments */
	memcpy(p + 14, &g->run->key, 8);
	p[22] = (uint8_t)g->number;
	put_be32(p + 23, n);
	put_be32(p + 27, len);
	put_be32(p + 31, to);
	for (; at < len; at++)
		p[at] = filling(g->number, n, at);
	return len;
}

/* To a guest, to one that is not there, or (8 and more) to all. */
static void honest_send(struct guest *g, unsigned to, uint32_t len)
{
	struct ring_sim *s = &g->ring[VDEV_TX];
	const uint64_t at = TX_AT + SLOT * (uint64_t)s->free[s->free_get & s->mask];
	uint8_t *p = g->mem + at;
	struct ring_sim_buf b = {at, g->dev.hdr_len};

	if (!ring_sim_free(s))
		return;
	honest_own(g, VDEV_TX, false);
	memset(p, 0, g->dev.hdr_len);
	b.len += honest_frame(g, p + b.len, to, ++g->sent, 60 + len % 1440);
	memcpy(g->shadow + at, p, SLOT);
	check(ring_sim_add(s, &b, 1, 0, false) >= 0);
	ring_sim_publish(s);
	honest_own(g, VDEV_TX, true);
	vdev_kicked(&g->dev, VDEV_TX);
}

static void packet_check(struct guest *g, const uint8_t *p, uint32_t len)
{
	static uint8_t want[SLOT];
	struct run *r = g->run;
	const struct guest *from = &r->g[RICH + POOR - g->number];
	uint32_t n;

	check(len >= ETH_HLEN && len <= FRAME_MAX);
	check(!met(p, len, r->g[RICH].secret) && !met(p, len, r->g[POOR].secret));
	/* as long as the hostile guest has got no frame, none that it sends is like an honest one */
	if (r->g[HOSTILE].dev.port.q.out.frames || !met(p, len, r->key))
		return;
	check(len >= 60 && len < SLOT);
	n = get_be32(p + 23);
	check(n > g->seen && n <= from->sent);
	g->seen = n;
	honest_frame(from, want, get_be32(p + 31), n, len);
	check(!memcmp(p, want, len));
}

/* What the device wrote of a buffer goes to `to`; the rest of it is as it was, for all to compare. */
static void buffer_read(struct guest *g, uint32_t head, uint32_t n, uint8_t *to)
{
	const uint32_t len = g->len[head] & ~(1u << 31), first = g->len[head] >> 31 ? len / 2 : len;
	const uint64_t at = RX_AT + SLOT * (uint64_t)head, second = at + SLOT - (len - first);
	const uint32_t a = n < first ? n : first;

	check(n <= len);
	memcpy(to, g->mem + at, a);
	memcpy(g->shadow + at, to, a);
	memcpy(to + a, g->mem + second, n - a);
	memcpy(g->shadow + second, to + a, n - a);
}

static void honest_collect(struct guest *g)
{
	static uint8_t packet[VNET_HDR_MAX + FRAME_MAX + SLOT];
	struct ring_sim *s = &g->ring[VDEV_RX];
	const unsigned hdr_len = g->dev.hdr_len;
	uint32_t id, n, len;

	while (ring_sim_get(s, &id, &n)) {
		unsigned bufs = 1;

		check(id < s->size && n >= hdr_len);
		buffer_read(g, id, len = n, packet);
		if (hdr_len == VNET_HDR_MAX)
			bufs = packet[10] | packet[11] << 8;
		check(bufs);
		while (--bufs) {
			check(n == (g->len[id] & ~(1u << 31))); /* all but the last are full */
			check(ring_sim_get(s, &id, &n) && id < s->size && n);
			check(len + n <= sizeof(packet));
			buffer_read(g, id, n, packet + len);
			len += n;
		}
		packet_check(g, packet + hdr_len, len - hdr_len);
	}
	while (ring_sim_get(&g->ring[VDEV_TX], &id, &n))
		check(!n);
	check(!s->n_bad && !g->ring[VDEV_TX].n_bad);
}

/* All of its memory but the used rings, and the secrets that must not be there. */
static void honest_check(struct guest *g)
{
	honest_collect(g);
	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		const struct ring_sim *s = &g->ring[i];

		memcpy(g->shadow + s->used_gpa, s->used, vring_used_len(s->size));
	}
	check(!memcmp(g->mem, g->shadow, HONEST));
	check(!g->dev.broken);
}

/* turns */

static uint64_t sum_desc(const struct run *r, unsigned queue)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < GUESTS; i++)
		n += r->g[i].dev.vq[queue].n_desc;
	return n;
}

static uint64_t sum_segments(const struct run *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < GUESTS; i++)
		n += r->g[i].dev.port.q.fit_segments;
	return n;
}

/* A round of the loop. Each turn may read so much and cut so much, and no more. */
static void round_run(struct run *r)
{
	const uint64_t tx = sum_desc(r, VDEV_TX), segments = sum_segments(r);
	struct fabric_stats before, after;
	uint64_t turns;

	r->sum[VDEV_RX] = r->sum[VDEV_TX] = 0;
	fabric_get_stats(r->fabric, &before);
	check(!loop_dispatch(&r->loop, false));
	fabric_get_stats(r->fabric, &after);
	turns = after.turns - before.turns;
	check(sum_desc(r, VDEV_TX) - tx <= turns * 2 * (2 * BURST_IOV + CHAIN_MAX));
	check(sum_segments(r) - segments <= turns * 2 * (1024 + GSO_TCP_SEGMENTS));
	r->now += r->step;
}

/* Nobody does anything: time passes until nothing is left to do. */
static void rest(struct run *r)
{
	for (unsigned i = 0;; i++) {
		check(i < ROUNDS);
		round_run(r);
		if (!TAILQ_EMPTY(&r->loop.tasks))
			continue;
		if (loop_deadline(&r->loop) == NSEC_NEVER)
			return;
		if (r->now < loop_deadline(&r->loop))
			r->now = loop_deadline(&r->loop);
	}
}

static void step(struct run *r)
{
	unsigned what = take(r, 1), n = what >> 4;
	struct guest *honest = &r->g[n & 1 ? POOR : RICH];
	unsigned at, len;

	switch (what & 15) {
	case 0:
		for (unsigned i = 0; i <= n; i++)
			round_run(r);
		break;
	case 1:
		r->now += n * n * NSEC_PER_MSEC / 4;
		break;
	case 2:
	case 3: /* the hostile guest sends, or posts */
		at = take(r, 2);
		len = take(r, 2);
		hostile_chain(r, what & 1 ? VDEV_RX : VDEV_TX, at, len, n ? n * 4500 : 0);
		break;
	case 4:
		hostile_long(r, n & 1, length_of(r, n & 1, n >> 1));
		break;
	case 5:
		hostile_avail(r, n & 1, (uint16_t)take(r, 1 + (n & 2) / 2));
		break;
	case 6:
		r->g[HOSTILE].ring[n & 1].avail->idx += n >> 1;
		break;
	case 7:
		hostile_write(r, n + 1);
		break;
	case 8:
		hostile_ambush(r, n + 1);
		break;
	case 9:
		hostile_control(r, n);
		break;
	case 10:
		vdev_kicked(&r->g[HOSTILE].dev, n & 1);
		break;
	case 11:
		honest_send(honest, n >> 1, take(r, 2));
		break;
	case 12:
	case 13:
		honest_post(honest, 1 + (n >> 1) * 4, take(r, 2));
		break;
	case 14:
		honest_collect(honest);
		break;
	default:
		rest(r);
	}
}

static void run_check(struct run *r)
{
	const struct guest *h = &r->g[HOSTILE];

	honest_check(&r->g[RICH]);
	honest_check(&r->g[POOR]);
	for (unsigned i = RICH; i < GUESTS; i++) {
		check(!met(h->mem, IMAGE, r->g[i].secret));
		check(!met(r->blank, PAGE, r->g[i].secret));
		check(!met(r->last, LAST, r->g[i].secret));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct run run;
	struct run *r = &run;
	struct fabric_config c = {.wait_us = WAIT_US_DEFAULT, .age_sec = FDB_AGE_SEC, .seed = 1};
	unsigned lacks, size, sizes, flags;

	r->in = data;
	r->left = len;
	r->now = r->step = NSEC_PER_SEC;
	r->ambush.n = 0;
	lacks = take(r, 1);
	size = 1u << take(r, 1) % 9;
	sizes = take(r, 1);
	flags = take(r, 1);
	c.poll_us = flags & 1 ? 20 : 0;
	r->step = c.poll_us ? NSEC_PER_USEC : 0;
	r->key = secret_of(data, len, 1);
	if (!r->blank) {
		check(!loop_init(&r->loop, NULL));
		r->loop.virtual_now = &r->now;
		r->blank = blank_map();
	}
	r->loop.now = r->now;
	if (!r->kept[flags & 1])
		check(!fabric_new(&r->kept[flags & 1], &c, &r->loop, NULL, NULL));
	r->fabric = r->kept[flags & 1];
	hostile_init(r, lacks, size);
	for (unsigned i = RICH; i < GUESTS; i++)
		r->g[i].secret = secret_of(data, len, 1 + i);
	honest_init(r, RICH, vnet_features_all(), 1u << (sizes & 15) % 7);
	honest_init(r, POOR, 0, 1u << (sizes >> 4) % 7);

	while (r->left)
		step(r);
	rest(r);
	run_check(r);

	for (unsigned i = 0; i < GUESTS; i++)
		guest_fini(r, i);
	free(r->last);
	check(!r->loop.nheap && TAILQ_EMPTY(&r->loop.tasks));
	return 0;
}
