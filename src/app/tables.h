/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables: `weft bench tables`: five experiments of 2008 to 2015 on packet buffers, done again. What
 * is measured is data (tables_s*.c): an experiment has tables, a table has arms that differ in their
 * words, rows that compare two arms, and counters that an arm is predicted to show. The engine
 * (tables.c) runs all arms of a table in turn, round after round, forwards and backwards; one run is
 * one network with both its ends, made and ended by tables_run.c.
 *
 * The rules: one binary, one knob; runs interleaved; every run kept; what arrives is compared with
 * what was sent. A counter that misses its prediction fails the whole; a ratio that misses is told.
 */
#ifndef APP_TABLES_H
#define APP_TABLES_H

#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/tcp_info.h"

/* What a run tells: name in JSON, words for people. */
#define TABLES_METRICS(X)                                                                          \
	X(MBIT, "mbit_s", "Mbit/s")                                                                \
	X(TRANS, "trans_s", "transactions/s")                                                      \
	X(PPS, "packets_s", "packets/s")                                                           \
	X(MBIT_CPU, "mbit_cpu_s", "Mbit per CPU second")                                           \
	X(TRANS_CPU, "trans_cpu_s", "transactions per CPU second")                                 \
	X(PPS_CPU, "packets_cpu_s", "packets per CPU second")                                      \
	X(NS, "ns_per_packet", "CPU ns per packet")                                                \
	X(CPU, "cpu_s", "CPU seconds")                                                             \
	X(RX_PACKETS, "rx_packets", "packets received")                                            \
	X(RX_SIZE, "rx_size", "mean packet received, bytes")                                       \
	X(RX_BUFS, "rx_buffers_per_packet", "receive buffers per packet")                          \
	X(RX_FRAGS, "rx_fragments_per_packet", "fragments per packet")                             \
	X(RX_CHAINED, "rx_chained_per_packet", "chained packets per packet")                       \
	X(RX_TRUE, "truesize_per_byte", "bytes charged per byte")                                  \
	X(RX_NOT_FULL, "rx_not_full", "buffers not filled")                                        \
	X(TX_PACKETS, "tx_packets", "packets sent")                                                \
	X(TX_DESC, "tx_descriptors_per_packet", "descriptors per packet")                          \
	X(TX_TABLES, "tx_indirect_per_packet", "descriptor tables per packet")                     \
	X(COPY_CHUNKS, "copy_chunks_per_packet", "chunks per packet copied")                       \
	X(COPY_LONG, "copy_chunks_per_long", "chunks per packet that needed any")                  \
	X(COPY_FALLBACKS, "copy_fallbacks", "orders not to be had")                                \
	X(COPY_FAILURES, "copy_failures", "packets not copied")                                    \
	X(COPY_LOCKED, "copy_locked", "times the lock of the lists was taken")                     \
	X(KICKS, "kicks_per_packet", "kicks per packet")                                           \
	X(CALLS, "notifications_per_packet", "notifications per packet")                           \
	X(UNIT, "mean_unit", "mean unit sent, bytes")                                              \
	X(RETRANS, "retransmissions", "retransmissions")                                           \
	X(LATENCY, "p50_us", "median round trip, us")                                              \
	X(LOST, "lost", "packets lost")

enum tables_metric {
#define X(id, name, text) TABLES_##id,
	TABLES_METRICS(X)
#undef X
		TABLES_METRICS_N
};

struct tables_result {
	double v[TABLES_METRICS_N]; /* NAN: this run does not tell it */
	double seconds;
	uint64_t wrong; /* pieces that arrived and were not what was sent */
	uint64_t units[TCP_UNITS];
};

enum tables_rule { TABLES_EQUAL, TABLES_AT_MOST, TABLES_AT_LEAST };

struct tables_counter {
	const char *arm;
	enum tables_metric metric;
	double predicted;
	double tolerance; /* relative */
	enum tables_rule rule;
	/* from the run itself and the value swept, instead of `predicted`; NAN: none for this one */
	double (*predict)(const struct tables_result *, double x);
};

struct tables_arm {
	const char *name, *words;
	bool apart; /* of the full form only */
};

#define TABLES_ARMS     12
#define TABLES_ROWS     16
#define TABLES_COUNTERS 24
#define TABLES_XS       24

struct tables_row {
	const char *arm, *base;
	double published;       /* the ratio; 0: none was */
	const char *text;       /* as it was published */
	bool null;              /* a control: nothing may change */
	const char *why;        /* what is known about it; NULL: nothing */
	double at_x[TABLES_XS]; /* published, by what is swept; 0: as above */
	bool faster;            /* no number was published, but that it is faster */
};

/*
 * `value` is what arms are judged by: of runs that the processor limits, work per CPU second, which a
 * busy machine does not change; of those that a window or a rate limits, work per second.
 */
struct tables_table {
	const char *id, *title;
	const char *words; /* of all its runs; those of the arm come later and win */
	enum tables_metric value;
	const char *x_name, *x_key; /* NULL: no sweep */
	double x[TABLES_XS];        /* ends with 0 */
	bool full;                  /* not in the quick form */
	enum { TABLES_COST_NONE, TABLES_COST_FIT, TABLES_COST_HELD } cost; /* tables_cost.h */
	unsigned weight; /* of a run's time, tenths; 0: 10 */
	struct tables_arm arm[TABLES_ARMS];
	struct tables_row row[TABLES_ROWS];
	struct tables_counter counter[TABLES_COUNTERS];
};

struct tables_experiment {
	const char *id, *title, *published;
	const struct tables_table *table; /* ends with id NULL */
	const char *note;                 /* what the reader must know; or NULL */
};

/* NULL-terminated. */
extern const struct tables_experiment *const tables_all[];
extern const struct tables_experiment tables_s0, tables_s1, tables_s2, tables_s3, tables_s4,
	tables_together, tables_cost;

/* ---- one run ---- */

#define TABLES_ONE 16384

struct tables_run {
	const char *words[3]; /* "key=value,..."; later ones win; NULL: none */
	nsec_t time, warm;
	uint64_t count; /* not 0: no time, but so many bytes, or a TABLES_ONE-th of it in packets */
	const char *cwd, *net;
};
/* 0 or -errno, said. A run that brings nothing in its time is an error. */
int tables_run(const struct tables_run *, struct tables_result *, struct err *);
const char *tables_metric_name(enum tables_metric);
const char *tables_metric_text(enum tables_metric);

/* ---- numbers ---- */

struct tables_ratio {
	double median, low, high; /* of paired ratios; the interval is of the median */
};
/* `n` pairs, 1 .. TABLES_PAIRS; with 5 the interval is the least and the most: 93.8 %. */
#define TABLES_PAIRS 25
struct tables_ratio tables_ratio(const double *arm, const double *base, unsigned n);
double tables_median(const double *, unsigned n);
/* Verdict by the rules above; *why is a sentence, perhaps empty. Not judged if `quick`. */
const char *tables_verdict(const struct tables_row *, const struct tables_ratio *, bool counted,
	bool held, bool quick, char *why, size_t size);

/* ---- results ---- */

struct tables_progress {
	FILE *to;  /* NULL: nobody looks */
	bool line; /* it is a terminal: one line, over and over */
	unsigned done, all;
	nsec_t begun;
};

struct tables_config {
	bool quick;
	unsigned pairs;
	nsec_t time;    /* of a run; 0: as the form says */
	uint64_t count; /* quick: of a run; 0: as the form says */
	const char *peer, *cwd, *net;
	const char *const *only; /* names of experiments, NULL-terminated; none: all */
	struct cost *cost;       /* NULL: no sum is fitted */
	FILE *out;               /* tables as text; NULL: none */
	struct tables_progress progress;
};
/* All of it as JSON in *o, the caller's. 0, also if counters missed (*ok), or -errno. */
int tables_measure(struct tables_config *, json_t **o, bool *ok, struct err *);
/* One table as text. */
void tables_text(FILE *, const json_t *table);

#endif
