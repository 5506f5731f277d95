/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_host: set-up of the two kinds. On a driver it may be polled; on a tap the loop does all.
 */
#include "app/bench_host.h"

#include <errno.h>
#include <string.h>

#include "app/rundir.h"
#include "base/rand.h"
#include "net/stack_port.h"
#include "port/tap.h"
#include "port/vdrv.h"

static void host_work(void *ctx)
{
	struct bench_host *h = ctx;
	const nsec_t now = loop_now(h->loop);

	sock_work(h->socks, now);
	h->more = h->work && h->work(h->ctx, now);
	if (h->more)
		bench_host_kick(h);
}

/* Ours in the link's address: benchmarks with different addresses may share a network. */
static void host_mac(const struct ip_addr *ip, uint8_t mac[6])
{
	mac[0] = 2;
	mac[1] = 'b';
	memcpy(mac + 2, ip->b + 12, 4);
}

static int host_addresses(struct bench_host *h, const char *list, struct err *err)
{
	const nsec_t now = loop_now(h->loop);
	struct ip_addr ip;
	char text[80];
	unsigned plen;
	int r = 0;

	for (size_t n; *list && !r; list += n + (list[n] == '+')) {
		n = strcspn(list, "+");
		snprintf(text, sizeof(text), "%.*s", (int)n, list);
		if (!ip_addr_parse_prefix(text, &ip, &plen))
			return err_set(err, EINVAL,
				"bench: --addr %.60s: must be ADDR/LEN, such as 10.0.0.2/24", text);
		r = stack_add_addr(h->stack, &ip, plen, now, err);
	}
	return r;
}

static int host_stack(struct bench_host *h, const struct bench_host_config *c, struct err *err)
{
	struct stack_conf conf = {.mtu = h->port->mtu ? h->port->mtu : c->mtu,
		.headroom = h->spec.drv.headroom,
		.no_auto = true,
		.no_dad = true,
		.tcp = &c->tcp};
	int r;

	memcpy(conf.mac, h->spec.mac, 6);
	rand_secret(conf.secret, sizeof(conf.secret));
	rand_secret(&conf.seed, sizeof(conf.seed));
	conf.pool = h->spec.kind == SPEC_VIRTIO_USER ? vdrv_pkts(h->port) : NULL;
	r = stack_new(&h->stack, &conf, loop_refresh(h->loop), err);
	if (!r)
		r = host_addresses(h, c->addr, err);
	return r ? r : sock_table_new(&h->socks, h->stack, err);
}

static int host_port(
	struct bench_host *h, const struct bench_host_config *c, struct log *log, struct err *err)
{
	struct vdrv_config config;
	struct tap_config tap = {.ifname = h->spec.ifname,
		.netns = h->spec.netns,
		.addr = h->spec.addr,
		.mtu = h->spec.mtu ? h->spec.mtu : c->mtu,
		.off = h->spec.off};

	if (h->spec.kind == SPEC_TAP)
		return tap_open(&h->port, c->name, &tap, h->loop, log, err);
	if (h->spec.kind != SPEC_VIRTIO_USER)
		return err_set(err, EINVAL,
			"bench: %s is a %s port; --via takes virtio-user:PATH or tap:IFNAME",
			h->spec.name, spec_kind_name(h->spec.kind));
	if (!h->spec.mtu)
		h->spec.mtu = c->mtu;
	spec_driver(&h->spec, &config);
	return vdrv_open(&h->port, c->name, &config, h->loop, log, err);
}

static int host_join(
	struct bench_host *h, const struct bench_host_config *c, struct log *log, struct err *err)
{
	int r;

	if (h->spec.kind == SPEC_VIRTIO_USER) {
		r = stack_nic_new(&h->nic, h->stack, h->port, h->loop, err);
		if (!r)
			stack_nic_on_work(h->nic, host_work, h);
		return r;
	}
	r = stack_port_new(&h->stack_port, c->name, h->stack, h->loop, log, err);
	if (r)
		return r;
	stack_port_on_work(h->stack_port, host_work, h);
	return join_new(&h->join, h->port, h->stack_port, h->loop, err);
}

int bench_host_init(struct bench_host *h, const struct bench_host_config *c, struct loop *loop,
	struct log *log, struct err *err)
{
	char rundir[RUNDIR_PATH], first[80];
	const struct spec_ctx where = {.net = "bench", .rundir = rundir, .cwd = c->cwd};
	struct ip_addr ip;
	unsigned plen;
	int r;

	memset(h, 0, sizeof(*h));
	h->loop = loop;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(c->addr, "+"), c->addr);
	if (!ip_addr_parse_prefix(first, &ip, &plen))
		return err_set(err, EINVAL,
			"bench: --addr %.60s: must be ADDR/LEN, such as 10.0.0.2/24", first);
	r = rundir_path(rundir, c->net, false, err);
	if (!r)
		r = spec_parse(&h->spec, c->port, &where, err);
	if (r)
		return r;
	if (!h->spec.mac[0] && !h->spec.mac[5])
		host_mac(&ip, h->spec.mac);
	r = host_port(h, c, log, err);
	if (!r)
		r = host_stack(h, c, err);
	if (!r)
		r = host_join(h, c, log, err);
	if (r)
		bench_host_fini(h);
	return r;
}

void bench_host_fini(struct bench_host *h)
{
	sock_table_free(h->socks, loop_now(h->loop));
	stack_nic_free(h->nic);
	join_free(h->join);
	stack_port_free(h->stack_port);
	stack_free(h->stack);
	if (h->port && h->spec.kind == SPEC_TAP)
		tap_free(h->port);
	else if (h->port)
		vdrv_free(h->port);
	spec_fini(&h->spec);
	memset(h, 0, sizeof(*h));
}

bool bench_host_poll(struct bench_host *h)
{
	if (!h->nic)
		return false;
	return stack_nic_poll(h->nic) || h->more;
}

void bench_host_kick(struct bench_host *h)
{
	if (h->nic)
		stack_nic_kick(h->nic);
	else
		stack_port_kick(h->stack_port);
}

const char *bench_host_missing(const struct bench_host *h)
{
	if (h->port->link)
		return "";
	if (h->spec.kind == SPEC_TAP)
		return tap_missing(h->port);
	return *vdrv_last_end(h->port) ? vdrv_last_end(h->port) : "nobody answers there";
}
