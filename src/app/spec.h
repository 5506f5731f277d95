/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spec: the words that name a port, KIND[:ARG][,key=value]..., into a struct. A comma inside a
 * value is doubled. One table of kinds and keys serves parsing, error texts, help and the man page.
 * It opens nothing and touches no file.
 */
#ifndef APP_SPEC_H
#define APP_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"
#include "port/tap.h"
#include "port/vhost_be.h"
#include "port/vdrv.h"

enum spec_kind {
	SPEC_VHOST_USER,
	SPEC_VIRTIO_USER,
	SPEC_TAP,
	SPEC_MACVTAP,
	SPEC_DEVICE,
	SPEC_KINDS
};

#define SPEC_PATH   108 /* bytes of a socket's path with its NUL: sockaddr_un */
#define SPEC_IFNAME 16
#define SPEC_ADDRS  16 /* addresses of a tap */

struct spec {
	enum spec_kind kind;
	char name[NAME_LEN];
	char path[SPEC_PATH];     /* vhost-user, virtio-user: absolute */
	char ifname[SPEC_IFNAME]; /* tap; macvtap: that of the interface below */
	bool server;
	uint8_t mac[6];
	uint32_t mtu;     /* 0: not given (tap) */
	uint32_t call_us; /* vhost-user */
	uint64_t off;
	mode_t mode;
	gid_t group;               /* (gid_t)-1: leave */
	const char *netns;         /* NULL: ours */
	uint32_t fd;               /* tap: passed in; 0: none */
	uint32_t macvtap_mode;     /* enum macvtap_mode */
	uint32_t vnet_hdr, queues; /* tap, macvtap */
	bool copy;
	struct tap_copy_config copying;
	const char *addr[SPEC_ADDRS + 1]; /* NULL-terminated */
	const char *pcap;                 /* NULL: none; absolute */
	const char *impair;               /* words of a bad network; NULL: none */
	struct vdrv_config drv;           /* virtio-user: the knobs; the rest is above */
	char *store;                      /* what the pointers above point into */
};

struct spec_ctx {
	const char *net;    /* what MAC addresses are made from, beside the port's name */
	const char *rundir; /* where a bare NAME's socket goes */
	const char *cwd;    /* what a relative path starts from */
};

/* 0, or -EINVAL (-ENOMEM, -ENAMETOOLONG) with one line. After 0, spec_fini when done. */
int spec_parse(struct spec *, const char *text, const struct spec_ctx *, struct err *);
void spec_fini(struct spec *);
/* Are these words all right? As spec_parse for each, and nothing is kept. */
int spec_check(const char *const *text, unsigned n, const struct spec_ctx *, struct err *);

const char *spec_kind_name(enum spec_kind);
static inline bool spec_offers_mac(enum spec_kind k) /* to a driver: it is unique in a network */
{
	return k == SPEC_VHOST_USER || k == SPEC_DEVICE;
}
static inline bool spec_is_tap(enum spec_kind k) /* the kernel is the driver */
{
	return k == SPEC_TAP || k == SPEC_MACVTAP;
}
/* What a virtio-user port's driver is to be opened with; points into `spec`. */
void spec_driver(const struct spec *, struct vdrv_config *);
/* Likewise a tap port's or a macvtap port's. */
void spec_tap(const struct spec *, struct tap_config *);
/* Every key of a driver that is a knob, with its value in `spec`, as a user would write them. */
void spec_knobs(const struct spec *,
	void (*knob)(void *ctx, const char *name, const char *value, const char *help), void *ctx);

/*
 * The grammar for people, one line per kind and key: `line(ctx, term, help)`. Of one kind, or of all
 * if `word` is NULL; false: no such kind.
 */
bool spec_explain(
	const char *word, void (*line)(void *ctx, const char *term, const char *help), void *ctx);

#endif
