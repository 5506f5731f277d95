/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_call: the program on top of the host: calls by name, from a table. Bytes written are a
 * pattern of their place in the stream, bytes read are compared with it.
 */
#include "drill_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call_in {
	struct host *h;
	const struct call *call;
	struct host_fd *fd; /* of the first argument; NULL: not open */
	char *detail;
	nsec_t now;
};

#define DETAIL 120

static const char *arg(const struct call_in *in, unsigned i)
{
	return i < in->call->nargs ? in->call->arg[i] : "";
}

/* A number, alone or as [N]. */
static long arg_number(const struct call_in *in, unsigned i)
{
	const char *t = arg(in, i);

	return strtol(*t == '[' ? t + 1 : t, NULL, 0);
}

static int64_t fd_new(struct host *h, struct host_fd **fd)
{
	for (int i = 3; i < HOST_FDS; i++) {
		if (h->fd[i].kind != FD_NONE)
			continue;
		*fd = &h->fd[i];
		**fd = (struct host_fd){.kind = FD_NEW, .flags = O_RDWR, .linger = -1};
		return i;
	}
	return -EMFILE;
}

static int64_t call_socket(struct call_in *in)
{
	struct host_fd *fd;
	int64_t n = fd_new(in->h, &fd);

	if (n < 0)
		return n;
	fd->tcp = tcp_new(in->h->tcp);
	return fd->tcp ? n : -ENOBUFS;
}

static int64_t call_bind(struct call_in *in)
{
	in->fd->port = HOST_PORT;
	return 0;
}

static int64_t call_listen(struct call_in *in)
{
	struct host_fd *fd = in->fd;
	int r;

	r = tcp_listen(in->h->tcp, &in->h->laddr, fd->port, (unsigned)arg_number(in, 1), fd,
		&fd->listener);
	if (r)
		return r;
	tcp_close(fd->tcp, in->now); /* it was a connection that could have been */
	fd->tcp = NULL;
	fd->kind = FD_LISTEN;
	return 0;
}

static int64_t call_accept(struct call_in *in)
{
	struct host_fd *fd;
	struct tcp *t;
	int64_t n;

	if (in->fd->kind != FD_LISTEN)
		return -EINVAL;
	t = tcp_accept(in->fd->listener);
	if (!t)
		return -EAGAIN;
	n = fd_new(in->h, &fd);
	if (n < 0)
		return n;
	fd->kind = FD_CONN;
	fd->tcp = t;
	return n;
}

static int64_t call_connect(struct call_in *in)
{
	struct host *h = in->h;
	struct tcp_tuple t = {.laddr = h->laddr, .raddr = h->raddr};
	int r;

	if (in->fd->kind == FD_CONN) { /* once more: how is it? */
		unsigned ready = tcp_ready(in->fd->tcp);

		if (ready & TCP_EV_ERROR)
			return -tcp_error(in->fd->tcp);
		return ready & TCP_EV_CONNECTED ? -EISCONN : -EALREADY;
	}
	t.lport = in->fd->port;
	t.rport = (uint16_t)(HOST_PORT + h->connects++);
	r = tcp_connect(in->fd->tcp, &t, 0, in->now);
	if (r)
		return r;
	in->fd->kind = FD_CONN;
	return -EINPROGRESS;
}

static int64_t call_recv(struct call_in *in)
{
	size_t n = (size_t)arg_number(in, 2);
	struct iovec iov = {in->h->buf, n < HOST_BUF ? n : HOST_BUF};
	bool peek = strstr(arg(in, 3), "MSG_PEEK") != NULL;
	ssize_t got;

	if (in->fd->kind == FD_LISTEN)
		return -ENOTCONN;
	got = tcp_recv(in->fd->tcp, &iov, 1, peek ? TCP_PEEK : 0, in->now);
	for (ssize_t i = 0; i < got; i++) {
		if (in->h->buf[i] == host_byte(in->fd->read + (uint64_t)i))
			continue;
		snprintf(in->detail, DETAIL,
			"byte %zd of what was received is not what was sent there", i);
		break;
	}
	if (got > 0 && !peek)
		in->fd->read += (uint64_t)got;
	return got;
}

static int64_t call_send(struct call_in *in)
{
	size_t n = (size_t)arg_number(in, 2);
	bool more = strstr(arg(in, 3), "MSG_MORE") != NULL;
	ssize_t total = 0, r = 0;

	if (in->fd->kind == FD_LISTEN)
		return -ENOTCONN;
	while ((size_t)total < n) {
		size_t part = n - (size_t)total < HOST_BUF ? n - (size_t)total : HOST_BUF;
		struct iovec iov = {in->h->buf, part};

		for (size_t i = 0; i < part; i++)
			in->h->buf[i] = host_byte(in->fd->written + i);
		r = tcp_send(in->fd->tcp, &iov, 1, more ? TCP_MORE : 0, in->now);
		if (r <= 0)
			break;
		total += r;
		in->fd->written += (uint64_t)r;
		if ((size_t)r < part)
			break;
	}
	return total ? total : r;
}

static int64_t call_shutdown(struct call_in *in)
{
	if (in->fd->kind == FD_LISTEN)
		return -ENOTCONN;
	return strcmp(arg(in, 1), "SHUT_RD") == 0 ? 0 : tcp_shutdown_wr(in->fd->tcp, in->now);
}

static int64_t call_close(struct call_in *in)
{
	struct host_fd *fd = in->fd;

	if (fd->kind == FD_LISTEN)
		tcp_unlisten(fd->listener, in->now);
	else if (fd->linger == 0)
		tcp_abort(fd->tcp, in->now);
	else
		tcp_close(fd->tcp, in->now);
	fd->kind = FD_NONE;
	return 0;
}

static int64_t call_fcntl(struct call_in *in)
{
	const char *what = arg(in, 1), *flags = arg(in, 2);

	if (!strcmp(what, "F_GETFL"))
		return in->fd->flags;
	in->fd->flags = O_RDWR | (strstr(flags, "O_NONBLOCK") ? O_NONBLOCK : 0);
	return 0;
}

static int64_t call_getsockopt(struct call_in *in)
{
	const char *want = arg(in, 3);
	int code, have;

	if (strcmp(arg(in, 2), "SO_ERROR") != 0)
		return -ENOPROTOOPT;
	have = in->fd->tcp ? tcp_error(in->fd->tcp) : 0;
	want += *want == '[';
	code = *want == 'E' ? 0 : atoi(want);
	if (*want == 'E') {
		char name[32] = "";

		sscanf(want, "%31[A-Z0-9]", name);
		code = errno_of(name);
	}
	if (code != have)
		snprintf(in->detail, DETAIL, "the option's value is %d (%s)", have,
			have ? errno_word(have) : "none");
	return 0;
}

static const struct sockopt {
	const char *name;
	enum tcp_option option;
} sockopts[] = {
	{"TCP_NODELAY", TCPO_NODELAY},
	{"TCP_CORK", TCPO_CORK},
	{"SO_SNDBUF", TCPO_SNDBUF},
	{"SO_RCVBUF", TCPO_RCVBUF},
	{"SO_KEEPALIVE", TCPO_KEEPALIVE},
	{"TCP_KEEPIDLE", TCPO_KEEPIDLE},
	{"TCP_KEEPINTVL", TCPO_KEEPINTVL},
	{"TCP_KEEPCNT", TCPO_KEEPCNT},
	{"TCP_USER_TIMEOUT", TCPO_USER_TIMEOUT},
	{"TCP_QUICKACK", TCPO_QUICKACK},
	{"TCP_MAXSEG", TCPO_MAXSEG},
};

static int64_t call_setsockopt(struct call_in *in)
{
	const char *name = arg(in, 2);

	if (!strcmp(name, "SO_REUSEADDR"))
		return 0;
	if (!strcmp(name, "SO_LINGER")) { /* {onoff=1, linger=0} */
		const char *sec = strstr(arg(in, 3), "linger=");
		bool on = strstr(arg(in, 3), "onoff=1") != NULL;

		in->fd->linger = on && sec ? atoi(sec + 7) : -1;
		return 0;
	}
	for (unsigned i = 0; i < sizeof(sockopts) / sizeof(sockopts[0]); i++)
		if (!strcmp(sockopts[i].name, name) && in->fd->tcp)
			return tcp_set(in->fd->tcp, sockopts[i].option, (uint32_t)arg_number(in, 3),
				in->now);
	return -ENOPROTOOPT;
}

static const struct call_row {
	const char *name;
	int64_t (*run)(struct call_in *);
} calls[] = {
	{"socket", call_socket},
	{"bind", call_bind},
	{"listen", call_listen},
	{"accept", call_accept},
	{"accept4", call_accept},
	{"connect", call_connect},
	{"read", call_recv},
	{"recv", call_recv},
	{"write", call_send},
	{"send", call_send},
	{"shutdown", call_shutdown},
	{"close", call_close},
	{"fcntl", call_fcntl},
	{"getsockopt", call_getsockopt},
	{"setsockopt", call_setsockopt},
};

bool host_call(
	struct host *h, const struct call *c, int64_t *result, char detail[DETAIL], nsec_t now)
{
	struct call_in in = {.h = h, .call = c, .detail = detail, .now = now};
	int fd = c->nargs ? atoi(c->arg[0]) : -1;

	detail[0] = 0;
	h->now = now;
	if (fd >= 0 && fd < HOST_FDS && h->fd[fd].kind != FD_NONE)
		in.fd = &h->fd[fd];
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, c->name) != 0)
			continue;
		*result = !in.fd && calls[i].run != call_socket ? -EBADF : calls[i].run(&in);
		return true;
	}
	return false;
}

/* values for `assert` */

static bool stat_value(const struct tcp_stat *s, const char *name, int64_t *v)
{
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {
		{"state", s->state},
		{"ca_state", s->ca_state},
		{"snd_wscale", s->snd_wscale},
		{"rcv_wscale", s->rcv_wscale},
		{"sack", s->sack},
		{"timestamps", s->timestamps},
		{"ecn", s->ecn},
		{"rto_us", s->rto_us},
		{"rtt_us", s->rtt_us},
		{"min_rtt_us", s->min_rtt_us},
		{"snd_mss", s->snd_mss},
		{"rcv_mss", s->rcv_mss},
		{"advmss", s->advmss},
		{"pmtu", s->pmtu},
		{"cwnd", s->cwnd},
		{"cwnd_segs", s->snd_mss ? s->cwnd / s->snd_mss : 0},
		{"ssthresh", s->ssthresh},
		{"ssthresh_segs", s->snd_mss ? s->ssthresh / s->snd_mss : 0},
		{"snd_wnd", s->snd_wnd},
		{"rcv_wnd", s->rcv_wnd},
		{"inflight", s->inflight},
		{"unacked", s->unacked},
		{"notsent", s->notsent},
		{"retrans", (int64_t)s->retrans},
		{"bytes_retrans", (int64_t)s->bytes_retrans},
		{"reord_seen", s->reord_seen},
		{"tlp", s->tlp},
		{"rto_count", s->rto_count},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*v = rows[i].value;
		return true;
	}
	return false;
}

static bool counter_value(const struct tcp_counters *c, const char *name, int64_t *v)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
#define X(n) {#n, c->n},
		TCP_COUNTERS(X)
#undef X
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*v = (int64_t)rows[i].value;
		return true;
	}
	return false;
}

bool host_value(struct host *h, int fd, const char *name, int64_t *value)
{
	struct tcp_stat s;

	if (!strncmp(name, "host.", 5))
		return counter_value(tcp_host_counters(h->tcp), name + 5, value);
	if (fd < 0 || fd >= HOST_FDS || !h->fd[fd].tcp || h->fd[fd].kind == FD_NONE)
		return false;
	tcp_stat(h->fd[fd].tcp, &s);
	return stat_value(&s, name, value);
}
