/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between the kernel side and user space, and the body of a recording.
 *
 * Included by BPF programs (after vmlinux.h) and by user space (after <linux/types.h>). Numbers are explicit and never
 * reused: a recording made by an older xputrace must stay readable. All integers are in host byte order; the
 * recording's header has it. All times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef XPT_WIRE_H
#define XPT_WIRE_H

#define XPT_WIRE_VERSION 1

#define XPT_FETCH_MAX 8	     /* fetches of one call */
#define XPT_DEREF_MAX 3	     /* dereferences of one fetch */
#define XPT_SPEC_MAX 4096    /* call specs of all runtimes together */
#define XPT_RUNTIME_MAX 64   /* runtimes; one bit each in xpt_spec.over */
#define XPT_DEPTH_MAX 16     /* traced calls open at once on one thread */
#define XPT_REGIONS_MAX 64   /* regions open at once on one thread; beyond, the oldest is dropped */
#define XPT_STRING_MAX 256   /* bytes kept of a string, terminator not included */
#define XPT_TASK_NAME_LEN 16 /* comm of a task, terminator included */

#define XPT_DRIVER_MAX 64      /* drivers followed at once */
#define XPT_EVENT_MAX 512      /* described events of all drivers together, each as often as it is described */
#define XPT_EVENT_CHAIN_MAX 8  /* described events of one tracepoint */
#define XPT_EVENT_VALUES_MAX 8 /* fields of one event, with those of its key */
#define XPT_EVENT_KEY_MAX 3    /* fields of a key */
#define XPT_EVENT_TEXT 32      /* bytes of a text in an event, terminator included */
#define XPT_EVENT_SPAN_MAX 256 /* bytes of a tracepoint's record that hold its numbers */
#define XPT_NODE_MAX 256       /* device nodes with followed ioctls */

#define XPT_RINGS_MAX 32 /* data rings, for groups of CPUs */

#define XPT_COUNTER_MAX 256 /* counters that are read beside the calls */
#define XPT_SLOT_MAX 4	    /* perf events that are read around each inference */

/* What a call means, with the names in runtime descriptions. */
enum xpt_role {
	XPT_ROLE_PROGRAM_LOAD = 1,    /* program.load: makes a program */
	XPT_ROLE_PROGRAM_NAME = 2,    /* program.name: sets a program's name */
	XPT_ROLE_PROGRAM_UNLOAD = 3,  /* program.unload: the handle may be reused from here on */
	XPT_ROLE_EXECUTE = 4,	      /* execute: one whole inference */
	XPT_ROLE_ENQUEUE = 5,	      /* enqueue: an inference begins, a wait ends it */
	XPT_ROLE_WAIT = 6,	      /* wait: ends what was enqueued under its key or stream */
	XPT_ROLE_LAUNCH = 7,	      /* launch: hands a kernel to a device queue */
	XPT_ROLE_COPY = 8,	      /* copy: moves bytes */
	XPT_ROLE_ALLOC = 9,	      /* alloc: takes device memory */
	XPT_ROLE_FREE = 10,	      /* free: gives device memory back */
	XPT_ROLE_SELECT = 11,	      /* select: chooses the device of this thread */
	XPT_ROLE_REGION_BEGIN = 12,   /* region.begin */
	XPT_ROLE_REGION_END = 13,     /* region.end */
	XPT_ROLE_CODEOBJ_LOAD = 14,   /* codeobj.load: bytes for the device */
	XPT_ROLE_CODEOBJ_UNLOAD = 15, /* codeobj.unload */
	XPT_ROLE_RESOLVE = 16,	      /* resolve: the runtime hands out the address of a function by name */
	XPT_ROLE_TABLE = 17,	      /* the accessor of an API table that could not be read from the file */
	XPT_ROLE_LOADER = 18,	      /* the dynamic loader reports that the list of loaded libraries has changed */
	/*
	 * operator: one step of an inference; not counted by itself. All have the same fetches: the object, an argument in a register;
	 * its class, the first word of it; the program of the inference and when it began, both not valid where that is not known.
	 * Of a function that has no object (XPT_SOURCE_SITE), the class is the address of its probe.
	 */
	XPT_ROLE_OPERATOR = 19,
	XPT_ROLE_OPERATOR_END = 20,   /* not of a function: behind the call of an operator, or of a region's function */
	XPT_ROLE_REGION_NAME = 21,    /* region.name: sets a region's name, whether it keeps that itself or not */
	XPT_ROLE_REGION_RELEASE = 22, /* region.release: the handle may be reused from here on */
	XPT_ROLE_REGION_PRINT = 23,   /* region.print: writes out what was measured */
	XPT_ROLE_REGION = 24,	      /* region: the function is a region of its name, from its entry to its return */
	XPT_ROLE_MARK = 25,	      /* mark: its key is complete when all is that was enqueued to its stream before */
	XPT_ROLE_STREAM = 26,	      /* stream: makes a queue of the device */
	XPT_ROLE_CALLBACK = 27,	      /* callback: hands over a function that is called when something has ended */
	XPT_ROLE_PROGRAM_READY = 28,  /* program.ready: completes what program.load began */
	XPT_ROLE_FOLLOW =
		29, /* follow: what is enqueued to its stream from here on runs after what its key stands for */
};

/* What a fetched value means, with the names in runtime descriptions. */
enum xpt_meaning {
	XPT_MEANING_PROGRAM = 1,    /* program: handle of the program */
	XPT_MEANING_KEY = 2,	    /* key: joins an enqueue with its wait */
	XPT_MEANING_NAME = 3,	    /* name: string */
	XPT_MEANING_SIZE = 4,	    /* size: bytes */
	XPT_MEANING_CORE = 5,	    /* core: device, core or partition number */
	XPT_MEANING_STREAM = 6,	    /* stream: queue of the device */
	XPT_MEANING_STATUS = 7,	    /* status: result of the call */
	XPT_MEANING_PARENT = 8,	    /* parent: handle of the program that this one was made from; lends its name */
	XPT_MEANING_ADDRESS = 9,    /* address: device or function address; joins alloc with free */
	XPT_MEANING_COUNT = 10,	    /* count: number of items in this call (tokens, repeats) */
	XPT_MEANING_LENGTH = 11,    /* length: bytes of the name when it has no terminator */
	XPT_MEANING_OBJECT = 12,    /* object: address of what stands for the step in the program */
	XPT_MEANING_CLASS = 13,	    /* class: address that identifies its class, as in a CLASS record */
	XPT_MEANING_INFERENCE = 14, /* inference: time at which the one began that it is a step of */
	XPT_MEANING_KEYS = 15,	    /* keys: address of an array of `count` keys; they are in STRING records */
	XPT_MEANING_BLOCKING = 16,  /* blocking: not 0: all of the stream before has ended when the call returns */
	XPT_MEANING_ORDERED = 17,   /* ordered: not 0: what is enqueued to the stream runs in that order */
	XPT_MEANING_WHEN = 18,	    /* when: 0: the call has another meaning, which is not of interest */
	/* Of a batch of a language model, the last three where it has them: */
	XPT_MEANING_TOKENS = 19,	/* tokens: how many it has */
	XPT_MEANING_POSITION = 20,	/* position: of its first token in the sequence */
	XPT_MEANING_SEQUENCE = 21,	/* sequence: that the first token belongs to */
	XPT_MEANING_NEXT_SEQUENCE = 22, /* next_sequence: that the second one belongs to */
	XPT_MEANING_CALLBACK = 23,	/* callback: address of a function of the process that is called later */
};

/* ---- kernel input: what to do at a site ---- */

enum xpt_fetch_type {
	XPT_TYPE_U64 = 0,
	XPT_TYPE_U32 = 1,
	XPT_TYPE_S32 = 2,
	XPT_TYPE_U16 = 3,
	XPT_TYPE_U8 = 4,
	XPT_TYPE_STRING = 5, /* the address reached is a char *; emitted in a record of its own */
};

/* xpt_fetch.source: the argument, counted from 0, or */
#define XPT_SOURCE_RETURN 0xff	  /* the return value */
#define XPT_SOURCE_PROGRAM 0xfe	  /* handle of the program of the inference that an operator is in */
#define XPT_SOURCE_INFERENCE 0xfd /* when that has begun */
#define XPT_SOURCE_SITE 0xfc	  /* where the probe is, in the process's memory */
#define XPT_SOURCE_RESULT 0xfa	  /* address for a result that is returned in memory, if it is no argument */
#define XPT_SOURCE_CONSTANT 0xfb  /* 0, to which xpt_fetch.last is added */

/* xpt_fetch.tests: what user space makes of the value, in this order */
#define XPT_TEST_MASK (1 << 0)	/* value & mask */
#define XPT_TEST_EQUAL (1 << 1) /* 1 if it is equal, else 0 */

#define XPT_KEYS_MAX 1024			/* keys read of one array */
#define XPT_KEYS_OF_RECORD (XPT_STRING_MAX / 8) /* of them in one STRING record, as its text */

struct xpt_fetch {
	__u8 meaning;	/* enum xpt_meaning */
	__u8 source;	/* argument number or XPT_SOURCE_* */
	__u8 type;	/* enum xpt_fetch_type */
	__u8 at_return; /* 0: read when the call begins; 1: when it has returned with success */
	__u8 derefs;	/* 0..XPT_DEREF_MAX */
	__u8 tests;	/* XPT_TEST_* */
	__u8 reserved[2];
	__s32 offset[XPT_DEREF_MAX]; /* p = *(p + offset[i]), in turn */
	__s32 last;		     /* added to the result; for strings, the string is at this address */
	__u32 mask, equal;	     /* for tests */
};

/* How a call reports success; decides whether fetches at return are made. */
enum xpt_success {
	XPT_SUCCESS_ALWAYS = 0,	 /* void, or no status */
	XPT_SUCCESS_ZERO32 = 1,	 /* low 32 bits of the return value are 0 */
	XPT_SUCCESS_ZERO64 = 2,	 /* a NULL pointer */
	XPT_SUCCESS_NONZERO = 3, /* a handle was returned */
};

#define XPT_SPEC_ENTRY_ONLY (1 << 0) /* the return is not of interest: record when the call begins */
#define XPT_SPEC_CONTROL (1 << 1)    /* rare and needed to understand the others: sent through the control ring */
#define XPT_SPEC_SAMPLED (1 << 2)    /* may be left out when sampling */
#define XPT_SPEC_BY_PROGRAM (1 << 3) /* counted by program handle (fetch 0); else by spec */
#define XPT_SPEC_WAIT (1 << 4)	     /* the thread waits until user space has placed probes, if waiting is on */
#define XPT_SPEC_AROUND \
	(1 << 5) /* what is called inside depends on it: it is known while it is open, also when it is left out */
#define XPT_SPEC_RUNNING (1 << 6)  /* an inference with steps that may run on other threads */
#define XPT_SPEC_CALLBACK (1 << 7) /* the function that is fetched as callback gets a probe before the call continues */

/* Where the bytes of a code object are, or what stands for them, with the names in runtime descriptions. */
enum xpt_code_source {
	XPT_CODE_NONE = 0,
	XPT_CODE_MEMORY = 1, /* bytes: in memory, with a size, or with that of the object's own header */
	XPT_CODE_PARTS = 2,  /* parts: arrays of addresses and of sizes (64 bits; 0: text that ends with a 0 byte) */
	XPT_CODE_PATH = 3,   /* path: of a file */
	XPT_CODE_DESCRIPTOR = 4, /* descriptor: of an open file */
};

/* Indices of xpt_code_spec.fetch */
#define XPT_CODE_BYTES 0 /* address of the bytes, the array of addresses, or the path; or the file descriptor */
#define XPT_CODE_SIZE 1	 /* bytes; of parts: address of the array of sizes, which may be NULL */
#define XPT_CODE_COUNT 2 /* of parts */

/* What a call gives to the runtime that is a code object. Read when the call begins. */
struct xpt_code_spec {
	__u16 index; /* of the call's spec */
	__u8 source; /* enum xpt_code_source */
	__u8 given;  /* bit i: fetch[i] is there */
	__u32 reserved;
	struct xpt_fetch fetch[3];
};

struct xpt_spec {
	__u16 index;  /* of this spec */
	__u8 role;    /* enum xpt_role */
	__u8 runtime; /* index of the runtime, < XPT_RUNTIME_MAX */
	__u8 fetches; /* used entries of fetch[] */
	__u8 success; /* enum xpt_success */
	__u16 flags;  /* XPT_SPEC_* */
	__u64 over;   /* runtimes that this one is built on: their calls of the same role inside are its layers */
	struct xpt_fetch fetch[XPT_FETCH_MAX];
};

/* ---- kernel input: what to do at a driver's event ---- */

/* What an event reports about a job, with the names in driver descriptions. */
enum xpt_event_role {
	XPT_EVENT_QUEUE = 1,  /* queue: the job was handed to the driver's queue, by the thread that submits it */
	XPT_EVENT_RUN = 2,    /* run: it was handed to the device */
	XPT_EVENT_DONE = 3,   /* done: the device has finished it */
	XPT_EVENT_ERROR = 4,  /* error: something has failed: the job, if there is a key, else the device */
	XPT_EVENT_RESET = 5,  /* reset: of the device, an engine or a queue */
	XPT_EVENT_MEMORY = 6, /* memory: was allocated, freed, mapped, moved or copied */
	XPT_EVENT_SUBMIT = 7, /* submit: an ioctl that hands work over */
	XPT_EVENT_WAIT = 8,   /* wait: an ioctl that waits for it */
	XPT_EVENT_ENTER = 9,  /* not in descriptions: any ioctl begins; its number has the role */
	XPT_EVENT_LEAVE = 10, /* not in descriptions: any ioctl returns */
};

/* What the value of a field is, with the names in driver descriptions. */
enum xpt_event_meaning {
	XPT_FIELD_KEY = 1,	   /* key: part of what identifies a job of the driver */
	XPT_FIELD_DEVICE = 2,	   /* device */
	XPT_FIELD_ENGINE = 3,	   /* engine: engine, ring or queue of the device */
	XPT_FIELD_CONTEXT = 4,	   /* context: in which jobs run in order */
	XPT_FIELD_CLIENT = 5,	   /* client: who has opened the device, as in fdinfo's drm-client-id */
	XPT_FIELD_NAME = 6,	   /* name: of the job or command */
	XPT_FIELD_SIZE = 7,	   /* size: bytes */
	XPT_FIELD_ADDRESS = 8,	   /* address */
	XPT_FIELD_COUNT = 9,	   /* count: number of items of the job */
	XPT_FIELD_DEPTH = 10,	   /* depth: jobs that are with the device, or room left in its queue's ring */
	XPT_FIELD_STATUS = 11,	   /* status: 0, or an error number or code */
	XPT_FIELD_VALUE = 12,	   /* value */
	XPT_FIELD_DESCRIPTOR = 13, /* not in descriptions: file descriptor of an ioctl */
	XPT_FIELD_COMMAND = 14,	   /* not in descriptions: its number */
	XPT_FIELD_ARGUMENT = 15,   /* not in descriptions: its argument */
	XPT_FIELD_TIMELINE = 16,   /* timeline: jobs that have the same end in the order in which they were queued */
};

/* How events with the same key are paired, with the names in driver descriptions. */
enum xpt_pairing {
	XPT_PAIRING_UNIQUE = 0, /* unique: a key is never used again */
	XPT_PAIRING_LATEST = 1, /* latest: it may be used again, once its job has ended; an event is of the latest job */
	XPT_PAIRING_ORDER = 2,	/* order: several jobs may have it at once, and end in the order in which they began */
};

/* How the value of a field is read from a tracepoint's record. */
enum xpt_access {
	XPT_ACCESS_NUMBER = 0,	      /* size bytes at offset */
	XPT_ACCESS_TEXT = 1,	      /* at most size bytes at offset, ended by a 0 byte unless they are all used */
	XPT_ACCESS_DATA_LOC = 2,      /* 4 bytes at offset: in the low half, where the text begins in the record; in the
					 high half, how long it is, with the 0 byte */
	XPT_ACCESS_RELATIVE = 3,      /* the same, counted from behind the 4 bytes */
	XPT_ACCESS_KERNEL_STRING = 4, /* 8 bytes at offset: address of text in the kernel */
};

struct xpt_event_field {
	__u16 offset; /* bytes from the begin of the record, with what all records begin with */
	__u16 size;   /* bytes: 1, 2, 4 or 8, or of a text's array */
	__u8 access;  /* enum xpt_access */
	__u8 is_signed;
	__u8 meaning; /* enum xpt_event_meaning */
	__u8 reserved;
};

#define XPT_EVENT_CONDITION (1 << 0) /* counts only if the condition's field has the value */
#define XPT_EVENT_DIFFERS (1 << 1)   /* ... has another value */
#define XPT_EVENT_BY_THREAD (1 << 2) /* happens on the submitting thread: that of a target is recognized */
/*
 * Events of devices and contexts that no target uses are left out in the kernel. What a thread of a target queues makes
 * its device known, and what is queued or runs on a known device its context, that is, the first part of a key of several.
 */
#define XPT_EVENT_OF_DEVICE (1 << 3)	 /* only of known devices; the device is field number `device` */
#define XPT_EVENT_OF_CONTEXT (1 << 4)	 /* only of known contexts; unless by a thread of a target */
#define XPT_EVENT_GIVES_CONTEXT (1 << 5) /* makes the context known */

/* One described event as this kernel has it. */
struct xpt_event_spec {
	__u16 index; /* of this spec */
	__u16 next;  /* another spec of the same tracepoint, index + 1; 0: none */
	__u8 role;   /* enum xpt_event_role */
	__u8 fields; /* used entries of field[]; those of the key come first */
	__u8 device; /* which of them is the device, if XPT_EVENT_OF_DEVICE is set */
	__u8 group;  /* drivers with comparable keys have the same one */
	__u16 span; /* bytes of the record that have to be read for its numbers; of the first of a tracepoint: for all of them */
	__u16 flags; /* XPT_EVENT_* */
	__u32 reserved;
	struct xpt_event_field condition; /* a number, or a text */
	struct xpt_event_field field[XPT_EVENT_VALUES_MAX];
	__s64 number;		   /* that the condition compares with; or */
	char text[XPT_EVENT_TEXT]; /* zeros behind it */
};

/* A device node with followed ioctls. */
struct xpt_node {
	__u16 index;
	__u16 reserved[3];
};

/* What the kernel counts of each thread anyway, as getrusage(2) has it. */
enum xpt_task_count {
	XPT_TASK_NONE = 0,
	XPT_TASK_TIME = 1, /* ns that it ran, from a point of its own */
	XPT_TASK_FAULTS = 2,
	XPT_TASK_MINOR_FAULTS = 3,
	XPT_TASK_MAJOR_FAULTS = 4,
	XPT_TASK_SWITCHES = 5,
	XPT_TASK_MIGRATIONS = 6,
};

#define XPT_SAMPLE_NONE 0xffffffffu /* count the calls, record none */

struct xpt_config {
	__u32 sample_every; /* record one call in so many of each program, where it has no rate of its own; 1: all */
	__u32 rings;	    /* data rings in use; record goes to ring cpu % rings */
	__u32 wakeup_bytes; /* wake the reader when so many bytes wait in a ring */
	__u32 self;	    /* tgid of the collector, never recorded */
	__u32 capture;	    /* enum xpt_capture */
	__u32 roles;	    /* bit (1 << enum xpt_role): calls of this role are traced */
	__u32 slots;	    /* perf events that are read around each inference, at most XPT_SLOT_MAX */
	__u32 slot_cpus;    /* the one of slot s on CPU c is number s * slot_cpus + c */
	/*
	 * 1: programs are chosen by their rates. All that begins inside a recorded inference is recorded with it, and steps on threads of
	 * their own are where the only inference that runs is one of a program of which all are.
	 */
	__u32 chosen_only;
	__u32 family; /* 1: the family has the probes that single processes have by their files: forks of these need no report */
	__u8 slot_tasks[XPT_SLOT_MAX]; /* enum xpt_task_count: of the thread, instead of a perf event */
	__u32 number_operators; /* 1: operators have the number of the inference that they are in on its thread */
	/* ns after a thread's request at which it resumes without an answer (bpf/wait.bpf.h); 0: it does not wait */
	__u64 wait_probes;
	__u64 wait_codes;
};

/* What is recorded. All functions begin and end at one moment, whatever the order in which probes are placed. */
enum xpt_capture {
	XPT_CAPTURE_OFF = 0, /* nothing: probes are being placed or removed */
	XPT_CAPTURE_ON = 1,
	XPT_CAPTURE_ENDING = 2, /* open calls, and what begins inside of them */
};

/* The high bits of an attach cookie; the low 16 are the index of the spec. */
#define XPT_COOKIE_FAMILY (1ull << 16) /* the probe is in all processes: only members of the family are traced */
#define XPT_COOKIE_OWN \
	(1ull << 17) /* it is one process's own: the kernel may run it in another one with its number, later */
#define XPT_COOKIE_STEPPED \
	(1ull << 18) /* single-stepped: under a budget, one hit in XPT_HITS_TIMED_EVERY wakes the collector */
#define XPT_COOKIE_STATE_SHIFT \
	32 /* of the dynamic loader: bytes from the probe to r_debug.r_state, signed; 0: unknown */
#define XPT_COOKIE_HITS_SHIFT 32 /* of all others: which counter of hits is the probe's */

/* Counters of hits, where there are any; those of one shard are of some CPUs. Number 0 is of all that have none of their own. */
#define XPT_HITS_MAX 16384
#define XPT_HITS_TIMED  \
	(XPT_HITS_MAX - \
	 1) /* each hit of this one is timed; of the others, in each shard, one in XPT_HITS_TIMED_EVERY */
#define XPT_HITS_TIMED_EVERY 256
#define XPT_HITS_TIMED_MAX 20000 /* ns: what takes longer was interrupted */

/* Threads that wait in a probe, and the collector: one object in memory that the kernel side and user space share. */
struct xpt_shared {
	__u64 tickets; /* requests so far; the number of a request is its ticket */
	__u64 members; /* processes of the family that live */
	__u64 gone;    /* 1: the collector has ended; nobody waits any more */
	__u64 waiting; /* threads that wait now */
	__u64 cpu;     /* that the collector was on when it last polled, plus 1; 0: unknown */
	/* Program entries: index of the first free one (0: none) in the low half, changes of that in the high half. */
	__u64 free_entries;
	__u64 used_entries;	    /* those up to this have been used; never more than XPT_PROGRAMS_MAX for long */
	__u64 ended_ns;		    /* CPU time of followed processes that have ended */
	__u64 timed_runs, timed_ns; /* of the programs at entries, for the hits that are timed */
	__u64 stepped;		    /* those of expensive probes among them: each has woken the collector */
	__u64 off_cpu_due[2];	    /* the same of a thread that leaves the CPU: blocked, preempted */
	__u64 stack_due;	    /* when the next stack of a call is taken, ns of CLOCK_MONOTONIC */
	__u64 wake_new;		    /* 1: the first call of a program, or function, wakes the collector */
};

/*
 * The answer to a ticket is in slot ticket % XPT_WAIT_SLOTS: twice the ticket, plus XPT_WAIT_MISSED if the thread
 * resumed at its deadline. The second to write there learns that from the previous value.
 */
#define XPT_WAIT_SLOTS 4096
#define XPT_WAIT_MISSED 1
#define XPT_WAIT_PATIENCE 3 /* missed deadlines in a row, after which threads of the process do not wait any more */

/* 64 processes, a bit each, by PID. */
struct xpt_family {
	__u64 member;	/* traced, and its children too */
	__u64 reported; /* its end is, too: its fork was, or it has run another program, or is active */
	__u64 active; /* has made a traced call, or its parent had or was private when it forked: what it forks is reported */
	__u64 own;     /* has probes of its own; member or not */
	__u64 private; /* has such by its memory, which its children need: what it forks is reported at once */
};

#define XPT_FAMILY_WORDS 65536 /* PID_MAX_LIMIT / 64 */
/* ---- kernel counters ---- */

struct xpt_program_key {
	__u32 tgid;
	__u16 runtime;
	__u16 spec;   /* 0 when counted by program, else index of the spec + 1 */
	__u64 handle; /* 0 when counted by spec */
};

/* Exact, whatever was sampled or lost: calls = recorded + left_out + lost + still open. */
struct xpt_program_count {
	__u64 calls;	/* all that began, layers of another call not included */
	__u64 left_out; /* by sampling */
	__u64 lost;	/* for whatever cause */
	__u64 layers;	/* calls that were a layer of another one */
};

/*
 * One program, in memory that the kernel side and user space share. The counts begin anew with each program that gets the handle;
 * since is the time of that. A reader copies from front to back while the kernel writes: since comes first there and is written
 * last, so that old counts are never read with a new time.
 */
struct xpt_program_entry {
	__u64 since;
	struct xpt_program_count count;
	/*
	 * As sample_every in xpt_config (XPT_RATE_EVERY()), 0: the value there; and above that a number that changes with each program, so that
	 * no rate is set that was meant for the one before.
	 */
	__u32 rate;
	/* While it is free: index of the next one that is, or 0. While it is used: what its rate is multiplied by (0: 1), XPT_TAKE_NEXT. */
	__u32 next;
	struct xpt_program_key key; /* its process is 0 while it is free or being made */
};

#define XPT_RATE_MASK 0xffffffu /* all of these bits: XPT_SAMPLE_NONE */
#define XPT_RATE_EVERY(rate) (((rate)&XPT_RATE_MASK) == XPT_RATE_MASK ? XPT_SAMPLE_NONE : (rate)&XPT_RATE_MASK)
#define XPT_PROGRAMS_MAX 16384	  /* entries 1 to this are used */
#define XPT_TAKE_NEXT 0x80000000u /* in an entry's next: the next call is recorded, whatever its number */

/* Why something is missing. Index of the kernel's loss counters, and of XPT_RECORD_LOST. */
enum xpt_loss {
	XPT_LOSS_RING_FULL = 0,	  /* the reader did not keep up */
	XPT_LOSS_DEPTH = 1,	  /* more than XPT_DEPTH_MAX calls or XPT_REGIONS_MAX regions open on one thread */
	XPT_LOSS_THREAD = 2,	  /* no memory for the state of a thread */
	XPT_LOSS_PROGRAMS = 3,	  /* more programs at once than the kernel table holds: not counted exactly */
	XPT_LOSS_UNREADABLE = 4,  /* a fetch met memory that could not be read; the call is there without the value */
	XPT_LOSS_LATE_PROBES = 5, /* a program or library ran on before its probes were in place */
	XPT_LOSS_OPEN = 6,	  /* calls that had not returned when the recording ended */
	XPT_LOSS_OUTPUT = 7,	  /* could not be written: disk full */
	XPT_LOSS_NAMES = 8,	  /* user space: more programs or threads than the model keeps apart */
	XPT_LOSS_UNPAIRED = 9,	  /* an enqueue that no wait was seen for, or the other way round; spans are there */
	XPT_LOSS_NESTED = 10,	  /* a driver's event, a fork or an exec while the same BPF program ran on that CPU */
	XPT_LOSS_JOBS = 11,	  /* user space: more jobs at once than the model follows */
	XPT_LOSS_LATE_CODES = 12, /* a call that loads a code object went on before its bytes were copied */
	XPT_LOSS_STACKS = 13,	  /* calls without an end: the thread had a traced call open on another, lower stack */
	XPT_LOSS_REPLACED = 14,	  /* user space: a launch not seen to end, and its key was that of a later one */
	XPT_LOSS_KEYS = 15,	  /* keys of a wait for more than are read, or that could not be read */
	XPT_LOSS_CALLBACKS = 16,  /* a function that was handed over as a callback has no probe */
	XPT_LOSS_STACK_COPIES = 17, /* stacks of calls that were copied and not unwound, or could not be copied */
	XPT_LOSS_JOB_ENDS = 18,	    /* user space: jobs without an end, though a later one or their process has ended */
	XPT_LOSS_MAX = 32,
};

/* ---- records: kernel to user space, and in the recording ---- */

enum xpt_record_kind {
	XPT_RECORD_CALL = 1,
	XPT_RECORD_STRING = 2,
	XPT_RECORD_TASK = 3,
	XPT_RECORD_EVENT = 4,	     /* of a driver */
	XPT_RECORD_IOCTL = 5,	     /* on a driver's device node */
	XPT_RECORD_CALLER = 6,	     /* an operator was called from a place that was not known; not in recordings */
	XPT_RECORD_REGION = 7,	     /* a region has ended */
	XPT_RECORD_REGION_NAME = 8,  /* what regions of a process are called; before its first use */
	XPT_RECORD_CODE_PIECE = 9,   /* bytes of a code object; before its CODE record; not in recordings */
	XPT_RECORD_CODE = 10,	     /* a code object is given to a runtime; not in recordings */
	XPT_RECORD_OFF_CPU = 11,     /* a thread with an open call did not run for a while */
	XPT_RECORD_STACK_COPY = 12,  /* bytes of a thread's stack, not unwound; not in recordings */
	XPT_RECORD_PYTHON_COPY = 13, /* frames of its Python interpreter; before the STACK_COPY; not in recordings */
	XPT_RECORD_CLIENT_EXIT = 14, /* a process that has queued jobs has ended, traced or not; a header alone */
	/* made in user space, from 16 on */
	XPT_RECORD_SPEC = 16,	 /* JSON: what a spec index means; before its first use */
	XPT_RECORD_PROCESS = 17, /* JSON: name, command line, start time of a process */
	XPT_RECORD_THREAD = 18,	 /* name of a thread */
	XPT_RECORD_LOST = 19,
	XPT_RECORD_TOTAL = 20, /* exact counts of one program, at the end or when its handle is released */
	XPT_RECORD_PASS =
		21, /* the reader begins to empty the rings: all that came before is in order up to the last one */
	XPT_RECORD_NAMED = 22,	 /* the user gave a name to a handle */
	XPT_RECORD_WAITED = 23,	 /* a thread waited while probes were placed */
	XPT_RECORD_END = 24,	 /* JSON: closing figures: cost, sites, features; the recording is complete */
	XPT_RECORD_RUNTIME = 25, /* JSON: name and status values of a runtime index; before its first spec */
	XPT_RECORD_COUNT = 26,	 /* counts of one program so far; of a session, not in recordings */
	XPT_RECORD_DRIVER = 27, /* JSON: what a driver index means; before its first event, and again when nodes come */
	XPT_RECORD_DRIVER_EVENT = 28, /* JSON: what an event index means; before its first use */
	XPT_RECORD_COUNTER = 29,      /* JSON: what a counter index means; before its first value */
	XPT_RECORD_READING = 30,      /* values of all counters that are read at intervals */
	XPT_RECORD_CLASS = 31,	      /* name of a class of operators in a process */
	XPT_RECORD_NODE = 32,	      /* JSON: what an operator's object stands for in its model */
	/* Before the first call. Where there are any, other programs than those that they mean are counted only. */
	XPT_RECORD_CHOICE = 33,	       /* name of a program, "": any; with the tgid and handle where these are not 0 */
	XPT_RECORD_MATCH = 34,	       /* expression that is found in the names of programs */
	XPT_RECORD_LOADED = 35,	       /* JSON: a program or region that was there before the recording begins */
	XPT_RECORD_CODE_OBJECT = 36,   /* JSON: a code object was loaded, or was there already */
	XPT_RECORD_CODE_UNLOADED = 37, /* id: handle of the unloaded code object; no text */
	XPT_RECORD_SYMBOL = 38, /* name of the symbol that a handle is the address of: any other name of it wins */
	XPT_RECORD_COST = 39, /* JSON: what the probes of a call take; after its SPEC, and again when that has changed */
	XPT_RECORD_FINGERPRINT = 40, /* the user gave a name to a fingerprint, the id; without a process */
	XPT_RECORD_BUDGET = 41, /* JSON: what is traced has changed from this time on, to keep the budget for its cost */
	XPT_RECORD_MODULE = 42,	      /* JSON: a file with code; before the first frame in it */
	XPT_RECORD_FRAME = 43,	      /* JSON: a function, or a place in one; before the first stack with it */
	XPT_RECORD_STACK = 44,	      /* frames of a stack; before its first sample */
	XPT_RECORD_STACK_SAMPLE = 45, /* a thread was met with a stack; before or after the record of its call */
};

struct xpt_record_header {
	__u16 kind; /* enum xpt_record_kind */
	__u16 size; /* of the whole record in bytes, a multiple of 8 */
	__u32 tgid; /* process, in the initial PID namespace; 0: none */
	__u64 time; /* of the record; for a call: when it returned */
};

#define XPT_CALL_LAYER (1 << 0)	   /* the same operation one runtime further down: never counted again */
#define XPT_CALL_NO_END (1 << 1)   /* recorded at its entry only; bit 2 is in old recordings only */
#define XPT_CALL_NUMBERED (1 << 3) /* the values are followed by the number of this call of its program, from 0 */
#define XPT_CALL_COUNTED (1 << 4)  /* that is followed by two struct xpt_counts: when it began, when it had returned */
#define XPT_CALL_INSIDE (1 << 5)   /* in an inference that is recorded, on its thread */
#define XPT_CALL_APART (1 << 6)	   /* an operator with its inference on another thread */
#define XPT_CALL_WAITS (1 << 7)	   /* the thread waits for user space: the last 8 bytes are its ticket */

/* In a call's depth, above the number. */
#define XPT_CALL_DEPTH 0x3f		/* bits of the number */
#define XPT_CALL_STATES_FOLLOW (1 << 6) /* behind the counts, or where they would be: struct xpt_task_state */
#define XPT_CALL_STATES \
	(1 << 7) /* what its thread did is known; without the bit before: it ran, without a page fault */

/* What a thread did between the begin and the end of a call. The time that it ran is the rest of the call's duration. */
struct xpt_task_state {
	__u64 off_cpu; /* ns that it did not run, in all; may be a little below 0 or above the duration */
	__u64 waited;  /* ns of that in which it could have run and waited for a CPU */
	__u32 voluntary, involuntary; /* context switches: it blocked; it was preempted */
	__u32 minor, major;	      /* page faults without and with I/O */
};

/* Roles, bits (1 << enum xpt_role), of calls that have them: whole inferences, and what an asynchronous one begins and ends with. */
#define XPT_ROLES_COUNTED (1u << XPT_ROLE_EXECUTE | 1u << XPT_ROLE_ENQUEUE | 1u << XPT_ROLE_WAIT)

/* Perf events as they were at one moment: counts since they were opened; or what the kernel had counted of the thread. */
struct xpt_counts {
	__u32 valid; /* bit i: value[i] could be read */
	__u32 cpu;   /* that it was read on */
	__u64 value[XPT_SLOT_MAX];
};

/*
 * One finished call, with one value for each fetch that is not a string, in the order of the spec. The data of
 * XPT_CALL_NUMBERED, XPT_CALL_COUNTED and XPT_CALL_STATES_FOLLOW follows, and is not counted in values.
 */
struct xpt_record_call {
	struct xpt_record_header header;
	__u64 start;
	__u32 tid;
	__u16 spec;   /* index of the spec */
	__u8 depth;   /* traced calls that were open on the thread when it began, and XPT_CALL_STATES* */
	__u8 flags;   /* XPT_CALL_* */
	__u8 valid;   /* bit i: fetch i of the spec could be read */
	__u8 values;  /* number of entries in value[] */
	__u16 cpu;    /* where it returned */
	__u32 sample; /* this record stands for so many calls of its program */
	__u64 value[];
};

/* A string that was fetched for the call of the same thread and spec that began at call_start. Comes before it. */
struct xpt_record_string {
	struct xpt_record_header header;
	__u64 call_start;
	__u32 tid;
	__u16 spec;
	__u8 fetch;	/* index of the fetch */
	__u8 truncated; /* there was more, or no terminator */
	__u32 length;	/* bytes in text, terminator not included, at most XPT_STRING_MAX */
	__u32 reserved;
	char text[]; /* not terminated, padded to 8 */
};

enum xpt_task_event {
	XPT_TASK_FORK = 1, /* header.tgid is the child; other: the parent's tgid */
	XPT_TASK_EXEC = 2,
	XPT_TASK_EXIT = 3,   /* the last thread has ended; code: exit code as wait() gives it */
	XPT_TASK_THREAD = 4, /* first traced call of a thread: tid, name */
};

struct xpt_record_task {
	struct xpt_record_header header;
	__u32 tid;
	__u8 event;	    /* enum xpt_task_event */
	__u8 shares_memory; /* of a fork: 1: the child runs in its parent's memory, until it executes a program (vfork) */
	__u16 reserved;
	__u32 other;
	__s32 code;
	char name[XPT_TASK_NAME_LEN];
};

/* A mapping of a process and the file system that answers for its pages, which one that is stacked on it (overlayfs) hides. */
struct xpt_mapping {
	__u64 start;
	__u32 device; /* of the file system: minor in the low 20 bits, major above; 0: there is no file */
	__u32 is_fuse;
};

#define XPT_THREAD_TARGET (1 << 0)  /* the thread is one of a traced process */
#define XPT_THREAD_IN_CALL (1 << 1) /* and has a call open that is recorded when it returns */

/*
 * An event of a driver, followed by the values of its fields in the order of the spec: 8 bytes a number, a signed one
 * extended; XPT_EVENT_TEXT bytes a text, zeros behind it. What could not be read is 0.
 */
struct xpt_record_event {
	struct xpt_record_header header; /* tgid, and tid below: that ran when it happened, in an interrupt any one */
	__u32 tid;
	__u16 event; /* index of the event */
	__u8 thread; /* XPT_THREAD_*; of XPT_EVENT_BY_THREAD */
	__u8 valid;  /* bit i: field i could be read */
	__u64 value[];
};

/* Why a thread did not run. */
enum xpt_off_cpu {
	XPT_OFF_CPU_PREEMPTED = 1, /* it could have run: another one had its CPU */
	XPT_OFF_CPU_FUTEX = 2,	   /* it waited for a futex: a lock, a condition */
	XPT_OFF_CPU_POLL = 3,	   /* poll, select, epoll */
	XPT_OFF_CPU_IO = 4, /* read, write and the like, or anything else that the kernel counts as waiting for I/O */
	XPT_OFF_CPU_IOCTL = 5, /* an ioctl, as of the accelerator's driver */
	XPT_OFF_CPU_FAULT = 6, /* a page that had to be read, or memory that had to be reclaimed */
	XPT_OFF_CPU_SLEEP = 7, /* for some time */
	XPT_OFF_CPU_OTHER = 8,
};

/* A thread that has a recorded call open ran again. From woken on it waited for a CPU, before that it was blocked. */
struct xpt_record_off_cpu {
	struct xpt_record_header header; /* time: when it ran again */
	__u64 start;			 /* when it ran last */
	__u64 woken;			 /* when it could run again: of a preempted one start; 0: not seen */
	__u32 tid;
	__s32 syscall;		       /* number of the system call that it was in, of its architecture; -1: none */
	__u32 next_tgid, next_tid;     /* who ran in its place at first; 0: nobody */
	__u32 waker_tgid, waker_tid;   /* who woke it; 0: not a thread, or not seen */
	char next[XPT_TASK_NAME_LEN];  /* name of the thread; of 0 without meaning */
	char waker[XPT_TASK_NAME_LEN]; /* likewise */
	__u8 reason;		       /* enum xpt_off_cpu */
	__u8 interrupt;		       /* 1: an interrupt woke it: a timer, a device */
	__u8 stacked;		       /* 1: its stack was copied, at start */
	__u8 reserved[5];
};

/* An ioctl of a traced process on a followed device node. header.time: when it returned. */
struct xpt_record_ioctl {
	struct xpt_record_header header;
	__u64 start;
	__u32 tid;
	__u32 command;
	__u16 node; /* index, as in the DRIVER record */
	__u16 reserved;
	__s32 result;
};

/*
 * A place in a process that is to get a probe, reported once. Of an operator: behind it (XPT_ROLE_OPERATOR_END); until then those that are
 * called from there have no end. Of a callback: the function's entry.
 */
struct xpt_record_caller {
	struct xpt_record_header header;
	__u64 address;	/* that the operator returns to, or of the callback */
	__u64 ticket;	/* of the thread, which waits; 0: it does not */
	__u32 callback; /* index of the spec of the call that hands it over, plus 1; 0: it is an operator's */
	__u32 tid;
};

#define XPT_CALLBACKS_MAX 256 /* of a process; addresses that it hands over after them get no probe */

/* From one place to the other on one thread, or from a function's entry to its return. header.time: the end. */
struct xpt_record_region {
	struct xpt_record_header header;
	__u64 start;
	__u32 tid;
	__u16 spec; /* of where it began */
	__u16 cpu;
	__u64 handle; /* of the region; 0: it is identified by its name */
	__u64 name;   /* as a REGION_NAME record of the process has it; 0: it could not be read, or there is none */
};

/*
 * Names with the same text have the same number in a process, until it runs another program; the number of a function's name is the
 * address of its probe, and made in user space.
 */
struct xpt_record_region_name {
	struct xpt_record_header header;
	__u64 name;
	__u32 length;	 /* bytes in text, terminator not included, at most XPT_STRING_MAX */
	__u32 truncated; /* there was more */
	char text[];	 /* not terminated, padded to 8 */
};

#define XPT_CODE_PIECE_MAX 4096 /* bytes */

/*
 * The bytes at offset of the object in the CODE record of the same thread and time; of a path, without its terminator.
 * Pieces of one object come in the order of offset, without gaps.
 */
struct xpt_record_code_piece {
	struct xpt_record_header header; /* time: of the CODE record */
	__u32 tid;
	__u32 length; /* of bytes */
	__u64 offset;
	char bytes[]; /* padded to 8 */
};

#define XPT_CODE_WHOLE (1 << 0)	     /* all bytes came in pieces */
#define XPT_CODE_UNREADABLE (1 << 2) /* memory could not be read, where the pieces end */
#define XPT_CODE_TEXT (1 << 3)	     /* text that ends with a 0 byte: size is unknown, or where that was found */
#define XPT_CODE_CROWDED (1 << 4)    /* no room for pieces, or no memory for the thread's state */
#define XPT_CODE_NO_WAIT (1 << 5)    /* not all bytes came, and the thread does not wait until they are read */

/* header.time: when the call began. Comes before the CALL record of the same thread and spec that ends next. */
struct xpt_record_code {
	struct xpt_record_header header;
	__u32 tid;
	__u16 spec;
	__u8 source; /* enum xpt_code_source */
	__u8 reserved;
	__u64 address;	 /* as fetched: of the bytes, or the array of addresses; the file descriptor */
	__u64 size;	 /* bytes as fetched, or from the object's header; 0: unknown; of parts: the array of sizes */
	__u64 copied;	 /* bytes in pieces */
	__u32 count;	 /* of parts, more than one; else 0 */
	__u32 flags;	 /* XPT_CODE_* */
	__u64 ticket;	 /* of the thread, which waits until user space has read its memory; 0: it does not */
	__u32 uid, gid;	 /* of the thread's rights to files */
	__u32 reads_all; /* not 0: and those to read every file of the machine (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) */
	__u32 unused;
};

struct xpt_record_lost {
	struct xpt_record_header header; /* time: when it was noticed */
	__u64 since;			 /* the loss happened after this time */
	__u64 count;
	__u32 cause; /* enum xpt_loss */
	__u32 reserved;
};

struct xpt_record_total {
	struct xpt_record_header header;
	struct xpt_program_key key;
	struct xpt_program_count count;
};

/*
 * since: when the counting began, that is, at the program's first call or where its handle's counts were cut by a TOTAL record
 * with this time. A count is of what is running now when no TOTAL of the same key is later than since.
 */
struct xpt_record_count {
	struct xpt_record_header header; /* time: just before the reading, always later than since */
	struct xpt_program_key key;
	struct xpt_program_count count;
	__u64 since;
};

struct xpt_record_waited {
	struct xpt_record_header header; /* time: when it was answered */
	__u64 start;
	__u32 event; /* 0; of old recordings: enum xpt_task_event that the process was stopped for */
	__u32 sites; /* probes placed during the wait */
	__u32 tid;   /* that has waited; older records end before it */
	__u32 reserved;
};

/*
 * Values of the counters 0 to values - 1 at the time of the header, in their units, each as the bits of a double; a NaN is
 * not known. Of a counter of kind "sum": since the first reading or before.
 */
struct xpt_record_reading {
	struct xpt_record_header header;
	__u32 values;
	__u32 reserved;
	__u64 value[];
};

#define XPT_STACK_REGISTERS 33	   /* at most */
#define XPT_STACK_BYTES_MAX 16384  /* of one copy */
#define XPT_STACK_RETURNS_MAX 8	   /* return addresses of open calls with return probes, the innermost first */
#define XPT_STACKS_SECOND_MAX 1000 /* that are taken in a second */

/*
 * The registers of a thread and its stack from the stack pointer on, when it began a call. Where a return is probed, the
 * address of the kernel's trampoline is on the stack (or, as in AArch64, in the link register) in place of the one in returns.
 */
struct xpt_record_stack_copy {
	struct xpt_record_header header; /* time: when it was taken */
	__u64 call_start;
	__u64 number; /* of CALL: of the call among those of its program, from 0 */
	__u64 handle; /* of that */
	__u64 trampoline;
	__u64 stack; /* address of the first of the bytes */
	__u32 tid;
	__u16 spec;
	__u16 returns;	      /* used entries of returned */
	__u32 length;	      /* of the bytes, at most XPT_STACK_BYTES_MAX */
	__u32 reason;	      /* enum xpt_stack_reason */
	__u64 operator_start; /* as in the sample */
	__u64 registers
		[XPT_STACK_REGISTERS]; /* by their DWARF numbers; x86-64: 16 and the instruction pointer; AArch64: 32 and it */
	struct {
		__u64 stack, address; /* the stack pointer at the entry, the address that is returned to */
	} returned[XPT_STACK_RETURNS_MAX];
	char bytes[]; /* padded to 8 */
};

#define XPT_PYTHON_FRAMES_MAX 96   /* of one stack */
#define XPT_PYTHON_FRAME_BYTES 120 /* at most, from its begin, that are copied */

/* Where the frames of a Python process are: offsets in structures of its interpreter. */
struct xpt_python {
	__u64 interpreters;		 /* address of the pointer to the first interpreter */
	__u32 next_interpreter, threads; /* in an interpreter: the next one, its first thread */
	__u32 next_thread, thread_id;	 /* in a thread: the next one, what identifies it */
	__u32 frame;			 /* in a thread: its innermost frame, or where that is */
	__u32 inner;			 /* there: the frame, plus 1; 0: it is the frame itself */
	__u32 previous;			 /* in a frame: the one around it */
	__u32 frame_bytes;		 /* of a frame that are copied */
};

struct xpt_python_frame {
	__u64 address;
	__u64 words[XPT_PYTHON_FRAME_BYTES / 8];
};

struct xpt_record_python_copy {
	struct xpt_record_header header; /* time: after that of the thread's next STACK_COPY, which begins with it */
	__u32 tid;
	__u32 frames;	 /* at most XPT_PYTHON_FRAMES_MAX */
	__u32 truncated; /* there are more */
	__u32 reserved;
	struct xpt_python_frame frame[]; /* the innermost first */
};

#define XPT_STACK_FRAMES_MAX 512
#define XPT_STACK_PARTIAL (1 << 0) /* the frames do not reach the thread's start */

struct xpt_record_stack {
	struct xpt_record_header
		header; /* without a process: stacks with the same frames have the same id in a session */
	__u64 id;
	__u32 frames;  /* at most XPT_STACK_FRAMES_MAX */
	__u32 flags;   /* XPT_STACK_* */
	__u32 frame[]; /* ids of FRAME records, the innermost first, padded to 8 */
};

/* What a thread did when its stack was taken. */
enum xpt_stack_reason {
	XPT_STACK_CALL = 1,    /* it began a call: the stack is that of the caller of the runtime */
	XPT_STACK_OFF_CPU = 2, /* it blocked or was preempted in a call */
	XPT_STACK_ON_CPU = 3,  /* it ran in a call, met by a timer */
};

struct xpt_record_stack_sample {
	struct xpt_record_header header; /* time: when the stack was taken; tgid: of the thread */
	__u64 call_start; /* of the innermost recorded call, no operator, that was open on the thread: its start, as in its CALL record */
	__u64 operator_start; /* the same of the innermost operator in that; 0: none was open */
	__u64 stack;	      /* id of a STACK record */
	__u64 weight; /* of CALL: calls of its program that it stands for; OFF_CPU: ns that it did not run; ON_CPU: ns between two samples */
	__u32 tid;
	__u32 reason; /* enum xpt_stack_reason */
};

/*
 * RUNTIME, SPEC, COST, DRIVER, DRIVER_EVENT, COUNTER, PROCESS, THREAD, NAMED, FINGERPRINT, CLASS, NODE, CHOICE, MATCH,
 * LOADED, SYMBOL, BUDGET, MODULE, FRAME and END carry text (PASS has no body):
 *
 *	RUNTIME {"name":"nrt","title":"AWS Neuron runtime","in_order":false,"statuses":[{"value":1003,"class":"ok","name":"..."}]}
 *		class: "ok", "pending" or "error"; any other value of a call with a status but success is an error;
 *		in_order: streams run what is enqueued in that order, unless a call defines another order; false when missing;
 *		streams_of: name of the runtime that its streams, events and keys are of, its own or another; they are its own alone when missing
 *	SPEC	{"runtime":3,"function":"nrt_execute","role":"execute","success":1,"status":true,"counted_by":"program",
 *		 "fetches":[{"meaning":"program","type":"u64","at_return":true},...]}
 *		runs: what its program is, "graph", in place of a model or kernel; may be missing
 *		runtime: index of the runtime; success: enum xpt_success; status: the return value is fetched as a status;
 *		type: "u64" "u32" "s32" "u16" "u8" "string" (strings have no entry in a call's value[], their bit in valid counts);
 *		mask, equal: the value means its bits of the mask; then 1 if that is equal to the number, else 0; in this order
 *	COST	{"cost_ns":1457,"inside_ns":560}
 *		that a recorded call of the spec takes longer, and how much of it lies between its two times; measured on the machine
 *		when recording began
 *	DRIVER	{"name":"amdgpu","title":"AMD GPU","pairing":0,"bits":64,"joins":[{"driver":4,"bits":32}],
 *		 "ioctls":[{"number":25668,"name":"EXECUTE_BO","role":7}],"nodes":[{"index":0,"path":"/dev/accel/accel0"}]}
 *		pairing: enum xpt_pairing; bits of each part of the key are compared, 32 or 64; joins: index of a driver
 *		with comparable keys, and how many bits of each part then; number: low 16 bits of the command
 *	DRIVER_EVENT {"driver":0,"event":"amdgpu:amdgpu_cs_ioctl","role":1,"key":2,"by_thread":true,
 *		 "fields":[{"meaning":1,"name":"context","text":false,"signed":false},...]}
 *		key: that many of the fields, from the first on, are the job's key; 0: it belongs to no job
 *	COUNTER {"name":"i915/rcs0-busy/","kind":"sum","unit":"ns","description":"...","source":"i915",
 *		 "slots":2,"of":"device","each_cpu":false,"scale":1e-9}
 *		kind: "sum": it only grows; "mean": over the time since the reading before; "level": what it was then; slots: how many of the
 *		perf events that are read around inferences it is the sum of, those of the counters before come first; 0 or
 *		missing: none; of: they count what the "thread" did, the "CPU", or the "device", for any user; each_cpu: they are of the CPU
 *		that they are read on; scale: unit for each of their counts
 *	PROCESS {"name":"node","command":"node server.js","parent":1,"start_time":12345}
 *	LOADED	{"runtime":3,"name":"resnet50","named_by":3,"number":2,"size":102400}, or of a region {"runtime":3,"region":"decode"}
 *		named_by: where the name comes from, as enum name_source in model/stream/event.h; number: of those with this name in the process,
 *		or of those without one; size: bytes given at its load; what is not known is missing
 *	NODE	{"class":140737353984,"name":"/fc/Gemm","type":"Gemm","index":3,"provider":"CPUExecutionProvider"}
 *		class: address as fetched; what is not known is missing
 *	CODE_OBJECT {"uri":"memory://12#offset=0x7f00&size=8192","kind":"hsaco","machine":"gfx90a","name":"...","size":8192,
 *		 "sha256":"...","runtime":"hip","function":"hipModuleLoadData","tid":13,"waited_ns":0,"missing":0,"error":"...",
 *		 "kernels":["vector_add"],"functions":12}
 *		time: when the call began, or was found; what is not known is missing; kernels: at most 64 names; functions: their number
 *	BUDGET	{"action":"sampling","every":8,"programs":2,"runtime":3,"handle":4096,"cost":4.1,"budget":2}, or
 *		{"action":"operators","on":false,...}, or {"action":"site","on":false,"function":"nrt_execute","since":1,...}
 *		cost: what tracing took in the latest second, as budget: in percent of the CPU time of the targets; every: the largest interval
 *		of the programs that have one other than before, programs: how many they are, runtime and handle (with the process of
 *		the header): of the one that costs most; site: all probes of the function in the process (of the header; 0: of
 *		several); since: time at which it was detached, when it is attached again: its calls are not counted in between
 *	MODULE	{"path":"/usr/lib/x86_64-linux-gnu/libc.so.6","build_id":"5f8e..."}
 *		path: as the process had it mapped, "[vdso]" or "[kernel]"; build_id: hexadecimal, missing when the file has none
 *	FRAME	{"kind":"native","function":"Ort::Session::Run","module":3,"offset":74565,"file":"session.cc","line":120,"inlined":true}
 *		kind: "native", "python", "javascript", "kernel" or "unknown"; function: demangled; module: id of its MODULE record;
 *		offset: of a native frame, bytes in the file's addresses; file, line: of the source; what is not known is missing;
 *		inlined: it has no frame of its own on the stack: the next one in the same stack is where it was inlined
 *	THREAD, NAMED, FINGERPRINT, CLASS, CHOICE, MATCH, SYMBOL  the bare name, or expression
 *	END	{"duration_ns":1,"stopped_by":"target ended","link":"session","attach_ns":1,"detach_ns":1,
 *		 "sites":{"optimised":1,"emulated":1,"stepped":0},
 *		 "drivers":{"tracepoints":3,"events":1,"nodes":0,"ioctls":0},"collector":{"cpu_ns":1,"max_rss_bytes":1},"target":{"calls":1,"cost_ns":1},
 *		 "probes":{"call_ns":1200,"operator_ns":1500},
 *		 "budget":{"percent":2,"targets_ns":1,"added_ns":1,"collector_ns":1,"changes":3,"coldness":0.4,
 *		  "targets":[{"tgid":1,"cpu_ns":1,"added_ns":1}],
 *		  "sites":[{"tgid":1,"function":"nrt_execute","class":"emulated","hits":1,"added_ns":1}]}}
 *		drivers: tracepoints attached to, their events recorded, device nodes followed, their ioctls recorded
 *		target: calls through probes, and the time they are estimated to have cost the traced processes
 *		probes: what a recorded call and an operator take longer, as measured; missing: unknown
 *		budget: missing without one; targets_ns: CPU time of the targets while they were traced, added_ns: estimated part of
 *		it that tracing has added, collector_ns: CPU time of the collector beside; coldness: 0: probes took as long as with warm caches,
 *		1: as with cold ones, at most 1.5; targets and sites: those that cost most, at most 20 each; tgid 0: several processes
 */
struct xpt_record_text {
	struct xpt_record_header header;
	__u64 id; /* RUNTIME, SPEC, DRIVER, DRIVER_EVENT, COUNTER, MODULE, FRAME: index; COST: that of the spec; THREAD: tid; NAMED, CHOICE, LOADED, CODE_OBJECT, CODE_UNLOADED, SYMBOL: handle; FINGERPRINT: it; CLASS, NODE: address */
	__u32 length; /* bytes in text */
	__u32 reserved;
	char text[]; /* not terminated, padded to 8 */
};

#define XPT_ALIGN8(n) (((n) + 7) & ~7u)

#define XPT_SIZE_IS(type, bytes) _Static_assert(sizeof(type) == (bytes), "wire format: " #type)
XPT_SIZE_IS(struct xpt_fetch, 32);
XPT_SIZE_IS(struct xpt_spec, 16 + 32 * XPT_FETCH_MAX);
XPT_SIZE_IS(struct xpt_event_field, 8);
XPT_SIZE_IS(struct xpt_event_spec, 16 + 8 + 8 * XPT_EVENT_VALUES_MAX + 8 + XPT_EVENT_TEXT);
XPT_SIZE_IS(struct xpt_node, 8);
XPT_SIZE_IS(struct xpt_program_key, 16);
XPT_SIZE_IS(struct xpt_program_count, 32);
XPT_SIZE_IS(struct xpt_program_entry, 64);
XPT_SIZE_IS(struct xpt_record_header, 16);
XPT_SIZE_IS(struct xpt_counts, 8 + 8 * XPT_SLOT_MAX);
XPT_SIZE_IS(struct xpt_task_state, 32);
XPT_SIZE_IS(struct xpt_record_call, 40);
XPT_SIZE_IS(struct xpt_record_string, 40);
XPT_SIZE_IS(struct xpt_record_task, 48);
XPT_SIZE_IS(struct xpt_mapping, 16);
XPT_SIZE_IS(struct xpt_record_event, 24);
XPT_SIZE_IS(struct xpt_record_ioctl, 40);
XPT_SIZE_IS(struct xpt_record_off_cpu, 96);
XPT_SIZE_IS(struct xpt_record_caller, 40);
XPT_SIZE_IS(struct xpt_code_spec, 8 + 32 * 3);
XPT_SIZE_IS(struct xpt_record_code_piece, 32);
XPT_SIZE_IS(struct xpt_record_code, 80);
XPT_SIZE_IS(struct xpt_record_lost, 40);
XPT_SIZE_IS(struct xpt_record_total, 64);
XPT_SIZE_IS(struct xpt_record_count, 72);
XPT_SIZE_IS(struct xpt_record_waited, 40);
XPT_SIZE_IS(struct xpt_record_reading, 24);
XPT_SIZE_IS(struct xpt_record_stack_copy, 80 + 8 * XPT_STACK_REGISTERS + 16 * XPT_STACK_RETURNS_MAX);
XPT_SIZE_IS(struct xpt_python, 40);
XPT_SIZE_IS(struct xpt_python_frame, 8 + XPT_PYTHON_FRAME_BYTES);
XPT_SIZE_IS(struct xpt_record_python_copy, 32);
XPT_SIZE_IS(struct xpt_record_stack, 32);
XPT_SIZE_IS(struct xpt_record_stack_sample, 56);
XPT_SIZE_IS(struct xpt_record_text, 32);

#endif
