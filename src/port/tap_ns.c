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
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/tap_ns.h"
#include "port/vnet.h"

/* Newer than the headers of some distributions. */
#define F_USO4 0x20u
#define F_USO6 0x40u

#define TXQLEN   1000 /* frames the kernel holds for us: as for a hardware interface */
#define PATH_LEN 256

/* ---- words ---------------------------------------------------------------------------------- */

/* Does this kernel have that setting, with that value of one digit? */
static bool sysctl_is(const char *path, char value)
{
	char text[2] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n >= 1 && text[0] == value && (n == 1 || text[1] == '\n');
}

/* Why an unprivileged user cannot have a namespace of his own here; "" if nothing forbids it. */
static const char *userns_forbidden(void)
{
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		return "; user namespaces are forbidden here (kernel.unprivileged_userns_clone=0)";
	if (sysctl_is("/proc/sys/user/max_user_namespaces", '0'))
		return "; user namespaces are forbidden here (user.max_user_namespaces=0)";
	if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
		return "; user namespaces are restricted here "
		       "(kernel.apparmor_restrict_unprivileged_userns=1)";
	return "";
}

static int err_no_right(struct err *err, const char *ifname)
{
	return err_set(err, EPERM,
		"tap:%s needs CAP_NET_ADMIN in the network namespace: run as root, inside `unshare "
		"-Urn`, "
		"or give netns=PID of a namespace you own%s",
		ifname, userns_forbidden());
}

static int ifname_check(const char *ifname, struct err *err)
{
	size_t len = strlen(ifname);

	if (len >= IFNAMSIZ)
		return err_set(err, ENAMETOOLONG,
			"tap:%.40s: interface name of %zu bytes, at most %d are allowed", ifname,
			len, IFNAMSIZ - 1);
	if (!len || strpbrk(ifname, "/:% \t\r\n\v\f") || !strcmp(ifname, ".") ||
		!strcmp(ifname, ".."))
		return err_set(err, EINVAL,
			"tap:%s: not an interface name: 1 to %d characters without space, '/', ':' "
			"and '%%'",
			ifname, IFNAMSIZ - 1);
	return 0;
}

/* All that can be wrong before any kernel object is touched. */
static int config_check(const struct tap_config *cfg, struct err *err)
{
	int rc = ifname_check(cfg->ifname, err);

	if (!rc && cfg->mtu && (cfg->mtu < ETH_MTU_MIN || cfg->mtu > ETH_MTU_MAX))
		rc = err_set(err, ERANGE, "tap:%s: mtu=%u is not between %d and %d", cfg->ifname,
			cfg->mtu, ETH_MTU_MIN, ETH_MTU_MAX);
	for (const char *const *t = cfg->addr; !rc && t && *t; t++)
		rc = tap_address_check(cfg->ifname, *t, err);
	return rc;
}

/* ---- /dev/net/tun --------------------------------------------------------------------------- */

static int tun_open(struct err *err)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		return err_set(err, errno,
			"/dev/net/tun is missing: load the kernel module (modprobe tun), or give "
			"the container "
			"this device");
	if (errno == EACCES || errno == EPERM)
		return err_set(err, errno,
			"/dev/net/tun: permission denied: it needs mode 0666, or a group you are "
			"in");
	return err_set(err, errno, "/dev/net/tun: %s", strerror(errno));
}

static int tun_attach(int fd, const char *ifname, struct err *err)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (!ioctl(fd, TUNSETIFF, &ifr))
		return 0;
	switch (errno) {
	case EPERM:
		return err_no_right(err, ifname);
	case EBUSY:
		return err_set(err, EBUSY,
			"tap:%s is in use by another process: end that one, or choose another name",
			ifname);
	case EINVAL:
		return err_set(err, EINVAL,
			"tap:%s: an interface of this name is there and is not a tap with one "
			"queue: choose another "
			"name",
			ifname);
	default:
		return err_set(err, errno, "tap:%s: cannot create the interface: %s", ifname,
			strerror(errno));
	}
}

/* host_*, csum: what the kernel may hand us. */
static unsigned tun_offload_of(uint64_t features)
{
	unsigned o = 0;

	if (features & VNET_BIT(CSUM))
		o |= TUN_F_CSUM;
	if (features & VNET_BIT(HOST_TSO4))
		o |= TUN_F_TSO4;
	if (features & VNET_BIT(HOST_TSO6))
		o |= TUN_F_TSO6;
	if (features & VNET_BIT(HOST_ECN))
		o |= TUN_F_TSO_ECN;
	if (features & VNET_BIT(HOST_USO))
		o |= F_USO4 | F_USO6;
	return o;
}

/*
 * A kernel that can hand us UDP super-packets can take them, too, so the same question answers
 * both; it is asked even when the user wants only one direction.
 */
static int tun_offloads(int fd, const struct tap_config *cfg, uint64_t *features, struct err *err)
{
	const uint64_t uso = VNET_BIT(HOST_USO) | VNET_BIT(GUEST_USO4) | VNET_BIT(GUEST_USO6);
	uint64_t f = vnet_features_all() & ~cfg->off;
	int size = TAP_HDR_LEN, on = 1;

	if (ioctl(fd, TUNSETVNETHDRSZ, &size))
		return err_set(err, errno, "tap:%s: virtio-net headers of %d bytes: %s",
			cfg->ifname, size, strerror(errno));
	/* Without it headers have the machine's order, which is the same on a little-endian one. */
	(void)ioctl(fd, TUNSETVNETLE, &on);
	if (ioctl(fd, TUNSETOFFLOAD, (unsigned long)(TUN_F_CSUM | F_USO4 | F_USO6)))
		f &= ~uso;
	f = vnet_features_close(f);
	if (ioctl(fd, TUNSETOFFLOAD, (unsigned long)tun_offload_of(f)))
		return err_set(err, errno, "tap:%s: the kernel refuses the offloads 0x%x: %s",
			cfg->ifname, tun_offload_of(f), strerror(errno));
	*features = f;
	return 0;
}

static int tap_attach(
	const struct tap_config *cfg, bool created, struct tap_if *out, struct err *err)
{
	int rc = tun_attach(out->fd, cfg->ifname, err);

	if (!rc)
		rc = tun_offloads(out->fd, cfg, &out->features, err);
	if (rc)
		return rc;
	out->ifindex = if_nametoindex(cfg->ifname);
	out->watch = tap_link_watch(out->ifindex);
	if (out->watch < 0)
		return err_set(err, -out->watch, "tap:%s: cannot watch its link: %s", cfg->ifname,
			strerror(-out->watch));
	rc = tap_link_setup(cfg->ifname, cfg->mtu, created ? TXQLEN : 0, cfg->addr, err);
	if (!rc)
		rc = tap_link_get(cfg->ifname, &out->link);
	return rc == -EPERM ? err_no_right(err, cfg->ifname) : rc;
}

/* In the namespace the interface is to live in. */
static int tap_if_setup(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	bool created = !if_nametoindex(cfg->ifname);
	int rc;

	out->watch = -1;
	out->fd = tun_open(err);
	if (out->fd < 0)
		return out->fd;
	rc = tap_attach(cfg, created, out, err);
	if (rc) {
		close(out->fd);
		if (out->watch >= 0)
			close(out->watch);
	}
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
			netns, userns_forbidden());
	if (rc)
		return err_set(err, -rc, "netns=%s: cannot enter it: %s", netns, strerror(-rc));
	return 0;
}

struct reply {
	int rc;
	struct tap_if tap;
	struct err err;
};

#define REPLY_FDS 2 /* the tap, the watch */

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
		const int fds[REPLY_FDS] = {r->tap.fd, r->tap.watch};
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
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
	int fds[REPLY_FDS] = {-1, -1};
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
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(sizeof(fds)))
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (fds[1] < 0) { /* the kernel passes as many as there is room for */
		if (fds[0] >= 0)
			close(fds[0]);
		return err_set(err, EMFILE,
			"the tap's descriptors could not be passed: too many open files");
	}
	r->tap.fd = fds[0];
	r->tap.watch = fds[1];
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
	_exit(0);
}

static int tap_if_open_in(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	struct reply r;
	int sv[2], rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return err_set(err, errno, "tap:%s: socketpair: %s", cfg->ifname, strerror(errno));
	pid = fork();
	if (pid < 0) {
		rc = err_set(err, errno, "tap:%s: fork: %s", cfg->ifname, strerror(errno));
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
