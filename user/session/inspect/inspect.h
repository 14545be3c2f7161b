/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An inspection: continuous profiling that writes a directory for each process at the end.
 *
 * What it captures: types of events, activities, and the settings that choose among them. They come as text: from the options,
 * XPUTRACE_INSPECT_* and NEURON_RT_INSPECT_*. Names and values are in <xputrace/inspect.h>; those of Neuron differ so:
 *
 *	EVENT_FILTER_NC			EVENT_FILTER_CORE
 *	SYS_TRACE_MAX_EVENTS_PER_NC	MAX_EVENTS_PER_CORE
 *	DEVICE_PROFILE			also "model" and "session", which are 1: all executions are recorded anyway. With Neuron's
 *					newer releases it is 0 where it is not set; here it is 1, as documented in its header
 *	EVENT_FILTER_TYPE		names of nrt_sys_trace_get_event_types(); unknown ones change nothing, as that runtime
 *					has more with every release; a type of ours is captured when one of its parts is
 *	ACTIVITIES, SESSION_ID		do not exist
 *
 * An empty value is a bad one. Of two environment variables of one name, the first counts, as for getenv().
 */
#ifndef XPT_SESSION_INSPECT_INSPECT_H
#define XPT_SESSION_INSPECT_INSPECT_H

#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>
#include <xputrace/continuous.h>
#include <xputrace/inspect.h>

#include "base/core/log.h"
#include "base/file/folder.h"
#include "bpf/wire.h"
#include "model/stream/event.h"
#include "profile/trigger/inference_index.h"
#include "session/continuous/private.h"
#include "target/process/process.h"

/* ---- settings.c ---- */

#define INSPECT_VALUE_MAX 4095 /* bytes of a value */

/* In the order of xpt_inspect_event_types(), those of the group "hardware" behind the others. */
enum inspect_type {
	INSPECT_PROGRAM_LOAD,
	INSPECT_PROGRAM_NAME,
	INSPECT_PROGRAM_UNLOAD,
	INSPECT_EXECUTE,
	INSPECT_ENQUEUE,
	INSPECT_WAIT,
	INSPECT_LAUNCH,
	INSPECT_COPY,
	INSPECT_ALLOC,
	INSPECT_FREE,
	INSPECT_SELECT,
	INSPECT_CODEOBJ_LOAD,
	INSPECT_CODEOBJ_UNLOAD,
	INSPECT_OPERATOR,
	INSPECT_REGION,
	INSPECT_TASK,
	INSPECT_IOCTL,
	INSPECT_FIRST_HARDWARE,
	INSPECT_JOB = INSPECT_FIRST_HARDWARE,
	INSPECT_ERROR,
	INSPECT_RESET,
	INSPECT_MEMORY,
	INSPECT_COUNTER,
	INSPECT_TYPES /* how many there are; also: none */
};

/* In the order of xpt_inspect_activities(). */
enum inspect_activity {
	INSPECT_SYSTEM_PROFILE, /* the group "software" */
	INSPECT_DEVICE_PROFILE, /* the group "hardware" */
	INSPECT_HOST_MEMORY,
	INSPECT_CPU_UTIL,
	INSPECT_ACTIVITIES
};

#define INSPECT_ALL_TYPES ((1u << INSPECT_TYPES) - 1)
#define INSPECT_ALL_ACTIVITIES ((1u << INSPECT_ACTIVITIES) - 1)

/* Type of the calls that have the role. INSPECT_TYPES: they are no events, but how the tracing finds its way. */
enum inspect_type inspect_type_of_role(enum xpt_role role);
/* The same of a driver's events. */
enum inspect_type inspect_type_of_event(enum xpt_event_role role);
/* Without this activity, no event of the type is captured. */
enum inspect_activity inspect_activity_of_type(enum inspect_type type);

struct inspect_settings {
	int session_id;
	bool inspect;
	bool on_fail;
	bool packets; /* the trace is Perfetto's, not Chrome's */
	__u64 max_events_per_core;
	__u32 types;			   /* captured: bits (1 << enum inspect_type) */
	__u32 activities;		   /* enabled: bits (1 << enum inspect_activity) */
	bool other_cores;		   /* those with numbers that are not in cores are captured */
	__u8 cores[XPT_INSPECT_CORES / 8]; /* captured: a bit each */
	char output_dir[PATH_MAX];
};

enum inspect_source {
	INSPECT_OPTIONS, /* "NAME=value"; an unknown name is an error */
	INSPECT_XPUTRACE,
	INSPECT_NEURON,
	INSPECT_SOURCES
};

struct inspect_environment {
	enum inspect_source source;
	const char *const *variables; /* "NAME=value", with NULL behind the last one */
	/*
	 * The process that they were read from; 0: the caller. A traced process is not trusted: its OUTPUT_DIR is ignored, with a
	 * warning, and its MAX_EVENTS_PER_CORE can only lower the limit.
	 */
	pid_t pid;
};

void inspect_settings_init(struct inspect_settings *settings); /* defaults */
/*
 * Changes the settings. -EINVAL: a value is bad: the log has the variable and what is expected, and the settings are as before; -ENOMEM.
 * Unknown variables with the prefix are ignored, with a warning; for Neuron with a note, as some have no counterpart here.
 */
int inspect_settings_apply(const struct log *log, const struct inspect_environment *environment,
			   struct inspect_settings *settings);

/* Are events captured that are of the core? Those of none are, without asking. */
bool inspect_settings_wants_core(const struct inspect_settings *settings, __s64 core);
/* Are events of the type captured? Not without the activity that they belong to. type: not INSPECT_TYPES. */
bool inspect_settings_wants_type(const struct inspect_settings *settings, enum inspect_type type);

/* ---- inspect.c ---- */

/* What is kept of a process beside its records: who it is, and what it has used over time. */

#define INSPECT_ROWS_MAX 65536u		 /* readings kept: then every second one is dropped, and the rate halved */
#define INSPECT_READ_EVERY 1000000000ull /* ns between two readings, at first */
#define INSPECT_PROCESSES_MAX 1024u	 /* further ones are not kept apart, and have no folder */

#define INSPECT_FAILED_MAX 100u /* files of inferences that have failed; then there are no more */

struct inspect_process {
	struct inspect_process *next;
	__u32 tgid;
	__u64 start_time; /* clock ticks after boot; 0: unknown */
	char *name, *command;
	struct usage_source source;
	bool open; /* the source is */
	__u64 due; /* of the next reading, ns */
	__u64 every;
	struct process_usage *rows;
	size_t count;
	struct folder *folder;			/* NULL: not yet */
	char *failed_files[INSPECT_FAILED_MAX]; /* names of files */
	unsigned int failed_count;
	bool saving;	   /* a failed inference is being saved */
	bool missed;	   /* another one has failed since */
	char failure[200]; /* the latest */
	__u64 inferences, failed;
};

/* NULL: no memory. wanted: USAGE_*, 0: none is read. */
struct inspect_process *inspect_process_create(const struct model_process *view, unsigned int wanted, __u64 now);
void inspect_process_free(struct inspect_process *process);
/* It has become another program, or its name was not known. */
void inspect_process_rename(struct inspect_process *process, const struct model_process *view);
/* A failed inference is in the file. */
void inspect_process_failed(struct inspect_process *process, const char *path);
/* Reads what is due. */
void inspect_process_read(struct inspect_process *process, unsigned int wanted, __u64 now);

struct xpt_inspect {
	struct inspect_settings settings;
	char *host;
	struct xpt_continuous *continuous; /* NULL: nothing is to be inspected */
	unsigned int usage;		   /* USAGE_* that are read */
	__u8 cores[XPT_INSPECT_CORES / 8]; /* seen: a bit each */
	__u8 event_types[XPT_EVENT_MAX];   /* enum inspect_type of each driver's event */
	unsigned int core_count;
	struct inspect_process *processes; /* the collecting thread's, as long as there is one */
	size_t process_count;
	bool stopped;
	__u64 left_out;								  /* processes beyond the limit */
	void (*written)(void *context, const char *directory, const char *index); /* NULL: nobody wants to know */
	void *written_context;
};

/* ---- folder.c ---- */

/* The folder of a process, made now if it was not there. Closed with the process. */
int inspect_folder_open(struct xpt_inspect *inspect, struct inspect_process *process);
/* What has been recorded of it, and all that is made of that. The first error, which is logged. */
int inspect_folder_write(struct xpt_inspect *inspect, struct inspect_process *process);

/*
 * Which of a process's inferences are written: those on cores that are wanted, of each core the latest, as many as have
 * no more events together than a core may have. What lies in others is left out with them.
 */
struct inspect_cores;

/* roles: enum xpt_role of each spec, XPT_SPEC_MAX of them. settings and roles must outlive it. -ENOMEM. */
int inspect_cores_create(const struct inference_index *recent, __u32 tgid, const __u8 *roles,
			 const struct inspect_settings *settings, struct inspect_cores **result);
void inspect_cores_free(struct inspect_cores *cores);

/* First each record is counted, */
void inspect_cores_count(struct inspect_cores *cores, const struct xpt_record_header *record);
/* then the inferences are chosen; how many are left out: */
__u64 inspect_cores_choose(struct inspect_cores *cores);
/* and then it is known whether a record is written. */
bool inspect_cores_wants(const struct inspect_cores *cores, const struct xpt_record_header *record);

#endif
