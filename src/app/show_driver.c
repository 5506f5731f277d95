/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_driver: names of the driver's counters. Those per packet are what the mechanisms promise:
 * buffers, used entries, fragments, chained packets on receive; descriptors, indirect tables on
 * transmit; kicks and notifications.
 */
#include "app/show_driver.h"

#include <string.h>

static void knob_json(void *o, const char *name, const char *value, const char *help)
{
	(void)help;
	json_object_set_new(o, name, json_string(value));
}

json_t *show_knobs(const struct spec *s)
{
	json_t *o = json_object();

	spec_knobs(s, knob_json, o);
	return o;
}

#define AT(f) offsetof(struct driver_count, drv.f)
#define OF(f) offsetof(struct driver_count, f)

static const struct {
	const char *name;
	size_t field;
} counters[] = {
	{"rx_packets", AT(rx_packets)},
	{"rx_bytes", AT(rx_bytes)},
	{"rx_buffers", AT(rx_buffers)},
	{"rx_used", AT(rx_used)},
	{"rx_fragments", AT(rx_frags)},
	{"rx_chained", AT(rx_chained)},
	{"rx_coalesced", AT(rx_coalesced)},
	{"rx_copied", AT(rx_copied)},
	{"rx_truesize", AT(rx_truesize)},
	{"rx_refills", AT(rx_refills)},
	{"rx_refill_failed", AT(rx_refill_failed)},
	{"rx_error_length", AT(rx_err_len)},
	{"rx_error_short", AT(rx_err_short)},
	{"rx_error_missing", AT(rx_err_missing)},
	{"rx_error_num_buffers", AT(rx_err_num_buffers)},
	{"rx_error_too_big", AT(rx_err_too_big)},
	{"rx_error_id", AT(rx_err_id)},
	{"rx_error_memory", AT(rx_err_memory)},
	{"rx_not_full", AT(rx_not_full)},
	{"rx_zero_num_buffers", AT(rx_zero_num_buffers)},
	{"rx_retries", AT(rx_retries)},
	{"tx_packets", AT(tx_packets)},
	{"tx_bytes", AT(tx_bytes)},
	{"tx_descriptors", AT(tx_desc)},
	{"tx_indirect", AT(tx_indirect)},
	{"tx_inline", AT(tx_inline)},
	{"tx_stopped", AT(tx_stopped)},
	{"tx_dropped", AT(tx_dropped)},
	{"tx_copied", AT(tx_copied)},
	{"kicks", AT(kicks)},
	{"notifications", AT(calls)},
	{"chunk_fallbacks", OF(fallbacks)},
	{"chunk_failures", OF(failures)},
	{"kept_by_reference", OF(kept_ref)},
	{"kept_by_copy", OF(kept_copy)},
};

/* What is divided by what. */
static const struct {
	const char *name;
	size_t field, by;
} ratios[] = {
	{"rx_buffers_per_packet", AT(rx_buffers), AT(rx_packets)},
	{"rx_used_per_packet", AT(rx_used), AT(rx_packets)},
	{"rx_fragments_per_packet", AT(rx_frags), AT(rx_packets)},
	{"rx_chained_per_packet", AT(rx_chained), AT(rx_packets)},
	{"rx_truesize_per_byte", AT(rx_truesize), AT(rx_bytes)},
	{"tx_descriptors_per_packet", AT(tx_desc), AT(tx_packets)},
	{"tx_indirect_per_packet", AT(tx_indirect), AT(tx_packets)},
	{"kicks_per_packet", AT(kicks), AT(tx_packets)},
	{"notifications_per_packet", AT(calls), AT(rx_packets)},
};

void driver_count_take(struct driver_count *c, struct port *p)
{
	const struct chunk_pool *pool = vdrv_chunks(p);

	c->drv = *vdrv_counters(p);
	memcpy(c->chunks, pool->got, sizeof(c->chunks));
	c->fallbacks = pool->fallbacks;
	c->failures = pool->failed;
	c->kept_ref = vdrv_pkts(p)->kept_ref;
	c->kept_copy = vdrv_pkts(p)->kept_copy;
}

void driver_count_since(struct driver_count *c, const struct driver_count *before)
{
	uint64_t *n = (uint64_t *)(void *)c;
	const uint64_t *old = (const uint64_t *)(const void *)before;

	for (size_t i = 0; i < sizeof(*c) / sizeof(*n); i++)
		n[i] -= old[i];
}

static uint64_t counter(const struct driver_count *c, size_t field)
{
	return *(const uint64_t *)(const void *)((const char *)c + field);
}

static void set_num(json_t *o, const char *name, uint64_t n)
{
	json_object_set_new(o, name, json_integer((json_int_t)n));
}

json_t *show_driver(const struct driver_count *c)
{
	json_t *o = json_object(), *orders = json_array();

	for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		set_num(o, counters[i].name, counter(c, counters[i].field));
	for (unsigned i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
		uint64_t by = counter(c, ratios[i].by);
		double ratio = by ? (double)counter(c, ratios[i].field) / (double)by : 0;

		json_object_set_new(o, ratios[i].name, json_real(ratio));
	}
	for (unsigned i = 0; i < CHUNK_ORDERS; i++)
		json_array_append_new(orders, json_integer((json_int_t)c->chunks[i]));
	json_object_set_new(o, "chunks_by_order", orders);
	return o;
}
