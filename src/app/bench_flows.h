/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flows: a benchmark of flows from set-up to sums: one or two hosts, and the network between them
 * if both are here, polled on one thread, or on three: then each host and the network has a loop and a
 * thread of its own, and they know each other by their rings and descriptors alone, as three programs
 * would. Set-up is always on the caller's thread, which is the client's afterwards.
 *
 *	[ client ] -- driver -- [ network ] -- driver -- [ server ]     all in this process
 *	[ client or server ] -- driver or tap -- somebody else
 */
#ifndef APP_BENCH_FLOWS_H
#define APP_BENCH_FLOWS_H

#include "app/bench_flow.h"
#include "app/bench_threads.h"
#include "app/net.h"
#include "app/show_driver.h"

struct bench_flows_config {
	struct flow_config flow;
	const char *via; /* the words of the one host's port; NULL: both are here */
	bool serve;      /* with via: it is the server */
	const char *addr, *cwd, *net;
	const char *impair; /* words for the network, "": none */
	const char *knobs;  /* ",key=value..." of the drivers */
	const char *port;   /* likewise of the client's port of the network; NULL: none */
	uint32_t mtu;
	unsigned threads; /* 1 or 3; 3 only if both hosts are here, and without `warm` */
	nsec_t time;
	nsec_t warm;         /* before it: not counted */
	uint64_t warm_bytes; /* likewise, of a stream */
	struct tcp_conf tcp;
};

struct bench_flows_end { /* one host, and what it counted */
	struct bench_host host;
	struct flow_side *side; /* NULL: not here */
	struct loop *loop;      /* the network's, or its own */
	struct loop own;
	struct log log;          /* the same */
	struct loop_timer alarm; /* the same */
	nsec_t moved, spin;      /* last moved; how long without before it sleeps */
	struct driver_count drv;
	struct tcp_counters tcp;
	struct stack_counters stack;
};

struct bench_flows {
	struct bench_flows_config config;
	struct net net;
	char dir[64];
	struct bench_flows_end client, server;
	struct loop_timer alarm; /* wakes the loop, does nothing */
	nsec_t moved, woken;
	nsec_t begun, ended; /* of what was counted: to the last byte that arrived */
	double cpu;          /* seconds, of the whole process */
	/* of three threads */
	struct bench_place place;
	struct bench_thread network_thread, server_thread;
	double client_cpu;
	struct bench_hist pingpong; /* of the client's CPU and the server's, with nothing between */
	/* what the warm-up brought, and is not counted */
	uint64_t warm_bytes, warm_packets, warm_sent, warm_exchanges;
};

/* 0 or -errno; after 0 bench_flows_fini. Big. */
int bench_flows_init(struct bench_flows *, const struct bench_flows_config *, struct err *);
void bench_flows_fini(struct bench_flows *);
/* Waits for links (-ETIMEDOUT: none), then runs to the end. A server calls `ready` when it is. */
int bench_flows_run(struct bench_flows *, void (*ready)(void *ctx), void *ctx, struct err *);
/* Bytes that arrived and were compared, wherever they did; and pieces that were wrong. */
uint64_t bench_flows_bytes(const struct bench_flows *);
uint64_t bench_flows_wrong(const struct bench_flows *);

#endif
