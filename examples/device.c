/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device: what a virtual machine monitor does to give its guests a network: two toy "guests" in this
 * process, each with two rings of one buffer. The left one sends, the right one prints what arrived.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#define RAM 0x100000 /* guest address of the memory */
#define HDR 12       /* virtio-net header of VIRTIO_F_VERSION_1 */

/* A guest's memory: a virtqueue is a descriptor table, what is available, what is used. */
struct guest {
	struct queue {
		uint64_t addr; /* the only descriptor */
		uint32_t len;
		uint16_t flags, next;
		uint16_t avail_flags, avail_idx, avail_ring[2];
		uint16_t used_flags, used_idx;
		uint32_t used_id, used_len;
		char buffer[2048];
	} __attribute__((aligned(16))) q[2];
	struct weft_dev *dev;
};

static void must(int r, const char *err)
{
	if (r)
		errx(1, "%s", err);
}

static uint64_t gpa(struct guest *g, void *p)
{
	return RAM + (uint64_t)((char *)p - (char *)g);
}

/* Make the queue's buffer available: for the device to read, or (flags 2) to write. */
static void offer(struct guest *g, unsigned queue, uint32_t len)
{
	struct queue *q = &g->q[queue];

	q->addr = gpa(g, q->buffer);
	q->len = len;
	q->flags = queue == WEFT_DEV_RX ? 2 : 0;
	__atomic_store_n(&q->avail_idx, q->avail_idx + 1, __ATOMIC_RELEASE);
	weft_dev_kicked(g->dev, queue);
}

static void interrupt(void *ctx, unsigned queue)
{
	struct guest *g = ctx;

	if (queue == WEFT_DEV_RX)
		printf("received %u bytes: %s\n", g->q[queue].used_len - HDR,
			g->q[queue].buffer + HDR + 14);
}

/* The device, then what the guest's driver tells it through the monitor: features, rings, "go". */
static void boot(struct guest *g, const char *name, struct weft_net *net)
{
	const struct weft_dev_events events = {.interrupt = interrupt};
	char err[WEFT_ERR] = "";

	must(weft_dev_new(&g->dev, name, &events, g, err), err);
	must(weft_dev_attach(g->dev, net, err), err);
	must(weft_dev_memory_add(g->dev, RAM, sizeof(g->q), g->q, err), err);
	must(weft_dev_features_set(g->dev, UINT64_C(1) << 32, err), err); /* VERSION_1 */
	for (unsigned i = 0; i < 2; i++) {
		struct queue *q = &g->q[i];

		must(weft_dev_ring_size(g->dev, i, 1, err), err);
		must(weft_dev_ring_addr(g->dev, i, gpa(g, &q->addr), gpa(g, &q->avail_flags),
			     gpa(g, &q->used_flags), err),
			err);
		must(weft_dev_ring_start(g->dev, i, err), err);
	}
	offer(g, WEFT_DEV_RX, sizeof(g->q[0].buffer));
}

int main(void)
{
	static struct guest left, right;
	struct weft_net *net;
	char err[WEFT_ERR] = "", *frame = left.q[WEFT_DEV_TX].buffer + HDR;

	must(weft_net_new(&net, "example", err), err);
	boot(&left, "left", net);
	boot(&right, "right", net);
	memcpy(frame, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5hello, right", 14 + 13);
	offer(&left, WEFT_DEV_TX, HDR + 14 + 13);
	while (!right.q[WEFT_DEV_RX].used_idx)
		must(weft_net_dispatch(net, 1), "dispatch");
	weft_dev_free(left.dev);
	weft_dev_free(right.dev);
	weft_net_free(net);
	return 0;
}
