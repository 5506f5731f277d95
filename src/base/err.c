/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * err: the text of a set-up error. See err.h for the law.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	char *c;

	if (!err)
		return -code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	/* One line, whatever a value contains: a user reads it on a terminal. */
	for (c = err->text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	return -code;
}
