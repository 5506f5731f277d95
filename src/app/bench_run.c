/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_run: set-up of the ends, and the turns: send a batch, let the network work, receive all. A
 * turn in which nothing moved arms both ends and sleeps, if the loop has nothing to do either.
 *
 * What is counted begins when the links are up and the network has learned where the receiver is,
 * and ends with the last packet that arrived.
 */
#include "app/bench_run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/rand.h"
#include "wire/eth.h"

#define LINK_WAIT (5 * NSEC_PER_SEC)
#define DRAIN     (200 * NSEC_PER_MSEC) /* for what is still under way at the end */
#define NAP_MS    10
#define ECHO_WAIT (3 * NSEC_PER_SEC) /* instead of these, for what is to come back */
#define GIVE_UP   (20 * NSEC_PER_MSEC)
#define SPIN      (50 * NSEC_PER_USEC) /* without anything to do before sleeping */
#define POLL_US   100                  /* of the network between: as a network with traffic does */

/* set-up */

static int end_open(
	struct bench *b, struct bench_end *end, const char *name, const char *text, struct err *err)
{
	char rundir[RUNDIR_PATH];
	struct spec_ctx where = {.net = "bench", .rundir = rundir, .cwd = b->config.cwd};
	struct vdrv_config config;
	int r = rundir_path(rundir, b->config.net, false, err);

	if (!r)
		r = spec_parse(&end->spec, text, &where, err);
	if (r)
		return r;
	if (end->spec.kind != SPEC_VIRTIO_USER)
		return err_set(err, EINVAL,
			"bench: %s is a %s port; --via takes a virtio-user one: virtio-user:PATH",
			end->spec.name, spec_kind_name(end->spec.kind));
	spec_driver(&end->spec, &config);
	return vdrv_open(&end->port, name, &config, &b->net.loop, &b->net.log, err);
}

/* One end of the network that is here, and the driver on its other side. */
static int end_pair(struct bench *b, struct bench_end *end, const char *name, struct err *err)
{
	const char *knobs = b->config.knobs;
	const char *words = end == &b->tx && b->config.port ? b->config.port : "";
	size_t size = strlen(knobs) + strlen(words) + 160;
	char *text = malloc(size);
	int r;

	if (!text)
		return err_set(err, ENOMEM, "no memory");
	snprintf(text, size, "vhost-user:%s/%s.sock,mtu=%u%s", b->dir, name, b->config.mtu, words);
	r = net_add(&b->net, text, "/", err);
	if (!r) {
		snprintf(text, size, "virtio-user:%s/%s.sock,mtu=%u%s", b->dir, name, b->config.mtu,
			knobs);
		r = end_open(b, end, name, text, err);
	}
	free(text);
	return r;
}

/* An end on a socket of somebody else. */
static int end_far(
	struct bench *b, struct bench_end *end, const char *name, const char *port, struct err *err)
{
	char *text = malloc(strlen(port) + strlen(b->config.knobs) + 1);
	int r;

	if (!text)
		return err_set(err, ENOMEM, "no memory");
	strcpy(stpcpy(text, port), b->config.knobs);
	r = end_open(b, end, name, text, err);
	free(text);
	return r;
}

static int ends_open(struct bench *b, struct err *err)
{
	const struct bench_config *c = &b->config;
	int r = 0;

	if (c->via)
		r = end_far(b, &b->tx, "send", c->via, err);
	if (!r && c->to)
		r = end_far(b, &b->rx, "receive", c->to, err);
	if (!r && c->echo)
		b->rx.port = b->tx.port;
	if (r || c->via || c->to)
		return r;
	strcpy(b->dir, "/tmp/weft-bench-XXXXXX");
	if (!mkdtemp(b->dir)) {
		r = err_set(err, errno, "cannot make a folder for sockets in /tmp: %s",
			strerror(errno));
		b->dir[0] = 0;
		return r;
	}
	r = end_pair(b, &b->tx, "send", err);
	return r ? r : end_pair(b, &b->rx, "receive", err);
}

int bench_init(struct bench *b, const struct bench_config *c, struct err *err)
{
	struct net_config config;
	int r;

	memset(b, 0, sizeof(*b));
	b->config = *c;
	net_config_init(&config, "bench");
	config.poll_us = POLL_US;
	r = net_init(&b->net, &config, err);
	if (r)
		return r;
	r = ends_open(b, err);
	if (r)
		bench_fini(b);
	return r;
}

/* Nobody shall find the sockets later; the sessions are up. */
static void sockets_remove(struct bench *b)
{
	static const char *const names[] = {"send", "receive"};
	char path[96];

	if (!b->dir[0])
		return;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s.sock", b->dir, names[i]);
		unlink(path);
	}
	rmdir(b->dir);
	b->dir[0] = 0;
}

static void end_close(struct bench *b, struct bench_end *end)
{
	if (end == &b->tx || !b->config.echo)
		vdrv_free(end->port);
	spec_fini(&end->spec);
}

void bench_fini(struct bench *b)
{
	while (b->nwaiting)
		pkt_free(b->waiting[--b->nwaiting]);
	bench_gen_fini(&b->gen);
	end_close(b, &b->tx);
	end_close(b, &b->rx);
	net_fini(&b->net);
	sockets_remove(b);
}

/* turns */

static unsigned turn_send(struct bench *b, unsigned want)
{
	unsigned took;

	while (b->nwaiting < want) {
		struct pkt *p = bench_gen_make(&b->gen);

		if (!p)
			break;
		b->waiting[b->nwaiting++] = p;
	}
	took = vdrv_send(b->tx.port, b->waiting, b->nwaiting);
	vdrv_flush(b->tx.port);
	b->nwaiting -= took;
	for (unsigned i = 0; took && i < b->nwaiting; i++)
		b->waiting[i] = b->waiting[took + i];
	b->tx.packets += took;
	b->tx.bytes += (uint64_t)took * b->config.size;
	return took;
}

/* The packets that count, freed: all, or those that are as they were sent. */
static unsigned receive_some(struct bench *b, struct pkt **list, unsigned n)
{
	struct bench_end *rx = &b->rx;
	unsigned good = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!b->config.verify || stamp_check(&b->check, list[i])) {
			rx->bytes += list[i]->len;
			good++;
		}
		pkt_free(list[i]);
	}
	rx->packets += good;
	return good;
}

static unsigned turn_receive(struct bench *b)
{
	struct pkt *list[BENCH_BATCH];
	unsigned n, sum = 0;

	while ((n = vdrv_receive(b->rx.port, list, BENCH_BATCH)))
		sum += receive_some(b, list, n);
	if (sum)
		b->ended = loop_now(&b->net.loop);
	return sum;
}

/* What is flooded to the sender, too. */
static void turn_forget(struct port *tx)
{
	struct pkt *list[BENCH_BATCH];
	unsigned n;

	while ((n = vdrv_receive(tx, list, BENCH_BATCH))) {
		while (n)
			pkt_free(list[--n]);
	}
}

static void turn_idle(struct bench *b, bool sending)
{
	struct pollfd p = {.fd = b->net.loop.epfd, .events = POLLIN};
	struct port *tx = b->tx.port, *rx = b->rx.port;

	if (!TAILQ_EMPTY(&b->net.loop.tasks) || loop_now(&b->net.loop) - b->moved < SPIN)
		return;
	if (sending && tx && tx->ops->arm_room(&tx->q, b->config.size))
		return;
	if (rx && rx->ops->arm(&rx->q))
		return;
	poll(&p, 1, NAP_MS);
}

/* One turn, at most `want` packets sent: how many moved. */
static unsigned bench_turn(struct bench *b, unsigned want)
{
	unsigned moved = 0;

	if (b->tx.port && (want || b->nwaiting))
		moved += turn_send(b, want);
	loop_dispatch(&b->net.loop, false);
	if (b->rx.port)
		moved += turn_receive(b);
	if (b->tx.port && b->tx.port != b->rx.port)
		turn_forget(b->tx.port);
	if (moved)
		b->moved = loop_now(&b->net.loop);
	return moved;
}

/* the run */

static bool links_up(const struct bench *b)
{
	return (!b->tx.port || b->tx.port->link) && (!b->rx.port || b->rx.port->link);
}

static int bench_link(struct bench *b, struct err *err)
{
	nsec_t until = clock_now() + LINK_WAIT;
	struct pollfd p = {.fd = b->net.loop.epfd, .events = POLLIN};

	while (!links_up(b)) {
		struct bench_end *end = b->tx.port && !b->tx.port->link ? &b->tx : &b->rx;

		loop_dispatch(&b->net.loop, false);
		if (clock_now() > until)
			return err_set(err, ETIMEDOUT, "no link at %s after 5 s: %s",
				end->spec.path,
				*vdrv_last_end(end->port) ? vdrv_last_end(end->port)
							  : "nobody answers there");
		if (TAILQ_EMPTY(&b->net.loop.tasks))
			poll(&p, 1, NAP_MS);
	}
	sockets_remove(b);
	return 0;
}

static int bench_ready(struct bench *b, struct err *err)
{
	const struct bench_config *c = &b->config;
	struct port *tx = b->tx.port;
	uint32_t mtu = tx && tx->mtu ? tx->mtu : c->mtu;
	struct bench_gen_config gen = {
		.size = c->size,
		.mtu = mtu,
		.headroom = b->tx.spec.drv.headroom,
		.order = b->tx.spec.drv.order,
		.stamped = c->verify,
	};

	if (tx && c->size > mtu + ETH_HLEN && !(tx->accepts & ACCEPT_TSO4))
		return err_set(err, EINVAL,
			"frames of %u bytes are above the MTU of %u and need host_tso4, which the "
			"device does not offer or off= excludes",
			c->size, mtu);
	if (!tx)
		return 0;
	rand_secret(&gen.run, sizeof(gen.run));
	return bench_gen_init(&b->gen, vdrv_pkts(tx), &gen, err);
}

static void bench_announce(struct bench *b)
{
	struct port *rx = b->config.echo ? NULL : b->rx.port;
	struct pkt *p = rx ? bench_gen_announce(vdrv_pkts(rx), b->rx.spec.drv.headroom) : NULL;

	if (p && !vdrv_send(rx, &p, 1))
		pkt_free(p);
	if (rx)
		vdrv_flush(rx);
	for (unsigned i = 0; i < 16; i++)
		bench_turn(b, 0);
}

/* Frames that the network had to drop: the receiver had no buffers for them. */
static uint64_t bench_drops(const struct bench *b)
{
	const struct net_port *p;
	uint64_t sum = 0;

	TAILQ_FOREACH (p, &b->net.ports, entry)
		sum += p->port->q.lost_out;
	return sum;
}

static void bench_count(struct bench *b, bool begin)
{
	struct bench_end *ends[] = {&b->tx, &b->rx};
	struct driver_count now;

	for (unsigned i = 0; i < 2; i++) {
		if (!ends[i]->port)
			continue;
		driver_count_take(&now, ends[i]->port);
		if (begin) {
			ends[i]->packets = ends[i]->bytes = 0;
			stamp_check_init(&b->check);
		} else {
			driver_count_since(&now, &ends[i]->count);
		}
		ends[i]->count = now;
	}
	b->drops = bench_drops(b) - (begin ? 0 : b->drops);
	if (begin)
		b->begun = b->ended = loop_refresh(&b->net.loop);
	else if (!b->rx.port || !b->rx.packets)
		b->ended = loop_refresh(&b->net.loop);
}

/* Packets that may be under way: what fits the rings, and half of the receiver's buffers. */
static uint64_t bench_window(const struct bench *b)
{
	const struct vdrv_config *c = b->config.echo ? &b->tx.spec.drv : &b->rx.spec.drv;
	bool paged = c->rxbuf == VDRV_RXBUF_PAGE || c->rxbuf == VDRV_RXBUF_AUTO;
	uint64_t half = c->ring_size / 2,
		 packets = half * (paged ? CHUNK_PAGE : b->config.mtu) / b->config.size + 1;

	if (b->config.to) /* the other side is at work at the same time */
		half *= 3;
	return packets < half ? packets : half;
}

/* Whoever echoes is a guest, perhaps, that gets a processor now and then. */
static nsec_t bench_patience(const struct bench *b, nsec_t usual)
{
	return b->config.echo ? ECHO_WAIT : usual;
}

/*
 * How many to send now. If the receiver is here, no more are under way than it has buffers for: what is measured is the way, not how it drops. What does not come is given up after a while.
 */
static unsigned bench_want(struct bench *b)
{
	uint64_t want = BENCH_BATCH, window = bench_window(b), gone;

	if (b->config.packets && b->config.packets - b->tx.packets < want)
		want = b->config.packets - b->tx.packets;
	if (!b->rx.port)
		return (unsigned)want;
	gone = b->rx.packets + b->given_up;
	if (b->tx.packets < gone + window) {
		window -= b->tx.packets > gone ? b->tx.packets - gone : 0;
		return (unsigned)(want < window ? want : window);
	}
	if (loop_now(&b->net.loop) - b->ended > bench_patience(b, GIVE_UP)) {
		b->given_up = b->tx.packets - b->rx.packets;
		b->ended = loop_now(&b->net.loop);
	}
	return 0;
}

static void bench_send(struct bench *b)
{
	nsec_t until = b->begun + b->config.time, quiet;

	while (loop_now(&b->net.loop) < until &&
		(!b->config.packets || b->tx.packets < b->config.packets)) {
		unsigned want = bench_want(b);

		if (!bench_turn(b, want))
			turn_idle(b, want);
	}
	while (b->nwaiting)
		pkt_free(b->waiting[--b->nwaiting]);
	quiet = loop_now(&b->net.loop) + bench_patience(b, DRAIN);
	while (b->rx.port && b->rx.packets < b->tx.packets && loop_now(&b->net.loop) < quiet) {
		if (bench_turn(b, 0))
			quiet = loop_now(&b->net.loop) + bench_patience(b, DRAIN);
		else
			turn_idle(b, false);
	}
}

/* From the first packet on for the time given, or until so many have come. */
static void bench_receive(struct bench *b)
{
	nsec_t until = loop_now(&b->net.loop) + b->config.time;
	bool first = true;

	while (loop_now(&b->net.loop) < until &&
		(!b->config.packets || b->rx.packets < b->config.packets)) {
		if (!bench_turn(b, 0)) {
			turn_idle(b, false);
		} else if (first) {
			first = false;
			b->begun = loop_now(&b->net.loop);
			until = b->begun + b->config.time;
		}
	}
}

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void bench_warm(struct bench *b)
{
	const struct bench_config c = b->config;

	b->config.time = c.warm;
	b->config.packets = 0;
	bench_count(b, true);
	bench_send(b);
	b->config = c;
	b->given_up = 0;
}

int bench_run(struct bench *b, struct err *err)
{
	int r = bench_link(b, err);

	if (!r)
		r = bench_ready(b, err);
	if (r)
		return r;
	bench_announce(b);
	if (b->config.warm && b->tx.port)
		bench_warm(b);
	bench_count(b, true);
	b->cpu = cpu_now();
	if (b->tx.port)
		bench_send(b);
	else
		bench_receive(b);
	b->cpu = cpu_now() - b->cpu;
	bench_count(b, false);
	return 0;
}
