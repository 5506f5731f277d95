/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap_test: against the kernel itself, inside a user and network namespace of this process's own.
 */
#include "port/tap_rig.h"

static int setup(void **state)
{
	return setup_config(state, (struct tap_config){0});
}

/* ---- from the kernel ------------------------------------------------------------------------ */

static void datagram_comes_with_its_offload_fields(void **state)
{
	struct fixture *fx = *state;
	uint8_t data[1000];
	struct frame *f;

	memset(data, 0x5a, sizeof(data));
	meet(fx);
	assert_int_equal(send(fx->udp, data, sizeof(data), 0), sizeof(data));
	f = next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	assert_int_equal(f->drop, DROP_NONE);
	assert_int_equal(frame_len(f), L4 + 8 + sizeof(data));
	assert_int_equal(f->head_len, FRAME_HEAD);
	assert_memory_equal(f->head, mac_us, 6);
	assert_int_equal(f->off.flags, OFF_NEEDS_CSUM);
	assert_int_equal(f->off.gso, OFF_GSO_NONE);
	assert_int_equal(f->off.csum_start, L4);
	assert_int_equal(f->off.csum_off, 6);
	assert_int_equal(get_be16(f->head + L4 + 6),
		pseudo(f->head + ETH_HLEN, IPPROTO_UDP, 8 + sizeof(data)));
	flatten(fx, f);
	assert_memory_equal(fx->copy + L4 + 8, data, sizeof(data));
	settle_all(fx);
}

static void super_packet_comes_whole(void **state)
{
	struct fixture *fx = *state;
	static uint8_t data[44 * 1400];
	int segment = 1400;
	struct frame *f;

	if (!(fx->port->accepts & ACCEPT_USO4)) {
		print_message("this kernel has no USO: skipped\n");
		skip();
	}
	meet(fx);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i / 251);
	assert_int_equal(setsockopt(fx->udp, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
	assert_int_equal(send(fx->udp, data, sizeof(data), 0), sizeof(data));
	f = next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	assert_int_equal(frame_len(f), L4 + 8 + sizeof(data));
	assert_int_equal(f->off.gso, OFF_GSO_UDP_L4);
	assert_int_equal(f->off.gso_size, 1400);
	flatten(fx, f);
	assert_memory_equal(fx->copy + L4 + 8, data, sizeof(data));
	settle_all(fx);
}

static int setup_plain(void **state)
{
	return setup_config(
		state, (struct tap_config){.off = VNET_BIT(CSUM) | VNET_BIT(GUEST_CSUM)});
}

static void without_csum_nothing_is_left_to_do(void **state)
{
	struct fixture *fx = *state;
	struct csum c = {0};
	struct frame *f;
	int segment = 100;
	uint8_t data[300] = {1, 2, 3};

	assert_int_equal(fx->port->accepts, 0);
	meet(fx);
	assert_int_equal(setsockopt(fx->udp, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
	/* Without checksum offload the kernel may refuse to make super-packets at all. */
	if (send(fx->udp, data, sizeof(data), 0) < 0) {
		segment = 0;
		setsockopt(fx->udp, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
		assert_int_equal(send(fx->udp, data, 100, 0), 100);
	}
	f = next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	assert_int_equal(frame_len(f), L4 + 8 + 100);
	assert_int_equal(f->off.flags & OFF_NEEDS_CSUM, 0);
	assert_int_equal(f->off.gso, OFF_GSO_NONE);
	flatten(fx, f);
	csum_pseudo4(&c, fx->copy + 26, fx->copy + 30, IPPROTO_UDP, 108);
	csum_piece(&c, fx->copy + L4, 108);
	assert_int_equal(csum_end(&c), 0);
	settle_all(fx);
}

/* ---- settle --------------------------------------------------------------------------------- */

static void given_back_frames_come_again_without_a_read(void **state)
{
	struct fixture *fx = *state;
	struct portq *q = &fx->port->q;
	uint64_t reads;

	meet(fx);
	for (unsigned i = 0; i < 5; i++)
		assert_true(numbered_send(fx, i, 400 + i));
	next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	assert_true(fx->b.n >= 5);
	for (unsigned i = 0; i < 5; i++)
		numbered_check(fx, &fx->b.f[fx->next - 1 + i], i);
	/* what the network has done to heads meanwhile stays with them */
	assert_true(frame_pull(&fx->b.f[fx->next + 1], 300));
	q->port->ops->settle(q, &fx->b, fx->next - 1 + 2);
	reads = q->in.bufs;
	assert_true(q->port->ops->arm(q));
	pull(fx, 2);
	assert_int_equal(fx->b.n, 2);
	numbered_check(fx, &fx->b.f[0], 2);
	numbered_check(fx, &fx->b.f[1], 3);
	q->port->ops->settle(q, &fx->b, 1);
	pull(fx, 2);
	assert_int_equal(fx->b.n, 2);
	numbered_check(fx, &fx->b.f[0], 3);
	numbered_check(fx, &fx->b.f[1], 4);
	assert_int_equal(q->in.bufs, reads);
	settle_all(fx);
}

static void any_order_of_settling_loses_nothing(void **state)
{
	struct fixture *fx = *state;
	struct portq *q = &fx->port->q;
	struct rand r;
	const char *env = getenv("SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	uint32_t sent = 0, got = 0;
	int segment = 1400;

	print_message("SEED=%llu\n", (unsigned long long)seed);
	rand_init(&r, seed);
	meet(fx);
	if (fx->port->accepts & ACCEPT_USO4)
		assert_int_equal(
			setsockopt(fx->udp, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
	while (got < 1500) {
		for (unsigned i = rand_below(&r, 12); i && sent < 1500; i--, sent++) {
			bool big = (fx->port->accepts & ACCEPT_USO4) && !rand_below(&r, 3);
			if (!numbered_send(fx, sent, 8 + rand_below(&r, big ? 59000 : 1300)))
				break; /* the socket's buffer is full of frames we have not read */
		}
		loop_dispatch(&fx->loop, false);
		pull(fx, 1 + rand_below(&r, BURST_FRAMES));
		assert_true(fx->b.bytes <= BURST_BYTES + FRAME_MAX);
		unsigned n = rand_below(&r, fx->b.n + 1);
		for (unsigned i = 0, at = got; i < fx->b.n; i++) {
			struct frame *f = &fx->b.f[i];
			if (get_be16(f->head + 12) != ETH_TYPE_IP4 || f->head[23] != IPPROTO_UDP)
				continue;
			numbered_check(fx, f, at++);
			got += i < n;
		}
		q->port->ops->settle(q, &fx->b, n);
	}
	assert_int_equal(sent, got);
}

static void idle_tap_wakes_nobody(void **state)
{
	struct fixture *fx = *state;
	struct portq *q = &fx->port->q;
	unsigned ready;

	meet(fx);
	/* until the kernel has told the network that it is there */
	for (unsigned i = 0; i < 3; i++) {
		while (q->port->ops->arm(q)) {
			pull(fx, BURST_FRAMES);
			settle_all(fx);
		}
		loop_dispatch(&fx->loop, false);
	}
	while (q->port->ops->arm(q)) {
		pull(fx, BURST_FRAMES);
		settle_all(fx);
	}
	ready = fx->ready;
	assert_int_equal(send(fx->udp, "x", 1, 0), 1);
	assert_true(round_wait(fx));
	assert_int_equal(fx->ready, ready + 1);
	assert_int_equal(
		send(fx->udp, "y", 1, 0), 1); /* not armed: tells nobody, and is not lost */
	loop_dispatch(&fx->loop, false);
	assert_int_equal(fx->ready, ready + 1);
	assert_true(q->port->ops->arm(q));
	next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	settle_all(fx);
}

/* ---- to the kernel -------------------------------------------------------------------------- */

static void kernel_finishes_our_checksum(void **state)
{
	struct fixture *fx = *state;

	meet(fx);
	udp_push(fx, 1, 0, 1, 3);
	udp_expect(fx, 1, 3);
	udp_push(fx, 1400, 0, 3, 4);
	udp_expect(fx, 1400, 4);
	assert_int_equal(fx->port->q.drop_out[DROP_IO], 0);
	assert_int_equal(fx->port->q.out.notify, fx->port->q.out.bufs);
}

static void kernel_takes_udp_super_packets(void **state)
{
	struct fixture *fx = *state;
	int on = 1;

	if (!(fx->port->accepts & ACCEPT_USO4)) {
		print_message("this kernel has no USO: skipped\n");
		skip();
	}
	meet(fx);
	assert_int_equal(setsockopt(fx->udp, SOL_UDP, UDP_GRO, &on, sizeof(on)), 0);
	udp_push(fx, 60000, 1400, 15, 5);
	udp_expect(fx, 60000, 5);
	udp_push(fx, 60000, 1400, 1300, 6); /* more pieces than a writev takes */
	udp_expect(fx, 60000, 6);
	assert_int_equal(fx->port->q.drop_out[DROP_IO], 0);
}

static uint32_t tcp_make(
	struct fixture *fx, uint8_t *p, uint8_t flags, uint32_t seq, uint32_t ack, uint32_t n)
{
	eth_ip4(fx, p, IPPROTO_TCP, 40 + n);
	p += L4;
	memset(p, 0, 20);
	put_be16(p, PORT_US);
	put_be16(p + 2, PORT_KERNEL);
	put_be32(p + 4, seq);
	put_be32(p + 8, ack);
	p[12] = 5 << 4;
	p[13] = flags;
	put_be16(p + 14, 65535);
	put_be16(p + 16, pseudo(p - 20, IPPROTO_TCP, 20 + n));
	return L4 + 20 + n;
}

static void tcp_push(struct fixture *fx, uint8_t *bytes, uint32_t len, uint16_t gso_size)
{
	static struct made m;

	frame_make(&m, bytes, len, 4);
	m.f.off = (struct offload){
		.flags = OFF_NEEDS_CSUM, .csum_start = L4, .csum_off = 16, .hdr_len = L4 + 20};
	if (gso_size) {
		m.f.off.gso = OFF_GSO_TCPV4;
		m.f.off.gso_size = gso_size;
	}
	push_one(fx, &m.f);
}

static int tcp_listen(void)
{
	struct sockaddr_in here = in_addr(IP_KERNEL, PORT_KERNEL);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(s, (struct sockaddr *)&here, sizeof(here)), 0);
	assert_int_equal(listen(s, 1), 0);
	return s;
}

static void kernel_takes_tcp_super_packets(void **state)
{
	struct fixture *fx = *state;
	static uint8_t bytes[FRAME_MAX], got[60 * 1024];
	int listener = tcp_listen(), s;
	size_t have = 0;
	uint32_t ack;
	struct frame *f;

	meet(fx);
	tcp_push(fx, bytes, tcp_make(fx, bytes, 0x02, 1000, 0, 0), 0); /* SYN */
	f = next_frame(fx, ETH_TYPE_IP4, IPPROTO_TCP);
	assert_int_equal(f->head[L4 + 13], 0x12);
	ack = get_be32(f->head + L4 + 4) + 1;
	settle_all(fx);
	tcp_push(fx, bytes, tcp_make(fx, bytes, 0x10, 1001, ack, 0), 0); /* ACK */
	s = accept(listener, NULL, NULL);
	assert_true(s >= 0);
	for (unsigned i = 0; i < sizeof(got); i++)
		bytes[L4 + 20 + i] = (uint8_t)(i / 97);
	tcp_push(fx, bytes, tcp_make(fx, bytes, 0x18, 1001, ack, sizeof(got)), 1448);
	while (have < sizeof(got)) {
		struct pollfd p = {.fd = s, .events = POLLIN};
		assert_int_equal(poll(&p, 1, 3000), 1);
		ssize_t n = recv(s, got + have, sizeof(got) - have, 0);
		assert_true(n > 0);
		have += (size_t)n;
	}
	assert_memory_equal(got, bytes + L4 + 20, sizeof(got));
	close(s);
	close(listener);
}

static void refused_write_is_a_counted_drop(void **state)
{
	struct fixture *fx = *state;
	uint8_t bytes[60];
	struct made m;

	udp_make(fx, bytes, 1, 0);
	frame_make(&m, bytes, L4 + 9, 1);
	m.f.off = (struct offload){.flags = OFF_NEEDS_CSUM, .csum_start = 5000, .csum_off = 6};
	push_one(fx, &m.f);
	assert_int_equal(fx->port->q.drop_out[DROP_IO], 1);
	assert_true(fx->port->ops->arm_room(&fx->port->q, 100));
}

/* ---- link ----------------------------------------------------------------------------------- */

static void link_follows_the_interface(void **state)
{
	struct fixture *fx = *state;

	meet(fx);
	set_up("tap9", false);
	udp_push(fx, 10, 0, 1, 0);
	assert_int_equal(fx->port->q.drop_out[DROP_LINK_DOWN], 1);
	assert_int_equal(fx->link, 0); /* not from inside a call */
	loop_dispatch(&fx->loop, false);
	assert_int_equal(fx->link, 1);
	assert_false(fx->port->link);
	assert_string_equal(tap_missing(fx->port), "the interface is down");
	pull(fx, BURST_FRAMES);
	assert_int_equal(fx->b.n, 0);
	assert_false(fx->port->ops->arm(&fx->port->q));
	set_up("tap9", true);
	loop_dispatch(&fx->loop, false);
	assert_true(fx->port->link);
	assert_int_equal(fx->link, 2);
	assert_true(fx->ready > 0);
	udp_push(fx, 10, 0, 1, 9);
	udp_expect(fx, 10, 9);
}

static void what_waited_through_a_down_link_is_told(void **state)
{
	struct fixture *fx = *state;
	struct portq *q = &fx->port->q;

	/* nothing comes by itself when the link comes up */
	assert_true(testns_write("/proc/sys/net/ipv6/conf/tap9/disable_ipv6", "1"));
	meet(fx);
	assert_int_equal(send(fx->udp, "x", 1, 0), 1);
	assert_true(round_wait(fx));
	pull(fx, BURST_FRAMES);
	assert_int_equal(fx->b.n, 1);
	q->port->ops->settle(q, &fx->b, 0);
	set_up("tap9", false);
	loop_dispatch(&fx->loop, false);
	assert_false(q->port->ops->arm(q)); /* a port without link lends nothing */
	fx->ready = 0;
	set_up("tap9", true);
	loop_dispatch(&fx->loop, false);
	assert_int_equal(fx->ready, 1);
	next_frame(fx, ETH_TYPE_IP4, IPPROTO_UDP);
	settle_all(fx);
}

static void mtu_follows_the_interface(void **state)
{
	struct fixture *fx = *state;

	loop_dispatch(&fx->loop, false);
	assert_int_equal(fx->port->mtu, 1500);
	set_mtu("tap9", 9000);
	loop_dispatch(&fx->loop, false);
	assert_int_equal(fx->port->mtu, 9000);
	assert_true(fx->port->link);
}

static void link_delete(const char *ifname)
{
	union {
		struct nlmsghdr align;
		char bytes[1024];
	} buf;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf.bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

	nlh->nlmsg_type = RTM_DELLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	ifi->ifi_index = (int)if_nametoindex(ifname);
	assert_true(mnl_socket_sendto(s, nlh, nlh->nlmsg_len) > 0);
	assert_true(mnl_socket_recvfrom(s, buf.bytes, sizeof(buf.bytes)) > 0);
	mnl_socket_close(s);
}

static void deleted_interface_is_told_once(void **state)
{
	struct fixture *fx = *state;
	uint64_t rounds;

	meet(fx);
	link_delete("tap9");
	for (unsigned i = 0; i < 10 && fx->port->link; i++)
		loop_dispatch(&fx->loop, false);
	assert_false(fx->port->link);
	assert_non_null(strstr(tap_missing(fx->port), "deleted"));
	assert_int_equal(fx->logged, 1);
	rounds = fx->link;
	for (unsigned i = 0; i < 10; i++)
		loop_dispatch(&fx->loop, false);
	assert_int_equal(fx->link, rounds);
	assert_int_equal(fx->logged, 1); /* still */
}

static void deleted_between_two_writes(void **state)
{
	struct fixture *fx = *state;

	link_delete("tap9");
	udp_push(fx, 10, 0, 1, 0);
	assert_int_equal(fx->port->q.drop_out[DROP_LINK_DOWN], 1);
	pull(fx, BURST_FRAMES);
	settle_all(fx);
	loop_dispatch(&fx->loop, false);
	loop_dispatch(&fx->loop, false);
	assert_false(fx->port->link);
	assert_int_equal(fx->logged, 1);
}

/* Passed in, and as well opened by another port: both would read it. */
static void descriptor_of_a_port_is_not_taken_twice(void **state)
{
	struct fixture *fx = *state;
	struct tap_config cfg = {.ifname = "tap9"};
	struct port *twice;
	char path[64], to[64] = "";

	for (cfg.fd = 3; cfg.fd < 64 && !strstr(to, "/net/tun"); cfg.fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", cfg.fd);
		memset(to, 0, sizeof(to));
		(void)!readlink(path, to, sizeof(to) - 1);
	}
	cfg.fd--;
	assert_int_equal(tap_open(&twice, "u", &cfg, &fx->loop, &fx->log, &fx->err), -EBUSY);
	assert_non_null(strstr(fx->err.text, "process's own"));
	meet(fx); /* as before */
}

#define WITH_TAP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TAP(datagram_comes_with_its_offload_fields),
		WITH_TAP(super_packet_comes_whole),
		cmocka_unit_test_setup_teardown(
			without_csum_nothing_is_left_to_do, setup_plain, teardown),
		WITH_TAP(given_back_frames_come_again_without_a_read),
		WITH_TAP(any_order_of_settling_loses_nothing),
		WITH_TAP(idle_tap_wakes_nobody),
		WITH_TAP(kernel_finishes_our_checksum),
		WITH_TAP(kernel_takes_udp_super_packets),
		WITH_TAP(kernel_takes_tcp_super_packets),
		WITH_TAP(refused_write_is_a_counted_drop),
		WITH_TAP(link_follows_the_interface),
		WITH_TAP(what_waited_through_a_down_link_is_told),
		WITH_TAP(mtu_follows_the_interface),
		WITH_TAP(deleted_interface_is_told_once),
		WITH_TAP(deleted_between_two_writes),
		WITH_TAP(descriptor_of_a_port_is_not_taken_twice),
	};

	if (!testns_enter())
		return TESTNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
