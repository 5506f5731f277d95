/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill - run scripts of TCP dialogues against the engine, in virtual time.
 *
 *	drill [-v] [--parse] [--stack|--rings] [--strict] [--seed N] [--tolerance MS] FILE|FOLDER...
 *
 * A line for each script that fails, "FILE:LINE: expected ..., got ...", then "N passed, N failed".
 * Status 1 if any failed. A script with #ifdef STANDARD and #ifdef FreeBSD gives two right answers, and
 * passes with either.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "drill_run.h"

struct drill {
	struct run_options opt;
	bool parse_only;
	unsigned passed, failed;
};

/* One reading of a script; *variants: there are others. */
static bool variant_passes(
	struct drill *d, const char *path, const char *defined, bool *variants, char text[RUN_TEXT])
{
	struct script s;
	struct err err = {.text = ""};
	int e = script_read(&s, path, defined, &err);

	*variants = !e && s.variants;
	if (e) {
		snprintf(text, RUN_TEXT, "%s", err.text);
		return false;
	}
	if (!d->parse_only)
		e = script_run(&s, &d->opt, text);
	script_free(&s);
	return !e;
}

static void file_run(struct drill *d, const char *path)
{
	char text[RUN_TEXT] = "", other[RUN_TEXT];
	bool variants, passes;

	if (d->opt.trace)
		printf("-- %s\n", path);
	passes = variant_passes(d, path, "STANDARD", &variants, text) ||
		 (variants && variant_passes(d, path, "FreeBSD", &variants, other));
	if (!passes)
		printf("%s\n", text);
	*(passes ? &d->passed : &d->failed) += 1;
}

static bool is_script(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && !strcmp(name + n - 4, ".pkt");
}

static void path_run(struct drill *d, const char *path, bool named);

static void folder_run(struct drill *d, const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		char *below;

		if (list[i]->d_name[0] != '.' &&
			asprintf(&below, "%s/%s", path, list[i]->d_name) > 0) {
			path_run(d, below, false);
			free(below);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

static void path_run(struct drill *d, const char *path, bool named)
{
	struct stat st;

	if (stat(path, &st)) {
		printf("%s: %s\n", path, strerror(errno));
		d->failed++;
	} else if (S_ISDIR(st.st_mode)) {
		folder_run(d, path);
	} else if (named || is_script(path)) {
		file_run(d, path);
	}
}

static int usage(void)
{
	fputs("usage: drill [-v] [--parse] [--stack|--rings] [--strict] [--seed N] [--tolerance "
	      "MS] "
	      "FILE|FOLDER...\n"
	      "  -v          print every event as it happens\n"
	      "  --parse     only read the scripts\n"
	      "  --stack     frames to a whole host, not segments to its TCP engine\n"
	      "  --rings     the same, through a virtio device and the host's driver\n"
	      "  --strict    a segment that no line asks for fails the script, also behind the "
	      "last `>`\n"
	      "  --seed      first sequence numbers come from it; default 1\n"
	      "  --tolerance of a segment's time, default 4; a tenth of the wait is always "
	      "allowed\n",
		stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct drill d = {.opt = {.seed = 1, .tolerance = 4 * NSEC_PER_MSEC}};
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-v"))
			d.opt.trace = stdout;
		else if (!strcmp(argv[i], "--parse"))
			d.parse_only = true;
		else if (!strcmp(argv[i], "--strict"))
			d.opt.strict = true;
		else if (!strcmp(argv[i], "--stack"))
			d.opt.via = VIA_STACK;
		else if (!strcmp(argv[i], "--rings"))
			d.opt.via = VIA_RINGS;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			d.opt.seed = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--tolerance") && i + 1 < argc)
			d.opt.tolerance = atoll(argv[++i]) * NSEC_PER_MSEC;
		else
			return usage();
	}
	if (i == argc)
		return usage();
	for (; i < argc; i++)
		path_run(&d, argv[i], true);
	printf("%u passed, %u failed\n", d.passed, d.failed);
	return d.failed != 0;
}
