/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spec: the table of kinds and keys, one parser per type of value, and one walk over the text.
 *
 *	text ---split, doubled commas undone---> words in spec->store ---table---> fields of the
 *spec
 *
 * To add a key: a field in struct spec, a row in keys[]. To add a kind: its row in kinds[].
 */
#include "app/spec.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "app/words.h"
#include "port/impair.h"
#include "port/port.h"
#include "port/tap.h"
#include "port/vnet.h"

#define HINT 160

struct spec_key;

struct spec_in {
	struct spec *spec;
	const struct spec_ctx *ctx;
	const char *kind; /* the word */
	struct err *err;
};

typedef int (*value_fn)(struct spec_in *, const struct spec_key *, char *value, void *field);

struct spec_key {
	unsigned kinds; /* bit mask */
	const char *name, *form;
	value_fn parse;
	size_t field, size; /* offset in struct spec, bytes */
	uint64_t min, max;
	const char *help;
};

struct spec_kind_row {
	const char *name, *arg, *help;
	int (*parse_arg)(struct spec_in *, const char *arg);
};

/* types of value */

static int value_bad(
	struct spec_in *in, const struct spec_key *key, const char *value, const char *right)
{
	return err_set(
		in->err, EINVAL, "%s: %s=%s is not right: %s", in->kind, key->name, value, right);
}

static int value_switch(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	bool on = !strcmp(value, "on");

	if (!on && strcmp(value, "off") != 0)
		return value_bad(in, key, value, "must be on or off");
	*(bool *)field = on;
	return 0;
}

/* Fields of 2, 4 and 8 bytes hold numbers. */
static void number_store(void *field, size_t size, uint64_t n)
{
	if (size == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)n;
	else if (size == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)n;
	else
		*(uint64_t *)field = n;
}

static uint64_t number_load(const void *field, size_t size)
{
	if (size == sizeof(uint16_t))
		return *(const uint16_t *)field;
	if (size == sizeof(uint32_t))
		return *(const uint32_t *)field;
	return *(const uint64_t *)field;
}

static int value_number(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	char *end, right[64];
	unsigned long long n;

	errno = 0;
	n = strtoull(value, &end, 10);
	snprintf(right, sizeof(right), "must be a number from %llu to %llu",
		(unsigned long long)key->min, (unsigned long long)key->max);
	if (!isdigit((unsigned char)*value) || *end || errno || n < key->min || n > key->max)
		return value_bad(in, key, value, right);
	number_store(field, key->size, n);
	return 0;
}

static int value_power(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	int r = value_number(in, key, value, field);

	if (!r && number_load(field, key->size) & (number_load(field, key->size) - 1))
		return value_bad(in, key, value, "must be a power of two, such as 256");
	return r;
}

/* "16M": bytes, or with K, M, G. */
static int value_size(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	static const char units[] = "KMG", right[] = "must be a size such as 4096K, 16M or 1G";
	unsigned shift = 0;
	const char *unit;
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(value, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit)
		shift = 10 * (unsigned)(unit - units + 1);
	if (!isdigit((unsigned char)*value) || errno || (*end && (!unit || end[1])))
		return value_bad(in, key, value, right);
	if (n > key->max >> shift || n << shift < key->min)
		return value_bad(in, key, value, "must be from 1M to 4G");
	number_store(field, key->size, n << shift);
	return 0;
}

/* One of the words of the key's form; its place there is its number. */
static int value_choice(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	size_t len = strlen(value);
	unsigned n = 0;
	char right[64];

	for (const char *word = key->form; word; n++) {
		const char *bar = strchr(word, '|');
		size_t l = bar ? (size_t)(bar - word) : strlen(word);

		if (l == len && !memcmp(word, value, l)) {
			number_store(field, key->size, n);
			return 0;
		}
		word = bar ? bar + 1 : NULL;
	}
	snprintf(right, sizeof(right), "must be one of %s", key->form);
	return value_bad(in, key, value, right);
}

/* One of the numbers of the key's form. */
static int value_one_of(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	char right[64];

	for (const char *word = key->form; word;) {
		char *end;
		unsigned long n = strtoul(word, &end, 10);

		if (strlen(value) == (size_t)(end - word) &&
			!memcmp(value, word, (size_t)(end - word))) {
			number_store(field, key->size, n);
			return 0;
		}
		word = *end ? end + 1 : NULL;
	}
	snprintf(right, sizeof(right), "must be one of %s", key->form);
	return value_bad(in, key, value, right);
}

static int value_mode(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	char *end;
	unsigned long n;

	n = strtoul(value, &end, 8);
	if (!isdigit((unsigned char)*value) || *end || n > 0777)
		return value_bad(in, key, value, "must be an octal mode such as 0600 or 0660");
	*(mode_t *)field = (mode_t)n;
	return 0;
}

static int value_group(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	const struct group *g = getgrnam(value);
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (g)
		n = g->gr_gid;
	else if (!isdigit((unsigned char)*value) || *end || n >= UINT32_MAX)
		return value_bad(in, key, value, "no such group; see getent group");
	*(gid_t *)field = (gid_t)n;
	return 0;
}

static int value_mac(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	static const char right[] = "must be six bytes like 52:54:00:12:34:56";
	uint8_t mac[6];

	if (strlen(value) != 17)
		return value_bad(in, key, value, right);
	for (unsigned i = 0; i < 6; i++) {
		const char *at = value + 3 * i;
		char byte[3] = {at[0], at[1], 0};

		if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]) ||
			(i < 5 && at[2] != ':'))
			return value_bad(in, key, value, right);
		mac[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	if (mac[0] & 1)
		return value_bad(
			in, key, value, "it is a multicast address; the first byte must be even");
	if (!memcmp(mac, "\0\0\0\0\0\0", 6))
		return value_bad(in, key, value, "the zero address is nobody's");
	memcpy(field, mac, 6);
	return 0;
}

static int value_features(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	(void)key;
	return vnet_features_parse(value, field, in->err);
}

static int value_name(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	int r;

	(void)key;
	r = port_name_check(value, in->err);
	if (r)
		return r;
	snprintf(field, NAME_LEN, "%s", value);
	return 0;
}

static int value_text(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	if (!*value)
		return value_bad(in, key, value, "must not be empty");
	*(const char **)field = value;
	return 0;
}

/* words of a bad network; kept as text, parsed again when the port is wrapped */
static int value_impair(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	struct impair_conf c;

	(void)key;
	*(const char **)field = value;
	return impair_parse(&c, value, in->err);
}

/* "a+b+c" into pointers; the addresses themselves are judged by whoever sets them */
static int value_list(struct spec_in *in, const struct spec_key *key, char *value, void *field)
{
	static const char right[] =
		"must be ADDR/LEN such as 10.0.0.1/24 or fd00::1/64, several joined by +";
	const char **list = field;
	unsigned n = 0;
	char *save = NULL, *word;

	for (word = strtok_r(value, "+", &save); word; word = strtok_r(NULL, "+", &save)) {
		if (n == SPEC_ADDRS)
			return value_bad(in, key, word, "too many addresses, 16 at most");
		if (!strchr(word, '/'))
			return value_bad(in, key, word, right);
		list[n++] = word;
	}
	if (!n)
		return value_bad(in, key, value, right);
	list[n] = NULL;
	return 0;
}

/* the argument after KIND: */

/* `text` against the folder `base`, unless it is absolute. */
static int path_join(struct spec_in *in, char out[SPEC_PATH], const char *base, const char *text,
	const char *end)
{
	int n;

	while (!strncmp(text, "./", 2))
		text += 2;
	if (*text == '/')
		n = snprintf(out, SPEC_PATH, "%s%s", text, end);
	else
		n = snprintf(out, SPEC_PATH, "%s/%s%s", base, text, end);
	if (n >= SPEC_PATH)
		return err_set(in->err, ENAMETOOLONG,
			"%s: the socket path of '%.100s' has %d bytes, at most %d are possible; "
			"use a "
			"shorter one, such as /tmp/NAME.sock",
			in->kind, text, n, SPEC_PATH - 1);
	return 0;
}

static int arg_socket(struct spec_in *in, const char *arg)
{
	struct spec *s = in->spec;
	const char *base = strrchr(arg, '/');
	size_t len;
	int r;

	if (!base) {
		r = port_name_check(arg, in->err);
		if (r)
			return r;
		if (!s->name[0])
			snprintf(s->name, sizeof(s->name), "%s", arg);
		return path_join(in, s->path, in->ctx->rundir, arg, ".sock");
	}
	r = path_join(in, s->path, in->ctx->cwd, arg, "");
	if (r || s->name[0])
		return r;
	len = strlen(++base);
	if (len > 5 && !strcmp(base + len - 5, ".sock"))
		len -= 5;
	if (len >= NAME_LEN)
		len = NAME_LEN - 1;
	memcpy(s->name, base, len);
	if (port_name_check(s->name, NULL))
		return err_set(in->err, EINVAL,
			"%s: no port name can be made from '%.100s'; add name=NAME", in->kind, arg);
	return 0;
}

static int arg_ifname(struct spec_in *in, const char *arg)
{
	struct spec *s = in->spec;
	size_t len = strlen(arg);

	if (len >= SPEC_IFNAME || strpbrk(arg, "/: \t%") || !strcmp(arg, ".") || !strcmp(arg, ".."))
		return err_set(in->err, EINVAL,
			"%s: '%.100s' cannot name an interface: 1 to 15 bytes without / : %% or "
			"spaces",
			in->kind, arg);
	memcpy(s->ifname, arg, len + 1);
	if (s->name[0])
		return 0;
	memcpy(s->name, arg, len + 1);
	return port_name_check(s->name, in->err);
}

static int arg_name(struct spec_in *in, const char *arg)
{
	struct spec *s = in->spec;
	int r = port_name_check(arg, in->err);

	if (!r && !s->name[0])
		snprintf(s->name, sizeof(s->name), "%s", arg);
	return r;
}

/* the tables */

#define VHOST  (1u << SPEC_VHOST_USER)
#define TAP    (1u << SPEC_TAP)
#define MACVT  (1u << SPEC_MACVTAP)
#define DEVICE (1u << SPEC_DEVICE)
#define VIRTIO (1u << SPEC_VIRTIO_USER)
#define ANY    (VHOST | VIRTIO | TAP | MACVT | DEVICE)
#define AT(f)  offsetof(struct spec, f), sizeof(((struct spec *)0)->f)
#define FD_MAX (1 << 20)

static const struct spec_kind_row kinds[SPEC_KINDS] = {
	[SPEC_VHOST_USER] = {"vhost-user", "NAME|PATH",
		"a virtual machine's socket; a bare NAME lies in the runtime folder, a slash makes "
		"it a "
		"path",
		arg_socket},
	[SPEC_VIRTIO_USER] = {"virtio-user", "NAME|PATH",
		"a socket of another back-end: weft is the guest there, with its own driver",
		arg_socket},
	[SPEC_TAP] = {"tap", "IFNAME",
		"a network interface of the host, made if it is not there and brought up",
		arg_ifname},
	[SPEC_MACVTAP] = {"macvtap", "IFNAME",
		"a port of its own on a network interface of the host, made for it and gone with "
		"it; root only",
		arg_ifname},
	/* no help: a program plugs it in, no user can */
	[SPEC_DEVICE] = {"device", "NAME", NULL, arg_name},
};

static const struct spec_key keys[] = {
	{ANY, "name", "NAME", value_name, AT(name), 0, 0,
		"the port's name; default: NAME, the file's name without .sock, or IFNAME"},
	{ANY, "pcap", "FILE", value_text, AT(pcap), 0, 0,
		"capture to FILE (pcapng) with directions and drop reasons"},
	{ANY, "mtu", "BYTES", value_number, AT(mtu), ETH_MTU_MIN, ETH_MTU_MAX,
		"largest IP packet, 68 to 65535; default 1500"},
	{ANY, "impair", "WORD=VALUE+...", value_impair, AT(impair), 0, 0,
		"a bad network in front of the port: delay, jitter, loss, reorder, dup, corrupt, "
		"rate, limit, mtu_hole, unit=wire|super, each for in. or out. or both, and seed, "
		"log, "
		"replay"},
	{ANY, "off", "FEATURE+...", value_features, AT(off), 0, 0,
		"virtio features not to offer or not to use: weft help features"},
	{VHOST, "server", "on|off", value_switch, AT(server), 0, 0,
		"off: connect to the socket, and again when it ends; default on: listen"},
	{VHOST | DEVICE, "mac", "ADDRESS", value_mac, AT(mac), 0, 0,
		"the address offered to the guest; default: made from the names"},
	{VHOST, "mode", "OCTAL", value_mode, AT(mode), 0, 0, "of the socket file; default 0600"},
	{VHOST, "group", "GROUP", value_group, AT(group), 0, 0, "of the socket file"},
	{VHOST, "call_us", "MICROSECONDS", value_number, AT(call_us), 0, VHOST_CALL_US_MAX,
		"interrupts of a bulk stream keep this distance; default 200, 0: one for each "
		"burst"},
	{VIRTIO, "server", "on|off", value_switch, AT(server), 0, 0,
		"on: listen; default off: connect, and again when it ends"},
	{VIRTIO, "mac", "ADDRESS", value_mac, AT(mac), 0, 0,
		"default: the one that the device offers"},
	{VIRTIO, "rxbuf", "page|mtu|mtu+hdr|auto", value_choice, AT(drv.rxbuf), 0, 0,
		"receive buffers: a page; the MTU without (a fault of 2013) or with the header; by "
		"the average length"},
	{VIRTIO, "coalesce", "on|off", value_switch, AT(drv.coalesce), 0, 0,
		"adjacent buffers of a packet become one fragment"},
	{VIRTIO, "copybreak", "BYTES", value_number, AT(drv.copybreak), 0, 2048,
		"received packets this short are copied out of their buffer"},
	{VIRTIO, "inline", "on|off", value_switch, AT(drv.inline_header), 0, 0,
		"the virtio header goes into the packet's headroom"},
	{VIRTIO, "headroom", "BYTES", value_number, AT(drv.headroom), 0, 2047,
		"free bytes before the head of packets"},
	{VIRTIO, "indirect", "auto|always|never", value_choice, AT(drv.indirect), 0, 0,
		"when a packet takes an indirect descriptor table"},
	{VIRTIO, "order", "0..4", value_number, AT(drv.order), 0, CHUNK_ORDERS - 1,
		"packets that are copied lie in chunks of 4096 << order bytes"},
	{VIRTIO, "rxorder", "0..4", value_number, AT(drv.rx_order), 0, CHUNK_ORDERS - 1,
		"receive buffers are cut from chunks of 4096 << order bytes"},
	{VIRTIO, "charge", "BYTES", value_number, AT(drv.charge), 0, 65535,
		"for analysis: what a receive buffer is charged, whatever it holds; 0: its length"},
	{VIRTIO, "ring", "2..1024", value_power, AT(drv.ring_size), 2, 1024,
		"entries of each ring, a power of two"},
	{VIRTIO, "memory", "SIZE", value_size, AT(drv.memory), 1 << 20, UINT64_C(4) << 30,
		"shared memory of the driver, such as 16M"},
	{VIRTIO, "refuse", "0..1000", value_number, AT(drv.refuse), 0, 1000,
		"so many of 1000 chunks above order 0 are refused, as if memory were in pieces: "
		"what "
		"follows is lower orders; default 0"},
	{TAP, "fd", "NUMBER", value_number, AT(fd), 3, FD_MAX,
		"a tap that is open already, in the process of the network, such as weft run "
		"inherited"},
	{MACVT, "mode", "bridge|vepa|private|passthru", value_choice, AT(macvtap_mode), 0, 0,
		"how it reaches other macvtaps of the interface: at once, by the switch outside, "
		"not at all; passthru: it is the only one and gets every frame, the host none"},
	{MACVT, "mac", "ADDRESS", value_mac, AT(mac), 0, 0,
		"what the guest behind it has for mac=: unless mode=passthru, frames come for this "
		"address and for groups only; default: the kernel's choice"},
	{TAP | MACVT, "vnet_hdr", "10|12|20", value_one_of, AT(vnet_hdr), 0, 0,
		"bytes of the virtio header before each frame; default 12"},
	{TAP | MACVT, "queues", "1..16", value_number, AT(queues), 1, TAP_QUEUES,
		"queues of the interface: the kernel spreads its flows over them; default 1"},
	{VHOST | TAP | MACVT, "copy", "on|off", value_switch, AT(copy), 0, 0,
		"keep each frame that comes in a packet of its own before it goes on, as tun and "
		"macvtap do"},
	{VHOST | TAP | MACVT, "order", "0|1|3", value_one_of, AT(copying.order), 0, 0,
		"with copy=on: packets lie in chunks of up to 4096 << order bytes; default 3"},
	{VHOST | TAP | MACVT, "pages", "plain|2015|2021", value_choice, AT(copying.pages), 0, 0,
		"with copy=on: where chunks come from: lists; lists behind a lock and a store of "
		"pages; and stores of up to 32 KiB"},
	{VHOST | TAP | MACVT, "refuse", "0..1000", value_number, AT(copying.refuse), 0, 1000,
		"with copy=on: so many of 1000 requests for chunks above a page are refused"},
	{VHOST | TAP | MACVT, "hint0", "page|linear", value_choice, AT(copying.linear_hint0), 0, 0,
		"with copy=on: a frame that does not say where its headers end: one page, or all "
		"of "
		"it, is linear"},
	{TAP | MACVT, "netns", "NAME|PID|PATH", value_text, AT(netns), 0, 0,
		"network namespace of the interface; default: weft's own"},
	{TAP, "ip", "ADDR/LEN+...", value_list, AT(addr), 0, 0, "addresses to set, v4 or v6"},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(N_KEYS <= 64, "one bit each says which are given");

const char *spec_kind_name(enum spec_kind kind)
{
	return kinds[kind].name;
}

static int kind_find(struct spec_in *in, const char *word)
{
	const char *known[SPEC_KINDS];
	unsigned n = 0;
	char hint[HINT];

	for (unsigned i = 0; i < SPEC_KINDS; i++) {
		if (kinds[i].help)
			known[n++] = kinds[i].name;
		if (!strcmp(word, kinds[i].name)) {
			in->spec->kind = (enum spec_kind)i;
			in->kind = kinds[i].name;
			return 0;
		}
	}
	return err_set(in->err, EINVAL, "'%.60s' is not a kind of port%s", word,
		words_hint(hint, sizeof(hint), word, known, n));
}

static const struct spec_key *key_find(struct spec_in *in, const char *word)
{
	const char *known[N_KEYS], *problem = "unknown key";
	unsigned n = 0;
	char hint[HINT];

	for (unsigned i = 0; i < N_KEYS; i++) {
		bool same = !strcmp(word, keys[i].name);

		if (!(keys[i].kinds >> in->spec->kind & 1)) {
			if (same)
				problem = "another kind of port has the key";
			continue;
		}
		if (same)
			return &keys[i];
		known[n++] = keys[i].name;
	}
	err_set(in->err, EINVAL, "%s: %s '%.60s'%s", in->kind, problem, word,
		words_hint(hint, sizeof(hint), word, known, n));
	return NULL;
}

/* the walk */

/* Cut the next part off *at: up to a single comma; doubled ones become one. NULL at the end. */
static char *part_next(char **at)
{
	char *start = *at, *from, *to;

	if (!start)
		return NULL;
	for (from = to = start; *from; *to++ = *from++) {
		if (*from != ',')
			continue;
		if (from[1] != ',')
			break;
		from++;
	}
	*at = *from ? from + 1 : NULL;
	*to = 0;
	return start;
}

static int spec_set(struct spec_in *in, char *part, uint64_t *seen)
{
	char *value = strchr(part, '=');
	const struct spec_key *key;

	if (!value)
		return err_set(in->err, EINVAL, "%s: '%.60s' must be key=value", in->kind, part);
	*value++ = 0;
	key = key_find(in, part);
	if (!key)
		return -EINVAL;
	if (*seen >> (key - keys) & 1)
		return err_set(in->err, EINVAL, "%s: '%s' is given twice; once is right", in->kind,
			key->name);
	*seen |= UINT64_C(1) << (key - keys);
	return key->parse(in, key, value, (char *)in->spec + key->field);
}

/* A relative file name starts where the user stands, not where the network was started. */
static int spec_pcap(struct spec_in *in, char *room, size_t size)
{
	struct spec *s = in->spec;

	if (!s->pcap || *s->pcap == '/')
		return 0;
	snprintf(room, size, "%s/%s", in->ctx->cwd, s->pcap);
	s->pcap = room;
	return 0;
}

static int spec_read(struct spec_in *in, char *text)
{
	static const uint8_t none[6];
	struct spec *s = in->spec;
	char *at = text, *part = part_next(&at), *arg = strchr(part, ':');
	uint64_t seen = 0;
	int r;

	if (arg)
		*arg++ = 0;
	r = kind_find(in, part);
	if (r)
		return r;
	s->server = s->kind == SPEC_VHOST_USER;
	if (!arg || !*arg)
		return err_set(in->err, EINVAL, "%s: needs %s: %s:%s", in->kind, kinds[s->kind].arg,
			in->kind, kinds[s->kind].arg);
	while ((part = part_next(&at))) {
		r = spec_set(in, part, &seen);
		if (r)
			return r;
	}
	r = kinds[s->kind].parse_arg(in, arg);
	if (r)
		return r;
	if (spec_offers_mac(s->kind)) {
		if (!memcmp(s->mac, none, 6))
			port_mac_of_name(in->ctx->net, s->name, s->mac);
		if (!s->mtu)
			s->mtu = 1500;
	}
	return 0;
}

int spec_parse(struct spec *s, const char *text, const struct spec_ctx *ctx, struct err *err)
{
	struct spec_in in = {.spec = s, .ctx = ctx, .err = err, .kind = "port"};
	size_t len = strlen(text) + 1, room = strlen(ctx->cwd) + len + 1;
	int r;

	*s = (struct spec){.mode = 0600,
		.call_us = VHOST_CALL_US,
		.group = (gid_t)-1,
		.vnet_hdr = TAP_HDR_LEN,
		.copying.order = TAP_ORDER};
	vdrv_config_init(&s->drv);
	s->store = malloc(len + room);
	if (!s->store)
		return err_set(err, ENOMEM, "no memory");
	memcpy(s->store, text, len);
	r = spec_read(&in, s->store);
	if (!r)
		r = spec_pcap(&in, s->store + len, room);
	if (r)
		spec_fini(s);
	return r;
}

void spec_fini(struct spec *s)
{
	free(s->store);
	s->store = NULL;
}

int spec_check(const char *const *text, unsigned n, const struct spec_ctx *ctx, struct err *err)
{
	struct spec s;
	int r = 0;

	for (unsigned i = 0; !r && i < n; i++) {
		r = spec_parse(&s, text[i], ctx, err);
		if (!r)
			spec_fini(&s);
	}
	return r;
}

void spec_driver(const struct spec *s, struct vdrv_config *c)
{
	*c = s->drv;
	c->path = s->path;
	c->server = s->server;
	c->off = s->off;
	c->mtu = (uint16_t)s->mtu;
	memcpy(c->mac, s->mac, sizeof(c->mac));
}

void spec_tap(const struct spec *s, struct tap_config *c)
{
	*c = (struct tap_config){
		.ifname = s->kind == SPEC_TAP ? s->ifname : NULL,
		.lower = s->kind == SPEC_MACVTAP ? s->ifname : NULL,
		.netns = s->netns,
		.addr = s->addr[0] ? s->addr : NULL,
		.mtu = s->mtu,
		.off = s->off,
		.mode = (enum macvtap_mode)s->macvtap_mode,
		.fd = (int)s->fd,
		.vnet_hdr = s->vnet_hdr,
		.queues = s->queues,
		.copy = s->copy,
		.copying = s->copying,
	};
	memcpy(c->mac, s->mac, sizeof(c->mac));
}

static const char *knob_text(const struct spec_key *key, const void *field, char text[32])
{
	const char *word = key->form, *bar;

	if (key->parse == value_switch)
		return *(const bool *)field ? "on" : "off";
	if (key->parse != value_choice) {
		snprintf(text, 32, "%llu", (unsigned long long)number_load(field, key->size));
		return text;
	}
	for (uint64_t n = number_load(field, key->size); n && word; n--) {
		bar = strchr(word, '|');
		word = bar ? bar + 1 : NULL;
	}
	bar = word ? strchr(word, '|') : NULL;
	snprintf(text, 32, "%.*s", bar ? (int)(bar - word) : 31, word ? word : "?");
	return text;
}

void spec_knobs(const struct spec *s,
	void (*knob)(void *ctx, const char *name, const char *value, const char *help), void *ctx)
{
	const size_t first = offsetof(struct spec, drv), last = first + sizeof(s->drv);
	char text[32];

	for (unsigned i = 0; i < N_KEYS; i++) {
		if (keys[i].field < first || keys[i].field >= last)
			continue;
		knob(ctx, keys[i].name, knob_text(&keys[i], (const char *)s + keys[i].field, text),
			keys[i].help);
	}
}

/* The keys whose kinds are in `mask`: those that all kinds have, or those of one that not all have. */
static void keys_explain(
	unsigned mask, void (*line)(void *ctx, const char *term, const char *help), void *ctx)
{
	char term[80];

	for (unsigned i = 0; i < N_KEYS; i++) {
		if (mask == ANY ? keys[i].kinds != ANY
				: keys[i].kinds == ANY || !(keys[i].kinds & mask))
			continue;
		snprintf(term, sizeof(term), "  %s=%s", keys[i].name, keys[i].form);
		line(ctx, term, keys[i].help);
	}
}

bool spec_explain(
	const char *word, void (*line)(void *ctx, const char *term, const char *help), void *ctx)
{
	bool found = false;
	char term[80];

	for (unsigned k = 0; k < SPEC_KINDS; k++) {
		if (!kinds[k].help || (word && strcmp(word, kinds[k].name) != 0))
			continue;
		snprintf(term, sizeof(term), "%s:%s", kinds[k].name, kinds[k].arg);
		line(ctx, term, kinds[k].help);
		keys_explain(1u << k, line, ctx);
		found = true;
	}
	if (!found)
		return false;
	line(ctx, "any port", "has these keys, too");
	keys_explain(ANY, line, ctx);
	return true;
}
