/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drill_knobs: how the host is set up for a script.
 */
#ifndef TESTS_DRILL_KNOBS_H
#define TESTS_DRILL_KNOBS_H

#include "drill_script.h"
#include "net/tcp.h"

int conf_of_script(const struct script *, struct tcp_conf *, struct err *);

#endif
