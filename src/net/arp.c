/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arp: the messages of address resolution; the table is neigh's. A request for an address of ours is
 * answered, and defends it; a reply counts only if it is to us. [RFC 826, RFC 5227 2.4]
 */
#include "wire/arp.h"

#include "net/stack_int.h"
#include "wire/eth.h"

static void send(struct stack *st, const struct arp *a, const uint8_t *to)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct pkt *p = pkt_new(st->pkts, stack_room(st, true), ARP_LEN);

	if (!p) {
		st->stat.out_no_memory++;
		return;
	}
	arp_build(a, p->head);
	stack_send_eth(st, p, to ? to : everybody, ETH_TYPE_ARP);
}

static struct arp request(const struct stack *st, const struct ip_addr *target)
{
	struct arp a = {.op = ARP_REQUEST};

	memcpy(a.sha, st->face.mac, 6);
	memcpy(a.tpa, ip_addr_v4(target), 4);
	return a;
}

void arp_ask(struct stack *st, const struct ip_addr *ip, const uint8_t *mac)
{
	struct arp a = request(st, ip);
	struct ip_addr src;

	if (iface_source(&st->face, ip, &src, st->now))
		memcpy(a.spa, ip_addr_v4(&src), 4);
	send(st, &a, mac);
}

void arp_announce(struct stack *st, const struct ip_addr *ip)
{
	struct arp a = request(st, ip);

	memcpy(a.spa, ip_addr_v4(ip), 4);
	send(st, &a, NULL);
}

static void reply(struct stack *st, const struct arp *to)
{
	struct arp a = {.op = ARP_REPLY};

	memcpy(a.sha, st->face.mac, 6);
	memcpy(a.spa, to->tpa, 4);
	memcpy(a.tha, to->sha, 6);
	memcpy(a.tpa, to->spa, 4);
	send(st, &a, to->sha);
}

void arp_in(struct stack *st, struct rx *rx, nsec_t now)
{
	const struct frame *f = rx->f;
	struct ip_addr sender, target;
	struct iface_addr *ours;
	struct arp a;

	if (!arp_parse(f->head + rx->h.l3, f->head_len - rx->h.l3, &a) || eth_is_multicast(a.sha) ||
		!eth_u48(a.sha)) {
		st->stat.in_bad++;
		return;
	}
	sender = ip_addr4(a.spa);
	target = ip_addr4(a.tpa);
	ours = iface_find(&st->face, &target);
	if (iface_find_any(&st->face, &sender)) {
		if (!memcmp(a.sha, st->face.mac, 6))
			return;
		st->stat.dad_conflicts++; /* somebody says he is us: say so, at its own rate */
		if (!ip_addr_equal(&sender, &target))
			return;
	} else if (!ip_addr_any(&sender) && !ip_addr_martian(&sender) &&
		   iface_on_link(&st->face, &sender)) {
		neigh_learn(st->neigh, &sender, a.sha,
			!ours                 ? NEIGH_UNASKED
			: a.op == ARP_REQUEST ? NEIGH_ASKED_US
					      : NEIGH_ANSWER,
			now);
	}
	if (ours && a.op == ARP_REQUEST)
		reply(st, &a);
}
