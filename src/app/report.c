/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report: the word `weft report`: a result file in, a page or Markdown out. The file may be anything;
 * it is read, checked as a whole (report_check.c), and only then shown. The output appears under its
 * name when it is whole: a failure leaves what was there.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/report_check.h"
#include "app/report_page.h"

#define FILE_MAX (64 << 20)

enum { OPT_OUT, OPT_MARKDOWN, OPT_ONLY };

static int report_open(const char *path, FILE **f, struct err *err)
{
	struct stat st;

	*f = fopen(path, "re");
	if (!*f)
		return err_set(err, errno,
			"report: %.120s: %s; give the file that `weft bench "
			"tables --json` wrote",
			path, strerror(errno));
	if (!fstat(fileno(*f), &st) && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX)
		return 0;
	fclose(*f);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
			"report: %.120s is no file; give the file that `weft bench tables "
			"--json` wrote",
			path);
	return err_set(err, EFBIG, "report: %.120s has %lld MiB; a result has at most %d", path,
		(long long)(st.st_size >> 20), FILE_MAX >> 20);
}

static int report_load(const char *path, json_t **root, struct err *err)
{
	json_error_t at;
	struct err why;
	FILE *f;
	int r = report_open(path, &f, err);

	*root = NULL;
	if (r)
		return r;
	*root = json_loadf(f, JSON_REJECT_DUPLICATES, &at);
	fclose(f);
	if (!*root)
		return err_set(err, EINVAL,
			"report: %.120s is not whole, or no JSON: line %d: %.80s; give the file "
			"that `weft bench tables --json` wrote",
			path, at.line, at.text);
	r = report_check(*root, &why);
	if (r) {
		json_decref(*root);
		*root = NULL;
		return err_set(err, -r, "report: %.100s: %s", path, why.text);
	}
	return 0;
}

static int report_make(struct cmd_call *call, FILE *f, const json_t *root, struct err *err)
{
	if (call->opt[OPT_MARKDOWN])
		return report_markdown(f, root, call->opt[OPT_ONLY], err);
	return report_page(f, root, err);
}

/* Into a file beside it first. */
static int report_file(struct cmd_call *call, const char *path, const json_t *root)
{
	size_t size = strlen(path) + 8;
	char *work = malloc(size);
	FILE *f = NULL;
	int fd, r;

	if (!work)
		return err_set(&call->err, ENOMEM, "no memory");
	snprintf(work, size, "%s.XXXXXX", path);
	fd = mkostemp(work, O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		r = err_set(&call->err, errno, "report: cannot write %.120s: %s", path,
			strerror(errno));
		goto free_work;
	}
	r = report_make(call, f, root, &call->err);
	if (!r && (fflush(f) || ferror(f) || fchmod(fd, 0644) || rename(work, path)))
		r = err_set(&call->err, errno, "report: cannot write %.120s: %s", path,
			strerror(errno));
	if (r)
		unlink(work);
	fclose(f);
free_work:
	free(work);
	return r;
}

/* On standard output: nothing of it, if it does not become whole. */
static int report_stream(struct cmd_call *call, const json_t *root)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int r;

	if (!f)
		return err_set(&call->err, ENOMEM, "no memory");
	r = report_make(call, f, root, &call->err);
	fclose(f);
	if (!r)
		fwrite(text, 1, len, call->out);
	free(text);
	return r;
}

int word_report(struct cmd_call *call)
{
	const char *out = call->opt[OPT_OUT];
	json_t *root;
	int r;

	if (call->opt[OPT_ONLY] && !call->opt[OPT_MARKDOWN]) {
		err_set(&call->err, EINVAL,
			"report: --only %.40s is for --markdown; the page has all experiments",
			call->opt[OPT_ONLY]);
		return CMD_MISTAKE;
	}
	if (report_load(call->arg[0], &root, &call->err))
		return CMD_MISTAKE;
	r = out && strcmp(out, "-") != 0 ? report_file(call, out, root) : report_stream(call, root);
	json_decref(root);
	return r ? CMD_MISTAKE : CMD_DONE;
}
