/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_name: what may name a port, and the address made from a name.
 */
#include <errno.h>
#include <string.h>

#include "port/port.h"
#include "wire/bytes.h"

static uint64_t hash_text(uint64_t h, const char *s)
{
	do {
		h = (h ^ (uint8_t)*s) * 0x100000001b3; /* FNV-1a, the NUL separates net and name */
	} while (*s++);
	return h;
}

void port_mac_of_name(const char *net, const char *name, uint8_t mac[6])
{
	uint64_t h = hash_text(hash_text(0xcbf29ce484222325, net), name);

	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15;
	h ^= h >> 29;
	put_be16(mac, (uint16_t)(h >> 32));
	put_be32(mac + 2, (uint32_t)h);
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02);
}

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

int port_name_check(const char *name, struct err *err)
{
	size_t len = strlen(name);

	if (!len)
		return err_set(err, EINVAL, "a port's name may not be empty");
	if (len >= NAME_LEN)
		return err_set(err, EINVAL,
			"port name \"%.40s%s\" has %zu characters, at most %d fit", name,
			len > 40 ? "..." : "", len, NAME_LEN - 1);
	if (name[0] == '-' || name[0] == '.')
		return err_set(err, EINVAL,
			"port name \"%s\" starts with '%c': start with a letter, a digit or '_'",
			name, name[0]);
	for (const char *c = name; *c; c++) {
		if (!name_char(*c))
			return err_set(err, EINVAL,
				"port name \"%s\" holds a character other than letters, digits, "
				"'.', "
				"'_' and '-'",
				name);
	}
	return 0;
}
