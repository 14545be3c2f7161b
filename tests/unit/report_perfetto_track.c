/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of packets, what is interned, and what is written once more; as a reader of packets sees it. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "report/perfetto/events.h"

#define MOST 64
#define BOOT 1000

/* What a reader knows of a sequence. */
struct sequence {
	__u64 time;
	bool begun;
	char names[MOST][32];
};

struct shown {
	unsigned int type, flows;
	__u64 time;
	char name[32];
};

struct reading {
	struct sequence sequences[MOST];
	struct shown shown[MOST];
	__u64 counters[MOST]; /* a value beside each; 0: none */
	size_t count;
};

static struct pb_field field_of(const struct pb_field *message, unsigned int number)
{
	struct pb_reader reader = pb_reader(message->bytes, message->value);
	struct pb_field field, found = { 0 };

	while (pb_next(&reader, &field) == 1) {
		if (field.number == number)
			found = field;
	}
	return found;
}

static void read_event(struct reading *reading, const struct sequence *sequence, const struct pb_field *event,
		       __u64 time)
{
	struct shown *shown = &reading->shown[reading->count];
	struct pb_reader reader = pb_reader(event->bytes, event->value);
	struct pb_field field;

	cr_assert(sequence->begun, "an event before the begin of its sequence");
	shown->time = time;
	reading->counters[reading->count++] = field_of(event, EVENT_EXTRA_COUNTER).value;
	while (pb_next(&reader, &field) == 1) {
		if (field.number == EVENT_TYPE)
			shown->type = (unsigned int)field.value;
		if (field.number == EVENT_NAME) {
			cr_assert(*sequence->names[field.value], "a name that is not known");
			strcpy(shown->name, sequence->names[field.value]);
		}
		shown->flows += field.number == EVENT_FLOW || field.number == EVENT_FLOW_END;
	}
}

static void read_packet(struct reading *reading, const struct pb_field *packet)
{
	struct sequence *sequence = &reading->sequences[field_of(packet, PACKET_SEQUENCE).value];
	struct pb_field interned = field_of(packet, PACKET_INTERNED), name = field_of(&interned, INTERNED_NAME);
	struct pb_field snapshot = field_of(packet, PACKET_CLOCK_SNAPSHOT), clock = field_of(&snapshot, SNAPSHOT_CLOCK);
	struct pb_field event = field_of(packet, PACKET_TRACK_EVENT), text;
	__u64 time = field_of(packet, PACKET_TIMESTAMP).value;

	if (field_of(packet, PACKET_FLAGS).value == FLAG_CLEARED) {
		memset(sequence, 0, sizeof(*sequence));
		sequence->begun = true;
	}
	if (clock.bytes)
		sequence->time = field_of(&clock, 2).value;
	if (name.bytes) {
		text = field_of(&name, 2);
		snprintf(sequence->names[field_of(&name, 1).value], 32, "%.*s", (int)text.value,
			 (const char *)text.bytes);
	}
	if (!event.bytes)
		return;
	if (!field_of(packet, PACKET_CLOCK).value)
		time = sequence->time += time;
	read_event(reading, sequence, &event, time);
}

static void read_all(struct reading *reading, const struct text *text)
{
	struct pb_reader reader = pb_reader(text->data, text->length);
	struct pb_field packet;

	reading->count = 0;
	while (pb_next(&reader, &packet) == 1)
		read_packet(reading, &packet);
	cr_assert_eq(reader.at, reader.end);
	cr_assert_eq(text->error, 0);
}

struct fixture {
	struct perfetto perfetto;
	struct text text;
	struct reading reading;
};

static void begin(struct fixture *fixture)
{
	const struct recording_info info = { .monotonic_time = BOOT, .realtime = 1 };

	memset(fixture, 0, sizeof(*fixture));
	cr_assert_eq(perfetto_open(&fixture->perfetto, &fixture->text, &info, 0), 0);
	read_all(&fixture->reading, &fixture->text);
	cr_assert_eq(fixture->reading.count, 1);
	fixture->text.length = 0;
}

static void end(struct fixture *fixture)
{
	perfetto_close(&fixture->perfetto);
	text_free(&fixture->text);
}

static void slice(struct fixture *fixture, const char *name, __u64 from, __u64 to, bool outermost)
{
	struct perfetto_track *track = perfetto_thread(&fixture->perfetto, 7, 8);

	perfetto_event(&fixture->perfetto, TYPE_BEGIN);
	perfetto_name(&fixture->perfetto, track, name);
	perfetto_slice(&fixture->perfetto, track, from, to, outermost);
}

/* "inner" is complete first; both at the same times still lie in each other. */
Test(report_perfetto_track, order)
{
	static const struct shown expected[] = {
		{ TYPE_BEGIN, 0, 2000, "before" }, { TYPE_END, 0, 2500, "" },	       { TYPE_BEGIN, 0, 2500, "outer" },
		{ TYPE_BEGIN, 0, 2500, "inner" },  { TYPE_INSTANT, 0, 2600, "point" }, { TYPE_END, 0, 3000, "" },
		{ TYPE_END, 0, 3000, "" },
	};
	struct perfetto_track *track;
	struct fixture fixture;

	begin(&fixture);
	slice(&fixture, "before", 2000, 2500, false);
	slice(&fixture, "inner", 2500, 3000, false);
	track = perfetto_thread(&fixture.perfetto, 7, 8);
	perfetto_event(&fixture.perfetto, TYPE_INSTANT);
	perfetto_name(&fixture.perfetto, track, "point");
	perfetto_point(&fixture.perfetto, track, TYPE_INSTANT, 2600);
	slice(&fixture, "outer", 2500, 3000, true);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < fixture.reading.count; i++) {
		cr_expect_eq(fixture.reading.shown[i].type, expected[i].type, "%zu", i);
		cr_expect_eq(fixture.reading.shown[i].time, expected[i].time, "%zu: %llu", i,
			     fixture.reading.shown[i].time);
		cr_expect_str_eq(fixture.reading.shown[i].name, expected[i].name, "%zu", i);
	}
	end(&fixture);
}

/* What is older than what has been written has its whole time. */
Test(report_perfetto_track, late)
{
	struct fixture fixture;

	begin(&fixture);
	slice(&fixture, "second", 5000, 6000, true);
	slice(&fixture, "first", 1500, 7000, true);
	slice(&fixture, "before the recording", 10, 20, true);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 6);
	cr_expect_eq(fixture.reading.shown[2].time, 1500);
	cr_expect_eq(fixture.reading.shown[3].time, 7000);
	cr_expect_eq(fixture.reading.shown[4].time, 10);
	cr_expect_eq(fixture.reading.shown[5].time, 20);
	end(&fixture);
}

/* The text is lost: what follows is whole, also what had been held before. */
Test(report_perfetto_track, forget)
{
	struct fixture fixture;

	begin(&fixture);
	slice(&fixture, "lost", 2000, 2100, true);
	slice(&fixture, "held", 2200, 2300, false);
	fixture.text.length = 0;
	memset(&fixture.reading, 0, sizeof(fixture.reading));
	perfetto_forget(&fixture.perfetto);
	slice(&fixture, "new", 2150, 2400, true);
	slice(&fixture, "held", 2500, 2600, true);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 6);
	cr_expect_str_eq(fixture.reading.shown[0].name, "new");
	cr_expect_str_eq(fixture.reading.shown[1].name, "held");
	cr_expect_str_eq(fixture.reading.shown[4].name, "held");
	cr_expect_eq(fixture.reading.shown[5].time, 2600);
	end(&fixture);
}

Test(report_perfetto_track, interned_once)
{
	struct fixture fixture;
	size_t length;

	begin(&fixture);
	slice(&fixture, "name", 2000, 2100, true);
	slice(&fixture, "other", 2200, 2300, true);
	length = fixture.text.length;
	slice(&fixture, "name", 2400, 2500, true);
	cr_expect_leq(fixture.text.length - length, 32, "%zu bytes", fixture.text.length - length);
	end(&fixture);
}

Test(report_perfetto_track, arrow_to_held_end)
{
	struct perfetto_track *track;
	struct fixture fixture;

	begin(&fixture);
	slice(&fixture, "wait", 2000, 2100, false);
	track = perfetto_thread(&fixture.perfetto, 7, 8);
	cr_expect(!perfetto_end_held(&fixture.perfetto, track, 2050, 1));
	cr_expect(!perfetto_end_held(&fixture.perfetto, track, 2000, 1));
	cr_expect(perfetto_end_held(&fixture.perfetto, track, 2100, 1));
	cr_expect(perfetto_end_held(&fixture.perfetto, track, 2100, 2));
	perfetto_release(&fixture.perfetto);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 2);
	cr_expect_eq(fixture.reading.shown[1].flows, 2);
	end(&fixture);
}

/* Those that overlap lie on tracks of their own, those that do not on the same. */
Test(report_perfetto_track, lanes)
{
	struct perfetto_track *process, *first, *second;
	struct fixture fixture;

	begin(&fixture);
	process = perfetto_process(&fixture.perfetto, 7);
	first = perfetto_lane(&fixture.perfetto, process, 7, 1, "model", 100, 200);
	second = perfetto_lane(&fixture.perfetto, process, 7, 1, "model", 150, 250);
	cr_expect_neq(first, second);
	cr_expect_eq(perfetto_lane(&fixture.perfetto, process, 7, 1, "model", 200, 300), first);
	cr_expect_neq(perfetto_lane(&fixture.perfetto, process, 7, 2, "other", 400, 500), first);
	for (int i = 0; i < 100; i++)
		cr_expect_not_null(perfetto_lane(&fixture.perfetto, process, 7, 1, "model", 1000, 2000));
	end(&fixture);
}

/* The value of a counter stands with the end of a slice of its time, once the slice's track has named the counter. */
Test(report_perfetto_track, counter_with_end)
{
	struct perfetto_track *counter;
	struct fixture fixture;
	size_t length;

	begin(&fixture);
	counter = perfetto_named(&fixture.perfetto, NULL, TRACK_COUNTER, 7, 1, "depth", "inferences");
	slice(&fixture, "first", 2000, 2100, true);
	perfetto_counter(&fixture.perfetto, counter, 2100, 1);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 3);
	cr_expect_eq(fixture.reading.shown[2].type, TYPE_COUNTER, "the track has not named it before");

	slice(&fixture, "second", 2200, 2300, true);
	length = fixture.text.length;
	perfetto_counter(&fixture.perfetto, counter, 2300, 2);
	cr_expect_eq(fixture.text.length, length + 2);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 5);
	cr_expect_eq(fixture.reading.counters[4], 2);
	cr_expect_eq(fixture.reading.shown[4].time, 2300);

	/* One value an end; another time; another slice after the counter's own event. */
	perfetto_counter(&fixture.perfetto, counter, 2300, 3);
	slice(&fixture, "third", 2400, 2500, true);
	perfetto_counter(&fixture.perfetto, counter, 2501, 4);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 9);
	cr_expect_eq(fixture.reading.shown[5].type, TYPE_COUNTER);
	cr_expect_eq(fixture.reading.counters[7], 0);
	cr_expect_eq(fixture.reading.shown[8].type, TYPE_COUNTER);

	/* What was written is lost, and with it what the track had named. */
	fixture.text.length = 0;
	memset(&fixture.reading, 0, sizeof(fixture.reading));
	slice(&fixture, "fourth", 2600, 2700, true);
	perfetto_forget(&fixture.perfetto);
	fixture.text.length = 0;
	perfetto_counter(&fixture.perfetto, counter, 2700, 5);
	slice(&fixture, "fifth", 2800, 2900, true);
	perfetto_counter(&fixture.perfetto, counter, 2900, 6);
	read_all(&fixture.reading, &fixture.text);
	cr_assert_eq(fixture.reading.count, 4);
	cr_expect_eq(fixture.reading.shown[0].type, TYPE_COUNTER);
	cr_expect_eq(fixture.reading.shown[3].type, TYPE_COUNTER);
	end(&fixture);
}

/* They are fields of one message, those that were set. */
Test(report_perfetto_track, arguments)
{
	static const struct {
		unsigned int number;
		__u64 value;
	} expected[] = { { ARG_CPU, 1234567 }, { ARG_STATUS, (__u64)-5 }, { ARG_PHASE, PHASE_DECODE } };
	struct pb_field packet = { 0 }, event, arguments, field;
	struct pb_reader reader;
	struct perfetto_track *track;
	struct fixture fixture;
	size_t count = 0;

	begin(&fixture);
	track = perfetto_thread(&fixture.perfetto, 7, 8);
	fixture.text.length = 0;
	perfetto_event(&fixture.perfetto, TYPE_INSTANT);
	perfetto_field(&fixture.perfetto, ARG_CPU, 1234567);
	perfetto_field_some(&fixture.perfetto, ARG_WAITED, 0);
	perfetto_field(&fixture.perfetto, ARG_STATUS, (__u64)-5);
	perfetto_field_some(&fixture.perfetto, ARG_PHASE, PHASE_DECODE);
	perfetto_point(&fixture.perfetto, track, TYPE_INSTANT, 3000);
	reader = pb_reader(fixture.text.data, fixture.text.length);
	cr_assert_eq(pb_next(&reader, &packet), 1);
	event = field_of(&packet, PACKET_TRACK_EVENT);
	arguments = field_of(&event, EVENT_ARGUMENTS);
	cr_assert_not_null(arguments.bytes);
	reader = pb_reader(arguments.bytes, arguments.value);
	for (; pb_next(&reader, &field) == 1; count++) {
		cr_assert_lt(count, sizeof(expected) / sizeof(expected[0]));
		cr_expect_eq(field.number, expected[count].number);
		cr_expect_eq(field.value, expected[count].value);
	}
	cr_expect_eq(count, sizeof(expected) / sizeof(expected[0]));
	end(&fixture);
}
