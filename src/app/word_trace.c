/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * word_trace: `weft trace`: starts one, and says where the network would send a frame.
 */
#include <errno.h>
#include <string.h>

#include "app/cmd.h"
#include "app/ctl.h"
#include "base/clock.h"
#include "fabric/fdb.h"
#include "port/trace.h"
#include "wire/eth.h"

#define TRACE_SEC_DEFAULT 10
#define TRACE_SEC_MAX     3600

static void look_up(void *ctx, const struct frame *f, struct trace_frame *r)
{
	struct net *net = ctx;
	const struct port *to;
	uint16_t vlan = 0;
	int port;

	r->where = TRACE_GROUP;
	if (eth_is_multicast(f->head))
		return;
	if (eth_tagged(f->head) && f->head_len >= ETH_HLEN + VLAN_HLEN)
		vlan = get_be16(f->head + ETH_HLEN) & 0xfff;
	port = fdb_find(fabric_fdb(net->fabric), eth_u48(f->head), vlan, loop_now(&net->loop));
	to = port < 0 ? NULL : fabric_port(net->fabric, (unsigned)port);
	r->where = to ? TRACE_PORT : TRACE_UNKNOWN;
	if (to)
		memcpy(r->where_port, to->name, NAME_LEN);
}

int word_trace(struct cmd_call *call)
{
	struct net_port *p = net_find(call->net, call->arg[0], &call->err);
	struct trace_config conf = {
		.first = fabric_first(call->net->fabric),
		.clock = clock_now,
		.look_up = look_up,
		.look_up_ctx = call->net,
	};
	uint32_t sec, count;

	if (!p || cmd_number(call, 0, TRACE_MAX, &count, 1) ||
		cmd_number(call, 1, TRACE_SEC_MAX, &sec, TRACE_SEC_DEFAULT))
		return CMD_MISTAKE;
	if (!count || !sec) {
		err_set(&call->err, EINVAL, "trace: %s 0: must be at least 1", count ? "-t" : "-c");
		return CMD_MISTAKE;
	}
	conf.port = p->port;
	conf.count = count;
	if (ctl_later_trace(call->client, &conf, call->opt[2], sec * NSEC_PER_SEC, &call->err))
		return CMD_MISTAKE;
	return CMD_LATER;
}
