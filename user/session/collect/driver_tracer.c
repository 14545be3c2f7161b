/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/collector.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "describe/driver/driver.h"
#include "session/reader/describe_records.h"
#include "target/tracepoint/driver_events.h"

#define IOCTL_LINKS 2

/* One driver of the descriptions; the index is that of the wire. */
struct follow {
	bool wanted; /* by name */
	bool taken;  /* its events or nodes are followed */
	bool warned; /* that it is not there */
	__u8 group;
	struct driver_events events; /* as found last; of a taken one, as it is followed */
};

/* A tracepoint that is attached to, and the described events that are made of it. */
struct tracepoint_link {
	__u32 id;
	__u16 first, last; /* specs */
	unsigned int chain;
	struct attachment *attachment;
};

struct driver_tracer {
	struct collector *collector;
	bool automatic;
	struct drivers *drivers;
	struct tracefs tracefs;
	bool readable; /* tracefs is */
	struct follow follow[XPT_DRIVER_MAX];
	struct xpt_event_spec specs[XPT_EVENT_MAX];
	size_t spec_count;
	struct tracepoint_link links[XPT_EVENT_MAX];
	size_t link_count;
	size_t attached; /* tracepoints, in all */
	struct attachment *ioctls[IOCTL_LINKS];
	dev_t nodes[XPT_NODE_MAX];
	size_t node_count;
	int uevents;
	bool unusable; /* the kernel does not take the programs */
};

/* ---- what the kernel tracer has to do at an event: from its description and the tracepoint's layout ---- */

/* How events are filtered in the kernel (wire.h, XPT_EVENT_OF_*). */
struct event_filter {
	__u8 group;	   /* drivers with comparable keys */
	bool knows_device; /* an event of the driver, or of one with the same jobs, has the device */
	bool learns;	   /* such an event is on the submitting thread: else no device would ever be known */
	bool foreign;	   /* it is no driver of devices: it reports the jobs of all other drivers */
};

/* Bytes from the record's begin that have to be read for the field; 0: its text is read where it is. */
static size_t field_end(const struct tracepoint_field *field)
{
	switch (field->access) {
	case XPT_ACCESS_NUMBER:
		return field->offset + field->size;
	case XPT_ACCESS_DATA_LOC:
	case XPT_ACCESS_RELATIVE:
		return field->offset + sizeof(__u32);
	case XPT_ACCESS_KERNEL_STRING:
		return field->offset + sizeof(__u64);
	default:
		return 0;
	}
}

/* Where a number stands for the text, the number has to be read first. */
static __u16 number_size(const struct tracepoint_field *field)
{
	switch (field->access) {
	case XPT_ACCESS_DATA_LOC:
	case XPT_ACCESS_RELATIVE:
		return sizeof(__u32);
	case XPT_ACCESS_KERNEL_STRING:
		return sizeof(__u64);
	default:
		return field->size;
	}
}

static struct xpt_event_field make_field(const struct tracepoint_field *field, struct xpt_event_spec *spec)
{
	size_t end = field_end(field);

	if (end > spec->span)
		spec->span = end < UINT16_MAX ? end : UINT16_MAX;
	return (struct xpt_event_field){
		.offset = field->offset,
		.size = number_size(field),
		.access = field->access,
		.is_signed = field->access == XPT_ACCESS_NUMBER && field->is_signed,
		.meaning = field->field->meaning,
	};
}

static void make_condition(const struct tracepoint *tracepoint, struct xpt_event_spec *spec)
{
	const struct driver_condition *condition = &tracepoint->event->condition;

	if (!tracepoint->condition.field)
		return;
	spec->flags |= XPT_EVENT_CONDITION | (condition->differs ? XPT_EVENT_DIFFERS : 0);
	spec->condition = make_field(&tracepoint->condition, spec);
	spec->number = condition->number;
	if (condition->text)
		strncpy(spec->text, condition->text, sizeof(spec->text) - 1);
}

/* Texts follow the numbers of a record, as a rule: what is read at once may have them, too. */
static void add_texts(struct xpt_event_spec *spec)
{
	size_t texts = 0;

	for (size_t i = 0; i < spec->fields; i++)
		texts += spec->field[i].access == XPT_ACCESS_DATA_LOC || spec->field[i].access == XPT_ACCESS_RELATIVE;
	if (texts && spec->span < XPT_EVENT_SPAN_MAX) {
		texts = spec->span + texts * XPT_EVENT_TEXT;
		spec->span = texts < XPT_EVENT_SPAN_MAX ? texts : XPT_EVENT_SPAN_MAX;
	}
}

/* Whether events of the role happen on the thread that wants them. */
static bool event_is_by_thread(enum xpt_event_role role)
{
	return role == XPT_EVENT_QUEUE || role == XPT_EVENT_MEMORY || role == XPT_EVENT_SUBMIT ||
	       role == XPT_EVENT_WAIT;
}

/* Only the first part of a key of several is the same for many jobs: a context, or a device. */
static __u16 filter_flags(const struct tracepoint *tracepoint, const struct event_filter *filter, bool has_device)
{
	enum xpt_event_role role = tracepoint->event->role;
	bool has_context = tracepoint->event->key_count > 1;
	__u16 flags = has_device && filter->learns ? XPT_EVENT_OF_DEVICE : 0;

	if (!has_context)
		return flags;
	/* A job that was queued before its device was known: its end, which does not name the device, is to be seen as well. */
	if (role == XPT_EVENT_QUEUE || (role == XPT_EVENT_RUN && flags))
		flags |= XPT_EVENT_GIVES_CONTEXT;
	if (role == XPT_EVENT_QUEUE) {
		if (!has_device && (filter->foreign || filter->knows_device))
			flags |= XPT_EVENT_OF_CONTEXT;
	} else if (!has_device) {
		flags |= XPT_EVENT_OF_CONTEXT;
	}
	return flags;
}

/* index and next are left 0. -ERANGE: a number is beyond XPT_EVENT_SPAN_MAX. */
static int event_spec_make(const struct tracepoint *tracepoint, const struct event_filter *filter,
			   struct xpt_event_spec *spec)
{
	bool has_device = false;

	*spec = (struct xpt_event_spec){
		.role = tracepoint->event->role,
		.fields = tracepoint->field_count,
		.device = XPT_EVENT_VALUES_MAX,
		.group = filter->group,
		.flags = event_is_by_thread(tracepoint->event->role) ? XPT_EVENT_BY_THREAD : 0,
	};
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		spec->field[i] = make_field(&tracepoint->fields[i], spec);
		if (spec->field[i].meaning == XPT_FIELD_DEVICE && !has_device) {
			has_device = true;
			spec->device = i;
		}
	}
	make_condition(tracepoint, spec);
	add_texts(spec);
	spec->flags |= filter_flags(tracepoint, filter, has_device);
	return spec->span > XPT_EVENT_SPAN_MAX ? -ERANGE : 0;
}

/* ---- which drivers ---- */

/* Their number when there is none of that name. */
static size_t index_of(const struct driver_tracer *tracer, const char *name)
{
	size_t i = 0;

	while (i < tracer->drivers->count && strcmp(tracer->drivers->items[i]->name, name))
		i++;
	return i;
}

static int want(struct driver_tracer *tracer, const char *name)
{
	size_t driver = index_of(tracer, name);

	if (driver == tracer->drivers->count) {
		log_error(&tracer->collector->log,
			  "there is no driver %s: `xputrace list drivers` shows those that are described", name);
		return -EINVAL;
	}
	tracer->follow[driver].wanted = true;
	return 0;
}

static int choose(struct driver_tracer *tracer, const char *choice)
{
	char *names, *rest, *name;
	int error = 0;

	tracer->automatic = !choice || !strcmp(choice, "auto");
	if (tracer->automatic)
		return 0;
	names = strdup(choice);
	if (!names)
		return -ENOMEM;
	name = strtok_r(names, ",", &rest);
	if (!name) {
		log_error(&tracer->collector->log,
			  "no driver is named: auto, none, or names with commas between are possible");
		error = -EINVAL;
	}
	for (; name && !error; name = strtok_r(NULL, ",", &rest))
		error = want(tracer, name);
	free(names);
	return error;
}

/* Gives all drivers that are joined by any of their sets one number. */
static void make_groups(struct driver_tracer *tracer)
{
	const struct drivers *drivers = tracer->drivers;

	for (size_t i = 0; i < drivers->count; i++)
		tracer->follow[i].group = i;
	for (size_t i = 0; i < drivers->count; i++) {
		for (size_t s = 0; s < drivers->items[i]->set_count; s++) {
			const struct driver_set *set = &drivers->items[i]->sets[s];

			for (size_t j = 0; j < set->join_count; j++) {
				__u8 from = tracer->follow[index_of(tracer, set->joins[j].driver)].group;

				for (size_t k = 0; k < drivers->count; k++)
					if (tracer->follow[k].group == from)
						tracer->follow[k].group = tracer->follow[i].group;
			}
		}
	}
}

int driver_tracer_create(struct collector *collector, struct driver_tracer **result)
{
	const struct collector_options *options = &collector->options;
	struct driver_tracer *tracer;
	int error;

	*result = NULL;
	if (options->drivers && !strcmp(options->drivers, "none"))
		return 0;
	tracer = calloc(1, sizeof(*tracer));
	if (!tracer)
		return -ENOMEM;
	tracer->collector = collector;
	tracer->uevents = -1;
	error = drivers_create(&collector->log, options->driver_files, options->driver_file_count, &tracer->drivers);
	if (!error)
		error = choose(tracer, options->drivers);
	if (error) {
		driver_tracer_free(tracer);
		return error;
	}
	make_groups(tracer);
	error = tracefs_open(options->tracefs, &tracer->tracefs);
	tracer->readable = !error;
	if (error)
		log_write(&collector->log, tracer->automatic ? XPT_LOG_WARN : XPT_LOG_ERROR,
			  "the device side is not seen: %s", tracefs_advice(error));
	if (error && !tracer->automatic) {
		driver_tracer_free(tracer);
		return error;
	}
	*result = tracer;
	return 0;
}

void driver_tracer_free(struct driver_tracer *tracer)
{
	if (!tracer)
		return;
	driver_tracer_detach(tracer);
	for (size_t i = 0; tracer->drivers && i < tracer->drivers->count; i++)
		driver_events_free(&tracer->follow[i].events);
	if (tracer->uevents >= 0)
		close(tracer->uevents);
	tracefs_close(&tracer->tracefs);
	drivers_free(tracer->drivers);
	free(tracer);
}

/* ---- what is there ---- */

static bool has_role(const struct driver_events *events, enum xpt_event_role role)
{
	for (size_t i = 0; i < events->event_count; i++)
		if (events->events[i].found && events->events[i].event->role == role)
			return true;
	return false;
}

static bool knows_device(const struct driver_events *events, bool by_thread)
{
	for (size_t i = 0; i < events->event_count; i++) {
		const struct tracepoint *tracepoint = &events->events[i];

		if (!tracepoint->found || (by_thread && !event_is_by_thread(tracepoint->event->role)))
			continue;
		for (size_t f = 0; f < tracepoint->field_count; f++)
			if (tracepoint->fields[f].field->meaning == XPT_FIELD_DEVICE)
				return true;
	}
	return false;
}

/* One that is no driver of devices: the kernel always has its events, whatever devices there are. */
static bool is_general(const struct driver *driver)
{
	return !driver->module_count && !driver->ioctls.device_count;
}

static const struct driver_join *joins(const struct driver_tracer *tracer, size_t from, size_t to)
{
	const struct driver_set *set = tracer->follow[from].events.set, *other = tracer->follow[to].events.set;

	for (size_t j = 0; set && other && j < set->join_count; j++)
		if (driver_joins(set, &set->joins[j], tracer->drivers->items[to], other))
			return &set->joins[j];
	return NULL;
}

/* Whether another followed driver reports the end of this one's jobs. */
static bool is_ended_by_another(const struct driver_tracer *tracer, size_t driver)
{
	for (size_t i = 0; i < tracer->drivers->count; i++)
		if (i != driver && tracer->follow[i].taken && !is_general(tracer->drivers->items[i]) &&
		    joins(tracer, driver, i) && has_role(&tracer->follow[i].events, XPT_EVENT_DONE))
			return true;
	return false;
}

/* Drivers that no choice names, but with events that report the end of followed drivers' jobs. */
static bool is_needed(const struct driver_tracer *tracer, size_t general)
{
	for (size_t i = 0; i < tracer->drivers->count; i++)
		if (i != general && tracer->follow[i].taken && joins(tracer, i, general) &&
		    !is_ended_by_another(tracer, i))
			return true;
	return false;
}

/* ---- following them ---- */

static void pass_driver(struct driver_tracer *tracer, size_t driver)
{
	struct record_join found[XPT_DRIVER_MAX];
	const struct driver_join *join;
	size_t count = 0;

	for (size_t i = 0; i < tracer->drivers->count; i++) {
		join = i != driver && tracer->follow[i].taken ? joins(tracer, driver, i) : NULL;
		if (join)
			found[count++] = (struct record_join){ i, join->bits };
	}
	collector_pass_text(tracer->collector, record_driver(&tracer->follow[driver].events, driver, found, count,
							     tracer->nodes, tracer->node_count));
}

static struct tracepoint_link *link_of(struct driver_tracer *tracer, __u32 id)
{
	for (size_t i = 0; i < tracer->link_count; i++)
		if (tracer->links[i].id == id)
			return &tracer->links[i];
	return NULL;
}

/* Puts the spec behind the others of its tracepoint, which may be attached already. */
static int chain(struct driver_tracer *tracer, struct tracepoint_link *link, struct xpt_event_spec *spec)
{
	struct xpt_event_spec *first = &tracer->specs[link->first], *last = &tracer->specs[link->last];
	int error;

	if (spec->span > first->span) {
		first->span = spec->span;
		error = kern_set_event(tracer->collector->kern, first);
		if (error)
			return error;
	}
	error = kern_set_event(tracer->collector->kern, spec);
	if (error)
		return error;
	last->next = spec->index + 1;
	link->last = spec->index;
	link->chain++;
	return kern_set_event(tracer->collector->kern, last);
}

static int attach_new(struct driver_tracer *tracer, __u32 id, struct xpt_event_spec *spec)
{
	struct tracepoint_link *link = &tracer->links[tracer->link_count];
	int error = kern_set_event(tracer->collector->kern, spec);

	if (!error)
		error = kern_attach_event(tracer->collector->kern, id, spec->index, &link->attachment);
	if (error)
		return error;
	link->id = id;
	link->first = link->last = spec->index;
	link->chain = 1;
	tracer->link_count++;
	tracer->attached++;
	return 0;
}

/* One that cannot be followed is reported and left out. */
static int follow_event(struct driver_tracer *tracer, size_t driver, const struct tracepoint *tracepoint,
			const struct event_filter *filter)
{
	struct tracepoint_link *link = link_of(tracer, tracepoint->id);
	struct xpt_event_spec *spec = &tracer->specs[tracer->spec_count];
	const struct driver_event *event = tracepoint->event;
	int error = -E2BIG;

	if (tracer->spec_count < XPT_EVENT_MAX && (!link || link->chain < XPT_EVENT_CHAIN_MAX))
		error = event_spec_make(tracepoint, filter, spec);
	if (!error) {
		spec->index = tracer->spec_count++;
		collector_pass_text(tracer->collector, record_driver_event(tracepoint, spec, driver));
		error = link ? chain(tracer, link, spec) : attach_new(tracer, tracepoint->id, spec);
	}
	if (error)
		log_warn(&tracer->collector->log, "%s: %s:%s cannot be followed, in %s: %s",
			 tracer->drivers->items[driver]->name, event->system, event->name, tracer->tracefs.kernel,
			 error == -ERANGE ? "its fields are too far into the record" :
			 error == -E2BIG  ? "too many events are described" :
					    strerror(-error));
	return 0;
}

/* From the last role to the first: a job that is seen to be queued is seen to end. */
static int follow_events(struct driver_tracer *tracer, size_t driver, enum xpt_event_role from)
{
	const struct driver_events *events = &tracer->follow[driver].events;
	struct event_filter filter = {
		.group = tracer->follow[driver].group,
		.foreign = is_general(tracer->drivers->items[driver]),
		.knows_device = knows_device(events, false),
	};
	int error = 0;

	for (size_t i = 0; i < tracer->drivers->count; i++) {
		const struct follow *other = &tracer->follow[i];

		/* Not of all in the group: these devices may not report queueing as another one's do. */
		if (!other->taken || (i != driver && !joins(tracer, driver, i)))
			continue;
		filter.knows_device |= i != driver && knows_device(&other->events, false);
		filter.learns |= knows_device(&other->events, true);
	}
	/* Where jobs are matched by their order only, none may be left out: its end would be taken for another's. */
	if (events->set && events->set->pairing == XPT_PAIRING_ORDER)
		filter.learns = false;
	for (enum xpt_event_role role = XPT_EVENT_WAIT; role >= from && !error; role--) {
		for (size_t i = 0; i < events->event_count && !error; i++)
			if (events->events[i].found && events->events[i].event->role == role)
				error = follow_event(tracer, driver, &events->events[i], &filter);
	}
	return error;
}

static bool has_node(const struct driver_tracer *tracer, dev_t device)
{
	for (size_t i = 0; i < tracer->node_count; i++)
		if (tracer->nodes[i] == device)
			return true;
	return false;
}

/* The two events of ioctls come last. */
static int attach_ioctls(struct driver_tracer *tracer, const struct driver_events *events)
{
	const struct tracepoint *enter = &events->events[events->event_count - IOCTL_LINKS];
	int error;

	if (tracer->ioctls[0])
		return 0;
	error = kern_attach_ioctls(tracer->collector->kern, enter[0].id, enter[1].id, tracer->ioctls);
	if (!error)
		log_info(&tracer->collector->log,
			 "ioctls on %s are followed: every system call of this machine takes a little longer meanwhile",
			 events->nodes.items[0].path);
	return error;
}

/* New nodes of the driver. Their record precedes their first ioctl. */
static int follow_nodes(struct driver_tracer *tracer, size_t driver)
{
	const struct driver_events *events = &tracer->follow[driver].events;
	size_t before = tracer->node_count;
	int error = 0;

	if (events->event_count < IOCTL_LINKS || !events->events[events->event_count - 1].found)
		return 0;
	for (size_t i = 0; i < events->nodes.count && tracer->node_count < XPT_NODE_MAX; i++)
		if (!has_node(tracer, events->nodes.items[i].device))
			tracer->nodes[tracer->node_count++] = events->nodes.items[i].device;
	if (tracer->node_count == before)
		return 0;
	pass_driver(tracer, driver);
	for (size_t i = before; i < tracer->node_count && !error; i++)
		error = kern_set_node(tracer->collector->kern, tracer->nodes[i], i);
	if (!error)
		error = attach_ioctls(tracer, events);
	if (error)
		log_warn(&tracer->collector->log, "%s: its ioctls cannot be followed: %s",
			 tracer->drivers->items[driver]->name, strerror(-error));
	return error == -ENOMEM ? error : 0;
}

/* Reports what is missing of a driver that is there, or why a requested one is not. */
static void report_missing(struct driver_tracer *tracer, size_t driver)
{
	struct follow *follow = &tracer->follow[driver];
	const struct driver_events *events = &follow->events;

	if (follow->warned)
		return;
	follow->warned = true;
	if (!events->found) {
		log_warn(&tracer->collector->log, "%s; it is followed as soon as it is there",
			 events->event_count ? events->events[0].reason : tracer->drivers->items[driver]->name);
		return;
	}
	for (size_t i = 0; i < events->event_count; i++)
		if (!events->events[i].found && !events->events[i].event->optional)
			log_warn(&tracer->collector->log, "%s; it is left out", events->events[i].reason);
}

static int open_kernel(struct driver_tracer *tracer)
{
	int error = kern_open_drivers(tracer->collector->kern);

	if (error)
		log_warn(&tracer->collector->log,
			 "the device side is not seen: the kernel does not take the program for it: %s",
			 strerror(-error));
	tracer->unusable = error != 0;
	return error;
}

/* Looks a driver up that is not followed yet. Whether it is there now. */
static bool look_up(struct driver_tracer *tracer, size_t driver, int *error)
{
	struct follow *follow = &tracer->follow[driver];

	driver_events_free(&follow->events);
	*error = driver_events_find(&tracer->tracefs, tracer->drivers->items[driver], &follow->events);
	if (*error && !error_is_shortage(*error))
		log_error(&tracer->collector->log, "cannot read the tracepoints of driver %s: %s",
			  tracer->drivers->items[driver]->name, strerror(-*error));
	return !*error && follow->events.found;
}

/* The ones to follow from now on: fresh[]. All are looked up before any is attached to, as they refer to each other. */
static int find_fresh(struct driver_tracer *tracer, bool fresh[XPT_DRIVER_MAX])
{
	int error = 0;

	for (size_t i = 0; i < tracer->drivers->count && !error; i++) {
		struct follow *follow = &tracer->follow[i];

		fresh[i] = false;
		if (follow->taken)
			continue;
		if (!look_up(tracer, i, &error)) {
			if (!error && follow->wanted)
				report_missing(tracer, i);
			continue;
		}
		fresh[i] = follow->taken = tracer->automatic ? !is_general(tracer->drivers->items[i]) : follow->wanted;
	}
	return error;
}

static int follow_driver(struct driver_tracer *tracer, size_t driver, enum xpt_event_role from)
{
	const struct driver *description = tracer->drivers->items[driver];
	size_t before = tracer->attached, nodes = tracer->node_count;
	int error;

	if (!tracer->unusable)
		pass_driver(tracer, driver);
	error = tracer->collector->error;
	if (!error)
		error = follow_events(tracer, driver, from);
	if (!error && description->ioctls.device_count && !has_role(&tracer->follow[driver].events, XPT_EVENT_QUEUE))
		error = follow_nodes(tracer, driver);
	log_info(&tracer->collector->log, "driver %s (%s): %zu tracepoints, %zu device nodes", description->name,
		 description->title, tracer->attached - before, tracer->node_count - nodes);
	report_missing(tracer, driver);
	return error;
}

/* Those that end the jobs of others are followed for nothing else. */
static int follow_needed(struct driver_tracer *tracer)
{
	int error = 0;

	for (size_t i = 0; i < tracer->drivers->count && !error; i++) {
		struct follow *follow = &tracer->follow[i];

		if (follow->taken || !follow->events.found || !is_needed(tracer, i))
			continue;
		follow->taken = true;
		error = follow_driver(tracer, i, XPT_EVENT_DONE);
	}
	return error;
}

static int scan(struct driver_tracer *tracer)
{
	bool fresh[XPT_DRIVER_MAX] = {};
	int error = find_fresh(tracer, fresh);

	for (size_t i = 0; i < tracer->drivers->count && !error; i++)
		if (fresh[i] && (tracer->unusable || open_kernel(tracer)))
			return 0;
	if (!error)
		error = follow_needed(tracer);
	for (size_t i = 0; i < tracer->drivers->count && !error; i++)
		if (fresh[i])
			error = follow_driver(tracer, i, XPT_EVENT_QUEUE);
	return error;
}

/* Drivers that are followed by their nodes may get more of them. */
static int scan_nodes(struct driver_tracer *tracer)
{
	int error = 0;

	for (size_t i = 0; i < tracer->drivers->count && !error; i++) {
		struct follow *follow = &tracer->follow[i];
		struct device_nodes nodes;

		if (!follow->taken || !tracer->drivers->items[i]->ioctls.device_count ||
		    has_role(&follow->events, XPT_EVENT_QUEUE))
			continue;
		error = device_nodes_find(&tracer->drivers->items[i]->ioctls, &nodes);
		if (error)
			break;
		device_nodes_free(&follow->events.nodes);
		follow->events.nodes = nodes;
		error = follow_nodes(tracer, i);
	}
	return error;
}

int driver_tracer_start(struct driver_tracer *tracer)
{
	if (!tracer->readable)
		return 0;
	/* Open before the first scan: what comes in between is seen twice rather than not at all. */
	tracer->uevents = uevents_open();
	if (tracer->uevents < 0)
		log_debug(&tracer->collector->log, "drivers that are loaded later are not seen: %s",
			  strerror(-tracer->uevents));
	return scan(tracer);
}

int driver_tracer_descriptor(const struct driver_tracer *tracer)
{
	return tracer->uevents;
}

int driver_tracer_look(struct driver_tracer *tracer)
{
	int error;

	if (tracer->uevents < 0 || !uevents_read(tracer->uevents) || tracer->unusable)
		return 0;
	error = scan(tracer);
	return error ?: scan_nodes(tracer);
}

void driver_tracer_detach(struct driver_tracer *tracer)
{
	struct attachment *all[XPT_EVENT_MAX + IOCTL_LINKS];
	size_t count = 0;

	for (size_t i = 0; i < tracer->link_count; i++)
		all[count++] = tracer->links[i].attachment;
	for (size_t i = 0; i < IOCTL_LINKS; i++)
		all[count++] = tracer->ioctls[i];
	kern_detach(tracer->collector->kern, all, count);
	tracer->link_count = 0;
	memset(tracer->ioctls, 0, sizeof(tracer->ioctls));
}

size_t driver_tracer_tracepoints(const struct driver_tracer *tracer)
{
	return tracer ? tracer->attached : 0;
}

size_t driver_tracer_nodes(const struct driver_tracer *tracer)
{
	return tracer ? tracer->node_count : 0;
}
