/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/counting.h"

static const struct xpt_program_count zero;

bool count_is_zero(const struct xpt_program_count *count)
{
	return !(count->calls | count->left_out | count->lost | count->layers);
}

void count_add(struct xpt_program_count *into, const struct xpt_program_count *from)
{
	into->calls += from->calls;
	into->left_out += from->left_out;
	into->lost += from->lost;
	into->layers += from->layers;
}

static bool count_covers(const struct xpt_program_count *count, const struct xpt_program_count *part)
{
	return count->calls >= part->calls && count->left_out >= part->left_out && count->lost >= part->lost &&
	       count->layers >= part->layers;
}

static __u64 rest(__u64 number, __u64 part)
{
	return number > part ? number - part : 0;
}

static struct xpt_program_count count_rest(const struct xpt_program_count *count, const struct xpt_program_count *part)
{
	return (struct xpt_program_count){
		.calls = rest(count->calls, part->calls),
		.left_out = rest(count->left_out, part->left_out),
		.lost = rest(count->lost, part->lost),
		.layers = rest(count->layers, part->layers),
	};
}

/* What was told before may stand in another generation's total: there it stays. */
static void count_replace(struct xpt_program_count *total, const struct xpt_program_count *told,
			  const struct xpt_program_count *count, struct xpt_program_count *delta)
{
	const struct xpt_program_count excess = count_rest(told, count);

	*delta = count_rest(count, told);
	count_add(total, delta);
	*total = count_rest(total, &excess);
}

bool counting_read(struct counting *counting, const struct xpt_record_count *record, struct xpt_program_count *total,
		   struct xpt_program_count *delta)
{
	if (record->since < counting->cut || record->since < counting->since)
		return false;
	if (record->since > counting->since) {
		counting->since = record->since;
		if (counting_open(counting))
			counting->earlier = counting->running;
		counting->running = zero;
	}
	if (!count_covers(&record->count, &counting->running))
		return false;
	count_replace(total, &counting->running, &record->count, delta);
	counting->running = record->count;
	return true;
}

void counting_end(struct counting *counting, const struct xpt_record_total *record, struct xpt_program_count *total,
		  struct xpt_program_count *delta)
{
	const __u64 time = record->header.time;

	/* One that comes late is of the counting before. */
	if (time <= counting->since) {
		count_replace(total, &counting->earlier, &record->count, delta);
	} else {
		count_replace(total, &counting->running, &record->count, delta);
		counting->running = zero;
	}
	counting->earlier = zero;
	if (time > counting->cut)
		counting->cut = time;
}
