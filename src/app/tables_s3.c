/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_s3: the order of chunks in which tun and macvtap keep what a guest sends, 2015. What does not
 * fit a packet's linear part lies in pages (order 0), or in chunks of 8 KiB (order 1) or 32 KiB (3).
 */
#include <math.h>

#include "app/tables.h"

#define PAGE     4096u
#define MOST     17u
#define HEADROOM 32u /* of a kept packet */
#define HEADERS  66u /* of a super-packet that is made: Ethernet, IPv4, TCP with timestamps */

#define ORDER0 "copy=on+order=0+pages=2015"
#define ORDER1 "copy=on+order=1+pages=2015"
#define ORDER3 "copy=on+order=3+pages=2015"
#define ARMS                                                                                       \
	{"order 0", ORDER0, false}, {"order 1", ORDER1, false},                                    \
	{                                                                                          \
		"order 3", ORDER3, false                                                           \
	}
#define NO_DIRECTION "published by its bed's own spread: a few per cent are noise there"

/* Chunks of up to `order` for a super-packet of `size` bytes. */
static double chunks(double size, unsigned order)
{
	unsigned rest, n = 0;

	if (HEADROOM + size < PAGE)
		return 0;
	for (rest = (unsigned)size - HEADERS; rest; n++) {
		while (order && rest <= (PAGE << order) - PAGE && n + 1 < MOST)
			order--;
		rest -= rest < PAGE << order ? rest : PAGE << order;
	}
	return n;
}

static double chunks0(const struct tables_result *r, double size)
{
	(void)r;
	return chunks(size, 0);
}

static double chunks1(const struct tables_result *r, double size)
{
	(void)r;
	return chunks(size, 1);
}

static double chunks3(const struct tables_result *r, double size)
{
	(void)r;
	return chunks(size, 3);
}

static const struct tables_table s3[] = {
	{
		.id = "S3.size",
		.cost = TABLES_COST_HELD,
		.title = "super-packets of one size, made and compared, no TCP",
		.words = "test=PKTGEN",
		.value = TABLES_PPS_CPU,
		.weight = 3,
		.x_name = "bytes",
		.x_key = "size",
		.x = {2048, 4096, 8192, 16384, 32768, 65535},
		.arm = {ARMS, {"order 1, 2021", "copy=on+order=1+pages=2021", true}},
		.row = {{"order 1", "order 0", 0, "", false, NULL},
			{"order 3", "order 0", 0, "", false, NULL},
			{"order 1, 2021", "order 0", 0, "", false,
				"order 1 from a store, too, as since 2021"}},
		.counter = {{"order 0", TABLES_COPY_CHUNKS, 0, 0.001, TABLES_EQUAL, chunks0},
			{"order 1", TABLES_COPY_CHUNKS, 0, 0.001, TABLES_EQUAL, chunks1},
			{"order 3", TABLES_COPY_CHUNKS, 0, 0.001, TABLES_EQUAL, chunks3},
			{"order 0", TABLES_COPY_FALLBACKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 1", TABLES_COPY_FALLBACKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 3", TABLES_COPY_FALLBACKS, 0, 0, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S3.tx1",
		.title = "a guest sends, one session",
		.words = "test=TCP_STREAM",
		.value = TABLES_MBIT_CPU,
		.x_name = "bytes",
		.x_key = "m",
		.x = {64, 512, 2048, 16384, 65535},
		.full = true,
		.arm = {ARMS},
		.row = {{"order 1", "order 0", 0, "", false,
				"a chunk costs some ns here, beside a microsecond of TCP and "
				"copies",
				{0, 1.06, 1.24, 1.0, 1.0}},
			{"order 3", "order 0", 0, "", false,
				"not published: the kernel's order since 2023"}},
	},
	{
		.id = "S3.tx4",
		.title = "a guest sends, four sessions",
		.words = "test=TCP_STREAM,P=4",
		.value = TABLES_MBIT_CPU,
		.x_name = "bytes",
		.x_key = "m",
		.x = {512, 2048, 16384, 65535},
		.full = true,
		.arm = {ARMS},
		.row = {{"order 1", "order 0", 0, "", false, NULL, {1.02, 1.0, 1.0, 1.0}},
			{"order 3", "order 0", 0, "", false,
				"not published: the kernel's order since 2023"}},
	},
	{
		.id = "S3.rx",
		.title = "control: a guest receives, which is not copied",
		.words = "test=TCP_MAERTS,m=16384",
		.value = TABLES_MBIT_CPU,
		.arm = {ARMS},
		.row = {{"order 1", "order 0", 0, "", true,
				"published: 0.95 to 1.04, the noise of that bed"},
			{"order 3", "order 0", 0, "", true, NULL}},
		.counter = {{"order 0", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 1", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 3", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S3.rr",
		.title = "control: bytes there and back, 25 sessions, below a page",
		.words = "test=TCP_RR,P=25",
		.value = TABLES_TRANS_CPU,
		.x_name = "bytes",
		.x_key = "rr",
		.x = {1, 64, 256},
		.weight = 5,
		.arm = {ARMS},
		.row = {{"order 1", "order 0", 0, "", true, NULL},
			{"order 3", "order 0", 0, "", true, NULL}},
		.counter = {{"order 0", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 1", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 3", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S3.pktgen",
		.title = "control: frames that do not say where their headers end: all linear, as "
			 "in 2015",
		.words = "test=PKTGEN,mtu=65521",
		.value = TABLES_PPS_CPU,
		.x_name = "bytes",
		.x_key = "size",
		.x = {64, 8192, 16384},
		.weight = 5,
		.arm = {{"order 0", ORDER0 "+hint0=linear", false},
			{"order 1", ORDER1 "+hint0=linear", false}},
		.row = {{"order 1", "order 0", 0, "", true,
			"published: 0.990, 0.970, 0.983, which is drift: no chunk is asked for"}},
		.counter = {{"order 0", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL},
			{"order 1", TABLES_COPY_CHUNKS, 0, 0, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S3.torn",
		.title = "memory in single pages: the rule of 2015 for such frames loses them, "
			 "that of "
			 "2023 does not",
		.words = "test=PKTGEN,mtu=65521,size=16384",
		.value = TABLES_PPS_CPU,
		.weight = 2,
		.arm = {{"2023", ORDER3 "+hint0=page+refuse=1000", false},
			{"2015", ORDER3 "+hint0=linear+refuse=1000", false}},
		.row = {{"2015", "2023", 0, "", false, "analysis: all frames of the arm are lost"}},
		.counter = {{"2023", TABLES_COPY_FAILURES, 0, 0, TABLES_EQUAL, NULL},
			{"2015", TABLES_COPY_FAILURES, 1, 0, TABLES_AT_LEAST, NULL},
			{"2023", TABLES_COPY_LONG, 4, 0, TABLES_EQUAL, NULL}},
	},
	{
		.id = "S3.fault",
		.title = "half of the requests above a page are refused: nothing else changes",
		.words = "test=TCP_STREAM,m=65535",
		.value = TABLES_MBIT_CPU,
		.weight = 2,
		.arm = {{"refused", ORDER3 "+refuse=500", false}, {"clean", ORDER3, false}},
		.row = {{"refused", "clean", 0, "", false, "analysis: the price of falling back"}},
		.counter = {{"refused", TABLES_COPY_FALLBACKS, 1, 0, TABLES_AT_LEAST, NULL},
			{"refused", TABLES_COPY_FAILURES, 0, 0, TABLES_EQUAL, NULL},
			{"clean", TABLES_COPY_FALLBACKS, 0, 0, TABLES_EQUAL, NULL}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_s3 = {
	.id = "S3",
	.title = "Packets of tun and macvtap in chunks of a higher order",
	.published =
		"a proposal for Linux tun and macvtap, 2015, order 1 against 0, a guest sends: 512 "
		"bytes +6 %, 2048 bytes +24 %, 16384 and 65535 bytes 0 %; receiving -5 to +4 %",
	.note = "The published receiving rows cannot be touched by the change: their spread is "
		"that bed's "
		"noise, about 8 %. Here no second processor wants the lock before the lists.",
	.table = s3,
};
