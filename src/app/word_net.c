/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * word_net: the words that run in the network: add, del, show, wait, stop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/ctl.h"
#include "app/show.h"
#include "app/words.h"

int word_add(struct cmd_call *call)
{
	struct spec_ctx ctx = {
		.net = call->net->name, .rundir = call->net->rundir, .cwd = call->cwd};

	if (spec_check(call->arg, call->narg, &ctx, &call->err))
		return CMD_MISTAKE;
	for (unsigned i = 0; i < call->narg; i++) {
		if (net_add(call->net, call->arg[i], call->cwd, &call->err))
			return CMD_MISTAKE;
	}
	return CMD_DONE;
}

/* All of them or none. */
int word_del(struct cmd_call *call)
{
	for (unsigned i = 0; i < call->narg; i++) {
		if (!net_find(call->net, call->arg[i], &call->err))
			return CMD_MISTAKE;
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(call->arg[k], call->arg[i]) != 0)
				continue;
			err_set(&call->err, EINVAL, "del: '%s' is given twice; once is right",
				call->arg[i]);
			return CMD_MISTAKE;
		}
	}
	for (unsigned i = 0; i < call->narg; i++)
		net_del(call->net, call->arg[i], NULL);
	return CMD_DONE;
}

static int show_unknown(struct cmd_call *call, const char *word)
{
	const char *known[16];
	char hint[160];
	unsigned n = 0;

	for (const struct show_topic *t = show_topics; t->name; t++)
		known[n++] = t->name;
	err_set(&call->err, EINVAL, "show: '%.60s' cannot be shown%s", word,
		words_hint(hint, sizeof(hint), word, known, n));
	return CMD_MISTAKE;
}

int word_show(struct cmd_call *call)
{
	const char *word = call->narg ? call->arg[0] : "ports";
	bool as_json = call->opt[0], verbose = call->opt[1];
	const struct show_topic *topic = show_topic_find(word);
	json_t *o;

	if (!topic)
		return show_unknown(call, word);
	o = as_json && !call->narg ? show_all(call->net) : topic->make(call->net);
	if (as_json) {
		json_dumpf(o, call->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', call->out);
	} else {
		topic->print(call->out, o, verbose);
	}
	json_decref(o);
	return CMD_DONE;
}

int word_wait(struct cmd_call *call)
{
	struct net_port *p = net_find(call->net, call->arg[0], &call->err);
	uint32_t sec;

	if (!p || cmd_number(call, 0, 1000000, &sec, UINT32_MAX))
		return CMD_MISTAKE;
	if (p->port->link)
		return CMD_DONE;
	ctl_later_link(
		call->client, p->port->name, sec == UINT32_MAX ? NSEC_NEVER : sec * NSEC_PER_SEC);
	return CMD_LATER;
}

int word_stop(struct cmd_call *call)
{
	ctl_later_stop(call->client);
	return CMD_LATER;
}
