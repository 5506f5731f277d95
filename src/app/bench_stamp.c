/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_stamp: stamps and their check. */
#include "app/bench_stamp.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/eth.h"

#define MAGIC    0x77656674u /* "weft" */
#define IP_LEN   20u
#define UDP_LEN  8u
#define HEAD_MAX (ETH_HLEN + IP_LEN + 60 + STAMP_LEN)

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

static uint32_t stamp_sum(uint32_t run, uint32_t serial, uint32_t len)
{
	return (uint32_t)mix((uint64_t)run << 32 | serial) ^ (uint32_t)mix(len + 1);
}

void stamp_put(uint8_t *to, uint32_t run, uint32_t serial, uint32_t len)
{
	put_be32(to, MAGIC);
	put_be32(to + 4, run);
	put_be32(to + 8, serial);
	put_be32(to + 12, len);
	put_be32(to + 16, stamp_sum(run, serial, len));
}

void stamp_pattern(uint8_t *to, uint32_t run, uint32_t from, uint32_t len)
{
	for (uint32_t i = from; i < from + len; i++)
		*to++ = (uint8_t)(mix((uint64_t)run << 32 | i / 8) >> 8 * (i % 8));
}

/* ---- the other end ---- */

void stamp_check_init(struct stamp_check *s)
{
	memset(s, 0, sizeof(*s));
}

/* Bytes [from, from + len) of the packet are those at `want`, or, without `want`, are copied to `to`. */
static bool bytes_walk(
	const struct pkt *p, uint32_t from, uint32_t len, const uint8_t *want, uint8_t *to)
{
	const struct pkt *q = p;
	uint32_t at = 0, n;

	for (unsigned i = 0; q && len; i++) {
		const bool head = q == p && i == 0;
		const unsigned frag = q == p ? i - 1 : i;
		const uint8_t *data;

		if (!head && frag >= q->nfrag) {
			q = q->chain;
			i = UINT32_MAX;
			continue;
		}
		data = head ? p->head : q->frag[frag].data;
		n = head ? p->head_len : q->frag[frag].len;
		if (from < at + n) {
			const uint32_t skip = from - at, take = n - skip < len ? n - skip : len;

			if (want && memcmp(data + skip, want, take) != 0)
				return false;
			if (want) {
				want += take;
			} else {
				memcpy(to, data + skip, take);
				to += take;
			}
			from += take;
			len -= take;
		}
		at += n;
	}
	return !len;
}

/* Where a frame's payload lies, and where in the packet that was sent it belongs. */
struct place {
	uint32_t at, len, offset;
	bool tcp;
};

static bool payload_find(const struct pkt *p, uint8_t *head, struct place *to)
{
	const uint8_t *ip = head + ETH_HLEN, *l4 = ip + IP_LEN;
	uint32_t n = p->len < HEAD_MAX ? p->len : HEAD_MAX, hlen = UDP_LEN;

	if (n < ETH_HLEN + IP_LEN + UDP_LEN || !bytes_walk(p, 0, n, NULL, head))
		return false;
	if (get_be16(head + 12) != ETH_TYPE_IP4 || ip[0] != 0x45 || (ip[9] != 17 && ip[9] != 6))
		return false;
	to->offset = 0;
	to->tcp = ip[9] == 6;
	if (to->tcp) {
		if (n < ETH_HLEN + IP_LEN + 20)
			return false;
		hlen = (uint32_t)(l4[12] >> 4) * 4;
		to->offset = get_be32(l4 + 4) - 1;
	}
	to->at = ETH_HLEN + IP_LEN + hlen;
	n = get_be16(ip + 2);
	if (n < IP_LEN + hlen || n + ETH_HLEN > p->len)
		return false;
	to->len = n - IP_LEN - hlen;
	return to->len && to->offset < STAMP_PAYLOAD && to->len <= STAMP_PAYLOAD - to->offset;
}

static void seen_forget(struct stamp_check *s, uint32_t from, uint32_t to)
{
	if (to - from >= STAMP_WINDOW) {
		memset(s->seen, 0, sizeof(s->seen));
		return;
	}
	for (; from != to; from++)
		s->seen[from % STAMP_WINDOW / 64] &= ~(UINT64_C(1) << from % 64);
}

static void serial_count(struct stamp_check *s, uint32_t serial)
{
	const uint64_t bit = UINT64_C(1) << serial % 64;
	uint64_t *word = &s->seen[serial % STAMP_WINDOW / 64];

	if ((int32_t)(serial - s->next) >= 0) {
		seen_forget(s, s->next, serial + 1);
		s->next = serial + 1;
	} else if (s->next - serial > STAMP_WINDOW) {
		s->reordered++;
		return;
	} else if (*word & bit) {
		s->duplicated++;
		return;
	} else {
		s->reordered++;
		if ((int32_t)(serial - s->first) < 0)
			s->first = serial;
	}
	*word |= bit;
}

/* The stamp is whole, and the packet as long as it says, or the first segment of it. */
static bool stamp_read(struct stamp_check *s, const uint8_t *stamp, const struct place *at)
{
	const uint32_t run = get_be32(stamp + 4), serial = get_be32(stamp + 8),
		       len = get_be32(stamp + 12);

	if (get_be32(stamp + 16) != stamp_sum(run, serial, len))
		return false;
	if (at->tcp ? at->len > len : at->len != len)
		return false;
	if (!s->begun) {
		s->begun = true;
		s->run = run;
		s->first = s->next = serial;
		stamp_pattern(s->pattern, run, 0, STAMP_PAYLOAD);
	}
	return run == s->run;
}

static bool packet_good(
	struct stamp_check *s, const struct pkt *p, const uint8_t *head, const struct place *at)
{
	const uint32_t skip = at->offset ? 0 : STAMP_LEN;

	if (!at->offset && !stamp_read(s, head + at->at, at))
		return false;
	return bytes_walk(p, at->at + skip, at->len - skip, s->pattern + at->offset + skip, NULL);
}

bool stamp_check(struct stamp_check *s, const struct pkt *p)
{
	uint8_t head[HEAD_MAX + STAMP_LEN] = {0};
	struct place at;

	if (!payload_find(p, head, &at) ||
		(!at.offset && (at.len < STAMP_LEN || get_be32(head + at.at) != MAGIC)) ||
		(at.offset && !s->begun)) {
		s->foreign++;
		return false;
	}
	if (!packet_good(s, p, head, &at)) {
		s->corrupt++;
		return false;
	}
	s->bytes += at.len;
	if (at.offset) {
		s->segments++;
	} else {
		s->good++;
		s->bytes_due += get_be32(head + at.at + 12);
		serial_count(s, get_be32(head + at.at + 8));
	}
	return true;
}

uint64_t stamp_missing(const struct stamp_check *s)
{
	const uint64_t sent = s->next - s->first, came = s->good - s->duplicated;

	return s->begun && sent > came ? sent - came : 0;
}

uint64_t stamp_missing_bytes(const struct stamp_check *s)
{
	return s->bytes_due > s->bytes ? s->bytes_due - s->bytes : 0;
}
