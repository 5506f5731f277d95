/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_s1: receive buffers that touch become one fragment, 2013. A super-packet of 64 KiB in buffers
 * of 1536 bytes has 43 fragments, more than two packets can hold; joined it has three or four.
 */
#include <math.h>

#include "app/tables.h"

#define BUF  1536.0
#define HEAD 12
#define MOST 17 /* fragments of a packet before others are chained behind it */

/* Not joined: each buffer is a fragment. */
static double all_buffers(const struct tables_result *r, double x)
{
	(void)x;
	return r->v[TABLES_RX_BUFS];
}

static double buffers_of(const struct tables_result *r, double size)
{
	(void)r;
	return ceil((HEAD + size) / BUF);
}

static double chained_of(const struct tables_result *r, double size)
{
	return ceil(buffers_of(r, size) / MOST) - 1;
}

/* Joined: a chunk of 32 KiB is one, and the packet may begin in the middle of one. */
static double chunks_of(const struct tables_result *r, double size)
{
	(void)r;
	return ceil((HEAD + size) / 32768) + 1;
}

static const struct tables_table s1[] = {
	{
		.id = "S1.stream",
		.title = "a stream of super-packets",
		.words = "test=TCP_STREAM,m=16384,rxbuf=mtu+hdr",
		.value = TABLES_MBIT_CPU,
		.arm = {{"off", "coalesce=off", false}, {"on", "coalesce=on", false},
			{"pages, off", "rxbuf=page,coalesce=off", false},
			{"auto, off", "rxbuf=auto,coalesce=off", false},
			{"auto, on", "rxbuf=auto,coalesce=on", false}},
		.row = {{"on", "off", 1.174, "1.174", false,
				"what is saved is per fragment, and a fragment costs little here: "
				"lists "
				"without locks or reference counts of several processors"},
			{"pages, off", "off", 0, "", false, "size alone: 17 buffers for 43"},
			{"on", "pages, off", 0, "", false,
				"a buffer less costs more here than a fragment less", {0}, true},
			{"auto, off", "off", 0, "", false, "size alone, by the average"},
			{"auto, on", "auto, off", 0, "", false, "joining, on top of size"}},
		.counter = {{"off", TABLES_RX_FRAGS, 0, 0.01, TABLES_EQUAL, all_buffers},
			{"off", TABLES_RX_FRAGS, 18, 0, TABLES_AT_LEAST, NULL},
			{"off", TABLES_RX_CHAINED, 1, 0.1, TABLES_AT_LEAST, NULL},
			{"on", TABLES_RX_FRAGS, 4, 0, TABLES_AT_MOST, NULL},
			{"on", TABLES_RX_CHAINED, 0, 0, TABLES_EQUAL, NULL},
			{"pages, off", TABLES_RX_FRAGS, 17, 0, TABLES_AT_MOST, NULL},
			{"pages, off", TABLES_RX_CHAINED, 0, 0, TABLES_EQUAL, NULL},
			{"auto, on", TABLES_RX_FRAGS, 4, 0, TABLES_AT_MOST, NULL}},
	},
	{
		.id = "S1.size",
		.cost = TABLES_COST_HELD,
		.title = "super-packets of one size, made and compared, no TCP",
		.words = "test=PKTGEN,rxbuf=mtu+hdr",
		.value = TABLES_PPS_CPU,
		.weight = 3,
		.x_name = "bytes",
		.x_key = "size",
		.x = {1514, 4096, 8192, 16384, 32768, 65535},
		.arm = {{"off", "coalesce=off", false}, {"on", "coalesce=on", false}},
		.row = {{"on", "off", 0, "", false, NULL}},
		.counter = {{"off", TABLES_RX_FRAGS, 0, 0.001, TABLES_EQUAL, buffers_of},
			{"off", TABLES_RX_CHAINED, 0, 0.001, TABLES_EQUAL, chained_of},
			{"on", TABLES_RX_FRAGS, 0, 0, TABLES_AT_MOST, chunks_of},
			{"on", TABLES_RX_CHAINED, 0, 0, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S1.mtu",
		.title = "control: packets of the MTU, one buffer each",
		.words = "test=TCP_STREAM,m=16384,rxbuf=mtu+hdr,off=guest_csum",
		.value = TABLES_MBIT_CPU,
		.arm = {{"off", "coalesce=off", false}, {"on", "coalesce=on", false}},
		.row = {{"on", "off", 0, "", true, NULL}},
		.counter = {{"off", TABLES_RX_FRAGS, 1, 0.01, TABLES_EQUAL, NULL},
			{"on", TABLES_RX_FRAGS, 1, 0.01, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S1.rr",
		.title = "control: a byte there and back",
		.words = "test=TCP_RR,rr=1,rxbuf=mtu+hdr",
		.value = TABLES_TRANS_CPU,
		.arm = {{"off", "coalesce=off", false}, {"on", "coalesce=on", false}},
		.row = {{"on", "off", 0, "", true, NULL}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_s1 = {
	.id = "S1",
	.title = "Receive buffers that touch become one fragment",
	.published =
		"Linux virtio_net, November 2013, netperf TCP_STREAM, super-packets: 20303.87 to "
		"23841.26 Mbit/s",
	.table = s1,
};
