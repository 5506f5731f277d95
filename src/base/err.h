/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * err: the error law of set-up paths.
 *
 * A set-up function returns 0 or -errno and takes a `struct err *` last. The lowest place that
 * knows the words says once what is wrong, which value, and what would be right; every place above
 * passes code and text up unchanged. The library never prints: the program does, at the top.
 * Frames are never errors: they are taken, or dropped with a reason (port/port.h).
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_TEXT 320 /* bytes, one line without a newline, always terminated */

struct err {
	char text[ERR_TEXT];
};

/*
 * Say what went wrong. `code` is a positive errno value; returns -code, so that a caller writes
 * `return err_set(err, EINVAL, "...")`. `err` may be NULL: then only the code is told.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
