/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_svg: script, picture and complaints are memory files, so that neither side can wait for
 * the other. What gnuplot writes is rewritten in one pass: a table of what begins where, and what is
 * to stand there instead.
 */
#include "app/report_svg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/report_out.h"

#define PLOT_SECONDS 20
#define SVG_MAX      (16 << 20)

/* the child */

int svg_gnuplot_check(struct err *err)
{
	const char *path = getenv("PATH");
	char file[4096];

	for (const char *p = path ? path : "/usr/bin:/bin", *end; p; p = *end ? end + 1 : NULL) {
		end = strchrnul(p, ':');
		snprintf(file, sizeof(file), "%.*s/gnuplot", (int)(end - p), p);
		if (!access(file, X_OK))
			return 0;
	}
	return err_set(err, ENOENT,
		"gnuplot draws the plots and is not in PATH; install the package gnuplot-nox");
}

static _Noreturn void child_main(const int fd[3])
{
	struct rlimit cpu = {PLOT_SECONDS, PLOT_SECONDS}, size = {SVG_MAX, SVG_MAX};

	for (int i = 0; i < 3; i++)
		dup2(fd[i], i);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_FSIZE, &size);
	execlp("gnuplot", "gnuplot", "-d", (char *)NULL);
	_exit(127);
}

static char *file_text(int fd)
{
	struct stat st;
	char *text;
	size_t len = 0;

	if (fstat(fd, &st) || st.st_size > SVG_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	while (text && len < (size_t)st.st_size) {
		ssize_t n = pread(fd, text + len, (size_t)st.st_size - len, (off_t)len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (text)
		text[len] = 0;
	return text;
}

/* The line of its complaint that says what is wrong: the last one with words. */
static int complaint(int fd, int status, struct err *err)
{
	char *text = file_text(fd), *line = text, *last = NULL, *save = NULL;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		if (strlen(line) > 3)
			last = line;
	}
	err_set(err, EIO, "gnuplot ended with %s %d: %.160s",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), last ? last : "");
	free(text);
	return -EIO;
}

static bool write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

static int draw_with(const int fd[3], char **svg, struct err *err)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return err_set(err, errno, "cannot start gnuplot: %s", strerror(errno));
	if (!pid)
		child_main(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return svg_gnuplot_check(err) ?: err_set(err, EIO, "cannot start gnuplot");
	if (status)
		return complaint(fd[2], status, err);
	*svg = file_text(fd[1]);
	if (!*svg || !strstr(*svg, "<g id=\"gnuplot_canvas\">")) {
		free(*svg);
		*svg = NULL;
		return err_set(err, EIO, "gnuplot drew nothing; it needs its svg terminal");
	}
	return 0;
}

int svg_draw(const char *script, size_t len, char **svg, struct err *err)
{
	int fd[3] = {-1, -1, -1}, r = 0;

	*svg = NULL;
	for (unsigned i = 0; i < 3; i++) {
		fd[i] = memfd_create("weft-plot", MFD_CLOEXEC);
		if (fd[i] < 0)
			r = err_set(err, errno, "cannot make a memory file: %s", strerror(errno));
	}
	if (!r && (!write_all(fd[0], script, len) || lseek(fd[0], 0, SEEK_SET) < 0))
		r = err_set(err, errno, "cannot write a memory file: %s", strerror(errno));
	if (!r)
		r = draw_with(fd, svg, err);
	for (unsigned i = 0; i < 3; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	return r;
}

/* the picture */

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* Behind `end`, or at the end of all. */
static const char *behind(const char *s, const char *end)
{
	const char *at = strstr(s, end);

	return at ? at + strlen(end) : s + strlen(s);
}

/* A group in which nothing is drawn: what follows it, else NULL. */
static const char *empty_group(const char *s)
{
	const char *at;

	if (!starts(s, "<g fill=\"none\""))
		return NULL;
	at = behind(s, ">");
	while (isspace((unsigned char)*at))
		at++;
	return starts(at, "</g>") ? at + 4 : NULL;
}

/* rgb(  3,   3,   3) and #030303 are the page's colour 3: its number, and what follows. */
static unsigned page_colour(const char *s, const char **next)
{
	unsigned n = 0;

	if (starts(s, "rgb(")) { /* with blanks for lines, without for letters */
		const char *at = s + 4 + strspn(s + 4, " ");

		if (isdigit((unsigned char)*at) && at[1] == ',') {
			n = (unsigned)(*at - '0');
			*next = behind(s, ")");
		}
	} else if (starts(s, "#0") && isdigit((unsigned char)s[2]) && s[3] == '0' && s[4] == s[2] &&
		   s[5] == '0' && s[6] == s[2]) {
		n = (unsigned)(s[2] - '0');
		*next = s + 7;
	}
	return n;
}

/* What is left out: where it ends, else NULL. */
static const char *left_out(const char *s)
{
	const char *next = empty_group(s);

	if (next)
		return next;
	if (starts(s, "<filter "))
		return behind(s, "</filter>");
	if (starts(s, "<title>gnuplot_"))
		return behind(s, "</title>");
	if (starts(s, " id=\"gnuplot_"))
		return behind(s + 5, "\"");
	if (starts(s, " font-family=\"sans\""))
		return behind(s + 14, "\"");
	if (*s == '\t' || (*s == '\n' && s[1] == '\n'))
		return s + 1;
	return NULL;
}

void svg_embed(FILE *f, const char *svg, unsigned id, const char *title, const char *desc)
{
	const char *box = strstr(svg, "viewBox=\""), *s = strstr(svg, "<g id=\"gnuplot_canvas\">");
	const char *next;
	unsigned n;

	box = box ? box + 9 : "0 0 1 1\"";
	fprintf(f, "<svg viewBox=\"%.*s\" role=\"img\" aria-labelledby=\"p%u-t p%u-d\" ",
		(int)strspn(box, "0123456789. "), box, id, id);
	html(f, "xmlns:xlink=\"http://www.w3.org/1999/xlink\"><title id=\"p%d-t\">%t</title>",
		(int)id, title);
	html(f, "<desc id=\"p%d-d\">%t</desc>\n", (int)id, desc);
	while (s && *s && !starts(s, "</svg>")) {
		next = left_out(s);
		if (next) {
			s = next;
		} else if (starts(s, "gpPt") || starts(s, "gpDot")) {
			fprintf(f, "p%u-gp", id);
			s += 2;
		} else if (starts(s, "'black'") || starts(s, "\"black\"")) {
			fprintf(f, "%ccurrentColor%c", *s, *s);
			s += 7;
		} else if ((n = page_colour(s, &next))) {
			fprintf(f, "var(--p%u)", n);
			s = next;
		} else {
			fputc(*s++, f);
		}
	}
	fputs("</svg>\n", f);
}
