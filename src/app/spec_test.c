/* SPDX-License-Identifier: BSD-2-Clause */
/* spec: the grammar, its defaults, and every mistake with the words that its line must have. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/spec.h"
#include "port/tap.h"
#include "base/rand.h"
#include "port/port.h"
#include "port/vnet.h"

static const struct spec_ctx ctx = {.net = "lab", .rundir = "/run/weft/lab", .cwd = "/home/me"};

static struct spec parse(const char *text)
{
	struct err err = {""};
	struct spec s;

	if (spec_parse(&s, text, &ctx, &err))
		fail_msg("%s: %s", text, err.text);
	return s;
}

static void test_defaults(void **state)
{
	struct spec s = parse("vhost-user:a");
	uint8_t mac[6];

	(void)state;
	port_mac_of_name("lab", "a", mac);
	assert_int_equal(s.kind, SPEC_VHOST_USER);
	assert_string_equal(s.name, "a");
	assert_string_equal(s.path, "/run/weft/lab/a.sock");
	assert_true(s.server);
	assert_int_equal(s.mtu, 1500);
	assert_int_equal(s.mode, 0600);
	assert_int_equal(s.group, (gid_t)-1);
	assert_int_equal(s.off, 0);
	assert_null(s.pcap);
	assert_memory_equal(s.mac, mac, 6);
	spec_fini(&s);

	s = parse("tap:tap0");
	assert_int_equal(s.kind, SPEC_TAP);
	assert_string_equal(s.name, "tap0");
	assert_string_equal(s.ifname, "tap0");
	assert_null(s.netns);
	assert_null(s.addr[0]);
	assert_int_equal(s.mtu, 0);
	spec_fini(&s);
}

static void test_everything(void **state)
{
	struct spec s =
		parse("vhost-user:/tmp/x.sock,server=off,mac=52:54:00:aB:cd:ef,mtu=9000,"
		      "off=guest_tso4+mrg_rxbuf,mode=0660,group=0,name=left,pcap=/tmp/a,,b");
	static const uint8_t mac[6] = {0x52, 0x54, 0, 0xab, 0xcd, 0xef};

	(void)state;
	assert_string_equal(s.path, "/tmp/x.sock");
	assert_string_equal(s.name, "left");
	assert_false(s.server);
	assert_memory_equal(s.mac, mac, 6);
	assert_int_equal(s.mtu, 9000);
	assert_true(s.off == (VNET_BIT(GUEST_TSO4) | VNET_BIT(MRG_RXBUF)));
	assert_int_equal(s.mode, 0660);
	assert_int_equal(s.group, 0);
	assert_string_equal(s.pcap, "/tmp/a,b");
	spec_fini(&s);

	s = parse("tap:t1,netns=/proc/7/ns/net,ip=10.0.0.1/24+fd00::1/"
		  "64,mtu=65535,off=host_uso,pcap=c");
	assert_string_equal(s.netns, "/proc/7/ns/net");
	assert_string_equal(s.addr[0], "10.0.0.1/24");
	assert_string_equal(s.addr[1], "fd00::1/64");
	assert_null(s.addr[2]);
	assert_int_equal(s.mtu, 65535);
	assert_true(s.off == VNET_BIT(HOST_USO));
	assert_string_equal(s.pcap, "/home/me/c");
	spec_fini(&s);
	s = parse("macvtap:eth0,mode=vepa,mac=52:54:00:00:00:07,vnet_hdr=20,copy=on,order=0");
	assert_int_equal(s.kind, SPEC_MACVTAP);
	assert_string_equal(s.ifname, "eth0");
	assert_int_equal(s.macvtap_mode, MACVTAP_VEPA);
	assert_int_equal(s.mac[5], 7);
	assert_int_equal(s.vnet_hdr, 20);
	assert_true(s.copy);
	assert_int_equal(s.copying.order, 0);
	spec_fini(&s);
	s = parse("tap:t0,fd=5");
	assert_int_equal(s.fd, 5);
	assert_int_equal(s.vnet_hdr, 12);
	assert_false(s.copy);
	assert_int_equal(s.copying.order, 3);
	spec_fini(&s);
}

static void remember(void *text, const char *name, const char *value, const char *help)
{
	assert_true(help[0]);
	sprintf((char *)text + strlen(text), "%s=%s ", name, value);
}

static void test_driver(void **state)
{
	struct spec s = parse("virtio-user:/x/peer.sock");
	struct vdrv_config c;
	char text[400] = "";

	(void)state;
	assert_int_equal(s.kind, SPEC_VIRTIO_USER);
	assert_string_equal(s.name, "peer");
	assert_false(s.server);
	assert_int_equal(s.mtu, 0);
	spec_knobs(&s, remember, text);
	assert_string_equal(text,
		"rxbuf=auto coalesce=on copybreak=128 inline=on headroom=16 indirect=auto "
		"order=3 rxorder=3 charge=0 ring=256 memory=16777216 refuse=0 ");
	spec_fini(&s);

	s = parse("virtio-user:/y,server=on,mac=52:54:00:00:00:01,mtu=9000,off=event_idx,"
		  "rxbuf=mtu+hdr,coalesce=off,copybreak=0,inline=off,headroom=64,indirect=never,"
		  "order=0,rxorder=1,ring=1024,memory=4M,refuse=500");
	spec_driver(&s, &c);
	assert_string_equal(c.path, "/y");
	assert_true(c.server);
	assert_true(c.off == VNET_BIT(EVENT_IDX));
	assert_int_equal(c.mtu, 9000);
	assert_int_equal(c.mac[5], 1);
	assert_int_equal(c.rxbuf, VDRV_RXBUF_MTU_HDR);
	assert_int_equal(c.indirect, VQ_INDIRECT_NEVER);
	assert_int_equal(c.memory, 4 << 20);
	text[0] = 0;
	spec_knobs(&s, remember, text);
	assert_string_equal(text,
		"rxbuf=mtu+hdr coalesce=off copybreak=0 inline=off headroom=64 indirect=never "
		"order=0 rxorder=1 charge=0 ring=1024 memory=4194304 refuse=500 ");
	spec_fini(&s);
}

static void test_paths(void **state)
{
	static const struct {
		const char *text, *path, *name;
	} cases[] = {
		{"vhost-user:./a.sock", "/home/me/a.sock", "a"},
		{"vhost-user:d/b", "/home/me/d/b", "b"},
		{"vhost-user:/x/.sock,name=c", "/x/.sock", "c"},
		{"vhost-user:/x/a,,b.sock,name=d", "/x/a,b.sock", "d"},
		{"vhost-user:/x/a:b,name=e", "/x/a:b", "e"},
		{"vhost-user:e.f-g_h", "/run/weft/lab/e.f-g_h.sock", "e.f-g_h"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spec s = parse(cases[i].text);

		assert_string_equal(s.path, cases[i].path);
		assert_string_equal(s.name, cases[i].name);
		spec_fini(&s);
	}
}

/* text, then what its line must name: the value and what would be right */
static const char *const mistakes[][3] = {
	{"vhost-usr:a", "'vhost-usr'", "did you mean 'vhost-user'"},
	{"bridge:a", "'bridge'", "known: vhost-user, virtio-user, tap, macvtap"},
	{"", "''", "known: vhost-user, virtio-user, tap, macvtap"},
	{"vhost-user", "needs NAME|PATH", "vhost-user:NAME|PATH"},
	{"vhost-user:", "needs NAME|PATH", "vhost-user:"},
	{"tap:", "needs IFNAME", "tap:IFNAME"},
	{"vhost-user:a,mut=9000", "'mut'", "did you mean 'mtu'"},
	{"vhost-user:a,colour=red", "'colour'",
		"known: name, pcap, mtu, impair, off, server, mac, mode, group"},
	{"tap:t,server=on", "'server'",
		"known: name, pcap, mtu, impair, off, fd, vnet_hdr, queues, copy, order, pages, "
		"refuse, hint0, netns, ip"},
	{"vhost-user:a,mtu", "'mtu'", "key=value"},
	{"vhost-user:a,", "''", "key=value"},
	{"vhost-user:a,mtu=9000,mtu=9000", "'mtu' is given twice", "once"},
	{"vhost-user:a,mtu=67", "mtu=67", "68 to 65535"},
	{"vhost-user:a,mtu=65536", "mtu=65536", "68 to 65535"},
	{"vhost-user:a,mtu=-1", "mtu=-1", "68 to 65535"},
	{"vhost-user:a,mtu=15e2", "mtu=15e2", "number"},
	{"vhost-user:a,mtu=", "mtu=", "number"},
	{"vhost-user:a,mtu=99999999999999999999", "mtu=99999999999999999999", "number"},
	{"vhost-user:a,server=yes", "server=yes", "on or off"},
	{"vhost-user:a,mac=52:54:00:12:34", "mac=52:54:00:12:34", "six bytes"},
	{"vhost-user:a,mac=52:54:00:12:34:5g", "mac=52:54:00:12:34:5g", "six bytes"},
	{"vhost-user:a,mac=52-54-00-12-34-56", "mac=52-54", "six bytes"},
	{"vhost-user:a,mac=01:00:5e:00:00:01", "mac=01:00", "multicast"},
	{"vhost-user:a,mac=00:00:00:00:00:00", "mac=00:00", "zero"},
	{"vhost-user:a,mode=0888", "mode=0888", "octal"},
	{"vhost-user:a,mode=07777", "mode=07777", "octal"},
	{"vhost-user:a,group=nobody-is-in-it", "group=nobody-is-in-it", "no such group"},
	{"vhost-user:a,off=guest_tso5", "'guest_tso5'", "known:"},
	{"vhost-user:a,name=-x", "-x", ""},
	{"vhost-user:a,name=", "", ""},
	{"vhost-user:a,pcap=", "pcap=", "not be empty"},
	{"tap:a,impair=delay=5", "delay=5", "such as 20ms"},
	{"vhost-user:a b", "a b", ""},
	{"vhost-user:a.name.that.is.longer.than.31.bytes", "longer.than", ""},
	{"vhost-user:/x/a b.sock", "a b.sock", "name=NAME"},
	{"vhost-user:/x/", "/x/", "name=NAME"},
	{"tap:an-interface-16b", "'an-interface-16b'", "1 to 15"},
	{"tap:a/b", "'a/b'", "1 to 15"},
	{"tap:..", "'..'", "1 to 15"},
	{"tap:t%d", "'t%d'", "1 to 15"},
	{"tap:t,ip=10.0.0.1", "ip=10.0.0.1", "/24"},
	{"tap:t,ip=", "ip=", "/24"},
	{"tap:t,netns=", "netns=", "not be empty"},
	{"tap:t,fd=2", "fd=2", "from 3"},
	{"tap:t,mode=bridge", "another kind of port has the key 'mode'", "known: name"},
	{"tap:t,vnet_hdr=11", "vnet_hdr=11", "10|12|20"},
	{"tap:t,vnet_hdr=1", "vnet_hdr=1", "10|12|20"},
	{"tap:t,vnet_hdr=", "vnet_hdr=", "10|12|20"},
	{"macvtap:e,order=2", "order=2", "0|1|3"},
	{"macvtap:e,copy=yes", "copy=yes", "on or off"},
	{"macvtap:e,mode=vpa", "mode=vpa", "bridge|vepa|private|passthru"},
	{"macvtap:e,ip=10.0.0.1/24", "'ip'", "known: name"},
	{"macvtap:a/b", "'a/b'", "1 to 15"},
	{"virtio-user:/a,rxbuf=huge", "rxbuf=huge", "page|mtu|mtu+hdr|auto"},
	{"virtio-user:/a,rxbuf=", "rxbuf=", "page|mtu|mtu+hdr|auto"},
	{"virtio-user:/a,indirect=alway", "indirect=alway", "auto|always|never"},
	{"virtio-user:/a,ring=3", "ring=3", "power of two"},
	{"virtio-user:/a,ring=1", "ring=1", "2 to 1024"},
	{"virtio-user:/a,ring=2048", "ring=2048", "2 to 1024"},
	{"virtio-user:/a,order=5", "order=5", "0 to 4"},
	{"virtio-user:/a,memory=16X", "memory=16X", "16M"},
	{"virtio-user:/a,memory=16MB", "memory=16MB", "16M"},
	{"virtio-user:/a,memory=1K", "memory=1K", "from 1M to 4G"},
	{"virtio-user:/a,memory=99999999999G", "memory=99999999999G", "4G"},
	{"virtio-user:/a,inline=1", "inline=1", "on or off"},
	{"virtio-user:/a,mode=0600", "'mode'", "another kind"},
	{"vhost-user:a,rxbuf=page", "'rxbuf'", "another kind"},
	{"tap:t,mac=52:54:00:12:34:56", "another kind of port has the key 'mac'", "known: name"},
};

static void test_mistakes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const char *const *m = mistakes[i];
		struct err err = {""};
		struct spec s;

		if (spec_parse(&s, m[0], &ctx, &err) != -EINVAL)
			fail_msg("'%s' was taken", m[0]);
		if (!err.text[0] || strchr(err.text, '\n') || !strstr(err.text, m[1]) ||
			!strstr(err.text, m[2]))
			fail_msg("'%s': \"%s\" lacks %s or %s", m[0], err.text, m[1], m[2]);
	}
}

static void test_too_long(void **state)
{
	char text[200] = "vhost-user:/", many[400] = "tap:t,ip=";
	struct err err;
	struct spec s;

	(void)state;
	memset(text + 12, 'x', 106);
	strcpy(text + 12 + 106, ",name=a");
	s = parse(text); /* 107 bytes and the NUL just fit */
	spec_fini(&s);
	memset(text + 12, 'x', 107);
	strcpy(text + 12 + 107, ",name=a");
	assert_int_equal(spec_parse(&s, text, &ctx, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "107"));
	for (unsigned i = 0; i < 17; i++)
		strcat(many, "10.0.0.1/24+");
	assert_int_equal(spec_parse(&s, many, &ctx, &err), -EINVAL);
	assert_non_null(strstr(err.text, "16 at most"));
}

/* Whatever comes: an answer, a line, no crash. */
static void test_random(void **state)
{
	static const char *const bits[] = {"vhost-user", "tap", "virtio-user", "ring", "memory",
		"rxbuf", "1M", ":", ",", "=", "mtu", "off", "a", "/", "+", ",,", "ip", "name", "9",
		"\xff", "mac", "on", "server", " ", "macvtap", "copy", "order", "fd", "mode",
		"vnet_hdr"};
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)clock_now();
	struct rand r;

	(void)state;
	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	for (unsigned i = 0; i < 20000; i++) {
		struct err err = {""};
		char text[256] = "";
		struct spec s;

		for (unsigned n = rand_below(&r, 16); n; n--)
			strcat(text, bits[rand_below(&r, sizeof(bits) / sizeof(bits[0]))]);
		if (!spec_parse(&s, text, &ctx, &err))
			spec_fini(&s);
		else
			assert_true(err.text[0]);
	}
}

static void count_line(void *count, const char *term, const char *help)
{
	(void)help;
	assert_true(term[0]);
	++*(unsigned *)count;
}

static void test_explain(void **state)
{
	unsigned count = 0;

	(void)state;
	assert_true(spec_explain(NULL, count_line, &count));
	/* kinds, a heading; keys of any port, of each kind */
	assert_int_equal(count, 4 + 1 + 5 + 10 + 14 + 10 + 10);
}

static void test_check(void **state)
{
	static const char *const texts[] = {"vhost-user:a", "tap:t0", "vhost-user:b,mtu=1"};
	struct err err = {""};

	(void)state;
	assert_int_equal(spec_check(texts, 2, &ctx, &err), 0);
	assert_int_equal(spec_check(texts, 3, &ctx, &err), -EINVAL);
	assert_non_null(strstr(err.text, "mtu=1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_driver),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
