/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sigbus: a table of watched ranges, read by the signal handler without a lock. It is the only
 * mutable global state of the house: signal handlers belong to the process.
 *
 * A slot goes FREE -> TAKEN -> LIVE -> FREE. The handler looks at LIVE slots only; start and len
 * are written while TAKEN, and the store of LIVE publishes them. The owner of a range does not
 * touch its memory after sigbus_unwatch, so the handler never needs a slot that is going away.
 */
#include "base/sigbus.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FREE, TAKEN, LIVE };

struct range {
	int state;
	bool faulted;
	uintptr_t start;
	size_t len;
};

static struct {
	struct range range[SIGBUS_RANGES];
	unsigned top; /* no slot at or beyond was ever used */
	int installed;
	uintptr_t page;
	struct sigaction before;
} guard;

static struct range *range_find(uintptr_t addr)
{
	unsigned top = __atomic_load_n(&guard.top, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < top; i++) {
		struct range *r = &guard.range[i];

		/* [live] pairs with the release in sigbus_watch */
		if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == LIVE &&
			addr - r->start < r->len)
			return r;
	}
	return NULL;
}

static bool zeros_map(uintptr_t from, uintptr_t end)
{
	return mmap((void *)from, end - from, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		       0) != MAP_FAILED;
}

/* Everything from the page that faulted: what is behind it is missing, too. Huge pages cannot be
 * cut at any page: then the whole range goes; its owner is broken in either case. */
static bool range_patch(struct range *r, uintptr_t addr)
{
	uintptr_t end = r->start + r->len;

	if (!zeros_map(addr & ~(guard.page - 1), end) && !zeros_map(r->start, end))
		return false;
	__atomic_store_n(&r->faulted, true, __ATOMIC_RELEASE);
	return true;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *b = &guard.before;

	if (b->sa_flags & SA_SIGINFO) {
		b->sa_sigaction(sig, info, context);
	} else if (b->sa_handler != SIG_DFL && b->sa_handler != SIG_IGN) {
		b->sa_handler(sig);
	} else {
		/* blocked while we are here: it strikes as we return, like without us */
		signal(sig, SIG_DFL);
		raise(sig);
	}
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	/* only then is si_addr an address: a signal that was sent has the sender there */
	struct range *r = info->si_code == BUS_ADRERR ? range_find((uintptr_t)info->si_addr) : NULL;

	if (!r || !range_patch(r, (uintptr_t)info->si_addr))
		pass_on(sig, info, context);
	errno = saved;
}

int sigbus_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (__atomic_exchange_n(&guard.installed, 1, __ATOMIC_ACQ_REL))
		return 0;
	guard.page = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&sa.sa_mask);
	/* first only ask, so that the handler never runs before it knows whom to pass on to */
	if (sigaction(SIGBUS, NULL, &guard.before) < 0 || sigaction(SIGBUS, &sa, NULL) < 0) {
		guard.installed = 0;
		return -errno;
	}
	return 0;
}

static void top_raise(unsigned to)
{
	unsigned top = __atomic_load_n(&guard.top, __ATOMIC_RELAXED);

	while (top < to && !__atomic_compare_exchange_n(
				   &guard.top, &top, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

int sigbus_watch(void *start, size_t len)
{
	for (unsigned i = 0; i < SIGBUS_RANGES; i++) {
		struct range *r = &guard.range[i];
		int want = FREE;

		if (!__atomic_compare_exchange_n(
			    &r->state, &want, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		r->start = (uintptr_t)start;
		r->len = len;
		__atomic_store_n(&r->faulted, false, __ATOMIC_RELAXED);
		__atomic_store_n(&r->state, LIVE, __ATOMIC_RELEASE); /* [live] */
		top_raise(i + 1);
		return (int)i;
	}
	return -ENOSPC;
}

void sigbus_unwatch(int handle)
{
	if (handle >= 0)
		__atomic_store_n(&guard.range[handle].state, FREE, __ATOMIC_RELEASE);
}

bool sigbus_faulted(int handle)
{
	return handle >= 0 && __atomic_load_n(&guard.range[handle].faulted, __ATOMIC_ACQUIRE);
}

const bool *sigbus_flag(int handle)
{
	return &guard.range[handle].faulted;
}
