/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of attaching share. Included by attach*.c and nothing else. */
#ifndef XPT_SESSION_ATTACH_ATTACH_PRIVATE_H
#define XPT_SESSION_ATTACH_ATTACH_PRIVATE_H

#include "session/reader/elf_cache.h"
#include "session/attach/attach.h"
#include "session/attach/attached.h"
#include "session/attach/class_names.h"
#include "session/attach/code_places.h"
#include "session/attach/id_set.h"

#define NAMES_WAITING 64 /* resolve calls with their name but not yet their address */

struct waiting_name {
	__u32 tid;
	__u16 spec;
	char name[XPT_STRING_MAX + 1];
};

#define RESOLVED_MAX 65536	 /* addresses of all processes; further ones get no probes */
#define TABLE_READINGS_MAX 8	 /* of one table in a process: real ones are filled once */
#define TABLES_MAX 64		 /* of a process: real ones have one for each plugin */
#define TABLE_AGAIN 100000000ull /* ns from the first reading of a table to the second; the time doubles with each */

/* A table as it was read last: reading it again takes a process of its own, and the target may trigger that as often as it likes. */
struct table_reading {
	pid_t tgid;
	const struct description *runtime;
	__u64 address;
	__u64 hash; /* of its words; 0: none, or they could not be searched */
	unsigned int count;
	__u64 since, due; /* ns: the first reading, the next one that no call of its accessor asks for */
};

/* A file that is kept open, so that probes in it can be placed again, or for the family. */
struct kept_file {
	const struct elf_entry *file;
	int descriptor;
};

struct attacher {
	struct attacher_options options;
	const struct log *log;
	struct elf_cache files;
	struct class_names classes;
	struct code_places places;
	struct table_reading *readings;
	size_t reading_count;
	struct id_set resolved; /* addresses that were handed out, by the spec of the function */
	struct attached_list attached;
	struct kept_file *kept; /* under a budget, and those of single processes until there is a family */
	size_t kept_count;
	bool has_family; /* it gets what single processes have by their files */
	bool operators_off;
	bool *announced_spec;	       /* by spec: the SPEC record has been emitted */
	bool *announced_runtime;       /* by runtime */
	__u8 *class;		       /* by spec: enum site_class of its dearest probe; 0: it has none */
	size_t ends[SITE_STEPPED + 1]; /* probes behind calls, by enum site_class */
	struct waiting_name waiting[NAMES_WAITING];
	size_t next_waiting;
	struct attacher_figures figures;
	struct attacher_scanned scanned;
};

/*
 * Owner, in place of a PID, of probes that follow from the bytes of a file alone. What was read from a process's memory
 * (tables, addresses, callers) may be made up: such probes belong to that PID only.
 */
static inline pid_t probe_owner(const struct attacher *attacher, pid_t tgid)
{
	if (attacher->options.all_processes)
		return 0;
	return kern_family_has(attacher->options.kern, tgid) ? KERN_FAMILY : tgid;
}

/* The collector's own specs, behind those of the registry: the dynamic loader's announcement, each runtime's table, what is behind calls. */
static inline __u16 loader_spec(const struct attacher *attacher)
{
	return attacher->options.registry->spec_count;
}

static inline __u16 table_spec(const struct attacher *attacher, const struct description *runtime)
{
	return attacher->options.registry->spec_count + 1 + runtime->index;
}

static inline __u16 operator_end_spec(const struct attacher *attacher)
{
	return attacher_spec_count(attacher->options.registry) - 1;
}

/* A probe of the spec was placed there. */
void count_site(struct attacher *attacher, unsigned int spec, const struct site *site);

/* Of want of memory and the like: others mean that there is nothing to probe. */
void attacher_report_error(const struct attacher *attacher, pid_t tgid, int error);
/* The SPEC record of a function, and the RUNTIME record before it, unless they have been emitted. */
int announce_spec(struct attacher *attacher, unsigned int index);
/* Takes over sites, and places their probes. Number of probes placed, or a negative errno. */
int attach_sites(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped, const struct elf_entry *file,
		 struct kern_site *sites, size_t count, bool complete);
/* Probes for those of found that have none yet; with_own: and what else the file has. Returns as attach_sites(). */
int attach_functions(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped,
		     const struct elf_entry *file, const struct found_functions *found, bool with_own);
/* For the functions of a table that is filled at run time, read in the process. returned: by its accessor. As attach_sites(). */
int attach_table(struct attacher *attacher, pid_t tgid, const struct mapped_file *mapped, const struct elf_entry *file,
		 const struct pending_table *table, __u64 returned);
/* The descriptor of a file that is kept open, or -ENOENT. */
int kept_descriptor(const struct attacher *attacher, const struct elf_entry *file);
/* What the file has by its bytes alone, for the family. As attach_sites(). */
int place_for_family(struct attacher *attacher, const struct mapped_file *mapped, const struct elf_entry *file);
/* Whether the process has a probe there, shared or its own. */
bool attacher_has(const struct attacher *attacher, pid_t tgid, const struct elf_entry *file, __u64 offset);

#endif
