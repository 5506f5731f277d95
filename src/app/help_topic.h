/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * help_topic: lists of terms that people meet in what the network shows, each with a line that
 * explains it. `weft help TOPIC` and the manual page are made from them.
 */
#ifndef APP_HELP_TOPIC_H
#define APP_HELP_TOPIC_H

struct help_term {
	const char *name, *help;
};

struct help_topic {
	const char *word, *title;     /* of `weft help`; the heading */
	const struct help_term *term; /* ends with name NULL */
};

extern const struct help_topic help_topics[]; /* ends with word NULL */

#endif
