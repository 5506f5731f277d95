/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip: classes of addresses, prefixes and their text. No table and no header. [RFC 4291, RFC 1122]
 */
#include "wire/ip.h"

#include <arpa/inet.h>

bool ipa_is_martian_source(const struct ipa *a)
{
	static const uint8_t loop6[16] = {[15] = 1};

	if (ipa_is4(a))
		return a->b[12] == 0 || a->b[12] == 127 || a->b[12] >= 224;
	return a->b[0] == 0xff || ipa_is_any(a) || !memcmp(a->b, loop6, 16);
}

bool ipa_in(const struct ipa *a, const struct ipa *prefix, unsigned plen)
{
	const unsigned bytes = plen / 8, bits = plen % 8;

	if (memcmp(a->b, prefix->b, bytes))
		return false;
	return !bits || !((a->b[bytes] ^ prefix->b[bytes]) >> (8 - bits));
}

void ipa_multicast_mac(const struct ipa *a, uint8_t mac[6])
{
	if (!ipa_is4(a)) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, a->b + 12, 4);
	} else if (a->b[12] < 240) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		memcpy(mac + 3, a->b + 13, 3);
		mac[3] &= 0x7f;
	} else {
		memset(mac, 0xff, 6);
	}
}

bool ipa_parse_text(const char *text, struct ipa *a)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		*a = ipa_of4(v4);
		return true;
	}
	return inet_pton(AF_INET6, text, a->b) == 1 && !ipa_is4(a);
}

static bool parse_plen(const char *text, unsigned max, unsigned *plen)
{
	unsigned n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (unsigned)(*text - '0');
		if (n > max)
			return false;
	}
	*plen = n;
	return true;
}

bool ipa_parse_prefix(const char *text, struct ipa *a, unsigned *plen)
{
	const char *slash = strchr(text, '/');
	const size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[IPA_TEXT];

	if (len >= sizeof(addr))
		return false;
	memcpy(addr, text, len);
	addr[len] = 0;
	*plen = 128;
	if (!ipa_parse_text(addr, a))
		return false;
	if (!slash)
		return true;
	if (!parse_plen(slash + 1, ipa_is4(a) ? 32 : 128, plen))
		return false;
	if (ipa_is4(a))
		*plen += 96;
	return true;
}

void ipa_build_text(const struct ipa *a, char text[IPA_TEXT])
{
	if (ipa_is4(a))
		inet_ntop(AF_INET, ipa_v4(a), text, IPA_TEXT);
	else
		inet_ntop(AF_INET6, a->b, text, IPA_TEXT);
}
