/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ip: classes of addresses, prefixes and their text. No table and no header. [RFC 4291, RFC 1122]
 */
#include "wire/ip.h"

#include <arpa/inet.h>

bool ip_addr_martian(const struct ip_addr *a)
{
	static const uint8_t loop6[16] = {[15] = 1};

	if (ip_addr_is4(a))
		return a->b[12] == 0 || a->b[12] == 127 || a->b[12] >= 224;
	return a->b[0] == 0xff || ip_addr_any(a) || !memcmp(a->b, loop6, 16);
}

bool ip_addr_in(const struct ip_addr *a, const struct ip_addr *prefix, unsigned plen)
{
	const unsigned bytes = plen / 8, bits = plen % 8;

	if (memcmp(a->b, prefix->b, bytes) != 0)
		return false;
	return !bits || !((a->b[bytes] ^ prefix->b[bytes]) >> (8 - bits));
}

void ip_addr_multicast_mac(const struct ip_addr *a, uint8_t mac[6])
{
	if (!ip_addr_is4(a)) {
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

bool ip_addr_parse_text(const char *text, struct ip_addr *a)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		*a = ip_addr4(v4);
		return true;
	}
	return inet_pton(AF_INET6, text, a->b) == 1 && !ip_addr_is4(a);
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

bool ip_addr_parse_prefix(const char *text, struct ip_addr *a, unsigned *plen)
{
	const char *slash = strchr(text, '/');
	const size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[IP_ADDR_TEXT];

	if (len >= sizeof(addr))
		return false;
	memcpy(addr, text, len);
	addr[len] = 0;
	*plen = 128;
	if (!ip_addr_parse_text(addr, a))
		return false;
	if (!slash)
		return true;
	if (!parse_plen(slash + 1, ip_addr_is4(a) ? 32 : 128, plen))
		return false;
	if (ip_addr_is4(a))
		*plen += 96;
	return true;
}

void ip_addr_build_text(const struct ip_addr *a, char text[IP_ADDR_TEXT])
{
	if (ip_addr_is4(a))
		inet_ntop(AF_INET, ip_addr_v4(a), text, IP_ADDR_TEXT);
	else
		inet_ntop(AF_INET6, a->b, text, IP_ADDR_TEXT);
}
