/* SPDX-License-Identifier: BSD-2-Clause */
/* What continuous profiling says through its socket, in both directions: the members that CONTROL.md lists. */
#ifndef XPT_SESSION_CONTINUOUS_MESSAGES_H
#define XPT_SESSION_CONTINUOUS_MESSAGES_H

#include <cjson/cJSON.h>
#include <xputrace/continuous.h>

/* Requests and answers as objects that the caller deletes; NULL: no memory. */
/* Those that are made are NULL where there is no memory. */
cJSON *message_save_request(const struct xpt_save_options *options);
cJSON *message_saved(const struct xpt_saved *saved);
cJSON *message_status(const struct xpt_continuous_status *status);

/* And back. The program is the object's. -EINVAL: a member is of the wrong kind or out of range: its name is in *member. */
int message_read_save(const cJSON *object, struct xpt_save_options *options, const char **member);
/* Members that are missing are 0: of an older version. size is left alone. -EINVAL. */
int message_read_saved(const cJSON *object, struct xpt_saved *saved);
int message_read_status(const cJSON *object, struct xpt_continuous_status *status);

#endif
