/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * help: short, of one word, of all, and as a manual page.
 */
#include "app/help.h"

#include <ctype.h>
#include <string.h>

#include "app/help_topic.h"
#include "app/spec.h"

static const char about[] = "a virtual network in user space: Ethernet for virtual machines, "
			    "containers and processes";

void help_short(FILE *f)
{
	fprintf(f,
		"weft - %s\n"
		"\n"
		"  weft run vhost-user:a vhost-user:b   run a network with two sockets for guests\n"
		"  weft args qemu a                     what to start the guest with\n"
		"  weft wait a                          until the guest's driver is ready\n"
		"  weft show                            links, features, traffic; weft show drops\n"
		"  weft why a b                         how the two reach each other, or why not\n"
		"  weft stop                            end it\n"
		"\n"
		"weft help explains all words and ports, weft help WORD one of them.\n",
		about);
}

static void print_term(void *ctx, const char *term, const char *help)
{
	int n = fprintf(ctx, "  %s", term);

	fprintf(ctx, "%*s%s\n", n < 24 ? 26 - n : 2, "", help);
}

static void print_opt(FILE *f, const char *indent, const struct cmd_opt *o)
{
	char term[80];

	snprintf(term, sizeof(term), "%s%s%s%s", indent, o->name, o->form ? " " : "",
		o->form ? o->form : "");
	print_term(f, term, o->help);
}

void help_word(FILE *f, const struct cmd *cmd)
{
	fprintf(f, "weft %s [-n NET]%s%s\n\n%s.\n", cmd->word, *cmd->args ? " " : "", cmd->args,
		cmd->help);
	if (*cmd->more)
		fprintf(f, "%s\n", cmd->more);
	if (cmd->opt[0].name)
		fputc('\n', f);
	for (unsigned i = 0; i < CMD_OPTS && cmd->opt[i].name; i++)
		print_opt(f, "", &cmd->opt[i]);
}

static void print_topic(FILE *f, const struct help_topic *t)
{
	fprintf(f, "%s.\n\n", t->title);
	for (const struct help_term *term = t->term; term->name; term++)
		print_term(f, term->name, term->help);
}

void help_all(FILE *f)
{
	fprintf(f, "weft - %s\n\n", about);
	for (const struct cmd *c = cmds; c->word; c++) {
		fprintf(f, "  weft %s%s%s\n      %s\n", c->word, *c->args ? " " : "", c->args,
			c->help);
		for (unsigned i = 0; i < CMD_OPTS && c->opt[i].name; i++)
			print_opt(f, "    ", &c->opt[i]);
	}
	fprintf(f, "\n-n NET names the network, with every word; default: default.\n\n"
		   "A PORT is KIND:ARG[,key=value]...; a comma inside a value is doubled.\n\n");
	spec_explain(NULL, print_term, f);
	fprintf(f, "\nMore: weft help WORD, weft help KIND of a port");
	for (const struct help_topic *t = help_topics; t->word; t++)
		fprintf(f, ", weft help %s", t->word);
	fputs(".\n", f);
}

/* Text to roff: backslashes, hyphens of options, and a leading dot or quote are special. */
static void man_text(FILE *f, const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", f);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", f);
		else if (*s == '-')
			fputs("\\-", f);
		else
			fputc(*s, f);
	}
}

static void man_term(void *ctx, const char *term, const char *help)
{
	FILE *f = ctx;

	fputs(".TP\n.B ", f);
	man_text(f, term + strspn(term, " "));
	fputc('\n', f);
	man_text(f, help);
	fputc('\n', f);
}

static void man_word(FILE *f, const struct cmd *c)
{
	char term[64];

	fputs(".SS weft ", f);
	man_text(f, c->word);
	if (*c->args)
		fputc(' ', f);
	man_text(f, c->args);
	fputc('\n', f);
	man_text(f, c->help);
	fputs(".\n", f);
	if (*c->more) {
		man_text(f, c->more);
		fputc('\n', f);
	}
	for (unsigned i = 0; i < CMD_OPTS && c->opt[i].name; i++) {
		snprintf(term, sizeof(term), "%s%s%s", c->opt[i].name, c->opt[i].form ? " " : "",
			c->opt[i].form ? c->opt[i].form : "");
		man_term(f, term, c->opt[i].help);
	}
}

static const struct help_term examples[] = {
	{"weft run vhost-user:a vhost-user:b", "a network of two sockets for guests"},
	{"qemu-system-x86_64 ... $(weft args qemu a)", "a guest on the first"},
	{"weft add tap:weft0,ip=10.0.0.254/24", "the host joins: as root, or with netns="},
	{"weft run -n lab vhost-user:x,mtu=9000,off=host_uso+guest_uso4+guest_uso6",
		"a second network with large packets and without UDP super-packets"},
	{"weft wait -t 30 a && weft why a b", "once the guest is up: how it reaches the other"},
	{"weft show --json | jq .ports[0].frames_in", "for programs"},
	{NULL, NULL},
};

static void man_terms(FILE *f, const char *heading, const struct help_term *term)
{
	fprintf(f, ".SH %s\n", heading);
	for (; term->name; term++)
		man_term(f, term->name, term->help);
}

static void man_topic(FILE *f, const struct help_topic *t)
{
	char heading[32];
	size_t n = 0;

	for (; t->word[n] && n + 1 < sizeof(heading); n++)
		heading[n] = (char)toupper((unsigned char)t->word[n]);
	heading[n] = 0;
	fprintf(f, ".SH %s\n", heading);
	man_text(f, t->title);
	fputs(".\n", f);
	for (const struct help_term *term = t->term; term->name; term++)
		man_term(f, term->name, term->help);
}

static const struct help_term statuses[] = {
	{"0", "done"},
	{"1", "what was asked for did not come true: wait's time is over, the output could not be "
	      "written"},
	{"2", "a mistake; one line on the standard error says which, and what would be right"},
	{NULL, NULL},
};

void help_man(FILE *f)
{
	fputs(".TH WEFT 1 \"\" \"weft " WEFT_VERSION "\"\n.SH NAME\nweft \\- ", f);
	man_text(f, about);
	fputs("\n.SH SYNOPSIS\n.B weft\n.RI [ \\-n \" NET\" ]\n.I WORD\n.RI [ ARGUMENT ]...\n"
	      ".SH DESCRIPTION\n"
	      "A network is one process, started with\n.BR \"weft run\" .\nThe other words talk to "
	      "it over a control socket in the user's runtime folder.\n"
	      "\\-n NET names the network; the default is\n.IR default .\n.SH WORDS\n",
		f);
	for (const struct cmd *c = cmds; c->word; c++)
		man_word(f, c);
	fputs(".SH PORTS\nA port is KIND:ARG[,key=value]...; a comma inside a value is doubled.\n",
		f);
	spec_explain(NULL, man_term, f);
	for (const struct help_topic *t = help_topics; t->word; t++)
		man_topic(f, t);
	man_terms(f, "EXAMPLES", examples);
	man_terms(f, "EXIT STATUS", statuses);
	fputs(".SH FILES\n"
	      ".TP\n.I $XDG_RUNTIME_DIR/weft/NET/\nthe runtime folder of a network: its control "
	      "socket "
	      "and the sockets of ports named without a slash; for root without XDG_RUNTIME_DIR "
	      "/run/weft/NET/, else /tmp/weft\\-UID/NET/\n"
	      ".SH SEE ALSO\n.BR qemu (1),\n.BR ip\\-netns (8),\n.BR ip\\-link (8),\n"
	      ".BR unshare (1)\n",
		f);
}

/* One word: of a command, of a kind of port, of a topic. */
static int help_find(FILE *f, const char *word, struct err *err)
{
	const struct cmd *cmd;

	for (const struct help_topic *t = help_topics; t->word; t++) {
		if (strcmp(t->word, word) != 0)
			continue;
		print_topic(f, t);
		return CMD_DONE;
	}
	if (spec_explain(word, print_term, f))
		return CMD_DONE;
	cmd = cmd_find(word, err);
	if (!cmd)
		return CMD_MISTAKE;
	help_word(f, cmd);
	return CMD_DONE;
}

int word_help(struct cmd_call *call)
{
	if (call->narg)
		return help_find(call->out, call->arg[0], &call->err);
	if (call->opt[0])
		help_man(call->out);
	else
		help_all(call->out);
	return CMD_DONE;
}
