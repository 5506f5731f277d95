/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_rig: for the tests of the tap: a port on the kernel of a namespace of our own, datagrams of the
 * kernel's, and frames of ours. We are 10.9.0.2 behind the tap; the kernel is 10.9.0.1 and does not know
 * that it is being tested.
 */
#ifndef PORT_TAP_RIG_H
#define PORT_TAP_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <libmnl/libmnl.h>

#include "base/rand.h"
#include "port/tap.h"
#include "port/testns.h"
#include "port/vnet.h"
#include "wire/csum.h"
#include "wire/eth.h"

#define IP_KERNEL   0x0a090001u
#define IP_US       0x0a090002u
#define PORT_US     4000
#define PORT_KERNEL 5000
#define L4          (ETH_HLEN + 20)

static const uint8_t mac_us[6] = {2, 0, 0, 0, 0, 2};

struct fixture {
	struct loop loop;
	struct log log;
	struct port *port;
	struct err err;
	struct burst b;
	unsigned next; /* of b not yet looked at */
	unsigned ready, room, link, logged;
	uint8_t mac[6]; /* the kernel's */
	int udp;        /* bound to 10.9.0.1:PORT_KERNEL, connected to us */
	uint8_t copy[FRAME_MAX];
};

static inline void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct fixture *)ctx)->ready++;
}

static inline void on_room(void *ctx, struct portq *q)
{
	(void)q;
	((struct fixture *)ctx)->room++;
}

static inline void on_link(void *ctx, struct port *p)
{
	(void)p;
	((struct fixture *)ctx)->link++;
}

static const struct port_events events = {on_ready, on_room, on_link};

static inline void on_log(void *ctx, enum log_level level, const char *tag, const char *text)
{
	(void)level;
	(void)tag;
	(void)text;
	((struct fixture *)ctx)->logged++;
}

static const char *const addresses[] = {"10.9.0.1/24", "fd09::1/64", NULL};

static inline struct fixture *fixture_new(void)
{
	struct fixture *fx = calloc(1, sizeof(*fx));

	assert_non_null(fx);
	assert_int_equal(loop_init(&fx->loop, &fx->err), 0);
	log_init(&fx->log, LOG_INFO, on_log, fx);
	fx->udp = -1;
	return fx;
}

static inline void fixture_attach(struct fixture *fx, const struct tap_config *cfg)
{
	if (tap_open(&fx->port, "t", cfg, &fx->loop, &fx->log, &fx->err))
		fail_msg("tap_open: %s", fx->err.text);
	fx->port->events = &events;
	fx->port->events_ctx = fx;
	assert_true(fx->port->link);
}

static inline struct sockaddr_in in_addr(uint32_t ip, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

/* `cfg` without a name and addresses. */
static inline int setup_config(void **state, struct tap_config cfg)
{
	struct fixture *fx = fixture_new();
	struct ifreq ifr = {0};
	struct sockaddr_in here = in_addr(IP_KERNEL, PORT_KERNEL), there = in_addr(IP_US, PORT_US);

	cfg.ifname = "tap9";
	cfg.addr = addresses;
	fixture_attach(fx, &cfg);
	assert_int_equal(if_ioctl(SIOCGIFHWADDR, &ifr, "tap9"), 0);
	memcpy(fx->mac, ifr.ifr_hwaddr.sa_data, 6);
	fx->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fx->udp, (struct sockaddr *)&here, sizeof(here)), 0);
	assert_int_equal(connect(fx->udp, (struct sockaddr *)&there, sizeof(there)), 0);
	*state = fx;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *fx = *state;

	if (fx->udp >= 0)
		close(fx->udp);
	tap_free(fx->port);
	loop_fini(&fx->loop);
	free(fx);
	return 0;
}

/* ---- frames --------------------------------------------------------------------------------- */

static inline void settle_all(struct fixture *fx)
{
	if (fx->b.n)
		fx->port->ops->settle(&fx->port->q, &fx->b, fx->b.n);
	fx->b.n = fx->next = 0;
}

/* Wait for the descriptors, then one round; false after three seconds of nothing. */
static inline bool round_wait(struct fixture *fx)
{
	struct pollfd p = {.fd = fx->loop.epfd, .events = POLLIN};

	if (poll(&p, 1, 3000) != 1)
		return false;
	loop_dispatch(&fx->loop, false);
	return true;
}

static inline void pull(struct fixture *fx, unsigned max)
{
	fx->next = fx->b.n = fx->b.niov = 0;
	fx->b.bytes = 0;
	fx->port->ops->pull(&fx->port->q, &fx->b, max);
}

/* The next frame of this Ethernet type (and IP protocol): the kernel sends others of its own. */
static inline struct frame *next_frame(struct fixture *fx, uint16_t type, uint8_t proto)
{
	for (;;) {
		while (fx->next < fx->b.n) {
			struct frame *f = &fx->b.f[fx->next++];
			if (get_be16(f->head + 12) == type &&
				(!proto || f->head[ETH_HLEN + 9] == proto))
				return f;
		}
		settle_all(fx);
		if (fx->port->ops->arm(&fx->port->q)) {
			pull(fx, BURST_FRAMES);
			continue;
		}
		if (!round_wait(fx))
			fail_msg("no frame of type %04x from the kernel", type);
	}
}

static inline void flatten(struct fixture *fx, const struct frame *f)
{
	struct iovec to = {fx->copy, sizeof(fx->copy)};

	frame_copy(f, 0, frame_len(f), &to, 1, 0);
}

struct made {
	struct frame f;
	struct frame_head head;
	struct iovec iov[1400];
};

/* A frame of `bytes`: its head made private, the rest in `pieces` tail pieces. */
static inline void frame_make(struct made *m, uint8_t *bytes, uint32_t len, unsigned pieces)
{
	uint32_t head = len < FRAME_HEAD ? len : FRAME_HEAD, rest = len - head, at = head;

	memset(&m->f, 0, sizeof(m->f));
	memcpy(m->head.data, bytes, head);
	m->f.head = m->head.data;
	m->f.head_len = (uint16_t)head;
	m->f.tail = m->iov;
	m->f.tail_len = rest;
	for (unsigned i = 0; rest && i < pieces; i++) {
		uint32_t n = i + 1 == pieces ? len - at : rest / pieces;
		m->iov[m->f.ntail++] = (struct iovec){bytes + at, n};
		at += n;
	}
}

static inline void eth_ip4(struct fixture *fx, uint8_t *p, uint8_t proto, uint32_t ip_len)
{
	struct csum c = {0};

	memcpy(p, fx->mac, 6);
	memcpy(p + 6, mac_us, 6);
	put_be16(p + 12, ETH_TYPE_IP4);
	p += ETH_HLEN;
	memset(p, 0, 20);
	p[0] = 0x45;
	put_be16(p + 2, (uint16_t)ip_len);
	p[8] = 64;
	p[9] = proto;
	put_be32(p + 12, IP_US);
	put_be32(p + 16, IP_KERNEL);
	csum_piece(&c, p, 20);
	put_be16(p + 10, csum_end(&c));
}

static inline uint16_t pseudo(const uint8_t *ip, uint8_t proto, uint32_t len)
{
	struct csum c = {0};

	csum_pseudo4(&c, ip + 12, ip + 16, proto, len);
	return csum_fold(&c);
}

/* A UDP frame of `n` payload bytes whose checksum the receiver is to finish. Returns its length. */
static inline uint32_t udp_make(struct fixture *fx, uint8_t *p, uint32_t n, uint8_t seed)
{
	eth_ip4(fx, p, IPPROTO_UDP, 20 + 8 + n);
	put_be16(p + L4, PORT_US);
	put_be16(p + L4 + 2, PORT_KERNEL);
	put_be16(p + L4 + 4, (uint16_t)(8 + n));
	put_be16(p + L4 + 6, pseudo(p + ETH_HLEN, IPPROTO_UDP, 8 + n));
	for (uint32_t i = 0; i < n; i++)
		p[L4 + 8 + i] = (uint8_t)(i * 7 + seed);
	return L4 + 8 + n;
}

static inline void push_one(struct fixture *fx, const struct frame *f)
{
	assert_int_equal(fx->port->ops->push(&fx->port->q, f, 1), 1);
	fx->port->ops->flush(&fx->port->q);
}

static inline void arp_answer(struct fixture *fx)
{
	uint8_t p[42];
	struct made m;
	struct frame *f = next_frame(fx, ETH_TYPE_ARP, 0);

	assert_int_equal(get_be32(f->head + 38), IP_US);
	memcpy(p, f->head + 6, 6);
	memcpy(p + 6, mac_us, 6);
	memcpy(p + 12, f->head + 12, 8);
	put_be16(p + 20, 2);
	memcpy(p + 22, mac_us, 6);
	put_be32(p + 28, IP_US);
	memcpy(p + 32, f->head + 22, 10);
	frame_make(&m, p, sizeof(p), 1);
	push_one(fx, &m.f);
}

/* The kernel knows our address from now on. */
static inline void meet(struct fixture *fx)
{
	assert_int_equal(send(fx->udp, "hi", 2, 0), 2);
	arp_answer(fx);
	next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	settle_all(fx);
}

/* A datagram that carries its number and its size, and bytes that follow from both. */
static inline bool numbered_send(struct fixture *fx, uint32_t number, uint32_t size)
{
	static uint8_t data[60000];

	put_be32(data, number);
	put_be32(data + 4, size);
	for (uint32_t i = 8; i < size; i++)
		data[i] = (uint8_t)(number + i / 13);
	return send(fx->udp, data, size, 0) == (ssize_t)size;
}

static inline void numbered_check(struct fixture *fx, const struct frame *f, uint32_t number)
{
	uint32_t size;

	flatten(fx, f);
	size = get_be32(fx->copy + L4 + 12);
	assert_int_equal(get_be32(fx->copy + L4 + 8), number);
	assert_int_equal(frame_len(f), L4 + 8 + size);
	for (uint32_t i = 8; i < size; i++)
		if (fx->copy[L4 + 8 + i] != (uint8_t)(number + i / 13))
			fail_msg("frame %u differs at byte %u of %u", number, i, size);
}

static inline void udp_expect(struct fixture *fx, uint32_t n, uint8_t seed)
{
	static uint8_t got[FRAME_MAX];
	struct pollfd p = {.fd = fx->udp, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 3000), 1);
	assert_int_equal(recv(fx->udp, got, sizeof(got), 0), n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i], (uint8_t)(i * 7 + seed));
}

static inline void udp_push(
	struct fixture *fx, uint32_t n, uint16_t gso_size, unsigned pieces, uint8_t seed)
{
	static uint8_t bytes[FRAME_MAX];
	static struct made m;
	uint32_t len = udp_make(fx, bytes, n, seed);

	frame_make(&m, bytes, len, pieces);
	m.f.off = (struct offload){
		.flags = OFF_NEEDS_CSUM, .csum_start = L4, .csum_off = 6, .hdr_len = L4 + 8};
	if (gso_size) {
		m.f.off.gso = OFF_GSO_UDP_L4;
		m.f.off.gso_size = gso_size;
	}
	push_one(fx, &m.f);
}

#endif
