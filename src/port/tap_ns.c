/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_ns: from a configuration to a tap descriptor that is ready to use.
 *
 *	netns=   parse, then fork ------------ child: setns(user)? setns(net)
 *	                                              tap_if_setup()
 *	         recvmsg  <---- descriptor, or text ---- sendmsg
 *	none     tap_if_setup()
 *
 * The namespace of a tap is that of the thread that opens /dev/net/tun, whoever uses the descriptor
 * later; so a child that enters it and passes the descriptor back is all it takes. The user
 * namespace that owns the network namespace is entered first only where our own rights are not
 * enough. The interface is set up by rtnetlink, so that no other program is needed. [Linux
 * Documentation/networking/tuntap.rst], setns(2)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/tap_dev.h"
#include "port/tap_ns.h"

#define TXQLEN   1000 /* frames the kernel holds for us: as for a hardware interface */
#define PATH_LEN 256

/* ---- what is asked for ---------------------------------------------------------------------- */

static int ifname_check(const char *kind, const char *ifname, struct err *err)
{
	size_t len = strlen(ifname);

	if (len >= IFNAMSIZ)
		return err_set(err, ENAMETOOLONG,
			"%s:%.40s: interface name of %zu bytes, at most %d are allowed", kind,
			ifname, len, IFNAMSIZ - 1);
	if (!len || strpbrk(ifname, "/:% \t\r\n\v\f") || !strcmp(ifname, ".") ||
		!strcmp(ifname, ".."))
		return err_set(err, EINVAL,
			"%s:%s: not an interface name: 1 to %d characters without space, '/', ':' "
			"and '%%'",
			kind, ifname, IFNAMSIZ - 1);
	return 0;
}

/* All that can be wrong before any kernel object is touched. */
static int config_check(const struct tap_config *cfg, struct err *err)
{
	char who[TAP_WHO];
	int rc = ifname_check(
		cfg->lower ? "macvtap" : "tap", cfg->lower ? cfg->lower : cfg->ifname, err);

	if (rc)
		return rc;
	tap_who(cfg, who);
	if (cfg->vnet_hdr && cfg->vnet_hdr != 10 && cfg->vnet_hdr != 12 && cfg->vnet_hdr != 20)
		return err_set(
			err, EINVAL, "%s: vnet_hdr=%u is not 10, 12 or 20", who, cfg->vnet_hdr);
	if (cfg->copying.order >= CHUNK_ORDERS)
		return err_set(err, ERANGE, "%s: order=%u is not between 0 and %d", who,
			cfg->copying.order, CHUNK_ORDERS - 1);

	if (cfg->queues > TAP_QUEUES)
		return err_set(err, ERANGE, "%s: queues=%u is not between 1 and %d", who,
			cfg->queues, TAP_QUEUES);
	if (cfg->queues > 1 && cfg->fd)
		return err_set(err, EINVAL,
			"%s: fd=%d is one queue: leave queues=%u out, or let weft open the tap",
			who, cfg->fd, cfg->queues);
	if (cfg->mtu && (cfg->mtu < ETH_MTU_MIN || cfg->mtu > ETH_MTU_MAX))
		rc = err_set(err, ERANGE, "%s: mtu=%u is not between %d and %d", who, cfg->mtu,
			ETH_MTU_MIN, ETH_MTU_MAX);
	for (const char *const *t = cfg->addr; !rc && t && *t; t++)
		rc = tap_address_check(who, *t, err);
	return rc;
}

/* ---- set-up --------------------------------------------------------------------------------- */

/* A namespace is told by its inode; without /proc it is not. */
static struct tap_wire wire_find(const struct tap_if *tap)
{
	struct stat st;
	int below = tap->macvtap ? tap_link_below(tap->ifindex) : (int)tap->ifindex;

	if (below <= 0 || stat("/proc/thread-self/ns/net", &st))
		return (struct tap_wire){0};
	return (struct tap_wire){st.st_ino, (unsigned)below};
}

static int link_ready(
	const struct tap_config *cfg, bool created, struct tap_if *out, struct err *err)
{
	/* Which groups are joined behind a macvtap nobody tells the kernel: it takes all. */
	const struct tap_link_want want = {
		.mtu = cfg->mtu,
		.txqlen = created ? TXQLEN : 0,
		.flags = cfg->lower ? IFF_ALLMULTI : 0,
		.addr = cfg->addr,
	};
	char who[TAP_WHO];
	int rc;

	out->watch = tap_link_watch(out->ifindex);
	if (out->watch < 0)
		return err_set(err, -out->watch, "%s: cannot watch its link: %s", tap_who(cfg, who),
			strerror(-out->watch));
	rc = tap_link_setup(tap_who(cfg, who), out->ifname, &want, err);
	if (!rc)
		rc = tap_link_get(out->ifname, &out->link);
	if (!rc)
		rc = tap_link_mac(out->ifname, out->mac);
	out->wire = wire_find(out);
	return rc == -EPERM ? tap_no_right(err, cfg) : rc;
}

void tap_if_init(struct tap_if *tap)
{
	*tap = (struct tap_if){.watch = -1};
	for (unsigned i = 0; i < TAP_QUEUES; i++)
		tap->fd[i] = -1;
}

void tap_if_close(struct tap_if *tap)
{
	tap_dev_close(tap);
	if (tap->made)
		tap_link_delete(tap->watch, tap->ifindex);
	if (tap->watch >= 0)
		close(tap->watch);
	tap->watch = -1;
	tap->made = false;
}

/* In the namespace the interface is to live in. */
static int tap_if_setup(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	bool created = cfg->lower || !if_nametoindex(cfg->ifname);
	int rc;

	tap_if_init(out);
	rc = tap_dev_open(cfg, out, err);
	if (rc)
		return rc;
	rc = link_ready(cfg, created, out, err);
	if (rc)
		tap_if_close(out);
	return rc;
}

/* ---- namespaces ----------------------------------------------------------------------------- */

static bool all_digits(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

/* The descriptor of the namespace that the text names. */
static int netns_open(const char *netns, struct err *err)
{
	char path[PATH_LEN];
	bool pid = all_digits(netns), is_path = strchr(netns, '/');
	int n = snprintf(path, sizeof(path),
		is_path ? "%s"
		: pid   ? "/proc/%s/ns/net"
			: "/run/netns/%s",
		netns);
	int fd;

	if (!*netns || n >= (int)sizeof(path))
		return err_set(err, EINVAL,
			"netns=%.40s: a name of ip-netns(8), a process id, or a path", netns);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* it may be a pipe: do not wait */
	if (fd >= 0)
		return fd;
	if (errno == ENOENT && pid)
		return err_set(err, ENOENT, "netns=%s: there is no process %s", netns, netns);
	if (errno == ENOENT && !is_path)
		return err_set(err, ENOENT,
			"netns=%s: no such network namespace: %s is not there (ip netns add %s); "
			"or give a process id, "
			"or a path",
			netns, path, netns);
	if ((errno == EACCES || errno == EPERM) && pid)
		return err_set(err, errno,
			"netns=%s: process %s is not yours: its namespaces are closed to you",
			netns, netns);
	return err_set(err, errno, "netns=%s: %s: %s", netns, path, strerror(errno));
}

static int netns_enter(const char *netns, struct err *err)
{
	int fd = netns_open(netns, err), user, rc;

	if (fd < 0)
		return fd;
	rc = setns(fd, CLONE_NEWNET) ? -errno : 0;
	if (rc == -EPERM) {
		/* Whoever may enter the user namespace that owns it may enter it then. */
		user = ioctl(fd, NS_GET_USERNS);
		if (user >= 0 && !setns(user, CLONE_NEWUSER))
			rc = setns(fd, CLONE_NEWNET) ? -errno : 0;
		if (user >= 0)
			close(user);
	}
	close(fd);
	if (rc == -EINVAL || rc == -ENOTTY)
		return err_set(err, EINVAL, "netns=%s is not a network namespace", netns);
	if (rc == -EPERM)
		return err_set(err, EPERM,
			"netns=%s: entering it is not permitted: the namespace is not owned by "
			"this user (run as its "
			"owner or as root)%s",
			netns, tap_userns_forbidden());
	if (rc)
		return err_set(err, -rc, "netns=%s: cannot enter it: %s", netns, strerror(-rc));
	return 0;
}

struct reply {
	int rc;
	struct tap_if tap;
	struct err err;
};

#define REPLY_FDS (1 + TAP_QUEUES) /* the watch, the tap's queues */

union fd_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(REPLY_FDS * sizeof(int))];
};

static void reply_send(int sock, struct reply *r)
{
	union fd_control control = {0};
	struct iovec iov = {r, sizeof(*r)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (!r->rc) {
		const size_t len = (1 + r->tap.queues) * sizeof(int);
		int fds[REPLY_FDS] = {r->tap.watch};

		memcpy(fds + 1, r->tap.fd, r->tap.queues * sizeof(int));
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(len);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(c), fds, len);
	}
	(void)sendmsg(sock, &m, MSG_NOSIGNAL);
}

static int reply_receive(int sock, struct reply *r, struct err *err)
{
	union fd_control control = {0};
	struct iovec iov = {r, sizeof(*r)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	int fds[REPLY_FDS] = {-1};
	unsigned got = 0;
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(*r))
		return err_set(err, EIO, "the process that was to set the tap up ended early");
	if (r->rc)
		return err_set(err, -r->rc, "%s", r->err.text);
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(sizeof(fds))) {
		got = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), got * sizeof(int));
	}
	if (got != 1 + r->tap.queues) { /* the kernel passes as many as there is room for */
		while (got)
			close(fds[--got]);
		return err_set(err, EMFILE,
			"the tap's descriptors could not be passed: too many open files");
	}
	r->tap.watch = fds[0];
	memcpy(r->tap.fd, fds + 1, r->tap.queues * sizeof(int));
	return 0;
}

/* The child: its own namespaces, a copy of our memory, one answer. */
static void netns_child(const struct tap_config *cfg, int sock)
{
	struct reply r = {0};

	r.rc = netns_enter(cfg->netns, &r.err);
	if (!r.rc)
		r.rc = tap_if_setup(cfg, &r.tap, &r.err);
	reply_send(sock, &r);
	_exit(0); /* a macvtap made stays: the parent has its watch, and deletes it through that */
}

static int tap_if_open_in(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	struct reply r;
	char who[TAP_WHO];
	int sv[2], rc;
	pid_t pid;

	tap_who(cfg, who);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return err_set(err, errno, "%s: socketpair: %s", who, strerror(errno));
	pid = fork();
	if (pid < 0) {
		rc = err_set(err, errno, "%s: fork: %s", who, strerror(errno));
		close(sv[1]);
		goto out;
	}
	if (!pid)
		netns_child(cfg, sv[1]);
	close(sv[1]);
	rc = reply_receive(sv[0], &r, err);
	/* A host program that reaps every child may have been faster. */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!rc)
		*out = r.tap;
out:
	close(sv[0]);
	return rc;
}

int tap_if_open(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	int rc = config_check(cfg, err);

	if (rc)
		return rc;
	return cfg->netns ? tap_if_open_in(cfg, out, err) : tap_if_setup(cfg, out, err);
}
