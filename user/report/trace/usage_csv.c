/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/usage_csv.h"

void usage_csv_heading(struct text *text)
{
	text_literal(text, "time_ns,threads,cpu_ns,cpu_user_ns,cpu_system_ns,cpu_percent,"
			   "rss_bytes,peak_rss_bytes,anonymous_bytes,swap_bytes\n");
}

static void add(struct text *text, bool known, __u64 value)
{
	text_literal(text, ",");
	if (known)
		text_unsigned(text, value);
	else
		text_literal(text, "N/A");
}

/* With three decimals; beyond 100 when several threads run at once. */
static void add_percent(struct text *text, const struct process_usage *usage, const struct process_usage *before)
{
	if (!before || !(usage->have & before->have & USAGE_CPU) || usage->time <= before->time ||
	    usage->cpu < before->cpu) {
		add(text, false, 0);
		return;
	}
	text_literal(text, ",");
	/* Thousandths are to a percent what nanoseconds are to a microsecond. */
	text_microseconds(text,
			  (__u64)((double)(usage->cpu - before->cpu) * 100000.0 / (double)(usage->time - before->time) +
				  0.5));
}

void usage_csv_row(struct text *text, const struct process_usage *usage, const struct process_usage *before)
{
	bool cpu = usage->have & USAGE_CPU, memory = usage->have & USAGE_MEMORY;

	text_unsigned(text, usage->time);
	add(text, true, usage->threads);
	add(text, cpu, usage->cpu);
	add(text, cpu, usage->user);
	add(text, cpu, usage->system);
	add_percent(text, usage, before);
	add(text, memory, usage->resident);
	add(text, memory, usage->peak);
	add(text, memory, usage->anonymous);
	add(text, memory, usage->swap);
	text_literal(text, "\n");
}
