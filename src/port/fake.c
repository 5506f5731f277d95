/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake: a port for tests. It owns copies of what it lends and of what it took.
 */
#include "port/fake.h"

#include <stdlib.h>
#include <string.h>

#include "wire/csum.h"
#include "wire/eth.h"

static struct fake *fake_of(struct port *p)
{
	return (struct fake *)((char *)p - offsetof(struct fake, port));
}

static struct fake_frame *list_add(struct fake_list *l, uint32_t len)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->f = realloc(l->f, l->cap * sizeof(*l->f));
	}
	l->f[l->n] = (struct fake_frame){.data = malloc(len), .len = len};
	return &l->f[l->n++];
}

void fake_clear(struct fake_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->f[i].data);
	free(l->f);
	*l = (struct fake_list){0};
}

static unsigned fake_pull(struct portq *q, struct burst *b, unsigned max)
{
	struct fake *k = fake_of(q->port);
	unsigned at = k->next;

	k->pulls++;
	k->armed = false;
	k->last_max = max;
	while (b->n < max && b->bytes < BURST_BYTES && k->port.link) {
		struct frame *f = &b->f[b->n];
		struct fake_frame *s;

		if (at == k->lend.n && k->endless)
			at = 0;
		if (at >= k->lend.n)
			break;
		s = &k->lend.f[at++];
		*f = (struct frame){
			.head = b->head[b->n].data, .tail = &b->iov[b->niov], .off = s->off};
		f->head_len = (uint16_t)(s->len < FRAME_HEAD ? s->len : FRAME_HEAD);
		f->tail_len = s->len - f->head_len;
		memcpy(f->head, s->data, f->head_len);
		if (f->tail_len) {
			f->ntail = 1;
			b->iov[b->niov++] = (struct iovec){s->data + f->head_len, f->tail_len};
		}
		b->bytes += s->len;
		b->n++;
	}
	return b->n;
}

static void fake_settle(struct portq *q, const struct burst *b, unsigned n)
{
	struct fake *k = fake_of(q->port);

	(void)b;
	k->settles++;
	k->next += n;
	if (k->endless)
		k->next %= k->lend.n;
}

static unsigned fake_push(struct portq *q, const struct frame *f, unsigned n)
{
	struct fake *k = fake_of(q->port);
	unsigned i;

	k->pushes++;
	for (i = 0; i < n && k->room; i++) {
		if (k->room != FAKE_ANY)
			k->room--;
		k->unflushed++;
		if (k->lose) {
			port_drop_out(q, &f[i], k->lose);
		} else if (k->keep) {
			struct fake_frame *g = list_add(&k->got, frame_len(&f[i]));
			struct iovec to = {g->data, g->len};

			g->off = f[i].off;
			frame_copy(&f[i], 0, g->len, &to, 1, 0);
		}
	}
	return i;
}

static void fake_flush(struct portq *q)
{
	struct fake *k = fake_of(q->port);

	k->flushes++;
	k->unflushed = 0;
}

static bool fake_arm(struct portq *q)
{
	struct fake *k = fake_of(q->port);

	k->arms++;
	if (k->next < k->lend.n)
		return true;
	k->armed = true;
	return false;
}

static bool fake_arm_room(struct portq *q, uint32_t need)
{
	struct fake *k = fake_of(q->port);

	k->room_need = need;
	k->room_armed = !k->room && !k->lie;
	return !k->room_armed;
}

static void fake_close(struct port *p)
{
	port_set_link(p, false);
}

static const struct port_ops fake_ops = {
	.kind = "fake",
	.pull = fake_pull,
	.settle = fake_settle,
	.push = fake_push,
	.flush = fake_flush,
	.arm = fake_arm,
	.arm_room = fake_arm_room,
	.close = fake_close,
};

void fake_init(struct fake *k, const char *name, struct loop *loop)
{
	memset(k, 0, sizeof(*k));
	port_init(&k->port, &fake_ops, name, loop, NULL);
	k->port.accepts = ACCEPT_ALL;
	k->port.link = true;
	k->room = FAKE_ANY;
	k->keep = true;
}

void fake_fini(struct fake *k)
{
	fake_clear(&k->lend);
	fake_clear(&k->got);
}

void fake_lend(struct fake *k, const void *data, uint32_t len, const struct offload *off)
{
	struct fake_frame *f = list_add(&k->lend, len);

	memcpy(f->data, data, len);
	if (off)
		f->off = *off;
}

void fake_kick(struct fake *k)
{
	k->armed = false;
	port_ready(&k->port.q);
}

void fake_give_room(struct fake *k, uint32_t room)
{
	k->room = room == FAKE_ANY ? FAKE_ANY : k->room + room;
	if (!k->room_armed || !k->room)
		return;
	k->room_armed = false;
	port_room(&k->port.q);
}

void fake_link(struct fake *k, bool up)
{
	port_set_link(&k->port, up);
}

/* frames */

static void put_u48(uint8_t *p, uint64_t v)
{
	put_be16(p, (uint16_t)(v >> 32));
	put_be32(p + 2, (uint32_t)v);
}

static uint32_t put_eth(uint8_t *buf, uint64_t dst, uint64_t src, uint16_t tag, uint16_t type)
{
	put_u48(buf, dst);
	put_u48(buf + 6, src);
	put_be16(buf + 12, type);
	if (!tag)
		return ETH_HLEN;
	put_be16(buf + 12, ETH_TYPE_VLAN);
	put_be16(buf + 14, tag);
	put_be16(buf + 16, type);
	return ETH_HLEN + VLAN_HLEN;
}

uint32_t fake_eth(
	uint8_t *buf, uint64_t dst, uint64_t src, uint16_t tag, uint32_t len, uint32_t count)
{
	uint32_t at = put_eth(buf, dst, src, tag, 0x88b5); /* local experimental */

	for (uint32_t i = at; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + count);
	if (at + 4 <= len)
		put_be32(buf + at, count);
	return len;
}

uint32_t fake_tcp4(uint8_t *buf, uint64_t dst, uint64_t src, uint32_t payload, uint16_t gso_size,
	uint32_t seq, struct offload *off)
{
	uint8_t *ip = buf + put_eth(buf, dst, src, 0, ETH_TYPE_IP4), *tcp = ip + 20;
	struct csum c = {0};

	memset(ip, 0, 40);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(40 + payload));
	put_be16(ip + 4, (uint16_t)seq);
	put_be16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = 6;
	memcpy(ip + 12, "\x0a\0\0\1\x0a\0\0\2", 8);
	csum_piece(&c, ip, 20);
	put_be16(ip + 10, csum_end(&c));

	put_be16(tcp, 1000);
	put_be16(tcp + 2, 2000);
	put_be32(tcp + 4, seq);
	tcp[12] = 5 << 4;
	tcp[13] = 0x18; /* PSH, ACK */
	c = (struct csum){0};
	csum_pseudo4(&c, ip + 12, ip + 16, 6, 20 + payload);
	put_be16(tcp + 16, csum_fold(&c));
	for (uint32_t i = 0; i < payload; i++)
		tcp[20 + i] = (uint8_t)((seq + i) * 131 >> 3);
	*off = (struct offload){
		.flags = OFF_NEEDS_CSUM,
		.gso = gso_size ? OFF_GSO_TCPV4 : OFF_GSO_NONE,
		.gso_size = gso_size,
		.csum_start = ETH_HLEN + 20,
		.csum_off = 16,
		.hdr_len = gso_size ? ETH_HLEN + 40 : 0,
	};
	return ETH_HLEN + 40 + payload;
}

bool fake_tcp4_good(const struct fake_frame *f)
{
	const uint8_t *ip = f->data + ETH_HLEN;
	struct csum c = {0};

	if (f->len < ETH_HLEN + 40 || get_be16(ip + 2) != f->len - ETH_HLEN)
		return false;
	csum_piece(&c, ip, 20);
	if (csum_end(&c))
		return false;
	c = (struct csum){0};
	csum_pseudo4(&c, ip + 12, ip + 16, 6, f->len - ETH_HLEN - 20);
	csum_piece(&c, ip + 20, f->len - ETH_HLEN - 20);
	return !csum_end(&c);
}
