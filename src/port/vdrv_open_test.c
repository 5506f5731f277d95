/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv_open: the driver over a real session with our own back-end, both on one loop, in virtual
 * time: it comes up, carries packets, survives back-ends that go and come, and leaves one that lies.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "port/vdrv_int.h"
#include "port/vhost_be.h"

#define B(name) VNET_BIT(name)

struct rig {
	char dir[32], path[48];
	nsec_t now;
	struct loop loop;
	struct port *be, *drv;
	unsigned ready, room, link;
	struct burst burst;
};

static struct rig rig;

static void on_ready(void *ctx, struct portq *q)
{
	(void)ctx;
	rig.ready += q->port == rig.drv;
}

static void on_room(void *ctx, struct portq *q)
{
	(void)ctx;
	rig.room += q->port == rig.drv;
}

static void on_link(void *ctx, struct port *p)
{
	(void)ctx;
	rig.link += p == rig.drv;
}

static const struct port_events events = {on_ready, on_room, on_link};

static int setup(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	strcpy(rig.dir, "/tmp/vdrv-test-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	snprintf(rig.path, sizeof(rig.path), "%s/s", rig.dir);
	assert_int_equal(loop_init(&rig.loop, NULL), 0);
	rig.now = NSEC_PER_SEC;
	rig.loop.virtual_now = &rig.now;
	loop_refresh(&rig.loop);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vdrv_free(rig.drv);
	vhost_be_free(rig.be);
	loop_fini(&rig.loop);
	unlink(rig.path);
	rmdir(rig.dir);
	return 0;
}

static void be_open_as(const uint8_t mac[6], uint32_t mtu, bool server, uint64_t off)
{
	struct vhost_be_config c = {
		.path = rig.path,
		.server = server,
		.mode = 0600,
		.group = (gid_t)-1,
		.dev = {.mtu = mtu, .off = off},
	};
	struct err err;

	memcpy(c.dev.mac, mac, 6);

	if (vhost_be_open(&rig.be, "vm", &c, &rig.loop, NULL, &err))
		fail_msg("%s", err.text);
	rig.be->events = &events;
}

static void be_open(bool server, uint64_t off)
{
	be_open_as((const uint8_t[6]){2, 0, 0, 0, 0, 7}, 9000, server, off);
}

static void be_free(void)
{
	vhost_be_free(rig.be);
	rig.be = NULL;
}

static void drv_open(const struct vdrv_config *config)
{
	struct vdrv_config c;
	struct err err;

	if (config)
		c = *config;
	else
		vdrv_config_init(&c);
	c.path = rig.path;
	if (vdrv_open(&rig.drv, "drv", &c, &rig.loop, NULL, &err))
		fail_msg("%s", err.text);
	rig.drv->events = &events;
}

static void spin(void)
{
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(loop_dispatch(&rig.loop, false), 0);
}

/* Until the link is as wanted, some seconds at most. */
static void until(bool up)
{
	for (unsigned i = 0; i < 100 && rig.drv->link != up; i++) {
		spin();
		rig.now += 100 * NSEC_PER_MSEC;
	}
	assert_int_equal(rig.drv->link, up);
	spin();
	if (up)
		assert_true(rig.be->link);
}

/* One packet each way, of the driver's own. */
static void traffic(uint32_t len, uint8_t tag)
{
	struct pkt *p = pkt_new(vdrv_pkts(rig.drv), 16, len);
	static uint8_t data[FRAME_ROOM + 9014];
	struct frame f = {.head = data + FRAME_ROOM, .head_len = (uint16_t)len};

	assert_non_null(p);
	memset(p->head, tag, len);
	p->head[0] = 2;
	p->head[6] = 2;
	assert_int_equal(vdrv_send(rig.drv, &p, 1), 1);
	vdrv_flush(rig.drv);
	spin();
	assert_int_equal(port_pull(&rig.be->q, &rig.burst, 64), 1);
	assert_int_equal(frame_len(rig.burst.f), len);
	assert_int_equal(rig.burst.f->head[20], tag);
	port_settle(&rig.be->q, &rig.burst, 1);

	memset(f.head, tag + 1, len);
	rig.ready = 0;
	rig.drv->ops->arm(&rig.drv->q);
	assert_int_equal(rig.be->ops->push(&rig.be->q, &f, 1), 1);
	rig.be->ops->flush(&rig.be->q);
	spin();
	assert_true(rig.ready > 0); /* it was told */
	assert_int_equal(vdrv_receive(rig.drv, &p, 1), 1);
	assert_int_equal(p->len, len);
	assert_int_equal(p->head[13], (uint8_t)(tag + 1));
	pkt_free(p);
}

static void comes_up_and_carries(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};
	char text[400];

	(void)state;
	be_open(true, 0);
	drv_open(NULL);
	assert_false(rig.drv->link);
	assert_int_equal(vdrv_features(rig.drv), 0);
	until(true);
	assert_int_equal(rig.link, 1);
	assert_memory_equal(rig.drv->mac, mac, 6);
	assert_int_equal(rig.drv->mtu, 9000);
	assert_int_equal(rig.drv->accepts, ACCEPT_ALL);
	printf("%s\n", vnet_features_text(vdrv_features(rig.drv), text, sizeof(text)));
	assert_true(vdrv_features(rig.drv) & B(MRG_RXBUF));
	for (unsigned i = 0; i < 300; i++)
		traffic(14 + i * 17, (uint8_t)i);
	assert_int_equal(vdrv_counters(rig.drv)->tx_packets, 300);
	assert_int_equal(vdrv_counters(rig.drv)->rx_packets, 300);
	assert_int_equal(chunk_pool_check(vdrv_chunks(rig.drv)), NULL);
}

static void listens(void **state)
{
	struct vdrv_config c;

	(void)state;
	vdrv_config_init(&c);
	c.server = true;
	c.mtu = 1500;
	memcpy(c.mac, "\x02\x11\x22\x33\x44\x55", 6);
	drv_open(&c);
	spin();
	be_open(false, 0);
	until(true);
	assert_memory_equal(rig.drv->mac, c.mac, 6); /* ours, whatever the device says */
	assert_int_equal(rig.drv->mtu, 1500);
	traffic(500, 3);
}

/* Back-ends with less come and go; whatever was on its way comes back. */
static void back_ends_come_and_go(void **state)
{
	static const uint64_t off[] = {0, B(MRG_RXBUF), B(VERSION_1) | B(MRG_RXBUF),
		B(INDIRECT_DESC), B(EVENT_IDX) | B(CSUM) | B(GUEST_CSUM), 0};
	struct pkt *p;

	(void)state;
	be_open(true, off[0]);
	drv_open(NULL);
	for (unsigned i = 0; i < sizeof(off) / sizeof(*off); i++) {
		until(true);
		assert_int_equal(vdrv_features(rig.drv) & off[i], 0);
		traffic(1000, (uint8_t)i);
		for (unsigned k = 0; k < 20; k++) {
			p = pkt_new(vdrv_pkts(rig.drv), 16, 100);
			memset(p->head, 0, 100);
			assert_int_equal(vdrv_send(rig.drv, &p, 1), 1);
		}
		assert_int_equal(vdrv_pkts(rig.drv)->live, 20);
		be_free();
		until(false);
		assert_int_equal(vdrv_pkts(rig.drv)->live, 0);
		assert_int_equal(vdrv_features(rig.drv), 0);
		assert_int_not_equal(vdrv_last_end(rig.drv)[0], 0);
		assert_int_equal(vdrv_receive(rig.drv, &p, 1), 0);
		be_open(true, i + 1 < sizeof(off) / sizeof(*off) ? off[i + 1] : 0);
	}
	until(true);
	traffic(1000, 99);
	assert_int_equal(rig.link, 2 * sizeof(off) / sizeof(*off) + 1);
}

/* The device lies about a ring: it is left, with the reason, and tried again. */
static void lies_end_the_session(void **state)
{
	struct pkt *p;

	(void)state;
	be_open(true, 0);
	drv_open(NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct vdrv *v = vdrv_port(rig.drv);

		until(true);
		traffic(200, (uint8_t)i);
		v->vq[VDRV_RX].used->idx = (uint16_t)(v->vq[VDRV_RX].used->idx + 1000);
		assert_int_equal(vdrv_receive(rig.drv, &p, 1), 0);
		until(false);
		assert_non_null(strstr(vdrv_last_end(rig.drv), "used index runs ahead"));
		assert_int_equal(vdrv_counters(rig.drv)->rx_err_id, i + 1);
	}
	until(true);
	traffic(200, 9);
}

/* What the pool's memory looks like to whoever was given it. */
static uint8_t *peer_map(void)
{
	const struct chunk_pool *p = vdrv_chunks(rig.drv);
	uint8_t *m = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);

	assert_ptr_not_equal(m, MAP_FAILED);
	return m;
}

static bool peer_sees(const uint8_t *peer, uint8_t tag)
{
	uint8_t what[200];

	memset(what, tag, sizeof(what));
	return memmem(peer, vdrv_chunks(rig.drv)->len, what, sizeof(what));
}

static struct pkt *packet(uint32_t len, uint8_t tag)
{
	struct pkt *p = pkt_new(vdrv_pkts(rig.drv), 16, len);

	assert_non_null(p);
	memset(p->head, tag, len);
	p->head[0] = p->head[6] = 2;
	return p;
}

/* One of the driver's goes out and arrives as it is. */
static void arrives(struct pkt *p, uint8_t tag)
{
	static uint8_t flat[FRAME_MAX];
	uint32_t len = p->len;

	assert_int_equal(vdrv_send(rig.drv, &p, 1), 1);
	vdrv_flush(rig.drv);
	spin();
	assert_int_equal(port_pull(&rig.be->q, &rig.burst, 64), 1);
	assert_int_equal(frame_len(rig.burst.f), len);
	frame_copy(rig.burst.f, 0, len, &(struct iovec){flat, len}, 1, 0);
	for (uint32_t i = 14; i < len; i++)
		assert_int_equal(flat[i], tag);
	port_settle(&rig.be->q, &rig.burst, 1);
}

static struct pkt *receive(uint32_t len, uint8_t tag)
{
	static uint8_t data[FRAME_ROOM + 9014];
	struct frame f = {.head = data + FRAME_ROOM, .head_len = (uint16_t)len};
	struct pkt *p;

	memset(f.head, tag, len);
	assert_int_equal(rig.be->ops->push(&rig.be->q, &f, 1), 1);
	rig.be->ops->flush(&rig.be->q);
	spin();
	assert_int_equal(vdrv_receive(rig.drv, &p, 1), 1);
	assert_int_equal(p->len, len);
	return p;
}

/*
 * A back-end that was left keeps what it has mapped: it sees no byte of the next session, and spoils
 * none. The next one sees no byte of the first. Packets that the owner holds over the change stay whole,
 * and may still be sent.
 */
static void sessions_do_not_share_memory(void **state)
{
	struct pkt *received, *unsent, *between;
	uint8_t *first, *second;
	struct chunk *c;

	(void)state;
	be_open(true, 0);
	drv_open(NULL);
	until(true);
	first = peer_map();
	received = receive(3000, 0xa1);
	unsent = packet(1000, 0xa2);
	c = chunk_get(vdrv_chunks(rig.drv), 1);
	memset(chunk_data(vdrv_chunks(rig.drv), c), 0xa2, 5000);
	assert_true(pkt_add(unsent, c, chunk_data(vdrv_chunks(rig.drv), c), 5000, 8192, false));
	assert_true(peer_sees(first, 0xa1));
	assert_true(peer_sees(first, 0xa2));
	be_free();
	until(false);
	between = packet(1000, 0xb3); /* made while nobody is there */
	assert_false(peer_sees(first, 0xb3));

	be_open(true, 0);
	until(true);
	second = peer_map();
	assert_false(peer_sees(second, 0xa1));
	assert_false(peer_sees(second, 0xa2));
	memset(first, 0xee, vdrv_chunks(rig.drv)->len); /* rings, headers and all */
	arrives(between, 0xb3);
	pkt_free(receive(3000, 0xb4));
	assert_true(peer_sees(second, 0xb4));
	assert_int_equal(vdrv_counters(rig.drv)->tx_copied, 0);
	arrives(unsent, 0xa2);
	assert_int_equal(vdrv_counters(rig.drv)->tx_copied, 1);
	for (uint8_t tag = 0xb3; tag <= 0xb4; tag++)
		assert_false(peer_sees(first, tag));
	assert_false(peer_sees(first, 0xa2));
	for (unsigned i = 0; i < received->nfrag; i++)
		for (uint32_t k = 0; k < received->frag[i].len; k++)
			assert_int_equal(received->frag[i].data[k], 0xa1);
	pkt_free(received);
	for (unsigned i = 0; i < 300; i++) /* refills and memory that comes back */
		traffic(1000, (uint8_t)i);
	assert_false(chunk_pool_torn(vdrv_chunks(rig.drv)));
	assert_int_equal(vdrv_chunks(rig.drv)->private, 0);
	assert_null(chunk_pool_check(vdrv_chunks(rig.drv)));
	assert_true(peer_sees(second, 100));
	munmap(first, vdrv_chunks(rig.drv)->len);
	munmap(second, vdrv_chunks(rig.drv)->len);
}

/* The memory cannot be parted from the last device: the next one does not get it. */
static void no_session_on_old_memory(void **state)
{
	struct rlimit old, none;

	(void)state;
	be_open(true, 0);
	drv_open(NULL);
	until(true);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){0, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	vdrv_down(vdrv_port(rig.drv));
	assert_true(vdrv_port(rig.drv)->shared);
	assert_int_equal(vdrv_rings(vdrv_port(rig.drv), 0, 1500, NULL), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(vdrv_rings(vdrv_port(rig.drv), 0, 1500, NULL), 0);
}

/* The device's address is taken if it may be one, and no longer than the device is there. */
static void address_of_the_device(void **state)
{
	static const uint8_t one[6] = {2, 0, 0, 0, 0, 1}, group[6] = {3, 0, 0, 0, 0, 1}, zero[6];
	static const uint8_t *const bad[] = {group, zero};
	uint8_t name[6];

	(void)state;
	drv_open(NULL);
	memcpy(name, rig.drv->mac, 6);
	be_open_as(one, 1500, true, 0);
	until(true);
	assert_memory_equal(rig.drv->mac, one, 6);
	be_free();
	until(false);
	be_open_as(one, 1500, true, B(MAC)); /* one that has none */
	until(true);
	assert_memory_equal(rig.drv->mac, name, 6);
	for (unsigned i = 0; i < 2; i++) {
		be_free();
		until(false);
		be_open_as(bad[i], 1500, true, 0);
		for (unsigned k = 0; k < 20; k++, rig.now += 100 * NSEC_PER_MSEC)
			spin();
		assert_false(rig.drv->link);
		assert_non_null(strstr(vdrv_last_end(rig.drv), "address"));
		assert_memory_equal(rig.drv->mac, name, 6);
	}
	be_free();
	be_open_as(one, 1500, true, 0);
	until(true);
	assert_memory_equal(rig.drv->mac, one, 6);
}

/* Buffers for a small MTU, which only the device knows: no super-packets are agreed on. */
static void features_fit_the_mtu(void **state)
{
	static const uint32_t mtu[] = {ETH_MTU_MIN, 199, 238, 239, 1500};
	struct vdrv_config c;

	(void)state;
	vdrv_config_init(&c);
	c.rxbuf = VDRV_RXBUF_MTU_HDR;
	drv_open(&c);
	for (unsigned i = 0; i < 5; i++) {
		be_open_as((const uint8_t[6]){2, 0, 0, 0, 0, 7}, mtu[i], true, 0);
		until(true);
		assert_int_equal(rig.drv->mtu, mtu[i]);
		/* 256 buffers of 14 + 4 + MTU are to hold 65535 + 14 + 8 + 12 */
		assert_int_equal(!!(vdrv_features(rig.drv) & B(GUEST_TSO4)), mtu[i] >= 239);
		assert_true(vdrv_features(rig.drv) & B(GUEST_CSUM));
		assert_true(vdrv_features(rig.drv) & B(HOST_TSO4));
		be_free();
		until(false);
	}
}

/* Freed in the middle of everything. */
static void freed_while_up(void **state)
{
	struct pkt *p;

	(void)state;
	be_open(true, 0);
	drv_open(NULL);
	until(true);
	p = pkt_new(vdrv_pkts(rig.drv), 16, 100);
	memset(p->head, 0, 100);
	assert_int_equal(vdrv_send(rig.drv, &p, 1), 1);
	vdrv_flush(rig.drv);
	vdrv_free(rig.drv);
	rig.drv = NULL;
	spin();
	assert_false(rig.be->link);
	drv_open(NULL);
	spin();
	vdrv_free(rig.drv); /* in the middle of the handshake */
	rig.drv = NULL;
	spin();
}

/* The port is closed by whoever attached it, and freed later. */
static void closed_then_freed(void **state)
{
	(void)state;
	be_open(true, 0);
	drv_open(NULL);
	until(true);
	rig.drv->ops->close(rig.drv);
	assert_false(rig.drv->link);
	spin();
	assert_false(rig.be->link);
	assert_string_equal(vdrv_last_end(rig.drv), "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(comes_up_and_carries),
		T(listens),
		T(back_ends_come_and_go),
		T(lies_end_the_session),
		T(sessions_do_not_share_memory),
		T(no_session_on_old_memory),
		T(address_of_the_device),
		T(features_fit_the_mtu),
		T(freed_while_up),
		T(closed_then_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
