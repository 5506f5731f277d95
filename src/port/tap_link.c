/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_link: requests to, and notifications from, the kernel's routing socket. Requests block for
 * their acknowledgement; the watch never does. A filter in the kernel keeps the news of all other
 * interfaces away, so that an idle tap on a busy host wakes nobody.
 * rtnetlink(7), netlink(7)
 */
#include "port/tap_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "base/limits.h"

struct address {
	uint8_t family, prefix;
	uint8_t bytes[16];
};

/* ---- addresses ------------------------------------------------------------------------------ */

static int address_parse(const char *who, const char *text, struct address *a, struct err *err)
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
		"%s: ip=%.60s is not right: must be ADDR/LEN such as 10.0.0.1/24 or fd00::1/64",
		who, text);
}

int tap_address_check(const char *who, const char *text, struct err *err)
{
	struct address a = {0};

	return address_parse(who, text, &a, err);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* `answer` gets the messages that come before the acknowledgement; NULL: there are none. */
static int link_talk(struct nlmsghdr *nlh, mnl_cb_t answer, void *arg)
{
	union tap_link_buf buf;
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	ssize_t n;
	int rc = MNL_CB_OK;

	if (!s)
		return -errno;
	nlh->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
		mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0)
		rc = -errno;
	while (rc >= MNL_CB_OK) {
		n = mnl_socket_recvfrom(s, buf.bytes, sizeof(buf.bytes));
		if (n >= 0)
			n = mnl_cb_run(
				buf.bytes, (size_t)n, 1, mnl_socket_get_portid(s), answer, arg);
		rc = n < 0 ? -errno : (int)n;
	}
	mnl_socket_close(s);
	return rc;
}

int tap_link_talk(struct nlmsghdr *nlh)
{
	return link_talk(nlh, NULL, NULL);
}

static int below_of(const struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *attr;
	int *below = arg;
	bool elsewhere = false;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(struct ifinfomsg))
	{
		elsewhere |= mnl_attr_get_type(attr) == IFLA_LINK_NETNSID;
		if (mnl_attr_get_type(attr) == IFLA_LINK &&
			mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			*below = (int)mnl_attr_get_u32(attr);
	}
	if (elsewhere)
		*below = 0;
	return MNL_CB_OK;
}

int tap_link_below(unsigned ifindex)
{
	union tap_link_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	int below = 0, rc;

	nlh->nlmsg_type = RTM_GETLINK;
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex;
	rc = link_talk(nlh, below_of, &below);
	return rc < 0 ? rc : below;
}

/* mtu 0, txqlen 0, flags 0: leave it. */
static int link_set(unsigned ifindex, uint32_t mtu, uint32_t txqlen, unsigned flags)
{
	union tap_link_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	nlh->nlmsg_type = RTM_NEWLINK;
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)ifindex;
	ifi->ifi_flags = ifi->ifi_change = flags;
	if (mtu)
		mnl_attr_put_u32(nlh, IFLA_MTU, mtu);
	if (txqlen)
		mnl_attr_put_u32(nlh, IFLA_TXQLEN, txqlen);
	return tap_link_talk(nlh);
}

/*
 * No duplicate address detection: the user said that this is the address; it works at once, as a v4
 * one does. One that is there already is not an error: persistent taps keep theirs.
 */
static int address_add(unsigned ifindex, const struct address *a)
{
	union tap_link_buf buf;
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
	return tap_link_talk(nlh);
}

static int addresses_set(
	const char *who, unsigned ifindex, const char *const *addr, struct err *err)
{
	struct address a = {0};

	for (const char *const *t = addr; t && *t; t++) {
		int rc = address_parse(who, *t, &a, err);
		if (rc)
			return rc;
		rc = address_add(ifindex, &a);
		if (rc == -EPERM)
			return rc;
		if (rc && a.family == AF_INET6)
			return err_set(err, -rc,
				"%s: ip=%s: %s: is IPv6 disabled here "
				"(net.ipv6.conf.*.disable_ipv6, or an MTU below "
				"1280)?",
				who, *t, strerror(-rc));
		if (rc)
			return err_set(err, -rc, "%s: ip=%s: the kernel refuses it: %s", who, *t,
				strerror(-rc));
	}
	return 0;
}

int tap_link_get(const char *ifname, struct tap_link *link)
{
	struct ifreq ifr = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (s < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	rc = ioctl(s, SIOCGIFFLAGS, &ifr) ? -errno : 0;
	link->up = ifr.ifr_flags & IFF_UP;
	if (!rc && ioctl(s, SIOCGIFMTU, &ifr))
		rc = -errno;
	link->mtu = (uint32_t)ifr.ifr_mtu;
	close(s);
	return rc;
}

int tap_link_mac(const char *ifname, uint8_t mac[6])
{
	struct ifreq ifr = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (s < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	rc = ioctl(s, SIOCGIFHWADDR, &ifr) ? -errno : 0;
	close(s);
	if (!rc)
		memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	return rc;
}

int tap_link_setup(
	const char *who, const char *ifname, const struct tap_link_want *want, struct err *err)
{
	unsigned ifindex = if_nametoindex(ifname);
	struct tap_link now = {0};
	int rc = tap_link_get(ifname, &now);
	uint32_t mtu = want->mtu;

	if (!ifindex || rc)
		return err_set(err, ENODEV, "%s: the interface went away during set-up", who);
	if (mtu == now.mtu)
		mtu = 0;
	if (mtu || want->txqlen)
		rc = link_set(ifindex, mtu, want->txqlen, 0);
	if (rc && rc != -EPERM)
		return err_set(err, -rc,
			"%s: mtu=%u: the kernel refuses it: %s; a tap takes %d to %d, "
			"a macvtap no more than the interface below it",
			who, mtu, strerror(-rc), ETH_MTU_MIN, ETH_MTU_MAX - 14);
	if (!rc)
		rc = addresses_set(who, ifindex, want->addr, err);
	if (rc || now.up)
		return rc;
	rc = link_set(ifindex, 0, 0, IFF_UP | want->flags);
	if (rc == -EBUSY || rc == -EADDRINUSE)
		return err_set(err, -rc,
			"%s: its address is in use by another interface on the same one (ip -d "
			"link): give another mac=, or delete that interface",
			who);
	if (rc && rc != -EPERM)
		return err_set(err, -rc, "%s: cannot bring it up: %s", who, strerror(-rc));
	return rc;
}

void tap_link_delete(int watch, unsigned ifindex)
{
	union tap_link_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	nlh->nlmsg_type = RTM_DELLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	ifi->ifi_index = (int)ifindex;
	if (watch < 0)
		(void)tap_link_talk(nlh);
	else
		(void)sendto(
			watch, nlh, nlh->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
}

/* ---- news ----------------------------------------------------------------------------------- */

/* Pass a message whose ifinfomsg is about this interface, drop all others. */
static int filter_attach(int fd, unsigned ifindex)
{
	const uint32_t at = sizeof(struct nlmsghdr) + offsetof(struct ifinfomsg, ifi_index);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at), /* as if in network order */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(ifindex), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

int tap_link_watch(unsigned ifindex)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), rc;

	if (fd < 0)
		return -errno;
	if (!filter_attach(fd, ifindex) && !bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* News were lost: ask; the answer looks like news. */
static void link_ask(int watch, unsigned ifindex)
{
	union tap_link_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	ifi->ifi_index = (int)ifindex;
	(void)sendto(watch, nlh, nlh->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
}

static bool news_parse(const struct nlmsghdr *nlh, unsigned ifindex, struct tap_link *link)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;

	if (nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*ifi)) || ifi->ifi_index != (int)ifindex)
		return false;
	if (nlh->nlmsg_type == RTM_DELLINK && ifi->ifi_family == AF_UNSPEC)
		return link->left =
			       true; /* a bridge's port that leaves it says so, too: not this */
	if (nlh->nlmsg_type != RTM_NEWLINK)
		return false;
	link->up = ifi->ifi_flags & IFF_UP;
	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		if (mnl_attr_get_type(attr) == IFLA_MTU &&
			mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
			link->mtu = mnl_attr_get_u32(attr);
	}
	return true;
}

/* One datagram: its length, or -errno. */
static ssize_t news_receive(int watch, union tap_link_buf *buf)
{
	struct sockaddr_nl from = {0};
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(
		watch, buf->bytes, sizeof(buf->bytes), 0, (struct sockaddr *)&from, &from_len);

	if (n < 0)
		return -errno;
	return from.nl_pid ? 0 : n; /* of the kernel, or nothing */
}

bool tap_link_read(int watch, unsigned ifindex, struct tap_link *link)
{
	union tap_link_buf buf;
	bool news = false, lost = false;

	for (;;) {
		const struct nlmsghdr *nlh = &buf.align;
		ssize_t n = news_receive(watch, &buf);
		int left = (int)n;

		if (n == -ENOBUFS) {
			lost = true;
		} else if (n == -EAGAIN && lost) {
			lost = false;
			link_ask(watch, ifindex); /* now there is room for the answer */
		} else if (n < 0 && n != -EINTR) {
			return news;
		}
		for (; left > 0 && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			news |= news_parse(nlh, ifindex, link);
	}
}
