/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_host: the public face of a host: a stack with its sockets on one of three things: a driver
 * (net/stack_nic.h), a tap (a wire to the stack's port), or a network of this process (the stack's
 * port is plugged in).
 */
#include "weft/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/host_words.h"
#include "app/weft_int.h"
#include "base/rand.h"
#include <jansson.h>

#include "net/join.h"
#include "net/sock.h"
#include "net/stack_nic.h"
#include "net/stack_port.h"
#include "net/tcp.h"
#include "port/tap.h"
#include "port/vdrv.h"

#define DRIVER_MEMORY (32u << 20) /* windows of TCP lie in it, too */

struct weft_host {
	struct loop *loop, own;
	struct stack *stack;
	struct sock_table *socks;
	struct port *driver, *tap;
	struct stack_nic *nic;
	struct port *port; /* the stack's, on a tap or in a network */
	struct join *join;
	struct spec spec;
	struct net *net;
};

_Static_assert(sizeof(struct weft_addr) == sizeof(struct udp_addr), "one address");
_Static_assert((int)WEFT_SO_HOPS == (int)SOCKO_HOPS && (int)WEFT_SO_GRO == (int)SOCKO_UDP_GRO &&
		       (int)WEFT_SO_CORK == (int)SOCKO_CORK,
	"one numbering");
_Static_assert(WEFT_IN == SOCK_IN, "one set of bits");
_Static_assert(WEFT_OUT == SOCK_OUT, "one set of bits");
_Static_assert(WEFT_ERR_BIT == SOCK_ERR, "one set of bits");
_Static_assert(WEFT_HUP == SOCK_HUP, "one set of bits");
_Static_assert(WEFT_MORE == SOCK_MORE, "one set of flags");
_Static_assert(WEFT_PEEK == SOCK_PEEK, "one set of flags");
_Static_assert(WEFT_TCP == (int)SOCK_KIND_TCP && WEFT_UDP == (int)SOCK_KIND_UDP, "two kinds");

static const struct udp_addr *in(const struct weft_addr *a)
{
	return (const struct udp_addr *)(const void *)a;
}

static struct udp_addr *out(struct weft_addr *a)
{
	return (struct udp_addr *)(void *)a;
}

/* Before a socket is used, and after: what it caused goes out from the loop. */
static nsec_t now_of(struct weft_host *h)
{
	if (h->nic)
		stack_nic_kick(h->nic);
	else
		stack_port_kick(h->port);
	return loop_refresh(h->loop);
}

static void on_work(void *ctx)
{
	struct weft_host *h = ctx;

	if (h->socks)
		sock_work(h->socks, loop_now(h->loop));
}

/* ---- life ---- */

static int make_stack(struct weft_host *h, struct host_words *w, struct err *err)
{
	const nsec_t now = loop_refresh(h->loop);
	const struct tcp_conf tcp = {.conns = w->conns};
	int r;

	w->conf.tcp = &tcp;
	rand_secret(w->conf.secret, sizeof(w->conf.secret));
	rand_secret(&w->conf.seed, sizeof(w->conf.seed));
	r = stack_new(&h->stack, &w->conf, now, err);
	if (!r)
		r = host_words_apply(w, h->stack, now, err);
	if (!r)
		r = sock_table_new(&h->socks, h->stack, err);
	return r;
}

static int make_port(struct weft_host *h, const char *name, struct err *err)
{
	int r = stack_port_new(&h->port, name, h->stack, h->loop, NULL, err);

	if (!r)
		stack_port_on_work(h->port, on_work, h);
	return r;
}

static int on_driver(struct weft_host *h, struct host_words *w, struct err *err)
{
	struct vdrv_config config;
	int r;

	spec_driver(&h->spec, &config);
	if (w->conf.memory)
		config.memory = w->conf.memory;
	else if (config.memory < DRIVER_MEMORY)
		config.memory = DRIVER_MEMORY;
	if (w->conf.mtu) /* else the device's */
		config.mtu = (uint16_t)w->conf.mtu;
	if (!w->has_mac)
		port_mac_of_name("", h->spec.name, w->conf.mac);
	memcpy(config.mac, w->conf.mac, 6); /* the host's for good, whatever device comes */
	r = vdrv_open(&h->driver, h->spec.name, &config, h->loop, NULL, err);
	if (r)
		return r;
	w->conf.pool = vdrv_pkts(h->driver);
	w->conf.headroom = VNET_HDR_MAX;
	r = make_stack(h, w, err);
	if (!r)
		r = stack_nic_new(&h->nic, h->stack, h->driver, h->loop, err);
	if (!r)
		stack_nic_on_work(h->nic, on_work, h);
	return r;
}

static int on_tap(struct weft_host *h, struct host_words *w, struct err *err)
{
	const bool macvtap = h->spec.kind == SPEC_MACVTAP;
	struct tap_config config;
	int r;

	spec_tap(&h->spec, &config);
	if (w->has_mac)
		memcpy(config.mac, w->conf.mac, sizeof(config.mac));
	r = tap_open(&h->tap, h->spec.name, &config, h->loop, NULL, err);
	if (r)
		return r;
	if (macvtap) /* what comes to another address it never sees */
		memcpy(w->conf.mac, tap_mac(h->tap), sizeof(w->conf.mac));
	else if (!w->has_mac)
		port_mac_of_name("host", h->spec.name, w->conf.mac);
	if (!w->conf.mtu)
		w->conf.mtu = h->tap->mtu;
	r = make_stack(h, w, err);
	if (!r)
		r = make_port(h, h->spec.name, err);
	return r ? r : join_new(&h->join, h->tap, h->port, h->loop, err);
}

static int parse_port(struct weft_host *h, const char *text, struct err *err)
{
	char cwd[4096], rundir[RUNDIR_PATH] = "";
	struct spec_ctx where = {.net = "", .rundir = rundir};
	int r = rundir_path(rundir, "default", false, err);

	where.cwd = getcwd(cwd, sizeof(cwd)) ? cwd : "/";
	if (!r)
		r = spec_parse(&h->spec, text, &where, err);
	if (!r && h->spec.kind != SPEC_VIRTIO_USER && !spec_is_tap(h->spec.kind))
		r = err_set(err, EINVAL,
			"a host cannot be on '%.80s': virtio-user:PATH, tap:IFNAME or "
			"macvtap:IFNAME is right",
			text);
	return r;
}

int weft_host_open(struct weft_host **ret, const char *port, const char *options, char *text)
{
	struct weft_host *h = calloc(1, sizeof(*h));
	struct host_words w;
	struct err err = {""};
	int r;

	if (!h)
		return weft_tell(err_set(&err, ENOMEM, "no memory for a host"), &err, text);
	r = loop_init(&h->own, &err);
	if (r) {
		free(h);
		return weft_tell(r, &err, text);
	}
	h->loop = &h->own;
	r = parse_port(h, port, &err);
	if (!r)
		r = host_words_parse(&w, options, &err);
	if (!r)
		r = spec_is_tap(h->spec.kind) ? on_tap(h, &w, &err) : on_driver(h, &w, &err);
	if (r)
		weft_host_close(h);
	else
		*ret = h;
	return weft_tell(r, &err, text);
}

static void gone(void *ctx)
{
	((struct weft_host *)ctx)->net = NULL;
}

static int plug(struct weft_host *h, struct weft_net *w, const char *text, struct err *err)
{
	const char *comma = strchrnul(text, ',');
	const struct spec_ctx where = {.net = w->net.name, .rundir = "", .cwd = "."};
	struct host_words words;
	char name[NAME_LEN + 8];
	int r;

	if (comma - text >= NAME_LEN)
		return err_set(err, EINVAL, "a host's name has at most %d bytes", NAME_LEN - 1);
	memcpy(name, "device:", 7);
	memcpy(name + 7, text, (size_t)(comma - text));
	name[7 + (comma - text)] = 0;
	r = spec_parse(&h->spec, name, &where, err);
	if (!r)
		r = host_words_parse(&words, *comma ? comma + 1 : comma, err);
	if (r)
		return r;
	if (!words.has_mac)
		memcpy(words.conf.mac, h->spec.mac, 6);
	r = make_stack(h, &words, err);
	if (!r)
		r = make_port(h, h->spec.name, err);
	if (!r)
		r = net_plug(&w->net, h->port, &h->spec, gone, h, err);
	if (!r)
		h->net = &w->net;
	return r;
}

int weft_host_attach(
	struct weft_host **ret, struct weft_net *w, const char *name_and_options, char *text)
{
	struct weft_host *h = calloc(1, sizeof(*h));
	struct err err = {""};
	int r;

	if (!h)
		return weft_tell(err_set(&err, ENOMEM, "no memory for a host"), &err, text);
	h->loop = &w->net.loop;
	r = plug(h, w, name_and_options, &err);
	if (r)
		weft_host_close(h);
	else
		*ret = h;
	return weft_tell(r, &err, text);
}

/* Peers of connections that were open are told, as far as that goes at once. */
static void say_goodbye(struct weft_host *h)
{
	if (h->nic)
		stack_nic_poll(h->nic);
	if (!h->join)
		return;
	stack_port_kick(h->port);
	for (unsigned i = 0; i < 3; i++)
		loop_dispatch(h->loop, false);
}

void weft_host_close(struct weft_host *h)
{
	if (!h)
		return;
	sock_table_free(h->socks, loop_refresh(h->loop));
	h->socks = NULL;
	say_goodbye(h);
	if (h->net)
		net_del(h->net, h->spec.name, NULL);
	join_free(h->join);
	stack_nic_free(h->nic);
	stack_port_free(h->port);
	stack_free(h->stack);
	if (h->driver)
		vdrv_free(h->driver);
	tap_free(h->tap);
	spec_fini(&h->spec);
	if (h->loop == &h->own)
		loop_fini(&h->own);
	free(h);
}

int weft_host_fd(const struct weft_host *h)
{
	return h->loop->epfd;
}

int64_t weft_host_timeout_ns(const struct weft_host *h)
{
	return weft_loop_timeout(h->loop);
}

int weft_host_dispatch(struct weft_host *h, int wait)
{
	return loop_dispatch(h->loop, wait != 0);
}

/* ---- addresses ---- */

int weft_addr_parse(struct weft_addr *a, const char *text)
{
	const char *colon = strrchr(text, ':');
	char ip[WEFT_ADDR_TEXT], *end;
	size_t n = colon ? (size_t)(colon - text) : 0;
	struct ip_addr addr = {{0}};
	unsigned long port;

	if (!colon || n >= sizeof(ip))
		return -EINVAL;
	port = strtoul(colon + 1, &end, 10);
	if (colon[1] < '0' || colon[1] > '9' || *end || port > UINT16_MAX)
		return -EINVAL;
	memcpy(ip, text, n);
	ip[n] = 0;
	if (n && ip[0] == '[' && ip[n - 1] == ']') {
		ip[n - 1] = 0;
		memmove(ip, ip + 1, n - 1);
	} else if (strchr(ip, ':')) {
		return -EINVAL; /* whose colon is the last one? */
	}
	if (n && !ip_addr_parse_text(ip, &addr))
		return -EINVAL;
	memcpy(a->ip, addr.b, 16);
	a->port = (uint16_t)port;
	return 0;
}

void weft_addr_text(const struct weft_addr *a, char text[WEFT_ADDR_TEXT])
{
	char ip[IP_ADDR_TEXT];

	ip_addr_build_text(&in(a)->ip, ip);
	snprintf(text, WEFT_ADDR_TEXT, ip_addr_is4(&in(a)->ip) ? "%s:%u" : "[%s]:%u", ip, a->port);
}

int weft_host_addr(const struct weft_host *h, int version, struct weft_addr *a)
{
	*a = (struct weft_addr){.port = 0};
	return stack_addr(h->stack, (unsigned)version, &out(a)->ip) ? 0 : -EADDRNOTAVAIL;
}

/* ---- sockets ---- */

int weft_socket(struct weft_host *h, int kind)
{
	return sock_open(h->socks, (enum sock_kind)kind);
}

int weft_bind(struct weft_host *h, int s, const struct weft_addr *a)
{
	return sock_bind(h->socks, s, in(a));
}

int weft_connect(struct weft_host *h, int s, const struct weft_addr *a)
{
	return sock_connect(h->socks, s, in(a), now_of(h));
}

int weft_listen(struct weft_host *h, int s, int backlog)
{
	return sock_listen(h->socks, s, backlog < 1 ? 1 : (unsigned)backlog);
}

int weft_accept(struct weft_host *h, int s, struct weft_addr *peer)
{
	return sock_accept(h->socks, s, peer ? out(peer) : NULL, now_of(h));
}

ssize_t weft_sendv(struct weft_host *h, int s, const struct iovec *iov, int niov, int flags)
{
	return sock_send(h->socks, s, iov, (unsigned)niov, flags, NULL, 0, now_of(h));
}

ssize_t weft_recvv(struct weft_host *h, int s, const struct iovec *iov, int niov, int flags)
{
	return sock_recv(h->socks, s, iov, (unsigned)niov, flags, NULL, now_of(h));
}

ssize_t weft_send(struct weft_host *h, int s, const void *bytes, size_t len, int flags)
{
	const struct iovec v = {(void *)(uintptr_t)bytes, len};

	return weft_sendv(h, s, &v, 1, flags);
}

ssize_t weft_recv(struct weft_host *h, int s, void *bytes, size_t len, int flags)
{
	const struct iovec v = {bytes, len};

	return weft_recvv(h, s, &v, 1, flags);
}

ssize_t weft_sendto(struct weft_host *h, int s, const struct iovec *iov, int niov,
	const struct weft_addr *to, uint16_t size)
{
	return sock_send(h->socks, s, iov, (unsigned)niov, 0, to ? in(to) : NULL, size, now_of(h));
}

ssize_t weft_recvfrom(struct weft_host *h, int s, const struct iovec *iov, int niov,
	struct weft_addr *from, uint16_t *size)
{
	struct udp_info info = {.gso_size = 0};
	const ssize_t n = sock_recv(h->socks, s, iov, (unsigned)niov, 0, &info, now_of(h));

	if (n >= 0 && from)
		*out(from) = info.from;
	if (n >= 0 && size)
		*size = info.gso_size;
	return n;
}

int weft_shutdown(struct weft_host *h, int s)
{
	return sock_shutdown(h->socks, s, SHUT_WR, now_of(h));
}

int weft_close(struct weft_host *h, int s)
{
	return sock_close(h->socks, s, now_of(h));
}

int weft_names(struct weft_host *h, int s, struct weft_addr *local, struct weft_addr *peer)
{
	return sock_names(h->socks, s, out(local), out(peer));
}

int weft_setopt(struct weft_host *h, int s, enum weft_option o, int value)
{
	return sock_set(h->socks, s, (enum sock_option)o, value, now_of(h));
}

int weft_getopt(struct weft_host *h, int s, enum weft_option o, int *value)
{
	return sock_get(h->socks, s, (enum sock_option)o, value);
}

int weft_host_events(struct weft_host *h, struct weft_event *ev, int max)
{
	int n = 0;

	sock_work(h->socks, loop_now(h->loop));
	while (n < max) {
		ev[n].s = sock_next_ready(h->socks, &ev[n].ready, &ev[n].user);
		if (ev[n].s < 0)
			break;
		n++;
	}
	return n;
}

int weft_ready(struct weft_host *h, int s)
{
	return sock_ready(h->socks, s);
}

int weft_set_user(struct weft_host *h, int s, void *user)
{
	return sock_set_user(h->socks, s, user);
}

/* ---- without a copy ---- */

void *weft_buf_new(struct weft_host *h, uint32_t len)
{
	struct chunk_pool *pool = stack_pkts(h->stack)->chunks;
	unsigned order = 0;
	struct chunk *c;

	if (!len || len > CHUNK_MAX)
		return NULL;
	while (CHUNK_PAGE << order < len)
		order++;
	c = chunk_get(pool, order);
	if (c && chunk_size(c) < len) {
		chunk_put(pool, c);
		c = NULL;
	}
	return c ? chunk_data(pool, c) : NULL;
}

void weft_buf_free(struct weft_host *h, void *bytes)
{
	struct chunk_pool *pool = stack_pkts(h->stack)->chunks;
	struct chunk *c = bytes ? chunk_of(pool, bytes, 1) : NULL;

	if (c)
		chunk_put(pool, c);
}

ssize_t weft_send_buf(struct weft_host *h, int s, void *bytes, uint32_t len, int flags)
{
	struct chunk_pool *pool = stack_pkts(h->stack)->chunks;
	struct pkt_frag frag = {len ? chunk_of(pool, bytes, len) : NULL, bytes, len};
	struct tcp *t = sock_tcp(h->socks, s);
	ssize_t n;

	if (!frag.chunk)
		return -EFAULT;
	if (!t)
		return -ENOTCONN;
	chunk_ref(frag.chunk);
	n = tcp_send_frags(t, &frag, 1, flags & WEFT_MORE ? TCP_MORE : 0, now_of(h));
	if (n < 0)
		chunk_put(pool, frag.chunk);
	return n;
}

ssize_t weft_recv_lend(struct weft_host *h, int s, struct iovec *iov, int *niov)
{
	unsigned n = *niov > 0 ? (unsigned)*niov : 0;
	const ssize_t r = sock_recv_lend(h->socks, s, iov, &n, now_of(h));

	*niov = (int)n;
	return r;
}

int weft_recv_done(struct weft_host *h, int s, size_t n)
{
	return sock_recv_done(h->socks, s, n, now_of(h));
}

uint64_t weft_sent(struct weft_host *h, int s)
{
	const struct tcp *t = sock_tcp(h->socks, s);

	return t ? tcp_sent_total(t) : 0;
}

uint64_t weft_acked(struct weft_host *h, int s)
{
	const struct tcp *t = sock_tcp(h->socks, s);

	return t ? tcp_sent_acked(t) : 0;
}

/* ---- what it is and does ---- */

int weft_tcp_info(struct weft_host *h, int s, struct weft_tcp_info *i)
{
	const struct tcp *t = sock_tcp(h->socks, s);
	struct tcp_stat x;

	if (!t)
		return -ENOTCONN;
	tcp_stat(t, &x);
	*i = (struct weft_tcp_info){.tcpi_state = (uint8_t)x.state,
		.tcpi_ca_state = x.ca_state,
		.tcpi_snd_wscale = x.snd_wscale,
		.tcpi_rcv_wscale = x.rcv_wscale,
		.tcpi_sack = x.sack,
		.tcpi_timestamps = x.timestamps,
		.tcpi_ecn = x.ecn,
		.tcpi_rto = x.rto_us,
		.tcpi_rtt = x.rtt_us,
		.tcpi_rttvar = x.rttvar_us,
		.tcpi_min_rtt = x.min_rtt_us,
		.tcpi_snd_mss = x.snd_mss,
		.tcpi_rcv_mss = x.rcv_mss,
		.tcpi_advmss = x.advmss,
		.tcpi_pmtu = x.pmtu,
		.tcpi_snd_cwnd = x.cwnd,
		.tcpi_snd_ssthresh = x.ssthresh,
		.tcpi_snd_wnd = x.snd_wnd,
		.tcpi_rcv_wnd = x.rcv_wnd,
		.tcpi_unacked = x.unacked,
		.tcpi_notsent_bytes = x.notsent,
		.tcpi_pacing_rate = x.pacing_rate,
		.tcpi_bytes_sent = x.bytes_sent,
		.tcpi_bytes_acked = x.bytes_acked,
		.tcpi_bytes_received = x.bytes_received,
		.tcpi_bytes_retrans = x.bytes_retrans,
		.tcpi_segs_in = x.segs_in,
		.tcpi_segs_out = x.segs_out,
		.tcpi_total_retrans = x.retrans};
	return 0;
}

char *weft_host_show(struct weft_host *h)
{
	const struct stack_counters *s = stack_counters(h->stack);
	const struct tcp_counters *t = tcp_host_counters(stack_tcp(h->stack));
	json_t *o = json_object(), *host = json_object(), *tcp = json_object();
	char *text;

#define X(name) json_object_set_new(host, #name, json_integer((json_int_t)s->name));
	STACK_COUNTERS(X)
#undef X
#define X(name) json_object_set_new(tcp, #name, json_integer((json_int_t)t->name));
	TCP_COUNTERS(X)
#undef X
	json_object_set_new(o, "host", host);
	json_object_set_new(o, "tcp", tcp);
	text = json_dumps(o, JSON_INDENT(2));
	json_decref(o);
	return text;
}
