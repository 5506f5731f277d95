/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp: sockets, from and to the stack. Received datagrams are kept as the packets they came in, headers
 * and all: who sent them is read from there again, so nothing is stored beside. Trains (GSO, GRO) stay
 * in one packet; a socket that does not take trains gets them datagram by datagram.
 * [RFC 768, RFC 1122 4.1, RFC 6056 3.3.1]
 */
#include "wire/udp.h"

#include <errno.h>
#include <stdlib.h>

#include "net/siphash.h"
#include "net/stack_int.h"
#include "wire/icmp.h"

#define PORT_FIRST 32768
#define PORT_LAST  60999
#define FLOW_MASK  0xfffff

static const struct ip_addr any;

static struct udp_bucket *bucket_of(struct stack *st, uint16_t port)
{
	return &st->udp.bucket[port % UDP_BUCKETS];
}

/* ---- sockets ---- */

static void tell(struct udp_sock *u)
{
	if (u->st->udp.ready && !u->dead)
		u->st->udp.ready(u->st->udp.ctx, u);
}

static void on_sent(struct pkt_account *a)
{
	struct udp_sock *u = (struct udp_sock *)((char *)a - offsetof(struct udp_sock, account));

	if (u->dead) {
		if (!a->outstanding)
			free(u);
		return;
	}
	if (a->outstanding_bytes * 2 > u->sndbuf)
		return;
	a->waiting = false;
	tell(u);
}

struct udp_sock *udp_new(struct stack *st, void *user)
{
	struct udp_sock *u = st->udp.n < UDP_SOCKS ? calloc(1, sizeof(*u)) : NULL;

	if (!u)
		return NULL;
	u->st = st;
	u->user = user;
	u->rcvbuf = UDP_RCVBUF;
	u->sndbuf = UDP_SNDBUF;
	u->account.done = on_sent;
	STAILQ_INIT(&u->queue);
	LIST_INSERT_HEAD(&st->udp.all, u, all);
	st->udp.n++;
	return u;
}

static void drop_first(struct udp_sock *u)
{
	struct pkt *p = STAILQ_FIRST(&u->queue);

	STAILQ_REMOVE_HEAD(&u->queue, entry);
	u->nqueue--;
	u->charged -= p->truesize;
	u->taken = 0;
	pkt_free(p);
}

void udp_close(struct udp_sock *u)
{
	if (u->local.port)
		LIST_REMOVE(u, chain);
	LIST_REMOVE(u, all);
	u->st->udp.n--;
	while (u->nqueue)
		drop_first(u);
	u->dead = true;
	if (u->account.outstanding)
		u->account.waiting = true;
	else
		free(u);
}

void udp_fini(struct stack *st)
{
	struct udp_sock *u, *next;

	for (u = LIST_FIRST(&st->udp.all); u; u = next) {
		next = LIST_NEXT(u, all);
		udp_close(u);
	}
}

void udp_on_ready(struct stack *st, void (*ready)(void *ctx, struct udp_sock *), void *ctx)
{
	st->udp.ready = ready;
	st->udp.ctx = ctx;
}

static bool overlap(const struct ip_addr *a, const struct ip_addr *b)
{
	if (ip_addr_equal(a, b) || ip_addr_equal(a, &any) || ip_addr_equal(b, &any))
		return true;
	return ip_addr_is4(a) == ip_addr_is4(b) && (ip_addr_any(a) || ip_addr_any(b));
}

static bool taken(struct udp_sock *u, const struct ip_addr *ip, uint16_t port)
{
	const struct udp_sock *o;

	LIST_FOREACH (o, bucket_of(u->st, port), chain)
		if (o != u && o->local.port == port && overlap(&o->local.ip, ip) &&
			!(o->reuse && u->reuse))
			return true;
	return false;
}

static uint16_t choose_port(struct udp_sock *u, const struct ip_addr *ip)
{
	const uint32_t n = PORT_LAST - PORT_FIRST + 1, from = rand_below(&u->st->rand, n);

	for (uint32_t i = 0; i < n; i++) {
		const uint16_t port = (uint16_t)(PORT_FIRST + (from + i) % n);

		if (!taken(u, ip, port))
			return port;
	}
	return 0;
}

int udp_bind(struct udp_sock *u, const struct udp_addr *a)
{
	uint16_t port = a->port;

	if (u->local.port)
		return -EINVAL;
	if (!ip_addr_any(&a->ip) && !iface_find(&u->st->face, &a->ip) &&
		!iface_is_broadcast(&u->st->face, &a->ip) && !ip_addr_multicast(&a->ip))
		return -EADDRNOTAVAIL;
	if (!port)
		port = choose_port(u, &a->ip);
	if (!port || taken(u, &a->ip, port))
		return -EADDRINUSE;
	u->local = (struct udp_addr){a->ip, port};
	LIST_INSERT_HEAD(bucket_of(u->st, port), u, chain);
	return 0;
}

/* The same for all datagrams of a flow, and nobody's guess. [RFC 6437 3] */
static uint32_t flow_label(const struct udp_sock *u, const struct udp_addr *to)
{
	struct {
		struct ip_addr ip;
		uint16_t ports[2];
	} flow = {to->ip, {u->local.port, to->port}};

	return (uint32_t)siphash(u->st->conf.secret, &flow, sizeof(flow)) & FLOW_MASK;
}

int udp_connect(struct udp_sock *u, const struct udp_addr *peer, nsec_t now)
{
	struct udp_addr local = {.port = u->local.port};
	uint32_t mtu;
	int r;

	r = stack_route(u->st, &peer->ip, &local.ip, &mtu, now);
	if (r)
		return r;
	if (!peer->port)
		return -EINVAL;
	if (!u->local.port) {
		r = udp_bind(u, &local);
		if (r)
			return r;
	} else if (ip_addr_any(&u->local.ip)) {
		u->local.ip = local.ip;
	}
	u->peer = *peer;
	return 0;
}

int udp_set(struct udp_sock *u, enum udp_option option, uint32_t value)
{
	switch (option) {
	case UDPO_GRO:
		u->gro = value;
		return 0;
	case UDPO_RCVBUF:
		u->rcvbuf = value < 2048 ? 2048 : value;
		return 0;
	case UDPO_SNDBUF:
		u->sndbuf = value < 4096 ? 4096 : value;
		return 0;
	case UDPO_DF:
		u->df = value;
		return 0;
	case UDPO_TOS:
		u->tos = (uint8_t)value;
		return value > 255 ? -EINVAL : 0;
	case UDPO_HOPS:
		u->hops = (uint8_t)value;
		return value > 255 ? -EINVAL : 0;
	case UDPO_REUSE:
		u->reuse = value;
		return 0;
	}
	return -EINVAL;
}

unsigned udp_ready(const struct udp_sock *u)
{
	return (u->nqueue ? UDP_READABLE : 0) |
	       (u->account.outstanding_bytes < u->sndbuf ? UDP_WRITABLE : 0) |
	       (u->error ? UDP_ERROR : 0);
}

int udp_error_take(struct udp_sock *u)
{
	const int err = u->error;

	u->error = 0;
	return err;
}

void *udp_user(const struct udp_sock *u)
{
	return u->user;
}

void udp_names(const struct udp_sock *u, struct udp_addr *local, struct udp_addr *peer)
{
	*local = u->local;
	*peer = u->peer;
}

/* ---- out ---- */

static void copy_payload(
	const struct iovec *iov, unsigned niov, uint32_t len, const struct iovec *to, unsigned nto)
{
	const struct frame f = {
		.tail = (struct iovec *)(uintptr_t)iov, .ntail = (uint16_t)niov, .tail_len = len};

	if (len)
		frame_copy(&f, 0, len, to, nto, 0);
}

static struct pkt *make_datagram(struct udp_sock *u, const struct ip_meta *m, uint16_t dport,
	const struct iovec *iov, unsigned niov, uint32_t len)
{
	const uint32_t udp_len = UDP_HLEN + len;
	struct iovec to[PKT_FRAGS + 1];
	struct udp h = {u->local.port, dport, (uint16_t)udp_len,
		ip_pseudo(&m->src, &m->dst, IP_PROTO_UDP, udp_len)};
	unsigned nto;
	struct pkt *p = stack_pkt_long(u->st, &m->dst, UDP_HLEN, len, to, &nto);

	if (!p)
		return NULL;
	udp_build(&h, p->head);
	copy_payload(iov, niov, len, to, nto);
	p->off = (struct offload){
		.flags = OFF_NEEDS_CSUM, .csum_off = UDP_CSUM, .hdr_len = UDP_HLEN};
	return p;
}

static bool total_len(const struct iovec *iov, unsigned niov, uint32_t *len)
{
	size_t sum = 0;

	for (unsigned i = 0; i < niov && sum <= UINT16_MAX; i++) {
		if (iov[i].iov_len > UINT16_MAX)
			return false;
		sum += iov[i].iov_len;
	}
	*len = (uint32_t)sum;
	return sum <= UINT16_MAX && niov <= UINT16_MAX;
}

/* May it go, as one or as a train? */
static int check_size(const struct udp_sock *u, const struct ip_meta *m, uint32_t mtu, uint32_t len,
	uint16_t *gso)
{
	const uint32_t hlen = UDP_HLEN + (ip_addr_is4(&m->dst) ? IP4_HLEN : IP6_HLEN);

	if (len + hlen > UINT16_MAX) /* IPv6 would allow 40 more: FRAME_MAX does not */
		return -EMSGSIZE;
	if (*gso >= len)
		*gso = 0;
	if (*gso)
		return *gso + hlen > mtu || (len + *gso - 1) / *gso > GSO_UDP_SEGMENTS ? -EMSGSIZE
										       : 0;
	return u->df && len + hlen > mtu ? -EMSGSIZE : 0;
}

static int find_way(
	struct udp_sock *u, const struct udp_addr *to, struct ip_meta *m, uint32_t *mtu, nsec_t now)
{
	int r = stack_route(u->st, &to->ip, &m->src, mtu, now);

	if (r)
		return r;
	m->dst = to->ip;
	if (!u->local.port)
		r = udp_bind(u, &(struct udp_addr){.ip = any});
	else if (!ip_addr_any(&u->local.ip) && !ip_addr_multicast(&u->local.ip))
		m->src = u->local.ip;
	if (ip_addr_is4(&m->src) != ip_addr_is4(&m->dst))
		r = -EADDRNOTAVAIL;
	return r;
}

ssize_t udp_send(struct udp_sock *u, const struct udp_addr *to, const struct iovec *iov,
	unsigned niov, uint16_t gso_size, nsec_t now)
{
	struct ip_meta m = {
		.proto = IP_PROTO_UDP, .tos = u->tos, .hops = u->hops, .fragment = !u->df};
	uint32_t len, mtu;
	struct pkt *p;
	int r;

	if (u->error)
		return -udp_error_take(u);
	if (!to)
		to = &u->peer;
	if (!to->port || ip_addr_any(&to->ip))
		return -EDESTADDRREQ;
	if (!total_len(iov, niov, &len))
		return -EMSGSIZE;
	r = find_way(u, to, &m, &mtu, now);
	if (!r)
		r = check_size(u, &m, mtu, len, &gso_size);
	if (r)
		return r;
	if (u->account.outstanding_bytes >= u->sndbuf) {
		u->account.waiting = true;
		u->st->stat.udp_waits++;
		return -EAGAIN;
	}
	m.flow = flow_label(u, to);
	m.df = len + UDP_HLEN + IP6_HLEN <= mtu;
	p = make_datagram(u, &m, to->port, iov, niov, len);
	if (!p)
		return -ENOBUFS;
	if (gso_size) {
		p->off.gso = OFF_GSO_UDP_L4;
		p->off.gso_size = gso_size;
	}
	pkt_set_account(p, &u->account);
	u->st->stat.udp_out++;
	r = stack_send(u->st, p, &m, now);
	return r ? r : (ssize_t)len;
}

/* ---- in ---- */

/* How well a socket fits; 0: not at all. */
static unsigned fitness(
	const struct udp_sock *u, const struct udp_addr *to, const struct udp_addr *from)
{
	unsigned n = 1;

	if (u->local.port != to->port)
		return 0;
	if (!ip_addr_any(&u->local.ip)) {
		if (!ip_addr_equal(&u->local.ip, &to->ip))
			return 0;
		n += 1;
	} else if (!ip_addr_equal(&u->local.ip, &any) &&
		   ip_addr_is4(&u->local.ip) != ip_addr_is4(&to->ip)) {
		return 0;
	}
	if (u->peer.port) {
		if (u->peer.port != from->port || !ip_addr_equal(&u->peer.ip, &from->ip))
			return 0;
		n += 2;
	}
	return n;
}

static struct udp_sock *find(
	struct stack *st, const struct udp_addr *to, const struct udp_addr *from)
{
	struct udp_sock *u, *best = NULL;
	unsigned most = 0;

	LIST_FOREACH (u, bucket_of(st, to->port), chain) {
		const unsigned n = fitness(u, to, from);

		if (n > most) {
			most = n;
			best = u;
		}
	}
	return best;
}

static void ends(const struct rx *rx, struct udp_addr *to, struct udp_addr *from)
{
	const struct udp h = udp_parse(rx->f->head + rx->l4);

	*to = (struct udp_addr){rx->dst, h.dport};
	*from = (struct udp_addr){rx->src, h.sport};
}

bool udp_wants_gro(struct stack *st, const struct rx *rx)
{
	struct udp_addr to, from;
	const struct udp_sock *u;

	ends(rx, &to, &from);
	u = find(st, &to, &from);
	return u && u->gro;
}

static void enqueue(struct stack *st, struct udp_sock *u, const struct frame *f)
{
	struct pkt *p;

	if (u->charged >= u->rcvbuf) {
		st->stat.udp_full++;
		return;
	}
	p = frame_keep(f, st->pkts, &st->keep);
	if (!p) {
		st->stat.in_no_memory++;
		return;
	}
	if (u->charged + p->truesize > u->rcvbuf && u->nqueue) {
		st->stat.udp_full++;
		pkt_free(p);
		return;
	}
	STAILQ_INSERT_TAIL(&u->queue, p, entry);
	u->charged += p->truesize;
	u->nqueue++;
	if (u->nqueue == 1)
		tell(u);
}

void udp_in(struct stack *st, struct rx *rx, nsec_t now)
{
	struct udp_addr to, from;
	struct udp_sock *u;

	ends(rx, &to, &from);
	if (rx->h.ip == 4 && to.port == 68 && from.port == 67 && st->conf.dhcp) {
		dhcpc_in(st, rx, now);
		return;
	}
	if (ip_addr_any(&rx->src) || !from.port) {
		st->stat.in_martian++;
		return;
	}
	st->stat.udp_in++;
	if (rx->group) {
		LIST_FOREACH (u, bucket_of(st, to.port), chain)
			if (fitness(u, &to, &from))
				enqueue(st, u, rx->f);
		return;
	}
	u = iface_find(&st->face, &rx->dst) ? find(st, &to, &from) : NULL;
	if (u) {
		enqueue(st, u, rx->f);
		return;
	}
	st->stat.udp_no_port++;
	icmp_error(st, rx, rx->h.ip == 4 ? ICMP4_UNREACH : ICMP6_UNREACH,
		rx->h.ip == 4 ? ICMP4_PORT : ICMP6_PORT, 0, now);
}

bool udp_error(struct stack *st, const struct ip_addr *src, const struct ip_addr *dst,
	const uint8_t *udp, enum icmp_kind kind, int err)
{
	const struct udp h = udp_parse(udp);
	const struct udp_addr local = {*src, h.sport}, peer = {*dst, h.dport};
	struct udp_sock *u = find(st, &local, &peer);

	if (!u)
		return false;
	if (u->peer.port && (kind == ICMP_HARD || (kind == ICMP_BIG && u->df))) {
		u->error = err;
		tell(u);
	}
	return true;
}

/* ---- to the application ---- */

static void describe(const struct frame *f, const struct hdrs *h, struct udp_info *info)
{
	const uint8_t *ip = f->head + h->l3;
	const struct udp u = udp_parse(f->head + h->l4);

	*info = (struct udp_info){.from.port = u.sport, .to.port = u.dport};
	if (h->ip == 4) {
		info->from.ip = ip_addr4(ip + 12);
		info->to.ip = ip_addr4(ip + 16);
		info->tos = ip[1];
	} else {
		info->from.ip = ip_addr6(ip + 8);
		info->to.ip = ip_addr6(ip + 24);
		info->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	}
}

static uint32_t room_of(const struct iovec *iov, unsigned niov)
{
	size_t sum = 0;

	for (unsigned i = 0; i < niov && sum < UINT16_MAX; i++)
		sum += iov[i].iov_len;
	return sum < UINT16_MAX ? (uint32_t)sum : UINT16_MAX;
}

ssize_t udp_recv(struct udp_sock *u, const struct iovec *iov, unsigned niov, struct udp_info *info,
	int flags)
{
	struct pkt *p = STAILQ_FIRST(&u->queue);
	struct stack *st = u->st;
	uint32_t len, n, room;
	struct frame f;
	struct hdrs h;

	if (u->error)
		return -udp_error_take(u);
	if (!p)
		return -EAGAIN;
	/* it was in order when it was queued, and is ours: it still is */
	if (!pkt_lend(p, &f, &st->own_head, st->own_iov, RX_REASS_IOV) ||
		hdrs_parse(f.head, f.head_len, frame_len(&f), &h) != HDRS_OK || !h.l4) {
		drop_first(u);
		return -EAGAIN;
	}
	describe(&f, &h, info);
	len = frame_len(&f) - h.payload - u->taken;
	if (p->off.gso && u->gro)
		info->gso_size = p->off.gso_size;
	else if (p->off.gso && len > p->off.gso_size)
		len = p->off.gso_size;
	room = room_of(iov, niov);
	n = len < room ? len : room;
	info->truncated = n < len;
	if (n)
		frame_copy(&f, h.payload + u->taken, n, iov, niov, 0);
	if (flags & UDP_PEEK)
		return n;
	u->taken += len;
	if (h.payload + u->taken >= frame_len(&f))
		drop_first(u);
	return n;
}
