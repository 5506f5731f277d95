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
 * Documentation/networking/tuntap.rst], setns(2), rtnetlink(7)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "port/tap_ns.h"
#include "port/vnet.h"

/* Newer than the headers of some distributions. */
#define F_USO4 0x20u
#define F_USO6 0x40u

#define TXQLEN   1000 /* frames the kernel holds for us: as for a hardware interface */
#define PATH_LEN 256

struct address {
	uint8_t family, prefix;
	uint8_t bytes[16];
};

/* ---- words ---------------------------------------------------------------------------------- */

static int sysctl_number(const char *path)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 1)
		text[0] = 0;
	close(fd);
	return text[0] ? atoi(text) : -1;
}

/* Why an unprivileged user cannot have a namespace of his own here; "" if nothing forbids it. */
static const char *userns_forbidden(void)
{
	if (sysctl_number("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return "; user namespaces are forbidden here (kernel.unprivileged_userns_clone=0)";
	if (sysctl_number("/proc/sys/user/max_user_namespaces") == 0)
		return "; user namespaces are forbidden here (user.max_user_namespaces=0)";
	if (sysctl_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
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

static int address_parse(const char *ifname, const char *text, struct address *a, struct err *err)
{
	char addr[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : sizeof(addr);
	unsigned max;
	unsigned long prefix;
	char *end;

	if (len >= sizeof(addr))
		goto bad;
	memcpy(addr, text, len);
	addr[len] = 0;
	memset(a, 0, sizeof(*a));
	a->family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a->family, addr, a->bytes) != 1 || slash[1] < '0' || slash[1] > '9')
		goto bad;
	max = a->family == AF_INET6 ? 128 : 32;
	prefix = strtoul(slash + 1, &end, 10);
	if (*end || prefix > max)
		goto bad;
	a->prefix = (uint8_t)prefix;
	return 0;
bad:
	return err_set(err, EINVAL,
		"tap:%s: ip=%.60s is not an address: ADDR/LEN, like 10.0.0.1/24 or fd00::1/64",
		ifname, text);
}

/* All that can be wrong before any kernel object is touched. */
static int config_check(const struct tap_config *cfg, struct err *err)
{
	struct address a;
	int rc = ifname_check(cfg->ifname, err);

	if (!rc && cfg->mtu && (cfg->mtu < ETH_MTU_MIN || cfg->mtu > ETH_MTU_MAX))
		rc = err_set(err, ERANGE, "tap:%s: mtu=%u is not between %d and %d", cfg->ifname,
			cfg->mtu, ETH_MTU_MIN, ETH_MTU_MAX);
	for (const char *const *t = cfg->addr; !rc && t && *t; t++)
		rc = address_parse(cfg->ifname, *t, &a, err);
	return rc;
}

/* ---- rtnetlink ------------------------------------------------------------------------------ */

union nl_buf {
	struct nlmsghdr align;
	uint8_t bytes[4096];
};

/* Send one request, wait for its acknowledgement. 0 or -errno. */
static int nl_talk(struct nlmsghdr *nlh)
{
	union nl_buf answer;
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	ssize_t n;
	int rc = 0;

	if (!s)
		return -errno;
	nlh->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
		mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0 ||
		(n = mnl_socket_recvfrom(s, answer.bytes, sizeof(answer.bytes))) < 0 ||
		mnl_cb_run(answer.bytes, (size_t)n, 1, mnl_socket_get_portid(s), NULL, NULL) < 0)
		rc = -errno;
	mnl_socket_close(s);
	return rc;
}

/* mtu 0, txqlen 0: leave it. */
static int link_set(unsigned ifindex, uint32_t mtu, uint32_t txqlen, bool up)
{
	union nl_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	nlh->nlmsg_type = RTM_NEWLINK;
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex;
	if (up)
		ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	if (mtu)
		mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	if (txqlen)
		mnl_attr_put_u32(nlh, IFLA_TXQLEN, txqlen);
	return nl_talk(nlh);
}

/*
 * No duplicate address detection: the user said that this is the address; it works at once, as a v4
 * one does. One that is there already is not an error: persistent taps keep theirs.
 */
static int address_add(unsigned ifindex, const struct address *a)
{
	union nl_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	size_t len = a->family == AF_INET6 ? 16 : 4;

	nlh->nlmsg_type = RTM_NEWADDR;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	ifa->ifa_family = a->family;
	ifa->ifa_prefixlen = a->prefix;
	ifa->ifa_flags = a->family == AF_INET6 ? IFA_F_NODAD : 0;
	ifa->ifa_index = ifindex;
	mnl_attr_put(nlh, IFA_LOCAL, len, a->bytes);
	mnl_attr_put(nlh, IFA_ADDRESS, len, a->bytes);
	if (a->family == AF_INET && a->prefix < 31) {
		uint32_t ip;
		memcpy(&ip, a->bytes, 4);
		ip |= htonl(a->prefix ? UINT32_MAX >> a->prefix : UINT32_MAX);
		mnl_attr_put_u32(nlh, IFA_BROADCAST, ip);
	}
	return nl_talk(nlh);
}

static uint32_t link_mtu(const char *ifname)
{
	struct ifreq ifr = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (s < 0)
		return 0;
	if (ioctl(s, SIOCGIFMTU, &ifr))
		ifr.ifr_mtu = 0;
	close(s);
	return (uint32_t)ifr.ifr_mtu;
}

static int addresses_set(const struct tap_config *cfg, unsigned ifindex, struct err *err)
{
	struct address a;

	for (const char *const *t = cfg->addr; t && *t; t++) {
		int rc = address_parse(cfg->ifname, *t, &a, err);
		if (rc)
			return rc;
		rc = address_add(ifindex, &a);
		if (rc == -EPERM)
			return err_no_right(err, cfg->ifname);
		if (rc && a.family == AF_INET6)
			return err_set(err, -rc,
				"tap:%s: ip=%s: %s: is IPv6 disabled here "
				"(net.ipv6.conf.*.disable_ipv6, or an MTU "
				"below 1280)?",
				cfg->ifname, *t, strerror(-rc));
		if (rc)
			return err_set(err, -rc, "tap:%s: ip=%s: the kernel refuses it: %s",
				cfg->ifname, *t, strerror(-rc));
	}
	return 0;
}

static int link_configure(const struct tap_config *cfg, bool created, struct err *err)
{
	unsigned ifindex = if_nametoindex(cfg->ifname);
	int rc;

	if (!ifindex)
		return err_set(
			err, ENODEV, "tap:%s: the interface went away during set-up", cfg->ifname);
	rc = link_set(ifindex, cfg->mtu, created ? TXQLEN : 0, false);
	if (rc == -EPERM)
		return err_no_right(err, cfg->ifname);
	if (rc)
		return err_set(err, -rc,
			"tap:%s: mtu=%u: the kernel refuses it: %s; a tap takes %d to %d",
			cfg->ifname, cfg->mtu, strerror(-rc), ETH_MTU_MIN, ETH_MTU_MAX - 14);
	rc = addresses_set(cfg, ifindex, err);
	if (rc)
		return rc;
	rc = link_set(ifindex, 0, 0, true);
	if (rc)
		return err_set(
			err, -rc, "tap:%s: cannot bring it up: %s", cfg->ifname, strerror(-rc));
	return 0;
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

/* In the namespace the interface is to live in. */
static int tap_if_setup(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	bool created = !if_nametoindex(cfg->ifname);
	int fd = tun_open(err), rc;

	if (fd < 0)
		return fd;
	rc = tun_attach(fd, cfg->ifname, err);
	if (!rc)
		rc = tun_offloads(fd, cfg, &out->features, err);
	if (!rc)
		rc = link_configure(cfg, created, err);
	if (rc) {
		close(fd);
		return rc;
	}
	out->fd = fd;
	out->mtu = link_mtu(cfg->ifname);
	return 0;
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
	fd = open(path, O_RDONLY | O_CLOEXEC);
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

union fd_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void reply_send(int sock, struct reply *r)
{
	union fd_control control = {0};
	struct iovec iov = {r, sizeof(*r)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (!r->rc) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &r->tap.fd, sizeof(int));
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
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(*r))
		return err_set(err, EIO, "the process that was to set the tap up ended early");
	c = CMSG_FIRSTHDR(&m);
	if (r->rc)
		return err_set(err, -r->rc, "%s", r->err.text);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return err_set(err, EMFILE,
			"the tap's descriptor could not be passed: too many open files");
	memcpy(&r->tap.fd, CMSG_DATA(c), sizeof(int));
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
