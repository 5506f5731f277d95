/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay: programs that know only the kernel's sockets talk through a host of ours:
 *
 *	relay tap:t0 ip=10.0.0.2/24 stack::80 host:127.0.0.1:8080     who comes to 10.0.0.2 finds the server here
 *	relay tap:t0 ip=10.0.0.2/24 host::8080 stack:10.0.0.1:80      who comes here finds the server there
 *
 * PORT and OPTIONS are those of weft_host_open(); FROM and TO, as many as wanted, are one of each kind. It
 * prints "ready", and each address that the host gets.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define BATCH 64
#define TURNS 16 /* of one direction before others have theirs */

struct relay {
	struct weft_host *h;
	int ep;
	int spare; /* a descriptor to give up when there is no other */
	TAILQ_HEAD(pairs, pair) busy, over;
	struct weft_addr known[2]; /* of either version */
};

struct source { /* what an event belongs to: a listener or a pair */
	struct relay *r;
	void (*ready)(struct source *);
};

struct listener {
	struct source source;
	int s, fd; /* one of them, the other is -1 */
	struct weft_addr to;
};

struct pair {
	struct source source;
	int s, fd; /* of the stack, of the kernel */
	struct way {
		char bytes[65536];
		size_t at, n;
		int ended, shut;
	} way[2]; /* to the kernel, to the stack */
	int queued, gone;
	TAILQ_ENTRY(pair) entry;
};

enum next { WAIT, MORE, FAILED };

static struct sockaddr_in6 kernel_addr(const struct weft_addr *a)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};

	memcpy(&sa.sin6_addr, a->ip, 16);
	return sa;
}

/* An end of the kernel as one of the stack: bytes, or a negative errno. */
static ssize_t end_recv(struct pair *p, int stack, char *bytes, size_t len)
{
	const ssize_t n =
		stack ? weft_recv(p->source.r->h, p->s, bytes, len, 0) : recv(p->fd, bytes, len, 0);

	return n < 0 && !stack ? -errno : n;
}

static ssize_t end_send(struct pair *p, int stack, const char *bytes, size_t len)
{
	const ssize_t n = stack ? weft_send(p->source.r->h, p->s, bytes, len, 0)
				: send(p->fd, bytes, len, MSG_NOSIGNAL);

	return n < 0 && !stack ? -errno : n;
}

static enum next move(struct pair *p, int to_stack)
{
	struct way *w = &p->way[to_stack];
	ssize_t n;

	for (int i = 0; i < TURNS; i++) {
		if (!w->n && !w->ended) {
			n = end_recv(p, !to_stack, w->bytes, sizeof(w->bytes));
			if (n < 0)
				return n == -EAGAIN ? WAIT : FAILED;
			w->at = 0;
			w->n = (size_t)n;
			w->ended = !n;
		}
		if (!w->n) {
			if (!w->shut)
				to_stack ? weft_shutdown(p->source.r->h, p->s)
					 : shutdown(p->fd, SHUT_WR);
			w->shut = 1;
			return WAIT;
		}
		n = end_send(p, to_stack, w->bytes + w->at, w->n);
		if (n < 0)
			return n == -EAGAIN ? WAIT : FAILED;
		w->at += (size_t)n;
		w->n -= (size_t)n;
	}
	return MORE;
}

/* Freed when no event can name it any more. */
static void pair_end(struct pair *p, int reset)
{
	const struct linger off = {1, 0};

	if (reset) {
		weft_setopt(p->source.r->h, p->s, WEFT_SO_LINGER, 0);
		setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	}
	weft_close(p->source.r->h, p->s);
	close(p->fd);
	p->gone = 1;
	if (!p->queued)
		TAILQ_INSERT_TAIL(&p->source.r->over, p, entry);
}

static void pair_ready(struct source *source)
{
	struct pair *p = (struct pair *)source;
	enum next out, in;

	if (p->gone || p->queued)
		return;
	out = move(p, 0);
	in = move(p, 1);
	if (out == FAILED || in == FAILED || (p->way[0].shut && p->way[1].shut)) {
		pair_end(p, out == FAILED || in == FAILED);
	} else if (out == MORE || in == MORE) {
		p->queued = 1;
		TAILQ_INSERT_TAIL(&source->r->busy, p, entry);
	}
}

static void pair_new(struct relay *r, int s, int fd)
{
	const int one = 1;
	struct pair *p = s < 0 || fd < 0 ? NULL : malloc(sizeof(*p));

	if (!p) {
		if (fd >= 0)
			close(fd);
		if (s >= 0)
			weft_close(r->h, s);
		return;
	}
	*p = (struct pair){.source = {r, pair_ready}, .s = s, .fd = fd};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	weft_setopt(r->h, s, WEFT_SO_NODELAY, 1);
	weft_set_user(r->h, s, p);
	if (epoll_ctl(r->ep, EPOLL_CTL_ADD, fd,
		    &(struct epoll_event){EPOLLIN | EPOLLOUT | EPOLLET, {.ptr = p}}))
		pair_end(p, 1);
}

static int kernel_socket(void)
{
	return socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int kernel_connect(const struct weft_addr *to)
{
	const struct sockaddr_in6 sa = kernel_addr(to);
	const int fd = kernel_socket();

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) &&
		errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static int stack_connect(struct weft_host *h, const struct weft_addr *to)
{
	const int s = weft_socket(h, WEFT_TCP);

	if (s >= 0 && weft_connect(h, s, to) != -EINPROGRESS) {
		weft_close(h, s);
		return -1;
	}
	return s;
}

/* The next one that waits there: a descriptor, or -errno. */
static int listener_take(struct listener *l)
{
	struct relay *r = l->source.r;
	int fd;

	if (l->fd < 0)
		return weft_accept(r->h, l->s, NULL);
	fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
		return fd < 0 ? -errno : fd;
	close(r->spare); /* no room: told so, or it would wait there and wake us for ever */
	fd = accept(l->fd, NULL, NULL);
	if (fd >= 0)
		close(fd);
	r->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -EAGAIN : -ECONNABORTED;
}

static void listener_ready(struct source *source)
{
	struct listener *l = (struct listener *)source;
	struct weft_host *h = source->r->h;
	int got;

	while ((got = listener_take(l)) >= 0 || got == -ECONNABORTED)
		if (got < 0)
			continue; /* that one has gone */
		else if (l->fd < 0)
			pair_new(source->r, got, kernel_connect(&l->to));
		else
			pair_new(source->r, stack_connect(h, &l->to), got);
}

static int stack_listen(struct listener *l, const struct weft_addr *from)
{
	struct weft_host *h = l->source.r->h;

	l->s = weft_socket(h, WEFT_TCP);
	weft_set_user(h, l->s, l);
	return weft_bind(h, l->s, from) || weft_listen(h, l->s, 1024);
}

static int kernel_listen(struct listener *l, const struct weft_addr *from)
{
	const struct sockaddr_in6 sa = kernel_addr(from);
	const int one = 1;

	l->fd = kernel_socket();
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return bind(l->fd, (const struct sockaddr *)&sa, sizeof(sa)) || listen(l->fd, 1024) ||
	       epoll_ctl(l->source.r->ep, EPOLL_CTL_ADD, l->fd,
		       &(struct epoll_event){EPOLLIN, {.ptr = l}});
}

static void listener_new(struct relay *r, const char *from, const char *to)
{
	const int in = !strncmp(from, "stack:", 6), out = !strncmp(to, "stack:", 6);
	const char *kinds = in ? "host:" : "stack:";
	struct listener *l = calloc(1, sizeof(*l));
	struct weft_addr at;

	if (!l || in == out || (!in && strncmp(from, "host:", 5) != 0) ||
		strncmp(to, kinds, strlen(kinds)) != 0 ||
		weft_addr_parse(&at, from + (in ? 6 : 5)) ||
		weft_addr_parse(&l->to, to + strlen(kinds)))
		errx(2, "'%s' '%s': must be stack:ADDR:PORT host:ADDR:PORT, or the other way", from,
			to);
	*l = (struct listener){{r, listener_ready}, -1, -1, l->to};
	if (in ? stack_listen(l, &at) : kernel_listen(l, &at))
		errx(1, "cannot listen at '%s'", from);
}

static void tell_addresses(struct relay *r)
{
	char text[WEFT_ADDR_TEXT];
	struct weft_addr a;

	for (int i = 0; i < 2; i++) { /* the second in brackets */
		if (weft_host_addr(r->h, i ? 6 : 4, &a) || !memcmp(&a, &r->known[i], sizeof(a)))
			continue;
		r->known[i] = a;
		weft_addr_text(&a, text);
		*strrchr(text, ':') = 0;
		printf("address %.*s\n", (int)strcspn(text + i, "]"), text + i);
	}
	fflush(stdout);
}

static void events(struct relay *r)
{
	struct weft_event ev[BATCH];
	struct pair *p, *last;
	int n;

	while ((n = weft_host_events(r->h, ev, BATCH)) > 0)
		for (int i = 0; i < n; i++)
			if (ev[i].user)
				((struct source *)ev[i].user)->ready(ev[i].user);
	last = TAILQ_LAST(&r->busy, pairs);
	for (p = NULL; last && p != last;) {
		p = TAILQ_FIRST(&r->busy);
		TAILQ_REMOVE(&r->busy, p, entry);
		p->queued = 0;
		pair_ready(&p->source);
	}
	while ((p = TAILQ_FIRST(&r->over))) {
		TAILQ_REMOVE(&r->over, p, entry);
		free(p);
	}
}

static int patience(const struct relay *r)
{
	const int64_t ns = weft_host_timeout_ns(r->h);

	if (!TAILQ_EMPTY(&r->busy))
		return 0;
	return ns < 0 || ns > INT64_C(1000000) * 60000 ? 60000 : (int)((ns + 999999) / 1000000);
}

int main(int argc, char **argv)
{
	struct relay r = {.ep = epoll_create1(EPOLL_CLOEXEC),
		.spare = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	struct epoll_event ev[BATCH];
	char text[WEFT_ERR] = "";

	if (argc < 5 || argc % 2 == 0)
		errx(2, "usage: relay PORT OPTIONS FROM TO [FROM TO]...");
	if (weft_host_open(&r.h, argv[1], argv[2], text))
		errx(1, "%s", text);
	TAILQ_INIT(&r.busy);
	TAILQ_INIT(&r.over);
	for (int i = 3; i < argc; i += 2)
		listener_new(&r, argv[i], argv[i + 1]);
	if (epoll_ctl(r.ep, EPOLL_CTL_ADD, weft_host_fd(r.h),
		    &(struct epoll_event){EPOLLIN, {.ptr = NULL}}))
		err(1, "epoll");
	printf("ready\n");
	for (;;) {
		const int n = epoll_wait(r.ep, ev, BATCH, patience(&r));

		weft_host_dispatch(r.h, 0);
		for (int i = 0; i < n; i++)
			if (ev[i].data.ptr)
				((struct source *)ev[i].data.ptr)->ready(ev[i].data.ptr);
		events(&r);
		tell_addresses(&r);
	}
}
