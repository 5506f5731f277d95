/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload_fuzz: a frame and its virtio header from a hostile sender: checked, then fitted for every
 * kind of receiver, and what comes out is held against the frame that went in.
 *
 *	byte 0       bytes of the head, less 14
 *	byte 1       bytes of each piece of the tail, less 1 (0xff: 64 KiB)
 *	byte 2, 3    payload bytes added behind the frame, little endian: long frames from short inputs
 *	byte 4 .. 13 virtio header: flags, gso, hdr_len, gso_size, csum_start, csum_off, little endian
 *	rest         the frame
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame/frame_make.h"
#include "frame/offload.h"

#define PREFIX 14

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct input {
	struct frame f;
	struct frame_head head;
	struct iovec *iov;
	uint8_t *flat;
	uint32_t len;
	struct hdrs h;
};

static struct fit fit;
static uint8_t out[MAKE_MAX], again[MAKE_MAX];

/* Our own bug, or the check's: the sanitizer's report shows where. */
static void must(int truth)
{
	if (!truth)
		abort();
}

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* A frame of one piece of memory each, of just its size. */
static void input_lend(struct input *in, uint32_t head, uint32_t piece)
{
	uint32_t at = head < in->len ? head : in->len;

	if (piece < in->len / 1000)
		piece = in->len / 1000; /* a chain has no more than CHAIN_MAX pieces */
	in->iov = calloc(in->len / piece + 2, sizeof(*in->iov));
	memcpy(in->head.data, in->flat, at);
	in->f.head = in->head.data;
	in->f.head_len = (uint16_t)at;
	in->f.tail = in->iov;
	in->f.tail_len = in->len - at;
	for (uint32_t n; at < in->len; at += n) {
		n = in->len - at < piece ? in->len - at : piece;
		in->iov[in->f.ntail].iov_base = malloc(n);
		in->iov[in->f.ntail].iov_len = n;
		memcpy(in->iov[in->f.ntail++].iov_base, in->flat + at, n);
	}
}

static int input_open(struct input *in, const uint8_t *data, size_t len)
{
	uint32_t extra = le16(data + 2);

	len -= PREFIX;
	if (len + extra > FRAME_MAX)
		extra = len > FRAME_MAX ? 0 : FRAME_MAX - (uint32_t)len;
	if (!len || len > FRAME_MAX)
		return 0;
	in->len = (uint32_t)len + extra;
	in->flat = malloc(in->len);
	memcpy(in->flat, data + PREFIX, len);
	for (uint32_t i = (uint32_t)len; i < in->len; i++)
		in->flat[i] = (uint8_t)(i * 7 + i / 256);
	in->f.off = (struct offload){.flags = data[4],
		.gso = data[5],
		.hdr_len = le16(data + 6),
		.gso_size = le16(data + 8),
		.csum_start = le16(data + 10),
		.csum_off = le16(data + 12)};
	return 1;
}

/* What was finished differs in two bytes at most. */
static void check_csum_fit(struct input *in)
{
	const uint32_t at = (uint32_t)in->f.off.csum_start + in->f.off.csum_off;

	fit_reset(&fit);
	must(fit_csum(&fit, &in->f) == DROP_NONE && fit.n == 1);
	must(frame_flatten(&fit.f[0], out) == in->len);
	must(!memcmp(out, in->flat, at) &&
		!memcmp(out + at + 2, in->flat + at + 2, in->len - at - 2));
	must(!fit.f[0].off.flags && !fit.f[0].off.gso);
}

static void check_segment(struct input *in, const struct frame *seg, unsigned k, unsigned n)
{
	const uint32_t len = frame_flatten(seg, out), size = in->f.off.gso_size;
	const uint32_t data = len - in->h.payload, from = in->h.payload + k * size;
	const unsigned csum_off = in->h.proto == 6 ? 16 : 6;
	uint32_t sum;
	struct hdrs h;

	must(len == frame_len(seg) && len > in->h.payload);
	must(k + 1 < n ? data == size : data <= size && from + data == in->len);
	must(!memcmp(out + in->h.payload, in->flat + from, data));
	must(hdrs_parse(out, len, len, &h) == HDRS_OK);
	must(h.l3 == in->h.l3 && h.l4 == in->h.l4 && h.payload == in->h.payload);
	must(h.ip_len == len - h.l3 && h.ip_len <= offload_ip_size(&in->f));
	if (h.ip == 4)
		must(slow_sum(0, out + h.l3, (size_t)(h.l4 - h.l3)) == 0xffff);
	sum = slow_pseudo(out + h.l3, h.ip, h.proto, len - h.l4);
	if (seg->off.flags) {
		must(seg->off.flags == OFF_NEEDS_CSUM && seg->off.csum_start == h.l4);
		must(seg->off.csum_off == csum_off && seg->off.hdr_len == h.payload);
		must(get_be16(out + h.l4 + csum_off) % 0xffff == sum % 0xffff);
	} else {
		must(slow_sum(sum, out + h.l4, len - h.l4) == 0xffff);
	}
}

static void check_segments(struct input *in, unsigned accepts)
{
	const unsigned n = fit_segments(&in->f);
	uint32_t len, middle = n / 2;

	if (fit_segment(&fit, &in->f, 0, accepts) != DROP_NONE) {
		must(fit_segment(&fit, &in->f, middle, accepts) != DROP_NONE);
		return;
	}
	must(n > 1);
	for (unsigned k = 0; k < n; k += fit.n) {
		must(fit_segment(&fit, &in->f, k, accepts) == DROP_NONE);
		must(fit.n && k + fit.n <= n);
		for (unsigned i = 0; i < fit.n; i++)
			check_segment(in, &fit.f[i], k + i, n);
		if (middle >= k && middle < k + fit.n) {
			len = frame_flatten(&fit.f[middle - k], again);
			must(fit_segment(&fit, &in->f, middle, accepts) == DROP_NONE);
			must(frame_flatten(&fit.f[0], out) == len && !memcmp(out, again, len));
			must(fit_segment(&fit, &in->f, k, accepts) == DROP_NONE);
		}
	}
}

static void check_every_receiver(struct input *in)
{
	unsigned done = 0;

	for (unsigned accepts = 0; accepts <= ACCEPT_ALL; accepts++) {
		const enum fit_need need = fit_need(&in->f, accepts);
		const unsigned key = 1u << (2 * need + (accepts & ACCEPT_CSUM));

		if (done & key)
			continue; /* the same again */
		done |= key;
		if (need == FIT_CSUM)
			check_csum_fit(in);
		else if (need == FIT_SEGMENT)
			check_segments(in, accepts);
		else
			must(!in->f.off.gso || accepts != 0);
	}
}

static void check_input(struct input *in)
{
	const struct offload asked = in->f.off;
	const enum drop d = offload_check(&in->f);
	const struct offload *off = &in->f.off;

	must(frame_flatten(&in->f, out) == in->len && !memcmp(out, in->flat, in->len));
	if (d != DROP_NONE) {
		must(d == DROP_BAD_HDR || d == DROP_HDR_TOO_LONG);
		return;
	}
	must(offload_ip_size(&in->f) <= in->len);
	must(!(off->flags & ~(OFF_NEEDS_CSUM | OFF_DATA_VALID)));
	if (!off->flags)
		must(!asked.gso && !off->csum_start && !off->csum_off && !off->hdr_len);
	if (off->flags & OFF_NEEDS_CSUM)
		must((uint32_t)off->csum_start + off->csum_off + 2 <= in->f.head_len);
	if (off->gso) {
		must(hdrs_parse(in->f.head, in->f.head_len, in->len, &in->h) == HDRS_OK);
		must(off->hdr_len == in->h.payload && off->csum_start == in->h.l4);
	}
	check_every_receiver(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct input in;

	if (len < PREFIX)
		return 0;
	in = (struct input){0};
	if (!input_open(&in, data, len))
		return 0;
	input_lend(&in, 14u + data[0], data[1] == 0xff ? 65536 : 1u + data[1]);

	struct iovec *iov = in.iov;
	const unsigned n = in.f.ntail;
	void **mem = calloc(n + 1, sizeof(*mem));

	for (unsigned i = 0; i < n; i++)
		mem[i] = iov[i].iov_base; /* pulling moves the pieces' starts */
	check_input(&in);
	for (unsigned i = 0; i < n; i++)
		free(mem[i]);
	free(mem);
	free(iov);
	free(in.flat);
	return 0;
}
