/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_opt: the places of the options of `weft bench` in the table of words, and their values. */
#ifndef APP_BENCH_OPT_H
#define APP_BENCH_OPT_H

#include "app/cmd.h"
#include "base/clock.h"

/* From OPT_KNOB on they are keys of a virtio-user port, from OPT_FLOW on of hosts. */
enum {
	OPT_SIZE,
	OPT_TIME,
	OPT_PACKETS,
	OPT_VIA,
	OPT_TO,
	OPT_JSON,
	OPT_MTU,
	OPT_VERIFY,
	OPT_ECHO,
	OPT_KNOB,
	OPT_RING = OPT_KNOB + 9,
	OPT_MEMORY,
	OPT_REFUSE,
	OPT_FLOW,
	OPT_MESSAGE = OPT_FLOW,
	OPT_SESSIONS,
	OPT_COUNT,
	OPT_RR_SIZE,
	OPT_TRAIN,
	OPT_SNDBUF,
	OPT_RCVBUF,
	OPT_ADDR,
	OPT_HOST,
	OPT_IP,
	OPT_DELAY,
	OPT_LOSS,
	OPT_RATE,
	OPT_SEED,
	OPT_PUSH_AT,
	OPT_FRAG_CHUNK,
	OPT_AUTOCORK,
	OPT_AUTOSIZE,
	OPT_TSO,
	OPT_TSQ,
	OPT_WIN,
	OPT_CC,
	OPT_TIMEWAIT,
	OPT_THREADS,
	OPT_TABLES, /* from here on: of tables */
	OPT_QUICK = OPT_TABLES,
	OPT_PAIRS,
	OPT_END
};

/* 0 or -EINVAL, said in call->err. */
int bench_number(struct cmd_call *, unsigned opt, uint32_t min, uint32_t max, uint32_t *n,
	uint32_t otherwise);
int bench_time(struct cmd_call *, nsec_t *time);
/* The place of the word given among `words`, joined by '|'; 0 if the option is not given. */
int bench_choice(struct cmd_call *, unsigned opt, unsigned *n);
/* ",rxbuf=page,order=0" of all knobs given; a comma inside a value is doubled. NULL: no memory. */
char *bench_knobs(const struct cmd_call *, const char *more);

/* The benchmarks of flows; `server`, too. */
bool bench_is_flow(const char *word);
int bench_flow_word(struct cmd_call *);
int tables_word(struct cmd_call *);

#endif
