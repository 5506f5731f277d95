/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_word: the word `weft bench tables`: its options, what machine this is, where the result goes.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "app/bench_opt.h"
#include "app/tables.h"
#include "app/tables_cost.h"
#include "app/words.h"

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

/* ---- the machine ---- */

/* All is one thread: it stays on the last CPU that we may have, for all runs of all arms. */
static int pin(char *text, size_t size)
{
	cpu_set_t may;
	int cpu = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(may), &may))
		return -errno;
	while (cpu && !CPU_ISSET(cpu, &may))
		cpu--;
	CPU_ZERO(&may);
	CPU_SET(cpu, &may);
	if (sched_setaffinity(0, sizeof(may), &may)) {
		snprintf(text, size, "one thread, on any CPU");
		return -errno;
	}
	snprintf(text, size, "one thread on CPU %d: both ends and the network", cpu);
	return 0;
}

static void cpu_model(char *text, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(text, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(text, size, "%s", colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

static json_t *machine(const char *placement)
{
	json_t *o = json_object();
	struct utsname u;
	char cpu[128], kernel[160] = "unknown";

	cpu_model(cpu, sizeof(cpu));
	if (!uname(&u))
		snprintf(kernel, sizeof(kernel), "%s %s", u.sysname, u.release);
	set(o, "cpu", json_string(cpu));
	set(o, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	set(o, "kernel", json_string(kernel));
	set(o, "placement", json_string(placement));
	set(o, "memory", json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
	return o;
}

/* ---- options ---- */

static bool is_file(const char *arg)
{
	return strpbrk(arg, "./");
}

struct request {
	struct tables_config c;
	const char *only[CMD_ARGS + 1];
	const char *file; /* of the JSON; NULL: none */
};

static int experiment_named(struct cmd_call *call, const char *name)
{
	const char *known[16];
	char hint[160];
	unsigned n = 0;

	for (; tables_all[n] && n < 16; n++) {
		if (!strcmp(tables_all[n]->id, name))
			return 0;
		known[n] = tables_all[n]->id;
	}
	return err_set(&call->err, EINVAL, "bench: '%.60s' is not an experiment of tables%s", name,
		words_hint(hint, sizeof(hint), name, known, n));
}

static int request_args(struct cmd_call *call, struct request *r)
{
	unsigned n = 0;

	for (unsigned i = 1; i < call->narg; i++) {
		const char *arg = call->arg[i];

		if (is_file(arg) && call->opt[OPT_JSON] && !r->file) {
			r->file = arg;
			continue;
		}
		if (is_file(arg))
			return err_set(&call->err, EINVAL,
				"bench: tables %.100s: a file is right once, with --json", arg);
		if (experiment_named(call, arg))
			return -EINVAL;
		r->only[n++] = arg;
	}
	return 0;
}

static int request(struct cmd_call *call, struct request *r)
{
	uint32_t pairs;

	*r = (struct request){.c = {.quick = call->opt[OPT_QUICK],
				      .peer = "weft",
				      .cwd = call->cwd,
				      .net = call->net_name,
				      .only = r->only}};
	for (unsigned i = 0; i < OPT_TABLES; i++)
		if (call->opt[i] && i != OPT_TIME && i != OPT_JSON)
			return err_set(&call->err, EINVAL,
				"bench: tables sets %s itself; -t, --pairs, --quick and --json are "
				"right",
				call->cmd->opt[i].name);
	if (bench_number(call, OPT_PAIRS, 3, TABLES_PAIRS, &pairs, 5))
		return -EINVAL;
	r->c.pairs = pairs;
	if (call->opt[OPT_TIME] && bench_time(call, &r->c.time))
		return -EINVAL;
	if (r->c.quick && (call->opt[OPT_TIME] || call->opt[OPT_PAIRS]))
		return err_set(&call->err, EINVAL,
			"bench: tables --quick measures no time; leave out -t and --pairs");
	return request_args(call, r);
}

/* ---- the result ---- */

static void head(json_t *o, const struct request *r, const char *placement, bool ok)
{
	const time_t now = time(NULL);
	char date[32];
	struct tm tm;

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	set(o, "format", json_string("weft-tables"));
	set(o, "version", json_integer(1));
	set(o, "weft", json_string(WEFT_VERSION));
	set(o, "date", json_string(date));
	set(o, "quick", json_boolean(r->c.quick));
	set(o, "peer", json_string(r->c.peer));
	set(o, "ok", json_boolean(ok));
	set(o, "machine", machine(placement));
}

static int write_json(struct cmd_call *call, const json_t *o, FILE *f)
{
	const bool bad = json_dumpf(o, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ||
			 fputc('\n', f) == EOF || fflush(f);

	return bad ? err_set(&call->err, EIO, "cannot write the result") : 0;
}

/* What was measured for an hour shall have somewhere to go: open it first. */
static int result_open(struct cmd_call *call, const struct request *r, FILE **f)
{
	*f = r->file ? fopen(r->file, "we") : call->out;
	if (*f)
		return 0;
	return err_set(&call->err, errno, "cannot write %.200s: %s", r->file, strerror(errno));
}

int tables_word(struct cmd_call *call)
{
	struct request r;
	char placement[80] = "one thread";
	FILE *f = NULL;
	json_t *o;
	bool ok;
	int rc;

	if (request(call, &r) || result_open(call, &r, &f))
		return CMD_MISTAKE;
	pin(placement, sizeof(placement));
	if (!call->opt[OPT_JSON] || r.file)
		r.c.out = call->out;
	r.c.progress.to = stderr;
	r.c.progress.line = isatty(STDERR_FILENO);
	if (r.c.out)
		fprintf(r.c.out, "%s\n", placement);
	r.c.cost = calloc(1, sizeof(*r.c.cost));
	rc = tables_measure(&r.c, &o, &ok, &call->err);
	free(r.c.cost);
	if (!rc) {
		head(o, &r, placement, ok);
		if (call->opt[OPT_JSON])
			rc = write_json(call, o, f);
		json_decref(o);
	}
	if (r.file && fclose(f) && !rc)
		rc = err_set(&call->err, EIO, "cannot write %.200s", r.file);
	if (!rc && !ok)
		err_set(&call->err, EPROTO, "a counter was not as predicted");
	return rc ? CMD_MISTAKE : ok ? CMD_DONE : CMD_FAILED;
}
