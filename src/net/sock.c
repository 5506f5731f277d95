/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sock: numbers, options and readiness over TCP connections, listeners and UDP sockets. A TCP socket
 * has a connection only from connect or accept on; options set earlier are kept until then, and those
 * of a listener are given to what it accepts.
 */
#include "net/sock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/rand.h"
#include "net/tcp.h"

#define GROW       64 /* numbers at first */
#define PORT_FIRST 32768
#define PORT_COUNT 28232
#define PORT_TRIES 64
#define NOPTIONS   (SOCKO_HOPS + 1)

enum sock_state {
	FRESH,
	CONNECTED, /* or on its way, or over */
	LISTENING,
};

struct sock_options {          /* of what is not there yet */
	struct udp_addr local; /* TCP: as bound */
	uint32_t mask;
	int value[NOPTIONS];
};

struct sock {
	TAILQ_ENTRY(sock) entry; /* of the ready list */
	int number;
	uint8_t kind, state;
	bool queued;
	int16_t linger; /* -1: off */
	union {
		struct tcp *tcp;               /* TCP, CONNECTED */
		struct tcp_listener *listener; /* TCP, LISTENING */
		struct udp_sock *udp;
	};
	struct sock_options *options;
	void *user;
};

struct sock_table {
	struct stack *stack;
	struct tcp_host *tcp;
	struct sock **sock; /* by number, NULL: free */
	int n, lowest;      /* no free number is below */
	struct rand rand;
	TAILQ_HEAD(, sock) ready;
};

static struct tcp *tcp_of(const struct sock *s)
{
	return s->kind == SOCK_KIND_TCP && s->state == CONNECTED ? s->tcp : NULL;
}

static struct tcp_listener *listener_of(const struct sock *s)
{
	return s->kind == SOCK_KIND_TCP && s->state == LISTENING ? s->listener : NULL;
}

static struct udp_sock *udp_of(const struct sock *s)
{
	return s->kind == SOCK_KIND_UDP ? s->udp : NULL;
}

/* ---- numbers ---- */

static void ready_add(struct sock_table *tab, struct sock *s)
{
	if (!s || s->queued)
		return;
	s->queued = true;
	TAILQ_INSERT_TAIL(&tab->ready, s, entry);
}

static void on_udp(void *ctx, struct udp_sock *u)
{
	ready_add(ctx, udp_user(u));
}

int sock_table_new(struct sock_table **out, struct stack *stack, struct err *err)
{
	struct sock_table *tab = calloc(1, sizeof(*tab));
	uint64_t seed;

	*out = tab;
	if (!tab)
		return err_set(err, ENOMEM, "no memory for sockets");
	tab->stack = stack;
	tab->tcp = stack_tcp(stack);
	TAILQ_INIT(&tab->ready);
	rand_secret(&seed, sizeof(seed));
	rand_init(&tab->rand, seed);
	udp_on_ready(stack, on_udp, tab);
	return 0;
}

static struct sock *of(const struct sock_table *tab, int s)
{
	return s >= 0 && s < tab->n ? tab->sock[s] : NULL;
}

static int grow(struct sock_table *tab)
{
	const int n = tab->n ? tab->n * 2 : GROW;
	struct sock **more;

	if (n > SOCKS_MAX)
		return -EMFILE;
	more = realloc(tab->sock, (size_t)n * sizeof(struct sock *));
	if (!more)
		return -ENOMEM;
	memset(more + tab->n, 0, (size_t)(n - tab->n) * sizeof(struct sock *));
	tab->sock = more;
	tab->n = n;
	return 0;
}

static struct sock *make(struct sock_table *tab, enum sock_kind kind, int *err)
{
	int i = tab->lowest;
	struct sock *s;

	while (i < tab->n && tab->sock[i])
		i++;
	*err = i == tab->n ? grow(tab) : 0;
	if (*err)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		*err = -ENOMEM;
		return NULL;
	}
	s->number = i;
	s->kind = (uint8_t)kind;
	s->linger = -1;
	tab->sock[i] = s;
	tab->lowest = i + 1;
	return s;
}

static void unmake(struct sock_table *tab, struct sock *s)
{
	if (s->queued)
		TAILQ_REMOVE(&tab->ready, s, entry);
	tab->sock[s->number] = NULL;
	if (s->number < tab->lowest)
		tab->lowest = s->number;
	free(s->options);
	free(s);
}

int sock_open(struct sock_table *tab, enum sock_kind kind)
{
	struct sock *s;
	int err;

	if (kind != SOCK_KIND_TCP && kind != SOCK_KIND_UDP)
		return -EPROTONOSUPPORT;
	s = make(tab, kind, &err);
	if (!s)
		return err;
	if (kind == SOCK_KIND_UDP) {
		s->udp = udp_new(tab->stack, s);
		if (!s->udp) {
			unmake(tab, s);
			return -ENOBUFS;
		}
	}
	return s->number;
}

static void release(struct sock_table *tab, struct sock *s, bool reset, nsec_t now)
{
	if (listener_of(s))
		tcp_unlisten(listener_of(s), now);
	if (udp_of(s))
		udp_close(udp_of(s));
	if (tcp_of(s) && reset)
		tcp_abort(tcp_of(s), now);
	else if (tcp_of(s))
		tcp_close(tcp_of(s), now);
	unmake(tab, s);
}

int sock_close(struct sock_table *tab, int number, nsec_t now)
{
	struct sock *s = of(tab, number);

	if (!s)
		return -EBADF;
	release(tab, s, s->linger == 0, now);
	return 0;
}

void sock_table_free(struct sock_table *tab, nsec_t now)
{
	if (!tab)
		return;
	for (int i = 0; i < tab->n; i++)
		if (tab->sock[i])
			release(tab, tab->sock[i], true, now);
	udp_on_ready(tab->stack, NULL, NULL);
	free(tab->sock);
	free(tab);
}

/* ---- readiness ---- */

void sock_work(struct sock_table *tab, nsec_t now)
{
	struct tcp_event e;

	(void)now;
	while (tcp_host_event(tab->tcp, &e))
		ready_add(tab, e.tcp ? tcp_user(e.tcp) : tcp_listener_user(e.listener));
}

static int tcp_level(const struct tcp *t)
{
	const unsigned r = tcp_ready(t);

	return (r & (TCP_EV_READABLE | TCP_EV_RDHUP) ? SOCK_IN : 0) |
	       (r & TCP_EV_WRITABLE ? SOCK_OUT : 0) | (r & TCP_EV_ERROR ? SOCK_ERR : 0) |
	       (r & TCP_EV_HUP ? SOCK_HUP : 0);
}

static int udp_level(const struct udp_sock *u)
{
	const unsigned r = udp_ready(u);

	return (r & UDP_READABLE ? SOCK_IN : 0) | (r & UDP_WRITABLE ? SOCK_OUT : 0) |
	       (r & UDP_ERROR ? SOCK_ERR : 0);
}

static int level(const struct sock *s)
{
	if (udp_of(s))
		return udp_level(udp_of(s));
	if (listener_of(s))
		return tcp_listener_ready(listener_of(s)) ? SOCK_IN : 0;
	return tcp_of(s) ? tcp_level(tcp_of(s)) : 0;
}

int sock_ready(struct sock_table *tab, int number)
{
	const struct sock *s = of(tab, number);

	return s ? level(s) : -EBADF;
}

int sock_next_ready(struct sock_table *tab, unsigned *ready, void **user)
{
	struct sock *s;

	while ((s = TAILQ_FIRST(&tab->ready))) {
		TAILQ_REMOVE(&tab->ready, s, entry);
		s->queued = false;
		*ready = (unsigned)level(s);
		if (!*ready)
			continue;
		if (user)
			*user = s->user;
		return s->number;
	}
	return -EAGAIN;
}

int sock_set_user(struct sock_table *tab, int number, void *user)
{
	struct sock *s = of(tab, number);

	if (!s)
		return -EBADF;
	s->user = user;
	return 0;
}

struct tcp *sock_tcp(struct sock_table *tab, int number)
{
	const struct sock *s = of(tab, number);

	return s ? tcp_of(s) : NULL;
}

/* ---- options ---- */

static const int tcp_options[NOPTIONS] = {
	[SOCKO_SNDBUF] = TCPO_SNDBUF + 1,
	[SOCKO_RCVBUF] = TCPO_RCVBUF + 1,
	[SOCKO_NODELAY] = TCPO_NODELAY + 1,
	[SOCKO_CORK] = TCPO_CORK + 1,
	[SOCKO_KEEPALIVE] = TCPO_KEEPALIVE + 1,
	[SOCKO_KEEPIDLE] = TCPO_KEEPIDLE + 1,
	[SOCKO_KEEPINTVL] = TCPO_KEEPINTVL + 1,
	[SOCKO_KEEPCNT] = TCPO_KEEPCNT + 1,
	[SOCKO_USER_TIMEOUT] = TCPO_USER_TIMEOUT + 1,
	[SOCKO_QUICKACK] = TCPO_QUICKACK + 1,
	[SOCKO_MAXSEG] = TCPO_MAXSEG + 1,
};

static const int udp_options[NOPTIONS] = {
	[SOCKO_SNDBUF] = UDPO_SNDBUF + 1,
	[SOCKO_RCVBUF] = UDPO_RCVBUF + 1,
	[SOCKO_REUSE] = UDPO_REUSE + 1,
	[SOCKO_UDP_GRO] = UDPO_GRO + 1,
	[SOCKO_DF] = UDPO_DF + 1,
	[SOCKO_TOS] = UDPO_TOS + 1,
	[SOCKO_HOPS] = UDPO_HOPS + 1,
};

static void give_options(const struct sock_options *o, struct tcp *t, nsec_t now)
{
	for (unsigned i = 0; o && i < NOPTIONS; i++)
		if (o->mask & 1u << i)
			tcp_set(t, (enum tcp_option)(tcp_options[i] - 1), (uint32_t)o->value[i],
				now);
}

static bool options_have(struct sock *s)
{
	if (!s->options)
		s->options = calloc(1, sizeof(*s->options));
	return s->options;
}

static int remember(struct sock *s, enum sock_option o, int value)
{
	if (!options_have(s))
		return -ENOMEM;
	s->options->mask |= 1u << o;
	s->options->value[o] = value;
	return 0;
}

int sock_set(struct sock_table *tab, int number, enum sock_option o, int value, nsec_t now)
{
	struct sock *s = of(tab, number);
	int r = 0;

	if (!s)
		return -EBADF;
	if ((unsigned)o >= NOPTIONS || (value < 0 && o != SOCKO_LINGER))
		return -EINVAL;
	if (o == SOCKO_LINGER) {
		s->linger = (int16_t)(value > INT16_MAX ? INT16_MAX : value);
		return 0;
	}
	if (udp_of(s))
		return udp_options[o] ? udp_set(udp_of(s), (enum udp_option)(udp_options[o] - 1),
						(uint32_t)value)
				      : -ENOPROTOOPT;
	if (o == SOCKO_REUSE)
		return 0; /* a port with connections in TIME-WAIT can always be listened on */
	if (!tcp_options[o])
		return -ENOPROTOOPT;
	if (tcp_of(s))
		r = tcp_set(tcp_of(s), (enum tcp_option)(tcp_options[o] - 1), (uint32_t)value, now);
	return r ? r : remember(s, o, value);
}

int sock_get(struct sock_table *tab, int number, enum sock_option o, int *value)
{
	struct sock *s = of(tab, number);

	if (!s)
		return -EBADF;
	*value = 0;
	if (o == SOCKO_ERROR) {
		*value = udp_of(s)   ? udp_error_take(udp_of(s))
			 : tcp_of(s) ? tcp_error(tcp_of(s))
				     : 0;
	} else if (o == SOCKO_LINGER) {
		*value = s->linger;
	} else if ((o == SOCKO_SNDBUF || o == SOCKO_RCVBUF) && tcp_of(s)) {
		struct tcp_stat stat;

		tcp_stat(tcp_of(s), &stat);
		*value = (int)(o == SOCKO_SNDBUF ? stat.sndbuf : stat.rcvbuf);
	} else if ((unsigned)o < NOPTIONS && s->options && (s->options->mask & 1u << o)) {
		*value = s->options->value[o];
	}
	return 0;
}

int sock_names(struct sock_table *tab, int number, struct udp_addr *local, struct udp_addr *peer)
{
	const struct sock *s = of(tab, number);
	struct tcp_tuple tu;

	if (!s)
		return -EBADF;
	if (udp_of(s)) {
		udp_names(udp_of(s), local, peer);
		return 0;
	}
	*local = s->options ? s->options->local : (struct udp_addr){.port = 0};
	*peer = (struct udp_addr){.port = 0};
	if (tcp_of(s)) {
		tcp_tuple_of(tcp_of(s), &tu);
		*local = (struct udp_addr){tu.laddr, tu.lport};
		*peer = (struct udp_addr){tu.raddr, tu.rport};
	}
	return 0;
}

/* ---- opening ---- */

int sock_bind(struct sock_table *tab, int number, const struct udp_addr *a)
{
	struct sock *s = of(tab, number);
	struct ip_addr src;
	uint32_t mtu;

	if (!s)
		return -EBADF;
	if (udp_of(s))
		return udp_bind(udp_of(s), a);
	if (s->state != FRESH)
		return -EINVAL;
	if (!ip_addr_any(&a->ip) &&
		(stack_route(tab->stack, &a->ip, &src, &mtu, 0) || !ip_addr_equal(&src, &a->ip)))
		return -EADDRNOTAVAIL;
	if (!options_have(s))
		return -ENOMEM;
	s->options->local = *a;
	return 0;
}

static int again(const struct sock *s)
{
	const unsigned r = tcp_ready(tcp_of(s));

	if (r & TCP_EV_ERROR)
		return -tcp_error(tcp_of(s));
	return r & (TCP_EV_CONNECTED | TCP_EV_HUP) ? -EISCONN : -EALREADY;
}

int sock_connect(struct sock_table *tab, int number, const struct udp_addr *peer, nsec_t now)
{
	struct sock *s = of(tab, number);
	struct tcp_tuple tu = {.raddr = peer->ip, .rport = peer->port};
	struct tcp *t;
	uint32_t mtu;
	int r;

	if (!s)
		return -EBADF;
	if (udp_of(s))
		return udp_connect(udp_of(s), peer, now);
	if (s->state != FRESH)
		return s->state == CONNECTED ? again(s) : -EOPNOTSUPP;
	if (!peer->port || ip_addr_multicast(&peer->ip) || ip_addr_any(&peer->ip))
		return -EADDRNOTAVAIL;
	r = stack_route(tab->stack, &peer->ip, &tu.laddr, &mtu, now);
	if (r)
		return r;
	if (s->options && !ip_addr_any(&s->options->local.ip))
		tu.laddr = s->options->local.ip;
	if (s->options)
		tu.lport = s->options->local.port;
	t = tcp_new(tab->tcp);
	if (!t)
		return -ENOBUFS;
	tcp_set_user(t, s);
	give_options(s->options, t, now);
	r = tcp_connect(t, &tu, mtu, now);
	if (r) {
		tcp_close(t, now);
		return r;
	}
	s->tcp = t;
	s->state = CONNECTED;
	return -EINPROGRESS;
}

int sock_listen(struct sock_table *tab, int number, unsigned backlog)
{
	struct sock *s = of(tab, number);
	struct udp_addr *local;
	int r = -EADDRINUSE;

	if (!s)
		return -EBADF;
	if (udp_of(s))
		return -EOPNOTSUPP;
	if (s->state != FRESH)
		return -EINVAL;
	if (!options_have(s))
		return -ENOMEM;
	local = &s->options->local;
	if (local->port)
		r = tcp_listen(tab->tcp, &local->ip, local->port, backlog, s, &s->listener);
	for (unsigned i = 0; r == -EADDRINUSE && !local->port && i < PORT_TRIES; i++) {
		const uint16_t port = (uint16_t)(PORT_FIRST + rand_below(&tab->rand, PORT_COUNT));

		r = tcp_listen(tab->tcp, &local->ip, port, backlog, s, &s->listener);
		if (!r)
			local->port = port;
	}
	if (!r)
		s->state = LISTENING;
	return r;
}

int sock_accept(struct sock_table *tab, int number, struct udp_addr *peer, nsec_t now)
{
	struct sock *l = of(tab, number), *s;
	struct tcp_tuple tu;
	int err;

	if (!l)
		return -EBADF;
	if (!listener_of(l))
		return -EINVAL;
	if (!tcp_listener_ready(listener_of(l)))
		return -EAGAIN;
	s = make(tab, SOCK_KIND_TCP, &err);
	if (!s)
		return err;
	s->tcp = tcp_accept(listener_of(l));
	s->state = CONNECTED;
	s->linger = l->linger;
	tcp_set_user(tcp_of(s), s);
	tcp_tuple_of(tcp_of(s), &tu);
	give_options(l->options, tcp_of(s), now);
	if (peer)
		*peer = (struct udp_addr){tu.raddr, tu.rport};
	return s->number;
}

/* ---- bytes ---- */

ssize_t sock_send(struct sock_table *tab, int number, const struct iovec *iov, unsigned niov,
	int flags, const struct udp_addr *to, uint16_t gso, nsec_t now)
{
	const struct sock *s = of(tab, number);

	if (!s)
		return -EBADF;
	if (udp_of(s))
		return udp_send(udp_of(s), to, iov, niov, gso, now);
	if (!tcp_of(s))
		return -ENOTCONN;
	return tcp_send(tcp_of(s), iov, niov, flags & SOCK_MORE ? TCP_MORE : 0, now);
}

ssize_t sock_recv(struct sock_table *tab, int number, const struct iovec *iov, unsigned niov,
	int flags, struct udp_info *info, nsec_t now)
{
	const struct sock *s = of(tab, number);
	struct udp_info none;

	if (!s)
		return -EBADF;
	if (udp_of(s))
		return udp_recv(udp_of(s), iov, niov, info ? info : &none,
			flags & SOCK_PEEK ? UDP_PEEK : 0);
	if (!tcp_of(s))
		return -ENOTCONN;
	if (info) {
		*info = (struct udp_info){.gso_size = 0};
		sock_names(tab, number, &info->to, &info->from);
	}
	return tcp_recv(tcp_of(s), iov, niov, flags & SOCK_PEEK ? TCP_PEEK : 0, now);
}

ssize_t sock_recv_lend(
	struct sock_table *tab, int number, struct iovec *iov, unsigned *niov, nsec_t now)
{
	const struct sock *s = of(tab, number);

	if (!s || !tcp_of(s)) {
		*niov = 0;
		return !s ? -EBADF : udp_of(s) ? -EOPNOTSUPP : -ENOTCONN;
	}
	return tcp_recv_lend(tcp_of(s), iov, niov, now);
}

int sock_recv_done(struct sock_table *tab, int number, size_t n, nsec_t now)
{
	const struct sock *s = of(tab, number);

	if (!s)
		return -EBADF;
	return tcp_of(s) ? tcp_recv_done(tcp_of(s), n, now) : -ENOTCONN;
}

int sock_shutdown(struct sock_table *tab, int number, int how, nsec_t now)
{
	const struct sock *s = of(tab, number);

	if (!s)
		return -EBADF;
	if (!tcp_of(s))
		return -ENOTCONN;
	return how == SHUT_RD ? 0 : tcp_shutdown_wr(tcp_of(s), now);
}
