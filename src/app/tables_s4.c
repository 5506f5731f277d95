/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_s4: TCP packets grow to the size goal, 2008. While it copies from the user, page by page, TCP
 * looked after each page whether the packet has one segment's worth, and sent it; since then it waits
 * for as much as segmentation offload takes.
 */
#include "app/tables.h"

#define OF_2008                                                                                    \
	"test=TCP_STREAM,m=65536,frag_chunk=4096,autosize=off,autocork=off,tsq=off,pacing=off,"    \
	"indirect="                                                                                \
	"always"
#define UNIT TABLES_UNIT
#define ARMS                                                                                       \
	{"mss", "push_at=mss", false},                                                             \
	{                                                                                          \
		"goal", "push_at=goal", false                                                      \
	}
#define UNITS                                                                                                      \
	{"mss", UNIT, 5000, 0, TABLES_AT_MOST, NULL},                                                              \
		{"mss", UNIT, 2000, 0, TABLES_AT_LEAST,                                                            \
			NULL}, /* a write is a full unit, and what is left of it or both together with the next */ \
		{"goal", UNIT, 32768, 0.01, TABLES_AT_LEAST, NULL},
#define STREAM_ARMS                                                                                \
	ARMS, {"no TSO", "tso=off", false},                                                        \
	{                                                                                          \
		"no TSO, MTU 16436", "tso=off,mtu=16436", false                                    \
	}
#define STREAM_ROWS                                                                                \
	{"goal", "mss", 3.0, "200 % more", false, "\"200 %\" may have meant twice"},               \
		{"no TSO, MTU 16436", "mss", 0, "", false, NULL, {0}, true},                       \
		{"goal", "no TSO, MTU 16436", 0, "", false, NULL, {0}, true},                      \
	{                                                                                          \
		"mss", "no TSO", 0, "", false, NULL, {0}, true                                     \
	}
#define STREAM_UNITS                                                                               \
	UNITS{"no TSO", UNIT, 1448, 0.05, TABLES_EQUAL, NULL},                                     \
	{                                                                                          \
		"no TSO, MTU 16436", UNIT, 16384, 0.05, TABLES_EQUAL, NULL                         \
	}

static const struct tables_table s4[] = {
	{
		.id = "S4.stream",
		.title = "writes of 64 KiB, copied page by page",
		.words = OF_2008,
		.value = TABLES_MBIT_CPU,
		.arm = {STREAM_ARMS},
		.row = {STREAM_ROWS},
		.counter = {STREAM_UNITS},
	},
	{
		.id = "S4.zero",
		.title = "64 KiB at a time without a copy, page by page",
		.words = OF_2008 ",send=zero",
		.value = TABLES_MBIT_CPU,
		.arm = {STREAM_ARMS},
		.row = {STREAM_ROWS},
		.counter = {STREAM_UNITS},
	},
	{
		.id = "S4.size",
		.title = "by the size of a write",
		.words = OF_2008,
		.value = TABLES_MBIT_CPU,
		.weight = 3,
		.x_name = "bytes",
		.x_key = "m",
		.x = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144},
		.full = true,
		.arm = {ARMS},
		.row = {{"goal", "mss", 0, "", false, NULL}},
	},
	{
		.id = "S4.masked",
		.title = "what came later masks it: chunks of 32 KiB, autocork, auto-sizing, small "
			 "queues",
		.words = OF_2008,
		.value = TABLES_MBIT_CPU,
		.full = true,
		.arm = {{"chunk, mss", "frag_chunk=32768,push_at=mss", false},
			{"chunk, goal", "frag_chunk=32768,push_at=goal", false},
			{"cork, mss", "autocork=on,push_at=mss", false},
			{"cork, goal", "autocork=on,push_at=goal", false},
			{"size, mss", "autosize=on,push_at=mss", false},
			{"size, goal", "autosize=on,push_at=goal", false},
			{"queue, mss", "tsq=on,push_at=mss", false},
			{"queue, goal", "tsq=on,push_at=goal", false}},
		.row = {{"chunk, goal", "chunk, mss", 0, "", false,
				"Linux copies as much as a chunk holds, which hides the "
				"difference; here a copy is a page at most"},
			{"cork, goal", "cork, mss", 0, "", false, NULL},
			{"size, goal", "size, mss", 0, "", false, NULL},
			{"queue, goal", "queue, mss", 0, "", false, NULL}},
		.counter = {{"chunk, mss", UNIT, 5000, 0, TABLES_AT_MOST, NULL}},
	},
	{
		.id = "S4.slow",
		.title = "control: a slow peer, 100 Mbit/s, 10 ms there and back",
		.words = OF_2008 ",impair=delay=5ms+rate=100M+limit=200",
		.value = TABLES_MBIT,
		.full = true,
		.weight = 20,
		.arm = {ARMS},
		.row = {{"goal", "mss", 0, "", true, NULL}},
	},
	{
		.id = "S4.lossy",
		.title = "control: the same, and one frame of a hundred is lost",
		.words = OF_2008 ",impair=delay=5ms+rate=100M+limit=200+loss=1%+seed=7",
		.value = TABLES_MBIT,
		.full = true,
		.weight = 20,
		.arm = {ARMS},
		.row = {{"goal", "mss", 0, "", true, "losses fall on other segments in each run"}},
	},
	{
		.id = "S4.rr",
		.title = "control: a byte there and back",
		.words = "test=TCP_RR,rr=1,frag_chunk=4096,autosize=off,autocork=off,tsq=off,"
			 "pacing=off",
		.value = TABLES_TRANS_CPU,
		.arm = {ARMS},
		.row = {{"goal", "mss", 0, "", true, NULL}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_s4 = {
	.id = "S4",
	.title = "TCP packets grow to the size goal",
	.published = "Linux TCP, 2008 (2.6.26), a guest sends to its host in writes of 64 KiB: "
		     "\"200 %\" "
		     "more, and MTU 1500 with TSO faster than MTU 16436 without",
	.table = s4,
};
