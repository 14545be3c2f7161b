/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has perf events open. */
#ifndef XPT_DEVICE_MACHINE_HOLDERS_H
#define XPT_DEVICE_MACHINE_HOLDERS_H

#define HOLDERS_TEXT_MAX 256

/* "perf (1234), Xorg (99)": other processes than this one, as many as there is room for; "" when none is seen. */
void holders_of_perf_events(char text[HOLDERS_TEXT_MAX]);

#endif
