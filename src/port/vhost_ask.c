/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_ask: what a front-end asks, from the first word until the device works: a table, one line per
 * step, in the order of [VIRTIO 1.2 3.1.1]. [QEMU docs/interop/vhost-user]
 *
 * One request is on its way at a time: the next goes out when it has been answered, or, where it has
 * no answer, when it has been sent. So an answer can only be to one question, and whatever comes
 * besides is a breach. Where the back-end can, it is made to acknowledge each request; that way a
 * refusal has a name, while a back-end that cannot just hangs up.
 */
#include <stdio.h>
#include <string.h>

#include "port/vhost_fe_int.h"
#include "port/vnet.h"

#define BIT(n)     (UINT64_C(1) << (n))
#define P(name)    BIT(VHOST_USER_PROTOCOL_F_##name)
#define P_ANY      BIT(VHOST_USER_F_PROTOCOL_FEATURES)
#define P_WANT     (P(MQ) | P(REPLY_ACK) | P(NET_MTU) | P(CONFIG) | P(STATUS))
#define REPLY_U64  8
#define CONFIG_HDR 12

#define STATUS_ACKNOWLEDGE 0x01 /* [VIRTIO 1.2 2.1] */
#define STATUS_DRIVER      0x02
#define STATUS_DRIVER_OK   0x04
#define STATUS_FEATURES_OK 0x08
#define STATUS_SEEN        (STATUS_ACKNOWLEDGE | STATUS_DRIVER)
#define STATUS_AGREED      (STATUS_SEEN | STATUS_FEATURES_OK)

struct saying {
	struct vhost_user_msg m;
	int fd;
	uint32_t reply_size;
};

struct step {
	uint32_t request; /* 0: nothing is said, `act` only */
	unsigned arg;
	uint64_t need; /* protocol features without which the step is left out */
	/* fills in the payload; false: not this time */
	bool (*say)(struct vhost_fe *, unsigned arg, struct saying *);
	/* judges a reply other than an acknowledgement */
	const char *(*heard)(struct vhost_fe *, const struct vhost_user_msg *);
	const char *(*act)(struct vhost_fe *);
};

static void say_bytes(struct saying *s, const void *payload, uint32_t size)
{
	memcpy(s->m.u.bytes, payload, size);
	s->m.hdr.size = size;
}

static void say_u64(struct saying *s, uint64_t v)
{
	say_bytes(s, &v, sizeof(v));
}

static bool say_state(struct saying *s, uint32_t index, uint32_t num)
{
	s->m.u.state.index = index;
	s->m.u.state.num = num;
	s->m.hdr.size = sizeof(s->m.u.state);
	return true;
}

/* features */

static const char *features_heard(struct vhost_fe *fe, const struct vhost_user_msg *m)
{
	uint64_t lacks;
	char names[VHOST_FE_REASON / 2];

	fe->offered = m->u.u64 & ~P_ANY;
	fe->protocol = m->u.u64 & P_ANY;
	fe->features = vnet_features_close(fe->offered & fe->config.want);
	lacks = fe->config.need & ~fe->features;
	if (!lacks)
		return NULL;
	snprintf(fe->reason, sizeof(fe->reason), "the back-end lacks a needed feature: %s",
		vnet_features_text(lacks, names, sizeof(names)));
	return fe->reason;
}

static const char *protocol_heard(struct vhost_fe *fe, const struct vhost_user_msg *m)
{
	fe->protocol |= m->u.u64 & P_WANT;
	return NULL;
}

static bool say_protocol(struct vhost_fe *fe, unsigned arg, struct saying *s)
{
	(void)arg;
	say_u64(s, fe->protocol & ~P_ANY);
	return true;
}

static const char *queues_heard(struct vhost_fe *fe, const struct vhost_user_msg *m)
{
	(void)fe;
	return m->u.u64 ? NULL : "the back-end has no queues";
}

static bool say_features(struct vhost_fe *fe, unsigned arg, struct saying *s)
{
	(void)arg;
	if (fe->events->choose)
		fe->features &= fe->events->choose(fe->ctx, fe->features);
	say_u64(s, fe->features | (fe->protocol & P_ANY));
	return true;
}

/* device */

static bool say_config(struct vhost_fe *fe, unsigned arg, struct saying *s)
{
	(void)fe;
	(void)arg;
	s->m.u.config.size = VHOST_FE_CONFIG_LEN;
	s->m.hdr.size = CONFIG_HDR + VHOST_FE_CONFIG_LEN;
	s->reply_size = s->m.hdr.size;
	return true;
}

static const char *config_heard(struct vhost_fe *fe, const struct vhost_user_msg *m)
{
	if (!m->hdr.size) /* the protocol's way to say no */
		return NULL;
	if (m->u.config.offset || m->u.config.size != VHOST_FE_CONFIG_LEN)
		return "the back-end told another part of the configuration";
	memcpy(fe->space, m->u.config.data, sizeof(fe->space));
	fe->space_told = true;
	return NULL;
}

static bool say_status(struct vhost_fe *fe, unsigned arg, struct saying *s)
{
	(void)fe;
	say_u64(s, arg);
	return true;
}

static const char *status_heard(struct vhost_fe *fe, const struct vhost_user_msg *m)
{
	(void)fe;
	return m->u.u64 & STATUS_FEATURES_OK ? NULL : "the back-end does not accept the features";
}

static bool say_mtu(struct vhost_fe *fe, unsigned arg, struct saying *s)
{
	(void)arg;
	say_u64(s, fe->config.mtu);
	return fe->config.mtu && fe->features & VNET_BIT(MTU);
}

static const char *rings_ask(struct vhost_fe *fe)
{
	struct vhost_fe_ring ring[VHOST_FE_RINGS] = {0};
	struct err err = {""};

	if (fe->events->rings(fe->ctx, fe->features, ring, &err)) {
		snprintf(fe->reason, sizeof(fe->reason), "%.*s", VHOST_FE_REASON - 1, err.text);
		return fe->reason;
	}
	fe->ring_set = true;
	for (unsigned q = 0; q < VHOST_FE_RINGS; q++)
		fe->queue[q].ring = ring[q];
	return vhost_fe_signals(fe);
}

/* One region, at whose guest address and user address our own addresses lie. */
static bool say_memory(struct vhost_fe *fe, unsigned arg, struct saying *s)
{
	uint64_t at = (uintptr_t)fe->config.mem;

	(void)arg;
	s->m.u.mem.n = 1;
	s->m.u.mem.region[0] = (struct vhost_user_region){at, fe->config.mem_len, at, 0};
	s->m.hdr.size = (uint32_t)((uint8_t *)&s->m.u.mem.region[1] - s->m.u.bytes);
	s->fd = fe->config.mem_fd;
	return true;
}

/* rings */

static bool say_num(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	return say_state(s, q, fe->queue[q].ring.size);
}

static bool say_base(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	return say_state(s, q, fe->queue[q].ring.base);
}

static bool say_addr(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	const struct vhost_fe_ring *r = &fe->queue[q].ring;

	s->m.u.addr.index = q;
	s->m.u.addr.desc = (uintptr_t)r->desc;
	s->m.u.addr.avail = (uintptr_t)r->avail;
	s->m.u.addr.used = (uintptr_t)r->used;
	s->m.hdr.size = sizeof(s->m.u.addr);
	return true;
}

static bool say_kick(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	s->fd = fe->queue[q].kick;
	say_u64(s, q);
	return true;
}

static bool say_call(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	s->fd = fe->queue[q].call.fd;
	say_u64(s, q);
	return true;
}

static bool say_err(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	s->fd = fe->queue[q].err.fd;
	say_u64(s, q);
	return true;
}

static bool say_enable(struct vhost_fe *fe, unsigned q, struct saying *s)
{
	(void)fe;
	return say_state(s, q, 1);
}

/* the table */

#define SAY(what, f, ...)                                                                          \
	{                                                                                          \
		.request = VHOST_USER_##what, .say = (f), ##__VA_ARGS__                            \
	}
#define STATUS(n) SAY(SET_STATUS, say_status, .arg = (n), .need = P(STATUS))
#define RING(q)                                                                                    \
	SAY(SET_VRING_NUM, say_num, .arg = (q)), SAY(SET_VRING_BASE, say_base, .arg = (q)),        \
		SAY(SET_VRING_ADDR, say_addr, .arg = (q)),                                         \
		SAY(SET_VRING_CALL, say_call, .arg = (q)),                                         \
		SAY(SET_VRING_ERR, say_err, .arg = (q)), SAY(SET_VRING_KICK, say_kick, .arg = (q))

static const struct step steps[] = {
	SAY(GET_FEATURES, NULL, .heard = features_heard),
	SAY(GET_PROTOCOL_FEATURES, NULL, .heard = protocol_heard, .need = P_ANY),
	SAY(SET_PROTOCOL_FEATURES, say_protocol, .need = P_ANY),
	SAY(GET_QUEUE_NUM, NULL, .heard = queues_heard, .need = P(MQ)),
	SAY(SET_OWNER, NULL),
	STATUS(0),
	STATUS(STATUS_ACKNOWLEDGE),
	STATUS(STATUS_SEEN),
	SAY(GET_CONFIG, say_config, .heard = config_heard, .need = P(CONFIG)),
	SAY(SET_FEATURES, say_features),
	STATUS(STATUS_AGREED),
	SAY(GET_STATUS, NULL, .heard = status_heard, .need = P(STATUS)),
	SAY(NET_SET_MTU, say_mtu, .need = P(NET_MTU)),
	{.act = rings_ask},
	SAY(SET_MEM_TABLE, say_memory),
	RING(0),
	RING(1),
	SAY(SET_VRING_ENABLE, say_enable, .arg = 0, .need = P_ANY),
	SAY(SET_VRING_ENABLE, say_enable, .arg = 1, .need = P_ANY),
	STATUS(STATUS_AGREED | STATUS_DRIVER_OK),
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

/* going through it */

/* Back-ends differ in whether the message that agrees on acknowledgements is itself acknowledged. */
static bool step_is_acknowledged(const struct vhost_fe *fe, const struct step *st)
{
	return fe->protocol & P(REPLY_ACK) && st->request != VHOST_USER_SET_PROTOCOL_FEATURES;
}

static const char *step_say(struct vhost_fe *fe, const struct step *st)
{
	struct saying s = {.m.hdr.request = st->request, .fd = -1};

	if (vhost_user_has_reply(st->request)) {
		s.reply_size = REPLY_U64;
	} else if (step_is_acknowledged(fe, st)) {
		s.m.hdr.flags = VHOST_USER_F_NEED_REPLY;
		s.reply_size = REPLY_U64;
	}
	if (st->say && !st->say(fe, st->arg, &s))
		return NULL;
	fe->asked = s.reply_size > 0;
	return vhost_io_request(&fe->conn.io, &s.m, s.fd, s.reply_size);
}

static const char *step_heard(struct vhost_fe *fe, const struct step *st)
{
	const struct vhost_io *io = &fe->conn.io;

	if (io->nfds || io->fds_bad)
		return "the back-end sent descriptors with a reply";
	if (st->heard)
		return st->heard(fe, &io->msg);
	if (!io->msg.u.u64)
		return NULL;
	snprintf(fe->reason, sizeof(fe->reason), "the back-end refused %s", vhost_ask_name(fe));
	return fe->reason;
}

/* Reading before a question notices what comes unasked. */
static const char *step_begin(struct vhost_fe *fe, const struct step *st)
{
	bool complete;
	const char *reason = vhost_io_receive(&fe->conn.io, &complete);

	if (reason)
		return reason;
	return st->act ? st->act(fe) : step_say(fe, st);
}

static const char *step_answer(struct vhost_fe *fe, const struct step *st, bool *complete)
{
	const char *reason = vhost_io_receive(&fe->conn.io, complete);

	if (reason || !*complete)
		return reason;
	fe->asked = false;
	reason = step_heard(fe, st);
	vhost_io_next(&fe->conn.io);
	return reason;
}

/* One thing done of a step; *wait: nothing can be done now. */
static const char *step_go_on(struct vhost_fe *fe, bool *wait)
{
	const struct step *st = &steps[fe->step];
	const char *reason = NULL;
	bool complete = true;

	if (fe->asked)
		reason = step_answer(fe, st, &complete);
	else if ((fe->protocol & st->need) == st->need)
		reason = step_begin(fe, st);
	*wait = !complete;
	if (!reason && !fe->asked)
		fe->step++;
	return reason;
}

const char *vhost_ask(struct vhost_fe *fe, bool *done)
{
	const char *reason = NULL;
	bool wait = false;

	while (!reason && !wait && fe->step < N_STEPS && !vhost_io_blocked(&fe->conn.io))
		reason = step_go_on(fe, &wait);
	*done = !reason && fe->step == N_STEPS && !vhost_io_blocked(&fe->conn.io);
	return reason;
}

const char *vhost_ask_name(const struct vhost_fe *fe)
{
	const char *name = fe->step < N_STEPS ? vhost_user_name(steps[fe->step].request) : NULL;

	return name ? name : "the rings";
}

void vhost_ask_stop(struct vhost_fe *fe)
{
	struct vhost_io *io = &fe->conn.io;

	for (unsigned q = 0; q < VHOST_FE_RINGS && fe->protocol & P_ANY; q++) {
		struct saying s = {.m.hdr.request = VHOST_USER_SET_VRING_ENABLE};

		say_state(&s, q, 0);
		if (vhost_io_blocked(io) || vhost_io_request(io, &s.m, -1, 0))
			return;
	}
	if (fe->protocol & P(STATUS) && !vhost_io_blocked(io)) {
		struct saying s = {.m.hdr.request = VHOST_USER_SET_STATUS};

		say_u64(&s, 0);
		vhost_io_request(io, &s.m, -1, 0);
	}
}
