/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/state.h"

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

/* With 0: the other one. */
static __u32 common_divisor(__u32 one, __u32 other)
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
	const struct link *link;

	for (link = entry->members.next; link != &entry->members; link = link->next) {
		member = container_of(link, const struct member, of_entry);
		if (member->until == NEVER && run_samples(member->run))
			rate = common_divisor(rate, run_rate(member->run));
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

static void rate_say(struct profiling *profiling, struct entry *entry, __u32 others)
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
	rate_say(profiling, entry, profiling->sample_every);
}

void rates_refresh(struct profiling *profiling)
{
	__u32 rate = profiling->shared, roles = profiling->shared ? ROLES_TRACE : ROLES_ALWAYS;
	const struct run *run;
	struct link *link;

	profiling->rates_stale = profiling->inside = false;
	for (link = profiling->runs.next; link != &profiling->runs; link = link->next) {
		run = container_of(link, const struct run, link);
		if (!run_samples(run))
			continue;
		roles |= run->trace ? ROLES_TRACE : ROLES_RUN;
		roles |= run_takes_regions(run) ? ROLES_REGIONS : 0;
		if (run_takes_unknown(run))
			rate = common_divisor(rate, run_rate(run));
		if (run->inside) {
			profiling->inside = true;
			rate = 1;
		}
	}
	rate = rate ?: XPT_SAMPLE_NONE;
	/* Programs first: what the others get is not theirs for a moment in between. */
	for (link = profiling->catalogue.alive.next; link != &profiling->catalogue.alive; link = link->next)
		rate_say(profiling, container_of(link, struct entry, link), rate);
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
