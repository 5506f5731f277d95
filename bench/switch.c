/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/switch: the switch alone, in one thread: a model driver on either side, two virtio-net
 * devices and the fabric between them. What is timed is everything from "the sender's driver adds a
 * buffer" to "the receiver's driver has taken it and posted a new one". Beside it, in the same run
 * and in turn, memcpy in 64 KiB blocks over the same addresses: the floor of any switch that copies
 * once.
 *
 *	switch [--size BYTES] [--split] [--set BYTES] [--seconds S] [--rounds N] [--json]
 *
 * Frames above 1518 bytes are TCPv4 super-packets with segments of 1448 bytes, as a header piece
 * and fragments of 4 KiB, received into mergeable buffers of 4 KiB; smaller ones are single pieces
 * into buffers of 2 KiB. For counting instructions, `device_turn` holds all of the device's work and
 * nothing of the drivers': valgrind --tool=callgrind --toggle-collect=device_turn.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fabric/fabric.h"
#include "port/vdev.h"
#include "ring/ring_sim.h"
#include "wire/bytes.h"

#define RING      256
#define PLAIN_MAX 1518u
#define PAGE      4096u
#define SMALL_BUF 2048u
#define HDR       12u
#define TCP_HDRS  66u /* Ethernet 14, IPv4 20, TCP 20 + 12 of timestamps */
#define MSS       1448u
#define FRAGS     16u
#define COPY      (64u * 1024)

struct side {
	struct vdev vdev;
	struct ring_sim ring[VDEV_QUEUES];
	uint8_t *mem; /* rings, then buffers */
	size_t buf_at, set;
	size_t next; /* the next buffer to use, from buf_at */
	uint64_t notified;
};

struct bench {
	struct loop loop;
	struct fabric *fabric;
	struct side a, b;
	uint32_t size; /* frame, without the virtio header */
	bool split;
};

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "switch: %s: %s\n", what, err ? err->text : "failed");
	exit(1);
}

static bool on_notify(void *ctx, unsigned queue)
{
	(void)queue;
	((struct side *)ctx)->notified++;
	return true;
}

static void on_broke(void *ctx, unsigned queue, const char *reason)
{
	(void)ctx;
	fprintf(stderr, "switch: queue %u broke: %s\n", queue, reason);
	exit(1);
}

static void side_init(struct side *s, const char *name, struct loop *loop, size_t set)
{
	struct vdev_config cfg = {.mtu = ETH_MTU_MAX};
	size_t len = ring_sim_len(RING, 0);
	struct err err;

	port_mac_of_name("bench", name, cfg.mac);
	s->buf_at = (2 * len + PAGE + (1 << 21) - 1) & ~(size_t)((1 << 21) - 1);
	s->set = set;
	s->mem = mmap(
		NULL, s->buf_at + set, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->mem == MAP_FAILED)
		die("mmap", NULL);
	memset(s->mem, 1, s->buf_at + set);
	vdev_init(&s->vdev, name, &cfg, loop, NULL);
	s->vdev.notify = on_notify;
	s->vdev.broke = on_broke;
	s->vdev.ctx = s;
	if (gmem_add(&s->vdev.mem, 0, 0, s->buf_at + set, s->mem, &err))
		die("memory", &err);
	if (vdev_set_features(&s->vdev, s->vdev.offered, &err))
		die("features", &err);
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		struct ring_sim_config rc = {
			.mem = s->mem + q * len, .gpa = q * len, .size = RING, .event_idx = true};
		struct ring_sim *r = &s->ring[q];

		if (ring_sim_init(r, &rc) || vdev_set_ring_size(&s->vdev, q, RING, &err) ||
			vdev_set_ring_addr(
				&s->vdev, q, r->desc_gpa, r->avail_gpa, r->used_gpa, &err))
			die("rings", &err);
	}
}

static void side_start(struct side *s)
{
	for (unsigned q = 0; q < VDEV_QUEUES; q++) {
		vdev_ring_start(&s->vdev, q);
		vdev_ring_enable(&s->vdev, q, true);
	}
}

/* The next `len` bytes of the working set, at a multiple of `len`. */
static uint64_t side_buf(struct side *s, size_t len)
{
	uint64_t gpa;

	if (s->next + len > s->set)
		s->next = 0;
	gpa = s->buf_at + s->next;
	s->next += len;
	return gpa;
}

/* Headers of a TCPv4 super-packet or a plain frame, with the virtio header in front. */
static void frame_write(uint8_t *p, const struct bench *b)
{
	uint32_t len = b->size;

	memset(p, 0, HDR + TCP_HDRS);
	if (len > PLAIN_MAX) {
		p[0] = OFF_NEEDS_CSUM;
		p[1] = OFF_GSO_TCPV4;
		p[2] = TCP_HDRS;
		p[4] = MSS & 0xff;
		p[5] = MSS >> 8;
		p[6] = 34;
		p[8] = 16;
	}
	p += HDR;
	memcpy(p, b->b.vdev.port.mac, 6);
	memcpy(p + 6, b->a.vdev.port.mac, 6);
	put_be16(p + 12, 0x0800);
	p[14] = 0x45;
	put_be16(p + 16, (uint16_t)(len - 14));
	p[22] = 64;
	p[23] = 6;
	put_be32(p + 26, 0x0a000001);
	put_be32(p + 30, 0x0a000002);
	p[46] = 0x80;
	p[47] = 0x10;
}

static unsigned rx_buf_len(const struct bench *b)
{
	return b->size > PLAIN_MAX ? PAGE : SMALL_BUF;
}

static void rx_fill(struct bench *b)
{
	struct ring_sim *r = &b->b.ring[VDEV_RX];

	while (ring_sim_free(r))
		ring_sim_add1(r, side_buf(&b->b, rx_buf_len(b)), rx_buf_len(b), true);
	ring_sim_publish(r);
	if (ring_sim_kick(r))
		vdev_kicked(&b->b.vdev, VDEV_RX);
}

static bool tx_add(struct bench *b)
{
	struct ring_sim *r = &b->a.ring[VDEV_TX];
	struct ring_sim_buf piece[FRAGS + 1];
	uint32_t left = b->size;
	unsigned n = 0;

	if (b->size <= PLAIN_MAX) {
		uint64_t gpa;

		if (!ring_sim_free(r))
			return false;
		gpa = side_buf(&b->a, SMALL_BUF);
		frame_write(b->a.mem + gpa, b);
		ring_sim_add1(r, gpa, HDR + b->size, false);
		return true;
	}
	if (ring_sim_free(r) < FRAGS + 1)
		return false;
	if (b->split) {
		/* a page before the set holds header pieces in turn: they are not payload */
		piece[n].gpa = b->a.buf_at - PAGE + (r->avail_next & 15) * 256;
		piece[n++].len = HDR + TCP_HDRS;
		left -= TCP_HDRS;
	} else {
		left += HDR;
	}
	for (; left; left -= piece[n++].len) {
		piece[n].gpa = side_buf(&b->a, PAGE);
		piece[n].len = left < PAGE ? left : PAGE;
	}
	frame_write(b->a.mem + piece[0].gpa, b);
	return ring_sim_add(r, piece, n, 0, false) >= 0;
}

__attribute__((noinline)) static void device_turn(struct bench *b)
{
	if (loop_dispatch(&b->loop, false))
		die("loop", NULL);
}

/* Both drivers' work: take what was used, post anew, send. */
static void driver_turn(struct bench *b)
{
	struct ring_sim *rx = &b->b.ring[VDEV_RX], *tx = &b->a.ring[VDEV_TX];

	ring_sim_drain(rx, RING);
	rx_fill(b);
	ring_sim_drain(tx, RING);
	while (tx_add(b))
		;
	ring_sim_publish(tx);
	if (ring_sim_kick(tx))
		vdev_kicked(&b->a.vdev, VDEV_TX);
}

/* One frame the other way: both addresses are learned. */
static void learn(struct bench *b)
{
	struct ring_sim *tx = &b->b.ring[VDEV_TX];
	uint64_t gpa = b->b.buf_at;

	frame_write(b->b.mem + gpa, b);
	memset(b->b.mem + gpa, 0, HDR);
	memcpy(b->b.mem + gpa + HDR, b->a.vdev.port.mac, 6);
	memcpy(b->b.mem + gpa + HDR + 6, b->b.vdev.port.mac, 6);
	ring_sim_add1(tx, gpa, HDR + 64, false);
	ring_sim_publish(tx);
	vdev_kicked(&b->b.vdev, VDEV_TX);
	device_turn(b);
	device_turn(b);
}

/* Frames that the device has put into the receiver's buffers, whole. */
static uint64_t delivered(const struct bench *b)
{
	return b->b.vdev.port.q.out.frames;
}

static double run_switch(struct bench *b, nsec_t span, uint64_t *frames, double *device)
{
	uint64_t before = delivered(b);
	nsec_t t0 = clock_now(), t, inside = 0;

	do {
		driver_turn(b);
		t = clock_now();
		device_turn(b);
		inside -= t;
		t = clock_now();
		inside += t;
	} while (t - t0 < span);
	*device = (double)inside;
	*frames = delivered(b) - before;
	return (double)(t - t0);
}

/* memcpy over the same addresses: bits per ns. */
static double run_memcpy(struct bench *b, nsec_t span)
{
	uint64_t n = 0;
	size_t at = 0;
	nsec_t t0 = clock_now(), t;

	do {
		for (unsigned i = 0; i < 64; i++, n++) {
			if (at + COPY > b->a.set)
				at = 0;
			memcpy(b->b.mem + b->b.buf_at + at, b->a.mem + b->a.buf_at + at, COPY);
			__asm__ volatile("" ::: "memory");
			at += COPY;
		}
		t = clock_now();
	} while (t - t0 < span);
	return (double)n * COPY * 8 / (double)(t - t0);
}

static int cmp_double(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	return v[n / 2];
}

static void report(struct bench *b, unsigned rounds, double seconds, bool json)
{
	double ns[64], alone[64], gbit[64], copy[64], ratio[64], ratio_alone[64], device;
	nsec_t span = (nsec_t)(seconds * NSEC_PER_SEC / rounds / 2);

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t frames;
		double t = run_switch(b, span, &frames, &device);

		ns[i] = t / (double)frames;
		gbit[i] = (double)b->size * 8 / ns[i];
		copy[i] = run_memcpy(b, span);
		ratio[i] = gbit[i] / copy[i];
		alone[i] = device / (double)frames;
		ratio_alone[i] = (double)b->size * 8 / alone[i] / copy[i];
	}
	double t = median(ns, rounds), g = median(gbit, rounds), c = median(copy, rounds);
	double r = median(ratio, rounds), a = median(alone, rounds),
	       ra = median(ratio_alone, rounds);

	if (json)
		printf("{\"size\":%u,\"set\":%zu,\"ns_per_frame\":%.1f,\"alone_ns\":%.1f,\"mpps\":%"
		       ".3f,"
		       "\"gbit\":%.1f,\"memcpy_gbit\":%.1f,\"of_memcpy\":%.3f,\"alone_of_memcpy\":%"
		       ".3f,"
		       "\"frames\":%" PRIu64 ",\"rounds\":%u}\n",
			b->size, 2 * b->a.set, t, a, 1e3 / t, g, c, r, ra, delivered(b), rounds);
	else
		printf("%u B frames, working set %zu KiB, medians of %u:\n"
		       "  drivers and switch %.1f ns/frame, %.3f Mpps, %.1f Gbit/s; the switch "
		       "alone %.1f ns/frame\n"
		       "  memcpy %.1f Gbit/s; of it: with the drivers %.3f, the switch alone "
		       "%.3f\n",
			b->size, 2 * b->a.set / 1024, rounds, t, 1e3 / t, g, a, c, r, ra);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {{"size", 1, NULL, 's'}, {"set", 1, NULL, 'w'},
		{"seconds", 1, NULL, 't'}, {"rounds", 1, NULL, 'r'}, {"split", 0, NULL, 'p'},
		{"json", 0, NULL, 'j'}, {0}};
	static struct bench b;
	struct fabric_config fc = {.wait_us = WAIT_US_DEFAULT, .age_sec = FDB_AGE_SEC, .seed = 1};
	size_t set = 8 << 20;
	double seconds = 2;
	unsigned rounds = 5;
	bool json = false;
	struct err err;
	int o;

	b.size = 64;
	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 's':
			b.size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'w':
			set = strtoul(optarg, NULL, 0);
			break;
		case 't':
			seconds = strtod(optarg, NULL);
			break;
		case 'r':
			rounds = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'p':
			b.split = true;
			break;
		case 'j':
			json = true;
			break;
		default:
			return 2;
		}
	}
	if (b.size < 64 || b.size > TCP_HDRS + FRAGS * PAGE || b.size > 65535 + 14 || rounds < 1 ||
		rounds > 64 || set < 4 * COPY || set % (2 * COPY)) {
		fprintf(stderr, "switch: --size is 64 .. 65549, --rounds 1 .. 64, --set a multiple "
				"of 131072 from 262144\n");
		return 2;
	}
	if (loop_init(&b.loop, &err) || fabric_new(&b.fabric, &fc, &b.loop, NULL, &err))
		die("set-up", &err);
	side_init(&b.a, "a", &b.loop, set / 2);
	side_init(&b.b, "b", &b.loop, set / 2);
	if (fabric_attach(b.fabric, &b.a.vdev.port, &err) ||
		fabric_attach(b.fabric, &b.b.vdev.port, &err))
		die("attach", &err);
	side_start(&b.a);
	side_start(&b.b);
	rx_fill(&b);
	learn(&b);
	report(&b, rounds, seconds, json);
	fabric_detach(b.fabric, &b.a.vdev.port);
	fabric_detach(b.fabric, &b.b.vdev.port);
	vdev_fini(&b.a.vdev);
	vdev_fini(&b.b.vdev);
	fabric_free(b.fabric);
	loop_fini(&b.loop);
	return 0;
}
