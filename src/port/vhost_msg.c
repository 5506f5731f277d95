/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_msg: see vhost_msg.h. One line per request says all that can be judged without a session.
 */
#include <stddef.h>

#include "port/vhost_msg.h"

enum { FDS_NONE, FDS_ONE, FDS_UP_TO_ONE, FDS_REGIONS, FDS_NOFD_BIT };
enum { SIZE_FIXED, SIZE_REGIONS, SIZE_CONFIG };

struct request {
	const char *name;
	uint16_t size; /* of the payload; the fixed part where it varies */
	uint8_t size_rule, fds_rule;
	bool reply;
};

#define U64               sizeof(uint64_t)
#define STATE             8
#define ADDR              40
#define MEM_HEAD          8
#define MEM_REG           40
#define CONFIG_HEAD       12
#define REQUEST(req, ...) [VHOST_USER_##req] = {.name = #req, ##__VA_ARGS__}

static const struct request requests[VHOST_USER_REQUEST_MAX] = {
	REQUEST(GET_FEATURES, .reply = true),
	REQUEST(SET_FEATURES, U64),
	REQUEST(SET_OWNER),
	REQUEST(RESET_OWNER),
	REQUEST(SET_MEM_TABLE, MEM_HEAD, SIZE_REGIONS, FDS_REGIONS),
	REQUEST(SET_VRING_NUM, STATE),
	REQUEST(SET_VRING_ADDR, ADDR),
	REQUEST(SET_VRING_BASE, STATE),
	REQUEST(GET_VRING_BASE, STATE, .reply = true),
	REQUEST(SET_VRING_KICK, U64, SIZE_FIXED, FDS_NOFD_BIT),
	REQUEST(SET_VRING_CALL, U64, SIZE_FIXED, FDS_NOFD_BIT),
	REQUEST(SET_VRING_ERR, U64, SIZE_FIXED, FDS_NOFD_BIT),
	REQUEST(GET_PROTOCOL_FEATURES, .reply = true),
	REQUEST(SET_PROTOCOL_FEATURES, U64),
	REQUEST(GET_QUEUE_NUM, .reply = true),
	REQUEST(SET_VRING_ENABLE, STATE),
	REQUEST(SEND_RARP, U64),
	REQUEST(NET_SET_MTU, U64),
	REQUEST(SET_BACKEND_REQ_FD, 0, SIZE_FIXED, FDS_ONE),
	REQUEST(GET_CONFIG, CONFIG_HEAD, SIZE_CONFIG, .reply = true),
	REQUEST(SET_CONFIG, CONFIG_HEAD, SIZE_CONFIG),
	REQUEST(RESET_DEVICE),
	REQUEST(GET_MAX_MEM_SLOTS, .reply = true),
	REQUEST(ADD_MEM_REG, MEM_REG, SIZE_FIXED, FDS_ONE),
	REQUEST(REM_MEM_REG, MEM_REG, SIZE_FIXED, FDS_UP_TO_ONE),
	REQUEST(SET_STATUS, U64),
	REQUEST(GET_STATUS, .reply = true),
};

/* The codec relies on these: a payload is read straight into the union. */
_Static_assert(sizeof(struct vhost_user_hdr) == VHOST_USER_HDR_LEN, "header");
_Static_assert(sizeof(((struct vhost_user_msg *)0)->u.state) == STATE, "state");
_Static_assert(sizeof(((struct vhost_user_msg *)0)->u.addr) == ADDR, "addr");
_Static_assert(sizeof(((struct vhost_user_msg *)0)->u.mem_reg) == MEM_REG, "mem_reg");
_Static_assert(
	offsetof(struct vhost_user_msg, u.mem.region[0]) - offsetof(struct vhost_user_msg, u.mem) ==
		MEM_HEAD,
	"mem");
_Static_assert(offsetof(struct vhost_user_msg, u.config.data[0]) -
			       offsetof(struct vhost_user_msg, u.config) ==
		       CONFIG_HEAD,
	"config");

static const struct request *request_find(uint32_t number)
{
	if (number >= VHOST_USER_REQUEST_MAX || !requests[number].name)
		return NULL;
	return &requests[number];
}

const char *vhost_user_name(uint32_t number)
{
	const struct request *r = request_find(number);

	return r ? r->name : NULL;
}

bool vhost_user_has_reply(uint32_t number)
{
	const struct request *r = request_find(number);

	return r && r->reply;
}

static const char *size_check(const struct request *r, const struct vhost_user_msg *m)
{
	uint32_t size = m->hdr.size;

	if (r->size_rule == SIZE_FIXED)
		return size == r->size ? NULL : "payload has a wrong size";
	if (size < r->size)
		return "payload is too short";
	if (r->size_rule == SIZE_REGIONS) {
		if (m->u.mem.n < 1 || m->u.mem.n > VHOST_USER_MEM_REGIONS)
			return "memory table has no region, or more than 8";
		/* more is legal: User-Mode Linux always sends its table of two */
		if (size < r->size + m->u.mem.n * sizeof(struct vhost_user_region))
			return "memory table is shorter than its regions need";
		return NULL;
	}
	if (m->u.config.size > VHOST_USER_CONFIG_MAX || size != r->size + m->u.config.size)
		return "configuration data has not the size it says";
	return NULL;
}

static const char *fds_check(const struct request *r, const struct vhost_user_msg *m, unsigned nfds)
{
	unsigned min = 0, max = 0;

	switch (r->fds_rule) {
	case FDS_ONE:
		min = max = 1;
		break;
	case FDS_UP_TO_ONE:
		max = 1;
		break;
	case FDS_REGIONS:
		min = max = m->u.mem.n;
		break;
	case FDS_NOFD_BIT:
		min = max = m->u.u64 & VHOST_USER_VRING_NOFD ? 0 : 1;
		break;
	default:
		break;
	}
	if (nfds < min)
		return "a descriptor is missing";
	return nfds > max ? "more descriptors than the request takes" : NULL;
}

const char *vhost_user_check_header(const struct vhost_user_hdr *h)
{
	if ((h->flags & VHOST_USER_VERSION_MASK) != VHOST_USER_VERSION)
		return "message of another protocol version";
	if (h->flags & VHOST_USER_F_REPLY)
		return "a reply where a request is due";
	if (h->size > sizeof(((struct vhost_user_msg *)0)->u))
		return "payload is larger than any request's";
	return NULL;
}

/* Whether it wants to be answered in turn is not asked: some back-ends leave our flag in. */
const char *vhost_user_check_reply(const struct vhost_user_hdr *h, uint32_t request, uint32_t size)
{
	if ((h->flags & VHOST_USER_VERSION_MASK) != VHOST_USER_VERSION)
		return "reply of another protocol version";
	if (!(h->flags & VHOST_USER_F_REPLY))
		return "a request where a reply is due";
	if (h->request != request)
		return "reply to another request";
	if (h->size != size && (h->size || request != VHOST_USER_GET_CONFIG))
		return "reply has a wrong size";
	return NULL;
}

const char *vhost_user_check(const struct vhost_user_msg *m, unsigned nfds)
{
	const struct request *r = request_find(m->hdr.request);
	const char *reason = vhost_user_check_header(&m->hdr);

	if (!reason && r)
		reason = size_check(r, m);
	if (!reason && r)
		reason = fds_check(r, m, nfds);
	return reason;
}
