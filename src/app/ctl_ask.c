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

/* A socket connected to the network's, or -errno. */
static int net_connect(const char *net, char path[RUNDIR_PATH + 16], struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char dir[RUNDIR_PATH];
	int fd, e;

	if (rundir_path(dir, net, false, err))
		return -EINVAL;
	snprintf(path, RUNDIR_PATH + 16, "%s/control", dir);
	if (strlen(path) >= sizeof(sa.sun_path))
		return err_set(err, ENAMETOOLONG,
			"the control socket's path is too long; set XDG_RUNTIME_DIR to a shorter "
			"folder");
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	e = errno;
	close(fd);
	return err_set(err, e, "cannot reach network '%s' at %s: %s", net, path, strerror(e));
}

struct running {
	char text[200];
	unsigned n;
	FILE *out; /* NULL: into `text` */
};

static void running_add(void *ctx, const char *net)
{
	struct running *r = ctx;
	char path[RUNDIR_PATH + 16];
	size_t at = strlen(r->text);
	int fd = net_name_check(net, NULL) ? -1 : net_connect(net, path, NULL);

	if (fd < 0)
		return;
	close(fd);
	if (r->out)
		fprintf(r->out, "%s\n", net);
	else
		snprintf(r->text + at, sizeof(r->text) - at, "%s%s", r->n ? ", " : "", net);
	r->n++;
}

int word_ls(struct cmd_call *call)
{
	struct running r = {.out = call->out};

	rundir_each(running_add, &r);
	return CMD_DONE;
}

static int ask_connect(const char *net, struct err *err)
{
	struct running others = {""};
	char path[RUNDIR_PATH + 16];
	int fd = net_connect(net, path, err);

	if (fd >= 0 || (fd != -ENOENT && fd != -ECONNREFUSED))
		return fd;
	rundir_each(running_add, &others);
	return err_set(err, ENOENT,
		"network '%s' is not running; %s%s%sstart it: weft run -n %s PORT...", net,
		others.n ? "running: " : "", others.text, others.n ? "; or " : "", net);
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
