/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_fuzz: frames of anybody into a host that has addresses of both versions, listens on TCP and
 * UDP, and asks for an address by DHCP; with pieces of fragments, time that passes, and replies that
 * are taken. After the last one everything is given back.
 *
 * Input: records { what, length (2), bytes }. what & 1: Ethernet and IP addresses are made right, and
 * checksums are said to be; 2: time passes; 4: in two pieces; 8: IPv6.
 */
#include <stdlib.h>
#include <string.h>

#include "net/sock.h"
#include "net/stack.h"
#include "net/tcp.h"
#include "wire/bytes.h"
#include "wire/ip4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bed {
	struct stack *st;
	struct sock_table *socks;
	nsec_t now;
};

static void add(struct bed *b, const char *prefix)
{
	struct ip_addr ip;
	unsigned plen;

	if (!ip_addr_parse_prefix(prefix, &ip, &plen) ||
		stack_add_addr(b->st, &ip, plen, b->now, NULL))
		abort();
}

static void start(struct bed *b)
{
	const struct tcp_conf tcp = {
		.conns = 16, .txsegs = 64, .rxbufs = 64, .syns = 16, .timewaits = 16};
	const struct stack_conf conf = {.tcp = &tcp,
		.mac = {2, 0, 0, 0, 0, 1},
		.memory = 1 << 20,
		.seed = 1,
		.no_dad = true,
		.dhcp = true};
	int t, u;

	if (stack_new(&b->st, &conf, b->now, NULL) || sock_table_new(&b->socks, b->st, NULL))
		abort();
	add(b, "10.0.0.1/24");
	add(b, "2001:db8::1/64");
	t = sock_open(b->socks, SOCK_KIND_TCP);
	u = sock_open(b->socks, SOCK_KIND_UDP);
	if (sock_bind(b->socks, t, &(struct udp_addr){.port = 80}) || sock_listen(b->socks, t, 4) ||
		sock_bind(b->socks, u, &(struct udp_addr){.port = 53}) ||
		sock_set(b->socks, u, SOCKO_UDP_GRO, 1, b->now))
		abort();
}

/* As if it came from 10.0.0.2 or 2001:db8::2, so that it is looked at at all. */
static void make_right(uint8_t *p, uint32_t len, bool ip6)
{
	static const uint8_t eth[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	static const uint8_t six[32] = {
		0x20, 1, 0xd, 0xb8, [15] = 2, [16] = 0x20, 1, 0xd, 0xb8, [31] = 1};
	static const uint8_t four[8] = {10, 0, 0, 2, 10, 0, 0, 1};

	if (len < 54)
		return;
	memcpy(p, eth, 12);
	if (ip6) {
		put_be16(p + 12, 0x86dd);
		p[14] = 0x60;
		put_be16(p + 18, (uint16_t)(len - 54));
		memcpy(p + 22, six, 32);
	} else {
		put_be16(p + 12, 0x800);
		p[14] = 0x45;
		put_be16(p + 16, (uint16_t)(len - 14));
		memcpy(p + 26, four, 8);
		ip4_csum(p + 14);
	}
}

static void one(struct bed *b, uint8_t what, const uint8_t *data, uint32_t len)
{
	struct frame_head head;
	uint8_t *copy = malloc(len + 1);
	struct iovec tail[2];
	struct frame f = {.head = head.data, .tail = tail};
	const uint32_t first = len < FRAME_HEAD ? len : FRAME_HEAD;

	memcpy(copy, data, len);
	if (what & 1) {
		make_right(copy, len, what & 8);
		f.off.flags = OFF_DATA_VALID;
	}
	memcpy(head.data, copy, first);
	f.head_len = (uint16_t)first;
	f.tail_len = len - first;
	if (f.tail_len) {
		const uint32_t cut = what & 4 ? f.tail_len / 2 : 0;

		tail[0] = (struct iovec){copy + first, cut};
		tail[1] = (struct iovec){copy + first + cut, f.tail_len - cut};
		f.ntail = 2;
	}
	stack_in(b->st, &f, 1, b->now);
	free(copy);
}

static void answer(struct bed *b)
{
	struct pkt *p;
	unsigned ready;
	int s;

	while ((p = stack_out(b->st, b->now)))
		pkt_free(p);
	sock_work(b->socks, b->now);
	while ((s = sock_next_ready(b->socks, &ready, NULL)) >= 0) {
		uint8_t buf[2000];
		const struct iovec v = {buf, sizeof(buf)};
		struct udp_info info;

		if (sock_accept(b->socks, s, NULL, b->now) >= 0)
			continue;
		while (sock_recv(b->socks, s, &v, 1, 0, &info, b->now) > 0)
			;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bed b = {.now = NSEC_PER_SEC};

	start(&b);
	while (size >= 3) {
		const uint8_t what = data[0];
		uint32_t len = get_be16(data + 1);

		data += 3;
		size -= 3;
		if (len > size)
			len = (uint32_t)size;
		one(&b, what, data, len);
		data += len;
		size -= len;
		if (what & 2) {
			b.now += NSEC_PER_SEC;
			stack_timer(b.st, b.now);
		}
		answer(&b);
	}
	sock_table_free(b.socks, b.now);
	stack_free(b.st);
	return 0;
}
