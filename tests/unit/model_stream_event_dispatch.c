/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/event_dispatch.h"

#include "model_records.h"

struct failing {
	unsigned int calls, good; /* good: calls before it fails */
};

static int failing_write(void *context, const struct event *event)
{
	struct failing *failing = context;

	(void)event;
	return failing->calls++ < failing->good ? 0 : -ENOSPC;
}

Test(model_stream_event_dispatch, a_sink_that_fails_gets_no_more_and_the_others_do)
{
	struct failing bad = { .good = 2 }, good = { .good = 1000 };
	struct fixture *f = fixture_toy();
	unsigned int i;

	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ failing_write, &bad }), 0);
	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ failing_write, &good }), 0);
	for (i = 0; i < 10; i++)
		toy_execute(f, 1, 5, 100 + i, 100 + i);
	cr_assert_eq(model_flush(f->model), -ENOSPC);
	cr_assert_eq(bad.calls, 3);
	cr_assert_eq(good.calls, 12, "ten calls, a process and its program");
	cr_assert_eq(f->kinds[EVENT_CALL], 10);
	toy_execute(f, 1, 5, 200, 210);
	cr_assert_eq(model_flush(f->model), 0, "reported once");
	cr_assert_eq(bad.calls, 3);
	fixture_free(f);
}

Test(model_stream_event_dispatch, a_damaged_record_does_not_hide_the_failure)
{
	struct fixture *f = fixture_toy();
	struct failing bad = { .good = 0 };

	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ failing_write, &bad }), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_PROCESS, 1, 10, 0, "{"), 0);
	toy_execute(f, 1, 5, 20, 30);
	cr_assert_eq(model_flush(f->model), -ENOSPC);
	fixture_free(f);
}

Test(model_stream_event_dispatch, sinks_are_limited)
{
	struct fixture *f = fixture_create();
	struct failing sink = { .good = 1000 };
	unsigned int i;

	for (i = 1; i < MODEL_SINKS_MAX; i++)
		cr_assert_eq(model_add_sink(f->model, (struct event_sink){ failing_write, &sink }), 0);
	cr_assert_eq(model_add_sink(f->model, (struct event_sink){ failing_write, &sink }), -ENOSPC);
	fixture_free(f);
}

Test(model_stream_event_dispatch, own_losses_are_reported_once_a_batch_and_by_cause)
{
	struct event_dispatch sinks = {};
	struct fixture *f = fixture_create();

	cr_assert_eq(event_dispatch_add(&sinks, (struct event_sink){ fixture_write, f }), 0);
	event_dispatch_lose(&sinks, XPT_LOSS_UNPAIRED, 1, 500);
	event_dispatch_lose(&sinks, XPT_LOSS_UNPAIRED, 2, 100);
	event_dispatch_lose(&sinks, XPT_LOSS_NAMES, 1, 300);
	cr_assert_eq(f->count, 0);
	cr_assert_eq(event_dispatch_settle(&sinks), 0);
	cr_assert_eq(event_dispatch_settle(&sinks), 0);
	cr_assert_eq(f->count, 2);
	cr_assert_eq(f->seen[0].event.lost.cause, XPT_LOSS_NAMES);
	cr_assert_eq(f->seen[1].event.lost.count, 3);
	cr_assert_eq(f->seen[1].event.lost.since, 100);
	cr_assert_eq(f->seen[1].event.lost.time, 500);
	cr_assert_eq(sinks.lost[XPT_LOSS_UNPAIRED], 3);
	fixture_free(f);
}
