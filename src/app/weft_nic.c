/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_nic: the public face of port/vdrv.h: a driver on a loop of its own. A weft_pkt is a struct pkt
 * of the driver's pool; nothing is wrapped, nothing copied.
 */
#include "weft/nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/show_driver.h"
#include "app/weft_int.h"
#include "port/vdrv.h"

#define HEAD_MAX 63000 /* bytes of a packet's first piece; with any headroom it fits a chunk */

struct weft_nic {
	struct loop loop;
	struct spec spec;
	struct port *port;
	struct loop_task look; /* has nothing to do: pending, it keeps the owner from sleeping */
};

_Static_assert(
	sizeof(struct weft_offload) == sizeof(struct offload) &&
		offsetof(struct weft_offload, gso_size) == offsetof(struct offload, gso_size) &&
		offsetof(struct weft_offload, csum_offset) == offsetof(struct offload, csum_off) &&
		offsetof(struct weft_offload, hdr_len) == offsetof(struct offload, hdr_len),
	"one language of offloads");

static struct weft_pkt *pkt_out(struct pkt *p)
{
	return (struct weft_pkt *)(void *)p;
}

static struct pkt *pkt_in(struct weft_pkt *p)
{
	return (struct pkt *)(void *)p;
}

static const struct pkt *pkt_in_const(const struct weft_pkt *p)
{
	return (const struct pkt *)(const void *)p;
}

/* Waking the loop is all that is wanted: the caller looks after each dispatch. */
static void nic_event(void *ctx, struct portq *q)
{
	(void)ctx;
	(void)q;
}

static void nic_look(struct loop_task *t)
{
	(void)t;
}

static void nic_link(void *ctx, struct port *p)
{
	(void)ctx;
	(void)p;
}

static const struct port_events nic_events = {nic_event, nic_event, nic_link};

/* life */

static int nic_spec(struct weft_nic *nic, const char *options, struct err *err)
{
	char cwd[4096], rundir[RUNDIR_PATH] = "", *text = malloc(strlen(options) + 16);
	struct spec_ctx where = {.net = "", .rundir = rundir};
	int r;

	if (!text)
		return err_set(err, ENOMEM, "no memory");
	where.cwd = getcwd(cwd, sizeof(cwd)) ? cwd : "/";
	strcpy(stpcpy(text, "virtio-user:"), options);
	r = rundir_path(rundir, "default", false, err);
	if (!r)
		r = spec_parse(&nic->spec, text, &where, err);
	free(text);
	return r;
}

int weft_nic_open(struct weft_nic **out, const char *options, char *text)
{
	struct weft_nic *nic = calloc(1, sizeof(*nic));
	struct vdrv_config config;
	struct err err = {""};
	int r;

	if (!nic)
		return weft_tell(err_set(&err, ENOMEM, "no memory"), &err, text);
	r = nic_spec(nic, options, &err);
	if (r)
		goto free_nic;
	r = loop_init(&nic->loop, &err);
	if (r)
		goto free_spec;
	spec_driver(&nic->spec, &config);
	r = vdrv_open(&nic->port, nic->spec.name, &config, &nic->loop, NULL, &err);
	if (r)
		goto free_loop;
	nic->port->events = &nic_events;
	nic->look.run = nic_look;
	*out = nic;
	return 0;
free_loop:
	loop_fini(&nic->loop);
free_spec:
	spec_fini(&nic->spec);
free_nic:
	free(nic);
	return weft_tell(r, &err, text);
}

void weft_nic_close(struct weft_nic *nic)
{
	if (!nic)
		return;
	vdrv_free(nic->port);
	loop_undefer(&nic->loop, &nic->look);
	loop_fini(&nic->loop);
	spec_fini(&nic->spec);
	free(nic);
}

int weft_nic_fd(const struct weft_nic *nic)
{
	return nic->loop.epfd;
}

int64_t weft_nic_timeout_ns(const struct weft_nic *nic)
{
	return weft_loop_timeout(&nic->loop);
}

int weft_nic_dispatch(struct weft_nic *nic, int wait)
{
	return loop_dispatch(&nic->loop, wait != 0);
}

int weft_nic_up(const struct weft_nic *nic)
{
	return nic->port->link;
}

const char *weft_nic_down_reason(const struct weft_nic *nic)
{
	return vdrv_last_end(nic->port);
}

void weft_nic_mac(const struct weft_nic *nic, uint8_t mac[6])
{
	memcpy(mac, nic->port->mac, 6);
}

uint32_t weft_nic_mtu(const struct weft_nic *nic)
{
	return nic->port->mtu ? nic->port->mtu : 1500;
}

char *weft_nic_show(struct weft_nic *nic)
{
	json_t *o = json_object();
	struct driver_count count;
	char *text;

	driver_count_take(&count, nic->port);
	json_object_set_new(o, "knobs", show_knobs(&nic->spec));
	json_object_set_new(o, "driver", show_driver(&count));
	text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(o);
	return text;
}

/* packets */

unsigned weft_nic_receive(struct weft_nic *nic, struct weft_pkt **pkt, unsigned max)
{
	struct port *p = nic->port;
	unsigned n = vdrv_receive(p, (struct pkt **)(void *)pkt, max);

	if (!n && max && p->ops->arm(&p->q)) {
		n = vdrv_receive(p, (struct pkt **)(void *)pkt, max);
		if (!n) /* what had come was no packet, and nothing is armed: the owner asks again */
			loop_defer(&nic->loop, &nic->look);
	}
	return n;
}

unsigned weft_nic_send(struct weft_nic *nic, struct weft_pkt **pkt, unsigned n)
{
	struct port *p = nic->port;
	struct pkt **list = (struct pkt **)(void *)pkt;
	unsigned took = vdrv_send(p, list, n);

	/* whoever found room is not told of more: until all is taken, or we shall be told */
	while (took < n && p->ops->arm_room(&p->q, list[took]->len))
		took += vdrv_send(p, list + took, n - took);
	vdrv_flush(p);
	return took;
}

struct weft_pkt *weft_pkt_new(struct weft_nic *nic, uint32_t len, void **data)
{
	struct pkt *p = NULL;

	if (len && len <= HEAD_MAX)
		p = pkt_new(vdrv_pkts(nic->port), nic->spec.drv.headroom, len);
	if (p)
		*data = p->head;
	return pkt_out(p);
}

void *weft_pkt_append(struct weft_pkt *pkt, uint32_t len)
{
	struct pkt *p = pkt_in(pkt);
	struct chunk_pool *pool = p->pool->chunks;
	struct chunk *c;
	unsigned order = 0;

	if (!len || len > CHUNK_MAX || p->nfrag == PKT_FRAGS)
		return NULL;
	while (CHUNK_PAGE << order < len)
		order++;
	c = chunk_get(pool, order);
	if (!c)
		return NULL;
	if (chunk_size(c) < len) { /* only smaller ones are left */
		chunk_put(pool, c);
		return NULL;
	}
	return pkt_add(p, c, chunk_data(pool, c), len, chunk_size(c), false) ? chunk_data(pool, c)
									     : NULL;
}

void weft_pkt_free(struct weft_pkt *pkt)
{
	pkt_free(pkt_in(pkt));
}

struct weft_offload *weft_pkt_offload(struct weft_pkt *pkt)
{
	return (struct weft_offload *)(void *)&pkt_in(pkt)->off;
}

uint32_t weft_pkt_len(const struct weft_pkt *pkt)
{
	return pkt_in_const(pkt)->len;
}

unsigned weft_pkt_pieces(const struct weft_pkt *pkt, struct iovec *iov, unsigned max)
{
	const struct pkt *p = pkt_in_const(pkt);
	unsigned n = 0;

	if (p->head_len) {
		if (n < max)
			iov[n] = (struct iovec){p->head, p->head_len};
		n++;
	}
	for (; p; p = p->chain) {
		for (unsigned i = 0; i < p->nfrag; i++, n++) {
			if (n < max)
				iov[n] = (struct iovec){p->frag[i].data, p->frag[i].len};
		}
	}
	return n;
}

/* The part of a piece that lies in [*offset, ...), to *to; both step over it. */
static uint32_t piece_copy(
	const uint8_t *data, uint32_t size, uint32_t *offset, uint8_t *to, uint32_t len)
{
	uint32_t n;

	if (*offset >= size) {
		*offset -= size;
		return 0;
	}
	n = size - *offset < len ? size - *offset : len;
	memcpy(to, data + *offset, n);
	*offset = 0;
	return n;
}

uint32_t weft_pkt_copy(const struct weft_pkt *pkt, uint32_t offset, void *to, uint32_t len)
{
	const struct pkt *p = pkt_in_const(pkt);
	uint8_t *out = to;
	uint32_t done = piece_copy(p->head, p->head_len, &offset, out, len);

	for (; p && done < len; p = p->chain) {
		for (unsigned i = 0; i < p->nfrag && done < len; i++)
			done += piece_copy(
				p->frag[i].data, p->frag[i].len, &offset, out + done, len - done);
	}
	return done;
}
