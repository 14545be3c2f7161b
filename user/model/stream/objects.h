/* SPDX-License-Identifier: BSD-2-Clause */
/* What the model knows of programs, processes, devices and others, as it shows it, and how much of it is kept. */
#ifndef XPT_MODEL_STREAM_OBJECTS_H
#define XPT_MODEL_STREAM_OBJECTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"

struct event_call;

/*
 * What is kept apart at once. Beyond it released programs and exited processes are forgotten, oldest first, and what is
 * known of them is added to an entry named "(others)", which has the handle 0 or the tgid 0. When none can be forgotten,
 * new ones are counted there and as XPT_LOSS_NAMES.
 */
#define MODEL_PROGRAMS_MAX 16384
#define MODEL_PROCESSES_MAX 4096
#define MODEL_CALL_TOTALS_MAX 16384 /* pairs of a function and a process */
#define MODEL_PENDING_MAX 65536	    /* enqueues that no wait has ended yet; the oldest makes room (XPT_LOSS_UNPAIRED) */
/*
 * Jobs that have not ended, or around which a call may not have returned. Beyond it those that have ended leave first, and
 * count as XPT_LOSS_JOBS when a call returns that lacks them; then the oldest is given up, and counts at once.
 */
#define MODEL_JOBS_MAX 65536
#define MODEL_QUEUES_MAX 1024	    /* queues of devices; further ones are one, with the engine "(others)" */
#define MODEL_QUEUE_USES_MAX 8192   /* pairs of a queue and a process; of those without jobs the oldest makes room */
#define MODEL_OPERATORS_MAX 65536   /* further ones are not kept apart (XPT_LOSS_NAMES) */
#define MODEL_CODE_OBJECTS_MAX 4096 /* further ones are counted in struct model_code_totals only */
#define MODEL_CODE_LOADS_MAX 8192   /* handles that are loaded; the unload of the oldest ones beyond is not reported */
/*
 * Names of addresses, and of handles that nothing was run by when there are programs enough for half of MODEL_PROGRAMS_MAX. Further ones
 * are for programs that are there already (XPT_LOSS_NAMES).
 */
#define MODEL_SYMBOLS_MAX 262144
#define MODEL_SINKS_MAX 8
/* Further modules and frames are unknown, and so are stacks beyond that number, or with more frames than that in all. */
#define MODEL_MODULES_MAX 65536
#define MODEL_FRAMES_MAX 262144
#define MODEL_STACKS_MAX 262144
#define MODEL_STACK_PLACES_MAX (4u << 20)
#define MODEL_BUDGET_CHANGES_MAX 4096 /* further ones are events, and counted */

/* A described function, from its XPT_RECORD_SPEC. Strings are valid UTF-8 only by luck: writers must check. */
struct model_function {
	unsigned int index;  /* of the spec */
	const char *name;    /* "clEnqueueNDRangeKernel" */
	const char *runtime; /* "opencl" */
	unsigned int runtime_index;
	enum xpt_role role;
	bool in_order;	      /* of the runtime: streams run what is enqueued in that order */
	unsigned int streams; /* index of the runtime that its streams are of */
	bool shares_streams;  /* with the runtime above or below, whose waits end what it has enqueued */
};

struct model_process {
	__u32 tgid;
	__u32 parent;		 /* 0: unknown */
	__u64 start_time;	 /* clock ticks after boot; 0: unknown */
	const char *name;	 /* changes on exec */
	const char *command;	 /* "" when unknown */
	unsigned int sort_index; /* order in which it was first seen */
};

/* Bounded histogram; see statistics.h. */
struct statistics;

/*
 * What the thread of a call did, or of several calls together: of an asynchronous inference its enqueue and its wait, without
 * what lies between them. cpu, waited and blocked add up to the duration of the calls.
 */
struct model_states {
	__u64 calls;				 /* number of calls; 0: not known */
	__u64 cpu;				 /* ns that it ran */
	__u64 waited;				 /* ns that it could have run and waited for a CPU */
	__u64 blocked;				 /* ns that it waited for anything else */
	__u64 voluntary, involuntary;		 /* context switches: it blocked; it was preempted */
	__u64 minor_faults, major_faults;	 /* page faults without and with I/O */
	__u64 blocked_by[XPT_OFF_CPU_OTHER + 1]; /* ns of blocked, by enum xpt_off_cpu; all 0: not recorded */
};

void states_add(struct model_states *sum, const struct model_states *states);

const char *off_cpu_name(enum xpt_off_cpu reason); /* "futex": for machines */

#define MODEL_NEIGHBOURS_MAX 64 /* of a program; further ones are the last, "(others)" */

/* Threads of a process with the same name that ran in place of those of a program, or woke them. */
struct model_neighbour {
	__u32 tgid; /* 0: of the kernel, or several */
	char name[XPT_TASK_NAME_LEN];
	__u64 preempted, preempted_time; /* how often they took the CPU; ns until those of the program ran again */
	__u64 woke, woke_time;		 /* how often they woke; ns that those of the program had been blocked */
};

/*
 * An engine, ring or queue of a device, as the events of its driver name it. Strings are valid UTF-8 only by luck. Lives as
 * long as the model.
 */
struct model_queue {
	unsigned int id;    /* unique in the recording, from 1 */
	const char *driver; /* "gpu_scheduler" */
	const char *device; /* "0000:03:00.0"; a number in decimal; "": unknown */
	const char *engine; /* "gfx_0.0.0"; as above */
	__u64 jobs;	    /* that have ended, of all processes; those given up are not among them */
	__u64 failed;	    /* of them */
	__u64 target_jobs;  /* of them, those of traced processes */
	__u64 first, last;  /* times of its first and last event */
	__u64 busy_time;    /* ns during which at least one job was with the device */
	__u64 target_time;  /* ns, share of busy_time of jobs of traced processes */
};

/*
 * What one process has of a queue: sums over its jobs, of those that have not ended as far as they have come. The device times of all
 * processes of a queue add up to its busy time, but for what is rounded.
 */
struct model_queue_use {
	const struct model_queue *queue;
	const struct model_process *process; /* NULL: not a traced one */
	__u32 tgid;			     /* that submitted them; 0: not known, or several */
	__u64 jobs;			     /* that have ended */
	__u64 queue_time;		     /* ns, sum: waited for the device */
	__u64 device_time;		     /* ns: of n jobs that run at once each has 1/n of the time */
	__u64 busy_time;		     /* ns, of the queue until the same moment */
};

/*
 * What executes one step of a program: an object of a runtime, known by its address and class. Strings are valid UTF-8 only by
 * luck. Lives as long as its process is kept.
 */
struct model_operator {
	unsigned int id; /* unique in the recording, from 1 */
	const struct model_process *process;
	const struct model_program *program; /* NULL: never seen inside an inference */
	const char *class;		     /* "onnxruntime::contrib::FusedGemm<float>"; "": unknown */
	const char *type;    /* as the model has it, "FusedGemm"; where that is unknown, from the class; "operator" */
	unsigned int number; /* among those of the type in the program, from 1, in order of first execution */
	const char *
		label; /* the node's name; where it has none, "FusedGemm_7" by its index; where that is unknown, "FusedGemm#3"; without objects, the type */
	const char *name;     /* of the node in its model; NULL: unknown */
	const char *provider; /* who executes it, "CPUExecutionProvider"; NULL: unknown */
	__s64 index;	      /* of the node in its graph; -1: unknown */
	__u64 recorded;	      /* executions */
	__u64 self_time;      /* ns, without operators inside; in known inferences, or all where it has no program */
	__u64 tracing;	      /* ns that probes took of all executions, with those of what is inside; 0: unknown */
	__u64 unassigned;     /* of them: the inference is not known */
	const struct statistics *duration; /* ns, with what is inside; NULL: none yet */
	struct model_states states;	   /* with what is inside */
	/* Of what was made while it was the innermost operator that was open on the thread: */
	__u64 launches;		 /* recorded ones, layers not counted */
	__u64 jobs, failed_jobs; /* submitted, and ended by now, also after the operator itself */
	__u64 device_time;	 /* ns, of these jobs: as in model_device_times; 0: not seen */
};

/*
 * A code object, however often and by whichever process it was loaded: those with the same kind, size and hash are one, where the
 * hash is not known, those with the same URI. Strings are valid UTF-8 only by luck. Lives as long as the model.
 */
struct model_code_object {
	const char *kind;			     /* "hsaco" */
	const char *machine, *name, *sha256, *error; /* NULL: unknown */
	const char *uri;			     /* where it was loaded from first; NULL: unknown */
	__u64 size;				     /* bytes; 0: not known */
	__u64 kernels, functions; /* how many kernels are named, at most CODE_KERNELS_MAX; how many functions it has */
	__u64 loads;		  /* when it was found is one of them */
	__u64 unloads;
	__u64 incomplete; /* loads with bytes missing */
};

#define CODE_KERNELS_MAX 64

/* How the values of a counter follow each other. */
enum model_counter_kind {
	MODEL_COUNTER_SUM = 0,	 /* it only grows: its value is the growth per second */
	MODEL_COUNTER_MEAN = 1,	 /* over the time since the reading before */
	MODEL_COUNTER_LEVEL = 2, /* what it was at the reading */
};

const char *model_counter_kind_name(enum model_counter_kind kind); /* "sum": in records and for machines */

/*
 * A counter of a device or the kernel that is read at intervals. Strings are valid UTF-8 only by luck. Lives as long as
 * the model. Smallest, largest and mean are of emitted values; 0 as long as there are none.
 */
struct model_counter {
	unsigned int index;
	const char *name;	 /* as the user asked for it: "i915/rcs0-busy/" */
	const char *unit;	 /* "" a plain number */
	const char *description; /* "" none */
	const char *source;	 /* "": unknown */
	enum model_counter_kind kind;
	__u64 emitted; /* values */
	double least, most;
	double mean;	    /* over time; of a level over the readings */
	double total;	    /* of a sum: what was counted between its readings */
	unsigned int slots; /* counts that are read around inferences; 0: it is not */
	const char *of;	    /* what they count: "thread", "CPU", "device"; "": not known */
};

/* What counters had between the begin and the end of an inference, in their units; of a mean per second. */
struct model_counts {
	const struct model_counter *const *counters; /* live as long as the model */
	unsigned int count;			     /* 0: none was read */
	double value[XPT_SLOT_MAX];		     /* NaN: not known */
};

/*
 * What the device did for a call or an inference: for the jobs that were submitted on its thread while it was open. Times
 * are those that were seen, 0: not seen. A job that was given up stays unfinished.
 */
struct model_device_times {
	__u64 submit_begins, submit_ends; /* the first submitting ioctl began, the last one returned */
	__u64 runs;			  /* the first job was handed to the device */
	__u64 done;			  /* the last job has ended; 0 also while one has not */
	unsigned int jobs;		  /* submitted */
	unsigned int unfinished, failed;  /* of them: not ended yet; ended with an error */
	__u64 device_time; /* ns, sum over its jobs that ran and have ended: handed to the device to ended */
	__u64 queue_time;  /* ns, sum over its jobs that ran: queued to handed to the device */
	__u64 busy_time; /* ns, share of the queues' busy_time of its jobs that have ended; n that run have 1/n each */
};

/*
 * Where a program's name comes from. A better source wins, see name_is_better(), and so does the later of two equal
 * ones. Numbers are part of recordings, and do not define that order.
 */
enum name_source {
	NAME_FROM_ORDER = 0, /* none is known: which of the runtime's in its process it is */
	NAME_FROM_FORK = 1,  /* the process that this one was forked from had it */
	NAME_FROM_PARENT = 2,
	NAME_FROM_LOAD = 3,
	NAME_FROM_CALL = 4, /* program.name */
	NAME_FROM_USER = 5,
	NAME_FROM_SYMBOL = 6,	 /* of the program that the process runs, or a library: the handle is its address */
	NAME_FROM_MEMORY = 7,	 /* of the object in the process's memory that the handle points to */
	NAME_FROM_FILE = 8,	 /* the only file that the process has mapped and that can be a program */
	NAME_FROM_OPERATORS = 9, /* their fingerprint */
	NAME_SOURCES,
};

const char *name_source_name(enum name_source source); /* "load"; never NULL */
/* From worst: order, operators, fork, file, symbol, parent, memory, load, call, user. */
bool name_is_better(enum name_source source, enum name_source than);

/* What a batch of tokens is for. */
enum model_phase {
	PHASE_NONE = 0,	   /* it has none, or failed */
	PHASE_PREFILL = 1, /* a prompt, or a part of one */
	PHASE_DECODE = 2,  /* the next token of each of its sequences */
	PHASES = 3,
};

/* Of recorded calls. */
struct model_tokens {
	struct model_phase_total {
		__u64 batches, tokens;
		/* ns, of all: until the batch begins that has the token, where that is the next call; else of the call */
		__u64 time;
	} phase[PHASES];
	/* ns; NULL: none was seen. From the begin of a prompt, and of a batch of tokens, to that of the batch that has the next ones. */
	const struct statistics *first_token, *output_token;
};

struct model_program {
	unsigned int id; /* unique in the recording, from 1 */
	const struct model_process *process;
	const char *runtime;
	unsigned int runtime_index;
	__u64 handle;
	unsigned int generation; /* how many programs had this handle in this process before */
	const char *name;	 /* "ranker.onnx #2", "onnxruntime model 1" where it has none; never NULL */
	size_t name_length;	 /* bytes of name without its number; 0: it has none */
	unsigned int number; /* of those with this name that live at the same time in its process, from 1; see above */
	bool named;	     /* it has a name of its own */
	bool kernel;	     /* its runtime runs kernels, not models */
	__u32 fingerprint;   /* of the operators of an inference, 0: not known; of another process or order the same */
	enum name_source name_source;
	enum xpt_role role; /* XPT_ROLE_EXECUTE, _ENQUEUE or _LAUNCH: how it was run first; 0: not yet */
	__u64 loaded; /* when the call returned that has loaded it or made it ready; 0: it was loaded before the recording */
	__u64 released; /* the unload began, or the process had ended; 0: not yet */
	__u64 size;	/* bytes given at load, 0 unknown */
	bool has_core;	/* given when it, or what it is made of, was loaded: */
	__s64 core;
	__u64 first_start, last_end; /* of its recorded inferences */
	/* Exact totals from the kernel. known is false as long as no total has come (a recording cut short). */
	struct xpt_program_count total;
	bool total_known;
	__u64 recorded; /* inferences recorded */
	__u64 errors;	/* of the recorded ones: failed */
	__u64 pending;	/* of the recorded ones: neither */
	/* Of jobs that were submitted by its recorded inferences, layers not counted, and have ended. As in model_device_times. */
	__u64 jobs, failed_jobs;
	__u64 device_time, queue_time, busy_time;
	struct model_states states; /* of its recorded inferences, layers not counted */
	const struct model_neighbour *neighbours;
	size_t neighbour_count;
	/* Of its recorded calls in which operators were seen: */
	__u64 stepped;	       /* how many they are */
	__u64 stepped_time;    /* ns, of all together */
	__u64 covered_time;    /* ns of it during which an operator was running */
	__u64 stepped_tracing; /* ns of stepped_time that probes took on the thread of the call; 0: unknown */
	__u64 covered_tracing; /* of this, inside operators */
	const struct model_tokens *tokens; /* NULL: no batch of tokens was recorded */
	/* ns: of the call for execute, enqueue begins to wait ends for enqueue, launch begins to completion for launch. */
	const struct statistics *latency; /* Failed ones included. NULL: none yet */
	const struct statistics *call;	  /* ns, of the call itself, for enqueue and launch; NULL: none yet */
	__u64 unended;			  /* of the recorded launches: their completion was not seen */
	const struct statistics *tracing; /* ns of each recorded call that probes took on its thread; NULL: unknown */
	__u64 tracing_inside;		  /* ns, of all together: by what lies inside */
};

/*
 * Calls that are not inferences of a program (load, copy, alloc, wait, and launches of an unknown program), one entry a
 * function and process. Layers are not counted.
 */
struct model_call_total {
	const struct model_function *function;
	const struct model_process *process;
	struct xpt_program_count total; /* exact; total_known as for programs */
	bool total_known;
	__u64 recorded, errors;
	__u64 bytes;			   /* sum of sizes, of calls that did not fail */
	const struct statistics *duration; /* ns; NULL: none yet, or recorded at entry only */
};

struct model_region_total {
	const char *runtime, *name;
	const struct model_process *process;
	const struct statistics *duration;
};

/* Of all code objects; found ones are loads, too. */
struct model_code_totals {
	__u64 loads, unloads;
	__u64 incomplete;	 /* loads with bytes missing */
	__u64 waited, wait_time; /* how many calls waited until they were read, and ns of all of these together */
	struct model_code_kind {
		const char *name;
		__u64 loads;
	} kinds[32]; /* in the order in which they came; those that are too many are the last, "(others)" */
	unsigned int kind_count;
};

enum frame_kind {
	FRAME_UNKNOWN = 0,
	FRAME_NATIVE = 1,
	FRAME_PYTHON = 2,
	FRAME_JAVASCRIPT = 3,
	FRAME_KERNEL = 4,
	FRAME_KINDS,
};

const char *frame_kind_name(enum frame_kind kind); /* "native": in records and for machines */

/* Modules, frames and stacks live as long as the model. Strings are valid UTF-8 only by luck; NULL: unknown. */
struct model_module {
	const char *path; /* as the process had it mapped; "[vdso]" */
	const char *build_id;
};

struct model_frame {
	enum frame_kind kind;
	bool inlined; /* into the next one in the stack */
	bool has_offset;
	const char *function, *file; /* file: of the source */
	unsigned int line;	     /* 0: unknown */
	const struct model_module *module;
	__u64 offset; /* bytes, in the module's addresses */
};

struct model_stack {
	const struct model_frame *const *frames; /* the innermost first; none is NULL */
	size_t count;
	bool partial; /* they do not reach the thread's start; also when nothing is known of the stack */
};

enum budget_action {
	BUDGET_SAMPLING = 0,
	BUDGET_OPERATORS = 1,
	BUDGET_SITE = 2, /* the probes of a function in a process, or in several */
	BUDGET_ACTIONS,
};

const char *budget_action_name(enum budget_action action); /* "sampling": in records and for machines */

/*
 * A change of what is traced, to keep the budget for what tracing costs. Strings are valid UTF-8 only by luck. Lives as long
 * as the model.
 */
struct model_budget_change {
	__u64 time; /* from here on; in a part of a recording at its begin: it was so before */
	enum budget_action action;
	bool on;	  /* operators, or the site, are traced again */
	__u32 tgid;	  /* of the program, or of the site; 0: of several, or unknown */
	const char *name; /* of the program that costs most, as it was then, or of the site's function; NULL: unknown */
	unsigned int every;    /* sampling: the largest new interval: one inference in `every` is recorded */
	unsigned int programs; /* sampling: how many these are, and functions that are counted by themselves */
	__u64 since;	       /* a site that is traced again: since then it was not; 0: unknown */
	double cost, budget;   /* percent of the targets' CPU time: what tracing took just before, and may take */
};

/*
 * Of which programs inferences and operators become events, where CHOICE and MATCH records choose some. Those of others
 * are counted only, as left out. What is recorded inside a recorded inference is never asked about.
 */
struct model_chooser {
	/* call: one of the program that is about to be delivered; its times, thread and function are known. */
	bool (*wants)(void *context, const struct model_program *program, const struct event_call *call);
	void *context; /* must outlive the last call of model_feed and model_flush */
};

/* From CHOICE and MATCH records, in their order. */
struct model_choice {
	const char *text; /* name, "": any; or the expression */
	bool match;	  /* it is an expression */
	__u32 tgid;	  /* 0: any */
	__u64 handle;	  /* 0: any */
};

#endif
