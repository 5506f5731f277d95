/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_link: a network interface by rtnetlink: MTU, addresses, up; and news of it later. No other program
 * is needed. It works in the network namespace of the calling thread, and knows no tap and no port.
 */
#ifndef PORT_TAP_LINK_H
#define PORT_TAP_LINK_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tap_link {
	uint32_t mtu; /* [bytes of an IP datagram] */
	bool up;      /* IFF_UP: set by the administrator */
	bool left;    /* deleted, or gone to another network namespace */
};

/* What an interface is to be; 0 and NULL: leave it. */
struct tap_link_want {
	uint32_t mtu, txqlen;
	unsigned flags; /* to be set with IFF_UP */
	const char *const *addr;
};

/* One message of a routing socket. */
union tap_link_buf {
	struct nlmsghdr align;
	uint8_t bytes[8192];
};

/* "ADDR/LEN", v4 or v6; -EINVAL names it. `who`, such as "tap:t0", begins every text. */
int tap_address_check(const char *who, const char *text, struct err *);

/*
 * Set what is asked for and is not so yet: nothing needs a right that changes nothing.
 * -EPERM comes without a text: the caller knows why there is no right.
 */
int tap_link_setup(const char *who, const char *ifname, const struct tap_link_want *, struct err *);
int tap_link_get(const char *ifname, struct tap_link *); /* 0 or -errno */
int tap_link_mac(const char *ifname, uint8_t mac[6]);    /* 0 or -errno */

/* What a virtual interface lies upon; 0: nothing, or an interface of another namespace. Or -errno. */
int tap_link_below(unsigned ifindex);

/* Send one request, wait for its acknowledgement. 0 or -errno. */
int tap_link_talk(struct nlmsghdr *);

/* A non-blocking descriptor that becomes readable when this interface, and no other, changed; or -errno. */
int tap_link_watch(unsigned ifindex);
/* What became of it: true if *link is news. Reads until there is no more. From any namespace. */
bool tap_link_read(int watch, unsigned ifindex, struct tap_link *link);
/* Delete it, in the namespace that `watch` was opened in; -1: in ours. */
void tap_link_delete(int watch, unsigned ifindex);

#endif
