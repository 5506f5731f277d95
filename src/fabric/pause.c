/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pause: the bucket of pause.h. Pure arithmetic on times that it is told.
 */
#include "fabric/pause.h"

void pause_init(struct pause *p, nsec_t now)
{
	p->at = now;
	p->left = PAUSE_CAPACITY;
}

nsec_t pause_grant(struct pause *p, nsec_t now, nsec_t wait)
{
	nsec_t come = (now - p->at) / PAUSE_REFILL;

	p->left += come;
	p->at += come * PAUSE_REFILL; /* the remainder counts next time */
	if (p->left >= PAUSE_CAPACITY) {
		p->left = PAUSE_CAPACITY;
		p->at = now;
	}
	if (p->left < (wait < PAUSE_MIN ? wait : PAUSE_MIN))
		return 0;
	return wait < p->left ? wait : p->left;
}

void pause_charge(struct pause *p, nsec_t spent)
{
	p->left -= spent;
}
