/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * why: explains whether and how two ports reach each other: a verdict in one sentence, then what it
 * rests on. What is fitted in software follows from what the sender's driver may send and what the
 * receiver's takes, the same two sets that the datapath compares.
 */
#include <errno.h>
#include <string.h>

#include "app/cmd.h"
#include "app/show.h"
#include "fabric/fdb.h"
#include "port/tap.h"
#include "port/vdrv.h"
#include "port/vhost_be.h"

static const struct {
	unsigned accept;
	uint64_t feature;
	const char *text;
} gso[] = {
	{ACCEPT_TSO4, VNET_BIT(HOST_TSO4), "TCP over IPv4"},
	{ACCEPT_TSO6, VNET_BIT(HOST_TSO6), "TCP over IPv6"},
	{ACCEPT_ECN, VNET_BIT(HOST_ECN), "TCP with ECN"},
	{ACCEPT_USO4, VNET_BIT(HOST_USO), "UDP over IPv4"},
	{ACCEPT_USO6, VNET_BIT(HOST_USO), "UDP over IPv6"},
};
#define N_GSO (sizeof(gso) / sizeof(gso[0]))

/* The features under which the driver behind the port works. */
static uint64_t why_features(const struct net_port *p)
{
	if (p->kind == SPEC_VIRTIO_USER)
		return vdrv_features(p->port);
	if (spec_is_tap(p->kind))
		return tap_features(p->port);
	return vdev_of_port(p->port)->features;
}

/* ACCEPT_* bits of what may come from the port and the other's driver does not take. */
static unsigned why_fitted(const struct net_port *from, const struct net_port *to)
{
	uint64_t features = why_features(from);
	unsigned emits = features & VNET_BIT(CSUM) ? ACCEPT_CSUM : 0;

	if (from->kind == SPEC_VIRTIO_USER) /* we are the driver: what comes, we said we take */
		return vnet_accepts(features) & ~to->port->accepts;
	for (unsigned i = 0; i < N_GSO; i++) {
		if (features & gso[i].feature)
			emits |= gso[i].accept;
	}
	return emits & ~to->port->accepts;
}

/* Before both drivers have spoken there is nothing to compare. */
static void why_work(FILE *f, const struct net_port *from, const struct net_port *to)
{
	unsigned fitted = why_fitted(from, to), n = 0;

	if (!from->port->link || !to->port->link) {
		fprintf(f, "  in software: not known before both have a link\n");
		return;
	}
	fprintf(f, "  in software: ");
	if (fitted & ACCEPT_CSUM) {
		fprintf(f, "checksums");
		n++;
	}
	for (unsigned i = 0; i < N_GSO; i++) {
		if (fitted & gso[i].accept)
			fprintf(f, "%ssegmentation of %s", n++ ? ", " : "", gso[i].text);
	}
	fprintf(f, "%s\n", n ? "" : "nothing");
	if (to->port->mtu && from->port->mtu > to->port->mtu)
		fprintf(f, "  packets above %u bytes are dropped: %s has the smaller MTU\n",
			to->port->mtu, to->port->name);
}

static void why_direction(FILE *f, const struct net_port *from, const struct net_port *to)
{
	const struct portq *in = &from->port->q, *out = &to->port->q;

	fprintf(f, "%s to %s:\n", from->port->name, to->port->name);
	why_work(f, from, to);
	fprintf(f, "  last drop: from %s: %s; to %s: %s\n", from->port->name,
		drop_name(in->last_drop_in), to->port->name, drop_name(out->last_drop_out));
}

static unsigned why_addresses(FILE *f, struct net *net, const struct net_port *p)
{
	struct fdb_entry e;
	uint32_t cursor = 0;
	unsigned n = 0;
	char mac[18];

	while (fdb_next(fabric_fdb(net->fabric), loop_now(&net->loop), &cursor, &e)) {
		if (e.port != p->port->index)
			continue;
		if (f && n < 8)
			fprintf(f, "%s%s", n ? ", " : "", show_mac(e.mac, mac));
		if (f && n < 8 && e.vlan)
			fprintf(f, " (VLAN %u)", e.vlan);
		n++;
	}
	if (f && n > 8)
		fprintf(f, " and %u more", n - 8);
	return n;
}

static const char *why_last_end(const struct net_port *p)
{
	if (p->kind == SPEC_VHOST_USER)
		return vhost_be_last_end(p->port);
	return p->kind == SPEC_VIRTIO_USER ? vdrv_last_end(p->port) : "";
}

static void why_port(FILE *f, struct net *net, const struct net_port *p)
{
	char text[512];

	fprintf(f, "%s:\n  link: %s%s%s\n", p->port->name, p->port->link ? "up" : "down",
		p->port->link ? "" : ": ", net_port_missing(p));
	if (*why_last_end(p))
		fprintf(f, "  last session ended: %s\n", why_last_end(p));
	if (p->kind == SPEC_VHOST_USER && vhost_be_awaited(p->port))
		fprintf(f, "  a second front-end waits for its turn: one port takes one guest\n");
	vnet_features_text(why_features(p), text, sizeof(text));
	fprintf(f, "  features: %s\n", *text ? text : "none, the driver has not said");
	fprintf(f, "  addresses: ");
	if (!why_addresses(f, net, p))
		fprintf(f, "none heard yet");
	fputc('\n', f);
}

static void why_verdict(
	FILE *f, struct net *net, const struct net_port *a, const struct net_port *b)
{
	const struct net_port *down = !a->port->link ? a : !b->port->link ? b : NULL;
	const struct net_port *silent = NULL;
	const char *na = a->port->name, *nb = b->port->name;

	if (!why_addresses(NULL, net, a))
		silent = a;
	else if (!why_addresses(NULL, net, b))
		silent = b;
	if (down)
		fprintf(f, "%s and %s do not reach each other: %s has no link, %s.\n", na, nb,
			down->port->name, net_port_missing(down));
	else if (silent)
		fprintf(f,
			"%s and %s are connected, but %s has sent nothing yet: is its interface up "
			"with an address?\n",
			na, nb, silent->port->name);
	else
		fprintf(f, "%s and %s reach each other, %s.\n", na, nb,
			why_fitted(a, b) | why_fitted(b, a)
				? "with some work done in software (below)"
				: "super-packets and checksums go through as they are");
}

int word_why(struct cmd_call *call)
{
	struct net_port *a = net_find(call->net, call->arg[0], &call->err), *b;

	b = a ? net_find(call->net, call->arg[1], &call->err) : NULL;
	if (!a || !b)
		return CMD_MISTAKE;
	if (a == b) {
		err_set(&call->err, EINVAL, "why: '%s' twice; two ports are needed", a->port->name);
		return CMD_MISTAKE;
	}
	why_verdict(call->out, call->net, a, b);
	why_port(call->out, call->net, a);
	why_port(call->out, call->net, b);
	why_direction(call->out, a, b);
	why_direction(call->out, b, a);
	return CMD_DONE;
}
