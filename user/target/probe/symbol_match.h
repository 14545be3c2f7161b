/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbols and static probes that a registry asks for, and which of them a file has. */
#ifndef XPT_TARGET_PROBE_SYMBOL_MATCH_H
#define XPT_TARGET_PROBE_SYMBOL_MATCH_H

#include "describe/runtime/registry.h"
#include "target/elf/file.h"
#include "target/probe/site.h"

/* ---- symbols ---- */

#define WANTED_FILE_MAX 1024 /* functions that a pattern for one file may fit: with more, none gets a probe */

enum wanted_kind { WANTED_IDENTITY, WANTED_ACCESSOR, WANTED_CALL };

/* A described name that the file defines. */
struct wanted_match {
	const struct description *runtime;
	const struct call_spec *spec; /* of WANTED_CALL, else NULL */
	enum wanted_kind kind;
	struct elf_symbol symbol; /* its name is valid until the file is closed */
};

struct wanted_matches {
	struct wanted_match *list; /* in the order of runtimes and their specs; one spec's by address */
	size_t count;
};

/* Walks the symbols of the file once. */
int wanted_find(const struct log *log, const struct registry *registry, struct elf_file *file, const char *path,
		struct wanted_matches *result);
void wanted_matches_free(struct wanted_matches *matches);

/* ---- static probes ---- */

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
