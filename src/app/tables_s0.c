/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_s0: receive buffers that have room for the header, 2013. A buffer of 1518 bytes holds an
 * Ethernet frame of MTU 1500 with a VLAN tag, but the device writes 12 bytes of header before it: 8
 * bytes go into a second buffer. What is charged for a packet doubles, and with it the window shrinks.
 */
#include "app/tables.h"

#define COMMON "test=TCP_STREAM,m=16384,off=guest_csum,rxbuf=mtu+hdr,rcv_win_model=2013"
#define WINDOW COMMON ",rmem=87380,rmem_max=262144,impair=delay=250us"
#define HEADS  64 /* charged for a packet's head */
#define BUFS   TABLES_RX_BUFS

static double step(const struct tables_result *r, double mtu)
{
	(void)r;
	return mtu <= 1492 ? 1 : 2;
}

/* What a byte of payload is charged: `charge` bytes for each packet of the MTU. */
#define CHARGE(charge, mtu) ((double)((charge) + HEADS) / ((mtu)-52))
#define COUNTERS                                                                                          \
	{"page", BUFS, 1, 0.01, TABLES_EQUAL, NULL}, {"mtu", BUFS, 2, 0.02, TABLES_EQUAL, NULL},          \
		{"mtu at 1480", BUFS, 1, 0.01, TABLES_EQUAL, NULL},                                       \
		{"mtu+hdr", BUFS, 1, 0.01, TABLES_EQUAL, NULL},                                           \
		{"page", TABLES_RX_TRUE, CHARGE(4096, 1500), 0.03, TABLES_EQUAL, NULL},                   \
		{"mtu", TABLES_RX_TRUE, CHARGE(2 * 1518, 1500), 0.03, TABLES_EQUAL, NULL},                \
		{"mtu at 1480", TABLES_RX_TRUE, CHARGE(1518, 1480), 0.03, TABLES_EQUAL,                   \
			NULL}, /* with a twenty-first of what is left of 32768 bytes behind 21 buffers */ \
		{"mtu+hdr", TABLES_RX_TRUE, CHARGE(32768 / 21, 1500), 0.03, TABLES_EQUAL, NULL},          \
		{"only charged", TABLES_RX_TRUE, CHARGE(3036, 1500), 0.03, TABLES_EQUAL, NULL},           \
		{"only charged", BUFS, 1, 0.01, TABLES_EQUAL, NULL},                                      \
		{"only two buffers", TABLES_RX_TRUE, CHARGE(1536, 1500), 0.03, TABLES_EQUAL,              \
			NULL},                                                                            \
		{"only two buffers", BUFS, 2, 0.02, TABLES_EQUAL, NULL},
#define ARMS                                                                                       \
	{"page", "rxbuf=page", false}, {"mtu", "rxbuf=mtu", false},                                \
		{"mtu at 1480", "rxbuf=mtu,mtu=1480", false}, {"mtu+hdr", "rxbuf=mtu+hdr", false}, \
		{"only charged", "rxbuf=mtu+hdr,charge=3036", true},                               \
		{"only two buffers", "rxbuf=mtu,charge=768", true},
#define ROWS(why)                                                                                  \
	{"mtu", "page", 1.056, "1.056", false, why},                                               \
		{"mtu at 1480", "page", 1.632, "1.632", false, why},                               \
		{"mtu+hdr", "page", 1.669, "1.669", false, why},                                   \
		{"mtu+hdr", "mtu", 1.581, "1.581", false, why},                                    \
		{"mtu+hdr", "mtu at 1480", 1.023, "1.023", true, "payload alone gives 1.014"},     \
		{"mtu+hdr", "only charged", 0, "", false,                                          \
			"analysis: what the charge alone takes"},                                  \
		{"mtu+hdr", "only two buffers", 0, "", false,                                      \
			"analysis: what the second buffer alone takes"},

static const struct tables_table s0[] = {
	{
		.id = "S0.window",
		.title = "limited by the window: receive buffer of 87380, at most 262144 bytes, "
			 "250 us",
		.words = WINDOW,
		.value = TABLES_MBIT,
		.weight = 30,
		.arm = {ARMS},
		.row = {ROWS(NULL)},
		.counter = {COUNTERS},
	},
	{
		.id = "S0.cpu",
		.title = "limited by the processor: the buffer grows, no delay",
		.words = COMMON,
		.value = TABLES_MBIT_CPU,
		.weight = 30,
		.arm = {ARMS},
		.row = {ROWS("the window does not bind here: what is left is the work of the "
			     "second buffer")},
		.counter = {COUNTERS},
	},
	{
		.id = "S0.step",
		.title = "the step between MTU 1492 and 1493",
		.words = COMMON,
		.value = TABLES_MBIT_CPU,
		.weight = 2,
		.x_name = "MTU",
		.x_key = "mtu",
		.x = {1480, 1484, 1488, 1490, 1491, 1492, 1493, 1494, 1496, 1498, 1500},
		.arm = {{"mtu", "rxbuf=mtu", false}, {"mtu+hdr", "rxbuf=mtu+hdr", false}},
		.row = {{"mtu+hdr", "mtu", 0, "", false, NULL}},
		.counter = {{"mtu", BUFS, 0, 0.02, TABLES_EQUAL, step},
			{"mtu+hdr", BUFS, 1, 0.01, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S0.udp",
		.title = "control: datagrams of 64 bytes, one buffer in every arm",
		.words = "test=UDP_STREAM,m=64,off=guest_csum",
		.value = TABLES_PPS_CPU,
		.arm = {{"mtu", "rxbuf=mtu", false}, {"mtu+hdr", "rxbuf=mtu+hdr", false}},
		.row = {{"mtu+hdr", "mtu", 0, "", true, NULL}},
	},
	{
		.id = "S0.rr",
		.title = "control: a byte there and back",
		.words = "test=TCP_RR,rr=1,off=guest_csum",
		.value = TABLES_TRANS_CPU,
		.arm = {{"mtu", "rxbuf=mtu", false}, {"mtu+hdr", "rxbuf=mtu+hdr", false}},
		.row = {{"mtu+hdr", "mtu", 0, "", true, NULL}},
	},
	{
		.id = "S0.gso",
		.title = "control: super-packets, 44 buffers or 43",
		.words = "test=TCP_STREAM,m=16384,rcv_win_model=2013",
		.value = TABLES_MBIT_CPU,
		.arm = {{"mtu", "rxbuf=mtu", false}, {"mtu+hdr", "rxbuf=mtu+hdr", false}},
		.row = {{"mtu+hdr", "mtu", 0, "", true,
			"mtu+hdr posts neighbours that touch, mtu does so, too: S1 helps both"}},
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
