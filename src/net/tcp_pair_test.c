/* SPDX-License-Identifier: BSD-2-Clause */
/* Two engines through a link: equal streams, progress, clean paths without retransmission. */
#include "net/tcp_pair_rig.h"

static struct tcp_conf pair_conf(void)
{
	return (struct tcp_conf){.cubic = true, .wscale = 0xff};
}

static uint64_t env_seed(uint64_t d)
{
	const char *env = getenv("SEED");

	return env ? strtoull(env, NULL, 0) : d;
}

static void test_clean(void **state)
{
	static const nsec_t delays[] = {2000, 50000, 1000000, 20000000};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct tcp_conf c[2] = {pair_conf(), pair_conf()};
		struct pair p;
		const struct tcp_counters *k;

		c[0].cubic = c[1].cubic = i & 1;
		pair_init(&p, c, 5);
		p.check = true;
		p.link[0].delay = p.link[1].delay = delays[i];
		p.app[0].to_send = 8 << 20;
		pair_connect(&p);
		assert_true(pair_run(&p, 100 * NSEC_PER_SEC));
		k = tcp_host_counters(p.host[0].h);
		printf("rtt %lld us: %.1f ms, mean unit %llu, %llu units, retrans %llu\n",
			(long long)delays[i] / 500, (double)(p.now - NSEC_PER_SEC) / 1e6,
			(unsigned long long)(k->unit_bytes / k->unit_count),
			(unsigned long long)k->unit_count, (unsigned long long)k->retrans);
		assert_int_equal(p.app[1].got, 8 << 20);
		assert_int_equal(k->retrans + k->rto + k->tlp, 0);
		pair_fini(&p);
	}
}

/* Both directions at once, small writes, odd sizes. */
static void test_both_ways(void **state)
{
	struct tcp_conf c[2] = {pair_conf(), pair_conf()};
	struct pair p;

	(void)state;
	pair_init(&p, c, 6);
	p.check = true;
	p.link[0].delay = p.link[1].delay = 100000;
	p.app[0].to_send = 3000001;
	p.app[1].to_send = 2000003;
	p.app[0].write_size = 777;
	p.app[1].write_size = 4096;
	pair_connect(&p);
	assert_true(pair_run(&p, 100 * NSEC_PER_SEC));
	assert_int_equal(p.app[1].got, p.app[0].to_send);
	assert_int_equal(p.app[0].got, p.app[1].to_send);
	assert_int_equal(p.host[0].h->c.retrans + p.host[1].h->c.retrans, 0);
	pair_fini(&p);
}

/* Across the end of the sequence numbers; SOAK=GiB for a long one. */
static void test_wrap(void **state)
{
	const char *soak = getenv("SOAK");
	struct tcp_conf c[2] = {pair_conf(), pair_conf()};
	struct pair p;
	struct tcp *t;

	(void)state;
	pair_init(&p, c, 8);
	p.link[0].delay = p.link[1].delay = 50000;
	p.link[0].loss = 2;
	p.app[0].to_send = soak ? strtoull(soak, NULL, 0) << 30 : 16 << 20;
	pair_connect(&p);
	t = p.app[0].t;
	t->iss = t->snd_una = t->snd_wl2 = t->pushed_seq = 0u - 5000000;
	t->snd_nxt = t->write_seq = t->iss + 1;
	assert_true(pair_run(&p, 4000 * NSEC_PER_SEC));
	assert_true(p.app[1].got == p.app[0].to_send);
	pair_fini(&p);
}

/* Random trouble of every kind in both modes: the streams are equal and end. */
static void test_fuzz(void **state)
{
	uint64_t seed = env_seed(0), last = seed ? seed : 60;

	(void)state;
	for (seed = seed ? seed : 1; seed <= last; seed++) {
		struct tcp_conf c[2] = {pair_conf(), pair_conf()};
		struct pair p;
		struct rand r;

		rand_init(&r, seed);
		for (unsigned i = 0; i < 2; i++) {
			c[i].cubic = rand_below(&r, 2);
			c[i].no_sack = rand_below(&r, 4) == 0;
			c[i].no_ts = rand_below(&r, 4) == 0;
			c[i].no_ws = rand_below(&r, 4) == 0;
			c[i].no_tso = rand_below(&r, 4) == 0;
			c[i].ecn = rand_below(&r, 2);
			c[i].mtu = 576 + rand_below(&r, 9000);
			c[i].rcvbuf = 4096 + rand_below(&r, 1 << 18);
			c[i].win_2013 = rand_below(&r, 4) == 0;
		}
		pair_init(&p, c, seed);
		p.check = true;
		for (unsigned i = 0; i < 2; i++) {
			p.link[i].delay = 1000 + rand_below(&r, 20000000);
			p.link[i].loss = rand_below(&r, 2) ? rand_below(&r, 1000) : 0;
			p.link[i].dup = rand_below(&r, 300);
			p.link[i].reorder = rand_below(&r, 600);
			p.link[i].reorder_by = rand_below(&r, 10000000);
			p.link[i].super = rand_below(&r, 2);
			if (rand_below(&r, 2)) {
				p.link[i].rate = 100000 + rand_below(&r, 10000000);
				p.link[i].limit = 70000 + rand_below(&r, 300000);
			}
			p.app[i].to_send = rand_below(&r, 400000);
			p.app[i].write_size = 1 + rand_below(&r, 60000);
		}
		pair_connect(&p);
		if (!pair_run(&p, 4000 * NSEC_PER_SEC))
			fail_msg("SEED=%llu: no end: %llu of %llu and %llu of %llu at %.1f s",
				(unsigned long long)seed, (unsigned long long)p.app[1].got,
				(unsigned long long)p.app[0].to_send,
				(unsigned long long)p.app[0].got,
				(unsigned long long)p.app[1].to_send, (double)p.now / 1e9);
		pair_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
