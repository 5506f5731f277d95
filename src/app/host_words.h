/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host_words: the options of a host, "ip=10.0.0.5/24,gateway=10.0.0.1,dhcp", into a struct.
 */
#ifndef APP_HOST_WORDS_H
#define APP_HOST_WORDS_H

#include "base/err.h"
#include "net/stack.h"

#define HOST_ADDRS    8
#define HOST_GATEWAYS 2

struct host_words {
	unsigned naddr, ngateway;
	struct {
		struct ip_addr ip;
		unsigned plen;
	} addr[HOST_ADDRS];
	struct ip_addr gateway[HOST_GATEWAYS];
	struct stack_conf conf; /* mac, mtu, memory, dhcp, no_auto as said */
	bool has_mac;
	uint32_t conns; /* TCP connections, 0: the default */
};

/* 0 or -EINVAL with the word that is wrong and what would be right. */
int host_words_parse(struct host_words *, const char *text, struct err *);
/* Give a new stack its addresses and routers. */
int host_words_apply(const struct host_words *, struct stack *, nsec_t now, struct err *);

#endif
