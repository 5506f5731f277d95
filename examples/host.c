/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host: two hosts with sockets inside one process and one network: no root, no kernel sockets. The
 * server answers what it is told, the client prints the answer.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

static void must(int r, const char *err)
{
	if (r)
		errx(1, "%s", err);
}

/* A host sleeps with its network: one of them is waited for, all of them move. */
static void turn(struct weft_net *net)
{
	must(weft_net_dispatch(net, 1), "dispatch");
}

static int serve(struct weft_host *h)
{
	struct weft_addr here;
	const int s = weft_socket(h, WEFT_TCP);

	must(weft_addr_parse(&here, ":7"), "address");
	must(weft_bind(h, s, &here), "bind");
	must(weft_listen(h, s, 4), "listen");
	return s;
}

/* Take what has come, give it back. */
static void echo(struct weft_host *h, int listener, int *s)
{
	char bytes[100];
	ssize_t n;

	if (*s < 0)
		*s = weft_accept(h, listener, NULL);
	n = *s < 0 ? 0 : weft_recv(h, *s, bytes, sizeof(bytes), 0);
	if (n > 0)
		weft_send(h, *s, bytes, (size_t)n, 0);
}

int main(void)
{
	struct weft_net *net;
	struct weft_host *server, *client;
	struct weft_addr to;
	char text[WEFT_ERR], bytes[100];
	int listener, s = -1, c;
	ssize_t n;

	must(weft_net_new(&net, "lab", text), text);
	must(weft_host_attach(&server, net, "server,ip=10.0.0.1/24", text), text);
	must(weft_host_attach(&client, net, "client,ip=10.0.0.2/24", text), text);
	listener = serve(server);

	must(weft_addr_parse(&to, "10.0.0.1:7"), "address");
	c = weft_socket(client, WEFT_TCP);
	if (weft_connect(client, c, &to) != -EINPROGRESS)
		errx(1, "connect");
	while (!(weft_ready(client, c) & (WEFT_OUT | WEFT_ERR_BIT)))
		turn(net);
	weft_send(client, c, "hello, host", 11, 0);
	while ((n = weft_recv(client, c, bytes, sizeof(bytes), 0)) == -EAGAIN) {
		turn(net);
		echo(server, listener, &s);
	}
	printf("received %zd bytes: %.*s\n", n, (int)(n > 0 ? n : 0), bytes);

	weft_host_close(client);
	weft_host_close(server);
	weft_net_free(net);
	return 0;
}
