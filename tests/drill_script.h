/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_script: a script as a list of events. The language is that of packetdrill, as far as the
 * dialogue of one TCP goes: when something happens, what it is, and what must come of it.
 *
 *	+0.10 < S 0:0(0) win 65535 <mss 1460>     100 ms later this segment comes in
 *	+0    > S. 0:0(0) ack 1 <...>             and at once this one must go out
 *	+0    accept(3, ..., ...) = 4             the program's call, and what it must return
 *
 * This file knows no TCP and no clock: text in, events or one line of complaint out.
 */
#ifndef TESTS_DRILL_SCRIPT_H
#define TESTS_DRILL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32, ECE = 64, CWR = 128 };

enum when_kind {
	WHEN_REL, /* +0.10: after the event before */
	WHEN_ABS, /* 0.10: after the start */
	WHEN_ANY, /* *: whenever it comes */
};

struct when {
	enum when_kind kind;
	nsec_t from, to; /* to > from: a range */
	bool blocking;   /* 0...0.1: a call that begins at `from` and returns at `to` */
};

enum opt_kind {
	OPT_EOL = 0,
	OPT_NOP = 1,
	OPT_MSS = 2,
	OPT_WSCALE = 3,
	OPT_SACK_OK = 4,
	OPT_SACK = 5,
	OPT_TS = 8,
	OPT_RAW = 256, /* bytes as given */
};

struct opt {
	unsigned kind;
	unsigned n;    /* of v; of raw */
	uint32_t v[8]; /* the value; TS: val, ecr; SACK: left, right, ... in script numbers */
	uint8_t raw[40];
};

#define OPTS_MAX 24

struct opts {
	bool any; /* <...> */
	unsigned n;
	struct opt o[OPTS_MAX];
};

#define ECN_ANY 4

struct seg {
	uint8_t flags;
	bool any_seq;                   /* ...(0) */
	bool has_ack, has_win, has_urg; /* has_ack: a number is given, with or without the flag */
	uint8_t ecn;                    /* bits of the IP header, ECN_ANY: not said */
	uint16_t win, urg;
	uint32_t seq, len, ack; /* script numbers */
	unsigned peer;          /* @2: another port of the peer; 0: the first */
	struct opts opts;
};

struct quote {
	uint8_t type, code;
	uint32_t mtu;
	uint32_t seq, len; /* of the segment it quotes */
};

#define CALL_ARGS 8

struct call {
	char *name;
	char *arg[CALL_ARGS];
	unsigned nargs;
	bool any_result;
	int64_t result;
	char *error; /* "EINPROGRESS", NULL: none given */
};

/* A condition on the connection's tcp_info: tcpi_snd_cwnd == 10 */
struct check {
	char *name, *op;
	int64_t value;
};

enum event_kind { EV_IN, EV_OUT, EV_ICMP_IN, EV_CALL, EV_CHECK, EV_NONE };

struct event {
	enum event_kind kind;
	unsigned line;
	struct when when;
	char *text; /* as written, without the time */
	union {
		struct seg seg;
		struct quote icmp;
		struct call call;
		struct check check;
	};
};

#define SCRIPT_KNOBS 16

struct script {
	const char *path;
	bool ip6;
	bool frames;              /* --frames: it speaks of IP headers, so a whole host it is */
	bool variants;            /* has #ifdef: there is more than one right answer */
	unsigned mtu;             /* 0: not said */
	nsec_t tolerance;         /* 0: not said */
	char *knob[SCRIPT_KNOBS]; /* "name=value" of lines --knob=..., for the stack under test */
	unsigned nknobs;
	struct event *ev;
	unsigned n, cap;
	char *store; /* the texts point into it */
};

/* 0, or -errno with "FILE:LINE: what is wrong". After 0, script_free when done. `defined`: for #ifdef. */
int script_read(struct script *, const char *path, const char *defined, struct err *);
void script_free(struct script *);

/* A segment as a script has it, without time and direction. */
#define SEG_TEXT 320
void seg_text(const struct seg *, char text[SEG_TEXT]);

/* The number of a name such as "EAGAIN", 0: unknown; and back. */
int errno_of(const char *name);
const char *errno_word(int code);

#endif
