# SPDX-License-Identifier: BSD-2-Clause
# a text file as string literals of C, a line each
s/\\/\\\\/g
s/"/\\"/g
s/^/"/
s/$/\\n"/
