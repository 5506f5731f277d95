/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_run: drivers that send and receive as fast as they can, on one thread, and what was counted
 * meanwhile. Either both ends and the network between them are here, or one end is and the other
 * side of its socket is somebody else's.
 *
 *	[ driver ] -- vhost-user -- [ network ] -- vhost-user -- [ driver ]      all in this process
 *	[ driver ] -- vhost-user -- somebody else
 */
#ifndef APP_BENCH_RUN_H
#define APP_BENCH_RUN_H

#include "app/bench_gen.h"
#include "app/net.h"
#include "app/show_driver.h"

#define BENCH_BATCH 64

struct bench_config {
	uint32_t size, mtu;
	uint64_t packets;   /* stop after as many; 0: when the time is over */
	nsec_t time;        /* at most, once it runs */
	const char *via;    /* a virtio-user port; NULL: all in this process */
	bool send, receive; /* the ends that are here */
	const char *knobs;  /* ",key=value..." for every driver */
	const char *cwd;
};

struct bench_end {
	struct spec spec;
	struct port *port; /* NULL: not here */
	struct driver_count count;
	uint64_t packets, bytes;
};

struct bench {
	struct bench_config config;
	struct net net;
	char dir[64]; /* of the sockets, "" once it is gone */
	struct bench_end tx, rx;
	struct bench_gen gen;
	struct pkt *waiting[BENCH_BATCH]; /* made, not yet taken by the driver */
	unsigned nwaiting;
	bool announced;
	nsec_t begun, ended; /* of what was counted */
	uint64_t drops;      /* in the network; until the end: before it began */
};

/* 0 or -errno; after 0 bench_fini. Big. */
int bench_init(struct bench *, const struct bench_config *, struct err *);
void bench_fini(struct bench *);
/* Waits for the link (-ETIMEDOUT: none), then runs; tx and rx hold what was counted. */
int bench_run(struct bench *, struct err *);

#endif
