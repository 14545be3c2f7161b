/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_driver_list(): what the kernel has of the described drivers. */
#include <xputrace/driver.h>

#include <errno.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "base/core/options.h"
#include "describe/driver/driver.h"
#include "target/tracepoint/driver_events.h"

typedef int (*visit_fn)(void *context, const struct xpt_driver_info *driver);

static const enum xpt_driver_state states[] = {
	[DRIVER_COMPLETE] = XPT_DRIVER_COMPLETE,
	[DRIVER_PARTIAL] = XPT_DRIVER_PARTIAL,
	[DRIVER_ABSENT] = XPT_DRIVER_ABSENT,
	[DRIVER_UNKNOWN] = XPT_DRIVER_UNKNOWN,
};

static int visit_driver(const struct driver_events *found, visit_fn visit, void *context)
{
	struct xpt_driver_event *events = calloc(found->event_count + 1, sizeof(*events));
	const char **devices = calloc(found->nodes.count + 1, sizeof(*devices));
	struct xpt_driver_info info = {
		.size = sizeof(info),
		.name = found->driver->name,
		.title = found->driver->title,
		.state = states[found->state],
		.set = found->set && found->set->name ? found->set->name : "",
		.events = events,
		.event_count = found->event_count,
		.event_size = sizeof(*events),
		.found = found->found,
		.devices = devices,
		.device_count = found->nodes.count,
	};
	int result = -ENOMEM;

	if (!events || !devices)
		goto out;
	for (size_t i = 0; i < found->event_count; i++) {
		const struct tracepoint *tracepoint = &found->events[i];

		events[i] = (struct xpt_driver_event){
			.system = tracepoint->event->system,
			.name = tracepoint->event->name,
			.role = driver_role_name(tracepoint->event->role),
			.optional = tracepoint->event->optional,
			.found = tracepoint->found,
			.reason = tracepoint->reason,
		};
	}
	for (size_t i = 0; i < found->nodes.count; i++)
		devices[i] = found->nodes.items[i].path;
	result = visit(context, &info);
out:
	free(events);
	free(devices);
	return result;
}

static int visit_all(const struct drivers *drivers, const struct tracefs *tracefs, visit_fn visit, void *context)
{
	int result = 0;

	for (size_t i = 0; i < drivers->count && !result; i++) {
		struct driver_events found;

		result = driver_events_find(tracefs, drivers->items[i], &found);
		if (!result)
			result = visit_driver(&found, visit, context);
		driver_events_free(&found);
	}
	return result;
}

/* What makes all drivers unknown, and is no failure. */
static bool is_unreadable(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -EACCES || error == -EPERM;
}

int xpt_driver_list(const struct xpt_driver_options *caller_options, visit_fn visit, void *context)
{
	struct xpt_driver_options options = { 0 };
	struct drivers *drivers = NULL;
	struct tracefs tracefs = { 0 };
	struct log log;
	int result = options_copy(&options, sizeof(options), caller_options), unreadable;

	if (result || !visit)
		return result ? result : -EINVAL;
	log = (struct log){ options.log, options.log_context, options.log_level };
	result = drivers_create(&log, options.driver_files, options.driver_file_count, &drivers);
	if (result)
		return result;
	unreadable = tracefs_open(options.tracefs, &tracefs);
	if (unreadable && !is_unreadable(unreadable)) {
		result = unreadable;
		goto out;
	}
	if (unreadable)
		log_warn(&log, "%s", tracefs_advice(unreadable));
	result = visit_all(drivers, unreadable ? NULL : &tracefs, visit, context);
out:
	tracefs_close(&tracefs);
	drivers_free(drivers);
	return result;
}
