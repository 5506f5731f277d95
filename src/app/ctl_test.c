/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl: the control protocol over socket pairs, in virtual time: answers, refusals, waiting, patience. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/ctl.h"

static char top[64];
static nsec_t now;
static struct net net;
static struct ctl ctl;
static unsigned stops;

static void on_stop(void *ctx)
{
	(void)ctx;
	stops++;
}

static int setup(void **state)
{
	struct net_config config;

	(void)state;
	strcpy(top, "/tmp/ctl-test-XXXXXX");
	if (!mkdtemp(top) || setenv("XDG_RUNTIME_DIR", top, 1))
		return -1;
	net_config_init(&config, "lab");
	now = NSEC_PER_SEC;
	stops = 0;
	if (net_init(&net, &config, NULL) || ctl_open(&ctl, &net, NULL, NULL))
		return -1;
	net.loop.virtual_now = &now;
	loop_refresh(&net.loop);
	ctl.stop = on_stop;
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	ctl_finish(&ctl);
	net_fini(&net);
	snprintf(path, sizeof(path), "%s/weft/lab", top);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/weft", top);
	rmdir(path);
	return rmdir(top);
}

static void turn(void)
{
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(loop_dispatch(&net.loop, true), 0);
}

static int client_buffer(int size)
{
	int fd[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), errno);
	if (size)
		setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	assert_int_equal(ctl_serve(&ctl, fd[0]), 0);
	return fd[1];
}

static int client(void)
{
	return client_buffer(0);
}

/* Send all, letting the server read in between. */
static void ask(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN) {
			break; /* refused meanwhile */
		}
		turn();
	}
	turn();
}

/* The answer and the end of the connection, as "status|out|err"; "" if it was dropped; NULL: none yet. */
static const char *answer(int fd)
{
	static char in[1 << 20], text[1 << 20];
	size_t len = 0;
	json_t *o;
	ssize_t n;

	turn();
	while ((n = recv(fd, in + len, sizeof(in) - len, 0)) > 0) {
		len += (size_t)n;
		turn();
	}
	if (n < 0 && errno == EAGAIN) {
		assert_int_equal(len, 0);
		return NULL;
	}
	close(fd);
	if (!len)
		return "";
	assert_int_equal(in[len - 1], '\n');
	assert_ptr_equal(memchr(in, '\n', len), in + len - 1);
	o = json_loadb(in, len, 0, NULL);
	assert_non_null(o);
	snprintf(text, sizeof(text), "%d|%s|%s",
		(int)json_integer_value(json_object_get(o, "status")),
		json_string_value(json_object_get(o, "out")),
		json_string_value(json_object_get(o, "err")));
	json_decref(o);
	return text;
}

static int asked(const char *text)
{
	int fd = client();

	ask(fd, text, strlen(text));
	return fd;
}

static const char *answered(const char *text)
{
	return answer(asked(text));
}

static void test_words(void **state)
{
	const char *a;

	(void)state;
	assert_string_equal(
		answered("{\"argv\":[\"add\",\"vhost-user:a\",\"vhost-user:b\"]}\n"), "0||");
	a = answered("{\"argv\":[\"show\"]}\n");
	assert_true(strstr(a, "0|NAME") == a && strstr(a, "no front-end is connected"));
	a = answered("{\"argv\":[\"show\",\"--json\"],\"cwd\":\"/\"}\n");
	assert_non_null(strstr(a, "\"rss_anon_kib\""));
	a = answered("{\"argv\":[\"args\",\"qemu\",\"a\"]}\n");
	assert_non_null(strstr(a, "memory-backend-memfd"));
	a = answered("{\"argv\":[\"why\",\"a\",\"b\"]}\n");
	assert_non_null(strstr(a, "do not reach each other"));
	assert_string_equal(answered("{\"argv\":[\"show\",\"drops\"]}\n"), "0|none\n|");
	assert_string_equal(answered("{\"argv\":[\"del\",\"a\"]}\n"), "0||");
	a = answered("{\"argv\":[\"del\",\"a\"]}\n");
	assert_string_equal(a, "2||network 'lab' has no port 'a'; did you mean 'b'?");
	a = answered("{\"argv\":[\"add\",\"vhost-user:./x.sock\"],\"cwd\":\"/nowhere/at/all\"}\n");
	assert_non_null(strstr(a, "/nowhere/at/all"));
	assert_int_equal(net.nports, 1);
	assert_int_equal(ctl.nclients, 0);
}

static void test_byte_by_byte(void **state)
{
	static const char text[] = "{\"argv\":[\"show\",\"drops\"]}\n";
	int fd = client();

	(void)state;
	for (unsigned i = 0; i + 1 < sizeof(text); i++) {
		assert_null(answer(fd));
		ask(fd, text + i, 1);
	}
	assert_string_equal(answer(fd), "0|none\n|");
}

static void test_refused(void **state)
{
	static const char *const requests[] = {
		"\n",
		"hello\n",
		"{\n",
		"[]\n",
		"{}\n",
		"{\"argv\":[]}\n",
		"{\"argv\":\"show\"}\n",
		"{\"argv\":[1]}\n",
		"{\"argv\":[\"show\",null]}\n",
		"{\"argv\":[\"show\"],\"argv\":[\"stop\"]}\n",
		"{\"argv\":[\"sh\\u0000ow\"]}\n",
		"\xff\xfe\n",
	};
	static char big[2 * CTL_REQUEST];
	char cut[160];
	char *at = big;

	(void)state;
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const char *a = answered(requests[i]);

		if (strncmp(a, "2||a request is one line of JSON", 32))
			fail_msg("%s: %s", requests[i], a);
	}
	/* an answer that cuts a character in two is an answer all the same */
	for (int n = 50; n < 62; n++) {
		snprintf(cut, sizeof(cut), "{\"argv\":[\"add\",\"%0*d\u00fc:x\"]}\n", n, 0);
		if (!strstr(answered(cut), "is not a kind of port"))
			fail_msg("%s: %s", cut, answered(cut));
	}
	at += sprintf(at, "{\"argv\":[\"add\"");
	for (unsigned i = 0; i < CMD_WORDS; i++)
		at += sprintf(at, ",\"x\"");
	sprintf(at, "]}\n");
	assert_non_null(strstr(answered(big), "2||a request is"));
	assert_non_null(strstr(answered("{\"argv\":[\"frob\"]}\n"), "2||unknown word 'frob'"));
	assert_non_null(strstr(answered("{\"argv\":[\"run\"]}\n"), "does not run in the network"));
	assert_non_null(
		strstr(answered("{\"argv\":[\"add\",\"tap:\"]}\n"), "2||tap: needs IFNAME"));

	memset(big, 'x', sizeof(big) - 1);
	assert_non_null(strstr(answered(big), "longer than 64 KiB"));
	/* nested deeply */
	memset(big, '[', 30000);
	strcpy(big + 30000, "\n");
	assert_non_null(strstr(answered(big), "2||a request is"));
	assert_int_equal(ctl.nclients, 0);
	assert_int_equal(stops, 0);
}

static void test_wait(void **state)
{
	struct port *port;
	int a, b, c;

	(void)state;
	assert_int_equal(net_add(&net, "vhost-user:a", "/", NULL), 0);
	port = net_find(&net, "a", NULL)->port;
	a = asked("{\"argv\":[\"wait\",\"a\"]}\n");
	b = asked("{\"argv\":[\"wait\",\"a\",\"-t\",\"20\"]}\n");
	c = asked("{\"argv\":[\"wait\",\"a\"]}\n");
	assert_non_null(strstr(answered("{\"argv\":[\"wait\",\"z\"]}\n"), "2||"));
	now += 19 * NSEC_PER_SEC; /* longer than anybody's patience with one who must speak */
	assert_null(answer(a));
	assert_null(answer(b));
	assert_int_equal(ctl.nclients, 3);
	close(c);
	turn();
	assert_int_equal(ctl.nclients, 2);
	now += NSEC_PER_SEC;
	assert_string_equal(
		answer(b), "1||port 'a' has no link after 20 s: no front-end is connected");
	port_set_link(port, true);
	assert_string_equal(answer(a), "0||");
	assert_string_equal(answered("{\"argv\":[\"wait\",\"a\"]}\n"), "0||");
	port_set_link(port, false);
	a = asked("{\"argv\":[\"wait\",\"a\"]}\n");
	assert_int_equal(net_del(&net, "a", NULL), 0);
	assert_string_equal(answer(a), "1||port 'a' was taken out");
	assert_int_equal(ctl.nclients, 0);
}

/* Where one sees whether the network is still traced. */
static const struct port_ops *ops_of(const char *name)
{
	return net_find(&net, name, NULL)->port->ops;
}

static void test_trace(void **state)
{
	const struct port_ops *own;
	int a;

	(void)state;
	assert_int_equal(net_add(&net, "vhost-user:a", "/", NULL), 0);
	assert_int_equal(net_add(&net, "vhost-user:b", "/", NULL), 0);
	own = ops_of("a");
	assert_string_equal(answered("{\"argv\":[\"trace\",\"a\",\"-c\",\"0\"]}\n"),
		"2||trace: -c 0: must be at least 1");
	assert_non_null(strstr(answered("{\"argv\":[\"trace\",\"a\",\"-c\",\"1001\"]}\n"),
		"must be a number from 0 to 1000"));
	a = asked("{\"argv\":[\"trace\",\"a\",\"-t\",\"20\"]}\n");
	assert_ptr_not_equal(ops_of("a"), own);
	assert_string_equal(answered("{\"argv\":[\"trace\",\"b\"]}\n"),
		"2||port 'a' is traced already, and a network has one trace at a time; wait until "
		"it has ended");
	port_set_link(net_find(&net, "a", NULL)->port, true);
	port_set_link(net_find(&net, "a", NULL)->port, false);
	now += 20 * NSEC_PER_SEC - 1;
	assert_null(answer(a));
	now += 1;
	assert_string_equal(answer(a), "1||trace: 0 of 1 frames of port 'a': the time is over");
	assert_ptr_equal(ops_of("a"), own);
	/* who asked goes */
	a = asked("{\"argv\":[\"trace\",\"a\"]}\n");
	assert_ptr_not_equal(ops_of("a"), own);
	close(a);
	turn();
	assert_ptr_equal(ops_of("a"), own);
	/* a port goes, the traced one or another one */
	a = asked("{\"argv\":[\"trace\",\"a\",\"-c\",\"7\"]}\n");
	assert_int_equal(net_del(&net, "b", NULL), 0);
	assert_string_equal(
		answer(a), "1||trace: 0 of 7 frames of port 'a': port 'b' was taken out");
	assert_ptr_equal(ops_of("a"), own);
	a = asked("{\"argv\":[\"trace\",\"a\",\"--json\"]}\n");
	assert_int_equal(net_del(&net, "a", NULL), 0);
	assert_non_null(strstr(answer(a), "\"frames\": []"));
	/* the network ends */
	assert_int_equal(net_add(&net, "vhost-user:a", "/", NULL), 0);
	a = asked("{\"argv\":[\"trace\",\"a\"]}\n");
	ctl_finish(&ctl);
	assert_string_equal(answer(a), "1||the network ended");
}

static void test_stop(void **state)
{
	int a, b;

	(void)state;
	assert_int_equal(net_add(&net, "vhost-user:a", "/", NULL), 0);
	a = asked("{\"argv\":[\"stop\"]}\n");
	b = asked("{\"argv\":[\"wait\",\"a\"]}\n");
	assert_int_equal(stops, 1);
	assert_null(answer(a));
	ctl_finish(&ctl);
	assert_string_equal(answer(a), "0||");
	assert_string_equal(answer(b), "1||the network ended");
}

static void test_patience(void **state)
{
	int silent = client(), half = client(), slow;

	(void)state;
	ask(half, "{\"argv\":", 8);
	for (unsigned i = 0; i < 20; i++) {
		char text[32];

		snprintf(text, sizeof(text), "vhost-user:p%u", i);
		assert_int_equal(net_add(&net, text, "/", NULL), 0);
	}
	slow = client_buffer(1);
	/* pipelined rubbish does not matter either */
	ask(slow, "{\"argv\":[\"show\",\"--json\"]}\n{}{}{}\n", 34);
	assert_int_equal(ctl.nclients, 3);
	now += CTL_PATIENCE - 1;
	turn();
	assert_int_equal(ctl.nclients, 3);
	now += 1;
	turn();
	assert_int_equal(ctl.nclients, 0);
	assert_string_equal(answer(silent), "");
	assert_string_equal(answer(half), "");
	close(slow);
}

static void test_many(void **state)
{
	int fd[CTL_CLIENTS];
	const char *a;

	(void)state;
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		fd[i] = client();
	a = answer(client());
	assert_non_null(strstr(a, "2||the network serves 32"));
	ask(fd[7], "{\"argv\":[\"show\",\"drops\"]}\n", 26);
	assert_string_equal(answer(fd[7]), "0|none\n|");
	assert_string_equal(answered("{\"argv\":[\"show\",\"drops\"]}\n"), "0|none\n|");
	for (unsigned i = 0; i < CTL_CLIENTS; i++) {
		if (i != 7)
			close(fd[i]);
	}
	turn();
	assert_int_equal(ctl.nclients, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_byte_by_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_patience, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
