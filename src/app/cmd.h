/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd: the one table of words. The command line, the control socket, the help and the man page are
 * made from it. A word runs here, in the calling process, or in the network's process.
 */
#ifndef APP_CMD_H
#define APP_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "app/net.h"
#include "base/err.h"

#define CMD_DONE    0
#define CMD_FAILED  1 /* what was asked for did not come true: wait's time is over */
#define CMD_MISTAKE 2 /* the user must change something; err says what */
#define CMD_LATER   3 /* the answer comes later, by the control socket's client */

#define CMD_OPTS  64
#define CMD_ARGS  PORTS_MAX
#define CMD_WORDS (1 + CMD_ARGS + 2 * (CMD_OPTS + 1)) /* of a command, options and all */

struct ctl;
struct ctl_client;

struct cmd_opt {
	const char *name; /* "-t" or "--json" */
	const char *form; /* of its value, NULL: it has none */
	const char *help;
};

struct cmd;

struct cmd_call {
	const struct cmd *cmd;
	const char *net_name; /* -n */
	const char
		*opt[CMD_OPTS]; /* values by the option's place in the table; "" for a bare one */
	const char *arg[CMD_ARGS];
	unsigned narg;
	const char *cwd; /* of the user */
	FILE *out;
	struct err err;            /* with CMD_DONE: a note that is no part of the output */
	struct ctl *ctl;           /* the running network's, NULL for words that run here */
	struct net *net;           /* the same */
	struct ctl_client *client; /* who asked: for CMD_LATER */
};

struct cmd {
	const char *word, *args, *help, *more;
	unsigned min, max; /* arguments */
	bool here;         /* runs in the calling process */
	int (*run)(struct cmd_call *);
	struct cmd_opt opt[CMD_OPTS];
};

extern const struct cmd cmds[]; /* ends with word NULL */

const struct cmd *cmd_find(const char *word, struct err *); /* NULL: unknown, said so */
/*
 * Split words (argv[0] is the command's) into options and arguments by the table. 0 or -EINVAL.
 */
int cmd_parse(struct cmd_call *, int argc, const char *const *argv);
/* A number given with option `i`, or `otherwise`. */
int cmd_number(struct cmd_call *, unsigned i, uint32_t max, uint32_t *n, uint32_t otherwise);
/* Parse and run; the status to exit with, or CMD_LATER. */
int cmd_exec(struct cmd_call *, int argc, const char *const *argv);

/* The whole program. */
int cmd_main(int argc, const char *const *argv);

/* handlers, one file per group */
int word_run(struct cmd_call *);
int word_add(struct cmd_call *);
int word_del(struct cmd_call *);
int word_show(struct cmd_call *);
int word_wait(struct cmd_call *);
int word_trace(struct cmd_call *);
int word_args(struct cmd_call *);
int word_why(struct cmd_call *);
int word_bench(struct cmd_call *);
int word_report(struct cmd_call *);
int word_ls(struct cmd_call *);
int word_stop(struct cmd_call *);
int word_help(struct cmd_call *);
int word_version(struct cmd_call *);

#endif
