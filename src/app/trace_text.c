/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_text: a traced frame as some lines of words and numbers, and as JSON with stable names.
 */
#include "app/trace_text.h"

#include <jansson.h>

#include "wire/eth.h"

typedef unsigned long long ull;

static const char *s_of(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static int vlan_of(const struct trace_frame *r)
{
	return eth_tagged(r->head) ? get_be16(r->head + ETH_HLEN) & 0xfff : -1;
}

static unsigned type_of(const struct trace_frame *r)
{
	return get_be16(r->head + (eth_tagged(r->head) ? ETH_HLEN + VLAN_HLEN : ETH_HLEN) - 2);
}

static const char *gso_name(uint8_t gso)
{
	switch (gso & ~OFF_GSO_ECN) {
	case OFF_GSO_NONE:
		return "none";
	case OFF_GSO_TCPV4:
		return "tcpv4";
	case OFF_GSO_UDP:
		return "udp";
	case OFF_GSO_TCPV6:
		return "tcpv6";
	case OFF_GSO_UDP_L4:
		return "udp_l4";
	default:
		return "unknown";
	}
}

/* ---- for people ---- */

static void print_chain(FILE *f, const struct trace_frame *r)
{
	if (!r->rings)
		fputs("  chain     not known: only that of a vhost-user port is, without impair= "
		      "and copy=on\n",
			f);
	else if (!r->chain_pieces)
		fputs("  chain     none: made by the device itself\n", f);
	else
		fprintf(f,
			"  chain     %u descriptor%s%s, %u piece%s, %u bytes, %u of them header\n",
			r->desc, s_of(r->desc),
			r->indirect ? " with a table (indirect)" : ", direct", r->chain_pieces,
			s_of(r->chain_pieces), r->chain_bytes, r->hdr_len);
}

static void print_header(FILE *f, const struct trace_frame *r)
{
	const struct offload *o = &r->off;

	fprintf(f, "  header    flags %u, gso %s", o->flags, gso_name(o->gso));
	if (o->gso)
		fprintf(f, "%s, gso_size %u", o->gso & OFF_GSO_ECN ? " with ECN" : "", o->gso_size);
	if (o->flags & OFF_NEEDS_CSUM)
		fprintf(f, ", checksum to do: from %u, put at %u", o->csum_start,
			o->csum_start + o->csum_off);
	fprintf(f, ", hdr_len %u\n", o->hdr_len);
}

static void print_where(FILE *f, const struct trace_frame *r)
{
	fprintf(f, "  head      %u bytes%s, to decide on; %u behind them, in %u piece%s, %s\n",
		r->head_len, r->rings ? " copied" : "", r->len - r->head_len, r->pieces,
		s_of(r->pieces), r->rings ? "stay in place" : "as the port lends them");
	if (r->drop)
		fprintf(f, "  dropped   %s\n", drop_name(r->drop));
	else if (r->where == TRACE_PORT)
		fprintf(f, "  goes      to %s, where the address was learned\n", r->where_port);
	else
		fprintf(f, "  goes      to all: %s\n",
			r->where == TRACE_GROUP ? "a group address" : "the address is not known");
	if (r->before)
		fprintf(f, "  before    %u of its segments were there when the trace began\n",
			r->before);
	if (r->back)
		fprintf(f, "  waited    went back %u time%s: no room at the receiver\n", r->back,
			s_of(r->back));
}

static void print_notify(FILE *f, uint64_t wanted, uint64_t unwanted, uint64_t sent)
{
	if (sent)
		fprintf(f, "; %llu notification%s sent", (ull)sent, s_of(sent));
	else if (wanted)
		fputs("; notification wanted, not sent yet (call_us)", f);
	else if (unwanted)
		fputs("; no notification: the driver wants none now", f);
	else
		fputs("; no notification", f);
}

static void print_to(FILE *f, const struct trace_to *to)
{
	fprintf(f, "  to %-6s", to->name);
	if (to->frames) {
		fprintf(f, " %llu frame%s, %llu bytes%s, %llu buffer%s", (ull)to->frames,
			s_of(to->frames), (ull)to->bytes, to->rings ? " copied once" : "",
			(ull)to->bufs, s_of(to->bufs));
		if (to->merged && to->frames == 1)
			fprintf(f, ", num_buffers %llu", (ull)to->bufs);
	}
	if (to->drops)
		fprintf(f, "%s %llu dropped: %s", to->frames ? ";" : "", (ull)to->drops,
			drop_name(to->drop));
	if (to->fit_segments)
		fprintf(f, "; cut in software into %llu segments, which it does not do",
			(ull)to->fit_segments);
	if (to->fit_csum)
		fprintf(f, "; %llu checksum%s finished in software, which it does not do",
			(ull)to->fit_csum, s_of(to->fit_csum));
	if (to->rings && to->frames)
		print_notify(f, to->wanted, to->unwanted, to->notify);
	fputc('\n', f);
}

static void print_frame(FILE *f, const struct trace_frame *r, unsigned number)
{
	char src[ETH_TEXT], dst[ETH_TEXT];
	nsec_t all = 0;

	eth_build_text(r->head, dst);
	eth_build_text(r->head + ETH_ALEN, src);
	fprintf(f, "frame %u: %u bytes, %s > %s, type 0x%04x", number, r->len, src, dst,
		type_of(r));
	if (vlan_of(r) >= 0)
		fprintf(f, ", VLAN %d", vlan_of(r));
	fputc('\n', f);
	print_chain(f, r);
	print_header(f, r);
	print_where(f, r);
	for (unsigned i = 0; i < r->n_to && i < TRACE_TO; i++)
		print_to(f, &r->to[i]);
	if (r->n_to > TRACE_TO)
		fprintf(f, "  to others %u more\n", r->n_to - TRACE_TO);
	if (r->rings && r->chain_pieces) {
		fputs("  settled   its buffer is given back", f);
		print_notify(f, r->wanted, r->unwanted, r->notify);
		fputc('\n', f);
	}
	fputs("  time     ", f);
	for (unsigned i = 0; i < TRACE_STEPS; i++) {
		fprintf(f, " %s %lld,", trace_step_name(i), (long long)r->ns[i]);
		all += r->ns[i];
	}
	fprintf(f, " in all %lld ns\n", (long long)all);
}

/* ---- for programs ---- */

static void set(json_t *o, const char *name, uint64_t n)
{
	json_object_set_new(o, name, json_integer((json_int_t)n));
}

static void set_text(json_t *o, const char *name, const char *text)
{
	json_object_set_new(o, name, json_string(text));
}

static json_t *notify_json(uint64_t wanted, uint64_t unwanted, uint64_t sent)
{
	json_t *o = json_object();

	set(o, "wanted", wanted);
	set(o, "unwanted", unwanted);
	set(o, "sent", sent);
	return o;
}

static json_t *to_json(const struct trace_to *to)
{
	json_t *o = json_object();

	set_text(o, "port", to->name);
	set(o, "frames", to->frames);
	set(o, "bytes", to->bytes);
	set(o, "buffers", to->bufs);
	json_object_set_new(o, "num_buffers",
		to->merged && to->frames == 1 ? json_integer((json_int_t)to->bufs) : json_null());
	set(o, "fit_csum", to->fit_csum);
	set(o, "fit_segments", to->fit_segments);
	set(o, "drops", to->drops);
	set_text(o, "drop", drop_name(to->drop));
	json_object_set_new(o, "notify",
		to->rings ? notify_json(to->wanted, to->unwanted, to->notify) : json_null());
	return o;
}

static json_t *chain_json(const struct trace_frame *r)
{
	json_t *o;

	if (!r->rings || !r->chain_pieces)
		return json_null();
	o = json_object();
	set(o, "descriptors", r->desc);
	json_object_set_new(o, "indirect", json_boolean(r->indirect));
	set(o, "pieces", r->chain_pieces);
	set(o, "bytes", r->chain_bytes);
	set(o, "header_bytes", r->hdr_len);
	json_object_set_new(o, "notify", notify_json(r->wanted, r->unwanted, r->notify));
	return o;
}

static json_t *header_json(const struct offload *off)
{
	json_t *o = json_object();

	set(o, "flags", off->flags);
	set_text(o, "gso", gso_name(off->gso));
	json_object_set_new(o, "ecn", json_boolean(off->gso & OFF_GSO_ECN));
	set(o, "gso_size", off->gso_size);
	set(o, "csum_start", off->csum_start);
	set(o, "csum_offset", off->csum_off);
	set(o, "hdr_len", off->hdr_len);
	return o;
}

static json_t *frame_json(const struct trace_frame *r, unsigned number)
{
	static const char *const where[] = {"port", "group", "unknown"};
	json_t *o = json_object(), *to = json_array(), *ns = json_object();
	char mac[ETH_TEXT];

	set(o, "number", number);
	set(o, "bytes", r->len);
	eth_build_text(r->head + ETH_ALEN, mac);
	set_text(o, "src", mac);
	eth_build_text(r->head, mac);
	set_text(o, "dst", mac);
	set(o, "type", type_of(r));
	json_object_set_new(o, "vlan", vlan_of(r) < 0 ? json_null() : json_integer(vlan_of(r)));
	json_object_set_new(o, "chain", chain_json(r));
	json_object_set_new(o, "header", header_json(&r->off));
	set(o, "head_bytes", r->head_len);
	set(o, "pieces_left", r->pieces);
	set_text(o, "where", r->drop ? "nowhere" : where[r->where]);
	json_object_set_new(o, "where_port",
		!r->drop && r->where == TRACE_PORT ? json_string(r->where_port) : json_null());
	set_text(o, "drop", drop_name(r->drop));
	set(o, "went_back", r->back);
	set(o, "segments_before", r->before);
	for (unsigned i = 0; i < r->n_to && i < TRACE_TO; i++)
		json_array_append_new(to, to_json(&r->to[i]));
	json_object_set_new(o, "to", to);
	set(o, "receivers", r->n_to);
	for (unsigned i = 0; i < TRACE_STEPS; i++)
		set(ns, trace_step_name(i), (uint64_t)r->ns[i]);
	json_object_set_new(o, "ns", ns);
	return o;
}

void trace_text(FILE *f, const struct trace *t, const char *port, bool as_json)
{
	json_t *o, *frames;

	if (!as_json) {
		for (unsigned i = 0; i < trace_count(t); i++)
			print_frame(f, trace_frame(t, i), i + 1);
		return;
	}
	o = json_object();
	frames = json_array();
	set_text(o, "port", port);
	for (unsigned i = 0; i < trace_count(t); i++)
		json_array_append_new(frames, frame_json(trace_frame(t, i), i + 1));
	json_object_set_new(o, "frames", frames);
	json_dumpf(o, f, JSON_INDENT(2));
	fputc('\n', f);
	json_decref(o);
}
