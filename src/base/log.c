/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log: makes a line, counts it against the second's share, hands it to the sink.
 */
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define LOG_TEXT 512

void log_init(struct log *log, enum log_level level,
	void (*sink)(void *, enum log_level, const char *, const char *), void *ctx)
{
	memset(log, 0, sizeof(*log));
	log->level = level;
	log->sink = sink;
	log->ctx = ctx;
}

/* A new second: tell what the last one left out, start counting anew. */
static void log_turn(struct log *log, nsec_t now)
{
	char text[64];
	unsigned left_out = log->left_out;

	log->second = now;
	log->lines = 0;
	log->left_out = 0;
	if (!left_out)
		return;
	snprintf(text, sizeof(text), "%u lines left out", left_out);
	log->sink(log->ctx, LOG_WARN, "log", text);
}

void log_say(struct log *log, enum log_level level, const char *tag, const char *fmt, ...)
{
	char text[LOG_TEXT];
	va_list ap;
	nsec_t now;

	if (!log || !log->sink || level > log->level)
		return;
	now = clock_now();
	if (!log->second || now - log->second >= NSEC_PER_SEC)
		log_turn(log, now);
	if (log->lines >= LOG_BURST) {
		log->left_out++;
		return;
	}
	log->lines++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* A peer's text must not steer a terminal or forge a line. */
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	log->sink(log->ctx, level, tag, text);
}
