/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow_word: options of the benchmarks of flows into a configuration; sums into JSON, and that
 * into text.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_flows.h"
#include "app/bench_opt.h"

static const struct {
	const char *word;
	enum flow_kind kind;
} kinds[] = {
	{"server", 0},
	{"tcp_stream", FLOW_SINK},
	{"tcp_maerts", FLOW_SOURCE},
	{"tcp_rr", FLOW_RR},
	{"tcp_crr", FLOW_CRR},
	{"udp_stream", FLOW_UDP},
	{"udp_rr", FLOW_UDP_RR},
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

static unsigned kind_of(const char *word)
{
	unsigned i = 0;

	while (i < N_KINDS && strcmp(word, kinds[i].word) != 0)
		i++;
	return i;
}

bool bench_is_flow(const char *word)
{
	return kind_of(word) < N_KINDS;
}

/* ---- options ---- */

static int option_peer(struct cmd_call *call, struct bench_flows_config *c)
{
	unsigned ip;
	const char *text = call->opt[OPT_HOST];

	if (bench_choice(call, OPT_IP, &ip))
		return -EINVAL;
	if (text && !c->via)
		return err_set(&call->err, EINVAL,
			"bench: --host %.60s needs --via PORT: without, both ends are here", text);
	if (!text)
		text = ip ? "fd99::2" : "10.99.0.2";
	c->flow.server.port = BENCH_PORT;
	if (!ip_addr_parse_text(text, &c->flow.server.ip))
		return err_set(
			&call->err, EINVAL, "bench: --host %.60s: must be an IP address", text);
	return 0;
}

static int option_rr_size(struct cmd_call *call, struct bench_flows_config *c)
{
	const char *text = call->opt[OPT_RR_SIZE] ? call->opt[OPT_RR_SIZE] : "1,1";
	unsigned long a, b;
	char *end;

	a = b = strtoul(text, &end, 10);
	if (*end == ',')
		b = strtoul(end + 1, &end, 10);
	if (*end || !a || !b || a > BENCH_MESSAGE || b > BENCH_MESSAGE)
		return err_set(&call->err, EINVAL,
			"bench: --rr-size %.60s: must be bytes from 1 to %u, such as 64 or 64,1000",
			text, BENCH_MESSAGE);
	if (c->flow.kind == FLOW_UDP_RR && (a > 65507 || a != b))
		return err_set(&call->err, EINVAL,
			"bench: --rr-size %.60s: udp_rr sends back what came, at most 65507 bytes",
			text);
	c->flow.request = (uint32_t)a;
	c->flow.response = (uint32_t)b;
	return 0;
}

/* A datagram that fits the MTU, unless told otherwise. */
static int option_message(struct cmd_call *call, struct bench_flows_config *c)
{
	const bool udp = c->flow.kind == FLOW_UDP;
	const uint32_t head = ip_addr_is4(&c->flow.server.ip) ? 28 : 48;
	uint32_t otherwise = 131072, train;

	if (udp)
		otherwise = c->mtu > 65535 - 48 + head ? 65507 - 20 : c->mtu - head;
	if (bench_number(call, OPT_MESSAGE, udp ? FLOW_UDP_HEAD : 1, udp ? 65507 : BENCH_MESSAGE,
		    &c->flow.message, otherwise) ||
		bench_number(call, OPT_TRAIN, 1, 64, &train, 1))
		return -EINVAL;
	if (train * c->flow.message > 65507 - 20 && train > 1)
		return err_set(&call->err, EINVAL,
			"bench: --train %u: of datagrams of %u bytes at most %u are one packet",
			train, c->flow.message, (65507 - 20) / c->flow.message);
	c->flow.train = train;
	return 0;
}

static int option_tcp(struct cmd_call *call, struct tcp_conf *t)
{
	unsigned push, chunk, cork, size, tso, tsq, win, cc;
	uint32_t timewait;

	if (bench_choice(call, OPT_PUSH_AT, &push) || bench_choice(call, OPT_FRAG_CHUNK, &chunk) ||
		bench_choice(call, OPT_AUTOCORK, &cork) ||
		bench_choice(call, OPT_AUTOSIZE, &size) || bench_choice(call, OPT_TSO, &tso) ||
		bench_choice(call, OPT_TSQ, &tsq) || bench_choice(call, OPT_WIN, &win) ||
		bench_choice(call, OPT_CC, &cc) ||
		bench_number(call, OPT_TIMEWAIT, 1, 3600, &timewait, 60))
		return -EINVAL;
	t->push_at_mss = push;
	t->frag_chunk = chunk ? 4096 : 32768;
	t->no_autocork = cork;
	t->no_autosize = size;
	t->no_tso = tso;
	t->no_tsq = tsq;
	t->win_2013 = win;
	t->cubic = cc;
	t->timewait = timewait * NSEC_PER_SEC;
	return 0;
}

/* "delay=1ms+loss=1%+rate=1G+seed=5" */
static int option_impair(
	struct cmd_call *call, struct bench_flows_config *c, char *text, size_t size)
{
	static const struct {
		unsigned opt;
		const char *key, *unit;
	} words[] = {{OPT_DELAY, "delay", ""}, {OPT_LOSS, "loss", "%"}, {OPT_RATE, "rate", ""},
		{OPT_SEED, "seed", ""}};
	size_t at = 0;

	*text = 0;
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const char *value = call->opt[words[i].opt];

		if (!value)
			continue;
		if (c->via)
			return err_set(&call->err, EINVAL,
				"bench: %s is of the network in this process; with --via the "
				"network "
				"has impair=",
				call->cmd->opt[words[i].opt].name);
		if (strchr(value, ',') || strchr(value, '+') || strlen(value) > 40)
			return err_set(&call->err, EINVAL, "bench: %s %.60s: must be one value",
				call->cmd->opt[words[i].opt].name, value);
		at += (size_t)snprintf(text + at, size - at, "%s%s=%s%s", at ? "+" : "",
			words[i].key, value, strchr(value, '%') ? "" : words[i].unit);
	}
	c->impair = text;
	return 0;
}

static int options(struct cmd_call *call, struct bench_flows_config *c, char *impair, size_t size)
{
	uint32_t sndbuf, rcvbuf, count, sessions;
	unsigned threads;

	c->flow.kind = kinds[kind_of(call->arg[0])].kind;
	c->via = call->opt[OPT_VIA];
	c->serve = !c->flow.kind;
	c->addr = call->opt[OPT_ADDR];
	if (c->serve && !c->via)
		return err_set(&call->err, EINVAL,
			"bench: server needs --via PORT, where clients come from");
	if (c->addr && !c->via)
		return err_set(&call->err, EINVAL,
			"bench: --addr needs --via PORT: without, both ends are here");
	if (call->opt[OPT_SIZE] || call->opt[OPT_PACKETS] || call->opt[OPT_TO] ||
		call->opt[OPT_VERIFY] || call->opt[OPT_ECHO])
		return err_set(&call->err, EINVAL,
			"bench: --size, --packets, --to, --verify and --echo are of pktgen; %s "
			"has -m and --count, and verifies always",
			call->arg[0]);
	if (!c->addr)
		c->addr = c->serve ? "10.99.0.2/24+fd99::2/64" : "10.99.0.1/24+fd99::1/64";
	if (bench_number(call, OPT_MTU, ETH_MTU_MIN, ETH_MTU_MAX, &c->mtu, 1500) ||
		bench_number(call, OPT_SESSIONS, 1, BENCH_SESSIONS, &sessions, 1) ||
		bench_number(call, OPT_COUNT, 1, UINT32_MAX, &count, 1) ||
		bench_number(call, OPT_SNDBUF, 4096, 1 << 30, &sndbuf, 4096) ||
		bench_number(call, OPT_RCVBUF, 4096, 1 << 30, &rcvbuf, 4096) ||
		bench_time(call, &c->time) || bench_choice(call, OPT_THREADS, &threads) ||
		option_peer(call, c) || option_rr_size(call, c) || option_message(call, c) ||
		option_tcp(call, &c->tcp) || option_impair(call, c, impair, size))
		return -EINVAL;
	c->flow.sessions = sessions;
	c->flow.bytes = call->opt[OPT_COUNT] ? count : 0;
	c->flow.sndbuf = call->opt[OPT_SNDBUF] ? (int)sndbuf : 0;
	c->flow.rcvbuf = call->opt[OPT_RCVBUF] ? (int)rcvbuf : 0;
	c->tcp.sndbuf = (uint32_t)c->flow.sndbuf; /* of the other end, too, if it is here */
	c->tcp.rcvbuf = (uint32_t)c->flow.rcvbuf;
	if (!call->opt[OPT_TIME] && (c->flow.bytes || c->serve))
		c->time = 86400 * NSEC_PER_SEC;
	if (threads && c->via)
		return err_set(&call->err, EINVAL,
			"bench: --threads 3 is for both ends and the network in this process; with "
			"--via "
			"each program has its own");
	c->threads = threads ? 3 : 1;
	return 0;
}

/* ---- results ---- */

static void set_num(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void set_real(json_t *o, const char *key, double x)
{
	json_object_set_new(o, key, json_real(x));
}

static void set_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, json_string(text));
}

static json_t *json_knobs(const struct bench_flows *b)
{
	const struct bench_flows_config *c = &b->config;
	const struct bench_flows_end *end = b->client.side ? &b->client : &b->server;
	const struct tcp_conf *t = &c->tcp;
	json_t *o = end->host.nic ? show_knobs(&end->host.spec) : json_object();

	set_text(o, "push_at", t->push_at_mss ? "mss" : "goal");
	set_num(o, "frag_chunk", t->frag_chunk);
	set_text(o, "autocork", t->no_autocork ? "off" : "on");
	set_text(o, "autosize", t->no_autosize ? "off" : "on");
	set_text(o, "tso", t->no_tso ? "off" : "on");
	set_text(o, "tsq", t->no_tsq ? "off" : "on");
	set_text(o, "rcv_win_model", t->win_2013 ? "2013" : "modern");
	set_text(o, "cc", t->cubic ? "cubic" : "newreno");
	set_num(o, "timewait", (uint64_t)(t->timewait / NSEC_PER_SEC));
	set_num(o, "timewaits_max", t->timewaits ? t->timewaits : TCP_TIMEWAITS);
	set_num(o, "sndbuf", t->sndbuf);
	set_num(o, "rcvbuf", t->rcvbuf);
	set_text(o, "impair", c->impair);
	return o;
}

/* One host: what its TCP and its stack counted, if not 0, and its driver. */
static json_t *json_end(const struct bench_flows_end *end)
{
	json_t *o = json_object(), *tcp = json_object(), *stack = json_object();

#define X(name)                                                                                    \
	if (end->tcp.name)                                                                         \
		set_num(tcp, #name, end->tcp.name);
	TCP_COUNTERS(X)
#undef X
#define X(name)                                                                                    \
	if (end->stack.name)                                                                       \
		set_num(stack, #name, end->stack.name);
	STACK_COUNTERS(X)
#undef X
	json_object_set_new(o, "tcp", tcp);
	json_object_set_new(o, "stack", stack);
	if (end->host.nic)
		json_object_set_new(o, "driver", show_driver(&end->drv));
	return o;
}

/* Sizes of units sent, by powers of two: {"65536": 12} is 12 of more than 32768 - 1. */
static void json_units(json_t *o, const struct tcp_counters *t)
{
	json_t *units = json_object();
	char name[16];

	for (unsigned i = 0; i < TCP_UNITS; i++) {
		if (!t->units[i])
			continue;
		snprintf(name, sizeof(name), "%u", 1u << i);
		set_num(units, name, t->units[i]);
	}
	json_object_set_new(o, "units_below", units);
	set_real(o, "mean_unit", t->unit_count ? (double)t->unit_bytes / (double)t->unit_count : 0);
}

static void json_latency(json_t *o, const char *name, const struct bench_hist *h)
{
	static const struct {
		const char *name;
		double part;
	} parts[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
	json_t *us = json_object();

	if (h->n) {
		set_real(us, "min", (double)h->min / 1e3);
		set_real(us, "mean", (double)h->sum / (double)h->n / 1e3);
	}
	for (unsigned i = 0; h->n && i < sizeof(parts) / sizeof(*parts); i++)
		set_real(us, parts[i].name, bench_hist_at(h, parts[i].part) / 1e3);
	if (h->n)
		set_real(us, "max", (double)h->max / 1e3);
	json_object_set_new(o, name, us);
}

static void json_flow(json_t *o, const struct bench_flows *b, double sec)
{
	const enum flow_kind k = b->config.flow.kind;
	const struct flow_side *client = b->client.side;
	const struct bench_flows_end *sender = k == FLOW_SOURCE ? &b->server : &b->client;

	if (k == FLOW_RR || k == FLOW_CRR || k == FLOW_UDP_RR) {
		set_num(o, "request", b->config.flow.request);
		set_num(o, "response", b->config.flow.response);
		set_num(o, "transactions", client->exchanges);
		set_real(o, "transactions_per_second",
			sec > 0 ? (double)client->exchanges / sec : 0);
		json_latency(o, "latency_us", &client->hist);
	}
	if (k == FLOW_UDP) {
		const uint64_t got = b->server.side ? b->server.side->packets : client->packets;

		set_num(o, "train", b->config.flow.train);
		set_num(o, "sent", client->sent_packets);
		set_num(o, "received", got);
		set_num(o, "lost", client->sent_packets - got);
		set_real(o, "sent_gbit_per_second",
			sec > 0 ? (double)client->sent * 8 / sec / 1e9 : 0);
	}
	if (k == FLOW_SINK || k == FLOW_SOURCE)
		set_num(o, "message", b->config.flow.message);
	if (k <= FLOW_CRR && sender->side) {
		json_units(o, &sender->tcp);
		set_num(o, "retransmissions", b->client.tcp.retrans + b->server.tcp.retrans);
	}
}

static void json_thread(json_t *o, const char *name, int cpu, double seconds)
{
	json_t *t = json_object();

	set_num(t, "cpu", (uint64_t)cpu);
	set_real(t, "cpu_seconds", seconds);
	json_object_set_new(o, name, t);
}

/* Where each thread ran, and what bare descriptors take between the two hosts' CPUs. */
static void json_threads(json_t *o, const struct bench_flows *b)
{
	json_t *threads = json_object();
	const double p50 = bench_hist_at(&b->pingpong, 0.5);
	char text[80];

	json_thread(threads, "client", b->place.client, b->client_cpu);
	json_thread(threads, "network", b->place.network, b->network_thread.cpu_seconds);
	json_thread(threads, "server", b->place.server, b->server_thread.cpu_seconds);
	json_object_set_new(o, "threads", threads);
	snprintf(text, sizeof(text), "client on CPU %d, network %d, server %d", b->place.client,
		b->place.network, b->place.server);
	set_text(o, "placement", text);
	if (!b->pingpong.n)
		return;
	json_latency(o, "pingpong_us", &b->pingpong);
	set_real(o, "of_pingpong", p50 > 0 ? bench_hist_at(&b->client.side->hist, 0.5) / p50 : 0);
}

static json_t *json_all(const struct bench_flows *b, const char *word)
{
	const double sec = (double)(b->ended - b->begun) / (double)NSEC_PER_SEC;
	const double bytes = (double)bench_flows_bytes(b);
	const struct flow_side *side = b->client.side ? b->client.side : b->server.side;
	char host[IP_ADDR_TEXT];
	json_t *o = json_object();

	ip_addr_build_text(&b->config.flow.server.ip, host);
	set_text(o, "benchmark", word);
	set_text(o, "host", b->config.serve ? "" : host);
	set_text(o, "via", b->config.via ? b->config.via : "");
	set_num(o, "mtu", b->config.mtu);
	set_num(o, "sessions", b->config.flow.sessions);
	set_real(o, "seconds", sec);
	set_num(o, "bytes", bench_flows_bytes(b));
	set_num(o, "wrong", bench_flows_wrong(b));
	set_num(o, "failed", side->failed);
	set_real(o, "gbit_per_second", sec > 0 ? bytes * 8 / sec / 1e9 : 0);
	set_real(o, "cpu_seconds", b->cpu);
	set_real(o, "cpu_seconds_per_gb", bytes > 0 ? b->cpu / bytes * 1e9 : 0);
	if (b->client.side)
		json_flow(o, b, sec);
	if (b->config.threads == 3)
		json_threads(o, b);
	json_object_set_new(o, "knobs", json_knobs(b));
	if (b->client.side)
		json_object_set_new(o, "client", json_end(&b->client));
	if (b->server.side)
		json_object_set_new(o, "server", json_end(&b->server));
	return o;
}

/* Numbers and texts on lines of about 90 characters, objects by name. */
static void print_object(FILE *f, json_t *o, const char *title)
{
	const char *key;
	json_t *value;
	int at = fprintf(f, "%s:", title);

	json_object_foreach(o, key, value)
	{
		if (json_is_object(value) || json_is_array(value) ||
			(!json_is_string(value) && json_number_value(value) == 0))
			continue;
		if (at > 90)
			at = fprintf(f, "\n ") - 1;
		if (json_is_string(value))
			at += fprintf(f, " %s=%s", key, json_string_value(value));
		else if (json_is_real(value))
			at += fprintf(f, " %s %.3f", key, json_real_value(value));
		else
			at += fprintf(f, " %s %lld", key, (long long)json_integer_value(value));
	}
	fputc('\n', f);
	json_object_foreach(o, key, value)
	{
		if (json_is_object(value) && json_object_size(value)) {
			char name[64];

			snprintf(name, sizeof(name), "%s%s%s", *title == ' ' ? title : " ",
				*title == ' ' ? " " : "", key);
			print_object(f, value, name);
		}
	}
}

static void print_line(FILE *f, const json_t *o)
{
	const json_t *us = json_object_get(o, "latency_us");

#define REAL(of, key) json_number_value(json_object_get(of, key))
	fprintf(f, "%s: %.2f Gbit/s, %.0f bytes arrived%s in %.2f s, %.2f CPU seconds per GB",
		json_string_value(json_object_get(o, "benchmark")), REAL(o, "gbit_per_second"),
		REAL(o, "bytes"), REAL(o, "wrong") > 0 ? ", SOME WRONG," : "", REAL(o, "seconds"),
		REAL(o, "cpu_seconds_per_gb"));
	if (us && json_object_size(us))
		fprintf(f, "; %.0f transactions/s, p50 %.1f us, p99 %.1f us",
			REAL(o, "transactions_per_second"), REAL(us, "p50"), REAL(us, "p99"));
	if (json_object_get(o, "of_pingpong"))
		fprintf(f, " (a bare eventfd there and back: p50 %.1f us, ratio %.2f)",
			REAL(json_object_get(o, "pingpong_us"), "p50"), REAL(o, "of_pingpong"));
	if (json_object_get(o, "mean_unit"))
		fprintf(f, "; mean unit %.0f bytes, %.0f retransmissions", REAL(o, "mean_unit"),
			REAL(o, "retransmissions"));
	if (json_object_get(o, "lost"))
		fprintf(f, "; %.0f sent, %.0f received, %.0f lost", REAL(o, "sent"),
			REAL(o, "received"), REAL(o, "lost"));
#undef REAL
	if (json_object_get(o, "placement"))
		fprintf(f, "; %s", json_string_value(json_object_get(o, "placement")));
	fputc('\n', f);
}

static void print_ready(void *ctx)
{
	struct cmd_call *call = ctx;

	fprintf(call->out, "ready\n");
	fflush(call->out);
}

static int measure(struct cmd_call *call, const struct bench_flows_config *c)
{
	struct bench_flows *b = malloc(sizeof(*b));
	json_t *o;
	int r;

	if (!b)
		return err_set(&call->err, ENOMEM, "no memory");
	r = bench_flows_init(b, c, &call->err);
	if (r)
		goto free_bench;
	r = bench_flows_run(b, print_ready, call, &call->err);
	if (!r) {
		o = json_all(b, call->arg[0]);
		if (call->opt[OPT_JSON]) {
			json_dumpf(o, call->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
			fputc('\n', call->out);
		} else {
			print_line(call->out, o);
			print_object(call->out, o, "all");
		}
		json_decref(o);
		if (bench_flows_wrong(b))
			r = err_set(
				&call->err, ETIMEDOUT, "bench: bytes arrived that were not sent");
	}
	bench_flows_fini(b);
free_bench:
	free(b);
	return r;
}

int bench_flow_word(struct cmd_call *call)
{
	struct bench_flows_config c = {.cwd = call->cwd, .net = call->net_name};
	char impair[300], more[40], *knobs;
	int r;

	if (options(call, &c, impair, sizeof(impair)))
		return CMD_MISTAKE;
	/* a turn's writes fit the ring: the network between does not have to drop */
	snprintf(more, sizeof(more), "%s%s", call->opt[OPT_MEMORY] ? "" : ",memory=64M",
		call->opt[OPT_RING] ? "" : ",ring=512");
	knobs = bench_knobs(call, more);
	if (!knobs) {
		err_set(&call->err, ENOMEM, "no memory");
		return CMD_MISTAKE;
	}
	c.knobs = knobs;
	r = measure(call, &c);
	free(knobs);
	return r == -ETIMEDOUT || r == -ECONNREFUSED ? CMD_FAILED : r ? CMD_MISTAKE : CMD_DONE;
}
