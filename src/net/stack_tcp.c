/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_tcp: between the stack and the engine of TCP.
 */
#include "net/stack_int.h"

int stack_tcp_new(struct stack *st, struct err *err)
{
	(void)st;
	(void)err;
	return 0;
}

void stack_tcp_free(struct stack *st)
{
	(void)st;
}

void stack_tcp_in(struct stack *st, struct rx *rx, nsec_t now)
{
	(void)st;
	(void)rx;
	(void)now;
}

void stack_tcp_out(struct stack *st, nsec_t now)
{
	(void)st;
	(void)now;
}

void stack_tcp_error(struct stack *st, const struct ip_addr *src, const struct ip_addr *dst,
	const uint8_t *tcp, enum icmp_kind kind, int err, uint32_t mtu, nsec_t now)
{
	(void)st;
	(void)src;
	(void)dst;
	(void)tcp;
	(void)kind;
	(void)err;
	(void)mtu;
	(void)now;
}

void stack_tcp_timer(struct stack *st, nsec_t now)
{
	(void)st;
	(void)now;
}

nsec_t stack_tcp_deadline(const struct stack *st)
{
	(void)st;
	return NSEC_NEVER;
}
