/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vnet: the virtio-net header and feature bits, for both sides. It knows neither rings nor sockets.
 *
 * The header, little-endian ("native" of legacy drivers is little-endian on all machines we run
 * on):
 *
 *	0      1         2        4         6           8            10
 *	flags  gso_type  hdr_len  gso_size  csum_start  csum_offset  [num_buffers]
 *
 * [VIRTIO 1.2 5.1.3, 5.1.6]
 */
#include "port/vnet.h"

#include <endian.h>
#include <errno.h>

static const struct {
	const char *name;
	uint8_t len, bit;
} features[] = {
#define X(text, name, bit) {#text, sizeof(#text) - 1, bit},
	VNET_FEATURES(X)
#undef X
};
#define N_FEATURES (sizeof(features) / sizeof(features[0]))

#define GUEST_TSO (VNET_BIT(GUEST_TSO4) | VNET_BIT(GUEST_TSO6))
#define GUEST_GSO (GUEST_TSO | VNET_BIT(GUEST_USO4) | VNET_BIT(GUEST_USO6))
#define HOST_TSO  (VNET_BIT(HOST_TSO4) | VNET_BIT(HOST_TSO6))
#define HOST_GSO  (HOST_TSO | VNET_BIT(HOST_USO))

/* Without any of `any` none of `bits` may be there. Ordered: what a later row needs, an earlier one
 * may have taken away. [VIRTIO 1.2 5.1.3.1] */
static const struct {
	uint64_t any, bits;
} needs[] = {
	{VNET_BIT(GUEST_CSUM), GUEST_GSO},
	{GUEST_TSO, VNET_BIT(GUEST_ECN)},
	{VNET_BIT(CSUM), HOST_GSO},
	{HOST_TSO, VNET_BIT(HOST_ECN)},
};

uint64_t vnet_features_all(void)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < N_FEATURES; i++)
		bits |= UINT64_C(1) << features[i].bit;
	return bits;
}

uint64_t vnet_features_close(uint64_t bits)
{
	for (unsigned i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (!(bits & needs[i].any))
			bits &= ~needs[i].bits;
	}
	return bits;
}

static int feature_find(const char *word, size_t len)
{
	for (unsigned i = 0; i < N_FEATURES; i++) {
		if (features[i].len == len && !memcmp(features[i].name, word, len))
			return (int)features[i].bit;
	}
	return -1;
}

int vnet_features_parse(const char *text, uint64_t *bits, struct err *err)
{
	uint64_t sum = 0;
	char known[ERR_TEXT];

	for (const char *word = text;;) {
		size_t len = 0;
		int bit;

		while (word[len] && word[len] != '+')
			len++;
		bit = feature_find(word, len);
		if (bit < 0)
			return err_set(err, EINVAL, "'%.*s' is not a feature; known: %s",
				(int)(len < 32 ? len : 32), word,
				vnet_features_text(vnet_features_all(), known, sizeof(known)));
		sum |= UINT64_C(1) << bit;
		if (!word[len])
			break;
		word += len + 1;
	}
	*bits = sum;
	return 0;
}

/* "mrg_rxbuf" or "bit40" into `word`; returns its length. */
static unsigned feature_name(unsigned bit, char word[32])
{
	for (unsigned i = 0; i < N_FEATURES; i++) {
		if (features[i].bit != bit)
			continue;
		memcpy(word, features[i].name, features[i].len);
		return features[i].len;
	}
	word[0] = 'b';
	word[1] = 'i';
	word[2] = 't';
	if (bit < 10) {
		word[3] = (char)('0' + bit);
		return 4;
	}
	word[3] = (char)('0' + bit / 10);
	word[4] = (char)('0' + bit % 10);
	return 5;
}

char *vnet_features_text(uint64_t bits, char *text, unsigned size)
{
	unsigned at = 0;
	char word[32];

	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned len;

		if (!(bits >> bit & 1))
			continue;
		len = feature_name(bit, word);
		if (at + 1 + len >= size)
			break;
		if (at)
			text[at++] = ' ';
		memcpy(text + at, word, len);
		at += len;
	}
	if (size)
		text[at] = 0;
	return text;
}

unsigned vnet_accepts(uint64_t bits)
{
	unsigned accepts = 0;

	bits = vnet_features_close(bits);
	if (bits & VNET_BIT(GUEST_CSUM))
		accepts |= ACCEPT_CSUM;
	if (bits & VNET_BIT(GUEST_TSO4))
		accepts |= ACCEPT_TSO4;
	if (bits & VNET_BIT(GUEST_TSO6))
		accepts |= ACCEPT_TSO6;
	if (bits & VNET_BIT(GUEST_ECN))
		accepts |= ACCEPT_ECN;
	if (bits & VNET_BIT(GUEST_USO4))
		accepts |= ACCEPT_USO4;
	if (bits & VNET_BIT(GUEST_USO6))
		accepts |= ACCEPT_USO6;
	return accepts;
}

unsigned vnet_hdr_len(uint64_t bits)
{
	return bits & (VNET_BIT(MRG_RXBUF) | VNET_BIT(VERSION_1)) ? 12 : 10;
}

static uint16_t le16_get(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static void le16_put(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

void vnet_hdr_parse_slow(const uint8_t hdr[VNET_HDR_MAX], struct offload *off)
{
	bool partial = hdr[0] & OFF_NEEDS_CSUM;

	*off = (struct offload){
		.flags = hdr[0] & OFF_NEEDS_CSUM,
		.gso = hdr[1],
		.hdr_len = le16_get(hdr + 2),
		.gso_size = hdr[1] ? le16_get(hdr + 4) : 0,
		.csum_start = partial ? le16_get(hdr + 6) : 0,
		.csum_off = partial ? le16_get(hdr + 8) : 0,
	};
}

void vnet_hdr_build_slow(uint8_t hdr[VNET_HDR_MAX], const struct offload *off, unsigned accepts)
{
	/* A driver without GUEST_CSUM gets frames whose checksums are finished: port_push saw to
	 * it. */
	if (!(accepts & ACCEPT_CSUM))
		return;
	hdr[0] = off->flags & (OFF_NEEDS_CSUM | OFF_DATA_VALID);
	hdr[1] = off->gso;
	if (off->gso) {
		le16_put(hdr + 2, off->hdr_len);
		le16_put(hdr + 4, off->gso_size);
	}
	if (off->flags & OFF_NEEDS_CSUM) {
		le16_put(hdr + 6, off->csum_start);
		le16_put(hdr + 8, off->csum_off);
	}
}
