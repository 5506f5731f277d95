/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vhost_msg: the vhost-user message codec: numbers, layouts, sizes, and a table that says of each
 * request which size and how many descriptors it may carry and whether it has a reply of its own. Pure:
 * no socket. [QEMU docs/interop/vhost-user]
 */
#ifndef PORT_VHOST_MSG_H
#define PORT_VHOST_MSG_H

#include <stdbool.h>
#include <stdint.h>

#define VHOST_USER_HDR_LEN      12
#define VHOST_USER_VERSION      1
#define VHOST_USER_VERSION_MASK 3u
#define VHOST_USER_F_REPLY      4u
#define VHOST_USER_F_NEED_REPLY 8u
#define VHOST_USER_MEM_REGIONS  8 /* in one SET_MEM_TABLE */
#define VHOST_USER_CONFIG_MAX   256
#define VHOST_USER_FDS_MAX      8
#define VHOST_USER_VRING_NOFD   0x100u
#define VHOST_USER_VRING_MASK   0xffu

#define VHOST_USER_F_PROTOCOL_FEATURES 30 /* in the device feature word */

enum vhost_user_protocol {
	VHOST_USER_PROTOCOL_F_MQ = 0,
	VHOST_USER_PROTOCOL_F_RARP = 2,
	VHOST_USER_PROTOCOL_F_REPLY_ACK = 3,
	VHOST_USER_PROTOCOL_F_NET_MTU = 4,
	VHOST_USER_PROTOCOL_F_BACKEND_REQ = 5,
	VHOST_USER_PROTOCOL_F_CONFIG = 9,
	VHOST_USER_PROTOCOL_F_RESET_DEVICE = 13,
	VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS = 15,
	VHOST_USER_PROTOCOL_F_STATUS = 16,
};

enum vhost_user_request {
	VHOST_USER_GET_FEATURES = 1,
	VHOST_USER_SET_FEATURES = 2,
	VHOST_USER_SET_OWNER = 3,
	VHOST_USER_RESET_OWNER = 4,
	VHOST_USER_SET_MEM_TABLE = 5,
	VHOST_USER_SET_VRING_NUM = 8,
	VHOST_USER_SET_VRING_ADDR = 9,
	VHOST_USER_SET_VRING_BASE = 10,
	VHOST_USER_GET_VRING_BASE = 11,
	VHOST_USER_SET_VRING_KICK = 12,
	VHOST_USER_SET_VRING_CALL = 13,
	VHOST_USER_SET_VRING_ERR = 14,
	VHOST_USER_GET_PROTOCOL_FEATURES = 15,
	VHOST_USER_SET_PROTOCOL_FEATURES = 16,
	VHOST_USER_GET_QUEUE_NUM = 17,
	VHOST_USER_SET_VRING_ENABLE = 18,
	VHOST_USER_SEND_RARP = 19,
	VHOST_USER_NET_SET_MTU = 20,
	VHOST_USER_SET_BACKEND_REQ_FD = 21,
	VHOST_USER_GET_CONFIG = 24,
	VHOST_USER_SET_CONFIG = 25,
	VHOST_USER_RESET_DEVICE = 34,
	VHOST_USER_GET_MAX_MEM_SLOTS = 36,
	VHOST_USER_ADD_MEM_REG = 37,
	VHOST_USER_REM_MEM_REG = 38,
	VHOST_USER_SET_STATUS = 39,
	VHOST_USER_GET_STATUS = 40,
	VHOST_USER_REQUEST_MAX
};

struct vhost_user_hdr {
	uint32_t request, flags, size;
};

struct vhost_user_region {
	uint64_t gpa, size, uva, mmap_offset;
};

struct vhost_user_msg {
	struct vhost_user_hdr hdr;
	union {
		uint64_t u64;
		struct {
			uint32_t index, num;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t n, padding;
			struct vhost_user_region region[VHOST_USER_MEM_REGIONS];
		} mem;
		struct {
			uint64_t padding;
			struct vhost_user_region region;
		} mem_reg;
		struct {
			uint32_t offset, size, flags;
			uint8_t data[VHOST_USER_CONFIG_MAX];
		} config;
		uint8_t bytes[12 + VHOST_USER_CONFIG_MAX + 12];
	} u;
};

/* Name of a request for logs; "request N" style names are the caller's. NULL if unknown. */
const char *vhost_user_name(uint32_t request);
/* True if the request answers by itself; else NEED_REPLY asks for a u64. */
bool vhost_user_has_reply(uint32_t request);
/* What can be judged before the payload is there: version, direction, size. NULL if good, else a reason. */
const char *vhost_user_check_header(const struct vhost_user_hdr *);
/*
 * The same for a front-end: the header of the reply to `request`, whose payload must have `size`
 * bytes (the configuration may be refused with none).
 */
const char *vhost_user_check_reply(const struct vhost_user_hdr *, uint32_t request, uint32_t size);
/*
 * Check header and size of a received message: version, payload size for this request, descriptor
 * count. NULL if good, else a constant reason. Of an unknown request only the header is judged.
 */
const char *vhost_user_check(const struct vhost_user_msg *, unsigned nfds);

#endif
