/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the model makes of the records: the one ordered stream that every report gets. Pointers in events are valid
 * during the call that delivers them, except functions and runtime names, which live as long as the model. Programs and
 * processes live until the model has too many (objects.h) and forgets those that are released or have exited; their names
 * may change before.
 */
#ifndef XPT_MODEL_STREAM_EVENT_H
#define XPT_MODEL_STREAM_EVENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"
#include "model/stream/objects.h"

/* Class of the status of a call. */
enum call_outcome {
	OUTCOME_NONE = 0, /* the call has no status */
	OUTCOME_OK = 1,
	OUTCOME_PENDING = 2,
	OUTCOME_FAILED = 3,
};

enum event_kind {
	EVENT_PROCESS = 1, /* first seen or renamed: process */
	EVENT_THREAD = 2,  /* first seen or renamed: thread */
	EVENT_CALL = 3,
	EVENT_INFERENCE = 4, /* asynchronous one or a launch with a known end: a span from enqueue to wait */
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
	EVENT_OFF_CPU = 22,  /* a thread did not run during a call that has an event; before that */
	EVENT_BUDGET =
		20, /* less or more is traced from here on, to keep the budget; its change may not outlive the event */
	EVENT_STACK = 21, /* a thread was met with a stack; only in models that were asked for them */
};

struct event_call {
	const struct model_function *function;
	const struct model_program *program; /* NULL: the call has none */
	__u64 start, end;
	__u32 tgid, tid;
	unsigned int depth;  /* number of traced calls of its thread around it */
	bool layer;	     /* the same operation as the call around it, one runtime further down */
	bool no_end;	     /* recorded at its entry only: start == end */
	bool inside;	     /* in a recorded execute, enqueue or launch on its thread */
	unsigned int sample; /* number of calls that it stands for */
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
	struct model_states states;
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
	enum call_outcome outcome; /* of the wait where it has one, else of the enqueue */
	/* Of the enqueue, as in event_call: */
	__u64 enqueued; /* it had returned */
	unsigned int sample;
	bool numbered;
	__u64 number;
	__u32 have; /* KEY, SIZE and CORE; STATUS: that of the wait where it has one, else of the enqueue */
	__u64 size;
	__s64 core;
	__s64 status;
	const char *status_name;
	__u64 in_queue; /* inferences of the process and runtime that were enqueued and not waited for just before */
	struct model_device_times device; /* of the enqueue's jobs, as far as seen when the wait returned */
	struct model_counts counts;
	struct model_states states; /* not known when one of its calls is not */
};

struct event_counter {
	__u32 tgid;
	__u64 time;
	const char *runtime;
	const char *name; /* "queue depth" (inferences enqueued and not waited for), "device memory" (bytes) */
	__s64 value;
};

/*
 * Emitted when the kernel's counts have been read (XPT_RECORD_COUNT) or a program's final ones have come
 * (XPT_RECORD_TOTAL): what was added since the EVENT_COUNT before. Calls that are recorded are in delta.calls, too. May
 * come after the program's release.
 */
struct event_count {
	const struct model_program *program;
	__u64 time;   /* of the reading, or of the release */
	bool reading; /* the counts continue */
	struct xpt_program_count delta;
};

/*
 * A job. Emitted when it has ended; of one that is given up (the recording ends, its key is used again, too many are
 * followed) with what was seen of it. One that was submitted inside a call that is recorded may come later than its
 * end: when the calls around it have returned, so that they are known, or a minute of the recording later.
 */
struct event_job {
	const struct model_queue *queue;
	__u64 id;		  /* unique in the recording, from 1 */
	const char *name;	  /* "" : unknown */
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

/* Emitted when the call has returned; of an enqueue or launch, what was taken at its begin, when its inference has ended. */
struct event_stack {
	__u32 tgid, tid;
	__u64 time; /* when it was taken; it may be older than the events before */
	const struct model_stack *stack;
	enum xpt_stack_reason reason;
	__u64 weight; /* of CALL: calls that it stands for; OFF_CPU: ns that the thread did not run; ON_CPU: ns between two samples */
	__u64 call_start;
	const struct model_function *function; /* of the innermost recorded call, no operator; NULL: it is not known */
	const struct model_program *program;   /* of that; NULL: none, or unknown */
	const struct model_operator *op;       /* the innermost one that was open; NULL: none known */
	bool layer, inside;		       /* as in event_call */
	__u64 duration; /* ns: of the call, or of what it has enqueued or launched until that was complete; 0: unknown */
	__u64 device_time; /* ns, of the jobs of these, as far as seen by then */
};

/* Whether the stack is of a call that begins an inference of its own. */
static inline bool stack_is_inference(const struct event_stack *stack)
{
	const enum xpt_role role = stack->function ? stack->function->role : 0;

	return (role == XPT_ROLE_EXECUTE || role == XPT_ROLE_ENQUEUE || role == XPT_ROLE_LAUNCH) && !stack->layer;
}

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
	const struct model_queue *queue;    /* NULL: not in the event, or no job was seen there */
	const char *device, *engine, *name; /* "": unknown */
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

/* Blocked from start to woken, then waiting for a CPU until end; of a preempted one woken is start. */
struct event_off_cpu {
	enum xpt_off_cpu reason;
	__u32 tgid, tid;
	__u64 start, woken, end;
	__s32 syscall;					  /* number; -1: none */
	bool interrupt;					  /* woken by one */
	__u32 next_tgid, next_tid, waker_tgid, waker_tid; /* tid 0: nobody, or not known */
	const char *next, *waker;			  /* names of these threads; "" likewise */
	const struct model_program *program;		  /* of the innermost call that it lies in; NULL: none */
	const struct model_operator *op;		  /* if that is an operator; NULL: it is not, or not known */
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

/* A code object: what a runtime was given so that a device runs it. Strings may be invalid UTF-8; NULL: unknown. */
struct event_code {
	__u32 tgid, tid;  /* tid 0: none, it was found loaded */
	__u64 time;	  /* when the call began that loads or unloads it, or when it was found */
	bool unloaded;	  /* with kind, name, uri, sha256 and handle only, as they were when it was loaded */
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
	__u32 tgid, tid; /* tid 0: unknown */
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
	const char *request; /* id of the request that it is for; NULL: none was given */
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
		struct event_off_cpu off_cpu;
		struct event_reading reading;
		struct event_launch launch;
		struct event_code code;
		const struct model_budget_change *budget;
		struct event_stack stack;
	};
};

/* Whether the call had such a value. */
static inline bool call_has(const struct event_call *call, enum xpt_meaning meaning)
{
	return call->have & (1u << meaning);
}

/*
 * Whether the call is an inference by itself, with no event of its own behind it: one that is not asynchronous, or that nothing will be
 * waited for, as it has failed or is pending.
 */
static inline bool call_is_inference(const struct event_call *call)
{
	const enum xpt_role role = call->function->role;

	if (!call->program || call->layer || call->no_end)
		return false;
	return role == XPT_ROLE_EXECUTE || ((role == XPT_ROLE_ENQUEUE || role == XPT_ROLE_LAUNCH) && !call->flow_out);
}

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

/* Which events the reports get; those that it refuses are in none. */
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
