/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay: feed files, or all files of folders, to a fuzz target, once each. So that what fuzzing
 * has found stays found, under any compiler. Names each file before it is run: the last name
 * printed is the one that crashed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static unsigned n_run;

static int file_run(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "rb");

	if (!f || fstat(fileno(f), &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}

	/* a block of exactly that length, so that a sanitizer sees one byte too many */
	size_t len = (size_t)st.st_size;
	uint8_t *data = malloc(len ? len : 1);
	int bad = !data || fread(data, 1, len, f) != len;

	fclose(f);
	if (!bad) {
		printf("%s (%zu bytes)\n", path, len);
		fflush(stdout);
		LLVMFuzzerTestOneInput(data, len);
		n_run++;
	}
	free(data);
	return bad;
}

static int folder_run(const char *path)
{
	DIR *d = opendir(path);
	int bad = 0;

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	for (struct dirent *e; (e = readdir(d));) {
		char name[4096];

		if (e->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(name, sizeof(name), "%s/%s", path, e->d_name) < sizeof(name))
			bad |= file_run(name);
	}
	closedir(d);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
			bad = 1;
		} else {
			bad |= S_ISDIR(st.st_mode) ? folder_run(argv[i]) : file_run(argv[i]);
		}
	}
	printf("%u inputs\n", n_run);
	return bad || !n_run;
}
