/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill - run scripts of TCP dialogues against the engine, in virtual time.
 *
 *	drill [-v] [--parse] [--lax] [--seed N] [--tolerance MS] FILE|FOLDER...
 *
 * A line for each script that fails, "FILE:LINE: expected ..., got ...", then "N passed, N failed".
 * Status 1 if any failed.
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
	bool parse_only, verbose;
	unsigned passed, failed;
};

static void file_run(struct drill *d, const char *path)
{
	struct script s;
	char text[RUN_TEXT] = "";
	struct err err = {.text = ""};
	int e = script_read(&s, path, &err);

	if (d->verbose)
		printf("-- %s\n", path);
	if (e)
		printf("%s\n", err.text);
	else if (!d->parse_only && (e = script_run(&s, &d->opt, text)))
		printf("%s\n", text);
	*(e ? &d->failed : &d->passed) += 1;
	if (s.store)
		script_free(&s);
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
	fputs("usage: drill [-v] [--parse] [--lax] [--seed N] [--tolerance MS] FILE|FOLDER...\n"
	      "  -v          print every event as it happens\n"
	      "  --parse     only read the scripts\n"
	      "  --lax       segments after the last expected one do not matter\n"
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
			d.verbose = true;
		else if (!strcmp(argv[i], "--parse"))
			d.parse_only = true;
		else if (!strcmp(argv[i], "--lax"))
			d.opt.lax = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			d.opt.seed = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--tolerance") && i + 1 < argc)
			d.opt.tolerance = atoll(argv[++i]) * NSEC_PER_MSEC;
		else
			return usage();
	}
	if (i == argc)
		return usage();
	d.opt.trace = d.verbose ? stdout : NULL;
	for (; i < argc; i++)
		path_run(&d, argv[i], true);
	printf("%u passed, %u failed\n", d.passed, d.failed);
	return d.failed != 0;
}
