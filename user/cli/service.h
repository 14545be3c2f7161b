/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that run on when whoever started them has gone. */
#ifndef XPT_CLI_SERVICE_H
#define XPT_CLI_SERVICE_H

#include <stdbool.h>

#include <xputrace/error.h>

/* Standard streams that are closed lead nowhere from here on: what is opened later does not become one of them. */
void service_streams(void);
/*
 * Goes on in a process of its own, in a session of its own. Returns there; the process that called waits, and exits: with 0 once
 * service_ready() is called there, or with the status that the other one ends with before. When it is killed meanwhile, so is the
 * other one.
 */
void service_background(void);
/* It runs: tells whoever waits, the service manager too (NOTIFY_SOCKET). In the background messages go to the system's log from here on. */
void service_ready(void);
/* As print_message(), but dropped where that had to wait, once it runs; or into the system's log. */
void service_message(void *context, enum xpt_log_level level, const char *text);

#endif
