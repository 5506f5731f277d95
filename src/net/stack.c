/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack: a host comes to be and goes, and its clock: the earliest of all parts' deadlines. All memory
 * is taken here.
 */
#include "net/stack_int.h"

#include <errno.h>
#include <stdlib.h>

#include "net/tcp.h"

#define MEMORY_DEFAULT (32u << 20)
#define KEEP_ORDER     3
#define KEEP_ROOM      64
#define MTU_DEFAULT    1500

static void on_ask(void *ctx, const struct ip_addr *ip, const uint8_t *mac)
{
	if (ip_addr_is4(ip))
		arp_ask(ctx, ip, mac);
	else
		ndp_ask(ctx, ip, mac);
}

static const struct neigh_ops neigh_ops = {on_ask, stack_release};

static int make_pool(struct stack *st, struct err *err)
{
	const size_t bytes = st->conf.memory ? st->conf.memory : MEMORY_DEFAULT;
	int r;

	st->pkts = st->conf.pool;
	if (st->pkts)
		return 0;
	r = chunk_pool_init(&st->chunks, bytes, err);
	if (r)
		return r;
	r = pkt_pool_init(&st->own_pkts, &st->chunks, (unsigned)(bytes / 2048), err);
	if (r) {
		chunk_pool_fini(&st->chunks);
		return r;
	}
	st->owns_pool = true;
	st->pkts = &st->own_pkts;
	return 0;
}

static int make_parts(struct stack *st, struct err *err)
{
	const uint8_t *secret = st->conf.secret;
	int r;

	st->rx = malloc(sizeof(*st->rx));
	st->gro = gro_new();
	if (!st->rx || !st->gro)
		return err_set(err, ENOMEM, "no memory for a host's receive burst");
	gro_seed(st->gro, rand_u64(&st->rand));
	r = neigh_new(&st->neigh, secret, &neigh_ops, st, err);
	if (!r)
		r = reass_new(&st->reass, secret, rand_u64(&st->rand), st->pkts, err);
	if (!r)
		r = stack_tcp_new(st, err);
	return r;
}

static void init_values(struct stack *st, const struct stack_conf *conf)
{
	st->conf = *conf;
	if (!st->conf.mtu)
		st->conf.mtu = MTU_DEFAULT;
	memcpy(st->face.mac, conf->mac, 6);
	st->face.mtu = st->face.mtu6 = st->conf.mtu;
	rand_init(&st->rand, conf->seed);
	memcpy(st->pmtu.key, conf->secret + 16, 16);
	memcpy(st->limits.key, conf->secret + 16, 16);
	st->keep = (struct keep_rule){.order = KEEP_ORDER, .headroom = KEEP_ROOM};
	for (unsigned i = 0; i < STACK_IDS; i++)
		st->ip_id[i] = (uint32_t)rand_u64(&st->rand);
	STAILQ_INIT(&st->out);
	STAILQ_INIT(&st->self);
	LIST_INIT(&st->udp.all);
	st->addr_at = st->dhcp.at = NSEC_NEVER;
}

int stack_new(struct stack **out, const struct stack_conf *conf, nsec_t now, struct err *err)
{
	struct stack *st;
	int r;

	*out = NULL;
	if (conf->mac[0] & 1)
		return err_set(err, EINVAL, "a host's Ethernet address is a multicast one");
	st = calloc(1, sizeof(*st));
	if (!st)
		return err_set(err, ENOMEM, "no memory for a host");
	init_values(st, conf);
	r = make_pool(st, err);
	if (!r)
		r = make_parts(st, err);
	if (r) {
		stack_free(st);
		return r;
	}
	stack_link_up(st, now);
	*out = st;
	return 0;
}

static void free_list(struct pkt_list *list)
{
	struct pkt *p;

	while ((p = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, entry);
		pkt_free(p);
	}
}

void stack_free(struct stack *st)
{
	if (!st)
		return;
	free_list(&st->out);
	free_list(&st->self);
	neigh_free(st->neigh);
	reass_free(st->reass);
	udp_fini(st);
	stack_tcp_free(st);
	gro_free(st->gro);
	free(st->rx);
	if (st->owns_pool) {
		pkt_pool_fini(&st->own_pkts);
		chunk_pool_fini(&st->chunks);
	}
	free(st);
}

/* ---- the link ---- */

void stack_link_up(struct stack *st, nsec_t now)
{
	static const struct ip_addr fe80 = {{0xfe, 0x80}};
	struct ip_addr ip;

	st->now = now;
	if (!st->conf.no_ip6) {
		iface_eui64(&fe80, st->face.mac, &ip);
		stack_addr_new(st, &ip, 128, ADDR_LINK_LOCAL, now);
		if (stack_link_local(st, &ip))
			ndp_start(st, now);
	}
	if (st->conf.dhcp && st->dhcp.state != DHCPC_BOUND)
		dhcpc_start(st, now);
}

void stack_set_mtu(struct stack *st, uint32_t mtu)
{
	st->face.mtu = mtu;
	if (st->face.mtu6 > mtu || st->face.mtu6 == st->conf.mtu)
		st->face.mtu6 = mtu;
	st->conf.mtu = mtu;
	tcp_host_mtu(st->tcp, mtu);
}

/* ---- time ---- */

static nsec_t earliest(nsec_t a, nsec_t b)
{
	return a < b ? a : b;
}

nsec_t stack_deadline(const struct stack *st)
{
	nsec_t at = earliest(st->addr_at, st->dhcp.at);

	at = earliest(at, ndp_deadline(st));
	at = earliest(at, neigh_deadline(st->neigh));
	at = earliest(at, reass_deadline(st->reass));
	return earliest(at, stack_tcp_deadline(st));
}

/* Datagrams that never became whole: their senders are told, if the first piece had come. */
static void reass_expired(struct stack *st, nsec_t now)
{
	struct pkt *p;

	while ((p = reass_timer(st->reass, now))) {
		struct frame f;
		struct rx rx = {.f = &f};

		if (pkt_lend(p, &f, &st->own_head, st->own_iov, RX_REASS_IOV) &&
			hdrs_parse(f.head, f.head_len, frame_len(&f), &rx.h) == HDRS_OK &&
			rx.h.ip) {
			const uint8_t *ip = f.head + rx.h.l3;
			const bool ip4 = rx.h.ip == 4;

			rx.src = ip4 ? ip_addr4(ip + 12) : ip_addr6(ip + 8);
			rx.dst = ip4 ? ip_addr4(ip + 16) : ip_addr6(ip + 24);
			icmp_error(st, &rx, ip4 ? 11 : 3, 1, 0, now);
		}
		pkt_free(p);
	}
}

void stack_timer(struct stack *st, nsec_t now)
{
	st->now = now;
	stack_addr_timer(st, now);
	ndp_timer(st, now);
	neigh_timer(st->neigh, now);
	reass_expired(st, now);
	if (st->dhcp.at <= now)
		dhcpc_timer(st, now);
	stack_tcp_timer(st, now);
}

struct tcp_host *stack_tcp(struct stack *st)
{
	return st->tcp;
}

struct pkt_pool *stack_pkts(struct stack *st)
{
	return st->pkts;
}

const uint8_t *stack_mac(const struct stack *st)
{
	return st->face.mac;
}

const struct stack_counters *stack_counters(const struct stack *st)
{
	return &st->stat;
}
