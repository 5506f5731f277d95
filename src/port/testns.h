/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * testns: for tests that need a kernel network of their own: a user and a network namespace in which
 * this process is root, whoever runs it; and a few questions to its interfaces.
 */
#ifndef PORT_TESTNS_H
#define PORT_TESTNS_H

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TESTNS_SKIP 77 /* exit status that means "skipped" to the test runner */

static inline bool testns_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

static inline bool testns_make(void)
{
	char uid_map[32], gid_map[32];

	snprintf(uid_map, sizeof(uid_map), "0 %u 1", (unsigned)geteuid());
	snprintf(gid_map, sizeof(gid_map), "0 %u 1", (unsigned)getegid());
	return !unshare(CLONE_NEWUSER | CLONE_NEWNET) &&
	       testns_write("/proc/self/uid_map", uid_map) &&
	       testns_write("/proc/self/setgroups", "deny") &&
	       testns_write("/proc/self/gid_map", gid_map);
}

/* False, with the reason on standard output: the caller ends with TESTNS_SKIP. */
static inline bool testns_enter(void)
{
	if (!testns_make()) {
		printf("skipped: no user and network namespace here: %s\n", strerror(errno));
		return false;
	}
	if (access("/dev/net/tun", R_OK | W_OK)) {
		printf("skipped: /dev/net/tun: %s\n", strerror(errno));
		return false;
	}
	return true;
}

static inline int if_ioctl(unsigned long request, struct ifreq *ifr, const char *ifname)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	rc = ioctl(s, request, ifr);
	close(s);
	return rc;
}

static inline void set_up(const char *ifname, bool up)
{
	struct ifreq ifr = {0};

	if_ioctl(SIOCGIFFLAGS, &ifr, ifname);
	ifr.ifr_flags = (short)(up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	if_ioctl(SIOCSIFFLAGS, &ifr, ifname);
}

static inline void set_mtu(const char *ifname, int mtu)
{
	struct ifreq ifr = {.ifr_mtu = mtu};

	if_ioctl(SIOCSIFMTU, &ifr, ifname);
}

#endif
