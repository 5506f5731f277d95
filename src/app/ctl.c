/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl: the server side. A client is in one of three states:
 *
 *	ASKING ---line complete---> [command runs] ---> TELLING ---all sent---> gone
 *	                                 \---CMD_LATER---> WAITING ---link, frames, time, end---^
 *
 * In WAITING only the peer's going is listened for. Each client has one timer; it bounds ASKING and
 * TELLING, and is wait's own time in WAITING.
 */
#include "app/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/trace_text.h"

enum ctl_state { ASKING, WAITING, TELLING };

struct ctl_client {
	struct loop_fd fd;
	struct loop_timer timer;
	struct ctl *ctl;
	enum ctl_state state;
	char *in, *out; /* in: CTL_REQUEST bytes while ASKING */
	size_t in_len, out_len, out_done;
	char wait_port[NAME_LEN]; /* WAITING for its link */
	nsec_t wait_time;
	bool stop;           /* WAITING for the end */
	struct trace *trace; /* WAITING for its frames; NULL: not */
	unsigned trace_want;
	bool as_json;
	TAILQ_ENTRY(ctl_client) entry;
};

#define CONTAINER(ptr, type, field) ((type *)(void *)((char *)(ptr)-offsetof(type, field)))

static void client_free(struct ctl_client *c)
{
	struct loop *loop = &c->ctl->net->loop;
	int fd = c->fd.fd;

	trace_free(c->trace);
	loop_del(loop, &c->fd);
	close(fd);
	loop_timer_release(loop, &c->timer);
	TAILQ_REMOVE(&c->ctl->clients, c, entry);
	c->ctl->nclients--;
	free(c->in);
	free(c->out);
	free(c);
}

/* Send what is left; the client is gone afterwards if that was all, or if it cannot be told. */
static void client_send(struct ctl_client *c)
{
	struct loop *loop = &c->ctl->net->loop;

	while (c->out_done < c->out_len) {
		ssize_t n = send(c->fd.fd, c->out + c->out_done, c->out_len - c->out_done,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_mod(loop, &c->fd, EPOLLOUT);
			return;
		}
		if (n < 0)
			break;
		c->out_done += (size_t)n;
	}
	client_free(c);
}

/* Text that was cut in the middle of a character, or names a file that is no UTF-8, is told all the same. */
static json_t *text_json(const char *text)
{
	json_t *o = json_string(text);
	char *ascii;

	if (o)
		return o;
	ascii = strdup(text);
	for (char *c = ascii; c && *c; c++) {
		if (*c & 0x80)
			*c = '?';
	}
	o = json_string(ascii ? ascii : "");
	free(ascii);
	return o;
}

static void client_reply(struct ctl_client *c, int status, const char *out, const char *err)
{
	json_t *o = json_object();
	char *line;

	json_object_set_new(o, "status", json_integer(status));
	json_object_set_new(o, "out", text_json(out));
	json_object_set_new(o, "err", text_json(err));
	line = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!line) {
		client_free(c);
		return;
	}
	c->out_len = strlen(line);
	line[c->out_len++] = '\n'; /* in place of the NUL: sent by length */
	c->out = line;
	c->state = TELLING;
	loop_timer_set(&c->ctl->net->loop, &c->timer, loop_now(&c->ctl->net->loop) + CTL_PATIENCE);
	client_send(c);
}

static void client_refuse(struct ctl_client *c, const char *why)
{
	client_reply(c, CMD_MISTAKE, "", why);
}

static void client_exec(struct ctl_client *c, int argc, const char *const *argv, const char *cwd)
{
	struct cmd_call call = {
		.net_name = c->ctl->net->name,
		.cwd = cwd,
		.ctl = c->ctl,
		.net = c->ctl->net,
		.client = c,
	};
	char *out = NULL;
	size_t len;
	int status;

	call.out = open_memstream(&out, &len);
	if (!call.out) {
		client_refuse(c, "the network has no memory");
		return;
	}
	status = cmd_exec(&call, argc, argv);
	fclose(call.out);
	if (status != CMD_LATER)
		client_reply(c, status, out, call.err.text);
	free(out);
}

/* The request's words, borrowed from the JSON; how many, or -1: not a request. */
static int request_words(const json_t *request, const char *words[], const char **cwd)
{
	const json_t *argv = json_object_get(request, "argv"), *word;
	size_t i, n = json_array_size(argv);

	if (!n || n > CMD_WORDS)
		return -1;
	json_array_foreach(argv, i, word)
	{
		words[i] = json_string_value(word);
		if (!words[i])
			return -1;
	}
	*cwd = json_string_value(json_object_get(request, "cwd"));
	if (!*cwd || **cwd != '/')
		*cwd = "/";
	return (int)n;
}

static void client_line(struct ctl_client *c, size_t len)
{
	const char *words[CMD_WORDS], *cwd;
	json_t *request = json_loadb(c->in, len, JSON_REJECT_DUPLICATES, NULL);
	int n = request_words(request, words, &cwd);

	if (n < 0)
		client_refuse(c, "a request is one line of JSON: {\"argv\": [\"show\"]}");
	else
		client_exec(c, n, words, cwd);
	json_decref(request);
}

static void client_read(struct ctl_client *c)
{
	for (;;) {
		size_t room = CTL_REQUEST - c->in_len;
		char *end;
		ssize_t n;

		if (!room) {
			client_refuse(c, "the request is longer than 64 KiB");
			return;
		}
		n = recv(c->fd.fd, c->in + c->in_len, room, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			client_free(c);
			return;
		}
		end = memchr(c->in + c->in_len, '\n', (size_t)n);
		c->in_len += (size_t)n;
		if (end) {
			client_line(c, (size_t)(end - c->in));
			return;
		}
	}
}

static void client_ready(struct loop_fd *f, uint32_t epoll_events)
{
	struct ctl_client *c = CONTAINER(f, struct ctl_client, fd);

	if (c->state == TELLING)
		client_send(c);
	else if (c->state == ASKING)
		client_read(c);
	else if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		client_free(c);
}

static void client_wait_over(struct ctl_client *c)
{
	struct net_port *p = net_find(c->ctl->net, c->wait_port, NULL);
	char text[ERR_TEXT];

	snprintf(text, sizeof(text), "port '%s' has no link after %lld s: %s", c->wait_port,
		(long long)(c->wait_time / NSEC_PER_SEC), p ? net_port_missing(p) : "it is gone");
	client_reply(c, CMD_FAILED, "", text);
}

/* The trace ends with what it has; `why`: it is less than was asked for. */
static void client_trace_over(struct ctl_client *c, const char *why)
{
	unsigned n = trace_count(c->trace);
	char note[ERR_TEXT] = "", *out = NULL;
	FILE *f;
	size_t len;

	f = open_memstream(&out, &len);
	if (f) {
		trace_text(f, c->trace, c->wait_port, c->as_json);
		fclose(f);
	}
	trace_free(c->trace);
	c->trace = NULL;
	if (!f)
		snprintf(note, sizeof(note), "the network has no memory");
	else if (why && n < c->trace_want)
		snprintf(note, sizeof(note), "trace: %u of %u frames of port '%s': %s", n,
			c->trace_want, c->wait_port, why);
	client_reply(c, n && f ? CMD_DONE : CMD_FAILED, out ? out : "", note);
	free(out);
}

static void client_traced(void *ctx)
{
	client_trace_over(ctx, NULL);
}

static void client_expired(struct loop_timer *t)
{
	struct ctl_client *c = CONTAINER(t, struct ctl_client, timer);

	if (c->trace)
		client_trace_over(c, "the time is over");
	else if (c->state == WAITING)
		client_wait_over(c);
	else
		client_free(c);
}

static void client_wait(struct ctl_client *c)
{
	c->state = WAITING;
	loop_mod(&c->ctl->net->loop, &c->fd, EPOLLRDHUP);
	loop_timer_cancel(&c->ctl->net->loop, &c->timer);
}

void ctl_later_link(struct ctl_client *c, const char *port, nsec_t timeout)
{
	struct loop *loop = &c->ctl->net->loop;

	client_wait(c);
	snprintf(c->wait_port, sizeof(c->wait_port), "%s", port);
	c->wait_time = timeout;
	if (timeout != NSEC_NEVER)
		loop_timer_set(loop, &c->timer, loop_now(loop) + timeout);
}

int ctl_later_trace(struct ctl_client *c, struct trace_config *conf, bool as_json, nsec_t timeout,
	struct err *err)
{
	struct loop *loop = &c->ctl->net->loop;
	int r;

	conf->done = client_traced;
	conf->ctx = c;
	r = trace_new(&c->trace, conf, err);
	if (r)
		return r;
	client_wait(c);
	snprintf(c->wait_port, sizeof(c->wait_port), "%s", conf->port->name);
	c->trace_want = conf->count;
	c->as_json = as_json;
	loop_timer_set(loop, &c->timer, loop_now(loop) + timeout);
	return 0;
}

void ctl_later_stop(struct ctl_client *c)
{
	client_wait(c);
	c->stop = true;
	c->ctl->stop(c->ctl->ctx);
}

static void ctl_on_port(void *ctx, struct net_port *p, bool gone)
{
	struct ctl *ctl = ctx;
	struct ctl_client *c, *next;
	char text[ERR_TEXT];

	for (c = TAILQ_FIRST(&ctl->clients); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->trace && gone) {
			snprintf(text, sizeof(text), "port '%s' was taken out", p->port->name);
			client_trace_over(c, text);
			continue;
		}
		if (c->state != WAITING || c->trace || strcmp(c->wait_port, p->port->name) != 0)
			continue;
		if (gone) {
			snprintf(text, sizeof(text), "port '%s' was taken out", p->port->name);
			client_reply(c, CMD_FAILED, "", text);
		} else if (p->port->link) {
			client_reply(c, CMD_DONE, "", "");
		}
	}
}

int ctl_serve(struct ctl *ctl, int fd)
{
	struct ctl_client *c = calloc(1, sizeof(*c));
	struct loop *loop = &ctl->net->loop;
	int r = -ENOMEM;

	if (!c)
		goto close_fd;
	c->ctl = ctl;
	c->fd.ready = client_ready;
	c->in = malloc(CTL_REQUEST);
	if (!c->in || loop_timer_reserve(loop, &c->timer, client_expired))
		goto free_client;
	r = loop_add(loop, &c->fd, fd, EPOLLIN);
	if (r)
		goto release_timer;
	loop_timer_set(loop, &c->timer, loop_now(loop) + CTL_PATIENCE);
	TAILQ_INSERT_TAIL(&ctl->clients, c, entry);
	ctl->nclients++;
	if (ctl->nclients > CTL_CLIENTS)
		client_refuse(c, "the network serves 32 control clients already; try again later");
	return 0;
release_timer:
	loop_timer_release(loop, &c->timer);
free_client:
	free(c->in);
	free(c);
close_fd:
	close(fd);
	return r;
}

static void ctl_accept(struct loop_fd *f, uint32_t epoll_events)
{
	struct ctl *ctl = CONTAINER(f, struct ctl, listener);
	struct ctl_client *oldest;
	int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)epoll_events;
	/* Out of descriptors: make room, or the listener would stay ready and the loop spin. */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		oldest = TAILQ_FIRST(&ctl->clients);
		if (oldest)
			client_free(oldest);
		return;
	}
	/* Refused ones take a place only until they have read why; beyond that nobody is told. */
	if (fd >= 0 && ctl->nclients >= 2 * CTL_CLIENTS)
		close(fd);
	else if (fd >= 0)
		ctl_serve(ctl, fd);
}

static int ctl_listen(const struct ctl *ctl, struct err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	memcpy(sa.sun_path, ctl->path, sizeof(sa.sun_path));
	unlink(ctl->path);
	if (!bind(fd, (struct sockaddr *)&sa, sizeof(sa)) && !chmod(ctl->path, 0600) &&
		!listen(fd, CTL_CLIENTS))
		return fd;
	err_set(err, errno, "cannot listen at %s: %s", ctl->path, strerror(errno));
	close(fd);
	return -EIO;
}

static void ctl_init(struct ctl *ctl, struct net *net)
{
	memset(ctl, 0, sizeof(*ctl));
	ctl->net = net;
	ctl->listener.fd = -1;
	ctl->listener.ready = ctl_accept;
	TAILQ_INIT(&ctl->clients);
	net->on_port = ctl_on_port;
	net->on_port_ctx = ctl;
}

int ctl_open(struct ctl *ctl, struct net *net, const char *path, struct err *err)
{
	int fd, r;

	ctl_init(ctl, net);
	if (!path) /* only ctl_serve */
		return 0;
	if (strlen(path) >= sizeof(ctl->path))
		return err_set(err, ENAMETOOLONG,
			"the control socket's path %.120s is longer than %zu "
			"bytes; set XDG_RUNTIME_DIR to a shorter folder",
			path, sizeof(ctl->path) - 1);
	strcpy(ctl->path, path);
	fd = ctl_listen(ctl, err);
	if (fd < 0)
		return fd;
	r = loop_add(&net->loop, &ctl->listener, fd, EPOLLIN);
	if (r)
		close(fd);
	return r;
}

void ctl_close(struct ctl *ctl)
{
	int fd = ctl->listener.fd;

	if (fd < 0)
		return;
	loop_del(&ctl->net->loop, &ctl->listener);
	close(fd);
	unlink(ctl->path);
}

void ctl_finish(struct ctl *ctl)
{
	struct ctl_client *c, *next;

	for (c = TAILQ_FIRST(&ctl->clients); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->state != WAITING)
			continue;
		if (c->stop)
			client_reply(c, CMD_DONE, "", "");
		else
			client_reply(c, CMD_FAILED, "", "the network ended");
	}
	for (c = TAILQ_FIRST(&ctl->clients); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		client_free(c);
	}
	ctl->net->on_port = NULL;
}
