/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vnet: the virtio-net header and feature bits, for both sides. [VIRTIO 1.2 5.1]
 */
#ifndef PORT_VNET_H
#define PORT_VNET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "frame/frame.h"
#include "frame/offload.h"

/* name as a user writes it in off=, bit number */
#define VNET_FEATURES(X)                                                                           \
	X(csum, CSUM, 0)                                                                           \
	X(guest_csum, GUEST_CSUM, 1)                                                               \
	X(mtu, MTU, 3)                                                                             \
	X(mac, MAC, 5)                                                                             \
	X(guest_tso4, GUEST_TSO4, 7)                                                               \
	X(guest_tso6, GUEST_TSO6, 8)                                                               \
	X(guest_ecn, GUEST_ECN, 9)                                                                 \
	X(host_tso4, HOST_TSO4, 11)                                                                \
	X(host_tso6, HOST_TSO6, 12)                                                                \
	X(host_ecn, HOST_ECN, 13)                                                                  \
	X(mrg_rxbuf, MRG_RXBUF, 15)                                                                \
	X(status, STATUS, 16)                                                                      \
	X(any_layout, ANY_LAYOUT, 27)                                                              \
	X(indirect_desc, INDIRECT_DESC, 28)                                                        \
	X(event_idx, EVENT_IDX, 29)                                                                \
	X(version_1, VERSION_1, 32)                                                                \
	X(guest_uso4, GUEST_USO4, 54)                                                              \
	X(guest_uso6, GUEST_USO6, 55)                                                              \
	X(host_uso, HOST_USO, 56)

enum {
#define X(text, name, bit) VNET_F_##name##_BIT = bit,
	VNET_FEATURES(X)
#undef X
};
#define VNET_BIT(name) (UINT64_C(1) << VNET_F_##name##_BIT)

/* All that the device offers. */
uint64_t vnet_features_all(void);
/* Take away every bit whose prerequisite is not there (N2), until nothing changes. */
uint64_t vnet_features_close(uint64_t);
/* "guest_tso4+mrg_rxbuf" to bits; unknown word: -EINVAL naming it and all that are known. */
int vnet_features_parse(const char *text, uint64_t *bits, struct err *);
/* Space-separated names of the bits that we know, in bit order, others as bitN; returns `text`. */
char *vnet_features_text(uint64_t bits, char *text, unsigned size);

/* ACCEPT_* that the driver's feature set amounts to: what it takes on receive. */
unsigned vnet_accepts(uint64_t features);

/* 10 or 12. Recomputed on each feature set, never cached across a reset. [VIRTIO 1.2 5.1.6] */
unsigned vnet_hdr_len(uint64_t features);

#define VNET_HDR_MAX 12
void vnet_hdr_parse_slow(const uint8_t hdr[VNET_HDR_MAX], struct offload *);
void vnet_hdr_build_slow(uint8_t hdr[VNET_HDR_MAX], const struct offload *, unsigned accepts);

/*
 * Decode a private copy. DATA_VALID is not a driver's to set and is cleared, unknown flags are
 * ignored, checksum fields are 0 without NEEDS_CSUM. Whether the rest fits the frame is
 * offload_check()'s matter.
 */
static inline void vnet_hdr_parse(const uint8_t hdr[VNET_HDR_MAX], struct offload *off)
{
	if (__builtin_expect(!(hdr[0] | hdr[1]), 1))
		*off = (struct offload){0};
	else
		vnet_hdr_parse_slow(hdr, off);
}

/*
 * Encode for a driver that takes `accepts`; num_buffers as given (beyond the end of a 10-byte
 * header), all padding zero.
 */
static inline void vnet_hdr_build(uint8_t hdr[VNET_HDR_MAX], const struct offload *off,
	unsigned accepts, uint16_t num_buffers)
{
	uint64_t zero = 0;

	memcpy(hdr, &zero, 8);
	hdr[8] = hdr[9] = 0;
	hdr[10] = (uint8_t)num_buffers;
	hdr[11] = (uint8_t)(num_buffers >> 8);
	if (__builtin_expect(off->flags | off->gso, 0))
		vnet_hdr_build_slow(hdr, off, accepts);
}

#endif
