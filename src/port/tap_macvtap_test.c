/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_macvtap_test: a macvtap on one end of a veth pair, a packet socket on the other, in a network
 * namespace of this process's own. Its device is root's: skipped for others, but for what they are told.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <libmnl/libmnl.h>

#include "port/tap.h"
#include "port/tap_link.h"
#include "port/tap_ns.h"
#include "port/testns.h"
#include "port/vnet.h"
#include "wire/eth.h"

static const uint8_t mac_us[6] = {2, 0, 0, 0, 0, 7}, mac_far[6] = {2, 0, 0, 0, 0, 9};

struct fixture {
	struct loop loop;
	struct log log;
	struct err err;
	struct port *port;
	struct burst b;
	int far;
	unsigned ready, logged;
};

/* ---- the other end -------------------------------------------------------------------------- */

static void veth_make(void)
{
	union tap_link_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct nlattr *info, *data, *peer;

	nlh->nlmsg_type = RTM_NEWLINK;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "near");
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "far");
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	if (tap_link_talk(nlh)) {
		printf("no veth pair can be made here\n");
		exit(1);
	}
	set_up("near", true);
	set_up("far", true);
}

static int far_open(void)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_TYPE_IP4),
		.sll_ifindex = (int)if_nametoindex("far")};
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_TYPE_IP4));

	assert_true(s >= 0);
	assert_int_equal(bind(s, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return s;
}

static void on_ready(void *ctx, struct portq *q)
{
	(void)q;
	((struct fixture *)ctx)->ready++;
}

static void on_port(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events events = {on_ready, on_ready, on_port};

static void on_log(void *ctx, enum log_level level, const char *tag, const char *text)
{
	(void)level;
	(void)tag;
	(void)text;
	((struct fixture *)ctx)->logged++;
}

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof(*fx));

	assert_non_null(fx);
	assert_int_equal(loop_init(&fx->loop, &fx->err), 0);
	log_init(&fx->log, LOG_INFO, on_log, fx);
	veth_make();
	fx->far = far_open();
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	tap_free(fx->port);
	close(fx->far);
	if (if_nametoindex("near"))
		tap_link_delete(-1, if_nametoindex("near"));
	loop_fini(&fx->loop);
	free(fx);
	return 0;
}

static struct tap_config config(void)
{
	struct tap_config cfg = {.lower = "near"};

	memcpy(cfg.mac, mac_us, 6);
	return cfg;
}

static void open_good(struct fixture *fx, const struct tap_config *cfg)
{
	if (tap_open(&fx->port, "m", cfg, &fx->loop, &fx->log, &fx->err))
		fail_msg("%s", fx->err.text);
	fx->port->events = &events;
	fx->port->events_ctx = fx;
}

/* ---- frames --------------------------------------------------------------------------------- */

static void frame_fill(uint8_t *p, const uint8_t to[6], const uint8_t from[6], uint32_t len)
{
	memcpy(p, to, 6);
	memcpy(p + 6, from, 6);
	put_be16(p + 12, ETH_TYPE_IP4);
	for (uint32_t i = 14; i < len; i++)
		p[i] = (uint8_t)(i * 7);
}

static void far_send(struct fixture *fx, const uint8_t to[6], uint32_t len)
{
	uint8_t p[1514];

	frame_fill(p, to, mac_far, len);
	assert_int_equal(send(fx->far, p, len, 0), len);
}

/* The next IPv4 frame, lent; NULL after `ms` without one. */
static struct frame *near_next(struct fixture *fx, int ms)
{
	struct portq *q = &fx->port->q;

	for (;;) {
		struct pollfd p = {.fd = fx->loop.epfd, .events = POLLIN};

		fx->b.n = fx->b.niov = fx->b.bytes = 0;
		q->port->ops->pull(q, &fx->b, 1);
		if (fx->b.n && get_be16(fx->b.f[0].head + 12) == ETH_TYPE_IP4)
			return &fx->b.f[0];
		q->port->ops->settle(q, &fx->b, fx->b.n);
		if (q->port->ops->arm(q))
			continue;
		if (poll(&p, 1, ms) != 1)
			return NULL;
		loop_dispatch(&fx->loop, false);
	}
}

static void near_expect(struct fixture *fx, const uint8_t to[6], uint32_t len)
{
	uint8_t want[1514], got[1514];
	struct iovec iov = {got, sizeof(got)};
	struct frame *f = near_next(fx, 3000);

	assert_non_null(f);
	frame_fill(want, to, mac_far, len);
	assert_int_equal(frame_len(f), len);
	frame_copy(f, 0, len, &iov, 1, 0);
	assert_memory_equal(got, want, len);
	fx->port->ops->settle(&fx->port->q, &fx->b, fx->b.n);
}

static void far_expect(struct fixture *fx, const uint8_t *want, uint32_t len)
{
	uint8_t got[2048];
	struct pollfd p = {.fd = fx->far, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 3000), 1);
	assert_int_equal(recv(fx->far, got, sizeof(got), 0), len);
	assert_memory_equal(got, want, len);
}

static void both_ways(struct fixture *fx)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 1, 2, 3},
			     all[6] = {255, 255, 255, 255, 255, 255};
	struct frame_head head;
	uint8_t p[1514];
	struct iovec tail = {p + FRAME_HEAD, sizeof(p) - FRAME_HEAD};
	struct frame f = {.head = head.data,
		.head_len = FRAME_HEAD,
		.tail = &tail,
		.ntail = 1,
		.tail_len = sizeof(p) - FRAME_HEAD};

	far_send(fx, mac_us, 1514);
	near_expect(fx, mac_us, 1514);
	far_send(fx, mac_us, 60);
	near_expect(fx, mac_us, 60);
	far_send(fx, group, 300);
	near_expect(fx, group, 300);
	far_send(fx, all, 300);
	near_expect(fx, all, 300);
	frame_fill(p, mac_far, mac_us, sizeof(p));
	memcpy(head.data, p, FRAME_HEAD);
	assert_int_equal(fx->port->ops->push(&fx->port->q, &f, 1), 1);
	far_expect(fx, p, sizeof(p));
	assert_int_equal(fx->port->q.drop_out[DROP_IO], 0);
}

static void frames_pass_and_nothing_stays(void **state)
{
	static const uint32_t hdr[] = {0, 10, 12, 20};
	struct fixture *fx = *state;
	char device[64];

	for (unsigned i = 0; i < 8; i++) {
		struct tap_config cfg = config();
		struct stat st;
		char ifname[IFNAMSIZ];

		cfg.vnet_hdr = hdr[i % 4];
		cfg.copy = i & 1;
		cfg.queues = i % 3;
		cfg.off = i >= 4 ? VNET_BIT(CSUM) | VNET_BIT(GUEST_CSUM) : 0;
		open_good(fx, &cfg);
		assert_true(fx->port->link);
		assert_memory_equal(tap_mac(fx->port), mac_us, 6);
		assert_int_equal(fx->port->mtu, 1500);
		assert_int_equal(tap_queues(fx->port), i % 3 ? i % 3 : 1);
		assert_int_equal(tap_wire(fx->port).ifindex, if_nametoindex("near"));
		assert_int_equal(fx->port->accepts & ACCEPT_CSUM, i >= 4 ? 0 : ACCEPT_CSUM);
		snprintf(ifname, sizeof(ifname), "%s", tap_ifname(fx->port));
		snprintf(device, sizeof(device), "/dev/tap%u", if_nametoindex(ifname));
		both_ways(fx);
		tap_free(fx->port);
		fx->port = NULL;
		assert_int_equal(if_nametoindex(ifname), 0);
		assert_int_equal(stat(device, &st), -1);
	}
}

static void only_passthru_hears_what_is_for_others(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 0x55};
	struct fixture *fx = *state;
	struct tap_config cfg = config();

	open_good(fx, &cfg);
	far_send(fx, other, 100);
	assert_null(near_next(fx, 100));
	tap_free(fx->port);
	fx->port = NULL;
	cfg.mode = MACVTAP_PASSTHRU;
	memset(cfg.mac, 0, 6);
	open_good(fx, &cfg);
	far_send(fx, other, 100);
	near_expect(fx, other, 100);
}

static void deleted_with_the_interface_below(void **state)
{
	struct fixture *fx = *state;
	struct tap_config cfg = config();

	open_good(fx, &cfg);
	tap_link_delete(-1, if_nametoindex("near"));
	for (unsigned i = 0; i < 20 && fx->port->link; i++) {
		struct pollfd p = {.fd = fx->loop.epfd, .events = POLLIN};

		poll(&p, 1, 200);
		loop_dispatch(&fx->loop, false);
	}
	assert_false(fx->port->link);
	assert_non_null(strstr(tap_missing(fx->port), "deleted"));
	assert_int_equal(fx->logged, 1);
}

/* Made and opened by somebody else: it stays when the port goes, and its end is seen all the same. */
static void passed_in(void **state)
{
	struct fixture *fx = *state;
	struct tap_config cfg = config(), mine = {0};
	struct tap_if theirs;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(tap_if_open(&cfg, &theirs, &fx->err), 0);
		mine.ifname = theirs.ifname;
		mine.fd = dup(theirs.fd[0]);
		close(theirs.fd[0]);
		theirs.fd[0] = -1;
		open_good(fx, &mine);
		both_ways(fx);
		if (i) {
			tap_if_close(&theirs);
			for (unsigned k = 0; k < 20 && fx->port->link; k++)
				loop_dispatch(&fx->loop, false);
			assert_false(fx->port->link);
			assert_non_null(strstr(tap_missing(fx->port), "deleted"));
			continue;
		}
		tap_free(fx->port);
		fx->port = NULL;
		assert_true(if_nametoindex(theirs.ifname));
		tap_if_close(&theirs);
		assert_false(if_nametoindex(theirs.ifname));
	}
}

/* Must fail with this code and these words, in one line, and leave nothing. */
static void refuse(
	struct fixture *fx, const struct tap_config *cfg, int code, const char *a, const char *b)
{
	struct port *port;
	struct if_nameindex *all;
	int rc = tap_open(&port, "m", cfg, &fx->loop, &fx->log, &fx->err);

	if (rc != -code)
		fail_msg("got %d (%s), not %d, for %s", rc, rc ? fx->err.text : "", -code, a);
	if (!strstr(fx->err.text, a) || !strstr(fx->err.text, b) || strchr(fx->err.text, '\n'))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", fx->err.text, a, b);
	all = if_nameindex();
	for (struct if_nameindex *i = all; i->if_index; i++)
		assert_null(strstr(i->if_name, fx->port ? "macvtap1" : "macvtap"));
	if_freenameindex(all);
}

static void mistakes_are_told(void **state)
{
	struct fixture *fx = *state;
	struct tap_config cfg = config();

	cfg.lower = "nowhere";
	refuse(fx, &cfg, ENODEV, "macvtap:nowhere", "ip link");
	cfg.lower = "a-name-of-16-byt";
	refuse(fx, &cfg, ENAMETOOLONG, "macvtap:a-name", "15");
	cfg.lower = "lo";
	refuse(fx, &cfg, EINVAL, "macvtap:lo", "loopback");
	cfg.lower = "near";
	cfg.mtu = 9000;
	refuse(fx, &cfg, EINVAL, "mtu=9000", "below");
	cfg.mtu = 0;
	cfg.vnet_hdr = 11;
	refuse(fx, &cfg, EINVAL, "vnet_hdr=11", "10, 12 or 20");
	cfg.vnet_hdr = 0;
	cfg.copy = true;
	cfg.copying.order = CHUNK_ORDERS;
	refuse(fx, &cfg, ERANGE, "order=5", "4");
	cfg = config();
	open_good(fx, &cfg);
	refuse(fx, &cfg, EADDRINUSE, "macvtap:near", "mac=");
	memset(cfg.mac, 0, 6);
	cfg.mode = MACVTAP_PASSTHRU;
	refuse(fx, &cfg, EINVAL, "macvtap:near", "passthru");
}

/* In a child: the first line of what it is told comes back. */
static void told_without_rights(struct fixture *fx, bool userns, char *text, size_t size)
{
	struct tap_config cfg = config();
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		struct err err = {"it was opened"};
		struct port *port;

		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1); /* or /proc/self is root's still */
		if (userns && !testns_make())
			snprintf(err.text, sizeof(err.text), "skip");
		else if (userns)
			veth_make();
		if (strcmp(err.text, "skip") != 0)
			tap_open(&port, "m", &cfg, &fx->loop, &fx->log, &err);
		(void)!write(fds[1], err.text, strlen(err.text));
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], text, size - 1);
	text[n > 0 ? n : 0] = 0;
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

static void missing_rights_are_told(void **state)
{
	struct fixture *fx = *state;
	char text[512];

	told_without_rights(fx, false, text, sizeof(text));
	if (!strstr(text, "CAP_NET_ADMIN") || !strstr(text, "macvtap:near"))
		fail_msg("%s", text);
	told_without_rights(fx, true, text, sizeof(text));
	if (!strcmp(text, "skip"))
		print_message("no user namespace for nobody: not asked there\n");
	else if (!strstr(text, "/dev/tap") || !strstr(text, "user namespace"))
		fail_msg("%s", text);
}

/* Is there macvtap, and may we? Its reason on standard output, or 0. */
static bool can_run(void)
{
	struct fixture fx = {0};
	struct tap_config cfg = config();
	struct err err;
	int rc;

	if (geteuid() || unshare(CLONE_NEWNET)) {
		printf("skipped: a macvtap's device is root's\n");
		return false;
	}
	veth_make();
	assert_int_equal(loop_init(&fx.loop, &err), 0);
	log_init(&fx.log, LOG_WARN, on_log, &fx);
	rc = tap_open(&fx.port, "m", &cfg, &fx.loop, &fx.log, &err);
	if (rc == -EOPNOTSUPP || rc == -ENOENT || rc == -EPERM || rc == -EACCES)
		printf("skipped: %s\n", err.text);
	tap_free(fx.port);
	tap_link_delete(-1, if_nametoindex("near"));
	loop_fini(&fx.loop);
	return !rc || (rc != -EOPNOTSUPP && rc != -ENOENT && rc != -EPERM && rc != -EACCES);
}

#define WITH_VETH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_VETH(frames_pass_and_nothing_stays),
		WITH_VETH(only_passthru_hears_what_is_for_others),
		WITH_VETH(deleted_with_the_interface_below),
		WITH_VETH(passed_in),
		WITH_VETH(mistakes_are_told),
		WITH_VETH(missing_rights_are_told),
	};

	if (!can_run())
		return TESTNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
