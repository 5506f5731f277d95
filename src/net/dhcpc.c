/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dhcpc: the DHCP client. It asks by broadcast until it has an address, then renews it at T1 from its
 * server and at T2 from anybody; when the lease ends the address goes. Only answers with our
 * transaction number, from port 67, to our Ethernet address are looked at. [RFC 2131 4.4]
 */
#include "net/dhcpc.h"

#include "net/stack_int.h"
#include "wire/dhcp.h"
#include "wire/udp.h"

#define RETRY_FIRST (1 * NSEC_PER_SEC) /* doubled up to the last, each with a second of jitter */
#define RETRY_LAST  (64 * NSEC_PER_SEC)
#define REQUESTS    4  /* of one offer, then anew */
#define LEASE_MIN   30 /* s: shorter ones would only make traffic */

static nsec_t jitter(struct stack *st)
{
	return rand_below(&st->rand, 1000) * NSEC_PER_MSEC;
}

static void retry_later(struct stack *st, nsec_t now)
{
	struct dhcpc *d = &st->dhcp;
	nsec_t wait = RETRY_FIRST << (d->tries < 6 ? d->tries : 6);

	if (wait > RETRY_LAST)
		wait = RETRY_LAST;
	d->tries++;
	d->at = now + wait + jitter(st);
}

static void send(struct stack *st, const struct dhcp *msg, const struct ip_meta *m, nsec_t now)
{
	uint8_t buf[DHCP_MAX];
	const uint32_t len = UDP_HLEN + (uint32_t)dhcp_build(msg, buf);
	const struct udp u = {DHCP_CLIENT, DHCP_SERVER, (uint16_t)len, 0};
	struct pkt *p = stack_pkt(st, &m->dst, len);
	struct csum c = {0};
	uint16_t sum;

	if (!p)
		return;
	udp_build(&u, p->head);
	memcpy(p->head + UDP_HLEN, buf, len - UDP_HLEN);
	csum_pseudo4(&c, ip_addr_v4(&m->src), ip_addr_v4(&m->dst), IP_PROTO_UDP, len);
	csum_piece(&c, p->head, len);
	sum = csum_end(&c);
	put_be16(p->head + UDP_CSUM, sum ? sum : 0xffff);
	stack_send(st, p, m, now);
}

static void ask(struct stack *st, nsec_t now)
{
	struct dhcpc *d = &st->dhcp;
	const bool bound = d->state >= DHCPC_BOUND;
	struct dhcp msg = {.type = d->state == DHCPC_SELECTING ? DHCP_DISCOVER : DHCP_REQUEST,
		.xid = d->xid,
		.broadcast = !bound,
		.ciaddr = bound ? d->addr : 0};
	struct ip_meta m = {.src = ip_addr4_u32(bound ? d->addr : 0),
		.dst = ip_addr4_u32(d->state == DHCPC_RENEWING ? d->server : UINT32_MAX),
		.proto = IP_PROTO_UDP};

	memcpy(msg.mac, st->face.mac, 6);
	if (d->state == DHCPC_REQUESTING) {
		msg.requested = d->addr;
		msg.server = d->server;
	}
	send(st, &msg, &m, now);
}

void dhcpc_start(struct stack *st, nsec_t now)
{
	st->dhcp = (struct dhcpc){.state = DHCPC_SELECTING, .xid = (uint32_t)rand_u64(&st->rand)};
	st->dhcp.at = now;
}

static void forget(struct stack *st, nsec_t now)
{
	const struct ip_addr ip = ip_addr4_u32(st->dhcp.addr);
	struct iface_addr *a = iface_find_any(&st->face, &ip);

	if (a && a->origin == ADDR_DHCP)
		iface_del(&st->face, a);
	stack_addr_retime(st);
	dhcpc_start(st, now);
}

/* Half of what is left, but not more often than once a minute. [RFC 2131 4.4.5] */
static nsec_t half_way(nsec_t now, nsec_t end)
{
	const nsec_t half = (end - now) / 2;

	return half < 60 * NSEC_PER_SEC ? end : now + half;
}

void dhcpc_timer(struct stack *st, nsec_t now)
{
	struct dhcpc *d = &st->dhcp;

	switch (d->state) {
	case DHCPC_OFF:
		d->at = NSEC_NEVER;
		return;
	case DHCPC_REQUESTING:
		if (d->tries >= REQUESTS) {
			dhcpc_start(st, now);
			return;
		}
		break;
	case DHCPC_SELECTING:
		break;
	case DHCPC_BOUND:
		d->state = DHCPC_RENEWING;
		d->xid = (uint32_t)rand_u64(&st->rand);
		break;
	case DHCPC_RENEWING:
		if (now >= d->t2)
			d->state = DHCPC_REBINDING;
		break;
	case DHCPC_REBINDING:
		if (now >= d->end) {
			forget(st, now);
			return;
		}
		break;
	}
	ask(st, now);
	if (d->state == DHCPC_RENEWING)
		d->at = half_way(now, d->t2);
	else if (d->state == DHCPC_REBINDING)
		d->at = half_way(now, d->end);
	else
		retry_later(st, now);
}

/* ---- answers ---- */

static nsec_t seconds(uint32_t s, nsec_t now)
{
	return s == UINT32_MAX ? NSEC_NEVER : now + s * NSEC_PER_SEC;
}

static void set_times(struct dhcpc *d, const struct dhcp *m, nsec_t now)
{
	const uint32_t lease = m->lease < LEASE_MIN ? LEASE_MIN : m->lease;
	uint32_t t1 = m->t1, t2 = m->t2;

	if (!t1 || !t2 || t1 >= t2 || t2 >= lease) {
		t1 = lease / 2;
		t2 = (uint32_t)(lease * UINT64_C(7) / 8);
	}
	d->end = seconds(lease, now);
	d->t1 = lease == UINT32_MAX ? NSEC_NEVER : seconds(t1, now);
	d->t2 = lease == UINT32_MAX ? NSEC_NEVER : seconds(t2, now);
	d->at = d->t1;
}

static unsigned mask_len(uint32_t mask)
{
	return mask ? (unsigned)__builtin_popcount(mask) : 24;
}

static void configure(struct stack *st, const struct dhcp *m, nsec_t now)
{
	const struct ip_addr ip = ip_addr4_u32(m->yiaddr);
	struct iface_addr *a = stack_addr_new(st, &ip, 96 + mask_len(m->mask), ADDR_DHCP, now);
	struct ip_addr router = ip_addr4_u32(m->router);

	if (!a)
		return;
	a->valid_until = a->preferred_until = st->dhcp.end;
	stack_addr_retime(st);
	if (m->router && !ip_addr_martian(&router))
		iface_set_router(&st->face, &router, false, st->dhcp.end);
	if (m->mtu >= 576 && m->mtu < st->face.mtu)
		st->face.mtu = m->mtu;
	st->ndns = 0;
	for (unsigned i = 0; i < DHCP_DNS_MAX && i < STACK_DNS && m->dns[i]; i++)
		st->dns[st->ndns++] = ip_addr4_u32(m->dns[i]);
}

static void ack_in(struct stack *st, const struct dhcp *m, nsec_t now)
{
	struct dhcpc *d = &st->dhcp;
	const struct ip_addr ip = ip_addr4_u32(m->yiaddr);

	if (ip_addr_martian(&ip) || (m->lease == 0))
		return;
	if (d->addr != m->yiaddr && d->state >= DHCPC_BOUND)
		forget(st, now);
	d->addr = m->yiaddr;
	if (m->server)
		d->server = m->server;
	set_times(d, m, now);
	configure(st, m, now);
	d->state = DHCPC_BOUND;
	d->tries = 0;
}

void dhcpc_in(struct stack *st, const struct rx *rx, nsec_t now)
{
	struct dhcpc *d = &st->dhcp;
	uint8_t buf[1500];
	struct iovec to = {buf, sizeof(buf)};
	uint32_t len = rx->l4_len - UDP_HLEN;
	struct dhcp m;

	if (len > sizeof(buf))
		len = sizeof(buf);
	frame_copy(rx->f, rx->l4 + UDP_HLEN, len, &to, 1, 0);
	if (!dhcp_parse(buf, len, &m) || !m.reply || m.xid != d->xid ||
		memcmp(m.mac, st->face.mac, 6))
		return;
	st->stat.dhcp_in++;
	if (m.type == DHCP_OFFER && d->state == DHCPC_SELECTING && m.server && m.yiaddr) {
		d->state = DHCPC_REQUESTING;
		d->addr = m.yiaddr;
		d->server = m.server;
		d->tries = 0;
		ask(st, now);
		retry_later(st, now);
	} else if (m.type == DHCP_ACK && d->state != DHCPC_SELECTING && d->state != DHCPC_BOUND) {
		ack_in(st, &m, now);
	} else if (m.type == DHCP_NAK && d->state != DHCPC_SELECTING && d->state != DHCPC_BOUND) {
		forget(st, now);
	}
}
