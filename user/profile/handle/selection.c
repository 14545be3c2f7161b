/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "profile/handle/state.h"

/* ---- which programs a run is for ---- */

bool selection_wants(struct handle *handle, const struct entry *entry)
{
	if (!handle->options.stream)
		return choice_fits(&handle->options.program, entry->identity);
	switch (choices_decide(&handle->choices, entry->identity)) {
	case CHOICE_ADDED:
		return true;
	case CHOICE_REMOVED:
		return false;
	default:
		return handle->expression && !(handle->everything && entry->region) &&
		       expression_fits(handle->expression, handle->profiling->options.log, entry->identity->name);
	}
}

struct member *selection_find(const struct entry *entry, const struct run *run)
{
	struct member *member;

	link_for_each(member, &entry->members, of_entry) {
		if (member->run == run)
			return member;
	}
	return NULL;
}

void member_free(struct member *member)
{
	link_remove(&member->of_entry);
	link_remove(&member->of_run);
	free(member);
}

void member_rename(struct member *member)
{
	if (!member->serial || member->serial != member->run->serial || !member->row->identity)
		return;
	identity_put(member->row->identity);
	member->row->identity = identity_get(member->entry->identity);
}

/* Everything that the program ever did was after the start. */
static bool is_born_in(const struct run *run, const struct entry *entry)
{
	return entry->loaded && entry->loaded >= run->from;
}

static void member_add(struct run *run, struct entry *entry, bool fresh)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member) {
		log_warn(run->handle->profiling->options.log, "a program is left out: no memory");
		return;
	}
	member->run = run;
	member->entry = entry;
	member->until = NEVER;
	if (fresh && is_born_in(run, entry))
		member->baseline = 0;
	else
		/* One that is known since a reading only has counted nothing before it. */
		member->baseline = fresh ? run->baseline : NEVER;
	run->pending |= member->baseline == NEVER;
	if (run->trace && entry->region && !run->inside)
		run->inside = run->handle->profiling->rates_stale = true;
	link_append(&entry->members, &member->of_entry);
	link_append(&run->members, &member->of_run);
}

static void member_return(struct member *member)
{
	if (member->until != NEVER) {
		member->baseline = NEVER;
		member->run->pending = true;
	}
	member->leaving = false;
	member->until = NEVER;
}

/* It stays until the counts of what it did so far have been read. */
static void member_leave(struct member *member)
{
	if (member->until != NEVER)
		return;
	member->leaving = true;
	member->run->pending = true;
}

static void select_one(struct run *run, struct entry *entry, bool fresh)
{
	struct member *member = selection_find(entry, run);
	bool wanted;

	/*
	 * What has ended keeps what it had: the choices may be those of the next run. But events from before that may
	 * have more programs.
	 */
	if ((member && run->ended) || (run->bound && run->bound != entry->identity->id))
		return;
	wanted = run->bound || selection_wants(run->handle, entry);
	if (member && wanted)
		member_return(member);
	else if (member)
		member_leave(member);
	else if (wanted)
		member_add(run, entry, fresh);
}

void selection_enter(struct profiling *profiling, struct entry *entry, bool fresh)
{
	struct run *run;

	link_for_each(run, &profiling->runs, link)
		select_one(run, entry, fresh);
}

void selection_refresh(struct profiling *profiling, struct run *run)
{
	struct entry *entry;

	link_for_each(entry, &profiling->programs.alive, link)
		select_one(run, entry, false);
	profiling->rates_stale = true;
}

void selection_born(struct entry *entry)
{
	struct member *member;

	link_for_each(member, &entry->members, of_entry) {
		if (member->baseline == NEVER && is_born_in(member->run, entry))
			member->baseline = 0;
	}
}

/* ---- what the kernel records ---- */

#define ROLE(role) (1u << XPT_ROLE_##role)

/* Without them programs, their names and the libraries that are loaded later are not known. */
#define ROLES_ALWAYS                                                                                            \
	(ROLE(PROGRAM_LOAD) | ROLE(PROGRAM_READY) | ROLE(PROGRAM_NAME) | ROLE(PROGRAM_UNLOAD) | ROLE(RESOLVE) | \
	 ROLE(TABLE) | ROLE(LOADER))
/* What ends launches beside waits: marks and blocking copies, on their queue. */
#define ENDS (ROLE(MARK) | ROLE(STREAM) | ROLE(COPY))
#define ROLES_RUN (ROLES_ALWAYS | ROLE(EXECUTE) | ROLE(ENQUEUE) | ROLE(WAIT) | ROLE(LAUNCH) | ROLE(CALLBACK) | ENDS)
#define ROLES_REGIONS                                                                                    \
	(ROLE(OPERATOR_END) | ROLE(REGION_BEGIN) | ROLE(REGION_END) | ROLE(REGION) | ROLE(REGION_NAME) | \
	 ROLE(REGION_RELEASE))
#define ROLES_TRACE (~0u)

#define RETRY_MOST 1024 /* calls */

__u32 sample_rate_common(__u32 one, __u32 other)
{
	__u32 rest;

	while (other) {
		rest = one % other;
		one = other;
		other = rest;
	}
	return one;
}

static __u32 run_rate(const struct run *run)
{
	return run->handle->options.stream ? run->handle->options.sample_every : 1;
}

/* May programs that are not known yet be for it? */
static bool run_takes_unknown(const struct run *run)
{
	if (!run->handle->options.stream)
		return !run->bound;
	return run->handle->expression || run->handle->choices.added;
}

bool run_takes_regions(const struct run *run)
{
	const struct handle *handle = run->handle;

	if (!handle->options.stream)
		return choice_is_region(&handle->options.program);
	return (handle->expression && !handle->everything) || choices_have_regions(&handle->choices);
}

static __u32 rate_of(const struct profiling *profiling, const struct entry *entry)
{
	const struct member *member;
	__u32 rate = profiling->shared;

	link_for_each(member, &entry->members, of_entry) {
		if (member->until == NEVER && run_samples(member->run))
			rate = sample_rate_common(rate, run_rate(member->run));
	}
	return rate ?: XPT_SAMPLE_NONE;
}

/* What the kernel has for the program; 0: none of its own. */
static void rate_set(struct profiling *profiling, struct entry *entry, __u32 rate)
{
	profiling->partly -= entry->sample_every > 1;
	entry->sample_every = rate;
	profiling->partly += rate > 1;
}

void rates_forget(struct profiling *profiling, struct entry *entry)
{
	rate_set(profiling, entry, 0);
}

bool rates_are_full(const struct profiling *profiling)
{
	return profiling->sample_every == 1 && !profiling->partly;
}

static void rate_apply(struct profiling *profiling, struct entry *entry, __u32 others)
{
	const struct identity *identity = entry->identity;
	const struct model_process process = { .tgid = identity->tgid, .name = identity->process, .command = "" };
	const struct model_program program = { .id = identity->id,
					       .process = &process,
					       .runtime = identity->runtime,
					       .runtime_index = entry->runtime_index,
					       .handle = identity->handle,
					       .generation = identity->generation,
					       .name = identity->name,
					       .loaded = entry->loaded };
	__u32 rate = profiling->inside ? 1 : rate_of(profiling, entry);

	if (entry->region || entry->released || rate == (entry->sample_every ?: others)) {
		entry->retry_after = 0;
		return;
	}
	if (!profiling->options.set_sampling(profiling->options.context, &program, rate)) {
		rate_set(profiling, entry, rate);
		entry->retry_after = 0;
		return;
	}
	/* Mostly it works with the next call; where it does not, trying must not be what takes the time. */
	entry->retry_after = !entry->retry_after	     ? 1 :
			     entry->retry_after < RETRY_MOST ? entry->retry_after * 2 :
							       RETRY_MOST;
	entry->retry_calls = 0;
}

void rates_retry(struct profiling *profiling, struct entry *entry)
{
	if (entry->retry_after && ++entry->retry_calls >= entry->retry_after)
		rates_update(profiling, entry);
}

void rates_update(struct profiling *profiling, struct entry *entry)
{
	rate_apply(profiling, entry, profiling->sample_every);
}

void rates_refresh(struct profiling *profiling)
{
	struct entry *entry;
	__u32 rate = profiling->shared, roles = profiling->shared ? ROLES_TRACE : ROLES_ALWAYS;
	const struct run *run;

	profiling->rates_stale = profiling->inside = false;
	link_for_each(run, &profiling->runs, link) {
		if (!run_samples(run))
			continue;
		roles |= run->trace ? ROLES_TRACE : ROLES_RUN;
		roles |= run_takes_regions(run) ? ROLES_REGIONS : 0;
		if (run_takes_unknown(run))
			rate = sample_rate_common(rate, run_rate(run));
		if (run->inside) {
			profiling->inside = true;
			rate = 1;
		}
	}
	rate = rate ?: XPT_SAMPLE_NONE;
	/* Programs first: what the others get is not theirs for a moment in between. */
	link_for_each(entry, &profiling->programs.alive, link)
		rate_apply(profiling, entry, rate);
	if (rate == profiling->sample_every && roles == profiling->roles)
		return;
	profiling->sample_every = rate;
	profiling->roles = roles;
	profiling->options.set_defaults(profiling->options.context, rate, roles);
}

void profiling_share(struct profiling *profiling, __u32 sample_every)
{
	profiling->shared = sample_every;
	rates_refresh(profiling);
}
