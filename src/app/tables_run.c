/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables_run: words into one run, and what it counted into numbers. A run is a network with both of
 * its ends in this process, on one thread; it begins with a warm-up that is not counted.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_flows.h"
#include "app/bench_run.h"
#include "app/tables.h"
#include "port/copying.h"

#define PAIRS_MAX 48
#define TEXT_MAX  1024

struct pair {
	const char *key, *value;
};

struct words {
	char text[TEXT_MAX]; /* what the pairs point into */
	size_t used;
	struct pair pair[PAIRS_MAX];
	unsigned n;
};

/* A run, as it comes together. */
struct setup {
	struct words words;
	bool pktgen;
	struct bench_flows_config flows;
	struct bench_config gen;
	char knobs[TEXT_MAX]; /* of the drivers */
	char impair[200], port[200];
};

const char *tables_metric_name(enum tables_metric m)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		TABLES_METRICS(X)
#undef X
	};

	return names[m];
}

const char *tables_metric_text(enum tables_metric m)
{
	static const char *const texts[] = {
#define X(id, name, text) text,
		TABLES_METRICS(X)
#undef X
	};

	return texts[m];
}

/* ---- words ---- */

/* "a=1,b=2"; a key that is there gets the new value. False: too many, or no '='. */
static bool words_add(struct words *w, const char *text)
{
	char *at = w->text + w->used, *save = NULL, *part;
	const size_t size = strlen(text) + 1;

	if (w->used + size > sizeof(w->text))
		return false;
	memcpy(at, text, size);
	w->used += size;
	for (part = strtok_r(at, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(part, '=');
		unsigned i = 0;

		if (!eq)
			return false;
		*eq = 0;
		while (i < w->n && strcmp(w->pair[i].key, part) != 0)
			i++;
		if (i == PAIRS_MAX)
			return false;
		w->n += i == w->n;
		w->pair[i] = (struct pair){part, eq + 1};
	}
	return true;
}

static const struct {
	const char *word;
	enum flow_kind kind;
} tests[] = {
	{"PKTGEN", 0},
	{"TCP_STREAM", FLOW_SINK},
	{"TCP_MAERTS", FLOW_SOURCE},
	{"TCP_RR", FLOW_RR},
	{"UDP_STREAM", FLOW_UDP},
};

static bool set_test(struct setup *s, const char *v)
{
	for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (strcmp(tests[i].word, v) != 0)
			continue;
		s->pktgen = !tests[i].kind;
		s->flows.flow.kind = tests[i].kind;
		return true;
	}
	return false;
}

/* One of two words: false, true. */
static bool one_of(bool *flag, const char *v, const char *no, const char *yes)
{
	*flag = !strcmp(v, yes);
	return *flag || !strcmp(v, no);
}

static bool set_message(struct setup *s, const char *v)
{
	s->flows.flow.message = (uint32_t)strtoul(v, NULL, 10);
	return s->flows.flow.message > 0 && s->flows.flow.message <= BENCH_MESSAGE;
}

static bool set_size(struct setup *s, const char *v)
{
	s->gen.size = (uint32_t)strtoul(v, NULL, 10);
	return s->gen.size >= BENCH_SIZE_MIN && s->gen.size <= BENCH_SIZE_MAX;
}

static bool set_sessions(struct setup *s, const char *v)
{
	s->flows.flow.sessions = (unsigned)strtoul(v, NULL, 10);
	return s->flows.flow.sessions > 0 && s->flows.flow.sessions <= BENCH_SESSIONS;
}

static bool set_rr(struct setup *s, const char *v)
{
	s->flows.flow.request = s->flows.flow.response = (uint32_t)strtoul(v, NULL, 10);
	return s->flows.flow.request > 0 && s->flows.flow.request <= BENCH_MESSAGE;
}

static bool set_mtu(struct setup *s, const char *v)
{
	s->flows.mtu = s->gen.mtu = (uint32_t)strtoul(v, NULL, 10);
	return s->flows.mtu > 0;
}

static bool set_rcvbuf(struct setup *s, const char *v)
{
	s->flows.flow.rcvbuf = atoi(v);
	s->flows.tcp.rcvbuf = (uint32_t)s->flows.flow.rcvbuf;
	return s->flows.flow.rcvbuf > 0;
}

/* Of a buffer that grows by itself: what it begins with, what it ends with. */
static bool set_rmem(struct setup *s, const char *v)
{
	s->flows.tcp.rcvbuf = (uint32_t)strtoul(v, NULL, 10);
	return s->flows.tcp.rcvbuf > 0;
}

static bool set_rmem_max(struct setup *s, const char *v)
{
	s->flows.tcp.rcvbuf_max = (uint32_t)strtoul(v, NULL, 10);
	return s->flows.tcp.rcvbuf_max > 0;
}

static bool set_send(struct setup *s, const char *v)
{
	bool zero;

	if (!one_of(&zero, v, "copy", "zero"))
		return false;
	s->flows.flow.zero = zero ? 4096 : 0; /* page by page, as the kernel's is */
	return true;
}

static bool set_copy(struct setup *s, const char *v)
{
	/* "on+order=1+pages=2015": words of the sender's port */
	size_t at = strlen(s->port);

	if (*v == 'n') /* none */
		return true;
	at += (size_t)snprintf(s->port + at, sizeof(s->port) - at, ",copy=%s", v);
	for (char *c = s->port; *c; c++)
		if (*c == '+')
			*c = ',';
	return at < sizeof(s->port);
}

static bool set_sndbuf(struct setup *s, const char *v)
{
	s->flows.flow.sndbuf = atoi(v);
	s->flows.tcp.sndbuf = (uint32_t)s->flows.flow.sndbuf;
	return s->flows.flow.sndbuf > 0;
}

static bool set_impair(struct setup *s, const char *v)
{
	return snprintf(s->impair, sizeof(s->impair), "%s", v) < (int)sizeof(s->impair);
}

static bool set_push_at(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.push_at_mss, v, "goal", "mss");
}

static bool set_frag_chunk(struct setup *s, const char *v)
{
	s->flows.tcp.frag_chunk = (uint32_t)strtoul(v, NULL, 10);
	return s->flows.tcp.frag_chunk == 4096 || s->flows.tcp.frag_chunk == 32768;
}

static bool set_autocork(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.no_autocork, v, "on", "off");
}

static bool set_autosize(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.no_autosize, v, "on", "off");
}

static bool set_tso(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.no_tso, v, "on", "off");
}

static bool set_tsq(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.no_tsq, v, "on", "off");
}

static bool set_pacing(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.no_pacing, v, "on", "off");
}

static bool set_window(struct setup *s, const char *v)
{
	return one_of(&s->flows.tcp.win_2013, v, "modern", "2013");
}

static const struct {
	const char *key;
	bool (*set)(struct setup *, const char *);
} keys[] = {
	{"test", set_test},
	{"m", set_message},
	{"size", set_size},
	{"P", set_sessions},
	{"rr", set_rr},
	{"mtu", set_mtu},
	{"rcvbuf", set_rcvbuf},
	{"rmem", set_rmem},
	{"rmem_max", set_rmem_max},
	{"sndbuf", set_sndbuf},
	{"send", set_send},
	{"copy", set_copy},
	{"impair", set_impair},
	{"push_at", set_push_at},
	{"frag_chunk", set_frag_chunk},
	{"autocork", set_autocork},
	{"autosize", set_autosize},
	{"tso", set_tso},
	{"tsq", set_tsq},
	{"pacing", set_pacing},
	{"rcv_win_model", set_window},
};

/* What is not in the table is a knob of the drivers. */
static bool apply(struct setup *s, const struct pair *p)
{
	const size_t at = strlen(s->knobs);

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(keys[i].key, p->key))
			return keys[i].set(s, p->value);
	return snprintf(s->knobs + at, sizeof(s->knobs) - at, ",%s=%s", p->key, p->value) <
	       (int)(sizeof(s->knobs) - at);
}

/* As much for all sessions together. */
static void setup_count(struct setup *s, uint64_t count)
{
	const enum flow_kind k = s->flows.flow.kind;
	uint64_t each = count / s->flows.flow.sessions;

	if (k != FLOW_SINK && k != FLOW_SOURCE)
		each = each / TABLES_ONE + 1;
	else
		s->flows.warm_bytes = count / 2; /* slow start */
	s->flows.flow.bytes = each;
	s->gen.packets = count / TABLES_ONE + 1;
}

static int setup(struct setup *s, const struct tables_run *run, struct err *err)
{
	*s = (struct setup){.flows = {.cwd = run->cwd,
				    .net = run->net,
				    .impair = s->impair,
				    .knobs = s->knobs,
				    .port = s->port,
				    .mtu = 1500,
				    .time = run->time,
				    .warm = run->warm},
		.gen = {.cwd = run->cwd,
			.net = run->net,
			.knobs = s->knobs,
			.port = s->port,
			.size = 64,
			.mtu = 1500,
			.time = run->time,
			.warm = run->warm,
			.verify = true}};
	s->flows.flow = (struct flow_config){.kind = FLOW_SINK,
		.message = 16384,
		.request = 1,
		.response = 1,
		.sessions = 1,
		.train = 1,
		.server = {.port = BENCH_PORT}};
	ip_addr_parse_text("10.99.0.2", &s->flows.flow.server.ip);
	if (run->count) {
		s->flows.time = s->gen.time = 3600 * NSEC_PER_SEC;
		s->flows.warm = s->gen.warm = 0;
	}
	words_add(&s->words, "ring=256,memory=64M");
	for (unsigned i = 0; i < sizeof(run->words) / sizeof(*run->words); i++)
		if (run->words[i] && !words_add(&s->words, run->words[i]))
			return err_set(err, EINVAL, "tables: words: %.200s", run->words[i]);
	for (unsigned i = 0; i < s->words.n; i++)
		if (!apply(s, &s->words.pair[i]))
			return err_set(err, EINVAL, "tables: %s=%.100s", s->words.pair[i].key,
				s->words.pair[i].value);
	if (run->count)
		setup_count(s, run->count);
	return 0;
}

/* ---- numbers ---- */

static double per(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : NAN;
}

/* Short packets are copied out of their buffers; what a mechanism does is seen in the others. */
static void receiver_numbers(double *v, const struct vdrv_counters *n, uint64_t payload)
{
	const uint64_t long_ones = n->rx_packets - n->rx_copied;

	v[TABLES_RX_PACKETS] = (double)n->rx_packets;
	v[TABLES_RX_SIZE] = per(n->rx_bytes, n->rx_packets);
	v[TABLES_RX_BUFS] = per(n->rx_buffers - n->rx_copied, long_ones);
	v[TABLES_RX_FRAGS] = per(n->rx_frags, long_ones);
	v[TABLES_RX_CHAINED] = per(n->rx_chained, long_ones);
	v[TABLES_RX_TRUE] = per(n->rx_truesize, payload);
	v[TABLES_RX_NOT_FULL] = (double)n->rx_not_full;
	v[TABLES_CALLS] = per(n->calls, n->rx_packets);
}

static void sender_numbers(double *v, const struct vdrv_counters *n)
{
	v[TABLES_TX_PACKETS] = (double)n->tx_packets;
	v[TABLES_TX_DESC] = per(n->tx_desc, n->tx_packets);
	v[TABLES_TX_TABLES] = per(n->tx_indirect, n->tx_packets);
	v[TABLES_KICKS] = per(n->kicks, n->tx_packets);
}

/* What the copy in front of the sender's port did. */
static void copy_numbers(double *v, struct net *net)
{
	const struct net_port *p = TAILQ_FIRST(&net->ports);
	struct tap_copied n;
	uint64_t chunks = 0;

	if (!p || !p->copying)
		return;
	copying_count(p->copying, &n);
	for (unsigned i = 0; i < CHUNK_ORDERS; i++)
		chunks += n.fragments[i];
	v[TABLES_COPY_CHUNKS] = per(chunks, n.packets);
	v[TABLES_COPY_LONG] = n.packets > n.linear ? per(chunks, n.packets - n.linear) : 0;
	v[TABLES_COPY_FALLBACKS] = (double)n.fallbacks;
	v[TABLES_COPY_FAILURES] = (double)n.failures;
	v[TABLES_COPY_LOCKED] = (double)n.locked;
}

static void rates(struct tables_result *r, double bytes, double packets, double cpu)
{
	r->v[TABLES_MBIT] = bytes * 8 / r->seconds / 1e6;
	r->v[TABLES_CPU] = cpu;
	r->v[TABLES_MBIT_CPU] = bytes * 8 / cpu / 1e6;
	r->v[TABLES_PPS] = packets / r->seconds;
	r->v[TABLES_PPS_CPU] = packets / cpu;
	r->v[TABLES_NS] = cpu * 1e9 / packets;
}

static void flow_numbers(const struct bench_flows *b, struct tables_result *r)
{
	const enum flow_kind k = b->config.flow.kind;
	const struct bench_flows_end *to = k == FLOW_SOURCE ? &b->client : &b->server,
				     *from = k == FLOW_SOURCE ? &b->server : &b->client;
	const uint64_t bytes = bench_flows_bytes(b) - b->warm_bytes;
	const struct tcp_counters *t = &from->tcp;

	r->seconds = (double)(b->ended - b->begun) / (double)NSEC_PER_SEC;
	r->wrong = bench_flows_wrong(b);
	receiver_numbers(r->v, &to->drv.drv, bytes);
	sender_numbers(r->v, &from->drv.drv);
	rates(r, (double)bytes,
		k == FLOW_UDP ? (double)(b->server.side->packets - b->warm_packets)
			      : r->v[TABLES_RX_PACKETS],
		b->cpu);
	if (k == FLOW_RR) {
		const uint64_t n = b->client.side->exchanges - b->warm_exchanges;

		r->v[TABLES_TRANS] = (double)n / r->seconds;
		r->v[TABLES_TRANS_CPU] = (double)n / b->cpu;
		r->v[TABLES_LATENCY] = bench_hist_at(&b->client.side->hist, 0.5) / 1e3;
	}
	if (k == FLOW_UDP)
		r->v[TABLES_LOST] = (double)(b->client.side->sent_packets - b->warm_sent) -
				    (double)(b->server.side->packets - b->warm_packets);
	if (k > FLOW_SOURCE)
		return;
	r->v[TABLES_UNIT] = per(t->unit_bytes, t->unit_count);
	r->v[TABLES_RETRANS] = (double)t->retrans;
	memcpy(r->units, t->units, sizeof(r->units));
}

static int run_flows(const struct setup *s, struct tables_result *r, struct err *err)
{
	struct bench_flows *b = malloc(sizeof(*b));
	int rc;

	if (!b)
		return err_set(err, ENOMEM, "no memory");
	rc = bench_flows_init(b, &s->flows, err);
	if (rc)
		goto free_bench;
	rc = bench_flows_run(b, NULL, NULL, err);
	if (!rc) {
		flow_numbers(b, r);
		copy_numbers(r->v, &b->net);
	}
	bench_flows_fini(b);
free_bench:
	free(b);
	return rc;
}

static int run_gen(const struct setup *s, struct tables_result *r, struct err *err)
{
	struct bench *b = malloc(sizeof(*b));
	int rc;

	if (!b)
		return err_set(err, ENOMEM, "no memory");
	rc = bench_init(b, &s->gen, err);
	if (rc)
		goto free_bench;
	rc = bench_run(b, err);
	if (!rc) {
		r->seconds = (double)(b->ended - b->begun) / (double)NSEC_PER_SEC;
		r->wrong = b->check.corrupt;
		receiver_numbers(r->v, &b->rx.count.drv, b->rx.bytes);
		sender_numbers(r->v, &b->tx.count.drv);
		rates(r, (double)b->rx.bytes, (double)b->rx.packets, b->cpu);
		r->v[TABLES_LOST] = (double)(b->tx.packets - b->rx.packets);
		copy_numbers(r->v, &b->net);
	}
	bench_fini(b);
free_bench:
	free(b);
	return rc;
}

int tables_run(const struct tables_run *run, struct tables_result *r, struct err *err)
{
	struct setup *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, ENOMEM, "no memory");
	*r = (struct tables_result){.seconds = 0};
	for (unsigned i = 0; i < TABLES_METRICS_N; i++)
		r->v[i] = NAN;
	rc = setup(s, run, err);
	if (!rc)
		rc = s->pktgen ? run_gen(s, r, err) : run_flows(s, r, err);
	free(s);
	if (!rc && r->wrong)
		rc = err_set(err, EPROTO, "tables: bytes arrived that were not sent");
	return rc;
}
