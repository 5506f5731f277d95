/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_together: all five at once, added in the order of their years, then each taken away alone.
 * And the list of all experiments.
 */
#include "app/tables.h"

#define NO4 "push_at=mss"
#define NO0 "rxbuf=mtu"
#define NO1 "coalesce=off"
#define NO2 "inline=off"
#define NO3 "copy=on+order=0+pages=2015"

static const struct tables_table together[] = {
	{
		.id = "ALL.add",
		.title = "a stream of 64 KiB writes",
		.words = "test=TCP_STREAM,m=65536,frag_chunk=4096,autosize=off,autocork=off,tsq="
			 "off,pacing=off,"
			 "indirect=always,rxbuf=mtu+hdr,copy=on+order=1+pages=2015",
		.value = TABLES_MBIT_CPU,
		.full = true,
		.arm = {{"none", NO4 "," NO0 "," NO1 "," NO2 "," NO3, false},
			{"S4", NO0 "," NO1 "," NO2 "," NO3, false},
			{"S4 S0", NO1 "," NO2 "," NO3, false}, {"S4 S0 S1", NO2 "," NO3, false},
			{"S4 S0 S1 S2", NO3, false}, {"all", NULL, false},
			{"all but S4", NO4, false}, {"all but S0", NO0, false},
			{"all but S1", NO1, false}, {"all but S2", NO2, false},
			{"all but S3", NO3, false}},
		.row = {{"S4", "none", 0, "", false, NULL}, {"S4 S0", "S4", 0, "", false, NULL},
			{"S4 S0 S1", "S4 S0", 0, "", false, NULL},
			{"S4 S0 S1 S2", "S4 S0 S1", 0, "", false, NULL},
			{"all", "S4 S0 S1 S2", 0, "", false, NULL},
			{"all", "none", 0, "", false, "jointly"},
			{"all", "all but S4", 0, "", false, "S4 is what lets the others matter"},
			{"all", "all but S0", 0, "", false, NULL},
			{"all", "all but S1", 0, "", false, NULL},
			{"all", "all but S2", 0, "", false, NULL},
			{"all", "all but S3", 0, "", false, NULL}},
	},
	{.id = NULL},
};

const struct tables_experiment tables_together = {
	.id = "ALL",
	.title = "The five together",
	.published = "nothing: they were changes of eight years",
	.table = together,
};

const struct tables_experiment *const tables_all[] = {&tables_s0, &tables_s1, &tables_s2,
	&tables_s3, &tables_s4, &tables_together, &tables_cost, NULL};
