/* SPDX-License-Identifier: BSD-2-Clause */
/* show: the names that programs rely on, numbers and tables for people, arguments for front-ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/show.h"
#include "app/show_text.h"

static char top[64];
static struct net net;

static int setup(void **state)
{
	struct net_config config;
	char text[128];

	(void)state;
	strcpy(top, "/tmp/show-test-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	net_config_init(&config, "lab");
	if (net_init(&net, &config, NULL))
		return -1;
	snprintf(text, sizeof(text), "vhost-user:%s/a,,b c.sock,name=a,mtu=9000", top);
	return net_add(&net, text, "/", NULL) ||
	       net_add(&net, "vhost-user:./b.sock,mac=52:54:00:00:00:01", top, NULL) ||
	       net_add(&net, "vhost-user:./c:d.sock,name=colon,mtu=9000,off=mtu", top, NULL);
}

static int teardown(void **state)
{
	(void)state;
	net_fini(&net);
	return rmdir(top);
}

static void has(const json_t *o, const char *names)
{
	char words[512], *save = NULL;

	snprintf(words, sizeof(words), "%s", names);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (!json_object_get(o, w))
			fail_msg("'%s' is missing", w);
	}
}

static void test_names(void **state)
{
	json_t *o = show_all(&net), *p;

	(void)state;
	has(o, "network version rundir ports fdb drops stats switch process");
	has(json_object_get(o, "process"), "pid cpu_sec cpu_user_sec cpu_sys_sec rss_anon_kib "
					   "rss_file_kib rss_shmem_kib rounds "
					   "wakeups");
	has(json_object_get(o, "switch"), "turns bursts frames floods waits wait_timeouts");
	p = json_array_get(json_object_get(o, "ports"), 0);
	has(p, "name kind link missing mac mtu accepts socket server connected last_end features "
	       "offered "
	       "broken rings pcap frames_in bytes_in frames_out bytes_out");
	assert_int_equal(json_integer_value(json_object_get(p, "mtu")), 9000);
	has(json_array_get(json_object_get(p, "rings"), 1),
		"queue size started enabled broken chains descriptors indirect notified "
		"suppressed");
	p = json_array_get(json_object_get(o, "stats"), 1);
	has(p, "name in out fit_csum fit_segments");
	has(json_object_get(p, "out"),
		"frames bytes bytes_per_frame gso buffers buffers_per_packet notifications kicks");
	has(json_array_get(json_object_get(o, "drops"), 0), "name in out");
	json_decref(o);
}

static void test_drops(void **state)
{
	struct portq *q = &net_find(&net, "a", NULL)->port->q;
	char *text = NULL;
	json_t *o;
	size_t len;
	FILE *f;

	(void)state;
	q->drop_out[DROP_NO_ROOM] = 7;
	o = show_topic_find("drops")->make(&net);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(json_array_get(o, 0), "out"), "no_room")),
		7);
	f = open_memstream(&text, &len);
	show_text_drops(f, o, false);
	fclose(f);
	json_decref(o);
	assert_non_null(strstr(text, "a     out        no_room       7\n"));
	free(text);
	q->drop_out[DROP_NO_ROOM] = 0;
}

static void test_count(void **state)
{
	static const struct {
		unsigned long long n;
		const char *text;
	} cases[] = {{0, "0"}, {99999, "99999"}, {100000, "100K"}, {1234567, "1.2M"},
		{843000000, "843M"}, {UINT64_MAX, "18.4E"}};
	char text[16];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(show_text_count(cases[i].n, text), cases[i].text);
}

/* What `weft args` prints for up to three words more. */
static char *args_of(const char *const more[3], int status)
{
	struct cmd_call call = {.net_name = "lab", .net = &net, .cwd = "/"};
	const char *argv[] = {"args", more[0], more[1], more[2]};
	char *text = NULL;
	size_t len;

	call.out = open_memstream(&text, &len);
	assert_int_equal(cmd_exec(&call, more[2] ? 4 : 3, argv), status);
	fclose(call.out);
	return text;
}

static char *args(const char *front, const char *port, int status)
{
	return args_of((const char *[]){front, port, NULL}, status);
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		text++;
		n++;
	}
	return n;
}

/* One memory, two cards. */
static void test_args_of_two(void **state)
{
	static const char *const fronts[][3] = {
		{"qemu", "memory-backend-memfd,id=mem0,size=1G", "-device virtio-net-pci"},
		{"uml", "mem=1G", "virtio_uml.device="},
		{"cloud-hypervisor", "--net", "socket="},
		{"libvirt", "<memoryBacking>", "<interface "},
	};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		char *text = args_of((const char *[]){fronts[i][0], "a", "b"}, CMD_DONE);

		assert_int_equal(times(text, fronts[i][1]), 1);
		assert_int_equal(times(text, fronts[i][2]), 2);
		free(text);
	}
	free(args_of((const char *[]){"qemu", "a", "a"}, CMD_MISTAKE));
	free(args_of((const char *[]){"qemu", "a", "z"}, CMD_MISTAKE));
}

static void test_args_memory(void **state)
{
	static const char *const bad[] = {"0G", "1", "x", "1GB", "", "1G,x=y"};
	struct cmd_call call = {.net_name = "lab", .net = &net, .cwd = "/"};
	const char *argv[] = {"args", "qemu", "a", "-m", ""};
	char *text = NULL;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		call = (struct cmd_call){.net_name = "lab", .net = &net, .cwd = "/"};
		argv[4] = bad[i];
		assert_int_equal(cmd_exec(&call, 5, argv), CMD_MISTAKE);
		assert_non_null(strstr(call.err.text, "512M"));
	}
	call = (struct cmd_call){.net_name = "lab", .net = &net, .cwd = "/"};
	call.out = open_memstream(&text, &len);
	argv[4] = "512M";
	assert_int_equal(cmd_exec(&call, 5, argv), CMD_DONE);
	fclose(call.out);
	assert_non_null(
		strstr(text, "-m 512M -object memory-backend-memfd,id=mem0,size=512M,share=on"));
	free(text);
}

static void test_args(void **state)
{
	char want[256], *text = args("qemu", "a", CMD_DONE);

	(void)state;
	/* a comma doubled for QEMU, a blank quoted for the shell */
	snprintf(want, sizeof(want), "-chardev 'socket,id=chr-a,path=%s/a,,b c.sock,reconnect=1'",
		top);
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, ",host_mtu=9000\n"));
	free(text);
	text = args("qemu", "b", CMD_DONE);
	assert_non_null(strstr(text, ",mac=52:54:00:00:00:01\n"));
	free(text);
	text = args("uml", "b", CMD_DONE);
	snprintf(want, sizeof(want), "mem=1G virtio_uml.device=%s/b.sock:1\n", top);
	assert_string_equal(text, want);
	free(text);
	text = args("cloud-hypervisor", "b", CMD_DONE);
	assert_non_null(strstr(text, "--memory size=1G,shared=on --net vhost_user=true,socket="));
	free(text);
	text = args("libvirt", "a", CMD_DONE);
	assert_non_null(strstr(text, "<interface type='vhostuser'>"));
	assert_non_null(strstr(text, "<access mode='shared'/>"));
	free(text);
	free(args("uml", "colon", CMD_MISTAKE));
	/* without the feature QEMU would refuse to start with an MTU */
	text = args("qemu", "colon", CMD_DONE);
	assert_null(strstr(text, "mtu"));
	free(text);
	text = args("libvirt", "colon", CMD_DONE);
	assert_null(strstr(text, "mtu"));
	free(text);
	free(args("bochs", "a", CMD_MISTAKE));
	free(args("qemu", "z", CMD_MISTAKE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_args_of_two),
		cmocka_unit_test(test_args_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
