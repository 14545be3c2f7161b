/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run and the call around it bound the offset from both sides. So each pair of a run and a call of its thread is a
 * supposition, an interval of offsets, which every other run either narrows, or refutes by lying in no call.
 * Suppositions begin from a few runs spread over the profile (or calls, when they are fewer); nearly all are refuted by
 * a few others.
 */
#include "report/merge/input.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define CUT 1000	  /* ns by which a run may have begun later than recorded, and ended later than that */
#define ANCHORS 64	  /* runs or calls that suppositions begin from */
#define PART 4		  /* of the runs or calls, whichever are fewer, must match when not all do */
#define PART_LEAST 8	  /* and at least this number */
#define STEPS 300000000ll /* visits of runs, before it is given up: some ten seconds */

struct span_list {
	struct merge_span *spans;
	size_t count;
};

struct match {
	struct span_list runs, calls;
	__s64 first, last; /* begin of the first call, end of the last */
	long long steps;
	struct supposition {
		__s64 least, most; /* offsets that no run contradicts */
		__s64 inside;	   /* from here on no run begins before its call by its recorded begin, uncut */
		size_t matched;
	} found, other; /* the best one; the best of those that exclude it */
};

static int compare_spans(const void *a, const void *b)
{
	const struct merge_span *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Index of the last span of the thread that begins at time or before it, plus 1; 0: there is none. */
static size_t find_span(const struct span_list *list, __u32 thread, __s64 time)
{
	struct merge_span wanted = { .thread = thread, .start = time };
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_spans(&list->spans[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && list->spans[low - 1].thread == thread ? low : 0;
}

enum outcome { OUTCOME_OUTSIDE, OUTCOME_INSIDE, OUTCOME_REFUTED };

static __s64 middle_of(const struct supposition *supposition)
{
	return supposition->least + (supposition->most - supposition->least) / 2;
}

/* Narrows the supposition by one run. *call: in which it lies. */
static enum outcome look_at(struct match *match, const struct merge_span *run, struct supposition *supposition,
			    size_t *call)
{
	__s64 offset = middle_of(supposition), least, most;
	size_t place;
	const struct merge_span *span;

	match->steps++;
	if (run->start + offset < match->first || run->end + offset > match->last)
		return OUTCOME_OUTSIDE;
	place = find_span(&match->calls, run->thread, run->start + (run->end - run->start) / 2 + offset);
	if (!place)
		return OUTCOME_REFUTED;
	span = &match->calls.spans[place - 1];
	least = span->start - run->start;
	most = span->end - run->end;
	if (least - CUT > most || least - CUT > supposition->most || most < supposition->least)
		return OUTCOME_REFUTED;
	if (least - CUT > supposition->least)
		supposition->least = least - CUT;
	if (most < supposition->most)
		supposition->most = most;
	if (least > supposition->inside)
		supposition->inside = least;
	*call = place;
	return OUTCOME_INSIDE;
}

/* Runs at a distance of 1, 2, 4 and so on: what fits near the first one by chance does not fit further off. */
static bool some_refute(struct match *match, size_t run, struct supposition *supposition)
{
	size_t count = match->runs.count, call;

	for (size_t distance = 1; distance < count; distance *= 2) {
		if (run + distance < count &&
		    look_at(match, &match->runs.spans[run + distance], supposition, &call) == OUTCOME_REFUTED)
			return true;
		if (run >= distance &&
		    look_at(match, &match->runs.spans[run - distance], supposition, &call) == OUTCOME_REFUTED)
			return true;
	}
	return false;
}

static bool all_refute(struct match *match, struct supposition *supposition)
{
	size_t before = 0, call;

	supposition->matched = 0;
	for (size_t i = 0; i < match->runs.count; i++) {
		switch (look_at(match, &match->runs.spans[i], supposition, &call)) {
		case OUTCOME_REFUTED:
			return true;
		case OUTCOME_INSIDE:
			if (call == before) /* two runs in one call */
				return true;
			before = call;
			supposition->matched++;
			break;
		default:
			break;
		}
	}
	return false;
}

static bool overlap(const struct supposition *a, const struct supposition *b)
{
	return a->least <= b->most && b->least <= a->most;
}

/* One that nothing has refuted: the best, or the best of those that are against it. */
static void keep(struct match *match, const struct supposition *supposition)
{
	if (supposition->matched > match->found.matched) {
		if (!overlap(supposition, &match->found))
			match->other = match->found;
		match->found = *supposition;
	} else if (supposition->matched > match->other.matched && !overlap(supposition, &match->found)) {
		match->other = *supposition;
	}
}

static void suppose(struct match *match, size_t run, size_t call)
{
	const struct merge_span *inner = &match->runs.spans[run], *outer = &match->calls.spans[call];
	struct supposition supposition = {
		.least = outer->start - inner->start - CUT,
		.most = outer->end - inner->end,
		.inside = outer->start - inner->start,
	};

	match->steps++;
	/* What is known already is not checked again. */
	if (supposition.least > supposition.most ||
	    (match->found.matched && match->found.least >= supposition.least && match->found.most <= supposition.most))
		return;
	if (!some_refute(match, run, &supposition) && !all_refute(match, &supposition))
		keep(match, &supposition);
}

/*
 * All of the runs and calls. Otherwise a good part of them: that a few runs lie on a few calls may be chance, and where
 * these are the last runs and the first calls nothing else speaks against it.
 */
static bool enough(const struct match *match)
{
	size_t matched = match->found.matched, runs = match->runs.count, calls = match->calls.count;

	if (matched == runs && matched == calls)
		return true;
	return matched >= PART_LEAST && matched >= (runs < calls ? runs : calls) / PART;
}

/* Whatever is found from here on, it will not be the only one. */
static bool hopeless(const struct match *match)
{
	size_t most = match->runs.count < match->calls.count ? match->runs.count : match->calls.count;

	return match->steps > STEPS || (enough(match) && match->other.matched * 2 >= most);
}

/* Pairs of one of a few and each of its thread in the other list. */
static void suppose_from(struct match *match, bool from_runs)
{
	const struct span_list *few = from_runs ? &match->runs : &match->calls;
	const struct span_list *many = from_runs ? &match->calls : &match->runs;
	size_t anchors = few->count < ANCHORS ? few->count : ANCHORS;

	for (size_t i = 0; i < anchors && !hopeless(match); i++) {
		size_t anchor = (unsigned __int128)few->count * i / anchors;
		__u32 thread = few->spans[anchor].thread;
		size_t j = find_span(many, thread, INT64_MAX);

		for (; j-- && many->spans[j].thread == thread && !hopeless(match);)
			suppose(match, from_runs ? anchor : j, from_runs ? j : anchor);
	}
}

static enum merge_verdict judge(const struct match *match, struct merge_fit *fit)
{
	const struct supposition *found = &match->found;
	__s64 least = found->inside <= found->most ? found->inside : found->least;
	__u64 below, above;

	if (match->steps > STEPS)
		return MERGE_TOO_MUCH;
	if (!enough(match))
		return MERGE_NO_FIT;
	if (match->other.matched * 2 >= found->matched)
		return MERGE_AMBIGUOUS;
	fit->offset = least + (found->most - least) / 2;
	below = fit->offset - found->least;
	above = found->most - fit->offset;
	fit->uncertainty = below > above ? below : above;
	fit->matched = found->matched;
	return MERGE_FITS;
}

static bool threads_meet(const struct match *match)
{
	for (size_t i = 0; i < match->runs.count; i++) {
		if (find_span(&match->calls, match->runs.spans[i].thread, INT64_MAX))
			return true;
	}
	return false;
}

enum merge_verdict merge_match(struct merge_span *runs, size_t run_count, struct merge_span *calls, size_t call_count,
			       struct merge_fit *fit)
{
	struct match match = {
		.runs = { runs, run_count },
		.calls = { calls, call_count },
		.first = INT64_MAX,
		.last = INT64_MIN,
	};

	qsort(runs, run_count, sizeof(*runs), compare_spans);
	qsort(calls, call_count, sizeof(*calls), compare_spans);
	for (size_t i = 0; i < call_count; i++) {
		if (calls[i].start < match.first)
			match.first = calls[i].start;
		if (calls[i].end > match.last)
			match.last = calls[i].end;
	}
	if (!threads_meet(&match))
		return MERGE_NO_CALLS;
	if (run_count < MERGE_MATCH_LEAST || call_count < MERGE_MATCH_LEAST)
		return MERGE_TOO_FEW;
	suppose_from(&match, run_count <= call_count);
	return judge(&match, fit);
}
