/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place where capturing is put together: open, arm, start, drain, stop, close. */
#include "session/collect/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/options.h"
#include "kern/features.h"
#include "profile/handle/profiling.h"
#include "session/reader/readers.h"

#define BUFFER_BYTES (8u << 20)
#define LOSSES_INTERVAL 200000000ull /* ns */
#define LOSSES_INTERVAL_PATIENT 1000000000ull
#define GRACE_US 5000
#define PRIORITY -20		      /* nice value */
#define WAIT_PROBES 1000000000ull     /* ns */
#define WAIT_CODES 500000000ull	      /* ns */
#define PLACING_INTERVAL 250000000ull /* ns */
#define PLACING_SLOW 1000000000ull    /* ns */

static bool lacks_entries(const struct collector_options *options)
{
	const struct {
		const char *const *items;
		size_t count;
	} lists[] = {
		{ options->process_names, options->process_name_count },
		{ options->runtime_files, options->runtime_file_count },
		{ options->regions, options->region_count },
		{ options->runtimes, options->runtime_count },
		{ options->driver_files, options->driver_file_count },
		{ options->counters, options->counter_count },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (size_t j = 0; j < lists[i].count; j++) {
			if (!lists[i].items || !lists[i].items[j])
				return true;
		}
	}
	return (options->pid_count && !options->pids) || (options->name_count && !options->names);
}

int collector_check_options(const struct collector_options *options)
{
	unsigned int ways = (options->pid_count || options->process_name_count) + !!options->command +
			    !!options->all_processes;

	if (ways != 1) {
		log_error(&options->log, ways ? "processes, a command and all processes exclude each other" :
						"nothing to trace: name processes, a command, or all processes");
		return -EINVAL;
	}
	if (lacks_entries(options)) {
		log_error(&options->log, "a list of options has fewer entries than its count");
		return -EINVAL;
	}
	for (size_t i = 0; i < options->process_name_count; i++) {
		if (!*options->process_names[i]) {
			log_error(&options->log, "the name of a process is empty");
			return -EINVAL;
		}
	}
	if (options->command && !options->command[0]) {
		log_error(&options->log, "the command is empty");
		return -EINVAL;
	}
	return 0;
}

static int copy_options(struct collector *collector, const struct collector_options *options)
{
	collector->options = *options;
	collector->options.name_count = 0;
	collector->options.process_name_count = 0;
	collector->log = options->log;
	collector->pids = calloc(options->pid_count ?: 1, sizeof(*collector->pids));
	collector->names = calloc(options->name_count ?: 1, sizeof(*collector->names));
	collector->process_names = calloc(options->process_name_count ?: 1, sizeof(*collector->process_names));
	collector->process_names_met = calloc(options->process_name_count ?: 1, sizeof(bool));
	if (!collector->pids || !collector->names || !collector->process_names || !collector->process_names_met)
		return -ENOMEM;
	collector->options.pid_count = 0;
	for (size_t i = 0; i < options->pid_count; i++) {
		size_t known = 0;

		while (known < collector->options.pid_count && collector->pids[known] != options->pids[i])
			known++;
		collector->pids[known] = options->pids[i];
		collector->options.pid_count += known == collector->options.pid_count;
	}
	for (size_t i = 0; i < options->name_count; i++) {
		struct xpt_handle_name *name = &collector->names[i];
		int error = options_copy_element(name, sizeof(*name), options->names, options->name_size, i);

		if (error || !name->name)
			return error ?: -EINVAL;
		name->name = strdup(name->name);
		if (!name->name)
			return -ENOMEM;
		collector->options.name_count++;
	}
	for (size_t i = 0; i < options->process_name_count; i++) {
		collector->process_names[i] = strdup(options->process_names[i]);
		if (!collector->process_names[i])
			return -ENOMEM;
		collector->options.process_name_count++;
	}
	return 0;
}

static int record_visit(void *context, const struct xpt_record_header *record)
{
	collector_pass(context, record);
	return 0;
}

/* Reports which feature is missing, and what to do about it. */
static bool explain_feature(const struct collector *collector, const struct feature *feature)
{
	char detail[256], advice[256];
	int error = feature->need == FEATURE_REQUIRED ? feature->try(detail, sizeof(detail)) : 0;

	if (!error)
		return false;
	if (error_is_shortage(error)) {
		log_error(&collector->log, "cannot find out whether this machine has %s: %s", feature->name,
			  strerror(-error));
		return true;
	}
	feature_advice(feature, error, advice, sizeof(advice));
	log_error(&collector->log, "this machine lacks %s, needed for %s: %s", feature->name, feature->gives, advice);
	return true;
}

/* All would seem to work, on processes with other numbers, and at other times. */
static int check_namespaces(const struct collector *collector)
{
	for (size_t i = 0; i < feature_count; i++) {
		if (feature_is_silent(&features[i]) && explain_feature(collector, &features[i]))
			return -EOPNOTSUPP;
	}
	return 0;
}

int collector_create(const struct collector_options *options, struct collector **result)
{
	struct collector *collector;
	int error = collector_check_options(options);

	if (error)
		return error;
	collector = calloc(1, sizeof(*collector));
	if (!collector)
		return -ENOMEM;
	collector->epoll = collector->wake = collector->cpu_events = -1;
	link_init(&collector->followed);
	collector->command = (struct command){ .release = -1, .failure = -1, .status = -1 };
	error = copy_options(collector, options);
	if (!error)
		error = registry_create(&collector->log,
					&(struct registry_options){
						.files = options->runtime_files,
						.file_count = options->runtime_file_count,
						.only = options->runtimes,
						.only_count = options->runtime_count,
						.regions = options->regions,
						.region_count = options->region_count,
					},
					&collector->registry);
	if (!error) {
		collector->spec_calls = calloc(collector->registry->spec_count ?: 1, sizeof(*collector->spec_calls));
		collector->spec_apart = calloc(collector->registry->spec_count ?: 1, sizeof(*collector->spec_apart));
		collector->spec_costs = calloc(collector->registry->spec_count ?: 1, sizeof(*collector->spec_costs));
		error = collector->spec_calls && collector->spec_apart && collector->spec_costs ? 0 : -ENOMEM;
	}
	if (!error)
		error = driver_tracer_create(collector, &collector->driver_tracer);
	if (!error)
		error = budget_create(collector, &collector->budget);
	if (!error && geteuid()) {
		log_error(&collector->log, "tracing needs root: start it with sudo");
		error = -EPERM;
	}
	if (!error)
		error = check_namespaces(collector);
	if (!error)
		error = targets_look(collector);
	if (error) {
		collector_free(collector);
		return error;
	}
	*result = collector;
	return 0;
}

static void explain_kernel(const struct collector *collector, int error)
{
	__u64 wanted = CAPABILITIES_TRACING | 1ull << CAP_CHECKPOINT_RESTORE;
	bool denied = error == -EPERM || error == -EACCES;
	char text[256];

	/* Which has no error of its own: the probe is refused. */
	if (collector->options.link == XPT_LINK_PERF) {
		wanted |= 1ull << CAP_SYS_ADMIN;
		denied |= capabilities_missing(wanted) != 0;
	}
	for (size_t i = 0; i < feature_count && !error_is_shortage(error); i++) {
		if (denied && capabilities_missing(wanted))
			break;
		if (!(denied && features[i].capabilities) && explain_feature(collector, &features[i]))
			return;
	}
	if (denied)
		capabilities_explain(wanted, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s (see `xputrace check`)", strerror(-error));
	log_error(&collector->log, "cannot set up tracing in the kernel: %s", text);
}

#define REGION_ROLES (1u << XPT_ROLE_REGION) /* asked for by name */
#define INFERENCE_ROLES (1u << XPT_ROLE_EXECUTE | 1u << XPT_ROLE_ENQUEUE | 1u << XPT_ROLE_WAIT)

__u32 collector_level_roles(enum xpt_level level)
{
	switch (level) {
	case XPT_LEVEL_BASIC:
		return INFERENCE_ROLES | REGION_ROLES;
	case XPT_LEVEL_DETAILED:
		return ~0u;
	default:
		return ~(1u << XPT_ROLE_OPERATOR);
	}
}

static __u64 limited(__u64 wait_limit)
{
	return wait_limit < XPT_WAIT_LIMIT_MAX ? wait_limit : XPT_WAIT_LIMIT_MAX;
}

/* With -a nobody waits for probes: too many may. */
static __u64 probe_limit(const struct collector *collector)
{
	const struct collector_options *options = &collector->options;

	return options->no_wait || options->all_processes ? 0 : limited(options->wait_limit ?: WAIT_PROBES);
}

__u64 collector_code_limit(const struct collector *collector)
{
	return collector->options.no_wait ? 0 : limited(collector->needs.code_wait_limit ?: WAIT_CODES);
}

/* Many probes take a while, the longer the more processes fork. */
static bool on_placing(void *context, size_t done, size_t total)
{
	struct collector *collector = context;
	const struct collector_options *options = &collector->options;
	__u64 now = clock_monotonic();

	if (!done)
		collector->placing_since = collector->placing_reported = now;
	if (now - collector->placing_reported >= PLACING_INTERVAL) {
		log_info(&collector->log, "placing probes %zu/%zu", done, total);
		if (now - collector->placing_since >= PLACING_SLOW && !collector->placing_slow)
			log_warn(&collector->log,
				 "placing probes takes more than 1 s: the kernel is busy, or processes fork all the time");
		collector->placing_slow |= now - collector->placing_since >= PLACING_SLOW;
		collector->placing_reported = now;
	}
	records_drain_beside(collector);
	return options->interrupted(options->context);
}

static int check_needs(const struct collector *collector, const struct collector_needs *needs)
{
	const struct collector_needs *all = &collector->needs;
	const char *missing = needs->codes && !all->codes			? "code objects" :
			      needs->roles & ~all->roles			? "operators (level detailed)" :
			      needs->number_operators && !all->number_operators ? "samples of operators" :
			      needs->stacks > all->stacks			? "stacks" :
			      needs->samples > all->samples			? "stacks of running threads" :
										  NULL;

	if (!missing)
		return 0;
	log_error(&collector->log,
		  "the session was loaded without %s: the first consumer that needs them joins before it starts",
		  missing);
	return -ENODATA;
}

int collector_need(struct collector *collector, const struct collector_needs *needs)
{
	struct collector_needs *all = &collector->needs;

	if (collector->kern)
		return check_needs(collector, needs);
	all->roles |= needs->roles;
	all->sample_every = sample_rate_common(all->sample_every, needs->sample_every);
	all->chosen_only |= needs->chosen_only;
	all->number_operators |= needs->number_operators;
	all->codes |= needs->codes;
	if (all->stacks < needs->stacks)
		all->stacks = needs->stacks;
	if (all->samples < needs->samples)
		all->samples = needs->samples;
	if (all->code_wait_limit < needs->code_wait_limit)
		all->code_wait_limit = needs->code_wait_limit;
	return 0;
}

static void on_scanned(void *context, pid_t tgid)
{
	struct collector *collector = context;

	stack_tracer_prepare(collector->stack_tracer, tgid);
	if (collector->options.scanned)
		collector->options.scanned(collector->options.context, tgid);
}

static int open_kernel(struct collector *collector)
{
	const struct collector_options *options = &collector->options;
	const struct collector_needs *needs = &collector->needs;
	struct kern_options kern_options = {
		.spec_count = attacher_spec_count(collector->registry),
		.sample_every = needs->sample_every ?: XPT_SAMPLE_NONE,
		.chosen_only = needs->chosen_only,
		.number_operators = needs->number_operators,
		.buffer_bytes = options->buffer_bytes ?: BUFFER_BYTES,
		.link = (enum link_kind)options->link,
		.codes = needs->codes,
		.stacks = needs->stacks,
		.samples = needs->samples,
		.budget = collector->budget,
		.switches = options->why,
		.wait_probes = probe_limit(collector),
		.wait_codes = collector_code_limit(collector),
		.placing = on_placing,
		.placing_context = collector,
	};
	struct attacher_options attacher_options = {
		.log = &collector->log,
		.registry = collector->registry,
		.all_processes = options->all_processes,
		.loader = options->command != NULL,
		.codes = needs->codes,
		.budget = collector->budget,
		.roles = needs->roles,
		.record = record_visit,
		.context = collector,
		.scanned = on_scanned,
		.scanned_context = collector,
	};
	int error;

	/* Before the kernel's side, which takes memory: it is forked for each file. */
	error = file_readers_start(&collector->log,
				   &(struct file_search){ .registry = collector->registry,
							  .operators = attacher_options.roles >> XPT_ROLE_OPERATOR & 1,
							  .loader = attacher_options.loader,
							  .codes = attacher_options.codes },
				   &attacher_options.readers);
	if (error) {
		log_error(&collector->log, "cannot start a process: %s", strerror(-error));
		return error;
	}
	error = stack_tracer_create(collector, &collector->stack_tracer);
	if (error) {
		file_readers_stop(attacher_options.readers);
		return error;
	}
	counter_sampler_lend(collector->counter_sampler, &kern_options);
	error = kern_open(&collector->log, &kern_options, &collector->kern);
	counter_sampler_lent(collector->counter_sampler);
	if (error) {
		file_readers_stop(attacher_options.readers);
		explain_kernel(collector, error);
		return error;
	}
	attacher_options.kern = collector->kern;
	error = attacher_create(&attacher_options, &collector->attacher);
	if (!error && !options->command && mappings_open(&collector->log, &collector->mappings))
		collector->mappings = NULL;
	return error;
}

static int watch(struct collector *collector, int descriptor)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = descriptor };

	return epoll_ctl(collector->epoll, EPOLL_CTL_ADD, descriptor, &event) ? -errno : 0;
}

/* Each fork of the machine makes them readable, too: so they wake the thread once, and again only after a poll. */
static int watch_mappings(struct collector *collector, int operation)
{
	int descriptor = mappings_descriptor(collector->mappings);
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = descriptor };

	return epoll_ctl(collector->epoll, operation, descriptor, &event) ? -errno : 0;
}

static int open_events(struct collector *collector)
{
	int error;

	collector->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (collector->epoll < 0)
		return -errno;
	collector->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (collector->wake < 0)
		return -errno;
	error = watch(collector, collector->wake);
	if (!error)
		error = watch(collector, kern_control_descriptor(collector->kern));
	if (!error)
		error = watch(collector, kern_data_descriptor(collector->kern));
	if (!error && collector->stack_tracer)
		error = watch(collector, stack_tracer_descriptor(collector->stack_tracer));
	if (!error && collector->mappings)
		error = watch_mappings(collector, EPOLL_CTL_ADD);
	collector->cpu_events = error ? -1 : cpu_events_open();
	if (collector->cpu_events >= 0)
		error = watch(collector, collector->cpu_events);
	return error;
}

int collector_open_counters(struct collector *collector)
{
	return collector->counter_sampler ? 0 : counter_sampler_create(collector, &collector->counter_sampler);
}

int collector_open(struct collector *collector)
{
	int error = collector_open_counters(collector);

	if (!error && collector->needs.codes) {
		collector->launch_symbols = launch_symbols_create(collector->registry);
		error = collector->launch_symbols ? 0 : -ENOMEM;
	}
	if (!error)
		error = open_kernel(collector);
	if (error)
		return error;
	error = open_events(collector);
	if (error)
		log_error(&collector->log, "cannot wait for records: %s", strerror(-error));
	return error;
}

/* The user's names come first in the stream, so that they hold from the first call on. */
static int pass_names(struct collector *collector)
{
	for (size_t i = 0; i < collector->options.name_count; i++) {
		const struct xpt_handle_name *name = &collector->names[i];
		bool handle = !name->fingerprint;

		collector_pass_text(collector, record_text(handle ? XPT_RECORD_NAMED : XPT_RECORD_FINGERPRINT,
							   handle ? name->pid : 0, clock_monotonic(),
							   handle ? name->handle : name->fingerprint, name->name));
	}
	return collector->error;
}

/* Before the targets: what they queue from their first call on is seen. */
static int start_driver_tracer(struct collector *collector)
{
	int error = collector->driver_tracer ? driver_tracer_start(collector->driver_tracer) : 0;

	if (!error && collector->driver_tracer && driver_tracer_descriptor(collector->driver_tracer) >= 0)
		error = watch(collector, driver_tracer_descriptor(collector->driver_tracer));
	return error;
}

/* Waiting threads spin: this thread would share the processors with all of them. */
static void raise_priority(struct collector *collector)
{
	collector->raised = gettid();
	errno = 0;
	collector->priority = getpriority(PRIO_PROCESS, collector->raised);
	if (errno || setpriority(PRIO_PROCESS, collector->raised, PRIORITY))
		log_debug(&collector->log, "the priority of the collecting thread stays: %s", strerror(errno));
}

static void lower_priority(struct collector *collector)
{
	if (collector->raised == gettid())
		setpriority(PRIO_PROCESS, collector->raised, collector->priority);
	collector->raised = 0;
}

int collector_start(struct collector *collector)
{
	int error = pass_names(collector);

	collector->started = collector->losses_due = clock_monotonic();
	collector->ticks = clock_read(CLOCK_BOOTTIME) / (1000000000 / (__u64)sysconf(_SC_CLK_TCK));
	if (!error && collector->counter_sampler)
		error = counter_sampler_start(collector->counter_sampler);
	if (!error)
		error = start_driver_tracer(collector);
	if (!error)
		error = targets_start(collector);
	if (error == -EINTR)
		log_error(&collector->log, "interrupted while probes were placed: nothing has been recorded");
	if (!error)
		records_costs(collector);
	if (!error)
		error = kern_set_capture(collector->kern, XPT_CAPTURE_ON);
	if (error)
		return error;
	collector->ready = true;
	collector->searched_before = attacher_searched(collector->attacher);
	collector->started = clock_monotonic();
	budget_start(collector->budget);
	targets_report(collector);
	error = collector->options.command ? command_release(&collector->command) : 0;
	if (error)
		log_error(&collector->log, "cannot run %s: %s", collector->options.command[0], strerror(-error));
	return error;
}

/*
 * Whether the rings may be polled less often. What is new is to be looked at soon: names are read from the memory of processes, which
 * may end. Operators and stacks have more of that than programs.
 */
static bool may_wait(const struct collector *collector, __u64 now)
{
	const struct collector_needs *needs = &collector->needs;

	return collector->unhurried && now - collector->news >= COLLECTOR_IDLE && !needs->codes && !needs->stacks &&
	       !needs->samples && !(needs->roles >> XPT_ROLE_OPERATOR & 1);
}

/* When there may be something to do, at the latest. */
static __u64 next_poll(struct collector *collector, __u64 now)
{
	bool patient = may_wait(collector, now), was_patient = collector->patient;
	bool idle = !patient && now - collector->active >= COLLECTOR_IDLE, was_idle = collector->idle;
	__u64 due = counter_sampler_due(collector->counter_sampler), poll;

	if (idle != was_idle && !kern_set_idle(collector->kern, idle))
		collector->idle = idle;
	if (patient != was_patient)
		kern_set_patient(collector->kern, patient);
	collector->patient = patient;
	/* What came before the rings wake is fetched as soon as before. */
	if (was_patient && patient)
		poll = collector->drained + COLLECTOR_POLL_IDLE;
	else
		poll = now + (was_idle && collector->idle ? COLLECTOR_POLL_IDLE : COLLECTOR_POLL);
	collector->drain_due = due < poll ? due : poll;
	if (collector->mappings_due && collector->mappings_due < collector->drain_due)
		return collector->mappings_due;
	return collector->drain_due;
}

static void on_cpu_online(void *context, int cpu)
{
	struct collector *collector = context;
	int error = counter_sampler_renew(collector->counter_sampler, collector->kern, cpu);

	if (error)
		log_warn(&collector->log, "CPU %d has come online: it is not sampled: %s", cpu, strerror(-error));
	if (collector->mappings) {
		error = mappings_renew(collector->mappings, cpu);
		if (error)
			log_warn(&collector->log,
				 "CPU %d has come online: libraries that are loaded there are not seen: %s", cpu,
				 strerror(-error));
		collector->scan_all = true; /* what was mapped there before */
	}
}

int collector_wait(struct collector *collector, __u64 until)
{
	__u64 now = clock_monotonic(), due = next_poll(collector, now), count;
	__u64 next = until < due ? until : due;
	struct timespec timeout = { 0, next > now ? next - now : 0 };
	struct epoll_event events[8];
	bool woken = false;
	int ready;

	/* Not before: a command must not inherit it. */
	if (collector->raised != gettid())
		raise_priority(collector);
	ready = epoll_pwait2(collector->epoll, events, 8, &timeout, NULL);
	if (ready < 0 && errno != EINTR)
		return -errno;
	kern_note_cpu(collector->kern);
	now = clock_monotonic();
	for (int i = 0; i < ready; i++) {
		int descriptor = events[i].data.fd;
		bool is_mappings = collector->mappings && descriptor == mappings_descriptor(collector->mappings);

		woken |= !is_mappings;
		if (is_mappings) {
			targets_read_mappings(collector);
			collector->mappings_due = now + COLLECTOR_POLL;
		}
		if (descriptor == collector->cpu_events)
			cpu_events_read(collector->cpu_events, on_cpu_online, collector);
		if (descriptor == kern_control_descriptor(collector->kern))
			collector->news = now;
		/* Fails only when another one has emptied it. */
		if (descriptor == collector->wake && read(collector->wake, &count, sizeof(count)) < 0)
			continue;
	}
	collector->mappings_only = collector->patient && !woken && now < collector->drain_due && now < until;
	return 0;
}

int collector_set_sampling(struct collector *collector, const struct model_program *program, __u32 sample_every,
			   __u64 seen)
{
	const struct xpt_program_key key = {
		.tgid = program->process->tgid,
		.runtime = program->runtime_index,
		.handle = program->handle,
	};

	return kern_set_sampling(collector->kern, &key, sample_every, seen);
}

void collector_wake(struct collector *collector)
{
	__u64 one = 1;
	int saved = errno;

	if (write(collector->wake, &one, sizeof(one)) < 0)
		errno = saved; /* already full: it will wake */
	errno = saved;
}

int collector_work(struct collector *collector)
{
	__u64 now;

	if (!collector->mappings_only) {
		counter_sampler_look(collector->counter_sampler);
		records_drain(collector);
	}
	if (collector->mappings_due && clock_monotonic() >= collector->mappings_due) {
		collector->mappings_due = 0;
		watch_mappings(collector, EPOLL_CTL_MOD);
		/* What came since: the kernel reports new data only once, and has just done so. */
		targets_read_mappings(collector);
	}
	targets_scan_pending(collector);
	if (collector->mappings_only)
		return collector->error;
	if (collector->driver_tracer && !collector->error)
		collector->error = driver_tracer_look(collector->driver_tracer);
	budget_look(collector->budget);
	now = clock_monotonic();
	if (now >= collector->losses_due) {
		records_losses(collector);
		targets_check(collector);
		attacher_sweep(collector->attacher);
		collector->losses_due = now + (collector->patient ? LOSSES_INTERVAL_PATIENT : LOSSES_INTERVAL);
	}
	return collector->error;
}

/* Functions that were asked for by name and are in nothing that was traced. */
static void report_not_found(struct collector *collector)
{
	const struct registry *registry = collector->registry;

	for (size_t i = 0; i < registry->spec_count; i++) {
		const struct call_spec *spec = registry->specs[i];

		if (spec->wire.role == XPT_ROLE_REGION && spec->file && !attacher_class(collector->attacher, i))
			log_warn(&collector->log, "no function for the region '%s:%s' was found in what was traced",
				 spec->file, spec->function);
	}
}

/* Calls that are open get a moment to end; then nothing is placed any more, and what is left is fetched. */
void collector_finish(struct collector *collector)
{
	/* No call that begins later is counted. */
	kern_set_capture(collector->kern, XPT_CAPTURE_ENDING);
	collector->ended = clock_monotonic();
	lower_priority(collector);
	counter_sampler_stop(collector->counter_sampler);
	usleep(GRACE_US);
	records_drain(collector);
	targets_finish(collector);
	budget_stop(collector->budget);
	/* No call is recorded that removing probes makes slower. */
	kern_set_capture(collector->kern, XPT_CAPTURE_OFF);
	report_not_found(collector);
	attacher_detach(collector->attacher);
	if (collector->driver_tracer)
		driver_tracer_detach(collector->driver_tracer);
	records_drain(collector);
	records_drain(collector); /* a second PASS releases what the first one brought */
	stack_tracer_finish(collector->stack_tracer);
	records_totals(collector, 0);
	records_losses(collector);
}

static void warn_unused(void *context, __u64 handle, bool fingerprint, const char *name)
{
	const struct collector *collector = context;

	if (fingerprint)
		log_warn(&collector->log, "--name %08llx=%s: no program fits", handle, name);
	else
		log_warn(&collector->log, "--name 0x%llx=%s: no program fits", handle, name);
}

void collector_check_names(struct collector *collector, const struct model *model)
{
	model_unused_names(model, warn_unused, collector);
}

void collector_explain(const struct collector *collector)
{
	attacher_explain(collector->attacher, collector->searched_before, collector->spec_calls);
}

int collector_command_status(struct collector *collector)
{
	return command_reap(&collector->command) ? collector->command.status : -1;
}

void collector_free(struct collector *collector)
{
	if (!collector)
		return;
	if (collector->kern)
		kern_set_capture(collector->kern, XPT_CAPTURE_OFF);
	launch_symbols_free(collector->launch_symbols);
	attacher_free(collector->attacher);
	targets_free(collector);
	mappings_close(collector->mappings);
	driver_tracer_free(collector->driver_tracer);
	counter_sampler_free(collector->counter_sampler);
	budget_free(collector->budget);
	stack_tracer_free(collector->stack_tracer);
	kern_close(collector->kern);
	registry_free(collector->registry);
	command_close(&collector->command);
	if (collector->epoll >= 0)
		close(collector->epoll);
	if (collector->wake >= 0)
		close(collector->wake);
	if (collector->cpu_events >= 0)
		close(collector->cpu_events);
	for (size_t i = 0; collector->names && i < collector->options.name_count; i++)
		free((char *)collector->names[i].name);
	for (size_t i = 0; collector->process_names && i < collector->options.process_name_count; i++)
		free(collector->process_names[i]);
	free(collector->process_names);
	free(collector->process_names_met);
	free(collector->names);
	free(collector->pids);
	free(collector->pending);
	free(collector->code_tickets);
	text_free(&collector->requests);
	text_free(&collector->spare_requests);
	objects_free(&collector->objects);
	free(collector->spec_calls);
	free(collector->spec_apart);
	free(collector->spec_costs);
	free(collector);
}
