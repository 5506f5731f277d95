/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdrv: the driver against the real device, frames stamped and carried both ways by every mode and
 * ring size; its states; its limits.
 */
#include "port/vdrv_rig.h"

#include <errno.h>

static struct loop loop;
static struct burst burst;

static int group_setup(void **state)
{
	(void)state;
	return loop_init(&loop, NULL);
}

static int group_teardown(void **state)
{
	(void)state;
	loop_fini(&loop);
	return 0;
}

static uint8_t stamp(uint32_t serial, uint32_t i)
{
	return (uint8_t)(serial * 31 + i * 7 + (i >> 8));
}

static void frame_fill(uint8_t *p, uint32_t len, uint32_t serial)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = stamp(serial, i);
	p[12] = 0x88; /* an EtherType that is nobody's */
	p[13] = 0xb5;
}

static void frame_check(const struct frame *f, uint32_t len, uint32_t serial)
{
	static uint8_t flat[FRAME_MAX], want[FRAME_MAX];
	struct iovec to = {flat, sizeof(flat)};

	assert_int_equal(frame_len(f), len);
	frame_copy(f, 0, len, &to, 1, 0);
	frame_fill(want, len, serial);
	assert_memory_equal(flat, want, len);
}

/* A lent frame in pieces. */
static struct frame frame_lend(
	uint8_t *data, uint32_t len, struct frame_head *head, struct iovec *iov)
{
	struct frame f = {.head = head->data, .tail = iov};

	f.head_len = (uint16_t)(len < FRAME_HEAD ? len : FRAME_HEAD);
	memcpy(f.head, data, f.head_len);
	f.tail_len = len - f.head_len;
	if (f.tail_len) {
		iov[0] = (struct iovec){data + f.head_len, f.tail_len / 2};
		iov[1] = (struct iovec){
			data + f.head_len + f.tail_len / 2, f.tail_len - f.tail_len / 2};
		f.ntail = 2;
	}
	return f;
}

struct way {
	uint32_t pushed, pulled;
	uint32_t len[4096];
};

static uint32_t frame_max(const struct rig *r, bool to_driver)
{
	bool gso = to_driver ? r->features & B(GUEST_TSO4) : r->features & B(HOST_TSO4);

	return gso ? 65535 + 14 : r->v.mtu + 14;
}

/* A few frames into one end. */
static void push_some(struct rig *r, struct port *p, struct way *w, struct rand *rnd, bool in)
{
	static uint8_t data[8][FRAME_MAX];
	static struct frame_head head[8];
	struct iovec iov[8][2];
	struct frame f[8];
	unsigned n = 1 + rand_below(rnd, 8), took;

	if (w->pushed - w->pulled + n > 4096)
		return;
	for (unsigned i = 0; i < n; i++) {
		uint32_t most = rand_below(rnd, 4) ? 200 : frame_max(r, in);
		uint32_t len = 60 + rand_below(rnd, most - 59);

		w->len[(w->pushed + i) % 4096] = len;
		frame_fill(data[i], len, w->pushed + i);
		f[i] = frame_lend(data[i], len, &head[i], iov[i]);
	}
	took = p->ops->push(&p->q, f, n);
	p->ops->flush(&p->q);
	if (took < n)
		p->ops->arm_room(&p->q, 0);
	w->pushed += took;
}

static void pull_some(struct port *p, struct way *w, struct rand *rnd)
{
	unsigned n = p->ops->pull(&p->q, &burst, 1 + rand_below(rnd, BURST_FRAMES));
	unsigned done = rand_below(rnd, 3) ? n : rand_below(rnd, n + 1);

	for (unsigned i = 0; i < n; i++)
		frame_check(&burst.f[i], w->len[(w->pulled + i) % 4096], w->pulled + i);
	w->pulled += done;
	p->ops->settle(&p->q, &burst, done);
	if (!n)
		p->ops->arm(&p->q);
}

static void carry(
	const struct vdrv_config *c, uint64_t without, uint32_t mtu, uint64_t seed, uint32_t frames)
{
	static struct rig r;
	static struct way in, out;
	struct rand rnd;

	memset(&in, 0, sizeof(in));
	memset(&out, 0, sizeof(out));
	rand_init(&rnd, seed);
	rig_driver(&r, c, &loop);
	r.features = vnet_features_close(r.features & ~without);
	rig_up(&r, mtu);
	for (unsigned turns = 0; in.pulled < frames || out.pulled < frames ||
				 in.pulled < in.pushed || out.pulled < out.pushed;
		turns++) {
		assert_in_range(turns, 0, 100 * frames + 1000);
		switch (rand_below(&rnd, 5)) {
		case 0:
			if (in.pushed < frames)
				push_some(&r, &r.d.port, &in, &rnd, true);
			break;
		case 1:
			if (out.pushed < frames)
				push_some(&r, &r.v.port, &out, &rnd, false);
			break;
		case 2:
			pull_some(&r.v.port, &in, &rnd);
			break;
		case 3:
			pull_some(&r.d.port, &out, &rnd);
			break;
		default:
			rig_run(&r);
		}
	}
	rig_refs_check(&r);
	assert_null(r.d.broken);
	assert_null(r.v.broken);
	assert_int_equal(r.v.port.q.lost_out, 0);
	assert_int_equal(r.d.port.q.lost_out, 0);
	assert_int_equal(r.v.n.tx_packets, out.pushed);
	assert_int_equal(r.v.n.rx_packets, in.pushed);
	rig_down(&r);
}

static uint64_t seed_take(void)
{
	const char *s = getenv("SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : 20250204;

	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static const struct {
	const char *what;
	uint64_t without;
} feature_sets[] = {
	{"all", 0},
	{"no mrg_rxbuf: big", B(MRG_RXBUF)},
	{"no mrg_rxbuf, no guest gso: small",
		B(MRG_RXBUF) | B(GUEST_TSO4) | B(GUEST_TSO6) | B(GUEST_USO4) | B(GUEST_USO6)},
	{"no indirect_desc", B(INDIRECT_DESC)},
	{"no event_idx", B(EVENT_IDX)},
	{"legacy", B(VERSION_1)},
	{"legacy, no mrg_rxbuf", B(VERSION_1) | B(MRG_RXBUF)},
	{"legacy, header apart, big", B(VERSION_1) | B(MRG_RXBUF) | B(ANY_LAYOUT)},
	{"legacy, header apart, small",
		B(VERSION_1) | B(MRG_RXBUF) | B(ANY_LAYOUT) | B(GUEST_CSUM)},
	{"none", ~UINT64_C(0)},
};

static void every_mode(void **state)
{
	uint64_t seed = seed_take();

	(void)state;
	for (unsigned i = 0; i < sizeof(feature_sets) / sizeof(*feature_sets); i++) {
		for (unsigned knobs = 0; knobs < 12; knobs++) {
			struct vdrv_config c;

			vdrv_config_init(&c);
			c.rxbuf = knobs % 4;
			c.indirect = knobs % 3;
			c.coalesce = knobs & 1;
			c.inline_header = knobs & 2;
			c.copybreak = knobs & 4 ? 0 : 128;
			c.order = c.rx_order = knobs % 5;
			carry(&c, feature_sets[i].without, 1500, seed + i * 12 + knobs, 150);
		}
	}
}

static void every_ring_size(void **state)
{
	uint64_t seed = seed_take();

	(void)state;
	for (unsigned size = 2; size <= 1024; size *= 2) {
		for (unsigned i = 0; i < sizeof(feature_sets) / sizeof(*feature_sets); i++) {
			struct vdrv_config c;

			vdrv_config_init(&c);
			c.ring_size = size;
			c.rxbuf = i % 4;
			c.indirect = i % 3;
			carry(&c, feature_sets[i].without, 1500, seed + i, 200);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mode),
		cmocka_unit_test(every_ring_size),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
