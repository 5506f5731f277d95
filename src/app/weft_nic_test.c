/* SPDX-License-Identifier: BSD-2-Clause */
/* weft_nic: two NICs on one network, all on one thread, each on its own descriptor. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weft/nic.h"

#define MANY 100

/* A back-end so fast that whatever it is kicked for is done when the kick returns. */
static struct weft_net *eager;

ssize_t write(int fd, const void *data, size_t len)
{
	ssize_t n = syscall(SYS_write, fd, data, len);
	struct weft_net *net = eager;

	eager = NULL;
	for (unsigned i = 0; net && i < 8; i++)
		weft_net_dispatch(net, 0);
	eager = net;
	return n;
}

struct world {
	char top[32];
	struct weft_net *net;
	struct weft_nic *nic[2];
};

static void nic_open(struct world *w, unsigned i, const char *options)
{
	char text[200], err[WEFT_ERR] = "";

	snprintf(text, sizeof(text), "%s/%u.sock%s", w->top, i, options);
	if (weft_nic_open(&w->nic[i], text, err))
		fail_msg("%s", err);
}

/* All of them sleep until one has work: a lost wake-up would end this by time. */
static void turn(struct world *w)
{
	struct pollfd p[3] = {{.fd = weft_net_fd(w->net), .events = POLLIN}};
	int64_t ns = weft_net_timeout_ns(w->net), other;
	unsigned n = 1;

	for (unsigned i = 0; i < 2; i++) {
		if (!w->nic[i])
			continue;
		p[n++] = (struct pollfd){.fd = weft_nic_fd(w->nic[i]), .events = POLLIN};
		other = weft_nic_timeout_ns(w->nic[i]);
		if (other >= 0 && (ns < 0 || other < ns))
			ns = other;
	}
	assert_true(poll(p, n, ns < 0 ? 10000 : (int)(ns / 1000000) + (ns > 0)) > 0 || ns >= 0);
	assert_int_equal(weft_net_dispatch(w->net, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(w->nic[i] ? weft_nic_dispatch(w->nic[i], 0) : 0, 0);
}

static void links(struct world *w)
{
	while (!weft_nic_up(w->nic[0]) || !weft_nic_up(w->nic[1]))
		turn(w);
}

/* Mappings of packet memory, ours and the network's. */
/* Files of packet memory that are mapped, by whichever end. */
static unsigned memories(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long seen[8], inode;
	unsigned n = 0, i;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "memfd:weft"))
			continue;
		assert_int_equal(sscanf(line, "%*s %*s %*s %*s %lu", &inode), 1);
		for (i = 0; i < n && seen[i] != inode; i++)
			;
		if (i == n) {
			assert_in_range(n, 0, 7);
			seen[n++] = inode;
		}
	}
	fclose(f);
	return n;
}

/* The newest of these files, as its peer may have kept it: all of it. */
static uint8_t *memory_kept(size_t *len)
{
	char path[64], name[64];
	struct stat st;
	int newest = -1, fd;
	uint8_t *all;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		memset(name, 0, sizeof(name));
		if (readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "memfd:weft"))
			newest = fd;
	}
	assert_int_equal(fstat(newest, &st), 0);
	*len = (size_t)st.st_size;
	all = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_SHARED, newest, 0);
	assert_ptr_not_equal(all, MAP_FAILED);
	return all;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char text[100];

	strcpy(w->top, "/tmp/weft-test-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	assert_int_equal(weft_net_new(&w->net, "lab", NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "vhost-user:%s/%u.sock,mac=02:00:00:00:00:0%u", w->top,
			i, i + 1);
		assert_int_equal(weft_net_add(w->net, text, NULL), 0);
	}
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	weft_nic_close(w->nic[0]);
	weft_nic_close(w->nic[1]);
	weft_net_free(w->net);
	assert_return_code(rmdir(w->top), errno);
	free(w);
	return 0;
}

/* A frame whose bytes after the header are a pattern that begins with `seed`. */
static void fill(uint8_t *p, uint32_t at, uint32_t len, unsigned seed)
{
	static const uint8_t head[14] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};

	for (uint32_t i = 0; i < len; i++)
		p[i] = at + i < 14 ? head[at + i] : (uint8_t)(seed + 7 * (at + i));
}

static struct weft_pkt *make(struct world *w, uint32_t len, unsigned seed)
{
	void *data;
	struct weft_pkt *p = weft_pkt_new(w->nic[0], len, &data);

	assert_non_null(p);
	fill(data, 0, len, seed);
	return p;
}

static void look(const struct weft_pkt *p, uint32_t len, unsigned seed)
{
	static uint8_t got[70000], want[70000];
	struct iovec iov[64];
	unsigned n = weft_pkt_pieces(p, iov, 64);
	uint32_t sum = 0;

	assert_int_equal(weft_pkt_len(p), len);
	assert_in_range(n, 1, 64);
	for (unsigned i = 0; i < n; i++)
		sum += (uint32_t)iov[i].iov_len;
	assert_int_equal(sum, len);
	assert_int_equal(weft_pkt_copy(p, 0, got, sizeof(got)), len);
	fill(want, 0, len, seed);
	assert_memory_equal(got, want, len);
	assert_int_equal(weft_pkt_copy(p, 14, got, 3), len - 14 < 3 ? len - 14 : 3);
	assert_memory_equal(got, want + 14, len - 14 < 3 ? len - 14 : 3);
	assert_int_equal(weft_pkt_copy(p, len, got, 1), 0);
}

static void check(struct weft_pkt *p, uint32_t len, unsigned seed)
{
	look(p, len, seed);
	weft_pkt_free(p);
}

static void test_traffic(void **state)
{
	static const uint32_t sizes[] = {14, 60, 200, 1500, 1514};
	struct world *w = *state;
	struct weft_pkt *in[8];
	uint8_t mac[6];
	char *json;

	nic_open(w, 0, "");
	nic_open(w, 1, ",rxbuf=page,copybreak=0");
	assert_false(weft_nic_up(w->nic[0]));
	links(w);
	weft_nic_mac(w->nic[1], mac);
	assert_memory_equal(mac, "\x02\0\0\0\0\x02", 6);
	assert_int_equal(weft_nic_mtu(w->nic[1]), 1500);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct weft_pkt *p = make(w, sizes[i], i);
		unsigned n;

		assert_int_equal(weft_nic_send(w->nic[0], &p, 1), 1);
		while (!(n = weft_nic_receive(w->nic[1], in, 8)))
			turn(w);
		assert_int_equal(n, 1);
		check(in[0], sizes[i], i);
	}
	json = weft_nic_show(w->nic[1]);
	assert_non_null(strstr(json, "\"rx_packets\": 5"));
	assert_non_null(strstr(json, "\"rxbuf\": \"page\""));
	free(json);
}

/* A packet of several pieces, with work left to do; its reader is told so. */
static void test_pieces(void **state)
{
	struct world *w = *state;
	struct weft_pkt *p, *in[2];
	struct weft_offload *off;
	void *data;

	nic_open(w, 0, "");
	nic_open(w, 1, "");
	links(w);
	p = make(w, 54, 9);
	data = weft_pkt_append(p, 1000);
	assert_non_null(data);
	fill(data, 54, 1000, 9);
	data = weft_pkt_append(p, 100);
	fill(data, 1054, 100, 9);
	assert_int_equal(weft_pkt_pieces(p, NULL, 0), 3);
	off = weft_pkt_offload(p);
	assert_int_equal(off->flags | off->gso, 0);
	off->flags = 1;
	off->csum_start = 34;
	off->csum_offset = 6;
	assert_int_equal(weft_nic_send(w->nic[0], &p, 1), 1);
	while (!weft_nic_receive(w->nic[1], in, 2))
		turn(w);
	assert_int_equal(weft_pkt_offload(in[0])->flags, 1);
	assert_int_equal(weft_pkt_offload(in[0])->csum_start, 34);
	check(in[0], 1154, 9);
	p = make(w, 60, 0);
	for (unsigned i = 0; i < 17; i++)
		assert_non_null(weft_pkt_append(p, 1));
	assert_null(weft_pkt_append(p, 1));
	weft_pkt_free(p);
	assert_null(weft_pkt_new(w->nic[0], 0, &data));
	assert_null(weft_pkt_new(w->nic[0], 65536, &data));
	weft_pkt_free(NULL);
}

/* More than the ring holds: what was not taken is the sender's, and it is woken when there is room. */
static void test_full(void **state)
{
	struct world *w = *state;
	struct weft_pkt *out[MANY], *in[MANY];
	unsigned sent = 0, got = 0, n, full = 0;

	nic_open(w, 0, ",ring=8");
	nic_open(w, 1, "");
	links(w);
	for (unsigned i = 0; i < MANY; i++)
		out[i] = make(w, 100, i);
	while (got < MANY) {
		if (sent < MANY) {
			n = weft_nic_send(w->nic[0], out + sent, MANY - sent);
			full += n < MANY - sent;
			sent += n;
		}
		turn(w);
		n = weft_nic_receive(w->nic[1], in, MANY);
		for (unsigned i = 0; i < n; i++)
			check(in[i], 100, got + i);
		got += n;
	}
	assert_in_range(full, 1, MANY);
}

/*
 * There is room again when we ask to be told of it, and none again right behind: who was not taken
 * must still be told.
 */
static void test_full_again(void **state)
{
	struct world *w = *state;
	struct weft_pkt *out[MANY], *in[MANY];
	unsigned sent = 0, got = 0, n;

	nic_open(w, 0, ",ring=8");
	nic_open(w, 1, "");
	links(w);
	for (unsigned i = 0; i < MANY; i++)
		out[i] = make(w, 100, i);
	eager = w->net;
	while (sent < MANY) {
		n = weft_nic_send(w->nic[0], out + sent, MANY - sent);
		sent += n;
		if (sent < MANY)
			turn(w);
	}
	eager = NULL;
	while (got < MANY) {
		n = weft_nic_receive(w->nic[1], in, MANY);
		for (unsigned i = 0; i < n; i++)
			check(in[i], 100, got + i);
		got += n;
		if (!n)
			turn(w);
	}
}

/* The network goes away and comes back: the session does, too. */
static void test_session(void **state)
{
	struct world *w = *state;
	struct weft_pkt *p, *in[2];
	char text[100];

	nic_open(w, 0, "");
	nic_open(w, 1, "");
	links(w);
	p = make(w, 60, 1);
	assert_int_equal(weft_net_del(w->net, "0", NULL), 0);
	while (weft_nic_up(w->nic[0]))
		turn(w);
	assert_true(weft_nic_down_reason(w->nic[0])[0]);
	assert_int_equal(weft_nic_send(w->nic[0], &p, 1), 0);
	snprintf(text, sizeof(text), "vhost-user:%s/0.sock", w->top);
	assert_int_equal(weft_net_add(w->net, text, NULL), 0);
	links(w);
	assert_int_equal(weft_nic_send(w->nic[0], &p, 1), 1);
	while (!weft_nic_receive(w->nic[1], in, 2))
		turn(w);
	check(in[0], 60, 1);
}

/* Closed while packets are held, received and made: they stay whole, and their memory goes with them. */
static void test_closed_with_packets(void **state)
{
	struct world *w = *state;
	struct weft_pkt *sent, *held[3];
	uint8_t *data, *kept;
	size_t len;
	void *more;

	nic_open(w, 0, "");
	nic_open(w, 1, "");
	links(w);
	assert_int_equal(memories(), 2);
	kept = memory_kept(&len);
	for (unsigned i = 0; i < 2; i++) {
		sent = weft_pkt_new(w->nic[0], 1400, (void **)&data);
		fill(data, 0, 1400, i);
		assert_int_equal(weft_nic_send(w->nic[0], &sent, 1), 1);
		while (!weft_nic_receive(w->nic[1], &held[i], 1))
			turn(w);
	}
	held[2] = weft_pkt_new(w->nic[1], 700, (void **)&data);
	assert_non_null(more = weft_pkt_append(held[2], 4096));
	fill(data, 0, 700, 2);
	fill(more, 700, 4096, 2);
	weft_nic_close(w->nic[1]);
	w->nic[1] = NULL;
	memset(kept, 0xee, len); /* the device of that time is not to be trusted for ever */
	munmap(kept, len);
	while (memories() != 2) /* the network gives its own back */
		turn(w);
	look(held[0], 1400, 0);
	look(held[1], 1400, 1);
	look(held[2], 4796, 2);
	weft_pkt_free(held[1]);
	assert_non_null(weft_pkt_append(held[2], 100));
	weft_pkt_free(held[2]);
	look(held[0], 1400, 0);
	assert_int_equal(memories(), 2);
	weft_pkt_free(held[0]);
	assert_int_equal(memories(), 1);
}

static void test_mistakes(void **state)
{
	struct weft_nic *nic;
	char err[WEFT_ERR] = "";

	(void)state;
	assert_int_equal(weft_nic_open(&nic, "/x,rxbuf=huge", err), -EINVAL);
	assert_non_null(strstr(err, "rxbuf=huge"));
	assert_int_equal(weft_nic_open(&nic, "", NULL), -EINVAL);
	assert_int_equal(weft_nic_open(&nic, "/nowhere/at/all,server=on", err), -ENOENT);
	weft_nic_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_traffic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed_with_packets, setup, teardown),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
