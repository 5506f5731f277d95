/* SPDX-License-Identifier: BSD-2-Clause */
/* udp_int: the table of UDP sockets, in the stack. */
#ifndef NET_UDP_INT_H
#define NET_UDP_INT_H

#include <sys/queue.h>

#include "frame/pkt.h"
#include "net/udp.h"

#define UDP_BUCKETS 1024

struct udp_sock {
	LIST_ENTRY(udp_sock) chain; /* of its port's bucket */
	LIST_ENTRY(udp_sock) all;
	struct stack *st;
	void *user;
	struct udp_addr local, peer; /* port 0: not bound, not connected */
	bool gro, df, reuse;
	uint8_t tos, hops;
	int error;
	uint32_t rcvbuf, sndbuf, charged;
	struct pkt_list queue;
	unsigned nqueue;
	uint32_t taken; /* bytes of the first packet's payload already read: trains without GRO */
	struct pkt_account account;
	uint32_t flow;
	bool dead; /* closed, waits for its account */
};

struct udp_table {
	LIST_HEAD(udp_bucket, udp_sock) bucket[UDP_BUCKETS];
	LIST_HEAD(, udp_sock) all;
	unsigned n;
	void (*ready)(void *ctx, struct udp_sock *);
	void *ctx;
};

void udp_fini(struct stack *);

#endif
