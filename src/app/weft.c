/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft: the public API: a thin face over net.
 */
#include "weft/weft.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/show.h"
#include "app/weft_int.h"
#include "base/sigbus.h"

_Static_assert(WEFT_ERR == ERR_TEXT, "one length of error texts");

const char *weft_version(void)
{
	return WEFT_VERSION;
}

int weft_tell(int r, const struct err *e, char *err)
{
	if (r && err)
		memcpy(err, e->text, WEFT_ERR);
	return r;
}

int weft_net_new(struct weft_net **out, const char *name, char *err)
{
	struct weft_net *w = calloc(1, sizeof(*w));
	struct net_config config;
	struct err e = {""};
	int r;

	if (!w)
		return weft_tell(err_set(&e, ENOMEM, "no memory"), &e, err);
	net_config_init(&config, name);
	r = net_init(&w->net, &config, &e);
	if (r)
		free(w);
	else
		*out = w;
	return weft_tell(r, &e, err);
}

void weft_net_free(struct weft_net *w)
{
	if (!w)
		return;
	net_fini(&w->net);
	free(w);
}

int weft_net_add(struct weft_net *w, const char *port, char *err)
{
	char cwd[4096];
	struct err e = {""};

	return weft_tell(net_add(&w->net, port, getcwd(cwd, sizeof(cwd)) ? cwd : "/", &e), &e, err);
}

int weft_net_del(struct weft_net *w, const char *port_name, char *err)
{
	struct err e = {""};

	return weft_tell(net_del(&w->net, port_name, &e), &e, err);
}

int weft_net_fd(const struct weft_net *w)
{
	return w->net.loop.epfd;
}

int64_t weft_loop_timeout(const struct loop *loop)
{
	nsec_t at = loop_deadline(loop), now;

	if (!TAILQ_EMPTY(&loop->tasks))
		return 0;
	if (at == NSEC_NEVER)
		return -1;
	now = clock_now();
	return at > now ? at - now : 0;
}

int64_t weft_net_timeout_ns(const struct weft_net *w)
{
	return weft_loop_timeout(&w->net.loop);
}

int weft_net_dispatch(struct weft_net *w, int wait)
{
	return loop_dispatch(&w->net.loop, wait != 0);
}

char *weft_net_show(struct weft_net *w, const char *what)
{
	const struct show_topic *topic = what ? show_topic_find(what) : NULL;
	json_t *o;
	char *text;

	if (what && !topic)
		return NULL;
	o = topic ? topic->make(&w->net) : show_all(&w->net);
	text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(o);
	return text;
}

static void weft_sink(void *ctx, enum log_level level, const char *tag, const char *text)
{
	struct weft_net *w = ctx;

	w->sink(w->ctx, (int)level, tag, text);
}

void weft_net_log(struct weft_net *w, int level,
	void (*sink)(void *ctx, int level, const char *tag, const char *text), void *ctx)
{
	w->sink = sink;
	w->ctx = ctx;
	log_init(&w->net.log, level < LOG_ERROR ? LOG_ERROR : (enum log_level)level,
		sink ? weft_sink : NULL, w);
}

int weft_sigbus_install(void)
{
	return sigbus_install();
}
