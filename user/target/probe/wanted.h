/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbols that a registry asks for, and which of them a file defines. */
#ifndef XPT_TARGET_PROBE_WANTED_H
#define XPT_TARGET_PROBE_WANTED_H

#include "describe/runtime/registry.h"
#include "target/elf/file.h"

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

#endif
