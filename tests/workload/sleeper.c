/* SPDX-License-Identifier: BSD-2-Clause */
/* A process without any accelerator runtime; also linked statically. Says "ready", waits for a line or its end. */
#include <stdio.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
