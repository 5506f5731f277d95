/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * help: short, of one word, of all, and as a manual page.
 */
#include "app/help.h"

#include <string.h>

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

void help_word(FILE *f, const struct cmd *cmd)
{
	fprintf(f, "weft %s [-n NET]%s%s\n\n%s.\n", cmd->word, *cmd->args ? " " : "", cmd->args,
		cmd->help);
	if (*cmd->more)
		fprintf(f, "%s\n", cmd->more);
	for (unsigned i = 0; i < CMD_OPTS && cmd->opt[i].name; i++) {
		const struct cmd_opt *o = &cmd->opt[i];
		int n = fprintf(f, "%s  %s%s%s", i ? "" : "\n", o->name, o->form ? " " : "",
			o->form ? o->form : "");

		fprintf(f, "%*s%s\n", n < 22 ? 22 - n : 2, "", o->help);
	}
}

static void print_term(void *ctx, const char *term, const char *help)
{
	fprintf(ctx, "  %-24s%s\n", term, help);
}

void help_all(FILE *f)
{
	fprintf(f, "weft - %s\n\n", about);
	for (const struct cmd *c = cmds; c->word; c++) {
		fprintf(f, "  weft %s %s\n      %s\n", c->word, c->args, c->help);
		for (unsigned i = 0; i < CMD_OPTS && c->opt[i].name; i++)
			fprintf(f, "      %s%s%s  %s\n", c->opt[i].name, c->opt[i].form ? " " : "",
				c->opt[i].form ? c->opt[i].form : "", c->opt[i].help);
	}
	fprintf(f, "\n-n NET names the network, with every word; default: default.\n\n"
		   "A PORT is KIND:ARG[,key=value]...; a comma inside a value is doubled.\n\n");
	spec_explain(print_term, f);
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

void help_man(FILE *f)
{
	fputs(".TH WEFT 1 \"\" \"weft " WEFT_VERSION "\"\n.SH NAME\nweft \\- ", f);
	man_text(f, about);
	fputs("\n.SH SYNOPSIS\n.B weft\n.RI [ \\-n \" NET\" ]\n.I WORD\n.RI [ ARGUMENT ]...\n"
	      ".SH DESCRIPTION\n"
	      "A network is one process, started with\n.BR \"weft run\" .\nThe other words talk to "
	      "it "
	      "over a control socket in the user's runtime folder.\n"
	      "\\-n NET names the network; the default is\n.IR default .\n.SH WORDS\n",
		f);
	for (const struct cmd *c = cmds; c->word; c++)
		man_word(f, c);
	fputs(".SH PORTS\nA port is KIND:ARG[,key=value]...; a comma inside a value is doubled.\n",
		f);
	spec_explain(man_term, f);
	fputs(".SH EXIT STATUS\n0: done. 1: what was waited for did not come. 2: a mistake; one "
	      "line on "
	      "the standard error says which, and what would be right.\n"
	      ".SH FILES\n"
	      ".TP\n.I $XDG_RUNTIME_DIR/weft/NET/\nthe runtime folder of a network: its control "
	      "socket "
	      "and the sockets of ports named without a slash; for root without XDG_RUNTIME_DIR "
	      "/run/weft/NET/, else /tmp/weft\\-UID/NET/\n",
		f);
}

int word_help(struct cmd_call *call)
{
	const struct cmd *cmd;

	if (call->opt[0]) {
		help_man(call->out);
	} else if (call->narg) {
		cmd = cmd_find(call->arg[0], &call->err);
		if (!cmd)
			return CMD_MISTAKE;
		help_word(call->out, cmd);
	} else {
		help_all(call->out);
	}
	return CMD_DONE;
}
