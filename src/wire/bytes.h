/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bytes: network-order values as types of their own, and unaligned access.
 */
#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

#include <stdint.h>
#include <string.h>

typedef struct {
	uint8_t b[2];
} be16;

typedef struct {
	uint8_t b[4];
} be32;

static inline uint16_t be16_get(be16 v)
{
	return (uint16_t)(v.b[0] << 8 | v.b[1]);
}

static inline uint32_t be32_get(be32 v)
{
	return (uint32_t)v.b[0] << 24 | (uint32_t)v.b[1] << 16 | (uint32_t)v.b[2] << 8 | v.b[3];
}

static inline be16 be16_of(uint16_t v)
{
	return (be16){{(uint8_t)(v >> 8), (uint8_t)v}};
}

static inline be32 be32_of(uint32_t v)
{
	return (be32){{(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}};
}

static inline uint16_t get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

#endif
