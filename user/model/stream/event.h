/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the model makes of the records: the one ordered stream that every report gets. Pointers in events are valid
 * during the call that delivers them, except functions and runtime names, which live as long as the model. Programs and
 * processes live until the model has too many (model.h) and forgets those that are released or have exited; their names
 * may change before.
 */
#ifndef XPT_MODEL_STREAM_EVENT_H
#define XPT_MODEL_STREAM_EVENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"

/* Class of the status of a call. */
enum call_outcome {
	OUTCOME_NONE = 0, /* the call has no status */
	OUTCOME_OK = 1,
	OUTCOME_PENDING = 2,
	OUTCOME_FAILED = 3,
};

/* A described function, as its XPT_RECORD_SPEC tells it. Strings are valid UTF-8 only by luck: writers must check. */
struct model_function {
	unsigned int index;  /* of the spec */
	const char *name;    /* "clEnqueueNDRangeKernel" */
	const char *runtime; /* "opencl" */
	unsigned int runtime_index;
	enum xpt_role role;
	bool in_order; /* of the runtime: streams run what is enqueued in that order */
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
 * An engine, ring or queue of a device, as the events of its driver name it. Strings are valid UTF-8 only by luck. Lives as
 * long as the model.
 */
struct model_queue {
	unsigned int id;    /* unique in the recording, from 1 */
	const char *driver; /* "gpu_scheduler" */
	const char *device; /* "0000:03:00.0"; a number in decimal; "" when the events do not tell it */
	const char *engine; /* "gfx_0.0.0"; as above */
	__u64 jobs;	    /* that have ended, of all processes; those given up are not among them */
	__u64 failed;	    /* of them */
	__u64 target_jobs;  /* of them, those of traced processes */
	__u64 first, last;  /* times of its first and last event */
	__u64 busy_time;    /* ns during which at least one job was with the device */
	__u64 target_time;  /* ns, share of busy_time of jobs of traced processes */
};

/*
 * What executes one step of a program: an object of a runtime, known by its address and class. Strings are valid UTF-8 only by
 * luck. Lives as long as its process is kept.
 */
struct model_operator {
	unsigned int id; /* unique in the recording, from 1 */
	const struct model_process *process;
	const struct model_program *program; /* NULL: never seen inside an inference */
	const char *class;		     /* "onnxruntime::contrib::FusedGemm<float>"; "" not told */
	const char *type;    /* as the model has it, "FusedGemm"; where that is not told, from the class; "operator" */
	unsigned int number; /* among those of the type in the program, from 1, in order of first execution */
	const char *
		label; /* the node's name; where it has none, "FusedGemm_7" by its index; where that is not told, "FusedGemm#3"; without objects, the type */
	const char *name;     /* of the node in its model; NULL: not told */
	const char *provider; /* who executes it, "CPUExecutionProvider"; NULL: not told */
	__s64 index;	      /* of the node in its graph; -1: not told */
	__u64 recorded;	      /* executions */
	__u64 self_time;      /* ns, without operators inside; in known inferences, or all where it has no program */
	__u64 tracing;	      /* ns that probes took of all executions, with those of what is inside; 0: unknown */
	__u64 unassigned;     /* of them: the inference is not known */
	const struct statistics *duration; /* ns, with what is inside; NULL: none yet */
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
	const char *machine, *name, *sha256, *error; /* NULL: not told */
	const char *uri;			     /* where it was loaded from first; NULL: not told */
	__u64 size;				     /* bytes; 0: not known */
	__u64 kernels, functions; /* how many kernels are named, at most CODE_KERNELS_MAX; how many functions it has */
	__u64 loads;		  /* when it was found is one of them */
	__u64 unloads;
	__u64 incomplete; /* loads with bytes missing */
};

#define CODE_KERNELS_MAX 64

/* How the values of a counter follow each other. */
enum model_counter_kind {
	MODEL_COUNTER_SUM = 0,	 /* it only grows: what is told is its growth per second */
	MODEL_COUNTER_MEAN = 1,	 /* over the time since the reading before */
	MODEL_COUNTER_LEVEL = 2, /* what it was at the reading */
};

const char *model_counter_kind_name(enum model_counter_kind kind); /* "sum": in records and for machines */

/*
 * A counter of a device or the kernel that is read at intervals. Strings are valid UTF-8 only by luck. Lives as long as the
 * model. Smallest, largest and mean are of what is told; 0 as long as nothing is.
 */
struct model_counter {
	unsigned int index;
	const char *name;	 /* as the user asked for it: "i915/rcs0-busy/" */
	const char *unit;	 /* "" a plain number */
	const char *description; /* "" none */
	const char *source;	 /* "" not told */
	enum model_counter_kind kind;
	__u64 told; /* values */
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
 * Where a program's name comes from. A better source wins, see name_is_better(), and so does the later of two equal ones. Numbers
 * stand in recordings, and say nothing about that.
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
	bool named;	     /* it has a name that somebody gave it */
	__u32 fingerprint;   /* of the operators of an inference, 0: not known; of another process or order the same */
	enum name_source name_source;
	enum xpt_role role; /* XPT_ROLE_EXECUTE, _ENQUEUE or _LAUNCH: how it was run first; 0: not yet */
	__u64 loaded; /* when the call returned that has loaded it or made it ready; 0: it was loaded before the recording */
	__u64 released; /* the unload began, or the process was gone; 0: not yet */
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

enum event_kind {
	EVENT_PROCESS = 1, /* first seen or renamed: process */
	EVENT_THREAD = 2,  /* first seen or renamed: thread */
	EVENT_CALL = 3,
	EVENT_INFERENCE = 4, /* asynchronous one or a launch whose end was seen: a span from enqueue to wait */
	EVENT_COUNTER = 5,
	EVENT_PROGRAM = 6, /* loaded, named or released */
	EVENT_LOST = 7,
	EVENT_WAITED = 8,
	EVENT_TASK = 9,	     /* fork, exec, exit of a traced process */
	EVENT_REGION = 10,   /* a finished region */
	EVENT_UNPAIRED = 11, /* inference: an enqueue or launch that no wait will end any more; its end is 0 */
	EVENT_COUNT = 12,    /* what the kernel has counted of a program since the event before */
	EVENT_JOB = 13,	     /* a job of a device's queue has ended, or is given up */
	EVENT_QUEUE = 14,    /* how many jobs a queue of a device has, after a change */
	EVENT_DEVICE = 15,   /* error, reset or memory event of a driver */
	EVENT_IOCTL = 16,    /* on a driver's device node */
	EVENT_READING = 17,  /* value of a counter */
	EVENT_LAUNCH = 18,   /* a launch, once it is known in which operator it was made */
	EVENT_CODE = 19,     /* a code object was loaded, found or unloaded */
};

struct event_call {
	const struct model_function *function;
	const struct model_program *program; /* NULL: the call has none */
	__u64 start, end;
	__u32 tgid, tid;
	unsigned int depth;  /* nested in so many traced calls of its thread */
	bool layer;	     /* the same operation as the call around it, one runtime further down */
	bool no_end;	     /* recorded at its entry only: start == end */
	unsigned int sample; /* stands for so many calls */
	bool numbered;	     /* number is known: of an execute, enqueue or launch that is no layer */
	__u64 number;	     /* of the call among those of its program, from 0, whatever was left out or lost */
	unsigned int cpu;
	/* ns of it that probes took, as measured: in all, by what lies inside on its thread, and of that in operators; 0: unknown */
	__u64 tracing, tracing_inside, tracing_covered;
	/* Values that the call had: bit (1 << enum xpt_meaning) in have. */
	__u32 have;
	__u64 handle, key, size, stream, address, count, parent, length, blocking, ordered, when;
	const __u64 *keys; /* of a wait for several */
	size_t key_count;
	__s64 core;
	__s64 status;
	enum call_outcome outcome;
	const char *status_name; /* NULL: unknown */
	const char *name;	 /* string that was fetched in this call, NULL: none */
	size_t name_length;
	bool name_truncated;
	__u64 flow_in; /* wait: id of the inference it ended (the last one), 0: none */
	__u64 flow_out; /* enqueue, launch: id of the inference it begins, EVENT_INFERENCE or _UNPAIRED follow; 0: none */
	struct model_device_times device; /* as far as seen when the call returned */
	/* Of an operator: */
	__u64 object, class, inference;	 /* as fetched: addresses, and when the inference began that it is in */
	bool apart;			 /* the inference is on another thread */
	const struct model_operator *op; /* NULL: too many */
	/* Of a batch of tokens, which is in a phase unless it failed: */
	__u64 tokens, position, sequence, next_sequence;
	enum model_phase phase;
	__u64 first_token,
		output_token; /* ns, as in model_tokens, that ended with the begin of this one; 0: none did */
	const struct xpt_counts *begin_counts, *end_counts; /* as they were read; NULL: were not */
	struct model_counts counts;			    /* of execute */
};

struct event_inference {
	const struct model_program *program;
	const struct model_function *function; /* of the enqueue */
	__u64 id;			       /* joins flow_out of the enqueue with flow_in of the wait */
	__u64 start, end;		       /* enqueue begins, wait ends */
	__u64 completed; /* end; of a launch, when its last job had ended if that was seen to be earlier; 0: not known */
	__u32 tgid, tid; /* of the enqueue */
	__u32 wait_tid;	 /* 0: there was none, the jobs have ended */
	__u64 key, stream;
	enum call_outcome outcome; /* of the wait where it tells one, else of the enqueue */
	/* Of the enqueue, as in event_call: */
	__u64 enqueued; /* it had returned */
	unsigned int sample;
	bool numbered;
	__u64 number;
	__u32 have; /* KEY, SIZE and CORE; STATUS: that of the wait where it tells one, else of the enqueue */
	__u64 size;
	__s64 core;
	__s64 status;
	const char *status_name;
	__u64 in_queue; /* inferences of the process and runtime that were enqueued and not waited for just before */
	struct model_device_times device; /* of the enqueue's jobs, as far as seen when the wait returned */
	struct model_counts counts;
};

struct event_counter {
	__u32 tgid;
	__u64 time;
	const char *runtime;
	const char *name; /* "queue depth" (inferences enqueued and not waited for), "device memory" (bytes) */
	__s64 value;
};

/*
 * Told when the kernel's counts have been read (XPT_RECORD_COUNT) or a program's final ones have come (XPT_RECORD_TOTAL):
 * what was added since the EVENT_COUNT before. Calls that are recorded are in delta.calls, too. May come after the
 * program's release.
 */
struct event_count {
	const struct model_program *program;
	__u64 time;   /* of the reading, or of the release */
	bool reading; /* the counts go on */
	struct xpt_program_count delta;
};

/*
 * A job. Told when it has ended; of one that is given up (the recording ends, its key is used again, too many are followed)
 * with what was seen of it. One that was submitted inside a call that is recorded may come later than its end: when the
 * calls around it have returned, so that they are known, or a minute of the recording later.
 */
struct event_job {
	const struct model_queue *queue;
	__u64 id;		  /* unique in the recording, from 1 */
	const char *name;	  /* "" : the events tell none */
	__u64 queued, runs, done; /* 0: not seen, or seen with a later time than the next one: they are in order */
	__u32 tgid, tid;	  /* of the thread that submitted it; 0: not seen */
	bool target;		  /* that is a thread of a traced process */
	const struct model_process *process; /* NULL: not of a traced process */
	const struct model_program
		*program; /* of the innermost recorded call around it that runs one and is no layer; NULL: none known */
	__u64 call_start; /* of the innermost recorded call that it was submitted in; 0: none, or not returned yet */
	const struct model_operator *op; /* the innermost one that it was submitted in; NULL: none known */
	bool failed;
	__u32 have; /* bit (1 << enum xpt_event_meaning): CONTEXT, CLIENT, SIZE, COUNT, STATUS, VALUE, ADDRESS */
	__u64 context, client, size, count, value, address;
	__s64 status;
	__u64 time; /* of the event that ended it, or when it was given up */
};

/*
 * A launch that is no layer, a second time after its EVENT_CALL: after that of its operator, or when no operator around
 * it can return any more, or when too many are held.
 */
struct event_launch {
	const struct model_function *function;
	const struct model_program *program; /* NULL: none */
	const struct model_operator *op;     /* the innermost one that it was made in; NULL: none known */
	__u64 start, end;
	__u32 tgid, tid;
};

struct event_queue {
	const struct model_queue *queue;
	__u64 time;
	unsigned int waiting; /* queued, and not with the device */
	unsigned int running; /* handed to the device, and not ended */
	__u64 busy_time;      /* ns so far: as in model_queue */
};

struct event_device {
	const char *driver;
	const char *event;		    /* "xe:xe_exec_queue_reset" */
	enum xpt_event_role role;	    /* ERROR, RESET or MEMORY */
	const struct model_queue *queue;    /* NULL: the event does not tell it, or no job was seen there */
	const char *device, *engine, *name; /* "": not told */
	__u64 time;
	__u32 tgid, tid; /* of MEMORY: of the thread; else 0 */
	bool target;
	__u64 job;  /* id of the job that failed; 0: none */
	__u32 have; /* as of a job */
	__u64 context, client, size, count, value, address;
	__s64 status;
};

struct event_ioctl {
	const char *driver;
	const char *node;	  /* "/dev/accel/accel0" */
	const char *name;	  /* "EXECUTE_BO"; "0x6444" when the description has no name for it */
	enum xpt_event_role role; /* SUBMIT, WAIT, MEMORY, RESET; 0: only its name is known */
	__u32 tgid, tid;
	__u64 start, end;
	__u32 command;
	__s32 result; /* what it returned: an error when negative */
};

/* In the counter's unit, of a sum per second. Sums and means hold from the reading before on. */
struct event_reading {
	const struct model_counter *counter;
	__u64 since, time; /* of the reading before, of a level the same as time; and of this one */
	double value;
};

struct event_lost {
	enum xpt_loss cause;
	__u64 since, time;
	__u64 count;
};

/* A code object: what a runtime was given so that a device runs it. Strings are valid UTF-8 only by luck; NULL: not told. */
struct event_code {
	__u32 tgid, tid;  /* tid 0: none, it was found loaded */
	__u64 time;	  /* when the call began that loads or unloads it, or when it was found */
	bool unloaded;	  /* of these kind, name, uri, sha256 and handle are told, as they were when it was loaded */
	__u64 handle;	  /* 0: none */
	const char *kind; /* "hsaco"; never NULL */
	const char *machine, *name, *uri, *sha256, *runtime, *function, *error;
	const char *const *kernels; /* names of the first ones */
	size_t kernel_count;
	__u64 size;	 /* bytes; 0: not known */
	__u64 functions; /* in it */
	__u64 missing;	 /* bytes that could not be copied */
	__u64 waited;	 /* ns from time on that the call waited until it had been read; 0: it did not */
};

struct event_waited {
	__u32 tgid;
	__u64 start, end;
	unsigned int sites;
};

#define MODEL_REGION_PROGRAM "region:" /* before the name of a region that stands for a program */

struct event_region {
	__u32 tgid, tid;
	const char *runtime;
	const char *name;
	__u64 start, end;
	bool name_truncated;
	/*
	 * All of its name in the process, as if they were the inferences of a program "region:NAME"; in no list of programs. NULL:
	 * there are too many names.
	 */
	const struct model_program *program;
	__u64 number; /* of the region among those, from 0 */
};

struct event_task {
	__u32 tgid, tid, other;
	__u64 time;
	enum xpt_task_event what;
	int code;
	const char *name;
};

struct event_program {
	const struct model_program *program;
	__u64 time;
	bool released; /* else loaded or named */
};

struct event {
	enum event_kind kind;
	union {
		const struct model_process *process;
		struct {
			__u32 tgid, tid;
			const char *name;
		} thread;
		struct event_call call;
		struct event_inference inference;
		struct event_counter counter;
		struct event_program program;
		struct event_count count;
		struct event_lost lost;
		struct event_waited waited;
		struct event_task task;
		struct event_region region;
		struct event_job job;
		struct event_queue queue;
		struct event_device device;
		struct event_ioctl ioctl;
		struct event_reading reading;
		struct event_launch launch;
		struct event_code code;
	};
};

/*
 * Whether what a call has begun is shown as a span up to its end. Launches that only a wait for their stream ends would be
 * many, over each other and with one and the same end.
 */
static inline bool event_has_span(const struct model_function *function, __u32 have)
{
	return function->role != XPT_ROLE_LAUNCH || have & 1u << XPT_MEANING_KEY;
}

/* One report. write gets every event once, ordered by the time at which it was complete. */
struct event_sink {
	int (*write)(void *context,
		     const struct event *event); /* negative errno: the sink has failed, no more is sent */
	void *context;
};

/* Which events the reports get; those that it refuses go to none. */
struct event_gate {
	bool (*admits)(void *context, const struct event *event); /* NULL: all */
	void *context;
};

/*
 * Of an event that a report may leave out when it has no room: how many losses that is. -1: it may not, since others mean
 * nothing without it; such are few.
 */
int event_losses(const struct event *event);
const char *loss_name(enum xpt_loss cause);	   /* "ring_full": for machines */
const char *loss_description(enum xpt_loss cause); /* one line for people */

#endif
