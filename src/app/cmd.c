/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmd: the table, and what walks it.
 */
#include "app/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/ctl.h"
#include "app/help.h"
#include "app/words.h"

const struct cmd cmds[] = {
	{"run", "[PORT...]", "run a network with these ports until it is told to end",
		"Opens every port, prints one line when all sockets listen, and serves them until\n"
		"SIGTERM, SIGINT or weft stop; then removes its sockets. More ports can be added "
		"with\n"
		"weft add while it runs. Each network has a name (-n) and one process.",
		0, CMD_ARGS, true, word_run,
		{{"--poll-us", "N", "poll N microseconds after the last frame before sleeping"},
			{"--wait-us", "N",
				"a sender waits so many microseconds for a full receiver, 0: "
				"never; default 1000"},
			{"-v", NULL, "log links and sessions, too"}}},
	{"add", "PORT...", "add ports to the running network",
		"Takes the same words as weft run. They are looked at before the first is added; "
		"if one "
		"then\ncannot be opened, those before it stay.",
		1, CMD_ARGS, false, word_add, {{0}}},
	{"del", "NAME...", "take ports out of the running network",
		"All of them, or none if one is unknown. The port's session ends and its socket "
		"file is\n"
		"removed. A guest may come back on a new port of the same name: QEMU does, with\n"
		"reconnect=; User-Mode Linux does not, its card is dead until it starts anew.",
		1, CMD_ARGS, false, word_del, {{0}}},
	{"show", "[ports|fdb|drops|stats|switch|process]", "show the running network",
		"Without a topic: the ports. With --json: stable names; without a topic "
		"everything.",
		0, 1, false, word_show,
		{{"--json", NULL, "for programs"},
			{"-v", NULL, "more of it: sockets, all features"}}},
	{"wait", "NAME", "wait until a port's link is up",
		"Ends with status 1 when the time is over, and says what is missing.", 1, 1, false,
		word_wait, {{"-t", "SECONDS", "at most so long; default: for ever"}}},
	{"trace", "NAME", "follow the next frames of a port, step by step",
		"Of each frame that comes from it: its chain of descriptors, the virtio header, "
		"where it\n"
		"goes and why, what is done in software, copies, buffers and notifications of "
		"each\n"
		"receiver, drops with their reason, and the time in each step. While it runs the "
		"port\n"
		"lends its frames one by one, which is slower. One trace at a time in a network. "
		"It "
		"ends\n"
		"with what it has when the time is over, or when a port is taken out; with status "
		"1 if\n"
		"no frame came.",
		1, 1, false, word_trace,
		{{"-c", "1..1000", "frames; default 1"},
			{"-t", "SECONDS", "at most so long; default 10"},
			{"--json", NULL, "for programs"}}},
	{"args", "qemu|uml|cloud-hypervisor|libvirt NAME...",
		"print the exact arguments that plug a guest into a port",
		"Shared memory included. Several ports are several cards of one guest.", 2,
		CMD_ARGS, false, word_args,
		{{"-m", "SIZE", "memory of the guest, such as 512M; default 1G"}}},
	{"why", "A B", "explain whether and how two ports reach each other",
		"Link, features and addresses of both, what is done in software for each "
		"direction, and\n"
		"why the last frame was dropped.",
		2, 2, false, word_why, {{0}}},
	{"bench",
		"pktgen|rx|tcp_stream|tcp_maerts|tcp_rr|tcp_crr|udp_stream|udp_rr|server|tables "
		"[EXPERIMENT...]",
		"measure the driver, the network and the hosts",
		"pktgen sends through a network in this process to a receiver in this process, or "
		"into\n"
		"the socket of another back-end; rx receives there. Frames above the MTU are TCP\n"
		"super-packets. Every knob of the driver is an option; all are printed with the "
		"result.\n"
		"With --verify at both ends each packet is stamped, every byte of payload is\n"
		"compared, and what is missing, came twice or out of order is counted.\n"
		"tcp_stream sends from a host in this process through a network to another one;\n"
		"tcp_maerts the other way; _rr is request and response, again and again, _crr with "
		"a\n"
		"connection for each. With --via only the client is here, and `weft bench server`\n"
		"is the other end. Everything that arrives is compared with what was sent.\n"
		"tables does five published experiments on packet buffers again, or those named\n"
		"(S0 S1 S2 S3 S4, ALL: together, COST), and prints them beside what was published. "
		"It "
		"takes its time;\n"
		"--quick looks at counters only. With --json a FILE after it gets all runs. Exit\n"
		"status 1: a counter was not as predicted.",
		1, CMD_ARGS, true, word_bench,
		{{"--size", "64..65535", "bytes of a frame; default 64"},
			{"-t", "SECONDS", "how long; default 5"},
			{"--packets", "N", "stop after N packets"},
			{"--via", "PORT", "virtio-user:PATH,...: one end only, on that socket"},
			{"--to", "PORT", "with --via: the receiver, too, on that socket"},
			{"--json", NULL, "for programs"}, {"--mtu", "BYTES", "default 1500"},
			{"--verify", NULL, "stamp each packet, compare each byte of what comes"},
			{"--echo", NULL, "with --via: count and verify what is sent back"},
			{"--off", "FEATURE+...", "virtio features not to use"},
			{"--rxbuf", "page|mtu|mtu+hdr|auto", "receive buffers"},
			{"--coalesce", "on|off", "adjacent buffers become one fragment"},
			{"--copybreak", "BYTES", "so short a packet is copied out of its buffer"},
			{"--inline", "on|off", "the header in the headroom"},
			{"--headroom", "BYTES", "before the head of packets"},
			{"--indirect", "auto|always|never", "descriptor tables"},
			{"--order", "0..4", "of the payload's chunks"},
			{"--rxorder", "0..4", "of the receive buffers' chunks"},
			{"--ring", "2..1024", "entries of the rings"},
			{"--memory", "SIZE", "of each driver"},
			{"--refuse", "0..1000", "of 1000 chunks above order 0, on purpose"},
			/* from here on: of hosts */
			{"-m", "BYTES",
				"of a write, or of a datagram; default 131072, or the MTU's"},
			{"-P", "1..4096", "sessions; default 1"},
			{"--count", "N", "bytes, exchanges or datagrams of a session"},
			{"--rr-size", "REQUEST[,RESPONSE]", "bytes; default 1,1"},
			{"--train", "1..64", "datagrams of one send; default 1"},
			{"--sndbuf", "BYTES", "default: grows by itself"},
			{"--rcvbuf", "BYTES", "default: grows by itself"},
			{"--addr", "ADDR/LEN+...",
				"of this host; default 10.99.0.1/24+fd99::1/64, server: 2"},
			{"--host", "ADDR", "of the server"}, {"--ip", "4|6", "default 4"},
			{"--delay", "TIME", "of the network, each way"},
			{"--loss", "PERCENT", "of the network, each way"},
			{"--rate", "BITS", "of the network, each way, such as 1G"},
			{"--seed", "N", "of the losses"},
			{"--push-at", "goal|mss", "when a unit that is not full is sent"},
			{"--frag-chunk", "32768|4096", "bytes of the chunks that are written to"},
			{"--autocork", "on|off", "small writes wait for what is on its way"},
			{"--autosize", "on|off", "units follow the rate"},
			{"--tso", "on|off", "super-segments"},
			{"--tsq", "on|off", "no more than about a millisecond waits in the driver"},
			{"--rcv-win-model", "modern|2013", "how much of the buffer is offered"},
			{"--cc", "newreno|cubic", "congestion control"},
			{"--timewait", "SECONDS", "default 60"},
			{"--threads", "1|3", "each host and the network on its own"},
			/* from here on: of tables */
			{"--quick", NULL, "tables: counters only, in two minutes"},
			{"--pairs", "3..25", "tables: runs of each arm; default 5"}}},
	{"report", "FILE.json", "make a page of what weft bench tables measured",
		"One HTML file with tables, figures and every run; it fetches nothing, so it can "
		"be\n"
		"mailed, printed and kept. gnuplot draws the figures (package gnuplot-nox).",
		1, 1, true, word_report,
		{{"-o", "FILE", "write there; default: standard output"},
			{"--markdown", NULL, "the tables alone, for a document"},
			{"--only", "ID", "with --markdown: one experiment, such as S0"}}},
	{"ls", "", "list the networks that run",
		"One name a line: the user's own, in his runtime folder.", 0, 0, true, word_ls,
		{{0}}},
	{"stop", "", "end the running network",
		"Returns when its sockets are removed and its name is free again.", 0, 0, false,
		word_stop, {{0}}},
	{"help", "[WORD|KIND|columns|drops|features]",
		"explain everything, one word, a kind of port, or what show says", "", 0, 1, true,
		word_help, {{"--man", NULL, "the manual page, as roff"}}},
	{"version", "", "print the version", "", 0, 0, true, word_version, {{0}}},
	{0},
};

const struct cmd *cmd_find(const char *word, struct err *err)
{
	const char *known[32], *closest;
	char list[200] = "";
	unsigned n = 0;
	size_t at;

	for (const struct cmd *c = cmds; c->word; c++) {
		if (!strcmp(c->word, word))
			return c;
		at = strlen(list);
		snprintf(list + at, sizeof(list) - at, "%s%s", n ? ", " : "", c->word);
		known[n++] = c->word;
	}
	closest = words_closest(word, known, n);
	err_set(err, EINVAL, "unknown word '%.60s'; %s%s%sknown: %s", word,
		closest ? "did you mean '" : "", closest ? closest : "", closest ? "'? " : "",
		list);
	return NULL;
}

/* The option that `word` is, with its value or NULL if the value is the next word. */
static const struct cmd_opt *opt_find(const struct cmd *cmd, const char *word, const char **value)
{
	const char *eq = strncmp(word, "--", 2) ? NULL : strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : strlen(word);

	*value = eq ? eq + 1 : NULL;
	for (unsigned i = 0; i < CMD_OPTS && cmd->opt[i].name; i++) {
		if (strlen(cmd->opt[i].name) == len && !strncmp(cmd->opt[i].name, word, len))
			return &cmd->opt[i];
	}
	return NULL;
}

static int parse_opt(struct cmd_call *call, const char *word, const char *next, bool *used_next)
{
	static const struct cmd_opt net = {"-n", "NET", NULL};
	const char *known[CMD_OPTS + 1] = {"-n"}, *value;
	const struct cmd_opt *opt = opt_find(call->cmd, word, &value);
	unsigned n = 1;
	char hint[160];

	if (!strcmp(word, "-n"))
		opt = &net;
	for (unsigned i = 0; i < CMD_OPTS && call->cmd->opt[i].name; i++)
		known[n++] = call->cmd->opt[i].name;
	if (!opt)
		return err_set(&call->err, EINVAL, "%s: unknown option '%.60s'%s", call->cmd->word,
			word, words_hint(hint, sizeof(hint), word, known, n));
	if (opt->form && !value) {
		if (!next)
			return err_set(&call->err, EINVAL, "%s: %s needs a value: %s %s",
				call->cmd->word, opt->name, opt->name, opt->form);
		value = next;
		*used_next = true;
	}
	if (!opt->form && value)
		return err_set(
			&call->err, EINVAL, "%s: %s takes no value", call->cmd->word, opt->name);
	if (opt == &net)
		call->net_name = value;
	else
		call->opt[opt - call->cmd->opt] = value ? value : "";
	return 0;
}

int cmd_parse(struct cmd_call *call, int argc, const char *const *argv)
{
	const struct cmd *cmd = call->cmd;
	bool words_only = false;
	int r;

	for (int i = 1; i < argc; i++) {
		bool used_next = false;

		if (!words_only && !strcmp(argv[i], "--")) {
			words_only = true;
			continue;
		}
		if (!words_only && argv[i][0] == '-' && argv[i][1]) {
			r = parse_opt(call, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used_next);
			if (r)
				return r;
			i += used_next;
			continue;
		}
		if (call->narg == CMD_ARGS)
			return err_set(&call->err, EINVAL,
				"%s: more than %d at once: a network has at most so many ports",
				cmd->word, CMD_ARGS);
		if (call->narg == cmd->max)
			return err_set(&call->err, EINVAL,
				"%s: '%.60s' is too much; right is: weft %s%s%s", cmd->word,
				argv[i], cmd->word, *cmd->args ? " " : "", cmd->args);
		call->arg[call->narg++] = argv[i];
	}
	if (call->narg < cmd->min)
		return err_set(&call->err, EINVAL, "%s: needs %s; right is: weft %s %s", cmd->word,
			cmd->args, cmd->word, cmd->args);
	return net_name_check(call->net_name, &call->err);
}

int cmd_number(struct cmd_call *call, unsigned i, uint32_t max, uint32_t *n, uint32_t otherwise)
{
	const char *text = call->opt[i];
	unsigned long x;
	char *end;

	*n = otherwise;
	if (!text)
		return 0;
	errno = 0;
	x = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || x > max)
		return err_set(&call->err, EINVAL, "%s: %s %.60s: must be a number from 0 to %u",
			call->cmd->word, call->cmd->opt[i].name, text, max);
	*n = (uint32_t)x;
	return 0;
}

int cmd_exec(struct cmd_call *call, int argc, const char *const *argv)
{
	call->cmd = cmd_find(argv[0], &call->err);
	if (!call->cmd || cmd_parse(call, argc, argv))
		return CMD_MISTAKE;
	if (call->cmd->here != !call->net) {
		err_set(&call->err, EINVAL, "'%s' does not run in the network", call->cmd->word);
		return CMD_MISTAKE;
	}
	return call->cmd->run(call);
}

/* The command line. */

/* "--help" and the like, which everybody tries, are words, too. */
static const char *main_word(const char *word)
{
	static const struct {
		const char *option, *word;
	} words[] = {
		{"-h", "help"}, {"--help", "help"}, {"-V", "version"}, {"--version", "version"}};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(word, words[i].option))
			return words[i].word;
	}
	return word;
}

static int main_run(struct cmd_call *call, int argc, const char *const *argv)
{
	const char *words[2] = {"help", NULL};

	call->cmd = cmd_find(main_word(argv[0]), &call->err);
	if (!call->cmd)
		return CMD_MISTAKE;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") != 0 && strcmp(argv[i], "--help") != 0)
			continue;
		words[1] = call->cmd->word;
		return cmd_exec(call, 2, words);
	}
	/* Mistakes are told here, even if no network runs. */
	if (cmd_parse(call, argc, argv))
		return CMD_MISTAKE;
	if (call->cmd->here)
		return call->cmd->run(call);
	return ctl_ask(call->net_name, argc, argv, call->cwd, call->out, &call->err);
}

/* What was printed must have gone out: a full disk is no success. */
static int main_flush(struct cmd_call *call, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (status == CMD_DONE)
		err_set(&call->err, EIO, "cannot write the output: %s", strerror(errno));
	return status == CMD_DONE ? CMD_FAILED : status;
}

int cmd_main(int argc, const char *const *argv)
{
	struct cmd_call call = {.net_name = "default", .out = stdout};
	char cwd[4096];
	int status;

	call.cwd = getcwd(cwd, sizeof(cwd)) ? cwd : "/";
	argv++;
	argc--;
	if (argc == 1 && !strcmp(argv[0], "-n")) {
		fputs("weft: -n needs the name of a network: weft -n NET WORD\n", stderr);
		return CMD_MISTAKE;
	}
	/* -n before the word is the same as after it */
	if (argc >= 2 && !strcmp(argv[0], "-n")) {
		call.net_name = argv[1];
		argv += 2;
		argc -= 2;
	}
	if (argc == 0)
		help_short(stdout);
	status = main_flush(&call, argc ? main_run(&call, argc, argv) : CMD_DONE);
	if (call.err.text[0])
		fprintf(stderr, "weft: %s%s\n", status == CMD_DONE ? "note: " : "", call.err.text);
	return status;
}

int word_version(struct cmd_call *call)
{
	fprintf(call->out, "weft %s\n", WEFT_VERSION);
	return CMD_DONE;
}
