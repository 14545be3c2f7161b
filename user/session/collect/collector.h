/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What recordings and profiling sessions have between them: processes are watched, and records come out as they are
 * read. One thread at a time.
 */
#ifndef XPT_SESSION_COLLECT_COLLECTOR_H
#define XPT_SESSION_COLLECT_COLLECTOR_H

#include <errno.h>
#include <stdlib.h>
#include <xputrace/counters.h>
#include <xputrace/recording.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "describe/runtime/registry.h"
#include "kern/kern.h"
#include "kern/perf.h"
#include "model/core/model.h"
#include "model/stream/event.h"
#include "session/attach/attach.h"
#include "session/reader/describe_records.h"
#include "session/attach/launch_symbols.h"
#include "session/attach/objects.h"

struct collector;

/* ---- command.c ---- */

/* A command that is started for a recording: made, but held before its first instruction until it is released. */

struct command {
	pid_t pid;   /* 0: none */
	int release; /* writing end of the pipe that the child waits at; -1: released */
	int failure; /* reading end of the pipe that reports why exec failed; -1 */
	int status;  /* as wait() gives it; -1: still runs */
};

/* Forks the child, which waits. Signals are reset in it. Negative errno. */
int command_start(char *const *arguments, struct command *command);
/* Lets the child exec. Negative errno: it has ended before, with this error if it has one. */
int command_release(struct command *command);
/* After the exec: 0, or the negative errno that exec failed with. Does not block once the child has run exec. */
int command_exec_error(struct command *command);
/* Checks whether it has ended: 1 and status is set; 0 still runs. */
int command_reap(struct command *command);
/* A child that was never released ends; descriptors are closed. A running command continues. */
void command_close(struct command *command);

/* ---- driver_tracer.c ---- */

/*
 * Which drivers are followed, by which of their tracepoints and on which device nodes; also of drivers
 * that are loaded later.
 */

struct driver_tracer;

/*
 * Reads the descriptions and checks the choice; *result is NULL when it is none. -EINVAL: a description or name is wrong;
 * -ENOENT, -EACCES of a file, or of tracefs when drivers were named; -ENOMEM.
 */
int driver_tracer_create(struct collector *collector, struct driver_tracer **result);
void driver_tracer_free(struct driver_tracer *tracer); /* detaches what is left; NULL is fine */

/*
 * Attaches to what is there. Whatever cannot be followed is logged. DRIVER and DRIVER_EVENT records are passed on before the first
 * record that refers to them can come. -ENOMEM.
 */
int driver_tracer_start(struct driver_tracer *tracer);
int driver_tracer_descriptor(
	const struct driver_tracer *tracer);	      /* readable when something may have come; -1: no notification */
int driver_tracer_look(struct driver_tracer *tracer); /* whether something has come, and attaches to it */
void driver_tracer_detach(struct driver_tracer *tracer);

size_t driver_tracer_tracepoints(const struct driver_tracer *tracer); /* attached to, in all; NULL is fine */
size_t driver_tracer_nodes(const struct driver_tracer *tracer);	      /* with followed ioctls */

/* ---- counter_sampler.c ---- */

/* Counters of devices and the kernel that are read while calls are recorded: at intervals, or around each inference. */

struct counter_sampler;

#define COUNTER_SLOT_COST 400 /* ns: of a perf event that is read before and after a call (make bench, counters) */

/*
 * Opens the counters. *result is NULL when there are none. Errors are those of xpt_counters_open() and
 * call_events_open(), -E2BIG, logged.
 */
int counter_sampler_create(struct collector *collector, struct counter_sampler **result);
void counter_sampler_free(struct counter_sampler *sampler); /* NULL is fine */
/* What a counter is; its strings live as long as sampler. NULL: there is no such index, or sampler is NULL. */
const struct xpt_counter_info *counter_sampler_info(const struct counter_sampler *sampler, size_t index);
/* Of a counter that there is: what it counts around an inference, as call_events_of(); "": it is not read there. */
const char *counter_sampler_of(const struct counter_sampler *sampler, size_t index);
unsigned int counter_sampler_slots(
	const struct counter_sampler *sampler); /* perf events around an inference; sampler: NULL is fine */
/* Sets what of the options is about events around inferences; they are lent until the kernel's side has been opened. */
void counter_sampler_lend(const struct counter_sampler *sampler,
			  struct kern_options *options);    /* sampler: NULL is fine */
void counter_sampler_lent(struct counter_sampler *sampler); /* it has been; NULL is fine */
/* The CPU has come online: what is read there around inferences, and sampled, is so again. sampler: NULL is fine. */
int counter_sampler_renew(struct counter_sampler *sampler, struct kern *kern, int cpu);
/* Passes on what they are, COUNTER records, and where they begin. -ENOMEM. */
int counter_sampler_start(struct counter_sampler *sampler);
__u64 counter_sampler_due(
	const struct counter_sampler *sampler); /* when they are read next; ~0: sampler is NULL, or has not begun */
void counter_sampler_look(struct counter_sampler *sampler); /* reads them if it is due; NULL is fine */
void counter_sampler_stop(struct counter_sampler *sampler); /* reads them for the last time; NULL is fine */

/* ---- budget.c, budget_costs.c ---- */

/* Keeps what tracing takes below a part of the targets' CPU time, by tracing less. */

struct budget;
struct followed;

/* *result stays NULL when there is none to keep. -ENOMEM. */
int budget_create(struct collector *collector, struct budget **result);
void budget_free(struct budget *budget);  /* NULL is fine, as is: */
void budget_start(struct budget *budget); /* recording begins now */
void budget_look(struct budget *budget);  /* measures if it is due, and changes what is traced; emits BUDGET records */
/* A process has ended; before its probes are given up. */
void budget_forget(struct budget *budget, const struct followed *followed);
void budget_stop(struct budget *budget); /* before the probes are removed: measures for the last time */
/* CPU time so far, ns; and how many functions are suspended, of each process that has them apart. */
struct budget_times {
	__u64 added, collector, targets;
	unsigned int suspended;
};
struct budget_times budget_times(const struct budget *budget); /* NULL: zeros */
/* Member "budget" of the END record. */
void budget_json(struct budget *budget, struct text *json);

/* ---- stacks.c ---- */

/* Stacks of calls: copied by the kernel's side, unwound in a process of their own. */

struct stack_tracer;

/* *result stays NULL when nobody needs them. -errno, logged. */
int stack_tracer_create(struct collector *collector, struct stack_tracer **result);
void stack_tracer_free(struct stack_tracer *tracer);		/* NULL is fine, as below */
int stack_tracer_descriptor(const struct stack_tracer *tracer); /* readable when something has been unwound; not NULL */
void stack_tracer_prepare(struct stack_tracer *tracer, pid_t tgid); /* the process has mapped something */
void stack_tracer_forget(struct stack_tracer *tracer, pid_t tgid);  /* it has ended, or runs another program */
/* A thread whose stack was copied runs again: how long it did not. */
void stack_tracer_off_cpu(struct stack_tracer *tracer, const struct xpt_record_off_cpu *record);
void stack_tracer_look(struct stack_tracer *tracer);   /* passes on what there is */
void stack_tracer_finish(struct stack_tracer *tracer); /* and waits for the rest */

/* ---- the collector ---- */

typedef void (*record_fn)(void *context, const struct xpt_record_header *record);

#define COLLECTOR_POLL 20000000ull	 /* ns between two polls of the rings */
#define COLLECTOR_POLL_IDLE 100000000ull /* the same when nothing has come for COLLECTOR_IDLE ns */
#define COLLECTOR_IDLE 1000000000ull

/* What one consumer of the records needs. All zeros: nothing. */
struct collector_needs {
	__u32 roles; /* of calls, 1 << XPT_ROLE_*; those that report programs, and with codes code objects, always come */
	__u32 sample_every; /* N: of every program each Nth inference; 0: what profiling handles ask for */
	bool chosen_only;   /* as in xpt_config, as is: */
	bool number_operators;
	/*
	 * Code objects are captured: CODE_PIECE and CODE records come, too. Who gets one with a ticket has to call
	 * collector_code_answer() once it has read the memory of the thread.
	 */
	bool codes;
	__u64 code_wait_limit; /* ns that a thread waits for its code object at most; 0: the default */
	unsigned int stacks;   /* of calls, in a second at most; 0: none */
	unsigned int samples;  /* stacks of threads that run in a call, in a second of a CPU; 0: none */
};

/* As in xpt_recording_options and xpt_session_options. */
struct collector_options {
	const pid_t *pids;
	size_t pid_count;
	char *const *command;
	int all_processes;
	const char *const *process_names;
	size_t process_name_count;
	const char *const *runtime_files;
	size_t runtime_file_count;
	const char *const *runtimes;
	size_t runtime_count;
	const char *const *regions;
	size_t region_count;
	const char *const *driver_files;
	size_t driver_file_count;
	const char *drivers;
	const char *tracefs;
	const struct xpt_handle_name *names;
	size_t name_count;
	size_t name_size; /* of one in names, as the caller has it */
	const char *const *counters;
	size_t counter_count;
	bool counter_tracks; /* they are read at intervals */
	__u64 counters_every;
	bool counters_per_inference;
	size_t buffer_bytes;
	enum xpt_link link;
	int no_wait;	  /* threads never wait for the collector */
	__u64 wait_limit; /* ns that a thread waits for its probes at most; 0: the default */
	double budget;	  /* percent of the targets' CPU time; 0: none */
	int why;	  /* times at which threads with an open call do not run are recorded */
	void (*scanned)(void *context, pid_t tgid); /* a process's files have been scanned */
	bool (*interrupted)(void *context);	    /* starting is to be given up */
	struct log log;
	/*
	 * Unless all processes are traced: whether one that has one of the names, the command or a child may be followed; 0, or why
	 * not. A child is followed all the same.
	 */
	int (*admit)(void *context, pid_t tgid);
	void (*leave)(void *context, pid_t tgid); /* it has ended */
	/* Gets every record, in the order of reading. Errors are its own affair. */
	void (*record)(void *context, const struct xpt_record_header *record);
	void *context;
};

/* Those that xpt_recording_options and xpt_session_options have alike: the beginning of an initialiser. */
#define COLLECTOR_OPTIONS(from)                                                                                     \
	.pids = (from)->pids, .pid_count = (from)->pid_count, .command = (from)->command,                           \
	.all_processes = (from)->all_processes, .process_names = (from)->process_names,                             \
	.process_name_count = (from)->process_name_count, .runtime_files = (from)->runtime_files,                   \
	.runtime_file_count = (from)->runtime_file_count, .regions = (from)->regions,                               \
	.region_count = (from)->region_count, .runtimes = (from)->runtimes, .runtime_count = (from)->runtime_count, \
	.no_wait = (from)->no_wait, .wait_limit = (from)->wait_limit, .budget = (from)->budget, .why = (from)->why, \
	.driver_files = (from)->driver_files, .driver_file_count = (from)->driver_file_count,                       \
	.drivers = (from)->drivers, .tracefs = (from)->tracefs, .names = (from)->names,                             \
	.name_count = (from)->name_count, .name_size = (from)->name_size, .buffer_bytes = (from)->buffer_bytes,     \
	.link = (from)->link, .log = { (from)->log, (from)->log_context, (from)->log_level }

/* A process that is traced. */
struct followed {
	struct map_node node; /* by tgid */
	struct link link;
	pid_t tgid;
	__u64 announced; /* ns of CLOCK_MONOTONIC: the time of its latest PROCESS record; 0: none has been emitted */
	bool called;	 /* a thread of it has made a traced call; it may have ended before it could be announced */
	bool gone;	 /* it had ended at the last check */
	bool awaited;	 /* it was reported as one that uses no described runtime yet */
	struct attacher_scanned attached; /* what its last scan has found; of a forked child what its parent has */
	unsigned int missed;		  /* deadlines in a row */
	__u64 cpu;			  /* ns that it had run, as the budget has read last; 0: it has not */
	__u64 began;			  /* ns of CLOCK_MONOTONIC: its fork or last exec; 0: before it was traced */
	/* It began in its parent's memory without some of the probes: that is a loss unless it executes a program. */
	bool late;
};

/* All of a key but its handle, which is the second key of a map of programs. */
static inline __u64 program_map_key(const struct xpt_program_key *key)
{
	return (__u64)key->tgid << 32 | (__u32)key->runtime << 16 | key->spec;
}

/* A thread that waits for several consumers. */
struct code_ticket {
	__u64 ticket;
	unsigned int missing; /* answers */
};

struct collector {
	struct collector_options
		options; /* pids, process names, names: its own copies; runtimes, drivers, counters and files: only during creation */
	pid_t *pids;
	char **process_names;
	bool *process_names_met; /* one that has the name was seen */
	struct xpt_handle_name *names;
	struct collector_needs needs; /* of all consumers together */
	unsigned int code_readers;    /* consumers with codes */
	struct code_ticket *code_tickets;
	size_t code_ticket_count;
	struct log log;
	struct registry *registry;
	struct kern *kern;
	struct attacher *attacher;
	struct mappings *mappings;
	int cpu_events;				 /* of cpu_events_open(); -1: CPUs that come online are not noticed */
	struct driver_tracer *driver_tracer;	 /* NULL: no driver is to be followed */
	struct counter_sampler *counter_sampler; /* NULL: no counter is to be read */
	struct budget *budget;			 /* NULL: tracing may take what it takes */
	struct stack_tracer *stack_tracer;	 /* NULL: no stacks are taken */
	struct command command;

	int epoll, wake;
	int error; /* ends it */
	__u64 started, ended, losses_due;
	__u64 ticks;	     /* clock ticks after boot when it started, as start times of processes */
	__u64 tasks_missed;  /* kern_tasks_missed() at the last check */
	bool tasks_settling; /* some were missed shortly before that */
	__u64 mappings_due;  /* ns: when they are watched again; 0: they are */
	__u64 placing_since, placing_reported;
	bool placing_slow;
	pid_t raised; /* thread with a higher priority than before; 0: none */
	int priority; /* that it had: a nice value */

	struct link followed; /* struct followed; all-processes mode: those that a record has come from */
	struct map followed_map;
	bool has_family; /* processes that come are of the family */
	/*
	 * ns: since when the family has had the probes of the single process that it comes from: what was forked before may have run without
	 * some. 0: it has had them while anything was recorded, or there was none.
	 */
	__u64 family_since;
	bool ready; /* what was there at the start has its probes */
	struct mapped {
		pid_t tgid;
		__u64 time; /* ns: of the first mapping */
	} * pending;	    /* to be scanned */
	size_t pending_count;
	bool scan_all;

	__u64 calls; /* CALL records passed on */
	__u64 left_out;
	__u64 lost; /* sum of all causes */
	__u64 last_loss_time;
	__u64 losses[XPT_LOSS_MAX];   /* as last read */
	__u64 lost_for[XPT_LOSS_MAX]; /* of these and of others */
	size_t searched_before;	      /* files, when tracing began */
	__u64 drained_records;
	__u64 drain_time;  /* under a budget: ns of CPU time that these took */
	__u64 *spec_calls; /* by spec: recorded */
	__u64 *spec_apart; /* of these: neither inferences nor inside of one, so that no sampling leaves them out */
	struct kern_cost *spec_costs; /* by spec: as the latest COST record has it; 0: there is none */
	size_t costs_of;	      /* probes that were placed then */
	__u64 events, ioctls;	      /* of drivers: passed on */
	struct objects objects;
	__u64 loaded;			       /* when a program was loaded last, as far as its record was passed on */
	struct launch_symbols *launch_symbols; /* NULL: without code objects */
	__u64 pass;			       /* time of the last PASS */
	__u64 hold_from;		       /* what is read from memory now was there from this time on */
	__u64 drained;			       /* ns: when a ring was emptied last */
	__u64 active;			       /* ns: when there was something in one last */
	bool idle;			       /* that was long ago: they are polled less often, and wake */
	bool unhurried;			       /* nobody waits for records before their work is due */
	bool patient;			       /* so, and nothing is new: they are polled less often */
	__u64 news;			       /* ns: when the control ring woke last */
	__u64 drain_due;		       /* ns: when they are polled next, at the latest */
	bool mappings_only;		       /* while patient: nothing but mappings has woken the thread */
	struct text requests;		       /* struct request, each with its record */
	struct text spare_requests;	       /* empty */
};

/* collector.c */
/* Is there exactly one choice of what to trace? -EINVAL, logged. */
int collector_check_options(const struct collector_options *options);
/* Checks the options, reads the descriptions, scans the targets. Errors as xpt_recording_create(). */
int collector_create(const struct collector_options *options, struct collector **result);
__u32 collector_level_roles(enum xpt_level level);
/* Adds a consumer's needs to those of the others. -ENODATA, logged: the kernel side was loaded without them. */
int collector_need(struct collector *collector, const struct collector_needs *needs);
/* Finds the counters. Of collector_open(), unless it was called before. */
int collector_open_counters(struct collector *collector);
int collector_open(struct collector *collector);  /* loads the kernel side */
int collector_start(struct collector *collector); /* attaches, or starts the command */
/*
 * Waits for something to do: until the time `until`, at most COLLECTOR_POLL, or until woken; at most COLLECTOR_POLL_IDLE when nothing
 * has come for a while, or where nobody is in a hurry.
 */
int collector_wait(struct collector *collector, __u64 until);
/*
 * The kernel's rate of one program; seen: everything up to this time has been read. -ESTALE: it has not run yet, or its handle
 * is another one's by now.
 */
int collector_set_sampling(struct collector *collector, const struct model_program *program, __u32 sample_every,
			   __u64 seen);
void collector_wake(struct collector *collector); /* from anywhere, also signal handlers */
/* Passes on what is there; libraries, processes and losses are looked after. The error that ends it, or 0. */
int collector_work(struct collector *collector);
/* Places nothing any more, takes all probes off, passes on what is left, and the totals. */
void collector_finish(struct collector *collector);
/* Warns of the user's names that no program in the model has had a use for. After all is delivered. */
void collector_check_names(struct collector *collector, const struct model *model);
void collector_explain(const struct collector *collector); /* why nothing ran, to the log */
int collector_command_status(struct collector *collector); /* as xpt_session_command_status(); now */
void collector_free(struct collector *collector);
/* Resumes a waiting thread of the process. False: it was resumed before, at its deadline. */
bool collector_answer(struct collector *collector, pid_t tgid, __u64 ticket);
/* The same for a code object, once every consumer that reads it has called this. False: some of it may be missing. */
bool collector_code_answer(struct collector *collector, pid_t tgid, __u64 ticket);
/* A CODE record is passed on to those that read code objects now: each of them has to answer. */
void collector_code_passed(struct collector *collector, const struct xpt_record_code *code);
__u64 collector_code_limit(
	const struct collector *collector); /* ns that a call waits for its code object; 0: it does not */
static inline void collector_pass(struct collector *collector, const struct xpt_record_header *record)
{
	collector->options.record(collector->options.context, record);
}
/* A record of user space's own, which is freed. NULL: there was no memory for it; that ends the collecting. */
static inline void collector_pass_text(struct collector *collector, struct xpt_record_text *record)
{
	if (record)
		collector_pass(collector, &record->header);
	else if (!collector->error)
		collector->error = -ENOMEM;
	free(record);
}

/* targets.c: processes, the command, libraries that come later */
int targets_look(struct collector *collector); /* before anything is made: can the processes be traced? */
/* Why a process cannot be traced: error of process_info_read() and the like. */
void targets_explain(const struct log *log, pid_t pid, int error);
int targets_start(struct collector *collector);	  /* attaches; a command waits for command_release() */
void targets_report(struct collector *collector); /* what has been attached to, to the log */
void targets_free(struct collector *collector);
void targets_read_mappings(struct collector *collector);
void targets_scan_pending(struct collector *collector);
void targets_check(struct collector *collector); /* for processes that ended unnoticed */
bool targets_ended(struct collector *collector);
void targets_finish(struct collector *collector); /* what is still to be said of those that live */
/* Visits those that may have loaded something; a non-zero return ends the walk and is returned. */
int targets_each(struct collector *collector, int (*visit)(void *context, pid_t tgid), void *context);
__u64 targets_began(struct collector *collector, pid_t tgid); /* as in struct followed; 0 for any other process */
/* A record about a process: fork, exec, exit, first call of a thread. */
void targets_task(struct collector *collector, const struct xpt_record_task *task);

/* records.c: from the rings to the consumers */
void records_drain(struct collector *collector); /* and deals with what records ask for */
/* While that takes its time, or probes are placed: empties the data rings again, if they have not been for a while. */
void records_drain_beside(struct collector *collector);
/* To the consumers, and counts it. */
void records_pass_call(struct collector *collector, const struct xpt_record_call *call);
void records_pass_total(struct collector *collector, const struct xpt_record_total *total);
/* COST records of what has got probes since, where it is known what these take. */
void records_costs(struct collector *collector);
/* A process has ended, or runs another program: what is known of its objects and addresses is not true any more. */
void records_forget_objects(struct collector *collector, pid_t tgid);
void records_losses(struct collector *collector);
void records_lost(struct collector *collector, enum xpt_loss cause, __u64 count); /* more than 0 */
struct xpt_record_lost records_loss(const struct collector *collector, enum xpt_loss cause, __u64 count);
/* The counts of all programs up to now, as COUNT records of the time `time`, which is that of just before. */
void records_counts(struct collector *collector, __u64 time);
void records_totals(struct collector *collector, pid_t tgid); /* 0: of all; taken out of the kernel */
/* To one consumer, that leaves: TOTAL records of what is still in the kernel, and stays there. */
void records_totals_pass(struct collector *collector, record_fn record, void *context);
/* ns: that one recorded call takes longer. Measured, or estimated. */
__u64 records_call_cost(const struct collector *collector, size_t spec);
/* Of the whole session so far. */
struct records_figures {
	__u64 calls, cost;    /* through probes, and the ns that they are estimated to have taken longer */
	__u64 events, ioctls; /* of drivers */
	__u64 lost;	      /* records */
};

struct records_figures records_figures(const struct collector *collector);

/* How one consumer's recording has ended. */
struct records_ending {
	const char *stopped_by;
	__u64 begun, ended;		      /* ns of CLOCK_MONOTONIC */
	__u64 open;			      /* calls that had not returned */
	const struct records_figures *before; /* begun */
	record_fn record;
	void *context;
};

/* 0 or -ENOMEM: without it what is recorded looks cut short. */
int records_end(struct collector *collector, const struct records_ending *ending);

/* requests.c: beside the draining of the rings */
#define NAME_NODE (1u << 0)    /* of an operator */
#define NAME_PROGRAM (1u << 1) /* of a program that was loaded before it could be seen */
#define NAME_SYMBOL (1u << 2)  /* at the address of a kernel */

/* Keeps a copy of a record that asks for something. names: for NAME_*, and it has been passed on; 0: it is passed on then. */
void requests_add(struct collector *collector, const struct xpt_record_header *record, unsigned int names);
void requests_work(struct collector *collector);	   /* deals with all of them */
size_t collector_sites(const struct collector *collector); /* probes that have been placed */

#endif
