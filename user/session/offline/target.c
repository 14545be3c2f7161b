/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_target_*(), xpt_driver_list(), xpt_check() and xpt_stream_check_match(): looking without touching. */
#include <xputrace/check.h>
#include <xputrace/driver.h>
#include <xputrace/stream.h>
#include <xputrace/target.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/options.h"
#include "base/file/output.h"
#include "describe/driver/driver.h"
#include "describe/runtime/registry.h"
#include "kern/features.h"
#include "profile/handle/choice.h"
#include "session/collect/collector.h"
#include "session/reader/elf_cache.h"
#include "target/tracepoint/driver_events.h"

struct walk {
	struct xpt_target_options options;
	struct log log;
	struct registry *registry;
	bool operators; /* they are asked for */
	/* Called for each file that holds something. found: with what is in memory only. */
	int (*file)(struct walk *walk, const struct mapped_file *mapped, const struct found_functions *found,
		    const struct file_operators *operators);
	int (*runtime_visit)(void *context, const struct xpt_runtime_info *runtime);
	int (*site_visit)(void *context, const struct xpt_site_info *site);
	int (*operator_visit)(void *context, const struct xpt_operator_info *operator_info);
	void *context;
};

static int visit_file(struct walk *walk, const struct mapped_file *mapped, const struct found_functions *found,
		      const struct file_operators *operators)
{
	if (found->missing)
		log_debug(&walk->log, "%s: %s", mapped->path, found->missing);
	return found->runtimes ? walk->file(walk, mapped, found, operators) : 0;
}

/* The functions of tables that are filled already: of the file's own, and theirs, in *all. */
static int read_tables(const struct elf_cache *files, const struct pinned_file *pinned, pid_t pid,
		       struct found_functions *all)
{
	const struct found_functions *found = &pinned->file->contents.found;
	__u64 bias;
	int error = found_functions_add(all, found) ?: elf_entry_bias(pinned->file, &pinned->mapped, &bias);

	for (size_t i = 0; i < found->table_count && !error; i++) {
		struct found_functions more = { 0 };
		struct table_words words;
		int unknown = found->tables[i].table_address ?
				      file_reader_words(files->readers, &found->tables[i], pid, 0, bias, &words) :
				      -ENOENT;

		if (unknown)
			continue;
		if (!file_reader_table(files->readers, &pinned->mapped, found->tables[i].runtime, &words, &more))
			error = found_functions_add(all, &more);
		table_words_free(&words);
		found_functions_free(&more);
	}
	return error;
}

/* What processes without rights have found in it. */
static int walk_mapped(struct walk *walk, struct elf_cache *files, const struct mapped_file *mapped, pid_t pid)
{
	struct found_functions all = { 0 };
	struct pinned_file pinned;
	int error = elf_cache_open(files, mapped, &pinned);

	if (error)
		return error;
	if (pinned.file->contents.found.table_count) {
		error = read_tables(files, &pinned, pid, &all);
		all.missing = pinned.file->contents.found.missing;
		if (!error)
			error = visit_file(walk, mapped, &all, &pinned.file->contents.operators);
		all.missing = NULL; /* the file's */
		found_functions_free(&all);
	} else {
		error = visit_file(walk, mapped, &pinned.file->contents.found, &pinned.file->contents.operators);
	}
	pinned_close(&pinned);
	return error;
}

static int walk_files(struct walk *walk, const struct mapped_files *mapped, pid_t pid)
{
	const struct file_search search = { .registry = walk->registry, .operators = walk->operators };
	struct elf_cache files = { .log = &walk->log };
	int error = file_readers_start(&walk->log, &search, &files.readers);

	if (error) {
		log_error(&walk->log, "cannot start a process: %s", strerror(-error));
		return error;
	}
	for (size_t i = 0; i < mapped->count && !error; i++) {
		error = walk_mapped(walk, &files, &mapped->files[i], pid);
		if (error < 0) {
			log_write(&walk->log, error_is_shortage(error) ? XPT_LOG_WARN : XPT_LOG_DEBUG, "%s: %s",
				  mapped->files[i].path, strerror(-error));
			error = 0; /* it has gone, or may not be read */
		}
	}
	file_readers_stop(files.readers);
	elf_cache_free(&files);
	return error;
}

static int walk_process(struct walk *walk)
{
	struct process_info info;
	struct mapped_files mapped;
	int error = process_info_read(walk->options.pid, &info);

	if (error) {
		targets_explain(&walk->log, walk->options.pid, error);
		return error;
	}
	if (info.is_32bit) {
		log_error(&walk->log, "process %d (%s) is a 32-bit program: only 64-bit ones can be traced", info.tgid,
			  info.name);
		error = -ENOTSUP;
	}
	if (!error) {
		error = process_mapped_files(info.tgid, &mapped);
		if (error)
			targets_explain(&walk->log, info.tgid, error);
	}
	if (!error) {
		error = walk_files(walk, &mapped, info.tgid);
		mapped_files_free(&mapped);
	}
	process_info_free(&info);
	return error;
}

/* A file on its own is analysed as if it were mapped as a whole. */
static int walk_path(struct walk *walk)
{
	struct mapped_file mapped = { .path = (char *)walk->options.file };
	const struct file_search search = { .registry = walk->registry, .operators = walk->operators };
	int file = open_named(walk->options.file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error;
	struct file_contents contents;
	struct stat status = { 0 };
	struct elf_file *elf;

	if (file < 0 || fstat(file, &status) || !S_ISREG(status.st_mode)) {
		error = S_ISDIR(status.st_mode) ? -EISDIR : status.st_mode ? -ENOEXEC : file < 0 ? file : -errno;
		log_error(&walk->log, "%s: %s", walk->options.file, strerror(-error));
		if (file >= 0)
			close(file);
		return error;
	}
	mapped.descriptor = file;
	mapped.device = status.st_dev;
	mapped.inode = status.st_ino;
	error = mapped_file_elf(NULL, &mapped, &elf);
	if (!error) {
		elf_file_close(elf);
		file_contents_search(&walk->log, &search, &mapped, &contents);
		error = visit_file(walk, &mapped, &contents.found, &contents.operators);
		file_contents_free(&contents);
	}
	close(file);
	if (error < 0)
		log_error(&walk->log, "%s: %s", walk->options.file,
			  error == -ENOEXEC ?
				  "not an ELF file, or malformed" :
			  error == -ENOTSUP ?
				  "a 32-bit file, or of another machine: only x86-64 and AArch64 are known" :
				  strerror(-error));
	return error;
}

static int walk_all(struct walk *walk, const struct xpt_target_options *given)
{
	const struct xpt_target_options *options = &walk->options;
	int error = options_copy(&walk->options, sizeof(walk->options), given);

	if (error)
		return error;
	walk->log = (struct log){ options->log, options->log_context, options->log_level };
	error = registry_create(&walk->log,
				&(struct registry_options){
					.files = options->runtime_files,
					.file_count = options->runtime_file_count,
					.only = options->runtimes,
					.only_count = options->runtime_count,
				},
				&walk->registry);
	if (error)
		return error;
	if (options->file)
		error = walk_path(walk);
	else if (options->pid)
		error = walk_process(walk);
	return error;
}

/* How many functions of the runtime were found. */
static size_t count_found(const struct walk *walk, const struct found_functions *found,
			  const struct description *runtime)
{
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++)
		count += walk->registry->spec_runtime[found->functions[i].spec] == runtime;
	return count;
}

static int visit_runtimes(struct walk *walk, const struct mapped_file *mapped, const struct found_functions *found,
			  const struct file_operators *operators)
{
	int result = 0;

	(void)operators;
	for (size_t r = 0; r < walk->registry->runtime_count && !result; r++) {
		const struct description *runtime = walk->registry->runtimes[r];
		struct xpt_runtime_info info = {
			.size = sizeof(info),
			.name = runtime->name,
			.title = runtime->title,
			.functions = runtime->call_count,
			.file = mapped->path,
			.found = count_found(walk, found, runtime),
			.libraries = (const char *const *)runtime->libraries,
			.library_count = runtime->library_count,
		};
		if (found_runtime(found, runtime))
			result = walk->runtime_visit(walk->context, &info);
	}
	return result;
}

int xpt_target_runtimes(const struct xpt_target_options *options,
			int (*visit)(void *context, const struct xpt_runtime_info *runtime), void *context)
{
	struct walk walk = { .file = visit_runtimes, .runtime_visit = visit, .context = context };
	int result = walk_all(&walk, options);

	for (size_t i = 0; !result && !walk.options.pid && !walk.options.file && i < walk.registry->runtime_count;
	     i++) {
		const struct description *runtime = walk.registry->runtimes[i];
		struct xpt_runtime_info info = {
			.size = sizeof(info),
			.name = runtime->name,
			.title = runtime->title,
			.functions = runtime->call_count,
			.libraries = (const char *const *)runtime->libraries,
			.library_count = runtime->library_count,
		};

		result = visit(context, &info);
	}
	registry_free(walk.registry);
	return result;
}

static int visit_sites(struct walk *walk, const struct mapped_file *mapped, const struct found_functions *found,
		       const struct file_operators *operators)
{
	int result = 0;

	(void)operators;
	for (size_t i = 0; i < found->count && !result; i++) {
		const struct found_function *function = &found->functions[i];
		const struct call_spec *spec = walk->registry->specs[function->spec];
		struct xpt_site_info info = {
			.size = sizeof(info),
			.file = mapped->path,
			.runtime = walk->registry->spec_runtime[function->spec]->name,
			.function = spec->function,
			.symbol = function->symbol,
			.role = role_name(spec->wire.role),
			.function_offset = function->site.function,
			.offset = function->site.offset,
			.site_class = site_class_name(function->site.class),
			.cost = site_class_cost(function->site.class),
			.found_by = found_by_name(function->by),
			.shared = function->shared,
			.code = call_spec_has_code(spec) ? code_source_name(spec->code.source) : NULL,
		};

		result = walk->site_visit(walk->context, &info);
	}
	return result;
}

int xpt_target_sites(const struct xpt_target_options *options,
		     int (*visit)(void *context, const struct xpt_site_info *site), void *context)
{
	struct walk walk = { .file = visit_sites, .site_visit = visit, .context = context };
	int result = walk_all(&walk, options);

	registry_free(walk.registry);
	return result;
}

static int visit_function(struct walk *walk, const struct mapped_file *mapped, const struct description *runtime,
			  const struct operators *operators, const struct operator_function *function)
{
	const struct class_method *methods = &operators->classes.methods[function->first];
	int result = 0;

	for (size_t i = 0; i < function->count && !result; i++) {
		const struct xpt_operator_info info = {
			.size = sizeof(info),
			.file = mapped->path,
			.runtime = runtime->name,
			.name = methods[i].class_name,
			.method = operators_method(&runtime->operators, methods[i].slot)->function,
			.function_offset = function->site.function,
			.offset = function->site.offset,
			.site_class = site_class_name(function->site.class),
			.cost = site_class_cost(function->site.class),
			.shared = function->count,
		};

		result = walk->operator_visit(walk->context, &info);
	}
	return result;
}

static void report_operators(const struct walk *walk, const struct mapped_file *mapped,
			     const struct operators_spec *spec, const struct operators *operators)
{
	const struct classes *classes = &operators->classes;

	if (spec->base)
		log_info(&walk->log,
			 "%s: %zu classes derived from %s, %zu methods in %zu functions; as the base has it: %zu; "
			 "not there: %zu; no probe possible: %zu; classes left out: %zu",
			 mapped->path, classes->class_count, spec->base, classes->method_count,
			 operators->function_count, classes->inherited, classes->abstract, operators->unplaced,
			 classes->left_out);
	else
		log_info(&walk->log, "%s: %zu functions; no probe possible: %zu; left out: %zu", mapped->path,
			 classes->method_count, operators->unplaced, classes->left_out);
}

static int visit_runtime_operators(struct walk *walk, const struct mapped_file *mapped,
				   const struct runtime_operators *runtime)
{
	int result = 0;

	report_operators(walk, mapped, &runtime->runtime->operators, &runtime->operators);
	for (size_t i = 0; i < runtime->operators.function_count && !result; i++)
		result = visit_function(walk, mapped, runtime->runtime, &runtime->operators,
					&runtime->operators.functions[i]);
	return result;
}

static int visit_operators(struct walk *walk, const struct mapped_file *mapped, const struct found_functions *found,
			   const struct file_operators *operators)
{
	int result = 0;

	(void)found;
	for (size_t i = 0; i < operators->count && !result; i++)
		result = visit_runtime_operators(walk, mapped, &operators->runtimes[i]);
	return result;
}

int xpt_target_operators(const struct xpt_target_options *options,
			 int (*visit)(void *context, const struct xpt_operator_info *operator_info), void *context)
{
	struct walk walk = { .operators = true, .file = visit_operators, .operator_visit = visit, .context = context };
	int result = walk_all(&walk, options);

	registry_free(walk.registry);
	return result;
}

int xpt_check(void (*visit)(void *context, const struct xpt_feature *feature), void *context)
{
	bool required = true, one_of = false;

	for (size_t i = 0; i < feature_count; i++) {
		char detail[256] = "", advice[256];
		struct xpt_feature feature = {
			.size = sizeof(feature),
			.name = features[i].name,
			.need = (enum xpt_need)features[i].need,
			.gives = features[i].gives,
			.advice = advice,
			.detail = detail,
			.error = features[i].try(detail, sizeof(detail)),
		};

		feature_advice(&features[i], feature.error, advice, sizeof(advice));

		if (feature.need == XPT_NEED_REQUIRED && feature.error)
			required = false;
		if (feature.need == XPT_NEED_ONE_OF && !feature.error)
			one_of = true;
		visit(context, &feature);
	}
	return required && one_of ? 0 : -EOPNOTSUPP;
}

/* ---- drivers ---- */

typedef int (*visit_fn)(void *context, const struct xpt_driver_info *driver);

static const enum xpt_driver_state states[] = {
	[DRIVER_COMPLETE] = XPT_DRIVER_COMPLETE,
	[DRIVER_PARTIAL] = XPT_DRIVER_PARTIAL,
	[DRIVER_ABSENT] = XPT_DRIVER_ABSENT,
	[DRIVER_UNKNOWN] = XPT_DRIVER_UNKNOWN,
};

static int visit_driver(const struct driver_events *found, visit_fn visit, void *context)
{
	struct xpt_driver_event *events = calloc(found->event_count + 1, sizeof(*events));
	const char **devices = calloc(found->nodes.count + 1, sizeof(*devices));
	struct xpt_driver_info info = {
		.size = sizeof(info),
		.name = found->driver->name,
		.title = found->driver->title,
		.state = states[found->state],
		.set = found->set && found->set->name ? found->set->name : "",
		.events = events,
		.event_count = found->event_count,
		.event_size = sizeof(*events),
		.found = found->found,
		.devices = devices,
		.device_count = found->nodes.count,
	};
	int result = -ENOMEM;

	if (!events || !devices)
		goto out;
	for (size_t i = 0; i < found->event_count; i++) {
		const struct tracepoint *tracepoint = &found->events[i];

		events[i] = (struct xpt_driver_event){
			.system = tracepoint->event->system,
			.name = tracepoint->event->name,
			.role = driver_role_name(tracepoint->event->role),
			.optional = tracepoint->event->optional,
			.found = tracepoint->found,
			.reason = tracepoint->reason,
		};
	}
	for (size_t i = 0; i < found->nodes.count; i++)
		devices[i] = found->nodes.items[i].path;
	result = visit(context, &info);
out:
	free(events);
	free(devices);
	return result;
}

static int visit_all(const struct drivers *drivers, const struct tracefs *tracefs, visit_fn visit, void *context)
{
	int result = 0;

	for (size_t i = 0; i < drivers->count && !result; i++) {
		struct driver_events found;

		result = driver_events_find(tracefs, drivers->items[i], &found);
		if (!result)
			result = visit_driver(&found, visit, context);
		driver_events_free(&found);
	}
	return result;
}

/* What makes all drivers unknown, and is no failure. */
static bool is_unreadable(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -EACCES || error == -EPERM;
}

int xpt_driver_list(const struct xpt_driver_options *caller_options, visit_fn visit, void *context)
{
	struct xpt_driver_options options = { 0 };
	struct drivers *drivers = NULL;
	struct tracefs tracefs = { 0 };
	struct log log;
	int result = options_copy(&options, sizeof(options), caller_options), unreadable;

	if (result || !visit)
		return result ? result : -EINVAL;
	log = (struct log){ options.log, options.log_context, options.log_level };
	result = drivers_create(&log, options.driver_files, options.driver_file_count, &drivers);
	if (result)
		return result;
	unreadable = tracefs_open(options.tracefs, &tracefs);
	if (unreadable && !is_unreadable(unreadable)) {
		result = unreadable;
		goto out;
	}
	if (unreadable)
		log_warn(&log, "%s", tracefs_advice(unreadable));
	result = visit_all(drivers, unreadable ? NULL : &tracefs, visit, context);
out:
	tracefs_close(&tracefs);
	drivers_free(drivers);
	return result;
}

/* ---- expressions ---- */

int xpt_stream_check_match(const char *match, size_t *position, char *reason, size_t size)
{
	struct expression *expression;
	struct expression_error why = { .reason = "" };
	int error = expression_create(match, &expression, &why);

	if (!error) {
		expression_free(expression);
		return 0;
	}
	*position = why.position;
	snprintf(reason, size, "%s", error == -EINVAL ? why.reason : "no memory");
	return error;
}
