/* SPDX-License-Identifier: BSD-2-Clause */
/* The static probes that a registry asks for, and which of them a file has. */
#ifndef XPT_TARGET_PROBE_STATIC_PROBES_H
#define XPT_TARGET_PROBE_STATIC_PROBES_H

#include "describe/runtime/registry.h"
#include "target/elf/file.h"
#include "target/probe/site.h"

/* One place of one described probe. */
struct static_probe {
	const struct description *runtime;
	const struct call_spec *spec;
	struct site site;
	const char *refused; /* why no probe can be put there; NULL: one can */
};

/* Zero it to begin with. */
struct static_probes {
	struct static_probe *list; /* in the order of the file */
	size_t count;
};

/* Walks the notes of the file once. Damaged ones are left out. -ENOMEM. */
int static_probes_find(const struct registry *registry, struct elf_file *file, struct static_probes *result);
void static_probes_free(struct static_probes *probes);

/*
 * Whether the arguments of a probe, from its note, are all where a function called with them would find them:
 * argument 0 in the first register, and so on. wanted: bit i: argument i has to be there; others may be anywhere.
 */
bool static_probe_is_call(enum elf_machine machine, const char *arguments, __u32 wanted);

#endif
