/* SPDX-License-Identifier: BSD-2-Clause */
/* One entry of "events" of a driver description. */
#ifndef XPT_DESCRIBE_DRIVER_EVENT_H
#define XPT_DESCRIBE_DRIVER_EVENT_H

#include "describe/driver/driver.h"
#include "describe/reader/reader.h"

/* What names in the kernel are made of: they become parts of paths, so nothing else may be in them. */
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* Parses value, at place, into a zeroed event. */
int driver_event_parse(const struct reader *reader, const cJSON *value, const struct json_place *place,
		       struct driver_event *event);
void driver_event_clear(struct driver_event *event);

/* A role out of those that mask has (bit i: role i). */
int driver_role_parse(const struct reader *reader, const struct json_place *place, const struct member *member,
		      unsigned int mask, enum xpt_event_role *role);

/* Fills the events with which the ioctls of all drivers are seen: entered, and left. */
int driver_ioctl_events(struct driver_event events[2]);

#endif
