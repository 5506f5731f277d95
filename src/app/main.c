/* SPDX-License-Identifier: BSD-2-Clause */
/* main: the program weft. */
#include "app/cmd.h"

int main(int argc, char **argv)
{
	return cmd_main(argc, (const char *const *)argv);
}
