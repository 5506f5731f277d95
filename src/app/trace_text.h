/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_text: what a trace has, for people or as JSON. Knows frames, no network.
 */
#ifndef APP_TRACE_TEXT_H
#define APP_TRACE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "port/trace.h"

void trace_text(FILE *, const struct trace *, const char *port, bool as_json);

#endif
