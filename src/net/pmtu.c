/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pmtu: the cache of path MTUs. [RFC 1191, RFC 8201]
 */
#include "net/pmtu.h"

#include "net/siphash.h"

static unsigned slot_of(const struct pmtu_cache *c, const struct ip_addr *dst)
{
	return siphash(c->key, dst, sizeof(*dst)) % PMTU_SLOTS;
}

uint32_t pmtu_find(const struct pmtu_cache *c, const struct ip_addr *dst, uint32_t mtu, nsec_t now)
{
	const struct pmtu_slot *s = &c->slot[slot_of(c, dst)];

	if (s->mtu && s->mtu < mtu && now < s->until && ip_addr_equal(&s->dst, dst))
		return s->mtu;
	return mtu;
}

bool pmtu_learn(struct pmtu_cache *c, const struct ip_addr *dst, uint32_t mtu, uint32_t link_mtu,
	nsec_t now)
{
	struct pmtu_slot *s;

	if (mtu < (ip_addr_is4(dst) ? PMTU_MIN4 : PMTU_MIN6) ||
		mtu >= pmtu_find(c, dst, link_mtu, now))
		return false;
	s = &c->slot[slot_of(c, dst)];
	c->evicted += s->mtu && now < s->until && !ip_addr_equal(&s->dst, dst);
	*s = (struct pmtu_slot){*dst, mtu, now + PMTU_AGE};
	return true;
}
