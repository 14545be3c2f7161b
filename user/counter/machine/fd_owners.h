/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has perf events open. */
#ifndef XPT_COUNTER_MACHINE_FD_OWNERS_H
#define XPT_COUNTER_MACHINE_FD_OWNERS_H

#define FD_OWNERS_TEXT_MAX 256

/* "perf (1234), Xorg (99)": other processes than this one, as many as there is room for; "" when none is seen. */
void fd_owners_of_perf_events(char text[FD_OWNERS_TEXT_MAX]);

#endif
