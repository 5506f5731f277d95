/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dhcpc: the state of the DHCP client for IPv4. [RFC 2131 4.4]
 */
#ifndef NET_DHCPC_H
#define NET_DHCPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum dhcpc_state {
	DHCPC_OFF,
	DHCPC_SELECTING,  /* discover was sent */
	DHCPC_REQUESTING, /* an offer was taken */
	DHCPC_BOUND,
	DHCPC_RENEWING,  /* asking the server, by unicast */
	DHCPC_REBINDING, /* asking anybody */
};

struct dhcpc {
	enum dhcpc_state state;
	uint32_t xid, addr, server;
	unsigned tries;
	nsec_t at; /* the next thing to do; NSEC_NEVER: nothing */
	nsec_t t1, t2, end;
};

struct stack;
void dhcpc_start(struct stack *, nsec_t now);
void dhcpc_timer(struct stack *, nsec_t now);

#endif
