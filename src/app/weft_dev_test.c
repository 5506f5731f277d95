/* SPDX-License-Identifier: BSD-2-Clause */
/* weft_dev: the device as a virtual machine monitor uses it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ring/ring_sim.h"
#include "weft/dev.h"

#define RAM  UINT64_C(0x40000000)
#define MEM  (64 * 1024)
#define BUF  (32 * 1024) /* offset of the buffers */
#define RING 8
#define V1   (UINT64_C(1) << 32)

struct guest {
	struct weft_dev *dev;
	struct ring_sim sim[2];
	unsigned interrupts[2], broke;
	uint8_t mem[MEM] __attribute__((aligned(64)));
};

static void on_interrupt(void *ctx, unsigned queue)
{
	((struct guest *)ctx)->interrupts[queue]++;
}

static void on_broke(void *ctx, unsigned queue, const char *reason)
{
	(void)queue;
	assert_non_null(reason);
	((struct guest *)ctx)->broke++;
}

static void guest_new(struct guest *g, const char *options)
{
	const struct weft_dev_events events = {.interrupt = on_interrupt, .broke = on_broke};
	char err[WEFT_ERR] = "";

	memset(g, 0, sizeof(*g));
	if (weft_dev_new(&g->dev, options, &events, g, err))
		fail_msg("%s", err);
	for (unsigned q = 0; q < 2; q++) {
		struct ring_sim_config c = {
			.mem = g->mem + q * (BUF / 2), .gpa = RAM + q * (BUF / 2), .size = RING};

		assert_int_equal(ring_sim_init(&g->sim[q], &c), 0);
	}
}

static void guest_free(struct guest *g)
{
	weft_dev_free(g->dev);
	for (unsigned q = 0; q < 2; q++)
		ring_sim_fini(&g->sim[q]);
}

static void guest_boot(struct guest *g)
{
	assert_int_equal(weft_dev_memory_add(g->dev, RAM, MEM, g->mem, NULL), 0);
	assert_int_equal(weft_dev_features_set(g->dev, V1, NULL), 0);
	for (unsigned q = 0; q < 2; q++) {
		const struct ring_sim *s = &g->sim[q];

		assert_int_equal(weft_dev_ring_size(g->dev, q, RING, NULL), 0);
		assert_int_equal(
			weft_dev_ring_addr(g->dev, q, s->desc_gpa, s->avail_gpa, s->used_gpa, NULL),
			0);
		assert_int_equal(weft_dev_ring_start(g->dev, q, NULL), 0);
	}
}

static void guest_offer(struct guest *g)
{
	ring_sim_add1(&g->sim[WEFT_DEV_RX], RAM + BUF, 2048, true);
	ring_sim_publish(&g->sim[WEFT_DEV_RX]);
}

static void guest_send(struct guest *g, const char *text)
{
	static const uint8_t head[26] = {
		[12] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
	uint8_t *p = g->mem + BUF + 4096;

	memcpy(p, head, sizeof(head));
	memcpy(p + sizeof(head), text, strlen(text) + 1);
	ring_sim_add1(
		&g->sim[WEFT_DEV_TX], RAM + BUF + 4096, 26 + (uint32_t)strlen(text) + 1, false);
	ring_sim_publish(&g->sim[WEFT_DEV_TX]);
}

static const char *guest_got(struct guest *g)
{
	uint32_t id, len;

	return ring_sim_get(&g->sim[WEFT_DEV_RX], &id, &len) ? (char *)g->mem + BUF + 26 : NULL;
}

static void work(struct weft_net *net)
{
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(weft_net_dispatch(net, 0), 0);
}

/* What is wrong is said; nothing of it has an effect. */
static void test_mistakes(void **state)
{
	static struct guest g, h;
	struct weft_net *net;
	struct weft_dev *dev;
	char err[WEFT_ERR] = "";
	uint8_t config[WEFT_DEV_CONFIG];

	(void)state;
	assert_int_equal(weft_dev_new(&dev, "a/b", NULL, NULL, err), -EINVAL);
	assert_int_equal(weft_dev_new(&dev, "a,mtu=9", NULL, NULL, err), -EINVAL);
	assert_non_null(strstr(err, "68"));
	assert_int_equal(weft_dev_new(&dev, "a,mode=0600", NULL, NULL, NULL), -EINVAL);

	guest_new(&g, "a,mac=52:54:00:00:00:01,mtu=9000,off=event_idx");
	assert_int_equal(weft_dev_features(g.dev) >> 29 & 1, 0);
	assert_int_equal(weft_dev_features(g.dev) >> 32 & 1, 1);
	assert_int_equal(weft_dev_features_set(g.dev, 1 << 29, err), -EINVAL);
	assert_int_equal(weft_dev_config_read(g.dev, 0, sizeof(config), config), 0);
	assert_memory_equal(config, "\x52\x54\0\0\0\x01", 6);
	assert_int_equal(config[10] | config[11] << 8, 9000);
	assert_int_equal(weft_dev_config_read(g.dev, 1, sizeof(config), config), -EINVAL);

	assert_int_equal(weft_dev_ring_size(g.dev, 2, 8, err), -EINVAL);
	assert_non_null(strstr(err, "queue 2"));
	assert_int_equal(weft_dev_ring_size(g.dev, 0, 7, err), -EINVAL);
	assert_int_equal(weft_dev_ring_addr(g.dev, 0, RAM + 1, RAM, RAM, err), -EINVAL);
	assert_int_equal(weft_dev_ring_start(g.dev, 0, err), -EINVAL);
	assert_non_null(strstr(err, "size"));
	assert_int_equal(weft_dev_ring_size(g.dev, 0, 8, NULL), 0);
	assert_int_equal(weft_dev_ring_addr(g.dev, 0, RAM, RAM + 4096, RAM + 8192, NULL), 0);
	assert_int_equal(weft_dev_ring_start(g.dev, 0, err), -EINVAL);
	assert_non_null(strstr(err, "memory"));
	assert_int_equal(weft_dev_ring_start(g.dev, 7, NULL), -EINVAL);
	assert_int_equal(weft_dev_ring_stop(g.dev, 7), 0);
	weft_dev_kicked(g.dev, 7);

	assert_int_equal(weft_dev_memory_add(g.dev, RAM, MEM, g.mem, NULL), 0);
	assert_int_equal(weft_dev_memory_add(g.dev, RAM + 1, MEM, g.mem, err), -EEXIST);
	assert_int_equal(weft_dev_memory_del(g.dev, RAM + 1, MEM, err), -ENOENT);
	assert_int_equal(weft_dev_memory_del(g.dev, RAM, MEM, NULL), 0);

	assert_int_equal(weft_net_new(&net, "lab", NULL), 0);
	assert_int_equal(weft_net_add(net, "device:b", err), -EINVAL);
	assert_non_null(strstr(err, "weft_dev_attach"));
	assert_int_equal(weft_dev_attach(g.dev, net, NULL), 0);
	assert_int_equal(weft_dev_attach(g.dev, net, err), -EBUSY);
	guest_new(&h, "b,mac=52:54:00:00:00:01");
	assert_int_equal(weft_dev_attach(h.dev, net, err), -EEXIST); /* the address is a's */
	guest_free(&h);
	assert_int_equal(weft_dev_kick_fd(g.dev, 0, 12345, err), -EBADF);
	work(net);
	assert_int_equal(g.broke, 0); /* rings that did not start broke nothing */
	weft_net_free(net);
	weft_dev_detach(g.dev); /* it is already */
	guest_free(&g);
	weft_dev_free(NULL);
}

/* Frames pass; kicks by call or by descriptor, interrupts likewise. */
static void test_traffic(void **state)
{
	static struct guest a, b;
	struct weft_net *net;
	int kick = eventfd(0, EFD_NONBLOCK), call = eventfd(0, EFD_NONBLOCK);
	eventfd_t count;
	char *json;

	(void)state;
	assert_int_equal(weft_net_new(&net, "lab", NULL), 0);
	guest_new(&a, "a");
	guest_new(&b, "b");
	assert_int_equal(
		weft_dev_kick_fd(b.dev, WEFT_DEV_TX, kick, NULL), 0); /* not attached yet */
	assert_int_equal(weft_dev_call_fd(b.dev, WEFT_DEV_RX, call, NULL), 0);
	guest_boot(&a);
	guest_boot(&b);
	assert_int_equal(weft_dev_attach(a.dev, net, NULL), 0);
	assert_int_equal(weft_dev_attach(b.dev, net, NULL), 0);
	guest_offer(&a);
	guest_offer(&b);
	work(net);

	guest_send(&a, "by call");
	weft_dev_kicked(a.dev, WEFT_DEV_TX);
	work(net);
	assert_string_equal(guest_got(&b), "by call");
	assert_int_equal(a.interrupts[WEFT_DEV_TX], 1);
	assert_int_equal(b.interrupts[WEFT_DEV_RX], 0); /* it has a descriptor for that */
	assert_int_equal(eventfd_read(call, &count), 0);

	guest_send(&b, "by eventfd");
	work(net);
	assert_null(guest_got(&a)); /* nobody said so */
	assert_int_equal(eventfd_write(kick, 1), 0);
	work(net);
	assert_string_equal(guest_got(&a), "by eventfd");
	assert_int_equal(a.interrupts[WEFT_DEV_RX], 1);

	json = weft_net_show(net, "ports");
	assert_non_null(strstr(json, "\"kind\": \"device\""));
	assert_non_null(strstr(json, "\"link\": true"));
	free(json);
	guest_free(&a);
	guest_free(&b);
	weft_net_free(net);
	close(kick);
	close(call);
}

/* A device moves to another network while its driver runs; what it sends meanwhile waits. */
static void test_move(void **state)
{
	static struct guest a, b;
	struct weft_net *one, *two;

	(void)state;
	assert_int_equal(weft_net_new(&one, "one", NULL), 0);
	assert_int_equal(weft_net_new(&two, "two", NULL), 0);
	guest_new(&a, "a");
	guest_new(&b, "b");
	guest_boot(&a);
	guest_boot(&b);
	assert_int_equal(weft_dev_attach(a.dev, one, NULL), 0);
	assert_int_equal(weft_dev_attach(b.dev, two, NULL), 0);
	work(one);
	weft_net_free(one);
	guest_offer(&b);
	guest_send(&a, "moved");
	weft_dev_kicked(a.dev, WEFT_DEV_TX);
	assert_int_equal(weft_dev_attach(a.dev, two, NULL), 0);
	work(two);
	assert_string_equal(guest_got(&b), "moved");

	assert_int_equal(weft_net_del(two, "a", NULL), 0);
	assert_int_equal(weft_dev_ring_stop(a.dev, WEFT_DEV_TX), 1);
	assert_int_equal(weft_dev_attach(a.dev, two, NULL), 0);
	assert_int_equal(weft_dev_ring_base(a.dev, WEFT_DEV_TX, 1, NULL), 0);
	assert_int_equal(weft_dev_ring_start(a.dev, WEFT_DEV_TX, NULL), 0);
	assert_int_equal(weft_dev_ring_base(a.dev, WEFT_DEV_TX, 1, NULL), -EBUSY);
	guest_offer(&b);
	guest_send(&a, "again");
	weft_dev_kicked(a.dev, WEFT_DEV_TX);
	work(two);
	assert_string_equal(guest_got(&b), "again");
	guest_free(&a);
	guest_free(&b);
	weft_net_free(two);
}

/* A guest that breaks the rules breaks its own queue; it heals; the news reaches a detached device
 * when it is plugged in. */
static void test_broken(void **state)
{
	static struct guest a;
	struct weft_net *net;

	(void)state;
	assert_int_equal(weft_net_new(&net, "lab", NULL), 0);
	guest_new(&a, "a");
	guest_boot(&a);
	assert_int_equal(weft_dev_attach(a.dev, net, NULL), 0);
	ring_sim_add1(&a.sim[WEFT_DEV_TX], 0xdead0000, 64, false);
	ring_sim_publish(&a.sim[WEFT_DEV_TX]);
	weft_dev_kicked(a.dev, WEFT_DEV_TX);
	work(net);
	assert_int_equal(a.broke, 1);
	weft_dev_reset(a.dev);
	work(net);
	assert_int_equal(a.broke, 1);

	weft_dev_detach(a.dev);
	assert_int_equal(weft_dev_memory_del(a.dev, RAM, MEM, NULL), 0);
	for (unsigned q = 0; q < 2; q++) { /* as after a reset: a new driver */
		struct ring_sim_config c = {
			.mem = a.mem + q * (BUF / 2), .gpa = RAM + q * (BUF / 2), .size = RING};

		ring_sim_fini(&a.sim[q]);
		assert_int_equal(ring_sim_init(&a.sim[q], &c), 0);
	}
	guest_boot(&a);
	assert_int_equal(weft_dev_memory_del(a.dev, RAM, MEM, NULL), 0); /* under running rings */
	assert_int_equal(a.broke, 1);
	assert_int_equal(weft_dev_attach(a.dev, net, NULL), 0);
	work(net);
	assert_int_equal(a.broke, 2);
	guest_free(&a);
	weft_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_traffic),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
