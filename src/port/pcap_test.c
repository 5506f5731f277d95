/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap_test: files are read back block by block, and by tshark where it is installed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "port/pcap.h"

struct fixture {
	struct loop loop;
	struct log log;
	struct err err;
	nsec_t now;
	unsigned logged;
	char dir[32], path[48];
	struct pcap *pcap;
	uint8_t *file;
	size_t len, at;
};

static void on_log(void *ctx, enum log_level level, const char *tag, const char *text)
{
	(void)level;
	assert_string_equal(tag, "vm1");
	assert_non_null(strstr(text, "capture ends"));
	((struct fixture *)ctx)->logged++;
}

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof(*fx));

	assert_non_null(fx);
	assert_int_equal(loop_init(&fx->loop, &fx->err), 0);
	fx->now = 5 * NSEC_PER_SEC;
	fx->loop.virtual_now = &fx->now;
	log_init(&fx->log, LOG_INFO, on_log, fx);
	strcpy(fx->dir, "/tmp/pcap_test.XXXXXX");
	assert_non_null(mkdtemp(fx->dir));
	snprintf(fx->path, sizeof(fx->path), "%s/f.pcapng", fx->dir);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	loop_fini(&fx->loop);
	unlink(fx->path);
	rmdir(fx->dir);
	free(fx->file);
	free(fx);
	return 0;
}

static void start(struct fixture *fx)
{
	if (pcap_open(&fx->pcap, fx->path, "vm1", &fx->loop, &fx->log, &fx->err))
		fail_msg("%s", fx->err.text);
}

/* ---- reading -------------------------------------------------------------------------------- */

static void slurp(struct fixture *fx)
{
	FILE *f = fopen(fx->path, "rb");
	struct stat st;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	fx->len = (size_t)st.st_size;
	fx->at = 0;
	free(fx->file);
	fx->file = malloc(fx->len + 1);
	assert_int_equal(fread(fx->file, 1, fx->len, f), fx->len);
	fclose(f);
}

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static uint16_t u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return v;
}

struct block {
	uint32_t type, len;
	const uint8_t *body;
};

/* The next block; false at the end of the file, which must be the end of a block. */
static bool next_block(struct fixture *fx, struct block *b)
{
	if (fx->at == fx->len)
		return false;
	assert_true(fx->len - fx->at >= 12);
	b->type = u32(fx->file + fx->at);
	b->len = u32(fx->file + fx->at + 4);
	b->body = fx->file + fx->at + 8;
	assert_int_equal(b->len % 4, 0);
	assert_true(b->len >= 12 && b->len <= fx->len - fx->at);
	assert_int_equal(u32(fx->file + fx->at + b->len - 4), b->len);
	fx->at += b->len;
	return true;
}

/* The value of an option that must, or (len NULL) must not, be there; options end where the block does. */
static const uint8_t *option(const struct block *b, uint32_t from, uint16_t code, uint16_t *len)
{
	const uint8_t *p = b->body + from, *end = b->body + b->len - 12, *found = NULL;

	for (;;) {
		assert_true(p + 4 <= end);
		uint16_t c = u16(p), n = u16(p + 2);
		if (!c)
			break;
		if (c == code) {
			assert_null(found);
			found = p + 4;
			if (len)
				*len = n;
		}
		p += 4 + (n + 3) / 4 * 4;
	}
	assert_ptr_equal(p + 4, end);
	assert_true(!!found == !!len);
	return found;
}

static void option_text(const struct block *b, uint32_t from, uint16_t code, const char *want)
{
	uint16_t len;
	const uint8_t *v = option(b, from, code, want ? &len : NULL);

	if (want) {
		assert_int_equal(len, strlen(want));
		assert_memory_equal(v, want, len);
	}
}

static void head_check(struct fixture *fx)
{
	struct block b;
	uint16_t len;

	assert_true(next_block(fx, &b));
	assert_int_equal(b.type, 0x0a0d0d0a);
	assert_int_equal(u32(b.body), 0x1a2b3c4d);
	assert_int_equal(u16(b.body + 4), 1);
	assert_int_equal(u16(b.body + 6), 0);
	option_text(&b, 16, 4, "weft " WEFT_VERSION);
	assert_true(next_block(fx, &b));
	assert_int_equal(b.type, 1);
	assert_int_equal(u16(b.body), 1);
	assert_int_equal(u32(b.body + 4), 65549);
	option_text(&b, 8, 2, "vm1");
	assert_int_equal(*option(&b, 8, 9, &len), 9);
	assert_int_equal(len, 1);
}

static uint64_t packet_check(struct fixture *fx, enum pcap_dir dir, uint32_t len, uint32_t kept,
	const char *comment, const uint8_t *bytes)
{
	struct block b;
	uint32_t options = 20 + (kept + 3) / 4 * 4;
	uint16_t n;

	assert_true(next_block(fx, &b));
	assert_int_equal(b.type, 6);
	assert_int_equal(u32(b.body), 0);
	assert_int_equal(u32(b.body + 12), kept);
	assert_int_equal(u32(b.body + 16), len);
	assert_memory_equal(b.body + 20, bytes, kept);
	assert_int_equal(u32(option(&b, options, 2, &n)), dir);
	assert_int_equal(n, 4);
	option_text(&b, options, 1, comment);
	return (uint64_t)u32(b.body + 4) << 32 | u32(b.body + 8);
}

/* ---- frames --------------------------------------------------------------------------------- */

static uint8_t bytes[FRAME_MAX];

struct made {
	struct frame f;
	struct frame_head head;
	struct iovec iov[2];
};

static struct frame *made(struct made *m, uint32_t len)
{
	uint32_t head = len < FRAME_HEAD ? len : FRAME_HEAD, rest = len - head;

	memset(&m->f, 0, sizeof(m->f));
	memcpy(m->head.data, bytes, head);
	m->f.head = m->head.data;
	m->f.head_len = (uint16_t)head;
	m->f.tail = m->iov;
	m->f.tail_len = rest;
	if (rest) {
		m->iov[0] = (struct iovec){bytes + head, rest / 2};
		m->iov[1] = (struct iovec){bytes + head + rest / 2, rest - rest / 2};
		m->f.ntail = 2;
	}
	return &m->f;
}

static void frames_come_back(void **state)
{
	struct fixture *fx = *state;
	struct made m;
	struct frame *f;
	struct timespec ts;
	uint64_t t0, t1, wall;
	struct block b;

	start(fx);
	clock_gettime(CLOCK_REALTIME, &ts);
	wall = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	pcap_frame(fx->pcap, PCAP_IN, made(&m, 61), DROP_NONE);
	fx->now += 1234567;
	loop_dispatch(&fx->loop, false);
	f = made(&m, 65535 + 14);
	f->off = (struct offload){.flags = OFF_NEEDS_CSUM,
		.csum_start = 34,
		.csum_off = 16,
		.gso = OFF_GSO_TCPV4,
		.gso_size = 1448};
	pcap_frame(fx->pcap, PCAP_OUT, f, DROP_NONE);
	f = made(&m, 60);
	f->off.flags = OFF_DATA_VALID;
	pcap_frame(fx->pcap, PCAP_IN, f, DROP_NONE);
	f = made(&m, 1514);
	f->off = (struct offload){.flags = OFF_NEEDS_CSUM,
		.csum_start = 54,
		.csum_off = 16,
		.gso = OFF_GSO_TCPV6 | OFF_GSO_ECN,
		.gso_size = 500};
	pcap_frame(fx->pcap, PCAP_OUT, f, DROP_TOO_BIG);
	pcap_frame(fx->pcap, PCAP_IN, made(&m, FRAME_MAX), DROP_NONE);
	pcap_frame(fx->pcap, PCAP_IN, made(&m, 0), DROP_SHORT);
	pcap_close(fx->pcap);

	slurp(fx);
	head_check(fx);
	t0 = packet_check(fx, PCAP_IN, 61, 61, NULL, bytes);
	t1 = packet_check(fx, PCAP_OUT, 65549, 65549, "needs csum at 34+16; gso tcpv4 1448", bytes);
	packet_check(fx, PCAP_IN, 60, 60, "data valid", bytes);
	packet_check(fx, PCAP_OUT, 1514, 1514,
		"dropped: exceeds_mtu; needs csum at 54+16; gso tcpv6 500 ecn", bytes);
	packet_check(fx, PCAP_IN, FRAME_MAX, 65549, NULL, bytes);
	packet_check(fx, PCAP_IN, 0, 0, "dropped: short", bytes);
	assert_false(next_block(fx, &b));
	assert_int_equal(t1 - t0, 1234567);
	assert_true(t0 <= wall + NSEC_PER_SEC && t0 + 60 * NSEC_PER_SEC > wall);
}

static size_t file_size(struct fixture *fx)
{
	struct stat st;

	assert_int_equal(stat(fx->path, &st), 0);
	return (size_t)st.st_size;
}

static void buffer_reaches_the_file_after_a_while(void **state)
{
	struct fixture *fx = *state;
	struct made m;
	size_t empty;
	struct stat st;

	start(fx);
	assert_int_equal(stat(fx->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	empty = file_size(fx);
	assert_true(empty > 0); /* a reader may start at once */
	assert_int_equal(loop_deadline(&fx->loop), NSEC_NEVER);
	pcap_frame(fx->pcap, PCAP_IN, made(&m, 100), DROP_NONE);
	fx->now += 100 * NSEC_PER_MSEC;
	loop_dispatch(&fx->loop, false);
	pcap_frame(fx->pcap, PCAP_IN, made(&m, 100), DROP_NONE);
	assert_int_equal(file_size(fx), empty);
	fx->now += 100 * NSEC_PER_MSEC;
	loop_dispatch(&fx->loop, false);
	assert_true(file_size(fx) >= empty + 200);
	assert_int_equal(loop_deadline(&fx->loop), NSEC_NEVER); /* idle again */
	pcap_close(fx->pcap);
}

static void many_frames_outgrow_the_buffer(void **state)
{
	struct fixture *fx = *state;
	struct made m;
	struct block b;

	start(fx);
	for (unsigned i = 0; i < 100; i++)
		pcap_frame(fx->pcap, PCAP_OUT, made(&m, i * 655), DROP_NONE);
	assert_true(file_size(fx) > 2000000);
	pcap_close(fx->pcap);
	slurp(fx);
	head_check(fx);
	for (unsigned i = 0; i < 100; i++)
		packet_check(fx, PCAP_OUT, i * 655, i * 655, NULL, bytes);
	assert_false(next_block(fx, &b));
}

static void full_disk_ends_the_capture_only(void **state)
{
	struct fixture *fx = *state;
	struct made m;

	assert_int_equal(
		pcap_open(&fx->pcap, "/dev/full", "vm1", &fx->loop, &fx->log, &fx->err), 0);
	for (unsigned i = 0; i < 100; i++)
		pcap_frame(fx->pcap, PCAP_OUT, made(&m, 60000), DROP_NONE);
	assert_int_equal(fx->logged, 1);
	assert_int_equal(loop_deadline(&fx->loop), NSEC_NEVER);
	pcap_close(fx->pcap);
	assert_int_equal(fx->logged, 1);
}

/* A file that may not grow: what is in it ends with a whole block. */
static void cut_file_can_be_read(void **state)
{
	struct fixture *fx = *state;
	struct made m;
	struct block b;
	struct rlimit old, small;
	unsigned n = 0;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){600000, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	start(fx);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (unsigned i = 0; i < 100; i++)
		pcap_frame(fx->pcap, PCAP_OUT, made(&m, 60000), DROP_NONE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	pcap_close(fx->pcap);
	assert_int_equal(fx->logged, 1);
	slurp(fx);
	head_check(fx);
	while (next_block(fx, &b))
		n++;
	assert_true(n > 0 && n < 10);
}

static void refuse(struct fixture *fx, const char *path, int code, const char *word)
{
	int rc = pcap_open(&fx->pcap, path, "vm1", &fx->loop, &fx->log, &fx->err);

	if (rc != -code || !strstr(fx->err.text, path) || !strstr(fx->err.text, word))
		fail_msg("%s: %d, \"%s\"", path, rc, fx->err.text);
}

static void mistakes_are_named(void **state)
{
	struct fixture *fx = *state;

	refuse(fx, "/no/such/file", ENOENT, "No such file");
	refuse(fx, fx->dir, EISDIR, "directory");
	assert_int_equal(mkfifo(fx->path, 0600), 0);
	refuse(fx, fx->path, EINVAL, "pipe");
	pcap_close(NULL);
}

/* Another reader's opinion. */
static void tshark_reads_it(void **state)
{
	struct fixture *fx = *state;
	static const uint8_t arp[42] = {
		255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
	char command[200], line[200];
	struct frame f = {.head_len = sizeof(arp)};
	struct frame_head head;
	FILE *p;

	if (system("command -v tshark >/dev/null 2>&1")) {
		print_message("tshark is not installed: skipped\n");
		skip();
	}
	memcpy(head.data, arp, sizeof(arp));
	f.head = head.data;
	start(fx);
	pcap_frame(fx->pcap, PCAP_IN, &f, DROP_NO_DEST);
	pcap_frame(fx->pcap, PCAP_OUT, &f, DROP_NONE);
	pcap_close(fx->pcap);
	snprintf(command, sizeof(command),
		"tshark -r %s -T fields -E separator=, -e frame.interface_name -e "
		"frame.packet_flags_direction "
		"-e frame.comment -e frame.protocols 2>/dev/null",
		fx->path);
	p = popen(command, "r");
	assert_non_null(p);
	assert_non_null(fgets(line, sizeof(line), p));
	assert_string_equal(line, "vm1,0x00000001,dropped: no_destination,eth:ethertype:arp\n");
	assert_non_null(fgets(line, sizeof(line), p));
	assert_string_equal(line, "vm1,0x00000002,,eth:ethertype:arp\n");
	assert_null(fgets(line, sizeof(line), p));
	assert_int_equal(pclose(p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			buffer_reaches_the_file_after_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(many_frames_outgrow_the_buffer, setup, teardown),
		cmocka_unit_test_setup_teardown(full_disk_ends_the_capture_only, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_file_can_be_read, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(tshark_reads_it, setup, teardown),
	};

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 + i / 256);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
