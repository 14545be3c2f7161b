/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of this folder. */
#ifndef XPT_KERN_PRIVATE_H
#define XPT_KERN_PRIVATE_H

#include <bpf/libbpf.h>

#include "kern/kern.h"
#include "code.skel.h"
#include "drivers.skel.h"
#include "samples.skel.h"
#include "session.skel.h"
#include "session_context.skel.h"
#include "switches.skel.h"
#include "xputrace.skel.h"

struct kern {
	const struct log *log;
	enum link_kind link;
	struct xputrace_bpf *main;
	struct bpf_object *session;	/* NULL unless LINK_SESSION */
	struct drivers_bpf *drivers;	/* NULL until a driver is followed */
	struct code_bpf *codes;		/* NULL: code objects are not captured */
	struct switches_bpf *switches;	/* NULL: times off the CPU are not traced */
	struct samples_bpf *samples;	/* NULL: running threads are not sampled */
	struct bpf_link **sample_links; /* by CPU; NULL: it is not there */
	int sample_cpus;
	unsigned int sample_frequency;
	int slots;	     /* the map of perf events that are read around inferences; -1: there are none */
	int session_program; /* borrowed from it; -1 */
	int place_program;   /* so is the one for sites without a return */
	struct xpt_config settings;
	/* Maps that are shared with the kernel side. */
	struct xpt_shared *shared;
	__u64 *answers;			   /* XPT_WAIT_SLOTS */
	struct xpt_family *family;	   /* XPT_FAMILY_WORDS */
	struct xpt_program_entry *entries; /* 1 to XPT_PROGRAMS_MAX */
	__u64 *hits;			   /* hit_shards times XPT_HITS_MAX */
	unsigned int hit_shards;	   /* 0: hits are not counted */
	__u32 wakeup_bytes;		   /* of settings, unless nobody polls */
	unsigned int ring_count;
	int ring[XPT_RINGS_MAX]; /* data rings; -1 */
	struct ring_buffer *control_reader, *data_reader;
	/* Of the rings of these two: what the kernel and user space share of their positions. */
	struct ring_position {
		const __u64 *reader, *writers;
		__u64 reserved; /* the writers' at the latest PASS record */
	} positions[XPT_RINGS_MAX + 2];
	unsigned int position_count;
	__u64 passed;			  /* ns: time of that record */
	struct ring_buffer *stack_reader; /* NULL: stacks are not copied */
	kern_record_fn visit;		  /* while one of them is drained */
	void *visit_context;
	int visited;
	__u64 malformed;
	bool (*placing)(void *context, size_t done, size_t total); /* as in struct kern_options */
	void *placing_context;
	struct attachment *trial;	/* the probe of links_try(), until unloaded; NULL */
	struct attachment *calibration; /* so are those of kern_calibrate() */
	struct kern_cost costs[KERN_COSTS];
	struct kern_hit_cost hit_costs[KERN_COSTS][2]; /* warm, cold */
	bool calibrated;			       /* costs are known */
};

/* From then on, libbpf logs why something is refused; NULL: no longer. */
void libbpf_log_to(const struct log *log);

/* Events that came in an interrupt of a program that was taking another one; 0 where the kernel does not count them. */
__u64 events_missed(const struct kern *kern);

/* ---- state.c ---- */

int settings_write(struct kern *kern, const struct xpt_config *settings);
/* Gives the perf events that are read around inferences to the kernel's side; nothing without slots. */
int slots_create(struct kern *kern, const struct kern_options *options);
/* Those of one CPU, by slot; -1: there is none. */
int slots_renew(struct kern *kern, unsigned int cpu, const int *events);
/* Maps what the kernel side and user space share. */
int shared_map(struct kern *kern);
void shared_unmap(struct kern *kern);

int rings_create(struct kern *kern, size_t bytes);
void rings_free(struct kern *kern);

/* Attach types of the kernel's uapi that the distribution's headers may be too old for. */
#define ATTACH_UPROBE_MULTI 48
#define ATTACH_UPROBE_SESSION 57

/* Proves that the kind of link works by placing a probe on a function of this process. */
int links_try(struct kern *kern);
/*
 * Places probes on functions of this program's own file, all of them: offsets of the sites are addresses here. A refusal is an
 * expected result and not logged: -EOPNOTSUPP.
 */
int links_attach_own(struct kern *kern, pid_t pid, struct kern_site *sites, size_t count, struct attachment **result);

/*
 * calibrate.c: finds kern_costs(), before anything else is recorded; where it cannot, they are unknown. first_spec: of the
 * KERN_CALIBRATE_SPECS that it uses.
 */
#define KERN_CALIBRATE_SPECS (KERN_COSTS + 1)
void kern_calibrate(struct kern *kern, __u32 first_spec);

/* The process has probes of its own from here on, until it ends. */
void kern_family_own(struct kern *kern, pid_t tgid);

#endif
