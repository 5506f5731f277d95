/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host_words: one table of words; the order they come in does not matter.
 */
#include "app/host_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/sock.h"
#include "wire/eth.h"

#define WORD_MAX 64

static int word_ip(struct host_words *h, const char *v)
{
	if (h->naddr == HOST_ADDRS ||
		!ip_addr_parse_prefix(v, &h->addr[h->naddr].ip, &h->addr[h->naddr].plen))
		return -EINVAL;
	h->naddr++;
	return 0;
}

static int word_gateway(struct host_words *h, const char *v)
{
	if (h->ngateway == HOST_GATEWAYS || !ip_addr_parse_text(v, &h->gateway[h->ngateway]))
		return -EINVAL;
	h->ngateway++;
	return 0;
}

static int word_mac(struct host_words *h, const char *v)
{
	h->has_mac = eth_parse_text(v, h->conf.mac) && !eth_is_multicast(h->conf.mac);
	return h->has_mac ? 0 : -EINVAL;
}

static bool number(const char *v, unsigned long least, unsigned long most, unsigned long *n)
{
	char *end;

	*n = strtoul(v, &end, 10);
	return *v >= '0' && *v <= '9' && !*end && *n >= least && *n <= most;
}

static int word_mtu(struct host_words *h, const char *v)
{
	unsigned long n;

	if (!number(v, 576, 65535, &n))
		return -EINVAL;
	h->conf.mtu = (uint32_t)n;
	return 0;
}

static int word_memory(struct host_words *h, const char *v)
{
	unsigned long n;

	if (!number(v, 1ul << 20, 1ul << 32, &n))
		return -EINVAL;
	h->conf.memory = n;
	return 0;
}

static int word_conns(struct host_words *h, const char *v)
{
	unsigned long n;

	if (!number(v, 1, SOCKS_MAX, &n))
		return -EINVAL;
	h->conns = (uint32_t)n;
	return 0;
}

static int word_dhcp(struct host_words *h, const char *v)
{
	h->conf.dhcp = true;
	return *v ? -EINVAL : 0;
}

static int word_noauto(struct host_words *h, const char *v)
{
	h->conf.no_auto = true;
	return *v ? -EINVAL : 0;
}

static const struct {
	const char *word, *right;
	int (*take)(struct host_words *, const char *value);
} words[] = {
	{"ip", "ip=ADDRESS/LENGTH, at most 8 times", word_ip},
	{"gateway", "gateway=ADDRESS, at most twice", word_gateway},
	{"mac", "mac=52:54:00:12:34:56", word_mac},
	{"mtu", "mtu=576 to 65535", word_mtu},
	{"memory", "memory=1048576 to 4294967296", word_memory},
	{"conns", "conns=1 to 262144", word_conns},
	{"dhcp", "dhcp, without a value", word_dhcp},
	{"noauto", "noauto, without a value", word_noauto},
};

static int take(struct host_words *h, const char *word, struct err *err)
{
	const char *eq = strchr(word, '=');
	const size_t n = eq ? (size_t)(eq - word) : strlen(word);

	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i].word) != n || memcmp(words[i].word, word, n))
			continue;
		if (words[i].take(h, eq ? eq + 1 : ""))
			return err_set(err, EINVAL, "'%s' of a host: %s", word, words[i].right);
		return 0;
	}
	return err_set(err, EINVAL,
		"'%s' is no word of a host: ip, gateway, mac, mtu, memory, conns, dhcp and noauto "
		"are",
		word);
}

int host_words_parse(struct host_words *h, const char *text, struct err *err)
{
	*h = (struct host_words){.naddr = 0};
	while (*text) {
		const size_t n = strcspn(text, ",");
		char word[WORD_MAX];
		int r;

		if (n >= sizeof(word))
			return err_set(err, EINVAL, "'%.60s...' of a host is too long", text);
		memcpy(word, text, n);
		word[n] = 0;
		r = take(h, word, err);
		if (r)
			return r;
		text += n;
		text += *text == ',';
	}
	return 0;
}

int host_words_apply(const struct host_words *h, struct stack *st, nsec_t now, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; !r && i < h->naddr; i++)
		r = stack_add_addr(st, &h->addr[i].ip, h->addr[i].plen, now, err);
	for (unsigned i = 0; !r && i < h->ngateway; i++)
		r = stack_add_gateway(st, &h->gateway[i], err);
	return r;
}
