/* SPDX-License-Identifier: BSD-2-Clause */
/* State of continuous profiling. */
#ifndef XPT_SESSION_CONTINUOUS_PRIVATE_H
#define XPT_SESSION_CONTINUOUS_PRIVATE_H

#include <xputrace/continuous.h>

#include "base/file/folder.h"
#include "control/control.h"
#include "model/core/model.h"
#include "profile/trigger/inference_index.h"
#include "profile/trigger/trigger.h"
#include "record/recording.h"
#include "record/window.h"
#include "session/core/session.h"

#define REASON_MAX 200

struct save;

/*
 * What an inspection does beside; any may be NULL. All on the collecting thread, with the session's lock held.
 */
struct continuous_hooks {
	bool (*keeps)(void *context, const struct xpt_record_header *record); /* is it wanted in the window? */
	int (*event)(void *context, const struct event *event);
	__u64 (*work)(void *context, __u64 now);	       /* as that of a consumer */
	void (*saved)(void *context, const struct save *save); /* what save.owner was set to is the hooks' */
	void *context;
};

/* A file that is wanted, on its way from the requester to the disk and back. */
struct save {
	struct save *next;
	struct xpt_save_options options; /* the program is owned */
	char reason[REASON_MAX];	 /* for the file: "requested", "latency of ... was ..." */
	bool by_trigger;
	void *owner;	       /* of the hooks; NULL: none */
	struct folder *folder; /* where it is written; NULL: the collector's */
	const char *name;      /* of the file; NULL: prefix and time */
	bool (*wants)(void *context, const struct xpt_record_header *record); /* is it written? NULL: all is */
	void *wants_context;
	__u64 asked; /* ns: all up to then is in it */

	/* When it was taken out of the window: */
	struct snapshot *snapshot;
	struct snapshot_part part;
	struct inference_stretches stretches; /* that part is about */
	__u64 started;			      /* ns: of all */
	__u64 complete;			      /* ns: all up to then is in it */
	__u64 end;			      /* ns: nothing later is */
	__u64 *costs;			      /* ns a call, by spec */
	size_t spec_count;
	__u64 lost;

	struct control_request *request; /* who waits for it by the socket; NULL: nobody */
	bool done, awaited;		 /* awaited: by a caller, who frees it */
	int error;
	char why[REASON_MAX]; /* of the error; "": none beyond its name */
	struct xpt_saved saved;
};

/*
 * Who profiles what continuously, on the whole machine: one at a time. Claims end with the process that made them, however that
 * ends.
 */
struct target_claims {
	int file; /* -1: closed */
};

struct save_list {
	struct save *first, **last;
	size_t count;
};

/*
 * The collecting thread does all with the window, the model and the socket. The saving thread writes what was taken. Both, and
 * callers, meet in the lists of saves.
 */
struct xpt_continuous {
	struct xpt_session *session; /* its lock is that of all but what is the saving thread's own */
	struct consumer consumer;
	struct collector *collector; /* of the session */
	struct save_list asked, taken, written;
	struct xpt_continuous_status status; /* as of the latest turn */
	bool closing;			     /* the saving thread ends, once nothing is taken */
	bool stopped;			     /* requested by the socket, or an inspection has nothing left to inspect */
	int signalled;			     /* set from anywhere */
	pthread_cond_t queued;		     /* for the saving thread */
	pthread_t saving;
	bool has_saving;
	struct model *model;
	struct inference_index *recent;
	struct window *window;
	struct trigger *triggers[XPT_TRIGGERS_MAX];
	size_t trigger_count;
	struct save_limits limits;
	__u64 after;	/* ns from a trigger to its save */
	__u64 save_due; /* ns; ~0: no trigger's save waits */
	char save_reason[REASON_MAX];
	__u64 triggered;
	__u64 losses;		 /* of the collector, as last read */
	struct control *control; /* NULL: none */
	struct control_request *stop_request;
	struct target_claims claims;
	pid_t refused; /* claimed by others, last reported */
	struct continuous_hooks hooks;
	__u64 hooks_due;								 /* ns; ~0: never */
	void (*saved)(void *context, const struct xpt_saved *saved, const char *reason); /* the caller's; NULL: none */
	void *saved_context;
	__u8 roles[XPT_SPEC_MAX]; /* enum xpt_role by spec; written before the threads begin */
	char *prefix;		  /* of files */

	/* The saving thread's: */
	struct folder *folder;
};

/* continuous.c */
/*
 * Copies what callers have set into zeroed structs, with defaults for what they have not, and 0 for XPT_NONE. -EINVAL, logged as far as
 * there is a log: out of range, or it makes no sense together; -ENAMETOOLONG; -E2BIG.
 */
int continuous_options_read(const struct xpt_continuous_options *given, struct xpt_continuous_options *options,
			    struct xpt_session_options *targets);
/* As xpt_continuous_create(), with hooks; everything of them is NULL where there are none. */
int continuous_create(const struct xpt_continuous_options *given, const struct continuous_hooks *hooks,
		      struct xpt_continuous **result);

/* claims.c */
/* Those that are known by now. -EBUSY, logged; or an error of open(). */
int continuous_make_control_dir(const struct log *log); /* of the socket and the claims */
int continuous_claim_targets(struct xpt_continuous *continuous);
int continuous_admit(void *context, pid_t pid); /* as in struct consumer; context: struct xpt_continuous */
void continuous_leave(void *context, pid_t pid);
/* Makes the file if there is none. Or an error of open(). */
int target_claims_open(const struct log *log, const char *path, struct target_claims *claims);
/* -EBUSY: it is claimed through other claims. */
int target_claim(const struct target_claims *claims, pid_t pid);
/* Others may claim it: its number may be that of another process soon. Nothing when it was not claimed. Not after claim_all. */
void target_unclaim(const struct target_claims *claims, pid_t pid);
/* The same of all processes that there are and will be. */
int target_claim_all(const struct target_claims *claims);
void target_claims_close(struct target_claims *claims);

/* collecting.c: on the collecting thread, with the session's lock held. context: struct xpt_continuous */
void continuous_record(void *context, const struct xpt_record_header *record); /* into the window and the model */
struct event_sink continuous_sink(struct xpt_continuous *continuous);	       /* and from there to the triggers */
__u64 continuous_work(void *context, __u64 now);
void continuous_update_status(struct xpt_continuous *continuous, __u64 now);
/* Whether the call runs a program. What is enqueued is an inference when a wait has ended it, but may fail at once. */
bool continuous_is_run(const struct event_call *call);
/* Handler of the socket. */
void continuous_handle(void *context, struct control_request *request, const cJSON *body);
void continuous_answer_save(struct save *save);
void continuous_answer_stop(struct xpt_continuous *continuous);

/* saves.c */
/* Checks and copies. -EINVAL, -ENOMEM; reason, of REASON_MAX bytes, gets the cause if it is not clear. */
int save_create(const struct xpt_save_options *given, struct save **result, char *reason);
void save_free(struct save *save);
void save_list_init(struct save_list *list);
void save_list_add(struct save_list *list, struct save *save);
struct save *save_list_pop(struct save_list *list);		     /* NULL: none */
int saves_ask(struct xpt_continuous *continuous, struct save *save); /* -EBUSY; with the lock held */
/* Takes what was asked for out of the window; now: of a moment up to which the rings have been read. With the lock held, as is: */
void saves_take(struct xpt_continuous *continuous, __u64 now);
/* Reports what was written to who waits for it. */
void saves_report(struct xpt_continuous *continuous);
void *saves_run(void *context); /* the saving thread */
/* Takes and writes at once, after xpt_continuous_stop(). The error of the save. */
int saves_write(struct xpt_continuous *continuous, struct save *save);

#endif
