/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/parts.h"

void chrome_begin(struct chrome_events *events, char phase, __u32 pid, __u32 tid, __u64 time)
{
	struct text *text = events->text;

	if (events->any)
		text_literal(text, ",\n{\"ph\":\"");
	else
		text_literal(text, "\n{\"ph\":\"");
	events->any = true;
	text_bytes(text, &phase, 1);
	text_literal(text, "\",\"pid\":");
	text_unsigned(text, pid);
	text_literal(text, ",\"tid\":");
	text_unsigned(text, tid);
	text_literal(text, ",\"ts\":");
	text_microseconds(text, time);
}

void chrome_begin_metadata(struct chrome_events *events, __u32 pid, __u32 tid, const char *name)
{
	chrome_begin(events, 'M', pid, tid, 0);
	chrome_name(events->text, name);
}

void chrome_flow(struct chrome_events *events, char phase, __u32 pid, __u32 tid, __u64 time, __u64 id,
		 const char *source, const char *name)
{
	chrome_begin(events, phase, pid, tid, time);
	chrome_id(events->text, id);
	chrome_category(events->text, "flow", source);
	text_literal(events->text, ",\"name\":\"");
	text_string(events->text, name);
	if (phase == 'f')
		text_literal(events->text, "\",\"bp\":\"e\"}");
	else
		text_literal(events->text, "\"}");
}

void chrome_name(struct text *text, const char *name)
{
	text_literal(text, ",\"name\":");
	text_json_string(text, name);
}

void chrome_category(struct text *text, const char *what, const char *source)
{
	text_literal(text, ",\"cat\":\"");
	text_string(text, what);
	text_literal(text, ",");
	text_json_part(text, source, strlen(source));
	text_literal(text, "\"");
}

void chrome_id(struct text *text, __u64 id)
{
	text_literal(text, ",\"id\":\"");
	text_hexadecimal(text, id);
	text_literal(text, "\"");
}

void chrome_span(struct text *text, __u64 start, __u64 end)
{
	text_literal(text, ",\"dur\":");
	text_microseconds(text, end > start ? end - start : 0);
}
