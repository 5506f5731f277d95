/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr: the address type of both IP versions, as the TCP engine calls it: wire's.
 */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include "wire/ip.h"

#endif
