/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_cubic: growth by the time since the last loss, not by round trips. [RFC 9438]
 *
 *	W(t) = C (t - K)^3 + W_max     K = cbrt((W_max - cwnd_epoch) / C)     in segments and seconds
 */
#include "net/tcp_int.h"

#define CUBIC_C    0.4
#define CUBIC_BETA 0.7

/* Without libm: Newton's method from above, exact enough after a few steps. */
static double cube_root(double x)
{
	double r = x > 1 ? x : 1;

	if (x <= 0)
		return 0;
	for (unsigned i = 0; i < 60; i++) {
		double next = (2 * r + x / (r * r)) / 3;

		if (r - next < 1e-9 * r)
			return next;
		r = next;
	}
	return r;
}

static void epoch_start(struct tcp *t, double cwnd)
{
	struct tcp_cubic *c = &t->busy->cubic;

	c->epoch = t->host->now;
	c->w_est = cwnd;
	if (cwnd < c->w_max) {
		c->k = cube_root((c->w_max - cwnd) / CUBIC_C);
		c->origin = c->w_max;
	} else {
		c->k = 0;
		c->origin = cwnd;
	}
}

static double window_at(const struct tcp_cubic *c, nsec_t since)
{
	double d = (double)since / (double)NSEC_PER_SEC - c->k;

	return c->origin + CUBIC_C * d * d * d;
}

/* Sections 4.2 to 4.5. */
void tcp_cubic_acked(struct tcp *t, uint32_t bytes)
{
	struct tcp_cubic *c = &t->busy->cubic;
	double cwnd = (double)t->cc.cwnd / t->mss, acked = (double)bytes / t->mss, target, alpha;
	nsec_t now = t->host->now;

	if (c->epoch == 0)
		epoch_start(t, cwnd);
	target = window_at(c, now - c->epoch + t->srtt);
	if (target < cwnd)
		target = cwnd;
	if (target > 1.5 * cwnd)
		target = 1.5 * cwnd;
	alpha = c->w_est >= c->w_max ? 1.0 : 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA);
	c->w_est += alpha * acked / cwnd;
	if (window_at(c, now - c->epoch) < c->w_est) { /* the region where Reno would be faster */
		if (c->w_est > cwnd)
			t->cc.cwnd = (uint32_t)(c->w_est * t->mss);
		return;
	}
	t->cc.cwnd += (uint32_t)((target - cwnd) / cwnd * acked * t->mss);
}

/* Sections 4.6, 4.7: and room for others if the maximum shrank. */
uint32_t tcp_cubic_ssthresh(struct tcp *t)
{
	struct tcp_cubic *c = &t->busy->cubic;
	double cwnd = (double)t->cc.cwnd / t->mss;

	c->epoch = 0;
	c->w_max = cwnd < c->w_last_max ? cwnd * (1 + CUBIC_BETA) / 2 : cwnd;
	c->w_last_max = cwnd;
	return u32_max((uint32_t)(t->cc.cwnd * CUBIC_BETA), 2 * t->mss);
}
