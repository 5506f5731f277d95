/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_ask: the asking side of the control socket, blocking: a command waits for its answer.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/ctl.h"

static int ask_connect(const char *net, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char dir[RUNDIR_PATH];
	int fd, n;

	if (rundir_path(dir, net, false, err))
		return -EINVAL;
	n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/control", dir);
	if (n >= (int)sizeof(sa.sun_path))
		return err_set(err, ENAMETOOLONG,
			"the control socket's path is too long; set XDG_RUNTIME_DIR to a shorter "
			"folder");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	if (errno == ENOENT || errno == ECONNREFUSED)
		err_set(err, ENOENT,
			"network '%s' is not running; start it: weft run -n %s PORT...", net, net);
	else
		err_set(err, errno, "cannot reach network '%s' at %s: %s", net, sa.sun_path,
			strerror(errno));
	close(fd);
	return -ENOENT;
}

/* JSON has no other text. */
static int ask_check(int argc, const char *const *argv, struct err *err)
{
	for (int i = 0; i < argc; i++) {
		json_t *word = json_string(argv[i]);

		if (!word)
			return err_set(err, EINVAL,
				"'%.100s' is not UTF-8 text, which the control socket needs; "
				"rename it",
				argv[i]);
		json_decref(word);
	}
	return 0;
}

static int ask_send(int fd, int argc, const char *const *argv, const char *cwd)
{
	json_t *request = json_object(), *words = json_array();
	FILE *f = fdopen(dup(fd), "w");
	int r = -1;

	for (int i = 0; i < argc; i++)
		json_array_append_new(words, json_string_nocheck(argv[i]));
	json_object_set_new(request, "argv", words);
	json_object_set_new_nocheck(request, "cwd", json_string_nocheck(cwd));
	if (f) {
		json_dumpf(request, f, JSON_COMPACT);
		fputc('\n', f);
		r = fclose(f);
	}
	json_decref(request);
	return r;
}

int ctl_ask(const char *net, int argc, const char *const *argv, const char *cwd, FILE *out,
	struct err *err)
{
	int fd = ask_check(argc, argv, err) ? -1 : ask_connect(net, err), status = CMD_FAILED;
	const char *text;
	json_t *reply;

	if (fd < 0)
		return CMD_MISTAKE;
	ask_send(fd, argc, argv, cwd); /* one that is refused has an answer all the same */
	reply = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
	close(fd);
	if (!json_is_integer(json_object_get(reply, "status"))) {
		err_set(err, EPIPE, "network '%s' ended without an answer", net);
		json_decref(reply);
		return CMD_FAILED;
	}
	status = (int)json_integer_value(json_object_get(reply, "status"));
	text = json_string_value(json_object_get(reply, "out"));
	fputs(text ? text : "", out);
	text = json_string_value(json_object_get(reply, "err"));
	err_set(err, EINVAL, "%s", text ? text : "");
	json_decref(reply);
	return status;
}
