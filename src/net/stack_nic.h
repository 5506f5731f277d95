/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_nic: a host on a driver of its own (port/vdrv.h), packet by packet and without a copy: what
 * the driver received goes up as it is, what the host sends goes down as it is, and its accounts are
 * completed when the device has used it: what auto-cork and the small-queue limit of TCP look at.
 *
 * The host is made on the driver's pool: conf.pool = vdrv_pkts(driver). At the end: stack_nic_free,
 * stack_free, vdrv_free.
 */
#ifndef NET_STACK_NIC_H
#define NET_STACK_NIC_H

#include "net/stack.h"
#include "port/port.h"

struct stack_nic;

/* Attaches to the driver's events. 0 or -ENOMEM. */
int stack_nic_new(
	struct stack_nic **, struct stack *, struct port *driver, struct loop *, struct err *);
/* Closes the driver, so that all packets come back; NULL is fine. */
void stack_nic_free(struct stack_nic *);
/* A socket was used: as stack_port_kick. */
void stack_nic_kick(struct stack_nic *);
/* As stack_port_on_work. */
void stack_nic_on_work(struct stack_nic *, void (*work)(void *ctx), void *ctx);
/* Do now what the loop would: receive, timers, send. For those who poll. True: something came or went. */
bool stack_nic_poll(struct stack_nic *);

#endif
