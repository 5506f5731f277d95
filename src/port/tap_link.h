/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_link: a network interface by rtnetlink: MTU, addresses, up; and news of it later. No other program
 * is needed. It works in the network namespace of the calling thread, and knows no tap and no port.
 */
#ifndef PORT_TAP_LINK_H
#define PORT_TAP_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tap_link {
	uint32_t mtu; /* [bytes of an IP datagram] */
	bool up;      /* IFF_UP: set by the administrator */
};

/* "ADDR/LEN", v4 or v6; -EINVAL names it. `ifname` is for the text only. */
int tap_address_check(const char *ifname, const char *text, struct err *);

/*
 * Set what is asked for and is not so yet: nothing needs a right that changes nothing. mtu 0, txqlen
 * 0, addr NULL: leave it. -EPERM comes without a text: the caller knows why there is no right.
 */
int tap_link_setup(
	const char *ifname, uint32_t mtu, uint32_t txqlen, const char *const *addr, struct err *);
int tap_link_get(const char *ifname, struct tap_link *); /* 0 or -errno */

/* A non-blocking descriptor that becomes readable when this interface, and no other, changed; or -errno. */
int tap_link_watch(unsigned ifindex);
/* What became of it: true if *link is news. Reads until there is no more. From any namespace. */
bool tap_link_read(int watch, unsigned ifindex, struct tap_link *link);

#endif
