/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net: owns the ports of one network. The table of kinds is the only place that knows how a
 * concrete port is opened and freed.
 */
#include "app/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/words.h"
#include "base/rand.h"
#include "port/copying.h"
#include "port/impair.h"
#include "port/pcap.h"
#include "port/tap.h"
#include "port/vdrv.h"
#include "port/vhost_be.h"

static int open_vhost(struct port **port, struct net *net, const struct spec *s, struct err *err)
{
	struct vhost_be_config config = {
		.path = s->path,
		.server = s->server,
		.mode = s->mode,
		.group = s->group,
		.call_us = s->call_us,
		.dev = {.mtu = s->mtu, .off = s->off},
	};

	memcpy(config.dev.mac, s->mac, 6);
	return vhost_be_open(port, s->name, &config, &net->loop, &net->log, err);
}

static int open_virtio(struct port **port, struct net *net, const struct spec *s, struct err *err)
{
	struct vdrv_config config;

	spec_driver(s, &config);
	return vdrv_open(port, s->name, &config, &net->loop, &net->log, err);
}

static int open_tap(struct port **port, struct net *net, const struct spec *s, struct err *err)
{
	struct tap_config config;

	spec_tap(s, &config);
	return tap_open(port, s->name, &config, &net->loop, &net->log, err);
}

/* Features are acknowledged, and memory is handed over, in one go when a driver starts. */
static const char *missing_vhost(const struct port *port)
{
	const struct vdev *dev = vdev_of_port(port);

	if (!vhost_be_connected(port))
		return "no front-end is connected";
	if (dev->features && !dev->mem.n)
		return "its memory is not shared, the driver cannot be reached: start the virtual "
		       "machine with shared memory, as weft args qemu NAME says";
	return "the driver is not ready";
}

static const char *missing_virtio(const struct port *port)
{
	(void)port;
	return "no back-end serves it";
}

/* Only a program that has the device can plug it in. */
static int open_device(struct port **port, struct net *net, const struct spec *s, struct err *err)
{
	(void)port;
	(void)net;
	return err_set(err, EINVAL,
		"device:%s is plugged in by the program that has it, by weft_dev_attach(); for a "
		"virtual machine's socket say vhost-user:%s",
		s->name, s->name);
}

static const char *missing_device(const struct port *port)
{
	(void)port;
	return "the driver is not ready";
}

static const struct {
	int (*open)(struct port **, struct net *, const struct spec *, struct err *);
	void (*free)(struct port *);
	const char *(*missing)(const struct port *);
} kinds[SPEC_KINDS] = {
	[SPEC_VHOST_USER] = {open_vhost, vhost_be_free, missing_vhost},
	[SPEC_VIRTIO_USER] = {open_virtio, vdrv_free, missing_virtio},
	[SPEC_TAP] = {open_tap, tap_free, tap_missing},
	[SPEC_MACVTAP] = {open_tap, tap_free, tap_missing},
	[SPEC_DEVICE] = {open_device, NULL, missing_device},
};

const char *net_port_missing(const struct net_port *p)
{
	return p->port->link ? "" : kinds[p->kind].missing(p->port);
}

static void net_link(void *ctx, struct port *port)
{
	struct net *net = ctx;
	struct net_port *p = net_of_port(net, port);

	log_say(&net->log, LOG_INFO, port->name, "link %s", port->link ? "up" : "down");
	if (p && net->on_port)
		net->on_port(net->on_port_ctx, p, false);
}

int net_name_check(const char *name, struct err *err)
{
	if (!port_name_check(name, NULL))
		return 0;
	return err_set(err, EINVAL,
		"'%.60s' cannot name a network: 1 to %d of letters, digits, '.', '_' and '-', not "
		"starting with '-' or '.'",
		name, NAME_LEN - 1);
}

void net_config_init(struct net_config *c, const char *name)
{
	*c = (struct net_config){
		.name = name,
		.poll_us = NET_POLL_US,
		.wait_us = WAIT_US_DEFAULT,
		.age_sec = FDB_AGE_SEC,
		.level = LOG_WARN,
	};
}

int net_init(struct net *net, const struct net_config *c, struct err *err)
{
	struct fabric_config fc = {
		.poll_us = c->poll_us, .wait_us = c->wait_us, .age_sec = c->age_sec};
	int r;

	memset(net, 0, sizeof(*net));
	TAILQ_INIT(&net->ports);
	r = net_name_check(c->name, err);
	if (r)
		return r;
	strncpy(net->name, c->name, NAME_LEN - 1);
	rundir_origin(net->origin, net->name);
	r = rundir_path(net->rundir, net->name, false, err);
	if (r)
		return r;
	log_init(&net->log, c->level, c->sink, c->sink_ctx);
	r = loop_init(&net->loop, err);
	if (r)
		return r;
	rand_secret(&fc.seed, sizeof(fc.seed));
	r = fabric_new(&net->fabric, &fc, &net->loop, &net->log, err);
	if (r) {
		loop_fini(&net->loop);
		return r;
	}
	fabric_on_link(net->fabric, net_link, net);
	return 0;
}

static void net_unwrap(struct net_port *p)
{
	impair_free(p->impair);
	copying_free(p->copying);
	p->impair = NULL;
	p->copying = NULL;
}

static void net_port_free(struct net *net, struct net_port *p)
{
	struct pcap *pcap = p->port->pcap;

	if (net->on_port)
		net->on_port(net->on_port_ctx, p, true);
	TAILQ_REMOVE(&net->ports, p, entry);
	net->nports--;
	fabric_detach(net->fabric, p->port);
	p->port->pcap = NULL;
	pcap_close(pcap);
	net_unwrap(p);
	if (p->gone) {
		p->gone(p->gone_ctx);
	} else {
		kinds[p->kind].free(p->port);
		spec_fini(&p->spec);
	}
	free(p);
}

void net_fini(struct net *net)
{
	struct net_port *p, *next;

	for (p = TAILQ_FIRST(&net->ports); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		net_port_free(net, p);
	}
	if (net->own_rundir)
		rundir_remove(net->rundir);
	fabric_free(net->fabric);
	net->fabric = NULL;
	loop_fini(&net->loop);
}

struct net_port *net_of_port(struct net *net, const struct port *port)
{
	struct net_port *p;

	TAILQ_FOREACH (p, &net->ports, entry) {
		if (p->port == port)
			return p;
	}
	return NULL;
}

struct net_port *net_find(struct net *net, const char *name, struct err *err)
{
	const char *known[PORTS_MAX];
	struct net_port *p;
	char hint[160];
	unsigned n = 0;

	TAILQ_FOREACH (p, &net->ports, entry) {
		if (!strcmp(p->port->name, name))
			return p;
		if (n < PORTS_MAX)
			known[n++] = p->port->name;
	}
	if (n)
		words_hint(hint, sizeof(hint), name, known, n);
	err_set(err, ENOENT, "network '%s' has no port '%.60s'%s", net->name, name,
		n ? hint : "; it has none at all, see weft help add");
	return NULL;
}

/* Both have an address that was given or made, and it is the same; a macvtap has its guest's. */
static bool mac_taken(const struct spec *a, const struct spec *b)
{
	static const uint8_t none[6];

	if (spec_is_tap(a->kind) || spec_is_tap(b->kind))
		return false;
	return memcmp(a->mac, none, 6) != 0 && !memcmp(a->mac, b->mac, 6);
}

/* The same interface of the host; a namespace that has two names is found by the kernel. */
static bool tap_taken(const struct spec *a, const struct spec *b)
{
	const char *na = a->netns ? a->netns : "", *nb = b->netns ? b->netns : "";

	return a->kind == SPEC_TAP && b->kind == SPEC_TAP && !a->fd && !b->fd &&
	       !strcmp(a->ifname, b->ifname) && !strcmp(na, nb);
}

/* The folder that the port's socket lies in, if that is the network's own. */
static int net_make_rundir(struct net *net, const struct spec *s, struct err *err)
{
	char made[RUNDIR_PATH];

	if (strncmp(s->path, net->rundir, strlen(net->rundir)) != 0)
		return 0;
	net->own_rundir |= access(net->rundir, F_OK) != 0;
	return rundir_path(made, net->name, true, err);
}

/* What must be unique is checked before anything is opened, so that a mistake touches nothing. */
static int net_check_new(struct net *net, const struct spec *s, struct err *err)
{
	struct net_port *p;

	if (net->nports == PORTS_MAX)
		return err_set(err, ENOSPC, "network '%s' has %d ports, more are not possible",
			net->name, PORTS_MAX);
	TAILQ_FOREACH (p, &net->ports, entry) {
		if (!strcmp(p->port->name, s->name))
			return err_set(err, EEXIST,
				"network '%s' has a port '%s' already; give this one another name=",
				net->name, s->name);
		if (tap_taken(&p->spec, s))
			return err_set(err, EEXIST,
				"port '%s' is the interface %s already; give another IFNAME",
				p->port->name, s->ifname);
		if (mac_taken(&p->spec, s))
			return err_set(err, EEXIST,
				"port '%s' has the address %02x:%02x:%02x:%02x:%02x:%02x already; "
				"give this one another mac=",
				p->port->name, s->mac[0], s->mac[1], s->mac[2], s->mac[3],
				s->mac[4], s->mac[5]);
	}
	return 0;
}

static int net_impair(struct net_port *p, struct err *err)
{
	struct impair_conf c;
	int r = p->spec.impair ? impair_parse(&c, p->spec.impair, err) : 0;

	return r || !p->spec.impair ? r : impair_wrap(&p->impair, p->port, &c, err);
}

/* A tap copies by itself. */
static int net_wrap(struct net_port *p, struct err *err)
{
	const bool copies = p->spec.copy && !spec_is_tap(p->kind);
	int r = copies ? copying_wrap(&p->copying, p->port, &p->spec.copying, err) : 0;

	if (!r)
		r = net_impair(p, err);
	if (r)
		net_unwrap(p);
	return r;
}

/* An open port becomes one of the network's; it stays the caller's if this fails. */
static int net_take(struct net *net, struct net_port *p, struct err *err)
{
	struct pcap *pcap = NULL;
	int r = net_wrap(p, err);

	if (r)
		return r;
	if (p->spec.pcap) {
		r = pcap_open(&pcap, p->spec.pcap, p->spec.name, &net->loop, &net->log, err);
		if (r)
			goto unwrap;
		p->port->pcap = pcap;
		p->port->capture = pcap_frame;
	}
	TAILQ_INSERT_TAIL(&net->ports, p, entry);
	net->nports++;
	r = fabric_attach(net->fabric, p->port, err);
	if (!r)
		return 0;
	TAILQ_REMOVE(&net->ports, p, entry);
	net->nports--;
	p->port->pcap = NULL;
	pcap_close(pcap);
unwrap:
	net_unwrap(p);
	return r;
}

/*
 * What comes in at one port of a wire goes out at the other, and round for ever. The kernel says which wire a
 * tap is on, whatever names lead to it.
 */
static int net_check_wire(const struct net *net, const struct net_port *p, struct err *err)
{
	struct tap_wire wire = spec_is_tap(p->kind) ? tap_wire(p->port) : (struct tap_wire){0};
	const struct net_port *other;

	if (!wire.ifindex)
		return 0;
	TAILQ_FOREACH (other, &net->ports, entry) {
		struct tap_wire theirs;

		if (!spec_is_tap(other->kind))
			continue;
		theirs = tap_wire(other->port);
		if (theirs.ifindex == wire.ifindex && theirs.netns == wire.netns)
			return err_set(err, ELOOP,
				"%s:%s would be the second port on that interface, beside '%s': "
				"frames would go round between the two for ever; put it in a "
				"network of its own (weft run -n NET)",
				spec_kind_name(p->kind), p->spec.ifname, other->port->name);
	}
	return 0;
}

static int net_open(struct net *net, struct net_port *p, struct err *err)
{
	int r = kinds[p->kind].open(&p->port, net, &p->spec, err);

	if (r)
		return r;
	r = net_check_wire(net, p, err);
	if (!r)
		r = net_take(net, p, err);
	if (r)
		kinds[p->kind].free(p->port);
	return r;
}

int net_plug(struct net *net, struct port *port, const struct spec *spec, void (*gone)(void *ctx),
	void *ctx, struct err *err)
{
	struct net_port *p;
	int r = net_check_new(net, spec, err);

	if (r)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, ENOMEM, "no memory");
	*p = (struct net_port){
		.port = port, .kind = spec->kind, .spec = *spec, .gone = gone, .gone_ctx = ctx};
	r = net_take(net, p, err);
	if (r)
		free(p);
	return r;
}

int net_add(struct net *net, const char *text, const char *cwd, struct err *err)
{
	struct spec_ctx ctx = {.net = net->origin, .rundir = net->rundir, .cwd = cwd};
	struct net_port *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(err, ENOMEM, "no memory");
	r = spec_parse(&p->spec, text, &ctx, err);
	if (r)
		goto free_port;
	p->kind = p->spec.kind;
	r = net_check_new(net, &p->spec, err);
	if (!r)
		r = net_make_rundir(net, &p->spec, err);
	if (!r)
		r = net_open(net, p, err);
	if (!r)
		return 0;
	spec_fini(&p->spec);
free_port:
	free(p);
	return r;
}

int net_del(struct net *net, const char *name, struct err *err)
{
	struct net_port *p = net_find(net, name, err);

	if (!p)
		return -ENOENT;
	net_port_free(net, p);
	return 0;
}
