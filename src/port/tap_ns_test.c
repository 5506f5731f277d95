/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_ns_test: making tap interfaces ready, in this and in other namespaces, with and without rights;
 * every mistake must say which value and what would be right.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "port/tap_ns.h"
#include "port/testns.h"
#include "port/vnet.h"

static const char *const addresses[] = {"10.9.0.1/24", "fd09::1/64", NULL};

static struct tap_if open_good(const struct tap_config *cfg)
{
	struct tap_if t;
	struct err err;

	if (tap_if_open(cfg, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void close_both(struct tap_if t)
{
	close(t.fd[0]);
	close(t.watch);
}

/* Must fail with this code, and with all of these words in one line. */
static void refuse(const struct tap_config *cfg, int code, const char *a, const char *b)
{
	struct tap_if t;
	struct err err;
	int rc = tap_if_open(cfg, &t, &err);

	if (rc != -code)
		fail_msg("got %d (%s), not %d, for %s", rc, rc ? err.text : "", -code, a);
	if (!strstr(err.text, a) || !strstr(err.text, b) || strchr(err.text, '\n'))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", err.text, a, b);
}

static bool has_address(const char *ifname, const char *text)
{
	struct ifaddrs *all, *a;
	char buf[INET6_ADDRSTRLEN];
	bool found = false;

	assert_int_equal(getifaddrs(&all), 0);
	for (a = all; a; a = a->ifa_next) {
		if (!a->ifa_addr || strcmp(a->ifa_name, ifname))
			continue;
		if (a->ifa_addr->sa_family == AF_INET)
			inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr,
				buf, sizeof(buf));
		else if (a->ifa_addr->sa_family == AF_INET6)
			inet_ntop(AF_INET6,
				&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr, buf,
				sizeof(buf));
		else
			continue;
		found |= !strcmp(buf, text);
	}
	freeifaddrs(all);
	return found;
}

static void mtu_addresses_and_up(void **state)
{
	struct tap_if t =
		open_good(&(struct tap_config){.ifname = "tapmtu", .addr = addresses, .mtu = 9000});
	struct ifreq ifr = {0};

	(void)state;
	assert_int_equal(t.link.mtu, 9000);
	assert_true(t.link.up);
	assert_int_equal(if_ioctl(SIOCGIFMTU, &ifr, "tapmtu"), 0);
	assert_int_equal(ifr.ifr_mtu, 9000);
	assert_int_equal(if_ioctl(SIOCGIFFLAGS, &ifr, "tapmtu"), 0);
	assert_true(ifr.ifr_flags & IFF_UP);
	assert_int_equal(if_ioctl(SIOCGIFTXQLEN, &ifr, "tapmtu"), 0);
	assert_int_equal(ifr.ifr_qlen, 1000);
	assert_true(has_address("tapmtu", "10.9.0.1"));
	assert_true(has_address("tapmtu", "fd09::1"));
	assert_false(has_address("tapmtu", "10.9.0.2"));
	close_both(t);
	assert_int_equal(if_nametoindex("tapmtu"), 0);
}

static void features_are_closed_under_off(void **state)
{
	struct tap_config cfg = {.ifname = "tapoff"};
	struct tap_if t = open_good(&cfg);

	(void)state;
	assert_true(t.features & VNET_BIT(HOST_TSO4));
	assert_true(t.features & VNET_BIT(GUEST_TSO6));
	/* this kernel has both kinds of USO or none */
	assert_int_equal(!(t.features & VNET_BIT(HOST_USO)), !(t.features & VNET_BIT(GUEST_USO4)));
	close_both(t);
	cfg.off = VNET_BIT(HOST_TSO4) | VNET_BIT(HOST_TSO6) | VNET_BIT(GUEST_USO4);
	t = open_good(&cfg);
	assert_false(
		t.features & (VNET_BIT(HOST_TSO4) | VNET_BIT(HOST_ECN) | VNET_BIT(GUEST_USO4)));
	assert_true(t.features & VNET_BIT(GUEST_TSO4));
	close_both(t);
	cfg.off = VNET_BIT(CSUM);
	t = open_good(&cfg);
	assert_false(t.features & (VNET_BIT(CSUM) | VNET_BIT(HOST_TSO4) | VNET_BIT(HOST_USO)));
	assert_true(t.features & VNET_BIT(GUEST_CSUM));
	close_both(t);
}

/* ---- news ----------------------------------------------------------------------------------- */

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void news_are_of_this_interface_only(void **state)
{
	struct tap_if t = open_good(&(struct tap_config){.ifname = "tapnews"});
	struct tap_if other = open_good(&(struct tap_config){.ifname = "tapother"});
	struct tap_link link = {1500, true};

	(void)state;
	tap_link_read(t.watch, t.ifindex, &link); /* of its own set-up */
	assert_true(link.up);
	assert_int_equal(link.mtu, 1500);
	set_mtu("lo", 1400);
	set_mtu("tapother", 1400);
	set_up("tapother", false);
	close_both(other);
	assert_false(readable(t.watch));
	assert_false(tap_link_read(t.watch, t.ifindex, &link));
	set_mtu("tapnews", 1400);
	set_up("tapnews", false);
	assert_true(readable(t.watch));
	assert_true(tap_link_read(t.watch, t.ifindex, &link));
	assert_int_equal(link.mtu, 1400);
	assert_false(link.up);
	assert_false(tap_link_read(t.watch, t.ifindex, &link));
	close_both(t);
}

/* More news than the socket holds: the last state is still the true one. */
static void lost_news_are_asked_for(void **state)
{
	struct tap_if t = open_good(&(struct tap_config){.ifname = "taplost"});
	struct tap_link link = {0};
	int small = 1;

	(void)state;
	tap_link_read(t.watch, t.ifindex, &link);
	assert_int_equal(setsockopt(t.watch, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	for (int i = 0; i < 100; i++)
		set_mtu("taplost", 1300 + i);
	set_up("taplost", false);
	assert_true(tap_link_read(t.watch, t.ifindex, &link));
	assert_int_equal(link.mtu, 1399);
	assert_false(link.up);
	close_both(t);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

static void refuse_addr(const char *addr)
{
	const char *const list[] = {addr, NULL};

	refuse(&(struct tap_config){.ifname = "x0", .addr = list}, EINVAL, addr, "10.0.0.1/24");
}

static void mistakes_are_named(void **state)
{
	char path[64];
	int file;

	(void)state;
	refuse(&(struct tap_config){.ifname = "a234567890123456"}, ENAMETOOLONG, "a234567890123456",
		"15");
	refuse(&(struct tap_config){.ifname = ""}, EINVAL, "not an interface name", "15");
	refuse(&(struct tap_config){.ifname = "a/b"}, EINVAL, "a/b", "not an interface name");
	refuse(&(struct tap_config){.ifname = "tap%d"}, EINVAL, "tap%d", "not an interface name");
	refuse(&(struct tap_config){.ifname = "lo"}, EINVAL, "tap:lo", "choose another name");
	refuse(&(struct tap_config){.ifname = "x0", .mtu = 67}, ERANGE, "mtu=67", "68");
	refuse(&(struct tap_config){.ifname = "x0", .mtu = 65535}, EINVAL, "mtu=65535", "65521");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "no-such"}, ENOENT, "netns=no-such",
		"ip netns add");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "999999999"}, ENOENT, "999999999",
		"no process");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "/no/such"}, ENOENT, "/no/such",
		"No such file");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "/dev/null"}, EINVAL, "/dev/null",
		"not a network namespace");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "/proc/self/ns/uts"}, EINVAL, "uts",
		"not a network namespace");
	refuse(&(struct tap_config){.ifname = "x0", .netns = ""}, EINVAL, "netns=", "a process id");
	refuse_addr("10.0.0.300/24");
	refuse_addr("10.0.0.1");
	refuse_addr("10.0.0.1/33");
	refuse_addr("10.0.0.1/");
	refuse_addr("10.0.0.1/ 24");
	refuse_addr("fd00::1/129");
	refuse_addr("fd00::1/64x");
	refuse_addr("");
	snprintf(path, sizeof(path), "/tmp/tap_test.XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0);
	refuse(&(struct tap_config){.ifname = "x0", .netns = path}, EINVAL, path,
		"not a network namespace");
	unlink(path);
	/* a pipe that nobody writes to must not hold the network up */
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(5);
	refuse(&(struct tap_config){.ifname = "x0", .netns = path}, EINVAL, path,
		"not a network namespace");
	alarm(0);
	unlink(path);
	close(file);
}

static void taken_tap_is_told(void **state)
{
	struct tap_if t = open_good(&(struct tap_config){.ifname = "taptaken"});

	(void)state;
	refuse(&(struct tap_config){.ifname = "taptaken"}, EBUSY, "tap:taptaken",
		"in use by another process");
	close_both(t);
}

static void v6_needs_its_mtu(void **state)
{
	const char *const v6[] = {"fd09::1/64", NULL};

	(void)state;
	refuse(&(struct tap_config){.ifname = "x0", .addr = v6, .mtu = 1000}, EINVAL,
		"ip=fd09::1/64", "1280");
}

/* ---- namespaces ----------------------------------------------------------------------------- */

struct holder {
	pid_t pid;
	int stop;
};

/* A process that sits in new namespaces until told to end. */
static struct holder holder_start(int flags)
{
	int up[2], stop[2];
	char c = 0;
	pid_t pid;

	if (pipe(up) || pipe(stop))
		fail();
	pid = fork();
	if (!pid) {
		close(up[0]);
		close(stop[1]);
		c = unshare(flags) ? 'n' : 'y';
		if (write(up[1], &c, 1) != 1 || read(stop[0], &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(up[1]);
	close(stop[0]);
	if (read(up[0], &c, 1) != 1 || c != 'y')
		fail_msg("the holder could not unshare");
	close(up[0]);
	return (struct holder){pid, stop[1]};
}

static void holder_end(struct holder h)
{
	close(h.stop);
	waitpid(h.pid, NULL, 0);
}

static void in_the_namespace_of(int flags)
{
	struct holder h = holder_start(flags);
	const char *const addr[] = {"10.9.7.1/24", NULL};
	char pid[16];
	struct tap_if t;
	struct tap_link link = {0};
	struct pollfd p = {.events = POLLIN};
	uint8_t frame[FRAME_MAX];

	snprintf(pid, sizeof(pid), "%d", (int)h.pid);
	t = open_good(
		&(struct tap_config){.ifname = "tapns", .netns = pid, .addr = addr, .mtu = 1400});
	assert_int_equal(if_nametoindex("tapns"), 0); /* not here */
	assert_int_equal(t.link.mtu, 1400);
	assert_true(t.link.up);
	assert_false(has_address("tapns", "10.9.7.1"));
	/* the kernel over there announces itself */
	p.fd = t.fd[0];
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true(read(t.fd[0], frame, sizeof(frame)) > TAP_HDR_LEN + 14);
	tap_link_read(t.watch, t.ifindex, &link);
	assert_true(link.up);
	assert_int_equal(link.mtu, 1400);
	close_both(t);
	holder_end(h);
}

static void netns_of_a_process(void **state)
{
	(void)state;
	in_the_namespace_of(CLONE_NEWNET);
	in_the_namespace_of(CLONE_NEWUSER | CLONE_NEWNET);
}

static void mistakes_over_there_are_named_here(void **state)
{
	struct holder h = holder_start(CLONE_NEWNET);
	char pid[16];

	(void)state;
	snprintf(pid, sizeof(pid), "%d", (int)h.pid);
	refuse(&(struct tap_config){.ifname = "x0", .netns = pid, .mtu = 65535}, EINVAL,
		"mtu=65535", "65521");
	refuse(&(struct tap_config){.ifname = "lo", .netns = pid}, EINVAL, "tap:lo",
		"choose another name");
	holder_end(h);
}

static void caps_drop(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	if (syscall(SYS_capset, &h, d))
		_exit(2);
}

/* Runs `f` in a child without any right; what fails there is printed there. */
static void without_rights(void (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		caps_drop();
		f();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void ordinary_body(void)
{
	refuse(&(struct tap_config){.ifname = "x0"}, EPERM, "tap:x0 needs CAP_NET_ADMIN",
		"unshare -Urn");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "1"}, EACCES, "process 1",
		"not yours");
	refuse(&(struct tap_config){.ifname = "x0", .netns = "/proc/self/ns/net"}, EPERM,
		"/proc/self/ns/net", "not owned by this user");
	in_the_namespace_of(CLONE_NEWUSER | CLONE_NEWNET);
}

/* No rights here, but a namespace that he owns. */
static void ordinary_user(void **state)
{
	(void)state;
	without_rights(ordinary_body);
}

static void forbidden_body(void)
{
	refuse(&(struct tap_config){.ifname = "x0"}, EPERM, "tap:x0 needs CAP_NET_ADMIN",
		"user namespaces are forbidden here (user.max_user_namespaces=0)");
}

static void forbidden_namespaces_are_said(void **state)
{
	const char *path = "/proc/sys/user/max_user_namespaces";

	(void)state;
	if (!testns_write(path, "0")) {
		print_message("%s cannot be written here: skipped\n", path);
		skip();
	}
	without_rights(forbidden_body);
	assert_true(testns_write(path, "1000"));
}

static void given_body(void)
{
	struct tap_config cfg = {.ifname = "tapgiven"};
	struct tap_if t = open_good(&cfg);

	assert_true(t.link.up);
	assert_int_equal(t.link.mtu, 1400);
	close_both(t);
	cfg.mtu = 1400; /* as it is */
	close_both(open_good(&cfg));
	cfg.mtu = 1401;
	refuse(&cfg, EPERM, "tap:tapgiven needs CAP_NET_ADMIN", "run as root");
}

/* A persistent tap that root made for a user needs no right as long as nothing is to be changed. */
static void tap_given_to_a_user(void **state)
{
	struct tap_config cfg = {.ifname = "tapgiven", .mtu = 1400, .addr = addresses};
	struct tap_if t = open_good(&cfg);

	(void)state;
	assert_int_equal(ioctl(t.fd[0], TUNSETPERSIST, 1UL), 0);
	assert_int_equal(ioctl(t.fd[0], TUNSETOWNER, (unsigned long)geteuid()), 0);
	close_both(t);
	assert_true(if_nametoindex("tapgiven") > 0);
	without_rights(given_body);
	t = open_good(&cfg); /* the same addresses again are no mistake */
	assert_int_equal(ioctl(t.fd[0], TUNSETPERSIST, 0UL), 0);
	close_both(t);
	assert_int_equal(if_nametoindex("tapgiven"), 0);
}

/* ---- a descriptor that was opened before ---------------------------------------------------- */

static int passed(const char *ifname, short flags)
{
	struct ifreq ifr = {.ifr_flags = flags};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (ifname[0])
		assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	return fd;
}

static void passed_descriptor_is_taken(void **state)
{
	const short right = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	struct tap_config cfg = {.ifname = "passed0", .addr = addresses, .mtu = 9000};
	struct tap_if t;

	(void)state;
	cfg.fd = passed("passed0", right);
	t = open_good(&cfg);
	assert_int_not_equal(t.fd[0], cfg.fd);
	assert_true(fcntl(t.fd[0], F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(t.fd[0], F_GETFD) & FD_CLOEXEC);
	assert_true(t.link.up);
	assert_int_equal(t.link.mtu, 9000);
	assert_false(t.made);
	close(cfg.fd); /* ours was one of our own */
	assert_true(if_nametoindex("passed0"));
	close_both(t);
	assert_int_equal(if_nametoindex("passed0"), 0);
}

static void wrong_descriptors_are_told(void **state)
{
	const short right = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	struct tap_config cfg = {.ifname = "passed0"};

	(void)state;
	cfg.fd = 1000;
	refuse(&cfg, EBADF, "fd=1000", "1000<>FILE");
	cfg.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	refuse(&cfg, EINVAL, "no tap but /dev/null", "/dev/net/tun");
	close(cfg.fd);
	cfg.fd = passed("", 0);
	refuse(&cfg, EINVAL, "without an interface", "TUNSETIFF");
	close(cfg.fd);
	cfg.fd = passed("passed0", IFF_TUN | IFF_NO_PI | IFF_VNET_HDR);
	refuse(&cfg, EINVAL, "without IFF_TAP", "IFF_VNET_HDR is right");
	close(cfg.fd);
	cfg.fd = passed("passed0", IFF_TAP | IFF_NO_PI);
	refuse(&cfg, EINVAL, "without IFF_VNET_HDR", "is right");
	close(cfg.fd);
	cfg.fd = passed("passed1", right);
	refuse(&cfg, EINVAL, "'passed1'", "tap:passed1,fd=");
	close(cfg.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed_descriptor_is_taken),
		cmocka_unit_test(wrong_descriptors_are_told),
		cmocka_unit_test(mtu_addresses_and_up),
		cmocka_unit_test(features_are_closed_under_off),
		cmocka_unit_test(news_are_of_this_interface_only),
		cmocka_unit_test(lost_news_are_asked_for),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(taken_tap_is_told),
		cmocka_unit_test(v6_needs_its_mtu),
		cmocka_unit_test(netns_of_a_process),
		cmocka_unit_test(mistakes_over_there_are_named_here),
		cmocka_unit_test(ordinary_user),
		cmocka_unit_test(forbidden_namespaces_are_said),
		cmocka_unit_test(tap_given_to_a_user),
	};

	if (!testns_enter())
		return TESTNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
