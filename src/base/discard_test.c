/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discard: kinds told apart; descriptors whose close() waits, alone and inside of sockets. The one that
 * waits is a TCP socket that lingers over bytes which nobody reads: closed in our thread it would hold us
 * until the alarm.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/discard.h"
#include "base/linger_rig.h"

#define HANGS_IN 20 /* seconds */

static int setup(void **state)
{
	static struct discard d;

	*state = &d;
	alarm(HANGS_IN);
	return 0;
}

static int teardown(void **state)
{
	alarm(0);
	discard_fini(*state);
	return 0;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

/* A thread of its own closes it: soon, but not at once. */
static void until_closed(struct discard *d)
{
	while (discard_pending(d))
		poll(NULL, 0, 1);
}

static void pass(int sock, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	char x = 'x';
	struct iovec iov = {&x, 1};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &m, 0), 1);
	close(fd);
}

static void kinds(void **state)
{
	int sv[2], pipes[2], fd;

	(void)state;
	fd = eventfd(0, 0);
	assert_int_equal(fd_kind(fd), FD_EVENTFD);
	close(fd);
	fd = memfd_create("kinds", 0); /* seals or not */
	assert_int_equal(fd_kind(fd), FD_MEMORY);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	assert_int_equal(fd_kind(sv[0]), FD_SOCKET);
	close(sv[0]);
	close(sv[1]);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(fd_kind(pipes[0]), FD_OTHER);
	close(pipes[0]);
	close(pipes[1]);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(fd_kind(fd), FD_OTHER);
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(listen(fd, 1), -1); /* not bound */
	assert_int_equal(bind(fd, &(struct sockaddr){AF_UNIX, {0}}, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(fd_kind(fd), FD_OTHER);
	close(fd);
	fd = epoll_create1(0); /* no file type either */
	assert_int_equal(fd_kind(fd), FD_OTHER);
	close(fd);
	assert_int_equal(fd_kind(-1), FD_OTHER);
}

static void of_known_kind_at_once(void **state)
{
	int sv[2], fd = eventfd(0, 0), mem = memfd_create("known", 0);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	discard_fd(*state, fd);
	discard_fd(*state, mem);
	discard_fd(*state, sv[0]);
	assert_int_equal(discard_pending(*state), 0);
	assert_false(is_open(fd) || is_open(mem) || is_open(sv[0]));
	close(sv[1]);
}

static void one_that_waits(void **state)
{
	int reader, fd = lingering(&reader);

	discard_fd(*state, fd);
	assert_int_equal(discard_pending(*state), 1);
	close(reader); /* with bytes unread: a reset, and the waiting ends */
	until_closed(*state);
	assert_false(is_open(fd));
}

static unsigned fds_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += is_open(fd);
	return n;
}

static unsigned threads(void)
{
	char line[64];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "Threads: %u", &n);
	fclose(f);
	return n;
}

/* Thousands in the queue of a socket, and in that of a socket in it: none becomes ours. */
static void inside_of_sockets(void **state)
{
	int reader[2], inner[2], outer[2];
	unsigned before = threads(), open;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, inner), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, outer), 0);
	pass(inner[1], lingering(&reader[0]));
	pass(outer[1], lingering(&reader[1]));
	for (unsigned i = 0; i < 100; i++)
		pass(outer[1], socket(AF_INET, SOCK_STREAM, 0));
	pass(outer[1], inner[0]);
	open = fds_open();
	discard_fd(*state, outer[0]);
	assert_int_equal(discard_pending(*state), 1);
	assert_int_equal(send(outer[1], "x", 1, MSG_NOSIGNAL), -1); /* no more may come */
	assert_true(fds_open() <= open);
	assert_true(threads() <= before + 1);
	close(reader[0]);
	close(reader[1]);
	until_closed(*state);
	assert_false(is_open(outer[0]));
	close(inner[1]);
	close(outer[1]);
}

/* Many that wait, one behind the other: one thread, which goes when they have. */
static void one_thread_for_all(void **state)
{
	enum { N = 20 };
	unsigned before = threads();
	int reader[N];

	for (unsigned i = 0; i < N; i++)
		discard_fd(*state, lingering(&reader[i]));
	assert_int_equal(discard_pending(*state), N);
	assert_int_equal(threads(), before + 1);
	for (unsigned i = 0; i < N; i++)
		close(reader[i]);
	until_closed(*state);
	while (threads() > before)
		poll(NULL, 0, 1);
}

/* Whether the socket's options are the peer's or not. */
static void whose_peer_wants_credentials(void **state)
{
	int sv[2], reader, on = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	assert_int_equal(setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	pass(sv[1], lingering(&reader));
	discard_fd(*state, sv[0]);
	assert_int_equal(discard_pending(*state), 1);
	close(reader);
	until_closed(*state);
	assert_false(is_open(sv[0]));
	close(sv[1]);
}

/* No byte in it, and yet something. */
static void behind_an_empty_datagram(void **state)
{
	static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};

	for (unsigned i = 0; i < 2; i++) {
		int sv[2], reader;

		assert_int_equal(socketpair(AF_UNIX, types[i], 0, sv), 0);
		assert_int_equal(send(sv[1], "", 0, 0), 0);
		pass(sv[1], lingering(&reader));
		discard_fd(*state, sv[0]);
		assert_int_equal(discard_pending(*state), 1);
		close(reader);
		until_closed(*state);
		close(sv[1]);
	}
}

/* The owner may go before its thread. */
static void owner_goes_first(void **state)
{
	struct discard d = {NULL};
	int reader, fd = lingering(&reader);

	(void)state;
	discard_fd(&d, fd);
	discard_fini(&d);
	assert_int_equal(discard_pending(&d), 0);
	close(reader);
	while (is_open(fd))
		poll(NULL, 0, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(kinds),
		T(of_known_kind_at_once),
		T(one_that_waits),
		T(inside_of_sockets),
		T(one_thread_for_all),
		T(whose_peer_wants_credentials),
		T(behind_an_empty_datagram),
		T(owner_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
