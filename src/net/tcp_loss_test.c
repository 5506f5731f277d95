/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss and its repair: traces of fast recovery, loss probe and timer; chosen and random victims on a
 * link, whole units and single segments; throughput against loss. [RFC 5681, 6582, 6675, 6937, 8985]
 */
#include "net/tcp_pair_rig.h"

static struct tcp *ready(struct rig *r, const char *synack)
{
	struct tcp *t = rig_connect(r, synack);

	t->cc.cwnd = 20000;
	return t;
}

/* The third granule of a unit is missing: three later ones are known, it goes again, alone. */
static void test_sack_hole(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = ready(&r, "S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>");
	rig_send(&r, t, 10000, 0);
	rig_out(&r, "P. 1:10001(10000) ack 1");
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 2001 <sack 3001-4001>");
	rig_quiet(&r);
	rig_in(&r, ". 1:1(0) ack 2001 <sack 3001-6001>");
	rig_out(&r, ". 2001:3001(1000) ack 1");
	assert_int_equal(t->busy->loss.ca, TCP_CA_RECOVERY);
	rig_in(&r, ". 1:1(0) ack 2001 <sack 3001-10001>");
	rig_quiet(&r);
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 10001");
	rig_quiet(&r);
	assert_int_equal(t->busy->loss.ca, TCP_CA_OPEN);
	assert_int_equal(r.x.h->txseg_live, 0);
	assert_int_equal(t->busy->retrans, 1);
	rig_end(&r, t);
}

/* Without SACK: the third duplicate; each partial ACK names the next hole. */
static void test_newreno(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = ready(&r, "S. 0:0(0) ack 1 win 65535 <mss 1000>");
	rig_send(&r, t, 8000, 0);
	rig_out(&r, "P. 1:8001(8000) ack 1");
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 1");
	rig_in(&r, ". 1:1(0) ack 1");
	rig_quiet(&r);
	rig_in(&r, ". 1:1(0) ack 1");
	rig_out(&r, ". 1:1001(1000) ack 1");
	rig_quiet(&r);
	rig_in(&r, ". 1:1(0) ack 4001");
	rig_out(&r, ". 4001:5001(1000) ack 1");
	rig_in(&r, ". 1:1(0) ack 8001");
	rig_quiet(&r);
	assert_int_equal(t->busy->loss.ca, TCP_CA_OPEN);
	assert_int_equal(t->busy->rto_count, 0);
	rig_end(&r, t);
}

/* The tail is lost: a probe after two round trips, its SACK shows the rest. [RFC 8985 7] */
static void test_tail(void **state)
{
	struct rig r;
	struct tcp *t;
	nsec_t was;

	(void)state;
	rig_init(&r, NULL);
	t = ready(&r, "S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>");
	rig_send(&r, t, 8000, 0);
	rig_out(&r, "P. 1:8001(8000) ack 1");
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 5001");
	was = r.now;
	rig_quiet(&r);
	rig_wait(&r, NSEC_PER_SEC);
	assert_true(r.now - was <= 3 * NSEC_PER_MSEC);
	rig_out(&r, "P. 7001:8001(1000) ack 1");
	rig_quiet(&r);
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 5001 <sack 7001-8001>");
	if (!rig_take(&r)) { /* reordering might still be the reason: a quarter of a round trip */
		rig_wait(&r, NSEC_PER_MSEC);
		assert_true(rig_take(&r));
	}
	assert_string_equal(r.text, ". 5001:7001(2000) ack 1");
	r.now += NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 8001");
	assert_int_equal(t->busy->rto_count, 0);
	rig_end(&r, t);
}

/* Nothing comes back: the timer, doubled each time, everything again from the front. */
static void test_rto(void **state)
{
	struct rig r;
	struct tcp *t;
	nsec_t was, gap = 0;

	(void)state;
	rig_init(&r, NULL);
	t = ready(&r, "S. 0:0(0) ack 1 win 65535 <mss 500>");
	rig_send(&r, t, 1500, 0);
	rig_out(&r, "P. 1:1501(1500) ack 1");
	for (unsigned i = 0; i < 4; i++) {
		was = r.now;
		do
			rig_wait(&r, 20 * NSEC_PER_SEC);
		while (!rig_take(&r));
		assert_string_equal(r.text, ". 1:501(500) ack 1");
		assert_true(gap == 0 || r.now - was == 2 * gap);
		gap = r.now - was;
		rig_quiet(&r);
	}
	assert_int_equal(t->cc.cwnd, 500);
	rig_in(&r, ". 1:1(0) ack 501");
	rig_out(&r, "P. 501:1501(1000) ack 1");
	rig_in(&r, ". 1:1(0) ack 1501");
	rig_quiet(&r);
	rig_end(&r, t);
}

/* Blocks of liars: reversed, never sent, below what is acknowledged, half a granule. */
static void test_sack_lies(void **state)
{
	struct rig r;
	struct tcp *t;

	(void)state;
	rig_init(&r, NULL);
	t = ready(&r, "S. 0:0(0) ack 1 win 65535 <mss 1000,sackOK>");
	rig_send(&r, t, 5000, 0);
	rig_out(&r, "P. 1:5001(5000) ack 1");
	rig_in(&r, ". 1:1(0) ack 1 <sack 3001-2001 4001-9001>");
	rig_in(&r, ". 1:1(0) ack 1 <sack 3000000000-3000001000>");
	rig_in(&r, ". 1:1(0) ack 1 <sack 2002-3000 1501-2500>");
	assert_int_equal(t->busy->loss.sacked, 0);
	assert_int_equal(r.x.h->c.sack_ignored, 2);
	rig_in(&r, ". 1:1(0) ack 1 <sack 2002-4500>"); /* one whole granule */
	assert_int_equal(t->busy->loss.sacked, 1000);
	rig_end(&r, t);
}

/* The timer was too early: timestamps say that the first ones arrived. [RFC 4015] */
static void test_eifel(void **state)
{
	struct rig r;
	struct tcp *t;
	uint32_t cwnd;

	(void)state;
	rig_init(&r, NULL);
	t = ready(&r, "S. 0:0(0) ack 1 win 65535 <mss 1012,sackOK,ts 10>");
	rig_send(&r, t, 5000, 0);
	rig_out(&r, "P. 1:5001(5000) ack 1");
	cwnd = t->cc.cwnd;
	for (unsigned i = 0; t->busy->rto_count == 0 && i < 20; i++) {
		rig_wait(&r, NSEC_PER_SEC);
		while (rig_take(&r))
			;
	}
	assert_int_equal(t->busy->loss.ca, TCP_CA_LOSS);
	r.tsecr = t->busy->loss.undo_ts - 250; /* of the first transmission */
	r.now += 5 * NSEC_PER_MSEC;
	rig_in(&r, ". 1:1(0) ack 2001 <ts 11>");
	assert_int_equal(t->busy->loss.ca, TCP_CA_OPEN);
	assert_true(t->cc.cwnd >= cwnd);
	assert_int_equal(r.x.h->c.spurious, 1);
	rig_quiet(&r); /* nothing else is sent again */
	rig_end(&r, t);
}

/* ---- on a link ---- */

struct victim {
	uint32_t at; /* bytes after the first */
	unsigned times;
	bool have, super;
	uint32_t base;
};

static bool kill_victim(void *arg, const struct tcp_out *o, uint32_t seq)
{
	struct victim *v = arg;
	uint32_t seg = o->gso_size != 0 && !v->super ? o->gso_size : o->len;

	if (!v->have && o->len > 0) {
		v->have = true;
		v->base = seq;
	}
	if (v->times == 0 || o->len == 0 || v->base + v->at - seq >= seg)
		return false;
	v->times--;
	return true;
}

/* One segment lost once, twice, thrice; the last one; a whole unit: never a timeout. */
static void test_victims(void **state)
{
	static const uint32_t at[] = {40000, 1500000, 3999990};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned times = 1; times <= 3; times++) {
			for (unsigned super = 0; super < 2; super++) {
				struct tcp_conf c[2] = {{.cubic = true}, {.cubic = true}};
				struct victim v = {.at = at[i], .times = times, .super = super};
				struct pair p;

				pair_init(&p, c, 3);
				p.check = true;
				p.link[0].delay = p.link[1].delay = 5 * NSEC_PER_MSEC;
				p.link[0].super = super;
				p.link[0].drop = kill_victim;
				p.link[0].drop_arg = &v;
				p.app[0].to_send = 4000000;
				pair_connect(&p);
				assert_true(pair_run(&p, 100 * NSEC_PER_SEC));
				assert_int_equal(v.times, 0);
				if (getenv("TRACE"))
					printf("victim %u times %u super %u: rto %llu\n", at[i],
						times, super,
						(unsigned long long)p.host[0].h->c.rto);
				/* a lone tail, and the end without new data, have the timer only */
				if (times == 1 || (i < 2 && times == 2))
					assert_int_equal(p.host[0].h->c.rto, 0);
				pair_fini(&p);
			}
		}
	}
}

/* Reordering by less than a quarter of a round trip costs no retransmission once it is known. */
static void test_reordering(void **state)
{
	struct tcp_conf c[2] = {{.cubic = true}, {.cubic = true}};
	struct pair p;

	(void)state;
	pair_init(&p, c, 9);
	p.check = true;
	p.link[0].delay = p.link[1].delay = 10 * NSEC_PER_MSEC;
	p.link[0].rate = 20000000;
	p.link[0].reorder = 500;
	p.link[0].reorder_by = 4 * NSEC_PER_MSEC;
	p.app[0].to_send = 8 << 20;
	pair_connect(&p);
	assert_true(pair_run(&p, 100 * NSEC_PER_SEC));
	printf("reordering: %.1f s, %llu retransmissions, %llu spurious\n",
		(double)(p.now - NSEC_PER_SEC) / 1e9, (unsigned long long)p.host[0].h->c.retrans,
		(unsigned long long)p.host[0].h->c.spurious);
	assert_true(p.host[0].h->c.retrans <= 20);
	pair_fini(&p);
}

static bool too_long(void *arg, const struct tcp_out *o, uint32_t seq)
{
	(void)seq;
	return (o->gso_size != 0 ? o->gso_size : o->len) > *(const uint32_t *)arg;
}

/* The path takes short segments only and nobody tells: found out, and all arrives. [RFC 4821] */
static void test_black_hole(void **state)
{
	struct tcp_conf c[2] = {{.cubic = true}, {.cubic = true}};
	uint32_t most = 1300;
	struct pair p;

	(void)state;
	pair_init(&p, c, 4);
	p.check = true;
	p.link[0].delay = p.link[1].delay = NSEC_PER_MSEC;
	p.link[0].drop = too_long;
	p.link[0].drop_arg = &most;
	p.app[0].to_send = 500000;
	pair_connect(&p);
	assert_true(pair_run(&p, 60 * NSEC_PER_SEC));
	assert_true(p.host[0].h->c.black_holes > 0);
	assert_true(p.app[0].t->mss <= most);
	pair_fini(&p);
}

/* We are not run for 50 ms: nothing is sent twice for it. */
static void test_descheduled(void **state)
{
	struct tcp_conf c[2] = {{.cubic = true}, {.cubic = true}};
	struct pair p;

	(void)state;
	pair_init(&p, c, 9);
	p.check = true;
	p.link[0].delay = p.link[1].delay = 20 * NSEC_PER_USEC;
	p.link[0].rate = 1000000000;
	p.app[0].to_send = 24 << 20;
	pair_connect(&p);
	for (unsigned i = 0; i < 8 && !pair_done(&p); i++) {
		pair_run(&p, 3 * NSEC_PER_MSEC);
		p.now += 50 * NSEC_PER_MSEC;
	}
	assert_true(pair_run(&p, 100 * NSEC_PER_SEC));
	printf("descheduled: %llu retransmissions, %llu probes\n",
		(unsigned long long)p.host[0].h->c.retrans, (unsigned long long)p.host[0].h->c.tlp);
	assert_int_equal(p.host[0].h->c.retrans, 0);
	pair_fini(&p);
}

/*
 * Throughput against loss, kept: kB/s over 1 Gbit/s, 20 ms there and back, a queue of 4 MiB. Mathis' formula
 * is the yardstick, MSS / RTT * 1.22 / sqrt(p), what stands here the memory: a tenth less is a defect, a
 * tenth more wants a new table (TABLE=1 prints it).
 */
static const struct {
	unsigned loss; /* of 10000 */
	double root;
	unsigned kept[2][2]; /* newreno, cubic; wire segments, whole units */
} table[] = {
	{0, 0, {{24376, 24376}, {24376, 24376}}},
	{10, 0.031623, {{3519, 21003}, {7668, 22359}}},
	{50, 0.070711, {{1601, 21003}, {2456, 22359}}},
	{100, 0.1, {{1147, 20383}, {1552, 22359}}},
	{200, 0.141421, {{682, 713}, {1148, 846}}},
	{500, 0.223607, {{345, 359}, {532, 622}}},
	{1000, 0.316228, {{217, 231}, {340, 326}}},
	{2000, 0.447214, {{115, 97}, {150, 280}}},
	{3000, 0.547723, {{27, 26}, {105, 43}}},
};

static unsigned throughput(unsigned loss, double root, bool cubic, bool super)
{
	struct tcp_conf c[2] = {{.cubic = cubic}, {.cubic = cubic}};
	const double mathis = root > 0 ? 1448 / 0.02 * 1.22 / root : 0;
	const struct tcp_counters *k;
	struct pair p;
	double got;

	pair_init(&p, c, 11);
	p.link[0].delay = p.link[1].delay = 10 * NSEC_PER_MSEC;
	p.link[0].rate = 125000000;
	p.link[0].limit = 4 << 20;
	p.link[0].loss = loss;
	p.link[0].super = super;
	p.app[0].to_send = loss >= 1000 ? 1 << 19 : loss >= 200 ? 2 << 20 : 6 << 20;
	pair_connect(&p);
	assert_true(pair_run(&p, 4000 * NSEC_PER_SEC));
	assert_true(p.app[1].got == p.app[0].to_send);
	got = (double)p.app[1].got / ((double)(p.now - NSEC_PER_SEC) / 1e9);
	k = tcp_host_counters(p.host[0].h);
	printf("%s, loss %5.2f %% of %s: %9.0f kB/s, Mathis %9.0f, retrans %llu, rto %llu, tlp "
	       "%llu\n",
		cubic ? "cubic" : "newreno", loss / 100.0, super ? "units" : "segments", got / 1e3,
		mathis / 1e3, (unsigned long long)k->retrans, (unsigned long long)k->rto,
		(unsigned long long)k->tlp);
	if (loss > 0 && loss <= 100) {
		assert_true(got >= 0.7 * mathis);
		assert_true(super || k->rto <= 2);
	}
	pair_fini(&p);
	return (unsigned)(got / 1e3);
}

static void test_throughput(void **state)
{
	bool print = getenv("TABLE") != NULL;

	(void)state;
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned got[4];

		for (unsigned j = 0; j < 4; j++) {
			unsigned kept = table[i].kept[j / 2][j % 2];

			got[j] = throughput(table[i].loss, table[i].root, j / 2, j % 2);
			if (!print)
				assert_in_range(got[j], kept - kept / 10, kept + kept / 10);
		}
		if (print)
			printf("\t{%u, %.6g, {{%u, %u}, {%u, %u}}},\n", table[i].loss,
				table[i].root, got[0], got[1], got[2], got[3]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sack_hole),
		cmocka_unit_test(test_newreno),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_rto),
		cmocka_unit_test(test_sack_lies),
		cmocka_unit_test(test_eifel),
		cmocka_unit_test(test_victims),
		cmocka_unit_test(test_reordering),
		cmocka_unit_test(test_black_hole),
		cmocka_unit_test(test_descheduled),
		cmocka_unit_test(test_throughput),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
