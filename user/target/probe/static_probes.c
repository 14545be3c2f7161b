/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/static_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define PLACES_MAX 4096 /* of described probes, in one file */

struct search {
	const struct registry *registry;
	struct elf_file *file;
	struct static_probes *found;
};

/* "8@%rdi": where gcc and clang leave 64-bit arguments, or 32-bit ones. */
static bool is_register(enum elf_machine machine, unsigned int argument, const char *operand, size_t length)
{
	static const char *const x86[][2] = { { "8@%rdi", "4@%edi" }, { "8@%rsi", "4@%esi" }, { "8@%rdx", "4@%edx" },
					      { "8@%rcx", "4@%ecx" }, { "8@%r8", "4@%r8d" },  { "8@%r9", "4@%r9d" } };
	static const char *const arm64[][2] = { { "8@x0", "4@w0" }, { "8@x1", "4@w1" }, { "8@x2", "4@w2" },
						{ "8@x3", "4@w3" }, { "8@x4", "4@w4" }, { "8@x5", "4@w5" },
						{ "8@x6", "4@w6" }, { "8@x7", "4@w7" } };
	const size_t count = machine == ELF_MACHINE_X86_64 ? sizeof(x86) / sizeof(x86[0]) :
							     sizeof(arm64) / sizeof(arm64[0]);
	const char *const(*registers)[2] = machine == ELF_MACHINE_X86_64 ? x86 : arm64;

	if (length && *operand == '-') { /* signed */
		operand++;
		length--;
	}
	for (size_t i = 0; i < 2 && argument < count; i++)
		if (strlen(registers[argument][i]) == length && !memcmp(registers[argument][i], operand, length))
			return true;
	return false;
}

bool static_probe_is_call(enum elf_machine machine, const char *arguments, __u32 wanted)
{
	for (unsigned int i = 0; wanted; i++, wanted >>= 1) {
		size_t length;

		arguments += strspn(arguments, " ");
		length = strcspn(arguments, " ");
		if (wanted & 1 && !is_register(machine, i, arguments, length))
			return false;
		arguments += length;
	}
	return true;
}

static bool names(const struct call_spec *spec, const struct elf_probe *probe)
{
	const size_t provider = strlen(probe->provider);

	return spec->locate == LOCATE_PROBE && !strncmp(spec->probe, probe->provider, provider) &&
	       spec->probe[provider] == ':' && !strcmp(spec->probe + provider + 1, probe->name);
}

static int add(struct search *search, const struct description *runtime, const struct call_spec *spec,
	       const struct elf_probe *probe)
{
	struct static_probes *found = search->found;
	struct static_probe added = { .runtime = runtime, .spec = spec };
	int error;

	if (found->count == PLACES_MAX)
		return 0;
	error = site_of_marker(search->file, probe->address, &added.site);
	if (error == -ENOMEM)
		return error;
	if (error)
		added.refused = "its place holds no instruction that does nothing and takes a cheap probe";
	else if (!static_probe_is_call(elf_file_machine(search->file), probe->arguments, site_arguments(spec)))
		added.refused = "its arguments are not where those of a call are";
	else if (probe->semaphore && elf_file_data_offset(search->file, probe->semaphore, &added.site.semaphore))
		added.refused = "its semaphore is not in the data of the file";
	return vec_push(found->list, found->count, added);
}

static int visit(void *context, const struct elf_probe *probe)
{
	struct search *search = context;
	int error = 0;

	for (size_t r = 0; r < search->registry->runtime_count && !error; r++) {
		const struct description *runtime = search->registry->runtimes[r];

		for (size_t i = 0; i < runtime->call_count && !error; i++)
			if (names(&runtime->calls[i], probe))
				error = add(search, runtime, &runtime->calls[i], probe);
	}
	return error;
}

static bool wants_any(const struct registry *registry)
{
	for (size_t i = 0; i < registry->spec_count; i++)
		if (registry->specs[i]->locate == LOCATE_PROBE)
			return true;
	return false;
}

int static_probes_find(const struct registry *registry, struct elf_file *file, struct static_probes *result)
{
	struct search search = { registry, file, result };
	int error = wants_any(registry) ? elf_file_each_probe(file, visit, &search) : 0;

	if (error)
		static_probes_free(result);
	return error;
}

void static_probes_free(struct static_probes *probes)
{
	free(probes->list);
	memset(probes, 0, sizeof(*probes));
}
