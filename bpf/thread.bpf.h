/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The open calls of a thread, innermost last. A frame is identified by the stack pointer at the call's entry, so
 * recursion, exceptions and longjmp cannot pair a return with the wrong entry.
 */
#ifndef XPT_THREAD_BPF_H
#define XPT_THREAD_BPF_H

#include "arguments.bpf.h"
#include "wire.h"

/*
 * Not recorded; stays here so that its layers are known, until it is seen to have been left. One that is FRAME_RUNNING,
 * too, has a return probe; all have where the return address is in a register, as nothing else shows that they were left.
 */
#define FRAME_LEFT_OUT (1 << 0)
#define FRAME_LAYER (1 << 1)
#define FRAME_NUMBERED (1 << 2) /* number is known */
#define FRAME_RUNNING (1 << 4)	/* an inference that its process's struct xpt_running has */
#define FRAME_APART (1 << 5)	/* a step on a thread of its own; number: changes of that so far */
#define FRAME_COUNTED (1 << 3)	/* its struct xpt_thread_counts has the counts when it began */
#define FRAME_INSIDE (1 << 6)	/* in an inference that is recorded */

/*
 * Inferences that run in a process, while operators are traced. The fields change one after the other: what is read
 * between two equal numbers of changing and changed belongs together.
 */
struct xpt_running {
	__u64 changing, changed; /* changes begun; completed */
	__u64 inference; /* when they began, and the handles of their programs, combined by exclusive or: of a single one, */
	__u64 program; /* its own */
	__u32 open;
	__u32 sample_every; /* the rate at which it was taken or left out: combined likewise */
};

struct xpt_frame {
	__u64 start;
	__u64 stack;	      /* stack pointer at the entry */
	__u64 site;	      /* address of the probe */
	__u64 return_address; /* what stood at the stack pointer (the link register where there is one); if over is set */
	__u64 over;	      /* of the spec */
	__u64 program;	      /* handle that it was counted by */
	__u64 inference;      /* when the inference began that it is or is in; 0: none */
	__u64 inference_of;   /* handle of that one's program */
	__u16 spec;
	__u8 runtime;
	__u8 role;
	__u8 flags; /* FRAME_* */
	__u8 valid; /* bit i: value[i] is good (at entry: the value, or the address to read from at return) */
	__u16 reserved;
	__u32 sample_every; /* the rate at which it was taken */
	__u32 reserved2;
	__u64 number;		     /* of the call among those of its program */
	__u64 inference_number;	     /* the same of the inference */
	struct xpt_task_state state; /* of the thread, when the call began; then the difference */
	__u64 value[XPT_FETCH_MAX];
};

/* A region that has begun on the thread. */
struct xpt_open_region {
	__u64 start;	      /* 0: it has ended, before some that began later */
	__u64 handle;	      /* 0: identified by its name; of a function: stack pointer at its entry */
	__u64 name;	      /* number of its name; 0: none */
	__u64 return_address; /* of a function */
	__u32 place;	      /* regions that were open below it */
	__u16 spec;	      /* index of the spec that it began with */
	__u16 function;	      /* 1: it is one */
};

#define XPT_ENTRIES_KEPT 8

/*
 * What a program works on lies here and not on its stack: from Linux 6.13 on, a function of 64 bytes of stack or more
 * gets one stack a CPU for all tasks on x86, and a program that sleeps or is preempted would find another task's values
 * there when it resumes.
 */
struct xpt_thread {
	__u32 depth; /* frames in use */
	__u32 known; /* the thread's name has been sent */
	__u64 start; /* of the call that is being worked on */
	__u64 now;   /* its entry or return: one nanosecond before the time of its record, so that strings sort first */
	struct registers registers; /* at its entry */
	__u64 return_address;	    /* what stood at the stack pointer then; where layers matter */
	__u64 handle;		    /* of its program */
	__u64 caller;		    /* from where its latest operator was called */
	__u64 number;		    /* of the call among those of its program */
	__u64 ticket;		    /* of the call that is being worked on; 0: it does not wait */
	__u64 stack;		    /* the stack pointer at its entry or return */
	__u32 sample_every;	    /* the rate at which it was taken */
	__u32 states;		    /* XPT_CALL_STATES*, of the one that has returned */
	__u32 loader;		    /* r_debug.r_state as it was at the loader's latest call */
	__u32 entry[XPT_ENTRIES_KEPT]; /* indices of its latest programs' entries, each at a place of its own (bpf/programs.bpf.h) */
	__u64 python;  /* address of its thread state in a Python interpreter, as it was last; 0: none is known */
	__u32 regions; /* open: the one with place p is region[p % XPT_REGIONS_MAX], if that is its place still */
	__u64 open_call,
		open_operator; /* when the innermost ones began, for a stack that is taken while they are open; 0: none */
	__u32 open_spec;       /* of that call */
	__u32 unused;
	struct xpt_record_off_cpu off_cpu; /* while it does not run; start is 0 while it does, or has no call open */
	struct xpt_frame frame[XPT_DEPTH_MAX];
	struct xpt_open_region region[XPT_REGIONS_MAX];
	/* Room to build a record. Only the thread itself uses it. */
	__u64 scratch[(sizeof(struct xpt_record_string) + XPT_STRING_MAX) / 8];
};

#define XPT_THREAD_SLOTS 512 /* a power of two */
#define XPT_SLOT_PID_BITS 13 /* of the number of a thread, at most 22 bits, that its slot does not stand for */

struct xpt_thread_slot {
	__u64 owner; /* slot_owner() of the thread; 0: none */
	struct xpt_thread thread;
};

#define COUNTS_AT_RETURN XPT_DEPTH_MAX

/* Of threads that have run an inference while perf events were read around each. */
struct xpt_thread_counts {
	struct xpt_counts at[XPT_DEPTH_MAX + 1]; /* when the call of each frame began; when the latest one returned */
	struct bpf_perf_event_value read;
};

#endif
