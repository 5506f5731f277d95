/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log: levelled lines with a tag (the port's or room's name), handed to a sink of the host program.
 * No sink, no output: the library never prints. Each log is rate-limited, so that a hostile peer
 * cannot fill a disk: at most LOG_BURST lines a second, then one line that counts what was left out.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>

#include "base/clock.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

#define LOG_BURST 20 /* lines per second and log; errors count, too */

struct log {
	void (*sink)(void *ctx, enum log_level, const char *tag, const char *text);
	void *ctx;
	enum log_level level; /* lines above it are not made */
	nsec_t second;        /* start of the running second */
	unsigned lines, left_out;
};

void log_init(struct log *, enum log_level,
	void (*sink)(void *, enum log_level, const char *, const char *), void *ctx);
/* `log` may be NULL: nothing happens. Never in the per-frame path. */
void log_say(struct log *, enum log_level, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
