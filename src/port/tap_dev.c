/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_dev: three ways to a descriptor, one way to its offloads. What differs between a tap and a macvtap
 * ends here: from now on both are read and written alike. The numbers of the offloads and of the
 * header's length are the kernel's own. [Linux Documentation/networking/tuntap.rst]
 */
#include "port/tap_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "port/tap_macvtap.h"
#include "port/vnet.h"

/* Newer than the headers of some distributions. */
#define F_USO4 0x20u
#define F_USO6 0x40u

#define PATH_LEN 256

/* /dev/net/tun [Linux Documentation/admin-guide/devices.txt] */
#define TUN_MAJOR 10
#define TUN_MINOR 200

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
const char *tap_userns_forbidden(void)
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

const char *tap_who(const struct tap_config *cfg, char who[TAP_WHO])
{
	snprintf(who, TAP_WHO, "%s:%.15s", cfg->lower ? "macvtap" : "tap",
		cfg->lower ? cfg->lower : cfg->ifname);
	return who;
}

int tap_no_right(struct err *err, const struct tap_config *cfg)
{
	char who[TAP_WHO];

	if (cfg->lower)
		return err_set(err, EPERM,
			"%s needs CAP_NET_ADMIN in the network namespace, and its device is "
			"root's: "
			"run as root",
			tap_who(cfg, who));
	return err_set(err, EPERM,
		"%s needs CAP_NET_ADMIN in the network namespace of the network's process, which "
		"is "
		"the one of weft run: run as root, inside `unshare -Urn`, or give netns=PID of a "
		"namespace you own%s",
		tap_who(cfg, who), tap_userns_forbidden());
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

static int tun_attach(int fd, const struct tap_config *cfg, struct err *err)
{
	const char *ifname = cfg->ifname;
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (cfg->queues > 1)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	if (!ioctl(fd, TUNSETIFF, &ifr))
		return 0;
	switch (errno) {
	case EPERM:
		return tap_no_right(err, cfg);
	case EBUSY:
		return err_set(err, EBUSY,
			"tap:%s is in use by another process: end that one, or choose another name",
			ifname);
	case EINVAL:
		return err_set(err, EINVAL,
			"tap:%s: an interface of this name is there and is not a tap with %s: "
			"choose "
			"another name, or %s",
			ifname, cfg->queues > 1 ? "several queues" : "one queue",
			cfg->queues > 1 ? "make it with `ip tuntap add mode tap multi_queue`, or "
					  "leave queues= out"
					: "give queues= if it is one with several");
	case E2BIG:
		return err_set(err, E2BIG, "tap:%s: the kernel has no room for %u queues more",
			ifname, cfg->queues);
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
	int size = (int)(cfg->vnet_hdr ? cfg->vnet_hdr : TAP_HDR_LEN), on = 1;
	char who[TAP_WHO];

	if (ioctl(fd, TUNSETVNETHDRSZ, &size))
		return err_set(err, errno, "%s: virtio-net headers of %d bytes: %s",
			tap_who(cfg, who), size, strerror(errno));
	/* Without it headers have the machine's order, which is the same on a little-endian one. */
	(void)ioctl(fd, TUNSETVNETLE, &on);
	if (ioctl(fd, TUNSETOFFLOAD, (unsigned long)(TUN_F_CSUM | F_USO4 | F_USO6)))
		f &= ~uso;
	f = vnet_features_close(f);
	if (ioctl(fd, TUNSETOFFLOAD, (unsigned long)tun_offload_of(f)))
		return err_set(err, errno, "%s: the kernel refuses the offloads 0x%x: %s",
			tap_who(cfg, who), tun_offload_of(f), strerror(errno));
	*features = f;
	return 0;
}

/* Of /dev/net/tun. */
static int tun_make(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	for (unsigned i = 0; i < out->queues; i++) {
		int rc;

		out->fd[i] = tun_open(err);
		if (out->fd[i] < 0)
			return out->fd[i];
		rc = tun_attach(out->fd[i], cfg, err);
		if (rc)
			return rc;
	}
	snprintf(out->ifname, sizeof(out->ifname), "%s", cfg->ifname);
	out->ifindex = if_nametoindex(out->ifname);
	return 0;
}

/* ---- a descriptor that was passed in -------------------------------------------------------- */

static int not_a_tap(const struct tap_config *cfg, int error, struct err *err)
{
	char path[PATH_LEN], what[64] = "something else";
	ssize_t n;

	if (error == EBADFD)
		return err_set(err, EINVAL,
			"tap:%s: fd=%d is /dev/net/tun without an interface: TUNSETIFF comes first",
			cfg->ifname, cfg->fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", cfg->fd);
	n = readlink(path, what, sizeof(what) - 1);
	if (n > 0)
		what[n] = 0;
	return err_set(err, EINVAL, "tap:%s: fd=%d is no tap but %s; open /dev/net/tun for it",
		cfg->ifname, cfg->fd, what);
}

static int passed_check(int fd, const struct tap_config *cfg, struct err *err)
{
	const short need = IFF_TAP | IFF_VNET_HDR; /* IFF_NO_PI is told of all, whatever they are */
	struct ifreq ifr = {0};

	if (ioctl(fd, TUNGETIFF, &ifr))
		return not_a_tap(cfg, errno, err);
	ifr.ifr_name[IFNAMSIZ - 1] = 0;
	if ((ifr.ifr_flags & need) != need)
		return err_set(err, EINVAL,
			"tap:%s: fd=%d was opened without %s: IFF_TAP | IFF_NO_PI | IFF_VNET_HDR "
			"is "
			"right",
			cfg->ifname, cfg->fd, ifr.ifr_flags & IFF_TAP ? "IFF_VNET_HDR" : "IFF_TAP");
	if (strcmp(ifr.ifr_name, cfg->ifname) != 0)
		return err_set(err, EINVAL, "tap:%s: fd=%d is the tap of '%s': say tap:%s,fd=%d",
			cfg->ifname, cfg->fd, ifr.ifr_name, ifr.ifr_name, cfg->fd);
	if (!tap_dev_is(fd, cfg->ifname))
		return err_set(err, ENODEV,
			"tap:%s: the interface of fd=%d is in another network namespace: name that "
			"with netns=",
			cfg->ifname, cfg->fd);
	return 0;
}

static bool is_macvtap(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_rdev != makedev(TUN_MAJOR, TUN_MINOR);
}

static int passed_take(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	int rc, flags, fd;

	fd = out->fd[0] = fcntl(cfg->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_set(err, errno,
			"tap:%s: fd=%d is no descriptor of this process: %s; start it with one, as "
			"a shell does by %d<>FILE",
			cfg->ifname, cfg->fd, strerror(errno), cfg->fd);
	rc = passed_check(fd, cfg, err);
	flags = fcntl(fd, F_GETFL);
	if (!rc && fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		rc = err_set(
			err, errno, "tap:%s: fd=%d: %s", cfg->ifname, cfg->fd, strerror(errno));
	if (rc)
		return rc;
	snprintf(out->ifname, sizeof(out->ifname), "%s", cfg->ifname);
	out->ifindex = if_nametoindex(out->ifname);
	out->macvtap = is_macvtap(fd);
	return 0;
}

bool tap_dev_is(int fd, const char *ifname)
{
	struct ifreq ifr = {0}, hw = {0};
	uint8_t mac[6];

	if (ioctl(fd, TUNGETIFF, &ifr) || strncmp(ifr.ifr_name, ifname, IFNAMSIZ) != 0)
		return false;
	return !tap_link_mac(ifname, mac) && !ioctl(fd, SIOCGIFHWADDR, &hw) &&
	       !memcmp(mac, hw.ifr_hwaddr.sa_data, sizeof(mac));
}

void tap_dev_close(struct tap_if *tap)
{
	for (unsigned i = 0; i < TAP_QUEUES; i++) {
		if (tap->fd[i] >= 0)
			close(tap->fd[i]);
		tap->fd[i] = -1;
	}
}

int tap_dev_open(const struct tap_config *cfg, struct tap_if *out, struct err *err)
{
	int rc;

	out->queues = cfg->queues ? cfg->queues : 1;
	rc = cfg->lower ? macvtap_open(cfg, out, err)
	     : cfg->fd  ? passed_take(cfg, out, err)
			: tun_make(cfg, out, err);
	for (unsigned i = 0; !rc && i < out->queues; i++)
		rc = tun_offloads(out->fd[i], cfg, &out->features, err);
	if (!rc)
		return 0;
	tap_dev_close(out);
	if (out->made)
		tap_link_delete(-1, out->ifindex);
	out->made = false;
	return rc;
}
