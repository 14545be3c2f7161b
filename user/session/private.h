/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a recording, shared by the files of this folder. */
#ifndef XPT_SESSION_PRIVATE_H
#define XPT_SESSION_PRIVATE_H

#include <xputrace/recording.h>

#include "base/guard.h"
#include "describe/registry.h"
#include "kern/kern.h"
#include "kern/mappings.h"
#include "session/attach.h"
#include "session/command.h"
#include "session/describe_records.h"
#include "session/output.h"

#define POLL_INTERVAL_MS 20
#define FLUSH_INTERVAL 250000000ull  /* ns */
#define STATUS_INTERVAL 200000000ull /* ns */
#define GRACE_US 5000

/* A process that is traced. */
struct followed {
	pid_t tgid;
	bool announced; /* its PROCESS record has been given out */
	bool watched;	/* by the guard */
};

struct xpt_recording {
	struct xpt_recording_options options; /* pointers below are its own copies */
	pid_t *pids;
	struct xpt_handle_name *names;
	struct log log;
	struct registry *registry;
	struct guard *guard;
	struct output *output;
	struct kern *kern;
	struct attacher *attacher;
	struct mappings *mappings;
	struct command command;

	int epoll, wake;
	int stopping; /* set by xpt_recording_stop(), from anywhere */
	bool finished;
	int error; /* ends the run */
	enum xpt_end ended_by;
	__u64 started, ended, output_due, losses_due;

	struct followed *followed; /* all-processes mode: those that a record has come from */
	size_t followed_count, followed_room;
	pid_t *pending; /* have mapped something; to be scanned */
	size_t pending_count, pending_room;
	bool scan_all;

	__u64 calls;   /* CALL records passed on */
	__u64 closed;  /* of those that are counted in the kernel: not layers */
	__u64 counted; /* sum over TOTAL records: began, less left out, less lost */
	__u64 left_out;
	__u64 lost; /* sum of all causes */
	__u64 last_loss_time;
	__u64 losses[XPT_LOSS_MAX]; /* as last read */
	__u64 *spec_calls;	    /* by spec: recorded */
};

/* targets.c: processes, the command, libraries that come later */
int targets_look(struct xpt_recording *recording); /* before anything is made: can the processes be traced? */
int targets_start(struct xpt_recording *recording);
void targets_read_mappings(struct xpt_recording *recording);
void targets_scan_pending(struct xpt_recording *recording);
void targets_check(struct xpt_recording *recording); /* processes whose end went unseen */
bool targets_ended(struct xpt_recording *recording);
void targets_release(struct xpt_recording *recording); /* lets go whatever is held; safe to repeat */
/* A record that tells of a process: fork, exec, exit, first call of a thread. */
void targets_task(struct xpt_recording *recording, const struct xpt_record_task *task);
/* The process was held for this record: probes are in place now, let it go. */
void targets_continue(struct xpt_recording *recording, pid_t tgid, __u64 since, unsigned int event, unsigned int sites);

/* records.c: from the rings to the output */
void records_drain(struct xpt_recording *recording);
void records_losses(struct xpt_recording *recording);
void records_totals(struct xpt_recording *recording, pid_t tgid); /* 0: of all */
void records_end(struct xpt_recording *recording);
void records_lost(struct xpt_recording *recording, enum xpt_loss cause, __u64 count);

#endif
