/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The front-end's session with a scripted back-end that dies, refuses, lies or says nothing. Whatever
 * it does, the session ends with a reason, nothing is left open, and the next session works.
 */
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "port/usock.h"
#include "port/vhost_fe_int.h"
#include "port/vhost_fe_rig.h"

#define F_PROTOCOL   (UINT64_C(1) << VHOST_USER_F_PROTOCOL_FEATURES)
#define P(name)      (UINT64_C(1) << VHOST_USER_PROTOCOL_F_##name)
#define P_ALL        (P(MQ) | P(REPLY_ACK) | P(NET_MTU) | P(CONFIG) | P(STATUS) | P(BACKEND_REQ))
#define ALL_ASKED_OF (P_ALL & ~P(BACKEND_REQ))

enum lie {
	TRUTH,
	LIE_VERSION,
	LIE_NOT_A_REPLY,
	LIE_OTHER_REQUEST,
	LIE_EMPTY,
	LIE_SHORT,
	LIE_LONG,
	LIE_HUGE,
	LIE_EXCESS,
	LIE_TWICE,
	LIE_FD,
	LIE_FDS,
	LIE_SILENCE,
	LIE_REFUSAL,
	LIES
};

/* Why each ends the session, up to where it was. */
static const char *const lie_reason[LIES] = {
	[LIE_VERSION] = "reply of another protocol version",
	[LIE_NOT_A_REPLY] = "a request where a reply is due",
	[LIE_OTHER_REQUEST] = "reply to another request",
	[LIE_EMPTY] = "reply has a wrong size",
	[LIE_SHORT] = "reply has a wrong size",
	[LIE_LONG] = "reply has a wrong size",
	[LIE_HUGE] = "reply has a wrong size",
	[LIE_EXCESS] = "the back-end sent what nobody asked for",
	[LIE_TWICE] = "the back-end sent what nobody asked for",
	[LIE_FD] = "the back-end sent descriptors with a reply",
	[LIE_FDS] = "the back-end sent descriptors with a reply",
	[LIE_SILENCE] = "the back-end does not answer",
	[LIE_REFUSAL] = "the back-end refused",
};

struct liar {
	struct usock_file file;
	int listener, fd;
	uint64_t features, protocol, queues, status;
	uint32_t config_offset;
	uint8_t in[512];
	uint32_t have;
	uint32_t asked[64]; /* requests as they came */
	uint32_t n_asked, n_answered;
	uint64_t arg[64]; /* the first eight bytes of their payloads */
	uint64_t told_protocol, told_features;
	int fds[8], last_fd; /* of kicks, calls, errors: by 2 * (request - KICK) + ring */
	/* what goes wrong */
	enum lie lie;
	uint32_t lie_at;                /* the answer with this number */
	uint32_t read_most, write_most; /* bytes, then it hangs up */
	uint32_t n_read, n_written;
};

static struct liar liar;

static void liar_hang_up(struct liar *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	for (unsigned i = 0; i < 8; i++) {
		if (l->fds[i] >= 0)
			close(l->fds[i]);
		l->fds[i] = -1;
	}
}

static void liar_reset(struct liar *l)
{
	liar_hang_up(l);
	l->have = l->n_asked = l->n_answered = l->n_read = l->n_written = 0;
	l->told_protocol = l->told_features = 0;
	l->lie = TRUTH;
	l->read_most = l->write_most = UINT32_MAX;
}

/* What a peer that has gone before reading it cannot be sent is no failure. */
static void liar_write(struct liar *l, const void *bytes, uint32_t n, unsigned nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 2)];
	} control = {.buf = {0}};
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int two[2] = {l->listener, l->listener};

	if (n > l->write_most - l->n_written)
		iov.iov_len = l->write_most - l->n_written;
	if (nfds) {
		struct cmsghdr *c;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), two, sizeof(int) * nfds);
	}
	if (iov.iov_len)
		(void)!sendmsg(l->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	l->n_written += (uint32_t)iov.iov_len;
	if (l->n_written >= l->write_most)
		liar_hang_up(l);
}

static void liar_reply(
	struct liar *l, const struct vhost_user_msg *m, const void *payload, uint32_t size)
{
	struct vhost_user_msg r = {.hdr = {m->hdr.request, 5, size}};
	enum lie lie = l->lie && l->n_answered == l->lie_at ? l->lie : TRUTH;
	uint8_t bytes[VHOST_USER_HDR_LEN + sizeof(r.u)];
	uint32_t len;

	l->n_answered++;
	memcpy(r.u.bytes, payload, size);
	if (lie == LIE_SILENCE)
		return;
	if (lie == LIE_VERSION)
		r.hdr.flags = 6;
	if (lie == LIE_NOT_A_REPLY)
		r.hdr.flags = 1;
	if (lie == LIE_OTHER_REQUEST)
		r.hdr.request++;
	if (lie == LIE_EMPTY)
		r.hdr.size = 0;
	if (lie == LIE_SHORT)
		r.hdr.size = 7;
	if (lie == LIE_LONG)
		r.hdr.size = size + 1;
	if (lie == LIE_HUGE)
		r.hdr.size = UINT32_MAX;
	if (lie == LIE_REFUSAL)
		r.u.u64 = 1;
	len = VHOST_USER_HDR_LEN + (r.hdr.size > sizeof(r.u) ? (uint32_t)sizeof(r.u) : r.hdr.size);
	memcpy(bytes, &r.hdr, sizeof(r.hdr));
	memcpy(bytes + sizeof(r.hdr), &r.u, sizeof(r.u));
	if (lie == LIE_EXCESS)
		len++;
	liar_write(l, bytes, len, lie == LIE_FD ? 1 : lie == LIE_FDS ? 2 : 0);
	if (lie == LIE_TWICE && l->fd >= 0)
		liar_write(l, bytes, len, 0);
}

static void liar_reply_u64(struct liar *l, const struct vhost_user_msg *m, uint64_t v)
{
	liar_reply(l, m, &v, sizeof(v));
}

static void liar_answer(struct liar *l, const struct vhost_user_msg *m)
{
	struct vhost_user_msg config = *m;
	bool has_ack = l->told_protocol & P(REPLY_ACK);

	assert_true(l->n_asked < 64);
	l->arg[l->n_asked] = m->hdr.size ? m->u.u64 : 0;
	l->asked[l->n_asked++] = m->hdr.request;
	if (vhost_user_has_reply(m->hdr.request))
		assert_int_equal(m->hdr.flags, VHOST_USER_VERSION);
	switch (m->hdr.request) {
	case VHOST_USER_GET_FEATURES:
		liar_reply_u64(l, m, l->features);
		return;
	case VHOST_USER_GET_PROTOCOL_FEATURES:
		liar_reply_u64(l, m, l->protocol);
		return;
	case VHOST_USER_GET_QUEUE_NUM:
		liar_reply_u64(l, m, l->queues);
		return;
	case VHOST_USER_GET_STATUS:
		liar_reply_u64(l, m, l->status);
		return;
	case VHOST_USER_GET_CONFIG:
		memcpy(config.u.config.data, "\2\1\1\1\1\1\0\0\1\0\xdc\5", 12);
		config.u.config.offset = l->config_offset;
		liar_reply(l, m, config.u.bytes, m->hdr.size);
		return;
	case VHOST_USER_SET_PROTOCOL_FEATURES:
		l->told_protocol = m->u.u64;
		break;
	case VHOST_USER_SET_FEATURES:
		l->told_features = m->u.u64;
		break;
	default:
		break;
	}
	assert_int_equal(
		m->hdr.flags, VHOST_USER_VERSION | (has_ack ? VHOST_USER_F_NEED_REPLY : 0));
	if (has_ack)
		liar_reply_u64(l, m, 0);
}

/* It came with the first bytes of a message, of which `from` on is new. */
static void liar_keep_fd(struct liar *l, int fd)
{
	if (l->last_fd >= 0)
		close(l->last_fd);
	l->last_fd = fd;
}

static void liar_message(struct liar *l, const struct vhost_user_msg *m)
{
	uint32_t request = m->hdr.request;

	if (request >= VHOST_USER_SET_VRING_KICK && request <= VHOST_USER_SET_VRING_ERR) {
		unsigned at = 2 * (request - VHOST_USER_SET_VRING_KICK) + (unsigned)m->u.u64;

		assert_true(l->last_fd >= 0 && m->u.u64 < 2);
		if (l->fds[at] >= 0)
			close(l->fds[at]);
		l->fds[at] = l->last_fd;
		l->last_fd = -1;
	}
	/* it came and may go; a refused descriptor would be one too few */
	assert_true((l->last_fd >= 0) == (request == VHOST_USER_SET_MEM_TABLE));
	liar_keep_fd(l, -1);
	liar_answer(l, m);
}

/* Reads no further than one message, nor than it is to live. */
static bool liar_read(struct liar *l)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct vhost_user_hdr hdr;
	uint32_t want = VHOST_USER_HDR_LEN;
	struct iovec iov;
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c;
	ssize_t n;

	memcpy(&hdr, l->in, sizeof(hdr));
	if (l->have >= VHOST_USER_HDR_LEN)
		want += hdr.size;
	want -= l->have;
	iov = (struct iovec){
		l->in + l->have, want < l->read_most - l->n_read ? want : l->read_most - l->n_read};
	n = recvmsg(l->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0) {
		if (!n)
			liar_hang_up(l);
		return false;
	}
	assert_false(mh.msg_flags & MSG_CTRUNC);
	c = CMSG_FIRSTHDR(&mh);
	if (c) {
		int fd;

		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		liar_keep_fd(l, fd);
	}
	l->have += (uint32_t)n;
	l->n_read += (uint32_t)n;
	return true;
}

static void liar_turn(struct liar *l)
{
	if (l->fd < 0)
		l->fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (l->fd >= 0) {
		struct vhost_user_msg m = {0};

		if (l->n_read >= l->read_most) {
			liar_hang_up(l);
			return;
		}
		if (!liar_read(l))
			return;
		memcpy(&m.hdr, l->in, sizeof(m.hdr));
		if (l->have < VHOST_USER_HDR_LEN || l->have < VHOST_USER_HDR_LEN + m.hdr.size)
			continue;
		memcpy(m.u.bytes, l->in + VHOST_USER_HDR_LEN, m.hdr.size);
		memset(l->in, 0, sizeof(l->in));
		l->have = 0;
		liar_message(l, &m);
	}
}

/* the tests */

static int setup(void **state)
{
	struct liar *l = &liar;
	struct rig *r;

	if (fe_setup(state))
		return -1;
	r = *state;
	l->fd = l->last_fd = -1;
	for (unsigned i = 0; i < 8; i++)
		l->fds[i] = -1;
	liar_reset(l);
	l->features = F_PROTOCOL | WANT;
	l->protocol = P_ALL;
	l->queues = 1;
	l->status = 11;
	l->config_offset = 0;
	l->listener = usock_listen(&l->file, r->path, 0600, (gid_t)-1, NULL);
	assert_true(l->listener >= 0);
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	vhost_fe_close(r->fe);
	r->fe = NULL;
	liar_reset(&liar);
	liar_keep_fd(&liar, -1);
	usock_remove(&liar.file, r->path);
	close(liar.listener);
	return fe_teardown(state);
}

static void talk(struct rig *r)
{
	for (int i = 0; i < 60; i++) {
		spin(r);
		liar_turn(&liar);
	}
}

/* Until there is a next session: the back-off passes. */
static void again(struct rig *r)
{
	liar_reset(&liar);
	liar_keep_fd(&liar, -1);
	for (unsigned i = 0; i < 3 && !vhost_fe_up(r->fe); i++) {
		pass(r, 6 * NSEC_PER_SEC);
		talk(r);
	}
	assert_true(vhost_fe_up(r->fe));
}

static void start(struct rig *r)
{
	struct vhost_fe_config c = fe_config(r);

	c.mtu = 1500;
	fe_open(r, &c);
	talk(r);
}

/* A working session; then whoever serves it goes. */
static void prove(struct rig *r)
{
	again(r);
	assert_int_equal(r->n_rings, r->n_down + 1);
	liar_reset(&liar);
	talk(r);
	assert_false(vhost_fe_up(r->fe));
	assert_int_equal(r->n_rings, r->n_down);
	assert_string_equal(vhost_fe_last_end(r->fe), "the back-end hung up");
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void everything_is_asked(void **state)
{
	struct rig *r = *state;
	static const uint32_t order[] = {1, 15, 16, 17, 3, 39, 39, 39, 24, 2, 39, 40, 20, 5, 8, 10,
		9, 13, 14, 12, 8, 10, 9, 13, 14, 12, 18, 18, 39};
	uint8_t mac[6];

	start(r);
	assert_true(vhost_fe_up(r->fe));
	assert_int_equal(liar.n_asked, sizeof(order) / sizeof(order[0]));
	assert_memory_equal(liar.asked, order, sizeof(order));
	assert_int_equal(liar.told_protocol, ALL_ASKED_OF);
	assert_int_equal(liar.told_features, F_PROTOCOL | WANT);
	assert_int_equal(liar.arg[4 + 1], 0); /* status: reset, seen, agreed, in that order */
	assert_int_equal(liar.arg[4 + 2], 1);
	assert_int_equal(liar.arg[4 + 3], 3);
	assert_int_equal(liar.arg[10], 11);
	assert_int_equal(liar.arg[12], 1500);
	assert_int_equal(liar.arg[28], 15);
	assert_true(vhost_fe_mac(r->fe, mac));
	assert_memory_equal(mac, "\2\1\1\1\1\1", 6);
	assert_int_equal(vhost_fe_mtu(r->fe), 1500);
}

static void close_says_goodbye(void **state)
{
	struct rig *r = *state;
	static const uint32_t last[] = {18, 18, 39};

	start(r);
	liar.n_asked = 0;
	liar.told_protocol = 0; /* none of it wants to be acknowledged */
	vhost_fe_close(r->fe);
	r->fe = NULL;
	liar_turn(&liar);
	assert_int_equal(liar.n_asked, 3);
	assert_memory_equal(liar.asked, last, sizeof(last));
	assert_int_equal(liar.arg[0], 0); /* ring 0, off */
	assert_int_equal(liar.arg[1], 1);
	assert_int_equal(liar.arg[2], 0);
	assert_int_equal(r->n_down, 0);
}

/* The oldest kind of back-end: no protocol features, so no acknowledgement and no enabling. */
static void nothing_but_the_basics(void **state)
{
	struct rig *r = *state;
	static const uint32_t order[] = {1, 3, 2, 5, 8, 10, 9, 13, 14, 12, 8, 10, 9, 13, 14, 12};

	liar.features = WANT;
	start(r);
	assert_true(vhost_fe_up(r->fe));
	assert_int_equal(liar.n_asked, sizeof(order) / sizeof(order[0]));
	assert_memory_equal(liar.asked, order, sizeof(order));
	assert_int_equal(liar.told_features, WANT);
	assert_int_equal(vhost_fe_mtu(r->fe), 0);
}

static void each_protocol_feature_alone(void **state)
{
	struct rig *r = *state;

	start(r);
	for (unsigned bit = 0; bit < 64; bit++) {
		liar.protocol = UINT64_C(1) << bit;
		liar_reset(&liar);
		talk(r);
		again(r);
		assert_int_equal(liar.told_protocol, liar.protocol & ALL_ASKED_OF);
	}
}

static void kicks_and_calls_arrive(void **state)
{
	struct rig *r = *state;
	eventfd_t n;

	start(r);
	for (unsigned q = 0; q < 2; q++) {
		assert_int_equal(eventfd_read(liar.fds[q], &n), 0); /* the first, unasked for */
		assert_int_equal(eventfd_read(liar.fds[q], &n), -1);
		vhost_fe_kick(r->fe, q);
		assert_int_equal(eventfd_read(liar.fds[q], &n), 0);
		for (unsigned i = 0; i < 5; i++) {
			assert_int_equal(r->n_call[q], i);
			assert_int_equal(eventfd_write(liar.fds[2 + q], 1), 0);
			spin(r);
		}
	}
	/* a full one does not stop us */
	assert_int_equal(eventfd_write(liar.fds[0], UINT64_MAX - 1), 0);
	vhost_fe_kick(r->fe, 0);
	/* filled by itself, it hears of no call; that is its loss */
	assert_int_equal(eventfd_write(liar.fds[2], UINT64_MAX - 1 - 5), 0);
	spin(r);
	assert_true(vhost_fe_up(r->fe));
	assert_int_equal(eventfd_write(liar.fds[4 + 1], 1), 0);
	spin(r);
	assert_string_equal(r->reason, "the back-end says that a ring is broken");
}

static void dies_after_each_byte_read(void **state)
{
	struct rig *r = *state;
	uint32_t total;

	start(r);
	total = liar.n_read;
	assert_true(total > 500);
	for (uint32_t n = 0; n < total; n++) {
		liar_reset(&liar);
		talk(r);
		liar.read_most = n;
		for (unsigned i = 0; i < 3 && !(liar.n_read == n && liar.fd < 0 && i); i++) {
			pass(r, 6 * NSEC_PER_SEC);
			talk(r);
		}
		assert_false(vhost_fe_up(r->fe));
		assert_int_equal(liar.n_read, n);
		assert_int_equal(r->n_rings, r->n_down);
		assert_true(begins(vhost_fe_last_end(r->fe), "the back-end hung up"));
		liar_keep_fd(&liar, -1);
		fds_become(r->fds + 1);
		if (n % 32 == 0)
			prove(r);
	}
}

static void dies_after_each_byte_written(void **state)
{
	struct rig *r = *state;
	uint32_t total;

	start(r);
	total = liar.n_written;
	assert_true(total > 300);
	for (uint32_t n = 1; n < total; n++) {
		liar_reset(&liar);
		talk(r);
		liar.write_most = n;
		pass(r, 6 * NSEC_PER_SEC);
		talk(r);
		assert_false(vhost_fe_up(r->fe));
		assert_int_equal(liar.n_written, n);
		assert_int_equal(r->n_rings, r->n_down);
		assert_true(begins(vhost_fe_last_end(r->fe), "the back-end hung up"));
		liar_keep_fd(&liar, -1);
		fds_become(r->fds + 1);
	}
	prove(r);
}

/* Not each lie is one everywhere: refusing is an answer to a question only where it is one. */
static bool lie_counts(enum lie lie, uint32_t request)
{
	if (lie == LIE_EMPTY)
		return request != VHOST_USER_GET_CONFIG;
	if (lie == LIE_REFUSAL)
		return !vhost_user_has_reply(request);
	return true;
}

static void each_answer_is_a_lie(void **state)
{
	struct rig *r = *state;
	uint32_t answers, of[64] = {0}, k = 0;

	start(r);
	answers = liar.n_answered;
	for (uint32_t i = 0; i < liar.n_asked; i++) {
		if (liar.asked[i] != VHOST_USER_SET_PROTOCOL_FEATURES)
			of[k++] = liar.asked[i];
	}
	/* SET_PROTOCOL_FEATURES alone has no answer */
	assert_int_equal(k, answers);
	for (uint32_t lie = 1; lie < LIES; lie++) {
		for (uint32_t at = 0; at < answers; at++) {
			if (!lie_counts((enum lie)lie, of[at]))
				continue;
			liar_reset(&liar);
			talk(r);
			liar.lie = (enum lie)lie;
			liar.lie_at = at;
			pass(r, 6 * NSEC_PER_SEC);
			talk(r);
			if (lie == LIE_SILENCE)
				pass(r, 6 * NSEC_PER_SEC);
			/* what comes too much after the last answer is noticed while it works */
			assert_false(vhost_fe_up(r->fe));
			assert_true(begins(vhost_fe_last_end(r->fe), lie_reason[lie]));
			assert_int_equal(r->n_rings, r->n_down);
			liar_reset(&liar);
			fds_become(r->fds + 1);
		}
		prove(r);
	}
}

static void reasons_name_the_request(void **state)
{
	struct rig *r = *state;

	liar.lie = LIE_REFUSAL;
	liar.lie_at = 12; /* of those that are answered */
	start(r);
	assert_string_equal(vhost_fe_last_end(r->fe), "the back-end refused SET_MEM_TABLE");
	liar_reset(&liar);
	liar.lie = LIE_SILENCE;
	liar.lie_at = 1;
	pass(r, 6 * NSEC_PER_SEC);
	talk(r);
	assert_int_equal(loop_deadline(&r->loop), r->now + 5 * NSEC_PER_SEC);
	pass(r, 6 * NSEC_PER_SEC);
	assert_string_equal(
		vhost_fe_last_end(r->fe), "the back-end does not answer GET_PROTOCOL_FEATURES");
	liar_reset(&liar);
	liar.lie = LIE_SHORT;
	pass(r, 6 * NSEC_PER_SEC);
	talk(r);
	assert_string_equal(
		vhost_fe_last_end(r->fe), "reply has a wrong size (at GET_PROTOCOL_FEATURES)");
}

static void configuration_may_be_refused(void **state)
{
	struct rig *r = *state;
	uint8_t mac[6];

	liar.lie = LIE_EMPTY;
	liar.lie_at = 7;
	start(r);
	assert_true(vhost_fe_up(r->fe));
	assert_int_equal(liar.asked[8], VHOST_USER_GET_CONFIG);
	assert_false(vhost_fe_mac(r->fe, mac));
	assert_int_equal(vhost_fe_mtu(r->fe), 0);
}

/* What one back-end told is not believed of the next, which tells nothing. */
static void configuration_is_of_one_session(void **state)
{
	struct rig *r = *state;
	uint8_t mac[6];

	start(r);
	assert_true(vhost_fe_mac(r->fe, mac));
	assert_int_equal(vhost_fe_mtu(r->fe), 1500);
	liar_reset(&liar);
	liar_keep_fd(&liar, -1);
	liar.lie = LIE_EMPTY;
	liar.lie_at = 7;
	spin(r);
	assert_false(vhost_fe_up(r->fe));
	for (unsigned i = 0; i < 3 && !vhost_fe_up(r->fe); i++) {
		pass(r, 6 * NSEC_PER_SEC);
		talk(r);
	}
	assert_true(vhost_fe_up(r->fe));
	assert_false(vhost_fe_mac(r->fe, mac));
	assert_int_equal(vhost_fe_mtu(r->fe), 0);
}

static void lacks_a_feature(void **state)
{
	struct rig *r = *state;

	liar.features = F_PROTOCOL | (WANT & ~VNET_BIT(VERSION_1));
	start(r);
	assert_string_equal(
		vhost_fe_last_end(r->fe), "the back-end lacks a needed feature: version_1");
	assert_int_equal(r->n_rings, 0);
	liar.features = UINT64_MAX; /* more than there are */
	again(r);
	assert_int_equal(r->features, WANT);
}

/* Answers of the right shape that are no use. */
static void answers_that_say_no(void **state)
{
	struct rig *r = *state;

	liar.queues = 0;
	start(r);
	assert_true(begins(vhost_fe_last_end(r->fe), "the back-end has no queues"));
	liar.queues = 128;
	liar.status = 3;
	liar_reset(&liar);
	pass(r, 6 * NSEC_PER_SEC);
	talk(r);
	assert_true(begins(vhost_fe_last_end(r->fe), "the back-end does not accept the features"));
	liar.status = 11;
	liar.config_offset = 1;
	liar_reset(&liar);
	pass(r, 6 * NSEC_PER_SEC);
	talk(r);
	assert_true(begins(
		vhost_fe_last_end(r->fe), "the back-end told another part of the configuration"));
	assert_int_equal(r->n_rings, 0);
	liar.config_offset = 0;
	prove(r);
}

/* It says something while it works. */
static void talks_out_of_turn(void **state)
{
	struct rig *r = *state;

	start(r);
	assert_true(vhost_fe_up(r->fe));
	assert_int_equal(send(liar.fd, "x", 1, 0), 1);
	spin(r);
	assert_string_equal(r->reason, "the back-end sent what nobody asked for");
	prove(r);
}

static void never_answers(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);

	fe_open(r, &c);
	spin(r);
	assert_int_equal(loop_deadline(&r->loop), r->now + 5 * NSEC_PER_SEC);
	pass(r, 6 * NSEC_PER_SEC);
	assert_string_equal(vhost_fe_last_end(r->fe), "the back-end does not answer GET_FEATURES");
	liar_turn(&liar); /* the dead one */
	prove(r);
}

/* A socket that takes a few messages only: what does not fit, descriptors too, goes out later. */
static void reads_late_or_never(void **state)
{
	struct rig *r = *state;
	struct vhost_fe_config c = fe_config(r);
	int least = 1;

	liar.features = WANT; /* no answer is waited for but the first */
	for (unsigned never = 0; never < 2; never++) {
		if (!r->fe)
			fe_open(r, &c);
		else
			pass(r, 6 * NSEC_PER_SEC);
		assert_true(vhost_conn_is_on(&r->fe->conn));
		assert_int_equal(setsockopt(r->fe->conn.watch.fd, SOL_SOCKET, SO_SNDBUF, &least,
					 sizeof(least)),
			0);
		spin(r);
		liar_turn(&liar);
		for (unsigned i = 0; i < 10; i++)
			spin(r);
		assert_true(vhost_io_blocked(&r->fe->conn.io));
		if (never) {
			pass(r, 6 * NSEC_PER_SEC);
			assert_true(
				begins(vhost_fe_last_end(r->fe), "the back-end does not answer"));
		} else {
			talk(r);
			assert_true(vhost_fe_up(r->fe));
			assert_int_equal(liar.n_asked, 16);
			for (unsigned i = 0; i < 6; i++)
				assert_true(liar.fds[i] >= 0);
		}
		liar_reset(&liar);
		talk(r);
	}
	prove(r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(everything_is_asked),
		T(close_says_goodbye),
		T(nothing_but_the_basics),
		T(each_protocol_feature_alone),
		T(kicks_and_calls_arrive),
		T(dies_after_each_byte_read),
		T(dies_after_each_byte_written),
		T(each_answer_is_a_lie),
		T(reasons_name_the_request),
		T(configuration_may_be_refused),
		T(configuration_is_of_one_session),
		T(lacks_a_feature),
		T(answers_that_say_no),
		T(talks_out_of_turn),
		T(never_answers),
		T(reads_late_or_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
