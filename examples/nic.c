/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic: a process that plugs into a network as a host of its own, without the kernel:
 *
 *	nic SOCKET        send back whatever arrives, to whoever sent it
 *	nic SOCKET TEXT   broadcast TEXT, print the first answer
 *
 * SOCKET is a vhost-user port of weft, or of another back-end, and may have options behind it, such as
 * /tmp/a.sock,rxbuf=page,coalesce=off.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#define BATCH 32
#define TYPE  "\x88\xb5" /* for experiments on one's own network [IEEE 802] */

static void send_text(struct weft_nic *nic, const char *text)
{
	uint32_t len = 14 + (uint32_t)strlen(text);
	struct weft_pkt *pkt;
	void *data;
	char *frame;

	pkt = weft_pkt_new(nic, len, &data);
	if (!pkt)
		errx(1, "no memory for a packet");
	frame = data;
	memset(frame, 0xff, 6);
	weft_nic_mac(nic, (uint8_t *)frame + 6);
	memcpy(frame + 12, TYPE, 2);
	memcpy(frame + 14, text, len - 14);
	if (!weft_nic_send(nic, &pkt, 1))
		errx(1, "no room for a packet");
}

/* A packet that came is sent back as it is, with only its addresses changed: nothing is copied. */
static void answer(struct weft_nic *nic, struct weft_pkt *pkt)
{
	struct iovec first;
	char *frame;

	weft_pkt_pieces(pkt, &first, 1);
	frame = first.iov_base;
	if (first.iov_len < 14 || memcmp(frame + 12, TYPE, 2) != 0) {
		weft_pkt_free(pkt);
		return;
	}
	memcpy(frame, frame + 6, 6);
	weft_nic_mac(nic, (uint8_t *)frame + 6);
	if (!weft_nic_send(nic, &pkt, 1))
		weft_pkt_free(pkt);
}

static int is_answer(struct weft_pkt *pkt)
{
	char frame[1500] = "";
	uint32_t len = weft_pkt_copy(pkt, 0, frame, sizeof(frame) - 1);

	weft_pkt_free(pkt);
	if (len < 14 || memcmp(frame + 12, TYPE, 2) != 0)
		return 0;
	printf("answer of %u bytes: %s\n", len, frame + 14);
	return 1;
}

int main(int argc, char **argv)
{
	struct weft_pkt *pkt[BATCH];
	struct weft_nic *nic;
	char err[WEFT_ERR] = "";
	int sent = 0, answered = 0;
	unsigned n;

	if (argc < 2)
		errx(2, "usage: nic SOCKET [TEXT]");
	if (weft_nic_open(&nic, argv[1], err))
		errx(1, "%s", err);
	while (!answered && !weft_nic_dispatch(nic, 1)) {
		if (argc > 2 && weft_nic_up(nic) && !sent++)
			send_text(nic, argv[2]);
		while ((n = weft_nic_receive(nic, pkt, BATCH))) {
			for (unsigned i = 0; i < n; i++) {
				if (argc == 2)
					answer(nic, pkt[i]);
				else
					answered |= is_answer(pkt[i]);
			}
		}
	}
	weft_nic_close(nic);
	return 0;
}
