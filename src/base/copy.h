/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy: long runs of bytes, for the one copy of the house.
 *
 * Why not memcpy(): the C library moves a few KiB with `rep movsb`, and on some processors (AMD Zen 3
 * and 4) that falls to a fifteenth of its speed when source and destination are a few bytes apart
 * modulo a page, which is what a virtio header in front of a frame does to every page of it. A plain loop
 * of vector loads and stores is as fast as memcpy() at its best, at nearly any distance, in any level of the
 * cache. docs/performance.md has the numbers.
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>
#include <stdint.h>

#define COPY_LONG_MIN 256 /* bytes from which the loop wins over the library's straight-line code */

/* As memcpy(); from COPY_LONG_MIN bytes on it pays. */
void copy_long(uint8_t *to, const uint8_t *from, size_t n);

#endif
