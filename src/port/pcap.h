/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap: what a port sees, as a pcapng file: each frame with its time, its direction (epb_flags), and
 * a comment with the offload request, or with the drop reason if it went no further. libpcap cannot
 * write pcapng, so the three block types we need are built here. Buffered; written out when the buffer
 * is full and when the network is idle. A file that cannot be written any more ends the capture, not the port.
 * [draft-ietf-opsawg-pcapng]
 */
#ifndef PORT_PCAP_H
#define PORT_PCAP_H

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "frame/frame.h"

enum pcap_dir { PCAP_IN = 1, PCAP_OUT = 2 }; /* into the network (epb inbound); to the port */

struct pcap;

/* Create or truncate `path` (mode 0600); `port_name` becomes if_name. 0 or -errno. */
int pcap_open(struct pcap **, const char *path, const char *port_name, struct loop *, struct log *,
	struct err *);
void pcap_close(struct pcap *); /* flushes; NULL is fine */
/* One frame; at most `snap` 65549 bytes; drop: why it went no further. Reads the tail. */
void pcap_frame(struct pcap *, enum pcap_dir, const struct frame *, enum drop);

#endif
