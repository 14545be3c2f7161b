/* SPDX-License-Identifier: BSD-2-Clause */
/* One entry of "events" of a driver description. */
#ifndef XPT_DESCRIBE_DRIVER_EVENT_H
#define XPT_DESCRIBE_DRIVER_EVENT_H

#include "describe/driver/driver.h"
#include "describe/reader/reader.h"

/* What names in the kernel are made of: they become parts of paths, so nothing else may be in them. */
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* Parses an element of an array into a zeroed event. */
void driver_event_parse(struct reader *reader, const struct member *element, struct driver_event *event);
void driver_event_clear(struct driver_event *event);

/* A role out of those that mask has (bit i: role i). */
enum xpt_event_role driver_role_parse(struct reader *reader, const struct member *member, unsigned int mask);

/* Fills the events with which the ioctls of all drivers are seen: entered, and left. */
int driver_ioctl_events(struct driver_event events[2]);

#endif
