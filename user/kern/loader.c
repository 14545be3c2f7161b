/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and loads the BPF objects in the form that the kernel can take. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/core/log.h"
#include "kern/perf.h"
#include "kern/private.h"

#define HIT_SHARDS_MAX 32
#define STACK_RING_MAX (64u << 20) /* bytes */
#define LOG_LINES 100		   /* of what libbpf says at once, those at the end */
#define WAKEUP_SHARE 8		   /* wake the reader when a ring is filled to one part of this number */

const char *link_kind_name(enum link_kind kind)
{
	static const char *const names[] = { "auto", "session", "multi", "perf" };

	return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

/* libbpf reports why a program was refused only through its process-wide print callback. */
static __thread const struct log *print_log;

static bool verbose(const struct log *log)
{
	return log && log->write && log->level <= XPT_LOG_DEBUG;
}

/* A verifier's log: why it has refused a program stands in its last lines. */
static void log_lines(const struct log *log, char *text)
{
	char *line, *end = text + strlen(text), *tail = end;

	for (unsigned int lines = 0; tail > text; tail--)
		if (tail[-1] == '\n' && lines++ == LOG_LINES)
			break;
	line = strsep(&text, "\n");
	log_debug(log, "%s", line);
	if (text && text < tail) {
		log_debug(log, "(%zu bytes are left out)", (size_t)(tail - text));
		text = tail;
	}
	while (text && *text)
		log_debug(log, "%s", strsep(&text, "\n"));
}

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char *text;

	if (level == LIBBPF_DEBUG || !verbose(print_log) || vasprintf(&text, format, arguments) < 0)
		return 0;
	log_lines(print_log, text);
	free(text);
	return 0;
}

void libbpf_log_to(const struct log *log)
{
	libbpf_set_print(print_libbpf);
	print_log = log;
}

/* Makes every map of an object the one of the same name in the main object, where that has one. */
static int maps_share(struct kern *kern, struct bpf_object *object)
{
	struct bpf_map *map, *shared;
	int error;

	bpf_object__for_each_map(map, object) {
		shared = bpf_object__find_map_by_name(kern->main->obj, bpf_map__name(map));
		if (!shared)
			continue;
		if (!bpf_map__autocreate(shared))
			error = bpf_map__set_autocreate(map, false);
		else
			error = bpf_map__reuse_fd(map, bpf_map__fd(shared));
		if (error)
			return error;
	}
	return 0;
}

/* One for each CPU, within limits; a power of two. */
static unsigned int hit_shards(void)
{
	int cpus = libbpf_num_possible_cpus();
	unsigned int shards = 1;

	while ((int)shards < cpus && shards < HIT_SHARDS_MAX)
		shards *= 2;
	return shards;
}

/* For those of half a second, of a CPU's samples of 4 CPUs; a power of two. */
static __u32 stack_ring_bytes(const struct kern_options *options)
{
	const size_t second = options->stacks * (options->switches ? 2u : 1u) + 4u * options->samples;
	__u32 bytes = 1 << 20;

	while (bytes < STACK_RING_MAX && bytes < second * (sizeof(struct xpt_record_stack_copy) + XPT_STACK_BYTES_MAX))
		bytes *= 2;
	return bytes;
}

static int load_main(struct kern *kern, const struct kern_options *options)
{
	bool pairs = kern->link != LINK_SESSION;
	int error;

	kern->main = xputrace_bpf__open();
	if (!kern->main)
		return -errno;
	bpf_program__set_autoload(kern->main->progs.call_entry, pairs);
	bpf_program__set_autoload(kern->main->progs.call_return, pairs);
	if (kern->link == LINK_MULTI) {
		bpf_program__set_expected_attach_type(kern->main->progs.call_entry, ATTACH_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(kern->main->progs.call_return, ATTACH_UPROBE_MULTI);
	}
	error = bpf_map__set_max_entries(kern->main->maps.specs, options->spec_count + KERN_CALIBRATE_SPECS);
	kern->main->rodata_stacks->stacks_second = options->stacks;
	if (!error && (options->stacks || options->samples))
		error = bpf_map__set_max_entries(kern->main->maps.stack_ring, stack_ring_bytes(options));
	else if (!error)
		error = bpf_map__set_autocreate(kern->main->maps.stack_ring, false) ?:
				bpf_map__set_autocreate(kern->main->maps.pythons, false);
	kern->main->rodata_hits->hit_shards = kern->hit_shards = options->budget ? hit_shards() : 0;
	if (!error && kern->hit_shards)
		error = bpf_map__set_max_entries(kern->main->maps.site_hits, kern->hit_shards * XPT_HITS_MAX);
	return error ?: xputrace_bpf__load(kern->main);
}

static int load_session_object(struct kern *kern, const void *bytes, size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "session");
	struct bpf_program *call, *place;
	int error;

	kern->session = bpf_object__open_mem(bytes, size, &options);
	if (!kern->session)
		return -errno;
	call = bpf_object__find_program_by_name(kern->session, "call_session");
	place = bpf_object__find_program_by_name(kern->session, "call_place");
	bpf_program__set_expected_attach_type(call, ATTACH_UPROBE_SESSION);
	bpf_program__set_expected_attach_type(place, ATTACH_UPROBE_MULTI);
	error = maps_share(kern, kern->session);
	error = error ?: bpf_object__load(kern->session);
	if (error) {
		bpf_object__close(kern->session);
		kern->session = NULL;
		return error;
	}
	kern->session_program = bpf_program__fd(call);
	kern->place_program = bpf_program__fd(place);
	return 0;
}

/* The kernel's helper has changed its prototype. */
static int load_session(struct kern *kern)
{
	size_t size, context_size;
	const void *bytes = session_bpf__elf_bytes(&size), *context = session_context_bpf__elf_bytes(&context_size);
	int error = load_session_object(kern, bytes, size);

	return error && !error_is_shortage(error) ? load_session_object(kern, context, context_size) : error;
}

/* What captures code objects, before the rings are made. */
static int load_codes(struct kern *kern, size_t spec_count)
{
	int error;

	kern->codes = code_bpf__open();
	if (!kern->codes)
		return -errno;
	if (kern->link != LINK_PERF)
		bpf_program__set_expected_attach_type(kern->codes->progs.code_entry, ATTACH_UPROBE_MULTI);
	error = bpf_map__set_max_entries(kern->codes->maps.code_specs, spec_count ?: 1);
	if (!error)
		error = maps_share(kern, kern->codes->obj);
	return error ?: code_bpf__load(kern->codes);
}

static int load_switches(struct kern *kern)
{
	int error;

	kern->switches = switches_bpf__open();
	if (!kern->switches)
		return -errno;
	error = maps_share(kern, kern->switches->obj);
	return error ?: switches_bpf__load(kern->switches);
}

static int load_samples(struct kern *kern)
{
	int error;

	kern->samples = samples_bpf__open();
	if (!kern->samples)
		return -errno;
	error = maps_share(kern, kern->samples->obj);
	return error ?: samples_bpf__load(kern->samples);
}

/* A clock of each CPU: an event of a thread would cost its context switches time. Not an error: the CPU is offline. */
static int attach_sample(struct kern *kern, int cpu)
{
	const struct perf_event_attr attributes = { .size = sizeof(attributes),
						    .type = PERF_TYPE_SOFTWARE,
						    .config = PERF_COUNT_SW_CPU_CLOCK,
						    .sample_freq = kern->sample_frequency,
						    .freq = 1 };
	int event = perf_open(&attributes, -1, cpu, -1), error;

	if (event < 0)
		return event == -ENODEV ? 0 : event;
	kern->sample_links[cpu] = bpf_program__attach_perf_event(kern->samples->progs.stack_sample, event);
	if (kern->sample_links[cpu])
		return 0;
	error = -errno;
	close(event);
	return error;
}

static int attach_samples(struct kern *kern, unsigned int frequency)
{
	int error = 0;

	kern->sample_frequency = frequency;
	kern->sample_cpus = libbpf_num_possible_cpus();
	if (kern->sample_cpus < 0)
		return kern->sample_cpus;
	kern->sample_links = calloc((size_t)kern->sample_cpus, sizeof(*kern->sample_links));
	if (!kern->sample_links)
		return -ENOMEM;
	for (int cpu = 0; cpu < kern->sample_cpus && !error; cpu++)
		error = attach_sample(kern, cpu);
	return error;
}

int kern_renew_cpu(struct kern *kern, int cpu, const int *events)
{
	int error = events ? slots_renew(kern, (unsigned int)cpu, events) : 0;

	if (!kern->sample_links || cpu >= kern->sample_cpus)
		return error;
	bpf_link__destroy(kern->sample_links[cpu]);
	kern->sample_links[cpu] = NULL;
	return error ?: attach_sample(kern, cpu);
}

static void samples_free(struct kern *kern)
{
	for (int cpu = 0; kern->sample_links && cpu < kern->sample_cpus; cpu++)
		bpf_link__destroy(kern->sample_links[cpu]);
	free(kern->sample_links);
	kern->sample_links = NULL;
	samples_bpf__destroy(kern->samples);
	kern->samples = NULL;
}

static int load_drivers(struct kern *kern, bool hold_interrupts, bool read_in_place)
{
	int error;

	kern->drivers = drivers_bpf__open();
	if (!kern->drivers)
		return -errno;
	kern->drivers->rodata->hold_interrupts = hold_interrupts;
	kern->drivers->rodata->read_in_place = read_in_place;
	error = maps_share(kern, kern->drivers->obj);
	if (!error)
		error = drivers_bpf__load(kern->drivers);
	if (!error) {
		kern->drivers->links.client_exit = bpf_program__attach(kern->drivers->progs.client_exit);
		error = kern->drivers->links.client_exit ? 0 : -errno;
	}
	if (error) {
		drivers_bpf__destroy(kern->drivers);
		kern->drivers = NULL;
	}
	return error;
}

int kern_open_drivers(struct kern *kern)
{
	/* What kernels can do, from the newest on. */
	static const struct {
		bool hold_interrupts, read_in_place;
	} variants[] = { { true, true }, { true, false }, { false, false } };
	int error = -EINVAL;

	if (kern->drivers)
		return 0;
	libbpf_log_to(kern->log);
	for (size_t i = 0; error && error != -EPERM && i < sizeof(variants) / sizeof(variants[0]); i++)
		error = load_drivers(kern, variants[i].hold_interrupts, variants[i].read_in_place);
	libbpf_log_to(NULL);
	return error;
}

static void unload(struct kern *kern)
{
	kern_detach(kern, &kern->trial, 1);
	kern_detach(kern, &kern->calibration, 1);
	kern->trial = kern->calibration = NULL;
	rings_free(kern);
	if (kern->slots >= 0)
		close(kern->slots);
	kern->slots = -1;
	shared_unmap(kern);
	drivers_bpf__destroy(kern->drivers);
	code_bpf__destroy(kern->codes);
	bpf_object__close(kern->session);
	switches_bpf__destroy(kern->switches);
	samples_free(kern);
	kern->switches = NULL;
	xputrace_bpf__destroy(kern->main);
	kern->drivers = NULL;
	kern->codes = NULL;
	kern->session = NULL;
	kern->main = NULL;
	kern->session_program = kern->place_program = -1;
}

static int load(struct kern *kern, const struct kern_options *options, enum link_kind link)
{
	int error;

	kern->link = link;
	error = load_main(kern, options);
	if (!error && link == LINK_SESSION)
		error = load_session(kern);
	if (!error && options->codes)
		error = load_codes(kern, options->spec_count);
	if (!error && options->switches)
		error = load_switches(kern);
	if (!error && options->samples)
		error = load_samples(kern);
	if (!error)
		error = shared_map(kern);
	if (!error)
		error = rings_create(kern, options->buffer_bytes);
	if (!error)
		error = slots_create(kern, options);
	if (error)
		goto out;
	kern->wakeup_bytes = options->buffer_bytes / kern->ring_count / WAKEUP_SHARE;
	kern->settings = (struct xpt_config){
		.slots = options->slots,
		.slot_cpus = options->slot_cpus,
		.sample_every = options->sample_every ?: 1,
		.chosen_only = options->chosen_only,
		.number_operators = options->number_operators,
		.wait_probes = options->wait_probes,
		.wait_codes = options->wait_codes,
		.rings = kern->ring_count,
		.wakeup_bytes = kern->wakeup_bytes,
		.self = getpid(),
		.roles = ~0u,
	};
	memcpy(kern->settings.slot_tasks, options->slot_tasks, sizeof(options->slot_tasks));
	error = settings_write(kern, &kern->settings);
	if (!error)
		error = links_try(kern);
	if (!error) {
		kern_calibrate(kern, options->spec_count);
		kern->shared->stack_due = 0; /* its calls are not those whose stacks are wanted */
	}
out:
	if (error)
		unload(kern);
	return error;
}

static int attach_tasks(struct kern *kern)
{
	struct bpf_program *programs[] = { kern->main->progs.process_fork, kern->main->progs.process_exec,
					   kern->main->progs.process_exit };
	struct bpf_link **links[] = { &kern->main->links.process_fork, &kern->main->links.process_exec,
				      &kern->main->links.process_exit };

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		*links[i] = bpf_program__attach(programs[i]);
		if (!*links[i])
			return -errno;
	}
	return 0;
}

int kern_open(const struct log *log, const struct kern_options *options, struct kern **result)
{
	enum link_kind kinds[] = { LINK_SESSION, LINK_MULTI, LINK_PERF };
	struct kern *kern = calloc(1, sizeof(*kern));
	int error = -EOPNOTSUPP;

	if (!kern)
		return -ENOMEM;
	kern->log = log;
	kern->placing = options->placing;
	kern->placing_context = options->placing_context;
	kern->session_program = kern->place_program = kern->slots = -1;
	for (unsigned int i = 0; i < XPT_RINGS_MAX; i++)
		kern->ring[i] = -1;
	libbpf_log_to(log);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (options->link != LINK_AUTO && options->link != kinds[i])
			continue;
		error = load(kern, options, kinds[i]);
		if (!error)
			break;
		log_debug(log, "%s links do not work here: %s", link_kind_name(kinds[i]), strerror(-error));
		if (error == -EPERM || error_is_shortage(error))
			break;
		if (error == -EINVAL) /* returned by kernels that do not know the kind; not a mistake of ours */
			error = -EOPNOTSUPP;
	}
	if (!error)
		error = attach_tasks(kern);
	if (!error && kern->switches)
		error = switches_bpf__attach(kern->switches);
	if (!error && kern->samples)
		error = attach_samples(kern, options->samples);
	libbpf_log_to(NULL);
	if (error) {
		kern_close(kern);
		return error;
	}
	*result = kern;
	return 0;
}

void kern_close(struct kern *kern)
{
	if (!kern)
		return;
	unload(kern);
	free(kern);
}

enum link_kind kern_link_kind(const struct kern *kern)
{
	return kern->link;
}
