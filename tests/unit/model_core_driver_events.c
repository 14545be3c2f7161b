/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_driver_records.h"

enum { QUEUE, ERROR, RESET, MEMORY, MEMORY_OTHER, WAIT, TEXTS };

#define NODES ",\"nodes\":[{\"index\":3,\"path\":\"/dev/accel/accel0\"}]"
#define IOCTLS                                                                \
	",\"ioctls\":[{\"number\":25668,\"name\":\"EXECUTE_BO\",\"role\":7}," \
	"{\"number\":25670,\"name\":\"WAIT_BO\",\"role\":8},{\"number\":1,\"name\":\"PLAIN\"}]"

static struct fixture *fixture_driver(void)
{
	struct fixture *f = fixture_toy();

	driver(f, 0, "npu", XPT_PAIRING_UNIQUE, 64, IOCTLS NODES);
	driver_event(f, QUEUE, 0, XPT_EVENT_QUEUE, true, "kDE");
	driver_event(f, ERROR, 0, XPT_EVENT_ERROR, false, "DENsv");
	driver_event(f, RESET, 0, XPT_EVENT_RESET, false, "de");
	driver_event(f, MEMORY, 0, XPT_EVENT_MEMORY, true, "Dazcfn");
	driver_event(f, MEMORY_OTHER, 0, XPT_EVENT_MEMORY, false, "a");
	driver_event(f, WAIT, 0, XPT_EVENT_WAIT, true, "a");
	driver_event(f, TEXTS, 0, XPT_EVENT_RESET, false, "tp");
	return f;
}

static const struct event_device *device_nth(const struct fixture *f, size_t nth)
{
	return &seen_nth(f, EVENT_DEVICE, nth)->event.device;
}

/* The event's own texts are gone when the sink has returned. */
struct texts {
	char device[64], engine[64], name[64];
};

static int texts_write(void *context, const struct event *event)
{
	struct texts *texts = context;

	if (event->kind != EVENT_DEVICE)
		return 0;
	snprintf(texts->device, sizeof(texts->device), "%s", event->device.device);
	snprintf(texts->engine, sizeof(texts->engine), "%s", event->device.engine);
	snprintf(texts->name, sizeof(texts->name), "%s", event->device.name);
	return 0;
}

Test(model_core_driver_events, errors_of_devices)
{
	struct fixture *f = fixture_driver();
	const struct event_device *device;
	struct texts texts = {};

	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ texts_write, &texts }), 0);
	OTHER(f, QUEUE, 50, U(1), "dev", "gfx");
	OTHER(f, ERROR, 100, "dev", "gfx", "GPU has fallen off the bus", U((__u64)-79), U(5));
	cr_assert_eq(model_flush(f->model), 0);
	device = device_nth(f, 0);
	cr_assert_str_eq(device->driver, "npu");
	cr_assert_str_eq(device->event, "toy:event_1");
	cr_assert_eq(device->role, XPT_EVENT_ERROR);
	cr_assert_eq(device->queue, model_queue(f->model, 0));
	cr_assert_str_eq(texts.device, "dev");
	cr_assert_str_eq(texts.engine, "gfx");
	cr_assert_str_eq(texts.name, "GPU has fallen off the bus");
	cr_assert_eq(device->time, 100);
	cr_assert_eq(device->tgid, 0);
	cr_assert_eq(device->tid, 0);
	cr_assert_eq(device->job, 0);
	cr_assert_eq(device->have, 1u << XPT_FIELD_STATUS | 1u << XPT_FIELD_VALUE);
	cr_assert_eq(device->status, -79);
	cr_assert_eq(device->value, 5);
	fixture_free(f);
}

Test(model_core_driver_events, resets_and_memory)
{
	struct fixture *f = fixture_driver();
	const struct event_device *device;
	struct texts texts = {};

	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ texts_write, &texts }), 0);
	TARGET(f, RESET, 7, 8, 100, U(0), U(12));
	TARGET(f, MEMORY, 7, 8, 110, "dev", U(0x1000), U(4096), U(1), U(2), U(3));
	OTHER(f, MEMORY_OTHER, 120, U(0x2000));
	OTHER(f, TEXTS, 130, "text", U(4));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_DEVICE], 4);
	device = device_nth(f, 0);
	cr_assert_eq(device->role, XPT_EVENT_RESET);
	cr_assert_null(device->queue, "no job was seen there");
	cr_assert_eq(device->tid, 0, "a reset is nobody's");
	cr_assert_not(device->target);
	cr_assert_eq(device->have, 0);
	device = device_nth(f, 1);
	cr_assert_eq(device->role, XPT_EVENT_MEMORY);
	cr_assert_eq(device->tgid, 7);
	cr_assert_eq(device->tid, 8);
	cr_assert(device->target);
	cr_assert_eq(device->address, 0x1000);
	cr_assert_eq(device->size, 4096);
	cr_assert_eq(device->context, 1);
	cr_assert_eq(device->client, 2);
	cr_assert_eq(device->count, 3);
	device = device_nth(f, 2);
	cr_assert_eq(device->tgid, 0, "not by its thread");
	cr_assert_eq(device_nth(f, 3)->have, 0, "a text is no number, and a depth is not reported");
	cr_assert_str_eq(texts.device, "");
	cr_assert_eq(model_queue_count(f->model), 0);
	fixture_free(f);
}

Test(model_core_driver_events, ioctls)
{
	struct fixture *f = fixture_driver();
	const struct event_ioctl *ioctl;

	cr_assert_eq(feed_ioctl(f, 3, 7, 8, 0xc0106444, 100, 150, 0), 0);
	cr_assert_eq(feed_ioctl(f, 3, 7, 8, 0x40106446, 200, 250, -110), 0);
	cr_assert_eq(feed_ioctl(f, 3, 7, 8, 0x80080001, 300, 350, 1), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_IOCTL], 3);
	ioctl = &seen_nth(f, EVENT_IOCTL, 0)->event.ioctl;
	cr_assert_str_eq(ioctl->driver, "npu");
	cr_assert_str_eq(ioctl->node, "/dev/accel/accel0");
	cr_assert_str_eq(ioctl->name, "EXECUTE_BO");
	cr_assert_eq(ioctl->role, XPT_EVENT_SUBMIT);
	cr_assert_eq(ioctl->tgid, 7);
	cr_assert_eq(ioctl->tid, 8);
	cr_assert_eq(ioctl->start, 100);
	cr_assert_eq(ioctl->end, 150);
	cr_assert_eq(ioctl->command, 0xc0106444);
	cr_assert_eq(ioctl->result, 0);
	ioctl = &seen_nth(f, EVENT_IOCTL, 1)->event.ioctl;
	cr_assert_eq(ioctl->role, XPT_EVENT_WAIT);
	cr_assert_eq(ioctl->result, -110);
	ioctl = &seen_nth(f, EVENT_IOCTL, 2)->event.ioctl;
	cr_assert_str_eq(ioctl->name, "PLAIN");
	cr_assert_eq(ioctl->role, 0);
	cr_assert_eq(f->kinds[EVENT_PROCESS], 1);
	fixture_free(f);
}

static char ioctl_name[16];

static int name_write(void *context, const struct event *event)
{
	(void)context;
	if (event->kind == EVENT_IOCTL)
		snprintf(ioctl_name, sizeof(ioctl_name), "%s", event->ioctl.name);
	return 0;
}

Test(model_core_driver_events, an_ioctl_without_a_name)
{
	struct fixture *f = fixture_driver();

	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ name_write, NULL }), 0);
	cr_assert_eq(feed_ioctl(f, 3, 7, 8, 0xc0100a44, 100, 150, 0), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(ioctl_name, "0x0a44");
	cr_assert_eq(seen_nth(f, EVENT_IOCTL, 0)->event.ioctl.role, 0);
	fixture_free(f);
}

Test(model_core_driver_events, waits_are_in_no_report)
{
	struct fixture *f = fixture_driver();

	TARGET(f, WAIT, 7, 8, 100, U(1));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->count, 0);
	fixture_free(f);
}

Test(model_core_driver_events, records_that_do_not_fit_their_description)
{
	struct fixture *f = fixture_driver();
	struct event_record record = event_make(QUEUE, 7, 8, true, 100, U(1), "dev", "gfx");
	struct xpt_record_header header = { XPT_RECORD_EVENT, sizeof(header), 1, 1 };

	record.event.header.size -= 8;
	cr_assert_eq(feed_event(f, record), -EBADMSG);
	record.event.header.size += 16;
	cr_assert_eq(feed_event(f, record), -EBADMSG);
	record.event.header.size -= 8;
	record.event.event = 50;
	cr_assert_eq(feed_event(f, record), -EBADMSG);
	record.event.event = XPT_EVENT_MAX;
	cr_assert_eq(feed_event(f, record), -EBADMSG);
	record.event.event = 0xffff;
	cr_assert_eq(feed_event(f, record), -EBADMSG);
	cr_assert_eq(model_feed(f->model, &header), -EBADMSG);
	header.kind = XPT_RECORD_IOCTL;
	cr_assert_eq(model_feed(f->model, &header), -EBADMSG);
	cr_assert_eq(feed_ioctl(f, 2, 7, 8, 0, 100, 150, 0), -EBADMSG, "no such node");
	cr_assert_eq(feed_ioctl(f, XPT_NODE_MAX, 7, 8, 0, 100, 150, 0), -EBADMSG);
	cr_assert_eq(feed_ioctl(f, 3, 7, 8, 0, 160, 150, 0), -EBADMSG, "it begins after its end");
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->count, 0);
	fixture_free(f);
}
