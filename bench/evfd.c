/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_evfd: what a notification costs: by write(), and by the kernel's own signal (base/evfd). */
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/evfd.h"

#define SIGNALS 200000
#define ROUNDS  5

static double by_write_ns(int fd)
{
	const uint64_t one = 1;
	nsec_t begun = clock_now();

	for (unsigned i = 0; i < SIGNALS; i++)
		(void)!write(fd, &one, sizeof(one));
	return (double)(clock_now() - begun) / SIGNALS;
}

static double by_evfd_ns(struct evfd *e, int fd)
{
	nsec_t begun = clock_now();

	for (unsigned i = 0; i < SIGNALS; i++)
		evfd_signal(e, fd);
	return (double)(clock_now() - begun) / SIGNALS;
}

int main(void)
{
	struct evfd e;
	int fd = eventfd(0, EFD_CLOEXEC);

	evfd_init(&e);
	if (fd < 0 || evfd_prepare(&e)) {
		fprintf(stderr, "no asynchronous I/O here: look at fs.aio-max-nr\n");
		return 1;
	}
	for (unsigned i = 0; i < ROUNDS; i++)
		printf("write %.0f ns, evfd_signal %.0f ns\n", by_write_ns(fd), by_evfd_ns(&e, fd));
	evfd_fini(&e);
	close(fd);
	return 0;
}
