/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be preloaded: for its process the real-time clock is an hour ahead in every second fifth of a second, as if somebody set it
 * back and forth. Other clocks are as they are.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define JUMP 3600	  /* s */
#define PERIOD 200000000l /* ns between two of them */

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
	struct timespec now;

	if (syscall(SYS_clock_gettime, clock, time))
		return -1;
	if (clock == CLOCK_REALTIME && !syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) && now.tv_nsec / PERIOD % 2)
		time->tv_sec += JUMP;
	return 0;
}
