/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port: names, the checked pull, settle that counts once, and the fitted push: whatever a receiver
 * takes at a time, every frame and every segment arrives once, in order, and unharmed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rand.h"
#include "port/fake.h"
#include "port/pcap.h"
#include "wire/eth.h"

#define MAC_A UINT64_C(0x525400000001)
#define MAC_B UINT64_C(0x525400000002)

static struct loop loop;
static struct fit fit;
static struct burst burst;
static uint8_t buf[FRAME_MAX + 100];

struct both {
	struct fake a, b; /* a lends, b takes */
};

static int setup(void **state)
{
	struct both *t = calloc(1, sizeof(*t));

	if (loop_init(&loop, NULL))
		return -1;
	fake_init(&t->a, "a", &loop);
	fake_init(&t->b, "b", &loop);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct both *t = *state;

	fake_fini(&t->a);
	fake_fini(&t->b);
	free(t);
	loop_fini(&loop);
	return 0;
}

static void lend_eth(struct fake *k, uint32_t len, uint32_t count)
{
	fake_lend(k, buf, fake_eth(buf, MAC_B, MAC_A, 0, len, count), NULL);
}

static void lend_tcp(struct fake *k, uint32_t payload, uint16_t gso_size, uint32_t seq)
{
	struct offload off;
	uint32_t len = fake_tcp4(buf, MAC_B, MAC_A, payload, gso_size, seq, &off);

	fake_lend(k, buf, len, &off);
}

/* Lend everything to b, `k` frames or segments at a time. Returns how many rounds it took. */
static unsigned pump(struct both *t, uint32_t k)
{
	unsigned rounds = 0, n, took;
	uint32_t resume = 0;

	while ((n = port_pull(&t->a.port.q, &burst, BURST_FRAMES))) {
		t->b.room = k;
		took = port_push(&t->b.port.q, burst.f, n, &resume, &fit);
		assert_true(took <= n);
		if (took == n)
			assert_int_equal(resume, 0);
		if (resume)
			assert_true(burst.f[took].off.gso);
		port_settle(&t->a.port.q, &burst, took);
		assert_true(++rounds < 100000);
	}
	return rounds;
}

static void names(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(port_name_check("vm-1.eth_0", &err), 0);
	assert_int_equal(port_name_check("", &err), -22);
	assert_int_equal(port_name_check("-n", &err), -22);
	assert_int_equal(port_name_check(".x", &err), -22);
	assert_int_equal(port_name_check("a b", &err), -22);
	assert_non_null(strstr(err.text, "\"a b\""));
	assert_int_equal(port_name_check("0123456789012345678901234567890", &err), 0);
	assert_int_equal(port_name_check("01234567890123456789012345678901", &err), -22);
	assert_non_null(strstr(err.text, "32"));
	assert_non_null(strstr(err.text, "31"));
}

static void addresses_of_names(void **state)
{
	uint8_t a[6], b[6];

	(void)state;
	port_mac_of_name("net", "vm1", a);
	port_mac_of_name("net", "vm1", b);
	assert_memory_equal(a, b, 6);
	assert_int_equal(a[0] & 3, 2);
	port_mac_of_name("net", "vm2", b);
	assert_memory_not_equal(a, b, 6);
	port_mac_of_name("netv", "m1", b);
	assert_memory_not_equal(a, b, 6);
}

static void what_goes_back_is_not_counted(void **state)
{
	struct both *t = *state;
	struct portq *q = &t->a.port.q;
	struct offload bad = {.gso = OFF_GSO_TCPV4, .gso_size = 100};

	lend_eth(&t->a, 100, 1);
	fake_lend(&t->a, buf, fake_eth(buf, MAC_B, MAC_A, 0, 200, 2), &bad);
	fake_lend(&t->a, buf, 13, NULL);
	lend_tcp(&t->a, 3000, 1000, 4);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(port_pull(q, &burst, BURST_FRAMES), 4);
		assert_int_equal(burst.n, 4);
		assert_int_equal(burst.f[0].drop, DROP_NONE);
		assert_int_equal(burst.f[1].drop, DROP_BAD_HDR);
		assert_int_equal(burst.f[2].drop, DROP_SHORT);
		assert_int_equal(burst.f[3].drop, DROP_NONE);
		port_settle(q, &burst, 0);
		assert_int_equal(q->in.frames, 0);
		assert_int_equal(q->drop_in[DROP_BAD_HDR], 0);
	}
	port_pull(q, &burst, BURST_FRAMES);
	port_settle(q, &burst, 2);
	assert_int_equal(q->in.frames, 2);
	assert_int_equal(q->in.bytes, 300);
	assert_int_equal(q->drop_in[DROP_BAD_HDR], 1);
	assert_int_equal(q->last_drop_in, DROP_BAD_HDR);
	assert_int_equal(port_pull(q, &burst, BURST_FRAMES), 2);
	port_settle(q, &burst, 2);
	assert_int_equal(q->in.frames, 4);
	assert_int_equal(q->in.gso, 1);
	assert_int_equal(q->drop_in[DROP_SHORT], 1);
}

static void a_run_is_one_push(void **state)
{
	struct both *t = *state;

	for (unsigned i = 0; i < BURST_FRAMES; i++)
		lend_eth(&t->a, 60 + i, i);
	assert_int_equal(pump(t, FAKE_ANY), 1);
	assert_int_equal(t->b.pushes, 1);
	assert_int_equal(t->b.port.q.out.frames, BURST_FRAMES);
	assert_int_equal(t->b.port.q.out.bytes, t->a.port.q.in.bytes);
	/* super-packets that the receiver takes, too */
	for (unsigned i = 0; i < 4; i++)
		lend_tcp(&t->a, 60000, 1448, i);
	assert_int_equal(pump(t, FAKE_ANY), 1);
	assert_int_equal(t->b.pushes, 2);
	assert_int_equal(t->b.port.q.out.gso, 4);
	assert_int_equal(t->b.port.q.fit_segments, 0);
}

static void refused_frames_are_passed_over(void **state)
{
	struct both *t = *state;

	for (unsigned i = 0; i < 6; i++) {
		if (i % 2)
			fake_lend(&t->a, buf, 5, NULL);
		else
			lend_eth(&t->a, 100, i);
	}
	pump(t, FAKE_ANY);
	assert_int_equal(t->b.got.n, 3);
	assert_int_equal(t->a.port.q.drop_in[DROP_SHORT], 3);
	assert_int_equal(t->b.port.q.lost_out, 0);
}

static void mtu_counts_the_datagram(void **state)
{
	struct both *t = *state;

	t->b.port.mtu = 1500;
	lend_eth(&t->a, 1514, 0);
	lend_eth(&t->a, 1515, 1);
	fake_lend(&t->a, buf, fake_eth(buf, MAC_B, MAC_A, 5, 1518, 2), NULL);
	fake_lend(&t->a, buf, fake_eth(buf, MAC_B, MAC_A, 5, 1519, 3), NULL);
	fake_eth(buf, MAC_B, MAC_A, 5, 1523, 4);
	put_be16(buf + 16, ETH_TYPE_VLAN); /* a second tag */
	fake_lend(&t->a, buf, 1522, NULL);
	fake_lend(&t->a, buf, 1523, NULL);
	lend_tcp(&t->a, 60000, 1460, 6); /* judged by its segments */
	lend_tcp(&t->a, 60000, 1461, 7);
	lend_tcp(&t->a, 1461, 0, 8); /* not a super-packet */
	lend_tcp(&t->a, 1460, 0, 9);
	pump(t, FAKE_ANY);
	assert_int_equal(t->b.got.n, 5);
	assert_int_equal(t->b.got.f[0].len, 1514);
	assert_int_equal(t->b.got.f[1].len, 1518);
	assert_int_equal(t->b.got.f[2].len, 1522);
	assert_int_equal(t->b.got.f[3].len, 60054);
	assert_int_equal(t->b.got.f[4].len, 1514);
	assert_int_equal(t->b.port.q.drop_out[DROP_TOO_BIG], 5);
	assert_int_equal(t->b.port.q.last_drop_out, DROP_TOO_BIG);
	assert_int_equal(t->b.port.q.lost_out, 5);
}

static void no_link_takes_all_and_drops_all(void **state)
{
	struct both *t = *state;

	lend_eth(&t->a, 100, 0);
	fake_lend(&t->a, buf, 3, NULL);
	t->b.port.link = false;
	pump(t, FAKE_ANY);
	assert_int_equal(t->b.pushes, 0);
	assert_int_equal(t->b.port.q.drop_out[DROP_LINK_DOWN], 1);
	assert_int_equal(t->b.port.q.out.frames, 0);
}

static void what_a_port_loses_inside_is_not_delivered(void **state)
{
	struct both *t = *state;

	lend_eth(&t->a, 100, 0);
	lend_eth(&t->a, 200, 1);
	t->b.lose = DROP_BUFFER_SMALL;
	pump(t, FAKE_ANY);
	assert_int_equal(t->b.port.q.out.frames, 0);
	assert_int_equal(t->b.port.q.out.bytes, 0);
	assert_int_equal(t->b.port.q.lost_out, 2);
	assert_int_equal(t->b.port.q.lost_out_bytes, 300);
}

static void checksums_are_finished_in_batches(void **state)
{
	struct both *t = *state;

	t->b.port.accepts = 0;
	for (unsigned i = 0; i < BURST_FRAMES; i++)
		lend_tcp(&t->a, 10 + i * 20, 0, i);
	assert_int_equal(pump(t, FAKE_ANY), 1);
	assert_int_equal(t->b.pushes, BURST_FRAMES / FIT_BATCH);
	assert_int_equal(t->b.got.n, BURST_FRAMES);
	for (unsigned i = 0; i < BURST_FRAMES; i++) {
		assert_int_equal(t->b.got.f[i].len, 64 + i * 20);
		assert_true(fake_tcp4_good(&t->b.got.f[i]));
		assert_int_equal(t->b.got.f[i].off.flags, 0);
		assert_false(fake_tcp4_good(&t->a.lend.f[i])); /* the loan is not written to */
	}
	assert_int_equal(t->b.port.q.fit_csum, BURST_FRAMES);
}

static void an_unfit_frame_is_dropped_in_its_turn(void **state)
{
	struct both *t = *state;
	struct offload off;
	unsigned n;
	uint32_t resume = 0, len;

	t->b.port.accepts = ACCEPT_CSUM;
	lend_tcp(&t->a, 100, 0, 0);
	len = fake_tcp4(buf, MAC_B, MAC_A, 3000, 1000, 1, &off);
	buf[ETH_HLEN + 20 + 13] |= 0x02; /* SYN: may not be cut */
	fake_lend(&t->a, buf, len, &off);
	lend_tcp(&t->a, 100, 0, 2);
	n = port_pull(&t->a.port.q, &burst, BURST_FRAMES);
	assert_int_equal(n, 3);
	t->b.room = 0;
	assert_int_equal(port_push(&t->b.port.q, burst.f, n, &resume, &fit), 0);
	assert_int_equal(t->b.port.q.lost_out, 0);
	t->b.room = FAKE_ANY;
	assert_int_equal(port_push(&t->b.port.q, burst.f, n, &resume, &fit), 3);
	assert_int_equal(t->b.got.n, 2);
	assert_int_equal(t->b.port.q.drop_out[DROP_NO_OFFLOAD], 1);
	port_settle(&t->a.port.q, &burst, 3);
}

static void nor_one_whose_checksum_cannot_be_finished(void **state)
{
	struct both *t = *state;
	uint32_t resume = 0;

	t->b.port.accepts = 0;
	for (unsigned i = 0; i < 4; i++)
		lend_tcp(&t->a, 100, 0, i);
	port_pull(&t->a.port.q, &burst, 4);
	burst.f[2].head_len = 40; /* the field is not private: our own bug, met with a drop */
	t->b.room = 1;
	assert_int_equal(port_push(&t->b.port.q, burst.f, 4, &resume, &fit), 1);
	assert_int_equal(t->b.port.q.lost_out, 0);
	t->b.room = 1;
	assert_int_equal(port_push(&t->b.port.q, burst.f + 1, 3, &resume, &fit), 2);
	assert_int_equal(t->b.port.q.drop_out[DROP_NO_OFFLOAD], 1);
	t->b.room = 1;
	assert_int_equal(port_push(&t->b.port.q, burst.f + 3, 1, &resume, &fit), 1);
	assert_int_equal(t->b.got.n, 3);
	assert_int_equal(t->b.port.q.fit_csum, 3);
	port_settle(&t->a.port.q, &burst, 4);
}

/* Everything a sender may mix. */
static void lend_mix(struct fake *k)
{
	for (unsigned i = 0; i < 4; i++) {
		lend_eth(k, 100 + i, 1000 + i);
		lend_tcp(k, 65000 - i * 1000, 1448, i << 16);
		lend_tcp(k, 1000, 0, i << 16 | 0xff00);
		lend_tcp(k, 0, 0, i << 16 | 0xff80);
		fake_lend(k, buf, 7, NULL);
		lend_tcp(k, 1449 * (i + 1), 1448, i << 16 | 0xffa0);
		lend_eth(k, 60, 2000 + i);
	}
}

static void same_frames(const struct fake_list *x, const struct fake_list *y)
{
	assert_int_equal(x->n, y->n);
	for (unsigned i = 0; i < x->n; i++) {
		assert_int_equal(x->f[i].len, y->f[i].len);
		assert_memory_equal(x->f[i].data, y->f[i].data, x->f[i].len);
		assert_memory_equal(&x->f[i].off, &y->f[i].off, sizeof(x->f[i].off));
	}
}

/* The TCP payload bytes of frames in order, of the plain and the cut ones alike. */
static uint32_t payload_of(const struct fake_list *l, uint8_t *out)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < l->n; i++) {
		if (l->f[i].len < 54 || get_be16(l->f[i].data + 12) != ETH_TYPE_IP4)
			continue;
		memcpy(out + n, l->f[i].data + 54, l->f[i].len - 54);
		n += l->f[i].len - 54;
	}
	return n;
}

static void resumed_anywhere_for(void **state, unsigned accepts, bool cut)
{
	struct both *t = *state, part;
	uint8_t *sent = malloc(1 << 20), *came = malloc(1 << 20);
	uint32_t len;

	t->b.port.accepts = accepts;
	lend_mix(&t->a);
	pump(t, FAKE_ANY);
	len = payload_of(&t->a.lend, sent);
	assert_int_equal(payload_of(&t->b.got, came), len);
	assert_memory_equal(sent, came, len);
	assert_int_equal(t->b.port.q.fit_segments > 0, cut);
	for (unsigned i = 0; cut && !accepts && i < t->b.got.n; i++) {
		if (get_be16(t->b.got.f[i].data + 12) == ETH_TYPE_IP4)
			assert_true(fake_tcp4_good(&t->b.got.f[i]));
	}
	for (uint32_t k = 1; k <= t->b.got.n; k += k < 70 ? 1 : 13) {
		fake_init(&part.a, "a", &loop);
		fake_init(&part.b, "b", &loop);
		part.b.port.accepts = accepts;
		lend_mix(&part.a);
		assert_true(pump(&part, k) >= t->b.got.n / k);
		same_frames(&part.b.got, &t->b.got);
		assert_int_equal(part.b.port.q.out.bytes, t->b.port.q.out.bytes);
		assert_int_equal(part.b.port.q.fit_segments, t->b.port.q.fit_segments);
		assert_int_equal(part.b.port.q.fit_csum, t->b.port.q.fit_csum);
		assert_int_equal(part.a.port.q.in.frames, t->a.port.q.in.frames);
		assert_int_equal(part.b.port.q.lost_out, 0);
		fake_fini(&part.a);
		fake_fini(&part.b);
	}
	free(sent);
	free(came);
}

static void resumed_anywhere(void **state)
{
	resumed_anywhere_for(state, 0, true);
}

static void resumed_anywhere_with_checksum_offload(void **state)
{
	resumed_anywhere_for(state, ACCEPT_CSUM, true);
}

static void resumed_anywhere_as_it_is(void **state)
{
	resumed_anywhere_for(state, ACCEPT_ALL, false);
}

static void resume_of_a_frame_that_changed(void **state)
{
	struct both *t = *state;
	uint32_t resume = 5;

	/* a plain one now stands there: it is delivered, once */
	lend_eth(&t->a, 100, 0);
	port_pull(&t->a.port.q, &burst, 1);
	assert_int_equal(port_push(&t->b.port.q, burst.f, 1, &resume, &fit), 1);
	assert_int_equal(resume, 0);
	assert_int_equal(t->b.got.n, 1);
	port_settle(&t->a.port.q, &burst, 1);

	/* a shorter super-packet: as if all of it had gone */
	resume = 50;
	t->b.port.accepts = 0;
	lend_tcp(&t->a, 3000, 1448, 0);
	port_pull(&t->a.port.q, &burst, 1);
	assert_int_equal(port_push(&t->b.port.q, burst.f, 1, &resume, &fit), 1);
	assert_int_equal(resume, 0);
	assert_int_equal(t->b.got.n, 1);
	port_settle(&t->a.port.q, &burst, 1);
}

static void cut_to_the_end_when_the_receiver_learns_offloads(void **state)
{
	struct both *t = *state;
	uint32_t resume = 0;
	uint8_t *came = malloc(1 << 17);

	t->b.port.accepts = 0;
	lend_tcp(&t->a, 20000, 1000, 0);
	port_pull(&t->a.port.q, &burst, 1);
	t->b.room = 7;
	assert_int_equal(port_push(&t->b.port.q, burst.f, 1, &resume, &fit), 0);
	assert_int_equal(resume, 7);
	t->b.port.accepts = ACCEPT_ALL;
	t->b.room = FAKE_ANY;
	assert_int_equal(port_push(&t->b.port.q, burst.f, 1, &resume, &fit), 1);
	assert_int_equal(t->b.got.n, 20);
	assert_int_equal(payload_of(&t->b.got, came), 20000);
	free(came);
}

/* How many packet blocks a capture has; how many of them tell `comment`. */
static unsigned blocks(const char *path, const char *comment, unsigned *telling)
{
	static uint8_t file[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t len = fread(file, 1, sizeof(file), f);
	uint32_t head[2];
	unsigned n = 0;

	fclose(f);
	*telling = 0;
	for (size_t at = 0; at + 8 <= len; at += head[1]) {
		memcpy(head, file + at, sizeof(head));
		assert_true(head[1] >= 12 && at + head[1] <= len);
		if (head[0] != 6)
			continue;
		n++;
		*telling += memmem(file + at, head[1], comment, strlen(comment)) != NULL;
	}
	return n;
}

static void a_capture_has_each_frame_once(void **state)
{
	char in[] = "/tmp/port_test_in_XXXXXX", out[] = "/tmp/port_test_out_XXXXXX";
	struct both *t = *state;
	unsigned telling;

	close(mkstemp(in));
	close(mkstemp(out));
	assert_int_equal(pcap_open(&t->a.port.pcap, in, "a", &loop, NULL, NULL), 0);
	assert_int_equal(pcap_open(&t->b.port.pcap, out, "b", &loop, NULL, NULL), 0);
	t->a.port.capture = t->b.port.capture = pcap_frame;
	t->b.port.accepts = 0;
	t->b.port.mtu = 1500;
	lend_mix(&t->a);
	lend_eth(&t->a, 1515, 1);
	pump(t, 3);
	pcap_close(t->a.port.pcap);
	pcap_close(t->b.port.pcap);
	t->a.port.pcap = t->b.port.pcap = NULL;
	assert_int_equal(blocks(in, drop_name(DROP_SHORT), &telling), t->a.lend.n);
	assert_int_equal(telling, 4);
	assert_int_equal(blocks(out, drop_name(DROP_TOO_BIG), &telling), t->b.got.n + 1);
	assert_int_equal(telling, 1);
	unlink(in);
	unlink(out);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(names),
		T(addresses_of_names),
		T(what_goes_back_is_not_counted),
		T(a_run_is_one_push),
		T(refused_frames_are_passed_over),
		T(mtu_counts_the_datagram),
		T(no_link_takes_all_and_drops_all),
		T(what_a_port_loses_inside_is_not_delivered),
		T(checksums_are_finished_in_batches),
		T(an_unfit_frame_is_dropped_in_its_turn),
		T(nor_one_whose_checksum_cannot_be_finished),
		T(resumed_anywhere),
		T(resumed_anywhere_with_checksum_offload),
		T(resumed_anywhere_as_it_is),
		T(resume_of_a_frame_that_changed),
		T(a_capture_has_each_frame_once),
		T(cut_to_the_end_when_the_receiver_learns_offloads),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
