/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/record_validate.h"

/* Bytes without the variable part, and its length. */
struct extent {
	size_t fixed, variable;
};

static struct extent text_extent(const struct xpt_record_header *record)
{
	bool has = record->size >= sizeof(struct xpt_record_text);

	return (struct extent){ sizeof(struct xpt_record_text),
				has ? ((const struct xpt_record_text *)record)->length : 0 };
}

static struct extent string_extent(const struct xpt_record_header *record)
{
	bool has = record->size >= sizeof(struct xpt_record_string);

	return (struct extent){ sizeof(struct xpt_record_string),
				has ? ((const struct xpt_record_string *)record)->length : 0 };
}

static struct extent region_name_extent(const struct xpt_record_header *record)
{
	bool has = record->size >= sizeof(struct xpt_record_region_name);

	return (struct extent){ sizeof(struct xpt_record_region_name),
				has ? ((const struct xpt_record_region_name *)record)->length : 0 };
}

static struct extent call_extent(const struct xpt_record_header *record)
{
	const struct xpt_record_call *call = (const void *)record;
	size_t values = 0;

	if (record->size >= sizeof(*call))
		values = call->values + (call->flags & XPT_CALL_NUMBERED ? 1 : 0) +
			 (call->flags & XPT_CALL_COUNTED ? 2 * sizeof(struct xpt_counts) / sizeof(__u64) : 0) +
			 (call->flags & XPT_CALL_WAITS ? 1 : 0);
	return (struct extent){ sizeof(*call), values * sizeof(__u64) };
}

static struct extent reading_extent(const struct xpt_record_header *record)
{
	const struct xpt_record_reading *reading = (const void *)record;
	bool has = record->size >= sizeof(*reading);

	return (struct extent){ sizeof(*reading), has ? reading->values * sizeof(__u64) : 0 };
}

static struct extent record_extent(const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_CALL:
		return call_extent(record);
	case XPT_RECORD_STRING:
		return string_extent(record);
	case XPT_RECORD_REGION:
		return (struct extent){ sizeof(struct xpt_record_region), 0 };
	case XPT_RECORD_REGION_NAME:
		return region_name_extent(record);
	case XPT_RECORD_TASK:
		return (struct extent){ sizeof(struct xpt_record_task), 0 };
	case XPT_RECORD_EVENT: /* only its description has the number of values */
		return (struct extent){ sizeof(struct xpt_record_event), 0 };
	case XPT_RECORD_IOCTL:
		return (struct extent){ sizeof(struct xpt_record_ioctl), 0 };
	case XPT_RECORD_LOST:
		return (struct extent){ sizeof(struct xpt_record_lost), 0 };
	case XPT_RECORD_TOTAL:
		return (struct extent){ sizeof(struct xpt_record_total), 0 };
	case XPT_RECORD_COUNT:
		return (struct extent){ sizeof(struct xpt_record_count), 0 };
	case XPT_RECORD_WAITED:
		return (struct extent){ sizeof(struct xpt_record_waited), 0 };
	case XPT_RECORD_READING:
		return reading_extent(record);
	case XPT_RECORD_SPEC:
	case XPT_RECORD_PROCESS:
	case XPT_RECORD_THREAD:
	case XPT_RECORD_NAMED:
	case XPT_RECORD_FINGERPRINT:
	case XPT_RECORD_CLASS:
	case XPT_RECORD_NODE:
	case XPT_RECORD_CHOICE:
	case XPT_RECORD_MATCH:
	case XPT_RECORD_LOADED:
	case XPT_RECORD_CODE_OBJECT:
	case XPT_RECORD_CODE_UNLOADED:
	case XPT_RECORD_SYMBOL:
	case XPT_RECORD_COST:
	case XPT_RECORD_END:
	case XPT_RECORD_RUNTIME:
	case XPT_RECORD_DRIVER:
	case XPT_RECORD_DRIVER_EVENT:
	case XPT_RECORD_COUNTER:
		return text_extent(record);
	default:
		return (struct extent){ sizeof(*record), 0 };
	}
}

bool record_validate(const struct xpt_record_header *record, size_t room)
{
	struct extent extent;

	if (room < sizeof(*record) || record->size > room)
		return false;
	extent = record_extent(record);
	return record->size >= extent.fixed && extent.variable <= record->size - extent.fixed;
}
