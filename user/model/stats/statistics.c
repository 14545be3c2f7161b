/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/options.h"

/*
 * Each row of the histogram is one octave cut into equal columns: a column is at most 1/64 of the values in it, so its
 * middle is at most 1/128 off. Row 0 holds the values below 64, each in a column of its own.
 */
#define COLUMN_BITS 6
#define COLUMNS (1 << COLUMN_BITS)
#define ROWS (64 - COLUMN_BITS + 1)

/* Values that are kept one by one, before there is a histogram: it takes many times their memory, and most programs run a few times. */
#define FEW 24

struct bins {
	__u8 row_count;
	__u8 row_slot[ROWS]; /* 1 + index in rows; 0: the row has no value yet */
	__u64 rows[][COLUMNS];
};

struct statistics {
	unsigned __int128 sum;
	unsigned __int128 squares; /* sum of the squares, modulo 2^128 ... */
	__u64 squares_carry;	   /* ... and how often it went over; sums of integers merge without rounding */
	__u64 count, min, max;
	__u64 binned;	   /* values in the histogram, or in few: less than count only after memory ran out */
	struct bins *bins; /* NULL: the values are in few */
	__u16 few[FEW];	   /* where each would be in the histogram: row * COLUMNS + column; in order */
};

struct statistics *statistics_create(void)
{
	return calloc(1, sizeof(struct statistics));
}

void statistics_free(struct statistics *statistics)
{
	if (!statistics)
		return;
	free(statistics->bins);
	free(statistics);
}

static unsigned int row_of(__u64 value)
{
	return value < COLUMNS ? 0 : 64 - COLUMN_BITS - (unsigned int)__builtin_clzll(value);
}

static unsigned int column_of(__u64 value, unsigned int row)
{
	return row ? (unsigned int)(value >> (row - 1)) & (COLUMNS - 1) : (unsigned int)value;
}

static __u64 column_middle(unsigned int row, unsigned int column)
{
	__u64 width;

	if (!row)
		return column;
	width = 1ULL << (row - 1);
	return (COLUMNS + column) * width + (width - 1) / 2;
}

/* NULL: no memory. */
static __u64 *row_get(struct statistics *statistics, unsigned int row)
{
	struct bins *bins = statistics->bins;

	if (!bins->row_slot[row]) {
		bins = realloc(bins, sizeof(*bins) + (bins->row_count + 1u) * sizeof(bins->rows[0]));
		if (!bins)
			return NULL;
		statistics->bins = bins;
		memset(bins->rows[bins->row_count], 0, sizeof(bins->rows[0]));
		bins->row_slot[row] = ++bins->row_count;
	}
	return bins->rows[bins->row_slot[row] - 1];
}

/* The values that were kept one by one are in a histogram from here on. -ENOMEM: they stay as they are. */
static int bins_begin(struct statistics *statistics)
{
	struct bins *bins;
	unsigned int rows = 0;

	for (__u64 i = 0; i < statistics->binned; i++)
		rows += !i || statistics->few[i] / COLUMNS != statistics->few[i - 1] / COLUMNS;
	bins = calloc(1, sizeof(*bins) + rows * sizeof(bins->rows[0]));
	if (!bins)
		return -ENOMEM;
	for (__u64 i = 0; i < statistics->binned; i++) {
		__u8 *slot = &bins->row_slot[statistics->few[i] / COLUMNS];

		*slot = *slot ?: ++bins->row_count;
		bins->rows[*slot - 1][statistics->few[i] % COLUMNS]++;
	}
	statistics->bins = bins;
	return 0;
}

/* More values of one column. -ENOMEM: they are not in it. */
static int bin_add(struct statistics *statistics, unsigned int row, unsigned int column, __u64 count)
{
	__u16 place = (__u16)(row * COLUMNS + column);
	__u64 at = statistics->binned, *counts;

	if (!statistics->bins && count == 1 && at < FEW) {
		for (; at && statistics->few[at - 1] > place; at--)
			statistics->few[at] = statistics->few[at - 1];
		statistics->few[at] = place;
		statistics->binned++;
		return 0;
	}
	if (!statistics->bins && bins_begin(statistics))
		return -ENOMEM;
	counts = row_get(statistics, row);
	if (!counts)
		return -ENOMEM;
	counts[column] += count;
	statistics->binned += count;
	return 0;
}

static void squares_add(struct statistics *statistics, unsigned __int128 squares)
{
	statistics->squares += squares;
	statistics->squares_carry += statistics->squares < squares;
}

int statistics_add(struct statistics *statistics, __u64 value)
{
	unsigned int row = row_of(value);

	if (!statistics->count || value < statistics->min)
		statistics->min = value;
	if (value > statistics->max)
		statistics->max = value;
	statistics->count++;
	statistics->sum += value;
	squares_add(statistics, (unsigned __int128)value * value);
	return bin_add(statistics, row, column_of(value, row), 1);
}

static int merge_rows(struct statistics *into, const struct bins *from)
{
	int error = 0;

	for (unsigned int row = 0; row < ROWS; row++) {
		const __u64 *counts = from->row_slot[row] ? from->rows[from->row_slot[row] - 1] : NULL;

		for (unsigned int column = 0; counts && column < COLUMNS; column++)
			if (counts[column] && bin_add(into, row, column, counts[column]))
				error = -ENOMEM;
	}
	return error;
}

int statistics_merge(struct statistics *into, const struct statistics *from)
{
	int error = 0;

	if (!from->count)
		return 0;
	if (!into->count || from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
	squares_add(into, from->squares);
	into->squares_carry += from->squares_carry;
	if (from->bins)
		return merge_rows(into, from->bins);
	for (__u64 i = 0; i < from->binned; i++)
		if (bin_add(into, from->few[i] / COLUMNS, from->few[i] % COLUMNS, 1))
			error = -ENOMEM;
	return error;
}

int statistics_record(struct statistics **statistics, const struct statistics **view, __u64 value)
{
	if (!*statistics)
		*view = *statistics = statistics_create();
	return *statistics ? statistics_add(*statistics, value) : -ENOMEM;
}

void statistics_fold(struct statistics **into, const struct statistics **view, struct statistics **from)
{
	if (!*into) {
		*view = *into = *from;
		*from = NULL;
	} else if (*from) {
		statistics_merge(*into, *from);
	}
}

__u64 statistics_count(const struct statistics *statistics)
{
	return statistics->count;
}

__u64 statistics_min(const struct statistics *statistics)
{
	return statistics->min;
}

__u64 statistics_max(const struct statistics *statistics)
{
	return statistics->max;
}

double statistics_sum(const struct statistics *statistics)
{
	return (double)statistics->sum;
}

double statistics_mean(const struct statistics *statistics)
{
	return statistics->count ? (double)((long double)statistics->sum / statistics->count) : 0;
}

/*
 * Sum of the squared distances from the mean. The difference of two large sums would lose what matters where values
 * hardly differ, so the distances are taken from the whole number below the mean, in integers modulo 2^128; only where
 * the result itself is that large are the sums rounded first, and then it does not matter.
 */
static long double squared_distances(const struct statistics *statistics)
{
	long double sum = (long double)statistics->sum, count = (long double)statistics->count;
	long double squares = (long double)statistics->squares + ldexpl((long double)statistics->squares_carry, 128);
	long double rounded = squares - sum * (sum / count);
	unsigned __int128 mean = statistics->sum / statistics->count;
	unsigned __int128 rest = statistics->sum - mean * statistics->count;
	unsigned __int128 exact;

	if (rounded > ldexpl(1, 120))
		return rounded;
	exact = statistics->squares - 2 * mean * statistics->sum + mean * mean * statistics->count;
	return (long double)exact - (long double)rest * ((long double)rest / count);
}

double statistics_deviation(const struct statistics *statistics)
{
	long double variance;

	if (statistics->count < 2)
		return 0;
	variance = squared_distances(statistics) / (long double)(statistics->count - 1);
	return variance > 0 ? (double)sqrtl(variance) : 0;
}

/* ~0: the value is in no column, as memory ran out. */
static __u64 few_middle(const struct statistics *statistics, __u64 index)
{
	if (index >= statistics->binned)
		return ~0ull;
	return column_middle(statistics->few[index] / COLUMNS, statistics->few[index] % COLUMNS);
}

static __u64 clamp(const struct statistics *statistics, __u64 value)
{
	if (value < statistics->min)
		return statistics->min;
	return value > statistics->max ? statistics->max : value;
}

/* The middle of the column with the value of this rank; ~0: the value is in no column, as memory ran out. */
static __u64 bins_at(const struct bins *bins, __u64 rank)
{
	__u64 seen = 0;

	for (unsigned int row = 0; row < ROWS; row++) {
		const __u64 *counts = bins->row_slot[row] ? bins->rows[bins->row_slot[row] - 1] : NULL;

		for (unsigned int column = 0; counts && column < COLUMNS; column++) {
			seen += counts[column];
			if (seen >= rank)
				return column_middle(row, column);
		}
	}
	return ~0ull;
}

__u64 statistics_quantile(const struct statistics *statistics, double quantile)
{
	__u64 rank;
	double place;

	if (!(quantile > 0))
		return statistics->min;
	/* 0.07 of 100 is rank 7, although the nearest double to 0.07 is a little more. */
	place = quantile * (double)statistics->binned;
	place = ceil(place - place * 1e-12);
	if (quantile >= 1 || place >= (double)statistics->binned)
		return statistics->max;
	rank = place < 1 ? 1 : (__u64)place;
	if (rank == 1)
		return statistics->min;
	return clamp(statistics, statistics->bins ? bins_at(statistics->bins, rank) : few_middle(statistics, rank - 1));
}

__u64 statistics_up_to_next(const struct statistics *statistics, struct statistics_cursor *cursor, __u64 value)
{
	const struct bins *bins = statistics->bins;

	if (!statistics->count || value < statistics->min)
		return 0;
	if (value >= statistics->max)
		return statistics->count;
	if (!bins) {
		while (cursor->seen < statistics->binned && few_middle(statistics, cursor->seen) <= value)
			cursor->seen++;
		return cursor->seen;
	}
	for (; cursor->row < ROWS; cursor->row++, cursor->column = 0) {
		const unsigned int slot = bins->row_slot[cursor->row];

		for (; slot && cursor->column < COLUMNS; cursor->column++) {
			if (column_middle(cursor->row, cursor->column) > value)
				return cursor->seen;
			cursor->seen += bins->rows[slot - 1][cursor->column];
		}
		if (!slot && column_middle(cursor->row, 0) > value)
			break;
	}
	return cursor->seen;
}

__u64 statistics_up_to(const struct statistics *statistics, __u64 value)
{
	struct statistics_cursor cursor = {};

	return statistics_up_to_next(statistics, &cursor, value);
}

/* What is derived from the times of a sample, and what many samples add up to. */

enum derivation {
	FROM_NOTHING = 0, /* known to the device's firmware only */
	FROM_SPAN,	  /* between two of the six times */
	FROM_RATE,	  /* how many such spans a second has */
	FROM_ENQUEUED,	  /* from the first time until the enqueue had returned */
	FROM_QUEUE,	  /* counted, not timed */
	FROM_TOKENS,	  /* of a batch of a language model */
	FROM_STATES,	  /* of the thread */
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
	[XPT_COLUMN_CPU_TIME] = { "cpuTime(Us)", FROM_STATES, 0, 0 },
	[XPT_COLUMN_WAITED_TIME] = { "waitedTime(Us)", FROM_STATES, 0, 0 },
	[XPT_COLUMN_BLOCKED_TIME] = { "blockedTime(Us)", FROM_STATES, 0, 0 },
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

	if (!count && !sample->first_token && !sample->output_token)
		return -ENODATA;
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
	case FROM_STATES:
		if (!sample->has_states)
			return -ENODATA;
		*thousandths = column == XPT_COLUMN_CPU_TIME	? sample->cpu_time :
			       column == XPT_COLUMN_WAITED_TIME ? sample->waited_time :
								  sample->blocked_time;
		return 0;
	case FROM_NOTHING:
		break;
	}
	return -ENODATA;
}

/* The sample itself, which is not copied, or as much of it as is known, in room. */
static int sample_known(const struct xpt_sample *sample, struct xpt_sample *room, const struct xpt_sample **known)
{
	bool is_current = sample && sample->size == sizeof(*sample);

	*known = is_current ? sample : room;
	if (is_current)
		return 0;
	*room = (struct xpt_sample){ 0 };
	return options_copy(room, sizeof(*room), sample);
}

int xpt_sample_column(const struct xpt_sample *sample, enum xpt_column column, uint64_t *thousandths)
{
	const struct xpt_sample *known;
	struct xpt_sample room;
	int error = sample_known(sample, &room, &known);

	if (error || !column_exists(column))
		return error ? error : -EINVAL;
	return derive(known, column, thousandths);
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
	const struct xpt_sample *known;
	struct xpt_sample room;
	struct statistics *statistics;
	uint64_t thousandths;
	int error = sample_known(sample, &room, &known);
	size_t i;

	if (error)
		return error;
	for (i = 0; i < XPT_COLUMNS; i++) {
		if (derive(known, i, &thousandths))
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

int xpt_latencies_buckets(const struct xpt_latencies *latencies, enum xpt_column column, const double *bounds,
			  size_t bound_count, uint64_t *counts)
{
	const struct statistics *statistics;
	struct statistics_cursor cursor = {};

	if (!column_exists(column))
		return -EINVAL;
	statistics = latencies->column[column];
	if (!statistics || !statistics_count(statistics))
		return -ENODATA;
	for (size_t i = 0; i < bound_count; i++) {
		double bound = bounds[i] * unit(column);

		/* A bound of 0.3 us is 300 ns, although the double is a little less. */
		counts[i] = bound < 0 ? 0 :
			    bound >= 0x1p63 ?
					statistics_count(statistics) :
					statistics_up_to_next(statistics, &cursor, (__u64)(bound + bound * 1e-12));
	}
	return 0;
}
