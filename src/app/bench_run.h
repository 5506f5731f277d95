/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_run: drivers that send and receive as fast as they can, on one thread, and what was counted
 * meanwhile. Either both ends and the network between them are here, or one or both ends are, and
 * the network is somebody else's.
 *
 *	[ driver ] -- vhost-user -- [ network ] -- vhost-user -- [ driver ]      all in this process
 *	[ driver ] -- vhost-user -- somebody else                   [ -- vhost-user -- [ driver ] ]
 */
#ifndef APP_BENCH_RUN_H
#define APP_BENCH_RUN_H

#include "app/bench_gen.h"
#include "app/bench_stamp.h"
#include "app/net.h"
#include "app/show_driver.h"

#define BENCH_BATCH 64

struct bench_config {
	uint32_t size, mtu;
	uint64_t packets;  /* stop after as many; 0: when the time is over */
	nsec_t time;       /* at most, once it runs */
	nsec_t warm;       /* before it: not counted */
	const char *via;   /* the sender's virtio-user port; NULL: none here, or all of it is */
	const char *to;    /* the receiver's */
	bool verify;       /* packets are stamped, and checked where they come */
	bool echo;         /* the receiver is the sender: somebody sends back what he gets */
	const char *knobs; /* ",key=value..." for every driver */
	const char *port;  /* likewise for the sender's port of the network; NULL: none */
	const char *cwd;
	const char *net; /* whose ports a bare NAME means */
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
	nsec_t moved;        /* when something last did */
	uint64_t given_up;   /* packets that never came */
	double cpu;          /* seconds, of the whole process */
	uint64_t drops;      /* in the network; until the end: before it began */
	struct stamp_check check;
};

/* 0 or -errno; after 0 bench_fini. Big. */
int bench_init(struct bench *, const struct bench_config *, struct err *);
void bench_fini(struct bench *);
/* Waits for the link (-ETIMEDOUT: none), then runs; tx and rx hold what was counted. */
int bench_run(struct bench *, struct err *);

#endif
