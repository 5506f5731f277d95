/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_opt: options of `weft bench` as values; what is wrong is said with the option's name.
 */
#include "app/bench_opt.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bench_number(struct cmd_call *call, unsigned i, uint32_t min, uint32_t max, uint32_t *n,
	uint32_t otherwise)
{
	int r = cmd_number(call, i, max, n, otherwise);

	if (!r && *n < min)
		r = err_set(&call->err, EINVAL, "bench: %s %u: must be a number from %u to %u",
			call->cmd->opt[i].name, *n, min, max);
	return r;
}

/* "2", "0.5" */
int bench_time(struct cmd_call *call, nsec_t *time)
{
	const char *text = call->opt[OPT_TIME] ? call->opt[OPT_TIME] : "5";
	char *end;
	double sec = strtod(text, &end);

	if (!isdigit((unsigned char)*text) || *end || sec <= 0 || sec > 86400)
		return err_set(&call->err, EINVAL,
			"bench: -t %.60s: must be seconds, such as 10 or 0.5", text);
	*time = (nsec_t)(sec * (double)NSEC_PER_SEC);
	return 0;
}

int bench_choice(struct cmd_call *call, unsigned i, unsigned *n)
{
	const char *form = call->cmd->opt[i].form, *given = call->opt[i];
	size_t len = given ? strlen(given) : 0;

	*n = 0;
	for (const char *word = form; given; word++) {
		size_t end = strcspn(word, "|");

		if (end == len && !strncmp(word, given, len))
			return 0;
		word += end;
		++*n;
		if (!*word)
			return err_set(&call->err, EINVAL, "bench: %s %.60s: must be one of %s",
				call->cmd->opt[i].name, given, form);
	}
	return 0;
}

char *bench_knobs(const struct cmd_call *call, const char *more)
{
	size_t size = strlen(more) + 1;
	char *text, *at;

	for (unsigned i = OPT_KNOB; i < OPT_FLOW; i++)
		size += call->opt[i] ? 2 * strlen(call->opt[i]) + 32 : 0;
	text = malloc(size);
	if (!text)
		return NULL;
	at = stpcpy(text, more);
	for (unsigned i = OPT_KNOB; i < OPT_FLOW; i++) {
		if (!call->opt[i])
			continue;
		at += sprintf(at, ",%s=", call->cmd->opt[i].name + 2);
		for (const char *c = call->opt[i]; *c; c++) {
			*at++ = *c;
			if (*c == ',')
				*at++ = ',';
		}
		*at = 0;
	}
	return text;
}
