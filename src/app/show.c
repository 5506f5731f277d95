/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show: builders of JSON. The tables are in show_text.c.
 */
#include "app/show.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/show_driver.h"
#include "app/show_text.h"
#include "fabric/fdb.h"
#include "port/copying.h"
#include "port/tap.h"
#include "port/vhost_be.h"

static void set_num(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void set_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, json_string(text ? text : ""));
}

static void set_bool(json_t *o, const char *key, bool b)
{
	json_object_set_new(o, key, json_boolean(b));
}

static void set_ratio(json_t *o, const char *key, uint64_t a, uint64_t b)
{
	json_object_set_new(o, key, json_real(b ? (double)a / (double)b : 0));
}

char *show_mac(const uint8_t mac[6], char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5]);
	return text;
}

/* ports */

static json_t *accepts_json(unsigned accepts)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = {
		{ACCEPT_CSUM, "csum"},
		{ACCEPT_TSO4, "tso4"},
		{ACCEPT_TSO6, "tso6"},
		{ACCEPT_ECN, "ecn"},
		{ACCEPT_USO4, "uso4"},
		{ACCEPT_USO6, "uso6"},
	};
	json_t *list = json_array();

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (accepts & names[i].bit)
			json_array_append_new(list, json_string(names[i].name));
	}
	return list;
}

static json_t *rings_json(const struct vdev *dev)
{
	static const char *const names[VDEV_QUEUES] = {[VDEV_RX] = "rx", [VDEV_TX] = "tx"};
	json_t *list = json_array();

	for (unsigned i = 0; i < VDEV_QUEUES; i++) {
		const struct vq_dev *vq = &dev->vq[i];
		json_t *o = json_object();

		set_text(o, "queue", names[i]);
		set_num(o, "size", dev->ring[i].size);
		set_bool(o, "started", dev->ring[i].started);
		set_bool(o, "enabled", dev->ring[i].enabled);
		set_text(o, "broken", vq->broken);
		set_num(o, "chains", vq->n_popped);
		set_num(o, "descriptors", vq->n_desc);
		set_num(o, "indirect", vq->n_indirect);
		set_num(o, "notified", vq->n_notify);
		set_num(o, "suppressed", vq->n_suppressed);
		json_array_append_new(list, o);
	}
	return list;
}

static void show_device(json_t *o, const struct net_port *p)
{
	const struct vdev *dev = vdev_of_port(p->port);
	char text[512];

	set_text(o, "features", vnet_features_text(dev->features, text, sizeof(text)));
	set_text(o, "offered", vnet_features_text(dev->offered, text, sizeof(text)));
	set_text(o, "broken", dev->broken);
	set_num(o, "memory_regions", dev->mem.n);
	json_object_set_new(o, "rings", rings_json(dev));
}

/* What the experiment on allocation orders compares. */
static void show_copied(json_t *o, const struct net_port *p)
{
	json_t *copy, *orders;
	struct tap_copied n;
	uint64_t chunks = 0;

	if (p->copying)
		copying_count(p->copying, &n);
	else if (!spec_is_tap(p->kind) || !tap_copied(p->port, &n))
		return;
	copy = json_object();
	orders = json_array();
	for (unsigned i = 0; i < CHUNK_ORDERS; i++) {
		chunks += n.fragments[i];
		json_array_append_new(orders, json_integer((json_int_t)n.fragments[i]));
	}
	set_num(copy, "packets", n.packets);
	set_num(copy, "bytes", n.bytes);
	set_num(copy, "linear", n.linear);
	json_object_set_new(copy, "chunks_by_order", orders);
	set_ratio(copy, "chunks_per_packet", chunks, n.packets);
	set_num(copy, "fallbacks", n.fallbacks);
	set_num(copy, "failures", n.failures);
	json_object_set_new(o, "copy", copy);
}

static void show_vhost(json_t *o, const struct net_port *p)
{
	set_text(o, "socket", vhost_be_path(p->port));
	set_bool(o, "server", vhost_be_server(p->port));
	set_bool(o, "connected", vhost_be_connected(p->port));
	set_bool(o, "awaited", vhost_be_awaited(p->port));
	set_text(o, "last_end", vhost_be_last_end(p->port));
	set_num(o, "held", vhost_be_held(p->port, VDEV_RX) + vhost_be_held(p->port, VDEV_TX));
	show_device(o, p);
	show_copied(o, p);
}

static void show_virtio(json_t *o, const struct net_port *p)
{
	struct driver_count count;
	char text[512];

	driver_count_take(&count, p->port);
	set_text(o, "socket", p->spec.path);
	set_bool(o, "server", p->spec.server);
	set_text(o, "last_end", vdrv_last_end(p->port));
	set_text(o, "features", vnet_features_text(vdrv_features(p->port), text, sizeof(text)));
	json_object_set_new(o, "knobs", show_knobs(&p->spec));
	json_object_set_new(o, "driver", show_driver(&count));
}

/* Where the kernel put the flows, and where we did. */
static json_t *show_queues(const struct port *port)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < tap_queues(port); i++) {
		struct tap_queued n = tap_queued(port, i);
		json_t *o = json_object();

		set_num(o, "frames_in", n.in);
		set_num(o, "frames_out", n.out);
		json_array_append_new(list, o);
	}
	return list;
}

static void show_tap(json_t *o, const struct net_port *p)
{
	char text[512];

	set_text(o, "interface", tap_ifname(p->port));
	set_text(o, "features", vnet_features_text(tap_features(p->port), text, sizeof(text)));
	set_num(o, "vnet_hdr", tap_vnet_hdr(p->port));
	json_object_set_new(o, "queues", show_queues(p->port));
	show_copied(o, p);
}

static void show_macvtap(json_t *o, const struct net_port *p)
{
	char mac[18];

	show_tap(o, p);
	set_text(o, "mac",
		show_mac(tap_mac(p->port), mac)); /* what the guest behind it is to have */
	set_text(o, "below", p->spec.ifname);
}

static void (*const show_kind[SPEC_KINDS])(json_t *, const struct net_port *) = {
	[SPEC_VHOST_USER] = show_vhost,
	[SPEC_VIRTIO_USER] = show_virtio,
	[SPEC_TAP] = show_tap,
	[SPEC_MACVTAP] = show_macvtap,
	[SPEC_DEVICE] = show_device,
};

/* A driver takes its device's address unless it was given one: nobody's before there is a device. */
static bool mac_known(const struct net_port *p)
{
	static const uint8_t none[6];

	if (p->kind == SPEC_VIRTIO_USER && !p->port->link)
		return memcmp(p->spec.mac, none, 6) != 0;
	return memcmp(p->port->mac, none, 6) != 0;
}

static json_t *show_ports(struct net *net)
{
	json_t *list = json_array();
	struct net_port *p;
	char mac[18];

	TAILQ_FOREACH (p, &net->ports, entry) {
		const struct port *port = p->port;
		json_t *o = json_object();

		set_text(o, "name", port->name);
		set_text(o, "kind", spec_kind_name(p->kind));
		set_bool(o, "link", port->link);
		set_text(o, "missing", net_port_missing(p));
		set_text(o, "mac", mac_known(p) ? show_mac(port->mac, mac) : "");
		set_num(o, "mtu", port->mtu ? port->mtu : p->spec.mtu);
		json_object_set_new(o, "accepts", accepts_json(port->accepts));
		show_kind[p->kind](o, p);
		set_text(o, "pcap", p->spec.pcap);
		set_num(o, "frames_in", port->q.in.frames);
		set_num(o, "bytes_in", port->q.in.bytes);
		set_num(o, "frames_out", port->q.out.frames);
		set_num(o, "bytes_out", port->q.out.bytes);
		json_array_append_new(list, o);
	}
	return list;
}

/* fdb */

static json_t *show_fdb(struct net *net)
{
	const struct fdb *fdb = fabric_fdb(net->fabric);
	json_t *list = json_array();
	struct fdb_entry e;
	uint32_t cursor = 0;
	char mac[18];

	while (fdb_next(fdb, loop_now(&net->loop), &cursor, &e)) {
		const struct port *port = fabric_port(net->fabric, e.port);
		json_t *o = json_object();

		set_text(o, "mac", show_mac(e.mac, mac));
		set_num(o, "vlan", e.vlan);
		set_text(o, "port", port ? port->name : "");
		set_num(o, "age_sec", e.age_sec);
		json_array_append_new(list, o);
	}
	return list;
}

/* drops */

static json_t *drops_json(const uint64_t drops[DROP_MAX])
{
	json_t *o = json_object();

	for (unsigned i = DROP_NONE + 1; i < DROP_MAX; i++) {
		if (drops[i])
			set_num(o, drop_name((enum drop)i), drops[i]);
	}
	return o;
}

static json_t *show_drops(struct net *net)
{
	json_t *list = json_array();
	struct net_port *p;

	TAILQ_FOREACH (p, &net->ports, entry) {
		const struct portq *q = &p->port->q;
		json_t *o = json_object();

		set_text(o, "name", p->port->name);
		json_object_set_new(o, "in", drops_json(q->drop_in));
		json_object_set_new(o, "out", drops_json(q->drop_out));
		json_array_append_new(list, o);
	}
	return list;
}

/* stats */

static json_t *counters_json(const struct port_counters *c)
{
	json_t *o = json_object();

	set_num(o, "frames", c->frames);
	set_num(o, "bytes", c->bytes);
	set_ratio(o, "bytes_per_frame", c->bytes, c->frames);
	set_num(o, "gso", c->gso);
	set_num(o, "buffers", c->bufs);
	set_ratio(o, "buffers_per_packet", c->bufs, c->frames);
	set_num(o, "notifications", c->notify);
	set_num(o, "kicks", c->kicks);
	return o;
}

static json_t *show_stats(struct net *net)
{
	json_t *list = json_array();
	struct net_port *p;

	TAILQ_FOREACH (p, &net->ports, entry) {
		const struct portq *q = &p->port->q;
		json_t *o = json_object();

		set_text(o, "name", p->port->name);
		json_object_set_new(o, "in", counters_json(&q->in));
		json_object_set_new(o, "out", counters_json(&q->out));
		set_num(o, "fit_csum", q->fit_csum);
		set_num(o, "fit_segments", q->fit_segments);
		json_array_append_new(list, o);
	}
	return list;
}

/* process */

/* Fields of /proc/self/status in kB. */
static void show_memory(json_t *o)
{
	static const struct {
		const char *field, *key;
	} fields[] = {
		{"RssAnon:", "rss_anon_kib"},
		{"RssFile:", "rss_file_kib"},
		{"RssShmem:", "rss_shmem_kib"},
	};
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			size_t len = strlen(fields[i].field);

			if (!strncmp(line, fields[i].field, len))
				set_num(o, fields[i].key, strtoul(line + len, NULL, 10));
		}
	}
	fclose(f);
}

static double seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static json_t *show_process(struct net *net)
{
	json_t *o = json_object();
	struct rusage ru;

	set_num(o, "pid", (uint64_t)getpid());
	getrusage(RUSAGE_SELF, &ru);
	json_object_set_new(o, "cpu_user_sec", json_real(seconds(ru.ru_utime)));
	json_object_set_new(o, "cpu_sys_sec", json_real(seconds(ru.ru_stime)));
	json_object_set_new(o, "cpu_sec", json_real(seconds(ru.ru_utime) + seconds(ru.ru_stime)));
	show_memory(o);
	set_num(o, "rounds", net->loop.rounds);
	set_num(o, "wakeups", net->loop.wakeups);
	return o;
}

static json_t *show_fabric(struct net *net)
{
	struct fabric_stats s;
	json_t *o = json_object();

	fabric_get_stats(net->fabric, &s);
	set_num(o, "turns", s.turns);
	set_num(o, "bursts", s.bursts);
	set_num(o, "frames", s.frames);
	set_num(o, "floods", s.floods);
	set_num(o, "waits", s.waits);
	set_num(o, "wait_timeouts", s.wait_timeouts);
	set_num(o, "polls_empty", s.polls_empty);
	set_num(o, "station_moves", fdb_moves(fabric_fdb(net->fabric)));
	return o;
}

const struct show_topic show_topics[] = {
	{"ports", "every port: kind, link, address, features, traffic", show_ports,
		show_text_ports},
	{"fdb", "learned addresses and the port each is behind", show_fdb, show_text_fdb},
	{"drops", "frames dropped, by port, direction and reason", show_drops, show_text_drops},
	{"stats", "frames, bytes, super-packets, buffers, notifications, work in software",
		show_stats, show_text_stats},
	{"switch", "the network's own counters: turns, bursts, floods, pauses", show_fabric,
		show_text_object},
	{"process", "process id, CPU seconds, memory, wake-ups", show_process, show_text_object},
	{NULL, NULL, NULL, NULL},
};

const struct show_topic *show_topic_find(const char *name)
{
	for (const struct show_topic *t = show_topics; t->name; t++) {
		if (!strcmp(t->name, name))
			return t;
	}
	return NULL;
}

json_t *show_all(struct net *net)
{
	json_t *o = json_object();

	set_text(o, "network", net->name);
	set_text(o, "version", WEFT_VERSION);
	set_text(o, "rundir", net->rundir);
	for (const struct show_topic *t = show_topics; t->name; t++)
		json_object_set_new(o, t->name, t->make(net));
	return o;
}
