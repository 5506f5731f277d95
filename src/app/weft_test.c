/* SPDX-License-Identifier: BSD-2-Clause */
/* weft: the public API as a host program uses it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "weft/weft.h"

static void test_life(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char top[] = "/tmp/weft-test-XXXXXX", err[WEFT_ERR] = "", text[128], *json;
	struct weft_net *net;
	struct pollfd p = {.events = POLLIN};
	int fd;

	(void)state;
	assert_true(strlen(weft_version()) > 2);
	assert_non_null(mkdtemp(top));
	assert_int_equal(weft_net_new(&net, "a/b", err), -EINVAL);
	assert_true(err[0]);
	assert_int_equal(weft_net_new(&net, "lab", err), 0);
	snprintf(text, sizeof(text), "vhost-user:%s/a.sock,mtu=9000", top);
	assert_int_equal(weft_net_add(net, text, err), 0);
	assert_int_equal(weft_net_add(net, text, err), -EEXIST);
	assert_int_equal(weft_net_add(net, "vhost-user:/x/y,mtu=1", NULL), -EINVAL);

	while (weft_net_timeout_ns(net) == 0)
		weft_net_dispatch(net, 0);
	p.fd = weft_net_fd(net);
	assert_int_equal(poll(&p, 1, 0), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/a.sock", top);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_return_code(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), errno);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(weft_net_dispatch(net, 1), 0);
	json = weft_net_show(net, "ports");
	assert_non_null(strstr(json, "\"connected\": true"));
	free(json);
	json = weft_net_show(net, NULL);
	assert_non_null(strstr(json, "\"network\": \"lab\""));
	free(json);
	assert_null(weft_net_show(net, "weather"));
	close(fd);
	assert_int_equal(weft_net_dispatch(net, 1), 0);
	assert_int_equal(weft_net_del(net, "b", err), -ENOENT);
	assert_int_equal(weft_net_del(net, "a", err), 0);
	weft_net_free(net);
	weft_net_free(NULL);
	assert_return_code(rmdir(top), errno);
}

static void hear(void *lines, int level, const char *tag, const char *text)
{
	(void)tag;
	assert_in_range(level, 0, 3);
	assert_true(text[0]);
	++*(unsigned *)lines;
}

/* Two networks in one process know nothing of each other. */
static void test_two(void **state)
{
	struct weft_net *a, *b;
	unsigned lines = 0;

	(void)state;
	assert_int_equal(weft_net_new(&a, "a", NULL), 0);
	assert_int_equal(weft_net_new(&b, "b", NULL), 0);
	weft_net_log(a, 2, hear, &lines);
	assert_int_not_equal(weft_net_fd(a), weft_net_fd(b));
	assert_int_equal(weft_net_dispatch(a, 0), 0);
	assert_int_equal(weft_net_dispatch(b, 0), 0);
	weft_net_log(a, 0, NULL, NULL);
	weft_net_free(a);
	weft_net_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
