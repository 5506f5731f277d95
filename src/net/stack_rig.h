/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_rig: two hosts on one wire, in virtual time, for tests: 10.0.0.1 and 2, 2001:db8::1 and 2. A
 * hook sees every packet on the wire and may take it away.
 */
#ifndef NET_STACK_RIG_H
#define NET_STACK_RIG_H

#include <stdlib.h>
#include <string.h>

#include "frame/offload.h"
#include "net/stack.h"
#include "wire/hdrs.h"

struct rig {
	struct stack *s[2];
	nsec_t now;
	bool wire;                     /* super-packets are cut and checksums finished on the way */
	unsigned frames[2], supers[2]; /* sent by each */
	bool (*hook)(struct rig *, unsigned from, struct frame *); /* false: lost */
	void *ctx;
	struct burst b;
	struct fit fit;
};

static inline struct ip_addr rig_ip(const char *text)
{
	struct ip_addr a;

	if (!ip_addr_parse_text(text, &a))
		abort();
	return a;
}

static inline struct ip_addr rig_addr(unsigned host, unsigned version)
{
	return version == 4 ? rig_ip(host ? "10.0.0.2" : "10.0.0.1")
			    : rig_ip(host ? "2001:db8::2" : "2001:db8::1");
}

static inline struct stack_conf rig_conf(unsigned host)
{
	struct stack_conf c = {.mac = {2, 0, 0, 0, 0, (uint8_t)(1 + host)},
		.seed = 7 + host,
		.headroom = 12,
		.memory = 16 << 20};

	memset(c.secret, 0x11 * (int)(host + 1), sizeof(c.secret));
	return c;
}

static inline void rig_init_conf(
	struct rig *r, const struct stack_conf *c0, const struct stack_conf *c1)
{
	const struct stack_conf *c[2] = {c0, c1};
	struct err err;

	*r = (struct rig){.now = NSEC_PER_SEC};
	for (unsigned i = 0; i < 2; i++)
		if (stack_new(&r->s[i], c[i], r->now, &err))
			abort();
}

static inline void rig_addresses(struct rig *r)
{
	struct err err;

	for (unsigned i = 0; i < 2; i++) {
		const struct ip_addr v4 = rig_addr(i, 4), v6 = rig_addr(i, 6);

		if (stack_add_addr(r->s[i], &v4, 96 + 24, r->now, &err) ||
			stack_add_addr(r->s[i], &v6, 64, r->now, &err))
			abort();
	}
}

static inline void rig_fini(struct rig *r)
{
	stack_free(r->s[0]);
	stack_free(r->s[1]);
}

/* What one host sends, in bursts, the way a port would hand it over. */
static inline unsigned rig_move(struct rig *r, unsigned from)
{
	struct pkt *held[BURST_FRAMES];
	struct frame out[BURST_FRAMES];
	unsigned n = 0, m = 0, moved = 0;
	struct pkt *p;

	r->b.niov = 0;
	while (n < BURST_FRAMES && (p = stack_out(r->s[from], r->now))) {
		struct frame *f = &r->b.f[n];

		if (p->headroom < 12) /* room for the driver's header, always (S2) */
			abort();

		if (!pkt_lend(p, f, &r->b.head[n], &r->b.iov[r->b.niov], BURST_IOV - r->b.niov))
			abort();
		r->b.niov += f->ntail;
		held[n++] = p;
		r->frames[from]++;
		r->supers[from] += f->off.gso != 0;
		if (offload_check(f) != DROP_NONE)
			abort();
		if (r->hook && !r->hook(r, from, f))
			continue;
		if (r->wire && f->off.gso) {
			unsigned total = fit_segments(f);

			stack_in(r->s[!from], out, m, r->now);
			m = 0;
			for (unsigned done = 0; done < total; done += r->fit.n) {
				fit_reset(&r->fit);
				if (fit_segment(&r->fit, f, done, 0) != DROP_NONE)
					abort();
				stack_in(r->s[!from], r->fit.f, r->fit.n, r->now);
			}
		} else if (r->wire && f->off.flags) {
			stack_in(r->s[!from], out, m, r->now);
			m = 0;
			fit_reset(&r->fit);
			if (fit_csum(&r->fit, f) != DROP_NONE)
				abort();
			stack_in(r->s[!from], r->fit.f, 1, r->now);
		} else {
			out[m++] = *f;
		}
	}
	moved = n;
	stack_in(r->s[!from], out, m, r->now);
	for (unsigned i = 0; i < n; i++)
		pkt_free(held[i]);
	return moved;
}

static inline void rig_settle(struct rig *r)
{
	while (rig_move(r, 0) + rig_move(r, 1))
		;
}

/* Let time pass, stepping from one deadline to the next. */
static inline void rig_run(struct rig *r, nsec_t span)
{
	const nsec_t end = r->now + span;

	rig_settle(r);
	for (;;) {
		const nsec_t a = stack_deadline(r->s[0]), b = stack_deadline(r->s[1]);
		const nsec_t at = a < b ? a : b;

		if (at > end)
			break;
		if (at > r->now)
			r->now = at;
		stack_timer(r->s[0], r->now);
		stack_timer(r->s[1], r->now);
		rig_settle(r);
	}
	r->now = end;
	stack_timer(r->s[0], r->now);
	stack_timer(r->s[1], r->now);
	rig_settle(r);
}

/* A frame from nowhere, in one piece. */
static inline void rig_inject(struct rig *r, unsigned to, const void *data, uint32_t len)
{
	struct frame_head head;
	struct iovec tail;
	struct frame f = {.head = head.data, .tail = &tail};

	f.head_len = (uint16_t)(len < FRAME_HEAD ? len : FRAME_HEAD);
	memcpy(head.data, data, f.head_len);
	if (len > FRAME_HEAD) {
		tail = (struct iovec){(uint8_t *)(uintptr_t)data + FRAME_HEAD, len - FRAME_HEAD};
		f.ntail = 1;
		f.tail_len = len - FRAME_HEAD;
	}
	stack_in(r->s[to], &f, 1, r->now);
}

/* For cmocka: two hosts that know each other, three seconds old. */
static inline int rig_setup(void **state)
{
	struct rig *r = malloc(sizeof(*r));
	const struct stack_conf a = rig_conf(0), b = rig_conf(1);

	rig_init_conf(r, &a, &b);
	rig_addresses(r);
	rig_run(r, 3 * NSEC_PER_SEC);
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;

	rig_fini(r);
	free(r);
	return 0;
}

#endif
