/* SPDX-License-Identifier: BSD-2-Clause */
/* linger_rig: for tests, a descriptor whose close() waits: a TCP socket that lingers over unread bytes. */
#ifndef BASE_LINGER_RIG_H
#define BASE_LINGER_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A socket whose close() waits as long as *reader is open. */
static inline int lingering(int *reader)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static const uint8_t bytes[65536];

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	*reader = accept(listener, NULL, NULL);
	assert_true(*reader >= 0);
	close(listener);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	/* until the receiver's window has been full for a moment */
	for (struct pollfd p = {.fd = fd, .events = POLLOUT}; poll(&p, 1, 50) > 0;)
		(void)!send(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return fd;
}

#endif
