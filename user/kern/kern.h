/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All contact with the kernel's BPF side: programs and maps, links to sites, rings, counters. Nobody else sees the
 * skeleton. One object is one independent set of programs and maps; several may exist in a process.
 */
#ifndef XPT_KERN_KERN_H
#define XPT_KERN_KERN_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"
#include "bpf/wire.h"

struct kern;

/* How probes are linked, best first. */
enum link_kind {
	LINK_AUTO = 0,
	LINK_SESSION = 1, /* one link a library and process, one program for entry and return (about 6.13) */
	LINK_MULTI = 2,	  /* one link for the entries and one for the returns (about 6.6) */
	LINK_PERF = 3,	  /* one perf event a site and direction */
};
struct attachment;
const char *link_kind_name(enum link_kind kind); /* "session" */

struct kern_options {
	size_t spec_count;  /* specs that may be set */
	__u32 sample_every; /* 1: all calls; XPT_SAMPLE_NONE */
	bool chosen_only;   /* as in xpt_config, as is: */
	bool number_operators;
	size_t buffer_bytes; /* of all data rings together; rounded to what rings can have */
	enum link_kind link; /* LINK_AUTO: the best that works; else this one or -EOPNOTSUPP */
	bool codes;	     /* code objects are captured */
	unsigned int
		stacks; /* of calls, and with switches when they leave the CPU: each so many in a second at most; 0: none */
	unsigned int samples; /* stacks of threads that run in a call, in a second and on each CPU; 0: none */
	bool switches;	      /* when and why threads with an open call do not run: XPT_RECORD_OFF_CPU */
	bool budget;	      /* hits are counted, and costs are measured more closely: kern_hits(), kern_hit_costs() */
	__u64 wait_probes;    /* ns that a thread waits for its probes at most; 0: it does not */
	__u64 wait_codes;     /* the same until its code object has been read */
	/* Called while many probes are placed, from time to time; true: placing ends with -EINTR. NULL: it is not. */
	bool (*placing)(void *context, size_t done, size_t total);
	void *placing_context;
	/* Perf events that are read around each inference: that of slot s on CPU c is [s * slot_cpus + c]; -1: none. */
	const int *slot_events;
	unsigned int slots; /* at most XPT_SLOT_MAX */
	unsigned int slot_cpus;
	__u8 slot_tasks[XPT_SLOT_MAX]; /* enum xpt_task_count: that of the thread instead */
};

/* Loads programs and maps and proves the link kind by attaching to a function of its own. -EPERM, -EOPNOTSUPP, ... */
int kern_open(const struct log *log, const struct kern_options *options, struct kern **result);
void kern_close(struct kern *kern); /* everything must be detached */
enum link_kind kern_link_kind(const struct kern *kern);
/*
 * A CPU has come online: samples are taken there. events: those that are read around inferences there, by slot, -1: none; NULL: the
 * counters are none of a CPU's.
 */
int kern_renew_cpu(struct kern *kern, int cpu, const int *events);

/* A recorded call, entry and return, by the instruction at its entry (as enum site_class); an operator, and the place behind it. */
enum kern_cost_kind { KERN_COST_OPTIMISED, KERN_COST_EMULATED, KERN_COST_STEPPED, KERN_COST_OPERATOR, KERN_COSTS };

/* ns, with the first caches displaced between calls; where larger ones are, it is more. */
struct kern_cost {
	__u64 cost;   /* that the call takes longer */
	__u64 inside; /* of it, between the times of its record */
};
/* By kind, measured on this machine in kern_open(). NULL: unknown. */
const struct kern_cost *kern_costs(const struct kern *kern);

struct kern_hit_time {
	__u64 cost; /* ns that the call takes longer */
	__u64 run; /* ns that the BPF program at its entry runs; of operators: at their call and behind it, as a mean */
};
struct kern_hit_cost {
	struct kern_hit_time left_out, recorded; /* by sampling: the entry alone; entry, return and record */
};
/* Of one kind, with warm caches [0] and with cold ones [1]. NULL: unknown, or without kern_options.budget. */
const struct kern_hit_cost *kern_hit_costs(const struct kern *kern, enum kern_cost_kind kind);

/* Run time of those programs, summed over the hits that are timed (XPT_HITS_TIMED_EVERY). */
struct kern_run {
	__u64 time, runs; /* ns */
	__u64 stepped;	  /* of them, at instructions that are single-stepped: each has woken the reader of records */
};
struct kern_run kern_run_time(const struct kern *kern);

int kern_set_spec(struct kern *kern, const struct xpt_spec *spec);
/*
 * The rate of programs that have none of their own, or XPT_SAMPLE_NONE; and the roles of traced calls, bits (1 << enum
 * xpt_role). In force for calls that begin from now on.
 */
int kern_set_defaults(struct kern *kern, __u32 sample_every, __u32 roles);
/*
 * The rate of one program. seen: everything up to this time has been read. -ESTALE: the program has not run yet, or the
 * handle is another one's by now.
 */
int kern_set_sampling(struct kern *kern, const struct xpt_program_key *key, __u32 sample_every, __u64 seen);
/*
 * Under a budget: what the rate of one program is multiplied by, at least 1, until its handle is released. The next call is recorded
 * whatever its number. -ESTALE: the program has been released.
 */
int kern_set_factor(struct kern *kern, const struct xpt_program_key *key, __u32 factor);
/* What is recorded from now on, of all functions at once; XPT_CAPTURE_OFF after kern_open(). Off, nobody waits. */
int kern_set_capture(struct kern *kern, enum xpt_capture capture);
/*
 * Answers the request with this ticket: its thread is resumed. False: it was resumed before, at its deadline, so that
 * what was read may be of a later state.
 */
bool kern_answer(struct kern *kern, __u64 ticket);
/* Neither answered nor resumed, as far as is known. */
bool kern_waits(const struct kern *kern, __u64 ticket);
/* Nobody polls the data rings for a while: until it is unset, the first record in one of them makes the descriptor readable. */
int kern_set_idle(struct kern *kern, bool idle);
/* Likewise, and the first call of a program makes the control descriptor readable. */
void kern_set_patient(struct kern *kern, bool patient);
/* To be called before requests are read: threads that wait on the caller's CPU yield it more often. */
void kern_note_cpu(struct kern *kern);

/* What the call of spec->index gives. -EPERM: code objects are not captured. */
int kern_set_code(struct kern *kern, const struct xpt_code_spec *spec);

/* ---- processes ---- */

/* Callers of operators of the process are reported anew (XPT_RECORD_CALLER): its memory was replaced. */
void kern_forget_callers(struct kern *kern, pid_t tgid);
/* Where the Python frames of a process are, for its stacks; NULL: it has none. */
void kern_set_python(struct kern *kern, pid_t tgid, const struct xpt_python *python);
int kern_follow(struct kern *kern, pid_t tgid); /* its children, programs and end are reported */
/* The same as its end, which the kernel side has not seen where it came before kern_follow(). */
void kern_unfollow(struct kern *kern, pid_t tgid);
/* Whether it is followed, or a member of the family, and has not ended: another process may have its number since. */
bool kern_follows(const struct kern *kern, pid_t tgid);
/*
 * The family: processes that are traced through probes in all processes of a file (KERN_FAMILY), and the children of all that are followed,
 * which are members from their first instruction on. What a single process does costs others nothing, so both kinds exist.
 */
void kern_family_add(struct kern *kern, pid_t tgid);
void kern_family_remove(struct kern *kern, pid_t tgid);
bool kern_family_has(const struct kern *kern, pid_t tgid);
__u64 kern_family_members(const struct kern *kern); /* that live */
pid_t kern_family_next(const struct kern *kern,
		       pid_t after);		/* the member with the next higher PID; 0: there is none */
__u64 kern_ended_time(const struct kern *kern); /* ns of CPU time of followed processes that have ended */
/* Forks, programs begun and ends of processes for which the kernel has not run the program that reports them. */
__u64 kern_tasks_missed(const struct kern *kern);
/* From now on the family has what single processes have by their files: forks are reported only of those that have more or have called. */
int kern_family_complete(struct kern *kern);
/* The process has probes that its children need and the family has not: its forks are reported at once from now on, until it ends. */
void kern_family_private(struct kern *kern, pid_t tgid);

/*
 * The device of the file system that answers for the pages at the begin of a mapping of a process, and whether that is FUSE, also where
 * another one is stacked on it. -ENOENT: no file is mapped there; -errno.
 */
int kern_mapping(const struct kern *kern, pid_t tgid, __u64 start, dev_t *device, bool *is_fuse);

/* ---- links ---- */

#define KERN_FAMILY (-1) /* in place of a PID */

struct kern_site {
	__u64 offset;	    /* in the file */
	__u64 semaphore;    /* 16 bits in the file's data to count up while the probe is there; 0: none */
	__s32 loader_state; /* of the dynamic loader: bytes from the probe to r_debug.r_state; 0: unknown */
	__u32 hits;	    /* number of its counter of hits, < XPT_HITS_MAX; 0: that of all without one */
	__u16 spec;
	__u8 class; /* enum site_class, for who places it */
	bool entry_only;
};

/*
 * Places probes in a file for one process (pid), for all (pid 0) or for the family. path is opened by the kernel;
 * /proc/self/fd/N is fine. Sites that the kernel refuses are left out, reported, and counted in *refused. -ESRCH: the
 * process has ended; -EINTR: struct kern_options.placing has ended it.
 */
int kern_attach(struct kern *kern, pid_t pid, const char *path, const struct kern_site *sites, size_t count,
		size_t *refused, struct attachment **result);
/*
 * The same for what captures code objects, at sites that are entry_only; struct kern_options.codes must have been set, and
 * what a call's spec gives with kern_set_code().
 */
int kern_attach_codes(struct kern *kern, pid_t pid, const char *path, const struct kern_site *sites, size_t count,
		      size_t *refused, struct attachment **result);
/* Removes all at once; concurrent where the kernel would otherwise wait for each in turn. */
void kern_detach(struct kern *kern, struct attachment **attachments, size_t count);

/* ---- drivers ---- */

/* Loads what takes the events of drivers, if it is not yet: for many recordings, there is none. -EPERM, -EOPNOTSUPP, ... */
int kern_open_drivers(struct kern *kern);
/* What to do at an event, before it is attached. -EPERM: the drivers' part is not open. */
int kern_set_event(struct kern *kern, const struct xpt_event_spec *spec);
/* Attaches to a tracepoint by its id in tracefs; first: index of the first of its specs, which are chained. */
int kern_attach_event(struct kern *kern, __u32 tracepoint, __u16 first, struct attachment **result);
/* Follows the ioctls on a character device. */
int kern_set_node(struct kern *kern, dev_t device, __u16 index);
/* Attaches to the tracepoints of ioctl's entry and return. Every system call of the machine becomes slower. */
int kern_attach_ioctls(struct kern *kern, __u32 enter, __u32 leave, struct attachment *result[2]);

/* ---- records ---- */

/* Readable when records of the one kind or the other should be fetched. */
int kern_control_descriptor(const struct kern *kern);
int kern_data_descriptor(const struct kern *kern);
typedef int (*kern_record_fn)(void *context, const struct xpt_record_header *record);
/*
 * Hands over every record that is in the rings now: a PASS record, then code objects, then what is rare and others depend on. Stops at
 * the first error of visit and returns it. Records are checked to have the size in their header. Returns their number.
 */
int kern_drain_control(struct kern *kern, kern_record_fn visit, void *context);
/* The same of everything else, without a PASS record. Once behind each kern_drain_control(), and as often as wanted before the next. */
int kern_drain_data(struct kern *kern, kern_record_fn visit, void *context);
/* The same of copies of stacks, of kern_options.stacks. */
int kern_drain_stacks(struct kern *kern, kern_record_fn visit, void *context);

/* ---- counters ---- */

/* How often probes with this counter have been hit; 0 without kern_options.budget. */
__u64 kern_hits(const struct kern *kern, __u32 counter);

int kern_losses(struct kern *kern, __u64 losses[XPT_LOSS_MAX]);
typedef int (*kern_count_fn)(void *context, const struct xpt_program_entry *entry);
/*
 * Visits the counts of all programs as they are now. One that begins to run during the visit may be missed, none comes
 * twice with counts that decrease.
 */
int kern_counts(struct kern *kern, kern_count_fn visit, void *context);
/* Visits the exact counts of all programs of tgid (0: of all processes), and removes them. */
int kern_take_counts(struct kern *kern, pid_t tgid, kern_count_fn visit, void *context);

#endif
