/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * siphash: the keyed hash of small inputs that strangers choose: tables, initial sequence numbers,
 * ports, cookies. SipHash-2-4 as published by Aumasson and Bernstein (2012).
 */
#ifndef NET_SIPHASH_H
#define NET_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint8_t key[16], const void *in, size_t len);

#endif
