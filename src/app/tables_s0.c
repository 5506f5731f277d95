/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_s0: receive buffers that have room for the header, 2013. A buffer of 1518 bytes holds an
 * Ethernet frame of MTU 1500 with a VLAN tag, but the device writes 12 bytes of header before it: 8
 * bytes go into a second buffer. What is charged for a packet doubles, and with it the window shrinks.
 */
#include "app/tables.h"

#define WINDOW                                                                                     \
	"test=TCP_STREAM,m=16384,off=guest_csum,rxbuf=mtu+hdr,rcv_win_model=2013,"                 \
	"rmem=87380,rmem_max=262144,impair=delay=250us"

static const struct tables_table s0[] = {
	{
		.id = "S0.window",
		.title = "limited by the window: receive buffer of 87380 to 262144 bytes, 250 us each way",
		.words = WINDOW,
		.value = TABLES_MBIT,
		.weight = 30,
		.arm = {{"page", "rxbuf=page", false}, {"mtu", "rxbuf=mtu", false},
			{"mtu at 1480", "rxbuf=mtu,mtu=1480", false},
			{"mtu+hdr", "rxbuf=mtu+hdr", false}},
		.row = {{"mtu", "page", 1.056, "1.056", false, NULL},
			{"mtu at 1480", "page", 1.632, "1.632", false, NULL},
			{"mtu+hdr", "page", 1.669, "1.669", false, NULL},
			{"mtu+hdr", "mtu", 1.581, "1.581", false, NULL}},
		.counter = {{"page", TABLES_RX_BUFS, 1, 0.01, TABLES_EQUAL, NULL},
			{"mtu", TABLES_RX_BUFS, 2, 0.02, TABLES_EQUAL, NULL},
			{"mtu at 1480", TABLES_RX_BUFS, 1, 0.01, TABLES_EQUAL, NULL},
			{"mtu+hdr", TABLES_RX_BUFS, 1, 0.01, TABLES_EQUAL, NULL}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_s0 = {
	.id = "S0",
	.title = "Mergeable receive buffers with room for the header",
	.published = "Linux virtio_net, November 2013, two guests on one host, netperf TCP_STREAM, "
		     "30 s, "
		     "guest offloads off: pages 3861.08, MTU 1500 4076.62, MTU 1480 6301.34, fixed "
		     "6445.44 Mbit/s",
	.table = s0,
};

const struct tables_experiment *const tables_all[] = {&tables_s0, NULL};
