/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes at sites that were found: placed, also for the family and for forked children; under a budget suspended and placed again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/vec.h"
#include "session/attach/attach_private.h"

#define PLACE_TRIES 3 /* in a file whose status changes */

/* Those of the sites at which code objects are given. Without them, objects that are loaded are not seen: not an error of the others. */
static struct attachment *attach_codes(struct attacher *attacher, pid_t tgid, const char *path,
				       const struct kern_site *sites, size_t count)
{
	const struct registry *registry = attacher->options.registry;
	struct kern_site *chosen = attacher->options.codes ? calloc(count ?: 1, sizeof(*chosen)) : NULL;
	struct attachment *attachment = NULL;
	size_t number = 0, refused;
	int error = 0;

	if (attacher->options.codes && !chosen)
		error = -ENOMEM;
	for (size_t i = 0; i < count && chosen; i++) {
		if (sites[i].spec >= registry->spec_count || !call_spec_has_code(registry->specs[sites[i].spec]))
			continue;
		chosen[number] = sites[i];
		chosen[number].semaphore = 0; /* counted up once, by the call's probe */
		chosen[number++].entry_only = true;
	}
	if (number)
		error = kern_attach_codes(attacher->options.kern, tgid, path, chosen, number, &refused, &attachment);
	if (error && error != -ESRCH)
		log_warn(attacher->log, "code objects of PID %d cannot be captured: %s", tgid, strerror(-error));
	free(chosen);
	return error ? NULL : attachment;
}

int kept_descriptor(const struct attacher *attacher, const struct elf_entry *file)
{
	for (size_t i = 0; i < attacher->kept_count; i++)
		if (attacher->kept[i].file == file)
			return attacher->kept[i].descriptor;
	return -ENOENT;
}

/* It stays open as long as the attacher lives. -ENOMEM, -EMFILE. */
static int keep_file(struct attacher *attacher, const struct mapped_file *mapped, const struct elf_entry *file)
{
	int descriptor, error;

	if (kept_descriptor(attacher, file) >= 0)
		return 0;
	descriptor = open(mapped->open_path, O_PATH | O_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	error = vec_push(attacher->kept, attacher->kept_count, (struct kept_file){ file, descriptor });
	if (error)
		close(descriptor);
	return error;
}

/*
 * Whether the same probes belong in a file whose status has changed: it may have got another name, or none, as when a package is
 * upgraded. It is analysed again.
 */
static bool is_same_file(struct attacher *attacher, const struct elf_entry *file, const char *path)
{
	struct mapped_file mapped = { .path = file->path };
	const struct elf_entry *found;

	snprintf(mapped.open_path, sizeof(mapped.open_path), "%s", path);
	return !elf_cache_find(&attacher->files, &mapped, &found) && found == file;
}

static int place_sites(struct attacher *attacher, struct attached *attached, const char *path, int descriptor,
		       size_t *refused)
{
	struct kern *kern = attacher->options.kern;
	struct attachment *attachment, *codes;
	unsigned int tries = 0;
	int error;

	/* First: a code object without its call lacks only the handle, a call without its code object is useless. */
	codes = attach_codes(attacher, attached->tgid, path, attached->sites, attached->site_count);
	error = kern_attach(kern, attached->tgid, path, attached->sites, attached->site_count, refused, &attachment);
	if (error) {
		kern_detach(kern, &codes, 1);
		if (error != -ESRCH && error != -EINTR)
			log_warn(attacher->log, "cannot place probes in %s: %s", attached->file->path,
				 strerror(-error));
		return error;
	}
	/* What was read may not be what the kernel has found in it. Where it is, the probes stay: removed for a moment, they would miss calls. */
	do
		error = elf_entry_check(attached->file, descriptor);
	while (error == -ESTALE && ++tries < PLACE_TRIES && is_same_file(attacher, attached->file, path));
	if (error) {
		kern_detach(kern, &codes, 1);
		kern_detach(kern, &attachment, 1);
		log_warn(attacher->log, "%s: no probes are placed in it: %s", attached->file->path,
			 error == -ESTALE ? "it was changed meanwhile" : strerror(-error));
		return -ESTALE;
	}
	attached->attachment = attachment;
	attached->codes = codes;
	attached->suspended = false;
	return 0;
}

/* Takes over the sites, which are of one function if there is a budget. */
static int attach_group(struct attacher *attacher, const struct mapped_file *mapped, struct attached *group)
{
	bool suspended = attacher->operators_off && role_is_step(attacher_role(attacher, group));
	size_t refused = 0;
	int error = 0;

	if (attacher->options.budget || (group->tgid > 0 && group->complete && !attacher->has_family))
		error = keep_file(attacher, mapped, group->file);
	if (attacher->options.budget) {
		group->load.counter = attached_counter(&attacher->attached);
		group->load.hits = kern_hits(attacher->options.kern, group->load.counter);
	}
	for (size_t i = 0; i < group->site_count; i++) {
		group->sites[i].hits = group->load.counter;
		if (group->load.class < group->sites[i].class)
			group->load.class = group->sites[i].class;
	}
	group->suspended = suspended;
	if (!error && !suspended)
		error = place_sites(attacher, group, mapped->open_path, mapped->descriptor, &refused);
	if (error) {
		free(group->sites);
		return error;
	}
	error = attached_add(&attacher->attached, group);
	if (error)
		return error;
	attacher->figures.refused += refused;
	return group->site_count - refused;
}

static int compare_specs(const void *left, const void *right)
{
	const struct kern_site *a = left, *b = right;

	return a->spec != b->spec ? a->spec - b->spec : (a->offset > b->offset) - (a->offset < b->offset);
}

/* Takes over the sites; under a budget, those of each function can be suspended alone. */
static int attach_groups(struct attacher *attacher, const struct mapped_file *mapped, struct attached *all)
{
	struct kern_site *sites = all->sites;
	size_t count = all->site_count, next;
	int placed = 0, result = 0;
	struct attached group;

	if (!attacher->options.budget)
		return attach_group(attacher, mapped, all);
	qsort(sites, count, sizeof(*sites), compare_specs);
	for (size_t first = 0; first < count && result >= 0; first = next) {
		for (next = first; next < count && sites[next].spec == sites[first].spec;)
			next++;
		group = *all;
		group.site_count = next - first;
		group.sites = malloc(group.site_count * sizeof(*sites));
		if (!group.sites) {
			result = -ENOMEM;
			break;
		}
		memcpy(group.sites, &sites[first], group.site_count * sizeof(*sites));
		result = attach_group(attacher, mapped, &group);
		placed += result;
	}
	free(sites);
	return result < 0 ? result : placed;
}

int attach_sites(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped, const struct elf_entry *file,
		 struct kern_site *sites, size_t count, bool complete)
{
	struct attached all = { .tgid = tgid, .file = file, .complete = complete, .sites = sites, .site_count = count };
	int error = 0, placed;

	/* What has asked for them may be of a process that has ended, and its number another one's by now. */
	if (tgid > 0 && !attacher->options.all_processes && !kern_follows(attacher->options.kern, tgid))
		error = -ESRCH;
	for (size_t i = 0; i < count && !error; i++)
		error = announce_spec(attacher, sites[i].spec);
	if (error) {
		free(sites);
		return error;
	}
	/* Its children need them, too, and the family does not get them. */
	if (tgid > 0 && (!complete || file->changed))
		kern_family_private(attacher->options.kern, tgid);
	placed = attach_groups(attacher, mapped, &all);
	if (placed != -ESTALE)
		return placed;
	attached_bury_file(&attacher->attached, file);
	return 0;
}

/* ---- for the family, and for children ---- */

int place_for_family(struct attacher *attacher, const struct mapped_file *mapped, const struct elf_entry *file)
{
	if (attached_is_complete(&attacher->attached, KERN_FAMILY, file))
		return 0;
	return attach_functions(attacher, KERN_FAMILY, mapped, file, &file->contents.found, true);
}

/* A process that has all of the file's probes for itself; 0: there is none. */
static pid_t single_with(const struct attacher *attacher, const struct elf_entry *file)
{
	for (size_t i = 0; i < attacher->attached.count; i++) {
		const struct attached *attached = &attacher->attached.all[i];

		if (attached->tgid > 0 && attached->complete && attached->file == file)
			return attached->tgid;
	}
	return 0;
}

int attacher_begin_family(struct attacher *attacher)
{
	int placed = 0, error = 0;

	attacher->has_family = true;
	for (size_t i = 0; i < attacher->files.count; i++) {
		const struct elf_entry *file = attacher->files.files[i];
		struct mapped_file mapped = { .path = file->path, .descriptor = kept_descriptor(attacher, file) };
		pid_t single = single_with(attacher, file);
		int result;

		if (mapped.descriptor < 0 || file->changed || !single)
			continue;
		snprintf(mapped.open_path, sizeof(mapped.open_path), "/proc/self/fd/%d", mapped.descriptor);
		result = place_for_family(attacher, &mapped, file);
		attacher_report_error(attacher, single, result);
		if (result < 0)
			error = result;
		else
			placed += result;
	}
	return error ?: placed;
}

/* Whether the child lacks what the entry of its parent has. */
static bool is_lacking(const struct attacher *attacher, pid_t child, const struct attached *attached)
{
	if (attached->complete && attached_is_complete(&attacher->attached, KERN_FAMILY, attached->file))
		return false;
	for (size_t s = 0; s < attached->site_count; s++)
		if (!attacher_has(attacher, child, attached->file, attached->sites[s].offset))
			return true;
	return false;
}

/* Places what the parent has in the file for itself alone. Number of probes, or a negative errno. */
static int inherit_file(struct attacher *attacher, pid_t parent, pid_t child, const struct pinned_file *pinned)
{
	struct kern_site *sites = NULL;
	size_t count = 0;

	for (size_t i = 0; i < attacher->attached.count; i++) {
		const struct attached *attached = &attacher->attached.all[i];

		for (size_t s = 0;
		     attached->tgid == parent && attached->file == pinned->file && s < attached->site_count; s++) {
			if (attacher_has(attacher, child, pinned->file, attached->sites[s].offset))
				continue;
			if (vec_push(sites, count, attached->sites[s])) {
				free(sites);
				return -ENOMEM;
			}
			attacher->figures.sites[attached->sites[s].class]++;
		}
	}
	return count ? attach_sites(attacher, child, &pinned->mapped, pinned->file, sites, count, false) : 0;
}

/* Whether the parent has something in the file that the child lacks. */
static bool is_inherited(const struct attacher *attacher, pid_t parent, pid_t child, const struct mapped_file *mapped)
{
	for (size_t i = 0; i < attacher->attached.count; i++) {
		const struct attached *attached = &attacher->attached.all[i];

		if (attached->tgid == parent && attached->file->status.st_dev == mapped->device &&
		    attached->file->status.st_ino == mapped->inode && is_lacking(attacher, child, attached))
			return true;
	}
	return false;
}

int attacher_fork(struct attacher *attacher, pid_t parent, pid_t child, bool *lacked)
{
	struct mapped_files mapped;
	int placed = 0, result;

	*lacked = false;
	for (size_t i = 0; i < attacher->attached.count && !*lacked; i++)
		*lacked = attacher->attached.all[i].tgid == parent &&
			  is_lacking(attacher, child, &attacher->attached.all[i]);
	if (!*lacked)
		return 0;
	result = process_mapped_files(child, &mapped);
	if (result)
		return result;
	for (size_t i = 0; i < mapped.count && result >= 0; i++) {
		struct pinned_file pinned;

		if (!is_inherited(attacher, parent, child, &mapped.files[i]) ||
		    elf_cache_pin(&attacher->files, &mapped.files[i], false, &pinned))
			continue;
		result = inherit_file(attacher, parent, child, &pinned);
		if (result > 0)
			placed += result;
		pinned_close(&pinned);
	}
	mapped_files_free(&mapped);
	attacher_report_error(attacher, child, result);
	return placed ?: result;
}

/* ---- under a budget ---- */

struct attached *attacher_loads(struct attacher *attacher, size_t *count)
{
	*count = attacher->attached.count;
	return attacher->attached.all;
}

enum xpt_role attacher_role(const struct attacher *attacher, const struct attached *attached)
{
	const struct registry *registry = attacher->options.registry;
	unsigned int spec = attached->sites->spec;

	if (spec < registry->spec_count)
		return registry->specs[spec]->wire.role;
	if (spec == operator_end_spec(attacher))
		return XPT_ROLE_OPERATOR_END;
	return spec == loader_spec(attacher) ? XPT_ROLE_LOADER : XPT_ROLE_TABLE;
}

const char *attacher_function(const struct attacher *attacher, const struct attached *attached)
{
	const struct registry *registry = attacher->options.registry;

	if (attached->sites->spec < registry->spec_count)
		return registry->specs[attached->sites->spec]->function;
	switch (attacher_role(attacher, attached)) {
	case XPT_ROLE_OPERATOR_END:
		return "returns of operators";
	case XPT_ROLE_LOADER:
		return "dynamic loader";
	default:
		return "API table";
	}
}

void attacher_suspend(struct attacher *attacher, struct attached *attached)
{
	attached_suspend(&attacher->attached, attached);
}

int attacher_resume(struct attacher *attacher, struct attached *attached)
{
	int descriptor = kept_descriptor(attacher, attached->file);
	char path[MAP_FILE_PATH_MAX];
	size_t refused;

	if (descriptor < 0)
		return descriptor;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
	return place_sites(attacher, attached, path, descriptor, &refused);
}

void attacher_switch_operators(struct attacher *attacher, bool on)
{
	attacher->operators_off = !on;
	for (size_t i = 0; i < attacher->attached.count; i++) {
		struct attached *attached = &attacher->attached.all[i];

		if (attached->suspended != on || !role_is_step(attacher_role(attacher, attached)))
			continue;
		if (on)
			attacher_resume(attacher, attached);
		else
			attacher_suspend(attacher, attached);
	}
}

bool attacher_operators_off(const struct attacher *attacher)
{
	return attacher->operators_off;
}
