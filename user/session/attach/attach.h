/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From processes to probes: scans the files that a process has mapped, finds the functions of described runtimes, and
 * links probes to them. A file is analysed once, however many processes map it.
 */
#ifndef XPT_SESSION_ATTACH_ATTACH_H
#define XPT_SESSION_ATTACH_ATTACH_H

#include "describe/runtime/registry.h"
#include "kern/kern.h"
#include "target/probe/site.h"

struct attacher;
struct process_info;
struct file_readers;

struct attacher_options {
	const struct log *log;
	const struct registry *registry;
	struct kern *kern;
	struct file_readers *readers; /* the attacher's from now on, whatever comes of it */
	bool all_processes;	      /* one link a file for everybody, instead of one a file and process */
	bool loader;		      /* threads that map a library wait in the dynamic loader for their probes */
	bool codes;		      /* code objects are captured */
	bool budget; /* probes are placed function by function, and can be suspended: attacher_loads() */
	__u32 roles; /* bit (1 << enum xpt_role): functions that get probes; those that report programs always do */
	/* Called with RUNTIME, SPEC and CLASS records before the first record of a spec can come. */
	int (*record)(void *context, const struct xpt_record_header *record);
	void *context;
	void (*scanned)(void *context, pid_t tgid); /* a process's files have been scanned; NULL */
	void *scanned_context;
};

struct attacher_figures {
	size_t sites[SITE_STEPPED + 1]; /* by class: probes placed */
	size_t refused;
	size_t late; /* programs that may have run before their probes were in place: nothing waited in their loader */
	size_t unplaced;   /* addresses that were handed out and have no probe */
	__u64 attach_time; /* ns spent, in sum */
	__u64 detach_time;
};

/* Number of specs that the kernel side needs room for: the described ones and those that the collector itself uses. */
size_t attacher_spec_count(const struct registry *registry);

int attacher_create(const struct attacher_options *options, struct attacher **result);
void attacher_free(struct attacher *attacher); /* detaches what is left */

/*
 * Before a command runs: places probes in its executable file, which is found as execvp() does, and in its dynamic loader. 0, or
 * -ENOMEM, -EINTR; a file that cannot be read is left to exec to report.
 */
int attacher_prepare(struct attacher *attacher, const char *command);
/* Its executable has no interpreter: libraries cannot come later. */
bool attacher_is_static(struct attacher *attacher, const struct process_info *info);
/* Places probes in everything of the process that has none yet. Number of new probes, or a negative errno. */
int attacher_scan(struct attacher *attacher, pid_t tgid);
/*
 * From now on the family has what any single process has by its files. Number of probes that are new, or a negative errno: not all are
 * there.
 */
int attacher_begin_family(struct attacher *attacher);
/*
 * Probes of a forked child where its parent has some that the family has not, which follow from its memory: tables, resolved addresses,
 * callers. Their number, or a negative errno; *lacked: whether it has run without any, placed or not.
 */
int attacher_fork(struct attacher *attacher, pid_t parent, pid_t child, bool *lacked);
/* Gives up the probes of a process that has ended; attacher_sweep() takes them off, many at a time. */
void attacher_forget(struct attacher *attacher, pid_t tgid);
/* The process runs another file now: its memory layout has to be reported anew. */
void attacher_renew(struct attacher *attacher, pid_t tgid);
void attacher_sweep(struct attacher *attacher);	 /* does not wait for it */
void attacher_detach(struct attacher *attacher); /* takes all off */

/*
 * Records of the collector's own specs and of resolve calls: the dynamic loader has mapped something, an accessor has
 * returned its table, a runtime has handed out a function's address. True when the record was only for the collector.
 */
bool attacher_record(struct attacher *attacher, const struct xpt_record_header *record);

/* The runtime of the class of an object in the process; class: as it was fetched. NULL: not known. */
const struct description *attacher_class_runtime(const struct attacher *attacher, pid_t tgid, __u64 class);

/* Operators are called from an unknown place: a probe for their end is placed at the return address. */
void attacher_caller(struct attacher *attacher, const struct xpt_record_caller *caller);

/*
 * A call hands over a function that its runtime will call: it gets a probe. 0, or a negative errno if it cannot have one: -ENOENT where its
 * address is in no file, -ENOEXEC where no function begins, -ENOSPC where the process has too many.
 */
int attacher_callback(struct attacher *attacher, const struct xpt_record_caller *caller);

/*
 * Build id of the file that the process has mapped at the address, valid as long as the attacher. NULL: it has none, or nothing
 * is traced in it.
 */
const char *attacher_build_id(struct attacher *attacher, pid_t tgid, __u64 address);

/* ---- under a budget ---- */

struct attached;
/* Probes of one function in one file and process each, until the next call of another function of the attacher; *count: how many. */
struct attached *attacher_loads(struct attacher *attacher, size_t *count);
/* Of the function that they are at; of the collector's own specs, too. */
enum xpt_role attacher_role(const struct attacher *attacher, const struct attached *attached);
/* Of operators: at their call, or behind it. */
static inline bool role_is_step(enum xpt_role role)
{
	return role == XPT_ROLE_OPERATOR || role == XPT_ROLE_OPERATOR_END;
}
/* Its name; of the collector's own specs what they are for. */
const char *attacher_function(const struct attacher *attacher, const struct attached *attached);
/* Takes the probes off for a while, without waiting for it. */
void attacher_suspend(struct attacher *attacher, struct attached *attached);
/* Places them again; 0, or why they cannot be: then they stay suspended. */
int attacher_resume(struct attacher *attacher, struct attached *attached);
/* Those of operators, and what is placed for them from now on. */
void attacher_switch_operators(struct attacher *attacher, bool on);
bool attacher_operators_off(const struct attacher *attacher);

struct elf_cache *attacher_elf_cache(struct attacher *attacher);
struct file_readers *attacher_readers(struct attacher *attacher);
const struct attacher_figures *attacher_figures(const struct attacher *attacher);
/* Of the dearest probe of a spec; 0: it has none. */
enum site_class attacher_class(const struct attacher *attacher, unsigned int spec);
/* How many probes are behind calls, by enum site_class. */
const size_t *attacher_ends(const struct attacher *attacher);
/* What the latest attacher_scan() has met in the process, placed then or before. */
struct attacher_scanned {
	size_t files; /* with probes */
	size_t probes;
};
struct attacher_scanned attacher_scanned(const struct attacher *attacher);
/*
 * A process that has to be scanned again by now, as long as there is one: a table in its memory may have been filled since by a call of
 * its accessor that began before that had a probe. *since: ns, when the table was read first. 0: there is none.
 */
pid_t attacher_due(struct attacher *attacher, __u64 now, __u64 *since);
size_t attacher_files(const struct attacher *attacher);	   /* with probes, of all processes */
size_t attacher_searched(const struct attacher *attacher); /* files, with something in them or not */
/*
 * Where nothing ran: what was searched, found and called, to the log. before: attacher_searched() when tracing began; calls: by
 * spec.
 */
void attacher_explain(const struct attacher *attacher, size_t before, const __u64 *calls);

#endif
