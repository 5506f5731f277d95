/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_s2: the virtio header in the headroom, 2014. UDP left two bytes before Ethernet, so that its
 * packets took two descriptors, and Linux puts two into a table of their own; told to leave room for the
 * header, one.
 */
#include "app/tables.h"

#define DESC  TABLES_TX_DESC
#define TABLE TABLES_TX_TABLES
#define ARMS                                                                                       \
	{"headroom 0", "headroom=0", false},                                                       \
	{                                                                                          \
		"headroom 12", "headroom=12", false                                                \
	}

static const struct tables_table s2[] = {
	{
		.id = "S2.udp",
		.title = "datagrams; of 4096 bytes: in three fragments",
		.words = "test=UDP_STREAM,inline=on,indirect=always",
		.value = TABLES_PPS_CPU,
		.x_name = "bytes",
		.x_key = "m",
		.x = {64, 256, 512, 1024, 1460, 4096},
		.arm = {ARMS},
		.row = {{"headroom 12", "headroom 0", 0, "", false, NULL,
			{1.073, 1.068, 1.053, 1.036, 1.262, 1.033}}},
		.counter = {{"headroom 0", DESC, 2, 0.01, TABLES_EQUAL, NULL},
			{"headroom 0", TABLE, 1, 0.01, TABLES_EQUAL, NULL},
			{"headroom 12", DESC, 1, 0.01, TABLES_EQUAL, NULL},
			{"headroom 12", TABLE, 0, 0.01, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S2.auto",
		.title = "the same with tables only when descriptors are scarce",
		.words = "test=UDP_STREAM,inline=on,indirect=auto",
		.value = TABLES_PPS_CPU,
		.x_name = "bytes",
		.x_key = "m",
		.x = {64, 1460},
		.arm = {ARMS},
		.row = {{"headroom 12", "headroom 0", 0, "", false, NULL}},
		.counter = {{"headroom 0", DESC, 2, 0.01, TABLES_EQUAL, NULL},
			{"headroom 12", DESC, 1, 0.01, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S2.rr",
		.title = "the change before it, 2013: a byte there and back",
		.words = "test=TCP_RR,rr=1,indirect=always",
		.value = TABLES_TRANS_CPU,
		.arm = {{"apart", "inline=off", false}, {"inline", "inline=on", false}},
		.row = {{"inline", "apart", 1.094, "1.094", false, NULL}},
		.counter = {{"apart", DESC, 2, 0.01, TABLES_EQUAL, NULL},
			{"apart", TABLE, 1, 0.01, TABLES_EQUAL, NULL},
			{"inline", DESC, 1, 0.01, TABLES_EQUAL, NULL},
			{"inline", TABLE, 0, 0.01, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S2.tcp",
		.title = "control: TCP has always left room",
		.words = "test=TCP_STREAM,m=16384,inline=on,indirect=always",
		.value = TABLES_MBIT_CPU,
		.arm = {ARMS},
		.row = {{"headroom 12", "headroom 0", 0, "", true, NULL}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_s2 = {
	.id = "S2",
	.title = "The header in the headroom: one descriptor",
	.published =
		"Linux UDP over virtio_net, 2014, pps at 64 256 512 1024 1460 4096 bytes: 692232 "
		"686860 674576 598977 483757 637468 to 742420 733331 710446 620821 610519 658471",
	.note = "The row of 1460 bytes saves four to nine times what the others save, and nothing "
		"in the "
		"mechanism depends on 1460: it is neither reproduced nor chased.",
	.table = s2,
};
