/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: the word `weft bench`: its options become the words of a port, its results JSON, and that
 * becomes text for people.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_opt.h"
#include "app/bench_run.h"
#include "app/cmd.h"
#include "app/words.h"

static int bench_options(struct cmd_call *call, struct bench_config *c)
{
	static const char *const kinds[] = {"pktgen", "rx", "tcp_stream", "tcp_maerts", "tcp_rr",
		"tcp_crr", "udp_stream", "udp_rr", "server", "tables"};
	char hint[160];
	uint32_t packets;

	bool receive = !strcmp(call->arg[0], "rx");

	if (!receive && strcmp(call->arg[0], "pktgen") != 0)
		return err_set(&call->err, EINVAL, "bench: '%.60s' is not a benchmark%s",
			call->arg[0],
			words_hint(hint, sizeof(hint), call->arg[0], kinds,
				sizeof(kinds) / sizeof(*kinds)));
	for (unsigned i = OPT_FLOW; i < OPT_END; i++)
		if (call->opt[i])
			return err_set(&call->err, EINVAL,
				"bench: %s sends packets, not flows; %s is for tcp_stream, udp_rr "
				"...",
				call->arg[0], call->cmd->opt[i].name);
	c->via = call->opt[OPT_VIA];
	c->to = call->opt[OPT_TO];
	if (receive && (!c->via || c->to))
		return err_set(&call->err, EINVAL,
			"bench: rx needs --via virtio-user:PATH, a socket where packets arrive, "
			"and no --to; pktgen alone has both ends");
	if (c->to && !c->via)
		return err_set(&call->err, EINVAL,
			"bench: --to %.60s needs --via, where the sender is", c->to);
	c->echo = call->opt[OPT_ECHO];
	c->verify = call->opt[OPT_VERIFY] || c->echo;
	if (c->echo && (!c->via || c->to || receive))
		return err_set(&call->err, EINVAL,
			"bench: --echo is for pktgen with --via and without --to: somebody behind "
			"that socket sends back what he gets");
	if (receive) {
		c->to = c->via;
		c->via = NULL;
	}
	if (bench_number(call, OPT_SIZE, BENCH_SIZE_MIN, BENCH_SIZE_MAX, &c->size, 64) ||
		bench_number(call, OPT_MTU, ETH_MTU_MIN, ETH_MTU_MAX, &c->mtu, 1500) ||
		bench_number(call, OPT_PACKETS, 1, UINT32_MAX, &packets, 1) ||
		bench_time(call, &c->time))
		return -EINVAL;
	if (call->opt[OPT_PACKETS]) {
		c->packets = packets;
		if (!call->opt[OPT_TIME])
			c->time = 3600 * NSEC_PER_SEC;
	}
	return 0;
}

/* results */

static void set_num(json_t *o, const char *key, uint64_t n)
{
	json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void set_real(json_t *o, const char *key, double x)
{
	json_object_set_new(o, key, json_real(x));
}

static json_t *verify_json(const struct bench *b)
{
	const struct stamp_check *s = &b->check;
	json_t *o = json_object();

	set_num(o, "good", s->good);
	set_num(o, "segments", s->segments);
	set_num(o, "corrupt", s->corrupt);
	set_num(o, "missing", stamp_missing(s));
	set_num(o, "missing_bytes", stamp_missing_bytes(s));
	set_num(o, "duplicated", s->duplicated);
	set_num(o, "reordered", s->reordered);
	set_num(o, "foreign", s->foreign);
	return o;
}

/* Of the packets that were sent. */
static uint64_t bench_arrived(const struct bench *b)
{
	return b->config.verify ? b->check.good - b->check.duplicated : b->rx.packets;
}

static json_t *bench_json(const struct bench *b, const char *word)
{
	const struct bench_end *end =
		b->rx.port ? &b->rx : &b->tx; /* what arrived is what counts */
	double sec = (double)(b->ended - b->begun) / (double)NSEC_PER_SEC;
	double packets = (double)end->packets;
	json_t *o = json_object();

	json_object_set_new(o, "benchmark", json_string(word));
	set_num(o, "size", b->config.size);
	set_num(o, "mtu", b->config.mtu);
	json_object_set_new(o, "via", json_string(b->config.via ? b->config.via : ""));
	json_object_set_new(o, "to", json_string(b->config.to ? b->config.to : ""));
	json_object_set_new(o, "knobs", show_knobs(b->config.echo ? &b->tx.spec : &end->spec));
	set_real(o, "seconds", sec);
	if (b->tx.port)
		set_num(o, "sent", b->tx.packets);
	if (b->rx.port)
		set_num(o, "received", b->rx.packets);
	if (b->tx.port && b->rx.port)
		set_num(o, "lost", b->tx.packets - bench_arrived(b));
	if (b->config.verify && b->rx.port)
		json_object_set_new(o, "verified", verify_json(b));
	set_real(o, "packets_per_second", sec > 0 ? packets / sec : 0);
	set_real(o, "gbit_per_second", sec > 0 ? (double)end->bytes * 8 / sec / 1e9 : 0);
	set_real(o, "ns_per_packet", packets > 0 ? sec * 1e9 / packets : 0);
	if (b->tx.port)
		json_object_set_new(o, "sender", show_driver(&b->tx.count));
	if (b->rx.port)
		json_object_set_new(o, "receiver", show_driver(&b->rx.count));
	if (!b->config.via && !b->config.to) /* else the network is somebody else's */
		set_num(o, "network_drops", b->drops);
	return o;
}

static double real_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* A ratio to a handful of packets says nothing. */
static bool ratio_means(const json_t *side, const char *key)
{
	return real_of(side, "rx_packets") + real_of(side, "tx_packets") >= 100 &&
	       real_of(side, key) != 0;
}

/* The counters that are not 0, a few on a line. */
static void print_counters(FILE *f, const char *title, json_t *side)
{
	const char *key;
	json_t *value;
	unsigned n = 0;

	if (!side)
		return;
	fprintf(f, "%s:", title);
	json_object_foreach(side, key, value)
	{
		if (json_is_array(value)) {
			fprintf(f, "%s%s", n++ % 4 ? "  " : "\n  ", key);
			for (size_t i = 0; i < json_array_size(value); i++)
				fprintf(f, "%c%lld", i ? '/' : ' ',
					(long long)json_integer_value(json_array_get(value, i)));
		} else if (json_is_real(value)) {
			if (!ratio_means(side, key))
				continue;
			fprintf(f, "%s%s %.3f", n++ % 4 ? "  " : "\n  ", key,
				json_number_value(value));
		} else if (json_integer_value(value)) {
			fprintf(f, "%s%s %lld", n++ % 4 ? "  " : "\n  ", key,
				(long long)json_integer_value(value));
		}
	}
	fputc('\n', f);
}

static void bench_text(FILE *f, const json_t *o)
{
	static const char *const counts[] = {"sent", "received", "lost", "network_drops"};
	const char *key, *sep = "";
	json_t *value;

	if (real_of(o, "packets_per_second") == 0)
		fprintf(f, "no packet came in %.2f s\n", real_of(o, "seconds"));
	fprintf(f, "%s %.0f bytes: %.3f Mpps, %.2f Gbit/s, %.0f ns per packet, %.2f s\n",
		json_string_value(json_object_get(o, "benchmark")), real_of(o, "size"),
		real_of(o, "packets_per_second") / 1e6, real_of(o, "gbit_per_second"),
		real_of(o, "ns_per_packet"), real_of(o, "seconds"));
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (!json_object_get(o, counts[i]))
			continue;
		fprintf(f, "%s%s %.0f", sep, counts[i], real_of(o, counts[i]));
		sep = ", ";
	}
	fprintf(f, "\nmtu=%.0f", real_of(o, "mtu"));
	json_object_foreach(json_object_get(o, "knobs"), key, value)
		fprintf(f, " %s=%s", key, json_string_value(value));
	fputc('\n', f);
	print_counters(f, "verified", json_object_get(o, "verified"));
	print_counters(f, "sender", json_object_get(o, "sender"));
	print_counters(f, "receiver", json_object_get(o, "receiver"));
}

static int bench_measure(struct cmd_call *call, const struct bench_config *c)
{
	struct bench *b = malloc(sizeof(*b));
	json_t *o;
	int r;

	if (!b)
		return err_set(&call->err, ENOMEM, "no memory");
	r = bench_init(b, c, &call->err);
	if (r)
		goto free_bench;
	r = bench_run(b, &call->err);
	if (!r) {
		o = bench_json(b, call->arg[0]);
		if (call->opt[OPT_JSON]) {
			json_dumpf(o, call->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
			fputc('\n', call->out);
		} else {
			bench_text(call->out, o);
		}
		json_decref(o);
	}
	bench_fini(b);
free_bench:
	free(b);
	return r;
}

int word_bench(struct cmd_call *call)
{
	struct bench_config c = {.cwd = call->cwd, .net = call->net_name};
	char *knobs;
	int r;

	if (!strcmp(call->arg[0], "tables"))
		return tables_word(call);
	if (call->narg > 1) {
		err_set(&call->err, EINVAL, "bench: '%.60s' after %.60s: one benchmark at a time",
			call->arg[1], call->arg[0]);
		return CMD_MISTAKE;
	}
	if (bench_is_flow(call->arg[0]))
		return bench_flow_word(call);
	r = bench_options(call, &c);

	if (r)
		return CMD_MISTAKE;
	knobs = bench_knobs(call, "");
	if (!knobs) {
		err_set(&call->err, ENOMEM, "no memory");
		return CMD_MISTAKE;
	}
	c.knobs = knobs;
	r = bench_measure(call, &c);
	free(knobs);
	return r == -ETIMEDOUT ? CMD_FAILED : r ? CMD_MISTAKE : CMD_DONE;
}
