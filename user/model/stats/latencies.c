/* SPDX-License-Identifier: BSD-2-Clause */
/* What is derived from the times of a sample, and what many samples add up to. */
#include "model/stats/latencies.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/options.h"
#include "model/stats/statistics.h"

enum derivation {
	FROM_NOTHING = 0, /* known to the device's firmware only */
	FROM_SPAN,	  /* between two of the six times */
	FROM_RATE,	  /* how many such spans a second has */
	FROM_ENQUEUED,	  /* from the first time until the enqueue had returned */
	FROM_QUEUE,	  /* counted, not timed */
	FROM_TOKENS,	  /* of a batch of a language model */
};

struct column {
	const char *name;
	enum derivation derivation;
	enum xpt_sample_time from, to;
};

static const struct column columns[XPT_COLUMNS] = {
	[XPT_COLUMN_QUEUE_DEPTH] = { "queueDepth", FROM_NOTHING, 0, 0 },
	[XPT_COLUMN_IN_QUEUE] = { "numInfInQueue", FROM_QUEUE, 0, 0 },
	[XPT_COLUMN_DEVICE_RATE] = { "devInfPerSec", FROM_RATE, XPT_TIME_DEVICE_RUNS, XPT_TIME_DEVICE_DONE },
	[XPT_COLUMN_DEVICE_EXECUTE] = { "devExec(Us)", FROM_SPAN, XPT_TIME_DEVICE_RUNS, XPT_TIME_DEVICE_DONE },
	[XPT_COLUMN_DEVICE_INPUT_WAIT] = { "devInWaitTime(Us)", FROM_NOTHING, 0, 0 },
	[XPT_COLUMN_DEVICE_OUTPUT_WAIT] = { "devOutWaitTime(Us)", FROM_NOTHING, 0, 0 },
	[XPT_COLUMN_HOST_ROUND_TRIP] = { "hostRoundTrip(Us)", FROM_SPAN, XPT_TIME_SUBMIT_BEGINS, XPT_TIME_CALL_ENDS },
	[XPT_COLUMN_ENQUEUE] = { "enqTime(Us)", FROM_ENQUEUED, 0, 0 },
	[XPT_COLUMN_PREPROCESS] = { "preProcTime(Us)", FROM_SPAN, XPT_TIME_CALL_BEGINS, XPT_TIME_SUBMIT_BEGINS },
	[XPT_COLUMN_SUBMIT] = { "submitTime(Us)", FROM_SPAN, XPT_TIME_SUBMIT_BEGINS, XPT_TIME_SUBMIT_ENDS },
	[XPT_COLUMN_EXECUTE_TOTAL] = { "execTotal(Us)", FROM_SPAN, XPT_TIME_SUBMIT_BEGINS, XPT_TIME_DEVICE_DONE },
	[XPT_COLUMN_EXECUTE_TO_CHANNEL] = { "exectoVc(Us)", FROM_SPAN, XPT_TIME_SUBMIT_ENDS, XPT_TIME_DEVICE_RUNS },
	[XPT_COLUMN_EXECUTE_TO_COMPLETE] = { "execToComplete(Us)", FROM_SPAN, XPT_TIME_DEVICE_RUNS,
					     XPT_TIME_DEVICE_DONE },
	[XPT_COLUMN_POSTPROCESS] = { "postProc(Us)", FROM_SPAN, XPT_TIME_DEVICE_DONE, XPT_TIME_CALL_ENDS },
	[XPT_COLUMN_TOTAL_ROUND_TRIP] = { "totalRoundtripTime(Us)", FROM_SPAN, XPT_TIME_CALL_BEGINS,
					  XPT_TIME_CALL_ENDS },
	[XPT_COLUMN_PREFILL_TOKENS] = { "prefillTokens", FROM_TOKENS, 0, 0 },
	[XPT_COLUMN_DECODE_TOKENS] = { "decodeTokens", FROM_TOKENS, 0, 0 },
	[XPT_COLUMN_TOKEN_RATE] = { "tokensPerSec", FROM_TOKENS, 0, 0 },
	[XPT_COLUMN_FIRST_TOKEN] = { "firstTokenTime(Us)", FROM_TOKENS, 0, 0 },
	[XPT_COLUMN_OUTPUT_TOKEN] = { "outputTokenTime(Us)", FROM_TOKENS, 0, 0 },
};

#define THOUSANDTHS 1000u
#define RATE_OF_ONE_NANOSECOND 1000000000000ull /* thousandths of inferences a second */

struct xpt_latencies {
	struct statistics *column[XPT_COLUMNS]; /* NULL: no sample had it yet */
};

static bool column_exists(enum xpt_column column)
{
	return (unsigned int)column < XPT_COLUMNS;
}

const char *xpt_column_name(enum xpt_column column)
{
	return column_exists(column) ? columns[column].name : NULL;
}

bool latencies_column_whole(enum xpt_column column)
{
	return column == XPT_COLUMN_QUEUE_DEPTH || column == XPT_COLUMN_IN_QUEUE ||
	       column == XPT_COLUMN_PREFILL_TOKENS || column == XPT_COLUMN_DECODE_TOKENS;
}

/* 0 is a time that was not observed; one that ends before it begins was paired wrongly. */
static int span(__u64 begin, __u64 end, uint64_t *nanoseconds)
{
	if (!begin || !end || end < begin)
		return -ENODATA;
	*nanoseconds = end - begin;
	return 0;
}

static int rate(__u64 begin, __u64 end, uint64_t *thousandths)
{
	uint64_t nanoseconds;

	if (span(begin, end, &nanoseconds) || !nanoseconds)
		return -ENODATA;
	*thousandths = (RATE_OF_ONE_NANOSECOND + nanoseconds / 2) / nanoseconds;
	return 0;
}

static int tokens(const struct xpt_sample *sample, enum xpt_column column, uint64_t *thousandths)
{
	uint64_t count = sample->prefill_tokens + sample->decode_tokens, nanoseconds, value = 0;

	if (column == XPT_COLUMN_PREFILL_TOKENS)
		value = sample->prefill_tokens * THOUSANDTHS;
	else if (column == XPT_COLUMN_DECODE_TOKENS)
		value = sample->decode_tokens * THOUSANDTHS;
	else if (column == XPT_COLUMN_FIRST_TOKEN)
		value = sample->first_token;
	else if (column == XPT_COLUMN_OUTPUT_TOKEN)
		value = sample->output_token;
	else if (!span(sample->time[XPT_TIME_CALL_BEGINS], sample->time[XPT_TIME_CALL_ENDS], &nanoseconds) &&
		 nanoseconds && count <= UINT32_MAX)
		value = (uint64_t)((double)count * RATE_OF_ONE_NANOSECOND / (double)nanoseconds);
	if (!value)
		return -ENODATA;
	*thousandths = value;
	return 0;
}

static int derive(const struct xpt_sample *sample, enum xpt_column column, uint64_t *thousandths)
{
	const struct column *derived = &columns[column];

	switch (derived->derivation) {
	case FROM_SPAN:
		return span(sample->time[derived->from], sample->time[derived->to], thousandths);
	case FROM_RATE:
		return rate(sample->time[derived->from], sample->time[derived->to], thousandths);
	case FROM_ENQUEUED:
		return span(sample->time[XPT_TIME_CALL_BEGINS], sample->enqueued, thousandths);
	case FROM_QUEUE:
		if (!sample->has_in_queue)
			return -ENODATA;
		*thousandths = (uint64_t)sample->in_queue * THOUSANDTHS;
		return 0;
	case FROM_TOKENS:
		return tokens(sample, column, thousandths);
	case FROM_NOTHING:
		break;
	}
	return -ENODATA;
}

int xpt_sample_column(const struct xpt_sample *sample, enum xpt_column column, uint64_t *thousandths)
{
	struct xpt_sample known = { 0 };
	int error = options_copy(&known, sizeof(known), sample);

	if (error || !column_exists(column))
		return error ? error : -EINVAL;
	return derive(&known, column, thousandths);
}

struct xpt_latencies *xpt_latencies_create(void)
{
	return calloc(1, sizeof(struct xpt_latencies));
}

void xpt_latencies_free(struct xpt_latencies *latencies)
{
	size_t i;

	if (!latencies)
		return;
	for (i = 0; i < XPT_COLUMNS; i++)
		statistics_free(latencies->column[i]);
	free(latencies);
}

static struct statistics *column_get(struct xpt_latencies *latencies, size_t column)
{
	if (!latencies->column[column])
		latencies->column[column] = statistics_create();
	return latencies->column[column];
}

/* Whole numbers are kept as they are: the histogram is exact where they are small. */
static unsigned int unit(size_t column)
{
	return latencies_column_whole(column) ? 1 : THOUSANDTHS;
}

int xpt_latencies_add(struct xpt_latencies *latencies, const struct xpt_sample *sample)
{
	struct xpt_sample known = { 0 };
	struct statistics *statistics;
	uint64_t thousandths;
	int error = options_copy(&known, sizeof(known), sample);
	size_t i;

	if (error)
		return error;
	for (i = 0; i < XPT_COLUMNS; i++) {
		if (derive(&known, i, &thousandths))
			continue;
		statistics = column_get(latencies, i);
		if (!statistics || statistics_add(statistics, thousandths / (THOUSANDTHS / unit(i))))
			error = -ENOMEM;
	}
	return error;
}

int xpt_latencies_merge(struct xpt_latencies *into, const struct xpt_latencies *from)
{
	struct statistics *statistics;
	int error = 0;
	size_t i;

	for (i = 0; i < XPT_COLUMNS; i++) {
		if (!from->column[i])
			continue;
		statistics = column_get(into, i);
		if (!statistics || statistics_merge(statistics, from->column[i]))
			error = -ENOMEM;
	}
	return error;
}

int xpt_latencies_get(const struct xpt_latencies *latencies, enum xpt_column column, struct xpt_column_summary *summary)
{
	const struct statistics *statistics;
	struct xpt_column_summary known;
	double divisor;

	if (!column_exists(column) || summary->size < sizeof(summary->size))
		return -EINVAL;
	statistics = latencies->column[column];
	if (!statistics || !statistics_count(statistics))
		return -ENODATA;
	divisor = unit(column);
	known = (struct xpt_column_summary){
		.count = statistics_count(statistics),
		.min = (double)statistics_min(statistics) / divisor,
		.mean = statistics_mean(statistics) / divisor,
		.p50 = (double)statistics_quantile(statistics, 0.50) / divisor,
		.p90 = (double)statistics_quantile(statistics, 0.90) / divisor,
		.p95 = (double)statistics_quantile(statistics, 0.95) / divisor,
		.p99 = (double)statistics_quantile(statistics, 0.99) / divisor,
		.max = (double)statistics_max(statistics) / divisor,
		.deviation = statistics_deviation(statistics) / divisor,
	};
	return options_give(summary, &known, sizeof(known));
}
