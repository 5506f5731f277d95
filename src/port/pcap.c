/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap: a pcapng file of one section and one interface. Blocks are built in a buffer in the machine's
 * byte order, which the section header tells, and always written whole: a file cut short by a full
 * disk ends after its last good block.
 *
 *	SHB  who wrote it           IDB  the port's name, nanoseconds        EPB  one per frame
 *
 * Only files: a pipe that nobody reads would stop the network. The time of a frame is the loop's, moved
 * by one offset to the calendar, so a frame costs no clock call. It must not know ports.
 * [draft-ietf-opsawg-pcapng]
 */
#include "port/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_SECTION     0x0a0d0d0au
#define BLOCK_INTERFACE   1u
#define BLOCK_PACKET      6u
#define BYTE_ORDER_MAGIC  0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u
#define OPT_END           0u
#define OPT_COMMENT       1u
#define OPT_USERAPPL      4u /* of a section */
#define OPT_IF_NAME       2u /* of an interface */
#define OPT_IF_TSRESOL    9u
#define OPT_EPB_FLAGS     2u /* of a packet */

#define SNAP        65549
#define COMMENT_MAX 128                           /* all of its words together are shorter */
#define EPB_MAX     (SNAP + 3 + 64 + COMMENT_MAX) /* a packet block with its options */
#define BUFFER_SIZE (256 * 1024)
#define FLUSH_AFTER (200 * NSEC_PER_MSEC) /* what a reader of the growing file may wait */

struct pcap {
	struct loop *loop;
	struct log *log;
	struct loop_timer flush;
	char name[NAME_LEN];
	nsec_t to_calendar; /* loop time + this = CLOCK_REALTIME */
	off_t written;      /* whole blocks in the file */
	int fd;             /* -1: the capture has ended */
	uint32_t used;
	uint8_t buf[BUFFER_SIZE];
};

/* ---- building ------------------------------------------------------------------------------- */

static void put_u16(struct pcap *p, uint32_t v)
{
	uint16_t v16 = (uint16_t)v;

	memcpy(p->buf + p->used, &v16, sizeof(v16));
	p->used += sizeof(v16);
}

static void put_u32(struct pcap *p, uint32_t v)
{
	memcpy(p->buf + p->used, &v, sizeof(v));
	p->used += sizeof(v);
}

static void put_padding(struct pcap *p)
{
	while (p->used % 4)
		p->buf[p->used++] = 0;
}

static void put_option(struct pcap *p, uint32_t code, const void *value, uint32_t len)
{
	put_u16(p, code);
	put_u16(p, len);
	memcpy(p->buf + p->used, value, len);
	p->used += len;
	put_padding(p);
}

/* A block's length stands before and after its body. */
static uint32_t block_begin(struct pcap *p, uint32_t type)
{
	uint32_t start = p->used;

	put_u32(p, type);
	put_u32(p, 0);
	return start;
}

static void block_end(struct pcap *p, uint32_t start)
{
	uint32_t len;

	put_u16(p, OPT_END);
	put_u16(p, 0);
	len = p->used + 4 - start;
	put_u32(p, len);
	memcpy(p->buf + start + 4, &len, sizeof(len));
}

static void head_build(struct pcap *p)
{
	static const char who[] = "weft " WEFT_VERSION;
	static const uint8_t nanoseconds = 9;
	uint32_t start = block_begin(p, BLOCK_SECTION);

	put_u32(p, BYTE_ORDER_MAGIC);
	put_u16(p, 1);
	put_u16(p, 0);
	put_u32(p, UINT32_MAX); /* the section's length: not told */
	put_u32(p, UINT32_MAX);
	put_option(p, OPT_USERAPPL, who, sizeof(who) - 1);
	block_end(p, start);

	start = block_begin(p, BLOCK_INTERFACE);
	put_u16(p, LINKTYPE_ETHERNET);
	put_u16(p, 0);
	put_u32(p, SNAP);
	put_option(p, OPT_IF_NAME, p->name, (uint32_t)strlen(p->name));
	put_option(p, OPT_IF_TSRESOL, &nanoseconds, 1);
	block_end(p, start);
}

/* ---- the comment, made by hand: a frame's path formats nothing --------------------------------- */

struct words {
	char text[COMMENT_MAX];
	uint32_t len;
};

static void say(struct words *w, const char *s)
{
	while (*s && w->len < sizeof(w->text))
		w->text[w->len++] = *s++;
}

static void say_number(struct words *w, uint32_t v)
{
	char digits[11];
	unsigned at = sizeof(digits) - 1;

	digits[at] = 0;
	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	say(w, digits + at);
}

static void say_part(struct words *w, const char *s)
{
	if (w->len)
		say(w, "; ");
	say(w, s);
}

static const char *gso_name(uint8_t gso)
{
	switch (gso & ~OFF_GSO_ECN) {
	case OFF_GSO_TCPV4:
		return "tcpv4 ";
	case OFF_GSO_TCPV6:
		return "tcpv6 ";
	case OFF_GSO_UDP_L4:
		return "udp ";
	default:
		return "unknown ";
	}
}

static void comment_build(struct words *w, const struct offload *off, enum drop drop)
{
	if (drop) {
		say_part(w, "dropped: ");
		say(w, drop_name(drop));
	}
	if (off->flags & OFF_NEEDS_CSUM) {
		say_part(w, "needs csum at ");
		say_number(w, off->csum_start);
		say(w, "+");
		say_number(w, off->csum_off);
	}
	if (off->flags & OFF_DATA_VALID)
		say_part(w, "data valid");
	if (off->gso) {
		say_part(w, "gso ");
		say(w, gso_name(off->gso));
		say_number(w, off->gso_size);
		if (off->gso & OFF_GSO_ECN)
			say(w, " ecn");
	}
}

/* ---- writing -------------------------------------------------------------------------------- */

static void capture_end(struct pcap *p, int error)
{
	/* Without half a block at its end the file can be read to the end; a device has no end. */
	bool whole = !ftruncate(p->fd, p->written);

	log_say(p->log, LOG_ERROR, p->name, "capture ends here%s: writing its file: %s",
		whole ? "" : ", its last block may be cut", strerror(error));
	close(p->fd);
	p->fd = -1;
}

static void buffer_write(struct pcap *p)
{
	uint32_t done = 0;

	loop_timer_cancel(p->loop, &p->flush);
	while (p->fd >= 0 && done < p->used) {
		ssize_t n = write(p->fd, p->buf + done, p->used - done);
		if (n > 0)
			done += (uint32_t)n;
		else if (n == 0 || errno != EINTR)
			capture_end(p, n ? errno : ENOSPC);
	}
	p->written += done;
	p->used = 0;
}

static void flush_expired(struct loop_timer *timer)
{
	buffer_write((struct pcap *)(void *)((char *)timer - offsetof(struct pcap, flush)));
}

void pcap_frame(struct pcap *p, enum pcap_dir dir, const struct frame *f, enum drop drop)
{
	uint32_t len = frame_len(f), take = len < SNAP ? len : SNAP, flags = dir, start;
	uint64_t at = (uint64_t)(loop_now(p->loop) + p->to_calendar);
	struct words comment = {.len = 0};
	struct iovec to;

	if (p->fd < 0)
		return;
	if (p->used + EPB_MAX > BUFFER_SIZE)
		buffer_write(p);
	if (!p->used)
		loop_timer_set(p->loop, &p->flush, loop_now(p->loop) + FLUSH_AFTER);
	start = block_begin(p, BLOCK_PACKET);
	put_u32(p, 0);
	put_u32(p, (uint32_t)(at >> 32));
	put_u32(p, (uint32_t)at);
	put_u32(p, take);
	put_u32(p, len);
	to = (struct iovec){p->buf + p->used, take};
	frame_copy(f, 0, take, &to, 1, 0);
	p->used += take;
	put_padding(p);
	put_option(p, OPT_EPB_FLAGS, &flags, sizeof(flags));
	comment_build(&comment, &f->off, drop);
	if (comment.len)
		put_option(p, OPT_COMMENT, comment.text, comment.len);
	block_end(p, start);
}

/* ---- open and close ------------------------------------------------------------------------- */

static int file_open(const char *path, struct err *err)
{
	struct stat st;
	/* O_NONBLOCK: a pipe without a reader is an error, not a wait. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0 && errno != ENXIO)
		return err_set(err, errno, "pcap=%s: cannot write the capture file: %s%s", path,
			strerror(errno),
			errno == ENOENT ? "; make the folder first" : "; choose another place");
	if (fd < 0 || fstat(fd, &st) || S_ISFIFO(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return err_set(err, EINVAL,
			"pcap=%s: a pipe or a socket would stop the network when nobody reads it: "
			"give a file, and "
			"watch it with `tail -c +1 -f FILE | wireshark -k -i -`",
			path);
	}
	return fd;
}

/* The loop's clock knows no calendar; asked once. */
static nsec_t calendar_offset(struct loop *loop)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec - loop_refresh(loop);
}

int pcap_open(struct pcap **out, const char *path, const char *port_name, struct loop *loop,
	struct log *log, struct err *err)
{
	struct pcap *p;
	int fd = file_open(path, err), rc;

	if (fd < 0)
		return fd;
	p = malloc(sizeof(*p));
	if (!p) {
		close(fd);
		return err_set(err, ENOMEM, "pcap=%s: out of memory", path);
	}
	memset(p, 0, offsetof(struct pcap, buf));
	p->loop = loop;
	p->log = log;
	p->fd = fd;
	strncpy(p->name, port_name, sizeof(p->name) - 1);
	rc = loop_timer_reserve(loop, &p->flush, flush_expired);
	if (rc) {
		close(fd);
		free(p);
		return err_set(err, -rc, "pcap=%s: out of memory", path);
	}
	p->to_calendar = calendar_offset(loop);
	head_build(p);
	buffer_write(p);
	*out = p;
	return 0;
}

void pcap_close(struct pcap *p)
{
	if (!p)
		return;
	buffer_write(p);
	loop_timer_release(p->loop, &p->flush);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}
