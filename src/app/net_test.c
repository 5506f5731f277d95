/* SPDX-License-Identifier: BSD-2-Clause */
/* net: ports come and go with their sockets; what is taken twice is refused before anything opens. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/net.h"
#include "port/usock.h"
#include "port/vhost_sim.h"

static char top[64];
static struct net net;

static int setup(void **state)
{
	struct net_config config;

	(void)state;
	strcpy(top, "/tmp/net-test-XXXXXX");
	if (!mkdtemp(top) || setenv("XDG_RUNTIME_DIR", top, 1))
		return -1;
	net_config_init(&config, "lab");
	return net_init(&net, &config, NULL);
}

static int teardown(void **state)
{
	(void)state;
	net_fini(&net);
	return rmdir(top); /* the folders that the network made are gone */
}

static mode_t mode_of(const char *dir, const char *file)
{
	struct stat st;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return stat(path, &st) ? 0 : st.st_mode;
}

static void test_add_del(void **state)
{
	struct err err = {""};

	(void)state;
	if (net_add(&net, "vhost-user:a", "/", &err))
		fail_msg("%s", err.text);
	assert_int_equal(net.nports, 1);
	assert_int_equal(mode_of(net.rundir, "a.sock"), S_IFSOCK | 0600);
	assert_int_equal(net_add(&net, "vhost-user:./b.sock,mode=0660", top, &err), 0);
	assert_int_equal(mode_of(top, "b.sock"), S_IFSOCK | 0660);
	assert_string_equal(
		net_port_missing(net_find(&net, "a", NULL)), "no front-end is connected");
	assert_non_null(fabric_find(net.fabric, "b"));
	assert_int_equal(net_del(&net, "a", &err), 0);
	assert_int_equal(mode_of(net.rundir, "a.sock"), 0);
	assert_int_equal(net_del(&net, "a", &err), -ENOENT);
	assert_null(fabric_find(net.fabric, "a"));
	assert_int_equal(net.nports, 1);
}

static void test_taken(void **state)
{
	struct err err = {""};
	char text[300];

	(void)state;
	assert_int_equal(net_add(&net, "vhost-user:a", "/", &err), 0);
	assert_int_equal(
		net_add(&net, "vhost-user:/tmp/elsewhere.sock,name=a", "/", &err), -EEXIST);
	assert_non_null(strstr(err.text, "name="));
	assert_int_equal(mode_of("/tmp", "elsewhere.sock"), 0);
	assert_int_equal(net_add(&net, "vhost-user:b,mac=52:54:00:00:00:01", "/", &err), 0);
	assert_int_equal(net_add(&net, "vhost-user:c,mac=52:54:00:00:00:01", "/", &err), -EEXIST);
	assert_non_null(strstr(err.text, "52:54:00:00:00:01"));
	assert_non_null(strstr(err.text, "mac="));
	/* the socket of a live listener: our own */
	snprintf(text, sizeof(text), "vhost-user:%s/a.sock,name=d", net.rundir);
	assert_int_equal(net_add(&net, text, "/", &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "a.sock"));
	assert_int_equal(mode_of(net.rundir, "a.sock"), S_IFSOCK | 0600);
	assert_int_equal(net.nports, 2);
}

/* No address given is no address taken. */
static void test_drivers_without_mac(void **state)
{
	struct err err = {""};

	(void)state;
	assert_int_equal(net_add(&net, "virtio-user:p", "/", &err), 0);
	if (net_add(&net, "virtio-user:q", "/", &err))
		fail_msg("%s", err.text);
	assert_int_equal(net_add(&net, "virtio-user:r,mac=52:54:00:00:00:01", "/", &err), 0);
	assert_int_equal(net_add(&net, "virtio-user:s,mac=52:54:00:00:00:01", "/", &err), -EEXIST);
	assert_non_null(strstr(err.text, "port 'r' has the address 52:54:00:00:00:01"));
}

static void step(struct vhost_sim *fe, enum vhost_sim_step first, enum vhost_sim_step last)
{
	for (; first <= last; first++) {
		assert_int_equal(vhost_sim_steps(fe, first, first, VNET_BIT(VERSION_1)), 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(loop_dispatch(&net.loop, false), 0);
	}
}

/* QEMU without a shared memory backend acknowledges features and then gives up without a word. */
static void test_memory_not_shared(void **state)
{
	const struct net_port *p;
	struct vhost_sim fe;

	(void)state;
	assert_int_equal(net_add(&net, "vhost-user:a", "/", NULL), 0);
	p = net_find(&net, "a", NULL);
	assert_int_equal(vhost_sim_init(&fe, usock_connect(p->spec.path, NULL)), 0);
	step(&fe, VHOST_SIM_OWNER, VHOST_SIM_OWNER);
	assert_string_equal(net_port_missing(p), "the driver is not ready");
	step(&fe, VHOST_SIM_FEATURES, VHOST_SIM_FEATURES);
	assert_non_null(strstr(net_port_missing(p), "memory is not shared"));
	assert_non_null(strstr(net_port_missing(p), "weft args qemu"));
	step(&fe, VHOST_SIM_MEMORY, VHOST_SIM_MEMORY);
	assert_string_equal(net_port_missing(p), "the driver is not ready");
	vhost_sim_fini(&fe);
}

static void test_stale_taken_over(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct err err = {""};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s.sock", top);
	assert_return_code(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), errno);
	close(fd);
	assert_int_equal(net_add(&net, "vhost-user:./s.sock", top, &err), 0);
	assert_int_equal(net_del(&net, "s", &err), 0);
	assert_int_equal(mode_of(top, "s.sock"), 0);
}

static void test_failures_leave_nothing(void **state)
{
	static const char *const texts[] = {
		"vhost-user:/nowhere/at/all/a.sock",
		"vhost-user:a,pcap=/nowhere/at/all/a.pcap",
		"tap:a,netns=/nowhere/at/all",
		"vhost-user:a,mtu=1",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct err err = {""};

		assert_true(net_add(&net, texts[i], "/", &err) < 0);
		assert_true(err.text[0]);
		assert_int_equal(net.nports, 0);
		assert_null(fabric_first(net.fabric));
	}
	assert_int_equal(mode_of(net.rundir, "a.sock"), 0);
}

static void test_pcap(void **state)
{
	char text[160], path[128];

	(void)state;
	snprintf(text, sizeof(text), "vhost-user:a,pcap=%s/a.pcap", top);
	snprintf(path, sizeof(path), "%s/a.pcap", top);
	assert_int_equal(net_add(&net, text, "/", NULL), 0);
	assert_non_null(net_find(&net, "a", NULL)->port->pcap);
	assert_int_equal(net_del(&net, "a", NULL), 0);
	assert_int_equal(mode_of(top, "a.pcap"), S_IFREG | 0600);
	unlink(path);
}

static void test_impair(void **state)
{
	char text[200], path[128];
	const struct port_ops *plain;

	(void)state;
	snprintf(text, sizeof(text), "vhost-user:a,impair=delay=1ms+log=%s/a.log", top);
	snprintf(path, sizeof(path), "%s/a.log", top);
	assert_int_equal(net_add(&net, text, "/", NULL), 0);
	assert_int_equal(net_add(&net, "vhost-user:b", "/", NULL), 0);
	plain = net_find(&net, "b", NULL)->port->ops;
	assert_ptr_not_equal(net_find(&net, "a", NULL)->port->ops, plain);
	assert_string_equal(net_find(&net, "a", NULL)->port->ops->kind, plain->kind);
	assert_int_equal(net_del(&net, "a", NULL), 0);
	assert_int_equal(net_del(&net, "b", NULL), 0);
	assert_int_equal(unlink(path), 0);
	/* a log that cannot be written leaves nothing behind */
	assert_int_equal(
		net_add(&net, "vhost-user:a,impair=log=/nowhere/a.log", "/", NULL), -ENOENT);
	assert_int_equal(net.nports, 0);
}

static void test_full(void **state)
{
	struct err err = {""};
	char text[32];

	(void)state;
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		snprintf(text, sizeof(text), "vhost-user:p%u", i);
		if (net_add(&net, text, "/", &err))
			fail_msg("%s", err.text);
	}
	assert_int_equal(net_add(&net, "vhost-user:more", "/", &err), -ENOSPC);
	assert_non_null(strstr(err.text, "128"));
	assert_int_equal(mode_of(net.rundir, "more.sock"), 0);
	assert_int_equal(net_del(&net, "p77", &err), 0);
	assert_int_equal(net_add(&net, "vhost-user:more", "/", &err), 0);
}

static void test_names(void **state)
{
	static const char *const bad[] = {
		"", ".", "..", "a/b", "-n", "a b", "much.too.long.a.name.for.a.network"};
	struct net_config config;
	struct net other;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = {""};

		net_config_init(&config, bad[i]);
		assert_int_equal(net_init(&other, &config, &err), -EINVAL);
		assert_true(err.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_add_del, setup, teardown),
		cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drivers_without_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_not_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale_taken_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures_leave_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pcap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_impair, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
