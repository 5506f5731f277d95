/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eth: the textual form of Ethernet addresses. It knows no frame and no table; everything that
 * reads an address out of a header is inline in eth.h.
 */
#include "wire/eth.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool eth_parse_text(const char *text, uint8_t mac[ETH_ALEN])
{
	uint8_t out[ETH_ALEN];
	char join = 0;

	for (unsigned i = 0; i < ETH_ALEN; i++) {
		int hi, lo;

		if (i == 1)
			join = *text;
		if (i && (*text++ != join || (join != ':' && join != '-')))
			return false;
		hi = hex_digit(text[0]);
		lo = hi < 0 ? -1 : hex_digit(text[1]); /* never reads beyond a NUL */
		if (lo < 0)
			return false;
		out[i] = (uint8_t)(hi << 4 | lo);
		text += 2;
	}
	if (*text)
		return false;
	memcpy(mac, out, ETH_ALEN);
	return true;
}

void eth_build_text(const uint8_t mac[ETH_ALEN], char text[ETH_TEXT])
{
	static const char digit[] = "0123456789abcdef";

	for (unsigned i = 0; i < ETH_ALEN; i++) {
		*text++ = digit[mac[i] >> 4];
		*text++ = digit[mac[i] & 15];
		*text++ = i == ETH_ALEN - 1 ? 0 : ':';
	}
}
