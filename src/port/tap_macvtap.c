/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_macvtap: rtnetlink makes the interface, its character device carries the frames.
 *
 * The device is /dev/tapN, N being the interface's index. Indices are counted in each network namespace,
 * /dev is one for all: so that two namespaces do not claim one name, the index is drawn from a range that
 * counting does not reach. Where /dev is not the kernel's own (a container's), the device is made for the
 * moment it is opened in, by the numbers that sysfs tells. In both cases the kernel is asked whose it is.
 */
#include "port/tap_macvtap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "base/rand.h"

#define INDEX_BASE  (1u << 20)
#define INDEX_TRIES 4
#define PATH_LEN    64

static const uint32_t modes[] = {
	[MACVTAP_BRIDGE] = MACVLAN_MODE_BRIDGE,
	[MACVTAP_VEPA] = MACVLAN_MODE_VEPA,
	[MACVTAP_PRIVATE] = MACVLAN_MODE_PRIVATE,
	[MACVTAP_PASSTHRU] = MACVLAN_MODE_PASSTHRU,
};

/* ---- the interface -------------------------------------------------------------------------- */

static int link_new(const struct tap_config *cfg, unsigned lower, unsigned index)
{
	static const uint8_t none[6];
	union tap_link_buf buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	struct nlattr *info, *data;

	nlh->nlmsg_type = RTM_NEWLINK;
	nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)index;
	mnl_attr_put_u32(nlh, IFLA_LINK, lower);
	if (memcmp(cfg->mac, none, sizeof(none)) != 0)
		mnl_attr_put(nlh, IFLA_ADDRESS, sizeof(cfg->mac), cfg->mac);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "macvtap");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	mnl_attr_put_u32(nlh, IFLA_MACVLAN_MODE, modes[cfg->mode]);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	return tap_link_talk(nlh);
}

static int link_new_failed(const struct tap_config *cfg, int rc, struct err *err)
{
	switch (rc) {
	case -EPERM:
		return tap_no_right(err, cfg);
	case -EOPNOTSUPP:
		return err_set(err, EOPNOTSUPP,
			"macvtap:%s: this kernel has no macvtap: load the module (modprobe "
			"macvtap)",
			cfg->lower);
	case -EBUSY:
		return err_set(err, EBUSY,
			"macvtap:%s: %s is in use by a bridge, a bond or the like: plug in there "
			"with tap:, or take it out first",
			cfg->lower, cfg->lower);
	case -EINVAL:
		return err_set(err, EINVAL,
			"macvtap:%s: %s cannot carry one: it must be an Ethernet, not the "
			"loopback, "
			"without a macvtap of mode=passthru, and with none at all for that mode",
			cfg->lower, cfg->lower);
	default:
		return err_set(err, -rc, "macvtap:%s: the kernel refuses it: %s", cfg->lower,
			strerror(-rc));
	}
}

static int link_make(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	unsigned lower = if_nametoindex(cfg->lower);
	int rc = -EEXIST;

	if (!lower)
		return err_set(err, ENODEV,
			"macvtap:%s: there is no interface %s here; `ip link` shows those that are",
			cfg->lower, cfg->lower);
	for (unsigned i = 0; i < INDEX_TRIES && (rc == -EEXIST || (i && rc == -EBUSY)); i++) {
		uint32_t r;

		rand_secret(&r, sizeof(r));
		out->ifindex = INDEX_BASE + r % INDEX_BASE;
		rc = link_new(cfg, lower, out->ifindex);
	}
	if (rc)
		return link_new_failed(cfg, rc, err);
	if (if_indextoname(out->ifindex, out->ifname))
		return 0;
	return err_set(err, ENODEV, "macvtap:%s: the new interface went away at once", cfg->lower);
}

/* ---- its device ----------------------------------------------------------------------------- */

/* Opens the device if it is this interface's. -errno; -ENOENT: there is none, or another one's. */
static int device_try(const char *path, const struct tap_if *tap)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == ENXIO || errno == ENODEV ? -ENOENT : -errno;
	if (tap_dev_is(fd, tap->ifname))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Where /dev does not have it. */
static int device_make(const struct tap_if *tap)
{
	char path[PATH_LEN], text[32] = "";
	unsigned major, minor;
	int fd, rc;

	snprintf(path, sizeof(path), "/sys/class/net/%s/tap%u/dev", tap->ifname, tap->ifindex);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	rc = (int)read(fd, text, sizeof(text) - 1);
	close(fd);
	if (rc <= 0 || sscanf(text, "%u:%u", &major, &minor) != 2)
		return -ENOENT;
	snprintf(path, sizeof(path), "/dev/weft-tap%u-%d", tap->ifindex, (int)getpid());
	if (mknod(path, S_IFCHR | 0600, makedev(major, minor)))
		return errno == EPERM ? -ENOENT : -errno;
	rc = device_try(path, tap);
	unlink(path);
	return rc;
}

/* A descriptor is a queue. */
static int device_open(const struct tap_config *cfg, const struct tap_if *tap, struct err *err)
{
	char path[PATH_LEN];
	int fd;

	snprintf(path, sizeof(path), "/dev/tap%u", tap->ifindex);
	fd = device_try(path, tap);
	if (fd == -ENOENT)
		fd = device_make(tap);
	if (fd >= 0)
		return fd;
	if (fd == -EACCES || fd == -EPERM)
		return err_set(err, -fd,
			"macvtap:%s: %s: permission denied: it is root's, and no user namespace "
			"gives that right: run as root, or use tap:",
			cfg->lower, path);
	if (fd == -ENOENT)
		return err_set(err, ENOENT,
			"macvtap:%s: %s is not there: give the container the machine's /dev, or "
			"the "
			"right to make devices (CAP_MKNOD)",
			cfg->lower, path);
	return err_set(err, -fd, "macvtap:%s: %s: %s", cfg->lower, path, strerror(-fd));
}

int macvtap_open(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	int rc = link_make(cfg, out, err);

	if (rc)
		return rc;
	out->made = out->macvtap = true;
	for (unsigned i = 0; i < out->queues; i++) {
		out->fd[i] = device_open(cfg, out, err);
		if (out->fd[i] < 0)
			return out->fd[i];
	}
	return 0;
}
