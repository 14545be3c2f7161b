/* SPDX-License-Identifier: BSD-2-Clause */
/* The format of a tracepoint: whatever stands in it, an event is refused with a reason or its fields lie in a record. */
#include <string.h>

#include "target/tracepoint/tracefs.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_field(const struct tracepoint_field *field)
{
	require(field->field && field->offset + field->size <= TRACEPOINT_RECORD_MAX && field->size);
	switch (field->access) {
	case XPT_ACCESS_NUMBER:
		require(field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8);
		break;
	case XPT_ACCESS_DATA_LOC:
	case XPT_ACCESS_RELATIVE:
		require(field->size == 4);
		break;
	case XPT_ACCESS_KERNEL_STRING:
		require(field->size == 8);
		break;
	default:
		require(field->access == XPT_ACCESS_TEXT);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const struct driver_event event = {
		.system = "toy",
		.name = "job",
		.role = XPT_EVENT_QUEUE,
		.fields = {
			{ "a", DRIVER_NUMBER, XPT_FIELD_KEY, false },
			{ "b", DRIVER_NUMBER | DRIVER_KERNEL_STRING, XPT_FIELD_VALUE, true },
			{ "c", DRIVER_STRING | DRIVER_KERNEL_STRING, XPT_FIELD_NAME, true },
		},
		.field_count = 3,
		.key_count = 1,
		.condition = { .field = { "d", DRIVER_STRING, XPT_FIELD_VALUE, false }, .text = "x" },
	};
	struct tracepoint tracepoint;

	require(!tracepoint_parse(&event, (const char *)data, size, &tracepoint));
	require(memchr(tracepoint.reason, 0, sizeof(tracepoint.reason)) != NULL);
	require(tracepoint.found == !tracepoint.reason[0]);
	if (!tracepoint.found)
		return 0;
	require(tracepoint.field_count >= 1 && tracepoint.field_count <= 3 && tracepoint.id);
	for (size_t i = 0; i < tracepoint.field_count; i++)
		check_field(&tracepoint.fields[i]);
	check_field(&tracepoint.condition);
	return 0;
}
