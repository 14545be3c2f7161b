/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Each row of the histogram is one octave cut into equal columns: a column is at most 1/64 of the values in it, so its
 * middle is at most 1/128 off. Row 0 holds the values below 64, each in a column of its own.
 */
#define COLUMN_BITS 6
#define COLUMNS (1 << COLUMN_BITS)
#define ROWS (64 - COLUMN_BITS + 1)

struct statistics {
	unsigned __int128 sum;
	unsigned __int128 squares; /* sum of the squares, modulo 2^128 ... */
	__u64 squares_carry;	   /* ... and how often it went over; sums of integers merge without rounding */
	__u64 count, min, max;
	__u64 binned; /* values in the histogram: less than count only after memory ran out */
	__u64 (*rows)[COLUMNS];
	__u8 row_count;
	__u8 row_slot[ROWS]; /* 1 + index in rows; 0: the row has no value yet */
};

struct statistics *statistics_create(void)
{
	return calloc(1, sizeof(struct statistics));
}

void statistics_free(struct statistics *statistics)
{
	if (!statistics)
		return;
	free(statistics->rows);
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

static __u64 *row_get(struct statistics *statistics, unsigned int row)
{
	__u64(*rows)[COLUMNS];
	unsigned int i;

	if (!statistics->row_slot[row]) {
		rows = realloc(statistics->rows, (statistics->row_count + 1u) * sizeof(*rows));
		if (!rows)
			return NULL;
		statistics->rows = rows;
		for (i = 0; i < COLUMNS; i++)
			rows[statistics->row_count][i] = 0;
		statistics->row_slot[row] = ++statistics->row_count;
	}
	return statistics->rows[statistics->row_slot[row] - 1];
}

static void squares_add(struct statistics *statistics, unsigned __int128 squares)
{
	statistics->squares += squares;
	statistics->squares_carry += statistics->squares < squares;
}

int statistics_add(struct statistics *statistics, __u64 value)
{
	unsigned int row = row_of(value);
	__u64 *counts = row_get(statistics, row);

	if (!statistics->count || value < statistics->min)
		statistics->min = value;
	if (value > statistics->max)
		statistics->max = value;
	statistics->count++;
	statistics->sum += value;
	squares_add(statistics, (unsigned __int128)value * value);
	if (!counts)
		return -ENOMEM;
	counts[column_of(value, row)]++;
	statistics->binned++;
	return 0;
}

int statistics_merge(struct statistics *into, const struct statistics *from)
{
	unsigned int row, column;
	const __u64 *counts;
	__u64 *target;
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
	for (row = 0; row < ROWS; row++) {
		if (!from->row_slot[row])
			continue;
		counts = from->rows[from->row_slot[row] - 1];
		target = row_get(into, row);
		if (!target) {
			error = -ENOMEM;
			continue;
		}
		for (column = 0; column < COLUMNS; column++) {
			target[column] += counts[column];
			into->binned += counts[column];
		}
	}
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

static __u64 clamp(const struct statistics *statistics, __u64 value)
{
	if (value < statistics->min)
		return statistics->min;
	return value > statistics->max ? statistics->max : value;
}

__u64 statistics_quantile(const struct statistics *statistics, double quantile)
{
	unsigned int row, column;
	__u64 rank, seen = 0;
	const __u64 *counts;
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
	for (row = 0; row < ROWS; row++) {
		if (!statistics->row_slot[row])
			continue;
		counts = statistics->rows[statistics->row_slot[row] - 1];
		for (column = 0; column < COLUMNS; column++) {
			seen += counts[column];
			if (seen >= rank)
				return clamp(statistics, column_middle(row, column));
		}
	}
	return statistics->max;
}
