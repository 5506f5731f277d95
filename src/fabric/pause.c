/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause: the bucket of pause.h. Pure arithmetic on times that it is told.
 */
#include "fabric/pause.h"

void pause_init(struct pause *p, nsec_t now)
{
	p->at = now;
	p->left = PAUSE_CAPACITY;
	p->spare = PAUSE_SPARE;
}

nsec_t pause_grant(struct pause *p, nsec_t now, nsec_t wait, bool alone)
{
	nsec_t come = (now - p->at) / PAUSE_REFILL, most;

	p->left += come;
	p->spare += come;
	if (p->spare > PAUSE_SPARE)
		p->spare = PAUSE_SPARE;
	p->at += come * PAUSE_REFILL; /* the remainder counts next time */
	if (p->left >= PAUSE_CAPACITY) {
		p->left = PAUSE_CAPACITY;
		p->at = now;
	}
	most = alone ? p->spare : p->left;
	if (most < (wait < PAUSE_MIN ? wait : PAUSE_MIN))
		return 0;
	return wait < most ? wait : most;
}

void pause_charge(struct pause *p, nsec_t spent, bool alone)
{
	if (alone) /* a late timer kept nobody: no debt */
		p->spare -= spent < p->spare ? spent : p->spare;
	else
		p->left -= spent;
}

bool pause_earn(struct pause *p, uint64_t bytes)
{
	p->spare += (nsec_t)(bytes * (NSEC_PER_SEC / PAUSE_RATE));
	if (p->spare < PAUSE_SPARE)
		return true;
	p->spare = PAUSE_SPARE;
	return false;
}
